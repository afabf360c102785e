"""A run that is shown: what its window asks for is done between steps, and a pace is kept."""

import gc
import math
import os
import signal
import threading
import time
from importlib.util import find_spec

import numpy as np
import pytest

import cstormpy as cs
from cstormpy import diagrams, live
from cstormpy.blocks.dynamics import HybridDynamics
from cstormpy.dynamics.loads import link_wrench
from cstormpy.errors import InvalidType, InvalidValue, ShapeError, UnknownName
from cstormpy.live import Knob, LawChoice
from cstormpy.simulation import simulation
from cstormpy.simulation.live_session import check_pace, controls_of

has_qt = find_spec("PySide6") is not None and live.available({"QT_QPA_PLATFORM": "offscreen"}) is None
needs_qt = pytest.mark.skipif(not has_qt, reason="needs PySide6 and its libraries")
ACROBOT = cs.library.acrobot()
T1, T = 0.7, 2.0


class FakeFeed:
    """A window that asks for what its script says, each command once the run has come to a time."""

    def __init__(self, script=(), alive=True):
        self.script, self.alive, self.reason = list(script), alive, None
        self.shown, self.ended, self.closed = None, None, False
        self.t, self.rows, self.said, self.asked_at = [], [], [], []

    def show(self, panes, controls=(), **about):
        self.shown = {"panes": panes, "controls": controls, **about}

    def wait_until_ready(self, seconds):
        return True

    def sample(self, t, row):
        self.t.append(t)
        self.rows.append(np.array(row))

    def commands(self):
        """Give what is due, up to one that pauses: what follows is asked for in the pause."""
        given = []
        while self.script and self.t and self.script[0][0] <= self.t[-1]:
            given.append(self.script.pop(0)[1])
            self.asked_at.append(self.t[-1])
            if given[-1].get("do") in ("pause", "step"):
                break
        return given

    def wait(self, seconds):
        if self.script and self.t and self.script[0][0] <= self.t[-1]:
            return True
        time.sleep(min(seconds, 0.01))
        return False

    def state(self, state, pace=None, message=""):
        self.said.append(("state", state, pace))

    def value(self, block, name, value, index=None):
        self.said.append(("value", block, name, value, index))

    def law(self, block, name):
        self.said.append(("law", block, name))

    def gravity(self, pane, gravity):
        self.said.append(("gravity", pane, list(gravity)))

    def message(self, text):
        self.said.append(("message", text))

    def finish(self, message=""):
        self.ended = message

    def hold(self, only_on_terminal=True):
        raise AssertionError("a run that is not to hold its window holds it")

    def close(self):
        self.closed = True


@pytest.fixture
def shown(monkeypatch):
    """Return what runs a diagram in a window that follows a script: it gives the result and the window."""

    def run(bd, script=(), sim=None, alive=True, feed=None, **options):
        feed = feed or FakeFeed(script, alive)
        monkeypatch.setattr(simulation, "LiveFeed", lambda title: feed)
        options = {"T": T, "pace": None, **options}
        sim = sim or cs.Simulation(graphics=False, hold=False, progress=False)
        return sim.run(bd, live=True, **options), feed

    return run


def decay(gain=1.0):
    """Return x' = -K x, x(0) = 1, on a scope."""
    bd = cs.Simulation(graphics=False, hold=False, progress=False).blockdiagram("decay")
    state, factor, sign = bd.INTEGRATOR(x0=1.0, name="state"), bd.GAIN(gain, name="factor"), bd.GAIN(-1, name="sign")
    bd.connect(state, factor, bd.LIVESCOPE(labels=["x"], units="m", name="scope"))
    bd.connect(factor, sign)
    bd.connect(sign, state)
    return bd


def swing(**options):
    """Return an acrobot under a choice of laws, with its view."""
    bd = cs.Simulation(graphics=False, hold=False, progress=False).blockdiagram("swing")
    plant = bd.HYBRIDDYNAMICS(ACROBOT, q0=[-1.2, 0.3], name="plant")
    controller = bd.CONTROLLER(ACROBOT, ["none", "energy", "pd"], name="controller", **options)
    bd.connect(plant[0:2], controller[0:2])
    bd.connect(controller[0], plant[0])
    bd.connect(plant[0], bd.MECHANISMVIEW(ACROBOT, name="view"))
    bd.connect(controller[0], bd.LIVESCOPE(labels=["elbow"], units="N m", name="scope"))
    return bd


def messages(feed):
    return [said[1] for said in feed.said if said[0] == "message"]


def at(bd, when, act, **options):
    """Return the same run, in which something is done at a time."""
    sim = cs.Simulation(graphics=False, hold=False, progress=False)
    return sim.run(bd, at={when: act}, live=False, **{"T": T, **options})


def same_end(out, other, tolerance=1e-5):
    assert out.t[-1] == other.t[-1] == T
    np.testing.assert_allclose(out.x[-1], other.x[-1], atol=tolerance)


# ---------------------------------------------------------------- what is shown


def test_the_window_is_told_what_there_is(shown):
    out, feed = shown(swing())
    assert out.status == "finished" and feed.ended == "reached the end" and feed.closed
    view, scope = feed.shown["panes"]
    assert (view.kind, view.push, list(view.labels)) == ("mechanism", "plant", ["shoulder", "elbow"])
    assert (scope.kind, scope.push, list(scope.labels), scope.unit) == ("scope", None, ["elbow"], "N m")
    assert (feed.shown["begin"], feed.shown["end"], feed.shown["pace"]) == (0.0, T, None)
    # sample by sample what was recorded
    np.testing.assert_array_equal(feed.t, out.t)
    np.testing.assert_array_equal(np.array(feed.rows), np.column_stack([pane.y for pane in out.panes]))


def test_what_can_be_turned(shown):
    _, feed = shown(swing())
    choice, *knobs = feed.shown["controls"]
    assert choice == LawChoice("controller", ["none", "energy", "pd"], "none")
    names = [(knob.block, knob.name, knob.index) for knob in knobs]
    assert ("controller", "energy.ke", None) in names and ("controller", "blend", None) in names
    assert ("plant", "gravity", 1) in names
    assert names.index(("controller", "blend", None)) < names.index(("plant", "gravity", 0))
    # what takes effect when a run starts has no slider
    assert not {name for _, name, _ in names} & {"q0", "qd0", "x0"}
    assert Knob("plant", "gravity", -9.81, index=1) in knobs


def test_of_other_parameters_only_numbers_have_knobs():
    bd = decay()
    bd.blocknames["factor"].K = True
    assert [control.block for control in controls_of(bd)] == ["sign"]
    for value, count in (([1.0, 2.0], 2), (np.zeros((2, 2)), 4), (np.zeros(7), 0), ("much", 0), ([[1], [2, 3]], 0)):
        bd.blocknames["factor"].K = value
        assert len(controls_of(bd)) == 1 + count


def test_a_law_chosen_by_a_signal_is_not_offered():
    sim = cs.Simulation(graphics=False)
    bd = sim.blockdiagram()
    bd.CONTROLLER(ACROBOT, ["none", "pd"], select=True, name="controller")
    assert not [control for control in controls_of(bd) if isinstance(control, LawChoice)]


def test_no_window_is_asked_for_where_nothing_is_to_be_seen(monkeypatch):
    opened = []
    monkeypatch.delenv("CSTORMPY_LIVE")
    monkeypatch.setattr(simulation, "LiveFeed", lambda title: opened.append(title) or FakeFeed())
    sim = cs.Simulation(graphics=False, hold=False, progress=False)
    bd = sim.blockdiagram("plain")
    bd.connect(bd.CONSTANT(1.0), bd.SCOPE())
    sim.run(bd, T=0.1)
    assert opened == []
    sim.run(decay(), T=0.1, pace=None)
    assert opened == ["decay"]
    for off in ({"live": False}, {"threaded": True}):
        sim.run(decay(), T=0.1, **off)
    monkeypatch.setenv("CSTORMPY_LIVE", "off")
    sim.run(decay(), T=0.1)
    cs.compare("pendulum", {"damping": [0.5]}, T=0.1)
    assert opened == ["decay"]


def test_a_window_that_is_asked_for_is_there_before_the_diagram(monkeypatch):
    """It opened when the run began, behind all that was imported and built; a run without it closes it."""
    opened = []
    monkeypatch.setattr(simulation, "LiveFeed", lambda title: opened.append(FakeFeed()) or opened[-1])
    sim = cs.Simulation(graphics=False, hold=False, progress=False, live=True)
    assert len(opened) == 1
    bd = decay()
    sim.run(bd, T=0.1, pace=None)
    assert len(opened) == 1 and opened[0].title == bd.name and opened[0].ended and opened[0].closed
    sim.run(bd, T=0.1, pace=None)
    assert len(opened) == 2
    sim = cs.Simulation(graphics=False, hold=False, progress=False, live=True)
    sim.run(decay(), T=0.1, live=False)
    assert opened[2].closed and opened[2].shown is None
    del sim
    sim = cs.Simulation(live=True)
    del sim
    gc.collect()
    assert opened[3].closed and len(opened) == 4


def test_a_comparison_opens_no_windows(monkeypatch):
    """Its runs are for a table, and many."""
    monkeypatch.delenv("CSTORMPY_LIVE")
    monkeypatch.setattr(simulation, "LiveFeed", lambda title: pytest.fail("a window is opened"))
    assert len(cs.compare("pendulum", {"damping": [0.5, 1.0]}, T=0.1).rows) == 2


# ---------------------------------------------------------------- the pace


@pytest.mark.parametrize("window", [False, True])
def test_a_pace_is_kept(shown, window):
    bd = diagrams.load("pendulum").build(cs.Simulation(graphics=False))
    sim = cs.Simulation(graphics=False, progress=False)
    sim.run(bd, T=0.01)
    spent = {}
    for pace in (20.0, 5.0):
        begin = time.perf_counter()
        out = shown(bd, T=2.0, pace=pace)[0] if window else sim.run(bd, T=2.0, pace=pace)
        spent[pace] = time.perf_counter() - begin
        assert out.t[-1] == 2.0
    # a run is ahead of its pace by a millisecond at most; behind it, as far as the machine is busy
    assert 0.098 < spent[20.0] < 0.1 + 1.0
    assert 0.398 < spent[5.0] < 0.4 + 1.0


def test_the_pace_of_a_window_is_real_time_unless_said(shown):
    begin = time.perf_counter()
    _, feed = shown(decay(), T=0.3, pace="auto")
    assert 0.298 < time.perf_counter() - begin < 5.0
    assert feed.shown["pace"] == 1.0


@pytest.mark.parametrize(("pace", "hurries"), [("auto", True), (1.0, False)])
def test_nobody_waits_for_a_closed_window_unless_a_pace_was_said(shown, pace, hurries):
    class Closed(FakeFeed):
        def commands(self):
            self.alive = not self.t or self.t[-1] < 0.2
            return []

    begin = time.perf_counter()
    out, _ = shown(decay(), feed=Closed(), T=60.0 if hurries else 0.8, pace=pace)
    spent = time.perf_counter() - begin
    assert out.status == "finished" and (spent < 30.0 if hurries else spent > 0.798)


def test_steps_of_a_paced_run_are_no_longer_than_a_frame():
    out = cs.Simulation(graphics=False, progress=False).run(decay(1e-3), T=10.0, pace=100.0, max_step=5.0)
    assert 3.0 < np.diff(out.t).max() <= 100.0 / 30.0 + 1e-12


@pytest.mark.parametrize("pace", ["fast", True, -1.0, 0, math.inf, math.nan, [1.0]])
def test_a_pace_that_is_none_is_refused(pace):
    with pytest.raises((InvalidType, InvalidValue), match="pace: expected a"):
        check_pace(pace)
    with pytest.raises((InvalidType, InvalidValue), match="pace: expected a"):
        cs.Simulation(graphics=False).run(decay(), T=0.1, pace=pace)


def test_the_pace_is_changed_in_a_run(shown):
    begin = time.perf_counter()
    script = [(0.1, {"do": "pace", "value": None})]
    out, feed = shown(decay(), script, T=20.0, pace=1.0)
    assert out.t[-1] == 20.0 and 0.1 < time.perf_counter() - begin < 15.0
    assert ("state", "running", None) in feed.said
    # as fast as possible again, the steps are those of any run
    assert np.diff(out.t)[out.t[1:] > 1.0].max() == pytest.approx(0.2)
    out, feed = shown(decay(), [(0.1, {"do": "pace", "value": -2.0})], T=0.5)
    assert out.t[-1] == 0.5 and "pace: expected a positive number" in messages(feed)[0]


# ---------------------------------------------------------------- pause, step, stop


def test_a_run_pauses_and_goes_on(shown):
    script = [(T1, {"do": "pause"}), (T1, {"do": "run"})]
    out, feed = shown(decay(), script)
    plain = cs.Simulation(graphics=False, progress=False).run(decay(), T=T)
    assert [said[1] for said in feed.said if said[0] == "state"] == ["paused", "running"]
    np.testing.assert_array_equal(out.t, plain.t)
    np.testing.assert_array_equal(out.x, plain.x)


def test_a_paused_run_waits(shown):
    """Nothing moves until the window says so, here half a second later."""
    bd, feed = decay(), None
    times = []

    class Slow(FakeFeed):
        def wait(self, seconds):
            times.append((time.perf_counter(), len(self.t)))
            if time.perf_counter() - times[0][0] > 0.3 and not self.script:
                self.script.append((T1, {"do": "run"}))
            return super().wait(seconds)

    with pytest.MonkeyPatch.context() as patch:
        feed = Slow([(T1, {"do": "pause"})])
        patch.setattr(simulation, "LiveFeed", lambda title: feed)
        out = cs.Simulation(graphics=False, hold=False).run(bd, T=T, live=True, pace=None)
    assert out.t[-1] == T
    assert len({count for _, count in times}) == 1 and times[-1][0] - times[0][0] > 0.3


def test_single_steps(shown):
    script = [(T1, {"do": "pause"}), *[(T1, {"do": "step"})] * 3, (T1, {"do": "stop"})]
    out, feed = shown(decay(), script)
    k = feed.t.index(feed.asked_at[0])
    assert feed.asked_at == [*feed.t[k : k + 1] * 2, *feed.t[k + 1 : k + 4]]
    assert len(feed.t) == k + 4
    assert out.status == "stopped" and "the user, in the live window" in out.message


def test_a_run_is_stopped(shown):
    out, feed = shown(decay(), [(T1, {"do": "stop"})])
    assert out.status == "stopped" and out.t[-1] == feed.asked_at[0] < T
    assert feed.ended == out.message
    np.testing.assert_allclose(out.x[-1], np.exp(-out.t[-1]), atol=1e-5)


def test_a_stop_ends_a_slow_pace_at_once(shown):
    """Not only when the pace has come to the next sample."""
    feed = FakeFeed()
    threading.Timer(0.2, lambda: feed.script.append((0.0, {"do": "stop"}))).start()
    begin = time.perf_counter()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(simulation, "LiveFeed", lambda title: feed)
        sim = cs.Simulation(graphics=False, hold=False)
        bd = sim.blockdiagram("clocked")
        clock = bd.clock(100)
        bd.connect(bd.CONSTANT(1.0), hold := bd.ZOH(clock))
        bd.connect(hold, bd.LIVESCOPE())
        out = sim.run(bd, T=1000.0, live=True, pace=1.0)
    assert out.status == "stopped" and time.perf_counter() - begin < 5.0


def test_a_pause_ends_with_the_window(shown):
    """Nobody is left who could end it."""

    class Closed(FakeFeed):
        def wait(self, seconds):
            self.alive = False
            return False

    with pytest.MonkeyPatch.context() as patch:
        feed = Closed([(T1, {"do": "pause"})])
        patch.setattr(simulation, "LiveFeed", lambda title: feed)
        out = cs.Simulation(graphics=False, hold=False).run(decay(), T=T, live=True, pace=None)
    assert out.status == "finished" and feed.t[-1] < T


# ---------------------------------------------------------------- parameters, laws, pushes


def test_a_gain_is_set(shown):
    out, feed = shown(decay(), [(T1, {"do": "set", "block": "factor", "name": "K", "value": 3.0})])
    when = feed.asked_at[0]
    assert T1 <= when < T1 + T / 50
    bd = decay()
    same_end(out, at(bd, when, lambda: bd.blocknames["factor"].set_param("K", 3.0)), 1e-9)
    np.testing.assert_allclose(out.x[-1], math.exp(-when - 3.0 * (T - when)), atol=1e-5)
    assert messages(feed) == []


def test_one_number_of_a_parameter_is_set(shown):
    out, feed = shown(swing(), [(T1, {"do": "set", "block": "plant", "name": "gravity", "index": 1, "value": -1.62})])
    bd = swing()
    same_end(out, at(bd, feed.asked_at[0], lambda: bd.blocknames["plant"].set_param("gravity", [0, -1.62, 0])), 1e-9)
    assert np.abs(out.x[-1] - at(swing(), 0.1, lambda: None).x[-1]).max() > 0.1


def test_a_gain_of_a_law_is_set(shown):
    out, feed = shown(
        swing(law="energy"), [(T1, {"do": "set", "block": "controller", "name": "energy.ke", "value": 0.1})]
    )
    bd = swing(law="energy")
    same_end(out, at(bd, feed.asked_at[0], lambda: bd.blocknames["controller"].set_param("energy.ke", 0.1)), 1e-9)
    assert messages(feed) == []


def test_a_law_is_chosen(shown):
    out, feed = shown(swing(), [(T1, {"do": "law", "block": "controller", "name": "pd"})])
    bd = swing()
    same_end(out, at(bd, feed.asked_at[0], lambda: bd.blocknames["controller"].select("pd")), 1e-6)
    assert ("law", "controller", "pd") in feed.said


def test_the_window_hears_of_a_law_that_was_chosen_by_other_means(shown):
    bd = swing()
    _, feed = shown(bd, at={T1: lambda: bd.blocknames["controller"].select("energy")})
    assert [said for said in feed.said if said[0] == "law"] == [("law", "controller", "energy")]


def test_a_link_is_pushed_and_released(shown):
    push = {"do": "push", "block": "plant", "link": "forearm", "force": [3.0, 1.0, 0.0], "point": [0.5, 0.0, 0.0]}
    out, feed = shown(swing(), [(T1, push), (1.5, {"do": "release"})])
    on, off = feed.asked_at
    bd = swing()
    plant = bd.blocknames["plant"]
    sim = cs.Simulation(graphics=False, progress=False)
    acts = {on: lambda: plant.push("forearm", [3.0, 1.0, 0.0], [0.5, 0.0, 0.0]), off: plant.release}
    same_end(out, sim.run(bd, T=T, at=acts), 1e-9)
    assert np.abs(out.x[-1] - sim.run(swing(), T=T).x[-1]).max() > 0.05
    assert messages(feed) == []


REFUSED = [
    ({"do": "set", "block": "factr", "name": "K", "value": 1.0}, "block 'factr' does not exist; did you mean 'factor'"),
    ({"do": "set", "block": "factor", "name": "k", "value": 1.0}, "factor: parameter 'k' does not exist"),
    ({"do": "set", "block": "factor", "name": "K", "value": math.nan}, "K: expected a finite number, got nan"),
    ({"do": "set", "block": "factor", "name": "K", "value": "big"}, "K: expected a finite number, got 'big'"),
    ({"do": "set", "block": "factor", "name": "K", "value": None}, "K: expected a finite number, got None"),
    (
        {"do": "set", "block": "factor", "name": "K", "index": 3, "value": 1.0},
        "factor: K has 1 numbers",
    ),
    ({"do": "set", "block": "factor", "name": "K"}, "KeyError: 'value'"),
    ({"do": "law", "block": "factor", "name": "pd"}, "select"),
    ({"do": "push", "block": "factor", "link": "a", "force": [0, 0, 0], "point": [0, 0, 0]}, "push"),
    ({"do": "push", "block": "factor"}, "KeyError: 'link'"),
    ({"do": "dance"}, "command 'dance' does not exist"),
    ({"do": "pace"}, "KeyError: 'value'"),
    ({}, "KeyError: 'do'"),
]


@pytest.mark.parametrize(("command", "message"), REFUSED)
def test_what_makes_no_sense_is_refused_and_the_run_goes_on(shown, command, message):
    out, feed = shown(decay(), [(T1, command)])
    assert out.status == "finished"
    assert len(messages(feed)) == 1 and message in messages(feed)[0]
    np.testing.assert_allclose(out.x[-1], math.exp(-T), atol=1e-5)


REFUSED_BY_BLOCKS = [
    ({"do": "law", "block": "controller", "name": "pid"}, "'pid' does not exist; did you mean 'pd'"),
    ({"do": "set", "block": "controller", "name": "blend", "value": -1.0}, "blend"),
    ({"do": "push", "block": "plant", "link": "foot", "force": [1, 0, 0], "point": [0, 0, 0]}, "link 'foot'"),
    (
        {"do": "push", "block": "plant", "link": 7, "force": [1, 0, 0], "point": [0, 0, 0]},
        "link: expected a position",
    ),
    ({"do": "push", "block": "plant", "link": 0, "force": [1, 0], "point": [0, 0, 0]}, "force: expected"),
    ({"do": "push", "block": "plant", "link": 0, "force": [1, 0, 0], "point": [0, math.inf, 0]}, "point"),
]


def test_the_window_is_told_of_gravity(shown):
    """Its arrow stood still when the slider was moved, and a plant on the moon had the earth's."""
    bd = swing()
    bd.blocknames["plant"].gravity = [0.0, -1.6, 0.0]
    out, feed = shown(bd, [(T1, {"do": "set", "block": "plant", "name": "gravity", "index": 0, "value": 5.0})])
    assert out.status == "finished", out.message
    (view,) = (pane for pane in feed.shown["panes"] if pane.kind == "mechanism")
    assert view.mechanism.gravity.tolist() == [0.0, -1.6, 0.0]
    assert [said for said in feed.said if said[0] == "gravity"] == [("gravity", "view", [5.0, -1.6, 0.0])]


@pytest.mark.parametrize(("command", "message"), REFUSED_BY_BLOCKS)
def test_what_a_block_refuses_does_not_end_the_run(shown, command, message):
    bd = swing()
    before = {name: getattr(bd.blocknames["controller"], name) for name in ("active_law", "blend", "energy.ke")}
    out, feed = shown(bd, [(T1, command)])
    assert out.status == "finished", out.message
    assert len(messages(feed)) == 1 and message in messages(feed)[0]
    same_end(out, at(swing(), T1, lambda: None))
    if command["do"] == "set":  # the slider goes back
        assert ("value", "controller", command["name"], before[command["name"]], None) in feed.said
    if command["do"] == "law":
        assert ("law", "controller", "none") in feed.said


def test_what_is_asked_for_too_late_is_not_done_in_the_next_run(monkeypatch):
    sim = cs.Simulation(graphics=False, hold=False, progress=False)
    bd = decay()
    set_gain = {"do": "set", "block": "factor", "name": "K", "value": 9.0}

    class Interrupted(FakeFeed):
        def wait(self, seconds):
            if not self.script:
                raise KeyboardInterrupt
            return super().wait(seconds)

    feed = Interrupted([(T1, {"do": "pause"}), (T1, set_gain)])
    monkeypatch.setattr(simulation, "LiveFeed", lambda title: feed)
    assert sim.run(bd, T=T, live=True, pace=None).status == "interrupted" and not feed.script
    assert sim.run(bd, T=T).x[-1] == pytest.approx(math.exp(-T), abs=1e-5)


def test_a_run_whose_window_can_not_be_shown_is_as_any_other(shown, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    out, feed = shown(decay(), alive=False)
    assert out.status == "finished" and feed.rows == []


@pytest.mark.skipif(not hasattr(signal, "SIGINT") or os.name == "nt", reason="needs signals")
@pytest.mark.parametrize("paused", [False, True])
def test_ctrl_c_ends_a_run_that_sleeps(shown, paused):
    """In its pace or in a pause: the samples until then are returned."""
    script = [(0.05, {"do": "pause"})] if paused else []
    feed = FakeFeed(script)
    sleep, naps = feed.wait, []

    def wait(seconds):
        """Sleep as before, but press Ctrl-C at the tenth time: then the run is well on its way, and asleep."""
        naps.append(seconds)
        if len(naps) == 10:
            os.kill(os.getpid(), signal.SIGINT)
        return sleep(seconds)

    feed.wait = wait
    out, feed = shown(decay(), feed=feed, T=100.0, pace=1.0)
    assert out.status == "interrupted"
    assert 0.0 < out.t[-1] < 99.0 and len(out.panes[0].y) == len(out.t)
    assert feed.closed and "interrupted" in feed.ended


# ---------------------------------------------------------------- several runs


def test_two_runs_at_once_in_two_threads(shown):
    """Each with a simulation of its own; both are what they are alone."""
    laws = ("energy", "pd")
    alone = {law: at(swing(law=law), 0.1, lambda: None) for law in laws}
    found, both = {}, threading.Barrier(2)

    def run(law):
        sim = cs.Simulation(graphics=False, hold=False, progress=False)
        bd = swing(law=law)
        both.wait()
        found[law] = sim.run(bd, T=T, at={0.1: lambda: None}, live=False)

    threads = [threading.Thread(target=run, args=(law,)) for law in laws]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60.0)
    for law in laws:
        np.testing.assert_array_equal(found[law].t, alone[law].t)
        np.testing.assert_array_equal(found[law].x, alone[law].x)


def test_two_shown_runs_at_once_obey_each_its_own_window(monkeypatch):
    feeds = {
        gain: FakeFeed([(T1, {"do": "set", "block": "factor", "name": "K", "value": gain})]) for gain in (2.0, 5.0)
    }
    order = iter(feeds.values())
    lock = threading.Lock()

    def made(title):
        with lock:
            return next(order)

    monkeypatch.setattr(simulation, "LiveFeed", made)
    found = []

    def run():
        sim = cs.Simulation(graphics=False, hold=False, progress=False)
        found.append(sim.run(decay(), T=T, live=True, pace=4.0))

    threads = [threading.Thread(target=run) for _ in feeds]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60.0)
    want = sorted(math.exp(-feed.asked_at[0] - gain * (T - feed.asked_at[0])) for gain, feed in feeds.items())
    np.testing.assert_allclose(sorted(out.x[-1, 0] for out in found), want, atol=1e-5)


def test_a_run_in_a_thread_shows_no_window(monkeypatch):
    monkeypatch.setattr(simulation, "LiveFeed", lambda title: pytest.fail("a window is opened"))
    sim = cs.Simulation(graphics=False, progress=False)
    out = []
    thread = threading.Thread(target=lambda: out.append(sim.run(decay(), T=T, threaded=True, live=True)))
    thread.start()
    thread.join(60.0)
    assert out[0].status == "finished"


def test_a_notebook_shows_the_run():
    out = cs.Simulation(graphics=False, progress=False).run(swing(), T=0.5)
    page = out._repr_html_()
    assert page.startswith("<iframe srcdoc=") and page.count("<iframe") == 1
    assert "N m" in page and "forearm" in page


def test_a_simulation_serves_again_after_a_run_that_failed(shown):
    sim = cs.Simulation(graphics=False, hold=False, progress=False)
    bd = decay()

    def fail(t, x):
        if t > T1:
            raise RuntimeError("enough")

    out, feed = shown(bd, sim=sim, observer=fail)
    assert out.status == "failed" and "enough" in out.message and feed.closed and "enough" in feed.ended
    with pytest.raises(InvalidValue):
        sim.run(bd, T=-1.0)
    out, feed = shown(bd, [(T1, {"do": "set", "block": "factor", "name": "K", "value": 3.0})], sim=sim)
    when = feed.asked_at[0]
    np.testing.assert_allclose(out.x[-1], math.exp(-when - 3.0 * (T - when)), atol=1e-5)


# ---------------------------------------------------------------- the hand on the plant


PUSHED = [
    pytest.param(ACROBOT, "forearm", id="acrobot"),
    pytest.param(ACROBOT.with_drive(active=["elbow"]), "upper_arm", id="active elbow"),
    pytest.param(cs.library.branched_acrobot(), 2, id="branched"),
    pytest.param(cs.library.puma560(), 5, id="puma"),
]


@pytest.mark.parametrize(("mech", "link"), PUSHED)
def test_a_push_is_the_wrench_of_that_force_at_that_point(mech, link):
    """The force is in the axes of the base; at the wrench port stands the same in those of the link."""
    index = mech.link_index(link) if isinstance(link, str) else link
    rng = np.random.default_rng(8)
    q, qd, force, point = rng.normal(size=mech.n), rng.normal(size=mech.n), rng.normal(size=3), rng.normal(size=3)
    plant, loaded = HybridDynamics(mech), HybridDynamics(mech, wrench=True)
    signals = [rng.normal(size=width) for width in plant.inwidths]
    x = np.concatenate([q, qd])
    free = plant.test_deriv(*signals, x=x)
    plant.push(link, force, point)
    rows = np.zeros((len(mech.links), 6))
    pose = mech.forward_kinematics(q)[index]
    rows[index, 3:] = pose[:3, :3].T @ force
    rows[index, :3] = np.cross(point, rows[index, 3:])
    pushed = plant.test_deriv(*signals, x=x)
    np.testing.assert_allclose(pushed, loaded.test_deriv(*signals, rows, x=x), rtol=1e-12, atol=1e-12)
    assert np.abs(pushed - free).max() > 1e-3
    np.testing.assert_allclose(
        rows[index], link_wrench(pose[:3, :3].T, point, np.concatenate([np.zeros(3), force])), atol=1e-14
    )
    plant.release()
    np.testing.assert_array_equal(plant.test_deriv(*signals, x=x), free)


def test_a_push_does_work_as_force_times_way():
    """By another way than wrenches: the power into the mechanism is F · v of the pushed point."""
    mech = cs.library.puma560()
    rng = np.random.default_rng(2)
    q, qd, force, point = (rng.normal(size=n) for n in (mech.n, mech.n, 3, 3))
    plant = HybridDynamics(mech)
    signals = [np.zeros(width) for width in plant.inwidths]
    x = np.concatenate([q, qd])
    free = plant.test_deriv(*signals, x=x)[mech.n :]
    plant.push(4, force, point)
    gained = mech.mass_matrix(q) @ (plant.test_deriv(*signals, x=x)[mech.n :] - free) @ qd

    def place(q):
        pose = mech.forward_kinematics(q)[4]
        return pose[:3, :3] @ point + pose[:3, 3]

    h = 1e-6
    assert gained == pytest.approx(force @ (place(q + h * qd) - place(q - h * qd)) / (2 * h), rel=1e-7)


def test_a_push_adds_to_the_wrenches_of_the_port():
    mech = cs.library.branched_acrobot()
    rng = np.random.default_rng(5)
    plant = HybridDynamics(mech, wrench=True)
    signals = [np.zeros(width) for width in plant.inwidths[:-1]]
    x, rows = rng.normal(size=2 * mech.n), rng.normal(size=(len(mech.links), 6))
    none = np.zeros_like(rows)
    qdd = {}
    for pushed in (False, True):
        for loads in (none, rows):
            if pushed:
                plant.push(1, [1.0, 2.0, 0.0], [0.1, 0.2, 0.3])
            qdd[pushed, loads is rows] = plant.test_deriv(*signals, loads, x=x)
    np.testing.assert_allclose(
        qdd[True, True] - qdd[False, True], qdd[True, False] - qdd[False, False], rtol=1e-9, atol=1e-12
    )


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (("foot", [1, 0, 0]), UnknownName, "link 'foot' does not exist"),
        ((2, [1, 0, 0]), InvalidValue, "link"),
        ((-3, [1, 0, 0]), InvalidValue, "link"),
        ((0.5, [1, 0, 0]), InvalidType, "link"),
        ((True, [1, 0, 0]), InvalidType, "link"),
        ((0, [1, 0]), ShapeError, "force: expected"),
        ((0, "hard"), InvalidType, "force"),
        ((0, [1, math.nan, 0]), cs.CstormError, "force"),
        ((0, [1, 0, 0], [1, 2]), ShapeError, "point: expected"),
        ((0, [1, 0, 0], None), InvalidType, "point"),
    ],
)
def test_a_bad_push_is_refused_and_the_one_before_stays(arguments, error, message):
    plant = HybridDynamics(ACROBOT)
    x = np.array([0.1, 0.2, 0.3, 0.4])
    plant.push(1, [1.0, 0.0, 0.0])
    before = plant.test_deriv([0.0], x=x)
    with pytest.raises(error, match=message):
        plant.push(*arguments)
    np.testing.assert_array_equal(plant.test_deriv([0.0], x=x), before)


def test_a_run_begins_without_a_push():
    bd = swing()
    bd.blocknames["plant"].push(1, [50.0, 0.0, 0.0])
    sim = cs.Simulation(graphics=False, progress=False)
    np.testing.assert_array_equal(sim.run(bd, T=0.5).x, sim.run(swing(), T=0.5).x)


# ---------------------------------------------------------------- all of it, through a real window


@needs_qt
def test_a_real_window_pushes_turns_and_stops(monkeypatch):
    """Off the screen: the mouse pulls at a link, a slider moves, the law is chosen, the run is stopped."""
    monkeypatch.setenv("QT_QPA_PLATFORM", "offscreen")
    monkeypatch.setenv("CSTORMPY_LIVE_TEST", "1")
    opened = []

    class Window(live.LiveFeed):
        def __init__(self, title):
            super().__init__(title)
            opened.append(self)

        def drive(self, act, **message):
            self._tell(say="drive", act=act, **message)
            answer = self._replies.get(timeout=20.0)
            assert "error" not in answer, answer
            return answer

    monkeypatch.setattr(simulation, "LiveFeed", Window)
    bd = swing()
    plant, controller = bd.blocknames["plant"], bd.blocknames["controller"]
    seen = {}

    def pull():
        window = opened[0]
        assert window.wait_until_ready(60.0), window.reason
        time.sleep(0.1)
        at = window.drive("link", control="view picture", link=1)["at"]
        window.drive("press", control="view picture", at=at)
        window.drive("move", control="view picture", at=[at[0] + 40, at[1]])

    def turn():
        seen["pushed"] = plant._pushed
        window = opened[0]
        window.drive("release", control="view picture", at=[0, 0])
        window.drive("type", control="controller.pd.kp value", value="7.5")
        window.drive("choose", control="controller law", value="pd")

    def stop():
        seen["released"] = plant._pushed
        opened[0].drive("click", control="stop")

    sim = cs.Simulation(graphics=False, hold=False, progress=False)
    out = sim.run(bd, T=8.0, live=True, at={0.5: pull, 1.0: turn, 1.5: stop})
    link, _, force = seen["pushed"]
    assert link == 1 and force[0] > 1.0 and abs(force[1]) < 0.1 * force[0]
    assert seen["released"] is None
    assert controller.active_law == "pd" and controller.laws.laws["pd"].gains["kp"] == 7.5
    assert out.status == "stopped" and 1.5 <= out.t[-1] < 4.0
    assert not opened[0].alive


# ---------------------------------------------------------------- the report


def test_the_report_is_written_before_the_window_is_held(shown, tmp_path):
    target = tmp_path / "run.html"

    class Held(FakeFeed):
        def hold(self, only_on_terminal=True):
            self.reported = target.is_file()

    feed = Held()
    shown(decay(), feed=feed, report=target, block=True)
    assert feed.reported
    # of a run that fails too
    bd = decay()
    bd.connect(bd.blocknames["state"], bd.FUNCTION(lambda x: 1.0 / max(0.0, x - 0.5), name="pole"))
    target.unlink()
    with pytest.raises(cs.errors.BlockError):
        shown(bd, report=target, on_error="raise", T=T)
    assert "pole" in target.read_text(encoding="utf-8")


def test_a_report_that_can_not_be_written_loses_no_data(shown, tmp_path):
    with pytest.raises(cs.errors.FileFormatError, match="report") as caught:
        shown(decay(), report=tmp_path / "nowhere" / "run.html")
    assert caught.value.result.t[-1] == T


def test_the_wait_for_the_window_and_pauses_are_no_part_of_the_pace_of_progress(shown, monkeypatch):
    """The line of progress took them for the run's own slowness."""
    lines = []

    class Line(simulation.Progress):
        def __init__(self, *arguments):
            super().__init__(*arguments)
            lines.append(self)

    class Slow(FakeFeed):
        def wait_until_ready(self, seconds):
            time.sleep(0.25)
            return True

    monkeypatch.setattr(simulation, "Progress", Line)
    pause = [(0.5, {"do": "pause"}), (0.5, {"do": "run"})]
    _, feed = shown(swing(), feed=Slow(pause), pace=1000.0)
    assert [said[1] for said in feed.said if said[0] == "state"][:2] == ["paused", "running"]
    assert 0.25 <= lines[0]._idle() < 5.0


@pytest.mark.parametrize(("screen", "block", "waits"), [(True, True, True), (True, None, False), (False, True, False)])
def test_a_window_is_held_without_a_terminal_where_that_is_asked(shown, monkeypatch, screen, block, waits):
    """With `| tee`, a log file or an IDE block=True was ignored: the window vanished at the last sample."""
    held = []

    class Held(FakeFeed):
        def hold(self, only_on_terminal=True):
            held.append(not only_on_terminal)

    monkeypatch.setattr(simulation, "is_on_screen", lambda: screen)
    sim = cs.Simulation(graphics=False, progress=False)
    shown(swing(), sim=sim, feed=Held(), block=block)
    assert held == [waits]


READ = {
    "nothing": (lambda sim, out: None, {}, True),
    "read": (lambda sim, out: out.t, {}, False),
    "a signal": (lambda sim, out: out.signal("plant.elbow.q"), {}, False),
    "printed": (lambda sim, out: str(out), {}, False),
    "reported": (lambda sim, out: sim.report("other.html"), {}, False),
    "a report is asked for": (lambda sim, out: None, {"report": "run.html"}, False),
    "a notebook": (lambda sim, out: out._repr_html_(), {}, False),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", READ)
def test_figures_are_written_only_of_scopes_that_would_be_lost(monkeypatch, tmp_path, caplog, kind):
    """Each run without a display left a folder of pictures beside the script or notebook, also beside its report."""
    look, options, written = READ[kind]
    monkeypatch.chdir(tmp_path)
    feed = FakeFeed(alive=False)
    feed.reason = "there is no display"
    monkeypatch.setattr(simulation, "LiveFeed", lambda title: feed)
    monkeypatch.setattr(simulation, "is_off", lambda: False)
    sim = cs.Simulation(graphics=False, progress=False)
    bd = swing()
    look(sim, sim.run(bd, T=0.2, **options))
    assert not (tmp_path / "swing_figures").exists()
    del sim
    gc.collect()
    found = sorted(path.name for path in tmp_path.glob("swing_figures/*"))
    assert found == (["1-view.png", "2-scope.png"] if written else [])
    assert caplog.text.count("the figures are in swing_figures") == written


def test_figures_are_written_where_a_window_was_asked_for(shown, monkeypatch, tmp_path, caplog):
    monkeypatch.chdir(tmp_path)
    feed = FakeFeed(alive=False)
    feed.reason = "there is no display"
    shown(swing(), feed=feed, T=0.2)
    assert sorted(path.name for path in tmp_path.glob("swing_figures/*")) == ["1-view.png", "2-scope.png"]
    assert "the figures are in swing_figures" in caplog.text
