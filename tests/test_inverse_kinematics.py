"""Inverse kinematics against forward kinematics, closed forms, and what defines a nearest pose."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from random_mechanisms import random_mechanism, random_pose

from cstormpy import lie
from cstormpy.dynamics import lines
from cstormpy.dynamics.inverse_kinematics import MASKS, tip_of
from cstormpy.errors import CstormError, InvalidType, InvalidValue, NonFinite, ShapeError, UnknownName
from cstormpy.kernels.entries import Entry
from cstormpy.mechanism import Fixed, Link, Mechanism, Prismatic, Revolute, library

TOLERANCE = 1e-10


def ranges(mech):
    """Return the position limits of all joints, open ones as (-3, 3)."""
    limits = [mech.joint(name).limits for name in mech.names]
    return np.array([(-3.0, 3.0) if each is None else each.position for each in limits]).reshape(-1, 2).T


def random_targets(rng, mech, link, count=None):
    low, high = ranges(mech)
    shape = mech.n if count is None else (count, mech.n)
    q = rng.uniform(low, high, size=shape)
    return q, mech.forward_kinematics(q)[..., link, :, :]


def errors(T, G):
    """Return rotation and translation between poses; |R - 1| is √8 sin(φ/2) for a rotation by φ."""
    R = np.swapaxes(G[..., :3, :3], -1, -2) @ T[..., :3, :3]
    angle = 2 * np.arcsin(np.minimum(1, np.linalg.norm(R - np.eye(3), axis=(-2, -1)) / np.sqrt(8)))
    return angle, np.linalg.norm(T[..., :3, 3] - G[..., :3, 3], axis=-1)


# That targets are reached


@pytest.mark.parametrize("name", ["arm7", "puma560"])
@pytest.mark.parametrize("begin", ["zero", "random"])
def test_success_within_limits(name, begin):
    mech = library.get(name)
    link = len(mech.links) - 1
    rng = np.random.default_rng(1)
    _, targets = random_targets(rng, mech, link, 500)
    low, high = ranges(mech)
    q0 = None if begin == "zero" else rng.uniform(low, high, size=(500, mech.n))
    found = mech.inverse_kinematics(link, targets, q0)
    assert found.reached.mean() >= 0.995
    angle, distance = errors(mech.forward_kinematics(found.q)[:, link], targets)
    good = found.reached
    assert angle[good].max() <= 1.01 * TOLERANCE + 1e-14 and distance[good].max() <= 1.01 * TOLERANCE
    np.testing.assert_allclose(found.error[:, 1], distance, rtol=1e-6, atol=1e-14)
    np.testing.assert_allclose(found.error[:, 0], angle, rtol=1e-4, atol=1e-14)
    assert (found.q >= low).all() and (found.q <= high).all()
    assert 0 < np.mean(found.starts == 1) < 1  # so that both q0 and random starts were tested
    assert all(text.startswith("reached from") for text, fine in zip(found.message, good, strict=True) if fine)


@pytest.mark.parametrize("seed", range(25))
def test_random_trees(seed):
    rng = np.random.default_rng(seed)
    mech = random_mechanism(rng, links=9, branching=0.3)
    link = max(range(len(mech.links)), key=lambda k: np.count_nonzero(moved_by(mech, k)))
    q, target = random_targets(rng, mech, link)
    q0 = q + rng.normal(size=mech.n)
    found = mech.inverse_kinematics(mech.links[link].name, target, q0)
    assert found.reached, found.message
    assert max(errors(mech.forward_kinematics(found.q)[link], target)) <= 1.01 * TOLERANCE
    still = ~moved_by(mech, link)
    np.testing.assert_array_equal(found.q[still], q0[still])
    assert seed or still.any()  # the first tree has branches that stay


def moved_by(mech, link):
    """Return which coordinates move a link, as forward kinematics tells."""
    base = mech.forward_kinematics(np.zeros(mech.n))[link]
    return np.array([not np.array_equal(mech.forward_kinematics(step)[link], base) for step in 0.3 * np.eye(mech.n)])


@pytest.mark.parametrize("elbow", [1.0, -1.0])
def test_both_elbows_of_a_planar_arm(elbow):
    """The closed form: cos q2 = (r² - l1² - l2²) / (2 l1 l2)."""
    mech = library.planar_2r(lengths=(0.5, 0.4))
    x, y = 0.3, 0.55
    target = np.eye(4)
    target[:2, 3] = x, y
    bend = elbow * np.arccos((x**2 + y**2 - 0.5**2 - 0.4**2) / (2 * 0.5 * 0.4))
    shoulder = np.arctan2(y, x) - np.arctan2(0.4 * np.sin(bend), 0.5 + 0.4 * np.cos(bend))
    found = mech.inverse_kinematics("forearm", target, [0.5, 0.5 * elbow], tool=[0.4, 0, 0], mask="position")
    assert found.reached and found.starts == 1
    np.testing.assert_allclose(found.q, [shoulder, bend], atol=1e-9)
    target[:3, :3] = lie.exp_so3([0, 0, shoulder + bend])  # with the orientation only this elbow is right
    for q0 in ([0.5, 0.5], [0.5, -0.5], [0.0, 0.0]):
        found = mech.inverse_kinematics("forearm", target, q0, tool=[0.4, 0, 0], mask="planar")
        assert found.reached
        np.testing.assert_allclose(np.sin(found.q), np.sin([shoulder, bend]), atol=1e-9)
        np.testing.assert_allclose(np.cos(found.q), np.cos([shoulder, bend]), atol=1e-9)


def test_random_starts_reach_both_elbows():
    mech = library.planar_2r()
    target = np.eye(4)
    target[:3, 3] = 0.3, 0.55, 0
    bends = set()
    for seed in range(12):
        # the arm points away from the target: a saddle, from which no step leads anywhere
        found = mech.inverse_kinematics(
            "forearm", target, [np.arctan2(0.55, 0.3) + np.pi, 0.0], tool=[0.5, 0, 0], mask="position", rng=seed
        )
        assert found.reached and found.starts > 1
        bends.add(bool(found.q[1] > 0))
    assert bends == {True, False}


def test_convergence_is_quadratic():
    """From 1e-3 on, two or three steps lead to 1e-12: 1e-6, 1e-12; a linear rate of 0.1 would take nine."""
    rng = np.random.default_rng(3)
    cases = [(library.arm7(), 6, "pose"), (library.arm7(), 6, "position"), (library.puma560(), 5, "pose")]
    for (mech, link, mask), pointing in product(cases, (False, True)):
        q, targets = random_targets(rng, mech, link, 40)
        q0 = q + rng.uniform(-0.3, 0.3, size=q.shape)
        mask = (1, 1, 0, 1, 1, 1) if pointing else mask
        coarse, fine = (
            mech.inverse_kinematics(link, targets, q0, mask=mask, limits=False, starts=1, tolerance=tolerance)
            for tolerance in (1e-3, 1e-12)
        )
        assert fine.reached.mean() > 0.9  # some stand where the arm is singular
        assert np.median(fine.iterations - coarse.iterations) <= 3


@pytest.mark.parametrize("mask", [*MASKS, (1, 1, 0, 1, 1, 1), (0, 1, 0, 1, 0, 0), (1, 0, 0, 0, 0, 0)])
def test_gradient_of_the_error_is_exact(mask):
    """Aᵀe is the derivative of |e|²/2, by central differences: truncation and rounding balance at 1e-10."""
    rng = np.random.default_rng(4)
    mech = random_mechanism(rng, links=7, branching=0.0)
    link = mech.link_index("link6")
    tip = tip_of(mech, link, random_pose(rng), mask, True, None, TOLERANCE)
    q, h = rng.normal(size=(20, mech.n)), 1e-5
    target = np.array([random_pose(rng) for _ in q])
    e, A = tip.error(q, target)
    gradient = (np.swapaxes(A, 1, 2) @ e[..., None])[..., 0]
    for k, j in enumerate(tip.moving):
        step = h * tip.scale[k] * np.eye(mech.n)[j]
        high, low = (0.5 * (tip.error(q + sign * step, target)[0] ** 2).sum(axis=1) for sign in (1, -1))
        np.testing.assert_allclose(gradient[:, k], (high - low) / (2 * h), atol=1e-7)


def test_already_there():
    mech = library.arm7()
    q = np.linspace(-0.5, 0.7, 7)
    found = mech.inverse_kinematics("link7", mech.forward_kinematics(q)[6], q)
    assert found.reached and found.iterations == 0 and found.starts == 1
    np.testing.assert_array_equal(found.q, q)
    assert found.message == "reached from q0 in 0 iterations"


# Tool, mask


def test_tool():
    rng = np.random.default_rng(5)
    mech = library.arm7()
    tool = random_pose(rng, reach=0.1)
    q = rng.uniform(-1, 1, size=7)
    target = mech.forward_kinematics(q)[6] @ tool
    found = mech.inverse_kinematics("link7", target, q + 0.1, tool=tool)
    assert found.reached and found.starts == 1
    np.testing.assert_allclose(mech.forward_kinematics(found.q)[6] @ tool, target, atol=3e-10)
    point = [0.02, -0.01, 0.1]
    found = mech.inverse_kinematics("link7", target, q + 0.1, tool=point, mask="position")
    T = mech.forward_kinematics(found.q)[6]
    np.testing.assert_allclose(T[:3, :3] @ point + T[:3, 3], target[:3, 3], atol=2e-10)


@pytest.mark.parametrize(
    "mask",
    [
        "position",
        "orientation",
        (True, True, False, True, True, True),
        (1, 1, 0, 1, 1, 0),
        (0, 0, 0, 0, 1, 0),
        (0, 1, 0, 0, 0, 0),
    ],
)
def test_mask_asks_for_directions_of_the_target(mask):
    rng = np.random.default_rng(6)
    mech = library.arm7()
    _, targets = random_targets(rng, mech, 6, 30)
    found = mech.inverse_kinematics("link7", targets, np.full(7, 0.4), mask=mask)
    asked = np.array(MASKS.get(mask, mask), dtype=bool)
    assert found.reached.all()
    T = mech.forward_kinematics(found.q)[:, 6]
    axes = np.swapaxes(targets[:, :3, :3], 1, 2)
    omega = lie.log_so3(axes @ T[:, :3, :3])
    shift = (axes @ (T[:, :3, 3] - targets[:, :3, 3])[..., None])[..., 0]
    away = np.abs(np.hstack([omega, shift]))
    assert away[:, asked].max() <= 1.01 * TOLERANCE
    assert (np.median(away[:, ~asked], axis=0) > 1e-3).all()  # what is not asked for was not brought about
    np.testing.assert_allclose(found.error[:, 0], np.linalg.norm(omega[:, asked[:3]], axis=1), atol=1e-14)
    np.testing.assert_allclose(found.error[:, 1], np.linalg.norm(shift[:, asked[3:]], axis=1), atol=1e-14)


def test_free_spin_leaves_the_axis_of_the_tool():
    mech = library.arm7()
    target = lie.make_pose(lie.exp_so3([np.pi, 0, 0]), [0.4, 0.1, 0.3])
    found = mech.inverse_kinematics("link7", target, mask=(1, 1, 0, 1, 1, 1))
    assert found.reached
    np.testing.assert_allclose(mech.forward_kinematics(found.q)[6][:3, 2], [0, 0, -1], atol=2e-10)


# Limits, and targets out of reach


def two_joints(reach):
    """Return a planar arm of two lengths of 1 m whose elbow bends by `reach` at most."""
    elbow = Revolute((0, 0, 1), limits=(-reach, reach), name="elbow")
    pose = np.eye(4)
    pose[0, 3] = 1.0
    return Mechanism([Link("upper", None, Revolute((0, 0, 1), name="shoulder")), Link("fore", "upper", elbow, pose)])


def test_limits_bind():
    """At 0.5 m from the shoulder the elbow would bend by more than 1 rad; bent by that the tip is at 2 cos(0.5)."""
    mech = two_joints(1.0)
    target = np.eye(4)
    target[:3, 3] = 0.5, 0.0, 0.0
    found = mech.inverse_kinematics("fore", target, [0.1, 0.3], tool=[1.0, 0, 0], mask="position")
    assert not found.reached
    assert found.at_limit == ("elbow",) and found.q[1] == 1.0
    np.testing.assert_allclose(found.q[0], -0.5, atol=1e-6)
    np.testing.assert_allclose(found.error, [0.0, 2 * np.cos(0.5) - 0.5], atol=1e-12)
    assert "m away" in found.message and found.message.endswith("none of 64 starts came nearer; at a limit: elbow")
    free = mech.inverse_kinematics("fore", target, [0.1, 0.3], tool=[1.0, 0, 0], mask="position", limits=False)
    assert free.reached and free.q[1] > 1.0 and free.at_limit == ()


def test_a_limit_that_is_met_exactly():
    mech = two_joints(1.0)
    target = mech.forward_kinematics([0.3, 1.0])[1]
    found = mech.inverse_kinematics("fore", target, [0.0, 0.2])
    assert found.reached and abs(found.q[1]) <= 1.0
    np.testing.assert_allclose(found.q, [0.3, 1.0], atol=1e-9)


def test_start_outside_of_the_limits():
    found = two_joints(1.0).inverse_kinematics("fore", np.eye(4), [0.0, 5.0], tool=[1.0, 0, 0])
    assert abs(found.q[1]) <= 1.0


@pytest.mark.parametrize("away", [1.0 + 1e-9, 1.001, 2.0, 1e3])
def test_out_of_reach_is_the_nearest_pose(away):
    """A planar arm stretches towards what it cannot reach."""
    mech = library.planar_2r()
    target = np.eye(4)
    target[:2, 3] = away * np.array([0.6, 0.8])
    found = mech.inverse_kinematics("forearm", target, [0.3, 0.4], tool=[0.5, 0, 0], mask="position")
    assert not found.reached and found.starts == 64
    np.testing.assert_allclose(found.error[1], away - 1.0, rtol=1e-9, atol=1e-12)
    # the distance grows with the square of the bend, which is known to the root of the distance's accuracy
    np.testing.assert_allclose(np.sin(found.q[0] + found.q[1] / 2), 0.8, atol=1e-4)
    np.testing.assert_allclose(found.q[1], 0.0, atol=1e-4)


@pytest.mark.parametrize("name", ["arm7", "puma560"])
def test_nothing_is_nearer_around_a_nearest_pose(name):
    mech = library.get(name)
    link = len(mech.links) - 1
    rng = np.random.default_rng(7)
    _, targets = random_targets(rng, mech, link, 20)
    targets[:, :3, 3] *= 2.0
    found = mech.inverse_kinematics(link, targets)
    assert found.reached.mean() < 0.3
    low, high = ranges(mech)
    assert (found.q >= low).all() and (found.q <= high).all()
    tip = tip_of(mech, link, None, "pose", True, None, TOLERANCE)
    cost = (tip.error(found.q, targets)[0] ** 2).sum(axis=1)
    for size in np.repeat([1e-1, 1e-2, 1e-3], 20):
        near = np.clip(found.q + size * rng.normal(size=found.q.shape), low, high)
        assert ((tip.error(near, targets)[0] ** 2).sum(axis=1) >= cost * (1 - 1e-9)).all()


def test_iterations_that_run_out_are_told():
    mech = library.arm7()
    target = mech.forward_kinematics(np.linspace(0.3, 1.2, 7))[6]
    found = mech.inverse_kinematics("link7", target, iterations=1, starts=1)
    assert not found.reached and found.iterations == 2
    assert "still moving when the iterations ran out (try more starts)" in found.message


# Redundancy, turns, paths


def test_redundant_arm_stays_near():
    """A small shift takes hardly more motion than the least, J⁺ times the twist."""
    rng = np.random.default_rng(8)
    mech = library.arm7()
    for _ in range(20):
        q0 = rng.uniform(-1.5, 1.5, size=7)
        q0[[3, 5]] = rng.uniform(0.5, 1.5, size=2)  # bent elbow and wrist: far from the end of the reach
        twist = rng.normal(size=6) * 1e-3
        target = mech.forward_kinematics(q0)[6] @ lie.exp_se3(twist)
        found = mech.inverse_kinematics("link7", target, q0)
        least = np.linalg.norm(np.linalg.pinv(mech.jacobian(q0, 6)) @ twist)
        assert found.reached
        assert np.linalg.norm(found.q - q0) <= 1.05 * least


def test_no_needless_turns():
    mech = library.planar_2r()
    rng = np.random.default_rng(9)
    _, targets = random_targets(rng, mech, 1, 50)
    q0 = np.array([40.0, -7.0])
    found = mech.inverse_kinematics("forearm", targets, q0)
    assert found.reached.all()
    assert (np.abs(found.q - q0) <= np.pi + 1e-9).all()


def test_path_continues_and_equals_one_by_one():
    mech = library.arm7()
    q0 = np.array([0.2, 0.6, -0.1, -1.2, 0.1, 0.7, 0.0])
    angle = np.linspace(0, 2 * np.pi, 60)
    targets = np.repeat(mech.forward_kinematics(q0)[6][None], 60, axis=0)
    targets[:, :3, 3] += 0.1 * np.stack([np.cos(angle) - 1, np.sin(angle), 0 * angle], axis=1)
    found = mech.inverse_kinematics("link7", targets, q0, path=True)
    assert found.reached.all() and (found.starts == 1).all()
    assert np.abs(np.diff(found.q, axis=0)).max() < 0.1
    q = q0
    for k in range(10):
        q = mech.inverse_kinematics("link7", targets[k], q).q
        np.testing.assert_allclose(found.q[k], q, rtol=0, atol=1e-12)
    apart = mech.inverse_kinematics("link7", targets, q0)
    assert apart.reached.all() and not np.allclose(apart.q[30], found.q[30], atol=1e-3)


def test_batch_equals_single():
    mech = library.puma560()
    rng = np.random.default_rng(10)
    q, targets = random_targets(rng, mech, 5, 8)
    q0 = q + 0.1 * rng.normal(size=q.shape)
    batch = mech.inverse_kinematics("link6", targets, q0)
    for k in range(8):
        single = mech.inverse_kinematics("link6", targets[k], q0[k])
        assert batch.starts[k] == single.starts == 1 and batch.iterations[k] == single.iterations
        np.testing.assert_allclose(batch.q[k], single.q, atol=1e-12)
        assert single.message == batch.message[k] and single.at_limit == batch.at_limit[k]
        assert type(single.reached) is bool and type(single.iterations) is int


def test_reproducible():
    mech = library.puma560()
    high = ranges(mech)[1]
    _, targets = random_targets(np.random.default_rng(11), mech, 5, 30)

    def run(rng):
        return mech.inverse_kinematics("link6", targets, high, rng=rng)

    first = run(None)
    assert (first.starts > 1).any()
    np.testing.assert_array_equal(first.q, run(None).q)
    np.testing.assert_array_equal(first.q, run(0).q)
    np.testing.assert_array_equal(run(7).q, run(np.random.default_rng(7)).q)
    generator = np.random.default_rng(7)
    assert not np.array_equal(run(generator).q, run(generator).q)  # the generator has moved on


def test_units_of_length_do_not_matter():
    """The same mechanism in millimetres takes the same steps."""
    rng = np.random.default_rng(14)
    small = random_mechanism(rng, links=7, branching=0.0, shuffled=False, terms=False)
    assert {"revolute", "prismatic", "screw"} <= {link.joint.kind for link in small.links}
    links = []
    for link in small.links:
        pose, options = link.pose.copy(), {}
        pose[:3, 3] *= 1000
        if link.joint.dof:
            options = {"point": 1000 * link.joint.point}
            options |= {"pitch": 1000 * link.joint.pitch} if link.joint.kind == "screw" else {}
        joint = Fixed() if not link.joint.dof else type(link.joint)(link.joint.axis, **options)
        links.append(Link(link.name, link.parent, joint, pose))
    large = Mechanism(links)
    slides = np.array([isinstance(large.joint(name), Prismatic) for name in large.names])
    q = rng.normal(size=(10, small.n))
    targets = small.forward_kinematics(q)[:, 6]
    scaled = targets.copy()
    scaled[:, :3, 3] *= 1000
    begin = q + 0.3 * rng.normal(size=q.shape)
    one = small.inverse_kinematics("link6", targets, begin, starts=1, tolerance=(1e-9, 1e-9))
    factor = np.where(slides, 1000.0, 1.0)
    other = large.inverse_kinematics("link6", scaled, begin * factor, starts=1, tolerance=(1e-9, 1e-6))
    assert one.reached.any()
    np.testing.assert_array_equal(one.iterations[one.reached], other.iterations[one.reached])
    np.testing.assert_allclose(one.q[one.reached], (other.q / factor)[one.reached], atol=1e-6)


# What stands still, and nothing at all


def test_link_that_no_joint_moves():
    mech = Mechanism([Link("post", None, Fixed()), Link("arm", "post", Revolute((0, 0, 1)))])
    found = mech.inverse_kinematics("post", np.eye(4), [0.7])
    assert found.reached and found.q.tolist() == [0.7]
    target = lie.make_pose(np.eye(3), [0, 0, 2.0])
    found = mech.inverse_kinematics("post", target, [0.7])
    assert not found.reached and found.q.tolist() == [0.7] and found.error.tolist() == [0.0, 2.0]
    nothing = Mechanism([Link("post", None, Fixed())])
    assert nothing.inverse_kinematics("post", np.eye(4)).reached


@pytest.mark.parametrize("path", [False, True])
def test_no_targets(path):
    found = library.arm7().inverse_kinematics("link7", np.zeros((0, 4, 4)), path=path)
    assert found.q.shape == (0, 7) and found.error.shape == (0, 2) and found.message == ()


def test_half_open_limits_and_slides():
    gantry = Mechanism(
        [
            Link("x", None, Prismatic((1, 0, 0), limits=(0.0, None))),
            Link("y", "x", Prismatic((0, 1, 0), limits=(None, 3.0))),
            Link("z", "y", Prismatic((0, 0, 1))),
            Link("head", "z", Revolute((0, 0, 1))),
        ]
    )
    target = lie.make_pose(lie.exp_so3([0, 0, 2.0]), [5.0, -7.0, 1.0])
    found = gantry.inverse_kinematics("head", target)
    assert found.reached
    np.testing.assert_allclose(found.q, [5.0, -7.0, 1.0, 2.0], atol=1e-9)
    found = gantry.inverse_kinematics("head", lie.make_pose(np.eye(3), [-1.0, 4.0, 1.0]))
    assert not found.reached and found.at_limit == ("x", "y")
    np.testing.assert_allclose(found.q, [0.0, 3.0, 1.0, 0.0], atol=1e-6)


# Bad input

GOOD = np.eye(4)
BAD = [
    (("hand", GOOD), {}, UnknownName, "link 'hand'"),
    ((9, GOOD), {}, InvalidValue, "from 0 to 6"),
    (("link7", np.eye(3)), {}, ShapeError, "pose: expected shape (4, 4) or (N, 4, 4), got (3, 3)"),
    (("link7", (0.1, 0.2, 0.3)), {"mask": "position"}, ShapeError, "got (3,); a point is that of a pose: np.eye(4)"),
    (("link7", np.zeros((2, 2, 4, 4))), {}, ShapeError, "pose"),
    (("link7", 2 * np.eye(4)), {}, InvalidValue, "pose: expected the last row"),
    (("link7", np.stack([GOOD, np.diag([1, 1, 2, 1])])), {}, InvalidValue, "pose[1]: expected a rotation"),
    (("link7", np.full((4, 4), np.nan)), {}, NonFinite, "pose"),
    (("link7", "there"), {}, InvalidType, "pose"),
    (("link7", GOOD, np.zeros(6)), {}, ShapeError, "q0: expected shape (7,)"),
    (("link7", GOOD, np.zeros((2, 7))), {}, ShapeError, "q0: expected shape (7,), got (2, 7)"),
    (("link7", GOOD[None], np.zeros((2, 7))), {}, ShapeError, "q0: expected shape (7,) or (1, 7), got (2, 7)"),
    (("link7", GOOD[None], np.zeros((1, 7))), {"path": True}, ShapeError, "a path has one beginning"),
    (("link7", GOOD, [0, 0, 0, np.inf, 0, 0, 0]), {}, NonFinite, "joint 'joint4'"),
    (("link7", GOOD), {"tool": [1, 2]}, ShapeError, "tool"),
    (("link7", GOOD), {"tool": [1, 2, np.nan]}, NonFinite, "tool"),
    (("link7", GOOD), {"tool": 2 * np.eye(4)}, InvalidValue, "tool"),
    (("link7", GOOD), {"tool": "drill"}, InvalidType, "tool"),
    (("link7", GOOD), {"mask": "postion"}, UnknownName, "did you mean 'position'?"),
    (("link7", GOOD), {"mask": (1, 0, 1)}, InvalidValue, "mask: expected six true or false"),
    (("link7", GOOD), {"mask": (1, 0, 0.5, 1, 1, 1)}, InvalidValue, "mask"),
    (("link7", GOOD), {"mask": np.zeros(6)}, InvalidValue, "mask: no direction is asked for"),
    (("link7", GOOD), {"mask": None}, InvalidType, "mask"),
    (("link7", GOOD), {"limits": (0, 1)}, InvalidType, "limits"),
    (("link7", GOOD), {"path": 1}, InvalidType, "path"),
    (("link7", GOOD), {"starts": 0}, InvalidValue, "starts"),
    (("link7", GOOD), {"starts": 2.0}, InvalidType, "starts"),
    (("link7", GOOD), {"iterations": -1}, InvalidValue, "iterations"),
    (("link7", GOOD), {"rng": "seed"}, InvalidType, "rng"),
    (("link7", GOOD), {"rng": 1.5}, InvalidType, "rng"),
    (("link7", GOOD), {"rng": -1}, InvalidValue, "rng"),
    (("link7", GOOD), {"tolerance": 0.0}, InvalidValue, "tolerance"),
    (("link7", GOOD), {"tolerance": (1e-3, -1.0)}, InvalidValue, "tolerance[1]"),
    (("link7", GOOD), {"tolerance": (1, 2, 3)}, ShapeError, "tolerance"),
    (("link7", GOOD), {"tolerance": None}, InvalidType, "tolerance"),
    (("link7", GOOD), {"length": 0.0}, InvalidValue, "length"),
    (("link7", GOOD), {"length": np.nan}, NonFinite, "length"),
]


@pytest.mark.parametrize(("args", "options", "kind", "text"), BAD)
def test_bad_input_is_named(args, options, kind, text):
    with pytest.raises(kind) as caught:
        library.arm7().inverse_kinematics(*args, **options)
    assert isinstance(caught.value, CstormError) and text in str(caught.value)


def test_numbers_that_overflow_are_refused():
    rail = Mechanism([Link("cart", None, Prismatic((1, 0, 0)))])
    with pytest.raises(NonFinite):
        rail.inverse_kinematics("cart", lie.make_pose(np.eye(3), [1e300, 0, 0]), [-1e308], length=1e-10)


def test_the_first_pose_of_an_arm_waits_for_no_kernel(monkeypatch):
    """A first answer took ten seconds, in which the kernels of poses and Jacobians were compiled."""

    def refuse(self):
        raise AssertionError(f"{self.name} is loaded")

    monkeypatch.setattr(Entry, "load", refuse)
    monkeypatch.setattr(Entry, "is_ready", lambda self: False)
    monkeypatch.setattr(lines._Spent, "seconds", 0.0)
    mech = library.puma560().with_parameters({"joint2.damping": 0.37})
    _, target = random_targets(np.random.default_rng(5), mech, len(mech.links) - 1)
    found = mech.inverse_kinematics(mech.links[-1].name, target)
    placed = mech.forward_kinematics(found.q)[-1]
    assert max(errors(placed, target)) < 1e-9
