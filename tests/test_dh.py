"""Tables of Denavit and Hartenberg: arms made from them, and arms written as them."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from random_mechanisms import random_mechanism, random_pose, random_rotation
from xiang_arm import xiang_sensitivity, xiang_torque

from cstormpy.errors import CstormError, InvalidType, InvalidValue, NonFinite, ShapeError, UnknownName
from cstormpy.lie import exp_se3
from cstormpy.mechanism import Fixed, Limits, Link, Load, Mechanism, Prismatic, Revolute, Screw, library
from cstormpy.mechanism.dh import to_dh

BOTH = ["standard", "modified"]


def elementary(axis, angle=0.0, shift=0.0):
    """Return a rotation about and a translation along an axis of coordinates."""
    e = np.eye(3)[axis]
    return exp_se3([*(angle * e), *(shift * e)])


def product(theta, d, a, alpha, convention):
    """Return the pose of a row as the product of four elementary transforms that textbooks print."""
    about_z, about_x = elementary(2, theta, d), elementary(0, alpha, a)
    return about_z @ about_x if convention == "standard" else about_x @ about_z


def random_table(rng, n):
    rows = []
    for _ in range(n):
        axes, moments = random_rotation(rng), rng.uniform(0.2, 1.0, 3)
        moments[2] = rng.uniform(abs(moments[0] - moments[1]), moments[0] + moments[1])
        rows.append({
            "type": rng.choice(["revolute", "prismatic"]),
            **dict(zip(("theta", "d", "a", "alpha"), rng.uniform(-2, 2, 4), strict=True)),
            "mass": rng.uniform(0.1, 2), "com": rng.normal(size=3), "inertia": axes @ np.diag(moments) @ axes.T,
            "damping": rng.uniform(0, 1), "stiffness": rng.uniform(0, 1), "armature": rng.uniform(0, 1),
        })  # fmt: skip
    return rows


def agree(one, other, rng, tol=1e-10):
    """Assert that two mechanisms move alike in the same coordinates."""
    assert one.n == other.n
    for _ in range(3):
        q, qd, qdd = rng.uniform(-1.5, 1.5, (3, one.n))
        want = other.inverse_dynamics(q, qd, qdd)
        np.testing.assert_allclose(one.inverse_dynamics(q, qd, qdd), want, rtol=0, atol=tol * (1 + np.abs(want).max()))
        M = other.mass_matrix(q)
        np.testing.assert_allclose(one.mass_matrix(q), M, rtol=0, atol=tol * np.abs(M).max())
        assert one.energy(q, qd)[0] == pytest.approx(other.energy(q, qd)[0], rel=tol)


class TestFrom:
    @pytest.mark.parametrize("f", [0.0, 10.0])
    def test_two_link_arm_of_xiang(self, f):
        """Table 2 in the paper's own frames gives (43)-(65): torques and all twelve derivatives."""
        common = {"mass": 0.5, "com": (-0.2, 0, 0), "inertia": np.diag([0, 0.1, 0.1])}
        rows = [{"theta": 0, "d": 0, "a": 0.4, "alpha": 0, **common} for _ in range(2)]
        mech = Mechanism.from_dh(rows, gravity=(0, -9.8062, 0))
        weight = Load("link2", [0.0, -f, 0.0])
        rng = np.random.default_rng(43)
        for _ in range(5):
            q, qd, qdd = rng.uniform(-3, 3, (3, 2))
            d = mech.inverse_sensitivity(q, qd, qdd, weight)
            np.testing.assert_allclose(d.y, xiang_torque(*q, *qd, *qdd, f), rtol=0, atol=1e-12)
            for got, want in zip((d.dy_dq, d.dy_dqd, d.dy_du), xiang_sensitivity(*q, *qd, *qdd, f), strict=True):
                np.testing.assert_allclose(got, want, rtol=0, atol=1e-12)

    @settings(max_examples=25, deadline=None)
    @given(seed=st.integers(0, 2**32 - 1), n=st.integers(1, 9), convention=st.sampled_from(BOTH))
    def test_frames_are_products_of_elementary_transforms(self, seed, n, convention):
        rng = np.random.default_rng(seed)
        rows, base, q = random_table(rng, n), random_pose(rng), rng.uniform(-3, 3, n)
        X = Mechanism.from_dh(rows, convention, base=base).forward_kinematics(q)
        T = base
        for k, row in enumerate(rows):
            theta, d, a, alpha = (row[key] for key in ("theta", "d", "a", "alpha"))
            moved = (theta + q[k], d) if row["type"] == "revolute" else (theta, d + q[k])
            T = T @ product(*moved, a, alpha, convention)
            np.testing.assert_allclose(X[k], T, rtol=0, atol=1e-12)

    def test_puma_by_its_published_table_is_that_of_the_library(self):
        """Corke's standard table, theta d a alpha; nothing is off by the rounding of a quarter turn."""
        quarter = math.pi / 2
        table = [
            (0, 0, 0, quarter),
            (0, 0, 0.4318, 0),
            (0, 0.15005, 0.0203, -quarter),
            (0, 0.4318, 0, quarter),
            (0, 0, 0, -quarter),
            (0, 0, 0, 0),
        ]
        puma = library.puma560()
        rows = []
        for row, link in zip(table, puma.links, strict=True):
            rows.append({**dict(zip(("theta", "d", "a", "alpha"), row, strict=True)), "mass": link.mass})
            rows[-1] |= {"com": link.com, "inertia": link.inertia, "allow_impossible": link.allow_impossible}
            rows[-1] |= {"limits": link.joint.limits, "armature": link.joint.armature}
        assert Mechanism.from_dh(rows, gravity=(0, 0, -9.81)) == puma

    def test_puma_by_the_table_of_craigs_convention(self):
        """The columns alpha and a move down a row; the masses are those of the library in frames turned by alpha."""
        quarter, puma = math.pi / 2, library.puma560()
        near = [(0, 0), (0, quarter), (0.4318, 0), (0.0203, -quarter), (0, quarter), (0, -quarter)]
        far = [*near[1:], (0, 0)]
        offset = [0, 0, 0.15005, 0.4318, 0, 0]
        rows = []
        for (a, alpha), (next_a, next_alpha), d, link in zip(near, far, offset, puma.links, strict=True):
            X = elementary(0, next_alpha, next_a)  # Craig's frame is at the near end of Corke's
            rows.append({"theta": 0, "d": d, "a": a, "alpha": alpha, "mass": link.mass, "allow_impossible": True})
            rows[-1] |= {"com": X[:3, :3] @ link.com + X[:3, 3], "inertia": X[:3, :3] @ link.inertia @ X[:3, :3].T}
            rows[-1] |= {"armature": link.joint.armature}
        agree(Mechanism.from_dh(rows, "modified", gravity=(0, 0, -9.81)), puma, np.random.default_rng(1), 1e-12)

    def test_rows_may_be_short(self):
        mech = Mechanism.from_dh([(0, 0, 1, 0), (0.1, 0, 0.5, 0, "prismatic")], active=["joint2"])
        assert mech.names == ("joint1", "joint2")
        assert [link.joint.kind for link in mech.links] == ["revolute", "prismatic"]
        assert mech.active == ("joint2",)

    def test_names_and_limits(self):
        mech = Mechanism.from_dh([{"a": 1, "name": "arm", "limits": (-1, 2)}, {"name": "fore", "joint": "elbow"}])
        assert mech.names == ("arm", "elbow")
        assert mech.joint("arm").limits == Limits(position=(-1, 2))

    @pytest.mark.parametrize(
        ("table", "options", "error", "words"),
        [
            (
                [(0, 0, 1)],
                {},
                ShapeError,
                "row 1: expected (theta, d, a, alpha), perhaps a joint's type, got 3 entries",
            ),
            ([(0, 0, 1, 0), (0, 0, 1, 0, "revolute", 1)], {}, ShapeError, "row 2: expected (theta, d, a, alpha)"),
            ([(0, 0, 1, 0), (0, float("nan"), 1, 0)], {}, NonFinite, "row 2: d: "),
            ([(0, 0, "1", 0)], {}, InvalidType, "row 1: a: "),
            (
                [(0, 0, 1, 0, "revolut")],
                {},
                UnknownName,
                "row 1: type 'revolut' does not exist; did you mean 'revolute'",
            ),
            ([{"thetta": 1.0}], {}, UnknownName, "row 1: key 'thetta' does not exist; did you mean 'theta'?"),
            # it was a revolute joint of this name
            ([{"a": 1.0, "joint": "prismatic"}], {}, InvalidValue, "row 1: 'joint' is a name, and what"),
            ([{"mass": -1.0}], {}, InvalidValue, "row 1: link 'link1': mass: must not be negative"),
            ([{"name": "x"}, {"name": "x"}], {}, InvalidValue, "link 'x': the name occurs twice"),
            ([5], {}, InvalidType, "row 1: expected a list of (theta, d, a, alpha)"),
            (5, {}, InvalidType, "table: expected a list of rows"),
            ([], {}, InvalidValue, "links: there are none"),
            ([(0, 0, 1, 0)], {"convention": "craig"}, UnknownName, "convention 'craig' does not exist; there are"),
            ([(0, 0, 1, 0)], {"base": np.eye(3)}, ShapeError, "base: expected shape (4, 4)"),
            ([(0, 0, 1, 0)], {"active": ["elbow"]}, UnknownName, "active: joint 'elbow' does not exist"),
        ],
    )
    def test_bad_tables_are_refused_by_row(self, table, options, error, words):
        with pytest.raises(error) as caught:
            Mechanism.from_dh(table, **options)
        assert isinstance(caught.value, CstormError)
        assert words in str(caught.value)


class TestTo:
    @settings(max_examples=25, deadline=None)
    @given(seed=st.integers(0, 2**32 - 1), n=st.integers(1, 9), convention=st.sampled_from(BOTH))
    def test_a_table_comes_back(self, seed, n, convention):
        rng = np.random.default_rng(seed)
        base = random_pose(rng) if seed % 2 else np.eye(4)
        rows = random_table(rng, n)
        back = Mechanism.from_dh(rows, convention, base=base).to_dh(convention)
        if not seed % 2:
            np.testing.assert_allclose(back.base, base, atol=1e-14)
            for got, row in zip(back.rows, rows, strict=True):
                for key in ("d", "a"):
                    assert got[key] == pytest.approx(row[key], abs=1e-13)
                for key in ("theta", "alpha"):
                    assert math.remainder(got[key] - row[key], 2 * math.pi) == pytest.approx(0, abs=1e-13)
        mech = Mechanism.from_dh(rows, convention, base=base)
        again = Mechanism.from_dh(back.rows, convention, base=back.base)
        np.testing.assert_allclose(
            again.forward_kinematics(np.zeros(n)), mech.forward_kinematics(np.zeros(n)), atol=1e-12
        )
        agree(again, mech, rng)

    @pytest.mark.parametrize("name", ["pendulum", "planar_2r", "acrobot", "xiang_two_link", "puma560", "arm7", "chain"])
    @pytest.mark.parametrize("convention", BOTH)
    def test_arms_of_the_library_move_alike(self, name, convention):
        mech = library.get(name)
        rows, base = mech.to_dh(convention)
        made = Mechanism.from_dh(rows, convention, base=base, gravity=mech.gravity, actuated=mech.actuated)
        assert made.names == mech.names
        agree(made, mech, np.random.default_rng(3))

    @settings(max_examples=25, deadline=None)
    @given(seed=st.integers(0, 2**32 - 1), n=st.integers(1, 9), convention=st.sampled_from(BOTH))
    @example(seed=5, n=1, convention="modified")
    @example(seed=5, n=1, convention="standard")
    def test_any_frames_and_axes_move_alike(self, seed, n, convention):
        """Axes anywhere, parallel, meeting or the same: frames on common normals leave the dynamics as they are."""
        rng = np.random.default_rng(seed)
        links = []
        for link in random_mechanism(rng, links=n, kinds=("revolute", "prismatic"), shuffled=False).links:
            joint, pose = link.joint, np.array(link.pose)
            if seed % 3:  # special places
                pose[:3, :3] = exp_se3([*(rng.integers(-2, 3) * np.pi / 2 * np.eye(3)[rng.integers(3)]), 0, 0, 0])[
                    :3, :3
                ]
                pose[:3, 3] = rng.integers(-1, 2, 3) * (seed % 3 - 1)
                joint = joint.replace(axis=np.eye(3)[rng.integers(3)] * rng.choice([-1, 1]), point=(0, 0, 0))
            links.append(link.replace(parent=links[-1].name if links else None, joint=joint, pose=pose))
        mech = Mechanism(links)
        rows, base = mech.to_dh(convention)
        agree(Mechanism.from_dh(rows, convention, base=base), mech, rng, 1e-8)

    def test_one_convention_becomes_the_other(self):
        rows = library.puma560().to_dh("modified").rows
        assert [round(math.degrees(row["alpha"])) for row in rows] == [0, 90, 0, -90, 90, -90]
        np.testing.assert_allclose([row["a"] for row in rows], [0, 0, 0.4318, 0.0203, 0, 0], atol=1e-15)
        np.testing.assert_allclose([row["d"] for row in rows], [0, 0, 0.15005, 0.4318, 0, 0], atol=1e-15)

    @pytest.mark.parametrize(
        ("links", "words"),
        [
            ([Link("a", None, Screw((0, 0, 1), 0.1))], "joint 'a': is a screw joint"),
            ([Link("a", None, Revolute((0, 0, 1))), Link("b", "a", Fixed())], "joint 'b': is fixed"),
            ([Link(n, p, Revolute((0, 0, 1))) for n, p in (("a", None), ("b", "a"), ("c", "a"))], "link 'c': a table"),
            ([Link(n, p, Revolute((0, 0, 1))) for n, p in (("b", "a"), ("a", None))], "link 'b': a table"),
        ],
    )
    def test_what_no_table_tells_of_is_refused_by_name(self, links, words):
        with pytest.raises(InvalidValue) as caught:
            Mechanism(links).to_dh()
        assert str(caught.value).startswith(words)

    @pytest.mark.parametrize("tilt", [1e-9, 1e-7])
    def test_nearly_parallel_axes_are_refused_or_right(self, tilt):
        """Their common normal lies 1 / tilt away: it is refused rather than written with the digits gone."""
        first, second = (0, 0, 1), (np.sin(tilt), 0, np.cos(tilt))
        pose = np.eye(4)
        pose[:3, 3] = 1.0, 2.0, 3.0
        mech = Mechanism([
            Link("a", None, Revolute(first), mass=1.0, com=(1, 0, 0)),
            Link("b", "a", Revolute(second), pose, mass=1.0, com=(1, 0, 0)),
        ])  # fmt: skip
        try:
            rows, base = mech.to_dh("modified")
        except InvalidValue as error:
            assert "nearly parallel" in str(error)
        else:
            agree(Mechanism.from_dh(rows, "modified", base=base), mech, np.random.default_rng(1), 1e-6)


class TestWithoutFixed:
    @settings(max_examples=20, deadline=None)
    @given(seed=st.integers(0, 2**32 - 1), links=st.integers(1, 30))
    def test_it_moves_alike(self, seed, links):
        rng = np.random.default_rng(seed)
        mech = random_mechanism(rng, links=links)
        if not mech.n:
            with pytest.raises(InvalidValue, match="every joint is fixed"):
                mech.without_fixed()
            return
        merged = mech.without_fixed()
        assert merged.names == mech.names
        assert (merged.actuated, merged.active) == (mech.actuated, mech.active)
        assert all(link.joint.dof for link in merged.links)
        q, qd, qdd = rng.uniform(-1, 1, (3, mech.n))
        want = mech.inverse_dynamics(q, qd, qdd)
        np.testing.assert_allclose(
            merged.inverse_dynamics(q, qd, qdd), want, rtol=0, atol=1e-11 * (1 + abs(want).max())
        )

    def test_a_single_link_is_kept_bit_by_bit(self):
        assert library.arm7().without_fixed() == library.arm7()


def test_a_prismatic_joint_has_no_place():
    """The axis of a slide lies anywhere: its point must not decide the frames."""
    mech = Mechanism([Link("a", None, Prismatic((0, 0, 1), point=(5, 5, 5)), mass=1.0)])
    assert to_dh(mech).rows[0]["type"] == "prismatic"
    np.testing.assert_array_equal(to_dh(mech).base, np.eye(4))


def test_degrees_in_a_table_are_noted(caplog):
    """A twist of 90, as manuals print it, was taken as 90 rad in silence."""
    caplog.set_level("INFO", "cstormpy")
    Mechanism.from_dh([(0.0, 0.4, 0.0, 90), {"theta": -95.5, "a": 0.3}, (1.0, 90.0, 90.0, math.pi / 2)])
    twist, turned = caplog.messages
    assert twist.startswith("row 1: alpha 90 rad is more than two turns") and "np.deg2rad" in twist
    assert turned.startswith("row 2: theta -95.5 rad")


@pytest.mark.parametrize("convention", BOTH)
def test_a_screw_without_pitch_is_a_revolute_joint_of_a_table(convention):
    """Its row said "screw", which from_dh refused."""
    rod = {"mass": 1.0, "com": (0.5, 0.0, 0.0)}
    arm = Mechanism(
        [Link("a", None, Screw((0, 0, 1), 0.0), **rod), Link("b", "a", Screw((0, 0, 1), 0.0), (1, 0, 0), **rod)]
    )
    rows, base = arm.to_dh(convention)
    assert [row["type"] for row in rows] == ["revolute", "revolute"]
    back = Mechanism.from_dh(rows, convention, base=base)
    state = [0.3, -0.5], [1.0, 2.0], [0.1, 0.2]
    np.testing.assert_allclose(back.inverse_dynamics(*state), arm.inverse_dynamics(*state), rtol=1e-13)
