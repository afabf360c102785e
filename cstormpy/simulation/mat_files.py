"""Reader of MATLAB's level 5 .mat files, of numbers and text, which no damaged file can crash.

The layout is that of "MAT-File Format" (The MathWorks). A file is a header of 128 bytes and elements, each a tag of
type and number of bytes, and data padded to 8 bytes; data of up to 4 bytes may stand in the tag. A variable is an
element of type 14, possibly within a compressed one: flags, dimensions, name, and the numbers, the text or the cells.
Of numbers only the real parts are read. scipy's own reader trusts what stands in a file, and takes the interpreter with
it where that is wrong.
"""

from __future__ import annotations

import math
import struct
import zlib
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cstormpy.errors import FileFormatError

_HEADER = 128
_HDF = b"MATLAB 7.3"
_MATRIX, _COMPRESSED = 14, 15
_NUMBERS = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8", 12: "i8", 13: "u8"}
"""Types of elements of numbers."""
_TEXTS = {1: "latin-1", 2: "latin-1", 4: "utf-16", 16: "utf-8", 17: "utf-16", 18: "utf-32"}
"""Types of elements of text, and their encodings."""
_CELL, _TEXT, _NUMERIC = 1, 4, range(6, 16)
"""Classes of variables."""
_LARGEST = 2**31
"""Most bytes of a variable, which the format cannot exceed in older versions either."""
_DIMENSIONS = 8
_DEPTH = 4
"""Most cells within cells."""


def read_mat(path: Path, wanted: Collection[str]) -> dict[str, Any]:
    """Return variables of a file by their names: arrays of floats, texts, and lists of these for cells.

    What is not wanted is not looked into; of text with several rows each is one of a list.

    Raises
    ------
    FileFormatError
        Where the file is damaged, or of another version, or a variable is of another kind.
    """
    content = memoryview(path.read_bytes())
    head = bytes(content[:_HEADER])
    if head.startswith(_HDF):
        raise FileFormatError("is of MATLAB 7.3; save it there with the option '-v7'")
    order = {b"IM": "<", b"MI": ">"}.get(head[126:128])
    if order is None or struct.unpack(f"{order}H", head[124:126])[0] != 0x0100:
        raise FileFormatError("is not a .mat file of level 5")
    found: dict[str, Any] = {}
    for kind, data in _elements(content[_HEADER:], order):
        if kind == _COMPRESSED:
            data = _unpacked(data)
            kind, data = next(_elements(data, order), (0, data))
        if kind == _MATRIX:
            name, value = _variable(data, order, wanted)
            if name in wanted:
                found[name] = value
    return found


def _unpacked(data: memoryview) -> memoryview:
    try:
        unpacking = zlib.decompressobj()
        content = unpacking.decompress(data, _LARGEST)
    except zlib.error as error:
        raise FileFormatError(f"is damaged: {error}") from None
    if not unpacking.eof:
        raise FileFormatError("is damaged: a compressed variable has no end")
    return memoryview(content)


def _elements(data: memoryview, order: str) -> Iterator[tuple[int, memoryview]]:
    """Yield the type and the data of elements that follow one another."""
    at = 0
    while at < len(data):
        if at + 8 > len(data):
            raise FileFormatError("is damaged: it ends within an element")
        kind, size = struct.unpack_from(f"{order}II", data, at)
        begin = at + 8
        end, last = begin + (size if kind == _COMPRESSED else size + -size % 8), len(data)
        if kind >> 16:  # data within the tag
            kind, size, begin, end, last = kind & 0xFFFF, kind >> 16, at + 4, at + 8, at + 8
        if begin + size > last:
            raise FileFormatError("is damaged: it ends within an element")
        yield kind, data[begin : begin + size]
        at = end


def _variable(data: memoryview, order: str, wanted: Collection[str] | None, depth: int = 0) -> tuple[str, Any]:
    """Return the name and the value of a variable; no value where it is not wanted."""
    parts = _elements(data, order)
    flags, sizes, name = _part(parts, (6,))[1], _part(parts, (5,))[1], _part(parts, (1, 2, 16))[1]
    if len(flags) != 8 or len(sizes) % 4:
        raise FileFormatError("is damaged: a variable has no class, or no shape")
    held = struct.unpack_from(f"{order}I", flags)[0] & 0xFF
    shape = tuple(np.frombuffer(sizes, f"{order}i4").tolist())
    if not 2 <= len(shape) <= _DIMENSIONS or min(shape) < 0:
        raise FileFormatError(f"is damaged: a variable has the shape {shape[:_DIMENSIONS]}")
    called = bytes(name).decode("latin-1")
    if wanted is not None and called not in wanted:
        return called, None
    if held in _NUMERIC:
        kind, raw = _part(parts, _NUMBERS)
        return called, _shaped(_array(raw, f"{order}{_NUMBERS[kind]}").astype(np.float64), shape)
    if held == _TEXT:
        kind, raw = _part(parts, _TEXTS)
        return called, _rows(_text(kind, raw, order), shape)
    if held == _CELL and depth < _DEPTH:
        cells = [_variable(cell, order, None, depth + 1)[1] if cell else [] for kind, cell in parts if kind == _MATRIX]
        if len(cells) != math.prod(shape):
            raise FileFormatError(f"is damaged: {called!r} has {len(cells)} cells for the shape {shape}")
        return called, cells
    raise FileFormatError(f"{called!r} is neither numbers, nor text, nor cells of these")


def _part(parts: Iterator[tuple[int, memoryview]], kinds: Collection[int]) -> tuple[int, memoryview]:
    """Return the next element, which must be of one of these types."""
    kind, data = next(parts, (0, memoryview(b"")))
    if kind not in kinds:
        raise FileFormatError(f"is damaged: a part of a variable is of type {kind}")
    return kind, data


def _array(raw: memoryview, dtype: str) -> NDArray[Any]:
    if len(raw) % np.dtype(dtype).itemsize:
        raise FileFormatError("is damaged: a number is cut off")
    return np.frombuffer(raw, dtype)


def _shaped(values: NDArray[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    """Return values, which stand column by column, in their shape."""
    if values.size != math.prod(shape):
        raise FileFormatError(f"is damaged: it holds {values.size} values for the shape {shape}")
    return values.reshape(shape, order="F")


def _text(kind: int, raw: memoryview, order: str) -> str:
    encoding = _TEXTS[kind]
    if encoding in ("utf-16", "utf-32"):
        encoding += "-le" if order == "<" else "-be"
    try:
        return bytes(raw).decode(encoding)
    except UnicodeDecodeError as error:
        raise FileFormatError(f"is damaged: {error}") from None


def _rows(text: str, shape: tuple[int, ...]) -> str | list[str]:
    """Return a text, or several where it has rows, without the blanks that fill them up."""
    rows = _shaped(np.array(list(text), dtype="U1"), shape)
    lines = ["".join(row.ravel().tolist()).rstrip() for row in rows]
    return lines[0] if len(lines) == 1 else lines if lines else ""
