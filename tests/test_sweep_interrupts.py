"""Ctrl-C during a sweep: where it raises, where it is held, and that no process is left waiting for another."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import cstormpy as cs
from cstormpy.simulation.sweep import interrupts as module
from cstormpy.simulation.sweep.interrupts import Interrupts


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
from test_sweep_interrupts import decay

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
