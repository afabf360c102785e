"""What handlers of events change beside the states that they write, put back where no run must find it changed."""

from __future__ import annotations

import copy
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
    generators : bool
        And where random generators stand.
    """

    def __init__(self, blocks: Sequence[Any], remembered: bool = True, generators: bool = True) -> None:
        own = [vars(block) for block in blocks]
        values = [value for each in own for value in each.values()]
        roots = [v for v in values if remembered or not isinstance(v, (FunctionType, MethodType))]
        self._reached = Reached(roots, own, generators)

    def restore(self) -> None:
        """Put it back."""
        self._reached.restore()

    def now(self) -> Held:
        """Return the same as it is now."""
        found = copy.copy(self)
        found._reached = self._reached.now()
        return found

    def take_up(self, before: Held, after: Held) -> None:
        """Take for what was held at first what has changed between two other times, as it is at the second."""
        self._reached.take_up(before._reached, after._reached)


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

    It is put back too where what they are entered for fails. Random generators go on in any case.

    Parameters
    ----------
    blocks : sequence of Block
        As `handling` finds them.
    """

    def __init__(self, blocks: Sequence[Any]) -> None:
        self._blocks = blocks
        #: What they held at first, when they were entered last, and when they were left last.
        self._first: Held | None = None
        self._entered: Held | None = None
        self._left: Held | None = None

    def __enter__(self) -> None:
        if self._first is None:
            self._first = Held(self._blocks, generators=False)
        self._entered = self._first.now()
        if self._left is not None:
            self._first.take_up(self._left, self._entered)

    def __exit__(self, kind: object, *raised: object) -> None:
        assert self._first is not None and self._entered is not None
        if kind is not None:
            self._entered.restore()
        self._left = self._first.now()

    @contextmanager
    def undone(self) -> Iterator[None]:
        """Put back what there was when they were entered first, unless what is done within fails."""
        if self._first is None or self._left is None:
            yield
            return
        now = self._first.now()
        self._first.take_up(self._left, now)
        self._left = now
        self._first.restore()
        try:
            yield
        except BaseException:
            now.restore()
            raise
