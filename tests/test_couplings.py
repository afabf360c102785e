"""Couplings: a joint that follows another one, as data, in files, and in the dynamics."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from closeness import assert_close

import cstormpy as cs
from cstormpy.errors import CstormError, FileFormatError, InvalidType, InvalidValue, UnknownName

GRIPPER = """<robot name="gripper"><link name="base"/>
<link name="crank"><inertial> <origin xyz="0.1 0 0"/> <mass value="1"/>
  <inertia ixx="0.01" iyy="0.01" izz="0.01"/> </inertial></link>
<link name="finger"><inertial> <mass value="2"/> <inertia ixx="0.01" iyy="0.01" izz="0.01"/> </inertial></link>
<joint name="turn" type="continuous"><parent link="base"/><child link="crank"/><axis xyz="0 0 1"/></joint>
<joint name="slide" type="prismatic"><parent link="base"/><child link="finger"/><axis xyz="0 1 0"/>
<mimic joint="turn" multiplier="-0.5" offset="0.1"/></joint></robot>"""


def geared(**options):
    return cs.library.planar_2r(damping=0.1).replace(loops=[cs.Coupling("elbow", "shoulder", **options)])


def test_a_gear_is_the_constraint_that_it_stands_for():
    mech = geared(ratio=2.0, offset=0.3)
    same = mech.replace(loops=[cs.Constraint(lambda q: q[1] - 2.0 * q[0] - 0.3, name="elbow follows shoulder")])
    q, qd = mech.project([0.4, 0.2], [1.0, 0.0])
    assert_close(mech.closure(q), [0.0], 1e-12)
    assert_close(qd[1], 2.0 * qd[0], 1e-12)
    for made in (mech, same):
        assert made.mobility(q).freedoms == 1
    found, expected = (each.hybrid_sensitivity(q, qd, [1.0, -2.0]) for each in (mech, same))
    for name in ("y", "dy_dq", "dy_dqd", "dy_du"):
        assert_close(getattr(found, name), getattr(expected, name), 1e-12)
    # the inertia that a motor in the shoulder feels is Bᵀ M B, B = (1, 2); at rest gravity and the torque do the rest
    B, M = np.array([1.0, 2.0]), mech.mass_matrix(q)
    qdd = mech.forward_dynamics(q, [0.0, 0.0], [3.0, 0.5])
    assert_close(qdd, B * (B @ (np.array([3.0, 0.5]) - mech.gravity_load(q))) / (B @ M @ B), 1e-12)


def test_it_is_data():
    mech = geared(ratio=2.0, offset=-0.3)
    (coupling,) = mech.loops
    assert repr(coupling) == "Coupling('elbow', 'shoulder', ratio=2, offset=-0.3)"
    assert str(mech).splitlines()[-1] == "coupling 'elbow follows shoulder': elbow = 2 shoulder - 0.3"
    assert cs.Mechanism.from_dict(mech.to_dict()) == mech == pickle.loads(pickle.dumps(mech))
    assert geared(ratio=2.0) != mech and coupling.replace(offset=0.0) == geared(ratio=2.0).loops[0]


def test_its_numbers_are_parameters():
    mech = geared(ratio=2.0)
    q, _ = mech.project([0.1, 0.2])
    before = mech.forward_dynamics(q, 0 * q, [1.0, 0.0])
    name = mech.loops[0].name
    changed = mech.with_parameters({f"{name}.ratio": -1.0, f"{name}.offset": 0.3, "forearm.mass": 2.0})
    assert changed == geared(ratio=-1.0, offset=0.3).with_parameters({"forearm.mass": 2.0})
    assert mech.loops[0].ratio == 2.0
    q, _ = changed.project([0.1, 0.2])
    assert not np.allclose(before, changed.forward_dynamics(q, 0 * q, [1.0, 0.0]))
    assert_close(changed.forward_dynamics(q, 0 * q, [1.0, 0.0]).sum(), 0.0, 1e-12)
    for made, words in (
        (lambda: mech.with_parameters({f"{name}.ratio": 0.0}), f"coupling '{name}': expected two joints and a ratio"),
        (lambda: mech.with_parameters({f"{name}.ratios": 1.0}), f"did you mean '{name}.ratio'"),
        (lambda: mech.parameter_sensitivity(q, q, q, [f"{name}.ratio"]), "a coupling has no derivatives"),
    ):
        with pytest.raises(CstormError, match=words):
            made()


def test_a_ratio_in_a_diagram_is_told_where_it_is_changed():
    """It was said not to exist, and gravity was meant."""
    sim = cs.Simulation(live=False, progress=False)
    bd, mech = sim.blockdiagram(), geared(ratio=2.0)
    bd.connect(bd.CONSTANT([0.0] * len(mech.actuated)), bd.HYBRIDDYNAMICS(mech, name="plant").tau)
    name, words = f"plant.{mech.loops[0].name}.ratio", "which with_parameters changes, and so an option of a builder"
    for asked in (
        lambda: sim.gradient(bd, "plant.elbow.q", [name], T=0.1),
        lambda: sim.sweep(bd, {name: [1.0, 2.0]}, ["plant.elbow.q"], T=0.1, progress=False),
    ):
        with pytest.raises(CstormError, match=words):
            asked()


def test_mimic_joints_of_a_urdf_are_held_where_that_is_asked_for(caplog):
    free, held = (cs.Mechanism.from_urdf(GRIPPER, mimic=word) for word in ("free", "hold"))
    assert caplog.text.count("joints that mimic others move on their own") == 1
    assert free.loops == () and free.actuated == ("turn", "slide")
    assert held.loops == (cs.Coupling("slide", "turn", -0.5, 0.1),) and held.actuated == ("turn",)
    q, _ = held.project([0.3, 0.0])
    qdd = held.forward_dynamics(q, [0.0, 0.0], [1.0, 0.0])
    assert_close(qdd, np.array([1.0, -0.5]) / (0.01 + 0.1**2 + 0.5**2 * 2.0), 1e-12)
    assert cs.Mechanism.from_urdf(held.to_urdf(), mimic="hold") == held
    assert "say it again: Mechanism.from_urdf(path, mimic='hold')" in caplog.text


def test_what_mimics_a_fixed_joint_is_fixed_where_it_is_held():
    """Talos with its gripper fixed, as it is delivered, could not be read."""
    text = GRIPPER.replace('type="continuous"', 'type="fixed"').replace("</robot>", FURTHER + "</robot>")
    mech, free = cs.Mechanism.from_urdf(text, mimic="hold"), cs.Mechanism.from_urdf(text)
    assert mech.n == 0 and mech.loops == () and free.names == ("slide", "roll")
    expected = free.forward_kinematics([0.1, 0.1 * 2.0 - 0.5])
    assert_close(mech.forward_kinematics([]), expected, 1e-15)


def test_what_follows_by_a_ratio_of_zero_stands_at_its_offset():
    """A gear of the ratio 0 was refused, and the file with it."""
    mech, free = held('"-0.5"', '"0"'), cs.Mechanism.from_urdf(GRIPPER)
    assert mech.names == ("turn",) and mech.loops == ()
    assert_close(mech.forward_kinematics([0.7]), free.forward_kinematics([0.7, 0.1]), 1e-15)


FURTHER = """<link name="roller"/><joint name="roll" type="revolute"><parent link="finger"/><child link="roller"/>
<axis xyz="0 0 1"/><origin xyz="1 2 3"/><mimic joint="slide" multiplier="2" offset="-0.5"/></joint>"""


@pytest.mark.parametrize("engine", ["interpreted", "compiled"])
def test_a_run_keeps_what_is_coupled_together(engine):
    mech = cs.Mechanism.from_urdf(GRIPPER, mimic="hold")
    sim = cs.Simulation(engine=engine, live=False, progress=False)
    bd = sim.blockdiagram()
    plant = bd.HYBRIDDYNAMICS(mech, q0=mech.project([0.3, 0.0])[0])
    bd.connect(bd.CONSTANT(0.2), plant.tau)
    out = sim.run(bd, T=1.0)
    assert_close(mech.closure(out.x[:, :2]), np.zeros((len(out.t), 1)), 1e-12)
    assert_close(out.x[-1, 0] - out.x[0, 0], 0.5 * 0.2 / 0.52, 1e-9)


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: cs.Coupling("a", "a"), InvalidValue, "two joints and a ratio other than zero"),
        (lambda: cs.Coupling("a", "b", 0.0), InvalidValue, "coupling 'a follows b'"),
        (lambda: cs.Coupling(1, "b"), InvalidType, "joint: expected the name of a coordinate, got 1"),
        (lambda: cs.Coupling("a", "b", np.nan), CstormError, "ratio"),
        (lambda: geared().replace(loops=[cs.Coupling("elbow", "wrist")]), UnknownName, "coordinate 'wrist' does not"),
        (lambda: on_a_ball(cs.Coupling("wheel", "ball[2]")), InvalidValue, r"'ball\[2\]' is a part of a rotation"),
        (lambda: geared().forward_dynamics([0.0, 1.0], [0.0, 0.0], [0.0, 0.0]), InvalidValue, "shoulder: misses"),
        (lambda: cs.Mechanism.from_urdf(GRIPPER, mimic="held"), InvalidValue, "did you mean|expected 'free' or 'hold'"),
        (lambda: held("turn", "wrist"), FileFormatError, "line 7: joint 'slide': mimic: joint 'wrist' does not exist"),
        (lambda: held("turn", "wrist"), FileFormatError, r"\(mimic='free' lets it move on its own\)"),
        (lambda: held('"-0.5"', '"fast"'), FileFormatError, "line 7: joint 'slide': .*multiplier: expected a finite"),
        (lambda: held('joint="turn" ', ""), FileFormatError, "line 7: joint 'slide': .*has no 'joint'"),
        (lambda: cs.library.four_bar().to_urdf(), InvalidValue, "loop 'pin': a URDF has no loops"),
        (lambda: cs.Mechanism.from_dict(geared().to_dict() | {"loops": [{"joint": "a"}]}), FileFormatError, "other"),
    ],
)  # fmt: skip
def test_what_cannot_be_coupled_is_named(make, error, words):
    with pytest.raises(error, match=words):
        make()


def on_a_ball(*loops):
    """Return a ball and a wheel beside it."""
    ball, wheel = (cs.Link(joint.name, None, joint, mass=1.0, inertia=np.eye(3)) for joint in (
        cs.Spherical(name="ball"), cs.Revolute((0, 0, 1), name="wheel")
    ))  # fmt: skip
    return cs.Mechanism([ball, wheel], gravity=(0, 0, 0), actuated=[], loops=loops)


@pytest.mark.parametrize("engine", ["interpreted", "compiled"])
def test_a_constraint_of_parts_of_a_rotation_vector_ends_a_run_at_half_a_turn(engine):
    """It was said to be open where mech.project would close it, which made another motion of it."""
    mech = on_a_ball(cs.Constraint(lambda q: q[3] - 2.0 * q[2], name="gear"))
    sim = cs.Simulation(engine=engine, graphics=False, progress=False)
    bd = sim.blockdiagram()
    bd.HYBRIDDYNAMICS(mech, q0=[0, 0, 2.0, 4.0], qd0=[0, 0, 1.0, 2.0])
    out = sim.run(bd, T=4.0)
    assert out.t[-1] < np.pi - 2.0
    assert "loop gear: misses closure by 12.6 where a rotation vector gives way" in out.message


def held(old, new):
    """Return the gripper with a word of its mimic joint changed."""
    head, tail = GRIPPER.split("<mimic")
    return cs.Mechanism.from_urdf(f"{head}<mimic{tail.replace(old, new, 1)}", mimic="hold")
