"""Numbers that a method reads of its object while Python or numba calls it: further arguments of the call.

What is called cannot be looked into, so its derivatives are differences. They reach what the object holds too, as its
gains.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

__all__ = ["HeldNumbers", "held_by", "is_real"]


class HeldNumbers:
    """Numbers and arrays that an object holds under some names.

    Parameters
    ----------
    names : sequence of str
    read : function of a name
        Returns what is held now.
    write : function of (name, value)
        Has the object hold something else.
    """

    def __init__(self, names: Sequence[str], read: Callable[[str], Any], write: Callable[[str, Any], object]) -> None:
        self.names, self._read, self._write = tuple(names), read, write

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
    """Return the numbers and arrays that an object has as public attributes."""
    names = [name for name, value in vars(owner).items() if not name.startswith("_") and is_real(value)]
    return HeldNumbers(names, lambda name: getattr(owner, name), lambda name, value: setattr(owner, name, value))


def is_real(value: Any) -> bool:
    """Tell whether something is a number or an array of real numbers."""
    array = isinstance(value, np.ndarray) and value.dtype == np.float64
    return array or (isinstance(value, (float, np.floating)) and bool(np.isfinite(value)))
