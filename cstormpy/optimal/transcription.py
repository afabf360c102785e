"""The base of both transcriptions: variables, samples, and how derivatives of samples become those of variables.

The variables x are the free control points of the joints on splines, in the order of `ControlPointMap`, behind them the
design variables, and last the duration T where it is free. Splines live on phases s = t/T from 0 to 1; a derivative of
order r to time is that to the phase over T^r.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cstormpy.errors import InvalidValue
from cstormpy.optimal.samples import TIMES, Array, Parts, Places, Samples
from cstormpy.optimal.sizes import Sizes, sizes_of
from cstormpy.trajectory import BSpline, ControlPointMap, EndConditions

if TYPE_CHECKING:
    from cstormpy.mechanism import Mechanism
    from cstormpy.optimal.design import Design, Designed
    from cstormpy.optimal.freedoms import Freedoms
    from cstormpy.optimal.loads import BaseMotion, Load
    from cstormpy.optimal.loop_forces import LoopForces

Indices = NDArray[np.intp]
ORDERS = 4
"""Value, rate, acceleration and jerk."""

NEEDED = {"qdd": 1, "tau": 1, "multipliers": 1, "qddd": 2}
"""Number of a spline's derivatives that must have no jump for a channel to be finite."""


@dataclass(frozen=True, eq=False)
class Setup:
    """The content of a problem that is transcribed."""

    mech: Mechanism
    driven: Indices  # the joints on splines
    knots: Array  # phases
    degree: int
    ends: EndConditions  # of the joints on splines
    start: Array  # (2, n), position and rate at the start, NaN where free
    duration: float | None  # None where it is free
    loads: tuple[tuple[int, Load], ...]
    base: BaseMotion | None
    typical_duration: float
    moved: NDArray[np.bool_]  # which joints on splines move along them; the others have splines of torque
    loops: LoopForces | None = None  # of a closed mechanism
    design: Design | None = None
    freedoms: Freedoms | None = None  # of a closed mechanism, where these alone are on splines

    @cached_property
    def sizes(self) -> Sizes:
        """The characteristic sizes of what the mechanism does."""
        known = np.nan_to_num(self.start[:1])
        postures = np.concatenate([known, known + 1.0, known - 1.0])
        return sizes_of(self.mech, self.typical_duration, postures, self.loads)

    @cached_property
    def column_sizes(self) -> Array:
        """Of each column of the splines: joints, and behind them what has the multipliers of cuts for acceleration."""
        sizes = self.sizes
        joints = np.where(self.moved, sizes.q[self.driven], sizes.tau[self.driven])
        return joints if self.loops is None else np.append(joints, sizes.multipliers[self.loops.cut] * sizes.time**2)

    @property
    def width(self) -> int:
        """Number of columns of the splines."""
        return len(self.driven) + (0 if self.loops is None else len(self.loops.cut))

    def phases_of(self, at: str | Iterable[float]) -> Array:
        """Return the phases that "breaks" or "collocation" stand for, or those given.

        Collocation is at the Greville abscissae of the accelerations: as many equations as these have control points.
        They are the knots for cubics; higher degrees have further ones near to the ends.
        """
        if at == "breaks":
            return np.unique(self.knots)
        if at != "collocation":
            return np.asarray(at, dtype=np.float64)
        rest = self.degree - 2
        inner = self.knots[3:-3] if rest > 0 else self.knots[2:-2]
        return np.unique(np.lib.stride_tricks.sliding_window_view(inner, max(rest, 2 if rest < 1 else 1)).mean(axis=1))

    @property
    def greville(self) -> Array:
        """The phase at which each control point has the most weight, (m,)."""
        return greville(self.knots, self.degree)

    @property
    def continuity(self) -> int:
        """Number of derivatives of the splines that have no jump."""
        inside = self.knots[(self.knots > 0.0) & (self.knots < 1.0)]
        return self.degree - int(np.unique(inside, return_counts=True)[1].max(initial=0))

    def refuse_rough(self, channels: Iterable[str], what: str) -> None:
        """Refuse splines on which a channel has impulses, which no sample sees."""
        needed = max((NEEDED.get(channel, 0) for channel in channels), default=0)
        if self.moved.any() and self.continuity < needed:
            infinite = "the jerk" if needed == 2 else "accelerations and torques"
            raise InvalidValue(
                f"{what}: {infinite} of splines of degree {self.degree} have impulses at their knots; "
                f"take degree={needed + 1} or more, with knots that stand once"
            )

    @property
    def curve(self) -> BSpline:
        """A curve on the phases, of all that is on splines."""
        return phase_curve(self.knots, self.degree, self.width)

    def map(self) -> ControlPointMap:
        """Return the map from free parameters to control points."""
        return self.curve.fix_ends(self.ends)


def greville(knots: Array, degree: int) -> Array:
    """Return where each control point has the most weight, (m,)."""
    return np.asarray(np.lib.stride_tricks.sliding_window_view(knots[1:-1], degree).mean(axis=1))


def phase_curve(knots: ArrayLike, degree: int, n: int, points: Array | None = None) -> BSpline:
    """Return the curve of n joints that has some control points, or rests at zero."""
    return BSpline(knots, np.zeros((np.size(knots) - degree - 1, n)) if points is None else points, degree=degree)


@dataclass(frozen=True, eq=False)
class RowPlan:
    """Places in a Jacobian of the derivatives of R numbers, of which number r belongs to sample places[r]."""

    places: Indices  # (R,)
    rows: Indices  # of each entry
    columns: Indices
    extra: Any = None  # what the transcription needs to fill them


class Evaluation(ABC):
    """A motion at its samples, with all derivatives."""

    samples: Samples

    @abstractmethod
    def pull(self, parts: Parts) -> Array:
        """Return the gradient to x of a number with these derivatives to all samples, (N, n) by channel."""

    @abstractmethod
    def entries(self, plan: RowPlan, parts: Parts) -> Array:
        """Return the entries of the plan for R numbers with these derivatives, (R, n) by channel."""


class Transcription(ABC):
    """Map from variables to samples."""

    setup: Setup
    phases: Array
    grid: slice
    quadrature: slice
    weights: Array

    def __init__(self, setup: Setup) -> None:
        self.setup = setup
        self.failure = ""  # what was refused on the last motion that is none
        self.map = setup.map()
        self.free_duration = setup.duration is None
        guess = np.zeros(0) if setup.design is None else setup.design.guess
        self.of_design = slice(self.map.size, self.map.size + len(guess))
        self.size = self.of_design.stop + self.free_duration
        of_points = np.tile(setup.column_sizes, (self.map.shape[0], 1))
        of_design = None if setup.design is None else setup.design.sizes
        self.variable_sizes = self.variables(of_points, setup.sizes.time, of_design)
        rates = [self.map.with_duration(T).offset_rate for T in (1.0, 2.0)]
        self.offset_moves = bool(rates[0].any() or rates[1].any())

    def duration(self, x: Array) -> float:
        """Return T."""
        return float(x[-1]) if self.setup.duration is None else self.setup.duration

    def control_points(self, x: Array) -> Array:
        """Return the control points of the splines, (m, width)."""
        return self.map.with_duration(self.duration(x)).control_points(x[: self.map.size])

    def spline(self, x: Array) -> BSpline:
        """Return the motion of the joints on splines, and behind them what has multipliers for accelerations."""
        names = [self.setup.mech.names[j] for j in self.setup.driven]
        if self.setup.loops is not None:
            names += self.setup.loops.names
        curve = BSpline(self.setup.knots, self.control_points(x), degree=self.setup.degree, names=names)
        return curve.with_duration(self.duration(x))

    def variables(self, control_points: Array, duration: float, design: Array | None = None) -> Array:
        """Return x of some control points, and of a design, the guess unless given; what the ends fix is ignored."""
        x = self.map.parameters(control_points)
        if self.setup.design is not None:
            x = np.concatenate([x, self.setup.design.guess if design is None else design])
        return np.append(x, duration) if self.free_duration else x

    def designed(self, x: Array) -> Designed | None:
        """Return the design; None where there are no design variables. Raises what no mechanism can have."""
        design = self.setup.design
        return None if design is None else design.at(x[self.of_design])

    @abstractmethod
    def evaluate(self, x: Array) -> Evaluation | None:
        """Return the motion, or None where a number is not finite."""

    @abstractmethod
    def plan(self, places: Indices) -> RowPlan:
        """Return where the derivatives of numbers at these samples stand, one row each."""

    def places(self, at: str | tuple[float, ...]) -> Indices:
        """Return the samples that "all", "start", "end", "breaks", "collocation" or phases stand for.

        With "everywhere" they are those of integrals too, whereas limits hold at "all" of the grid.
        """
        if at == "everywhere":
            return np.arange(len(self.phases))
        grid = np.arange(self.grid.start, self.grid.stop)
        if at == "all":
            return grid
        if at == "start":
            return grid[:1]
        if at == "end":
            return grid[-1:]
        wanted = self.setup.phases_of(at)
        wanted = wanted[(wanted >= 0.0) & (wanted <= 1.0)]
        found = np.abs(self.phases[:, None] - wanted).argmin(axis=0)
        off = np.abs(self.phases[found] - wanted)
        if off.max(initial=0.0) > 1e-9 and at != "collocation":
            phase = wanted[int(off.argmax())]
            raise InvalidValue(
                f"constraint at phase {phase:.6g}: no sample stands there; choose a number of steps such that one does"
            )
        return found

    def select(self, places: Places, parts: Parts, into: dict[str, Array]) -> None:
        """Add derivatives at some samples to those at all of them."""
        for channel, part in parts.items():
            if channel not in into:
                into[channel] = np.zeros((len(self.phases), *(() if channel in TIMES else part.shape[-1:])))
            into[channel][places] += part
