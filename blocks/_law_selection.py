"""Selection among control laws: asked for before a run, between its steps, or by a signal; done at events."""

from __future__ import annotations

import math
import threading
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from cstormpy.arrays import Array
from cstormpy.blocks import _bases as bases
from cstormpy.blocks import _ports as ports
from cstormpy.blocks._crossings import Crossing, can_locate
from cstormpy.control.blend import LawSet
from cstormpy.errors import InvalidValue
from cstormpy.reporting import notice_once

_RESTART = 2e-9
"""A run goes on at most this long after an event [s]: bdsim moves on by 1e-9 s to leave the event behind."""
_BORDER = 1e-6
"""A signal located at the border between two laws stands there up to this."""
_MANY, _BRIEF = 1000, 1.0
"""So many changes of the phase in so short a time [s] are told of: those of a law that fits the mechanism are few."""
_SAME = 64 * np.finfo(float).eps
"""Two evaluations this close (part of their time) are the two sides of one point of the run."""


class LawSelection(bases.Ported):
    """Base of a block with several laws, one of them active."""

    _laws: LawSet
    _by_signal: bool

    def _choose_among(self, laws: LawSet, by_signal: bool) -> None:
        """Stand ready, with the first law active."""
        self._laws, self._by_signal = laws, by_signal
        self._first: int = laws.active
        self._request: int | None = None
        self._between: int | None = None  # what was asked for since the last run, or since the block was made
        self._running = self._begins = self._located = False
        self._fresh = -math.inf  # until when an evaluation is known to be at a point of the run, not within a step
        self._asked = math.inf  # the point of the run at which a request from another thread takes effect
        self._last = (-math.inf, 0.0)  # time and selecting signal of the last evaluation
        self._before: dict[str, Any] | None = None
        self._thread = 0
        self._changed, self._many_at = 0, -math.inf  # changes of the phase, and when there were many

    @property
    def laws(self) -> LawSet:
        """The laws, and which of them is active."""
        return self._laws

    @property
    def active_law(self) -> str:
        """Name of the active law, or of the one that is asked for and will be active at once."""
        return self._laws.names[self._laws.active if self._request is None else self._request]

    @active_law.setter
    def active_law(self, name: str) -> None:
        self._select(name)

    def _state(self, u: Sequence[Any]) -> tuple[Array, Array, tuple[Array, Array, Array] | None]:
        """Return positions, rates and what is to be followed from the input signals."""
        raise NotImplementedError

    # ---------------------------------------------------------------- choosing the law

    if TYPE_CHECKING:

        def select(self, law: str | int) -> None:
            """Make another law active: at once during a run, or for the runs that follow."""

    def _select(self, law: str | int) -> None:
        """Do what `select` says, which is the method of this name or, with ``select=True``, the port."""
        if self._by_signal:
            raise InvalidValue(
                f"{ports.label(self)}: the signal at its port 'select' chooses the law; make it without select=True"
            )
        request = self._laws.number(law)
        if self._running and threading.get_ident() == self._thread:
            self._fresh = math.inf
        self._asked, self._request = math.inf, request

    def compile(self) -> None:
        """Prepare for wiring; what is asked for from now on is for the next run."""
        super().compile()
        self._running = False

    def start(self, simstate: Any) -> None:
        """Begin a run: with the law it was made with, or that was selected since."""
        super().start(simstate)
        self._refuse_shared()
        self._between = self._request
        if self._request is not None:
            self._first, self._request = self._request, None
        self._running = self._begins = True
        self._thread = threading.get_ident()
        self._fresh, self._asked, self._before = -math.inf, math.inf, None
        self._last = (-math.inf, 0.0)
        self._changed, self._many_at = 0, -math.inf
        self._located = can_locate(self, simstate)
        has_phases = any(len(law.modes) > 1 for law in self._laws.laws.values())
        if not self._located or (len(self._laws.laws) == 1 and not has_phases):
            return
        if has_phases:
            Crossing(self, simstate, self._phase_margin, self._change_phase, told=self._present_phase)
        if self._by_signal:
            # where the signal jumps, the block itself looks at it between two steps
            margin, act, asked = self._select_margin, self._follow_signal, self._reads_signal
        else:
            margin, act, asked = self._request_margin, self._grant, self._is_asked
        Crossing(self, simstate, margin, act, signals=self._by_signal, asked=asked, told=self._present_law)
        Crossing(self, simstate, self._blend_left, signals=False, told="the blend ends")

    def _refuse_shared(self) -> None:
        """Refuse a law with a memory that another block of the diagram has too: each would change the other's phase."""
        blocks = getattr(self._bd, "blocklist", ())
        others = [b for b in blocks if b is not self and isinstance(b, LawSelection)]
        mine = self._laws.remembering if others else {}
        for other in others:
            shared = mine.keys() & other.laws.remembering
            if shared:
                raise InvalidValue(
                    f"{ports.label(self)}: law {mine[min(shared)]!r} is the same object as a law of "
                    f"{ports.label(other)}, and has one phase and one memory for both; give one of them "
                    "copy.deepcopy(law)"
                )

    # ---------------------------------------------------------------- points of the run

    def _attend(self, t: float, q: Array, qd: Array, target: Any, u: Sequence[Any]) -> None:
        """Do what is due at this point of the run, and was not found by a crossing."""
        if self._begins:
            self._begin(t, q, qd, u)
        elif self._request is not None:
            if self._running and t <= self._fresh:
                self._grant_at(t, q, qd, target)
        elif self._by_signal and self._running:
            self._read_signal(t, q, qd, target, u)
        if self._running and not self._located:
            self._step_phase(t, q, qd)

    def _begin(self, t: float, q: Array, qd: Array, u: Sequence[Any]) -> None:
        """Begin with the first law, or with what the signal or somebody in between asked for."""
        first = self._first if self._request is None else self._request
        if self._by_signal:
            first = self._nearest(self._signal(u))
            self._last = (t, self._signal(u))
        self._laws.begin(t, q, qd, first)
        self._begins, self._request = False, None

    def _grant_at(self, t: float, q: Array, qd: Array, target: tuple[Array, Array, Array] | None) -> None:
        request, self._request = self._request, None
        self._fresh, self._asked = -math.inf, math.inf
        if request is not None:
            self._laws.swap(request, t, q, qd, target)

    # ---------------------------------------------------------------- the selecting signal

    def _read_signal(self, t: float, q: Array, qd: Array, target: Any, u: Sequence[Any]) -> None:
        """Swap where the signal has jumped at a point of the run; where it passes a border is found by its crossing."""
        signal = self._signal(u)
        wanted, (then, before) = self._nearest(signal), self._last
        self._last = (t, signal)
        if abs(signal - self._laws.active) <= 0.5:
            return
        if self._before is not None and t < self._laws.since and wanted == self._before["number"]:
            # a look at a time before the jump, as in a search for its place: the swap has not been yet
            self._laws.recall(self._before["memory"])
            self._before = None
            return
        jumped = abs(signal - before) >= 0.5 and abs(t - then) <= _SAME * abs(t)
        if jumped or t <= self._fresh or not self._located:
            self._swap_by_signal(wanted, t, q, qd, target)

    def _swap_by_signal(self, wanted: int, t: float, q: Array, qd: Array, target: Any) -> None:
        before = {"number": self._laws.active, "memory": self._laws.memory()}
        self._laws.swap(wanted, t, q, qd, target)
        self._before, self._fresh = before, -math.inf

    def _select_margin(self, t: float, u: Sequence[Any]) -> float:
        return 0.5 - abs(self._signal(u) - self._laws.active)

    def _reads_signal(self) -> bool:
        return True

    def _follow_signal(self, t: float) -> None:
        """Swap at a crossing of the signal; of a jump, the point found may be the last one before it."""
        u = self.inport_values
        q, qd, target = self._state(u)
        signal, active = self._signal(u), self._laws.active
        away = abs(signal - active)
        if away < 0.5 - _BORDER:
            self._fresh = t + _RESTART
            return
        beside = active + (1 if signal > active else -1)
        self._swap_by_signal(beside if away <= 0.5 + _BORDER else self._nearest(signal), t, q, qd, target)
        self._last = (t, signal)

    def _signal(self, u: Sequence[Any]) -> float:
        return ports.vector(self, 2, u[2], 1)[0]

    def _nearest(self, signal: float) -> int:
        try:
            return self._laws.nearest(signal)
        except ValueError as error:
            raise InvalidValue(f"{ports.port_label(self, 2)}: {error}; the signal is {signal:g}") from None

    # ---------------------------------------------------------------- other events

    def _is_asked(self) -> bool:
        return self._request is not None

    def _request_margin(self, t: float, u: Sequence[Any]) -> float:
        """Fall to zero at the first point of the run that is reached after somebody asked from another thread."""
        if self._request is None:
            return 1.0
        if self._asked == math.inf:
            self._asked = t
        elif t > self._asked:  # this runner did not take it for a crossing: act at the next evaluation
            self._fresh = math.inf
        return self._asked - t

    def _grant(self, t: float) -> None:
        if self._request is not None:
            self._grant_at(t, *self._state(self.inport_values))

    def _phase_margin(self, t: float, u: Sequence[Any]) -> float:
        q, qd, _ = self._state(u)
        return self._laws.left(t, q, qd)

    def _change_phase(self, t: float) -> None:
        q, qd, _ = self._state(self.inport_values)
        self._laws.switch(t, q, qd)
        self._changed += 1
        if self._changed % _MANY == 0:
            if t - self._many_at < _BRIEF:
                name = self._laws.names[self._laws.active]
                phases = " and ".join(map(repr, self._laws.laws[name].modes))
                notice_once(
                    f"{ports.label(self)}: law {name!r} changes its phase {_MANY} times "
                    f"within {_BRIEF:g} s, between {phases}; the run goes on, slowly: give the law gains and "
                    "thresholds that fit the mechanism, or let its margins leave room between the phases"
                )
            self._many_at = t

    def _present_law(self) -> str:
        return f"law {self._laws.names[self._laws.active]}"

    def _present_phase(self) -> str:
        return f"phase {self._laws.phase_names[self._laws.phase]}"

    def _step_phase(self, t: float, q: Array, qd: Array) -> None:
        """Change the phase where no crossing is looked for: every evaluation is then a point of the run."""
        if self._laws.left(t, q, qd) <= 0.0:
            self._laws.switch(t, q, qd)

    def _blend_left(self, t: float, u: Sequence[Any]) -> float:
        """Let a step end where the blend does: the torque has a kink there."""
        return np.where(self._laws.until > self._laws.since, self._laws.until - t, 1.0)

    # ---------------------------------------------------------------- memory

    def memory(self) -> dict[str, Any]:
        """Return what a continued run needs beside the states."""
        return {"request": self.active_law if self._request is not None else "", **self._laws.memory()}

    def recall(self, memory: Mapping[str, Any]) -> None:
        """Go on from what ``memory`` returned, or with the law asked for since the last run; after ``start``."""
        self._laws.recall(memory)
        self._begins = False
        self._request = self._laws.number(memory["request"]) if memory["request"] else None
        if self._between is not None:
            self._request = self._between
        self._fresh = math.inf if self._request is not None else -math.inf
