"""The command line: ``cstorm demo acrobot``, ``cstorm list``, ``cstorm run``, ``edit``, ``doctor``, ``warmup``."""

from __future__ import annotations

import argparse
import ast
import inspect
import os
import runpy
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import cstormpy
from cstormpy.errors import CstormError, FileFormatError, InvalidValue, unknown_name
from cstormpy.reporting import notice

__all__ = ["main"]

#: What the shell is told: all is well, a mistake of the user or a failed run, interrupted.
OK, FAILED, INTERRUPTED = 0, 1, 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command, and return what the shell is told."""
    given = _parser().parse_args(arguments)
    try:
        status: int = given.command(given)
    except KeyboardInterrupt:
        _say("interrupted")
        return INTERRUPTED
    except CstormError as error:
        if given.debug:
            raise
        _say(str(error))
        return FAILED
    except Exception as error:
        if given.debug:
            raise
        _say(f"{type(error).__name__}: {error} (--debug shows where)")
        return FAILED
    return status


def _say(text: str) -> None:
    print(f"cstorm: {text}", file=sys.stderr)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="cstorm", description="Block diagrams of branched, underactuated mechanisms.")
    parser.add_argument("--version", action="version", version=f"cstormpy {cstormpy.__version__}")
    parser.add_argument("--debug", action="store_true", help="show where an error came from")
    commands = parser.add_subparsers(required=True, metavar="command")

    demo = commands.add_parser("demo", help="run a ready diagram and write its report")
    demo.add_argument("name", nargs="?", default="acrobot", help="one of those that 'cstorm list' shows (acrobot)")
    demo.add_argument("--controller", metavar="LAW", help="the control law, where the diagram has several")
    _run_options(demo)
    demo.set_defaults(command=_demo)

    run = commands.add_parser("run", help="run a script that has build(sim), or a .bd file, and write its report")
    run.add_argument("file")
    run.add_argument("--trust", action="store_true", help="evaluate the expressions in a .bd file")
    _run_options(run)
    run.set_defaults(command=_run)

    commands.add_parser("list", help="show the ready diagrams, their options and laws").set_defaults(command=_list)
    edit = commands.add_parser("edit", help="open bdedit with our blocks in its palette")
    edit.add_argument("file", nargs="?")
    edit.set_defaults(command=_edit)
    commands.add_parser("doctor", help="look at this machine, and say how to mend what is missing").set_defaults(
        command=_doctor
    )
    commands.add_parser("warmup", help="compile all kernels ahead").set_defaults(command=_warmup)
    for command in commands.choices.values():
        command.add_argument("--debug", action="store_true", default=argparse.SUPPRESS, help=argparse.SUPPRESS)
    return parser


def _run_options(command: argparse.ArgumentParser) -> None:
    command.add_argument("-T", "--time", type=float, default=10.0, metavar="SECONDS", help="how long (10)")
    command.add_argument("--solver", default="RK45", help="RK45, DOP853, Radau, … (RK45)")
    command.add_argument("--rtol", type=float, help="relative tolerance (1e-6)")
    command.add_argument("--report", metavar="FILE", help="where the report goes (NAME.html here)")
    command.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="an option of the diagram")


def _options(pairs: Sequence[str]) -> dict[str, Any]:
    """Return options from name=value, values read as literals where they are."""
    options = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not equals or not name.isidentifier():
            raise InvalidValue(f"--set: expected NAME=VALUE, got {pair!r}")
        try:
            options[name] = ast.literal_eval(text)
        except (ValueError, SyntaxError):
            options[name] = text
    return options


def _demo(given: argparse.Namespace) -> int:
    from cstormpy import diagrams

    options = _options(given.set)
    if given.controller is not None:
        options["controller"] = given.controller
    module = diagrams.load(given.name)
    _check_options(given.name, module.build, options)
    return _simulate(given, given.name, lambda sim: module.build(sim, **options))


def _check_options(name: str, build: Any, options: dict[str, Any]) -> None:
    known = [p for p in inspect.signature(build).parameters if p != "sim"]
    for option in options:
        if option not in known:
            raise unknown_name(f"option of {name!r}", option, known)


def _run(given: argparse.Namespace) -> int:
    path = Path(given.file)
    if not path.is_file():
        raise FileFormatError(f"{path}: there is no such file")
    if path.suffix == ".bd":
        return _simulate(given, path.stem, lambda sim: sim.load(path, trust=given.trust))
    if path.suffix != ".py":
        raise FileFormatError(f"{path}: expected a Python script or a .bd file")
    sys.path.insert(0, str(path.parent.resolve()))
    names = runpy.run_path(str(path), run_name="<run by cstorm>")
    build = names.get("build")
    if not callable(build):
        raise FileFormatError(f"{path}: has no function build(sim) that returns a diagram")
    options = _options(given.set)
    _check_options(path.name, build, options)
    return _simulate(given, path.stem, lambda sim: build(sim, **options))


def _simulate(given: argparse.Namespace, name: str, build: Any) -> int:
    """Build and run a diagram and write its report."""
    sim = cstormpy.Simulation(hold=False, graphics=False)
    bd = build(sim)
    out = sim.run(bd, T=given.time, solver=given.solver, rtol=given.rtol)
    target = Path(given.report or f"{name}.html")
    sim.report(target)
    notice(f"{out.message}; the report is {target}")
    return {"failed": FAILED, "interrupted": INTERRUPTED}.get(out.status, OK)


def _list(given: argparse.Namespace) -> int:
    from cstormpy import diagrams

    del given
    width = max(map(len, diagrams.names()))
    for name in diagrams.names():
        module = diagrams.load(name)
        print(f"{name:{width}}  {(module.__doc__ or '').strip().splitlines()[0]}")
        options = [str(p) for p in inspect.signature(module.build).parameters.values() if p.name != "sim"]
        print(f"{'':{width}}  {', '.join(str(o).partition(':')[0] for o in options)}")
    return OK


def _edit(given: argparse.Namespace) -> int:
    import subprocess
    from importlib.util import find_spec

    if find_spec("bdedit") is None or find_spec("PySide6") is None:
        raise InvalidValue("bdedit needs PySide6: pip install 'cstormpy[live]'")
    environment = {**os.environ, "BDSIMPATH": _block_path()}
    command = [sys.executable, "-c", "from bdedit.bdedit import main; main()", *([given.file] if given.file else [])]
    return subprocess.call(command, env=environment)


def _block_path() -> str:
    """Return BDSIMPATH with our package in it."""
    named = [name for name in os.environ.get("BDSIMPATH", "").split(":") if name]
    return ":".join(dict.fromkeys([*named, "cstormpy"]))


def _doctor(given: argparse.Namespace) -> int:
    from cstormpy import doctor

    del given
    findings = doctor.look()
    for finding in findings:
        print(finding)
    return OK if all(f.well or f.optional for f in findings) else FAILED


def _warmup(given: argparse.Namespace) -> int:
    del given
    cstormpy.warmup()
    return OK
