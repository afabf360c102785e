"""What handlers of events change beside the states that they write, put back where no run must find it changed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from types import FunctionType, MethodType
from typing import Any

from cstormpy.simulation.bdsim_blocks import handler_of
from cstormpy.simulation.compiled.side_effects import Reached
from cstormpy.simulation.copies import blocks_read


def handling(blocks: Iterable[Any]) -> list[Any]:
    """Return those of some blocks that handle events by themselves, as an EVENT does, and the blocks that they name."""
    own = [block for block in blocks if handler_of(block) is not None]
    return list(dict.fromkeys(each for block in own for each in (block, *blocks_read(block))))


class Held:
    """What blocks hold.

    Parameters
    ----------
    blocks : sequence of Block
    remembered : bool
        And what their functions remember, as in lists outside of them.
    """

    def __init__(self, blocks: Sequence[Any], remembered: bool = True) -> None:
        self._attributes = [(vars(block), dict(vars(block))) for block in blocks]
        held = [value for _, own in self._attributes for value in own.values()]
        self._reached = Reached([v for v in held if remembered or not isinstance(v, (FunctionType, MethodType))])

    def restore(self) -> None:
        """Put it back."""
        for now, held in self._attributes:
            now.clear()
            now.update(held)
        self._reached.restore()


@contextmanager
def kept(blocks: Sequence[Any]) -> Iterator[None]:
    """Put back at the end what blocks hold, and what their functions remember."""
    held = Held(blocks)
    try:
        yield
    finally:
        held.restore()


class Changes:
    """What functions of events change in blocks while they are entered, put back but for what others have set since.

    Parameters
    ----------
    blocks : sequence of Block
        As `handling` finds them.
    """

    def __init__(self, blocks: Sequence[Any]) -> None:
        self._blocks = blocks
        #: What they held at first, and what functions remembered, and what they held when they were left last.
        self._first: list[dict[str, Any]] = []
        self._left: list[dict[str, Any]] = []
        self._reached: Reached | None = None

    def __enter__(self) -> None:
        now = self._held()
        if self._reached is None:
            self._first, self._reached = now, Reached([value for own in now for value in own.values()])
        else:
            self._take_up(now)

    def __exit__(self, *raised: object) -> None:
        self._left = self._held()

    def undo(self) -> None:
        """Put back what there was when they were entered first."""
        if self._reached is None:
            return
        self._take_up(self._held())
        for block, first in zip(self._blocks, self._first, strict=True):
            vars(block).clear()
            vars(block).update(first)
        self._reached.restore()
        self._reached = None

    def _held(self) -> list[dict[str, Any]]:
        return [dict(vars(block)) for block in self._blocks]

    def _take_up(self, now: list[dict[str, Any]]) -> None:
        """Take for what was there at first what has been set since they were left."""
        for own, left, first in zip(now, self._left, self._first, strict=True):
            first |= {name: value for name, value in own.items() if name not in left or left[name] is not value}
