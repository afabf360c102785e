"""A comparison of formulations as text: a table for each problem, where they cross, and the papers' own figures."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

from cstormpy.reporting import aligned

if TYPE_CHECKING:
    from cstormpy.comparison.formulations import FormulationComparison

NOTHING = "-"
"""The entry of what was neither counted nor measured."""
CONTINUED = "~"
"""In front of what was not run, but continued from smaller mechanisms."""
SIX = 6
"""The number of joints that the papers compare with."""

_INVERSE, _FORWARD = "inverse dynamics", "forward dynamics"
_DIRECT, _FOUR, _THREE, _LUH = "Uicker, Kahn (1.2)", "Hollerbach 4x4", "Hollerbach 3x3", "Luh, Walker, Paul"
_XIANG = "Xiang: recursive"

#: What is said (by whom), the two formulations, and the ratio of their operations with six joints.
PRINTED = (
    ("(1.2) over the 4x4 recursion (Silver, 1.4)", _DIRECT, _FOUR, 15.0),
    ("(1.2) over the 4x4 recursion that keeps no product", _DIRECT, _XIANG, 15.0),
    ("4x4 recursion over Luh's (Silver, 1.4)", _FOUR, _LUH, 5.0),
    ("4x4 recursion that keeps no product over Luh's", _XIANG, _LUH, 5.0),
    ("4x4 over 3x3 recursion (Silver, 1.4)", _FOUR, _THREE, 2.0),
    ("3x3 recursion over Luh's (Silver, 1.4)", _THREE, _LUH, 2.5),
)


def text(found: FormulationComparison) -> str:
    """Return all tables, and what marks mean."""
    parts = [problem_table(found, problem) for problem in found.problems()]
    parts += [part for part in (crossings(found), printed(found)) if part]
    parts.append(
        "Operations: multiplications and additions, 'loops' with structural zeros and ones, 'folded' without.\n"
        "Order: power of n, as the loops say / of the polynomial through all counts / of the measured times.\n"
        f"{CONTINUED} continued from smaller mechanisms; error: greatest difference from the kernels, relative."
    )
    return "\n\n".join(parts)


def problem_table(found: FormulationComparison, problem: str) -> str:
    """Return a row for each formulation of a problem."""
    last, small = found.last, min(SIX, found.last)
    head = [problem, f"n = {small}: ×", "+", "folded ×", "+", "time", f"n = {last}: loops", "folded", "time"]
    body = [[*head, "order", "error"]]
    loops = {method.name: str(method.order) for method in found.methods if method.problem == problem}
    for name in found.names(problem):
        rows = found.of(problem, name)
        at = next((row for row in rows if row.n == small), None)
        errors = [row.error for row in rows if row.error is not None]
        counts = ("multiplications", "additions", "folded_multiplications", "folded_additions")
        polynomial, power = found.polynomial(problem, name), found.time_growth(problem, name)
        orders = (
            loops.get(name, NOTHING),
            NOTHING if polynomial is None else str(polynomial.degree),
            NOTHING if power is None else f"{power:.1f}",
        )
        body.append(
            [
                name,
                *(number(getattr(at, count, None)) for count in counts),
                duration(found.seconds(problem, name, small)),
                operations(found.operations(problem, name, last)),
                operations(found.operations(problem, name, last, fold=True)),
                duration(found.seconds(problem, name, last)),
                " / ".join(orders),
                f"{max(errors):.0e}" if errors else NOTHING,
            ]
        )
    return "\n".join(aligned(body))


def crossings(found: FormulationComparison) -> str:
    """Return where each formulation becomes cheaper than the next dearer one."""
    lines = []
    for problem in found.problems():
        costs = {name: found.operations(problem, name, found.last) for name in found.names(problem)}
        order = sorted((cost[0], name) for name, cost in costs.items() if cost is not None)
        for (less, cheap), (more, dear) in itertools.pairwise(order):
            if less == more:
                lines.append([problem, cheap, "as many operations as", dear, "always"])
                continue
            n = found.crossing(problem, cheap, dear)
            if n is not None:
                lines.append(
                    [problem, cheap, "fewer operations than", dear, "always" if n == 1 else f"from n = {n} on"]
                )
    return "Where they cross (loops)\n" + "\n".join(aligned(lines, range(5))) if lines else ""


def printed(found: FormulationComparison) -> str:
    """Return the figures that the papers print, beside those found here; the matrices of the joints are given there."""
    lines = [["The papers' figures, at six joints", "printed", "counted", "with the matrices"]]
    direct = less_matrices(found, _DIRECT)
    if direct is not None:
        lines.append(["operations of (1.2) (Silver, 1.2)", "well over 100000", *(number(d) for d in direct)])
    for what, dear, cheap, ratio in PRINTED:
        over, under = less_matrices(found, dear), less_matrices(found, cheap)
        if over is not None and under is not None:
            ours = [f"{d / c:.2f}" for d, c in zip(over, under, strict=True)]
            lines.append([what, f"{ratio:g}", *ours])
    n = found.crossing(_FORWARD, "Johnson, Su: articulated body", "Johnson, Su: composite body")
    if n is not None:
        lines.append(["articulated body cheaper than composite body (slides)", "N > 9", f"N > {n - 1}", ""])
    return "\n".join(aligned(lines)) if len(lines) > 1 else ""


def less_matrices(found: FormulationComparison, name: str) -> tuple[int, int] | None:
    """Return the operations of a formulation with six joints, once the joints' matrices are known and with them."""
    for row in found.of(_INVERSE, name):
        total = row.operations()
        if row.n == SIX and total is not None and row.matrices is not None:
            return total - row.matrices, total
    return None


# ---------------------------------------------------------------- cells
def number(value: Any) -> str:
    """Return a whole number, or the mark of none."""
    return NOTHING if value is None else str(value)


def operations(value: tuple[int, bool] | None) -> str:
    """Return a number of operations, marked if it was continued."""
    if value is None:
        return NOTHING
    return f"{CONTINUED}{value[0]:.3g}" if value[1] else str(value[0])


def duration(value: tuple[float, bool] | None) -> str:
    """Return a time in a unit that fits, marked if it was continued.

    >>> duration((0.00123, False)), duration((2.5, True)), duration(None)
    ('1.23 ms', '~2.5 s', '-')
    """
    if value is None:
        return NOTHING
    seconds, continued = value
    unit, scale = next(((u, s) for u, s in (("s", 1.0), ("ms", 1e3)) if seconds * s >= 1.0), ("µs", 1e6))
    return f"{CONTINUED if continued else ''}{seconds * scale:.3g} {unit}"
