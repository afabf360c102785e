"""Elements of URDF: which files are one, what stands in them by its name, and what is skipped."""

from __future__ import annotations

from cstormpy.errors import FileFormatError, shown
from cstormpy.mechanism.reader_notes import Notes, refuse_twice
from cstormpy.mechanism.xml_elements import Element

_PASSED = ("link", "joint", "material")
"""Elements of a robot that are read."""

_PARTS = {
    "link": ("inertial", "visual", "collision"),
    "joint": ("parent", "child", "origin", "axis", "limit", "dynamics", "mimic", "calibration", "safety_controller"),
}
"""Elements that a link or a joint has."""

_ATTRIBUTES = {
    "origin": ("xyz", "rpy", "quat_xyzw"),
    "mass": ("value",),
    "inertia": ("ixx", "ixy", "ixz", "iyy", "iyz", "izz"),
    "axis": ("xyz",),
    "dynamics": ("damping", "friction"),
    "mimic": ("joint", "multiplier", "offset"),
}
"""Attributes of elements within a body or a joint on which the motion depends."""


def refuse_others(root: Element, everything: list[Element]) -> None:
    """Refuse what is XML but no URDF, by what it is."""
    if root.tag != "robot":
        kinds = {
            "mujoco": "a model of MuJoCo, which Mechanism.from_mjcf reads",
            "sdf": "a model of Gazebo (SDF)",
            "COLLADA": "a mesh",
        }
        what = kinds.get(root.tag, f"an XML file of <{root.tag[:40]}>")
        raise FileFormatError(f"line {root.line}: is {what}; a URDF is a <robot>")
    for element in everything:
        if element.tag.startswith("xacro:"):
            raise FileFormatError(
                f"line {element.line}: <{element.tag[:40]}>: is a macro of xacro; write its robot with "
                "'xacro FILE > robot.urdf'"
            )


def version_of(root: Element) -> tuple[int, int]:
    """Return the version of the format that a file says it has, the first where it does not."""
    major, _, minor = root.attributes.get("version", "").partition(".")
    return (int(major), int(minor)) if major.isdecimal() and minor.isdecimal() else (1, 0)


def say_what_is_skipped(notes: Notes, root: Element, everything: list[Element]) -> None:
    """Keep in the notes what a file has that is not read, whether or not others read it."""
    meshes = [element for element in everything if element.tag == "mesh"]
    for mesh in meshes:
        notes.add(f"{len(meshes)} meshes are skipped", shown(mesh.attributes.get("filename", "")))
    for tag in dict.fromkeys(child.tag for child in root.children if child.tag not in _PASSED):
        notes.add("elements that the dynamics do not need are skipped", f"{len(root.all(tag))} <{tag[:40]}>")
    for tag, known in _PARTS.items():
        for inner in (inner for element in root.all(tag) for inner in element.children if inner.tag not in known):
            what = f"elements that a <{tag}> of a URDF does not have are skipped"
            notes.add(what, f"<{inner.tag[:40]}> (line {inner.line})")
    bodies = [body for link in root.all("link") for body in link.all("inertial")]
    for element in (*bodies, *root.all("joint")):
        for inner in element.children:
            known = _ATTRIBUTES.get(inner.tag, tuple(inner.attributes))
            for key in (key for key in inner.attributes if key not in known):
                what = f"attributes that <{inner.tag}> of a URDF does not have are skipped"
                notes.add(what, f"{key[:40]!r} (line {inner.line})")


def by_name(root: Element, tag: str) -> dict[str, Element]:
    """Return the elements of a tag by their names, each of its own."""
    found: dict[str, Element] = {}
    lines: dict[str, int | str] = {}
    for element in root.all(tag):
        name = element.text("name", tag)
        refuse_twice(lines, tag, name, element.line)
        found[name] = element
    return found
