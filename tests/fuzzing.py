"""Seeded, bounded fuzzing: whatever is given to the package, only errors of its own come out.

Each target is a call with arguments that serve; in each trial one or two of them are replaced by something else, and
what comes out is judged: an error of the package's own, in words for a user, or none at all.

    python tests/fuzzing.py --trials 100000 --seed 1     the whole, some minutes
    python tests/fuzzing.py --only run --trials 500      one group, with what was found at its end
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import functools
import inspect
import io
import json
import os
import random
import re
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from odd_values import altered, corrupted

import cstormpy as cs
from cstormpy import control, library
from cstormpy.errors import CstormError

#: Seconds that one trial may take, with the compiling of a kernel on a machine that is busy.
PATIENCE = 60
#: Words of the depths that are no words for a user: names of NumPy's types, private names, objects' addresses.
JARGON = re.compile(r"[<>|=][US]\d+\b|dtype\(|\b_[A-Z]\w*[a-z]\w*\b|object at 0x")
#: Messages are read on a screen.
LONGEST = 4000


# ---------------------------------------------------------------- targets


@dataclass
class Target:
    """A call with arguments that serve, by name; of functions also those that have defaults are replaced."""

    group: str
    name: str
    call: Callable[..., Any]
    arguments: dict[str, Any] = field(default_factory=dict)
    #: Arguments that are left as they are.
    kept: tuple[str, ...] = ()

    def trial(self, rng: random.Random) -> dict[str, Any]:
        """Return arguments of which one or two are replaced."""
        arguments = dict(self.arguments)
        with contextlib.suppress(ValueError, TypeError):
            for name, p in inspect.signature(self.call).parameters.items():
                if p.default is not p.empty and p.kind is not p.VAR_KEYWORD:
                    arguments.setdefault(name, p.default)
        names = [name for name in arguments if name not in self.kept]
        chosen = rng.sample(names, min(len(names), rng.choice([1, 1, 1, 2])))
        given = {name: value for name, value in self.arguments.items() if name not in chosen}
        given |= {name: altered(rng, arguments[name]) for name in chosen}
        # a long run is no fault: what takes long is not asked for
        return {
            name: 0.02 if name == "T" and is_number(value) and value > 1 else value for name, value in given.items()
        }


TARGETS: dict[str, Callable[[], list[Target]]] = {}


def targets(group: str) -> Callable[[Callable[[], list[Target]]], Callable[[], list[Target]]]:
    """Enter a function that makes the targets of a group."""

    def enter(make: Callable[[], list[Target]]) -> Callable[[], list[Target]]:
        TARGETS[group] = make
        return make

    return enter


Z2 = [0.1, 0.2]


@targets("mechanism")
def mechanisms() -> list[Target]:
    axis, links = [0, 0, 1], library.acrobot().links
    acrobot = library.acrobot()
    joint = {"axis": axis, "limits": (-1, 1), "name": "elbow"}
    makers: list[tuple[Callable[..., Any], dict[str, Any]]] = [
        (cs.Revolute, joint),
        (cs.Prismatic, joint),
        (cs.Screw, {**joint, "pitch": 0.1}),
        (cs.Fixed, {}),
        (cs.Limits, {"position": (-1, 1), "velocity": 2.0, "torque": (-3, 3)}),
        (cs.Link, {"name": "rod", "joint": cs.Revolute(axis), "pose": np.eye(4), "mass": 1.0, "inertia": np.eye(3)}),
        (cs.Mechanism, {"links": list(links), "actuated": ["elbow"], "active": ["elbow"]}),
        (acrobot.with_drive, {"active": ["elbow"]}),
        (acrobot.with_gravity, {"gravity": (0, 0, -9.81)}),
        (acrobot.with_parameters, {"values": {"elbow.damping": 0.1}}),
        (acrobot.replace, {"gravity": (0, 0, 0)}),
        (acrobot.save, {"path": "saved.json"}),
        (cs.Mechanism.load, {"path": "acrobot.json"}),
        (cs.Mechanism.from_dict, {"content": acrobot.to_dict()}),
        (cs.Mechanism.from_dh, {"table": library.arm7().to_dh().rows, "convention": "standard", "base": np.eye(4)}),
        (cs.Mechanism.from_urdf, {"path_or_text": "arm.urdf", "floating": False, "gravity": (0, 0, -9.81)}),
        (library.arm7().to_dh, {"convention": "modified"}),
        (library.arm7().to_urdf, {"name": "arm"}),
        (library.arm7().to_mjcf, {"name": "arm"}),
        (acrobot.without_fixed, {}),
        *((getattr(library, name), {}) for name in library.__all__ if name != "get"),
        (library.get, {"name": "pendulum", "n": 2}),
    ]
    return [Target("mechanism", call.__name__, call, arguments) for call, arguments in makers]


@targets("mech")
def methods() -> list[Target]:
    mech = library.acrobot()
    values = {
        "q": Z2, "qd": Z2, "qdd": Z2, "u": Z2, "tau": Z2, "dq": Z2, "dqd": Z2, "du": Z2, "gy": Z2, "link": "forearm",
        "name": "elbow", "pose": np.eye(4), "base": (np.zeros(6), np.zeros(6)), "wrench": np.zeros((2, 6)),
    }  # fmt: skip
    values["link"] = mech.links[-1].name
    found = []
    skipped = ("from_dict", "from_urdf", "from_dh", "load", "save", "replace", "to_dict", "of_symbols")
    for name in dir(mech):
        call = getattr(mech, name)
        if name.startswith("_") or name in skipped or not callable(call):
            continue
        wanted = [p.name for p in inspect.signature(call).parameters.values() if p.default is p.empty]
        arguments = {key: values.get(key, Z2) for key in wanted if key != "values"}
        if name == "inverse_kinematics":
            arguments |= {"starts": 2, "iterations": 5}
        if name == "with_parameters":
            continue
        found.append(Target("mech", name, call, arguments))
    for name in ("hybrid_evaluator", "hybrid_sensitivity_evaluator"):
        evaluate = getattr(mech, name)()
        found.append(Target("mech", f"{name}()", lambda q, qd, u, f=evaluate: f(q, qd, u), dict(q=Z2, qd=Z2, u=Z2)))
    return found


@targets("spline")
def splines() -> list[Target]:
    curve = cs.BSpline.clamped(np.linspace(0, 1, 8).reshape(4, 2), 2.0)
    times, values = [0.0, 0.5, 1.0, 1.5, 2.0], [[0, 0], [1, 0], [2, 1], [1, 1], [0, 0]]
    ends = cs.EndConditions(q0=[0, 0], q1=[1, 1])
    given = {
        "control_points": curve.control_points, "duration": 2.0, "times": times, "values": values, "q0": [0, 0],
        "q1": [1, 1], "points": values, "conditions": ends, "knots": curve.knots, "degree": 3, "n": 2, "count": 6,
        "curve": lambda t: np.column_stack([np.sin(t), np.cos(t)]), "names": ["a", "b"], "t0": 0.0,
    }  # fmt: skip
    named = cs.BSpline.clamped(curve.control_points, 2.0, names=["a", "b"])
    calls = [cs.BSpline, cs.EndConditions, cs.ControlPointMap, cs.clamped_knots, cs.uniform_knots]
    calls += [cs.cubic, cs.quintic, cs.septic, cs.minimum_jerk]
    skipped = ("to_dict", "from_dict", "replace")
    calls += [getattr(named, n) for n in dir(named) if not n.startswith("_") and n not in skipped]
    found = []
    for call in filter(callable, calls):
        parameters = inspect.signature(call).parameters.values()
        wanted = [p.name for p in parameters if p.default is p.empty and p.kind is not p.VAR_KEYWORD]
        arguments = {key: given[key] for key in wanted if key in given}
        name = call.__name__
        if name in ("fit", "from_curve"):
            arguments |= {"control_points": 5, "interval": (0.0, 2.0)}
        if name == "rest_to_rest" or name == "refine":
            arguments["control_points"] = 8
        if name in ("load", "save"):
            arguments = {"path": "spline.json" if name == "load" else "saved.json"}
        if name == "insert_knots":
            arguments = {"times": [0.5]}
        found.append(Target("spline", name, call, arguments))
    found.append(Target("spline", "from_dict", cs.BSpline.from_dict, {"data": named.to_dict()}))
    found.append(Target("spline", "replace", named.replace, {"degree": 3}))
    return found


@targets("files")
def texts() -> list[Target]:
    """Files with corrupted bytes, and documents of which something is replaced."""
    makers = {
        "acrobot.json": cs.Mechanism.load, "arm.urdf": cs.Mechanism.load, "spline.json": cs.BSpline.load,
        "acrobot.bd": lambda path: cs_simulation().load(path),
    }  # fmt: skip
    documents = {name: json.loads(Path(name).read_text(encoding="utf-8")) for name in makers if name != "arm.urdf"}
    found = []

    def from_bytes(name: str, seed: int) -> None:
        raw = corrupted(random.Random(seed), Path(name).read_text(encoding="utf-8"))
        Path("corrupted" + Path(name).suffix).write_bytes(raw)
        makers[name]("corrupted" + Path(name).suffix)

    def from_document(name: str, seed: int) -> None:
        rng = random.Random(seed)
        for _ in range(20):
            with contextlib.suppress(TypeError, ValueError, OverflowError):
                text = json.dumps(altered_deep(rng, documents[name]))
                break
        else:
            return
        Path("altered" + Path(name).suffix).write_text(text, encoding="utf-8", errors="replace")
        makers[name]("altered" + Path(name).suffix)

    for name in makers:
        for way in (from_bytes, from_document) if name in documents else (from_bytes,):
            found.append(_Seeded("files", f"{way.__name__} {name}", functools.partial(way, name)))
    return found


def is_number(value: Any) -> bool:
    """Tell whether something is a number that a float can hold."""
    return isinstance(value, (int, float, np.floating)) and abs(value) <= sys.float_info.max


class _Seeded(Target):
    """A target whose one argument is the seed of what it makes itself."""

    def trial(self, rng: random.Random) -> dict[str, Any]:
        return {"seed": rng.randrange(2**32)}


def altered_deep(rng: random.Random, document: Any) -> Any:
    """Return a document of JSON in which something, anywhere, is replaced."""
    if isinstance(document, (dict, list)) and document and rng.random() < 0.85:
        out = copy.copy(document)
        key = rng.choice(list(out)) if isinstance(out, dict) else rng.randrange(len(out))
        out[key] = altered_deep(rng, out[key])
        return out
    return altered(rng, document)


@functools.cache
def cs_simulation() -> Any:
    return cs.Simulation(engine="interpreted", live=False, progress=False, graphics=False)


@functools.cache
def loop() -> Any:
    bd = cs_simulation().blockdiagram()
    mech = library.pendulum()
    plant, law = bd.HYBRIDDYNAMICS(mech, q0=[0.1], name="plant"), bd.GAIN(-1.0, name="law")
    bd.connect(plant.q, law)
    bd.connect(law, plant.tau)
    return bd


def signature(defaults: dict[str, Any]) -> inspect.Signature:
    """Return a signature of keywords with defaults."""
    return inspect.Signature([inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=value)
                              for name, value in defaults.items()])  # fmt: skip


@targets("run")
def simulations() -> list[Target]:
    sim, bd = cs_simulation(), loop()
    few = {"T": 0.02, "dt": 0.01, "solver": "RK4"}

    def simulate(**options: Any) -> Any:
        return cs.Simulation(**options)

    def run(**options: Any) -> Any:
        return sim.run(bd, **options)

    defaults = {
        "T": 0.02, "dt": 0.01, "max_step": None, "solver": "RK4", "solver_args": None, "debug": "", "block": None,
        "checkfinite": True, "watch": ("plant.q",), "threaded": False, "rtol": None, "atol": None, "log_dt": None,
        "first_tick": 0, "start": None, "at": None, "observer": None, "on_error": "return", "live": None,
        "pace": "auto", "report": None,
    }  # fmt: skip
    run.__signature__ = signature(defaults)
    adaptive = {"T": 0.02, "solver": "RK45", "rtol": 1e-4, "atol": 1e-6, "dt": None}
    cost = lambda out: out.x[-1, 0]  # noqa: E731
    options = {"engine": "interpreted", "live": False, "progress": False, "graphics": False, "hold": False}
    return [
        Target("run", "Simulation", simulate, options),
        Target("run", "run", run, few),
        Target("run", "run adaptive", run, adaptive),
        Target("run", "linearize", sim.linearize, {"bd": bd, "inputs": ["plant.tau"], "outputs": ["plant.q"]}),
        Target("run", "trim", sim.trim, {"bd": bd, "inputs": ["plant.tau"], "hold": ["plant"]}),
        Target("run", "gradient", sim.gradient, {"bd": bd, "cost": cost, "parameters": ["law.K"], **few}),
        Target("run", "load", sim.load, {"path": "acrobot.bd"}),
        Target("run", "report", sim.report, {"path": "report.html"}),
    ]


@targets("law")
def laws() -> list[Target]:
    mech = library.acrobot()
    arm = library.planar_2r()
    found = []
    served: dict[str, dict[str, Any]] = {
        "PD": {"kp": 1.0, "kd": [1.0]}, "OpenLoop": {"tau": [0.0]},
        "Then": {"first": control.Off(mech), "second": control.Off(mech), "duration": 1.0},
        "SwingUp": {"pump": control.Off(mech), "balance": control.LQR(mech), "threshold": 50.0},
        "TVLQR": {"motion": cs.quintic([0.1, 0.2], [0.2, 0.1], 0.1), "steps": 20},
    }  # fmt: skip
    for name in control.__all__:
        kind = getattr(control, name)
        if not callable(kind) or name in ("Then", "SwingUp"):
            continue
        if inspect.isclass(kind):
            whose = mech if name not in ("ComputedTorque", "TVLQR", "OpenLoop") else arm
            found.append(Target("law", name, kind, {"mech": whose, **served.get(name, {})}))
    for name in ("Then", "SwingUp"):
        found.append(Target("law", name, getattr(control, name), served[name]))
    found.append(Target("law", "law", control.law, {"name": "lqr", "mech": mech, "R": 2.0}))
    called = control.law("lqr", mech)
    found.append(Target("law", "call", lambda t, q, qd: called(t, q, qd), {"t": 0.0, "q": Z2, "qd": Z2}))
    return found


@targets("block")
def blocks() -> list[Target]:
    sim = cs_simulation()
    given = {"mech": library.acrobot(), "mechanism": library.acrobot(), "trajectory": cs.quintic([0, 0], [1, 1], 1.0)}
    served: dict[str, dict[str, Any]] = {
        "CONTROLLER": {"mechanism": "acrobot", "laws": "lqr"}, "SPLINETRAJECTORY": {"trajectory": given["trajectory"]},
        "FROMDATA": {"data": "spline.json", "signal": "x"}, "GAIN": {"K": 2.0}, "SUM": {"signs": "+-"},
        "FUNCTION": {"func": np.sin}, "STEP": {"T": 1.0}, "PUSH": {"mechanism": "acrobot"},
    }  # fmt: skip
    found = []
    for kind in sim._blocklibrary:
        init = inspect.signature(sim._resolve_block_class(kind).__init__)
        wanted = [p for p in list(init.parameters.values())[1:] if p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)]
        needed = {p.name: given[p.name] for p in wanted if p.name in given and p.default is p.empty}

        def make(kind: str = kind, **options: Any) -> Any:
            return getattr(sim.blockdiagram(), kind)(**options)

        defaults = {p.name: None if p.default is p.empty else p.default for p in wanted if p.name != "bd"}
        make.__signature__ = signature({**defaults, "name": "it"})
        found.append(Target("block", kind, make, served.get(kind, needed)))
    return found


@targets("command")
def commands() -> list[Target]:
    from cstormpy import cli

    words = ["demo", "list", "run", "edit", "doctor", "acrobot", "pendulum", "nothing", "acrobot.bd", "script.py",
             "acrobot.json", "corrupted.bd", "--trust", "-T", "--time", "0.01", "-1", "nan", "1e999", "--solver", "RK4",
             "RK45", "Radau", "x", "--rtol", "1e-3", "--dt", "0.005", "--set", "controller=lqr", "controller=",
             "q0=[1,2", "=3", "law=\0", "--report", "r.html", "/", "no/such.html", "--no-live", "--pace", "max", "0",
             "--controller", "lqr", "pfl", "", "\0", "é", "--version", "-h", "9" * 500, "."]  # fmt: skip

    def command(seed: int) -> None:
        rng = random.Random(seed)
        first = rng.choice([["demo", "pendulum"], ["run", "script.py"], ["run", "acrobot.bd"], ["list"], ["run"], []])
        argv = ["--debug", *first, "--no-live"][: None if first and first[0] in ("demo", "run") else -1]
        argv += rng.choice([["-T", "0.01", "--solver", "RK4", "--dt", "0.005"], []]) if len(first) == 2 else []
        argv += [rng.choice(words) for _ in range(rng.choice([0, 1, 1, 2, 2, 3]))]
        if "doctor" in argv or "warmup" in argv or "edit" in argv:
            return
        if len(first) == 2 and not {"-T", "--time"} & set(argv):
            argv += ["-T", "0.01"]
        try:
            status = cli.main(argv)
        except SystemExit as end:
            status = end.code if isinstance(end.code, int) else 2
        if status not in (0, 1, 2):
            raise AssertionError(f"{argv}: exit status {status}")

    return [_Seeded("command", "cstorm", command)]


# ---------------------------------------------------------------- trials and what they bring out


@dataclass(frozen=True)
class Finding:
    """Something that is not to come out."""

    target: str
    what: str
    where: str
    arguments: str


class TooLong(BaseException):
    """A trial that did not end."""


def judged(target: Target, arguments: dict[str, Any]) -> Finding | None:
    """Return what is wrong with what a call brings out, if anything."""

    def late(*_: Any) -> None:
        raise TooLong

    written = short(arguments)
    before = signal.signal(signal.SIGALRM, late) if hasattr(signal, "SIGALRM") else None
    try:
        if before is not None:
            signal.alarm(PATIENCE)
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            target.call(**arguments)
    except CstormError as error:
        return unfit(target, error, written)
    except TypeError as error:
        if unbound(target, arguments, error):  # Python's own word on names of arguments
            return None
        return found(target, error, written)
    except TooLong:
        return Finding(target.name, f"takes more than {PATIENCE} s", "", written)
    except Exception as error:
        return found(target, error, written)
    finally:
        if before is not None:
            signal.alarm(0)
            signal.signal(signal.SIGALRM, before)
    return None


def unbound(target: Target, arguments: dict[str, Any], error: TypeError) -> bool:
    """Tell whether Python refused the names of the arguments, before anything ran."""
    frames = traceback.extract_tb(error.__traceback__)
    return all(Path(frame.filename).name == Path(__file__).name for frame in frames)


def unfit(target: Target, error: CstormError, written: str) -> Finding | None:
    """Return what is wrong with an error of the package's own."""
    text = str(error)
    name = type(error).__name__
    if name.startswith("_"):
        return Finding(target.name, f"private class {name}", "", written)
    if len(text) > LONGEST:
        return Finding(target.name, f"a message of {len(text)} characters", text[:200], written)
    jargon = JARGON.search(text)
    if jargon:
        return Finding(target.name, f"jargon {jargon[0]!r}", text[:300], written)
    return None


def found(target: Target, error: BaseException, written: str) -> Finding:
    frames = [f for f in traceback.extract_tb(error.__traceback__) if Path(f.filename).name != Path(__file__).name]
    last = [f"{Path(f.filename).name}:{f.lineno}" for f in frames[-3:]]
    try:
        text = str(error)[:120]
    except Exception:
        text = "?"
    return Finding(target.name, f"{type(error).__name__}: {text}", " ".join(last), written)


def short(value: Any) -> str:
    """Return what a value is, on one line, whatever it is."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{short(k)}: {short(v)}" for k, v in value.items()) + "}"
    try:
        return " ".join(repr(value).split())[:120]
    except Exception as error:
        return f"<{type(value).__name__}, {type(error).__name__}>"


@contextlib.contextmanager
def workplace() -> Iterator[None]:
    """Work in an empty folder with the files that targets read."""
    here = os.getcwd()
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        os.chdir(folder)
        try:
            library.acrobot().save("acrobot.json")
            Path("arm.urdf").write_text(library.arm7().to_urdf(), encoding="utf-8")
            cs.BSpline.clamped(np.linspace(0, 1, 8).reshape(4, 2), 2.0).save("spline.json")
            source = Path(cs.diagrams.__file__).with_name("acrobot.bd")
            Path("acrobot.bd").write_bytes(source.read_bytes())
            Path("corrupted.bd").write_text("{")
            Path("script.py").write_text(
                "def build(sim, gain=2.0):\n    bd = sim.blockdiagram()\n    a = bd.INTEGRATOR(x0=1.0)\n"
                "    g = bd.GAIN(-gain)\n    bd.connect(a, g)\n    bd.connect(g, a)\n    return bd\n"
            )
            cs_simulation().load("acrobot.bd")  # what is loaded or compiled at first is no part of a trial
            yield
        finally:
            os.chdir(here)


def fuzz(trials: int, seed: int, only: str = "", patience: float = 1e9) -> tuple[list[Finding], Counter[str]]:
    """Make trials, the same for the same seed, and return what was found and how many each group had."""
    rng = random.Random(seed)
    findings: dict[tuple[str, str, str], Finding] = {}
    counts: Counter[str] = Counter()
    with workplace():
        made = {group: make() for group, make in TARGETS.items() if only in ("", group)}
        end = time.monotonic() + patience
        for group in rng.choices(list(made), [SHARES[group] for group in made], k=trials):
            target = rng.choice(made[group])
            if time.monotonic() > end:
                break
            arguments = target.trial(rng)
            counts[target.group] += 1
            finding = judged(target, arguments)
            if finding is not None:
                findings.setdefault((finding.target, finding.what[:60], finding.where[-40:]), finding)
    return list(findings.values()), counts


#: How many of a hundred trials a group has: many of what takes microseconds.
SHARES = {"mechanism": 25, "mech": 35, "spline": 22, "block": 10, "files": 4, "run": 2, "law": 1, "command": 1}


def main() -> int:
    """Fuzz from the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="one group")
    parser.add_argument("--seconds", type=float, default=1800.0, help="stop after so many")
    given = parser.parse_args()
    began = time.monotonic()
    findings, counts = fuzz(given.trials, given.seed, given.only, given.seconds)
    for finding in findings:
        print(f"{finding.target}: {finding.what}\n    at {finding.where}\n    given {finding.arguments}")
    tried = ", ".join(f"{count} {group}" for group, count in sorted(counts.items()))
    print(f"{sum(counts.values())} trials in {time.monotonic() - began:.0f} s ({tried}): {len(findings)} findings")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
