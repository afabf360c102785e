"""Bounds of continuous states, as the limits of INTEGRATOR: a rule of the runner, the same in both engines.

A bounded state is free, or held at one of its bounds. Free, it has the rate of its block whatever the bounds are, so
that no stage of a step sees them; the runner locates where it reaches one, puts it exactly there, and holds it as long
as its rate points outwards. Where that rate crosses zero, which is located too, the state is free again. On which side
a state is held stands with its block (`side_of`), where the compiled function reads it as any number. At the start of
a run, and wherever something jumps, a state beyond its bound is put there, as INTEGRATOR_S clips it.

bdsim's own INTEGRATOR has a rate of zero beyond a limit, whichever way its input points, and never comes back.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from bdsim.blocks.continuous import Integrator

from cstormpy.arrays import Array, real_array
from cstormpy.errors import InvalidValue, NonFinite, ShapeError
from cstormpy.reporting import notice_once
from cstormpy.simulation.bdsim_blocks import is_of


def is_bounded(block: Any) -> bool:
    """Tell whether a block's states have bounds that the runner keeps: a `deriv` of its own is to keep them itself."""
    kind = block.__class__
    own = not is_of(kind, Integrator) or kind.deriv is not Integrator.deriv
    return not own and (block.min is not None or block.max is not None)


def bounds_of(block: Any) -> tuple[Array, Array]:
    """Return the least and the greatest value of each state of a block, infinite where there is none."""
    return _each(block, "min", -np.inf), _each(block, "max", np.inf)


def _each(block: Any, name: str, none: float) -> Array:
    """Return a limit of each state, from one for all or one for each."""
    value, n = getattr(block, name), block.nstates
    if value is None:
        return np.full(n, none)
    found = real_array(value, f"block {str(block.name)!r}: {name}", finite=False)
    if found.size not in (1, n):
        more = f" or {n}" if n > 1 else ""
        raise ShapeError(f"block {str(block.name)!r}: {name}: expected 1 number{more}, got {found.size}")
    return np.broadcast_to(found.ravel(), n)


def bounded_states(block: Any) -> list[tuple[bool, bool]]:
    """Return of each state of a block whether it has a least and a greatest value."""
    low, high = bounds_of(block)
    return list(zip((low > -np.inf).tolist(), (high < np.inf).tolist(), strict=True))


def side_of(block: Any) -> Array:
    """Return where the states of a block are held: -1.0 at the least value, 1.0 at the greatest, 0.0 nowhere."""
    sides = block.__dict__.get("_held_sides")
    if sides is None or sides.size != block.nstates:
        sides = block.__dict__["_held_sides"] = np.zeros(block.nstates)
    return sides


def rate_of_integrator(block: Any, u: list[Any]) -> Array:
    """Return the rate of an INTEGRATOR without its limits."""
    return block.gain * np.array(u[0], dtype=float).reshape(-1)


class Bound:
    """A state with bounds; as detector of zero crossings it tells where the state is held, or free again.

    Attributes
    ----------
    block : Block
    entry : int
        Which of the states of its block it is.
    place : int
        Where it stands among all states.
    """

    terminal = True
    direction = -1.0
    #: Its sides are decided, so that its value counts also right after it has fired.
    decided = True
    #: Where nobody locates it, the state is put within its bounds after each step.
    settles = True
    #: What it shows goes on without a jump.
    leaps = False

    def __init__(self, block: Any, entry: int, place: int, simstate: Any = None) -> None:
        self.block, self.entry, self.place = block, entry, place
        self._simstate = simstate

    @property
    def low(self) -> float:
        """The least value."""
        return float(bounds_of(self.block)[0][self.entry])

    @property
    def high(self) -> float:
        """The greatest value."""
        return float(bounds_of(self.block)[1][self.entry])

    @property
    def side(self) -> float:
        """Side at which the state is held: -1.0, 0.0 or 1.0."""
        return float(side_of(self.block)[self.entry])

    def _rate(self) -> float:
        """Return the rate that the block gives it, from the signals that stand there."""
        rate = rate_of_integrator(self.block, [slot.value for slot in self.block._inport_slots])
        return float(rate[self.entry]) if rate.size == self.block.nstates else np.nan

    def __call__(self, t: float, x: Array) -> float:
        """Return how far the state is from its bounds, or how fast its rate would take it out of the one it is at."""
        if self.side:
            self._simstate.ensure_event_probe_evaluated(self.block.bd, t, x)
            return self.side * self._rate()
        return min(self.high - float(x[self.place]), float(x[self.place]) - self.low)

    def told(self) -> str:
        """Return what an event of this state is."""
        return "leaves its limit" if self.side else "reaches a limit"

    def nearest(self, value: float) -> float:
        """Return the bound that is nearest to a value."""
        return self.high if self.high - value <= value - self.low else self.low

    def decide(self, x: Array) -> bool:
        """Hold the state, or let it go, as the signals say that stand there; return whether that is something new."""
        before, at = self.side, float(x[self.place])
        outwards = (at >= self.high) * 1.0 or (at <= self.low) * -1.0
        rate = self._rate() if outwards else 0.0
        if self.low == self.high:
            outwards = 1.0 if rate > 0.0 else -1.0
        after = outwards if outwards * rate > 0.0 else 0.0
        side_of(self.block)[self.entry] = after
        return after != before


class Bounds:
    """The bounded states of a diagram, all free at first.

    Parameters
    ----------
    continuous : list
        Pairs of block and slice of the state vector.
    """

    def __init__(self, continuous: list[tuple[Any, slice]]) -> None:
        self.all: list[Bound] = []
        for b, part in continuous:
            if not is_bounded(b):
                continue
            _check(b)
            side_of(b)[:] = 0.0
            self.all += [
                Bound(b, k, part.start + k) for k, (least, most) in enumerate(bounded_states(b)) if least or most
            ]
        self.places = np.array([bound.place for bound in self.all], dtype=np.intp)

    def __iter__(self) -> Iterator[Bound]:
        return iter(self.all)

    def __bool__(self) -> bool:
        return bool(self.all)

    def declare(self, simstate: Any) -> None:
        """Have a run locate where states reach their bounds and leave them."""
        for bound in self.all:
            bound._simstate = simstate
            simstate.crossing_detectors.append((bound, bound.block))

    def refuse_more(self, continuous: list[tuple[Any, slice]]) -> None:
        """Refuse bounds of states that had none where the run began: nobody locates where these reach them."""
        known = {(id(bound.block), bound.entry) for bound in self.all}
        for b, _ in continuous:
            for k, (least, most) in enumerate(bounded_states(b) if is_bounded(b) else ()):
                if (least or most) and (id(b), k) not in known:
                    raise InvalidValue(
                        f"block {str(b.name)!r}: min and max are set in a run for state {k}, which had neither where "
                        "it began; begin with wide ones, as max=1e9, or set them before the run"
                    )

    def hold(self, x: Array) -> None:
        """Decide which states are held, from the signals that stand there."""
        for bound in self.all:
            bound.decide(x)

    def within(self, x: Array) -> Array:
        """Return a state whose bounded parts are within their bounds."""
        if not self.all:
            return x
        values = x[self.places]
        inside = np.clip(values, [b.low for b in self.all], [b.high for b in self.all])
        if np.array_equal(values, inside, equal_nan=True):
            return x
        out = x.copy()
        out[self.places] = inside
        return out

    def entered(self, x: Array, names: Sequence[str]) -> Array:
        """Return the state of a start within its bounds, and say where it was not."""
        inside = self.within(x)
        for bound in self.all:
            k = bound.place
            if inside[k] != x[k]:
                notice_once(f"state {names[k]!r} begins at its limit, {inside[k]:g}, not beyond it at {x[k]:g}")
        return inside


def _check(block: Any) -> None:
    low, high = bounds_of(block)
    if np.isnan(low).any() or np.isnan(high).any():
        raise NonFinite(f"block {block.name!r}: min and max must be numbers, got min={block.min}, max={block.max}")
    if (low > high).any():
        raise InvalidValue(
            f"block {block.name!r}: min must not be greater than max, got min={block.min}, max={block.max}"
        )
