"""Poses, Jacobians and their changes: the kernels against the formulations, Pinocchio and differences."""

from __future__ import annotations

import numpy as np
import pytest
from closeness import STEP, assert_close, central_difference, complex_step
from random_mechanisms import any_tree, random_mechanism, random_pose, random_state

from cstormpy import formulations as sb
from cstormpy.errors import InvalidType, InvalidValue, UnknownName
from cstormpy.mechanism import Fixed, Link, Mechanism, Prismatic, Revolute, Screw, library

# Pinocchio has no wheels for Windows.
Oracle = pytest.importorskip("pinocchio_model", exc_type=ImportError).Oracle

#: Rounding of some ten operations a joint, over 40 joints and numbers of some tens.
ROUNDING = 1e-12


def columns(f, n):
    """Return the matrix of a linear map from its action on unit vectors: a new last axis."""
    return np.stack([f(e) for e in np.eye(n)], axis=-1)


def twist_of(X, dX):
    """Return the body-fixed twist (ω, v) of a pose that changes by dX."""
    G = np.linalg.inv(X) @ dX
    return np.stack([G[..., 2, 1], G[..., 0, 2], G[..., 1, 0], G[..., 0, 3], G[..., 1, 3], G[..., 2, 3]], axis=-1)


# ---------------------------------------------------------------- poses
@any_tree(25)
def test_poses(seed, links):
    rng = np.random.default_rng(seed)
    mech = random_mechanism(rng, links)
    q, _, _ = random_state(rng, mech)
    X = mech.forward_kinematics(q)
    assert X.shape == (links, 4, 4)
    assert_close(X, sb.forward_kinematics(mech, q), ROUNDING)
    assert_close(X, Oracle(mech).poses(q), ROUNDING)
    R = X[:, :3, :3]
    assert_close(R @ R.transpose(0, 2, 1), np.broadcast_to(np.eye(3), (links, 3, 3)), ROUNDING)
    assert_close(np.linalg.det(R), np.ones(links), ROUNDING)
    assert np.all(X[:, 3] == [0, 0, 0, 1])


@pytest.mark.nojit
def test_poses_by_hand():
    """A turntable at a height, a rail on it, a screw at the end of the rail, and a tool that is welded to it."""
    up, out, tool = np.eye(4), np.eye(4), np.eye(4)
    up[2, 3], out[0, 3], tool[:3, 3] = 1.0, 0.5, [0.0, 0.2, 0.0]
    mech = Mechanism(
        [
            Link("tool", "nut", Fixed(), tool),
            Link("nut", "slider", Screw((0, 0, 1), 0.1), out, mass=1.0, com=(0.1, 0, 0)),
            Link("slider", "table", Prismatic((1, 0, 0)), mass=1.0),
            Link("table", None, Revolute((0, 0, 1)), up, mass=1.0, com=(0.1, 0, 0)),
        ]
    )
    nut, slide, turn = np.pi / 2, 0.25, np.pi / 2  # the order of the links is that of q
    X = mech.forward_kinematics([nut, slide, turn])
    assert_close(X[3, :3, 3], [0, 0, 1], 1e-15)
    assert_close(X[2, :3, 3], [0, 0.25, 1], 1e-15)
    assert_close(X[1, :3, 3], [0, 0.75, 1 + 0.1 * nut], 1e-15)
    assert_close(X[0, :3, 3], [0, 0.55, 1 + 0.1 * nut], 1e-15)  # x of the nut is -x, y is -y
    assert_close(X[0, :3, :3], np.diag([-1.0, -1.0, 1.0]), 1e-15)
    # body twists per rate: the tool 0.2 along y, the rail's end 0.5 + 0.25 from the table's axis
    J = mech.jacobian([nut, slide, turn], "tool")
    assert_close(J, np.array([[0, 0, 1, -0.2, 0, 0.1], [0, 0, 0, 0, -1, 0], [0, 0, 1, 0.55, 0, 0]]).T, 1e-15)


@pytest.mark.nojit
def test_sine_and_cosine():
    """The kernels' own, by the pose of a link that turns about z: to a unit in the last place of 1, at any angle."""
    mech = Mechanism([Link("arm", None, Revolute((0, 0, 1)))])
    rng = np.random.default_rng(7)
    quadrants = np.arange(-9, 10) * np.pi / 4
    near = np.concatenate([quadrants, np.nextafter(quadrants, 9), quadrants + 1e-9, [1e-300, -1e-9, 5e-324]])
    far = np.concatenate([rng.uniform(-1, 1, 300) * 10.0**size for size in (0, 2, 4, 5.9, 6, 6.1, 9, 15, 300)])
    q = np.concatenate([near, far])
    X = mech.forward_kinematics(q[:, None])[:, 0]
    for got, want in ((X[:, 0, 0], np.cos(q)), (X[:, 1, 0], np.sin(q))):
        assert np.max(np.abs(got - want)) < 2.3e-16


@pytest.mark.nojit
def test_a_point_moves_the_axis_and_not_the_link():
    arm = Link("arm", None, Revolute((0, 0, 1), point=(-1, 0, 0)), random_pose(np.random.default_rng(1)))
    mech = Mechanism([arm])
    X = mech.forward_kinematics(np.array([[0.0], [np.pi]]))
    assert_close(X[0, 0], arm.pose, 1e-15)
    assert_close(np.linalg.inv(arm.pose) @ X[1, 0] @ [0, 0, 0, 1], [-2.0, 0, 0, 1], 1e-14)
    assert_close(X[1, 0] @ [-1, 0, 0, 1], arm.pose @ [-1, 0, 0, 1], 1e-14)


# ---------------------------------------------------------------- Jacobians
@any_tree(12, 40)
def test_jacobian(seed, links):
    rng = np.random.default_rng(seed)
    mech = random_mechanism(rng, links)
    q, qd, _ = random_state(rng, mech)
    link = int(rng.integers(links))
    J = mech.jacobian(q, link)
    assert J.shape == (6, mech.n)
    assert_close(J, columns(lambda e: sb.link_velocities(mech, q, e)[link], mech.n), ROUNDING)
    assert_close(J, Oracle(mech).jacobian(q, qd, link)[0], ROUNDING)
    by_poses = complex_step(lambda x: sb.forward_kinematics(mech, x)[link], q)
    assert_close(J, twist_of(mech.forward_kinematics(q)[link], np.moveaxis(by_poses, -1, 0)).T, ROUNDING)
    assert_close(J @ qd, Oracle(mech).twists(q, qd)[link], ROUNDING)
    # by our own poses: steps of 1e-3 leave 3e-14 of the fifth derivative and 1e-12 of rounding
    differences = np.moveaxis(central_difference(lambda x: mech.forward_kinematics(x)[link], q, 1e-3), -1, 0)
    assert_close(J, twist_of(mech.forward_kinematics(q)[link], differences).T, 1e-10)


@any_tree(12, 40)
def test_rate_of_the_jacobian(seed, links):
    rng = np.random.default_rng(seed)
    mech = random_mechanism(rng, links)
    q, qd, qdd = random_state(rng, mech)
    link = int(rng.integers(links))
    rate = mech.jacobian_rate(q, qd, link)
    moved = q + 1j * STEP * qd
    want = columns(lambda e: sb.link_velocities(mech, moved, e)[link].imag / STEP, mech.n)
    assert_close(rate, want, ROUNDING)
    assert_close(rate, Oracle(mech).jacobian(q, qd, link)[1], ROUNDING)
    # what it is for: the rate of the twist is J q̈ + J̇ q̇
    acceleration = sb.link_velocities(mech, moved, qd + 1j * STEP * qdd)[link].imag / STEP
    assert_close(mech.jacobian(q, link) @ qdd + rate @ qd, acceleration, ROUNDING)


@pytest.mark.slow
@any_tree(15, 40)
def test_derivative_of_the_jacobian(seed, links):
    rng = np.random.default_rng(seed)
    mech = random_mechanism(rng, links)
    q, qd, _ = random_state(rng, mech)
    link = int(rng.integers(links))
    H = mech.jacobian_derivative(q, link)
    assert H.shape == (6, mech.n, mech.n)
    assert_close(H @ qd, mech.jacobian_rate(q, qd, link), ROUNDING)
    # column j of the Jacobian is the twist at unit rate of joint j; its derivative to q_k is exact
    j, e = int(rng.integers(mech.n)), np.eye(mech.n)
    assert_close(H[:, j], complex_step(lambda x: sb.link_velocities(mech, x, e[j])[link], q), ROUNDING)
    assert_close(H, central_difference(lambda x: mech.jacobian(x, link), q, 1e-3), 1e-10)


@pytest.mark.nojit
def test_joints_beside_the_way_to_a_link_do_not_move_it():
    mech = library.tree(4)
    q, qd, _ = random_state(np.random.default_rng(5), mech)
    for i in range(mech.n):
        on_the_way, k = set(), i
        while k >= 0:
            on_the_way.add(k)
            k = int(mech.parents[k])
        beside = [j for j in range(mech.n) if j not in on_the_way]
        for matrix in (mech.jacobian(q, i), mech.jacobian_rate(q, qd, i), mech.jacobian_derivative(q, i)):
            assert not matrix[:, beside].any()
        assert np.all(np.abs(mech.jacobian(q, i)[:, sorted(on_the_way)]).max(axis=0) > 0.01)


@pytest.mark.nojit
def test_a_link_on_the_base_does_not_move():
    post = Link("post", None, Fixed(), random_pose(np.random.default_rng(2)))
    mech = Mechanism([Link("arm", "post", Revolute((0, 0, 1)), mass=1.0, com=(1, 0, 0)), post])
    for matrix in (
        mech.jacobian([0.3], "post"),
        mech.jacobian_rate([0.3], [1.0], "post"),
        mech.jacobian_derivative([0.3], "post")[..., 0],
    ):
        assert np.array_equal(matrix, np.zeros((6, 1)))
    assert_close(mech.forward_kinematics([0.3])[1], post.pose, 1e-15)


@pytest.mark.nojit
def test_links_by_name_and_by_position():
    mech, q = library.branched_acrobot(), np.ones(3)
    want = mech.jacobian(q, "right_leg")
    for link in (2, np.int64(2)):
        assert np.array_equal(mech.jacobian(q, link), want)
    for ask in (
        lambda link: mech.jacobian(q, link),
        lambda link: mech.jacobian_rate(q, q, link),
        lambda link: mech.jacobian_derivative(q, link),
    ):
        for wrong, error in (("right_hip", UnknownName), (3, InvalidValue), (-1, InvalidValue), (True, InvalidType)):
            with pytest.raises(error, match="link"):
                ask(wrong)
