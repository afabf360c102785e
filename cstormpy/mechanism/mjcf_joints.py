"""Joints and motors of MJCF."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from cstormpy.arrays import Array
from cstormpy.errors import FileFormatError, unknown_name
from cstormpy.linkage.joints import Free, Joint, Limits, Prismatic, Revolute, Spherical
from cstormpy.mechanism.mjcf_settings import LARGEST, Classes, Settings
from cstormpy.mechanism.reader_notes import Notes, made
from cstormpy.mechanism.xml_elements import Element, named

Pair = tuple[float, float]

_WORDS = ("true", "false", "auto")
_OTHERS = ("springdamper", "springyield")


class Motors:
    """Actuators by the joints that they drive."""

    def __init__(self, root: Element, classes: Classes, notes: Notes) -> None:
        self._found: dict[str, list[Element]] = {}
        for section in root.all("actuator"):
            for bare in section.children:
                element = classes.complete(bare)
                joint = element.attributes.get("joint") or element.attributes.get("jointinparent")
                if not joint:
                    notes.add("actuators of anything but joints are skipped", named(bare))
                    continue
                self._found.setdefault(joint, []).append(element)
                if bare.tag != "motor":
                    notes.add("actuators are taken as motors of a torque, their own laws are skipped", named(bare))

    @property
    def joints(self) -> tuple[str, ...]:
        """Names of the joints that have one."""
        return tuple(self._found)

    def refuse_strangers(self, joints: Iterable[str]) -> None:
        """Refuse an actuator of a joint that there is not."""
        known = list(joints)
        for name, (first, *_) in self._found.items():
            if name not in known:
                raise FileFormatError(f"line {first.line}: <{first.tag[:40]}>: {unknown_name('joint', name, known)}")

    def inertia(self, joint: str) -> tuple[float, float]:
        """Return armature and damping of a joint's actuators, as seen at the joint."""
        armature = damping = 0.0
        for element in self._found.get(joint, ()):
            whose = f"actuator of {joint!r}"
            gear = _gear(element, whose)
            armature += gear**2 * element.number("armature", whose, 0.0)
            if "damping" in element.attributes:
                damping += gear**2 * element.numbers("damping", whose, 1, 3)[0]
        return armature, damping

    def limits(self, joint: str) -> Pair | None:
        """Return the least and the largest torque of a joint's actuators together."""
        ranges = [self._range(element, f"actuator of {joint!r}") for element in self._found.get(joint, ())]
        if not ranges or None in ranges:
            return None
        pairs = [pair for pair in ranges if pair is not None]
        return sum(low for low, _ in pairs), sum(high for _, high in pairs)

    def _range(self, element: Element, whose: str) -> Pair | None:
        keys = ("ctrl", "force") if element.tag == "motor" else ("force",)
        pairs = [pair for key in keys if (pair := _limited(element, f"{key}range", f"{key}limited", whose, True))]
        if not pairs:
            return None
        gear = _gear(element, whose)
        low, high = max(pair[0] for pair in pairs), min(pair[1] for pair in pairs)
        return (gear * low, gear * high) if gear >= 0 else (gear * high, gear * low)


def _gear(element: Element, whose: str) -> float:
    return element.numbers("gear", whose, 1, 6)[0] if "gear" in element.attributes else 1.0


def _limited(element: Element, key: str, switch: str, whose: str, auto: bool) -> Pair | None:
    """Return a range if it holds."""
    word = element.choice(switch, whose, _WORDS, "auto")
    if word == "false" or key not in element.attributes or (word == "auto" and not auto):
        return None
    low, high = element.numbers(key, whose, 2)
    return (low, high) if low < high else None


def _opened(pair: Pair | None) -> Pair | None:
    """Return a range without a side that is as far as MuJoCo's largest number."""
    if pair is None:
        return None
    low, high = pair
    return (low if low > -LARGEST else -np.inf), (high if high < LARGEST else np.inf)


def ball_joint(
    kind: type[Spherical],
    element: Element,
    name: str,
    place: Array,
    settings: Settings,
    notes: Notes,
    motors: Motors,
) -> tuple[Joint, Array]:
    """Return a ball joint or a free one, whose numbers are the same for all its coordinates.

    Its spring is relaxed where the model is at the start: MuJoCo, too, takes no "springref" of it.
    """
    whose, place_of = f"joint {name!r}", f"{name!r} (line {element.line})"
    options = _own_torque(element, whose, name, notes)
    if any(motors.inertia(name)):
        notes.add("rotors and dampers of actuators at joints with a rotation vector are left out", place_of)
    if kind is Free:
        if "range" in element.attributes:
            notes.add("ranges of free joints are left out", place_of)
        return made(f"line {element.line}: ", lambda: kind(**options)), np.eye(4)
    limit = _limited(element, "range", "limited", whose, settings.autolimits)
    if limit is not None and settings.angle(limit[1]) < np.pi:
        options["max_angle"] = settings.angle(limit[1])
    options["point"] = _point(element, whose, place)
    return made(f"line {element.line}: ", lambda: kind(**options)), np.eye(4)


def hinge_or_slide(
    kind: str,
    element: Element,
    name: str,
    place: Array,
    settings: Settings,
    notes: Notes,
    motors: Motors,
) -> tuple[Joint, Array]:
    """Return a hinge or a slide, and the pose behind the model's own at which its coordinate is 0."""
    where, whose = f"line {element.line}: ", f"joint {name!r}"
    torque = motors.limits(name)
    angle = settings.angle if kind == "hinge" else float
    armature, damping = motors.inertia(name)
    options = _own_torque(element, whose, name, notes, armature, damping)
    options |= {"point": _point(element, whose, place), "rest": angle(element.number("springref", whose, 0.0))}
    for key in _OTHERS:
        if key in element.attributes:
            notes.add(f"{key} is left out", f"{name!r} (line {element.line})")
    position = _opened(_limited(element, "range", "limited", whose, settings.autolimits))
    if position is not None and kind == "hinge":
        position = (angle(position[0]), angle(position[1]))
    force = _limited(element, "actuatorfrcrange", "actuatorfrclimited", whose, settings.autolimits)
    if force is not None:
        torque = force if torque is None else (max(force[0], torque[0]), min(force[1], torque[1]))
    options["limits"] = made(f"{where}{whose}: ", lambda: Limits(position=position, torque=_opened(torque))) or None
    axis = place[:3, :3] @ np.array(element.vector("axis", whose, (0.0, 0.0, 1.0)))
    joint = made(where, lambda: (Revolute if kind == "hinge" else Prismatic)(axis, **options))
    zero = angle(element.number("ref", whose, 0.0))
    return joint, np.eye(4) if zero == 0.0 else joint.displacement(-zero)


def _own_torque(
    element: Element, whose: str, name: str, notes: Notes, armature: float = 0.0, damping: float = 0.0
) -> dict[str, Any]:
    """Return a joint's name, inertia, damper, friction and spring; rotors and dampers of motors are added."""
    return {
        "armature": element.number("armature", whose, 0.0) + armature,
        "damping": _first(element, "damping", whose, name, notes) + damping,
        "friction": element.number("frictionloss", whose, 0.0),
        "stiffness": _first(element, "stiffness", whose, name, notes),
        "name": name,
    }


def _point(element: Element, whose: str, place: Array) -> Array:
    """Return a point of the axis in the body's frame."""
    return place[:3, :3] @ np.array(element.vector("pos", whose, (0.0, 0.0, 0.0))) + place[:3, 3]


def _first(element: Element, key: str, whose: str, name: str, notes: Notes) -> float:
    """Return the constant of a spring or a damper; those of higher powers are left out."""
    if key not in element.attributes:
        return 0.0
    first, *higher = element.numbers(key, whose, 1, 3)
    if any(higher):
        notes.add(f"of {key} the first number is taken", f"{name!r} (line {element.line})")
    return first
