"""Loops of MJCF: what <equality> says of bodies that stay together."""

from __future__ import annotations

import numpy as np

from cstormpy.arrays import Array
from cstormpy.errors import FileFormatError, unknown_name
from cstormpy.linkage.loops import Loop
from cstormpy.linkage.tables import inverse_pose
from cstormpy.mechanism.mjcf_model import Model
from cstormpy.mechanism.mjcf_settings import CLOSERS, unit
from cstormpy.mechanism.reader_notes import fresh_name, made
from cstormpy.mechanism.rotations import of_quaternion
from cstormpy.mechanism.xml_elements import Element

_WORLD = "world"


def loops_of(model: Model, root: Element) -> list[Loop]:
    """Return a loop for each connect and weld that is in force from the beginning."""
    found: list[Loop] = []
    names = {e.attributes["name"] for s in root.all("equality") for e in s.children if "name" in e.attributes}
    for section in root.all("equality"):
        for bare in section.children:
            if bare.tag not in CLOSERS:
                continue
            element = model.classes.complete(bare)
            if element.attributes.get("active") == "false" or not model.settings.closes:
                model.notes.add("constraints that are not active are skipped", f"<{bare.tag}> (line {bare.line})")
                continue
            name = bare.attributes.get("name") or fresh_name(f"{bare.tag}{len(found) + 1}", names)
            whose = f"{bare.tag} {name!r}"
            found.append(_loop(model, element, name, whose))
    return found


def _loop(model: Model, element: Element, name: str, whose: str) -> Loop:
    kind = "position" if element.tag == "connect" else "pose"
    if "site1" in element.attributes or "site2" in element.attributes:
        (a, pose_a), (b, pose_b) = (_site(model, element, key, whose) for key in ("site1", "site2"))
    else:
        a, b = (_body(model, element, key, whose) for key in ("body1", "body2"))
        pose_a, pose_b = _frames(model, element, whose, a, b)
    where = f"line {element.line}: "
    loop: Loop = made(where, lambda: Loop(a, b, pose_a, pose_b, kind, name=name))
    return loop


def _frames(model: Model, element: Element, whose: str, a: str | None, b: str | None) -> tuple[Array, Array]:
    """Return the frames on both bodies; where the file does not say, they lie together at q = 0."""
    pose_a, pose_b = np.eye(4), np.eye(4)
    between = inverse_pose(model.home[b]) @ model.home[a]  # frame of body 1 in that of body 2
    if element.tag == "connect":
        pose_a[:3, 3] = element.vector("anchor", whose, (0.0, 0.0, 0.0))
        pose_b[:3, 3] = between[:3, :3] @ pose_a[:3, 3] + between[:3, 3]
        return pose_a, pose_b
    pose_b[:3, 3] = element.vector("anchor", whose, (0.0, 0.0, 0.0))
    relative = np.array(element.numbers("relpose", whose, 7)) if "relpose" in element.attributes else np.zeros(7)
    there = inverse_pose(between)  # body 2 in body 1
    if relative[3:].any():
        there = np.eye(4)
        there[:3, 3] = relative[:3]
        there[:3, :3] = of_quaternion(unit(relative[3:], whose))
    return there @ pose_b, pose_b


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
