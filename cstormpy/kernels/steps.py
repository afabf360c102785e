"""Steps: the pieces that kernels are made of, as plain functions of numbers.

A step computes with floats, with lanes of floats, or with the symbols of an expression graph, whatever it is given.
As it stands it is plain Python; `compiling.machine_form` makes of it what numba compiles into an entry.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def step(
    function: Callable[..., Any] | None = None, *, symbolic: Callable[..., Any] | None = None, arrays: bool = False
) -> Any:
    """Declare a piece of a kernel: always inlined into the entry that uses it, multiply and add fused.

    `symbolic` takes its place where the first argument is not a float but a symbol; compiled code never sees it. One
    that returns `arrays` says so: numba allows that only where references to arrays are counted, which costs an atomic
    addition for each argument of each call, and all vectors that stand in registers then.
    """
    if function is None:
        return lambda function: step(function, symbolic=symbolic, arrays=arrays)
    function._step = "fused"  # type: ignore[attr-defined]
    function._returns_arrays = arrays  # type: ignore[attr-defined]
    if symbolic is None:
        return function

    def either(x: Any, *others: Any) -> Any:
        return function(x, *others) if isinstance(x, float) else symbolic(x, *others)

    either.__name__, either.__qualname__, either.__doc__ = function.__name__, function.__qualname__, function.__doc__
    either.__module__ = function.__module__
    either._step, either._numeric = "fused", function  # type: ignore[attr-defined]
    return either


def exact_step(function: Callable[..., Any]) -> Any:
    """Declare a piece of a kernel whose every operation is rounded as by Python."""
    function._step = "exact"  # type: ignore[attr-defined]
    return function
