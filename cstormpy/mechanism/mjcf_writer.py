"""MJCF, the models of MuJoCo, written from mechanisms, where it can tell of them.

MuJoCo has hinges, slides, balls and free bodies, of which a body may have several, one after the other: a joint of
several axes is written as its axes. It simulates no body that moves without a mass, so that the joints of a link
without one pass to the link that it alone carries. Of moments of inertia it asks that all are positive and none is
above the sum of the others: those of point masses, rods and plates become larger by 10⁻¹⁴ kg m² and by 10⁻¹² of the
largest, and those that no body has by as much as it takes, which is said.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple
from xml.sax.saxutils import quoteattr

import numpy as np

from cstormpy import checks
from cstormpy.arrays import Array
from cstormpy.errors import InvalidValue
from cstormpy.linkage.constraints import Coupling
from cstormpy.linkage.joints import Limits, OneDofJoint
from cstormpy.linkage.links import INERTIA_TOLERANCE, Link
from cstormpy.linkage.loops import Loop
from cstormpy.linkage.shapes import Shape
from cstormpy.mechanism.mechanism import Mechanism
from cstormpy.mechanism.mjcf_settings import LARGEST
from cstormpy.mechanism.reader_notes import Notes, fresh_name
from cstormpy.mechanism.xml_elements import numbers_of

WORLD = "world"
"""What MuJoCo calls the base."""

_BALLS = ("ball", "free")
_ENDS = {"position": "connect", "pin": "connect", "pose": "weld", "planar": "weld"}
_MOST = 6
"""Coordinates that a body of MuJoCo may have."""

_LEAST = 1e-14
"""The least moment of inertia [kg m²], ten times what MuJoCo asks for."""

_LEAST_MASS = 1e-15
"""What MuJoCo asks for of bodies that move [kg]."""

_ROUNDING = 1e-12

_OWN = ("armature", "damping", "friction", "stiffness")
_WORDS = dict(zip(_OWN, ("armature", "damping", "frictionloss", "stiffness"), strict=True))


class _Part(NamedTuple):
    """A joint of MuJoCo: its name, its coordinates in the mechanism, its type, and its axes in its body's frame."""

    name: str
    coordinates: tuple[str, ...]
    type: str
    freedoms: tuple[OneDofJoint, ...]
    max_angle: float | None


class _Body(NamedTuple):
    """A body of MuJoCo: the link that it is, the one that carries it, its pose there, and its joints."""

    link: Link
    parent: str | None
    pose: Array
    parts: list[_Part]


def to_mjcf(mech: Mechanism, name: str = "robot") -> str:
    """Return the text of a model of MuJoCo; `Mechanism.to_mjcf` tells of it."""
    named = checks.name(name, "name")
    notes = Notes()
    bodies = _bodies(mech)
    sites, equalities = _equalities(mech)
    lines = [
        '<?xml version="1.0" encoding="utf-8"?>',
        f"<mujoco model={quoteattr(named)}>",
        '  <compiler angle="radian" autolimits="true"/>',
        f'  <option gravity="{numbers_of(mech.gravity)}"/>',
    ]
    if any(link.shapes for link in mech.links):
        lines.append('  <default> <geom contype="0" conaffinity="0" mass="0"/> </default>')
    lines += ["  <worldbody>", *(f"    {site}" for site in sites.get(None, ()))]
    order = []
    for depth, body in _in_depth(bodies):
        pad = "  " * (depth + 2)
        if body is None:
            lines.append(f"{pad}</body>")
            continue
        order += [part.name for part in body.parts]
        lines.append(f"{pad}<body name={quoteattr(body.link.name)}{_place(body.pose)}>")
        joints = [_joint(part, part.coordinates[0] in mech.actuated, notes) for part in body.parts]
        inner = [*joints, *_inertial(body.link, notes), *map(_geom, body.link.shapes)]
        lines += [f"{pad}  {line}" for line in (*inner, *sites.get(body.link.name, ()))]
    lines.append("  </worldbody>")
    driven = [(part, body) for body in bodies for part in body.parts if part.coordinates[0] in mech.actuated]
    motors = [line for part, body in driven for line in _motors(part, body.pose[:3, :3], notes)]
    for tag, found in (("equality", equalities), ("actuator", motors)):
        if found:
            lines += [f"  <{tag}>", *(f"    {line}" for line in found), f"  </{tag}>"]
    if order != [part.name for body in bodies for part in body.parts]:
        notes.add("MuJoCo's coordinates follow the bodies within one another", ", ".join(order))
    if mech.active:
        notes.add("MuJoCo leads no joint; say it again, Mechanism.from_mjcf(path, active=...)", ", ".join(mech.active))
    notes.say("to_mjcf")
    return "\n".join([*lines, "</mujoco>", ""])


# Bodies ----------------------------------------------------------------------------------------------------


def _bodies(mech: Mechanism) -> list[_Body]:
    """Return a body for each link, those without a mass joined to what they carry."""
    carried: dict[str | None, list[Link]] = {}
    for link in mech.links:
        if link.name == WORLD and not _is_base(link):
            raise InvalidValue(f"link {WORLD!r}: the name means the base in MuJoCo; give the link another one")
        if link.name != WORLD:
            carried.setdefault(_carrier(link.parent), []).append(link)
    ends = {end for loop in mech.loops if isinstance(loop, Loop) for end in (loop.link_a, loop.link_b)}
    found: list[_Body] = []
    waiting: dict[str | None, _Body] = {}  # what passes to the link that stands on it
    light: list[str] = []
    for link in _from_the_base(carried):
        body = _joined(waiting.pop(link.parent, None), link)
        on_it = carried.get(link.name, [])
        if link.inertia.any() and not link.mass:
            light.append(link.name)
        elif not body.parts or _has_mass(link, carried):
            found.append(body)
        elif not link.mass and _can_pass_on(body, on_it) and link.name not in ends:
            waiting[link.name] = body
        else:
            light.append(link.name)
    if light:
        masses = ", ".join(f"{f'{name}.mass'!r}: 1e-6" for name in light)
        raise InvalidValue(
            f"link{'s' * (len(light) > 1)} {', '.join(map(repr, light))}: MuJoCo has no bodies that move, or have an "
            f"inertia, without a mass, {_LEAST_MASS:g} kg at least; give one that does not matter: "
            f"mech.with_parameters({{{masses}}})"
        )
    places = {link.name: k for k, link in enumerate(mech.links)}
    return sorted(found, key=lambda body: places[body.link.name])


def _joined(before: _Body | None, link: Link) -> _Body:
    """Return the body of a link, with the joints of one before it that has no mass."""
    if before is None:
        parent = _carrier(link.parent)
        return _Body(link, parent, link.pose, _parts(link, parent is None))
    parts = [
        part._replace(freedoms=tuple(freedom.from_parent(link.pose) for freedom in part.freedoms))
        for part in before.parts
    ]
    return _Body(link, before.parent, before.pose @ link.pose, [*parts, *_parts(link, False)])


def _carrier(name: str | None) -> str | None:
    """Return the link that carries another, None for the base, whatever it is called."""
    return None if name == WORLD else name


def _is_base(link: Link) -> bool:
    """Tell whether a link is the base itself, by another name."""
    stands = link.parent is None and not link.joint.dof and np.array_equal(link.pose, np.eye(4))
    return stands and not link.mass and not link.inertia.any() and not link.shapes


def _from_the_base(carried: dict[str | None, list[Link]]) -> Iterator[Link]:
    stack = carried.get(None, [])[::-1]
    while stack:
        link = stack.pop()
        yield link
        stack += carried.get(link.name, [])[::-1]


def _has_mass(link: Link, carried: dict[str | None, list[Link]]) -> bool:
    """Tell whether a link has a mass that is enough for MuJoCo, or one that is welded to it."""
    stack = [link]
    while stack:
        each = stack.pop()
        if each.mass >= _LEAST_MASS:
            return True
        stack += [other for other in carried.get(each.name, ()) if not other.joint.dof]
    return False


def _can_pass_on(body: _Body, on_it: list[Link]) -> bool:
    """Tell whether the joints of a body may be those of what stands on it."""
    count = sum(len(part.coordinates) for part in body.parts)
    alone = len(on_it) == 1 and not body.link.shapes and not any(part.type in _BALLS for part in body.parts)
    return alone and count + on_it[0].joint.dof <= _MOST


def _in_depth(bodies: list[_Body]) -> Iterator[tuple[int, _Body | None]]:
    """Go through bodies as they stand within one another, with their depth; None where one ends."""
    within: dict[str | None, list[_Body]] = {}
    for body in bodies:
        within.setdefault(body.parent, []).append(body)
    stack: list[tuple[int, _Body | None]] = [(0, body) for body in within.get(None, [])[::-1]]
    while stack:
        each = stack.pop()
        yield each
        if each[1] is not None:
            stack.append((each[0], None))
            stack += [(each[0] + 1, child) for child in within.get(each[1].link.name, [])[::-1]]


def _inertial(link: Link, notes: Notes) -> list[str]:
    """Return what tells of the mass of a link, if it has one."""
    if not link.mass:
        return []
    start = f'<inertial pos="{numbers_of(link.com)}" mass="{link.mass!r}"'
    own = link.inertia
    straight = np.array_equal(own, np.diag(np.diag(own)))
    moments, axes = (np.diag(own), np.eye(3)) if straight else np.linalg.eigh(own)
    raised = _as_asked(moments)
    if (raised - moments).max() > max(_LEAST, 3.0 * INERTIA_TOLERANCE * raised.max()):
        notes.add("inertias that no body has are made larger, as MuJoCo asks for", repr(link.name))
    if straight:
        return [f'{start} diaginertia="{numbers_of(raised)}"/>']
    if np.array_equal(raised, moments):
        entries = [*np.diag(own), own[0, 1], own[0, 2], own[1, 2]]
        return [f'{start} fullinertia="{numbers_of(entries)}"/>']
    axes = axes * np.array([1.0, 1.0, np.sign(np.linalg.det(axes))])
    return [f'{start}{_turn(axes)} diaginertia="{numbers_of(raised)}"/>']


def _as_asked(moments: Array) -> Array:
    """Return principal moments as MuJoCo asks for: positive, and none above the sum of the others."""
    raised = np.maximum(moments, _LEAST)
    small, middle, large = np.argsort(raised)
    short = raised[large] * (1.0 + _ROUNDING) - raised[small] - raised[middle]
    if short > 0.0:
        level = min(short, raised[middle] - raised[small])
        raised[small] += level
        raised[[small, middle]] += 0.5 * (short - level)
    return raised


def _geom(shape: Shape) -> str:
    size = np.array(shape.size, dtype=float)
    if shape.kind == "box":
        size = 0.5 * size
    elif shape.kind in ("cylinder", "capsule"):
        size = size * (1.0, 0.5)
    colour = "" if shape.colour is None else f' rgba="{numbers_of(shape.colour)} 1.0"'
    return f'<geom type="{shape.kind}" size="{numbers_of(size)}"{_place(shape.pose)}{colour}/>'


# Joints and motors -----------------------------------------------------------------------------------------


def _parts(link: Link, on_base: bool) -> list[_Part]:
    """Return the joints of MuJoCo that make the joint of a link."""
    joint, name = link.joint, link.joint_name
    kinds = joint.in_mjcf
    if kinds is None:
        raise InvalidValue(f"joint {name!r}: is a {joint.kind} joint; MuJoCo has hinges, slides, balls and free joints")
    if joint.dof > _MOST:
        raise InvalidValue(
            f"joint {name!r}: has {joint.dof} coordinates, of which a body of MuJoCo has at most {_MOST}"
        )
    if kinds == ("free",) and not on_base:
        raise InvalidValue(f"joint {name!r}: is free on another link; MuJoCo has free joints on the base alone")
    if kinds and kinds[0] in _BALLS:
        part = _Part(name, joint.labels(name), kinds[0], joint.freedoms, joint.max_angle)
        _refuse_several(part)
        return [part]
    each = zip(joint.labels(name), kinds, joint.freedoms, strict=True)
    return [_Part(label, (label,), kind, (freedom,), None) for label, kind, freedom in each]


def _refuse_several(part: _Part) -> None:
    """Refuse what MuJoCo does not have of a joint with a rotation vector."""
    for key in _OWN:
        numbers = {getattr(freedom, key) for freedom in part.freedoms}
        if len(numbers) > 1:
            raise InvalidValue(
                f"joint {part.name!r}: {key}: MuJoCo has one number for all coordinates of a {part.type} joint, "
                f"not {', '.join(f'{number:g}' for number in sorted(numbers))}"
            )
    first = part.freedoms[-1]
    if first.stiffness and any(freedom.rest for freedom in part.freedoms):
        raise InvalidValue(f"joint {part.name!r}: rest: MuJoCo has springs of a {part.type} joint relaxed at 0 alone")
    if part.type == "free" and first.point.any() and any(getattr(first, key) for key in _OWN):
        raise InvalidValue(
            f"joint {part.name!r}: point: MuJoCo has dampers and springs of a free joint at its body's origin alone"
        )


def _joint(part: _Part, driven: bool, notes: Notes) -> str:
    """Return a joint; its limits of torque, where it is `driven`, are those of its motor."""
    first = part.freedoms[-1]
    words = [f"<joint name={quoteattr(part.name)} type={quoteattr(part.type)}"]
    if part.type != "free" and first.point.any():
        words.append(f'pos="{numbers_of(first.point)}"')
    if part.type not in _BALLS:
        words.append(f'axis="{numbers_of(first.axis)}"')
    words += [f'{word}="{value!r}"' for key, word in _WORDS.items() if (value := getattr(first, key))]
    limits = first.limits or Limits()
    if part.type not in _BALLS:
        if first.rest:
            words.append(f'springref="{first.rest!r}"')
        words += _range("range", limits.position, part, notes)
        if not driven:
            words += _range("actuatorfrcrange", limits.torque, part, notes)
    elif part.max_angle is not None and part.type == "ball":
        words.append(f'range="0 {part.max_angle!r}"')
    for text, lost in _lost(part, driven):
        if lost:
            notes.add(text, repr(part.name))
    return f"{' '.join(words)}/>"


def _lost(part: _Part, driven: bool) -> Iterator[tuple[str, bool]]:
    """Go through what MuJoCo has no word for, and whether a joint has it."""
    limits = [freedom.limits or Limits() for freedom in part.freedoms]
    usual = OneDofJoint.own_torque["friction_velocity"]
    yield "limits of velocities are left out", any(each.velocity is not None for each in limits)
    smooth = any(freedom.friction and freedom.friction_velocity != usual for freedom in part.freedoms)
    yield "the velocity over which friction is smoothed is left out", smooth
    if part.type in _BALLS:
        several = any(each.position is not None or not (driven or each.torque is None) for each in limits)
        yield (
            "limits of single coordinates are left out",
            several or (part.type == "free" and part.max_angle is not None),
        )


def _range(key: str, pair: tuple[float, float] | None, part: _Part, notes: Notes) -> list[str]:
    if pair is None:
        return []
    low, high = max(pair[0], -LARGEST), min(pair[1], LARGEST)
    if low >= high:
        notes.add("limits that leave one value alone are left out", repr(part.name))
        return []
    return [f'{key}="{low!r} {high!r}"']


def _motors(part: _Part, R: Array, notes: Notes) -> list[str]:
    """Return the motors of a joint: one, or one for each of its coordinates.

    A free body is pushed along the world's axes by MuJoCo, here along those, R, that it has at the start.
    """
    count, found, gears = len(part.freedoms), [], np.eye(6)
    if part.type == "free":
        gears[:3, :3] = R.T
        if part.freedoms[-1].point.any():
            notes.add("motors of free joints act at the origin of their body, not at point", repr(part.name))
    for k, (label, freedom) in enumerate(zip(part.coordinates, part.freedoms, strict=True)):
        gear = "" if count == 1 else f' gear="{numbers_of(gears[k])}"'
        limit = _range("ctrlrange", (freedom.limits or Limits()).torque, part, notes)
        words = [f"<motor name={quoteattr(label)} joint={quoteattr(part.name)}{gear}", *limit]
        found.append(f"{' '.join(words)}/>")
    return found


# Loops -----------------------------------------------------------------------------------------------------


def _equalities(mech: Mechanism) -> tuple[dict[str | None, list[str]], list[str]]:
    """Return the sites of each link at which loops are closed, and what closes them."""
    sites: dict[str | None, list[str]] = {}
    found, taken = [], set[str]()
    for loop in mech.loops:
        if isinstance(loop, Coupling):
            pair = f"joint1={quoteattr(loop.joint)} joint2={quoteattr(loop.other)}"
            numbers = numbers_of([loop.offset, loop.ratio, 0.0, 0.0, 0.0])
            found.append(f'<joint name={quoteattr(loop.name)} {pair} polycoef="{numbers}"/>')
            continue
        if not isinstance(loop, Loop):
            raise InvalidValue(f"constraint {loop.name!r}: is a function, which MuJoCo does not have")
        tag = _ENDS.get(loop.kind or "")
        if tag is None:
            raise InvalidValue(
                f"loop {loop.name!r}: closes {', '.join(loop.labels)}; MuJoCo closes a position or a pose; write "
                "mech.without_loops(), or save to JSON"
            )
        ends = []
        for side, link, pose in (("a", loop.link_a, loop.pose_a), ("b", loop.link_b, loop.pose_b)):
            ends.append(fresh_name(f"{loop.name} {side}", taken))
            sites.setdefault(_carrier(link), []).append(f"<site name={quoteattr(ends[-1])}{_place(pose)}/>")
        found.append(f"<{tag} name={quoteattr(loop.name)} site1={quoteattr(ends[0])} site2={quoteattr(ends[1])}/>")
    return sites, found


# Numbers ---------------------------------------------------------------------------------------------------


def _place(pose: Array) -> str:
    """Return a place and a turn, where they are not those of the frame around."""
    shift = f' pos="{numbers_of(pose[:3, 3])}"' if pose[:3, 3].any() else ""
    return shift + ("" if np.array_equal(pose[:3, :3], np.eye(3)) else _turn(pose[:3, :3]))


def _turn(R: Array) -> str:
    return f' xyaxes="{numbers_of(R[:, :2].T.ravel())}"'
