"""Immutable values: compared, hashed, copied and pickled by the content of their fields."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, TypeVar

import numpy as np
from numpy.typing import NDArray

from cstormpy.arguments import argument_slip, option
from cstormpy.errors import CstormError

V = TypeVar("V", bound="Value")
S = TypeVar("S", bound=np.generic)


class FrozenError(CstormError, AttributeError):
    """An attempt to change something immutable."""


def frozen(array: NDArray[S]) -> NDArray[S]:
    """Return a contiguous copy that cannot be made writable again, because it lies in a `bytes` object.

    Negative zeros become zeros, so that equal arrays have equal bytes.

    >>> frozen(np.array([1.0, -0.0])).flags.writeable
    False
    """
    clean = array + np.zeros((), array.dtype)
    return np.frombuffer(clean.tobytes(), dtype=array.dtype).reshape(array.shape)


class ArgumentNames(type):
    """The class of classes that say which argument they lack or do not take, and the nearest that they do."""

    if not TYPE_CHECKING:  # which reads the constructor itself

        @property
        def __signature__(cls):
            """The signature of the constructor, which `help` would look for in the method below."""
            own = inspect.signature(cls.__init__)
            return own.replace(parameters=[*own.parameters.values()][1:])

        def __call__(cls, *args, **kwargs):
            """Return what the constructor makes."""
            try:
                return super().__call__(*args, **kwargs)
            except TypeError:
                slip = cls._slip(args, kwargs)
                if slip is None:
                    raise
                raise slip from None

    def _slip(cls, args: tuple[Any, ...], kwargs: dict[str, Any]) -> CstormError | None:
        """Return what is wrong with the names or the number of some arguments."""
        made: Any = cls.__init__  # type: ignore[misc]
        return argument_slip(cls.__name__, made, args, kwargs, getattr(cls, "_fields", kwargs))


class Value(metaclass=ArgumentNames):
    """Base of immutable classes whose `_fields` are both attributes and arguments of the constructor."""

    _fields: ClassVar[tuple[str, ...]] = ()

    def _set(self, **attributes: Any) -> None:
        self.__dict__.update(attributes)

    def _derive(self: V, **attributes: Any) -> V:
        """Return a copy with some attributes changed, which the caller has validated."""
        derived = object.__new__(type(self))
        derived.__dict__.update({**self.__dict__, **attributes})
        return derived

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise FrozenError(f"{type(self).__name__} is immutable, {name!r} cannot be set; derive a new one instead")

    def __delattr__(self, name: str) -> NoReturn:
        raise FrozenError(f"{type(self).__name__} is immutable, {name!r} cannot be deleted")

    def _as_dict(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self._fields}

    def _key(self) -> tuple[Any, ...]:
        """Return the content as a hashable tuple."""
        values = (getattr(self, name) for name in self._fields)
        return tuple(v.tobytes() if isinstance(v, np.ndarray) else v for v in values)

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if type(self) is not type(other):
            return NotImplemented
        assert isinstance(other, Value)
        return self._key() == other._key()

    def __hash__(self) -> int:
        return hash((type(self), self._key()))

    def replace(self: V, **changes: Any) -> V:
        """Return a copy with some fields changed; everything is validated again.

        Parameters
        ----------
        **changes
            New values of fields, by the names of the constructor's arguments.

        Raises
        ------
        UnknownName
            If there is no such field.
        """
        for name in changes:
            option(name, f"{type(self).__name__} parameter", self._fields)
        return type(self)(**{**self._as_dict(), **changes})

    def __copy__(self: V) -> V:
        return self

    def __deepcopy__(self: V, memo: object) -> V:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        # Through the constructor: an unpickled array would be writable, and a foreign pickle unchecked.
        return _rebuild, (type(self), self._as_dict())


def _rebuild(cls: type[V], fields: dict[str, Any]) -> V:
    return cls(**fields)


def numbers_text(values: Any, digits: int = 6) -> str:
    """Return numbers as text.

    >>> numbers_text([0.5, -0.0, 1 / 3], 2)
    '(0.5, 0, 0.33)'
    """
    return "(" + ", ".join(f"{v:.{digits}g}" for v in np.asarray(values) + 0.0) + ")"
