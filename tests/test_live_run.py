"""A run that is shown, from the user's side: what is done in the window changes the simulation, and the run survives.

The window is a real one, off the screen; its widgets get the events that mouse and keyboard would send.
"""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from live_runs import wait_for
from matplotlib.image import imread

import cstormpy as cs
from cstormpy import live
from cstormpy.live import LiveFeed
from cstormpy.simulation import simulation

reason = live.available({"QT_QPA_PLATFORM": "offscreen"})
pytestmark = pytest.mark.skipif(reason is not None, reason=f"no window here: {reason}")

LAWS = ["none", "pd", "energy"]


class Shown:
    """A run in a thread of its own, and its window."""

    def __init__(self, monkeypatch, T=60.0, **options):
        feeds = []

        def capture(*args, **kwargs):
            feeds.append(LiveFeed(*args, **kwargs))
            return feeds[-1]

        monkeypatch.setattr(simulation, "LiveFeed", capture)
        self.sim = cs.Simulation(progress=False, graphics=False)
        self.bd = self.sim.blockdiagram(name="acrobot")
        self.plant = self.bd.HYBRIDDYNAMICS("acrobot", q0=[-np.pi / 2, 0.0], name="plant")
        self.controller = self.bd.CONTROLLER("acrobot", LAWS, law="none", name="controller")
        self.gain = self.bd.GAIN(1.0, name="gain")
        self.gain.add_param("K")
        scope = self.bd.LIVESCOPE(labels=["q1", "q2"], units="rad", name="scope")
        view = self.bd.MECHANISMVIEW("acrobot", name="robot")
        self.bd.connect(self.plant[0:2], self.controller[0:2])
        self.bd.connect(self.controller[0], self.plant[0])
        self.bd.connect(self.plant[0], scope, view)
        self.bd.connect(self.controller[1], self.gain)
        self.bd.connect(self.gain, self.bd.NULL())
        self.states, self.out, self.error = [], None, None
        self.thread = threading.Thread(target=self._run, args=(T, options))
        self.thread.start()
        self.feed = wait_for(lambda: feeds and feeds[0])
        assert self.feed.wait_until_ready(60.0), self.feed.reason
        wait_for(lambda: self.look()["newest"] > 0.0)

    def _run(self, T, options):
        def observe(t, x):
            self.states.append((t, x.copy(), time.perf_counter()))

        try:
            self.out = self.sim.run(self.bd, T=T, live=True, observer=observe, **options)
        except BaseException as error:
            self.error = error

    def drive(self, act, **message):
        self.feed._tell(say="drive", act=act, **message)
        answer = self.feed._replies.get(timeout=20.0)
        assert "error" not in answer, answer
        return answer

    def look(self):
        return self.drive("look")

    @property
    def t(self):
        return self.states[-1][0]

    def end(self, stop=True):
        if stop and self.thread.is_alive():
            self.drive("click", control="stop")
        self.thread.join(20.0)
        assert not self.thread.is_alive()
        if self.error is not None:
            raise self.error
        return self.out


@pytest.fixture
def off_screen(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)  # where figures are written once a window is lost
    monkeypatch.setenv("QT_QPA_PLATFORM", "offscreen")
    monkeypatch.setenv("CSTORMPY_LIVE_TEST", "1")


@pytest.fixture
def shown(monkeypatch, off_screen):
    run = Shown(monkeypatch)
    yield run
    run.end()


def test_pause_step_run_back_and_stop(shown):
    shown.drive("click", control="run")
    wait_for(lambda: shown.look()["state"] == "paused")
    t, count = shown.t, len(shown.states)
    time.sleep(0.3)
    assert len(shown.states) == count, "it stands still"
    shown.drive("click", control="step")
    wait_for(lambda: shown.t > t)
    time.sleep(0.2)
    assert len(shown.states) == count + 1, "one step, no more"
    newest = wait_for(lambda: (s := shown.look())["newest"] == shown.t and s)["newest"]
    shown.drive("click", control="back")
    seen = shown.look()
    assert seen["now"] == t < newest and not seen["live"]
    shown.drive("click", control="forward")
    assert shown.look()["now"] == newest
    shown.drive("click", control="run")
    wait_for(lambda: shown.t > newest)
    out = shown.end()
    assert out[".status"] == "stopped" and "the user" in out[".message"]
    assert len(out.t) and out.t[-1] == shown.t < 60.0, "what was simulated is there"


@pytest.mark.slow
def test_pace_is_kept_and_changed_and_sliders_change_parameters(shown):
    """Both in one window, which takes long to open."""

    def pace():
        """Return simulated over real time for a second of real time."""
        time.sleep(0.2)
        first = shown.states[-1]
        time.sleep(1.0)
        last = shown.states[-1]
        return (last[0] - first[0]) / (last[2] - first[2])

    def is_kept(wanted):
        """Tell whether it is kept in one of some seconds, as others may hold up the machine in one of them."""
        return any(pace() == pytest.approx(wanted, rel=0.05) for _ in range(5))

    assert is_kept(1.0)
    shown.drive("choose", control="pace", value="5 × real time")
    assert is_kept(5.0)
    shown.drive("choose", control="pace", value="0.1 × real time")
    assert pace() < 0.2

    shown.drive("slide", control="gain.K slider", value=75)
    expected = 0.01 * 10 ** (4 * 0.75)
    wait_for(lambda: shown.gain.K != 1.0)
    wait_for(lambda: abs(shown.gain.K - expected) < 1e-2 * expected)
    shown.drive("type", control="gain.K value", value="2.5")
    wait_for(lambda: shown.gain.K == 2.5)


@pytest.mark.slow
def test_a_push_moves_the_hanging_robot_and_another_law_takes_over(shown):
    assert np.abs(shown.states[-1][1] - [-np.pi / 2, 0, 0, 0]).max() < 1e-9, "it hangs at rest"
    at = shown.drive("link", control="robot picture", link=1)["at"]
    shown.drive("press", control="robot picture", at=at)
    shown.drive("move", control="robot picture", at=[at[0] + 60, at[1]])
    wait_for(lambda: shown.states[-1][1][0] > -np.pi / 2 + 0.05)
    shown.drive("release", control="robot picture", at=[at[0] + 60, at[1]])
    wait_for(lambda: shown.plant._pushed is None)

    assert shown.controller.active_law == "none"
    shown.drive("choose", control="controller law", value="pd")
    wait_for(lambda: shown.controller.active_law == "pd")
    t = shown.t
    wait_for(lambda: np.abs(shown.states[-1][1]).max() < 50.0 and shown.t > t + 0.3)


def test_the_scope_shows_what_is_recorded(monkeypatch, off_screen):
    shown = Shown(monkeypatch, T=4.0, start=np.array([-1.0, 0.4, 0.0, 0.0]))
    wait_for(lambda: shown.t > 1.0)
    shown.drive("click", control="run")
    wait_for(lambda: (s := shown.look())["state"] == "paused" and s["newest"] == shown.t)
    time.sleep(0.1)
    seen = shown.look()
    out = shown.end()
    (pane,) = [pane for pane in out.panes if pane.name == "scope"]
    assert np.array_equal(pane.t, out.t) and len(pane.t) > 30
    for k, trace in enumerate(seen["curves"]["scope"]):
        logged = set(zip(pane.t.tolist(), pane.y[:, k].tolist(), strict=True))
        assert set(zip(*trace, strict=True)) <= logged
        assert trace[0][-1] == seen["newest"] and len(trace[0]) > 20
    assert np.ptp(pane.y[:, 1]) > 0.1, "it moved"


@pytest.mark.skipif(sys.platform == "win32", reason="sends a signal")
@pytest.mark.parametrize("how", ["closed", pytest.param("killed", marks=pytest.mark.slow)])
def test_the_run_survives_its_window(monkeypatch, off_screen, caplog, how):
    caplog.set_level("INFO")
    run = Shown(monkeypatch, T=2.0)
    if how == "closed":
        run.drive("close")
    else:
        os.kill(run.feed._process.pid, signal.SIGKILL)
    out = run.end(stop=False)
    assert out[".status"] == "finished" and out.t[-1] == 2.0
    lines = [r.message for r in caplog.records]
    assert len([line for line in lines if "the run goes on" in line]) == 1, lines


@pytest.mark.slow
def test_the_pictures_are_made_on_a_virtual_screen(tmp_path, virtual_screen):
    lost = live.available({"DISPLAY": ":0"}) or ""
    if "apt install" in lost:
        pytest.skip(lost)
    script = Path(__file__).parent / "pictures" / "live.py"
    environment = {k: v for k, v in os.environ.items() if k not in ("QT_QPA_PLATFORM", "WAYLAND_DISPLAY")}
    done = subprocess.run(
        [sys.executable, str(script), str(tmp_path)],
        env={**environment, "DISPLAY": virtual_screen, "PYTHONPATH": os.pathsep.join(sys.path)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=180,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    made = sorted(tmp_path.glob("*.png"))
    assert [path.name for path in made] == [
        "acrobot_live.png",
        "live_looking_back.png",
        "live_push.png",
        "live_space.png",
    ]
    for path in made:
        pixels = imread(path)[:, :, :3]
        assert pixels.shape == (800, 1200, 3)
        assert len(np.unique((pixels * 255).astype(int).reshape(-1, 3), axis=0)) > 100, "there is something to see"


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="sends a signal")
def test_a_window_that_dies_ends_the_pause(monkeypatch, off_screen):
    run = Shown(monkeypatch, T=1.0)
    run.drive("click", control="run")
    wait_for(lambda: run.look()["state"] == "paused")
    os.kill(run.feed._process.pid, signal.SIGKILL)
    assert run.end(stop=False)[".status"] == "finished"
