"""The groups SO(3) and SE(3), their algebras, and what rigid bodies make of them, in readable NumPy.

References: Sohl & Bobrow 2001, section 2, (1)-(17) and (19); Kim 2012, sections 1.1-1.4, there as "Kim (n)".

====== ================ ==============================================================================
letter shape            meaning
====== ================ ==============================================================================
R      (..., 3, 3)      rotation Θ: its columns are the axes of the moving frame
T, G   (..., 4, 4)      pose [[Θ, b], [0, 1]]: T_ab is the pose of frame b in frame a, x_a = T_ab x_b
omega  (..., 3)         rotation vector or angular velocity ω, radians (per second); φ = |ω|
g, V   (..., 6)         screw or twist (ω, v), v in metres (per second); as a matrix [[ω], v; 0, 0]
F      (..., 6)         wrench or momentum (moment, force); as a matrix [[force], moment; 0, 0]
J      (..., 6, 6)      spatial inertia in (ω, v) order, about the frame's origin
====== ================ ==============================================================================

Velocities are body-fixed. Every function takes a batch (leading dimensions broadcast), returns fresh float64, and
refuses by the argument's name: `ShapeError` (shape), `NonFinite` (NaN, infinity, a result that overflows),
`InvalidType` (not real numbers), `InvalidValue` (not a rotation, not skew, no answer). so(3) is taken as 3-vectors
only, since three vectors and one 3x3 matrix have the same shape; se(3) as 6-vectors or 4x4 matrices.

The trigonometric factors keep their digits from φ = 0 to π and beyond: products of half-angle sines where there are
such forms, power series in φ² up to `SERIES_ANGLE` where there are none.

Where this departs from the print: log takes atan2 of half angles, since (7) and A⁻¹ of (8) are 0/0 at φ = π (and
the trace below (8) is 1 + 2 cos φ); (11) agrees with (12) if the matrix of a wrench has the *force* in the rotation's
place; then (15) agrees with (16) as ad*_g(h*) = [h*, g]; and the change of frame after (12) is, as in Kim (13),
F_2 = Ad*_{T_12} F_1.

>>> import numpy as np
>>> T = make_pose(exp_so3([0, 0, np.pi / 2]), [1, 0, 0])
>>> transform_twist(T, [0, 0, 1, 0, 0, 0]).round(12)  # turning about b's z axis, seen from a
array([ 0.,  0.,  1.,  0., -1.,  0.])
"""

from cstormpy.lie.adjoint import Ad, Ad_star, ad, ad_star
from cstormpy.lie.derivatives import SINGULAR_TOLERANCE, dexp_inv_se3, dexp_inv_so3, dexp_se3, dexp_so3
from cstormpy.lie.exponential import ANGLE_LIMIT, exp_se3, exp_so3, log_se3, log_so3
from cstormpy.lie.frames import (
    SYMMETRY_TOLERANCE,
    body_velocity,
    kinetic_energy,
    momentum,
    spatial_inertia,
    transform_inertia,
    transform_momentum,
    transform_twist,
    transform_wrench,
    twist_rate,
    vector_rate,
    world_velocity,
    wrench_rate,
)
from cstormpy.lie.groups import (
    ROTATION_TOLERANCE,
    check_pose,
    check_rotation,
    inverse,
    is_pose,
    is_rotation,
    make_pose,
    nearest_rotation,
)
from cstormpy.lie.matrices import SKEW_TOLERANCE, bracket, hat3, hat6, hat6_star, vee3, vee6, vee6_star

__all__ = [
    "ANGLE_LIMIT",
    "ROTATION_TOLERANCE",
    "SINGULAR_TOLERANCE",
    "SKEW_TOLERANCE",
    "SYMMETRY_TOLERANCE",
    "Ad",
    "Ad_star",
    "ad",
    "ad_star",
    "body_velocity",
    "bracket",
    "check_pose",
    "check_rotation",
    "dexp_inv_se3",
    "dexp_inv_so3",
    "dexp_se3",
    "dexp_so3",
    "exp_se3",
    "exp_so3",
    "hat3",
    "hat6",
    "hat6_star",
    "inverse",
    "is_pose",
    "is_rotation",
    "kinetic_energy",
    "log_se3",
    "log_so3",
    "make_pose",
    "momentum",
    "nearest_rotation",
    "spatial_inertia",
    "transform_inertia",
    "transform_momentum",
    "transform_twist",
    "transform_wrench",
    "twist_rate",
    "vector_rate",
    "vee3",
    "vee6",
    "vee6_star",
    "world_velocity",
    "wrench_rate",
]
