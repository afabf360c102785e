"""Springs of balls: the potential of a rotation vector from where the spring is relaxed, its moment, and what changes.

A ball that has turned by R, and is relaxed at R_rest = exp(rest), stretches its spring by the rotation vector

    ψ = log(R_restᵀ R),   |ψ| ≤ π,      V = ½ ψᵀ K ψ,   K = diag(k₁, k₂, k₃)

which is a function of R alone, whatever rotation vector φ stands for it. A turn R exp(δ) changes it by dψ = J⁻¹ δ, J
the right Jacobian of the exponential at ψ, so that the spring takes the moment m = J⁻ᵀ K ψ in the axes of the link; the
same constant about all axes makes it k ψ, for Jᵀ ψ = ψ. All comes from the unit quaternion (w, v) of R_restᵀ R, of the
two that of w ≥ 0. With

    g(w) = arccos(w) / √(1 − w²),   κ(w) = (1 − g w) / (1 − w²) = −g′

    ψ = 2 g v,   J⁻ᵀ y = y − g v×y + κ v×(v×y),   dw = −½ v · δ,   dv = ½ (w δ + v×δ)

Neither is singular for w ≥ 0: with t = 1 − 2 w, g = 1 + ½ (1 − w) G(t), and κ = (2 − w G) / (2 (1 + w)). Where w = 0,
half a turn from rest, ψ becomes its opposite, and the moment jumps.
"""

import numpy as np

from cstormpy.kernels.charts import chart_of, jacobian_transposed, of_rows, phi_of, stumpff
from cstormpy.kernels.lanes import where_positive
from cstormpy.kernels.layout import T_NODE, T_REST, T_STIFFNESS, Q
from cstormpy.kernels.nodes import node
from cstormpy.kernels.steps import step
from cstormpy.kernels.vector import add, add_scaled, cross, dot, scale, sub


def _exact_g(t):
    """Return G at points of [-1, 1], of the series arcsin(√x) / √(x (1 − x)) = Σ a_k xᵏ = 1 + x G, x = (1 + t) / 4."""
    x, total, a = 0.25 * (1.0 + t), 0.0 * t, 1.0
    for k in range(60):
        a = a * (2.0 * k + 2.0) / (2.0 * k + 3.0)
        total = total + a * x**k
    return total


#: G as a polynomial in t; what is left out is below 3e-17, as its singularity lies at t = 3 (factor 3 + √8 a degree).
_G = tuple(np.polynomial.chebyshev.cheb2poly(np.polynomial.chebyshev.chebinterpolate(_exact_g, 21)).tolist())
_DEGREE = len(_G) - 1


@step
def has_spring(T, i):
    """Tell whether the ball whose first node is i has a spring."""
    _, t = node(i)
    k = t + T_STIFFNESS
    return T[k] != 0.0 or T[k + T_NODE] != 0.0 or T[k + 2 * T_NODE] != 0.0


@step
def half_turn(x, y, z):
    """Return the unit quaternion of exp((x, y, z))."""
    s = 0.25 * (x * x + y * y + z * z)
    c2, c3, _, _, _, _ = stumpff(s)
    half = 0.5 * (1.0 - s * c3)
    return 1.0 - s * c2, (half * x, half * y, half * z)


@step
def stretch(T, W, i, like):
    """Return the unit quaternion (w, v), w >= 0, by which the ball whose first node is i has turned from rest."""
    _, t = node(i)
    r = t + T_REST
    w0, v0 = half_turn(T[r], T[r + T_NODE], T[r + 2 * T_NODE])
    x, y, z = of_rows(W, i, Q, like)
    w1, v1 = half_turn(x, y, z)
    w, v = w0 * w1 + dot(v0, v1), sub(sub(scale(w0, v1), scale(w1, v0)), cross(v0, v1))
    sign = where_positive(w, 1.0, -1.0)
    return sign * w, scale(sign, v)


@step
def log_factors(w):
    """Return g, κ and dκ/dw."""
    t = 1.0 - 2.0 * w
    total, slope = _G[_DEGREE] + 0.0 * t, 0.0 * t
    for k in range(_DEGREE - 1, -1, -1):
        slope = total + t * slope
        total = _G[k] + t * total
    share = 1.0 / (1.0 + w)
    kappa = (1.0 - 0.5 * w * total) * share
    return 1.0 + 0.5 * (1.0 - w) * total, kappa, (w * slope - 0.5 * total - kappa) * share


@step
def constants_times(T, i, x):
    """Return K x."""
    _, t = node(i)
    k = t + T_STIFFNESS
    return T[k] * x[0], T[k + T_NODE] * x[1], T[k + 2 * T_NODE] * x[2]


@step
def spring_moment(T, W, i, like):
    """Return the moment m that the spring of the ball whose first node is i takes, in the axes of the link."""
    w, v = stretch(T, W, i, like)
    g, kappa, _ = log_factors(w)
    y = constants_times(T, i, scale(2.0 * g, v))
    n = cross(v, y)
    return add_scaled(add_scaled(y, -g, n), kappa, cross(v, n))


@step
def moment_change(T, W, i, d, like):
    """Return what a turn of the link by δ = d changes of the moment."""
    w, v = stretch(T, W, i, like)
    g, kappa, kappa_rate = log_factors(w)
    dw, dv = -0.5 * dot(v, d), scale(0.5, add_scaled(cross(v, d), w, d))
    dg = -kappa * dw
    y, dy = constants_times(T, i, scale(2.0 * g, v)), constants_times(T, i, add_scaled(scale(2.0 * dg, v), 2.0 * g, dv))
    n, dn = cross(v, y), add(cross(dv, y), cross(v, dy))
    change = add_scaled(add_scaled(dy, -dg, n), -g, dn)
    return add_scaled(add_scaled(change, kappa_rate * dw, cross(v, n)), kappa, add(cross(dv, n), cross(v, dn)))


@step
def spring_energy(T, N, W, i, like):
    """Return V of the ball whose first node is i, and its derivative Jᵀ m to φ."""
    w, v = stretch(T, W, i, like)
    g, _, _ = log_factors(w)
    psi = scale(2.0 * g, v)
    p, c2, c3, _ = phi_of(W, i, chart_of(N, i), like)
    return 0.5 * dot(psi, constants_times(T, i, psi)), jacobian_transposed(p, c2, c3, spring_moment(T, W, i, like))
