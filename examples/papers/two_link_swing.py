"""Sohl, Bobrow 2001, section 5.1, Figs. 1 and 2: an arm from the horizontal to the vertical with the least effort.

The paper prints a cost of 73.57 for the first guess and 9.9 for the motion found, but no parameters of the arm. With
the rods of `library.planar_2r` both numbers are met. The guess alone leads to a poor local
minimum: many starts are made.
"""

import math
import sys

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


def main(folder=None):
    asked = problem()
    solution = asked.solve(starts=24, seed=0)
    print(f"{'':16}paper    here")
    print(f"{'first guess':16}{BEFORE:<9}{asked.programme().cost(asked.first_guess()):.2f}")
    print(f"{'optimised':16}{AFTER:<9}{solution.dense_cost:.2f}")
    if folder:
        from matplotlib.figure import Figure

        figure = Figure()
        draw_frames(figure.subplots(), asked.mech, asked.motion().q[::4])
        figure.savefig(f"{folder}/two_link_swing_guess.png")
        solution.plot().savefig(f"{folder}/two_link_swing.png")
    return solution


if __name__ == "__main__":
    main(*sys.argv[1:])
