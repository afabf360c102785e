"""The window itself, with its real widgets, in this process and off the screen; the simulation is played by a list."""

import os
import subprocess
import sys

import numpy as np
import pytest

from cstormpy import (
    Composite,
    Free,
    Link,
    Mechanism,
    Planar,
    Prismatic,
    Revolute,
    Shape,
    Translational,
    Universal,
    library,
    live,
)
from cstormpy.linkage import skeleton
from cstormpy.live import Knob, LawChoice, LivePane
from cstormpy.live.description import described
from cstormpy.live.ring import RingWriter, SharedMemory, ring_bytes

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
reason = live.available({"QT_QPA_PLATFORM": "offscreen"})
if reason is not None:
    pytest.skip(f"no window here: {reason}", allow_module_level=True)

from PySide6.QtCore import QPoint, QPointF, QRect, Qt  # noqa: E402
from PySide6.QtGui import QColor, QFontMetrics, QImage, QPainter, QWheelEvent  # noqa: E402
from PySide6.QtTest import QTest  # noqa: E402
from PySide6.QtWidgets import QAbstractButton, QApplication, QLabel, QWidget  # noqa: E402

from cstormpy.live.window import main_window, theme, tile_menu  # noqa: E402
from cstormpy.live.window.artist import Artist, Look  # noqa: E402
from cstormpy.live.window.camera import Camera  # noqa: E402
from cstormpy.live.window.trigger import crossings  # noqa: E402

ACROBOT, ARM = library.acrobot(), library.arm7()
PANES = [
    LivePane("angles", "scope", ["q1", "q2"], title="Joint angles", unit="rad"),
    LivePane("torque", "scope", ["elbow"], title="Torque", unit="N m", options={"stairs": True, "scale": [-2, 2]}),
    LivePane("phase", "xy", ["q1", "q1'"], title="Phase", options={"equal": True}),
    LivePane("robot", "mechanism", ACROBOT.names, mechanism=ACROBOT, push="plant"),
    LivePane("arm", "mechanism", ARM.names, mechanism=ARM, options={"frames": True, "trail": 0.5}),
]
CONTROLS = [Knob("controller", "ke", 20.0), Knob("plant", "damping", 0.0), LawChoice("controller", ["a", "b"], "a")]
LEFT = Qt.MouseButton.LeftButton


class Simulation:
    """Stands in for the channel, and writes samples."""

    def __init__(self, panes=PANES, controls=CONTROLS, end=10.0):
        content = described(panes, controls)
        self.lost, self.sent = False, []
        self.memory = SharedMemory()
        size, slots = ring_bytes(2**14, content["width"]), 2**14
        self.writer = RingWriter(self.memory.map(size), slots, content["width"])
        name = {**self.memory.name(), "size": size, "slots": slots}
        self.waiting = [
            {"say": "show", "title": "test", "position": None, "begin": 0.0, "end": end, "pace": 1.0}
            | {"state": "running", "memory": name, **content}
        ]

    def messages(self):
        taken, self.waiting = self.waiting, []
        return taken

    def send(self, **message):
        if "do" in message:
            self.sent.append(message)

    def flush(self):
        pass

    def write(self, begin, end, count):
        """Write samples of a motion; return t and the rows."""
        t = np.linspace(begin, end, count)
        rows = np.zeros((count, self.writer.width))
        waves = np.sin(np.outer(t, 1.0 + np.arange(rows.shape[1])))
        rows[:] = waves
        self.writer.write_many(t, rows)
        return t, rows


@pytest.fixture(scope="module")
def app():
    app = QApplication.instance() or QApplication([])
    theme.apply(app)
    return app


@pytest.fixture
def opened(app):
    """Return a window that shows the first four seconds of a run, and the simulation."""
    simulation = Simulation()
    window = main_window.MainWindow(simulation)
    window.show()
    window.tick()
    simulation.data = simulation.write(0.0, 4.0, 2001)
    frame(window)
    yield window, simulation
    window.close()
    window.deleteLater()
    simulation.memory.close()


def frame(window, count=4):
    for _ in range(count):
        window.tick()
        QApplication.processEvents()


def control(window, name):
    found = [w for w in window.findChildren(QWidget) if w.property("control") == name]
    assert found, name
    return found[0]


def tile(window, name):
    return next(t for t in window.tiles if t.pane["name"] == name)


def click(inside, name):
    button = control(inside, name)
    assert isinstance(button, QAbstractButton)
    QTest.mouseClick(button, LEFT)


def drawn(scope, trace=0):
    return scope.curves[trace].getData()


# --- the layout


@pytest.mark.parametrize("size", [(1200, 800), (1700, 1000)])
def test_nothing_is_cut_off(opened, size):
    window, _ = opened
    window.resize(*size)
    frame(window)
    assert (window.width(), window.height()) == size
    for widget in [*window.findChildren(QLabel), *window.findChildren(QAbstractButton)]:
        if widget.isVisible() and widget is not window.transport.status:
            wanted = widget.heightForWidth(widget.width()) if widget.hasHeightForWidth() else widget.sizeHint().height()
            assert widget.height() >= wanted - 1, (widget.text(), widget.size())
            if not widget.hasHeightForWidth():
                assert widget.width() >= widget.sizeHint().width() - 1, (widget.text(), widget.size())
    for t in window.tiles:
        assert window.rect().contains(t.rect().translated(t.mapTo(window, QPoint(0, 0))))


def test_a_double_click_shows_one_tile_alone_and_all_again(opened):
    window, _ = opened
    chosen = tile(window, "torque")
    head = chosen.layout().itemAt(0).widget()
    QTest.mouseDClick(head, LEFT)
    assert [t.pane["name"] for t in window.tiles if t.isVisible()] == ["torque"]
    QTest.mouseDClick(head, LEFT)
    assert all(t.isVisible() for t in window.tiles)


def test_a_run_without_panes_says_what_to_add(app):
    simulation = Simulation([], [])
    window = main_window.MainWindow(simulation)
    window.show()
    frame(window)
    assert any("LIVESCOPE" in label.text() for label in window.findChildren(QLabel))
    assert window.panel is None
    window.close()


# --- scopes


def test_what_a_scope_shows_was_logged_at_each_point(opened):
    window, simulation = opened
    t, rows = simulation.data
    scope = tile(window, "angles")
    for k in range(2):
        x, y = drawn(scope, k)
        at = np.searchsorted(t, x)
        assert np.array_equal(t[at], x) and np.array_equal(rows[at, k], y)
        assert x[-1] == 4.0 and len(x) <= 2 * scope.plot.pixels + 1
        cells = np.floor(t / (10.0 / scope.plot.pixels))
        for cell in np.unique(cells):
            part = rows[cells == cell, k]
            assert {part.min(), part.max()} <= set(y[np.floor(x / (10.0 / scope.plot.pixels)) == cell])
    x, y = drawn(tile(window, "torque"))
    assert set(zip(x[1::2], y[::2], strict=False)) <= {*zip(t[1:], rows[:-1, 2], strict=True), (4.0, rows[-1, 2])} | {
        (b, a) for a, b in zip(y[::2], x[1::2], strict=False)
    }
    assert np.array_equal(x[1::2], x[2::2]) and np.array_equal(y[0:-1:2], y[1::2]), "stairs: flat, then upright"


def test_the_axis_of_time_is_that_of_the_run(opened):
    window, _ = opened
    scope = tile(window, "angles")
    assert scope.plot.x_range() == (0.0, 10.0)
    (low, high) = scope.plot.getPlotItem().getViewBox().viewRange()[1]
    assert low < -1.0 < 1.0 < high and high - low < 3.5
    assert tile(window, "torque").plot.getPlotItem().getViewBox().viewRange()[1] == [-2.0, 2.0]


def test_the_wheel_zooms_and_fit_goes_back(opened):
    window, simulation = opened
    scope = tile(window, "angles")
    x, _ = drawn(scope)
    view = scope.plot.viewport()
    middle = QPointF(view.rect().center())
    event = QWheelEvent(
        middle, view.mapToGlobal(middle), QPoint(), QPoint(0, 480), Qt.MouseButton.NoButton, Qt.KeyboardModifier(0),
        Qt.ScrollPhase.NoScrollPhase, False,
    )  # fmt: skip
    QApplication.sendEvent(view, event)
    frame(window)
    low, high = scope.plot.x_range()
    assert 0.0 < low < high < 10.0
    closer, _ = drawn(scope)
    assert np.sum((x > low) & (x < high)) < 0.5 * np.sum((closer > low) & (closer < high)), "more detail than before"
    assert set(closer) <= set(simulation.data[0])
    click(scope, "reset")
    frame(window)
    assert scope.plot.x_range() == (0.0, 10.0)


def test_cursors_read_what_was_logged(opened):
    window, simulation = opened
    scope = tile(window, "angles")
    click(scope, "cursors")
    t, rows = simulation.data
    scope.cursors[0].setValue(1.0005)
    scope.cursors[1].setValue(3.0)
    text = scope.readout.text().replace("\u2212", "-")
    for k in (0, 1):
        a, b = rows[np.searchsorted(t, 1.0005, side="right") - 1, k], rows[1500, k]
        for value in (a, b, b - a):
            assert f"{value:.4f}" in text, "with four digits behind the point"
    scope.cursors[1].setValue(7.0)
    text = scope.readout.text().replace("\u2212", "-")
    assert f"{rows[500, 0]:.4f}" in text and f"{rows[-1, 0]:.4f}" not in text, "there is nothing yet at 7 s"
    assert scope.readout.isVisible()
    click(scope, "cursors")
    assert not scope.readout.isVisible()


def test_the_legend_has_the_values_at_the_time_seen(opened):
    window, simulation = opened
    scope = tile(window, "angles")
    assert f"{simulation.data[1][-1, 0]:.3f}".replace("-", "\u2212") in scope.legend.text()
    window.scrub(2.0)
    frame(window)
    assert f"{np.sin(2.0):.3f}" in scope.legend.text() and "rad" in scope.legend.text()


def test_numbers_that_stand_for_names_are_shown_by_them(app):
    """The law and its phase came as one number, 0.100 in each legend and at the axis."""
    names = ["energy", "a law of a long name", "lqr"]
    one = LivePane("law", "scope", ["law"], options={"stairs": True}, names=[names])
    two = LivePane("both", "scope", ["law", "height"], names=[names, None])
    simulation = Simulation([one, two], [], end=4.0)
    window = main_window.MainWindow(simulation)
    window.show()
    window.tick()
    simulation.writer.write_many(np.array([0.0, 1.0, 2.0]), np.array([[0.0, 0.0, 0.5], [1, 1, 0.5], [1, 1, 0.5]]))
    frame(window)
    law, both = tile(window, "law"), tile(window, "both")
    assert "a law of a long name" in law.legend.text() and "1.000" not in law.legend.text()
    axis = law.plot.getPlotItem().getAxis("left")
    assert [text for _, text in axis._tickLevels[0]] == names
    assert axis.width() > QFontMetrics(theme.plot_font()).horizontalAdvance(names[1])
    assert law.plot.getPlotItem().getViewBox().viewRange()[1] == [-0.5, 1.5]
    assert "a law of a long name" in both.legend.text() and "0.500" in both.legend.text()
    assert both.plot.getPlotItem().getAxis("left")._tickLevels is None, "a height has no names"
    window.close()
    window.deleteLater()
    simulation.memory.close()


def test_the_trigger_holds_the_time_around_a_crossing(opened):
    window, simulation = opened
    scope = tile(window, "angles")
    click(scope, "trigger")
    width = control(scope, "window")
    width.selectAll()
    QTest.keyClicks(width, "2")
    QTest.keyClick(width, Qt.Key.Key_Return)
    simulation.write(4.0, 7.0, 1501)
    frame(window)
    assert scope.plot.x_range() == (0.0, 10.0), "the window behind the crossing is not complete"
    simulation.write(7.0, 8.0, 501)
    frame(window)
    assert scope.plot.x_range() == pytest.approx((2 * np.pi - 0.5, 2 * np.pi + 1.5), abs=1e-3)
    assert "6.283" in scope.trigger.found.text()
    click(scope, "trigger")
    assert scope.plot.x_range() == (0.0, 10.0)


def test_crossings_lie_where_they_are():
    t = np.linspace(0.0, 10.0, 1001)
    y = np.sin(t)
    assert crossings(t, y, 0.5, "rising") == pytest.approx([np.pi / 6, np.pi / 6 + 2 * np.pi], abs=1e-4)
    assert crossings(t, y, 0.5, "falling") == pytest.approx([5 * np.pi / 6, 5 * np.pi / 6 + 2 * np.pi], abs=1e-4)
    assert len(crossings(t, y, 0.5, "either")) == 4
    assert len(crossings(t, y, 2.0, "either")) == 0


def test_a_picture_is_held_while_the_run_goes_on(opened):
    window, simulation = opened
    scope = tile(window, "angles")
    click(scope, "hold")
    simulation.write(4.0, 5.0, 501)
    frame(window)
    assert drawn(scope)[0][-1] == 4.0 and drawn(tile(window, "torque"))[0][-1] == 5.0
    click(scope, "hold")
    frame(window)
    assert drawn(scope)[0][-1] == 5.0, "nothing is missing afterwards"


# --- XY plots and mechanisms


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


# --- transport


def test_keys_do_what_the_buttons_do(opened):
    window, simulation = opened
    window.activateWindow()
    for key in (Qt.Key.Key_Space, Qt.Key.Key_S):
        QTest.keyClick(window, key)
    QTest.keyClick(window, Qt.Key.Key_E, Qt.KeyboardModifier.ControlModifier)
    QTest.keyClick(window, Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)  # copies, and ends nothing
    assert [m["do"] for m in simulation.sent] == ["pause", "step", "stop"]
    simulation.waiting = [{"say": "state", "state": "paused", "pace": None, "message": ""}]
    frame(window)
    QTest.keyClick(window, Qt.Key.Key_Comma)
    assert window.now == pytest.approx(3.998) and not window.live
    QTest.keyClick(window, Qt.Key.Key_Period)
    assert window.now == 4.0
    QTest.keyClick(window, Qt.Key.Key_L)
    assert window.live


def test_after_the_end_the_log_can_still_be_seen(opened):
    window, simulation = opened
    simulation.waiting = [{"say": "state", "state": "ended", "pace": None, "message": "reached the end"}]
    frame(window)
    assert not any(control(window, name).isEnabled() for name in ("run", "stop", "controller.ke slider"))
    assert not tile(window, "robot").view.can_push
    bar = window.time_bar
    QTest.mouseClick(bar, LEFT, pos=QPoint(round(bar.place(2.0)), 10))
    frame(window)
    assert window.now == pytest.approx(2.0, abs=0.02) and simulation.sent == []
    QTest.mouseClick(bar, LEFT, pos=QPoint(round(bar.place(9.0)), 10))
    assert window.now == 4.0, "there is nothing later"


def test_a_pace_of_its_own_is_shown(opened):
    window, simulation = opened
    for pace, text in (
        (3.0, "3 × real time"),
        (None, "as fast as possible"),
        (7.0, "7 × real time"),
        (1.0, "real time"),
    ):
        simulation.waiting = [{"say": "state", "state": "running", "pace": pace, "message": ""}]
        frame(window, 1)
        assert window.transport.pace.currentText() == text


def test_a_window_whose_simulation_is_gone_closes(opened):
    window, simulation = opened
    simulation.lost = True
    window.tick()
    assert not window.isVisible()


def test_logged_times_stay_bounded_and_the_latest_are_all_there():
    times = main_window.Times()
    for k in range(100):
        times.add(np.arange(k * 20_000, (k + 1) * 20_000, dtype=float))
        assert len(times) <= times.MOST + 60_000
    assert [times.beside(1_999_999.0, -1), times.beside(1_900_000.5, 1)] == [1_999_998.0, 1_900_001.0]
    assert times.at_or_before(1_999_990.5) == 1_999_990.0 and times.at_or_before(-1.0) == 0.0


# --- the panel


def test_a_double_click_on_its_name_sets_a_parameter_back(opened):
    window, simulation = opened
    row = control(window, "controller.ke")
    slider = control(window, "controller.ke slider")
    QTest.keyClick(slider, Qt.Key.Key_End)
    frame(window, 1)
    QTest.mouseDClick(row.findChild(QLabel), LEFT)
    frame(window, 1)
    assert [m["value"] for m in simulation.sent] == [2000.0, 20.0]
    assert slider.value() == 500, "in the middle, by factors"


def test_a_slider_that_is_dragged_asks_once_a_frame(opened):
    window, simulation = opened
    slider = control(window, "plant.damping slider")
    for _ in range(20):
        QTest.keyClick(slider, Qt.Key.Key_Right)
    assert simulation.sent == []
    frame(window, 2)
    assert len(simulation.sent) == 1 and simulation.sent[0]["value"] == pytest.approx(0.04)


def test_of_the_laws_gains_those_of_the_active_one_are_there(app):
    knobs = [Knob("c", "energy.ke", 2.7), Knob("c", "pd.kp", 100.0), Knob("c", "blend", 0.05), Knob("x", "pd.kp", 1.0)]
    window = main_window.MainWindow(Simulation([], [*knobs, LawChoice("c", ["energy", "pd"], "energy")]))
    window.show()
    frame(window)

    def seen():
        return [control(window, f"{k.block}.{k.name}").isVisible() for k in knobs]

    assert seen() == [True, False, True, True]
    assert control(window, "c.energy.ke").findChild(QLabel).text() == "ke"
    QTest.keyClick(control(window, "c law"), Qt.Key.Key_Down)
    assert seen() == [False, True, True, True]
    window.panel.show_law("c", "energy")
    assert seen() == [True, False, True, True]
    window.close()


# --- the camera


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


# --- the everyday hand


def menu_of(window, chosen):
    """Open the menu of a pane, and return its entries by their texts."""
    chosen.menu_wanted.emit(chosen, QPoint(10, 10))
    entries = {action.text(): action for action in window.menu.actions() if action.text()}
    window.menu.close()
    return entries


def test_the_narrowest_screen_shows_whole_buttons(opened):
    """At 640 x 480 the buttons were cut off: those without room are icons, or stand in the menu."""
    window, _ = opened
    window.resize(640, 480)
    frame(window)
    assert (window.width(), window.height()) == (640, 480)
    for button in window.findChildren(QAbstractButton):
        if button.isVisible():
            assert button.width() >= button.sizeHint().width() - 1, button.toolTip()
            assert window.rect().contains(button.rect().translated(button.mapTo(window, QPoint(0, 0))))
    texts = " ".join(menu_of(window, tile(window, "angles")))
    assert "cursors" in texts and "hold" in texts
    window.resize(1200, 800)
    frame(window)
    assert control(tile(window, "angles"), "cursors").isVisible() and window.transport.step.text() == "Step"


def test_a_name_in_the_legend_hides_its_trace(opened):
    window, simulation = opened
    scope = tile(window, "angles")
    scope.legend.linkActivated.emit("0")
    frame(window)
    assert [curve.isVisible() for curve in scope.curves] == [False, True]
    assert "line-through" in scope.legend.text() and scope.data()[0] == ["t [s]", "q2 [rad]"]
    simulation.write(4.1, 5.0, 100)
    scope.legend.linkActivated.emit("0")
    frame(window)
    assert all(curve.isVisible() for curve in scope.curves) and "line-through" not in scope.legend.text()


def test_the_last_seconds_roll_with_the_run(opened):
    window, simulation = opened
    scope = tile(window, "angles")
    menu_of(window, scope)["show the last 2 s"].trigger()
    frame(window)
    assert scope.plot.x_range() == pytest.approx((2.0, 4.0))
    simulation.write(4.1, 6.0, 200)
    frame(window)
    assert scope.plot.x_range() == pytest.approx((4.0, 6.0))
    menu_of(window, scope)["show the whole run"].trigger()
    frame(window)
    assert scope.plot.x_range() == pytest.approx((0.0, 10.0))


@pytest.mark.parametrize("name", ["angles", "phase", "robot"])
def test_a_pane_is_copied_and_saved(opened, tmp_path, name):
    """Its picture, and of plots the samples as they were logged, on the clipboard and in files."""
    window, simulation = opened
    chosen, (t, rows) = tile(window, name), simulation.data
    entries = menu_of(window, chosen)
    entries["Copy picture"].trigger()
    assert QApplication.clipboard().image().width() >= chosen.width()
    tile_menu.save(chosen, str(tmp_path / "it.png"))
    assert (tmp_path / "it.png").read_bytes().startswith(b"\x89PNG")
    assert ("Copy data" in entries) == (name != "robot")
    if name == "robot":
        return
    entries["Copy data"].trigger()
    lines = QApplication.clipboard().text().splitlines()
    tile_menu.save(chosen, str(tmp_path / "it.csv"))
    table = np.genfromtxt(tmp_path / "it.csv", delimiter=",", skip_header=1)
    first = window._columns[window.tiles.index(chosen)].start
    np.testing.assert_array_equal(table, np.column_stack([t, rows[:, first : first + 2]]))
    assert lines[0].split("\t") == ["t [s]", *chosen.labels] or lines[0].split("\t")[1] == "q1 [rad]"
    assert len(lines) == 1 + len(t)


def test_f1_and_the_question_mark_show_what_keys_do(opened):
    window, _ = opened
    window.activateWindow()
    for key, modifier in (
        (Qt.Key.Key_F1, Qt.KeyboardModifier.NoModifier),
        (Qt.Key.Key_Question, Qt.KeyboardModifier.ShiftModifier),
    ):
        window.list_of_keys = None
        window.activateWindow()
        QApplication.processEvents()
        QTest.keyClick(window, key, modifier)
        assert all(word in window.list_of_keys.text() for word in ("Space", "Ctrl+C", "right click"))
        window.list_of_keys.close()


def test_the_drop_down_is_as_wide_as_its_longest_entry(opened):
    window, _ = opened
    window.transport.pace.showPopup()
    view = window.transport.pace.view()
    assert view.width() >= QFontMetrics(view.font()).horizontalAdvance("as fast as possible") + 8
    window.transport.pace.hidePopup()


def test_colours_of_the_night():
    """In a process of its own, as colours are chosen before windows are made: dark paper, light ink, told apart."""
    code = (
        "from PySide6.QtWidgets import QApplication\nfrom PySide6.QtGui import QColor\n"
        "from cstormpy.live.window import theme\napp = QApplication([])\n"
        "theme.apply(app, theme.wants_dark(app))\n"
        "print(*(QColor(c).lightness() for c in (theme.PAPER, theme.INK, *theme.TRACES)))"
    )
    environment = {**os.environ, "CSTORMPY_THEME": "dark"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=60)
    paper, *others = (int(word) for word in done.stdout.split())
    assert paper < 60 and min(others) > 130
    paper, *others = (QColor(c).lightness() for c in (theme.PAPER, theme.INK, *theme.TRACES))
    assert paper > 240 and max(others) < 190


def test_the_window_says_that_it_is_starting(app):
    """Before the simulation has said anything."""
    simulation = Simulation()
    simulation.waiting = []
    window = main_window.MainWindow(simulation)
    assert "starting" in window.windowTitle()
    assert any("Starting" in label.text() for label in window.findChildren(QLabel))
    window.close()
    simulation.memory.close()


def test_the_first_window_waits_for_nothing_slow():
    """It was mapped after 1.7 s of imports, of which it needs no more than Qt; then what draws is imported."""
    code = (
        "import sys\nimport PySide6.QtGui\nfrom cstormpy.live.window import application, channel, starting\n"
        "app = application.QApplication([])\nwindow = starting.StartingWindow('run')\nwindow.show()\n"
        "app.processEvents()\nprint(window.isVisible(), *(m in sys.modules for m in ('numpy', 'pyqtgraph')))\n"
        "for _ in starting.import_slowly(app): pass\n"
        "before = set(sys.modules)\nfrom cstormpy.live.window import main_window, search_window\n"
        "print(*(m in before for m in ('numpy', 'pyqtgraph')), 'cstormpy.live.window.main_window' in before)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout.split() == ["True", "False", "False", "True", "True", "True"], done.stderr


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
