"""Models as MJCF describes them: bodies within one another with joints and geoms, made into links."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from cstormpy.arrays import Array
from cstormpy.errors import FileFormatError
from cstormpy.linkage.bodies import Body, sum_of
from cstormpy.linkage.joints import Fixed, Free, Joint, Spherical
from cstormpy.linkage.links import Link
from cstormpy.mechanism.mjcf_geoms import Geom, geom, inertia_of
from cstormpy.mechanism.mjcf_joints import Motors, ball_joint, hinge_or_slide
from cstormpy.mechanism.mjcf_settings import CLOSERS, OTHERS, Classes, Settings
from cstormpy.mechanism.reader_notes import Notes, fresh_name, kept_link, refuse_twice
from cstormpy.mechanism.xml_elements import Element

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
        """Pose of each link in the base's frame at q = 0."""
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
        if words := self.settings.medium():
            self.notes.add("options that change the motion are not read", ", ".join(words))


def named(element: Element) -> str:
    """Return what an element is called in remarks on the file."""
    name = element.attributes.get("name", "")
    return f"<{element.tag[:40]}>{f' {name[:80]!r}' if name else ''} (line {element.line})"


def _explicit(root: Element, tag: str) -> set[str]:
    """Return the names that elements of a tag have in the tree of bodies."""
    return {
        element.attributes["name"]
        for world in root.all("worldbody")
        for element in world.within()
        if element.tag == tag and element.attributes.get("name")
    }
