"""Move a five-bar with one motor too many, and see how three motors can share what two could do.

The five-bar has two freedoms. With a third motor the torques of a motion are a choice, and so is what its pin carries.
The motion is that of least effort from rest to rest, found through the loop. Along it the load is shared in two ways:
with the least torque (Kim 2012, (59)-(64)), as the search did, and with the least force in the pin (after (61)).
"""

import matplotlib.pyplot as plt
import numpy as np

import cstormpy as cs
from cstormpy.optimal import Effort, Problem
from cstormpy.optimal.plotting import draw_frames

WAYS = {"torque": ("least torque", "-", "tab:blue"), "force": ("least force in the pin", "--", "tab:orange")}
MOTORS = {"left_shoulder": "#1b4965", "left_elbow": "#bc4b51", "right_shoulder": "#5b8e7d"}


def draw(found, shared):
    figure, axes = plt.subplots(2, 2, figsize=(10.0, 7.0), layout="constrained", width_ratios=[1.0, 1.15])
    (motion, torques), (effort, force) = axes
    mech, at = found.problem.mech, found.at(np.linspace(0.0, found.duration, 13))
    draw_frames(motion, mech, at.q)
    motion.plot([0.0, 0.6], [0.0, 0.0], "^", color="0.35", markersize=9)
    pin = mech.forward_kinematics(at.q)[:, mech.link_index("left_fore")] @ [0.6, 0.0, 0.0, 1.0]
    motion.plot(*pin[:, :2].T, "o-", color="black", markersize=3, linewidth=0.8, label="the pin")
    motion.set_title(f"least effort from rest to rest in {found.duration:g} s, light to dark", fontsize="medium")
    t = np.linspace(0.0, found.duration, len(shared["torque"]))
    for way, (_, style, _) in WAYS.items():
        for name, color in MOTORS.items():
            label = name.replace("_", " ") if way == "torque" else None
            torques.plot(t, shared[way][:, mech.joint_index(name)], style, color=color, label=label, linewidth=1.7)
    torques.set(title="torques of the motors: solid the least, dashed of the least force", ylabel="torque [N m]")
    torques.title.set_size("medium")
    for axis, pick, what in (
        (effort, lambda tau: np.linalg.norm(tau, axis=1), "norm of the torques [N m]"),
        (force, lambda tau: np.linalg.norm(tau.multipliers, axis=1), "force in the pin [N]"),
    ):
        lines = [pick(shared[way]) for way in WAYS]
        for line, (label, style, color) in zip(lines, WAYS.values(), strict=True):
            axis.plot(t, line, style, color=color, label=label, linewidth=2.0)
        axis.fill_between(t, *lines, color="0.9", linewidth=0.0)
        axis.set(ylabel=what, xlabel="t [s]", ylim=(0.0, None))
    torques.set_xlabel("t [s]")
    for axis in axes.flat:
        axis.margins(x=0.05 if axis is motion else 0.0)
        axis.spines[["top", "right"]].set_visible(False)
        axis.legend(frameon=False, fontsize="small")
    return figure


def main(points=14, samples=300):
    mech = cs.library.five_bar().with_drive(actuated=list(MOTORS))
    start, end = (mech.project(q)[0] for q in ([2.4, -0.9, 1.6, 1.2], [1.3, -1.4, 0.3, 1.2]))
    problem = Problem(mech, duration=0.8, start=start, end=end, objective=Effort(), points=points)
    found = problem.solve(feasibility=1e-6)
    print(found)
    q, qd, qdd = found.motion.evaluate(np.linspace(0.0, found.duration, samples))
    shared = {way: mech.inverse_dynamics(q, qd, qdd, redundancy=way) for way in WAYS}
    for way, (label, _, _) in WAYS.items():
        torque, force = np.linalg.norm(shared[way], axis=1), np.linalg.norm(shared[way].multipliers, axis=1)
        print(f"{label}: at most {torque.max():.2f} N m, and {force.max():.2f} N in the pin")
    figure = draw(found, shared)
    figure.savefig("redundant_five_bar.png", dpi=150)
    plt.close(figure)
    return found, shared


if __name__ == "__main__":
    main()
