"""Hybrid dynamics y = f(q, q̇, u), and inverse and forward dynamics as its two ends."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cstormpy.arrays import Array
from cstormpy.dynamics.batches import WRONG, Handle, handle_of, run_checked, scratch_size, thread_count, with_loads
from cstormpy.dynamics.checked_arguments import (
    BaseLike,
    Samples,
    WrenchLike,
    read_loads,
    read_samples,
    refuse_non_finite_samples,
)
from cstormpy.dynamics.lines import filled, has_rows, prepared, ready, rows_filled
from cstormpy.dynamics.tracing import Signature, answer_symbols
from cstormpy.errors import InvalidValue, ShapeError
from cstormpy.graph.arrays import is_symbolic, symbols
from cstormpy.kernels import layout
from cstormpy.linkage.tables import tables_of

if TYPE_CHECKING:
    from cstormpy.linkage import Linkage

_VALUES = Signature()


class HybridDynamics:
    """The answer of the hybrid dynamics: what was asked, put together with what was found.

    Attributes
    ----------
    y, qdd, tau : ndarray, (n,) or (N, n)
        What was found for each joint; the acceleration of every joint; the motor torque of every joint.
    """

    __slots__ = ("_parts",)

    def __init__(self, parts: Together | Array) -> None:
        # y, qdd and tau behind one another are not taken apart before they are asked for: it costs more than one call
        self._parts = parts

    def _part(self, k: int) -> Array:
        parts = self._parts
        if isinstance(parts, Together):
            return parts.y if k == 0 else parts.qdd if k == 1 else parts.tau
        n = parts.size // 3
        return parts[k * n : (k + 1) * n]

    @property
    def y(self) -> Array:
        """The torque of each active joint, the acceleration of each passive one."""
        return self._part(0)

    @property
    def qdd(self) -> Array:
        """The acceleration of every joint, as prescribed or as found."""
        return self._part(1)

    @property
    def tau(self) -> Array:
        """The motor torque of every joint, as given or as found."""
        return self._part(2)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(qdd={self.qdd!r}, tau={self.tau!r})"


@dataclass
class Together:
    """Found and given numbers, put together when asked for: fresh memory costs as much as some samples."""

    y: Array
    given: Array
    active: NDArray[np.bool_]

    @cached_property
    def qdd(self) -> Array:
        """The acceleration of every joint."""
        return self._found_but(self.active)

    @cached_property
    def tau(self) -> Array:
        """The motor torque of every joint."""
        return self._found_but(~self.active)

    def _found_but(self, joints: NDArray[np.bool_]) -> Array:
        made = self.y.copy()
        made[..., joints] = self.given[..., joints]  # ten times as fast as np.where
        return made


def put_together(y: Array, u: ArrayLike, active: NDArray[np.bool_]) -> Together:
    """Return y, qdd and tau: what was found, and where that and what was given belong."""
    if type(y) is type(u) is np.ndarray and u.dtype is y.dtype:
        return Together(y, u.copy(), active)
    given = symbols(u) if is_symbolic(u) or is_symbolic(y) else np.array(u, dtype=np.float64)  # a copy: u is the user's
    return Together(y, given, active)


def hybrid_answer(
    mech: Linkage,
    q: ArrayLike,
    qd: ArrayLike,
    u: ArrayLike,
    wrench: WrenchLike = None,
    base: BaseLike = None,
    threads: int | None = 1,
) -> HybridDynamics:
    """Return the whole answer of `Mechanism.hybrid_dynamics`."""
    y = hybrid_dynamics(mech, q, qd, u, wrench, base, threads)
    return HybridDynamics(put_together(y, u, mech.active_mask))


def hybrid_dynamics(
    mech: Linkage,
    q: ArrayLike,
    qd: ArrayLike,
    u: ArrayLike,
    wrench: WrenchLike = None,
    base: BaseLike = None,
    threads: int | None = 1,
    drive: str = "own",
    name: str = "u",
) -> Array:
    """Return y of one sample or of a batch; `Mechanism.hybrid_dynamics` says what is what.

    `drive` is one of `linkage.tables.tables_of`; `name` is what messages call u.
    """
    if has_rows(mech, drive, _VALUES) and are_plain_rows(q, qd, u, wrench, base, threads):
        y = np.empty(q.shape)  # type: ignore[union-attr]
        if rows_filled(mech, drive, _VALUES, (q, qd, u, y), threads):  # type: ignore[arg-type]
            return y
    samples = read_samples(mech, {"q": q, "qd": qd, name: u}, wrench, base, finite=False)
    return samples.shaped(_run(mech, samples, threads, drive))


def are_plain_rows(q: Any, qd: Any, u: Any, wrench: Any, base: Any, threads: Any) -> bool:
    """Tell whether these may be arrays of rows that need no reading: the line itself looks at them."""
    if not (type(q) is type(qd) is type(u) is np.ndarray and wrench is None and base is None):
        return False
    return q.ndim == 2 and len(q) >= layout.LANES and (type(threads) is int or threads is None)


def _run(mech: Linkage, samples: Samples, threads: int | None, drive: str) -> Array:
    out = samples.room(mech.n)
    thread_count(threads)
    signature = Signature.of_samples(mech, samples)
    if samples.symbolic:
        answer_symbols(tables_of(mech, drive), signature, samples, (out,))
        return out
    if samples.count == 0 or filled(mech, drive, signature, samples, (out,), threads):
        return out
    refuse_non_finite_samples(mech, samples)
    from cstormpy.kernels import entries_hybrid as entries

    if samples.one_at_rest:
        # the kernel of one sample is compiled in less time, and for most users it is already there
        q, qd, u = (row[0] for row in samples.rows.values())
        if entries.hybrid_one.load()(handle_of(mech, drive).y_only, q, qd, u, out[0]) == 0:
            return out
    tables = tables_of(mech, drive)
    arguments = (*samples.rows.values(), samples.wrench, samples.base, out)
    run_checked(mech, entries.hybrid_lanes, tables, arguments, samples, scratch_size(mech, False), threads)
    return out


def hybrid_evaluator(
    mech: Linkage, wrench: WrenchLike = None
) -> tuple[Callable[..., Array], Callable[..., HybridDynamics]]:
    """Return a prepared f(q, qd, u, out=None) -> y, and one that returns the whole answer.

    `Mechanism.hybrid_evaluator` says more.
    """
    y_only, whole = ways_of(mech, read_loads(mech, wrench))
    n, three, empty = mech.n, 3 * mech.n, np.empty

    def evaluate(q: Array, qd: Array, u: Array, out: Array | None = None) -> Array:
        y = empty(n) if out is None else out
        if y_only(q, qd, u, y) == 0:
            return y
        # not arrays of the right kind, or a sample without an answer: the careful way says which
        found = hybrid_dynamics(mech, q, qd, u, wrench)
        return found if out is None else copy_out(found, out)

    def answer(q: Array, qd: Array, u: Array) -> HybridDynamics:
        parts = empty(three)
        if whole(q, qd, u, parts) == 0:
            return HybridDynamics(parts)
        return hybrid_answer(mech, q, qd, u, wrench)

    return evaluate, answer


def moving_evaluator(
    mech: Linkage, wrench: WrenchLike, answer: Callable[..., Any], sensitivities: bool = False
) -> Callable[..., Any]:
    """Return a prepared f(q, qd, u, base, out=None) -> y, or (y, D) with sensitivities, of a base that moves.

    `answer` is the careful way: that of the mechanism's method, with all its checks.
    """
    call: Callable[..., int] = carefully
    loads = read_loads(mech, wrench)
    if not mech.symbolic and not mech.loops:
        signature = Signature.of_loads(mech, loads, moving_base=True, sensitivities=sensitivities)
        call = prepared(mech, "own", signature, eager=True) or carefully
    n, empty, before = mech.n, np.empty, (loads,) if loads.size else ()

    def evaluate(q: Array, qd: Array, u: Array, base: Any, out: Array | None = None) -> Any:
        y = empty(n) if out is None else out
        if type(base) is np.ndarray and base.shape == (12,):
            filled = (y, empty((3, n, n))) if sensitivities else (y,)
            if call(q, qd, u, *before, base, *filled) == 0:
                return filled if sensitivities else y
            base = base[:6], base[6:]
        found = answer(q, qd, u, wrench=wrench, base=base)
        if sensitivities:
            return found.y, np.stack([found.dy_dq, found.dy_dqd, found.dy_du])
        return found.y if out is None else copy_out(found.y, out)

    return evaluate


def carefully(*_: Array) -> int:
    """Fill nothing: what is asked of a mechanism of symbols is read and answered with care."""
    return WRONG


def ways_of(mech: Linkage, loads: Array, sensitivities: bool = False) -> tuple[Callable[..., int], ...]:
    """Return what fills y, and what fills all three, of one sample, with the derivatives where they are asked for."""
    if mech.symbolic:
        return carefully, carefully
    asked = (Signature.of_loads(mech, loads, sensitivities=sensitivities, answers=a) for a in ("found", "whole"))
    return tuple(ready(mech, signature, loads, partial(_loops, mech, signature, loads)) for signature in asked)


def _loops(mech: Linkage, signature: Signature, loads: Array) -> Callable[..., int]:
    """Return what answers a signature for one sample by the kernel with loops; not 0 where it does not."""
    if signature.sensitivities:
        from cstormpy.kernels.entries_sensitivity import loaded_sensitivity_one as loaded
        from cstormpy.kernels.entries_sensitivity import sensitivity_one as unloaded
    else:
        from cstormpy.kernels.entries_hybrid import hybrid_one as unloaded
        from cstormpy.kernels.entries_hybrid import loaded_hybrid_one as loaded
    kernel = with_loads(loaded, loads) if loads.size else unloaded.load()
    handle = handle_of(mech, matrices=signature.sensitivities)
    behind = handle.all_three if signature.answers == "whole" else handle.y_only

    def call(q: Array, *others: Array, _alive: Handle = handle) -> int:
        if type(q) is not np.ndarray or q.ndim != 1:
            return WRONG  # numba takes its time to say so
        try:
            return int(kernel(behind, q, *others))
        except Exception:  # numba has many ways to say that it does not know a type
            return WRONG

    return call


def copy_out(y: Array, out: Array) -> Array:
    """Copy a result into the array that the user gave for it."""
    if not isinstance(out, np.ndarray) or out.dtype != np.float64:
        raise InvalidValue(f"out: expected an array of float64, got {getattr(out, 'dtype', type(out).__name__)}")
    if out.shape != y.shape:
        raise ShapeError(f"out: expected shape {y.shape}, got {out.shape}")
    if not out.flags.writeable:
        raise InvalidValue("out: expected an array that can be written, got a read-only one")
    out[...] = y
    return out
