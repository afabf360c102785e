"""A motion that was found, at any times: between the samples at which it was sought."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cstormpy.loops.dynamics import closed_hybrid
from cstormpy.optimal.samples import Array, Samples
from cstormpy.optimal.transcription import Indices
from cstormpy.trajectory import BSpline

if TYPE_CHECKING:
    from cstormpy.optimal.problem import Problem


def dense(problem: Problem, spline: BSpline, nodes: Samples, times: Array) -> Samples:
    """Return a motion at times (N,) from 0 to T.

    Parameters
    ----------
    problem : Problem
    spline : BSpline
        The joints on splines.
    nodes : Samples
        The motion at its even samples, between which the joints that were integrated are interpolated.
    times : ndarray, (N,)
    """
    mech, designed = nodes.mech, nodes.designed
    n, curves = mech.n, spline.evaluate(times, order=3)
    loads = [load for _, load in problem.loads]
    base = None if problem.base is None else problem.base.pair(times)
    if problem.inverse:
        q, qd, qdd, qddd = (curve[:, :n] for curve in curves)
        tau, multipliers = mech.tree.inverse_dynamics(q, qd, qdd, wrench=loads, base=base), np.zeros((len(times), 0))
        if problem.setup.loops is not None:
            shared = problem.setup.loops.shared(q, tau, curves[2][:, n:], mech)
            tau, multipliers = shared.tau, shared.multipliers
        channels, T = (q, qd, qdd, tau, qddd), spline.duration
        even, sizes = np.zeros(len(times)), problem.setup.sizes
        return Samples(mech, T, even, times, *channels, sizes, designed, multipliers)
    steps, T = len(nodes) - 1, nodes.duration
    place = times * (steps / T)
    k = np.clip(place.astype(np.intp), 0, steps - 1)
    q, qd = _quintic(nodes, k, place - k, T / steps)
    u, jerk = np.zeros((len(times), n)), np.zeros((len(times), n))
    for c, j in enumerate(problem.driven):
        if mech.active_mask[j]:
            q[:, j], qd[:, j], u[:, j], jerk[:, j] = (curve[:, c] for curve in curves)
        else:
            u[:, j] = curves[0][:, c]
    even, sizes = np.zeros(len(times)), problem.setup.sizes
    if mech.loops:  # between the nodes they may be a little more open
        closed = closed_hybrid(mech, q, qd, u, loads, check=False)
        return Samples(mech, T, even, times, q, qd, closed.qdd, closed.tau, jerk, sizes, designed, closed.multipliers)
    r = mech.hybrid_dynamics(q, qd, u, wrench=loads, base=base)
    return Samples(mech, T, even, times, q, qd, r.qdd, r.tau, jerk, sizes, designed)


def _quintic(at: Samples, k: Indices, s: Array, h: float) -> tuple[Array, Array]:
    """Return positions and rates of the quintics through steps k and k + 1, at the part s of a step."""
    s = s[:, None]
    y0, v0, a0 = at.q[k], at.qd[k] * h, at.qdd[k] * h * h
    y1, v1, a1 = at.q[k + 1], at.qd[k + 1] * h, at.qdd[k + 1] * h * h
    d = y1 - y0 - v0 - 0.5 * a0
    e, f = v1 - v0 - a0, a1 - a0
    c3, c4, c5 = 10 * d - 4 * e + 0.5 * f, -15 * d + 7 * e - f, 6 * d - 3 * e + 0.5 * f
    q = y0 + s * (v0 + s * (0.5 * a0 + s * (c3 + s * (c4 + s * c5))))
    rate = v0 + s * (a0 + s * (3 * c3 + s * (4 * c4 + s * 5 * c5)))
    return q, rate / h
