"""Xiang, Arora, Abdel-Malek 2008, section 6.3, Figs. 7 to 10: an arm from rest to rest as fast as its motors can.

The paper prints T = 0.3934 s with 22 control points a joint and limits at 21 samples. So few let the torque leave its
limits by 3 N m in between; with limits at 201 samples the same control points give an honest motion, which is drawn.

    python two_link_time_optimal.py [folder for the figures]
"""

import sys
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from cstormpy.mechanism import library
from cstormpy.optimal import Problem, Time
from cstormpy.optimal.plotting import draw_frames, draw_history, draw_joints, draw_torques

PRINTED, LITERATURE = 0.3934, (0.3945, 0.394)
SECONDS = 1.07
LIMIT = 0.391855  # bang-bang, by multiple shooting with 800 intervals


def problem(points=22, samples=201):
    arm = library.xiang_two_link().with_gravity([0, 0, 0])
    return Problem(
        arm, duration=(0.2, 1.0), start=[0, -2], end=[1, -1], objective=Time(), points=points, samples=samples
    )


def switches(solution):
    """Return the times at which each torque changes its sign."""
    at = solution.at(np.linspace(0.0, solution.duration, 5001))
    return [at.t[1:][np.diff(np.sign(column)) != 0.0].round(4).tolist() for column in at.tau.T]


def draw_figures(solution, folder):
    """Save the paper's figures, one file each."""
    at = solution.at(np.linspace(0.0, solution.duration, 600))
    frames = solution.at(np.linspace(0.0, solution.duration, 21))
    drawn = {
        7: ("joint angles", lambda axes: draw_joints(axes, at)),
        8: ("joint torques", lambda axes: draw_torques(axes, at, solution.problem.limits)),
        9: (f"motion, every {frames.t[1]:.4f} s", lambda axes: draw_frames(axes, solution.problem.mech, frames.q)),
        10: ("cost by iteration", lambda axes: draw_history(axes, [cost for cost, _ in solution.history])),
    }
    for number, (what, draw) in drawn.items():
        figure = Figure(figsize=(5.5, 4.2), layout="constrained")
        axes = figure.subplots()
        draw(axes)
        if number == 10:
            axes.set(ylabel="T [s]")
        axes.set_title(f"Fig. {number}: {what}, T = {solution.duration:.4f} s", fontsize="medium")
        figure.savefig(f"{folder}/xiang_fig_{number}.png", dpi=150)


def main(folder="."):
    Path(folder).mkdir(parents=True, exist_ok=True)
    print("Xiang, Arora, Abdel-Malek 2008, example 1")
    print(f"{'':34}{'T [s]':10}{'limit exceeded by':20}{'solved in':13}torques change sign at")
    print(f"{'paper, 22 points, 21 samples':34}{PRINTED:<10}{'not printed':20}{f'{SECONDS} s':13}")
    print(f"{'literature, as the paper cites it':34}{LITERATURE[0]}, {LITERATURE[1]}")
    for points, samples in ((22, 21), (22, 201), (40, 201)):
        asked = problem(points, samples)
        refine = samples > 21  # as the paper asked its limits
        asked.solve(refine=refine)  # the first time compiles
        solution = asked.solve(refine=refine)
        excess = f"{max(e.amount for e in solution.excess):.3g} N m"
        seconds = f"{1e3 * solution.seconds:.0f} ms"
        name = f"here, {points} points, {samples} samples"
        print(f"{name:34}{solution.duration:<10.5f}{excess:20}{seconds:13}{switches(solution)}")
        if (points, samples) == (22, 201):
            draw_figures(solution, folder)
            solution.plot().savefig(f"{folder}/two_link_time_optimal.png", dpi=120)
    print(f"{'the limit of many points':34}{LIMIT:<30}{'':13}[[0.1959], [0.0456, 0.2351]]")
    return solution


if __name__ == "__main__":
    main(*sys.argv[1:])
