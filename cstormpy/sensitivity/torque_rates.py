"""Torques that a change of a mechanism's numbers asks for: ∂ID/∂p of the inverse dynamics ID(q, q̇, q̈, p).

The columns of inertial parameters are those of the regressor times what the parameter does to the inertial numbers.
The geometry is a matter of coordinates: a frame that moves by a twist does so on a joint that is held there, so that
its column is the inverse dynamics' derivative to the coordinate of that joint. A pitch moves it by its own joint's
coordinate, with that one's rate and acceleration, and lets a part of its force act there. Gravity pulls at the
centre of mass of all links, along the linear part of the momentum matrix.

Of symbols, one row, all is written down; who calls it gives the components and held joints as symbols then.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from cstormpy.arrays import Array
from cstormpy.dynamics.charts import Chart
from cstormpy.dynamics.checked_arguments import BaseLike, WrenchLike, read_samples
from cstormpy.dynamics.inertial import inertial
from cstormpy.dynamics.kinematics import jacobian
from cstormpy.dynamics.regressor import INERTIAL, Columns, inertial_rates, regressor
from cstormpy.errors import InvalidType
from cstormpy.graph.arrays import zeros
from cstormpy.kernels import layout
from cstormpy.linkage.components import Component, Gravity, Inertia, Shift, Term, Wrench
from cstormpy.linkage.tables import numbers_at
from cstormpy.sensitivity.held_joints import Held

if TYPE_CHECKING:
    from cstormpy.linkage import Linkage

#: Lists of inertial numbers whose columns a mechanism remembers.
_LISTS_KEPT = 16


def torque_rates(
    mech: Linkage,
    parts: Sequence[Component],
    q: Array,
    qd: Array,
    qdd: Array,
    wrench: WrenchLike = None,
    base: BaseLike = None,
    threads: int | None = 1,
    response: Array | None = None,
    held: Held | None = None,
) -> Array:
    """Return ∂ID/∂p, (N, n, k), of a motion of all joints, a column for each component of parameters.

    With a response (N, n, n) return that times these. `held` is what `held_for` the components returns, found unless
    given.
    """
    symbolic = q.dtype == object or mech.symbolic
    if not symbolic and parts and not mech.ball_starts and all(isinstance(part, Inertia) for part in parts):
        return _to_inertia_lanes(mech, parts, q, qd, qdd, base, threads, response)
    if held is None and not symbolic:
        held = held_for(mech, parts)
    r = zeros((*q.shape, len(parts)), *((q, qd, qdd) if symbolic else ()))
    of_kind = {kind: [k for k, part in enumerate(parts) if isinstance(part, kind)] for kind in _KINDS}
    for kind, places in of_kind.items():
        chosen: list[Any] = [parts[k] for k in places]
        if kind is Inertia and places and not mech.ball_starts and not symbolic:
            r[..., places] = _to_inertia_lanes(mech, chosen, q, qd, qdd, base, threads, response)
        elif places:
            x, rates, accelerations = (q[0], qd[0], qdd[0]) if symbolic else (q, qd, qdd)
            motion = _Motion(x, rates, accelerations, wrench, base, threads, held)
            found = _KINDS[kind](mech, chosen, motion)
            r[..., places] = found if response is None else response @ found
    return r


def held_for(mech: Linkage, parts: Sequence[Component]) -> Held | None:
    """Return the mechanism with the held joints that components of its geometry move; None where there are none."""
    places = {(part.link, move.position) for part in parts if isinstance(part, Shift) for move in part.moves}
    return Held.of(mech, places) if places else None


def columns_of(mech: Linkage, parts: Sequence[Any]) -> Columns:
    """Return the columns of inertial numbers, as the kernels take them; those of the last few lists are remembered."""
    kept: dict[tuple[Any, ...], Columns] = mech.memo.setdefault("inertial columns", {})
    key = tuple(parts)  # these very components, whatever their names
    found = kept.get(key)
    if found is None:
        while len(kept) >= _LISTS_KEPT:
            kept.pop(next(iter(kept)), None)
        found = kept[key] = Columns.of([part.link for part in parts], np.array([part.weights for part in parts]))
    return found


@dataclass(frozen=True)
class _Motion:
    """A motion of all joints: rows (N, n), or one sample (n,) of symbols."""

    q: Array
    qd: Array
    qdd: Array
    wrench: Any
    base: Any
    threads: int | None
    held: Held | None

    @property
    def motion(self) -> tuple[Array, Array, Array]:
        """q, q̇ and q̈."""
        return self.q, self.qd, self.qdd


def _to_inertia_lanes(
    mech: Linkage, parts: Sequence[Any], q: Array, qd: Array, qdd: Array, base: Any, threads: int | None, response: Any
) -> Array:
    samples = read_samples(mech, {"q": q, "qd": qd, "qdd": qdd}, None, base)
    return inertial_rates(mech, samples, columns_of(mech, parts), response, threads)


def _to_inertia(mech: Linkage, parts: list[Any], at: _Motion) -> Array:
    """Return inertial rates by the regressor: of symbols, and of ball joints, whose rows it turns to their vectors."""
    Y = regressor(mech, at.q, at.qd, at.qdd, at.base, at.threads)
    first = len(INERTIAL)
    columns = [Y[..., [first * part.link + k for k in part.places]] @ part.weights[list(part.places)] for part in parts]
    return np.stack(columns, axis=-1)


def _to_terms(mech: Linkage, parts: list[Any], at: _Motion) -> Array:
    r = zeros((*np.shape(at.q), len(parts)), at.q, at.qd, at.qdd)
    for k, part in enumerate(parts):
        j = part.coordinate
        link = mech.links[mech.joint_links[j]]
        own = mech.coordinates(link.joint_name)
        place = link.joint.balls[j - own.start]
        if place:
            rows = slice(own.stop - 3, own.stop)
            motion = (np.reshape(x[..., own], (-1, link.joint.dof)) for x in at.motion)
            found = _ball_rates(numbers_at(mech, j), link.joint, place - 1, part, *motion)
            r[..., rows, k] = np.reshape(found, r[..., rows, k].shape)
        else:
            r[..., j, k] = _term_rate(numbers_at(mech, j), part.field, *(x[..., j] for x in at.motion))
    return r


def _ball_rates(numbers: Any, joint: Any, axis: int, part: Term, q: Any, qd: Any, qdd: Any) -> Any:
    """Return the derivatives (N, 3) of Jᵀ (a ω̇ + ω × a ω + d ω + f tanh(ω / v) + spring) to a number of one axis."""
    phi, rate, acceleration = q[:, -3:], qd[:, -3:], qdd[:, -3:]
    chart = Chart(phi)
    if part.field in ("stiffness", "rest"):
        if q.dtype == object:
            raise InvalidType(f"{part.name}: the spring of a ball has no derivative to its numbers by symbols")
        return _felt(chart.J, joint.spring_rates(q, axis)[part.field])
    w = (chart.J * rate[:, None]).sum(axis=-1)
    alpha = (chart.J * acceleration[:, None]).sum(axis=-1) + chart.drift(rate)
    about = w[:, axis]
    moment = _term_rate(numbers, part.field, phi[:, axis], about, alpha[:, axis])[:, None] * np.eye(3)[axis]
    if part.field == "armature":  # ω × e about the other two axes
        y, z = (axis + 1) % 3, (axis + 2) % 3
        moment[:, y] += about * w[:, z]
        moment[:, z] -= about * w[:, y]
    return _felt(chart.J, moment)


def _felt(J: Any, moment: Any) -> Any:
    """Return Jᵀ m, (N, 3)."""
    return (J * moment[..., None]).sum(axis=1)


def _term_rate(own: Any, field: str, q: Any, qd: Any, qdd: Any) -> Any:
    """Return the derivative of a d²q/dt² + d q̇ + f tanh(s q̇) + k (q − rest), s = 1 / v, to one of its numbers.

    `own` are the numbers of the joint in the tables of its mechanism.
    """
    friction, s, stiffness, rest = (
        own[k] for k in (layout.T_FRICTION, layout.T_SMOOTH, layout.T_STIFFNESS, layout.T_REST)
    )
    slip = np.tanh(s * qd)
    if field == "friction_velocity":
        return -friction * (1.0 - slip**2) * qd * s**2
    by = {"armature": qdd, "damping": qd, "friction": slip, "stiffness": q - rest, "rest": -stiffness + 0.0 * q}
    return by[field]


def _to_gravity(mech: Linkage, parts: list[Any], at: _Motion) -> Array:
    pull = inertial(mech, at.q, threads=at.threads).momentum_matrix
    return np.stack([-pull[..., 3 + part.axis, :] for part in parts], axis=-1)


def _to_wrenches(mech: Linkage, parts: list[Any], at: _Motion) -> Array:
    J = {i: jacobian(mech, at.q, i, None, at.threads)[0] for i in {part.link for part in parts}}
    return np.stack([-J[part.link][..., part.axis, :] for part in parts], axis=-1)


def _to_geometry(mech: Linkage, parts: list[Any], at: _Motion) -> Array:
    assert at.held is not None
    held = at.held
    r = zeros((*np.shape(at.q), len(parts)), at.q, at.qd, at.qdd)
    found = held.inverse_sensitivity(*at.motion, at.wrench, at.base, at.threads)
    for k, part in enumerate(parts):
        for move in part.moves:
            place, j = held.place(part.link, move.position), move.along
            by_q, by_qd, by_qdd = (move.by(block[..., held.own, place]) for block in found.blocks)
            if j < 0:
                r[..., k] += by_q
                continue
            for x, by_x in zip(at.motion, (by_q, by_qd, by_qdd), strict=True):
                r[..., k] += x[..., j, None] * by_x
            r[..., j, k] += move.by(found.torques[..., place])
    return r


_KINDS: dict[type[Component], Any] = {
    Inertia: _to_inertia,
    Term: _to_terms,
    Gravity: _to_gravity,
    Wrench: _to_wrenches,
    Shift: _to_geometry,
}
