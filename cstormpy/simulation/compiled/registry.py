"""Which blocks can be translated, and by what: emitters by the class of the block.

An emitter says what a block computes, in expressions for the compiler. The expressions stand in NumPy arrays of
strings, a signal's shape being that of its array, so that NumPy's own rules of indexing and broadcasting hold. A block
of your own joins with a few lines, as methods of its class::

    class Square(FunctionBlock):
        def output(self, t, u, x):
            return [self.scale * u[0] ** 2]

        def emit(self, e, u, x):
            return [e.each("{0} * {1} * {1}", e.number(lambda: self.scale), u[0])]

or, for a class that is not yours, as functions that join the registry::

    @emits("my_blocks.Square")
    def _square(e, block, u, x):
        return [e.each("{0} * {1} * {1}", e.number(lambda: block.scale), u[0])]

What an emitter has at hand, `e`, is `cstormpy.simulation.compiled.emitter.Emitter`:

- ``e.number(lambda: ...)`` an expression that reads a number or an array anew, whenever it may have changed: after a
  change nothing is translated anew. A number by value is right too, but then the diagram is translated anew;
- ``e.depends(lambda: ...)`` a value on which the form of the source depends, as whether a limit is there;
- ``e.each(form, ...)`` and ``e.product(a, b)`` an expression for each number of a signal, and the matrix product;
- ``e.let(...)`` a variable for what is used more than once;
- ``e.call(name)`` a function of `cstormpy.kernels.diagram_calls`, or "math";
- ``e.by_python(block, u)`` the outputs of a block that no expression can say: compiled code then asks the block's own
  method `output`, which costs what it does in any engine, while all others stay compiled;
- ``e.fail_if(condition)`` hands the moment to the block's own methods, which say what is wrong.

A block with continuous states needs `emit_rate` (`emits_rate`) besides, which returns the rate of its states; a
sampled one may have `emit_next` (`emits_next`), which returns its states after a tick: without it, ticks are left to
Python. What a class computes anew (by an output or deriv of its own) is not covered by an emitter of the class that
it derives from. At the start of a run all signals are compared with those of the blocks themselves, so that an emitter
that is wrong is found and named. examples/10_compiled_diagram.py shows a block that joins;
`cstormpy.simulation.compiled.untranslated` lists what is not translated.
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
    "emits_next",
    "emits_rate",
    "emitter_of",
    "guard_of",
    "is_silent",
    "next_of",
    "rate_of",
    "silent_sink",
]

#: The elements of a signal, each an expression; the shape is that of the signal.
Value = NDArray[np.object_]
Emit = Callable[[Any, Any, list[Value], Any], Any]

_outputs: dict[str, Emit] = {}
_rates: dict[str, Emit] = {}
_guards: dict[str, Emit] = {}
_nexts: dict[str, Emit] = {}
_silent: dict[str, Callable[[Any], bool]] = {}
#: How many joints the mechanism of a block has at least, less one, that the emitters of its class are for.
_above: dict[str, int] = {}


class NotTranslated(DiagramError):
    """A diagram that cannot be compiled: which blocks are the cause, and why.

    Attributes
    ----------
    reasons
        Pairs of the block's name and what is said about it.

    Parameters
    ----------
    reasons
    remedy : str
        What a user may do about it.
    """

    def __init__(self, reasons: list[tuple[str, str]], remedy: str = "run it with engine='interpreted'") -> None:
        self.reasons = reasons
        super().__init__(self.told(remedy))

    def told(self, remedy: str) -> str:
        """Return what is wrong, and what is done about it."""
        reasons = "; ".join(f"{name}: {why}" for name, why in self.reasons)
        return f"the diagram cannot be compiled: {reasons}; {remedy}"


def emits(*classes: str, above: int = -1) -> Callable[[Emit], Emit]:
    """Register the emitter of the outputs of classes, each "module.Class", called as emitter(e, block, u, x).

    With `above` it is for blocks whose mechanism has more joints than that; the others are traced.
    """
    _above.update(dict.fromkeys(classes, above))
    return _into(_outputs, classes)


def emits_rate(*classes: str, above: int = -1) -> Callable[[Emit], Emit]:
    """Register the emitter of the rate of the states of classes."""
    _above.update(dict.fromkeys(classes, above))
    return _into(_rates, classes)


def emits_next(*classes: str) -> Callable[[Emit], Emit]:
    """Register the emitter of the states of sampled classes after a tick, from the signals before it, (ndstates,)."""
    return _into(_nexts, classes)


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


def next_of(block: Any) -> Emit | None:
    """Return what emits the states of a sampled block after a tick, or None."""
    return _find(block, _nexts, "emit_next", "next")


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
            return _own(vars(kind)[method])
        if _name(kind) in table and _is_large(block, _above.get(_name(kind), -1)):
            return table[_name(kind)]
        if computes in vars(kind):
            return None
    return None


def _is_large(block: Any, above: int) -> bool:
    mech = getattr(block, "mech", None)
    return above < 0 or mech is None or mech.n > above


def _own(method: Callable[..., Any]) -> Emit:
    """Return an emitter that is a method of its block's class as a function, known to be of that module."""

    def emit(e: Any, b: Any, u: list[Value], x: Any) -> Any:
        return method(b, e, u, x)

    emit.__module__ = method.__module__
    return emit


def _name(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


silent_sink(
    "bdsim.blocks.sinks.Null", "bdsim.blocks.sinks.Watch", "bdsim.blocks.sinks.Stop", "bdsim.blocks.sinks.Event"
)
silent_sink(
    "bdsim.blocks.displays.Scope",
    "bdsim.blocks.displays.ScopeXY",
    "bdsim.blocks.displays.ScopeXY1",
    when=lambda block: not getattr(block, "_enabled", True),
)
silent_sink("cstormpy.blocks.live.LiveScope", "cstormpy.blocks.live.LiveXY", "cstormpy.blocks.live.MechanismView")
