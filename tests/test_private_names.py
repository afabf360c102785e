"""What a class shows of itself is public: no other module reads its private attributes."""

from __future__ import annotations

import argparse
import ast
import re
from pathlib import Path

import bdsim
import pytest

import cstormpy
import cstormpy.blocks
import cstormpy.diagrams

TOPS = [Path(package.__file__).parent for package in (cstormpy, cstormpy.blocks, cstormpy.diagrams)]
#: Of a named tuple, where the underscore keeps them apart from the names of fields, and alike of `values.Value`.
TUPLES = {"_asdict", "_fields", "_replace"}
#: Numba's way to make a kept compilation of what was saved.
NUMBA = {"_rebuild", "_reduce"}
#: Where a private attribute is read off something else than `self`.
OUTSIDE = re.compile(r"(?<!\bself)(?<!\bcls)\._[A-Za-z]")


def nodes(text):
    return list(ast.walk(ast.parse(text)))


def private(name):
    return name.startswith("_") and not name.startswith("__")


def bound(found):
    """Return the names that a file binds: what it defines, assigns, lists as slots or passes by keyword."""
    for node in found:
        kind = type(node)
        if kind in (ast.FunctionDef, ast.ClassDef):
            yield node.name
        elif kind is ast.Attribute and type(node.ctx) is ast.Store:
            yield node.attr
        elif kind is ast.Name and type(node.ctx) is ast.Store:
            yield node.id
        elif kind is ast.keyword and node.arg:
            yield node.arg
        elif kind is ast.Constant and isinstance(node.value, str):
            yield node.value


def read_from_outside(text, foreign):
    """Return the private attributes that are read off something that is neither `self` nor made by this file.

    A file may go through its own classes; an imported module of somebody else's is asked for what it has.
    """
    if not OUTSIDE.search(text):
        return  # most files are not parsed
    found = nodes(text)
    read = [node for node in found if type(node) is ast.Attribute and private(node.attr) and node.attr not in foreign]
    own = set(bound(found)) if read else set()
    roots = {"self", "cls"}
    for node in found if read else ():
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            names = [(alias, getattr(node, "module", None) or alias.name) for alias in node.names]
            roots |= {(a.asname or a.name).partition(".")[0] for a, home in names if not home.startswith("cstormpy")}
    for node in read:
        root = node.value
        while isinstance(root, ast.Attribute):
            root = root.value
        if node.attr not in own and not (isinstance(root, ast.Name) and root.id in roots):
            yield f"{node.lineno}: {ast.unparse(node)}"


def test_no_module_reads_private_attributes_of_another():
    """Of bdsim and of the standard library some are read, that have no public twin."""
    sources = [*Path(bdsim.__file__).parent.glob("*.py"), Path(argparse.__file__)]
    foreign = {name for path in sources for name in re.findall(r"\b_[A-Za-z]\w*", path.read_text("utf-8"))}
    files = [(top, path) for top in TOPS for path in sorted(top.rglob("*.py"))]
    told = [
        f"{path.relative_to(top)}:{what}"
        for top, path in files
        for what in read_from_outside(path.read_text("utf-8"), foreign | TUPLES | NUMBA)
    ]
    assert told == []
    assert len(files) > 400


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("def mass(mech):\n    return mech._tables.mass\n", ["2: mech._tables"]),
        ("def mass(self):\n    return self.mech._tables\n", []),
        ("class Mech:\n    def __init__(self):\n        self._tables = 1\n\ndef mass(m):\n    return m._tables\n", []),
        ("import os\nos._exit(1)\n", []),
        ("from cstormpy.graph import Node\nNode._kind\n", ["2: Node._kind"]),
    ],
)
def test_the_walk_tells_what_is_private_of_another(source, found):
    assert list(read_from_outside(source, set())) == found
