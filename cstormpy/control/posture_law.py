"""Base of the laws that take the error of the state from a posture, where there are ball joints."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cstormpy.arrays import Array
from cstormpy.control.goal import wrapped
from cstormpy.control.law import Law, Target
from cstormpy.control.prepared import placed
from cstormpy.linkage.joints.ball import other_vector


class PostureLaw(Law):
    """A law that takes the error of the state from a posture, by the rotation vectors that are nearest to it."""

    def torque(self, t: float, q: Array, qd: Array, reference: Target | None = None) -> Array:
        """Return the torques, (n_a,); see `Law.torque`."""
        balls = self._balls()
        if not balls:
            return self._torque(t, q, qd, reference)
        q, qd, turns = brought_near(balls, q, qd, self._posture(t, reference))
        places = [self.motors.index(self.mech.names[k]) if self.mech.actuated_mask[k] else -1 for k in balls]
        return turned_back(places, self._torque(t, q, qd, reference), turns)

    def _balls(self) -> Sequence[int]:
        """Return where the rotation vectors begin in q that the law takes errors of."""
        return self.mech.ball_starts

    def _posture(self, t: float, reference: Target | None) -> Array:
        """Return the posture now, (n,)."""
        raise NotImplementedError

    def _torque(self, t: float, q: Array, qd: Array, reference: Target | None) -> Array:
        """Return the torques at a state by the rotation vectors that are nearest to those of the posture."""
        raise NotImplementedError


def brought_near(balls: Sequence[int], q: Array, qd: Array, posture: Array) -> tuple[Array, Array, list[Array]]:
    """Return q and q̇ by the rotation vectors that are nearest to those of a posture, and ∂rate/∂(rate given) of each.

    >>> q, qd = np.array([0.0, 0.0, -3.0]), np.array([0.0, 0.0, 1.0])
    >>> brought_near([0], q, qd, np.array([0.0, 0.0, 3.1]))[0].round(4).tolist()
    [0.0, 0.0, 3.2832]
    """
    if not balls:
        return q, qd, []
    q, qd, turns = 1.0 * q, 1.0 * qd, []  # copies that take fractions
    for first in balls:
        at = slice(first, first + 3)
        q[at], qd[at], turn = _nearest(q[at], qd[at], posture[at])
        turns.append(turn)
    return q, qd, turns


def errors_from(posture: Array, q: Array, qd: Array, turn: Array, balls: Sequence[int]) -> tuple[Array, Array]:
    """Return how far states (N, n), (N, n) are from rest in a posture, each turn taken by the shorter way.

    What brings a coordinate to the same place again stands in `turn`, as `periods` gives it.

    >>> q, qd = np.array([[6.0]]), np.array([[0.5]])
    >>> errors_from(np.zeros(1), q, qd, np.array([2.0 * np.pi]), ())[0].round(4).tolist()
    [[-0.2832]]
    """
    if balls and len(q):
        q, qd = map(
            np.array, zip(*(brought_near(balls, *row, posture)[:2] for row in zip(q, qd, strict=True)), strict=True)
        )
    per_turn = np.divide(1.0, turn, out=np.zeros_like(turn), where=turn > 0.0)
    return wrapped(q - posture, turn, per_turn), qd


def turned_back(places: Sequence[int], tau: Array, turns: Sequence[Array]) -> Array:
    """Return torques, (n_a,), in the coordinates given to `brought_near`; −1 is the place of a ball without motor."""
    for k, turn in zip(places, turns, strict=True):
        if k >= 0:
            tau = placed(len(tau), (slice(None), tau), (slice(k, k + 3), turn.T @ tau[k : k + 3]))
    return tau


def _nearest(phi: Array, rate: Array, wanted: Array) -> tuple[Array, Array, Array]:
    """Return the rotation vector of the same turn that is nearest to another one, its rate, and ∂rate/∂(rate given).

    A run exchanges vectors of half a turn for the opposite ones, where a law must not turn back.
    """
    other, turned, slopes, there = other_vector(phi, rate)
    off, better = phi - wanted, other - wanted
    moves = there & (better @ better < off @ off)
    return np.where(moves, other, phi), np.where(moves, turned, rate), np.where(moves, slopes[:3, :3], np.eye(3))
