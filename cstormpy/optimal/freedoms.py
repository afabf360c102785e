"""The freedoms of a closed mechanism as variables: as many joints as it has are on splines, and the others follow.

With A q̇ = 0 the independent constraints, A_d their columns of the joints that follow, and b = Ȧ q̇, the motion of all
joints is that of the independent ones, q_i, through q̇ = J q̇_i, and changes with it by

    (a)  δq = J δq_i,    J_d = −A_d⁻¹ A_i
    (b)  δq̇ = J δq̇_i + K δq_i,    A_d K_d = −(∂A/∂q q̇) J
    (c)  δq̈ = J δq̈_i + 2 K δq̇_i + L δq_i,    A_d L_d = −(∂A/∂q q̈ + ∂b/∂q) J − ∂b/∂q̇ K

with rows of J of the identity, and of K and L of zeros, for q_i. Which way the loops close is followed along the motion
from the start. Singular postures, where ways meet and q_i tells nothing of the others, are kept away from by

    (d)  g = det A_d / √det A Aᵀ,    dg = g (tr A_d⁻¹ dA_d − tr A⁺ dA)

with coordinates in parts of their ordinary sizes: the volume that the independent joints see of all small motions.
"""

from __future__ import annotations

from threading import local
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cstormpy.errors import InvalidValue
from cstormpy.linkage.scales import coordinate_scales
from cstormpy.loops.assembly import independent_rows, singular
from cstormpy.loops.closure import closure_of, constraint_names
from cstormpy.loops.linearisation import independent_joints
from cstormpy.loops.projection import row_scales
from cstormpy.optimal.constraints import PathConstraint
from cstormpy.optimal.inverse import ClosedEvaluation, ClosedInverse, rows_through
from cstormpy.optimal.loop_forces import solved
from cstormpy.optimal.samples import Array, Parts, Places, Samples
from cstormpy.optimal.transcription import greville, phase_curve
from cstormpy.trajectory import BSpline, ControlPointMap, EndConditions
from cstormpy.trajectory.fitting import gauss_sites
from cstormpy.trajectory.knots import cut_evenly

if TYPE_CHECKING:
    from cstormpy.mechanism import Mechanism
    from cstormpy.optimal.conditions import State
    from cstormpy.optimal.problem import Problem
    from cstormpy.optimal.transcription import Setup

Flags = NDArray[np.bool_]

CLEAR, WALL = 0.1, 0.05
"""(d) is at least the first part of what it is at the start; no motion of a search comes to the second, as there rates,
and what grows with them, have no bound."""

ANCHORS, STRIDE, MOST = 5, 0.6, 1000
"""Postures in each segment of the splines, at least, that are closed one after the other; the longest way between them,
in radians and lengths of the mechanism, of a long motion, as far as so many in each will do."""

STEPS, SHUT, CLOSED = 12, 1e-12, 1e-10
"""Most steps by which a posture is closed; what may then be left, and what is left where it was, in lengths of the
mechanism and radians."""

FAR, LEAP, HALVINGS, SAME = 0.3, 1.0, 6, 1e-6
"""A step along the motion is halved, so often at most, where its tangent is off by more, or longer than a leap, in
radians and lengths of the mechanism; by how much closed postures differ that are the same."""

GAP, FINEST = 1e-10, 4000
"""By how much the spline of all joints may be open, in lengths and radians, and its most control points."""


class Freedoms:
    """The joints that are free, and how the others follow.

    Parameters
    ----------
    mech : Mechanism
    posture : ndarray, (n,)
        A closed one, at which a motion starts.
    """

    def __init__(self, mech: Mechanism, posture: Array) -> None:
        self.mech, self.posture = mech, posture
        self.rows = np.array(independent_rows(mech), dtype=np.intp)
        self.scales, self.units = row_scales(mech)[self.rows], coordinate_scales(mech)
        found = closure_of(mech, posture[None])
        if not found.holonomic.all():
            name = constraint_names(mech)[int(np.argmin(found.holonomic))]
            raise InvalidValue(
                f"loop {name}: is of rates, so that positions do not follow; take transcription='inverse'"
            )
        self.independent = independent_joints(mech, posture)
        self.dependent = np.setdiff1d(np.arange(mech.n), self.independent)
        if len(self.dependent) != len(self.rows):
            text = singular(mech, found.A[0], None) or "the posture is singular"
            raise InvalidValue(f"start: {text}; begin beside it, as the other joints do not follow there")
        self.volume = float(self.volumes(posture[None])[0])

    @property
    def mask(self) -> Flags:
        """Which joints are independent, (n,)."""
        return np.isin(np.arange(self.mech.n), self.independent)

    @property
    def names(self) -> str:
        """The independent joints, for messages."""
        return ", ".join(repr(self.mech.names[k]) for k in self.independent)

    def _slopes(self, q: Array) -> tuple[Any, Array, Array]:
        found = closure_of(self.mech, q)
        A = found.A[:, self.rows]
        return found, A, A[:, :, self.dependent]

    def volumes(self, q: Array) -> Array:
        """Return g of (d) in postures (N, n), (N,)."""
        _, A, A_d = self._slopes(q)
        A, A_d = A * self.units, A_d * self.units[self.dependent]
        return np.asarray(np.linalg.det(A_d) / np.sqrt(np.linalg.det(A @ np.swapaxes(A, 1, 2))))

    def volume_slopes(self, q: Array) -> Array:
        """Return ∂g/∂q, (N, n): (d)."""
        found, A, A_d = self._slopes(q)
        way = -self.units[:, None] * np.linalg.pinv(A * self.units)
        way[:, self.dependent] += solved(A_d, np.eye(len(self.rows)))
        return self.volumes(q)[:, None] * np.einsum("sjm,smjk->sk", way, found.slopes()[:, self.rows])

    def closed(self, begin: Array) -> tuple[Array, Flags]:
        """Return the closed postures near to some (N, n), of which the independent joints are held, and where one is.

        None is where it would be further away than FAR, in radians and lengths of the mechanism, nor beyond a singular
        one, where loops close another way.
        """
        q, lost = begin.copy(), np.zeros(len(begin), dtype=bool)
        for _ in range(STEPS):
            try:
                found, _, A_d = self._slopes(q)
            except InvalidValue:  # of a rotation vector of a whole turn
                return begin, np.zeros(len(begin), dtype=bool)
            off = found.residual()[:, self.rows]
            gap = np.abs(off / self.scales).max(axis=1)
            if not gap[~lost].max(initial=0.0) > SHUT:
                break
            q[:, self.dependent] -= solved(A_d, off[..., None])[..., 0]
            lost |= ~(np.abs(q - begin) <= 2.0 * FAR * self.units).all(axis=1)
            q[lost] = begin[lost]
        shut = ~lost & (gap <= CLOSED) & (np.abs(q - begin) <= FAR * self.units).all(axis=1)
        return q, shut & (self.volumes(np.where(shut[:, None], q, self.posture)) / self.volume > WALL)

    def following(self, path: Array, near: Array | None) -> Array | None:
        """Return the postures (N, n) that follow one another as the independent joints go along a path (N, f).

        They are looked for beside those of another path first, all at once, and are those that one step from each to
        the next finds.
        """
        if near is not None:
            begin, fits = self._ahead(near, path)
            q, shut = self.closed(np.where(fits[:, None], begin, near))
            begin, follows = self._ahead(np.concatenate([self.posture[None], q[:-1]]), path)
            again, stepped = self.closed(begin)
            if (fits & shut & follows & stepped).all() and (np.abs(again - q) <= SAME * self.units).all():
                return again
        out, here = np.empty((len(path), self.mech.n)), self.posture
        for k, wanted in enumerate(path):
            there = self._step(here, wanted, HALVINGS)
            if there is None:
                return None
            out[k] = here = there
        return out

    def _ahead(self, q: Array, wanted: Array) -> tuple[Array, Flags]:
        """Return postures with independent joints (N, f) that are wanted, as the tangents at others have them.

        Behind them is where this is no leap.
        """
        _, A, A_d = self._slopes(q)
        i, ahead = self.independent, q.copy()
        ahead[:, i] = wanted
        ahead[:, self.dependent] -= solved(A_d, A[:, :, i] @ (wanted - q[:, i])[..., None])[..., 0]
        return ahead, np.asarray((np.abs(ahead - q) <= LEAP * self.units).all(axis=1))

    def _step(self, q: Array, wanted: Array, halvings: int) -> Array | None:
        begin, fits = self._ahead(q[None], wanted[None])
        if fits[0]:
            end, shut = self.closed(begin)
            if shut[0]:
                return np.asarray(end[0])
        if not halvings:
            return None
        half = self._step(q, 0.5 * (q[self.independent] + wanted), halvings - 1)
        return None if half is None else self._step(half, wanted, halvings - 1)

    def maps(self, q: Array, qd: Array, qdd: Array) -> tuple[Array, Array, Array]:
        """Return J, K and L, (N, n, f) each: (a) to (c)."""
        found, A, A_d = self._slopes(q)
        slopes = found.slopes()[:, self.rows]
        to_q, to_qd = (part[:, self.rows] for part in found.bias_slopes(qd))
        J, K, L = np.zeros((3, *q.shape, len(self.independent)))
        J[:, self.independent] = np.eye(len(self.independent))
        J[:, self.dependent] = -solved(A_d, A[:, :, self.independent])
        K[:, self.dependent] = -solved(A_d, np.einsum("smjk,sj->smk", slopes, qd) @ J)
        turned = np.einsum("smjk,sj->smk", slopes, qdd) + to_q
        L[:, self.dependent] = -solved(A_d, turned @ J + to_qd @ K)
        return J, K, L

    def rates(self, q: Array, qd_i: Array, qdd_i: Array) -> tuple[Array, Array]:
        """Return q̇ and q̈ of all joints, (N, n), from those of the independent ones, (N, f)."""
        i, d = self.independent, self.dependent
        qd, qdd = np.zeros((2, *q.shape))
        found, A, A_d = self._slopes(q)
        qd[:, i], qdd[:, i] = qd_i, qdd_i
        qd[:, d] = -solved(A_d, A[:, :, i] @ qd_i[..., None])[..., 0]
        bias = found.rate(qd)[:, self.rows] @ qd[..., None]
        qdd[:, d] = -solved(A_d, A[:, :, i] @ qdd_i[..., None] + bias)[..., 0]
        return qd, qdd


def read_freedoms(problem: Problem) -> Freedoms:
    """Return the freedoms of a problem whose splines are of these alone."""
    from cstormpy.optimal.loop_problems import closed_posture, refuse_open_ends

    mech, start, end = problem.mech, problem.start, problem.end
    if not mech.loops:
        raise InvalidValue("transcription: 'freedoms' is of mechanisms with loops; this one has none: take 'inverse'")
    if problem.cuts:
        raise InvalidValue("cuts: the loops are closed with transcription='freedoms'; take transcription='inverse'")
    if problem.design is not None and problem.design.moves_loops:
        raise InvalidValue("design: moves what the loops close; take transcription='inverse'")
    if not np.isfinite(start.q).any():
        raise InvalidValue("start: with transcription='freedoms' a posture tells which way the loops close; give one")
    refuse_open_ends(mech, {}, {"start": start, "end": end})
    freedoms = Freedoms(mech, closed_posture(problem, start.q))
    for where, state in (("start", start), ("end", end)):
        _refuse_followers(freedoms, start, state, where)
    return freedoms


def _refuse_followers(freedoms: Freedoms, start: State, state: State, where: str) -> None:
    """Refuse what an end says of joints that follow, but for rest of all, and the posture of the start."""
    i, d = freedoms.independent, freedoms.dependent

    def says_more(row: Array, same: bool) -> bool:
        return bool(np.isfinite(row[d]).any()) and not (same and bool(np.isfinite(row[i]).all()))

    same = state is start or np.array_equal(state.q, start.q)
    if says_more(state.q, same) or any(says_more(row, not np.nan_to_num(row).any()) for row in state.rows[1:]):
        raise InvalidValue(
            f"{where}: the joints {freedoms.names} are on splines and the others follow; say what holds of these alone"
        )


class Clearance(PathConstraint):
    """Volume (d) in parts of that at the start, all the time, and wherever an integral is asked.

    Near to a singular posture what is integrated may have a peak between the samples of limits.
    """

    channels = ("q",)
    imposed = "everywhere"

    def __init__(self, freedoms: Freedoms) -> None:
        self.freedoms = freedoms
        super().__init__(CLEAR, np.inf, "all", "distance from singular postures")

    def values(self, at: Samples) -> Array:
        """Return g/g₀, (N, 1), NaN where there is no motion."""
        found = self.freedoms.volumes(at.q) / self.freedoms.volume
        return np.where(np.isfinite(at.tau).all(axis=1), found, np.nan)[:, None]

    def derivatives(self, at: Samples) -> Parts:
        """Return ∂(g/g₀)/∂q, (N, 1, n)."""
        return {"q": self.freedoms.volume_slopes(at.q)[:, None] / self.freedoms.volume}


class FreeInverse(ClosedInverse):
    """The inverse transcription with the freedoms on splines; the parameters are those of `Inverse`."""

    def __init__(self, setup: Setup, *arguments: Any) -> None:
        super().__init__(setup, *arguments)
        assert setup.freedoms is not None, "chosen by `inverse_of`"
        self.freedoms: Freedoms = setup.freedoms
        self._units = self.freedoms.units[self.freedoms.independent]
        self._bases_at: dict[int, tuple[Array, Any]] = {}
        self._last = local()

    def joints(self, points: Array, phases: Array, curves: list[Array]) -> tuple[list[Array], Flags]:
        """Return the motion of all joints at some phases from that of the splines, and where the loops let it be.

        Jerks are those of the splines alone. Where there is none, the mechanism rests.
        """
        f, motion = self.freedoms, np.zeros((4, len(phases), self.setup.mech.n))
        (sites, anchors), i = self._at_anchors(points), f.independent
        motion[0] = f.posture
        if anchors is None:
            return list(motion), np.zeros(len(phases), dtype=bool)
        begin = np.stack([np.interp(phases, sites, column) for column in anchors.T], axis=1)
        begin[:, i] = curves[0]
        q, fits = f.closed(begin)
        qd, qdd = f.rates(np.where(fits[:, None], q, f.posture), curves[1], curves[2])
        fits &= np.isfinite(qdd).all(axis=1)
        motion[:3, fits] = q[fits], qd[fits], qdd[fits]
        motion[3][:, i] = curves[3]
        return list(motion), fits

    def _at_phases(self, x: Array, curves: list[Array]) -> list[Array] | None:
        motion, fits = self.joints(self.control_points(x), self.phases, curves)
        followed = bool(fits.all())
        self.failure = "" if followed else f"the other joints cannot follow {self.freedoms.names} all along it"
        return motion if followed else None

    def _at_anchors(self, points: Array) -> tuple[Array, Array | None]:
        """Return the phases of the anchors and the postures there, None where they do not follow."""
        key, last = points.tobytes(), self._last.__dict__
        if last.get("key") != key:
            length = float((np.abs(np.diff(points, axis=0)) / self._units).sum(axis=0).max())
            sites, basis = self._sites(length)
            near = last.get("near", np.zeros((0, 0)))
            found = self.freedoms.following(basis @ points, near if len(near) == len(sites) else None)
            last.update(key=key, found=(sites, found), near=near if found is None else found)
        return last["found"]

    def _sites(self, length: float) -> tuple[Array, Any]:
        """Return the anchors of control points whose polygon is so long, and the values of the splines there."""
        breaks = np.unique(self.setup.knots)
        count, least = ANCHORS, length / STRIDE / (len(breaks) - 1)
        while count < min(least, MOST):
            count *= 2
        if count not in self._bases_at:
            sites = cut_evenly(breaks, count)
            self._bases_at[count] = sites, self.setup.curve.basis_matrix(sites, 0)
        return self._bases_at[count]

    def evaluate(self, x: Array) -> FreeEvaluation | None:
        """Return the motion, or None where the loops cannot be followed, or cannot share its load."""
        found = super().evaluate(x)
        if found is None:
            return None
        at = found.samples
        maps = self.freedoms.maps(at.q, at.qd, at.qdd)
        return FreeEvaluation(self, found, maps) if all(np.isfinite(part).all() for part in maps) else None

    def motion(self, x: Array) -> BSpline:
        """Return the motion of all joints as a spline, of as many more segments as keep the loops closed."""
        spline, breaks, degree = self.spline(x), np.unique(self.setup.knots), self.setup.degree
        ends = self._at(spline, np.array([0.0, 1.0]))
        names = ("q", "qd", "qdd")[: min(3, degree)]
        held = EndConditions(**{f"{name}{k}": ends[r][k] for r, name in enumerate(names) for k in (0, 1)})
        T, pieces = spline.duration, 4
        while True:
            knots = np.sort(np.concatenate([self.setup.knots, np.setdiff1d(cut_evenly(breaks, pieces), breaks)]))
            sites = greville(knots, degree)[len(names) : -len(names)]
            points = _through(knots, degree, sites, self._at(spline, sites)[0], held, T)
            through = BSpline(T * knots, points, degree=degree, names=self.setup.mech.names)
            between = through(T * gauss_sites(np.unique(knots), degree)[0])
            gap = np.abs(closure_of(self.setup.mech, between).residual()[:, self.freedoms.rows] / self.freedoms.scales)
            if gap.max(initial=0.0) <= GAP or len(knots) > FINEST:
                return through
            pieces *= 2

    def _at(self, spline: BSpline, phases: Array) -> list[Array]:
        return self.joints(spline.control_points, phases, list(spline.evaluate(spline.duration * phases, order=3)))[0]


def _through(knots: Array, degree: int, sites: Array, q: Array, ends: EndConditions, T: float) -> Array:
    """Return the control points through postures (N, n) at phases, as many as held ends leave points free."""
    from scipy.sparse import csc_array
    from scipy.sparse.linalg import spsolve

    fixed_ends = ControlPointMap(knots, degree, q.shape[1], T, ends)
    points, (group,) = fixed_ends.offset, fixed_ends.groups
    basis = csc_array(phase_curve(knots, degree, q.shape[1]).basis_matrix(sites, 0))
    matrix = basis[:, group.free] - basis[:, group.fixed] @ csc_array(group.coupling)
    free = spsolve(csc_array(matrix), q - basis @ points).reshape(-1, q.shape[1])
    points[group.free] = free
    points[group.fixed] -= group.coupling @ free
    return points


class FreeEvaluation(ClosedEvaluation):
    """A motion of all joints that follows from that of the freedoms."""

    def __init__(self, owner: FreeInverse, found: ClosedEvaluation, maps: tuple[Array, Array, Array]) -> None:
        super().__init__(owner, found.samples, found.columns, found.curves, found.to_cut, found.shared)
        J, K, L = maps
        nothing = np.zeros(J.shape)
        self._maps = [np.stack(rows, axis=1) for rows in ((J, nothing, nothing), (K, J, nothing), (L, 2.0 * K, J))]
        self._independent = owner.freedoms.independent

    def by_order(self, parts: Parts, places: Places = slice(None)) -> list[Array | None]:
        """Return derivatives of R numbers to the splines and their rates, (R, width) each, of those by channel."""
        *motion, jerk = super().by_order(parts, places)
        found: list[Any] = [None, None, None, None if jerk is None else jerk[:, self._independent]]
        for given, matrices in zip(motion, self._maps, strict=True):
            if given is None:
                continue
            through = rows_through(given, matrices, places)
            for r in range(3):
                found[r] = through[r] if found[r] is None else found[r] + through[r]
        return found
