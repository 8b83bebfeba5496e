"""The constants of SpGEMM's choice between `hash` and `tile` (src/select/spgemm.rs) from tables of `tarsia sample`.

python train/spgemm.py TRAIN... --test TEST [--held-out]

Prints constants in the order of the source, and what choices by them are worth; with --held-out also where each kind of
matrix is left out of the fit. The test table is not fitted to.

Tables and constants are an H100's: the source scales them to the device in use (src/select/device.rs), by ratios that are 1 there.
"""

import argparse

import numpy as np
from scipy.optimize import minimize

from data import Table, Verdict

# `hash`: base, product of the longest row, its entry, its product beside that, 10⁶ products, 10⁶ entries of the left factor;
# `tile`: base, tile of the row of tiles with the most, 10⁶ pairs, 10⁶ tiles, 10⁶ products, 10⁶ tiles of C.
FIRST = np.array([200, 0.01, 0.25, 0.0021, 4, 48, 340, 4.3, 240, 2800, 1.8, 860])
# Differences of predicted logarithms that leave a choice open, so that it is smooth for the fit; losses from which on more is
# lost; how far constants may go.
OPEN, BAD, STIFF = 0.06, 0.16, 5e-4
# What predictions are made from.
NEEDED = "rows cols nnz longest right_longest products most_products tiles most_tiles pairs".split()
# As in the source.
MOST, LONGEST, LEAST_US, LEAST_PRODUCTS, IN_TURN = 1 << 17, 1 << 14, 115, 500_000_000, 256


class Products:
    """Cases with both candidates."""

    def __init__(self, cases):
        """Of (case, names of its numbers)."""
        self.cases = [case for case, _ in cases]
        for name in NEEDED:
            column = [float(case.numbers[names.index(name)]) for case, names in cases]
            setattr(self, name, np.array(column))
        self.of_c = np.where(self.rows == self.cols, self.cols, self.rows)
        self.hash, self.tile = (np.array([case.measured[name] for case in self.cases]) for name in ("hash", "tile"))
        # The source leaves out products that are expected to be multiplied as dense ones, too.
        expected = self.nnz**2 / self.cols
        product = np.where(expected >= self.rows * self.of_c, 4e-6, 2.5e-6)
        about = 0.1 * np.minimum(self.longest, 1000) + product * (expected + self.longest * self.right_longest)
        few = np.maximum.reduce([self.rows, self.cols, self.right_longest]) <= MOST
        self.counted = few & (self.longest <= LONGEST) & (about >= LEAST_US) & (self.products < LEAST_PRODUCTS)

    def predicted(self, c):
        in_turn = np.minimum(self.longest, IN_TURN)
        longest = np.minimum(c[1] * self.most_products, c[2] * in_turn + c[3] * self.most_products)
        by_hash = c[0] + longest + (c[4] * self.products + c[5] * self.nnz) * 1e-6
        more = c[8] * self.pairs + c[9] * self.tiles + c[10] * self.products
        more += c[11] * np.minimum(self.pairs, self.rows * self.of_c / 256)
        return by_hash, c[6] + c[7] * self.most_tiles + more * 1e-6

    def chosen(self, c):
        by_hash, by_tile = self.predicted(c)
        return np.where(self.counted & (by_tile < by_hash), "tile", "hash")

    def loss(self, c):
        by_hash, by_tile = self.predicted(c)
        tile = self.counted / (1 + np.exp(np.clip(np.log(by_tile / by_hash) / OPEN, -50, 50)))
        lost = np.log(np.array([self.hash, self.tile]) / np.minimum(self.hash, self.tile))
        lost += 2 * np.maximum(lost - BAD, 0)
        return (lost[0] * (1 - tile) + lost[1] * tile).mean() + STIFF * (np.log(c / FIRST) ** 2).sum()

    def fit(self):
        options = {"maxiter": 6, "maxfev": 3000, "xtol": 1e-3, "ftol": 1e-6}
        found = minimize(lambda logs: self.loss(np.exp(logs)), np.log(FIRST), method="Powell", options=options)
        return np.exp(found.x)

    def shares(self, chosen):
        """What choices are worth: the faster one's time over the chosen one's."""
        return np.minimum(self.hash, self.tile) / np.where(np.asarray(chosen) == "tile", self.tile, self.hash)


def read(paths):
    """Cases of tables with the names of their numbers."""
    tables = [Table(path) for path in paths]
    cases = [(case, table.names["spgemm"]) for table in tables for case in table.cases]
    return [(case, names) for case, names in cases if case.op == "spgemm" and len(case.measured) == 2]


def main(args):
    cases = read(args.train)
    train, test = Products(cases), Products(read([args.test]))
    # Two digits are more than is known.
    constants = np.array([float(f"{constant:.2g}") for constant in train.fit()])
    print("constants", *constants)
    named = [("fitted", train, train.chosen(constants))]
    if args.held_out:
        chosen = np.full(len(cases), "hash")
        kinds = np.array([case.family for case, _ in cases])
        for kind in sorted(set(kinds)):
            others = Products([case for case, other in zip(cases, kinds) if other != kind])
            chosen[kinds == kind] = train.chosen(others.fit())[kinds == kind]
        named.append(("kinds held out", train, chosen))
    named.append(("hash alone", train, ["hash"] * len(cases)))
    named.append(("test", test, test.chosen(constants)))
    named.append(("test, hash alone", test, ["hash"] * len(test.cases)))
    for name, products, chosen in named:
        shares = products.shares(chosen)
        tiles = sum(choice == "tile" for choice in chosen)
        print(f"{name}: {Verdict.line(shares)}; tile {tiles}, counted {products.counted.sum()}")
        worst = np.argsort(shares, kind="stable")[:5]
        print("   ", "; ".join(f"{products.cases[at].matrix} {100 * shares[at]:.0f} %" for at in worst))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("train", nargs="+")
    parser.add_argument("--test", required=True)
    parser.add_argument("--held-out", action="store_true")
    main(parser.parse_args())
