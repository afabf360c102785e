"""Scopes of the live window: traces, axes, cursors, legends, triggers."""

import itertools

import numpy as np
import pytest
from live_windows import Simulation, click, control, frame, menu_of, tile
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QFontMetrics, QPainter, QPicture, QTextDocument, QWheelEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from cstormpy.live import LivePane
from cstormpy.live.window import main_window, theme
from cstormpy.live.window import tile as tile_module
from cstormpy.live.window.plotting import Plot
from cstormpy.live.window.trigger import crossings


def drawn(scope, trace=0):
    return scope.curves[trace].getData()


@pytest.mark.slow
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
    tile_module.save(chosen, str(tmp_path / "it.png"))
    assert (tmp_path / "it.png").read_bytes().startswith(b"\x89PNG")
    assert ("Copy data" in entries) == (name != "robot")
    if name == "robot":
        return
    entries["Copy data"].trigger()
    lines = QApplication.clipboard().text().splitlines()
    tile_module.save(chosen, str(tmp_path / "it.csv"))
    table = np.genfromtxt(tmp_path / "it.csv", delimiter=",", skip_header=1)
    first = window._columns[window.tiles.index(chosen)].start
    np.testing.assert_array_equal(table, np.column_stack([t, rows[:, first : first + 2]]))
    assert lines[0].split("\t") == ["t [s]", *chosen.labels] or lines[0].split("\t")[1] == "q1 [rad]"
    assert len(lines) == 1 + len(t)


@pytest.mark.parametrize("width", [150, 240, 280, 330, 600])
def test_numbers_at_the_time_axis_keep_apart(opened, width):
    """In narrow panes 10, 11 and 12 touched each other."""
    plot = Plot("t [s]", "")
    plot.resize(width, 160)
    plot.show()
    axis, metrics = plot.getPlotItem().getAxis("bottom"), QFontMetrics(theme.plot_font())
    for low, high in ((0, 12), (0, 14), (3, 13), (0, 100), (990, 1005), (0, 0.13), (0, 123)):
        plot.getPlotItem().getViewBox().setXRange(low, high, padding=0)
        QApplication.processEvents()
        picture = QPicture()
        painter = QPainter(picture)
        numbers = sorted((place.center().x(), text) for place, _, text in axis.generateDrawSpecs(painter)[2])
        painter.end()
        assert len(numbers) >= 2, (low, high, numbers)
        for (a, left), (b, right) in itertools.pairwise(numbers):
            half = 0.5 * (metrics.horizontalAdvance(left) + metrics.horizontalAdvance(right))
            assert b - a - half >= 7.0, (low, high, [text for _, text in numbers])
    plot.close()


@pytest.mark.parametrize("left", ["", "[N m]"])
def test_each_number_of_an_upright_axis_is_written(app, left):
    """Of numbers as −1e−12, which were wider than the axis, none was seen."""
    plot = Plot("t [s]", left)
    plot.resize(400, 180)
    plot.show()
    axis = plot.getPlotItem().getAxis("left")
    for half, wanted in ((1.2, "−1"), (1.2e-12, "−1e−12"), (2.2e-101, "−2e−101"), (1.2, "−1")):
        plot.getPlotItem().getViewBox().setYRange(-half, half, padding=0)
        QApplication.processEvents()
        picture = QPicture()
        painter = QPainter(picture)
        texts = {text: place for place, _, text in axis.generateDrawSpecs(painter)[2]}
        painter.end()
        assert {wanted, wanted[1:], "0"} <= {*texts}
        assert texts[wanted].left() >= (12.0 if left else 0.0), "beside the label"
    plot.close()


def test_names_that_look_like_html_are_shown_whole(app):
    """The title of a scope called "s lt<b>" was "s l…"; a name of 200 letters pushed its value out of the legend."""
    pane = LivePane("s", "scope", ["x" * 200], title="s lt<b>&</b>")
    simulation = Simulation([pane], [], end=4.0)
    window = main_window.MainWindow(simulation)
    window.show()
    window.tick()
    simulation.writer.write_many(np.array([0.0, 1.0]), np.array([[0.25], [0.25]]))
    frame(window)
    scope = tile(window, "s")
    metrics = scope.title.fontMetrics()
    assert scope.title.width() >= metrics.horizontalAdvance("s lt<b>&</b>")
    assert "&lt;b&gt;" in scope.title.toolTip()
    document = QTextDocument()
    document.setDefaultFont(scope.legend.font())
    document.setHtml(scope.legend.text())
    assert "0.250" in document.toPlainText() and "…" in document.toPlainText()
    assert document.idealWidth() <= scope.legend.width()
    window.close()
    window.deleteLater()
    simulation.memory.close()


def test_a_line_of_the_legend_ends_between_names(app):
    """Of mux[0][3] the last number stood at the beginning of the next line."""
    simulation = Simulation([LivePane("s", "scope", [f"mux[0][{k}]" for k in range(12)])], [], end=4.0)
    window = main_window.MainWindow(simulation)
    window.show()
    window.tick()
    simulation.writer.write_many(np.array([0.0, 1.0]), np.full((2, 12), -0.25))
    frame(window)
    document = QTextDocument()
    document.setDefaultFont(tile(window, "s").legend.font())
    document.setHtml(tile(window, "s").legend.text())
    for width in range(200, 600, 20):
        document.setTextWidth(width)
        document.documentLayout().documentSize()
        block = document.begin()
        layout, text = block.layout(), block.text()
        starts = [text[layout.lineAt(k).textStart() :] for k in range(layout.lineCount())]
        assert len(starts) > 1 and all(start.startswith("\u2501") for start in starts), (width, starts)
    window.close()
    window.deleteLater()
    simulation.memory.close()
