"""Xiang, Arora, Abdel-Malek 2008, section 6.4, Figs. 11 to 14: lift a load of 10 N with a mixture of time and effort.

The paper prints T = 0.520 s. Its Fig. 14 compares the recursive derivatives of the torques at the optimum with those in
closed form, (71) to (82); so does the table here.
"""

import sys

import numpy as np

from cstormpy.mechanism import library
from cstormpy.optimal import Load, Mixed, Problem

PRINTED = 0.520
LENGTH, HALF, MASS, INERTIA, G, FORCE = 0.4, 0.2, 0.5, 0.1, 9.8062, 10.0


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
    """∂τ1/∂θ2 by (72), of the equations of motion (69)."""
    s, c = np.sin(q[:, 1]), np.cos(q[:, 1])
    s12, h = np.sin(q.sum(axis=1)), MASS * LENGTH * HALF
    return (
        -h * s * (2 * qdd[:, 0] + qdd[:, 1])
        - h * c * (2 * qd[:, 0] * qd[:, 1] + qd[:, 1] ** 2)
        - MASS * G * HALF * s12
        - FORCE * LENGTH * s12
    )


def derivatives(solution):
    """∂τ1/∂θ2 along the motion: by differences of the torque of the recursive dynamics."""
    at = solution.samples
    step = np.array([0.0, 1e-5])

    def torque(q):
        R = solution.problem.mech.forward_kinematics(q)[:, 1, :3, :3]
        force = np.array([0.0, -FORCE, 0.0]) @ R
        wrench = np.zeros((len(q), 2, 6))
        wrench[:, 1, :3] = np.cross([LENGTH, 0.0, 0.0], force)
        wrench[:, 1, 3:] = force
        return solution.problem.mech.inverse_dynamics(q, at.qd, at.qdd, wrench=wrench)[:, 0]

    return (torque(at.q + step) - torque(at.q - step)) / (2 * step[1])


def main(folder=None):
    print(f"{'':34}T [s]    J")
    print(f"{'the paper':34}{PRINTED:<9}not printed")
    for points in (22, 40):
        solution = problem(points).solve()
        print(f"{f'{points} points, 201 samples':34}{solution.duration:<9.5f}{solution.dense_cost:.6f}")
        if folder:
            solution.plot().savefig(f"{folder}/two_link_lifting_{points}.png")
    at = solution.samples
    printed, ours = closed_form(at.q, at.qd, at.qdd), derivatives(solution)
    print(f"∂τ1/∂θ2 in closed form, (72), and here: they differ by {np.abs(printed - ours).max():.1e} N m/rad")
    return solution


if __name__ == "__main__":
    main(*sys.argv[1:])
