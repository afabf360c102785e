"""Straight lines of the kernels of rows that ask for poses, Jacobians, inertia and energy.

As for the hybrid dynamics (`dynamics.lines`), a small mechanism is answered by the machine code of its own structure,
traced from the very kernel and kept on disk: a first signature then waits neither for numba nor for its compiler.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from cstormpy.arrays import Array
from cstormpy.dynamics.batches import part_of
from cstormpy.dynamics.lines import Line, filled_few, key_of
from cstormpy.dynamics.tracing import Signature, kernel_routine
from cstormpy.graph.emission import LANES
from cstormpy.graph.routine import Routine
from cstormpy.kernels import layout

if TYPE_CHECKING:
    from cstormpy.kernels.entries import Entry
    from cstormpy.linkage.tables import Tables

#: Of what the kernels are given beside integers: the shapes of a sample's arrays, or the integer.
_Form = tuple[Any, ...]


class KernelLine(Line):
    """The straight line of one structure and one kernel.

    Parameters
    ----------
    tables : Tables
    entry : Entry
    form : tuple
        Of each argument the shape of a sample's array, empty where it is not given; or the argument, an integer.
    """

    def __init__(self, tables: Tables, entry: Entry, form: _Form) -> None:
        super().__init__(tables, Signature())
        self._entry, self._form = entry, form
        self.name = entry.name
        self._key = key_of(tables, repr((entry.kept_as, form)).encode())

    def _has_loops(self, kind: str) -> bool:
        return self._entry.is_ready()

    def _traced(self, kind: str) -> Routine:
        if self._routine is None:
            self._routine = kernel_routine(self._T, self._N, self._entry, self._form)
        return self._routine

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shapes of the arrays of one sample, those given and those filled."""
        return {f"a{k}": shape for k, shape in enumerate(self._form) if isinstance(shape, tuple) and np.prod(shape)}


def part_by_line(
    entry: Entry, tables: Tables, arguments: tuple[Any, ...], count: int
) -> Callable[[int, int], tuple[int, int]] | None:
    """Return what fills some rows of the arguments of a kernel (`batches.Part`); None where the loops are the way."""
    if not entry.given or not count:
        return None
    form = tuple(a if isinstance(a, int) else a.shape[1:] if len(a) else (0,) for a in arguments)
    key = entry.kept_as, form
    line: KernelLine | None = tables.memo.get(key)
    if line is None:
        if int(tables.N[layout.N_COUNT]) == 0:
            return None
        line = tables.memo[key] = KernelLine(tables, entry, form)
    kind = "one" if count == 1 else "rows"
    if (key, kind) not in tables.memo:
        found = line.caller(tables.T, False) if count == 1 else line.batch_caller(tables.T, count)
        if found is None:
            return None
        tables.memo[key, kind] = found
    call: Callable[..., int] = tables.memo[key, kind]
    given, filled = _arrays(arguments[: entry.given], count), _arrays(arguments[entry.given :], count)
    if count == 1:
        return lambda start, stop: (0, call(*(a[0] for a in given), *(a[0] for a in filled)))
    if count < LANES:
        return lambda start, stop: (0, int(not filled_few(call, given, filled)))
    return part_of(call, [*given, *filled])


def _arrays(arguments: tuple[Any, ...], count: int) -> list[Array]:
    """Return the arrays among some arguments, with a row for each sample."""
    arrays = [a for a in arguments if not isinstance(a, int) and a.size]
    return [a if len(a) == count else np.tile(a, (count, *[1] * (a.ndim - 1))) for a in arrays]
