"""Spatial inertia, momentum and kinetic energy of a rigid body."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from cstormpy.arrays import Array
from cstormpy.lie.arguments import _apply, _biggest, _guarded, _match, _read, _refuse_any, _times, _transpose
from cstormpy.lie.groups import check_rotation
from cstormpy.lie.matrices import _hat3

SYMMETRY_TOLERANCE = 1e-9
"""Largest entry of J - Jᵀ in units of the largest of J that still passes as symmetric."""


def _read_symmetric(J: ArrayLike, name: str, n: int) -> Array:
    array = _read(J, name, (n, n))
    gap, size = _biggest(array - _transpose(array)), _biggest(array)
    _refuse_any(
        ~(gap <= SYMMETRY_TOLERANCE * size),
        name,
        lambda row: f"expected a symmetric matrix, got one that differs by {gap[row]:.1e} from its transpose",
    )
    return 0.5 * (array + _transpose(array))


@_guarded
def spatial_inertia(mass: ArrayLike, com: ArrayLike, inertia: ArrayLike, rotation: ArrayLike | None = None) -> Array:
    """Spatial inertia J (..., 6, 6) about the frame's origin, in (ω, v) order: (19), Kim (22).

    Whether an inertia belongs to a real body (the triangle inequality) is not asked here; links ask it.

    Parameters
    ----------
    mass : array_like, (...)
        Mass, kg, not negative.
    com : array_like, (..., 3)
        Centre of mass r in the frame, m.
    inertia : array_like, (..., 3, 3)
        Inertia about the centre of mass, kg m², symmetric.
    rotation : array_like, (..., 3, 3), optional
        Axes of `inertia` in the frame, if they differ from the frame's.

    Examples
    --------
    >>> spatial_inertia(2, [1, 0, 0], np.zeros((3, 3)))[1]
    array([ 0.,  2.,  0.,  0.,  0., -2.])
    """
    m, r, central = _read(mass, "mass", ()), _read(com, "com", (3,)), _read_symmetric(inertia, "inertia", 3)
    _refuse_any(m < 0, "mass", lambda row: f"expected a mass that is not negative, got {m[row]:g}")
    leading = {"mass": m.shape, "com": r.shape[:-1], "inertia": central.shape[:-2]}
    if rotation is not None:
        R = check_rotation(rotation, name="rotation")
        leading["rotation"] = R.shape[:-2]
    J = np.zeros((*_match(**leading), 6, 6))
    if rotation is not None:
        central = R @ central @ _transpose(R)
    arm = _hat3(r)
    J[..., :3, :3] = 0.5 * (central + _transpose(central)) - _times(m, arm @ arm)  # (19), Kim (22)
    J[..., :3, 3:] = _times(m, arm)
    J[..., 3:, :3] = 0 - _times(m, arm)
    J[..., 3:, 3:] = _times(m, np.eye(3))
    return J


@_guarded
def momentum(J: ArrayLike, V: ArrayLike) -> Array:
    """Momentum L = J V (..., 6), (angular about the frame's origin, linear), body-fixed: Kim (23).

    >>> momentum(spatial_inertia(2, [1, 0, 0], np.zeros((3, 3))), [0, 0, 3, 0, 0, 0])
    array([0., 0., 6., 0., 6., 0.])
    """
    inertia, twist = _read_symmetric(J, "J", 6), _read(V, "V", (6,))
    _match(J=inertia.shape[:-2], V=twist.shape[:-1])
    return _apply(inertia, twist)  # Kim (23)


@_guarded
def kinetic_energy(J: ArrayLike, V: ArrayLike) -> Array | np.float64:
    """Kinetic energy Vᵀ J V / 2 (...), joules: Kim (15).

    >>> float(kinetic_energy(spatial_inertia(2, [1, 0, 0], np.zeros((3, 3))), [0, 0, 3, 0, 0, 0]))
    9.0
    """
    twist = _read(V, "V", (6,))
    energy: Array | np.float64 = 0.5 * (twist * momentum(J, twist)).sum(axis=-1)  # Kim (15)
    return energy
