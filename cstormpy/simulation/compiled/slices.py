"""The compiled function of a diagram, with its memory, and its steps in slices of many."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cstormpy.arrays import Array
from cstormpy.errors import BlockError
from cstormpy.simulation.compiled.program import Program
from cstormpy.simulation.step_control import MAX_FACTOR, MIN_FACTOR, SAFETY
from cstormpy.simulation.tableaus import Tableau
from cstormpy.simulation.wiring import describe

#: Samples and accepted steps in one slice: some milliseconds, after which commands are heard.
_ROOM = 2048
#: Numbers that the samples within one step may take (256 MB): those of a longer one are asked of the blocks.
_MOST = 2**25


class Compiled:
    """A diagram's function of one sample: `rate` fills `xd` and `out`."""

    def __init__(self, program: Program, nstates: int) -> None:
        self.z = np.zeros(program.sampled_size)
        self.nstates = nstates
        self.w = self.out = np.zeros(0)
        self.update(program)

    def update(self, program: Program) -> None:
        """Take another program of the same diagram."""
        function = program.function()
        self.address, self.closing, self.stages = function.address, program.closing_address(), program.stage_address()
        self.program = program
        if self.w.size != program.scratch:
            self.w = np.zeros(program.scratch)
        if self.out.size != program.width:
            self.out = np.zeros(program.width)
        self.xd, self._x = np.zeros(self.nstates), np.zeros(self.nstates)
        given = self._x, self.z, program.p, program.n, self.w, self.out, self.xd
        self._bound = function.bound(*given)

    def sample(self, diagram: Any) -> None:
        """Take over the states of the sampled blocks, and what they hold."""
        fill_samples(self.z, self.program, diagram)

    def rate(self, t: float, x: Array) -> int:
        """Fill the rates `xd` and the signals `out` at a time and a state; return 0, or which block has failed."""
        self._x[:] = x
        failed = self._bound(t)
        if failed:
            self.program.raise_interrupt()
        return failed

    def signal(self, key: tuple[int, int]) -> Array:
        """Return the values of an output after `rate`."""
        first, shape = self.program.columns[key]
        return self.out[first : first + int(np.prod(shape))].reshape(shape)


def fill_samples(z: Array, program: Program, diagram: Any) -> None:
    """Fill z with the states of a diagram's sampled blocks, what they hold, and whether that is computed now."""
    for b, part in program.sampled:
        z[part] = diagram.cells[b][0]
    for b, part in program.held:
        hold = diagram.holds[b]
        held = hold.flat() if hold.values is not None else 0.0
        try:
            z[part] = held
        except ValueError:
            raise BlockError(
                f"{describe(b)}: output() returned {np.size(held)} numbers, {z[part].size} before this; give as many "
                "at each tick"
            ) from None
        z[program.flags[b._clock]] = hold.live


class Taken:
    """The remainder of a slice: samples, ticks, and whether the next step is to be looked at.

    Attributes
    ----------
    times, states, signals : ndarray (N,), (N, nstates), (N, columns)
    ticks : ndarray
        Rows of time, number of the clock, and its states.
    look : bool
    fired : list of int
        Guards that have crossed zero where the last step ends.
    met : ndarray
        Rows of time and guard, of those that have done so on the way where nothing happens.
    """

    def __init__(
        self, times: Array, states: Array, signals: Array, ticks: Array, look: bool, fired: list[int], met: Array
    ) -> None:
        self.times, self.states, self.signals = times, states, signals
        self.ticks, self.look, self.fired, self.met = ticks, look, fired, met


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
        from cstormpy.kernels import dense, rungekutta, stepping
        from cstormpy.kernels.stepping_code import Steps, steps_of

        self.compiled, self.method, self.keys, self._at = compiled, method, keys, rungekutta
        self._advance, self._trial = Steps("advance"), Steps("trial")
        self._went, self._look, self._crossed = stepping.WENT, stepping.LOOK, stepping.CROSSED
        at, n = self._at, compiled.nstates
        self.table, self.dense, kind = tables_of(method)
        self.K = np.zeros((method.stages + dense.K_ROWS, n))
        self._result = method.stages + dense.K_RESULT
        self.how = np.zeros(at.HOW, dtype=np.int64)
        self.how[[dense.STAGES, dense.DENSE, at.ADAPTIVE]] = method.stages, kind, method.adaptive
        self.how[[at.STAGES_CODE, at.ERROR_CODE]] = steps_of(self.table, n)
        self.how[[at.SECOND, at.FINITE, at.MOST]] = method.E3 is not None, finite, _ROOM
        self.at = np.zeros(at.AT)
        self.at[[at.SAFETY, at.MAX_FACTOR, at.MIN_FACTOR]] = SAFETY, MAX_FACTOR, MIN_FACTOR
        self.at[at.EXPONENT] = exponent = -1.0 / (method.error_order + 1)
        # an error that is less than this lets the step grow as far as any may
        self.at[at.NO_ERROR] = 0.5 * (MAX_FACTOR / SAFETY) ** (1.0 / exponent)
        self.x, self.jumps = np.zeros(n), np.zeros(0)
        self.times, self.states = np.zeros(_ROOM + 2), np.zeros((_ROOM + 2, n))
        self.arrange()

    def arrange(self) -> None:
        """Look up where signals, guards and new states stand, after the program has changed."""
        from cstormpy.kernels import event_location

        program, at = self.compiled.program, self._at
        #: Of each output that is recorded: which columns of the samples it takes, and its shape.
        parts_of: list[tuple[slice | int, tuple[int, ...]]] = []
        columns, width = [np.zeros(0, dtype=np.int64)], 0
        for first, shape in (program.columns[key] for key in self.keys):
            size = int(np.prod(shape))
            columns.append(np.arange(first, first + size))
            parts_of.append((slice(width, width + size) if shape else width, shape))
            width += size
        #: Makes the samples (N, ...) of each output that is recorded of those of all columns (N, columns).
        self.split = functools.partial(_split, parts_of)
        self.columns = np.concatenate(columns).astype(np.int64)
        self.signals = np.zeros((self.times.size, self.columns.size))
        guards = program.guards or []
        self.guards = np.array([place for place, _, _ in guards], dtype=np.int64)
        self.sides = np.zeros((event_location.SIDES, len(guards)))
        self.sides[event_location.DIRECTION] = [direction for _, direction, _ in guards]
        self._fired_at, self._crosses_at = self.sides[event_location.FIRED_AT], self.sides[event_location.CROSSES_AT]
        self._left_at, self.bends = self.sides[event_location.LEFT_AT], self.sides[event_location.BENDS]
        self._last_step = self.sides[event_location.PRIOR : event_location.SPAN + 1]
        self.met = np.zeros((_ROOM if len(guards) else 0, 2))
        self.how[[at.COLUMNS, at.CHECKED, at.CLOSED]] = self.columns.size, program.checked, program.closes
        self.how[at.RATES] = self.compiled.stages
        # what is called, as in Python, is called once a tick
        self.how[at.MERGES] = not program.called
        self.parts = parts_of_clocks(program)
        self.clocks = np.zeros((len(self.parts), at.CLOCK))
        widest = int(self.parts[:, at.Z_COUNT].max(initial=0))
        self.ticked = np.zeros((_ROOM if len(self.parts) else 0, 2 + 2 * widest))

    # what the run says before it has steps taken

    def limit(self, rules: Any, same_time: float, jump_width: float, grid: float) -> None:
        """Take over the tolerances of a stepper, when times are the same, and the grid of samples (0: none)."""
        at, row = self._at, self.at
        row[at.RTOL], row[at.ATOL], row[at.LONGEST] = rules.rtol, rules.atol, rules.max_step
        row[at.FIXED] = rules.fixed or rules.max_step
        row[at.SAME_TIME], row[at.JUMP_WIDTH], row[at.GRID] = same_time, jump_width, grid

    def schedule(self, bound: float, last: bool, ends: bool, due: list[tuple[float, int]], jumps: Array) -> None:
        """Say until when to go, whether the run ends there, the next tick of each clock and its number, and jumps.

        `ends` tells whether the end is recorded too, where it is none of a tick or a jump.
        """
        at, self.bound = self._at, bound
        self.at[at.BOUND], self.how[at.LAST], self.how[at.ENDS], self.how[at.JUMP] = bound, last, ends, 0
        self.jumps = jumps
        for k, ((clock, _, _), (when, index)) in enumerate(zip(self.compiled.program.clocks, due, strict=True)):
            self.clocks[k] = when, index, clock.T, clock.offset

    def pending(self) -> tuple[list[tuple[float, int]], Array]:
        """Return the next tick of each clock and its number, and the jumps that are still ahead."""
        return [(float(row[0]), int(row[1])) for row in self.clocks], self.jumps[self.how[self._at.JUMP] :]

    # steps

    def go(self, stepper: Any, earliest: float, crossings: Any, point: int, event: float, bends: int) -> Taken:
        """Step on from where a stepper stands, which is brought to where the last step ends.

        So are the `Crossings`, whose detectors are the guards; `point` is the number of the next point of the grid,
        `event` when the last event was, and `bends` how many may be passed before an event is met.
        """
        at, how, row = self._at, self.how, self.at
        row[at.TIME], row[at.LENGTH], row[at.EARLIEST], row[at.LAST_EVENT] = stepper.t, stepper.h, earliest, event
        how[at.POINT], how[at.STEPS], how[at.TICKED], how[at.COUNT], how[at.MET] = point, 0, 0, 0, 0
        self.x[:], self.K[0], self._fired_at[:] = stepper.x, stepper.fx, crossings.fired_at
        self.sides[0] = np.array(crossings.before, dtype=float)  # None becomes NaN
        self._left_at[:], self._last_step[:] = crossings.left_at, crossings.last_step
        how[at.MOST_MET] = min(bends, len(self.met))
        status, taken = self._stepped()
        while status == self._look and not (how[at.STEPS] or how[at.TICKED]) and self._make_room():
            status, taken = self._stepped()
        if how[at.STEPS] or how[at.TICKED]:
            stepper.t_old = stepper.t = float(row[at.TIME])
            stepper.x_old = stepper.x = self.x.copy()
            stepper.fx, stepper.h = self.K[0].copy(), float(row[at.LENGTH])
            crossings.before = [None if value != value else value for value in self.sides[0].tolist()]
            crossings.last_step[:] = self._last_step
        if how[at.MET]:
            crossings.fired_at, crossings.left_at = self._fired_at.tolist(), self._left_at.tolist()
        fired = np.flatnonzero(~np.isnan(self._crosses_at)).tolist() if status == self._crossed else []
        times, states, signals = self.times[:taken].copy(), self.states[:taken].copy(), self.signals[:taken].copy()
        look = status == self._look and not self._make_room()
        return Taken(times, states, signals, self.ticked[: how[at.TICKED]], look, fired, self.met[: how[at.MET]])

    def _make_room(self) -> bool:
        """Make room for the samples of a grid within the next step; return whether there was too little."""
        at, row = self._at, self.at
        if not row[at.GRID] > 0.0:
            return False
        step = min(row[at.LENGTH] if self.how[at.ADAPTIVE] else row[at.FIXED], row[at.BOUND] - row[at.TIME])
        most = _MOST // (1 + self.x.size + self.columns.size)
        rows = int(min(1.25 * step / row[at.GRID] + 4.0, most + 1.0))
        if not self.times.size < rows <= most:
            return False
        self.times, self.states = np.zeros(rows), np.zeros((rows, self.x.size))
        self.signals = np.zeros((rows, self.columns.size))
        return True

    def go_on(self, t: float, x: Array, end: float, h: float) -> bool:
        """Go on to a time by steps of a fixed length, cut where something is due; return False where one fails.

        The signals and rates are those of (t, x) when it begins. What is due at the end is left. The time, x and the
        clocks tell where it stands then; nothing is kept of the way.
        """
        at, how, row = self._at, self.how, self.at
        row[at.TIME], row[at.BOUND], row[at.FIXED] = t, end, h
        self.x[:], self.K[0] = x, self.compiled.xd
        while row[at.TIME] < end:
            how[at.STEPS] = how[at.TICKED] = how[at.COUNT] = 0
            if self._stepped()[0] != self._went:
                return False
        return True

    def _stepped(self) -> list[int]:
        c, p = self.compiled, self.compiled.program
        return self._advance(
            c.address, c.closing, self.table, self.dense, self.how, self.at, self.x, c.z, p.p, p.n, c.w, c.out, self.K,
            self.guards, self.sides, self.columns, self.clocks, self.parts, self.jumps, self.ticked, self.met,
            self.times, self.states, self.signals,
        )  # fmt: skip

    def trial(self, t: float, x: Array, fx: Array, h: float, earliest: float, latest: float) -> Array | None:
        """Return the state after one step of length h, whose stages then stand in K; None where the diagram failed."""
        at, c, p, row = self._at, self.compiled, self.compiled.program, self.at
        row[at.TIME], row[at.LENGTH], row[at.EARLIEST], row[at.LATEST] = t, h, earliest, latest
        self.x[:], self.K[0] = x, fx
        args = c.address, self.table, self.how, row, self.x, c.z, p.p, p.n, c.w, c.out, self.K
        if self._trial(*args)[0]:
            p.raise_interrupt()
            return None
        return self.K[self._result].copy()

    @property
    def steps(self) -> int:
        """Number of steps of the last slice."""
        return int(self.how[self._at.STEPS])

    @property
    def evaluations(self) -> int:
        """Number of evaluations of the diagram by the last slice."""
        return int(self.how[self._at.COUNT])

    @property
    def tried(self) -> Array:
        """The state at the end of the step that was tried last."""
        return self.K[self._result]

    @property
    def time(self) -> float:
        """The time at which the last step has ended."""
        return float(self.at[self._at.TIME])

    @property
    def earliest(self) -> float:
        """The earliest time for which the diagram may be asked after the last slice."""
        return float(self.at[self._at.EARLIEST])

    @property
    def point(self) -> int:
        """The number of the next point of the grid."""
        return int(self.how[self._at.POINT])


def _split(parts: list[tuple[slice | int, tuple[int, ...]]], signals: Array) -> list[Array]:
    return [
        signals[:, part].reshape(len(signals), *shape) if len(shape) > 1 else signals[:, part] for part, shape in parts
    ]


def parts_of_clocks(program: Program) -> NDArray[np.int64]:
    """Return what the kernels know of the ticks that are translated, a row for each clock: see `kernels.rungekutta`."""
    from cstormpy.kernels.rungekutta import PART

    clocks, flags = program.clocks, program.flags
    holding = {b._clock for b, _ in program.held}
    parts = [
        (part.start, part.stop - part.start, first, flags.get(clock, -1), clock in holding)
        for clock, part, first in clocks
    ]
    return np.array(parts, dtype=np.int64).reshape(len(clocks), PART)


def hand_samples_back(z: Array, program: Program, diagram: Any, simstate: Any) -> None:
    """Give a diagram's blocks the states and outputs that compiled ticks have left in z: see `fill_samples`."""
    for clock, part, _ in program.clocks:
        size = sum(b.ndstates for b in clock.blocklist)
        simstate.clock_states[clock].state = z[part.start : part.start + size].copy()
    for b, part in program.held:
        diagram.holds[b].put(z[part])
    diagram.bind_samples(simstate)


def tables_of(method: Tableau) -> tuple[Array, Array, int]:
    """Return a method's coefficients as compiled steps read them, those of its dense output, and its kind."""
    from cstormpy.kernels import dense as rows

    stages = method.stages
    table = np.zeros((stages + rows.T_ROWS, stages + 1))
    table[: method.A.shape[0], : method.A.shape[1]] = method.A
    table[stages + rows.T_RESULT, :stages] = method.b
    table[stages + rows.T_TIMES, :stages] = method.c
    for row, weights in ((rows.T_ERROR, method.E), (rows.T_SECOND, method.E3)):
        if weights is not None:
            table[stages + row] = weights
    if method.P is not None:
        return table, np.ascontiguousarray(method.P, dtype=float), rows.POLYNOMIAL
    if not method.extra:
        return table, np.zeros((0, 0)), rows.CUBIC
    extra = method.extra
    dense = np.zeros((rows.D_ROWS, extra["A"].shape[1]))
    dense[rows.D_STAGES : rows.D_STAGES + 3] = extra["A"]
    dense[rows.D_TIMES, :3] = extra["c"]
    dense[rows.D_PARTS :] = extra["D"]
    return table, dense, rows.SEVENTH
