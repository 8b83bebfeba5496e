#!/usr/bin/env python3
"""Write the hierarchies of algebraic multigrid whose Galerkin products `tarsia bench --hierarchy` times.

    cargo build --release                             # target/release/tarsia, which packs the files
    python3 -m venv venv && venv/bin/pip install numpy==2.4.6 scipy==1.17.1 pyamg==5.4.1
    venv/bin/python scripts/galerkin_hierarchies.py hierarchies
    target/release/tarsia bench --hierarchy hierarchies/sa-poisson128 --op spgemm --types f64

A folder is made for each problem, sa-poisson128 for instance, with the matrices of each level: A0, P0, A1,
P1, … and A of the coarsest level. On each level the products are A·P and R·(A·P), R = Pᵀ. The problems:

    sa-poisson     7-point Laplacian on N³ points (--poisson), smoothed aggregation
    rs-poisson     the same matrix, classical coarsening and interpolation of Ruge and Stüben
    sa-elasticity  linear elasticity, trilinear hexahedra on N³ nodes (--elasticity) with 3 unknowns each, one
                   side of the cube held fast, smoothed aggregation with the 6 rigid body modes

PyAMG's defaults are used for all else. Files have patterns only (`tarsia pack --pattern`), since the
benchmark makes values of its own; zeros inside the blocks of elasticity are entries, as in libraries that
assemble and coarsen by blocks. --values keeps the values, which take about ten times the space.

The table that is printed has the rows of each level, the entries of A, P, A·P and R·A·P, the multiplications
of both products, and the bytes of the files.
"""

import argparse
import itertools
import pathlib
import subprocess
import sys
import tempfile
import time

import numpy as np
import pyamg
import scipy.io
import scipy.sparse as sp

ROOT = pathlib.Path(__file__).resolve().parent.parent
PROBLEMS = ("sa-poisson", "rs-poisson", "sa-elasticity")


def poisson(points):
    """The 7-point Laplacian on a cube of points³ points, Dirichlet."""
    return sp.csr_matrix(pyamg.gallery.poisson((points,) * 3, format="csr"))


def hexahedron(young=1.0, poisson_ratio=0.3):
    """The stiffness matrix of the unit cube with trilinear functions, 2 × 2 × 2 Gauss points: 24 × 24.

    Corner a is at (a & 1, a >> 1 & 1, a >> 2 & 1); its displacement in direction d is unknown 3a + d.
    """
    corners = np.array([[a & 1, a >> 1 & 1, a >> 2 & 1] for a in range(8)])
    mu = young / (2 * (1 + poisson_ratio))
    lam = young * poisson_ratio / ((1 + poisson_ratio) * (1 - 2 * poisson_ratio))
    law = np.diag([2 * mu] * 3 + [mu] * 3)
    law[:3, :3] += lam
    stiffness = np.zeros((24, 24))
    for point in itertools.product((0.5 - 0.5 / np.sqrt(3), 0.5 + 0.5 / np.sqrt(3)), repeat=3):
        # Each function is a product of one factor a direction, x or 1 - x.
        factors = np.where(corners == 1, point, 1 - np.array(point))
        gradients = np.empty((8, 3))
        for d in range(3):
            gradients[:, d] = (2 * corners[:, d] - 1) * np.delete(factors, d, axis=1).prod(axis=1)
        strain = np.zeros((6, 24))
        for d in range(3):
            strain[d, d::3] = gradients[:, d]
        for row, (d, e) in enumerate(((0, 1), (1, 2), (0, 2)), start=3):
            strain[row, d::3] = gradients[:, e]
            strain[row, e::3] = gradients[:, d]
        stiffness += strain.T @ law @ strain / 8
    return stiffness


def elasticity(nodes):
    """The matrix of a cube of nodes³ nodes whose side x = 0 does not move, and its rigid body modes.

    Blocks of 3 × 3, whose zeros are stored.
    """
    number = np.arange(nodes**3).reshape(nodes, nodes, nodes)  # x is the slowest direction
    cells = np.stack(
        [
            number[x : nodes - 1 + x, y : nodes - 1 + y, z : nodes - 1 + z].ravel()
            for z, y, x in itertools.product((0, 1), repeat=3)
        ],
        axis=1,
    )
    rows = np.repeat(cells, 8, axis=1).ravel()
    cols = np.tile(cells, (1, 8)).ravel()
    element = hexahedron()
    blocks = {}
    for d, e in itertools.product(range(3), repeat=2):
        values = np.tile(element[d::3, e::3].ravel(), len(cells))
        blocks[d, e] = sp.csr_matrix((values, (rows, cols)), shape=(nodes**3,) * 2)
        blocks[d, e].sort_indices()
    pattern = blocks[0, 0]
    data = np.empty((pattern.nnz, 3, 3))
    for (d, e), block in blocks.items():
        assert np.array_equal(block.indices, pattern.indices)
        data[:, d, e] = block.data
    whole = sp.bsr_matrix((data, pattern.indices, pattern.indptr), shape=(3 * nodes**3,) * 2)
    free = np.arange(nodes**2, nodes**3)
    unknowns = (3 * free[:, None] + np.arange(3)).ravel()
    # Zeros of blocks are lost between CSR and BSR unless they are kept away: select by blocks.
    selection = sp.csr_matrix((np.ones(len(free)), (np.arange(len(free)), free)), shape=(len(free), nodes**3))
    kept = sp.csr_matrix((np.arange(1, pattern.nnz + 1), pattern.indices, pattern.indptr), shape=pattern.shape)
    kept = sp.csr_matrix(selection @ kept @ selection.T)
    kept.sort_indices()
    matrix = sp.bsr_matrix(
        (data[kept.data.astype(np.int64) - 1], kept.indices, kept.indptr), shape=(len(unknowns),) * 2
    )
    position = np.stack(np.unravel_index(free, (nodes,) * 3), axis=1) / (nodes - 1)
    position -= position.mean(axis=0)
    modes = np.zeros((len(free), 3, 6))
    modes[:, range(3), range(3)] = 1
    for mode, (d, e) in enumerate(((0, 1), (1, 2), (2, 0)), start=3):
        modes[:, d, mode] = -position[:, e]
        modes[:, e, mode] = position[:, d]
    modes = modes.reshape(-1, 6)
    # Rigid motions make no forces, but where the side is that is held fast.
    forces = np.abs((whole @ np.vstack([np.zeros((3 * nodes**2, 6)), modes])).reshape(-1, 18)).max(axis=1)
    inner = forces[2 * nodes**2 :].max()
    if inner > 1e-12:
        raise SystemExit(f"elasticity: rigid body modes make forces of {inner}")
    return matrix, modes


def levels(problem, arguments):
    """A of each level, and P of all but the last, as CSR."""
    coarse = arguments.max_coarse
    if problem == "sa-elasticity":
        matrix, modes = elasticity(arguments.elasticity)
        solver = pyamg.smoothed_aggregation_solver(matrix, B=modes, max_coarse=coarse)
    elif problem == "sa-poisson":
        solver = pyamg.smoothed_aggregation_solver(poisson(arguments.poisson), max_coarse=coarse)
    else:
        solver = pyamg.ruge_stuben_solver(poisson(arguments.poisson), max_coarse=coarse)
    return [(csr(level.A), csr(level.P) if hasattr(level, "P") else None) for level in solver.levels]


def csr(matrix):
    """As sorted CSR, with the zeros that are stored."""
    matrix = sp.csr_matrix(matrix)
    matrix.sum_duplicates()
    return matrix


def pattern(matrix):
    """The pattern with ones, in products of which nothing cancels."""
    return sp.csr_matrix((np.ones(matrix.nnz, np.float32), matrix.indices, matrix.indptr), shape=matrix.shape)


def multiplications(a, b):
    """Multiplications of A·B."""
    return int(np.diff(b.indptr)[a.indices].sum(dtype=np.int64))


def write(matrix, path, arguments):
    """Packs a matrix, and returns the bytes of the file."""
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        market = pathlib.Path(folder) / "matrix.mtx"
        field = "real" if arguments.values else "pattern"
        scipy.io.mmwrite(market, matrix, field=field, symmetry="general")
        options = [] if arguments.values else ["--pattern"]
        subprocess.run([arguments.tarsia, "pack", market, path, *options], check=True)
    return path.stat().st_size


def main():
    """Writes what the arguments ask for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("output", type=pathlib.Path, help="folder in which a folder is made for each problem")
    parser.add_argument("--problems", default=",".join(PROBLEMS), help="some of them, separated by commas")
    parser.add_argument("--poisson", type=int, default=128, metavar="N", help="points of an edge (%(default)s)")
    parser.add_argument("--elasticity", type=int, default=30, metavar="N", help="nodes of an edge (%(default)s)")
    parser.add_argument(
        "--max-coarse", type=int, default=100, metavar="ROWS", help="coarsen down to so many rows (%(default)s)"
    )
    parser.add_argument("--values", action="store_true", help="write the values, too")
    parser.add_argument(
        "--tarsia", default=ROOT / "target/release/tarsia", help="the program that packs (%(default)s)"
    )
    arguments = parser.parse_args()
    problems = arguments.problems.split(",")
    if unknown := [problem for problem in problems if problem not in PROBLEMS]:
        parser.error(f"--problems: {', '.join(unknown)} is none of {', '.join(PROBLEMS)}")
    if arguments.poisson < 2 or arguments.elasticity < 3:
        parser.error("--poisson must be at least 2, --elasticity at least 3")
    print("problem\tlevel\trows\tA\tP_columns\tP\tAP\tRAP\tmults_AP\tmults_RAP\tbytes_A\tbytes_P", flush=True)
    for problem in problems:
        size = arguments.elasticity if problem.endswith("elasticity") else arguments.poisson
        name = f"{problem}{size}"
        folder = arguments.output / name
        folder.mkdir(parents=True, exist_ok=True)
        for old in folder.glob("[AP]*.tsm"):
            old.unlink()
        start = time.time()
        hierarchy = levels(problem, arguments)
        print(f"{name}: set up in {time.time() - start:.1f} s", file=sys.stderr)
        total = 0
        for level, (a, p) in enumerate(hierarchy):
            a_bytes = write(a, folder / f"A{level}.tsm", arguments)
            total += a_bytes
            if p is None:
                print(name, level, a.shape[0], a.nnz, *["-"] * 6, a_bytes, "-", sep="\t", flush=True)
                continue
            p_bytes = write(p, folder / f"P{level}.tsm", arguments)
            total += p_bytes
            a, p = pattern(a), pattern(p)
            r = p.T.tocsr()
            ap = a @ p
            rap = r @ ap
            counts = [a.nnz, p.shape[1], p.nnz, ap.nnz, rap.nnz, multiplications(a, p), multiplications(r, ap)]
            print(name, level, a.shape[0], *counts, a_bytes, p_bytes, sep="\t", flush=True)
        print(f"{name}: {total} bytes", file=sys.stderr)


if __name__ == "__main__":
    main()
