"""The page: HTML around the diagram, the panes and the facts, with its style, script and data inside."""

from __future__ import annotations

import json
from collections.abc import Iterable
from importlib.resources import files
from typing import Any

import numpy as np

from cstormpy.errors import InvalidType, shown
from cstormpy.report import facts
from cstormpy.report.data import Budget, mechanism_data, pane_data, shown_panes
from cstormpy.report.drawing import diagram_views
from cstormpy.report.svg import escape

_KINDS = ("mechanism", "xy", "scope")
"""In this order they stand on the page: large ones first, scopes beside them."""
_SCRIPTS = ("clock.js", "plots.js", "mechanism.js", "tools.js", "page.js")
_COMPACT_SHARE = 0.2
"""Part of the points that a compact page keeps."""
_STATES_SHOWN = 60
_EVENTS_SHOWN = 40
_SPEEDS = (0.25, 0.5, 1, 2, 4)
# Nothing is fetched: whatever a name in a diagram says, the page can reach no server.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"


def page(bd: Any, out: Any, title: str | None = None, compact: bool = False) -> str:
    """Return the whole page.

    Parameters
    ----------
    bd : BlockDiagram or None
        The compiled diagram; a page without it shows only what was recorded.
    out : Result
        Of `Simulation.run`.
    title : str, optional
        The name of the diagram unless given.
    compact : bool
        Only how the run ended, the panes and the diagram, with fewer points: for a notebook.
    """
    if bd is not None and not hasattr(bd, "blocklist"):
        raise InvalidType(f"report: expected a diagram from sim.blockdiagram(), got {shown(bd)}")
    if title is not None and not isinstance(title, str):
        raise InvalidType(f"report: title: expected a text, got {shown(title)}")
    heading = title or _named(bd)
    panes = sorted(shown_panes(bd, out), key=lambda pane: _KINDS.index(pane.kind))
    data = _data(panes, _COMPACT_SHARE if compact else 1.0)
    diagram = _diagram(bd) if bd is not None and bd.blocklist else ""
    if compact:
        body = _head(heading, out) + _panes(panes) + diagram
    else:
        body = _head(heading, out) + diagram + _panes(panes)
        body += _controllers(bd) + _numbers(out) + _measures(out) + _blocks(bd) + _versions()
    return _document(heading, body + "</main>" + _transport(panes, data), data, compact)


def _document(heading: str, body: str, data: dict[str, Any], compact: bool) -> str:
    folder = files("cstormpy.report")
    style = folder.joinpath("report.css").read_text(encoding="utf-8")
    scripts = "\n".join(folder.joinpath(name).read_text(encoding="utf-8") for name in _SCRIPTS)
    # In JSON the only dangerous character is "<", as the reader of HTML looks for the end of the script first.
    packed = json.dumps(data, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
        f"<title>{escape(heading)}</title>\n<style>\n{style}</style></head>\n"
        f"<body{' class=compact' if compact else ''}><main>\n{body}\n"
        f'<script type="application/json" id="data">{packed}</script>\n'
        f'<script>\n"use strict";\n(() => {{\n{scripts}}})();\n</script></body></html>\n'
    )


def _named(bd: Any) -> str:
    name = str(getattr(bd, "name", "") or "")
    return name if name and name != "main" else "Simulation run"


def _data(panes: list[Any], share: float) -> dict[str, Any]:
    budget = Budget(panes, share)
    made = [(mechanism_data if pane.kind == "mechanism" else pane_data)(pane, budget) for pane in panes]
    begin = min((float(pane.t[0]) for pane in panes), default=0.0)
    end = max((float(pane.t[-1]) for pane in panes), default=0.0)
    return {"t0": begin, "t1": end, "panes": made}


def _card(heading: str, content: str, note: str = "") -> str:
    small = f" <small>{escape(note)}</small>" if note else ""
    return f'<section class="card"><h2>{escape(heading)}{small}</h2>{content}</section>\n'


def _diagram(bd: Any) -> str:
    return _card("Diagram", f'<div class="scroll">{"".join(diagram_views(bd))}</div>')


def _head(heading: str, out: Any) -> str:
    status, message = facts.ending(out)
    known = status if status in ("finished", "stopped", "interrupted", "failed") else ""
    said = "" if message.strip().lower() in ("", status.lower()) else f"{escape(message)} "
    t = np.asarray(getattr(out, "t", []), dtype=float)
    length = f"· {t[-1] - t[0]:.6g} s simulated, {_samples(len(t))}" if len(t) else "· nothing was recorded"
    badge = f'<span class="badge {known}">{escape(status)}</span>'
    return f'<h1>{escape(heading)}</h1><p class="ending">{badge}{said}{length}</p>\n'


def _samples(count: int) -> str:
    return "1 sample" if count == 1 else f"{count} samples"


def _panes(panes: list[Any]) -> str:
    if not panes:
        return ""
    cards = ""
    large = sum(pane.kind != "scope" for pane in panes)
    tall = len(panes) - large >= 2 * large  # then two scopes stand beside each large pane
    for k, pane in enumerate(panes):
        kind = "card pane tall" if tall and pane.kind != "scope" else "card pane"
        title = str(pane.title or pane.name)
        name = f" <small>{escape(pane.name)}</small>" if str(pane.name) != title else ""
        cards += f'<section class="{kind}" id="pane-{k}"><h2>{escape(title)}{name}</h2></section>\n'
    return f'<div class="grid">{cards}</div>\n<noscript><p>The plots need JavaScript.</p></noscript>\n'


def _transport(panes: list[Any], data: dict[str, Any]) -> str:
    if not panes or data["t1"] <= data["t0"]:
        return ""
    speeds = "".join(f'<option value="{s}"{" selected" if s == 1 else ""}>× {s:g}</option>' for s in _SPEEDS)
    return (
        '<div id="transport"><button type="button" class="play" aria-label="play"></button>'
        '<input type="range" min="0" max="10000" step="1" value="0" aria-label="time"><output></output>'
        f'<label>speed <select>{speeds}</select></label><label><input type="checkbox" checked> loop</label></div>'
    )


def _table(rows: Iterable[tuple[str, str]]) -> str:
    body = "".join(f"<tr><th>{escape(k)}</th><td class=number>{escape(v)}</td></tr>" for k, v in rows)
    return f"<table><tbody>{body}</tbody></table>"


def _controllers(bd: Any) -> str:
    cards = ""
    for found in facts.controllers(bd) if bd is not None else []:
        laws = ""
        for name, active, rows in found.laws:
            heading = (
                f"<h3>{escape(name)}{' <small>active at the end</small>' if active and name else ''}</h3>"
                if name
                else ""
            )
            settings = _table(rows) if rows else "<p>nothing to set</p>"
            laws += f'<div class="law{" active" if active else ""}">{heading}{settings}</div>'
        content = (_table(found.settings) if found.settings else "") + f'<div class="columns">{laws}</div>'
        cards += _card("Controller settings", content, note=found.name)
    return cards


def _more(count: int, shown: int) -> str:
    return f"<p>and {count - shown} more</p>" if count > shown else ""


def _numbers(out: Any) -> str:
    parts = f"<div><h3>Run</h3>{_table(facts.numbers(out))}</div>"
    state = facts.final_state(out)
    if state:
        more = _more(len(state), _STATES_SHOWN)
        parts += f"<div><h3>Final state</h3>{_table(state[:_STATES_SHOWN])}{more}</div>"
    events = facts.events(out)
    if events:
        rows = [(f"{t:.6g} s", name) for t, name in events[:_EVENTS_SHOWN]]
        parts += f"<div class=events><h3>Events</h3>{_table(rows)}{_more(len(events), _EVENTS_SHOWN)}</div>"
    return _card("Numbers", f'<div class="columns">{parts}</div>')


def _measures(out: Any) -> str:
    rows = facts.measures(out)
    if not rows:
        return ""
    more = _more(len(rows) - 1, _STATES_SHOWN)
    head = "".join(f"<th>{escape(cell)}</th>" for cell in rows[0])
    body = ""
    for name, *cells in rows[1 : 1 + _STATES_SHOWN]:
        body += f"<tr><th>{escape(name)}</th>{''.join(f'<td class=number>{escape(cell)}</td>' for cell in cells)}</tr>"
    table = f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>{more}'
    return f'<section class="card"><details><summary>Measures</summary>{table}</details></section>\n'


def _blocks(bd: Any) -> str:
    if bd is None:
        return ""
    body = ""
    for name, kind, rows in facts.block_rows(bd):
        values = " · ".join(f'<span class="param">{escape(k)} = <b>{escape(v)}</b></span>' for k, v in rows)
        body += f"<tr><td>{escape(name)}</td><th>{escape(kind)}</th><td>{values}</td></tr>"
    head = "<thead><tr><th>block</th><th>kind</th><th>parameters</th></tr></thead>"
    table = f'<div class="scroll"><table class="blocks">{head}<tbody>{body}</tbody></table></div>'
    return f'<section class="card"><details open><summary>Blocks</summary>{table}</details></section>\n'


def _versions() -> str:
    known = "".join(f"<span>{escape(name)} <b>{escape(version)}</b></span>" for name, version in facts.versions())
    return _card("Versions", f'<p class="versions">{known}</p>')
