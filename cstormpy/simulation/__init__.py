"""Runs diagrams: a bdsim whose diagrams have our blocks, with a runner of its own."""

import warnings

from cstormpy.simulation.deferred_imports import deferred

with warnings.catch_warnings(), deferred():
    # bdsim loads spatialmath, in whose docstrings Python 3.12 and later find escapes to warn of, when they compile it.
    warnings.filterwarnings("ignore", message=".*invalid escape sequence")
    import bdsim
    import bdsim.blocks  # noqa: F401
    import numpy.f2py
    import numpy.testing  # noqa: F401

from cstormpy.simulation.simulation import Simulation

__all__ = ["Simulation"]
