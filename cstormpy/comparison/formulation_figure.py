"""A comparison of formulations in one figure: operations and time over the number of joints."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from cstormpy.comparison.formulations import FormulationComparison

WIDTH, HEIGHT = 12.0, 3.6
"""Width of the figure, and height of the plots of one problem [inches]."""
COLOURS = "tab20"
"""Colour map; a problem has up to twenty formulations."""


def draw(found: FormulationComparison) -> Figure:
    """Return a figure of pyplot's: a row for each problem, operations on the left, time on the right.

    What was run is drawn as points and a line, what was continued as dots.
    """
    import matplotlib.pyplot as plt
    from matplotlib.ticker import LogFormatter

    problems = found.problems()
    figure, grid = plt.subplots(
        len(problems), 2, squeeze=False, figsize=(WIDTH, HEIGHT * len(problems)), layout="constrained"
    )
    colours = plt.get_cmap(COLOURS).colors  # type: ignore[attr-defined]
    for (counts, times), problem in zip(grid, problems, strict=True):
        for name, colour in zip(found.names(problem), (*colours, *colours), strict=False):
            rows = found.of(problem, name)
            by_count = {row.n: row.operations() for row in rows if row.operations() is not None}
            by_time = {row.n: row.seconds for row in rows if row.seconds is not None}
            _line(counts, by_count, lambda n, p=problem, m=name: found.operations(p, m, n), found.last, colour, name)
            _line(times, by_time, lambda n, p=problem, m=name: found.seconds(p, m, n), found.last, colour, name)
        for axes, what in ((counts, "multiplications and additions"), (times, "time of a call [s]")):
            axes.set(xscale="log", yscale="log", xlabel="joints", ylabel=what, title=problem)
            axes.xaxis.set_major_formatter(LogFormatter())  # 20 joints, not 2 x 10^1
            axes.xaxis.set_minor_formatter(LogFormatter())
            axes.grid(True, which="both", alpha=0.2)
        times.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False, fontsize="small")
    return figure


def _line(axes: Any, points: dict[int, Any], at: Any, last: int, colour: Any, name: str) -> None:
    if not points:
        return
    axes.plot(list(points), list(points.values()), "o-", color=colour, markersize=3, linewidth=1.2, label=name)
    end = max(points)
    beyond = sorted({round(n) for n in np.linspace(end, last, 12)}) if last > end else []
    continued = {n: value[0] for n in beyond if (value := at(n)) is not None}
    axes.plot(list(continued), list(continued.values()), ":", color=colour, linewidth=1.2)
