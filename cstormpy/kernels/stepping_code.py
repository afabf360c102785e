"""The steps of `stepping`, `held_steps` and `line_shooting` as machine code on arrays of Python's, without numba.

They are compiled once for all diagrams and kept on disk.
"""

from __future__ import annotations

import ctypes
import functools
import threading
from collections.abc import Callable
from operator import is_
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cstormpy.graph.code_cache import is_kept, machine_for
from cstormpy.graph.machine import Machine
from cstormpy.kernels import dense, held_steps, line_shooting, rungekutta, stepping

#: The kinds of the arguments, as `loops_text` takes them: the diagram's function is given by its address.
_TRIAL = ("i", "F2", "I1", "F1", "F1", "F1", "F1", "I1", "F1", "F1", "F2")
_ADVANCE = (
    "i", "i", "F2", "F2", "I1", "F1", "F1", "F1", "F1", "I1", "F1", "F1", "F2", "I1", "F2", "I1", "F2", "I2", "F1",
    "F2", "F2", "F1", "F2", "F2",
)  # fmt: skip
_HELD = ("i", *_TRIAL, "i", "F1", "I1", "F1", "I1", "F1")
#: The functions of each module with their kinds, by the name under which it is kept.
_MODULES: dict[str, dict[Any, tuple[str, ...]]] = {
    "steps": {stepping.trial: _TRIAL, stepping.advance: _ADVANCE},
    "held_steps": {held_steps.held_steps: _HELD},
    "line_shooting": {line_shooting.shoot_by_line: line_shooting.KINDS},
}
#: Those whose loops, over the states and signals of a diagram, have few rounds.
_BRIEF = frozenset({"steps"})
_MODULE_OF = {function.__name__: name for name, module in _MODULES.items() for function in module}
_KINDS = {function.__name__: kinds for module in _MODULES.values() for function, kinds in module.items()}


def steps_are_kept() -> bool:
    """Tell whether the code of runs is on disk, or in this process."""
    return bool(_MACHINES["steps"].cache_info().currsize) or is_kept("steps", b"steps")


#: Of two threads that make a machine at one time, one would run on the code of the one that nobody keeps.
_making = threading.RLock()


def _machine(name: str) -> Machine:
    def text() -> str:
        from cstormpy.graph.loops import loops_text

        return loops_text(_MODULES[name])

    return machine_for(name, name.encode(), text, unrolled=name not in _BRIEF)


#: For good: runs and steppers hold the addresses.
_MACHINES = {name: functools.cache(functools.partial(_machine, name)) for name in _MODULES}


#: Of so many numbers in the stages of a step its code is written for that many: with more, loops do as well.
_MOST_FIXED = 100


def steps_of(table: NDArray[np.float64], nstates: int) -> tuple[int, int]:
    """Return where the code stands that takes the stages of a method, and that which estimates its error.

    Both are 0 where code for any method does as well.

    Parameters
    ----------
    table : ndarray
        Of the method, as `stepping` reads it.
    nstates : int
    """
    stages = table.shape[1] - 1
    if not 0 < nstates * stages <= _MOST_FIXED:
        return 0, 0
    with _making:
        machine = _fixed_machine(table.tobytes(), stages, nstates)
    return machine.address("stages_and_result_at"), machine.address("error_noted_at")


@functools.cache  # for good, too
def _fixed_machine(numbers: bytes, stages: int, nstates: int) -> Machine:
    table = np.frombuffer(numbers).reshape(-1, stages + 1)
    how, at, x = ("I1", rungekutta.HOW), ("F1", rungekutta.AT), ("F1", nstates)
    K, any_row, any_whole = ("F2", stages + dense.K_ROWS, nstates), ("F1", 0), ("I1", 0)
    entries = {
        rungekutta.stages_and_result: (
            "i", table, how, at, "f", x, any_row, any_row, any_whole, any_row, any_row, K,
        ),
        rungekutta.error_noted: (table, how, at, "f", x, K),
    }  # fmt: skip
    key = f"{stages} {nstates} ".encode() + numbers

    def text() -> str:
        from cstormpy.graph.loops import fixed_text

        return fixed_text(entries)

    return machine_for("stages", key, text)


class Steps:
    """One of the functions, `trial`, `advance`, `held_steps` or `shoot_by_line`.

    It remembers where the arrays stand that it was called with last. Other threads run meanwhile.

    Parameters
    ----------
    name : str
    """

    def __init__(self, name: str) -> None:
        self._kinds = _KINDS[name]
        with _making:
            machine = _MACHINES[_MODULE_OF[name]]()
        self._function = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p)(
            machine.address(f"{name}_call")
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
        """Return the step as a function without arguments, for arrays that stay where they are; it has one result."""
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
