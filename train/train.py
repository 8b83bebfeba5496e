#!/usr/bin/env python3
"""Learns what the library's choices for SpMM are corrected by, and reports what that is worth.

python3 train/train.py            reads benches/training, writes src/select/learned/spmm-h100.bin
python3 train/train.py --check    fails unless the committed file is what comes out
"""

import argparse
import os
import sys
from pathlib import Path

# One thread: sums in one order.
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"

import correction
import orders
import weights
from data import Table, without

ROOT = Path(__file__).resolve().parent.parent
MEASURED = ROOT / "benches" / "training"


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--train", type=Path, nargs="+", default=sorted(MEASURED.glob("h100-train-*.tsv.gz")))
    arguments.add_argument("--test", type=Path, default=MEASURED / "h100-test.tsv.gz")
    arguments.add_argument("--out", type=Path, default=ROOT / "src" / "select" / "learned" / "spmm-h100.bin")
    arguments.add_argument("--check", action="store_true", help="write nothing, compare")
    arguments.add_argument("--quiet", action="store_true", help="write the trees, report nothing")
    arguments.add_argument("--only", default="orders,spmm,spgemm", help="parts of the report")
    arguments.add_argument("--splits", type=int, default=5, help="of the reproduced chooser")
    asked = arguments.parse_args()

    train = Table(*asked.train)
    test = Table(asked.test) if asked.test.exists() else None
    print(", ".join(path.name for path in asked.train) + ": " + "; ".join(train.about))
    parts = asked.only.split(",")
    model = None
    if "orders" in parts and not asked.quiet:
        orders.report(train, test, asked.splits)
    if "spmm" in parts:
        others = test.of("spmm") if test else []
        cases = without(train.of("spmm"), others)
        model = correction.learned(cases) if asked.quiet else correction.report(cases, others)
    if "spgemm" in parts and not asked.quiet:
        correction.sparse(train.names["spgemm"], train.of("spgemm"), test.of("spgemm") if test else [])
    if model is None:
        return 0
    data = weights.packed(model, correction.SHAPE, len(train.names["spmm"]), train.version())
    if asked.check:
        same = asked.out.exists() and asked.out.read_bytes() == data
        print(f"\nthe trees are {'those' if same else 'others than those'} of {asked.out}")
        return 0 if same else 1
    asked.out.parent.mkdir(parents=True, exist_ok=True)
    asked.out.write_bytes(data)
    print(f"\n{asked.out}: {len(data) / 1000:.0f} kB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
