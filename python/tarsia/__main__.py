# SPDX-License-Identifier: MIT OR Apache-2.0
"""`python -m tarsia` prints where the parts of the package are, `python -m tarsia NAME` one path alone."""

import argparse
import sys

import tarsia

PARTS = [name for name in tarsia.__all__ if name != "load"]


def main():
    parser = argparse.ArgumentParser(
        prog="python -m tarsia", description="Prints where the parts of Tarsia are, or the path of one part alone."
    )
    parser.add_argument("name", nargs="?", choices=PARTS, metavar="NAME", help="one of " + ", ".join(PARTS))
    parser.add_argument("--version", action="version", version=f"tarsia {tarsia.__version__}")
    name = parser.parse_args().name
    if name:
        print(getattr(tarsia, name)())
    else:
        width = max(map(len, PARTS))
        for part in PARTS:
            print(f"{part:{width}}  {getattr(tarsia, part)()}")


if __name__ == "__main__":
    sys.exit(main())
