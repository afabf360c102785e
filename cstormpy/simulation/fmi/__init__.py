"""Functional mock-up units (FMI 2.0 and 3.0, co-simulation) of diagrams."""

from cstormpy.simulation.fmi.unit import write_fmu

__all__ = ["write_fmu"]
