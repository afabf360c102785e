"""Numbers of the mechanisms that the blocks of a diagram have, by the names of `Mechanism.with_parameters`."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from cstormpy.errors import InvalidValue
from cstormpy.linkage.components import Component, Inertia, Shift, Term, Wrench, components, find
from cstormpy.mechanism import Mechanism
from cstormpy.mechanism.component_values import component_value, is_twist, with_components
from cstormpy.simulation.palette import quiet

#: Terms of a joint that are not negative, or positive.
_NOT_NEGATIVE = ("armature", "damping", "friction", "friction_velocity")


def is_mechanical(block: Any) -> bool:
    """Tell whether a block has a mechanism that can be exchanged."""
    return "mech" in getattr(block, "_parameters", {}) and isinstance(getattr(block, "mech", None), Mechanism)


def knows(block: Any, name: str) -> bool:
    """Tell whether a block has a mechanism, and a name begins as its numbers do, with a link, joint or loop."""
    if not is_mechanical(block):
        return False
    known = components(block.mech)
    owner = name.rpartition(".")[0] or name
    loops = [loop.name for loop in block.mech.loops]
    return name in known or owner in loops or any(one.startswith(f"{owner}.") for one in known)


class MechanismNumbers:
    """The numbers of the mechanism of one block, or of several blocks whose mechanisms are the same.

    Parameters
    ----------
    blocks : sequence of Block
    prefix : str
        What stands before the names of its numbers.

    Attributes
    ----------
    values : dict of str to float
        What the numbers are that are asked for, by the names of components.
    """

    def __init__(self, blocks: Sequence[Any], prefix: str = "") -> None:
        self.blocks, self.prefix = list(blocks), prefix
        self._own = [block.mech for block in self.blocks]
        #: Those that the blocks were given last, from here.
        self._given = list(self._own)
        self.values: dict[str, float] = {}
        self._first: dict[str, float] = {}

    def find(self, name: str) -> tuple[Component, ...]:
        """Return the components that a name stands for, of which none is a wrench.

        Raises
        ------
        CstormError
            With the nearest spelling.
        """
        parts: tuple[Component, ...] = find(self._own[0], name)[0][1]
        for part in parts:
            if isinstance(part, Wrench):
                raise InvalidValue(
                    f"parameters: {self.prefix}{name!s} is no number of the mechanism; wire it to a port for wrenches"
                )
            self._refuse_perpendicular(part)
            value = component_value(self._own[0], part.name)
            if isinstance(part, Inertia) and part.name.endswith(".mass") and not value:
                raise InvalidValue(
                    f"parameters: {self.prefix}{part.name} is 0, from where it cannot go both ways; give the link some"
                )
            self.values[part.name] = self._first[part.name] = value
            self._refuse_different(part)
        return parts

    def _refuse_perpendicular(self, part: Component) -> None:
        """Refuse a number of directions that stay perpendicular."""
        link = self._own[0].links[part.link] if isinstance(part, Shift) else None
        if link is not None and any(f".{field}[" in part.name for field in link.joint.perpendicular):
            raise InvalidValue(
                f"parameters: {self.prefix}{part.name} cannot change alone, as the directions of this joint stay "
                f"perpendicular; turn them by the link's pose, as by {self.prefix}{link.name}.pose.rx"
            )

    def _refuse_different(self, part: Component) -> None:
        for block, own in zip(self.blocks[1:], self._own[1:], strict=True):
            if component_value(own, part.name) != self._first[part.name]:
                names = ", ".join(f"{b.name}.{part.name}" for b in self.blocks)
                raise InvalidValue(
                    f"parameters: {part.name} is another number in block {str(block.name)!r} than in "
                    f"{str(self.blocks[0].name)!r}; name one of {names}"
                )

    def least(self, part: Component) -> float:
        """Return the value below which a component cannot be."""
        if isinstance(part, Term) and part.field in _NOT_NEGATIVE:
            return 0.0
        return 0.0 if part.name.endswith(".mass") else -float("inf")

    @contextlib.contextmanager
    def present(self) -> Iterator[None]:
        """Have the mechanisms that the blocks have now for those that change, to the end of the ``with`` block.

        They are others than were given from here where a handler of the user has set a number of one.
        """
        now = [block.mech for block in self.blocks]
        if all(mech is given for mech, given in zip(now, self._given, strict=True)):
            yield
            return
        before = self._own, self._given, self._first, self.values
        self._own, self._given = now, list(now)
        self._first = {name: component_value(now[0], name) for name in self._first}
        self.values = dict(self._first)
        try:
            yield
        finally:
            self._own, self._given, self._first, self.values = before
            self._give(now)

    def value_now(self, name: str) -> float:
        """Return a number as the blocks have it now; of what moves a pose, what was given last."""
        if self.blocks[0].mech is self._given[0] or is_twist(self._own[0], name):
            return self.values[name]
        return component_value(self.blocks[0].mech, name)

    def set(self, values: Mapping[str, float], lenient: bool) -> None:
        """Give the blocks a mechanism with other numbers; with `lenient` one may have inertias that no body has."""
        self.values.update(values)
        changed = {name: value for name, value in self.values.items() if value != self._first[name]}
        mechs = [with_components(own, changed, allow_impossible=lenient) if changed else own for own in self._own]
        self._give(mechs)
        self._given = [block.mech for block in self.blocks]

    def _give(self, mechs: Sequence[Mechanism]) -> None:
        for block, mech in zip(self.blocks, mechs, strict=True):
            with quiet():
                block.set_param("mech", mech)
