# SPDX-License-Identifier: MIT OR Apache-2.0
"""Where the parts of Tarsia are that this package has: a library of sparse matrix products with a C interface.

The package is an install tree of the library, as scripts/install makes one, and these functions return paths in it.
`python -m tarsia` prints them all.
"""

import ctypes
import importlib.metadata
from pathlib import Path

__all__ = [
    "cmake_dir",
    "drop_in_path",
    "examples_dir",
    "fortran_source",
    "include_dir",
    "library_path",
    "load",
    "pkgconfig_dir",
    "program_path",
]

__version__ = importlib.metadata.version("tarsia")

_TREE = Path(__file__).resolve().parent


def _part(name):
    path = _TREE / name
    if not path.exists():
        raise FileNotFoundError(f"{path} is missing: the package is damaged, or its wheel was not made by scripts/wheel")
    return str(path)


def _library(name):
    # Beside the library is a linker script under the name without numbers.
    found = sorted((_TREE / "lib").glob(name + ".so.*"))
    return str(found[0]) if found else _part(f"lib/{name}.so")


def library_path():
    """The shared library, under the name that programs that are linked with it ask for."""
    return _library("libtarsia")


def drop_in_path():
    """The library that stands in front of cuSPARSE; the command `tarsia run` preloads it."""
    return _library("libtarsia_cusparse")


def include_dir():
    """The folder of tarsia.h (C) and tarsia.hpp (C++17), for -I."""
    return _part("include")


def cmake_dir():
    """The folder of the CMake package, for -Dtarsia_DIR= or CMAKE_PREFIX_PATH."""
    return _part("lib/cmake/tarsia")


def pkgconfig_dir():
    """The folder of tarsia.pc, for PKG_CONFIG_PATH."""
    return _part("lib/pkgconfig")


def fortran_source():
    """The source of the Fortran module, which is compiled with the program that uses it."""
    return _part("share/fortran/tarsia.f90")


def examples_dir():
    """The folder of the examples, with a CMakeLists.txt."""
    return _part("share/tarsia/examples")


def program_path():
    """The program tarsia; the command `tarsia` runs it."""
    return _part("bin/tarsia")


def load():
    """Loads the library and returns it as a `ctypes.CDLL`.

    The functions about versions, errors and handles have their types, as in tarsia.h. All others must be given their
    `argtypes` before they are called.
    """
    library = ctypes.CDLL(library_path())
    integer = ctypes.c_int  # The type of every enum in tarsia.h.
    for name, result, arguments in [
        ("tarsiaGetVersion", integer, [ctypes.POINTER(ctypes.c_int)]),
        ("tarsiaGetProperty", integer, [integer, ctypes.POINTER(ctypes.c_int)]),
        ("tarsiaGetErrorName", ctypes.c_char_p, [integer]),
        ("tarsiaGetErrorString", ctypes.c_char_p, [integer]),
        ("tarsiaGetLastErrorMessage", integer, [ctypes.c_char_p, ctypes.c_size_t]),
        ("tarsiaCreate", integer, [ctypes.POINTER(ctypes.c_void_p)]),
        ("tarsiaCreateWithBackend", integer, [ctypes.POINTER(ctypes.c_void_p), integer, ctypes.c_int]),
        ("tarsiaDestroy", integer, [ctypes.c_void_p]),
    ]:
        function = getattr(library, name)
        function.restype = result
        function.argtypes = arguments
    return library
