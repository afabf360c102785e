"""Sohl, Bobrow 2001, section 5.3, Figs. 7 to 10: the acrobot with two legs, and two of its ways to swing up.

The paper shows two local minima from two guesses and prints no costs. Here: uniform rods of 1 m and 1 kg, 3 s, (83)
with c = (100, 10), and several random starts, of which the best two different ones are drawn.

    python branched_acrobot_swing_up.py [folder for the figures]
"""

import math
import sys
from pathlib import Path

from matplotlib.figure import Figure

from cstormpy.mechanism import library
from cstormpy.optimal import Effort, Problem, Terminal
from cstormpy.optimal.plotting import draw_frames, draw_joints, draw_mechanism


def problem(points=12):
    mech = library.branched_acrobot().with_drive(active=["left_hip", "right_hip"])
    objective = 100 * Terminal(q={"base": math.pi / 2}) + 10 * Terminal(qd={"base": 0.0}) + Effort()
    return Problem(
        mech,
        duration=3.0,
        start=[-1.0, 0.0, 0.0],
        end={"left_hip": 0.0, "right_hip": 0.0},
        objective=objective,
        points=points,
    )


def draw_path(asked, x, title, file):
    """Draw the motion that the variables x make: the acrobot at equal intervals of time, and its joints over time."""
    figure = Figure(figsize=(9, 4.5), layout="constrained")
    path, joints = figure.subplots(1, 2)
    at = asked.motion(x)
    draw_frames(path, asked.mech, at.q[::21])
    draw_joints(joints, at)
    path.set_title(f"every {at.t[21]:.3f} s, light to dark", fontsize="medium")
    figure.suptitle(title)
    figure.savefig(file, dpi=150)


def draw_acrobot(mech, file):
    figure = Figure(figsize=(5, 5), layout="constrained")
    axes = figure.subplots()
    draw_mechanism(axes, mech, [-1.0, 0.5, -0.7])
    axes.set_title("Fig. 7: the branched acrobot", fontsize="medium")
    figure.savefig(file, dpi=150)


def main(folder="."):
    Path(folder).mkdir(parents=True, exist_ok=True)
    asked = problem()
    guess = asked.first_guess()
    before = asked.programme().cost(guess)
    solution = asked.solve(starts=10, seed=0)
    ranked = sorted((o for o in solution.outcomes if o.converged), key=lambda o: o.cost)
    ways = [ranked[0], next((o for o in ranked if o.cost > 1.02 * ranked[0].cost), ranked[-1])]
    print("Sohl, Bobrow 2001, (83), q1(0) = -1; the paper prints no costs")
    print(f"{'':10}{'J':11}{'q1(3 s)':10}q1'(3 s)")
    draw_acrobot(asked.mech, f"{folder}/sohl_bobrow_fig_7.png")
    shown = [(8, "initial path", guess, before)]
    shown += [(number, "a local minimum", way.x, way.cost) for number, way in zip((9, 10), ways, strict=True)]
    for number, what, x, cost in shown:
        at = asked.motion(x)
        print(f"Fig. {number:<5}{cost:<11.3f}{at.q[-1, 0]:<10.4f}{at.qd[-1, 0]:.4f}")
        draw_path(asked, x, f"Fig. {number}: {what}, J = {cost:.2f}", f"{folder}/sohl_bobrow_fig_{number}.png")
    return solution


if __name__ == "__main__":
    main(*sys.argv[1:])
