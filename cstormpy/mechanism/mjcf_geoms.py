"""Geoms of MJCF: what bodies are drawn with, and the masses and inertias that follow from them."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from cstormpy.arrays import Array
from cstormpy.errors import FileFormatError
from cstormpy.linkage.bodies import Body
from cstormpy.linkage.shapes import Shape
from cstormpy.mechanism.mjcf_settings import Settings
from cstormpy.mechanism.reader_notes import Notes, made
from cstormpy.mechanism.xml_elements import Element

_SIZES = {"sphere": 1, "capsule": 2, "cylinder": 2, "box": 3, "ellipsoid": 3}
_OTHERS = ("plane", "hfield", "mesh", "sdf")
_ENDS = ("capsule", "cylinder", "box", "ellipsoid")
_DENSITY = 1000.0
_SHOWN_GROUPS = 3
"""Geoms of the groups before this are drawn, as MuJoCo's own viewer does."""


class Geom(NamedTuple):
    """A geom: its shape in the body's frame if it is drawn, and its part of the body if it counts for it."""

    shape: Shape | None
    part: Body | None


def geom(element: Element, settings: Settings, place: Array, notes: Notes, materials: dict[str, Element]) -> Geom:
    """Return what becomes of a geom in a frame of the body that has the pose `place`."""
    whose = f"geom {element.attributes.get('name', '')!r}" if element.attributes.get("name") else "geom"
    where = f"line {element.line}: {whose}: "
    kind = "mesh" if "mesh" in element.attributes else element.attributes.get("type", "sphere")
    element.choice("type", whose, (*_SIZES, *_OTHERS), "sphere")
    group = element.number("group", whose, 0.0)
    counts = settings.groups[0] <= group <= settings.groups[1]
    if kind in _OTHERS:
        if kind != "plane":
            what = "and have no mass here" if counts else "and not drawn"
            notes.add(f"geoms of type {kind} are skipped {what}", f"line {element.line}")
        return Geom(None, None)
    size, pose = _size_and_pose(element, kind, whose, settings)
    shape: Shape = made(where, lambda: Shape(kind, size, place @ pose, _colour(element, whose, materials)))
    if element.attributes.get("shellinertia") == "true":
        notes.add("hollow geoms are taken as solid ones", f"line {element.line}")
    mass = element.number("density", whose, _DENSITY) * _volume(kind, size)
    mass = element.number("mass", whose, mass)
    if mass < 0:
        raise FileFormatError(f"{where}mass: must not be negative, got {mass:g}")
    R = shape.pose[:3, :3]
    part = Body(mass, shape.pose[:3, 3], R @ np.diag(mass * _moments(kind, size)) @ R.T)
    return Geom(shape if group < _SHOWN_GROUPS else None, part if counts and mass > 0 else None)


def _size_and_pose(element: Element, kind: str, whose: str, settings: Settings) -> tuple[Array, Array]:
    """Return the size as shapes have it, with whole lengths, and the pose in the frame."""
    where = f"line {element.line}: {whose}: "
    needed = _SIZES[kind]
    ends = element.attributes.get("fromto")
    if ends is not None and kind not in _ENDS:
        raise FileFormatError(f"{where}fromto: a {kind} has no ends")
    numbers = np.array(element.numbers("size", whose, 1 if ends else needed, 3))
    if (numbers[: 1 if ends else needed] <= 0).any():
        raise FileFormatError(f"{where}size: must be positive, got {element.attributes['size'][:80]!r}")
    pose = settings.pose(element, whose)
    if ends is None:
        half = numbers[:needed]
    else:
        points = np.array(element.numbers("fromto", whose, 6))
        reach, across = 0.5 * float(np.linalg.norm(points[:3] - points[3:])), numbers[0]
        half = np.array([across, reach] if needed == 2 else [across, across, reach])
    if kind == "box":
        return 2.0 * half, pose
    return (np.array([half[0], 2.0 * half[1]]) if needed == 2 else half), pose


def _colour(element: Element, whose: str, materials: dict[str, Element]) -> tuple[float, ...] | None:
    source = element if "rgba" in element.attributes else materials.get(element.attributes.get("material", ""))
    if source is None or "rgba" not in source.attributes:
        return None
    return tuple(min(max(part, 0.0), 1.0) for part in source.numbers("rgba", whose, 4)[:3])


def _volume(kind: str, size: Array) -> float:
    if kind == "box":
        return float(size.prod())
    if kind == "cylinder":
        return math.pi * size[0] ** 2 * size[1]
    ball = 4.0 / 3.0 * math.pi * float((size if kind == "ellipsoid" else np.full(3, size[0])).prod())
    return ball + (math.pi * size[0] ** 2 * size[1] if kind == "capsule" else 0.0)


def _moments(kind: str, size: Array) -> Array:
    """Return the principal moments of a shape of mass 1 about its middle."""
    if kind == "box":
        return (np.sum(size**2) - size**2) / 12.0
    if kind == "sphere":
        return np.full(3, 0.4 * size[0] ** 2)
    if kind == "ellipsoid":
        return (np.sum(size**2) - size**2) / 5.0
    r, h = size
    cylinder = np.array([(3.0 * r * r + h * h) / 12.0, (3.0 * r * r + h * h) / 12.0, 0.5 * r * r])
    if kind == "cylinder":
        return cylinder
    # Two halves of a ball, each 3/8 r beyond the cylinder's end.
    caps = 0.4 * r * r + np.array([1.0, 1.0, 0.0]) * h * (2.0 * h + 3.0 * r) / 8.0
    share = 4.0 * r / (4.0 * r + 3.0 * h)
    return share * caps + (1.0 - share) * cylinder


def inertia_of(element: Element, whose: str, settings: Settings, place: Array, notes: Notes) -> Body:
    """Return the body that <inertial> tells of, in a frame of the body that has the pose `place`."""
    where = f"line {element.line}: {whose}: <inertial>: "
    full, diagonal = "fullinertia" in element.attributes, "diaginertia" in element.attributes
    pose = place @ settings.pose(element, whose)
    own = np.zeros((3, 3))
    if full:
        if diagonal or not np.array_equal(settings.rotation(element, whose), np.eye(3)):
            other = "'diaginertia'" if diagonal else "an orientation"
            raise FileFormatError(f"{where}has 'fullinertia' and {other}; the one says what the other does")
        xx, yy, zz, xy, xz, yz = element.numbers("fullinertia", whose, 6)
        own = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    elif diagonal:
        own = np.diag(element.numbers("diaginertia", whose, 3))
    else:
        notes.add("bodies without an inertia are taken as point masses", f"{whose} (line {element.line})")
    R = pose[:3, :3]
    turned = own if np.array_equal(R, np.eye(3)) else R @ own @ R.T
    return Body(element.number("mass", whose), pose[:3, 3], 0.5 * turned + 0.5 * turned.T)
