"""Velocities of a frame, quantities seen from another frame and their rates; inertia and momentum of rigid bodies."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from cstormpy.arrays import Array
from cstormpy.graph.arrays import zeros
from cstormpy.lie.adjoint import _Ad, _ad
from cstormpy.lie.arguments import _apply, _biggest, _guarded, _match, _read, _refuse_any, _times, _transpose
from cstormpy.lie.groups import _inverse, check_pose, check_rotation
from cstormpy.lie.matrices import SKEW_TOLERANCE, _hat3, _vee6


def _velocity(T: ArrayLike, dT: ArrayLike, tol: float, fixed: bool) -> Array:
    pose, rate = check_pose(T), _read(dT, "dT", (4, 4))
    _match(T=pose.shape[:-2], dT=rate.shape[:-2])
    X = rate @ _inverse(pose) if fixed else _inverse(pose) @ rate
    return _vee6(X, "dT", tol, floor=1.0)  # the entries of a rotation are of order 1, and so are their errors


@_guarded
def body_velocity(T: ArrayLike, dT: ArrayLike, tol: float = SKEW_TOLERANCE) -> Array:
    """Body-fixed velocity V = T⁻¹ Ṫ (..., 6) of a pose and its rate, both (..., 4, 4): section 2.4, Kim (9), (10).

    A rate `dT` that leaves SE(3), by more than `tol` in units of max(1, |ω|), is refused.

    >>> from cstormpy.lie import exp_se3, hat6
    >>> V = [0.1, 0.2, 0.3, 4, 5, 6]
    >>> T = exp_se3(V)
    >>> body_velocity(T, T @ hat6(V)).round(12)
    array([0.1, 0.2, 0.3, 4. , 5. , 6. ])
    """
    return _velocity(T, dT, tol, fixed=False)


@_guarded
def world_velocity(T: ArrayLike, dT: ArrayLike, tol: float = SKEW_TOLERANCE) -> Array:
    """Velocity Ṫ T⁻¹ (..., 6) in the fixed frame, of the point of the body that is at its origin: section 2.4.

    >>> import numpy as np
    >>> from cstormpy.lie import make_pose
    >>> world_velocity(make_pose(np.eye(3), [1, 0, 0]), np.zeros((4, 4)))
    array([0., 0., 0., 0., 0., 0.])
    """
    return _velocity(T, dT, tol, fixed=True)


@_guarded
def transform_twist(T: ArrayLike, V: ArrayLike) -> Array:
    """Twist (..., 6), given in frame b, in frame a, for T = T_ab (..., 4, 4): V_a = Ad_T V_b, Kim (11).

    >>> import numpy as np
    >>> from cstormpy.lie import make_pose
    >>> transform_twist(make_pose(np.eye(3), [1, 0, 0]), [0, 0, 1, 0, 0, 0])
    array([ 0.,  0.,  1.,  0., -1.,  0.])
    """
    pose, twist = check_pose(T), _read(V, "V", (6,))
    _match(T=pose.shape[:-2], V=twist.shape[:-1])
    return _apply(_Ad(pose), twist)  # Kim (11)


def _covector(T: ArrayLike, F: ArrayLike, name: str) -> Array:
    pose, covector = check_pose(T), _read(F, name, (6,))
    _match(**{"T": pose.shape[:-2], name: covector.shape[:-1]})
    return _apply(_transpose(_Ad(_inverse(pose))), covector)  # Kim (13), (24)


@_guarded
def transform_wrench(T: ArrayLike, F: ArrayLike) -> Array:
    """Wrench (..., 6), given in frame b, in frame a, for T = T_ab (..., 4, 4): F_a = Ad*_{T⁻¹} F_b, Kim (13).

    >>> import numpy as np
    >>> from cstormpy.lie import make_pose
    >>> transform_wrench(make_pose(np.eye(3), [1, 0, 0]), [0, 0, 0, 0, 1, 0])
    array([0., 0., 1., 0., 1., 0.])
    """
    return _covector(T, F, "F")


@_guarded
def transform_momentum(T: ArrayLike, L: ArrayLike) -> Array:
    """Momentum (..., 6), given in frame b, in frame a, for T = T_ab (..., 4, 4), as a wrench: Kim (24).

    >>> import numpy as np
    >>> from cstormpy.lie import make_pose
    >>> transform_momentum(make_pose(np.eye(3), [1, 0, 0]), [0, 0, 0, 0, 2, 0])
    array([0., 0., 2., 0., 2., 0.])
    """
    return _covector(T, L, "L")


@_guarded
def transform_inertia(T: ArrayLike, J: ArrayLike) -> Array:
    """Spatial inertia (..., 6, 6), given in frame b, in frame a, for T = T_ab: J_a = Ad*_{T⁻¹} J_b Ad_{T⁻¹}, Kim (21).

    >>> import numpy as np
    >>> from cstormpy.lie import make_pose, spatial_inertia
    >>> transform_inertia(make_pose(np.eye(3), [0, 2, 0]), spatial_inertia(3, [0, 0, 0], np.eye(3))).diagonal()
    array([13.,  1., 13.,  3.,  3.,  3.])
    """
    pose, inertia = check_pose(T), _read_symmetric(J, "J", 6)
    _match(T=pose.shape[:-2], J=inertia.shape[:-2])
    X = _Ad(_inverse(pose))
    moved = _transpose(X) @ inertia @ X  # Kim (21)
    return 0.5 * (moved + _transpose(moved))


def _rate(x: Array, dx: Array, operator: Array, names: tuple[str, str, str]) -> Array:
    _match(**dict(zip(names, (x.shape[:-1], dx.shape[:-1], operator.shape[:-2]), strict=True)))
    return dx + _apply(operator, x)


@_guarded
def vector_rate(x: ArrayLike, dx: ArrayLike, omega: ArrayLike) -> Array:
    """Time derivative ẋ + ω × x of a vector (..., 3) with components x, ẋ in a frame turning with ω: Kim (25).

    >>> vector_rate([1, 0, 0], [0, 0, 0], [0, 0, 2])
    array([0., 2., 0.])
    """
    operator = _hat3(_read(omega, "omega", (3,)))
    return _rate(_read(x, "x", (3,)), _read(dx, "dx", (3,)), operator, ("x", "dx", "omega"))  # Kim (25)


@_guarded
def twist_rate(X: ArrayLike, dX: ArrayLike, V: ArrayLike) -> Array:
    """Time derivative Ẋ + ad_V X of a twist (..., 6) with components X, Ẋ in a frame moving with V: lemma 1, Kim (26).

    >>> import numpy as np
    >>> twist_rate([0, 0, 0, 1, 0, 0], np.zeros(6), [0, 0, 2, 0, 0, 0])
    array([0., 0., 0., 0., 2., 0.])
    """
    operator = _ad(_read(V, "V", (6,)))
    return _rate(_read(X, "X", (6,)), _read(dX, "dX", (6,)), operator, ("X", "dX", "V"))  # Kim (26)


@_guarded
def wrench_rate(Y: ArrayLike, dY: ArrayLike, V: ArrayLike) -> Array:
    """Time derivative Ẏ - ad*_V Y of a wrench or momentum (..., 6) in a frame moving with V: lemma 2, Kim (28).

    With the momentum Y = J V this is the equation of motion (18).

    >>> import numpy as np
    >>> wrench_rate([1, 0, 0, 0, 0, 0], np.zeros(6), [0, 0, 2, 0, 0, 0])
    array([0., 2., 0., 0., 0., 0.])
    """
    operator = 0 - _transpose(_ad(_read(V, "V", (6,))))
    return _rate(_read(Y, "Y", (6,)), _read(dY, "dY", (6,)), operator, ("Y", "dY", "V"))  # Kim (28)


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
    J = zeros((*_match(**leading), 6, 6), m, r, central, *(() if rotation is None else (R,)))
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
    return 0.5 * (twist * momentum(J, twist)).sum(axis=-1)  # Kim (15)
