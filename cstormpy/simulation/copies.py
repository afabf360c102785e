"""Copies of diagrams, in which functions of the user name the copies of the blocks that they name.

Python copies no function. One that names blocks of a diagram, as a handler of an event does, would go on writing into
the blocks of the original where that is copied, for a sweep or to be a subsystem: it is copied here.
"""

from __future__ import annotations

import copy
import copyreg
import functools
import types
from collections.abc import Iterator
from typing import Any

from bdsim.components import Block, Plug

from cstormpy.errors import CstormError, DiagramError, shown
from cstormpy.simulation.surroundings import blocks_within, globals_read, held_by, is_of_user, stored_names, surrounding
from cstormpy.simulation.wiring import subsystems

#: What bdsim keeps with a block of its place in a diagram.
_WIRING = ("_bd", "bd", "_parents")
#: What Python makes a copy by that is filled with the attributes, unless a class says otherwise.
_NEW_OBJECT = copyreg.__newobj__  # type: ignore[attr-defined]


def held_functions(block: Any, whole: bool = True) -> Iterator[types.FunctionType]:
    """Yield the functions that a block holds, in what it holds of the user too, and those that these read.

    Not the whole are those alone that it holds itself, as they are or in a list.
    """
    stack, seen = _parts(block), {id(block)}
    while stack:
        value = stack.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        if isinstance(value, types.FunctionType):
            yield value
        if whole or isinstance(value, (types.MethodType, dict, list, tuple, set, frozenset)):
            stack += held_by(value)


def blocks_read(block: Any, *rules: Any) -> list[Any]:
    """Return the other blocks that a block holds, or that its functions or rules read."""
    return [each for each in blocks_within(*_parts(block), *rules) if each is not block]


def _parts(block: Any) -> list[Any]:
    return [value for name, value in vars(block).items() if name not in _WIRING]


class Own:
    """A diagram and its parts, as what functions may name.

    Parameters
    ----------
    bd : BlockDiagram
    """

    def __init__(self, bd: Any) -> None:
        diagrams = [bd, *(block.subsystem for block in subsystems(bd))]
        #: The diagram, its clocks and blocks, and those within its subsystems.
        self.parts = [part for each in diagrams for part in (each, *each.clocklist, *each.blocklist)]
        self._ids = {id(each) for each in self.parts}

    def is_named_by(self, value: Any) -> bool:
        """Tell whether a value is a part or a port of one, holds some, or is a function that reads one."""
        stack, seen = [value], set[int]()
        while stack:
            value = stack.pop()
            if isinstance(value, Plug):
                value = value.block
            if id(value) in self._ids:
                return True
            if id(value) in seen:
                continue
            seen.add(id(value))
            stack += held_by(value)
        return False


class BlockCopies:
    """Copies of the blocks of a diagram, with nothing in them yet; the copy of the diagram finds them in its memo.

    Each names those beside it, so that to copy one with all that it names would go down a long chain, too deep for
    Python. Those of classes that say themselves how they are copied are left to them. It takes what `FunctionCopies`
    takes.
    """

    def __init__(self, bd: Any, memo: dict[int, Any]) -> None:
        plain = [b for b in bd.blocklist if id(b) not in memo and _is_plain(b)]
        self._memo, self._made = memo, [(b, b.__class__.__new__(b.__class__)) for b in plain]
        memo.update({id(block): made for block, made in self._made})

    def fill(self) -> None:
        """Copy what is in the blocks."""
        for block, made in self._made:
            vars(made).update(copy.deepcopy(vars(block), self._memo))


def _is_plain(block: Any) -> bool:
    """Tell whether a block is copied by its attributes, and nothing else."""
    kind = type(block)
    own = any(hasattr(kind, name) for name in ("__deepcopy__", "__setstate__")) or kind in copyreg.dispatch_table
    for name in ("__reduce_ex__", "__reduce__", "__getstate__"):  # of which the last is new in 3.11
        own = own or getattr(kind, name, None) is not getattr(object, name, None)
    if own:  # which may refuse to be asked, as what is not to be pickled does
        return False
    made, given, state, *more = block.__reduce_ex__(4)
    return made is _NEW_OBJECT and given == (kind,) and isinstance(state, dict) and not any(more)


class _Globals(dict[str, Any]):
    """The globals of a copied function: its own, and behind them those of the function as they are when it reads."""

    def __init__(self, behind: dict[str, Any]) -> None:
        of_module = ("__name__", "__package__", "__spec__", "__builtins__")
        super().__init__({name: behind[name] for name in of_module if name in behind})
        self._behind = behind

    def __missing__(self, name: str) -> Any:
        return self._behind[name]

    def __contains__(self, name: object) -> bool:
        return super().__contains__(name) or name in self._behind

    def items(self) -> Any:
        """Return all that the functions of the module see."""
        return {**dict(self._behind.items()), **self}.items()

    def get(self, name: str, default: Any = None) -> Any:
        """Return a global, or what is given where there is none."""
        return self[name] if name in self else default


@functools.cache
def _look_functions_up() -> None:
    """Have `copy.deepcopy` look for functions among what has been copied, as for lists.

    From Python 3.14 on it returns them before, by their type. They are still their own copies unless a memo has others.
    """
    atomic = getattr(copy, "_atomic_types", None)
    if atomic is not None:  # of 3.14 it is a set, of 3.15 a frozenset
        copy._deepcopy_dispatch[types.FunctionType] = lambda function, memo: function  # type: ignore[attr-defined]
        copy._atomic_types = atomic - {types.FunctionType}  # type: ignore[attr-defined]


class FunctionCopies:
    """Copies of the functions of a diagram that name its parts; the copy of the diagram finds them in its memo.

    Parameters
    ----------
    bd : BlockDiagram
        Which is about to be copied.
    memo : dict
        That of the copy.
    """

    def __init__(self, bd: Any, memo: dict[int, Any]) -> None:
        self._own, self._memo, self._cells = Own(bd), memo, dict[int, Any]()
        blocks = [each for each in self._own.parts if isinstance(each, Block)]
        functions = {id(function): function for block in blocks for function in held_functions(block)}
        named = [f for key, f in functions.items() if key not in memo and self._own.is_named_by(f)]
        if named:
            _look_functions_up()
        self._made = [(function, self._copied(function)) for function in named]
        memo.update({id(function): made for function, made in self._made})

    def fill(self) -> None:
        """Let the copies of functions name those of the parts, which are there now."""
        for function, made in self._made:
            made.__defaults__, made.__kwdefaults__ = map(self._copy, (function.__defaults__, function.__kwdefaults__))
            for k, value in surrounding(function).items():
                made.__closure__[k].cell_contents = self._copy(value)  # type: ignore[index]
            if isinstance(made.__globals__, _Globals):
                made.__globals__.update({name: self._copy(v) for name, v in self._named_globals(function).items()})

    def _named_globals(self, function: types.FunctionType) -> dict[str, Any]:
        read = globals_read(function) if is_of_user(str(function.__module__)) else {}
        return {name: v for name, v in read.items() if self._own.is_named_by(v)}

    def _globals(self, function: types.FunctionType) -> dict[str, Any]:
        """Return the globals of a copy: those of its function, where they name no parts."""
        named = self._named_globals(function)
        stored = sorted(stored_names(function.__code__, "GLOBAL")) if named else []
        if stored:
            raise DiagramError(
                f"the diagram cannot be copied: {function.__qualname__!r} names blocks by a global, {min(named)!r}, "
                f"and sets one, {stored[0]!r}; write it within the function that makes the blocks"
            )
        return _Globals(function.__globals__) if named else function.__globals__

    def _copied(self, function: types.FunctionType) -> types.FunctionType:
        filled = surrounding(function)
        cells = [
            self._cells.setdefault(id(cell), types.CellType()) if self._own.is_named_by(filled.get(k)) else cell
            for k, cell in enumerate(function.__closure__ or ())
        ]
        space = self._globals(function)
        made = types.FunctionType(function.__code__, space, function.__name__, None, tuple(cells) or None)
        functools.update_wrapper(made, function)
        del made.__wrapped__  # type: ignore[attr-defined]
        vars(made).update(vars(function))
        return made

    def _copy(self, value: Any) -> Any:
        if not self._own.is_named_by(value):
            return value
        try:
            return copy.deepcopy(value, self._memo)
        except CstormError:
            raise
        except Exception as error:  # a file, a lock: each refuses in its own way
            raise DiagramError(
                f"the diagram cannot be copied: {shown(value)} that its functions read holds blocks, and cannot be "
                f"copied with them: {type(error).__name__}: {error}"
            ) from error
