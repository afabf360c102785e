"""The skeleton of mechanisms: its kinematics are the mechanism's own, and its lines end where the links do."""

import base64
import html
import math
import re
from itertools import pairwise
from xml.etree import ElementTree

import numpy as np
import pytest
from random_mechanisms import any_tree, random_mechanism

from cstormpy.errors import ShapeError
from cstormpy.mechanism import Fixed, Link, Mechanism, Prismatic, Revolute, Screw, Shape, Spherical, library, skeleton


def at(z):
    pose = np.eye(4)
    pose[2, 3] = z
    return pose


@any_tree(examples=15, links=12)
def test_poses_are_those_of_the_mechanism(seed, links):
    rng = np.random.default_rng(seed)
    mech = random_mechanism(rng, links)
    bones = skeleton(mech)
    q = rng.normal(size=(3, mech.n))
    expected = mech.forward_kinematics(q)
    np.testing.assert_allclose(bones.poses(q), expected, atol=1e-11)
    np.testing.assert_allclose(bones.poses(q[1]), expected[1], atol=1e-11)
    assert bones.n == mech.n


@any_tree(examples=15, links=12)
def test_joints_hold_what_they_join(seed, links):
    """A joint's two sides stay together: at one point, or along the axis of a slide or screw."""
    rng = np.random.default_rng(seed)
    mech = random_mechanism(rng, links)
    bones = skeleton(mech)
    drawing = bones.place(bones.poses(rng.normal(size=mech.n)))
    for i, joint in enumerate(bones.joints):
        gap = drawing.joints[i] - drawing.anchors[i]
        if joint.symbol.rail:
            gap = gap - (gap @ drawing.axes[i]) * drawing.axes[i]
        np.testing.assert_allclose(gap, 0.0, atol=1e-10)


@any_tree(examples=15, links=12)
def test_the_lines_connect_all_that_is_not_a_slide(seed, links):
    """Every joint with a parent stands at the end of one of the parent's lines, or at the parent's joint."""
    rng = np.random.default_rng(seed)
    mech = random_mechanism(rng, links)
    bones = skeleton(mech)
    drawing = bones.place(bones.poses(rng.normal(size=mech.n)))
    for i, parent in enumerate(bones.parents):
        if parent < 0:
            continue
        ends = [line[-1] for line in drawing.lines[parent]] + [drawing.joints[parent]]
        assert min(np.linalg.norm(end - drawing.anchors[i]) for end in ends) < 1e-9


def test_acrobot():
    bones = skeleton(library.acrobot())
    assert bones.planar
    assert bones.reach == 3.0
    drawing = bones.place(bones.poses([math.pi / 2, -math.pi / 2]))
    np.testing.assert_allclose(drawing.lines[0][0], [[0, 0, 0], [0, 1, 0]], atol=1e-15)
    np.testing.assert_allclose(drawing.tips, [[2, 1, 0]], atol=1e-15)
    np.testing.assert_allclose(drawing.coms, [[0, 0.5, 0], [1, 1, 0]], atol=1e-15)


def test_frames_at_the_far_ends_of_links():
    """The Puma's frames lie at the ends of its links: each is drawn to its frame, then to the next joint."""
    bones = skeleton(library.puma560())
    drawing = bones.place(bones.poses(np.zeros(6)))
    np.testing.assert_allclose(drawing.lines[1][0], [[0, 0, 0], [0.4318, 0, 0], [0.4318, -0.15005, 0]], atol=1e-9)
    assert not bones.planar
    np.testing.assert_array_equal(bones.up, [0, 0, 1])


def test_an_arm_of_joint_screws_is_drawn_from_joint_to_joint():
    """Its links have the base's frame at q = 0, to which each was drawn, as a star."""
    z, places = (0, 0, 1), [(0.1, 0, 0), (0.5, 0.2, 0), (0.9, 0, 0)]
    links = [
        Link(f"link{k}", f"link{k - 1}" if k else None, Revolute(z, point=place)) for k, place in enumerate(places)
    ]
    bones = skeleton(Mechanism([*links, Link("tool", "link2", pose=(1.2, 0.1, 0))]))
    drawn = [line.tolist() for lines in bones.place(bones.poses(np.zeros(3))).lines for line in lines]
    ends = [*map(list, places), [1.2, 0.1, 0]]
    assert drawn == [list(pair) for pair in pairwise(ends)]
    # a link without a mass has its centre of mass nowhere, and is not drawn to the frame's origin for its sake
    along = Link("tool", "link2", pose=(0.9, 0, 0.3))
    for more in ([], [along]):
        bones = skeleton(Mechanism([*links, *more]))
        assert [line.tolist() for line in bones.lines[2]] == [[[0.9, 0, 0], [0.9, 0, 0.3]]] * len(more)


def test_an_arm_off_the_origin_stands_on_its_base():
    bones = skeleton(library.arm7())
    np.testing.assert_allclose(bones.base[0], [[0, 0, 0], [0, 0, 0.16]])
    np.testing.assert_allclose(bones.place(bones.poses(np.zeros(7))).tips, [[0, 0, 1.34]], atol=1e-12)


def test_massless_links_and_links_without_length():
    links = [
        Link("a", None, Revolute((0, 0, 1))),
        Link("b", "a", Revolute((0, 1, 0))),
        Link("c", "b", Fixed(), at(0.3)),
    ]
    bones = skeleton(Mechanism(links))
    assert bones.lines[0] == ()
    np.testing.assert_array_equal(bones.lines[1][0], [[0, 0, 0], [0, 0, 0.3]])
    assert bones.lines[2] == ()
    assert [i for i, _ in bones.tips] == [2]
    nothing = skeleton(Mechanism([Link("point", None, Revolute((0, 0, 1)))]))
    assert nothing.reach == 1.0
    assert nothing.place(nothing.poses([0.4])).points().shape == (2, 3)


def test_a_link_with_shapes_ends_where_they_do():
    """The trail of a load on a rope was drawn as far below the load as the rope is long."""
    ball, rod = Shape("sphere", 0.1, (0, 0, -1.0)), Shape("capsule", (0.01, 2.0), (0, 0, -1.0))
    for shapes, end in (((), -2.0), ((ball,), -1.1), ((ball, rod), -2.0)):
        bones = skeleton(Mechanism([Link("load", None, Spherical(), mass=1.0, com=(0, 0, -1.0), shapes=shapes)]))
        np.testing.assert_allclose(bones.tips[0][1], [0, 0, end], atol=1e-12)


def test_branches_are_drawn_each():
    bones = skeleton(library.tree(3))
    assert [len(lines) for lines in bones.lines] == [2, 2, 2, 1, 1, 1, 1]
    assert len(bones.tips) == 4


def test_a_body_between_two_wheels_is_seen_to_turn():
    """Its lines lay on its own axis, so that no picture showed how a two-wheeled robot leans."""
    body = Link("body", joint=Revolute((0, 1, 0)), mass=10.0, com=(0, 0, 0.5), inertia=np.eye(3))
    wheels = [
        Link(side, "body", Revolute((0, 1, 0)), (0, y, 0), mass=1.0) for side, y in (("left", 0.3), ("right", -0.3))
    ]
    bones = skeleton(Mechanism([body, *wheels]))
    (left, right, top), q = bones.lines[0], [0.3, 0.0, 0.0]
    assert [line[-1].tolist() for line in (left, right, top)] == [[0, 0.3, 0], [0, -0.3, 0], [0, 0, 1.0]]
    drawn = bones.place(bones.poses(q)).lines[0][2]
    np.testing.assert_allclose(drawn, [[0, 0, 0], [np.sin(0.3), 0, np.cos(0.3)]], atol=1e-12)
    # as the mass of a rod lies
    along = skeleton(Mechanism([body.replace(com=(0, 0.5, 0.1)), *wheels]))
    assert len(along.lines[0]) == 2


def test_a_slide_begins_at_its_anchor():
    rail = Link("carriage", None, Prismatic((1, 0, 0), limits=(-1.0, 2.0)), at(0.5), mass=1.0)
    bones = skeleton(Mechanism([rail]))
    drawing = bones.place(bones.poses([0.7]))
    np.testing.assert_allclose(drawing.anchors[0], [0, 0, 0.5])
    np.testing.assert_allclose(drawing.joints[0], [0.7, 0, 0.5])
    np.testing.assert_allclose(drawing.axes[0], [1, 0, 0])
    assert bones.strokes == ((-1.0, 2.0),)
    assert bones.reach == 2.5


@pytest.mark.parametrize(
    ("joints", "gravity", "planar", "right", "up"),
    [
        ([Revolute((0, 0, 1))], (0, -9.81, 0), True, (1, 0, 0), (0, 1, 0)),
        ([Revolute((0, 0, -1))], (0, -9.81, 0), True, (1, 0, 0), (0, 1, 0)),
        ([Revolute((0, 0, 1))], (0, 9.81, 0), True, (-1, 0, 0), (0, -1, 0)),
        ([Revolute((0, 1, 0))], (0, 0, -9.81), True, (1, 0, 0), (0, 0, 1)),
        ([Revolute((1, 0, 0))], (0, 0, -9.81), True, (0, 1, 0), (0, 0, 1)),
        ([Revolute((0, 0, 1))], (0, 0, -9.81), True, (1, 0, 0), (0, 1, 0)),
        ([Revolute((0, 0, 1))], (0, 0, 0), True, (1, 0, 0), (0, 1, 0)),
        ([Prismatic((1, 0, 0)), Revolute((0, 0, 1))], (0, -9.81, 0), True, (1, 0, 0), (0, 1, 0)),
        ([Prismatic((0, 0, 1)), Revolute((0, 0, 1))], (0, -9.81, 0), False, (1, 0, 0), (0, 1, 0)),
        ([Screw((0, 0, 1), 0.1)], (0, -9.81, 0), False, (1, 0, 0), (0, 1, 0)),
        ([Prismatic((0, 1, 0))], (0, -9.81, 0), True, (1, 0, 0), (0, 1, 0)),
        ([Revolute((0, 0, 1)), Revolute((0, 1, 0))], (0, 0, -9.81), False, (1, 0, 0), (0, 0, 1)),
    ],
)
def test_from_where_it_is_seen(joints, gravity, planar, right, up):
    links = [Link(f"{k}", f"{k - 1}" if k else None, joint, mass=1.0) for k, joint in enumerate(joints)]
    bones = skeleton(Mechanism(links, gravity=gravity))
    assert bones.planar is planar
    np.testing.assert_allclose(bones.right, right, atol=1e-12)
    np.testing.assert_allclose(bones.up, up, atol=1e-12)


@any_tree(examples=20, links=8)
def test_reach_and_view(seed, links):
    """Nothing that only turns gets beyond the reach; a planar mechanism does not leave its plane."""
    rng = np.random.default_rng(seed)
    mech = random_mechanism(rng, links, kinds=("revolute", "fixed"))
    bones = skeleton(mech)
    q = rng.uniform(-4, 4, size=(20, mech.n))
    points = bones.place(bones.poses(q)).points()
    assert np.linalg.norm(points, axis=1).max() <= bones.reach * (1 + 1e-9)
    np.testing.assert_allclose(
        [bones.right @ bones.right, bones.up @ bones.up, bones.right @ bones.up], [1, 1, 0], atol=1e-9
    )
    low, high = bones.extent(q)
    np.testing.assert_array_equal(low, points.min(axis=0))
    np.testing.assert_array_equal(high, points.max(axis=0))


def test_wrong_shapes_are_refused():
    bones = skeleton(library.acrobot())
    with pytest.raises(ShapeError, match=r"expected shape \(2,\) or \(N, 2\), got \(3,\)"):
        bones.poses([1, 2, 3])
    with pytest.raises(ShapeError, match=r"expected shape \(\.\.\., 2, 4, 4\)"):
        bones.place(np.eye(4))


# ------------------------------------------------------------------ the picture of a notebook


def picture(mech):
    """Return the picture that a notebook shows, and the text below."""
    shown = re.fullmatch(r'<div><img .*base64,([^"]*)" [^<]*></div><pre>(.*)</pre>', mech._repr_html_(), re.DOTALL)
    return ElementTree.fromstring(base64.b64decode(shown[1])), html.unescape(shown[2])


def within(drawn):
    """Return whether all points and the beginnings of all names are in the picture."""
    numbers = [re.findall(r"[-\d.]+", each.get("points")) for each in drawn.iter() if each.get("points")]
    points = [pair for each in numbers for pair in np.reshape([*map(float, each)], (-1, 2))]
    points += [(float(text.get("x")), float(text.get("y"))) for text in drawn.iter() if text.get("y")]
    size = float(drawn.get("width")), float(drawn.get("height"))
    return bool((np.array(points) >= 0).all() and (np.array(points) <= size).all())


@pytest.mark.parametrize("name", ["acrobot", "cart_pole", "furuta", "four_bar", "stewart_platform", "arm7"])
def test_a_notebook_shows_a_mechanism(name):
    mech = library.get(name)
    drawn, text = picture(mech)
    assert text == str(mech) and within(drawn)
    names = {name for text in drawn.iter("{http://www.w3.org/2000/svg}text") for name in text.text.split(", ")}
    assert names in ({link.joint_name for link in mech.links}, set())


@pytest.mark.slow
def test_a_picture_of_what_is_no_length_has_odd_names_or_cannot_be_closed():
    point = Mechanism([Link("<&>", None, Revolute((0, 0, 1), name="<b>"), mass=1.0)])
    drawn, text = picture(point)
    assert within(drawn) and "<&>" in text
    never = library.four_bar(ground=9.0)
    assert within(picture(never)[0])


def test_a_picture_tells_motors_from_joints_without():
    drawn, _ = picture(library.acrobot())
    assert [circle.get("fill") for circle in drawn.iter("{http://www.w3.org/2000/svg}circle")] == ["#fff", "#1b2330"]


def test_a_plate_is_drawn_to_where_loops_hold_it():
    """It was drawn to twice its centre of mass, past the legs that carry it."""
    mech = library.three_rrr()
    q, _ = mech.project(np.zeros(mech.n))
    drawing = skeleton(mech).place(mech.forward_kinematics(q))
    for loop in mech.loops:
        for name, pose in ((loop.link_a, loop.pose_a), (loop.link_b, loop.pose_b)):
            k = [link.name for link in mech.links].index(name)
            at = (mech.forward_kinematics(q)[k] @ pose)[:3, 3]
            assert min(np.linalg.norm(line[-1] - at) for line in drawing.lines[k]) < 1e-9
