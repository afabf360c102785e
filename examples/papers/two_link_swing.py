"""Sohl, Bobrow 2001, section 5.1, Figs. 1 and 2: an arm from the horizontal to the vertical with the least effort.

The paper prints a cost of 73.57 for the first guess and 9.9 for the motion found, but no parameters of the arm. With
the rods of `library.planar_2r` both numbers are met. The guess alone leads to a poor local minimum: many starts are
made.

    python two_link_swing.py [folder for the figures]
"""

import math
import sys
from pathlib import Path

from matplotlib.figure import Figure

from cstormpy.mechanism import library
from cstormpy.optimal import Effort, Problem
from cstormpy.optimal.plotting import draw_frames

BEFORE, AFTER = 73.57, 9.9


def problem(points=20):
    return Problem(
        library.planar_2r(),
        duration=1.308,
        start=[0, 0],
        end=[math.pi / 2, 0],
        objective=Effort(),
        points=points,
        samples=41,
    )


def draw_path(asked, x, title, file):
    """Draw the arm at equal intervals of time along the motion that the variables x make."""
    figure = Figure(figsize=(5, 5), layout="constrained")
    axes = figure.subplots()
    at = asked.motion(x)
    draw_frames(axes, asked.mech, at.q[::2])
    axes.set_title(f"{title}\nevery {at.t[2]:.3f} s, light to dark", fontsize="medium")
    figure.savefig(file, dpi=150)


def main(folder="."):
    Path(folder).mkdir(parents=True, exist_ok=True)
    asked = problem()
    guess = asked.first_guess()
    before = asked.programme().cost(guess)
    solution = asked.solve(starts=24, seed=0)
    after = solution.dense_cost
    print("Sohl, Bobrow 2001, (82)     paper    here")
    print(f"{'Fig. 1, J of the guess':28}{BEFORE:<9}{before:.2f}")
    print(f"{'Fig. 2, J of the motion':28}{AFTER:<9}{after:.2f}")
    draw_path(asked, guess, f"Fig. 1: initial path, J = {before:.2f}", f"{folder}/sohl_bobrow_fig_1.png")
    draw_path(asked, solution.x, f"Fig. 2: final path, J = {after:.2f}", f"{folder}/sohl_bobrow_fig_2.png")
    solution.plot().savefig(f"{folder}/two_link_swing.png", dpi=120)
    return solution


if __name__ == "__main__":
    main(*sys.argv[1:])
