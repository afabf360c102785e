"""INTEGRATOR with limits, stepped from outside: its state stays within them, and leaves them as in a run."""

from __future__ import annotations

import numpy as np
import pytest

import cstormpy as cs
from cstormpy.errors import DiagramError


def wound(bd, u=2.0, low=-0.3, high=0.4):
    """Return a second state that adds up what an integrator with limits gives, which an input pushes to them."""
    push = bd.CONSTANT(u, name="push")
    full, total = bd.INTEGRATOR(x0=0.0, min=low, max=high, gain=1.5, name="full"), bd.INTEGRATOR(name="total")
    bd.connect(push, full)
    bd.connect(full, total)
    return bd


def by_hand(steps, x=0.0, total=0.0, low=-0.3, high=0.4):
    """Return the states after inputs, each held for a time: the integral of a ramp up to a limit, and of the limit."""
    for u, dt in steps:
        rate = 1.5 * u
        room = (high - x) / rate if rate > 0 else (low - x) / rate if rate < 0 else np.inf
        moving = min(dt, room)
        total += x * moving + 0.5 * rate * moving**2 + (x + rate * moving) * (dt - moving)
        x += rate * moving
    return np.array([x, total])


@pytest.fixture
def sim():
    return cs.Simulation(engine="compiled", live=False, progress=False)


def test_states_are_those_by_hand_and_of_a_run(sim):
    """They were refused. Where a limit is reached within a step it is met at its end: an error of second order."""
    rng = np.random.default_rng(1)
    steps = [(float(u), 0.2) for u in rng.uniform(-3, 3, 40)]
    one = sim.stepper(wound(sim.blockdiagram()), ["push"], ["full", "total"], substeps=40)
    many = sim.batch_stepper(wound(sim.blockdiagram()), ["push"], ["full", "total"], count=9, substeps=40)
    met = 0
    for u, dt in steps:
        y, rows = one.step([u], dt), many.step(np.full((9, 1), u), dt)
        assert -0.3 <= y[0] <= 0.4
        met += y[0] in (-0.3, 0.4)
        np.testing.assert_allclose(rows, np.tile(y, (9, 1)), rtol=0, atol=1e-12)
    assert met > 5
    np.testing.assert_allclose(y, by_hand(steps), rtol=0, atol=1e-4)

    def error(substeps):
        stepper = sim.stepper(wound(sim.blockdiagram()), ["push"], ["full", "total"], substeps=substeps)
        for u, dt in steps:
            y = stepper.step([u], dt)
        return abs(y - by_hand(steps)).max()

    assert error(400) < 1e-2 * error(20)  # of second order
    out = sim.run(wound(sim.blockdiagram()), T=1.0)
    stepper = sim.stepper(wound(sim.blockdiagram()), ["push"], ["full", "total"], substeps=1000)
    np.testing.assert_allclose(stepper.step([2.0], 1.0), out.x[-1], rtol=0, atol=1e-6)


@pytest.mark.parametrize("solver", ["Euler", "RK4"])
@pytest.mark.parametrize("room", [0.5, 0.9, 0.999999, 1.0])
def test_a_limit_within_a_step_is_reached_by_its_end(sim, solver, room):
    """Rates were zero in the stages beyond it, so that of a step that ends at the limit a sixth was missing."""
    made = wound(sim.blockdiagram(), low=-1.5 * room * 0.1, high=1.5 * room * 0.1)
    one = sim.stepper(made, ["push"], ["full"], solver=solver)
    many = sim.batch_stepper(made, ["push"], ["full"], count=2, solver=solver)
    for sign in (1.0, -1.0):
        for stepper, u in ((one, [sign]), (many, [[sign], [sign]])):
            stepper.reset()
            np.testing.assert_allclose(np.ravel(stepper.step(u, 0.1))[0], sign * 1.5 * room * 0.1, rtol=1e-14)


def test_limits_that_are_taken_away(sim):
    """The stepper died of an AttributeError; limits that come later are refused, as they change the equations."""
    made = wound(sim.blockdiagram())
    one, many = sim.stepper(made, ["push"], ["full"]), sim.batch_stepper(made, ["push"], ["full"], count=2)
    made["full"].min = made["full"].max = None
    for stepper, u in ((one, [2.0]), (many, [[2.0], [2.0]])):
        stepper.reset()
        np.testing.assert_allclose(np.ravel(stepper.step(u, 1.0))[0], 3.0, rtol=1e-14)
    made = wound(sim.blockdiagram(), low=None, high=None)
    one = sim.stepper(made, ["push"], ["full"])
    made["full"].max = 0.1
    with pytest.raises(DiagramError, match="set to one of another form"):
        one.reset()


def test_a_run_between_that_ends_at_a_limit_holds_no_stepper(sim):
    """What a run keeps with the block, at which limit it is held, says nothing of a stepper."""
    made = wound(sim.blockdiagram())
    one = sim.stepper(made, ["push"], ["full"])
    sim.run(made, T=1.0)
    one.reset()
    np.testing.assert_allclose(one.step([0.5], 0.1), 0.075, rtol=1e-13)


def test_a_start_beyond_a_limit_is_at_it(sim):
    bd = wound(sim.blockdiagram())
    one, many = sim.stepper(bd, ["push"], ["full"]), sim.batch_stepper(bd, ["push"], ["full"], count=2)
    for stepper in (one, many):
        np.testing.assert_array_equal(np.ravel(stepper.reset([2.0, 0.0]))[0], 0.4)
        np.testing.assert_array_equal(np.atleast_2d(stepper.x)[0], [0.4, 0.0])


def test_limits_of_several_states_and_on_one_side(sim):
    """At its limit a state feeds others exactly it, in all stages of a step; limits that are set later are taken up."""
    bd = sim.blockdiagram()
    push = bd.CONSTANT([1.0, -2.0, 3.0], name="push")
    full = bd.INTEGRATOR(x0=[0.0, 0.0, 0.2], min=[-np.inf, -0.1, 0.0], max=[0.3, np.inf, np.inf], name="full")
    total = bd.INTEGRATOR(x0=[0.0, 0.0, 0.0], name="total")
    bd.connect(push, full)
    bd.connect(full, total)
    stepper = sim.stepper(bd, ["push"], ["full"])
    stepper.reset({"full": [0.3, -0.1, 0.2]})
    for dt in (0.1, 0.4):
        y = stepper.step([1.0, -2.0, 3.0], dt)
    np.testing.assert_allclose(y, [0.3, -0.1, 1.7], rtol=1e-14)
    np.testing.assert_allclose(stepper.x[3:], [0.15, -0.05, 0.2 * 0.5 + 1.5 * 0.25], rtol=1e-13)
    full.max[0] = 0.2
    np.testing.assert_array_equal(stepper.reset(stepper.state)[:1], 0.2)


def test_a_limit_that_a_state_beside_others_gets_later(sim):
    """It held from the first step on, and not at the reset that takes it up."""
    bd = sim.blockdiagram()
    full = bd.INTEGRATOR(x0=[0.0, 0.0], max=[0.3, np.inf], name="full")
    bd.connect(bd.CONSTANT([1.0, 1.0], name="push"), full)
    one, many = sim.stepper(bd, ["push"], ["full"]), sim.batch_stepper(bd, ["push"], ["full"], count=2)
    full.max = [0.3, 0.5]
    for stepper in (one, many):
        stepper.reset([0.2, 0.9])
        np.testing.assert_array_equal(np.atleast_2d(stepper.x)[0], [0.2, 0.5])


@pytest.mark.parametrize("ticks", [0.05, 0.013])
def test_a_sampled_loop_with_a_limit(sim, ticks):
    """A motor whose current has a limit, held by a sampled proportional law, as a run has it."""

    def made():
        bd = sim.blockdiagram()
        wanted = bd.CONSTANT(1.0, name="wanted")
        error, held = bd.SUM("+-", name="error"), bd.ZOH(bd.clock(ticks), name="held")
        current = bd.INTEGRATOR(x0=0.0, max=0.5, min=-0.5, gain=4.0, name="current")
        speed, angle = bd.LTI_SISO(1.0, [1.0, 1.0], name="speed"), bd.INTEGRATOR(name="angle")
        bd.connect(wanted, error[0])
        bd.connect(angle, error[1])
        bd.connect(error, held)
        bd.connect(held, current)
        bd.connect(current, speed)
        bd.connect(speed, angle)
        return bd

    out = sim.run(made(), T=10.0, rtol=1e-9, atol=1e-10)
    assert len(out.events) >= 2
    one = sim.stepper(made(), ["wanted"], ["angle"], substeps=200)
    many = sim.batch_stepper(made(), ["wanted"], ["angle"], count=2, substeps=200)
    for _ in range(100):
        y, rows = one.step([1.0], 0.1), many.step([[1.0], [1.0]], 0.1)
    np.testing.assert_allclose(one.x, out.x[-1], rtol=0, atol=1e-5)
    np.testing.assert_allclose(rows[:, 0], [y[0], y[0]], rtol=0, atol=1e-12)


def test_an_integrator_of_ones_own_is_stepped_as_it_runs(sim):
    """It keeps its limits itself where it has a rate of its own; what only shows its state otherwise leaves them be."""
    from bdsim.blocks.continuous import Integrator

    class Leaky(Integrator):
        def deriv(self, t, u, x):
            return np.array(u[0]) - x

    class Twice(Integrator):
        def output(self, t, u, x):
            return [2.0 * x[0]]

    for kind, ends in ((Leaky, 1.0 - np.exp(-1.0)), (Twice, 0.4)):
        bd = sim.blockdiagram()
        own = kind(max=0.4, name="own", bd=bd)
        bd.connect(bd.CONSTANT(1.0, name="push"), own)
        bd.connect(own, bd.NULL())
        stepper = sim.stepper(bd, ["push"], ["own"])
        for _ in range(100):
            stepper.step([1.0], 0.01)
        assert stepper.x[0] == pytest.approx(ends, abs=1e-9)
        assert sim.run(bd, T=1.0, rtol=1e-9, atol=1e-11).x[-1, 0] == pytest.approx(ends, abs=1e-8)
