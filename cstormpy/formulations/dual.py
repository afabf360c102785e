"""Dual numbers: a + b ε with ε² = 0, which differentiate exactly whatever is computed with them.

f(a + b ε) = f(a) + f'(a) b ε, so that the second part of a result is a derivative, without truncation and without
subtraction. The parts are numbers or arrays of any type that adds and multiplies, dual numbers among them: then each
layer has an ε of its own, and the part of ε₁ ε₂ is a second derivative.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np


class Dual:
    """a + b ε, whose parts may be numbers, arrays, or dual numbers of another ε.

    Examples
    --------
    >>> x = Dual(3.0, 1.0)
    >>> (x * x + 1).b  # d(x² + 1)/dx
    6.0
    >>> y = Dual(Dual(3.0, 1.0), Dual(1.0, 0.0))
    >>> (y * y * y).b.b  # d²x³/dx²
    18.0
    """

    __slots__ = ("a", "b")

    def __init__(self, a: Any, b: Any) -> None:
        self.a = a
        self.b = b

    def __repr__(self) -> str:
        return f"Dual({self.a!r}, {self.b!r})"

    def __add__(self, other: Any) -> Dual:
        if isinstance(other, Dual):
            return Dual(self.a + other.a, self.b + other.b)
        return Dual(self.a + other, self.b)

    __radd__ = __add__

    def __neg__(self) -> Dual:
        return Dual(-self.a, -self.b)

    def __sub__(self, other: Any) -> Dual:
        return self + -other

    def __rsub__(self, other: Any) -> Dual:
        return -self + other

    def __mul__(self, other: Any) -> Dual:
        if isinstance(other, Dual):
            return Dual(self.a * other.a, self.a * other.b + self.b * other.a)
        return Dual(self.a * other, self.b * other)

    __rmul__ = __mul__

    def __matmul__(self, other: Any) -> Dual:
        if isinstance(other, Dual):
            return Dual(self.a @ other.a, self.a @ other.b + self.b @ other.a)
        return Dual(self.a @ other, self.b @ other)

    def __rmatmul__(self, other: Any) -> Dual:
        return Dual(other @ self.a, other @ self.b)

    def sum(self) -> Dual:
        """Return the sum of all entries of arrays."""
        return Dual(self.a.sum(), self.b.sum())

    def trace(self) -> Dual:
        """Return the trace of matrices."""
        return Dual(self.a.trace(), self.b.trace())

    # What NumPy asks of an operand that is no array: an array on the left of an operator, and functions.
    _reflected: ClassVar[dict[Callable[..., Any], str]] = {
        np.add: "__radd__",
        np.subtract: "__rsub__",
        np.multiply: "__rmul__",
        np.matmul: "__rmatmul__",
    }

    def __array_ufunc__(self, function: Any, method: str, *operands: Any, **options: Any) -> Any:
        if function is np.sin:
            return Dual(np.sin(self.a), np.cos(self.a) * self.b)
        if function is np.cos:
            return Dual(np.cos(self.a), -np.sin(self.a) * self.b)
        if function in self._reflected and method == "__call__" and not options:
            return getattr(self, self._reflected[function])(operands[0])
        return NotImplemented
