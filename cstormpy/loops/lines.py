"""Straight lines of closed mechanisms: their dynamics, sensitivities and projection in machine code.

What is traced is what `loops.dynamics`, `loops.sensitivity` and `loops.assembly` write down with symbols for
constraints that are independent in closed postures. A sample that is open, whose constraints depend on each other or
contradict each other has no answer here (its status is not 0); who asks then goes the way by numbers, which finds ranks
or says what is wrong.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from cstormpy.arrays import Array
from cstormpy.dynamics.batches import part_of, run_parts
from cstormpy.dynamics.hybrid import carefully
from cstormpy.dynamics.lines import MOST, key_of, shared
from cstormpy.dynamics.tracing import Signature, operations_of
from cstormpy.errors import InvalidValue
from cstormpy.graph.emission import LANES
from cstormpy.linkage.tables import folded, loop_numbers, tables_of
from cstormpy.loops.assembly import are_felt, independent_rows, is_carried, require_closed, shut_symbols
from cstormpy.loops.closure import chains_of, closure_of, constraint_names, rows_of_constraints
from cstormpy.loops.loop_lines import LoopLine, numbers_of
from cstormpy.loops.projection import coarse_scales

if TYPE_CHECKING:
    from cstormpy.dynamics.checked_arguments import Samples
    from cstormpy.linkage import Linkage


class ClosedLine(LoopLine):
    """The straight line of a closed mechanism's "dynamics", "sensitivity", or "shut" state."""

    def __init__(self, mech: Linkage, drive: str, what: str, answers: str) -> None:
        asked = Signature(sensitivities=what == "sensitivity", answers=answers)
        super().__init__(mech, drive, asked, f"closed_{what}_{answers}")
        self._drive, self._what = drive, what
        self.given = ("q", "qd") if what == "shut" else ("q", "qd", "u")
        self._m = len(constraint_names(mech))
        self._operations = _operations_of(mech, what)
        self._key = _key(mech, drive, what, answers)

    def _seconds(self, kind: str) -> float:
        n = self._n  # measured: of 3 to 24 joints
        each = 6e-5 * n if kind == "one" else 2e-5 + 2e-6 * n
        return each * {"dynamics": 1.0, "sensitivity": 1.0 + n / 6.0, "shut": 2.0}[self._what]

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shapes of the arrays of one sample, those given and those filled."""
        n = self._n
        if self._what == "shut":
            return {"q": (n,), "qd": (n,), "to_q": (n,), "to_qd": (n,)}
        shapes: dict[str, tuple[int, ...]] = {"q": (n,), "qd": (n,), "u": (n,), "y": (self._question.parts * n,)}
        shapes["multipliers"] = (self._m,)
        if self._what == "sensitivity":
            shapes["columns"] = (3, n, n)
        return shapes

    def _outputs(self, mech: Any, given: list[Any]) -> dict[str, Any]:
        from cstormpy.loops.dynamics import closed_hybrid
        from cstormpy.loops.sensitivity import closed_sensitivity

        if self._what == "shut":
            return dict(zip(("to_q", "to_qd"), shut_symbols(mech, *given), strict=True))
        q, qd, u = given
        require_closed(mech, closure_of(mech, q[None]), qd)
        ask: Callable[..., Any] = closed_sensitivity if self._what == "sensitivity" else closed_hybrid
        found = ask(mech, q, qd, u, drive=self._drive)
        y = found.y if self._question.answers == "found" else np.concatenate([found.y, found.qdd, found.tau])
        made = {"y": y, "multipliers": found.multipliers}
        return made | {"columns": found.columns} if self._what == "sensitivity" else made


def _operations_of(mech: Linkage, what: str) -> int:
    """Return about how many operations a line has (measured: two thirds to one and two thirds, of 900 to 120 000)."""
    n, m, tree = mech.n, len(constraint_names(mech)), operations_of(tables_of(mech.tree).N, True)
    if what == "sensitivity":
        return int(tree + 3.4 * n * m * (2 * n + m))
    return int(0.6 * tree + 0.9 * n * m * (n + m))


def _key(mech: Linkage, drive: str, what: str, answers: str) -> bytes:
    """Return what the code depends on: structure, numbers that fold, the choice of constraints."""
    loops = [(*chain.loop.directions, chain.a, chain.b) for chain in chains_of(mech)]
    others = [rows.text for rows in rows_of_constraints(mech)]
    carried = is_carried(mech, drive)
    sizes = [scales.tolist() for scales in coarse_scales(mech)]
    said = repr((what, answers, loops, others, independent_rows(mech), carried, sizes)).encode()
    return key_of(tables_of(mech.tree, drive), said + folded(loop_numbers(mech)).tobytes())


_lines: dict[bytes, ClosedLine] = {}


def _line(mech: Linkage, drive: str, what: str, answers: str = "found") -> ClosedLine | None:
    """Return the straight line, shared by all mechanisms that have it; None for one that cannot have any."""
    key = "closed line", drive, what, answers
    if key not in mech.memo:
        mech.memo[key] = _found_line(mech, drive, what, answers)
    return mech.memo[key]


def _found_line(mech: Linkage, drive: str, what: str, answers: str) -> ClosedLine | None:
    if mech.symbolic or not all(rows.traced for rows in rows_of_constraints(mech)):
        return None
    try:
        if _operations_of(mech, what) > MOST:
            return None
        key = _key(mech, drive, what, answers)
        if drive == "own" and not are_felt(mech, ~mech.active_mask):
            return None
    except InvalidValue:  # no closed posture is known; who asks with one is answered by numbers
        return None
    return shared(_lines, key, lambda: ClosedLine(mech, drive, what, answers))


def prepared(mech: Linkage, drive: str, what: str, eager: bool = True, answers: str = "found") -> Callable[..., int]:
    """Return the built-in function that fills the outputs of one sample, or what answers nothing."""
    line = _line(mech, drive, what, answers)
    call = None if line is None else line.caller(numbers_of(mech), eager)
    return carefully if call is None else call


def ways_of(mech: Linkage, what: str) -> tuple[Callable[..., int], Callable[..., int]]:
    """Return what fills y, and what fills all three, of one sample; the first answers nothing until its line is built.

    The second never does where building its line takes long: y is put together with what was given, then.
    """
    found, whole = prepared(mech, "own", what), prepared(mech, "own", what, answers="whole")

    def when_built(*arrays: Array) -> int:
        nonlocal found
        if found is carefully and is_built(mech, "own", what):
            found = prepared(mech, "own", what)
        return found(*arrays)

    return when_built if found is carefully else found, whole


def is_built(mech: Linkage, drive: str, what: str) -> bool:
    """Tell whether samples one by one are answered by a line already."""
    return ("closed", drive, what) in mech.memo


def at_once(mech: Linkage, drive: str, what: str, *sample: Any) -> tuple[Array, ...] | None:
    """Return what `rows_of` does, of one sample that has not been looked at; None where it is to be."""
    call = mech.memo.get(("closed", drive, what))
    if call is None:
        return None
    n, m = mech.n, len(constraint_names(mech))
    outputs = np.empty(n), np.empty(m), *([np.empty((3, n, n))] if what == "sensitivity" else [])
    return outputs if call(*sample, *outputs) == 0 else None


def rows_of(
    mech: Linkage, drive: str, what: str, samples: Samples, threads: int | None = 1
) -> tuple[Array, ...] | None:
    """Return y, multipliers, and derivatives of a "sensitivity", of rows; None where numbers are to be asked."""
    if samples.symbolic or len(samples.wrench) or len(samples.base) or not samples.count:
        return None
    line = _line(mech, drive, what)
    if line is None:
        return None
    given, count = list(samples.rows.values()), samples.count
    outputs = tuple(np.empty((count, *shape)) for name, shape in line.shapes.items() if name not in ("q", "qd", "u"))
    T = numbers_of(mech)
    if count < LANES:
        call = mech.memo.get(("closed", drive, what)) or line.caller(T, eager=False)
        if call is None:
            return None
        mech.memo["closed", drive, what] = call
        rows = range(count)
        return outputs if all(call(*(a[k] for a in given), *(a[k] for a in outputs)) == 0 for k in rows) else None
    fill = mech.memo.get(("closed rows", drive, what)) or line.batch_caller(T, count)
    if fill is None:
        return None
    mech.memo["closed rows", drive, what] = fill
    part = part_of(fill, (*map(np.ascontiguousarray, given), *outputs))
    return outputs if run_parts(part, (line.name, mech.n, len(mech.links)), count, threads)[1] == 0 else None


def shut_call(mech: Linkage) -> Callable[..., int]:
    """Return what fills the closed state near to one that drifted, or answers nothing."""
    call: Callable[..., int] | None = mech.memo.get("shut")
    if call is None:
        call = prepared(mech, "forward", "shut", eager=False)
        if call is not carefully:
            mech.memo["shut"] = call
    return call
