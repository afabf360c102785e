"""Derivatives of the dynamics: the kernels against Algorithm 4.1, complex step and Pinocchio."""

from __future__ import annotations

import itertools
import tracemalloc

import numpy as np
import pytest
from closeness import STEP, assert_close, complex_step, tolerance
from hypothesis import example, given, settings
from hypothesis import strategies as st
from random_mechanisms import (
    MOVING,
    any_tree,
    in_a_row,
    partitions,
    random_loads,
    random_mechanism,
    random_state,
    rebuilt,
    sample_of,
)

from cstormpy import formulations as sb
from cstormpy.mechanism import Link, Mechanism, Prismatic, Revolute, library

# Pinocchio has no wheels for Windows.
Oracle = pytest.importorskip("pinocchio_model", exc_type=ImportError).Oracle

seeds = st.integers(0, 2**32 - 1)
SORTS = ("none", "all", "one", "all but one", "every other", "some")
#: What to agree to with complex step through the formulations, and with Algorithm 4.1, where cond(M_pp) allows it.
COMPLEX_STEP, ALGORITHM_4_1 = 1e-9, 1e-10


def ask(mech, q, qd, u, loads):
    """Return y and its derivatives to q, q̇, u and, last, to the motion of the base."""
    d = mech.hybrid_sensitivity(q, qd, u, **loads, to_base=True)
    assert_close(d.y, mech.hybrid_dynamics(q, qd, u, **loads).y, tolerance(mech, q))
    return d.dy_dq, d.dy_dqd, d.dy_du, d.dy_dbase


def check_with_algorithm_4_1(mech, q, qd, u, loads):
    tol = tolerance(mech, q, ALGORITHM_4_1)
    *got, to_base = ask(mech, q, qd, u, loads)
    for ours, want in zip(got, sb.hybrid_sensitivity(mech, q, qd, u, **loads), strict=True):
        assert_close(ours, want, tol)
    assert_close(to_base, np.hstack(sb.base_sensitivity(mech, q, qd, u, **loads)), tol)


def check_with_complex_step(mech, q, qd, u, loads):
    tol = tolerance(mech, q, COMPLEX_STEP)
    wrench = loads.get("wrench")
    V0, dV0 = loads.get("base", (np.zeros(6), np.zeros(6)))

    def y(q, qd, u, V0, dV0):
        return sb.hybrid_dynamics(mech, q, qd, u, wrench, (V0, dV0))

    point = [q, qd, u, V0, dV0]
    want = []
    for k, x in enumerate(point):
        before, after = point[:k], point[k + 1 :]
        want.append(complex_step(lambda z, b=before, a=after: y(*b, z, *a), x))
    *want, to_V0, to_dV0 = want
    got = ask(mech, q, qd, u, loads)
    for ours, answer in zip(got, (*want, np.hstack([to_V0, to_dV0])), strict=True):
        assert_close(ours, answer, tol)


def check_with_pinocchio(mech, q, qd, u, loads):
    """Compare the derivatives to q, q̇, u under wrenches; Pinocchio has no base that moves in a given way."""
    loads = {name: loads[name] for name in loads if name != "base"}
    d = mech.hybrid_sensitivity(q, qd, u, **loads)
    want = Oracle(mech).hybrid_derivatives(q, qd, u, **loads)
    for ours, answer in zip((d.dy_dq, d.dy_dqd, d.dy_du), want, strict=True):
        assert_close(ours, answer, tolerance(mech, q))


# ---------------------------------------------------------------- the oracles
@settings(max_examples=15)
@given(seed=seeds, links=st.integers(1, 30), wrench=st.booleans(), base=st.booleans())
@example(seed=3, links=20, wrench=True, base=True)
def test_algorithm_4_1(seed, links, wrench, base):
    rng = np.random.default_rng(seed)
    mech = random_mechanism(rng, links)
    check_with_algorithm_4_1(mech, *random_state(rng, mech), random_loads(rng, mech, wrench=wrench, base=base))


@pytest.mark.slow
@settings(max_examples=15)
@given(seed=seeds, links=st.integers(1, 30), wrench=st.booleans(), base=st.booleans())
@example(seed=3, links=20, wrench=True, base=True)
def test_complex_step_through_the_formulations(seed, links, wrench, base):
    rng = np.random.default_rng(seed)
    mech = random_mechanism(rng, links)
    check_with_complex_step(mech, *random_state(rng, mech), random_loads(rng, mech, wrench=wrench, base=base))


@settings(max_examples=40)
@given(seed=seeds, links=st.integers(1, 48), wrench=st.booleans(), terms=st.booleans())
def test_pinocchio(seed, links, wrench, terms):
    rng = np.random.default_rng(seed)
    mech = random_mechanism(rng, links, terms=terms)
    check_with_pinocchio(mech, *random_state(rng, mech), random_loads(rng, mech, wrench=wrench, base=False))


@pytest.mark.parametrize("sort", SORTS)
@pytest.mark.parametrize("shape", ["tree", "few branches", "chain"])
def test_forty_joints_under_every_sort_of_drive(sort, shape):
    """Along directions, one sweep of Algorithm 4.1 each, and against Pinocchio as whole matrices."""
    rng = np.random.default_rng(41)
    mech = random_mechanism(rng, 40, MOVING, branching=0.5 if shape == "tree" else 0.1)
    mech = partitions(rng, in_a_row(mech) if shape == "chain" else mech)[sort]
    assert mech.n == 40
    q, qd, u = random_state(rng, mech)
    loads = random_loads(rng, mech)
    check_with_pinocchio(mech, q, qd, u, loads)
    to_q, to_qd, to_u, to_base = ask(mech, q, qd, u, loads)
    dq, dqd, du, dbase = *rng.normal(size=(3, 40)), rng.normal(size=12)
    tol, V0, dV0 = tolerance(mech, q, ALGORITHM_4_1), *np.split(dbase, 2)
    for got, direction in (
        (to_q @ dq, {"dq": dq}),
        (to_qd @ dqd, {"dqd": dqd}),
        (to_u @ du, {"du": du}),
        (to_base @ dbase, {"dbase": (V0, dV0)}),
    ):
        assert_close(got, sb.hybrid_directional(mech, q, qd, u, **loads, **direction), tol)
    ih = 1j * STEP
    base = tuple(x + ih * dx for x, dx in zip(loads["base"], (V0, dV0), strict=True))
    moved = [x + ih * d for x, d in ((q, dq), (qd, dqd), (u, du))]
    stepped = sb.hybrid_dynamics(mech, *moved, loads["wrench"], base)
    along = to_q @ dq + to_qd @ dqd + to_u @ du + to_base @ dbase
    assert_close(along, stepped.imag / STEP, tolerance(mech, q, COMPLEX_STEP))


@pytest.mark.slow
@pytest.mark.parametrize("check", [check_with_algorithm_4_1, check_with_complex_step])
def test_forty_joints_every_column(check):
    rng = np.random.default_rng(42)
    mech = random_mechanism(rng, 40, MOVING)
    check(mech, *random_state(rng, mech), random_loads(rng, mech))


@pytest.mark.slow
@pytest.mark.nojit
@pytest.mark.parametrize("check", [check_with_algorithm_4_1, check_with_complex_step, check_with_pinocchio])
def test_every_partition_of_a_small_tree(check):
    rng = np.random.default_rng(1)
    mech = random_mechanism(rng, 6, branching=0.7)
    assert mech.n == 5 and {link.joint.kind for link in mech.links} == {*MOVING, "fixed"}
    state, loads = random_state(rng, mech), random_loads(rng, mech)
    for chosen in itertools.product([False, True], repeat=mech.n):
        driven = mech.with_drive(active=[name for name, yes in zip(mech.names, chosen, strict=True) if yes])
        check(driven, *state, loads)


TERMS = ("damping", "friction", "armature", "stiffness")


@pytest.mark.nojit
@pytest.mark.parametrize("term", TERMS)
def test_every_joint_term_by_itself(term):
    rng = np.random.default_rng(31)
    whole = partitions(rng, random_mechanism(rng, 6, MOVING))["every other"]

    def only(link, *kept):
        joint = link.joint
        pitch = (joint.pitch,) if joint.kind == "screw" else ()
        options = {name: getattr(joint, name) for name in kept}
        return {"joint": type(joint)(joint.axis, *pitch, point=joint.point, **options)}

    fitting = {"friction": ("friction", "friction_velocity"), "stiffness": ("stiffness", "rest")}.get(term, (term,))
    mech, bare = rebuilt(whole, lambda link: only(link, *fitting)), rebuilt(whole, only)
    q, qd, u = random_state(rng, mech)
    loads = random_loads(rng, mech)
    check_with_algorithm_4_1(mech, q, qd, u, loads)
    check_with_complex_step(mech, q, qd, u, loads)
    check_with_pinocchio(mech, q, qd, u, loads)
    # The term is seen where it acts, and nowhere else on the diagonal of the inverse dynamics.
    with_term, without = (m.inverse_sensitivity(q, qd, u, **loads) for m in (mech, bare))
    changed = [not np.allclose(getattr(with_term, d), getattr(without, d)) for d in ("dy_dq", "dy_dqd", "dy_du")]
    assert changed == [term == "stiffness", term in ("damping", "friction"), term == "armature"]


@any_tree(15, 40)
def test_inverse_and_forward_sensitivity_whatever_the_drive(seed, links):
    """Against Pinocchio's own derivatives of both, and the hybrid ones with all joints active or passive."""
    rng = np.random.default_rng(seed)
    mech = random_mechanism(rng, links)
    q, qd, u = random_state(rng, mech)
    loads = random_loads(rng, mech, base=False)
    peer = Oracle(mech)
    ends = [
        (mech.inverse_sensitivity, peer.inverse_derivatives, mech.inverse_dynamics, mech.names, "inverse"),
        (mech.forward_sensitivity, peer.forward_derivatives, mech.forward_dynamics, (), "forward"),
    ]
    for sensitivity, derivatives, dynamics, active, drive in ends:
        tol = tolerance(mech, q, drive=drive)
        d = sensitivity(q, qd, u, **loads, to_base=True)
        assert_close(d.y, dynamics(q, qd, u, **loads), tol)
        got = d.dy_dq, d.dy_dqd, d.dy_du
        hybrid = mech.with_drive(active=active).hybrid_sensitivity(q, qd, u, **loads, to_base=True)
        for ours, want, same in zip(
            got, derivatives(q, qd, u, **loads), (hybrid.dy_dq, hybrid.dy_dqd, hybrid.dy_du), strict=True
        ):
            assert_close(ours, want, tol)
            assert_close(ours, same, tol)
        assert_close(d.dy_dbase, hybrid.dy_dbase, tol)


# ---------------------------------------------------------------- large mechanisms: other kernels
@pytest.mark.usefixtures("eager_threads")
@pytest.mark.parametrize("n", [48, 49])
@pytest.mark.parametrize("sort", ["none", "some"])
def test_both_sides_of_the_number_of_coordinates_where_the_kernels_change(n, sort):
    """Above 48 coordinates samples no longer stand side by side."""
    rng = np.random.default_rng(n)
    check_a_batch(rng, partitions(rng, random_mechanism(rng, n, MOVING))[sort])


@pytest.mark.usefixtures("eager_threads")
@pytest.mark.parametrize(("n", "branched"), [(27, False), (28, False), (30, True), (31, True)])
def test_both_sides_of_the_depth_where_the_kernels_change(n, branched):
    """Above 14 passive joints on the way to a passive joint, on average, a recursion does the solving."""
    rng = np.random.default_rng(n)
    mech = in_a_row(random_mechanism(rng, n, MOVING)).with_drive(active=[])
    if branched:  # twigs on a stem, some of whose joints are active
        stem = mech.links[n // 2].name
        twigs = [Link(f"twig{k}", stem, Revolute((0, 0, 1)), mass=1.0, com=(1, 0, k)) for k in range(3)]
        fork = Link("fork", "twig1", Prismatic((1, 0, 1)), mass=1.0)
        mech = Mechanism([*twigs, *mech.links, fork], gravity=mech.gravity, active=mech.names[::9])
    check_a_batch(rng, mech)


def check_a_batch(rng, mech):
    """Compare rows of a batch, on one thread and two, and the one sample of the prepared function."""
    q, qd, u = random_state(rng, mech, 9)
    loads = random_loads(rng, mech, 9)
    for threads in (1, 2):
        d = mech.hybrid_sensitivity(q, qd, u, **loads, to_base=True, threads=threads)
        for k in (0, 7, 8):
            one, peer = sample_of(loads, k), Oracle(mech)
            assert_close(d.y[k], sb.hybrid_dynamics(mech, q[k], qd[k], u[k], **one), tolerance(mech, q[k]))
            direction = rng.normal(size=(2, 6))
            along = sb.hybrid_directional(mech, q[k], qd[k], u[k], **one, dbase=direction)
            assert_close(d.dy_dbase[k] @ direction.ravel(), along, tolerance(mech, q[k], ALGORITHM_4_1))
            still = mech.hybrid_sensitivity(q[k], qd[k], u[k], one["wrench"])
            want = peer.hybrid_derivatives(q[k], qd[k], u[k], one["wrench"])
            for ours, answer in zip((still.dy_dq, still.dy_dqd, still.dy_du), want, strict=True):
                assert_close(ours, answer, tolerance(mech, q[k]))
    for ours, answer in zip(
        mech.hybrid_sensitivity_evaluator()(q[0], qd[0], u[0])[1],
        Oracle(mech).hybrid_derivatives(q[0], qd[0], u[0]),
        strict=True,
    ):
        assert_close(ours, answer, tolerance(mech, q[0]))


@pytest.mark.slow
@pytest.mark.parametrize("sort", SORTS)
@pytest.mark.parametrize("name", ["chain of 60", "tree of 63", "random tree of 60"])
def test_more_than_forty_eight_coordinates(name, sort):
    rng = np.random.default_rng(60)
    mech = {
        "chain of 60": lambda: library.chain(60),
        "tree of 63": lambda: library.tree(6),
        "random tree of 60": lambda: random_mechanism(rng, 60, MOVING),
    }[name]()
    mech = partitions(rng, mech)[sort]
    q, qd, u = random_state(rng, mech, 3)
    loads = random_loads(rng, mech, 3)
    directions = rng.normal(size=(4, mech.n))
    dq, dqd, du, dbase = *directions[:3], directions[3, :12]
    d = mech.hybrid_sensitivity(q, qd, u, **loads, to_base=True)
    jvp = mech.hybrid_jvp(q, qd, u, *(np.tile(x, (3, 1)) for x in (dq, dqd, du)), **loads)[1]
    for k in range(3):
        one, tol = sample_of(loads, k), tolerance(mech, q[k], ALGORITHM_4_1)
        along = d.dy_dq[k] @ dq + d.dy_dqd[k] @ dqd + d.dy_du[k] @ du
        base = {"dbase": (dbase[:6], dbase[6:])}
        want = sb.hybrid_directional(mech, q[k], qd[k], u[k], **one, dq=dq, dqd=dqd, du=du)
        assert_close(along, want, tol)
        assert_close(jvp[k], want, tol)
        assert_close(d.dy_dbase[k] @ dbase, sb.hybrid_directional(mech, q[k], qd[k], u[k], **one, **base), tol)
    check_with_pinocchio(mech, q[0], qd[0], u[0], sample_of(loads, 0))
    f = mech.hybrid_sensitivity_evaluator()
    y, D = f(q[0], qd[0], u[0])
    want = Oracle(mech).hybrid_derivatives(q[0], qd[0], u[0])
    for ours, answer in zip(D, want, strict=True):
        assert_close(ours, answer, tolerance(mech, q[0]))
    assert_close(y, mech.hybrid_dynamics(q[0], qd[0], u[0]).y, tolerance(mech, q[0]))


# ---------------------------------------------------------------- directional forms
@any_tree(20, 40)
def test_directional_forms_are_the_matrices_times_vectors(seed, links):
    rng = np.random.default_rng(seed)
    mech = random_mechanism(rng, links)
    q, qd, u = random_state(rng, mech)
    loads = random_loads(rng, mech, wrench=seed % 3 > 0, base=seed % 2 > 0)
    dq, dqd, du, gy = rng.normal(size=(4, mech.n))
    d = mech.hybrid_sensitivity(q, qd, u, **loads)
    tol = tolerance(mech, q)

    def check_product(got, *products):
        """A small sum of large products is no closer than they are."""
        size = sum(np.abs(a) @ np.abs(b) for a, b in products)
        assert np.max(np.abs(got - sum(a @ b for a, b in products))) < tol * max(1.0, np.max(size))

    y, dy = mech.hybrid_jvp(q, qd, u, dq, dqd, du, **loads)
    assert_close(y, d.y, tol)
    check_product(dy, (d.dy_dq, dq), (d.dy_dqd, dqd), (d.dy_du, du))
    y, *gradients = mech.hybrid_vjp(q, qd, u, gy, **loads)
    assert_close(y, d.y, tol)
    for gradient, matrix in zip(gradients, (d.dy_dq, d.dy_dqd, d.dy_du), strict=True):
        check_product(gradient, (gy, matrix))


@pytest.mark.usefixtures("eager_threads")
@pytest.mark.parametrize("sort", SORTS)
def test_directional_forms_under_every_sort_of_drive(sort):
    """The two forms are each other's transposes: gy · (D d) = (gy D) · d."""
    rng = np.random.default_rng(43)
    mech = partitions(rng, random_mechanism(rng, 40, MOVING))[sort]
    q, qd, u = random_state(rng, mech, 9)
    loads = random_loads(rng, mech, 9)
    d, gy = rng.normal(size=(3, 9, 40)), rng.normal(size=(9, 40))
    for threads in (1, 2):
        _, dy = mech.hybrid_jvp(q, qd, u, *d, **loads, threads=threads)
        _, *gradients = mech.hybrid_vjp(q, qd, u, gy, **loads, threads=threads)
        forwards, backwards = gy * dy, np.array(gradients) * d
        scale = np.max(np.abs(forwards)) + np.max(np.abs(backwards))
        assert np.max(np.abs(forwards.sum(axis=1) - backwards.sum(axis=(0, 2)))) < tolerance(mech, q) * scale


@pytest.mark.nojit
def test_no_direction_is_no_change():
    rng = np.random.default_rng(1)
    mech = random_mechanism(rng, 6)
    q, qd, u = random_state(rng, mech)
    zero, loads = np.zeros(mech.n), random_loads(rng, mech)
    assert not mech.hybrid_jvp(q, qd, u, zero, zero, zero, **loads)[1].any()
    assert not np.any(mech.hybrid_vjp(q, qd, u, zero, **loads)[1:])


# ---------------------------------------------------------------- laws
@any_tree(15, 30)
def test_gravity_is_an_acceleration_of_the_base(seed, links):
    """y is affine in gravity, and its slope is that to the base's linear acceleration, with the sign turned."""
    rng = np.random.default_rng(seed)
    mech = random_mechanism(rng, links)
    q, qd, u = random_state(rng, mech)
    loads, more = random_loads(rng, mech), rng.normal(size=3) * 5
    slope = -mech.hybrid_sensitivity(q, qd, u, **loads, to_base=True).dy_dbase[:, 9:]
    y, heavier = (m.hybrid_dynamics(q, qd, u, **loads).y for m in (mech, mech.with_gravity(mech.gravity + more)))
    tol = tolerance(mech, q)
    assert_close(heavier, y + slope @ more, tol)
    V0, dV0 = loads["base"]
    lifted = dV0 - np.concatenate([np.zeros(3), more])
    assert_close(mech.hybrid_dynamics(q, qd, u, loads["wrench"], (V0, lifted)).y, heavier, tol)


@pytest.mark.nojit
def test_the_derivative_to_the_base_is_there_when_asked_for():
    mech, zero = library.acrobot(), np.zeros(2)
    assert mech.hybrid_sensitivity(zero, zero, zero, to_base=True).dy_dbase.shape == (2, 12)
    for ask_without in (mech.hybrid_sensitivity, mech.inverse_sensitivity):
        with pytest.raises(AttributeError, match="to_base=True"):
            _ = ask_without(zero, zero, zero).dy_dbase


# Batches by the kernels with loops --------------------------------------------------------------------------


@pytest.fixture
def by_loops(monkeypatch):
    """Answer by the kernels with loops, however small a mechanism is."""
    from cstormpy.sensitivity import hybrid

    monkeypatch.setattr(hybrid, "filled", lambda *_: False)


def two_arms(n):
    """Return a mechanism of two arms from one trunk whose joints are counted in turns, and not arm by arm."""
    rng, links = np.random.default_rng(n), []
    for k in range(n):
        parent = None if k == 0 else f"link{max(0, k - 2)}"
        joint = Revolute(rng.normal(size=3), point=rng.normal(size=3))
        links.append(Link(f"link{k}", parent, joint, mass=1.0 + k, com=rng.normal(size=3), inertia=np.eye(3)))
    return Mechanism(links)


@pytest.mark.usefixtures("by_loops")
@pytest.mark.parametrize("n", [1, 2, 3, 5, 9])
def test_each_derivative_of_a_batch_is_that_of_its_sample_and_joints(n):
    """Rows are written in pieces that go over their ends, whole groups otherwise than the rest."""
    mech = two_arms(n)
    rows = random_state(np.random.default_rng(1), mech, 19)
    found = mech.forward_sensitivity(*rows).columns
    for k in range(19):
        expected = mech.forward_sensitivity(*(x[k] for x in rows)).columns
        np.testing.assert_allclose(found[k], expected, atol=1e-11 * np.abs(expected).max())


@pytest.mark.usefixtures("by_loops")
def test_a_batch_takes_memory_for_its_derivatives_once():
    """Twice as much at once went back to the system after each call, and was cleared anew at the next one."""
    mech = two_arms(9)
    rows = random_state(np.random.default_rng(1), mech, 4096)
    mech.forward_sensitivity(*rows)
    tracemalloc.start()
    try:
        size = mech.forward_sensitivity(*rows).columns.nbytes
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 1.5 * size
