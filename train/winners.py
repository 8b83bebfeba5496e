#!/usr/bin/env python3
"""Draws which candidate is the fastest for how many matrices.

python3 train/winners.py          reads benches/training, writes benches/results/h100-winners.png
                                  (needs matplotlib beside requirements.txt)
"""

import argparse
from collections import Counter, defaultdict
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

from data import APART, Table

ROOT = Path(__file__).resolve().parent.parent
MEASURED = ROOT / "benches" / "training"
# Of the same look in every bar: layouts of SpMV and algorithms of SpMM that are kin have a colour.
COLORS = {
    "sell": "#1b7837",
    "row": "#2166ac",
    "csr": "#67a9cf",
    "window": "#e68200",
    "stream": "#8c510a",
    "dasp": "#762a83",
    "mask_block": "#c51b7d",
    "smat": "#b2182b",
    "dense": "#6e6e6e",
    "swift": "#008c8c",
    "hash": "#4d9221",
    "tile": "#de77ae",
}
NAMES = {"f16": "fp16", "f32": "fp32", "f64": "fp64", "tf32": "TF32"}
# Files of the sampled matrices (one has the products of SpGEMM of the first ones alone), and of those that
# have names.
SAMPLED = ["h100-train-*.tsv.gz", "h100-spgemm.tsv.gz"]
NAMED = ["h100-test.tsv.gz"]


def winners(cases):
    """By operation, precision and number of columns."""
    out = defaultdict(Counter)
    for case in cases:
        if not case.op.startswith("orders"):
            out[case.op, case.precision, case.n][min(case.measured, key=case.measured.get)] += 1
    return out


def label(group):
    op, precision, n = group
    columns = f", N = {n}" if op == "spmm" else ""
    return {"spmv": "SpMV", "spmm": "SpMM", "spgemm": "SpGEMM"}[op] + f" {NAMES[precision]}{columns}"


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--out", type=Path, default=ROOT / "benches" / "results" / "h100-winners.png")
    out = arguments.parse_args().out
    files = [(SAMPLED, "sampled"), (NAMED, "real and named")]
    figure, axes = plt.subplots(1, 2, figsize=(10, 5.6), sharey=True, layout="constrained")
    shown = set()
    for axis, (patterns, title) in zip(axes, files):
        # One table for each file: what was counted of a matrix differs between older and newer files.
        paths = (path for pattern in patterns for path in sorted(MEASURED.glob(pattern)))
        cases = [case for path in paths for case in Table(path).cases]
        found = winners(cases)
        order = ["spgemm", "spmm", "spmv"]
        groups = sorted(found, key=lambda group: (order.index(group[0]), group[1], group[2]))
        for at, group in enumerate(groups):
            total, left = sum(found[group].values()), 0.0
            for candidate in COLORS:
                share = found[group][candidate] / total
                axis.barh(at, share, left=left, color=COLORS[candidate], height=0.8)
                left += share
                if share > 0:
                    shown.add(candidate)
        axis.set_yticks(range(len(groups)), [label(group) for group in groups])
        axis.set_xlim(0, 1)
        axis.xaxis.set_major_formatter(matplotlib.ticker.PercentFormatter(1.0))
        # Matrices of one seed have the same numbers in all files.
        matrices = len({(case.number % APART, case.matrix) for case in cases})
        axis.set_title(f"{matrices:,} {title} matrices", fontsize=10)
    handles = [plt.Rectangle((0, 0), 1, 1, color=COLORS[name]) for name in COLORS if name in shown]
    names = [name for name in COLORS if name in shown]
    figure.legend(handles, names, loc="outside lower center", ncols=6, frameon=False, fontsize=9, columnspacing=1.5)
    out.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(out, dpi=100)
    print(out)


if __name__ == "__main__":
    main()
