"""Draw the region of attraction: the postures from which the acrobot's regulator brings it upright.

A sweep runs the ready diagram from each point of a grid over two coordinates of the start, here the angles of shoulder
and elbow, and keeps how far from upright each run ends. The motor's limit makes the region small; raise it and see.
"""

import math

import numpy as np

import cstormpy as cs

TOLERANCE = 0.05


def distance(out):
    """Return the norm of (q − upright, q̇) at the end, angles within half a turn."""
    q, qd = out.x[-1, :2] - (math.pi / 2, 0.0), out.x[-1, 2:4]
    q -= 2 * math.pi * np.rint(q / (2 * math.pi))
    return float(np.linalg.norm([*q, *qd]))


def measure(out):
    end = distance(out)
    return {"caught": end < TOLERANCE, "distance": end}


def main(points=51, T=5.0, limit=25.0):
    sim = cs.Simulation()
    grid = {
        "plant.shoulder.q": math.pi / 2 + np.linspace(-0.5, 0.5, points),
        "plant.elbow.q": np.linspace(-1.2, 1.2, points),
    }
    acrobot = cs.diagrams.load("acrobot")
    found = sim.sweep(acrobot, grid, measure, T=T, controller="lqr", kick=False, limit=limit)
    print(found)
    print(f"caught from {100 * found['caught'].mean():.1f} % of {found.done.sum()} starts")
    labels = {
        "plant.shoulder.q": "shoulder at the start [rad]",
        "plant.elbow.q": "elbow at the start [rad]",
        "caught": f"upright at rest after {T:g} s",
    }
    figure = found.plot("caught", labels=labels)
    figure.axes[0].plot(math.pi / 2, 0.0, "o", color="white", markeredgecolor="black")
    figure.suptitle(f"Acrobot's LQR with {limit:g} N m: region of attraction")
    figure.savefig("region_of_attraction.png", dpi=120)
    return found


if __name__ == "__main__":
    main()
