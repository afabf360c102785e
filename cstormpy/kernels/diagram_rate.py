"""What the function of a diagram takes and returns, and how a kernel evaluates it: by the address of its code."""

from __future__ import annotations

from cstormpy.kernels.compiling import caller_at

__all__ = ["RATE", "evaluate"]

#: t, x, z, p, n, w, out, xd; it returns 0, or a positive number where it failed.
RATE = "i8(f8, f8[::1], f8[::1], f8[::1], i8[::1], f8[::1], f8[::1], f8[::1])"
#: ``evaluate(f, t, x, z, p, n, w, out, xd)``, f being the address.
evaluate = caller_at(RATE)
