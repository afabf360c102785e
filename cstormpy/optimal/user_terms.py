"""Terms and constraints of the user's own, from functions of the samples of a motion."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from cstormpy.arguments import takes
from cstormpy.arrays import as_floats
from cstormpy.errors import InvalidType, InvalidValue, shown
from cstormpy.optimal.constraints import AtLike, PathConstraint
from cstormpy.optimal.differences import differenced, read_parts, read_values
from cstormpy.optimal.samples import TIMES, Array, Parts, Samples
from cstormpy.optimal.terms import Term

Function = Callable[[Samples], ArrayLike]
Gradient = Callable[[Samples], Mapping[str, ArrayLike]]


class Running(Term):
    """∫ f dt of a function of one's own.

    Parameters
    ----------
    function : callable
        function(samples) -> (N,) from the `Samples` with t (N,), q, qd, qdd, tau (N, n). It must treat each sample for
        itself.
    gradient : callable, optional
        gradient(samples) -> {"q": (N, n), …} with the channels that the function touches, "t": (N,) and "duration":
        (N,) among them. Without it the function is differenced. It is compared with differences where a search ends;
        `Problem.check_gradients` does so at any time.
    name : str, optional

    Examples
    --------
    >>> term = Running(lambda at: at.q[:, 0] ** 2, gradient=lambda at: {"q": 2 * at.q * [1, 0]})
    >>> 3 * term
    3 Running()
    """

    def __init__(self, function: Function, gradient: Gradient | None = None, name: str = "") -> None:
        super().__init__()
        _callable(function, "function")
        if gradient is not None:
            _callable(gradient, "gradient")
        self.function, self.gradient, self.name = function, gradient, name

    def values(self, at: Samples) -> Array:
        """Return the function at N samples, (N,)."""
        return read_values(self.function(at), (len(at),), f"{self.label()}: the function's answer")

    def derivatives(self, at: Samples) -> Parts:
        """Return the derivatives by channel."""
        if self.gradient is None:
            return differenced(self.values, at)
        return read_parts(self.gradient(at), at, (len(at),), f"{self.label()}: the gradient")

    def label(self) -> str:
        """Return what messages call the term: with its name, if it has one."""
        return f"{type(self).__name__}({self.name!r})" if self.name else f"{type(self).__name__}()"


class AtEnd(Running):
    """A function of one's own of the end of the motion; the parameters are those of `Running`, with N = 1."""

    kind = "end"


class Constraint(PathConstraint):
    """lower <= c <= upper for functions c of one's own.

    Parameters
    ----------
    function : callable
        function(samples) -> (N,) or (N, k), as for `Running`.
    lower, upper : float or array_like, (k,)
        Bounds; equal ones make equations. −∞ and ∞ unless given.
    gradient : callable, optional
        gradient(samples) -> {"q": (N, k, n) or (N, n), …}.
    at : {"all", "start", "end", "breaks"} or sequence of floats
        Where it holds: at all samples, at an end, at the knots, or at phases from 0 to 1.
    name : str

    Examples
    --------
    >>> Constraint(lambda at: at.q.sum(axis=1), upper=1.0, name="sum of angles")
    Constraint('sum of angles', at='all')
    """

    def __init__(
        self,
        function: Function,
        lower: ArrayLike = -np.inf,
        upper: ArrayLike = np.inf,
        gradient: Gradient | None = None,
        at: AtLike = "all",
        name: str = "own",
    ) -> None:
        super().__init__(lower, upper, at, name)
        _callable(function, "function")
        if gradient is not None:
            _callable(gradient, "gradient")
        self.function, self.gradient = function, gradient

    def values(self, at: Samples) -> Array:
        """Return c, (N, k)."""
        what = f"constraint {self.name!r}: the function's answer"
        answer = as_floats(self.function(at), what)
        return read_values(answer[:, None] if answer.ndim == 1 else answer, (len(at), None), what)

    def derivatives(self, at: Samples) -> Parts:
        """Return the derivatives by channel, (N, k, n)."""
        if self.gradient is None:
            return differenced(self.values, at)
        given: Any = self.gradient(at)
        if not isinstance(given, Mapping):
            raise InvalidType(f"constraint {self.name!r}: the gradient: expected a mapping from channels to arrays")
        k = self.values(at).shape[1]
        if k == 1:  # one function: its axis may be left out
            full = {c: 1 if c in TIMES else 2 for c in given}
            read = {c: as_floats(v, f"constraint {self.name!r}: the gradient, {c!r}") for c, v in given.items()}
            given = {c: v[:, None] if v.ndim == full[c] else v for c, v in read.items()}
        return read_parts(given, at, (len(at), k), f"constraint {self.name!r}: the gradient")


def _callable(value: Any, what: str) -> None:
    if not callable(value):
        raise InvalidType(f"{what}: expected a function of the samples, got {shown(value)}")
    if isinstance(value, type):
        raise InvalidValue(f"{what}: expected a function of the samples, got {shown(value)}")
    if not takes(value, ("samples",)):
        raise InvalidType(f"{what}: is called as {what}(samples), of which q, qd, tau, t are arrays; let it take these")
