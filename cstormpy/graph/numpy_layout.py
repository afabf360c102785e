"""Layout of CPython's and NumPy's objects in memory, for machine code that reads them by itself."""

from __future__ import annotations

import sys

#: Bytes from the beginning of an object to its type, of a float to its value, and of an array to its data, dimensions,
#: dtype and flags: part of their binary interfaces.
TYPE, VALUE, DATA, NDIM, SHAPE, DTYPE, FLAGS = 8, 16, 16, 24, 32, 56, 64
#: C_CONTIGUOUS, ALIGNED and, of arrays that are filled, WRITEABLE.
READABLE, WRITABLE = 0x101, 0x501

_CPYTHON = sys.implementation.name == "cpython" and object.__basicsize__ == 16


def is_cpython() -> bool:
    """Tell whether objects are laid out as CPython with its interpreter lock lays them out."""
    return _CPYTHON
