"""Input ports of blocks as inputs of a diagram, moved or held where they enter a block, and nowhere else."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from bdsim.block import Block
from bdsim.connect import Plug

from cstormpy.errors import unknown_name
from cstormpy.simulation.recording import Signal, find_signals

__all__ = ["EnteringSlot", "InputPort", "find_ports"]

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


def find_ports(bd: Any, given: Any, what: str) -> list[Signal]:
    """Return the signals that a user names as inputs: outputs, as in `find_signals`, and input ports by name.

    A name that both an input and an output of a block have is the output's.
    """
    if isinstance(given, (str, Block, Plug)) or not isinstance(given, Iterable) or getattr(given, "ndim", 1) == 0:
        given = [given]
    found: list[Signal] = []
    for item in given:
        port = _input_port(bd, item, what)
        found += [port] if port is not None else find_signals(bd, "all" if _is_all(item) else [item], what)
    return found


def _is_all(item: Any) -> bool:
    return isinstance(item, str) and item == "all"


def _input_port(bd: Any, item: Any, what: str) -> InputPort | None:
    """Return the input port that is named, None for anything else."""
    if isinstance(item, Plug):
        named = getattr(item, "side", "") == "input" and isinstance(item.port, int)
        return InputPort(item.block, item.port) if named else None
    match = _NAMED.match(item) if isinstance(item, str) else None
    block = bd.blocknames.get(match["block"]) if match and item not in bd.blocknames else None
    if match is None or block is None:
        return None
    inputs, outputs = block._inport_names or [], block._outport_names or []
    if match["port"] in outputs:
        return None
    if match["port"] not in inputs:
        raise unknown_name(f"{what}: port of block {block.name!r}", match["port"], [*inputs, *outputs])
    return InputPort(block, inputs.index(match["port"]))
