"""Arguments and mechanisms as the formulations read them: plain arrays by link, from public data only.

Every formulation works on numbers of any type that adds and multiplies: floats, complex numbers (for exact derivatives)
and `counting.Count` (for counting operations), the last in arrays of objects.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cstormpy.arrays import Shape, complex_array
from cstormpy.errors import InvalidType, InvalidValue, SingularInertia

if TYPE_CHECKING:
    from cstormpy.linkage.joints import OneDofJoint
    from cstormpy.mechanism import Link, Mechanism

Array: TypeAlias = NDArray[Any]  # float64, complex128 when an argument is complex, or objects

WRENCH_HINT = "one row (moment, force) per link, in the link's frame"
TERMS = ("armature", "damping", "friction", "friction_velocity", "stiffness", "rest")


# ---------------------------------------------------------------- arguments
def vector(name: str, value: ArrayLike, shape: Shape, hint: str) -> Array:
    """Return an argument as an array of floats, complex numbers or counting numbers of this shape, or refuse it."""
    array = complex_array(value, name, shape, hint=hint)
    given = np.asarray(value)
    counting = given.dtype.kind == "O" and any(hasattr(number, "tally") for number in given.flat)
    return given.copy() if counting else array


class Indexed(Protocol):
    """A tree: the parent of each link and the link of each joint."""

    @property
    def P(self) -> list[int]:
        """The parent of each link."""

    @property
    def joint_links(self) -> Array:
        """The link of each joint."""


def by_link(chain: Indexed, name: str, value: ArrayLike) -> Array:
    """Return an argument of one number per joint as one number per link, 0 at fixed joints."""
    x = vector(name, value, chain.joint_links.shape, "one number per joint")
    out = np.zeros(len(chain.P), dtype=x.dtype)
    out[chain.joint_links] = x
    return out


def wrenches(chain: Indexed, wrench: ArrayLike | None) -> Array:
    """Return (moment, force) on each link from outside, (n_links, 6), in its frame."""
    shape = (len(chain.P), 6)
    return np.zeros(shape) if wrench is None else vector("wrench", wrench, shape, WRENCH_HINT)


def zeros(kind: Any, *shapes: tuple[int, ...]) -> Iterator[Array]:
    """Yield an array of zeros of each shape, all of this type."""
    return (np.zeros(shape, kind) for shape in shapes)


# ---------------------------------------------------------------- mechanisms
class Tree(NamedTuple):
    """The numbers of a mechanism, by link; a fixed joint has a screw of zeros."""

    names: list[str]  # of the links
    joints: list[str]  # by link, the name of its joint
    moves: list[bool]  # whether the joint has a coordinate
    turns: list[bool]  # whether that is an angle: of a hinge or a screw
    slides: list[bool]  # whether it is a length
    screws: list[bool]  # whether the joint turns and slides
    outward: list[int]  # all links, every parent before its children
    P: list[int]  # parent; -1 is the base
    C: list[list[int]]  # children
    pose: Array  # (n_links, 4, 4), in the parent's frame at q = 0
    screw: Array  # (n_links, 6), (ω, v) in the link's frame
    axis: Array  # (n_links, 3), in the link's frame
    point: Array  # (n_links, 3), on the axis, in the link's frame
    mass: Array
    com: Array  # (n_links, 3), in the link's frame
    inertia: Array  # (n_links, 3, 3), about the centre of mass, in the link's axes
    active: Array  # (n_links,) bool; a fixed joint counts as active
    gravity: Array
    joint_links: Array
    terms: dict[str, Array]  # what acts in the joints themselves


def read_tree(mech: Mechanism, whose: str = "", kinds: Sequence[str] = ()) -> Tree:
    """Return what a mechanism says of itself, by link; refuse, by name, a joint that an algorithm does not know.

    `whose` algorithm it is is said together with the `kinds` of joints that it admits, of which the last is the weld.
    """
    refuse_loops(mech)
    links, P = mech.links, [int(p) for p in mech.parents]
    n = len(links)
    screw, axis, point = zeros(np.float64, (n, 6), (n, 3), (n, 3))
    terms = {t: np.zeros(n) for t in TERMS}
    terms["friction_velocity"][:] = 1.0  # of fixed joints, where friction is 0
    active = np.ones(n, dtype=bool)
    for k, i in enumerate(mech.joint_links):
        joint = only_freedom(links[i])
        screw[i], axis[i], point[i], active[i] = joint.screw, joint.axis, joint.point, mech.active_mask[k]
        for t in TERMS:
            terms[t][i] = getattr(joint, t)
    for name, kind in ((link.joint_name, link.joint.kind) for link in links):
        if kinds and kind not in kinds:
            known = " and ".join(kinds[:-1])
            raise InvalidValue(f"joint {name!r}: is a {kind} joint; {whose} admits {known} joints only")
    C = [[c for c, p in enumerate(P) if p == i] for i in range(n)]
    return Tree(
        names=[link.name for link in links],
        joints=[link.joint_name for link in links],
        moves=[link.joint.dof > 0 for link in links],
        turns=[any(f.turns for f in link.joint.freedoms) for link in links],
        slides=[any(not f.turns for f in link.joint.freedoms) for link in links],
        screws=["pitch" in link.joint.required for link in links],
        outward=depth_first(P, C),
        P=P,
        C=C,
        pose=np.array([link.pose for link in links]),
        screw=screw,
        axis=axis,
        point=point,
        mass=np.array([link.mass for link in links]),
        com=np.array([link.com for link in links]),
        inertia=np.array([link.inertia for link in links]),
        active=active,
        gravity=np.array(mech.gravity),
        joint_links=np.array(mech.joint_links),
        terms=terms,
    )


def refuse_loops(mech: Mechanism) -> None:
    """Refuse a mechanism that is no open chain."""
    if mech.loops:
        raise InvalidValue(f"loop {mech.loops[0].name!r}: the recursions are of open chains; give mech.without_loops()")


def only_freedom(link: Link) -> OneDofJoint:
    """Return the joint of a link, or refuse one of several coordinates."""
    if link.joint.dof != 1:
        raise InvalidType(f"link {link.name!r}: expected joints of one coordinate, got {link.joint.dof}")
    return link.joint.freedoms[0]


def depth_first(P: list[int], C: list[list[int]]) -> list[int]:
    """Return all links, every parent before its children, one branch to its end before the next."""
    order, stack = [], [i for i, p in enumerate(P) if p < 0][::-1]
    while stack:
        order.append(i := stack.pop())
        stack += C[i][::-1]
    return order


def joint_torque(tree: Tree, i: int, q: Any, qd: Any, qdd: Any = 0) -> Any:
    """Return what the motor of link i spends in the joint itself; terms that the joint lacks cost no operation.

    This is armature q̈ + damping q̇ + friction tanh(q̇ / v_s) + stiffness (q - rest).
    """
    armature, damping, friction, v_s, stiffness, rest = (tree.terms[t][i] for t in TERMS)
    torque: Any = 0
    if armature:
        torque = torque + armature * qdd
    if damping:
        torque = torque + damping * qd
    if friction:
        torque = torque + friction * np.tanh(qd / v_s)
    if stiffness:
        torque = torque + stiffness * (q - rest)
    return torque


SINGULAR = 1e-14
"""The inertia that a joint moves is nothing but rounding below this part of the numbers that it comes from."""


def divisor(tree: Tree, i: int, inertia: Any, matrix: Array, axis: Array) -> Any:
    """Return the inertia that a free joint moves, its armature included, or refuse to divide by nothing.

    It is axis · (matrix axis), of 6 or 3 numbers, without the armature.
    """
    if tree.terms["armature"][i]:
        inertia = inertia + tree.terms["armature"][i]
    refuse_vanished(tree.names[i], inertia, matrix, axis)
    return inertia


def refuse_vanished(link: str, inertia: Any, matrix: Array, axis: Array) -> None:
    """Refuse the inertia of a free joint, axis · (matrix axis) and more, that is zero but for rounding."""
    if abs(plain(inertia)) <= SINGULAR * size_of(matrix, axis):
        raise SingularInertia(f"link {link!r}: its passive joint moves no inertia; give it mass or armature")


def size_of(matrix: Array, axis: Array) -> Any:
    """Return the size of the numbers that axis · (matrix axis) comes from; of several axes, columns, that of each.

    It is that of any axis whose vectors are as long.
    """
    vectors = plain(axis).reshape(-1, 3, *np.shape(axis)[1:])
    along = np.repeat(np.sqrt((vectors**2).sum(axis=1)), 3, axis=0)
    return (along * (np.abs(plain(matrix)) @ along)).sum(axis=0)


def plain(x: Any) -> Any:
    """Return floats of numbers of any type: the real parts of complex ones, and of those that count their values."""
    array = np.asarray(x)
    return array.astype(np.float64) if array.dtype.kind == "O" else array.real


# ---------------------------------------------------------------- bodies in vectors of three components
class Bodies(NamedTuple):
    """Links in vectors of three components, each from a reference point of its own that lies on its joint's axis.

    Distances are then constants, as in Denavit's and Hartenberg's frames: the vector from the reference point of a
    parent to that of its child does not change when either turns.
    """

    R0: Array  # (n_links, 3, 3), link's axes in the parent's at q = 0
    l0: Array  # (n_links, 3), from the parent's reference point to the link's at q = 0, in the parent's axes
    c: Array  # (n_links, 3), reference point from the link's origin, in the link's axes
    s: Array  # (n_links, 3), centre of mass from the reference point, in the link's axes


def bodies(tree: Tree) -> Bodies:
    """Return the links of a tree from reference points on their axes; a slide's is the link's origin."""
    c = np.where(np.array(tree.turns)[:, None], tree.point, 0.0)
    R0, p0 = tree.pose[:, :3, :3], tree.pose[:, :3, 3]
    below = np.array([c[p] if p >= 0 else np.zeros(3) for p in tree.P])
    l0 = p0 + np.array([R @ x for R, x in zip(R0, c, strict=True)]) - below
    return Bodies(R0, l0, c, tree.com - c)


def cross(a: Array, b: Array) -> Array:
    """Return a × b."""
    return np.array([a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]])


def bracket(w: Array) -> Array:
    """Return [w], 3 x 3, with [w] x = w × x."""
    return np.array([[0, -w[2], w[1]], [w[2], 0, -w[0]], [-w[1], w[0], 0]])


def rotation(e: Array, q: Any) -> Array:
    """Return the rotation by the angle q about the unit vector e, 3 x 3."""
    c, s, along = np.cos(q), np.sin(q), np.outer(e, e)
    across = np.eye(3) - along
    if np.count_nonzero(e) == 1:  # an axis of coordinates, whose square has no rounding
        along, across = np.rint(along), np.rint(across)
    return along + c * across + s * bracket(e)


def turned(tree: Tree, body: Bodies, i: int, q: Any) -> tuple[Array, Array]:
    """Return R, the link's axes in the parent's, and l, its reference point from the parent's, in the parent's axes."""
    if tree.turns[i]:
        return body.R0[i] @ rotation(tree.axis[i], q), body.l0[i]
    if tree.slides[i]:
        return body.R0[i], body.l0[i] + body.R0[i] @ tree.axis[i] * q
    return body.R0[i], body.l0[i]  # fixed


def loads_at_reference(tree: Tree, body: Bodies, wrench: ArrayLike | None) -> tuple[Array, Array]:
    """Return force and moment about the reference point that act on each link from outside, in its axes."""
    rows = wrenches(tree, wrench)
    if wrench is None:
        return rows[:, 3:], rows[:, :3]
    moment = [row[:3] - cross(c, row[3:]) for row, c in zip(rows, body.c, strict=True)]
    return rows[:, 3:], np.array(moment)
