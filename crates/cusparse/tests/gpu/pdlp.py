#!/usr/bin/env python3
"""Solves linear programs by cuPDLPx, whose iterations are products of a sparse matrix and of its transpose with vectors.

usage: pdlp.py [--iterations N] [--tolerances T...]

Each is solved to each relative tolerance of optimality and feasibility, after a hundred iterations that do not count. Other
bits lead to other numbers of iterations, so that the time of an iteration is to be compared, too.
"""

import argparse
import time

import numpy as np
import scipy.sparse as sp
from cupdlpx import Model


def random_program(rows, cols, per_col, generator):
    """min c x with A x = b and x >= 0, made from an optimal pair of solutions."""
    row = generator.integers(0, rows, cols * per_col)
    col = np.repeat(np.arange(cols), per_col)
    a = sp.csr_matrix((generator.standard_normal(row.size), (row, col)), (rows, cols))
    is_positive = generator.random(cols) < 0.4
    x = np.where(is_positive, generator.random(cols), 0)
    y = generator.standard_normal(rows)
    b = a @ x
    return a.T @ y + np.where(is_positive, 0, generator.random(cols)), a, b, b, np.zeros(cols)


def transport(sources, sinks, generator):
    """What goes from sources to sinks at the least cost."""
    pair = np.arange(sources * sinks)
    a = sp.vstack([sp.csr_matrix((np.ones(pair.size), (pair // sinks, pair)), (sources, pair.size)),
                   sp.csr_matrix((np.ones(pair.size), (pair % sinks, pair)), (sinks, pair.size))]).tocsr()
    supply, demand = generator.random(sources) + 0.5, generator.random(sinks) + 0.5
    demand *= supply.sum() / demand.sum()
    b = np.concatenate([supply, demand])
    return generator.random(pair.size), a, b, b, np.zeros(pair.size)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--iterations", type=int, default=100_000)
    parser.add_argument("--tolerances", type=float, nargs="+", default=[1e-4, 1e-8])
    options = parser.parse_args()
    generator = np.random.default_rng(11)
    for name, program in (("random, 100000 x 200000, 8 a column", random_program(100_000, 200_000, 8, generator)),
                          ("random, 500000 x 1000000, 8 a column", random_program(500_000, 1_000_000, 8, generator)),
                          ("transport, 1000 x 1000", transport(1000, 1000, generator))):
        for tolerance in (None, *options.tolerances):
            model = Model(*program)
            model.setParam("iteration_limit", options.iterations if tolerance else 100)
            model.setParam("presolve", False)
            model.setParam("verbose", False)
            if tolerance:
                model.setParam("OptimalityTol", tolerance)
                model.setParam("FeasibilityTol", tolerance)
            begin = time.perf_counter()
            model.optimize()
            whole = time.perf_counter() - begin
            if tolerance:
                print(f"{name:40} to {tolerance:g}: {model.Status}, {model.IterCount} iterations, objective "
                      f"{model.ObjVal:.9g}, {model.Runtime:.3f} s in the solver, "
                      f"{1e6 * model.Runtime / max(model.IterCount, 1):.1f} us an iteration, {whole:.3f} s in all", flush=True)


if __name__ == "__main__":
    main()
