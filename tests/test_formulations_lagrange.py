"""The Lagrangian formulations: each an independent witness of the kernels' inverse dynamics."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from closeness import assert_close
from hypothesis import given, settings
from hypothesis import strategies as st
from random_mechanisms import in_a_row, random_loads, random_mechanism, random_state

from cstormpy.errors import CstormError, InvalidValue, NonFinite, ShapeError
from cstormpy.formulations import (
    hollerbach,
    hollerbach_3x3,
    lagrange,
    luh_walker_paul,
    silver,
    silver_energy,
    uicker_kahn,
    xiang,
    xiang_regular,
)
from cstormpy.formulations.arguments import bodies, read_tree, turned
from cstormpy.formulations.counting import counted
from cstormpy.formulations.dual import Dual
from cstormpy.formulations.homogeneous import frames
from cstormpy.mechanism import Fixed, Link, Mechanism, library

FORMULATIONS = [lagrange, uicker_kahn, hollerbach, hollerbach_3x3, silver, silver_energy, xiang, xiang_regular]
seeds = st.integers(0, 2**32 - 1)


def named(module):
    """Return the name of a module without its packages."""
    return module.__name__.rpartition(".")[2]


def admitted(rng, module, links=6):
    """Return a random mechanism of the joints that a formulation admits, without branches if it takes none."""
    mech = random_mechanism(rng, links=links, kinds=module.KINDS)
    return mech if module.BRANCHED else in_a_row(mech)


# ---------------------------------------------------------------- agreement with the kernels
@pytest.mark.parametrize("module", FORMULATIONS, ids=named)
@settings(max_examples=10)
@given(seed=seeds)
def test_torques_are_those_of_the_kernels(module, seed):
    rng = np.random.default_rng(seed)
    mech = admitted(rng, module)
    q, qd, qdd = random_state(rng, mech)
    wrench = random_loads(rng, mech, base=False)["wrench"]
    assert_close(module.inverse_dynamics(mech, q, qd, qdd), mech.inverse_dynamics(q, qd, qdd), 1e-10)
    loaded = module.inverse_dynamics(mech, q, qd, qdd, wrench)
    assert_close(loaded, mech.inverse_dynamics(q, qd, qdd, wrench), 1e-10)


@pytest.mark.parametrize("kind", ["revolute", "prismatic", "screw"])
@pytest.mark.parametrize("module", FORMULATIONS, ids=named)
def test_each_kind_of_joint_is_right_or_refused_by_name(module, kind):
    """A mechanism all of one kind, so that no joint of another kind hides what that one lacks."""
    rng = np.random.default_rng(5)
    mech = random_mechanism(rng, links=4, kinds=(kind,), branching=0.0, shuffled=False)
    mech = mech if module.BRANCHED else in_a_row(mech)
    q, qd, qdd = random_state(rng, mech)
    if kind in module.KINDS:
        assert_close(module.inverse_dynamics(mech, q, qd, qdd), mech.inverse_dynamics(q, qd, qdd), 1e-10)
    else:
        with pytest.raises(InvalidValue, match=f"joint 'link0': is a {kind} joint"):
            module.inverse_dynamics(mech, q, qd, qdd)


@pytest.mark.parametrize("module", FORMULATIONS, ids=named)
def test_wrong_arguments_are_refused(module):
    mech = library.xiang_two_link()
    still = [0.0, 0.0]
    for arguments, error, message in (
        (([0.0], still, still), ShapeError, r"q: expected shape \(2,\), got \(1,\)"),
        ((still, still, [0.0, np.nan]), NonFinite, "qdd: expected finite numbers"),
        ((still, still, still, np.zeros(6)), ShapeError, r"wrench: expected shape \(2, 6\)"),
    ):
        with pytest.raises(error, match=message) as caught:
            module.inverse_dynamics(mech, *arguments)
        assert isinstance(caught.value, CstormError)


@pytest.mark.parametrize("module", FORMULATIONS, ids=named)
def test_mechanism_without_joints_asks_for_no_torque(module):
    mech = Mechanism([Link("post", None, Fixed(), mass=1.0, com=(1, 0, 0))])
    assert module.inverse_dynamics(mech, [], [], []).shape == (0,)


# ---------------------------------------------------------------- other numbers than floats
@pytest.mark.parametrize("module", FORMULATIONS, ids=named)
def test_counting_numbers_give_the_same_torques(module):
    """What is counted must be what is computed: the counting numbers go all the way to the torques."""
    rng = np.random.default_rng(3)
    mech = admitted(rng, module, links=4)
    q, qd, qdd = random_state(rng, mech)
    wrench = random_loads(rng, mech, base=False)["wrench"]
    want = module.inverse_dynamics(mech, q, qd, qdd, wrench)
    for fold in (False, True):
        torque, tally = counted(module.inverse_dynamics, mech, q, qd, qdd, wrench, fold=fold)
        assert_close(torque, want, 1e-13)
        assert tally.multiplications > 100


@pytest.mark.parametrize("module", FORMULATIONS, ids=named)
def test_complex_numbers_give_exact_derivatives(module):
    rng = np.random.default_rng(4)
    mech = admitted(rng, module, links=5)
    q, qd, qdd = random_state(rng, mech)
    step = rng.normal(size=mech.n)
    got = module.inverse_dynamics(mech, q + 1e-30j * step, qd, qdd).imag / 1e-30
    assert_close(got, mech.inverse_sensitivity(q, qd, qdd).dy_dq @ step, 1e-10)


def operations(module, n, fold=True):
    """Return multiplications and additions of the inverse dynamics of a chain of n hinges in space."""
    rng = np.random.default_rng(n)
    mech = in_a_row(random_mechanism(rng, links=n, kinds=("revolute",), terms=False, shuffled=False))
    _, tally = counted(module.inverse_dynamics, mech, *random_state(rng, mech), fold=fold)
    return tally.multiplications + tally.additions


def test_uicker_and_kahn_take_well_over_100000_operations_for_six_links():
    """Silver (1981), 1.2: "for 6 links well over 100,000 adds and multiplies would be needed"."""
    assert 100_000 < operations(uicker_kahn, 6, fold=False) < 200_000


@pytest.mark.parametrize("module", [hollerbach, hollerbach_3x3, silver], ids=named)
def test_recursions_take_the_same_number_of_operations_for_each_further_link(module):
    few, more, most = (operations(module, n) for n in (8, 9, 10))
    assert most - more == more - few


@pytest.mark.parametrize(("module", "degree"), [(uicker_kahn, 4), (lagrange, 2), (silver_energy, 2)])
def test_sums_grow_with_the_power_that_their_loops_have(module, degree):
    """The differences of a polynomial of that order are constant and above 0, the next are 0."""
    counts = [operations(module, n, fold=False) for n in range(1, degree + 3)]
    assert np.diff(counts, degree).min() > 0
    assert not np.diff(counts, degree + 1).any()


# ---------------------------------------------------------------- Lagrange's equation itself
@settings(max_examples=5)
@given(seed=seeds)
def test_energies_and_mass_matrix_are_those_of_the_kernels(seed):
    rng = np.random.default_rng(seed)
    mech = random_mechanism(rng, links=5)
    q, qd, _ = random_state(rng, mech)
    assert_close(lagrange.energy(mech, q, qd), np.array(mech.energy(q, qd)), 1e-10)
    assert_close(lagrange.mass_matrix(mech, q), mech.mass_matrix(q), 1e-10)


def test_dual_numbers_differentiate_what_numpy_computes():
    x = Dual(Dual(0.3, 1.0), Dual(1.0, 0.0))  # of two ε, for d²/dx²
    A = np.array([[1.0, 2.0], [3.0, 4.0]])
    turned = A * np.sin(x) - A.T * np.cos(x)
    assert_close(turned.b.b, -A * np.sin(0.3) + A.T * np.cos(0.3), 1e-15)
    product = (A @ turned).trace() + (turned @ A).sum() + (2.0 - x) * x
    want = np.trace(A @ turned.b.b) + (turned.b.b @ A).sum() - 2
    assert_close(product.b.b, want, 1e-14)


def test_dual_numbers_refuse_functions_that_they_do_not_know():
    with pytest.raises(TypeError):
        np.arctan(Dual(1.0, 1.0))


# ---------------------------------------------------------------- Silver
@pytest.mark.parametrize("fold", [False, True])
def test_silver_takes_exactly_the_operations_of_luh_walker_and_paul(fold):
    """Silver (1981), 3.2: "this is exactly the computation specified by Luh"."""
    rng = np.random.default_rng(8)
    for kinds in (("revolute",), ("prismatic",), luh_walker_paul.KINDS):
        mech = random_mechanism(rng, kinds=kinds)
        state = random_state(rng, mech)
        (one, ours), (other, luh) = (
            counted(m.inverse_dynamics, mech, *state, fold=fold) for m in (silver, luh_walker_paul)
        )
        assert_close(one, other, 1e-13)
        assert (ours.multiplications, ours.additions) == (luh.multiplications, luh.additions)


@pytest.mark.parametrize(("mass", "inertia"), [(1.0, 1.0), (0.01, 7.0), (300.0, 0.2)])
def test_load_as_one_more_link_is_the_wrench_whatever_its_mass(mass, inertia):
    """On each link, hinged, sliding or fixed: the load is at the link's origin, the joint's axis may be elsewhere."""
    rng = np.random.default_rng(6)
    mech = random_mechanism(rng, links=8, kinds=silver.KINDS)
    assert {link.joint.kind for link in mech.links} == set(silver.KINDS)
    q, qd, qdd = random_state(rng, mech)
    for i, link in enumerate(mech.links):
        wrench = np.zeros((len(mech.links), 6))
        wrench[i] = rng.normal(size=6)
        got = silver.with_load_as_link(mech, q, qd, qdd, link.name, wrench[i], mass, inertia)
        assert_close(got, mech.inverse_dynamics(q, qd, qdd, wrench), 1e-10)


def test_load_as_a_link_without_mass_is_refused():
    mech = library.xiang_two_link()
    with pytest.raises(InvalidValue, match="needs a mass"):
        silver.with_load_as_link(mech, [0, 0], [0, 0], [0, 0], "forearm", np.ones(6), mass=0.0)


# ---------------------------------------------------------------- the figures of the guide
GUIDE = Path(__file__).resolve().parent.parent / "docs" / "papers" / "silver.md"


def joint_operations(form, n=6):
    """Return the operations of form(tree, q), less those of the sum that it returns to be counted."""
    rng = np.random.default_rng(n)
    mech = in_a_row(random_mechanism(rng, links=n, kinds=("revolute",), terms=False, shuffled=False))
    tree = read_tree(mech)
    arrays = []
    _, tally = counted(lambda q: arrays.extend(form(tree, q)), np.ones(n), fold=False)
    assert len(arrays) >= n
    return tally.multiplications + tally.additions


@pytest.mark.skipif(not GUIDE.exists(), reason="the guide is not in the wheel")
def test_the_guide_tells_the_operations_that_are_counted():
    """Silver (1981), 1.2 and 1.4, prints ratios; the guide sets ours beside them and must not grow stale."""
    text = GUIDE.read_text(encoding="utf-8")
    bodies_of = {True: lambda tree, q: [turned(tree, bodies(tree), i, q[i])[0] for i in range(6)]}
    bodies_of[False] = lambda tree, q: [frames(tree).T(i, q[i], k) for i in range(6) for k in range(3)]
    total, less = {}, {}
    for module in (uicker_kahn, hollerbach, xiang, hollerbach_3x3, silver, luh_walker_paul):
        rng = np.random.default_rng(6)
        mech = in_a_row(random_mechanism(rng, links=6, kinds=("revolute",), terms=False, shuffled=False))
        _, tally = counted(module.inverse_dynamics, mech, *random_state(rng, mech), fold=False)
        joints = joint_operations(bodies_of[module in (silver, luh_walker_paul)])
        assert f"| `{named(module)}` | {tally.multiplications} | {tally.additions} | {joints} |" in text
        total[module] = tally.multiplications + tally.additions
        less[module] = total[module] - joints
    assert f"| {total[uicker_kahn]} | {less[uicker_kahn]} |" in text
    for above, below, said, printed in (
        (uicker_kahn, hollerbach, "about 15", 15),
        (hollerbach, luh_walker_paul, "about 5", 5),
        (xiang, luh_walker_paul, "about 5", 5),
        (hollerbach, hollerbach_3x3, "an additional factor of 2", 2),
        (hollerbach_3x3, luh_walker_paul, "roughly 2½", 2.5),
        (silver, luh_walker_paul, "exactly the computation", 1),
    ):
        ratios = [count[above] / count[below] for count in (total, less)]
        assert f'"{said}" | {ratios[0]:.1f} | {ratios[1]:.1f} |' in text
        assert ratios[1] == pytest.approx(printed, rel=0.15)
