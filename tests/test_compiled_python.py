"""Blocks of a compiled diagram that compute in Python: what they are given, what they say, and who interrupts them."""

from __future__ import annotations

import math
import os
import signal

import numpy as np
import pytest
from bdsim.components import FunctionBlock
from test_compiled import simulation

import cstormpy as cs
from cstormpy.graph import Node
from cstormpy.simulation.compiled import NotTranslated


class Told(FunctionBlock):
    """Draws its input back, by what no compiler knows, and does something else once it has been asked often enough."""

    nin = nout = 1

    def __init__(self, then=None, after=math.inf, **blockargs):
        super().__init__(**blockargs)
        self.gain, self.then, self.after = 1.0, then, after
        self.asked, self.kinds = 0, set()

    def output(self, t, u, x):
        self.asked += 1
        self.kinds.add((type(t), type(u[0]), np.shape(u[0])))
        if self.asked >= self.after:
            self.then(self)
        return [-self.gain * u[0] * float(str(1.0 + 0.5 * math.cos(t)))]


def drawn(sim, *told, x0=1.0):
    bd = sim.blockdiagram()
    state = bd.INTEGRATOR(x0=x0, name="state")
    back = Told(*told, bd=bd, name="back")
    bd.connect(state, back)
    bd.connect(back, state)
    return bd, back


@pytest.mark.parametrize("x0", [1.0, [1.0, -2.0]], ids=["number", "vector"])
def test_a_block_that_computes_in_python_joins(x0):
    """It is given what it is given in any engine, and the steps are the same to the last bit."""
    runs, kinds = [], []
    for engine in ("interpreted", "compiled"):
        bd, back = drawn(simulation(engine), x0=x0)
        runs.append(bd.runtime.run(bd, T=2.0, watch=["back"]))
        kinds.append(back.kinds)
    np.testing.assert_array_equal(runs[1].x, runs[0].x)
    np.testing.assert_array_equal(runs[1].signal("back"), runs[0].signal("back"))
    asked = {kind for kind in kinds[1] if not issubclass(kind[0], Node)}  # once with symbols, in vain
    assert asked and asked <= kinds[0]
    np.testing.assert_allclose(runs[1].x[-1], np.array(x0) * math.exp(-2.0 - 0.5 * math.sin(2.0)), rtol=1e-6)


def test_its_numbers_may_change_between_runs():
    bd, back = drawn(simulation())
    sim = bd.runtime
    slow = sim.run(bd, T=1.0).x[-1, 0]
    back.gain = 2.0
    np.testing.assert_allclose(sim.run(bd, T=1.0).x[-1, 0], slow**2, rtol=1e-6)


def test_its_derivative_is_a_difference_and_that_is_said():
    bd, _ = drawn(simulation(), x0=[1.0, 2.0])
    found = bd.runtime.linearize(bd)
    np.testing.assert_allclose(found.A, -1.5 * np.eye(2), atol=1e-8)
    assert found.differenced == (("back", "output in Python"),)
    slope = bd.runtime.gradient(bd, "state:x_1", ["state:x_0", "state:x_1"], T=1.0, solver="RK4", dt=0.01)
    np.testing.assert_allclose(slope.gradient, [0.0, math.exp(-1.0 - 0.5 * math.sin(1.0))], rtol=1e-7, atol=1e-9)


def test_what_it_raises_is_what_is_said():
    def fail(block):
        raise ValueError("out of oil")

    bd, _ = drawn(simulation(), fail, 200)
    out = bd.runtime.run(bd, T=5.0)
    assert out.status == "failed" and len(out.t) > 10
    assert "block 'back' (TOLD), output at t = " in out.message and "ValueError: out of oil" in out.message


def test_ctrl_c_within_it_ends_the_run_and_keeps_what_was_simulated():
    def interrupt(block):
        block.after = math.inf
        os.kill(os.getpid(), signal.SIGINT)

    bd, _ = drawn(simulation(), interrupt, 700)
    out = bd.runtime.run(bd, T=1000.0, max_step=0.01)
    assert out.status == "interrupted" and 50 < len(out.t) < 200
    np.testing.assert_allclose(out.x[-1, 0], math.exp(-out.t[-1] - 0.5 * math.sin(out.t[-1])), rtol=1e-5)


def test_in_a_sweep_each_thread_asks_its_own():
    sweep = simulation().sweep(
        lambda sim: drawn(sim)[0], {"state:x_0": [0.5, 1.0, 2.0, 4.0]}, lambda out: out.x[-1, 0], T=1.0, workers=2
    )
    np.testing.assert_allclose(sweep.value, np.array([0.5, 1.0, 2.0, 4.0]) * sweep.value[1], rtol=1e-5)


class Texts(Told):
    def output(self, t, u, x):
        return ["text"]


def test_what_is_no_number_is_not_translated():
    sim = simulation()
    bd = sim.blockdiagram()
    state = bd.INTEGRATOR(x0=1.0)
    bd.connect(state, block := Texts(bd=bd, name="texts"), gain := bd.GAIN(-1.0))
    bd.connect(gain, state)
    bd.connect(block, bd.NULL())
    with pytest.raises(NotTranslated, match=r"texts: output 0 carries a str"):
        sim.run(bd, T=0.1)


@pytest.mark.slow
def test_inverse_kinematics_follows_in_both_engines():
    """A tip that is led along a circle: the answers depend on the times visited, which are the same."""
    mech, start = cs.library.planar_2r(), np.array([0.3, 0.9])
    pose, runs = mech.forward_kinematics(start)[-1], []
    for engine in ("interpreted", "compiled"):
        sim = simulation(engine)
        bd = sim.blockdiagram()

        def target(t):
            moved = pose.copy()
            moved[0, 3] -= 0.2 * math.sin(t)
            return moved

        leads, search = bd.FUNCTION(target, name="leads"), bd.IKINE(mech, q0=start, mask="position", tool=[0.5, 0, 0])
        motor = bd.INTEGRATOR(x0=start, name="motor")
        lag = bd.SUM("+-")
        bd.connect(bd.TIME(), leads)
        bd.connect(leads, search)
        bd.connect(search[0], lag[0])
        bd.connect(motor, lag[1])
        bd.connect(lag, motor)
        bd.connect(search[1], bd.NULL())
        runs.append(sim.run(bd, T=2.0))
    np.testing.assert_array_equal(runs[1].t, runs[0].t)
    np.testing.assert_allclose(runs[1].x, runs[0].x, rtol=0, atol=1e-12)
    assert abs(runs[0].x[-1] - start).max() > 0.05
