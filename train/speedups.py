#!/usr/bin/env python3
"""Draws how many times as fast as the best of two versions of cuSPARSE the library is, matrix by matrix.

python3 train/speedups.py         reads the tables of runs in turns in benches/results, writes h100-speedups.png there
                                  (needs matplotlib beside requirements.txt)

Each dot is a matrix: the geometric mean, over the rounds, of the rival's time over the library's, caches cleared. In the
table of SpMM matrices of the gallery are those whose names end in ~, and those of GENERATED.
"""

import math
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

RESULTS = Path(__file__).resolve().parent.parent / "benches" / "results"
TABLES = {
    "h100-spmv-paired.tsv": False,
    "h100-spmm-paired.tsv": None,
    "h100-spgemm-paired.tsv": False,
    "h100-spgemm-gallery-paired.tsv": True,
}
# Matrices of the gallery with names of their own.
GENERATED = {"poisson160", "hpcg128", "rmat16", "rmat20", "uniform"}
NAMES = {"f16": "fp16", "f32": "fp32", "f64": "fp64"}
TITLES = {"spmm": "SpMM", "spgemm": "SpGEMM"}
REAL, GALLERY, LOST = "#2166ac", "#9aa5b1", "#b2182b"


def speedups():
    """{(operation, precision, columns of B): [(speed-up, whether the matrix is of the gallery)]}"""
    found = {}
    for name, of_gallery in TABLES.items():
        for line in (RESULTS / name).read_text().splitlines():
            fields = line.split("\t")
            if line.startswith("#") or len(fields) < 14:
                continue
            note = dict(item.split("=", 1) for item in fields[13].split(";") if "=" in item)
            if fields[6] != "tarsia" or "paired" not in note:
                continue
            matrix = fields[3]
            gallery = of_gallery if of_gallery is not None else matrix.endswith("~") or matrix in GENERATED
            key = (fields[0], fields[1], int(fields[2]))
            found.setdefault(key, []).append((float(note["paired"]), gallery))
    return found


def mean(values):
    return math.exp(sum(map(math.log, values)) / len(values))


def main():
    found = speedups()
    columns = [("spmv", kind, 1) for kind in ("f64", "f32", "f16")]
    columns += [("spmm", kind, n) for kind in ("f64", "f32", "f16") for n in (8, 32, 128, 512)]
    columns += [("spgemm", "f64", 0)]
    figure, axes = plt.subplots(figsize=(10, 4.2), dpi=110)
    at, places, labels, groups = 0.0, [], [], []
    last = None
    for operation, kind, n in columns:
        group = "SpMV" if operation == "spmv" else f"{TITLES[operation]} {NAMES[kind]}"
        if last not in (None, group):
            at += 0.6
        if last != group:
            groups.append([at, at, group])
        last = group
        groups[-1][1] = at
        for gallery, shift in ((True, 0.17), (False, -0.17)):
            dots = sorted(speed for speed, of_gallery in found[operation, kind, n] if of_gallery == gallery)
            if not dots:
                continue
            spread = [at + shift + 0.12 * ((i * 0.618) % 1 - 0.5) for i in range(len(dots))]
            colour = GALLERY if gallery else REAL
            axes.scatter(spread, dots, s=9, c=[LOST if dot < 0.98 else colour for dot in dots], linewidths=0, zorder=3)
            if not gallery:
                axes.plot([at - 0.36, at + 0.02], [mean(dots)] * 2, color="black", linewidth=1.6, zorder=4)
                axes.annotate(f"{mean(dots):.2f}", (at, 0.36), ha="center", fontsize=8)
        places.append(at)
        labels.append(f"N={n}" if operation == "spmm" else "A·A" if operation == "spgemm" else NAMES[kind])
        at += 1
    axes.axhline(1, color="black", linewidth=0.8)
    axes.set_yscale("log", base=2)
    axes.set_ylim(0.33, 64)
    ticks = [0.5, 1, 2, 4, 8, 16, 32]
    axes.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.set_xticks(places, labels, fontsize=8)
    axes.grid(axis="y", color="#dddddd", linewidth=0.6, zorder=0)
    axes.set_axisbelow(True)
    for first, final, group in groups:
        axes.annotate(group, ((first + final) / 2, 45), ha="center", fontsize=9, weight="bold")
    axes.set_ylabel("times as fast as the best cuSPARSE")
    marks = [("a real matrix", REAL), ("a generated one", GALLERY), ("a loss: below 0.98", LOST)]
    handles = [axes.scatter([], [], s=16, c=colour, label=text) for text, colour in marks]
    handles.append(axes.plot([], [], color="black", linewidth=1.6, label="mean of the real ones (geometric), also below")[0])
    axes.legend(handles=handles, loc="lower center", bbox_to_anchor=(0.5, -0.24), ncol=4, fontsize=8, frameon=False)
    figure.tight_layout()
    figure.savefig(RESULTS / "h100-speedups.png", metadata={"Software": None})


if __name__ == "__main__":
    main()
