"""Reads the .bd files of bdsim's editor into a diagram.

bdsim's own reader passes strings to `eval`, so that a file can run any code. Here the values of a file are read as
literals (numbers, lists, texts), unless the user says that the file is to be trusted.
"""

from __future__ import annotations

import ast
import json
import math
import os
from pathlib import Path
from typing import Any

import numpy as np

from cstormpy.errors import CstormError, DiagramError, FileFormatError, unknown_name

__all__ = ["load_bd"]

_NAMESPACE = {"np": np, "math": math, "pi": math.pi}


def load_bd(bd: Any, path: str | os.PathLike[str], trust: bool = False) -> Any:
    """Fill an empty diagram with the blocks and wires of a .bd file, and return it.

    Parameters
    ----------
    bd : BlockDiagram
    path : str or Path
    trust : bool
        Evaluate expressions in the file, as bdsim does: only for files of which one knows who wrote them.

    Raises
    ------
    FileFormatError
        Where the file is no diagram, or holds an expression and is not trusted.
    """
    source = Path(path)
    try:
        model = json.loads(source.read_text(encoding="utf-8"))
        descriptions, wires = model["blocks"], model["wires"]
        kinds = [d["block_type"] for d in descriptions]
    except OSError as error:
        raise FileFormatError(f"{source}: cannot be read: {error.strerror or error}") from error
    except (ValueError, KeyError, TypeError) as error:
        raise FileFormatError(f"{source}: is not a diagram of bdedit: {type(error).__name__}: {error}") from error
    outputs: dict[Any, Any] = {}
    through: dict[Any, Any] = {}
    try:
        for kind, description in zip(kinds, descriptions, strict=True):
            if kind == "CONNECTOR":
                through[description["outputs"][0]["id"]] = description["inputs"][0]["id"]
            elif kind != "MAIN":
                block = _make(bd, source, description, trust)
                description["block"] = block
                for socket in description["outputs"]:
                    outputs[socket["id"]] = (block, socket["index"])
        starts = {wire["end_socket"]: wire["start_socket"] for wire in wires}
        for description in descriptions:
            for socket in description["inputs"] if "block" in description else ():
                start = starts.get(socket["id"])
                while start in through:
                    start = starts.get(through[start])
                if start not in outputs:
                    continue  # an open input; compiling names it
                block, port = outputs[start]
                bd.connect(block[port], description["block"][socket["index"]])
    except (KeyError, TypeError, IndexError, AssertionError) as error:
        raise FileFormatError(f"{source}: is damaged: {type(error).__name__}: {error}") from error
    return bd


def _make(bd: Any, source: Path, description: dict[str, Any], trust: bool) -> Any:
    kind, title = str(description["block_type"]), str(description["title"])
    make = bd.__dict__.get(kind)
    if not callable(make) or not kind.isupper():
        raise unknown_name(f"{source}: block {title!r} of type", kind, (k for k in bd.__dict__ if k.isupper()))
    values = {k: _value(source, title, k, v, trust) for k, v in dict(description.get("parameters") or {}).items()}
    values = {k: v for k, v in values.items() if v is not None}
    values.update(values.pop("blockargs", None) or {})
    if kind == "SCOPE":
        values.setdefault("nin", description.get("inputsNum", 1))
    try:
        return make(name=title, **values)
    except CstormError as error:
        raise DiagramError(f"{source}: block {title!r}: {error}") from error


def _value(source: Path, title: str, name: str, value: Any, trust: bool) -> Any:
    """Return the value of a parameter: itself, or what its text says."""
    if not isinstance(value, str):
        return value
    text = value[1:] if value.startswith("=") else value
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        pass
    if trust:
        try:
            return eval(text, dict(_NAMESPACE))
        except Exception as error:
            if not value.startswith("="):
                return value
            raise FileFormatError(
                f"{source}: block {title!r}, {name}: {text!r} cannot be evaluated: {type(error).__name__}: {error}"
            ) from error
    if value.startswith("="):
        raise FileFormatError(
            f"{source}: block {title!r}, {name}: {text!r} is an expression, which could run any code; give --trust "
            "(trust=True) if you know who wrote the file"
        )
    return value
