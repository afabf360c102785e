"""Joints, limits and links as data: checks, and what is kept of them."""

from __future__ import annotations

import re
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from two_links import INF, NAN, Z, pose_of, rotation

from cstormpy.errors import CstormError, InvalidType, InvalidValue, NonFinite, ShapeError
from cstormpy.lie import make_pose
from cstormpy.linkage.links import INERTIA_TOLERANCE
from cstormpy.mechanism import Fixed, Joint, Limits, Link, Load, Mechanism, Prismatic, Revolute, Screw, Shape


class TestJoints:
    def test_screws(self):
        p, a = np.array([0.3, -0.2, 0.5]), np.array([1.0, 2.0, 2.0]) / 3.0
        np.testing.assert_allclose(Revolute((1, 2, 2), point=p).screw, [*a, *np.cross(p, a)], rtol=1e-15)
        np.testing.assert_allclose(Screw((1, 2, 2), 0.7, point=p).screw, [*a, *(np.cross(p, a) + 0.7 * a)], rtol=1e-15)
        np.testing.assert_allclose(Prismatic((1, 2, 2), point=p).screw, [0, 0, 0, *a], rtol=1e-15)

    def test_kinds(self):
        assert [j.dof for j in (Revolute(Z), Prismatic(Z), Screw(Z, 1.0), Fixed())] == [1, 1, 1, 0]
        assert Revolute(Z).pitch == 0.0
        assert not hasattr(Prismatic(Z), "pitch")
        assert all(isinstance(j, Joint) for j in (Revolute(Z), Prismatic(Z), Screw(Z, 1.0), Fixed()))

    @pytest.mark.parametrize("axis", [(0, 0, 3), (0, 1e300, -1e300), (5e-324, 0, 0), (1, 2, 3)])
    def test_axes_are_normalised_once(self, axis):
        unit = Revolute(axis).axis
        assert abs(np.linalg.norm(unit) - 1.0) < 1e-15
        assert Revolute(unit).axis.tobytes() == unit.tobytes()

    @given(st.tuples(*[st.floats(-1e3, 1e3)] * 3).filter(any))
    def test_normalising_is_idempotent(self, axis):
        unit = Revolute(axis).axis
        assert Revolute(unit).axis.tobytes() == unit.tobytes()

    @pytest.mark.parametrize(
        ("options", "error", "message"),
        [
            ({"axis": (0, 0, 0)}, InvalidValue, "axis: is zero"),
            ({"axis": (0, 0, NAN)}, NonFinite, "axis: expected finite"),
            ({"axis": (0, 1)}, ShapeError, r"axis: expected shape \(3,\), got \(2,\); a direction, as"),
            ({"axis": "z"}, InvalidType, "axis: expected a direction, as .* got the text 'z'"),
            ({"axis": [[1], [2, 3]]}, ShapeError, "axis: .* got rows of different lengths"),
            ({"axis": (10**400, 0, 0)}, NonFinite, "axis: .* got one too large for a float at index 0"),
            ({"axis": (1j, 0, 0)}, InvalidType, "axis: expected real numbers, got complex numbers"),
            ({"point": (INF, 0, 0)}, NonFinite, "point: expected finite"),
            ({"damping": -1}, InvalidValue, "damping: must not be negative, got -1"),
            ({"damping": True}, InvalidType, "damping: expected a number, got True"),
            ({"damping": "0.1"}, InvalidType, "damping: expected a number, got the text '0.1'"),
            ({"damping": [0.1]}, ShapeError, "damping: expected one number, got an array of shape"),
            ({"damping": np.array([0.1])}, ShapeError, "damping: expected one number"),
            ({"damping": 10**400}, NonFinite, "damping: .* got one too large for a float"),
            ({"friction": -1e-9}, InvalidValue, "friction: must not be negative"),
            ({"friction": NAN}, NonFinite, "friction: expected a finite number, got nan"),
            ({"friction_velocity": 0.0}, InvalidValue, "friction_velocity: expected a positive number"),
            ({"armature": -2}, InvalidValue, "armature: must not be negative"),
            ({"stiffness": INF}, NonFinite, "stiffness"),
            ({"rest": None}, InvalidType, "rest: expected a number, got None"),
            ({"limits": (1, -1)}, InvalidValue, "position limits: the lower 1 is above the upper -1"),
            ({"limits": 3.0}, InvalidType, r"position limits: expected a pair"),
            ({"limits": (1, 2, 3)}, ShapeError, "position limits: expected a pair"),
            ({"limits": (NAN, 1)}, NonFinite, "position limits"),
            ({"limits": "ab"}, InvalidType, "position limits: expected a pair"),
        ],
    )
    def test_refusals_name_joint_and_parameter(self, options, error, message):
        arguments = {"axis": Z, **options}
        with pytest.raises(error, match=f"^{message}"):
            Revolute(**arguments)
        for make in (Revolute, Prismatic, lambda **o: Screw(pitch=0.1, **o)):
            with pytest.raises(error, match=f"^joint 'elbow': {message}"):
                make(name="elbow", **arguments)

    def test_screw_refuses_its_pitch(self):
        with pytest.raises(NonFinite, match=r"^joint 'lead': pitch: "):
            Screw(Z, NAN, name="lead")

    def test_a_screw_that_overflows_is_refused(self):
        with pytest.raises(NonFinite, match=r"^joint 'far': point: is so far away"):
            Revolute((1, -1, 0), point=(1.7e308, 1.7e308, 0), name="far")

    @pytest.mark.parametrize("name", ["", " a", "a\n", "a\x00", "\ud800", "x" * 201])
    def test_bad_names(self, name):
        for make in (lambda: Revolute(Z, name=name), lambda: Fixed(name=name), lambda: Link(name)):
            with pytest.raises(InvalidValue, match="name"):
                make()
        with pytest.raises(InvalidValue, match=r"^joint name"):
            Screw(Z, 1.0, name=name)

    def test_numbers_of_other_kinds_are_taken(self):
        joint = Revolute(np.array([0, 0, 1]), damping=np.float32(0.5), armature=Fraction(1, 4), rest=np.array(2))
        assert (joint.damping, joint.armature, joint.rest) == (0.5, 0.25, 2.0)
        assert type(joint.damping) is float

    def test_negative_stiffness_is_allowed(self):
        assert Revolute(Z, stiffness=-3).stiffness == -3.0


class TestLimits:
    def test_forms(self):
        limits = Limits(position=(-1, 2), velocity=3, torque=(None, 4))
        assert limits.position == (-1.0, 2.0)
        assert limits.velocity == (-3.0, 3.0)
        assert limits.torque == (-INF, 4.0)
        assert Limits(velocity=np.array(3.0), torque=np.array([-1, 4])).torque == (-1.0, 4.0)
        assert Revolute(Z, limits=(-1, 2)).limits == Limits(position=(-1, 2))
        assert Revolute(Z, limits=(-INF, np.float32("inf"))).limits is None

    def test_nothing_limited_is_no_limits(self):
        assert Revolute(Z, limits=Limits()).limits is None

    @pytest.mark.parametrize("torque", [-1, (INF, INF), (2, 1), NAN, "no", (1,), {"low": 1}, ([1], 2)])
    def test_refusals(self, torque):
        with pytest.raises(CstormError, match=r"^torque limits: "):
            Limits(torque=torque)


class TestLink:
    def test_defaults(self):
        link = Link("a")
        assert link.parent is None
        assert link.joint == Fixed()
        assert link.mass == 0.0
        assert np.array_equal(link.pose, np.eye(4))
        assert not link.com.any()
        assert not link.spatial_inertia.any()

    def test_a_point_is_the_pose_of_a_frame_that_is_not_turned(self):
        """As for the frames of a loop, which alone took points."""
        assert Link("a", pose=(1, 2, 3)) == Link("a", pose=make_pose(np.eye(3), [1, 2, 3]))
        assert Shape("sphere", 0.1, (1, 2, 3)) == Shape("sphere", 0.1, make_pose(np.eye(3), [1, 2, 3]))
        with pytest.raises(ShapeError, match=r"pose: .*got \(2,\); .*the point, \(3,\), will do, and lie\.make_pose"):
            Link("a", pose=(1, 2))

    def test_spatial_inertia_is_that_of_points(self):
        # (19): kinetic energy of point masses that move with a twist (ω, v) of the link's origin.
        rng = np.random.default_rng(3)
        masses, points = rng.uniform(0.1, 1, 6), rng.normal(size=(6, 3))
        mass, com = masses.sum(), masses @ points / masses.sum()
        arms = points - com
        inertia = sum(m * (r @ r * np.eye(3) - np.outer(r, r)) for m, r in zip(masses, arms, strict=True))
        J = Link("cloud", mass=mass, com=com, inertia=inertia).spatial_inertia
        twist = rng.normal(size=6)
        speeds = twist[3:] + np.cross(twist[:3], points)
        assert twist @ J @ twist == pytest.approx(masses @ (speeds**2).sum(axis=1), rel=1e-13)
        np.testing.assert_allclose(J, J.T, atol=1e-15)

    @pytest.mark.parametrize(
        ("options", "error", "message"),
        [
            ({"mass": -1}, InvalidValue, "mass: must not be negative"),
            ({"mass": NAN}, NonFinite, "mass: "),
            ({"mass": "1"}, InvalidType, "mass: "),
            ({"com": (0, 0)}, ShapeError, r"com: expected shape \(3,\), got \(2,\)"),
            ({"com": (0, 0, INF)}, NonFinite, "com: "),
            ({"com": (1e200, 0, 0), "mass": 1.0}, NonFinite, "com: is so far away"),
            ({"inertia": np.zeros((2, 2))}, ShapeError, "inertia: expected shape"),
            ({"inertia": [[1, 0.1, 0], [0, 1, 0], [0, 0, 1]]}, InvalidValue, "inertia: is not symmetric"),
            ({"inertia": np.diag([1.0, -0.5, 1.0])}, InvalidValue, "inertia: is not positive semi-definite"),
            ({"inertia": np.ones((3, 3)) - np.eye(3)}, InvalidValue, "inertia: is not positive semi-definite"),
            ({"inertia": np.diag([1.0, 1.0, 2.1])}, InvalidValue, "inertia: breaks the triangle inequality"),
            ({"inertia": np.diag([1e308, 1e307, 1e307])}, InvalidValue, "inertia: breaks the triangle inequality"),
            ({"inertia": np.full((3, 3), NAN)}, NonFinite, "inertia: "),
            ({"pose": np.eye(3)}, ShapeError, "pose: expected shape"),
            ({"pose": 2 * np.eye(4)}, InvalidValue, "pose: is not a rigid transform, its last row"),
            ({"pose": np.diag([2.0, 1, 1, 1])}, InvalidValue, "pose: is not a rigid transform, its 3x3 block is not"),
            ({"pose": np.diag([1e300, 1, 1, 1])}, InvalidValue, "pose: is not a rigid transform, its 3x3 block is not"),
            ({"pose": np.diag([-1.0, 1, 1, 1])}, InvalidValue, "pose: is not a rigid transform, its 3x3 block mirrors"),
            ({"pose": np.full((4, 4), NAN)}, NonFinite, "pose: "),
            ({"joint": "revolute"}, InvalidType, "joint: expected a joint"),
            ({"joint": Revolute}, InvalidType, "joint: expected a joint"),
            ({"parent": 3}, InvalidType, "parent: expected text"),
            ({"parent": ""}, InvalidValue, "parent: is empty"),
            ({"allow_impossible": 1}, InvalidType, "allow_impossible: expected True or False"),
        ],
    )
    def test_refusals_name_the_link(self, options, error, message):
        with pytest.raises(error, match=f"^link 'forearm': {message}"):
            Link("forearm", **options)

    @pytest.mark.parametrize("scale", [1e-300, 1.0, 1e300])
    @pytest.mark.parametrize("moments", [(0, 1, 1), (0, 0, 0), (1, 1, 2), (1, 1, 1)])
    def test_thin_and_flat_bodies_are_possible_in_any_axes(self, moments, scale):
        R = rotation(1.1)
        Link("a", mass=1.0, inertia=scale * (R @ np.diag(moments) @ R.T))

    @pytest.mark.parametrize("sign", [-1, 1])
    def test_triangle_inequality_is_taken_with_the_stated_tolerance(self, sign):
        excess = 4.0 * INERTIA_TOLERANCE * (1.0 + sign * 0.01)  # the trace is 4
        inertia = np.diag([1.0, 1.0, 2.0 + excess])
        if sign < 0:
            Link("a", inertia=inertia)
        else:
            with pytest.raises(InvalidValue, match="triangle"):
                Link("a", inertia=inertia)

    def test_impossible_inertia_is_kept_on_request(self):
        link = Link("a", inertia=np.diag([0, 1, 0]), allow_impossible=True)
        assert link.inertia[1, 1] == 1.0
        with pytest.raises(InvalidValue, match="not symmetric"):
            Link("a", inertia=np.triu(np.ones((3, 3))), allow_impossible=True)

    def test_three_numbers_are_the_diagonal_of_an_inertia(self):
        assert Link("a", inertia=[1.0, 2.0, 3.0]) == Link("a", inertia=np.diag([1.0, 2.0, 3.0]))
        with pytest.raises(InvalidValue, match="triangle"):
            Link("a", inertia=[1.0, 1.0, 3.0])

    def test_rotor_without_mass_and_point_mass(self):
        Link("rotor", inertia=np.eye(3))
        Link("point", mass=1.0, com=(1, 2, 3))

    def test_arrays_are_copies_that_stay_read_only(self):
        com = np.array([1.0, 2.0, 3.0])
        link = Link("a", mass=1.0, com=com, joint=Revolute(Z))
        com[0] = 9.0
        assert link.com[0] == 1.0
        for array in (link.com, link.pose, link.inertia, link.spatial_inertia, link.joint.axis, link.joint.screw):
            assert array.dtype == np.float64
            with pytest.raises(ValueError, match="read-only"):
                array[0] = 1.0
            with pytest.raises(ValueError, match="WRITEABLE"):
                array.setflags(write=True)

    def test_an_exact_rotation_is_kept_and_a_rounded_one_mended(self):
        exact = pose_of(rotation())
        assert Link("a", pose=exact).pose.tobytes() == exact.tobytes()
        mended = Link("a", pose=exact.astype(np.float32)).pose
        assert np.abs(mended[:3, :3].T @ mended[:3, :3] - np.eye(3)).max() < 1e-15
        assert np.abs(mended - exact).max() < 1e-6
        assert Link("a", pose=mended).pose.tobytes() == mended.tobytes()
        with pytest.raises(InvalidValue, match="not a rotation"):
            Link("a", pose=np.round(exact, 4))

    def test_tiny_asymmetry_is_removed(self):
        link = Link("a", inertia=np.eye(3) + 1e-12 * np.triu(np.ones((3, 3)), 1))
        assert np.array_equal(link.inertia, link.inertia.T)


def test_a_slip_of_beginners_is_answered_by_what_to_write():
    body = Link("body", None, Revolute((0, 0, 1)), mass=1.0, com=(1, 0, 0))
    with pytest.raises(InvalidType, match="link 'arm': parent: expected text, got a Link; write 'body'"):
        Link("arm", body, Revolute((0, 0, 1)))
    for ask in (lambda: Mechanism([body], gravity=9.81), lambda: Mechanism([body]).with_gravity(9.81)):
        with pytest.raises(ShapeError, match=r"gravity: expected shape \(3,\), got \(\); .* as \(0, -9\.81, 0\)"):
            ask()


@pytest.mark.parametrize(
    "make, said",
    [
        (lambda: Revolute(name="elbow"), "Revolute: needs 'axis', as in Revolute(axis)"),
        (
            lambda: Revolute("elbow"),
            "axis: expected a direction, as (0, 0, 1), got the text 'elbow'; names are given by name=",
        ),
        (lambda: Screw((0, 0, 1)), "Screw: needs 'pitch', as in Screw(axis, pitch)"),
        (lambda: Screw((0, 0, 1), 0.1, dampin=1.0), "Screw: argument 'dampin' does not exist; did you mean 'damping'?"),
        (lambda: Link(mass=1.0), "Link: needs 'name', as in Link(name)"),
        (lambda: Mechanism(), "Mechanism: needs 'links', as in Mechanism(links)"),
        (lambda: Load(force=[0, 0, 1]), "Load: needs 'link', as in Load(link)"),
        (lambda: Load("a", forces=[0, 0, 1]), "Load: argument 'forces' does not exist; did you mean 'force'?"),
    ],
)
def test_an_argument_that_is_missing_is_named(make, said):
    """Python's own words said how many positional arguments `OneDofJoint.__init__()` lacks."""
    with pytest.raises(CstormError, match=re.escape(said)) as caught:
        make()
    assert isinstance(caught.value, TypeError)
