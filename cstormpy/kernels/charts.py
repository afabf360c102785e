"""Charts of ball joints: from the rotation vector φ to three hinges about the body's axes, and back.

A ball is three nodes. Their coordinates are those of the rotation vector φ, which turns the link by exp(φ); but the
recursions see three hinges about the axes x, y, z of the link, one after the other, at the angles θ = 0 of the pose
exp(φ). φ ↦ θ(φ), exp(φ₀) Rx(θ₁) Ry(θ₂) Rz(θ₃) = exp(φ), is a change of coordinates about each pose φ₀, so that rates,
accelerations, torques and all their derivatives pass through its Taylor polynomial, and none is singular below
|φ| = 2π. With J the right Jacobian of the exponential, w = J φ̇ the angular velocity in the link's axes:

    θ̇ = J φ̇,   θ̈ = J φ̈ + g(φ, φ̇) − E(w, w),   τ_φ = Jᵀ τ_θ                          (g = J̇ φ̇)
    δθ = J δφ,  δθ̇ = P δφ + J δφ̇,  δθ̈ = Q δφ + 2 P δφ̇ + J δφ̈,  δτ_φ = Jᵀ δτ_θ + H δφ

    J x = x − c₂ φ×x + c₃ φ×(φ×x),  Jᵀ x = x + c₂ φ×x + c₃ φ×(φ×x)
    E(δ, x) = (δ₃ x₂, −δ₃ x₁, δ₂ x₁)      what a turn δθ does to the angular velocity of the hinges at the rates x

The Stumpff functions c_k(s) = Σ (−s)ʲ / (2j + k)!, s = |φ|², are entire, as are their derivatives
dc_k/ds = (k c_{k+2} − c_{k+1}) / 2: there is no case φ = 0. At |φ| ≥ 2π, where J has no inverse, they are made infinite
and the dynamics report what is not finite.
"""

import math

from cstormpy.kernels.lanes import load, reciprocal, store, where_positive
from cstormpy.kernels.layout import (
    CH_C,
    CH_QD,
    CH_U,
    CH_Y,
    CHART,
    DEAD,
    N_ACTIVE,
    N_BALL,
    N_CHART,
    N_COUNT,
    N_LINKS,
    QD,
    ROW,
    WRENCH,
    Q,
    U,
    Y,
)
from cstormpy.kernels.nodes import node
from cstormpy.kernels.steps import step
from cstormpy.kernels.vector import add, add_scaled, cross, dot, load3, scale, store3, sub

_LIMIT = (2.0 * math.pi) ** 2
_TERMS = 18  # the last one is below the rounding for all s < _LIMIT
_SIX = tuple((-1.0) ** j / math.factorial(2 * j + 6) for j in range(_TERMS))
_SEVEN = tuple((-1.0) ** j / math.factorial(2 * j + 7) for j in range(_TERMS))


# Where things stand ------------------------------------------------------------------------------------


@step
def charts_place(N):
    """Return where the numbers of the balls begin in the scratch memory."""
    return (N[N_COUNT] + 1) * ROW + (WRENCH + DEAD) * N[N_LINKS]


@step
def chart_of(N, i):
    """Return where the numbers of the ball stand to which node i belongs."""
    k, _ = node(i)
    return charts_place(N) + CHART * N[k + N_CHART]


@step
def slot(N, i, own, of_ball):
    """Return where a number of joint i stands: in its row, or in its ball's chart."""
    k, _ = node(i)
    if N[k + N_BALL]:
        return chart_of(N, i) + of_ball + N[k + N_BALL] - 1
    return i * ROW + own


@step
def rate_at(N, i):
    """Return where q̇ of joint i stands once the charts are entered."""
    return slot(N, i, QD, CH_QD)


@step
def given_at(N, i):
    """Return where u of joint i stands once the charts are entered."""
    return slot(N, i, U, CH_U)


@step
def answer_at(N, i):
    """Return where y of joint i stands once the charts are left."""
    return slot(N, i, Y, CH_Y)


@step
def load_each(W, place, pitch, like):
    return load(W, place, like), load(W, place + pitch, like), load(W, place + 2 * pitch, like)


@step
def store_each(W, place, pitch, x):
    store(W, place, x[0])
    store(W, place + pitch, x[1])
    store(W, place + 2 * pitch, x[2])


@step
def of_rows(W, i, what, like):
    """Return a number of the three nodes from i on."""
    return load_each(W, i * ROW + what, ROW, like)


@step
def unit(j, like):
    """Return the unit vector j."""
    one = like + 1.0
    if j == 0:
        return one, like, like
    if j == 1:
        return like, one, like
    return like, like, one


@step
def matrix_times(W, place, x, like):
    """Return the matrix that stands row by row at a place, times x."""
    return (
        dot(load3(W, place, like), x),
        dot(load3(W, place + 3, like), x),
        dot(load3(W, place + 6, like), x),
    )


@step
def transposed_times(W, place, x, like):
    """Return the transpose of the matrix that stands row by row at a place, times x."""
    first = add_scaled(scale(x[0], load3(W, place, like)), x[1], load3(W, place + 3, like))
    return add_scaled(first, x[2], load3(W, place + 6, like))


# The exponential and its Jacobian ----------------------------------------------------------------------


@step
def stumpff(s):
    """Return c₂ to c₇ of s."""
    c6, c7 = _SIX[_TERMS - 2] + s * _SIX[_TERMS - 1], _SEVEN[_TERMS - 2] + s * _SEVEN[_TERMS - 1]
    for k in range(_TERMS - 3, -1, -1):
        c6, c7 = _SIX[k] + s * c6, _SEVEN[k] + s * c7
    c6 = c6 + where_positive(_LIMIT - s, 0.0, 1e308) * s  # infinite beyond
    c5, c4 = 1.0 / 120.0 - s * c7, 1.0 / 24.0 - s * c6
    c3, c2 = 1.0 / 6.0 - s * c5, 0.5 - s * c4
    return c2, c3, c4, c5, c6, c7


@step
def jacobian_times(p, c2, c3, x):
    """Return J x."""
    n = cross(p, x)
    return add_scaled(add_scaled(x, -c2, n), c3, cross(p, n))


@step
def jacobian_transposed(p, c2, c3, x):
    """Return Jᵀ x."""
    n = cross(p, x)
    return add_scaled(add_scaled(x, c2, n), c3, cross(p, n))


@step
def inverse_times(p, gamma, x):
    """Return J⁻¹ x."""
    n = cross(p, x)
    return add_scaled(add_scaled(x, 0.5, n), gamma, cross(p, n))


@step
def inverse_transposed(p, gamma, x):
    """Return J⁻ᵀ x."""
    n = cross(p, x)
    return add_scaled(add_scaled(x, -0.5, n), gamma, cross(p, n))


@step
def phi_of(W, i, c, like):
    """Return φ, c₂, c₃ and the γ of J⁻¹ = 1 + φ×/2 + γ φ×φ×, of the ball whose first node is i and whose chart is c."""
    c2, c3, c4 = load3(W, c + CH_C, like)
    return of_rows(W, i, Q, like), c2, c3, (0.5 * c3 - c4) * reciprocal(c2)


@step
def turned_by_ball(N, W, i, axes, like):
    """Return axes turned by exp(φ), in the order that makes the first of them the z axis of node i."""
    p, c = of_rows(W, i, Q, like), chart_of(N, i)
    c2, c3 = load(W, c + CH_C, like), load(W, c + CH_C + 1, like)
    s = dot(p, p)
    c0, c1 = 1.0 - s * c2, 1.0 - s * c3
    x, y, z = axes
    bx = exponential_column(x, y, z, p, c0, c1, c2)
    by = exponential_column(y, z, x, (p[1], p[2], p[0]), c0, c1, c2)
    bz = exponential_column(z, x, y, (p[2], p[0], p[1]), c0, c1, c2)
    return by, bz, bx


@step
def exponential_column(x, y, z, p, c0, c1, c2):
    """Return the column of c₀ + c₁ φ× + c₂ φ φᵀ that belongs to the first of three axes, which they are given in."""
    along = scale(c0 + c2 * p[0] * p[0], x)
    return add_scaled(add_scaled(along, c1 * p[2] + c2 * p[0] * p[1], y), c2 * p[0] * p[2] - c1 * p[1], z)


# Dynamics ----------------------------------------------------------------------------------------------


@step
def swept(d, x):
    """Return E(δ, x)."""
    return d[2] * x[1], -d[2] * x[0], d[1] * x[0]


@step
def drift(p, c3, dc2, dc3, x):
    """Return g(φ, φ̇) = J̇ φ̇ for φ̇ = x."""
    n, px = cross(p, x), dot(p, x)
    return add_scaled(add_scaled(scale(-2.0 * dc2 * px, n), c3, cross(x, n)), 2.0 * dc3 * px, cross(p, n))


@step
def first_rates(W, c, like):
    """Return dc₂/ds and dc₃/ds."""
    c3, c4, c5 = load3(W, c + CH_C + 1, like)
    return c4 - 0.5 * c3, 1.5 * c5 - 0.5 * c4


@step
def enter_charts(N, W, like):
    """Turn q̇ and u of the balls into rates, accelerations and torques of their hinges; keep them in their charts."""
    for i in range(1, N[N_COUNT] + 1):
        k, _ = node(i)
        if N[k + N_BALL] == 1:
            c = chart_of(N, i)
            p, rate, given = of_rows(W, i, Q, like), of_rows(W, i, QD, like), of_rows(W, i, U, like)
            store3(W, c + CH_QD, rate)
            store3(W, c + CH_U, given)
            found = stumpff(dot(p, p))
            for m in range(6):
                store(W, c + CH_C + m, found[m])
            _, c2, c3, gamma = phi_of(W, i, c, like)
            w = jacobian_times(p, c2, c3, rate)
            store_each(W, i * ROW + QD, ROW, w)
            if N[k + N_ACTIVE]:
                dc2, dc3 = first_rates(W, c, like)
                bias = sub(drift(p, c3, dc2, dc3, rate), swept(w, w))
                store_each(W, i * ROW + U, ROW, add(jacobian_times(p, c2, c3, given), bias))
            else:
                store_each(W, i * ROW + U, ROW, inverse_transposed(p, gamma, given))


@step
def leave_charts(N, W, like):
    """Write y of the balls, as their coordinates have it, into their charts."""
    for i in range(1, N[N_COUNT] + 1):
        k, _ = node(i)
        if N[k + N_BALL] == 1:
            c = chart_of(N, i)
            p, c2, c3, gamma = phi_of(W, i, c, like)
            found = of_rows(W, i, Y, like)
            if N[k + N_ACTIVE]:
                store3(W, c + CH_Y, jacobian_transposed(p, c2, c3, found))
            else:
                dc2, dc3 = first_rates(W, c, like)
                w = of_rows(W, i, QD, like)
                bias = sub(drift(p, c3, dc2, dc3, load3(W, c + CH_QD, like)), swept(w, w))
                store3(W, c + CH_Y, inverse_times(p, gamma, sub(found, bias)))
