"""The explicit Runge-Kutta methods: their coefficients and orders.

The adaptive ones are those of scipy's `solve_ivp`, so that both take the same steps: RK45 (Dormand and Prince 1980,
with the dense output of Shampine 1986), RK23 (Bogacki and Shampine 1989) and DOP853 (Hairer, Norsett and Wanner 1993).
E holds the weights of the error estimate, b - b̂, over all stages and the derivative at the end of the step.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from cstormpy.errors import unknown_name

__all__ = ["EXPLICIT", "Tableau", "tableau"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Tableau:
    """An explicit Runge-Kutta method.

    Attributes
    ----------
    A, b, c
        Weights of the stages (s, s), of the result (s,), and times (s,).
    E
        Weights of the error estimate (s + 1,), None for a method of fixed steps.
    E3
        A second estimate, for DOP853 only.
    P
        Coefficients of the dense output (s + 1, k), None where a cubic through both ends serves.
    order
        Of the result.
    error_order
        Of the error estimate.
    """

    name: str
    A: Array
    b: Array
    c: Array
    order: int
    E: Array | None = None
    E3: Array | None = None
    P: Array | None = None
    error_order: int = 0
    extra: dict[str, Array] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuse coefficients that are no method: the rows of A sum to c, the weights to one."""
        sums = self.A.sum(axis=1)
        if not (np.allclose(sums, self.c, atol=1e-12) and np.isclose(self.b.sum(), 1.0)):
            raise AssertionError(f"the tableau of {self.name} is not consistent")

    @property
    def stages(self) -> int:
        """How many derivatives one step takes, that at its end not counted."""
        return len(self.b)

    @property
    def adaptive(self) -> bool:
        """Whether it estimates its error."""
        return self.E is not None


_DORMAND_PRINCE = Tableau(
    "RK45",
    np.array(
        [
            [0, 0, 0, 0, 0],
            [1 / 5, 0, 0, 0, 0],
            [3 / 40, 9 / 40, 0, 0, 0],
            [44 / 45, -56 / 15, 32 / 9, 0, 0],
            [19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729, 0],
            [9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656],
        ]
    ),
    np.array([35 / 384, 0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84]),
    np.array([0, 1 / 5, 3 / 10, 4 / 5, 8 / 9, 1]),
    5,
    np.array([-71 / 57600, 0, 71 / 16695, -71 / 1920, 17253 / 339200, -22 / 525, 1 / 40]),
    None,
    np.array(
        [
            [1, -8048581381 / 2820520608, 8663915743 / 2820520608, -12715105075 / 11282082432],
            [0, 0, 0, 0],
            [0, 131558114200 / 32700410799, -68118460800 / 10900136933, 87487479700 / 32700410799],
            [0, -1754552775 / 470086768, 14199869525 / 1410260304, -10690763975 / 1880347072],
            [0, 127303824393 / 49829197408, -318862633887 / 49829197408, 701980252875 / 199316789632],
            [0, -282668133 / 205662961, 2019193451 / 616988883, -1453857185 / 822651844],
            [0, 40617522 / 29380423, -110615467 / 29380423, 69997945 / 29380423],
        ]
    ),
    4,
)
_BOGACKI_SHAMPINE = Tableau(
    "RK23",
    np.array([[0, 0, 0], [1 / 2, 0, 0], [0, 3 / 4, 0]]),
    np.array([2 / 9, 1 / 3, 4 / 9]),
    np.array([0, 1 / 2, 3 / 4]),
    3,
    np.array([5 / 72, -1 / 12, -1 / 9, 1 / 8]),
    None,
    np.array([[1, -4 / 3, 5 / 9], [0, 1, -2 / 3], [0, 4 / 3, -8 / 9], [0, -1, 1]]),
    2,
)
_CLASSIC = np.array([[0, 0, 0, 0], [0.5, 0, 0, 0], [0, 0.5, 0, 0], [0, 0, 1, 0]])
_RK4 = Tableau("RK4", _CLASSIC, np.array([1, 2, 2, 1]) / 6, np.array([0, 0.5, 0.5, 1]), 4)
_EULER = Tableau("Euler", np.zeros((1, 1)), np.ones(1), np.zeros(1), 1)


@functools.cache
def _dop853() -> Tableau:
    """Return the method of order 8, whose some two hundred coefficients are scipy's."""
    from scipy.integrate import DOP853

    s = DOP853.n_stages
    extra = {"A": DOP853.A_EXTRA, "c": DOP853.C_EXTRA, "D": DOP853.D}
    A, b, c, order = DOP853.A[:s, :s], DOP853.B, DOP853.C[:s], DOP853.error_estimator_order
    return Tableau("DOP853", A, b, c, 8, DOP853.E5, DOP853.E3, None, order, extra)


class _Explicit(Mapping[str, Tableau]):
    """Methods by their names, of which one is made when it is asked for."""

    _known: ClassVar[dict[str, Callable[[], Tableau]]] = {
        "RK45": lambda: _DORMAND_PRINCE,
        "RK23": lambda: _BOGACKI_SHAMPINE,
        "DOP853": _dop853,
        "RK4": lambda: _RK4,
        "Euler": lambda: _EULER,
    }

    def __getitem__(self, name: str) -> Tableau:
        return self._known[name]()

    def __contains__(self, name: object) -> bool:
        return name in self._known

    def __iter__(self) -> Iterator[str]:
        return iter(self._known)

    def __len__(self) -> int:
        return len(self._known)


#: The explicit methods by name.
EXPLICIT = _Explicit()


def tableau(name: str) -> Tableau:
    """Return an explicit method by its name."""
    if name not in EXPLICIT:
        raise unknown_name("solver", name, EXPLICIT)
    return EXPLICIT[name]
