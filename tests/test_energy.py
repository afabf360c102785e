"""Energy and momentum over simulated seconds: kept where nothing takes them, and accounted for where something does."""

from __future__ import annotations

import numpy as np
import pytest
from random_mechanisms import MOVING, random_mechanism
from scipy.integrate import solve_ivp

from cstormpy.mechanism import library

#: Sets without damping.
UNDAMPED = ("rods", "spong", "gym")
#: Starts (q1, q2, q̇1, q̇2) from which the acrobot swings wildly, one of them next to the upright position.
STARTS = [(0.3, 0.0, 0.0, 0.0), (0.0, 0.5, 0.0, 0.0), (np.pi / 2 - 1e-3, 0.0, 0.0, 0.0), (1.0, 2.0, 3.0, -4.0)]


def simulate(mech, q, qd, seconds, u=None, wrench=None):
    """Return t, q, q̇ and the work done by motors and wrenches less what was lost, at the integrator's own steps.

    `u(t)` is what the hybrid dynamics take; the work is integrated beside the motion, as one more state.
    """
    n, f = mech.n, mech.hybrid_evaluator()
    joints = [mech.joint(name) for name in mech.names]
    damping, friction, speed = (np.array([getattr(j, a) for j in joints]) for a in
                                ("damping", "friction", "friction_velocity"))  # fmt: skip
    rest, active = np.zeros(n), mech.active_mask

    def rate(t, state):
        q, qd = state[:n].copy(), state[n : 2 * n].copy()
        given = rest if u is None else u(t)
        y = f(q, qd, given) if wrench is None else mech.hybrid_dynamics(q, qd, given, wrench).y
        power = qd @ (np.where(active, y, given) - damping * qd - friction * np.tanh(qd / speed))
        if wrench is not None:
            power += sum(w @ mech.jacobian(q, i) @ qd for i, w in enumerate(wrench) if w.any())
        return np.concatenate([qd, np.where(active, given, y), [power]])

    run = solve_ivp(rate, (0.0, seconds), [*q, *qd, 0.0], method="DOP853", rtol=1e-12, atol=1e-13)
    assert run.success
    states = np.ascontiguousarray(run.y.T)
    return run.t, states[:, :n], states[:, n : 2 * n], states[:, -1]


def balance(mech, q, qd, work):
    """Return how far the energy strays from what it began with and the work done on it, and the span of its parts."""
    T, V = mech.energy(q, qd)
    return np.max(np.abs(T + V - T[0] - V[0] - work)), np.ptp(V)


#: Each set from one start, and one set from two of them; the other pairs are slow.
QUICK = [(UNDAMPED[0], start) for start in STARTS[:2]] + [(name, STARTS[-1]) for name in UNDAMPED[1:]]
PAIRS = [
    pytest.param(name, start, marks=[] if (name, start) in QUICK else pytest.mark.slow)
    for name in UNDAMPED
    for start in STARTS
]


@pytest.mark.parametrize(("parameters", "start"), PAIRS)
def test_energy_of_an_undamped_acrobot(parameters, start):
    mech = library.acrobot(parameters)
    t, q, qd, work = simulate(mech, start[:2], start[2:], 10.0)
    assert not work.any() and t[-1] == 10.0
    drift, span = balance(mech, q, qd, 0.0)
    upright = mech.energy([np.pi / 2, 0.0], [0.0, 0.0])[1]
    assert 0.5 * upright < span < 2.01 * upright  # it did move
    assert drift < 1e-10 * span


@pytest.mark.nojit
def test_energy_of_an_undamped_acrobot_for_a_moment():
    mech = library.acrobot("rods")
    _, q, qd, _ = simulate(mech, (0.3, 0.0), (0.0, 0.0), 0.3)
    drift, span = balance(mech, q, qd, 0.0)
    assert span > 1.0 and drift < 1e-11 * span


@pytest.mark.slow
@pytest.mark.parametrize("damping", [0.0, 0.1])
@pytest.mark.parametrize("friction", [0.0, 0.4])
@pytest.mark.parametrize("pushed", [False, True])
def test_energy_lost_is_the_integral_of_power(damping, friction, pushed):
    """With damping and friction, a motor in the elbow or none, and a force that follows the tip or none."""
    values = {"damping": damping, "friction": friction, "friction_velocity": 0.2}
    mech = library.acrobot("rods").with_parameters(
        {f"{joint}.{name}": value for joint in ("shoulder", "elbow") for name, value in values.items()}
    )
    u, wrench = None, None
    if pushed:
        wrench = np.zeros((2, 6))
        wrench[1] = [0.0, 0.0, 0.3, 0.0, 0.4, 0.0]

        def u(t):
            return np.array([0.0, 2.0 * np.sin(3.0 * t)])

    _, q, qd, work = simulate(mech, (0.3, 0.0), (0.0, 0.0), 5.0, u, wrench)
    drift, span = balance(mech, q, qd, work)
    assert drift < 1e-10 * span
    if damping or friction or pushed:
        assert np.ptp(work) > 0.1 * span
    if (damping or friction) and not pushed:
        assert np.all(np.diff(work) <= 0.0)
        assert work[-1] == pytest.approx(sum(mech.energy(q[-1], qd[-1])) - sum(mech.energy(q[0], qd[0])), rel=1e-9)


def test_a_driven_elbow_does_the_work_that_the_energy_gains():
    """The elbow's motion is prescribed; its torque, which is found, times its rate is all the power there is."""
    mech = library.acrobot("rods").with_drive(active=["elbow"])
    _, q, qd, work = simulate(mech, (-np.pi / 2, 0.0), (0.0, 0.0), 5.0, lambda t: np.array([0.0, 6 * np.cos(4 * t)]))
    drift, span = balance(mech, q, qd, work)
    assert drift < 1e-10 * span
    assert np.ptp(work) > 0.1 * span


@pytest.mark.parametrize("seed", [0, 1])
def test_energy_of_a_tree_with_every_joint_and_every_term(seed):
    rng = np.random.default_rng(seed)
    mech = random_mechanism(rng, 5, MOVING)
    amplitude, rate = rng.normal(size=(2, 5))
    q, qd = rng.normal(size=(2, 5)) / 2
    _, q, qd, work = simulate(mech, q, qd, 1.0, lambda t: amplitude * np.sin(rate * t))
    (T, V), size = mech.energy(q, qd), np.ptp(work)
    assert size > 1.0
    assert np.max(np.abs(T + V - T[0] - V[0] - work)) < 1e-10 * max(size, np.ptp(T), np.ptp(V))
