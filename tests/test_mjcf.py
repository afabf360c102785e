"""MJCF: MuJoCo's reading of the same text, what is kept and skipped, and refusals with line and name."""

from __future__ import annotations

import random

import numpy as np
import pytest
from mjcf_texts import ACROBOT, HUMANOID, random_mjcf
from urdf_texts import mutant

from cstormpy import Simulation, cli, load
from cstormpy.diagrams import _posture
from cstormpy.errors import CstormError, FileFormatError, FileMissing, InvalidType
from cstormpy.mechanism import Coupling, Limits, Mechanism, Prismatic, Revolute, Shape, as_mechanism, library, mjcf
from cstormpy.mechanism.mjcf_settings import unknown_attributes
from cstormpy.mechanism.xml_elements import Element
from cstormpy.simulation.live_session import controls_of


def close(got, want, tol=1e-9):
    want = np.asarray(want)
    np.testing.assert_allclose(got, want, rtol=0, atol=tol * (1 + np.abs(want).max(initial=0)))


def model(inner, before="", after=""):
    """Return a model with these bodies, each line in its place: the first of `inner` is line 3."""
    return f"<mujoco>{before}\n<worldbody>\n{inner}\n</worldbody>{after}</mujoco>"


def arm(joint='<joint name="j"/>', geom='<geom size=".1"/>', **around):
    return model(f'<body name="a">\n{joint}\n{geom}\n</body>', **around)


# ---------------------------------------------------------------- the oracle
def compare(text, rng):
    pytest.importorskip("mujoco_model").compare(text, rng)


class TestMuJoCo:
    def test_the_acrobot(self):
        compare(ACROBOT, np.random.default_rng(1))

    def test_the_humanoid(self):
        """27 joints on a free body: three in a hip, springs, rotors, masses of capsules."""
        compare(HUMANOID, np.random.default_rng(2))

    def test_worn_balls(self):
        """Armature, damping and springs of a ball and a free body; a range of a ball is its largest angle, in degrees.

        A spring pulls by the rotation vector from where the model stands at the start, whatever its "springref".
        """
        text = model("""<body name="trunk" pos="1 2 3" euler="30 10 20"> <joint name="root" type="free" damping=".3"
            armature=".2" stiffness="4"/> <geom size=".2 .1 .3" type="box"/>
            <body name="thigh" pos=".1 .2 0" euler="10 20 30"> <joint name="hip" type="ball" pos="0 .1 0" damping=".5"
            armature=".1" frictionloss=".4" range="0 60" stiffness="7" springref="30"/>
            <geom type="capsule" fromto="0 0 0 .1 0 -.5" size=".05"/>
            </body></body>""")
        mech = Mechanism.from_mjcf(text)
        root, hip = mech.joint("root"), mech.joint("hip")
        assert (root.damping.tolist(), root.armature.tolist()) == ([0.3] * 6, [0.2] * 6)
        assert (hip.friction.tolist(), hip.max_angle) == ([0.4] * 3, np.pi / 3)
        assert (root.stiffness.tolist(), hip.stiffness.tolist(), hip.rest.any()) == ([4.0] * 6, [7.0] * 3, False)
        compare(text.replace('frictionloss=".4"', ""), np.random.default_rng(3))

    @pytest.mark.parametrize("seed", range(4))
    def test_random_models(self, seed):
        rng = np.random.default_rng(seed)
        compare(random_mjcf(rng, int(rng.integers(1, 4))), rng)

    @pytest.mark.slow
    @pytest.mark.parametrize("seed", range(100, 112))
    def test_more_random_models(self, seed):
        rng = np.random.default_rng(seed)
        compare(random_mjcf(rng, int(rng.integers(2, 6))), rng)

    @pytest.mark.parametrize(
        "settings",
        [
            'settotalmass="7"',
            'boundmass="3" boundinertia="0.2"',
            'balanceinertia="true" inertiafromgeom="false"',
            'inertiagrouprange="1 1"',
            'autolimits="false" inertiafromgeom="true"',
        ],
    )
    def test_settings_of_the_compiler(self, settings, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)  # where MuJoCo writes down that it deprecates one of them
        geoms = '<geom size=".1 .2 .3" type="box" pos="1 0 0" euler="10 20 30"/><geom size=".1" group="1"/>'
        inertial = '<inertial pos="0 0 .1" mass="2" diaginertia="0.5 0.1 0.2" quat="1 .1 .2 .3"/>'
        inertial = inertial if "balance" in settings else ""
        text = arm(geom=f"{inertial}{geoms}", before=f"<compiler {settings}/>")
        compare(text, np.random.default_rng(3))

    def test_bodies_whose_geoms_have_no_mass(self):
        """They keep their <inertial>, or have nothing but what the bounds give them, as MuJoCo places it."""
        inertial = '<inertial pos="1 0 0" mass="2" diaginertia="1 1 1"/><joint axis="0 1 0"/>'
        within = '<body name="b" pos=".1 .2 .3"><joint/></body>'
        text = arm(
            geom=f'{inertial}<geom size=".1" mass="0"/>{within}',
            before='<compiler inertiafromgeom="true" boundmass=".3" boundinertia=".1"/>',
        )
        compare(text, np.random.default_rng(4))

    @pytest.mark.parametrize(
        "constraint",
        [
            '<connect body1="c" body2="a" anchor=".3 .1 .2"/>',
            '<connect body1="c" anchor=".3 .1 .2"/>',
            '<connect site1="tip" site2="foot"/>',
            '<weld body1="c" body2="a" anchor=".1 .2 .3"/>',
            '<weld body1="c" relpose="0 0 0 0 0 0 0"/>',
            '<weld body1="c" body2="a" anchor=".1 .2 .3" torquescale="0"/>',
        ],
    )
    def test_loops(self, constraint):
        """At rest, accelerations of the closed mechanism are those of MuJoCo's mass matrix and Jacobian of equality."""
        mujoco = pytest.importorskip("mujoco")
        geom = '<geom type="capsule" fromto="0 0 0 .5 .1 .2" size=".05"/>'
        axes = ("0 1 .2", "1 0 .3", ".1 .2 1", "1 .3 .2")
        joints = "".join(f'<joint name="{{0}}{k}" axis="{a}"/>' for k, a in enumerate(axes))
        joints = joints.replace('3" axis', '3" type="slide" axis')
        site = '<site name="tip" pos=".4 0 0"/>'
        text = model(
            f'<site name="foot" pos="1.1 .2 .4"/><body name="a">{joints.format("a")}{geom}'
            f'<body name="b" pos=".5 .1 .2" euler="10 20 30">{joints.format("b")}{geom}'
            f'<body name="c" pos=".5 .1 .2">{joints.format("c")}{geom}{site}</body></body></body>',
            before='<option jacobian="dense"> <flag contact="disable"/> </option>',
            after=f"<equality>{constraint}</equality>",
        )
        oracle = mujoco.MjModel.from_xml_string(text)
        data = mujoco.MjData(oracle)
        mujoco.mj_forward(oracle, data)
        n, rows = oracle.nv, data.nefc
        J, M = data.efc_J.reshape(rows, n), np.zeros((n, n))
        mujoco.mj_fullM(oracle, data, M)
        J = J[np.abs(J).max(axis=1) > 0]  # a weld that takes no moment has three rows of zeros
        rows = len(J)
        saddle = np.block([[M, J.T], [J, np.zeros((rows, rows))]])
        want = np.linalg.solve(saddle, np.concatenate([-data.qfrc_bias, np.zeros(rows)]))[:n]
        mech = Mechanism.from_mjcf(text)
        assert mech.loops[0].count == rows
        if "site" not in constraint:  # whose frames lie apart: MuJoCo pulls them together in time
            close(mech.forward_dynamics(np.zeros(n), np.zeros(n), np.zeros(n)), want, 1e-8)

    @pytest.mark.parametrize(
        "constraint",
        [
            '<connect body1="c" body2="a" anchor=".3 .1 .2"/>',
            '<weld body1="c" body2="a" anchor=".1 .2 .3"/>',
            '<weld body1="c" body2="a" relpose=".1 .2 .3 .4 .5 .6 .7"/>',
            '<weld body1="c" body2="a" relpose=".1 .2 .3 .4 .5 .6 .7" anchor="-.3 .2 .1"/>',
        ],
    )
    def test_what_is_left_open_of_a_loop(self, constraint):
        """An anchor beside a relative pose was carried to the other body through that pose, where MuJoCo does not."""
        mujoco = pytest.importorskip("mujoco")
        text = model(
            '<body name="a"><joint name="a" axis="0 1 .2"/><geom size=".1"/><body name="c" pos=".5 .1 .2" '
            'euler="10 20 30"><joint name="c" axis="1 0 .3"/><geom size=".1"/></body></body>',
            after=f"<equality>{constraint}</equality>",
        )
        oracle = mujoco.MjModel.from_xml_string(text)
        data = mujoco.MjData(oracle)
        data.qpos[:] = 0.4, -0.7
        mujoco.mj_forward(oracle, data)
        open_, turned = data.efc_pos[:3], np.linalg.norm(data.efc_pos[3:])  # the sine of half the angle
        left = Mechanism.from_mjcf(text).closure([0.4, -0.7])
        close(np.linalg.norm(left[-3:]), np.linalg.norm(open_), 1e-12)
        close(np.sin(0.5 * np.linalg.norm(left[:-3])), turned, 1e-12)

    @pytest.mark.parametrize(
        ("polycoef", "ratio", "offset"),
        [("", 1.0, 0.3 - 0.2), ('polycoef=".1 -2 0 0 0"', -2.0, 0.1 + 0.3 + 2.0 * 0.2), ('polycoef=".1"', 1.0, 0.2)],
    )
    def test_couplings_of_joints(self, polycoef, ratio, offset):
        """At rest where it holds, accelerations are those of MuJoCo's mass matrix and Jacobian of equality."""
        mujoco = pytest.importorskip("mujoco")
        geom = '<geom type="capsule" fromto="0 0 0 .5 .1 .2" size=".05"/>'
        text = model(
            f'<body name="a"><joint name="first" axis="0 1 .2" ref=".3"/>{geom}<body name="b" pos=".5 .1 .2">'
            f'<joint name="second" type="slide" axis="1 0 .3" ref=".2"/>{geom}</body></body>',
            before='<compiler angle="radian"/><option jacobian="dense"> <flag contact="disable"/> </option>',
            after=f'<equality><joint joint1="first" joint2="second" {polycoef}/></equality>',
        )
        mech = Mechanism.from_mjcf(text)
        assert mech.loops == (Coupling("first", "second", ratio, offset, name="joint1"),)
        q, _ = mech.project([0.4, 0.1])
        oracle = mujoco.MjModel.from_xml_string(text)
        data = mujoco.MjData(oracle)
        data.qpos[:] = q
        mujoco.mj_forward(oracle, data)
        J, M = data.efc_J.reshape(data.nefc, 2), np.zeros((2, 2))
        mujoco.mj_fullM(oracle, data, M)
        close(data.efc_pos, np.zeros(data.nefc), 1e-9)
        saddle = np.block([[M, J.T], [J, np.zeros((1, 1))]])
        want = np.linalg.solve(saddle, np.concatenate([-data.qfrc_bias, [0.0]]))[:2]
        close(mech.forward_dynamics(q, np.zeros(2), np.zeros(2)), want, 1e-8)

    def test_a_site_between_two_ends_closes_a_loop(self):
        mujoco = pytest.importorskip("mujoco")
        rod = '<site name="rod" type="capsule" size=".1" fromto="0 0 0 1 2 3"/>'
        text = arm(geom=f'<geom size=".1"/>{rod}', after='<equality><weld site1="rod" site2="end"/></equality>')
        text = text.replace("<worldbody>", '<worldbody><site name="end"/>')
        oracle, found = mujoco.MjModel.from_xml_string(text), np.zeros(9)
        mujoco.mju_quat2Mat(found, oracle.site("rod").quat)
        (loop,) = mjcf.from_mjcf(text).loops
        close(loop.pose_a[:3], np.column_stack([found.reshape(3, 3), oracle.site("rod").pos]))


# ---------------------------------------------------------------- what is read
class TestReading:
    def test_an_acrobot(self, caplog):
        mech = Mechanism.from_mjcf(ACROBOT)
        assert caplog.messages == []
        assert (mech.names, mech.actuated) == (("shoulder", "elbow"), ("elbow",))
        assert [link.name for link in mech.links] == ["upper_arm", "lower_arm"]
        assert mech.joint("elbow") == Revolute((0, 1, 0), damping=0.05, limits=Limits(torque=2), name="elbow")
        assert mech.gravity.tolist() == [0, 0, -9.81]
        decoration, rod = mech.link("upper_arm").shapes
        assert (decoration.kind, rod.kind, rod.size.tolist()) == ("cylinder", "capsule", [0.05, 1.0])
        assert rod.colour.tolist() == [1, 0.5, 0]

    def test_drive_and_gravity_are_said(self):
        mech = Mechanism.from_mjcf(ACROBOT, gravity=(0, -9.81, 0), actuated=["shoulder"], active=["shoulder"])
        assert (mech.actuated, mech.active, mech.gravity.tolist()) == (("shoulder",), ("shoulder",), [0, -9.81, 0])

    def test_the_humanoids_joints_keep_their_names(self):
        mech = Mechanism.from_mjcf(HUMANOID)
        assert mech.n == 27
        hip = ("right_hip_x", "right_hip_z", "right_hip_y")
        assert mech.names[9:12] == hip
        links = [mech.links[mech.joint_links[mech.joint_index(name)]].name for name in hip]
        assert links == ["right_thigh_right_hip_x", "right_thigh_right_hip_z", "right_thigh"]
        assert mech.joint("right_hip_y").rest == pytest.approx(np.radians(-10))
        assert mech.joint("right_knee").limits.torque == (-35, 35)
        assert mech.actuated == mech.names[6:]

    def test_a_coordinate_is_that_of_mujoco(self):
        """With ref, MuJoCo's coordinate is not 0 where the file shows the body; neither is ours."""
        text = arm('<joint name="j" type="slide" axis="1 0 0" ref="0.5" range="0 2" springref="0.1" stiffness="3"/>')
        mech = Mechanism.from_mjcf(text)
        assert mech.joint("j") == Prismatic((1, 0, 0), stiffness=3, rest=0.1, limits=(0, 2), name="j")
        close(mech.forward_kinematics([0.5])[0], np.eye(4))

    def test_classes_within_classes(self):
        """A class has what the class around it has; an orientation of one's own takes the place of another."""
        defaults = """<default> <geom size=".1 .2 .3" type="box" quat="0 1 0 0"/> <joint damping="1"/>
            <default class="x"> <joint armature="2"/> </default> </default>"""
        mech = Mechanism.from_mjcf(
            model(
                '<body childclass="x"><joint/><geom size=".5" zaxis="1 0 0"/></body><body><joint/><geom/></body>',
                before=defaults,
            )
        )
        first, second = mech.links
        assert (first.joint.armature, first.joint.damping) == (2, 1)
        assert (second.joint.armature, second.joint.damping) == (0, 1)
        assert first.shapes[0].size.tolist() == [1.0, 0.4, 0.6]
        close(first.shapes[0].pose[:3, 2], [1, 0, 0])

    def test_classes_in_several_sections(self):
        """A class has what the others have where it stands in the file; later sections gave it theirs, too."""
        text = model(
            '<body name="a"><joint name="first" class="a"/><geom size=".1"/></body>'
            '<body name="b"><joint name="second"/><geom size=".1"/></body>',
            before='<default><joint damping="1"/><default class="a"><joint armature="1"/></default></default>'
            '<default><joint damping="2" stiffness="3"/><default class="c"/></default>',
        )
        mech, oracle = Mechanism.from_mjcf(text), pytest.importorskip("mujoco").MjModel.from_xml_string(text)
        assert [joint.damping for joint in mech.freedoms] == oracle.dof_damping.tolist() == [1, 2]
        assert [joint.stiffness for joint in mech.freedoms] == oracle.jnt_stiffness.tolist() == [0, 3]
        assert [joint.armature for joint in mech.freedoms] == oracle.dof_armature.tolist() == [1, 0]

    def test_bodies_and_joints_without_names(self):
        mech = Mechanism.from_mjcf(
            model("<body><joint/><joint axis='1 0 0'/><geom size='1'/><body><geom size='1'/></body></body>")
        )
        assert mech.names == ("body1", "body1_")
        assert [link.name for link in mech.links] == ["body1_body1", "body1", "body2"]

    def test_actuators_add_rotors_and_share_a_joint(self):
        motors = ('<actuator><motor joint="j" gear="3" armature="2" ctrlrange="-1 2"/>'
                  '<motor joint="j" gear="-2" ctrlrange="0 1"/></actuator>')  # fmt: skip
        mech = Mechanism.from_mjcf(arm('<joint name="j" actuatorfrcrange="-4 40"/>', after=motors))
        assert mech.joint("j").armature == 18
        assert mech.joint("j").limits.torque == (-4, 6)

    def test_include(self, tmp_path):
        """Parts of a model stand in files beside it; what is wrong in one is told with its name."""
        (tmp_path / "limb.xml").write_text('<mujocoinclude>\n<joint name="j"/>\n<geom size="1"/></mujocoinclude>')
        path = tmp_path / "model.xml"
        path.write_text(model('<body name="a"><include file="limb.xml"/></body>'))
        assert Mechanism.load(path).names == ("j",)
        path.write_text(model('<body name="a"><include file="limb.xml"/><include file="limb.xml"/></body>'))
        with pytest.raises(
            FileFormatError, match=r"model\.xml: line 3: <include>: file: 'limb\.xml' is included twice"
        ):
            Mechanism.load(path)
        path.write_text(model('<body name="a"><include file="limb.xml"/></body>'))
        (tmp_path / "limb.xml").write_text('<mujocoinclude>\n<joint name="j"/>\n<geom size="x"/></mujocoinclude>')
        with pytest.raises(FileFormatError, match=r"line 3 of limb\.xml: geom: <geom>: size: expected a finite number"):
            Mechanism.load(path)
        with pytest.raises(FileFormatError, match=r"'limb\.xml' is looked for beside the model's file; give its path"):
            Mechanism.from_mjcf(path.read_text())

    @pytest.mark.parametrize("beside", [("leaf.xml",), ("sub/leaf.xml",), ("leaf.xml", "sub/leaf.xml")])
    def test_what_an_included_file_includes(self, beside, tmp_path):
        """MuJoCo looks beside the model first, then beside the file that includes; the second was not looked at."""
        mujoco = pytest.importorskip("mujoco")
        (tmp_path / "sub").mkdir()
        path = tmp_path / "model.xml"
        path.write_text(model('<body name="a"><include file="sub/limb.xml"/></body>'))
        (tmp_path / "sub" / "limb.xml").write_text('<mujoco><joint name="j"/><include file="leaf.xml"/></mujoco>')
        for name in beside:
            (tmp_path / name).write_text(f'<mujoco><geom size=".1" mass="{len(name)}"/></mujoco>')
        found = mujoco.MjModel.from_xml_path(str(path)).body_mass[1]
        assert Mechanism.from_mjcf(path).link("a").mass == found == len(beside[0])

    def test_an_included_file_that_is_not_there_is_named_once(self, tmp_path):
        path = tmp_path / "model.xml"
        path.write_text(model('<include file="leaf.xml"/>'))
        with pytest.raises(FileFormatError, match=r"line 3: <include>: .*leaf\.xml: cannot be read") as caught:
            Mechanism.from_mjcf(path)
        assert str(caught.value).count("leaf.xml") == 1

    def test_geoms_are_drawn_and_come_back_from_json(self):
        mech = Mechanism.from_mjcf(HUMANOID)
        assert mech.link("torso").shapes[0] == Shape(
            "capsule", (0.07, 0.14), mech.link("torso").shapes[0].pose, (0.9, 0.7, 0.5)
        )
        assert Mechanism.from_dict(mech.to_dict()) == mech


class TestWarnings:
    """What is skipped is said in one line each, however often it occurs."""

    @pytest.mark.parametrize(
        ("text", "words"),
        [
            (arm(after="<contact/><sensor/><sensor/><tendon/>"),
             "elements that are not read are skipped: 1 <contact>, 2 <sensor>, 1 <tendon>"),
            (arm(geom='<geom type="mesh" mesh="m"/>'), "geoms of type mesh are skipped and have no mass here: line 5"),
            (arm('<joint name="j" type="ball" stiffness="1 2"/>'),
             "of stiffness the first number is taken: 'j' (line 4)"),
            (model('<body name="a">\n<joint name="j" type="free" range="0 1"/>\n<geom size=".1"/></body>'),
             "ranges of free joints are left out: 'j' (line 4)"),
            (arm(after='<actuator><position name="p" joint="j"/></actuator>'),
             "actuators are taken as motors of a torque, their own laws are skipped: <position> 'p' (line 7)"),
            (arm(after='<actuator><position joint="j"/></actuator>'),
             "actuators are taken as motors of a torque, their own laws are skipped: <position> (line 7)"),
            (arm(after='<actuator><motor name="m" tendon="t"/></actuator>'),
             "actuators of anything but joints are skipped: <motor> 'm' (line 7)"),
            (arm(after='<equality><joint joint1="j"/></equality>'),
             "constraints other than connect, weld and straight couplings of two joints are skipped: <joint> (line 7)"),
            (arm(geom='<body name="b"><geom size=".1"/></body>',
                 after='<equality><weld body1="b" body2="a"/></equality>'),
             "constraints of bodies with no joint between them are skipped: <weld> (line 7)"),
            (arm(after='<equality><weld body1="a" active="false"/></equality>'),
             "constraints that are not active are skipped: <weld> (line 7)"),
            (arm(before='<default><equality active="false"/></default>', after='<equality><weld/></equality>'),
             "constraints that are not active are skipped: <weld> (line 7)"),
            (arm(before='<option><flag equality="disable"/></option>', after='<equality><weld body1="a"/></equality>'),
             "constraints that are not active are skipped: <weld> (line 7)"),
            (arm(before='<option density="1.2"><flag spring="disable"/></option>'),
             "options that change the motion are not read: density, spring disabled"),
            (arm('<joint name="j" dampin="3"/>', before='<compiler eulersequence="zyx"/>'),
             "attributes that MuJoCo does not have are skipped: 'eulersequence' of <compiler> (line 1), 'dampin' of "
             "<joint> (line 4)"),
            (arm(before='<option><flag passive="disable"/></option>'),
             "options that change the motion are not read: passive disabled"),
            (arm('<joint name="j" damping=".5"/>', before='<default><joint damping="1 2 3"/></default>'),
             "of damping the first number is taken: 'j' (line 4)"),
            (arm('<freejoint name="f" align="true"/>'),
             "free bodies keep their frames, which MuJoCo would align with their inertia: 'f' (line 4)"),
            (arm('<joint name="f" type="free"/>', before='<compiler alignfree="true"/>'),
             "free bodies keep their frames, which MuJoCo would align with their inertia: 'f' (line 4)"),
            (arm('<joint name="j" stiffness="1 2"/>'), "of stiffness the first number is taken: 'j' (line 4)"),
            (arm(geom='<composite/><geom size="1"/>'),
             "what would make bodies or forces of its own is skipped: <composite> (line 5)"),
            (arm(geom='<inertial pos="0 0 0" mass="1" diaginertia="1 1 5"/>'),
             "inertias that no body has are kept: 'a' (line 3: breaks the triangle inequality)"),
            (model('<body mocap="true" gravcomp="1"><joint/><geom size="1"/></body>'),
             "bodies that a mocap moves stand still here: 'body1' (line 3)"),
        ],
    )  # fmt: skip
    def test_one_line_each(self, text, words, caplog):
        Mechanism.from_mjcf(text)
        assert caplog.messages[0] == f"MJCF: {words}"

    def test_what_mujoco_has_is_no_slip(self):
        """A later MuJoCo may have attributes that this does not know: see whether they change the motion."""
        schema: dict[str, set[str]] = {}
        tag = ""
        for line in pytest.importorskip("mujoco").mj_printSchema(False, False).splitlines():
            words = line.split()
            if len(words) > 1 and words[1].startswith("("):
                tag, words = words[0].replace("(world)", ""), words[2:]
            schema.setdefault(tag, set()).update(words)
        of_others = {"joint1", "joint2", "polycoef", "active", "solimp", "solref", "coef", "joint", "geom", "sidesite"}
        for name in ("compiler", "body", "inertial", "freejoint", "geom", "joint"):
            assert len(schema[name]) > 2
            root, section = Element("mujoco", {}, 1), Element("worldbody", {}, 1)
            element = Element(name, dict.fromkeys(schema[name] | {"slip"}, ""), 1)
            root.children, section.children = [element if name == "compiler" else section], [element]
            found = {where.split("'")[1] for where in unknown_attributes(root)}
            assert found - of_others == {"slip"}

    def test_free_bodies_that_mujoco_does_not_align(self, caplog):
        within = '<geom size=".1"/><body><geom size=".1"/></body>'
        Mechanism.from_mjcf(arm("<freejoint/>", geom=within, before='<compiler alignfree="true"/>'))
        Mechanism.from_mjcf(arm('<freejoint align="false"/>', before='<compiler alignfree="true"/>'))
        assert caplog.messages == []


# ---------------------------------------------------------------- refusals
BAD = [
    ("<mujoco>", "line 1: is not XML: no element found"),
    ("<mujoco/>", "line 1: <mujoco> has no bodies"),
    ("<robot/>", "line 1: is a URDF, which Mechanism.from_urdf reads; a model of MuJoCo is a <mujoco>"),
    ("<html/>", "line 1: is an XML file of <html>"),
    (arm(before='<compiler coordinate="global"/>'), "line 1: <compiler>: coordinate: 'global' is not read"),
    (arm(before='<compiler angle="grad"/>'), "line 1: model: <compiler>: angle 'grad' does not exist"),
    (arm(before='<compiler eulerseq="xyw"/>'), "line 1: <compiler>: eulerseq: expected three of x, y, z"),
    (arm('<joint name="j" axis="0 0 0"/>'), "line 4: joint 'j': axis: is zero"),
    (arm('<joint name="j" axis="0 0"/>'), "line 4: joint 'j': <joint>: axis: expected 3 numbers, got '0 0'"),
    (arm('<joint name="j" axis="0 0 nan"/>'), "line 4: joint 'j': <joint>: axis: expected a finite number, got 'nan'"),
    (arm('<joint name="j" type="hing"/>'), "line 4: joint: <joint>: type 'hing' does not exist; did you mean 'hinge'?"),
    (arm('<joint name="j" damping="-1"/>'), "line 4: joint 'j': damping: must not be negative, got -1"),
    (arm('<joint name="j"/><joint name="j"/>'), "line 4: joint 'j': the name occurs twice, first in line 4"),
    (arm('<joint name="j" class="x"/>'), "line 4: <joint>: class 'x' does not exist"),
    (arm('<joint/><freejoint name="j"/>'), "line 4: joint 'j': is free beside another joint"),
    (arm(geom='<body><freejoint name="k"/></body>'), "line 5: joint 'k': is free inside of 'a'"),
    (arm(geom='<geom size="0"/>'), "line 5: geom: size: must be positive, got '0'"),
    (arm(geom='<geom type="box" size="1 1"/>'), "line 5: geom: <geom>: size: expected 3 numbers, got '1 1'"),
    (arm(geom='<geom name="g"/>'), "line 5: geom 'g': <geom>: has no 'size'"),
    (arm(geom='<geom type="ball"/>'), "line 5: geom: <geom>: type 'ball' does not exist"),
    (arm(geom='<geom size="1" fromto="0 0 0 1 1 1"/>'), "line 5: geom: fromto: a sphere has no ends"),
    (arm(geom='<geom size="1" mass="-1"/>'), "line 5: geom: mass: must not be negative, got -1"),
    (arm(geom='<geom size="1" quat="0 0 0 0"/>'), "line 5: geom: <geom>: quat: has no length"),
    (arm(geom='<geom size="1" quat="1 0 0 0" euler="0 0 0"/>'), "has 'quat' and 'euler'; one of them tells"),
    (arm(geom='<geom type="capsule" size="1" fromto="1e308 0 0 -1e308 0 0"/>'), "line 5: geom: "),
    (arm(geom='<geom type="box" size="1e200 1e200 1"/>'), "line 3: link 'a': mass: "),
    (arm(geom='<inertial pos="0 0 0" diaginertia="1 1 1"/>'), "line 5: body 'a': <inertial>: has no 'mass'"),
    (arm(geom='<inertial mass="1" diaginertia="1 1 1" fullinertia="1 1 1 0 0 0"/>'), "has 'fullinertia' and 'diag"),
    (arm(geom='<inertial mass="-1" diaginertia="1 1 1"/>'), "line 3: link 'a': mass: must not be negative, got -1"),
    (arm(geom='<inertial mass="1"/><inertial mass="1"/>'), "line 5: body 'a': has two <inertial>"),
    (arm(after='<actuator><motor joint="k"/></actuator>'), "line 7: <motor>: joint 'k' does not exist"),
    (arm(after='<equality><weld body1="b"/></equality>'), "line 7: weld 'weld1': body1 'b' does not exist"),
    (arm(after='<equality><weld/></equality>'), "line 7: weld 'weld1': <weld>: has no 'body1'"),
    (arm(after='<equality><joint joint1="j" joint2="k"/></equality>'), "line 7: joint 'joint1': joint2 'k' does not"),
    (arm(after='<equality><joint joint1="j" joint2="j"/></equality>'), "line 7: coupling 'joint1': expected two"),
    (arm(after='<equality><connect site1="s" site2="t"/></equality>'), "line 7: connect 'connect1': site1 's' does"),
    (arm(after='<equality><weld body1="a" body2="a"/></equality>'), "line 7: loop 'weld1': both ends are on the same"),
    (model('<body name="a"/>\n<body name="a"/>'), "line 4: body 'a': the name occurs twice, first in line 3"),
    (model('<joint name="j"/>'), "line 3: <joint>: the world has no joints"),
    (model("<body>" * 600), "nested more than 500 deep"),
    ('<!DOCTYPE m [<!ENTITY a "b">]><mujoco>&a;</mujoco>', "line 1: has a document type, 'm'; entities are not read"),
]  # fmt: skip


class TestRefusals:
    @pytest.mark.filterwarnings("error")
    @pytest.mark.parametrize(("text", "words"), BAD, ids=lambda value: str(value)[-40:])
    def test_by_line_and_name(self, text, words, tmp_path):
        path = tmp_path / "model.xml"
        path.write_text(text)
        with pytest.raises(FileFormatError) as caught:
            Mechanism.from_mjcf(path)
        message = str(caught.value)
        assert message.startswith(f"{path}: line ")
        assert words in message

    def test_what_is_no_file(self):
        with pytest.raises(InvalidType, match="MJCF: expected the path of a file, or its text, got 5"):
            Mechanism.from_mjcf(5)
        with pytest.raises(FileMissing, match="no such file"):
            Mechanism.from_mjcf("no such file")

    def test_mutants(self):
        """Whatever becomes of a text, one of our own errors comes out, or a mechanism."""
        rng = random.Random(15)
        texts = [ACROBOT, random_mjcf(np.random.default_rng(4), 4)]
        made = 0
        for _ in range(300):
            text = mutant(rng, rng.choice(texts))
            try:
                mjcf.from_mjcf(f"<!---->{text}")
            except CstormError:
                continue
            made += 1
        assert 20 < made < 290  # the mutants are neither all harmless nor all broken


# ---------------------------------------------------------------- wherever a mechanism is taken
class TestTaken:
    @pytest.mark.parametrize("name", ["acrobot.xml", "acrobot.mjcf", "acrobot"])
    def test_as_a_path(self, tmp_path, name):
        path = tmp_path / name
        path.write_text(f"<!-- a model -->\n{ACROBOT}")
        for source in (path, str(path)):
            assert as_mechanism(source) == Mechanism.load(source) == Mechanism.from_mjcf(ACROBOT)
            if path.suffix:
                assert load(source) == Mechanism.from_mjcf(ACROBOT)
        with pytest.raises(FileFormatError, match="is a model of MuJoCo, which Mechanism"):
            Mechanism.from_urdf(path)

    def test_a_path_where_nothing_is(self):
        with pytest.raises(FileMissing, match=r"no such\.xml: cannot be read"):
            as_mechanism("no such.xml")

    def test_by_a_block(self, tmp_path):
        path = tmp_path / "acrobot.xml"
        path.write_text(ACROBOT)
        bd = Simulation(graphics=False).blockdiagram()
        assert bd.HYBRIDDYNAMICS(str(path), name="plant").mech == Mechanism.from_mjcf(ACROBOT)

    def test_by_the_command_that_shows_it(self, tmp_path, capsys, caplog):
        """It says what there is and what was skipped; each freedom has a slider, those of a free body too."""
        path = tmp_path / "humanoid.xml"
        path.write_text(HUMANOID)
        assert cli.main(["show", str(path), "--no-live"]) == 0
        shown = capsys.readouterr().out.splitlines()
        assert shown[0] == "Mechanism of 22 links, n = 27, gravity (0, 0, -9.81)"
        assert shown[-1].endswith("kg, 27 coordinates, 21 with a motor, 0 of prescribed motion")
        assert caplog.messages == ["humanoid.xml: elements that are not read are skipped: 1 <tendon>"]
        sliders = controls_of(_posture.build(Simulation(graphics=False), Mechanism.from_mjcf(HUMANOID)))
        assert len(sliders) == 27
        assert next(k for k in sliders if k.block == "right_knee").range()[:2] == tuple(np.radians([-160, -2]))


# ---------------------------------------------------------------- motion through a loop
def swinging_four_bar(softness):
    """Return the four-bar of the library in MJCF, whose posture at q = 0 is closed, its pin held by such a softness.

    MuJoCo holds a constraint by a spring and a damper of time constant T, of accelerations that miss it by the part
    1 - d of what they would be without it: solref = (T, 1), solimp = (d, d).
    """
    four_bar = library.four_bar()
    angles, bodies = four_bar.project([1.0, 0.0, 1.5], hold=["crank"])[0], {}
    for link, angle in zip(four_bar.links, angles, strict=True):
        start, angle, middle, across = map(float, (link.pose[0, 3], angle, link.com[0], link.inertia[2, 2]))
        bodies[link.joint_name] = (
            f'<body name="{link.joint_name}" pos="{start!r} 0 0" euler="0 0 {angle!r}"><joint name="{link.joint_name}" '
            f'axis="0 0 1"/><inertial pos="{middle!r} 0 0" mass="{link.mass!r}" '
            f'diaginertia="{across!r} {across!r} {across!r}"/>'
        )
    soft = f'solref="0.00125 1" solimp="{1 - softness} {1 - softness} .001"'
    pin = f'<connect body1="rocker" body2="coupler" anchor=".5 0 0" {soft}/>'
    return (
        '<mujoco><compiler angle="radian"/><option gravity="0 -9.81 0" timestep="0.000125" integrator="RK4" '
        'solver="Newton" tolerance="1e-14" jacobian="dense"/><worldbody>'
        f"{bodies['crank']}{bodies['coupler']}</body></body>{bodies['rocker']}</body></worldbody>"
        f"<equality>{pin}</equality></mujoco>"
    )


@pytest.mark.slow
def test_a_four_bar_swings_as_mujocos_as_far_as_its_constraints_are_stiff():
    """Two seconds from rest. The soft pin gives way by r = R f / k, of k = (d T)⁻² and R ∝ 1 - d, and its damper takes
    away energy in proportion to 1 - d: so does the distance of the two motions fall, to 1e-7 at d = 0.9999.
    """
    mujoco = pytest.importorskip("mujoco")
    mech = Mechanism.from_mjcf(swinging_four_bar(1e-2), actuated=["crank"])
    (loop,) = mech.loops
    assert loop.kind == "position" and np.abs(mech.closure(np.zeros(3))).max() < 1e-12
    sim = Simulation(graphics=False, progress=False)
    bd = sim.blockdiagram()
    plant = bd.HYBRIDDYNAMICS(mech, q0=np.zeros(3), name="plant")
    bd.connect(bd.CONSTANT([0.0]), plant.tau)
    ours = sim.run(bd, T=2.0, dt=0.1, rtol=1e-10, atol=1e-12)
    assert np.ptp(ours.x[:, 0]) > 2.0
    apart = []
    for softness in (1e-2, 1e-4):
        model = mujoco.MjModel.from_xml_string(swinging_four_bar(softness))
        data, found = mujoco.MjData(model), []
        for step in range(16001):
            if step % 800 == 0:
                found.append(data.qpos.copy())
            mujoco.mj_step(model, data)
        np.testing.assert_allclose(ours.t, np.linspace(0.0, 2.0, 21), atol=1e-12)
        apart.append(np.abs(np.array(found) - ours.x[:, :3]).max())
    assert 3e-6 < apart[0] < 2e-5
    assert apart[1] < 1.5e-2 * apart[0]
