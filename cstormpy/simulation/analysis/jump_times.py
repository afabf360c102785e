"""When sources jump, as functions of their parameters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from bdsim.blocks.sources import Piecewise, Ramp, Step, WaveForm

from cstormpy.arrays import Array
from cstormpy.errors import DiagramError
from cstormpy.simulation.run_start import corners_of
from cstormpy.simulation.step_control import JUMP_WIDTH

#: A source whose output changes by a smaller part of it where it declares a jump only bends there.
_LEAP = 1e-9


def tells_when(block: Any) -> bool:
    """Tell whether the times at which a source jumps are known as functions of its parameters."""
    return isinstance(block, (Step, Ramp, Piecewise, WaveForm)) or hasattr(type(block), "edge_time")


def _jump_time(block: Any, t: float) -> Callable[[], float] | None:
    """Return what reads, from the parameters that a source has then, when the jump at a time comes; None if unknown.

    A wave jumps in cycle k at (k + corner + phase) / freq. A source of another kind tells itself, by `edge_time`.
    """
    if hasattr(type(block), "edge_time"):
        own: Callable[[], float] = block.edge_time(t)
        return own
    if isinstance(block, (Step, Ramp)):
        return lambda: float(block.T)
    if isinstance(block, Piecewise):
        entry = min(range(len(block.t)), key=lambda i: abs(block.t[i] - t))
        return lambda: float(block.t[entry])
    if not isinstance(block, WaveForm):
        return None

    def cycles(corner: Callable[[], float]) -> float:
        return t * block.freq - block.phase - corner()

    corner = min(corners_of(block), key=lambda corner: abs(cycles(corner) - round(cycles(corner))), default=None)
    if corner is None:
        return None
    k = round(cycles(corner))
    return lambda: float((k + corner() + block.phase) / block.freq)


def moved_jump(run: Any, jumping: list[Any], ticks: bool) -> Array | None:
    """Return how the time of a jump follows the parameters (k,), None where it does not, or nothing jumps.

    Parameters
    ----------
    run : _TangentRun
        Which stands just before the jump.
    jumping : list
        The sources that have declared it.
    ticks : bool
        Whether a clock ticks at the same time.

    Raises
    ------
    DiagramError
        Something else is done at the same time, so that there is no derivative.
    """
    tuned = {id(entry.block) for entry in run.parameters.entries}
    readers = {id(b): _jump_time(b, run.t) for b in jumping if id(b) in tuned}
    known = {key: reader for key, reader in readers.items() if reader is not None}
    if not known:
        return None
    slopes = run.parameters.slopes(lambda: np.array([reader() for reader in known.values()]))
    rows = dict(zip(known, slopes.T, strict=True))
    still = np.zeros(len(slopes))
    leaping = [b for b in jumping if _leaps(b, run.t)] if slopes.any() else []
    moves = [rows.get(id(b), still) for b in leaping]
    if not any(row.any() for row in moves):
        return None
    names = " and ".join(str(b.name) for b in leaping)
    if run.t in (run.start_time, run.end):
        run.notes.append(
            f"{names} jumps where the run {'begins' if run.t < run.end else 'ends'}; what it does by coming "
            "earlier or later has a derivative on one side only, and is left out"
        )
        return None
    if any(not np.array_equal(row, moves[0]) for row in moves) or ticks:
        others = "" if len(leaping) > 1 else ", where a clock ticks"
        raise DiagramError(
            f"gradient: {names} jump{'s' * (len(leaping) == 1)} at t = {run.t:.9g}{others or ', together'}, and "
            "only one of both moves with the parameters: there is no derivative; move one of them a little"
        )
    return moves[0]


def _leaps(b: Any, t: float) -> bool:
    """Tell whether the outputs of a source change where it has declared a jump, and do not only bend."""
    width = JUMP_WIDTH * float(np.spacing(t))
    given = [slot.value for slot in b._inport_slots]
    before, after = (b.output(at, given, None) for at in (t - width, t + width))
    least = _LEAP * (1.0 + max(float(np.max(np.abs(v), initial=0.0)) for v in after))
    return any(bool(np.any(np.abs(np.subtract(u, v)) > least)) for u, v in zip(before, after, strict=True))
