"""URDF: Pinocchio's reading of the same text, what is kept and skipped, and refusals with line and name."""

from __future__ import annotations

import random
import time

import numpy as np
import pytest
from closeness import assert_close
from hypothesis import given, settings
from hypothesis import strategies as st
from urdf_texts import ARM, BODY, mutant, random_urdf

from cstormpy.errors import CstormError, FileFormatError, FileMissing, InvalidType, InvalidValue, NonFinite
from cstormpy.mechanism import (
    Limits,
    Mechanism,
    Prismatic,
    Revolute,
    urdf,
    xml_elements,
)


# ---------------------------------------------------------------- the oracle
class Oracle:
    """Pinocchio's own reading of a URDF, with its coordinates by the names of the joints."""

    def __init__(self, text, mech):
        self.pin = pytest.importorskip("pinocchio")
        self.model = self.pin.buildModelFromXML(text)
        self.data = self.model.createData()
        self.joints = [self.model.joints[self.model.getJointId(name)] for name in mech.names]
        self.velocity = np.array([joint.idx_v for joint in self.joints], dtype=int)

    def position(self, q):
        """Return a configuration, in which a continuous joint has a cosine and a sine."""
        x = self.pin.neutral(self.model)
        for value, joint in zip(q, self.joints, strict=True):
            x[joint.idx_q : joint.idx_q + joint.nq] = [value] if joint.nq == 1 else [np.cos(value), np.sin(value)]
        return x

    def to(self, v):
        x = np.zeros(self.model.nv)
        x[self.velocity] = v
        return x

    def back(self, matrix):
        matrix = np.asarray(matrix)
        for axis in range(matrix.ndim):
            matrix = np.take(matrix, self.velocity, axis)
        return matrix

    def pose(self, q, link):
        x = self.position(q)
        self.pin.framesForwardKinematics(self.model, self.data, x)
        return self.data.oMf[self.model.getFrameId(link, self.pin.BODY)].homogeneous

    def jacobian(self, q, link):
        frame = self.model.getFrameId(link, self.pin.BODY)
        J = self.pin.computeFrameJacobian(self.model, self.data, self.position(q), frame, self.pin.LOCAL)
        return np.roll(J.reshape(6, -1), 3, axis=0)[:, self.velocity]


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), links=st.integers(2, 25))
def test_pinocchio_reads_the_same_robot(seed, links):
    rng = np.random.default_rng(seed)
    text = random_urdf(rng, links, root_body=bool(seed % 2))
    mech = Mechanism.from_urdf(text)
    oracle = Oracle(text, mech)
    pin, model, data = oracle.pin, oracle.model, oracle.data
    assert model.nv == mech.n
    assert_close(model.gravity.linear, mech.gravity, 1e-10)
    if not mech.n:
        return
    q, qd, qdd = rng.uniform(-2, 2, (3, mech.n))
    x, v, a = oracle.position(q), oracle.to(qd), oracle.to(qdd)
    for index, link in enumerate(mech.links):
        assert_close(mech.forward_kinematics(q)[index], oracle.pose(q, link.name), 1e-10)
        assert_close(mech.jacobian(q, link.name), oracle.jacobian(q, link.name), 1e-10)
    tau = oracle.back(pin.rnea(model, data, x, v, a))
    assert_close(mech.inverse_dynamics(q, qd, qdd), tau, 1e-10)
    M = pin.crba(model, data, x)
    M = oracle.back(np.triu(M) + np.triu(M, 1).T)
    assert_close(mech.mass_matrix(q), M, 1e-10)
    condition = np.linalg.cond(M)
    assert_close(mech.forward_dynamics(q, qd, tau), qdd, 1e-13 * max(condition, 1e3))
    by_q, by_qd, _ = pin.computeRNEADerivatives(model, data, x, v, a)
    d = mech.inverse_sensitivity(q, qd, qdd)
    assert_close(d.dy_dq, oracle.back(by_q), 1e-10)
    assert_close(d.dy_dqd, oracle.back(by_qd), 1e-10)
    active = rng.choice(mech.names, size=mech.n // 2, replace=False).tolist()
    driven = mech.with_drive(active=active)
    r = driven.hybrid_dynamics(q, qd, np.where(driven.active_mask, qdd, tau))
    assert_close(r.qdd, qdd, 1e-13 * max(condition, 1e3))
    assert_close(r.tau, tau, 1e-13 * max(condition, 1e3))


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), links=st.integers(2, 20))
def test_limits_are_those_that_pinocchio_reads(seed, links):
    rng = np.random.default_rng(seed)
    text = random_urdf(rng, links, kinds=("revolute", "prismatic"))
    mech = Mechanism.from_urdf(text)
    model = Oracle(text, mech).model
    for name in mech.names:
        joint, limits = model.joints[model.getJointId(name)], mech.joint(name).limits
        assert limits.position == (model.lowerPositionLimit[joint.idx_q], model.upperPositionLimit[joint.idx_q])
        assert limits.velocity[1] == model.upperVelocityLimit[joint.idx_v]
        assert limits.torque[1] == model.upperEffortLimit[joint.idx_v]


# ---------------------------------------------------------------- what is read
class TestReading:
    def test_an_arm(self, caplog):
        mech = Mechanism.from_urdf(ARM)
        assert caplog.messages == []
        assert mech.names == ("shoulder", "elbow")
        assert [link.name for link in mech.links] == ["upper", "fore"]
        assert mech.joint("shoulder").limits == Limits(position=(-1, 2), velocity=4, torque=30)
        elbow = mech.joint("elbow")
        assert elbow == Revolute((0, -1, 0), damping=0.1, friction=0.2, name="elbow")
        assert mech.gravity.tolist() == [0.0, 0.0, -9.81]
        assert_close(mech.gravity_load([0.0, 0.0]), [2 * 9.81 * 0.5 + 2 * 9.81 * 1.5, 2 * 9.81 * 0.5], 1e-10)

    def test_a_root_with_another_name_is_a_link_that_is_welded_to_the_base(self):
        mech = Mechanism.from_urdf(ARM.replace('"world"', '"foot"'))
        assert [link.name for link in mech.links] == ["foot", "upper", "fore"]
        assert mech.link("foot").joint.kind == "fixed"
        assert mech.names == ("shoulder", "elbow")

    def test_a_joint_may_have_the_name_of_the_root(self):
        """URDF has names of joints and of links apart; a mechanism calls a joint without a name by its link's."""
        mech = Mechanism.from_urdf(ARM.replace('"world"', '"elbow"'))
        assert mech.names == ("shoulder", "elbow")
        assert mech.link("elbow").joint_name == "elbow_joint"

    def test_drive_and_gravity_are_said(self):
        mech = Mechanism.from_urdf(ARM, gravity=(0, -9.81, 0), actuated=["elbow"], active=["elbow"])
        assert (mech.actuated, mech.active) == (("elbow",), ("elbow",))
        assert mech.gravity.tolist() == [0, -9.81, 0]

    def test_defaults_of_the_format(self):
        """The axis is x, off-diagonal moments are 0, and a limit that stands alone has its other side at 0."""
        body = "<inertial><mass value='1'/><inertia ixx='1' iyy='1' izz='1'/></inertial>"
        joint = '<joint name="j" type="prismatic"><parent link="world"/><child link="a"/>'
        text = f'<robot><link name="world"/><link name="a">{body}</link>{joint}<limit upper="2"/></joint></robot>'
        mech = Mechanism.from_urdf(text)
        assert mech.joint("j") == Prismatic((1, 0, 0), limits=(0, 2), name="j")
        assert mech.link("a").inertia.tolist() == np.eye(3).tolist()

    @pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "iso-8859-1"])
    def test_files_in_the_encodings_of_xml(self, tmp_path, encoding):
        text = ARM.replace("elbow", "coudé")
        path = tmp_path / "arm.urdf"
        path.write_bytes(f'<?xml version="1.0" encoding="{encoding}"?>\n{text}'.encode(encoding))
        assert Mechanism.from_urdf(path).names == ("shoulder", "coudé")
        assert Mechanism.from_urdf(f'<?xml version="1.0" encoding="{encoding}"?>\n{text}') == Mechanism.from_urdf(text)

    @pytest.mark.parametrize("version", ["1.1", "1.2"])
    def test_orientations_by_quaternions(self, version):
        """They were skipped without a word, of bodies and of joints."""
        text = turned(version)
        mech = Mechanism.from_urdf(text)
        oracle, q = Oracle(text, mech), np.array([0.4, -0.7])
        assert_close(mech.forward_kinematics(q)[mech.link_index("fore")], oracle.pose(q, "fore"), 1e-10)
        x, v, a = oracle.position(q), np.array([0.3, 1.2]), np.array([-0.6, 0.2])
        want = oracle.back(oracle.pin.rnea(oracle.model, oracle.data, x, oracle.to(v), oracle.to(a)))
        worn = {"elbow.damping": 0.0, "elbow.friction": 0.0}
        assert_close(mech.with_parameters(worn).inverse_dynamics(q, v, a), want, 1e-10)

    @pytest.mark.parametrize("version", ["", "1.0"])
    def test_quaternions_of_the_first_version_are_no_orientations(self, version, caplog):
        text = turned(version)
        mech = Mechanism.from_urdf(text)
        q = np.array([0.4, -0.7])
        assert_close(mech.forward_kinematics(q)[mech.link_index("fore")], Oracle(text, mech).pose(q, "fore"), 1e-10)
        (line,) = caplog.messages
        assert 'quaternions are skipped where <robot> does not say version="1.1" or a later one: link' in line
        assert "joint 'elbow' (line 10)" in line

    def test_blanks_before_the_declaration(self, tmp_path):
        """A text that begins in the line behind three quotes was no XML; lines are still those of the text."""
        lead = '\n\r\n  <?xml version="1.0" encoding="utf-8"?>\n'
        assert Mechanism.from_urdf(f"{lead}{ARM}") == Mechanism.from_urdf(ARM)
        for text, words in (
            (ARM.replace("0 -2 0", "0 0"), f"line {10 + 3}: joint 'elbow'"),
            ("<robot>", "line 4: is not XML"),
            ("<!DOCTYPE robot><robot/>", "line 4: has a document type"),
        ):
            path = tmp_path / "arm.urdf"
            path.write_bytes(f"{lead}{text}".encode())
            for source in (path, f"{lead}{text}"):
                with pytest.raises(FileFormatError, match=words):
                    Mechanism.from_urdf(source)


def turned(version):
    """Return the arm with bodies and the elbow turned by quaternions, in a version of the format."""
    said = f' version="{version}"' if version else ""
    text = ARM.replace("xyz='0.5 0 0'", "xyz='0.5 0 0' quat_xyzw='0.2 -0.4 0.1 0.9'").replace("ixy='0'", "ixy='0.03'")
    assert 'xyz="1 0 0"' in ARM and text.count("quat_xyzw") == 2
    return text.replace("<robot", f"<robot{said}", 1).replace('xyz="1 0 0"', 'xyz="1 0 0" quat_xyzw="0.6 0 2 1"')


class TestWarnings:
    """What is skipped or kept is said in one line each, however often it occurs."""

    @pytest.mark.parametrize(
        ("old", "new", "words"),
        [
            ("ixx='0.1'", "ixx='0.1' iyx='0.01'",
             "attributes that <inertia> of a URDF does not have are skipped: 'iyx' (line 3)"),
            ('damping="0.1"', 'damping="0.1" spring_stiffness="3"',
             "attributes that <dynamics> of a URDF does not have are skipped: 'spring_stiffness' (line 11)"),
            ("<inertial>", "<gravity>0</gravity><inertial>",
             "elements that a <link> of a URDF does not have are skipped: <gravity> (line 3)"),
            ('<child link="fore"/>', '<child link="fore"/><damping/>',
             "elements that a <joint> of a URDF does not have are skipped: <damping> (line 10)"),
        ],
    )  # fmt: skip
    def test_what_no_urdf_has(self, old, new, words, caplog):
        """A moment of inertia or a spring under another name was left out without a word."""
        Mechanism.from_urdf(changed(old, new))
        assert caplog.messages == [f"URDF: {words}"]

    def test_mimics_meshes_and_transmissions(self, caplog):
        mimic = '<mimic joint="shoulder" multiplier="2"/><axis'
        mesh = '<visual><geometry><mesh filename="package://arm/meshes/a.dae"/></geometry></visual></link>'
        more = '<transmission name="t"/><transmission name="s"/><gazebo/></robot>'
        text = ARM.replace("<axis", mimic).replace("</link>", mesh).replace("</robot>", more)
        assert Mechanism.from_urdf(text) == Mechanism.from_urdf(ARM)
        lines = caplog.messages
        assert len(lines) == 3
        assert "2 meshes are skipped: 'package://arm/meshes/a.dae'" in lines[0]
        assert "elements that the dynamics do not need are skipped: 2 <transmission>, 1 <gazebo>" in lines[1]
        follows = "joints that mimic others move on their own here (mimic='hold' makes them follow)"
        assert f"{follows}: 'shoulder' (line 5), 'elbow' (line 9)" in lines[2]

    def test_inertias_that_no_body_has(self, caplog):
        text = ARM.replace("ixx='0.1'", "ixx='0.5'")
        mech = Mechanism.from_urdf(text)
        assert all(link.allow_impossible for link in mech.links)
        (line,) = caplog.messages
        assert "inertias that no body has are kept: 'upper' (line 3: breaks the triangle inequality)" in line
        assert_close(
            mech.inverse_dynamics([0.1, 0.2], [0, 0], [1, 1]),
            Mechanism([link.replace() for link in mech.links], mech.gravity).inverse_dynamics(
                [0.1, 0.2], [0, 0], [1, 1]
            ),
            1e-10,
        )

    def test_limits(self, caplog):
        text = ARM.replace(
            'lower="-1" upper="2" effort="30" velocity="4"', 'lower="3" upper="2" effort="0" velocity="0"'
        )
        assert Mechanism.from_urdf(text).joint("shoulder").limits is None
        assert [line.split(": ")[-2:] for line in caplog.messages] == [
            ["limits whose lower is above the upper are left out", "'shoulder' (line 7)"],
            ["velocity limits of 0 or less are taken as none", "'shoulder' (line 7)"],
            ["effort limits of 0 or less are taken as none", "'shoulder' (line 7)"],
        ]

    def test_a_body_without_an_inertia_is_a_point(self, caplog):
        start, end = ARM.index("<inertia "), ARM.index("</inertial>")
        mech = Mechanism.from_urdf(ARM[:start] + ARM[end:])
        assert not mech.link("upper").inertia.any()
        assert "taken as point masses: 'upper'" in caplog.messages[0]

    def test_many_are_said_in_one_line(self, caplog):
        rng = np.random.default_rng(1)
        text = random_urdf(rng, 30).replace("<child", '<mimic joint="x"/><child')
        Mechanism.from_urdf(text)
        (line,) = caplog.messages
        assert line.endswith(" and 25 more")

    def test_a_file_is_named(self, tmp_path, caplog):
        path = tmp_path / "arm.urdf"
        path.write_text(ARM.replace("</robot>", "<gazebo/></robot>"))
        Mechanism.from_urdf(path)
        assert caplog.messages == ["arm.urdf: elements that the dynamics do not need are skipped: 1 <gazebo>"]


# ---------------------------------------------------------------- refusals
def changed(old, new):
    assert old in ARM
    return ARM.replace(old, new, 1)


BAD = [
    ("", "line 1: is not XML: no element found"),
    ("<robot>", "line 1: is not XML: no element found"),
    ("<robot></robott>", "line 1: is not XML: mismatched tag"),
    ("<robot/>", "line 1: <robot> has no links"),
    ("<mujoco/>", "line 1: is a model of MuJoCo, which Mechanism.from_mjcf reads; a URDF is a <robot>"),
    ("<sdf/>", "line 1: is a model of Gazebo (SDF)"),
    ("<html/>", "line 1: is an XML file of <html>"),
    (changed("shoulder", ""), "line 5: joint name: is empty"),
    (changed('link name="upper"', "link"), "line 3: link: <link>: has no 'name'"),
    (changed('name="elbow" ', ""), "line 9: joint: <joint>: has no 'name'"),
    (changed('"elbow"', '"shoulder"'), "line 9: joint 'shoulder': the name occurs twice, first in line 5"),
    (changed('"fore"', '"upper"'), "line 4: link 'upper': the name occurs twice, first in line 3"),
    (changed('<parent link="upper"/>', ""), "line 9: joint 'elbow': has no <parent>"),
    (changed('<child link="fore"/>', "<child/>"), "line 10: joint 'elbow': <child>: has no 'link'"),
    (changed('<child link="fore"/>', '<child link="for"/>'),
     "line 10: joint 'elbow': child 'for' does not exist; did you mean 'fore'?"),
    (changed('<child link="fore"/>', '<child link="upper"/>'), "line 9: link 'upper': is carried by the joints"),
    (changed('<parent link="upper"/>', '<parent link="fore"/>'), "line 4: link 'fore': is on a cycle"),
    (changed('<parent link="world"/>', '<parent link="fore"/>'), "line 3: link 'upper': is on a cycle"),
    (changed('<link name="world"/>', '<link name="world"/><link name="b"/>'), "2 links have no joint to carry them"),
    (changed("continuous", "continous"), "line 9: joint 'elbow': type 'continous' does not exist; did you mean"),
    (changed('type="continuous"', ""), "line 9: joint 'elbow': <joint>: has no 'type'"),
    (changed("<robot", '<robot version="1.1"').replace('xyz="1 0 0"', 'xyz="1 0 0" rpy="0 0 0" quat_xyzw="0 0 0 1"'),
     "line 10: joint 'elbow': <origin>: has 'rpy' and 'quat_xyzw'; one of them tells of its orientation"),
    (changed("<robot", '<robot version="1.1"').replace('xyz="1 0 0"', 'xyz="1 0 0" quat_xyzw="0 0 0 0"'),
     "line 10: joint 'elbow': <origin>: quat_xyzw: has no length"),
    (changed("0 -2 0", "0 0 0"), "line 9: joint 'elbow': axis: is zero"),
    (changed("0 -2 0", "0 -2"), "line 10: joint 'elbow': <axis>: xyz: expected 3 numbers, got '0 -2'"),
    (changed("0 -2 0", "0 nan 0"), "line 10: joint 'elbow': <axis>: xyz: expected a finite number, got 'nan'"),
    (changed("1 0 0", "1 0 1e999"), "line 10: joint 'elbow': <origin>: xyz: expected a finite number, got '1e999'"),
    (changed("1 0 0", "1_0 0 0"), "expected a finite number, got '1_0'"),
    (changed("1 0 0", "${l} 0 0"), "'${l}'; a source of macros becomes a robot by 'xacro FILE > robot.urdf'"),
    (changed("value='2'", "value='-2'"), "line 3: link 'upper': mass: must not be negative, got -2"),
    (changed("value='2'", "value='nan'"), "line 3: link 'upper': <mass>: value: expected a finite number"),
    (changed("<mass value='2'/>", ""), "line 3: link 'upper': <inertial> has no <mass>"),
    (changed("ixx='0.1' ", ""), "line 3: link 'upper': <inertia>: has no 'ixx'"),
    (changed("ixx='0.1'", "ixx='inf'"), "line 3: link 'upper': <inertia>: ixx: expected a finite number, got 'inf'"),
    (changed('damping="0.1"', 'damping="-0.1"'), "line 9: joint 'elbow': damping: must not be negative, got -0.1"),
    (changed('lower="-1"', 'lower="low"'), "line 7: joint 'shoulder': <limit>: lower: expected a finite number"),
    (changed("<link", "<xacro:property name='l' value='1'/><link"), "line 2: <xacro:property>: is a macro of xacro"),
    (changed('name="fore"', 'name=" fore"').replace('"fore"', '" fore"'), "line 4: link name: ' fore' has blanks"),
]  # fmt: skip


class TestRefusals:
    @pytest.mark.parametrize(("text", "words"), BAD, ids=lambda value: str(value)[-40:])
    def test_by_line_and_name(self, text, words, tmp_path):
        path = tmp_path / "arm.urdf"
        path.write_text(text)
        with pytest.raises(FileFormatError) as caught:
            Mechanism.from_urdf(path)
        message = str(caught.value)
        assert message.startswith(f"{path}: line ")
        assert words in message
        if "<" in text:
            with pytest.raises(FileFormatError) as again:
                Mechanism.from_urdf(text)
            assert f"{path}: {again.value}" == message

    def test_entities_and_bombs(self):
        """A billion laughs, and a file that would be read: a document type is refused before anything is expanded."""
        bomb = '<!DOCTYPE robot [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;">]>\n<robot name="&b;"/>'
        outside = '<!DOCTYPE robot [<!ENTITY x SYSTEM "file:///etc/passwd">]><robot name="&x;"/>'
        for text in (bomb, outside, '<!DOCTYPE robot SYSTEM "http://localhost/x.dtd"><robot/>'):
            with pytest.raises(FileFormatError, match="line 1: has a document type, 'robot'; entities are not read"):
                Mechanism.from_urdf(text)
        with pytest.raises(FileFormatError, match="line 1: is not XML: undefined entity"):
            Mechanism.from_urdf('<robot name="&x;"/>')

    @pytest.mark.slow
    def test_sizes(self):
        began = time.monotonic()
        with pytest.raises(FileFormatError, match="nested more than 500 deep"):
            Mechanism.from_urdf("<robot>" + "<link>" * 10**5)
        with pytest.raises(FileFormatError, match="has more than 200000 elements"):
            Mechanism.from_urdf("<robot>" + "<a/>" * 10**6)
        with pytest.raises(FileFormatError, match="has more than 16777216 characters"):
            Mechanism.from_urdf("<robot>" + " " * xml_elements.MAX_BYTES)
        assert time.monotonic() - began < 60

    def test_a_large_file_is_not_read(self, tmp_path):
        path = tmp_path / "large.urdf"
        with path.open("wb") as file:
            file.truncate(xml_elements.MAX_BYTES + 1)
        with pytest.raises(FileFormatError, match=r"large\.urdf: has more than 16777216 bytes"):
            Mechanism.from_urdf(path)

    @pytest.mark.slow
    def test_long_rows_and_deep_trees_are_read(self):
        links = "".join(f'<link name="l{k}">{BODY}</link>' for k in range(2000))
        joints = "".join(f'<joint name="j{k}" type="continuous"><parent link="l{k}"/><child link="l{k + 1}"/></joint>'
                         for k in range(1999))  # fmt: skip
        assert Mechanism.from_urdf(f"<robot>{links}{joints}</robot>").n == 1999

    @pytest.mark.parametrize(
        ("source", "error", "words"),
        [
            (5, InvalidType, "URDF: expected the path of a file, or its text, got 5"),
            (b"<robot/>", InvalidType, "URDF: expected the path of a file"),
            ("no such file", FileMissing, "no such file: cannot be read"),
            ("package://arm/arm.urdf", InvalidValue, "is an address inside of a ROS package; give the path"),
            ("arm.urdf.xacro", InvalidValue, "is a source of macros; write its robot with 'xacro arm.urdf.xacro >"),
            ("\0", InvalidValue, "is not the name of a file"),
        ],
    )
    def test_what_is_no_file(self, source, error, words):
        with pytest.raises(error) as caught:
            Mechanism.from_urdf(source)
        assert words in str(caught.value)

    def test_arguments(self):
        with pytest.raises(InvalidType, match="floating: expected True or False"):
            Mechanism.from_urdf(ARM, "yes")
        with pytest.raises(NonFinite, match="gravity"):
            Mechanism.from_urdf(ARM, gravity=(0, 0, float("nan")))
        with pytest.raises(CstormError, match="active: joint 'knee' does not exist"):
            Mechanism.from_urdf(ARM, active=["knee"])

    def test_mutants(self):
        """Whatever becomes of a text, one of our own errors comes out, or a mechanism."""
        rng = random.Random(15)
        texts = [ARM, random_urdf(np.random.default_rng(4), 5)]
        made = 0
        for _ in range(800):
            text = mutant(rng, rng.choice(texts))
            try:
                urdf.from_urdf(f"<!---->{text}" if "<" not in text else text)
            except CstormError:
                continue
            made += 1
        assert 50 < made < 750  # the mutants are neither all harmless nor all broken


def test_degrees_in_a_file_are_noted(caplog):
    """A robot whose angles were degrees was read in silence: tumbled links, and stops many turns away."""
    caplog.set_level("INFO", "cstormpy")
    text = ARM.replace('lower="-1" upper="2"', 'lower="-75" upper="110"').replace(
        'xyz="1 0 0"/>', 'xyz="1 0 0" rpy="90 0 0"/>'
    )
    Mechanism.from_urdf(text)
    turns, limits = caplog.messages
    assert turns.startswith("joint 'elbow': rpy 90, 0, 0 rad is more than two turns") and "np.deg2rad" in turns
    assert limits.startswith("joint 'shoulder': limits -75, 110 rad is more than two turns")
    caplog.clear()
    Mechanism.from_urdf(ARM)
    assert not caplog.messages
