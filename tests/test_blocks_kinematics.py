"""Where links are and how they move, and the joints that bring them somewhere."""

import numpy as np
import pytest

from cstormpy import library, lie
from cstormpy.blocks.kinematics import REMEMBERED, IKine, Kinematics
from cstormpy.errors import CstormError, InvalidType, InvalidValue, NonFinite, ShapeError, UnknownName

ARM = library.puma560()
PLANAR = library.planar_2r()
TOOL = lie.make_pose(lie.exp_so3([0.3, -0.2, 0.5]), [0.1, 0.2, -0.3])


def poses_along(mech, q, qd, link, tool, h=1e-6):
    """Return pose and its rate by central differences."""
    before, now, after = (mech.forward_kinematics(q + s * h * qd)[link] @ tool for s in (-1, 0, 1))
    return now, (after - before) / (2 * h)


@pytest.mark.parametrize("tool", [None, TOOL], ids=["link", "tool"])
@pytest.mark.parametrize("frame", ["body", "base", "aligned"])
def test_pose_and_velocity_against_differences(frame, tool):
    rng = np.random.default_rng(5)
    q, qd = rng.normal(size=(2, ARM.n))
    index = len(ARM.links) - 1
    pose, velocity, J, position = Kinematics(ARM, frame=frame, tool=tool).test_output(q, qd)
    T, dT = poses_along(ARM, q, qd, index, np.eye(4) if tool is None else tool)
    np.testing.assert_allclose(pose, T, atol=1e-14)
    np.testing.assert_array_equal(position, pose[:3, 3])
    tolerance = 1e-4
    expected = {
        "body": lambda: lie.body_velocity(T, dT, tolerance),
        "base": lambda: lie.world_velocity(T, dT, tolerance),
        "aligned": lambda: np.concatenate([lie.world_velocity(T, dT, tolerance)[:3], dT[:3, 3]]),
    }[frame]()
    np.testing.assert_allclose(velocity, expected, atol=1e-8)
    np.testing.assert_allclose(J @ qd, velocity, atol=1e-14)
    assert J.shape == (6, ARM.n)


def test_a_link_is_called_by_name_or_index():
    q = np.array([0.3, -0.4])
    for link, index in (("upper_arm", 0), (1, 1), (-1, 1), ("forearm", 1)):
        pose = Kinematics(PLANAR, link).test_output(q, q)[0]
        np.testing.assert_array_equal(pose, PLANAR.forward_kinematics(q)[index])


def test_a_point_is_a_tool():
    position = Kinematics("planar_2r", "forearm", tool=[1.0, 0.0, 0.0]).test_output([0.0, 0.0], [0.0, 0.0])[3]
    lengths = PLANAR.link("forearm").pose[0, 3] + 1.0
    np.testing.assert_allclose(position, [lengths, 0.0, 0.0], atol=1e-15)


def test_signals_that_do_not_fit_name_block_and_port():
    block = Kinematics(PLANAR, name="tip")
    with pytest.raises(ShapeError, match=r"tip input port 1 'qd': expected 2 numbers \(shoulder, elbow\), got 3"):
        block.test_output([0.0, 0.0], [0.0, 0.0, 0.0])
    with pytest.raises(NonFinite, match="tip input port 0 'q': the signal of 'elbow'"):
        block.test_output([0.0, np.nan], [0.0, 0.0])
    with pytest.raises(ShapeError, match=r"input port 0 'pose': expected shape \(4, 4\)"):
        IKine(PLANAR).test_output(np.eye(3))
    with pytest.raises(CstormError, match="pose"):
        IKine(PLANAR).test_output(2 * np.eye(4))


@pytest.mark.parametrize("block_class", [Kinematics, IKine])
@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"link": "hand"}, UnknownName, "link 'hand' does not exist"),
        ({"link": 7}, InvalidValue, "from 0 to 1"),
        ({"link": 1.0}, InvalidType, "link"),
        ({"tool": [1.0, 0.0]}, ShapeError, r"tool: expected shape \(3,\) or \(4, 4\), got \(2,\); give a point"),
        ({"tool": [1.0, 0.0, np.inf]}, InvalidValue, "tool: expected finite"),
        ({"tool": 2 * np.eye(4)}, InvalidValue, "tool"),
    ],
)
def test_wrong_arguments(block_class, arguments, error, message):
    with pytest.raises(error, match=message):
        block_class("planar_2r", **arguments)


def test_wrong_arguments_of_one_of_them():
    with pytest.raises(UnknownName, match="frame 'world' does not exist; there are 'body', 'base', 'aligned'"):
        Kinematics(PLANAR, frame="world")
    for arguments in ({"mask": "tilt"}, {"mask": [0, 0, 0, 0, 0, 0]}, {"starts": 0}, {"limits": 2}, {"follow": "yes"}):
        with pytest.raises(CstormError, match=next(iter(arguments))):
            IKine(PLANAR, **arguments)


def test_the_inverse_undoes_the_kinematics():
    q = np.array([0.4, -0.9])
    pose = Kinematics(PLANAR, tool=[0.5, 0.0, 0.0]).test_output(q, q)[0]
    found, reached = IKine(PLANAR, q0=[0.0, -0.5], tool=[0.5, 0.0, 0.0], mask="planar").test_output(pose)
    assert reached == 1.0
    np.testing.assert_allclose(found, q, atol=1e-9)


def test_out_of_reach_is_said():
    pose = lie.make_pose(np.eye(3), [9.0, 0.0, 0.0])
    q, reached = IKine(PLANAR, mask="position", starts=2).test_output(pose)
    assert reached == 0.0 and np.isfinite(q).all()


def circle(t):
    """Return a point on a circle that the forearm's tip can follow, as a pose."""
    return lie.make_pose(np.eye(3), [0.9 + 0.4 * np.cos(t), 0.4 * np.sin(t), 0.0])


def follower(**options):
    return IKine(PLANAR, q0=[1.0, -1.0], tool=[1.0, 0.0, 0.0], mask="position", **options)


def test_an_answer_does_not_depend_on_how_often_it_is_asked_for():
    """A solver asks several times at one time and takes steps back; the answers must be those of the straight way."""
    times = np.linspace(0.0, 3.0, 31)
    straight, wandering = follower(), follower()
    expected = [straight.test_output(circle(t), t=t)[0] for t in times]
    rng = np.random.default_rng(0)
    for k, t in enumerate(times):
        for ahead in (*rng.uniform(0.0, 1.5, size=3), 0.0):  # steps that are rejected, and a stage at the same time
            wandering.test_output(circle(t + ahead + 2.0), t=t + ahead)
        for _ in range(2):
            np.testing.assert_array_equal(wandering.test_output(circle(t), t=t)[0], expected[k])


def test_following_keeps_the_branch_where_a_new_search_jumps():
    elbow = [follower().test_output(circle(t), t=t)[0][1] for t in (0.0, 1.0)]
    assert max(elbow) < 0.0
    block = follower()
    block.test_output(circle(0.0), t=0.0)
    other_way = block.test_output(circle(1.0), t=1.0)[0]
    np.testing.assert_allclose(other_way[1], elbow[1], atol=1e-9)
    forgetful = follower(follow=False)
    first = forgetful.test_output(circle(2.0), t=2.0)[0]
    forgetful.test_output(circle(0.0), t=0.0)
    np.testing.assert_array_equal(forgetful.test_output(circle(2.0), t=5.0)[0], first)
    assert forgetful.memory() == {"times": [], "answers": []}


def test_a_run_starts_without_the_answers_of_the_one_before():
    block = follower()
    fresh = block.test_output(circle(0.5), t=0.5)[0]
    block.test_output(circle(0.0), t=0.1)
    block.test_output(circle(2.0), t=0.4)
    block.test_start()
    assert block.memory() == {"times": [], "answers": []}
    np.testing.assert_array_equal(block.test_output(circle(0.5), t=0.5)[0], fresh)


def test_memory_continues_a_run():
    block, continued = follower(), follower()
    for t in np.linspace(0.0, 1.0, REMEMBERED + 20):
        block.test_output(circle(t), t=t)
    memory = block.memory()
    assert len(memory["times"]) == REMEMBERED and len(memory["answers"]) == 2 * REMEMBERED
    continued.recall(memory)
    np.testing.assert_array_equal(
        continued.test_output(circle(1.1), t=1.1)[0], block.test_output(circle(1.1), t=1.1)[0]
    )
    with pytest.raises(InvalidType, match="times and answers"):
        continued.recall({"times": []})
    with pytest.raises(ShapeError, match="2 numbers for each time"):
        continued.recall({"times": [0.0], "answers": [1.0, 2.0, 3.0]})
