"""What the function of a diagram with tangents calls, beside what that of the diagram does.

Each stands for a function of `diagram_calls`: ``clipped_tangent`` gives the tangent of ``clipped``. They run compiled,
with the tangent along one direction, and uncompiled, where a tangent may be an array along many.
"""

from __future__ import annotations

import math

from cstormpy.kernels.compiling import ready
from cstormpy.kernels.diagram_calls import callee
from cstormpy.kernels.entries_curve_tangents import piece_of_spline_tangent, spline_tangent
from cstormpy.kernels.entries_tangent import MOVED, energies_tangent, loaded_motion_tangent
from cstormpy.kernels.line_calls import line_tangent
from cstormpy.kernels.steps import step

__all__ = ["TANGENT_CALLS", "tangent_callee"]


@step
def clipped_tangent(value, least, most, dvalue, dleast, dmost):
    """Return the tangent of `clipped`: of the value, or of the bound that it is at."""
    above, dabove = (least, dleast) if least > value else (value, dvalue)
    return dabove if above < most else dmost


@step
def wrapped_colatitude_tangent(angle, dangle):
    """Return the tangent of `wrapped_colatitude`, which goes up and down."""
    rising = math.floor(abs(angle) / math.pi) % 2 == 0
    return dangle if (angle >= 0.0) == rising else -dangle


@step
def root_tangent(a, da):
    """Return the tangent of √a, zero at zero, where there is none."""
    return 0.5 * da / math.sqrt(a) if a > 0.0 else 0.0 * da


@step
def power_tangent(a, b, da):
    """Return the tangent of a ** b for a fixed b."""
    return b * a ** (b - 1.0) * da if b != 0.0 else 0.0 * da


@step
def exponent_tangent(a, b, db):
    """Return the tangent of a ** b for a fixed a; where a is not positive there is none, and zero stands for it."""
    return a**b * math.log(a) * db if a > 0.0 else 0.0 * db


@step
def stop_torque_tangent(
    q, qd, low, high, stiffness, damping, depth, dq, dqd, dlow, dhigh, dstiffness, ddamping, ddepth
):
    """Return the tangent of `stop_torque`."""
    if q > high:
        e, de = q - high, dq - dhigh
    elif q < low:
        e, de = q - low, dq - dlow
    else:
        return 0.0 * dq
    deep, ddeep = 1.0, 0.0 * dq
    if abs(e) < depth:
        deep = abs(e) / depth
        ddeep = ((de if e > 0.0 else -de) - deep * ddepth) / depth
    tau = -(stiffness * e + damping * deep * qd)
    dtau = -(dstiffness * e + stiffness * de + ddamping * deep * qd + damping * (ddeep * qd + deep * dqd))
    return dtau if tau * e < 0.0 else 0.0 * dq


@step
def largest(values):
    """Return the greatest magnitude in an array."""
    found = 0.0
    for k in range(values.size):
        found = max(found, abs(values[k]))
    return found


@step
def shifted(values, h, direction, room):
    """Return values + h direction, in the room given."""
    for k in range(values.size):
        room[k] = values[k] + h * direction[k]
    return room


@step
def moved(size, along):
    """Return how far to go along a direction for a central difference, given the size of both."""
    return MOVED * max(1.0, size) / along if along > 0.0 else 0.0


@step
def nearer(a, b):
    """Return the smaller of two ways to go, none being as long as one likes."""
    if a == 0.0 or b == 0.0:
        return max(a, b)
    return min(a, b)


@step
def slope(above, below, h, out):
    """Fill out with the central difference of two results."""
    for k in range(out.size):
        out[k] = 0.5 * (above[k] - below[k]) / h if h > 0.0 else 0.0


#: What the function with tangents calls besides, by name.
TANGENT_CALLS = {
    function.__name__: function
    for function in (
        clipped_tangent, wrapped_colatitude_tangent, root_tangent, power_tangent, exponent_tangent, stop_torque_tangent,
        largest, shifted, moved, nearer, slope, line_tangent,
    )
}  # fmt: skip
TANGENT_CALLS |= {
    made.name: made for made in (loaded_motion_tangent, energies_tangent, spline_tangent, piece_of_spline_tangent)
}


def tangent_callee(name):
    """Return what the source with tangents calls by a name, ready to be compiled into it."""
    found = TANGENT_CALLS.get(name)
    return callee(name) if found is None else ready(found)
