"""The regular Lagrangian of Xiang, Arora and Abdel-Malek, and its direct sensitivity: (6)-(11).

Y. Xiang, J. S. Arora and K. Abdel-Malek, "Optimization-based motion prediction of mechanical systems: sensitivity
analysis", Structural and Multidisciplinary Optimization, Springer, 2008.
The recursive formulation, which the paper sets against this one, is in `xiang`.

================  ==================  ==================================================================
here              paper               meaning
================  ==================  ==================================================================
partial(j)        ⁰T_j                pose of link j in the base's frame, 4 x 4
partial(j, k, m)  ∂²⁰T_j/∂q_k∂q_m     its derivatives, each formed once
I[j]              I_j                 4 x 4 inertia matrix
E[j]              m_j r̄_j             mass times centre of mass, in the link's frame
M, V              M, V                mass matrix (7), and Coriolis and centrifugal torques (8)
since(i, k)       j = max(i,k), ..., n  the links that all of these joints carry
================  ==================  ==================================================================

The sums are those of the print: four indices in (8), so that V takes n⁴, and one more in its derivative, so that (11)
takes n⁵.

Departures from the print:

1. (9) and (10) give one column of the Jacobian, where all are meant: the force on link s works for every q_i.
2. The print adds g and f_s in (6), which are forces that the motors work against there. Here gravity and loads are
   what acts on the links, as in the paper's own (16) with (51), and are subtracted.
3. Joint frames: any hinge or slide of a `Mechanism` in place of Denavit's and Hartenberg's (1).
4. Extensions, marked so: `wrench` in the link's frame, with a moment, and what acts in the joints themselves.

A branched mechanism is refused by name, since "the regular Lagrangian equations of the system must be rewritten" for it
(4.4), and so are screw joints (2), and moments fixed in space, which (6) does not have.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from cstormpy.errors import InvalidValue
from cstormpy.formulations.arguments import Array, Tree, by_link, joint_torque, read_tree
from cstormpy.formulations.homogeneous import Legs, frames, load_matrices, trace
from cstormpy.formulations.xiang import Load, joint_slopes, space_load

if TYPE_CHECKING:
    from cstormpy.mechanism import Mechanism

KINDS = ("revolute", "prismatic", "fixed")
BRANCHED = False


def inverse_dynamics(
    mech: Mechanism,
    q: ArrayLike,
    qd: ArrayLike,
    qdd: ArrayLike,
    wrench: ArrayLike | None = None,
    loads: Sequence[Load] = (),
) -> Array:
    """Return the motor torques of a given motion, by (6).

    Parameters
    ----------
    mech, q, qd, qdd, wrench
        As for `uicker_kahn.inverse_dynamics`, without screws and branches.
    loads : sequence of Load, optional
        Forces at points of the links, fixed in space.

    Raises
    ------
    CstormError
        If the mechanism has branches, a joint is of another kind, a load has a moment, or an argument has another
        shape, is not of numbers, or is not finite.

    Examples
    --------
    A horizontal link of 2 kg, its centre of mass at 0.5 m, is held against gravity:

    >>> from cstormpy.mechanism import Link, Mechanism, Revolute
    >>> mech = Mechanism([Link("arm", None, Revolute((0, 0, 1)), mass=2.0, com=(0.5, 0, 0))])
    >>> inverse_dynamics(mech, [0.0], [0.0], [0.0])
    array([9.81])
    """
    c = chain(mech, q, wrench, loads, orders=2)
    qd, qdd = by_link(c.tree, "qd", qd), by_link(c.tree, "qdd", qdd)
    tau = []
    for i in c.joints:
        torque = sum(mass(c, i, k) * qdd[k] for k in c.joints) + coriolis(c, i, qd) - forces(c, i)  # (6)
        tau.append(torque + joint_torque(c.tree, i, c.q[i], qd[i], qdd[i]))  # extension
    return np.array(tau)[c.place]


def mass_matrix(mech: Mechanism, q: ArrayLike) -> Array:
    """Return the mass matrix (7), (n, n), armature included.

    Examples
    --------
    >>> from cstormpy.mechanism import Link, Mechanism, Revolute
    >>> mass_matrix(Mechanism([Link("arm", None, Revolute((0, 0, 1)), mass=2.0, com=(0.5, 0, 0))]), [0.3])
    array([[0.5]])
    """
    c = chain(mech, q, None, (), orders=1)
    M = np.array([[mass(c, i, k) for k in c.joints] for i in c.joints]).reshape(len(c.joints), len(c.joints))
    return M[np.ix_(c.place, c.place)] + np.diag(c.tree.terms["armature"][mech.joint_links])  # extension


def inverse_sensitivity(
    mech: Mechanism,
    q: ArrayLike,
    qd: ArrayLike,
    qdd: ArrayLike,
    wrench: ArrayLike | None = None,
    loads: Sequence[Load] = (),
) -> tuple[Array, Array, Array]:
    """Return ∂τ/∂q, (11), and ∂τ/∂q̇ and ∂τ/∂q̈, of τ = `inverse_dynamics` of the same arguments.

    Parameters and errors are those of `inverse_dynamics`. A wrench is held constant in the link's frame, a load of
    `loads` in space.

    Returns
    -------
    dtau_dq, dtau_dqd, dtau_dqdd : (n, n) ndarray
        Row: the torque. Column: the variable.

    Examples
    --------
    >>> from cstormpy.mechanism import Link, Mechanism, Revolute
    >>> mech = Mechanism([Link("arm", None, Revolute((0, 0, 1), damping=0.5), mass=2.0, com=(0.5, 0, 0))])
    >>> [float(d[0, 0]) for d in inverse_sensitivity(mech, [np.pi / 2], [0.0], [0.0])]  # -m g l, damping, inertia
    [-9.81, 0.5, 0.5]
    """
    c = chain(mech, q, wrench, loads, orders=3)
    qd, qdd = by_link(c.tree, "qd", qd), by_link(c.tree, "qdd", qdd)
    n = len(c.joints)
    tau_q, tau_qd, tau_qdd = np.zeros((3, n, n), np.result_type(c.q, qd, qdd, *([] if c.Psi is None else [c.Psi])))
    for row, i in enumerate(c.joints):
        for column, s in enumerate(c.joints):
            inertial = sum(d_mass(c, i, k, s) * qdd[k] for k in c.joints)
            tau_q[row, column] = inertial + d_coriolis(c, i, s, qd) - d_forces(c, i, s)  # (11)
            tau_qd[row, column] = coriolis_rate(c, i, s, qd)
            tau_qdd[row, column] = mass(c, i, s)
        own = joint_slopes(c.tree, i, qd[i])  # extension
        for matrix, slope in zip((tau_q, tau_qd, tau_qdd), own, strict=True):
            matrix[row, row] = matrix[row, row] + slope
    place = np.ix_(c.place, c.place)
    return tau_q[place], tau_qd[place], tau_qdd[place]


# ---------------------------------------------------------------- the chain
class Chain(NamedTuple):
    """A mechanism without branches, and the derivatives of its links' poses."""

    tree: Tree
    q: Array
    joints: list[int]  # links that move by themselves, from the base to the tip
    place: list[int]  # where the joint of each entry of q is among these
    links: list[int]  # from the base to the tip
    I: Array
    E: Array
    g: Array
    partial: Callable[..., Array]
    Psi: Array | None  # load matrices of the wrenches
    loads: list[tuple[int, Array, Array]]  # link, r_s, f_s

    def since(self, *joints: int) -> list[int]:
        """Return the links that all of these joints carry."""
        return self.links[max(self.links.index(i) for i in joints) :]


def chain(mech: Mechanism, q: ArrayLike, wrench: ArrayLike | None, loads: Sequence[Load], orders: int) -> Chain:
    """Return the mechanism as a chain, with the derivatives of ⁰T_j up to this order, or refuse it."""
    tree = read_tree(mech, "Xiang, Arora and Abdel-Malek's formulation", KINDS)
    for i in (-1, *range(len(tree.P))):
        if tree.P.count(i) > 1:
            which = f"link {tree.names[i]!r}" if i >= 0 else "the base"
            raise InvalidValue(
                f"{which} carries several links; the regular Lagrangian takes none, formulations.xiang does"
            )
    placed = [space_load(mech, load) for load in loads]
    if any(h.any() for *_, h in placed):
        raise InvalidValue("loads: (6) has no moments that are fixed in space; formulations.xiang has")
    body, q = frames(tree), by_link(tree, "q", q)
    joints = [i for i in tree.outward if tree.moves[i]]
    return Chain(
        tree=tree,
        q=q,
        joints=joints,
        place=[joints.index(i) for i in mech.joint_links],
        links=tree.outward,
        I=body.J,
        E=body.J[:, :, 3],
        g=body.g,
        partial=kept(Legs(tree, body, q, orders)),
        Psi=load_matrices(tree, wrench),
        loads=[(link, r, f) for link, r, f, _ in placed],
    )


def kept(legs: Legs) -> Callable[..., Array]:
    """Return the partial derivatives of ⁰T_j, each of which is formed once, in whatever order its variables come."""
    table: dict[tuple[int, ...], Array] = {}

    def partial(j: int, *variables: int) -> Array:
        key = (j, *sorted(variables))
        if key not in table:
            table[key] = legs.partial(j, *variables)
        return table[key]

    return partial


# ---------------------------------------------------------------- 3.1: the equation
def mass(c: Chain, i: int, k: int) -> Any:
    """Return M_ik."""
    return sum(trace(c.partial(j, k) @ c.I[j], c.partial(j, i).T) for j in c.since(i, k))  # (7)


def coriolis(c: Chain, i: int, qd: Array) -> Any:
    """Return V_i."""
    V: Any = 0
    for k in c.joints:
        for m in c.joints:
            for j in c.since(i, k, m):
                V = V + trace(c.partial(j, k, m) @ c.I[j], c.partial(j, i).T) * (qd[k] * qd[m])  # (8)
    return V


def forces(c: Chain, i: int) -> Any:
    """Return the generalised force of gravity and loads for q_i."""
    Q: Any = 0
    for j in c.since(i):
        Q = Q + c.g @ (c.partial(j, i) @ c.E[j])  # (9)
        if c.Psi is not None:
            Q = Q + trace(c.partial(j, i) @ c.Psi[j], c.partial(j).T)  # extension
        for link, r, f in c.loads:
            if link == j:
                Q = Q + f @ (c.partial(j, i) @ r)  # (10)
    return Q


# ---------------------------------------------------------------- 3.2: its derivatives
def d_mass(c: Chain, i: int, k: int, s: int) -> Any:
    """Return ∂M_ik/∂q_s; what does not depend on q_s is left out of the sum."""
    total: Any = 0
    for j in c.since(i, k, s):
        total = total + trace(c.partial(j, k, s) @ c.I[j], c.partial(j, i).T)
        total = total + trace(c.partial(j, k) @ c.I[j], c.partial(j, i, s).T)
    return total


def d_coriolis(c: Chain, i: int, s: int, qd: Array) -> Any:
    """Return ∂V_i/∂q_s."""
    total: Any = 0
    for k in c.joints:
        for m in c.joints:
            for j in c.since(i, k, m, s):
                third = trace(c.partial(j, k, m, s) @ c.I[j], c.partial(j, i).T)
                total = total + (third + trace(c.partial(j, k, m) @ c.I[j], c.partial(j, i, s).T)) * (qd[k] * qd[m])
    return total


def coriolis_rate(c: Chain, i: int, s: int, qd: Array) -> Any:
    """Return ∂V_i/∂q̇_s: s is either of two equal factors of (8)."""
    total: Any = 0
    for m in c.joints:
        for j in c.since(i, m, s):
            total = total + trace(c.partial(j, s, m) @ c.I[j], c.partial(j, i).T) * (2 * qd[m])
    return total


def d_forces(c: Chain, i: int, s: int) -> Any:
    """Return the derivative to q_s of the generalised force for q_i."""
    total: Any = 0
    for j in c.since(i, s):
        total = total + c.g @ (c.partial(j, i, s) @ c.E[j])
        if c.Psi is not None:
            total = total + trace(c.partial(j, i, s) @ c.Psi[j], c.partial(j).T)  # extension
            total = total + trace(c.partial(j, i) @ c.Psi[j], c.partial(j, s).T)  # extension
        for link, r, f in c.loads:
            if link == j:
                total = total + f @ (c.partial(j, i, s) @ r)
    return total
