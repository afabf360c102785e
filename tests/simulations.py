"""A simulation of bdsim's own and one of ours, each with a diagram to wire, and what is wired in it."""

import contextlib
import io

import bdsim
import numpy as np

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


def oscillator(bd):
    """Wire x'' = -x as one state of two numbers, and a matrix signal."""
    x = bd.INTEGRATOR(x0=[1.0, 0.0], name="x")
    turn = bd.FUNCTION(lambda x: np.array([x[1], -x[0]]), name="turn")
    outer = bd.FUNCTION(lambda x: np.outer(x, x), name="outer")
    first = bd.FUNCTION(lambda x: [float(x[0]), float(x[1])], nout=2, name="parts", onames=("place", "speed"))
    bd.connect(x, turn, outer, first)
    bd.connect(turn, x)
    return x, turn, outer, first
