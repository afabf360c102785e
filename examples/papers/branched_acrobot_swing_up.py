"""Sohl, Bobrow 2001, section 5.3, Figs. 7 to 10: the acrobot with two legs, and two of its ways to swing up.

The paper shows two local minima from two guesses and prints no costs. Here: uniform rods of 1 m and 1 kg, 3 s, (83)
with c = (100, 10), and several random starts, of which the best two different ones are drawn.
"""

import math
import sys

from cstormpy.mechanism import library
from cstormpy.optimal import Effort, Problem, Terminal
from cstormpy.optimal.plotting import draw_frames


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
        steps=216,
    )


def main(folder=None):
    asked = problem()
    solution = asked.solve(starts=10, seed=0)
    ranked = sorted((o for o in solution.outcomes if o.converged), key=lambda o: o.cost)
    ways = [ranked[0], next((o for o in ranked if o.cost > 1.02 * ranked[0].cost), ranked[-1])]
    print(f"first guess: J = {asked.programme().cost(asked.first_guess()):.1f}")
    for figure, way in zip(("Fig. 9 ", "Fig. 10"), ways, strict=True):
        at = asked.motion(way.x)
        print(f"{figure}: J = {way.cost:.3f}, ends at q1 = {at.q[-1, 0]:.3f} rad, q1' = {at.qd[-1, 0]:.3f} rad/s")
    if folder:
        from matplotlib.figure import Figure

        drawn = Figure(figsize=(12, 4))
        for axes, x in zip(drawn.subplots(1, 3), (asked.first_guess(), ways[0].x, ways[1].x), strict=True):
            draw_frames(axes, asked.mech, asked.motion(x).q[::12])
        drawn.savefig(f"{folder}/branched_acrobot_swing_up.png")
    return solution


if __name__ == "__main__":
    main(*sys.argv[1:])
