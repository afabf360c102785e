"""The report's words and numbers: how the run ended, the controllers, the blocks, the versions."""

from __future__ import annotations

import importlib.metadata
import inspect
import platform
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from bdsim.components import Clock, Plug

from cstormpy.measures import MeasureTable
from cstormpy.report.data import held_traces, panes_of
from cstormpy.report.graph import read_graph
from cstormpy.report.shapes import transfer_function

_LONGEST = 90
_BRIEF = 12
"""Entries of an array that are written out."""
_HIDDEN = frozenset("self blockargs bd name inputs args kwargs mech nin nout loc grid movie".split())

Rows = list[tuple[str, str]]


def shown(value: Any) -> str:
    """Return a value in one short line.

    >>> shown(0.1 + 0.2), shown([1.0, 2.5]), shown(None), shown(abs)
    ('0.3', '[1, 2.5]', '–', 'abs()')
    """
    if value is None:
        return "–"
    if isinstance(value, (bool, np.bool_)):
        return "yes" if value else "no"
    if isinstance(value, str):
        return _cut(value)
    if isinstance(value, Mapping):
        return _cut(", ".join(f"{k} = {shown(v)}" for k, v in value.items()))
    if callable(value) and hasattr(value, "__name__"):
        name = value.__name__
        return "a function" if name == "<lambda>" else f"{name}()"
    if isinstance(value, (int, float, np.number, list, tuple, np.ndarray)):
        return _numbers(value)
    if isinstance(value, Clock):
        return _cut(f"{value.name}, every {value.T:g} s")
    text = repr(value)
    return _cut(type(value).__name__ if " at 0x" in text else text)


def _cut(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST else line[: _LONGEST - 1] + "…"


def _numbers(value: Any) -> str:
    try:
        array = np.asarray(value)
    except ValueError:
        array = np.empty(0, dtype=object)
    if array.dtype.kind not in "biufc" or array.size == 0:
        return _cut(repr(value))
    if array.size > _BRIEF:
        return f"{' × '.join(map(str, array.shape))} numbers"
    return _nested(array.tolist())


def _nested(value: Any) -> str:
    if isinstance(value, list):
        return "[" + ", ".join(map(_nested, value)) + "]"
    return f"{value:.6g}" if isinstance(value, (float, complex)) else str(value)


def ending(out: Any) -> tuple[str, str]:
    """Return how the run ended: the status, and why."""
    return str(_of(out, "status", "finished")), str(_of(out, "message", ""))


def _of(out: Any, name: str, default: Any = None) -> Any:
    """Return what a result knows under this name, listed or not."""
    data = getattr(out, "data", out)
    for key in (f".{name}", name):
        if isinstance(data, Mapping) and key in data:
            return data[key]
    value = _quiet(out, name)
    return default if value is None else value


@dataclass
class Controller:
    """The settings of a block that offers gains.

    Attributes
    ----------
    laws
        Name, whether it was active at the end, and its gains.
    """

    name: str
    kind: str
    settings: Rows
    laws: list[tuple[str, bool, Rows]]


def controllers(bd: Any) -> list[Controller]:
    """Return the blocks that offer laws or gains."""
    found = []
    for block in bd.blocklist:
        laws = getattr(_quiet(block, "laws"), "laws", _quiet(block, "laws"))
        gains = _quiet(block, "gains")
        kind = type(block).__name__
        if isinstance(laws, Mapping) and laws:
            active = _quiet(block, "active_law")
            rows = [(str(name), name == active, _law_rows(law)) for name, law in laws.items()]
            blend = _quiet(block, "blend")
            found.append(
                Controller(str(block.name), kind, [("blend", f"{shown(blend)} s")] if blend is not None else [], rows)
            )
        elif isinstance(gains, Mapping) and gains:
            rows = [("", True, [(str(k), shown(v)) for k, v in gains.items()])]
            found.append(Controller(str(block.name), kind, [], rows))
    return found


def _law_rows(law: Any) -> Rows:
    rows = [(str(name), shown(value)) for name, value in dict(_quiet(law, "gains") or {}).items()]
    limit = _quiet(law, "limit")
    if limit is not None:
        rows.append(("limit", shown(limit)))
    modes = [str(mode) for mode in _quiet(law, "modes") or () if str(mode)]
    if len(modes) > 1:
        rows.append(("phases", ", ".join(modes)))
    return rows


def _quiet(thing: Any, name: str) -> Any:
    """Return an attribute, or None where there is none; bdsim's blocks raise more than AttributeError."""
    try:
        return getattr(thing, name, None)
    except Exception:
        return None


def block_rows(bd: Any) -> list[tuple[str, str, Rows]]:
    """Return name, kind and main parameters of every block."""
    rows = []
    for node in read_graph(bd).nodes:
        block = node.block
        known = inspect.signature(type(block).__init__).parameters
        names = [name for name in known if name not in _HIDDEN]
        tunable = [name for name in getattr(block, "_parameters", None) or {} if "." not in name]
        names += [name for name in tunable if name not in names and name not in _HIDDEN]
        found: Rows = []
        for name in names:
            given = (_quiet(block, key) for key in (name, f"_{name}"))
            # a port may be called so
            value = next((v for v in given if v is not None and not isinstance(v, Plug)), None)
            if value is not None and not inspect.ismethod(value) and not _is_dull(known.get(name), value, node.role):
                found.append((name, shown(value)))
        if "num" in known and "num" not in dict(found) and (fraction := transfer_function(node)) is not None:
            found.append(("H", " / ".join(f"({part})" if " " in part else part for part in fraction)))
        x0 = _quiet(block, "_x0")
        if x0 is not None and np.size(x0) and not node.ours and "x0" not in dict(found):
            found.append(("x0", shown(x0)))
        mech = _quiet(block, "mech") or _quiet(block, "_mech")
        if mech is not None and hasattr(mech, "links"):
            found.insert(0, ("mech", shown(mech)))
        rows.append((node.path, type(block).__name__.upper(), found))
    return rows


def _is_dull(parameter: inspect.Parameter | None, value: Any, role: str) -> bool:
    """Return whether a parameter is not worth a line: empty, a record of ours, a switch that is off, a plot's usual."""
    if isinstance(value, (str, list, tuple, dict)) and not value:
        return True
    if type(value).__module__.startswith("cstormpy.") and " at 0x" in repr(value):
        return True
    if parameter is None or isinstance(value, np.ndarray):
        return False
    return bool((value is False or role == "sink") and value == parameter.default)


def numbers(out: Any) -> Rows:
    """Return how the run was computed."""
    rows: Rows = []
    t = np.asarray(_of(out, "t", []), dtype=float)
    if len(t):
        rows.append(("time", f"{t[0]:g} to {t[-1]:g} s" if t[0] else f"{t[-1]:g} s"))
    settings = _of(out, "settings")
    for label, name, unit in (
        ("solver", "solver", ""),
        ("relative tolerance", "rtol", ""),
        ("absolute tolerance", "atol", ""),
        ("step", "step", " s"),
        ("longest step", "max_step", " s"),
        ("engine", "engine", ""),
    ):
        value = settings.get(name) if isinstance(settings, Mapping) else _quiet(settings, name)
        if value is not None:
            rows.append((label, (value.__name__ if isinstance(value, type) else shown(value)) + unit))
    stats = _of(out, "stats")
    for key, value in dict(getattr(stats, "data", stats) or {}).items():
        name = {"integration_time_points": "samples"}.get(key, str(key).lstrip(".").replace("_", " "))
        rows.append((name, f"{value:.4g} s" if "time" in name and isinstance(value, float) else _grouped(value)))
    for left in _of(out, "left_limits") or []:
        low, high = left.limits
        beyond = f"beyond its limits {low:g} to {high:g} from {left.t:.4g} s on, as far as {left.farthest:.4g}"
        rows.append((f"{left.plant}, {left.joint}", beyond))
    wall = _of(out, "wall_time")
    if isinstance(wall, (int, float)):
        rows.append(("wall time", f"{wall:.4g} s"))
    return rows


def _grouped(value: Any) -> str:
    return f"{value:,}".replace(",", "\N{NARROW NO-BREAK SPACE}") if isinstance(value, int) else shown(value)


def final_state(out: Any) -> Rows:
    """Return the states at the end."""
    x, names = np.asarray(_of(out, "x", np.zeros((0, 0)))), list(_of(out, "xnames", []))
    if x.ndim != 2 or not len(x):
        return []
    return [(str(name), f"{value:.8g}") for name, value in zip(names, x[-1].tolist(), strict=False)]


def measures(out: Any) -> list[list[str]]:
    """Return root mean square, peak, rise, settling and overshoot of what the scopes show, as a table of text."""
    rows: list[list[str]] = []
    for pane in panes_of(out):
        if pane.kind != "scope" or not len(pane.t):
            continue
        named = getattr(pane, "names", None) or [None] * len(pane.labels)  # a choice of a few has names for each
        held = held_traces(pane)
        for k, label in enumerate(pane.labels):  # of which two may be the same
            if named[k] is None:
                column = {label: np.asarray(pane.y)[:, k]}
                table = MeasureTable(pane.t, column, {label: pane.unit}, column if held[k] else ())
                rows += table.rows()[bool(rows) :]
    return rows


def events(out: Any) -> list[tuple[float, str]]:
    """Return times of the events, and their blocks with what happened there."""
    found = _of(out, "events", None) or []
    return [(float(e[0]), f"{e[1]}: {e.what}" if getattr(e, "what", "") else str(e[1])) for e in found]


def versions() -> Rows:
    """Return what the run was computed with; nothing that tells whose machine it was."""
    rows = [("Python", platform.python_version())]
    for name in ("numpy", "scipy", "numba", "bdsim", "cstormpy"):
        try:
            rows.append((name, importlib.metadata.version(name)))
        except importlib.metadata.PackageNotFoundError:
            rows.append((name, "not installed, from its sources"))
    rows.append(("platform", f"{platform.system()} {platform.machine()}".strip()))
    return rows
