"""Mechanisms as dictionaries and as JSON files.

A file is an object with "format", "version", "links" and, where they differ from what a Mechanism has unless said,
"gravity", "actuated", "active" and "loops". A link is an object with the names of Link's arguments as keys, so is a
loop, a link's joint one with a "type" and the names of the joint's arguments: lists where there is an entry for each
coordinate. What is missing has the default of the constructor. Numbers are written with as many digits as bring back
the same float.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cstormpy.errors import CstormError, FileFormatError, InvalidValue, unknown_name
from cstormpy.file_writer import file_path
from cstormpy.json_files import brief, equals, list_of, parse, read, write
from cstormpy.linkage.constraints import Constraint, Coupling
from cstormpy.linkage.joints import JOINT_TYPES, Joint, Limits
from cstormpy.linkage.links import Link
from cstormpy.linkage.loops import Loop
from cstormpy.linkage.shapes import SHAPES, Shape
from cstormpy.mechanism.mechanism import Mechanism

FORMAT = "cstormpy mechanism"
VERSION = 1
_KEYS = ("format", "version", "gravity", "actuated", "active", "links", "loops")
_SHAPES = {"com": (3,), "pose": (4, 4), "inertia": (3, 3)}
_TEXTS = ("name", "parent")
_LIMITS = ("position", "velocity", "torque")
_OTHER_ENDINGS = (".urdf", ".xacro", ".mjcf", ".xml")


def to_dict(mechanism: Mechanism) -> dict[str, Any]:
    """Return the content of a mechanism as dictionaries, lists, numbers and text; defaults are left out."""
    content: dict[str, Any] = {"format": FORMAT, "version": VERSION, "gravity": mechanism.gravity.tolist()}
    if mechanism.actuated != mechanism.names:
        content["actuated"] = _driven(mechanism, mechanism.actuated_mask)
    if mechanism.active:
        content["active"] = _driven(mechanism, mechanism.active_mask)
    content["links"] = [_link_dict(link) for link in mechanism.links]
    if mechanism.loops:
        for loop in mechanism.loops:
            if not isinstance(loop, (Loop, Coupling)):
                raise InvalidValue(
                    f"constraint {loop.name!r}: is said by a function, which a file does not hold; save "
                    "mech.replace(loops=[...]) without it, and give it again where the file is read"
                )
        content["loops"] = [_loop_dict(loop) for loop in mechanism.loops]
    return content


def from_dict(content: Mapping[str, Any]) -> Mechanism:
    """Return the mechanism of a dictionary as `to_dict` returns it.

    Raises
    ------
    FileFormatError
        Naming the place of what is wrong, as "links[2].joint.axis".
    """
    # Before the keys: of a foreign file there is nothing else to say, and a later version may have other keys.
    if not isinstance(content, Mapping) or not equals(content.get("format"), FORMAT):
        raise FileFormatError(f'is not a mechanism: expected an object with "format": "{FORMAT}"')
    version = content.get("version")
    if not equals(version, VERSION):
        raise FileFormatError(f"version: expected {VERSION}, got {brief(version)}; another cstormpy may read it")
    _check_keys(content, "", _KEYS, ("links",))
    options: dict[str, Any] = {}
    if "gravity" in content:
        options["gravity"] = _numbers(content["gravity"], "gravity", (3,))
    for drive in ("actuated", "active"):
        if drive in content:
            options[drive] = [_text(n, f"{drive}[{k}]") for k, n in enumerate(list_of(content[drive], drive))]
    links = [_read_link(entry, f"links[{k}]") for k, entry in enumerate(list_of(content["links"], "links"))]
    if "loops" in content:
        options["loops"] = [
            _read_loop(entry, f"loops[{k}]") for k, entry in enumerate(list_of(content["loops"], "loops"))
        ]
    return _made("", lambda: Mechanism(links, **options))


def loads(text: str | bytes) -> Mechanism:
    """Return the mechanism of a JSON text."""
    return from_dict(parse(text))


def load(path: str | os.PathLike[str]) -> Mechanism:
    """Return the mechanism of a JSON file; raises as `json_files.read` does."""
    return read(path, from_dict)


def save(mechanism: Mechanism, path: str | os.PathLike[str]) -> None:
    """Write a JSON file, whole or not at all; a name that readers take for another format is refused."""
    name = file_path(path)
    if name.suffix.lower() in _OTHER_ENDINGS:
        raise InvalidValue(
            f"{name}: what is saved is JSON, which ends in .json; mech.to_urdf() and mech.to_mjcf() return their texts"
        )
    write(path, to_dict(mechanism))


def _link_dict(link: Link) -> dict[str, Any]:
    content: dict[str, Any] = {"name": link.name, "parent": link.parent, "joint": _joint_dict(link.joint)}
    if not np.array_equal(link.pose, np.eye(4)):
        content["pose"] = link.pose.tolist()
    if link.mass:
        content["mass"] = link.mass
    for key in ("com", "inertia"):
        if getattr(link, key).any():
            content[key] = getattr(link, key).tolist()
    if link.allow_impossible:
        content["allow_impossible"] = True
    if link.shapes:
        content["shapes"] = [_shape_dict(shape) for shape in link.shapes]
    return content


def _shape_dict(shape: Shape) -> dict[str, Any]:
    content: dict[str, Any] = {"kind": shape.kind, "size": shape.size.tolist()}
    if not np.array_equal(shape.pose, np.eye(4)):
        content["pose"] = shape.pose.tolist()
    return content if shape.colour is None else {**content, "colour": shape.colour.tolist()}


def _loop_dict(loop: Loop | Constraint) -> dict[str, Any]:
    if not isinstance(loop, Loop):
        return {key: getattr(loop, key) for key in Coupling._fields}
    content: dict[str, Any] = {"name": loop.name, "link_a": loop.link_a, "link_b": loop.link_b}
    for key, pose in (("pose_a", loop.pose_a), ("pose_b", loop.pose_b)):
        if not np.array_equal(pose, np.eye(4)):
            content[key] = pose.tolist()
    return {**content, "directions": loop.kind or list(loop.directions)}


def _read_loop(content: object, place: str) -> Loop | Coupling:
    if isinstance(content, Mapping) and "joint" in content:
        entry = _check_keys(content, place, Coupling._fields, ("joint", "other"))
        said: dict[str, Any] = {}
        for key, value in entry.items():
            where = f"{place}.{key}"
            said[key] = _numbers(value, where, ()) if key in ("ratio", "offset") else _text(value, where)
        return _made(place, lambda: Coupling(**said))
    entry = _check_keys(content, place, Loop._fields, ("link_a", "link_b"))
    options: dict[str, Any] = {}
    for key, value in entry.items():
        where = f"{place}.{key}"
        if key in ("pose_a", "pose_b"):
            options[key] = _numbers(value, where, (4, 4))
        elif key == "directions" and not isinstance(value, str):
            options[key] = list_of(value, where)
        else:
            options[key] = None if value is None and key != "name" else _text(value, where)
    return _made(place, lambda: Loop(**options))


def _driven(mechanism: Mechanism, mask: NDArray[np.bool_]) -> list[str]:
    """Return the names of the joints whose coordinates are masked."""
    return [link.joint_name for link in mechanism.links if mask[mechanism.coordinates(link.joint_name)].any()]


def _joint_dict(joint: Joint) -> dict[str, Any]:
    return {"type": joint.kind, **{key: _plain(value) for key, value in joint.content().items()}}


def _plain(value: Any) -> Any:
    """Return the value of a joint's field as lists, numbers and text."""
    if isinstance(value, Joint):
        return _joint_dict(value)
    if isinstance(value, Limits):
        return {k: _open_sides(v) for k in value._fields if (v := getattr(value, k)) is not None}
    if isinstance(value, tuple):
        return [_plain(entry) for entry in value]
    return value.tolist() if isinstance(value, np.ndarray) else value


def _open_sides(pair: tuple[float, float]) -> list[float | None]:
    return [None if math.isinf(side) else side for side in pair]


def _read_link(content: object, place: str) -> Link:
    entry = _check_keys(content, place, Link._fields, ("name",))
    options: dict[str, Any] = {}
    for key, value in entry.items():
        where = f"{place}.{key}"
        if key == "joint":
            options[key] = _read_joint(value, where)
        elif key == "shapes":
            options[key] = [_read_shape(shape, f"{where}[{k}]") for k, shape in enumerate(list_of(value, where))]
        elif key == "allow_impossible":
            if not isinstance(value, bool):
                raise FileFormatError(f"{where}: expected true or false, got {brief(value)}")
            options[key] = value
        elif key == "parent" and value is None:
            options[key] = None
        else:
            options[key] = _text(value, where) if key in _TEXTS else _numbers(value, where, _SHAPES.get(key, ()))
    return _made(place, lambda: Link(**options))


def _read_shape(content: object, place: str) -> Shape:
    entry = _check_keys(content, place, Shape._fields, ("kind", "size"))
    kind = _text(entry["kind"], f"{place}.kind")
    if kind not in SHAPES:
        raise FileFormatError(f"{place}.kind: {unknown_name('shape', kind[:60], SHAPES)}")
    shapes = {"size": (len(SHAPES[kind]),), "pose": (4, 4), "colour": (3,)}
    options = {key: _numbers(value, f"{place}.{key}", shapes[key]) for key, value in entry.items() if key != "kind"}
    return _made(place, lambda: Shape(kind, **options))


def _read_joint(content: object, place: str) -> Joint:
    if not isinstance(content, Mapping) or "type" not in content:
        raise FileFormatError(f"{place}: expected an object with the key 'type', got {brief(content)}")
    kind = _text(content["type"], f"{place}.type")
    if kind not in JOINT_TYPES:
        raise FileFormatError(f"{place}.type: {unknown_name('joint type', kind[:60], JOINT_TYPES)}")
    cls = JOINT_TYPES[kind]
    entry = _check_keys(content, place, ("type", *cls._fields), cls.required)
    options: dict[str, Any] = {}
    for key, value in entry.items():
        where = f"{place}.{key}"
        if key == "limits":
            options[key] = _each(value, where, _read_limits) if cls.each else _read_limits(value, where)
        elif key == "joints":
            options[key] = _each(value, where, _read_joint)
        elif key in cls.each and isinstance(value, list):
            options[key] = [_numbers(number, f"{where}[{k}]", ()) for k, number in enumerate(value)]
        elif key != "type":
            options[key] = _text(value, where) if key in _TEXTS else _numbers(value, where, cls.shapes.get(key, ()))
    return _made(place, lambda: cls(**options))


def _each(content: object, place: str, read_one: Callable[[object, str], Any]) -> list[Any]:
    """Return what the entries of a list say; null remains None."""
    entries = enumerate(list_of(content, place))
    return [None if entry is None else read_one(entry, f"{place}[{k}]") for k, entry in entries]


def _read_limits(content: object, place: str) -> Limits:
    entry = _check_keys(content, place, _LIMITS, ())
    options: dict[str, Any] = {}
    for key, value in entry.items():
        where = f"{place}.{key}"
        pair = list_of(value, where)
        if len(pair) != 2:
            raise FileFormatError(f"{where}: expected [low, high], got {len(pair)} entries")
        options[key] = [None if side is None else _numbers(side, f"{where}[{k}]", ()) for k, side in enumerate(pair)]
    return _made(place, lambda: Limits(**options))


def _made(place: str, make: Callable[[], Any]) -> Any:
    """Return what a constructor makes; if it refuses, say where in the file."""
    try:
        return make()
    except CstormError as error:
        raise FileFormatError(f"{place}: {error}" if place else str(error)) from None


def _check_keys(content: object, place: str, known: Iterable[str], needed: Iterable[str]) -> Mapping[str, Any]:
    prefix = f"{place}: " if place else ""
    if not isinstance(content, Mapping):
        raise FileFormatError(f"{prefix}expected an object with keys, got {brief(content)}")
    names = tuple(known)
    for key in content:
        if key not in names:
            shown = key[:60] if isinstance(key, str) else brief(key)
            raise FileFormatError(f"{prefix}{unknown_name('key', shown, names)}")
    for key in needed:
        if key not in content:
            raise FileFormatError(f"{prefix}the key {key!r} is missing")
    return content


def _numbers(value: object, place: str, shape: tuple[int, ...]) -> Any:
    """Return a number or nested lists of numbers of this shape; true and "1" are not numbers."""
    if shape:
        entries = list_of(value, place)
        if len(entries) != shape[0]:
            raise FileFormatError(f"{place}: expected {shape[0]} entries, got {len(entries)}")
        return [_numbers(entry, f"{place}[{k}]", shape[1:]) for k, entry in enumerate(entries)]
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise FileFormatError(f"{place}: expected a number, got {brief(value)}")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise FileFormatError(f"{place}: expected a finite number that a float can hold")
    return number


def _text(value: object, place: str) -> str:
    if not isinstance(value, str):
        raise FileFormatError(f"{place}: expected text, got {brief(value)}")
    return value
