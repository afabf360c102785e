"""Straight lines beside the kernels with loops, in the same process: where a line pays, for rows and for one sample.

The goals are those of rows, as the ratio of a line to the loops.
"""

from __future__ import annotations

import numpy as np
import pytest
from interleaved import interleave
from random_mechanisms import skew_arm

from cstormpy.dynamics import lines
from cstormpy.mechanism import library

TABLE = "time per sample [ns], straight line beside loops"
COUNT = 4096
MECHANISMS = {
    "acrobot": library.acrobot,
    "branched acrobot": library.branched_acrobot,
    "puma560": library.puma560,
    "arm of 7": library.arm7,
    "skew arm of 2": lambda: skew_arm(2),
    "skew arm of 7": lambda: skew_arm(7),
    "chain of 12": lambda: library.chain(12),
    "chain of 14": lambda: library.chain(14),
    "tree of 36": lambda: library.tree(6, links=36),
}


def asked(mech, sensitivities, rows):
    """Return what is timed: a fresh mechanism, so that nothing prepared is shared, and the samples."""
    rng = np.random.default_rng(0)
    q, qd, u = rng.normal(size=(3, COUNT, mech.n)) if rows else rng.normal(size=(3, mech.n))
    if rows:
        ask = mech.hybrid_sensitivity if sensitivities else mech.hybrid_dynamics
    else:
        ask = mech.hybrid_sensitivity_evaluator() if sensitivities else mech.hybrid_evaluator()
    return lambda: ask(q, qd, u)


@pytest.mark.parametrize("rows", [True, False], ids=["rows", "one sample"])
@pytest.mark.parametrize("sensitivities", [False, True], ids=["values", "with sensitivities"])
@pytest.mark.parametrize("name", MECHANISMS)
def test_lines_beside_loops(benchmark, record_row, monkeypatch, name, sensitivities, rows):
    kind = "rows" if rows else "one"
    with monkeypatch.context() as patch:
        patch.setattr(lines.Line, "machine", lambda self, kind, samples, eager=False: None)
        loops = asked(MECHANISMS[name](), sensitivities, rows)
        loops()
    machine = lines.Line.machine
    with monkeypatch.context() as patch:
        patch.setattr(lines.Line, "_pays", lambda self, kind, eager: True)
        line = asked(MECHANISMS[name](), sensitivities, rows)
        line()

    def by_loops():
        lines.Line.machine = lambda self, kind, samples, eager=False: None
        try:
            return loops()
        finally:
            lines.Line.machine = machine

    times = interleave({"line": line, "loops": by_loops if rows else loops})
    per = COUNT if rows else 1
    n = MECHANISMS[name]().n
    taken = n <= lines.LARGEST[kind, sensitivities]
    record_row(
        TABLE,
        mechanism=name,
        what=("with sensitivities, " if sensitivities else "values, ") + kind,
        line=times["line"] / per * 1e9,
        loops=times["loops"] / per * 1e9,
        ratio=times["line"] / times["loops"],
        line_taken=taken,
    )
    benchmark(line)
