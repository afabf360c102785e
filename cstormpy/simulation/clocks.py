"""Clocks of diagrams: those of subsystems, and of blocks that came from another diagram, are clocks of the whole."""

from __future__ import annotations

import copy
import uuid
from itertools import islice
from typing import Any

from bdsim.components import Clock, clocklist

from cstormpy.simulation.named_states import distinct_names, sampled_names


class DiagramClock(Clock):
    """A clock of a diagram, which is known again where a diagram that was copied has it.

    Parameters
    ----------
    arg, unit, offset, name
        Those of bdsim's.
    bd : BlockDiagram
        Whose clock it is.
    origin : str, optional
        What the clocks of all copies of a diagram have in common.
    """

    def __init__(self, arg: float, unit: str, offset: float, name: str | None, bd: Any, origin: str = "") -> None:
        self.numbered = name is None
        super().__init__(arg, unit, offset, f"clock.{len(bd.clocklist)}" if name is None else name)
        clocklist.remove(self)  # where bdsim counts them, and would hold them, with their diagrams, for ever
        self.bd, self.origin = bd, origin or uuid.uuid4().hex

    def __deepcopy__(self, memo: dict[int, Any]) -> DiagramClock:
        """Return a clock of the copy where its diagram is copied; a subsystem may have blocks of an outer clock."""
        if id(self.bd) not in memo:
            return self
        made = memo[id(self)] = object.__new__(type(self))
        made.__dict__.update(copy.deepcopy(vars(self), memo))
        return made


def take_clocks(bd: Any) -> None:
    """Let the clocks of a diagram that was compiled be those of all its blocks, and name their states.

    bdsim copies the blocks of subsystems into the diagram, but not their clocks, which so would never tick.
    """
    known = {getattr(clock, "origin", id(clock)): clock for clock in bd.clocklist}
    for b in bd.blocklist:
        if b.blockclass == "sampled" and not any(b._clock is clock for clock in bd.clocklist):
            given = b._clock
            origin = getattr(given, "origin", id(given))
            if origin not in known:
                name = None if getattr(given, "numbered", False) else given.name
                if any(clock.name == name for clock in bd.clocklist):
                    name = f"{b.name.rpartition('/')[0]}/{name}"
                known[origin] = DiagramClock(given.T, "s", given.offset, name, bd, str(origin))
                bd.clocklist.append(known[origin])
            b._clock = known[origin]
    for clock in bd.clocklist:
        before = {id(b): k for k, b in enumerate(clock.blocklist)}
        found = [b for b in bd.blocklist if b.blockclass == "sampled" and b._clock is clock]
        clock.blocklist[:] = sorted(found, key=lambda b: before.get(id(b), len(before)))
    sampled = [(b, sampled_names(b)) for clock in bd.clocklist for b in clock.blocklist]
    names = iter(distinct_names(sampled))
    for clock in bd.clocklist:
        clock.statenames[:] = islice(names, sum(b.ndstates for b in clock.blocklist))
