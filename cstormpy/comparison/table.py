"""A comparison as text: a row for each run."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from itertools import takewhile
from typing import TYPE_CHECKING, Any

import numpy as np

from cstormpy.reporting import aligned, called, told_apart

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
    text = called(value) or str(value)
    return text if len(text) <= 40 else text[:39] + "…"


def distinct(values: Sequence[Any]) -> list[str]:
    """Return the values of an option in few characters, with a number behind what is cut where another one begins so.

    So it is behind a function's name that another one has. Laws are told by the gains from the first on that differs.

    >>> distinct(["a" * 40 + "b", 0.5, "a" * 41 + "b"]) == ["a" * 39 + "…", "0.5", "a" * 39 + "… (2)"]
    True
    """
    texts = [short(value) for value in values]
    for text in {text for text in texts if text.endswith("…")}:
        alike = [k for k, other in enumerate(texts) if other == text]
        for k, found in zip(alike, _from_where_they_differ([str(values[k]) for k in alike]), strict=True):
            texts[k] = found or text
    return told_apart(texts, values)


def _from_where_they_differ(texts: Sequence[str]) -> list[str]:
    """Return texts as "LQR(a=1, b=2)" without the arguments in front that all have, empty where nothing differs."""
    same = takewhile(lambda letters: len(set(letters)) == 1, zip(*texts, strict=False))
    common = "".join(letters[0] for letters in same)
    head, bracket, _ = common.partition("(")
    cut = common.rfind(", ")
    if not bracket or cut < 0 or len(set(texts)) == 1:
        return [""] * len(texts)
    return [short(f"{head}(…{text[cut + 1 :]}") for text in texts]


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
    called = _called(rows, options)
    for row, names in zip(rows, called, strict=True):
        measured = [_written(row.get(name), form) for name, _, form in MEASURES]
        body.append([*names, _settled(row), *measured])
    lines = aligned(body, range(len(options) + 1))
    for row, names in zip(rows, called, strict=True):
        if row["status"] in ("failed", "interrupted"):
            lines.append(f"{', '.join(names)}: {row['message']}")
    return "\n".join(lines)


def robustness_table(entries: Sequence[Entry], options: Sequence[str]) -> str:
    """Return the shares of runs that succeeded, in percent, and the score, with a line for each run."""
    body = [[*options, *(f"{name} [%]" for name in CRITERIA), "robustness [%]"]]
    lines = []
    for entry, names in zip(entries, _called([entry.options for entry in entries], options), strict=True):
        found = entry.robustness
        shares = [] if found is None else list(found.row.values())
        body.append([*names, *(NOTHING if s != s else f"{100 * s:.1f}" for s in shares or [math.nan] * 7)])
        if found is not None and found.reason:
            lines.append(f"{', '.join(names)}: {found.reason}")
    return "\n".join([*aligned(body, range(len(options))), *lines])


def _called(rows: Sequence[Mapping[str, Any]], options: Sequence[str]) -> list[list[str]]:
    """Return what the options of each row are called in a table."""
    columns = [distinct([row[name] for row in rows]) for name in options]
    return [[column[k] for column in columns] for k in range(len(rows))]


def _settled(row: Mapping[str, Any]) -> str:
    if row["status"] in ("failed", "interrupted"):
        return str(row["status"])
    return NOTHING if row["settled"] is None else "yes" if row["settled"] else "no"


def _written(value: Any, form: str) -> str:
    return NOTHING if value is None else form.format(value)
