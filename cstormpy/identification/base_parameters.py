"""Base parameters: the combinations of unknowns on which torques depend, and no more.

Columns of the regressor that depend on others are regrouped into these (M. Gautier, Numerical calculation of the base
inertial parameters of robots, J. Robotic Systems 8(4), 1991, 485-506): with W2 = W1 K, the torques W1 π1 + W2 π2 are
W1 (π1 + K π2).
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from cstormpy.arrays import Array
from cstormpy.identification.equations import equations_of
from cstormpy.identification.unknowns import Unknowns, unknowns_of
from cstormpy.loops.assembly import independent_rows
from cstormpy.loops.closed_motions import random_motions
from cstormpy.mechanism import Mechanism, as_mechanism
from cstormpy.sensitivity.torque_rates import torque_rates
from cstormpy.values import frozen

#: A column that lies in the span of those before it but for this part of its length depends on them.
DEPENDENT = 1e-8
#: Coefficients below this are rounding.
ROUNDING = 1e-7


@dataclass(frozen=True)
class BaseParameter:
    """A combination of unknowns on which torques depend.

    Attributes
    ----------
    names : tuple of str
        The unknown that stands for it, and those that are regrouped into it.
    factors : tuple of float
        What they are multiplied by; the first by 1.
    """

    names: tuple[str, ...]
    factors: tuple[float, ...]

    def __str__(self) -> str:
        text = self.names[0]
        for name, factor in zip(self.names[1:], self.factors[1:], strict=True):
            size = "" if abs(abs(factor) - 1.0) < ROUNDING else f"{abs(factor):.4g} "
            text += f" {'-' if factor < 0 else '+'} {size}{name}"
        return text


@dataclass(frozen=True)
class BaseParameters:
    """All base parameters of some unknowns.

    Attributes
    ----------
    parameters : tuple of BaseParameter
    matrix : ndarray, (B, P)
        Base parameters are this times the unknowns.
    names : tuple of str
        Of the unknowns.
    alone : tuple of str
        Unknowns that are a base parameter each, nothing being regrouped into them.
    combined : tuple of str
        Unknowns that can be found in combination with others only.
    without_effect : tuple of str
        Unknowns on which no torque depends.
    """

    parameters: tuple[BaseParameter, ...]
    matrix: Array
    names: tuple[str, ...]

    @property
    def alone(self) -> tuple[str, ...]:
        """Unknowns that are a base parameter each."""
        return tuple(p.names[0] for p in self.parameters if len(p.names) == 1)

    @property
    def without_effect(self) -> tuple[str, ...]:
        """Unknowns on which no torque depends."""
        return tuple(name for name, column in zip(self.names, self.matrix.T, strict=True) if not column.any())

    @property
    def combined(self) -> tuple[str, ...]:
        """Unknowns that can be found in combination with others only."""
        other = {*self.alone, *self.without_effect}
        return tuple(name for name in self.names if name not in other)

    def __len__(self) -> int:
        return len(self.parameters)

    def __str__(self) -> str:
        return "\n".join(map(str, self.parameters))


def base_parameters(
    mech: Mechanism | str | os.PathLike[str], parameters: Iterable[str] | str | None = None
) -> BaseParameters:
    """Return the combinations of unknowns that any motion can show, as `identify` names the unknowns.

    Parameters
    ----------
    mech : Mechanism, str or path
    parameters : iterable of str, optional
        As for `identify`.

    Examples
    --------
    >>> from cstormpy.mechanism import library
    >>> print(base_parameters(library.planar_2r()))
    upper_arm.mx + 0.5 forearm.m
    upper_arm.my
    upper_arm.Izz + 0.25 forearm.m
    forearm.mx
    forearm.my
    forearm.Izz
    """
    mech = as_mechanism(mech)
    return regrouped(mech, unknowns_of(mech, parameters))


def _excited(mech: Mechanism, unknowns: Unknowns) -> Array:
    """Return the stacked regressor of random motions, all of which can be, compressed to (P, P) or less.

    It is that of torques and unknowns in parts of their sizes.
    """
    freedoms = mech.n - (len(independent_rows(mech)) if mech.loops else 0)
    samples = 20 + 4 * len(unknowns.parts) // max(1, freedoms)
    if ("random motions", samples) not in mech.memo:  # closed ones are searched for
        motions = random_motions(mech, samples, np.random.default_rng(0))
        mech.memo["random motions", samples] = tuple(map(frozen, motions))
    q, qd, qdd = mech.memo["random motions", samples]
    W = equations_of(mech, q).reduced(torque_rates(mech.tree, unknowns.parts, q, qd, qdd)) * unknowns.sizes
    return np.asarray(np.linalg.qr(W.reshape(-1, len(unknowns.parts)), mode="r"))


def regrouped(mech: Mechanism, unknowns: Unknowns) -> BaseParameters:
    """Return the base parameters: each column of the regressor of random motions is kept, or regrouped into earlier."""
    names, sizes, W = unknowns.names, unknowns.sizes, _excited(mech, unknowns)
    lengths = np.linalg.norm(W, axis=0)
    floor = DEPENDENT**1.5 * max(1.0, float(lengths.max(initial=0.0)))
    kept: list[int] = []
    basis = np.zeros((len(W), 0))
    # masses into moments rather than moments into masses: that makes large factors where frames are off the axes
    for k in sorted(range(len(names)), key=lambda k: names[k].endswith(".m")):
        if lengths[k] <= floor:
            continue
        rest = W[:, k] / lengths[k]
        for _ in range(2):  # once more for what rounding left
            rest = rest - basis @ (basis.T @ rest)
        if (size := np.linalg.norm(rest)) > DEPENDENT:
            kept.append(k)
            basis = np.column_stack([basis, rest / size])
    kept.sort()
    matrix = np.zeros((len(kept), len(names)))
    if kept:
        unit = W / np.where(lengths > floor, lengths, np.inf)
        scaled = np.linalg.lstsq(unit[:, kept], unit, rcond=None)[0]
        matrix = scaled * (lengths / sizes) / (lengths / sizes)[kept][:, None]
        matrix[np.abs(scaled) < ROUNDING] = 0.0
        matrix[:, kept] = np.eye(len(kept))
    parameters = []
    for row, k in zip(matrix, kept, strict=True):
        order = [k, *(int(j) for j in np.flatnonzero(row) if j != k)]
        parameters.append(BaseParameter(tuple(names[j] for j in order), tuple(float(row[j]) for j in order)))
    return BaseParameters(tuple(parameters), matrix, tuple(names))
