#!/usr/bin/env python3
"""Times products of CuPy and PyTorch as their users call them, from Python: run it without the drop-in and with it.

usage: products.py [--rows N] [--against FILE] [--write FILE]

Matrices: a 7-point stencil, and rows of very different lengths (as in graphs). For each product the median of its times
from call to end on the device, in microseconds, and the greatest deviation of 1,000 rows from a product in fp64 by
SciPy, relative to the sums of magnitudes (of sparse products, multiplied by a vector). --write keeps the times, --against prints them beside those of another run.
"""

import argparse
import json
import sys
import time

import numpy as np
import scipy.sparse as sp


def stencil(n):
    """The 7-point stencil on n^3 points."""
    line = sp.diags([np.full(n - 1, -1.1), np.full(n, 2.3), np.full(n - 1, -0.9)], [-1, 0, 1])
    one = sp.identity(n)
    return (sp.kron(sp.kron(line, one), one) + sp.kron(sp.kron(one, line), one) + sp.kron(sp.kron(one, one), line)).tocsr()


def skewed(rows, mean, generator):
    """Rows whose lengths have a heavy tail."""
    lengths = np.minimum((generator.pareto(1.3, rows) * mean / 3).astype(np.int64) + 1, rows // 2)
    row = np.repeat(np.arange(rows), lengths)
    col = generator.integers(0, rows, row.size)
    matrix = sp.coo_matrix((generator.standard_normal(row.size), (row, col)), (rows, rows)).tocsr()
    matrix.sum_duplicates()
    return matrix


def median_time(call, synchronize):
    """Microseconds from the call to its end on the device."""
    for _ in range(5):
        call()
    synchronize()
    times, until = [], time.perf_counter() + 1
    while len(times) < 10 or (time.perf_counter() < until and len(times) < 200):
        begin = time.perf_counter()
        call()
        synchronize()
        times.append(time.perf_counter() - begin)
    return 1e6 * float(np.median(times))


def deviation(found, matrix, dense):
    """Greatest |error| / (|A| |X|) in 1,000 rows, the longest among them."""
    rows = np.random.default_rng(3).integers(0, matrix.shape[0], 1000)
    rows[0] = np.argmax(np.diff(matrix.indptr))
    part, dense = matrix[rows].astype(np.float64), dense.astype(np.float64)
    expected, size = part @ dense, abs(part) @ abs(dense)
    return float(np.max(np.abs(found[rows] - expected) / np.where(size == 0, 1, size)))


def with_cupy(matrices, measure):
    import cupy
    import cupyx.scipy.sparse as csp

    synchronize = cupy.cuda.Device().synchronize
    for name, matrix in matrices:
        sparse = csp.csr_matrix(matrix.astype(np.float64))
        v = np.random.default_rng(1).standard_normal(matrix.shape[1])
        # The sparse product is compared by its product with a vector.
        measure(f"cupy A @ A, {name}, float64", lambda: sparse @ sparse, synchronize, lambda c: c.get() @ v,
                (matrix, matrix @ v))
        del sparse
        for dtype in (np.float32, np.float64):
            a = csp.csr_matrix(matrix.astype(dtype))
            host = np.random.default_rng(1).standard_normal((matrix.shape[1], 128)).astype(dtype)
            x = cupy.asarray(host[:, 0].copy())
            measure(f"cupy A @ x, {name}, {dtype.__name__}", lambda: a @ x, synchronize, lambda y: y.get(),
                    (matrix.astype(dtype), host[:, 0]))
            for n in (32, 128):
                for order in "FC":
                    dense = cupy.asarray(host[:, :n], order=order)
                    measure(f"cupy A @ X, N = {n}, {order} order, {name}, {dtype.__name__}", lambda: a @ dense,
                            synchronize, lambda y: y.get(),
                            (matrix.astype(dtype), host[:, :n]))


def with_torch(matrices, measure):
    import torch

    synchronize = torch.cuda.synchronize
    for name, matrix in matrices:
        sparse = torch.sparse_csr_tensor(torch.from_numpy(matrix.indptr.astype(np.int64)),
                                         torch.from_numpy(matrix.indices.astype(np.int64)),
                                         torch.from_numpy(matrix.data), size=matrix.shape).cuda()
        v = np.random.default_rng(1).standard_normal(matrix.shape[1])
        measure(f"torch CSR @ CSR, {name}, float64", lambda: sparse @ sparse, synchronize,
                lambda c: (c @ torch.from_numpy(v).cuda()[:, None]).cpu().numpy()[:, 0], (matrix, matrix @ v))
        del sparse
        single = matrix.astype(np.float32)
        csr = torch.sparse_csr_tensor(torch.from_numpy(single.indptr.astype(np.int64)),
                                      torch.from_numpy(single.indices.astype(np.int64)),
                                      torch.from_numpy(single.data), size=single.shape).cuda()
        coo = csr.to_sparse_coo().coalesce()
        host = np.random.default_rng(1).standard_normal((matrix.shape[1], 128)).astype(np.float32)
        x = torch.from_numpy(host[:, 0].copy()).cuda()
        measure(f"torch CSR @ x, {name}", lambda: csr @ x, synchronize, lambda y: y.cpu().numpy(),
                (single, host[:, 0]))
        for n in (32, 128):
            dense = torch.from_numpy(host[:, :n].copy()).cuda()
            for kind, a in (("CSR", csr), ("COO", coo)):
                measure(f"torch {kind} @ X, N = {n}, {name}", lambda: a @ dense, synchronize,
                        lambda y: y.cpu().numpy(), (single, host[:, :n]))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--write")
    parser.add_argument("--against")
    options = parser.parse_args()
    side = round(options.rows ** (1 / 3))
    matrices = [(f"7-point {side}^3", stencil(side)),
                (f"skewed {options.rows}", skewed(options.rows, 10, np.random.default_rng(7)))]
    before = {}
    if options.against:
        with open(options.against) as file:
            before = json.load(file)
    times, is_right = {}, True

    def measure(name, call, synchronize, to_host, reference):
        nonlocal is_right
        found = deviation(to_host(call()).astype(np.float64), *reference)
        is_right &= found < 1e-5
        times[name] = median_time(call, synchronize)
        beside = f"  before {before[name]:9.1f}  {before[name] / times[name]:5.2f} times" if name in before else ""
        print(f"{name:60} {times[name]:9.1f} us  error {found:.1e}{beside}", flush=True)

    for run in (with_cupy, with_torch):
        try:
            run(matrices, measure)
        except ImportError as error:
            print(f"left out: {error}")
    if options.write:
        with open(options.write, "w") as file:
            json.dump(times, file, indent=1)
    if not is_right:
        sys.exit("a product is wrong")


if __name__ == "__main__":
    main()
