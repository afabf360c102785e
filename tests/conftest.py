"""Settings of all tests: hypothesis without a deadline, and no window."""

import os
import shutil
import signal
import subprocess
from collections import defaultdict
from importlib.util import find_spec

import pytest
from hypothesis import HealthCheck, settings

#: Of one function with so many sets of arguments, quick runs take every second.
MANY = 5

# The oracle has no wheels for every system; the tests that ask it skip themselves.
collect_ignore = [] if find_spec("pinocchio") else ["pinocchio_model.py"]

# Before anything imports NumPy, matplotlib or Qt.
os.environ.setdefault("MPLBACKEND", "Agg")
os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
os.environ.setdefault("CSTORMPY_LIVE", "off")
for name in ("DISPLAY", "WAYLAND_DISPLAY"):  # with one bdsim's scopes draw, step by step
    os.environ.pop(name, None)

# Workers share the processors; where each has threads of BLAS besides, these wait for one another in what takes
# microseconds alone: tests of regulators and of identification took 1.5 to 1.7 times as long (measured).
if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# A shell that starts the suite in the background has it ignore Ctrl-C, and with it the programs that tests interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# The first example of a test may compile a kernel, which takes seconds.
_patient = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("local", **_patient)
# The same examples in every run, so that a red run can be had again.
settings.register_profile("ci", derandomize=True, database=None, print_blob=True, **_patient)
settings.load_profile("ci" if os.environ.get("CI") else "local")


def pytest_addoption(parser):
    """Add what a run of one part of the suite is asked by."""
    parser.addoption("--part", default="1/1", help="K/N: every N-th test, from the K-th on")


@pytest.hookimpl(tryfirst=True)  # before marks decide what is run
def pytest_collection_modifyitems(config, items):
    """Leave every second of many tests of one function to the slow ones, and leave out the tests of other parts.

    Those of one function with other arguments are shared among all parts.
    """
    functions = defaultdict(list)
    for item in items:
        if "control/predictive.py" in item.nodeid and not find_spec("daqp"):
            item.add_marker(pytest.mark.skip(reason="daqp is not installed"))
        functions[item.nodeid.partition("[")[0]].append(item)
    for family in functions.values():
        if len(family) >= MANY:
            for item in family[1::2]:
                item.add_marker(pytest.mark.slow)
    k, count = map(int, config.getoption("part").split("/"))
    config.hook.pytest_deselected(items=[item for at, item in enumerate(items) if at % count != k - 1])
    items[:] = items[k - 1 :: count]


def pytest_configure(config):
    """Take fewer examples where only what is quick is run; a run of the whole suite takes all."""
    if "not slow" in (config.option.markexpr or ""):
        settings.register_profile("quick", settings.default, max_examples=40)
        settings.load_profile("quick")
    named = config.args_source is not pytest.Config.ArgsSource.TESTPATHS and config.args != ["tests"]
    if not named and config.getoption("numprocesses", None) and not hasattr(config, "workerinput"):
        compile_kernels_beside()


def compile_kernels_beside():
    """Have one process compile all kernels: workers that each compile some of them compile nearly every step twice."""
    from cstormpy.kernels.compile_processes import compile_beside
    from cstormpy.kernels.entries import all_entries

    compile_beside(tuple(made.kept_as for made in all_entries()))


@pytest.fixture
def eager_threads(monkeypatch):
    """Let threads share batches that are too short for it to be worth while."""
    from cstormpy.dynamics import batches

    monkeypatch.setattr(batches, "HAND_OVER", 1e-9)
    monkeypatch.setattr(batches, "LONG_ENOUGH", 1e-9)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Return an empty folder in which this test's kernels are kept."""
    monkeypatch.setenv("CSTORMPY_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def said(monkeypatch):
    """Return the list of what is said of kernels from now on."""
    from cstormpy import cache_folder
    from cstormpy.kernels import compiling

    lines = []
    for module in (compiling, cache_folder):
        monkeypatch.setattr(module, "notice_once", lines.append)
    return lines


@pytest.fixture
def tiny(tmp_path):
    """Return the folder of the kernels of a module `tiny` that processes can import."""
    from kernel_processes import TINY

    (tmp_path / "tiny.py").write_text(TINY)
    return tmp_path / "cache"


@pytest.fixture
def somewhere_else(monkeypatch, tmp_path):
    """Work in an empty folder."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def cstorm(capsys):
    """Return what runs a command: it gives the exit status and all lines, of standard output and error."""
    from cstormpy import cli

    def run(*arguments):
        try:
            status = cli.main(list(map(str, arguments)))
        except SystemExit as leave:
            status = leave.code
        said = capsys.readouterr()
        return status, said.out.splitlines(), said.err.splitlines()

    return run


@pytest.fixture
def shown(monkeypatch):
    """Return what runs a diagram in a window that follows a script: it gives the result and the window."""
    from live_runs import FakeFeed, T

    import cstormpy as cs
    from cstormpy.simulation import simulation

    def run(bd, script=(), sim=None, alive=True, feed=None, **options):
        feed = feed or FakeFeed(script, alive)
        monkeypatch.setattr(simulation, "LiveFeed", lambda title: feed)
        options = {"T": T, "pace": None, **options}
        sim = sim or cs.Simulation(graphics=False, hold=False, progress=False)
        return sim.run(bd, live=True, **options), feed

    return run


@pytest.fixture(scope="module")
def app():
    """Return the application of the live window."""
    from live_windows import application

    return application()


@pytest.fixture
def opened(app):
    """Return a live window that shows the first four seconds of a run, and the simulation."""
    from live_windows import shown_window

    with shown_window() as window:
        yield window


@pytest.fixture
def virtual_screen():
    """Start a screen that nobody sees, and return its name.

    The server takes a free number by itself and says when it listens; programs that begin beside it, as xvfb-run does,
    may take the same one. It stays as it is when its last client goes: matplotlib looks whether a display answers, and
    goes, before Qt comes, and a server that starts anew in between refuses Qt (1 run in 12 where it may).
    """
    if shutil.which("Xvfb") is None:
        pytest.skip("needs a virtual screen: apt install xvfb")
    told, tells = os.pipe()
    command = ["Xvfb", "-displayfd", str(tells), "-noreset", "-nolisten", "tcp", "-screen", "0", "1280x900x24"]
    with subprocess.Popen(command, pass_fds=[tells], stderr=subprocess.DEVNULL) as server:
        os.close(tells)
        with open(told) as number:
            name = f":{number.readline().strip()}"
        yield name
        server.terminate()
