"""Linear models of loops with sampled blocks, from one period to the next: x[k+1] = A x[k] + B u[k], exactly.

The state is that of the continuous blocks at the beginning of a period, and of the sampled blocks before they tick
there; what such blocks hold is part of it only where it is held from one period into the next. Within a period the
continuous states follow their linear model by the matrix exponential, with sampled states and inputs held, and each
tick is the linear model of what its blocks do.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cstormpy.arrays import Array
from cstormpy.errors import DiagramError, InvalidValue
from cstormpy.simulation.analysis.model import DifferencedModel, Model

#: Times closer than this part of a period are one.
_TOGETHER = 1e-9


@dataclass
class Period:
    """The map of one period: s[k+1] = A s[k] + B u[k], y[k] = C s[k] + D u[k]; names and values of sampled states."""

    A: Array
    B: Array
    C: Array
    D: Array
    sampled: tuple[str, ...]
    z: Array


def ticks_within(clocks: list[Any], dt: float) -> list[tuple[float, list[Any]]]:
    """Return when clocks tick within a period, and which of them, in the order of time.

    Raises
    ------
    InvalidValue
        A clock whose period does not divide the one asked for.
    """
    found: list[tuple[float, Any]] = []
    for clock in clocks:
        count = round(dt / clock.T)
        if count < 1 or abs(count * clock.T - dt) > _TOGETHER * dt:
            raise InvalidValue(
                f"linearize: dt: expected a whole number of the periods of all clocks, but {clock.name} ticks each "
                f"{clock.T:g} s; got {dt:g} s"
            )
        found += [((clock.offset % clock.T) + k * clock.T, clock) for k in range(count)]
    groups: list[tuple[float, list[Any]]] = []
    for when, clock in sorted(found, key=lambda entry: entry[0]):
        if groups and when - groups[-1][0] <= _TOGETHER * dt:
            groups[-1][1].append(clock)
        else:
            groups.append((when, [clock]))
    return groups


def whole_period(
    model: Model | DifferencedModel, t: float, x: Array, u: Array, dt: float, ticked: bool = False
) -> Period:
    """Return the linear model of a diagram over one period, about a point.

    Parameters
    ----------
    ticked : bool
        Whether outputs are those when the ticks at the beginning of a period have been, and not those before.

    Raises
    ------
    DiagramError
        A diagram that cannot be translated, or in which a sampled block moves between its ticks.
    """
    if not isinstance(model, Model):
        reasons = "; ".join(f"{name}: {why}" for name, why in model.differenced)
        raise DiagramError(f"linearize: dt is for diagrams that can be translated, which this one cannot: {reasons}")
    for b, _ in model.program.sampled:
        if getattr(b, "between_ticks", False):
            raise DiagramError(
                f"linearize: block {b.name!r} moves between its ticks, of which a model by dt knows nothing; delay by "
                "samples= and hold that by a ZOH"
            )
    return _Ticking(model, t, x, u).period(dt, ticked)


class _Ticking:
    """A diagram about a point, whose sampled states move too."""

    def __init__(self, model: Model, t: float, x: Array, u: Array) -> None:
        self.model, self.t, self.x, self.u = model, t, x, u
        self.n, self.m, self.nz = x.size, u.size, model.program.sampled_size

    def period(self, dt: float, ticked: bool) -> Period:
        program, n, nz, m = self.model.program, self.n, self.nz, self.m
        groups = ticks_within([clock for clock, _, _ in program.clocks], dt)
        at_once = groups[0][1] if groups and groups[0][0] <= _TOGETHER * dt else []
        y = self._slopes([] if ticked else at_once)[1][self.model.columns]
        if ticked:
            y = y @ self._with_inputs(self._tick(at_once))
        total = np.eye(n + nz, n + nz + m)
        now = 0.0
        for when, clocks in groups:
            total = self._tick(clocks) @ self._with_inputs(self._flow(when - now) @ self._with_inputs(total))
            now = when
        total = self._flow(dt - now) @ self._with_inputs(total)
        kept = self._kept(total, y)
        size = n + nz
        inner = total[np.ix_(kept, kept)]
        places = kept[kept >= n] - n
        values = self.model.z[places]
        return Period(inner, total[kept, size:], y[:, kept], y[:, size:], self._names(places), values)

    def _with_inputs(self, rows: Array) -> Array:
        """Return rows of (x, z) as functions of the beginning of the period, with those of the inputs below."""
        return np.vstack([rows, np.eye(self.m, rows.shape[1], rows.shape[1] - self.m)])

    def _tick(self, clocks: list[Any]) -> Array:
        """Return (x, z) after a tick as functions of (x, z, u) before it."""
        size = self.n + self.nz
        after, slopes = np.eye(size, size + self.m), self._slopes(clocks)[1]
        for clock, part, first in self.model.program.clocks:
            if clock in clocks:
                count = part.stop - part.start
                after[self.n + part.start : self.n + part.stop] = slopes[first : first + count]
        return after

    def _flow(self, span: float) -> Array:
        """Return (x, z) after some time without ticks as functions of (x, z, u)."""
        from scipy.linalg import expm

        size = self.n + self.nz + self.m
        if span <= 0.0:
            return np.eye(size - self.m, size)
        block = np.zeros((size, size))
        block[: self.n] = self._slopes([])[0]
        return expm(block * span)[: size - self.m]

    def _slopes(self, live: list[Any]) -> tuple[Array, Array]:
        """Return the derivatives of the rates and of all signals to (x, z, u), where some clocks tick."""
        model, p, n, nz, m = self.model, self.model.program, self.n, self.nz, self.m
        z, dz = model.z.copy(), np.eye(nz)
        for clock, place in p.flags.items():
            z[place], dz[place] = float(clock in live), 0.0
        failed, _, _, dout, drate = model.slopes(self.t, self.x, z, self.u, dz)
        if failed or not (np.isfinite(dout).all() and np.isfinite(drate).all()):
            name = p.blocks[failed - 1] if failed else "the diagram"
            raise DiagramError(f"linearize: {name} has no derivative at t = {self.t:.9g} where a clock ticks")
        return drate[:, : n + nz + m], dout[:, : n + nz + m]

    def _kept(self, total: Array, y: Array) -> NDArray[np.intp]:
        """Return which of (x, z) are states: all but what is held and written anew before it is used."""
        program, n = self.model.program, self.n
        flags = {n + place for place in program.flags.values()}
        held = {n + k for _, part in program.held for k in range(part.start, part.stop)}
        used = np.any(total != 0.0, axis=0) | np.any(y != 0.0, axis=0)
        return np.array([k for k in range(n + self.nz) if k not in flags and (k not in held or used[k])], dtype=np.intp)

    def _names(self, places: NDArray[np.intp]) -> tuple[str, ...]:
        program = self.model.program
        kinds = ("", program.sampled), (" held", program.held)
        found = {
            k: f"{b.name}{held}[{k - part.start}]"
            for held, parts in kinds
            for b, part in parts
            for k in range(part.start, part.stop)
        }
        return tuple(found[k] for k in places.tolist())
