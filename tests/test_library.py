"""The ready mechanisms: geometry and numbers against their sources."""

from __future__ import annotations

import inspect
import math

import numpy as np
import pytest
from scipy.linalg import expm, solve_continuous_are

from cstormpy.errors import CstormError, InvalidType, InvalidValue, UnknownName
from cstormpy.mechanism import Mechanism, library
from cstormpy.mechanism.arms import MAX_LINKS

PLANAR = ("pendulum", "planar_2r", "acrobot", "branched_acrobot", "xiang_two_link")


def cross_matrix(a):
    return np.array([[0, -a[2], a[1]], [a[2], 0, -a[0]], [-a[1], a[0], 0]])


def naive(mech, q):
    """Return poses, mass matrix with armature, gravity torque and potential energy, from the definitions alone.

    The parents must come before their children.
    """
    poses, jacobians = {None: np.eye(4)}, {None: np.zeros((6, mech.n))}
    M, g, V = np.diag([float(mech.joint(name).armature) for name in mech.names]), np.zeros(mech.n), 0.0
    for link in mech.links:
        k = mech.joint_index(link.joint_name)
        S = link.joint.screw
        twist = np.zeros((4, 4))
        twist[:3, :3], twist[:3, 3] = cross_matrix(S[:3]), S[3:]
        poses[link.name] = T = poses[link.parent] @ link.pose @ expm(twist * q[k])
        R, p = T[:3, :3], T[:3, 3]
        # Jacobian of the twist in base axes, v that of the point of the body at the base's origin.
        jacobians[link.name] = J = jacobians[link.parent].copy()
        J[:, k] += np.r_[R @ S[:3], cross_matrix(p) @ R @ S[:3] + R @ S[3:]]
        com = R @ link.com + p
        Jv, Jw = J[3:] - cross_matrix(com) @ J[:3], J[:3]
        M += link.mass * Jv.T @ Jv + Jw.T @ R @ link.inertia @ R.T @ Jw
        g -= link.mass * Jv.T @ mech.gravity
        V -= link.mass * mech.gravity @ com
    return poses, M, g, V


def tip(mech, name, length, q):
    return (naive(mech, q)[0][name] @ [length, 0.0, 0.0, 1.0])[:3]


class TestCatalogue:
    def test_names(self):
        assert set(library.names()) | {"get", "names"} == set(library.__all__)
        for name in library.names():
            mech = library.get(name)
            assert isinstance(mech, Mechanism)
            assert mech == getattr(library, name)()
            assert mech.active == ()

    def test_options(self):
        assert library.get("pendulum", n=3, damping=0.1) == library.pendulum(3, damping=0.1)
        assert library.get("tree", depth=4, branching=3).n == 40

    @pytest.mark.parametrize(
        ("name", "options", "error", "message"),
        [
            ("acrobt", {}, UnknownName, "mechanism 'acrobt' does not exist; did you mean 'acrobot'?"),
            (3, {}, UnknownName, "mechanism 3 does not exist"),
            ("acrobot", {"parameter": "gym"}, UnknownName, "option of acrobot 'parameter' .* 'parameters'"),
            ("acrobot", {"parameters": "sponge"}, UnknownName, "acrobot parameter set 'sponge' .* 'spong'"),
            ("acrobot", {"parameters": ["gym"]}, UnknownName, "acrobot parameter set"),
            ("pendulum", {"n": 0}, InvalidValue, "n: expected at least 1, got 0"),
            ("pendulum", {"n": 2.0}, InvalidType, "n: expected a whole number"),
            ("pendulum", {"length": 0}, InvalidValue, "length: expected a positive number"),
            ("planar_2r", {"lengths": (1, 2, 3)}, InvalidValue, "lengths: expected shape"),
            ("planar_2r", {"masses": (1, -1)}, InvalidValue, "mass: must not be negative"),
            ("chain", {"n": True}, InvalidType, "n: expected a whole number, got True"),
            ("chain", {"n": 10**5000}, InvalidValue, "n: expected at most 100000, got a whole number of more"),
            ("tree", {"depth": 40}, InvalidValue, "tree of depth 40 and branching 2: would have more than"),
            ("tree", {"depth": 3, "links": 8}, InvalidValue, "tree of depth 3 and branching 2: has 7 links"),
            ("puma560", {"friction": "yes"}, InvalidType, "friction: expected True or False"),
        ],
    )
    def test_refusals(self, name, options, error, message):
        with pytest.raises(error, match=f"^{message}"):
            library.get(name, **options)

    def test_options_of_another_type_are_refused_as_ours(self):
        for name in library.names():
            for option in inspect.signature(getattr(library, name)).parameters:
                for value in ("x", [], -1, math.nan, object()):
                    with pytest.raises(CstormError):
                        library.get(name, **{option: value})


class TestPlanar:
    @pytest.mark.parametrize("name", PLANAR)
    def test_conventions(self, name):
        mech = library.get(name)
        assert mech.gravity[[0, 2]].tolist() == [0.0, 0.0]
        assert mech.gravity[1] < 0
        for link in mech.links:
            assert link.joint.axis.tolist() == [0.0, 0.0, 1.0]
            assert np.array_equal(link.pose[:3, :3], np.eye(3))
            assert link.com[0] > 0
            assert not link.com[1:].any()

    @pytest.mark.parametrize("parameters", ["teaching", "spong", "gym", "rods"])
    def test_acrobot_hangs_and_stands(self, parameters):
        mech = library.acrobot(parameters)
        reach = mech.link("forearm").pose[0, 3]
        for q1, sign in ((-math.pi / 2, -1.0), (math.pi / 2, 1.0)):
            np.testing.assert_allclose(tip(mech, "upper_arm", reach, [q1, 0]), [0, sign * reach, 0], atol=1e-15)
            _, _, g, V = naive(mech, [q1, 0.0])
            np.testing.assert_allclose(g, 0.0, atol=1e-14)
            # E* = g (m1 lc1 + m2 l1 + m2 lc2)
            upper, fore = mech.links
            height = upper.mass * upper.com[0] + fore.mass * (reach + fore.com[0])
            assert pytest.approx(sign * -mech.gravity[1] * height) == V
        np.testing.assert_allclose(tip(mech, "upper_arm", reach, [0, 0]), [reach, 0, 0], atol=1e-15)

    def test_acrobot_drive_and_damping(self):
        for parameters, damping in (("teaching", 0.1), ("spong", 0.0), ("gym", 0.0), ("rods", 0.0)):
            mech = library.acrobot(parameters)
            assert (mech.names, mech.actuated, mech.active) == (("shoulder", "elbow"), ("elbow",), ())
            assert [mech.joint(name).damping for name in mech.names] == [damping, damping]

    @pytest.mark.parametrize(
        ("parameters", "gain"),
        [
            ("teaching", [-278.4, -112.3, -119.7, -56.8]),
            ("spong", [-265.9, -107.3, -114.9, -54.3]),
            ("gym", [-211.1, -54.0, -99.8, -33.1]),
        ],
    )
    def test_acrobot_has_the_published_regulator(self, parameters, gain):
        # Q = diag(10, 10, 1, 1), R = 1 about the upright: the gains depend on every parameter, g and damping included.
        mech = library.acrobot(parameters)
        q = np.array([math.pi / 2, 0.0])
        M, h = naive(mech, q)[1], 1e-5
        stiffness = np.column_stack(
            [(naive(mech, q + h * e)[2] - naive(mech, q - h * e)[2]) / (2 * h) for e in np.eye(2)]
        )
        damping = np.diag([mech.joint(name).damping for name in mech.names])
        A = np.block([[np.zeros((2, 2)), np.eye(2)], [-np.linalg.solve(M, stiffness), -np.linalg.solve(M, damping)]])
        B = np.r_[0.0, 0.0, np.linalg.solve(M, [0.0, 1.0])][:, None]
        S = solve_continuous_are(A, B, np.diag([10.0, 10.0, 1.0, 1.0]), np.eye(1))
        np.testing.assert_allclose((B.T @ S)[0], gain, atol=0.05 + 1e-9)

    def test_rods(self):
        rods = [*library.acrobot("rods").links, *library.branched_acrobot().links, *library.pendulum(3).links]
        for link in rods:
            assert (link.mass, link.com[0]) == (1.0, 0.5)
            np.testing.assert_allclose(link.inertia, np.diag([0, 1 / 12, 1 / 12]), rtol=1e-15)

    def test_branched_acrobot(self):
        mech = library.branched_acrobot()
        assert mech.parents.tolist() == [-1, 0, 0]
        assert mech.actuated == ("left_hip", "right_hip")
        q = [math.pi / 2, 0.3, -0.3]
        left, right = tip(mech, "left_leg", 1.0, q), tip(mech, "right_leg", 1.0, q)
        np.testing.assert_allclose(left, [-math.sin(0.3), 1 + math.cos(0.3), 0], atol=1e-15)
        np.testing.assert_allclose(right, [math.sin(0.3), 1 + math.cos(0.3), 0], atol=1e-15)

    def test_xiang_table_1(self):
        mech = library.xiang_two_link()
        assert mech.gravity.tolist() == [0.0, -9.8062, 0.0]
        for link in mech.links:
            assert (link.mass, link.com[0], link.inertia[2, 2]) == (0.5, 0.2, 0.1)
            assert link.joint.limits.torque == (-10.0, 10.0)
        assert mech.links[1].pose[0, 3] == 0.4
        # Mass matrix of the textbook's two-link arm.
        q2 = 0.7
        m, length, inertia, c = 0.5, 0.4, 0.1, 0.2
        m22 = inertia + m * c**2
        m12 = m22 + m * length * c * math.cos(q2)
        m11 = 2 * inertia + m * (2 * c**2 + length**2 + 2 * length * c * math.cos(q2))
        np.testing.assert_allclose(naive(mech, [0.2, q2])[1], [[m11, m12], [m12, m22]], rtol=1e-14)

    def test_planar_2r(self):
        mech = library.planar_2r()
        assert [link.mass for link in mech.links] == [1.25, 1.25]
        assert mech.links[1].pose[0, 3] == 0.5
        assert mech.links[0].inertia[2, 2] == pytest.approx(1.25 * 0.25 / 12)
        other = library.planar_2r(lengths=(1.0, 2.0), masses=(3.0, 4.0), damping=0.5)
        assert other.links[1].inertia[2, 2] == pytest.approx(4.0 * 4.0 / 12)
        assert other.links[1].joint.damping == 0.5


class TestPuma:
    def test_denavit_hartenberg(self):
        # Standard DH, each transform as printed in textbooks: Rz(q) Tz(d) Tx(a) Rx(alpha).
        table = [
            (math.pi / 2, 0, 0),
            (0, 0.4318, 0),
            (-math.pi / 2, 0.0203, 0.15005),
            (math.pi / 2, 0, 0.4318),
            (-math.pi / 2, 0, 0),
            (0, 0, 0),
        ]
        mech, q = library.puma560(), np.array([0.1, -0.7, 1.3, 2.0, -0.4, 0.6])
        poses, T = naive(mech, q)[0], np.eye(4)
        for k, (alpha, a, d) in enumerate(table):
            ct, st, ca, sa = math.cos(q[k]), math.sin(q[k]), math.cos(alpha), math.sin(alpha)
            A = [[ct, -st * ca, st * sa, a * ct], [st, ct * ca, -ct * sa, a * st], [0, sa, ca, d], [0, 0, 0, 1]]
            T = T @ np.array(A)
            np.testing.assert_allclose(poses[f"link{k + 1}"], T, atol=1e-14)

    def test_published_gravity_load_and_inertia(self):
        # Corke, Robotics Toolbox: gravload(qn) and inertia(qn) of the Puma 560, as its manual and its tests have them.
        qn = [0, math.pi / 4, math.pi, 0, math.pi / 4, 0]
        _, M, g, _ = naive(library.puma560(), qn)
        np.testing.assert_allclose(g, [0, 31.6399, 6.0351, 0, 0.0283, 0], atol=5.1e-5)
        np.testing.assert_allclose(np.diag(M), [3.6594, 4.4137, 0.9378, 0.1925, 0.1713, 0.1941], atol=5.1e-5)
        np.testing.assert_allclose([M[0, 2], M[1, 2], M[1, 4], M[2, 4]], [0.1006, 0.3509, 0.0024, 0.0015], atol=5.1e-5)

    def test_numbers(self):
        mech = library.puma560()
        assert [link.mass for link in mech.links] == [0.0, 17.4, 4.8, 0.82, 0.34, 0.09]
        armature = [mech.joint(name).armature for name in mech.names]
        np.testing.assert_allclose(armature, [0.7840, 2.3248, 0.5769, 0.1908, 0.1707, 0.1941], atol=5.1e-5)
        assert all(mech.joint(name).damping == mech.joint(name).friction == 0.0 for name in mech.names)
        assert mech.joint("joint2").limits.position == (math.radians(-45), math.radians(225))

    def test_friction(self):
        mech = library.puma560(friction=True)
        assert mech.joint("joint2").damping == pytest.approx(0.817e-3 * 107.815**2)
        assert mech.joint("joint1").friction == pytest.approx(0.5 * (0.395 + 0.435) * 62.6111)
        assert mech != library.puma560()


class TestArm7:
    def test_it(self):
        mech = library.arm7()
        assert mech.n == 7
        axes = [mech.joint(name).axis.tolist() for name in mech.names]
        assert axes == [[0, 0, 1], [0, 1, 0]] * 3 + [[0, 0, 1]]
        assert all(mech.joint(name).armature == mech.joint(name).damping == 0.0 for name in mech.names)
        assert mech.gravity.tolist() == [0.0, 0.0, -9.81]
        poses = naive(mech, np.zeros(7))[0]
        np.testing.assert_allclose(poses["link7"][:3, 3], [0, 0, 1.26], atol=1e-14)


class TestSynthetic:
    @pytest.mark.parametrize("n", [1, 2, 100])
    def test_chain(self, n):
        mech = library.chain(n)
        assert mech.n == n
        assert mech.parents.tolist() == list(range(-1, n - 1))

    def test_axes_are_varied(self):
        mech = library.chain(60)
        axes = np.array([mech.joint(name).axis for name in mech.names])
        parallel = np.abs(axes @ axes.T) - 2 * np.eye(60)
        assert parallel.max() < 0.9999
        assert np.linalg.matrix_rank(axes) == 3

    def test_mass_matrices_are_well_conditioned(self):
        rng = np.random.default_rng(1)
        for mech in (library.chain(20), library.tree(5)):
            M = naive(mech, rng.uniform(-1, 1, mech.n))[1]
            assert np.linalg.eigvalsh(M)[0] > 1e-4

    @pytest.mark.parametrize(
        ("arguments", "n"),
        [((1,), 1), ((3,), 7), ((6,), 63), ((3, 3), 13), ((5, 1), 5), ((6, 2, 36), 36), ((MAX_LINKS, 1, 5), 5)],
    )
    def test_tree(self, arguments, n):
        mech = library.tree(*arguments)
        assert mech.n == n
        branching = arguments[1] if len(arguments) > 1 else 2
        assert mech.parents.tolist() == [-1, *((k - 1) // branching for k in range(1, n))]

    def test_tree_of_36(self):
        mech = library.tree(6, links=36)
        assert mech.n == 36
        assert mech.links == library.tree(6).links[:36]
        # A tree wider than it may grow is cut before it is made.
        assert library.tree(60, links=4).n == 4

    def test_the_same_every_time(self):
        assert library.chain(10).links == library.chain(12).links[:10]
