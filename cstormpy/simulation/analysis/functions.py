"""The function of a diagram with tangents, ready to be called: as it is, along many directions, or compiled."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from cstormpy.simulation.compiled.program import Program
from cstormpy.simulation.compiled.registry import NotTranslated
from cstormpy.simulation.compiled.tangents import TangentProgram

__all__ = ["MOVED", "compiled_function", "is_ready", "plain_function"]

Array = NDArray[np.float64]
#: Share of a number by which it is moved for a central difference: the cube root of the rounding.
MOVED = 6e-6
_KEPT = 32
#: A slope on one side may grow by this factor as the step shrinks to an eighth, and by this for the rounding.
_STEEPER, _ROUNDED = 1.05, 1e-6


class _Kept:
    """Compiled functions that are ready, by what tells their programs apart."""

    functions: ClassVar[dict[tuple[str, str], Any]] = {}


def plain_function(program: Program, tangents: TangentProgram) -> Callable[..., int]:
    """Return the function uncompiled: tangents have a second axis, for the directions."""
    space: dict[str, Any] = {name: _plain(name) for name in tangents.calls}
    space |= {name: function for name, (function, _) in program.functions.items()}
    exec(compile(tangents.source, "<diagram with tangents>", "exec"), space)
    function = space["tangent"]

    def quiet(*arguments: Any) -> int:
        with np.errstate(all="ignore"):
            return int(function(*arguments))

    return quiet


def is_ready(program: Program, tangents: TangentProgram) -> bool:
    """Whether the function has been compiled in this process."""
    return (tangents.source, program.fingerprint[0]) in _Kept.functions


def compiled_function(program: Program, tangents: TangentProgram) -> Any:
    """Return the function compiled, for one direction."""
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


def differenced_function(function: Callable[..., Any], values: tuple[Any, ...], tangents: tuple[Any, ...]) -> Any:
    """Return what a function of the user returns, and its tangents along all directions, by differences.

    They are central. Where the function has no value on one side, as beside the edge of its domain, the step is made
    small against the numbers that are moved, and if that does not help either, the difference is taken on one side.

    Raises
    ------
    ValueError
        Where there is none of these, or the slope grows without bound.
    """
    result = function(*[np.array(v) if isinstance(v, np.ndarray) else v for v in values])
    count = max([np.shape(d)[-1] for d in tangents if np.ndim(d)], default=1)
    size = max([float(np.abs(v).max(initial=0.0)) for v in map(np.asarray, values)], default=0.0)
    columns = []
    for k in range(count):
        parts = [np.asarray(d)[..., k] if np.ndim(d) else d for d in tangents]
        along = max([float(np.abs(d).max(initial=0.0)) for d in map(np.asarray, parts)], default=0.0)
        if along > 0.0:
            line = _Line(function, values, parts, result)
            columns.append(line.slope((MOVED * max(1.0, size) / along, MOVED * line.reach())))
        else:
            columns.append([np.zeros(np.shape(part)) for part in _arrays(result)])
    if isinstance(result, (list, tuple)):
        return result, [np.stack([column[i] for column in columns], axis=-1) for i in range(len(result))]
    return result, np.stack([column[0] for column in columns], axis=-1)


class _Line:
    """A function of the user along a direction from a point, at which it returns `here`."""

    def __init__(self, function: Callable[..., Any], values: tuple[Any, ...], along: list[Any], here: Any) -> None:
        self.function, self.values, self.along = function, values, along
        self.here = _arrays(here)

    def reach(self) -> float:
        """Return how far it is until one of the numbers that are moved has moved by its own size."""
        pairs = [np.broadcast_arrays(v, d) for v, d in zip(self.values, self.along, strict=True)]
        return min(float((np.abs(v[d != 0.0]) / np.abs(d[d != 0.0])).min(initial=math.inf)) for v, d in pairs)

    def at(self, h: float) -> list[Array] | None:
        """Return the parts of the result at a distance, or None where there are none like those at the point."""
        try:
            found = _arrays(self.function(*[v + h * d for v, d in zip(self.values, self.along, strict=True)]))
        except (ArithmeticError, ValueError, LookupError):
            return None
        if [a.shape for a in found] != [a.shape for a in self.here]:
            return None
        defined = all(np.isfinite(a[np.isfinite(b)]).all() for a, b in zip(found, self.here, strict=True))
        return found if defined else None

    def slope(self, steps: tuple[float, ...]) -> list[Array]:
        """Return the derivative of each part, by the first of the steps that serves."""
        for h in filter(None, steps):
            above, below = self.at(h), self.at(-h)
            if above is not None and below is not None:
                return [0.5 * (a - b) / h for a, b in zip(above, below, strict=True)]
        for h in (steps[0], -steps[0]):
            coarse, fine = self.aside(h), self.aside(h / 8.0)
            if coarse is not None and fine is not None:
                self._check(coarse, fine)
                return coarse
        raise ValueError("the function has no value beside the point")

    def aside(self, h: float) -> list[Array] | None:
        """Return the derivative of each part by a difference of second order on one side."""
        near, far = self.at(h), self.at(2.0 * h)
        if near is None or far is None:
            return None
        return [(4.0 * b - 3.0 * a - c) / (2.0 * h) for a, b, c in zip(self.here, near, far, strict=True)]

    def _check(self, coarse: list[Array], fine: list[Array]) -> None:
        """Refuse a slope that grows as the step is made smaller, as that of a root does at zero."""
        for value, a, b in zip(self.here, coarse, fine, strict=True):
            if (np.abs(b) > _STEEPER * np.abs(a) + _ROUNDED * np.maximum(1.0, np.abs(value))).any():
                raise ValueError("the slope of the function grows without bound towards the point")


def _arrays(found: Any) -> list[Array]:
    parts = found if isinstance(found, (list, tuple)) else [found]
    return [np.array(part, dtype=float) for part in parts]
