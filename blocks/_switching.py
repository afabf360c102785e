"""Blocks whose output jumps or bends where a signal crosses a border, which a run locates as an event."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from cstormpy.arrays import Array
from cstormpy.blocks import _ports as ports
from cstormpy.blocks._bases import Ported
from cstormpy.blocks._crossings import Crossing
from cstormpy.graph.arrays import is_symbolic
from cstormpy.kernels.roots import TINY
from cstormpy.signals.limits import SHARES, either, narrowest
from cstormpy.signals.logic import compared

#: So many times as far beyond a border as a signal that chatters there by rounding may be where it rests.
_RESTING = 2.0**6
#: Part of the size of a signal that is no rounding any more.
_ROUNDING = 2.0**-40


class Kinked(Ported):
    """A block whose output has a kink where its input passes a border: a step of an integration ends there.

    Borders are shared out among several numbers to be watched, so that one of them has changed its sign whichever
    borders a step has passed: two of the same number would not show.
    """

    #: Those that it has are declared where it is located, and its outputs do no more than bend there.
    declares_kinks = True
    _locate = True
    #: Whether the border is a function of the states of the block too.
    _by_states = False
    #: 1 while a run looks for the kinks, 0 where it has left off.
    _looking = 1.0

    def start(self, simstate: Any) -> None:
        """Begin a run: let it look for the kinks."""
        super().start(simstate)  # type: ignore[misc]
        self._looking = 1.0
        if self._locate and hasattr(simstate, "declare_crossing_event"):
            for which in range(self._watched()):
                Crossing(self, simstate, self._looked_for, direction=0.0, of_states=self._by_states, which=which)  # type: ignore[arg-type]

    @property
    def tells_all_kinks(self) -> bool:
        """Whether each border has a number of its own to be watched; else derivatives find kinks in the equations.

        Where a step passes borders that share one, they make up for one another.
        """
        return all(np.size(value) <= SHARES for value in self.inport_values)  # type: ignore[attr-defined]

    def leave_off(self, fast: bool) -> bool:
        """Look for the kinks no longer: a signal that rests at a border passes it to and fro by rounding."""
        self._looking = 0.0
        return True

    def _looked_for(self, t: float, u: Sequence[Any], *x: Any, which: int) -> Any:
        return self._looking * self._border(t, u, *x, which=which) + (1.0 - self._looking)

    def _watched(self) -> int:
        """Return how many numbers are to be watched: for each of two limits one of each share of a signal."""
        return 2 * SHARES

    def _border(self, t: float, u: Sequence[Any], *x: Any, which: int) -> Any:
        """Return a number that changes its sign at kinks, of the time, the inputs and, if it needs them, states."""
        raise NotImplementedError


class Switching(Ported):
    """A block that is in one of several modes, and changes it where its input leaves that of the mode.

    Between two events it goes by the mode that it has decided on, so that no stage of a step sees the output jump.
    Where nothing is located the input says at each evaluation which mode it is. Where the input has chattered about a
    border, as one that rests there passes it by rounding, the mode stays until it has left it by more than that.
    """

    _locate = True
    _located = _begins = False
    _mode: float | Array = 0.0
    #: How far beyond a border the mode still stays, and the signal has been where the mode has changed last.
    _rest = 0.0
    _beyond = 0.0, 0.0

    def _decided(self, u: Sequence[Any]) -> Any:
        """Return the mode that the inputs want: a number, or one for each element."""
        raise NotImplementedError

    def _margin(self, t: float, u: Sequence[Any]) -> Any:
        """Return a number that falls below zero where the inputs leave the present mode."""
        raise NotImplementedError

    def _leaving(self, t: float, u: Sequence[Any]) -> Any:
        """Return the margin, which is never zero: on the border the sign is that of what the inputs decide there."""
        margin = self._margin(t, u) + self._rest
        stays = narrowest(either(self._decided(u) - self._mode == 0.0, TINY, -TINY))
        return margin + either(margin == 0.0, stays, 0.0)

    def _size(self, u: Sequence[Any]) -> Any:
        """Return how large the numbers are of which the margin is a difference, in its unit."""
        return self._mode

    def leave_off(self, fast: bool) -> bool:
        """Stay in a mode up to a little beyond its border; tell whether rounding explains that the input leaves it.

        It does not where it goes on leaving it, or no longer so `fast` as what is different at each evaluation.
        """
        reach = max(self._beyond)
        self._rest = _RESTING * reach
        return fast and reach <= _ROUNDING * max(1.0, float(np.max(np.abs(self._size(self.inport_values)))))  # type: ignore[attr-defined]

    def start(self, simstate: Any) -> None:
        """Begin a run: let it look for where the mode changes."""
        super().start(simstate)  # type: ignore[misc]
        self._rest, self._beyond = 0.0, (0.0, 0.0)
        self._begins, self._located = True, self._locate and hasattr(simstate, "declare_crossing_event")
        if self._located:
            Crossing(
                self, simstate, self._leaving, self._switch, decided=True, reset=self._reset,  # type: ignore[arg-type]
                tangents=self._tangents, by_inputs=True,
            )  # fmt: skip

    #: Writes new states where the mode changes, of the inputs: reset(t, x); and theirs, as a `Crossing` has them.
    _reset: Callable[[float, Any], None] | None = None
    _tangents: Callable[..., Any] | None = None

    def mode(self, u: Sequence[Any]) -> Any:
        """Return the mode at an evaluation of the block."""
        if not self._located:
            return self._decided(u)
        if not any(map(is_symbolic, u)) and self._begins:
            self._set(u)
        return self._mode

    def first_mode(self, u: Sequence[Any]) -> Any:
        """Return the mode in which a run begins with some inputs: a number, or one for each element."""
        return np.asarray(self._decided(u), dtype=float)

    def _set(self, u: Sequence[Any]) -> None:
        mode = np.asarray(self._decided(u), dtype=float)
        self._mode, self._begins = mode if mode.ndim else float(mode), False

    def _switch(self, t: float) -> None:
        u = self.inport_values  # type: ignore[attr-defined]
        self._set(u)
        self._beyond = self._beyond[1], abs(float(self._margin(t, u)))

    def memory(self) -> dict[str, Any]:
        """Return what a continued run needs: the mode."""
        return {"mode": np.asarray(self._mode).tolist()}

    def recall(self, memory: Mapping[str, Any]) -> None:
        """Go on from what ``memory`` returned."""
        mode = np.asarray(memory["mode"], dtype=float)
        self._mode, self._begins = mode if mode.ndim else float(mode), False


class Thresholded(Switching):
    """A block whose mode is whether a signal is above its threshold."""

    threshold: float
    #: The port of the signal, and how it is compared.
    _compared: tuple[int, str] = 0, ">"

    def _signal(self, u: Sequence[Any]) -> Any:
        port = self._compared[0]
        return ports.vector(self, port, u[port], 1)[0]  # type: ignore[arg-type]

    def _decided(self, u: Sequence[Any]) -> Any:
        return compared(self._signal(u), self.threshold, self._compared[1])

    def _size(self, u: Sequence[Any]) -> Any:
        return self._signal(u)

    def _margin(self, t: float, u: Sequence[Any]) -> Any:
        return (2.0 * self._mode - 1.0) * (self._signal(u) - self.threshold)
