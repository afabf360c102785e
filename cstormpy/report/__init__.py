"""The report of a run: one self-contained HTML file, or pictures."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from cstormpy.errors import InvalidValue
from cstormpy.file_writer import file_path, write_text
from cstormpy.report.figures import figures

__all__ = ["figures", "html", "inline", "page_path", "write"]

_INLINE_HEIGHT = 640
"""Pixels of the report inside a notebook."""


def html(bd: Any, out: Any, *, title: str | None = None) -> str:
    """Return the report as the text of an HTML page that needs nothing but itself.

    Parameters
    ----------
    bd : BlockDiagram
        The diagram, as it was run.
    out : Result
        Of `Simulation.run`.
    title : str, optional
        The name of the diagram unless given.
    """
    from cstormpy.report.page import page

    return page(bd, out, title)


def inline(out: Any, bd: Any = None, *, title: str | None = None) -> str:
    """Return a compact report to be shown inside another page, as a notebook's.

    It stands in a frame of its own: neither its style nor its script touch the page around it.
    """
    from cstormpy.report.page import page
    from cstormpy.report.svg import escape

    content = escape(page(bd, out, title, compact=True))
    return (
        f'<iframe srcdoc="{content}" sandbox="allow-scripts" title="report" '
        f'style="width:100%;height:{_INLINE_HEIGHT}px;border:0"></iframe>'
    )


def page_path(path: str | os.PathLike[str]) -> Path:
    """Return where a report goes, or refuse what is not the name of a page."""
    target = file_path(path, "report")
    if target.suffix.lower() not in ("", ".html", ".htm"):
        raise InvalidValue(f"report: {target}: is a page of HTML; expected a name that ends in .html")
    return target


def write(path: str | os.PathLike[str], bd: Any, out: Any, *, title: str | None = None) -> Path:
    """Write the report, whole or not at all, and return where it is.

    Parameters
    ----------
    path : path
        The file; one that is there is replaced at the end.
    bd, out, title
        See `html`.

    Raises
    ------
    FileWriteError
        If the file cannot be written: no such folder, no space, no permission.
    """
    target = page_path(path)
    write_text(target, html(bd, out, title=title))
    return target
