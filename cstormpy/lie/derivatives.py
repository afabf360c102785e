"""The derivative of the exponential, and its inverse."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from cstormpy.arrays import Array
from cstormpy.errors import InvalidValue, shown
from cstormpy.graph.arrays import zeros
from cstormpy.lie.arguments import EPS, _guarded, _read, _refuse_any, _times
from cstormpy.lie.exponential import _a, _a_slope, _angle, _b, _b_slope, _c, _c_slope, _polynomial
from cstormpy.lie.matrices import _hat3, _read_twist

SINGULAR_TOLERANCE = EPS**0.5
"""dexp_inv is refused within this fraction of a multiple of 2π, where it would lose half of its digits or more."""


def _sign(side: str) -> float:
    """Return the sign of g: the left-trivialised derivative at g is the right-trivialised one at -g."""
    if side not in ("left", "right"):
        raise InvalidValue(f"side: expected 'left' or 'right', got {shown(side)}")
    return -1.0 if side == "left" else 1.0


def _refuse_singular(phi: Array, name: str) -> None:
    """Refuse |ω| = 2π, 4π, ..., where exp is not locally invertible."""
    _refuse_any(
        (phi > np.pi) & (np.abs(2 * np.sin(0.5 * phi)) <= SINGULAR_TOLERANCE * phi),
        name,
        lambda row: f"expected |ω| away from multiples of 2π, where exp has no inverse, got {phi[row]:.17g}",
    )


def _dual_polynomial(g: Array, f1: Array | float, f2: Array, d1: Array | float, d2: Array) -> Array:
    """f(ad_g) (..., 6, 6) for f([ω]) = 1 + f1 [ω] + f2 [ω]², with d = f'(φ)/φ.

    ad_g = [[ω], 0; [v], [ω]] is [ω] + ε[v] with ε² = 0, so that the lower left block of f(ad_g) is the derivative of
    f at [ω] in the direction [v].
    """
    omega, v = g[..., :3], g[..., 3:]
    W, V, along = _hat3(omega), _hat3(v), (omega * v).sum(axis=-1)
    X = zeros((*g.shape[:-1], 6, 6), g)
    X[..., :3, :3] = X[..., 3:, 3:] = _polynomial(W, f1, f2)
    X[..., 3:, :3] = _times(f1, V) + _times(f2, W @ V + V @ W) + _times(d1 * along, W) + _times(d2 * along, W @ W)
    return X


@_guarded
def dexp_so3(omega: ArrayLike, side: str = "left") -> Array:
    """Return the derivative of exp on so(3) (..., 3, 3): the angular velocity is dexp_so3(ω) ω̇.

    Parameters
    ----------
    omega : array_like, (..., 3)
        Rotation vector, radians.
    side : {"left", "right"}
        Left-trivialised, exp(ω)⁻¹ d exp(ω), the body-fixed angular velocity (others say "right Jacobian"); or
        right-trivialised, d exp(ω) exp(ω)⁻¹, the same in fixed axes: the matrix A of (6).

    Examples
    --------
    >>> (dexp_so3([0, 0, np.pi]) @ [np.pi, 0, 0]).round(12)
    array([ 0., -2.,  0.])
    """
    vector = _sign(side) * _read(omega, "omega", (3,))
    phi = _angle(vector, "omega")
    return _polynomial(_hat3(vector), _a(phi), _b(phi))  # A of (6)


@_guarded
def dexp_inv_so3(omega: ArrayLike, side: str = "left") -> Array:
    """Inverse (..., 3, 3) of `dexp_so3`: ω̇ from the angular velocity. Refused where |ω| is near 2π, 4π, ...

    >>> dexp_inv_so3([0, 0, np.pi])[0].round(4)
    array([ 0.    , -1.5708,  0.    ])
    """
    vector = _sign(side) * _read(omega, "omega", (3,))
    phi = _angle(vector, "omega")
    _refuse_singular(phi, "omega")
    return _polynomial(_hat3(vector), -0.5, _c(phi))  # A⁻¹ of (8)


@_guarded
def dexp_se3(g: ArrayLike, side: str = "left") -> Array:
    """Return the derivative of exp on se(3) (..., 6, 6): the twist of T = exp(g) is dexp_se3(g) ġ.

    Parameters
    ----------
    g : array_like, (..., 6) or (..., 4, 4)
        Twist (ω, v), radians and metres.
    side : {"left", "right"}
        Left-trivialised, T⁻¹ Ṫ, the body-fixed velocity; or right-trivialised, Ṫ T⁻¹.

    Examples
    --------
    >>> dexp_se3([0, 0, 0, 0, 2, 0])[3:, :3]  # -[v]/2 for a translation
    array([[ 0.,  0., -1.],
           [ 0.,  0.,  0.],
           [ 1.,  0.,  0.]])
    """
    twist = _sign(side) * _read_twist(g, "g")
    phi = _angle(twist[..., :3], "g")
    return _dual_polynomial(twist, _a(phi), _b(phi), _a_slope(phi), _b_slope(phi))


@_guarded
def dexp_inv_se3(g: ArrayLike, side: str = "left") -> Array:
    """Inverse (..., 6, 6) of `dexp_se3`: ġ from the twist. Refused where |ω| is near 2π, 4π, ...

    >>> g = [0.1, 0.2, 0.3, 4, 5, 6]
    >>> bool(np.allclose(dexp_inv_se3(g) @ dexp_se3(g), np.eye(6)))
    True
    """
    twist = _sign(side) * _read_twist(g, "g")
    phi = _angle(twist[..., :3], "g")
    _refuse_singular(phi, "g")
    return _dual_polynomial(twist, -0.5, _c(phi), 0.0, _c_slope(phi))
