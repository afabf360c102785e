"""The translation of a diagram for the compiled engine, and what is told about it."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Collection, Iterator
from typing import Any

import numpy as np

from cstormpy.simulation.compiled import bdsim_equations  # noqa: F401  # which register themselves
from cstormpy.simulation.compiled.assembly import Assembly
from cstormpy.simulation.compiled.program import Program
from cstormpy.simulation.diagram import Diagram

Detectors = list[tuple[Any, Any]]


def program_of(diagram: Diagram, detectors: Detectors | None = None, telling: Collection[Any] | None = None) -> Program:
    """Return the program of a diagram whose signals have just been evaluated, which tells their shapes.

    Parameters
    ----------
    diagram : Diagram
    detectors : list, optional
        The zero-crossing detectors of the run, with their blocks.
    telling : collection of Block, optional
        Blocks that tell where they switch. Given these, the numbers at whose zeros rates of states jump or have a kink
        are put out too, but for theirs.

    Raises
    ------
    NotTranslated
        With every block that stands in the way.
    """
    with _without_collections():
        return Assembly(diagram, detectors or [], telling).program()


@contextlib.contextmanager
def _without_collections() -> Iterator[None]:
    """Have nothing looked for that could be thrown away: what is written down is kept, and there is much of it."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def wiring(diagram: Diagram, detectors: Detectors) -> tuple[Any, ...]:
    """Return all by which a diagram's source differs from another's, besides the numbers of its blocks."""
    things: list[Any] = []
    for b, _, inputs, _, _, _ in diagram.order:
        things += b, b.__class__, *inputs
    for b, _ in diagram.continuous:
        things += b, *b._inport_slots
    return (
        [*map(id, things)],
        [(part.start, part.stop) for _, part in diagram.continuous],
        tuple((id(clock), *((id(b), b.ndstates) for b in clock.blocklist)) for clock in diagram.bd.clocklist),
        tuple(map(_crossing, detectors)),
    )


def _crossing(declared: tuple[Any, Any]) -> tuple[Any, ...]:
    detector, b = declared
    quantity = getattr(getattr(detector, "quantity", None), "__name__", "")
    owner = getattr(detector, "block", b)  # our blocks declare an object that is new in each run
    return id(owner), type(detector), quantity, float(getattr(detector, "direction", 0.0))


def fits(program: Program, diagram: Diagram) -> bool:
    """Tell whether the signals of a diagram, which have just been evaluated, have the shapes that a program has."""
    return all(
        np.shape(slot.value) == program.columns[id(b), port][1]
        for b, _, _, outs, _, _ in diagram.order
        for port, slot in enumerate(outs)
        if (id(b), port) in program.columns
    )


def source_of(bd: Any, language: str = "python") -> str:
    """Return the source of a compiled diagram's function, with what its variables are, from the initial states."""
    program = _at_the_start(bd)
    return program.in_c() if language == "c" else program.printed()


def explanation_of(bd: Any) -> str:
    """Return in which way each block of a compiled diagram is computed, a line for each."""
    program = _at_the_start(bd)
    told: dict[str, list[str]] = {}
    for name, way in program.ways_taken():
        told.setdefault(name, []).append(way)
    names = [str(b.name) for group in bd.plan for b in group]
    width = max(map(len, names), default=0)
    passing = ["hands on what it is given"]
    lines = [f"{name:{width}}  {'; '.join(dict.fromkeys(told.get(name, passing)))}" for name in names]
    return "\n".join(lines)


def _at_the_start(bd: Any) -> Program:
    diagram = Diagram(bd)
    for b, cell in diagram.cells.items():
        cell[0] = np.array(b.getstate0(), dtype=float)
    diagram.evaluate(0.0, np.array(bd.getstate0(), dtype=float))
    return program_of(diagram)
