"""Damped least squares for the pose of a link: many targets and starts side by side, within the joints' limits.

Reference: Levenberg's and Marquardt's method with the damping of Fan and Yuan (Computing 74, 2005): λ in proportion
to the squared error, so that it dies out and the convergence is quadratic even where solutions are not isolated, as
in redundant arms.

====== ========== ====================================================================================
letter shape      meaning
====== ========== ====================================================================================
T      (B, 4, 4)  pose of the frame that is to be brought to the target, in the base's frame; B rows at once
R      (B, 3, 3)  its rotation as the target sees it
e      (B, m)     error in the m directions asked for: log R, and the position in the target's axes over `length`
A      (B, m, k)  ∂e/∂q of the k joints that move the frame; sliding joints count in units of `length`
t      (B, k)     step of these joints
====== ========== ====================================================================================

Rotation and translation are taken apart; the logarithm of SE(3) would mix them. So a direction that is left free does
not pull at the others, and the nearest pose to one out of reach is nearest in rad² + (m / length)².
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cstormpy import lie
from cstormpy.arrays import Array
from cstormpy.dynamics.batches import scratch_size, workspace
from cstormpy.dynamics.charts import LONGEST
from cstormpy.dynamics.kernel_lines import part_by_line
from cstormpy.dynamics.largest_angles import LargestAngles
from cstormpy.errors import NonFinite
from cstormpy.lie.exponential import _log_so3
from cstormpy.linkage.tables import tables_of

if TYPE_CHECKING:
    from cstormpy.kernels.entries import Entry
    from cstormpy.linkage import Linkage

Flags = NDArray[np.bool_]
Ints = NDArray[np.int64]

DAMPING = 0.1
"""First factor μ of the damping λ = μ |e|²."""
DAMPING_RANGE = (1e-8, 1e12)
DAMPING_CHANGE = 4.0
"""μ grows by this after a step that gains less than a quarter of what it promised, and shrinks above three."""
DAMPING_FLOOR = 1e-12
"""Least λ in units of the trace of AᵀA: rounding then makes less than a thousandth of a step where AᵀA is singular."""
LONGEST_STEP = 1.0
"""A step turns no joint by more than this [rad], and slides none by more than this times `length`."""
CLAMPINGS = 3
"""Number of times that a step is found anew with those joints put to their limits that would leave them."""
SLOW, PATIENCE = 0.9, 6
"""A start is given up after `PATIENCE` steps in a row that each leave more than `SLOW` of the squared error."""
SETTLED, SETTLING = 1 - 1e-10, 12
"""`SLOW` and `PATIENCE` on the way to the nearest pose, where the least gain counts."""
AS_GOOD = 1.001
"""Of starts that end out of reach, with squared errors within this factor, the nearest to q0 is taken."""
WAVE = 15
"""Random starts that follow q0; where they fail, three times as many as there were follow, and so on."""
BLOCK = 256
"""Independent targets side by side."""


@dataclass(frozen=True)
class Tip:
    """The frame that is to be brought somewhere, the joints that move it, and how far counts as how far."""

    mech: Linkage
    link: int
    tool: tuple[Array, Array] | None  # the frame's pose in the link's, (4, 4), and what turns the link's twists to its
    moving: Ints  # (k,) coordinates that move the link
    low: Array  # (k,) limits
    high: Array
    winds: Flags  # (k,) whether a full turn of the joint changes nothing
    scale: Array  # (k,) 1, or `length` of a sliding joint
    asked: Ints  # (m,) which of the six directions, rotations first
    length: float  # metres that count as much as a radian
    tolerance: tuple[float, float]  # rotation [rad], translation [m]
    angles: LargestAngles  # of rotation vectors among the k joints

    @property
    def width(self) -> int:
        """Number of rows of an error."""
        return len(self.asked)

    @cached_property
    def rotations(self) -> int:
        """Number of rotations among the directions asked for."""
        return int(np.count_nonzero(self.asked < 3))

    @cached_property
    def balls(self) -> list[int]:
        """Where rotation vectors begin that move the frame."""
        return [first for first in self.mech.ball_starts if first in self.moving]

    def _fill(self, entry: Entry, arguments: tuple[Any, ...]) -> None:
        """Fill the arrays of all rows by the straight line of a kernel, or else by its loops."""
        tables, count = tables_of(self.mech), len(arguments[0])
        part = part_by_line(entry, tables, arguments, count)
        if part is None or part(0, count)[1] != 0:
            W = workspace(scratch_size(self.mech, False))
            entry.load()(tables.T, tables.N, W, *arguments, 0, count)

    def _placed(self, q: Array) -> tuple[Array, Array]:
        """Return the pose and the body Jacobian of the link, straight from the kernels: q has been checked before."""
        from cstormpy.kernels import entries_kinematics as entries

        B, n = q.shape
        T, (J, rate) = np.empty((B, len(self.mech.links), 16)), np.zeros((2, B, 6, n))
        q = np.ascontiguousarray(q)
        self._fill(entries.pose_lanes, (q, T))
        self._fill(entries.jacobian_lanes, (q, q, self.link, J, rate))
        at = T[:, self.link].reshape(B, 4, 4)
        if not (np.isfinite(at).all() and np.isfinite(J).all()):
            name = self.mech.links[self.link].name
            raise NonFinite(f"link {name!r}: its pose overflows on the way to the target; the numbers are too large")
        return at, J

    def error(self, q: Array, target: Array) -> tuple[Array, Array]:
        """Return e and A of rows of coordinates (B, n) and targets (B, 4, 4)."""
        T, J = self._placed(q)
        J = J[:, :, self.moving] * self.scale
        if self.tool is not None:
            T, J = T @ self.tool[0], self.tool[1] @ J
        axes = np.swapaxes(target[:, :3, :3], 1, 2)
        R = axes @ T[:, :3, :3]
        e, A = np.zeros((len(q), 6)), np.empty(J.shape)
        e[:, 3:] = (axes @ (T[:, :3, 3] - target[:, :3, 3])[..., None])[..., 0] / self.length
        A[:, 3:] = R @ J[:, 3:] / self.length
        A[:, :3] = J[:, :3]
        if self.rotations:
            e[:, :3] = _log_so3(R)
        if 0 < self.rotations < 3:
            # Of the whole rotation vector ω the derivative D of the logarithm changes no gradient, as Dᵀω = ω, and
            # AᵀA is nearer to the second derivative of ω²/2 without it.
            A[:, :3] = lie.dexp_inv_so3(e[:, :3]) @ A[:, :3]
        return (e, A) if len(self.asked) == 6 else (e[:, self.asked], A[:, self.asked])

    def distance(self, e: Array) -> Array:
        """Return how far rows are from their targets, (B, 2): rotation [rad], translation [m]."""
        parts = e[:, : self.rotations], e[:, self.rotations :] * self.length
        return np.stack([np.sqrt((part * part).sum(axis=1)) for part in parts], axis=1)

    def reached(self, e: Array, cost: Array) -> Flags:
        """Return which rows are at their targets, (B,)."""
        rotation, translation = self.tolerance
        near = np.asarray(cost <= 2 * (rotation * rotation + np.square(translation / self.length)))
        return near & (self.distance(e) <= self.tolerance).all(axis=1) if near.any() else near

    def finished(self, found: Found, targets: Array) -> Found:
        """Return what was found as it is answered."""
        return found

    def clipped(self, q: Array) -> Array:
        """Return coordinates (..., n) with the joints that move the frame brought inside of their limits.

        Rotation vectors that come near to a whole turn are exchanged for the shorter ones of the same rotations.
        """
        q = q.copy()
        held = np.clip(q[..., self.moving], self.low, self.high)
        self.angles.within(held)
        q[..., self.moving] = held
        for first in self.balls:
            phi = q[..., first : first + 3]
            angle = np.sqrt((phi * phi).sum(axis=-1, keepdims=True))
            if (angle > LONGEST).any():
                turns = np.ceil((angle - np.pi) / (2 * np.pi))
                phi *= 1.0 - np.where(angle > LONGEST, 2 * np.pi * turns / np.maximum(angle, 1.0), 0.0)
        return q

    def unwound(self, q: Array, near: Array) -> Array:
        """Return the same postures (..., n), joints turned back by full turns towards `near` where limits allow."""
        q = q.copy()
        old = q[..., self.moving]
        new = old - 2 * np.pi * np.round((old - near[..., self.moving]) / (2 * np.pi))
        fits = self.winds & (new >= self.low) & (new <= self.high)
        q[..., self.moving] = np.where(fits, new, old)
        return q

    def apart(self, q: Array, near: Array) -> Array:
        """Return how far postures (..., n) are from `near`, with metres over `length`."""
        return np.asarray(np.linalg.norm((q - near)[..., self.moving] / self.scale, axis=-1))

    def draw(self, rng: np.random.Generator, near: Array, count: int) -> Array:
        """Return random coordinates (N, count, n): uniform within limits, others half a turn or `length` about `near`.

        Joints that do not move the frame stay.
        """
        q = np.repeat(near[:, None], count, axis=1)
        center = q[..., self.moving]
        bounded = np.isfinite(self.low) & np.isfinite(self.high)
        reach = np.where(bounded, np.inf, np.where(self.scale == 1.0, np.pi, self.length))
        low, high = np.maximum(self.low, center - reach), np.minimum(self.high, center + reach)
        drawn = low + (high - low) * rng.random(center.shape)
        self.angles.draw(rng, drawn)
        q[..., self.moving] = drawn
        return self.clipped(q)


@dataclass
class _Rows:
    """State of the search of the rows of a batch."""

    name: Ints  # (B,) position in the batch as given
    q: Array  # (B, n)
    target: Array  # (B, 4, 4)
    e: Array
    A: Array
    cost: Array  # (B,) |e|²
    mu: Array  # (B,) factor of the damping
    slow: Ints  # (B,) steps in a row that gained little
    steps: Ints  # (B,)

    def only(self, kept: Flags) -> _Rows:
        return _Rows(*(getattr(self, field.name)[kept] for field in fields(self)))


def _begin(tip: Tip, q: Array, target: Array) -> _Rows:
    count = len(q)
    e, A = tip.error(q, target)
    none = np.zeros(count, dtype=np.int64)
    cost = (e * e).sum(axis=1)
    return _Rows(np.arange(count), q, target, e, A, cost, np.full(count, DAMPING), none, none.copy())


def _damped(A: Array, e: Array, damping: Array) -> Array:
    """Return the t that is least in |e + A t|² + λ |t|²."""
    m, k = A.shape[1:]
    At = np.swapaxes(A, 1, 2)
    square = At @ A if k <= m else A @ At
    square.reshape(len(A), -1)[:, :: len(square[0]) + 1] += damping[:, None]
    # With more joints than directions t has no share, not even of rounding, in motions that do not move the frame.
    t = np.linalg.solve(square, At @ e[..., None]) if k <= m else At @ np.linalg.solve(square, e[..., None])
    return np.asarray(-t[..., 0], dtype=np.float64)


def _step(tip: Tip, rows: _Rows) -> Array:
    """Return the step of the joints that move the frame, which stays within their limits and `LONGEST_STEP`."""
    A, e = rows.A, rows.e
    q = rows.q[:, tip.moving]
    low, high = (tip.low - q) / tip.scale, (tip.high - q) / tip.scale
    damping = np.maximum(rows.mu * rows.cost, DAMPING_FLOOR * (A * A).sum(axis=(1, 2)) + np.finfo(float).tiny)
    t = _damped(A, e, damping)
    touched = tip.angles.touched(q, t, low, high)
    if touched is not None:
        axes, low, high = touched
        A, t = A @ axes, (t[:, None] @ axes)[:, 0]
    held = (t < low) | (t > high)
    for _ in range(CLAMPINGS):
        if not held.any():
            break
        clamped = np.where(held, np.clip(t, low, high), 0.0)
        free = np.where(held[:, None, :], 0.0, A)
        t = clamped + _damped(free, e + (A @ clamped[..., None])[..., 0], damping)
        outside = (t < low) | (t > high)
        if not outside.any():
            break
        held |= outside
    t = np.clip(t, low, high)
    if touched is not None:
        t = (axes @ t[..., None])[..., 0]
    longest = np.abs(t).max(axis=1, initial=LONGEST_STEP)
    return np.asarray(t * (LONGEST_STEP / longest)[:, None])


def _advance(tip: Tip, rows: _Rows, slow: float) -> None:
    """Take a step in each row where it gains something, and adapt the damping."""
    t = _step(tip, rows)
    q = rows.q.copy()
    q[:, tip.moving] += t * tip.scale
    q = tip.clipped(q)  # rounding may have left the limits
    e, A = tip.error(q, rows.target)
    cost = (e * e).sum(axis=1)
    promised = rows.cost - ((rows.e + (rows.A @ t[..., None])[..., 0]) ** 2).sum(axis=1)
    gain = rows.cost - cost
    change = np.where(gain < 0.25 * promised, DAMPING_CHANGE, np.where(gain > 0.75 * promised, 1 / DAMPING_CHANGE, 1.0))
    rows.mu = np.clip(rows.mu * change, *DAMPING_RANGE)
    rows.slow = np.where(cost < slow * rows.cost, 0, rows.slow + 1)
    rows.steps = rows.steps + 1
    better = cost < rows.cost
    if better.all():
        rows.q, rows.e, rows.A, rows.cost = q, e, A, cost
        return
    rows.cost = np.where(better, cost, rows.cost)
    rows.q = np.where(better[:, None], q, rows.q)
    rows.e = np.where(better[:, None], e, rows.e)
    rows.A = np.where(better[:, None, None], A, rows.A)


@dataclass
class Found:
    """Ends of the search of rows."""

    q: Array  # (B, n)
    e: Array  # (B, m)
    cost: Array  # (B,) |e|²
    reached: Flags  # (B,)
    steps: Ints  # (B,)
    settled: Flags  # (B,) whether it ended because no step gained anything
    start: Ints  # (B,) which start it was, 0 for q0
    starts: Ints  # (B,) how many there were

    def put(self, where: Flags | Ints, other: Found) -> None:
        """Write the rows of another in some places of this."""
        for field in fields(self):
            getattr(self, field.name)[where] = getattr(other, field.name)


@dataclass(frozen=True)
class PoseSearch:
    """The search for targets from some starts each, q0 the first."""

    tip: Tip
    starts: int
    rng: np.random.Generator
    iterations: int

    def each(self, targets: Array, first: Array) -> Found:
        """Return what was found for targets (N, 4, 4) from coordinates (N, n), each for itself."""
        found = self._nothing(first)
        for begin in range(0, len(targets), BLOCK):
            block = np.arange(begin, min(begin + BLOCK, len(targets)))
            found.put(block, self._block(targets[block], first[block]))
        return found

    def along(self, targets: Array, first: Array) -> Found:
        """Return what was found for targets (N, 4, 4) each from where the one before ended; `first` is (N, n)."""
        found = self._nothing(first)
        q = first[:1]
        for k in range(len(targets)):
            here = self._block(targets[k : k + 1], q)
            found.put(np.array([k]), here)
            q = here.q
        return found

    def _block(self, targets: Array, first: Array) -> Found:
        first = self.tip.clipped(first)
        with np.errstate(all="ignore"):  # the logarithm divides by zero where there is no angle
            found = self._descend(targets, first, SLOW, PATIENCE)
            found.q = np.where(found.steps[:, None] > 0, self.tip.unwound(found.q, first), found.q)
            tried = 1
            while len(lost := np.flatnonzero(~found.reached)) and tried < self.starts:
                more = min(max(WAVE, 3 * tried), self.starts - tried)
                found.put(lost, self._scatter(targets[lost], first[lost], found, lost, tried, more))
                tried += more
            if len(lost):
                nearest = self._descend(targets[lost], found.q[lost], SETTLED, SETTLING)
                nearest.q = self.tip.unwound(nearest.q, first[lost])
                nearest.steps += found.steps[lost]
                nearest.start, nearest.starts = found.start[lost], found.starts[lost]
                found.put(lost, nearest)
            return self.tip.finished(found, targets)

    def _scatter(self, targets: Array, first: Array, before: Found, lost: Ints, tried: int, more: int) -> Found:
        """Return the best of what more random starts find for each target, and of what was found before."""
        count = len(targets)
        q = self.tip.draw(self.rng, first, more).reshape(count * more, -1)
        owner = np.repeat(np.arange(count), more)
        found = self._descend(targets[owner], q, SLOW, PATIENCE, owner)
        found.q = self.tip.unwound(found.q, first[owner])
        found.start = np.tile(np.arange(tried, tried + more), count)
        chosen = self._nothing(first)
        for field in fields(found):  # a column of starts for each target, that from q0 first
            old, new = getattr(before, field.name)[lost], getattr(found, field.name)
            columns = np.concatenate([old[:, None], new.reshape(count, more, *new.shape[1:])], axis=1)
            setattr(chosen, field.name, columns)
        nearest = chosen.cost <= AS_GOOD * chosen.cost.min(axis=1, keepdims=True)
        good = np.where(chosen.reached.any(axis=1, keepdims=True), chosen.reached, nearest)
        best = np.where(good, self.tip.apart(chosen.q, first[:, None]), np.inf).argmin(axis=1)
        for field in fields(chosen):
            setattr(chosen, field.name, getattr(chosen, field.name)[np.arange(count), best])
        chosen.starts[:] = tried + more
        return chosen

    def _descend(self, targets: Array, q: Array, slow: float, patience: int, owner: Ints | None = None) -> Found:
        """Return where rows end; rows of one owner all end when one of them is at its target."""
        found, rows = self._nothing(q), _begin(self.tip, q, targets)
        for step in range(self.iterations + 1):
            reached = self.tip.reached(rows.e, rows.cost)
            settled = rows.slow >= patience
            ended = reached | settled | (step == self.iterations)
            if owner is not None and reached.any():
                ended |= np.isin(owner[rows.name], owner[rows.name[reached]])
            if ended.any():
                over = rows.only(ended)
                found.q[over.name], found.e[over.name], found.cost[over.name] = over.q, over.e, over.cost
                found.steps[over.name] = over.steps
                found.reached[over.name], found.settled[over.name] = reached[ended], settled[ended]
                rows = rows.only(~ended)
            if not len(rows.name):
                break
            _advance(self.tip, rows, slow)
        return found

    def _nothing(self, first: Array) -> Found:
        """Return room for rows that begin at coordinates (B, n)."""
        count = len(first)
        none, whole = np.zeros(count, dtype=bool), np.zeros(count, dtype=np.int64)
        e, cost = np.zeros((count, self.tip.width)), np.full(count, np.inf)
        return Found(first.copy(), e, cost, none, whole, none.copy(), whole.copy(), whole + 1)
