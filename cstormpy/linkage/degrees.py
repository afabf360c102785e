"""Angles that were most likely meant in degrees, where radians are expected: said once, with what they would be."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from cstormpy.reporting import notice_once

#: Beyond two turns a round number of half degrees is no angle that a machine begins at, or is stopped at; of more
#: degrees than these nobody thinks.
_TURNS, _HALVES, _MOST = 4.0 * math.pi, 0.5, 720.0


def say_degrees(freedoms: Sequence[Any], names: Sequence[str], angles: Sequence[float], what: str = "q0") -> None:
    """Say which angles of a posture, and limits of joints that turn, look like degrees; in rotation vectors too.

    Parameters
    ----------
    freedoms : sequence of joints of one coordinate
    names : sequence of str
        Those of the coordinates.
    angles : sequence of float
        The coordinates [rad]; NaN where one is free.
    what : str
        What the posture is: that at the start unless said otherwise.
    """
    for freedom, name, angle in zip(freedoms, names, angles, strict=True):
        if not freedom.turns or freedom.slide != 0.0:
            continue
        position = freedom.limits.position if freedom.limits else None
        say_angles(f"joint {name!r}: {what}", (angle,))
        say_angles(f"joint {name!r}: limits", position or ())


def say_angles(what: str, angles: Sequence[float]) -> None:
    """Say that some angles [rad] look like degrees, if one does."""
    if any(map(_looks_like_degrees, angles)):
        given = ", ".join(f"{angle:g}" for angle in angles)
        notice_once(
            f"{what} {given} rad is more than two turns; angles are in radians, and degrees are converted by "
            "np.deg2rad(...)"
        )


def _looks_like_degrees(value: float) -> bool:
    return bool(_TURNS < abs(value) <= _MOST and np.fmod(value, _HALVES) == 0.0)
