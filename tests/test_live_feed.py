"""The live window as a process of its own: its controls, its ends, and what is left when either side dies."""

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from live_runs import wait_for

from cstormpy import library, live
from cstormpy.errors import InvalidType, InvalidValue
from cstormpy.live import Knob, LawChoice, LiveFeed, LivePane, availability
from cstormpy.reporting import notice_once

has_qt = find_spec("PySide6") is not None and live.available({"QT_QPA_PLATFORM": "offscreen"}) is None
needs_qt = pytest.mark.skipif(not has_qt, reason="needs PySide6 and its libraries")
posix = pytest.mark.skipif(sys.platform == "win32", reason="needs signals and /proc")

ACROBOT = library.acrobot()
PANES = [
    LivePane("angles", "scope", ["q1", "q2"], unit="rad"),
    LivePane("phase", "xy", ["q1", "qd1"]),
    LivePane("robot", "mechanism", ACROBOT.names, mechanism=ACROBOT, push="plant"),
]
CONTROLS = [
    Knob("controller", "ke", 20.0),
    Knob("controller", "offset", 0.0),
    Knob("plant", "bias", 1.0, low=0.0, high=2.0, index=1, unit="N"),
    LawChoice("controller", ["energy", "pfl", "lqr"], "energy"),
]


@pytest.fixture(autouse=True)
def off_screen(monkeypatch):
    monkeypatch.setenv("QT_QPA_PLATFORM", "offscreen")
    monkeypatch.setenv("CSTORMPY_LIVE_TEST", "1")
    notice_once.cache_clear()


@pytest.fixture(scope="module")
def shown():
    """Return a window that shows a second of a run, which all tests of controls share."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("QT_QPA_PLATFORM", "offscreen")
        patch.setenv("CSTORMPY_LIVE_TEST", "1")
        with LiveFeed("controls") as feed:
            feed.show(PANES, CONTROLS, end=10.0)
            write(feed, 0.0, 1.0, 101)
            assert feed.wait_until_ready(60.0), feed.reason
            assert feed.seen.is_set()  # it said that it is starting before
            wait_for(lambda: look(feed)["newest"] == 1.0)
            yield feed


def write(feed, begin, end, count):
    """Send samples of a swing, and return them."""
    t = np.linspace(begin, end, count)
    rows = np.column_stack([np.sin(t), np.cos(3 * t), np.sin(t), np.cos(t), -1.5 + 0.3 * np.sin(t), 0.2 * t])
    for time_, row in zip(t.tolist(), rows, strict=True):
        feed.sample(time_, row)
    return t, rows


def drive(feed, act, **message):
    """Use the window as its user would, and return what it answers."""
    feed._tell(say="drive", act=act, **message)
    answer = feed._replies.get(timeout=20.0)
    assert "error" not in answer, answer
    return answer


def look(feed):
    return drive(feed, "look")


def asked(feed):
    """Return the next commands of the window."""
    assert feed.wait(20.0)
    return list(feed.commands())


def lives(pid):
    """Return whether a process is there, and no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


# --- each control, through the real widgets


@needs_qt
def test_a_slider_sets_a_parameter(shown):
    drive(shown, "slide", control="controller.ke slider", value=60)
    last = asked(shown)[-1]
    assert (last["do"], last["block"], last["name"], last["index"]) == ("set", "controller", "ke", None)
    assert last["value"] == pytest.approx(0.2 * 10 ** (4 * 0.6), rel=1e-3), "by factors, from a hundredth"
    drive(shown, "slide", control="plant.bias[1] slider", value=75)
    assert asked(shown)[-1] == {"do": "set", "block": "plant", "name": "bias", "index": 1, "value": 1.5}


@needs_qt
def test_a_value_is_typed(shown):
    drive(shown, "type", control="controller.offset value", value="-12.5")
    assert asked(shown) == [{"do": "set", "block": "controller", "name": "offset", "index": None, "value": -12.5}]


@needs_qt
def test_the_law_is_chosen(shown):
    drive(shown, "choose", control="controller law", value="lqr")
    assert asked(shown)[-1] == {"do": "law", "block": "controller", "name": "lqr"}


@needs_qt
def test_the_pace_is_chosen(shown):
    drive(shown, "choose", control="pace", value="2 × real time")
    assert asked(shown)[-1] == {"do": "pace", "value": 2.0}
    drive(shown, "choose", control="pace", value="as fast as possible")
    assert asked(shown)[-1] == {"do": "pace", "value": None}


@needs_qt
def test_pause_run_step_and_stop(shown):
    drive(shown, "click", control="run")
    assert asked(shown) == [{"do": "pause"}]
    shown.state("paused", 1.0)
    wait_for(lambda: look(shown)["state"] == "paused")
    drive(shown, "click", control="step")
    drive(shown, "click", control="run")
    drive(shown, "click", control="stop")
    time.sleep(0.1)
    assert [command["do"] for command in asked(shown)] == ["step", "run", "stop"]
    shown.state("running", 2.0, "at two")
    seen = wait_for(lambda: (s := look(shown))["state"] == "running" and s)
    assert seen["pace"] == "2 × real time"


@needs_qt
def test_back_and_forward_go_through_what_was_logged(shown):
    shown.state("running", 1.0)
    wait_for(lambda: look(shown)["state"] == "running")
    newest = look(shown)["newest"]
    drive(shown, "click", control="back")
    drive(shown, "click", control="back")
    assert asked(shown)[0] == {"do": "pause"}, "a run that goes on is paused first"
    seen = look(shown)
    assert not seen["live"] and seen["now"] == pytest.approx(newest - 0.02)
    drive(shown, "click", control="forward")
    assert look(shown)["now"] == pytest.approx(newest - 0.01)
    drive(shown, "click", control="live")
    wait_for(lambda: look(shown)["now"] == newest)
    list(shown.commands())


@needs_qt
def test_the_time_is_scrubbed(shown):
    drive(shown, "press", control="time", at=[60, 10])
    seen = look(shown)
    assert not seen["live"] and 0.0 < seen["now"] < 1.0
    drive(shown, "release", control="time", at=[60, 10])
    drive(shown, "click", control="live")
    assert look(shown)["live"]


@needs_qt
def test_a_link_is_pushed_and_let_go(shown):
    at = drive(shown, "link", control="robot picture", link=1)["at"]
    drive(shown, "press", control="robot picture", at=at)
    drive(shown, "move", control="robot picture", at=[at[0] + 40, at[1]])
    time.sleep(0.15)
    pushes = asked(shown)
    assert {push["do"] for push in pushes} == {"push"}
    last = pushes[-1]
    assert (last["block"], last["link"]) == ("plant", "forearm")
    fx, fy, fz = last["force"]
    assert fx > 1.0 and abs(fy) < 0.2 * fx and abs(fz) < 1e-9, "in the base frame, to where the mouse went"
    assert 0.0 < last["point"][0] < 2.0 and abs(last["point"][1]) < 0.2, "a point of the link, in its frame"
    drive(shown, "release", control="robot picture", at=[at[0] + 40, at[1]])
    assert asked(shown)[-1] == {"do": "release"}


@needs_qt
def test_the_scope_shows_what_was_logged(shown):
    seen = wait_for(lambda: (s := look(shown))["curves"]["angles"][0][0] and s)
    t = np.linspace(0.0, 1.0, 101)
    for trace, values in zip(seen["curves"]["angles"], (np.sin(t), np.cos(3 * t)), strict=True):
        assert set(zip(*trace, strict=True)) <= set(zip(t.tolist(), values.tolist(), strict=True))
        assert len(trace[0]) > 30


@needs_qt
def test_values_and_laws_are_mirrored(shown):
    shown.value("controller", "ke", 33.0)
    shown.law("controller", "pfl")
    shown.message("all is well")
    wait_for(lambda: look(shown)["status"] == "all is well")
    drive(shown, "type", control="controller.ke value", value="33")
    drive(shown, "choose", control="controller law", value="pfl")
    time.sleep(0.1)
    assert not [c for c in shown.commands() if c["do"] == "set"], "33 stood there already"


# --- how it ends


@needs_qt
def test_a_window_that_is_closed_never_ends_the_run(caplog):
    with LiveFeed("closed") as feed:
        feed.show(PANES, end=1.0)
        assert feed.wait_until_ready(60.0)
        drive(feed, "close")
        wait_for(lambda: not feed.alive)
        write(feed, 0.0, 1.0, 1000)
        assert feed.commands() == () and not feed.wait(0.0)
    assert [r.message for r in caplog.records] == ["the live window was closed; the run goes on"]


@needs_qt
@posix
def test_a_window_that_is_not_needed_ends_while_it_starts(caplog):
    """Without a word, and before all of it is imported."""
    feed = LiveFeed("none")
    assert feed.seen.wait(60.0)
    feed.close()
    assert not feed.alive and feed.reason is None
    assert caplog.messages == []


@pytest.mark.slow
@needs_qt
@posix
def test_a_window_that_is_killed_is_one_line(caplog):
    before = leftovers()
    with LiveFeed("killed") as feed:
        feed.show(PANES, end=1.0)
        assert feed.wait_until_ready(60.0)
        os.kill(feed._process.pid, signal.SIGKILL)
        wait_for(lambda: not feed.alive)
        write(feed, 0.0, 1.0, 1000)
        feed.state("paused")
        feed.finish("done")
        feed.hold(only_on_terminal=False)
        pid = feed._process.pid
    assert not lives(pid)
    wait_for(lambda: leftovers() <= before, 6.0)
    assert len(caplog.records) == 1 and "killed by signal 9); the run goes on" in caplog.records[0].message


@needs_qt
def test_a_window_that_fails_says_where(caplog):
    with LiveFeed("fails") as feed:
        feed.show([], end=1.0)
        assert feed.wait_until_ready(60.0)
        feed._tell(say="value", block="x")  # without a panel nothing looks at it
        feed._tell(say="state")
        wait_for(lambda: not feed.alive)
    assert [r.message for r in caplog.records] == [f"the live window is gone: {feed.reason}; the run goes on"]
    assert feed.reason.startswith("KeyError: 'state' (main_window.py, line ")


def leftovers():
    """Return what there is of shared memory, by whatever name, and of temporary files with ours."""
    return {*Path("/dev/shm").glob("*"), *Path(tempfile.gettempdir()).glob("*cstormpy*live*")}


_SIMULATION = """
import os, sys, time
from cstormpy.live import LiveFeed, LivePane
feed = LiveFeed("orphan")
feed.show([LivePane("s", "scope", ["a"])], end=1.0)
assert feed.wait_until_ready(60.0), feed.reason
assert "PySide6" not in sys.modules and "pyqtgraph" not in sys.modules
if {fork} and not os.fork():
    time.sleep(60)  # holds the pipes open
    os._exit(0)
print(feed._process.pid, flush=True)
t = 0.0
while {forever}:
    t += 1e-3
    feed.sample(t, [t])
"""


def simulate(fork=False, forever=True):
    """Start a process that simulates, and return it with the id of its window's process."""
    code = _SIMULATION.format(fork=fork, forever=forever)
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    line = process.stdout.readline()
    assert line, process.stderr.read()
    return process, int(line)


@needs_qt
@posix
@pytest.mark.parametrize("fork", [False, True])
def test_a_simulation_that_is_killed_leaves_nothing(fork):
    before = leftovers()
    process, window = simulate(fork)
    assert lives(window)
    process.kill()
    process.wait()
    try:
        wait_for(lambda: not lives(window), 6.0)
    finally:
        if fork:
            os.killpg(process.pid, signal.SIGKILL)
    wait_for(lambda: leftovers() <= before, 6.0)
    process.stdout.close()
    process.stderr.close()


@pytest.mark.slow
@needs_qt
@posix
def test_a_script_that_ends_without_closing_takes_the_window_along():
    process, window = simulate(forever=False)
    begin = time.monotonic()
    _, errors = process.communicate(timeout=30.0)
    assert process.returncode == 0 and not errors and time.monotonic() - begin < 5.0
    wait_for(lambda: not lives(window), 6.0)


@needs_qt
@posix
def test_ctrl_c_reaches_the_simulation_only():
    process, window = simulate()
    os.killpg(process.pid, signal.SIGINT)
    assert process.wait(30.0) != 0
    assert process.stderr.read().strip().endswith("KeyboardInterrupt")
    wait_for(lambda: not lives(window), 6.0)
    process.stdout.close()
    process.stderr.close()


@pytest.mark.slow
@needs_qt
def test_two_windows_at_once_from_two_threads():
    answers = {}

    def run(name, value):
        with LiveFeed(name) as feed:
            feed.show([LivePane(name, "scope", ["a"])], end=1.0)
            feed.wait_until_ready(60.0)
            feed.sample(0.5, [value])
            seen = wait_for(lambda: (s := look(feed))["newest"] == 0.5 and s["curves"][name][0][0] and s)
            answers[name] = seen["curves"][name]

    threads = [threading.Thread(target=run, args=(f"run{k}", float(k))) for k in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60.0)
    assert answers == {"run0": [[[0.5], [0.0]]], "run1": [[[0.5], [1.0]]]}


@needs_qt
def test_a_fast_run_is_complete_in_the_end():
    with LiveFeed("fast") as feed:
        feed.show([LivePane("s", "scope", ["a"])], end=2.0, pace=None)
        t = np.linspace(0.0, 2.0, 2001)
        feed.samples(t, np.sin(9 * t))
        feed.finish("reached the end")
        assert feed.wait_until_ready(60.0)
        seen = wait_for(lambda: (s := look(feed))["newest"] == 2.0 and s["curves"]["s"][0][0] and s)
        assert (seen["state"], seen["status"], seen["lost"]) == ("ended", "reached the end", 0)


@pytest.mark.slow
@needs_qt
def test_the_window_is_held_until_it_is_closed(monkeypatch, caplog):
    with LiveFeed("held") as feed:
        feed.show(PANES, end=1.0)
        assert feed.wait_until_ready(60.0)
        begin = time.monotonic()
        feed.finish("done")
        feed.hold()
        assert time.monotonic() - begin < 0.5, "nobody could close it: there is no terminal, and it is off the screen"
        threading.Timer(0.5, lambda: feed._tell(say="drive", act="close")).start()
        feed.hold(only_on_terminal=False)
        assert not feed.alive and 0.4 < time.monotonic() - begin < 20.0
    assert [r.message for r in caplog.records] == ["close the live window to go on (or press Ctrl-C)"]


@needs_qt
def test_a_feed_shows_one_run():
    with LiveFeed("once") as feed:
        feed.show([], end=1.0)
        with pytest.raises(InvalidValue, match="shows a run already"):
            feed.show([], end=1.0)
    feed.close()


# --- where there can be none


def test_without_a_display_one_line_tells_the_mend(monkeypatch, caplog):
    for name in ("QT_QPA_PLATFORM", "DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(availability, "_without_packages", lambda: None)
    monkeypatch.setattr(sys, "platform", "linux")
    for _ in range(2):
        with LiveFeed("none") as feed:
            assert not feed.alive
            feed.show(PANES, CONTROLS, end=1.0)
            feed.sample(0.0, np.zeros(6))
            feed.samples([0.0], np.zeros((1, 6)))
            assert feed.commands() == ()
            feed.finish()
            feed.hold(only_on_terminal=False)
    assert len(caplog.records) == 1
    assert "there is no display" in caplog.text and "xvfb-run" in caplog.text


@pytest.mark.parametrize("display", [":987", "localhost:987.0", "nonsense", ":99999999999999"])
def test_a_dead_display_is_seen_before(monkeypatch, display):
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(availability, "_without_packages", lambda: None)
    begin = time.monotonic()
    reason = live.available({"DISPLAY": display})
    assert f"display {display!r} does not answer" in reason and time.monotonic() - begin < 2.0


@needs_qt
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="of X11")
def test_a_display_that_dies_in_between_is_one_line(monkeypatch, caplog):
    monkeypatch.setattr(availability, "_without_display", lambda env: None)
    monkeypatch.setenv("QT_QPA_PLATFORM", "xcb")
    monkeypatch.setenv("DISPLAY", ":987")
    with LiveFeed("dead") as feed:
        feed.show(PANES, end=1.0)
        wait_for(lambda: not feed.alive, 60.0)
    assert [r.message for r in caplog.records] == ["no live window: Qt finds no display (DISPLAY=':987'); try xvfb-run"]


@pytest.mark.parametrize(
    ("error", "mend"),
    [
        ("libEGL.so.1: cannot open shared object file: No such file", "Qt needs libEGL.so.1; apt install libegl1"),
        ("DLL load failed", "Qt cannot be loaded: DLL load failed"),
    ],
)
def test_a_library_that_is_missing_is_named_by_its_package(monkeypatch, caplog, tmp_path, error, mend):
    (tmp_path / "PySide6").mkdir()
    (tmp_path / "PySide6" / "__init__.py").write_text("")
    (tmp_path / "PySide6" / "QtGui.py").write_text(f"raise ImportError({error!r})")
    (tmp_path / "pyqtgraph.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(availability, "_without_libraries", lambda env: None)
    with LiveFeed("library") as feed:
        wait_for(lambda: not feed.alive, 60.0)
    assert [r.message for r in caplog.records] == [f"no live window: {mend}"]


def test_libraries_are_looked_up_before(monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "platform", "linux")
    cache = tmp_path / "ld.so.cache"
    monkeypatch.setattr(availability, "_LIBRARY_CACHE", str(cache))
    environment = {"QT_QPA_PLATFORM": "offscreen"}
    assert availability._without_libraries(environment) is None, "no such file: nothing is known"
    known = b"".join(name.encode() + b"\0" for name in availability.DEBIAN_PACKAGES)
    cache.write_bytes(known)
    assert availability._without_libraries(environment) is None
    on_screen = availability._without_libraries({"DISPLAY": ":0"})
    assert "apt install libxcb-cursor0 libxkbcommon-x11-0" in on_screen
    cache.write_bytes(known.replace(b"libGL.so.1\0", b""))
    assert availability._without_libraries(environment) == "Qt needs libGL.so.1; apt install libgl1"


def test_packages_that_are_missing_or_broken(monkeypatch):
    monkeypatch.setattr(availability, "find_spec", lambda name: None)
    assert availability._without_packages() == "PySide6 is not installed; pip install 'cstormpy[live]'"
    monkeypatch.setattr(availability, "find_spec", lambda name: object())
    monkeypatch.setattr(availability.metadata, "version", lambda name: "6.12.0")
    monkeypatch.setattr(sys, "version_info", (3, 11, 0))
    assert "6.12.0 crashes on Python before 3.12" in availability._without_packages()
    monkeypatch.setattr(sys, "version_info", (3, 12, 0))
    assert availability._without_packages() is None


def test_looking_is_quick_and_loads_nothing():
    code = """
import sys, time
from cstormpy.live import availability
begin = time.perf_counter()
availability.available({"QT_QPA_PLATFORM": "offscreen"})
spent = time.perf_counter() - begin
assert not [name for name in sys.modules if name.startswith(("PySide6", "pyqtgraph", "numba", "scipy", "bdsim"))]
assert spent < 0.5, spent
"""
    path = os.pathsep.join(sys.path)
    subprocess.run([sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": path}, check=True, timeout=60)


# --- what is described


def test_knobs_have_ranges_around_their_values():
    assert Knob("b", "n", 20.0).range() == (0.2, 2000.0, True)
    assert Knob("b", "n", -3.0).range() == (-6.0, 6.0, False)
    assert Knob("b", "n", 5.0, low=10.0, high=20.0).range() == (5.0, 20.0, False)
    assert Knob("b", "n", 5.0, log=False).range() == (-10.0, 10.0, False)
    for value in (0.0, 1e-300, 1e300, -1e-9):
        low, high, _ = Knob("b", "n", value).range()
        assert low <= value <= high and low < high


def test_panes_are_checked():
    with pytest.raises(InvalidValue, match="kind is one of scope, xy, mechanism"):
        LivePane("p", "plot", [])
    with pytest.raises(InvalidType, match="a mechanism belongs"):
        LivePane("p", "scope", [], mechanism=ACROBOT)
    with pytest.raises(InvalidType, match="a mechanism belongs"):
        LivePane("p", "mechanism", [])
