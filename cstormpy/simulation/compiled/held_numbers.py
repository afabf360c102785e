"""Numbers that a method reads of its object while Python or numba calls it: further arguments of the call.

What is called cannot be looked into, so its derivatives are differences. They reach what the object holds too, as its
gains.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

#: An array of more numbers is a table, which nobody tunes: as arguments of a call they would cost more than the call.
_MOST = 200


class HeldNumbers:
    """Numbers and arrays that an object holds under some names.

    Parameters
    ----------
    names : sequence of str
        Or what else `read` and `write` take.
    read : function of a name
        Returns what is held now.
    write : function of (name, value)
        Has the object hold something else.
    """

    def __init__(self, names: Sequence[Any], read: Callable[[Any], Any], write: Callable[[Any, Any], object]) -> None:
        self.names, self._read, self._write = tuple(names), read, write

    @classmethod
    def none(cls) -> HeldNumbers:
        """Return no numbers at all."""
        return cls((), lambda name: None, lambda name, value: None)

    def readers(self) -> list[Callable[[], Any]]:
        """Return functions without arguments that return what is held now, one for each name."""
        return [lambda name=name: self._read(name) for name in self.names]  # type: ignore[misc]

    @contextlib.contextmanager
    def moved(self, values: Sequence[Any]) -> Iterator[None]:
        """Have the object hold other numbers for a while."""
        before = [(name, self._read(name)) for name in self.names]
        changed = [(name, old, new) for (name, old), new in zip(before, values, strict=True) if np.any(old != new)]
        try:
            for name, _, new in changed:
                self._write(name, new)
            yield
        finally:
            for name, old, _ in changed:
                self._write(name, old)


def held_by(owner: Any) -> HeldNumbers:
    """Return the numbers, and arrays of some, that an object has as public attributes."""
    held = {name: value for name, value in vars(owner).items() if not name.startswith("_") and is_real(value)}
    names = [name for name, value in held.items() if np.size(value) <= _MOST]
    return HeldNumbers(names, lambda name: getattr(owner, name), lambda name, value: setattr(owner, name, value))


def is_real(value: Any) -> bool:
    """Tell whether something is a number or an array of real numbers."""
    array = type(value) is np.ndarray and value.dtype == np.float64
    return array or (isinstance(value, (float, np.floating)) and bool(np.isfinite(value)))
