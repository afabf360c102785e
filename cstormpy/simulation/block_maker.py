"""The maker of one kind of block, as ``bd.GAIN``: it makes blocks, and says of itself what their class says."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from cstormpy.simulation.block_docs import as_text

OPTIONS = ("name", "inputs", "inames", "onames", "snames", "pos")
"""The arguments that every block takes by name beside its own."""


class _Documentation:
    """The documentation of a maker: of its block; of the class of makers, its own."""

    def __init__(self, own: str | None) -> None:
        self._own = own

    def __get__(self, maker: BlockMaker | None, owner: Any = None) -> str | None:
        if maker is None:
            return self._own
        made = maker.made
        return as_text("\n\n".join(filter(None, map(inspect.getdoc, (made, made.__init__)))))


class BlockMaker:
    """A function that makes blocks of one kind.

    Its signature and its documentation are those of the block's class, which is imported when one of them is asked for:
    a diagram has a hundred kinds and uses five.

    Parameters
    ----------
    kind : str
        As "GAIN".
    make : callable
        Makes a block.
    resolve : callable
        Returns the class of the block.
    """

    __doc__ = _Documentation(__doc__)

    def __init__(self, kind: str, make: Callable[..., Any], resolve: Callable[[str], Any]) -> None:
        self.__name__ = self.__qualname__ = kind
        self._make, self._resolve = make, resolve

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Make a block."""
        return self._make(*args, **kwargs)

    def __get__(self, instance: Any, owner: Any = None) -> BlockMaker:
        """Be a method of what it is an attribute of: `help` then shows it as a function."""
        return self

    def __deepcopy__(self, memo: Any) -> BlockMaker:
        """Stay what it is, as functions do, where a diagram is copied to be a subsystem."""
        return self

    @property
    def made(self) -> Any:
        """The class of the blocks."""
        return self._resolve(self.__name__)

    @property
    def __signature__(self) -> inspect.Signature:
        return signature_of(self.made)

    def __repr__(self) -> str:
        return f"<maker of {self.__name__} blocks>"


def signature_of(made: Any) -> inspect.Signature:
    """Return the arguments that a kind of block is made with, those that all blocks take written out.

    Parameters
    ----------
    made : class
        Of the block.
    """
    parameters = [p for name, p in inspect.signature(made).parameters.items() if name != "bd"]
    own = [p for p in parameters if p.kind is not p.VAR_KEYWORD]
    names = {p.name for p in own}
    if len(own) < len(parameters):
        own += [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None)
            for name in OPTIONS
            if name not in names
        ]
    return inspect.Signature(own)
