"""URDF as it is written, taken wherever a mechanism is, and shown."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from closeness import assert_close
from hypothesis import given, settings
from hypothesis import strategies as st
from random_mechanisms import random_mechanism, random_pose, random_rotation
from urdf_texts import ARM

from cstormpy import Simulation, cli
from cstormpy.diagrams import _posture
from cstormpy.errors import FileMissing, InvalidValue
from cstormpy.mechanism import (
    Fixed,
    Free,
    Limits,
    Link,
    Mechanism,
    Planar,
    Prismatic,
    Revolute,
    Screw,
    Spherical,
    as_mechanism,
    library,
)
from cstormpy.simulation.live_session import controls_of


class TestWriting:
    @pytest.mark.parametrize("name", ["pendulum", "planar_2r", "acrobot", "branched_acrobot", "xiang_two_link", "arm7"])
    def test_the_library_comes_back(self, name, caplog):
        mech = library.get(name)
        options = {"gravity": mech.gravity, "actuated": mech.actuated}
        assert Mechanism.from_urdf(mech.to_urdf(), **options) == mech
        lines = caplog.messages
        assert len(lines) == (mech.gravity[2] == 0 or mech.actuated != mech.names)

    @pytest.mark.slow
    @settings(max_examples=25, deadline=None)
    @given(seed=st.integers(0, 2**32 - 1), links=st.integers(1, 20))
    def test_every_link_keeps_its_frame_and_the_motion_stays(self, seed, links):
        rng = np.random.default_rng(seed)
        mech = random_mechanism(rng, links=links, kinds=("revolute", "prismatic", "fixed"))
        terms = {f"{n}.{key}": v for n in mech.names
                 for key, v in (("armature", 0), ("stiffness", 0), ("friction_velocity", 0.01))}  # fmt: skip
        mech = mech.with_parameters(terms)
        back = Mechanism.from_urdf(mech.to_urdf(), gravity=mech.gravity, actuated=mech.actuated, active=mech.active)
        assert sorted(back.names) == sorted(mech.names)
        order = [mech.joint_index(name) for name in back.names]
        q, qd, u = rng.uniform(-1, 1, (3, mech.n))
        for link in mech.links:
            index = back.link_index(link.name)
            assert_close(
                back.forward_kinematics(q[order])[index], mech.forward_kinematics(q)[mech.link_index(link.name)], 1e-10
            )
        assert_close(
            back.inverse_dynamics(q[order], qd[order], u[order]), mech.inverse_dynamics(q, qd, u)[order], 1e-10
        )
        again = Mechanism.from_urdf(back.to_urdf(), gravity=back.gravity, actuated=back.actuated, active=back.active)
        assert [link.name for link in again.links] == [link.name for link in back.links]

    @pytest.mark.parametrize("seed", range(3))
    def test_floating_and_planar_joints_come_back_with_their_motion(self, seed):
        """About points off the links' frames, in planes of any direction, worn alike along and about all axes.

        They were refused, though `from_urdf` reads both.
        """
        rng = np.random.default_rng(seed)

        def worn():
            return {"point": rng.normal(size=3), "damping": rng.uniform(), "friction": rng.uniform()}

        joints = [Free(**worn()), Planar(random_rotation(rng)[:2], **worn()), Free(), Planar.across((1, 2, 3)), Fixed()]
        joints += [Revolute((1, 0, 2), point=(0.1, 0.2, 0))]
        links = [
            Link(f"a{k}", f"a{k // 2}" if k else None, joint, random_pose(rng), 1.0 + k, rng.normal(size=3), np.eye(3))
            for k, joint in enumerate(rng.permutation(joints))
        ]
        mech = Mechanism(links)
        back = Mechanism.from_urdf(mech.to_urdf(), gravity=mech.gravity)
        assert sorted(back.names) == sorted(mech.names)
        order = [mech.joint_index(name) for name in back.names]
        q, qd, u = rng.uniform(-1, 1, (3, mech.n))
        for link in mech.links:
            twist = back.jacobian(q[order], link.name) @ qd[order]
            assert_close(twist, mech.jacobian(q, link.name) @ qd, 1e-12)
        tau = mech.inverse_dynamics(q, qd, u)
        assert_close(back.inverse_dynamics(q[order], qd[order], u[order]), tau[order], 1e-12)
        condition = np.linalg.cond(mech.mass_matrix(q))
        assert_close(back.forward_dynamics(q[order], qd[order], tau[order]), u[order], 1e-14 * condition)

    def test_what_floats_in_a_file_does_not_float_twice(self, caplog):
        """The root got a free joint of its own, which moved no mass: accelerations were undefined."""
        body = Link("body", None, Free(name="base"), mass=2.0, inertia=(0.1, 0.2, 0.25))
        mech = Mechanism([body, Link("arm", "body", Revolute((0, 0, 1)), (0.1, 0, 0), 1.0, inertia=(0, 0.1, 0.1))])
        back = Mechanism.from_urdf(mech.to_urdf(), floating=True, gravity=mech.gravity)
        assert back == Mechanism.from_urdf(mech.to_urdf(), gravity=mech.gravity) and back.n == 7
        assert "floating=True adds nothing to floating joints that are there: 'base'" in caplog.text

    def test_pinocchio_reads_what_is_written(self):
        pin = pytest.importorskip("pinocchio")
        mech = library.puma560().with_parameters({f"joint{k}.armature": 0 for k in range(1, 7)})
        model = pin.buildModelFromXML(mech.to_urdf())
        q, qd, qdd = np.random.default_rng(1).uniform(-1, 1, (3, 6))
        assert_close(pin.rnea(model, model.createData(), q, qd, qdd), mech.inverse_dynamics(q, qd, qdd), 1e-10)

    @pytest.mark.parametrize(
        ("joint", "words"),
        [
            (
                Screw((0, 0, 1), 0.1, name="j"),
                "joint 'j': is a screw joint; a URDF has revolute",
            ),
            (
                Spherical(name="j"),
                "joint 'j': is a spherical joint; a URDF has revolute, prismatic, fixed, floating, planar",
            ),
            (
                Free(damping=(1, 1, 1, 2, 2, 2), name="j"),
                "joint 'j': damping: a URDF has one number for all coordinates",
            ),
            (Free(max_angle=2, name="j"), "joint 'j': has limits, which a URDF has no place for on a free joint"),
            (Free(stiffness=2, name="j"), "joint 'j': has stiffness 2"),
            (Planar(limits=[(0, 1), None, None], name="j"), "joint 'j': has limits"),
            (Planar([(1, 0, 0), (1e-8, 1, 0)], name="j"), "joint 'j': axes: must be perpendicular in a URDF"),
            (Revolute((0, 0, 1), armature=0.1, name="j"), "joint 'j': has armature 0.1, which a URDF has no place for"),
            (Revolute((0, 0, 1), stiffness=2, name="j"), "joint 'j': has stiffness 2"),
            (
                Revolute((0, 0, 1), friction=2, friction_velocity=1, name="j"),
                "joint 'j': friction_velocity: a URDF has no place for 1; mech.with_parameters({'j.friction",
            ),
            (Revolute((0, 0, 1), limits=Limits(torque=(-1, 2)), name="j"), "joint 'j': torque limits: a URDF has symm"),
        ],
    )
    def test_what_cannot_be_written_is_refused_by_name(self, joint, words):
        with pytest.raises(InvalidValue) as caught:
            Mechanism([Link("a", None, joint, mass=1.0)]).to_urdf()
        assert str(caught.value).startswith(words)

    def test_names_are_quoted(self):
        mech = Mechanism([Link("a \"b\" <c> & 'd'", None, Revolute((0, 0, 1)), mass=1.0), Link("w", None, Fixed())])
        back = Mechanism.from_urdf(mech.to_urdf('the "robot"'), gravity=mech.gravity)
        assert [link.name for link in back.links] == [link.name for link in mech.links]

    def test_open_sides_of_limits(self):
        for limits in (Limits(position=(None, 1)), Limits(velocity=2), Limits(position=(-1, None), torque=3)):
            for joint in (Revolute((0, 0, 1), limits=limits, name="j"), Prismatic((0, 0, 1), limits=limits, name="j")):
                mech = Mechanism([Link("a", None, joint, mass=1.0)], gravity=(0, 0, -9.81))
                assert Mechanism.from_urdf(mech.to_urdf()).joint("j").limits == limits


class TestTaken:
    @pytest.mark.parametrize("name", ["arm.urdf", "arm.URDF", "arm.xml", "arm"])
    def test_as_a_path(self, tmp_path, name):
        path = tmp_path / name
        path.write_text(ARM)
        for source in (path, str(path)):
            assert as_mechanism(source) == Mechanism.load(source) == Mechanism.from_urdf(ARM)

    def test_missing(self, tmp_path):
        with pytest.raises(FileMissing, match=r"arm\.urdf: cannot be read"):
            as_mechanism("arm.urdf")
        with pytest.raises(InvalidValue, match="inside of a ROS package"):
            as_mechanism("package://arm/arm.urdf")
        with pytest.raises(InvalidValue, match="source of macros"):
            as_mechanism("arm.xacro")

    def test_json_is_still_json(self, tmp_path):
        path = tmp_path / "arm"
        library.acrobot().save(path)
        assert as_mechanism(path) == library.acrobot()

    def test_by_a_block_that_a_bd_file_holds(self, tmp_path):
        """A .bd file can hold the path of a robot in place of a mechanism."""
        path = tmp_path / "arm.urdf"
        path.write_text(ARM)
        text = Path(_posture.__file__).with_name("two_link_arm.bd").read_text()
        (tmp_path / "arm.bd").write_text(text.replace('"planar_2r"', json.dumps(str(path))))
        bd = Simulation(graphics=False).load(tmp_path / "arm.bd")
        assert bd.blocknames["plant"].mech == Mechanism.from_urdf(ARM)


class TestShown:
    """`cstorm show` prints what a mechanism is, and opens its view with a slider for each joint."""

    def test_what_it_says(self, tmp_path, capsys, caplog):
        path = tmp_path / "arm.urdf"
        path.write_text(ARM.replace("</robot>", "<gazebo/></robot>"))
        assert cli.main(["show", str(path), "--no-live"]) == 0
        shown = capsys.readouterr().out.splitlines()
        assert shown[0] == "Mechanism of 2 links, n = 2, gravity (0, 0, -9.81)"
        assert shown[-1] == "mass 4 kg, 2 coordinates, 2 with a motor, 0 of prescribed motion"
        assert caplog.messages == ["arm.urdf: elements that the dynamics do not need are skipped: 1 <gazebo>"]
        assert cli.main(["show", str(path), "--no-live", "--floating"]) == 0
        assert "8 coordinates, 2 with a motor" in capsys.readouterr().out
        assert cli.main(["show", "acrobot", "--floating"]) == 1
        assert "--floating: is for the file of a URDF, as robot.urdf, got acrobot" in capsys.readouterr().err
        path.write_text("<robot/>")
        assert cli.main(["show", str(path)]) == 1
        assert capsys.readouterr().err == f"cstorm: {path}: line 1: <robot> has no links\n"

    def test_sliders_have_the_joints_ranges(self):
        sim = Simulation(graphics=False)
        bd = _posture.build(sim, Mechanism.from_urdf(ARM))
        ranges = {knob.block: knob.range() for knob in controls_of(bd)}
        assert ranges == {"shoulder": (-1.0, 2.0, False), "elbow": (-math.pi, math.pi, False)}

    def test_a_slider_moves_its_joint(self):
        sim = Simulation(graphics=False)
        bd = _posture.build(sim, library.planar_2r(), [0.1, 0.2])

        def turn():
            bd.blocknames["elbow"].value = 0.7

        out = sim.run(bd, T=1.0, at={0.5: turn}, watch=["q"], live=False)
        np.testing.assert_allclose(out.signal("q")[0], [0.1, 0.2])
        np.testing.assert_allclose(out.signal("q")[-1], [0.1, 0.7])

    @pytest.mark.parametrize("limits", [None, (-1, 2), (None, -5), (7, None), (-1, None), (2, 3)])
    def test_the_sliders_stand_in_their_ranges(self, limits):
        mech = Mechanism([Link("a", None, Revolute((0, 0, 1), limits=limits, name="j"), mass=1.0)])
        (knob,) = controls_of(_posture.build(Simulation(graphics=False), mech))
        low, high, log = knob.range()
        assert low <= knob.value <= high and low < high
        assert not limits or all(end is None or end in (low, high) for end in limits)
        assert not log or low > 0
