"""The picture of a mechanism in the live window: where it is, the camera, pushes, gravity, shapes."""

import numpy as np
import pytest
from live_windows import ACROBOT, ARM, LEFT, Simulation, click, frame, tile
from PySide6.QtCore import QPoint, QRect
from PySide6.QtGui import QColor, QImage, QPainter
from PySide6.QtTest import QTest

from cstormpy import Composite, Free, Link, Mechanism, Planar, Prismatic, Revolute, Shape, Translational, Universal
from cstormpy.linkage import skeleton
from cstormpy.live import LivePane
from cstormpy.live.window import main_window
from cstormpy.live.window.artist import Artist, Look
from cstormpy.live.window.camera import Camera


def test_the_path_ends_at_the_time_seen(opened):
    window, simulation = opened
    plot = tile(window, "phase")
    rows = simulation.data[1]
    for at, row in ((None, rows[-1]), (2.0, rows[1000])):
        if at is not None:
            window.scrub(at)
            frame(window)
        points = plot.point.getData()
        assert (points[0][0], points[1][0]) == (row[3], row[4])
    x, y = plot.path.getData()
    assert set(zip(x, y, strict=True)) <= set(zip(rows[:, 3], rows[:, 4], strict=True))


def test_the_mechanism_is_where_it_was(opened):
    window, simulation = opened
    rows = simulation.data[1]
    for name, mech, first in (("robot", ACROBOT, 5), ("arm", ARM, 7)):
        view = tile(window, name).view
        for at, k in ((4.0, -1), (1.0, 500)):
            window.scrub(at)
            frame(window)
            X = mech.forward_kinematics(rows[k, first : first + mech.n])
            assert np.allclose(view._poses, X, atol=1e-12)
        window.go_live()


def test_a_drag_turns_the_view_in_space_and_moves_the_one_on_the_plane(opened):
    window, simulation = opened
    for name in ("arm", "robot"):
        view = tile(window, name).view
        corner = QPoint(6, 6)
        before = (view.camera.azimuth, *view.camera.centre)
        QTest.mousePress(view, LEFT, pos=corner)
        QTest.mouseMove(view, corner + QPoint(50, 0))
        QTest.mouseRelease(view, LEFT, pos=corner + QPoint(50, 0))
        after = (view.camera.azimuth, *view.camera.centre)
        assert (before[0] != after[0]) == (name == "arm") and (before[1:] != after[1:]) == (name == "robot")
        click(tile(window, name), "reset")
        assert (view.camera.azimuth, *view.camera.centre) == before
    assert not [m for m in simulation.sent if m["do"] == "push"]


def test_looks_are_switched(opened):
    window, _ = opened
    arm = tile(window, "arm")
    assert arm.view.camera.spatial and arm.view.look.frames and not arm.view.look.masses
    for name in ("3D", "frames", "masses", "trail"):
        click(arm, name)
    look = arm.view.look
    assert (arm.view.camera.spatial, look.frames, look.masses, look.trail) == (False, False, True, False)


def test_nothing_is_pushed_in_the_past_or_without_a_block_that_takes_it(opened):
    window, simulation = opened
    window.scrub(1.0)
    frame(window)
    for name in ("robot", "arm"):
        view = tile(window, name).view
        line = view.drawing.lines[0][0]
        x, y = view.camera.project(line)[:, :2].mean(axis=0)
        QTest.mousePress(view, LEFT, pos=QPoint(round(x), round(y)))
        QTest.mouseMove(view, QPoint(round(x) + 30, round(y)))
        QTest.mouseRelease(view, LEFT, pos=QPoint(round(x) + 30, round(y)))
    assert not [m for m in simulation.sent if m["do"] in ("push", "release")]


def test_a_push_follows_the_link_while_the_mouse_is_still(opened):
    window, simulation = opened
    view = tile(window, "robot").view
    x, y = view.camera.project(view.drawing.lines[0][0])[:, :2].mean(axis=0)
    QTest.mousePress(view, LEFT, pos=QPoint(round(x), round(y)))
    QTest.mouseMove(view, QPoint(round(x) + 60, round(y)))
    simulation.write(4.0, 4.2, 101)
    frame(window)
    QTest.mouseRelease(view, LEFT, pos=QPoint(round(x) + 60, round(y)))
    forces = [m["force"] for m in simulation.sent if m["do"] == "push"]
    assert len(forces) >= 3 and forces[-1] != forces[-2]
    assert simulation.sent[-1] == {"do": "release"}


def test_gravity_is_that_of_the_plant(opened):
    """The arrow, and the scale of a push, stayed as they were when gravity was changed while a run went on."""
    window, simulation = opened
    view = tile(window, "robot").view

    def pushed():
        """Return the force of a push of 60 pixels, and the picture of the arrow."""
        x, y = view.camera.project(view.drawing.lines[0][0])[:, :2].mean(axis=0)
        QTest.mousePress(view, LEFT, pos=QPoint(round(x), round(y)))
        QTest.mouseMove(view, QPoint(round(x) + 60, round(y)))
        QTest.mouseRelease(view, LEFT, pos=QPoint(round(x) + 60, round(y)))
        force = [m["force"] for m in simulation.sent if m["do"] == "push"][-1]
        corner = view.grab(QRect(view.width() - 100, view.height() - 50, 100, 50)).toImage()
        return np.linalg.norm(force), corner

    force, arrow = pushed()
    simulation.waiting.append({"say": "gravity", "pane": "robot", "value": [3.0 * 9.81, 0.0, 0.0]})
    frame(window)
    stronger, other = pushed()
    assert stronger == pytest.approx(3.0 * force, rel=1e-3) and other != arrow
    assert tile(window, "arm").view.gravity.tolist() == ARM.gravity.tolist()


@pytest.mark.parametrize("spatial", [False, True])
def test_what_is_projected_comes_back(spatial):
    camera = Camera(np.array([1.0, 0, 0]), np.array([0, 1.0, 0]), np.array([0.1, 0.2, 0.3]), 2.0)
    camera.spatial, camera.width, camera.height = spatial, 400.0, 300.0
    rng = np.random.default_rng(0)
    for _ in range(20):
        camera.turn(*rng.uniform(-200, 200, 2))
        camera.shift(*rng.uniform(-20, 20, 2))
        camera.zoom(rng.uniform(0.8, 1.25), *rng.uniform(0, 300, 2))
        point = rng.uniform(-1, 1, 3)
        x, y, depth = camera.project(point)
        assert np.allclose(camera.unproject(x, y, point), point, atol=1e-9)
        axes = camera.axes()
        assert np.allclose(axes @ axes.T, np.eye(3), atol=1e-12) and np.isclose(np.linalg.det(axes), 1.0)
        assert np.isclose(depth, axes[2] @ (point - camera.centre))


def test_zooming_keeps_the_point_under_the_mouse():
    camera = Camera(np.array([1.0, 0, 0]), np.array([0, 1.0, 0]), np.zeros(3), 2.0)
    camera.width, camera.height = 400.0, 300.0
    point = camera.unproject(70.0, 40.0, np.zeros(3))
    camera.zoom(1.7, 70.0, 40.0)
    assert np.allclose(camera.project(point)[:2], [70.0, 40.0])
    assert camera.radius == pytest.approx(2.0 / 1.7)


def test_nearer_is_larger_in_space():
    camera = Camera(np.array([1.0, 0, 0]), np.array([0, 1.0, 0]), np.zeros(3), 1.0)
    camera.spatial, camera.azimuth, camera.elevation = True, 0.0, 0.0
    near, far = (camera.project(np.array([0.5, 0.0, z]))[0] - 50.0 for z in (0.5, -0.5))
    assert near > far > 0.0


@pytest.mark.parametrize("spatial", [False, True])
def test_a_view_that_begins_close_is_filled_and_widens_where_the_mechanism_leaves_it(spatial):
    """A humanoid took a third of the height, below the middle: room was kept for all that its arms can reach."""
    camera = Camera(np.array([1.0, 0, 0]), np.array([0, 1.0, 0]), np.zeros(3), 2.0)
    camera.spatial, camera.width, camera.height = spatial, 900.0, 700.0
    points = np.array([[0.0, -1.0, 0.1], [0.2, 0.6, -0.1], [-0.3, 0.2, 0.0]])
    camera.begin_close(points)
    seen = camera.project(points)[:, 1]
    assert 450.0 < np.ptp(seen) < 650.0 and abs(seen.min() + seen.max() - 700.0) < 40.0
    assert not camera.include(points, points)
    beside = points + np.array([2.0, 0.0, 0.0])
    assert camera.include(beside, beside) and not camera.follows
    assert (abs(camera.project(np.concatenate([points, beside]))[:, :2] - [450, 350]) < 350).all()


@pytest.mark.parametrize("spatial", [False, True])
def test_a_mechanism_that_goes_far_is_followed(spatial):
    """The view of a robot that falls was widened until nothing could be seen of it."""
    camera = Camera(np.array([1.0, 0, 0]), np.array([0, 1.0, 0]), np.zeros(3), 2.0)
    camera.spatial, camera.width, camera.height = spatial, 900.0, 700.0
    points = np.array([[0.0, -1.0, 0.1], [0.2, 0.6, -0.1], [-0.3, 0.2, 0.0]])
    base = np.zeros((1, 3))
    for fall in np.linspace(0.0, 50.0, 101):
        own = points - [0.0, fall, 0.0]
        camera.include(np.concatenate([own, base]), own)
    assert camera.follows
    seen = camera.project(own)[:, :2]
    assert (abs(seen - [450, 350]) < 350).all() and 250.0 < np.ptp(seen[:, 1])
    camera.zoom(2.0, 450.0, 350.0)
    camera.include(np.concatenate([points, base]), points)  # looked back
    assert np.allclose(camera.project(points)[:, :2] - 350, 2.0 * (seen - 350) - [100, 0], atol=60.0)


def test_joints_of_several_coordinates_are_drawn(app):
    """A cart on a floor with a mast on a universal joint: the view follows the poses, and every mark is drawn."""
    cart = Link("cart", None, Planar(), mass=1.0, com=(0.1, 0, 0))
    mast = Link("mast", "cart", Universal(name="foot"), mass=1.0, com=(0, 0, 0.4))
    ball = Link("ball", "mast", Composite([Prismatic((0, 0, 1)), Revolute((1, 0, 0))]), mass=0.5, com=(0, 0, 0.1))
    drone = Link("drone", None, Translational(), mass=0.2)
    mech = Mechanism([cart, mast, ball, drone], gravity=(0, 0, -9.81))
    simulation = Simulation([LivePane("cart", "mechanism", mech.names, mechanism=mech)], [])
    window = main_window.MainWindow(simulation)
    window.show()
    window.tick()
    simulation.data = simulation.write(0.0, 4.0, 2001)
    frame(window)
    view = tile(window, "cart").view
    q = simulation.data[1][-1, : mech.n]
    assert np.allclose(view._poses, mech.forward_kinematics(q), atol=1e-12)
    image = view.grab().toImage()
    assert len({image.pixel(x, y) for x in range(0, image.width(), 5) for y in range(0, image.height(), 5)}) > 3
    window.close()
    simulation.memory.close()


@pytest.mark.parametrize("joint", [Revolute((0, 0, 1)), Free()], ids=["plane", "space"])
def test_a_shape_has_its_colour_where_it_is(app, joint):
    red = Shape("box", (1.0, 1.0, 1.0), colour=(1, 0, 0))
    bones = skeleton(Mechanism([Link("a", None, joint, mass=1.0, shapes=[red])]))
    camera = Camera(bones.right, bones.up, np.zeros(3), 2.0)
    camera.spatial, camera.width, camera.height = not bones.planar, 200, 200
    image = QImage(200, 200, QImage.Format.Format_RGB32)
    image.fill(QColor("white"))
    painter, poses = QPainter(image), bones.poses(np.zeros(bones.n))
    Artist(bones, camera, np.zeros(3)).draw(painter, bones.place(poses), poses, None, Look(masses=False))
    painter.end()
    found = image.pixelColor(112, 88)
    assert found.red() > 120 and found.green() == found.blue() == 0
    assert image.pixelColor(30, 30).green() > 200
