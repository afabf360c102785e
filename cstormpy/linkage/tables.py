"""The arrays by which a mechanism reaches the kernels (`cstormpy.kernels.layout` says what stands where).

Links on fixed joints are merged into the node that carries them, a joint of several coordinates has a node for each of
them, all but the last without mass, and nodes are numbered depth first; what is undone at the border (`coordinate` of a
node, node of a link) is part of the arrays.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cstormpy.arrays import Array
from cstormpy.graph.arrays import symbols
from cstormpy.kernels import layout as at
from cstormpy.linkage.bodies import Body, sum_of
from cstormpy.linkage.constraints import Constraint
from cstormpy.linkage.joints import OneDofJoint
from cstormpy.linkage.linkage import Linkage
from cstormpy.linkage.links import Link
from cstormpy.linkage.loops import Loop, refuse_loops


@dataclass(frozen=True)
class Tables:
    """The numbers `T` and the structure `N` of one mechanism with one drive, and what is fixed to its base.

    The numbers may be symbols of an expression graph (`mechanism.symbolic`). What is made of them is kept in `memo`.
    """

    T: Array
    N: NDArray[np.int64]
    base_inertia: Array  # (6, 6), at the base's origin
    memo: dict[Any, Any] = field(default_factory=dict, init=False, repr=False, compare=False)


@dataclass
class _Node:
    """A moving part: one coordinate, its frame, and the mass of all links that are welded to it."""

    coordinate: int
    joint: OneDofJoint
    parent: int
    pose: Array  # of the node's frame at q = 0 in its parent node's
    ball: int = 0  # 1, 2, 3 for those of a ball joint
    parts: list[Body] = field(default_factory=list)  # in the node's frame


#: Passive joints on the way to a passive joint, on average, above which recursion beats factorisation (measured).
DEEP = 14

#: Drives that a question brings with it, whatever the mechanism's own.
INVERSE, FORWARD, STILL = "inverse", "forward", "still"

#: Numbers that fold in an expression graph: what is written down of a mechanism holds for all that have them there.
FOLDING = (0.0, 1.0, -1.0)


def folded(numbers: Array) -> Array:
    """Return which numbers fold, and into what: NaN for those that stay inputs."""
    return np.where(np.isin(numbers, FOLDING), numbers, np.nan)


#: Flags of a node for which what is written down with 1 holds where they are 0, its numbers being zero there.
_IMPLIED = (at.N_SLIDES, at.N_LOSSES, at.N_TILTED)


@dataclass(frozen=True, eq=False)
class Form:
    """The form of a mechanism that a graph of it takes for granted: structure, names, folded numbers.

    >>> from cstormpy.mechanism import library
    >>> mech = library.acrobot()
    >>> heavy = mech.with_parameters({"forearm.mass": 1.3})
    >>> Form.of(mech).fits(heavy), Form.of(heavy).fits(mech)
    (False, True)
    """

    names: tuple[tuple[Any, ...], ...]
    N: NDArray[np.int64]
    numbers: tuple[Array, ...]

    @classmethod
    def of(cls, mech: Linkage) -> Form:
        """Return the form of a mechanism; numbers that do not fold are NaN in it."""
        return cls(_names_of(mech), tables_of(mech.tree).N, tuple(folded(numbers_of(mech, name)) for name in NUMBERS))

    def fits(self, mech: Linkage) -> bool:
        """Tell whether what was written down holds for a mechanism too: with other numbers where they do not fold."""
        tables = tables_of(mech.tree)
        if self.names != _names_of(mech) or self.N.shape != tables.N.shape:
            return False
        here, there = self.N.copy(), tables.N.copy()
        nodes = slice(at.N_NODES, at.N_NODES + at.N_NODE * here[at.N_COUNT])
        mine, others = (N[nodes].reshape(-1, at.N_NODE) for N in (here, there))
        for flag in _IMPLIED:
            others[:, flag] |= mine[:, flag]
        pairs = [(a, numbers_of(mech, name)) for a, name in zip(self.numbers, NUMBERS, strict=True)]
        return np.array_equal(here, there) and all((np.isnan(a) | (a == b)).all() for a, b in pairs)


#: Arrays of a mechanism's numbers, by name.
NUMBERS = ("T", "base_inertia", "loops")


def numbers_of(mech: Linkage, name: str) -> Array:
    """Return an array of numbers of a mechanism: of its tree's tables, or of the frames of its loops."""
    return loop_numbers(mech) if name == "loops" else np.asarray(getattr(tables_of(mech.tree), name))


def loop_numbers(mech: Linkage) -> Array:
    """Return frames A and B of all loops, orientation (9) and origin (3) of each, one behind the other; kept."""
    made: Array | None = mech.memo.get("loop numbers")
    if made is None:
        poses = [pose for loop in mech.loops if isinstance(loop, Loop) for pose in (loop.pose_a, loop.pose_b)]
        made = np.concatenate([np.zeros(0), *(part for T in poses for part in (T[:3, :3].ravel(), T[:3, 3]))])
        mech.memo["loop numbers"] = made
    return made


def loops_with(mech: Linkage, numbers: Sequence[Any]) -> tuple[Loop | Constraint, ...]:
    """Return the loops of a mechanism with other numbers, as `loop_numbers` orders them, of symbols too."""
    frames = np.reshape(np.array(numbers, dtype=object), (-1, 12))
    made: list[Loop | Constraint] = []
    for loop in mech.loops:
        if isinstance(loop, Loop):
            (a, b), frames = frames[:2], frames[2:]
            loop = loop.with_poses(_pose(a), _pose(b))
        made.append(loop)
    return tuple(made)


def _pose(row: Any) -> Any:
    pose = np.eye(4) if all(isinstance(x, float) for x in row) else symbols(np.eye(4))
    pose[:3, :3], pose[:3, 3] = row[:9].reshape(3, 3), row[9:]
    return pose


def _names_of(mech: Linkage) -> tuple[tuple[Any, ...], ...]:
    ends = tuple((x.name, x.link_a, x.link_b, x.directions) if isinstance(x, Loop) else x for x in mech.loops)
    return tuple(link.name for link in mech.links), mech.names, mech.actuated, mech.active, ends


def tables_of(mech: Linkage, drive: str = "own") -> Tables:
    """Return the tables of a mechanism, made at their first use; who knows of loops asks those of its `tree`.

    Parameters
    ----------
    mech : Linkage
    drive : {"own", "inverse", "forward", "still"}
        The mechanism's own drive; all joints active; all passive; all active and without damping, friction and
        springs.
    """
    made: Tables | None = mech.memo.get(("tables", drive))
    if made is None:
        refuse_loops(mech.loops)
        if drive == "own":
            nodes, node_of_link, pose_in_node = _nodes(mech)
            welded = [i for i, node in enumerate(node_of_link) if node == 0]
            base = sum((_moved(mech.links[i].spatial_inertia, pose_in_node[i]) for i in welded), np.zeros((6, 6)))
            made = Tables(_numbers(mech, nodes, pose_in_node), _structure(mech, nodes, node_of_link), base)
        else:
            own = tables_of(mech)
            made = Tables(own.T, _with_drive(own.N, drive), own.base_inertia)
        mech.memo["tables", drive] = made
    return made


def _with_drive(structure: NDArray[np.int64], drive: str) -> NDArray[np.int64]:
    N = structure.copy()
    rows = N[at.N_NODES : at.N_NODES + at.N_NODE * N[at.N_COUNT]].reshape(-1, at.N_NODE)
    rows[:, at.N_ACTIVE] = drive != FORWARD
    rows[:, at.N_DEVIATES] = drive == FORWARD
    _set_passive_depth(N, rows)
    if drive == STILL:
        rows[:, at.N_LOSSES] = 0
    return N


def _set_passive_depth(N: NDArray[np.int64], rows: NDArray[np.int64]) -> None:
    """Write what follows from the parents and the drive: the passive node above each, and whether they are many."""
    depth = np.zeros(len(rows) + 1)
    for k, row in enumerate(rows):
        above = parent = row[at.N_PARENT]
        if parent > 0 and rows[parent - 1, at.N_ACTIVE]:
            above = rows[parent - 1, at.N_ABOVE]
        row[at.N_ABOVE] = above
        depth[k + 1] = depth[above] + 1
    passive = depth[1:][rows[:, at.N_ACTIVE] == 0]
    N[at.N_DEEP] = len(passive) > 0 and float(passive.mean()) > DEEP


def _nodes(mech: Linkage) -> tuple[list[_Node], list[int], list[Array]]:
    """Return the nodes, numbered depth first from 1, the node of each link, and each link's pose in its node."""
    children: list[list[int]] = [[] for _ in range(len(mech.links) + 1)]
    for i, parent in enumerate(mech.parents):
        children[parent].append(i)  # parent -1, the base, is the last list
    nodes: list[_Node] = []
    node_of_link = [0] * len(mech.links)
    pose_in_node: list[Array] = [np.eye(4)] * len(mech.links)
    like = mech.memo.get("like", mech).freedoms
    stack = children[-1][::-1]
    while stack:
        i = stack.pop()
        stack.extend(children[i][::-1])
        link, parent = mech.links[i], int(mech.parents[i])
        carrier = node_of_link[parent] if parent >= 0 else 0
        pose = (pose_in_node[parent] if parent >= 0 else np.eye(4)) @ link.pose
        coordinate = mech.coordinates(link.joint_name).start
        for k, freedom in enumerate(link.joint.freedoms):  # but for the last, without mass
            ball = link.joint.balls[k]
            if ball:
                axis_frame = _ball_frame(ball, freedom.point)
            else:
                axis_frame = _axis_frame(freedom.axis, freedom.point, like[coordinate + k].axis)
            # the rotation of a ball comes before the axes of its first node
            at_home = pose @ _shift(freedom.point) if ball == 1 else pose @ axis_frame
            nodes.append(_Node(coordinate + k, freedom, carrier, at_home, ball=ball))
            carrier, pose = len(nodes), inverse_pose(axis_frame)
        node_of_link[i], pose_in_node[i] = carrier, pose
        if node_of_link[i]:
            nodes[node_of_link[i] - 1].parts.append(_placed(link, pose_in_node[i]))
    return nodes, node_of_link, pose_in_node


#: An axis closer to the x axis of another's frame than by this has a frame of its own.
_ASIDE = 0.1


def _axis_frame(axis: Array, point: Array, like: Array | None = None) -> Array:
    """Return a frame at `point` whose z axis is `axis`: the identity's own axes where they fit.

    Its x axis is near that of the frame of an axis `like`, so that it turns smoothly away from that.
    """
    like = axis if like is None else like
    helper = np.eye(3)[int(np.argmin(np.abs(like)))]
    x = np.cross(helper, like)
    if like[0] == like[1] == 0.0 and like[2] > 0.0:
        x = np.array([1.0, 0.0, 0.0])
    if not np.array_equal(like, axis):
        x /= np.linalg.norm(x)
        x = x - (x @ axis) * axis
        if np.linalg.norm(x) < _ASIDE:
            return _axis_frame(axis, point)
    x /= np.linalg.norm(x)
    frame = np.eye(4)
    frame[:3, :3] = np.column_stack([x, np.cross(axis, x), axis])
    frame[:3, 3] = point
    return frame


def _shift(point: Array) -> Array:
    pose = np.eye(4)
    pose[:3, 3] = point
    return pose


def _ball_frame(ball: int, point: Array) -> Array:
    """Return the frame of a ball's node: its z axis is that of the link's axes that the node turns about."""
    frame = _shift(point)
    frame[:3, :3] = np.roll(np.eye(3), -ball, axis=1)
    return frame


def inverse_pose(pose: Array) -> Array:
    """Return the inverse of a pose, (4, 4)."""
    inverse = np.eye(4)
    inverse[:3, :3] = pose[:3, :3].T
    inverse[:3, 3] = -pose[:3, :3].T @ pose[:3, 3]
    return inverse


def _cross_matrix(a: Array) -> Array:
    return np.array([[0.0, -a[2], a[1]], [a[2], 0.0, -a[0]], [-a[1], a[0], 0.0]])


def _moved(spatial_inertia: Array, pose: Array) -> Array:
    """Return a spatial inertia, given in a frame of this pose, in the frame that the pose refers to."""
    rotation, origin = pose[:3, :3], pose[:3, 3]
    adjoint = np.zeros((6, 6))  # of the inverse pose
    adjoint[:3, :3] = adjoint[3:, 3:] = rotation.T
    adjoint[3:, :3] = -rotation.T @ _cross_matrix(origin)
    return adjoint.T @ spatial_inertia @ adjoint


def first_moment(spatial_inertia: Array) -> Array:
    """Return m c, which stands as m [c] in a spatial inertia."""
    return np.array([spatial_inertia[2, 4], spatial_inertia[0, 5], spatial_inertia[1, 3]])


#: What is left of lengths or moments below this part of them, where they cancel, is rounding.
_ROUNDING = 8.0 * np.finfo(float).eps


def _placed(link: Link, pose: Array) -> Body:
    """Return the body of a link in a frame in which it has this pose."""
    body = Body(link.mass, link.com, link.inertia).moved(pose)
    far = np.abs(link.com).max() + np.abs(pose[:3, 3]).max()
    return Body(body.mass, _without_rounding(body.com, far), body.inertia)


def _without_rounding(values: Array, size: float) -> Array:
    """Return values without those that are rounding of numbers of a size.

    What cancels but for rounding folds in one mechanism and is a number in its neighbour; and a mass on the axis of
    its joint, which moves none, would be one with an arm.
    """
    return np.where(np.abs(values) < _ROUNDING * size, 0.0, values)


def _central_inertia(parts: Sequence[Body]) -> tuple[float, Array, Array]:
    """Return mass, centre of mass and inertia about it; an inertia without mass stays where it is."""
    mass, com, inertia = sum_of(parts) if parts else Body(0.0, np.zeros(3), np.zeros((3, 3)))
    far = max((float(np.abs(part.com).max()) for part in parts), default=0.0)
    com = _without_rounding(com, far) if mass else np.zeros(3)
    return mass, com, _without_rounding(inertia, float(np.abs(inertia).max()))


def _numbers(mech: Linkage, nodes: list[_Node], pose_in_node: list[Array]) -> Array:
    T = np.zeros(at.T_NODES + at.T_NODE * len(nodes) + at.T_LINK * len(mech.links))
    T[at.T_GRAVITY : at.T_GRAVITY + 3] = mech.gravity
    for k, node in enumerate(nodes):
        row = T[at.T_NODES + at.T_NODE * k :][: at.T_NODE]
        joint = node.joint
        row[at.T_E : at.T_E + 9] = node.pose[:3, :3].ravel()
        row[at.T_P : at.T_P + 3] = node.pose[:3, 3]
        row[at.T_PITCH : at.T_MASS] = _numbers_of_freedom(joint)[at.T_PITCH : at.T_MASS]
        row[at.T_MASS], com, inertia = _central_inertia(node.parts)
        row[at.T_COM : at.T_COM + 3] = com
        row[at.T_INERTIA : at.T_INERTIA + 6] = inertia[np.triu_indices(3)]
    for i, pose in enumerate(pose_in_node):
        row = T[at.T_NODES + at.T_NODE * len(nodes) + at.T_LINK * i :][: at.T_LINK]
        row[:9], row[9:] = pose[:3, :3].ravel(), pose[:3, 3]
    return T


def _numbers_of_freedom(joint: OneDofJoint) -> Array:
    """Return the numbers of a joint's own in a row of its node, as they stand there."""
    row = np.zeros(at.T_NODE)
    row[at.T_PITCH] = joint.slide
    row[at.T_ARMATURE : at.T_SMOOTH] = joint.armature, joint.damping, joint.friction
    row[at.T_SMOOTH : at.T_MASS] = 1.0 / joint.friction_velocity, joint.stiffness, joint.rest
    return row


def numbers_at(mech: Linkage, coordinate: int) -> Array:
    """Return the row of the node of a coordinate, of numbers or symbols."""
    tables = tables_of(mech)
    rows = tables.N[at.N_NODES : at.N_NODES + at.N_NODE * tables.N[at.N_COUNT]].reshape(-1, at.N_NODE)
    k = int(np.flatnonzero(rows[:, at.N_COORDINATE] == coordinate)[0])
    return tables.T[at.T_NODES + at.T_NODE * k :][: at.T_NODE]


def _structure(mech: Linkage, nodes: list[_Node], node_of_link: list[int]) -> NDArray[np.int64]:
    tail = at.N_NODES + at.N_NODE * len(nodes)
    N = np.zeros(tail + len(mech.links) + len(nodes), dtype=np.int64)
    N[at.N_COUNT], N[at.N_LINKS] = len(nodes), len(mech.links)
    rows = N[at.N_NODES : at.N_NODES + at.N_NODE * len(nodes)].reshape(-1, at.N_NODE)
    for k, (row, node) in enumerate(zip(rows, nodes, strict=True)):
        joint = node.joint
        active = bool(mech.active_mask[node.coordinate])
        row[at.N_PARENT] = node.parent
        row[at.N_COORDINATE] = node.coordinate
        row[at.N_TURNS] = joint.turns
        row[at.N_SLIDES] = joint.slide != 0.0
        row[at.N_ACTIVE] = active
        row[at.N_DEVIATES] = not active or (node.parent > 0 and rows[node.parent - 1, at.N_DEVIATES])
        turned = nodes[k + 1 - node.ball :][:3] if node.ball else [node]  # a ball's spring acts about all its axes
        row[at.N_LOSSES] = bool(joint.damping or joint.friction or any(other.joint.stiffness for other in turned))
        row[at.N_END] = k + 2
        row[at.N_TILTED] = not np.array_equal(node.pose[:3, :3], np.eye(3))
        row[at.N_BALL] = node.ball
        row[at.N_CHART] = sum(other.ball == 3 for other in nodes[:k]) if node.ball else 0
    N[at.N_BALLS] = sum(node.ball == 1 for node in nodes)
    _set_passive_depth(N, rows)
    for k in range(len(nodes) - 1, -1, -1):
        parent = nodes[k].parent
        if parent > 0:
            rows[parent - 1, at.N_END] = max(rows[parent - 1, at.N_END], rows[k, at.N_END])
    N[tail : tail + len(mech.links)] = node_of_link
    N[tail + len(mech.links) + rows[:, at.N_COORDINATE]] = np.arange(1, len(nodes) + 1)
    return N
