"""Counting numbers: run an algorithm on them, and read off how many multiplications and additions it took.

A `Count` is a float that tells its `Tally` of each operation that it takes part in. What depends on the state of the
mechanism is a `Count`; what is a constant of the mechanism is an ordinary number, and operations between constants are
not counted, since they would be done once, when the mechanism is read. A change of sign is free.

A constant that is 0, 1 or -1 is *structural*: it stands there for every mechanism of that build (zeros in a cross
product's matrix, the last row of a 4 x 4 matrix, an axis along z). `Tally(fold=False)` counts operations with them, as
a program with loops does them; `Tally(fold=True)` does not, as a program written out by hand leaves them away.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from cstormpy.formulations.arguments import Array


class Tally:
    """Numbers of operations so far.

    Attributes
    ----------
    multiplications, additions, divisions : int
        Subtractions count as additions.
    functions : int
        Sines, cosines and whatever else is no arithmetic.

    Examples
    --------
    >>> tally = Tally()
    >>> x, y = tally.numbers([3.0, 4.0])
    >>> float(x * x + y * y), tally.multiplications, tally.additions
    (25.0, 2, 1)
    >>> (0.0 * x + 1.0 * y) is y, tally.multiplications
    (True, 2)
    """

    def __init__(self, fold: bool = True) -> None:
        self.fold = fold
        self.multiplications = self.additions = self.divisions = self.functions = 0

    def numbers(self, values: ArrayLike) -> Array:
        """Return an array of counting numbers of these values."""
        floats = np.asarray(values, dtype=np.float64)
        out = np.empty(floats.shape, dtype=object)
        for place, value in np.ndenumerate(floats):
            out[place] = Count(float(value), self)
        return out


class Count:
    """A float that tells its tally of each operation."""

    __slots__ = ("tally", "value")

    def __init__(self, value: float, tally: Tally) -> None:
        self.value = value
        self.tally = tally

    def __repr__(self) -> str:
        return f"Count({self.value!r})"

    def __float__(self) -> float:
        return self.value

    def __bool__(self) -> bool:
        return self.value != 0

    def __eq__(self, other: object) -> Any:
        return self.value == (other.value if isinstance(other, Count) else other)

    def __hash__(self) -> int:
        return hash(self.value)

    def __lt__(self, other: Any) -> Any:
        return self.value < (other.value if isinstance(other, Count) else other)

    def __gt__(self, other: Any) -> Any:
        return self.value > (other.value if isinstance(other, Count) else other)

    def __neg__(self) -> Count:
        return Count(-self.value, self.tally)

    def __pos__(self) -> Count:
        return self

    def __add__(self, other: Any) -> Any:
        if isinstance(other, Count):
            other = other.value
        elif isinstance(other, np.ndarray):
            return NotImplemented  # NumPy goes through its entries
        elif other == 0 and self.tally.fold:
            return self
        else:
            other = float(other)
        self.tally.additions += 1
        return Count(self.value + other, self.tally)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        if isinstance(other, Count):
            other = other.value
        elif isinstance(other, np.ndarray):
            return NotImplemented  # NumPy goes through its entries
        elif other == 0 and self.tally.fold:
            return self
        else:
            other = float(other)
        self.tally.additions += 1
        return Count(self.value - other, self.tally)

    def __rsub__(self, other: Any) -> Any:
        if other == 0 and self.tally.fold:
            return -self
        self.tally.additions += 1
        return Count(float(other) - self.value, self.tally)

    def __mul__(self, other: Any) -> Any:
        if isinstance(other, Count):
            other = other.value
        elif isinstance(other, np.ndarray):
            return NotImplemented  # NumPy goes through its entries
        elif self.tally.fold and other in (0, 1, -1):
            return 0.0 if other == 0 else self if other == 1 else -self
        else:
            other = float(other)
        self.tally.multiplications += 1
        return Count(self.value * other, self.tally)

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Any:
        if isinstance(other, Count):
            other = other.value
        elif isinstance(other, np.ndarray):
            return NotImplemented  # NumPy goes through its entries
        elif self.tally.fold and other in (1, -1):
            return self if other == 1 else -self
        else:
            other = float(other)
        self.tally.divisions += 1
        return Count(self.value / other, self.tally)

    def __rtruediv__(self, other: Any) -> Any:
        if other == 0 and self.tally.fold:
            return 0.0
        self.tally.divisions += 1
        return Count(float(other) / self.value, self.tally)

    def __pow__(self, power: int) -> Any:
        """Return a whole power, by multiplications."""
        out: Any = self
        for _ in range(power - 1):
            out = out * self
        return out if power else 1.0

    # NumPy asks arrays of objects for functions by these names.
    def sin(self) -> Count:
        """Return the sine."""
        return self._function(math.sin)

    def cos(self) -> Count:
        """Return the cosine."""
        return self._function(math.cos)

    def tanh(self) -> Count:
        """Return the hyperbolic tangent."""
        return self._function(math.tanh)

    def sqrt(self) -> Count:
        """Return the square root."""
        return self._function(math.sqrt)

    def conjugate(self) -> Count:
        """Return the number itself: it is real."""
        return self

    def _function(self, f: Callable[[float], float]) -> Count:
        self.tally.functions += 1
        return Count(f(self.value), self.tally)


numbers.Real.register(Count)


def counted(function: Callable[..., Any], *arguments: Any, fold: bool = True, **rest: Any) -> tuple[Any, Tally]:
    """Run a function with counting numbers for its arrays; return its result in floats, and the tally.

    Parameters
    ----------
    function : callable
        Arguments that are arrays of floats become counting numbers; others (a mechanism) stay as they are.
    fold : bool
        Leave out operations with structural zeros and ones.

    Examples
    --------
    >>> result, tally = counted(lambda x: x @ x, np.array([1.0, 2.0, 2.0]))
    >>> float(result), tally.multiplications, tally.additions
    (9.0, 3, 2)
    """
    tally = Tally(fold)
    given = [tally.numbers(a) if isinstance(a, np.ndarray) else a for a in arguments]
    named = {name: tally.numbers(a) if isinstance(a, np.ndarray) else a for name, a in rest.items()}
    return _floats(function(*given, **named)), tally


def _floats(result: Any) -> Any:
    if isinstance(result, tuple):
        return tuple(_floats(part) for part in result)
    return np.asarray(result).astype(np.float64)
