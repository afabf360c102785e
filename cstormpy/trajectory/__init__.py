"""Motions of a set of joints: B-spline curves, their end conditions, and motions from point to point.

Value, rate, acceleration and jerk of a `BSpline` come from one call; its derivatives to control points, knots and
duration are sparse matrices (Xiang et al. 2008, section 5); `EndConditions` are met by fixing control points.
"""

from cstormpy.trajectory.bspline import BSpline
from cstormpy.trajectory.ends import ControlPointMap, EndConditions
from cstormpy.trajectory.knots import clamped_knots, uniform_knots
from cstormpy.trajectory.point_to_point import cubic, minimum_jerk, quintic, septic

__all__ = [
    "BSpline",
    "ControlPointMap",
    "EndConditions",
    "clamped_knots",
    "cubic",
    "minimum_jerk",
    "quintic",
    "septic",
    "uniform_knots",
]
