"""Bodies that turn round and round, stepped from outside: their rotation vectors stay short, as in a run."""

from __future__ import annotations

import numpy as np
import pytest

import cstormpy as cs

DT, STEPS = 0.02, 150


def satellite(kind="free"):
    """Return a body that tumbles, on a ball or free, with an arm."""
    joint = cs.Free(name="root") if kind == "free" else cs.Spherical(point=(0.1, 0.0, 0.2), damping=0.02, name="root")
    return cs.Mechanism(
        [
            cs.Link("hull", None, joint, None, 2.0, (0, 0, 0.1), (0.2, 0.3, 0.4)),
            cs.Link("arm", "hull", cs.Revolute((1, 0, 0)), (0.5, 0, 0), 0.5, (0, 0.3, 0), (0.02, 0.01, 0.02)),
        ],
        gravity=(0, 0, -1.0),
    )


def tumbling(bd, mech, ticks=None):
    """Wire a motor of the arm, held at ticks of a clock if there is one, and return the plant."""
    qd0 = np.linspace(1.0, 6.0, mech.n)
    plant = bd.HYBRIDDYNAMICS(mech, qd0=qd0, name="plant")
    push = bd.CONSTANT(np.zeros(mech.n), name="push")
    if ticks is None:
        bd.connect(push, plant.tau)
    else:
        held = bd.ZOH(bd.clock(ticks), x0=np.zeros(mech.n), name="held")
        bd.connect(push, held)
        bd.connect(held, plant.tau)
    return plant


def pose_and_twist(mech, x):
    """Return what does not depend on which vector tells of the turn."""
    q, qd = x[: mech.n], x[mech.n :]
    return mech.forward_kinematics(q)[-1], mech.jacobian(q, mech.links[-1].name) @ qd


def assert_same_motion(mech, got, want, tol):
    for a, b in zip(pose_and_twist(mech, got), pose_and_twist(mech, want), strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=tol)


@pytest.mark.parametrize("ticks", [None, 0.07])
@pytest.mark.parametrize("kind", ["free", "ball"])
def test_steps_are_those_of_a_run(kind, ticks):
    """They were refused: the plant "locates events". Vectors stay shorter than a turn however often it turns."""
    sim, mech = cs.Simulation(live=False, progress=False), satellite(kind)

    def made():
        bd = sim.blockdiagram()
        tumbling(bd, mech, ticks)
        return bd

    out = sim.run(made(), T=DT * STEPS, rtol=1e-10, atol=1e-11)
    assert sum("shorter" in str(event.what) for event in out.events) >= 2
    one = sim.stepper(made(), ["push"], ["plant.q"], substeps=20)
    many = sim.batch_stepper(made(), ["push"], ["plant.q"], count=3, substeps=20)
    turn, u = slice(mech.n - 4, mech.n - 1), np.zeros(mech.n)
    for _ in range(STEPS):
        y, rows = one.step(u, DT), many.step(np.tile(u, (3, 1)), DT)
        assert np.linalg.norm(y[turn]) < 3.3
        np.testing.assert_array_equal(y, one.x[: mech.n])
        np.testing.assert_allclose(rows, np.tile(y, (3, 1)), rtol=0, atol=1e-11)
    for x in (one.x, *many.x):
        assert_same_motion(mech, x, out.x[-1], 1e-6)
    saved = one.state
    one.step(u, DT)
    again = one.x.copy()
    one.reset(saved)
    one.step(u, DT)
    np.testing.assert_array_equal(one.x, again)


def test_a_start_beyond_half_a_turn_is_told_by_the_shorter_vector():
    """As a run does; a step of several turns is as wrong as any step that is too long, but no vector is."""
    sim, mech = cs.Simulation(live=False, progress=False), satellite()
    bd = sim.blockdiagram()
    tumbling(bd, mech)
    one = sim.stepper(bd, ["push"], ["plant.q"])
    many = sim.batch_stepper(bd, ["push"], ["plant.q"], count=2)
    x = np.zeros(2 * mech.n)
    x[[3, mech.n + 3]] = 4.0, 1.0
    for stepper in (one, many):
        y = np.atleast_2d(stepper.reset(x))
        np.testing.assert_allclose(y[:, 3], 4.0 - 2.0 * np.pi, rtol=1e-14)
        np.testing.assert_allclose(np.atleast_2d(stepper.x)[:, mech.n + 3], 1.0, rtol=1e-14)
    assert_same_motion(mech, one.x, x, 1e-12)


@pytest.mark.parametrize("count", [3, 8, 21])
def test_rows_that_start_beyond_half_a_turn_are_as_one_copy(count):
    """Many are settled by machine code, some by Python, and some of them at a time."""
    sim, mech, rng = cs.Simulation(live=False, progress=False), satellite(), np.random.default_rng(1)
    bd = sim.blockdiagram()
    tumbling(bd, mech)
    one, many = sim.stepper(bd, ["push"], ["plant.q"]), sim.batch_stepper(bd, ["push"], ["plant.q"], count=count)
    x = rng.uniform(-3.0, 3.0, (count, 2 * mech.n))
    x[0, 3:6], x[1, 3:6], want = 2.0, 0.1, []
    for row in x:
        one.reset(row)
        want.append(one.x)
    assert (np.array(want) != x).any(axis=1)[:2].tolist() == [True, False]
    many.reset(x)
    np.testing.assert_allclose(many.x, want, rtol=1e-13, atol=1e-14)
    some = np.arange(count) % 2 == 0
    many.reset(x[some][::-1], where=some)
    np.testing.assert_allclose(many.x[some], np.array(want)[some][::-1], rtol=1e-13, atol=1e-14)


def test_a_step_of_more_than_a_turn_says_what_helps():
    """At 400 rad/s a step of 0.05 s is three turns, over which no vector can be followed."""
    sim, mech = cs.Simulation(live=False, progress=False), satellite("ball")
    bd = sim.blockdiagram()
    tumbling(bd, mech)
    x = np.array([0.0, 0, 0, 0, 400.0, 0, 0, 0])
    for stepper, u in (
        (sim.stepper(bd, ["push"], ["plant.q"], x=x), np.zeros(4)),
        (sim.batch_stepper(bd, ["push"], ["plant.q"], count=2, x=x), np.zeros((2, 4))),
    ):
        with pytest.raises(cs.BlockError, match=r"fails .*at t = .*; shorter steps help .* substeps="):
            stepper.step(u, 0.05)
        np.testing.assert_array_equal(np.atleast_2d(stepper.x)[0], x)


def test_what_else_a_plant_locates_is_refused():
    sim, mech = cs.Simulation(live=False, progress=False), satellite("ball")
    bd = sim.blockdiagram()
    drives = {"free": {}, "held": {"locked": ["arm"]}}
    plant = bd.HYBRIDDYNAMICS(mech, drives=drives, select=True, name="plant")
    bd.connect(bd.CONSTANT(1.0), plant.select)
    bd.connect(bd.CONSTANT(np.zeros(mech.n), name="push"), plant.tau)
    with pytest.raises(cs.DiagramError, match="'plant' locates events; only a run handles located events"):
        sim.stepper(bd, ["push"], ["plant.q"])
