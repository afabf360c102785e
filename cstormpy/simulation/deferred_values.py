"""Mappings whose values may be functions that are asked where somebody reads them: of a result, what few look at."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any


class Deferred:
    """A value that is made when it is read for the first time.

    Parameters
    ----------
    make : callable
        make() -> value, of what is at hand and stays as it is: what it reads may be long after it was made.
    """

    __slots__ = ("make",)

    def __init__(self, make: Callable[[], Any]) -> None:
        self.make = make


class DeferredValues(dict[str, Any]):
    """A dict of which each `Deferred` value is made, and kept, as it is read.

    Examples
    --------
    >>> values = DeferredValues(t=1.0, units=Deferred(lambda: "s"))
    >>> sorted(values), values["units"], values.get("x"), dict(values)
    (['t', 'units'], 's', None, {'t': 1.0, 'units': 's'})
    """

    def __getitem__(self, key: str) -> Any:
        """Return a value, made where that has not been done."""
        value = super().__getitem__(key)
        if value.__class__ is Deferred:
            value = self[key] = value.make()
        return value

    def __iter__(self) -> Iterator[str]:
        """Return the keys; whoever copies the mapping asks for each value by its key."""
        return super().__iter__()

    def get(self, key: str, default: Any = None) -> Any:
        """Return a value, or the default where there is none."""
        return self[key] if key in self else default

    def pop(self, key: str, *default: Any) -> Any:
        """Take a value out."""
        if key in self:
            self[key]
        return super().pop(key, *default)

    def _made(self) -> None:
        for key in self:
            self[key]

    def items(self) -> Any:
        """Return all pairs of key and value."""
        self._made()
        return super().items()

    def values(self) -> Any:
        """Return all values."""
        self._made()
        return super().values()

    def copy(self) -> dict[str, Any]:
        """Return a dict of all values."""
        return dict(self.items())

    def __eq__(self, other: object) -> bool:
        """Compare all values."""
        self._made()
        return super().__eq__(other)

    __hash__ = None

    def __repr__(self) -> str:
        """Return it as a dict."""
        self._made()
        return super().__repr__()

    def __reduce__(self) -> tuple[Any, ...]:
        """Return what a file, another process or a copy gets: a dict of all values."""
        return dict, (self.copy(),)
