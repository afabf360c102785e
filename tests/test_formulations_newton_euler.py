"""Newton-Euler formulations: Luh, Walker and Paul, Stepanenko, Orin, Armstrong, and the slides of Johnson and Su."""

from __future__ import annotations

import numpy as np
import pytest
from closeness import assert_close, complex_step, tolerance
from hypothesis import given, settings
from hypothesis import strategies as st
from random_mechanisms import MOVING, in_a_row, random_loads, random_mechanism, random_state

from cstormpy import formulations as sb
from cstormpy.errors import InvalidType, InvalidValue, NonFinite, ShapeError, SingularInertia
from cstormpy.formulations import (
    armstrong,
    johnson_su,
    johnson_su_coefficients,
    luh_walker_paul,
    orin,
    stepanenko,
)
from cstormpy.formulations.arguments import cross
from cstormpy.formulations.counting import Count, Tally, counted
from cstormpy.mechanism import Link, Mechanism, Prismatic, Revolute, Screw
from cstormpy.mechanism.library import chain, xiang_two_link

seeds = st.integers(0, 2**32 - 1)
TWO_KINDS = ("revolute", "prismatic", "fixed")
ALL_KINDS = (*TWO_KINDS, "screw")
INVERSE = [
    (luh_walker_paul.inverse_dynamics, TWO_KINDS),
    (stepanenko.inverse_dynamics, TWO_KINDS),
    (orin.inverse_dynamics, TWO_KINDS),
    (johnson_su.inverse_dynamics, ALL_KINDS),
]
FORWARD = [
    (armstrong.forward_dynamics, TWO_KINDS),
    (johnson_su.forward_dynamics, ALL_KINDS),
    (johnson_su.articulated_body, ALL_KINDS),
]


def name(case):
    function = case[0] if isinstance(case, tuple) else case
    return f"{function.__module__.rsplit('.')[-1]}.{function.__name__}" if callable(function) else None


def case(seed, kinds, links=7):
    """Return a random tree, or a chain, of these joints, its state and the wrenches on its links."""
    rng = np.random.default_rng(seed)
    mech = random_mechanism(rng, links, kinds)
    mech = in_a_row(mech) if seed % 3 == 0 else mech
    return mech, *random_state(rng, mech), random_loads(rng, mech, base=False)["wrench"]


# ---------------------------------------------------------------- all agree with the kernels
@pytest.mark.parametrize(("function", "kinds"), INVERSE, ids=name)
@settings(max_examples=12, deadline=None)
@given(seed=seeds)
def test_inverse_dynamics_is_the_kernels(function, kinds, seed):
    mech, q, qd, qdd, wrench = case(seed, kinds)
    assert_close(function(mech, q, qd, qdd, wrench), mech.inverse_dynamics(q, qd, qdd, wrench), 1e-10)
    assert_close(function(mech, q, qd, qdd), mech.inverse_dynamics(q, qd, qdd), 1e-10)


@pytest.mark.parametrize(("function", "kinds"), FORWARD, ids=name)
@settings(max_examples=12, deadline=None)
@given(seed=seeds)
def test_forward_dynamics_is_the_kernels(function, kinds, seed):
    mech, q, qd, tau, wrench = case(seed, kinds)
    tol = tolerance(mech, q, drive="forward")
    assert_close(function(mech, q, qd, tau, wrench), mech.forward_dynamics(q, qd, tau, wrench), tol)
    assert_close(function(mech, q, qd, tau), mech.forward_dynamics(q, qd, tau), tol)


@pytest.mark.parametrize("kind", MOVING)
@pytest.mark.parametrize(("function", "kinds"), INVERSE + FORWARD, ids=name)
def test_each_kind_of_joint_alone_is_admitted_or_refused_by_name(function, kinds, kind):
    mech, q, qd, u, wrench = case(8, (kind,))
    if kind not in kinds:
        with pytest.raises(
            InvalidValue, match=r"joint 'link\d': is a screw joint; .* revolute and prismatic joints only"
        ):
            function(mech, q, qd, u, wrench)
        return
    forward = function in [f for f, _ in FORWARD]
    want = mech.forward_dynamics(q, qd, u, wrench) if forward else mech.inverse_dynamics(q, qd, u, wrench)
    assert_close(function(mech, q, qd, u, wrench), want, tolerance(mech, q, drive="forward"))


@pytest.mark.parametrize(("function", "kinds"), INVERSE + FORWARD, ids=name)
def test_complex_numbers_differentiate(function, kinds):
    """There is no branch on the state: the imaginary part is an exact derivative."""
    mech, q, qd, u, wrench = case(5, kinds)
    forward = function in [f for f, _ in FORWARD]
    d = mech.forward_sensitivity(q, qd, u, wrench) if forward else mech.inverse_sensitivity(q, qd, u, wrench)
    tol = tolerance(mech, q, least=1e-9, drive="forward")
    assert_close(complex_step(lambda x: function(mech, x, qd, u, wrench), q), d.dy_dq, tol)
    assert_close(complex_step(lambda x: function(mech, q, x, u, wrench), qd), d.dy_dqd, tol)


@settings(max_examples=10, deadline=None)
@given(seed=seeds)
def test_composite_rigid_body_is_the_mass_matrix(seed):
    mech, q, *_ = case(seed, ALL_KINDS)
    assert_close(johnson_su.mass_matrix(mech, q), mech.mass_matrix(q), 1e-10)


@settings(max_examples=10, deadline=None)
@given(seed=seeds)
def test_coefficients_make_up_the_equation_of_motion(seed):
    """Q = Σ H q̈ + Σ C q̇ q̇ + g, and C are Christoffel's symbols of H."""
    rng = np.random.default_rng(seed)
    mech = random_mechanism(rng, 6, ALL_KINDS, terms=False)
    q, qd, qdd = random_state(rng, mech)
    H, C = johnson_su.mass_matrix(mech, q), johnson_su_coefficients.coriolis_coefficients(mech, q)
    g, still = mech.gravity_load(q), np.zeros(mech.n)
    assert_close(H @ qdd + C @ qd @ qd + g, mech.inverse_dynamics(q, qd, qdd), 1e-10)
    assert_close(g, johnson_su.inverse_dynamics(mech, q, still, still), 1e-10)
    dH = complex_step(lambda x: sb.mass_matrix(mech, x), q)
    christoffel = (dH + dH.swapaxes(1, 2) - np.moveaxis(dH, 2, 0)) / 2
    assert_close(C, christoffel, 1e-10)


# ---------------------------------------------------------------- what the papers say of them
@pytest.mark.parametrize("n", [2, 3, 7, 12])
def test_first_example_takes_the_products_that_the_slides_say(n):
    """By brute force n² - n products and n - 1 sums, by recursion 3n - 4 and n - 1."""
    rng = np.random.default_rng(n)
    A, dA = rng.normal(size=(2, n))
    brute, slow = counted(lambda a, da: johnson_su_coefficients.product_derivative(a, da, recursive=False), A, dA)
    recursive, fast = counted(johnson_su_coefficients.product_derivative, A, dA)
    assert (slow.multiplications, slow.additions) == (n * n - n, n - 1)
    assert (fast.multiplications, fast.additions) == (3 * n - 4, n - 1)
    assert recursive == pytest.approx(brute, rel=1e-12)
    matrices, rates = rng.normal(size=(2, n, 3, 3))
    h = 1e-30
    product = np.linalg.multi_dot([a + 1j * h * da for a, da in zip(matrices, rates, strict=True)])
    for recursive in (True, False):
        got = johnson_su_coefficients.product_derivative(list(matrices), list(rates), recursive)
        assert_close(got, product.imag / h, 1e-12)


def test_net_force_belongs_to_the_link_itself():
    """The slides subtract f^x_i from the force of the parent: then a load at the tip would not reach its own joint."""
    mech, q, qd, qdd, wrench = case(2, ("revolute",))
    leaf = next(i for i in range(len(mech.links)) if i not in mech.parents)
    only = np.zeros_like(wrench)
    only[leaf] = wrench[leaf]
    joint = list(mech.joint_links).index(leaf)
    with_load = johnson_su.inverse_dynamics(mech, q, qd, qdd, only)
    assert abs((with_load - johnson_su.inverse_dynamics(mech, q, qd, qdd))[joint]) > 1e-3


@settings(max_examples=8, deadline=None)
@given(seed=seeds)
def test_luh_computes_the_sums_of_silver(seed):
    """Silver (1981), 3.2: what Luh's sweeps carry is what Lagrange's equation asks for, quantity by quantity.

    F_i and N_i are the brackets of (3.11), body by body, found here from the body's kinetic energy alone; and Luh's
    inward sweep leaves at each joint the sums ΣF_i and Σ(p_ji × F_i + N_i) that stand after (3.16).
    """
    rng = np.random.default_rng(seed)
    mech = random_mechanism(rng, 5, TWO_KINDS, terms=False, shuffled=False, gravity=False)
    q, qd, qdd = random_state(rng, mech)
    tree = luh_walker_paul.read_tree(mech)
    body = luh_walker_paul.bodies(tree)
    by_link = [luh_walker_paul.by_link(tree, "", x) for x in (q, qd, qdd)]
    motion = luh_walker_paul.outward_sweep(tree, body, *by_link)
    none = np.zeros((len(mech.links), 3))
    f, n = luh_walker_paul.inward_sweep(tree, body, motion, none, none)
    X, h = sb.forward_kinematics(mech, q), 1e-30

    def of_energy(i):  # d/dt ∂K_i/∂q̇_j - ∂K_i/∂q_j of one link
        link = mech.links[i]

        def velocities(q, qd):
            V = sb.link_velocities(mech, q, qd)[i]
            return V[3:] + cross(V[:3], link.com), V[:3]  # of the centre of mass, in link coordinates

        def K(q, qd):
            v, w = velocities(q, qd)
            return (link.mass * v @ v + w @ link.inertia @ w) / 2

        def momentum(q, qd):
            return np.array([K(q, qd + e) - K(q, qd) - K(q, e) for e in np.eye(mech.n)])

        rate = momentum(q + 1j * h * qd, qd + 1j * h * qdd).imag / h
        partial = [velocities(q, e) for e in np.eye(mech.n)]  # ∂v_i/∂q̇_j, ∂ω_i/∂q̇_j
        bracket = [motion.F[i] @ v + motion.N[i] @ w for v, w in partial]  # (3.12)
        return rate - complex_step(lambda x: K(x, qd), q), np.array(bracket)

    for i in range(len(mech.links)):
        assert_close(*of_energy(i), 1e-11)
    place = [x[:3, 3] + x[:3, :3] @ c for x, c in zip(X, body.c, strict=True)]
    for j in range(len(mech.links)):
        total, moment = np.zeros(3), np.zeros(3)
        for i in range(len(mech.links)):
            if j == i or j in johnson_su_coefficients.ancestors(tree, i):
                F, p = X[i][:3, :3] @ motion.F[i], X[i][:3, 3] + X[i][:3, :3] @ mech.links[i].com - place[j]
                total, moment = total + F, moment + np.cross(p, F) + X[i][:3, :3] @ motion.N[i]
        assert_close(X[j][:3, :3] @ f[j], total, 1e-11)
        assert_close(X[j][:3, :3] @ n[j], moment, 1e-11)


# ---------------------------------------------------------------- counting numbers
@pytest.mark.parametrize("fold", [False, True])
@pytest.mark.parametrize(("function", "kinds"), INVERSE + FORWARD, ids=name)
def test_counting_numbers_give_the_result_of_floats(function, kinds, fold):
    mech, q, qd, u, wrench = case(5, kinds)
    result, tally = counted(function, mech, q, qd, u, wrench, fold=fold)
    assert_close(result, function(mech, q, qd, u, wrench), 1e-12)
    assert min(tally.multiplications, tally.additions, tally.functions) > 0
    if fold:
        _, loops = counted(function, mech, q, qd, u, wrench, fold=False)
        assert tally.multiplications < loops.multiplications
        assert tally.additions < loops.additions


def test_operations_are_counted_one_by_one():
    tally = Tally(fold=False)
    a, b = tally.numbers(np.eye(2)), tally.numbers([1.0, 2.0])
    assert [float(x) for x in a @ b] == [1.0, 2.0]
    assert (tally.multiplications, tally.additions) == (4, 2)
    x = tally.numbers([2.0])[0]
    assert float((1 - x) / (x**3 - 0.0)) == -0.125
    assert (tally.multiplications, tally.additions, tally.divisions) == (6, 4, 1)
    assert float(np.sin(x) ** 2 + np.cos(x) ** 2) == pytest.approx(1.0)
    assert tally.functions == 2
    assert float(-x) == -2.0 and x == 2.0 and x > 1 and not x < 1 and bool(x) and repr(x) == "Count(2.0)"


def test_folding_leaves_out_constants_that_are_zero_or_one_but_not_values_that_happen_to_be():
    tally = Tally(fold=True)
    zero, one = tally.numbers([0.0, 1.0])
    assert 1 * zero is zero and 0 + one is one and one - 0 is one and one / 1 is one
    assert 0 * one == 0 and not isinstance(0 * one, Count)
    assert float(-1 * one) == float(0 - one) == -1.0
    assert (tally.multiplications, tally.additions, tally.divisions) == (0, 0, 0)
    assert float(one * zero + one) == 1.0  # states, not structure
    assert (tally.multiplications, tally.additions) == (1, 1)


# ---------------------------------------------------------------- refusals
@pytest.mark.parametrize(("function", "kinds"), INVERSE + FORWARD, ids=name)
def test_wrong_arguments_are_refused(function, kinds):
    mech, still = xiang_two_link(), [0.0, 0.0]
    with pytest.raises(ShapeError, match=r"q: expected shape \(2,\), got \(1,\)"):
        function(mech, [0.0], still, still)
    with pytest.raises(InvalidType, match="qd: expected real numbers, got None among them"):
        function(mech, still, [None, 1.0], still)
    with pytest.raises(NonFinite, match=r"(qdd|tau): expected finite numbers"):
        function(mech, still, still, Tally().numbers([0.0, np.inf]))
    with pytest.raises(ShapeError, match=r"wrench: expected shape \(2, 6\)"):
        function(mech, still, still, still, np.zeros(6))


@pytest.mark.parametrize("function", [f for f, _ in FORWARD], ids=name)
def test_joint_without_inertia_is_named(function):
    arm = Link("arm", None, Revolute((0, 0, 1)), mass=1.0, com=(1, 0, 0))
    for joint in (Prismatic((1, 0, 0)), Revolute((1, 0, 0))):
        with pytest.raises(SingularInertia, match="link 'ghost'"):
            function(Mechanism([arm, Link("ghost", "arm", joint)]), [0, 0], [0, 0], [0, 0])


def test_a_pivot_that_vanishes_on_the_way_is_named():
    """Two joints about the same axis: each moves inertia alone, but not both at once."""
    arm = Link("arm", None, Revolute((0, 0, 1)))
    twin = Link("twin", "arm", Revolute((0, 0, 1)), mass=1.0, com=(1, 0, 0))
    with pytest.raises(SingularInertia, match="'twin'"):
        johnson_su.forward_dynamics(Mechanism([arm, twin]), [0, 0], [0, 0], [0, 0])


def test_a_screw_is_refused_where_it_stands():
    mech = Mechanism([Link("nut", None, Screw((0, 0, 1), 0.1, name="spindle"), mass=1.0)])
    with pytest.raises(InvalidValue, match="joint 'spindle': is a screw joint; Armstrong's algorithm admits"):
        armstrong.forward_dynamics(mech, [0], [0], [0])


def test_forty_joints():
    rng = np.random.default_rng(40)
    mech = chain(40)
    q, qd, qdd = rng.normal(size=(3, 40))
    for function, _ in INVERSE:
        assert_close(function(mech, q, qd, qdd), mech.inverse_dynamics(q, qd, qdd), 1e-10)
