#!/usr/bin/env python3
"""Python's multiprocessing with the start method "fork", after the library has made its threads.

usage: multiprocessing_fork.py LIBRARY

Needs only the standard library. Each worker uses the plan of its parent and makes one of its own; both
give the parent's bits. A worker that hangs is a failure.
"""

import ctypes
import multiprocessing
import random
import sys

WORKERS = 4
TASKS = 24
ROWS = 30000
PER_ROW = 7
SECONDS = 120

# Numbers of tarsia.h.
HOST, INDEX_32I, R_64F, COMPUTE_64F = 1, 2, 1, 1


class Library:
    """The few functions that this needs; a status other than 0 is an exception."""

    def __init__(self, path):
        self.functions = ctypes.CDLL(path)

    def __call__(self, name, *arguments):
        status = getattr(self.functions, name)(*arguments)
        if status != 0:
            text = ctypes.create_string_buffer(1024)
            self.functions.tarsiaGetLastErrorMessage(text, ctypes.c_size_t(len(text)))
            raise RuntimeError(f"{name}: status {status}: {text.value.decode()}")


class Problem:
    """A matrix, a vector, and a plan for their product on the host backend."""

    def __init__(self, tarsia):
        self.tarsia = tarsia
        numbers = random.Random(7)
        nnz = ROWS * PER_ROW
        columns = [(row + step * 997) % ROWS for row in range(ROWS) for step in range(PER_ROW)]
        self.offsets = (ctypes.c_int32 * (ROWS + 1))(*range(0, nnz + 1, PER_ROW))
        self.columns = (ctypes.c_int32 * nnz)(*columns)
        self.values = (ctypes.c_double * nnz)(*(numbers.uniform(-1, 1) for _ in range(nnz)))
        self.x = (ctypes.c_double * ROWS)(*(numbers.uniform(-1, 1) for _ in range(ROWS)))
        self.y = (ctypes.c_double * ROWS)()
        self.handle, self.matrix, self.plan = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
        self.x_descr, self.y_descr = ctypes.c_void_p(), ctypes.c_void_p()
        wide = ctypes.c_int64
        tarsia("tarsiaCreateWithBackend", ctypes.byref(self.handle), HOST, 0)
        tarsia("tarsiaCreateCsr", ctypes.byref(self.matrix), wide(ROWS), wide(ROWS), wide(nnz),
               self.offsets, self.columns, self.values, INDEX_32I, INDEX_32I, 0, R_64F)
        tarsia("tarsiaCreateDnVec", ctypes.byref(self.x_descr), wide(ROWS), self.x, R_64F)
        tarsia("tarsiaCreateDnVec", ctypes.byref(self.y_descr), wide(ROWS), self.y, R_64F)
        tarsia("tarsiaSpMV_createPlan", self.handle, ctypes.byref(self.plan), 0, self.matrix, R_64F, R_64F,
               COMPUTE_64F, 0)
        tarsia("tarsiaPlan_analyze", self.handle, self.plan)

    def product(self):
        """The bits of y."""
        one, zero = ctypes.c_double(1), ctypes.c_double(0)
        self.tarsia("tarsiaSpMV", self.handle, self.plan, ctypes.byref(one), self.x_descr,
                    ctypes.byref(zero), self.y_descr)
        return bytes(self.y)


PROBLEM = None


def work(_):
    """In a worker: the parent's plan, and a new one."""
    return PROBLEM.product(), Problem(PROBLEM.tarsia).product()


def main():
    global PROBLEM
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    PROBLEM = Problem(Library(sys.argv[1]))
    expected = PROBLEM.product()
    if not any(expected):
        sys.exit("the product is 0")
    with multiprocessing.get_context("fork").Pool(WORKERS) as pool:
        found = pool.map_async(work, range(TASKS)).get(timeout=SECONDS)
    wrong = sum(bits != expected for pair in found for bits in pair)
    print(f"{len(found)} tasks in {WORKERS} workers, {wrong} wrong products")
    sys.exit(wrong != 0 or len(found) != TASKS)


if __name__ == "__main__":
    main()
