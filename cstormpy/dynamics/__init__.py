"""Dynamics and kinematics of a mechanism: the functions behind the methods of `Mechanism`.

Inverse kinematics has a module of its own, `cstormpy.dynamics.inverse_kinematics`, that only those load who ask for it.
"""

from cstormpy.dynamics.hybrid import HybridDynamics, hybrid_dynamics, hybrid_evaluator
from cstormpy.dynamics.inertial import Inertial, inertial
from cstormpy.dynamics.kinematics import forward_kinematics, jacobian, jacobian_derivative

__all__ = [
    "HybridDynamics",
    "Inertial",
    "forward_kinematics",
    "hybrid_dynamics",
    "hybrid_evaluator",
    "inertial",
    "jacobian",
    "jacobian_derivative",
]
