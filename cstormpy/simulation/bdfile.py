"""Reads the .bd files of bdsim's editor into a diagram.

bdsim's own reader passes strings to `eval`, so that a file can run any code. Here the values of a file are read as
literals (numbers, lists, texts), unless the user says that the file is to be trusted; those that it reads for its
subsystems, which stand beside it, are trusted as it is.
"""

from __future__ import annotations

import ast
import json
import math
import os
from pathlib import Path
from typing import Any

import numpy as np

from cstormpy.errors import (
    CstormError,
    DiagramError,
    FileFormatError,
    FileReadError,
    InvalidType,
    InvalidValue,
    unknown_name,
)
from cstormpy.file_writer import read_bytes
from cstormpy.simulation.bdfile_values import NO_LITERAL, clock, literal, told
from cstormpy.simulation.block_maker import signature_of

_NAMESPACE = {"np": np, "math": math, "pi": math.pi}
_CALLED = {dict: "an object in braces", list: "a list", str: "a text", int: "a whole number"}
#: Parameters that may be names of files.
_FILES = {"curve", "data", "mech", "model"}
_Kind = type | tuple[type, ...]


def load_bd(bd: Any, path: str | os.PathLike[str], trust: bool = False, within: tuple[Path, ...] = ()) -> Any:
    """Fill an empty diagram with the blocks and wires of a .bd file, and return it.

    Parameters
    ----------
    bd : BlockDiagram
    path : str or Path
    trust : bool
        Evaluate expressions in the file, as bdsim does: only for files of which one knows who wrote them.
    within : tuple of Path
        The files of which this one is a subsystem.

    Raises
    ------
    FileFormatError
        Where the file is no diagram, or holds an expression and is not trusted.
    """
    source = Path(path)
    if source.resolve() in within:
        raise FileFormatError(f"{source}: is a subsystem of itself")
    descriptions, wires = _read(source)
    maker = _Maker(bd, source, trust, (*within, source.resolve()))
    outputs: dict[Any, Any] = {}
    through: dict[Any, Any] = {}
    made: list[tuple[Any, dict[str, Any]]] = []
    try:
        for description in descriptions:
            if description["block_type"] == "CONNECTOR":
                through[description["outputs"][0]["id"]] = description["inputs"][0]["id"]
            elif description["block_type"] != "MAIN":
                block = maker.make(description)
                made.append((block, description))
                for socket in description["outputs"]:
                    outputs[socket["id"]] = (block, socket["index"])
        starts = {wire["end_socket"]: wire["start_socket"] for wire in wires}
        for fed, description in made:
            for socket in description["inputs"]:
                start = _start(source, socket["id"], starts, through)
                if start not in outputs:
                    continue  # an open input; compiling names it
                block, port = outputs[start]
                bd.connect(block[port], fed[socket["index"]])
    except (KeyError, TypeError, IndexError, AssertionError) as error:
        raise FileFormatError(f"{source}: is damaged: {type(error).__name__}: {error}") from error
    return bd


def _start(source: Path, socket: Any, starts: dict[Any, Any], through: dict[Any, Any]) -> Any:
    """Return the output that feeds an input, through all connectors between them."""
    start, passed = starts.get(socket), set()
    while start in through:
        if start in passed:
            raise FileFormatError(f"{source}: is damaged: the connectors with socket {start!r} feed each other")
        passed.add(start)
        start = starts.get(through[start])
    return start


# ---------------------------------------------------------------- what stands in a file


def _read(source: Path) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the blocks and the wires of a file, looked at: each has all that a diagram is made from."""
    try:
        model = json.loads(read_bytes(source))
    except FileReadError:
        raise
    except (ValueError, RecursionError) as error:
        raise FileFormatError(f"{source}: is not a diagram of bdedit: {type(error).__name__}: {error}") from error
    try:
        _expect(model, "the file, which is to hold 'blocks' and 'wires'", dict)
        blocks, wires = _entry(model, "blocks", "the file", list), _entry(model, "wires", "the file", list)
        for number, block in enumerate(blocks, start=1):
            _check_block(block, f"block {number} of {len(blocks)}")
        for number, wire in enumerate(wires, start=1):
            for end in ("start_socket", "end_socket"):
                _entry(wire, end, f"wire {number} of {len(wires)}", (int, str))
    except InvalidType as error:
        raise FileFormatError(f"{source}: is not a diagram of bdedit: {error}") from None
    return blocks, wires


def _check_block(block: Any, what: str) -> None:
    kind = _entry(block, "block_type", what, str)
    if kind == "MAIN":
        return
    if kind != "CONNECTOR":
        what = f"block {_entry(block, 'title', what, str)!r}"
        _named(block.get("parameters"), f"{what}: 'parameters'")
    for side in ("inputs", "outputs"):
        sockets = _entry(block, side, what, list)
        if kind == "CONNECTOR" and not sockets:
            raise InvalidType(f"{what}: {side!r} holds no socket; a connector has one")
        for socket in sockets:
            _entry(socket, "id", f"{what}, {side}", (int, str))
            if kind != "CONNECTOR":
                _entry(socket, "index", f"{what}, {side}", int)


def _entry(holder: Any, name: str, what: str, kind: _Kind) -> Any:
    """Return an entry of a part of the file, which must be there and of that kind."""
    _expect(holder, what, dict)
    if name not in holder:
        raise InvalidType(f"{what} has no {name!r}")
    return _expect(holder[name], f"{what}: {name!r}", kind)


def _expect(value: Any, what: str, kind: _Kind) -> Any:
    if not isinstance(value, kind):
        kinds = kind if isinstance(kind, tuple) else (kind,)
        raise InvalidType(f"{what}: expected {' or '.join(_CALLED[k] for k in kinds)}, got {repr(value)[:40]}")
    return value


def _named(values: Any, what: str) -> dict[str, Any]:
    """Return values by their names, from an object or, as bdedit writes them, from a list of pairs."""
    if not values:
        return {}
    pairs = list(values.items()) if isinstance(values, dict) else values
    if not isinstance(pairs, (list, tuple)) or not all(
        isinstance(pair, (list, tuple)) and len(pair) == 2 and isinstance(pair[0], str) for pair in pairs
    ):
        raise InvalidType(f"{what}: expected pairs of a name and a value, got {repr(values)[:40]}")
    return dict(pairs)


class _Maker:
    """Makes the blocks of one file."""

    def __init__(self, bd: Any, source: Path, trust: bool, within: tuple[Path, ...]) -> None:
        self._bd, self._source, self._trust, self._within = bd, source, trust, within
        self._clocks: dict[Any, Any] = {}

    def make(self, description: dict[str, Any]) -> Any:
        """Return the block that a file describes."""
        bd, source = self._bd, self._source
        kind, title = description["block_type"], description["title"]
        make = bd.__dict__.get(kind)
        if not callable(make) or not kind.isupper():
            raise unknown_name(f"{source}: block {title!r} of type", kind, (k for k in bd.__dict__ if k.isupper()))
        given = told(kind, _named(description.get("parameters"), title))
        try:
            values = {name: self._value(title, name, value) for name, value in given.items()}
            values = {k: v for k, v in values.items() if v is not None}
            values.update(_named(values.pop("blockargs", None), f"block {title!r}: 'blockargs'"))
        except InvalidType as error:
            raise FileFormatError(f"{source}: {error}") from None
        if kind == "SCOPE":
            values.setdefault("nin", description.get("inputsNum", 1))
        for name in _FILES & values.keys():
            values[name] = self._beside(values[name])
        try:
            if kind == "SUBSYSTEM" and isinstance(values.get("subsys"), str):
                values["subsys"] = self._subsystem(values["subsys"])
            if "clock" in signature_of(make.made).parameters:
                values["clock"] = clock(bd, values.get("clock"), self._clocks)
            return make(name=title, **values)
        except CstormError as error:
            unread = [] if self._trust else [name for name, value in values.items() if _is_expression(value)]
            more = f"; {unread[0]} is evaluated with --trust (trust=True) only" if unread else ""
            raise DiagramError(f"{source}: block {title!r}: {error}{more}") from error

    def _subsystem(self, name: str) -> Any:
        """Return the diagram of another file, which is looked for beside this one, or the name of a module."""
        if not name.lower().endswith(".bd"):
            if not self._trust:
                raise InvalidValue(
                    f"subsys: {name!r} is the name of a Python module, which could run any code; give that of a .bd "
                    "file, or --trust (trust=True) if you know who wrote it"
                )
            return name
        path = self._source.parent / name
        return load_bd(self._bd.runtime.blockdiagram(path.stem), path, self._trust, self._within)

    def _beside(self, value: Any) -> Any:
        """Return the path of a file where one of that name stands beside this one; else the value."""
        path = self._source.parent / value if isinstance(value, str) and Path(value).suffix else None
        return str(path) if path is not None and path.is_file() else value

    def _value(self, title: str, name: str, value: Any) -> Any:
        """Return the value of a parameter: itself, or what its text says."""
        if not isinstance(value, str) or name == "clock":
            return value
        text = value[1:] if value.startswith("=") else value
        try:
            return literal(text)
        except NO_LITERAL:
            pass
        where = f"{self._source}: block {title!r}, {name}: {text!r}"
        if self._trust:
            try:
                return eval(text, dict(_NAMESPACE))
            except Exception as error:
                if not value.startswith("="):
                    return value
                raise FileFormatError(f"{where} cannot be evaluated: {type(error).__name__}: {error}") from error
        if value.startswith("="):
            raise FileFormatError(
                f"{where} is an expression, which could run any code; give --trust (trust=True) if you know who wrote "
                "the file"
            )
        return value


def _is_expression(value: Any) -> bool:
    """Tell whether a text is an expression of Python: more than a name, or the name of a file."""
    if not isinstance(value, str):
        return False
    try:
        node = ast.parse(value.strip(), mode="eval").body
    except NO_LITERAL:
        return False
    named = isinstance(node, (ast.Name, ast.Attribute)) and not value.strip().startswith(("np.", "math."))
    return not (named or isinstance(node, ast.Constant))
