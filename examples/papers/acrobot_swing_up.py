"""Sohl, Bobrow 2001, section 5.2, Figs. 3 to 6: the acrobot swings up, its elbow prescribed and its shoulder free.

The paper shows the motions and prints neither parameters nor costs. Here: uniform rods of 1 m and 1 kg, 3 s, (83) with
c = (100, 10). The guess, the elbow locked, is as poor as the paper's; from it and from random starts near to it.
"""

import math
import sys

from cstormpy.mechanism import library
from cstormpy.optimal import Effort, Problem, Terminal
from cstormpy.optimal.plotting import draw_frames

FIGURES = {-1.0: "Fig. 5", -1.3: "Fig. 6"}


def problem(shoulder, points=16):
    mech = library.acrobot("rods").with_drive(active=["elbow"])
    objective = 100 * Terminal(q={"shoulder": math.pi / 2}) + 10 * Terminal(qd={"shoulder": 0.0}) + Effort()
    return Problem(
        mech, duration=3.0, start=[shoulder, 0.0], end={"elbow": 0.0}, objective=objective, points=points, steps=208
    )


def main(folder=None):
    print("          q1(0)   J of the guess   J found   q1(3 s)   q1'(3 s)")
    for shoulder, figure in FIGURES.items():
        asked = problem(shoulder)
        solution = asked.solve(starts=8, seed=0)
        at, guess = solution.samples, asked.programme().cost(asked.first_guess())
        print(f"{figure:10}{shoulder:<8}{guess:<17.1f}{solution.cost:<10.3f}{at.q[-1, 0]:<10.4f}{at.qd[-1, 0]:.4f}")
        if folder:
            solution.plot(frames=20).savefig(f"{folder}/acrobot_swing_up_{abs(shoulder)}.png")
    if folder:
        from matplotlib.figure import Figure

        drawn = Figure()
        draw_frames(drawn.subplots(), asked.mech, asked.motion().q[::10])
        drawn.savefig(f"{folder}/acrobot_swing_up_guess.png")
    return solution


if __name__ == "__main__":
    main(*sys.argv[1:])
