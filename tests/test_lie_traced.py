"""The functions of SE(3) of symbols: as on floats, with derivatives as differences, also where the angle is zero."""

import numpy as np
import pytest
from test_graph_look_ups import check

import cstormpy as cs
from cstormpy import lie

RNG = np.random.default_rng(7)
TURNS = np.vstack([RNG.normal(size=(5, 3)), 1e-5 * RNG.normal(size=(2, 3)), np.zeros((1, 3))])
TWISTS = np.hstack([TURNS, RNG.normal(size=(8, 3))])
#: Of a twist x (6).
FUNCTIONS = {
    "exp_so3": lambda x: lie.exp_so3(x[:3]),
    "exp_se3": lie.exp_se3,
    "log_so3": lambda x: lie.log_so3(lie.exp_so3(x[:3])),
    "log_so3 beyond a half turn": lambda x: lie.log_so3(lie.exp_so3(x[:3] + np.array([3.0, 0.0, 2.0]))),
    "log_se3": lambda x: lie.log_se3(lie.exp_se3(x)),
    "Ad": lambda x: lie.Ad(lie.exp_se3(x)),
    "Ad of a vector": lambda x: lie.Ad(lie.exp_se3(x), x),
    "Ad_star of a vector": lambda x: lie.Ad_star(lie.exp_se3(x), x),
    "ad": lambda x: lie.ad(x) @ x[::-1] + lie.ad_star(x, x[::-1]),
    "inverse": lambda x: lie.inverse(lie.exp_se3(x)),
    "make_pose": lambda x: lie.make_pose(lie.exp_so3(x[:3]), x[3:]),
    "hat and vee": lambda x: lie.vee6(lie.hat6(x)) + lie.vee6_star(lie.hat6_star(x)),
    "bracket": lambda x: lie.bracket(lie.hat3(x[:3]), lie.hat3(x[3:])),
    "dexp_so3": lambda x: lie.dexp_so3(x[:3], "right"),
    "dexp_inv_so3": lambda x: lie.dexp_inv_so3(x[:3]),
    "dexp_se3": lie.dexp_se3,
    "dexp_inv_se3": lie.dexp_inv_se3,
    "transforms": lambda x: lie.transform_wrench(lie.exp_se3(x), x) + lie.transform_twist(lie.exp_se3(x), x),
    "velocities": lambda x: lie.world_velocity(lie.exp_se3(x), lie.exp_se3(x) @ lie.hat6(x[::-1])),
    "inertia": lambda x: lie.spatial_inertia(2.0, x[3:], np.diag([0.4, 0.5, 0.6])) @ x,
    "inertia of turned axes": lambda x: lie.spatial_inertia(2.0, [1.0, 2.0, 3.0], np.eye(3), lie.exp_so3(x[:3])) @ x,
    "kinetic_energy": lambda x: np.array([lie.kinetic_energy(lie.spatial_inertia(2.0, x[3:], np.eye(3)), x)]),
    "rates": lambda x: lie.twist_rate(x, x[::-1], 2.0 * x) + lie.wrench_rate(x, x[::-1], 2.0 * x),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_symbols_are_taken_as_floats_are(name):
    check(FUNCTIONS[name], 6, TWISTS, tolerance=1e-12, h=1e-4, slack=1e-6)


GOAL = lie.exp_so3([0.4, -0.2, 0.3])


def bearing(t, q, qd):
    """Turn a ball to a goal by the rotation that is left, as an impedance does."""
    return 4.0 * lie.log_so3(lie.exp_so3(q).T @ GOAL) - 1.0 * qd


def bent(t, q, qd):
    return lie.log_so3((1.0 + max(t - 0.1, 0.0)) * np.eye(3)) - qd


def turning(sim, law):
    body = cs.Link("body", None, cs.Spherical(name="ball"), mass=1.0, inertia=(0.1, 0.2, 0.25))
    mech = cs.Mechanism([body], gravity=(0, 0, 0))
    bd = sim.blockdiagram()
    plant = bd.HYBRIDDYNAMICS(mech, q0=[-0.5, 0.3, 0.2], name="plant")
    controller = bd.CONTROLLER(mech, law, name="controller")
    bd.connect(plant[0:2], controller[0:2])
    bd.connect(controller.tau, plant.tau)
    return bd


def test_a_law_that_asks_for_the_rotation_that_is_left_is_traced():
    """It was asked in Python at each evaluation, and its derivatives were differences."""
    ends = []
    for engine in ("interpreted", "compiled"):
        sim = cs.Simulation(live=False, engine=engine)
        bd = turning(sim, bearing)
        assert sim.explain(bd).splitlines()[-1].split(maxsplit=1) == ["controller", "output: traced"]
        ends.append(sim.run(bd, T=2.0).x[-1])
    np.testing.assert_allclose(*ends, atol=1e-8)
    model = sim.linearize(bd, [*lie.log_so3(GOAL), 0, 0, 0])
    assert np.isfinite(model.A).all() and model.poles.real.max() < 0.0


def test_what_is_refused_of_numbers_is_refused_in_machine_code_too():
    told = []
    for engine in ("interpreted", "compiled"):
        sim = cs.Simulation(live=False, engine=engine)
        out = sim.run(turning(sim, bent), T=1.0, solver="RK4", dt=0.01)
        told.append((out.status, out.message, out.t[-1]))
    assert told[0] == told[1] and told[0][0] == "failed" and "expected a rotation" in told[0][1]
