"""The function of a diagram with tangents, ready to be called: as it is, along many directions, or compiled."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from cstormpy.simulation.compiled.assembly import GraphProgram
from cstormpy.simulation.compiled.differences import MOVED, differenced_function
from cstormpy.simulation.compiled.program import Program
from cstormpy.simulation.compiled.registry import NotTranslated
from cstormpy.simulation.compiled.tangents import TangentProgram

__all__ = ["MOVED", "compiled_function", "is_ready", "plain_function"]

Array = NDArray[np.float64]
_KEPT = 32


class _Kept:
    """Compiled functions that are ready, by what tells their programs apart."""

    functions: ClassVar[dict[tuple[str, str], Any]] = {}


def plain_function(program: Program, tangents: TangentProgram) -> Callable[..., int]:
    """Return the function uncompiled: tangents have a second axis, for the directions."""
    if isinstance(program, GraphProgram):
        return _many(program)
    space: dict[str, Any] = {name: _plain(name) for name in tangents.calls}
    space |= {name: function for name, (function, _) in program.functions.items()}
    exec(compile(tangents.source, "<diagram with tangents>", "exec"), space)
    function = space["tangent"]

    def quiet(*arguments: Any) -> int:
        with np.errstate(all="ignore"):
            return int(function(*arguments))

    return quiet


def _many(program: GraphProgram) -> Callable[..., int]:
    """Return the change of a diagram along many directions: the second axis of its arguments."""
    function = program.change()

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


def is_ready(program: Program, tangents: TangentProgram) -> bool:
    """Whether the function has been compiled in this process."""
    if isinstance(program, GraphProgram):
        return True
    return (tangents.source, program.fingerprint[0]) in _Kept.functions


def compiled_function(program: Program, tangents: TangentProgram) -> Any:
    """Return the function compiled, for one direction."""
    if isinstance(program, GraphProgram):
        return program.change()
    from cstormpy.kernels.entries_tangent import TANGENT
    from cstormpy.kernels.steppers_generated import Refused, compiled
    from cstormpy.kernels.tangent_calls import tangent_callee

    digest, lasting = program.fingerprint
    key = tangents.source, digest
    if key not in _Kept.functions:
        try:
            made = compiled(
                tangents.source, tangents.calls, program.functions, digest if lasting else None, TANGENT, tangent_callee
            )
        except Refused as refused:
            block = program.owners.get(refused.name, "the derivative of the diagram")
            raise NotTranslated([(block, f"numba does not compile it: {refused}")]) from refused
        while len(_Kept.functions) >= _KEPT:
            _Kept.functions.pop(next(iter(_Kept.functions)))
        _Kept.functions[key] = made
    return _Kept.functions[key]


def _plain(name: str) -> Any:
    """Return what the source calls by a name, able to take many directions."""
    from cstormpy.kernels.compiling import Entry
    from cstormpy.kernels.diagram_calls import CALLS
    from cstormpy.kernels.tangent_calls import TANGENT_CALLS

    own = {
        "loaded_motion_tangent": _motion,
        "energies_tangent": _energies,
        "line_tangent": _line,
        "differenced_kernel": differenced_kernel,
        "differenced_function": differenced_function,
    }
    if name in own:
        return own[name]
    found = {**CALLS, **TANGENT_CALLS}[name]
    if isinstance(found, Entry) and name not in ("spline_tangent", "piece_of_spline_tangent"):
        return found.load()
    return math if name == "math" else getattr(found, "_function", found)


def _motion(T: Array, N: Any, W: Array, g: Array, wrench: Array, dT: Any, dg: Array, dwrench: Any) -> int:
    from cstormpy.kernels.entries_tangent import loaded_motion_tangent

    kernel, status = loaded_motion_tangent.load(), 0
    for k in range(dg.shape[1]):
        column = dg[:, k].copy()
        given = np.ascontiguousarray(dwrench[:, k]), np.ascontiguousarray(dT[:, k])
        status = kernel(T, N, W, g, wrench, given[1], column, given[0])
        dg[:, k] = column
        if status:
            break
    return int(status)


def _line(numbers: Array, given: Array, filled: Array, dnumbers: Any, dgiven: Any, dfilled: Array, at: Any) -> int:
    from cstormpy.kernels.line_calls import line_tangent

    for k in range(dfilled.shape[1]):
        column = np.empty(len(dfilled))
        changes = (np.ascontiguousarray(d[:, k]) for d in (dnumbers, dgiven))
        line_tangent(numbers, given, filled, *changes, column, at)
        dfilled[:, k] = column
    return 0


def _energies(T: Array, N: Any, W: Array, g: Array, dT: Array, dg: Array) -> Array:
    from cstormpy.kernels.entries_tangent import energies_tangent

    kernel = energies_tangent.load()
    found = [
        kernel(T, N, W, g, np.ascontiguousarray(dT[:, k]), np.ascontiguousarray(dg[:, k])) for k in range(dg.shape[1])
    ]
    return np.array(found).T.reshape(2, dg.shape[1])


def differenced_kernel(kernel: Any, args: list[Any], moved: dict[int, tuple[Array, Array, int, bool]]) -> Array:
    """Fill the tangents of what a kernel fills by central differences, and return that of what it returns.

    ``moved`` holds for some of the arguments their values, their tangents (size, directions), how many of the numbers
    go in, the first ones, and whether the tangents are filled.
    """
    results = []
    for k in range(next(iter(moved.values()))[1].shape[1]):
        ways = []
        for values, d, count, _ in moved.values():
            along = float(np.abs(d[:count, k]).max(initial=0.0))
            if along > 0.0:
                ways.append(MOVED * max(1.0, float(np.abs(values[:count]).max())) / along)
        h = min(ways, default=0.0)
        sides = []
        for side in (h, -h):
            arrays = {i: values + side * d[:, k] for i, (values, d, _, _) in moved.items()}
            sides.append((kernel(*[arrays.get(i, arg) for i, arg in enumerate(args)]), arrays))
        (above, up), (below, down) = sides
        for i, (_, d, _, filled) in moved.items():
            if filled:
                d[:, k] = 0.5 * (up[i] - down[i]) / h if h > 0.0 else 0.0
        results.append(0.0 if above is None or h == 0.0 else 0.5 * (above - below) / h)
    return np.array(results)
