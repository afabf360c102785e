"""Exact sensitivities of the hybrid dynamics: the functions behind the methods of `Mechanism`."""

from cstormpy.sensitivity.directional import hybrid_jvp, hybrid_vjp
from cstormpy.sensitivity.hybrid import (
    HybridSensitivity,
    hybrid_sensitivity,
    hybrid_sensitivity_evaluator,
    variation_rate,
)
from cstormpy.sensitivity.linearisation import Equilibrium, Linearization, linearize, trim

__all__ = [
    "Equilibrium",
    "HybridSensitivity",
    "Linearization",
    "hybrid_jvp",
    "hybrid_sensitivity",
    "hybrid_sensitivity_evaluator",
    "hybrid_vjp",
    "linearize",
    "trim",
    "variation_rate",
]
