"""Compiled entries: poses, Jacobians, and inertia, momentum and energy, of a batch or of one sample."""

from cstormpy.kernels.ball_springs import has_spring, spring_energy
from cstormpy.kernels.chart_derivatives import pull_back_screws
from cstormpy.kernels.charts import enter_charts
from cstormpy.kernels.closed_forms import closed_forms, form_base, forms_place, row_of, screws
from cstormpy.kernels.entries import entry
from cstormpy.kernels.hybrid import node, place_base
from cstormpy.kernels.joint_torques import ball_energy, ball_mass
from cstormpy.kernels.kinematics import carrier, jacobian_column, place_all, pose_of_link
from cstormpy.kernels.lanes import lane, load, store, width, zero_lanes
from cstormpy.kernels.layout import (
    C_I,
    C_K,
    C_PD,
    C_S,
    C_T,
    C_V,
    N_BALL,
    N_BALLS,
    N_COORDINATE,
    N_COUNT,
    N_LINKS,
    N_LOSSES,
    N_PARENT,
    QD,
    ROW,
    T_ARMATURE,
    T_GRAVITY,
    T_REST,
    T_STIFFNESS,
    UNLOADED,
    Q,
    U,
    Y,
)
from cstormpy.kernels.samples import bring_form_base, gather
from cstormpy.kernels.sensitivity import six_dot
from cstormpy.kernels.steps import step
from cstormpy.kernels.vector import dot, load3, table3

_MATRIX = "f8[:,::1]"
_CUBE = "f8[:,:,::1]"


@step
def bring_still(T, N, W, q, qd, first, last, like):
    """Bring in q and q̇ with all accelerations zero, the base at rest."""
    for i in range(1, N[N_COUNT] + 1):
        k, _ = node(i)
        j = N[k + N_COORDINATE]
        store(W, i * ROW + Q, gather(q, first, last, j, like))
        store(W, i * ROW + QD, gather(qd, first, last, j, like))
        store(W, i * ROW + U, like)
        store(W, i * ROW + Y, like)
    if N[N_BALLS]:
        enter_charts(N, W, like)
    rest = (like, like, like)
    place_base(T, W, rest, rest, rest, like)
    form_base(T, N, W, rest, rest, rest, rest, like)


@step
def put(out, first, last, a, b, value):
    """Write the lanes of a number to out[first + s, a, b]."""
    for s in range(min(width(value), last + 1 - first)):
        out[first + s, a, b] = lane(value, s)


@step
def put_poses(T, N, W, out, first, last, like):
    """Write the poses of all links, of the samples that stand in W."""
    place_all(T, N, W, like)
    for link in range(N[N_LINKS]):
        axes, origin = pose_of_link(T, N, W, link, like)
        for r in range(3):
            for c in range(3):
                put(out, first, last, link, 4 * r + c, axes[c][r])
            put(out, first, last, link, 4 * r + 3, origin[r])
            put(out, first, last, link, 12 + r, like)
        put(out, first, last, link, 15, like + 1.0)


@step
def is_on_way(N, i, end):
    """Tell whether node i carries node end, or is it: what is carried has the greater number."""
    j = end
    while j > i:
        k, _ = node(j)
        j = N[k + N_PARENT]
    return j == i


@step
def put_jacobian(T, N, W, link, out, rate, first, last, like):
    """Add the body Jacobian of a link and its rate, of the samples that stand in W."""
    end = carrier(N, link)
    place_all(T, N, W, like)
    for i in range(1, end + 1):
        if is_on_way(N, i, end):
            screws(T, N, W, i, like)
    if N[N_BALLS]:
        pull_back_screws(N, W, forms_place(N), like)
    axes, origin = pose_of_link(T, N, W, link, like)
    j = end
    while j > 0:
        k, _ = node(j)
        column = N[k + N_COORDINATE]
        w, v, dw, dv = jacobian_column(N, W, j, end, axes, origin, like)
        for r in range(3):
            put(out, first, last, r, column, w[r])
            put(out, first, last, 3 + r, column, v[r])
            put(rate, first, last, r, column, dw[r])
            put(rate, first, last, 3 + r, column, dv[r])
        j = N[k + N_PARENT]


@entry(f"void(f8[::1], i8[::1], f8[::1], {_MATRIX}, {_CUBE}, i8, i8)", nogil=True, given=1)
def pose_lanes(T, N, W, q, out, start, stop):
    """Fill out (samples, links, 16) with the poses of all links in the base's frame, row by row."""
    like = zero_lanes()
    for first in range(start, stop, width(like)):
        bring_still(T, N, W, q, q, first, stop - 1, like)
        put_poses(T, N, W, out, first, stop - 1, like)


@entry(f"void(f8[::1], i8[::1], f8[::1], {_MATRIX}, {_MATRIX}, i8, {_CUBE}, {_CUBE}, i8, i8)", nogil=True, given=3)
def jacobian_lanes(T, N, W, q, qd, link, out, rate, start, stop):
    """Add the body Jacobian of a link and its rate to out and rate (samples, 6, n), which come as zeros."""
    like = zero_lanes()
    for first in range(start, stop, width(like)):
        bring_still(T, N, W, q, qd, first, stop - 1, like)
        put_jacobian(T, N, W, link, out, rate, first, stop - 1, like)


@step
def angular_momentum(W, c, like):
    """Return Σ m x × ẋ, the skew part of the moment matrix."""
    k = c + C_K + 3
    return (
        load(W, k + 5, like) - load(W, k + 7, like),
        load(W, k + 6, like) - load(W, k + 2, like),
        load(W, k + 1, like) - load(W, k + 3, like),
    )


@step
def put_mass_row(N, W, i, mass, armature, first, last, like):
    """Write M between node i and all nodes on the way to it."""
    ki, _ = node(i)
    c = row_of(N, i)
    m, f = load3(W, c + C_T, like), load3(W, c + C_T + 3, like)
    j = i
    while j > 0:
        kj, _ = node(j)
        value = six_dot(m, f, W, row_of(N, j) + C_S, like)
        if j == i and not N[ki + N_BALL]:
            value = value + armature
        put(mass, first, last, N[ki + N_COORDINATE], N[kj + N_COORDINATE], value)
        put(mass, first, last, N[kj + N_COORDINATE], N[ki + N_COORDINATE], value)
        j = N[kj + N_PARENT]


@step
def put_bulk(T, N, W, i, bulk, first, last, like):
    """Add momentum (6), mass and Σ m c (3) of a subtree on the base to the sums over the mechanism."""
    c = row_of(N, i)
    h = angular_momentum(W, c, like)
    for r in range(3):
        for s in range(min(width(like), last + 1 - first)):
            bulk[first + s, r] += lane(h[r], s)
            bulk[first + s, 3 + r] += lane(load(W, c + C_K + r, like), s)
            bulk[first + s, 7 + r] += lane(load(W, c + C_I + 1 + r, like), s)
    for s in range(min(width(like), last + 1 - first)):
        bulk[first + s, 6] += lane(load(W, c + C_I, like), s)


@step
def joint_energy(T, N, W, i, gradient, first, last, like):
    """Write ∂T/∂q, ∂T/∂q̇, ∂V/∂q of joint i; return its shares of T and, by its spring, of V."""
    k, t = node(i)
    c, column = row_of(N, i), N[k + N_COORDINATE]
    q, qd = load(W, i * ROW + Q, like), load(W, i * ROW + QD, like)
    h, p = angular_momentum(W, c, like), load3(W, c + C_K, like)
    momentum = six_dot(h, p, W, c + C_S, like)
    if not N[k + N_BALL]:
        momentum = momentum + T[t + T_ARMATURE] * qd
    put(gradient, first, last, 0, column, six_dot(h, p, W, c + C_PD, like))
    put(gradient, first, last, 1, column, momentum)
    to_q = -dot(table3(T, T_GRAVITY), load3(W, c + C_T + 3, like))
    spring = like
    if N[k + N_LOSSES] and not N[k + N_BALL]:
        stretch = q - T[t + T_REST]
        to_q = to_q + T[t + T_STIFFNESS] * stretch
        spring = 0.5 * T[t + T_STIFFNESS] * stretch * stretch
    put(gradient, first, last, 2, column, to_q)
    return 0.5 * qd * momentum, spring


@step
def put_more(out, first, last, a, b, value):
    """Add the lanes of a number to out[first + s, a, b]."""
    for s in range(min(width(value), last + 1 - first)):
        out[first + s, a, b] += lane(value, s)


@step
def put_balls(T, N, W, mass, gradient, first, last, like):
    """Add rotors and springs of the balls to mass matrix and gradients; return their kinetic and potential energy."""
    kinetic, potential = like, like
    for i in range(1, N[N_COUNT] + 1):
        k, _ = node(i)
        if N[k + N_BALL] == 1:
            at = N[k + N_COORDINATE]
            by_phi, by_rate, twice = ball_energy(T, N, W, i, like)
            kinetic = kinetic + 0.5 * twice
            for r in range(3):
                put_more(gradient, first, last, 0, at + r, by_phi[r])
                put_more(gradient, first, last, 1, at + r, by_rate[r])
                for c in range(3):
                    put_more(mass, first, last, at + r, at + c, ball_mass(T, N, W, i, r, c, like))
            if N[k + N_LOSSES] and has_spring(T, i):
                energy, by_angle = spring_energy(T, N, W, i, like)
                potential = potential + energy
                for r in range(3):
                    put_more(gradient, first, last, 2, at + r, by_angle[r])
    return kinetic, potential


_INERTIAL = (
    f"void(f8[::1], i8[::1], f8[::1], {_MATRIX}, {_MATRIX}, {_MATRIX}, {_CUBE}, {_CUBE}, {_MATRIX}, {_MATRIX}, "
    f"{_CUBE}, i8, i8)"
)


@step
def bring_moving(T, N, W, q, qd, base, first, last, like):
    """Bring in q and q̇ with all accelerations zero, the base moving, and find the closed forms."""
    bring_still(T, N, W, q, qd, first, last, like)
    bring_form_base(T, N, W, base, first, last, like)
    place_all(T, N, W, like)
    closed_forms(T, N, W, UNLOADED, like)
    if N[N_BALLS]:
        pull_back_screws(N, W, forms_place(N), like)


@step
def put_inertial(T, N, W, mass, momenta, bulk, energy, gradient, first, last, like):
    """Write what `inertial_lanes` fills, of the samples whose closed forms stand in W."""
    kinetic, potential = like, like
    b = forms_place(N)
    for i in range(1, N[N_COUNT] + 1):
        k, t = node(i)
        c = row_of(N, i)
        put_mass_row(N, W, i, mass, T[t + T_ARMATURE], first, last, like)
        for r in range(6):
            put(momenta, first, last, r, N[k + N_COORDINATE], load(W, c + C_T + r, like))
        share, spring = joint_energy(T, N, W, i, gradient, first, last, like)
        kinetic, potential = kinetic + share, potential + spring
        if N[k + N_PARENT] == 0:
            put_bulk(T, N, W, i, bulk, first, last, like)
            h, p = angular_momentum(W, c, like), load3(W, c + C_K, like)
            kinetic = kinetic + 0.5 * six_dot(h, p, W, b + C_V, like)
            potential = potential - dot(table3(T, T_GRAVITY), load3(W, c + C_I + 1, like))
    if N[N_BALLS]:
        of_balls = put_balls(T, N, W, mass, gradient, first, last, like)
        kinetic, potential = kinetic + of_balls[0], potential + of_balls[1]
    for s in range(min(width(like), last + 1 - first)):
        energy[first + s, 0], energy[first + s, 1] = lane(kinetic, s), lane(potential, s)


@entry(_INERTIAL, nogil=True, given=3)
def inertial_lanes(T, N, W, q, qd, base, mass, momenta, bulk, energy, gradient, start, stop):
    """Fill, of each sample: mass (n, n), momenta (6, n) per rate, bulk (10), energy (T, V), gradient (3, n).

    Momenta stand at the origin of the base; all arrays come as zeros. The kinetic energy of a moving base's
    mechanism is ½ V0 · (momentum of all) plus the joints' shares.
    """
    like = zero_lanes()
    for first in range(start, stop, width(like)):
        bring_moving(T, N, W, q, qd, base, first, stop - 1, like)
        put_inertial(T, N, W, mass, momenta, bulk, energy, gradient, first, stop - 1, like)


@entry(_INERTIAL, nogil=True, given=3)
def inertial_one(T, N, W, q, qd, base, mass, momenta, bulk, energy, gradient, start, stop):
    """Fill what `inertial_lanes` does one sample after the other."""
    for first in range(start, stop):
        bring_moving(T, N, W, q, qd, base, first, first, 0.0)
        put_inertial(T, N, W, mass, momenta, bulk, energy, gradient, first, first, 0.0)
