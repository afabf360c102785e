"""URDF, the robot description of ROS, read into mechanisms.

The root link is the base: one named "world" that has no body is the base's frame itself, any other is a link welded to
it. A joint's frame is its child's at q = 0, the axis passes through its origin. Coordinates follow the joints as they
stand in the file. What the dynamics do not need is skipped, and what other readers refuse but can be kept is kept; both
are said, each thing once.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from cstormpy.arguments import flag, one_of
from cstormpy.arrays import Array
from cstormpy.errors import CstormError, FileFormatError, InvalidValue, shown, unknown_name
from cstormpy.file_writer import file_path
from cstormpy.linkage.constraints import Coupling
from cstormpy.linkage.degrees import say_angles, say_degrees
from cstormpy.linkage.joints import Fixed, Free, Joint, Limits, Planar, Prismatic, Revolute
from cstormpy.linkage.links import Link
from cstormpy.linkage.shapes import Shape
from cstormpy.mechanism import xml_elements
from cstormpy.mechanism.mechanism import Mechanism
from cstormpy.mechanism.reader_notes import Notes, is_text, kept_link, made
from cstormpy.mechanism.rotations import of_quaternion, rotation, unit
from cstormpy.mechanism.urdf_elements import by_name, refuse_others, say_what_is_skipped, version_of
from cstormpy.mechanism.xml_elements import Element


def from_urdf(
    source: str | os.PathLike[str],
    floating: bool = False,
    *,
    gravity: ArrayLike = (0.0, 0.0, -9.81),
    actuated: Iterable[str] | None = None,
    active: Iterable[str] = (),
    mimic: str = "free",
) -> Mechanism:
    """Return the mechanism of a URDF; `Mechanism.from_urdf` tells of the arguments."""
    floating, hold = flag(floating, "floating"), one_of(mimic, "mimic", ("free", "hold")) == "hold"
    path = None if is_text(source, "URDF") else file_path(source, "URDF")
    if path is not None:
        _refuse_by_name(os.fsdecode(source))
    content: str | bytes = str(source) if path is None else xml_elements.read(path)
    try:
        robot = Robot(xml_elements.parse(content), hold)
        links, couplings = robot.links(floating), robot.couplings()
    except CstormError as error:
        raise FileFormatError(f"{'' if path is None else f'{path}: '}{error}") from None
    mech = Mechanism(links, gravity, actuated, active, couplings)
    wanted = {*driven(mech), *mech.active}
    if actuated is None and len(wanted) < mech.n:
        mech = mech.with_drive(actuated=[name for name in mech.names if name in wanted])
    robot.notes.say("URDF" if path is None else path.name)
    say_degrees(mech.freedoms, mech.names, [0.0] * mech.n)
    return mech


def driven(mech: Mechanism) -> tuple[str, ...]:
    """Return the coordinates that a reader gives a motor unless told: all but followers and floating joints."""
    idle = {loop.joint for loop in mech.loops if isinstance(loop, Coupling)}
    for link in mech.links:
        told = link.joint.in_urdf
        if told is not None and told[0] == "floating":
            idle.update(mech.names[mech.coordinates(link.joint_name)])
    return tuple(name for name in mech.names if name not in idle)


def _refuse_by_name(name: str) -> None:
    """Refuse what is no file of a robot, by what it is."""
    if name.startswith("package://"):
        raise InvalidValue(f"{shown(name)}: is an address inside of a ROS package; give the path of the file")
    if name.lower().endswith(".xacro"):
        raise InvalidValue(
            f"{shown(name)}: is a source of macros; write its robot with 'xacro {os.path.basename(name)} > robot.urdf'"
        )


WORLD = "world"
"""Name of a root link that is the base's frame, by the custom of ROS and Gazebo."""

NO_LIMIT = float(np.finfo(np.float64).max)
"""Written where URDF wants a limit and there is none."""

_KINDS = ("revolute", "continuous", "prismatic", "fixed", "floating", "planar")
_ONE = _KINDS[:3]
"""Those of one coordinate."""
_SIZES = {"box": (("size", 3),), "sphere": (("radius", 1),), "cylinder": (("radius", 1), ("length", 1)),
          "capsule": (("radius", 1), ("length", 1))}  # fmt: skip
"""Of the shapes that are drawn, the attributes that tell of their size, and how many numbers each has."""

_SHOWN = 4


class _Mimic(NamedTuple):
    """What a joint is to follow: where the file says so, the other joint, ratio and offset."""

    where: str
    other: str
    ratio: float
    offset: float


class Robot:
    """A robot as its file has it: links and joints by name, checked for what a tree needs."""

    def __init__(self, root: Element, hold: bool = False) -> None:
        everything = list(root.within())
        refuse_others(root, everything)
        self.notes, self._hold = Notes(), hold
        self._version = version_of(root)
        self._links = by_name(root, "link")
        self._materials = {e.attributes.get("name", ""): e for e in everything if e.tag == "material" and e.children}
        self._joints = by_name(root, "joint")
        if not self._links:
            raise FileFormatError(f"line {root.line}: <robot> has no links")
        self._ends = {name: self._connected(name, joint) for name, joint in self._joints.items()}
        self._root = self._find_root()
        self._followers = self._mimics() if hold else {}
        self._standing = self._stand() if self._followers else {}
        say_what_is_skipped(self.notes, root, everything)

    def _connected(self, name: str, joint: Element) -> tuple[str, str]:
        """Return the names of a joint's parent and child."""
        ends = []
        for tag in ("parent", "child"):
            element = self._only(joint, tag, f"joint {name!r}")
            if element is None:
                raise FileFormatError(f"line {joint.line}: joint {name!r}: has no <{tag}>")
            link = element.text("link", f"joint {name!r}")
            if link not in self._links:
                raise FileFormatError(f"line {element.line}: joint {name!r}: {unknown_name(tag, link, self._links)}")
            ends.append(link)
        return ends[0], ends[1]

    def _find_root(self) -> str:
        """Return the link that no joint carries, refusing links that several carry, and cycles."""
        carried: dict[str, str] = {}
        for name, (_, child) in self._ends.items():
            if child in carried:
                raise FileFormatError(
                    f"line {self._joints[name].line}: link {child!r}: is carried by the joints {carried[child]!r} and "
                    f"{name!r}; a closed chain is no tree"
                )
            carried[child] = name
        roots = [name for name in self._links if name not in carried]
        if len(roots) > 1:
            listed = ", ".join(map(repr, roots[:_SHOWN])) + (", …" if len(roots) > _SHOWN else "")
            raise FileFormatError(
                f"line {self._links[roots[1]].line}: {len(roots)} links have no joint to carry them, {listed}; "
                "a robot has one root"
            )
        start = roots[0] if roots else next(iter(self._links))
        cycle = self._beyond(start)
        if cycle is not None or not roots:
            name = cycle or start
            raise FileFormatError(
                f"line {self._links[name].line}: link {name!r}: is on a cycle of links, each the child of the next"
            )
        return start

    def _beyond(self, root: str) -> str | None:
        """Return a link that is not reached from a root, if there is one: all joints to it are on a cycle."""
        children: dict[str, list[str]] = {}
        for parent, child in self._ends.values():
            children.setdefault(parent, []).append(child)
        reached, stack = {root}, [root]
        while stack:
            fresh = [child for child in children.get(stack.pop(), []) if child not in reached]
            reached.update(fresh)
            stack.extend(fresh)
        return next((name for name in self._links if name not in reached), None)

    def _only(self, element: Element, tag: str, whose: str) -> Element | None:
        found = element.all(tag)
        if len(found) > 1:
            self.notes.add(f"of several <{tag}> the first is taken", f"{whose} (line {element.line})")
        return found[0] if found else None

    # What becomes of them --------------------------------------------------------------------------------

    def links(self, floating: bool) -> list[Link]:
        """Return the links of the mechanism: the root's if it is one, then the joints' in the order of the file."""
        bare = not self._links[self._root].all("inertial") and bool(self._joints)
        of_root = [name for name, (parent, _) in self._ends.items() if parent == self._root]
        if floating and bare and all(self._joints[name].attributes.get("type") == "floating" for name in of_root):
            # beneath the root another free joint would move no mass
            self.notes.add(
                "floating=True adds nothing to floating joints that are there", ", ".join(map(repr, of_root))
            )
            floating = False
        base = self._root if self._root == WORLD and bare and not floating else None
        made = [] if base else [self._link(self._root, None, self._root_joint(floating), np.eye(4))]
        for name, element in self._joints.items():
            parent, child = self._ends[name]
            pose, joint = self._origin(element, f"joint {name!r}"), self._joint(name, element)
            if name in self._standing and joint.dof == 1:
                pose, joint = pose @ joint.freedoms[0].displacement(self._standing[name]), Fixed(name=name)
            made.append(self._link(child, None if parent == base else parent, joint, pose))
        return made

    def couplings(self) -> list[Coupling]:
        """Return what holds joints that mimic others to these, of those that move."""
        followers = ((name, each) for name, each in self._followers.items() if name not in self._standing)
        return [made(each.where, partial(Coupling, name, *each[1:])) for name, each in followers]

    def _mimics(self) -> dict[str, _Mimic]:
        """Return the joints that are to follow others, by their names."""
        found = {}
        for name, element in self._joints.items():
            whose, mimic = f"joint {name!r}", self._only(element, "mimic", f"joint {name!r}")
            if mimic is None:
                continue
            other = mimic.text("joint", whose)
            kinds = {each: self._joints[each].text("type", whose) for each in (name, other) if each in self._joints}
            where = f"line {mimic.line}: "
            if other not in kinds:
                unknown = unknown_name("joint", other, self._joints)
                raise FileFormatError(f"{where}{whose}: mimic: {unknown} (mimic='free' lets it move on its own)")
            if not all(kind in (*_ONE, "fixed") for kind in kinds.values()):
                raise FileFormatError(f"{where}{whose}: mimic: {other!r} and it must have one coordinate each")
            numbers = mimic.number("multiplier", whose, 1.0), mimic.number("offset", whose, 0.0)
            found[name] = _Mimic(where, other, *numbers)
        return found

    def _stand(self) -> dict[str, float]:
        """Return where joints stand that are fixed, or follow such, or follow whatever it is by nothing."""
        found = {name: 0.0 for name, joint in self._joints.items() if joint.attributes.get("type") == "fixed"}
        found = {name: each.offset for name, each in self._followers.items() if each.ratio == 0.0} | found
        while fresh := {
            name: each.ratio * found[each.other] + each.offset
            for name, each in self._followers.items()
            if each.other in found and name not in found
        }:
            found |= fresh
        return found

    def _root_joint(self, floating: bool) -> Joint:
        name = f"{self._root}_joint" if self._root in self._joints else self._root
        while name in self._joints:
            name += "_"
        if floating:
            return Free(name=name)
        return Fixed(name=None if name == self._root else name)

    def _link(self, name: str, parent: str | None, joint: Joint, pose: Array) -> Link:
        element = self._links[name]
        inertial = self._only(element, "inertial", f"link {name!r}")
        body = {} if inertial is None else self._body(name, inertial)
        return kept_link(
            self.notes, element.line, name, parent, joint, pose, **body, shapes=self._shapes(name, element)
        )

    def _shapes(self, name: str, link: Element) -> list[Shape]:
        """Return the boxes, cylinders and balls that a link looks like; meshes are skipped."""
        whose, found = f"link {name!r}", []
        for visual in link.all("visual"):
            pose = self._origin(visual, whose)
            for solid in (solid for geometry in visual.all("geometry") for solid in geometry.children):
                if solid.tag in _SIZES:
                    size = [n for key, count in _SIZES[solid.tag] for n in solid.numbers(key, whose, count)]
                    shape = partial(Shape, solid.tag, size, pose, self._colour(visual, whose))
                    found.append(made(f"line {solid.line}: {whose}: ", shape))
        return found

    def _colour(self, visual: Element, whose: str) -> tuple[float, ...] | None:
        """Return the colour of a visual's own material, or of the one of this name that the file has elsewhere."""
        for material in visual.all("material"):
            named = self._materials.get(material.attributes.get("name", ""))
            for color in [*material.all("color"), *([] if named is None else named.all("color"))]:
                return tuple(min(max(part, 0.0), 1.0) for part in color.numbers("rgba", whose, 3, 4)[:3])
        return None

    def _body(self, name: str, inertial: Element) -> dict[str, Any]:
        """Return mass, com and inertia in the link's frame."""
        whose = f"link {name!r}"
        mass, inertia = self._only(inertial, "mass", whose), self._only(inertial, "inertia", whose)
        if mass is None:
            raise FileFormatError(f"line {inertial.line}: {whose}: <inertial> has no <mass>")
        pose = self._origin(inertial, whose)
        body: dict[str, Any] = {"mass": mass.number("value", whose), "com": pose[:3, 3]}
        if inertia is None:
            self.notes.add("bodies without <inertia> are taken as point masses", f"{name!r} (line {inertial.line})")
            return body
        xx, yy, zz = (inertia.number(key, whose) for key in ("ixx", "iyy", "izz"))
        xy, xz, yz = (inertia.number(key, whose, 0.0) for key in ("ixy", "ixz", "iyz"))
        own, R = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]), pose[:3, :3]
        if np.array_equal(R, np.eye(3)):
            body["inertia"] = own
        else:
            with np.errstate(all="ignore"):  # the link refuses what overflows
                turned = R @ own @ R.T
                body["inertia"] = 0.5 * turned + 0.5 * turned.T
        return body

    def _origin(self, element: Element, whose: str) -> Array:
        """Return the pose that <origin> tells, the identity without it."""
        pose = np.eye(4)
        origin = self._only(element, "origin", whose)
        if origin is not None:
            pose[:3, 3] = origin.vector("xyz", whose, (0.0, 0.0, 0.0))
            turns = origin.vector("rpy", whose, (0.0, 0.0, 0.0))
            say_angles(f"{whose}: rpy", turns)
            if any(turns):
                pose[:3, :3] = rotation(turns)
            if "quat_xyzw" in origin.attributes and self._quaternions(origin, whose):
                x, y, z, w = origin.numbers("quat_xyzw", whose, 4)
                where = f"line {origin.line}: {whose}: <origin>: quat_xyzw"
                pose[:3, :3] = of_quaternion(unit(np.array([w, x, y, z]), where))
        return pose

    def _quaternions(self, origin: Element, whose: str) -> bool:
        """Tell whether a file has quaternions: from version 1.1 on, and not beside other angles."""
        if self._version < (1, 1):
            what = 'quaternions are skipped where <robot> does not say version="1.1" or a later one'
            self.notes.add(what, f"{whose} (line {origin.line})")
            return False
        if "rpy" in origin.attributes:
            where = f"line {origin.line}: {whose}: <origin>"
            raise FileFormatError(f"{where}: has 'rpy' and 'quat_xyzw'; one of them tells of its orientation")
        return True

    def _joint(self, name: str, element: Element) -> Joint:
        whose, where = f"joint {name!r}", f"line {element.line}: "
        kind = element.text("type", whose)
        if kind not in _KINDS:
            raise FileFormatError(f"{where}{whose}: {unknown_name('type', kind, _KINDS)}")
        if element.all("mimic") and not self._hold:
            self.notes.add(
                "joints that mimic others move on their own here (mimic='hold' makes them follow)",
                f"{name!r} (line {element.line})",
            )
        if kind == "fixed":
            return made(where, lambda: Fixed(name=name))
        dynamics = self._only(element, "dynamics", whose)
        options: dict[str, Any] = {"name": name}
        if dynamics is not None:
            options.update((key, dynamics.number(key, whose, 0.0)) for key in ("damping", "friction"))
        if kind == "floating":
            return made(where, lambda: Free(**options))
        options["limits"] = self._limits(name, kind, element)
        axis = self._only(element, "axis", whose)
        direction = (1.0, 0.0, 0.0) if axis is None else axis.vector("xyz", whose, (1.0, 0.0, 0.0))
        if kind == "planar":
            return made(where, lambda: Planar.across(direction, **{**options, "limits": None}))
        maker = Prismatic if kind == "prismatic" else Revolute
        return made(where, lambda: maker(direction, **options))

    def _limits(self, name: str, kind: str, element: Element) -> Limits | None:
        """Return the limits of a joint; one of 0 on effort or velocity, and one of the largest float, is none."""
        whose = f"joint {name!r}"
        limit = self._only(element, "limit", whose)
        if limit is None:
            return None
        ends: Any = None
        if kind != "continuous" and limit.attributes.keys() & {"lower", "upper"}:
            low, high = (limit.number(key, whose, 0.0, endless=True) for key in ("lower", "upper"))
            ends = (None if low <= -NO_LIMIT else low, None if high >= NO_LIMIT else high)
            if low > high:
                self.notes.add("limits whose lower is above the upper are left out", f"{name!r} (line {limit.line})")
                ends = None
        bounds: dict[str, float | None] = {}
        for key in ("velocity", "effort"):
            bound = limit.number(key, whose, NO_LIMIT, endless=True)
            bounds[key] = bound if 0.0 < bound < NO_LIMIT else None
            if bound <= 0.0:
                self.notes.add(f"{key} limits of 0 or less are taken as none", f"{name!r} (line {limit.line})")
        return (
            made(
                f"line {limit.line}: {whose}: ",
                lambda: Limits(position=ends, velocity=bounds["velocity"], torque=bounds["effort"]),
            )
            or None
        )
