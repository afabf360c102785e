"""MJCF as it is written: MuJoCo's own reading of it, what comes back, and refusals by name."""

from __future__ import annotations

import ast
import re

import numpy as np
import pytest
from closeness import assert_close
from random_mechanisms import random_joint, random_pose, random_rotation, rebuilt

from cstormpy.errors import InvalidValue
from cstormpy.mechanism import (
    Composite,
    Constraint,
    Coupling,
    Fixed,
    Free,
    Limits,
    Link,
    Loop,
    Mechanism,
    Prismatic,
    Revolute,
    Screw,
    Shape,
    Spherical,
    Universal,
    library,
)

AXES = ("revolute", "prismatic", "fixed", "universal", "planar", "translational")


def coordinates(mech):
    return [label for link in mech.links for label in link.joint.labels(link.joint_name)]


def body(rng):
    """Return mass, centre of mass and inertia of some points."""
    points = rng.normal(size=(5, 3)) * 0.3
    inertia = sum((p @ p) * np.eye(3) - np.outer(p, p) for p in points)
    return {"mass": rng.uniform(0.3, 2.0), "com": rng.normal(size=3) * 0.3, "inertia": inertia}


def one_number(joint):
    """Return a joint whose damping, friction, armature and springs are those that MuJoCo has."""
    same = joint.dof > 2 and joint.kind in ("spherical", "free")
    terms = {key: np.full(joint.dof, 0.3) for key in ("damping", "armature", "stiffness")} if same else {}
    terms |= {"rest": np.zeros(joint.dof)} if same else {}
    return joint.replace(**terms, friction=0.0) if joint.dof else joint


def tree(rng, links, kinds=AXES, root=None):
    """Return a tree of random joints whose links stand in the order in which MuJoCo has them."""
    made = []
    for k in range(links):
        joint = root if k == 0 and root else random_joint(rng, str(rng.choice(kinds)))
        pose = random_pose(rng)
        made.append(Link(f"link{k}", f"link{k - 1}" if k else None, one_number(joint), pose, **body(rng)))
    return Mechanism(
        made,
        gravity=rng.normal(size=3),
        actuated=next(link.joint.labels(link.joint_name) for link in reversed(made) if link.joint.dof),
    )


def assert_same(mech, text, rng):
    """Compare with what comes back, and that with what MuJoCo reads, with loops that are open."""
    mech, text = mech.without_loops(), re.sub(r"(?s)<equality>.*</equality>", "", text)
    back = Mechanism.from_mjcf(text)
    order = [coordinates(mech).index(label) for label in coordinates(back)]
    q, qd, u = rng.uniform(-1, 1, (3, mech.n))
    X, Y = mech.forward_kinematics(q), back.forward_kinematics(q[order])
    for link in mech.links:
        if link.name in {each.name for each in back.links}:
            assert_close(Y[back.link_index(link.name)], X[mech.link_index(link.name)], 1e-12)
    assert set(back.actuated) == set(mech.actuated)
    assert_close(back.inverse_dynamics(q[order], qd[order], u[order]), mech.inverse_dynamics(q, qd, u)[order], 1e-10)
    pytest.importorskip("mujoco_model").compare(text, rng)
    return back


class TestMuJoCo:
    @pytest.mark.parametrize("seed", range(6))
    def test_joints_of_one_axis_or_several(self, seed):
        rng = np.random.default_rng(seed)
        mech = tree(rng, 5)
        back = assert_same(mech, mech.to_mjcf(), rng)
        assert coordinates(back) == coordinates(mech)
        assert_same(back, back.to_mjcf(), rng)  # whose joints of several axes are links without a mass

    @pytest.mark.parametrize("seed", range(3))
    def test_balls_and_a_free_body(self, seed):
        rng = np.random.default_rng(seed)
        mech = tree(rng, 4, ("spherical", "revolute"), Free(name="root"))
        assert_same(mech, mech.to_mjcf(), rng)

    @pytest.mark.parametrize("joint", [Free(name="root"), Spherical(name="root", point=(0.1, 0.2, 0.3))])
    def test_motors_push_along_the_coordinates(self, joint):
        """Those of a free joint pushed along the world's axes, whichever way its link stood; torques are those at 0."""
        mujoco, rng = pytest.importorskip("mujoco"), np.random.default_rng(5)
        link = Link("a", None, joint, random_pose(rng), **body(rng))
        text = Mechanism([link], gravity=rng.normal(size=3)).to_mjcf()
        mech = Mechanism.from_mjcf(text)
        model = mujoco.MjModel.from_xml_string(text)
        data, tau = mujoco.MjData(model), rng.normal(size=mech.n)
        data.ctrl[:] = tau
        mujoco.mj_forward(model, data)
        V = pytest.importorskip("mujoco_model").Oracle(text, mech).rates(np.zeros(mech.n))
        assert_close(V.T @ data.qfrc_actuator, tau, 1e-12)
        assert_close(V @ mech.forward_dynamics(np.zeros(mech.n), np.zeros(mech.n), tau), data.qacc, 1e-9)

    @pytest.mark.parametrize("name", sorted(set(library.names()) - {"puma560"}))
    def test_the_library(self, name):
        """Thin rods have a moment of zero, which MuJoCo refuses: it is as good as that."""
        mujoco = pytest.importorskip("mujoco")
        mech = library.get(name)
        text = mech.to_mjcf()
        model = mujoco.MjModel.from_xml_string(text)
        assert (model.nv, model.nu, model.neq) == (mech.n, len(mech.actuated), len(mech.loops))
        assert_same(mech, text, np.random.default_rng(1))

    def test_bodies_that_mujoco_calls_impossible_by_rounding(self):
        """A point mass, a lamina in axes of its own, a rod along none: all moments are those of the link to 1e-9."""
        mujoco, rng = pytest.importorskip("mujoco"), np.random.default_rng(4)
        R = random_rotation(rng)
        for moments in ((0.0, 0.0, 0.0), (0.7, 0.1, 0.8), (0.0, 0.3, 0.3)):
            for turn in (np.eye(3), R):
                inertia = turn @ np.diag(moments) @ turn.T
                link = Link("a", None, Revolute((0, 0, 1)), None, 1.0, (0.1, 0, 0), 0.5 * inertia + 0.5 * inertia.T)
                text = Mechanism([link]).to_mjcf()
                found = mujoco.MjModel.from_xml_string(text).body_inertia[1]
                np.testing.assert_allclose(sorted(found), sorted(moments), rtol=0, atol=1e-11)
                back = Mechanism.from_mjcf(text)
                np.testing.assert_allclose(back.links[0].inertia, link.inertia, rtol=0, atol=1e-11)

    @pytest.mark.parametrize(("kind", "rows"), [("position", 3), ("pin", 3), ("pose", 6), ("planar", 6)])
    def test_loops_are_as_far_open_as_in_mujoco(self, kind, rows):
        """Between frames anywhere on two links, or on the base; the ends are sites."""
        mujoco, rng = pytest.importorskip("mujoco"), np.random.default_rng(2)
        mech = tree(rng, 3, ("revolute",))
        a, b = random_pose(rng), random_pose(rng)
        ends = ("link2", None) if kind == "pose" else ("link0", "link2")
        mech = mech.replace(loops=[Loop(*ends, a, b, kind, name="pin")])
        model = mujoco.MjModel.from_xml_string(mech.to_mjcf())
        data, q = mujoco.MjData(model), rng.uniform(-1, 1, 3)
        data.qpos[:] = q
        mujoco.mj_forward(model, data)
        open_ = mech.replace(loops=[Loop(*ends, a, b, "position" if rows == 3 else "pose")]).closure(q)
        assert len(data.efc_pos) == rows
        assert_close(np.linalg.norm(data.efc_pos[:3]), np.linalg.norm(open_[-3:]), 1e-12)
        if rows == 6:
            assert_close(np.linalg.norm(data.efc_pos[3:]), abs(np.sin(0.5 * np.linalg.norm(open_[:3]))), 1e-12)

    def test_a_motion_is_that_of_a_run(self):
        """A pendulum of two links with springs and dampers, 2 s by MuJoCo's Runge-Kutta and by ours."""
        mujoco = pytest.importorskip("mujoco")
        from cstormpy import Simulation

        mech = library.acrobot().with_parameters({"elbow.stiffness": 3.0, "elbow.rest": 0.4, "elbow.armature": 0.1})
        model = mujoco.MjModel.from_xml_string(mech.to_mjcf())
        model.opt.integrator, model.opt.timestep = mujoco.mjtIntegrator.mjINT_RK4, 1e-3
        data = mujoco.MjData(model)
        data.qpos[:] = 1.0, 0.5
        for _ in range(2000):
            mujoco.mj_step(model, data)
        sim = Simulation(progress=False, live=False)
        bd = sim.blockdiagram()
        plant = bd.HYBRIDDYNAMICS(mech, q0=[1.0, 0.5], name="plant")
        bd.connect(bd.CONSTANT([0.0]), plant.tau)
        out = sim.run(bd, T=2.0, rtol=1e-9, atol=1e-10)
        assert_close(out.x[-1], np.concatenate([data.qpos, data.qvel]), 1e-6)


class TestWriting:
    def test_what_a_file_holds_comes_back(self):
        """Limits, springs, shapes, colours, motors with their ranges, gravity and couplings."""
        limits = Limits((-1.0, 2.0), torque=(-3.0, 4.0))
        shapes = [
            Shape("box", (0.1, 0.2, 0.3), (0.1, 0, 0), (0.1, 0.2, 0.3)),
            Shape("sphere", 0.2),
            Shape("capsule", (0.1, 0.4), [[1, 0, 0, 0.5], [0, 0, -1, 0], [0, 1, 0, 0], [0, 0, 0, 1]]),
            Shape("cylinder", (0.1, 0.4)),
            Shape("ellipsoid", (0.1, 0.2, 0.3)),
        ]
        ball = Spherical(point=(0.1, 0, 0), damping=0.2, max_angle=1.0, name="wrist")
        inertia = [[1.0, 0.1, 0.2], [0.1, 1.1, 0.05], [0.2, 0.05, 1.2]]
        mech = Mechanism(
            [
                Link("arm", None, Revolute((0, 0, 1), limits=limits, damping=0.1, name="hinge"), (0, 0, 1), 2.0,
                     (0, 0, 0), (1, 1, 1)),
                Link(
                    "slider", "arm",
                    Prismatic((1, 0, 0), point=(0, 0.1, 0), stiffness=5.0, rest=0.2, friction=0.3, armature=0.4,
                              limits=limits, name="slide"),
                    (0.5, 0, 0), 1.0, (0.1, 0, 0), inertia, shapes=shapes,
                ),
                Link("tool", "slider", Fixed(), (0.2, 0, 0)),
                Link("wrist", "tool", ball, None, 1.0, (0.1, 0, 0), inertia),
            ],
            gravity=(0, 0, -1.62), actuated=["slide"], loops=[Coupling("slide", "hinge", 0.5, 0.1)],
        )  # fmt: skip
        back = Mechanism.from_mjcf(mech.to_mjcf())
        assert back == mech
        assert Mechanism.from_mjcf(mech.with_drive(actuated=["wrist"]).to_mjcf()).actuated == (
            "wrist[0]",
            "wrist[1]",
            "wrist[2]",
        )

    @pytest.mark.parametrize("position", [(None, 1.0), (-2.0, None)])
    @pytest.mark.parametrize("actuated", [["a"], []])
    def test_limits_on_one_side_come_back(self, position, actuated):
        """They came back with another side at 1e10, which MuJoCo has for an open one."""
        limits = Limits(position, torque=position)
        link = Link("a", None, Revolute((0, 0, 1), limits=limits), None, 1.0, (0, 0, 0), (1, 1, 1))
        back = Mechanism.from_mjcf(Mechanism([link], actuated=actuated).to_mjcf())
        assert back.links[0].joint.limits == limits

    def test_links_without_a_mass_pass_their_joints_on(self, caplog):
        """Two of them, whose frames lie apart, on one that has a mass: MuJoCo has one body with three joints."""
        rng = np.random.default_rng(3)
        mech = Mechanism(
            [
                Link("one", None, Revolute(rng.normal(size=3), point=(0.1, 0, 0.2), damping=0.3), random_pose(rng)),
                Link("two", "one", Prismatic(rng.normal(size=3)), random_pose(rng)),
                Link("weld", "two", Fixed(), random_pose(rng)),
                Link("three", "weld", Revolute(rng.normal(size=3)), random_pose(rng), **body(rng)),
            ],
            actuated=["two"],
        )
        text = mech.to_mjcf()
        assert text.count("<body") == 1 and text.count("<joint") == 3 and not caplog.messages
        back = assert_same(mech, text, rng)
        assert back.actuated == ("two",)

    def test_a_mass_that_is_welded_on_is_enough(self):
        rng = np.random.default_rng(3)
        arm = Link("arm", None, Revolute((0, 0, 1)), random_pose(rng))
        mech = Mechanism([arm, Link("head", "arm", Fixed(), random_pose(rng), **body(rng))])
        assert Mechanism.from_mjcf(mech.to_mjcf()).names == mech.names
        assert_same(mech, mech.to_mjcf(), rng)

    def test_of_a_point_mass_nothing_is_said(self, caplog):
        """It was called one that no body has."""
        Mechanism([Link("a", None, Revolute((0, 0, 1)), None, 1.0, (1, 0, 0))]).to_mjcf()
        assert not caplog.messages

    def test_masses_that_are_too_small_for_mujoco(self):
        """MuJoCo refused the file; whatever a link is called, the error's remedy can be copied."""
        mujoco = pytest.importorskip("mujoco")
        for name in ("a", "it's", 'say "x"', "back\\slash"):
            small = Link(name, None, Revolute((0, 0, 1)), None, 1e-16, (1, 0, 0))
            mech = Mechanism([small, Link("b", name, Revolute((0, 0, 1)), None, 1.0, (1, 0, 0))])
            with pytest.raises(InvalidValue, match="without a mass, 1e-15 kg at least") as why:
                mech.to_mjcf()
            masses = re.search(r"mech\.with_parameters\((\{.*\})\)$", str(why.value))
            text = mech.with_parameters(ast.literal_eval(masses[1])).to_mjcf()
            np.testing.assert_array_equal(mujoco.MjModel.from_xml_string(text).body_mass, [0.0, 1e-6, 1.0])

    def test_inertias_that_no_body_has(self, caplog):
        """They become larger by as little as it takes, in axes of their own: MuJoCo would refuse the file."""
        mujoco = pytest.importorskip("mujoco")
        R = random_rotation(np.random.default_rng(3))
        cases = [
            ((0.1, 0.1, 1.0), (0.5, 0.5, 1.0)),
            ((0.1, 0.4, 0.6), (0.2, 0.4, 0.6)),
            ((0.0, 0.0, 1.0), (0.5, 0.5, 1.0)),
            ((-0.1, 0.4, 0.6), (0.2, 0.4, 0.6)),
            ((0.1, 0.5, 1.0), (0.5, 0.5, 1.0)),
        ]
        for k, (moments, want) in enumerate(cases):
            inertia = R @ np.diag(moments) @ R.T
            inertia = 0.5 * inertia + 0.5 * inertia.T
            link = Link("bent", None, Revolute((0, 0, 1)), None, 1.0, (0.1, 0, 0), inertia, allow_impossible=True)
            text = Mechanism([link]).to_mjcf()
            found = mujoco.MjModel.from_xml_string(text).body_inertia[1]
            assert_close(np.sort(found), np.array(want), 1e-9)
            assert_close(Mechanism.from_mjcf(text).links[0].inertia, R @ np.diag(want) @ R.T, 1e-9)
            assert len(caplog.messages) == k + 1
            assert "inertias that no body has are made larger, as MuJoCo asks for: 'bent'" in caplog.messages[-1]

    def test_a_link_that_is_the_base(self):
        """As in the URDFs of many arms; loops end on the world."""
        arm = library.planar_2r()
        links = [Link("world"), *(link.replace(parent=link.parent or "world") for link in arm.links)]
        loop = Loop("world", "forearm", (0.5, 0, 0), (1, 0, 0), "position", name="pin")
        back = Mechanism.from_mjcf(Mechanism(links, loops=[loop]).to_mjcf())
        assert [link.name for link in back.links] == ["upper_arm", "forearm"]
        assert back.loops == (loop.replace(link_a=None),)

    def test_what_is_left_out_is_said(self, caplog):
        mech = library.branched_acrobot()
        limits = Limits(velocity=2.0)
        mech = rebuilt(mech, lambda link: {"joint": link.joint.replace(limits=limits, friction=0.1,
                                                                       friction_velocity=0.5)})  # fmt: skip
        first, second, third = mech.links
        mech = Mechanism([first, third, second, Link("toe", third.name, Universal(), (1, 0, 0), 1.0, (0.1, 0, 0))],
                         active=[second.joint_name])  # fmt: skip
        mech.to_mjcf()
        said = "\n".join(caplog.messages)
        for words in ("limits of velocities are left out", "over which friction is smoothed", "follow the bodies",
                      f"say it again, Mechanism.from_mjcf(path, active=...): {second.joint_name}"):  # fmt: skip
            assert said.count(words) == 1

    def test_limits_of_single_coordinates_of_a_ball(self, caplog):
        """Those of torques are limits of its motors; without these nothing was said of them."""
        ball = Spherical(limits=[Limits(torque=2.0)] * 3)
        mech = Mechanism([Link("a", None, ball, None, 1.0)])
        assert mech.to_mjcf().count('ctrlrange="-2.0 2.0"') == 3 and not caplog.messages
        mech.with_drive(actuated=[]).to_mjcf()
        assert "limits of single coordinates are left out: 'a'" in caplog.text

    def test_motors_of_a_free_body_that_turns_about_a_point(self, caplog):
        Mechanism([Link("a", None, Free(point=(1, 0, 0), name="root"), None, 1.0)]).to_mjcf()
        assert "act at the origin of their body, not at point: 'root'" in caplog.text

    def test_a_long_chain(self):
        mech = library.chain(400)
        assert Mechanism.from_mjcf(mech.to_mjcf()).names == mech.names

    @pytest.mark.parametrize(
        ("joint", "said"),
        [
            (Screw((0, 0, 1), 0.1, name="nut"), "joint 'nut': is a screw joint; MuJoCo has hinges"),
            (Spherical(damping=(0.1, 0.2, 0.3), name="ball"), "joint 'ball': damping: MuJoCo has one number for all"),
            (Spherical(stiffness=1.0, rest=(0.1, 0, 0), name="ball"), "joint 'ball': rest: MuJoCo has springs"),
            (Composite([Revolute((0, 0, 1))] * 7, name="snake"), "joint 'snake': has 7 coordinates, of which a body"),
            (Free(point=(1, 0, 0), damping=0.1, name="root"), "joint 'root': point: MuJoCo has dampers"),
        ],
    )
    def test_joints_that_it_does_not_have(self, joint, said):
        with pytest.raises(InvalidValue, match=said):
            Mechanism([Link("a", None, joint, None, 1.0)]).to_mjcf()

    def test_what_else_is_refused(self):
        arm = library.planar_2r()
        (upper, fore), hinge = arm.links, Revolute((0, 0, 1))
        light = [Link("light", None, hinge, shapes=[Shape("sphere", 0.1)]), Link("b", "light", hinge, None, 1.0)]
        rotor = Link("rotor", "base", hinge, None, 0.0, (0, 0, 0), (1, 1, 1))
        snake = [Link(f"s{k}", f"s{k - 1}" if k else None, hinge, (1, 0, 0)) for k in range(8)]
        snake[-1] = snake[-1].replace(mass=1.0)
        cases = [
            (Mechanism(snake), "link 's5': MuJoCo has no bodies that move"),  # of which the others pass on six
            (Mechanism([fore.replace(name="world", parent=None)]), "link 'world': the name means the base"),
            (Mechanism(light), r"link 'light': MuJoCo has no bodies that move.*'light\.mass': 1e-6"),
            (Mechanism([Link("base", mass=1.0), rotor]), "link 'rotor': MuJoCo has no bodies that move"),
            (Mechanism([*light, rotor.replace(parent="b")]), "links 'light', 'rotor': .*'light.*1e-6, 'rotor.*1e-6"),
            (
                arm.replace(loops=[Loop(None, "forearm", directions="slide")]),
                "loop 'base - forearm': closes rotation x",
            ),
            (arm.replace(loops=[Constraint(lambda q: q[0] - q[1], name="mine")]), "constraint 'mine': is a function"),
            (
                Mechanism([upper, Link("b", upper.name, Free(name="root"), None, 1.0)]),
                "'root': is free on another link",
            ),
        ]
        for mech, said in cases:
            with pytest.raises(InvalidValue, match=said):
                mech.to_mjcf()
