"""Sohl, Bobrow 2001, section 5.2, Figs. 3 to 6: the acrobot swings up, its elbow prescribed and its shoulder free.

The paper shows the motions and prints neither parameters nor costs. Here: uniform rods of 1 m and 1 kg, 3 s, (83) with
c = (100, 10). The guess, the elbow locked, is as poor as the paper's; from it and from random starts near to it.

    python acrobot_swing_up.py [folder for the figures]
"""

import math
import sys
from pathlib import Path

from matplotlib.figure import Figure

from cstormpy.mechanism import library
from cstormpy.optimal import Effort, Problem, Terminal
from cstormpy.optimal.plotting import draw_frames, draw_mechanism

FIGURES = {-1.0: 5, -1.3: 6}


def problem(shoulder, points=16):
    mech = library.acrobot("rods").with_drive(active=["elbow"])
    objective = 100 * Terminal(q={"shoulder": math.pi / 2}) + 10 * Terminal(qd={"shoulder": 0.0}) + Effort()
    return Problem(mech, duration=3.0, start=[shoulder, 0.0], end={"elbow": 0.0}, objective=objective, points=points)


def draw_path(asked, x, title, file):
    """Draw the acrobot at equal intervals of time along the motion that the variables x make."""
    figure = Figure(figsize=(5, 5), layout="constrained")
    axes = figure.subplots()
    at = asked.motion(x)
    draw_frames(axes, asked.mech, at.q[::20])
    axes.set_title(f"{title}\nevery {at.t[20]:.3f} s, light to dark", fontsize="medium")
    figure.savefig(file, dpi=150)


def draw_acrobot(mech, file):
    figure = Figure(figsize=(5, 5), layout="constrained")
    axes = figure.subplots()
    draw_mechanism(axes, mech, [-1.0, 0.6])
    axes.set_title("Fig. 3: the acrobot, its shoulder without a motor", fontsize="medium")
    figure.savefig(file, dpi=150)


def main(folder="."):
    Path(folder).mkdir(parents=True, exist_ok=True)
    print("Sohl, Bobrow 2001, (83); the paper prints q1(0) only")
    print(f"{'':8}{'q1(0)':8}{'J of the guess':17}{'J found':10}{'q1(3 s)':10}q1'(3 s)")
    for shoulder, number in FIGURES.items():
        asked = problem(shoulder)
        guess = asked.first_guess()
        before = asked.programme().cost(guess)
        solution = asked.solve(starts=16, seed=0)
        end = solution.samples
        comes = f"{end.q[-1, 0]:<10.4f}{end.qd[-1, 0]:.4f}"
        print(f"Fig. {number:<3}{shoulder:<8}{before:<17.1f}{solution.cost:<10.3f}{comes}")
        if number == 5:
            draw_acrobot(asked.mech, f"{folder}/sohl_bobrow_fig_3.png")
            draw_path(asked, guess, f"Fig. 4: initial path, J = {before:.1f}", f"{folder}/sohl_bobrow_fig_4.png")
        title = f"Fig. {number}: q1(0) = {shoulder}, J = {solution.cost:.2f}"
        draw_path(asked, solution.x, title, f"{folder}/sohl_bobrow_fig_{number}.png")
        solution.plot(frames=27).savefig(f"{folder}/acrobot_swing_up_{abs(shoulder)}.png", dpi=120)
    return solution


if __name__ == "__main__":
    main(*sys.argv[1:])
