"""Gradients of a run's cost to parameters, through the steps that the run takes."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cstormpy.arrays import Array, as_floats
from cstormpy.errors import (
    CstormError,
    DiagramError,
    InvalidType,
    InvalidValue,
    NonFinite,
    UnknownName,
    shown,
    unknown_name,
)
from cstormpy.graph.differences import agreeing_slope, shorter
from cstormpy.reporting import notice_once
from cstormpy.simulation.analysis.analysis_start import first_state, samples_of, saved_with
from cstormpy.simulation.analysis.extremes import extreme_times
from cstormpy.simulation.analysis.horizon import follow
from cstormpy.simulation.analysis.kept_programs import kept_program
from cstormpy.simulation.analysis.parameters import Parameters
from cstormpy.simulation.analysis.steps import Trajectory, halved
from cstormpy.simulation.compiled.untranslated import NotTranslated
from cstormpy.simulation.events import Event
from cstormpy.simulation.handlers import handling, kept
from cstormpy.simulation.outcome import describe_signals, describe_watched
from cstormpy.simulation.recording import Signal, find_signals, named_blocks, signal_name
from cstormpy.simulation.results import Result
from cstormpy.simulation.saved_state import SavedState, opened
from cstormpy.simulation.settings import Settings, told_with_options
from cstormpy.simulation.tableaus import EXPLICIT, explicit_method
from cstormpy.simulation.units import mechanisms_of
from cstormpy.simulation.wiring import compile_diagram, describe, refuse_no_diagram

Cost = Any
#: The options of `run` that are heeded, beside T.
_HEEDED = ("dt", "max_step", "solver", "rtol", "atol", "first_tick", "watch", "start")
#: Those of the methods themselves that take them.
_OWN = {
    "tune": ("bounds", "apply", "max_runs", "tol"),
    "periodic_orbit": ("period", "settle", "advance", "forced", "max_runs", "tol"),
}
#: So close to an event, for its time, a step ends there.
_SAME = 1e-12
#: So many of the last steps say how long those would be behind a run that was stopped.
_LAST = 6
#: So much later, as part of the way to what follows, it ends instead.
_LATER = 1e-3
#: The part of their sizes by which signals are moved for a difference of the cost, as a first step.
_FAR = 1e-4
#: Steps that are shorter than this part of those that fit signals of 1 come after these. Signals that move less than
#: this part of what others do, for their sizes, are moved on their own.
_RESOLVED = 1e-5
#: Slopes of several costs so much smaller than the largest are rounding.
_NONE = 1e-10
#: So far beside events that come together, for the time, runs in which these are dealt with the other way round are
#: compared, which are the same within this part of their numbers.
_MEETING, _SAME_BEHIND = 1e-9, 1e-6
#: What helps where the diagram has no compiled form.
_WITHOUT = (
    "derivatives of a run come from the compiled form, with any engine; without it take differences of sim.run between "
    "two values of a parameter, or search by scipy.optimize.minimize(method='Nelder-Mead')"
)


@dataclass(frozen=True, eq=False)
class Gradient:
    """The value of a run's cost, and its derivative to parameters.

    Attributes
    ----------
    cost : float or ndarray (m,)
        Of several costs where the function returns an array.
    gradient : ndarray, (k,) or (m, k)
    parameters : tuple of str
    values : ndarray, (k,)
        The parameters.
    out : Result
        The run: t, x, the watched signals and events.
    dx : ndarray, (N, k, n)
        Derivatives of the states at the samples; those on both sides of a jump of a source, or of an event, go with its
        time.
    events : list of Event
        Zero crossings on the way, with what shifting them does being in the derivatives.
    differenced : list of (str, str)
        Blocks whose derivatives are differences, and what in them.
    notes : list of str
        What the derivatives leave out.
    """

    cost: float | Array
    gradient: Array
    parameters: tuple[str, ...]
    values: Array
    out: Result
    dx: Array
    events: list[Event]
    differenced: list[tuple[str, str]]
    notes: list[str]

    def __repr__(self) -> str:
        """Return cost and derivatives by name."""
        lines = [f"cost = {_digits(self.cost)}"]
        for name, value, slope in zip(self.parameters, self.values, np.atleast_2d(self.gradient).T, strict=True):
            lines.append(f"  d cost / d {name} = {_digits(slope)}   at {value:.9g}")
        lines += [f"event of {e[1]} at t = {e[0]:.6g}{': ' * bool(e.what)}{e.what}" for e in self.events]
        if self.differenced:
            lines.append("differenced: " + "; ".join(f"{name} ({what})" for name, what in self.differenced))
        return "\n".join(lines + list(self.notes))


def _digits(value: Any) -> str:
    """Return a number, or an array of them, to nine digits."""
    numbers = np.atleast_1d(value)
    return f"{numbers[0]:.9g}" if numbers.size == 1 else np.array2string(numbers, precision=9, separator=", ")


class Problem:
    """A run, its cost and its parameters: what `gradient` and `tune` evaluate.

    Parameters
    ----------
    sim, bd, cost, parameters
        As in `Simulation.gradient`.
    options : dict
        Settings of the run.
    what : str
        Who asks, for messages.
    directions : ndarray, (k, n), optional
        How the start follows parameters that are states of which others depend; each moves alone unless given.
    told : set of str, optional
        What has been noted already, which is not told again, of a search that makes several of these.
    """

    def __init__(
        self,
        sim: Any,
        bd: Any,
        cost: Cost,
        parameters: Any,
        options: dict[str, Any],
        what: str,
        directions: Array | None = None,
        told: set[str] | None = None,
    ) -> None:
        refuse_no_diagram(bd, what)
        _known_options(sim, options, what)
        compile_diagram(bd)
        self.sim, self.bd, self.what, self.directions = sim, bd, what, directions
        self.start = opened(options.pop("start", None))
        self.watch = _ports(find_signals(bd, options.pop("watch", ()), f"{what}: watch", beside_states=True))
        self.settings = _settings(told_with_options(sim.options.data, options), what)
        begin = first_state(bd, self.start, what)
        saved = samples_of(bd, self.start) if isinstance(self.start, SavedState) else None
        self.parameters = Parameters(bd, parameters, begin, directions is not None, saved)
        for e in self.parameters.entries:
            if e.attribute in getattr(type(e.block), "whole_numbers", ()):
                raise InvalidValue(
                    f"{what}: {e.name} is a whole number, which no derivative goes by; sim.sweep tries some"
                )
        if self.start is not None:
            self.parameters.refuse_ignored(isinstance(self.start, SavedState))
        self.cost, self.signals = self._checked(cost)
        #: Whether the cost may be of other samples than the last, as of the largest: steps end at extremes too.
        self.looks_between = _is_function(cost)
        self._told = set[str]() if told is None else told
        #: Blocks that set what they like at events, which the next run does not begin with.
        self._handling = handling(bd.blocklist)
        #: How many runs are still to be expected.
        self.runs = 1
        #: The ends of the steps of the first run, with an adaptive solver; later ones take the same.
        self.times: Array | None = None
        #: The times and states of the run that has chosen them, until it is seen whether they are too long.
        self._seen: tuple[Array, Array] | None = None
        self._kept_program = kept_program(bd, self.parameters.names)
        #: Whether half the steps are taken, so that runs with other numbers, which are faster, are still stable.
        self.halves = False

    def _checked(self, cost: Cost) -> tuple[Callable[[Result], Any], list[Any]]:
        """Return the cost as a function of the result, and what it watches."""
        if _is_function(cost):
            return cost, self.watch
        if isinstance(cost, str) and cost in list(self.bd.statenames):
            return (lambda out: out.signal(cost)[-1]), self.watch
        try:
            signal = find_signals(self.bd, [cost], f"{self.what}: cost")
        except UnknownName:
            whole, bracket, _ = cost.partition("[") if isinstance(cost, str) else ("", "", "")
            block, dot, _ = whole.rpartition(".")
            if not (bracket and dot and block in named_blocks(self.bd)):
                raise
            signal = find_signals(self.bd, [whole], f"{self.what}: cost")
            return (lambda out: out.signal(cost)[-1]), self._watching(signal)
        if len(signal) != 1:
            raise InvalidValue(f"{self.what}: cost {cost!r} has {len(signal)} outputs; name one, as in 'effort[0]'")
        name = signal_name(signal[0].block, signal[0].port)
        return (lambda out: _number(out.signal(name)[-1])), self._watching(signal)

    def _watching(self, signals: list[Signal]) -> list[Any]:
        """Return what is watched, and these signals too."""
        ports = {signal_name(port.block, port.port): port for port in [*self.watch, *_ports(signals)]}
        return list(ports.values())

    def evaluate(self, values: Array) -> Gradient:
        """Return cost and gradient at values of the parameters, which the blocks keep."""
        trajectory = self.trajectory(values)
        value, slope = self._costs(trajectory)
        names, out = self.parameters.names, self._result(trajectory, None, 0.0)
        return Gradient(
            value, slope, names, np.array(values, dtype=float), out, trajectory.dx, trajectory.events,
            trajectory.differenced, trajectory.notes,
        )  # fmt: skip

    def trajectory(self, values: Array) -> Trajectory:
        """Return the run at values of the parameters, which the blocks keep, with its derivatives."""
        self.parameters.set(values)
        if self.settings.step is None and self.times is None:
            self.times = self.chosen_steps()
        try:
            trajectory = self._followed()
            self.times, self._seen = trajectory.ends, None
        except NotTranslated as why:
            raise NotTranslated(why.reasons, f"{self.what}: {_WITHOUT}") from why
        # of the class: where a block has none, it would look for a port of that name, which takes long
        for b in self.bd.blocklist:
            if hasattr(type(b), "hides") and b.hides:
                trajectory.notes.append(
                    f"{describe(b)}: is flat between its levels, so that nothing which goes through it is in the "
                    "derivative; leave it out of gradients and searches"
                )
        if trajectory.meetings and not _same_behind(trajectory, self._followed(last_first=True)):
            t, names = trajectory.meetings[0]
            trajectory.notes.append(
                f"{names} come together at t = {t:.6g}, and what follows depends on which of them is first: the "
                "derivative is that of one side; let their numbers differ a little"
            )
        for note in trajectory.notes:
            about, _, _ = note.partition(" at t = ")
            if about not in self._told:  # the time is another one in each run of a search
                self._told.add(about)
                notice_once(f"{self.what}: {note}")
        return trajectory

    def _followed(self, last_first: bool = False) -> Trajectory:
        with kept(self._handling):
            return follow(
                self.sim, self.bd, self.parameters, self._kept_program, self.signals, self.settings, self._begin(),
                self.start is None, self.times, self.directions, last_first, self._seen,
            )  # fmt: skip

    def chosen_steps(self) -> Array:
        """Return the ends of the steps that the solver chooses for the parameters as they are, or of their halves."""
        out = self.free_run()
        ends = _ends_of_steps(out, self.settings.T)
        if self.looks_between and self.settings.grid is not None:
            ends = np.union1d(ends, _beside(self._grid(out.t[0], out.t[0] + self.settings.T), ends))
        elif self.looks_between:
            columns = np.hstack([out.x, *(part.reshape(len(out.t), -1) for part in out.data.get(".ywatch", []))])
            ends = np.union1d(ends, extreme_times(out.t, columns, [event[0] for event in out.events]))
        self._seen = out.t, out.x
        return halved(ends) if self.halves else ends

    def _grid(self, begin: float, end: float) -> Array:
        """Return the times of the samples that a run with an adaptive solver has by its `dt`: multiples of it."""
        step = self.settings.grid or math.inf
        points = step * np.arange(math.floor(begin / step + _SAME) + 1, math.ceil(end / step))
        return np.concatenate([[begin], points[end - points > _SAME * (1.0 + np.abs(points))], [end]])

    def _sampled(self, trajectory: Trajectory) -> Any:
        """Return which rows of a run are its samples: all, or on a grid the last at each of its times, and the end."""
        if not self.looks_between or self.settings.grid is None:
            return slice(None)
        t = trajectory.t
        grid = self._grid(t[0], t[-1])
        return np.searchsorted(t, grid + _SAME * (1.0 + np.abs(grid)), "right") - 1

    def free_run(self) -> Result:
        """Run the diagram with the parameters as they are, by the stepper of any run."""
        each_step = replace(self.settings, grid=None, sinks_on_grid=False)
        with kept(self._handling):
            return self.sim.run(
                self.bd, each_step, watch=self.signals, start=self._begin(), live=False, threaded=True, on_error="raise"
            )

    def _begin(self) -> Array | SavedState:
        """Return where a run begins, with the states among the parameters as these are."""
        x = self.parameters.start(first_state(self.bd, self.start, self.what))
        if not isinstance(self.start, SavedState):
            return x
        return saved_with(self.bd, self.start, x, self.parameters.samples())

    # the cost

    def _costs(self, trajectory: Trajectory) -> tuple[float | Array, Array]:
        """Return the cost and its derivatives: differences of the cost's function along the exact ones of the run."""
        value = self.cost_of(self._result(trajectory, None, 0.0))
        slopes = np.zeros((*value.shape, trajectory.dx.shape[1]))
        for part in _parts(trajectory):
            for k in range(trajectory.dx.shape[1]):
                for group in _groups(part, k):
                    own, wide = (_step(group, k, least) for least in (0.0, 1.0))
                    # by far shorter ones, as a rate that is but rounding asks for, what it is added to does not move
                    steps = [own, wide, *shorter(own)] if own > _RESOLVED * wide else [*shorter(wide), *shorter(own)]
                    slopes[..., k] += self._cost_slope(group, k, steps)
        return (float(value) if value.ndim == 0 else value), slopes

    def _cost_slope(self, trajectory: Trajectory, k: int, steps: list[float]) -> Array:
        """Return the derivative of the cost to parameter k by differences."""
        failures = []

        def difference(h: float) -> Array | None:
            try:
                with np.errstate(all="ignore"):
                    above, below = (self.cost_of(self._result(trajectory, k, side)) for side in (h, -h))
            except CstormError as failure:  # as of a logarithm, where h is too far
                failures.append(failure)
                return None
            return np.asarray((above - below) / (2.0 * h))

        found = agreeing_slope(difference, steps, _NONE)
        if found is None:
            raise failures[0]
        return found

    def cost_of(self, out: Result) -> Array:
        """Return the cost of a run, () or (k,), refusing what is no number."""
        try:
            given = self.cost(out)
            if given is None:
                raise InvalidType(f"{self.what}: the cost returned None; end its function with 'return' and a number")
            value = as_floats(given, f"{self.what}: the cost")
        except CstormError:
            raise
        except Exception as error:
            raise InvalidValue(f"{self.what}: the cost failed: {type(error).__name__}: {error}") from error
        if value.ndim > 1:
            raise InvalidValue(f"{self.what}: the cost is a number or a vector, got the shape {value.shape}")
        if not value.size:
            raise InvalidValue(f"{self.what}: the cost is an empty array; return one number or more")
        if not np.isfinite(value).all():
            raise NonFinite(f"{self.what}: the cost is {value}")
        return value

    def _result(self, trajectory: Trajectory, k: int | None, h: float) -> Result:
        """Return a run as its result, moved along the derivatives to parameter k."""
        rows = self._sampled(trajectory)
        # arrays of its own: a cost may change what it is given
        times, *moved = [v[rows].copy() if k is None else v[rows] + h * d[rows, k] for v, d in _pairs(trajectory)]
        out = Result(name="results")
        out["t"], out["x"], out["xnames"] = times, moved[0], list(self.bd.statenames)
        if len(moved) > 1:
            out[".ywatch"] = moved[1:]
            out["y"] = np.hstack([part.reshape(len(part), -1) for part in moved[1:]])
            describe_watched(out.data, trajectory.signals)
        describe_signals(out.data, mechanisms_of(self.bd.blocklist), trajectory.signals, [], lambda: moved[1:])
        out[".status"], out[".message"] = trajectory.status, trajectory.message
        met = zip(trajectory.events, trajectory.shifts, strict=True)
        out[".events"] = [Event(e[0] if k is None else e[0] + h * float(d[k]), e[1], e.what) for e, d in met]
        return out


def _is_function(cost: Cost) -> bool:
    return callable(cost) and not hasattr(cost, "portlist")


def _pairs(trajectory: Trajectory) -> list[tuple[Array, Array]]:
    both = [(trajectory.t, trajectory.dt), (trajectory.x, trajectory.dx)]
    return [*both, *zip(trajectory.y, trajectory.dy, strict=True)]


def _parts(trajectory: Trajectory) -> list[Trajectory]:
    """Return the run with derivatives of those samples alone that stay at their times, and of those that do not.

    Derivatives of the cost along both add up. A sample goes far with an event that has hardly come about, and others
    would not move by steps of what it takes.
    """
    goes = trajectory.dt.any(axis=1)
    if not goes.any():
        return [trajectory]
    arrays = trajectory.dt, trajectory.dx, *trajectory.dy
    found = []
    for rows, shifts in ((~goes, [0.0 * shift for shift in trajectory.shifts]), (goes, trajectory.shifts)):
        dt, dx, *dy = (np.where(rows.reshape(-1, *[1] * (each.ndim - 1)), each, 0.0) for each in arrays)
        found.append(replace(trajectory, dt=dt, dx=dx, dy=dy, shifts=shifts))
    return found


def _groups(trajectory: Trajectory, k: int) -> list[Trajectory]:
    """Return the run with derivatives to parameter k of those signals alone that move alike for their sizes, in groups.

    Derivatives of the cost along all of them add up. Steps of a signal that moves far would not move another one.
    """
    parts = _relative_rates(trajectory, k, 0.0)
    rates, found = np.concatenate([np.ravel(part) for part in parts]), list[Trajectory]()
    while rates.any():
        least = _RESOLVED * rates.max()
        alike = [part >= least for part in parts]
        rates = np.where(rates >= least, 0.0, rates)
        if not found and not rates.any():
            return [trajectory]
        pairs = zip(_pairs(trajectory), alike, strict=True)
        dt, dx, *dy = (np.where(moves, d, 0.0) for (_, d), moves in pairs)
        shifts = [np.where(alike[0], shift, 0.0) for shift in trajectory.shifts]
        found.append(replace(trajectory, dt=dt, dx=dx, dy=dy, shifts=shifts))
        parts = [np.where(moves, 0.0, part) for part, moves in zip(parts, alike, strict=True)]
    return found


def _step(trajectory: Trajectory, k: int, least: float) -> float:
    """Return the step of parameter k that moves signals by a part of their sizes, or of a least; 0 if none moves."""
    most = max(float(rates.max(initial=0.0)) for rates in _relative_rates(trajectory, k, least))
    return _FAR / most if most > 0.0 else 0.0


def _relative_rates(trajectory: Trajectory, k: int, least: float) -> list[Array]:
    """Return how fast the time, and each number of states and signals, moves at most for its size, or for a least."""
    found = []
    for v, d in _pairs(trajectory):
        size = np.maximum(np.abs(v).max(axis=0, initial=0.0), least)
        rate = np.abs(d[:, k]).max(axis=0, initial=0.0)
        found.append(np.asarray(rate / np.where(size > 0.0, size, 1.0)))
    return found


def _ends_of_steps(out: Result, T: float) -> Array:
    """Return the times of a run, with those of its events a little later, where there is nothing.

    Events are located anew; a step that would end at one, but for rounding, has stages on both sides of it. Behind a
    STOP, which may be later with other numbers, further steps are as long as the last ones.
    """
    met = np.array([-np.inf, *sorted(event[0] for event in out.events), np.inf])
    after = np.searchsorted(met, out.t, "right")
    beside = np.minimum(out.t - met[after - 1], met[after] - out.t)
    apart = out.t[beside > _SAME * (1.0 + np.abs(out.t))]
    ahead = out.t[-1:]
    if out.status == "stopped" and out.t[-1] < T:
        longest = float(np.diff(out.t[-_LAST:]).max(initial=0.0))
        longest = longest if longest > _SAME * T else T  # it may stop as soon as it begins
        ahead = np.append(np.arange(out.t[-1] + longest, T, longest), T)
    all_times = np.append(np.union1d(apart, met[1:-1]), ahead)
    follows = all_times[np.searchsorted(all_times[: -len(ahead)], met[1:-1]) + 1]
    found = np.union1d(apart, met[1:-1] + _LATER * (follows - met[1:-1]))
    return np.union1d(found, ahead) if out.status == "stopped" else found


def _beside(times: Array, ends: Array) -> Array:
    """Return times, those of ends in their place where one is there but for rounding."""
    near = ends[np.minimum(np.searchsorted(ends, times - _SAME * (1.0 + times)), len(ends) - 1)]
    return np.where(np.abs(near - times) <= _SAME * (1.0 + times), near, times)


def _ports(signals: list[Signal]) -> list[Any]:
    return [s.block[s.port] for s in signals]


def _settings(options: dict[str, Any], what: str) -> Settings:
    solver = options.get("solver", "RK45")
    if explicit_method(solver) is None:
        asked = solver if isinstance(solver, str) else shown(solver)
        raise DiagramError(f"{what}: goes through the steps of {', '.join(EXPLICIT)}, not of {asked}")
    return Settings.checked(**options)


def _known_options(sim: Any, options: dict[str, Any], what: str) -> None:
    """Refuse options that nobody heeds."""
    for name in options:
        if name in ("T", *_HEEDED):
            continue
        if name in inspect.signature(sim.run).parameters:
            raise InvalidValue(f"{what}: option {name!r} of `run` is not heeded here; {', '.join(_HEEDED)} are")
        own = _OWN.get(what, ())
        raise unknown_name(f"{what}: option", name, ["T", *_HEEDED, *own])


def _number(value: Any) -> Any:
    """Return a signal's value as a number where it is an array of one, which would count as several costs."""
    return value[0] if np.shape(value) == (1,) else value


def gradient(sim: Any, bd: Any, cost: Cost, parameters: Any, **options: Any) -> Gradient:
    """Return the gradient of a run's cost; see `Simulation.gradient`."""
    problem = Problem(sim, bd, cost, parameters, options, "gradient")
    with problem.parameters.kept() as values:
        return problem.evaluate(values)


def _same_behind(a: Trajectory, b: Trajectory) -> bool:
    """Tell whether two runs are the same, with their derivatives, but where events come together."""
    met = np.array([t for t, _ in a.meetings])
    both = []
    for run in (a, b):
        apart = (np.abs(run.t[:, None] - met) > _MEETING * np.maximum(1.0, met)).all(axis=1)
        both.append((run.x[apart], np.swapaxes(run.dx[apart], 0, 1).reshape(-1, run.x.shape[1])))
    for one, other in zip(*both, strict=True):
        if one.shape != other.shape:
            return False
        sizes = np.abs(one).max(axis=0, initial=0.0)
        if (np.abs(one - other) > _SAME_BEHIND * (sizes + _SAME_BEHIND * sizes.max(initial=0.0))).any():
            return False
    return True
