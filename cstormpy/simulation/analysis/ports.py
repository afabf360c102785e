"""Input ports of blocks as inputs of a diagram, moved or held where they enter a block, and nowhere else."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import numpy as np
from bdsim.block import Block
from bdsim.connect import Plug

from cstormpy.errors import UnknownName
from cstormpy.simulation.recording import Signal, find_signals, unknown_port
from cstormpy.simulation.wiring import declared_width, port_numbers

_NAMED = re.compile(r"(?P<block>.+)\.(?P<port>[^.\[\]]+)$")


class InputPort(Signal):
    """An input port of a block as a signal: what arrives at this port, which may go to other blocks too.

    Its key, other than those of outputs, has a number below zero.
    """

    def __init__(self, block: Any, port: int) -> None:
        self.block, self.port = block, port
        self.name = f"{block.name}.{block._inport_names[port]}"
        self.slot = block._inport_slots[port]
        self.key = (id(block), ~port)

    @property
    def port_name(self) -> str:
        """The name of the input port."""
        return str(self.block._inport_names[self.port])


class EnteringSlot:
    """Stands before one input port of a block in place of the slot of the signal that is wired to it.

    Attributes
    ----------
    slot
        What is wired to the port.
    number : optional
        What is added to it, or where `held` takes its place.
    """

    def __init__(self, slot: Any, held: bool) -> None:
        self.slot, self.held = slot, held
        self.number: Any = None

    @property
    def value(self) -> Any:
        """The signal that the block sees."""
        if self.number is None:
            return self.slot.value
        return self.number if self.held else self.slot.value + self.number


def feed_open_inputs(bd: Any, given: Any, what: str) -> None:
    """Wire a CONSTANT of zeros to each input port that a user names as an input and that nothing is wired to.

    Of diagrams that are not compiled yet; what is not there at all is refused before anything else is said of them.
    """
    if getattr(bd, "compiled", True) or not hasattr(bd, "CONSTANT"):
        return
    for item in _one_or_many(given):
        found = _input_port(bd, item, what)
        if found is None:
            continue
        block, port = found
        if any(wire.end.block is block and port in port_numbers(wire.end) for wire in bd.wirelist):
            continue
        shape = declared_width(block, "inwidths", port) or getattr(block, "open_zeros", {}).get(port)
        zero = bd.CONSTANT(np.zeros(shape) if shape else 0.0, name=f"{block.name}_{_port_names(block)[port]}_open")
        bd.connect(zero, block[port])


def _port_names(block: Any) -> list[str]:
    return list(block._inport_names or [f"input{k}" for k in range(block.nin)])


def _one_or_many(given: Any) -> Iterable[Any]:
    one = isinstance(given, (str, Block, Plug)) or not isinstance(given, Iterable) or getattr(given, "ndim", 1) == 0
    return [given] if one else given


def find_ports(bd: Any, given: Any, what: str) -> list[Signal]:
    """Return the signals that a user names as inputs: outputs, as in `find_signals`, and input ports by name.

    A name that both an input and an output of a block have is the output's.
    """
    found: list[Signal] = []
    for item in _one_or_many(given):
        port = _input_port(bd, item, what)
        others = item if isinstance(item, str) and item == "all" else [item]
        found += [InputPort(*port)] if port is not None else find_signals(bd, others, what)
    return found


def find_outputs(bd: Any, given: Any, what: str) -> list[Signal]:
    """Return the signals that a user names as outputs: those of `find_ports`, of an input port what is wired to it."""
    return [arriving(bd, s) for s in find_ports(bd, given, what)]


def arriving(bd: Any, signal: Signal) -> Signal:
    """Return the output that is wired to an input port, under the name of the port; an output itself."""
    if not isinstance(signal, InputPort):
        return signal
    block, port = next(
        (b, port) for b in bd.blocklist for port, slot in enumerate(b._outport_slots) if slot is signal.slot
    )
    found = Signal(block, port)
    found.name = signal.name
    return found


def _input_port(bd: Any, item: Any, what: str) -> tuple[Any, int] | None:
    """Return the block and the number of the input port that is named, None for anything else."""
    if isinstance(item, Plug):
        named = getattr(item, "side", "") == "input" and isinstance(item.port, int)
        return (item.block, item.port) if named else None
    match = _NAMED.match(item) if isinstance(item, str) else None
    block = bd.blocknames.get(match["block"]) if match and item not in bd.blocknames else None
    if match is None or block is None:
        return None
    inputs, outputs = block._inport_names or [], block._outport_names or []
    if match["port"] in outputs:
        return None
    if match["port"] not in inputs:
        unknown = unknown_port(f"{what}: port of block {block.name!r}", match["port"], [*inputs, *outputs], block.name)
        remedy = getattr(block, "port_remedy", None)
        raise UnknownName(f"{unknown}{remedy(match['port'])}") if remedy else unknown
    return block, inputs.index(match["port"])
