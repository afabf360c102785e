"""Values of the dynamics: the kernels against the formulations, Pinocchio, closed forms and published numbers."""

from __future__ import annotations

import itertools
import pickle
from concurrent.futures import ThreadPoolExecutor

import mpmath
import numpy as np
import pytest
from closeness import assert_close, tolerance
from hypothesis import example, given, settings
from hypothesis import strategies as st
from random_mechanisms import (
    MOVING,
    partitions,
    random_loads,
    random_mechanism,
    random_pose,
    random_state,
    rebuilt,
    sample_of,
)

from cstormpy import formulations as sb
from cstormpy.errors import (
    CstormError,
    InvalidType,
    InvalidValue,
    NonFinite,
    ShapeError,
    SingularInertia,
    UnknownName,
)
from cstormpy.mechanism import Fixed, Link, Mechanism, Prismatic, Revolute, Screw, library

pinocchio_model = pytest.importorskip("pinocchio_model", reason="Pinocchio has no wheel here", exc_type=ImportError)

seeds = st.integers(0, 2**32 - 1)
SORTS = ("none", "all", "one", "all but one", "every other", "some")


def check_against_both(mech, q, qd, u, loads):
    """Compare y of one sample with the formulations and with Pinocchio; return it."""
    tol = tolerance(mech, q)
    y = mech.hybrid_dynamics(q, qd, u, **loads).y
    assert_close(y, sb.hybrid_dynamics(mech, q, qd, u, **loads), tol)
    assert_close(y, pinocchio_model.Oracle(mech, floating=True).hybrid_dynamics(q, qd, u, **loads), tol)
    return y


# ---------------------------------------------------------------- kernels = formulations = Pinocchio
@settings(max_examples=40)
@given(seed=seeds, links=st.integers(1, 48), wrench=st.booleans(), base=st.booleans(), terms=st.booleans())
@example(seed=1, links=48, wrench=True, base=True, terms=True)
@example(seed=2, links=1, wrench=False, base=False, terms=False)
def test_kernels_formulations_and_pinocchio_agree(seed, links, wrench, base, terms):
    """Trees of up to 48 links, of which about a quarter are welded on."""
    rng = np.random.default_rng(seed)
    mech = random_mechanism(rng, links, terms=terms)
    check_against_both(mech, *random_state(rng, mech), random_loads(rng, mech, wrench=wrench, base=base))


@pytest.mark.parametrize("sort", SORTS)
@pytest.mark.parametrize("branching", [0.1, 0.5, 1.0])
def test_forty_joints_under_every_sort_of_drive(sort, branching):
    rng = np.random.default_rng(40)
    mech = partitions(rng, random_mechanism(rng, 40, MOVING, branching))[sort]
    assert mech.n == 40
    check_against_both(mech, *random_state(rng, mech), random_loads(rng, mech))


@pytest.mark.nojit
@pytest.mark.parametrize("loaded", [False, True])
def test_every_partition_of_a_small_tree(loaded):
    rng = np.random.default_rng(1)
    mech = random_mechanism(rng, 6, branching=0.7)
    assert mech.n == 5 and {link.joint.kind for link in mech.links} == {*MOVING, "fixed"}
    state, loads = random_state(rng, mech), random_loads(rng, mech, wrench=loaded, base=loaded)
    for chosen in itertools.product([False, True], repeat=mech.n):
        active = [name for name, yes in zip(mech.names, chosen, strict=True) if yes]
        check_against_both(mech.with_drive(active=active), *state, loads)


@settings(max_examples=20)
@given(seed=seeds, links=st.integers(1, 40))
def test_inverse_and_forward_dynamics_whatever_the_drive(seed, links):
    rng = np.random.default_rng(seed)
    mech = random_mechanism(rng, links)
    q, qd, u = random_state(rng, mech)
    loads = random_loads(rng, mech)
    peer = pinocchio_model.Oracle(mech, floating=True)
    tau = mech.inverse_dynamics(q, qd, u, **loads)
    assert_close(tau, sb.inverse_dynamics(mech, q, qd, u, **loads), 1e-10)
    assert_close(tau, peer.inverse_dynamics(q, qd, u, **loads), 1e-10)
    tol = tolerance(mech, q, drive="forward")
    free = mech.with_drive(active=[])
    assert_close(mech.forward_dynamics(q, qd, u, **loads), sb.hybrid_dynamics(free, q, qd, u, **loads), tol)
    # Pinocchio's own articulated body algorithm, which can not move the base
    del loads["base"]
    want = pinocchio_model.Oracle(mech).forward_dynamics(q, qd, u, **loads)
    assert_close(mech.forward_dynamics(q, qd, u, **loads), want, tol)
    still = np.zeros(mech.n)
    assert_close(mech.bias(q, qd, **loads), peer.inverse_dynamics(q, qd, still, **loads), 1e-10)
    springs = peer.losses(q, still)
    assert_close(mech.gravity_load(q), peer.inverse_dynamics(q, still, still) - springs, 1e-10)
    assert_close(mech.mass_matrix(q), peer.mass_matrix(q), 1e-10)
    assert_close(mech.mass_matrix(q), sb.mass_matrix(mech, q), 1e-10)


@pytest.mark.parametrize("name", library.names())
def test_ready_mechanisms(name):
    mech = library.get(name)
    rng = np.random.default_rng(8)
    for active in ([], mech.actuated[:1], mech.actuated):
        driven = mech.with_drive(active=active)
        check_against_both(driven, *random_state(rng, mech), random_loads(rng, mech))


def test_cost_of_depth_is_no_stack():
    """A chain of a thousand joints: nothing recurses in Python or numba, and the answer solves the inverse dynamics."""
    mech = library.chain(1000).with_drive(active=[f"joint{k}" for k in range(1, 1001, 2)])
    rng = np.random.default_rng(1)
    q, qd, u = rng.uniform(-0.2, 0.2, (3, mech.n))
    r = mech.hybrid_dynamics(q, qd, u)
    tau = mech.inverse_dynamics(q, qd, r.qdd)
    # The residual of a solution is small whatever the condition: rounding of the torques' parts.
    parts = np.abs(mech.mass_matrix(q)) @ np.abs(r.qdd) + np.abs(mech.bias(q, qd))
    assert np.max(np.abs(tau - r.tau)) < 1e-10 * np.max(parts)


# ---------------------------------------------------------------- one sample, batches, threads, prepared
BATCHES = (1, 2, 7, 8, 9, 17)


@pytest.mark.nojit
@pytest.mark.parametrize("samples", BATCHES)
def test_batches_of_odd_sizes(samples):
    rng = np.random.default_rng(samples)
    mech = random_mechanism(rng, 7)
    q, qd, u = random_state(rng, mech, samples)
    loads = random_loads(rng, mech, samples)
    y = mech.hybrid_dynamics(q, qd, u, **loads, threads=1).y
    assert y.shape == (samples, mech.n)
    for k in range(samples):
        assert_close(y[k], sb.hybrid_dynamics(mech, q[k], qd[k], u[k], **sample_of(loads, k)), tolerance(mech, q[k]))
    for threads in (2, 3, None):  # a group of samples side by side is never cut
        assert np.array_equal(mech.hybrid_dynamics(q, qd, u, **loads, threads=threads).y, y)


# Every question, with what it takes: (q, qd, u, a third vector, and loads where they act).
QUESTIONS = {
    "hybrid_dynamics": lambda m, q, qd, u, loads, **t: m.hybrid_dynamics(q, qd, u, **loads, **t).y,
    "inverse_dynamics": lambda m, q, qd, u, loads, **t: m.inverse_dynamics(q, qd, u, **loads, **t),
    "forward_dynamics": lambda m, q, qd, u, loads, **t: m.forward_dynamics(q, qd, u, **loads, **t),
    "bias": lambda m, q, qd, u, loads, **t: m.bias(q, qd, **loads, **t),
    "gravity_load": lambda m, q, qd, u, loads, **t: m.gravity_load(q, **t),
    "mass_matrix": lambda m, q, qd, u, loads, **t: m.mass_matrix(q, **t),
    "energy": lambda m, q, qd, u, loads, **t: np.stack(m.energy(q, qd, loads.get("base"), **t), axis=-1),
    "momentum": lambda m, q, qd, u, loads, **t: m.momentum(q, qd, loads.get("base"), **t),
    "center_of_mass": lambda m, q, qd, u, loads, **t: m.center_of_mass(q, **t),
    "forward_kinematics": lambda m, q, qd, u, loads, **t: m.forward_kinematics(q, **t),
    "jacobian": lambda m, q, qd, u, loads, **t: m.jacobian(q, 3, **t),
    "jacobian_rate": lambda m, q, qd, u, loads, **t: m.jacobian_rate(q, qd, 3, **t),
    "jacobian_derivative": lambda m, q, qd, u, loads, **t: m.jacobian_derivative(q, 3, **t),
    "dy_dq": lambda m, q, qd, u, loads, **t: m.hybrid_sensitivity(q, qd, u, **loads, **t).dy_dq,
    "dy_dqd": lambda m, q, qd, u, loads, **t: m.hybrid_sensitivity(q, qd, u, **loads, **t).dy_dqd,
    "dy_du": lambda m, q, qd, u, loads, **t: m.hybrid_sensitivity(q, qd, u, **loads, **t).dy_du,
    "dy_dbase": lambda m, q, qd, u, loads, **t: m.hybrid_sensitivity(q, qd, u, **loads, **t, to_base=True).dy_dbase,
    "jvp": lambda m, q, qd, u, loads, **t: m.hybrid_jvp(q, qd, u, qd, u, q, **loads, **t)[1],
    "vjp": lambda m, q, qd, u, loads, **t: np.stack(m.hybrid_vjp(q, qd, u, qd, **loads, **t), axis=-1),
}


@pytest.mark.parametrize("loaded", [False, True])
@pytest.mark.parametrize("question", QUESTIONS)
def test_a_batch_is_its_samples_one_by_one(question, loaded):
    rng = np.random.default_rng(17)
    mech, ask = random_mechanism(rng, 7), QUESTIONS[question]
    q, qd, u = random_state(rng, mech, 17)
    loads = random_loads(rng, mech, 17) if loaded else {}
    together = ask(mech, q, qd, u, loads, threads=1)
    assert np.array_equal(together, ask(mech, q, qd, u, loads, threads=2))
    tol = tolerance(mech, q, least=1e-12, drive="forward")
    for k in range(17):
        alone = ask(mech, q[k], qd[k], u[k], sample_of(loads, k))
        assert_close(alone, together[k], tol)
    empty = {} if not loaded else {"wrench": loads["wrench"][0], "base": sample_of(loads, 0)["base"]}
    none = ask(mech, q[:0], qd[:0], u[:0], empty)
    assert none.shape == (0, *together.shape[1:])


@pytest.mark.nojit
def test_loads_may_be_shared_by_a_batch():
    rng = np.random.default_rng(3)
    mech = random_mechanism(rng, 5)
    q, qd, u = random_state(rng, mech, 9)
    loads = random_loads(rng, mech, 9)
    V0, dV0 = loads["base"]
    shared = {"wrench": loads["wrench"][0], "base": (V0[0], dV0[0])}
    repeated = {"wrench": np.repeat(loads["wrench"][:1], 9, 0), "base": (V0[[0] * 9], dV0[[0] * 9])}
    mixed = {"wrench": loads["wrench"], "base": (V0[0], dV0)}
    written_out = {"wrench": loads["wrench"], "base": (V0[[0] * 9], dV0)}
    for few, many in ((shared, repeated), (mixed, written_out)):
        got, want = (mech.hybrid_dynamics(q, qd, u, **loads).y for loads in (few, many))
        assert np.array_equal(got, want)
    assert not np.allclose(mech.hybrid_dynamics(q, qd, u, **shared).y, mech.hybrid_dynamics(q, qd, u, **mixed).y)


@pytest.mark.nojit
@settings(max_examples=10)
@given(seed=seeds, links=st.integers(1, 12))
def test_prepared_evaluators(seed, links):
    rng = np.random.default_rng(seed)
    mech = random_mechanism(rng, links)
    q, qd, u = random_state(rng, mech)
    tol = tolerance(mech, q)
    want = sb.hybrid_dynamics(mech, q, qd, u)
    f, g = mech.hybrid_evaluator(), mech.hybrid_sensitivity_evaluator()
    assert_close(f(q, qd, u), want, tol)
    y, D = g(q, qd, u)
    assert_close(y, want, tol)
    assert D.shape == (3, mech.n, mech.n)
    d = mech.hybrid_sensitivity(q.tolist(), qd, u, wrench=np.zeros((links, 6)))
    for got, answer in zip(D, (d.dy_dq, d.dy_dqd, d.dy_du), strict=True):
        assert_close(got, answer, tol)
    out = np.empty(mech.n)
    assert f(q, qd, u, out=out) is out
    assert np.array_equal(out, f(q, qd, u))


@pytest.mark.nojit
def test_prepared_evaluators_give_fresh_arrays_and_take_any_numbers():
    mech = library.branched_acrobot()
    f, g = mech.hybrid_evaluator(), mech.hybrid_sensitivity_evaluator()
    zero, one = np.zeros(3), np.ones(3)
    first, (_, D) = f(one, zero, zero), g(one, zero, zero)
    kept, kept_D = first.copy(), D.copy()
    f(zero, one, one), g(zero, one, one)
    assert np.array_equal(first, kept) and np.array_equal(D, kept_D)
    backwards = np.array([3.0, 2.0, 1.0])[::-1]
    want, _ = f(np.array([1.0, 2.0, 3.0]), zero, zero), g(one, zero, zero)
    for q in ([1, 2, 3], (1.0, 2.0, 3.0), np.array([1, 2, 3]), np.float32([1, 2, 3]), backwards):
        np.testing.assert_allclose(f(q, zero, zero), want, rtol=1e-13)
        np.testing.assert_allclose(g(q, zero, zero)[0], want, rtol=1e-13)
        np.testing.assert_allclose(mech.hybrid_dynamics(q, zero, zero).y, want, rtol=1e-13)
    with pytest.raises(InvalidValue, match="out: expected an array of float64"):
        f(zero, zero, zero, out=np.zeros(3, dtype=np.float32))
    with pytest.raises(ShapeError, match="out: expected shape"):
        f(zero, zero, zero, out=np.zeros(2))


@pytest.mark.nojit
@pytest.mark.parametrize("samples", [None, 3])
def test_answer_holds_what_was_given_and_what_was_found(samples):
    rng = np.random.default_rng(6)
    mech = partitions(rng, random_mechanism(rng, 6, MOVING))["every other"]
    q, qd, u = random_state(rng, mech, samples)
    a = mech.active_mask
    for state in ((q, qd, u), (q.tolist(), qd.tolist(), u.tolist())):
        for r in (mech.hybrid_dynamics(*state), mech.hybrid_sensitivity(*state)):
            assert np.array_equal(r.qdd[..., a], u[..., a]) and np.array_equal(r.tau[..., ~a], u[..., ~a])
            assert np.array_equal(r.qdd[..., ~a], r.y[..., ~a]) and np.array_equal(r.tau[..., a], r.y[..., a])
    for r, active in ((mech.inverse_sensitivity(q, qd, u), True), (mech.forward_sensitivity(q, qd, u), False)):
        qdd, tau = (u, r.y) if active else (r.y, u)
        assert np.array_equal(r.qdd, qdd) and np.array_equal(r.tau, tau)


@pytest.mark.nojit
@pytest.mark.parametrize("loads", [{}, {"wrench": np.ones((3, 6))}])
def test_answer_does_not_change_with_the_array_that_was_given(loads):
    """A loop that reuses its input buffer must not rewrite the answers that it has collected."""
    mech = library.branched_acrobot().with_drive(active=["left_hip"])
    q, qd, u = np.ones(3), np.zeros(3), np.ones(3)
    for ask in (mech.hybrid_dynamics, mech.hybrid_sensitivity, mech.inverse_sensitivity):
        r = ask(q, qd, u, **loads)
        qdd, tau = r.qdd.copy(), r.tau.copy()
        u[:] = 7.0
        assert np.array_equal(r.qdd, qdd) and np.array_equal(r.tau, tau)
        u[:] = 1.0


@pytest.mark.nojit
def test_arguments_are_not_written_to():
    rng = np.random.default_rng(2)
    mech = random_mechanism(rng, 6)
    q, qd, u = random_state(rng, mech, 3)
    loads = random_loads(rng, mech, 3)
    arrays = [q, qd, u, loads["wrench"], *loads["base"]]
    kept = [a.copy() for a in arrays]
    for ask in QUESTIONS.values():
        ask(mech, q, qd, u, loads)
    assert all(np.array_equal(a, b) for a, b in zip(arrays, kept, strict=True))


def test_python_threads_may_ask_the_same_mechanism():
    rng = np.random.default_rng(4)
    mech = library.arm7()
    states = [random_state(rng, mech, 33) for _ in range(8)]

    def ask(state):
        f = mech.hybrid_evaluator()
        return mech.hybrid_sensitivity(*state).dy_dq, np.array([f(*sample) for sample in zip(*state, strict=True)])

    want = [ask(state) for state in states]
    with ThreadPoolExecutor(4) as pool:
        for _ in range(5):
            for got, answer in zip(pool.map(ask, states), want, strict=True):
                assert np.array_equal(got[0], answer[0]) and np.array_equal(got[1], answer[1])


@pytest.mark.nojit
def test_a_derived_mechanism_does_not_inherit_what_was_computed():
    """What the kernels read is kept with the mechanism; a changed copy must make its own."""
    mech = library.acrobot("rods")
    zero = np.zeros(2)
    before = mech.hybrid_dynamics(zero, zero, zero).y
    mech.mass_matrix(zero), mech.inverse_dynamics(zero, zero, zero), mech.hybrid_sensitivity(zero, zero, zero)
    still = mech.with_gravity((0, 0, 0))
    assert np.array_equal(still.hybrid_dynamics(zero, zero, zero).y, zero)
    assert np.array_equal(still.hybrid_sensitivity(zero, zero, zero).y, zero)
    held = mech.with_drive(active=["elbow"])
    assert_close(held.hybrid_dynamics(zero, zero, zero).qdd, [-7.3575, 0.0], 1e-13)
    heavy = mech.with_parameters({"forearm.mass": 2.0, "forearm.inertia": mech.link("forearm").inertia * 2})
    assert heavy.mass_matrix(zero)[1, 1] == pytest.approx(2 / 3, rel=1e-14)
    assert np.array_equal(mech.hybrid_dynamics(zero, zero, zero).y, before)
    assert np.array_equal(pickle.loads(pickle.dumps(mech)).hybrid_dynamics(zero, zero, zero).y, before)


# ---------------------------------------------------------------- wrenches in frames of their own
def dense(mech, loads):
    """Return loads (link, pose, wrench) as rows in link frames: the force, its moment and the given moment."""
    rows = np.zeros((len(mech.links), 6))
    for link, pose, wrench in loads:
        i = link if isinstance(link, int) else mech.link_index(link)
        pose = np.eye(4) if pose is None else np.asarray(pose)
        moment, force = pose[:3, :3] @ wrench[:3], pose[:3, :3] @ wrench[3:]
        rows[i, :3] += moment + np.cross(pose[:3, 3], force)
        rows[i, 3:] += force
    return rows


@pytest.mark.nojit
@settings(max_examples=10)
@given(seed=seeds, count=st.integers(0, 7))
def test_wrenches_as_a_list(seed, count):
    """Any number per link, each in a frame of its own, links by name or by position."""
    rng = np.random.default_rng(seed)
    mech = random_mechanism(rng, 5)
    q, qd, u = random_state(rng, mech)
    loads = []
    for _ in range(count):
        i = int(rng.integers(5))
        pose = random_pose(rng) if rng.random() < 0.7 else None
        loads.append((mech.links[i].name if rng.random() < 0.5 else i, pose, rng.uniform(-5, 5, 6)))
    want = mech.hybrid_dynamics(q, qd, u, wrench=dense(mech, loads)).y
    tol = tolerance(mech, q)
    assert_close(mech.hybrid_dynamics(q, qd, u, wrench=loads).y, want, tol)
    assert_close(mech.hybrid_sensitivity(q, qd, u, wrench=tuple(loads)).y, want, tol)


@pytest.mark.nojit
def test_a_force_at_the_tip_of_a_lever():
    """By hand: 3 N across at the end of an arm of 2 m asks the motor for -6 N m, in whatever frame it is given."""
    arm = Link("arm", None, Revolute((0, 0, 1)), mass=1.0, com=(1, 0, 0))
    mech = Mechanism([arm], gravity=(0, 0, 0))
    zero = np.zeros(1)
    at_tip, turned = np.eye(4), np.eye(4)
    at_tip[0, 3] = turned[0, 3] = 2.0
    turned[:3, :3] = [[0, -1, 0], [1, 0, 0], [0, 0, 1]]  # its x axis is the arm's y axis
    for load in (
        ("arm", at_tip, [0, 0, 0, 0, 3, 0]),
        ("arm", turned, [0, 0, 0, 3, 0, 0]),
        ("arm", None, [0, 0, 6, 0, 3, 0]),
        (0, at_tip.tolist(), (0, 0, 6, 0, 0, 0)),
    ):
        assert_close(mech.inverse_dynamics(zero, zero, zero, wrench=[load]), [-6.0], 1e-15)
        assert_close(mech.forward_dynamics(zero, zero, zero, wrench=[load]), [6.0], 1e-15)


@pytest.mark.nojit
def test_wrenches_of_a_batch_as_a_list():
    rng = np.random.default_rng(12)
    mech = random_mechanism(rng, 5)
    q, qd, u = random_state(rng, mech, 9)
    each, pose, one = rng.uniform(-5, 5, (9, 6)), random_pose(rng), rng.uniform(-5, 5, 6)
    y = mech.hybrid_dynamics(q, qd, u, wrench=[("link1", pose, each), ("link1", None, one), (0, None, one)]).y
    for k in range(9):
        rows = dense(mech, [("link1", pose, each[k]), ("link1", None, one), (0, None, one)])
        assert_close(y[k], sb.hybrid_dynamics(mech, q[k], qd[k], u[k], rows), tolerance(mech, q))


@pytest.mark.nojit
def test_a_wrench_on_a_link_that_is_welded_to_the_base_does_nothing():
    post = Link("post", None, Fixed(), random_pose(np.random.default_rng(1)), 2.0, (0.1, 0.2, 0.3))
    arm = Link("arm", "post", Revolute((0, 0, 1)), mass=1.0, com=(1, 0, 0))
    mech, q = Mechanism([arm, post]), np.ones(1)
    plain = mech.hybrid_dynamics(q, q, q).y
    assert np.array_equal(mech.hybrid_dynamics(q, q, q, wrench=[("post", None, np.ones(6))]).y, plain)
    assert not np.allclose(mech.hybrid_dynamics(q, q, q, wrench=[("arm", None, np.ones(6))]).y, plain)


# ---------------------------------------------------------------- mechanisms at the edges
@pytest.mark.nojit
def test_point_masses_and_massless_links():
    """Every other link of a chain has no mass, the others are points; the passive block is still regular."""
    rng = np.random.default_rng(11)
    mech = random_mechanism(rng, 6, MOVING, branching=0.0, terms=False, shuffled=False)

    def change(link):
        k = int(link.name[4:])
        parent = f"link{k - 1}" if k else None
        return {"parent": parent, "mass": link.mass if k % 2 else 0.0, "inertia": np.zeros((3, 3))}

    thin = rebuilt(mech, change)
    for driven in partitions(rng, thin).values():
        check_against_both(driven, *random_state(rng, thin), random_loads(rng, thin))


@pytest.mark.nojit
def test_a_mechanism_that_can_not_move():
    mech = Mechanism([Link("post", None, Fixed(), mass=2.0, com=(0, 1, 0))])
    for samples in ((), (3,)):
        empty = np.zeros((*samples, 0))
        assert mech.hybrid_dynamics(empty, empty, empty).y.shape == empty.shape
        assert mech.hybrid_sensitivity(empty, empty, empty).dy_dq.shape == (*samples, 0, 0)
        assert mech.mass_matrix(empty).shape == (*samples, 0, 0)
        assert mech.jacobian(empty, "post").shape == (*samples, 6, 0)
        assert np.all(mech.energy(empty, empty)[1] == 2.0 * 9.81)
        assert np.all(mech.center_of_mass(empty) == [0, 1, 0])


@pytest.mark.nojit
def test_a_screw_without_pitch_is_revolute():
    rng = np.random.default_rng(13)
    mech = random_mechanism(rng, 5, ("revolute",))

    def change(link):
        joint = link.joint
        names = ("point", "damping", "friction", "friction_velocity", "armature", "stiffness", "rest")
        return {"joint": Screw(joint.axis, 0.0, **{name: getattr(joint, name) for name in names})}

    q, qd, u = random_state(rng, mech)
    loads = random_loads(rng, mech)
    want = mech.hybrid_dynamics(q, qd, u, **loads).y
    assert_close(rebuilt(mech, change).hybrid_dynamics(q, qd, u, **loads).y, want, tolerance(mech, q))


@pytest.mark.nojit
@pytest.mark.parametrize("angle", [0.0, np.pi / 4, np.pi / 2, np.pi, -np.pi, 3 * np.pi / 2, 1e3, -1e6, 1e9, 1e15])
def test_angles_of_any_size(angle):
    """The kernels have a sine of their own: at the ends of its quadrants, and where its reduction gives up."""
    rng = np.random.default_rng(14)
    mech = random_mechanism(rng, 5, ("revolute",), terms=False)
    _, qd, u = random_state(rng, mech)
    q = angle * np.array([1.0, -1.0, 1.0, 1.0, -1.0])
    # the same pose, near 0: the formulations cancel q against sin q
    with mpmath.workdps(60):
        near = np.array([float(mpmath.mpf(x) - 2 * mpmath.pi * mpmath.nint(x / (2 * mpmath.pi))) for x in q])
    want = sb.hybrid_dynamics(mech, near, qd, u)
    tol = tolerance(mech, near, 1e-12)
    assert_close(mech.hybrid_dynamics(q, qd, u).y, want, tol)
    assert_close(pinocchio_model.Oracle(mech).hybrid_dynamics(q, qd, u), want, tol)
    for k in range(9):  # one lane, far from the others
        batch = rng.uniform(-1, 1, (9, 5))
        batch[k] = q
        y = mech.hybrid_dynamics(batch, np.tile(qd, (9, 1)), np.tile(u, (9, 1))).y
        assert_close(y[k], want, tol)
        assert_close(y[k - 1], sb.hybrid_dynamics(mech, batch[k - 1], qd, u), tolerance(mech, batch[k - 1], 1e-12))


# ---------------------------------------------------------------- numbers from the literature
def xiang_torque(t1, t2, w1, w2, a1, a2, f):
    """Xiang, Arora and Abdel-Malek (2008), (69) and (70), with the numbers of their Table 1."""
    L1, L2, l1, l2, m1, m2, I1, I2, g = 0.4, 0.4, 0.2, 0.2, 0.5, 0.5, 0.1, 0.1, 9.8062
    s2, c1, c2, c12 = np.sin(t2), np.cos(t1), np.cos(t2), np.cos(t1 + t2)
    M22 = I2 + m2 * l2**2
    M12 = M22 + m2 * L1 * l2 * c2
    M11 = I1 + I2 + m1 * l1**2 + m2 * (L1**2 + l2**2 + 2 * L1 * l2 * c2)
    far = (m2 * g * l2 + f * L2) * c12
    near = (m1 * g * l1 + m2 * g * L1 + f * L1) * c1
    tau1 = M11 * a1 + M12 * a2 - m2 * L1 * l2 * s2 * (2 * w1 * w2 + w2**2) + far + near  # (69)
    tau2 = M12 * a1 + M22 * a2 + m2 * L1 * l2 * s2 * w1**2 + far  # (70)
    return np.array([tau1, tau2])


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
        assert_close(mech.forward_dynamics(q, qd, want, wrench=load), qdd, tolerance(mech, q, 1e-13, "forward"))
        held = mech.with_drive(active=["elbow"])
        r = held.hybrid_dynamics(q, qd, [want[0], qdd[1]], wrench=load)
        assert_close(np.stack([r.tau, r.qdd]), np.stack([want, qdd]), tolerance(held, q, 1e-13))


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


# ---------------------------------------------------------------- refusals
def acrobot_arguments(**change):
    return {"q": np.zeros(2), "qd": np.zeros(2), "u": np.zeros(2), **change}


REFUSED = [
    ({"q": np.zeros(3)}, ShapeError, r"q: expected shape \(2,\) or \(N, 2\), got \(3,\); .*shoulder, elbow"),
    ({"q": 0.0}, ShapeError, r"q: expected shape \(2,\)"),
    ({"q": np.zeros((1, 1, 2))}, ShapeError, "q: expected shape"),
    ({"qd": np.zeros(3)}, ShapeError, r"qd: expected shape \(2,\) like q, got \(3,\)"),
    ({"u": np.zeros((4, 2))}, ShapeError, r"u: expected shape \(2,\) like q, got \(4, 2\)"),
    ({"u": np.zeros(1)}, ShapeError, r"u: expected shape \(2,\) like q, got \(1,\)"),
    ({"q": [[0.0], [1.0, 2.0]]}, ShapeError, "q: "),
    ({"q": ["a", "b"]}, InvalidType, "q: expected real numbers"),
    ({"u": [None, 1.0]}, InvalidType, "u: expected real numbers"),
    ({"q": np.array([1j, 0])}, InvalidType, "q: expected real numbers"),
    ({"q": np.array([0.0, np.nan])}, NonFinite, "joint 'elbow': q is nan"),
    ({"qd": np.array([np.inf, 0.0])}, NonFinite, "joint 'shoulder': qd is inf"),
    ({"u": np.array([0.0, -np.inf])}, NonFinite, "joint 'elbow': u is -inf"),
    ({"wrench": np.zeros(6)}, ShapeError, r"wrench: expected shape \(2, 6\), got \(6,\)"),
    ({"wrench": np.zeros((3, 6))}, ShapeError, r"wrench: expected shape \(2, 6\), got \(3, 6\)"),
    ({"wrench": np.zeros((1, 2, 6))}, ShapeError, r"wrench: expected shape \(2, 6\), got \(1, 2, 6\)"),
    ({"wrench": np.full((2, 6), np.nan)}, NonFinite, "link 'upper_arm': wrench is nan"),
    ({"wrench": [("forarm", None, np.zeros(6))]}, UnknownName, "did you mean 'forearm'"),
    ({"wrench": [(2, None, np.zeros(6))]}, InvalidValue, "link 2: there are 2 links"),
    ({"wrench": [("forearm", None, np.zeros(3))]}, ShapeError, r"wrench\[0\] on link 'forearm'"),
    ({"wrench": [("forearm", 2 * np.eye(4), np.zeros(6))]}, CstormError, "."),
    ({"wrench": [("forearm", np.eye(3), np.zeros(6))]}, CstormError, "."),
    ({"wrench": [("forearm", None, [0, 0, 0, 0, 0, np.nan])]}, NonFinite, "link 'forearm'"),
    ({"base": (np.zeros(6),)}, InvalidValue, r"base: expected the pair \(V0, dV0\)"),
    ({"base": 3.0}, InvalidValue, "base: expected the pair"),
    ({"base": (np.zeros(6), np.zeros(3))}, ShapeError, r"base, dV0: expected shape \(6,\)"),
    ({"base": (np.full(6, np.nan), np.zeros(6))}, NonFinite, "base"),
]


@pytest.mark.nojit
@pytest.mark.parametrize("question", ["hybrid_dynamics", "hybrid_sensitivity"])
@pytest.mark.parametrize(("change", "error", "message"), REFUSED)
def test_wrong_arguments_are_refused(question, change, error, message):
    with pytest.raises(error, match=message) as caught:
        getattr(library.acrobot(), question)(**acrobot_arguments(**change))
    assert isinstance(caught.value, CstormError)


@pytest.mark.nojit
@pytest.mark.parametrize("wrong", [[[0.0], [1.0, 2.0]], ["a", "b"], None, np.zeros(3), 0.0, [np.nan, 0.0]])
def test_wrong_positions_are_refused_by_every_question(wrong):
    mech, fine = library.acrobot(), np.zeros(2)
    asked = [
        lambda: mech.inverse_dynamics(wrong, fine, fine),
        lambda: mech.forward_dynamics(wrong, fine, fine),
        lambda: mech.bias(wrong, fine),
        lambda: mech.gravity_load(wrong),
        lambda: mech.mass_matrix(wrong),
        lambda: mech.energy(wrong, fine),
        lambda: mech.momentum(wrong, fine),
        lambda: mech.center_of_mass(wrong),
        lambda: mech.forward_kinematics(wrong),
        lambda: mech.jacobian(wrong, "forearm"),
        lambda: mech.jacobian_rate(wrong, fine, "forearm"),
        lambda: mech.jacobian_derivative(wrong, "forearm"),
        lambda: mech.hybrid_jvp(wrong, fine, fine, fine, fine, fine),
        lambda: mech.hybrid_vjp(wrong, fine, fine, fine),
        lambda: mech.hybrid_evaluator()(wrong, fine, fine),
        lambda: mech.hybrid_sensitivity_evaluator()(wrong, fine, fine),
    ]
    for ask in asked:
        with pytest.raises(CstormError, match="q"):
            ask()


@pytest.mark.nojit
@pytest.mark.parametrize("active", [[], ["slider"]])
@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("argument", ["q", "qd", "u"])
def test_no_number_that_is_not_finite_passes_unseen(argument, bad, active):
    """Not even where it has no influence: the place and the rate of a slider that stands on the base."""
    slider = Link("slider", None, Prismatic((1, 0, 0)), mass=1.0)
    mech = Mechanism([slider], gravity=(0, 0, 0), active=active)
    given_ones = {"q": np.zeros(1), "qd": np.zeros(1), "u": np.zeros(1), argument: np.array([bad])}
    questions = [mech.hybrid_dynamics, mech.hybrid_sensitivity]
    for ask in (*questions, mech.hybrid_evaluator(), mech.hybrid_sensitivity_evaluator()):
        with pytest.raises(NonFinite, match=f"joint 'slider': {argument}"):
            ask(**given_ones)


@pytest.mark.nojit
@pytest.mark.parametrize("threads", [0, -1, 1.5, True, "2"])
def test_wrong_numbers_of_threads_are_refused(threads):
    rest = np.zeros((17, 2))
    with pytest.raises(InvalidValue, match="threads: expected a positive number"):
        library.acrobot().hybrid_dynamics(rest, rest, rest, threads=threads)


@pytest.mark.nojit
def test_a_result_that_is_too_large_is_refused():
    mech = library.acrobot()
    fast = np.full(2, 1e200)
    for qd in (fast, np.tile(fast, (3, 1))):
        zero = np.zeros_like(qd)
        with pytest.raises(NonFinite, match="not finite although all given numbers are"):
            mech.hybrid_dynamics(zero, qd, zero)
        with pytest.raises(NonFinite, match="not finite although all given numbers are"):
            mech.hybrid_sensitivity(zero, qd, zero)


GHOSTS = {
    "massless": Link("ghost", "arm", Prismatic((1, 0, 0))),
    "on the axis": Link("ghost", "arm", Revolute((0, 0, 1)), mass=1.0, com=(0, 0, 0.3)),
    "a rod about itself": Link("ghost", "arm", Revolute((1, 1, 0)), mass=1.0, inertia=np.eye(3) - 0.5 * np.array(
        [[1, 1, 0], [1, 1, 0], [0, 0, 0]]
    )),
}  # fmt: skip


@pytest.mark.nojit
@pytest.mark.filterwarnings("ignore:(divide by zero|invalid value):RuntimeWarning")  # of the uncompiled run
@pytest.mark.parametrize("kind", GHOSTS)
def test_a_passive_joint_that_moves_no_inertia_is_named(kind):
    arm = Link("arm", None, Revolute((0, 0, 1)), random_pose(np.random.default_rng(9)), mass=1.0, com=(1, 0, 0))
    mech = Mechanism([GHOSTS[kind], arm])
    q, zero = np.array([0.3, 0.4]), np.zeros(2)
    for ask in (
        mech.hybrid_dynamics,
        mech.hybrid_sensitivity,
        mech.forward_dynamics,
        mech.hybrid_evaluator(),
        mech.hybrid_sensitivity_evaluator(),
        lambda *state: mech.hybrid_jvp(*state, zero, zero, zero),
        lambda *state: mech.hybrid_vjp(*state, zero),
    ):
        with pytest.raises(SingularInertia, match="joint 'ghost': moves no inertia, so"):
            ask(q, zero, zero)
    held = mech.with_drive(active=["ghost"])
    assert_close(held.hybrid_dynamics(q, zero, zero).y, sb.hybrid_dynamics(held, q, zero, zero), 1e-12)
    held.hybrid_sensitivity(q, zero, zero), held.hybrid_vjp(q, zero, zero, zero)
    mech.inverse_dynamics(q, zero, zero), mech.mass_matrix(q)
    assert_close(rebuilt(mech, lambda link: {"joint": armed(link.joint)}).forward_dynamics(q, zero, zero)[0], 0.0, 1)


def armed(joint):
    """Return the joint with an armature, which makes up for missing inertia."""
    return type(joint)(joint.axis, point=joint.point, armature=0.1)


@pytest.mark.nojit
@pytest.mark.filterwarnings("ignore:(divide by zero|invalid value):RuntimeWarning")
@pytest.mark.parametrize("kind", [Revolute, Prismatic])
@pytest.mark.parametrize("seed", range(5))
def test_a_joint_whose_inertia_another_takes_off_is_named(kind, seed):
    """Two joints on one axis, nothing between them that has mass: what is left for the first is rounding alone."""
    rng = np.random.default_rng(seed)
    axis, pose = rng.normal(size=3), random_pose(rng)
    first = Link("first", None, kind(axis), pose)
    body = Link("body", "first", kind(axis), mass=1.3, com=rng.normal(size=3), inertia=np.diag([2.0, 3.0, 4.0]))
    mech, rest = Mechanism([body, first]), np.zeros(2)
    for ask in (mech.hybrid_dynamics, mech.hybrid_sensitivity, mech.hybrid_evaluator()):
        with pytest.raises(SingularInertia, match="joint 'first': moves no inertia, so"):
            ask(rest, rest, rest)
    one_held = mech.with_drive(active=["first"])
    assert_close(one_held.hybrid_dynamics(rest, rest, rest).y, sb.hybrid_dynamics(one_held, rest, rest, rest), 1e-12)


@pytest.mark.nojit
@pytest.mark.filterwarnings("ignore:(divide by zero|invalid value|overflow):RuntimeWarning")
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("rows", [[0], [5], [8], [16], [6, 7], [7, 8, 16]])
def test_the_first_bad_row_of_a_batch_is_named(rows, threads):
    """A slider on a turned arm without inertia of its own, on the joint's axis; then rates whose squares overflow."""
    arm = Link("arm", None, Revolute((0, 0, 1)), mass=1.0)
    slider = Link("slider", "arm", Prismatic((1, 0, 0)), mass=1.0)
    mech = Mechanism([slider, arm])
    fine, zero = np.ones((17, 2)), np.zeros((17, 2))
    on_axis, fast, unknown = fine.copy(), zero.copy(), fine.copy()
    on_axis[rows, 0], fast[rows], unknown[rows, 0] = 0.0, 1e200, np.nan
    for error, message, state in (
        (SingularInertia, f"joint 'arm': moves no inertia in row {rows[0]}, so", (on_axis, zero, zero)),
        (NonFinite, f"the result in row {rows[0]} is not finite although", (fine, fast, zero)),
        (NonFinite, f"joint 'slider': q is nan in row {rows[0]}", (unknown, zero, zero)),
    ):
        for ask in (mech.hybrid_dynamics, mech.hybrid_sensitivity, mech.forward_dynamics):
            with pytest.raises(error, match=message):
                ask(*state, threads=threads)
