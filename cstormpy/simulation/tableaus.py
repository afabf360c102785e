"""The explicit Runge-Kutta methods: their coefficients and orders.

The adaptive ones are those of scipy's `solve_ivp`, so that both take the same steps; their coefficients are read from
scipy's public classes. E holds the weights of the error estimate, b - b̂, over all stages and the derivative at the end
of the step.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.integrate import DOP853, RK23, RK45

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


def _of_scipy(name: str, method: Any) -> Tableau:
    s = method.n_stages
    if name == "DOP853":
        extra = {"A": method.A_EXTRA, "c": method.C_EXTRA, "D": method.D}
        return Tableau(
            name,
            method.A[:s, :s],
            method.B,
            method.C[:s],
            8,
            method.E5,
            method.E3,
            None,
            method.error_estimator_order,
            extra,
        )
    return Tableau(
        name,
        method.A[:s, :s],
        method.B,
        method.C[:s],
        method.order,
        method.E,
        None,
        method.P,
        method.error_estimator_order,
    )


_CLASSIC = np.array([[0, 0, 0, 0], [0.5, 0, 0, 0], [0, 0.5, 0, 0], [0, 0, 1, 0]])

#: The explicit methods by name.
EXPLICIT = {
    "RK45": _of_scipy("RK45", RK45),
    "RK23": _of_scipy("RK23", RK23),
    "DOP853": _of_scipy("DOP853", DOP853),
    "RK4": Tableau("RK4", _CLASSIC, np.array([1, 2, 2, 1]) / 6, np.array([0, 0.5, 0.5, 1]), 4),
    "Euler": Tableau("Euler", np.zeros((1, 1)), np.ones(1), np.zeros(1), 1),
}


def tableau(name: str) -> Tableau:
    """Return an explicit method by its name."""
    if name not in EXPLICIT:
        raise unknown_name("solver", name, EXPLICIT)
    return EXPLICIT[name]
