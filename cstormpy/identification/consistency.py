"""Physical consistency: inertial numbers that a body can have, and the nearest fit among them.

A body can have ten inertial numbers if its pseudo-inertia

    Σ = [[½ tr(I) 1 − I, h], [hᵀ, m]]

is positive definite (P. Wensing, S. Kim, J.-J. Slotine, Linear matrix inequalities for physically consistent inertial
parameter identification, IEEE Robotics and Automation Letters 3(1), 2018, 60-67). It is linear in the numbers, so that
the least squares with it are convex: a barrier −μ log det Σ keeps inside, and μ goes to zero.

Log-Cholesky coordinates of inertial numbers: all that a body can have, and nothing else.

With the pseudo-inertia Σ = L Lᵀ of a body (see `consistency`), every other possible one is

    Σ' = L N Nᵀ Lᵀ,      N lower triangular with the diagonal exp δ

for ten numbers δ, the diagonal and what is below it (C. Rucker, P. Wensing, Smooth parameterization of rigid-body
inertia, IEEE Robotics and Automation Letters 7(2), 2022, 2771-2778): a search in δ needs no bounds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cstormpy.arrays import Array
from cstormpy.errors import InvalidValue
from cstormpy.linkage.components import PAIRS

#: An eigenvalue of the pseudo-inertia above minus this part of the greatest is taken for zero.
ROUNDING = 1e-9
#: Eigenvalues that the search begins with are at least this part of the greatest.
START = 1e-3
#: How much what the data do not tell is held at what was given, beside what they tell.
HOLD = 1e-3
#: The barrier in units of χ², at first at least and in the end, and by what it shrinks.
BARRIER, LEAST_BARRIER, SHRINK = 1e2, 1e-6, 0.1
#: Most Newton steps for a barrier, and most halvings of one.
STEPS, HALVINGS = 50, 60
#: A Newton step that promises less than this part of the barrier is the last.
SMALL = 1e-4


def pseudo_inertia(numbers: Array) -> Array:
    """Return the pseudo-inertia (4, 4) of ten inertial numbers.

    >>> pseudo_inertia(np.array([1.0, 0, 0, 0, 2.0, 0, 0, 2.0, 0, 2.0])).diagonal().tolist()
    [1.0, 1.0, 1.0, 1.0]
    """
    upper = np.zeros((3, 3))
    upper[np.triu_indices(3)] = numbers[4:]
    inertia = upper + upper.T - np.diag(np.diag(upper))
    made = np.empty((4, 4))
    made[:3, :3] = 0.5 * np.trace(inertia) * np.eye(3) - inertia
    made[:3, 3] = made[3, :3] = numbers[1:4]
    made[3, 3] = numbers[0]
    return made


def is_possible(numbers: Array) -> bool:
    """Tell whether a body can have ten inertial numbers, thin rods and point masses included."""
    values = np.linalg.eigvalsh(pseudo_inertia(numbers))
    return bool(values[0] >= -ROUNDING * max(values[-1], 0.0)) and bool(numbers[0] >= 0.0)


def numbers_of(sigma: Array) -> Array:
    """Return the ten inertial numbers of a pseudo-inertia (4, 4).

    >>> numbers_of(np.eye(4)).tolist()
    [1.0, 0.0, 0.0, 0.0, 2.0, 0.0, 0.0, 2.0, 0.0, 2.0]
    """
    about = np.trace(sigma[:3, :3]) * np.eye(3) - sigma[:3, :3]
    return np.array([sigma[3, 3], *sigma[:3, 3], *about[np.triu_indices(3)]])


#: A ball, in parts of ordinary inertial numbers.
BALL = np.array([1.0, 0, 0, 0, 0.02, 0, 0, 0.02, 0, 0.02])


def inside(numbers: Array, spare: Array, face: Array | None = None) -> Array:
    """Return ten numbers of a possible body near to some, or to spare ones where these are of no use.

    Its pseudo-inertia acts in the directions (4, r) of `face` alone, in all unless given.
    """
    face = np.eye(4) if face is None else face
    for candidate in (numbers, spare, BALL):
        values, vectors = np.linalg.eigh(face.T @ pseudo_inertia(candidate) @ face)
        if values[-1] > 0.0 and candidate[0] > 0.0:
            break
    vectors = face @ vectors
    sigma = vectors @ np.diag(np.maximum(values, START * values[-1])) @ vectors.T
    return numbers_of(sigma)


@dataclass(frozen=True)
class Body:
    """Inertial numbers of a link as they follow from unknowns: `fixed` + `weights` π[`at`], in parts of their sizes.

    Attributes
    ----------
    link : str
    at : ndarray, (k,)
        Which unknowns they depend on.
    weights : ndarray, (10, k)
    fixed : ndarray, (10,)
    """

    link: str
    at: Array
    weights: Array
    fixed: Array

    @classmethod
    def whole(cls, link: str, at: slice) -> Body:
        """Return that of a link of which all ten numbers are unknown, and stand there."""
        return cls(link, np.arange(at.start, at.stop), np.eye(10), np.zeros(10))

    def numbers(self, pi: Array) -> Array:
        """Return the ten inertial numbers."""
        return self.fixed + self.weights @ pi[self.at]

    @cached_property
    def face(self) -> Array:
        """Directions (4, r), orthonormal, in which the pseudo-inertia is not zero whatever the unknowns are.

        All four of most links; of a thin rod or a point mass, of which single numbers are unknown, fewer: no numbers
        make these definite in the others.
        """
        parts = [part / max(float(np.linalg.norm(part)), 1e-300) for part in map(pseudo_inertia, self.weights.T)]
        # what is fixed may be the rounding of a difference: it counts beside the unknowns, not by itself
        fixed = pseudo_inertia(self.fixed)
        parts.append(fixed / max(float(np.linalg.norm(fixed)), float(np.linalg.norm(self.weights)), 1e-300))
        _, values, rows = np.linalg.svd(np.vstack(parts))
        return np.asarray(rows[values > ROUNDING * values[0]].T)

    def reduced(self, pi: Array) -> Array:
        """Return the pseudo-inertia (r, r) in the directions of `face`."""
        return np.asarray(self.face.T @ pseudo_inertia(self.numbers(pi)) @ self.face)

    def inside(self, pi: Array, given: Array) -> Array:
        """Return unknowns (k,) of a possible body, near to some or to those that were given.

        Raises
        ------
        InvalidValue
            Where the numbers that are not unknown leave none.
        """
        spare = self.numbers(given)
        for begin in (self.numbers(pi), spare):
            wanted = inside(begin, spare, self.face)
            found = np.asarray(np.linalg.lstsq(self.weights, wanted - self.fixed, rcond=None)[0], dtype=float)
            there = pi.copy()
            there[self.at] = found
            values = np.linalg.eigvalsh(self.reduced(there))
            if values[0] > ROUNDING * values[-1]:
                return found
        raise InvalidValue(
            f"link {self.link!r}: the plain solution is impossible, and beside its other numbers no body has any; "
            f"name the link, {self.link!r}, so that all of them are found, or keep the plain one by physical=False"
        )


#: The pseudo-inertia of each of the ten numbers alone, (10, 4, 4).
BASIS = np.array([pseudo_inertia(e) for e in np.eye(10)])


def nearest_fit(
    R: Array, target: Array, given: Array, scale: Array, bodies: Sequence[Body], nonnegative: Sequence[int]
) -> Array:
    """Return the unknowns π that make ‖R π − target‖ least among those that can be.

    Parameters
    ----------
    R, target : ndarray, (r, P), (r,)
        What the data say, weighted.
    given : ndarray, (P,)
        What is held on to in the directions that the data say nothing of.
    scale : ndarray, (P,)
        The sizes by which deviations from that are measured.
    bodies : sequence of Body
        Links whose numbers depend on unknowns.
    nonnegative : sequence of int
        Other unknowns that are not negative.
    """
    _, values, rows = np.linalg.svd(R * scale, full_matrices=True)
    silent = rows[int((values > 1e-9 * values.max(initial=0.0)).sum()) :]
    hold = HOLD * float(values.max(initial=1.0)) * silent / scale
    A, b = np.vstack([R, hold]), np.concatenate([target, hold @ given])
    pi = np.linalg.lstsq(A, b, rcond=None)[0]
    for body in bodies:
        pi[body.at] = body.inside(pi, given)
    for k in nonnegative:
        pi[k] = max(pi[k], START * scale[k])
    # beside a greater misfit it would be the border itself, along which steps are short
    barrier = max(BARRIER, 0.5 * float(np.sum((A @ pi - b) ** 2)))
    while barrier > LEAST_BARRIER:
        barrier *= SHRINK
        pi = _newton(A, b, pi, barrier, bodies, nonnegative)
    return pi


def _newton(A: Array, b: Array, pi: Array, barrier: float, bodies: Sequence[Body], nonnegative: Sequence[int]) -> Array:
    """Return where ½‖A π − b‖² − μ (Σ log det Σ + Σ log π_k) is least.

    Its second derivative is AᵀA + μ CᵀC, with columns vec(G⁻¹ ∂Σ G⁻ᵀ) of C, Σ = G Gᵀ, and its gradient −μ Cᵀ vec(1)
    beside Aᵀ(A π − b): a Newton step is a problem of least squares itself.
    """
    value = _height(A, b, pi, barrier, bodies, nonnegative)
    for _ in range(STEPS):
        C, ones = _barrier_rows(pi, bodies, nonnegative)
        weight = np.sqrt(barrier)
        step = np.linalg.lstsq(np.vstack([A, weight * C]), np.concatenate([b - A @ pi, weight * ones]), rcond=None)[0]
        promise = 0.5 * float(np.sum((A @ step) ** 2) + barrier * np.sum((C @ step) ** 2))
        if promise < SMALL * barrier:
            break
        for _ in range(HALVINGS):
            there = _height(A, b, pi + step, barrier, bodies, nonnegative)
            if there < value:
                break
            step = 0.5 * step
        else:
            break  # no way down is left but rounding
        pi, value = pi + step, there
    return pi


def _height(A: Array, b: Array, pi: Array, barrier: float, bodies: Sequence[Body], nonnegative: Sequence[int]) -> float:
    """Return what `_newton` makes least; infinite outside."""
    logs = 0.0
    for body in bodies:
        try:
            diagonal = np.diag(np.linalg.cholesky(body.reduced(pi)))
        except np.linalg.LinAlgError:
            return np.inf
        logs += 2.0 * float(np.log(diagonal).sum())
    rest = pi[list(nonnegative)]
    if (rest <= 0.0).any():
        return np.inf
    return 0.5 * float(np.sum((A @ pi - b) ** 2)) - barrier * (logs + float(np.log(rest).sum()))


def _barrier_rows(pi: Array, bodies: Sequence[Body], nonnegative: Sequence[int]) -> tuple[Array, Array]:
    """Return C and vec(1)."""
    rows = [np.zeros((0, len(pi)))]
    ones = [np.zeros(0)]
    for body in bodies:
        face = body.face @ np.linalg.inv(np.linalg.cholesky(body.reduced(pi))).T
        row = np.zeros((face.shape[1] ** 2, len(pi)))
        row[:, body.at] = (face.T @ BASIS @ face).reshape(10, -1).T @ body.weights
        rows.append(row)
        ones.append(np.eye(face.shape[1]).ravel())
    rest = list(nonnegative)
    rows.append(np.eye(len(pi))[rest] / pi[rest, None])
    ones.append(np.ones(len(rest)))
    return np.vstack(rows), np.concatenate(ones)


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
    sizes : array_like, (10,)
        Ordinary sizes of inertial numbers.
    """

    def __init__(self, names: Sequence[str], sizes: ArrayLike = 1.0) -> None:
        self._sizes = np.broadcast_to(np.asarray(sizes, dtype=float), 10)
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
        return all(values[at[0]] > 0.0 and is_possible(_numbers(values[at]) / self._sizes) for at in self.places)

    def inside(self, values: Array) -> Array:
        """Return values near to these from which a search can go: of no rods or points without extent."""
        made = values.copy()
        for at in self.places:
            numbers = _numbers(values[at]) / self._sizes
            made[at] = _own(inside(numbers, numbers) * self._sizes)
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
