"""Joints of several coordinates: their motion, and everything that a mechanism with them can be asked."""

import json
import pickle
from functools import partial

import numpy as np
import pytest
from closeness import assert_close, central_difference, complex_step, tolerance
from random_mechanisms import (
    CHAINS,
    COMPOUND,
    KINDS,
    any_tree,
    random_joint,
    random_loads,
    random_mechanism,
    random_pose,
    random_state,
)

import cstormpy as cs
from cstormpy import lie, mechanism
from cstormpy.diagrams import _posture
from cstormpy.formulations import kim_joints
from cstormpy.formulations.kim import bracket
from cstormpy.linkage.joints import JOINT_TYPES
from cstormpy.mechanism import Joint, skeleton

EVERY = (*KINDS, *COMPOUND)


def some_tree(seed, links=6, **options):
    rng = np.random.default_rng(seed)
    return rng, random_mechanism(rng, links, EVERY, **options)


def taken_apart(mech):
    """Return the mechanism with each joint replaced by joints of one coordinate on links without mass."""
    links, active = [], []
    for link in mech.links:
        freedoms, parent, pose = link.joint.freedoms, link.parent, link.pose
        for k, freedom in enumerate(freedoms[:-1]):
            name = f"{link.name} {k}"
            links.append(cs.Link(name, parent, freedom.replace(name=None), pose))
            parent, pose = name, np.eye(4)
        joint = freedoms[-1].replace(name=None) if freedoms else cs.Fixed()
        links.append(cs.Link(link.name, parent, joint, pose, link.mass, link.com, link.inertia))
        if freedoms and mech.active_mask[mech.coordinates(link.joint_name)].any():
            active += [each.name for each in links[-len(freedoms) :]]
    return cs.Mechanism(links, mech.gravity, active=active)


# The joints themselves ----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [kind for kind in EVERY if kind != "fixed"])
def test_the_subspace_is_the_derivative_of_the_motion(kind):
    """S_k = (T⁻¹ ∂T/∂q_k) as a vector, and Ṡ its derivative along q̇: Kim 2012, after (41)."""
    rng = np.random.default_rng(1)
    for _ in range(3):
        joint = random_joint(rng, kind)
        q, qd = rng.normal(size=(2, joint.dof))
        T, dT = joint.motion(q), complex_step(joint.motion, q)
        twists = np.einsum("ij,jkn->ikn", np.linalg.inv(T), dT)
        expected = np.stack([twists[2, 1], twists[0, 2], twists[1, 0], *twists[:3, 3]])
        np.testing.assert_allclose(joint.subspace(q), expected, atol=1e-13)
        rate = np.einsum("ijk,k->ij", complex_step(joint.subspace, q), qd)
        np.testing.assert_allclose(joint.subspace_rate(q, qd), rate, atol=1e-12)
        np.testing.assert_allclose(joint.motion(np.stack([q, qd]))[1], joint.motion(qd), atol=1e-15)


def test_what_each_joint_does():
    c, s = np.cos(0.3), np.sin(0.3)
    X = cs.Planar(point=(0.5, 0.0, 0.0)).motion([1.0, 2.0, 0.3])
    np.testing.assert_allclose(X[:2], [[c, -s, 0, 1.5 - 0.5 * c], [s, c, 0, 2.0 - 0.5 * s]], atol=1e-15)
    X = cs.Translational([(0, 0, 2), (1, 0, 0), (0, 1, 0)]).motion([1.0, 2.0, 3.0])
    np.testing.assert_allclose(X[:3], [[1, 0, 0, 2], [0, 1, 0, 3], [0, 0, 1, 1]], atol=1e-15)
    X = cs.Universal().motion([np.pi / 2, 0.3])[:3, :3]
    quarter = np.array([[1, 0, 0], [0, 0, -1], [0, 1, 0]])
    np.testing.assert_allclose(X, quarter @ [[c, 0, s], [0, 1, 0], [-s, 0, c]], atol=1e-15)


def test_a_compound_joint_is_refused_by_name():
    for make, message in [
        (lambda: cs.Universal([(0, 0, 1), (0, 0, 2)], name="u"), r"joint 'u': axes: are parallel"),
        (lambda: cs.Planar([(1, 0, 0), (1, 1, 0)], name="p"), r"joint 'p': axes: must be perpendicular"),
        (lambda: cs.Translational([(1, 0, 0), (0, 1, 0), (1, 1, 0)]), r"axes: lie in one plane"),
        (lambda: cs.Universal(damping=(1, 2, 3)), r"damping: expected shape \(2,\)"),
        (lambda: cs.Universal(damping=(1, -2), name="u"), r"joint 'u\[1\]': damping: must not be negative"),
        (lambda: cs.Planar(limits=[(0, 1)]), r"limits: expected an entry for each of 3 coordinates, got 1"),
        (lambda: cs.Composite([]), r"joints: there are none"),
        (lambda: cs.Composite([cs.Universal()]), r"joints\[0\]: expected a joint of one coordinate"),
    ]:
        with pytest.raises(cs.CstormError, match=message):
            make()


# Coordinates, names, drive ------------------------------------------------------------------------------


def crane(**options):
    box = np.diag([0.1, 0.2, 0.25])
    lifted = np.eye(4)
    lifted[0, 3] = 1.0
    floor = cs.Planar(name="floor", damping=(0.1, 0.2, 0.3))
    wrist = cs.Universal(name="wrist", limits=[(-1, 1), None])
    links = [
        cs.Link("cart", None, floor, mass=2.0, com=(0.1, 0, 0), inertia=box),
        cs.Link("jib", "cart", wrist, mass=1.0, com=(0.5, 0, 0), inertia=box),
        cs.Link("hook", "jib", cs.Revolute((0, 0, 1), name="pin"), lifted, mass=0.5, com=(0.2, 0, 0), inertia=box),
    ]
    return cs.Mechanism(links, **options)


def test_a_joint_adds_a_range_of_coordinates():
    mech = crane()
    assert mech.n == 6
    assert mech.names == ("floor[0]", "floor[1]", "floor[2]", "wrist[0]", "wrist[1]", "pin")
    assert mech.coordinates("wrist") == slice(3, 5)
    assert mech.coordinates("wrist[1]") == slice(4, 5)
    assert mech.joint_index("wrist[1]") == 4
    assert mech.joint("wrist[1]") is mech.joint("wrist") is mech.links[1].joint
    assert [freedom.unit for freedom in mech.freedoms] == ["m", "m", "rad", "rad", "rad", "rad"]
    with pytest.raises(cs.InvalidValue, match=r"joint 'wrist': has .*wrist\[0\], wrist\[1\]"):
        mech.joint_index("wrist")
    with pytest.raises(cs.InvalidValue, match=r"'wrist\[0\]': the name occurs twice"):
        mech.__class__([*mech.links, cs.Link("wrist[0]", "jib", cs.Revolute((0, 0, 1)), mass=1.0)])


def test_a_joint_is_driven_as_a_whole():
    mech = crane(actuated=["wrist", "pin"], active=["wrist"])
    assert mech.active == ("wrist[0]", "wrist[1]")
    assert mech.actuated == ("wrist[0]", "wrist[1]", "pin")
    assert mech.with_drive(active=mech.actuated).active == mech.actuated
    with pytest.raises(cs.InvalidValue, match="joint 'wrist' is driven as a whole; give its name, or all of"):
        mech.with_drive(active=["wrist[0]"])
    with pytest.raises(cs.InvalidValue, match="joint 'wrist' occurs twice"):
        mech.with_drive(active=["wrist[0]", "wrist"])


def test_parameters_of_coordinates_and_parts():
    gimbal = cs.Composite([cs.Revolute((0, 0, 1)), cs.Revolute((1, 0, 0), damping=0.1)])
    mech = cs.Mechanism([*crane().links, cs.Link("tool", "hook", gimbal, mass=0.1)])
    changed = mech.with_parameters({"tool[1].damping": 0.7, "floor.damping": (1, 2, 3), "wrist.stiffness": 5})
    assert changed.joint("tool").joints[1].damping == 0.7
    assert [freedom.damping for freedom in changed.freedoms[:3]] == [1, 2, 3]
    assert [freedom.stiffness for freedom in changed.freedoms[3:5]] == [5, 5]
    with pytest.raises(cs.UnknownName, match=r"tool\[2\]\.damping"):
        mech.with_parameters({"tool[2].damping": 1.0})
    with pytest.raises(cs.InvalidValue, match=r"joint 'floor\[1\]': damping"):
        mech.with_parameters({"floor.damping": (1, -1, 1)})


@pytest.mark.parametrize("seed", range(6))
def test_files_pickles_and_print(seed):
    _, mech = some_tree(seed, 8)
    again = cs.Mechanism.from_dict(json.loads(json.dumps(mech.to_dict())))
    assert again == mech
    assert pickle.loads(pickle.dumps(mech)) == mech
    assert len(str(mech).splitlines()) == 2 + len(mech.links)
    assert all(eval(repr(j), vars(mechanism)).dof == j.dof for j in (link.joint for link in mech.links))


def test_the_file_of_a_driven_joint_names_the_joint():
    content = crane(active=["wrist"], actuated=["wrist"]).to_dict()
    assert (content["active"], content["actuated"]) == (["wrist"], ["wrist"])
    assert content["links"][1]["joint"] == {
        "type": "universal",
        "limits": [{"position": [-1.0, 1.0]}, None],
        "name": "wrist",
    }
    content["links"][1]["joint"]["limits"] = [[-1, 1], None]
    with pytest.raises(cs.FileFormatError, match=r"links\[1\]\.joint\.limits\[0\]"):
        cs.Mechanism.from_dict(content)


def test_every_joint_type_is_tried_here():
    assert set(EVERY) == set(JOINT_TYPES)


# Dynamics -------------------------------------------------------------------------------------------------


def drives(rng, mech):
    """Return the mechanism with no joint active, all, every other, the others, and some."""
    joints = [link.joint_name for link in mech.links if link.joint.dof]
    some = [name for name in joints if rng.random() < 0.5]
    return [mech.with_drive(active=active) for active in ([], joints, joints[::2], joints[1::2], some)]


@any_tree(examples=6, links=10)
def test_dynamics_are_those_of_kims_tables(seed, links):
    """Kim's Tables 2 and 4 with true S(q), Ṡ(q, q̇) and block pivots agree, whatever is driven."""
    rng, mech = some_tree(seed, links)
    q, qd, u = random_state(rng, mech)
    wrench = random_loads(rng, mech, base=False)["wrench"]
    tol = tolerance(mech, q, drive="forward")
    assert_close(mech.inverse_dynamics(q, qd, u, wrench), kim_joints.inverse_dynamics(mech, q, qd, u, wrench), 1e-10)
    for driven in drives(rng, mech):
        y = driven.hybrid_dynamics(q, qd, u, wrench).y
        assert_close(y, kim_joints.hybrid_dynamics(driven, q, qd, u, wrench), tol)
        r = driven.hybrid_dynamics(q, qd, u)
        back = driven.with_drive(active=driven.passive)  # roles reversed
        assert_close(back.hybrid_dynamics(q, qd, r.y).y, u, 100 * tol)


@pytest.mark.slow
@any_tree(examples=4, links=7)
def test_sensitivities_are_those_of_kims_tables(seed, links):
    """Kim's tables take complex numbers, so that their derivatives are exact."""
    rng, mech = some_tree(seed, links)
    q, qd, u = random_state(rng, mech)
    for driven in drives(rng, mech):
        d = driven.hybrid_sensitivity(q, qd, u)
        tol = tolerance(driven, q, least=1e-9)
        for name, given in (("dy_dq", q), ("dy_dqd", qd), ("dy_du", u)):
            state = {"q": q, "qd": qd, "u": u}
            del state[key := name.removeprefix("dy_d")]
            table = partial(kim_joints.hybrid_dynamics, driven, **state)
            assert_close(getattr(d, name), complex_step(lambda x, t=table, k=key: t(**{k: x}), given), tol)
        along = rng.normal(size=(3, mech.n))
        dy = d.dy_dq @ along[0] + d.dy_dqd @ along[1] + d.dy_du @ along[2]
        assert_close(driven.hybrid_jvp(q, qd, u, *along)[1], dy, tol)


@any_tree(examples=8, links=8)
def test_nothing_but_names_differs_from_joints_of_one_coordinate(seed, links):
    rng = np.random.default_rng(seed)
    mech = random_mechanism(rng, links, (*KINDS, *CHAINS))
    apart = taken_apart(mech)
    q, qd, u = random_state(rng, mech, 3)
    assert_close(mech.hybrid_dynamics(q, qd, u).y, apart.hybrid_dynamics(q, qd, u).y, 1e-12)
    for one, other in zip(mech.energy(q, qd), apart.energy(q, qd), strict=True):
        assert_close(one, other, 1e-12)
    bodies = [apart.link_index(link.name) for link in mech.links]
    assert_close(mech.forward_kinematics(q), apart.forward_kinematics(q)[:, bodies], 1e-12)
    link = mech.links[-1].name
    assert_close(mech.jacobian_rate(q, qd, link), apart.jacobian_rate(q, qd, link), 1e-12)


@any_tree(examples=8, links=8)
def test_energy_mass_matrix_and_momenta(seed, links):
    """Power is the rate of energy, ½ q̇ᵀ M q̇ the kinetic one, and Ṁ − 2C is skew: q̇ᵀ(Ṁ q̇ − 2 C q̇) = 0."""
    rng, mech = some_tree(seed, links, terms=False)
    q, qd, qdd = random_state(rng, mech)
    T, _ = mech.energy(q, qd)
    np.testing.assert_allclose(0.5 * qd @ mech.mass_matrix(q) @ qd, T, rtol=1e-12)

    def energy(t):
        return sum(mech.energy(q + t[0] * qd + 0.5 * t[0] ** 2 * qdd, qd + t[0] * qdd))

    rate = central_difference(energy, np.zeros(1), 1e-3)[0]
    power = mech.inverse_dynamics(q, qd, qdd) @ qd
    np.testing.assert_allclose(rate, power, atol=1e-7 * max(1.0, abs(power), T))
    coriolis = mech.bias(q, qd) - mech.gravity_load(q)
    M_rate = central_difference(lambda t: mech.mass_matrix(q + t[0] * qd), np.zeros(1), 1e-3)[..., 0]
    np.testing.assert_allclose(qd @ M_rate @ qd - 2 * qd @ coriolis, 0.0, atol=1e-7 * max(1.0, T))


@any_tree(examples=8, links=8)
def test_kinematics(seed, links):
    """The poses are products of the joints' motions, and the Jacobians their derivatives."""
    rng, mech = some_tree(seed, links)
    q = random_state(rng, mech)[0]
    X = mech.forward_kinematics(q)
    np.testing.assert_allclose(skeleton(mech).poses(q), X, atol=1e-12)
    for i, link in enumerate(mech.links):
        parent = np.eye(4) if mech.parents[i] < 0 else X[mech.parents[i]]
        at = mech.coordinates(link.joint_name)
        np.testing.assert_allclose(X[i], parent @ link.pose @ link.joint.motion(q[at]), atol=1e-12)
        np.testing.assert_allclose(mech.jacobian(q, i)[:, at], link.joint.subspace(q[at]), atol=1e-12)
    J = lambda x: mech.jacobian(x, 0)  # noqa: E731
    assert_close(mech.jacobian_derivative(q, 0), central_difference(J, q, 1e-3), 1e-8)


def test_dynamics_are_pinocchios():
    """Pinocchio has universal and translational joints with the same coordinates, and composites for the others."""
    pin = pytest.importorskip("pinocchio")

    def model_of(joint):
        if joint.kind == "universal":
            return pin.JointModelUniversal(*map(np.array, joint.axes))
        if joint.kind == "translational":
            return pin.JointModelTranslation()
        if joint.kind == "planar":
            parts = [pin.JointModelPrismaticUnaligned(np.array(axis)) for axis in joint.axes]
            parts.append(pin.JointModelRevoluteUnaligned(np.array(joint.direction)))
        else:
            parts = [pin.JointModelRevoluteUnaligned(np.array(part.axis)) for part in joint.freedoms]
        composite = pin.JointModelComposite(len(parts))
        for part in parts:
            composite.addJoint(part)
        return composite

    rng = np.random.default_rng(5)
    joints = [
        cs.Universal([(1, 0, 0), (0, 0.6, 0.8)]),
        cs.Translational(),
        cs.Planar(),
        cs.Composite([cs.Revolute((0, 0, 1)), cs.Revolute((0, 1, 0)), cs.Revolute((1, 0, 0))]),
    ]
    model, links, parent, above = pin.Model(), [], None, 0
    model.gravity.linear = np.array([0.0, -9.81, 0.0])
    for k, joint in enumerate(joints):
        link = random_mechanism(rng, 1).links[0]
        links.append(cs.Link(f"link{k}", parent, joint, link.pose, link.mass, link.com, link.inertia))
        above = model.addJoint(above, model_of(joint), pin.SE3(np.array(link.pose)), f"joint{k}")
        inertia = pin.Inertia(link.mass, np.array(link.com), np.array(link.inertia))
        model.appendBodyToJoint(above, inertia, pin.SE3.Identity())
        parent = f"link{k}"
    mech, data = cs.Mechanism(links), model.createData()
    assert model.nq == model.nv == mech.n
    for _ in range(5):
        q, qd, u = random_state(rng, mech)
        assert_close(mech.inverse_dynamics(q, qd, u), pin.rnea(model, data, q, qd, u), 1e-10)
        assert_close(mech.forward_dynamics(q, qd, u), pin.aba(model, data, q, qd, u), tolerance(mech, q))
        M = np.triu(pin.crba(model, data, q))
        assert_close(mech.mass_matrix(q), M + np.triu(M, 1).T, 1e-10)
        J = pin.computeJointJacobian(model, data, q, above)
        assert_close(mech.jacobian(q, parent), np.roll(J, 3, axis=0), 1e-10)


def test_a_singular_joint_is_named():
    """At a right angle of the middle hinge a gimbal's outer axes coincide: it moves no inertia there on its own."""
    gimbal = cs.Composite([cs.Revolute((0, 0, 1)), cs.Revolute((0, 1, 0)), cs.Revolute((1, 0, 0))], name="gimbal")
    mech = cs.Mechanism([cs.Link("top", None, gimbal, mass=1.0, com=(0.1, 0, 0), inertia=np.eye(3))])
    mech.forward_dynamics([0.3, 1.5, 0.2], np.zeros(3), np.zeros(3))
    with pytest.raises(cs.SingularInertia, match=r"gimbal\[0\]"):
        mech.forward_dynamics([0.3, np.pi / 2, 0.2], np.zeros(3), np.zeros(3))


def test_inverse_kinematics_through_compound_joints():
    rng = np.random.default_rng(2)
    mech = crane()
    q = np.array([0.3, -0.5, 0.4, 0.6, -0.7, 0.2])
    target = mech.forward_kinematics(q)[2]
    found = mech.inverse_kinematics("hook", target, rng=rng)
    assert found.reached
    assert -1 <= found.q[3] <= 1
    np.testing.assert_allclose(mech.forward_kinematics(found.q)[2], target, atol=1e-8)


# Around the mechanism -------------------------------------------------------------------------------------


def test_both_engines_run_a_plant_with_compound_joints():
    """A crane on a floor, its universal joint driven, its hook swinging: equal runs, coordinates named by joint."""
    mech = crane(gravity=(0, 0, -9.81), actuated=["wrist"], active=["wrist"])
    runs = []
    for engine in ("interpreted", "compiled"):
        sim = cs.Simulation(engine=engine, progress=False, graphics=False, live=False)
        bd = sim.blockdiagram()
        plant = bd.HYBRIDDYNAMICS(mech, q0=[0, 0, 0, 0.1, 0.2, 0.3], name="plant")
        bd.connect(bd.CONSTANT([0.3, -0.2]), plant)
        runs.append(sim.run(bd, T=1.0))
        assert "plant.wrist[1].qd" in runs[-1].xnames
    np.testing.assert_allclose(runs[0].x[-1], runs[1].x[-1], atol=1e-8)
    driven = runs[1].x[-1][mech.coordinates("wrist")]
    np.testing.assert_allclose(driven, [0.1 + 0.15, 0.2 - 0.1], atol=1e-6)


def blocks_around(sim, mech):
    """Return a diagram of a plant under a law, with every block that asks a mechanism on its way."""
    bd = sim.blockdiagram()
    plant = bd.HYBRIDDYNAMICS(mech, q0=[0, 0, 0.2, 0.98, 0.3, 0.3], qd0=[0.1, 0, 0.2, 3.0, 0.6, 0.1], name="plant")
    law = bd.CONTROLLER(mech, {"lqr": cs.control.LQR(mech, goal=[0, 0, 0, 0.2, 0.3, 0.1])}, name="law")
    stop = bd.JOINTLIMIT(mech, name="stop")
    total = bd.SUM("++", name="total")
    bd.connect(plant[0], law[0])
    bd.connect(plant[1], law[1])
    bd.connect(plant[0], stop[0])
    bd.connect(plant[1], stop[1])
    bd.connect(law[0], total[0])
    bd.connect(stop, total[1])
    bd.connect(total, plant)
    watched = [bd.ENERGY(mech, name="energy"), bd.KINEMATICS(mech, "hook", name="pose")]
    for block in watched:
        bd.connect(plant[0], block[0])
        bd.connect(plant[1], block[1])
    for block in (bd.MASSMATRIX(mech, name="mass"), bd.GRAVITYLOAD(mech, name="load"), bd.ANGLEWRAP(mech, name="wrap")):
        bd.connect(plant[0], block)
        watched.append(block)
    effort = bd.JOINTEFFORT(mech, name="effort")
    for k, source in enumerate((plant[0], plant[1], total)):
        bd.connect(source, effort[k])
    inverse = bd.INVERSEDYNAMICS(mech, name="inverse")
    for k, source in enumerate((plant[0], plant[1], effort[0])):
        bd.connect(source, inverse[k])
    return bd, [watched[0][2], watched[1][0], *watched[2:], effort[1], inverse]


def test_all_blocks_take_compound_joints():
    """Both engines agree, the limited coordinate of the universal joint is stopped, and the torques are those asked."""
    runs = []
    for engine in ("interpreted", "compiled"):
        sim = cs.Simulation(engine=engine, progress=False, graphics=False, live=False)
        bd, watch = blocks_around(sim, crane(gravity=(0, 0, -9.81)))
        runs.append(sim.run(bd, T=0.5, watch=watch))
    one, other = runs
    np.testing.assert_allclose(one.x[-1], other.x[-1], atol=1e-6)
    highest = one.x[:, one.xnames.index("plant.wrist[0].q")].max()
    assert 1.0 < highest < 1.1
    ends = [[np.asarray(signal)[-1] for signal in run.data[".ywatch"]] for run in runs]
    for ours, theirs in zip(*ends, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-4)
    *_, torque, again = ends[0]
    np.testing.assert_allclose(torque, again, atol=1e-8)


def test_blocks_take_the_name_of_a_joint_for_its_coordinates():
    """Of a joint that is named as a whole, what has a limit is stopped, and what turns is wrapped."""
    mech = crane()
    bd = cs.Simulation(progress=False, graphics=False, live=False).blockdiagram()
    stop = bd.JOINTLIMIT(mech, joints=["wrist"])
    torque = stop.test_output(np.array([0, 0, 0, 1.2, 5.0, 0]), np.zeros(6))[0]
    assert torque[3] < 0
    np.testing.assert_array_equal(np.delete(torque, 3), 0.0)
    wrap = bd.ANGLEWRAP(mech, joints=["floor"])
    np.testing.assert_allclose(wrap.test_output(np.full(6, 7.0))[0], [7, 7, 7 - 2 * np.pi, 7, 7, 7])
    with pytest.raises(cs.InvalidValue, match="joint 'pin': has no position limits"):
        bd.JOINTLIMIT(mech, joints=["pin"])


@pytest.mark.parametrize("free", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_a_moving_base_is_a_joint_of_six_coordinates_without_mass(seed, free):
    """Kim 2012 and Xiang et al. 2008, (36): a base whose motion is given, and virtual joints."""
    rng = np.random.default_rng(seed)
    mech = random_mechanism(rng, 5, EVERY, shuffled=False)
    slides = [cs.Prismatic(axis) for axis in np.eye(3)]
    hinges = [cs.Revolute(axis) for axis in np.eye(3)]
    float_joint = cs.Free(name="float") if free else cs.Composite([*slides, *hinges], name="float")
    carried = [link.replace(parent=link.parent or "base") for link in mech.links]
    active = [*{link.joint_name for link in mech.links} & {name.split("[")[0] for name in mech.active}, "float"]
    floating = cs.Mechanism([cs.Link("base", None, float_joint), *carried], mech.gravity, active=active)
    e, (ed, edd) = np.zeros(6), rng.normal(size=(2, 6))
    V0 = float_joint.subspace(e) @ ed
    dV0 = float_joint.subspace(e) @ edd + float_joint.subspace_rate(e, ed) @ ed
    q, qd, u = random_state(rng, mech)
    y = floating.hybrid_dynamics(*(np.append(a, b) for a, b in ((e, q), (ed, qd), (edd, u)))).y
    assert_close(y[6:], mech.hybrid_dynamics(q, qd, u, base=(V0, dV0)).y, tolerance(mech, q))


def test_optimal_control_takes_a_joints_numbers_together():
    from cstormpy.optimal import Effort, Problem

    mech = cs.Mechanism(
        [cs.Link("pointer", None, cs.Universal(name="eye"), mass=1.0, com=(0, 0, 0.3), inertia=0.01 * np.eye(3))],
        gravity=(0, 0, 0),
        active=["eye"],
    )
    options = {"duration": 1.0, "objective": Effort(), "points": 8, "limits": {"velocity": {"eye": 3.0}}}
    problem = Problem(mech, start={"eye": (0, 0)}, end={"eye[0]": 0.4, "eye[1]": -0.3}, **options)
    found = problem.solve()
    assert found.feasible
    assert found.motion.names == mech.names
    np.testing.assert_allclose(found.at([1.0]).q[0], [0.4, -0.3], atol=1e-6)


def test_trim_holds_a_joint_as_a_whole():
    mech = crane(gravity=(0, 0, -9.81))
    q, tau = mech.trim([0, 0, 0, 0.2, 0.3, 0.1], hold=["floor", "wrist", "pin"])
    np.testing.assert_allclose(q, [0, 0, 0, 0.2, 0.3, 0.1])
    np.testing.assert_allclose(tau, mech.gravity_load(q), atol=1e-12)
    welded = cs.Mechanism([*mech.links, cs.Link("plate", "hook", mass=1.0)])
    with pytest.raises(cs.InvalidValue, match="joint 'plate': is fixed"):
        welded.trim(hold=["plate"])


# The witness ----------------------------------------------------------------------------------------------


class RotationVector(Joint):
    """A ball whose coordinates are a rotation vector φ: T = exp φ, S(q) and its rate are no constants."""

    kind = "rotation vector"
    _fields = ("name",)
    freedoms = cs.Translational().freedoms  # for the numbers of its coordinates, all zero

    def __init__(self, name=None):
        self._set(name=name)

    def motion(self, q):
        T = np.eye(4, dtype=np.result_type(q, float))
        a, b, _ = factors(q)
        T[:3, :3] += a * bracket(q) + b * bracket(q) @ bracket(q)
        return T

    def subspace(self, q):
        _, b, c = factors(q)
        J = np.eye(3) - b * bracket(q) + c * bracket(q) @ bracket(q)
        return np.concatenate([J, np.zeros((3, 3))])

    def subspace_rate(self, q, qd):
        return np.einsum("ijk,k->ij", complex_step(self.subspace, q), qd)


def factors(q):
    """Return sin φ / φ, (1 − cos φ) / φ² and (φ − sin φ) / φ³."""
    angle = np.sqrt(q @ q)
    return np.sin(angle) / angle, (1 - np.cos(angle)) / angle**2, (angle - np.sin(angle)) / angle**3


@pytest.mark.parametrize("seed", range(4))
def test_kims_tables_hold_for_a_joint_whose_subspace_changes_with_q(seed):
    """A ball in rotation vectors and a gimbal of three hinges are one mechanism: equal motion, equal work."""
    rng = np.random.default_rng(seed)
    gimbal = cs.Composite([cs.Revolute((0, 0, 1)), cs.Revolute((0, 1, 0)), cs.Revolute((1, 0, 0))], name="neck")
    body = random_mechanism(rng, 2, ("revolute",), terms=False, shuffled=False).links
    rest = body[1].replace(parent="link0")
    by_gimbal = cs.Mechanism([body[0].replace(joint=gimbal), rest])
    by_ball = cs.Mechanism([body[0].replace(joint=RotationVector("neck")), rest])
    e, ed, edd, (q, qd, qdd) = *rng.uniform(-1, 1, (3, 3)), rng.normal(size=(3, 1))
    phi = lie.log_so3(gimbal.motion(e)[:3, :3])
    S, G = gimbal.subspace(e)[:3], RotationVector().subspace(phi)[:3]
    phid = np.linalg.solve(G, S @ ed)
    Gd = RotationVector().subspace_rate(phi, phid)[:3]
    phidd = np.linalg.solve(G, S @ edd + gimbal.subspace_rate(e, ed)[:3] @ ed - Gd @ phid)
    angles, ball = (np.append(x, y) for x, y in ((e, q), (phi, q))), (np.append(phid, qd), np.append(phidd, qdd))
    (at_gimbal, at_ball), (rate, acceleration) = angles, ball
    tau = by_gimbal.inverse_dynamics(at_gimbal, np.append(ed, qd), np.append(edd, qdd))
    other = kim_joints.inverse_dynamics(by_ball, at_ball, rate, acceleration)
    np.testing.assert_allclose(np.linalg.solve(S.T, tau[:3]), np.linalg.solve(G.T, other[:3]), atol=1e-11)
    np.testing.assert_allclose(tau[3], other[3], atol=1e-11)
    for active in ([], ["neck"], [by_ball.names[3]]):
        driven = by_ball.with_drive(active=active)
        u, y = (np.where(driven.active_mask, *pair) for pair in ((acceleration, other), (other, acceleration)))
        np.testing.assert_allclose(kim_joints.hybrid_dynamics(driven, at_ball, rate, u), y, atol=1e-9)


def test_a_planar_joint_of_a_urdf():
    """URDF: the plane lies across the axis. A slider moves each coordinate, and a file written brings it back."""
    text = """<robot name="cart"><link name="floor"/>
    <link name="cart"><inertial><mass value="2"/>
    <inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
    <joint name="wheels" type="planar"><parent link="floor"/><child link="cart"/>
    <axis xyz="0 1 0"/><dynamics damping="0.5"/></joint></robot>"""
    mech = cs.Mechanism.from_urdf(text)
    assert mech.names == ("wheels[0]", "wheels[1]", "wheels[2]")
    assert [freedom.damping for freedom in mech.freedoms] == [0.5] * 3
    X = mech.forward_kinematics([0.3, 0.4, np.pi / 2])[mech.link_index("cart")]
    np.testing.assert_allclose(X[:3, 3], [0.3, 0, -0.4], atol=1e-15)
    np.testing.assert_allclose(X[:3, :3], [[0, 0, 1], [0, 1, 0], [-1, 0, 0]], atol=1e-15)
    assert cs.Mechanism.from_urdf(mech.to_urdf()) == mech
    with pytest.raises(cs.InvalidValue, match="is a planar joint"):
        cs.Mechanism([cs.Link("cart", None, cs.Planar(), mass=1.0)]).to_dh()
    bd = _posture.build(cs.Simulation(progress=False, graphics=False, live=False), mech)
    assert "wheels[2]" in bd.blocknames


def test_a_file_holds_a_composite_joint_of_one():
    """One hinge in a composite is a hinge, for tables of Denavit and Hartenberg and for URDF."""
    hinge = cs.Composite([cs.Revolute((0, 0, 1), damping=0.1)], name="elbow")
    mech = cs.Mechanism([cs.Link("arm", None, hinge, mass=1.0, com=(0.5, 0, 0))])
    again = cs.Mechanism.from_urdf(mech.to_urdf(), gravity=mech.gravity)
    np.testing.assert_allclose(again.forward_dynamics([0.3], [0.2], [0.1]), mech.forward_dynamics([0.3], [0.2], [0.1]))
    (row,) = mech.to_dh().rows
    assert (row["type"], row["damping"], row["joint"]) == ("revolute", 0.1, "elbow")


@pytest.mark.parametrize(
    "joint", [cs.Revolute((1, 2, 3), point=(0.1, 0.2, 0.3)), cs.Prismatic((1, 0, 2)), cs.Screw((0, 1, 1), 0.2)]
)
def test_a_screw_in_the_parent_s_axes_moves_by_its_exponential_before_the_pose(joint):
    """e^{Sq} M, the first form in 2.6 of Sohl and Bobrow, where a link has M e^{S'q}."""
    pose = random_pose(np.random.default_rng(1))
    mech = cs.Mechanism([cs.Link("body", None, joint.from_parent(pose), pose, mass=1.0)])
    expected = lie.exp_se3(joint.screw * 0.7) @ pose
    np.testing.assert_allclose(mech.forward_kinematics([0.7])[0], expected, atol=1e-13)
    with pytest.raises(cs.CstormError, match="pose"):
        joint.from_parent(2.0 * pose)


@pytest.mark.parametrize("kind", CHAINS)
def test_screws_in_the_parent_s_axes_move_by_their_exponentials_before_the_pose(kind):
    """e^{S1 q1} e^{S2 q2} … M: a compound joint had no such form, but for one hinge after the other."""
    rng = np.random.default_rng(2)
    joint, pose = random_joint(rng, kind), random_pose(rng)
    carried = joint.from_parent(pose)
    mech = cs.Mechanism([cs.Link("body", None, carried, pose, mass=1.0)])
    q, expected = rng.normal(size=joint.dof), pose
    for k in reversed(range(joint.dof)):
        expected = lie.exp_se3(joint.freedoms[k].screw * q[k]) @ expected
    np.testing.assert_allclose(mech.forward_kinematics(q)[0], expected, atol=1e-13)
    assert [f.damping for f in carried.freedoms] == [f.damping for f in joint.freedoms]


def test_a_ball_of_the_parent_s_axes_is_one_where_the_link_has_them_too():
    pose = np.eye(4)
    pose[:3, 3] = 0.3, 0.1, 0.2
    for joint in (cs.Spherical(point=(0.1, 0, 0), damping=0.2, name="hip"), cs.Free(name="hip")):
        q = np.linspace(-0.5, 0.7, joint.dof)
        moved = pose @ joint.from_parent(pose).motion(q)
        np.testing.assert_allclose(moved, joint.motion(q) @ pose, atol=1e-15)
        with pytest.raises(cs.InvalidValue, match=r"joint 'hip': a rotation vector is given in the link's own axes"):
            joint.from_parent(random_pose(np.random.default_rng(1)))
    assert cs.Fixed(name="weld").from_parent(pose) == cs.Fixed(name="weld")
