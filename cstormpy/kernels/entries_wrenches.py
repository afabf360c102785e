"""Compiled entries: the wrench that each link needs of its joints, and where the link stands, of a batch.

With the inertial numbers of a link, mass m, first moment h and inertia I about the origin of its frame, its angular
velocity ω, angular acceleration α and the acceleration A of its origin less gravity, it is moved by

    force = m A + α × h + ω × (ω × h)        moment = h × A + I α + ω × I ω

of which the loads from outside give a part, and its own joint less the joints of its children the rest.
"""

from cstormpy.kernels.entries import entry
from cstormpy.kernels.entries_kinematics import put, put_poses
from cstormpy.kernels.entries_regressor import bring_motion, link_motion
from cstormpy.kernels.inertial_numbers import INERTIAL
from cstormpy.kernels.kinematics import carrier
from cstormpy.kernels.lanes import width, zero_lanes
from cstormpy.kernels.layout import N_LINKS, UNLOADED
from cstormpy.kernels.loads import load_in_world
from cstormpy.kernels.samples import bring_loads, gather, gather3
from cstormpy.kernels.steps import step
from cstormpy.kernels.vector import add, column_times, cross, scale, sub, symmetric_times

_MATRIX, _CUBE = "f8[:,::1]", "f8[:,:,::1]"


@step
def moving_wrench(numbers, row, end, link, omega, alpha, acc, like):
    """Return the moment and force that move a link, in its axes at its origin."""
    k = INERTIAL * link
    m, h = gather(numbers, row, end, k, like), gather3(numbers, row, end, k + 1, like)
    x, y, z = gather3(numbers, row, end, k + 4, like)
    inertia = (x, y, z, *gather3(numbers, row, end, k + 7, like))
    force = add(scale(m, acc), add(cross(alpha, h), cross(omega, cross(omega, h))))
    spin = cross(omega, symmetric_times(inertia, omega))
    return add(cross(h, acc), add(symmetric_times(inertia, alpha), spin)), force


@step
def put_needs(T, N, W, numbers, loaded, out, first, last, like):
    """Write what each link needs, in the base's axes at the link's origin, of the samples whose motion stands in W."""
    row, end = min(first, numbers.shape[0] - 1), min(last, numbers.shape[0] - 1)
    for link in range(N[N_LINKS]):
        axes, r, omega, alpha, acc = link_motion(T, N, W, link, like)
        m, f = moving_wrench(numbers, row, end, link, omega, alpha, acc, like)
        moment, force = column_times(axes, m[0], m[1], m[2]), column_times(axes, f[0], f[1], f[2])
        if loaded != UNLOADED:
            outer, push = load_in_world(T, N, W, link, carrier(N, link), loaded, like)
            moment, force = sub(moment, sub(outer, cross(r, push))), sub(force, push)
        for k in range(3):
            put(out, first, last, link, k, moment[k])
            put(out, first, last, link, 3 + k, force[k])


@entry(f"void(f8[::1], i8[::1], f8[::1], {', '.join([_MATRIX] * 6)}, {_CUBE}, {_CUBE}, i8, i8)", nogil=True, given=6)
def link_wrench_lanes(T, N, W, q, qd, qdd, wrench, base, numbers, poses, out, start, stop):
    """Fill poses (samples, links, 16) and out (samples, links, 6): what joints must do to each link, loads taken off.

    The moments and forces are in the base's axes at the link's origin. N has all joints active; `numbers`, one row for
    all samples or one each, are the inertial numbers of all links.
    """
    like = zero_lanes()
    for first in range(start, stop, width(like)):
        last = stop - 1
        bring_motion(T, N, W, q, qd, qdd, base, first, last, like)
        loaded = bring_loads(N, W, wrench, first, last, like)
        put_needs(T, N, W, numbers, loaded, out, first, last, like)
        put_poses(T, N, W, poses, first, last, like)
