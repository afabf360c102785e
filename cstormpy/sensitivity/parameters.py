"""Exact sensitivities of the hybrid dynamics to the numbers of a mechanism.

With ID(q, q̇, q̈, p) = τ, p the passive and a the active joints, a change of a parameter asks for other torques r =
∂ID/∂p, to which the hybrid dynamics responds as to any others (Sohl and Bobrow 2001, section 4; Kim 2012, section 4):

    ∂q̈ᵖ = −M_pp⁻¹ r_p      ∂τᵃ = r_a + M_ap ∂q̈ᵖ

M_pp⁻¹ and M_ap M_pp⁻¹ are the derivatives to the torques of the passive joints, which `hybrid_sensitivity` has. The
columns r are found by `sensitivity.torque_rates`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from cstormpy.arguments import option
from cstormpy.arrays import Array
from cstormpy.dynamics.batches import MANY_COORDINATES
from cstormpy.dynamics.checked_arguments import BaseLike, Samples, WrenchLike, read_samples
from cstormpy.dynamics.hybrid import HybridDynamics, Together, are_plain_rows, hybrid_answer, put_together
from cstormpy.dynamics.inertial_lines import plain_rows_by_line
from cstormpy.dynamics.regressor import Columns, inertial_line, inertial_sensitivity
from cstormpy.errors import InvalidType
from cstormpy.kernels import layout
from cstormpy.linkage.components import Component, Inertia, find
from cstormpy.linkage.tables import tables_of
from cstormpy.sensitivity.held_joints import Held
from cstormpy.sensitivity.hybrid import HybridSensitivity, hybrid_sensitivity
from cstormpy.sensitivity.torque_rates import columns_of, held_for, torque_rates

if TYPE_CHECKING:
    from cstormpy.linkage import Linkage


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
        at = places[option(name, "parameter", places)]
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
    if asked.columns is not None and are_plain_rows(q, qd, u, wrench, base, threads):
        plain: Any = plain_rows_by_line(mech, (q, qd, u), asked.columns, threads)  # type: ignore[arg-type]
        if plain is not None:
            return ParameterSensitivity(put_together(plain[0], u, mech.active_mask), plain[1], found)
    samples = read_samples(mech, {"q": q, "qd": qd, "u": u}, wrench, base)
    refuse_symbols(samples.rows["q"])
    answered = None
    if asked.columns is not None and samples.count == 1:
        answered = inertial_line(mech, samples, asked.columns, threads)
    elif asked.columns is not None and _goes_side_by_side(mech, samples.count):
        answered = inertial_sensitivity(mech, samples, asked.columns, threads)
    if answered is not None:
        y, dy_dp = answered
        parts = put_together(samples.shaped(y), samples.shaped(samples.rows["u"]), mech.active_mask)
        return ParameterSensitivity(parts, samples.shaped(dy_dp), found)
    answer, response = _answered(mech, samples, wrench, base, threads)
    motion = samples.rows["q"], samples.rows["qd"], answer.qdd
    dy_dp = torque_rates(mech, asked.parts, *motion, wrench, base, threads, response, asked.held)
    parts_of_answer = put_together(samples.shaped(answer.y), samples.shaped(samples.rows["u"]), mech.active_mask)
    return ParameterSensitivity(parts_of_answer, samples.shaped(dy_dp), found)


@dataclass(frozen=True, eq=False)
class Asked:
    """Parameters of a mechanism by name, with their components.

    It holds numbers and arrays alone, so that a diagram can put symbols in their places.
    """

    found: list[tuple[str, tuple[Component, ...]]]
    parts: list[Any]
    columns: Columns | None
    """Those of the kernels, if all are inertial numbers."""
    held: Held | None
    """The joints that their geometry moves, if they have some."""

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
        made = cls(found, parts, columns_of(mech, parts) if inertial else None, held_for(mech.tree, parts))
        if names is not None:
            while len(kept) >= _LISTS_KEPT:
                kept.pop(next(iter(kept)), None)
            kept[names] = made
        return made

    @property
    def names(self) -> tuple[str, ...]:
        """The parameters, by name."""
        return tuple(name for name, _ in self.found)


def _goes_side_by_side(mech: Linkage, count: int) -> bool:
    """Tell whether samples and their matrices are best computed side by side."""
    deep = tables_of(mech).N[layout.N_DEEP]
    return count > 1 and mech.n <= MANY_COORDINATES and not deep and not mech.active_mask.all()


def sensitivity_with_parameters(
    mech: Linkage,
    q: Array,
    qd: Array,
    u: Array,
    asked: Asked,
    wrench: WrenchLike = None,
    base: BaseLike = None,
    to_base: bool = False,
) -> tuple[HybridSensitivity, Array]:
    """Return the derivatives to the state of one sample, and beside them those to parameters, (n, k)."""
    d = hybrid_sensitivity(mech, q, qd, u, wrench, base, to_base=to_base)
    rows = np.reshape(q, (1, -1)), np.reshape(qd, (1, -1)), d.qdd[None]
    response = _response(mech, d.dy_du[None])
    return d, torque_rates(mech, asked.parts, *rows, wrench, base, 1, response, asked.held)[0]


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
    return np.where(mech.active_mask, np.eye(mech.n), -dy_du)
