"""Silver's derivation, line by line: against exact derivatives of the kinetic energy, and ω against Ẇ."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from closeness import STEP, assert_close, complex_step
from hypothesis import given, settings
from hypothesis import strategies as st
from random_mechanisms import random_mechanism, random_rotation, random_state

from cstormpy.formulations import silver_energy as se
from cstormpy.formulations import silver_rotation as sr

seeds = st.integers(0, 2**32 - 1)


# ---------------------------------------------------------------- section 2
class Body:
    """A body of points that turns: what Silver's section 2 speaks of, with one coordinate q that turns it, too."""

    def __init__(self, rng):
        self.dm, points = rng.uniform(0.1, 1.0, 7), rng.normal(size=(7, 3))
        self.r = points - self.dm @ points / self.dm.sum()  # from the centre of mass, in the body's axes
        self.W = random_rotation(rng)
        self.w, self.wd, self.w_qd = rng.normal(size=(3, 3))

    @property
    def fixed(self):
        """Return the points in fixed axes."""
        return self.r @ self.W.T


def test_identities_of_the_permutation_tensor():
    delta = np.eye(3)
    assert_close(np.einsum("ijk,ijl->kl", sr.P, sr.P), 2 * delta, 1e-15)  # (2.3)
    pairs = np.einsum("jl,km->jklm", delta, delta) - np.einsum("jm,kl->jklm", delta, delta)
    assert_close(np.einsum("ijk,ilm->jklm", sr.P, sr.P), pairs, 1e-15)  # (2.4)
    for i, j, k in product(range(3), repeat=3):
        assert sr.P[i, j, k] == np.linalg.det(np.eye(3)[[i, j, k]])


def test_cross_and_triple_product():
    a, b, c = np.random.default_rng(2).normal(size=(3, 3))
    assert_close(sr.cross(a, b), np.cross(a, b), 1e-15)
    assert_close(sr.triple(a, b, c), np.linalg.det([a, b, c]), 1e-14)


@settings(max_examples=10)
@given(seed=seeds)
def test_rate_of_the_matrix_is_the_angular_velocity_and_back(seed):
    b = Body(np.random.default_rng(seed))
    Wd = sr.matrix_rate(b.w, b.W)
    assert_close(b.r @ Wd.T, np.cross(b.w, b.fixed), 1e-13)  # (2.5): both say how the points move
    assert_close(sr.angular_velocity(b.W, Wd), b.w, 1e-13)  # (2.6)
    swing = np.cross(b.wd, b.fixed) + np.cross(b.w, np.cross(b.w, b.fixed))
    assert_close(b.r @ sr.matrix_acceleration(b.w, b.wd, b.W).T, swing, 1e-12)


@settings(max_examples=10)
@given(seed=seeds)
def test_kinetic_energy_and_inertia_in_both_forms(seed):
    b = Body(np.random.default_rng(seed))
    J, inertia = sr.second_moment(b.dm, b.r), sr.inertia(b.dm, b.fixed)  # (2.7), (2.9)
    want = sum(m * v @ v for m, v in zip(b.dm, np.cross(b.w, b.fixed), strict=True)) / 2
    assert_close(sr.kinetic_energy_from_matrix(sr.matrix_rate(b.w, b.W), J), want, 1e-12)  # (2.8)
    assert_close(sr.kinetic_energy_from_vector(b.w, inertia), want, 1e-12)  # (2.10)
    body_fixed = sr.inertia(b.dm, b.r)
    assert_close(sr.inertia_from_second_moment(J), body_fixed, 1e-12)  # (2.11)
    assert_close(sr.second_moment_from_inertia(body_fixed), J, 1e-12)  # (2.11)


@settings(max_examples=10)
@given(seed=seeds)
def test_generalised_force_is_the_same_in_both_forms(seed):
    """The table at the end of section 2.4: "their equality can be verified by direct substitution"."""
    b = Body(np.random.default_rng(seed))
    acceleration = np.cross(b.wd, b.fixed) + np.cross(b.w, np.cross(b.w, b.fixed))
    want = sum(m * a @ d for m, a, d in zip(b.dm, acceleration, np.cross(b.w_qd, b.fixed), strict=True))
    by_vector = sr.force_from_vector(b.w, b.wd, sr.inertia(b.dm, b.fixed), b.w_qd)
    Wdd, W_q = sr.matrix_acceleration(b.w, b.wd, b.W), sr.matrix_rate(b.w_qd, b.W)
    assert_close(by_vector, want, 1e-12)
    assert_close(sr.force_from_matrix(Wdd, sr.second_moment(b.dm, b.r), W_q), want, 1e-12)


# ---------------------------------------------------------------- section 3.1 and appendix A
@pytest.fixture(params=[1, 2, 3])
def case(request):
    rng = np.random.default_rng(request.param)
    mech = random_mechanism(rng, links=6, kinds=se.KINDS, terms=False)
    return mech, *random_state(rng, mech)


def along(case, f):
    """Return the rate of f(motion) along the motion, by complex step."""
    mech, q, qd, qdd = case
    h = 1j * STEP
    return np.imag(f(se.motion(mech, q + h * qd, qd + h * qdd, qdd))) / STEP


def to_q(case, f):
    """Return ∂f/∂q by complex step, the last axis by joint."""
    mech, q, qd, qdd = case
    return complex_step(lambda x: f(se.motion(mech, x, qd, qdd)), q)


def to_qd(case, f):
    """Return ∂f/∂q̇ by complex step, the last axis by joint."""
    mech, q, qd, qdd = case
    return complex_step(lambda x: f(se.motion(mech, q, x, qdd)), qd)


def pairs(case):
    """Return every link i and joint j that carries it, with the number of the joint."""
    mech = case[0]
    m = se.motion(*case)
    return m, [(i, j, k) for k, j in enumerate(mech.joint_links) for i in m.over[j]]


def test_motion_is_that_of_the_kernels(case):
    mech, q, qd, _ = case
    m = se.motion(*case)
    X = mech.forward_kinematics(q)
    for i, link in enumerate(mech.links):
        twist, R = mech.jacobian(q, link.name) @ qd, X[i, :3, :3]
        assert_close(m.r[i], R @ link.com + X[i, :3, 3], 1e-12)
        assert_close(m.w[i], R @ twist[:3], 1e-12)  # (3.14)
        assert_close(m.v[i], R @ (twist[3:] + np.cross(twist[:3], link.com)), 1e-12)  # (3.13)
    assert_close(m.wd, along(case, lambda m: m.w), 1e-12)
    assert_close(m.vd, along(case, lambda m: m.v), 1e-12)


def test_partial_velocities_are_derivatives_to_the_rates(case):
    m, all_pairs = pairs(case)
    v_qd, w_qd = to_qd(case, lambda m: m.v), to_qd(case, lambda m: m.w)
    for i, j, k in all_pairs:
        assert_close(se.v_qd(m, j, m.r[i]), v_qd[i, :, k], 1e-12)  # (3.15)
        assert_close(se.w_qd(m, j), w_qd[i, :, k], 1e-12)  # (3.16)


def test_appendix_a_by_exact_derivatives(case):
    m, all_pairs = pairs(case)
    r_q, v_q, w_q = (to_q(case, lambda m, f=f: getattr(m, f)) for f in ("r", "v", "w"))
    z_q, I_q = to_q(case, lambda m: m.z), to_q(case, lambda m: m.I)
    I_rate = along(case, lambda m: m.I)
    for i, j, k in all_pairs:
        assert_close(se.v_qd(m, j, m.r[i]), r_q[i, :, k], 1e-12)  # (A.1)
        assert_close(se.v_q(m, i, j), v_q[i, :, k], 1e-11)
        assert_close(se.w_q(m, i, j), w_q[i, :, k], 1e-11)
        assert_close(se.w_qd_rate(m, j), along(case, lambda m, j=j: se.w_qd(m, j)), 1e-12)  # (A.2)
        assert_close(se.z_q(m, i, j), z_q[i, :, k], 1e-12)  # (A.3)
        assert_close(se.I_q(m, i, j), I_q[i, :, :, k], 1e-12)
        assert_close(se.I_rate(m, i), I_rate[i], 1e-11)


def test_lemmas_3_4_to_3_7_and_3_10(case):
    m, all_pairs = pairs(case)
    for i, j, _ in all_pairs:
        w, inertia, w_qd = m.w[i], m.I[i], se.w_qd(m, j)
        gyroscopic = np.cross(w, inertia @ w) @ w_qd
        assert_close(se.v_qd_rate(m, i, j), se.v_q(m, i, j), 1e-11)  # (3.4)
        assert_close(w @ se.I_rate(m, i) @ w_qd, gyroscopic, 1e-11)  # (3.5)
        assert_close(se.w_qd_rate(m, j), se.w_q(m, i, j) + np.cross(w, w_qd), 1e-11)  # (3.6)
        assert_close(w @ inertia @ np.cross(w, w_qd), -gyroscopic, 1e-11)  # (3.7)
        assert_close(w @ se.I_q(m, i, j) @ w / 2, -gyroscopic, 1e-11)  # (3.10)


def test_last_proof_has_the_sign_that_we_say_and_not_the_printed_one(case):
    m, _ = pairs(case)
    wrong = []
    for j in m.tree.joint_links:
        for i in m.over[j]:
            between = sum(
                (m.qd[k] * se.w_qd(m, k) for k in m.path[i] if k not in m.path[j]), np.zeros(3)
            )  # Σ q̇_k ẑ_k for k = j + 1, ..., i
            assert_close(m.w[i] - between, m.w[j], 1e-12)
            wrong.append(np.abs(m.w[i] + between - m.w[j]).max())
    assert max(wrong) > 0.1


def test_energy_and_its_derivatives(case):
    mech, q, qd, _ = case
    m, _ = pairs(case)
    assert_close(se.kinetic_energy(m), mech.energy(q, qd)[0], 1e-12)  # (3.1)
    K_qd, K_q = to_qd(case, se.kinetic_energy), to_q(case, se.kinetic_energy)
    total = mech.inverse_dynamics(*case[1:]) - mech.gravity_load(q)
    for k, j in enumerate(mech.joint_links):
        rate = along(case, lambda m, j=j: se.momentum(m, j))
        assert_close(se.momentum(m, j), K_qd[k], 1e-11)  # (3.2)
        assert_close(se.momentum_rate_by_parts(m, j), rate, 1e-11)  # (3.3)
        assert_close(se.momentum_rate(m, j), rate, 1e-11)  # (3.8)
        assert_close(se.slope(m, j), K_q[k], 1e-11)  # (3.9)
        assert_close(se.momentum_rate(m, j) - se.slope(m, j), total[k], 1e-10)  # (3.11)
