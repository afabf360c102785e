"""Operating points: states and signals at which chosen rates vanish and chosen outputs have their values."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from bdsim.block import Block
from numpy.typing import NDArray

from cstormpy.arrays import Array
from cstormpy.errors import CstormError, InvalidType, InvalidValue, shown
from cstormpy.reporting import notice
from cstormpy.simulation.analysis.analysis_start import started
from cstormpy.simulation.analysis.conditions import Conditions, asked_of_outputs, conditions_of
from cstormpy.simulation.analysis.linear import captions_of, chosen_inputs
from cstormpy.simulation.analysis.model import (
    Input,
    Jacobians,
    checked,
    labels,
    make_model,
    numbers_of,
    standing_in,
)
from cstormpy.simulation.analysis.ports import feed_open_inputs
from cstormpy.simulation.analysis.sampled import deciding, switch_at
from cstormpy.simulation.bdsim_blocks import handler_of
from cstormpy.simulation.named_states import continuous_parts, numbers, state_places
from cstormpy.simulation.wiring import describe

#: Largest residual, as part of one plus the largest rate at the start, that counts as none; of a condition whose value
#: and slopes are all less than one it is that part of the largest of them, which counts as so much at least: what is
#: smaller may be rounding.
REACHED, _LEAST = 1e-9, 1e-5
#: What is at most this part of the largest number is printed as zero.
_ROUNDING = 1e-14
#: What has no slope larger than this part of the largest is not felt.
_FELT = 1e-12
#: The first implicit step [s] by which a diagram comes to rest where a search fails, and how many there are at most.
_FIRST_STEP, _MOST_STEPS = 0.02, 400
#: So many Newton steps refine what a search has found, at most.
_REFINED = 20
#: Their last one is this part of how far from zero a variable is, or of this much of one that is near.
_SETTLED, _NEAR = 1e-3, 1e-6
#: So often a search goes on where blocks have switched at the point that it has found.
_MOST_MODES = 8


@dataclass(frozen=True, eq=False)
class OperatingPoint:
    """The result of `Simulation.trim`.

    Attributes
    ----------
    x : ndarray, (n,)
        States, as for ``sim.run(bd, start=point.x)``; ``sim.linearize(bd, point)`` takes states and signals.
    u : ndarray, (m,)
        Values of the signals that were chosen freely, one behind the other.
    states, inputs, names : tuple of str
        Names of the states, of the ports of these signals, and of the numbers in u.
    success : bool
        Whether nothing remains. Sampled states do not count: they are held, and may change at the next tick.
    message : str
    residual : dict of str to float
        What remains of each condition: the rate of a state, by its name, or an output less its value.
    t : float
    differenced : tuple of (str, str)
        As in `LinearModel`.
    held : tuple of str
        Sampled blocks, whose states are held at what they are.
    left_out : dict of str to float
        Rates that were left out, as nobody asked for them and no other block takes the state: what they are.
    captions : mapping of str to str
        What is printed for `names`, as in `LinearModel`.
    """

    x: Array
    u: Array
    states: tuple[str, ...]
    inputs: tuple[str, ...]
    names: tuple[str, ...]
    success: bool
    message: str
    residual: dict[str, float]
    t: float
    differenced: tuple[tuple[str, str], ...]
    held: tuple[str, ...] = ()
    left_out: dict[str, float] = field(default_factory=dict)
    captions: Mapping[str, str] = field(default_factory=dict)
    #: The values u by the ports in `inputs`.
    given: dict[str, Array] = field(default_factory=dict)

    def __repr__(self) -> str:
        """Return states, signals and what remains; what rounding leaves of a zero is one."""
        called = [*self.states, *(self.captions.get(name, name) for name in self.names)]
        values = np.concatenate([self.x, self.u])
        values[np.abs(values) <= _ROUNDING * np.abs(values).max(initial=0.0)] = 0.0
        lines = [f"  {name} = {value:.9g}" for name, value in zip(called, values, strict=True)]
        return "\n".join([self.message, *lines])


class _Bounded:
    """States with limits, as INTEGRATOR's, that are to stay: within them, or at one that their rates point out of.

    With c(v) the nearest value within the limits, c(x + ẋ) - x takes the place of the rate ẋ [1/s]: it is that within
    them, and nothing where a state stays, and only there (Facchinei and Pang 2003, the natural map of 1.5.8).
    """

    def __init__(self, bounds: Any, wanted: Conditions) -> None:
        resting = wanted.rates[wanted.wanted == 0.0]
        chosen = [b for b in bounds if b.place in resting]
        self.places = np.array([b.place for b in chosen], dtype=np.intp)
        self.low, self.high = np.array([b.low for b in chosen]), np.array([b.high for b in chosen])

    def limited(self, j: Jacobians, x: Array) -> tuple[Jacobians, Array]:
        """Return rates, outputs and derivatives with those in place of the rates, and the state at its limits.

        In it those whose rates lead beyond a limit, and those beyond one, are at that limit.
        """
        at, ends = x[self.places], self.within(x)
        towards = at + j.rate[self.places]
        inside = np.clip(towards, self.low, self.high)
        beyond = inside != towards
        if not beyond.any():
            return j, ends
        rate, A, B = j.rate.copy(), j.A.copy(), j.B.copy()
        stopped = self.places[beyond]
        rate[stopped], A[stopped], B[stopped] = (inside - at)[beyond], 0.0, 0.0
        A[stopped, stopped], ends[stopped] = -1.0, inside[beyond]
        return replace(j, rate=rate, A=A, B=B), ends

    def within(self, x: Array) -> Array:
        """Return a state within its limits."""
        found = x.copy()
        found[self.places] = np.clip(x[self.places], self.low, self.high)
        return found

    def driven(self, j: Jacobians, x: Array) -> Array:
        """Return a state at the limits to which its rates lead, where there are such."""
        found, at, rate = x.copy(), x[self.places], j.rate[self.places]
        end = np.where(rate > 0.0, self.high, np.where(rate < 0.0, self.low, at))
        found[self.places] = np.where(np.isfinite(end), end, at)
        return found


def trim(
    sim: Any, bd: Any, x: Any, *, t: float, inputs: Any, u: Any, hold: Any, rates: Any, outputs: Any
) -> OperatingPoint:
    """Return an operating point of a diagram; see `Simulation.trim`."""
    x, t, inputs, known = at_point(x, t, inputs)
    t = float(numbers(t, 1, "trim: t")[0])
    for what, given_values in (("rates", rates), ("outputs", outputs)):
        if given_values is not None and not isinstance(given_values, Mapping):
            raise InvalidType(
                f"trim: {what}: expected a dict from names to values, as {{'name': 0.0}}, got {shown(given_values)}"
            )
    feed_open_inputs(bd, inputs, "trim: inputs")
    with started(sim, bd, x, t, "trim") as (diagram, simstate, t, state):
        for block, _ in diagram.closed:
            raise InvalidValue(
                f"trim: block {block.name!r} is a mechanism with loops, whose states are not independent; its "
                "equilibria are those of mech.trim(), which keeps loops closed"
            )
        diagram.freeze()
        given, others = chosen_inputs(bd, inputs, u, True, "trim", known=known)
        if others:
            raise InvalidValue(
                f"trim: the operating point has a value of its own for {others[0].signal.name}; name it in inputs= "
                "too, or give the point's states alone, point.x"
            )
        watched, asked = asked_of_outputs(bd, outputs or {})
        numbers_of(watched, "trim")
        if free_ones := [s.name for s in watched if s.key in {i.signal.key for i in given}]:
            raise InvalidValue(
                f"trim: outputs: {free_ones[0]} is among the inputs, which are free; leave it out of these, and set "
                "what gives it"
            )
        begin, start = state, np.concatenate([*(i.value for i in given), np.zeros(0)])
        free = _free(bd, hold, start.size)
        _switched(diagram, simstate, given, t, begin, start)
        for attempt in range(_MOST_MODES):
            model = make_model(diagram, given, watched)
            if not (model.exact or attempt):
                name, why = model.differenced[0]
                notice(f"trim: by differences, as {name} cannot be translated: {why}")
            first = checked(model, model.jacobians(t, begin, start), t, begin, start, "trim")
            wanted = conditions_of(bd, rates or {}, asked, idle_states(bd, first.A))
            search = _Search(model, t, begin, start, free, wanted, _Bounded(diagram.bounds, wanted))
            found = search.solve()
            begin, start = found[: state.size], found[state.size :]
            switched = _switched(diagram, simstate, given, t, begin, start)
            if not switched:
                break
        there, limits = search.look(found), search.reached * search.sizes
        left = dict(zip(wanted.names, wanted.remaining(there).tolist(), strict=True))
        left_out = {bd.statenames[k]: float(there.rate[k]) for k in wanted.left_out}
        held = tuple(str(b.name) for b in diagram.cells)
        success, message = _ending(diagram, found[: state.size], left, limits, held, left_out)
        if success and switched:
            success, message = (
                False,
                f"no operating point was found: where one would be, {describe(switched[0])} switches",
            )
        if not success:
            notice(f"trim: {message}; begin nearer to one, free more inputs, or ask for less")
        return OperatingPoint(
            x=found[: state.size],
            u=found[state.size :],
            states=tuple(bd.statenames),
            inputs=tuple(i.signal.name for i in given),
            names=tuple(name for i in given for name in labels(i.signal)),
            success=success,
            message=message,
            residual=left,
            t=t,
            differenced=tuple(model.differenced),
            held=held,
            left_out=left_out,
            captions=captions_of(bd, (i.signal for i in given)),
            given=dict(zip((i.signal.name for i in given), _parts(found[state.size :], given), strict=True)),
        )


def at_point(x: Any, t: float, inputs: Any) -> tuple[Any, float, Any, Mapping[str, Array]]:
    """Return states, time, inputs and values of signals: of an operating point its own, but for named inputs."""
    if not isinstance(x, OperatingPoint):
        return x, t, inputs, {}
    named = not isinstance(inputs, (list, tuple)) or len(inputs) > 0
    return x.x, x.t, inputs if named else list(x.inputs), x.given


def _parts(u: Array, given: list[Input]) -> list[Array]:
    """Return values of inputs that stand one behind the other, of each its own."""
    return np.split(u, np.cumsum([i.value.size for i in given])[:-1]) if given else []


def _switched(diagram: Any, simstate: Any, given: list[Input], t: float, x: Array, u: Array) -> list[Any]:
    """Have what switches go by states and inputs; return which blocks were in another mode."""
    detectors = deciding(simstate)
    if not detectors:
        return []
    inputs = [replace(i, value=value) for i, value in zip(given, _parts(u, given), strict=True)]
    with standing_in(diagram, inputs, t, x) if inputs else contextlib.nullcontext():
        return switch_at(detectors, diagram, t, x)


def _ending(
    diagram: Any, x: Array, left: dict[str, float], limits: Array, held: tuple[str, ...], left_out: dict[str, float]
) -> tuple[bool, str]:
    """Return whether a search found an operating point, and what is said of it."""
    beyond = np.flatnonzero(diagram.bounds.within(x) != x)
    if beyond.size:
        name, value = diagram.bd.statenames[beyond[0]], x[beyond[0]]
        return False, f"no operating point was found: state {name!r} would be {value:.6g}, beyond its limit"
    if not all(abs(value) <= limit for value, limit in zip(left.values(), limits, strict=True)):
        return False, f"no operating point was found: {_told(left)} remains"
    moves = {name: rate for name, rate in left_out.items() if not abs(rate) <= limits.max(initial=0.0)}
    return True, f"an operating point{_but(held, moves)}"


def _free(bd: Any, hold: Any, inputs: int) -> NDArray[np.bool_]:
    """Return which states are not held, and refuse where there are none, and no inputs either."""
    free = np.ones(len(bd.statenames), dtype=bool)
    names = [hold] if isinstance(hold, (str, Block)) else hold
    if not isinstance(names, Iterable):
        raise InvalidType(f"trim: hold: expected names of states or blocks, as ['plant'], got {shown(hold)}")
    for name in names:
        free[state_places(bd, name, "trim: hold")] = False
    if not free.any() and not inputs:
        why = "all states are held" if free.size else "the diagram has no states"
        raise InvalidValue(f"trim: nothing is free: {why}, and there are no inputs; name some, as inputs=['tau']")
    return free


def _but(held: tuple[str, ...], left_out: dict[str, float]) -> str:
    """Return what an operating point is not."""
    text = ""
    if held:
        text += f", sampled states being held at what they are, which may change at a tick: {', '.join(held)}"
    if left_out:
        one = next(iter(left_out))
        rates = ", ".join(f"rate of {name} = {value:.6g}" for name, value in left_out.items())
        text += f"; left out, as no other block takes the state: {rates} (rates={{{one!r}: 0.0}} asks for it)"
    return text


def _told(left: dict[str, float]) -> str:
    largest = sorted(left, key=lambda name: -abs(left[name]))[:3]
    return ", ".join(f"{name} = {left[name]:.3g}" for name in largest)


def idle_states(bd: Any, slopes: Array) -> list[int]:
    """Return the states that only add up, as that of an EFFORT: no other block but sinks looks at them, and no rate.

    Sinks that act, as an EVENT, count as other blocks. `slopes` are those of the rates to the states.
    """
    found = []
    for b, at in continuous_parts(bd):
        ends = [wire.end.block for wire in bd.wirelist if wire.start.block is b]
        if not slopes[:, at].any() and not any(end.nout or handler_of(end) is not None for end in ends):
            found += at
    return found


class _Search:
    """A search for states and inputs v, one behind the other, at which nothing remains of the conditions.

    Attributes
    ----------
    whole : ndarray
        Where it begins.
    every : ndarray of int
        What of v is free.
    sizes : ndarray
        By what each condition is measured: accelerations in slow time are small, and would be nothing from the
        beginning.
    reached : float
        What counts as nothing, of a condition so measured.
    """

    def __init__(
        self,
        model: Any,
        t: float,
        state: Array,
        start: Array,
        free: NDArray[np.bool_],
        wanted: Conditions,
        bounded: _Bounded,
    ) -> None:
        self.model, self.t, self.n, self.wanted, self.bounded = model, t, state.size, wanted, bounded
        self.whole = np.concatenate([state, start])
        self.every = np.flatnonzero(np.concatenate([free, np.ones(start.size, dtype=bool)]))
        #: Whether all states with a rate that is to vanish may move, and nothing else.
        self._only_states = not start.size and bool(free[wanted.rates].all())
        self._last: tuple[bytes, tuple[Jacobians, Array]] | None = None
        self.sizes = np.ones(wanted.rates.size + wanted.outputs.size)
        slopes = np.abs(self._slope(self.whole))
        largest = np.maximum(np.abs(wanted.remaining(self.look(self.whole))), slopes.max(axis=1, initial=0.0))
        self.sizes = np.where(largest > 0.0, np.clip(largest, _LEAST, 1.0), 1.0)
        most = np.abs(self._residual(self.whole, self.every)).max(initial=0.0)
        self.reached = REACHED * (1.0 + float(most))
        #: How near a limit what a search has found is at it.
        self._near = np.zeros(self.whole.size)
        self._near[wanted.rates] = self.reached * self.sizes[: wanted.rates.size]

    def solve(self) -> Array:
        """Return what was found, from the beginning and from where rates without a slope, or time, would lead."""
        whole, every = self.whole, self.every
        slopes = np.abs(self._slope(whole)[:, every]).max(axis=0, initial=0.0)
        felt = every[slopes > _FELT * slopes.max(initial=0.0)]
        if 0 < felt.size < every.size:  # what has no slope, as the angle about the vertical, stays if that will do
            found, done = self._go(whole, felt, "exact")
            if done:
                return found
        # where the slopes have not full rank, exact steps are as long as the trust region and may step over a point;
        # those by lsmr, of two numbers or more, are as long as they have to be
        found = whole
        for steps in ("exact", "lsmr", "exact") if every.size > 1 else ("exact",):
            found, done = self._go(found, every, steps)
            if done:
                return found
        # a rate without a slope, which no search follows, leads to a limit
        driven = self.bounded.driven(self.look(whole), whole)
        begins = [np.where(np.isin(np.arange(whole.size), every), driven, whole)]
        if self._only_states:
            limits = (self.reached * self.sizes)[: self.wanted.rates.size]
            begins.append(_settled(self.look, whole, self.wanted, self.bounded, limits))
        for begin in begins:
            if not np.array_equal(begin, whole) and np.isfinite(self._residual(begin, every)).all():
                settled, done = self._go(begin, every, "exact")
                if done:
                    return settled
        return found

    def look(self, v: Array) -> Jacobians:
        """Return rates, outputs and derivatives, with what takes the place of the rates of states at limits."""
        return self._limited(v)[0]

    def _limited(self, v: Array) -> tuple[Jacobians, Array]:
        key = v.tobytes()
        if self._last is None or self._last[0] != key:
            x = v[: self.n]
            self._last = key, self.bounded.limited(self.model.jacobians(self.t, x, v[self.n :]), x)
        return self._last[1]

    def _slope(self, v: Array) -> Array:
        j = self.look(v)
        rates, outputs = np.hstack([j.A, j.B])[self.wanted.rates], np.hstack([j.C, j.D])[self.wanted.places]
        return np.vstack([rates, outputs]) / self.sizes[:, None]

    def _residual(self, v: Array, moving: NDArray[np.intp]) -> Array:
        """Return what remains, not a number where a block has no value or slope: shorter steps are tried then."""
        try:
            remains = self.wanted.remaining(self.look(v)) / self.sizes
        except CstormError:
            return np.full(self.sizes.size, np.nan)
        return remains if np.isfinite(self._slope(v)[:, moving]).all() else np.full(remains.size, np.nan)

    def _go(self, begin: Array, moving: NDArray[np.intp], steps: str) -> tuple[Array, bool]:
        """Return where a search by least squares ends, and whether nothing remains there."""
        from scipy.optimize import least_squares

        def placed(v: Array) -> Array:
            point = begin.copy()
            point[moving] = v
            return point

        found = least_squares(
            lambda v: self._residual(placed(v), moving), begin[moving], lambda v: self._slope(placed(v))[:, moving],
            xtol=1e-15, ftol=1e-15, gtol=1e-15, max_nfev=200, tr_solver=steps,
        )  # fmt: skip
        point = placed(found.x)
        done = self._is_done(point, moving)
        if not done:
            refined = (self._refined(start, moving) for start in (point, begin))
            better = next((each for each in refined if self._is_done(each, moving)), None)
            point, done = (point, False) if better is None else (better, True)
        return self._at_limits(point, done, moving, steps)

    def _is_done(self, point: Array, moving: NDArray[np.intp]) -> bool:
        return bool((np.abs(self._residual(point, moving)) <= self.reached).all())

    def _refined(self, point: Array, moving: NDArray[np.intp]) -> Array:
        """Return a point by Newton steps for as long as they leave less.

        Each variable is measured by its slopes: where these differ by 1e8, steps of a trust region miss by rounding.
        Where they go on and on, as where something only fades, they lead to no point: the first one is returned.
        """
        first, remains, settled = point, self._residual(point, moving), False
        for _ in range(_REFINED):
            slope = self._slope(point)[:, moving]
            sizes = np.linalg.norm(slope, axis=0)
            sizes[sizes == 0.0] = 1.0
            there = point.copy()
            there[moving] -= np.linalg.lstsq(slope / sizes, remains, rcond=None)[0] / sizes
            far = np.maximum(np.abs(point), np.abs(first)).clip(min=_NEAR)
            settled = bool((np.abs(there - point) <= _SETTLED * far).all())
            left = self._residual(there, moving)
            if not np.abs(left).max(initial=0.0) < np.abs(remains).max(initial=0.0):
                break
            point, remains = there, left
        return point if settled else first

    def _at_limits(self, point: Array, done: bool, moving: NDArray[np.intp], steps: str) -> tuple[Array, bool]:
        """Put what is at a limit, but for what a search leaves, exactly there; the others may have to follow."""
        ends = np.concatenate([self._limited(point)[1], point[self.n :]])
        stopped = moving[(ends != point)[moving] & (np.abs(ends - point) <= self._near)[moving]]
        if not stopped.size:
            return point, done
        there = point.copy()
        there[stopped] = ends[stopped]
        remains, others = self._residual(there, moving), np.setdiff1d(moving, stopped)
        if not np.isfinite(remains).all():
            return point, done
        if not done or (np.abs(remains) <= self.reached).all():
            return there, done
        if others.size:
            there, followed = self._go(there, others, steps)
            if followed:
                return there, True
        return point, done


def _settled(look: Any, begin: Array, wanted: Conditions, bounded: _Bounded, limits: Array) -> Array:
    """Return where the diagram comes to rest by implicit steps that grow as its rates fall, or the beginning.

    A search for the least residual may end where a speed, which is a rate itself, makes up for an acceleration.
    """
    at, v = wanted.rates, begin.copy()
    step, before = _FIRST_STEP, np.inf
    for _ in range(_MOST_STEPS):
        try:
            j = look(v)
            rate = j.rate[at] - wanted.wanted
            size = float(np.abs(rate).max(initial=0.0))
            if (np.abs(rate) <= limits).all():
                return v
            step *= float(np.clip(before / size, 0.5, 2.0)) if np.isfinite(before) else 1.0
            v[at] += np.linalg.solve(np.eye(at.size) / step - j.A[np.ix_(at, at)], rate)
            v = bounded.within(v)
        except (CstormError, np.linalg.LinAlgError):
            break
        if not np.isfinite(v).all():
            break
        before = size
    return begin
