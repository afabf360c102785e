"""Runs and the process they are in: Ctrl-C, threads, what is printed, the line of progress."""

from __future__ import annotations

import copy
import io
import os
import pickle
import signal
import subprocess
import sys
import textwrap
import threading
import time

import pytest
from processes import ROOT, in_a_process

import cstormpy as cs
from cstormpy import reporting
from cstormpy.optimal import solving
from cstormpy.simulation import simulation


@pytest.fixture
def sim():
    return cs.Simulation()


def ramp(bd, rate=1.0):
    x = bd.INTEGRATOR(x0=0.0, name="x")
    bd.connect(bd.CONSTANT(rate), x)
    return x


# ------------------------------------------------------------------ Ctrl-C


def test_interrupt_returns_what_was_simulated(sim, caplog):
    bd = sim.blockdiagram()
    ramp(bd)
    me = threading.get_ident()

    def observer(t, x):
        if t > 0.5:
            signal.pthread_kill(me, signal.SIGINT)

    out = sim.run(bd, 1.0, observer=observer, watch="all")
    assert out.status == "interrupted" and "interrupted at t = 0.5" in out.message
    assert 0.5 < out.t[-1] < 0.55
    assert len(out.t) == len(out.x) == len(out.y)
    assert "samples until then are returned" in caplog.text
    # and the same diagram runs on from there
    assert sim.run(bd, 0.5, start=out.state).x[-1, 0] == pytest.approx(out.x[-1, 0] + 0.5)


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_ctrl_c_in_a_process():
    script = """
        import cstormpy as cs
        sim = cs.Simulation()
        bd = sim.blockdiagram()
        x, f = bd.INTEGRATOR(x0=1.0), bd.FUNCTION(lambda x: -x)
        bd.connect(x, f)
        bd.connect(f, x)
        out = sim.run(bd, 1e6, max_step=1e-3, at={0.1: lambda: print("ready", flush=True)})
        print(out.status, len(out.t) == len(out.x) > 10, flush=True)
    """
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(script)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert out == "interrupted True\n", err
    assert "Traceback" not in err
    assert err.count("\n") == 1 and "interrupted at t = " in err
    assert process.returncode == 0


# ------------------------------------------------------------------ the process is left alone


def test_nothing_is_printed(sim, capsys):
    """Neither by us nor by bdsim: a function with memory of its own, for one, prints at the start of each run, and a
    PID when it is made, which were two hundred lines in a sweep of two hundred runs."""
    bd = sim.blockdiagram()
    bd.connect(bd.CONSTANT(1.0), bd.LTI_SISO([[1.0], [2.0]], [[1.0, 1.0], [1.0, 2.0]]))
    pid = bd.PID(P=1.0, I=1.0, D=0.1, name="pid")
    bd.connect(bd.CONSTANT(1.0), pid[0], pid[1])
    f = bd.FUNCTION(lambda x, memory: x, persistent=True)
    bd.connect(ramp(bd), f, bd.SCOPE())
    hold = bd.ZOH(bd.clock(0.1))
    bd.connect(f, hold)
    sim.run(bd, 1.0)
    sim.run(bd, 1.0, watch="all", log_dt=0.1)
    captured = capsys.readouterr()
    assert captured.out == captured.err == ""


def test_a_print_block_still_prints(sim, capsys):
    bd = sim.blockdiagram()
    bd.connect(ramp(bd), bd.PRINT(fmt="{:.1f}"))
    sim.run(bd, 1.0, dt=0.5)
    assert [line.split()[-1] for line in capsys.readouterr().out.splitlines()] == ["0.0", "0.5", "1.0"]


def test_runs_in_threads_leave_standard_output_alone(sim):
    before, results = sys.stdout, []

    def run():
        own = cs.Simulation()
        for _ in range(5):
            bd = own.blockdiagram()
            ramp(bd)
            results.append(own.run(bd, 0.3).x[-1, 0])

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sys.stdout is before
    assert results == pytest.approx([0.3] * 20)


def test_submitted_runs(sim):
    jobs = []
    for rate in (1.0, 2.0):
        bd = sim.blockdiagram()
        ramp(bd, rate)
        jobs.append(sim.submit(bd, T=1.0))
    assert [job.result().x[-1, 0] for job in jobs] == pytest.approx([1.0, 2.0])


def test_the_command_line_is_left_alone():
    """bdsim itself would read these, and exit."""
    script = """
        import sys
        before = list(sys.argv)
        import cstormpy as cs
        sim = cs.Simulation()
        bd = sim.blockdiagram()
        bd.connect(bd.CONSTANT(1.0), bd.INTEGRATOR(name="x"), bd.SCOPE())
        out = sim.run(bd, 1.0)
        assert sys.argv == before, sys.argv
        assert sim.options.hold and not sim.options.graphics
        import matplotlib.pyplot as plt
        assert plt.get_fignums() == []
        assert not [name for name in sys.modules if name.startswith(("PySide", "PyQt"))]
    """
    arguments = ["-h", "--help", "-s", "x:gain=7", "-m", "-p", "-o", "-d", "ps", "--nonsense", "+g", "file.py"]
    done = in_a_process(script, arguments=arguments)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "" and done.stderr == ""


class Clock:
    """Stands in for the module time; it goes on only when it is told."""

    def __init__(self):
        self.now = 100.0

    def perf_counter(self):
        return self.now


def test_without_a_terminal_progress_is_a_line_every_some_seconds(monkeypatch, caplog):
    """Nothing was said for minutes where standard error was a pipe or a log file; then numbers without separators."""
    caplog.set_level("INFO", "cstormpy")
    clock = Clock()
    monkeypatch.setattr(reporting, "time", clock)
    with reporting.Progress("t", 0.0, 1000.0, "s") as progress:
        for second in range(401):
            clock.now = 100.0 + second
            progress.update(2.0 * second)
    assert caplog.messages[0] == "t = 20 of 1000 s, 2 %, 2 s/s, 0:08:10 h left"
    assert caplog.messages[1] == "t = 40 of 1000 s, 4 %, 2 s/s, 0:08:00 h left"
    assert 12 < len(caplog.messages) < 40, "of what takes long there are fewer"
    caplog.clear()
    with reporting.Progress("t", 0.0, 1000.0, "s", enabled=False) as progress:
        progress.update(0.0)
        clock.now += 100.0
        progress.update(1.0)
    assert not caplog.messages


def test_without_a_terminal_the_parts_of_a_search_are_told_apart(monkeypatch, caplog):
    """The line read "iteration 7 cost 2.5 violation 1.0e-08 best 2.5 12.0 s"."""
    caplog.set_level("INFO", "cstormpy")
    clock = Clock()
    monkeypatch.setattr(reporting, "time", clock)
    monkeypatch.setattr(solving, "time", clock)
    line = solving.SearchLine("coarse", 3)
    clock.now += 12.0
    line.show(1, 7, 2.5, 1e-8)
    (said,) = caplog.messages
    assert said == "coarse: start 2 of 3, iteration 7, cost 2.5, violation 1.0e-08, best 2.5, 12.0 s"


def test_progress_does_not_count_the_wait_for_a_window(monkeypatch, caplog):
    """Of a run of 3 s it was said "47 s left", since the window had taken 10 s to open."""
    caplog.set_level("INFO", "cstormpy")
    clock, idle = Clock(), [0.0]
    monkeypatch.setattr(reporting, "time", clock)
    progress = reporting.Progress("t", 0.0, 3.0, "s", idle=lambda: idle[0])
    clock.now += 12.0  # compiling
    idle[0] = 8.0  # of these for the window
    progress.update(0.0)
    clock.now += 10.0
    progress.update(1.0)
    clock.now, idle[0] = clock.now + 50.0, idle[0] + 40.0  # a pause
    progress.update(2.0)
    assert caplog.messages == ["t = 1 of 3 s, 33 %, 0.1 s/s, 20 s left", "t = 2 of 3 s, 67 %, 0.1 s/s, 10 s left"]


def test_a_short_run_shows_no_line_of_progress(sim, capsys):
    bd = sim.blockdiagram()
    ramp(bd)
    sim.run(bd, 1.0, observer=lambda t, x: time.sleep(0.007))
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("closed", [False, True])
def test_without_standard_error(sim, monkeypatch, closed):
    stream = io.StringIO()
    stream.close()
    monkeypatch.setattr(sys, "stderr", stream if closed else None)
    bd = sim.blockdiagram()
    ramp(bd)
    assert sim.run(bd, 0.1).status == "finished"


def test_the_line_of_progress_on_a_terminal(monkeypatch):
    class Terminal:
        def __init__(self):
            self.text = ""

        def isatty(self):
            return True

        def write(self, text):
            self.text += text

        def flush(self):
            pass

    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    for options, shown in (({}, True), ({"progress": False}, False), ({"quiet": True}, False)):
        terminal.text = ""
        sim = cs.Simulation(**options)
        bd = sim.blockdiagram()
        ramp(bd)
        sim.run(bd, 1.0, observer=lambda t, x, shown=shown: time.sleep(0.009 * shown))
        assert ("of 1 s" in terminal.text and "left" in terminal.text and "%" in terminal.text) == shown
        assert (terminal.text.endswith("\r") and "\n" not in terminal.text) or not shown


# ------------------------------------------------------------------ copies


class Bench(cs.Simulation):
    """One with an attribute of its own."""

    def __init__(self, place, **options):
        super().__init__(**options)
        self.place = place


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda sim: pickle.loads(pickle.dumps(sim))])
def test_a_simulation_is_copied_with_what_it_was_told(copied):
    """An object that held a simulation could not be copied: "cannot pickle '_thread._local' object"."""
    sim = Bench("cellar", engine="interpreted", live=False, graphics=False, progress=False, rtol=1e-3)
    sim.options.hold = False
    bd = sim.blockdiagram()
    ramp(bd)
    first = sim.run(bd, 1.0)
    again = copied(sim)
    assert type(again) is Bench and again.place == "cellar" and str(again) == str(sim)
    assert again.options.rtol == 1e-3 and again.options.hold is False
    again.post(lambda: pytest.fail("what is posted to a copy came to the other"))
    assert sim.run(bd, 1.0).x[-1] == first.x[-1]
    other = again.blockdiagram()
    ramp(other)
    assert copied(sim).run(other, 1.0).x[-1] == first.x[-1]


def test_a_copy_of_a_simulation_opens_no_window(monkeypatch):
    """Each copy, also in the processes of a pool, opened one at once, as the simulation itself is to do."""
    opened = []

    class Window:
        def __init__(self, title):
            opened.append(title)

        def close(self):
            pass

    monkeypatch.setattr(simulation, "LiveFeed", Window)
    sim = cs.Simulation(live=True, graphics=False, progress=False)
    copies = [copy.deepcopy(sim), pickle.loads(pickle.dumps(sim))]
    assert opened == ["cstormpy"] and all(each.live is True for each in copies)


def test_an_object_that_holds_a_simulation_and_a_diagram_is_copied(sim):
    lab = {"sim": sim, "bd": sim.blockdiagram()}
    ramp(lab["bd"])
    again = copy.deepcopy(lab)
    again["bd"]["constant.0"].value = 2.0
    assert again["sim"].run(again["bd"], 1.0).x[-1, 0] == pytest.approx(2.0)
    assert sim.run(lab["bd"], 1.0).x[-1, 0] == pytest.approx(1.0)


@pytest.mark.parametrize("part", [lambda bd: bd, lambda bd: bd["x"], lambda bd: [bd], lambda bd: bd.clock(1, "s")])
def test_a_diagram_that_is_pickled_says_what_to_send(sim, part):
    """It was: "Can't pickle local object 'Block.add_param.<locals>.default_handler'"."""
    bd = sim.blockdiagram("lag")
    ramp(bd)
    with pytest.raises(cs.errors.InvalidType, match=r"'lag' .* sim\.sweep\(build, "):
        pickle.dumps(part(bd))
