"""Dynamics and kinematics of a mechanism: the functions behind the methods of `Mechanism`."""

from __future__ import annotations

from cstormpy.dynamics.hybrid import HybridDynamics, hybrid_dynamics, hybrid_evaluator
from cstormpy.dynamics.inertial import Inertial, inertial
from cstormpy.dynamics.inverse_kinematics import InverseKinematics, inverse_kinematics
from cstormpy.dynamics.kinematics import forward_kinematics, jacobian, jacobian_derivative

__all__ = [
    "HybridDynamics",
    "Inertial",
    "InverseKinematics",
    "forward_kinematics",
    "hybrid_dynamics",
    "hybrid_evaluator",
    "inertial",
    "inverse_kinematics",
    "jacobian",
    "jacobian_derivative",
]
