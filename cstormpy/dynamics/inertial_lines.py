"""Straight lines of the derivatives to inertial numbers: of small mechanisms, for lists of numbers of one form.

As in `dynamics.lines` the kernels write down what they compute for one structure. Which of the ten numbers of its link
each column changes belongs to the form of a list, and so do the ones among the weights; other weights are inputs, as
the numbers of the mechanism are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from cstormpy.arrays import Array
from cstormpy.dynamics.batches import part_of, run_parts
from cstormpy.dynamics.lines import BATCH, Line, key_of
from cstormpy.dynamics.tracing import LARGEST, InertialForm, Signature, hybrid_routine
from cstormpy.graph.calls import batch_caller, caller
from cstormpy.graph.emission import LANES
from cstormpy.graph.routine import Routine
from cstormpy.linkage.tables import folded, tables_of

if TYPE_CHECKING:
    from cstormpy.dynamics.checked_arguments import Samples
    from cstormpy.dynamics.regressor import Columns
    from cstormpy.linkage import Linkage
    from cstormpy.linkage.tables import Tables

_PLAIN = Signature(sensitivities=True)
_FUNCTIONS_KEPT = 32
#: After so many single samples the line has paid for its building: without it each takes some 0.3 ms more.
_ENOUGH = 2000


class InertialLine(Line):
    """The straight line of one structure, one signature and one form of a list of inertial numbers."""

    def __init__(self, tables: Tables, signature: Signature, form: InertialForm) -> None:
        super().__init__(tables, signature)
        self._form = form
        self.name = f"inertial_{signature.name}"
        self._key = key_of(tables, repr((self.name, form)).encode())

    def _pays(self, kind: str, eager: bool) -> bool:
        # of one sample there is no kernel with loops for all of it
        return super()._pays(kind, eager) or (kind == "one" and self._asked[kind] > _ENOUGH)

    def _has_loops(self, kind: str) -> bool:
        from cstormpy.kernels import entries_regressor as entries

        return kind == "rows" and entries.inertial_sensitivity_lanes.is_ready()

    def _traced(self, kind: str) -> Routine:
        if self._routine is None:
            asked = replace(self._question, sensitivities=False)
            self._routine = hybrid_routine(self._T, self._N, asked, self.name, self._form)
        return self._routine

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shapes of the arrays of one sample, those given and those filled."""
        shapes = super().shapes
        shapes["inertial"] = (self._n, self._form.count)
        return {name: shape for name, shape in shapes.items() if name != "columns"}

    def function(self, T: Array, weights: Array, count: int) -> Callable[..., int] | None:
        """Return the built-in function that answers for so many samples and probably more; None where loops are it."""
        kind = "one" if count == 1 else "rows"
        machine = self.machine(kind, count, eager=count == 1 or count >= BATCH)
        if machine is None:
            return None
        made = caller if kind == "one" else batch_caller
        return made(machine, self.name, [T, weights], list(self.shapes.values()))


def filled_by_line(
    mech: Linkage, samples: Samples, columns: Columns, outputs: tuple[Array, Array], threads: int | None
) -> bool:
    """Fill y and the derivatives by the straight line; False where that is not the way, or a sample bad."""
    if 1 < samples.count < LANES or (samples.count > 1 and mech.n > LARGEST["rows", True]):
        return False  # without a look at the columns
    signature = Signature.of_samples(mech, samples, sensitivities=True)
    call = _function(mech, signature, columns, samples.count)
    if call is None:
        return False
    if samples.count == 1:
        return call(*(a[0] for a in samples.given), *(a[0] for a in outputs)) == 0
    return _rows_filled(call, (*map(np.ascontiguousarray, samples.given), *outputs), threads)


def plain_rows_by_line(
    mech: Linkage, rows: tuple[Array, Array, Array], columns: Columns, threads: int | None
) -> tuple[Array, Array] | None:
    """Return y and the derivatives of rows that nobody has read yet; None where the line is not built or is not fit."""
    call = _functions(mech).get((columns, _PLAIN, False))
    if call is None:
        return None
    y, out = np.empty(rows[0].shape), np.empty((len(rows[0]), mech.n, columns.count))
    return (y, out) if _rows_filled(call, (*rows, y, out), threads) else None


def _rows_filled(call: Callable[..., int], arrays: tuple[Array, ...], threads: int | None) -> bool:
    key = ("inertial line", *arrays[-1].shape[1:])
    return run_parts(part_of(call, arrays), key, len(arrays[0]), threads)[1] == 0


def _functions(mech: Linkage) -> dict[tuple[Columns, Signature, bool], Callable[..., int]]:
    """Return what answers with the last few lists of columns, by these, the signature, and whether for one sample."""
    return mech.memo.setdefault("inertial lines", {})


def _function(mech: Linkage, signature: Signature, columns: Columns, count: int) -> Callable[..., int] | None:
    """Return the one for so many samples; None where the loops are the way."""
    kept, key = _functions(mech), (columns, signature, count == 1)
    found = kept.get(key)
    if found is None:
        tables, form = tables_of(mech), _form(columns)
        place = "inertial line", signature, form
        line: InertialLine = tables.memo.get(place) or InertialLine(tables, signature, form)
        tables.memo[place] = line
        weights = columns.values[[value is None for value in form.known]]
        found = line.function(tables.T, weights, count)
        if found is not None:
            while len(kept) >= _FUNCTIONS_KEPT:
                kept.pop(next(iter(kept)), None)
            kept[key] = found
    return found


def _form(columns: Columns) -> InertialForm:
    known = tuple(None if np.isnan(value) else float(value) for value in folded(columns.values))
    runs = tuple(tuple(run) for run in columns.runs.tolist())
    return InertialForm(runs, tuple(columns.starts.tolist()), tuple(columns.entries.tolist()), known)
