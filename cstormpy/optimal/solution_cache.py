"""Answers that are kept: with the package, or in the user's cache, each with what made it, and verified when read.

A file holds what was asked (`made_by`), with which versions it was answered, and of each solution the variables and the
result; also how the problem was refined. It is found by what was asked, and it counts only if the problem itself finds
the same cost at those variables, and that they are feasible: a file that is damaged, forged or out of date is a file
that is not there.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

from cstormpy import json_files
from cstormpy.errors import CstormError, FileFormatError
from cstormpy.optimal.problem import Problem
from cstormpy.optimal.residuals import FEASIBILITY
from cstormpy.optimal.solution import Solution
from cstormpy.optimal.starts import INTERRUPTED, KEPT, STOPPED, Outcome
from cstormpy.reporting import notice

SHIPPED = Path(__file__).parent / "motions"
"""Answers that come with the package."""

VERSION = 1
"""Of the files; another one is not read."""

DIGITS = 12
"""Significant digits to which numbers that were asked must agree."""

SAME_COST = 1e-6
"""Largest difference of a cost that was kept from what the problem finds, relative to the cost."""

REFINED = ("samples", "steps", "points", "knots")
"""The options that a search may have refined."""

STAGED = (*REFINED, "exact")
"""Those that the stages of a search may have changed as well."""

WITH = "cstormpy", "numpy", "scipy"


def asked(name: str, **options: Any) -> dict[str, Any]:
    """Return what an answer depends on as JSON has it, with numbers of 12 digits.

    >>> asked("swing", goal=np.array([np.pi / 2, -0.0]))
    {'version': 1, 'name': 'swing', 'goal': [1.57079632679, 0.0]}
    """
    plain = _plain({"version": VERSION, "name": name, **options})
    assert isinstance(plain, dict), "made from one"
    return plain


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _plain(entry) for key, entry in value.items()}
    if isinstance(value, np.ndarray):
        return _plain(value.tolist())
    if isinstance(value, (list, tuple)):
        return [_plain(entry) for entry in value]
    return float(f"{value:.{DIGITS}g}") + 0.0 if isinstance(value, float) else value


def file_name(made_by: Mapping[str, Any]) -> str:
    """Return the name of the file of an answer, from what was asked."""
    digest = hashlib.sha256(json_files.json_text(dict(made_by)).encode()).hexdigest()[:16]
    return f"{made_by['name']}-{digest}.json"


def solved(
    problem: Problem,
    made_by: Mapping[str, Any],
    search: Callable[[], Sequence[Solution]],
    anew: bool = False,
    keep: bool = True,
) -> tuple[tuple[Solution, ...], bool]:
    """Return the solutions of a problem, and whether they were known.

    Parameters
    ----------
    problem : Problem
        What is solved at the end of the search.
    made_by : mapping
        What was asked, see `asked`.
    search : callable
        Returns the solutions, best first. They are kept if all of them are feasible and none was stopped.
    anew : bool
        Search, whatever is known.
    keep : bool
        Whether files are read and written.
    """
    if keep and not anew:
        for path in _places(made_by):
            known = _read(path, problem, made_by)
            if known is not None:
                return known, True
    found = tuple(search())
    if keep and all(each.feasible and each.reason not in (INTERRUPTED, STOPPED) for each in found):
        _keep(made_by, found)
    return found, False


def _cache() -> Path:
    """Return the folder of the user's own answers; OSError if this user has no such place."""
    from cstormpy.kernels.compiling import cache_folder

    return cache_folder().parent / "motions"


def _places(made_by: Mapping[str, Any]) -> Iterable[Path]:
    name = file_name(made_by)
    yield SHIPPED / name
    try:
        yield _cache() / name
    except OSError:  # a user without such a place
        return


def _read(path: Path, problem: Problem, made_by: Mapping[str, Any]) -> tuple[Solution, ...] | None:
    """Return the solutions that a file holds; None if there is none, or it is not the answer to this."""

    def make(content: Any) -> tuple[Solution, ...]:
        if not isinstance(content, dict) or content["made_by"] != dict(made_by):
            raise FileFormatError("made_by: is of another question")
        return tuple(_restored(problem, entry) for entry in json_files.list_of(content["solutions"], "solutions"))

    try:
        return json_files.read(path, make) or None
    except (OSError, CstormError, LookupError, TypeError, ValueError, AttributeError):
        return None


def _restored(
    problem: Problem, entry: Any, options: Sequence[str] = REFINED, feasibility: float = FEASIBILITY
) -> Solution:
    """Return a solution from its variables, after the problem has confirmed its cost and violation."""
    x, result = np.array(entry["x"], dtype=np.float64), entry["result"]
    kept, known = entry.get("refined", {}), problem.options
    changes = {n: kept[n] for n in options if n in kept and not np.array_equal(kept[n], getattr(known, n))}
    problem = problem.replace(**changes) if changes else problem
    low, high = problem.bounds
    slack = KEPT * problem.transcription.variable_sizes
    if x.shape != low.shape or not np.isfinite(x).all() or ((x < low - slack) | (x > high + slack)).any():
        raise FileFormatError("x: is not of this problem")
    programme = problem.programme(x)
    cost, sampled = programme.cost(x), programme.violation(x)
    differs = abs(cost - float(result["cost"])) > SAME_COST * abs(cost)
    best = Outcome(0, x, cost, np.inf, bool(result["converged"]), str(result["reason"]), sampled, feasibility)
    if not programme.finite(x) or differs:
        raise FileFormatError("result: is not what these variables give")
    best.measure(problem)
    if not best.feasible:
        raise FileFormatError("result: is not feasible")
    best.problem, best.changes = problem, changes
    best.iterations, best.evaluations = int(result["iterations"]), int(result["evaluations"])
    best.history = [(cost, sampled)]
    return Solution(problem, best, (best,), str(result["solver"]), float(result["seconds"]))


def save(solution: Solution, path: str | os.PathLike[str]) -> None:
    """Write a solution into a file; see `Solution.save`."""
    options = solution.problem.options
    changed = {name: getattr(options, name) for name in STAGED if getattr(options, name) is not None}
    content = written(_asked_of(solution.problem), [solution])
    plain = {name: np.asarray(value).tolist() for name, value in changed.items()}
    content["solutions"][0] |= {"refined": plain, "parameters": solution.parameters}
    json_files.write(path, content)


def load(problem: Problem, path: str | os.PathLike[str]) -> Solution:
    """Return the solution of a problem that a file holds; see `Solution.load`."""

    def make(content: Any) -> Solution:
        if not isinstance(content, dict) or content["made_by"] != _asked_of(problem):
            raise FileFormatError("made_by: is the solution of another mechanism")
        (entry,) = json_files.list_of(content["solutions"], "solutions")
        return _restored(problem, entry, STAGED, float(entry["result"].get("feasibility", FEASIBILITY)))

    try:
        return json_files.read(path, make)
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        if isinstance(error, CstormError):
            raise
        raise FileFormatError(f"{path}: holds no solution of this problem: {error}") from error


def _asked_of(problem: Problem) -> dict[str, Any]:
    return asked("solution", mechanism=problem.mech.to_dict())


def written(made_by: Mapping[str, Any], found: Sequence[Solution]) -> dict[str, Any]:
    """Return what a file of these solutions holds."""
    return {
        "made_by": dict(made_by),
        "made_with": {name: _version(name) for name in WITH},
        "solutions": [_solution(each) for each in found],
    }


def _solution(solution: Solution) -> dict[str, Any]:
    plain = {name: np.asarray(value).tolist() for name, value in solution.refined.items() if value is not None}
    return {"result": _result(solution), **({"refined": plain} if plain else {}), "x": solution.x.tolist()}


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "a checkout"


def _result(solution: Solution) -> dict[str, Any]:
    return {
        "cost": solution.cost,
        "violation": solution.violation,
        "feasibility": solution.feasibility,
        "converged": solution.converged,
        "reason": solution.reason,
        "solver": solution.solver,
        "iterations": solution.iterations,
        "evaluations": solution.evaluations,
        "seconds": round(solution.seconds, 3),
    }


def _keep(made_by: Mapping[str, Any], found: Sequence[Solution]) -> None:
    from cstormpy.private_folder import make_private

    try:
        path = _cache() / file_name(made_by)
        make_private(path.parent)
        json_files.write(path, written(made_by, found))
    except OSError as error:
        notice(f"the answer cannot be kept: {error.strerror or error}")
