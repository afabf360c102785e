"""The steps of `stepping` and `held_steps` as machine code, which reads and writes arrays of Python's: without numba.

They are compiled once for all diagrams and kept on disk.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable
from operator import is_
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cstormpy.graph.kept import is_kept, machine_for
from cstormpy.graph.loops import loops_text
from cstormpy.graph.machine import Machine
from cstormpy.kernels import held_steps, stepping

__all__ = ["Steps", "steps_are_kept"]

#: The kinds of the arguments, as `loops_text` takes them: the diagram's function is given by its address.
_TRIAL = ("i", "F2", "I1", "F1", "F1", "F1", "F1", "I1", "F1", "F1", "F2")
_ADVANCE = (
    "i", "i", "F2", "F2", "I1", "F1", "F1", "F1", "F1", "I1", "F1", "F1", "F2", "I1", "F2", "I1", "F2", "I2", "F1",
    "F2", "F1", "F2", "F2",
)  # fmt: skip
_HELD = (*_TRIAL, "i", "F1", "I1", "F1", "I1", "F1")
#: The functions of each module with their kinds, by the name under which it is kept.
_MODULES: dict[str, dict[Any, tuple[str, ...]]] = {
    "steps": {stepping.trial: _TRIAL, stepping.advance: _ADVANCE},
    "held_steps": {held_steps.held_steps: _HELD},
}
_MODULE_OF = {function.__name__: name for name, module in _MODULES.items() for function in module}
_KINDS = {function.__name__: kinds for module in _MODULES.values() for function, kinds in module.items()}


def steps_are_kept() -> bool:
    """Tell whether the code of runs is on disk, or in this process."""
    return bool(_MACHINES["steps"].cache_info().currsize) or is_kept("steps", b"steps")


def _machine(name: str) -> Machine:
    return machine_for(name, name.encode(), lambda: loops_text(_MODULES[name]))


_MACHINES = {name: functools.cache(functools.partial(_machine, name)) for name in _MODULES}


class Steps:
    """One of the functions, `trial`, `advance` or `held_steps`.

    It remembers where the arrays stand that it was called with last. Other threads run meanwhile.

    Parameters
    ----------
    name : str
    """

    def __init__(self, name: str) -> None:
        self._kinds = _KINDS[name]
        self._function = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p)(
            _MACHINES[_MODULE_OF[name]]().address(f"{name}_call")
        )
        sizes = [1 if kind == "i" else 1 + int(kind[1]) for kind in self._kinds]
        self._firsts = np.cumsum([0, *sizes]).tolist()
        self._arguments, self._results = np.zeros(self._firsts[-1], dtype=np.int64), np.zeros(2, dtype=np.int64)
        self._places = self._arguments.ctypes.data, self._results.ctypes.data
        self._arrays: tuple[Any, ...] = (None,) * len(sizes)

    def __call__(self, *given: Any) -> list[int]:
        """Run it with the address of a diagram's function and arrays; return its results."""
        if not all(map(is_, given, self._arrays)):
            for k, value in enumerate(given):
                if value is not self._arrays[k]:
                    self._take(k, value)
            self._arrays = given
        self._function(*self._places)
        found: list[int] = self._results.tolist()
        return found

    def bound(self, *given: Any) -> Callable[[], int]:
        """Return it as a function of nothing, for arrays that stay where they are, that returns its one result."""
        for k, value in enumerate(given):
            self._take(k, value)
        self._arrays = given
        return functools.partial(self._function, *self._places)

    def _take(self, k: int, value: int | NDArray[Any]) -> None:
        kind, first = self._kinds[k], self._firsts[k]
        if kind == "i":
            self._arguments[first] = value
            return
        array: Any = value
        wanted = np.float64 if kind[0] == "F" else np.int64
        if array.dtype != wanted or array.ndim != int(kind[1]) or not array.flags.carray:
            raise TypeError(f"argument {k} is not a C array of {wanted.__name__} with {kind[1]} dimensions")
        self._arguments[first] = array.ctypes.data
        self._arguments[first + 1 : self._firsts[k + 1]] = array.shape
