"""Xiang, Arora, Abdel-Malek 2008, section 6.4, Figs. 11 to 14: lift a load of 10 N with a mixture of time and effort.

The paper prints T = 0.520 s. It integrates the motion anew from the torques found, with another program; here a
diagram does so. Its Fig. 14 compares the recursive derivatives of the torques at the optimum with the closed form, (54)
to (65); so does the figure here.

    python two_link_lifting.py [folder for the figures]
"""

import sys
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

import cstormpy as cs
from cstormpy.mechanism import library
from cstormpy.optimal import Load, Mixed, Problem
from cstormpy.optimal.plotting import draw_frames, draw_joints, draw_torques

PRINTED, SECONDS = 0.520, 2.44
LENGTH, HALF, MASS, INERTIA, G, FORCE = 0.4, 0.2, 0.5, 0.1, 9.8062, 10.0
NAMES = (("θ1", "θ2"), ("θ1'", "θ2'"), ("θ1''", "θ2''"))
UNITS = ("N m/rad", "N m s/rad", "N m s²/rad")


def problem(points=22, samples=201):
    return Problem(
        library.xiang_two_link(),
        duration=(0.2, 1.0),
        start=[1.32, -2.37],
        end=[2.80, -2.37],
        objective=Mixed(0.01),
        loads=Load("forearm", force=[0, -FORCE, 0], point=[LENGTH, 0, 0]),
        points=points,
        samples=samples,
    )


def closed_form(q, qd, qdd):
    """Return the derivatives of both torques to angles, rates and accelerations by (54) to (65), (N, 3, 2, 2)."""
    (a1, a2), (v1, v2), (w1, w2) = q.T, qd.T, qdd.T
    h, s, c = MASS * LENGTH * HALF, np.sin(a2), np.cos(a2)
    one, zero = np.ones(len(q)), np.zeros(len(q))
    tip = -(MASS * G * HALF + FORCE * LENGTH) * np.sin(a1 + a2)
    arm = -(MASS * G * HALF + MASS * G * LENGTH + FORCE * LENGTH) * np.sin(a1)
    m22 = (INERTIA + MASS * HALF**2) * one
    m12 = m22 + h * c
    m11 = m22 + m12 + h * c + MASS * LENGTH**2
    angles = [
        [tip + arm, -2 * h * s * w1 - h * s * w2 - 2 * h * c * v1 * v2 - h * c * v2**2 + tip],
        [tip, -h * s * w1 + h * c * v1**2 + tip],
    ]
    rates = [[-2 * h * s * v2, -2 * h * s * v1 - 2 * h * s * v2], [2 * h * s * v1, zero]]
    return np.array([angles, rates, [[m11, m12], [m12, m22]]]).transpose(3, 0, 1, 2)


def recursive(solution):
    """Return the same derivatives as the search has them, from the recursive dynamics."""
    found = solution.problem.transcription
    return found.evaluate(solution.x).columns[found.grid]


def replayed(solution):
    """Return how far the arm comes from the motion if only the torques found drive it [rad], at the end."""
    mech = solution.problem.mech
    sim = cs.Simulation(live=False)
    bd = sim.blockdiagram()
    motion = bd.SPLINETRAJECTORY(solution.spline, name="motion")
    force = bd.CONSTANT(np.array([0.0, -FORCE, 0.0]), name="force")
    at_tip = {"link": "forearm", "frame": "base", "point": [LENGTH, 0, 0], "load": "force"}
    planned, felt = bd.WRENCH(mech, name="planned", **at_tip), bd.WRENCH(mech, name="felt", **at_tip)
    torques = bd.INVERSEDYNAMICS(mech, wrench=True, name="torques")
    plant = bd.HYBRIDDYNAMICS(mech, q0=solution.samples.q[0], wrench=True, name="plant")
    bd.connect(force, planned[0], felt[0])
    bd.connect(motion[0], planned[1])
    bd.connect(motion[0:3], torques[0:3])
    bd.connect(planned, torques[3])
    bd.connect(torques, plant[0])
    bd.connect(plant[0], felt[1])
    bd.connect(felt, plant[1])
    out = sim.run(bd, solution.duration, rtol=1e-9, atol=1e-11)
    return np.abs(out.x[-1, :2] - solution.samples.q[-1]).max()


def save(figure, number, what, folder):
    figure.suptitle(f"Fig. {number}: {what}", fontsize="medium")
    figure.savefig(f"{folder}/xiang_fig_{number}.png", dpi=150)


def draw_figures(solution, folder):
    """Save Figs. 11 to 13."""
    at = solution.at(np.linspace(0.0, solution.duration, 600))
    frames = solution.at(np.linspace(0.0, solution.duration, 21))
    drawn = {
        11: ("joint angles", lambda axes: draw_joints(axes, at)),
        12: ("joint torques", lambda axes: draw_torques(axes, at, solution.problem.limits)),
        13: (f"motion, every {frames.t[1]:.4f} s", lambda axes: draw_frames(axes, solution.problem.mech, frames.q)),
    }
    for number, (what, draw) in drawn.items():
        figure = Figure(figsize=(5.5, 4.2), layout="constrained")
        draw(figure.subplots())
        save(figure, number, f"{what}, T = {solution.duration:.4f} s", folder)


def draw_derivatives(t, printed, ours, folder):
    """Save Fig. 14: the closed form as lines, the recursive derivatives as marks."""
    figure = Figure(figsize=(11, 6), layout="constrained")
    for row, of_torque in enumerate(figure.subplots(2, 3, sharex=True)):
        for r, axes in enumerate(of_torque):
            for j, colour in enumerate(("tab:blue", "tab:orange")):
                axes.plot(t, printed[:, r, row, j], color=colour, label=f"to {NAMES[r][j]}")
                axes.plot(t[::10], ours[::10, r, row, j], "o", color=colour, markersize=4, fillstyle="none")
            axes.set(ylabel=f"∂τ{row + 1} [{UNITS[r]}]")
            axes.legend(frameon=False)
            if row == 1:
                axes.set(xlabel="t [s]")
    save(figure, 14, "derivatives of the torques, closed form (lines) and recursive (circles)", folder)


def main(folder="."):
    Path(folder).mkdir(parents=True, exist_ok=True)
    print("Xiang, Arora, Abdel-Malek 2008, example 2")
    print(f"{'':34}{'T [s]':10}{'J':13}solved in")
    print(f"{'paper, 22 points':34}{PRINTED:<10.3f}{'not printed':13}{SECONDS} s")
    for points in (40, 22):
        asked = problem(points)
        asked.solve()  # the first time compiles
        solution = asked.solve()
        name = f"here, {points} points, 201 samples"
        print(f"{name:34}{solution.duration:<10.5f}{solution.dense_cost:<13.6f}{1e3 * solution.seconds:.0f} ms")
    at = solution.samples
    printed, ours = closed_form(at.q, at.qd, at.qdd), recursive(solution)
    print(f"integrated from the torques alone, the arm ends {replayed(solution):.1e} rad beside the motion")
    print(f"Fig. 14: closed form and recursive derivatives differ by {np.abs(printed - ours).max():.1e} at most")
    draw_figures(solution, folder)
    draw_derivatives(at.t, printed, ours, folder)
    solution.plot().savefig(f"{folder}/two_link_lifting.png", dpi=120)
    return solution


if __name__ == "__main__":
    main(*sys.argv[1:])
