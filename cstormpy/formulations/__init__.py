"""The papers' own algorithms as they print them, in readable NumPy: the oracle that only its comparison depends on.

To be read with the papers in hand; each module has its notation, where it departs from the print, and an equation at
the end of each line. All work on a `Mechanism`. The names of this package itself are those of Sohl and Bobrow.

=========================================  =================================================================
module                                     algorithm
=========================================  =================================================================
sohl_bobrow, sohl_bobrow_sensitivity       hybrid dynamics of branched chains and its derivatives
uicker_kahn, lagrange                      Lagrange's equation: in 4 x 4 matrices, and on K - P itself
hollerbach, hollerbach_3x3                 recursive Lagrangians
silver                                     Lagrangian with angular velocities
luh_walker_paul, stepanenko, orin          Newton and Euler: in link coordinates, in the base's, in both
armstrong                                  forward dynamics by coefficients of a linear law
johnson_su, johnson_su_coefficients        recursive Newton-Euler, composite body, articulated body; C_ijk
kim, kim_derivative, kim_constrained       hybrid dynamics, derivatives to any scalar, constraints
xiang, xiang_sensitivity, xiang_regular    recursive and regular Lagrangian with their sensitivities
counting, registry                         numbers that count operations; the formulations to be compared
arguments, homogeneous, dual               what they share: arguments, 4 x 4 matrices, dual numbers
=========================================  =================================================================
"""

from cstormpy.formulations.sohl_bobrow import (
    energy,
    forward_kinematics,
    hybrid_dynamics,
    hybrid_dynamics_serial,
    inverse_dynamics,
    link_velocities,
    mass_matrix,
)
from cstormpy.formulations.sohl_bobrow_sensitivity import base_sensitivity, hybrid_directional, hybrid_sensitivity

__all__ = [
    "base_sensitivity",
    "energy",
    "forward_kinematics",
    "hybrid_directional",
    "hybrid_dynamics",
    "hybrid_dynamics_serial",
    "hybrid_sensitivity",
    "inverse_dynamics",
    "link_velocities",
    "mass_matrix",
]
