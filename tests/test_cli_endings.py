"""How a command ends: failed runs, reports that cannot be written, Ctrl-C, a reader that is gone."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from command_lines import BUILD, ROOT, posix, script

import cstormpy
from cstormpy import cli, diagrams
from cstormpy.simulation import simulation

pytestmark = pytest.mark.usefixtures("somewhere_else")

#: Has a run of `BUILD` end the process.
STOPS = "bd.connect(state, bd.FUNCTION(lambda x: sys.exit(0) if x < 0.7 else x))\n    "


def start(*arguments, **options):
    """Start the command as a process of its own."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **options.pop("env", {})}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    command = [sys.executable, "-m", "cstormpy", *map(str, arguments)]
    return subprocess.Popen(command, env=environment, text=True, **{**pipes, **options})


DIVIDES = "bd.FUNCTION(lambda x: 1 / max(x - 0.5, 0.0), name='one over')"
FAILING = BUILD.replace("    return bd", f"    bd.connect(state, {DIVIDES})\n    return bd")


def test_a_run_that_fails_leaves_its_report(cstorm):
    status, said, errors = cstorm("run", script(FAILING), "-T", 2)
    assert (status, said) == (1, [])
    assert errors[0] == "cstorm: the report on what was simulated until it failed is mine.html"
    assert len(errors) == 2 and "one over" in errors[1] and "ZeroDivisionError" in errors[1]
    assert errors[1].endswith("(--debug shows where)")
    assert "failed" in Path("mine.html").read_text(encoding="utf-8")


def test_a_remedy_is_an_option_of_the_command(cstorm):
    """It was that of a script, solver='Radau'."""
    growing = BUILD.replace("getattr(bd, kind)(-gain", "bd.FUNCTION(lambda x: x * x")
    status, _, errors = cstorm("run", script(growing), "-T", 2)
    assert status == 1 and "A stiff diagram wants --solver Radau or BDF" in errors[-1]


@pytest.mark.parametrize("arguments", [["--debug", "run", "mine.py"], ["run", "mine.py", "--debug"]])
def test_debug_shows_the_traceback(cstorm, arguments):
    script(FAILING)
    with pytest.raises(cstormpy.BlockError) as found:
        cli.main([*arguments, "-T", "2"])
    assert isinstance(found.value.__cause__, ZeroDivisionError)


@pytest.mark.slow
def test_debug_in_a_process_of_its_own():
    done = start("run", script("def build(sim):\n    return 1 / 0"), "--debug")
    error = done.communicate(timeout=60)[1]
    assert done.returncode == 1 and "Traceback" in error and 'mine.py", line 2' in error
    done = start("run", "mine.py")
    error = done.communicate(timeout=60)[1]
    assert done.returncode == 1 and "Traceback" not in error and len(error.splitlines()) == 1


def test_a_diagram_that_can_not_be_compiled(cstorm):
    name = script("def build(sim):\n    bd = sim.blockdiagram()\n    bd.GAIN(2, name='lonely')\n    return bd")
    status, _, errors = cstorm("run", name)
    assert status == 1 and len(errors) == 1 and "lonely" in errors[0]


def test_a_report_that_can_not_be_written_is_one_line(cstorm, monkeypatch):
    """As where the disk is full: found out at the end."""

    def full(self, *arguments, **options):
        raise cstormpy.FileFormatError("pendulum.html: the report cannot be written: No space") from OSError(28, "")

    monkeypatch.setattr(simulation.Simulation, "report", full)
    status, said, errors = cstorm("demo", "pendulum", "-T", 0.1)
    assert (status, said) == (1, [])
    assert errors == ["cstorm: pendulum.html: the report cannot be written: No space"]


@posix
@pytest.mark.skipif(os.name != "nt" and os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_can_not_be_written_is_said_before_the_run(cstorm, tmp_path):
    (tmp_path / "closed").mkdir(mode=0o555)
    status, _, errors = cstorm("demo", "pendulum", "--report", "closed/a.html")
    assert status == 1 and "no permission in" in errors[0]


@posix
def test_ctrl_c_ends_the_run_and_leaves_its_report():
    """As in a terminal, while the run keeps its pace: exit status 130, and what was simulated is in the report."""
    touch = "bd.FUNCTION(lambda x: pathlib.Path('running').touch() or x, name='touch')"
    script("import pathlib\n" + BUILD.replace("    return bd", f"    bd.connect(state, {touch})\n    return bd"))
    process = start("run", "mine.py", "-T", 1000, "--pace", 1)
    wait_for("running", process)
    time.sleep(0.4)  # blocks are asked once while the diagram is compiled
    process.send_signal(signal.SIGINT)
    out, error = process.communicate(timeout=60)
    assert process.returncode == 130, error
    assert out.startswith("mine: interrupted at t = 0.") and out.rstrip().endswith("the report is mine.html")
    assert "Traceback" not in error
    assert "interrupted at t" in Path("mine.html").read_text(encoding="utf-8")


@posix
def test_ctrl_c_before_the_run_is_one_line():
    process = start("run", script("import time\nopen('running', 'w').close()\ntime.sleep(60)\ndef build(sim): ..."))
    wait_for("running", process)
    process.send_signal(signal.SIGINT)
    out, error = process.communicate(timeout=60)
    assert (process.returncode, out, error) == (130, "", "cstorm: interrupted\n")


def wait_for(name, process):
    end = time.monotonic() + 60.0
    while not Path(name).exists() and process.poll() is None and time.monotonic() < end:
        time.sleep(0.02)


def test_ctrl_c_in_the_window_of_a_mechanism_is_told_to_the_shell(cstorm, monkeypatch):
    """It returned 0, as if the window had been closed."""
    monkeypatch.setattr(cli, "_live", lambda *_, **__: True)
    for status, told in (("interrupted", 130), ("stopped", 0)):
        shown = SimpleNamespace(status=status)
        monkeypatch.setattr(simulation.Simulation, "run", lambda *_, shown=shown, **__: shown)
        assert cstorm("show", "acrobot")[0] == told


@pytest.mark.parametrize("text", ["def build(sim):\n    sys.exit()", BUILD.replace("return bd", STOPS + "return bd")])
def test_a_script_that_ends_its_process_has_not_run(cstorm, text):
    """It returned 0, with no report and not a word."""
    status, said, errors = cstorm("run", script(f"import sys\n{text}\n"), "-T", 1)
    assert (status, said) == (1, []) and "SystemExit: " in errors[-1]


@posix
def test_a_reader_that_is_gone_is_no_error():
    done = start("list")
    done.stdout.close()
    error = done.stderr.read()
    assert done.wait(60) in (0, 1) and error == ""


def test_a_command_without_a_standard_output_runs(cstorm, monkeypatch):
    """As a service has none, or after ``>&-``: all went well, and "'NoneType' object has no attribute 'flush'" came."""
    monkeypatch.setattr(sys, "stdout", None)
    assert cli.main(["run", script(BUILD), "-T", "0.1", "--no-live"]) == 0 and os.path.isfile("mine.html")


def test_an_error_of_ours_has_no_hint_that_debug_would_show_more(cstorm, monkeypatch):
    def broken(*_):
        raise RuntimeError("a bug,\n  of two lines")

    monkeypatch.setattr(diagrams, "load", broken)
    assert cstorm("demo")[2] == ["cstorm: RuntimeError: a bug, of two lines (--debug shows where)"]
