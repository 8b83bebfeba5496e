#!/usr/bin/env python3
"""Write the SciPy reference cases that the oracle tests read.

    python3 -m venv venv && venv/bin/pip install numpy==2.4.6 scipy==1.17.1
    venv/bin/python scripts/scipy_cases.py            # tests/data/scipy.json

Needs numpy >= 2.0 and scipy >= 1.13 (sparse arrays); the committed file was
written with the two versions above, and names them. A case depends on the seed,
its name and its line below alone, so adding one changes no other. Expected
values are SciPy's, and may differ in the last bits where SciPy was compiled
differently (contraction into FMA).

The operations, with op() one of N (as is), T (transpose), C (conjugate
transpose; the same as T for a real type):

    spmv    y = alpha op_a(A) x + beta y           A sparse
    spmm    C = alpha op_a(A) op_b(B) + beta C     A sparse, B and C dense
    spgemm  C = alpha op_a(A) op_b(B)              all sparse, C a new matrix

Values of the 32-bit types are rounded to 32 bits first; the expected values are
then computed, and stored, in 64 bits. The format of the file is described in
tests/data/README.md.
"""

import argparse
import json
import pathlib
import zlib
from dataclasses import dataclass

import numpy as np
import scipy
import scipy.sparse as sp

SEED = 20240611
PADDING = -7777.5  # exact in 32 bits; far from any value that a case computes
MAX_BYTES = 400_000
OUTPUT = pathlib.Path(__file__).resolve().parent.parent / "tests/data/scipy.json"


@dataclass(frozen=True)
class Sparse:
    """What a sparse input shall look like.

    `has` names its peculiarities: unsorted (columns in a row, or rows in a
    column), duplicates, empty_rows (the first, the last and every third),
    dense_row, dense_col, zeros (stored ones), nnz0 (nothing stored).
    """

    format: str
    rows: int
    cols: int
    base: int = 0
    has: str = ""
    density: float = 0.1
    block: tuple = (1, 1)
    block_order: str = "row"


@dataclass(frozen=True)
class Dense:
    """Storage of a dense matrix: order, and how far ld is above its least."""

    order: str
    extra: int = 0


@dataclass(frozen=True)
class Case:
    """One case. `alpha` and `beta` are numbers, or "g" for a random one."""

    op: str
    type: str
    a: Sparse
    what: str
    op_a: str = "N"
    op_b: str = ""
    alpha: object = "g"
    beta: object = "g"
    b: object = None  # Dense for spmm, Sparse for spgemm
    c: object = None  # Dense for spmm
    n: int = 0  # columns of C, for spmm
    cancel: bool = False  # spgemm: some products add up to exactly zero

    @property
    def name(self):
        ops = (self.op_a + self.op_b).lower()
        return f"{self.op}_{self.a.format}_{self.type}_{ops}_{self.what}"


def spmv(type_, op_a, what, a, alpha="g", beta="g"):
    return Case("spmv", type_, a, what, op_a, alpha=alpha, beta=beta)


def spmm(type_, ops, what, a, n, b, c, alpha="g", beta="g"):
    return Case("spmm", type_, a, what, ops[0], ops[1], alpha, beta, b, c, n)


def spgemm(type_, ops, what, a, b, alpha="g", cancel=False):
    return Case("spgemm", type_, a, what, ops[0], ops[1], alpha, 0, b, cancel=cancel)


def csr(rows, cols, **more):
    return Sparse("csr", rows, cols, **more)


def csc(rows, cols, **more):
    return Sparse("csc", rows, cols, **more)


def coo(rows, cols, **more):
    return Sparse("coo", rows, cols, **more)


def bsr(rows, cols, block, **more):
    return Sparse("bsr", rows, cols, block=block, **more)


ROW, COL = Dense("row"), Dense("col")
ROW_PAD, COL_PAD = Dense("row", 2), Dense("col", 3)

SPMV = [
    spmv("r64", "N", "wide", csr(30, 40)),
    spmv("r64", "T", "tall_base1", csr(40, 30, base=1)),
    spmv("r64", "N", "unsorted_beta0", csr(18, 25, has="unsorted", density=0.2), beta=0),
    spmv("r64", "N", "duplicates_ones", csr(20, 20, base=1, has="duplicates unsorted"), 1, 1),
    spmv("r64", "T", "empty_rows", csr(25, 14, has="empty_rows", density=0.2), beta=0),
    spmv("r64", "C", "stored_zeros", csr(12, 16, has="zeros", density=0.2), 1, 0),
    spmv("r64", "N", "nnz0", csr(7, 9, has="nnz0")),
    spmv("r64", "N", "one_by_one", csr(1, 1, base=1, density=1.0)),
    spmv("r64", "N", "alpha0", csr(8, 11, density=0.3), alpha=0),
    spmv("r64", "T", "alpha0_beta0", csr(8, 11, density=0.3), alpha=0, beta=0),
    spmv("r32", "N", "dense_row", csr(24, 32, has="dense_row empty_rows")),
    spmv("c64", "N", "wide_base1", csr(14, 20, base=1)),
    spmv("c64", "T", "tall_beta0", csr(20, 12, density=0.15), beta=0),
    spmv("c64", "C", "duplicates", csr(13, 17, has="duplicates unsorted", density=0.15)),
    spmv("c32", "C", "dense_row_base1", csr(15, 12, base=1, has="dense_row")),
    spmv("r64", "N", "dense_col", csc(30, 24, has="dense_col", density=0.08)),
    spmv("r64", "T", "duplicates_base1", csc(16, 22, base=1, has="duplicates unsorted"), 1, 0),
    spmv("r32", "N", "unsorted_ones", csc(20, 15, has="unsorted", density=0.2), 1, 1),
    spmv("c64", "C", "wide", csc(10, 18, has="empty_rows", density=0.2)),
    spmv("r64", "N", "duplicates_base1", coo(22, 28, base=1, has="duplicates")),
    spmv("r32", "T", "tall", coo(30, 20)),
    spmv("c64", "C", "duplicates_beta0", coo(12, 16, has="duplicates"), beta=0),
    spmv("c32", "N", "nnz0", coo(5, 6, has="nnz0")),
    spmv("r64", "N", "2x3_row", bsr(16, 21, (2, 3), has="zeros", density=0.2)),
    spmv("r64", "T", "3x2_col_base1", bsr(21, 16, (3, 2), base=1, block_order="col", has="unsorted", density=0.2)),
    spmv("c64", "C", "2x2_col", bsr(12, 10, (2, 2), block_order="col", density=0.2)),
    spmv("r32", "N", "4x4_col_base1", bsr(20, 24, (4, 4), base=1, block_order="col", has="empty_rows", density=0.3), 1, 1),
    spmv("c32", "T", "2x3_duplicates", bsr(10, 12, (2, 3), has="duplicates", density=0.4), beta=0),
    spmv("r64", "N", "nnz0_base1", bsr(6, 8, (3, 2), base=1, has="nnz0")),
]

SPMM = [
    spmm("r64", "NN", "wide", csr(20, 30), 4, ROW, ROW),
    spmm("r64", "TN", "col_padded_base1", csr(18, 12, base=1), 5, COL_PAD, COL_PAD),
    spmm("r64", "NT", "mixed_orders", csr(14, 11, has="unsorted", density=0.2), 3, COL, ROW_PAD, beta=0),
    spmm("r64", "TT", "duplicates_ones", csr(10, 16, has="duplicates unsorted"), 4, ROW_PAD, COL, 1, 1),
    spmm("r64", "NN", "alpha0_padded", csr(6, 7, density=0.3), 3, ROW_PAD, ROW_PAD, alpha=0),
    spmm("r64", "NN", "nnz0_beta0_padded", csr(5, 6, has="nnz0"), 4, COL, COL_PAD, beta=0),
    spmm("r64", "NN", "one_by_one", csr(1, 1, density=1.0), 1, COL, COL_PAD),
    spmm("r32", "NN", "dense_row", csr(16, 20, has="dense_row empty_rows"), 6, ROW, COL_PAD),
    spmm("c64", "CN", "wide_padded", csr(8, 11, density=0.2), 3, COL_PAD, ROW_PAD),
    spmm("c64", "NC", "base1", csr(9, 7, base=1, density=0.25), 3, ROW, ROW, beta=0),
    spmm("c32", "TC", "duplicates", csr(8, 7, has="duplicates unsorted", density=0.2), 3, COL, COL),
    spmm("r64", "NN", "dense_col_base1", csc(15, 10, base=1, has="dense_col"), 4, ROW_PAD, COL),
    spmm("c64", "CC", "unsorted", csc(7, 9, has="unsorted", density=0.25), 2, COL, ROW_PAD, 1, 0),
    spmm("r64", "TN", "duplicates_base1", coo(14, 13, base=1, has="duplicates"), 3, COL, ROW),
    spmm("c32", "CT", "tall", coo(9, 6, density=0.25), 3, ROW_PAD, COL_PAD, beta=0),
    spmm("r64", "NN", "2x3_col_padded", bsr(12, 15, (2, 3), block_order="col", density=0.2), 4, COL_PAD, ROW_PAD),
    spmm("r32", "TN", "3x2_row_base1", bsr(12, 10, (3, 2), base=1, has="unsorted", density=0.3), 3, ROW, COL),
    spmm("c64", "CT", "2x2_row", bsr(8, 6, (2, 2), has="empty_rows", density=0.4), 2, COL, COL_PAD),
]

SPGEMM = [
    spgemm("r64", "NN", "wide", csr(20, 30, density=0.08), csr(30, 25, density=0.06), 1),
    spgemm("r64", "TN", "base1", csr(16, 14, base=1, density=0.15), csr(16, 12, base=1, density=0.15)),
    spgemm("r64", "NT", "mixed_bases", csr(12, 15, base=1), csr(18, 15)),
    spgemm("r64", "TT", "unsorted", csr(13, 11, has="unsorted", density=0.15), csr(14, 13, has="unsorted", density=0.12)),
    spgemm("r64", "NN", "duplicates", csr(12, 12, has="duplicates unsorted", density=0.15), csr(12, 16, has="duplicates unsorted", density=0.15)),
    spgemm("r64", "NN", "cancel", csr(10, 12, density=0.15), csr(12, 11, density=0.2), 1, cancel=True),
    spgemm("r64", "NN", "alpha0_stored_zeros", csr(9, 8, has="zeros", density=0.15), csr(8, 10, has="zeros", density=0.15), 0),
    spgemm("r64", "NN", "stored_zeros", csr(9, 8, has="zeros", density=0.15), csr(8, 10, has="zeros", density=0.15)),
    spgemm("r64", "NN", "nnz0", csr(6, 5, has="nnz0"), csr(5, 7, density=0.3)),
    spgemm("r64", "NN", "one_by_one", csr(1, 1, density=1.0), csr(1, 1, base=1, density=1.0)),
    spgemm("r32", "NN", "dense_row", csr(14, 12, has="dense_row empty_rows", density=0.08), csr(12, 20, has="empty_rows")),
    spgemm("c64", "CN", "wide", csr(10, 12, density=0.15), csr(10, 9, density=0.2)),
    spgemm("c64", "NC", "duplicates_base1", csr(9, 10, base=1, has="duplicates unsorted", density=0.2), csr(11, 10, density=0.15)),
    spgemm("c32", "CT", "empty_rows", csr(10, 8, has="empty_rows", density=0.3), csr(9, 10, density=0.2)),
    spgemm("r64", "NN", "times_csc", csc(11, 13, base=1), csc(13, 9, has="unsorted", density=0.15)),
    spgemm("r64", "TN", "duplicates", coo(12, 10, has="duplicates"), csr(12, 9, density=0.2)),
    spgemm("c64", "NN", "2x2_col", bsr(8, 8, (2, 2), block_order="col", density=0.25), csr(8, 7, density=0.15)),
]

CASES = SPMV + SPMM + SPGEMM


class Draw:
    """Random values of one type. RandomState: its streams never change."""

    def __init__(self, seed, name, type_):
        self.rs = np.random.RandomState([seed, zlib.crc32(name.encode())])
        self.complex = type_[0] == "c"
        self.single = type_[1:] == "32"
        self.dtype = np.complex128 if self.complex else np.float64

    def real(self, size):
        """Full mantissas, magnitudes from 1/4 to 4, both signs."""
        exponent = self.rs.randint(-2, 2, size)
        sign = 1.0 - 2.0 * self.rs.randint(0, 2, size)
        found = sign * np.ldexp(1.0 + self.rs.random_sample(size), exponent)
        return found.astype(np.float32).astype(np.float64) if self.single else found

    def values(self, size):
        if not self.complex:
            return self.real(size)
        re = self.real(size)
        return re + 1j * self.real(size)

    def scalar(self, wanted):
        """A given number, or for "g" a random one."""
        return self.values(1)[0] if wanted == "g" else self.dtype(wanted)


def coordinates(draw, rows, cols, density, has):
    """Positions of the stored entries (or blocks), in random order."""
    mask = draw.rs.random_sample((rows, cols)) < density
    if "empty_rows" in has:
        mask[::3] = False
        mask[-1] = False
    if "dense_row" in has:
        mask[rows // 2] = True
    if "dense_col" in has:
        mask[:, cols // 2] = True
    if "nnz0" in has:
        mask[:] = False
    else:
        assert mask.any(), "a matrix that should hold something holds nothing"
    row, col = np.nonzero(mask)
    if "duplicates" in has:
        again = draw.rs.randint(0, row.size, max(2, row.size // 4))
        row, col = np.append(row, row[again]), np.append(col, col[again])
    order = draw.rs.permutation(row.size)
    return row[order], col[order]


def compress(major, minor, count, unsorted):
    """Order by major index (and, unless unsorted, by minor), and offsets."""
    order = np.argsort(major, kind="stable") if unsorted else np.lexsort((minor, major))
    offsets = np.append(0, np.cumsum(np.bincount(major, minlength=count)))
    return order, offsets


def build(draw, spec):
    """The SciPy array of a Sparse: stored just as its arrays will be written."""
    has, shape = spec.has.split(), (spec.rows, spec.cols)
    height, width = spec.block
    assert spec.rows % height == 0 and spec.cols % width == 0
    row, col = coordinates(draw, spec.rows // height, spec.cols // width, spec.density, has)
    values = draw.values(row.size * height * width)
    if "zeros" in has:
        values[::4] = 0
    if spec.format == "coo":
        return sp.coo_array((values, (row, col)), shape=shape)
    major, minor = (col, row) if spec.format == "csc" else (row, col)
    count = shape[1] if spec.format == "csc" else shape[0] // height
    order, offsets = compress(major, minor, count, "unsorted" in has)
    if spec.format == "bsr":
        values = values.reshape(-1, height, width)
    make = {"csr": sp.csr_array, "csc": sp.csc_array, "bsr": sp.bsr_array}[spec.format]
    found = make((values, minor[order], offsets), shape=shape)
    assert found.has_sorted_indices == ("unsorted" not in has), "sorted by chance: raise the density"
    return found


def build_cancelling(draw, a_spec, b_spec):
    """A and B where sums of non-zero products are exactly zero.

    Columns 2k and 2k+1 of A are equal; rows 2k and 2k+1 of B are opposite for
    even k, and differ freely for odd k.
    """
    half = a_spec.cols // 2
    row, col = coordinates(draw, a_spec.rows, half, a_spec.density, [])
    value = draw.values(row.size)
    a = sp.coo_array(
        (np.tile(value, 2), (np.tile(row, 2), np.append(2 * col, 2 * col + 1))),
        shape=(a_spec.rows, a_spec.cols),
    ).tocsr()
    row, col = coordinates(draw, half, b_spec.cols, b_spec.density, [])
    value = draw.values(row.size)
    other = np.where(row % 2 == 0, -value, draw.values(row.size))
    b = sp.coo_array(
        (np.append(value, other), (np.append(2 * row, 2 * row + 1), np.tile(col, 2))),
        shape=(b_spec.rows, b_spec.cols),
    ).tocsr()
    return a, b


def apply(op, matrix):
    """op(matrix), for a sparse or a dense one."""
    return {"N": matrix, "T": matrix.T, "C": matrix.conj().T}[op]


def numbers(array):
    """A flat list of JSON numbers: complex ones as re, im, re, im."""
    flat = np.ascontiguousarray(array).ravel()
    return flat.view(np.float64).tolist()


def sparse_json(matrix, spec):
    """The arrays of a sparse input, in its index base."""
    out = {"format": spec.format, "base": spec.base, "rows": spec.rows, "cols": spec.cols}
    values = matrix.data
    if spec.format == "coo":
        out["row"] = (matrix.row + spec.base).tolist()
        out["col"] = (matrix.col + spec.base).tolist()
    else:
        if spec.format == "bsr":
            out["block_rows"], out["block_cols"] = spec.block
            out["block_order"] = spec.block_order
            if spec.block_order == "col":
                values = values.transpose(0, 2, 1)
        out["offsets"] = (matrix.indptr + spec.base).tolist()
        out["indices"] = (matrix.indices + spec.base).tolist()
    out["values"] = numbers(values)
    return out


def stored(matrix, dense):
    """A dense matrix as it lies in memory, padding included; and its ld."""
    lines = matrix if dense.order == "row" else matrix.T
    ld = lines.shape[1] + dense.extra
    memory = np.full((lines.shape[0], ld), PADDING, dtype=matrix.dtype)
    if np.iscomplexobj(memory):
        memory.imag = PADDING
    memory[:, : lines.shape[1]] = lines
    return memory, ld


def dense_json(matrix, dense):
    memory, ld = stored(matrix, dense)
    rows, cols = matrix.shape
    return {"rows": rows, "cols": cols, "order": dense.order, "ld": ld, "values": numbers(memory)}


def pattern(matrix):
    """The same structure with ones for values: nothing in it can cancel."""
    found = matrix.copy()
    found.data = np.ones(matrix.data.shape)
    return found.tocsr()


def multiply_sparse(a, b):
    """a @ b as sorted CSR, with every structural entry.

    SciPy leaves out sums that are exactly zero, so the structure comes from
    the product of the patterns.
    """
    product = (a.tocsr() @ b.tocsr()).tocsr()
    product.sum_duplicates()
    product.sort_indices()
    structure = (pattern(a) @ pattern(b)).tocsr()
    structure.sum_duplicates()
    structure.sort_indices()
    assert product.nnz <= structure.nnz
    row = np.repeat(np.arange(structure.shape[0]), np.diff(structure.indptr))
    values = product.toarray()[row, structure.indices]
    return sp.csr_array((values, structure.indices, structure.indptr), shape=structure.shape)


def run(case, seed):
    """A case as it is written."""
    draw = Draw(seed, case.name, case.type)
    if case.cancel:
        a, b = build_cancelling(draw, case.a, case.b)
    else:
        a = build(draw, case.a)
        b = build(draw, case.b) if case.op == "spgemm" else None
    alpha, beta = draw.scalar(case.alpha), draw.scalar(case.beta)

    out = {"name": case.name, "op": case.op, "type": case.type, "op_a": case.op_a}
    if case.op_b:
        out["op_b"] = case.op_b
    out["alpha"], out["beta"] = numbers(alpha), numbers(beta)
    out |= sparse_json(a, case.a)

    op_a = apply(case.op_a, a)
    m, k = op_a.shape
    if case.op == "spmv":
        x, y = draw.values(k), draw.values(m)
        out["x"], out["y"] = numbers(x), numbers(y)
        out["expected"] = numbers(alpha * (op_a @ x) + beta * y)
    elif case.op == "spmm":
        b = draw.values(k * case.n).reshape((k, case.n) if case.op_b == "N" else (case.n, k))
        c = draw.values(m * case.n).reshape(m, case.n)
        out["b"], out["c"] = dense_json(b, case.b), dense_json(c, case.c)
        result = alpha * (op_a @ apply(case.op_b, b)) + beta * c
        out["expected"] = numbers(stored(result, case.c)[0])
    else:
        out["b"] = sparse_json(b, case.b)
        c = multiply_sparse(op_a, apply(case.op_b, b))
        out["expected"] = {
            "rows": c.shape[0],
            "cols": c.shape[1],
            "offsets": c.indptr.tolist(),
            "indices": c.indices.tolist(),
            "values": numbers(alpha * c.data),
        }
    return out


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-o", "--output", type=pathlib.Path, default=OUTPUT, help="default: %(default)s")
    parser.add_argument("--seed", type=int, default=SEED, help="default: %(default)s")
    args = parser.parse_args()

    names = [case.name for case in CASES]
    assert len(set(names)) == len(names), "two cases have the same name"
    head = {
        "generator": "scripts/scipy_cases.py",
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "seed": args.seed,
        "padding": PADDING,
    }
    # One case a line: json.dumps writes a float as repr does, so it reads back exactly.
    lines = [json.dumps(run(case, args.seed), separators=(",", ":"), allow_nan=False) for case in CASES]
    text = json.dumps(head)[:-1] + ', "cases": [\n' + ",\n".join(lines) + "\n]}\n"
    assert len(text) < MAX_BYTES, f"{len(text)} bytes: too large to commit"
    args.output.parent.mkdir(parents=True, exist_ok=True)
    args.output.write_text(text)
    print(f"{args.output}: {len(CASES)} cases, {len(text)} bytes")


if __name__ == "__main__":
    main()
