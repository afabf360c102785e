"""Loads beside the motors of a mechanism: wrenches on links, pulses, stops, wrapped angles.

Pure functions of arrays and numbers, which a compiler can take as they are, and wrenches as a signal.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from cstormpy.arrays import Array
from cstormpy.graph.nodes import where


def link_wrench(rotation: Array, point: Array, wrench: Array) -> Array:
    """Return a wrench about a point of a link as the wrench (moment, force), (6,), in the link's frame.

    With R the axes in which it is given, seen in the link's, and p the point: f = R f', m = R m' + p × f.

    Parameters
    ----------
    rotation : ndarray, (3, 3)
        R; the transposed rotation of the link where the wrench is given in the base's axes.
    point : ndarray, (3,)
        p, where the force acts, in the link's frame [m].
    wrench : ndarray, (6,)
        (m', f'), moment [N m] and force [N].

    Examples
    --------
    >>> link_wrench(np.eye(3), np.array([1.0, 0.0, 0.0]), np.array([0.0, 0.0, 0.0, 0.0, 2.0, 0.0])).tolist()
    [0.0, 0.0, 2.0, 0.0, 2.0, 0.0]
    """
    force = rotation @ wrench[3:]
    return np.concatenate([rotation @ wrench[:3] + np.cross(point, force), force])


def dead_load(point: Array, wrench: Array) -> Array:
    """Return a wrench about a point of a link, in the base's axes, as the numbers of a dead load, (15,).

    These are the moment m', the force f', and p f'ᵀ row by row; loads on one link add up.

    >>> dead_load(np.array([1.0, 0.0, 0.0]), np.array([0.0, 0.0, 0.0, 0.0, 2.0, 0.0])).tolist()[6:]
    [0.0, 2.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]
    """
    return np.concatenate([wrench, np.outer(point, wrench[3:]).ravel()])


class Wrenches(np.ndarray):
    """Wrenches on all links, (n_links, 6), that know which part of them keeps its direction in space.

    The numbers are those of the moment, in the links' frames. Sums, differences and multiples of wrenches know it too,
    and so do they when they are flattened; whatever else is computed from them is a plain array, and a plain array
    turns with the links.

    Parameters
    ----------
    wrenches : ndarray, (n_links, 6)
        Moment and force on each link, in its frame.
    rows : ndarray, (n_links, 21)
        Of each link the wrench that turns with it (6) and its dead load (15, see `dead_load`).

    Examples
    --------
    >>> row = np.concatenate([np.zeros(6), dead_load(np.zeros(3), np.array([0.0, 0.0, 0.0, 0.0, -9.0, 0.0]))])
    >>> weight = Wrenches(np.array([[0.0, 0.0, 0.0, -9.0, 0.0, 0.0]]), row[None])
    >>> both = 2.0 * weight + np.ones((1, 6))
    >>> both.tolist(), both.rows[0, :12].tolist()
    ([[1.0, 1.0, 1.0, -17.0, 1.0, 1.0]], [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0, -18.0, 0.0])
    """

    rows: Array | None

    def __new__(cls, wrenches: Array, rows: Array) -> Wrenches:
        """Return the wrenches as a signal."""
        made = np.asarray(wrenches).view(cls)
        made.rows = rows
        return made

    def flatten(self, order: Any = "C") -> Any:
        """Return the numbers in one row, row after row, as wrenches."""
        flat = np.asarray(self).flatten(order)
        return flat if self.rows is None or order != "C" else Wrenches(flat, self.rows)

    def __array_finalize__(self, made_from: Any) -> None:
        """Know nothing of what is not said: of slices, and of copies."""
        self.rows = None

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        """Return a plain array or, of a linear function, wrenches."""
        if "out" in options:
            options["out"] = tuple(np.asarray(out) if isinstance(out, Wrenches) else out for out in options["out"])
        found = getattr(ufunc, method)(*(np.asarray(x) if isinstance(x, Wrenches) else x for x in inputs), **options)
        known = any(isinstance(x, Wrenches) and x.rows is not None for x in inputs)
        rows = _combined(ufunc, inputs) if known and method == "__call__" and not options else None
        return found if rows is None else Wrenches(found, rows)


def _combined(ufunc: np.ufunc, inputs: tuple[Any, ...]) -> Array | None:
    """Return the rows of a linear function of wrenches, or None."""
    if ufunc in (np.add, np.subtract, np.positive, np.negative):
        links = next(len(x.rows) for x in inputs if isinstance(x, Wrenches) and x.rows is not None)
        rows = [row for row in (_rows_of(x, links) for x in inputs) if row is not None]
        return ufunc(*rows) if len(rows) == len(inputs) else None
    if ufunc is np.multiply and np.ndim(inputs[0]) == 0:
        inputs = inputs[::-1]
    if ufunc in (np.multiply, np.true_divide) and np.ndim(inputs[1]) == 0:
        return ufunc(inputs[0].rows, inputs[1])
    return None


def _rows_of(x: Any, links: int) -> Array | None:
    if isinstance(x, Wrenches):
        return x.rows
    plain = np.asarray(x)
    return np.pad(plain.reshape(links, 6), ((0, 0), (0, 15))) if plain.size == 6 * links else None


def pulse(t: float, begin: float, end: float, smooth: bool) -> float:
    """Return the height of a pulse of height one at a time: from its begin on, until its end.

    A smooth one is sin² of half a turn, so that it begins and ends without a jump of value or slope; its area is half
    of that of the rectangle.

    >>> [pulse(t, 1.0, 2.0, False) for t in (0.9, 1.0, 1.5, 2.0)]
    [0.0, 1.0, 1.0, 0.0]
    >>> round(float(pulse(1.25, 1.0, 2.0, True)), 12)
    0.5
    """
    height = np.sin(math.pi * (t - begin) / (end - begin)) ** 2 if smooth else 1.0
    return where((t >= begin) & (t < end), height, 0.0)


def stop_torque(
    q: Array, qd: Array, low: Array, high: Array, stiffness: Array, damping: Array, depth: Array | float
) -> Array:
    """Return the torques of spring-damper stops at the limits of joints, which push and never pull.

    With e = q − q_high above, q − q_low below, else 0:

        τ = −(k e + d min(|e|/h, 1) q̇), or 0 where that pulled towards the stop.

    The damper sets in over the depth h, so that the torque does not jump at the touch.

    Parameters
    ----------
    q, qd : ndarray, (m,)
        Position and rate of the joints [rad or m].
    low, high : ndarray, (m,)
        Limits; infinities where there are none.
    stiffness, damping : ndarray, (m,)
        k [N m/rad or N/m] and d [N m s/rad or N s/m].
    depth : float or ndarray, (m,)
        h [rad or m].

    Examples
    --------
    >>> ends = np.array([-1.0]), np.array([1.0]), np.array([100.0]), np.array([5.0])
    >>> stop_torque(np.array([1.5]), np.array([2.0]), *ends, 0.01).tolist()
    [-60.0]
    """
    e = np.where(q > high, q - high, np.where(q < low, q - low, 0.0))
    tau = -(stiffness * e + damping * np.minimum(np.abs(e) / depth, 1.0) * qd)
    return np.where(tau * e < 0.0, tau, 0.0)


def turn_stop_torque(phi: Any, rate: Any, angle: float, stiffness: float, damping: float, depth: float) -> Any:
    """Return the torques, (3,), of a stop at an angle of a rotation vector φ: of `stop_torque` at |φ|, along φ.

    Of the direction φ of a turn Jᵀφ = φ, so that they are a moment of this size about the axis of the turn.

    Examples
    --------
    >>> turn_stop_torque(np.array([0.0, 1.5, 0.0]), np.array([0.0, 2.0, 1.0]), 1.0, 100.0, 5.0, 0.01).tolist()
    [-0.0, -60.0, -0.0]
    """
    square = phi[0] * phi[0] + phi[1] * phi[1] + phi[2] * phi[2]
    length = np.sqrt(np.maximum(square, angle**2))  # no root of zero
    outward = (phi[0] * rate[0] + phi[1] * rate[1] + phi[2] * rate[2]) / length
    e = length - angle
    tau = -(stiffness * e + damping * np.minimum(e / depth, 1.0) * outward)
    return np.where(tau < 0.0, tau / length, 0.0) * phi


def wrap(q: Array, centre: Array, turn: Array) -> Array:
    """Return angles brought into (centre − turn/2, centre + turn/2]; those already there stay as they are.

    Parameters
    ----------
    q : ndarray, (m,)
        Angles [rad].
    centre : ndarray, (m,)
        Middles of the intervals [rad].
    turn : ndarray, (m,)
        2π; infinity for what is not to be wrapped.

    Examples
    --------
    >>> wrap(np.array([4.0, -np.pi, 9.0]), np.zeros(3), np.array([2 * np.pi, 2 * np.pi, np.inf])).round(4).tolist()
    [-2.2832, 3.1416, 9.0]
    """
    away = q - centre
    outside = (away > 0.5 * turn) | (away <= -0.5 * turn)
    finite = np.where(outside, turn, 1.0)
    turns = np.where(outside, np.ceil(away / finite - 0.5), 0.0)
    return np.where(outside, q - turns * finite, q)
