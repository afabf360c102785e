"""Hybrid dynamics y = f(q, q̇, u), and inverse and forward dynamics as its two ends."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cstormpy.dynamics.border import BaseLike, Samples, WrenchLike, read_samples
from cstormpy.dynamics.running import run_checked, scratch_size
from cstormpy.errors import InvalidValue, ShapeError
from cstormpy.kernels import layout

if TYPE_CHECKING:
    from cstormpy.mechanism import Mechanism

Array = NDArray[np.float64]

__all__ = ["HybridDynamics", "hybrid_dynamics", "hybrid_evaluator"]


class HybridDynamics:
    """The answer of the hybrid dynamics: what was asked, put together with what was found.

    Attributes
    ----------
    y : ndarray, (n,) or (N, n)
        The torque of each active joint, the acceleration of each passive one.
    qdd : ndarray, like y
        The acceleration of every joint, as prescribed or as found.
    tau : ndarray, like y
        The motor torque of every joint, as given or as found.
    """

    __slots__ = ("_active", "_u", "y")

    def __init__(self, y: Array, u: ArrayLike, active: NDArray[np.bool_]) -> None:
        self.y = y
        self._u = u
        self._active = active

    @property
    def qdd(self) -> Array:
        """The acceleration of every joint, as prescribed or as found."""
        return np.where(self._active, self._u, self.y)

    @property
    def tau(self) -> Array:
        """The motor torque of every joint, as given or as found."""
        return np.where(self._active, self.y, self._u)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(qdd={self.qdd!r}, tau={self.tau!r})"


def hybrid_dynamics(
    mech: Mechanism,
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

    `drive` is one of `mechanism.tables.tables_of`; `name` is what messages call u.
    """
    samples = read_samples(mech, {"q": q, "qd": qd, name: u}, wrench, base)
    return samples.shaped(_run(mech, samples, threads, drive))


def _run(mech: Mechanism, samples: Samples, threads: int | None, drive: str) -> Array:
    from cstormpy.kernels import entries_hybrid as entries
    from cstormpy.mechanism.tables import tables_of

    tables = tables_of(mech, drive)
    out = np.empty((samples.count, mech.n))
    if samples.count == 0:
        return out
    arguments = (*samples.rows.values(), samples.wrench, samples.base, out)
    run_checked(mech, entries.hybrid_lanes, tables, arguments, samples, scratch_size(mech, False), threads)
    return out


def hybrid_evaluator(mech: Mechanism) -> Callable[..., Array]:
    """Return a prepared f(q, qd, u, out=None) -> y; `Mechanism.hybrid_evaluator` says more."""
    from cstormpy.kernels import entries_hybrid as entries
    from cstormpy.mechanism.tables import tables_of

    kernel = entries.hybrid_one.load()
    tables = tables_of(mech)
    T, N = tables.T, tables.N
    W = np.zeros(layout.scratch_numbers(mech.n, len(mech.links), False))

    def evaluate(q: Array, qd: Array, u: Array, out: Array | None = None) -> Array:
        try:
            y: Array = kernel(T, N, W, q, qd, u)
        except (TypeError, ArithmeticError):
            # not arrays of the right kind, or a sample without an answer: the careful way says which
            y = hybrid_dynamics(mech, q, qd, u)
        return y if out is None else copy_out(y, out)

    return evaluate


def copy_out(y: Array, out: Array) -> Array:
    """Copy a result into the array that the user gave for it."""
    if not isinstance(out, np.ndarray) or out.dtype != np.float64:
        raise InvalidValue(f"out: expected an array of float64, got {getattr(out, 'dtype', type(out).__name__)}")
    if out.shape != y.shape:
        raise ShapeError(f"out: expected shape {y.shape}, got {out.shape}")
    out[...] = y
    return out
