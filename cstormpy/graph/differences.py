"""Derivatives of functions that nobody can look into, by differences along directions."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cstormpy.arrays import Array

#: Share of a number by which it is moved for a central difference: the cube root of the rounding.
MOVED = 6e-6
#: A slope on one side may grow by this factor as the step shrinks to an eighth, and by this for the rounding.
_STEEPER, _ROUNDED = 1.05, 1e-6

#: A difference is taken where that by half its step, or extrapolated by a quarter, differs by no more than this part.
_AGREE = 1e-7
#: So many steps are tried that are each a sixteenth of the one before.
_SHORTER = 5
#: Rounding of single precision. By how much longer steps are for what is computed in it; slopes by such a step and its
#: half differ by no more than this part, or than that of the value.
_SINGLE = float(np.finfo(np.float32).eps)
_LONGER, _ALIKE, _ROUGH = (4096.0, 256.0, 16.0), 0.03, 3e-4
#: Where numbers are moved by more than this part of themselves, it is seen whether the difference is one.
_FAR = 1e-3


def agreeing_slope(
    difference: Callable[[float], Array | None], steps: Iterable[float], of_largest: float = 0.0
) -> Array | None:
    """Return a derivative by central differences of the first step that agrees with its half, extrapolated.

    Where the two bend, so do what is extrapolated from them and from the half and the quarter. Where none agrees, as
    where some of its numbers are much smaller than others, of each entry by the step that agrees best with its parts
    and with the step before.

    Parameters
    ----------
    difference : function of a step
        The difference, or None where there is none.
    steps : iterable of float
    of_largest : float
        Entries whose differences agree within this part of the largest slope do so too, which saves steps in vain.
    """
    found: list[tuple[Array, Array]] = []

    def agree(off: Array, slope: Array) -> bool:
        size = np.abs(slope)
        return bool((off <= _AGREE * size + of_largest * size.max(initial=0.0)).all())

    for h in dict.fromkeys(steps):
        wide, narrow = difference(h), difference(0.5 * h)
        if wide is None or narrow is None:
            continue
        slope, off = _extrapolated(wide, narrow), np.abs(wide - narrow)
        if not agree(off, slope) and (narrowest := difference(0.25 * h)) is not None:
            coarse, slope = slope, _extrapolated(narrow, narrowest)
            off = np.abs(coarse - slope)
        found.append((slope, np.maximum(off, np.abs(slope - found[-1][0])) if found else off))
        if agree(off, slope):
            return slope
    if not found:
        return None
    best = np.argmin([off for _, off in found], axis=0)
    slopes = np.array([slope for slope, _ in found])
    return np.asarray(np.take_along_axis(slopes, best[None], axis=0)[0])


def _extrapolated(wide: Array, narrow: Array) -> Array:
    """Return a derivative of the fourth order from central differences by a step and by its half."""
    return np.where(wide == narrow, wide, (4.0 * narrow - wide) / 3.0)


def shorter(h: float) -> list[float]:
    """Return a step and some that are shorter."""
    return [h * 16.0**-k for k in range(_SHORTER)]


def differenced_function(function: Callable[..., Any], values: tuple[Any, ...], tangents: tuple[Any, ...]) -> Any:
    """Return what a function of the user returns, and its tangents along all directions, by differences.

    They are central, with a step that fits the largest of the numbers, or a shorter one where smaller ones move too far
    by that and the difference shows it. Where the function has no value on one side, as beside the edge of its domain,
    the step is made small against the numbers that are moved, and if that does not help either, the difference is taken
    on one side. A function that computes in single precision is asked further away, where its rounding counts less.

    Raises
    ------
    ValueError
        Where there is none of these, or the slope grows without bound.
    """
    result = function(*[np.array(v) if isinstance(v, np.ndarray) else v for v in values])
    count = max([np.shape(d)[-1] for d in tangents if np.ndim(d)], default=1)
    size = max([float(np.abs(v).max(initial=0.0)) for v in map(np.asarray, values)], default=0.0)
    columns = []
    for k in range(count):
        parts = [np.asarray(d)[..., k] if np.ndim(d) else d for d in tangents]
        along = max([float(np.abs(d).max(initial=0.0)) for d in map(np.asarray, parts)], default=0.0)
        if along > 0.0:
            line = _Line(function, values, parts, result)
            columns.append(line.slope((MOVED * max(1.0, size) / along, MOVED * line.reach())))
        else:
            columns.append([np.zeros(np.shape(part)) for part in _arrays(result)])
    if isinstance(result, (list, tuple)):
        return result, [np.stack([column[i] for column in columns], axis=-1) for i in range(len(result))]
    return result, np.stack([column[0] for column in columns], axis=-1)


class _Line:
    """A function of the user along a direction from a point, at which it returns `here`."""

    def __init__(self, function: Callable[..., Any], values: tuple[Any, ...], along: list[Any], here: Any) -> None:
        self.function, self.values, self.along = function, values, along
        self.here = _arrays(here)
        #: Whether a part says of itself that it is of single precision.
        self.single = any(getattr(part, "dtype", None) == np.float32 for part in _listed(here))

    def reach(self, zeros: bool = True) -> float:
        """Return how far it is until one of the numbers that are moved, or of those not zero, has moved by its size."""
        nearest = math.inf
        for v, d in (np.broadcast_arrays(v, d) for v, d in zip(self.values, self.along, strict=True)):
            moved = (d != 0.0) & (zeros | (v != 0.0))
            nearest = min(nearest, float((np.abs(v[moved]) / np.abs(d[moved])).min(initial=math.inf)))
        return nearest

    def at(self, h: float) -> list[Array] | None:
        """Return the parts of the result at a distance, or None where there are none like those at the point."""
        try:
            found = _arrays(self.function(*[v + h * d for v, d in zip(self.values, self.along, strict=True)]))
        except (ArithmeticError, ValueError, LookupError):
            return None
        if [a.shape for a in found] != [a.shape for a in self.here]:
            return None
        defined = all(np.isfinite(a[np.isfinite(b)]).all() for a, b in zip(found, self.here, strict=True))
        return found if defined else None

    def slope(self, steps: tuple[float, ...]) -> list[Array]:
        """Return the derivative of each part, by the first of the steps that serves."""
        own = self.reach(zeros=False)
        if steps[0] > _FAR * own:
            found = agreeing_slope(self._difference, [steps[0], *shorter(MOVED * own)])
            if found is not None:
                if (sides := self._sides(steps[0])) is not None:
                    found = self._of_rounded(steps[0], *sides, found)
                return self._parts(found)
        for h in filter(None, steps):
            if (sides := self._sides(h)) is not None:
                return self._parts(self._of_rounded(h, *sides, (sides[0] - sides[1]) / (2.0 * h)))
        for h in (steps[0], -steps[0]):
            coarse, fine = self.aside(h), self.aside(h / 8.0)
            if coarse is not None and fine is not None:
                self._check(coarse, fine)
                return coarse
        raise ValueError("the function has no value beside the point")

    def _difference(self, h: float) -> Array | None:
        """Return the central difference of all parts, one behind the other, or None where there is none."""
        sides = self._sides(h)
        return None if sides is None else (sides[0] - sides[1]) / (2.0 * h)

    def _sides(self, h: float) -> tuple[Array, Array] | None:
        """Return all parts, one behind the other, on either side of the point; None where one has none."""
        above, below = self.at(h), self.at(-h)
        return None if above is None or below is None else (_joined(above), _joined(below))

    def _of_rounded(self, h: float, above: Array, below: Array, slope: Array) -> Array:
        """Return a slope, but by longer steps of what is computed in single precision, as its values on all sides show.

        Where two of these do not agree, as beside a jump, it stays as it is.
        """
        moves = above != below
        if not self.single and not _is_single(above[moves]).any():
            return slope
        here = _joined(self.here)
        rounded = _is_single(above) & _is_single(below) & _is_single(here)
        if not self.single and not (rounded & moves).any():
            return slope
        least = np.full(slope.shape, math.inf)
        for longer in _LONGER:
            wide, narrow = self._difference(longer * h), self._difference(0.5 * longer * h)
            if wide is not None and narrow is not None:
                found = _extrapolated(wide, narrow)
                off = np.maximum(np.abs(wide - narrow), _SINGLE * np.abs(here) / (longer * h))  # by chance it is less
                alike = off <= np.maximum(_ALIKE * np.abs(found), _ROUGH * np.abs(here))
                better = rounded & alike & (off < least)
                slope, least = np.where(better, found, slope), np.where(better, off, least)
        return slope

    def _parts(self, joined: Array) -> list[Array]:
        """Return parts of the result that stand one behind the other."""
        cuts = np.cumsum([part.size for part in self.here])[:-1]
        return [part.reshape(a.shape) for part, a in zip(np.split(joined, cuts), self.here, strict=True)]

    def aside(self, h: float) -> list[Array] | None:
        """Return the derivative of each part by a difference of second order on one side."""
        near, far = self.at(h), self.at(2.0 * h)
        if near is None or far is None:
            return None
        return [(4.0 * b - 3.0 * a - c) / (2.0 * h) for a, b, c in zip(self.here, near, far, strict=True)]

    def _check(self, coarse: list[Array], fine: list[Array]) -> None:
        """Refuse a slope that grows as the step is made smaller, as that of a root does at zero."""
        for value, a, b in zip(self.here, coarse, fine, strict=True):
            if (np.abs(b) > _STEEPER * np.abs(a) + _ROUNDED * np.maximum(1.0, np.abs(value))).any():
                raise ValueError("the slope of the function grows without bound towards the point")


def _joined(parts: list[Array]) -> Array:
    return np.concatenate([np.ravel(part) for part in parts])


def _is_single(values: Array) -> NDArray[np.bool_]:
    """Tell which numbers are those of single precision."""
    with np.errstate(over="ignore"):
        return values.astype(np.float32).astype(float) == values


def _listed(found: Any) -> Any:
    return found if isinstance(found, (list, tuple)) else [found]


def _arrays(found: Any) -> list[Array]:
    return [np.array(part, dtype=float) for part in _listed(found)]
