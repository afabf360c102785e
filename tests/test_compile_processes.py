"""Kernels that other processes compile, while this one goes on."""

import pytest
from kernel_processes import compiled_only, posix_only, start

from cstormpy.kernels import compile_processes, compiling

NAME = "entries_mechanisms.energies"

BESIDE = f"""
import sys, time
from cstormpy.kernels import compile_processes, compiling
compile_processes.processors = lambda: 2
print(compile_processes.compile_beside(("{NAME}",), ()))
end = time.monotonic() + 100.0
while not compiling.is_kept("{NAME}") and time.monotonic() < end:
    time.sleep(0.05)
print(compile_processes.compile_beside(("{NAME}",)))
from cstormpy.kernels.entries_mechanisms import energies
energies.load()
"""

LEFT = """
import subprocess
from cstormpy.kernels import compile_processes
compile_processes.processors = lambda: 2
made = []
class Noted(subprocess.Popen):
    def __init__(self, *a, **k):
        super().__init__(*a, **k)
        made.append(self.pid)
subprocess.Popen = Noted
print(compile_processes.compile_beside(("entries_sensitivity.sensitivity_one",)), *made)
"""


@pytest.fixture
def started(monkeypatch):
    """Return the commands of the processes that would be started."""
    commands = []
    monkeypatch.setattr(compile_processes, "_start", lambda command: commands.append(command[4:]))
    monkeypatch.setattr(compile_processes, "processors", lambda: 2)
    monkeypatch.setattr(compiling, "_expected", set())
    return commands


@pytest.mark.slow
@compiled_only
def test_a_kernel_compiled_beside_is_found_and_nothing_is_said(tmp_path):
    out, err = start(BESIDE, tmp_path / "cache")
    assert (out, err) == ("1\n0\n", "")
    assert len(list((tmp_path / "cache").glob("*/*.kernel"))) == 1


@pytest.mark.slow
@compiled_only
@posix_only
def test_the_process_beside_ends_with_this_one(tmp_path):
    out, err = start(LEFT, tmp_path / "cache")
    count, pid = out.split()
    assert (count, err) == ("1", "")
    with pytest.raises(ProcessLookupError):
        compile_processes.os.kill(int(pid), 0)


@compiled_only
def test_one_process_for_each_group_that_lacks_something(tmp_path, monkeypatch, started):
    monkeypatch.setenv("CSTORMPY_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(compiling, "is_kept", lambda name: name.startswith("there"))
    assert compile_processes.compile_beside(("a.b", "there.c", "d.e"), ("there.f",), ()) == 1
    assert started == [["a.b", "d.e"]] and compiling._expected == {"a.b", "d.e"}


@compiled_only
@pytest.mark.parametrize("lack", ["processors", "place", "process"])
def test_without_what_it_needs_nothing_is_started(tmp_path, monkeypatch, started, lack):
    monkeypatch.setenv("CSTORMPY_CACHE_DIR", str(tmp_path))
    if lack == "processors":
        monkeypatch.setattr(compile_processes, "processors", lambda: 1)
    elif lack == "place":
        (tmp_path / "a file").touch()
        monkeypatch.setenv("CSTORMPY_CACHE_DIR", str(tmp_path / "a file"))
    else:

        def refused(_):
            raise OSError("no more processes")

        monkeypatch.setattr(compile_processes, "_start", refused)
    assert compile_processes.compile_beside(("a.b",)) == 0
    assert not started and not compiling._expected


def test_without_the_compiler_nothing_is_started(monkeypatch, started):
    monkeypatch.setattr(compiling.numba.config, "DISABLE_JIT", 1)
    assert compile_processes.compile_beside(("a.b",)) == 0 and not started
