"""MJCF, the models of MuJoCo, read into mechanisms.

Bodies become links in the order of the file, so that coordinates follow each other as in MuJoCo's qvel; the coordinate
of a hinge or a slide is MuJoCo's qpos. A body of several joints has a link without a mass for each but the last. What
is not read is skipped, and said, each thing once.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from cstormpy.errors import CstormError, FileFormatError
from cstormpy.file_writer import file_path
from cstormpy.mechanism import xml_elements
from cstormpy.mechanism.mechanism import Mechanism
from cstormpy.mechanism.mjcf_loops import loops_of
from cstormpy.mechanism.mjcf_model import Model
from cstormpy.mechanism.reader_notes import is_text
from cstormpy.mechanism.xml_elements import Element

_MOST_FILES = 100


def from_mjcf(
    source: str | os.PathLike[str],
    *,
    gravity: ArrayLike | None = None,
    actuated: Iterable[str] | None = None,
    active: Iterable[str] = (),
) -> Mechanism:
    """Return the mechanism of a model of MuJoCo; `Mechanism.from_mjcf` tells of the arguments."""
    path = None if is_text(source, "MJCF") else file_path(source, "MJCF")
    content: str | bytes = str(source) if path is None else xml_elements.read(path)
    try:
        root = xml_elements.parse(content)
        _include(root, path)
        with np.errstate(all="ignore"):  # what overflows is refused where it would be kept
            model = Model(root)
            loops = loops_of(model, root)
    except CstormError as error:
        raise FileFormatError(f"{'' if path is None else f'{path}: '}{error}") from None
    motors = [name for name in model.motors.joints] if actuated is None else actuated
    fall = model.settings.gravity if gravity is None else gravity
    mech = Mechanism(model.links, fall, motors, active, loops)
    model.notes.say("MJCF" if path is None else path.name)
    return mech


def _include(root: Element, path: Path | None) -> None:
    """Put what <include> names in its place; each file once, as MuJoCo has it."""
    seen = set() if path is None else {path.resolve()}
    stack = [root]
    while stack:
        element = stack.pop()
        waiting, children = element.children[::-1], []
        while waiting:  # what comes from a file may include another
            child = waiting.pop()
            if child.tag == "include":
                waiting += _included(child, path, seen)[::-1]
            else:
                children.append(child)
        element.children = children
        stack += children


def _included(element: Element, path: Path | None, seen: set[Path]) -> list[Element]:
    where = f"line {element.line}: <include>"
    name = element.text("file", "model")
    if path is None:
        raise FileFormatError(f"{where}: file: {name[:80]!r} is looked for beside the model's file; give its path")
    there = file_path(path.parent / name, "include")
    if there.resolve() in seen or len(seen) > _MOST_FILES:
        raise FileFormatError(f"{where}: file: {name[:80]!r} is included twice")
    seen.add(there.resolve())
    try:
        root = xml_elements.parse(xml_elements.read(there))
        for inner in root.within():
            inner.line = f"{inner.line} of {there.name}"
        return root.children
    except CstormError as error:
        raise FileFormatError(f"{where}: {there}: {error}") from None
