"""Settings of a whole model of MJCF: the compiler's settings, and classes of defaults."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from cstormpy.arrays import Array
from cstormpy.errors import FileFormatError, unknown_name
from cstormpy.mechanism.rotations import about, from_z, of_quaternion, unit
from cstormpy.mechanism.xml_elements import Element

ORIENTATIONS = ("quat", "axisangle", "euler", "xyaxes", "zaxis")
"""Attributes that tell of a rotation, of which an element has one at most."""

ACTUATORS = (
    "general", "motor", "position", "velocity", "intvelocity", "orientation", "pid", "damper", "cylinder", "muscle",
    "adhesion", "dcmotor", "plugin",
)  # fmt: skip
"""Elements of <actuator>, which share one set of defaults."""

CLOSERS = ("connect", "weld")
"""Elements of <equality> that are read as loops."""

OTHERS = "constraints other than connect, weld and straight couplings of two joints are skipped"
"""What is said of the others."""

LARGEST = 1e10
"""MuJoCo's largest number: a range that ends there is open."""

_PLACE = ("name", "pos", *ORIENTATIONS)
_KNOWN = {tag: frozenset((*first, *" ".join(others).split())) for tag, first, *others in (
    ("compiler", (), "alignfree angle assetdir autolimits balanceinertia boundinertia boundmass conflict convexhull",
     "coordinate discardvisual eulerseq exactmeshinertia fitaabb fusestatic inertiafromgeom inertiagrouprange meshdir",
     "passthrough savecanonical savecompiled saveinertial settotalmass strippath texturedir usethread"),
    ("body", _PLACE, "childclass fuse gravcomp mocap simple sleep user"),
    ("frame", _PLACE, "childclass"),
    ("inertial", _PLACE, "diaginertia fullinertia mass"),
    ("joint", _PLACE[:2], "actuatorfrclimited actuatorfrcrange actuatorgravcomp armature axis class damping",
     "frictionloss group limited margin range ref solimpfriction solimplimit solreffriction solreflimit springdamper",
     "springref springyield stiffness type user"),
    ("freejoint", ("name",), "align group"),
    ("geom", _PLACE, "adhesion castshadow class conaffinity condim contype density fitscale fluidcoef fluidshape",
     "friction fromto gap group hfield margin mass material mesh priority rgba shellinertia size solimp solmix solref",
     "surfacevel type user"),
)}  # fmt: skip
"""Attributes that MuJoCo has of elements on which the motion depends; the others of these are slips, or newer."""

_FILLED = ("size", "damping", "stiffness")
"""Attributes of a few numbers, of which an element may say the first alone; the others are those of its class."""

_WORDS = ("true", "false", "auto")


class Settings:
    """Attributes of <compiler> and <option>, wherever in the file they stand; of two of a kind the later holds."""

    def __init__(self, root: Element) -> None:
        self._compiler, self._option, self._flags = (_joined(root, *path) for path in (
            ("compiler",), ("option",), ("option", "flag")
        ))  # fmt: skip
        compiler = self._compiler
        self.degrees = compiler.choice("angle", "model", ("degree", "radian"), "degree") == "degree"
        if compiler.choice("coordinate", "model", ("local", "global"), "local") == "global":
            raise FileFormatError(
                f"line {compiler.line}: <compiler>: coordinate: 'global' is not read, nor by MuJoCo since 2.3.4; "
                "save the model with an older MuJoCo to get local coordinates"
            )
        self.autolimits = self._truth("autolimits", True)
        self.from_geoms = compiler.choice("inertiafromgeom", "model", _WORDS, "auto")
        self.groups = compiler.vector("inertiagrouprange", "model", (0.0, 5.0))
        self.least_mass = compiler.number("boundmass", "model", 0.0)
        self.least_inertia = compiler.number("boundinertia", "model", 0.0)
        self.total_mass = compiler.number("settotalmass", "model", -1.0)
        self.balanced = self._truth("balanceinertia", False)
        self.aligned = self._truth("alignfree", False)
        self._sequence = compiler.attributes.get("eulerseq", "xyz")
        if len(self._sequence) != 3 or set(self._sequence.lower()) - set("xyz"):
            raise FileFormatError(
                f"line {compiler.line}: <compiler>: eulerseq: expected three of x, y, z, X, Y, Z, "
                f"got {self._sequence[:40]!r}"
            )
        self._off = [key for key, word in self._flags.attributes.items() if word == "disable"]
        self.closes = not {"equality", "constraint"}.intersection(self._off)
        weightless = "gravity" in self._off
        self.gravity = (0.0,) * 3 if weightless else self._option.vector("gravity", "model", (0.0, 0.0, -9.81))

    def medium(self) -> list[str]:
        """Return what <option> says of the medium in which all moves, and of what is switched off."""
        found = [key for key in ("wind", "density", "viscosity") if any(self._option.vector(
            key, "model", (0.0,) * (3 if key == "wind" else 1)))]  # fmt: skip
        forces = ("passive", "spring", "damper", "frictionloss", "actuation")
        return found + [f"{key} disabled" for key in self._off if key in forces]

    def _truth(self, key: str, default: bool) -> bool:
        return self._compiler.choice(key, "model", ("true", "false"), "true" if default else "false") == "true"

    def angle(self, number: float) -> float:
        """Return an angle of the file [rad]."""
        return math.radians(number) if self.degrees else number

    def pose(self, element: Element, whose: str) -> Array:
        """Return the pose (4, 4) that an element tells by its attributes, or by its two ends."""
        pose = np.eye(4)
        if "fromto" in element.attributes:
            ends = np.array(element.numbers("fromto", whose, 6)).reshape(2, 3)
            pose[:3, :3] = from_z(unit(ends[0] - ends[1], f"line {element.line}: {whose}: fromto"))
            pose[:3, 3] = 0.5 * (ends[0] + ends[1])
            return pose
        pose[:3, 3] = element.vector("pos", whose, (0.0, 0.0, 0.0))
        pose[:3, :3] = self.rotation(element, whose)
        return pose

    def rotation(self, element: Element, whose: str) -> Array:
        """Return the rotation (3, 3) that an element tells in one of five ways; without it the identity."""
        given = [key for key in ORIENTATIONS if key in element.attributes]
        if not given:
            return np.eye(3)
        (key, *more), where = given, f"line {element.line}: {whose}: <{element.tag[:40]}>"
        if more:
            raise FileFormatError(f"{where}: has {key!r} and {more[0]!r}; one of them tells of its orientation")
        numbers = element.numbers(key, whose, {"quat": 4, "axisangle": 4, "xyaxes": 6}.get(key, 3))
        where = f"{where}: {key}"
        if key == "quat":
            return of_quaternion(unit(np.array(numbers), where))
        if key == "axisangle":
            return about(unit(np.array(numbers[:3]), where), self.angle(numbers[3]))
        if key == "euler":
            return self._of_euler(numbers)
        if key == "zaxis":
            return from_z(unit(np.array(numbers), where))
        x = unit(np.array(numbers[:3]), where)
        y = np.array(numbers[3:])
        y = unit(y - (x @ y) * x, where)
        return np.column_stack([x, y, np.cross(x, y)])

    def _of_euler(self, angles: tuple[float, ...]) -> Array:
        """Return the product of turns about axes that turn too (small letters) or stay (capital ones)."""
        R = np.eye(3)
        for letter, angle in zip(self._sequence, angles, strict=True):
            turn = about(np.eye(3)["xyz".index(letter.lower())], self.angle(angle))
            R = R @ turn if letter.islower() else turn @ R
        return R


def unknown_attributes(root: Element) -> Iterator[str]:
    """Go through attributes that elements of the compiler, of bodies and of defaults do not have, with their places."""
    for section in root.children:
        if section.tag in ("compiler", "default", "worldbody"):
            for element in section.within():
                for key in element.attributes:
                    if key not in _KNOWN.get(element.tag, element.attributes):
                        yield f"{key[:40]!r} of <{element.tag}> (line {element.line})"


class Classes:
    """Classes of defaults: what an element has that does not say it itself."""

    def __init__(self, root: Element) -> None:
        self._found: dict[str, dict[str, dict[str, str]]] = {"main": {}}
        self._top = "main"
        for section in root.all("default"):
            self._top = section.attributes.get("class", self._top)
            self._read(section, self._found.setdefault(self._top, self._found["main"]))
            # classes within have what the others have so far, as in MuJoCo: a later <default> is not theirs
            stack = [(child, self._top) for child in section.all("default")]
            while stack:
                inner, parent = stack.pop(0)
                name = inner.text("class", "defaults")
                if name in self._found:
                    raise FileFormatError(f"line {inner.line}: class {name[:80]!r}: the name occurs twice")
                own = self._found[name] = {tag: dict(values) for tag, values in self._found[parent].items()}
                self._read(inner, own)
                stack += [(child, name) for child in inner.all("default")]

    @staticmethod
    def _read(section: Element, values: dict[str, dict[str, str]]) -> None:
        for child in section.children:
            if child.tag != "default":
                tag = _kind(child.tag)
                values[tag] = _over(values.get(tag, {}), child.attributes)

    def known(self, name: str | None, element: Element) -> str | None:
        """Return the name of a class, refused where there is none of it."""
        if name is not None and name not in self._found:
            raise FileFormatError(
                f"line {element.line}: <{element.tag[:40]}>: {unknown_name('class', name, self._found)}"
            )
        return name

    def complete(self, element: Element, inherited: str | None = None) -> Element:
        """Return an element with what its class, or else the one inherited, says of such elements."""
        name = self.known(element.attributes.get("class"), element) or inherited or self._top
        values = self._found[name].get(_kind(element.tag), {})
        whole = Element(element.tag, _over(values, element.attributes), element.line)
        whole.children = element.children
        return whole


def _kind(tag: str) -> str:
    return "actuator" if tag in ACTUATORS else "equality" if tag in CLOSERS else tag


def _over(values: dict[str, str], own: dict[str, str]) -> dict[str, str]:
    """Return attributes over defaults: one orientation takes the place of another, a shorter array the first of it."""
    kept = {k: v for k, v in values.items() if k not in ORIENTATIONS} if own.keys() & set(ORIENTATIONS) else values
    both = {**kept, **own}
    for key in own.keys() & values.keys() & set(_FILLED):
        words = own[key].split()
        both[key] = " ".join([*words, *values[key].split()[len(words) :]])
    return both


def _joined(root: Element, tag: str, inner: str | None = None) -> Element:
    """Return one element with the attributes of all of a tag."""
    found = root.all(tag)
    if inner is not None:
        found = [child for element in found for child in element.all(inner)]
    whole = Element(inner or tag, {}, found[0].line if found else root.line)
    for element in found:
        whole.attributes.update(element.attributes)
    return whole
