"""The compiled function of a diagram, with its memory, and its steps in slices of many."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from cstormpy.simulation.compiled.program import Program
from cstormpy.simulation.compiled.registry import NotTranslated
from cstormpy.simulation.step_control import MAX_FACTOR, MIN_FACTOR, SAFETY
from cstormpy.simulation.tableaus import Tableau

__all__ = ["Compiled", "Slices"]

Array = NDArray[np.float64]
#: Accepted steps in one slice: some milliseconds, after which commands are heard.
_ROOM = 2048
#: Programs whose functions are kept ready.
_KEPT = 64


class Compiled:
    """A diagram's function of one sample: `rate` fills `xd` and `out`."""

    #: Functions that are ready, by what tells their programs apart: of this process, whatever the diagram.
    _functions: ClassVar[dict[tuple[str, str], Callable[..., int]]] = {}

    def __init__(self, program: Program, nstates: int) -> None:
        self.program = program
        self.function = self._ready(program)
        self.z = np.zeros(program.sampled_size)
        self.w = np.zeros(program.scratch)
        self.out = np.zeros(program.width)
        self.nstates = nstates

    @classmethod
    def _ready(cls, program: Program) -> Callable[..., int]:
        from cstormpy.kernels.steppers_generated import Refused, compiled

        function = cls._functions.get(program.key)
        if function is None:
            digest, lasting = program.fingerprint
            try:
                function = compiled(program.source, program.calls, program.functions, digest if lasting else None)
            except Refused as refused:
                reason = f"numba does not compile its function: {refused}"
                raise NotTranslated([(program.owners[refused.name], reason)]) from refused
            while len(cls._functions) >= _KEPT:
                cls._functions.pop(next(iter(cls._functions)))
            cls._functions[program.key] = function
        return function

    def update(self, program: Program) -> None:
        """Take other numbers, or another program of the same diagram."""
        if program.key != self.program.key:
            self.function = self._ready(program)
        self.program = program
        if self.w.size != program.scratch:
            self.w = np.zeros(program.scratch)
        if self.out.size != program.width:
            self.out = np.zeros(program.width)

    def sample(self, cells: dict[Any, list[Any]]) -> None:
        """Take over the states of the sampled blocks."""
        for b, part in self.program.sampled:
            self.z[part] = cells[b][0]

    def rate(self, t: float, x: Array, xd: Array) -> int:
        """Fill the rates and the signals at a time and a state; return 0, or the number of the block that failed."""
        p = self.program
        return int(self.function(t, x, self.z, p.p, p.n, self.w, self.out, xd))

    def signal(self, key: tuple[int, int]) -> Array:
        """Return the values of an output after `rate`."""
        first, shape = self.program.columns[key]
        return self.out[first : first + int(np.prod(shape))].reshape(shape)


class Slices:
    """Steps of an explicit method, many at once.

    Parameters
    ----------
    compiled : Compiled
    method : Tableau
    keys : list
        Id of the block and port of each output to be recorded.
    finite : bool
        Whether signals that are not finite end a slice.
    """

    def __init__(self, compiled: Compiled, method: Tableau, keys: list[tuple[int, int]], finite: bool) -> None:
        from cstormpy.kernels import entries_stepping as stepping

        self.compiled, self.method, self.keys, self._at = compiled, method, keys, stepping
        self._advance = stepping.advance.load()
        stages, n = method.stages, compiled.nstates
        self.table = np.zeros((stages + stepping.T_ROWS, stages + 1))
        self.table[: method.A.shape[0], : method.A.shape[1]] = method.A
        self.table[stages + stepping.T_RESULT, :stages] = method.b
        self.table[stages + stepping.T_TIMES, :stages] = method.c
        for row, weights in ((stepping.T_ERROR, method.E), (stepping.T_SECOND, method.E3)):
            if weights is not None:
                self.table[stages + row] = weights
        self.K = np.zeros((stages + stepping.K_ROWS, n))
        self.how = np.zeros(stepping.HOW, dtype=np.int64)
        self.how[stepping.STAGES] = stages
        self.how[stepping.ADAPTIVE] = method.adaptive
        self.how[stepping.SECOND] = method.E3 is not None
        self.how[stepping.FINITE] = finite
        self.at = np.zeros(stepping.AT)
        self.at[[stepping.SAFETY, stepping.MAX_FACTOR, stepping.MIN_FACTOR]] = SAFETY, MAX_FACTOR, MIN_FACTOR
        self.at[stepping.EXPONENT] = -1.0 / (method.error_order + 1)
        self.x = np.zeros(n)
        self.times, self.states = np.zeros(_ROOM), np.zeros((_ROOM, n))
        self.arrange()

    def arrange(self) -> None:
        """Look up where signals and guards stand, after the program has changed."""
        program, at = self.compiled.program, self._at
        spans = [(program.columns[key][0], int(np.prod(program.columns[key][1]))) for key in self.keys]
        columns = [np.arange(first, first + size) for first, size in spans]
        self.columns = np.concatenate([np.zeros(0, dtype=np.int64), *columns]).astype(np.int64)
        self.signals = np.zeros((_ROOM, self.columns.size))
        guards = program.guards or []
        self.guards = np.array([place for place, _, _ in guards], dtype=np.int64)
        self.sides = np.zeros((2, len(guards)))
        self.sides[1] = [direction for _, direction, _ in guards]
        self.how[at.GUARDS], self.how[at.COLUMNS] = len(guards), self.columns.size

    def go(self, stepper: Any, bound: float, earliest: float, latest: float, before: list[float]) -> tuple[int, bool]:
        """Step on from where a stepper stands; return how many steps were taken and whether the next is to be seen.

        The stepper is brought to where the last of them ends. `before` holds the guards there, before and after.
        """
        at, c, p = self._at, self.compiled, self.compiled.program
        row = self.at
        row[at.TIME], row[at.LENGTH], row[at.BOUND] = stepper.t, stepper.h, bound
        row[at.RTOL], row[at.ATOL], row[at.LONGEST] = stepper.rtol, stepper.atol, stepper.max_step
        row[at.EARLIEST], row[at.LATEST] = earliest, latest
        row[at.FIXED] = stepper.fixed or stepper.max_step
        self.x[:], self.K[0], self.sides[0] = stepper.x, stepper.fx, before
        status, taken = self._advance(
            c.function, self.table, self.how, row, self.x, c.z, p.p, p.n, c.w, c.out, self.K, self.guards, self.sides,
            self.columns, self.times, self.states, self.signals,
        )  # fmt: skip
        if taken:
            stepper.t_old = stepper.t = float(row[at.TIME])
            stepper.x_old = stepper.x = self.x.copy()
            stepper.fx, stepper.h = self.K[0].copy(), float(row[at.LENGTH])
            before[:] = self.sides[0].tolist()
        return taken, status == at.LOOK

    @property
    def evaluations(self) -> int:
        """How often the diagram was evaluated by all slices."""
        return int(self.how[self._at.COUNT])

    def recorded(self, taken: int) -> list[Array]:
        """Return the samples (taken, ...) of each output that is recorded."""
        out, first = [], 0
        for key in self.keys:
            shape = self.compiled.program.columns[key][1]
            size = int(np.prod(shape))
            out.append(self.signals[:taken, first : first + size].reshape(taken, *shape).copy())
            first += size
        return out
