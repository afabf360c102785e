"""Blocks that give other values when they are asked again for the same time, as random numbers do.

No adaptive solver gets on behind one: what it takes for its error is the noise, whatever the length of the step.
"""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
from bdsim.blocks.functions import Function

from cstormpy.arrays import Array
from cstormpy.control.blend import LawSet
from cstormpy.control.user_laws import OwnLaw
from cstormpy.errors import BlockError, CstormError
from cstormpy.reporting import notice_once
from cstormpy.simulation.bdsim_blocks import is_of
from cstormpy.simulation.wiring import describe, written

#: Packages whose blocks compute the same from the same, but for functions of the user.
_KNOWN = ("bdsim", "cstormpy")


def refuse_unrepeatable(diagram: Any, t: float, x: Array, adaptive: bool, remembering: bool = False) -> None:
    """Refuse a block that gives different values for the same time, where states follow it; fixed steps take it."""
    try:
        block = unrepeatable(diagram, t, x, remembering)
    except CstormError:  # what fails is said by the run
        return
    if block is None:
        return
    if adaptive:
        raise BlockError(_told(block, "and a state follows it: no step is short enough for a solver's tolerance"))
    notice_once(_told(block, "and a state follows it: each stage of a step gets another value"))


def unrepeatable(diagram: Any, t: float, x: Array, remembering: bool = False) -> Any | None:
    """Return a block whose outputs differ from one look to the next, if rates of states do too; else None.

    Parameters
    ----------
    diagram : Diagram
    t, x
        Where to look.
    remembering : bool
        Whether to ask functions with a memory too, which a look may change.
    """
    suspects = [entry for entry in diagram.order if is_of_user(entry[0], remembering)]
    if not suspects or not diagram.nstates:
        return None
    diagram.at(t, x)
    at = min(max(t, diagram.earliest), diagram.latest)
    found = [b for b, output, ins, outs, _, cell in suspects if not _repeats(output, at, ins, outs, cell[0])]
    if not found:
        return None
    first, second = diagram.derivative(t, x), diagram.derivative(t, x)
    diagram.forget()
    return None if np.array_equal(first, second, equal_nan=True) else found[0]


def is_of_user(b: Any, remembering: bool = True) -> bool:
    """Tell whether what a block computes is a user's own: a function, a law, a block; or only one without a memory."""
    kind = b.__class__
    if is_of(kind, Function):
        return remembering or b.userdata is None
    if hasattr(kind, "laws") and isinstance(b.laws, LawSet):  # of which a user's own is unknown, and may have a memory
        return remembering and any(
            isinstance(law, OwnLaw) or not type(law).__module__.startswith("cstormpy.") for law in b.laws.laws.values()
        )
    return kind.__module__.partition(".")[0] not in _KNOWN and b.blockclass in ("source", "function")


def say_memory(block: Any, which: str, reason: str, at_ticks: bool = False) -> None:
    """Say of what cannot be traced because it changes something of its own that this is no state of the run."""
    if not reason.startswith("it changes "):
        return
    changed = reason.removeprefix("it ").partition("; ")[0]
    if at_ticks:
        if changed.startswith("changes a random generator"):  # which is meant to go on
            return
        what = changed if "'" in changed else "changes what it holds while it computes"  # a longer list in each run
        notice_once(
            f"{describe(block)}: next() {what}: that goes on into the next run. What is to be remembered is a part of "
            "its states, which begin at x0"
        )
        return
    notice_once(
        f"{describe(block)}: {which}{changed}: that is several times in a step, and goes on into the next run. "
        "What is to be remembered is a state of a block, as of bd.INTEGRATOR, or of your own with next()"
    )


def _repeats(output: Any, t: float, ins: Any, outs: Any, x: Any) -> bool:
    """Tell whether a block gives again what stands at its outputs; one that fails is looked at elsewhere."""
    try:
        values = output(t, [copy.copy(slot.value) for slot in ins], x)
        return all(_same(value, slot.value) for value, slot in zip(values, outs, strict=True))
    except Exception:
        return True


def _same(a: Any, b: Any) -> bool:
    one, other = np.asarray(a), np.asarray(b)
    if one.dtype.kind not in "biufc" or other.dtype.kind not in "biufc":
        return True
    return bool(np.array_equal(one, other, equal_nan=True))


def _told(block: Any, end: str) -> str:
    """Return what is said of such a block, with what it does to the run, and what to do."""
    behind = next((w.end.block for w in getattr(block._bd, "wirelist", ()) if w.start.block is block), None)
    place = f" between it and {describe(behind)}" if behind is not None else " behind it"
    return (
        f"{describe(block)}: gives different values for the same time, as a random number does, {end}. Sample it: put "
        f"bd.ZOH(bd.clock(0.01, 's')){place}, so that it is asked once at each tick; or let {written(block)} depend on "
        "the time alone, as a table of random numbers does"
    )
