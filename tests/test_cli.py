"""The command line: what it runs, what it writes and says, and how it ends; also when something is wrong."""

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from importlib import metadata
from pathlib import Path

import pytest

import cstormpy
from cstormpy import cli, control, diagrams, doctor, live
from cstormpy.diagrams import _bd_files, _listing
from cstormpy.simulation import simulation

ROOT = Path(cstormpy.__file__).resolve().parent.parent
posix = pytest.mark.skipif(os.name == "nt", reason="needs signals and permissions")


@pytest.fixture(autouse=True)
def _somewhere_else(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def cstorm(capsys):
    """Return what runs a command: it gives the exit status and all lines, of standard output and error."""

    def run(*arguments):
        try:
            status = cli.main(list(map(str, arguments)))
        except SystemExit as leave:
            status = leave.code
        said = capsys.readouterr()
        return status, said.out.splitlines(), said.err.splitlines()

    return run


def start(*arguments, **options):
    """Start the command as a process of its own."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **options.pop("env", {})}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    command = [sys.executable, "-m", "cstormpy", *map(str, arguments)]
    return subprocess.Popen(command, env=environment, text=True, **{**pipes, **options})


def script(text, name="mine.py"):
    Path(name).write_text(text, encoding="utf-8")
    return name


BUILD = """
def build(sim, gain=1.0, kind="GAIN"):
    bd = sim.blockdiagram("mine")
    state, factor = bd.INTEGRATOR(x0=1.0, name="state"), getattr(bd, kind)(-gain, name="factor")
    bd.connect(state, factor, bd.LIVESCOPE(labels=["x"], name="scope"))
    bd.connect(factor, state)
    return bd
"""


# ---------------------------------------------------------------- demo


def test_a_demo_runs_and_writes_its_report(cstorm):
    status, said, notices = cstorm("demo", "pendulum", "-T", 1)
    assert (status, said, notices) == (0, ["pendulum: reached the end; the report is pendulum.html"], [])
    page = Path("pendulum.html").read_text(encoding="utf-8")
    assert "Pendulum" in page and "scope_energy" in page and page.rstrip().endswith("</html>")


def test_the_demo_without_a_name_is_the_acrobot(cstorm):
    assert cstorm("demo", "--time", "0.2")[:2] == (0, ["acrobot: reached the end; the report is acrobot.html"])


def test_a_demo_with_options(cstorm):
    arguments = ["--controller", "pd", "--set", "q0=[0.1, 0.2]", "--set", "parameters=rods", "--set", "blend=0.1"]
    arguments += ["--solver", "DOP853", "--rtol", "1e-8", "--report", "there.html"]
    status, said, _ = cstorm("demo", "acrobot", "-T", 0.3, *arguments)
    assert status == 0 and said == ["acrobot: reached the end; the report is there.html"]
    page = Path("there.html").read_text(encoding="utf-8")
    assert "DOP853" in page and "1e-08" in page and not Path("acrobot.html").exists()


def test_a_demo_of_fixed_steps(cstorm):
    assert cstorm("demo", "pendulum", "-T", 0.2, "--solver", "RK4", "--dt", 0.01)[0] == 0


MISTAKES = [
    (["demo", "akrobot"], "diagram 'akrobot' does not exist; did you mean 'acrobot'?"),
    (["demo", "pendulum", "--controller", "pd"], "pendulum: option 'controller' does not exist; there are 'rods'"),
    (["demo", "acrobot", "--set", "qo=1"], "acrobot: option 'qo' does not exist; "),
    (["demo", "acrobot", "--set", "q0"], "--set: expected NAME=VALUE, got 'q0'"),
    (["demo", "acrobot", "--set", "=3"], "--set: expected NAME=VALUE, got '=3'"),
    (["demo", "acrobot", "--set", "q0=[1"], "q0: expected real numbers"),
    (["demo", "acrobot", "--controller", "pid"], "law 'pid' does not exist; did you mean 'pd'?"),
    (["demo", "acrobot", "-T", "-3"], "T: expected a positive number, got -3.0"),
    (["demo", "acrobot", "-T", "nan"], "T: expected a positive number, got nan"),
    (["demo", "acrobot", "--rtol", "0"], "rtol: expected a positive number, got 0.0"),
    (["demo", "pendulum", "--solver", "RK54"], "solver 'RK54' does not exist; did you mean 'RK4"),
    (["demo", "acrobot", "--solver", "Euler"], "solver 'Euler': takes steps of one length; give it, as in --dt 0.001"),
    (["demo", "acrobot", "--report", "no/such/folder.html"], "there is no folder 'no/such'"),
    (["demo", "acrobot", "--report", "."], "--report: expected the name of a file"),
    (["demo", "acrobot", "--report", os.devnull], "--report: expected the name of a file"),
    (["list", "akrobot"], "diagram 'akrobot' does not exist; did you mean 'acrobot'?"),
    (["run", "missing.py"], "missing.py: there is no such file"),
    (["run", "."], ".: is a folder"),
]


@pytest.mark.parametrize(("arguments", "message"), MISTAKES)
def test_a_mistake_is_one_line(cstorm, arguments, message):
    status, said, errors = cstorm(*arguments)
    assert (status, said) == (1, [])
    assert len(errors) == 1 and errors[0].startswith("cstorm: ") and message in errors[0]
    assert not list(Path().glob("*.html"))


USAGE = [
    (["dance"], "cstorm: argument command: invalid choice: 'dance'"),
    (["demo", "-T", "long"], "cstorm demo: argument -T/--time: invalid float value: 'long' (cstorm demo --help)"),
    (["demo", "--pace", "0"], "cstorm demo: argument --pace: expected a positive number or max, got '0'"),
    (["demo", "--pace", "fast"], "argument --pace: expected a positive number or max, got 'fast'"),
    (["demo", "a", "b"], "unrecognized arguments: b"),
    (["run"], "cstorm run: the following arguments are required: file"),
]


@pytest.mark.parametrize(("arguments", "message"), USAGE)
def test_a_line_that_is_no_command_ends_with_two(cstorm, arguments, message):
    status, said, errors = cstorm(*arguments)
    assert (status, said, len(errors)) == (2, [], 1)
    assert message in errors[0]


def test_help_and_version(cstorm):
    status, said, _ = cstorm("--help")
    assert status == 0 and all(any(name in line for line in said) for name in ("demo", "doctor", "warmup"))
    assert cstorm("demo", "--help")[0] == 0
    assert cstorm()[:2] == (0, said)  # without a command too
    assert cstorm("--version")[:2] == (0, [f"cstormpy {cstormpy.__version__}"])


def test_the_paces():
    assert [cli._pace(text) for text in ("max", "auto", "2")] == [None, "auto", 2.0]
    for text in ("-1", "inf", "nan", ""):
        with pytest.raises(argparse.ArgumentTypeError):
            cli._pace(text)


def test_a_pace_is_kept_without_a_window(cstorm):
    begin = time.perf_counter()
    assert cstorm("demo", "pendulum", "-T", 2, "--pace", 4)[0] == 0
    assert time.perf_counter() - begin > 0.498


# ---------------------------------------------------------------- live windows


def test_what_the_run_is_told_of_live_windows(cstorm, monkeypatch):
    """Where one can be shown it is; where none can, a line says why and the report is all."""
    told, said = [], []
    monkeypatch.setattr(cli, "notice", said.append)
    run = simulation.Simulation.run

    def tell(self, bd, **options):
        told.append((options["live"], options["pace"]))
        return run(self, bd, **{**options, "live": False, "pace": None})

    monkeypatch.setattr(simulation.Simulation, "run", tell)
    monkeypatch.setattr(live, "available", lambda: None)
    assert cstorm("demo", "pendulum", "-T", 0.1)[2] == []  # CSTORMPY_LIVE is off here
    monkeypatch.delenv("CSTORMPY_LIVE")
    for arguments in ([], ["--pace", "3"], ["--no-live", "--pace", "max"]):
        assert cstorm("demo", "pendulum", "-T", 0.1, *arguments)[2] == []
    monkeypatch.setattr(live, "available", lambda: "Qt is gone; pip install it")
    assert cstorm("demo", "pendulum", "-T", 0.1)[0] == 0
    assert said == ["no live window: Qt is gone; pip install it"]
    assert cstorm("demo", "pendulum", "-T", 0.1, "--no-live")[2] == []
    assert told == [(False, "auto"), (True, "auto"), (True, 3.0), (False, None), (False, "auto"), (False, "auto")]
    assert [path.name for path in Path().iterdir()] == ["pendulum.html"]


def test_the_window_opens_before_the_script_is_run(cstorm, monkeypatch):
    """It appeared seconds after the command, when all was imported and built; it is closed also where that fails."""
    opened = []

    class Feed:
        def __init__(self, title):
            opened.append((title, "late" if Path("ran").exists() else "before"))

        def close(self):
            opened.append("closed")

    monkeypatch.delenv("CSTORMPY_LIVE")
    monkeypatch.setattr(live, "available", lambda: None)
    monkeypatch.setattr(live, "LiveFeed", Feed)
    wrong = "from pathlib import Path\ndef build(sim):\n    Path('ran').touch()\n    raise ValueError('no')  # {}\n"
    assert cstorm("run", script(wrong.format("MECHANISMVIEW")))[0] == 1
    assert opened[0] == ("mine", "before") and set(opened[1:]) == {"closed"} and Path("ran").exists()
    opened.clear()
    plain = script(wrong.format("SCOPE"), "plain.py")
    for arguments in (["run", plain], ["demo", "acrobat"], ["run", "mine.py", "--no-live"]):
        assert cstorm(*arguments)[0] == 1
    assert set(opened) <= {"closed"}  # the first one, again, as it is collected


def test_a_diagram_without_live_blocks_asks_for_no_window(cstorm, monkeypatch):
    monkeypatch.delenv("CSTORMPY_LIVE")
    monkeypatch.setattr(live, "available", lambda: pytest.fail("asked for"))
    wired = "bd = sim.blockdiagram(); bd.connect(bd.CONSTANT(1), bd.SCOPE()); return bd"
    assert cstorm("run", script(f"def build(sim): {wired}"), "-T", 0.1)[0] == 0


# ---------------------------------------------------------------- scripts and .bd files


def test_a_script_is_run(cstorm):
    status, said, errors = cstorm("run", script(BUILD), "-T", 1, "--set", "gain=2.5")
    assert (status, said, errors) == (0, ["mine: reached the end; the report is mine.html"], [])
    assert Path("mine.html").stat().st_size > 10_000


def test_a_script_finds_what_stands_beside_it(cstorm, tmp_path):
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "gains_of_mine.py").write_text("GAIN = 3.0")
    name = script("from gains_of_mine import GAIN\n" + BUILD.replace("gain=1.0", "gain=GAIN"), "sub/it.py")
    before = list(sys.path)
    assert cstorm("run", name, "-T", 0.1)[0] == 0
    assert sys.path == before and Path("it.html").exists()


def test_an_example_is_run(cstorm):
    example = ROOT / "examples" / "swap_controllers.py"
    if not example.exists():
        pytest.skip("the examples are not beside the package")
    status, _, errors = cstorm("run", example, "-T", 0.2)
    assert status == 1 and "build(sim, …) needs 'law'; give --set law=VALUE" in errors[0]
    assert cstorm("run", example, "-T", 0.2, "--set", "law=pfl")[0] == 0


#: What Python raises at a null byte; before 3.11.4 another error than for what else is no code.
NULL_BYTE = "SyntaxError" if sys.version_info >= (3, 11, 4) else "ValueError"

BAD_SCRIPTS = [
    ("x = 1", "mine.py: has no function build(sim) that returns a diagram"),
    ("def build(sim):\n    return 3", "mine.py: build(sim) returned int; it is to return the diagram"),
    ("def build(sim):\n    x = 0\n    return 1 / x", "mine.py, line 3: ZeroDivisionError: division by zero"),
    ("import json\n\njson.loads('{')\nbuild = 1", "mine.py, line 3: JSONDecodeError: Expecting property name"),
    ("def build(sim)\n    pass", "mine.py, line 1: SyntaxError: "),
    ("x = 1\0", f"cstorm: mine.py: {NULL_BYTE}: source code"),  # Python names neither the file nor the line
    ("\nbuild = compile('1 +', '<text>', 'eval')", "mine.py, line 2: SyntaxError: invalid syntax (<text>, line 1)"),
    ("from no_such_module import build", "mine.py, line 1: ModuleNotFoundError: No module named 'no_such_module'"),
    (BUILD.replace('kind="GAIN"', 'kind="GIAN"'), "mine.py, line 4: block 'GIAN' does not exist; did you mean 'GAIN'?"),
    (BUILD.replace("x0=1.0, name", "x0=1.0, nam"), "mine.py, line 4: "),
    (
        "def build(sim):\n    return sim.blockdiagram().HYBRIDDYNAMICS('acrobat')",
        "mine.py, line 2: ",
    ),
    ("build = 3", "mine.py: has no function build(sim)"),
]


@pytest.mark.parametrize(("text", "message"), BAD_SCRIPTS)
def test_what_is_wrong_in_a_script_is_one_line_that_says_where(cstorm, text, message):
    status, said, errors = cstorm("run", script(text), "-T", 0.1)
    assert (status, said, len(errors)) == (1, [], 1)
    assert message in errors[0]


@pytest.mark.parametrize("end", ["", "from os.path import *\n"])
def test_a_script_without_build_is_not_run(cstorm, end):
    """It ran first, for as long as it took; a name may come from elsewhere, so that such a script is run."""
    script(f"from pathlib import Path\n\nPath('ran.txt').touch()\n{end}")
    assert "has no function build(sim)" in cstorm("run", "mine.py")[2][0]
    assert Path("ran.txt").exists() == bool(end)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_completes_commands_options_and_names(cstorm, shell):
    status, said, _ = cstorm("completion", shell)
    text = "\n".join(said)
    assert status == 0
    for word in ("demo", "doctor", "--controller", "--report", "branched_acrobot", "completion"):
        assert word in text


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["de"], "demo"),
        (["demo", "acrobot_"], "acrobot_elbow"),
        (["run", "--rep"], "--report"),
        (["completion", "z"], "zsh"),
    ],
)
def test_bash_offers_what_begins_so(cstorm, words, expected):
    text = "\n".join(cstorm("completion", "bash")[1])
    line = " ".join(f"'{word}'" for word in ["cstorm", *words])
    ask = f"{text}\nCOMP_WORDS=({line}); COMP_CWORD={len(words)}; _cstorm; echo ${{COMPREPLY[@]}}"
    done = subprocess.run(["bash", "-c", ask], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [expected]


def test_a_file_of_another_kind_is_refused(cstorm):
    Path("notes.txt").touch()
    assert "expected a Python script (.py) or a diagram of bdedit (.bd)" in cstorm("run", "notes.txt")[2][0]


def test_a_bd_file_is_run(cstorm):
    status, said, errors = cstorm("run", _bd_files.path("pendulum"), "-T", 0.5)
    assert (status, said, errors) == (0, ["pendulum: reached the end; the report is pendulum.html"], [])
    status, _, errors = cstorm("run", _bd_files.path("pendulum"), "--set", "rods=2")
    assert status == 1 and "a .bd file has no options" in errors[0]


def test_a_bd_file_says_how_long_it_runs(cstorm, monkeypatch):
    model = json.loads(Path(_bd_files.path("pendulum")).read_text(encoding="utf-8"))
    ends = []
    report = simulation.Simulation.report
    monkeypatch.setattr(
        simulation.Simulation, "report", lambda self, path: ends.append(self._last[1].t[-1]) or report(self, path)
    )
    for simulation_time, want in ((0.25, 0.25), (None, cli.DURATION)):
        Path("it.bd").write_text(json.dumps({**model, "simulation_time": simulation_time}), encoding="utf-8")
        assert cstorm("run", "it.bd")[0] == 0
        assert ends.pop() == want


def test_expressions_in_a_bd_file_are_refused_unless_trusted(cstorm):
    text = Path(_bd_files.path("pendulum")).read_text(encoding="utf-8")
    Path("it.bd").write_text(text.replace('"pendulum"', "\"='pendu' + 'lum'\"", 1), encoding="utf-8")
    status, _, errors = cstorm("run", "it.bd", "-T", 0.1)
    assert status == 1 and len(errors) == 1 and "is an expression, which could run any code; give --trust" in errors[0]
    assert cstorm("run", "it.bd", "-T", 0.1, "--trust")[0] == 0


def test_a_bd_file_that_is_none(cstorm):
    Path("it.bd").write_text("{", encoding="utf-8")
    status, _, errors = cstorm("run", "it.bd")
    assert status == 1 and len(errors) == 1 and "is not a diagram of bdedit" in errors[0]


SOCKET = {"id": 1, "index": 0}
BLOCK = {"block_type": "CONSTANT", "title": "one", "inputs": [], "outputs": [SOCKET], "parameters": {}}
CONNECTOR = {"block_type": "CONNECTOR", "inputs": [{"id": 2}], "outputs": [{"id": 3}]}


def _without(part, name):
    return {key: value for key, value in part.items() if key != name}


FOREIGN = [
    ([], "the file, which is to hold 'blocks' and 'wires': expected an object in braces, got []"),
    ({"wires": []}, "the file has no 'blocks'"),
    ({"blocks": []}, "the file has no 'wires'"),
    ({"blocks": {}, "wires": []}, "the file: 'blocks': expected a list, got {}"),
    ([{}], "block 1 of 1 has no 'block_type'"),
    ([BLOCK, 3], "block 2 of 2: expected an object in braces, got 3"),
    ([{**BLOCK, "block_type": None}], "block 1 of 1: 'block_type': expected a text, got None"),
    ([_without(BLOCK, "title")], "block 1 of 1 has no 'title'"),
    ([_without(BLOCK, "inputs")], "block 'one' has no 'inputs'"),
    ([{**BLOCK, "outputs": [{"id": 1}]}], "block 'one', outputs has no 'index'"),
    ([{**BLOCK, "inputs": [{"index": 0}]}], "block 'one', inputs has no 'id'"),
    ([{**BLOCK, "inputs": [{"index": 0, "id": []}]}], "block 'one', inputs: 'id': expected a whole number or a text"),
    (
        [{**BLOCK, "parameters": "value"}],
        "block 'one': 'parameters': expected pairs of a name and a value, got 'value'",
    ),
    ([{**BLOCK, "parameters": [["value"]]}], "block 'one': 'parameters': expected pairs of a name and a value"),
    ([{**BLOCK, "parameters": {"blockargs": "pos"}}], "block 'one': 'blockargs': expected pairs of a name and a value"),
    ([{**CONNECTOR, "inputs": []}], "block 1 of 1: 'inputs' holds no socket; a connector has one"),
    ({"blocks": [BLOCK], "wires": [{"start_socket": 1}]}, "wire 1 of 1 has no 'end_socket'"),
    (
        {
            "blocks": [CONNECTOR, {**BLOCK, "block_type": "NULL", "inputs": [{"id": 4, "index": 0}], "outputs": []}],
            "wires": [{"start_socket": 3, "end_socket": 2}, {"start_socket": 3, "end_socket": 4}],
        },
        "the connectors with socket 3 feed each other",
    ),
]


@pytest.mark.parametrize(("model", "message"), FOREIGN)
def test_what_a_foreign_bd_file_lacks_is_named(cstorm, model, message):
    """It was said as "KeyError: 'block_type'"."""
    model = {"blocks": model, "wires": []} if model and isinstance(model, list) else model
    Path("it.bd").write_text(json.dumps(model), encoding="utf-8")
    status, said, errors = cstorm("run", "it.bd", "-T", 0.1)
    assert (status, said, len(errors)) == (1, [], 1)
    assert errors[0].startswith("cstorm: it.bd: ") and message in errors[0]
    assert "Error" not in errors[0] and "--debug" not in errors[0]


@pytest.mark.parametrize(
    ("text", "value"),
    [("nan", "nan"), ("inf", "inf"), ("-inf", "-inf"), ("+Inf", "inf"), ("'nan'", "'nan'"), ("info", "'info'")],
)
def test_numbers_without_a_literal_reach_the_diagram_as_numbers(cstorm, text, value):
    """They came as texts, of which some block complained later."""
    name = script("def build(sim, k):\n    raise ValueError(f'k is {k!r}')")
    assert f"ValueError: k is {value} " in cstorm("run", name, "--set", f"k={text}")[2][0]


# ---------------------------------------------------------------- runs that fail or are ended


DIVIDES = "bd.FUNCTION(lambda x: 1 / max(x - 0.5, 0.0), name='one over')"
FAILING = BUILD.replace("    return bd", f"    bd.connect(state, {DIVIDES})\n    return bd")


def test_a_run_that_fails_leaves_its_report(cstorm):
    status, said, errors = cstorm("run", script(FAILING), "-T", 2)
    assert (status, said) == (1, [])
    assert errors[0] == "cstorm: the report on what was simulated until it failed is mine.html"
    assert len(errors) == 2 and "one over" in errors[1] and "ZeroDivisionError" in errors[1]
    assert errors[1].endswith("(--debug shows where)")
    assert "failed" in Path("mine.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("arguments", [["--debug", "run", "mine.py"], ["run", "mine.py", "--debug"]])
def test_debug_shows_the_traceback(cstorm, arguments):
    script(FAILING)
    with pytest.raises(cstormpy.BlockError) as found:
        cli.main([*arguments, "-T", "2"])
    assert isinstance(found.value.__cause__, ZeroDivisionError)


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


@posix
def test_a_reader_that_is_gone_is_no_error():
    done = start("list")
    done.stdout.close()
    error = done.stderr.read()
    assert done.wait(60) in (0, 1) and error == ""


def test_an_error_of_ours_has_no_hint_that_debug_would_show_more(cstorm, monkeypatch):
    def broken(*_):
        raise RuntimeError("a bug,\n  of two lines")

    monkeypatch.setattr(diagrams, "load", broken)
    assert cstorm("demo")[2] == ["cstorm: RuntimeError: a bug, of two lines (--debug shows where)"]


# ---------------------------------------------------------------- list


def test_the_list_names_diagrams_options_and_laws(cstorm):
    status, said, _ = cstorm("list")
    assert status == 0 and max(map(len, said)) <= 120
    text = "\n".join(said)
    for name in diagrams.names():
        assert f"{name}: " in text
        known = [option for option in diagrams.options(name) if option != "controller"]
        part = text.split(f"{name}: ", 1)[1].split("\n\n")[0]
        assert all(option in part for option in known)
        assert ("--controller" in part) == ("controller" in diagrams.options(name))
    assert f"--controller {' | '.join(control.names())}" in text
    assert "blend=0.05" in text and "rods=1" in text


@pytest.mark.parametrize("name", diagrams.names())
def test_each_option_is_explained(cstorm, name):
    """The documentation of `build` has an entry for each; for the laws it says which there are."""
    status, said, _ = cstorm("list", name)
    assert status == 0
    explained = [option for names, _, text in _listing._described(name) for option in names if text]
    assert explained == list(diagrams.options(name))
    text = "\n".join(said)
    assert "-->" in text and "`" not in text
    if "controller" in diagrams.options(name):
        choices = _listing._choices(name)["controller"].split(" | ")
        sim = cstormpy.Simulation(graphics=False)
        built = {choice: diagrams.load(name).build(sim, controller=choice).blocknames for choice in choices}
        lawless = {choice for choice, blocks in built.items() if "controller" not in blocks}
        for choice in set(choices) - lawless:
            assert set(built[choice]["controller"].laws.names) == set(choices) - lawless
        assert lawless in (set(), {"prescribed"})


# ---------------------------------------------------------------- edit


def test_edit_says_what_is_missing(cstorm, monkeypatch):
    import importlib.util

    find = importlib.util.find_spec
    monkeypatch.setattr(live, "available", lambda: None)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "PySide6" else find(name))
    assert cstorm("edit") == (1, [], ["cstorm: edit needs PySide6: pip install 'cstormpy[live]'"])
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object())
    monkeypatch.setattr(live, "available", lambda: "there is no display; get one")
    assert cstorm("edit") == (1, [], ["cstorm: edit can show no window: there is no display; get one"])


def test_edit_opens_bdedit_with_our_blocks(cstorm, monkeypatch):
    import importlib.util

    called = []
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object())
    monkeypatch.setattr(live, "available", lambda: None)
    monkeypatch.setenv("BDSIMPATH", "others")
    codes = iter([0, 3, -6])
    monkeypatch.setattr(subprocess, "call", lambda command, env: called.append((command, env)) or next(codes))
    name = _bd_files.path("pendulum")
    assert cstorm("edit", name) == (0, [], [])
    command, environment = called[0]
    assert command[0] == sys.executable and command[-1] == name
    assert environment["BDSIMPATH"] == "others:cstormpy"
    assert cstorm("edit") == (1, [], ["cstorm: bdedit ended with exit code 3"])
    assert cstorm("edit") == (1, [], ["cstorm: bdedit ended with signal 6"])
    status, _, errors = cstorm("edit", "missing.bd")
    assert status == 1 and "missing.bd: there is no such file" in errors[0] and len(called) == 3


# ---------------------------------------------------------------- doctor, warmup


def test_the_doctor_finds_this_machine_well(cstorm):
    status, said, errors = cstorm("doctor")
    assert (status, errors) == (0, [])
    assert [line for line in said if line.startswith("!!")] == []
    found = " ".join(said)
    assert all(name in found for name in ("Python", "numba", "bdsim", "kernels", "Qt", "live windows"))


def test_the_doctor_asks_for_what_the_package_asks_for():
    from packaging.requirements import Requirement

    if not (ROOT / "pyproject.toml").exists():
        wanted = [Requirement(text) for text in metadata.requires("cstormpy")]
    else:
        from test_package import SETTINGS

        project = SETTINGS["project"]
        wanted = [Requirement(text) for text in project["dependencies"] + project["optional-dependencies"]["live"]]
    needed = {w.name: str(w.specifier) for w in wanted if not w.marker}
    assert {name: f">={lowest}" for name, lowest in doctor.NEEDED.items()}.items() <= needed.items()
    live_wants = {w.name: w.specifier for w in wanted}
    assert all(live_wants[r.name] == r.specifier for r in map(Requirement, doctor.LIVE))
    assert {r.name for r in map(Requirement, doctor.LIVE)}.isdisjoint(doctor.NEEDED)


def test_the_doctor_says_what_mends_what_is_missing(monkeypatch):
    version = metadata.version

    def old(name):
        if name == "bdsim" or name.startswith("PySide6"):
            raise metadata.PackageNotFoundError(name)
        return "1.9.1" if name == "numpy" else version(name)

    monkeypatch.setattr(metadata, "version", old)
    monkeypatch.setattr(sys, "executable", "/opt/my python/bin/python")
    found = {finding.what: finding for finding in doctor.look()}
    assert str(found["bdsim"]) == (
        "!! bdsim               is not installed\n"
        "                       '/opt/my python/bin/python' -m pip install --upgrade 'bdsim>=1.4'"
    )
    assert found["numpy"].state == "1.9.1 is too old" and found["numpy"].mend.endswith("'numpy>=2.0'")
    assert found["Qt"].optional and found["Qt"].mend.endswith(
        "-m pip install 'PySide6-Essentials>=6.8,!=6.12.0' 'pyqtgraph>=0.13.7'"
    )
    assert found["scipy"].well and str(found["scipy"]).startswith("ok scipy")


@pytest.mark.parametrize(
    ("reason", "state", "mend"),
    [
        ("there is no display (DISPLAY is not set); log in with a desktop", "no: there is no display", "log in with"),
        ("Qt needs libEGL.so.1; apt install libegl1", "no: Qt needs libEGL.so.1", "apt install libegl1"),
        ("PySide6 is not installed; pip install 'cstormpy[live]'", "no: PySide6 is not", "PySide6-Essentials>=6.8"),
        ("pyqtgraph is not installed; pip install 'cstormpy[live]'", "no: pyqtgraph is not", "'pyqtgraph>=0.13.7'"),
    ],
)
def test_the_doctor_on_live_windows(monkeypatch, reason, state, mend):
    monkeypatch.setattr(live, "available", lambda: reason)
    finding = doctor.look()[-1]
    assert finding.what == "live windows" and not finding.well and finding.optional
    assert finding.state.startswith(state) and mend in finding.mend
    monkeypatch.setattr(live, "available", lambda: None)
    assert doctor.look()[-1].well


def test_the_doctor_never_fails(cstorm, monkeypatch):
    """Whatever breaks is a finding, and the exit status says that there is one."""

    def broken(*_, **__):
        raise OSError("everything\nis broken")

    monkeypatch.setattr(metadata, "version", broken)
    monkeypatch.setattr(live, "available", broken)
    monkeypatch.setattr(cstormpy.library, "pendulum", broken)
    status, said, errors = cstorm("doctor")
    assert (status, errors) == (1, [])
    assert sum("fails: OSError: everything is broken" in line for line in said) == len(doctor.NEEDED) + 3


@posix
def test_the_doctor_on_kernels_that_can_not_be_kept(monkeypatch, tmp_path):
    (tmp_path / "a file").touch()
    monkeypatch.setenv("CSTORMPY_CACHE_DIR", str(tmp_path / "a file"))
    finding = doctor._kept()
    assert not finding.well and finding.optional and "CSTORMPY_CACHE_DIR" in finding.mend


def test_warmup_says_what_it_did(cstorm, monkeypatch):
    def warm(report):
        report("mass matrix")
        report("hybrid")
        return 3.21

    monkeypatch.setattr("cstormpy.kernels.compiling.warmup", warm)
    assert cstorm("warmup") == (0, ["2 kernels are ready, after 3.2 s"], [])
