"""Margins of loops: how far gain, phase and delay may move before a loop that is stable no longer is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cstormpy.arrays import Array
from cstormpy.errors import DiagramError, InvalidValue, ShapeError, shown
from cstormpy.simulation.analysis.linear import SLOW, LinearModel, linearize
from cstormpy.simulation.analysis.sampled import has_inputs
from cstormpy.simulation.wiring import clocks_of

Complex = NDArray[np.complex128]

#: Points of the least distance that a first look takes in all, and for each decade of frequencies beside the others.
_LEAST_POINTS, _PER_DECADE = 200, 30
#: A response is real, or of size 1, where it is so to this; a factor of less is none.
_CLOSE, _NONE = 1e-6, 1e-9
#: So near to 0 a function is 0, also where it does not change its sign.
_TOUCHING = 1e-12

#: What is told of each loop.
_EACH = "gain", "gain_at", "phase", "phase_at", "delay", "delay_at", "distance", "distance_at"


@dataclass(frozen=True, eq=False)
class Margins:
    """How far the loops of a linear model are from the border of stability.

    Each is changed by itself, with the others closed as they are; `together` is of all at once.

    Attributes
    ----------
    loops : tuple of str
        Where they are cut: one number of a signal each.
    stable : bool
        True where the closed loops are stable, but for states that they do not move or that do not act on them, as a
        meter's. Where they are not, the margins tell where one more pole comes to the border.
    idle : tuple of str
        Loops in which nothing comes back at this point, as where a limit holds a signal.
    gain, gain_at : ndarray, (m, 2)
        Between these two factors a gain in the loop may be, and the frequencies [rad/s] that swing at them; 0 and inf,
        at nan, where there is no border.
    phase, phase_at : ndarray, (m,)
        The least turn [rad] that brings the loop to its border, either way, and its frequency; inf, at nan.
    delay, delay_at : ndarray, (m,)
        The least delay [s] that does so, and its frequency; inf, at nan.
    distance, distance_at : ndarray, (m,)
        The least |1 − L(jω)| [-]: any error of the loop's response that is smaller leaves it stable. Its frequency
        may be inf.
    together, together_at : float
        The least singular value of 1 − L(jω) of all loops, and its frequency; of use where the loops have one unit.
    """

    loops: tuple[str, ...]
    stable: bool
    idle: tuple[str, ...]
    gain: Array
    gain_at: Array
    phase: Array
    phase_at: Array
    delay: Array
    delay_at: Array
    distance: Array
    distance_at: Array
    together: float
    together_at: float

    def __repr__(self) -> str:
        """Return the margins as a table, angles in degrees."""
        width = max(4, *(len(name) for name in self.loops))
        lines = [
            f"{'loop':{width}s}   gain from    at [rad/s]   up to        at [rad/s]   phase [°]   at [rad/s]   "
            "delay [s]   distance"
        ]
        for k, name in enumerate(self.loops):
            (low, high), (at_low, at_high) = self.gain[k], self.gain_at[k]
            numbers = (low, at_low, high, at_high, np.degrees(self.phase[k]), self.phase_at[k], self.delay[k])
            widths = (12, 12, 12, 12, 11, 12, 11)
            cells = "".join(f" {_told(value):<{w}s}" for value, w in zip(numbers, widths, strict=True))
            lines.append(f"{name:{width}s}  {cells} {_told(self.distance[k])}")
        if len(self.loops) > 1:
            lines.append(f"all loops at once: distance {_told(self.together)} at {_told(self.together_at)} rad/s")
        if self.idle:
            lines.append(f"nothing comes back here, as where a limit holds a signal, of: {', '.join(self.idle)}")
        if not self.stable:
            lines.append("the loops are not stable as they are; this is where one more pole comes to the border")
        return "\n".join(lines)


def margins(sim: Any, bd: Any, x: Any, at: Any, t: float, dt: float | None) -> Margins:
    """Return the margins of a diagram's loops; see `Simulation.margins`."""
    if dt is None and hasattr(bd, "clocklist"):
        dt = max((clock.T for clock in clocks_of(bd) if has_inputs(clock)), default=None)
    cut = linearize(sim, bd, x, None, t=t, inputs=at, outputs=at, opened=at, dt=dt, cut=True)
    if dt is not None:
        whole = linearize(sim, bd, x, None, t=t, inputs=(), outputs=(), opened=(), dt=dt)
        shut = _System(cut.A, cut.B, cut.C, cut.D, dt).closed().A
        if not _same_poles(shut, whole.A):
            raise DiagramError(
                f"margins: at: what is cut moves or ticks between the ticks at 0, {dt:g}, … s, so that a loop that is "
                "held from one to the next is another one; cut where one clock samples or holds the signal, of a ZOH "
                "that other blocks of its clock read too at what goes into it"
            )
    return cut.margins()


def _same_poles(A: Array, B: Array) -> bool:
    """Return whether two matrices have the same eigenvalues, but for those at 0."""
    left, right = A, B
    for _ in range(max(len(A), len(B))):
        size = np.trace(np.abs(left)) + np.trace(np.abs(right)) + 1.0
        if abs(np.trace(left) - np.trace(right)) > _CLOSE * size:
            return False
        left, right = left @ A, right @ B
    return True


def margins_of(model: LinearModel, feedback: float) -> Margins:
    """Return the margins of the loops that a model is cut at; see `LinearModel.margins`."""
    count = len(model.inputs)
    if not count or count != len(model.outputs):
        raise ShapeError(
            f"margins: expected a model cut at loops, with an output for each input, got {count} inputs and "
            f"{len(model.outputs)} outputs; sim.margins(bd, x, at=['controller.tau']) cuts them itself"
        )
    if feedback not in (1, -1):
        raise InvalidValue(f"margins: feedback: expected 1 or -1, got {shown(feedback)}")
    kept = np.flatnonzero(_reached(model.A, model.B) & _reached(model.A.T, model.C.T))
    A, B, C = model.A[np.ix_(kept, kept)], model.B[kept], model.C[:, kept] * feedback
    whole = _System(A, B, C, model.D * feedback, model.dt)
    loops = [whole.alone(k) for k in range(count)]
    each = [_margin(loop) for loop in loops]
    idle = tuple(name for name, loop in zip(model.inputs, loops, strict=True) if loop.idle())
    together, together_at = _distance(whole)
    columns = {name: np.array(found) for name, found in zip(_EACH, zip(*each, strict=True), strict=True)}
    stable = whole.closed().stable() and together > SLOW
    return Margins(model.inputs, stable, idle, **columns, together=together, together_at=together_at)


def _reached(A: Array, B: Array) -> NDArray[np.bool_]:
    """Return which states inputs come to, at last."""
    moved, acts = (B != 0.0).any(axis=1), A != 0.0
    for _ in range(len(A)):
        moved = moved | acts[:, moved].any(axis=1)
    return np.asarray(moved)


class _System:
    """A loop, or several, that closes by u = y."""

    def __init__(self, A: Array, B: Array, C: Array, D: Array, dt: float | None) -> None:
        self.A, self.B, self.C, self.D, self.dt = A, B, C, D, dt

    def closed(self, kept: list[int] | None = None) -> _System:
        """Return the system with its loops closed, but those that are kept open."""
        open_ = [] if kept is None else kept
        shut = [k for k in range(len(self.C)) if k not in open_]
        B, C, D = self.B, self.C, self.D
        around = np.eye(len(shut)) - D[np.ix_(shut, shut)]
        if shut and np.linalg.cond(around) > 1.0 / np.finfo(float).eps:
            raise InvalidValue("margins: the loop through the numbers that act at once has no solution")
        by_state, by_input = np.linalg.solve(around, C[shut]), np.linalg.solve(around, D[np.ix_(shut, open_)])
        return _System(
            self.A + B[:, shut] @ by_state,
            B[:, open_] + B[:, shut] @ by_input,
            C[open_] + D[np.ix_(open_, shut)] @ by_state,
            D[np.ix_(open_, open_)] + D[np.ix_(open_, shut)] @ by_input,
            self.dt,
        )

    def answer(self) -> _System:
        """Return what becomes of signals that are added in the loops, while these are closed: (1 − L)⁻¹."""
        around: Array = np.asarray(np.linalg.inv(np.eye(len(self.D)) - self.D), dtype=float)
        return _System(self.closed().A, self.B @ around, around @ self.C, around, self.dt)

    def alone(self, k: int) -> _System:
        """Return one loop, the others being closed."""
        return self.closed([k])

    def stable(self) -> bool:
        """Return whether none of its poles grows, as far as roundings let that be told."""
        values = np.linalg.eigvals(self.A)
        size = np.abs(values)
        if self.dt is not None:
            return bool((size < 1.0 + SLOW).all())
        return bool((values.real < SLOW * size.max(initial=0.0)).all())

    def idle(self) -> bool:
        """Return whether its inputs move none of its outputs."""
        return not (self.D.any() or (_reached(self.A, self.B) & _reached(self.A.T, self.C.T)).any())

    def last(self) -> float:
        """Return the end of the frequencies [rad/s]."""
        return np.inf if self.dt is None else np.pi / self.dt

    def at(self, w: Array) -> Complex:
        """Return the frequency response, (k, m, m); that at inf is D."""
        out = np.empty((len(w), *self.D.shape), dtype=complex)
        far = np.isinf(w)
        out[far] = self.D
        near = w[~far]
        s = 1j * near if self.dt is None else np.exp(1j * near * self.dt)
        resolvent: Complex = np.asarray(s[:, None, None] * np.eye(len(self.A)) - self.A, dtype=complex)
        out[~far] = self.C @ _solved(resolvent, self.B) + self.D
        return out

    def frequencies(self) -> Array:
        """Return frequencies at which poles are, of the loops as they are cut and closed, and some about them."""
        poles = np.concatenate([np.linalg.eigvals(self.A), np.linalg.eigvals(self.closed().A)])
        if self.dt is not None:
            poles = poles.astype(complex)
            poles = np.log(poles[poles != 0.0]) / self.dt
        swing, decay = np.abs(poles.imag), np.abs(poles.real)
        about = [np.abs(poles), *(np.abs(swing + k * decay) for k in (-3.0, -1.0, -0.3, 0.0, 0.3, 1.0, 3.0))]
        return np.concatenate(about)

    def crossings(self, of_size: bool) -> Array:
        """Return candidates of frequencies at which one loop has size 1, or is real: eigenvalues of a pencil.

        They are the zeros of L(−s) L(s) − 1, and of L(s) − L(−s), of a sampled one with 1/z for −s.
        """
        from scipy.linalg import eig

        A, b, c, d = self.A, self.B, self.C, self.D
        n = len(A)
        unit, none, column = np.eye(n), np.zeros((n, n)), np.zeros((n, 1))
        driven = (c.T @ c, c.T * d) if of_size else (none, c.T)
        if self.dt is None:
            second, moved = [-driven[0], -A.T, -driven[1]], [none, unit, column]
        else:
            second, moved = [none, unit, column], [driven[0], A.T, driven[1]]
        third = [d * c, b.T, d * d - 1.0] if of_size else [c, -b.T, np.zeros((1, 1))]
        left = np.block([[A, none, b], second, third])
        right = np.block([[unit, none, column], moved, [np.zeros((1, 2 * n + 1))]])
        with np.errstate(all="ignore"):
            values = eig(left, right, right=False)
            found = np.abs(values if self.dt is None else np.angle(values) / self.dt)
        return np.asarray(found[np.isfinite(found)], dtype=float)


def _solved(A: Complex, B: Array) -> Complex:
    """Return A⁻¹ B of many A; nan where one is singular."""
    try:
        return np.asarray(np.linalg.solve(A, B), dtype=complex)
    except np.linalg.LinAlgError:
        if len(A) == 1:
            return np.full((1, *B.shape), np.nan + 0j)
        return np.concatenate([_solved(one[None], B) for one in A])


def _margin(loop: _System) -> tuple[Any, ...]:
    """Return the margins of one loop and their frequencies, in the order of `_EACH`."""
    ones = _zeros(loop, loop.crossings(of_size=True), lambda L: np.log(np.abs(L)))
    size = loop.at(ones)[:, 0, 0]
    is_one = np.abs(np.abs(size) - 1.0) < _CLOSE
    ones, turn = ones[is_one], np.angle(size[is_one])
    delay = _least(np.mod(turn, 2.0 * np.pi) / ones, ones)
    return *_gains(loop), *_least(np.abs(turn), ones), *delay, *_distance(loop)


def _gains(loop: _System) -> tuple[tuple[float, float], tuple[float, float]]:
    """Return the two factors about 1 at which a loop swings, and their frequencies."""
    real = _zeros(loop, loop.crossings(of_size=False), lambda L: L.imag / np.abs(L))
    found = np.concatenate([[0.0, loop.last()], real])
    size = loop.at(found)[:, 0, 0]
    with np.errstate(all="ignore"):
        factor = 1.0 / size.real
        swings = (np.abs(size.imag) <= _CLOSE * np.abs(size)) & np.isfinite(factor) & (factor > _NONE)
    found, factor = found[swings], factor[swings]
    below, above = factor < 1.0, factor >= 1.0
    low, at_low = _least(1.0 / factor[below], found[below])
    high, at_high = _least(factor[above], found[above])
    return (1.0 / low, high), (at_low, at_high)


def _least(values: Array, at: Array) -> tuple[float, float]:
    """Return the least of some values and where it is, first; inf and nan of none."""
    if not values.size:
        return np.inf, np.nan
    least = float(values.min())
    return least, float(at[values <= least * (1.0 + _NONE)].min())


def _zeros(loop: _System, candidates: Array, of: Any) -> Array:
    """Return where a function of a loop's response is 0, from candidates that stand near all of these."""
    from scipy.optimize import brentq

    w = _grid(loop, *candidates)

    def value(at: float) -> float:
        return float(np.nan_to_num(of(loop.at(np.array([at]))[0, 0, 0])))  # 0 where a pole stands

    with np.errstate(all="ignore"):  # a loop of which nothing comes back, a pole
        values = of(loop.at(w)[:, 0, 0])
        found = list(w[np.abs(values) < _TOUCHING])
        for k in np.flatnonzero(np.sign(values[1:]) * np.sign(values[:-1]) < 0.0):
            found.append(brentq(value, w[k], w[k + 1], xtol=1e-300, rtol=1e-14))
    return np.array(found)


def _grid(loop: _System, *about: float) -> Array:
    """Return frequencies about poles and others, the means of each two neighbours, and two decades at either end.

    What is as much faster than all poles as `SLOW` is slower is what roundings make of infinity.
    """
    poles, last = loop.frequencies(), loop.last()
    fastest = float(poles.max(initial=0.0)) or min(1.0, last / 2.0)
    there = np.concatenate([poles, about, [min(fastest, last / 2.0)]])
    there = np.unique(there[(there > SLOW * fastest) & (there < fastest / SLOW) & (there < last)])
    low, high = there[0] / 100.0, min(there[-1] * 100.0, last)
    whole = np.unique(np.concatenate([[low], there, [high]]))
    between = np.sqrt(whole[1:] * whole[:-1])
    decades = np.logspace(np.log10(low), np.log10(high), int(_LEAST_POINTS + _PER_DECADE * np.log10(high / low)))
    return np.unique(np.concatenate([whole, between, decades[1:-1]]))


def _distance(loop: _System) -> tuple[float, float]:
    """Return the least singular value of 1 − L over all frequencies, and where it is.

    It is one over the largest of (1 − L)⁻¹, which is finite where L has a pole.
    """
    from scipy.optimize import minimize_scalar

    answer = loop.answer()

    def value(at: Array) -> Array:
        found = answer.at(at)
        usual = np.isfinite(found).all(axis=(1, 2))  # else a pole of the closed loops stands there
        out = np.zeros(len(at))
        largest = np.linalg.svd(found[usual], compute_uv=False)[:, 0]
        out[usual] = 1.0 / np.maximum(largest, np.finfo(float).tiny)
        return out

    w = np.concatenate([[0.0], _grid(loop), [loop.last()]])
    values = value(w)
    best = int(values.argmin())
    least, least_at = float(values[best]), float(w[best])
    inside = np.flatnonzero((values[1:-1] <= values[:-2]) & (values[1:-1] <= values[2:])) + 1
    for k in inside[np.argsort(values[inside])][:4]:
        low, high = np.log(max(w[k - 1], w[k] / 100.0)), np.log(min(w[k + 1], w[k] * 100.0))
        found = minimize_scalar(lambda log_w: float(value(np.exp([log_w]))[0]), bounds=(low, high), method="bounded")
        if found.fun < least:
            least, least_at = float(found.fun), float(np.exp(found.x))
    return least, least_at


def _told(value: float) -> str:
    return "-" if np.isnan(value) else f"{value:.4g}"
