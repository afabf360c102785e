"""Derivatives of Kim's hybrid dynamics to any scalar: of the state, of the loads, of the mechanism.

J. Kim, "Lie Group Formulation of Articulated Rigid Body Dynamics", version 2.01 (2012). Our copy breaks off before its
section 4, which has these derivatives: **the sweeps are derived here**, by differentiating Tables 2 to 4 line by line.
The comment at the end of a line is the equation that the line differentiates. Notation as in `kim`; further

================  ==================  ==================================================================
here              paper's way         meaning
================  ==================  ==================================================================
dV, dI_hat, ...   ∂V_i/∂p, ∂Î_i/∂p    derivative of V, Î, ... to the one scalar p of this sweep
h                 T^-1 ∂T/∂p          change of the pose in the parent, seen from the body; then
                                      ∂Ad_{T^-1}/∂p = -ad_h Ad_{T^-1}
dS, dI, dg        ∂S_i/∂p, ...        change of the joint, of the inertia, of gravity
dq, dqd, du       ∂q_i/∂p, ...        change of the arguments
================  ==================  ==================================================================

One pass of the sweeps takes a time in proportion to the bodies, and gives the derivative in one direction; that to all
joints takes n passes. What p may be: anything on which q, q̇, u, the loads and the numbers of the mechanism depend. For
p = q_i, h = S_i at joint i and all else is 0. In ∂Ψ = -Ψ (∂Sᵀ Î S + Sᵀ ∂Î S + Sᵀ Î ∂S) Ψ the armature's rate adds to
the bracket. A joint of one freedom has Ṡ = 0, and ∂S is of the mechanism's data alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from cstormpy.errors import InvalidValue, unknown_name
from cstormpy.formulations.arguments import (
    TERMS,
    WRENCH_HINT,
    Array,
    Tree,
    bracket,
    by_link,
    cross,
    vector,
    wrenches,
    zeros,
)
from cstormpy.formulations.kim import Hybrid, System, ad, generalised_inertia, read_system, table_4

if TYPE_CHECKING:
    from cstormpy.mechanism import Mechanism

LINK_SHAPES = {"mass": (), "com": (3,), "inertia": (3, 3), "pose": (4, 4)}
JOINT_SHAPES = {"axis": (3,), "point": (3,), "pitch": (), **dict.fromkeys(TERMS, ())}


class Direction(NamedTuple):
    """The change of everything with p, by body."""

    dq: Array
    dqd: Array
    du: Array
    dF_ext: Array
    dM: Array
    dS: Array
    dI: Array
    dg: Array
    dterms: dict[str, Array]


def still(system: System) -> Direction:
    """Return no change at all."""
    n = len(system.lam)
    dq, dqd, du, dF_ext, dM, dS, dI, dg = zeros(
        np.float64, (n,), (n,), (n,), (n, 6), (n, 4, 4), (n, 6), (n, 6, 6), (3,)
    )
    return Direction(dq, dqd, du, dF_ext, dM, dS, dI, dg, {t: np.zeros(n) for t in TERMS})


# ---------------------------------------------------------------- the sweeps
def pose_rate(M: Array, S: Array, q: Any, dM: Array, dS: Array, dq: Any) -> Array:
    """Return h = T^-1 ∂T, (6,), of T = M e^{S q}."""
    w, v, dw, dv, s, c = bracket(S[:3]), S[3:], bracket(dS[:3]), dS[3:], np.sin(q), np.cos(q)
    square, dsquare = w @ w, dw @ w + w @ dw
    R = np.eye(3) + s * w + (1 - c) * square
    p = q * v + (1 - c) * (w @ v) + (q - s) * (square @ v)
    dR = s * dw + (1 - c) * dsquare  # to S alone
    dp = q * dv + (1 - c) * (dw @ v + w @ dv) + (q - s) * (dsquare @ v + square @ dv)
    moved = M[:3, :3].T @ dM[:3, :3]  # and to M, seen from the frame before the joint
    turn = R.T @ (dR + moved @ R)
    shift = R.T @ (dp + moved @ p + M[:3, :3].T @ dM[:3, 3])
    return np.array([turn[2, 1], turn[0, 2], turn[1, 0], *shift]) + S * dq


def extra_rate(system: System, q: Array, qd: Array, qdd: Array, d: Direction, dqdd: Array, armature: bool) -> Array:
    """Return the change of what the motors spend in the joints themselves, with or without the armature's, by body."""
    out = np.zeros(len(q), np.result_type(q, qd, qdd, dqdd))
    for i in system.tree.joint_links:
        t, dt = ({name: of[name][i] for name in TERMS} for of in (system.tree.terms, d.dterms))
        out[i] = t["damping"] * d.dqd[i] + dt["damping"] * qd[i]
        out[i] = out[i] + t["stiffness"] * (d.dq[i] - dt["rest"]) + dt["stiffness"] * (q[i] - t["rest"])
        if t["friction"] or dt["friction"]:
            v_s = t["friction_velocity"]
            slip = np.tanh(qd[i] / v_s)
            d_slip = (1 - slip * slip) * (d.dqd[i] / v_s - qd[i] * (dt["friction_velocity"] / v_s**2))
            out[i] = out[i] + dt["friction"] * slip + t["friction"] * d_slip
        if armature:
            out[i] = out[i] + t["armature"] * dqdd[i] + dt["armature"] * qdd[i]
    return out


class VelocityRates(NamedTuple):
    """Changes that the first sweep leaves, by body; the ground is the last row of dV."""

    h: Array
    dV: Array
    deta: Array


def d_velocity_sweep(system: System, hyb: Hybrid, q: Array, qd: Array, d: Direction) -> VelocityRates:
    """Differentiate the first recursion of the tables."""
    n, kind = len(q), hyb.Vdot.dtype
    h, dV, deta = zeros(kind, (n, 6), (n + 1, 6), (n, 6))
    for i in system.tree.outward:
        S, dS, V, lam = system.S[i], d.dS[i], hyb.v.V[i], system.lam[i]
        h[i] = pose_rate(system.M[i], S, q[i], d.dM[i], dS, d.dq[i])
        Ad_h = hyb.v.Ad_h[i]
        d_rate = dS * qd[i] + S * d.dqd[i]
        dV[i] = Ad_h @ dV[lam] - ad(h[i]) @ (Ad_h @ hyb.v.V[lam]) + d_rate  # (37)
        deta[i] = ad(dV[i]) @ (S * qd[i]) + ad(V) @ d_rate  # of (41)
    return VelocityRates(h, dV, deta)


class InwardRates(NamedTuple):
    """Changes that the second sweep leaves, by body."""

    dI_hat: Array
    dB_hat: Array
    dPsi: Array


def d_inward_sweep(
    system: System, hyb: Hybrid, d: Direction, rates: VelocityRates, dqdd: Array, dtau: Array
) -> InwardRates:
    """Differentiate the second recursion of Table 4."""
    n, kind = len(dqdd), hyb.Vdot.dtype
    shapes = [(n, 6, 6), (n, 6), (n,), (n, 6, 6), (n, 6)]
    dI_hat, dB_hat, dPsi, dPi, dbeta = zeros(kind, *shapes)
    for i in reversed(system.tree.outward):
        S, dS, V, I = system.S[i], d.dS[i], hyb.v.V[i], system.I[i]
        dV, deta, eta = rates.dV[i], rates.deta[i], hyb.v.eta[i]
        dI_hat[i] = d.dI[i]
        dB_hat[i] = -ad(dV).T @ (I @ V) - ad(V).T @ (d.dI[i] @ V + I @ dV) - d.dF_ext[i]
        for k in system.mu[i]:
            Ad_h = hyb.v.Ad_h[k]
            dAd_h = -ad(rates.h[k]) @ Ad_h
            half = dAd_h.T @ hyb.Pi[k] @ Ad_h
            dI_hat[i] = dI_hat[i] + half + half.T + Ad_h.T @ dPi[k] @ Ad_h  # (52)
            dB_hat[i] = dB_hat[i] + dAd_h.T @ hyb.beta[k] + Ad_h.T @ dbeta[k]  # (53)
        I_hat, dI = hyb.I_hat[i], dI_hat[i]
        if system.u[i]:
            dPi[i] = dI  # (52)
            dbeta[i] = dB_hat[i] + dI @ (eta + S * hyb.qdd[i])
            dbeta[i] = dbeta[i] + I_hat @ (deta + dS * hyb.qdd[i] + S * dqdd[i])  # (53)
            continue
        I_S, dI_S, Psi = I_hat @ S, dI @ S + I_hat @ dS, hyb.Psi[i]
        dPsi[i] = -Psi * (dS @ I_S + S @ dI_S + d.dterms["armature"][i]) * Psi
        half = np.outer(dI_S * Psi, I_S)
        dPi[i] = dI - half - half.T - np.outer(I_S * dPsi[i], I_S)  # (52)
        bias, dbias = I_hat @ eta + hyb.B_hat[i], dI @ eta + I_hat @ deta + dB_hat[i]
        left, dleft = hyb.tau[i] - S @ bias, dtau[i] - dS @ bias - S @ dbias
        dbeta[i] = dbias + dI_S * (Psi * left) + I_S * (dPsi[i] * left + Psi * dleft)  # (53)
    return InwardRates(dI_hat, dB_hat, dPsi)


def d_outward_sweep(
    system: System, hyb: Hybrid, d: Direction, rates: VelocityRates, inward: InwardRates, dqdd: Array, dtau: Array
) -> tuple[Array, Array]:
    """Differentiate the third recursion of Table 4: return ∂q̈ and ∂τ of the bodies alone, by body."""
    dVdot = np.zeros((len(dqdd) + 1, 6), hyb.Vdot.dtype)
    dVdot[-1, 3:] = -d.dg
    for i in system.tree.outward:
        S, dS, Ad_h, lam = system.S[i], d.dS[i], hyb.v.Ad_h[i], system.lam[i]
        I_hat, dI_hat = hyb.I_hat[i], inward.dI_hat[i]
        carried = Ad_h @ hyb.Vdot[lam]
        base, dbase = carried + hyb.v.eta[i], Ad_h @ dVdot[lam] - ad(rates.h[i]) @ carried + rates.deta[i]
        if not system.u[i]:
            x, dx = I_hat @ base + hyb.B_hat[i], dI_hat @ base + I_hat @ dbase + inward.dB_hat[i]
            dqdd[i] = inward.dPsi[i] * (hyb.tau[i] - S @ x) + hyb.Psi[i] * (dtau[i] - dS @ x - S @ dx)  # (45)
        dVdot[i] = dbase + dS * hyb.qdd[i] + S * dqdd[i]  # (41)
        dF = dI_hat @ hyb.Vdot[i] + I_hat @ dVdot[i] + inward.dB_hat[i]  # (43)
        if system.u[i]:
            dtau[i] = dS @ hyb.F[i] + S @ dF  # Table 4
    return dqdd, dtau


def derivative(system: System, hyb: Hybrid, q: Array, qd: Array, d: Direction) -> Array:
    """Return the change of y in one direction, by body."""
    kind = np.result_type(hyb.Vdot, d.dq, d.dqd, d.du, d.dF_ext)
    nothing = np.zeros(len(q))
    dqdd = np.where(system.u, d.du, 0).astype(kind)
    spent = extra_rate(system, q, qd, hyb.qdd, d, nothing, armature=False)
    dtau = np.where(system.u, 0, d.du - spent).astype(kind)
    rates = d_velocity_sweep(system, hyb, q, qd, d)
    inward = d_inward_sweep(system, hyb, d, rates, dqdd, dtau)
    dqdd, dtau = d_outward_sweep(system, hyb, d, rates, inward, dqdd, dtau)
    return np.where(system.u, dtau + extra_rate(system, q, qd, hyb.qdd, d, dqdd, armature=True), dqdd)


# ---------------------------------------------------------------- questions
def hybrid_derivative(
    mech: Mechanism,
    q: ArrayLike,
    qd: ArrayLike,
    u: ArrayLike,
    wrench: ArrayLike | None = None,
    *,
    dq: ArrayLike | None = None,
    dqd: ArrayLike | None = None,
    du: ArrayLike | None = None,
    dwrench: ArrayLike | None = None,
    parameters: Mapping[str, ArrayLike] | None = None,
) -> Array:
    """Return the derivative of `kim.hybrid_dynamics` to one scalar p.

    Parameters
    ----------
    mech, q, qd, u, wrench
        As in `kim.hybrid_dynamics`.
    dq, dqd, du, dwrench : array_like, optional
        Derivatives of the arguments to p, of their shapes; 0 unless given.
    parameters : mapping, optional
        Derivatives to p of numbers of the mechanism, by the names of `Mechanism.with_parameters`: "<link>.mass",
        ".com", ".inertia", ".pose" (the derivative of the 4 x 4 matrix), "<joint>.axis", ".point", ".pitch",
        ".armature", ".damping", ".friction", ".friction_velocity", ".stiffness", ".rest", and "gravity".

    Returns
    -------
    (n,) ndarray
        Derivative of the motor torque of each active joint and of the acceleration of each passive joint.

    Raises
    ------
    CstormError
        As `kim.hybrid_dynamics`; UnknownName for a parameter that does not exist; InvalidValue for the derivative of a
        pose that leaves the rigid transforms.

    Examples
    --------
    A horizontal link is held; how much more torque does a kilogram more take?

    >>> from cstormpy.mechanism import Link, Mechanism, Revolute
    >>> links = [Link("arm", None, Revolute((0, 0, 1)), mass=2.0, com=(0.5, 0, 0))]
    >>> hybrid_derivative(Mechanism(links, active=["arm"]), [0.0], [0.0], [0.0], parameters={"arm.mass": 1.0})
    array([4.905])
    """
    system = read_system(mech)
    tree = system.tree
    q, qd, u = (by_link(tree, name, x) for name, x in (("q", q), ("qd", qd), ("u", u)))
    hyb = table_4(system, q, qd, u, wrenches(tree, wrench))
    d = still(system)
    none = np.zeros(mech.n)
    d = d._replace(
        dq=by_link(tree, "dq", none if dq is None else dq),
        dqd=by_link(tree, "dqd", none if dqd is None else dqd),
        du=by_link(tree, "du", none if du is None else du),
        dF_ext=d.dF_ext if dwrench is None else vector("dwrench", dwrench, (len(tree.P), 6), WRENCH_HINT),
    )
    for name, rate in (parameters or {}).items():
        d = with_parameter(mech, tree, d, name, rate)
    return derivative(system, hyb, q, qd, d)[tree.joint_links]


def with_parameter(mech: Mechanism, tree: Tree, d: Direction, name: str, rate: ArrayLike) -> Direction:
    """Return the direction with the change of one number of the mechanism added."""
    if name == "gravity":
        return d._replace(dg=d.dg + vector(name, rate, (3,), "in the base's frame"))
    owner, _, field = name.rpartition(".")
    known = LINK_SHAPES if field in LINK_SHAPES else JOINT_SHAPES
    if field not in known:
        raise unknown_name(f"{owner!r}: parameter", field, [*LINK_SHAPES, *JOINT_SHAPES])
    dx = vector(name, rate, known[field], "as of the parameter itself")
    if field in LINK_SHAPES:
        return with_link(tree, d, mech.link_index(owner), field, dx)
    return with_joint(tree, d, int(mech.joint_links[mech.joint_index(owner)]), field, dx)


def with_link(tree: Tree, d: Direction, i: int, field: str, dx: Array) -> Direction:
    """Add the change of a link's mass, centre of mass, inertia or pose."""
    m, p, dI = tree.mass[i], tree.com[i], d.dI.copy()
    if field == "pose":
        drift = tree.pose[i, :3, :3].T @ dx[:3, :3]
        if abs(drift + drift.T).max() > 1e-9 * max(1.0, abs(drift).max()) or dx[3].any():
            raise InvalidValue(f"{tree.names[i]}.pose: its derivative leaves the rigid transforms: R'dR is not skew")
        dM = d.dM.copy()
        dM[i] = dM[i] + dx
        return d._replace(dM=dM)
    if field == "mass":
        dI[i] += generalised_inertia(dx, p, np.zeros((3, 3)))  # (22)
    elif field == "inertia":
        dI[i, :3, :3] += dx  # (22)
    else:
        moment = m * bracket(dx)
        half = moment.T @ bracket(p)
        dI[i, :3, :3] += half + half.T  # (22)
        dI[i, :3, 3:] += moment  # (22)
        dI[i, 3:, :3] += moment.T  # (22)
    return d._replace(dI=dI)


def with_joint(tree: Tree, d: Direction, i: int, field: str, dx: Array) -> Direction:
    """Add the change of a joint's axis, point, pitch, or of a term of its own."""
    if field in TERMS:
        return d._replace(dterms={**d.dterms, field: d.dterms[field] + dx * (np.arange(len(tree.P)) == i)})
    e, c, S, dS = tree.axis[i], tree.point[i], tree.screw[i], d.dS.copy()
    if field == "pitch" and not tree.screws[i]:
        raise unknown_name(f"{tree.joints[i]!r}: parameter", field, [name for name in JOINT_SHAPES if name != "pitch"])
    if field == "axis":
        de = dx - e * (e @ dx)  # an axis is normalised
        if tree.slides[i]:
            dS[i, 3:] += de
        else:
            dS[i, :3] += de
            dS[i, 3:] += cross(c, de) + (e @ S[3:]) * de
    elif field == "pitch":
        dS[i, 3:] += dx * e
    elif not tree.slides[i]:
        dS[i, 3:] += cross(dx, e)
    return d._replace(dS=dS)


def hybrid_sensitivity(
    mech: Mechanism, q: ArrayLike, qd: ArrayLike, u: ArrayLike, wrench: ArrayLike | None = None
) -> tuple[Array, Array, Array]:
    """Return dy/dq, dy/dq̇ and dy/du, each (n, n), by one pass of the sweeps for each column.

    Examples
    --------
    >>> from cstormpy.mechanism import Link, Mechanism, Revolute
    >>> links = [Link("arm", None, Revolute((0, 0, 1)), mass=2.0, com=(0.5, 0, 0))]
    >>> [float(d[0, 0]) for d in hybrid_sensitivity(Mechanism(links), [0.5 * np.pi], [0.0], [0.0])]
    [19.62, 0.0, 2.0]
    """
    return sensitivity(read_system(mech), q, qd, u, "u", wrench)


def inverse_sensitivity(
    mech: Mechanism, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, wrench: ArrayLike | None = None
) -> tuple[Array, Array, Array]:
    """Return dτ/dq, dτ/dq̇ and dτ/dq̈ of the inverse dynamics, each (n, n).

    Examples
    --------
    >>> from cstormpy.mechanism import Link, Mechanism, Revolute
    >>> links = [Link("arm", None, Revolute((0, 0, 1)), mass=2.0, com=(0.5, 0, 0))]
    >>> [float(d[0, 0]) for d in inverse_sensitivity(Mechanism(links), [0.5 * np.pi], [0.0], [0.0])]
    [-9.81, 0.0, 0.5]
    """
    system = read_system(mech)
    return sensitivity(system._replace(u=np.ones(len(system.lam), dtype=bool)), q, qd, qdd, "qdd", wrench)


def sensitivity(
    system: System, q: ArrayLike, qd: ArrayLike, u: ArrayLike, name: str, wrench: ArrayLike | None
) -> tuple[Array, Array, Array]:
    """Return the derivatives to each joint's position, velocity and input."""
    tree = system.tree
    q, qd, u = by_link(tree, "q", q), by_link(tree, "qd", qd), by_link(tree, name, u)
    hyb, none, joints = table_4(system, q, qd, u, wrenches(tree, wrench)), still(system), tree.joint_links
    along = np.eye(len(q))[joints]

    def columns(directions: list[Direction]) -> Array:
        rows = [derivative(system, hyb, q, qd, d)[joints] for d in directions]
        return np.array(rows).reshape(len(joints), len(joints)).T

    return (
        columns([none._replace(dq=e) for e in along]),
        columns([none._replace(dqd=e) for e in along]),
        columns([none._replace(du=e) for e in along]),
    )
