"""Compiled kernels are kept on disk, never stale, and what can go wrong with files and processes does no harm."""

import ast
import io
import logging
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numba
import numpy as np
import pytest

import cstormpy
from cstormpy import cache_folder as cache_folder_module
from cstormpy import file_writer, reporting
from cstormpy.kernels import compiling
from cstormpy.kernels.compiling import Entry, cache_folder

PACKAGE = Path(cstormpy.__file__).resolve().parent
KERNELS = PACKAGE / "kernels"

compiled_only = pytest.mark.skipif(numba.config.DISABLE_JIT, reason="nothing is compiled where the JIT is off")
posix_only = pytest.mark.skipif(sys.platform == "win32", reason="no fork and no flock on Windows")


def last(x):
    return x[-1]


def double(x):
    return 2.0 * x


def triple(x):
    return 3.0 * x


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Return an empty folder in which this test's kernels are kept."""
    monkeypatch.setenv("CSTORMPY_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


#: What kernels may call outside of their folder: where code is kept, and how that is said; and what makes machine code
#: of steps without numba, which is kept under a digest of its own sources.
OUTSIDE = ("cstormpy.cache_folder", "cstormpy.file_writer", "cstormpy.private_folder", "cstormpy.reporting")
OUTSIDE += ("cstormpy.graph.kept", "cstormpy.graph.loops", "cstormpy.graph.machine")


@pytest.fixture
def said(monkeypatch):
    """Return the list of what is said from now on."""
    lines = []
    for module in (compiling, cache_folder_module):
        monkeypatch.setattr(module, "notice_once", lines.append)
    return lines


def fresh(function=double):
    return Entry(function, "f8(f8)", False, compiling._OPTIONS)


def start(script, path, *, wait=True, python=PACKAGE.parent, timeout=120, **environment):
    """Run Python code in a process of its own whose kernels are kept at `path`."""
    environment = {
        **{name: value for name, value in os.environ.items() if name != "NUMBA_DISABLE_JIT"},
        "PYTHONPATH": os.pathsep.join([str(python), str(path.parent)]),
        "PYTHONDONTWRITEBYTECODE": "1",
        "CSTORMPY_CACHE_DIR": str(path),
        **environment,
    }
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    process = subprocess.Popen([sys.executable, "-c", script], env=environment, cwd=path.parent, text=True, **pipes)
    if not wait:
        return process
    out, err = process.communicate(timeout=timeout)
    assert process.returncode == 0, err
    return out, err


#: Two kernels in a module of their own, as processes import them.
TINY = """
from cstormpy.kernels.compiling import entry

@entry("f8(f8)")
def double(x):
    return 2.0 * x

@entry("f8(f8)")
def triple(x):
    return 3.0 * x
"""


@pytest.fixture
def tiny(tmp_path):
    (tmp_path / "tiny.py").write_text(TINY)
    return tmp_path / "cache"


RUN_TINY = "import tiny; print(tiny.double.load()(3.0), tiny.triple.load()(3.0))"


# Kept on disk, and found again --------------------------------------------------------------------------


def drafts():
    """Return what is left half written."""
    return [path.name for path in cache_folder().iterdir() if path.suffix not in (".kernel", ".lock")]


@compiled_only
def test_a_kernel_is_compiled_once_and_then_read(folder, said):
    first = fresh().load()
    assert first(4.0) == 8.0
    (line,) = said
    assert line == f"compiling kernels (some seconds each), to be kept in {folder}"
    (kept,) = cache_folder().glob("*.kernel")
    assert kept.name.startswith("test_compiling.double-")
    assert fresh().load()(5.0) == 10.0
    assert fresh(triple).load()(5.0) == 15.0
    assert len(said) == 2  # of double and of triple, once each
    assert not drafts()


@compiled_only
def test_only_the_signatures_types_are_taken(folder):
    kernel = Entry(last, "f8(f8[::1])", False, compiling._OPTIONS).load()
    assert kernel(np.array([1.0, 2.0])) == 2.0
    for other in (np.ones(2, dtype=int), np.ones((2, 2)), np.ones(4)[::2], [1.0, 2.0], "text"):
        with pytest.raises(TypeError):
            kernel(other)


@compiled_only
def test_load_gives_the_same_every_time_and_from_every_thread(folder, monkeypatch):
    entry = fresh()
    compiles, begin, found = [], threading.Barrier(6), []
    original = compiling.compiled_entry
    monkeypatch.setattr(compiling, "compiled_entry", lambda made: compiles.append(made) or original(made))

    def load():
        begin.wait()
        found.append(entry.load())

    threads = [threading.Thread(target=load) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(compiles) == 1
    assert len(found) == 6
    assert set(map(id, found)) == {id(entry.load())}


@compiled_only
def test_a_compile_that_fails_can_be_tried_again(folder):
    def broken(x):
        return x.no_such_thing

    entry = fresh(broken)
    for _ in range(2):
        with pytest.raises(numba.core.errors.TypingError):
            entry.load()
    assert not list(cache_folder().glob("*.kernel"))
    begin = time.monotonic()
    compiling._Lock(next(cache_folder().glob("*.lock"))).release()  # nobody holds it
    assert time.monotonic() - begin < 5.0


@compiled_only
def test_settings_of_numba_that_change_machine_code_are_told_apart(folder, monkeypatch):
    fresh().load()
    monkeypatch.setattr(numba.config, "OPT", 0 if numba.config.OPT else 3)
    fresh().load()
    assert len(list(cache_folder().glob("*.kernel"))) == 2


# Never stale ------------------------------------------------------------------------------------------


def test_the_digest_covers_all_that_kernels_are_made_of():
    """A kernel may call what lives in the folder of the kernels and nothing else of this package."""
    for source in KERNELS.glob("*.py"):
        for node in ast.walk(ast.parse(source.read_text(encoding="utf-8"))):
            modules = []
            if isinstance(node, ast.Import):
                modules = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                assert node.level == 0
                modules = [node.module]
            for module in modules:
                if module.split(".")[0] == "cstormpy":
                    inside = f"{module}.".startswith("cstormpy.kernels.")
                    assert inside or module in OUTSIDE, source.name


@pytest.mark.slow
@compiled_only
def test_a_change_in_a_function_of_another_file_is_noticed(tmp_path):
    """numba's own cache=True gives the old result here."""
    shutil.copytree(PACKAGE, tmp_path / "site" / "cstormpy", ignore=shutil.ignore_patterns("__pycache__"))
    kernels = tmp_path / "site" / "cstormpy" / "kernels"
    (kernels / "entries_tiny.py").write_text(
        "from cstormpy.kernels.compiling import entry\nfrom cstormpy.kernels.piece import piece\n\n"
        '@entry("f8(f8)")\ndef whole(x):\n    return piece(x) + 1.0\n'
    )
    script = "from cstormpy.kernels.entries_tiny import whole; print(whole.load()(3.0))"

    def run(factor):
        (kernels / "piece.py").write_text(
            f"from cstormpy.kernels.steps import step\n\n@step\ndef piece(x):\n    return {factor} * x\n"
        )
        return start(script, tmp_path / "cache", python=tmp_path / "site")

    answers = [run(factor) for factor in (2, 5, 2)]
    assert [out for out, _ in answers] == ["7.0\n", "16.0\n", "7.0\n"]
    assert ["compiling" in err for _, err in answers] == [True, True, False]  # the old folder is still there
    assert len(list((tmp_path / "cache").iterdir())) == 2


@pytest.mark.slow
@compiled_only
def test_sources_that_change_while_a_process_runs_spoil_nothing(tmp_path):
    """What was imported before the change must not be kept under the name of what stands there after it."""
    shutil.copytree(PACKAGE, tmp_path / "site" / "cstormpy", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "tiny.py").write_text(TINY)
    script = f"""
import tiny
from pathlib import Path
with Path({str(tmp_path / "site" / "cstormpy" / "kernels" / "layout.py")!r}).open("a") as file:
    file.write("# edited")
print(tiny.double.load()(3.0))
"""
    out, err = start(script, tmp_path / "cache", python=tmp_path / "site")
    assert out == "6.0\n"
    assert "cannot be kept: their sources have changed since they were imported" in err
    assert not (tmp_path / "cache").exists()


@compiled_only
def test_without_source_files_nothing_is_kept(folder, said, monkeypatch):
    monkeypatch.setattr(compiling, "_IMPORTED", None)
    assert fresh().load()(1.0) == 2.0
    assert "their source files are not there" in said[0]
    assert not folder.exists()


# Folders and files in any state -------------------------------------------------------------------------


@compiled_only
@pytest.mark.parametrize(
    "damage",
    [
        lambda content: b"",
        lambda content: content[:20],
        lambda content: content[: len(content) // 2],
        lambda content: content[:-1],
        lambda content: content + b"\0",
        lambda content: b"garbage" * 500,
        lambda content: content[:32] + bytes(len(content) - 32),
        lambda content: content[: len(content) // 2] + b"\xff\x00\xff" + content[len(content) // 2 + 3 :],
    ],
    ids=["empty", "head", "half", "one short", "one long", "garbage", "zeros", "bits"],
)
def test_a_damaged_file_is_compiled_anew(folder, said, damage):
    fresh().load()
    (kept,) = cache_folder().glob("*.kernel")
    sound = kept.read_bytes()
    kept.write_bytes(damage(sound))
    assert fresh().load()(21.0) == 42.0
    assert len(said) == 2
    assert kept.read_bytes() != damage(sound)
    assert fresh().load()(21.0) == 42.0
    assert len(said) == 2  # mended


@compiled_only
def test_a_folder_in_place_of_the_file_is_survived(folder, said):
    fresh().load()
    (kept,) = cache_folder().glob("*.kernel")
    kept.unlink()
    kept.mkdir()
    assert fresh().load()(2.0) == 4.0
    assert "cannot be kept" in said[-1]
    assert not drafts()


@compiled_only
@pytest.mark.parametrize("below", ["", "deeper"])
def test_a_file_where_the_folder_should_be(tmp_path, monkeypatch, said, below):
    (tmp_path / "file").write_text("mine")
    monkeypatch.setenv("CSTORMPY_CACHE_DIR", str(tmp_path / "file" / below))
    assert fresh().load()(2.0) == 4.0
    assert fresh(triple).load()(2.0) == 6.0
    assert said[0] == said[1]  # so that it is said once
    assert "cannot be kept" in said[0]
    assert "set CSTORMPY_CACHE_DIR to a folder that can be written" in said[0]
    assert str(tmp_path / "file") in said[0]
    assert (tmp_path / "file").read_text() == "mine"


@compiled_only
@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="nothing is forbidden to root")
def test_a_folder_that_can_not_be_written(folder, said):
    folder.mkdir()
    folder.chmod(0o500)
    assert fresh().load()(2.0) == 4.0
    assert "Permission denied" in said[0]
    folder.chmod(0o700)


@compiled_only
def test_a_warm_folder_needs_no_permission_to_write(folder, said, monkeypatch):
    """Kernels compiled when an image was made are read by whoever runs it."""
    fresh().load()
    said.clear()

    def refuse(*args, **kwargs):
        raise PermissionError(13, "Permission denied")

    for name in ("_make_folder", "_Lock"):
        monkeypatch.setattr(compiling, name, refuse)
    monkeypatch.setattr(compiling.os, "utime", refuse)
    assert fresh().load()(2.0) == 4.0
    assert said == []


@compiled_only
def test_a_disk_that_is_full(folder, said, monkeypatch):
    def full(self, content):
        self.error = OSError(28, "No space left on device")
        raise self.error

    monkeypatch.setattr(file_writer._Draft, "write", full)
    assert fresh().load()(2.0) == 4.0
    assert "No space left on device" in said[-1]
    assert not drafts()
    assert not list(cache_folder().glob("*.kernel"))


@compiled_only
def test_a_user_without_a_home(said, monkeypatch):
    def homeless():
        raise RuntimeError("Could not determine home directory.")

    for name in ("CSTORMPY_CACHE_DIR", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(Path, "home", homeless)
    assert fresh().load()(2.0) == 4.0
    assert "Could not determine home directory" in said[0]


@pytest.mark.nojit
@pytest.mark.parametrize(
    "platform, variables, expected",
    [
        ("linux", {"XDG_CACHE_HOME": "/cache"}, "/cache/cstormpy"),
        ("linux", {"HOME": "/home/me"}, "/home/me/.cache/cstormpy"),
        ("darwin", {"HOME": "/Users/me"}, "/Users/me/Library/Caches/cstormpy"),
        ("win32", {"LOCALAPPDATA": "/local"}, "/local/cstormpy"),
        ("linux", {"CSTORMPY_CACHE_DIR": "/mine", "XDG_CACHE_HOME": "/cache"}, "/mine"),
        ("linux", {"CSTORMPY_CACHE_DIR": "~/mine", "HOME": "/home/me"}, "/home/me/mine"),
    ],
)
@posix_only
def test_where_kernels_are_kept(monkeypatch, platform, variables, expected):
    for name in ("CSTORMPY_CACHE_DIR", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(cache_folder_module.sys, "platform", platform)
    assert cache_folder().parent == Path(expected)


@pytest.mark.nojit
def test_old_folders_go_and_nothing_else(tmp_path):
    day = 24 * 3600.0
    ages = [1, 2, 8, 9, 10, 30, 400]  # days
    for k, age in enumerate(ages):
        old = tmp_path / f"kernels-{k:020x}"
        old.mkdir()
        (old / "a.kernel").write_bytes(b"x")
        os.utime(old, (time.time() - age * day,) * 2)
    foreign = ["photographs-of-my-cat", "kernels-mine", "kernels-" + "g" * 20, "a" * 28]
    for name in foreign:
        (tmp_path / name).mkdir()
        os.utime(tmp_path / name, (0, 0))
    current = tmp_path / f"kernels-{99:020x}"
    compiling._make_folder(current)
    left = {f.name for f in tmp_path.iterdir()}
    # with the current one four are kept
    assert left == {current.name, *foreign, *(f"kernels-{k:020x}" for k in range(3))}


@pytest.mark.nojit
def test_no_folder_goes_that_was_used_lately(tmp_path):
    for k in range(9):
        (tmp_path / f"kernels-{k:020x}").mkdir()
    compiling._make_folder(tmp_path / f"kernels-{99:020x}")
    assert len(list(tmp_path.iterdir())) == 10


@compiled_only
def test_reading_counts_as_use(folder):
    fresh().load()
    os.utime(cache_folder(), (0, 0))
    fresh().load()
    assert cache_folder().stat().st_mtime > time.time() - 100


# Several processes --------------------------------------------------------------------------------------

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


# What the user notices, and what they do not --------------------------------------------------------------


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


@pytest.mark.nojit
def test_uncompiled_kernels_are_as_choosy_as_compiled_ones():
    def total(x, k):
        return x.sum() + k

    kernel = compiling._strict(total, "f8(f8[:,::1], i8)")
    assert kernel(np.ones((2, 2)), 1) == 5.0
    read_only = np.ones((2, 2))
    read_only.flags.writeable = False
    for other in (np.ones(4), np.ones((2, 2), int), np.ones((4, 4)).T[:2], [[1.0]], np.ma.ones((2, 2)), read_only):
        with pytest.raises(TypeError, match="total: argument 0"):
            kernel(other, 1)
    big = np.full((1, 2), 1e308)
    with np.errstate(all="raise"):
        assert kernel(big, 1) == np.inf  # as machine code does it


def entries_in_the_sources():
    found = []
    for source in sorted(KERNELS.glob("entries_*.py")):
        for node in ast.parse(source.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef):
                calls = [d.func.id for d in node.decorator_list if isinstance(d, ast.Call)]
                found += [node.name] * bool({"entry", "entry_of_c"} & set(calls))
    return found


@pytest.mark.slow
@compiled_only
def test_warmup_makes_every_kernel_ready():
    script = "from cstormpy.kernels.compiling import warmup; seconds = warmup(print); print(seconds)"
    folder = cache_folder()

    def run():
        *names, seconds = start(script, folder.parent, timeout=900)[0].split()
        return names, float(seconds)

    names, _ = run()  # compiles what no test has asked for so far
    assert sorted(names) == sorted(entries_in_the_sources())
    names, seconds = run()
    assert seconds < 10.0
    kept = {f.name.partition("-")[0].partition(".")[2] for f in folder.glob("*.kernel")}
    assert kept >= set(names)


# The logger ---------------------------------------------------------------------------------------------


@pytest.fixture
def logger():
    """Return a function that cuts the library's logger off from all handlers, those of pytest too, and returns it."""
    own = logging.getLogger("cstormpy")
    level, propagate, handlers = own.level, own.propagate, list(own.handlers)

    def bare():  # not in the fixture's own part: pytest adds a handler after that
        own.setLevel(logging.NOTSET)
        own.propagate = False
        own.handlers.clear()
        return own

    yield bare
    own.propagate, own.handlers[:] = propagate, handlers
    own.setLevel(level)


@pytest.mark.nojit
def test_a_notice_is_one_line_on_standard_error(logger, capsys):
    own = logger()
    reporting.notice("something")
    reporting.notice("something else")
    assert capsys.readouterr() == ("", "cstormpy: something\ncstormpy: something else\n")
    assert own.handlers == []


@pytest.mark.nojit
def test_a_notice_is_given_once(logger, capsys):
    logger()
    for _ in range(3):
        reporting.notice_once("only in this test")
    assert capsys.readouterr().err == "cstormpy: only in this test\n"


@pytest.mark.nojit
def test_the_users_handler_takes_a_notice_alone(logger, capsys):
    stream = io.StringIO()
    logger().addHandler(logging.StreamHandler(stream))
    reporting.notice("something")
    assert stream.getvalue() == "something\n"
    assert capsys.readouterr().err == ""


@pytest.mark.nojit
@pytest.mark.parametrize(
    "silence", [lambda own: own.addHandler(logging.NullHandler()), lambda own: own.setLevel("ERROR")]
)
def test_notices_can_be_silenced(logger, capsys, silence):
    silence(logger())
    reporting.notice("something")
    assert capsys.readouterr() == ("", "")


@pytest.mark.nojit
def test_standard_error_may_be_closed_or_missing(logger, monkeypatch):
    logger()
    closed = io.StringIO()
    closed.close()
    for stream in (None, closed):
        monkeypatch.setattr(sys, "stderr", stream)
        reporting.notice("something")
