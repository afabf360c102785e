"""Derivatives of the hybrid dynamics to the numbers of a mechanism: against Kim's sweeps and against differences."""

from __future__ import annotations

import re

import numpy as np
import pytest
from closeness import assert_close, tolerance
from random_mechanisms import COMPOUND, KINDS, any_tree, random_loads, random_mechanism, random_state
from scipy.linalg import expm
from scipy.spatial.transform import Rotation

import cstormpy as cs
from cstormpy.formulations import kim_derivative
from cstormpy.linkage.components import components
from cstormpy.mechanism import Composite, Fixed, Link, Mechanism, Revolute, library
from cstormpy.mechanism.component_values import component_value, with_components

PAIRS = [(0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2)]


def names_of(mech):
    """Return all parameters but the wrenches, which are none of the mechanism's."""
    known = components(mech)
    whole = {part.name: name for name, parts in known.items() for part in parts if name != part.name}
    return [name for name in known if name not in whole and not name.endswith(".wrench")]


def twist_matrix(k):
    """Return the matrix of the k-th unit twist (ω, v)."""
    X, (x, y, z) = np.zeros((4, 4)), np.eye(6)[k][:3]
    X[:3, :3] = [[0, -z, y], [z, 0, -x], [-y, x, 0]]
    X[:3, 3] = np.eye(6)[k][3:]
    return X


def unit_changes(mech, name):
    """Return the change of a parameter, of its own shape, for each of its components."""
    owner, _, field = name.rpartition(".")
    if field == "inertia":
        return [np.array([[float((a, b) in ((i, j), (j, i))) for b in range(3)] for a in range(3)]) for i, j in PAIRS]
    if field == "pose":
        return [mech.link(owner).pose @ twist_matrix(k) for k in range(6)]
    shape = np.shape(value_of(mech, name))
    return list(np.eye(max(1, int(np.prod(shape)))).reshape(-1, *shape))


def value_of(mech, name):
    owner, _, field = name.rpartition(".")
    if name == "gravity":
        return mech.gravity
    if field in ("mass", "com", "inertia", "pose"):
        return getattr(mech.link(owner), field)
    joint = mech.joint(owner)
    if joint.parts:  # that of a part of a composite joint, as "wrist[1]", or of its only one
        joint = joint.parts[int(owner[-2]) if owner.endswith("]") else 0]
    return getattr(joint, field)


def difference(f, h):
    """Return the derivative of f at 0, to O(h⁶)."""
    near, middle, far = (f(k * h) - f(-k * h) for k in (1, 2, 3))
    return (45 * near - 9 * middle + far) / (60 * h)


def changed(mech, name, change, h):
    value = value_of(mech, name)
    if name.endswith(".pose"):
        value = value @ expm(h * np.linalg.solve(value, change))
    else:
        value = np.asarray(value) + h * change
    return mech.with_parameters({name: value})


@pytest.mark.slow
@any_tree(examples=3, links=8)
def test_kims_sweeps_have_the_same_of_every_parameter(seed, links):
    rng = np.random.default_rng(seed)
    mech = random_mechanism(rng, links, KINDS)
    q, qd, u = random_state(rng, mech)
    wrench = random_loads(rng, mech, base=False)["wrench"]
    names = names_of(mech)
    d = mech.parameter_sensitivity(q, qd, u, names, wrench)
    want = [
        kim_derivative.hybrid_derivative(mech, q, qd, u, wrench, parameters={name: change})
        for name in names
        for change in unit_changes(mech, name)
    ]
    assert_close(d.dy_dp, np.stack(want, axis=-1), tolerance(mech, q, 1e-9))
    assert_close(d.y, mech.hybrid_dynamics(q, qd, u, wrench).y, tolerance(mech, q))


@pytest.mark.slow
@pytest.mark.parametrize("sort", ["none", "all", "every other"])
def test_differences_agree_for_every_joint_type_and_a_moving_base(sort):
    mech = random_mechanism(np.random.default_rng(798), 11, KINDS + COMPOUND)
    joints = [link.joint_name for link in mech.links if link.joint.dof]
    mech = mech.with_drive(active={"none": [], "all": joints, "every other": joints[::2]}[sort])
    assert {link.joint.kind for link in mech.links} == {*KINDS, *COMPOUND}
    rng = np.random.default_rng(len(mech.active))  # each drive has other parameters and another state
    q, qd, u = random_state(rng, mech)
    loads = random_loads(rng, mech)
    planar = next(link.joint_name for link in mech.links if link.joint.kind == "planar")
    names = [name for name in names_of(mech) if name != f"{planar}.axes"]  # they must stay perpendicular, see below
    names = [str(name) for name in rng.choice(names, 16, replace=False)] + ["gravity"] * ("gravity" not in names)
    got = mech.parameter_sensitivity(q, qd, u, names, **loads)
    for name in names:
        rates = [
            difference(lambda h, c=c, n=name: changed(mech, n, c, h).hybrid_dynamics(q, qd, u, **loads).y, 2e-3)
            for c in unit_changes(mech, name)
        ]
        want = np.stack(rates, axis=-1)
        assert_close(got[name].reshape(want.shape), want, 1e-8)


def test_the_axes_of_a_planar_joint_turn_together():
    rng = np.random.default_rng(4)
    mech = random_mechanism(rng, 5, ("planar", "revolute"), shuffled=False)
    joint = next(link.joint_name for link in mech.links if link.joint.kind == "planar")
    q, qd, u = random_state(rng, mech)
    axes = mech.joint(joint).axes
    got = mech.parameter_sensitivity(q, qd, u, [f"{joint}.axes"]).dy_dp
    for e in np.eye(3):

        def y(angle, e=e):
            turned = Rotation.from_rotvec(angle * e).apply(np.array(axes))
            return mech.with_parameters({f"{joint}.axes": turned}).hybrid_dynamics(q, qd, u).y

        assert_close(got @ np.cross(e, axes).ravel(), difference(y, 2e-3), 1e-8)


def test_a_batch_has_the_rows_of_its_samples_and_a_direction_is_a_sum_of_columns():
    rng = np.random.default_rng(2)
    mech = random_mechanism(rng, 5, KINDS + COMPOUND)
    q, qd, u = random_state(rng, mech, 4)
    loads = random_loads(rng, mech, 4)
    parameters = ["link1.com", "link2.pose", "link0.mass", "gravity[1]", "link3.inertia.xy", "link4.wrench"]
    d = mech.parameter_sensitivity(q, qd, u, parameters, **loads)
    assert d.dy_dp.shape == (4, mech.n, 18)
    one = mech.parameter_sensitivity(
        q[2], qd[2], u[2], parameters, loads["wrench"][2], (loads["base"][0][2], loads["base"][1][2])
    )
    assert_close(one.dy_dp, d.dy_dp[2], tolerance(mech, q))
    assert_close(one.y, d.y[2], tolerance(mech, q))
    assert d["link1.com"].shape == (4, mech.n, 3)
    assert_close(d["link1.com"][..., 1], d["link1.com[1]"], 1e-15)
    direction = {"link1.com": [1.0, 2.0, 3.0], "link0.mass": 0.5, "gravity[1]": -1.0}
    y, along = mech.parameter_jvp(q, qd, u, direction, **loads)
    want = d["link1.com"] @ [1.0, 2.0, 3.0] + 0.5 * d["link0.mass"] - d["gravity[1]"]
    assert_close(along, want, 1e-12)
    weights = rng.normal(size=q.shape)
    y, gradient = mech.parameter_vjp(q, qd, u, weights, parameters, **loads)
    assert_close(gradient, np.einsum("si,sik->sk", weights, d.dy_dp), 1e-12)
    assert_close(y, d.y, 1e-15)


def test_a_wrench_is_a_parameter_of_a_link():
    rng = np.random.default_rng(3)
    mech = random_mechanism(rng, 6)
    q, qd, u = random_state(rng, mech)
    wrench = random_loads(rng, mech, base=False)["wrench"]
    got = mech.parameter_sensitivity(q, qd, u, ["link3.wrench"], wrench).dy_dp
    i = mech.link_index("link3")

    def y(change):
        return mech.hybrid_dynamics(q, qd, u, wrench + change * (np.arange(len(mech.links)) == i)[:, None]).y

    want = np.stack([(y(e) - y(-e)) / 2 for e in np.eye(6)], axis=-1)  # y is linear in it
    assert_close(got, want, tolerance(mech, q))


def test_bad_names_are_named():
    pose = np.eye(4)
    arm = Link("arm", None, Revolute((0, 0, 1), name="shoulder"), mass=1.0, com=(0.5, 0, 0))
    mech = Mechanism([arm, Link("tool", "arm", Fixed(), pose, mass=0.2)])

    def ask(*names):
        return mech.parameter_sensitivity([0.0], [0.0], [0.0], names)

    with pytest.raises(cs.UnknownName, match=r"'arm.mas' does not exist; did you mean 'arm.mass'\?"):
        ask("arm.mas")
    with pytest.raises(cs.UnknownName, match=r"did you mean 'arm.inertia.xz'\?"):
        ask("arm.inertia.xz_")
    for entry in ("inertia[0, 2]", "inertia[zx]", "inertia[2][0]", "Ixz", "inertia.zx"):
        meant = rf"^parameter 'arm.{re.escape(entry)}' does not exist; did you mean 'arm.inertia.xz'\?"
        with pytest.raises(cs.UnknownName, match=meant):
            ask(f"arm.{entry}")
        with pytest.raises(cs.UnknownName, match=meant):
            mech.with_parameters({f"arm.{entry}": 1.0})
    with pytest.raises(cs.UnknownName, match=r"^parameter 'arm.I11' does not exist; there are "):
        ask("arm.I11")  # that of x in books, of y in Python
    with pytest.raises(cs.InvalidValue, match=r"'tool.damping': joint 'tool' is fixed and has no damping"):
        ask("tool.damping")
    with pytest.raises(cs.InvalidValue, match=r"'shoulder.limits': the dynamics do not depend on limits"):
        ask("shoulder.limits")
    with pytest.raises(cs.InvalidValue, match=r"'arm.com\[1\]' is among them twice"):
        ask("arm.com", "arm.com[1]")
    with pytest.raises(cs.InvalidType, match="expected names, got 3"):
        ask(3)
    with pytest.raises(cs.UnknownName, match=r"did you mean 'arm\.mass'"):
        ask("arm.mass")["arm.mss"]
    with pytest.raises(cs.ShapeError, match=r"arm.com: expected shape \(3,\)"):
        mech.parameter_jvp([0.0], [0.0], [0.0], {"arm.com": [1.0]})


def test_an_arm_held_level_needs_the_torque_of_its_weight():
    """Torque m g c: its derivatives can be said by hand."""
    mech = library.pendulum().with_drive(active=["joint1"])
    link = mech.links[0]
    m, c = link.mass, link.com[0]
    d = mech.parameter_sensitivity([0.0], [0.0], [0.0], [f"{link.name}.mass", f"{link.name}.com[0]", "gravity[1]"])
    assert_close(d.dy_dp[0], np.array([9.81 * c, 9.81 * m, -m * c]), 1e-12)


@pytest.mark.parametrize("every_other", [False, True])
def test_inertial_numbers_in_any_order_are_the_regressor_times_weights_and_responses(every_other):
    """They are filled link by link, into the columns in which they were asked for, and for part of a group of lanes."""
    mech = random_mechanism(np.random.default_rng(1), 6, ("revolute", "prismatic", "screw", "fixed"))
    mech = mech.with_drive(active=mech.names[::2] if every_other else [])
    q, qd, u = np.random.default_rng(0).normal(size=(3, 11, mech.n))
    names = [f"{link.name}.com" for link in mech.links] + [f"{link.name}.mass" for link in mech.links[::-1]]
    d, s = mech.parameter_sensitivity(q, qd, u, names), mech.hybrid_sensitivity(q, qd, u)
    weights = np.zeros((10 * len(mech.links), d.dy_dp.shape[-1]))
    for k, part in enumerate(part for name in names for part in components(mech)[name]):
        weights[10 * part.link : 10 * part.link + 10, k] = part.weights
    response = np.where(mech.active_mask, np.eye(mech.n), -s.dy_du)
    assert_close(d.dy_dp, response @ (mech.regressor(q, qd, s.qdd) @ weights), 1e-12)


def test_all_inertial_numbers_of_links_in_turn_under_loads_on_a_moving_base():
    """Ten numbers of each link side by side, those of one that stands on the base too, which nothing depends on."""
    rng = np.random.default_rng(3)
    mech = random_mechanism(rng, 6, ("revolute", "prismatic", "screw"))
    foot = Link("foot", None, Fixed(), mass=2.0, com=(0.1, 0.2, 0.3), inertia=np.eye(3))
    mech = Mechanism([foot, *mech.links], gravity=mech.gravity, active=mech.names[1:3])
    q, qd, u = random_state(rng, mech, 9)
    loads = random_loads(rng, mech, 9)
    names = [f"{link.name}.{field}" for link in mech.links for field in ("mass", "com", "inertia")]
    d, s = mech.parameter_sensitivity(q, qd, u, names, **loads), mech.hybrid_sensitivity(q, qd, u, **loads)
    weights = np.zeros((10 * len(mech.links), 10 * len(mech.links)))
    for k, part in enumerate(part for name in names for part in components(mech)[name]):
        weights[10 * part.link : 10 * part.link + 10, k] = part.weights
    response = np.where(mech.active_mask, np.eye(mech.n), -s.dy_du)
    assert_close(d.dy_dp, response @ (mech.regressor(q, qd, s.qdd, loads["base"]) @ weights), 1e-11)
    assert_close(d.y, s.y, tolerance(mech, q))
    assert not d["foot.inertia"].any()
    assert d.components == tuple(part.name for name in names for part in components(mech)[name])


def test_a_row_of_a_batch_whose_derivatives_overflow_is_named():
    mech = library.arm7()
    q, qd, u = np.zeros((3, 12, mech.n))
    qd[9, 2] = 1e160
    with pytest.raises(cs.NonFinite, match="in row 9"):
        mech.parameter_sensitivity(q, qd, u, [f"{mech.links[-1].name}.com"])
    with pytest.raises(cs.NonFinite, match="in row 9"):
        mech.regressor(q, qd, u)


@pytest.mark.slow
def test_small_mechanisms_answer_for_inertial_numbers_by_straight_lines():
    """Of many samples, or of one, under loads and on a moving base; a bad row among them is still named."""
    rng = np.random.default_rng(5)
    mech = random_mechanism(rng, 2, ("revolute", "screw"))
    mech = mech.with_drive(active=mech.names[1:])
    q, qd, u = random_state(rng, mech, 259)
    loads = random_loads(rng, mech, 259)
    names = [f"{link.name}.{field}" for link in mech.links for field in ("mass", "com", "inertia")]
    d, s = mech.parameter_sensitivity(q, qd, u, names, **loads), mech.hybrid_sensitivity(q, qd, u, **loads)
    assert len(mech.memo["inertial lines"]) == 1
    weights = np.zeros((10 * len(mech.links), d.dy_dp.shape[-1]))
    for k, part in enumerate(part for name in names for part in components(mech)[name]):
        weights[10 * part.link : 10 * part.link + 10, k] = part.weights
    response = np.where(mech.active_mask, np.eye(mech.n), -s.dy_du)
    assert_close(d.dy_dp, response @ (mech.regressor(q, qd, s.qdd, loads["base"]) @ weights), 1e-11)
    assert_close(d.y, s.y, 1e-12)
    heavier = mech.with_parameters({f"{mech.links[0].name}.mass": 7.0})
    again = heavier.parameter_sensitivity(q, qd, u, names, **loads)
    assert_close(
        again.dy_dp[3],
        heavier.parameter_sensitivity(
            q[3:5],
            qd[3:5],
            u[3:5],
            names,
            **{"wrench": loads["wrench"][3:5], "base": tuple(x[3:5] for x in loads["base"])},
        ).dy_dp[0],
        1e-11,
    )
    one = mech.parameter_sensitivity(q[3], qd[3], u[3], names)
    for _ in range(2):  # what is prepared at the first call
        assert_close(mech.parameter_sensitivity(q, qd, u, names).dy_dp[3], one.dy_dp, 1e-11)
    with pytest.raises(cs.ShapeError, match="qd"):
        mech.parameter_sensitivity(q, qd[:, :1], u, names)
    qd[200, 0] = 1e160
    with pytest.raises(cs.NonFinite, match="in row 200"):
        mech.parameter_sensitivity(q, qd, u, names)
    with pytest.raises(cs.NonFinite, match="in row 200"):
        mech.parameter_sensitivity(q, qd, u, names, **loads)


def test_a_number_of_a_compound_joint_of_one_is_read_and_set():
    """The label of its part is the joint's own name, and the joint itself has no such number."""
    joint = Composite([Revolute((0, 0, 1), damping=0.1)], name="hip")
    mech = Mechanism([Link("leg", None, joint, mass=1.0, com=(0.3, 0, 0), inertia=0.1 * np.eye(3))])
    assert component_value(mech, "hip.damping") == 0.1
    assert component_value(with_components(mech, {"hip.damping": 0.2}), "hip.damping") == 0.2
