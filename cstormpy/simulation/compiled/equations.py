"""Equations of blocks as functions of symbols: outputs, rates, what a tick does, guards; and silent sinks.

What a block computes is one of its own methods ``output(t, u, x)``, ``deriv(t, u, x)``, ``next(t, u, x)``, which are
traced as they stand (`traced`). A block of bdsim whose method cannot be traced, because it asks for a number by an
``if`` or holds an object of SciPy, gets a function here instead: plain Python and NumPy on a twin of the block whose
numbers are symbols, registered by the class that computes::

    @output("bdsim.blocks.sources.Step", numbers=("T", "on", "off"))
    def _step(step, t, u, x):
        return [np.where(t >= step.T, step.on, step.off)]

`equations_of` gives for any block the functions that say what it computes, whoever has written them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any, NamedTuple

from cstormpy.simulation.bdsim_blocks import class_name

#: A function of (twin, t, u, x); of a guard (twin, t, u, x, detector).
Rule = Callable[..., Any]
#: Reads a number or an array of a block anew.
Reader = Callable[[Any], Any]


class Equations(NamedTuple):
    """The equations of a block.

    Attributes
    ----------
    output, deriv, next : function of (twin, t, u, x), or None
        As the methods of a block: a list with the outputs, the rates of the states, the states after a tick.
    guard : function of (twin, t, u, x, detector)
        The number whose sign a zero-crossing detector of the block watches: what is registered, or else the method of
        the block that the detector has as its `quantity`, a function of (t, u), or of (t, u, x) where it says
        `of_states`.
    fails : function of (twin, t, u, x), or None
        Where it holds, the block's own method raises, and is to be asked so that it does.
    bounded_deriv, bounded : function of (twin, t, u, x), or None
        Of states with limits, where nobody locates when they reach and leave them: the rates of the states, whatever
        the limits are; and the states within their limits, as others see them and as they are after a step.
    numbers : mapping of str to function of the block
        Attributes of the twin that are numbers, of whatever type they are in the block, and how each is read; the
        others are symbols where they are floats or arrays of floats.
    """

    output: Rule | None = None
    deriv: Rule | None = None
    next: Rule | None = None
    guard: Rule | None = None
    fails: Rule | None = None
    bounded_deriv: Rule | None = None
    bounded: Rule | None = None
    numbers: Mapping[str, Reader] = MappingProxyType({})


_METHODS = ("output", "deriv", "next", "guard", "fails", "bounded_deriv", "bounded")
_rules: dict[str, dict[str, Rule]] = {name: {} for name in _METHODS}
_numbers: dict[str, dict[str, Reader]] = {}
_passing: dict[str, tuple[str, ...]] = {}


def _register(method: str, *classes: str, numbers: Iterable[str] = (), **readers: Reader) -> Callable[[Rule], Rule]:
    """Register what a method of classes, each "module.Class", computes.

    Parameters
    ----------
    method : str
    *classes : str
    numbers : iterable of str
        Attributes of the block that are parameters also where they are whole numbers or arrays of these.
    **readers : function of the block
        What else the twin has as numbers, by name.
    """
    own_method(*classes, numbers=numbers, **readers)

    def register(rule: Rule) -> Rule:
        _rules[method].update(dict.fromkeys(classes, rule))
        return rule

    return register


#: Register the outputs of classes, the rates of their states, the states of sampled ones after a tick, what their
#: zero-crossing detectors watch, where their method ``output`` raises, and what their limits do.
output, deriv, next_state, guard, fails, bounded_deriv, bounded = (partial(_register, name) for name in _METHODS)


def own_method(*classes: str, numbers: Iterable[str] = (), **readers: Reader) -> None:
    """Say that the methods of classes are traced as they are, and which of their attributes are numbers."""
    for name in classes:
        _numbers.setdefault(name, {}).update({key: _attribute(key) for key in numbers} | readers)


def passes_on(name: str, *attributes: str) -> None:
    """Say that the method ``output`` of a class hands on what it is given, whatever stands for a signal.

    Parameters
    ----------
    name : str
    *attributes : str
        What it depends on.
    """
    _passing[name] = attributes


def passed_on(block: Any) -> tuple[str, ...] | None:
    """Return on which attributes a block depends that hands on what it is given; None for one that computes."""
    return _passing.get(class_name(type(block)))


def _attribute(name: str) -> Reader:
    return lambda block: getattr(block, name)


def equations_of(block: Any) -> Equations | None:
    """Return what a block computes; None for one that has neither outputs, states nor guards.

    A function that is registered holds for the class and those derived from it, unless these compute anew by a method
    of their own.
    """
    kind = type(block)
    found = {name: _rule(kind, name) for name in ("output", "deriv", "next")}
    watched = _guard(kind)
    if watched is None and not any(found.values()):
        return None
    numbers = {}
    for base in reversed(kind.__mro__):
        numbers.update(_numbers.get(class_name(base), {}))
    more = {"fails": "output", "bounded_deriv": "deriv", "bounded": "deriv"}
    found |= {name: _rule(kind, name, computes) for name, computes in more.items()}
    return Equations(**found, guard=watched or _quantity, numbers=numbers)


def _quantity(twin: Any, t: Any, u: Any, x: Any, detector: Any) -> Any:
    """Return what a detector watches by a method of its block that it names."""
    own = [x] if getattr(detector, "of_states", False) else []
    return getattr(twin, detector.quantity.__name__)(t, u, *own, **getattr(detector, "named", {}))


def _guard(kind: type) -> Rule | None:
    """Return the function that says what the detectors of a class watch, which it declares where a run starts."""
    for base in kind.__mro__:
        registered = _rules["guard"].get(class_name(base))
        if registered is not None or "start" in vars(base):
            return registered
    return None


def _rule(kind: type, method: str, computes: str = "") -> Rule | None:
    """Return the function of the class that computes, or of one that derives from it."""
    for base in kind.__mro__:
        registered = _rules[method].get(class_name(base))
        if registered is not None:
            return registered
        if (computes or method) in vars(base):
            own: Rule | None = vars(base).get(method)
            return None if base.__module__ == "bdsim.block" else own
    return None


_silent: dict[str, Callable[[Any], bool]] = {}


def silent_sink(*classes: str, when: Callable[[Any], bool] = lambda block: True) -> None:
    """Say that the `step` of a sink need not be called at each point of a run: always, or as ``when`` tells."""
    _silent.update(dict.fromkeys(classes, when))
    _rule_of.cache_clear()


def is_silent(block: Any) -> bool:
    """Tell whether nothing happens in the `step` of a sink."""
    kind: Any = type(block)
    return bool(_rule_of(kind)(block))


@functools.cache
def _rule_of(kind: type) -> Callable[[Any], bool]:
    """Return what tells of a block of a class whether nothing happens in its `step`."""
    for base in kind.__mro__:
        silent = _silent.get(class_name(base))
        if silent is not None:
            return silent
        if "step" in vars(base):
            return lambda block: getattr(block, "silent", False)
    return lambda block: False


silent_sink(
    "bdsim.blocks.sinks.Null", "bdsim.blocks.sinks.Watch", "bdsim.blocks.sinks.Stop", "bdsim.blocks.sinks.Event"
)
silent_sink(
    "bdsim.blocks.displays.Scope",
    "bdsim.blocks.displays.ScopeXY",
    "bdsim.blocks.displays.ScopeXY1",
    when=lambda block: not getattr(block, "_enabled", True),
)
