"""Equations of bdsim's blocks that call a function of the user (FUNCTION, STOP, INTEGRATOR_S), and of EVENT."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from cstormpy.graph import Node
from cstormpy.graph.arrays import symbols
from cstormpy.simulation.compiled.equations import guard, next_state, output
from cstormpy.simulation.compiled.symbolic_math import with_symbolic_math
from cstormpy.simulation.compiled.untranslated import Untraceable

Signals = list[Any]


@output("bdsim.blocks.functions.Function")
def _function(b: Any, t: Any, u: Signals, x: Any) -> Signals:
    if b.userdata is not None:
        raise Untraceable("it keeps data between its calls (persistent=True)")
    if not callable(b.func):
        return [_smooth(_called(b, each, u), u) for each in b.func]
    found = _smooth(_called(b, b.func, u), u)
    parts = list(found) if isinstance(found, (list, tuple)) else [found]
    if len(parts) != b.nout:
        raise Untraceable(f"it returns {len(parts)} values for {b.nout} outputs")
    return parts


#: What jumps. Derivatives of a run note where a function does, which they find of one that is differenced only.
_JUMPING = frozenset({"floor", "ceil", "trunc", "round", "sign", "mod", "fmod"})


def _smooth(found: Any, given: Signals) -> Any:
    """Return what a function has given, unless it may jump by itself; what it is given may."""
    parts = found if isinstance(found, (list, tuple)) else [found]
    seen = {node.index for node in _nodes_of(given)}
    stack = _nodes_of(parts)
    while stack:
        node = stack.pop()
        if node.index in seen:
            continue
        seen.add(node.index)
        if node.primitive.truth or node.primitive.name in _JUMPING:
            raise Untraceable(f"it may jump, by a {_word(node)}")
        stack += [a for a in node.args if isinstance(a, Node)]
    return found


def _nodes_of(signals: Iterable[Any]) -> list[Node]:
    return [x for each in signals for x in np.asarray(symbols(each)).flat if isinstance(x, Node)]


def _word(node: Node) -> str:
    return "comparison" if node.primitive.truth else f"{node.primitive.name}()"


def _called(b: Any, function: Any, u: Signals) -> Any:
    return with_symbolic_math(function)(*u, *b.args, **b.kwargs)


@next_state("bdsim.blocks.sampled.Integrator_S", numbers=("gain", "T", "min", "max"))
def _summed(b: Any, t: Any, u: Signals, x: Any) -> Any:
    after = x + b.gain * b.T * np.ravel(u[0])
    if b.min is not None:
        after = np.maximum(after, b.min)
    if b.max is not None:
        after = np.minimum(after, b.max)
    if b.enable is None:
        return after
    return np.where(with_symbolic_math(b.enable)(t, u, x), after, 0.0)


@guard("bdsim.blocks.sinks.Event")
def _event(b: Any, t: Any, u: Signals, x: Any, detector: Any) -> Any:
    return u[0]


@guard("bdsim.blocks.sinks.Stop")
def _stop(b: Any, t: Any, u: Signals, x: Any, detector: Any) -> Any:
    """Return the number whose sign stops a run; of a truth 1 where it holds, else -1."""
    if b.stopfunc is None:
        truth = np.asarray(b._inport_slots[0].value).dtype.kind == "b"
        return np.where(u[0] != 0.0, 1.0, -1.0) if truth else u[0]
    found = with_symbolic_math(b.stopfunc)(u[0])
    if np.ndim(found) == 0 and isinstance(found, (bool, np.bool_)):
        return 1.0 if found else -1.0
    is_truth = isinstance(found, Node) and found.primitive.truth
    return np.where(found, 1.0, -1.0) if is_truth else found
