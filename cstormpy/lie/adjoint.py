"""Ad, Ad*, ad and ad*, on vectors and on matrices, as matrices and applied."""

from __future__ import annotations

from numpy.typing import ArrayLike

from cstormpy.arrays import Array
from cstormpy.graph.arrays import zeros
from cstormpy.lie.arguments import _apply, _guarded, _match, _read, _transpose
from cstormpy.lie.groups import _inverse, _read_group
from cstormpy.lie.matrices import _hat3, _hat6, _vee6


def _Ad(T: Array) -> Array:
    R, X = T[..., :3, :3], zeros((*T.shape[:-2], 6, 6), T)
    X[..., :3, :3] = X[..., 3:, 3:] = R
    X[..., 3:, :3] = _hat3(T[..., :3, 3]) @ R  # (10), Kim (7)
    return X


def _ad(g: Array) -> Array:
    X = zeros((*g.shape[:-1], 6, 6), g)
    X[..., :3, :3] = X[..., 3:, 3:] = _hat3(g[..., :3])
    X[..., 3:, :3] = _hat3(g[..., 3:])  # (14), Kim (27)
    return X


def _operand(h: ArrayLike, n: int, **other: tuple[int, ...]) -> tuple[Array, bool]:
    """Read what an n x n operator acts on; tell whether it is a matrix of se(3)."""
    array = _read(h, "h", (3,)) if n == 3 else _read(h, "h", (6,), (4, 4))
    matrix = array.shape[-1] == 4
    if matrix:
        _vee6(array, "h")
    _match(**other, h=array.shape[: -2 if matrix else -1])
    return array, matrix


@_guarded
def Ad(G: ArrayLike, h: ArrayLike | None = None) -> Array:
    """Adjoint map of a pose or a rotation, as a matrix or applied to `h`: the same twist in the other frame.

    Parameters
    ----------
    G : array_like, (..., 4, 4) or (..., 3, 3)
        Pose T_ab, or rotation R_ab.
    h : array_like, (..., 6) or (..., 4, 4), for a rotation (..., 3); optional
        Twist in frame b.

    Returns
    -------
    ndarray
        Without `h` the matrix (..., 6, 6) of (10), for a rotation (..., 3, 3); else the twist in frame a, in the form
        of `h`.

    Examples
    --------
    >>> import numpy as np
    >>> from cstormpy.lie import make_pose
    >>> Ad(make_pose(np.eye(3), [1, 0, 0]), [0, 0, 1, 0, 0, 0])
    array([ 0.,  0.,  1.,  0., -1.,  0.])
    """
    group = _read_group(G, "G")
    operator = _Ad(group) if group.shape[-1] == 4 else group
    if h is None:
        return operator
    twist, matrix = _operand(h, operator.shape[-1], G=group.shape[:-2])
    return group @ twist @ _inverse(group) if matrix else _apply(operator, twist)  # (9), Kim (6); (10)


@_guarded
def Ad_star(G: ArrayLike, h: ArrayLike | None = None) -> Array:
    """Dual adjoint map, the transpose of `Ad`: a wrench in frame a, seen in frame b, for G = T_ab.

    Parameters
    ----------
    G : array_like, (..., 4, 4) or (..., 3, 3)
        Pose T_ab, or rotation R_ab.
    h : array_like, (..., 6) or (..., 4, 4), for a rotation (..., 3); optional
        Wrench (moment, force) in frame a; as a matrix in the form of `hat6_star`.

    Returns
    -------
    ndarray
        The matrix of (12), or the wrench in frame b in the form of `h`.

    Examples
    --------
    >>> import numpy as np
    >>> from cstormpy.lie import make_pose
    >>> Ad_star(make_pose(np.eye(3), [1, 0, 0]), [0, 0, 0, 0, 1, 0])
    array([ 0.,  0., -1.,  0.,  1.,  0.])
    """
    group = _read_group(G, "G")
    operator = _transpose(_Ad(group) if group.shape[-1] == 4 else group).copy()  # (12), Kim (8)
    if h is None:
        return operator
    wrench, matrix = _operand(h, operator.shape[-1], G=group.shape[:-2])
    return _inverse(group) @ wrench @ group if matrix else _apply(operator, wrench)  # (11); (12)


def _read_algebra(g: ArrayLike) -> Array:
    """Read a vector of so(3), or an element of se(3) in either form, as a vector."""
    array = _read(g, "g", (6,), (4, 4), (3,))
    return _vee6(array, "g") if array.shape[-1] == 4 else array


@_guarded
def ad(g: ArrayLike, h: ArrayLike | None = None) -> Array:
    """Lie bracket with g, as a matrix or applied to `h`: ad_g(h) = [g, h], the cross product of twists.

    Parameters
    ----------
    g : array_like, (..., 6), (..., 4, 4), or of so(3) (..., 3)
        Twist.
    h : array_like, (..., 6) or (..., 4, 4), for so(3) (..., 3); optional
        Twist in the same frame.

    Returns
    -------
    ndarray
        The matrix of (14), (..., 6, 6) or (..., 3, 3); or [g, h] in the form of `h`.

    Examples
    --------
    >>> ad([0, 0, 1, 0, 0, 0], [0, 0, 0, 1, 0, 0])
    array([0., 0., 0., 0., 1., 0.])
    """
    vector = _read_algebra(g)
    operator = _ad(vector) if vector.shape[-1] == 6 else _hat3(vector)
    if h is None:
        return operator
    twist, matrix = _operand(h, operator.shape[-1], g=vector.shape[:-1])
    return _hat6(vector) @ twist - twist @ _hat6(vector) if matrix else _apply(operator, twist)  # (13); (14)


@_guarded
def ad_star(g: ArrayLike, h: ArrayLike | None = None) -> Array:
    """Dual of `ad`, its transpose, as a matrix or applied to a wrench `h`: ad*_g(h*) = [h*, g].

    Parameters
    ----------
    g : array_like, (..., 6), (..., 4, 4), or of so(3) (..., 3)
        Twist.
    h : array_like, (..., 6) or (..., 4, 4), for so(3) (..., 3); optional
        Wrench (moment, force) in the same frame; as a matrix in the form of `hat6_star`.

    Returns
    -------
    ndarray
        The matrix of (16), (..., 6, 6) or (..., 3, 3); or the wrench in the form of `h`.

    Examples
    --------
    >>> ad_star([0, 0, 1, 0, 0, 0], [1, 0, 0, 0, 0, 0])
    array([ 0., -1.,  0.,  0.,  0.,  0.])
    """
    vector = _read_algebra(g)
    operator = _transpose(_ad(vector) if vector.shape[-1] == 6 else _hat3(vector)).copy()  # (16), Kim (29)
    if h is None:
        return operator
    wrench, matrix = _operand(h, operator.shape[-1], g=vector.shape[:-1])
    return wrench @ _hat6(vector) - _hat6(vector) @ wrench if matrix else _apply(operator, wrench)  # (15); (16)
