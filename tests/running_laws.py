"""Runs of a mechanism under a law, by the classical Runge-Kutta method with a fixed step."""

from __future__ import annotations

import numpy as np


def run(mech, law, x0, duration, step=0.002, push=None):
    """Return states (N + 1, 2n) and phases (N + 1,); `push(t)` is added to the law's torque.

    Phases change between steps, where the law's margin is no longer positive.
    """
    n, evaluate = mech.n, mech.with_drive(active=()).hybrid_evaluator()
    motors = np.flatnonzero(mech.actuated_mask)

    def rate(t, x):
        q, qd = x[:n], x[n:]
        u = np.zeros(n)
        u[motors] = law(t, q, qd) if push is None else law(t, q, qd) + push(t)
        return np.concatenate((qd, evaluate(q, qd, u)))

    count = round(duration / step)
    x, half = np.array(x0, dtype=float), 0.5 * step
    states, phases = np.empty((count + 1, 2 * n)), np.empty(count + 1, dtype=int)
    law.start(0.0, x[:n], x[n:])
    states[0], phases[0] = x, law.mode
    for k in range(count):
        t = k * step
        k1 = rate(t, x)
        k2 = rate(t + half, x + half * k1)
        k3 = rate(t + half, x + half * k2)
        k4 = rate(t + step, x + step * k3)
        x = x + (step / 6.0) * (k1 + 2.0 * (k2 + k3) + k4)
        margin = law.margin(t + step, x[:n], x[n:])
        if margin is not None and margin <= 0.0:
            law.switch(t + step, x[:n], x[n:])
        states[k + 1], phases[k + 1] = x, law.mode
    return states, phases


def time_to_balance(states, goal, step=0.002, within=0.05):
    """Return the time from which on the norm of (wrapped error of q, q̇) stays small, or infinity."""
    n = len(goal)
    error = states[:, :n] - goal
    error -= 2 * np.pi * np.rint(error / (2 * np.pi))
    late = np.flatnonzero(np.hypot(np.linalg.norm(error, axis=1), np.linalg.norm(states[:, n:], axis=1)) >= within)
    if not len(late):
        return 0.0
    return np.inf if late[-1] == len(states) - 1 else float(late[-1] + 1) * step
