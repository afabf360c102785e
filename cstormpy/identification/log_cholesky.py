"""Log-Cholesky coordinates of inertial numbers: all that a body can have, and nothing else.

With the pseudo-inertia Σ = L Lᵀ of a body (see `consistency`), every other possible one is

    Σ' = L N Nᵀ Lᵀ,      N lower triangular with the diagonal exp δ

for ten numbers δ, the diagonal and what is below it (C. Rucker, P. Wensing, Smooth parameterization of rigid-body
inertia, IEEE Robotics and Automation Letters 7(2), 2022, 2771-2778): a search in δ needs no bounds.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from cstormpy.arrays import Array
from cstormpy.identification.consistency import inside, is_possible, numbers_of, pseudo_inertia
from cstormpy.linkage.components import PAIRS

_ROWS, _COLUMNS = np.tril_indices(4)
_UPPER = np.triu_indices(3)


def _spread(c: Array) -> Array:
    return np.asarray(c @ c * np.eye(3) - np.outer(c, c))


def _numbers(own: Array) -> Array:
    """Return the ten inertial numbers about the origin, from mass, centre and inertia about that."""
    m, c = own[0], own[1:4]
    return np.array([m, *(m * c), *(own[4:] + m * _spread(c)[_UPPER])])


def _own(numbers: Array) -> Array:
    """Return mass, centre of mass and the inertia about that, from ten inertial numbers."""
    m, c = numbers[0], numbers[1:4] / numbers[0]
    return np.array([m, *c, *(numbers[4:] - m * _spread(c)[_UPPER])])


def _own_rate(own: Array, d: Array) -> Array:
    """Return how these change with the ten numbers."""
    m, c = own[0], own[1:4]
    dc = (d[1:4] - c * d[0]) / m
    turned = 2.0 * (c @ dc) * np.eye(3) - np.outer(dc, c) - np.outer(c, dc)
    return np.array([d[0], *dc, *(d[4:] - (d[0] * _spread(c) + m * turned)[_UPPER])])


class Bodies:
    """The links of which mass, centre of mass and inertia are all among some numbers.

    Parameters
    ----------
    names : sequence of str
        Of the components, as "forearm.com[0]".
    """

    def __init__(self, names: Sequence[str]) -> None:
        place = {name: k for k, name in enumerate(names)}
        fields = ("mass", *(f"com[{k}]" for k in range(3)), *(f"inertia.{pair}" for pair in PAIRS))
        links = [name.removesuffix(".mass") for name in names if name.endswith(".mass")]
        wanted = ([f"{link}.{field}" for field in fields] for link in links)
        self.places = [np.array([place[name] for name in of]) for of in wanted if all(name in place for name in of)]

    @property
    def all(self) -> NDArray[np.intp]:
        """The places of all of their numbers."""
        return np.concatenate([np.zeros(0, dtype=np.intp), *self.places])

    def possible(self, values: Array) -> bool:
        """Tell whether bodies can have these values."""
        return all(values[at[0]] > 0.0 and is_possible(_numbers(values[at])) for at in self.places)

    def inside(self, values: Array) -> Array:
        """Return values near to these from which a search can go: of no rods or points without extent."""
        made = values.copy()
        for at in self.places:
            numbers = _numbers(values[at])
            made[at] = _own(inside(numbers, numbers))
        return made

    def rates(self, values: Array) -> Array:
        """Return the derivatives (P, P) of the values to the coordinates; other numbers are their own."""
        made = np.eye(len(values))
        for at in self.places:
            own = values[at]
            L = np.linalg.cholesky(pseudo_inertia(_numbers(own)))
            for k, (i, j) in enumerate(zip(_ROWS, _COLUMNS, strict=True)):
                half = np.outer(L[:, i], L[:, j])
                made[at, at[k]] = _own_rate(own, numbers_of(half + half.T))
        return made

    def moved(self, values: Array, change: Array) -> Array:
        """Return the values after a change of the coordinates."""
        made = values + change
        for at in self.places:
            N = np.zeros((4, 4))
            N[_ROWS, _COLUMNS] = change[at]
            np.fill_diagonal(N, np.exp(np.diag(N)))
            L = np.linalg.cholesky(pseudo_inertia(_numbers(values[at]))) @ N
            made[at] = _own(numbers_of(L @ L.T))
        return made
