"""Arguments that blocks were made with: numbers that are set later are checked as if they had been among them."""

from __future__ import annotations

import contextlib
import copy
import inspect
from collections.abc import Callable, Iterable
from difflib import get_close_matches
from operator import is_
from typing import Any, NoReturn

import numpy as np
from bdsim.components import Clock, SampledBlock
from bdsim.graphics_block import GraphicsBlock

from cstormpy.errors import CstormError, InvalidValue, UnknownAttribute, unknown_name
from cstormpy.simulation.bdsim_blocks import arguments_of, hold_arrays, more_arguments, with_own_arrays
from cstormpy.simulation.block_arguments import check_arguments, not_made
from cstormpy.simulation.given_names import given_names
from cstormpy.simulation.palette import quiet

#: Of bdsim's blocks those that print of which type they are, or what factors make.
_PRINTING = ("PID", "LTI_SISO", "LTI_SISO_S")
#: What an attribute is that a block keeps of an argument.
_PLAIN = (int, float, str, list, tuple, np.ndarray, np.generic)

#: Numbers of the ports and states of a block, which a diagram is wired for.
_COUNTS = ("nin", "nout", "nstates", "ndstates")


def make_block(
    kind: str, made: Callable[..., Any], args: tuple[Any, ...], named: dict[str, Any], bd: Any = None
) -> tuple[Any, inspect.BoundArguments]:
    """Return a block of a kind, and its arguments, also those that are not given.

    Parameters
    ----------
    kind : str
        As "GAIN".
    made : class
        Of the block.
    args, named
        Its arguments, which are refused where it cannot be made with them.
    bd : BlockDiagram, optional
        Where it is entered.
    """
    try:
        args = tuple(with_own_arrays(made, value) for value in args)
        named = {name: with_own_arrays(made, value) for name, value in named.items()}
        bound = check_arguments(kind, made, args, named)
        changed = arguments_of(kind, made, bound.signature, args, named)
        given = args if changed is named else ()
        more = more_arguments(kind, changed)
        sampled = isinstance(made, type) and issubclass(made, SampledBlock)
        kept = changed.pop("snames", None) if sampled else None
        ports = {key: changed.pop(key, None) for key in ("inames", "onames")} if kind == "SUBSYSTEM" else {}
        with quiet() if kind in _PRINTING else contextlib.nullcontext():
            block = made(*given, bd=bd, **changed)
        if kept is not None:  # bdsim counts the continuous states, of which a sampled block has none
            block._sampled_names = given_names(kept, "snames", block.ndstates)
        if more:
            block.args[: len(more)] = more
        hold_arrays(block)
        _name_ports(block, ports)
        return block, bound
    except CstormError:
        raise
    except Exception as error:
        raise not_made(kind, error) from error


def _name_ports(block: Any, ports: dict[str, Any]) -> None:
    """Name the ports of a subsystem, of which bdsim knows only then how many there are."""
    for key, given in ports.items():
        if given is not None:
            names = given_names(given, key, block.nin if key == "inames" else block.nout)
            taken = next((name for name in names if hasattr(type(block), name) or name in vars(block)), None)
            if taken is not None:
                raise InvalidValue(f"{key}: {taken!r} is an attribute of the block; give another name")
            vars(block)["_inport_names" if key == "inames" else "_outport_names"] = names


class GivenArguments:
    """Arguments that a block was made with, and the numbers that it keeps of them under their names.

    Parameters
    ----------
    kind : str
    block : Block
        Just made.
    bound : BoundArguments
    """

    def __init__(self, kind: str, block: Any, bound: inspect.BoundArguments) -> None:
        own, made = vars(block), type(block)
        self._kind, self._bound = kind, bound
        bound.arguments.get("blockargs", {}).pop("inputs", None)  # a block that is made for a look is not wired
        shipped = made.__module__.partition(".")[0] in ("bdsim", "cstormpy")  # others may set what they like
        #: Arguments that are read only where the block is made: it has no attributes of their names.
        self.only_made_with = {
            name for name in bound.arguments if shipped and name not in own and not _is_settable(made, name)
        }
        #: As they were when they were checked last.
        self.kept = {
            name: own[name]
            for name, given in bound.arguments.items()
            if isinstance(own.get(name), _PLAIN) and (given is None or given is own[name] or _equal(given, own[name]))
        }
        if shipped and not isinstance(block, GraphicsBlock):  # which sets some of its own
            nothing = [name for name, given in bound.arguments.items() if given is None]
            self.kept |= {name: None for name in nothing if name in own and own[name] is None}
        #: Of them those that the block has made an array of, as a weight of its diagonal.
        self._arrays = {
            name: own[name]
            for name, given in bound.arguments.items()
            if name not in self.kept and isinstance(given, _PLAIN) and isinstance(own.get(name), np.ndarray)
        }
        self.kept |= self._arrays
        #: What the block has, where it is one of bdsim's, and how many names it had when they were looked at last.
        self._names = {*own} if made.__module__.startswith("bdsim.") else None
        self.looked_at = len(own)

    def __deepcopy__(self, memo: Any) -> GivenArguments:
        """Give the copy of a block the very arguments; those of the one do not become those of the other."""
        return copy.copy(self)

    def may_set(self, block: Any, name: str) -> bool:
        """Tell whether a block of ours has an attribute; refuse one that is read only where it is made."""
        if name in self.only_made_with:
            self.refuse(block, name)
        return name in vars(block) or hasattr(type(block), name) or not type(block).__module__.startswith("cstormpy.")

    def settable(self, block: Any) -> list[str]:
        """Return the names of what may be set in a block."""
        return [
            name for name in self._bound.signature.parameters if name in vars(block) or _is_settable(type(block), name)
        ]

    def look(self, block: Any) -> None:
        """Refuse a name that has been set in a block of bdsim's and nearly is one of its own: nothing reads it."""
        own, known = vars(block), self.settable(block)
        fresh = [] if self._names is None or isinstance(block, GraphicsBlock) else own.keys() - self._names
        alike = {name.lower() for name in known}
        for name in sorted(fresh):
            if not name.startswith("_") and (name.lower() in alike or get_close_matches(name, known, n=1)):
                del own[name]
                raise unknown_name(
                    f"block {str(block.name)!r} ({self._kind}): attribute", name, known, UnknownAttribute
                )
        self.looked_at = len(own)

    def refuse(self, block: Any, name: str) -> NoReturn:
        """Refuse to set what is read where the block is made, and forget it: nothing would change."""
        vars(block).pop(name, None)
        raise InvalidValue(
            f"block {str(block.name)!r} ({self._kind}): {name!r} is read only where the block is made, and set "
            f"later it changes nothing; make another block, bd.{self._kind}({name}=…)"
        )

    def check(self, block: Any) -> None:
        """Refuse what has been set in a block by the words by which it is refused where the block is made."""
        own = vars(block)
        changed = {name: own[name] for name, value in self.kept.items() if _is_other(own.get(name), value)}
        if changed.keys() & self._arrays:
            again = vars(self._made(type(block), {name: self.kept[name] for name in changed}))
            changed = {name: value for name, value in changed.items() if not _is_other(again[name], self.kept[name])}
        if changed:
            try:
                other = self._made(type(block), changed)
            except CstormError as error:
                if not self._is_of_say(type(block), changed):
                    return
                error.args = (f"{self._kind} {str(block.name)!r}: {str(error).removeprefix(f'{self._kind}: ')}",)
                raise
            self._refuse_another_form(block, other, changed)
            made = vars(other)
            # another one, as the copies of the block share this
            self._bound = inspect.BoundArguments(self._bound.signature, self._bound.arguments | changed)
            own.update({name: made[name] for name in changed})
        self.kept = {name: own[name] for name in self.kept}

    def _refuse_another_form(self, block: Any, other: Any, names: Iterable[str]) -> None:
        """Refuse numbers of which a block is made that would be wired, or evaluated, in another way."""
        how = ""
        if any(getattr(other, count) != getattr(block, count) for count in _COUNTS):
            how = "another number of ports or states"
        elif vars(other).get("_feedthrough") and not vars(block).get("_feedthrough"):
            how = "an output that depends at once on the input"
        if how:
            raise InvalidValue(
                f"block {str(block.name)!r} ({self._kind}): {', '.join(map(repr, names))} set later makes {how}; make "
                f"another block, bd.{self._kind}({', '.join(f'{name}=…' for name in names)})"
            )

    def _made(self, kind: Any, changed: dict[str, Any]) -> Any:
        """Return a block in no diagram, made of other numbers."""
        apart = {name: _apart(value) for name, value in (self._bound.arguments | changed).items()}
        bound = inspect.BoundArguments(self._bound.signature, apart)
        return make_block(self._kind, kind, bound.args, dict(bound.kwargs))[0]

    def _is_of_say(self, kind: Any, names: Iterable[str]) -> bool:
        """Tell whether the block could be made of these numbers as they were: one may stand in the place of another."""
        try:
            self._made(kind, {name: self.kept[name] for name in names})
        except CstormError:
            return False
        return True


def check_numbers(blocks: Iterable[Any]) -> None:
    """Refuse numbers of blocks that have been set to what these cannot be made with."""
    for b in blocks:
        own = b.__dict__
        given = own.get("_given")
        if given is not None:
            if not own.keys().isdisjoint(given.only_made_with):
                given.refuse(b, min(own.keys() & given.only_made_with))
            if len(own) != given.looked_at:
                given.look(b)
            if not all(map(is_, map(own.get, given.kept), given.kept.values())):
                given.check(b)


def _equal(given: Any, kept: Any) -> bool:
    try:
        return bool(np.all(np.equal(given, kept)))
    except (TypeError, ValueError, OverflowError):
        return False


def _is_other(now: Any, before: Any) -> bool:
    return now is not before and not (type(now) is type(before) and np.array_equal(now, before))


def _is_settable(kind: type, name: str) -> bool:
    """Tell whether a class takes what is set under a name."""
    of_class = inspect.getattr_static(kind, name, None)
    return of_class is not None and not callable(of_class) and getattr(of_class, "fset", True) is not None


def _apart(value: Any) -> Any:
    """Return a clock as one of its own, in which a block that is made for a look is not entered."""
    if not isinstance(value, Clock):
        return value
    own = copy.copy(value)
    own.blocklist = []
    return own
