"""Values of the dynamics: the kernels against the formulations and Pinocchio, in every way of asking for them."""

from __future__ import annotations

import itertools
import pickle

import mpmath
import numpy as np
import pytest
from closeness import assert_close, tolerance
from hypothesis import example, given, settings
from hypothesis import strategies as st
from random_mechanisms import (
    MOVING,
    in_a_row,
    partitions,
    random_loads,
    random_mechanism,
    random_pose,
    random_state,
    rebuilt,
    sample_of,
)

from cstormpy import formulations as sb
from cstormpy.mechanism import Fixed, Link, Mechanism, Revolute, Screw, library

# Pinocchio has no wheels for Windows.
Oracle = pytest.importorskip("pinocchio_model", exc_type=ImportError).Oracle

seeds = st.integers(0, 2**32 - 1)
SORTS = ("none", "all", "one", "all but one", "every other", "some")


def check_against_both(mech, q, qd, u, loads):
    """Compare y of one sample with the formulations and with Pinocchio; return it."""
    tol = tolerance(mech, q)
    y = mech.hybrid_dynamics(q, qd, u, **loads).y
    assert_close(y, sb.hybrid_dynamics(mech, q, qd, u, **loads), tol)
    assert_close(y, Oracle(mech, floating=True).hybrid_dynamics(q, qd, u, **loads), tol)
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


@pytest.mark.slow
@settings(max_examples=20)
@given(seed=seeds, links=st.integers(1, 40))
def test_inverse_and_forward_dynamics_whatever_the_drive(seed, links):
    rng = np.random.default_rng(seed)
    mech = random_mechanism(rng, links)
    q, qd, u = random_state(rng, mech)
    loads = random_loads(rng, mech)
    peer = Oracle(mech, floating=True)
    tau = mech.inverse_dynamics(q, qd, u, **loads)
    assert_close(tau, sb.inverse_dynamics(mech, q, qd, u, **loads), 1e-10)
    assert_close(tau, peer.inverse_dynamics(q, qd, u, **loads), 1e-10)
    tol = tolerance(mech, q, drive="forward")
    free = mech.with_drive(active=[])
    assert_close(mech.forward_dynamics(q, qd, u, **loads), sb.hybrid_dynamics(free, q, qd, u, **loads), tol)
    # Pinocchio's own articulated body algorithm, which cannot move the base
    del loads["base"]
    want = Oracle(mech).forward_dynamics(q, qd, u, **loads)
    assert_close(mech.forward_dynamics(q, qd, u, **loads), want, tol)
    still = np.zeros(mech.n)
    assert_close(mech.bias(q, qd, **loads), peer.inverse_dynamics(q, qd, still, **loads), 1e-10)
    springs = peer.losses(q, still)
    assert_close(mech.gravity_load(q), peer.inverse_dynamics(q, still, still) - springs, 1e-10)
    assert_close(mech.mass_matrix(q), peer.mass_matrix(q), 1e-10)
    assert_close(mech.mass_matrix(q), sb.mass_matrix(mech, q), 1e-10)


#: The formulations know joints of one coordinate.
OF_ONE = [name for name in library.names() if all(link.joint.dof < 2 for link in library.get(name).links)]


@pytest.mark.parametrize("name", OF_ONE)
def test_ready_mechanisms(name):
    mech = library.get(name).without_loops()
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


@pytest.mark.usefixtures("eager_threads")
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


@pytest.mark.usefixtures("eager_threads")
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
    welded = mech.hybrid_dynamics(q, q, q, wrench=[("post", None, np.ones(6))]).y
    np.testing.assert_allclose(welded, plain, rtol=1e-14)  # by other code, which may round otherwise
    assert not np.allclose(mech.hybrid_dynamics(q, q, q, wrench=[("arm", None, np.ones(6))]).y, plain)


# ---------------------------------------------------------------- mechanisms at the edges
@pytest.mark.nojit
def test_point_masses_and_massless_links():
    """Every other link of a chain has no mass, the others are points; the passive block is still regular."""
    rng = np.random.default_rng(11)
    mech = in_a_row(random_mechanism(rng, 6, MOVING, terms=False))

    def change(link):
        return {"mass": link.mass if mech.link_index(link.name) % 2 else 0.0, "inertia": np.zeros((3, 3))}

    thin = rebuilt(mech, change)
    for driven in partitions(rng, thin).values():
        check_against_both(driven, *random_state(rng, thin), random_loads(rng, thin))


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
    assert_close(Oracle(mech).hybrid_dynamics(q, qd, u), want, tol)
    for k in range(9):  # one lane, far from the others
        batch = rng.uniform(-1, 1, (9, 5))
        batch[k] = q
        y = mech.hybrid_dynamics(batch, np.tile(qd, (9, 1)), np.tile(u, (9, 1))).y
        assert_close(y[k], want, tol)
        assert_close(y[k - 1], sb.hybrid_dynamics(mech, batch[k - 1], qd, u), tolerance(mech, batch[k - 1], 1e-12))
