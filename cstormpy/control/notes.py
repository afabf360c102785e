"""What laws note of the state in which they begin or change their phase, kept so that a run can go on from there."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

import numpy as np

from cstormpy.arrays import Array
from cstormpy.control.law import Law

_ELSEWHERE = ("mode", "begun")
"""What a `LawSet` remembers of every law by itself."""


class Notes:
    """Numbers, arrays and texts that a law, or a law within it, changes among its attributes as it begins or switches.

    Names are as "home", or "first.home" of a law within.

    Examples
    --------
    >>> from cstormpy.control.law import Off
    >>> class Here(Off):
    ...     def start(self, t, q, qd):
    ...         self.home = q.copy()
    >>> law = Here("acrobot")
    >>> notes = Notes(law)
    >>> notes.start(0.0, np.array([0.1, 0.2]), np.zeros(2))
    >>> notes.memory()
    {'home': array([0.1, 0.2])}
    """

    def __init__(self, law: Law) -> None:
        self._law = law
        self._first: dict[str, Any] = {}  # by name, what stood there before the first note

    def start(self, t: float, q: Array, qd: Array) -> None:
        """Let the law begin."""
        before = _plain(self._law)
        self._law.start(t, q, qd)
        self._compare(before)

    def switch(self, t: float, q: Array, qd: Array) -> None:
        """Let the law change its phase."""
        before = _plain(self._law)
        self._law.switch(t, q, qd)
        self._compare(before)

    def _compare(self, before: dict[str, Any]) -> None:
        for name, value in _plain(self._law).items():
            if name not in self._first and name not in _ELSEWHERE and not _same(before.get(name), value):
                self._first[name] = before.get(name)

    def memory(self) -> dict[str, Any]:
        """Return what is noted now, by name."""
        return {name: value for name, value in _plain(self._law).items() if name in self._first}

    def recall(self, memory: Mapping[str, Any]) -> None:
        """Note what `memory` returned, or a file has of it; what was noted later only is as before."""
        now = _plain(self._law)
        self._first = {name: now.get(name) for name in memory} | self._first
        for name, first in self._first.items():
            value = memory.get(name, first)
            *within, last = name.split(".")
            owner = functools.reduce(getattr, within, self._law)
            setattr(owner, last, np.array(value) if isinstance(value, (list, np.ndarray)) else value)


def _plain(law: Law, of: str = "", above: tuple[Law, ...] = ()) -> dict[str, Any]:
    """Return copies of the numbers, arrays of numbers and texts of a law and of the laws within it, by name."""
    found: dict[str, Any] = {}
    for name, value in vars(law).items():
        if isinstance(value, np.ndarray) and value.dtype.kind in "biuf":
            found[of + name] = value.copy()
        elif value is None or isinstance(value, (bool, int, float, str, np.generic)):
            found[of + name] = value
        elif isinstance(value, Law) and value is not law and value not in above:
            found |= _plain(value, f"{of}{name}.", (*above, law))
    return found


def _same(one: Any, other: Any) -> bool:
    return type(one) is type(other) and np.array_equal(one, other)
