"""Exact sensitivities of the hybrid dynamics to the numbers of a mechanism.

With ID(q, q̇, q̈, p) = τ, p the passive and a the active joints, a change of a parameter asks for other torques r =
∂ID/∂p, to which the hybrid dynamics responds as to any others (Sohl and Bobrow 2001, section 4; Kim 2012, section 4):

    ∂q̈ᵖ = −M_pp⁻¹ r_p      ∂τᵃ = r_a + M_ap ∂q̈ᵖ

M_pp⁻¹ and M_ap M_pp⁻¹ are the derivatives to the torques of the passive joints, which `hybrid_sensitivity` has. The
columns r of inertial parameters are those of the regressor times what the parameter does to the inertial numbers. The
geometry is a matter of coordinates: a frame that moves by a twist does so on a joint that is held there, so that r is
the inverse dynamics' derivative to the coordinate of that joint. A pitch moves it by its own joint's coordinate, with
that one's rate and acceleration, and lets a part of its force act there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cstormpy.arguments import mapping
from cstormpy.arrays import real_array
from cstormpy.dynamics.batches import MANY_COORDINATES
from cstormpy.dynamics.checked_arguments import BaseLike, Samples, WrenchLike, read_samples
from cstormpy.dynamics.hybrid import HybridDynamics, Together, gravity_load, hybrid_answer, put_together
from cstormpy.dynamics.kinematics import jacobian
from cstormpy.dynamics.regressor import INERTIAL, Columns, inertial_rates, inertial_sensitivity, regressor
from cstormpy.errors import InvalidType, unknown_name
from cstormpy.kernels import layout
from cstormpy.linkage.components import (
    Component,
    Gravity,
    Inertia,
    Shift,
    Term,
    Wrench,
    find,
)
from cstormpy.linkage.tables import tables_of
from cstormpy.sensitivity.hybrid import HybridSensitivity, hybrid_sensitivity

if TYPE_CHECKING:
    from cstormpy.linkage import Linkage

Array = NDArray[np.float64]

__all__ = [
    "ParameterSensitivity",
    "parameter_jvp",
    "parameter_sensitivity",
    "parameter_vjp",
    "refuse_symbols",
    "sensitivity_with_parameters",
    "torque_rates",
]


#: Lists of names that a mechanism remembers.
_LISTS_KEPT = 16


class ParameterSensitivity(HybridDynamics):
    """The answer of the hybrid dynamics with its derivatives to parameters.

    Attributes
    ----------
    y, qdd, tau : ndarray, (n,) or (N, n)
        As in `HybridDynamics`.
    dy_dp : ndarray, (n, k) or (N, n, k)
        Row i is the derivative of y_i; a column for each component of the parameters.
    components : tuple of str
        Names of the columns, as "forearm.com[0]".
    """

    __slots__ = ("_found", "_places", "dy_dp")

    def __init__(
        self, parts: Together | Array, dy_dp: Array, found: Sequence[tuple[str, tuple[Component, ...]]]
    ) -> None:
        super().__init__(parts)
        self.dy_dp = dy_dp
        self._found = found
        self._places: dict[str, slice] | None = None

    @property
    def components(self) -> tuple[str, ...]:
        """Names of the columns, as "forearm.com[0]"."""
        return tuple(part.name for _, parts in self._found for part in parts)

    def _by_name(self) -> dict[str, slice]:
        if self._places is None:
            self._places = {name: slice(k, k + 1) for k, name in enumerate(self.components)}
            first = 0
            for name, own in self._found:
                self._places[name] = slice(first, first + len(own))
                first += len(own)
        return self._places

    def __getitem__(self, name: str) -> Array:
        """Return the derivative to one parameter or component: (n,) or (N, n) of a number, else with a last axis."""
        places = self._by_name()
        if name not in places:
            raise unknown_name("parameter", name, places)
        at = places[name]
        columns = self.dy_dp[..., at]
        return columns[..., 0] if at.stop - at.start == 1 else columns


def parameter_sensitivity(
    mech: Linkage,
    q: ArrayLike,
    qd: ArrayLike,
    u: ArrayLike,
    parameters: Sequence[str] | str,
    wrench: WrenchLike = None,
    base: BaseLike = None,
    threads: int | None = 1,
) -> ParameterSensitivity:
    """Return y and its derivatives to parameters; `Mechanism.parameter_sensitivity` says what is what."""
    asked = Asked.of(mech, parameters)
    found = asked.found
    samples = read_samples(mech, {"q": q, "qd": qd, "u": u}, wrench, base)
    refuse_symbols(samples.rows["q"])
    if asked.columns is not None and _goes_side_by_side(mech, samples.count):
        y, dy_dp = inertial_sensitivity(mech, samples, asked.columns, threads)
        parts = put_together(samples.shaped(y), samples.shaped(samples.rows["u"]), mech.active_mask)
        return ParameterSensitivity(parts, samples.shaped(dy_dp), found)
    answer, response = _answered(mech, samples, wrench, base, threads)
    motion = samples.rows["q"], samples.rows["qd"], answer.qdd
    dy_dp = torque_rates(mech, asked.parts, *motion, wrench, base, threads, response)
    parts_of_answer = put_together(samples.shaped(answer.y), samples.shaped(samples.rows["u"]), mech.active_mask)
    return ParameterSensitivity(parts_of_answer, samples.shaped(dy_dp), found)


@dataclass(frozen=True, eq=False)
class Asked:
    """Parameters of a mechanism by name, with their components."""

    found: list[tuple[str, tuple[Component, ...]]]
    parts: list[Component]
    columns: Columns | None
    """Those of the kernels, if all are inertial numbers."""

    @classmethod
    def of(cls, mech: Linkage, parameters: Sequence[str] | str) -> Asked:
        """Return them; the last few lists of names are remembered."""
        kept: dict[tuple[str, ...], Asked] = mech.memo.setdefault("parameters asked", {})
        names = tuple(parameters) if isinstance(parameters, (list, tuple)) else None
        if names is not None and all(type(name) is str for name in names) and names in kept:
            return kept[names]
        found = find(mech, parameters)
        parts = [part for _, own in found for part in own]
        inertial = bool(parts) and not mech.ball_starts and all(isinstance(part, Inertia) for part in parts)
        made = cls(found, parts, _columns(parts) if inertial else None)
        if names is not None:
            while len(kept) >= _LISTS_KEPT:
                kept.pop(next(iter(kept)), None)
            kept[names] = made
        return made


def _columns(parts: Sequence[Any]) -> Columns:
    return Columns.of([part.link for part in parts], np.array([part.weights for part in parts]))


def _goes_side_by_side(mech: Linkage, count: int) -> bool:
    """Tell whether samples and their matrices are best computed side by side."""
    deep = tables_of(mech).N[layout.N_DEEP]
    return count > 1 and mech.n <= MANY_COORDINATES and not deep and not mech.active_mask.all()


def sensitivity_with_parameters(
    mech: Linkage,
    q: Array,
    qd: Array,
    u: Array,
    parameters: Sequence[str],
    wrench: WrenchLike = None,
    base: BaseLike = None,
    to_base: bool = False,
) -> tuple[HybridSensitivity, Array]:
    """Return the derivatives to the state of one sample, and beside them those to parameters, (n, k)."""
    d = hybrid_sensitivity(mech, q, qd, u, wrench, base, to_base=to_base)
    refuse_symbols(d.y)
    rows = np.reshape(q, (1, -1)), np.reshape(qd, (1, -1)), d.qdd[None]
    response = _response(mech, d.dy_du[None])
    return d, torque_rates(mech, Asked.of(mech, parameters).parts, *rows, wrench, base, 1, response)[0]


def parameter_jvp(
    mech: Linkage,
    q: ArrayLike,
    qd: ArrayLike,
    u: ArrayLike,
    direction: Mapping[str, ArrayLike],
    wrench: WrenchLike = None,
    base: BaseLike = None,
    threads: int | None = 1,
    ask: Callable[..., ParameterSensitivity] = parameter_sensitivity,
) -> tuple[Array, Array]:
    """Return y and its derivative along a change of parameters, each (n,) or (N, n); `ask` gives the matrix."""
    given = mapping(direction, "direction")
    found = find(mech, given)
    rates = [real_array(given[name], name, () if len(own) == 1 else (len(own),)).ravel() for name, own in found]
    d = ask(mech, q, qd, u, list(given), wrench, base, threads)
    return d.y, d.dy_dp @ np.concatenate([np.zeros(0), *rates])


def parameter_vjp(
    mech: Linkage,
    q: ArrayLike,
    qd: ArrayLike,
    u: ArrayLike,
    gy: ArrayLike,
    parameters: Sequence[str] | str,
    wrench: WrenchLike = None,
    base: BaseLike = None,
    threads: int | None = 1,
    ask: Callable[..., ParameterSensitivity] = parameter_sensitivity,
) -> tuple[Array, Array]:
    """Return y and gyᵀ ∂y/∂p, (n,) and (k,), or (N, n) and (N, k); `ask` gives the matrix."""
    d = ask(mech, q, qd, u, parameters, wrench, base, threads)
    weights = read_samples(mech.tree, {"q": q, "gy": gy}).rows["gy"].reshape(d.y.shape)
    return d.y, np.einsum("...i,...ik->...k", weights, d.dy_dp)


def _answered(
    mech: Linkage, samples: Samples, wrench: WrenchLike, base: BaseLike, threads: int | None
) -> tuple[HybridDynamics, Array | None]:
    """Return the answers to samples, and what y changes by per torque that the joints ask for, None if that alone."""
    q, qd, u = samples.rows.values()
    if mech.active_mask.all():
        return hybrid_answer(mech, q, qd, u, wrench, base, threads), None
    d = hybrid_sensitivity(mech, q, qd, u, wrench, base, threads)
    return d, _response(mech, d.dy_du)


def refuse_symbols(x: Array) -> None:
    """Refuse symbols in the place of numbers."""
    if x.dtype == object:
        raise InvalidType("parameter_sensitivity: expected numbers, got symbols; the graph has derivatives of its own")


def _response(mech: Linkage, dy_du: Array) -> Array:
    """Return what y changes by per torque that the joints ask for, (N, n, n)."""
    response = -dy_du
    response[..., mech.active_mask] = np.eye(mech.n)[:, mech.active_mask]
    return response


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
) -> Array:
    """Return ∂ID/∂p, (N, n, k), of a motion of all joints, a column for each component of parameters.

    With a response (N, n, n) return that times these.
    """
    if parts and not mech.ball_starts and all(isinstance(part, Inertia) for part in parts):
        return _to_inertia_lanes(mech, parts, q, qd, qdd, base, threads, response)
    r = np.zeros((*q.shape, len(parts)))
    of_kind = {kind: [k for k, part in enumerate(parts) if isinstance(part, kind)] for kind in _KINDS}
    for kind, places in of_kind.items():
        chosen: list[Any] = [parts[k] for k in places]
        if kind is Inertia and places and not mech.ball_starts:
            r[..., places] = _to_inertia_lanes(mech, chosen, q, qd, qdd, base, threads, response)
        elif places:
            found = _KINDS[kind](mech, chosen, q, qd, qdd, wrench, base, threads)
            r[..., places] = found if response is None else response @ found
    return r


def _to_inertia_lanes(
    mech: Linkage, parts: Sequence[Any], q: Array, qd: Array, qdd: Array, base: Any, threads: int | None, response: Any
) -> Array:
    samples = read_samples(mech, {"q": q, "qd": qd, "qdd": qdd}, None, base)
    return inertial_rates(mech, samples, _columns(parts), response, threads)


def _to_inertia(
    mech: Linkage, parts: list[Any], q: Array, qd: Array, qdd: Array, wrench: Any, base: Any, threads: int | None
) -> Array:
    """Return them of a mechanism with ball joints, whose rows the regressor turns into those of rotation vectors."""
    Y = regressor(mech, q, qd, qdd, base, threads)
    weights = np.zeros((Y.shape[-1], len(parts)))
    for k, part in enumerate(parts):
        weights[len(INERTIAL) * part.link :][: len(INERTIAL), k] = part.weights
    return Y @ weights


def _to_terms(
    mech: Linkage, parts: list[Any], q: Array, qd: Array, qdd: Array, wrench: Any, base: Any, threads: int | None
) -> Array:
    r = np.zeros((*q.shape, len(parts)))
    for k, part in enumerate(parts):
        j = part.coordinate
        link = mech.links[mech.joint_links[j]]
        at = mech.coordinates(link.joint_name)
        place = link.joint.balls[j - at.start]
        if place:
            own = slice(at.stop - 3, at.stop)
            r[..., own, k] = _ball_rates(link.joint, place - 1, part.field, q[:, at], qd[:, at], qdd[:, at])
        else:
            r[..., j, k] = _term_rate(mech.freedoms[j], part.field, q[..., j], qd[..., j], qdd[..., j])
    return r


def _ball_rates(joint: Any, axis: int, field: str, q: Array, qd: Array, qdd: Array) -> Any:
    """Return the derivatives (N, 3) of Jᵀ (a ω̇ + ω × a ω + d ω + f tanh(ω / v) + spring) to a number of one axis."""
    J, rate = joint.subspace(q)[:, :3], joint.subspace_rate(q, qd)[:, :3]
    w, alpha = np.einsum("sij,sj->si", J, qd), np.einsum("sij,sj->si", J, qdd) + np.einsum("sij,sj->si", rate, qd)
    at = joint.dof - 3 + axis
    along = np.eye(3)[axis]
    if field in ("stiffness", "rest"):
        moment = joint.spring_rates(q, axis)[field]
    else:
        moment = _term_rate(joint.freedoms[at], field, q[:, at], w[:, axis], alpha[:, axis])[:, None] * along
    if field == "armature":
        moment = moment + w[:, axis, None] * np.cross(w, along)
    return np.einsum("sij,si->sj", J[..., -3:], moment)


def _term_rate(joint: Any, field: str, q: Array, qd: Array, qdd: Array) -> Any:
    """Return the derivative of a d²q/dt² + d q̇ + f tanh(q̇ / v) + k (q − rest) to one of its numbers."""
    slip = np.tanh(qd / joint.friction_velocity)
    if field == "friction_velocity":
        return -joint.friction * (1.0 - slip**2) * qd / joint.friction_velocity**2
    rest = np.full_like(q, -joint.stiffness)
    return {"armature": qdd, "damping": qd, "friction": slip, "stiffness": q - joint.rest, "rest": rest}[field]


def _to_gravity(
    mech: Linkage, parts: list[Any], q: Array, qd: Array, qdd: Array, wrench: Any, base: Any, threads: int | None
) -> Array:
    along = mech.memo.get("unit gravity")
    if along is None:
        along = mech.memo["unit gravity"] = tuple(mech.with_gravity(e) for e in np.eye(3))
    loads = [gravity_load(along[part.axis], q, threads) for part in parts]
    return np.stack(loads, axis=-1)


def _to_wrenches(
    mech: Linkage, parts: list[Any], q: Array, qd: Array, qdd: Array, wrench: Any, base: Any, threads: int | None
) -> Array:
    J = {i: jacobian(mech, q, i, None, threads)[0] for i in {part.link for part in parts}}
    return np.stack([-J[part.link][..., part.axis, :] for part in parts], axis=-1)


def _to_geometry(
    mech: Linkage, parts: list[Any], q: Array, qd: Array, qdd: Array, wrench: Any, base: Any, threads: int | None
) -> Array:
    from cstormpy.sensitivity.held_joints import Held

    r = np.zeros((*q.shape, len(parts)))
    held = Held.of(mech, {(part.link, move.position) for part in parts for move in part.moves})
    found = held.inverse_sensitivity(q, qd, qdd, wrench, base, threads)
    for k, part in enumerate(parts):
        for move in part.moves:
            at = held.place(part.link, move.position)
            by_q, by_qd, by_qdd = (block[..., held.own, at] @ move.twist for block in found.blocks)
            j = move.along
            if j < 0:
                r[..., k] += by_q
                continue
            for x, by_x in ((q, by_q), (qd, by_qd), (qdd, by_qdd)):
                r[..., k] += x[..., j, None] * by_x
            r[..., j, k] += found.torques[..., at] @ move.twist
    return r


_KINDS: dict[type[Component], Any] = {
    Inertia: _to_inertia,
    Term: _to_terms,
    Gravity: _to_gravity,
    Wrench: _to_wrenches,
    Shift: _to_geometry,
}
