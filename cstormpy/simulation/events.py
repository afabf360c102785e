"""States at an event, before and after its handlers, and the refusal of events without end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from cstormpy.arrays import Array
from cstormpy.errors import BlockError, DiagramError, shown
from cstormpy.kernels.event_location import APART
from cstormpy.simulation.bounds import Bound
from cstormpy.simulation.diagram import Diagram
from cstormpy.simulation.wiring import describe

#: Events of one block at so many times within so short a span (as SAME_TIME) are chattering, or accumulate as those of
#: a ball that comes to rest: soon they would lie closer than time can resolve, and one of them would be missed.
_CHATTER = ((100, APART), (4, 1e-8))
#: Events that cause one another at one time, more often than this, do so for ever.
_CAUSED = 200
#: Where among the last so many events at least so many are of one block, and so fast that more than these are ahead, a
#: run has no end.
_IN_A_ROW, _OF_ONE, _EVENTS_IN_VAIN = 1000, 100, 5e5
#: Of a block that has left off, which chatters slower for that, so small a part of them.
_OF_RESTING = 0.02


class Event(tuple[float, str]):
    """A zero crossing that was met: the pair of its time and the name of its block, and `what` happened there.

    >>> event = Event(1.5, "controller", "phase balance")
    >>> t, block = event
    >>> event, event.what
    ((1.5, 'controller'), 'phase balance')
    """

    what: str

    def __new__(cls, t: float, block: str, what: str = "") -> Event:
        """Return the pair, with a text that is empty where nothing is known."""
        made = super().__new__(cls, (t, block))
        made.what = what
        return made

    def __getnewargs__(self) -> tuple[float, str, str]:
        """Return what a copy is made of."""
        return self[0], self[1], self.what


def at_bounds(simstate: Any, x: Array, fired: list[int]) -> Array:
    """Return a state in which those that have just reached a bound stand exactly there."""
    bounds = [simstate.crossing_detectors[i][0] for i in fired]
    reached = [bound for bound in bounds if isinstance(bound, Bound) and not bound.side]
    if not reached:
        return x
    out = x.copy()
    for bound in reached:
        out[bound.place] = bound.nearest(float(x[bound.place]))
    return out


def leaps(detector: Any) -> bool:
    """Tell whether signals may jump where a detector fires: not where it only ends a step or the run."""
    return bool(getattr(detector, "leaps", getattr(detector, "acts", True)))


def states_left(diagram: Diagram, states: dict[Any, Any]) -> Array:
    """Return the continuous states that event handlers have left."""
    parts = [(b, np.asarray(states[b], dtype=float).reshape(-1)) for b, _ in diagram.continuous]
    for b, part in parts:
        if part.size != b.nstates:
            raise DiagramError(
                f"{describe(b)}: has {b.nstates} states, an event handler left {part.size}; "
                "write into the array, as in states[block][:] = ..."
            )
    return np.concatenate([part for _, part in parts]) if parts else np.zeros(0)


def refuse_left(diagram: Diagram, states: dict[Any, Any], before: set[Any], finite: bool) -> None:
    """Refuse what an event handler has left that is no state of a block, or has no value."""
    if states.keys() != before:
        for key in states:
            if key not in before:
                named = diagram.bd.blocknames.get(key) if isinstance(key, str) else None
                which = (
                    f"{key!r} is the name of one: states[bd[{key!r}]][:] = ..." if named else "states[block][:] = ..."
                )
                raise BlockError(f"it set states[{shown(key)}], but states are those of blocks; {which}")
        lost = next(each for each in before if each not in states)
        raise BlockError(f"it took away the states of {describe(lost)}; write into them, as in states[block][:] = ...")
    for b, _ in diagram.continuous:
        part = np.asarray(states[b])
        if part.dtype.kind == "c":
            raise BlockError(f"it left {part} in the states of {describe(b)}, which are real numbers")
        if finite and not np.isfinite(part.astype(float)).all():
            raise BlockError(f"it left {part} in the states of {describe(b)}")


def chatter_of(events: Sequence[tuple[float, str]], t: float) -> tuple[int, float] | None:
    """Return how many events in how short a time show that the block of the last one chatters; None where none do."""
    (newest, name), scale = events[-1], max(1.0, abs(t))
    times = [newest]
    for when, block in reversed(events):
        if newest - when > _CHATTER[0][1] * scale:
            break
        if block == name and when < times[-1]:
            times.append(when)
    for count, span in _CHATTER:
        if len(times) >= count and newest - times[count - 1] <= span * scale:
            return count, newest - times[count - 1]
    return None


def chatters_still(left_off: float, t: float) -> bool:
    """Tell whether a block that has left off for chattering does so again at once."""
    return t - left_off <= _CHATTER[0][1] * max(1.0, abs(t))


def until_next_look(events: Sequence[tuple[float, str]]) -> int:
    """Return how many may come before that after which it is looked at how fast the last of them have come."""
    return _IN_A_ROW - 1 - len(events) % _IN_A_ROW


def refuse_chatter(events: Sequence[tuple[float, str]], t: float, end: float, rests: bool = False) -> None:
    """Refuse events of the block that had the last one, if they have come too often to reach the end of the run.

    Of one that `rests`, as it has left off for chattering, fewer are endured.
    """
    name, found = events[-1][1], chatter_of(events, t)
    if found is not None:
        raise DiagramError(
            f"{name}: {found[0]} events within {found[1]:.3g} s at t = {t:.9g}; the signal "
            "chatters about zero: give the switch a hysteresis, or let the event move the state away; what bounces to "
            "rest is to be held there, or to stop the run, once it is slow"
        )
    if len(events) % _IN_A_ROW == 0:
        (first, _), (last, _) = events[-_IN_A_ROW], events[-1]
        own = len({when for when, block in events[-_IN_A_ROW:] if block == name})
        most = _EVENTS_IN_VAIN * (_OF_RESTING if rests else 1.0)
        if own >= _OF_ONE and (end - last) * own > most * (last - first):
            ahead = (end - last) * own / (last - first)
            raise DiagramError(
                f"{name}: {own} events within {last - first:.3g} s at t = {t:.9g}, and {ahead:.2g} ahead; the "
                "signal chatters: give the switch a wider hysteresis, or sample it by a clock "
                "(bd.ZOH(bd.clock(1000, 'Hz')) before it); locate=False lets blocks that have it switch at steps"
            )


def refuse_endless(events: Sequence[tuple[float, str]], caused: int) -> None:
    """Refuse events that cause one another at one time, of which so many have come, without end."""
    if caused > _CAUSED:
        t, name = events[-1]
        names = list(dict.fromkeys(block for when, block in events[-_CAUSED:] if when == t))
        raise DiagramError(
            f"{name}: events cause one another without end at t = {t:.9g}: {', '.join(names)}; "
            "let one of them leave the signals of the others where they are"
        )
