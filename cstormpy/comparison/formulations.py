"""The papers' formulations side by side: agreement, counted operations, measured time, growth, where they cross.

The only module that uses `cstormpy.formulations`; ``cstorm compare-formulations`` is its command.
"""

from __future__ import annotations

import csv
import functools
import itertools
import math
import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from cstormpy.arrays import Array
from cstormpy.comparison import formulation_table
from cstormpy.comparison.figure import draw_formulations
from cstormpy.dynamics.tracing import of_any_size
from cstormpy.errors import InvalidValue
from cstormpy.formulations.counting import counted
from cstormpy.formulations.registry import METHODS, PROBLEMS, Method
from cstormpy.graph import Graph
from cstormpy.graph.arrays import symbols
from cstormpy.graph.nodes import alive
from cstormpy.mechanism import Link, Mechanism, Revolute
from cstormpy.reporting import Progress

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TRACED = 12
"""The most joints with which the kernels' operations are counted."""
KERNELS = "kernels (compiled)"
"""The row of the compiled kernels; their operations are those of a straight line, without structural ones."""
COUNTED = (1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 20)
"""Numbers of joints with which operations are counted, besides the last; those from `REGULAR` on fix a polynomial."""
TIMED = (1, 2, 3, 4, 6, 8, 12, 16, 20, 30, 40)
"""Numbers of joints with which time is measured, besides the last."""
REGULAR = 3
"""From so many joints on, one more adds to the operations as a polynomial: before, ends are not yet apart."""
STEEP, FOLDED = 4, 9
"""Of formulations of this order or more, operations without structural ones are counted up to so many joints only."""
ENOUGH, FEW, MANY = 0.01, 3, 50
"""A time is the least of many runs, or of those that fit into so many seconds; a few more, if they take no longer than
ten times that."""


@dataclass(frozen=True)
class Row:
    """One formulation with one number of joints.

    Attributes
    ----------
    problem, method : str
        What is asked, and how it is answered.
    n : int
        Number of joints.
    multiplications, additions, divisions, functions : int, optional
        Operations, those with structural zeros and ones included.
    folded_multiplications, folded_additions, folded_divisions : int, optional
        Operations without those.
    matrices : int, optional
        Multiplications and additions, structural ones included, that build the joints' matrices from q.
    seconds : float, optional
        Time of one call.
    error : float, optional
        Greatest difference from the kernels, relative to the greatest number of the result if that is above 1.
    """

    problem: str
    method: str
    n: int
    multiplications: int | None = None
    additions: int | None = None
    divisions: int | None = None
    functions: int | None = None
    folded_multiplications: int | None = None
    folded_additions: int | None = None
    folded_divisions: int | None = None
    matrices: int | None = None
    seconds: float | None = None
    error: float | None = None

    def operations(self, fold: bool = False) -> int | None:
        """Return multiplications and additions together, with or without structural zeros and ones."""
        pair = (self.folded_multiplications, self.folded_additions) if fold else (self.multiplications, self.additions)
        return None if pair[0] is None or pair[1] is None else pair[0] + pair[1]


class FormulationComparison:
    """The result of `compare_formulations`.

    Attributes
    ----------
    rows : list of Row
        One for each formulation and number of joints, in the order of the registry.
    methods : tuple of Method
        The formulations.
    last : int
        The greatest number of joints that was asked for.
    """

    def __init__(self, rows: list[Row], methods: tuple[Method, ...], last: int) -> None:
        self.rows, self.methods, self.last = rows, methods, last

    def __str__(self) -> str:
        return formulation_table.text(self)

    def of(self, problem: str, method: str) -> list[Row]:
        """Return the rows of one formulation."""
        return [row for row in self.rows if (row.problem, row.method) == (problem, method)]

    def problems(self) -> list[str]:
        """Return the problems that were compared."""
        return [problem for problem in PROBLEMS if any(row.problem == problem for row in self.rows)]

    def names(self, problem: str) -> list[str]:
        """Return the formulations of a problem, then the kernels."""
        return list(dict.fromkeys(row.method for row in self.rows if row.problem == problem))

    def polynomial(self, problem: str, method: str, fold: bool = False) -> Polynomial | None:
        """Return the polynomial in n that all counts from `REGULAR` on lie on, or None without one."""
        counts = {row.n: row.operations(fold) for row in self.of(problem, method)}
        return Polynomial.through({n: c for n, c in counts.items() if c is not None and n >= REGULAR})

    def operations(self, problem: str, method: str, n: int, fold: bool = False) -> tuple[int, bool] | None:
        """Return the operations with n joints, and whether they were continued by the polynomial."""
        for row in self.of(problem, method):
            if row.n == n and (found := row.operations(fold)) is not None:
                return found, False
        polynomial = self.polynomial(problem, method, fold)
        return None if polynomial is None or n < REGULAR else (polynomial(n), True)

    def seconds(self, problem: str, method: str, n: int) -> tuple[float, bool] | None:
        """Return the time with n joints, and whether it was continued by the power of n that the last times follow."""
        times = {row.n: row.seconds for row in self.of(problem, method) if row.seconds is not None}
        if n in times:
            return times[n], False
        power = self.time_growth(problem, method)
        if power is None or n < max(times):
            return None
        return times[max(times)] * (n / max(times)) ** power, True

    def time_growth(self, problem: str, method: str) -> float | None:
        """Return the power of n that the times follow in the upper half of their range."""
        times = {row.n: row.seconds for row in self.of(problem, method) if row.seconds is not None}
        upper = [n for n in times if 2 * n >= max(times)]
        if len(upper) < 2:
            return None
        return float(np.polyfit(np.log(upper), [math.log(times[n]) for n in upper], 1)[0])

    def crossing(self, problem: str, cheap: str, dear: str, fold: bool = False) -> int | None:
        """Return from how many joints on one formulation takes fewer operations than another, to the last.

        None if it does not with the last number of joints.
        """
        first = None
        for n in range(self.last, 0, -1):
            pair = [self.operations(problem, method, n, fold) for method in (cheap, dear)]
            if pair[0] is None or pair[1] is None or pair[0][0] >= pair[1][0]:
                break
            first = n
        return first

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write all rows as CSV: what was not counted or measured is empty."""
        names = [field.name for field in fields(Row)]
        with open(path, "w", newline="", encoding="utf-8") as file:
            table = csv.writer(file)
            table.writerow(names)
            for row in self.rows:
                table.writerow(["" if (value := getattr(row, name)) is None else value for name in names])

    def plot(self) -> Figure:
        """Return a figure of pyplot's: operations and time over n, a row of plots for each problem."""
        return draw_formulations(self)


@dataclass(frozen=True)
class Polynomial:
    """A polynomial by Newton's forward differences, exact in whole numbers."""

    first: int
    differences: tuple[int, ...]

    @classmethod
    def through(cls, counts: dict[int, int]) -> Polynomial | None:
        """Return the polynomial of least degree through all counts, or None if those one apart do not fix it.

        Fixed means that at least one count was not needed to find it.
        """
        row, n = [], min(counts, default=0)
        first = n
        while n in counts:
            row.append(counts[n])
            n += 1
        differences: list[int] = []
        while len(row) > 1 and any(row):
            differences.append(row[0])
            row = [b - a for a, b in itertools.pairwise(row)]
        if not row or any(row):
            return None
        found = cls(first, tuple(differences))
        return found if all(found(n) == count for n, count in counts.items()) else None

    @property
    def degree(self) -> int:
        """The power of n by which it grows."""
        return len(self.differences) - 1

    def __call__(self, n: int) -> int:
        """Return the number of operations for n joints."""
        m = n - self.first  # negative below the first that was counted, where math.comb gives up
        binomials = (math.prod(range(m - k + 1, m + 1)) // math.factorial(k) for k in range(len(self.differences)))
        return sum(d * binomial for d, binomial in zip(self.differences, binomials, strict=True))


# ---------------------------------------------------------------- what is run
def arm(n: int) -> Mechanism:
    """Return a serial arm of n alike links in the frames of Denavit and Hartenberg, axes along z, as in the papers.

    No twist, length, offset or inertia is 0 or 1, so that nothing but the frames themselves is structural.
    """
    c, s = math.cos(0.7), math.sin(0.7)
    pose = np.array([[1, 0, 0, 0.3], [0, c, -s, -0.1 * s], [0, s, c, 0.1 * c], [0, 0, 0, 1]])
    inertia = np.array([[0.020, 0.001, 0.002], [0.001, 0.030, 0.003], [0.002, 0.003, 0.025]])
    links = [
        Link(f"link{k + 1}", f"link{k}" if k else None, Revolute((0, 0, 1)), pose, 1.3, (0.15, 0.02, -0.03), inertia)
        for k in range(n)
    ]
    return Mechanism(links, gravity=(0.3, -0.4, -9.8))


def arguments(problem: str, n: int) -> tuple[Array, ...]:
    """Return a state of n joints, the same every time."""
    state = np.random.default_rng([1981, n]).uniform(-1.5, 1.5, (3, n))
    return (state[0],) if problem == "mass matrix" else tuple(state)


def kernels(mech: Mechanism, problem: str) -> Callable[..., Any]:
    """Return the compiled kernels' answer to a problem."""
    if problem == "inverse sensitivity":

        def sensitivity(*state: Any) -> tuple[Any, Any, Any]:
            d = mech.inverse_sensitivity(*state)
            return d.dy_dq, d.dy_dqd, d.dy_du

        return sensitivity
    answers: dict[str, Callable[..., Any]] = {
        "inverse dynamics": mech.inverse_dynamics,
        "forward dynamics": mech.forward_dynamics,
        "mass matrix": mech.mass_matrix,
    }
    return answers[problem]


def compare_formulations(n: tuple[int, int] = (1, 60), methods: Sequence[Method] = METHODS) -> FormulationComparison:
    """Compare the formulations on serial arms, each within a range of its own.

    Parameters
    ----------
    n : (first, last)
        Numbers of joints. Where a formulation is too slow to be run with so many, it is continued by the polynomial
        that its counts lie on, and by the power of n that its times follow; what is continued is marked.
    methods : sequence of Method
        Of `cstormpy.formulations.registry.METHODS`.

    Returns
    -------
    FormulationComparison
        Prints as tables; `save` writes a CSV, `plot` returns a figure.

    Raises
    ------
    InvalidValue
        If the range is empty.
    """
    first, last = n
    if not 1 <= first <= last:
        raise InvalidValue(f"n: expected 1 <= first <= last, got {first}:{last}")
    chosen = tuple(methods)
    plan = [(method, size) for method in chosen for size in sizes(method, first, last)]
    rows: list[Row] = []
    with Progress("formulations", 0, len(plan), "runs") as progress:
        for done, (method, size) in enumerate(plan):
            progress.update(done)
            rows.append(measured(method, size, last))
        for problem in dict.fromkeys(method.problem for method in chosen):
            rows += kernel_rows(problem, first, last)
    return FormulationComparison(rows, chosen, last)


def sizes(method: Method, first: int, last: int) -> list[int]:
    """Return the numbers of joints with which a formulation is run."""
    wanted = {k for k in (*COUNTED, min(last, method.counted)) if k <= method.counted}
    wanted |= {k for k in (*TIMED, min(last, method.timed)) if k <= method.timed}
    return sorted(k for k in wanted if first <= k <= last)


def measured(method: Method, n: int, last: int) -> Row:
    """Run one formulation with n joints, on counting numbers and on floats."""
    mech, state = arm(n), arguments(method.problem, n)
    found: dict[str, Any] = {}
    result: Any = None
    if n <= method.counted and (n in COUNTED or n == min(last, method.counted)):
        result, loops = counted(method.run, mech, *state, fold=False)
        for name in ("multiplications", "additions", "divisions", "functions"):
            found[name] = getattr(loops, name)
        if method.order < STEEP or n <= FOLDED:
            _, folded = counted(method.run, mech, *state, fold=True)
            for name in ("multiplications", "additions", "divisions"):
                found[f"folded_{name}"] = getattr(folded, name)
        if method.matrices is not None:
            _, build = counted(method.matrices, mech, state[0], fold=False)
            found["matrices"] = build.multiplications + build.additions
    if n <= method.timed and (n in TIMED or n == min(last, method.timed)):
        found["seconds"], result = least_time(lambda: method.run(mech, *state))
    error = difference(result, kernels(mech, method.problem)(*state))
    return Row(method.problem, method.name, n, error=error, **found)


def kernel_rows(problem: str, first: int, last: int) -> Iterator[Row]:
    """Yield the times of the compiled kernels, and the operations of their straight lines."""
    for n in sorted({k for k in (*COUNTED, *TIMED, last) if first <= k <= last}):
        found: dict[str, Any] = line_operations(arm(n), problem) if n in COUNTED and n <= TRACED else {}
        if n in TIMED or n == last:
            call = functools.partial(kernels(arm(n), problem), *arguments(problem, n))
            call()  # compiled, and prepared for this mechanism
            found["seconds"] = least_time(call)[0]
        if found:
            yield Row(problem, KERNELS, n, **found)


def line_operations(mech: Mechanism, problem: str) -> dict[str, int]:
    """Return how many operations the kernels write down for a problem, the numbers of the mechanism being constants."""
    nodes = Graph().inputs("x", mech.n * len(arguments(problem, 1)))
    state = [symbols(nodes[k : k + mech.n]) for k in range(0, len(nodes), mech.n)]
    with of_any_size():
        answer = kernels(mech, problem)(*state)
    parts = answer if isinstance(answer, tuple) else (answer,)
    done = [node.primitive.name for node in alive(x for part in parts for x in np.ravel(np.asarray(part)))]
    return {
        "folded_multiplications": done.count("mul"),
        "folded_additions": done.count("add") + done.count("sub"),
        "folded_divisions": done.count("div") + done.count("reciprocal"),
    }


def least_time(run: Callable[[], Any]) -> tuple[float, Any]:
    """Return the least time of several runs [s], and what they return."""
    begin, least = time.perf_counter(), math.inf
    for runs in range(1, MANY + 1):
        start = time.perf_counter()
        result = run()
        end = time.perf_counter()
        least = min(least, end - start)
        if end - begin > (ENOUGH if runs >= FEW else 10 * ENOUGH):
            break
    return least, result


def difference(got: Any, want: Any) -> float:
    """Return the greatest difference, relative to the greatest number that is wanted if that is above 1."""
    if isinstance(want, tuple):
        return max(difference(g, w) for g, w in zip(got, want, strict=True))
    return float(np.max(np.abs(np.asarray(got) - want), initial=0.0) / max(1.0, np.max(np.abs(want), initial=0.0)))
