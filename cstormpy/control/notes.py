"""What laws note of the state in which they begin or change their phase, kept so that a run can go on from there."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from cstormpy.arrays import Array
from cstormpy.control.law import Law

_ELSEWHERE = ("mode", "begun")
"""What a `LawSet` remembers of every law by itself."""

_PLAIN = frozenset((type(None), bool, int, float, str))


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
        self._noting = [*_noting(law)]
        # by name, what stood there before the first note, and what was noted last: kept by the law, which may be in
        # runs of other laws, or be copied, afterwards
        held: tuple[dict[str, Any], dict[str, Any]] = law.__dict__.setdefault("_noted", ({}, {}))
        self._first, self._last = held

    @property
    def laws(self) -> tuple[Law, ...]:
        """The law and those within it, as far as they do anything as they begin or switch."""
        return tuple(law for _, law in self._noting)

    def reset(self) -> None:
        """Forget what is noted: what stood there before stands there again, unless somebody has set it since."""
        if not self._first:
            return
        now = self._plain()
        for name, first in self._first.items():
            if first is not None and _same(now.get(name), self._last.get(name)):
                self._set(name, first)
        self._first.clear()
        self._last.clear()

    def start(self, t: float, q: Array, qd: Array) -> None:
        """Let the law begin."""
        self._noted(self._law.start, t, q, qd)

    def switch(self, t: float, q: Array, qd: Array) -> None:
        """Let the law change its phase."""
        self._noted(self._law.switch, t, q, qd)

    def _noted(self, act: Callable[[float, Array, Array], None], t: float, q: Array, qd: Array) -> None:
        if not self._noting:
            return act(t, q, qd)
        before = self._plain()
        act(t, q, qd)
        for name, value in self._plain().items():
            if name not in _ELSEWHERE and not _same(before.get(name), value):
                self._first.setdefault(name, before.get(name))
                self._last[name] = value

    def _plain(self) -> dict[str, Any]:
        """Return copies of the numbers, arrays of numbers and texts of the laws that note, by name."""
        found: dict[str, Any] = {}
        for of, law in self._noting:
            for name, value in vars(law).items():
                if value.__class__ in _PLAIN:
                    found[of + name] = value
                elif isinstance(value, np.ndarray):
                    if value.dtype.kind in "biuf":
                        found[of + name] = value.copy()
                elif isinstance(value, np.generic):
                    found[of + name] = value
        return found

    def memory(self) -> dict[str, Any]:
        """Return what is noted now, by name."""
        if not self._first:
            return {}
        return {name: value for name, value in self._plain().items() if name in self._first}

    def recall(self, memory: Mapping[str, Any]) -> None:
        """Note what `memory` returned, or a file has of it; what was noted later only is as before."""
        if not memory and not self._first:
            return
        now = self._plain()
        for name in memory:
            self._first.setdefault(name, now.get(name))
        for name, first in self._first.items():
            self._set(name, memory.get(name, first))
        there = self._plain()
        self._last.update({name: there.get(name) for name in self._first})

    def _set(self, name: str, value: Any) -> None:
        *within, last = name.split(".")
        owner = functools.reduce(getattr, within, self._law)
        setattr(owner, last, np.array(value) if isinstance(value, (list, np.ndarray)) else value)


def _noting(law: Law, of: str = "", above: tuple[Law, ...] = ()) -> Iterator[tuple[str, Law]]:
    """Give a law and those within it, by the beginning of their attributes' names, that do anything as they begin."""
    kind = type(law)
    if kind.start is not Law.start or kind.switch is not Law.switch:
        yield of, law
    for name, value in vars(law).items():
        if isinstance(value, Law) and value is not law and value not in above:
            yield from _noting(value, f"{of}{name}.", (*above, law))


def _same(one: Any, other: Any) -> bool:
    return one is other or (type(one) is type(other) and np.array_equal(one, other))
