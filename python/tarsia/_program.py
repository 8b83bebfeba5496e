# SPDX-License-Identifier: MIT OR Apache-2.0
"""The command `tarsia`: becomes the program of that name, which finds the drop-in beside it in the package."""

import os
import sys

import tarsia


def main():
    program = tarsia.program_path()
    os.execv(program, [program, *sys.argv[1:]])
