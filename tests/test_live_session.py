"""A run that is shown: what its window asks for is done between steps, and a pace is kept."""

import gc
import math
import os
import signal
import threading

import numpy as np
import pytest
from live_runs import ACROBOT, T1, FakeFeed, T, at, decay, swing

import cstormpy as cs
from cstormpy.errors import InvalidValue
from cstormpy.live import Knob, LawChoice
from cstormpy.simulation import simulation
from cstormpy.simulation.live_session import controls_of


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


@pytest.mark.slow
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
