"""The explicit Runge-Kutta methods: their coefficients and orders.

The adaptive ones are those of scipy's `solve_ivp`, so that both take the same steps: RK45 (Dormand and Prince 1980,
with the dense output of Shampine 1986), RK23 (Bogacki and Shampine 1989) and DOP853 (Hairer, Norsett and Wanner 1993).
E holds the weights of the error estimate, b - b̂, over all stages and the derivative at the end of the step.

The order conditions of Runge-Kutta methods, by rooted trees (Butcher 1963; Hairer, Norsett and Wanner 1993, II.2).

A method is of order p if, for each rooted tree of at most p nodes, its elementary weight is one over the tree's
density.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import combinations_with_replacement
from typing import Any, ClassVar

import numpy as np

from cstormpy.arrays import Array, describe, own_arrays, real_array
from cstormpy.errors import InvalidType, InvalidValue
from cstormpy.values import ArgumentNames

#: So many steps of 1/128 are gone at most to where a method is no longer stable.
_FARTHEST = 128 * 64

#: The subtrees at the root, ordered.
Tree = tuple["Tree", ...]


@functools.cache
def rooted_trees(nodes: int) -> tuple[Tree, ...]:
    """Return all rooted trees of so many nodes.

    >>> [len(rooted_trees(nodes)) for nodes in range(1, 9)]
    [1, 1, 2, 4, 9, 20, 48, 115]
    """
    return _forests(nodes - 1, nodes - 1)


@functools.cache
def _forests(nodes: int, largest: int) -> tuple[Tree, ...]:
    """Return the multisets of rooted trees with so many nodes in all, none of more than `largest`."""
    if nodes == 0:
        return ((),)
    found: list[Tree] = []
    for size in range(min(largest, nodes), 0, -1):
        for count in range(1, nodes // size + 1):
            rest = _forests(nodes - count * size, size - 1)
            for chosen in combinations_with_replacement(rooted_trees(size), count):
                found.extend(chosen + more for more in rest)
    return tuple(found)


def order_defect(A: Array, b: Array, order: int) -> float:
    """Return by how much the weights b of the stages A miss the conditions of an order at most.

    >>> heun = np.array([[0.0, 0.0], [1.0, 0.0]]), np.array([0.5, 0.5])
    >>> order_defect(*heun, 2), round(order_defect(*heun, 3), 4)
    (0.0, 0.1667)
    """
    known: dict[Tree, tuple[Array, int, int]] = {}

    def stages_of(tree: Tree) -> tuple[Array, int, int]:
        """Return the product of the stages' weights at the root, the tree's density and its number of nodes."""
        if tree not in known:
            product, density, nodes = np.ones(len(b)), 1, 1
            for branch in tree:
                weights, branch_density, branch_nodes = stages_of(branch)
                product = product * (A @ weights)
                density, nodes = density * branch_density, nodes + branch_nodes
            known[tree] = product, density * nodes, nodes
        return known[tree]

    worst = 0.0
    for nodes in range(1, order + 1):
        for tree in rooted_trees(nodes):
            product, density, _ = stages_of(tree)
            worst = max(worst, abs(float(b @ product) - 1.0 / density))
    return worst


__all__ = ["EXPLICIT", "Tableau", "explicit_method"]

HIGHEST_ORDER = 10
"""Up to which the conditions of an order are looked at."""

SAME = 1e-12
"""By how much a condition of the order may be missed: rounding."""


@dataclass(frozen=True, eq=False, repr=False)
class Tableau(metaclass=ArgumentNames):
    """An explicit Runge-Kutta method, as `Simulation.run` takes it for `solver` (Butcher 1964).

    A step of length h from (t, x) has the stages kᵢ = f(t + cᵢ h, x + h Σⱼ Aᵢⱼ kⱼ) and ends at x + h Σᵢ bᵢ kᵢ. A method
    with an estimate of its error, h Σᵢ Eᵢ kᵢ, chooses the lengths of its steps.

    Parameters
    ----------
    name : str
        What messages call it.
    A, b : array_like
        Weights of the stages, strictly lower triangular (s, s), where the last column may be left out, and of the
        result (s,).
    c : array_like, optional
        Times of the stages (s,): the sums of the rows of A.
    order : int
        Of the result; at most `HIGHEST_ORDER`.
    E : array_like, optional
        Weights of the error estimate, b - b̂, over the stages (s,), or also the derivative at the end of the step
        (s + 1,). Without them steps have one length, ``run(..., dt=)``.
    E3 : array_like, optional
        A second estimate, as DOP853 has it.
    P : array_like, optional
        Coefficients of the dense output (s + 1, k); without them a cubic through both ends serves.
    error_order : int
        Of the error estimate; one less than `order` unless given.
    extra : dict
        What only DOP853 has.

    Raises
    ------
    InvalidValue
        Where arrays do not fit together, or the coefficients are not of the order that they are said to be of.

    Examples
    --------
    >>> import cstormpy as cs
    >>> ralston = cs.Tableau("Ralston", A=[[0, 0], [2 / 3, 0]], b=[1 / 4, 3 / 4], order=2)
    >>> sim = cs.Simulation(graphics=False, progress=False)
    >>> bd = sim.blockdiagram()
    >>> bd.connect(bd.CONSTANT(1.0), bd.INTEGRATOR(name="ramp"))
    >>> sim.run(bd, T=1.0, solver=ralston, dt=0.1).x[-1]
    array([1.])
    """

    name: str
    A: Array
    b: Array
    c: Array = None  # type: ignore[assignment]
    order: int = 1
    E: Array | None = None
    E3: Array | None = None
    P: Array | None = None
    error_order: int = 0
    extra: dict[str, Array] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Read the arrays, and refuse coefficients that are no method, or not of that order."""
        if not isinstance(self.name, str) or not self.name:
            raise InvalidType(f"Tableau: name: expected a text, got {describe(self.name)}")
        what = f"Tableau {self.name!r}"
        if isinstance(self.order, bool) or not isinstance(self.order, int) or not 1 <= self.order <= HIGHEST_ORDER:
            raise InvalidValue(f"{what}: order: expected 1 to {HIGHEST_ORDER}, got {describe(self.order)}")
        b = real_array(self.b, f"{what}: b", ("s",))
        s = len(b)
        A = real_array(self.A, f"{what}: A", (s, s), (s, s - 1))
        A = np.hstack([A, np.zeros((s, s - A.shape[1]))])
        if np.triu(A).any():
            raise InvalidValue(f"{what}: A: an explicit method has zeros on and above the diagonal")
        c = A.sum(axis=1) if self.c is None else real_array(self.c, f"{what}: c", (s,))
        if not np.allclose(A.sum(axis=1), c, atol=1e-12):
            raise InvalidValue(f"{what}: c: is not the sums of the rows of A")
        defect = order_defect(A, b, self.order)
        if defect > SAME:
            raise InvalidValue(
                f"{what}: misses a condition of order {self.order} by {defect:.1e}; look at A, b and order"
            )
        values: dict[str, Any] = {"A": A, "b": b, "c": c}
        for name in ("E", "E3"):
            if getattr(self, name) is not None:
                E = real_array(getattr(self, name), f"{what}: {name}", (s,), (s + 1,))
                if abs(E.sum()) > SAME:
                    raise InvalidValue(f"{what}: {name}: the weights of an error sum to zero, here to {E.sum():.1e}")
                values[name] = np.append(E, np.zeros(s + 1 - len(E)))
        if self.P is not None:
            values["P"] = real_array(self.P, f"{what}: P", (s + 1, "k"))
        values["error_order"] = self.error_order or max(self.order - 1, 1)
        for name, value in own_arrays(values).items():
            object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        return f"Tableau({self.name!r}, order={self.order}, stages={self.stages})"

    def __str__(self) -> str:
        return self.name

    @property
    def stages(self) -> int:
        """Number of derivatives that one step takes, that at its end not counted."""
        return len(self.b)

    @property
    def adaptive(self) -> bool:
        """True of a method that estimates its error."""
        return self.E is not None

    @functools.cached_property
    def reach(self) -> float:
        """Length of the steps, times the rate λ of what dies away as exp(-λ t), up to which that dies away by them too.

        >>> euler = Tableau("Euler", A=[[0]], b=[1], order=1)
        >>> round(euler.reach, 3)
        2.0
        """
        one, growth = np.ones(self.stages), 0.0
        far = np.arange(1, _FARTHEST) / 128.0
        for z in far:
            growth = abs(1.0 - z * float(self.b @ np.linalg.solve(np.eye(self.stages) + z * self.A, one)))
            if growth > 1.0:
                return float(z)
        return float(far[-1])


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


def explicit_method(solver: Any) -> Tableau | None:
    """Return the explicit method that a user asked for, by its name in any case or itself; None for another."""
    if isinstance(solver, Tableau):
        return solver
    if solver.__class__ is str and solver in EXPLICIT:
        return EXPLICIT[solver]
    name = next((known for known in EXPLICIT if known.lower() == str(solver).lower()), None)
    return None if name is None else EXPLICIT[name]
