"""Compiles a bdsim diagram, and says in one sentence what is wrong with its wiring.

bdsim prints what it finds and raises an error that does not say it; open ports, ports driven twice and algebraic loops
are looked for here, so that the message can name the ports and what to do.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NoReturn

from bdsim import BlockDiagram
from bdsim.block import SubsystemBlock
from bdsim.exceptions import BlockRuntimeError

from cstormpy.arrays import as_floats
from cstormpy.errors import BlockError, CstormError, DiagramError, InvalidType, reason_of, shown
from cstormpy.simulation.clocks import take_clocks
from cstormpy.simulation.given_names import given_names
from cstormpy.simulation.named_states import continuous_parts, distinct_names
from cstormpy.simulation.palette import quiet


def describe(block: Any) -> str:
    """Return how messages call a block: by its name, and by its type where the name does not say it."""
    kind = type(block).__name__.upper()
    name = block.name if block.name is not None else kind.lower()
    return f"block {name!r}" if str(name).upper().startswith(kind) else f"block {name!r} ({kind})"


def written(block: Any) -> str:
    """Return how a script may write a block: as a name, without the number that bdsim gives."""
    return re.sub(r"\W", "_", re.sub(r"\.\d+$", "", str(block.name)))


def _port(names: Any, port: int) -> str:
    return f"port {port} ({names[port]!r})" if names and port < len(names) else f"port {port}"


def input_name(block: Any, port: int) -> str:
    """Return how messages call an input port."""
    return f"input {_port(block._inport_names, port)} of {describe(block)}"


def output_name(block: Any, port: int) -> str:
    """Return how messages call an output port."""
    return f"output {_port(block._outport_names, port)} of {describe(block)}"


def port_numbers(plug: Any) -> list[int]:
    """Return the numbers of the ports that an end of a wire stands for."""
    return list(plug.portlist) if plug.isslice else [plug.port or 0]


def sliced(ports: slice, count: int) -> list[int]:
    """Return the numbers of the ports that a slice stands for, of so many, as of a list; and those that are not there.

    >>> sliced(slice(-2, None), 3), sliced(slice(1, 5), 3)
    ([1, 2], [1, 2, 3, 4])
    """
    return list(range(*ports.indices(max(count, ports.start or 0, ports.stop or 0))))


def refuse_no_diagram(bd: Any, what: str) -> None:
    """Refuse what is no diagram."""
    if not hasattr(bd, "blocklist"):
        raise InvalidType(f"{what}: expected a diagram from sim.blockdiagram(), got {shown(bd)}")


def compile_diagram(bd: Any) -> None:
    """Compile a diagram for running.

    Raises
    ------
    DiagramError
        Where an input is open or driven twice, where function blocks form a loop, where a block refuses its
        parameters, or where the diagram is empty.
    """
    if not (bd.compiled and bd.nblocks == len(bd.blocklist) and bd.nwires == len(bd.wirelist)):
        compile_anew(bd)


def compile_anew(bd: Any, **options: Any) -> str:
    """Compile a diagram as `compile_diagram` does, also one that is compiled, without a look at any output.

    Returns
    -------
    str
        What bdsim prints.
    """
    if not bd.blocklist:
        raise DiagramError(f"diagram {bd.name!r}: has no blocks; make some, as in bd.GAIN(2)")
    _check_ports(bd)
    _check_states(bd)
    inside = subsystems(bd)
    try:
        with quiet() as printed:
            BlockDiagram.compile(bd, evaluate=False, **options)
    except CstormError:
        raise
    except (RuntimeError, AssertionError, ValueError, TypeError) as error:
        raise _explain(bd, error, printed.getvalue()) from error
    finally:  # where it fails, the blocks of subsystems may stand in the diagram by now
        if not subsystems(bd):
            remember_subsystems(inside)
        if not bd.blocknames:
            bd.blocknames = {block.name: block for block in bd.blocklist}
    for block in bd.blocklist:
        block._bd.nstates = bd.nstates  # a block of a subsystem asks that whether a run has any
    names = list(bd.statenames)
    bd.statenames[:] = distinct_names((b, [names[k] for k in at]) for b, at in continuous_parts(bd))
    take_clocks(bd)
    bd.nblocks, bd.nwires = len(bd.blocklist), len(bd.wirelist)
    return printed.getvalue()


def raise_block_failed(error: BlockRuntimeError) -> NoReturn:
    """Raise our error for a block that failed where bdsim asked it."""
    if isinstance(error.cause, CstormError):
        raise error.cause from None
    raise BlockError(f"{describe(error.block)}, {error.operation}: {reason_of(error.cause)}") from error.cause


def subsystems(bd: Any) -> list[Any]:
    """Return the subsystems of a diagram, also those within others; none of a compiled one, where they are replaced."""
    found = [block for block in bd.blocklist if isinstance(block, SubsystemBlock)]
    return found + [inner for block in found for inner in subsystems(block.subsystem)]


def clocks_of(bd: Any) -> list[Any]:
    """Return the clocks of a diagram, and of one that is not compiled yet those of its subsystems."""
    return [*bd.clocklist, *(clock for block in subsystems(bd) for clock in block.subsystem.clocklist)]


def remember_subsystems(inside: list[Any]) -> None:
    """Let each OUTPORT say which subsystem's outputs it has, once the subsystem itself is replaced by its blocks."""
    for block in inside:
        block.outport._outside = (str(block.name), block._outport_names, getattr(block, "_identity", None))


def _check_ports(bd: Any, path: str = "") -> None:
    """Refuse inputs that are open or driven by two wires, also inside subsystems."""
    driven: dict[tuple[int, int], Any] = {}
    for wire in bd.wirelist:
        _check_exists(wire.start, wire.start.block.nout, "output", path)
        _check_exists(wire.end, wire.end.block.nin, "input", path)
        _check_widths(wire, path)
        for port in port_numbers(wire.end):
            key = (id(wire.end.block), port)
            if key in driven and not wire.end.isslice:
                first, second = driven[key], wire.start
                raise DiagramError(
                    f"{input_name(wire.end.block, port)} is driven twice, by "
                    f"{output_name(first.block, first.port or 0)} and by "
                    f"{output_name(second.block, second.port or 0)}; add the signals with a SUM block"
                )
            driven[key] = wire.start
    for block in bd.blocklist:
        for port in range(block.nin):
            if (id(block), port) not in driven and not _is_boundary(block):
                raise DiagramError(
                    f"{path}{input_name(block, port)} is not connected; connect it, as in "
                    f"bd.connect(source, {written(block)}[{port}]), or feed it with bd.CONSTANT(...)"
                )
        if isinstance(block, SubsystemBlock) and not bd.compiled:
            _check_ports(block.subsystem, f"in subsystem {block.name!r}: ")


def _check_states(bd: Any, path: str = "") -> None:
    """Refuse blocks without any port or without a next state, and own ones whose initial state does not fit."""
    for block in bd.blocklist:
        what = f"{path}{describe(block)}"
        if isinstance(block, SubsystemBlock):
            if not bd.compiled:
                _check_states(block.subsystem, f"in subsystem {block.name!r}: ")
            continue
        if not block.nin and not block.nout and not _is_boundary(block):
            raise DiagramError(f"{what}: has neither inputs nor outputs; its class says how many: nin, nout")
        if block.blockclass == "sampled" and not hasattr(block, "next"):
            raise DiagramError(f"{what}: its class has no method next(self, t, u, x), which returns the next state")
        if block.blockclass == "sampled" and not block.ndstates:
            raise DiagramError(
                f"{what}: has no states, which a sampled block needs; begin with x0=[0.0], and let next() return x"
            )
        start = getattr(block, "_x0", None)
        of_user = type(block).__module__.partition(".")[0] not in ("bdsim", "cstormpy")
        if block.blockclass != "continuous" or start is None or not of_user:
            continue
        if block._state_names is not None:
            given_names(block._state_names, f"{what}: snames", block.nstates)
        shape = as_floats(start, f"{what}: _x0, its initial state").shape
        if shape != (block.nstates,):
            raise DiagramError(
                f"{what}: has nstates={block.nstates}, but its initial state _x0 has the shape {shape}; "
                "make it an array of one number for each state"
            )


def _check_exists(plug: Any, count: int, kind: str, path: str) -> None:
    port = max(port_numbers(plug), default=0)
    if port >= count:
        raise DiagramError(
            f"{path}{describe(plug.block)} is wired at {kind} port {port}, but it has {count or 'no'} {kind}s, "
            "counted from 0"
        )


def _check_widths(wire: Any, path: str) -> None:
    """Refuse a wire between two ports of different declared widths."""
    source, target = wire.start, wire.end
    given, wanted = _shape(source, "outwidths"), _shape(target, "inwidths")
    if given is not None and wanted is not None and given != wanted:
        raise DiagramError(
            f"{path}{output_name(source.block, source.port or 0)} carries {_numbers(given)}, but "
            f"{input_name(target.block, target.port or 0)} takes {_numbers(wanted)}; are both blocks for the same "
            "mechanism, with the same drive?"
        )


def _shape(plug: Any, side: str) -> tuple[int, ...] | None:
    return None if plug.isslice else declared_width(plug.block, side, plug.port or 0)


def declared_width(block: Any, side: str, port: int) -> tuple[int, ...] | None:
    """Return the shape of a signal as a block declares it, or None where it is left open.

    Parameters
    ----------
    side : {"inwidths", "outwidths"}
    """
    widths = getattr(block, side, None)
    width = widths[port] if widths else None
    return (width,) if isinstance(width, int) else width


def _numbers(shape: tuple[int, ...]) -> str:
    if len(shape) > 1:
        return f"the shape {shape}"
    return "1 number" if shape == (1,) else f"{shape[0]} numbers"


def _is_boundary(block: Any) -> bool:
    """Tell whether a block is the inside of a subsystem's ports, which are wired when it is imported."""
    return type(block).__name__ in ("InPort", "OutPort")


def _explain(bd: Any, error: Exception, printed: str) -> CstormError:
    """Return the error for what bdsim refused."""
    cause: BaseException | None = error.__cause__ or error
    if isinstance(cause, CstormError):
        return cause
    loop = next(_loops(bd), None)
    if loop is not None:
        path = " -> ".join(describe(block) for block in loop)
        first = loop[0]
        return DiagramError(
            f"algebraic loop: {_loop_ports(bd, loop)}; each of these outputs depends at once on the next, so that none "
            f"can be computed first. Break it with a block that has a state, such as bd.INTEGRATOR() or bd.LTI_SISO() "
            f"with a short lag, or with a sampled one, such as bd.ZOH(clock), between {path.split(' -> ')[0]} and "
            f"{describe(loop[1]) if len(loop) > 1 else describe(first)}"
        )
    said = [line.strip() for line in printed.splitlines() if "ERROR" in line or "error" in line]
    detail = "; ".join(dict.fromkeys(said)) or f"{type(cause).__name__}: {cause}"
    return DiagramError(f"diagram {bd.name!r} does not compile: {detail}")


def _loop_ports(bd: Any, loop: list[Any]) -> str:
    """Return the path of a loop, port by port."""
    parts = []
    for source, target in zip(loop, [*loop[1:], loop[0]], strict=True):
        wire = next(w for w in bd.wirelist if w.start.block is source and w.end.block is target)
        parts.append(f"{output_name(source, wire.start.port or 0)} -> {input_name(target, wire.end.port or 0)}")
    return ", ".join(parts)


def _passing(bd: Any) -> set[Any]:
    """Return the blocks whose outputs depend at once on their inputs."""
    return {b for b in bd.blocklist if b.blockclass in ("function", "subsystem") or (b.hasstate and b._feedthrough)}


def is_sampled(block: Any) -> bool:
    """Tell whether a clock samples what a block gives, or what depends on it at once."""
    passing, seen, stack = _passing(block.bd), {block}, [block]
    while stack:
        source = stack.pop()
        for wire in block.bd.wirelist:
            end = wire.end.block
            if wire.start.block is source and end not in seen:
                if end.blockclass == "sampled":
                    return True
                seen.add(end)
                stack += [end] * (end in passing)
    return False


def _loops(bd: Any) -> Iterator[list[Any]]:
    """Yield loops of blocks whose outputs depend at once on their inputs, each in the direction of its signals."""
    passing = _passing(bd)
    follows: dict[Any, list[Any]] = {b: [] for b in passing}
    for wire in bd.wirelist:
        if wire.start.block in passing and wire.end.block in passing:
            follows[wire.start.block].append(wire.end.block)
    done: set[Any] = set()
    for root in follows:
        if root in done:
            continue
        path, stack = [root], [iter(follows[root])]
        while stack:
            child = next(stack[-1], None)
            if child is None:
                stack.pop()
                done.add(path.pop())
            elif child in path:
                yield path[path.index(child) :]
            elif child not in done:
                path.append(child)
                stack.append(iter(follows[child]))
