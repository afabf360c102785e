"""What goes wrong while a diagram runs: one message that names block and port, and the data until then."""

from __future__ import annotations

import io
import math
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from bdsim.components import ContinuousBlock, FunctionBlock, SampledBlock, SinkBlock

import cstormpy as cs
from cstormpy import reporting
from cstormpy.optimal import progress as search_line

ROOT = Path(cs.__file__).resolve().parent.parent


@pytest.fixture
def sim():
    return cs.Simulation()


def ramp(bd, rate=1.0):
    x = bd.INTEGRATOR(x0=0.0, name="x")
    bd.connect(bd.CONSTANT(rate), x)
    return x


def in_a_process(script, **options):
    """Return how a script in a fresh process ended, run from elsewhere, without a display."""
    environment = {k: v for k, v in os.environ.items() if k not in ("DISPLAY", "WAYLAND_DISPLAY", "MPLBACKEND")}
    environment["PYTHONPATH"] = str(ROOT)
    arguments = options.pop("arguments", [])
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script), *arguments],
        env={**environment, **options.pop("environment", {})},
        capture_output=True,
        text=True,
        timeout=60,
        **options,
    )


# ------------------------------------------------------------------ what a block does wrong


class Faulty(FunctionBlock):
    """Fails in one of its methods at one time."""

    nin, nout = 1, 1

    def __init__(self, where, when=0.5, **blockargs):
        super().__init__(**blockargs)
        self.where, self.when = where, when

    def fail(self, where, t):
        if self.where == where and t >= self.when:
            raise ZeroDivisionError("by nothing")

    def output(self, t, u, x):
        self.fail("output", t)
        return [u[0]]

    def start(self, simstate):
        self.fail("start", self.when)

    def reset(self):
        super().reset()
        self.fail("reset", self.when)


class FaultyState(ContinuousBlock):
    nin, nout = 1, 1

    def __init__(self, **blockargs):
        super().__init__(x0=[0.0], **blockargs)

    def output(self, t, u, x):
        return [x[0]]

    def deriv(self, t, u, x):
        if t >= 0.5:
            raise ZeroDivisionError("by nothing")
        return np.ones(1)


class FaultySample(SampledBlock):
    nin, nout = 1, 1

    def __init__(self, clock, **blockargs):
        super().__init__(clock, x0=[0.0], **blockargs)

    def output(self, t, u, x):
        return [x[0]]

    def next(self, t, u, x):
        if t >= 0.5:
            raise ZeroDivisionError("by nothing")
        return np.ones(1)


class FaultySink(SinkBlock):
    nin = 1

    def step(self, t, u):
        if t >= 0.5:
            raise ZeroDivisionError("by nothing")


MAKERS = {
    "output": lambda bd: Faulty("output", bd=bd, name="bad"),
    "rate of the state": lambda bd: FaultyState(bd=bd, name="bad"),
    "next state": lambda bd: FaultySample(bd.clock(0.1), bd=bd, name="bad"),
    "step": lambda bd: FaultySink(bd=bd, name="bad"),
}


@pytest.mark.parametrize("operation", MAKERS)
def test_an_exception_inside_a_block(sim, operation, capsys, caplog):
    bd = sim.blockdiagram()
    bd.connect(ramp(bd), MAKERS[operation](bd))
    out = sim.run(bd, 1.0, watch=["x"])
    assert out.status == "failed"
    for part in ("block 'bad'", operation, "ZeroDivisionError: by nothing", "output port 0 of block 'x'", "at t = 0.5"):
        assert part in out.message
    assert 0.4 < out.t[-1] <= 0.51
    assert len(out.x) == len(out.y) == len(out.t)
    assert capsys.readouterr().out == ""
    assert [record.getMessage() for record in caplog.records] == [
        f"{out.message}; {len(out.t)} samples until then are returned"
    ]
    with pytest.raises(cs.BlockError, match="bad") as caught:
        sim.run(bd, 1.0, on_error="raise")
    assert isinstance(caught.value.__cause__, ZeroDivisionError)
    assert len(caught.value.result.t) == len(out.t)


@pytest.mark.parametrize("where", ["start", "reset"])
def test_an_exception_before_the_first_sample_is_raised(sim, where):
    bd = sim.blockdiagram()
    bd.connect(ramp(bd), Faulty(where, when=-1.0, bd=bd, name="bad"))
    with pytest.raises(cs.CstormError, match="by nothing"):
        sim.run(bd, 1.0)


@pytest.mark.parametrize("bad", [math.nan, math.inf, [1.0, math.nan], np.nan, complex(0, math.nan)])
def test_a_value_that_is_not_finite(sim, bad):
    bd = sim.blockdiagram()
    time_ = bd.TIME()
    f = bd.FUNCTION(lambda t: np.asarray(bad) if t > 0.5 else np.zeros(np.shape(bad)), name="user")
    bd.connect(time_, f)
    ramp(bd)
    out = sim.run(bd, 1.0)
    assert out.status == "failed"
    assert "output port 0 of block 'user'" in out.message and ("nan" in out.message or "inf" in out.message)
    assert 0.48 < out.t[-1] < 0.52 and "at t = 0.50" in out.message
    assert sim.run(bd, 1.0, checkfinite=False).status == "finished"


def test_nan_into_a_state_ends_the_run_with_the_last_good_state(sim):
    bd = sim.blockdiagram()
    x, root = bd.INTEGRATOR(x0=1.0, name="x"), bd.FUNCTION(lambda x: np.sqrt(x) - 2.0, name="root")
    bd.connect(x, root)
    bd.connect(root, x)
    with np.errstate(invalid="ignore"):
        out = sim.run(bd, 5.0)
    assert out.status == "failed"
    assert "output port 0 of block 'root' (FUNCTION) is nan" in out.message
    assert np.isfinite(out.x).all() and len(out.t) > 10
    assert np.isfinite(out.state.continuous["x"]).all()


@pytest.mark.parametrize("engine", ["interpreted", "compiled"])
def test_steps_that_are_too_long_are_named(engine):
    """A diagram that is stable but for the length of its steps ended with the names of what overflowed."""
    sim = cs.Simulation(graphics=False, engine=engine)
    bd = sim.blockdiagram()
    bd.connect(x := bd.INTEGRATOR(x0=1.0, name="x"), cube := bd.FUNCTION(lambda u: -(u**3)))
    bd.connect(cube, x)
    assert sim.run(bd, T=10.0, solver="RK4", dt=0.01).status == "finished"
    out = sim.run(bd, T=100.0, solver="RK4", dt=5.0)
    assert out.status == "failed" and out.message.endswith("perhaps as dt = 5 s is too long a step")


def test_a_state_that_blows_up(sim):
    """x' = x², from 1: infinite at t = 1."""
    bd = sim.blockdiagram()
    x, square = bd.INTEGRATOR(x0=1.0, name="x"), bd.FUNCTION(lambda x: x * x)
    bd.connect(x, square)
    bd.connect(square, x)
    for solver in ("RK45", "DOP853", "Radau", "LSODA"):
        with np.errstate(all="ignore"):
            out = sim.run(bd, 2.0, solver=solver)
        assert out.status == "failed", solver
        assert out.t[-1] == pytest.approx(1.0, abs=1e-2)
        assert ("x" in out.message and "at t = 1" in out.message) or "0.99" in out.message
        assert np.isfinite(out.x).all()
    with np.errstate(all="ignore"):
        out = sim.run(bd, 2.0, solver="RK4", dt=0.01)
    assert out.status == "failed" and 1.0 < out.t[-1] < 1.2


@pytest.mark.parametrize("value", [5.0, None, {1: 2}, "text", (1, 2), []])
def test_an_output_that_is_no_list_of_its_length(sim, value):
    class Wrong(FunctionBlock):
        nin, nout = 1, 1

        def output(self, t, u, x):
            return value

    bd = sim.blockdiagram()
    bd.connect(ramp(bd), Wrong(bd=bd, name="wrong"))
    with pytest.raises(cs.BlockError, match=r"block 'wrong'.* must return (a list of 1 value|1 value)"):
        sim.run(bd, 1.0)


@pytest.mark.parametrize("value", [[1.0, 2.0], np.ones(3), None, "text", np.ones((1, 2))])
def test_a_rate_of_another_width(sim, value):
    class Wrong(FaultyState):
        def deriv(self, t, u, x):
            return value

    bd = sim.blockdiagram()
    bd.connect(ramp(bd), Wrong(bd=bd, name="wrong"))
    with pytest.raises(cs.CstormError, match="block 'wrong'"):
        sim.run(bd, 1.0)


def test_an_integrator_narrower_than_its_signal(sim):
    bd = sim.blockdiagram()
    bd.connect(bd.CONSTANT([1.0, 2.0]), bd.INTEGRATOR(x0=0.0, name="narrow"))
    with pytest.raises(
        cs.DiagramError, match=r"block 'narrow' \(INTEGRATOR\): has 1 state, .*shape \(2,\).*initial state"
    ):
        sim.run(bd, 1.0)


def test_an_exception_in_a_handler_of_events(sim):
    bd = sim.blockdiagram()
    x = ramp(bd)
    late = bd.FUNCTION(lambda x: x - 0.5)
    bd.connect(x, late)

    def handler(block, states):
        raise KeyError("missing")

    bd.connect(late, bd.EVENT("^", handler, name="event"))
    out = sim.run(bd, 1.0)
    assert out.status == "failed" and "block 'event'" in out.message and "event handler" in out.message
    assert out.t[-1] == pytest.approx(0.5, abs=0.02)


@pytest.mark.parametrize("way", ["at", "observer", "post"])
def test_an_exception_in_a_function_of_the_user(sim, way):
    bd = sim.blockdiagram()
    ramp(bd)

    def fail(t=0.5, x=None):
        if t >= 0.5:
            raise KeyError("missing")

    options = {"at": {0.5: fail}} if way == "at" else {"observer": fail} if way == "observer" else {}
    if way == "post":
        options = {"at": {0.5: lambda: sim.post(fail)}}
    out = sim.run(bd, 1.0, **options)
    assert out.status == "failed" and "KeyError: 'missing'" in out.message and "t = 0.5" in out.message
    assert len(out.t) > 40


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


# ------------------------------------------------------------------ wrong arguments of run

WRONG = {
    "T": [0, -1.0, math.nan, math.inf, None, "long", [1.0], object()],
    "dt": [0, -1.0, math.nan, math.inf, "fine", [], object()],
    "max_step": [0, -1.0, math.nan, "small", object()],
    "solver": ["RK99", "", None, 5, object(), int, []],
    "solver_args": [5, "x", [1], {"rtol": -1}, {"rtol": "x"}, {"max_step": "x"}],
    "rtol": [-1.0, 0, math.nan, "x", [], object()],
    "atol": [-1.0, math.nan, "x", object()],
    "log_dt": [0, -1.0, math.nan, "x", object()],
    "first_tick": [1, "ours", None, [], np.zeros(2)],
    "start": [5, "x", [1.0, 2.0], [math.nan], object(), {"t": 0}, [[1.0]]],
    "at": [5, [1], {"x": print}, {0.1: 5}, {-1.0: print}, {math.nan: print}, {None: print}, lambda: None],
    "observer": [5, "x", [print]],
    "on_error": ["ignore", None, 5, []],
    "watch": [5, 5.0, object(), ["nowhere"], "nowhere", ["x[7]"], ["x.nothing"], [None], [[]], {"x": 1, 5: 6}],
    "debug": [5, [], object()],
}


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in WRONG.items() for value in values])
def test_wrong_arguments_are_refused_by_name(sim, name, value):
    bd = sim.blockdiagram()
    ramp(bd)
    with pytest.raises(cs.CstormError) as caught:
        sim.run(bd, **{"T": 0.2, name: value})
    assert name in str(caught.value) or (name == "solver_args" and "expected a positive" in str(caught.value))
    # and nothing is left behind
    assert sim.run(bd, 0.2).status == "finished"


@pytest.mark.parametrize("thing", [None, 5, "diagram", object(), [], np.zeros(3)])
def test_run_of_what_is_no_diagram(sim, thing):
    with pytest.raises(cs.InvalidType, match="expected a diagram"):
        sim.run(thing)


def test_run_of_an_empty_diagram(sim):
    with pytest.raises(cs.DiagramError, match=r"diagram 'main': has no blocks; make some"):
        sim.run(sim.blockdiagram())


@pytest.mark.parametrize("options", [{"engine": "warp"}, {"grafics": True}, {"engine": None}])
def test_wrong_options_of_a_simulation(options):
    with pytest.raises(cs.UnknownName):
        cs.Simulation(**options)


# ------------------------------------------------------------------ the process is left alone


def test_nothing_is_printed(sim, capsys):
    """Neither by us nor by bdsim: a function with memory of its own, for one, prints at the start of each run."""
    bd = sim.blockdiagram()
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
    monkeypatch.setattr(search_line, "time", clock)
    line = search_line.SearchLine("coarse", 3)
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


# Steps that stay short ----------------------------------------------------------------------------------


def signed(sim, function):
    bd = sim.blockdiagram()
    state, switch = bd.INTEGRATOR(x0=1.0, name="state"), bd.FUNCTION(function, name="switch")
    bd.connect(state, switch)
    bd.connect(switch, state)
    return bd


@pytest.mark.parametrize("engine", ["interpreted", "compiled"])
def test_a_switch_that_holds_up_the_solver_is_named_once(engine, caplog):
    sim = cs.Simulation(engine=engine)
    caplog.set_level("INFO", "cstormpy")
    assert sim.run(signed(sim, lambda x: -1.0 if x > 0 else 1.0), T=1.0009).status == "finished"
    said = [line for line in caplog.messages if line.startswith("steps of ")]
    assert len(said) == 1 and "'switch' (FUNCTION) jumps to and fro" in said[0] and "hysteresis" in said[0]
    assert "since t = 1.000" in said[0]


def test_a_switch_at_which_a_run_begins_is_named(caplog):
    """A swing about the point of switching is as small as its errors: no look ahead sees it, one to the sides does."""
    sim = cs.Simulation(engine="compiled")
    caplog.set_level("INFO", "cstormpy")
    bd = sim.blockdiagram()
    speed, place = bd.INTEGRATOR(x0=0.0), bd.INTEGRATOR(x0=0.0)
    switch = bd.FUNCTION(lambda x: -1.0 if x > 0 else 1.0, name="switch")
    bd.connect(speed, place)
    bd.connect(place, switch)
    bd.connect(switch, speed)
    sim.run(bd, T=0.02, max_step=1.0)
    (said,) = [line for line in caplog.messages if line.startswith("steps of ")]
    assert "'switch' (FUNCTION) jumps to and fro" in said


def test_a_stiff_state_that_holds_up_the_solver_is_named(sim, caplog):
    caplog.set_level("INFO", "cstormpy")
    sim.run(signed(sim, lambda x: -1e7 * x), T=4e-3, max_step=1.0)
    (said,) = [line for line in caplog.messages if line.startswith("steps of ")]
    assert "state 'state" in said and "Radau" in said


@pytest.mark.parametrize("engine", ["interpreted", "compiled"])
def test_a_switch_that_would_hold_up_the_solver_for_ever_ends_the_run(engine):
    """The sign of a sliding variable: millions of steps were ahead, two minutes of them interpreted."""
    sim = cs.Simulation(engine=engine)
    bd = sim.blockdiagram()
    place, speed = bd.INTEGRATOR(x0=0.1, name="place"), bd.INTEGRATOR(x0=0.0, name="speed")
    switch = bd.FUNCTION(lambda x, v: -20.0 if x + v > 0.0 else 20.0, nin=2, name="switch")
    bd.connect(speed, place)
    bd.connect(place, switch[0])
    bd.connect(speed, switch[1])
    bd.connect(switch, speed)
    out = sim.run(bd, T=1.0)
    assert out.status == "failed" and 5000 < len(out.t) < 20000
    for part in ("'switch' (FUNCTION) jumps to and fro", "hysteresis", "bd.ZOH(bd.clock("):
        assert part in out.message


@pytest.mark.parametrize("engine", ["interpreted", "compiled"])
def test_a_relay_that_switches_all_the_time_ends_the_run(engine):
    sim = cs.Simulation(engine=engine)
    bd = sim.blockdiagram()
    speed, relay = bd.INTEGRATOR(x0=0.01, name="speed"), bd.RELAY(1e-7, -1e-7, on=-1.0, off=1.0, name="bang")
    bd.connect(speed, relay)
    bd.connect(relay, speed)
    out = sim.run(bd, T=1.0)
    assert out.status == "failed" and len(out.t) < 3000
    assert out.message.startswith("bang: 1000 events within 0.0002") and "wider hysteresis" in out.message
    assert sim.run(bd, T=0.0105).status == "finished"  # the events ahead are few


@pytest.mark.parametrize("engine", ["interpreted", "compiled"])
@pytest.mark.parametrize("solver", ["RK45", "DOP853"])
def test_a_stiff_state_that_would_hold_up_an_explicit_solver_for_ever_ends_the_run(engine, solver):
    """It went on until its samples filled the memory."""
    sim = cs.Simulation(engine=engine)
    bd = signed(sim, lambda x: -1e9 * x)
    out = sim.run(bd, T=1.0, solver=solver)
    assert out.status == "failed" and 5000 < len(out.t) < 20000
    assert "state 'state" in out.message and "'Radau' or 'BDF'" in out.message
    assert sim.run(bd, T=1.0, solver="BDF").status == "finished"


def test_a_fast_swing_is_not_stiff(sim):
    """Its steps are short since it is followed; no other solver would take longer ones."""
    bd = sim.blockdiagram()
    place, speed, pull = bd.INTEGRATOR(x0=1.0), bd.INTEGRATOR(x0=0.0), bd.GAIN(-1e16)
    bd.connect(speed, place)
    bd.connect(place, pull)
    bd.connect(pull, speed)
    out = sim.run(bd, T=1.0, observer=lambda t, x: sim.stop(bd) if t > 2e-5 else None)
    assert "Radau" not in out.message and out.t[-1] > 2e-5


def test_short_steps_that_were_asked_for_are_no_reason_to_say_anything(sim, caplog):
    caplog.set_level("INFO", "cstormpy")
    sim.run(signed(sim, lambda x: -x), T=0.003, max_step=1e-6)
    sim.run(signed(sim, lambda x: -x), T=0.003, solver="Euler", dt=1e-6)
    assert not [line for line in caplog.messages if line.startswith("steps of ")]


@pytest.mark.parametrize("engine", ["interpreted", "compiled"])
def test_what_fails_just_ahead_of_the_last_step_keeps_what_was_simulated(engine):
    """A state that runs away until its rate cannot be computed: the run says so, and returns how it came there."""
    sim = cs.Simulation(engine=engine)
    bd = sim.blockdiagram()
    state, rate = bd.INTEGRATOR(x0=0.0, name="state"), bd.FUNCTION(lambda x: math.exp(10.0 * x * x), name="rate")
    bd.connect(state, rate)
    bd.connect(rate, state)
    out = sim.run(bd, T=1.0)
    assert out.status == "failed" and len(out.t) > 20
    assert "'rate' (FUNCTION), output at t = " in out.message and "OverflowError: math range error" in out.message
