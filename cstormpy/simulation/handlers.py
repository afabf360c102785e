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
