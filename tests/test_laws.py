"""Laws of mechanics, which hold whatever the algorithm; on random trees, through the public methods alone."""

from __future__ import annotations

import numpy as np
import pytest
from closeness import EPS, assert_close, central_difference, tolerance
from random_mechanisms import (
    MOVING,
    any_tree,
    changed_links,
    partitions,
    random_loads,
    random_mechanism,
    random_pose,
    random_state,
    rebuilt,
)

from cstormpy import lie
from cstormpy.mechanism import Fixed, Link, Mechanism, Prismatic, Revolute

#: Rounding of some ten operations a joint, over 40 joints, relative to the largest number of a result.
ROUNDING = 1e-12
#: Of a five-point difference with steps of 1e-3: 3e-14 of the fifth derivative, and rounding over the step.
H, DIFFERENCE = 1e-3, 1e-9


def without_losses(mech):
    """Return the mechanism with neither damping nor friction."""
    zeros = {f"{name}.{term}": 0.0 for name in mech.names for term in ("damping", "friction")}
    return mech.with_parameters(zeros)


def lost_power(mech, qd):
    """Return what damping and friction take."""
    joints = [mech.joint(name) for name in mech.names]
    return sum(
        j.damping * v**2 + j.friction * v * np.tanh(v / j.friction_velocity) for j, v in zip(joints, qd, strict=True)
    )


def rate_of_mass_matrix(mech, q):
    """Return ∂M/∂q, last index of q, exact: ∂ID/∂q of a unit acceleration less that of none, at rest."""
    n, still = mech.n, np.zeros(mech.n)
    rest = mech.inverse_sensitivity(q, still, still).dy_dq
    batch = mech.inverse_sensitivity(np.tile(q, (n, 1)), np.zeros((n, n)), np.eye(n))
    return np.moveaxis(batch.dy_dq - rest, 0, 1)


# ---------------------------------------------------------------- energy
@any_tree()
def test_kinetic_energy_is_the_mass_matrixs(seed, links):
    rng = np.random.default_rng(seed)
    mech = random_mechanism(rng, links)
    q, qd, _ = random_state(rng, mech)
    M, (T, _) = mech.mass_matrix(q), mech.energy(q, qd)
    assert np.array_equal(M, M.T)
    assert np.linalg.eigvalsh(M)[0] > 0.0
    assert T == pytest.approx(qd @ M @ qd / 2, rel=ROUNDING)
    assert_close(mech.inertial(q, qd).kinetic_by_qd, M @ qd, ROUNDING)


@any_tree()
def test_kinetic_energy_of_all_links_under_a_moving_base(seed, links):
    """½ Σ V·J V with the twists of the Jacobians: of the base, of each link on it, and the armatures."""
    rng = np.random.default_rng(seed)
    mech = random_mechanism(rng, links)
    q, qd, _ = random_state(rng, mech)
    base = random_loads(rng, mech)["base"]
    X = mech.forward_kinematics(q)
    twists = [lie.transform_twist(lie.inverse(X[i]), base[0]) + mech.jacobian(q, i) @ qd for i in range(links)]
    J = [link.spatial_inertia for link in mech.links]
    armature = np.array([mech.joint(name).armature for name in mech.names])
    want = (sum(V @ J_i @ V for V, J_i in zip(twists, J, strict=True)) + armature @ qd**2) / 2
    assert mech.energy(q, qd, base)[0] == pytest.approx(want, rel=ROUNDING)
    momentum = sum(lie.transform_wrench(X_i, J_i @ V) for X_i, J_i, V in zip(X, J, twists, strict=True))
    assert_close(mech.momentum(q, qd, base), momentum, ROUNDING)


@pytest.mark.slow
@any_tree(examples=10)
def test_gradients_of_the_energies(seed, links):
    rng = np.random.default_rng(seed)
    mech = random_mechanism(rng, links)
    q, qd, _ = random_state(rng, mech)
    for base in (None, random_loads(rng, mech)["base"]):
        found = mech.inertial(q, qd, base)
        for got, want in (
            (found.kinetic_by_q, central_difference(lambda x, b=base: mech.energy(x, qd, b)[0], q, H)),
            (found.kinetic_by_qd, central_difference(lambda x, b=base: mech.energy(q, x, b)[0], qd, H)),
            (found.potential_by_q, central_difference(lambda x, b=base: mech.energy(x, qd, b)[1], q, H)),
        ):
            assert_close(got, want, DIFFERENCE)


@any_tree()
def test_the_potentials_gradient_is_the_load_of_gravity_and_springs(seed, links):
    rng = np.random.default_rng(seed)
    mech = random_mechanism(rng, links)
    q, _, _ = random_state(rng, mech)
    joints = [mech.joint(name) for name in mech.names]
    stiffness = np.array([joint.stiffness for joint in joints])
    stretch = q - [joint.rest for joint in joints]
    springs = stiffness * stretch
    found, still = mech.inertial(q), np.zeros(mech.n)
    assert_close(mech.gravity_load(q) + springs, found.potential_by_q, ROUNDING)
    assert_close(mech.inverse_dynamics(q, still, still), found.potential_by_q, ROUNDING)
    # gravity pulls at the centre of mass
    weight = mech.gravity * found.mass
    height = -weight @ mech.center_of_mass(q)
    potential = height + springs @ stretch / 2
    assert found.potential == pytest.approx(potential, rel=ROUNDING, abs=ROUNDING * np.abs(weight).sum())
    assert_close(mech.gravity_load(q), -weight @ found.center_of_mass_jacobian, ROUNDING)


@any_tree()
def test_power_is_the_rate_of_the_energy(seed, links):
    """dE/dt = τ·q̇ + Σ w·V - losses, the motion found by the hybrid dynamics."""
    rng = np.random.default_rng(seed)
    mech = random_mechanism(rng, links)
    q, qd, u = random_state(rng, mech)
    wrench = random_loads(rng, mech)["wrench"]
    r, found = mech.hybrid_dynamics(q, qd, u, wrench), mech.inertial(q, qd)
    changes = found.kinetic_by_q @ qd, found.kinetic_by_qd @ r.qdd, found.potential_by_q @ qd
    pushed = sum(w @ mech.jacobian(q, i) @ qd for i, w in enumerate(wrench))
    gained = r.tau @ qd + pushed - lost_power(mech, qd)
    # the sums cancel: rounding counts against their parts
    scale = max(1.0, np.abs(r.tau) @ np.abs(qd), np.abs(found.kinetic_by_qd) @ np.abs(r.qdd), *np.abs(changes))
    assert abs(sum(changes) - gained) < tolerance(mech, q) * scale


# ---------------------------------------------------------------- structure of the equations of motion
@any_tree(links=30)
def test_rate_of_the_mass_matrix_less_twice_the_coriolis_matrix_is_skew(seed, links):
    """The velocity terms c(q, q̇) are quadratic in q̇, so that C = ½ ∂c/∂q̇ is Christoffel's C, and Ṁ - 2 C is skew."""
    rng = np.random.default_rng(seed)
    mech = without_losses(random_mechanism(rng, links))
    q, qd, _ = random_state(rng, mech)
    still = np.zeros(mech.n)
    C = mech.inverse_sensitivity(q, qd, still).dy_dqd / 2
    dM = rate_of_mass_matrix(mech, q)
    M_dot = dM @ qd
    scale = max(1.0, np.abs(M_dot).max(), np.abs(C).max())
    assert np.abs((M_dot - 2 * C) + (M_dot - 2 * C).T).max() < ROUNDING * scale
    velocity_terms = mech.bias(q, qd) - mech.bias(q, still)
    assert_close(C @ qd, velocity_terms, ROUNDING)
    christoffel = (dM + np.swapaxes(dM, 1, 2) - np.transpose(dM, (2, 1, 0))) @ qd / 2
    assert_close(C, christoffel, ROUNDING)


@any_tree(examples=10, links=20)
def test_the_mass_matrix_changes_as_the_sensitivities_say(seed, links):
    rng = np.random.default_rng(seed)
    mech = random_mechanism(rng, links)
    q, _, _ = random_state(rng, mech)
    assert_close(rate_of_mass_matrix(mech, q), central_difference(mech.mass_matrix, q, H), DIFFERENCE)


@any_tree()
def test_inverse_dynamics_undoes_forward_dynamics(seed, links):
    rng = np.random.default_rng(seed)
    mech = random_mechanism(rng, links)
    q, qd, u = random_state(rng, mech)
    loads = random_loads(rng, mech)
    tol = tolerance(mech, q, drive="forward")
    tau = mech.inverse_dynamics(q, qd, u, **loads)
    size = max(1.0, np.abs(tau).max())  # what cancels on the way back
    assert np.abs(mech.forward_dynamics(q, qd, tau, **loads) - u).max() < tol * size
    qdd = mech.forward_dynamics(q, qd, u, **loads)
    assert np.abs(mech.inverse_dynamics(q, qd, qdd, **loads) - u).max() < tol * max(1.0, np.abs(qdd).max())
    assert_close(tau, mech.mass_matrix(q) @ u + mech.bias(q, qd, **loads), ROUNDING)


@any_tree()
def test_every_drive_finds_the_same_motion(seed, links):
    """What one drive finds, given to another as what is prescribed, brings what was given to the first."""
    rng = np.random.default_rng(seed)
    mech = random_mechanism(rng, links)
    q, qd, u = random_state(rng, mech)
    loads = random_loads(rng, mech)
    first = mech.hybrid_dynamics(q, qd, u, **loads)
    for other in partitions(rng, mech).values():
        a = other.active_mask
        r = other.hybrid_dynamics(q, qd, np.where(a, first.qdd, first.tau), **loads)
        tol = max(tolerance(mech, q), tolerance(other, q))
        size = max(1.0, np.abs(first.qdd).max(), np.abs(first.tau).max())
        assert np.abs(r.tau - first.tau).max() < tol * size
        assert np.abs(r.qdd - first.qdd).max() < tol * size


@pytest.mark.nojit
def test_what_does_not_ask_for_the_drive_does_not_depend_on_it():
    rng = np.random.default_rng(6)
    mech = random_mechanism(rng, 8)
    q, qd, u = random_state(rng, mech)
    loads = random_loads(rng, mech)

    def answers(m):
        d, e = m.inverse_sensitivity(q, qd, u, **loads), m.forward_sensitivity(q, qd, u, **loads)
        return [
            *(d.y, d.dy_dq, d.dy_dqd, d.dy_du, e.y, e.dy_dq, e.dy_dqd, e.dy_du),
            *(m.inverse_dynamics(q, qd, u, **loads), m.forward_dynamics(q, qd, u, **loads)),
            *(m.bias(q, qd, **loads), m.gravity_load(q), m.mass_matrix(q), np.array(m.energy(q, qd))),
            *(m.momentum(q, qd), m.center_of_mass(q), m.forward_kinematics(q), m.jacobian(q, 2)),
        ]

    want = answers(mech)
    for other in (*partitions(rng, mech).values(), mech.with_drive(active=[], actuated=[])):
        assert all(np.array_equal(got, answer) for got, answer in zip(answers(other), want, strict=True))


@any_tree()
def test_reciprocity(seed, links):
    """∂y/∂u is symmetric within the passive joints and within the active ones, and skew between the two."""
    rng = np.random.default_rng(seed)
    mech = random_mechanism(rng, links)
    q, qd, u = random_state(rng, mech)
    D, p = mech.hybrid_sensitivity(q, qd, u).dy_du, ~mech.active_mask
    tol = tolerance(mech, q)
    assert_close(D, D.T * np.where(np.equal.outer(p, p), 1.0, -1.0), tol)
    assert_close(D[np.ix_(p, p)] @ mech.mass_matrix(q)[np.ix_(p, p)], np.eye(p.sum()), tol * max(1, np.abs(D).max()))


@any_tree()
def test_slower_motion_along_the_same_path(seed, links):
    """Hollerbach: at s times the speed the torques of motion are s² as large; gravity, springs and wrenches stay."""
    rng = np.random.default_rng(seed)
    mech = without_losses(random_mechanism(rng, links))
    q, qd, qdd = random_state(rng, mech)
    wrench = random_loads(rng, mech)["wrench"]
    still, s = np.zeros(mech.n), 0.3
    static = mech.inverse_dynamics(q, still, still, wrench)
    motion = mech.inverse_dynamics(q, qd, qdd, wrench) - static
    slow = mech.inverse_dynamics(q, s * qd, s**2 * qdd, wrench) - static
    scale = max(1.0, np.abs(motion).max(), np.abs(static).max())
    assert np.abs(slow - s**2 * motion).max() < ROUNDING * scale


# ---------------------------------------------------------------- momentum and the centre of mass
@any_tree()
def test_momentum_is_the_centre_of_masss(seed, links):
    rng = np.random.default_rng(seed)
    mech = random_mechanism(rng, links)
    q, qd, _ = random_state(rng, mech)
    found = mech.inertial(q, qd)
    assert_close(mech.momentum(q, qd), found.momentum_matrix @ qd, ROUNDING)
    assert_close(found.momentum[3:], found.mass * (found.center_of_mass_jacobian @ qd), ROUNDING)
    assert found.mass == pytest.approx(sum(link.mass for link in mech.links), rel=ROUNDING)
    X = mech.forward_kinematics(q)
    pulled = sum(link.mass * (X_i @ [*link.com, 1.0])[:3] for X_i, link in zip(X, mech.links, strict=True))
    assert_close(mech.center_of_mass(q) * found.mass, pulled, ROUNDING)
    assert_close(found.center_of_mass_jacobian, central_difference(mech.center_of_mass, q, H), DIFFERENCE)


def on_carriers(mech, active=True):
    """Return the mechanism on three sliders and three turning joints without mass, six coordinates before its own."""
    kinds, axes = [Prismatic] * 3 + [Revolute] * 3, [*np.eye(3), *np.eye(3)]
    carriers = [
        Link(f"carrier{k}", f"carrier{k - 1}" if k else None, kind(axis))
        for k, (kind, axis) in enumerate(zip(kinds, axes, strict=True))
    ]
    links = changed_links(mech, lambda link: {"parent": link.parent or "carrier5"})
    driven = [carrier.name for carrier in carriers] if active else []
    return Mechanism([*carriers, *links], gravity=mech.gravity, active=[*driven, *mech.active])


@any_tree()
def test_a_mechanism_in_free_space_keeps_its_momentum(seed, links):
    """On six free joints without mass and without gravity: whatever the motors do, nothing pushes from outside."""
    rng = np.random.default_rng(seed)
    mech = on_carriers(random_mechanism(rng, links, gravity=False), active=False)
    q, qd, u = random_state(rng, mech)
    u[:6] = 0.0
    qdd = mech.hybrid_dynamics(q, qd, u).qdd

    def along(t):
        return mech.momentum(q + t[0] * qd, qd + t[0] * qdd)

    # d/dt of a quadratic in qd along the motion; steps as far as the motion is slow
    h = H / max(1.0, np.abs(qd).max(), np.abs(qdd).max())
    rate = central_difference(along, np.zeros(1), h)[:, 0]
    scale = np.abs(mech.inertial(q).momentum_matrix) @ (np.abs(qdd) + np.abs(qd))
    assert np.abs(rate).max() < (tolerance(mech, q) + 100 * EPS / h) * max(1.0, scale.max())


# ---------------------------------------------------------------- loads from outside
@any_tree()
def test_a_wrench_acts_through_the_jacobian(seed, links):
    rng = np.random.default_rng(seed)
    mech = random_mechanism(rng, links)
    q, qd, qdd = random_state(rng, mech)
    loads = random_loads(rng, mech)
    i, wrench, pose = int(rng.integers(links)), rng.uniform(-5, 5, 6), random_pose(rng)
    plain = mech.inverse_dynamics(q, qd, qdd, **loads)
    rows = loads.pop("wrench")
    rows = rows + np.eye(links)[i][:, None] * wrench
    assert_close(mech.inverse_dynamics(q, qd, qdd, rows, **loads), plain - mech.jacobian(q, i).T @ wrench, ROUNDING)
    # in a frame of its own on the link, whose Jacobian is that of a link that is welded there
    marked = Mechanism(
        [*mech.links, Link("mark", mech.links[i].name, Fixed(), pose)], gravity=mech.gravity, active=mech.active
    )
    want = mech.inverse_dynamics(q, qd, qdd, **loads) - marked.jacobian(q, "mark").T @ wrench
    assert_close(mech.inverse_dynamics(q, qd, qdd, [(i, pose, wrench)], **loads), want, ROUNDING)
    assert_close(marked.inverse_dynamics(q, qd, qdd, [("mark", None, wrench)], **loads), want, ROUNDING)


@any_tree(links=30)
def test_a_moving_base_is_a_mechanism_on_driven_joints(seed, links):
    rng = np.random.default_rng(seed)
    mech = random_mechanism(rng, links)
    whole = on_carriers(mech)
    q, qd, u = random_state(rng, mech)
    p, pd, pdd = rng.uniform(-1, 1, (3, 6))
    Q, QD, U = np.concatenate([p, q]), np.concatenate([pd, qd]), np.concatenate([pdd, u])
    J, rate = whole.jacobian(Q, "carrier5"), whole.jacobian_rate(Q, QD, "carrier5")
    X = whole.forward_kinematics(Q)[5]
    base = (J @ QD, J[:, :6] @ pdd + rate @ QD)
    wrench = random_loads(rng, mech)["wrench"]
    here = mech.with_gravity(X[:3, :3].T @ mech.gravity)
    below = np.vstack([np.zeros((6, 6)), wrench])
    tol = tolerance(mech, q)
    got, want = here.hybrid_sensitivity(q, qd, u, wrench, base), whole.hybrid_sensitivity(Q, QD, U, below)
    assert_close(got.y, want.y[6:], tol)
    assert_close(got.dy_dq, want.dy_dq[6:, 6:], tol)
    assert_close(got.dy_dqd, want.dy_dqd[6:, 6:], tol)
    assert_close(got.dy_du, want.dy_du[6:, 6:], tol)
    assert_close(here.hybrid_dynamics(q, qd, u, wrench, base).y, want.y[6:], tol)
    assert here.energy(q, qd, base)[0] == pytest.approx(whole.energy(Q, QD)[0], rel=ROUNDING)
    momentum = lie.transform_wrench(X, here.momentum(q, qd, base))
    assert_close(momentum, whole.momentum(Q, QD), ROUNDING)


@any_tree()
def test_a_base_in_uniform_motion_is_at_rest(seed, links):
    """Galilei."""
    rng = np.random.default_rng(seed)
    mech = random_mechanism(rng, links)
    q, qd, u = random_state(rng, mech)
    wrench, drift = random_loads(rng, mech)["wrench"], np.concatenate([np.zeros(3), rng.normal(size=3)])
    at_rest, drifting = (mech.hybrid_sensitivity(q, qd, u, wrench, base) for base in (None, (drift, np.zeros(6))))
    for name in ("y", "dy_dq", "dy_dqd", "dy_du"):
        assert_close(getattr(drifting, name), getattr(at_rest, name), tolerance(mech, q))


# ---------------------------------------------------------------- the same mechanism, described otherwise
@any_tree()
def test_the_order_of_the_links_does_not_matter(seed, links):
    rng = np.random.default_rng(seed)
    mech = random_mechanism(rng, links)
    q, qd, u = random_state(rng, mech)
    loads = random_loads(rng, mech)
    order = rng.permutation(links)
    other = Mechanism([mech.links[i] for i in order], gravity=mech.gravity, active=mech.active)
    k = [mech.joint_index(name) for name in other.names]
    there = {"wrench": loads["wrench"][order], "base": loads["base"]}
    tol = tolerance(mech, q)
    want, got = mech.hybrid_sensitivity(q, qd, u, **loads), other.hybrid_sensitivity(q[k], qd[k], u[k], **there)
    assert_close(got.y, want.y[k], tol)
    for ours, answer in ((got.dy_dq, want.dy_dq), (got.dy_dqd, want.dy_dqd), (got.dy_du, want.dy_du)):
        assert_close(ours, answer[np.ix_(k, k)], tol)
    assert_close(other.forward_kinematics(q[k]), mech.forward_kinematics(q)[order], ROUNDING)
    assert_close(other.mass_matrix(q[k]), mech.mass_matrix(q)[np.ix_(k, k)], ROUNDING)


@any_tree()
def test_the_frames_of_the_links_do_not_matter(seed, links):
    """Each link's frame is put elsewhere on the link, and everything that is given in it is given anew."""
    rng = np.random.default_rng(seed)
    mech = random_mechanism(rng, links)
    q, qd, u = random_state(rng, mech)
    loads = random_loads(rng, mech)
    shift = {link.name: random_pose(rng) for link in mech.links}  # of the new frame in the old one

    def change(link):
        G = shift[link.name]
        R, back = G[:3, :3], np.linalg.inv(G)
        above = np.linalg.inv(shift[link.parent]) if link.parent else np.eye(4)
        new = {"pose": above @ link.pose @ G, "com": (back @ [*link.com, 1.0])[:3], "inertia": R.T @ link.inertia @ R}
        if link.joint.dof:
            joint = link.joint
            terms = ("damping", "friction", "friction_velocity", "armature", "stiffness", "rest")
            pitch = (joint.pitch,) if joint.kind == "screw" else ()
            options = {term: getattr(joint, term) for term in terms}
            point = (back @ [*joint.point, 1.0])[:3]
            new["joint"] = type(joint)(R.T @ joint.axis, *pitch, point=point, **options)
        return new

    other = rebuilt(mech, change)
    wrench = [lie.transform_wrench(np.linalg.inv(G), w) for G, w in zip(shift.values(), loads["wrench"], strict=True)]
    tol = tolerance(mech, q)
    want = mech.hybrid_sensitivity(q, qd, u, **loads)
    got = other.hybrid_sensitivity(q, qd, u, np.array(wrench), loads["base"])
    for name in ("y", "dy_dq", "dy_dqd", "dy_du"):
        assert_close(getattr(got, name), getattr(want, name), tol)
    assert_close(other.forward_kinematics(q), mech.forward_kinematics(q) @ np.array(list(shift.values())), ROUNDING)


@any_tree()
def test_a_link_may_be_welded_together_from_parts(seed, links):
    rng = np.random.default_rng(seed)
    mech = random_mechanism(rng, links)
    q, qd, u = random_state(rng, mech)
    loads, parts = random_loads(rng, mech), []
    for link in mech.links:
        share, pose = rng.uniform(0.2, 0.8), random_pose(rng)
        R, com = pose[:3, :3], (np.linalg.inv(pose) @ [*link.com, 1.0])[:3]
        mass, inertia = share * link.mass, R.T @ link.inertia @ R * share
        parts.append(Link(f"part of {link.name}", link.name, Fixed(), pose, mass, com, inertia))
        rest = {"mass": link.mass - mass, "inertia": link.inertia * (1 - share)}
        parts.append(Link(link.name, link.parent, link.joint, link.pose, rest["mass"], link.com, rest["inertia"]))
    other = Mechanism(parts, gravity=mech.gravity, active=mech.active)
    there = {"wrench": np.zeros((2 * links, 6)), "base": loads["base"]}
    there["wrench"][1::2] = loads["wrench"]
    want, got = mech.hybrid_sensitivity(q, qd, u, **loads), other.hybrid_sensitivity(q, qd, u, **there)
    for name in ("y", "dy_dq", "dy_dqd", "dy_du"):
        assert_close(getattr(got, name), getattr(want, name), tolerance(mech, q))
    assert mech.energy(q, qd, loads["base"]) == pytest.approx(other.energy(q, qd, loads["base"]), rel=ROUNDING)
    assert_close(other.center_of_mass(q), mech.center_of_mass(q), ROUNDING)
    assert_close(other.momentum(q, qd, loads["base"]), mech.momentum(q, qd, loads["base"]), ROUNDING)


@pytest.mark.nojit
def test_at_rest_nothing_depends_on_the_rates():
    rng = np.random.default_rng(3)
    mech = without_losses(random_mechanism(rng, 8, MOVING))
    q, _, u = random_state(rng, mech)
    assert np.abs(mech.hybrid_sensitivity(q, np.zeros(8), u).dy_dqd).max() == 0.0
