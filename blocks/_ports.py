"""Ports of the blocks: signals as arrays, the ports that drive a mechanism, options of bdsim."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

import numpy as np
from bdsim.blockdiagram import BlockDiagram
from bdsim.components import Block, Clock, Plug, SampledBlock, SinkBlock, SourceBlock
from numpy.typing import NDArray

from cstormpy import arrays
from cstormpy.arguments import flag
from cstormpy.arrays import Array, Shape, as_slice, real_array
from cstormpy.dynamics.checked_arguments import link_index
from cstormpy.dynamics.loads import Wrenches
from cstormpy.errors import DiagramError, InvalidType, InvalidValue, NonFinite, ShapeError, shown, unknown_name
from cstormpy.graph.arrays import as_numbers, zeros
from cstormpy.mechanism import Mechanism
from cstormpy.simulation.given_names import as_bdsim_writes, given_names

#: Of a vector, of a matrix, or left open.
Width = int | tuple[int, ...] | None

__all__ = [
    "Drive",
    "Width",
    "clock",
    "coordinates",
    "flag",
    "label",
    "link",
    "matrix",
    "numbers",
    "options",
    "port_label",
    "refuse_non_finite",
    "signal",
    "vector",
]

_FLOAT = np.dtype(np.float64)
_SHOWN = 8
"""Number of names that a message lists at most."""


def label(block: Any) -> str:
    """Return what messages call a block: its name, or its type while it is in no diagram."""
    return block.name or str(block.type)


def names_of_motion(mech: Mechanism) -> list[str]:
    """Return the names of a mechanism's states, joint by joint, as "elbow.q"."""
    return [f"{joint}.{kind}" for kind in ("q", "qd") for joint in mech.names]


def port_label(block: Block, port: int) -> str:
    """Return what messages call an input port, as "plant input port 0 'tau'"."""
    names = block._inport_names
    return f"{label(block)} input port {port}" + (f" {names[port]!r}" if names and port < len(names) else "")


def vector(block: Block, port: int, value: Any, n: int, parts: Sequence[str] = (), as_wide: str = "") -> Array:
    """Return the signal at an input port as a vector that the kernels take.

    Parameters
    ----------
    block : Block
        Whose port it is, for messages.
    port : int
        Index of the input port.
    value : array_like
        The signal. A number will do where n is 1.
    n : int
        How many numbers are expected.
    parts : sequence of str
        What each of them belongs to, for messages.
    as_wide : str
        The argument of the block that is as wide as the signal, for messages.

    Returns
    -------
    ndarray, (n,)
        The very array where it already fits: contiguous, of float64.

    Raises
    ------
    ShapeError, InvalidType, DiagramError
        Naming the block and the port.
    """
    if type(value) is np.ndarray and value.shape == (n,) and value.dtype == _FLOAT and value.flags.carray:
        return value
    array = _numbers(block, port, value)
    if array.ndim == 0 and n == 1:
        return array.reshape(1)
    if array.shape != (n,):
        got = f"{array.size}" if array.ndim < 2 else f"an array of shape {array.shape}"
        what = f" ({_some(parts)})" if parts else ""
        raise ShapeError(
            f"{port_label(block, port)}: expected {n} number{'s'[: n != 1]}{what}, got {got}; "
            + (f"make {as_wide} as wide as the signal" if as_wide else "change the signal that is wired to it")
        )
    return array


def signal(block: Block, port: int, value: Any, *each: Any) -> Any:
    """Return the signal at an input port as a number, or as an array of any shape.

    It must be as wide as the numbers `each` that are given for each of its elements, if any of these is a vector.
    """
    for given in each:
        if np.ndim(given):
            return vector(block, port, value, np.size(given))
    if value.__class__ is float:
        return value
    array = _numbers(block, port, value)
    return array if array.ndim else array[()]


def numbers(value: Any, what: str, finite: bool = True) -> Any:
    """Return a number, or a vector of numbers, as floats."""
    array: Array = real_array(value, what, (), ("any",), finite=finite)
    if not array.size or np.isnan(array).any():
        raise InvalidValue(f"{what}: expected a number, or one for each element, got {shown(value)}")
    return array + 0.0 if array.ndim else float(array)


def link(value: Any, mech: Mechanism) -> int:
    """Return the index of a link given by name or index; a negative one counts from the end, as in a list."""
    is_index = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    return link_index(mech, value + len(mech.links) if is_index and -len(mech.links) <= value < 0 else value)


def clock(value: Any, what: str = "clock") -> Any:
    """Return the clock of a sampled block, or refuse what is none."""
    if not isinstance(value, Clock):
        raise InvalidType(f"{what}: expected a clock, as bd.clock(100, 'Hz'), got {shown(value)}")
    return value


def matrix(block: Block, port: int, value: Any, shape: tuple[int, int], what: str, flat: bool = False) -> Array:
    """Return the signal at an input port as a matrix that the kernels take; `what` says what its rows are.

    With `flat` the same numbers in one row, row after row, will do.
    """
    if type(value) is np.ndarray and value.shape == shape and value.dtype == _FLOAT and value.flags.carray:
        return value
    array = _numbers(block, port, value)
    if flat and array.ndim < 2 and array.size == shape[0] * shape[1]:
        return array.reshape(shape)
    if array.shape != shape:
        also = f" or {shape[0] * shape[1]} numbers" if flat else ""
        raise ShapeError(
            f"{port_label(block, port)}: expected shape {shape}{also} ({what}), got {array.shape}; "
            "change the signal that is wired to it"
        )
    return array


def _numbers(block: Block, port: int, value: Any) -> Array:
    if value is None:
        raise DiagramError(f"{port_label(block, port)}: has no value; wire a signal to it")
    if isinstance(value, (bool, np.bool_)):
        value = float(value)
    return as_numbers(value, port_label(block, port))


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:_SHOWN]) + (", …" if len(names) > _SHOWN else "")


class Drive:
    """The input ports that drive a mechanism, and what they make of its signals.

    In this order, each only where it has a width or is asked for: "tau", the torques of the joints that are actuated
    and not active; "acc", the accelerations of the active joints; "wrench", what acts on each link; "base", the motion
    of the base; "select", the number of the drive. Of a mechanism in several drives, torques and accelerations are
    those of any of them.

    Parameters
    ----------
    mech : Mechanism
    wrench, base, select : bool
        Which of these ports there are.
    first : int
        Index of the first of these ports in the block.
    torque, active : list of masks, optional
        The coordinates that go by torque and by acceleration in each drive; those of the mechanism unless given.
    """

    def __init__(
        self,
        mech: Mechanism,
        wrench: bool = False,
        first: int = 0,
        base: bool = False,
        select: bool = False,
        torque: Sequence[NDArray[np.bool_]] | None = None,
        active: Sequence[NDArray[np.bool_]] | None = None,
    ) -> None:
        self.n, self.first, self.wrench, self.base = mech.n, first, wrench, base
        self.active: NDArray[np.bool_] = mech.active_mask
        by_kind = (torque or [mech.actuated_mask & ~self.active], active or [self.active])
        given = [(np.flatnonzero(np.any(masks, axis=0)), masks) for masks in by_kind]
        ports = [(name, *one) for name, one in zip(("tau", "acc"), given, strict=True) if len(one[0])]
        #: (index of the port, coordinates, names of their joints) of each port that carries a part of u
        self.parts = [
            (first + k, as_slice(where), [mech.names[j] for j in where]) for k, (_, where, _) in enumerate(ports)
        ]
        #: Of each drive, for each of these ports: None for all of it, or which signals count for which coordinates.
        self.taken = [
            [None if mask[where].all() else (np.flatnonzero(mask[where]), np.flatnonzero(mask)) for mask in masks]
            for _, where, masks in ports
        ]
        #: The coordinate that each signal drives where it counts, in the order of the ports; and where, in each drive.
        self.signals = np.concatenate([np.zeros(0, dtype=np.int64), *(where for _, where, _ in ports)])
        self.counts = [
            np.concatenate([np.zeros(0, dtype=bool), *(masks[k][where] for _, where, masks in ports)])
            for k in range(len(by_kind[0]))
        ]
        links = tuple(link.name for link in mech.links)
        self._links = links
        #: (name, width, whose numbers stand there) of each port.
        table: list[tuple[str, Width, Sequence[str]]] = [
            (name, len(names), names) for (name, *_), (_, _, names) in zip(ports, self.parts, strict=True)
        ]
        #: A wrench comes as (n_links, 6) or flat, and so does the motion of the base, so that widths are left open.
        table += [("wrench", None, links)] * wrench + [("base", None, ())] * base + [("select", 1, ())] * select
        self.names: tuple[str, ...] = tuple(name for name, _, _ in table)
        #: The shape of the zeros that stand for nothing at a port whose width is left open.
        self.zeros = {
            self.port(name): shape
            for name, shape in (("wrench", (len(links), 6)), ("base", (2, 6)))
            if name in self.names
        }
        self.widths: tuple[Width, ...] = tuple(width for _, width, _ in table)
        self.owners: tuple[Sequence[str], ...] = tuple(owners for _, _, owners in table)

    def port(self, name: str) -> int:
        """Return the index of a port in the block."""
        return self.first + self.names.index(name)

    def u(self, block: Block, signals: Sequence[Any], drive: int = 0) -> Array:
        """Return u, (n,), of the hybrid dynamics from the signals at all input ports of the block, in a drive."""
        parts = self.parts
        if len(parts) == 1 and len(parts[0][2]) == self.n and self.taken[0][drive] is None:
            return vector(block, parts[0][0], signals[parts[0][0]], self.n, parts[0][2])
        given = [(where, vector(block, port, signals[port], len(names), names)) for port, where, names in parts]
        u = zeros(self.n, *(value for _, value in given))
        for (where, value), taken in zip(given, self.taken, strict=True):
            if taken[drive] is None:
                u[where] = value
            else:
                of_signals, of_coordinates = taken[drive]  # type: ignore[misc]
                u[of_coordinates] = value[of_signals]
        return u

    def wrenches(self, block: Block, signals: Sequence[Any]) -> Array | None:
        """Return the wrenches on the links, (n_links, 6), or None without such a port."""
        if not self.wrench:
            return None
        port, rows = self.port("wrench"), (len(self._links), 6)
        return matrix(block, port, signals[port], rows, f"moment and force on {_some(self._links)}", flat=True)

    def loads(self, block: Block, signals: Sequence[Any]) -> Array | None:
        """Return what `wrenches` does or, where the signal knows what keeps its direction in space, (n_links, 21)."""
        wrenches = self.wrenches(block, signals)
        given = signals[self.port("wrench")] if self.wrench else None
        return given.rows if isinstance(given, Wrenches) and given.rows is not None else wrenches

    def motion(self, block: Block, signals: Sequence[Any]) -> tuple[Array, Array] | None:
        """Return the motion (V0, dV0) of the base, or None without such a port: it is at rest."""
        if not self.base:
            return None
        port = self.port("base")
        rows = matrix(block, port, signals[port], (2, 6), "twist of the base (ω, v), and its rate", flat=True)
        return rows[0], rows[1]


def listed_joints(joints: Any) -> Sequence[Any]:
    """Return names or indices of joints as a list, also of a single one."""
    wanted = [joints] if isinstance(joints, (str, int)) else joints
    if not isinstance(wanted, (list, tuple)) or not wanted:
        raise InvalidType("joints: expected a list of names or of indices, at least one")
    return wanted


def coordinates(value: Any, mech: Mechanism, name: str) -> Array:
    """Return a fresh vector of one finite number for each coordinate; zeros for None."""
    if value is None:
        return np.zeros(mech.n)
    shapes: list[Shape] = [(mech.n,), ()] if mech.n == 1 else [(mech.n,)]
    array = real_array(value, name, *shapes, hint=f"the coordinates are {_some(mech.names)}", finite=False)
    array = array.reshape(mech.n).copy()
    arrays.refuse_non_finite(array, name, lambda index: f"joint {mech.names[index[0]]!r}")
    return array


def refuse_non_finite(block: Any, signals: Sequence[Any], parts: Sequence[Sequence[str]]) -> None:
    """Name the port of the first signal that is not finite, and what it belongs to, if there is one.

    For after a failure: nothing looks at every signal before each call. `parts` holds the names of the numbers, or of
    the rows, at each port.
    """
    for port, (signal, names) in enumerate(zip(signals, parts, strict=True)):
        array = _numbers(block, port, signal)
        if not np.isfinite(array).all():
            first = np.argwhere(~np.isfinite(array.reshape(array.size if array.ndim < 2 else len(array), -1)))[0, 0]
            per_name = max(1, array.size // len(names)) if array.ndim < 2 and names else 1
            of = f" of {names[first // per_name]!r}" if names else ""
            raise NonFinite(f"{port_label(block, port)}: the signal{of} is not finite; mend the block that makes it")


_OPTIONS = ("name", "inputs", "inames", "onames", "snames", "pos", "bd", "type")
"""The arguments of any block that bdsim itself understands."""


def options(
    cls: type[Block],
    blockargs: dict[str, Any],
    inputs: Sequence[str] | None = None,
    outputs: Sequence[str] | None = None,
    states: int = 0,
) -> dict[str, Any]:
    """Return the arguments for bdsim's own constructor, with the ports, checked before the block enters a diagram.

    Parameters
    ----------
    cls : type
        Class of the block.
    blockargs : dict
        What the block's own constructor did not take.
    inputs, outputs : sequence of str, optional
        Names of the ports, unless blockargs renames them; the labels of the class unless given.
    states : int
        Number of states that `snames` must name.

    Raises
    ------
    CstormError
        Naming the argument: one that neither the block nor bdsim knows, a name that is taken or no text, as many names
        as there are no ports, ports to be wired that are none.
    """
    for key in blockargs:
        if key not in _OPTIONS:
            raise unknown_name(f"argument of {cls.__name__.upper()}", key, [*_parameters(cls), *_OPTIONS])
    _check_place(blockargs)
    inputs = cls.inlabels or () if inputs is None else inputs
    outputs = cls.outlabels or () if outputs is None else outputs
    made = {**blockargs}
    ports = {"inames": inputs, "onames": outputs}
    for key, names in ports.items():
        made[key] = list(names if made.get(key) is None else given_names(made[key], key, len(names)))
    _check_port_names(cls, made["inames"], made["onames"])
    if made.get("snames") is not None:
        if issubclass(cls, SampledBlock):
            raise InvalidType(f"snames: those of a sampled block are its diagram's, as in bd.{cls.__name__.upper()}(…)")
        made["snames"] = given_names(made["snames"], "snames", states)
    _check_wiring(made, len(inputs))
    if not issubclass(cls, SourceBlock):
        made["nin"] = len(inputs)
    if not issubclass(cls, SinkBlock):
        made["nout"] = len(outputs)
    return made


def _check_place(blockargs: dict[str, Any]) -> None:
    """Check where the block is to be, and what it is called."""
    name, bd, pos = (blockargs.get(key) for key in ("name", "bd", "pos"))
    for key in ("name", "type"):
        text = blockargs.get(key)
        if text is not None and (not isinstance(text, str) or not text.strip()):
            raise InvalidType(f"{key}: expected text that is not empty, got {shown(text)}")
    if bd is not None and not isinstance(bd, BlockDiagram):
        raise InvalidType(f"bd: expected a block diagram of bdsim, got {shown(bd)}")
    if name is not None:
        known = as_bdsim_writes(name)
        if not known:
            raise InvalidValue(f"name: nothing is left of {name!r} once bdsim has taken out what LaTeX would read")
        if bd is not None and known in bd.blocknames:
            raise InvalidValue(f"name: the diagram already has a block {known!r}; give another name")
    if pos is not None and (not isinstance(pos, (tuple, list)) or len(pos) != 2):
        raise InvalidType(f"pos: expected (x, y), got {shown(pos)}")


def _check_port_names(cls: type[Block], inames: Sequence[str], onames: Sequence[str]) -> None:
    """Refuse names that mean something else: bdsim looks a port up by name among outputs before inputs."""
    for name in (*inames, *onames):
        if name.startswith("_") or hasattr(cls, name):
            raise InvalidValue(f"port name {name!r}: is an attribute of the block; choose another")
    for name in set(inames) & set(onames):
        if inames.index(name) != onames.index(name):
            raise InvalidValue(f"port name {name!r}: an input and an output at another place share it; choose another")


def _check_wiring(made: dict[str, Any], count: int) -> None:
    """Check the ports to be wired to the inputs."""
    given = made.get("inputs")
    if given is None:
        return
    wired = [given] if isinstance(given, (Block, Plug)) else given
    if not isinstance(wired, (list, tuple)) or not all(isinstance(port, (Block, Plug)) for port in wired):
        raise InvalidType(f"inputs: expected a block or a port, or a list of them, got {shown(given)}")
    if len(wired) > count:
        raise InvalidValue(f"inputs: expected at most {count}, got {len(wired)}")
    if made.get("bd") is None:
        raise DiagramError("inputs: the block is in no diagram yet; give bd, or wire it with bd.connect")
    for port in wired:
        if port.nout != 1 if isinstance(port, Block) else port.isslice:
            raise DiagramError(f"inputs: {port} is more than one port; choose one of them")
    made["inputs"] = list(wired)


def _parameters(cls: type[Block]) -> list[str]:
    return [name for name in inspect.signature(cls).parameters if name not in ("blockargs", "self")]
