"""Ctrl-C during runs and sweeps: where it raises, where it is held; no result is lost, no process left waiting."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import cstormpy as cs
from cstormpy.graph.machine import Machine
from cstormpy.simulation import interrupts as module
from cstormpy.simulation.interrupts import Interrupts
from cstormpy.simulation.runner import Run

PACKAGE = str(Path(cs.__file__).parent)


@pytest.fixture(autouse=True)
def _handler():
    """Let the tests begin with Python's own handler, and see it again."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    left = signal.getsignal(signal.SIGINT)
    signal.signal(signal.SIGINT, before)
    assert left is signal.default_int_handler


@pytest.fixture
def clock(monkeypatch):
    """A clock that goes on by hand."""

    class Clock:
        now = 100.0

        def monotonic(self):
            return self.now

        def sleep(self, seconds):
            self.now += seconds

    clock = Clock()
    monkeypatch.setattr(module, "time", clock)
    return clock


def press():
    signal.raise_signal(signal.SIGINT)


def test_it_raises_where_it_is_not_held(clock):
    with Interrupts() as interrupts:
        with pytest.raises(KeyboardInterrupt):
            press()
        assert interrupts.pressed


def test_it_is_noted_where_it_is_held_and_raises_when_pressed_again(clock):
    with Interrupts() as interrupts:
        interrupts.hold()
        press()
        assert interrupts.pressed and interrupts.just_pressed()
        clock.now += 5.0
        assert interrupts.pressed and not interrupts.just_pressed()
        with pytest.raises(KeyboardInterrupt):
            press()


def test_what_follows_at_once_is_the_same(clock):
    """A terminal sends it to all processes of a group, and `timeout` once more to its own."""
    with Interrupts() as interrupts:
        with pytest.raises(KeyboardInterrupt):
            press()
        clock.now += 0.01
        press()
        interrupts.hold()
        clock.now += 0.5
        press()
        clock.now += 0.6
        press()  # the first that is another one: held
        clock.now += 1.1
        with pytest.raises(KeyboardInterrupt):
            press()


def test_its_end_waits_for_what_follows_at_once(clock):
    with Interrupts() as interrupts:
        interrupts.hold()
        press()
    assert clock.now == pytest.approx(100.2, abs=0.05)


def test_a_handler_of_somebody_else_is_let_alone():
    calls = []
    signal.signal(signal.SIGINT, lambda *_: calls.append(0))
    with Interrupts() as interrupts:
        interrupts.hold()
        press()
    assert calls == [0] and not interrupts.pressed
    signal.signal(signal.SIGINT, signal.default_int_handler)


def test_one_within_another_gives_back_the_place():
    with Interrupts() as outer:
        outer.hold()
        with Interrupts():
            pass
        press()
        assert outer.pressed


def test_one_within_another_is_told_of(clock):
    with Interrupts() as outer:
        outer.hold()
        with Interrupts() as inner:
            inner.hold()
            press()
        assert outer.pressed


def test_a_wait_ends_by_it(clock):
    with Interrupts() as interrupts:
        interrupts.hold()
        interrupts.end_wait(press)
        assert interrupts.pressed
        clock.now += 5.0
        press()  # held again


class PressAt:
    """A trace that presses Ctrl-C at the k-th line of the package behind the last step of a run."""

    def __init__(self, k):
        self.k, self.lines, self.ended = k, 0, False

    def __call__(self, frame, event, arg):
        return self.line if frame.f_code.co_filename.startswith(PACKAGE) else None

    def line(self, frame, event, arg):
        if event == "return" and frame.f_code is Run.go.__code__:
            self.ended = True
        if self.ended and event == "line":
            self.lines += 1
            if self.lines == self.k:
                press()
        return self.line


@pytest.mark.slow
@pytest.mark.parametrize(("engine", "stride"), [("interpreted", 1), ("compiled", 7), ("with a report", 151)])
def test_behind_the_last_step_it_loses_no_run(tmp_path, monkeypatch, engine, stride):
    """A run of an hour was gone where Ctrl-C came between its last step and its return: one time in twelve."""
    monkeypatch.setattr(module, "_REPEATED", 0.0)
    options = {"report": tmp_path / "run.html"} if engine == "with a report" else {}
    sim = cs.Simulation(engine="compiled" if engine == "compiled" else "interpreted", live=False)
    bd = decay(sim)
    expected = sim.run(bd, 0.2, watch="all", **options)
    pressed, k, before = 0, 1, sys.gettrace()
    while True:
        press_at = PressAt(k)
        sys.settrace(press_at)
        try:
            out = sim.run(bd, 0.2, watch="all", **options)
        finally:
            sys.settrace(before)
        np.testing.assert_array_equal(out.x, expected.x)
        np.testing.assert_array_equal(out.y, expected.y)
        assert out.status in ("finished", "interrupted") and out.t[-1] == 0.2
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
        if press_at.lines < k:
            break
        pressed, k = pressed + 1, k + stride
    assert pressed > 20


def test_a_comparison_ends_with_the_run_that_had_it_behind_its_last_step(monkeypatch):
    monkeypatch.setattr(module, "_REPEATED", 0.0)
    go = Run.go

    def go_and_press(run):
        go(run)
        press()

    monkeypatch.setattr(Run, "go", go_and_press)
    found = cs.compare("pendulum", {"damping": [0.5, 1.0, 2.0]}, T=0.1)
    assert [row["status"] for row in found.rows] == ["finished"]


def test_a_sweep_gives_back_the_handler():
    sim = cs.Simulation(engine="interpreted", live=False)
    found = sim.sweep(decay, {"state:x_0": [1.0, 2.0, 3.0]}, pressed_in_the_measure, T=0.1)
    assert found.status == "interrupted" and found.done.sum() == 0


def decay(sim):
    bd = sim.blockdiagram("decay")
    state = bd.INTEGRATOR(x0=1.0, name="state")
    gain = bd.GAIN(-1.0, name="rate")
    bd.connect(state, gain)
    bd.connect(gain, state)
    return bd


def final(out):
    return out.x[-1, 0]


def pressed_in_the_measure(out):
    press()
    return final(out)


SCRIPT = """
import sys
sys.path.insert(0, {tests!r})
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context, parent_process
import cstormpy as cs
from test_interrupts import decay

def final(out):
    if parent_process() is None:  # the first run is carried out there
        print("begins", flush=True)
    return out.x[-1, 0]

if __name__ == "__main__":
    sim = cs.Simulation(engine="interpreted", live=False)
    grid = {{"state:x_0": [float(k) for k in range(1, 20001)]}}
    with ProcessPoolExecutor(2, get_context({kind!r})) as pool:
        found = sim.sweep(decay, grid, final, T=0.01, executor=pool)
        print(found.status, 0 < found.done.sum() < 20000)
    print("left the pool")
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "killpg"), reason="there are no process groups on this system")
@pytest.mark.parametrize("kind", ["fork", "spawn"])
def test_a_pool_ends_whose_processes_get_it_too(tmp_path, kind):
    """A worker that was interrupted while it handed back a result kept the lock of the pipe, and all waited for it."""
    script = tmp_path / "script.py"
    script.write_text(SCRIPT.format(tests=str(Path(__file__).parent), kind=kind))
    environment = {**os.environ, "PYTHONPATH": str(Path(cs.__file__).parent.parent)}
    process = subprocess.Popen(
        [sys.executable, str(script)], env=environment, stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        assert process.stdout.readline() == "begins\n"
        time.sleep(0.7)
        for _ in range(4):
            os.killpg(process.pid, signal.SIGINT)
            time.sleep(0.002)
        said, _ = process.communicate(timeout=40.0)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
    assert said.splitlines() == ["interrupted True", "left the pool"] and process.returncode == 0


def test_a_handler_of_c_is_let_alone(monkeypatch):
    """It is None for Python, which could not put it back: a run raised a TypeError instead of its result."""
    monkeypatch.setattr(signal, "getsignal", lambda number: None)
    with Interrupts():
        pass
    monkeypatch.undo()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("which", [0, 1])
@pytest.mark.parametrize("kept", [False, True])
def test_one_within_a_callback_of_llvm_is_not_lost(monkeypatch, kept, which):
    """What a callback raises is dropped on its way through C: an IndexError followed, or a LookupError."""
    from llvmlite.binding import ExecutionEngine

    text = "define i32 @three() { ret i32 3 }"
    made, hand_over = Machine(text), ExecutionEngine.set_object_cache
    assert Machine(code=made.code).address("three") > 0

    def press(*arguments):
        raise KeyboardInterrupt

    def pressed(engine, notify, ask):
        hand_over(engine, *((press, ask) if which == 0 else (notify, press)))

    monkeypatch.setattr(ExecutionEngine, "set_object_cache", pressed)
    if kept and which == 0:  # nothing new is made, so that it is not called
        assert Machine(code=made.code).code == made.code
        return
    with pytest.raises(KeyboardInterrupt):
        Machine(code=made.code) if kept else Machine(text)
