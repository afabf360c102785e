"""Attributes of laws that are checked whenever they are set: by the constructor, and later."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cstormpy.errors import InvalidValue
from cstormpy.graph.arrays import is_symbolic


class Checked:
    """An attribute of a law that keeps what its check returns, whoever sets it and when.

    Parameters
    ----------
    check : callable
        Called with the law, the name of the attribute and what it is set to.

    Examples
    --------
    >>> from cstormpy.control import OpenLoop
    >>> law = OpenLoop("planar_2r", [1.0, 2.0])
    >>> law.limit = 1.5
    >>> law.limit
    array([1.5, 1.5])
    """

    def __init__(self, check: Callable[[Any, str, Any], Any]) -> None:
        self._check = check

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    # there is no __get__: what is read is what the law keeps, as fast as any attribute
    def __set__(self, law: Any, value: Any) -> None:
        vars(law)[self._name] = value if is_symbolic(value) else self._check(law, self._name, value)


def once(law: Any, name: str, value: Any) -> Any:
    """Return what a law is made with, and refuse another one: more follows from it than can be changed."""
    if name in vars(law):
        raise InvalidValue(
            f"{type(law).__name__}: {name!r} is part of what the law is made of; make another law for it"
        )
    return value
