"""Inverse dynamics by Xiang, Arora and Abdel-Malek's recursive Lagrangian: (12)-(20), and (36)-(38).

Y. Xiang, J. S. Arora and K. Abdel-Malek, "Optimization-based motion prediction of mechanical systems: sensitivity
analysis", Structural and Multidisciplinary Optimization, Springer, 2008.
The sensitivities (21)-(35) are in `xiang_sensitivity`, the regular Lagrangian (6)-(11) in `xiang_regular`.

================  ==================  ==================================================================
here              paper               meaning
================  ==================  ==================================================================
T, dT, ddT, ...   T_j, ∂T_j/∂q_j, …   pose of link j in its parent's frame, 4 x 4, and its derivatives
A, B, C           A_j, B_j, C_j       pose of link j in the base's frame, and its first and second rate
I                 I_j                 4 x 4 inertia matrix, as in (47)
D, E              D_i, E_i            inertial forces, and masses, of the links that joint i carries
F, G              F_i, G_i            external forces, and moments, on these links
z0                z_0                 axis of a turning joint in its parent's frame; 0 of a sliding one
g                 g                   gravity, with a 0 below
P, tree.C         i - 1, i + 1        parent and children of a link; the base is row -1 of A, B, C
================  ==================  ==================================================================

Departures from the print:

1. Joint frames. The paper's T_j is Denavit's and Hartenberg's (1), which turns about z of frame j - 1. Ours is any
   hinge or slide of a `Mechanism` (`homogeneous`), so that z_0 is the axis seen from frame j - 1.
2. (19) carries one force f_k on one link, and (16) multiplies by it at the end. With forces on several links F_i
   carries r f' in place of r, a 4 x 4 matrix: f' ∂A F is the trace of ∂A F f'.
3. Loads come in two sorts: `loads` as the paper has them, at a point of a link, fixed in space; `wrench` as everywhere
   in this package, in the link's frame, at its origin, turning with the link. The torques do not care, their
   derivatives do (`xiang_sensitivity`).
4. Branches: a link's children for i + 1, as (37). Extension, marked so: what acts in the joints themselves.
5. Misprints: the coordinates r_j in B_j r_j and C_j r_j, (15), have no dots.

Screw joints are refused by name: (2) knows two kinds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from cstormpy.errors import InvalidType, InvalidValue
from cstormpy.formulations.arguments import (
    TERMS,
    Array,
    Tree,
    by_link,
    depth_first,
    joint_torque,
    read_tree,
    vector,
    wrenches,
)
from cstormpy.formulations.homogeneous import Frames, frames, trace

if TYPE_CHECKING:
    from cstormpy.mechanism import Mechanism

KINDS = ("revolute", "prismatic", "fixed")
BRANCHED = True

Base: TypeAlias = "tuple[ArrayLike, ArrayLike] | None"


class Load(NamedTuple):
    """A force and a moment on a link, fixed in space: they keep their directions when the link turns.

    Parameters
    ----------
    link : str
        Name of the link.
    force, moment : (3,) array_like
        In the base's frame (N, N m).
    point : (3,) array_like
        Where the force acts, in the link's frame (m).
    """

    link: str
    force: ArrayLike = (0.0, 0.0, 0.0)
    moment: ArrayLike = (0.0, 0.0, 0.0)
    point: ArrayLike = (0.0, 0.0, 0.0)


def inverse_dynamics(
    mech: Mechanism,
    q: ArrayLike,
    qd: ArrayLike,
    qdd: ArrayLike,
    wrench: ArrayLike | None = None,
    base: Base = None,
    loads: Sequence[Load] = (),
) -> Array:
    """Return the motor torques of a given motion, by (12)-(20).

    Parameters
    ----------
    mech, q, qd, qdd, wrench
        As for `uicker_kahn.inverse_dynamics`, without screws.
    base : (V0, dV0), optional
        Velocity (ω, v) of the base and the rate of its components, each (6,), in the base frame: virtual joints of no
        mass carry it, as the paper says after (36).
    loads : sequence of Load, optional
        Forces and moments that are fixed in space.

    Raises
    ------
    CstormError
        If a joint is of another kind, a load is on no link, or an argument has another shape, is not of numbers, or is
        not finite.

    Examples
    --------
    A horizontal link of 2 kg, its centre of mass at 0.5 m, is held against gravity, then with 3 N more at its tip:

    >>> from cstormpy.mechanism import Link, Mechanism, Revolute
    >>> mech = Mechanism([Link("arm", None, Revolute((0, 0, 1)), mass=2.0, com=(0.5, 0, 0))])
    >>> inverse_dynamics(mech, [0.0], [0.0], [0.0])
    array([9.81])
    >>> inverse_dynamics(mech, [0.0], [0.0], [0.0], loads=[Load("arm", force=(0, -3, 0), point=(1, 0, 0))])
    array([12.81])
    """
    s = system(mech, q, qd, qdd, wrench, base, loads)
    k = kinematics(s)
    return dynamics(s, k).tau[: len(mech.links)][np.asarray(mech.joint_links)]


# ---------------------------------------------------------------- the mechanism, its motion and its loads
class System(NamedTuple):
    """All that is given, by link."""

    tree: Tree
    body: Frames
    q: Array
    qd: Array
    qdd: Array
    wrench: Array  # (n_links, 6), fixed to the links
    loads: list[tuple[int, Array, Array, Array]]  # link; r, f, h of four components each, fixed in space

    @property
    def kind(self) -> Any:
        """Return the type of numbers that comes out."""
        return np.result_type(self.q, self.qd, self.qdd, self.wrench, *(x for load in self.loads for x in load[1:]))


def system(
    mech: Mechanism,
    q: ArrayLike,
    qd: ArrayLike,
    qdd: ArrayLike,
    wrench: ArrayLike | None,
    base: Base,
    loads: Sequence[Load],
) -> System:
    """Return all that is given, by link; a moving base adds six links of no mass at the end of the list."""
    tree = read_tree(mech, "Xiang, Arora and Abdel-Malek's formulation", KINDS)
    q, qd, qdd = by_link(tree, "q", q), by_link(tree, "qd", qd), by_link(tree, "qdd", qdd)
    rows = wrenches(tree, wrench)
    placed = [space_load(mech, load) for load in loads]
    if base is not None:
        q, qd, qdd = (np.concatenate(pair) for pair in zip((q, qd, qdd), base_motion(base), strict=True))
        tree, rows = on_virtual_joints(tree), np.concatenate([rows, np.zeros((6, 6))])
    return System(tree, frames(tree), q, qd, qdd, rows, placed)


def space_load(mech: Mechanism, load: Load) -> tuple[int, Array, Array, Array]:
    """Return link, r_f, f and h of (16)-(20), the latter three with four components."""
    if not isinstance(load, Load):
        raise InvalidType(f"loads: expected a sequence of Load(link, force, moment, point), got {load!r} in it")
    where = f"load on link {load.link!r}: "
    parts = ((load.point, "point", 1.0), (load.force, "force", 0.0), (load.moment, "moment", 0.0))
    r, f, h = (np.append(vector(where + name, x, (3,), "a vector"), last) for x, name, last in parts)
    return mech.link_index(load.link), r, f, h


def base_motion(base: Any) -> tuple[Array, Array, Array]:
    """Return q, q̇, q̈ of three slides along and three hinges about x, y, z that move the base as given."""
    if not isinstance(base, Sequence | np.ndarray) or len(base) != 2:
        raise InvalidValue(f"base: expected a pair (V0, dV0), got {base!r}")
    V0, dV0 = (vector(f"base[{k}]", x, (6,), "(ω, v) in the base frame") for k, x in enumerate(base))
    (wx, wy, wz), (vx, vy, vz) = V0[:3], V0[3:]
    turning = dV0[:3] + np.array([-wy * wz, wx * wz, -wx * wy])  # rates of the three angles, one hinge on the other
    sliding = dV0[3:] + np.array([wy * vz - wz * vy, wz * vx - wx * vz, wx * vy - wy * vx])  # slides do not turn: ω × v
    return np.zeros(6), np.concatenate([V0[3:], V0[:3]]), np.concatenate([sliding, turning])


def on_virtual_joints(tree: Tree) -> Tree:
    """Return the tree on six more links of no mass, the last of which is the base: "more degrees of freedom"."""
    n, axes = len(tree.P), np.eye(3)
    screw = np.concatenate([np.hstack([0 * axes, axes]), np.hstack([axes, 0 * axes])])
    P = [p if p >= 0 else n + 5 for p in tree.P] + [-1, *range(n, n + 5)]
    C = [[c for c, p in enumerate(P) if p == i] for i in range(n + 6)]
    still = {t: np.full(6, float(t == "friction_velocity")) for t in TERMS}
    return tree._replace(
        names=tree.names + [f"virtual {k}" for k in range(6)],
        joints=tree.joints + [f"virtual {k}" for k in range(6)],
        moves=tree.moves + [True] * 6,
        turns=tree.turns + [False] * 3 + [True] * 3,
        slides=tree.slides + [True] * 3 + [False] * 3,
        screws=tree.screws + [False] * 6,
        outward=depth_first(P, C),
        P=P,
        C=C,
        pose=np.concatenate([tree.pose, [np.eye(4)] * 6]),
        screw=np.concatenate([tree.screw, screw]),
        axis=np.concatenate([tree.axis, axes, axes]),
        point=np.concatenate([tree.point, np.zeros((6, 3))]),
        mass=np.concatenate([tree.mass, np.zeros(6)]),
        com=np.concatenate([tree.com, np.zeros((6, 3))]),
        inertia=np.concatenate([tree.inertia, np.zeros((6, 3, 3))]),
        terms={t: np.concatenate([tree.terms[t], still[t]]) for t in TERMS},
    )


# ---------------------------------------------------------------- 4.1: forward recursive kinematics
class Kinematics(NamedTuple):
    """Quantities of (12)-(14) by link; the base is the last row of A, B and C."""

    T: Array
    dT: Array
    ddT: Array
    A: Array
    B: Array
    C: Array


def kinematics(s: System) -> Kinematics:
    """Return the matrices of (12)-(14), outward."""
    n, kind = len(s.q), s.kind
    T, dT, ddT = np.zeros((3, n, 4, 4), kind)
    A, B, C = np.zeros((3, n + 1, 4, 4), kind)
    A[-1] = np.eye(4)  # (36)
    for j in s.tree.outward:
        P, qd, qdd = s.tree.P[j], s.qd[j], s.qdd[j]
        T[j] = s.body.T(j, s.q[j])  # (1)
        A[j] = A[P] @ T[j]  # (12)
        B[j] = B[P] @ T[j]  # (13)
        C[j] = C[P] @ T[j]  # (14)
        if s.tree.moves[j]:
            dT[j], ddT[j] = s.body.T(j, s.q[j], 1), s.body.T(j, s.q[j], 2)
            B[j] = B[j] + A[P] @ dT[j] * qd  # (13)
            C[j] = C[j] + B[P] @ dT[j] * (2 * qd) + A[P] @ ddT[j] * (qd * qd) + A[P] @ dT[j] * qdd  # (14)
    return Kinematics(T, dT, ddT, A, B, C)


# ---------------------------------------------------------------- 4.2: backward recursive dynamics
class Dynamics(NamedTuple):
    """Quantities of (16)-(20) by link."""

    D: Array
    E: Array
    F: Array
    G: Array
    tau: Array


def dynamics(s: System, k: Kinematics) -> Dynamics:
    """Return the matrices and vectors of (17)-(20) and the torques (16), inward."""
    n, tree = len(s.q), s.tree
    d = Dynamics(*(np.zeros((n, *shape), s.kind) for shape in ((4, 4), (4,), (4, 4), (4,), ())))
    for i in reversed(tree.outward):
        d.D[i] = s.body.J[i] @ k.C[i].T  # (17)
        d.E[i] = s.body.J[i][:, 3]  # (18): m r
        d.F[i], d.G[i] = loads_on(s, i, k.A[i])  # (19), (20)
        for c in tree.C[i]:
            d.D[i] = d.D[i] + k.T[c] @ d.D[c]  # (17), (37b)
            d.E[i] = d.E[i] + k.T[c] @ d.E[c]  # (18)
            if loaded(s):
                d.F[i] = d.F[i] + k.T[c] @ d.F[c]  # (19)
                d.G[i] = d.G[i] + d.G[c]  # (20)
        if tree.moves[i]:
            d.tau[i] = torque(s, k, d, i) + joint_torque(tree, i, s.q[i], s.qd[i], s.qdd[i])  # extension
    return d


def torque(s: System, k: Kinematics, d: Dynamics, i: int) -> Any:
    """Return τ_i of (16)."""
    A = k.A[s.tree.P[i]]
    dA = A @ k.dT[i]
    tau = trace(dA, d.D[i]) - s.body.g @ (dA @ d.E[i])  # (16)
    if loaded(s):
        tau = tau - trace(dA, d.F[i]) - d.G[i] @ (A @ z0(s.tree, i))  # (16)
    return tau


def loaded(s: System) -> bool:
    """Return whether there is any load, fixed in space or to a link."""
    return bool(s.loads) or bool(s.wrench.any())


def loads_on(s: System, i: int, A: Array) -> tuple[Any, Any]:
    """Return r f' and h of all loads on link i: the terms with Kronecker's delta in (19), (20)."""
    F, G = np.zeros((4, 4)), np.zeros(4)
    if s.wrench[i].any():
        moment, force = np.append(s.wrench[i, :3], 0), np.append(s.wrench[i, 3:], 0)
        F, G = np.outer([0, 0, 0, 1], A @ force), A @ moment  # at the link's origin, and turning with it
    for link, r, f, h in s.loads:
        if link == i:
            F, G = F + np.outer(r, f), G + h
    return F, G


def z0(tree: Tree, i: int) -> Array:
    """Return z_0 of (16): the axis of a turning joint in its parent's frame, with a 0 below."""
    return tree.pose[i] @ np.append(tree.screw[i, :3], 0)


def joint_slopes(tree: Tree, i: int, qd: Any) -> tuple[Any, Any, Any]:
    """Return the derivatives to q, q̇ and q̈ of what acts in joint i itself; what it lacks costs no operation."""
    armature, damping, friction, v_s, stiffness, _ = (tree.terms[t][i] for t in TERMS)
    rate = damping
    if friction:
        level = np.tanh(qd / v_s)
        rate = rate + (1 - level * level) * (friction / v_s)
    return stiffness, rate, armature


# ---------------------------------------------------------------- (38): cut joints
Place: TypeAlias = "tuple[str | None, ArrayLike]"


def cut_joint(first: Place, second: Place, force: ArrayLike, moment: ArrayLike = (0.0, 0.0, 0.0)) -> list[Load]:
    """Return the loads at a joint that was cut to open a loop, (38b): equal and opposite on its two sides.

    Parameters
    ----------
    first, second : (link, point)
        Name of the link on each side, and the joint's place in its frame; the link None is the base.
    force, moment : (3,) array_like
        What the second side exerts on the first, in the base's frame.

    Examples
    --------
    >>> cut_joint(("forearm", (0.4, 0, 0)), (None, (0.1, 0.5, 0)), force=(1.0, 2.0, 0.0))
    [Load(link='forearm', force=array([1., 2., 0.]), moment=array([0., 0., 0.]), point=(0.4, 0, 0))]
    """
    f, h = (vector(name, x, (3,), "a vector in the base's frame") for name, x in (("force", force), ("moment", moment)))
    sides = ((first, f, h), (second, -f, -h))
    return [Load(link, f, h, point) for (link, point), f, h in sides if link is not None]


def gap(mech: Mechanism, q: ArrayLike, first: Place, second: Place) -> Array:
    """Return how far the first side of a cut joint is from the second, in the base's frame: 0 if closed, g of (38b).

    Examples
    --------
    >>> from cstormpy.mechanism import library
    >>> gap(library.xiang_two_link(), [0.0, 0.0], ("forearm", (0.4, 0, 0)), (None, (0.1, 0.5, 0)))
    array([ 0.7, -0.5, 0. ])
    """
    still = np.zeros(mech.n)
    A = kinematics(system(mech, q, still, still, None, None, ())).A
    ends = []
    for link, point in (first, second):
        r = np.append(vector("point", point, (3,), "a vector"), 1.0)  # (3)
        ends.append(A[-1 if link is None else mech.link_index(link)] @ r)  # (4), (15)
    return (ends[0] - ends[1])[:3]
