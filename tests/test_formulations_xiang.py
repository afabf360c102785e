"""Xiang, Arora and Abdel-Malek's Lagrangians: their printed example, our kernels, and exact derivatives."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest
from closeness import assert_close, complex_step
from hypothesis import given, settings
from hypothesis import strategies as st
from random_mechanisms import in_a_row, random_loads, random_mechanism, random_state
from xiang_arm import xiang_sensitivity as printed_sensitivity
from xiang_arm import xiang_torque as printed_torque

from cstormpy.errors import InvalidType, InvalidValue, ShapeError, UnknownName
from cstormpy.formulations import (
    hollerbach,
    hollerbach_3x3,
    lagrange,
    silver,
    silver_energy,
    uicker_kahn,
    xiang,
    xiang_regular,
)
from cstormpy.formulations import xiang_sensitivity as recursive
from cstormpy.formulations.counting import counted
from cstormpy.formulations.xiang import Load
from cstormpy.mechanism import Link, Mechanism, Revolute, library

seeds = st.integers(0, 2**32 - 1)


def tree(rng, links=6):
    """Return a random mechanism of the joints that the paper knows."""
    return random_mechanism(rng, links=links, kinds=xiang.KINDS)


def row(rng, links=5):
    """Return such a mechanism without branches."""
    return in_a_row(tree(rng, links))


def space_loads(rng, mech, moments=True):
    """Return loads fixed in space, two of them on one link."""
    names = [link.name for link in mech.links]
    return [Load(names[k], rng.normal(size=3), rng.normal(size=3) * moments, rng.normal(size=3)) for k in (0, 2, 2, -1)]


def as_wrenches(mech, q, loads):
    """Return the wrenches that are these loads in this position: (moment, force) in link frames."""
    rows, X = np.zeros((len(mech.links), 6)), mech.forward_kinematics(q)
    for load in loads:
        i = mech.link_index(load.link)
        R = X[i, :3, :3]
        force = R.T @ load.force
        rows[i] += np.concatenate([R.T @ load.moment + np.cross(load.point, force), force])
    return rows


# ---------------------------------------------------------------- agreement with the kernels
@settings(max_examples=10)
@given(seed=seeds)
def test_recursive_lagrangian_is_the_kernels_with_all_loads_and_a_moving_base(seed):
    rng = np.random.default_rng(seed)
    mech = tree(rng)
    q, qd, qdd = random_state(rng, mech)
    given_loads = random_loads(rng, mech)
    assert_close(
        xiang.inverse_dynamics(mech, q, qd, qdd, **given_loads), mech.inverse_dynamics(q, qd, qdd, **given_loads), 1e-10
    )
    want = mech.inverse_sensitivity(q, qd, qdd, **given_loads)
    got = recursive.inverse_sensitivity(mech, q, qd, qdd, **given_loads)
    for ours, theirs in zip(got, (want.dy_dq, want.dy_dqd, want.dy_du), strict=True):
        assert_close(ours, theirs, 1e-10)
    assert_close(recursive.mass_matrix(mech, q), mech.mass_matrix(q), 1e-10)


@settings(max_examples=6)
@given(seed=seeds)
def test_regular_lagrangian_is_the_kernels_on_chains(seed):
    rng = np.random.default_rng(seed)
    mech = row(rng)
    q, qd, qdd = random_state(rng, mech)
    wrench = random_loads(rng, mech, base=False)["wrench"]
    assert_close(
        xiang_regular.inverse_dynamics(mech, q, qd, qdd, wrench), mech.inverse_dynamics(q, qd, qdd, wrench), 1e-10
    )
    want = mech.inverse_sensitivity(q, qd, qdd, wrench)
    got = xiang_regular.inverse_sensitivity(mech, q, qd, qdd, wrench)
    for ours, theirs in zip(got, (want.dy_dq, want.dy_dqd, want.dy_du), strict=True):
        assert_close(ours, theirs, 1e-10)
    assert_close(xiang_regular.mass_matrix(mech, q), mech.mass_matrix(q), 1e-10)


# ---------------------------------------------------------------- loads fixed in space
@settings(max_examples=6)
@given(seed=seeds)
def test_loads_fixed_in_space_are_wrenches_that_turn_back(seed):
    """The torques do not care in which frame a load is fixed; their derivatives do."""
    rng = np.random.default_rng(seed)
    mech = tree(rng)
    q, qd, qdd = random_state(rng, mech)
    loads = space_loads(rng, mech)
    got = xiang.inverse_dynamics(mech, q, qd, qdd, loads=loads)
    assert_close(got, mech.inverse_dynamics(q, qd, qdd, as_wrenches(mech, q, loads)), 1e-10)
    dq = recursive.inverse_sensitivity(mech, q, qd, qdd, loads=loads)[0]
    assert_close(dq, complex_step(lambda x: xiang.inverse_dynamics(mech, x, qd, qdd, loads=loads), q), 1e-10)
    turning = mech.inverse_sensitivity(q, qd, qdd, as_wrenches(mech, q, loads)).dy_dq
    for load in loads:
        J, one = mech.jacobian(q, load.link), as_wrenches(mech, q, [load])[mech.link_index(load.link)]
        moment = one[:3] - np.cross(load.point, one[3:])
        for k in range(mech.n):  # in the link's frame the load turns back by the link's rotation
            back = -np.cross(J[:3, k], one[3:])
            turning[:, k] -= J.T @ np.concatenate([np.cross(load.point, back) - np.cross(J[:3, k], moment), back])
    assert_close(dq, turning, 1e-10)


def test_forces_fixed_in_space_in_the_regular_lagrangian():
    rng = np.random.default_rng(10)
    mech = row(rng)
    q, qd, qdd = random_state(rng, mech)
    loads = space_loads(rng, mech, moments=False)
    for got, want in zip(
        (xiang_regular.inverse_dynamics(mech, q, qd, qdd, loads=loads),
         *xiang_regular.inverse_sensitivity(mech, q, qd, qdd, loads=loads)),
        (xiang.inverse_dynamics(mech, q, qd, qdd, loads=loads),
         *recursive.inverse_sensitivity(mech, q, qd, qdd, loads=loads)),
        strict=True,
    ):  # fmt: skip
        assert_close(got, want, 1e-10)


# ---------------------------------------------------------------- (36), (38): moving base, cut joints
def test_moving_base_moves_the_loads_that_are_fixed_to_links_along():
    """What the base does must not depend on how it got there: derivatives by complex step, with everything at once."""
    rng = np.random.default_rng(11)
    mech = tree(rng)
    q, qd, qdd = random_state(rng, mech)
    given_loads = random_loads(rng, mech) | {"loads": space_loads(rng, mech)}
    got = recursive.inverse_sensitivity(mech, q, qd, qdd, **given_loads)
    arguments = [q, qd, qdd]
    for place, derivative in enumerate(got):

        def torque(x, place=place):
            return xiang.inverse_dynamics(
                mech, *(x if k == place else a for k, a in enumerate(arguments)), **given_loads
            )

        assert_close(derivative, complex_step(torque, arguments[place]), 1e-10)


def four_bar():
    """Return a four-bar linkage whose last joint, between rocker and coupler, is cut, and its sides."""
    hinge = {"mass": 1.0, "com": (0.2, 0, 0), "inertia": np.diag([0.0, 0.02, 0.02])}
    there = np.eye(4)
    there[0, 3] = 0.4
    foot = np.eye(4)
    foot[0, 3] = 0.6
    mech = Mechanism(
        [
            Link("crank", None, Revolute((0, 0, 1)), **hinge),
            Link("coupler", "crank", Revolute((0, 0, 1)), there, **hinge),
            Link("rocker", None, Revolute((0, 0, 1)), foot, **hinge),
        ]
    )
    return mech, ("coupler", (0.6, 0.0, 0.0)), ("rocker", (0.4, 0.0, 0.0))


def test_forces_at_a_cut_joint_do_no_work_when_the_loop_stays_closed():
    mech, first, second = four_bar()
    for crank in (0.5, 1.0, 1.8):  # a parallelogram: crank and rocker turn alike, the coupler not at all
        q, qd = np.array([crank, -crank, crank]), np.array([1.0, -1.0, 1.0])
        assert_close(xiang.gap(mech, q, first, second), np.zeros(3), 1e-15)
        qdd = np.array([0.7, -0.7, 0.7])
        free = xiang.inverse_dynamics(mech, q, qd, qdd)
        held = xiang.inverse_dynamics(mech, q, qd, qdd, loads=xiang.cut_joint(first, second, (3.0, -2.0, 0.0)))
        assert abs((held - free) @ qd) < 1e-14
        assert np.abs(held - free).max() > 0.1


def test_force_at_the_cut_carries_a_passive_linkage():
    """With motors at the crank alone, the force at the cut follows from the passive joints; the power then agrees."""
    mech, first, second = four_bar()
    q, qd, qdd = np.array([1.0, -1.0, 1.0]), np.array([1.0, -1.0, 1.0]), np.array([0.7, -0.7, 0.7])
    free = xiang.inverse_dynamics(mech, q, qd, qdd)
    columns = [
        xiang.inverse_dynamics(mech, q, qd, qdd, loads=xiang.cut_joint(first, second, e)) - free for e in np.eye(3)[:2]
    ]
    force = np.linalg.solve(np.array(columns).T[1:], -free[1:])
    tau = xiang.inverse_dynamics(mech, q, qd, qdd, loads=xiang.cut_joint(first, second, [*force, 0.0]))
    assert_close(tau[1:], np.zeros(2), 1e-13)
    # The crank's motor alone must bring the power: d/dt of the kinetic energy, and what gravity takes.
    M, gravity = mech.mass_matrix(q), mech.gravity_load(q)
    bias = mech.bias(q, qd) - gravity
    power = qd @ (M @ qdd) + qd @ bias + qd @ gravity
    assert_close(tau[0] * qd[0], power, 1e-13)


def test_gap_of_an_open_loop():
    mech, first, second = four_bar()
    np.testing.assert_allclose(xiang.gap(mech, [0.0, 0.0, 0.0], first, second), [0.0, 0.0, 0.0], atol=1e-15)
    np.testing.assert_allclose(xiang.gap(mech, [0.0, np.pi / 2, 0.0], first, second), [-0.6, 0.6, 0.0], atol=1e-15)
    np.testing.assert_allclose(xiang.gap(mech, [0.0] * 3, first, (None, (0, 0, 1))), [1.0, 0.0, -1.0], atol=1e-15)


# ---------------------------------------------------------------- (43)-(65), (69)-(82): the two-link manipulator
L1 = L2 = 0.4
l1 = l2 = 0.2
m1 = m2 = 0.5
I1 = I2 = 0.1
g = 9.8062
f = 10.0


def two_link():
    """Return Table 1 and 2 as printed: frames at the far ends of the links, as Denavit and Hartenberg have them."""
    links = []
    for name, parent, L, middle, m, inertia in (("1", None, L1, l1, m1, I1), ("2", "1", L2, l2, m2, I2)):
        far = np.eye(4)
        far[0, 3] = L
        hinge = Revolute((0, 0, 1), point=(-L, 0, 0))
        links.append(Link(name, parent, hinge, far, m, (middle - L, 0, 0), np.diag([0.0, inertia, inertia])))
    return Mechanism(links, gravity=(0, -g, 0))


EVERY = [lagrange, uicker_kahn, hollerbach, hollerbach_3x3, silver, silver_energy, xiang, xiang_regular]
LOAD = [Load("2", force=(0, -f, 0))]  # (50), (51): at the origin of frame 2


def dh(t, L, order=0):
    """Return T of (43), or its derivative to the angle: sine and cosine move on by a quarter turn."""
    c, s = np.cos(t + order * np.pi / 2), np.sin(t + order * np.pi / 2)
    T = np.array([[c, -s, 0, L * c], [s, c, 0, L * s], [0, 0, 1, 0], [0, 0, 0, 1]])
    return T if order == 0 else T * [[1, 1, 1, 1], [1, 1, 1, 1], [0, 0, 0, 0], [0, 0, 0, 0]]


def test_printed_matrices_of_the_two_link_manipulator():
    rng = np.random.default_rng(43)
    q, qd, qdd = rng.uniform(-3, 3, (3, 2))
    s = xiang.system(two_link(), q, qd, qdd, None, None, LOAD)
    k = xiang.kinematics(s)
    d = xiang.dynamics(s, k)
    (t1, t2), (w1, w2), (a1, a2) = q, qd, qdd
    T1, dT1, ddT1 = (dh(t1, L1, order) for order in range(3))
    T2, dT2, ddT2 = (dh(t2, L2, order) for order in range(3))
    assert_close(k.T, [T1, T2], 1e-15)  # (43)
    assert_close(k.A[:2], [T1, T1 @ T2], 1e-15)  # (44)
    B1 = dT1 * w1
    assert_close(k.B[:2], [B1, B1 @ T2 + T1 @ dT2 * w2], 1e-14)  # (45)
    C1 = ddT1 * w1**2 + dT1 * a1
    C2 = C1 @ T2 + 2 * B1 @ dT2 * w2 + T1 @ ddT2 * w2**2 + T1 @ dT2 * a2
    assert_close(k.C[:2], [C1, C2], 1e-14)  # (46)
    J1, J2 = np.zeros((2, 4, 4))
    for J, inertia, m, c in ((J1, I1, m1, l1 - L1), (J2, I2, m2, l2 - L2)):
        J[0, 0], J[0, 3], J[3, 0], J[3, 3] = inertia + m * c**2, m * c, m * c, m
    assert_close(s.body.J, [J1, J2], 1e-15)  # (47)
    D2 = J2 @ C2.T
    assert_close(d.D, [J1 @ C1.T + T2 @ D2, D2], 1e-14)  # (48)
    E2 = m2 * np.array([l2 - L2, 0, 0, 1])
    assert_close(d.E, [m1 * np.array([l1 - L1, 0, 0, 1]) + T2 @ E2, E2], 1e-15)  # (49)
    F2, f2 = np.array([0, 0, 0, 1]), np.array([0, -f, 0, 0])
    assert_close(d.F, [np.outer(T2 @ F2, f2), np.outer(F2, f2)], 1e-14)  # (50), (51), with the force multiplied out
    assert not d.G.any()


@pytest.mark.parametrize("module", [xiang, xiang_regular])
def test_printed_torques_of_the_two_link_manipulator(module):
    rng = np.random.default_rng(52)
    for _ in range(5):
        q, qd, qdd = rng.uniform(-3, 3, (3, 2))
        got = module.inverse_dynamics(two_link(), q, qd, qdd, loads=LOAD)
        assert_close(got, printed_torque(*q, *qd, *qdd, f), 1e-13)  # (52), (53), (69), (70)


@pytest.mark.parametrize("module", EVERY, ids=lambda module: module.__name__.rpartition(".")[2])
def test_every_formulation_has_the_printed_torques(module):
    """The force at the tip turns with the link here, which makes no difference to (69), (70) at this moment."""
    rng = np.random.default_rng(69)
    mech, (q, qd, qdd) = two_link(), rng.uniform(-3, 3, (3, 2))
    wrench = as_wrenches(mech, q, LOAD)
    assert_close(module.inverse_dynamics(mech, q, qd, qdd, wrench), printed_torque(*q, *qd, *qdd, f), 1e-13)


@pytest.mark.parametrize("module", [lagrange, recursive, xiang_regular])
def test_printed_mass_matrix_of_the_two_link_manipulator(module):
    q, still = np.array([0.4, -1.3]), [0.0, 0.0]
    want = printed_sensitivity(*q, *still, *still, 0.0)[2]
    assert_close(module.mass_matrix(two_link(), q), want, 1e-14)  # (75), (76), (81), (82)


@pytest.mark.parametrize("module", [recursive, xiang_regular])
def test_printed_sensitivities_of_the_two_link_manipulator(module):
    rng = np.random.default_rng(54)
    for _ in range(5):
        q, qd, qdd = rng.uniform(-3, 3, (3, 2))
        got = module.inverse_sensitivity(two_link(), q, qd, qdd, loads=LOAD)
        for ours, theirs in zip(got, printed_sensitivity(*q, *qd, *qdd, f), strict=True):
            assert_close(ours, theirs, 1e-13)  # (54)-(65), (71)-(82)


# ---------------------------------------------------------------- growth of the operations
def test_counting_numbers_give_the_same_sensitivities():
    rng = np.random.default_rng(12)
    mech = row(rng, links=3)
    state, wrench = random_state(rng, mech), random_loads(rng, mech, base=False)["wrench"]
    for function in (recursive.inverse_sensitivity, xiang_regular.inverse_sensitivity):
        got, tally = counted(function, mech, *state, wrench)
        assert tally.multiplications > 1000
        for ours, theirs in zip(got, function(mech, *state, wrench), strict=True):
            assert_close(ours, theirs, 1e-12)


@cache
def operations(function, n):
    """Return multiplications and additions for a chain of n hinges in space."""
    rng = np.random.default_rng(n)
    mech = in_a_row(random_mechanism(rng, links=n, kinds=("revolute",), terms=False, shuffled=False))
    _, tally = counted(function, mech, *random_state(rng, mech), fold=False)
    return tally.multiplications + tally.additions


@pytest.mark.parametrize(
    ("function", "degree"),
    [
        (xiang.inverse_dynamics, 1),
        (recursive.inverse_sensitivity, 2),
        (xiang_regular.inverse_dynamics, 4),
        pytest.param(xiang_regular.inverse_sensitivity, 5, marks=pytest.mark.slow),
    ],
    ids=["recursive", "recursive sensitivity", "regular", "regular sensitivity"],
)
def test_operations_are_a_polynomial_of_the_degree_that_the_loops_have(function, degree):
    """The differences of a polynomial of that order are constant and above 0, the next are 0."""
    counts = [operations(function, n) for n in range(1, degree + 3)]
    assert np.diff(counts, degree).min() > 0
    assert not np.diff(counts, degree + 1).any()


GUIDE = Path(__file__).resolve().parent.parent / "docs" / "papers" / "xiang.md"


@pytest.mark.skipif(not GUIDE.exists(), reason="the guide is not in the wheel")
def test_the_guide_tells_the_operations_that_are_counted():
    """The guide's table of growth must not grow stale."""
    text = GUIDE.read_text(encoding="utf-8")
    for title, function in (
        ("recursive (12)-(20)", xiang.inverse_dynamics),
        ("its sensitivity (21)-(35)", recursive.inverse_sensitivity),
        ("regular (6)-(10)", xiang_regular.inverse_dynamics),
        ("its sensitivity (11)", xiang_regular.inverse_sensitivity),
    ):
        counts = " | ".join(str(operations(function, n)) for n in (2, 4, 6))
        assert f"| {title} | {counts} |" in text, (title, counts)


# ---------------------------------------------------------------- refusals
def test_regular_lagrangian_refuses_branches_and_moments_by_name():
    still = np.zeros(3)
    mech, *_ = four_bar()
    with pytest.raises(InvalidValue, match=r"the base carries several links; .* formulations.xiang"):
        xiang_regular.inverse_dynamics(mech, still, still, still)
    arm, still = library.xiang_two_link(), np.zeros(2)
    with pytest.raises(InvalidValue, match="no moments that are fixed in space"):
        xiang_regular.inverse_dynamics(arm, still, still, still, loads=[Load("forearm", moment=(0, 0, 1))])


@pytest.mark.parametrize("function", [xiang.inverse_dynamics, recursive.inverse_sensitivity])
def test_wrong_loads_are_refused_by_name(function):
    arm, still = library.xiang_two_link(), np.zeros(2)
    with pytest.raises(UnknownName, match="did you mean 'forearm'"):
        function(arm, still, still, still, loads=[Load("forarm")])
    with pytest.raises(ShapeError, match=r"load on link 'forearm': force: expected shape \(3,\)"):
        function(arm, still, still, still, loads=[Load("forearm", force=(1, 2))])
    with pytest.raises(InvalidType, match=r"loads: expected a sequence of Load\(link"):
        function(arm, still, still, still, loads=Load("forearm"))
    with pytest.raises(InvalidValue, match="base: expected a pair"):
        function(arm, still, still, still, base=3.0)


def test_screws_are_refused_by_name():
    rng = np.random.default_rng(1)
    mech = random_mechanism(rng, links=2, kinds=("screw",))
    still = np.zeros(2)
    for function in (xiang.inverse_dynamics, recursive.inverse_sensitivity):
        with pytest.raises(InvalidValue, match="is a screw joint"):
            function(mech, still, still, still)
