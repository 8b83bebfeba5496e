#!/usr/bin/env python3
"""Learns what the library's choices for SpMM are corrected by, and which order of rows TARSIA_REORDER_LEARNED takes, and
reports what that is worth.

python3 train/train.py            reads benches/training, writes src/select/learned/spmm-hopper.bin and
                                  src/select/orders/orders-h100.bin
python3 train/train.py --check    fails unless the committed files are what comes out
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
    arguments.add_argument("--train", type=Path, nargs="+", default=sorted(MEASURED.glob("h?00*-train-[0-9].tsv.gz")))
    arguments.add_argument("--test", type=Path, default=MEASURED / "h200-spmm-test.tsv.gz")
    arguments.add_argument("--orders", type=Path, default=MEASURED / "h100-orders-train.tsv.gz")
    arguments.add_argument("--orders-test", type=Path, default=MEASURED / "h100-orders-test.tsv.gz")
    arguments.add_argument("--out", type=Path, default=ROOT / "src" / "select", help="folder of both files")
    arguments.add_argument("--check", action="store_true", help="write nothing, compare")
    arguments.add_argument("--quiet", action="store_true", help="write the files, report nothing")
    arguments.add_argument("--only", default="orders,spmm,spgemm", help="parts")
    asked = arguments.parse_args()

    parts = asked.only.split(",")
    files = {}
    if "orders" in parts:
        train, test = Table(asked.orders), Table(asked.orders_test) if asked.orders_test.exists() else None
        choosers = orders.learned(train)
        if not asked.quiet:
            orders.report(train, test, choosers)
        codes, version = orders.POLICIES, train.version("features")
        files["orders/orders-h100.bin"] = weights.packed_orders(choosers, codes, orders.FEATURES, version)
    if "spmm" in parts or "spgemm" in parts:
        train, test = Table(*asked.train), Table(asked.test) if asked.test.exists() else None
        print(", ".join(path.name for path in asked.train) + ": " + "; ".join(train.about))
    if "spmm" in parts:
        others = test.of("spmm") if test else []
        cases = without(train.of("spmm"), others)
        model = correction.learned(cases) if asked.quiet else correction.report(cases, others)
        names, version = train.names["spmm"], train.version("numbers")
        files["learned/spmm-hopper.bin"] = weights.packed(model, correction.SHAPE, len(names), version)
    if "spgemm" in parts and not asked.quiet:
        correction.sparse(train.names["spgemm"], train.of("spgemm"), test.of("spgemm") if test else [])
    same = True
    for name, data in files.items():
        out = asked.out / name
        if asked.check:
            is_it = out.exists() and out.read_bytes() == data
            print(f"\nwhat was learned is {'that' if is_it else 'other than that'} of {out}")
            same &= is_it
        else:
            out.parent.mkdir(parents=True, exist_ok=True)
            out.write_bytes(data)
            print(f"\n{out}: {len(data) / 1000:.0f} kB")
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
