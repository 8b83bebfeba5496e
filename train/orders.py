"""Learns which order of rows TARSIA_REORDER_LEARNED takes, after the paper on row permutations: for each form of product
that takes orders a network from 24 features of the pattern to the logarithms of the times in each order, over that in
the rows' own."""

import numpy as np

from data import Table
from network import Network

FEATURES = 24
OWN = "none"
# What tarsiaReorder_t calls an order of rows, by its name in tables.
POLICIES = {
    "dcsr": 11,
    "plain_sort": 2,
    "flipped_sort": 3,
    "lpt": 4,
    "warp_aware": 5,
    "cta_aware": 6,
    "hybrid_1": 7,
    "hybrid_2_1": 8,
    "hybrid_2_2": 9,
    "hybrid_2_3": 10,
    "rcm": 12,
    "gray_code": 13,
}
# By its name in the library's file, what tables call a form of product.
FORMS = {"spmv-csr": "orders-spmv-csr", "spmm-row": "orders-spmm-row", "spmm-csr": "orders-spmm-csr"}
FOLDS = 5
# What a time must be less than the own order's by, as a logarithm: an order costs analysis and memory.
MARGIN = 0.01


class Chooser:
    """What was learned of one form of product."""

    def __init__(self, cases):
        self.policies = [name for name in POLICIES if any(name in case.measured for case in cases)]
        self.network = Network(1, l2=1e-3, epochs=200, near=0.2).fit_logs(inputs(cases), logs(cases, self.policies))
        weights, biases = self.network.layers[-1]
        self.network.layers[-1] = weights, biases + MARGIN

    def choose(self, cases):
        """The names of orders, of those that a matrix has."""
        out = []
        for case, found in zip(cases, self.network.outputs(inputs(cases))):
            least, best = min((value, name) for value, name in zip(found, self.policies) if name in case.measured)
            out.append(best if least < 0.0 else OWN)
        return out


def inputs(cases):
    return np.array([case.features[:FEATURES] for case in cases], dtype=np.float64)


def logs(cases, policies):
    """Of times over those in the rows' own order; NaN where a matrix cannot have an order."""
    ratio = lambda case, name: case.measured.get(name, np.nan) / case.measured[OWN]
    ratios = np.array([[ratio(case, name) for name in policies] for case in cases])
    # What is rounded to 32 bits is the same by every library.
    return np.log(ratios).astype(np.float32).astype(np.float64)


def learned(train: Table):
    """By form, of those that were measured."""
    cases = {form: train.of(op) for form, op in FORMS.items()}
    return {form: Chooser(found) for form, found in cases.items() if found}


def report(train: Table, test: Table | None, choosers):
    for form, chooser in choosers.items():
        cases = train.of(FORMS[form])
        order = np.random.default_rng(1).permutation(len(cases))
        folds = [[cases[at] for at in order[fold::FOLDS]] for fold in range(FOLDS)]
        held_out, chosen = [], []
        for at, fold in enumerate(folds):
            held_out += fold
            chosen += Chooser([case for other in folds[:at] + folds[at + 1 :] for case in other]).choose(fold)
        print(f"\nOrders of rows, {form}, {len(cases)} matrices to learn from")
        judge(f"{FOLDS} folds", held_out, chosen, chooser.policies)
        others = test.of(FORMS[form]) if test else []
        if others:
            judge("the test's", others, chooser.choose(others), chooser.policies)


def judge(what, cases, chosen, policies):
    """Speed-ups over the rows' own order, and what of the oracle's speed is lost, as the paper tells it."""
    own = np.array([case.measured[OWN] for case in cases])
    best = np.array([min(case.measured.values()) for case in cases])
    taken = np.array([case.measured[name] for case, name in zip(cases, chosen)])
    geomean = lambda ratios: np.exp(np.mean(np.log(ratios)))
    # Where a matrix cannot have the order it keeps its own.
    always = {name: geomean(own / [case.measured.get(name, case.measured[OWN]) for case in cases]) for name in policies}
    single = max(always, key=always.get)
    share = best / taken
    print(
        f"  {what}, {len(cases)} matrices: speed-up {geomean(own / taken):.3f} in geomean (mean {(own / taken).mean():.3f}), "
        f"oracle {geomean(own / best):.3f} ({(own / best).mean():.3f}), always {single} {always[single]:.3f}; "
        f"{100 * geomean(share):.1f} % of the oracle's speed, {100 * (share == 1).mean():.0f} % of matrices the best, "
        f"{100 * (share >= 0.96).mean():.0f} % within 4 %, {100 * (share >= 0.9).mean():.0f} % within 10 %, worst {share.min():.2f}"
    )
    counts = {name: chosen.count(name) for name in [OWN, *policies]}
    print("    chosen: " + ", ".join(f"{name} {count}" for name, count in counts.items() if count))
