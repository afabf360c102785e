"""Positions, rates, accelerations and jerks prescribed at the ends of a curve, met by fixing control points.

A condition at an end is one linear equation for the few control points that matter there. Solved for as many control
points, it leaves the others free: P = P0(T) + Z x, so that an optimiser of x meets the conditions always and needs no
equality constraint for them. Z does not depend on the duration T; P0 is a polynomial in T, since a condition of order r
reads d^r q/ds^r = T^r q^(r) in the phase s = (t − t0)/T.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cstormpy.arguments import positive, whole_number
from cstormpy.arrays import Array, is_single
from cstormpy.errors import InvalidType, InvalidValue, ShapeError, shown
from cstormpy.trajectory.basis import local_basis, spans
from cstormpy.trajectory.checks import finite_array
from cstormpy.trajectory.knots import check_knots
from cstormpy.values import ArgumentNames

if TYPE_CHECKING:
    from scipy.sparse import csr_array

ORDERS = ("position", "rate", "acceleration", "jerk")

Prescribed = float | tuple[float | None, ...] | None


@dataclass(frozen=True, kw_only=True)
class EndConditions(metaclass=ArgumentNames):
    """Conditions of a curve at its ends: q0, qd0, … at the start and q1, qd1, … at the end.

    Parameters
    ----------
    q0, qd0, qdd0, qddd0, q1, qd1, qdd1, qddd1 : number, sequence of n entries, or None
        Position, rate, acceleration and jerk at either end. A number holds for all joints, a sequence has one entry per
        joint in which None leaves that joint free, and None leaves all free. Units: rad or m, and s.

    Examples
    --------
    >>> EndConditions(q0=[0.0, 1.0], qd0=0, q1=[None, 2.0])
    EndConditions(q0=(0.0, 1.0), qd0=0.0, q1=(None, 2.0))
    """

    q0: Any = None
    qd0: Any = None
    qdd0: Any = None
    qddd0: Any = None
    q1: Any = None
    qd1: Any = None
    qdd1: Any = None
    qddd1: Any = None

    def __post_init__(self) -> None:
        """Turn what was given into floats and tuples."""
        for field in fields(self):
            object.__setattr__(self, field.name, _prescribed(getattr(self, field.name), field.name))

    def __repr__(self) -> str:
        """Return the call that makes these conditions."""
        shown = ((field.name, getattr(self, field.name)) for field in fields(self))
        return f"EndConditions({', '.join(f'{k}={v!r}' for k, v in shown if v is not None)})"

    @classmethod
    def at_rest(cls, q0: ArrayLike, q1: ArrayLike, order: int = 1) -> EndConditions:
        """Return a start at `q0` and an end at `q1` with all derivatives up to `order` (1 to 3) zero there.

        >>> EndConditions.at_rest([0.0], [1.0], order=2)
        EndConditions(q0=(0.0,), qd0=0.0, qdd0=0.0, q1=(1.0,), qd1=0.0, qdd1=0.0)
        """
        return cls(q0=q0, q1=q1, **{f"q{'d' * r}{end}": 0.0 for r in range(1, _order(order) + 1) for end in (0, 1)})

    @classmethod
    def of(cls, curve: Any, order: int = 1) -> EndConditions:
        """Return what `curve` does at its ends, up to the derivative of that order (0 to 3)."""
        order = _order(order, least=0)
        ends = ((end, time) for end, time in ((0, curve.t0), (1, curve.t1)))
        return cls(**{f"q{'d' * r}{end}": curve(time, r) for end, time in ends for r in range(order + 1)})

    def table(self, end: int, n: int) -> Array:
        """Return the conditions at end 0 or 1 as (4, n): a row per order, NaN where nothing is prescribed."""
        rows = np.full((len(ORDERS), n), np.nan)
        for order in range(len(ORDERS)):
            name = f"q{'d' * order}{end}"
            value = getattr(self, name)
            if isinstance(value, tuple):
                if len(value) != n:
                    raise ShapeError(f"{name}: expected {n} entries, one per joint, or one number; got {len(value)}")
                rows[order] = [np.nan if entry is None else entry for entry in value]
            elif value is not None:
                rows[order] = value
        return rows


def _order(order: int, least: int = 1) -> int:
    if whole_number(order, "order", least) >= len(ORDERS):
        raise InvalidValue(f"order: end conditions go up to order {len(ORDERS) - 1} (jerk), got {order}")
    return int(order)


def _prescribed(value: Any, name: str) -> Prescribed:
    """Return a condition as None, a float, or a tuple of floats and None."""
    if value is None:
        return None
    if isinstance(value, Sequence) and not isinstance(value, str):
        given = [entry for entry in value if entry is not None]
        numbers = iter(finite_array(given, name, (None,)).tolist())
        return tuple(None if entry is None else next(numbers) for entry in value)
    if is_single(value):
        return float(finite_array(value, name, ()))
    return tuple(finite_array(value, name, (None,), "one entry per joint").tolist())


@dataclass(frozen=True)
class JointGroup:
    """Joints with conditions of the same kinds: for these, P[fixed] = P0[fixed] − coupling @ P[free]."""

    joints: NDArray[np.intp]
    fixed: NDArray[np.intp]
    free: NDArray[np.intp]
    coupling: Array


class ControlPointMap:
    """The curves that meet end conditions: control points P = P0 + Z x for free parameters x.

    Made by `BSpline.fix_ends`. The free parameters are themselves control points, so that bounds on them mean
    something; the entries of x are the free entries of P (m, n) in the order of ``P.ravel()``.

    Attributes
    ----------
    shape : tuple of int
        (m, n), of the control points.
    free : (size,) read-only array of int
        Indices of the free parameters into ``P.ravel()``.
    groups : tuple of JointGroup
        Joints whose conditions are of the same kinds, with the rows of P fixed and free for them.

    Examples
    --------
    >>> from cstormpy.trajectory import BSpline
    >>> ends = BSpline.clamped(np.zeros((6, 1)), 2.0).fix_ends(EndConditions.at_rest([1.0], [3.0]))
    >>> ends.size, ends.control_points([0.5, 0.7]).ravel().tolist()
    (2, [1.0, 1.0, 0.5, 0.7, 3.0, 3.0])
    """

    def __init__(self, knots: Array, degree: int, n: int, duration: float, conditions: EndConditions) -> None:
        knots, n = check_knots(knots, degree), whole_number(n, "n", 1)
        duration = positive(duration, "duration")
        if not isinstance(conditions, EndConditions):
            raise InvalidType(f"conditions: expected EndConditions, got {shown(conditions)}")
        tables = np.concatenate([conditions.table(0, n), conditions.table(1, n)])
        rows = _end_rows(knots, degree)
        self.shape = (rows.shape[1], n)
        self._duration = duration
        self._terms = np.zeros((len(ORDERS), *self.shape))
        groups = []
        is_free = np.ones(self.shape, dtype=bool)
        for pattern in np.unique(~np.isnan(tables), axis=1).T:
            joints = np.flatnonzero((~np.isnan(tables) == pattern[:, None]).all(axis=0))
            asked = np.flatnonzero(pattern)
            _refuse_too_many(asked, degree, self.shape[0])
            fixed, inverse, coupling = eliminate(rows[asked], [_name(a) for a in asked])
            free = np.setdiff1d(np.arange(self.shape[0]), fixed)
            groups.append(JointGroup(joints, fixed, free, coupling[:, free]))
            is_free[np.ix_(fixed, joints)] = False
            for column, condition in enumerate(asked):
                order = condition % len(ORDERS)
                self._terms[order][np.ix_(fixed, joints)] += np.outer(inverse[:, column], tables[condition, joints])
        self.groups = tuple(groups)
        self.free = np.flatnonzero(is_free.ravel())
        self.free.setflags(write=False)

    def __repr__(self) -> str:
        """Return a short description."""
        m, n = self.shape
        return f"ControlPointMap({m} control points of {n} joints, {self.size} of {m * n} numbers free)"

    @property
    def size(self) -> int:
        """Number of free parameters."""
        return int(self.free.size)

    @property
    def duration(self) -> float:
        """Duration T for which the conditions are met [s]."""
        return self._duration

    def with_duration(self, duration: float) -> ControlPointMap:
        """Return the same conditions for a curve of another duration; only P0 differs."""
        other = object.__new__(ControlPointMap)
        other.__dict__.update(self.__dict__, _duration=positive(duration, "duration"))
        return other

    @property
    def offset(self) -> Array:
        """P0, the control points for x = 0, (m, n)."""
        return self._sum_of_powers([_power(self._duration, r) for r in range(len(ORDERS))])

    @property
    def offset_rate(self) -> Array:
        """∂P0/∂T, (m, n): how the control points follow the duration for fixed x."""
        return self._sum_of_powers([r * _power(self._duration, max(r - 1, 0)) for r in range(len(ORDERS))])

    def _sum_of_powers(self, powers: Sequence[float]) -> Array:
        total: Array = self._terms[0] * powers[0]
        with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is refused as a control point
            for power, term in zip(powers[1:], self._terms[1:], strict=True):
                total += power * term
        return total

    @property
    def matrix(self) -> csr_array:
        """Z = ∂P/∂x, sparse (m·n, size); its rows follow ``P.ravel()``."""
        from scipy.sparse import csr_array

        column = np.full(self.shape, -1, dtype=np.intp)
        column.ravel()[self.free] = np.arange(self.size)
        flat = np.arange(column.size).reshape(self.shape)
        entries = [(self.free, np.arange(self.size), np.ones(self.size))]
        for group in self.groups:
            at, over = np.nonzero(group.coupling)
            for joint in group.joints:
                entries.append(
                    (flat[group.fixed[at], joint], column[group.free[over], joint], -group.coupling[at, over])
                )
        row, col, data = (np.concatenate(part) for part in zip(*entries, strict=True))
        return csr_array((data, (row, col)), shape=(column.size, self.size))

    def control_points(self, x: ArrayLike) -> Array:
        """Return P0 + Z x, (m, n), for free parameters (size,)."""
        points = self.offset
        points.ravel()[self.free] = finite_array(x, "free parameters", (self.size,))
        for group in self.groups:
            points[np.ix_(group.fixed, group.joints)] -= group.coupling @ points[np.ix_(group.free, group.joints)]
        return points

    def parameters(self, control_points: ArrayLike) -> Array:
        """Return the free parameters (size,) of control points (m, n); the others are ignored."""
        return finite_array(control_points, "control points", self.shape).ravel()[self.free]

    def pull_back(self, gradient: ArrayLike) -> Array:
        """Return Zᵀ g, (size,), the gradient with respect to x from that with respect to P, (m, n)."""
        g = finite_array(gradient, "gradient", self.shape).copy()
        for group in self.groups:
            g[np.ix_(group.free, group.joints)] -= group.coupling.T @ g[np.ix_(group.fixed, group.joints)]
        return g.ravel()[self.free]


def _end_rows(knots: Array, degree: int) -> Array:
    """Return the derivatives 0 to 3 of all basis functions with respect to the phase at start and end, (8, m)."""
    start, stop = knots[degree], knots[-degree - 1]
    phase = (knots - start) / (stop - start)
    rows = np.zeros((2 * len(ORDERS), knots.size - degree - 1))
    for end in (0, 1):
        time = np.array([float(end)])
        span = spans(phase, (0.0, 1.0), time)
        first = int(span[0]) - degree
        for order in range(len(ORDERS)):
            rows[end * len(ORDERS) + order, first : first + degree + 1] = local_basis(phase, degree, span, time, order)
    return rows


def _name(condition: int | np.intp) -> str:
    return f"{ORDERS[condition % len(ORDERS)]} at the {'start' if condition < len(ORDERS) else 'end'}"


def _refuse_too_many(asked: NDArray[np.intp], degree: int, count: int) -> None:
    beyond = [a for a in asked if a % len(ORDERS) > degree]
    if beyond:
        raise InvalidValue(f"end conditions: the {_name(beyond[0])} of a curve of degree {degree} is always zero")
    if len(asked) > count:
        raise InvalidValue(
            f"end conditions: {len(asked)} conditions on one joint ({', '.join(_name(a) for a in asked)}) need at "
            f"least {len(asked)} control points, the curve has {count}"
        )


def _power(x: float, exponent: int) -> float:
    """Return a power, infinity beyond the range of floats."""
    with np.errstate(over="ignore"):
        return float(np.float64(x) ** exponent)


DEPENDENT = 1e-10
"""A scaled equation that is smaller than this after elimination of the others follows from them."""

SWAP_GAIN = 1.01
"""A solved unknown is changed for a free one only where the coefficient exceeds this; more than 1 ends the search."""


def eliminate(rows: Array, names: Sequence[str]) -> tuple[NDArray[np.intp], Array, Array]:
    """Solve k equations ``rows @ P = values`` for k of the m unknowns, chosen so that no coefficient is large.

    Parameters
    ----------
    rows : (k, m) array
        the equations' coefficients
    names : sequence of k strings
        what the equations are called in errors

    Returns
    -------
    fixed : (k,) array of int
        the unknowns solved for, in rising order
    inverse : (k, k) array
    coupling : (k, m) array
        P[fixed] = inverse @ values − Σ over the others of coupling[:, i] P[i]; its entries are at most 1.01 in size
    """
    if not len(rows):
        return np.zeros(0, dtype=np.intp), np.zeros((0, 0)), np.zeros((0, rows.shape[1]))
    scale = np.abs(rows).max(axis=1, keepdims=True)
    scaled = rows / scale
    fixed = _independent_columns(scaled, names)
    coupling = np.linalg.solve(scaled[:, fixed], scaled)
    while np.abs(coupling).max() > SWAP_GAIN:  # each swap multiplies the determinant by that coefficient
        at, enter = np.unravel_index(int(np.abs(coupling).argmax()), coupling.shape)
        fixed[at] = enter
        coupling = np.linalg.solve(scaled[:, fixed], scaled)
    fixed = np.sort(fixed)
    return fixed, np.linalg.inv(scaled[:, fixed]) / scale.T, np.linalg.solve(scaled[:, fixed], scaled)


def _independent_columns(scaled: Array, names: Sequence[str]) -> NDArray[np.intp]:
    """Return as many independent columns as there are rows: Gaussian elimination with the largest pivot of each row."""
    left = scaled.copy()
    columns = []
    for k in range(len(left)):
        column = int(np.abs(left[k]).argmax())
        if abs(left[k, column]) < DEPENDENT:
            raise InvalidValue(
                f"end conditions: the {names[k]} cannot be chosen freely beside {', '.join(names[:k])}; "
                "there are too few control points between the ends"
            )
        columns.append(column)
        left[k + 1 :] -= np.outer(left[k + 1 :, column] / left[k, column], left[k])
        left[k + 1 :, column] = 0.0
    return np.array(columns, dtype=np.intp)
