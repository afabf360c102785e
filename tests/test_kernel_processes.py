"""Kernels that several processes compile, forked ones and killed ones too."""

import signal
import time

import pytest
from kernel_processes import compiled_only, posix_only, start

from cstormpy.kernels import compiling

RUN_TINY = "import tiny; print(tiny.double.load()(3.0), tiny.triple.load()(3.0))"
#: A kernel that takes a second or so to compile, so that the processes are sure to meet.
SLOW = (
    'from cstormpy.kernels.compiling import entry\nimport math\n\n@entry("f8(f8)")\ndef slow(x):\n'
    + "".join(f"    x = math.sin(x) * {k}.5 + math.sqrt(abs(x)) if x > {k} else math.cos(x)\n" for k in range(60))
    + "    return x\n"
)
GATE = """
import sys, slow
print("ready", flush=True)
sys.stdin.readline()
print(slow.slow.load()(0.5))
"""


@pytest.mark.slow
@compiled_only
@posix_only
def test_processes_that_start_together_compile_once(tmp_path):
    (tmp_path / "slow.py").write_text(SLOW)
    processes = [start(GATE, tmp_path / "cache", wait=False) for _ in range(3)]
    for process in processes:
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        process.stdin.write("go\n")
        process.stdin.flush()
    ended = [process.communicate(timeout=120) for process in processes]
    assert len({out for out, _ in ended}) == 1
    compiled = [err for _, err in ended if "compiling kernels (" in err]
    assert len(compiled) == 1
    assert len(list((tmp_path / "cache").glob("*/*.kernel"))) == 1
    assert not list((tmp_path / "cache").glob("*/*.tmp"))


HOLD = """
import sys
from pathlib import Path
from cstormpy.kernels import compiling
lock = compiling._Lock(Path(sys.stdin.readline().strip()))
print("held", flush=True)
sys.stdin.readline()
"""


@pytest.mark.slow
@posix_only
def test_a_killed_process_leaves_no_lock(tmp_path, monkeypatch, said):
    path = tmp_path / "some.lock"
    holder = start(HOLD, tmp_path / "cache", wait=False)
    holder.stdin.write(f"{path}\n")
    holder.stdin.flush()
    assert holder.stdout.readline() == "held\n"

    monkeypatch.setattr(compiling, "_PATIENCE", 0.3)
    begin = time.monotonic()
    compiling._Lock(path).release()
    assert 0.3 <= time.monotonic() - begin < 5.0  # patience has an end, and then one goes on without the lock
    assert said[0] == "another process is compiling kernels: waiting for it"

    monkeypatch.setattr(compiling, "_PATIENCE", 60.0)
    holder.send_signal(signal.SIGKILL)
    holder.communicate()
    begin = time.monotonic()
    compiling._Lock(path).release()
    assert time.monotonic() - begin < 5.0


@pytest.mark.slow
@posix_only
def test_a_forked_process_keeps_no_lock(tmp_path):
    script = """
import os, signal, time
from pathlib import Path
from cstormpy.kernels import compiling
lock = compiling._Lock(Path("some.lock"))
child = os.fork()
if child == 0:
    time.sleep(60)
    os._exit(0)
lock.release()
begin = time.monotonic()
compiling._Lock(Path("some.lock")).release()
print(time.monotonic() - begin < 5)
os.kill(child, signal.SIGKILL)
os.waitpid(child, 0)
"""
    assert start(script, tmp_path / "cache")[0] == "True\n"


@pytest.mark.slow
@compiled_only
@posix_only
def test_kernels_survive_a_fork(tiny):
    """What was loaded before runs in the child, what was not is loaded there, and threads are started anew."""
    script = """
import os, warnings
import numpy as np
import tiny
from concurrent.futures import ThreadPoolExecutor
from cstormpy.dynamics import batches
warnings.simplefilter("ignore", DeprecationWarning)
assert tiny.double.load()(3.0) == 6.0
assert list(batches._pool(2).map(tiny.double.load(), [1.0, 2.0])) == [2.0, 4.0]
child = os.fork()
if child == 0:
    assert tiny.double.load()(4.0) == 8.0
    assert tiny.triple.load()(4.0) == 12.0
    assert list(batches._pool(2).map(tiny.double.load(), [1.0, 2.0])) == [2.0, 4.0]
    os._exit(0)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    assert start(script, tiny)[0] == "0\n"


@pytest.mark.slow
@compiled_only
def test_the_first_compile_says_so_in_one_line(tiny):
    out, err = start(RUN_TINY, tiny)
    assert out == "6.0 9.0\n"
    assert err == f"cstormpy: compiling kernels (some seconds each), to be kept in {tiny}\n"
    assert start(RUN_TINY, tiny) == ("6.0 9.0\n", "")


@pytest.mark.slow
@compiled_only
def test_the_users_logging_takes_the_line(tiny):
    configured = "import logging; logging.basicConfig(format='%(name)s/%(levelname)s/%(message)s'); "
    _, err = start(configured + RUN_TINY, tiny)
    assert err == f"cstormpy/INFO/compiling kernels (some seconds each), to be kept in {tiny}\n"


@pytest.mark.slow
@compiled_only
def test_numbas_settings_and_the_users_own_functions_are_left_alone(tiny):
    (tiny.parent / "users.py").write_text(
        "from numba import njit\n\n@njit(cache=True)\ndef own(x):\n    return x + 1\n"
    )
    script = """
import numba, users
def settings():
    return {name: repr(getattr(numba.config, name)) for name in dir(numba.config) if name.isupper()}
before = settings()
print(users.own(1))
import tiny
tiny.double.load()
print(settings() == before, numba.njit(lambda x: x).targetoptions)
"""
    out, _ = start(script, tiny, PYTHONDONTWRITEBYTECODE="")
    plain = start("import numba; print(numba.njit(lambda x: x).targetoptions)", tiny)[0]
    assert out == "2\nTrue " + plain
    assert list((tiny.parent / "__pycache__").glob("users.own*.nbi"))
    assert [f.name.split("-")[0] for f in tiny.glob("*/*.kernel")] == ["tiny.double"]


@pytest.mark.slow
def test_the_jit_can_be_off(tiny):
    out, err = start(RUN_TINY, tiny, NUMBA_DISABLE_JIT="1")
    assert (out, err) == ("6.0 9.0\n", "")
    assert not tiny.exists()
