"""The Lie groups against 400 digits (mpmath), against the definitions, and against what must be refused.

EPS is the distance from 1 to the next float. Tolerances are multiples of it, of the size of the numbers involved:
reading a pose of entries of order 1 already costs EPS/2, so that "a few EPS" is the best that there can be.
"""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from lie_cases import EPS
from scipy.linalg import expm, logm
from test_graph_look_ups import check

import cstormpy as cs
from cstormpy import lie


def vectors(n, size=3.0):
    return arrays(float, n, elements=st.floats(-size, size))


fewer = settings(max_examples=40)  # of the slow ones
twists = vectors(6)
poses = twists.map(lie.exp_se3)
wrenches = vectors(6, 10.0)


def inertia_of(numbers):
    half = numbers[4:].reshape(3, 3)
    return lie.spatial_inertia(abs(numbers[0]), numbers[1:4], half @ half.T)


inertias = vectors(13).map(inertia_of)


@fewer
@given(twists)
def test_exp_and_log_agree_with_scipy(g):
    T = lie.exp_se3(g)
    np.testing.assert_allclose(T, expm(lie.hat6(g)), atol=1e-13)
    if np.linalg.norm(g[:3]) < 3:  # scipy's has its own trouble at π
        np.testing.assert_allclose(lie.hat6(lie.log_se3(T)), logm(T).real, atol=1e-11)


@given(poses)
def test_exp_undoes_log(T):
    np.testing.assert_allclose(lie.exp_se3(lie.log_se3(T)), T, atol=50 * EPS)
    np.testing.assert_allclose(lie.exp_so3(lie.log_so3(T[:3, :3])), T[:3, :3], atol=10 * EPS)


@given(twists)
def test_log_undoes_exp_inside_the_half_turn(g):
    g[:3] *= 3.1 / max(3.1, np.linalg.norm(g[:3]))
    np.testing.assert_allclose(lie.log_se3(lie.exp_se3(g)), g, atol=100 * EPS)
    np.testing.assert_allclose(lie.inverse(lie.exp_se3(g)), lie.exp_se3(-g), atol=20 * EPS)  # (1)


@given(poses, poses, twists)
def test_adjoint_is_a_homomorphism(A, B, h):
    size = (1 + np.abs(A).max()) * (1 + np.abs(B).max())
    np.testing.assert_allclose(lie.Ad(A @ B), lie.Ad(A) @ lie.Ad(B), atol=30 * EPS * size)
    np.testing.assert_allclose(lie.Ad(lie.inverse(A)) @ lie.Ad(A), np.eye(6), atol=30 * EPS * size**2)
    np.testing.assert_allclose(
        lie.Ad(A, lie.bracket(lie.hat6(h), lie.hat6(h[::-1]))),
        lie.bracket(lie.Ad(A, lie.hat6(h)), lie.Ad(A, lie.hat6(h[::-1]))),
        atol=1e3 * EPS * size**2,
    )


@given(twists, twists, twists)
def test_bracket_is_skew_and_satisfies_jacobi(x, y, z):
    np.testing.assert_allclose(lie.ad(x, y), -lie.ad(y, x), atol=4 * 9 * 2 * EPS)
    total = lie.ad(x, lie.ad(y, z)) + lie.ad(z, lie.ad(x, y)) + lie.ad(y, lie.ad(z, x))
    np.testing.assert_allclose(total, 0, atol=12 * 27 * 4 * EPS)


@fewer
@given(poses, twists, wrenches)
def test_vector_and_matrix_forms_agree(T, g, h):
    """(9) with (10), (11) with (12), (13) with (14), and (15), as [h*, g], with (16)."""
    size = 100 * EPS * (1 + np.abs(T).max()) ** 2
    np.testing.assert_allclose(lie.Ad(T, lie.hat6(h)), lie.hat6(lie.Ad(T, h)), atol=10 * size)
    np.testing.assert_allclose(lie.Ad_star(T, lie.hat6_star(h)), lie.hat6_star(lie.Ad_star(T, h)), atol=10 * size)
    for other in (g, lie.hat6(g)):
        np.testing.assert_allclose(lie.ad(other, lie.hat6(h)), lie.hat6(lie.ad(g, h)), atol=size)
        np.testing.assert_allclose(lie.ad_star(other, lie.hat6_star(h)), lie.hat6_star(lie.ad_star(g, h)), atol=size)
    np.testing.assert_array_equal(lie.bracket(lie.hat6(g), lie.hat6(h)), lie.ad(g, lie.hat6(h)))
    np.testing.assert_array_equal(lie.exp_se3(lie.hat6(g)), lie.exp_se3(g))


@given(poses, twists, twists, wrenches)
def test_duality(T, g, v, f):
    size = 1e3 * EPS * (1 + np.abs(T).max())
    assert abs(lie.Ad_star(T, f) @ v - f @ lie.Ad(T, v)) <= size
    assert abs(lie.ad_star(g, f) @ v - f @ lie.ad(g, v)) <= size
    assert abs(lie.transform_wrench(T, f) @ lie.transform_twist(T, v) - f @ v) <= size * (1 + np.abs(T).max())


@example(np.array([0.0, 1.0, 1.0, 1.0, 1.0, 1.0]), np.full(6, 2.22507386e-313))
@given(twists, twists)
def test_ad_is_the_derivative_of_Ad(g, h):
    """Central differences: their truncation is step²/6 |ad_g³ h|, their rounding EPS |Ad h|/step.

    Numbers too small for all their digits are rounded to the least there is.
    """
    step = EPS ** (1 / 3)
    rate = (lie.Ad(lie.exp_se3(step * g), h) - lie.Ad(lie.exp_se3(-step * g), h)) / (2 * step)
    size = np.linalg.norm(lie.ad(g), 2)
    tolerance = (step**2 / 6 * (1 + size) ** 3 + 20 * EPS / step) * 3 * np.abs(h).max()
    tolerance += 20 * np.finfo(float).smallest_subnormal / step
    np.testing.assert_allclose(rate, lie.ad(g, h), atol=tolerance, rtol=0)


@fewer
@given(twists, twists)
def test_Ad_of_exp_is_exp_of_ad(g, h):
    np.testing.assert_allclose(lie.Ad(lie.exp_se3(g)), expm(lie.ad(g)), atol=1e-12)


@given(twists, twists)
def test_derivatives_of_exp_go_together(g, dg):
    left, right = lie.dexp_se3(g, "left"), lie.dexp_se3(g, "right")
    np.testing.assert_allclose(lie.Ad(lie.exp_se3(g)) @ left, right, atol=1e-12)
    np.testing.assert_allclose(left[:3, :3], lie.dexp_so3(g[:3]), atol=0)
    np.testing.assert_allclose(left @ g, g, atol=1e-12)  # along itself a screw is constant
    np.testing.assert_allclose(lie.dexp_inv_se3(g) @ (left @ dg), dg, atol=1e-10)


def test_default_side_is_the_body_fixed_one():
    g, dg, step = np.array([0.3, -0.2, 0.9, 1, 2, 3]), np.array([1, 0.5, -0.7, 0.2, 0.1, -0.4]), EPS ** (1 / 3)
    rate = (lie.exp_se3(g + step * dg) - lie.exp_se3(g - step * dg)) / (2 * step)
    np.testing.assert_allclose(lie.body_velocity(lie.exp_se3(g), rate), lie.dexp_se3(g) @ dg, atol=1e-9)
    np.testing.assert_allclose(lie.world_velocity(lie.exp_se3(g), rate), lie.dexp_se3(g, "right") @ dg, atol=1e-9)


@given(poses, twists)
def test_body_and_world_velocity_are_one_twist_in_two_frames(T, V):
    dT = T @ lie.hat6(V)
    np.testing.assert_allclose(lie.body_velocity(T, dT), V, atol=100 * EPS * (1 + np.abs(T).max()))
    np.testing.assert_allclose(lie.world_velocity(T, dT), lie.transform_twist(T, V), atol=1e-12)


@given(poses, twists, st.floats(-3, 3))
def test_both_forms_of_a_joint(M, S, q):
    """Section 2.6: M exp(S q) = exp(S' q) M with S' = Ad_M S."""
    moved = lie.exp_se3(lie.Ad(M, S) * q) @ M
    np.testing.assert_allclose(M @ lie.exp_se3(S * q), moved, atol=1e-11)


@given(vectors(3), vectors(3))
def test_so3_is_the_rotation_part_of_se3(x, y):
    R = lie.exp_so3(x)
    np.testing.assert_allclose(lie.Ad(R, y), R @ y, atol=10 * EPS)
    np.testing.assert_array_equal(lie.Ad_star(R), R.T)
    np.testing.assert_allclose(lie.ad(x, y), np.cross(x, y), atol=10 * EPS)
    np.testing.assert_array_equal(lie.ad_star(x), lie.hat3(x).T)
    np.testing.assert_allclose(lie.vee3(lie.bracket(lie.hat3(x), lie.hat3(y))), np.cross(x, y), atol=20 * EPS)


@given(arrays(float, 6, elements=st.floats(allow_nan=False, allow_infinity=False)))
def test_hat_and_vee_are_exact_inverses_over_all_floats(g):
    np.testing.assert_array_equal(lie.vee6(lie.hat6(g)), g)
    np.testing.assert_array_equal(lie.vee6_star(lie.hat6_star(g)), g)
    np.testing.assert_array_equal(lie.vee3(lie.hat3(g[:3])), g[:3])


@fewer
@given(inertias, twists, poses)
def test_energy_and_power_do_not_depend_on_the_frame(J, V, T):
    moved, V_a = lie.transform_inertia(T, J), lie.transform_twist(T, V)
    size = 1e3 * EPS * (1 + np.abs(T).max()) ** 4 * (1 + np.abs(J).max())
    np.testing.assert_array_equal(moved, moved.T)
    assert abs(lie.kinetic_energy(moved, V_a) - lie.kinetic_energy(J, V)) <= size
    momentum = lie.transform_momentum(T, lie.momentum(J, V))
    np.testing.assert_allclose(lie.momentum(moved, V_a), momentum, atol=size)  # Kim (24)


@given(vectors(13), poses)
def test_inertia_of_a_moved_centre_of_mass_frame(numbers, T):
    """Kim (22) from Kim (21)."""
    half = numbers[4:].reshape(3, 3)
    central, mass = half @ half.T, abs(numbers[0])
    J = lie.transform_inertia(T, lie.spatial_inertia(mass, np.zeros(3), central))
    size = EPS * (1 + np.abs(T).max()) ** 2 * (1 + mass + np.abs(central).max())
    np.testing.assert_allclose(lie.spatial_inertia(mass, T[:3, 3], central, T[:3, :3]), J, atol=100 * size)


def test_energy_of_particles():
    """Kim (14): half the sum of m |v|² over the particles of a rigid body."""
    rng = np.random.default_rng(1)
    masses, points, V = rng.uniform(0.1, 2, 9), rng.normal(size=(9, 3)), rng.normal(size=6)
    com = masses @ points / masses.sum()
    arms = lie.hat3(points - com)
    inertia = (masses[:, None, None] * (np.swapaxes(arms, 1, 2) @ arms)).sum(axis=0)
    J = lie.spatial_inertia(masses.sum(), com, inertia)
    np.testing.assert_allclose(J, lie.spatial_inertia(masses, points, np.zeros((3, 3))).sum(axis=0), atol=1e-13)
    speed = V[3:] + np.cross(V[:3], points)
    np.testing.assert_allclose(lie.kinetic_energy(J, V), 0.5 * masses @ (speed**2).sum(axis=1), rtol=1e-13)
    np.testing.assert_allclose(lie.momentum(J, V)[:3], (masses @ np.cross(points, speed)), atol=1e-13)


@given(vectors(13), twists, twists)
def test_rate_of_momentum_is_newton_and_euler(numbers, V, dV):
    """(18), written with lemma 2, against (20) and (21)."""
    half, m, r = numbers[4:].reshape(3, 3), abs(numbers[0]), numbers[1:4]
    I_c, J = half @ half.T, lie.spatial_inertia(m, r, half @ half.T)
    w, v, dw = V[:3], V[3:], dV[:3]
    a = dV[3:] + np.cross(w, v) + np.cross(dw, r) + np.cross(w, np.cross(w, r))
    moment = I_c @ dw + np.cross(w, I_c @ w) + m * np.cross(r, a)
    F = lie.wrench_rate(lie.momentum(J, V), lie.momentum(J, dV), V)
    np.testing.assert_allclose(F, np.concatenate([moment, m * a]), atol=1e-10)


@fewer
@given(poses, twists, twists, twists, wrenches)
def test_rates_in_a_moving_frame_are_rates_in_a_fixed_one(T, V, X, dX, dY):
    """Lemmas 1 and 2 by their proof: carried to the fixed frame, differenced there, carried back."""
    step, Y = EPS ** (1 / 3), X[::-1].copy()

    def rate(carry, x, dx):
        ahead, behind = (T @ lie.exp_se3(s * V) for s in (step, -step))
        change = (carry(ahead, x + step * dx) - carry(behind, x - step * dx)) / (2 * step)
        return carry(lie.inverse(T), change)

    scale = (1 + np.abs(T).max()) ** 2
    tolerance = scale * (step**2 * (1 + np.linalg.norm(V)) ** 3 * 60 + 1e4 * EPS / step)
    np.testing.assert_allclose(lie.twist_rate(X, dX, V), rate(lie.transform_twist, X, dX), atol=tolerance)
    np.testing.assert_allclose(lie.wrench_rate(Y, dY, V), rate(lie.transform_wrench, Y, dY), atol=tolerance)
    np.testing.assert_allclose(lie.vector_rate(X[3:], dX[3:], V[:3]), dX[3:] + np.cross(V[:3], X[3:]), atol=1e-13)


def test_mended_rotation_is_the_nearest():
    R = lie.exp_so3([1, 2, -0.5])
    noise = 1e-3 * np.random.default_rng(0).normal(size=(20, 3, 3))
    mended = lie.nearest_rotation(R + noise)
    assert lie.is_rotation(mended, 16 * EPS)
    for other in (R, lie.exp_so3([1e-4, 0, 0]) @ mended, mended @ lie.exp_so3([0, -1e-5, 1e-5])):
        assert np.all(np.linalg.norm(mended - R - noise, axis=(1, 2)) < np.linalg.norm(other - R - noise, axis=(1, 2)))


# ---------------------------------------------------------------- symbols
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
