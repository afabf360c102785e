"""Numbers and closed forms from the literature: Xiang's two-link arm, Corke's Puma 560, balanced acrobots."""

from __future__ import annotations

import numpy as np
import pytest
from closeness import assert_close, tolerance
from scipy.linalg import solve_continuous_are
from xiang_arm import xiang_sensitivity, xiang_torque

from cstormpy.mechanism import Load, library


# ---------------------------------------------------------------- Xiang, Arora and Abdel-Malek (2008)
@pytest.mark.nojit
@pytest.mark.parametrize("f", [0.0, 10.0])
def test_two_link_arm_has_the_torques_of_xiang(f):
    mech = library.xiang_two_link()
    rng = np.random.default_rng(2008)
    for _ in range(5):
        q, qd, qdd = rng.uniform(-3, 3, (3, 2))
        angle = np.sum(q)  # the load points downwards in space; its frame is at the tip, its axes the link's
        at_tip = np.eye(4)
        at_tip[0, 3] = 0.4
        force = -f * np.array([np.sin(angle), np.cos(angle), 0.0])
        load = [("forearm", at_tip, [0, 0, 0, *force])]
        want = xiang_torque(*q, *qd, *qdd, f)
        assert_close(mech.inverse_dynamics(q, qd, qdd, wrench=load), want, 1e-13)
        in_space = Load("forearm", [0.0, -f, 0.0], point=[0.4, 0.0, 0.0])
        assert_close(mech.inverse_dynamics(q, qd, qdd, wrench=in_space), want, 1e-13)
        assert_close(mech.forward_dynamics(q, qd, want, wrench=load), qdd, tolerance(mech, q, 1e-13, "forward"))
        held = mech.with_drive(active=["elbow"])
        r = held.hybrid_dynamics(q, qd, [want[0], qdd[1]], wrench=load)
        assert_close(np.stack([r.tau, r.qdd]), np.stack([want, qdd]), tolerance(held, q, 1e-13))


@pytest.mark.nojit
@pytest.mark.parametrize("f", [0.0, 10.0])
def test_two_link_arm_has_the_sensitivities_of_xiang(f):
    """(54)-(65), printed again as (71)-(82): the load at the tip points downwards in space, however the arm turns."""
    mech = library.xiang_two_link()
    rng = np.random.default_rng(2008)
    weight = Load("forearm", [0.0, -f, 0.0], point=[0.4, 0.0, 0.0])
    held = mech.with_drive(active=["elbow"])
    for _ in range(5):
        q, qd, qdd = rng.uniform(-3, 3, (3, 2))
        d = mech.inverse_sensitivity(q, qd, qdd, weight)
        to_q, to_qd, M = xiang_sensitivity(*q, *qd, *qdd, f)
        assert_close(d.y, xiang_torque(*q, *qd, *qdd, f), 1e-13)
        for got, answer in zip((d.dy_dq, d.dy_dqd, d.dy_du), (to_q, to_qd, M), strict=True):
            assert_close(got, answer, 1e-13)
        assert_close(mech.mass_matrix(q), M, 1e-13)
        # elbow driven: ∂q̈1 = -(∂τ1 - …) / M11, ∂τ2 = ∂τ2|q̈ + M21 ∂q̈1
        h, tol = held.hybrid_sensitivity(q, qd, [d.y[0], qdd[1]], weight), tolerance(held, q, 1e-13)
        for got, (first, second) in zip((h.dy_dq, h.dy_dqd), (to_q, to_qd), strict=True):
            assert_close(got, np.array([-first / M[0, 0], second - M[1, 0] / M[0, 0] * first]), tol)
        schur = M[1, 1] - M[1, 0] ** 2 / M[0, 0]
        assert_close(h.dy_du, np.array([[1, -M[0, 1]], [M[1, 0], schur * M[0, 0]]]) / M[0, 0], tol)


# ---------------------------------------------------------------- Corke, Robotics Toolbox
class TestPuma:
    """Numbers of Corke's Robotics Toolbox, whose tests print them to four decimals: rne, inertia, itorque, coriolis.

    Same standard Denavit-Hartenberg frames, same base, gravity along -z; qn is the toolbox's nominal pose.
    """

    QN = np.array([0, np.pi / 4, np.pi, 0, np.pi / 4, 0])
    HALF_A_DIGIT = 5.01e-5
    ZERO, ONE = np.zeros(6), np.ones(6)
    GEAR = np.array([62.6111, 107.815, 53.7063, 76.0364, 71.923, 76.686])
    COULOMB = np.array([0.395, 0.126, 0.132, 11.2e-3, 9.26e-3, 3.96e-3])  # at the motor, turning forwards

    def close(self, got, want):
        np.testing.assert_allclose(got, want, rtol=0, atol=self.HALF_A_DIGIT)

    @pytest.mark.nojit
    def test_gravity_and_inertia(self):
        mech = library.puma560()
        load = [0.0, 31.6399, 6.0351, 0.0, 0.0283, 0.0]
        self.close(mech.gravity_load(self.QN), load)
        self.close(mech.inverse_dynamics(self.QN, self.ZERO, self.ZERO), load)
        accelerated = [3.35311, 36.0025, 7.42596, 0.190043, 0.203441, 0.194133]
        self.close(mech.inverse_dynamics(self.QN, self.ZERO, self.ONE), accelerated)
        inertia = [
            [3.6594, -0.4044, 0.1006, -0.0025, 0.0, 0.0],
            [-0.4044, 4.4137, 0.3509, 0.0, 0.0024, 0.0],
            [0.1006, 0.3509, 0.9378, 0.0, 0.0015, 0.0],
            [-0.0025, 0.0, 0.0, 0.1925, 0.0, 0.0],
            [0.0, 0.0024, 0.0015, 0.0, 0.1713, 0.0],
            [0.0, 0.0, 0.0, 0.0, 0.0, 0.1941],
        ]
        self.close(mech.mass_matrix(self.QN), inertia)
        self.close(mech.mass_matrix(self.QN) @ [1, 2, 3, 1, 2, 3], [3.1500, 9.4805, 3.6189, 0.1901, 0.3519, 0.5823])

    def test_velocity_terms_and_friction(self):
        """The toolbox's Coulomb friction differs with the direction; here all joints turn forwards."""
        mech = library.puma560(friction=True)
        forwards = self.COULOMB * self.GEAR
        mech = mech.with_parameters({f"joint{k + 1}.friction": forwards[k] for k in range(6)})
        moving = [29.1421, 56.5044, 16.3528, 1.26448, 1.12392, 0.519648]
        self.close(mech.inverse_dynamics(self.QN, self.ONE, self.ZERO), moving)
        both = [32.4952, 60.867, 17.7436, 1.45452, 1.29911, 0.713781]
        self.close(mech.inverse_dynamics(self.QN, self.ONE, self.ONE), both)
        weightless = [32.4952, 29.2271, 11.7085, 1.45452, 1.27086, 0.713781]
        self.close(mech.with_gravity((0, 0, 0)).inverse_dynamics(self.QN, self.ONE, self.ONE), weightless)

    def test_velocity_terms_without_friction(self):
        mech, qd = library.puma560(), np.array([1, 2, 3, 1, 2, 3])
        coriolis = [
            [-0.1735, -2.0494, -0.1178, -0.0002, -0.0045, 0.0001],
            [0.6274, 1.1572, 1.9287, -0.0015, -0.0003, 0.0],
            [-0.3608, -0.7734, -0.0018, -0.0009, -0.0064, 0.0],
            [0.0011, 0.0005, -0.0001, 0.0002, 0.0002, -0.0001],
            [-0.0002, 0.0028, 0.0046, -0.0002, 0.0, 0.0],
            [0.0001, 0.0, 0.0, 0.0, 0.0, 0.0],
        ]
        got = mech.bias(self.QN, qd) - mech.gravity_load(self.QN)
        # each entry is rounded by itself
        np.testing.assert_allclose(got, coriolis @ qd, rtol=0, atol=self.HALF_A_DIGIT * np.sum(np.abs(qd)))

    @pytest.mark.nojit
    def test_load_at_the_flange(self):
        """The toolbox's fext = (force, moment) is what the robot exerts, ours what acts on it."""
        mech = library.puma560()
        load = [("link6", None, [-1.0, -2.0, -3.0, -1.0, -2.0, -3.0])]
        want = [0.642756, 29.0866, 4.70321, 2.82843, -1.97175, 3.0]
        self.close(mech.inverse_dynamics(self.QN, self.ZERO, self.ZERO, wrench=load), want)


# ---------------------------------------------------------------- the acrobot, upright
# Lengths, centres of mass, masses, inertias, damping, gravity: the sets of the acrobot.
ACROBOTS = {
    "teaching": (1.0, 0.5, 1.0, 1.0, 1.0, 0.083, 0.33, 0.1, 9.81),
    "spong": (1.0, 0.5, 1.0, 1.0, 1.0, 0.083, 0.33, 0.0, 9.8),
    "gym": (1.0, 0.5, 0.5, 1.0, 1.0, 1.0, 1.0, 0.0, 9.8),
    "rods": (1.0, 0.5, 0.5, 1.0, 1.0, 1 / 12, 1 / 12, 0.0, 9.81),
}
#: LQR with Q = diag(10, 10, 1, 1), R = 1 about the upright position, printed to one decimal.
GAINS = {
    "teaching": [-278.4, -112.3, -119.7, -56.8],
    "spong": [-265.9, -107.3, -114.9, -54.3],
    "gym": [-211.1, -54.0, -99.8, -33.1],
}


@pytest.mark.nojit
@pytest.mark.parametrize("parameters", ACROBOTS)
def test_upright_acrobot(parameters):
    """M δq̈ = -∂g/∂q δq - d δq̇ + δτ, written out by hand."""
    l1, c1, c2, m1, m2, I1, I2, damping, g = ACROBOTS[parameters]
    M22 = I2 + m2 * c2**2
    M12 = M22 + m2 * l1 * c2
    M = np.array([[I1 + m1 * c1**2 + M22 + m2 * (l1**2 + 2 * l1 * c2), M12], [M12, M22]])
    falling = g * np.array([[m1 * c1 + m2 * (l1 + c2), m2 * c2], [m2 * c2, m2 * c2]])
    inverse = np.linalg.inv(M)
    mech = library.acrobot(parameters)
    q, zero = np.array([np.pi / 2, 0.0]), np.zeros(2)
    d = mech.hybrid_sensitivity(q, zero, zero)
    assert_close(d.y, zero, 1e-14)  # cos(pi/2) is 6e-17
    assert_close(d.dy_dq, inverse @ falling, 1e-14)
    assert_close(d.dy_dqd, -damping * inverse, 1e-14)
    assert_close(d.dy_du, inverse, 1e-14)
    if parameters == "rods":  # 12.613, 16.817 and 46.247
        assert_close(d.dy_dq, 9.81 / 7 * np.array([[9.0, -9.0], [-12.0, 33.0]]), 1e-14)


@pytest.mark.nojit
@pytest.mark.parametrize("parameters", GAINS)
def test_gains_of_the_upright_acrobot(parameters):
    """The linearisation brings the gains that other implementations balanced the acrobot with."""
    mech = library.acrobot(parameters)
    zero = np.zeros(2)
    d = mech.hybrid_sensitivity(np.array([np.pi / 2, 0.0]), zero, zero)
    A = np.block([[np.zeros((2, 2)), np.eye(2)], [d.dy_dq, d.dy_dqd]])
    B = np.concatenate([zero, d.dy_du[:, 1]])[:, None]
    S = solve_continuous_are(A, B, np.diag([10.0, 10.0, 1.0, 1.0]), np.eye(1))
    np.testing.assert_allclose((B.T @ S)[0], GAINS[parameters], rtol=0, atol=0.0501)


# ---------------------------------------------------------------- pendulums with one motor
def cart_pole_by_florian(mech, q, qd, force):
    """Florian (2007), "Correct equations for the dynamics of the cart-pole system", (23) and (24) without friction.

    The angle of the paper is that from the upright, to the side to which the cart's position grows.
    """
    cart, pole = mech.links
    m_c, m_p, half, g = cart.mass, pole.mass, pole.com[0], -mech.gravity[1]
    theta, rate, total = np.pi / 2 - q[1], -qd[1], m_c + m_p
    s, c = np.sin(theta), np.cos(theta)
    push = (-force - m_p * half * rate**2 * s) / total
    turning = (g * s + c * push) / (half * (4.0 / 3.0 - m_p * c**2 / total))  # (23)
    moving = (force + m_p * half * (rate**2 * s - turning * c)) / total  # (24)
    return np.array([moving, -turning])


def pendubot_by_spong(mech, q, qd, torque):
    """Spong and Block (1995), "The Pendubot: a mechatronic system for control research and education", (1) to (7).

    With the five parameters of the paper, angles from the horizontal.
    """
    first, second = mech.links
    m1, m2, lc1, lc2 = first.mass, second.mass, first.com[0], second.com[0]
    l1, I1, I2, g = second.pose[0, 3], first.inertia[2, 2], second.inertia[2, 2], -mech.gravity[1]
    t1, t2, t3 = m1 * lc1**2 + m2 * l1**2 + I1, m2 * lc2**2 + I2, m2 * l1 * lc2
    t4, t5 = m1 * lc1 + m2 * l1, m2 * lc2
    s2, c2 = np.sin(q[1]), np.cos(q[1])
    D = np.array([[t1 + t2 + 2 * t3 * c2, t2 + t3 * c2], [t2 + t3 * c2, t2]])
    C = t3 * s2 * np.array([[-qd[1], -qd[1] - qd[0]], [qd[0], 0.0]])
    gravity = g * np.array([t4 * np.cos(q[0]) + t5 * np.cos(q[0] + q[1]), t5 * np.cos(q[0] + q[1])])
    friction = [joint.joint.damping * rate for joint, rate in zip(mech.links, qd, strict=True)]
    return np.linalg.solve(D, np.array([torque, 0.0]) - C @ qd - gravity - friction)


def furuta_by_cazzolato(mech, q, qd, torque):
    """Cazzolato and Prime (2011), "On the dynamics of the Furuta pendulum", (33) and (34).

    The arm of the paper turns about the vertical against ours, the pendulum hangs at zero. (34) is printed with a minus
    before the centrifugal term sin(2 θ2) θ̇1²/2, which (33), eliminated from the same two equations, contradicts.
    """
    arm, swing = mech.links
    m1, m2, l1, l2, L1 = arm.mass, swing.mass, arm.com[0], swing.com[2], swing.pose[0, 3]
    b1, b2, g = arm.joint.damping, swing.joint.damping, -mech.gravity[1]
    J0, J2 = arm.inertia[1, 1] + m1 * l1**2 + m2 * L1**2, swing.inertia[0, 0] + m2 * l2**2
    w1, w2, angle = -qd[0], qd[1], q[1] + np.pi / 2
    s, c, double, k = np.sin(angle), np.cos(angle), np.sin(2 * angle), m2 * L1 * l2
    rates = np.array([w1, w2, w1 * w2, w1**2, w2**2])
    given = np.array([-torque, 0.0, g])
    below = J0 * J2 + J2**2 * s**2 - k**2 * c**2
    first = np.array([-J2 * b1, k * c * b2, -(J2**2) * double, -J2 * k * c * double / 2, J2 * k * s]) @ rates
    first += np.array([J2, -k * c, m2 * l2 * k * double / 2]) @ given
    both = J0 + J2 * s**2
    second = np.array([k * c * b1, -b2 * both, k * J2 * c * double, double / 2 * J2 * both, -(k**2) * double / 2])
    change = second @ rates + np.array([-k * c, both, -m2 * l2 * s * both]) @ given
    return np.array([-first, change]) / below


@pytest.mark.nojit
@pytest.mark.parametrize(
    ("mech", "equations"),
    [
        (library.cart_pole(), cart_pole_by_florian),
        (library.cart_pole(cart_mass=0.4, mass=0.7, length=0.3), cart_pole_by_florian),
        *((library.pendubot(name), pendubot_by_spong) for name in ("design_C.1", "design_A.0", "teaching")),
        *((library.furuta(name), furuta_by_cazzolato) for name in ("cazzolato", "qube")),
    ],
)
def test_pendulums_with_one_motor_move_as_their_closed_forms_say(mech, equations):
    rng = np.random.default_rng(1992)
    for _ in range(20):
        q, qd = rng.uniform(-3, 3, (2, 2))
        scale = np.abs(mech.mass_matrix(q)).max()
        push = rng.uniform(-5, 5) * scale
        want = equations(mech, q, qd, push)
        found = mech.forward_dynamics(q, qd, [push, 0.0])
        np.testing.assert_allclose(found, want, rtol=0, atol=1e-12 * max(1.0, np.abs(want).max()))
