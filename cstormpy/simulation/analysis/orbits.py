"""Periodic orbits of diagrams, and whether disturbances of them die out: Newton's method on the map of one period.

A run of one period takes states x to P(x, T), and carries the derivatives of P to x, through events on the way. States
on an orbit are solutions of P(x, T) = x + a, where a is what a state gains in each round, as an angle that turns. The
eigenvalues of P's derivative there are the orbit's Floquet multipliers. Of a mechanism with loops those states are
looked for that are independent, and the others follow. Sampled states, and what is held, are states as others are.
"""

from __future__ import annotations

import contextlib
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cstormpy.arguments import flag, mapping, positive, whole_number
from cstormpy.arrays import Array
from cstormpy.errors import CstormError, DiagramError, InvalidValue
from cstormpy.reporting import notice
from cstormpy.simulation.analysis.analysis_start import first_state, samples_of, saved_with, started
from cstormpy.simulation.analysis.gradients import Problem
from cstormpy.simulation.analysis.linear import on_the_manifold
from cstormpy.simulation.analysis.model_plots import complex_planes, draw_unit_circle, look_at
from cstormpy.simulation.analysis.sampled import ticks_within
from cstormpy.simulation.analysis.trimming import idle_states
from cstormpy.simulation.bdsim_blocks import handler_of
from cstormpy.simulation.bounds import bounds_of, is_bounded
from cstormpy.simulation.handlers import handling, kept
from cstormpy.simulation.named_states import continuous_parts, numbers, phase_planes, sampled_names, state_places
from cstormpy.simulation.results import Result
from cstormpy.simulation.saved_state import SavedState, opened
from cstormpy.simulation.wiring import compile_diagram, refuse_no_diagram

#: Settings of runs of one period, where nothing else is said.
_SETTINGS = {"solver": "DOP853", "rtol": 1e-10, "atol": 1e-12}
#: What changes nothing beyond this part of the most is a direction in which orbits lie side by side.
_FLAT = 1e-7
#: So many times rtol may be missing to a return, where nothing else is said, and so many times atol in any case.
_TIMES_RTOL = 100.0
#: Of what is sampled anew most multipliers are zero, but for rounding: this part of the slopes.
_NOTHING = 1e-14
#: Multipliers are as large as 1 within this.
_NEUTRAL = 1e-6
#: A period is at most so many times as long, or as short, as the first guess.
_TIMES = 2.0
#: A step changes it by no more than this part. It is halved so often at most, until it gains so much for its length.
_STRETCH, _HALVINGS, _LEAST_GAIN = 0.3, 12, 1e-4
#: The part of a run that shows which states only add up, and what rounding leaves of how they follow themselves.
_GLANCE, _ROUNDING = 0.01, 1e-12
#: The times of a run, as parts of it, at which it is seen whether time matters, and how far beside its beginning.
_LATER, _ASIDE = (np.arange(16) * 0.5 * (5.0**0.5 - 1.0)) % 1.0, 1e-3
#: States that move by less than this part of what they are, or moved at first, are at rest.
_AT_REST = 1e-6
#: A run has come back where it is this close, as part of what it moves, after it was so far away.
_BACK, _AWAY = 0.1, 0.3
#: Parts of a round at which a second one is compared.
_PARTS = np.linspace(0.0, 1.0, 101)
#: A guess may be so many rounds, and an orbit that comes this close, as part of what it moves, may have come back.
_ROUNDS, _NEAR = 8, 0.02
#: The shorter period is this part of the longer one, but for so much of it.
_SAME_PERIOD = 1e-3
#: So many samples of the last round are a smooth curve.
_SAMPLES = 300
#: What is said of a search that fails.
_NONE = "no periodic orbit was found"
#: A second round ends where the first one did, but for so many times what may remain, and what multipliers make of it.
_AGAIN = 10.0


@dataclass(frozen=True, eq=False)
class PeriodicOrbit:
    """The result of `Simulation.periodic_orbit`.

    Attributes
    ----------
    x : ndarray, (n,)
        States where a round begins.
    period : float
        [s]
    states : tuple of str
        Names of all states.
    multipliers : ndarray of complex, (k,)
        Floquet multipliers, the largest first: by these factors disturbances grow in a round. That along an orbit
        which may be run through at any time, 1, is left out.
    success : bool
    message : str
    residual : dict of str to float
        What is missing to a return, by the name of the state; those of sampled blocks, and what others hold, are among
        them.
    forced : bool
        Whether the diagram depends on time, and the period was given.
    out : Result
        The run of one round; ``sim.run(bd, start=orbit.out)`` goes on from it.
    notes : tuple of str
        What the multipliers leave out, as how numbers that a law notes follow the states.
    """

    x: Array
    period: float
    states: tuple[str, ...]
    multipliers: NDArray[np.complex128]
    success: bool
    message: str
    residual: dict[str, float]
    forced: bool
    out: Result
    notes: tuple[str, ...] = ()

    @property
    def stable(self) -> bool:
        """True where all disturbances die out; not where the multipliers leave something out."""
        return self._kind() == "stable"

    def _kind(self) -> str:
        """Return what becomes of disturbances, nothing where that is not known."""
        if not self.success or self.notes:
            return ""
        most = float(np.abs(self.multipliers).max(initial=0.0))
        return "unstable" if most > 1.0 + _NEUTRAL else "stable" if most < 1.0 - _NEUTRAL else "neutrally stable"

    def __repr__(self) -> str:
        """Return the period, the states where a round begins, and the multipliers."""
        kind = self._kind()
        lines = [f"{self.message}{', ' * bool(kind)}{kind}: period {self.period:.9g} s"]
        lines += [f"  {name} = {value:.9g}" for name, value in zip(self.states, self.x, strict=True)]
        sizes = ", ".join(_printed(m) for m in self.multipliers)
        return "\n".join([*lines, f"multipliers: {sizes or 'none'}", *self.notes])

    def plot(self, x: str | None = None, y: str | None = None) -> Any:
        """Draw the orbit in the plane of two states or signals, and its multipliers; return the figure.

        Parameters
        ----------
        x, y : str, optional
            Names of columns of `out`; unless given those of a joint's position and rate, or the first two states.
        """
        horizontal, vertical = self._plane(x, y)
        panels = complex_planes(2)
        columns = {name: self.out.found_columns(name)[1] for name in (horizontal, vertical)}
        for name, found in columns.items():
            if len(found) != 1:
                raise InvalidValue(f"plot: {name!r} has {len(found)} numbers; name one, as in {next(iter(found))!r}")
        across, upward = (next(iter(found.values())) for found in columns.values())
        panels[0].plot(across, upward)
        panels[0].plot(across[:1], upward[:1], "o", color="C3", label="beginning of a round")
        labels = [f"{name} [{unit}]" if (unit := self.out.units.get(name)) else name for name in columns]
        panels[0].set(xlabel=labels[0], ylabel=labels[-1], title=f"Periodic orbit, period {self.period:.4g} s")
        panels[0].grid(alpha=0.3)
        panels[0].legend()
        draw_unit_circle(panels[1])
        panels[1].plot(self.multipliers.real, self.multipliers.imag, "x", color="C0", markersize=8, markeredgewidth=2)
        panels[1].set(xlabel="real part", ylabel="imaginary part")
        kind = self._kind()
        panels[1].set_title(f"Floquet multipliers{': ' * bool(kind)}{kind}")
        look_at(panels[1], np.append(self.multipliers, [1.0, -1.0, 1.0j, -1.0j]), 0.05)
        return panels[0].figure

    def _plane(self, x: str | None, y: str | None) -> tuple[str, str]:
        """Return the names of what is drawn against each other."""
        planes = phase_planes(self.states)
        first = next((plane for plane in planes if np.ptp(self.out.signal(plane[0])) > 0.0), planes[0])
        return x or first[0], y or first[1]


def _printed(number: complex) -> str:
    size = abs(number)
    return f"{number.real:.6g}" if abs(number.imag) <= _FLAT * size else f"{size:.6g} ∠ {np.angle(number):+.4g} rad"


@dataclass(frozen=True, eq=False)
class _Round:
    """A run of one period: where it began, what was missing to a return, and what that follows.

    States are the continuous ones, and behind them what is sampled and held. `slope` is the derivative of its end to
    its beginning, `change` that of what is missing to the beginning and, unless it is given, the period; all of the
    states that are looked for. `moved` are all states on the way.
    """

    x: Array
    period: float
    missing: Array
    slope: Array
    change: Array
    moved: Array


class _Return:
    """How far a run of one period ends from where it begins, and how that follows the states and the period."""

    def __init__(
        self, sim: Any, bd: Any, start: Any, advance: Any, forced: Any, span: float, options: dict[str, Any]
    ) -> None:
        self.sim, self.bd, self.start, self.options = sim, bd, start, options
        #: Mechanisms with loops, and where their states stand: the others follow those that are independent.
        self.closed = [
            (b, slice(at[0], at[-1] + 1)) for b, at in continuous_parts(bd) if at and getattr(b, "closed", False)
        ]
        #: Blocks of states with bounds, and where these stand.
        self.bounded = [(b, at) for b, at in continuous_parts(bd) if at and is_bounded(b)]
        #: How many states are continuous, and the names of all.
        self.n, self.names = len(bd.statenames), list(map(str, bd.statenames))
        samples = samples_of(bd, start) if isinstance(start, SavedState) else {}
        self.names += samples
        self.x = self.shut(np.append(first_state(bd, start, "periodic_orbit"), list(samples.values())))
        self.kept, _ = on_the_manifold(self.closed, self.x, self.x.size)
        self.timed = _depends_on_time(sim, bd, start, span)
        self.forced = self.timed if forced is None else flag(forced, "periodic_orbit: forced")
        self.gain, self.ways = _gains(bd, advance)
        self.gain = np.append(self.gain, np.zeros(len(samples)))
        counts = {name for b in bd.blocklist for name in _counting(b)}
        self.ways += [k for k, name in enumerate(self.names) if k >= self.n and name in counts]
        #: States that are looked for; the others go where they will, or only add up.
        self.free = self._coming_back = np.setdiff1d(self.kept, self.ways)
        if not self.free.size:
            raise InvalidValue("periodic_orbit: no state is left that could come back to where it was")
        self.scale, self.least = np.ones(self.x.size), 0.0
        #: What the derivatives leave out, by what it is about: the time is another one in each run.
        self.notes: dict[str, str] = {}
        self._told: set[str] = set()

    def look(self, x: Array, period: float) -> _Round:
        """Return a run of one period."""
        problem = Problem(
            self.sim, self.bd, lambda out: out.x[-1], [self.names[k] for k in self.free],
            {**self.options, "T": period, "start": self.begun(x)}, "periodic_orbit",
            self._following(x)[: self.n].T if self.closed else None, self._told,
        )  # fmt: skip
        run = problem.trajectory(x[self.free])
        if run.status == "stopped":
            raise DiagramError(f"periodic_orbit: a round comes to no end: {run.message}")
        for note in run.notes:
            self.notes.setdefault(note.partition(" at t = ")[0], note)
        samples = [run.samples[name] for name in self.names[self.n :]]
        end = np.append(run.x[-1], [value for value, _ in samples])
        slope = np.vstack([run.dx[-1].T, *(along for _, along in samples)])[self.free]
        to_period = np.zeros((self.free.size, 0)) if self.forced else run.rate[self.free, None]
        change = np.hstack([slope - np.eye(self.free.size), to_period])
        # samples are measured by what they are
        least = np.vstack([np.zeros((len(run.x), end.size - self.n)), x[self.n :], end[self.n :]])
        moved = np.hstack([np.vstack([run.x, run.x[:1], run.x[-1:]]), least])
        return _Round(x, period, (end - x - self.gain)[self.free], slope, change, moved)

    def _following(self, x: Array) -> Array:
        """Return the matrix (n, k) by which all states follow those that are looked for."""
        kept, follow = on_the_manifold(self.closed, x, x.size)
        if not np.array_equal(kept, self.kept):
            follow = follow @ np.linalg.inv(follow[self.kept])
        return follow[:, np.isin(self.kept, self.free)]

    def moved(self, x: Array, step: Array) -> Array:
        """Return a state with those that are looked for moved, and others following them."""
        return self.shut(x + self._following(x) @ step)

    def shut(self, x: Array) -> Array:
        """Return a state within its bounds, and with loops that are nearly closed closed."""
        there = x.copy()
        for block, at in self.bounded:
            there[at] = np.clip(there[at], *bounds_of(block))
        for block, part in self.closed:
            there[part] = block.projected(there[part])
        return there

    def begun(self, x: Array) -> Array | SavedState:
        """Return the start of a run with other states."""
        if not isinstance(self.start, SavedState):
            return x
        return saved_with(self.bd, self.start, x[: self.n], dict(zip(self.names, x.tolist(), strict=True)))

    def leave_adding(self, span: float) -> None:
        """Leave out states that only add up, as an EFFORT's, found by a run of that length."""
        self.free = self._coming_back
        follows = np.zeros((self.x.size, self.x.size))
        changes = self.look(self.x, span).slope - np.eye(self.free.size)
        changes[np.eye(self.free.size, dtype=bool) & (np.abs(changes) <= _ROUNDING)] = 0.0
        follows[np.ix_(self.free, self.free)] = changes
        adding = [k for k in idle_states(self.bd, follows) if self.gain[k] == 0.0]
        self.free = np.setdiff1d(self.free, adding)
        if not self.free.size:
            raise InvalidValue("periodic_orbit: all states of the diagram only add up, so that none could come back")

    def measure(self, moved: Array, least: float) -> None:
        """Measure the states by how far they moved in a run, at least by what its tolerances leave."""
        most = np.abs(moved).max(axis=0)
        span = np.where(self.gain == 0.0, np.ptp(moved, axis=0), np.abs(self.gain))
        self.scale, self.least = np.maximum(np.where(span > _AT_REST * most, span, most), least), least


def periodic_orbit(
    sim: Any,
    bd: Any,
    period: Any,
    *,
    start: Any,
    settle: Any,
    advance: Any,
    forced: Any,
    tol: Any,
    max_runs: Any,
    **options: Any,
) -> PeriodicOrbit:
    """Find a periodic orbit of a diagram; see `Simulation.periodic_orbit`."""
    refuse_no_diagram(bd, "periodic_orbit")
    compile_diagram(bd)
    most = whole_number(max_runs, "periodic_orbit: max_runs", 1)
    if "T" in options:
        raise InvalidValue("periodic_orbit: T: runs last a period; give that, or settle=, how long one lasts before")
    options = {**_SETTINGS, **options}
    rtol, _ = (positive(options[name], f"periodic_orbit: {name}") for name in ("rtol", "atol"))
    least = _TIMES_RTOL * rtol if tol is None else positive(tol, "periodic_orbit: tol")
    runs = {**options, "live": False, "threaded": True, "on_error": "raise"}
    options.pop("watch", ())
    begin, first = opened(start), None if period is None else positive(period, "periodic_orbit: period")
    if first is None and settle is None:
        raise InvalidValue(
            "periodic_orbit: give the period, or a first guess at it, or settle=, how long a run lasts that ends near "
            "the orbit"
        )
    clocked = any(clock.blocklist for clock in bd.clocklist)
    if clocked:
        _refuse_other_clocks(bd, first, forced)
    settled: Any = None
    if settle is not None:
        settled = sim.run(bd, T=positive(settle, "periodic_orbit: settle"), start=begin, **runs)
        begin = settled.state
    elif clocked and not (isinstance(begin, SavedState) and not begin.due):  # samples are known where a run has been
        begin = sim.run(bd, T=first, start=begin, **runs).state
    span = first or float(settle)
    found = _Return(sim, bd, begin, advance, forced, span, options)
    if first is None and found.forced:
        raise InvalidValue("periodic_orbit: the diagram depends on time; give the period after which it repeats itself")
    found.leave_adding(span if clocked else _GLANCE * span)
    first = _time_of_return(settled, found) if first is None else first
    if not clocked and any(handler_of(b) is not None for b in bd.blocklist):  # which may look at any state
        found.leave_adding(first)
    last, message = _search(found, first, least, most)
    multipliers, out, message = _looked_at(found, last, message, least, runs)
    if not message and not found.forced:
        last, multipliers, out = _once_round(found, last, multipliers, out, least, most, runs)
    if message:
        notice(f"periodic_orbit: {message}")
    return PeriodicOrbit(
        last.x[: found.n], last.period, tuple(bd.statenames), multipliers, not message, message or "a periodic orbit",
        dict(zip([found.names[k] for k in found.free], last.missing.tolist(), strict=True)), found.forced, out,
        tuple(found.notes.values()),
    )  # fmt: skip


def _looked_at(
    found: _Return, last: _Round, message: str, tol: float, runs: dict[str, Any]
) -> tuple[NDArray[np.complex128], Result, str]:
    """Return the multipliers of a round, its run, and why it is none of a periodic orbit, if so."""
    multipliers = _multipliers(last, found.forced, found.scale[found.free])
    runs = runs if {"dt", "max_step"} & set(runs) else {**runs, "max_step": last.period / _SAMPLES}
    with kept(handling(found.bd.blocklist)):  # numbers that events set are those with which a round begins
        out = found.sim.run(found.bd, T=last.period, start=found.begun(last.x), **runs)
        return multipliers, out, message or _why_none(found, out, last.period, multipliers, tol, runs)


def _once_round(
    found: _Return,
    last: _Round,
    multipliers: NDArray[np.complex128],
    out: Result,
    tol: float,
    most: int,
    runs: dict[str, Any],
) -> tuple[_Round, NDArray[np.complex128], Result]:
    """Return a single round where what was found is several, as a guess may be."""
    passed = out.t - out.t[0]
    for rounds in range(_ROUNDS, 1, -1):
        T = last.period / rounds
        then = np.array([np.interp(T, passed, out.x[:, k]) for k in found.free])
        if (np.abs(then - last.x[found.free] - found.gain[found.free]) > _NEAR * found.scale[found.free]).any():
            continue
        found.x = last.x
        one, message = _search(found, T, tol, most)
        if not message and abs(one.period - T) <= _SAME_PERIOD * T:
            of_one, run, message = _looked_at(found, one, "", tol, runs)
            if not message:
                return one, of_one, run
    return last, multipliers, out


def _search(found: _Return, first: float, tol: float, most: int) -> tuple[_Round, str]:
    """Return the last round, and why the search failed, if so.

    Steps are Newton's, the shortest of them where orbits lie side by side: a round may begin anywhere on an orbit.
    """
    now, runs = found.look(found.x, first), 1
    found.measure(now.moved, _TIMES_RTOL * float(found.options["atol"]) / tol)
    scale, arrived = found.scale[found.free], False
    while first / _TIMES <= now.period <= first * _TIMES:
        size = float(np.linalg.norm(now.missing / scale))
        if (np.abs(now.missing) <= tol * scale).all():
            if arrived or not size:
                return now, ""
            arrived = True  # one more step makes the multipliers as exact as the runs
        units = np.append(scale, np.full(now.change.shape[1] - scale.size, first))
        step = units * np.linalg.lstsq(now.change * units / scale[:, None], -now.missing / scale, rcond=_FLAT)[0]
        longer = 0.0 if found.forced else float(step[-1])
        share = 1.0 if abs(longer) <= _STRETCH * now.period else _STRETCH * now.period / abs(longer)
        for _ in range(1 if arrived else _HALVINGS):
            if runs >= most:
                return now, "" if arrived else f"max_runs = {most} did not let the search come to an end"
            runs += 1
            try:
                x = found.moved(now.x, share * step[: scale.size])
                nearer = found.look(x, now.period + share * longer)
            except CstormError:  # as where a state has left what a block can take, or loops that were too far open
                share *= 0.5
                continue
            if np.linalg.norm(nearer.missing / scale) < (1.0 - _LEAST_GAIN * share) * size:
                now = nearer
                break
            share *= 0.5
        else:
            return now, "" if arrived else f"{_NONE}: {_told(found, now.missing)}; begin nearer to one"
    return now, f"{_NONE} near the period {first:.6g} s: {_told(found, now.missing)}; begin nearer to one"


def _told(found: _Return, missing: Array) -> str:
    """Return which state comes back least."""
    worst = int(np.argmax(np.abs(missing) / found.scale[found.free]))
    name = found.names[found.free[worst]]
    why = "advance= is for what goes on from round to round"
    if found.forced:
        why += "; the period stays as given, as the diagram depends on time, unless forced=False"
    if found.scale[found.free[worst]] <= found.least:
        why = "it moves so little that a smaller atol= may help"
    return f"{name} ends {missing[worst]:.3g} from where it begins ({why})"


def _multipliers(last: _Round, forced: bool, scale: Array) -> NDArray[np.complex128]:
    """Return the Floquet multipliers, the largest first, without that along an orbit that may be begun at any time.

    That one is taken out by its direction, the rates: of several that are 1, as where orbits lie side by side, the
    eigenvalues are as inexact as the root of the derivatives' error.
    """
    slope = last.slope * scale / scale[:, None]
    if not forced:
        across = np.linalg.qr(last.change[:, -1:] / scale[:, None], mode="complete")[0][:, 1:]
        slope = across.T @ slope @ across
    values = np.linalg.eigvals(slope).astype(complex)
    values[np.abs(values) <= _NOTHING * np.linalg.norm(slope)] = 0.0
    return values[np.argsort(-np.abs(values), kind="stable")]


def _why_none(
    found: _Return, out: Result, T: float, multipliers: NDArray[np.complex128], tol: float, runs: dict[str, Any]
) -> str:
    """Return why a run that ends where it began is no periodic orbit, or nothing."""
    free, scale = found.free[found.free < found.n], found.scale[: found.n]
    if (np.ptp(out.x, axis=0) <= _AT_REST * scale)[free].all():
        return f"{_NONE}: the search ended where the diagram is at rest; begin elsewhere"
    # from where it should have ended: what was missing there would grow in this round too
    there = out.x[-1].copy()
    there[free] = out.x[0, free] + found.gain[free]
    gain = found.gain[: found.n]
    again = found.sim.run(found.bd, T=T, start=saved_with(found.bd, out.state, found.shut(there)), **runs)
    apart = np.abs(again.x[-1] - out.x[-1] - gain)[free] / scale[free]
    most = np.full(free.size, _AGAIN * tol * max(1.0, float(np.abs(multipliers).max(initial=0.0))))
    if not (apart > most).any():  # halves of an orbit may begin and end in the same place, in other modes
        ways = [np.array([np.interp(_PARTS * T, r.t - r.t[0], r.x[:, k]) for k in free]) for r in (out, again)]
        apart = np.abs(ways[1] - ways[0] - found.gain[free, None]).max(axis=1) / scale[free]
        most = np.maximum(most, _NEAR)
    if (apart > most).any():
        name = found.bd.statenames[free[int(np.argmax(apart))]]
        why = "a block has changed its mode; begin in that, by settle="
        if found.timed:
            why = "its period is another one" if found.forced else "the diagram depends on time; leave out forced=False"
        if found.ways:
            why += f"; or it follows {found.bd.statenames[found.ways[0]]}, which advance= lets go where it will"
        return f"{_NONE}: {name} comes back once, but not a second time: {why}"
    return ""


def _time_of_return(out: Any, found: _Return) -> float:
    """Return how long before its end a run was where it ends."""
    free, gain = found.free, found.gain[found.free]
    t, x = out.t, out.x[:, free] + gain
    late = x[t >= 0.5 * (t[0] + t[-1])]
    span = np.where(gain != 0.0, np.abs(gain), np.ptp(late, axis=0))
    moves = span > _AT_REST * np.abs(late).max(axis=0)
    if not moves.any():
        raise InvalidValue("periodic_orbit: the run of settle= ends where the diagram is at rest; begin elsewhere")
    y = ((x - out.x[-1, free]) / np.where(moves, span, 1.0))[:, moves]
    way, lengths = np.diff(y, axis=0), np.diff(t)
    along = np.clip(-np.sum(y[:-1] * way, axis=1) / np.maximum(np.sum(way * way, axis=1), np.finfo(float).tiny), 0, 1)
    distance = np.abs(y[:-1] + along[:, None] * way).max(axis=1)
    distance = np.where(way @ way[-1] > 0.0, distance, np.inf)[::-1]  # on its way to where it went then
    before = (t[-1] - t[:-1] - along * lengths)[::-1]
    gone = int(np.argmax(distance > _AWAY))
    back = gone + np.flatnonzero((distance <= _BACK)[gone:])
    if not distance[gone] > _AWAY or not back.size:
        raise InvalidValue(
            "periodic_orbit: the run of settle= has not been before where it ends; let it settle longer, or give the "
            "period"
        )
    passing = back[back - back[0] == np.arange(back.size)]
    return float(before[passing[np.argmin(distance[passing])]])


def _gains(bd: Any, advance: Any) -> tuple[Array, list[int]]:
    """Return what each state gains in a round, and the states that go where they will."""
    gain, ways = np.zeros(len(bd.statenames)), []
    for name, value in mapping(advance, "periodic_orbit: advance").items():
        at = state_places(bd, name, "periodic_orbit: advance")
        if value is None:
            ways += at
        else:
            gain[at] = numbers(value, len(at), f"periodic_orbit: advance[{name!r}]")
    return gain, ways


def _counting(block: Any) -> list[str]:
    """Return the sampled states of a block that count its ticks, which never come back, and need not."""
    count = getattr(block, "counting", 0)
    return sampled_names(block)[:count] if count else []


def _refuse_other_clocks(bd: Any, period: float | None, forced: Any) -> None:
    """Refuse a period that is no whole number of those of all clocks, or that is to be found."""
    if period is None or forced is False:
        raise InvalidValue("periodic_orbit: the diagram has clocks; give the period, a whole number of theirs")
    ticks_within([clock for clock in bd.clocklist if clock.blocklist], period, "periodic_orbit: period")


def _depends_on_time(sim: Any, bd: Any, start: Any, span: float) -> bool:
    """Tell whether a source will jump, or rates differ at some times within a span; refuse what cannot be served.

    What only follows time where it has been switched, as a controller from law to law, does not count. Rates are looked
    at where the search begins, and beside that, where what is multiplied by time may be zero.
    """
    with started(sim, bd, start, 0.0, "periodic_orbit") as (diagram, simstate, t, x):
        if not bd.statenames:
            raise InvalidValue("periodic_orbit: the diagram has no states")
        if simstate.eventq.pop_until(math.inf):
            return True
        beside = x + _ASIDE * np.maximum(np.abs(x), 1.0) * np.cos(np.arange(x.size))
        for state in (x, beside):
            with contextlib.suppress(CstormError):  # beside the start there may be no rates
                rates = [diagram.derivative(t + share * span, state).copy() for share in _LATER]
                if any(not np.array_equal(rate, rates[0]) for rate in rates):
                    return True
    return False
