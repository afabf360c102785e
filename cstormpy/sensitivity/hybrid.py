"""Exact sensitivities of the hybrid dynamics, as matrices.

The variational system of the hybrid dynamics: how a small change of state and drive goes on along a motion.

====== ========== ==========================================================================================
letter shape      meaning
====== ========== ==========================================================================================
D      (3, n, n)  ∂y/∂q, ∂y/∂q̇, ∂y/∂u of the hybrid dynamics y = f(q, q̇, u)
X      (2n, m)    m changes of the state (q, q̇), side by side
U      (k, m)     the changes of the k signals that drive the mechanism
P      (n, m)     ∂y/∂p δp, the changes of y by those of numbers of the mechanism
====== ========== ==========================================================================================
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cstormpy.arguments import flag
from cstormpy.arrays import Array
from cstormpy.dynamics.batches import MANY_COORDINATES, handle_of, run_checked, scratch_size, thread_count
from cstormpy.dynamics.checked_arguments import (
    BaseLike,
    Samples,
    WrenchLike,
    read_loads,
    read_samples,
    refuse_non_finite_samples,
)
from cstormpy.dynamics.hybrid import HybridDynamics, Together, are_plain_rows, put_together, ways_of
from cstormpy.dynamics.lines import filled, has_rows, rows_filled
from cstormpy.dynamics.tracing import Signature, answer_symbols
from cstormpy.kernels import layout
from cstormpy.linkage.tables import tables_of

if TYPE_CHECKING:
    from cstormpy.linkage import Linkage

_WITH_COLUMNS = Signature(sensitivities=True)


class HybridSensitivity(HybridDynamics):
    """The answer of the hybrid dynamics with its derivatives.

    Attributes
    ----------
    y, qdd, tau : ndarray, (n,) or (N, n)
        As in `HybridDynamics`.
    dy_dq, dy_dqd, dy_du : ndarray, (n, n) or (N, n, n)
        Row i is the derivative of y_i, column j that to joint j.
    dy_dbase : ndarray, (n, 12) or (N, n, 12)
        The derivative to the motion (V0, dV0) of the base, where it was asked for.
    """

    __slots__ = ("_to_base", "columns")

    def __init__(self, parts: Together | Array, columns: Array, to_base: Array | None = None) -> None:
        super().__init__(parts)
        self.columns = columns
        self._to_base = to_base

    @property
    def dy_dq(self) -> Array:
        """The derivative to q, (n, n) or (N, n, n)."""
        return self.columns[..., 0, :, :]

    @property
    def dy_dqd(self) -> Array:
        """The derivative to q̇, (n, n) or (N, n, n)."""
        return self.columns[..., 1, :, :]

    @property
    def dy_du(self) -> Array:
        """The derivative to u, (n, n) or (N, n, n)."""
        return self.columns[..., 2, :, :]

    @property
    def dy_dbase(self) -> Array:
        """The derivative to (V0, dV0), (n, 12) or (N, n, 12)."""
        if self._to_base is None:
            raise AttributeError("dy_dbase: ask for it with to_base=True")
        return self._to_base


def hybrid_sensitivity(
    mech: Linkage,
    q: ArrayLike,
    qd: ArrayLike,
    u: ArrayLike,
    wrench: WrenchLike = None,
    base: BaseLike = None,
    threads: int | None = 1,
    to_base: bool = False,
    drive: str = "own",
    name: str = "u",
) -> HybridSensitivity:
    """Return y and its derivatives of one sample or of a batch; see `dynamics.hybrid.hybrid_dynamics`."""
    to_base = flag(to_base, "to_base")
    active = mech.active_mask if drive == "own" else np.full(mech.n, drive == "inverse")
    is_prepared = not to_base and has_rows(mech, drive, _WITH_COLUMNS)
    if is_prepared and are_plain_rows(q, qd, u, wrench, base, threads):
        y, columns = np.empty(q.shape), np.empty((len(q), 3, mech.n, mech.n))  # type: ignore[union-attr, arg-type]
        if rows_filled(mech, drive, _WITH_COLUMNS, (q, qd, u, y, columns), threads):  # type: ignore[arg-type]
            return HybridSensitivity(put_together(y, u, active), columns)
        del y, columns  # twice as much at once would be memory that the system takes back, and clears, at each call
    samples = read_samples(mech, {"q": q, "qd": qd, name: u}, wrench, base, finite=False)
    y, columns, of_base = _run(mech, samples, threads, to_base, drive)
    parts = put_together(samples.shaped(y), samples.shaped(samples.rows[name]), active)
    return HybridSensitivity(parts, samples.shaped(columns), samples.shaped(of_base) if to_base else None)


def _run(mech: Linkage, samples: Samples, threads: int | None, to_base: bool, drive: str) -> tuple[Array, Array, Array]:
    n, count = mech.n, samples.count
    y, columns = samples.room(n), samples.room(3, n, n)
    of_base = samples.room(n, 12) if to_base else np.empty((0, n, 12))
    thread_count(threads)
    signature = Signature.of_samples(mech, samples, sensitivities=True, to_base=to_base)
    outputs = (y, columns, of_base) if to_base else (y, columns)
    if samples.symbolic:
        answer_symbols(tables_of(mech, drive), signature, samples, outputs)
        return y, columns, of_base
    if count == 0 or filled(mech, drive, signature, samples, outputs, threads):
        return y, columns, of_base
    refuse_non_finite_samples(mech, samples)
    from cstormpy.kernels import entries_sensitivity as entries

    tables = tables_of(mech, drive)
    if samples.one_at_rest and not to_base:
        q, qd, u = (row[0] for row in samples.rows.values())
        handle = handle_of(mech, drive, matrices=True)
        if entries.sensitivity_one.load()(handle.y_only, q, qd, u, y[0], columns[0]) == 0:
            return y, columns, of_base
    arguments = (*samples.rows.values(), samples.wrench, samples.base, y, columns, of_base)
    one_by_one = n > MANY_COORDINATES or tables.N[layout.N_DEEP]
    kernel = entries.sensitivity_large if one_by_one else entries.sensitivity_lanes
    run_checked(mech, kernel, tables, arguments, samples, scratch_size(mech, True), threads)
    return y, columns, of_base


def hybrid_sensitivity_evaluator(
    mech: Linkage, wrench: WrenchLike = None
) -> tuple[Callable[..., tuple[Array, Array]], Callable[..., HybridSensitivity]]:
    """Return a prepared f(q, qd, u) -> (y, D), and one that returns the whole answer.

    D, of shape (3, n, n), holds the derivatives to q, q̇ and u.
    """
    y_only, whole = ways_of(mech, read_loads(mech, wrench), sensitivities=True)
    n, three, empty = mech.n, 3 * mech.n, np.empty
    shape = (3, n, n)

    def evaluate(q: Array, qd: Array, u: Array) -> tuple[Array, Array]:
        y, columns = empty(n), empty(shape)
        if y_only(q, qd, u, y, columns) == 0:
            return y, columns
        # not arrays of the right kind, or a sample without an answer: the careful way says which
        found = hybrid_sensitivity(mech, q, qd, u, wrench)
        return found.y, found.columns

    def answer(q: Array, qd: Array, u: Array) -> HybridSensitivity:
        parts, columns = empty(three), empty(shape)
        if whole(q, qd, u, parts, columns) == 0:
            return HybridSensitivity(parts, columns)
        return hybrid_sensitivity(mech, q, qd, u, wrench)

    return evaluate, answer


def variation_rate(
    D: Array,
    active: NDArray[np.bool_],
    driven: NDArray[np.int64],
    X: Array,
    U: Array | None = None,
    P: Array | None = None,
) -> Array:
    """Return dX/dt, (2n, m), of changes X of the state while the drive changes by U and the mechanism by P.

    δq̈_i is δu_i of an active joint, whose acceleration is given, and otherwise δy_i of
    δy = ∂y/∂q δq + ∂y/∂q̇ δq̇ + ∂y/∂u δu + ∂y/∂p δp.

    Parameters
    ----------
    D : ndarray, (3, n, n)
        Derivatives of the hybrid dynamics, as `Mechanism.hybrid_sensitivity_evaluator` returns them.
    active : ndarray of bool, (n,)
        Which joints are active.
    driven : ndarray of int, (k,)
        The coordinate that each of the k signals drives: by torque, or by acceleration where it is active.
    X : ndarray, (2n, m)
        Changes of the state.
    U : ndarray, (k, m), optional
        Changes of the signals; none unless given.
    P : ndarray, (n, m), optional
        Changes of y that numbers of the mechanism make; none unless given.

    Examples
    --------
    A pendulum that hangs down swings: its angle's change is turned back.

    >>> from cstormpy.mechanism import library
    >>> mech = library.pendulum()
    >>> _, D = mech.hybrid_sensitivity_evaluator()(np.array([-np.pi / 2]), np.zeros(1), np.zeros(1))
    >>> variation_rate(D, mech.active_mask, np.array([0]), np.array([[1.0], [0.0]])).round(3)
    array([[  0.   ],
           [-14.715]])
    """
    n = len(active)
    answer = D[0] @ X[:n] + D[1] @ X[n:]
    acceleration = np.where(active[:, None], 0.0, answer if P is None else answer + P)
    if U is not None:
        acceleration = acceleration + np.where(active[:, None], np.eye(n), D[2])[:, driven] @ U
    return np.concatenate([X[n:], acceleration])
