"""How states behind an event follow those before it, where a block or a handler of the user writes some.

Our own blocks say it. Handlers of the user are called with other states and numbers than they have, and what else they
change is put back each time.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from bdsim.components import Block

from cstormpy.arrays import Array
from cstormpy.errors import CstormError, DiagramError
from cstormpy.graph.differences import MOVED, differenced_function
from cstormpy.simulation.analysis.parameters import Parameters
from cstormpy.simulation.bdsim_blocks import handler_of
from cstormpy.simulation.compiled.side_effects import Remembered
from cstormpy.simulation.diagram import Diagram
from cstormpy.simulation.events import states_left
from cstormpy.simulation.handlers import Held, handling

#: handle(block, t, x, states): has a block do what it does at an event, which may write into the states.
Handle = Callable[[Any, float, Array, dict[Any, Any]], None]


class Seen(NamedTuple):
    """A signal where an event comes, and how it follows the parameters (size, k)."""

    slot: Any
    tangents: Array


class _Written(NamedTuple):
    """States, and numbers, as a handler of the user leaves them, and how they follow what it had.

    Behind the states (n) stand the numbers of the blocks (m), and those that the parameters are now (k).
    """

    block: Any
    #: (n,)
    x: Array
    #: The derivatives to the states before (n + m + k, n), to what the parameters were (k, n + m + k), and to the
    #: parameters by what else it looked at.
    to_states: Array
    to_values: Array
    by_signals: Array
    #: Whether it sets numbers that follow something.
    sets: bool


class Resets:
    """What the events at which a run stands write into its states.

    Parameters
    ----------
    diagram : Diagram
    simstate : RunState
    parameters : Parameters
    numbers : function
        numbers(): those of the blocks as they are now, as the compiled diagram reads them.
    t, x : float, (n,)
        Where the run stands, before they do.
    fired : sequence of int
        Which of the run's crossing detectors have fired.
    inputs : mapping of int to list of ndarray
        How the inputs of those that write these into states follow the parameters, by the number of the detector.
    seen : list of Seen
        The signals that handlers of the user may look at.
    shift : (k,)
        How the time of the event follows the parameters.
    values : (k, k)
        How the numbers that the parameters are now follow the parameters, of which handlers may have set some.
    remembered : Remembered
        What handlers of the events before remember that follows what they were called with; theirs are added.

    Attributes
    ----------
    by : list of str
        The blocks whose handlers write anything, one after the other.
    values : (k, k)
        The same behind the event.
    numbers : (k, m) or None
        How the numbers of the blocks follow the parameters from now on, where a handler has set some that do.
    recalled : list of str
        The blocks whose handlers write something else where others, or they, had remembered other numbers.
    """

    def __init__(
        self,
        diagram: Diagram,
        simstate: Any,
        parameters: Parameters,
        numbers: Callable[[], Array],
        t: float,
        x: Array,
        fired: Sequence[int],
        inputs: Mapping[int, list[Array]],
        seen: list[Seen],
        shift: Array,
        values: Array,
        remembered: Remembered,
    ) -> None:
        self.values: Array = values
        self.numbers: Array | None = None
        self.recalled: list[str] = []
        self._diagram, self._parameters, self._numbers = diagram, parameters, numbers
        self._t, self._x, self._inputs, self._seen, self._shift = t, x, inputs, seen, shift
        self._fired = [(i, *simstate.crossing_detectors[i]) for i in fired]
        self._written: list[_Written] = []
        self.by: list[str] = []
        self._remembered = remembered

    def handle(self, handle: Handle, block: Any, t: float, x: Array, states: dict[Any, Any]) -> None:
        """Let a block handle its event, after it was seen how the states that a handler of the user writes follow."""
        if not isinstance(block, Block):  # a crossing of a block of ours
            handle(block, t, x, states)
            return
        follows = self._try(handle, block, t, states_left(self._diagram, states))
        handle(block, t, x, states)
        if follows:  # as they are now
            self._remembered.update(follows.common(_memory(block)))

    def carry(self, dx: Array, x: Array) -> tuple[Array, Array]:
        """Return how the states x behind follow the parameters (k, n), as those before do at the time of the event.

        And the states as they were written, of which some may be beyond their bounds.
        """
        now, dx, written = self._x.copy(), dx.copy(), self._written
        if np.array_equal(now, x) and not self._inputs and not written:
            return dx, now
        parts = dict(self._diagram.continuous)
        for i, detector, block in self._fired:
            if written and written[0].block is block:
                own = written.pop(0)
                n, follow = len(x), dx @ own.to_states.T + self.values @ own.to_values + own.by_signals
                dx, now = follow[:, :n], own.x.copy()
                if own.sets:
                    self.numbers, self.values = np.split(follow[:, n:], [-len(follow)], axis=1)
            elif getattr(detector, "tangents", None) is not None:
                part = parts[detector.block]
                now[part], dx[:, part] = self._by_tangents(i, detector, now[part].copy(), dx[:, part].T, x[part])
        if not np.array_equal(self._diagram.bounds.within(now), x):
            names = " and ".join(dict.fromkeys(str(block.name) for _, _, block in self._fired))
            raise DiagramError(
                f"gradient: the event of {names or 'a block'} at t = {self._t:.9g} resets states, and how they follow "
                "the states before is not known; end the horizon before it"
            )
        return dx, now

    def _by_tangents(self, i: int, detector: Any, before: Array, dx: Array, after: Array) -> tuple[Array, Array]:
        """Return the states of a block of ours behind its event, and how they follow the parameters."""
        if i in self._inputs:
            return after, detector.tangents(self._t, before, dx, self._inputs[i]).T

        def reset() -> Array:
            found = before.copy()
            detector.reset(self._t, found)
            return found

        own = self._parameters.slopes(reset)
        return reset(), detector.tangents(self._t, before, dx).T + self.values @ own

    def _try(self, handle: Handle, block: Any, t: float, x: Array) -> Remembered:
        """Note what a handler writes, and how that follows the rest, if it writes any states or numbers.

        Return which of the numbers that it remembers follow the states and the time.
        """
        memories: list[Remembered] = []

        def left(x: Array, time: float = t, memorise: bool = False) -> Array:
            states = self._diagram.states_by_block(x.copy())
            try:
                handle(block, time, x, states)
                if memorise:
                    memories.append(_memory(block))
                return np.concatenate([states_left(self._diagram, states), self._numbers(), self._parameters.get()])
            except CstormError as error:
                raise ValueError(str(error)) from error
            finally:
                held.restore()

        held, n = Held(handling([block])), len(x)
        numbers = np.concatenate([self._numbers(), self._parameters.get()])
        aside = x + MOVED * np.maximum(1.0, np.abs(x)) * np.cos(np.arange(n))
        try:
            now, follows = left(x, memorise=True), Remembered()
            with contextlib.suppress(ValueError):  # which the differences tell, if there are any
                left(aside, t + MOVED * max(1.0, abs(t)), memorise=True)
                follows = memories[1].differing(memories[0])
            with self._remembered.moved(MOVED):
                self.recalled += [str(block.name)] * (not np.array_equal(now, left(x), equal_nan=True))
            if all(np.array_equal(left(each), np.concatenate([each, numbers])) for each in (x, aside)):
                return follows
            after, slopes = differenced_function(left, (x,), (np.eye(n),))
            by_signals = self._by_signals(lambda time: left(x, time), after.size)
            own = self._parameters.slopes(lambda: left(x))
        except ValueError as error:
            raise DiagramError(
                f"gradient: how the states that the event of {block.name} at t = {t:.9g} resets follow those before is "
                f"not known: {error}; end the horizon before it"
            ) from error
        still = self._parameters.slopes(lambda: np.concatenate([self._numbers(), self._parameters.get()]))
        sets = slopes[n:].any() or by_signals[:, n:].any() or not np.array_equal(own[:, n:], still)
        self.by.append(str(block.name))
        self._written.append(_Written(block, after[:n], slopes, own, by_signals, bool(sets)))
        return follows

    def _by_signals(self, left: Callable[[float], Array], size: int) -> Array:
        """Return how what a handler leaves follows the parameters (k, size) by the time and signals it looks at."""
        if not self._seen and not self._shift.any():
            return np.zeros((1, size))
        before = [slot.value for slot, _ in self._seen]

        def seen(time: Any, *values: Any) -> Array:
            for (slot, _), value, old in zip(self._seen, values, before, strict=True):
                slot.value = value if isinstance(old, np.ndarray) else float(value)
            try:
                return left(float(time))
            finally:
                for (slot, _), old in zip(self._seen, before, strict=True):
                    slot.value = old

        values = tuple(np.asarray(old, dtype=float) for old in before)
        along = [tangents.reshape(*v.shape, -1) for (_, tangents), v in zip(self._seen, values, strict=True)]
        return np.asarray(differenced_function(seen, (np.array(self._t), *values), (self._shift, *along))[1]).T


def _memory(block: Any) -> Remembered:
    """Return the numbers that the function of a block, or the block, has left anywhere."""
    return Remembered([vars(each) for each in handling([block]) if handler_of(each) is not None])
