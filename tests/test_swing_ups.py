"""Cart-pole, pendubot and Furuta pendulum: swung up by each law, and kept up, in both engines."""

import math

import numpy as np
import pytest

import cstormpy as cs
from cstormpy.control import LQR, PendulumPump
from cstormpy.mechanism import library

HANGING = -math.pi / 2
#: Diagram, options, and the time within which it is balanced, found by running it, plus 10 % [s].
WAYS = [
    ("cart_pole", {}, 4.5),
    ("cart_pole", {"controller": "pfl"}, 7.3),
    ("furuta", {}, 4.7),
    ("furuta", {"parameters": "qube"}, 2.0),
    ("pendubot", {}, 1.65),
    ("pendubot", {"controller": "energy"}, 3.2),
    ("pendubot", {"parameters": "design_A.0"}, 4.5),
    pytest.param("pendubot", {"parameters": "teaching"}, 5.3, marks=pytest.mark.slow),
]
#: Starts beside the one at rest.
STARTS = {
    "cart_pole": [
        ([0.2, HANGING + 0.2], [0.0, 0.0]),
        ([0.0, HANGING - 1.0], [0.0, 0.0]),
        ([-0.3, HANGING], [0.5, 1.0]),
    ],
    "furuta": [([0.5, HANGING + 0.2], [0.0, 0.0]), ([0.0, HANGING - 1.0], [0.0, 0.0]), ([-1.0, HANGING], [0.5, 1.0])],
}


def swung(name, engine, T, **options):
    sim = cs.Simulation(graphics=False, progress=False, engine=engine)
    return cs.compare(name, {"blend": [0.05]}, T=T, sim=sim, **options).entries[0]


@pytest.mark.parametrize(("name", "options", "within"), WAYS)
def test_each_is_swung_up_and_stays_for_ten_seconds(name, options, within):
    entry = swung(name, "compiled", within + 10.0, **options)
    assert entry.settled and entry.time_to_balance < within, entry.time_to_balance
    assert entry.error[entry.t > within].max() < entry.goal.tolerance
    assert entry.final_error < 1e-4


@pytest.mark.slow
@pytest.mark.parametrize(("name", "options", "within"), WAYS[:1] + WAYS[2:3] + WAYS[4:5])
def test_both_engines_swing_up_alike(name, options, within):
    """To the moment at which the regulator catches, beyond which a swing-up forgets its past."""
    plain, fast = (swung(name, engine, within + 10.0, **options) for engine in ("interpreted", "compiled"))
    assert plain.settled and plain.time_to_balance == pytest.approx(fast.time_to_balance, abs=0.02)
    early = fast.t < 1.0
    for k in range(2):
        np.testing.assert_allclose(np.interp(fast.t[early], plain.t, plain.q[:, k]), fast.q[early, k], atol=2e-3)


@pytest.mark.slow
@pytest.mark.parametrize("name", STARTS)
def test_the_pump_works_from_other_starts(name):
    for q0, qd0 in STARTS[name]:
        entry = swung(name, "compiled", 16.0, q0=q0, qd0=qd0)
        assert entry.settled and entry.time_to_balance < 6.0, (q0, qd0, entry.time_to_balance)


@pytest.mark.parametrize("mech", [library.cart_pole(), library.furuta()])
def test_the_pump_works_on_the_pendulum_alone(mech):
    """Without stiffness and damping the energy of the pendulum changes by ke (E* - E) (M_ap q̇_p)²."""
    law = PendulumPump(mech, kp=0.0, kd=0.0, ke=7.0, goal=[0.0, math.pi / 2])
    rng = np.random.default_rng(5)
    for _ in range(5):
        q, qd = rng.uniform(-2, 2, (2, 2))
        q[0] = qd[0] = 0.0  # the frame in which the energy is that of the pendulum moves with the motor's joint
        h = 1e-6
        qdd = mech.forward_dynamics(q, qd, [law(0.0, q, qd)[0], 0.0])
        change = (
            law.energy(q + h * qd, [0.0, qd[1] + h * qdd[1]]) - law.energy(q - h * qd, [0.0, qd[1] - h * qdd[1]])
        ) / (2 * h)
        lost = sum(mech.joint(joint).damping * rate**2 for joint, rate in zip(mech.names, qd, strict=True))
        coupling = mech.mass_matrix(q)[0, 1] * qd[1]
        missing = law.goal_energy - law.energy(q, qd)
        assert change + lost == pytest.approx(7.0 * missing * coupling**2, rel=1e-6, abs=1e-9)


def test_the_linear_model_of_the_cart_pole_is_that_of_the_textbook():
    """The matrices about upright, by hand."""
    m, half, total, g = 0.1, 0.5, 1.1, 9.81
    J = m * half**2 * 4 / 3
    M = np.array([[total, -m * half], [-m * half, J]])  # about upright, the angle to the left
    A = np.zeros((4, 4))
    A[:2, 2:] = np.eye(2)
    A[2:, 1] = np.linalg.solve(M, [0.0, m * g * half])
    B = np.concatenate([[0.0, 0.0], np.linalg.solve(M, [1.0, 0.0])])[:, None]
    law = LQR(library.cart_pole(), goal=[0.0, math.pi / 2])
    np.testing.assert_allclose(law.A, A, atol=1e-12)
    np.testing.assert_allclose(law.B, B, atol=1e-12)
