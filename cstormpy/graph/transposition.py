"""Samples that stand row by row in memory, into lanes and back: transposition by shuffles of whole vectors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cstormpy.graph.emission import LANES, Emitter
from cstormpy.graph.nodes import Node
from cstormpy.graph.tiles import LANE


def pieces(size: int, lanes: int) -> list[tuple[int, int]]:
    """Return (first, width) of pieces of a row, whose widths are powers of two up to the number of lanes."""
    found, first = [], 0
    while first < size:
        width = lanes
        while width > size - first:
            width //= 2
        found.append((first, width))
        first += width
    return found


def _shuffle(e: Emitter, a: str, b: str, kind: str, mask: Sequence[int]) -> str:
    picked = ", ".join(f"i32 {k}" for k in mask)
    return e.new(f"shufflevector {kind} {a}, {kind} {b}, <{len(mask)} x i32> <{picked}>")


def _exchange(e: Emitter, rows: list[str]) -> list[str]:
    """Transpose square blocks that stand side by side in vectors, by exchanging their halves, quarters, and so on."""
    block, lanes = 1, e.lanes
    while block < len(rows):
        for i in range(len(rows)):
            if not i & block:
                a, b = rows[i], rows[i | block]
                upper = [k if not k & block else lanes + k - block for k in range(lanes)]
                lower = [k + block if not k & block else lanes + k for k in range(lanes)]
                rows[i], rows[i | block] = (_shuffle(e, a, b, e.number, m) for m in (upper, lower))
        block *= 2
    return rows


def load_rows(e: Emitter, base: str, size: int, wanted: Sequence[bool]) -> dict[int, str]:
    """Append loads of a row of `size` numbers for each lane; return the lanes of each column that is wanted.

    >>> from cstormpy.graph.emission import Emitter
    >>> sorted(load_rows(Emitter(8), "%q", 3, [True, True, False]))
    [0, 1]
    """
    lanes = e.lanes
    if size <= 4:
        whole = f"<{lanes * size} x double>"
        x = e.new(f"load {whole}, ptr {base}, align 8")
        if size == 1:
            return {0: x}
        return {j: _shuffle(e, x, "poison", whole, range(j, lanes * size, size)) for j in range(size) if wanted[j]}
    columns: dict[int, str] = {}
    for first, width in pieces(size, lanes):
        if not any(wanted[first : first + width]):
            continue
        if width == 1:
            x = "poison"
            for s in range(lanes):
                one = e.new(f"load double, ptr {e.address(base, s * size + first)}, align 8")
                x = e.new(f"insertelement {e.number} {x}, double {one}, i32 {s}")
            columns[first] = x
            continue
        kind = f"<{width} x double>"
        parts = [e.new(f"load {kind}, ptr {e.address(base, s * size + first)}, align 8") for s in range(lanes)]
        full = [_joined(e, parts[r::width], width) for r in range(width)]
        columns.update((first + j, x) for j, x in enumerate(_exchange(e, full)) if wanted[first + j])
    return columns


def _joined(e: Emitter, parts: list[str], width: int) -> str:
    """Return vectors of some width one after the other in one vector."""
    while len(parts) > 1:
        kind = f"<{width} x double>"
        pairs = zip(parts[::2], parts[1::2], strict=True)
        parts = [_shuffle(e, a, b, kind, range(2 * width)) for a, b in pairs]
        width *= 2
    return parts[0]


def store_piece(e: Emitter, base: str, size: int, first: int, columns: Sequence[str]) -> None:
    """Append stores of the lanes of some of `pieces`, columns from `first` on, into rows of `size` numbers."""
    width, lanes = len(columns), e.lanes
    if size == width == 2:
        order = [k for s in range(lanes) for k in (s, lanes + s)]
        x = _shuffle(e, columns[0], columns[1], e.number, order)
        e.lines.append(f"  store <{2 * lanes} x double> {x}, ptr {base}, align 8")
        return
    kind = f"<{width} x double>"
    rows = _exchange(e, list(columns)) if width > 1 else [columns[0]]
    for s in range(lanes):
        place = e.address(base, s * size + first)
        if width == 1:
            x = e.new(f"extractelement {e.number} {rows[0]}, i32 {s}")
            e.lines.append(f"  store double {x}, ptr {place}, align 8")
            continue
        x, begin = rows[s % width], s // width * width
        if width < lanes:
            x = _shuffle(e, x, "poison", e.number, range(begin, begin + width))
        e.lines.append(f"  store {kind} {x}, ptr {place}, align 8")


def store_numbers(e: Emitter, base: str, numbers: Sequence[Any], values: dict[int, str]) -> None:
    """Append the stores of numbers of one sample; neighbours in a tile that are neighbours here go together."""
    k = 0
    while k < len(numbers):
        x = numbers[k]
        count = _neighbours(numbers, k)
        if count == 1:
            e.lines.append(f"  store double {e.value(x, values)}, ptr {e.address(base, k)}, align 8")
        else:
            begin = x.data
            place = e.new(f"getelementptr double, ptr {base}, i64 {k - begin}")
            kept = ", ".join(f"i1 {'true' if begin <= j < begin + count else 'false'}" for j in range(LANES))
            tile = f"<{LANES} x double> {e.value(x.args[0], values)}"
            if count == LANES:
                e.lines.append(f"  store {tile}, ptr {place}, align 8")
            else:
                e.declared.add(_MASKED)
                given = f"{tile}, ptr {place}, i32 8, <{LANES} x i1> <{kept}>"
                e.lines.append(f"  call void @llvm.masked.store.v{LANES}f64.p0({given})")
        k += count


_MASKED = f"declare void @llvm.masked.store.v{LANES}f64.p0(<{LANES} x double>, ptr, i32 immarg, <{LANES} x i1>)"


def _neighbours(numbers: Sequence[Any], k: int) -> int:
    """Return how many numbers from number k on are neighbours in one tile."""
    x, count = numbers[k], 1
    if not (isinstance(x, Node) and x.primitive is LANE):
        return 1
    for y in numbers[k + 1 : k + LANES - x.data]:
        if not (isinstance(y, Node) and y.primitive is LANE and y.args[0] is x.args[0] and y.data == x.data + count):
            break
        count += 1
    return count
