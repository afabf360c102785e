"""The papers' own algorithms as they print them, in readable NumPy: the oracle that nothing else depends on."""

from __future__ import annotations

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
