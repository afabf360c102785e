"""Design variables: numbers of the mechanism that are chosen together with its motion.

A design variable is a component of a parameter, by the names of `Mechanism.with_parameters` and `Simulation.tune`
("forearm.mass", "forearm.com[0]", "elbow.stiffness"), or a value on which several of them depend (`Tied`). Torques
follow a design by ∂τ/∂p = ∂ID/∂p at a motion that is held. A place that a constraint asks for follows the geometry as
it follows the coordinates of joints that are held where frames may move (see `sensitivity.held_joints`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from cstormpy import checks
from cstormpy.errors import CstormError, InvalidType, InvalidValue, shown
from cstormpy.lie.derivatives import dexp_se3
from cstormpy.linkage.components import TWIST, Component, LoopFrame, Shift, Wrench, components, find
from cstormpy.loops.parameters import constraint_rates
from cstormpy.loops.residual_slopes import residual_rates
from cstormpy.mechanism.component_values import component_value, direction_lengths, with_components
from cstormpy.optimal.differences import STENCIL, differences
from cstormpy.optimal.differences import STEP as PART
from cstormpy.sensitivity.torque_rates import held_for, torque_rates

if TYPE_CHECKING:
    from cstormpy.loops.closure import Closure
    from cstormpy.mechanism import Mechanism
    from cstormpy.optimal.samples import Array, Parts, Samples


#: Ends of the names of components that turn a frame.
_TURNED = (".pose.rx", ".pose_a.rx", ".pose_b.rx")


class Tied:
    """A design variable on which several numbers of the mechanism depend, as the length of a rod.

    Parameters
    ----------
    bounds : (low, high) or (low, guess, high)
        Of the variable. The search begins in the middle unless a guess is given.
    numbers : callable
        numbers(value) -> {"forearm.com[0]": value / 2, …}, by the names of components; those of a pose are a twist by
        which the frame moves from where it is. It is a smooth function, and differenced.

    Examples
    --------
    A rod of 1 kg:

    >>> rod = Tied((0.5, 1.5), lambda L: {"forearm.com[0]": L / 2, "forearm.inertia.yy": L**2 / 12})
    >>> rod.low, rod.guess, rod.high
    (0.5, 1.0, 1.5)
    """

    def __init__(self, bounds: Any, numbers: Callable[[float], Mapping[str, float]]) -> None:
        self.low, guess, self.high = _read_bounds(bounds, "Tied")
        self.guess = 0.5 * (self.low + self.high) if guess is None else guess
        if not callable(numbers):
            raise InvalidType(f"Tied: numbers: expected a function of the value, got {shown(numbers)}")
        self.numbers = numbers

    def __repr__(self) -> str:
        return f"Tied(({self.low:g}, {self.guess:g}, {self.high:g}), {getattr(self.numbers, '__name__', '…')})"


@dataclass(frozen=True)
class _Own:
    """A design variable that is a component itself."""

    low: float
    guess: float
    high: float
    component: str

    def numbers(self, value: float) -> dict[str, float]:
        return {self.component: value}


@dataclass(frozen=True, eq=False)
class Design:
    """The design variables of a problem.

    Attributes
    ----------
    mech : Mechanism
        As it was given.
    names : tuple of str
    low, guess, high : ndarray, (k,)
    """

    mech: Mechanism
    variables: dict[str, Tied | _Own]

    @property
    def names(self) -> tuple[str, ...]:
        """Of the variables."""
        return tuple(self.variables)

    @cached_property
    def low(self) -> Array:
        """The least values, (k,)."""
        return np.array([each.low for each in self.variables.values()])

    @cached_property
    def guess(self) -> Array:
        """Values with which the search begins, (k,)."""
        return np.array([each.guess for each in self.variables.values()])

    @cached_property
    def high(self) -> Array:
        """The greatest values, (k,)."""
        return np.array([each.high for each in self.variables.values()])

    @property
    def sizes(self) -> Array:
        """Characteristic sizes, (k,): half of how far they may go."""
        return 0.5 * (self.high - self.low)

    def at(self, values: Array) -> Designed:
        """Return the mechanism of a design; raises what no mechanism can have."""
        return Designed(self, values, with_components(self.mech, self.numbers(values)))

    def numbers(self, values: Array) -> dict[str, float]:
        """Return the components that a design sets."""
        pairs = zip(self.variables.values(), values.tolist(), strict=True)
        return {name: number for variable, value in pairs for name, number in variable.numbers(value).items()}

    @cached_property
    def moves_loops(self) -> bool:
        """Whether what closes the loops of the mechanism depends on the design."""
        known = components(self.mech)
        parts = [part for name in self.moved for part in known[name]]
        return bool(self.mech.loops) and any(isinstance(part, (Shift, LoopFrame)) for part in parts)

    @cached_property
    def moved(self) -> tuple[str, ...]:
        """The components that change: those that are set, and all of a pose of which more than one is."""
        names = list(self.numbers(self.guess))
        poses = [owner for owner, _, field in (name.rpartition(".") for name in names) if field in TWIST]
        whole = [f"{owner}.{field}" for owner in dict.fromkeys(poses) if poses.count(owner) > 1 for field in TWIST]
        return tuple(dict.fromkeys([*names, *whole]))

    def rates(self, values: Array) -> Array:
        """Return the derivatives of what moves to the variables, (E, k).

        A pose moves in its own axes of now, and the direction of a joint as the unit vector that it is by now.
        """
        row = {name: k for k, name in enumerate(self.moved)}
        made = np.zeros((len(row), len(values)))
        for k, (variable, value) in enumerate(zip(self.variables.values(), values.tolist(), strict=True)):
            if isinstance(variable, _Own):
                made[row[variable.component], k] = 1.0
                continue
            step = PART * (variable.high - variable.low)
            for place, weight in STENCIL:
                for name, number in variable.numbers(value + place * step).items():
                    made[row[name], k] += weight / step * number
        numbers = self.numbers(values)
        for name, length in direction_lengths(self.mech, numbers).items():
            made[row[name]] /= length
        for owner in {name.rpartition(".")[0] for name in self.moved if name.endswith(_TURNED)}:
            own = [f"{owner}.{field}" for field in TWIST]
            if all(name in row for name in own):
                places = [row[name] for name in own]
                made[places] = dexp_se3(np.array([numbers.get(name, 0.0) for name in own])) @ made[places]
        return made


@dataclass(frozen=True, eq=False)
class Designed:
    """The mechanism of a design, and how what it does follows the variables.

    Attributes
    ----------
    design : Design
    values : ndarray, (k,)
    mech : Mechanism
    """

    design: Design
    values: Array
    mech: Mechanism

    @property
    def parameters(self) -> dict[str, float]:
        """The design variables by their names."""
        return dict(zip(self.design.names, self.values.tolist(), strict=True))

    @cached_property
    def _parts(self) -> list[Component]:
        return [part for name in self.design.moved for part in components(self.mech)[name]]

    @cached_property
    def _rates(self) -> Array:
        return self.design.rates(self.values)

    def torque_rates(self, q: Array, qd: Array, qdd: Array, wrench: Any, base: Any) -> Array:
        """Return ∂τ/∂design of a motion, (N, n, k)."""
        return torque_rates(self.mech.tree, self._parts, q, qd, qdd, wrench, base) @ self._rates

    def constraint_rates(self, found: Closure, q: Array) -> Array:
        """Return ∂A/∂design of the loops, (N, m, n, k)."""
        return np.asarray(constraint_rates(self.mech, found, self._parts, q, np.zeros_like(q))[0] @ self._rates)

    def residual_rates(self, found: Closure, q: Array) -> Array:
        """Return ∂φ/∂design of the closure, (N, m, k)."""
        return residual_rates(self.mech, found, self._parts, q) @ self._rates

    def direct(self, owner: Any, at: Samples) -> Array | None:
        """Return the derivative of a term or constraint to the design, its channels held; None where there is none."""
        if hasattr(owner, "by_design"):
            return owner.by_design(at, self)
        if getattr(owner, "of_mechanism", False):
            return self._by_geometry(owner, at)
        if getattr(owner, "function", None) is not None and getattr(owner, "gradient", None) is None:
            return self._differenced(owner, at)
        return None

    def _differenced(self, owner: Any, at: Samples) -> Array:
        """Return differences of a user's function, (N, …, k)."""

        def moved(values: Array) -> Array:
            there = self.design.at(values)
            return np.asarray(owner.values(replace(at, mech=there.mech, designed=there)))

        return differences(moved, self.values, PART * self.design.sizes)

    def _by_geometry(self, owner: Any, at: Samples) -> Array | None:
        """Return the derivatives of a constraint on the places of links, (N, c, k), by joints that are held."""
        shifts = [(e, part) for e, part in enumerate(self._parts) if isinstance(part, Shift)]
        if not shifts:
            return None
        held = held_for(self.mech.tree, self._parts)
        assert held is not None
        wide: Any = np.zeros((3, len(at), held.mech.n))
        wide[..., held.own] = at.q, at.qd, at.qdd
        by: Parts = owner.derivatives(
            replace(at, mech=cast("Mechanism", held.mech), q=wide[0], qd=wide[1], qdd=wide[2], designed=None)
        )
        found = np.zeros((*next(iter(by.values())).shape[:2], len(self._parts)))
        for e, part in shifts:
            for move in part.moves:
                place, j = held.place(part.link, move.position), move.along
                if j < 0:
                    found[..., e] += move.by(by["q"][..., place])
                    continue
                for channel, columns in by.items():
                    found[..., e] += getattr(at, channel)[:, j, None] * move.by(columns[..., place])
        return found @ self._rates


def derivatives(owner: Any, at: Samples) -> Parts:
    """Return the derivatives of a term or constraint by channel, those to the design among them."""
    parts: Parts = owner.derivatives(at)
    if at.designed is None:
        return parts
    direct = at.designed.direct(owner, at)
    return parts if direct is None else {**parts, "design": direct}


def read_design(mech: Mechanism, given: Any) -> Design | None:
    """Return the design variables of a problem; None if there are none.

    Raises
    ------
    UnknownName, InvalidValue, InvalidType
        Naming the variable that is none, or that a bound makes impossible.
    """
    if given is None:
        return None
    if not isinstance(given, Mapping):
        raise InvalidType(f"design: expected a mapping from names to bounds, got {shown(given)}")
    variables: dict[str, Tied | _Own] = {}
    for name, entry in given.items():
        if isinstance(entry, Tied):
            variables[checks.name(name, "design: name of a variable")] = entry
        else:
            variables.update(_own(mech, name, entry))
    if not variables:
        return None
    design = Design(mech, variables)
    _refuse_twice(design)
    for k, (name, variable) in enumerate(variables.items()):
        for word, value in (("guess", variable.guess), ("low bound", variable.low), ("high bound", variable.high)):
            values = design.guess.copy()
            values[k] = value
            _refuse_impossible(design, values, f"design, {name!r}: the {word} {value:g}")
    return design


def _own(mech: Mechanism, name: Any, bounds: Any) -> dict[str, _Own]:
    """Return the variables that a parameter is, one for each of its components."""
    low, guess, high = _read_bounds(bounds, f"design, {shown(name)}")
    made = {}
    for part in _found(mech, name, "design"):
        value = component_value(mech, part.name) if guess is None else guess
        if not low <= value <= high:
            raise InvalidValue(
                f"design: {part.name} = {value:g} is not within its bounds, {low:g} to {high:g}; "
                "give (low, guess, high)"
            )
        made[part.name] = _Own(low, value, high, part.name)
    return made


def _found(mech: Mechanism, name: Any, what: str) -> Sequence[Component]:
    try:
        ((_, parts),) = find(mech, [name])
    except CstormError as error:
        raise type(error)(f"{what}: {error}") from None
    if isinstance(parts[0], Wrench):
        raise InvalidValue(f"{what}: {name!r} is no number of the mechanism; loads= says what acts on its links")
    return parts


def _read_bounds(bounds: Any, what: str) -> tuple[float, float | None, float]:
    """Return the low bound, the guess where one is given, and the high bound."""
    entries = list(bounds) if isinstance(bounds, (tuple, list, np.ndarray)) else []
    if len(entries) not in (2, 3):
        raise InvalidType(f"{what}: expected (low, high) or (low, guess, high), got {shown(bounds)}")
    numbers = [checks.real(entry, what) for entry in entries]
    if not np.isfinite(numbers).all() or sorted(numbers) != numbers or numbers[0] == numbers[-1]:
        raise InvalidValue(f"{what}: the bounds must be finite and rise, got {shown(bounds)}")
    return numbers[0], numbers[1] if len(numbers) == 3 else None, numbers[-1]


def _refuse_twice(design: Design) -> None:
    """Refuse what is no component, and what two variables set."""
    by: dict[str, str] = {}
    for name, variable in design.variables.items():
        numbers = variable.numbers(variable.guess)
        if not isinstance(numbers, Mapping):
            raise InvalidType(f"design, {name!r}: expected a mapping from components to numbers, got {shown(numbers)}")
        for component, value in numbers.items():
            parts = _found(design.mech, component, f"design, {name!r}")
            if len(parts) > 1:
                raise InvalidValue(f"design, {name!r}: {component!r} is several numbers; name each, as {parts[0].name}")
            checks.real(value, f"design, {name!r}: {component}")
            if component in by:
                raise InvalidValue(f"design: {component!r} is set by {by[component]!r} and by {name!r}")
            by[component] = name


def _refuse_impossible(design: Design, values: Array, what: str) -> None:
    try:
        design.at(values)
    except CstormError as error:
        raise InvalidValue(f"{what} makes no mechanism: {error}") from error
