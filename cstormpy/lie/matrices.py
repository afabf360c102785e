"""The matrices of vectors: [ω] and [[ω], v; 0, 0], their inverses and their bracket."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from cstormpy.arrays import Array
from cstormpy.graph.arrays import zeros
from cstormpy.lie.arguments import _array, _biggest, _guarded, _match, _read, _refuse_any, _transpose

SKEW_TOLERANCE = 1e-9
"""Largest entry of W + Wᵀ in units of the largest of W that still passes as skew-symmetric."""


def _read_twist(g: ArrayLike, name: str) -> Array:
    """Read an element of se(3) in either form as a 6-vector."""
    array = _read(g, name, (6,), (4, 4))
    return array if array.shape[-1] == 6 else _vee6(array, name)


def _hat3(omega: Array) -> Array:
    x, y, z = omega[..., 0], omega[..., 1], omega[..., 2]
    W = zeros((*omega.shape, 3), omega)
    W[..., 2, 1], W[..., 0, 2], W[..., 1, 0] = x, y, z  # (2)
    W[..., 1, 2], W[..., 2, 0], W[..., 0, 1] = 0 - x, 0 - y, 0 - z  # 0 - x: no -0.0 in what users print
    return W


def _vee3(W: Array, name: str, tol: float = SKEW_TOLERANCE, floor: float = 0.0) -> Array:
    gap, size = _biggest(W + _transpose(W)), np.maximum(_biggest(W), floor)
    _refuse_any(
        ~(gap <= tol * size),
        name,
        lambda row: f"expected a skew-symmetric matrix, got |W + Wᵀ| = {gap[row]:.1e} (at most {tol:.0e} of |W|)",
    )
    upper = np.stack([W[..., 1, 2], W[..., 2, 0], W[..., 0, 1]], axis=-1)
    lower = np.stack([W[..., 2, 1], W[..., 0, 2], W[..., 1, 0]], axis=-1)
    return _array(lower - 0.5 * (lower + upper))  # the mean, and exact for an exact [ω]


def _hat6(g: Array) -> Array:
    X = zeros((*g.shape[:-1], 4, 4), g)
    X[..., :3, :3] = _hat3(g[..., :3])  # (3), Kim (5)
    X[..., :3, 3] = g[..., 3:]
    return X


def _vee6(X: Array, name: str, tol: float = SKEW_TOLERANCE, floor: float = 0.0) -> Array:
    last = np.abs(X[..., 3, :]).max(axis=-1)
    _refuse_any(~(last <= tol * _biggest(X)), name, lambda row: f"expected a last row of zeros, got {X[row][3]}")
    return np.concatenate([_vee3(X[..., :3, :3], name, tol, floor), X[..., :3, 3]], axis=-1)


def _swap(h: Array) -> Array:
    """(moment, force) to (force, moment) and back."""
    return np.concatenate([h[..., 3:], h[..., :3]], axis=-1)


@_guarded
def hat3(omega: ArrayLike) -> Array:
    """Skew-symmetric matrix [ω] (..., 3, 3) of a vector (..., 3), with [ω] x = ω × x: (2).

    >>> hat3([1, 2, 3])
    array([[ 0., -3.,  2.],
           [ 3.,  0., -1.],
           [-2.,  1.,  0.]])
    """
    return _hat3(_read(omega, "omega", (3,)))


@_guarded
def vee3(W: ArrayLike, tol: float = SKEW_TOLERANCE) -> Array:
    """Vector (..., 3) of a skew-symmetric matrix (..., 3, 3); one that is not, by more than `tol`, is refused.

    >>> vee3([[0, -3, 2], [3, 0, -1], [-2, 1, 0]])
    array([1., 2., 3.])
    """
    return _vee3(_read(W, "W", (3, 3)), "W", tol)


@_guarded
def hat6(g: ArrayLike) -> Array:
    """Matrix [[ω], v; 0, 0] (..., 4, 4) of a twist (ω, v) (..., 6): (3), Kim (5).

    >>> hat6([0, 0, 1, 7, 8, 9])[:2]
    array([[ 0., -1.,  0.,  7.],
           [ 1.,  0.,  0.,  8.]])
    """
    return _hat6(_read(g, "g", (6,)))


@_guarded
def vee6(X: ArrayLike, tol: float = SKEW_TOLERANCE) -> Array:
    """Twist (ω, v) (..., 6) of a matrix (..., 4, 4) of se(3): (4).

    >>> vee6(hat6([1, 2, 3, 4, 5, 6]))
    array([1., 2., 3., 4., 5., 6.])
    """
    return _vee6(_read(X, "X", (4, 4)), "X", tol)


@_guarded
def hat6_star(h: ArrayLike) -> Array:
    """Matrix [[force], moment; 0, 0] (..., 4, 4) of a wrench (moment, force) (..., 6): the form that (11) takes.

    >>> hat6_star([7, 8, 9, 0, 0, 1])[:2]
    array([[ 0., -1.,  0.,  7.],
           [ 1.,  0.,  0.,  8.]])
    """
    return _hat6(_swap(_read(h, "h", (6,))))


@_guarded
def vee6_star(X: ArrayLike, tol: float = SKEW_TOLERANCE) -> Array:
    """Wrench (moment, force) (..., 6) of its matrix (..., 4, 4); the inverse of `hat6_star`.

    >>> vee6_star(hat6_star([1, 2, 3, 4, 5, 6]))
    array([1., 2., 3., 4., 5., 6.])
    """
    return _swap(_vee6(_read(X, "X", (4, 4)), "X", tol))


@_guarded
def bracket(x: ArrayLike, y: ArrayLike) -> Array:
    """Lie bracket [x, y] = xy - yx of two matrices of so(3) (..., 3, 3) or of se(3) (..., 4, 4): (13).

    >>> vee3(bracket(hat3([1, 0, 0]), hat3([0, 1, 0])))
    array([0., 0., 1.])
    """
    a = _read(x, "x", (3, 3), (4, 4))
    b = _read(y, "y", a.shape[-2:])
    _match(x=a.shape[:-2], y=b.shape[:-2])
    for array, name in ((a, "x"), (b, "y")):
        (_vee3 if a.shape[-1] == 3 else _vee6)(array, name)
    return a @ b - b @ a  # (13)
