"""Runge-Kutta steps of a diagram with tangents along several directions, in Python or by the kernel `propagate`."""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cstormpy.arrays import Array
from cstormpy.kernels.event_location import crossed
from cstormpy.simulation.compiled.program import Program, beginning_of
from cstormpy.simulation.compiled.slices import parts_of_clocks, tables_of
from cstormpy.simulation.events import Event
from cstormpy.simulation.recording import Signal
from cstormpy.simulation.tableaus import Tableau

#: So little of a step beside an event at its end is on one side of a kink there, and most trials of more.
_ASIDE, _TRIALS = 1e-6, 12
#: At so many places of a run it is seen, by so many products with the matrix of the rates' derivatives, whether steps
#: are longer than this part of those that are stable; they are cut into so many parts at most.
_LOOKS, _PRODUCTS, _STABLE, _PARTS = 6, 8, 0.75, 64
#: It is left at that after so few products none of which has grown by this part of what matters.
_FEW, _FAR = 3, 0.1


def halved(ends: Array) -> Array:
    """Return the ends of steps and the middles between them."""
    return np.sort(np.append(ends, 0.5 * (ends[1:] + ends[:-1])))


class Steps:
    """The function of a diagram with tangents, with its memory.

    Tangents stand in rows, one for each direction: dx (k, n), dz (k, nz), dp (k, np).

    Parameters
    ----------
    program : Program
        What is integrated.
    compiled : bool
        Whether compiled steps call its function with tangents.
    method : Tableau
    dp : ndarray, (k, np)
    nstates : int
    kinks : list of bool
        Of each guard whether nothing is done where it changes its side, but that a step ends.
    """

    def __init__(
        self, program: Program, compiled: bool, method: Tableau, dp: Array, nstates: int, kinks: list[bool]
    ) -> None:
        self.program, self.compiled, self.method = program, compiled, method
        self.function = program.change(in_python=not compiled)
        self.dp = dp
        count, stages = len(dp), method.stages
        self.z, self.dz = np.zeros(program.sampled_size), np.zeros((count, program.sampled_size))
        self.w, self.out = np.zeros(program.scratch), np.zeros(program.width)
        self.dw = np.zeros((count + 1, program.scratch))
        self.dout = np.zeros((count, program.width))
        self.K, self.dK = np.zeros((stages + 2, nstates)), np.zeros((count, stages + 2, nstates))
        self.bounds = np.array([-math.inf, math.inf])
        watched = [place for place, _, _ in program.guards or []] + [place for place, _, _ in program.switches]
        self.guards = np.array(watched, dtype=np.int64)
        self.kinks = np.array(kinks, dtype=bool)
        self.table = tables_of(method)[0]
        #: What compiled ticks do, and room for what stands in z, and its tangents, before them.
        self.parts, self._before = parts_of_clocks(program), (self.z.copy(), self.dz.copy())
        #: Whether ticks at the end of the last step taken are still to be done.
        self.waits = False
        #: Tangents along no number, and room for those of the signals.
        self._nothing = np.zeros((1, self.z.size)), np.zeros((1, program.p.size)), np.zeros((1, self.out.size))
        #: Where signals have been asked for last, what they are there, and which of them have been told since.
        self._point: tuple[float | bytes, ...] = ()
        self._signals, self._told = self.out, set[int]()
        #: Where the arrays stand that are the same in all calls.
        self._places = [beginning_of(a) for a in (self.z, program.p, program.n, self.w, self.out)]

    def clamped(self, t: float) -> float:
        """Return the time that the blocks are given."""
        return float(min(max(t, self.bounds[0]), self.bounds[1]))

    def evaluate(self, t: float, x: Array, dx: Array, dt: Array | None = None) -> tuple[int, Array, Array]:
        """Return the status, rates and their tangents at a point; `out` and `dout` hold the signals and theirs.

        `dt` (k,) are those of the time; it stands still unless they are given.
        """
        rate, drate = np.zeros(x.size), np.zeros((len(dx), x.size))
        still = np.zeros(len(dx)) if dt is None else dt
        return self._call(t, x, rate, still, dx, self.dz, self.dp, self.dout, drate), rate, drate

    def rate_at(self, t: float, x: Array) -> Array:
        """Return the rates at a point without tangents; `out` holds the signals."""
        rate = np.zeros(x.size)
        self._call(t, x, rate, np.zeros(1), np.zeros((1, x.size)), *self._nothing, np.zeros((1, x.size)))
        return rate

    def signal(self, place: int, t: float, x: Array) -> float:
        """Return one of the signals at a point; those asked for one after the other there are evaluated together."""
        numbers = x, self.z, self.program.p, self.program.n
        point: tuple[float | bytes, ...] = (self.clamped(t), *[a.tobytes() for a in numbers])
        if point != self._point or place in self._told:  # again: what Python is asked for may be another now
            self.rate_at(t, x)
            self._point, self._signals, self._told = point, self.out.copy(), set()
        self._told.add(place)
        return float(self._signals[place])

    def without_tangents(self) -> Steps:
        """Return the same steps, with one tangent that stays where it is, where only states and signals are wanted."""
        found = copy.copy(self)
        found.dz, found.dp, found.dout = self._nothing
        found.dK = np.zeros((1, *self.K.shape))
        found._before = self._before[0], found.dz.copy()
        return found

    def forget(self, guard: int) -> None:
        """Look no more at a guard."""
        self.guards, self.kinks = np.delete(self.guards, guard), np.delete(self.kinks, guard)

    def evaluate_along(self, t: float, x: Array, rate: Array) -> tuple[Array, Array]:
        """Return how the signals and the rates change as time goes on."""
        drate = np.zeros((1, x.size))
        dz, dp, dout = self._nothing
        dout[:] = 0.0
        self._call(t, x, np.zeros(x.size), np.ones(1), rate[None, :], dz, dp, dout, drate)
        return dout[0].copy(), drate[0]

    def short_enough(self, ends: Array, t: Array, x: Array) -> Array:
        """Return the ends of steps, cut where they would not have die away what dies away fast at times and states.

        A solver that chooses its steps lets this grow up to its tolerance, from next to nothing; but tangents, of which
        it knows nothing, grow by the same factor from where they are.
        """
        steps, most = np.diff(ends), _STABLE * self.method.reach
        if len(t) < 2 or not steps.size:
            return ends
        looks = np.unique(np.linspace(0, len(t) - 2, _LOOKS, dtype=int))
        fastest = np.array([self._fastest(float(t[k]), x[k], most / float(steps.max())) for k in looks])
        behind = np.searchsorted(t[looks], ends[:-1], "right").clip(1, len(looks))
        here = np.maximum(fastest[behind - 1], fastest[np.minimum(behind, len(looks) - 1)])
        parts = np.ceil(steps * here / most).clip(1, _PARTS).astype(int)
        last = np.cumsum(parts)
        which = np.repeat(np.arange(len(steps)), parts)
        within = np.arange(last[-1]) - (last - parts)[which] + 1
        found = ends[which] + within * (steps / parts)[which]
        found[last - 1] = ends[1:]
        return np.append(ends[:1], found)

    def _fastest(self, t: float, x: Array, least: float) -> float:
        """Return about how fast rates follow the states at most, by powers of the matrix of their derivatives.

        Zero where they are far slower than `least`, as few of these show.
        """
        direction, growths = np.cos(np.arange(1.0, x.size + 1.0)), []
        for _ in range(_PRODUCTS):
            drate = np.zeros((1, x.size))
            along = (direction / np.linalg.norm(direction))[None]
            if self._call(t, x, np.zeros(x.size), np.zeros(1), along, *self._nothing, drate):
                return 0.0
            direction = drate[0]
            growths.append(float(np.linalg.norm(direction)))
            if not 0.0 < growths[-1] < math.inf or (len(growths) == _FEW and max(growths) < _FAR * least):
                return 0.0
        return math.sqrt(growths[-1] * growths[-2])  # of positions and rates each grows in its turn

    def _call(
        self, t: float, x: Array, rate: Array, dt: Array, dx: Array, dz: Array, dp: Array, dout: Array, drate: Array
    ) -> int:
        at, along = self.clamped(t), np.ascontiguousarray(dx)
        rows = [(beginning_of(a), a.strides[0]) for a in (along, dz, dp, self.dw, dout, drate)]
        given = beginning_of(x), *self._places, beginning_of(rate)
        for j, along_time in enumerate(dt.tolist()):
            status = self.function(at, *given, along_time, *[first + j * step for first, step in rows])
            if status:
                self.dw[:] = 0.0
                return status
        return 0

    def advance(
        self,
        times: Array,
        x: Array,
        dx: Array,
        sides: Array,
        columns: NDArray[np.int64],
        first: tuple[Array, Array] | None = None,
        due: NDArray[np.int64] | None = None,
    ) -> tuple[int, list[Array]]:
        """Take steps to the times behind the first; return how many, and states, signals and tangents after each.

        A step within which a guard changes its side, or that is not finite, is not taken; x and dx stand before it.
        `first` are the rates at the beginning, and their tangents, where they are known: see `begin`. The bits of `due`
        say which of the clocks whose ticks are translated tick at each of the times, of compiled steps.
        """
        self.waits = False
        count, n, k = len(times) - 1, x.size, len(dx)
        kept = [np.zeros((count, n)), np.zeros((count, k, n)), np.zeros((count, columns.size))]
        kept.append(np.zeros((count, k, columns.size)))
        if first is not None:
            self.K[0], self.dK[:, 0] = first
        elif self.begin(times, x, dx, sides):
            return 0, kept
        if not count:
            return 0, kept
        if self.compiled:
            due = np.zeros(len(times), dtype=np.int64) if due is None else due
            taken = self._compiled_steps(times, x, dx, sides, columns, kept, due)
        else:
            taken = self._plain_steps(times, x, dx, sides, columns, kept)
        return taken, [part[:taken] for part in kept]

    def begin(self, times: Array, x: Array, dx: Array, sides: Array) -> int:
        """Evaluate the first stage; where an event has just been, with the slopes of the side that is ahead.

        On which sides of their kinks blocks are from there on is written into sides: they may be at others soon.
        """
        status, self.K[0], self.dK[:, 0] = self.evaluate(times[0], x, dx)
        if not status and len(times) > 1 and np.isnan(sides[0]).any():
            ahead = _ASIDE * (times[1] - times[0])
            _, _, self.dK[:, 0] = self.evaluate(times[0] + ahead, x + ahead * self.K[0], dx)
            now = self.out[self.guards]
            known = np.isnan(sides[0]) & self.kinks & (now != 0.0)
            sides[0][known] = now[known]
        return status

    def tangents_to_event(self, t: float, end: float, x: Array, dx: Array, sides: Array, jumped: list[int]) -> Array:
        """Return the tangents at a time at which guards have just changed sides, by the slopes of the side before.

        Stages at the end of the step are about where the guards are zero, on either side by chance. Those that have
        jumped across do not tell how far a stage is beyond it.
        """
        self.begin(np.array([t, end]), x, dx, sides)
        kept_to = sides.copy()
        kept_to[0, jumped] = math.nan
        return self._step(t, end, x, dx, kept_to)[2]

    def _step(
        self,
        t: float,
        end: float,
        x: Array,
        dx: Array,
        kept_to: Array | None = None,
        watched: Array | None = None,
    ) -> tuple[int, Array, Array]:
        """Return the status, states and tangents at the end of a step whose first stage is known.

        Tangents of the rates are taken where the guards are on the sides that are to be kept to, if any. It ends at a
        stage that is beyond a guard that counts there, of the sides that are watched, if any.
        """
        method, stages, h = self.method, self.method.stages, end - t
        for s in range(1, stages + 1):
            weights, when = (method.A[s, :s], t + method.c[s] * h) if s < stages else (method.b, end)
            stage = x + h * (weights @ self.K[: len(weights)])
            dstage = dx + h * np.einsum("j,kji->ki", weights, self.dK[:, : len(weights)])
            status, self.K[s], self.dK[:, s] = self.evaluate(when, stage, dstage)
            if status:
                break
            if s < stages and watched is not None and (self.crossed(watched) & (watched[2] != 0.0)).any():
                return 1, stage, dstage
            if kept_to is not None and s < stages:
                self._keep_to(kept_to, s, (t, x), (when, stage), dstage)
        return status, stage, dstage

    def crossed_at_stages(self, t: float, end: float, x: Array, sides: Array) -> list[int]:
        """Return the guards that count at stages and have changed their sides at one of the step just taken."""
        method, h, found = self.method, end - t, np.zeros(self.guards.size, dtype=bool)
        self.K[0] = self.rate_at(t, x)
        for s in range(1, method.stages):
            self.rate_at(t + method.c[s] * h, x + h * (method.A[s, :s] @ self.K[:s]))
            found |= self.crossed(sides) & (sides[2] != 0.0)
        return np.flatnonzero(found).tolist()

    def _keep_to(
        self, sides: Array, s: int, begin: tuple[float, Array], stage: tuple[float, Array], dstage: Array
    ) -> None:
        """Take the tangents of a stage that is beyond a border anew from before it, on the straight way there."""
        share = 1.0
        for trial in range(_TRIALS):
            beyond = self.crossed(sides)
            if not beyond.any():
                return
            before, after = sides[0][beyond], self.out[self.guards][beyond]
            share *= float(np.min(before / (before - after))) * (1.0 - min(0.5, _ASIDE * 4.0**trial))
            when, x = begin[0] + share * (stage[0] - begin[0]), begin[1] + share * (stage[1] - begin[1])
            _, _, self.dK[:, s] = self.evaluate(when, x, dstage)

    def _compiled_steps(
        self,
        times: Array,
        x: Array,
        dx: Array,
        sides: Array,
        columns: NDArray[np.int64],
        kept: list[Array],
        due: NDArray[np.int64],
    ) -> int:
        from cstormpy.kernels import rungekutta
        from cstormpy.kernels.compiling import address_of
        from cstormpy.kernels.entries_propagation import WAITS, propagate

        p, at = self.program, np.zeros(rungekutta.AT)
        at[rungekutta.EARLIEST], at[rungekutta.LATEST] = self.bounds
        states, dstates, signals, dsignals = kept
        how, taken = propagate.load()(
            address_of(self.function), self.table, at, times, x, dx, self.z, self.dz, p.p, self.dp, p.n, self.w,
            self.dw, self.out, self.dout, self.K, self.dK, self.guards, sides, columns, states, dstates,
            signals, dsignals, due, self.parts, *self._before,
        )  # fmt: skip
        self.waits = how == WAITS
        return int(taken)

    def _plain_steps(
        self, times: Array, x: Array, dx: Array, sides: Array, columns: NDArray[np.int64], kept: list[Array]
    ) -> int:
        stages = self.method.stages
        states, dstates, signals, dsignals = kept
        for taken, (t, end) in enumerate(zip(times[:-1].tolist(), times[1:].tolist(), strict=True)):
            status, stage, dstage = self._step(t, end, x, dx, watched=sides)
            if status or not np.isfinite(self.out).all() or self.crossed(sides).any():
                return taken
            x[:], dx[:] = stage, dstage
            self.K[0], self.dK[:, 0] = self.K[stages], self.dK[:, stages]
            sides[0] = self.out[self.guards]
            states[taken], dstates[taken] = stage, dstage
            signals[taken], dsignals[taken] = self.out[columns], self.dout[:, columns]
        return len(times) - 1

    def crossed(self, sides: Array) -> NDArray[np.bool_]:
        """Tell which guards have changed their sides, in their directions."""
        before, now = sides[0], self.out[self.guards]
        found = np.sign(before) != np.sign(now)  # of many guards few are looked at closely
        for k in np.flatnonzero(found).tolist():
            found[k] = crossed(before[k], now[k], sides[1, k])
        return found


@dataclass
class Trajectory:
    """A run with its derivatives to k parameters.

    Attributes
    ----------
    t : ndarray, (N,)
    dt : ndarray, (N, k)
        How the times of the samples follow the parameters: those on both sides of a source's jump, or of an event, go
        with it, and the last one with the event at which a block stops the run.
    x, dx : ndarray, (N, n), (N, k, n)
    rate : ndarray, (n,)
        Rates of the states at the end.
    samples : dict of str to (float, ndarray (k,))
        Sampled states at the end, and what is held there, each with its derivatives, by name.
    signals : list of Signal
        Those that were watched.
    y, dy : list of ndarray, each (N, ...), (N, k, ...)
    events : list of Event
        Zero crossings that were met, whose share in the derivatives is in them.
    shifts : list of ndarray (k,)
        How their times follow the parameters.
    differenced : list of (str, str)
        Blocks whose derivatives are differences, and what in them.
    notes : list of str
        What the derivatives leave out.
    meetings : list of Event
        Those that came together and move apart with the parameters.
    status, message : str
        How it ended.
    ends : ndarray, optional
        Where its steps ended, where these were given.
    """

    t: Array
    dt: Array
    x: Array
    dx: Array
    rate: Array
    samples: dict[str, tuple[float, Array]]
    signals: list[Signal]
    y: list[Array]
    dy: list[Array]
    events: list[Event]
    shifts: list[Array]
    differenced: list[tuple[str, str]]
    notes: list[str]
    meetings: list[Event]
    status: str
    message: str
    ends: Array | None = None
