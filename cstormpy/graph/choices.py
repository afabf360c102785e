"""Choices by a whole number: which phase it is, which law is active, which gear is in.

A number that is known chooses one of several, and nothing else is computed. A number that is a symbol has all of them
written down, and the machine code chooses when it runs.

An object shows which of its attributes are such numbers by their names in its class's ``choices``, as in::

    class Gearbox(FunctionBlock):
        choices = ("gear",)

        def output(self, t, u, x):
            return [choose(self.gear, [self._low, self._high], u[0])]

They are symbols then where a method is written down, and to change one of them needs no other code.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from cstormpy.graph.arrays import symbols
from cstormpy.graph.nodes import Node, where


def choose(number: Any, options: Sequence[Callable[..., Any]], *given: Any) -> Any:
    """Return what one of several functions gives.

    Parameters
    ----------
    number : int or symbol
        Which of them, counted from 0.
    options : sequence of functions
    *given
        What the function takes.

    Examples
    --------
    >>> choose(1, [lambda x: -x, lambda x: 2.0 * x], 3.0)
    6.0
    >>> from cstormpy.graph import Graph
    >>> k, x = Graph().inputs("x", 2)
    >>> choose(k, [lambda x: -x, lambda x: 2.0 * x], x)
    where(x[0] == 0.0, -x[1], 2.0*x[1])
    """
    if not isinstance(number, Node):
        return options[int(number)](*given)
    found = []
    for k, option in enumerate(options):
        with number.graph.under(number == float(k)):
            found.append(option(*given))
    return pick(number, found)


def pick(number: Any, values: Sequence[Any]) -> Any:
    """Return one of several values, numbers or arrays of one shape.

    >>> pick(0, ["on", "off"])
    'on'
    """
    if not isinstance(number, Node):
        return values[int(number)]
    shape = np.shape(values[0])
    columns = zip(*(np.asarray(symbols(value)).ravel() for value in values), strict=True)
    found = [_one_of(number, column) for column in columns]
    return symbols(found).reshape(shape) if shape else found[0]


def _one_of(number: Node, values: Sequence[Any]) -> Any:
    found = values[-1]
    for k in reversed(range(len(values) - 1)):
        found = where(number == float(k), values[k], found)
    return found
