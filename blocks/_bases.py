"""Base classes of our blocks, beside bdsim's: ports that know their side, a mechanism that can be exchanged."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from bdsim.components import Block, Plug

from cstormpy.arrays import Array
from cstormpy.blocks._ports import Width, label, refuse_non_finite, vector
from cstormpy.blocks._stops import Stops
from cstormpy.dynamics.hybrid import HybridDynamics
from cstormpy.errors import InvalidType, InvalidValue, NonFinite, UnknownAttribute, UnknownName, unknown_name
from cstormpy.linkage.parameters import parameter_names
from cstormpy.loops.dynamics import closed_hybrid
from cstormpy.mechanism import Mechanism, as_mechanism


class UnknownPort(UnknownAttribute):
    """A port that does not exist; the text is made when it is read, as ``hasattr`` throws it away."""

    def __init__(self, block: Any, name: str, known: list[str]) -> None:
        super().__init__(name)
        self._block, self._known = block, known

    def __str__(self) -> str:
        (name,) = self.args
        unknown = unknown_name(f"block {label(self._block)!r}: port", name, self._known)
        return f"{unknown}{_remedy(self._block, name)}"


#: Inputs that some blocks have where an argument of their name asks for them.
_ASKED_FOR = ("wrench", "base", "select", "reference")


def _remedy(block: Any, name: str) -> str:
    """Return how a block of its kind gets a port that this one was not asked for, empty where none has it."""
    asked = name in _ASKED_FOR and inspect.signature(type(block)).parameters.get(name)
    return f"; {type(block).__name__.upper()}(..., {name}=True) has it" if asked else ""


class NamedPort(Plug):
    """A port by its name, of whose signal no number can be wired by itself: of bdsim's plug ports would be counted."""

    #: "input" or "output"; there is none where both are of that name.
    side: str

    def __init__(self, block: Any, port: int, name: str) -> None:
        super().__init__(block, port)
        self.name = name

    def __getitem__(self, i: Any) -> Any:
        """Say which block takes numbers out of a signal."""
        at = str(i) if isinstance(i, int) else "0, 1"
        port = f"{label(self.block)}.{self.name}"
        if getattr(self, "side", "") == "input":
            raise InvalidType(f"{port}: an input is wired as a whole; bd.MUX(n) puts n numbers together")
        raise InvalidType(
            f"{port}: an output is wired as a whole; bd.INDEX([{at}]) takes numbers out of its signal, as in "
            f"bd.connect({port}, part := bd.INDEX([{at}]))"
        )


class Ported:
    """Base of all our blocks: ports that know their side, and names that are refused where they do not exist.

    It stands before bdsim's base class in the list of bases, which stays a direct one.
    """

    nin: int
    nout: int
    #: Of the input and the output ports, where they are not open.
    _widths: tuple[tuple[Width, ...], tuple[Width, ...]] | None = None
    #: Shapes of the zeros that stand for nothing at input ports whose widths are left open.
    open_zeros: Mapping[int, tuple[int, ...]] = MappingProxyType({})

    @property
    def inwidths(self) -> tuple[Width, ...]:
        """Widths of vectors and shapes of matrices at the input ports; None where that is left open."""
        return (None,) * self.nin if self._widths is None else self._widths[0]

    @property
    def outwidths(self) -> tuple[Width, ...]:
        """Widths of vectors and shapes of matrices at the output ports; None where that is left open."""
        return (None,) * self.nout if self._widths is None else self._widths[1]

    def port_remedy(self, name: str) -> str:
        """Return how a block of this kind gets a port that this one was not asked for, empty where none has it."""
        return _remedy(self, name)

    def _port_names(self) -> tuple[list[str], list[str]]:
        """Return the names of inputs and outputs, none while the block is being made."""
        own = self.__dict__
        return own.get("_inport_names") or [], own.get("_outport_names") or []

    def __getattr__(self, name: str) -> Any:
        """Return a port by its name."""
        inputs, outputs = self._port_names()
        if name not in inputs and name not in outputs:
            if name.startswith("_"):
                raise AttributeError(name)
            raise UnknownPort(self, name, [*inputs, *outputs])
        plug = NamedPort(self, super().__getattr__(name).port, name)  # type: ignore[misc]
        if (name in inputs) != (name in outputs):
            plug.side = "input" if name in inputs else "output"
        return plug

    def __setattr__(self, name: str, value: Any) -> None:
        """Wire an input port, or set an attribute, which a block or a port cannot be."""
        if name.startswith("_"):  # no port is, and a run sets many of these at its start
            object.__setattr__(self, name, value)
            return
        inputs, outputs = self._port_names()
        if isinstance(value, (Block, Plug)) and name not in inputs:
            unknown = unknown_name(f"block {label(self)!r}: input", name, inputs, UnknownAttribute)
            raise UnknownAttribute(f"{unknown}{_remedy(self, name)}")
        if name in outputs and name not in inputs:
            raise InvalidType(f"block {label(self)!r}: {name!r} is an output, which cannot be set")
        given = self.__dict__.get("_given")
        if given is not None and name not in inputs and not given.may_set(self, name):
            raise unknown_name(f"block {label(self)!r}: attribute", name, given.settable(self), UnknownAttribute)
        super().__setattr__(name, value)

    def _tune(self, *names: str) -> None:
        """Make attributes tunable."""
        for name in names:
            self.add_param(name)  # type: ignore[attr-defined]

    def set_param(self, name: str, newvalue: Any) -> None:
        """Change a tunable parameter."""
        parameters = self.__dict__["_parameters"]
        if name not in parameters:
            raise unknown_name(f"block {label(self)!r}: parameter", name, parameters)
        parameters[name](self, name, newvalue)


class NamedStates(Ported):
    """Base of blocks whose states have names of their own, unless their user named them."""

    _names_own_states = False

    def names_of_states(self) -> Sequence[str]:
        """Return the names of the states, which stand behind that of the block.

        With a point before them where they are signals too, as "plant.elbow.q"; else with a colon, as bdsim's.
        """
        raise NotImplementedError

    def _begin_names(self) -> None:
        """Name the states of the block that is being made, unless its user did."""
        self._names_own_states = self._state_names is None  # type: ignore[has-type]
        self._name_states()

    def _name_states(self) -> None:
        if self._names_own_states:
            self._state_names = [f"{label(self)}{name}" for name in self.names_of_states()]

    def check(self) -> None:
        """Name the states once more: the block may have entered its diagram, or a subsystem another, by now."""
        super().check()  # type: ignore[misc]
        self._name_states()


class Mechanical(Ported):
    """Base of all blocks around a mechanism: the mechanism as a tunable, widths, and errors that name the port."""

    _mech: Mechanism
    _n: int
    #: Whose numbers stand at each input port, for messages.
    _parts: tuple[Sequence[str], ...]
    _stops: Stops | None = None

    def _begin(self, mech: Mechanism, *tunable: str) -> None:
        """Take the mechanism of the block that is being made, and make attributes tunable."""
        self._prepare(mech)
        self._tune(*tunable)

    def _prepare(self, mech: Mechanism) -> None:
        """Keep the mechanism, and make ready what is evaluated."""
        self._mech = mech
        if self._stops is not None:
            self._stops.read(mech)

    def set_param(self, name: str, newvalue: Any) -> None:
        """Change a tunable parameter, or a number of the mechanism by its name, as "forearm.mass"."""
        if name in self.__dict__["_parameters"] or not isinstance(name, str):
            return super().set_param(name, newvalue)
        if "." not in name:
            known = parameter_names(self._mech.links, self._mech.loops)
            numbers = [each for each in known if each.rpartition(".")[2] == name]
            raise unknown_name(f"block {label(self)!r}: parameter", name, numbers or self.__dict__["_parameters"])
        try:
            self.mech = self._mech.with_parameters({name: newvalue})
        except UnknownName as error:
            raise UnknownName(f"block {label(self)!r}: {error}") from None

    @property
    def mech(self) -> Mechanism:
        """The mechanism, with its drive; another one of the same links, joints and drive may take its place."""
        return self._mech

    @mech.setter
    def mech(self, value: Any) -> None:
        new, old = as_mechanism(value), self._mech
        for what in ("names", "actuated", "active"):
            if getattr(new, what) != getattr(old, what):
                is_, was = (", ".join(getattr(m, what)) or "none" for m in (new, old))
                kind = {"names": "joints", "actuated": "actuated joints", "active": "active joints"}[what]
                raise InvalidValue(f"{label(self)}: the ports are those of {kind} {was}; got a mechanism with {is_}")
        if [link.name for link in new.links] != [link.name for link in old.links]:
            raise InvalidValue(f"{label(self)}: expected a mechanism of the same links; make a block for another one")
        self._prepare(new)

    @property
    def gravity(self) -> Array:
        """The acceleration of gravity in the base's frame, (3,) [m/s²]."""
        return self._mech.gravity

    @gravity.setter
    def gravity(self, value: Any) -> None:
        self._prepare(self._mech.with_gravity(value))

    def _motion(self, u: Sequence[Any]) -> tuple[Array, Array]:
        """Return position and rate of all joints, the signals at the first two ports."""
        q, qd = (vector(self, port, u[port], self._n, self._parts[port]) for port in (0, 1))  # type: ignore[arg-type]
        return q, qd

    def _hybrid(
        self, q: Any, qd: Any, u: Any, wrench: Any, base: Any = None, mech: Mechanism | None = None
    ) -> HybridDynamics:
        """Return the hybrid dynamics, of the own mechanism or of that in another drive.

        Stages of a step may leave loops open by a little.
        """
        mech = self._mech if mech is None else mech
        if mech.loops:
            return closed_hybrid(mech, q, qd, u, wrench, base, check=False)
        return mech.hybrid_dynamics(q, qd, u, wrench=wrench, base=base)

    def _ask(self, signals: Sequence[Any], question: Callable[..., Any], *given: Any, **options: Any) -> Any:
        """Return an answer of the mechanism; where a number is not finite, name the port of the signal that is not."""
        try:
            return question(*given, **options)
        except NonFinite:
            refuse_non_finite(self, signals, self._parts)
            raise
