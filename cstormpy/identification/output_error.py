"""Output error: the numbers of a mechanism with which its simulated motions come nearest to the logged ones.

A log is cut into stretches, each of which begins anew at a state that is found along with the numbers (multiple
shooting: H. G. Bock, Recent advances in parameter identification techniques for O.D.E., 1983), so that a motion may be
unstable. State and variation go on by the classical method of Runge and Kutta under the logged torques, all stretches
side by side:

    dS/dt = A S + (0, ∂q̈/∂p),      S = (∂x/∂x0, ∂x/∂p)

The least squares go by Levenberg and Marquardt; the starts of the stretches are eliminated by an orthogonal
factorisation, so that what is solved has the size of the numbers. Those of a closed mechanism go along the directions
in which its loops stay closed, and are closed after each step; numbers that move the loops are refused.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cstormpy.arrays import Array
from cstormpy.errors import CstormError, InvalidValue, NonFinite
from cstormpy.identification.consistency import Bodies
from cstormpy.identification.equations import LEAST_SHOWN, told
from cstormpy.identification.log import LEAST_ROWS, Log
from cstormpy.identification.unknowns import NONNEGATIVE, size_of
from cstormpy.linkage.components import Component, LoopFrame, Shift, Term, find
from cstormpy.linkage.scales import coordinate_scales, inertial_scales
from cstormpy.loops.closed_motions import closed_motion, state_directions
from cstormpy.loops.sensitivity import closed_sensitivity
from cstormpy.mechanism.component_values import component_value, with_components
from cstormpy.reporting import notice_once
from cstormpy.sensitivity.hybrid import hybrid_sensitivity
from cstormpy.sensitivity.torque_rates import torque_rates

if TYPE_CHECKING:
    from cstormpy.mechanism import Mechanism

#: Most steps of the search, and most times that one is shortened.
STEPS, SHORTENED = 60, 12
#: The search ends where a step is to lower the sum of squares by less than this part of it.
GAIN = 1e-10
#: Or by less than this, once it is in units of the noise: a hundredth of a standard error.
SMALL = 1e-4
#: The damping at first, and by what it grows and shrinks.
DAMPING, GROWS, SHRINKS = 1e-3, 4.0, 0.2
#: Of so many stretches, and so many for each number, the scatter is looked at.
FEWEST, FOR_EACH = 5, 2
#: Noise of a signal below this part of its size is rounding.
QUIET = 1e-9
#: A singular value below this part of the greatest is zero, and so is what is left of a direction.
RANK, UNTOLD = 1e-8, 1e-4
#: What is left over is no noise where it is so many times as large as its second differences tell.
SMOOTH = 3.0
#: A column of derivatives below this part of the longest is rounding.
ROUNDING = 1e-14
#: The furthest that a log-Cholesky coordinate goes in one step: a diagonal by a factor of e.
FURTHEST = 1.0
#: So much of a mass is left after a step.
LEFT = 0.2
#: The longest step for the shortest time in which damping and friction at rest slow a motion down: beyond 2.8 of these
#: the integration is unstable. More steps than so many between two rows are not taken for that.
STABLE, MOST_PARTS = 2.0, 100
#: The noise of each signal is found from what a fit leaves, and the next weighs by it, until it changes by less than
#: this part, but not more often than so many times.
SETTLED, FITS = 0.01, 10


@dataclass(frozen=True)
class Stretches:
    """A log cut into S stretches of L rows; the last rows of a shorter one are repeated without weight.

    Each begins and ends at a row of which something was measured; what was not is zero, without weight.

    Attributes
    ----------
    t, tau : ndarray, (S, L), (S, L, n)
    wanted : ndarray, (S, L, m)
        Positions, and rates where these were logged.
    weighs : ndarray of bool, (S, L, m)
    rows : ndarray of int, (S, L)
        Which row of the log each is.
    start : ndarray, (S, 2n)
        A first guess of the states that they begin with.
    """

    t: Array
    tau: Array
    wanted: Array
    weighs: NDArray[np.bool_]
    rows: NDArray[np.int64]
    start: Array

    @classmethod
    def of(cls, log: Log, length: int) -> Stretches:
        """Cut a log."""
        parts: list[NDArray[np.int64]] = []
        seen = np.isfinite(log.measured)
        for run in range(int(log.run.max()) + 1):
            mine = np.flatnonzero((log.run == run) & seen.any(axis=1))
            if len(mine) < LEAST_ROWS:
                raise InvalidValue(
                    f"{log.names[run]}: a log of {len(mine)} rows is too short; {LEAST_ROWS} are the least"
                )
            cut = np.array_split(mine, max(1, round(len(mine) / length)))
            parts += [np.arange(part[0], part[-1] + 1) for part in cut]
        longest = max(len(part) for part in parts)
        rows = [np.concatenate([part, np.full(longest - len(part), part[-1])]) for part in parts]
        at, lengths = np.array(rows), np.array([len(part) for part in parts])
        weighs = seen[at] & (np.arange(longest) < lengths[:, None])[..., None]
        start = np.hstack([log.q, log.qd])[at[:, 0]]
        return cls(log.t[at], log.tau[at], np.where(seen, log.measured, 0.0)[at], weighs, at, start)


@dataclass(frozen=True)
class Fit:
    """Result of `fit_output`.

    Attributes
    ----------
    mechanism : Mechanism
    names : tuple of str
    values : ndarray, (P,)
    covariance : ndarray, (P, P)
    determined : ndarray of bool, (P,)
    fitted, noise : ndarray, (N, m), (m,)
    misfit, systematic : ndarray, (n,), ndarray of bool, (n,)
        What part of each joint's motion is left over, and whether that is more than noise.
    success : bool
    message : str
    plain : bool
        Whether bodies can have what was found without being held to that.
    """

    mechanism: Mechanism
    names: tuple[str, ...]
    values: Array
    covariance: Array
    determined: NDArray[np.bool_]
    fitted: Array
    noise: Array
    misfit: Array
    systematic: NDArray[np.bool_]
    success: bool
    message: str
    plain: bool


def fit_output(
    mech: Mechanism,
    log: Log,
    names: list[str],
    horizon: int,
    max_step: float,
    physical: bool = True,
    held: bool = False,
) -> Fit:
    """Return the components of parameters with which simulated motions are nearest to a log's.

    Parameters
    ----------
    mech : Mechanism
    log : Log
    names : list of str
        Of any parameters or components.
    horizon : int
        Rows of a stretch.
    max_step : float
        Longest step of the integration [s]; it is shorter where damping, or friction next to rest, asks for that.
    physical : bool
        Whether links that are unknown as a whole are held to what bodies can have, where they would not be.
    held : bool
        Whether torques are held from each row to the next, and not linear between them.
    """
    search = _Search(mech, log, names, horizon, max_step, held)
    found = _gone(search)
    if physical and not search.bodies.possible(search.point.values):
        search.hold(mech)
        found = _gone(search)
    return search.result(*found)


def _gone(search: _Search) -> tuple[Array, bool, str]:
    """Let a search go to its end; return the noise of each signal, whether that was reached, and why it ended."""
    sigma = search.sizes()
    for k in range(FITS):
        success, message = search.go(sigma, SMALL if k else 0.0)
        before, sigma = sigma, search.noise(sigma)
        if k and np.all(np.abs(sigma - before) <= SETTLED * before):
            break
    return sigma, success, message


@dataclass(frozen=True)
class _Point:
    """State of the search: numbers and starts, what they simulate, and its derivatives."""

    values: Array
    start: Array
    ways: Array  # (S, 2n, F), along which the starts may change
    mech: Mechanism
    found: Array  # (S, L, m)
    to_start: Array  # (S, L, m, F)
    to_values: Array  # (S, L, m, P)


class _Search:
    """The search for the numbers and the starts of the stretches."""

    def __init__(self, mech: Mechanism, log: Log, names: list[str], horizon: int, max_step: float, held: bool) -> None:
        self.log, self._holds_torques = log, held
        self.names = [part.name for _, parts in find(mech, names) for part in parts]
        for name in self.names:
            component_value(mech, name)  # refuses wrenches
        if mech.loops:
            _refuse_moving(mech, names)
        self.stretches = Stretches.of(log, horizon)
        self._directions = state_directions(mech, self.stretches.start)
        steps = np.diff(log.t)[np.diff(log.run) == 0]
        self._longest = float(steps.max(initial=0.0))
        self._parts = max(1, _count(self._longest / max_step))
        count = int(self.stretches.weighs.sum())
        free = self._directions.shape[0] * self._directions.shape[2]
        if count <= free + len(self.names):
            raise InvalidValue(
                f"data: {len(log.t)} rows are {count} equations, too few for {len(self.names)} numbers and the "
                f"{free} of the states that {len(self.stretches.t)} stretches begin with; log more, or take a longer "
                "horizon"
            )
        self._given = mech
        self._parts_of_first = [find(mech, name)[0][1][0] for name in self.names]
        self._sizes = np.array([size_of(mech, part) for part in self._parts_of_first])
        self.bodies, self.held = Bodies(self.names, inertial_scales(mech)), False
        values = np.array([component_value(mech, name) for name in self.names])
        try:
            self.point = self._at(mech.with_drive(active=[]), values, self.stretches.start)
        except NonFinite:
            raise NonFinite(
                "identify: the simulation of the mechanism that is given grows beyond all numbers; its guesses, as of "
                "a stiffness, may be too large, horizon= too long, or max_step= is needed"
            ) from None

    def hold(self, mech: Mechanism) -> None:
        """Begin anew, and hold links to what bodies can have."""
        self.held = True
        values = self.bodies.inside(np.array([component_value(mech, name) for name in self.names]))
        made = with_components(mech, dict(zip(self.names, values.tolist(), strict=True)))
        self.point = self._at(made.with_drive(active=[]), values, self.stretches.start)

    # simulation

    @np.errstate(over="ignore", invalid="ignore")  # what grows beyond all numbers is no point
    def _at(self, mech: Mechanism, values: Array, start: Array) -> _Point:
        """Simulate all stretches."""
        self._keep_stable(mech)
        parts = [part for name in self.names for part in find(mech, name)[0][1]]
        s, ways = self.stretches, state_directions(mech, start)
        free = ways.shape[2]
        x, D = start.copy(), np.concatenate([ways, np.zeros((*start.shape, len(values)))], axis=2)
        states, changes = [x], [D]
        for k in range(s.t.shape[1] - 1):
            h = (s.t[:, k + 1] - s.t[:, k])[:, None] / self._parts
            for j in range(self._parts):
                a, b = (((j + part) / self._parts) for part in (0.0, 1.0))
                shares = (0.0, 0.0, 0.0) if self._holds_torques else (a, 0.5 * (a + b), b)
                loads = [(1 - w) * s.tau[:, k] + w * s.tau[:, k + 1] for w in shares]
                x, D = _step(mech, parts, x, D, h, loads)
            states.append(x)
            changes.append(D)
        width = s.wanted.shape[-1]
        found = np.stack(states, axis=1)[..., :width]
        rates = np.stack(changes, axis=1)[..., :width, :]
        return _Point(values, start, ways, mech, found, rates[..., :free], rates[..., free:])

    def _keep_stable(self, mech: Mechanism) -> None:
        """Take shorter steps, from now on, where damping and friction at rest need that."""
        s, n = self.stretches, mech.n
        q, nothing = np.ascontiguousarray(s.start[:, :n]), np.zeros((len(s.start), n))
        slopes = _sensitivity(mech, q, nothing, nothing).dy_dqd
        fastest = float(np.abs(np.linalg.eigvals(slopes)).max(initial=0.0)) if np.isfinite(slopes).all() else 0.0
        parts = _count(self._longest * fastest / STABLE)
        if parts > max(self._parts, MOST_PARTS):
            joint = mech.names[int(np.argmax(np.abs(np.diagonal(slopes, axis1=1, axis2=2)).max(axis=0)))]
            notice_once(
                f"identify: at rest friction and damping of joint {joint!r} slow it down within {1.0 / fastest:.2g} s, "
                "for which steps are not short enough, so that the simulation may be unstable there; give it a greater "
                "friction_velocity"
            )
        self._parts = max(self._parts, min(parts, MOST_PARTS))

    def _bounds(self) -> tuple[Array, Array]:
        """Return the least and greatest changes, for positive masses, and damping and the like that is not negative."""
        now = self.point.values
        least = np.array([_least(part, value) for part, value in zip(self._parts_of_first, now, strict=True)])
        least = least - now
        most = np.full(len(least), np.inf)
        if self.held:
            least[self.bodies.all], most[self.bodies.all] = -FURTHEST, FURTHEST
        return least, most

    def _values_after(self, change: Array) -> Array:
        """Return the values after a change of the coordinates, in which bodies keep to what they can have."""
        now = self.point.values
        return self.bodies.moved(now, change) if self.held else now + change

    def _tried(self, change: Array, start: Array) -> _Point | None:
        """Return a point further on, or None where no mechanism has such numbers or the simulation fails."""
        now = self.point.mech
        try:
            after = self._values_after(change)
            if self.held:
                self.bodies.rates(after)  # which a body next to none has no more
            pairs = zip(self.names, (after - self.point.values).tolist(), strict=True)
            values = {name: component_value(now, name) + step for name, step in pairs}
            mech = with_components(now, values, allow_impossible=True)
            point = self._at(mech, after, _moved(mech, self.point, start))
        except (CstormError, np.linalg.LinAlgError):
            return None
        return point if np.isfinite(point.found).all() and np.isfinite(point.to_values).all() else None

    # least squares

    def _residuals(self, point: _Point, sigma: Array) -> Array:
        s = self.stretches
        return np.asarray(s.weighs * (s.wanted - point.found) / sigma)

    def _coasting(self, point: _Point) -> Array:
        """Return the derivatives of what is found to the starts, as they are of motions without forces."""
        s, n = self.stretches, point.ways.shape[1] // 2
        passed = (s.t - s.t[:, :1])[:, :, None, None]
        rate = np.broadcast_to(point.ways[:, None, n:], (*s.t.shape, n, point.ways.shape[2]))
        return np.concatenate([point.ways[:, None, :n] + passed * rate, rate], axis=2)[:, :, : point.found.shape[2]]

    def _eliminated(
        self, point: _Point, sigma: Array, chart: bool, damping: float = 0.0
    ) -> tuple[Array, Array, Any, Array]:
        """Return Jacobian and residuals of numbers or coordinates alone, what gives the starts their steps, and Q."""
        S, L, m = point.found.shape
        weight = (self.stretches.weighs / sigma)[..., None]
        X = (weight * point.to_start).reshape(S, L * m, -1)
        to_values = point.to_values @ self.bodies.rates(point.values) if chart else point.to_values
        J, r = (weight * to_values).reshape(S, L * m, -1), self._residuals(point, sigma).reshape(S, L * m, 1)
        if damping:  # of starts by what they move without forces: in friction next to rest they seem to move nothing
            most = np.sqrt(damping) * np.linalg.norm(weight * self._coasting(point), axis=(1, 2))
            k = most.shape[1]
            X = np.concatenate([X, most[:, :, None] * np.eye(k)], axis=1)
            J, r = (np.concatenate([part, np.zeros((S, k, part.shape[2]))], axis=1) for part in (J, r))
        Q, R = np.linalg.qr(X)
        Qt = np.swapaxes(Q, 1, 2)

        def start_step(change: Array) -> Array:
            return np.asarray(np.linalg.solve(R, Qt @ (r - J @ change[:, None]))[..., 0])

        return (J - Q @ (Qt @ J)).reshape(-1, J.shape[2]), (r - Q @ (Qt @ r)).ravel(), start_step, Q

    def go(self, sigma: Array, small: float) -> tuple[bool, str]:
        """Go to the least sum of squares; return whether that was reached, and why the search ended."""
        from scipy.optimize import lsq_linear

        damping = DAMPING
        value = float(np.sum(self._residuals(self.point, sigma) ** 2))
        for k in range(STEPS):
            least, most = self._bounds()
            shortened = damping > DAMPING  # a short step promises and gains little, wherever it is
            for _ in range(SHORTENED):
                J, r, start_step, _ = self._eliminated(self.point, sigma, self.held, damping)
                scale = self._lengths(J, self.held)
                triangle: Array = np.asarray(np.linalg.qr(np.column_stack([J / scale, r]), mode="r"))
                rows = np.vstack([triangle[:, :-1], np.sqrt(damping) * np.eye(len(scale))])
                wanted = np.concatenate([triangle[:, -1], np.zeros(len(scale))])
                # a step that is cut off at bounds would leave the others what they are beside the whole of it
                change = lsq_linear(rows, wanted, (least * scale, most * scale), method="bvls").x / scale
                change = np.clip(change, least, most)
                start = start_step(change)
                promise = value - float(np.sum((r - J @ change) ** 2))
                trial = self._tried(change, start)
                there = np.inf if trial is None else float(np.sum(self._residuals(trial, sigma) ** 2))
                if there < value:
                    break
                if promise <= max(GAIN * value, small) and not shortened:
                    return True, f"converged after {k + 1} steps"
                damping, shortened = damping * GROWS**2, True
            else:
                return False, f"no step lowers the error after {k + 1} steps"
            assert trial is not None
            gained, value, self.point = value - there, there, trial
            damping = max(damping * (SHRINKS if gained > 0.5 * promise else GROWS), 1e-12)
            if gained <= max(GAIN * value, small) and not shortened:
                return True, f"converged after {k + 1} steps"
        return False, f"not yet converged after {STEPS} steps"

    def _lengths(self, J: Array, chart: bool) -> Array:
        """Return the lengths of columns, and those of a motion by its unit where they are zero but for rounding."""
        sizes = self._sizes.copy()
        if chart:
            sizes[self.bodies.all] = 1.0
        lengths = np.linalg.norm(J, axis=0) * sizes
        return np.asarray(np.where(lengths > ROUNDING * lengths.max(initial=0.0), lengths, 1.0) / sizes)

    def sizes(self) -> Array:
        """Return ordinary sizes of the signals, (m,), by which the first fit weighs them: of rates by the fastest."""
        units, wanted = coordinate_scales(self._given), self.stretches.wanted
        rates = wanted[..., len(units) :]  # there may be none
        fastest = float(np.abs(rates / units[: rates.shape[-1]]).max(initial=0.0)) or 1.0
        return np.concatenate([units, fastest * units])[: wanted.shape[-1]]

    def noise(self, sigma: Array) -> Array:
        """Return the standard deviation of each signal: of what is left over, by how much of its noise that shows."""
        s = self.stretches
        squares = (self._residuals(self.point, np.ones(s.wanted.shape[-1])) ** 2).sum(axis=(0, 1))
        J, _, _, Q = self._eliminated(self.point, sigma, False)
        fitted = (Q**2).sum(axis=2).ravel() + (told(J / self._lengths(J, False), RANK)[0] ** 2).sum(axis=1)
        count = s.weighs.sum(axis=(0, 1))
        shows = np.maximum(count - fitted.reshape(s.wanted.shape).sum(axis=(0, 1)), LEAST_SHOWN * count)
        size = np.abs(s.wanted).max(axis=(0, 1))
        return np.maximum(np.sqrt(squares / shows), QUIET * size + 1e-300)

    def _spread_by_stretch(self, J: Array, r: Array, half: Array) -> Array:
        """Return by how much standard errors are greater than those of noise that is another one in each row, (P,).

        Noise of torques moves all rows that follow within a stretch; stretches differ by themselves. What each of them
        would change of the numbers, with what the fit has taken of its residuals put back, tells how much these scatter
        (the clustered covariance CR2 of Bell and McCaffrey 2002).
        """
        count, size = len(self.stretches.t), J.shape[1]
        if count < max(FEWEST, FOR_EACH * size):
            return np.ones(size)
        each = J.reshape(count, -1, size) @ half
        shown, ways = np.linalg.eigh(np.eye(half.shape[1]) - np.swapaxes(each, 1, 2) @ each)
        pulls = np.einsum("skj,slk,sl->sj", ways, each, r.reshape(count, -1)) / np.sqrt(np.maximum(shown, RANK))
        changes = np.einsum("skj,sj->sk", ways, pulls) @ half.T
        scatter, white = (changes**2).sum(axis=0), (half**2).sum(axis=1)
        return np.sqrt(np.maximum(scatter / np.where(white > 0.0, white, 1.0), 1.0))

    def _left_over(self) -> tuple[Array, NDArray[np.bool_]]:
        """Return what part of each joint's motion is left over, (n,), NaN where it has none, and whether it is smooth.

        Motion is what positions have in a stretch beside a straight line, which any mechanism explains. Second
        differences of noise in each row are √6 times as large as the noise, those of a model that is wrong are small.
        """
        s, n = self.stretches, self._given.n
        weighs, y = s.weighs[..., :n], s.wanted[..., :n]
        count = np.maximum(weighs.sum(axis=1, keepdims=True), 1)

        def beside_mean(a: Array) -> Array:
            return np.asarray(weighs * (a - (weighs * a).sum(axis=1, keepdims=True) / count))

        passed, moved = beside_mean(s.t[..., None]), beside_mean(y)
        slope = (passed * moved).sum(axis=1, keepdims=True) / np.maximum((passed**2).sum(axis=1, keepdims=True), 1e-300)
        motion = np.sqrt(((moved - slope * passed) ** 2).sum(axis=(0, 1)))
        left = weighs * (y - self.point.found[..., :n])
        three = weighs[:, 2:] & weighs[:, 1:-1] & weighs[:, :-2]
        rough = ((three * np.diff(left, 2, axis=1)) ** 2).sum(axis=(0, 1)) / (
            6.0 * np.maximum(three.sum(axis=(0, 1)), 1)
        )
        mean = (left**2).sum(axis=(0, 1)) / np.maximum(weighs.sum(axis=(0, 1)), 1)
        amount = np.sqrt((left**2).sum(axis=(0, 1)))
        return np.where(motion > 0.0, amount, np.nan) / np.where(motion > 0.0, motion, 1.0), mean > SMOOTH**2 * rough

    def _mechanism(self) -> Mechanism:
        """Return the mechanism that was found, of whose links those have impossible inertias that must."""
        found = self.point.mech.with_drive(active=self._given.active)
        links = []
        for link, given in zip(found.links, self._given.links, strict=True):
            try:
                links.append(link.replace(allow_impossible=given.allow_impossible))
            except InvalidValue:
                links.append(link)
        return found.with_links(links)

    def result(self, sigma: Array, success: bool, message: str) -> Fit:
        """Return what was found."""
        J, r, _, _ = self._eliminated(self.point, sigma, False)
        scale = self._lengths(J, False)
        _, values, rows = told(J / scale, RANK)
        half = rows.T / values / scale[:, None]
        half *= self._spread_by_stretch(J, r, half)[:, None]
        untold = np.eye(len(scale)) - rows.T @ rows
        s = self.stretches
        fitted = np.full_like(self.log.measured, np.nan)
        fitted[s.rows] = self.point.found
        return Fit(
            self._mechanism(), tuple(self.names), self.point.values, half @ half.T,
            np.linalg.norm(untold, axis=0) < UNTOLD, fitted, sigma, *self._left_over(), success, message, not self.held,
        )  # fmt: skip


def _moved(mech: Mechanism, point: _Point, step: Array) -> Array:
    """Return the starts after steps (S, F) along their directions."""
    start = point.start + np.einsum("sxf,sf->sx", point.ways, step)
    if not mech.loops:
        return start
    q, qd = np.split(start, 2, axis=1)
    return np.hstack(closed_motion(mech, q, qd)[:2])


def _refuse_moving(mech: Mechanism, names: list[str]) -> None:
    """Refuse numbers of a closed mechanism that move its loops."""
    for name in names:
        if any(isinstance(part, (Shift, LoopFrame)) for _, parts in find(mech, name) for part in parts):
            raise InvalidValue(
                f"parameter {name!r}: moves the loops, which identify does not follow with form='output'; masses, "
                "inertias and what joints and gravity do can be found"
            )


def _least(part: Component, value: float) -> float:
    """Return the least that a component may become in one step."""
    if part.name.endswith(".mass") or (isinstance(part, Term) and part.field == "friction_velocity"):
        return LEFT * value
    return 0.0 if isinstance(part, Term) and part.field in NONNEGATIVE else -np.inf


def _step(
    mech: Mechanism, parts: list[Component], x: Array, D: Array, h: Array, tau: list[Array]
) -> tuple[Array, Array]:
    """Return states (S, 2n) and their derivatives (S, 2n, k) after a step of h (S, 1), by Runge and Kutta."""
    rates: list[tuple[Array, Array]] = []
    for part, load in zip((0.0, 0.5, 0.5, 1.0), (tau[0], tau[1], tau[1], tau[2]), strict=True):
        dx, dD = rates[-1] if rates else (0.0, 0.0)
        rates.append(_rate(mech, parts, x + part * h * dx, D + part * h[..., None] * dD, load))
    sums = [a + 2.0 * b + 2.0 * c + d for a, b, c, d in zip(*rates, strict=True)]
    return x + h / 6.0 * sums[0], D + h[..., None] / 6.0 * sums[1]


def _sensitivity(mech: Mechanism, q: Array, qd: Array, tau: Array) -> Any:
    """Return accelerations under torques, with their derivatives."""
    return closed_sensitivity(mech, q, qd, tau, check=False) if mech.loops else hybrid_sensitivity(mech, q, qd, tau)


def _count(ratio: float) -> int:
    """Return how many steps there are in a time of so many longest ones."""
    return int(np.ceil(ratio - 1e-9))


def _rate(mech: Mechanism, parts: list[Component], x: Array, D: Array, tau: Array) -> tuple[Array, Array]:
    n = mech.n
    q, qd = np.ascontiguousarray(x[:, :n]), np.ascontiguousarray(x[:, n:])
    d = _sensitivity(mech, q, qd, tau)
    change = d.dy_dq @ D[:, :n] + d.dy_dqd @ D[:, n:]
    change[..., D.shape[2] - len(parts) :] -= d.dy_du @ torque_rates(mech.tree, parts, q, qd, d.y)
    return np.hstack([qd, d.y]), np.concatenate([D[:, n:], change], axis=1)
