"""Runs diagrams: a bdsim whose diagrams have our blocks, with a runner of its own."""

from cstormpy.simulation.simulation import Simulation

__all__ = ["Simulation"]
