"""The window itself, with its real widgets, in this process and off the screen; the simulation is played by a list."""

import os
import subprocess
import sys

import numpy as np
import pytest
from live_windows import LEFT, Simulation, control, frame, menu_of, tile
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QColor, QFontMetrics, QFontMetricsF
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractButton, QApplication, QLabel

from cstormpy.live import Knob, LawChoice
from cstormpy.live.window import main_window, theme
from cstormpy.live.window.panel import KnobRow
from cstormpy.live.window.widgets import Elided


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


def test_the_times_along_the_bar_of_a_run_that_begins_late_differ(opened):
    """A run that went on at 12 000 s had "1.2e+04" eleven times."""
    bar = opened[0].time_bar
    for bar.begin, bar.end, first in ((0.0, 4.0, "0 0.5 1"), (12000.0, 12001.0, "12000 12000.1 12000.2")):
        texts = [text for _, text in bar.ticks()]
        assert texts[:3] == first.split() and len({*texts}) == len(texts)


@pytest.mark.parametrize("width", [240, 700, 1400])
@pytest.mark.parametrize("span", [(0.0, 4.0), (12000.0, 12001.0), (123456.5, 123457.0), (1e-7, 3e-7)])
def test_the_times_along_the_bar_stand_apart(opened, width, span):
    """As they are painted, those at the ends within the bar; "123456.5" stood on "123456.55"."""
    bar = opened[0].time_bar
    bar.begin, bar.end = span
    bar.resize(width, 34)
    metrics, right = QFontMetricsF(theme.plot_font()), 0.0
    for t, text in bar.ticks():
        wide = metrics.horizontalAdvance(text)
        left = min(max(bar.place(t) - 0.5 * wide, 2.0), width - wide - 2.0)
        assert left > right, text
        right = left + wide


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


def test_blocks_of_one_number_share_a_heading(app):
    """Each joint of a mechanism that is shown took a heading and a row that was called "value"."""

    def labels(controls):
        window = main_window.MainWindow(Simulation([], controls))
        frame(window)
        found = [label.text() for label in window.findChildren(QLabel) if label.objectName() == "section"]
        rows = [row.findChild(Elided).text() for row in window.findChildren(KnobRow)]
        window.close()
        return found, rows

    joints = [Knob("hip", "value", 0.0), Knob("knee", "value", 0.1)]
    assert labels(joints) == ([], ["hip", "knee"])
    plant = [Knob("plant", "gravity", 0.0, index=k) for k in range(2)]
    mixed = labels([*plant, Knob("kp", "K", 2.0), *joints])
    assert mixed == (["BLOCKS", "PLANT"], ["kp.K", "hip", "knee", "gravity[0]", "gravity[1]"])
    law = LawChoice("controller", ["a", "b"], "a")
    ruled = labels([Knob("effort", "weight", 1.0), Knob("controller", "ke", 2.0), law])
    assert ruled == (["CONTROL LAW", "CONTROLLER", "BLOCKS"], ["ke", "effort.weight"])


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


@pytest.mark.slow
def test_the_first_window_waits_for_nothing_slow():
    """It was mapped after 1.7 s of imports, of which it needs no more than Qt; then what draws is imported."""
    code = (
        "import sys\nimport PySide6.QtGui\nfrom cstormpy.live.window import application, channel, starting_window\n"
        "app = application.QApplication([])\nwindow = starting_window.StartingWindow('run')\nwindow.show()\n"
        "app.processEvents()\nprint(window.isVisible(), *(m in sys.modules for m in ('numpy', 'pyqtgraph')))\n"
        "for _ in starting_window.import_slowly(app): pass\n"
        "before = set(sys.modules)\nfrom cstormpy.live.window import main_window, search_window\n"
        "print(*(m in before for m in ('numpy', 'pyqtgraph')), 'cstormpy.live.window.main_window' in before)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout.split() == ["True", "False", "False", "True", "True", "True"], done.stderr


def test_a_title_goes_before_the_last_buttons(opened):
    """At 1200 x 800 the pane of the ready acrobot was called "Acro…"; what has no room stands in the menu."""
    window, _ = opened
    robot = tile(window, "robot")
    names = [button.property("control") for button in robot.findChildren(QAbstractButton)]
    robot.title.setText("Acrobot")
    whole = robot.title.sizeHint().width()
    for width in (300, 600):
        robot.setFixedWidth(width)
        frame(window)
        assert robot.title.width() >= whole, width
        shown = [control(robot, name).isVisible() for name in names]
        assert shown == sorted(shown, reverse=True) and shown[0]
    assert all(shown)
    window.close()
