"""Loads of WRENCH and PUSH in the base's axes at SENSITIVITY and VARIATION: their direction is fixed in space.

A wrench in its link's frame turns with the link, so that the Jacobians at hand were those of another load than the one
that was wired: SENSITIVITY gave 6.4 where the plant as wired, linearised, has 16.3, and VARIATION 1.139 for 1.337.
"""

from __future__ import annotations

import contextlib
import io

import bdsim
import numpy as np
import pytest
from closeness import assert_close

import cstormpy as cs
from cstormpy import library
from cstormpy.blocks.dynamics import HybridDynamics
from cstormpy.blocks.loads import Push, Wrench
from cstormpy.blocks.sensitivities import Sensitivity, Variation

ARM = library.xiang_two_link()
TIP = [0.4, 0.0, 0.0]
WEIGHT = np.array([0.0, -10.0, 0.0])
LOAD = cs.Load("forearm", WEIGHT, point=TIP)
BESIDE = np.linspace(-1.0, 1.2, 12).reshape(2, 6)
START = np.array([0.3, 0.9])
TORQUES = np.array([1.0, 0.5])
ENGINES = ["interpreted", "compiled"]
WAYS = ["wrench", "push", "sum", "gain", "flat", "difference of two"]


def wired_load(bd, q, way):
    """Wire the weight at the tip in one of several ways; return the block and what it amounts to."""
    if way == "push":
        push = Push(ARM, "forearm", [(-1.0, 9.0, WEIGHT)], frame="base", point=TIP, bd=bd)
        bd.connect(q, push[0])
        return push, [LOAD]
    load = Wrench(ARM, "forearm", frame="base", load="force", point=TIP, bd=bd)
    bd.connect(bd.CONSTANT(WEIGHT), load[0])
    bd.connect(q, load[1])
    if way == "wrench":
        return load, [LOAD]
    if way == "sum":
        total = bd.SUM("+-")
        bd.connect(load, total[0])
        bd.connect(bd.CONSTANT(BESIDE), total[1])
        return total, [LOAD, *[(k, None, -row) for k, row in enumerate(BESIDE)]]
    if way == "gain":
        gain = bd.GAIN(0.4)
        bd.connect(load, gain)
        return gain, [cs.Load("forearm", 0.4 * WEIGHT, point=TIP)]
    if way == "flat":
        flat = bd.FLATTEN()
        bd.connect(load, flat)
        return flat, [LOAD]
    other = Push(ARM, 0, [(-1.0, 9.0, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0])], frame="base", point=[0, 1, 0], bd=bd)
    bd.connect(q, other[0])
    total = bd.SUM("-+")
    bd.connect(other, total[0])
    bd.connect(load, total[1])
    return total, [LOAD, cs.Load(0, [-4.0, -5.0, -6.0], [-1.0, -2.0, -3.0], [0, 1, 0])]


def diagram(sim, way, q0=START, qd0=(0.0, 0.0), varied=True):
    """Return a diagram of the arm under the load, its Jacobians beside it, and what the load amounts to."""
    bd = sim.blockdiagram()
    plant = HybridDynamics(ARM, q0=q0, qd0=qd0, wrench=True, name="plant", bd=bd)
    load, said = wired_load(bd, plant[0], way)
    blocks = [Sensitivity(ARM, wrench=True, name="sensitivity", bd=bd)]
    if varied:
        blocks.append(Variation(ARM, wrench=True, name="variation", bd=bd))
    torques = bd.CONSTANT(TORQUES)
    bd.connect(torques, plant[0])
    bd.connect(load, plant[1])
    for block in blocks:
        for port, signal in enumerate((plant[0], plant[1], torques, load)):
            bd.connect(signal, block[port])
        for port in range(block.nout):
            bd.connect(block[port], bd.NULL())
    return bd, said


def end(sim, way, x0):
    bd, _ = diagram(sim, way, x0[:2], x0[2:], varied=False)
    return sim.run(bd, 0.2, rtol=1e-11, atol=1e-13).x[-1, :4]


def differences(way):
    """Return the derivative of the end of a run to its start."""
    sim, x0, h = cs.Simulation(engine="compiled", live=False), np.array([*START, 0.0, 0.0]), 1e-4
    return np.transpose([(end(sim, way, x0 + h * e) - end(sim, way, x0 - h * e)) / (2 * h) for e in np.eye(4)])


#: In the compiled engine a diagram is compiled for each way: all but the last are left to the slow tests.
WIRED = [
    pytest.param(engine, way, marks=[] if engine == "interpreted" or way == "difference of two" else pytest.mark.slow)
    for engine in ENGINES
    for way in WAYS
]


@pytest.mark.slow
@pytest.mark.parametrize(("engine", "way"), WIRED)
def test_the_jacobians_are_those_of_the_plant_as_wired(engine, way):
    sim = cs.Simulation(engine=engine, live=False)
    bd, said = diagram(sim, way)
    out = sim.run(bd, 0.2, rtol=1e-9, atol=1e-11, watch=["sensitivity", "variation"])
    for row in (0, len(out.t) // 2, -1):
        q, qd = out.x[row, :2], out.x[row, 2:4]
        want = ARM.hybrid_sensitivity(q, qd, TORQUES, wrench=said)
        assert_close(out.signal("sensitivity.dy_dq")[row], want.dy_dq, 1e-12)
        assert_close(out.signal("sensitivity.dy_dqd")[row], want.dy_dqd, 1e-12)
    model = sim.linearize(bd)
    assert_close(out.signal("sensitivity.dy_dq")[0], model.A[2:4, :2], 1e-7)
    assert_close(out.signal("variation.dx_dx0")[-1].reshape(4, 4), differences(way), 1e-6)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_wrench_in_the_links_axes_turns_with_it_as_before(engine):
    sim = cs.Simulation(engine=engine, live=False)
    bd = sim.blockdiagram()
    plant = HybridDynamics(ARM, q0=START, wrench=True, bd=bd)
    sensitivity = Sensitivity(ARM, wrench=True, name="sensitivity", bd=bd)
    load, torques = Wrench(ARM, "forearm", load="force", point=TIP, bd=bd), bd.CONSTANT(TORQUES)
    bd.connect(bd.CONSTANT(WEIGHT), load)
    bd.connect(torques, plant[0], sensitivity[2])
    bd.connect(load, plant[1], sensitivity[3])
    bd.connect(plant[0:2], sensitivity[0:2])
    for port in range(3):
        bd.connect(sensitivity[port], bd.NULL())
    found = sim.run(bd, 0.1, watch=["sensitivity"]).signal("sensitivity.dy_dq")[0]
    turning = cs.Load("forearm", WEIGHT, point=TIP, frame="link")
    assert_close(found, ARM.hybrid_sensitivity(START, [0, 0], TORQUES, wrench=turning).dy_dq, 1e-12)


@pytest.mark.slow
def test_by_way_of_a_block_of_the_users_own():
    """What is linear keeps the direction in space, in NumPy; the compiled engine says which blocks it follows."""
    sim = cs.Simulation(live=False)
    bd = sim.blockdiagram()
    plant = HybridDynamics(ARM, q0=START, wrench=True, bd=bd)
    sensitivity = Sensitivity(ARM, wrench=True, name="sensitivity", bd=bd)
    load, torques = Wrench(ARM, "forearm", "base", TIP, "force", bd=bd), bd.CONSTANT(TORQUES)
    twice = bd.FUNCTION(lambda w: 2.0 * w)
    bd.connect(bd.CONSTANT(WEIGHT), load[0])
    bd.connect(plant[0], load[1])
    bd.connect(load, twice)
    bd.connect(torques, plant[0], sensitivity[2])
    bd.connect(twice, plant[1], sensitivity[3])
    bd.connect(plant[0:2], sensitivity[0:2])
    for port in range(3):
        bd.connect(sensitivity[port], bd.NULL())
    with contextlib.redirect_stderr(io.StringIO()):
        found = sim.run(bd, 0.1, watch=["sensitivity"]).signal("sensitivity.dy_dq")[0]
    twofold = cs.Load("forearm", 2.0 * WEIGHT, point=TIP)
    assert_close(found, ARM.hybrid_sensitivity(START, [0, 0], TORQUES, wrench=twofold).dy_dq, 1e-12)


def test_on_a_plain_bdsim():
    with contextlib.redirect_stdout(io.StringIO()):
        sim = bdsim.BDSim(sysargs=False, graphics=False, quiet=True, progress=False, banner=False)
        bd, _ = diagram(sim, "sum")
        bd.compile()
        out = sim.run(bd, T=0.1, solver_args={"rtol": 1e-9, "atol": 1e-11})
    mine = cs.Simulation(engine="compiled", live=False)
    here, _ = diagram(mine, "sum")
    assert_close(out.x[-1], mine.run(here, 0.1, rtol=1e-10, atol=1e-12).x[-1], 1e-7)


@pytest.mark.slow
def test_gradients_and_jacobians_of_a_plant_under_a_load_agree():
    """∂q(T)/∂q0 along a run: by the gradient of the diagram, and by VARIATION beside the plant."""
    sim = cs.Simulation(live=False)
    bd, _ = diagram(sim, "wrench")
    out = sim.run(bd, 0.4, rtol=1e-10, atol=1e-12, watch=["variation"])
    found = sim.gradient(bd, lambda out: out.x[-1, 0], ["plant.q0[0]", "plant.q0[1]"], T=0.4, rtol=1e-10, atol=1e-12)
    assert_close(np.ravel(found.gradient), out.signal("variation.dx_dx0")[-1].reshape(4, 4)[0, :2], 1e-6)
