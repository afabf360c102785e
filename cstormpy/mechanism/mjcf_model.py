"""Models as MJCF describes them: bodies within one another with joints and geoms, made into links and bodies."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from cstormpy.arrays import Array
from cstormpy.errors import FileFormatError
from cstormpy.linkage.bodies import Body, sum_of
from cstormpy.linkage.joints import Fixed, Free, Joint, Spherical
from cstormpy.linkage.links import Link
from cstormpy.linkage.shapes import Shape
from cstormpy.mechanism.mjcf_joints import Motors, ball_joint, hinge_or_slide
from cstormpy.mechanism.mjcf_settings import CLOSERS, OTHERS, Classes, Settings, unknown_attributes
from cstormpy.mechanism.reader_notes import Notes, fresh_name, kept_link, made, refuse_twice
from cstormpy.mechanism.xml_elements import Element, named

_TYPES = ("hinge", "slide", "ball", "free")
_JOINTS = ("joint", "freejoint")
_READ = ("compiler", "option", "size", "default", "asset", "worldbody", "equality", "actuator", "visual", "statistic")
_UNDRAWN = ("camera", "light")


class Placed(NamedTuple):
    """An element of a body with the frame in which it is given, and the class that it inherits."""

    element: Element
    place: Array
    inherited: str | None


class _Inside(NamedTuple):
    """Elements of a body, those of its <frame>s included, whose frames are accounted for."""

    joints: list[Placed]
    geoms: list[Placed]
    sites: list[Placed]
    bodies: list[Placed]
    inertials: list[Placed]


class Model:
    """A model as its file has it, made into links."""

    def __init__(self, root: Element) -> None:
        if root.tag != "mujoco":
            kinds = {
                "robot": "a URDF, which Mechanism.from_urdf reads",
                "sdf": "a model of Gazebo (SDF)",
                "mujocoinclude": "a part of a model",
            }
            what = kinds.get(root.tag, f"an XML file of <{root.tag[:40]}>")
            raise FileFormatError(f"line {root.line}: is {what}; a model of MuJoCo is a <mujoco>")
        self.notes = Notes()
        self.settings, self.classes = Settings(root), Classes(root)
        self.motors = Motors(root, self.classes, self.notes)
        self.links: list[Link] = []
        self.home: dict[str | None, Array] = {None: np.eye(4)}
        """Pose of each link in the base's frame as the file draws it."""
        self.body_lines: dict[str, int | str] = {}
        self.sites: dict[str, tuple[str | None, Array]] = {}
        self._root = root
        self._materials = {e.attributes.get("name", ""): e for a in root.all("asset") for e in a.all("material")}
        self._names = _explicit(root, "body"), {
            name for tag in _JOINTS for name in _explicit(root, tag)
        }  # fmt: skip
        self._joint_lines: dict[str, int | str] = {}
        self.references: dict[str, float] = {}
        """Coordinate at which each hinge and slide stands as the file draws it."""
        self._walk()
        if not self.links:
            raise FileFormatError(f"line {root.line}: <mujoco> has no bodies")
        self._rescale()
        self.motors.refuse_strangers(self._joint_lines)
        self._say_what_is_skipped()

    # Bodies ------------------------------------------------------------------------------------------------

    def _walk(self) -> None:
        """Make a link of each body, in the order of the file: that of MuJoCo's coordinates."""
        stack: list[tuple[Placed, str | None]] = []
        for world in self._root.all("worldbody"):
            inside = self._inside(world, self.classes.known(world.attributes.get("childclass"), world))
            for placed in inside.joints:
                raise FileFormatError(f"line {placed.element.line}: <{placed.element.tag}>: the world has no joints")
            self._note_sites(inside.sites, None)
            stack += [(placed, None) for placed in inside.bodies]
        stack.reverse()
        while stack:
            placed, parent = stack.pop()
            name, inside = self._body(placed, parent)
            stack += [(child, name) for child in reversed(inside.bodies)]

    def _inside(self, body: Element, inherited: str | None) -> _Inside:
        """Return what stands in a body; a <frame> is no more than another place."""
        found = _Inside([], [], [], [], [])
        lists = {"joint": found.joints, "freejoint": found.joints, "geom": found.geoms, "site": found.sites,
                 "body": found.bodies, "inertial": found.inertials}  # fmt: skip
        stack = [Placed(child, np.eye(4), inherited) for child in reversed(body.children)]
        while stack:
            element, place, passed = placed = stack.pop()
            if element.tag == "frame":
                passed = self.classes.known(element.attributes.get("childclass"), element) or passed
                there = place @ self.settings.pose(element, "frame")
                stack += [Placed(child, there, passed) for child in reversed(element.children)]
            elif element.tag in lists:
                lists[element.tag].append(placed)
            elif element.tag not in _UNDRAWN:
                self.notes.add("what would make bodies or forces of its own is skipped", named(element))
        return found

    def _body(self, placed: Placed, parent: str | None) -> tuple[str, _Inside]:
        element = placed.element
        name = self._body_name(element)
        whose = f"body {name!r}"
        inherited = self.classes.known(element.attributes.get("childclass"), element) or placed.inherited
        inside = self._inside(element, inherited)
        pose = placed.place @ self.settings.pose(element, whose)
        if element.attributes.get("mocap") == "true":
            self.notes.add("bodies that a mocap moves stand still here", f"{name!r} (line {element.line})")
        if element.number("gravcomp", whose, 0.0):
            self.notes.add("gravity is not compensated here", f"{name!r} (line {element.line})")
        geoms = [
            geom(self.classes.complete(e, given), self.settings, place, self.notes, self._materials)
            for e, place, given in inside.geoms
        ]
        self.home[name] = self.home[parent] @ pose
        self._note_sites(inside.sites, name)
        body = self._mass(element, whose, inside, geoms)
        joints, before = self._joints(name, inside, parent), parent
        for k, (joint, back) in enumerate(joints):
            last = k == len(joints) - 1
            own = name if last else fresh_name(f"{name}_{joint.name}", self._names[0])
            kept: dict[str, Any] = body._asdict() if last else {}
            kept["shapes"] = [g.shape for g in geoms if g.shape is not None] if last else []
            self.links.append(kept_link(self.notes, element.line, own, before, joint, pose @ back, **kept))
            before, pose = own, np.eye(4)
        return name, inside

    def _body_name(self, element: Element) -> str:
        name = element.attributes.get("name", "")
        if not name:
            name = fresh_name(f"body{len(self.body_lines) + 1}", self._names[0])
        refuse_twice(self.body_lines, "body", name, element.line)
        return name

    def _mass(self, element: Element, whose: str, inside: _Inside, geoms: list[Geom]) -> Body:
        """Return the body that <inertial> tells of, or else the geoms; bounds of the compiler kept."""
        least, moment = self.settings.least_mass, self.settings.least_inertia
        told = inside.inertials[0] if inside.inertials else None
        if len(inside.inertials) > 1:
            raise FileFormatError(f"line {inside.inertials[1].element.line}: {whose}: has two <inertial>")
        by_geoms = self.settings.from_geoms == "true" or (told is None and self.settings.from_geoms == "auto")
        parts = [g.part for g in geoms if g.part is not None] if by_geoms else []
        if parts:
            body = sum_of(parts)
        elif told is not None:  # whatever the compiler says of geoms, where none has a mass
            body = inertia_of(told.element, whose, self.settings, told.place, self.notes)
        else:
            body = sum_of([])
            if least > 0:  # which MuJoCo places as far off the body's frame as this is off its parent's
                body = body._replace(com=np.array(element.vector("pos", whose, (0.0, 0.0, 0.0))))
        if moment or self.settings.balanced:
            values, axes = np.linalg.eigh(body.inertia)
            values = np.maximum(values, moment)
            if self.settings.balanced and values[2] > values[0] + values[1]:
                values[:] = values.mean()
            body = body._replace(inertia=axes @ np.diag(values) @ axes.T)
        return body._replace(mass=max(body.mass, least)) if least > 0 else body

    def _rescale(self) -> None:
        """Bring all masses to the sum that the compiler asks for."""
        total, asked = sum(link.mass for link in self.links), self.settings.total_mass
        if asked > 0 and total > 0:
            ratio = asked / total
            self.links = [link.replace(mass=ratio * link.mass, inertia=ratio * link.inertia) for link in self.links]

    # Joints ------------------------------------------------------------------------------------------------

    def _joints(self, name: str, inside: _Inside, parent: str | None) -> list[tuple[Joint, Array]]:
        """Return the joints of a body, one after the other, and of each how far its zero lies behind the model's."""
        if not inside.joints:
            own = name if name not in self._names[1] else fresh_name(f"{name}_joint", self._names[1])
            self._names[1].add(own)
            return [(Fixed(name=None if own == name else own), np.eye(4))]
        found = []
        for bare, place, inherited in inside.joints:
            element = bare if bare.tag == "freejoint" else self.classes.complete(bare, inherited)
            kind = "free" if bare.tag == "freejoint" else element.choice("type", "joint", _TYPES, "hinge")
            label = self._joint_name(bare, name)
            whose = f"joint {label!r}"
            if kind == "free" and (parent is not None or len(inside.joints) > 1):
                where = f"inside of {parent!r}" if parent is not None else "beside another joint"
                raise FileFormatError(
                    f"line {bare.line}: {whose}: is free {where}; MuJoCo has free joints in bodies of the world alone, "
                    "without another joint"
                )
            if kind == "free" and not inside.bodies:
                align = element.choice("align", whose, ("true", "false", "auto"), "auto")
                if align == "true" or (align == "auto" and self.settings.aligned):
                    what = "free bodies keep their frames, which MuJoCo would align with their inertia"
                    self.notes.add(what, f"{label!r} (line {bare.line})")
            if kind in ("ball", "free"):
                of = Spherical if kind == "ball" else Free
                found.append(ball_joint(of, element, label, place, self.settings, self.notes, self.motors))
            else:
                found.append(hinge_or_slide(kind, element, label, place, self.settings, self.notes, self.motors))
                angle = self.settings.angle if kind == "hinge" else float
                self.references[label] = angle(element.number("ref", whose, 0.0))
        return found

    def _joint_name(self, element: Element, body: str) -> str:
        name = element.attributes.get("name", "")
        if not name:
            return fresh_name(body, self._names[1])
        refuse_twice(self._joint_lines, "joint", name, element.line)
        return name

    def _note_sites(self, sites: list[Placed], body: str | None) -> None:
        for bare, place, inherited in sites:
            site = self.classes.complete(bare, inherited)
            if name := bare.attributes.get("name", ""):
                self.sites[name] = body, place @ self.settings.pose(site, f"site {name!r}")

    # What is not read --------------------------------------------------------------------------------------

    def _say_what_is_skipped(self) -> None:
        for tag in dict.fromkeys(child.tag for child in self._root.children if child.tag not in _READ):
            count = len(self._root.all(tag))
            self.notes.add("elements that are not read are skipped", f"{count} <{tag[:40]}>")
        for section in self._root.all("equality"):
            for element in section.children:
                if element.tag not in (*CLOSERS, "joint"):
                    self.notes.add(OTHERS, named(element))
        for where in unknown_attributes(self._root):
            self.notes.add("attributes that MuJoCo does not have are skipped", where)
        if words := self.settings.medium():
            self.notes.add("options that change the motion are not read", ", ".join(words))


def _explicit(root: Element, tag: str) -> set[str]:
    """Return the names that elements of a tag have in the tree of bodies."""
    return {
        element.attributes["name"]
        for world in root.all("worldbody")
        for element in world.within()
        if element.tag == tag and element.attributes.get("name")
    }


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
