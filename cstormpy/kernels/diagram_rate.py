"""The function of a diagram: its arguments and results, and its evaluation by the address of its code."""

from __future__ import annotations

from typing import Any

from cstormpy.graph.addressed import at_address

#: t, x, z, p, n, w, out, xd; it returns 0, or a positive number where it failed.
RATE = "i8(f8, f8[::1], f8[::1], f8[::1], i8[::1], f8[::1], f8[::1], f8[::1])"


def evaluate(f: Any, t: Any, x: Any, z: Any, p: Any, n: Any, w: Any, out: Any, xd: Any) -> Any:
    """Evaluate the function of a diagram; f is its address, or in plain Python the function itself."""
    return f(t, x, z, p, n, w, out, xd)


at_address(evaluate, RATE)
