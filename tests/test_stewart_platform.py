"""The Stewart platform against closed forms: lengths of its legs, statics by the Jacobian of the legs, power."""

from __future__ import annotations

import numpy as np
import pytest
from closeness import assert_close, central_difference

import cstormpy as cs
from cstormpy import diagrams

RADII, SPREADS, HEIGHT, LENGTHS, MASSES = (0.6, 0.4), (0.2, 0.2), 0.8, (0.5, 0.5), (1.0, 0.5, 10.0)
G = np.array([0.0, 0.0, -9.81])
POSE = [0.05, -0.03, 0.1, 0.1, -0.2, 0.15]


def corners(radius, angles):
    return radius * np.stack([np.cos(angles), np.sin(angles), 0.0 * angles], axis=-1)


PAIRS = np.repeat(2 * np.pi / 3 * np.arange(3), 2)
SIDES = np.tile([-1.0, 1.0], 3)
FEET = corners(RADII[0], PAIRS + SIDES * SPREADS[0])
BALLS = corners(RADII[1], PAIRS + SIDES * (np.pi / 3 - SPREADS[1]))


def legs(mech, q):
    """Return lengths (6,) and directions (6, 3) of the legs, and the arms (6, 3) of their balls about the disc."""
    T = np.eye(4)
    T[2, 3] = HEIGHT
    T = T @ cs.Free().motion(q[:6])
    arms = BALLS @ T[:3, :3].T
    along = T[:3, 3] + arms - FEET
    lengths = np.linalg.norm(along, axis=1)
    return lengths, along / lengths[:, None], arms


@pytest.fixture(scope="module")
def posed():
    mech = cs.library.stewart_platform()
    q, _ = mech.project([*POSE, *np.zeros(18)], hold=["platform"])
    return mech, q


def extensions(mech, x):
    return x[[mech.names.index(f"leg{k}") for k in range(1, 7)]]


def test_the_legs_are_as_long_as_the_inverse_kinematics_in_closed_form_say(posed):
    mech, q = posed
    assert_close(mech.closure(np.zeros(24)), np.zeros(18), 1e-15)
    assert mech.mobility(q) == (6, 18, 18, ())
    assert_close(q[:6], POSE, 1e-15)
    home, _, _ = legs(mech, np.zeros(6))
    assert_close(extensions(mech, q), legs(mech, q)[0] - home, 1e-11)


@pytest.mark.slow
def test_the_motors_hold_the_platform_with_the_forces_of_the_jacobian_of_the_legs(posed):
    """Virtual work of six forces along the legs, of the disc's weight, and of those of barrels and rods."""
    mech, q = posed
    lengths, along, arms = legs(mech, q)
    J = np.concatenate([along, np.cross(arms, along)], axis=1)  # rates of the lengths from (v, ω) of the disc
    load = np.concatenate([MASSES[2] * G, np.zeros(3)])
    for k in range(6):
        ball = np.concatenate([np.eye(3), np.cross(np.eye(3), arms[k]).T], axis=1)  # its velocity from (v, ω)
        turning = (np.eye(3) - np.outer(along[k], along[k])) @ ball / lengths[k]
        rod = (lengths[k] - LENGTHS[1] / 2) * turning + np.outer(along[k], J[k])
        load += (MASSES[0] * LENGTHS[0] / 2 * turning + MASSES[1] * rod).T @ G
    wanted = np.linalg.solve(J.T, -load)
    still = np.zeros(24)
    assert_close(extensions(mech, np.asarray(mech.inverse_dynamics(q, still, still))), wanted, 1e-10)
    assert_close(mech.trim(q, hold=["platform"]).tau, wanted, 1e-9)


@pytest.mark.slow
def test_forward_after_inverse_is_the_identity_and_power_is_balanced(posed):
    mech, q = posed
    rng = np.random.default_rng(1)
    q, qd = mech.project(q, rng.normal(size=24), hold=())
    tau = np.where(mech.actuated_mask, 30.0 * rng.normal(size=24), 0.0)
    found = mech.forward_dynamics(q, qd, tau)
    qdd = np.asarray(found)
    assert_close(np.asarray(mech.inverse_dynamics(q, qd, qdd)), tau, 1e-9)
    power = central_difference(
        lambda s: sum(mech.energy(q + s[0] * qd + s[0] ** 2 / 2 * qdd, qd + s[0] * qdd)), [0.0], 1e-3
    )
    assert_close(power, [tau @ qd], 1e-8)
    assert_close(
        mech.mass_matrix(q) @ qdd + mech.bias(q, qd), tau + mech.closure_jacobian(q).T @ found.multipliers, 1e-9
    )
    driven = mech.with_drive(active=mech.actuated)
    r = driven.hybrid_dynamics(q, qd, np.where(mech.actuated_mask, qdd, 0.0))
    assert_close(r.qdd, qdd, 1e-9)
    assert_close(r.tau[mech.actuated_mask], tau[mech.actuated_mask], 1e-9)


@pytest.mark.slow
def test_the_ready_diagram_goes_round_with_its_loops_closed_and_no_power_lost(posed):
    """Closed to 1e-8; the energy that the platform has is what the motors put in; both engines go the same way."""
    mech, _ = posed
    runs = []
    for engine, T in (("interpreted", 0.5), ("compiled", 0.1)):
        sim = cs.Simulation(engine=engine, graphics=False, progress=False)
        bd = diagrams.load("stewart_platform").build(sim)
        work = bd.INTEGRATOR(x0=0.0, name="work")
        power = bd.FUNCTION(lambda f, v: f @ v, nin=2, name="power")
        bd.connect(bd.blocknames["force"], power[0])
        bd.connect(bd.blocknames["rates"], power[1])
        bd.connect(power, work)
        runs.append(sim.run(bd, T=T, dt=T / 15, watch=["plant", "work", "error", "place"]))
    out = runs[0]
    q, qd = out.signal("plant.q"), out.signal("plant.qd")
    assert np.abs(mech.closure(q)).max() < 1e-8
    energy = np.sum(mech.energy(q, qd), axis=0)
    assert_close(energy - energy[0], out.signal("work"), 1e-4)
    assert np.ptp(out.signal("place"), axis=0).max() > 0.02
    assert np.abs(out.signal("error")).max() < 0.01
    assert np.abs(mech.closure(runs[1].signal("plant.q"))).max() < 1e-8
    k = 3
    assert abs(out.t[k] - 0.1) < 1e-12
    assert_close(runs[1].signal("plant.q")[-1], q[k], 1e-7)
