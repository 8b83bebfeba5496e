#!/usr/bin/env python3
"""Puts times that were measured again into a table of `tarsia sample`, e.g. of an algorithm whose kernels have changed:

    tarsia sample --count 10000 --seed 1 --algorithms row --out row.tsv.gz
    python3 train/renew.py benches/training/h100-train-1.tsv.gz row.tsv.gz

The second table's times replace the first's in the same products of the same matrices. Products in which the algorithm
was measured once, but not again, are left out, since its old time would be compared with others' new ones; with --keep
they stay, as where kernels have changed for some products alone. What is
counted and predicted must be the same in both, since what is learned is how far predictions are off.
"""

import argparse
import gzip
import sys
from pathlib import Path

import numpy as np

HEAD = "number\tmatrix\t"
# Between predictions, which are sums in another order where the compiler was another.
SAME = 1e-4


def read(path):
    """Lines before the table, and its lines as lists of fields."""
    with gzip.open(path, "rt") as lines:
        lines = [line.rstrip("\n") for line in lines]
    at = next(at for at, line in enumerate(lines) if line.startswith(HEAD))
    return lines[: at + 1], [line.split("\t") for line in lines[at + 1 :]]


def times(fields):
    """NAME: [predicted, measured, analysis] of a line, as text."""
    return {name: rest for name, *rest in (time.split(":") for time in fields[9].split())}


def is_near(old, new):
    old, new = (np.array([float(text) for text in texts]) for texts in (old, new))
    return len(old) == len(new) and np.allclose(old, new, rtol=SAME, atol=0)


def key(fields):
    """The product of a line: the matrix by what it is made from, its shape, and the kind of product."""
    return tuple(fields[1:8])


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("table", type=Path, help="is written again")
    arguments.add_argument("again", type=Path, nargs="+", help="of `tarsia sample --algorithms`")
    arguments.add_argument("--keep", action="store_true", help="keep products that were not measured again")
    asked = arguments.parse_args()

    head, lines = read(asked.table)
    found, algorithms, about = {}, set(), []
    for path in asked.again:
        its_head, its_lines = read(path)
        named = [line for line in its_head if line.startswith("# algorithms ")]
        if not named:
            raise SystemExit(f"{path}: it is no table of `tarsia sample --algorithms`")
        algorithms.update(named[0].split()[2:])
        device = next(line for line in its_head if line.startswith("# device "))
        about.append(f"# again {' '.join(named[0].split()[2:])}: {device[len('# device '):]}")
        found.update((key(fields), fields) for fields in its_lines if fields[5] != "matrix")

    kept, renewed, dropped = [], 0, 0
    for fields in lines:
        old = times(fields) if fields[5] != "matrix" else {}
        wanted = algorithms & set(old)
        if not wanted:
            kept.append(fields)
            continue
        again = found.get(key(fields))
        new = times(again) if again else {}
        if not wanted <= set(new):
            if asked.keep:
                kept.append(fields)
            else:
                dropped += 1
            continue
        if not is_near(fields[8].split(), again[8].split()):
            raise SystemExit(f"{' '.join(key(fields))}: its numbers are others")
        for name in wanted:
            if not is_near(old[name][:1], new[name][:1]):
                raise SystemExit(f"{' '.join(key(fields))}: {name} is predicted to take {new[name][0]}, not {old[name][0]}")
            old[name] = new[name]
        fields[9] = " ".join(":".join([name, *rest]) for name, rest in old.items())
        kept.append(fields)
        renewed += 1

    # Behind what was said of the device: only the last time counts.
    head = [line for line in head if not any(line.startswith(f"# again {name}:") for name in algorithms)]
    head[1:1] = about
    with open(asked.table, "wb") as out, gzip.GzipFile(fileobj=out, mode="wb", mtime=0, filename="") as out:
        out.write("".join(line + "\n" for line in [*head, *("\t".join(fields) for fields in kept)]).encode())
    print(f"{asked.table}: {renewed} products have new times, {dropped} were left out")
    return 0


if __name__ == "__main__":
    sys.exit(main())
