"""The wrench that each joint transmits, against balances of free bodies, Pinocchio and closed forms."""

import numpy as np
import pinocchio as pin
import pytest
from closed_states import ALL, spatial, state
from closeness import assert_close, central_difference
from pinocchio_model import Oracle, swapped
from random_mechanisms import BALLS, CHAINS, KINDS, any_tree, random_loads, random_mechanism, random_state, sample_of

import cstormpy as cs
from cstormpy import lie
from cstormpy.control import Law

#: Of the rods of a four-bar whose pins are 1 m apart.
LENGTHS = [("crank", 0.3), ("bar", 0.9), ("rocker", 0.7)]
ROD = {"mass": 2.0, "com": (0.5, 0, 0), "inertia": (0, 1 / 6, 1 / 6)}


def along_joints(mech, q, F):
    """Return Sᵀ F of every coordinate."""
    out = np.zeros(mech.n)
    for link, wrench in zip(mech.links, F, strict=True):
        at = mech.coordinates(link.joint_name)
        out[at] = link.joint.subspace(q[at]).T @ wrench
    return out


def losses(mech, q, qd, qdd):
    """Return the torques of armature, damping, friction and springs: those of the same joints without anything."""
    links = [link.replace(mass=0.0, com=(0, 0, 0), inertia=np.zeros((3, 3))) for link in mech.links]
    return cs.Mechanism(links, gravity=(0, 0, 0)).inverse_dynamics(q, qd, qdd)


def joint_torques(mech, q, qd, qdd, **loads):
    """Return what the motors leave for the bodies."""
    return mech.without_loops().inverse_dynamics(q, qd, qdd, **loads) - losses(mech, q, qd, qdd)


@any_tree(examples=8, links=10)
def test_along_a_joint_it_is_the_torque_that_the_body_feels(seed, links):
    rng = np.random.default_rng(seed)
    mech = random_mechanism(rng, links, kinds=(*KINDS, *CHAINS, *BALLS))
    q, qd, qdd = random_state(rng, mech)
    q = 0.5 * q  # short rotation vectors
    loads = random_loads(rng, mech)
    F = mech.joint_wrenches(q, qd, qdd, **loads)
    assert_close(along_joints(mech, q, F), joint_torques(mech, q, qd, qdd, **loads), 1e-11)


def test_large_mechanisms_are_answered_too():
    """By the kernel with its loops, which a chain of so many joints is left to."""
    mech, rng = cs.library.chain(60), np.random.default_rng(2)
    q, qd, qdd = random_state(rng, mech, 9)
    loads = random_loads(rng, mech, 9)
    F = mech.joint_wrenches(q, qd, qdd, **loads)
    found = np.array([along_joints(mech, *one) for one in zip(q, F, strict=True)])
    assert_close(found, mech.inverse_dynamics(q, qd, qdd, **loads), 1e-11)


def balance(mech, q, qd, qdd, F, weight=True):
    """Return what the joints, and gravity, leave of the change of each link's momentum, (n_links, 6).

    In the base's axes, moments about the centre of mass, by differences of poses along the motion.
    """

    def bodies(t):
        X = mech.forward_kinematics(q + t * qd + 0.5 * t * t * qdd)
        return X, np.array([x[:3, :3] @ link.com + x[:3, 3] for x, link in zip(X, mech.links, strict=True)])

    def rates(t):
        X = bodies(t)[0]
        c = central_difference(lambda s: bodies(s[0])[1], np.array([t]), 1e-3)[..., 0]
        R = central_difference(lambda s: bodies(s[0])[0][:, :3, :3], np.array([t]), 1e-3)[..., 0]
        out = []
        for x, v, turn, link in zip(X, c, R, mech.links, strict=True):
            W = turn @ x[:3, :3].T
            omega = np.array([W[2, 1], W[0, 2], W[1, 0]])
            out.append([*(x[:3, :3] @ link.inertia @ x[:3, :3].T @ omega), *(link.mass * v)])
        return np.array(out)

    left = -central_difference(lambda s: rates(s[0]), np.zeros(1), 1e-3)[..., 0]
    X, c = bodies(0.0)
    for i, link in enumerate(mech.links):
        left[i, 3:] += link.mass * mech.gravity
        moment, force = X[i, :3, :3] @ F[i, :3], X[i, :3, :3] @ F[i, 3:]
        for k, sign in ((i, 1.0), (int(mech.parents[i]), -1.0)):
            if k >= 0:
                left[k] += sign * np.concatenate([moment + np.cross(X[i, :3, 3] - c[k], force), force])
    return left


@pytest.mark.parametrize("seed", range(4))
def test_every_link_is_moved_by_its_joints_its_weight_and_its_loads(seed):
    """Newton's and Euler's equations of each link, its momentum differenced."""
    rng = np.random.default_rng(seed)
    mech = random_mechanism(rng, 6, kinds=(*KINDS, *CHAINS, *BALLS))
    q, qd, qdd = random_state(rng, mech)
    q = 0.5 * q
    p, f, m, follower = rng.normal(size=(4, 3))
    loads = [cs.Load("link2", f, m, point=p), ("link4", None, [0, 0, 0, *follower])]
    left = balance(mech, q, qd, qdd, mech.joint_wrenches(q, qd, qdd, wrench=loads))
    X = mech.forward_kinematics(q)
    second, fourth = mech.link_index("link2"), mech.link_index("link4")
    left[second] += [*(m + np.cross(X[second, :3, :3] @ (p - mech.links[second].com), f)), *f]
    turned = X[fourth, :3, :3] @ follower
    left[fourth] += [*(np.cross(X[fourth, :3, :3] @ -mech.links[fourth].com, turned)), *turned]
    assert np.abs(left).max() < 1e-5  # of differences of differences


@pytest.mark.parametrize("seed", range(5))
def test_pinocchio_finds_the_same(seed):
    rng = np.random.default_rng(seed)
    mech = random_mechanism(rng, 9, terms=False)
    q, qd, qdd = random_state(rng, mech)
    wrench = random_loads(rng, mech, base=False)["wrench"]
    F = mech.joint_wrenches(q, qd, qdd, wrench=wrench)
    oracle = Oracle(mech)
    oracle.inverse_dynamics(q, qd, qdd, wrench)
    compared = 0
    for i, (joint, local) in oracle.frames.items():
        if mech.links[i].joint.dof:  # Pinocchio lumps links that are fixed
            want = swapped(local.actInv(pin.Force(oracle.data.f[joint])).vector)
            assert_close(F[i], want, 1e-11)
            compared += 1
    assert compared >= 5


def test_the_pin_of_a_pendulum():
    """Along the rod m g cos + m r ω²; across it, at the pin, m g sin less what the swing takes."""
    mech = cs.Mechanism([cs.Link("rod", None, cs.Revolute((0, 0, 1), armature=0.2, damping=0.3), **ROD)])
    m, r, g, inertia = 2.0, 0.5, 9.81, 1 / 6 + 2.0 * 0.5**2 + 0.2
    q, qd = np.linspace(-3.0, 3.0, 7)[:, None], np.linspace(-2.0, 4.0, 7)[:, None]
    qdd = mech.forward_dynamics(q, qd, 0 * q)
    F = mech.joint_wrenches(q, qd, qdd)
    swing = -(m * g * r * np.cos(q) + 0.3 * qd) / inertia
    along, across = m * g * np.sin(q) - m * r * qd**2, m * g * np.cos(q) + m * r * swing
    zero = 0 * q
    want = np.hstack([zero, zero, -0.2 * qdd - 0.3 * qd, along, across, zero])
    assert_close(F[:, 0], want, 1e-12)


def test_a_weld_holds_the_weight_behind_it():
    """Also where nothing moves, in the welds' own frames."""
    up = lie.make_pose(lie.exp_so3([0, 0, np.pi / 2]), [1.0, 0, 0])
    mech = cs.Mechanism([cs.Link("tip", "beam", pose=up, mass=3.0), cs.Link("beam", pose=(0, 2.0, 0), **ROD)])
    F = mech.joint_wrenches([], [], [])
    assert_close(F, [[0, 0, 0, 29.43, 0, 0], [0, 0, 9.81 * (2 * 0.5 + 3 * 1.0), 0, 9.81 * 5, 0]], 1e-12)
    assert mech.joint_wrenches(np.zeros((3, 0)), np.zeros((3, 0)), np.zeros((3, 0))).shape == (3, 2, 6)


def test_a_weld_between_moving_links_is_told_apart():
    """A link in two, welded: the weld carries what the outer half needs."""
    half = {"mass": 1.0, "com": (0.25, 0, 0), "inertia": (0, 1 / 48, 1 / 48)}
    links = [
        cs.Link("inner", None, cs.Revolute((0, 0, 1)), **half),
        cs.Link("outer", "inner", pose=(0.5, 0, 0), **half),
    ]
    mech = cs.Mechanism(links, gravity=(0, 0, 0))
    F = mech.joint_wrenches([0.3], [2.0], [0.0])
    assert_close(F[:, 3], [-(0.25 + 0.75) * 4, -0.75 * 4], 1e-12)


def test_a_free_body_feels_its_springs_and_losses_only():
    rng = np.random.default_rng(0)
    for joint in (cs.Free(), cs.Free(damping=0.4, stiffness=2.0)):
        mech = cs.Mechanism([cs.Link("body", None, joint, mass=1.5, com=(0.1, 0.2, 0), inertia=(0.1, 0.2, 0.25))])
        q, qd = rng.normal(size=(2, 6))
        qdd = mech.forward_dynamics(q, qd, np.zeros(6))
        F = mech.joint_wrenches(q, qd, qdd)
        want = np.linalg.solve(joint.subspace(q).T, -losses(mech, q, qd, qdd))
        assert_close(F[0], want, 1e-11)


def test_a_base_that_falls_takes_the_weight_off():
    mech = cs.library.arm7()
    rest = np.zeros(mech.n)
    rising = np.concatenate([np.zeros(3), -mech.gravity])
    base = (np.zeros(6), np.concatenate([np.zeros(3), mech.gravity]))
    assert np.abs(mech.joint_wrenches(rest, rest, rest, base=base)).max() < 1e-12
    twice = mech.joint_wrenches(rest, rest, rest, base=(np.zeros(6), rising))
    assert_close(twice, 2 * mech.joint_wrenches(rest, rest, rest), 1e-12)


@pytest.mark.parametrize("dead", [False, True])
def test_batches_are_what_single_samples_are(dead):
    rng = np.random.default_rng(3)
    mech = random_mechanism(rng, 8, kinds=(*KINDS, *CHAINS, *BALLS))
    q, qd, qdd = random_state(rng, mech, 37)
    q, loads = 0.5 * q, random_loads(rng, mech, 37)
    if dead:
        forces = rng.normal(size=(37, 3))
        loads["wrench"] = [cs.Load("link3", forces, point=(0.1, 0.2, 0.3))]
    together = mech.joint_wrenches(q, qd, qdd, **loads, threads=None)
    assert together.shape == (37, 8, 6)
    for k in (0, 1, 36):
        one = {"base": tuple(part[k] for part in loads["base"])}
        one["wrench"] = [cs.Load("link3", forces[k], point=(0.1, 0.2, 0.3))] if dead else sample_of(loads, k)["wrench"]
        assert_close(together[k], mech.joint_wrenches(q[k], qd[k], qdd[k], **one), 1e-12)


# Closed mechanisms -----------------------------------------------------------------------------------


def test_four_bar_by_the_equations_of_its_three_free_bodies():
    """Nine equations of the plane for the torque of the crank and the forces of four pins."""
    mech = cs.library.four_bar().with_drive(active=["crank"])
    q, qd = mech.project([1.0, 0.0, 1.5], [2.0, 0.0, 0.0], hold=["crank"])
    found = mech.hybrid_dynamics(q, qd, [1.0, 0.0, 0.0])
    qdd, loop = found.qdd, mech.loops[0]
    X = mech.forward_kinematics(q)
    a, b = mech.link_index(loop.link_a), mech.link_index(loop.link_b)
    pin_at = (X[b] @ loop.pose_b)[:2, 3]
    motor = mech.coordinates("crank").start
    A, right = np.zeros((9, 9)), np.zeros(9)  # unknown: forces of the links' joints, then of the loop on b, and torque
    for i, link in enumerate(mech.links):
        R, rows = X[i, :3, :3], slice(3 * i, 3 * i + 3)
        c = X[i, :2, 3] + (R @ link.com)[:2]
        acceleration = mech.point_acceleration(q, qd, qdd, link.name, link.com)[:2]
        alpha = (mech.jacobian(q, link.name) @ qdd + mech.jacobian_rate(q, qd, link.name) @ qd)[2]
        right[rows] = [*(link.mass * (acceleration - mech.gravity[:2])), link.inertia[2, 2] * alpha]
        acting = [(2 * i, X[i, :2, 3], 1.0)]
        acting += [(2 * k, X[k, :2, 3], -1.0) for k in range(3) if mech.parents[k] == i]
        acting += [(6, pin_at, 1.0 if i == b else -1.0)] * (i in (a, b))
        for first, at, sign in acting:
            r = at - c
            A[rows, first : first + 2] += sign * np.array([[1, 0], [0, 1], [-r[1], r[0]]])
    A[3 * int(mech.joint_links[motor]) + 2, 8] = 1.0
    x = np.linalg.solve(A, right)
    for F in (
        mech.joint_wrenches(q, qd, qdd),
        mech.joint_wrenches(q, qd, qdd, multipliers=found.multipliers),
    ):
        forces = [(X[i, :3, :3] @ F[i, 3:])[:2] for i in range(3)]
        assert_close(np.concatenate(forces), x[:6], 1e-10)
        assert_close(F[:, 2], np.where(np.arange(3) == mech.joint_links[motor], x[8], 0.0), 1e-10)


@pytest.mark.parametrize("name", ALL)
def test_the_joints_of_closed_mechanisms_do_what_the_motors_leave(name):
    """Given torques and their multipliers; and those of the inverse dynamics, loads and base among them, in batches."""
    mech, q, qd = state(name)
    rng = np.random.default_rng(1)
    tau, loads = rng.normal(size=mech.n), random_loads(rng, mech)
    qdd = mech.forward_dynamics(q, qd, tau, **loads)
    F = mech.joint_wrenches(q, qd, qdd, **loads, multipliers=qdd.multipliers)
    assert_close(along_joints(mech, q, F), tau - losses(mech, q, qd, np.asarray(qdd)), 1e-9)
    batch = [np.stack([x, x]) for x in (q, qd, qdd)]
    both = mech.joint_wrenches(*batch, **loads, multipliers=np.stack([qdd.multipliers, qdd.multipliers]))
    assert_close(both, np.stack([F, F]), 1e-12)
    for redundancy in ("torque", "force"):
        shared = mech.inverse_dynamics(q, qd, qdd, **loads, redundancy=redundancy)
        F = mech.joint_wrenches(q, qd, qdd, **loads, redundancy=redundancy)
        assert_close(along_joints(mech, q, F), shared - losses(mech, q, qd, np.asarray(qdd)), 1e-9)
        both = mech.joint_wrenches(*batch, **loads, redundancy=redundancy)
        assert_close(both, np.stack([F, F]), 1e-9)


def test_a_loop_may_be_cut_elsewhere():
    """The pin that closes the loop of one description is a joint of the other; all pins carry the same."""
    rods = {name: {"mass": 1.0, "com": (a / 2, 0, 0), "inertia": (0, a * a / 12, a * a / 12)} for name, a in LENGTHS}
    lengths = dict(LENGTHS)
    hinge = {name: cs.Revolute((0, 0, 1), name=f"at {name}") for name, _ in LENGTHS}
    crank = cs.Link("crank", None, hinge["crank"], **rods["crank"])
    bar = cs.Link("bar", "crank", hinge["bar"], (lengths["crank"], 0, 0), **rods["bar"])
    rocker = cs.Link("rocker", None, hinge["rocker"], (1.0, 0, 0), **rods["rocker"])
    loop = cs.Loop("bar", "rocker", (lengths["bar"], 0, 0), (lengths["rocker"], 0, 0), "pin")
    one = cs.Mechanism([crank, bar, rocker], loops=[loop], actuated=["at crank"])
    # the same bar on the rocker, from its other end on, and closed at the crank
    back = lie.make_pose(lie.exp_so3([0, 0, np.pi]), [lengths["bar"], 0, 0])
    on_rocker = cs.Link("bar", "rocker", hinge["bar"], (lengths["rocker"], 0, 0), **rods["bar"])
    other_loop = cs.Loop("crank", "bar", (lengths["crank"], 0, 0), back, "pin")
    other = cs.Mechanism([crank, rocker, on_rocker], loops=[other_loop], actuated=["at crank"])
    q, qd = one.project([1.0, -0.3, 1.5], [2.0, 0.0, 0.0], hold=["at crank"])
    qdd = np.asarray(one.forward_dynamics(q, qd, [0.4, 0.0, 0.0]))
    turn = np.array([q[0], q[2], q[0] + q[1] + np.pi - q[2]])
    turn_rate, turn_acceleration = ([x[0], x[2], x[0] + x[1] - x[2]] for x in (qd, qdd))
    F, G = one.joint_wrenches(q, qd, qdd), other.joint_wrenches(turn, turn_rate, turn_acceleration)
    assert_close(G[[0, 1]], F[[0, 2]], 1e-9)  # crank and rocker, at the base
    in_bar = one.inverse_dynamics(q, qd, qdd).loop_wrenches[0]
    at_tip = lie.exp_so3([0, 0, -np.pi]) @ -in_bar[3:]  # of the bar's axes, on the bar
    assert_close(G[2, 3:5], at_tip[:2], 1e-9)


def test_an_overconstrained_loop_shares_what_rigid_bodies_leave_open():
    """The same four-bar closed by a hinge in space: the plane's forces are those of the pin, and torques agree."""
    planar = cs.library.four_bar().with_drive(actuated=["crank"])
    hinged = planar.replace(loops=[planar.loops[0].replace(directions="hinge")])
    q, qd = planar.project([1.0, 0.0, 1.5], [2.0, 0.0, 0.0], hold=["crank"])
    qdd = np.asarray(planar.forward_dynamics(q, qd, [0.3, 0.0, 0.0]))
    assert_close(hinged.joint_wrenches(q, qd, qdd), planar.joint_wrenches(q, qd, qdd), 1e-9)


def test_a_coupling_acts_in_its_joints():
    free = cs.library.planar_2r().with_drive(actuated=["shoulder"])
    geared = free.replace(loops=[cs.Coupling("elbow", "shoulder", ratio=2.0)])
    q, qd = np.array([0.1, 0.2]), np.array([0.5, 1.0])
    qdd = geared.forward_dynamics(q, qd, [3.0, 0.0])
    F = geared.joint_wrenches(q, qd, qdd)
    in_joints = geared.closure_jacobian(q).T @ qdd.multipliers
    assert_close(along_joints(geared, q, F), np.array([3.0, 0.0]) + in_joints, 1e-11)
    assert_close(F, free.joint_wrenches(q, qd, qdd), 1e-12)


def test_the_base_holds_what_the_whole_needs():
    """Loops within a mechanism cancel in the balance of all of it; a ball on the base is one of its holds."""
    mech, q = spatial()
    q, qd = mech.project(q, np.random.default_rng(0).normal(size=mech.n))
    found = mech.forward_dynamics(q, qd, np.zeros(mech.n))
    qdd, X = np.asarray(found), mech.forward_kinematics(q)
    F = mech.joint_wrenches(q, qd, qdd, multipliers=found.multipliers)
    held = [lie.transform_wrench(X[i], F[i]) for i in np.flatnonzero(mech.parents < 0)]
    held.append(lie.transform_wrench(mech.loops[1].pose_a, found.loop_wrenches[1]))
    weight = sum(link.mass for link in mech.links) * mech.gravity
    held.append(np.concatenate([np.cross(mech.center_of_mass(q), weight), weight]))
    momentum = central_difference(
        lambda t: mech.momentum(q + t[0] * qd + 0.5 * t[0] ** 2 * qdd, qd + t[0] * qdd), np.zeros(1), 1e-3
    )
    assert_close(sum(held), momentum[..., 0], 1e-8)


# What is asked wrongly, and from inside of diagrams --------------------------------------------------


def test_refusals_name_what_is_wrong():
    mech, closed = cs.library.acrobot(), cs.library.four_bar()
    rest = np.zeros(2)
    with pytest.raises(cs.ShapeError, match=r"qdd: expected shape \(2,\) like q"):
        mech.joint_wrenches(rest, rest, np.zeros(3))
    with pytest.raises(cs.NonFinite, match="qdd"):
        mech.joint_wrenches(rest, rest, [0.0, np.nan])
    with pytest.raises(cs.InvalidValue, match="multipliers: are of mechanisms with loops"):
        mech.joint_wrenches(rest, rest, rest, multipliers=[1.0])
    with pytest.raises(cs.InvalidValue, match="redundancy: is of mechanisms with loops"):
        mech.joint_wrenches(rest, rest, rest, redundancy="force")
    with pytest.raises(cs.NonFinite, match="too large"):
        mech.joint_wrenches(rest, [1e200, 0.0], rest)
    with pytest.raises(cs.InvalidValue, match="threads"):
        mech.joint_wrenches(rest, rest, rest, threads=0)
    q, qd = closed.project([1.0, 0.0, 1.5])
    with pytest.raises(cs.ShapeError, match=r"multipliers: expected shape \(2,\)"):
        closed.joint_wrenches(q, qd, 0 * q, multipliers=[1.0])
    with pytest.raises(cs.InvalidValue, match="redundancy: chooses multipliers, which are given"):
        closed.joint_wrenches(q, qd, 0 * q, redundancy="force", multipliers=[1.0, 0.0])
    for given in (None, [1.0, 0.0]):
        with pytest.raises(cs.InvalidValue, match="misses closure"):
            closed.joint_wrenches(q + 0.1, qd, 0 * q, multipliers=given)


class Relief(Law):
    """A torque that depends on the force of a pin."""

    def __init__(self, mech, gain=0.1, limit=None):
        super().__init__(mech, limit=limit)
        self.gain = gain

    def torque(self, t, q, qd, reference=None):
        force = self.mech.joint_wrenches(q, qd, 0.0 * qd)[0, 3:4]
        return -self.gain * force - qd[self.mech.actuated_mask]


def test_a_law_that_asks_for_them_is_traced():
    ends = {}
    for engine in ("interpreted", "compiled"):
        sim = cs.Simulation(graphics=False, progress=False, engine=engine)
        bd, mech = sim.blockdiagram(), cs.library.acrobot()
        plant = bd.HYBRIDDYNAMICS(mech, q0=[0.3, 0.5], name="plant")
        law = bd.CONTROLLER(mech, Relief(mech), name="law")
        bd.connect(plant[0:2], law[0:2])
        bd.connect(law.tau, plant.tau)
        ends[engine] = sim.run(bd, T=1.0, dt=0.1, rtol=1e-9, watch=["plant"]).x[-1]
        assert "Python" not in str(sim.explain(bd))
    assert_close(ends["compiled"], ends["interpreted"], 1e-8)


def test_a_function_in_a_diagram_shows_the_pins_of_a_closed_mechanism_along_a_run():
    mech = cs.library.four_bar().with_drive(actuated=["crank"])
    q0, _ = mech.project([1.0, 0.0, 1.5], hold=["crank"])
    tau = np.array([0.2, 0.0, 0.0])

    def pins(q, qd):
        found = mech.hybrid_dynamics(q, qd, tau)
        return mech.joint_wrenches(q, qd, found.qdd, multipliers=found.multipliers)[:, 3:].reshape(-1)

    for engine in ("interpreted", "compiled"):
        sim = cs.Simulation(graphics=False, progress=False, engine=engine)
        bd = sim.blockdiagram()
        plant, shown = bd.HYBRIDDYNAMICS(mech, q0=q0, name="plant"), bd.FUNCTION(pins, nin=2, name="pins")
        bd.connect(bd.CONSTANT(0.2), plant.tau)
        bd.connect(plant[0:2], shown[0:2])
        out = sim.run(bd, T=0.5, dt=0.1, watch=["plant", "pins"])
        assert "Python" not in str(sim.explain(bd))
        q, qd = out.signal("plant.q"), out.signal("plant.qd")
        qdd = mech.forward_dynamics(q, qd, np.tile(tau, (len(q), 1)))
        F = mech.joint_wrenches(q, qd, qdd)
        assert_close(out.signal("pins"), F[:, :, 3:].reshape(len(q), -1), 1e-9)
