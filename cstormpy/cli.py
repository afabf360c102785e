"""The command line: ``cstorm demo acrobot``, ``cstorm list``, ``cstorm run``, ``edit``, ``doctor``, ``warmup``."""

from __future__ import annotations

import argparse
import ast
import contextlib
import io
import json
import os
import re
import runpy
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from cstormpy.completion import SHELLS, may_define, script_for
from cstormpy.doctor import look, version
from cstormpy.errors import CstormError, DiagramError, FileFormatError, InvalidValue, shown, unknown_name
from cstormpy.file_writer import file_path, write_bytes
from cstormpy.reporting import notice

if TYPE_CHECKING:
    from cstormpy.live import LiveFeed

#: What the shell is told: all is well, a run or a request failed, interrupted by Ctrl-C; 2, of argparse, for a line in
#: which an option or a command is not understood.
OK, FAILED, INTERRUPTED = 0, 1, 130
#: How long a diagram runs unless that is said, by the user or by the diagram [s].
DURATION = 10.0
#: How long a mechanism is shown unless its window is closed before [s].
SHOWN = 3600.0
#: A script whose text names one of the blocks that are made for a live window gets that window at once.
_LIVE_BLOCK = re.compile(r"\b(LIVESCOPE|LIVEXY|MECHANISMVIEW)\b")
_HINT = " (--debug shows where)"
#: Numbers that Python has no literal for.
_NO_LITERALS = ("nan", "inf", "+inf", "-inf")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command, and return what the shell is told."""
    parser = _parser()
    given = parser.parse_args(arguments)
    if given.command is None:
        parser.print_help()
        return OK
    try:
        status: int = given.command(given)
        if sys.stdout is not None:  # a service has none
            sys.stdout.flush()
    except KeyboardInterrupt:
        _say("interrupted")
        return INTERRUPTED
    except BrokenPipeError:  # who read our output, as in "cstorm list | head -1", has gone
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return FAILED
    except (Exception, SystemExit) as error:  # a script's sys.exit(0) would pass for success, with no report
        if given.debug:
            raise
        _say(_in_one_line(error))
        return FAILED
    return status


def _in_one_line(error: Exception | SystemExit) -> str:
    text = re.sub(r"\bsolver='(\w+)'( or )?'?(\w*)'?", r"--solver \1\2\3", " ".join(str(error).split()))
    if isinstance(error, CstormError):
        return text + ("" if isinstance(error.__cause__, (CstormError, OSError, type(None))) else _HINT)
    return f"{type(error).__name__}: {text}{_HINT}"


def _say(text: str) -> None:
    with contextlib.suppress(OSError, ValueError):  # nobody reads it any more
        print(f"cstorm: {text}", file=sys.stderr)


# ---------------------------------------------------------------- what can be given


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """Say it in one line."""
        self.exit(2, f"{self.prog}: {message} ({self.prog} --help)\n")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="cstorm", description="Block diagrams of branched, underactuated mechanisms.")
    parser.add_argument("--version", action="version", version=f"cstormpy {version()}")
    parser.add_argument("--debug", action="store_true", help="show where an error came from")
    parser.set_defaults(command=None)
    commands = parser.add_subparsers(metavar="command")

    demo = commands.add_parser("demo", help="run a ready diagram and write its report")
    demo.add_argument("name", nargs="?", default="acrobot", help="one of those that 'cstorm list' shows (acrobot)")
    demo.add_argument("--controller", metavar="LAW", help="the control law, where the diagram has several")
    _run_options(demo)
    demo.set_defaults(command=_demo)

    run = commands.add_parser("run", help="run a script that has build(sim), or a .bd file, and write its report")
    run.add_argument("file", help="the script, or the .bd file of bdedit")
    run.add_argument("--trust", action="store_true", help="evaluate the expressions in a .bd file")
    _run_options(run)
    run.set_defaults(command=_run)

    show = commands.add_parser("show", help="show a mechanism of a URDF, MJCF or JSON file, a slider for each joint")
    show.add_argument("file", help="the file, or the name of a ready mechanism")
    show.add_argument("--floating", action="store_true", help="let the root link of a URDF move freely")
    show.add_argument("--no-live", action="store_true", help="show no live window")
    show.set_defaults(command=_show)

    lists = commands.add_parser("list", help="show the ready diagrams, their options and laws")
    lists.add_argument("name", nargs="?", help="show this one with its drawing, and what each option means")
    lists.set_defaults(command=_list)
    formulations = commands.add_parser(
        "compare-formulations", help="compare the papers' algorithms: agreement, operations, time, growth"
    )
    formulations.add_argument("--n", type=_range, default=(1, 60), metavar="FIRST:LAST", help="joints (1:60)")
    formulations.add_argument("--csv", default="formulations.csv", metavar="FILE", help="where all numbers go")
    formulations.add_argument("--plot", default="formulations.png", metavar="FILE", help="where the figure goes")
    formulations.set_defaults(command=_compare_formulations)
    edit = commands.add_parser("edit", help="open bdedit with our blocks in its palette")
    edit.add_argument("file", nargs="?", help="the .bd file to open; an empty diagram unless given")
    edit.set_defaults(command=_edit)
    doctor = commands.add_parser("doctor", help="look at this machine, and say how to mend what is missing")
    doctor.set_defaults(command=_doctor)
    commands.add_parser("warmup", help="compile all kernels ahead").set_defaults(command=_warmup)
    completion = commands.add_parser("completion", help="print what completes commands and options in a shell")
    completion.add_argument("shell", choices=SHELLS, help='as in: eval "$(cstorm completion bash)"')
    completion.set_defaults(command=_completion)
    for command in commands.choices.values():
        command.add_argument("--debug", action="store_true", default=argparse.SUPPRESS, help=argparse.SUPPRESS)
    return parser


def _run_options(command: argparse.ArgumentParser) -> None:
    usual = f"how long it runs ({DURATION:g}, or as it says itself)"
    command.add_argument("-T", "--time", type=_positive, metavar="SECONDS", help=usual)
    command.add_argument("--solver", default="RK45", help="RK45, DOP853, Radau, … (RK45)")
    command.add_argument("--rtol", type=_positive, help="relative tolerance (1e-6)")
    steps = "step of RK4 and Euler, else time between samples"
    command.add_argument("--dt", type=_positive, metavar="SECONDS", help=steps)
    command.add_argument(
        "--set", type=_pair, action="append", default=[], metavar="NAME=VALUE", help="an option of the diagram"
    )
    command.add_argument("--report", metavar="FILE", help="where the report goes (NAME.html here)")
    command.add_argument("--animation", metavar="FILE", help="write an animation too, to a .gif, .webp or .mp4")
    command.add_argument("--no-live", action="store_true", help="show no live window")
    command.add_argument(
        "--pace",
        type=_pace,
        default="auto",
        metavar="TIMES",
        help="times real time, or max for as fast as possible (in a live window 1, or as it says itself; else max)",
    )


def _positive(text: str, alternative: str = "") -> float:
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0.0 < number < float("inf"):
        raise argparse.ArgumentTypeError(f"expected a positive number{alternative}, got {text!r}")
    return number


def _pace(text: str) -> float | str | None:
    if text in ("max", "auto"):
        return "auto" if text == "auto" else None
    return _positive(text, " or max")


def _range(text: str) -> tuple[int, int]:
    first, colon, last = text.partition(":")
    try:
        pair = int(first), int(last if colon else first)
    except ValueError:
        pair = (0, 0)
    if not 1 <= pair[0] <= pair[1]:
        raise argparse.ArgumentTypeError(f"expected FIRST:LAST with 1 <= FIRST <= LAST, got {text!r}")
    return pair


def _pair(text: str) -> tuple[str, Any]:
    """Return name and value of name=value, read as a literal where it is one, and nan, inf and -inf as numbers."""
    name, equals, value = text.partition("=")
    if not equals or not name.isidentifier():
        whose = ", with the name of an option of the diagram's build(sim, ...)" if "." in name else ""
        raise argparse.ArgumentTypeError(f"expected NAME=VALUE{whose}, got {text!r}")
    try:
        return name, float(value) if value.strip().lower() in _NO_LITERALS else ast.literal_eval(value)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return name, value


def _checked(what: str, build: Callable[..., Any], options: Mapping[str, Any]) -> None:
    """Refuse options that `build` does not have, and the lack of those that it needs."""
    import inspect

    given = [*inspect.signature(build).parameters.values()]
    if not given or given[0].kind in (given[0].KEYWORD_ONLY, given[0].VAR_KEYWORD):
        raise InvalidValue(f"{what}: build is called with the simulation, as build(sim, …), and takes none")
    own = [p for p in given[1:] if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
    if not any(p.kind is p.VAR_KEYWORD for p in given):
        for option in options:
            if option not in [p.name for p in own]:
                raise unknown_name(f"{what}: option", option, [p.name for p in own])
    for p in own:
        if p.default is p.empty and p.name not in options:
            raise InvalidValue(f"{what}: build(sim, …) needs {p.name!r}; give --set {p.name}=VALUE")


# ---------------------------------------------------------------- demo and run


def _demo(given: argparse.Namespace) -> int:
    from cstormpy import diagrams

    if given.name not in diagrams.names() and os.path.isfile(given.name):
        raise InvalidValue(f"{given.name}: is a file, which is run by: cstorm run {given.name}")
    options = dict(given.set)
    if given.controller is not None:
        options["controller"] = given.controller
    with _window_ahead(given, given.name, shows=given.name in diagrams.names()) as feed:
        build = diagrams.load(given.name).build
        _checked(given.name, build, options)
        return _simulate(given, given.name, lambda sim: build(sim, **options), feed)


def _run(given: argparse.Namespace) -> int:
    from cstormpy import diagrams

    path = file_path(given.file, "file")
    if not os.path.isfile(path):
        ready = f"; the ready diagram is run by: cstorm demo {path}" if given.file in diagrams.names() else ""
        raise FileFormatError(f"{path}: {'is a folder' if os.path.isdir(path) else 'there is no such file'}{ready}")
    if path.suffix.lower() == ".bd":
        if given.set:
            raise InvalidValue(f"{path}: --set is for scripts and ready diagrams; a .bd file has no options")
        given.time = _time_in(path) if given.time is None else given.time
        return _simulate(given, path.stem, lambda sim: sim.load(path, trust=given.trust))
    if path.suffix.lower() != ".py":
        raise FileFormatError(f"{path}: expected a Python script (.py) or a diagram of bdedit (.bd)")
    if not may_define(path, "build"):
        raise _without_build(path)
    shows = _LIVE_BLOCK.search(path.read_text("utf-8", "replace")) is not None
    with _window_ahead(given, path.stem, shows) as feed:
        return _run_script(given, path, feed)


def _run_script(given: argparse.Namespace, path: Path, feed: LiveFeed | None) -> int:
    with _script(path):
        build = runpy.run_path(str(path), run_name="<run by cstorm>").get("build")
    if not callable(build):
        raise _without_build(path)
    options = dict(given.set)
    _checked(path.name, build, options)

    def made(sim: Any) -> Any:
        with _script(path):
            bd = build(sim, **options)
        if not hasattr(bd, "blocklist"):
            raise DiagramError(f"{path}: build(sim) returned {shown(bd)}, not a diagram; end it with 'return bd'")
        return bd

    return _simulate(given, path.stem, made, feed)


def _without_build(path: Path) -> FileFormatError:
    return FileFormatError(
        f"{path}: has no function build(sim) that returns a diagram; one that runs by itself is started with python"
    )


def _completion(given: argparse.Namespace) -> int:
    from cstormpy import diagrams

    print(script_for(given.shell, _parser(), diagrams.names()))
    return OK


def _time_in(path: Path) -> float:
    """Return how long a diagram of bdedit is to run; what else is wrong with the file is said where it is loaded."""
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        return float(json.loads(path.read_text(encoding="utf-8"))["simulation_time"])
    return DURATION


@contextlib.contextmanager
def _script(path: Path) -> Iterator[None]:
    """Run the user's own code: modules beside it are found, and of an error it is said in which line it arose."""
    folder = str(path.parent.resolve())
    sys.path.insert(0, folder)
    try:
        yield
    except (Exception, SystemExit) as error:
        if isinstance(error, SyntaxError) and error.filename and os.path.isfile(error.filename):
            line = f", line {error.lineno}" if error.lineno else ""
            raise DiagramError(f"{error.filename}{line}: SyntaxError: {error.msg}") from error
        kind = "" if isinstance(error, CstormError) else f"{type(error).__name__}: "
        frames = traceback.extract_tb(error.__traceback__)
        files = [f for f in frames if os.path.isfile(f.filename)]  # a frozen module would seem to be of this folder
        own = [f for f in files if os.path.dirname(os.path.realpath(f.filename)) == folder]
        where = f"{os.path.basename(own[-1].filename)}, line {own[-1].lineno}" if own else str(path)
        raise DiagramError(f"{where}: {kind}{error}") from error
    finally:
        with contextlib.suppress(ValueError):
            sys.path.remove(folder)


@contextlib.contextmanager
def _window_ahead(given: argparse.Namespace, name: str, shows: bool) -> Iterator[LiveFeed | None]:
    """Open the window of what will be shown, before anything slow is imported or built."""
    from cstormpy import live

    if not shows or given.no_live or live.is_off() or live.available() is not None:
        yield None
        return
    feed = live.LiveFeed(name)
    try:
        yield feed
    finally:
        feed.close()


def _simulate(given: argparse.Namespace, name: str, build: Callable[[Any], Any], feed: LiveFeed | None = None) -> int:
    """Build and run a diagram and write its report, also on a run that did not come to its end."""
    from cstormpy.report import page_path
    from cstormpy.report.animation import animation_path
    from cstormpy.simulation import Simulation

    target = page_path(_target(given.report, name))
    film = None if given.animation is None else animation_path(_target(given.animation, name, "animation"))
    options = _settings(given)
    sim = Simulation(graphics=False)
    if feed is not None:
        sim.open_window(feed)
    bd = build(sim)
    if given.time is None:
        options["T"] = getattr(bd, "duration", DURATION)
    live = _live(bd, given.no_live)
    pace = getattr(bd, "pace", "auto") if live and given.pace == "auto" else given.pace
    try:
        out = sim.run(bd, live=live, pace=pace, report=target, on_error="raise", **options)
    except FileFormatError:  # of the report
        raise
    except CstormError as error:
        result = getattr(error, "result", None)
        if result is not None and len(result.t):
            _say(f"the report on what was simulated until it failed is {target}")
        raise
    print(f"{name}: {out.message}; the report is {target}")
    if film is not None:
        print(f"{name}: the animation is {sim.animate(film)}")
    return _status(out)


def _status(out: Any) -> int:
    """Return what the shell is told of a run that has not failed."""
    return INTERRUPTED if out.status == "interrupted" else OK


def _settings(given: argparse.Namespace) -> dict[str, Any]:
    """Return the settings of the run, looked at before anything is built."""
    from cstormpy.simulation.settings import Settings

    chosen = {"T": DURATION if given.time is None else given.time, "dt": given.dt}
    chosen.update(solver=given.solver, rtol=given.rtol)
    try:
        Settings.checked(**chosen)
    except InvalidValue as error:
        raise InvalidValue(str(error).replace("run(..., dt=0.001)", "--dt 0.001")) from None
    return chosen


def _target(given: str | None, name: str, what: str = "report") -> Path:
    """Return where the report, or another file, goes; what cannot be written there is said before anything runs."""
    target = Path(f"{name}.html") if given is None else file_path(given, f"--{what}")
    if not target.name or (os.path.exists(target) and not os.path.isfile(target)):
        raise FileFormatError(f"--{what}: expected the name of a file, which {str(target)!r} is not")
    if not os.path.isdir(target.parent):
        raise FileFormatError(f"{target}: the {what} cannot be written: there is no folder {str(target.parent)!r}")
    if not os.access(target.parent, os.W_OK):
        raise FileFormatError(
            f"{target}: the {what} cannot be written: no permission in {str(target.parent.resolve())!r}; "
            f"go elsewhere, or give --{what} FILE"
        )
    return target


def _live(bd: Any, unwanted: bool) -> bool | str:
    """Return whether to show a live window; one that cannot be shown is a line, and no figures beside the report."""
    from cstormpy import live
    from cstormpy.simulation.live_session import wants_window

    if unwanted or live.is_off() or not wants_window(bd):
        return False
    reason = live.available()
    if reason is not None:
        notice(f"no live window: {reason}")
    return reason is None


# ---------------------------------------------------------------- the others


def _show(given: argparse.Namespace) -> int:
    from cstormpy.loops.assembly import independent_rows
    from cstormpy.mechanism import Mechanism, as_mechanism

    if given.floating and Path(given.file).suffix.lower() not in (".urdf", ".xml"):
        raise InvalidValue(f"--floating: is for the file of a URDF, as robot.urdf, got {given.file}")
    mech = Mechanism.from_urdf(given.file, floating=True) if given.floating else as_mechanism(given.file)
    print(mech)
    mass, motors = sum(link.mass for link in mech.links), len(mech.actuated)
    coordinates = "1 coordinate" if mech.n == 1 else f"{mech.n} coordinates"
    if mech.loops:
        with contextlib.suppress(CstormError):  # of one whose loops do not close it is not known
            coordinates += f" of which loops leave {mech.n - len(independent_rows(mech))} free"
    print(f"mass {mass:.6g} kg, {coordinates}, {motors} with a motor, {len(mech.active)} of prescribed motion")
    if given.no_live or not mech.n:
        return OK
    from cstormpy.diagrams import _posture
    from cstormpy.simulation import Simulation

    sim = Simulation(graphics=False)
    bd = _posture.build(sim, mech, title=Path(given.file).stem)
    if _live(bd, unwanted=False):
        return _status(sim.run(bd, T=SHOWN, live=True))
    return OK


def _list(given: argparse.Namespace) -> int:
    from cstormpy.diagrams import _listing

    print(_listing.overview() if given.name is None else _listing.details(given.name))
    return OK


def _compare_formulations(given: argparse.Namespace) -> int:
    table, figure = _target(given.csv, "", "csv"), _target(given.plot, "", "plot")
    import matplotlib
    from matplotlib.backend_bases import FigureCanvasBase

    from cstormpy.comparison.formulations import compare_formulations

    if figure.suffix[1:].lower() not in FigureCanvasBase.filetypes:
        raise FileFormatError(f"--plot: {figure}: expected a name that ends in .png, .pdf or .svg")
    matplotlib.use("Agg")
    found = compare_formulations(given.n)
    found.save(table)
    drawn = io.BytesIO()
    found.plot().savefig(drawn, dpi=120, format=figure.suffix[1:].lower())
    write_bytes(figure, drawn.getvalue())
    print(f"{found}\n\nall numbers are in {table}, the figure is {figure}")
    return OK


def _edit(given: argparse.Namespace) -> int:
    import subprocess
    from importlib.util import find_spec

    from cstormpy import live

    for package in ("PySide6", "bdedit"):
        if find_spec(package) is None:
            mend = "pip install 'cstormpy[live]'" if package == "PySide6" else "pip install --force-reinstall bdsim"
            raise InvalidValue(f"edit needs {package}: {mend}")
    reason = live.available()
    if reason is not None:
        raise InvalidValue(f"edit can show no window: {reason}")
    if given.file is not None and not os.path.isfile(file_path(given.file, "file")):
        raise FileFormatError(f"{given.file}: there is no such file; 'cstorm edit' alone begins with an empty diagram")
    environment = {**os.environ, "BDSIMPATH": _block_path()}
    command = [sys.executable, "-c", "from bdedit.bdedit import main; main()", *([given.file] if given.file else [])]
    status = subprocess.call(command, env=environment)
    if status:
        _say(f"bdedit ended with {f'signal {-status}' if status < 0 else f'exit code {status}'}")
    return FAILED if status else OK


def _block_path() -> str:
    """Return BDSIMPATH with our package in it."""
    named = [name for name in os.environ.get("BDSIMPATH", "").split(":") if name]
    return ":".join(dict.fromkeys([*named, "cstormpy"]))


def _doctor(given: argparse.Namespace) -> int:
    del given
    findings = look()
    for finding in findings:
        print(finding)
    return OK if all(f.well or f.optional for f in findings) else FAILED


def _warmup(given: argparse.Namespace) -> int:
    from cstormpy.kernels.compiling import warmup

    del given
    kernels: list[str] = []
    seconds = warmup(report=kernels.append)
    print(f"{len(kernels)} kernels are ready, after {seconds:.1f} s")
    return OK
