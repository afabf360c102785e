"""The evaluation of a B-spline curve, its derivatives to what defines it, and the curves derived from it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cstormpy.arguments import entries, one_of, option, positive, whole_number
from cstormpy.arrays import Array, is_single, real_number
from cstormpy.errors import InvalidType, InvalidValue, ShapeError, UnknownName, shown
from cstormpy.graph.arrays import symbols
from cstormpy.graph.nodes import Node, require_zero
from cstormpy.trajectory import matrices
from cstormpy.trajectory.basis import difference, evaluate, evaluate_one, evaluate_symbolic, spans
from cstormpy.trajectory.checks import OUTSIDE, control_point_array, finite_array, joint_names
from cstormpy.trajectory.ends import ControlPointMap, EndConditions
from cstormpy.trajectory.knots import check_knots, insert_knots, refining_knots
from cstormpy.values import Value, frozen

if TYPE_CHECKING:
    from scipy.sparse import csr_array

ROUNDING = 4 * np.finfo(float).eps
"""A time outside of the interval by no more than this part of its ends counts as the end."""

MOST_DERIVATIVES = 1000
"""Highest derivative that is answered; all above the degree are zero."""

SomeCurve = TypeVar("SomeCurve", bound="Curve")


class Curve(Value):
    """Data and evaluation of a `BSpline`; that class adds the ways to make one, and says what the fields are."""

    _fields = ("knots", "control_points", "degree", "names", "outside")

    knots: Array
    control_points: Array
    degree: int
    names: tuple[str, ...] | None
    outside: str
    t0: float
    t1: float
    _levels: dict[int, Array]

    def __init__(
        self,
        knots: ArrayLike,
        control_points: ArrayLike,
        *,
        degree: int = 3,
        names: Iterable[str] | None = None,
        outside: str = "hold",
    ) -> None:
        t = check_knots(knots, degree)
        points = control_point_array(control_points)
        if len(points) != t.size - degree - 1:
            raise ShapeError(
                f"control points: {t.size} knots of degree {degree} carry {t.size - degree - 1} control points, "
                f"got {len(points)}"
            )
        self._set(
            knots=frozen(t),
            control_points=frozen(points),
            degree=int(degree),
            names=joint_names(names, points.shape[1]),
            outside=one_of(outside, "outside", OUTSIDE),
            t0=float(t[degree]),
            t1=float(t[-degree - 1]),
        )
        self._set(_levels={0: self.control_points})

    @property
    def n(self) -> int:
        """Number of joints."""
        return int(self.control_points.shape[1])

    @property
    def duration(self) -> float:
        """T = t1 − t0 [s]."""
        return self.t1 - self.t0

    @property
    def breaks(self) -> Array:
        """The distinct knots from t0 to t1, (segments + 1,): the {t_0 … t_s} of Xiang et al. 2008 [s]."""
        return np.unique(self.knots[self.degree : self.knots.size - self.degree])

    @property
    def segments(self) -> int:
        """Number s of polynomial pieces."""
        return int(self.breaks.size) - 1

    def __repr__(self) -> str:
        """Return a short description."""
        m, n = self.control_points.shape
        who = f"{n} joint{'s' if n > 1 else ''}" if self.names is None else ", ".join(self.names)
        return f"BSpline(degree {self.degree}, {m} control points, {who}, {self.t0:g} to {self.t1:g} s)"

    # ---------------------------------------------------------------- evaluated

    def __call__(self, times: ArrayLike, order: int = 0) -> Array:
        """Return the derivative of some order, the value by default, at one time or many.

        Parameters
        ----------
        times : float or (N,) array
            Time [s].
        order : int
            0 for the value, 1 for the rate, and so on; beyond the degree it is zero.

        Returns
        -------
        (n,) or (N, n) array

        Raises
        ------
        NonFinite
            A time is NaN or infinite.
        InvalidValue
            A time is outside of [t0, t1] and the curve was made with ``outside="refuse"``.
        """
        return self._derivatives(times, (_order(order),))[0]

    def evaluate(self, times: ArrayLike, order: int = 2) -> tuple[Array, ...]:
        """Return value, rate, acceleration, … up to the derivative of that order, in one pass.

        >>> from cstormpy.trajectory import BSpline
        >>> curve = BSpline.clamped([[0.0], [0.0], [1.0], [1.0]], duration=1.0)
        >>> q, qd, qdd, qddd = curve.evaluate([0.0, 0.5, 1.0], order=3)
        >>> qd.ravel().tolist()
        [0.0, 1.5, 0.0]
        """
        return tuple(self._derivatives(times, range(_order(order) + 1)))

    def rate(self, times: ArrayLike) -> Array:
        """Return q̇ at one time, (n,), or many, (N, n)."""
        return self(times, 1)

    def acceleration(self, times: ArrayLike) -> Array:
        """Return q̈ at one time, (n,), or many, (N, n)."""
        return self(times, 2)

    def jerk(self, times: ArrayLike) -> Array:
        """Return the third derivative at one time, (n,), or many, (N, n)."""
        return self(times, 3)

    def _derivatives(self, times: Any, orders: Iterable[int]) -> list[Array]:
        """Return the derivatives of rising orders at one time or many."""
        p = self.degree
        if isinstance(times, Node):
            return self._symbolic(times, list(orders))
        levels = {r: self._level(r) for r in orders}
        alive = {r: points for r, points in levels.items() if r <= p}
        if is_single(times):
            time, is_outside = self._inside_one(times)
            span = min(max(int(self.knots.searchsorted(time, "right")) - 1, p), self.knots.size - p - 2)
            found = evaluate_one(self.knots, p, alive, span, time)
            shape: tuple[int, ...] = (self.n,)
            outside: Any = ... if is_outside else None
        else:
            inside, outside = self._inside(times)
            found = evaluate(self.knots, p, alive, spans(self.knots, (self.t0, self.t1), inside), inside)
            shape = (inside.size, self.n)
        if outside is not None:
            for r, values in found.items():
                if r:
                    values[outside] = 0.0
        return [found[r] if r in found else np.zeros(shape) for r in levels]

    def _symbolic(self, time: Any, orders: list[int]) -> list[Any]:
        """Return the derivatives at a time that is a symbol; where one is to be refused, whoever asks says so."""
        p, last = self.degree, self.knots.size - self.degree - 2
        knots, points = (
            symbols(array) if type(array) is np.ndarray else array for array in (self.knots, self.control_points)
        )
        held = np.clip(time, self.t0, self.t1)
        outside = np.abs(time - held) > ROUNDING * np.maximum(np.abs(self.t0), np.abs(self.t1))
        if self.outside == "refuse":
            require_zero(outside)
        span = np.clip(knots.searchsorted(held, "right") - 1.0, float(p), float(last))
        found = evaluate_symbolic(knots, p, points, span, held, min(max(orders), p))
        still = np.zeros(self.n)
        return [still if r > p else np.where(outside, still, found[r]) if r else found[0] for r in orders]

    def _level(self, order: int) -> Array:
        """Return the control points of a derivative; they are kept, since the curve does not change."""
        if order > self.degree:
            return self.control_points[:0]
        if order not in self._levels:
            self._levels[order] = difference(self.knots, self.degree, self._level(order - 1), order)
        return self._levels[order]

    def _inside_one(self, time: Any) -> tuple[float, bool]:
        """Return one time moved into [t0, t1], and whether it was outside."""
        if isinstance(time, float) and self.t0 <= time <= self.t1:
            return float(time), False
        held, outside = self._inside(np.array([real_number(time, "time")]))
        return float(held[0]), outside is not None

    def _inside(self, times: ArrayLike) -> tuple[Array, NDArray[np.bool_] | None]:
        """Return times (N,) moved into [t0, t1], and which were outside, None if none was."""
        t = finite_array(times, "times", (None,), "give one time or a list of them")
        held = np.clip(t, self.t0, self.t1)
        outside = np.abs(t - held) > ROUNDING * max(abs(self.t0), abs(self.t1))
        if not outside.any():
            return held, None
        if self.outside == "refuse":
            wrong = t[outside][0]
            raise InvalidValue(
                f"time: {wrong:.17g} s is outside of the curve's interval [{self.t0:g}, {self.t1:g}]; "
                "replace(outside='hold') holds the end"
            )
        return held, outside

    # ---------------------------------------------------------------- derivatives to what defines it

    def basis_matrix(self, times: ArrayLike, order: int = 0) -> csr_array:
        """Return ∂q^(r)/∂P at N times, sparse (N, m): the same for each joint, and q^(r) = matrix @ P.

        Xiang et al. 2008, (41). The derivative of ``q.ravel()`` to ``P.ravel()`` is the Kronecker product of this
        matrix with the unit matrix (n, n). Each row stores degree + 1 entries.

        >>> from cstormpy.trajectory import BSpline
        >>> curve = BSpline.uniform([[0.0], [1.0], [0.0], [2.0]], duration=1.0)
        >>> (6 * curve.basis_matrix([0.0, 1.0])).toarray().round(12).tolist()
        [[1.0, 4.0, 1.0, 0.0], [0.0, 1.0, 4.0, 1.0]]
        """
        return matrices.basis_matrix(self, *self._at(times), _order(order))

    def duration_matrix(self, times: ArrayLike, order: int = 0, fixed: str = "phase") -> csr_array:
        """Return the sparse matrix (N, m) of which ∂q^(r)/∂T = matrix @ P, where `with_duration` changes T.

        All knots scale about t0 and P stays. What is meant by the derivative depends on what is kept:

        - ``fixed="phase"``: the sample moves with the curve, s = (t − t0)/T stays. The value does not change, and
          ∂q^(r)/∂T = −(r/T) q^(r). This is what an optimiser of T needs for samples spread over the motion.
        - ``fixed="time"``: the sample stays at t, and ∂q^(r)/∂T = −(r/T) q^(r) − (t − t0)/T q^(r+1).

        >>> from cstormpy.trajectory import BSpline
        >>> curve = BSpline.clamped([[0.0], [1.0], [2.0], [3.0]], duration=3.0)  # q = t for T = 3
        >>> [(curve.duration_matrix([1.5], 0, fixed) @ curve.control_points).item() for fixed in ("phase", "time")]
        [0.0, -0.5]
        """
        return matrices.duration_matrix(self, *self._at(times), _order(order), fixed)

    def knot_matrix(self, times: ArrayLike, order: int = 0, *, grouped: bool = False) -> csr_array:
        """Return ∂q^(r)/∂t_j at N fixed times for P fixed, sparse (N·n, m + p + 1); rows follow ``q.ravel()``.

        Xiang et al. 2008, (42). At a time that equals t_j a derivative that jumps there is taken from the right (at t1
        from the left). The derivative to one of several equal knots is that of moving it away from the others: the
        first of them down, the last of them up. ``grouped=True`` adds up equal knots, so that column j belongs to
        moving all that stand at ``np.unique(knots)[j]``.

        >>> from cstormpy.trajectory import BSpline
        >>> curve = BSpline.clamped([[0.0], [1.0], [2.0], [3.0]], duration=3.0)  # q = t: both ends move
        >>> curve.knot_matrix([1.0], grouped=True).toarray().round(12).tolist()
        [[-0.666666666667, -0.333333333333]]
        """
        return matrices.knot_matrix(self, *self._at(times), _order(order), grouped)

    def _at(self, times: ArrayLike) -> tuple[Array, NDArray[np.bool_] | None]:
        return self._inside(finite_array([real_number(times, "time")], "times", (1,)) if is_single(times) else times)

    def fix_ends(self, conditions: EndConditions) -> ControlPointMap:
        """Return the map P = P0 + Z x to the control points on these knots that meet end conditions.

        >>> from cstormpy.trajectory import BSpline, EndConditions
        >>> ends = BSpline.uniform(np.zeros((22, 2)), 0.39).fix_ends(EndConditions.at_rest([0, 0], [1, 1]))
        >>> ends.size, ends.matrix.shape
        (36, (44, 36))
        """
        if not isinstance(conditions, EndConditions):
            raise InvalidType(f"conditions: expected EndConditions, got {shown(conditions)}")
        return ControlPointMap(self.knots, self.degree, self.n, self.duration, conditions)

    # ---------------------------------------------------------------- derived curves

    def with_control_points(self: SomeCurve, control_points: ArrayLike) -> SomeCurve:
        """Return the curve with other control points (m, n) on the same knots."""
        points = frozen(finite_array(control_points, "control points", self.control_points.shape))
        return self._derive(control_points=points, _levels={0: points})

    def with_duration(self: SomeCurve, duration: float) -> SomeCurve:
        """Return the same motion in another time: knots scaled about t0, rates by T_old/T.

        >>> from cstormpy.trajectory import BSpline
        >>> curve = BSpline.clamped([[0.0], [0.0], [1.0], [1.0]], duration=1.0).with_duration(2.0)
        >>> curve(1.0).tolist(), curve.rate(1.0).tolist()
        ([0.5], [0.75])
        """
        duration = positive(duration, "duration")
        with np.errstate(over="ignore"):  # infinite knots are refused below
            knots = self.t0 + duration * ((self.knots - self.t0) / self.duration)
        return self.replace(knots=knots)

    def with_start(self: SomeCurve, t0: float) -> SomeCurve:
        """Return the same motion begun at another time."""
        return self.replace(knots=real_number(t0, "start time t0") + (self.knots - self.t0))

    def select(self: SomeCurve, names: Iterable[str | int] | str | int) -> SomeCurve:
        """Return the curve of some joints, by their names or their positions, in that order.

        >>> from cstormpy.trajectory import BSpline
        >>> BSpline.clamped([[0.0, 5.0]] * 4, duration=1.0).select([1])(0.0).tolist()
        [5.0]
        """
        if isinstance(names, (str, int, np.integer)):
            names = [names]
        wanted = entries(names, "names", "names or positions of joints")
        if not wanted:
            raise ShapeError("names: expected at least one joint")
        columns = [self._column(name) for name in wanted]
        if len(set(columns)) < len(columns):
            raise InvalidValue("joints: one is named twice")
        chosen = None if self.names is None else [self.names[k] for k in columns]
        return self.replace(control_points=self.control_points[:, columns], names=chosen)

    def _column(self, name: str | int) -> int:
        """Return the position of a joint."""
        if not isinstance(name, str):
            return whole_number(name, "joints", 0, self.n - 1)
        if self.names is None:
            raise UnknownName(
                f"joint {shown(name)} does not exist, as the curve names none: joints={list(range(self.n))} takes "
                "these, or names=[...] where it is made"
            )
        return self.names.index(option(name, "joint", self.names))

    def insert_knots(self: SomeCurve, times: ArrayLike) -> SomeCurve:
        """Return the same curve on more knots; times strictly inside of the interval, each at most degree times.

        >>> from cstormpy.trajectory import BSpline
        >>> curve = BSpline.clamped([[0.0], [1.0], [0.0], [2.0]], duration=1.0)
        >>> finer = curve.insert_knots([0.5])
        >>> len(finer.control_points), bool(abs(finer(0.3) - curve(0.3)) < 1e-15)
        (5, True)
        """
        knots, points = insert_knots(self.knots, self.degree, self.control_points, times)
        return self.replace(knots=knots, control_points=points)

    def refine(self: SomeCurve, control_points: int) -> SomeCurve:
        """Return the same curve with that many control points: the longest segments split, evenly.

        >>> from cstormpy.trajectory import BSpline
        >>> BSpline.uniform(np.zeros((10, 1)), 3.0).refine(16).segments
        13
        """
        extra = whole_number(control_points, "control points", 1) - len(self.control_points)
        if extra < 0:
            raise InvalidValue(
                f"control points: refining goes from {len(self.control_points)} up, got {control_points}; "
                "from_curve finds the nearest curve with fewer"
            )
        return self if extra == 0 else self.insert_knots(refining_knots(self.breaks, extra))


def _order(order: int) -> int:
    return whole_number(order, "order", 0, MOST_DERIVATIVES)
