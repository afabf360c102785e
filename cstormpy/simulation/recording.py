"""Keeps what a run produces: times, states and watched signals, all of them or on a grid."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from bdsim.block import Block
from bdsim.connect import Plug
from numpy.typing import NDArray

from cstormpy.errors import InvalidType, UnknownName, unknown_name

__all__ = ["Recording", "Signal", "find_signals", "signal_name"]

Array = NDArray[np.float64]
_NAME = re.compile(r"(?P<block>[^\[\]]+?)(\[(?P<port>\d+)\]|\.(?P<name>[^.\[\]]+))?$")


def signal_name(block: Any, port: int) -> str:
    """Return how an output is called in a result."""
    names = block._outport_names
    return f"{block.name}.{names[port]}" if names else f"{block.name}[{port}]"


class Signal:
    """An output port that is recorded."""

    def __init__(self, block: Any, port: int) -> None:
        self.block, self.port = block, port
        self.name = signal_name(block, port)
        self.slot = block._outport_slots[port]
        self.key = (id(block), port)


def find_signals(bd: Any, watch: Any, what: str = "watch") -> list[Signal]:
    """Return the signals that a user asks for.

    Parameters
    ----------
    watch : "all", or a list of blocks, plugs and names
        A name is a block's, of which all outputs are meant, or one port's as in ``"plant[1]"`` or ``"plant.qd"``. A
        block stands for its output 0, as in bdsim.
    what : str
        The argument that they were given as, for messages.
    """
    if isinstance(watch, str):
        watch = [b for b in bd.blocklist if b.nout] if watch == "all" else [watch]
        watch = [b[i] for b in watch for i in range(b.nout)] if watch and isinstance(watch[0], Block) else watch
    if isinstance(watch, (Block, Plug)) or not isinstance(watch, Iterable):
        watch = [watch]
    signals = []
    for item in watch:
        signals.extend(_find(bd, item, what))
    return signals


def _find(bd: Any, item: Any, what: str) -> list[Signal]:
    if isinstance(item, str):
        return _by_name(bd, item, what)
    block, port = (item.block, item.port) if isinstance(item, Plug) else (item, 0)
    if not isinstance(block, Block):
        raise InvalidType(
            f"{what}: expected blocks, their ports or names such as 'plant[0]', got {type(item).__name__}"
        )
    ports = [port] if isinstance(port, int) else list(item.portlist)
    if block.blockclass == "subsystem" and hasattr(block, "outport"):
        block = block.outport  # it stands for the subsystem once that is imported
    for p in ports:
        if not 0 <= p < block.nout:
            raise UnknownName(f"{what}: block {block.name!r} has {block.nout} outputs, there is no output {p}")
    return [Signal(block, p) for p in ports]


def _by_name(bd: Any, text: str, what: str) -> list[Signal]:
    block = bd.blocknames.get(text)
    if block is not None:
        return [Signal(block, p) for p in range(block.nout)]
    match = _NAME.match(text)
    block = bd.blocknames.get(match["block"]) if match else None
    if match is None or block is None:
        raise unknown_name(f"{what}: block", match["block"] if match else text, bd.blocknames)
    names = list(block._outport_names or [])
    if match["name"] is not None:
        if match["name"] not in names:
            raise unknown_name(f"{what}: output of block {block.name!r}", match["name"], names)
        return [Signal(block, names.index(match["name"]))]
    port = int(match["port"])
    if port >= block.nout:
        raise UnknownName(f"{what}: block {block.name!r} has {block.nout} outputs, there is no output {port}")
    return [Signal(block, port)]


class Recording:
    """Times, states and signals, sample by sample or many at once.

    The first `watched` signals are those that the user asked for, the others those that panes show.
    """

    def __init__(self, signals: list[Signal], watched: int, panes: list[Any]) -> None:
        self.signals, self.watched, self.panes = signals, watched, panes
        self.last = -math.inf
        #: Samples taken since the last that came many at once.
        self._t: list[float] = []
        self._x: list[Array] = []
        self._y: list[list[Any]] = [[] for _ in signals]
        #: Those before: times, states, and each signal.
        self._parts: list[tuple[Array, Array, list[Any]]] = []

    def add(self, t: float, x: Array) -> None:
        """Keep the present values; copies, because a block may reuse its arrays."""
        for signal, values in zip(self.signals, self._y, strict=True):
            value = signal.slot.value
            values.append(value.copy() if value.__class__ is np.ndarray else value)
        self._x.append(x)
        self._t.append(t)
        self.last = t

    def extend(self, t: Array, x: Array, signals: list[Array]) -> None:
        """Keep many samples: times (N,), states (N, nstates), and the signals, each (N, ...)."""
        if not len(t):
            return
        self._close()
        self._parts.append((t, x, signals))
        self.last = float(t[-1])

    def _close(self) -> None:
        n = len(self._t)  # after an interruption the other lists may be one longer
        if n:
            x = np.array(self._x[:n], dtype=float).reshape(n, self._x[0].size)
            self._parts.append((np.array(self._t), x, [_stack(values[:n]) for values in self._y]))
        self._t, self._x, self._y = [], [], [[] for _ in self.signals]

    def __len__(self) -> int:
        return sum(len(t) for t, _, _ in self._parts) + len(self._t)

    def arrays(self) -> tuple[Array, Array, list[Any]]:
        """Return times (N,), states (N, nstates), and the signals, each (N, ...)."""
        self._close()
        if not self._parts:
            return np.zeros(0), np.zeros((0, 0)), [np.zeros(0) for _ in self.signals]
        if len(self._parts) > 1:
            t, x, y = zip(*self._parts, strict=True)
            self._parts = [(np.concatenate(t), np.concatenate(x), [_joined(parts) for parts in zip(*y, strict=True)])]
        t, x, y = self._parts[0]
        return t, x, list(y)


def _stack(values: list[Any]) -> Any:
    try:
        array = np.array(values)
    except ValueError:  # of changing shape
        array = np.empty(len(values), dtype=object)
        array[:] = values
    return array


def _joined(parts: Sequence[Any]) -> Any:
    """Return samples in pieces as one array."""
    if len({part.shape[1:] for part in parts}) == 1:
        return np.concatenate(parts)
    return _stack([value for part in parts for value in part])
