"""A diagram that is wired: a method for each kind of block, and mistakes refused where they are made.

bdsim asserts that as many outputs as inputs are connected, and takes the name of an input for the output of the same
number. Here what does not fit is said with the names of blocks and ports, in the line that wires it.
"""

from __future__ import annotations

import functools
import operator
import uuid
from collections.abc import Callable, Iterable
from typing import Any, NoReturn

import numpy as np
from bdsim import BlockDiagram
from bdsim.block import Block
from bdsim.connect import EndPlug, Plug, StartPlug, Wire
from bdsim.exceptions import BlockRuntimeError

from cstormpy.arguments import option, positive
from cstormpy.arrays import real_number
from cstormpy.errors import (
    CstormError,
    DiagramError,
    InvalidType,
    InvalidValue,
    UnknownAttribute,
    UnknownName,
    shown,
    unknown_name,
)
from cstormpy.simulation.block_maker import BlockMaker
from cstormpy.simulation.clocks import DiagramClock
from cstormpy.simulation.copies import BlockCopies, FunctionCopies
from cstormpy.simulation.given_arguments import GivenArguments, make_block
from cstormpy.simulation.recording import named_blocks
from cstormpy.simulation.simulink_names import TOOLBOX, here
from cstormpy.simulation.wiring import compile_anew, describe, raise_block_failed, sliced, written

#: What bdsim gives a diagram when it compiles it.
_COMPILED = frozenset({"statenames", "dstatenames", "plan", "nwires", "nblocks"})


class WiredDiagram(BlockDiagram):
    """A bdsim diagram with blocks of our own, and with errors that name blocks and ports.

    Parameters
    ----------
    name : str
    runtime : Simulation
        What runs it.
    kinds : iterable of str
        Of blocks, as "GAIN".
    resolve : callable
        Returns the class of a kind of block.
    """

    def __init__(self, name: str, runtime: Any, kinds: Iterable[str], resolve: Callable[[str], Any]) -> None:
        super().__init__(name=name)
        self.runtime = runtime
        for kind in kinds:
            setattr(self, kind, self._maker(kind, resolve))
        for kind in {kind for kind in dir(BlockDiagram) if kind.isupper()} - set(kinds):
            setattr(self, kind, functools.partial(_missing, kind))

    def __deepcopy__(self, memo: dict[int, Any]) -> WiredDiagram:
        """Return a copy whose functions name its own blocks, and which makes blocks of its own."""
        functions, blocks = FunctionCopies(self, memo), BlockCopies(self, memo)
        made: WiredDiagram = super().__deepcopy__(memo)
        for kind, maker in self.__dict__.items():
            if isinstance(maker, BlockMaker):
                setattr(made, kind, made._maker(kind, maker.resolve))
        blocks.fill()
        functions.fill()
        return made

    def _maker(self, kind: str, resolve: Callable[[str], Any]) -> Callable[..., Any]:
        """Return what makes one kind of block, whose errors are the block's own and say where."""

        def make(*args: Any, **kwargs: Any) -> Any:
            blocks, wires = len(self.blocklist), len(self.wirelist)
            try:
                block, bound = make_block(kind, resolve(kind), args, kwargs, self)
                block._given = GivenArguments(kind, block, bound)
                return block
            except CstormError as error:
                self._forget(blocks, wires)
                name, words = kwargs.get("name"), str(error)
                if kind not in words or words.startswith(f"{kind}: "):
                    words = words.removeprefix(f"{kind}: ")
                    error.args = (f"{kind}{f' {name!r}' if isinstance(name, str) else ''}: {words}",)
                raise

        return BlockMaker(kind, make, resolve)

    def _forget(self, blocks: int, wires: int) -> None:
        """Take out what bdsim has entered of a block that then could not be made."""
        for block in self.blocklist[blocks:]:
            self.blocknames.pop(block.name, None)
            for clock in self.clocklist:
                clock.blocklist[:] = [b for b in clock.blocklist if b is not block]
        del self.blocklist[blocks:], self.wirelist[wires:]

    def __getattr__(self, name: str) -> Any:
        """Refuse a kind of block that does not exist."""
        if name.startswith("_"):
            raise AttributeError(name)
        if not name.isupper() and callable(getattr(type(self.runtime), name, None)):
            raise UnknownAttribute(f"a diagram has no {name!r}; a simulation has, as in sim.{name}(bd)")
        if name in _COMPILED:
            raise UnknownAttribute(f"a diagram has {name!r} once it is compiled, as by bd.compile() or a run")
        kinds = [key for key in self.__dict__ if key.isupper()]
        if name.upper() in kinds:
            raise UnknownAttribute(f"block {name!r} does not exist; did you mean {name.upper()!r}?")
        if (known := here(name)) is not None:
            raise UnknownAttribute(f"block {name!r} does not exist; {known}")
        wrong = unknown_name("block", name, kinds, UnknownAttribute)
        raise UnknownAttribute(f"{wrong} (a block of your own class is made as MyBlock(..., bd=bd))")

    def _repr_html_(self) -> str:
        """Return what a notebook shows of it: its picture."""
        from cstormpy.report.drawing import diagram_image

        return diagram_image(self)

    def __dir__(self) -> list[str]:
        """Return what can be asked for: of the kinds of blocks, those that can be made."""
        makers = [name for name, value in self.__dict__.items() if isinstance(value, BlockMaker)]
        return sorted({*makers, *(name for name in super().__dir__() if not name.isupper())})

    def __reduce__(self) -> NoReturn:
        """Refuse to be pickled: blocks hold functions of all kinds."""
        raise InvalidType(
            f"diagram {str(self.name)!r} can be copied by copy.deepcopy(bd) alone, and not be sent to another process: "
            "send the function that makes it, as sim.sweep(build, ...) takes it"
        )

    def __getitem__(self, name: int | str) -> Any:
        """Return a block by its name, or by the number that bdsim gave it."""
        known: dict[Any, Any] = named_blocks(self)
        if not isinstance(name, str):
            known = {block.id: block for block in self.blocklist}
        if name not in known:
            raise unknown_name("block", name, named_blocks(self))
        return known[name]

    def add_block(self, block: Any) -> None:
        """Enter a block, whose name no other may have."""
        if block.name == "":
            raise InvalidValue("name: expected some text besides $, \\, ^ and braces, which bdsim leaves out of names")
        if block.name in self.blocknames:
            raise InvalidValue(f"name: the diagram already has a block {block.name!r}; give another name")
        super().add_block(block)
        own = block.__dict__
        own["_parameters"] = _Tunable(block, own["_parameters"])
        # a diagram that is used as a subsystem is copied: by this its maker's blocks are known among the copies
        block._identity = uuid.uuid4().hex

    def clock(self, arg: float, unit: str = "s", offset: float = 0.0, name: str | None = None) -> Any:
        """Return a clock for sampled blocks.

        Parameters
        ----------
        arg : float
            Its period in "s" or "ms", or its rate in "Hz".
        unit : str, optional
        offset : float, optional
            Time of its first tick [s]; one before 0 is done at 0.
        name : str, optional
        """
        positive(arg, "clock")
        unit, offset = option(unit, "clock: unit", ("s", "ms", "Hz")), real_number(offset, "offset")
        clock = DiagramClock(arg, unit, offset, name, self)
        self.clocklist.append(clock)
        return clock

    def compile(
        self,
        subsystem: bool = False,
        doimport: bool = True,
        evaluate: bool = True,
        report: bool = False,
        verbose: bool = False,
    ) -> bool:
        """Prepare for a run, as a run does by itself; the blocks of subsystems stand beside the others then.

        Raises
        ------
        DiagramError, BlockError
            Where a run would raise them.
        """
        said = compile_anew(self, subsystem=subsystem, doimport=doimport, report=report, verbose=verbose)
        if report or verbose:
            print(said, end="")
        if evaluate:
            self.evaluate(self.initial_state_map(), 0.0, sinks=False)
        return self.compiled

    def _handle_block_runtime_error(self, err: BlockRuntimeError) -> NoReturn:
        raise_block_failed(err)

    def connect(self, start: Any, *ends: Any, name: str | None = None) -> None:
        """Connect the outputs of a block, or some of them, to as many inputs.

        Parameters
        ----------
        start : block or port
            A block stands for all its outputs, ``plant[0:2]`` for some, ``plant.q`` or ``plant[0]`` for one.
        *ends : blocks or ports
            A block stands for all its inputs. Each gets all that starts.
        name : str, optional
            What the wires are called.

        Raises
        ------
        DiagramError, InvalidType
            Naming the blocks and ports that do not fit.
        """
        sources = self._ports(start, "output")
        if not ends:
            raise DiagramError(f"connect: {_called(start)} has no end; as in bd.connect({_written(start)}, scope)")
        targets = [self._ports(end, "input") for end in ends]
        for end, inputs in zip(ends, targets, strict=True):
            if len(sources) != len(inputs):
                raise DiagramError(
                    f"connect: {_called(start)} stands for {_counted(start, sources, 'output')}, {_called(end)} for "
                    f"{_counted(end, inputs, 'input')}; choose as many, {_advice(start, sources, end, inputs)}"
                )
        for end, inputs in zip(ends, targets, strict=True):
            for source, target in zip(sources, inputs, strict=True):
                self.add_wire(Wire(StartPlug(_block(start), source), EndPlug(_block(end), target)), name)

    def _ports(self, given: Any, side: str) -> list[int]:
        """Return the numbers of the ports that a block or a plug stands for."""
        if not isinstance(given, (Block, Plug)):
            many, number = isinstance(given, (list, tuple)), (int, float, np.number)
            hint = "; call connect once for each" if many else ""
            if isinstance(given, (*number, np.ndarray)) or (many and all(isinstance(each, number) for each in given)):
                value = "..." if isinstance(given, np.ndarray) else shown(given)
                hint = f"; a value is a block too: bd.CONSTANT({value})"
            elif isinstance(given, str):
                hint = "; a block is called by its variable, as in plant.q, or as bd['plant']"
            raise InvalidType(f"connect: expected a block or one of its ports, got {shown(given)}{hint}")
        block = _block(given)
        if "_inport_names" not in block.__dict__:
            raise DiagramError(
                f"connect: the block of class {type(block).__name__} is not ready; its __init__ must call "
                "super().__init__(**blockargs)"
            )
        if block._bd is None:
            self.add_block(block)
        elif block._bd is not self:
            raise DiagramError(f"connect: {describe(block)} is in another diagram; make it with this one")
        there = getattr(given, "side", side)
        if there != side:
            raise DiagramError(
                f"connect: {_names(block, there)[given.port]!r} is an {there} of {describe(block)}, where a wire "
                f"wants an {side}; there are {', '.join(map(repr, _names(block, side))) or 'none'}"
            )
        return _numbers(given, block.nout if side == "output" else block.nin, side)


class _Tunable(dict[str, Any]):
    """The parameters of a block that can be set; bdsim looks them up without a look whether they are there."""

    def __init__(self, block: Any, parameters: dict[str, Any]) -> None:
        super().__init__(parameters)
        self._block = block

    def __missing__(self, name: str) -> NoReturn:
        block, given = self._block, self._block.__dict__.get("_given")
        own = vars(block) if given is None else given.settable(block)  # of a class of the user's, which declares none
        if name in own and not name.startswith("_"):
            raise UnknownName(f"{describe(block)}: {name!r} is no tunable one; set it by {written(block)}.{name} = …")
        raise unknown_name(f"{describe(block)}: parameter", name, self)


def _missing(kind: str, *_: Any, **__: Any) -> None:
    """Refuse to make a block that bdsim only mentions."""
    ours = f"; here it is {TOOLBOX[kind]}" if kind in TOOLBOX else ""
    raise UnknownAttribute(f"block {kind!r} belongs to a toolbox of bdsim that is not installed here{ours}")


def _numbers(given: Any, count: int, side: str) -> list[int]:
    """Return the port numbers of a block or plug that has so many."""
    if isinstance(given, Block):
        return list(range(count))
    if isinstance(given.port, slice):
        numbers = sliced(given.port, count)
    else:
        try:
            numbers = [operator.index(given.port)]
        except TypeError:
            raise InvalidType(
                f"connect: {describe(given.block)} has no port {given.port!r}; ports are counted from 0, as in "
                f"{_written(given.block)}[0], or named after a dot"
            ) from None
    for number in numbers:
        if not -count <= number < count:
            raise DiagramError(
                f"connect: {describe(given.block)} is wired at {side} port {number}, but it has {count or 'no'} "
                f"{side}{'s'[: count != 1]}, counted from 0"
            )
    return [number % count for number in numbers]


def _block(given: Any) -> Any:
    return given if isinstance(given, Block) else given.block


def _names(block: Any, side: str) -> list[str]:
    names = block._outport_names if side == "output" else block._inport_names
    return list(names or [str(k) for k in range(block.nout if side == "output" else block.nin)])


def _written(given: Any) -> str:
    """Return how a script may write a block or port."""
    text = written(_block(given))
    if isinstance(given, Block):
        return text
    if isinstance(given.port, slice):
        return f"{text}[{given.port.start or 0}:{'' if given.port.stop is None else given.port.stop}]"
    return f"{text}[{given.port}]"


def _called(given: Any) -> str:
    return describe(given) if isinstance(given, Block) else _written(given)


def _counted(given: Any, numbers: list[int], side: str) -> str:
    """Return how many ports, and their names."""
    names = _block(given)._outport_names if side == "output" else _block(given)._inport_names
    shown = f" ({', '.join(names[k] for k in numbers)})" if names and numbers else ""
    return f"{len(numbers) or 'no'} {side}{'s'[: len(numbers) != 1]}{shown}"


def _advice(start: Any, sources: list[int], end: Any, inputs: list[int]) -> str:
    """Return an example of ports that fit."""
    width = min(len(sources), len(inputs))
    if not width:
        return "from a block with outputs to one with inputs"
    slices = [f"[{ports[0]}:{ports[0] + width}]" if width > 1 else f"[{ports[0]}]" for ports in (sources, inputs)]
    return f"as in bd.connect({_written(_block(start))}{slices[0]}, {_written(_block(end))}{slices[1]})"
