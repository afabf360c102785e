"""Many runs of one diagram, over parameters, starts and options; see `cstormpy.simulation.Simulation.sweep`."""

from __future__ import annotations

from cstormpy.simulation.sweep.result import Sweep

__all__ = ["Sweep"]
