"""Choose the length of the acrobot's leg together with its motion: the swing-up then takes less effort.

The leg is a rod of 1 kg, shipped 2 m long. A longer one is harder to swing, a shorter one has less to swing with: the
length is a variable of the search beside the control points of the elbow's motion.
"""

import matplotlib.pyplot as plt
import numpy as np

import cstormpy as cs
from cstormpy.optimal import Effort, Problem, Solution, Stage, Terminal, Tied
from cstormpy.optimal.plotting import draw_frames, draw_torques


def rod(length):
    """Return what the length of a thin rod decides."""
    about = length**2 / 12
    return {"forearm.com[0]": length / 2, "forearm.inertia.yy": about, "forearm.inertia.zz": about}


def draw(solutions):
    figure, axes = plt.subplots(
        2, len(solutions), figsize=(8.0, 8.0), layout="constrained", sharey="row", height_ratios=[2, 1]
    )
    for (frames, torques), (name, found) in zip(axes.T, solutions.items(), strict=True):
        draw_frames(frames, found.mechanism, found.at(np.linspace(0.0, found.duration, 14)).q)
        draw_torques(torques, found.at(np.linspace(0.0, found.duration, 300)))
        frames.set_title(f"{name}: effort {found.cost:.3g} (N m)² s", fontsize="medium")
    return figure


def main(points=16, steps=104, starts=3):
    mech = cs.library.acrobot().with_drive(active=["elbow"])
    there = 200 * Terminal(q={"shoulder": np.pi / 2}) + 20 * Terminal(qd={"shoulder": 0.0})
    problem = Problem(
        mech, duration=3.0, start=[-np.pi / 2, 0.0], end={"elbow": 0.0}, objective=Effort() + there, limits=None,
        points=points, steps=steps, spread=2.0,
    )  # fmt: skip
    shipped = problem.solve(starts=starts, stages=[Stage(), Stage(exact=True)])
    both = problem.replace(design={"leg": Tied((0.5, 2.0, 3.0), rod)}, guess=shipped.motion)
    designed = both.solve(stages=[Stage(), Stage(exact=True)])
    print(designed)
    designed.save("design.json")
    known = Solution.load("design.json", both)
    print(f"leg {known.parameters['leg']:.3f} m: effort {known.cost:.2f} instead of {shipped.cost:.2f}")
    figure = draw({"leg of 2 m": shipped, f"leg of {known.parameters['leg']:.2f} m": known})
    figure.savefig("design.png", dpi=150)
    plt.close(figure)
    return shipped, designed


if __name__ == "__main__":
    main()
