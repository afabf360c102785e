"""The command line: what it runs, what it writes and says, and how it ends; also when something is wrong."""

import argparse
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import bd_files
import pytest
from command_lines import BUILD, ROOT, script

import cstormpy
from cstormpy import cli, control, diagrams, live
from cstormpy.diagrams import _listing
from cstormpy.simulation import simulation

pytestmark = pytest.mark.usefixtures("somewhere_else")


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


def test_a_demo_writes_an_animation_too(cstorm):
    status, said, _ = cstorm("demo", "pendulum", "-T", 0.04, "--animation", "swing.gif")
    assert status == 0 and said[1:] == ["pendulum: the animation is swing.gif"]
    assert Path("swing.gif").read_bytes()[:6] == b"GIF89a"


def test_a_demo_of_fixed_steps(cstorm):
    assert cstorm("demo", "pendulum", "-T", 0.2, "--solver", "RK4", "--dt", 0.01)[0] == 0


MISTAKES = [
    (["demo", "akrobot"], "diagram 'akrobot' does not exist; did you mean 'acrobot'?"),
    (["demo", "pendulum", "--controller", "pd"], "pendulum: option 'controller' does not exist; there are 'rods'"),
    (["demo", "acrobot", "--set", "qo=1"], "acrobot: option 'qo' does not exist; "),
    (["demo", "acrobot", "--set", "q0=[1"], "q0: expected real numbers"),
    (["demo", "acrobot", "--controller", "pid"], "law 'pid' does not exist; did you mean 'pd'?"),
    (["demo", "pendulum", "--solver", "RK54"], "solver 'RK54' does not exist; did you mean 'RK4"),
    (["demo", "acrobot", "--solver", "Euler"], "solver 'Euler': takes steps of one length; give it, as in --dt 0.001"),
    (["demo", "acrobot", "--report", "no/such/folder.html"], "there is no folder 'no/such'"),
    (["demo", "acrobot", "--report", "."], "--report: expected the name of a file"),
    (["demo", "acrobot", "--report", "run.pdf"], "run.pdf: is a page of HTML; expected a name that ends in .html"),
    (["demo", "acrobot", "--animation", "run.avi"], "run.avi: expected a name that ends in .gif, .webp or .mp4"),
    (["demo", "acrobot", "--report", os.devnull], "--report: expected the name of a file"),
    (["compare-formulations", "--plot", "growth"], "--plot: growth: expected a name that ends in .png"),
    (["compare-formulations", "--plot", "growth.doc"], "--plot: growth.doc: expected a name that ends in .png"),
    (["list", "akrobot"], "diagram 'akrobot' does not exist; did you mean 'acrobot'?"),
    (["run", "missing.py"], "missing.py: there is no such file"),
    (["run", "."], ".: is a folder"),
    (["run", "acrobot"], "acrobot: there is no such file; the ready diagram is run by: cstorm demo acrobot"),
    (["demo", __file__], "is a file, which is run by: cstorm run "),
]


@pytest.mark.parametrize(("arguments", "message"), MISTAKES)
def test_a_mistake_is_one_line(cstorm, arguments, message):
    status, said, errors = cstorm(*arguments)
    assert (status, said) == (1, [])
    assert len(errors) == 1 and errors[0].startswith("cstorm: ") and message in errors[0]
    assert not list(Path().glob("*.html"))


USAGE = [
    (["dance"], "cstorm: argument command: invalid choice: 'dance'"),
    (["demo", "-T", "long"], "cstorm demo: argument -T/--time: expected a positive number, got 'long' (cstorm "),
    (["demo", "-T", "-3"], "cstorm demo: argument -T/--time: expected a positive number, got '-3'"),
    (["run", "mine.py", "--rtol", "nan"], "cstorm run: argument --rtol: expected a positive number, got 'nan'"),
    (["demo", "--dt", "0"], "cstorm demo: argument --dt: expected a positive number, got '0'"),
    (["demo", "acrobot", "--set", "q0"], "cstorm demo: argument --set: expected NAME=VALUE, got 'q0'"),
    (
        ["demo", "acrobot", "--set", "plant.q0=3"],
        "cstorm demo: argument --set: expected NAME=VALUE, with the name of an option of the diagram's "
        "build(sim, ...), got 'plant.q0=3'",
    ),
    (["demo", "acrobot", "--set", "=3"], "cstorm demo: argument --set: expected NAME=VALUE, got '=3'"),
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


@pytest.mark.slow
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
    ("def build(sim):\n    return 3", "mine.py: build(sim) returned 3, not a diagram; end it with 'return bd'"),
    ("def build(sim):\n    x = 0\n    return 1 / x", "mine.py, line 3: ZeroDivisionError: division by zero"),
    ("import json\n\njson.loads('{')\nbuild = 1", "mine.py, line 3: JSONDecodeError: Expecting property name"),
    ("def build(sim)\n    pass", "mine.py, line 1: SyntaxError: "),
    ("x = 1\0", f"cstorm: mine.py: {NULL_BYTE}: source code"),  # Python names neither the file nor the line
    ("\nbuild = compile('1 +', '<text>', 'eval')", "mine.py, line 2: SyntaxError: invalid syntax (<text>, line 1)"),
    ("from no_such_module import build", "mine.py, line 1: ModuleNotFoundError: No module named 'no_such_module'"),
    (BUILD.replace('kind="GAIN"', 'kind="GIAN"'), "mine.py, line 4: block 'GIAN' does not exist; did you mean 'GAIN'?"),
    (BUILD.replace("x0=1.0, name", "x0=1.0, nam"), "mine.py, line 4: "),
    ("def build(sim):\n    return sim.blockdiagram().HYBRIDDYNAMICS('acrobat')", "mine.py, line 2: "),
    ("build = 3", "mine.py: has no function build(sim)"),
    ("def build():\n    pass", "mine.py: build is called with the simulation, as build(sim, …), and takes none"),
    ("def build(sim, *, rods, **more):\n    pass", "mine.py: build(sim, …) needs 'rods'; give --set rods=VALUE"),
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


LONG = {"branched_acrobot", "seven_joint_arm", "two_link_lifting"}
"""Diagrams whose laws look for much when they are made."""


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow) if name in LONG else name for name in diagrams.names()]
)
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


def test_show_tells_how_many_coordinates_loops_leave_free(cstorm):
    says = "mass 1.6 kg, 3 coordinates of which loops leave 1 free, 1 with a motor, 0 of prescribed motion"
    assert cstorm("show", "four_bar", "--no-live")[1][-1] == says


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
    name = bd_files.path("pendulum")
    assert cstorm("edit", name) == (0, [], [])
    command, environment = called[0]
    assert command[0] == sys.executable and command[-1] == name
    assert environment["BDSIMPATH"] == "others:cstormpy"
    assert cstorm("edit") == (1, [], ["cstorm: bdedit ended with exit code 3"])
    assert cstorm("edit") == (1, [], ["cstorm: bdedit ended with signal 6"])
    status, _, errors = cstorm("edit", "missing.bd")
    assert status == 1 and "missing.bd: there is no such file" in errors[0] and len(called) == 3


def test_warmup_says_what_it_did(cstorm, monkeypatch):
    def warm(report):
        report("mass matrix")
        report("hybrid")
        return 3.21

    monkeypatch.setattr("cstormpy.kernels.compiling.warmup", warm)
    assert cstorm("warmup") == (0, ["2 kernels are ready, after 3.2 s"], [])
