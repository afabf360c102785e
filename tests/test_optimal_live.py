"""A search that is shown while it goes on: what a viewer is told, and the window with its buttons and its ends."""

import threading
import time
from importlib.util import find_spec

import numpy as np
import pytest

from cstormpy import live
from cstormpy.errors import InvalidType, NonFinite
from cstormpy.live.search import EVERY, MOST, SearchWindow
from cstormpy.mechanism import library
from cstormpy.optimal import Effort, Problem, Running, Stage, Terminal
from cstormpy.optimal.solving import viewer_of
from cstormpy.reporting import notice_once

has_qt = find_spec("PySide6") is not None and live.available({"QT_QPA_PLATFORM": "offscreen"}) is None
needs_qt = pytest.mark.skipif(not has_qt, reason="needs PySide6 and its libraries")
PATIENCE = 30.0


@pytest.fixture(autouse=True)
def off_screen(monkeypatch):
    monkeypatch.setenv("QT_QPA_PLATFORM", "offscreen")
    monkeypatch.setenv("CSTORMPY_LIVE_TEST", "1")
    notice_once.cache_clear()


def acrobot(**options):
    mech = library.acrobot("rods").with_drive(active=["elbow"])
    objective = 100 * Terminal(q={"shoulder": 1.5}) + 10 * Terminal(qd={"shoulder": 0.0}) + Effort()
    given = {"duration": 3.0, "start": [-1.0, 0.0], "end": {"elbow": 0.0}, "objective": objective}
    return Problem(mech, **{"points": 12, "steps": 90, **given, **options})


def arm(**options):
    given = {"duration": 1.0, "start": [0, 0], "end": [1, 0], "objective": Effort(), "points": 8, "samples": 31}
    return Problem(library.planar_2r(), **{**given, **options})


class Recorder:
    """A viewer that keeps what it is told, and ends the search after some iterations."""

    def __init__(self, most=10**9):
        self.begun, self.seen, self.found, self.most = [], [], [], most

    def begin(self, problem, starts, stage):
        self.begun.append((problem, starts, stage))

    def update(self, now):
        self.seen.append(now)
        return len(self.seen) >= self.most

    def finish(self, solution):
        self.found.append(solution)


# ---------------------------------------------------------------- what a viewer is told


def test_a_viewer_is_told_the_stages_the_iterations_and_the_end():
    viewer = Recorder()
    solution = acrobot().solve(starts=3, stages=[Stage(), Stage(points=16)], live=viewer)
    assert [(starts, stage) for _, starts, stage in viewer.begun] == [(3, "stage 1 of 2"), (1, "stage 2 of 2")]
    assert [problem.options.points for problem, _, _ in viewer.begun] == [12, 16]
    assert {now.start for now in viewer.seen} == {0, 1, 2}
    assert viewer.found == [solution]
    assert min(now.cost for now in viewer.seen if now.problem is solution.problem) >= solution.cost


def test_a_viewer_may_end_the_search():
    viewer = Recorder(most=4)
    solution = arm(objective=Effort() + Running(lambda at: at.q[:, 0] ** 4)).solve(live=viewer)
    assert len(viewer.seen) == 4
    assert solution.reason == "stopped by the user"


def test_a_search_that_fails_tells_its_viewer():
    viewer = Recorder()
    with pytest.raises(NonFinite):
        arm(objective=Running(lambda at: at.t * np.nan)).solve(live=viewer)
    assert viewer.found == [None]


@pytest.mark.parametrize("wrong", ["yes", 1, 3.0, print])
def test_what_is_no_viewer_is_refused(wrong):
    with pytest.raises(InvalidType, match="live: expected True, False or an object with begin, update and finish"):
        arm().solve(live=wrong)


def test_without_a_display_one_line_says_so_and_the_search_is_the_same(monkeypatch, caplog):
    monkeypatch.delenv("QT_QPA_PLATFORM")
    monkeypatch.setenv("DISPLAY", "")
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    if live.available() is None:
        pytest.skip("this system shows windows without a display of X")
    quiet = arm().solve()
    shown = arm().solve(live=True)
    assert shown.cost == quiet.cost
    (line,) = [record.message for record in caplog.records]
    assert line.startswith(("no live window: there is no display", "no live window: PySide6 is not installed"))


# ---------------------------------------------------------------- the window


def drive(window, act, **message):
    """Use the window as its user would."""
    window.feed._tell(say="drive", act=act, **message)
    answer = window.feed._replies.get(timeout=PATIENCE)
    assert "error" not in answer, answer
    return answer


@pytest.fixture
def window():
    made = SearchWindow("test", hold=False)
    assert made.feed.wait_until_ready(PATIENCE), made.reason
    yield made
    made.close()


@pytest.mark.slow
@needs_qt
def test_the_window_shows_a_search_and_its_end(window, tmp_path):
    solution = acrobot().solve(starts=2, live=window)
    assert window.feed.wait_until_ready(PATIENCE)
    assert drive(window, "picture", path=str(tmp_path / "search.png"))["saved"]
    assert (tmp_path / "search.png").stat().st_size > 10_000
    assert solution.converged
    assert window.reason is None


@needs_qt
def test_the_button_ends_the_search_with_the_best_so_far(window):
    pressed = []

    def press(now):
        if now.iteration == 3:
            drive(window, "click", control="stop")
            pressed.append(now.cost)
            time.sleep(0.2)

    solution = acrobot().solve(callback=press, live=window)
    assert pressed
    assert solution.reason == "stopped by the user"
    assert solution.iterations <= 5
    assert np.isfinite(solution.cost)


@pytest.mark.slow
@needs_qt
def test_a_window_that_is_closed_does_not_end_the_search(window, caplog):
    quiet = acrobot().solve(starts=2)

    def close(now):
        if now.iteration == 2 and now.start == 0:
            window.feed._tell(say="drive", act="close")
            assert window.feed._gone.wait(PATIENCE)

    solution = acrobot().solve(starts=2, callback=close, live=window)
    assert solution.cost == quiet.cost
    assert "the live window was closed; the search goes on" in caplog.messages


@needs_qt
def test_a_search_that_fails_closes_its_window(window):
    with pytest.raises(NonFinite):
        arm(objective=Running(lambda at: at.t * np.nan)).solve(live=window)
    assert not window.feed.alive


# ---------------------------------------------------------------- what is sent, without a window


@pytest.fixture
def sent(monkeypatch):
    """Return a window of which nothing is shown, and what it would have been told."""
    monkeypatch.setattr(live.search._Feed, "_start", lambda self: None)
    messages = []
    monkeypatch.setattr(live.search._Feed, "_tell", lambda self, **message: messages.append(message))
    made = SearchWindow(hold=False)
    made.feed.reason = None
    made.feed._gone.clear()
    return made, messages


def test_pictures_are_few_and_every_cost_is_told(sent):
    window, messages = sent
    begin = time.perf_counter()
    recorder = Recorder()
    update, window.update = window.update, lambda now: recorder.update(now) or update(now)
    acrobot().solve(starts=3, live=window)
    spent = time.perf_counter() - begin
    kinds = [message["say"] for message in messages]
    assert kinds[0] == "search"
    assert kinds[-3:] == ["motion", "found", "state"]
    assert 2 <= kinds.count("motion") <= spent / EVERY + 2
    assert sum(message["count"] for message in messages if message["say"] == "costs") == len(recorder.seen)
    assert all(message["count"] <= MOST for message in messages if message["say"] == "motion")


def test_threads_tell_one_after_the_other(sent):
    window, messages = sent
    problem = acrobot()
    window.begin(problem, 4, "")
    seen = Recorder()
    problem.solve(iterations=3, callback=seen.seen.append)
    now = seen.seen[-1]

    def tell(start):
        for k in range(200):
            window.update(type(now)(start, k, now.cost, 0.0, now.x, 0.0, problem))

    threads = [threading.Thread(target=tell, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    window.finish(problem.solve(iterations=1))
    assert sum(message["count"] for message in messages if message["say"] == "costs") == 800


def test_nothing_and_the_window_of_our_own_are_viewers(sent):
    assert viewer_of(None) is viewer_of(False) is None
    assert isinstance(viewer_of(True), SearchWindow)


# ---------------------------------------------------------------- its widgets, in this process


class Channel:
    """Stands in for the pipe to the search: says what it was given, and keeps what the window says."""

    def __init__(self, messages):
        self.lost, self.waiting, self.sent = False, list(messages), []

    def messages(self):
        taken, self.waiting = self.waiting, []
        return taken

    def send(self, **message):
        self.sent.append(message)

    def flush(self):
        pass


@pytest.mark.slow
@needs_qt
def test_the_window_draws_what_it_is_told(sent):
    from PySide6.QtWidgets import QApplication

    from cstormpy.live.window import theme
    from cstormpy.live.window.search_window import SearchWindow as Widgets

    app = QApplication.instance() or QApplication([])
    theme.apply(app)
    window, messages = sent
    problem = acrobot(limits={"torque": 8.0})
    solution = problem.solve(starts=2, live=window)
    channel = Channel(messages)
    widgets = Widgets(channel)
    widgets.show()
    widgets.tick()
    assert channel.sent == [{"say": "shown"}]
    t, elbow = widgets.torques.curves[0].getData()
    assert t[-1] == pytest.approx(3.0)
    np.testing.assert_allclose(elbow, solution.at(t).tau[:, 1], atol=1e-4)
    assert [len(curve.getData()[0]) for curve in widgets.joints.curves] == [len(t)] * 2
    widgets.cost.add_costs(np.array([[0.0, 1.0, 1e4 * solution.cost, 1.0]]), 0)
    assert widgets.cost.by_powers
    best = min(curve.getData()[1].min() for curve in widgets.cost.curves)
    assert 10.0**best <= solution.cost * (1.0 + 1e-6)
    assert widgets.status.text().startswith("converged")
    assert not widgets.stop.isEnabled()
    now = widgets.motion.play(1.25)
    assert now == pytest.approx(1.25)
    bend = abs(solution.at(t).qdd).max() * np.diff(t).max() ** 2 / 8  # between samples it is drawn straight
    assert bend < 0.02
    np.testing.assert_allclose(widgets.motion.q(np.array([now]))[0], solution.at([now]).q[0], atol=bend)
    assert widgets.motion.play(3.3) == 3.0  # it waits at the end
    channel.lost = True
    widgets.tick()
    assert not widgets.isVisible()
    widgets.deleteLater()
