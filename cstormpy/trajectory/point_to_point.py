"""Motions from a point to a point, or through points: polynomials of degree 3, 5 and 7 and the motion of least jerk.

Each is a `BSpline`, a polynomial being one segment. Of all motions with the boundary values given, the cubic has the
least ∫ q̈² dt, the quintic the least ∫ jerk², the septic the least integral of the squared fourth derivative.
Reference: T. Flash, N. Hogan, The coordination of arm movements, J. Neuroscience 5 (1985) 1688-1703 (least jerk).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from numpy.typing import ArrayLike

from cstormpy.trajectory.bspline import BSpline
from cstormpy.trajectory.checks import end_points, finite_array
from cstormpy.trajectory.ends import EndConditions
from cstormpy.trajectory.knots import interval_of


def cubic(
    q0: ArrayLike,
    q1: ArrayLike,
    duration: float,
    *,
    qd0: Any = 0.0,
    qd1: Any = 0.0,
    t0: float = 0.0,
    names: Iterable[str] | None = None,
    outside: str = "hold",
) -> BSpline:
    """Return the cubic motion from `q0` to `q1` (n,) with the rates given, numbers for all joints or (n,).

    >>> cubic([0.0], [1.0], 2.0).rate(1.0).tolist()
    [0.75]
    """
    return _polynomial(3, q0, q1, duration, EndConditions(qd0=qd0, qd1=qd1), t0, names, outside)


def quintic(
    q0: ArrayLike,
    q1: ArrayLike,
    duration: float,
    *,
    qd0: Any = 0.0,
    qd1: Any = 0.0,
    qdd0: Any = 0.0,
    qdd1: Any = 0.0,
    t0: float = 0.0,
    names: Iterable[str] | None = None,
    outside: str = "hold",
) -> BSpline:
    """Return the quintic motion from `q0` to `q1` (n,) with the rates and accelerations given.

    >>> quintic([0.0], [1.0], 2.0).rate(1.0).tolist()
    [0.9375]
    """
    ends = EndConditions(qd0=qd0, qd1=qd1, qdd0=qdd0, qdd1=qdd1)
    return _polynomial(5, q0, q1, duration, ends, t0, names, outside)


def septic(
    q0: ArrayLike,
    q1: ArrayLike,
    duration: float,
    *,
    qd0: Any = 0.0,
    qd1: Any = 0.0,
    qdd0: Any = 0.0,
    qdd1: Any = 0.0,
    qddd0: Any = 0.0,
    qddd1: Any = 0.0,
    t0: float = 0.0,
    names: Iterable[str] | None = None,
    outside: str = "hold",
) -> BSpline:
    """Return the motion of degree 7 from `q0` to `q1` (n,) with the rates, accelerations and jerks given.

    >>> septic([0.0], [1.0], 2.0).rate(1.0).tolist()
    [1.09375]
    """
    ends = EndConditions(qd0=qd0, qd1=qd1, qdd0=qdd0, qdd1=qdd1, qddd0=qddd0, qddd1=qddd1)
    return _polynomial(7, q0, q1, duration, ends, t0, names, outside)


def minimum_jerk(
    points: ArrayLike,
    times: ArrayLike,
    *,
    qd0: Any = 0.0,
    qd1: Any = 0.0,
    qdd0: Any = 0.0,
    qdd1: Any = 0.0,
    names: Iterable[str] | None = None,
    outside: str = "hold",
) -> BSpline:
    """Return the motion of least ∫ ‖jerk‖² dt through `points` (N, n) at rising `times` (N,), at rest at the ends.

    It is the quintic spline with its knots at the times: up to the fourth derivative is continuous. Through two points
    it is the `quintic`.

    >>> curve = minimum_jerk([[0.0], [1.0], [0.0]], [0.0, 1.0, 2.0])
    >>> [round(x, 12) + 0.0 for x in curve(1.0).tolist() + curve.rate(1.0).tolist()]
    [1.0, 0.0]
    """
    ends = EndConditions(qd0=qd0, qd1=qd1, qdd0=qdd0, qdd1=qdd1)
    rows = len(times := finite_array(times, "times", (None,)))
    points = finite_array(points, "points", (rows, None), "one row per time, one column per joint")
    return BSpline.interpolate(times, points, degree=5, ends=ends, names=names, outside=outside)


def _polynomial(
    degree: int,
    q0: ArrayLike,
    q1: ArrayLike,
    duration: float,
    ends: EndConditions,
    t0: float,
    names: Iterable[str] | None,
    outside: str,
) -> BSpline:
    """Return the polynomial as a spline of one segment; positions and conditions are as many as its coefficients."""
    times = interval_of(t0, duration)
    return BSpline.interpolate(times, list(end_points(q0, q1)), degree=degree, ends=ends, names=names, outside=outside)
