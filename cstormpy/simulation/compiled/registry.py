"""Which blocks can be translated, and by what: emitters by the class of the block.

An emitter says what a block computes, in expressions for the compiler. The expressions stand in NumPy arrays of
strings, a signal's shape being that of its array, so that NumPy's own rules of indexing and broadcasting hold. A block
of your own joins with a few lines, as methods of its class::

    class Square(FunctionBlock):
        def output(self, t, u, x):
            return [self.scale * u[0] ** 2]

        def emit(self, e, u, x):
            return [e.each("{0} * {1} * {1}", e.number(self.scale), u[0])]

or, for a class that is not yours, as functions that join the registry::

    @emits("my_blocks.Square")
    def _square(e, block, u, x):
        return [e.each("{0} * {1} * {1}", e.number(block.scale), u[0])]

A block with continuous states needs `emit_rate` (`emits_rate`) besides, which returns the rate of its states. What a
class computes anew (by an output or deriv of its own) is not covered by an emitter of the class that it derives from.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cstormpy.errors import DiagramError

__all__ = [
    "NotTranslated",
    "Value",
    "emits",
    "emits_guard",
    "emits_rate",
    "emitter_of",
    "guard_of",
    "is_silent",
    "rate_of",
    "silent_sink",
]

#: The elements of a signal, each an expression; the shape is that of the signal.
Value = NDArray[np.object_]
Emit = Callable[[Any, Any, list[Value], Any], Any]

_outputs: dict[str, Emit] = {}
_rates: dict[str, Emit] = {}
_guards: dict[str, Emit] = {}
_silent: dict[str, Callable[[Any], bool]] = {}


class NotTranslated(DiagramError):
    """A diagram that can not be compiled: which blocks are the cause, and why.

    Attributes
    ----------
    reasons
        Pairs of the block's name and what is said about it.
    """

    def __init__(self, reasons: list[tuple[str, str]]) -> None:
        self.reasons = reasons
        told = "; ".join(f"{name}: {why}" for name, why in reasons)
        super().__init__(f"the diagram cannot be compiled: {told}; run it with engine='interpreted'")


def emits(*classes: str) -> Callable[[Emit], Emit]:
    """Register the emitter of the outputs of classes, each "module.Class", called as emitter(e, block, u, x)."""
    return _into(_outputs, classes)


def emits_rate(*classes: str) -> Callable[[Emit], Emit]:
    """Register the emitter of the rate of the states of classes."""
    return _into(_rates, classes)


def emits_guard(*classes: str) -> Callable[[Emit], Emit]:
    """Register the emitter of what a block's zero-crossing detector looks at, called as emitter(e, block, u, detector).

    It returns one expression; u are the block's inputs.
    """
    return _into(_guards, classes)


def silent_sink(*classes: str, when: Callable[[Any], bool] = lambda block: True) -> None:
    """Say that the `step` of a sink need not be called at each point of a run: always, or as ``when`` tells."""
    _silent.update(dict.fromkeys(classes, when))


def _into(table: dict[str, Emit], classes: tuple[str, ...]) -> Callable[[Emit], Emit]:
    def register(emit: Emit) -> Emit:
        table.update(dict.fromkeys(classes, emit))
        return emit

    return register


def emitter_of(block: Any) -> Emit | None:
    """Return what emits the outputs of a block, or None."""
    return _find(block, _outputs, "emit", "output")


def rate_of(block: Any) -> Emit | None:
    """Return what emits the rate of a block's states, or None."""
    return _find(block, _rates, "emit_rate", "deriv")


def guard_of(block: Any) -> Emit | None:
    """Return what emits the quantity of a block's detectors, or None."""
    return _guards.get(_name(type(block)))


def is_silent(block: Any) -> bool:
    """Tell whether nothing happens in the `step` of a sink."""
    for kind in type(block).__mro__:
        silent = _silent.get(_name(kind))
        if silent is not None:
            return bool(silent(block))
        if "step" in vars(kind):
            return bool(getattr(block, "silent", False))
    return False


def _find(block: Any, table: dict[str, Emit], method: str, computes: str) -> Emit | None:
    """Return the emitter of the class that computes, or of one that derives from it."""
    for kind in type(block).__mro__:
        if method in vars(kind):
            own = vars(kind)[method]
            return lambda e, b, u, x: own(b, e, u, x)
        if _name(kind) in table:
            return table[_name(kind)]
        if computes in vars(kind):
            return None
    return None


def _name(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"
