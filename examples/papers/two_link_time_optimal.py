"""Xiang, Arora, Abdel-Malek 2008, section 6.3, Figs. 7 to 10: an arm from rest to rest as fast as its motors can.

The paper prints T = 0.3934 s with 22 control points a joint and limits at 21 samples. So few let the torque leave its
limits by 3 N m in between; with limits at 201 samples the same control points give an honest motion.
"""

import sys

import numpy as np

from cstormpy.mechanism import library
from cstormpy.optimal import Problem, Time

PRINTED = 0.3934


def problem(points=22, samples=201):
    arm = library.xiang_two_link().with_gravity([0, 0, 0])
    return Problem(
        arm, duration=(0.2, 1.0), start=[0, -2], end=[1, -1], objective=Time(), points=points, samples=samples
    )


def switches(solution):
    """Return the times at which each torque changes its sign."""
    at = solution.at(np.linspace(0.0, solution.duration, 5001))
    return [at.t[1:][np.diff(np.sign(column)) != 0.0].round(4).tolist() for column in at.tau.T]


def main(folder=None):
    print(f"{'':34}T [s]    limit exceeded by   torques change sign at")
    print(f"{'the paper, 22 points, 21 samples':34}{PRINTED:<9}")
    for points, samples in ((22, 21), (22, 201), (40, 201)):
        solution = problem(points, samples).solve()
        excess = max(e.amount for e in solution.excess)
        name = f"{points} points, {samples} samples"
        print(f"{name:34}{solution.duration:<9.5f}{excess:<20.3g}{switches(solution)}")
        if folder and samples == 201:
            solution.plot().savefig(f"{folder}/two_link_time_optimal_{points}.png")
    return solution


if __name__ == "__main__":
    main(*sys.argv[1:])
