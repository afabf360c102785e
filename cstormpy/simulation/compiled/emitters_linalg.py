"""Linear equations as expressions, for the emitters of laws."""

from __future__ import annotations

from cstormpy.simulation.compiled.emitter import Emitter, Untranslatable, named
from cstormpy.simulation.compiled.registry import Value

__all__ = ["solved"]


def solved(e: Emitter, A: Value, B: Value) -> Value:
    """Return X of A X = B, of the shape of B; a singular A is looked at by the block itself."""
    n = A.shape[0]
    if A.shape != (n, n) or B.shape[0] != n:
        raise Untranslatable(f"solves with matrices of the shapes {A.shape} and {B.shape}")
    place = e.scratch(n * n + B.size)
    factors = e.store([A], place)
    found = e.store([B], place + n * n)
    e.fail_if(f"{e.call('solve')}({factors}, {found}, {n}, {B.size // n}) != 0")
    return named([f"w[{place + n * n + k}]" for k in range(B.size)]).reshape(B.shape)
