"""Control of closed mechanisms: regulators, along motions too, of the joints that loops leave free."""

from __future__ import annotations

import numpy as np
import pytest
from closeness import assert_close
from scipy.linalg import solve_continuous_are

import cstormpy as cs
from cstormpy import control
from cstormpy.control.lqr import regulator as regulator_of
from cstormpy.errors import InvalidValue
from cstormpy.mechanism import library
from cstormpy.optimal import Effort, Problem


@pytest.mark.slow
def test_laws_of_a_closed_mechanism_hold_it():
    """They divided by zero, or spoke of shapes and of Riccati equations without solution."""
    mech = library.four_bar()
    q, _ = mech.project([1.0, -1.8, -2.0])
    rest = np.zeros(3)
    hold = mech.inverse_dynamics(q, rest, rest)[:1]
    assert_close(control.GravityCompensation(mech)(0.0, q, rest), hold, 1e-12)
    assert_close(control.PD(mech, 8.0, 2.0, [1.5], compensate=True)(0.0, q, rest), hold + 8.0 * (1.5 - q[:1]), 1e-12)
    assert_close(control.PD(mech, 8.0, 2.0, [1.5])(0.0, q, rest), 8.0 * (1.5 - q[:1]), 1e-12)
    with pytest.raises(InvalidValue, match=r"TVLQR: motion: loop pin: .* is open by 0\.1"):
        control.TVLQR(mech, lambda t: (q + 0.1, rest, rest), t0=0.0, t1=1.0)
    regulator = control.LQR(mech, q)
    still = control.TVLQR(mech, lambda t: (q, rest, rest), t0=0.0, t1=1.0, final=regulator)
    assert_close(still.K, np.broadcast_to(regulator.K, still.K.shape), 1e-8)
    # what takes over may count its error in other joints than the law would choose along the motion
    model = mech.linearize(q, tau=regulator.hold, independent=["rocker"])
    regulator.states, regulator.S = model.states, regulator_of(model.A, model.B, np.eye(2), np.eye(1), model.states)[0]
    other = control.TVLQR(mech, lambda t: (q, rest, rest), t0=0.0, t1=1.0, Q=1.0, final=regulator)
    assert_close(other.S, np.broadcast_to(regulator.S, other.S.shape), 1e-8)
    for goal, words in (
        (None, "loop 'pin': the highest closed posture"),
        (q + 0.1, "goal: loop pin: .* misses closure"),
    ):
        with pytest.raises(InvalidValue, match=f"LQR: {words}.*mech.trim"):
            control.LQR(mech, goal)


@pytest.mark.parametrize("engine", [pytest.param("interpreted", marks=pytest.mark.slow), "compiled"])
@pytest.mark.parametrize(
    "name",
    ["four_bar", "slider_crank", "five_bar", pytest.param("five_bar with one motor", marks=pytest.mark.slow)],
)
def test_a_regulator_holds_a_closed_mechanism(name, engine):
    """It was refused. The poles of the linearized diagram, in states that it chooses itself, are those of A - B K."""
    mech = getattr(library, name.split()[0])()
    if "one" in name:
        mech = mech.with_drive(actuated=["left_shoulder"])
    goal = mech.trim(mech.project(np.array([1.0, -1.8, -2.0, 2.0][: mech.n]))[0], hold=mech.actuated[:1]).q
    law = control.LQR(mech, goal, R=0.5)
    sim = cs.Simulation(engine=engine, live=False, progress=False)
    bd = sim.blockdiagram()
    plant, made = bd.HYBRIDDYNAMICS(mech, q0=goal, name="plant"), bd.CONTROLLER(mech, law)
    bd.connect(plant[0:2], made[0:2])
    bd.connect(made.tau, plant.tau)
    poles = np.sort_complex(sim.linearize(bd).poles)
    expected = np.sort_complex(np.linalg.eigvals(law.A - law.B @ law.K))
    assert len(poles) == len(law.A) and poles.real.max() < 0.0
    assert_close(poles, expected, 1e-9)
    plant.q0 = mech.project(goal + 0.05 * np.sin(np.arange(mech.n)))[0]
    out = sim.run(bd, T=40.0 if "one" in name else 10.0)
    assert_close(out.x[-1], np.concatenate([goal, 0 * goal]), 1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("engine", [pytest.param("interpreted", marks=pytest.mark.slow), "compiled"])
@pytest.mark.parametrize("name", ["four_bar", pytest.param("five_bar", marks=pytest.mark.slow)])
def test_the_cost_to_go_along_a_closed_motion_is_what_the_run_pays(name, engine):
    """It was refused. For small errors V(0) = ∫ eᵀ Q e + uᵀ R u dt + V(T), u being what the feedback adds."""
    mech = getattr(library, name)(damping=0.02)
    mech = mech.with_drive(actuated=mech.actuated)
    corners = {
        "four_bar": ([0.5, 0.0, 1.5], [2.0, 0.0, 1.5]),
        "five_bar": ([2.0, -1.0, 1.1, 1.0], [1.6, -1.2, 0.7, 1.2]),
    }
    start, end = (mech.project(q, hold=mech.actuated[:1])[0] for q in corners[name])
    asked = Problem(mech, duration=1.0, start=start, end=end, objective=Effort(), points=10)
    law = control.TVLQR(mech, asked.solve(progress=False).motion, R=0.5)
    assert law.K.shape[1:] == (len(mech.actuated), 2 * (mech.n - 2))

    q0, _ = mech.project(start + 0.01 * np.cos(np.arange(mech.n)))
    sim = cs.Simulation(engine=engine, live=False, progress=False)
    bd = sim.blockdiagram()
    plant, made = bd.HYBRIDDYNAMICS(mech, q0=q0, name="plant"), bd.CONTROLLER(mech, law)
    bd.connect(plant[0:2], made[0:2])
    bd.connect(made.tau, plant.tau)
    out = sim.run(bd, T=1.0, dt=0.002, rtol=1e-9, atol=1e-12)
    assert_close(out.t, law.times, 1e-12)
    e = np.array([law.error(t, *np.split(x, 2)) for t, x in zip(out.t, out.x, strict=True)])
    u = -np.einsum("sij,sj->si", law.K, e)
    running = np.einsum("si,ij,sj->s", e, law.Q, e) + np.einsum("si,ij,sj->s", u, law.R, u)
    left = law.value(1.0, *np.split(out.x[-1], 2))
    assert left < 0.1 * law.value(0.0, *np.split(out.x[0], 2))
    assert np.trapezoid(running, out.t) + left == pytest.approx(law.value(0.0, *np.split(out.x[0], 2)), rel=0.02)


def test_a_joint_with_limits_or_coupled_is_elsewhere_after_a_turn():
    """A rack came to rest a turn of its pinion beside the goal, and a joint pushed against its stop for ever."""
    rack = cs.Link("rack", None, cs.Prismatic((1, 0, 0)), mass=2.0, inertia=(0.01,) * 3)
    pinion = cs.Link("pinion", "rack", cs.Revolute((0, 0, 1)), mass=0.5, inertia=(0.01,) * 3)
    mech = cs.Mechanism([rack, pinion], loops=[cs.Coupling("rack", "pinion", 0.1)], actuated=["pinion"])
    law, still = control.LQR(mech, [0.0, 0.0]), np.zeros(2)
    assert law.states[0] == "pinion"
    assert_close(law.error(np.array([1.0, 10.0]), still), [10.0, 0.0], 1e-12)
    follow = control.TVLQR(mech, lambda t: (still, still, still), t0=0.0, t1=0.1, final=law)
    assert_close(follow.error(0.05, np.array([1.0, 10.0]), still), [10.0, 0.0], 1e-12)

    limits = cs.Limits(position=(-2.8, 2.8))
    arm = cs.Mechanism([pinion.replace(parent=None, joint=cs.Revolute((0, 0, 1), limits=limits))])
    assert_close(control.LQR(arm, [2.5]).error(np.array([-2.5]), np.zeros(1)), [-5.0, 0.0], 1e-12)


def test_what_takes_over_at_the_end_is_told_in_the_joints_of_the_motion():
    """Where the rocker turns back, the crank tells the posture; at the end the rocker would, if it were asked alone."""
    mech = cs.library.four_bar().with_drive(actuated=["rocker"])
    turning, rest = np.array([2.58252593, -3.07504558, -2.68786511]), np.zeros(3)

    def motion(t):
        q = turning
        for _ in range(8):
            q, _ = mech.project([turning[0] + 0.6 * t * t, *q[1:]], rest)
        return q, rest, rest

    law = control.TVLQR(mech, motion, t0=0.0, t1=1.0, misfit=10.0, steps=4)
    end = motion(1.0)[0]
    hold = mech.inverse_dynamics(end, 0.0 * end, 0.0 * end)[mech.actuated_mask]
    passive = mech.with_drive(active=())
    assert law.states[0] == "crank" and passive.linearize(end, 0.0 * end, hold).states[0] == "rocker"
    model = passive.linearize(end, 0.0 * end, hold, independent=["crank"])
    np.testing.assert_allclose(law.final, solve_continuous_are(model.A, model.B, law.Q, law.R), rtol=1e-6)
