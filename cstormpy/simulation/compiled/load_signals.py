"""Signals of wrenches that keep their direction in space: what of them does, beside the wrenches themselves.

The interpreted engine passes `cstormpy.dynamics.loads.Wrenches` from block to block; here the rows that those carry are
kept beside the expressions of a signal, by the slot of the output that gives it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cstormpy.dynamics.loads import Wrenches
from cstormpy.simulation.compiled.emitter import Emitter, Untranslatable
from cstormpy.simulation.compiled.registry import Value

__all__ = ["carry_loads", "keep_loads", "loads_at"]


def keep_loads(e: Emitter, block: Any, rows: Value) -> None:
    """Keep what the wrenches at the only output of a block carry, (n_links, 21)."""
    e.shared["loads", id(block._outport_slots[0])] = rows


def loads_at(e: Emitter, block: Any, port: int) -> Value | None:
    """Return what the wrenches at an input carry, or None of those that turn with their links."""
    slot = block._inport_slots[port]
    rows: Value | None = e.shared.get(("loads", id(slot)))
    if rows is None and isinstance(slot.value, Wrenches) and slot.value.rows is not None:
        raise Untranslatable(
            "is given a load in the base's axes by way of a block that is neither SUM, GAIN nor FLATTEN"
        )
    return rows


def carry_loads(e: Emitter, block: Any, u: list[Value]) -> None:
    """Keep at the output of SUM, GAIN and FLATTEN what the wrenches at their inputs carry, if they carry anything."""
    if not any(("loads", id(slot)) in e.shared for slot in block._inport_slots):
        return
    kind = type(block).__name__
    if kind == "Sum" and block.mode is None:
        add_loads(e, block, e.depends(lambda: block.signs), u)
    elif kind == "Gain":
        scale_loads(e, block, e.number(lambda: block.K))
    elif kind == "Flatten" and e.depends(lambda: block.order) == "C":
        pass_loads(e, block)


def add_loads(e: Emitter, block: Any, signs: str, u: list[Value]) -> None:
    """Keep what a sum of wrenches carries, if one of them carries anything."""
    given = [e.shared.get(("loads", id(slot))) for slot in block._inport_slots]
    known = [rows for rows in given if rows is not None]
    if not known or any(value.size != 6 * len(known[0]) for value in u):
        return
    total = np.full(known[0].shape, "0.0", dtype=object)
    for sign, value, rows in zip(signs, u, given, strict=True):
        term = rows
        if term is None:
            term = np.full(total.shape, "0.0", dtype=object)
            term[:, :6] = value.reshape(-1, 6)
        for at in zip(*np.nonzero(term != "0.0"), strict=True):
            total[at] = f"({total[at]} {sign} {term[at]})"
    keep_loads(e, block, _named(e, total))


def scale_loads(e: Emitter, block: Any, factor: Value) -> None:
    """Keep what wrenches times a number carry, if they carry anything."""
    rows = e.shared.get(("loads", id(block._inport_slots[0])))
    if rows is None or factor.ndim:
        return
    scaled = rows.copy()
    for at in zip(*np.nonzero(rows != "0.0"), strict=True):
        scaled[at] = f"({rows[at]} * {factor.item()})"
    keep_loads(e, block, _named(e, scaled))


def pass_loads(e: Emitter, block: Any) -> None:
    """Keep at the only output of a block what the wrenches at its only input carry."""
    rows = e.shared.get(("loads", id(block._inport_slots[0])))
    if rows is not None:
        keep_loads(e, block, rows)


def _named(e: Emitter, rows: Value) -> Value:
    """Give each expression that is not zero a local variable."""
    named = rows.copy()
    for at in zip(*np.nonzero(rows != "0.0"), strict=True):
        named[at] = e.let(rows[at]).item()
    return named
