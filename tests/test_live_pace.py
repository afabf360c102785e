"""The pace of a run that is shown: kept, changed, paused, stepped, stopped."""

import math
import threading
import time

import numpy as np
import pytest
from live_runs import T1, FakeFeed, T, decay, messages, swing

import cstormpy as cs
from cstormpy import diagrams
from cstormpy.errors import InvalidType, InvalidValue
from cstormpy.simulation import simulation
from cstormpy.simulation.live_session import check_pace


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


@pytest.mark.parametrize("pace", [1e-320, "fast", True, -1.0, 0, math.inf, math.nan, [1.0]])
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
