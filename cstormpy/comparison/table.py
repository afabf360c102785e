"""A comparison as text: a row for each run."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from cstormpy.reporting import aligned

if TYPE_CHECKING:
    from cstormpy.comparison.entries import Entry

#: What a robustness score is the mean of.
CRITERIA = ("model", "noise", "torque noise", "response", "delay", "pushes")
#: What is not known, or does not exist.
NOTHING = "-"
#: Name of a measure, its heading, and how it is written.
MEASURES = (
    ("time_to_balance", "time to balance [s]", "{:.2f}"),
    ("effort", "effort [{effort}]", "{:.4g}"),
    ("peak_torque", "peak torque [{torque}]", "{:.4g}"),
    ("final_error", "final error", "{:.2g}"),
)


def short(value: Any) -> str:
    """Return an option's value in few characters.

    >>> short([0.1, 0.25]), short(None), short(0.30000000000000004)
    ('[0.1, 0.25]', 'None', '0.3')
    """
    if isinstance(value, (float, np.floating)):
        return f"{value:g}"
    if isinstance(value, (list, tuple, np.ndarray)):
        return "[" + ", ".join(short(v) for v in value) + "]"
    text = str(value)
    return text if len(text) <= 40 else text[:39] + "…"


#: The unit of the effort of a motor by that of its torque.
EFFORTS = {"N m": "N²m²s", "N": "N²s"}


def table(rows: Sequence[Mapping[str, Any]], options: Sequence[str], units: Collection[str] = ()) -> str:
    """Return rows of measures as a table, with the messages of the runs that did not come to their end below it.

    Parameters
    ----------
    rows : sequence of dict
        As of `Comparison.rows`.
    options : sequence of str
        Which of their names are options, in front.
    units : collection of str
        Those of the motors' torques; "N m" where there are no motors.

    Examples
    --------
    >>> row = {"law": "pd", "settled": False, "final_error": 3.0, "status": "finished", "message": ""}
    >>> print(table([row], ["law"]))
    law  settled  time to balance [s]  effort [N²m²s]  peak torque [N m]  final error
    pd   no                         -               -                  -            3
    """
    known = sorted({*units} or {"N m"})
    torque, effort = " or ".join(known), " or ".join(EFFORTS[unit] for unit in known)
    headings = [heading.format(torque=torque, effort=effort) for _, heading, _ in MEASURES]
    body = [[*options, "settled", *headings]]
    for row in rows:
        measured = [_written(row.get(name), form) for name, _, form in MEASURES]
        body.append([*(short(row[name]) for name in options), _settled(row), *measured])
    lines = aligned(body, range(len(options) + 1))
    for row in rows:
        if row["status"] in ("failed", "interrupted"):
            who = ", ".join(short(row[name]) for name in options)
            lines.append(f"{who}: {row['message']}")
    return "\n".join(lines)


def robustness_table(entries: Sequence[Entry], options: Sequence[str]) -> str:
    """Return the shares of runs that succeeded, in percent, and the score, with a line for each run."""
    body = [[*options, *(f"{name} [%]" for name in CRITERIA), "robustness [%]"]]
    lines = []
    for entry in entries:
        names = [short(entry.options[name]) for name in options]
        found = entry.robustness
        shares = [] if found is None else list(found.row.values())
        body.append([*names, *(NOTHING if s != s else f"{100 * s:.1f}" for s in shares or [math.nan] * 7)])
        if found is not None and found.reason:
            lines.append(f"{', '.join(names)}: {found.reason}")
    return "\n".join([*aligned(body, range(len(options))), *lines])


def _settled(row: Mapping[str, Any]) -> str:
    if row["status"] in ("failed", "interrupted"):
        return str(row["status"])
    return NOTHING if row["settled"] is None else "yes" if row["settled"] else "no"


def _written(value: Any, form: str) -> str:
    return NOTHING if value is None else form.format(value)
