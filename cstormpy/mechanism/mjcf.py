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

from cstormpy.arrays import Array
from cstormpy.errors import CstormError, FileFormatError, unknown_name
from cstormpy.file_writer import file_path
from cstormpy.linkage.constraints import Coupling
from cstormpy.linkage.loops import Loop
from cstormpy.linkage.tables import inverse_pose
from cstormpy.mechanism import xml_elements
from cstormpy.mechanism.mechanism import Mechanism
from cstormpy.mechanism.mjcf_model import Model
from cstormpy.mechanism.mjcf_settings import CLOSERS, OTHERS
from cstormpy.mechanism.reader_notes import fresh_name, is_text, made
from cstormpy.mechanism.rotations import of_quaternion, unit
from cstormpy.mechanism.xml_elements import Element, named

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
    folders: dict[Element, Path] = {}
    stack = [root]
    while stack:
        element = stack.pop()
        waiting, children = element.children[::-1], []
        while waiting:  # what comes from a file may include another
            child = waiting.pop()
            if child.tag == "include":
                waiting += _included(child, path, seen, folders)[::-1]
            else:
                children.append(child)
        element.children = children
        stack += children


def _included(element: Element, path: Path | None, seen: set[Path], folders: dict[Element, Path]) -> list[Element]:
    """Return what a file holds that is looked for beside the model, or else in the folder of the file that names it."""
    where = f"line {element.line}: <include>"
    name = element.text("file", "model")
    if path is None:
        raise FileFormatError(f"{where}: file: {name[:80]!r} is looked for beside the model's file; give its path")
    there = file_path(path.parent / name, "include")
    beside = file_path(folders.get(element, path.parent) / name, "include")
    if not there.is_file() and beside.is_file():
        there = beside
    if there.resolve() in seen or len(seen) > _MOST_FILES:
        raise FileFormatError(f"{where}: file: {name[:80]!r} is included twice")
    seen.add(there.resolve())
    try:
        content = xml_elements.read(there)
    except CstormError as error:  # which names the file
        raise FileFormatError(f"{where}: {error}") from None
    try:
        root = xml_elements.parse(content)
    except CstormError as error:
        raise FileFormatError(f"{where}: {there}: {error}") from None
    for inner in root.within():
        inner.line = f"{inner.line} of {there.name}"
        if inner.tag == "include":
            folders[inner] = there.parent
    return root.children


_WORLD = "world"


def loops_of(model: Model, root: Element) -> list[Loop | Coupling]:
    """Return a loop for each connect and weld, and a coupling for each joint, in force from the beginning."""
    found: list[Loop | Coupling] = []
    names = {e.attributes["name"] for s in root.all("equality") for e in s.children if "name" in e.attributes}
    for section in root.all("equality"):
        for bare in section.children:
            if bare.tag not in (*CLOSERS, "joint"):
                continue
            # the class of a <joint> within <equality> is that of the constraints, as that of the others is
            of_kind = Element("weld", bare.attributes, bare.line) if bare.tag == "joint" else bare
            element = model.classes.complete(of_kind)
            if element.attributes.get("active") == "false" or not model.settings.closes:
                model.notes.add("constraints that are not active are skipped", named(bare))
                continue
            name = bare.attributes.get("name") or fresh_name(f"{bare.tag}{len(found) + 1}", names)
            whose = f"{bare.tag} {name!r}"
            loop = (_coupling if bare.tag == "joint" else _loop)(model, element, name, whose)
            if loop is None:
                model.notes.add(OTHERS, named(bare))
            elif isinstance(loop, Loop) and _carrier(model, loop.link_a) == _carrier(model, loop.link_b):
                model.notes.add("constraints of bodies with no joint between them are skipped", named(bare))
            else:
                found.append(loop)
    return found


def _carrier(model: Model, body: str | None) -> str | None:
    """Return the body on a joint that carries another one, or is it; None for the world."""
    links = {link.name: link for link in model.links}
    while body is not None and not links[body].joint.dof:
        body = links[body].parent
    return body


def _coupling(model: Model, element: Element, name: str, whose: str) -> Coupling | None:
    """Return what joint 1 follows: q1 - ref1 = a0 + a1 (q2 - ref2); None of what is no straight coupling of two."""
    joint, follows = element.text("joint1", whose), element.attributes.get("joint2", "")
    given = element.numbers("polycoef", whose, 1, 5) if "polycoef" in element.attributes else ()
    shift, ratio, *bent = (*given, *(0.0, 1.0, 0.0, 0.0, 0.0)[len(given) :])
    if not follows or any(bent) or not ratio:
        return None
    at = []
    for key, each in (("joint1", joint), ("joint2", follows)):
        if each not in model.references:
            raise FileFormatError(f"line {element.line}: {whose}: {unknown_name(key, each, model.references)}")
        at.append(model.references[each])
    offset = shift + at[0] - ratio * at[1]
    return made(f"line {element.line}: ", lambda: Coupling(joint, follows, ratio, offset, name=name))


def _loop(model: Model, element: Element, name: str, whose: str) -> Loop:
    free_to_turn = element.tag == "connect" or element.number("torquescale", whose, 1.0) == 0.0
    kind = "position" if free_to_turn else "pose"
    if "site1" in element.attributes or "site2" in element.attributes:
        (a, pose_a), (b, pose_b) = (_site(model, element, key, whose) for key in ("site1", "site2"))
    else:
        a, b = (_body(model, element, key, whose) for key in ("body1", "body2"))
        pose_a, pose_b = _frames(model, element, whose, a, b)
    where = f"line {element.line}: "
    return made(where, lambda: Loop(a, b, pose_a, pose_b, kind, name=name))


def _frames(model: Model, element: Element, whose: str, a: str | None, b: str | None) -> tuple[Array, Array]:
    """Return the frames on both bodies; where the file does not say, they lie together as it draws them."""
    pose_a, pose_b = np.eye(4), np.eye(4)
    between = inverse_pose(model.home[b]) @ model.home[a]  # frame of body 1 in that of body 2
    if element.tag == "connect":
        pose_a[:3, 3] = element.vector("anchor", whose, (0.0, 0.0, 0.0))
        pose_b[:3, 3] = between[:3, :3] @ pose_a[:3, 3] + between[:3, 3]
        return pose_a, pose_b
    pose_b[:3, 3] = element.vector("anchor", whose, (0.0, 0.0, 0.0))
    relative = np.array(element.numbers("relpose", whose, 7)) if "relpose" in element.attributes else np.zeros(7)
    if not relative[3:].any():
        return inverse_pose(between) @ pose_b, pose_b
    # MuJoCo then takes the anchor on body 2 alone; on body 1 the place of "relpose" belongs to it
    pose_a[:3, 3] = relative[:3]
    pose_a[:3, :3] = of_quaternion(unit(relative[3:], whose))
    return pose_a, pose_b


def _body(model: Model, element: Element, key: str, whose: str) -> str | None:
    name = element.attributes.get(key, "") if key == "body2" else element.text(key, whose)
    if name in ("", _WORLD):
        return None
    if name not in model.body_lines:
        raise FileFormatError(f"line {element.line}: {whose}: {unknown_name(key, name, model.body_lines)}")
    return name


def _site(model: Model, element: Element, key: str, whose: str) -> tuple[str | None, Array]:
    name = element.text(key, whose)
    if name not in model.sites:
        raise FileFormatError(f"line {element.line}: {whose}: {unknown_name(key, name, model.sites)}")
    return model.sites[name]
