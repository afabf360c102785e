"""The spline law: swing up along an optimised motion with time-varying LQR, then balance with LQR.

The motion is computed once for a mechanism and kept in the folder of the compiled kernels, as JSON with what made it.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cstormpy import json_files
from cstormpy.control import LQR, TVLQR, Law, SwingUp
from cstormpy.control.law import Target, mechanism_of
from cstormpy.errors import CstormError, FileFormatError, InvalidValue
from cstormpy.mechanism import Mechanism, checks
from cstormpy.optimal.problem import Problem
from cstormpy.optimal.solution import Solution
from cstormpy.optimal.solving import Stage
from cstormpy.optimal.terms import Effort, Terminal
from cstormpy.reporting import notice
from cstormpy.trajectory import BSpline

Array = NDArray[np.float64]

__all__ = ["SplineSwingUp", "swing_up_motion", "swing_up_problem"]

SHARE = 0.8
"""Part of the largest torque that the motion may use; the rest is left to the feedback."""

PENALTIES = 200.0, 20.0
"""Weights of position and rate at the end, while they are penalties."""

STARTS, COARSE = 4, 104
"""Starts of the search, with this many steps at least; the best are finished with more."""

VERSION = 1
"""Of what is kept; another one is computed anew."""


def swing_up_problem(
    mech: Mechanism, goal: Array, start: Array, duration: float, limit: Array | None, points: int
) -> Problem:
    """Return the problem of least effort from rest to rest in a goal: motors move along splines, the rest follows."""
    driven = mech.with_drive(active=mech.actuated)
    others = [k for k in range(mech.n) if not mech.actuated_mask[k]]
    q = {mech.names[k]: float(goal[k]) for k in others}
    at_end = PENALTIES[0] * Terminal(q=q) + PENALTIES[1] * Terminal(qd=dict.fromkeys(q, 0.0)) if q else 0
    limits: dict[str, Any] = {}
    if limit is not None:
        limits["torque"] = dict(zip(mech.actuated, (SHARE * limit).tolist(), strict=True))
    return Problem(
        driven,
        duration=duration,
        start=start,
        end={name: float(goal[mech.joint_index(name)]) for name in mech.actuated},
        objective=Effort() + at_end,
        limits=limits,
        points=points,
        spread=2.0,
    )


def swing_up_motion(
    mech: Mechanism,
    goal: ArrayLike | None = None,
    start: ArrayLike | None = None,
    duration: float = 3.0,
    limit: ArrayLike | None = 25.0,
    points: int = 16,
    keep: bool = True,
) -> BSpline:
    """Return a motion of all joints, of little effort, from rest to rest in an equilibrium; on disk if it was there.

    Parameters
    ----------
    mech : Mechanism or str
    goal, start : array_like, (n,), optional
        The highest posture, and its mirror image, which hangs, unless given.
    duration : float
        [s].
    limit : float or array_like (n_a,), optional
        Largest torques of the motors, of which the motion uses 80 %.
    points : int
        Control points of each motor's spline.
    keep : bool
        Whether to look for it on disk, and to keep it there.

    Raises
    ------
    InvalidValue
        If none was found; a longer duration or a greater limit may help.
    """
    mech = mechanism_of(mech, "spline")
    made_by = _made_by(mech, goal, start, duration, limit, points)
    path = _path(made_by) if keep else None
    found = None if path is None else _read(path, made_by)
    return found if found is not None else _compute(mech, made_by, path)


def _made_by(mech: Mechanism, goal: Any, start: Any, duration: Any, limit: Any, points: int) -> dict[str, Any]:
    """Return all that the motion depends on, as JSON has it."""
    from cstormpy.control import upright

    wanted = upright(mech) if goal is None else checks.array(goal, (mech.n,), "goal")
    begin = _hanging(mech, wanted) if start is None else checks.array(start, (mech.n,), "start")
    most = None if limit is None else np.broadcast_to(np.asarray(limit, dtype=np.float64), (len(mech.actuated),))
    return {
        "version": VERSION,
        "mechanism": mech.with_drive(active=()).to_dict(),
        "goal": wanted.tolist(),
        "start": begin.tolist(),
        "duration": checks.positive(duration, "duration"),
        "limit": None if most is None else most.tolist(),
        "points": checks.count(points, "points"),
    }


def _hanging(mech: Mechanism, goal: Array) -> Array:
    """Return the posture opposite to the goal: joints without motor turned by half a turn."""
    turned = np.where(mech.actuated_mask, goal, goal - math.pi)
    return np.asarray(turned)


def _compute(mech: Mechanism, made_by: Mapping[str, Any], path: Path | None) -> BSpline:
    notice("computing the swing-up motion of the spline law (some seconds, once)")
    goal, start = np.array(made_by["goal"]), np.array(made_by["start"])
    limit = None if made_by["limit"] is None else np.array(made_by["limit"])
    problem = swing_up_problem(mech, goal, start, made_by["duration"], limit, made_by["points"])
    segments = problem.options.points - problem.options.degree
    coarse = {"steps": 2 * segments * math.ceil(COARSE / (2 * segments))}
    stages = [Stage(options=coarse), Stage(options=coarse, exact=True), Stage(exact=True)]
    solution = problem.solve(starts=STARTS, keep=2, stages=stages, progress=False)
    if not solution.feasible:
        raise InvalidValue(
            f"spline: no motion of {made_by['duration']:g} s reaches the goal within the limits of torque "
            f"({solution.reason}); give another duration= or limit="
        )
    motion = solution.motion
    if path is not None:
        _keep(path, made_by, solution, motion)
    return motion


def _folder() -> Path:
    """Return where motions are kept; OSError if this user has no such place."""
    from cstormpy.kernels.compiling import cache_folder

    return cache_folder().parent / "motions"


def _path(made_by: Mapping[str, Any]) -> Path | None:
    digest = hashlib.sha256(json_files.json_text(dict(made_by)).encode()).hexdigest()[:16]
    try:
        return _folder() / f"swing-up-{digest}.json"
    except OSError:  # a user without such a place
        return None


def _read(path: Path, made_by: Mapping[str, Any]) -> BSpline | None:
    """Return a motion that is kept; None if there is none, or it was made of other things."""

    def make(content: Any) -> BSpline:
        if not isinstance(content, dict) or content.get("made_by") != dict(made_by):
            raise FileFormatError("made_by: is of another motion")
        return BSpline.from_dict(content["motion"])

    try:
        return json_files.read(path, make)
    except (OSError, CstormError, KeyError):
        return None


def _keep(path: Path, made_by: Mapping[str, Any], solution: Solution, motion: BSpline) -> None:
    result = {
        "cost": solution.cost,
        "violation": solution.violation,
        "reason": solution.reason,
        "solver": solution.solver,
        "iterations": solution.iterations,
    }
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        json_files.write(path, {"made_by": dict(made_by), "result": result, "motion": motion.to_dict()})
    except OSError as error:
        notice(f"the swing-up motion can not be kept in {path.parent}: {error.strerror}")


class _Along(Law):
    """Time-varying LQR along a motion that begins when the law does; the motion is computed at its first use."""

    def __init__(self, mech: Mechanism, settings: Mapping[str, Any], balance: LQR, limit: ArrayLike | None) -> None:
        super().__init__(mech, limit)
        self.settings, self.balance = dict(settings), balance
        self._begin = 0.0
        self._follow: TVLQR | None = None

    @property
    def follow(self) -> TVLQR:
        """The law along the motion."""
        if self._follow is None:
            motion = swing_up_motion(self.mech, goal=self.balance.goal, **self.settings)
            balance = self.balance
            self._follow = TVLQR(self.mech, motion, Q=balance.Q, R=balance.R, final=balance, limit=self.limit)
        return self._follow

    def torque(self, t: float, q: Array, qd: Array, reference: Target | None = None) -> Array:
        """Return the torques, (n_a,); after the end of the motion those that hold it."""
        return self.follow.torque(t - self._begin + self.follow.t0, q, qd)

    def start(self, t: float, q: Array, qd: Array) -> None:
        """Begin the motion now."""
        self._begin = t
        _ = self.follow


class SplineSwingUp(SwingUp):
    """Swing up along an optimised spline, τ = τ_r(t) − K(t) e, then balance by LQR.

    The regulator takes over where its V = eᵀ S e falls below the threshold, as it does along the end of the motion.

    Parameters
    ----------
    mech : Mechanism or str
    goal : array_like, (n,), optional
        The equilibrium to come to; the highest posture unless given.
    duration : float
        Of the motion [s].
    points : int
        Control points of each motor's spline.
    threshold, release : float
        As for `SwingUp`.
    limit : float or array_like, (n_a,)
        Largest torques; the motion uses 80 % of them.
    Q, R
        Weights of both regulators, as for `LQR`.

    Attributes
    ----------
    motion : BSpline
        The motion of all joints.
    """

    def __init__(
        self,
        mech: Mechanism,
        goal: ArrayLike | None = None,
        duration: float = 3.0,
        points: int = 16,
        threshold: float = 50.0,
        release: float | None = None,
        limit: ArrayLike | None = 25.0,
        Q: ArrayLike | None = None,
        R: ArrayLike = 1.0,
    ) -> None:
        balance = LQR(mech, goal, Q, R, limit)
        settings = {"duration": checks.positive(duration, "duration"), "points": points, "limit": limit}
        loose = 1e6 * checks.positive(threshold, "threshold") if release is None else release
        super().__init__(_Along(balance.mech, settings, balance, limit), balance, threshold, loose)

    @property
    def motion(self) -> BSpline:
        """The motion of all joints that is followed; its time begins with the law."""
        assert isinstance(self.pump, _Along), "made so"
        return swing_up_motion(self.mech, goal=self.balance.goal, **self.pump.settings)
