"""The change of a diagram's function along many directions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from cstormpy.arrays import Array
from cstormpy.simulation.compiled.program import Program

__all__ = ["along_many"]


def along_many(program: Program) -> Callable[..., int]:
    """Return the change of a diagram along many directions: the second axis of its arguments."""
    function = program.change(in_python=True)

    def along(
        t: float, x: Array, z: Array, p: Array, n: Any, w: Array, out: Array, xd: Array, dt: Any, dx: Array, dz: Array,
        dp: Array, dw: Array, dout: Array, dxd: Array,
    ) -> int:  # fmt: skip
        x = np.ascontiguousarray(x, dtype=float)
        for k in range(dxd.shape[1] if dxd.size else dout.shape[1]):
            given = [np.ascontiguousarray(d[:, k]) for d in (dx, dz, dp)]
            found = np.zeros(len(dout)), np.zeros(len(dxd))
            rate = float(dt[k]) if np.ndim(dt) else float(dt)
            status = function(float(t), x, z, p, n, w, out, xd, rate, *given, w, *found)
            if status:
                return status
            dout[:, k], dxd[:, k] = found
        return 0

    return along
