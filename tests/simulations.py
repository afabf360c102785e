"""A simulation of bdsim's own and one of ours, each with a diagram to wire."""

import contextlib
import io

import bdsim

import cstormpy as cs


def plain():
    """Return bdsim's own simulation, and a diagram."""
    with contextlib.redirect_stdout(io.StringIO()):
        sim = bdsim.BDSim(sysargs=False, graphics=False, quiet=True, progress=False, banner=False)
    return sim, sim.blockdiagram()


def ours():
    """Return our simulation, and a diagram."""
    sim = cs.Simulation()
    return sim, sim.blockdiagram()
