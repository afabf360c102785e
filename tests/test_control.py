"""Control laws, evaluated: the notes' formulas, gains, limits, references, copies, and what a law cannot serve."""

from __future__ import annotations

import copy
import pickle
import re
from abc import ABC

import numpy as np
import pytest
from closeness import assert_close, central_difference
from random_mechanisms import MOVING, any_tree, random_mechanism

import cstormpy as cs
from cstormpy import control
from cstormpy.control.blend import LawSet, laws_by_name
from cstormpy.errors import (
    BlockError,
    CstormError,
    InvalidType,
    InvalidValue,
    NonFinite,
    ShapeError,
    SingularInertia,
    UnknownName,
)
from cstormpy.mechanism import Link, Mechanism, Prismatic, Revolute, library
from cstormpy.trajectory import BSpline

UPRIGHT = np.array([np.pi / 2, 0.0])


class SpongAcrobot:
    """The acrobot with q1 from hanging, as printed in textbooks: D q̈ + b = (0, u)."""

    def __init__(self, l1, lc1, lc2, m1, m2, I1, I2, damping, g):
        self.numbers = l1, lc1, lc2, m1, m2, I1, I2, damping, g
        self.goal_energy = g * (m1 * lc1 + m2 * l1 + m2 * lc2)

    def terms(self, q, qd):
        l1, lc1, lc2, m1, m2, I1, I2, damping, g = self.numbers
        (q1, q2), (w1, w2) = q, qd
        d11 = m1 * lc1**2 + m2 * (l1**2 + lc2**2 + 2 * l1 * lc2 * np.cos(q2)) + I1 + I2
        d12 = m2 * (lc2**2 + l1 * lc2 * np.cos(q2)) + I2
        d22 = m2 * lc2**2 + I2
        h = m2 * l1 * lc2 * np.sin(q2)
        pull = m2 * lc2 * g * np.sin(q1 + q2)
        b1 = -h * w2**2 - 2 * h * w1 * w2 + (m1 * lc1 + m2 * l1) * g * np.sin(q1) + pull + damping * w1
        b2 = h * w1**2 + pull + damping * w2
        kinetic = 0.5 * (d11 * w1 * w1 + 2 * d12 * w1 * w2 + d22 * w2 * w2)
        energy = kinetic - (m1 * lc1 + m2 * l1) * g * np.cos(q1) - m2 * lc2 * g * np.cos(q1 + q2)
        return d11, d12, d22, b1, b2, energy

    def energy_pump(self, q, qd, kp, kd, ke):
        *_, energy = self.terms(q, qd)
        return ke * (self.goal_energy - energy) * qd[1] - kp * q[1] - kd * qd[1]

    def energy_pfl(self, q, qd, kp, kd, ke):
        d11, d12, d22, b1, b2, energy = self.terms(q, qd)
        wanted = -kp * q[1] - kd * qd[1]
        pump = ke * (self.goal_energy - energy) * qd[1]
        return (d22 - d12**2 / d11) * wanted + b2 - d12 * b1 / d11 + pump

    def noncollocated(self, q, qd, kp, kd):
        d11, d12, d22, b1, b2, _ = self.terms(q, qd)
        wanted = kp * (np.pi - q[0]) - kd * qd[0]
        elbow = -(d11 * wanted + b1) / d12
        return d12 * wanted + d22 * elbow + b2


TEXTBOOK = {
    "teaching": SpongAcrobot(1.0, 0.5, 1.0, 1.0, 1.0, 0.083, 0.33, 0.1, 9.81),
    "spong": SpongAcrobot(1.0, 0.5, 1.0, 1.0, 1.0, 0.083, 0.33, 0.0, 9.8),
    "gym": SpongAcrobot(1.0, 0.5, 0.5, 1.0, 1.0, 1.0, 1.0, 0.0, 9.8),
}


@pytest.mark.parametrize("parameters", TEXTBOOK)
def test_the_swinging_laws_are_the_textbooks_formulas(parameters):
    rng = np.random.default_rng(1)
    mech, book = library.acrobot(parameters), TEXTBOOK[parameters]
    laws = {
        "energy_pump": (control.EnergyPump(mech, kp=5.0, kd=1.4, ke=2.7), (5.0, 1.4, 2.7)),
        "energy_pfl": (control.EnergyPFL(mech, kp=100.0, kd=24.0, ke=15.0), (100.0, 24.0, 15.0)),
        "noncollocated": (control.NonCollocated(mech, kp=78.0, kd=2.2), (78.0, 2.2)),
    }
    for _ in range(20):
        # q1 from hanging; within half a turn of the goal, where errors of angles need no wrapping
        q, qd = np.array([rng.uniform(0.1, 2 * np.pi - 0.1), rng.uniform(-3, 3)]), rng.normal(size=2)
        for name, (law, gains) in laws.items():
            want = getattr(book, name)(q, qd, *gains)
            assert_close(law(0.0, q - [np.pi / 2, 0.0], qd), [want], 1e-11)


def test_errors_of_angles_take_the_shorter_way_round():
    mech = library.acrobot()
    q, qd = np.array([-1.3, 0.4]), np.array([0.2, -0.5])
    for name in ("energy", "pfl", "noncollocated", "lqr"):
        law = control.law(name, mech)
        for turns in ([1, 0], [0, 1], [-3, 2]):
            assert_close(law(0.0, q + 2 * np.pi * np.array(turns), qd), law(0.0, q, qd), 1e-9)


def test_a_slide_and_a_hinge_with_a_spring_have_no_turns():
    slide = Link("slide", joint=Prismatic((1, 0, 0)), mass=1.0)
    hinge = Link("hinge", "slide", Revolute((0, 0, 1), stiffness=50.0), mass=1.0, com=(0.5, 0, 0), inertia=np.eye(3))
    mech = Mechanism([slide, hinge])
    law = control.LQR(mech, goal=[0.0, 0.0])
    assert_close(law.error(np.array([7.0, 8.0]), np.zeros(2)), [7.0, 8.0, 0.0, 0.0], 0)


# ---------------------------------------------------------------- the regulator


@pytest.mark.parametrize(
    ("parameters", "want"),
    [
        ("teaching", [-278.4, -112.3, -119.7, -56.8]),
        ("spong", [-265.9, -107.3, -114.9, -54.3]),
        ("gym", [-211.1, -54.0, -99.8, -33.1]),
    ],
)
def test_the_acrobots_gains_are_those_of_the_notes(parameters, want):
    law = control.LQR(library.acrobot(parameters), Q=[10, 10, 1, 1], R=1)
    assert_close(law.goal, UPRIGHT, 1e-12)
    assert law.K.round(1).tolist() == [want]


@any_tree(examples=10, links=5)
def test_the_regulator_solves_its_equation_and_steadies_the_model(seed, links):
    """About an equilibrium that springs make, with any set of motors that reaches what moves."""
    rng = np.random.default_rng(seed)
    mech = random_mechanism(rng, links, MOVING, terms=False)
    mech = mech.with_drive(actuated=[name for name in mech.names if rng.random() < 0.6] or mech.names[:1], active=())
    q0 = rng.uniform(-1, 1, mech.n)
    load = mech.gravity_load(q0)
    springs = {f"{name}.stiffness": 60.0 for name in mech.names}
    rests = {f"{name}.rest": q0[k] + load[k] / 60.0 for k, name in enumerate(mech.names)}
    dampings = {f"{name}.damping": 0.2 for name in mech.names}
    mech = mech.with_parameters({**springs, **rests, **dampings})
    law = control.LQR(mech, goal=q0, Q=1.0, R=np.linspace(1, 2, len(mech.actuated)))
    A, B, S, K = law.A, law.B, law.S, law.K
    residual = A.T @ S + S @ A - S @ B @ np.linalg.solve(law.R, B.T @ S) + law.Q
    assert_close(residual, np.zeros_like(S), 1e-8 * max(1.0, np.abs(A).max() * np.abs(S).max()))
    assert np.linalg.eigvals(A - B @ K).real.max() < 0
    assert np.linalg.eigvalsh(S)[0] > 0
    assert_close(law(0.0, q0, np.zeros(mech.n)), law.hold, 1e-12)
    e = rng.normal(size=2 * mech.n)
    assert_close(law(0.0, q0 + e[: mech.n] * 0.1, e[mech.n :]) - law.hold,
                 -K @ np.concatenate([e[: mech.n] * 0.1, e[mech.n :]]), 1e-9)  # fmt: skip


def test_a_mode_out_of_reach_is_named():
    links = [
        Link(name, None, Revolute((0, 0, 1), point=(0, 0, k)), mass=1.0 + k, com=(0.5, 0, 0), inertia=np.eye(3))
        for k, name in enumerate(("driven", "free"))
    ]
    with pytest.raises(InvalidValue, match=r"do not reach the mode of eigenvalue .*'free"):
        control.LQR(Mechanism(links, actuated=["driven"]))
    assert control.LQR(Mechanism(links)).K.shape == (2, 4)


def test_a_regulator_that_weighs_nothing_that_drifts_is_refused():
    """It was not said which motion that is."""
    with pytest.raises(InvalidValue, match=r"Q must weigh every motion that does .*, as 'car' does"):
        control.LQR(Mechanism([Link("car", joint=Prismatic((1, 0, 0)), mass=1.0)]), goal=[0.0], Q=[0.0, 0.0])
    wheel = [Link(f"wheel{k}", joint=Revolute((0, 0, 1)), mass=1.0, inertia=(1, 1, 1)) for k in range(3)]
    with pytest.raises(InvalidValue, match=r", as 'wheel1' does"):
        control.LQR(Mechanism(wheel), goal=[0.0] * 3, Q=[1.0, 0.0, 1.0, 1.0, 1.0, 1.0])


def test_a_goal_that_does_not_stay_is_refused():
    with pytest.raises(InvalidValue, match=r"no equilibrium, joint 'shoulder' has no motor .* mech\.trim"):
        control.LQR(library.acrobot(), goal=[1.0, 0.0])


# ---------------------------------------------------------------- gains, limits, names


def test_gains_can_be_seen_and_changed():
    mech = library.acrobot()
    law = control.law("energy", mech)
    assert law.gains["kp"] == 5.0
    assert law.gains["threshold"] == 1650.0
    q, qd = np.array([0.3, 0.4]), np.array([0.1, -0.2])
    for name, value in (("kp", 7.0), ("ke", 1.0), ("threshold", 900.0), ("R.elbow", 2.0), ("Q.shoulder rate", 3.0)):
        law.set_gain(name, value)
        assert law.gains[name] == value
    fresh = control.law("energy", mech, kp=7.0, ke=1.0, threshold=900.0, release=law.release, R=2.0, Q=[10, 10, 3, 1])
    assert fresh.gains == law.gains
    for mode in (0, 1):
        law.mode = fresh.mode = mode
        assert_close(law(0.0, q, qd), fresh(0.0, q, qd), 1e-9)


def test_the_release_follows_the_threshold():
    law = control.law("energy", library.acrobot(), release=2000.0)
    law.set_gain("threshold", 3300.0)
    assert (law.gains["threshold"], law.gains["release"]) == (3300.0, pytest.approx(4000.0))


def test_gains_of_several_joints_are_called_by_joint():
    law = control.PD(library.planar_2r(), kp=[1.0, 2.0], kd=3.0)
    assert law.gains == {"kp.shoulder": 1.0, "kp.elbow": 2.0, "kd": 3.0}
    law.set_gain("kp.elbow", 5.0)
    assert law.gains["kp.elbow"] == 5.0
    law.set_gain("kp", 4.0)
    assert law.gains == {"kp.shoulder": 4.0, "kp.elbow": 4.0, "kd": 3.0}


@pytest.mark.parametrize(
    ("name", "value", "error", "message"),
    [
        ("relase", 1.0, UnknownName, "did you mean 'release'"),
        ("kp.elbow", 1.0, UnknownName, "kp"),
        (3, 1.0, UnknownName, "gain"),
        ("kp", np.nan, NonFinite, "kp"),
        ("kp", "x", InvalidType, "kp"),
        ("threshold", -1.0, InvalidValue, "threshold"),
        ("release", 10.0, InvalidValue, "release"),
        ("R.elbow", 0.0, InvalidValue, "positive definite"),
        ("Q.elbow", -1.0, InvalidValue, "positive semi-definite"),
    ],
)
def test_gains_that_can_not_be_leave_the_law_as_it_was(name, value, error, message):
    law = control.law("energy", library.acrobot())
    before, gain = law.gains, law.balance.K.copy()
    with pytest.raises(error, match=message):
        law.set_gain(name, value)
    assert law.gains == before
    assert_close(law.balance.K, gain, 0)


def test_torques_stay_within_their_limits():
    rng = np.random.default_rng(2)
    mech = library.planar_2r()
    law = control.PD(mech, kp=1000.0, kd=10.0, limit=[3.0, 0.5])
    assert control.PD(mech, kp=1000.0, kd=10.0, limit=2).limit.tolist() == [2.0, 2.0]
    for _ in range(20):
        q, qd = rng.normal(size=(2, 2))
        assert_close(law(0.0, q, qd), np.clip(law.torque(0.0, q, qd), [-3.0, -0.5], [3.0, 0.5]), 0)


def test_a_law_takes_lists_and_refuses_other_widths():
    law = control.law("pfl", library.acrobot())
    want = law(0.0, np.array([0.1, 0.0]), np.array([0.0, 1.0]))
    assert law(0.0, [0.1, 0], (0, 1)).tolist() == want.tolist()
    assert law(0.0, np.array([0.1, 0.0]), np.array([0, 1])).tolist() == want.tolist()
    with pytest.raises(ShapeError, match="qd"):
        law(0.0, [0.1, 0.0], [0.0])


@pytest.mark.slow
def test_the_family_has_names():
    assert control.names() == ("energy", "pfl", "noncollocated", "spline", "lqr", "pd", "none")
    for name in control.names():
        law = control.law(name, "acrobot")
        assert isinstance(law, control.Law)
        assert law(0.0, UPRIGHT, np.zeros(2)).shape == (1,)
        assert law.modes[law.mode] in ("", "swing up")
        assert repr(law)
    with pytest.raises(UnknownName, match="did you mean 'energy'"):
        control.law("enrgy", library.acrobot())
    with pytest.raises(UnknownName, match=r"law 'pd'.*did you mean 'kp'"):
        control.law("pd", library.acrobot(), kpp=1.0)
    with pytest.raises(InvalidValue, match="no joint of the mechanism is actuated"):
        control.law("pd", library.acrobot().with_drive(actuated=[]))


BAD_LAWS = [
    (lambda m: control.PD(m, [1.0, 2.0], 1.0), ShapeError, r"kp \(for elbow\)"),
    (lambda m: control.PD(m, "x", 1.0), InvalidType, "kp"),
    (lambda m: control.PD(m, 1.0, 1.0, limit=-1.0), InvalidValue, "limit"),
    (lambda m: control.PD(m, 1.0, 1.0, reference=np.zeros(3)), ShapeError, "reference: expected 2 .* or 1 "),
    (lambda m: control.PD(m, 1.0, 1.0, reference=np.zeros((2, 2))), ShapeError, "reference: expected shape"),
    (lambda m: control.PD(m, 1.0, 1.0, reference=([0.0], [0.0], [np.nan])), NonFinite, "reference, qdd"),
    (lambda m: control.PD(m, 1.0, 1.0, reference="up"), InvalidType, "reference"),
    (lambda m: control.PD(3, 1.0, 1.0), InvalidType, "mechanism"),
    (lambda m: control.ComputedTorque(m), InvalidValue, "motor in every joint, 'shoulder' has none"),
    (lambda m: control.HybridTracking(m, joints=["shoulder"]), InvalidValue, "'shoulder'"),
    (lambda m: control.HybridTracking(m, joints=["elbo"]), UnknownName, "elbow"),
    (lambda m: control.NonCollocated(m.with_drive(actuated=m.names)), InvalidValue, "as many motors .* 2 and 0"),
    (lambda m: control.EnergyPump(m, goal=[0.0]), ShapeError, "goal"),
    (lambda m: control.EnergyPump(m, goal=[0.3, 0.0]), InvalidValue, "no equilibrium"),
    (lambda m: control.LQR(m, Q=[1.0, 1.0, 1.0, -1.0]), InvalidValue, "Q: must be positive semi-definite"),
    (lambda m: control.LQR(m, Q=[[0, 1, 0, 0]] + [[0] * 4] * 3), InvalidValue, "Q: must be symmetric"),
    (lambda m: control.LQR(m, Q=[1.0, 1.0]), ShapeError, "Q"),
    (lambda m: control.LQR(m, R=0.0), InvalidValue, "R: must be positive definite"),
    (lambda m: control.SwingUp(control.Off(m), control.Off(m), 1.0), InvalidType, "regulator with a value"),
    (lambda m: control.SwingUp(control.Off(m), control.LQR(m), 0.0), InvalidValue, "threshold"),
    (lambda m: control.SwingUp(control.Off(m), control.LQR(m), 2.0, 1.0), InvalidValue, "release"),
    (lambda m: control.SwingUp(control.Off("acrobot"), control.LQR(library.acrobot("gym")), 2.0), InvalidValue, "two"),
    (lambda m: control.Then(control.Off(m), control.law("energy", m), 1.0), InvalidValue, "SwingUp has phases of its"),
    (lambda m: control.SwingUp(control.law("pfl", m), control.LQR(m), 1.0), InvalidValue, "SwingUp has phases of its"),
]


@pytest.mark.parametrize(("make", "error", "message"), BAD_LAWS)
def test_laws_that_can_not_be_are_refused(make, error, message):
    with pytest.raises(error, match=message) as caught:
        make(library.acrobot())
    assert isinstance(caught.value, CstormError)


def test_lost_coupling_is_named():
    """The motor of a slide across does not move a slide along."""
    along = Link("along", joint=Prismatic((1, 0, 0)), mass=1.0)
    across = Link("across", "along", Prismatic((0, 0, 1)), mass=1.0)
    law = control.NonCollocated(Mechanism([along, across], actuated=["across"]), goal=[0.0, 0.0])
    with pytest.raises(SingularInertia, match="across"):
        law(0.0, np.zeros(2), np.zeros(2))


# ---------------------------------------------------------------- tracking


@any_tree(examples=15, links=7)
def test_hybrid_tracking_gives_the_active_joints_their_accelerations(seed, links):
    rng = np.random.default_rng(seed)
    mech = random_mechanism(rng, links, MOVING)
    mech = mech.with_drive(actuated=[n for n in mech.names if n in mech.active or rng.random() < 0.5])
    if not mech.actuated:
        return
    law = control.HybridTracking(mech, kp=30.0, kd=7.0)
    k = len(law.followed)
    assert law.followed == (mech.active or mech.actuated)
    q, qd = rng.normal(size=(2, mech.n))
    q_r, qd_r, qdd_r = rng.normal(size=(3, k))
    at = np.array([mech.joint_index(name) for name in law.followed])
    tau = np.zeros(mech.n)
    tau[mech.actuated_mask] = law(0.0, q, qd, (q_r, qd_r, qdd_r))
    want = qdd_r + 7.0 * (qd_r - qd[at]) + 30.0 * (q_r - q[at])
    loads = np.abs(mech.inverse_dynamics(q, qd, mech.forward_dynamics(q, qd, tau))).max()
    got = mech.forward_dynamics(q, qd, tau)[at]
    assert_close(got, want, 1e-10 * max(1.0, loads, np.linalg.cond(mech.mass_matrix(q))))
    idle = [i for i, name in enumerate(mech.actuated) if name not in law.followed]
    assert not law(0.0, q, qd, (q_r, qd_r, qdd_r))[idle].any()


def test_a_reference_is_a_posture_a_motion_a_spline_or_a_function():
    mech = library.planar_2r()
    curve = BSpline.clamped(np.random.default_rng(0).normal(size=(8, 2)), duration=1.0, degree=5)
    q, qd = np.array([0.1, 0.2]), np.array([0.3, -0.4])
    told = control.ComputedTorque(mech)
    at = tuple(curve.evaluate(0.4))
    want = told(0.4, q, qd, at)
    for reference in (curve, lambda t: tuple(curve.evaluate(t)), at):
        assert_close(control.ComputedTorque(mech, reference=reference)(0.4, q, qd), want, 0)
    posture = control.ComputedTorque(mech, reference=[0.5, 0.6])
    assert_close(posture(0.0, q, qd), told(0.0, q, qd, (np.array([0.5, 0.6]), np.zeros(2), np.zeros(2))), 0)
    with pytest.raises(InvalidValue, match="nothing to follow"):
        told(0.0, q, qd)
    with pytest.raises(ShapeError, match="reference"):
        told(0.0, q, qd, (np.zeros(3), np.zeros(3), np.zeros(3)))


def test_references_for_all_joints_serve_laws_that_follow_with_some():
    mech = library.acrobot()
    for law in (control.PD(mech, 2.0, 3.0), control.HybridTracking(mech, 2.0, 3.0)):
        q, qd = np.array([0.1, 0.2]), np.array([0.3, -0.4])
        whole = (np.array([9.0, 1.0]), np.array([9.0, 2.0]), np.array([9.0, 3.0]))
        some = tuple(part[1:] for part in whole)
        assert_close(law(0.0, q, qd, whole), law(0.0, q, qd, some), 0)


def test_pd_rests_where_gravity_is_compensated():
    mech = library.puma560()
    q = np.random.default_rng(4).normal(size=6)
    still = np.zeros(6)
    law = control.PD(mech, 50.0, 10.0, reference=q, compensate=True)
    assert_close(mech.forward_dynamics(q, still, law(0.0, q, still)), still, 1e-9)
    hold = control.GravityCompensation(mech)
    assert_close(hold(0.0, q, still), mech.inverse_dynamics(q, still, still), 1e-12)
    assert_close(law(0.0, q, still), hold(0.0, q, still), 1e-12)


# ---------------------------------------------------------------- copies


@pytest.mark.parametrize("name", ["PD", "ComputedTorque", "HybridTracking"])
def test_a_ball_is_brought_to_its_reference_by_the_shorter_way(name):
    """Where a run exchanges a vector of half a turn for the opposite one it turned back, and never came to rest."""
    body = {"mass": 1.0, "com": (0, -0.3, 0), "inertia": (0.1, 0.2, 0.15)}
    lever = Link("lever", "rod", cs.Spherical(name="ball"), **body)
    mech = Mechanism([Link("rod", None, Revolute((1, 0, 0)), **body), lever], gravity=(0, 0, 0))
    law = getattr(control, name)(mech, 20.0, 2.0, [0.2, 0.3, -0.2, 2.9])
    q, qd = np.array([0.4, 0.2, 0.1, 3.3]), np.array([0.3, 1.0, -2.0, 0.5])
    ball, moments = mech.joint("ball"), []
    for longest in (4.0, np.pi):
        phi, rate = ball.recentred(q[1:], qd[1:], longest)
        tau = law(0.0, np.r_[q[0], phi], np.r_[qd[0], rate])
        moments.append([tau[0], *np.linalg.solve(ball.subspace(phi)[:3].T, tau[1:])])
    assert_close(np.array(moments[1]), np.array(moments[0]), 1e-10)
    for engine in ("interpreted", "compiled") if name == "PD" else ("compiled",):
        sim = cs.Simulation(engine=engine, live=False, progress=False)
        bd = sim.blockdiagram()
        plant = bd.HYBRIDDYNAMICS(mech, q0=[0.0, 0.0, 0.0, 2.5], qd0=[0, 0, 0, 9.0])
        bd.connect(plant[0:2], (made := bd.CONTROLLER(mech, law))[0:2])
        bd.connect(made.tau, plant.tau)
        out = sim.run(bd, T=10.0)
        assert out.events
        assert_close(out.x[-1], np.array([0.2, 0.3, -0.2, 2.9, 0, 0, 0, 0]), 1e-2)


def two_balls():
    """Two bodies on balls of which the second has no motor, and a spring that holds it by half a turn."""
    body = {"mass": 1.0, "com": (0, -0.3, 0), "inertia": (0.1, 0.2, 0.15)}
    hip, knee = cs.Spherical(name="hip"), cs.Spherical(name="knee", stiffness=5.0, damping=0.3, rest=(0.2, -0.3, 3.0))
    links = [Link("thigh", None, hip, **body), Link("shank", "thigh", knee, pose=np.eye(4), **body)]
    return Mechanism(links, gravity=(0, 0, 0), actuated=["hip"])


BALL_LAWS = {
    "LQR": control.LQR,
    "TVLQR": lambda mech, goal: control.TVLQR(mech, lambda t: (goal, 0 * goal, 0 * goal), t0=0.0, t1=1.0, steps=5),
    "EnergyPump": lambda mech, goal: control.EnergyPump(mech, goal=goal),
    "EnergyPFL": lambda mech, goal: control.EnergyPFL(mech, goal=goal),
    "PendulumPump": lambda mech, goal: control.PendulumPump(mech, goal=goal),
    "NonCollocated": lambda mech, goal: control.NonCollocated(mech, goal=goal),
    "MPC": lambda mech, goal: control.PredictiveController.of_mechanism(mech, 0.02, goal),
}


@pytest.mark.parametrize("name", BALL_LAWS)
def test_a_ball_goes_to_its_goal_by_the_shorter_way(name):
    """The same turn by another rotation vector had an error of a whole turn, and another moment."""
    if name == "MPC":
        pytest.importorskip("daqp")
    mech = two_balls()
    law = BALL_LAWS[name](mech, np.array([0.1, 0.2, 2.9, 0.2, -0.3, 3.0]))
    q, qd = np.array([0.2, 0.1, 3.3, 0.3, -0.5, 3.2]), np.array([1.0, -2.0, 0.5, 0.7, 0.2, -1.5])
    hip, moments, values = mech.joint("hip"), [], []
    for longest in (4.0, np.pi):
        sides = [hip.recentred(q[at], qd[at], longest) for at in (slice(3), slice(3, 6))]
        p, pd = (np.concatenate(parts) for parts in zip(*sides, strict=True))
        tau = law(np.concatenate([p, pd])) if name == "MPC" else law(0.0, p, pd)
        moments.append(np.linalg.solve(hip.subspace(p[:3])[:3].T, tau))
        values.append(law.value(0.0, p, pd) if hasattr(law, "value") else 0.0)
    assert_close(moments[1], moments[0], 1e-9 * max(1.0, np.abs(moments[0]).max()))
    assert values[1] == pytest.approx(values[0], rel=1e-9)


@pytest.mark.slow
def test_a_regulator_holds_a_ball_across_half_a_turn_in_a_run():
    """It went round the whole turn; the derivative of the end goes through law and exchange of vectors."""
    mech, goal = two_balls(), np.array([0.1, 0.2, 2.9, 0.2, -0.3, 3.0])
    law, rates = control.LQR(mech, goal), np.array([0.1, 0.2, -2.0, 0.3, 0.0, 0.0])
    options = {"T": 2.0, "solver": "DOP853", "rtol": 1e-10, "atol": 1e-10}
    ends = []
    for engine in ("interpreted", "compiled"):
        sim = cs.Simulation(engine=engine, live=False, progress=False)
        bd = sim.blockdiagram()
        plant = bd.HYBRIDDYNAMICS(mech, q0=[0.3, 0.2, -2.9, *goal[3:]], qd0=rates, name="plant")
        bd.connect(plant[0:2], (made := bd.CONTROLLER(mech, law))[0:2])
        bd.connect(made.tau, plant.tau)
        out = sim.run(bd, **options)
        assert [name for _, name in out.events] == ["plant"]
        assert np.linalg.norm(out.x[:, :3], axis=1).min() > 2.7
        ends.append(out.x[-1])
    assert_close(ends[1], ends[0], 1e-7)
    found = sim.gradient(bd, lambda out: out.x[-1], ["plant.qd0"], **options)

    def end(qd0):
        plant.qd0 = qd0
        return sim.run(bd, **options).x[-1]

    expected = central_difference(end, rates, 1e-3)
    assert_close(found.gradient, expected, 1e-6 * np.abs(expected).max())


def all_laws():
    mech = library.acrobot()
    arm = library.planar_2r()
    rest = BSpline.clamped(np.tile(UPRIGHT, (4, 1)), duration=0.1)
    named = [control.law(name, mech) for name in control.names()]
    return [
        *named,
        control.GravityCompensation(arm),
        control.ComputedTorque(arm, reference=[0.3, 0.4]),
        control.HybridTracking(mech, reference=[0.3]),
        control.TVLQR(mech, rest),
    ]


@pytest.mark.parametrize("law", all_laws(), ids=lambda law: type(law).__name__)
def test_copies_answer_the_same_and_go_their_own_way(law):
    q, qd = np.array([1.5, 0.1]), np.array([0.2, -0.1])
    for other in (copy.deepcopy(law), pickle.loads(pickle.dumps(law))):
        assert_close(other(0.05, q, qd), law(0.05, q, qd), 0)
        assert other.gains == law.gains
        if len(law.modes) > 1:
            other.switch(0.0, q, qd)
            assert other.mode != law.mode


@pytest.mark.parametrize("law", all_laws(), ids=lambda law: type(law).__name__)
def test_a_law_changes_nothing_when_it_is_asked(law):
    q, qd = np.array([1.5, 0.1]), np.array([0.2, -0.1])
    first = law(0.0, q, qd).copy()
    law(1.0, q + 1.0, qd - 1.0)
    law.margin(0.0, q, qd)
    assert law(0.0, q, qd).tolist() == first.tolist()
    assert (q.tolist(), qd.tolist()) == ([1.5, 0.1], [0.2, -0.1])


class Returns(control.Law):
    """A user's law that returns what it was made with."""

    def __init__(self, mech, value):
        super().__init__(mech)
        self.value = value

    def torque(self, t, q, qd, reference=None):
        return self.value() if callable(self.value) else self.value


@pytest.mark.parametrize("value", [2.0, [2.0], np.array(2.0), np.array([2]), np.float64(2.0)])
def test_a_users_law_may_return_a_number_for_one_motor(value):
    tau = Returns(library.acrobot(), value)(0.0, [0.1, 0.2], [0.0, 0.0])
    assert isinstance(tau, np.ndarray) and tau.tolist() == [2.0]


@pytest.mark.parametrize("value", [None, [1.0, 2.0], "much", [[1.0]], []])
def test_what_a_users_law_returns_is_checked(value):
    with pytest.raises(CstormError, match=r"Returns.torque\(\) \(for elbow\)"):
        Returns(library.acrobot(), value)(0.0, [0.1, 0.2], [0.0, 0.0])


def test_a_users_law_that_fails_is_named():
    class Unready(control.Law):
        def __init__(self, mech):
            self.kp = 1.0

    mech = library.acrobot()
    laws = LawSet({"mine": Returns(mech, lambda: 1 / 0)})
    with pytest.raises(BlockError, match="law 'mine': ZeroDivisionError"):
        laws(0.0, np.zeros(2), np.zeros(2))
    with pytest.raises(InvalidType, match=r"law 'mine': __init__ of Unready must call super\(\).__init__\(mech\)"):
        laws_by_name({"mine": Unready(mech)}, mech)
    with pytest.raises(InvalidType, match=r"got the class Returns; make one of it, as in Returns\(mech\)"):
        LawSet({"mine": Returns})
    with pytest.raises(InvalidType, match="got a function; write a class with the method torque"):
        LawSet({"mine": lambda t, q, qd: 0.0})
    with pytest.raises(NotImplementedError, match="Law: has no method torque"):
        control.Law(mech)(0.0, [0.0, 0.0], [0.0, 0.0])
    with pytest.raises(UnknownName, match=r"control.ComputedTorque\(mech"):
        control.law("computed torque", mech)


def test_goals_and_references_in_degrees_are_noted(caplog):
    caplog.set_level("INFO", "cstormpy")
    with pytest.raises(InvalidValue, match="no equilibrium"):
        control.LQR("acrobot", goal=[90.5, 0])
    control.PD("acrobot", 1.0, 1.0, reference=[90.5, 0])
    goal, reference = caplog.messages
    assert goal.startswith("joint 'shoulder': goal 90.5 rad") and reference.startswith(
        "joint 'shoulder': reference 90.5"
    )


def test_arguments_of_laws_that_are_missing_or_unknown_are_named():
    """Python counted positional arguments of `PD.__init__()`; a law may still be an abstract class."""

    class Own(control.Law, ABC):
        def __init__(self, mech, kd):
            super().__init__(mech)
            self.kd = kd

    for make, said in (
        (lambda: control.PD("acrobot"), "PD: needs 'kp', as in PD(mech, kp, kd)"),
        (lambda: control.LQR("acrobot", gol=[0, 0]), "LQR: argument 'gol' does not exist; did you mean 'goal'?"),
        (lambda: Own("acrobot"), "Own: needs 'kd', as in Own(mech, kd)"),
    ):
        with pytest.raises(CstormError, match=re.escape(said)):
            make()
    assert Own("acrobot", 2.0).gains == {"kd": 2.0}
