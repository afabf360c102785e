"""Cost of the live window to the run that it shows, off the screen: CPU of the simulating process, start, lag, memory.

Compared within one run: the same diagram with samples going to a window that draws, and without.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from statistics import median

import numpy as np
import pytest
from interleaved import interleave

import cstormpy as cs
from cstormpy import live
from cstormpy.live import LiveFeed, LivePane
from cstormpy.simulation import simulation
from cstormpy.simulation.live_session import LiveSession

reason = live.available({"QT_QPA_PLATFORM": "offscreen"})
pytestmark = pytest.mark.skipif(reason is not None, reason=f"no window here: {reason}")

TABLE = "the live window: what it costs"
ROUNDS = 7
MECH = cs.library.acrobot()
PANES = [
    LivePane("angles", "scope", ["q1", "q2"], unit="rad"),
    LivePane("torque", "scope", ["elbow"], unit="N m"),
    LivePane("robot", "mechanism", MECH.names, mechanism=MECH, push="plant"),
]


@pytest.fixture(autouse=True)
def off_screen(monkeypatch):
    monkeypatch.setenv("QT_QPA_PLATFORM", "offscreen")
    monkeypatch.setenv("CSTORMPY_LIVE_TEST", "1")


def drive(feed, act):
    feed._tell(say="drive", act=act)
    return feed._replies.get(timeout=20.0)


def opened(**options):
    feed = LiveFeed("benchmark")
    feed.show(PANES, **{"end": 10.0, "pace": None, **options})
    assert feed.wait_until_ready(60.0), feed.reason
    return feed


def test_one_sample(record_row):
    """A row of five numbers, as an array, while the window reads; and many at once, as a compiled run has them."""
    with opened() as feed:
        row, t, rows = np.zeros(5), np.zeros(1000), np.zeros((1000, 5))
        times = interleave(
            {
                "sample": lambda: feed.sample(0.0, row),
                "commands": feed.commands,
                "samples": lambda: feed.samples(t, rows),
            },
            rounds=ROUNDS,
        )
    for what, goal, count in (("sample", 1.0, 1), ("commands", 0.3, 1), ("samples", 0.1, 1000)):
        record_row("the live feed: one call [us]", call=what, time=times[what] * 1e6 / count, goal=goal)


def test_cpu_of_the_simulating_process(record_row, monkeypatch):
    """Two scopes and the mechanism at 30 frames/s, as fast as possible, interpreted: CPU with over without."""
    sim = cs.Simulation(progress=False, graphics=False, engine="interpreted", hold=False)
    bd = sim.blockdiagram()
    plant = bd.HYBRIDDYNAMICS(MECH, q0=[-1.5, 0.0], name="plant")
    controller = bd.CONTROLLER(MECH, "energy", name="controller")
    bd.connect(plant[0:2], controller[0:2])
    bd.connect(controller[0], plant[0])
    for name, signal in (("angles", plant[0]), ("torque", controller[0])):
        bd.connect(signal, bd.LIVESCOPE(name=name))
    bd.connect(plant[0], bd.MECHANISMVIEW(MECH, name="robot"))
    clock, frames, ours, shares = [], [], [0.0], []

    class Begun(LiveSession):  # its window stands before the clock runs, and says how often it has painted at the end
        def _begin(self):
            super()._begin()
            if self.feed is not None:
                assert self.feed.wait_until_ready(60.0), self.feed.reason
                frames.append((drive(self.feed, "look")["frames"], time.monotonic()))
            ours[0] = 0.0
            clock.append(time.process_time())

        def sample(self, t, x):
            begun, start = self._begun, time.thread_time()  # the first call makes the window
            super().sample(t, x)
            ours[0] += begun * (time.thread_time() - start)

        def finish(self):
            clock.append(time.process_time() - clock.pop())
            if self.feed is not None:
                shares.append(clock[-1] / (clock[-1] - ours[0]))
                painted, began = frames.pop()
                frames.append((drive(self.feed, "look")["frames"] - painted) / (time.monotonic() - began))
            super().finish()

    monkeypatch.setattr(simulation, "LiveSession", Begun)

    def run(shown):
        out = sim.run(bd, T=100.0, max_step=0.1, live=shown, pace=None, observer=begin)
        return clock[-1] / len(out.t)

    def begin(t, x):
        if t == 0.0:
            clock.append(time.process_time())

    run(False)  # compiles it
    alone, shown = [], []
    for _ in range(ROUNDS):
        alone.append(run(False))
        shown.append(run(True))
    ratio = median(b / a for a, b in zip(alone, shown, strict=True))
    record_row(TABLE, what="CPU per step, interpreted, with over without", value=ratio, goal=1.10)
    # where two processors share a core, the painting one slows the other down: this counts what we do alone
    record_row(TABLE, what="the same, by the CPU of our own calls", value=median(shares), goal=1.10)
    record_row(TABLE, what="CPU per step without [us]", value=median(alone) * 1e6)
    record_row(TABLE, what="frames per second meanwhile", value=median(frames), goal="about 30")


def test_start(record_row):
    """From nothing to a window on the screen, less what Python, Qt and pyqtgraph take by themselves."""
    whole, theirs, here = [], [], []
    path = os.pathsep.join(sys.path)
    code = "import pyqtgraph; from PySide6.QtWidgets import QApplication; QApplication([])"
    for _ in range(5):
        begin = time.perf_counter()
        subprocess.run([sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": path}, check=True)
        theirs.append(time.perf_counter() - begin)
        begin = time.perf_counter()
        feed = LiveFeed("start")
        here.append(time.perf_counter() - begin)
        feed.show(PANES, end=10.0)
        assert feed.wait_until_ready(60.0)
        drive(feed, "look")
        whole.append(time.perf_counter() - begin)
        feed.close()
    record_row(TABLE, what="start, our share [s]", value=median(whole) - median(theirs), goal=1.0)
    record_row(TABLE, what="start, with Python, Qt and pyqtgraph [s]", value=median(whole))
    record_row(TABLE, what="start, as the simulation waits for it [s]", value=median(here))


def test_lag(record_row):
    """At real time: how old the newest sample is when it is painted, the wait for the next frame included."""
    lags, painting = [], []
    with opened(begin=0.0, end=10.0, pace=1.0) as feed:
        zero = time.monotonic()
        row = np.zeros(5)
        for k in range(1500):
            t = time.monotonic() - zero
            row[:] = np.sin(t)
            feed.sample(t, row)
            time.sleep(0.002)
            if k % 50 == 49:
                seen = drive(feed, "lag")
                painting.append(seen["painted"] - seen["begin"])
                lags.append(seen["painted"] - zero - seen["newest"] + 0.033)
    record_row(TABLE, what="lag of the picture, half of the frames [ms]", value=median(lags) * 1e3)
    record_row(TABLE, what="lag of the picture, largest [ms]", value=max(lags) * 1e3, goal=100.0)
    record_row(TABLE, what="one frame, drawn and painted [ms]", value=median(painting) * 1e3, goal=33.0)


def test_pace(record_row):
    """At real time, in the window: how long five simulated seconds take, from the second sample on."""
    sim = cs.Simulation(progress=False, graphics=False)
    bd = cs.diagrams.load("acrobot").build(sim)
    stamps = []
    sim.run(bd, T=5.0, live=True, pace=1.0, observer=lambda t, _x: stamps.append((t, time.perf_counter())))
    stamps = [stamp for stamp in stamps if stamp[0] > 1.0]  # the window is there by then
    (t, begin), (last, end) = stamps[0], stamps[-1]
    record_row(
        TABLE, what="pace, simulated over real time, over 4 s", value=(last - t) / (end - begin), goal="1 +- 0.01"
    )


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="memory is read from /proc")
def test_memory_in_a_long_run(record_row):
    """Ten million samples: what the window's process and this one have grown by."""

    def resident(pid):
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20

    with opened(end=1e4) as feed:
        drive(feed, "look")
        pids = {"window": feed._process.pid, "simulation": os.getpid()}
        part = np.random.default_rng(0).normal(size=(20_000, 5))
        before = {name: resident(pid) for name, pid in pids.items()}
        for k in range(500):
            feed.samples((k + np.arange(20_000) / 20_000) * 20.0, part)
            if k % 5 == 4:
                drive(feed, "look")
        assert drive(feed, "look")["newest"] > 9999.0
        for name, pid in pids.items():
            record_row(
                TABLE, what=f"memory after 1e7 samples, {name} [MiB]", value=resident(pid) - before[name], goal=64
            )
