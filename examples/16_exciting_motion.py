"""Find the motion from whose log an arm's parameters can be told best, and see how much better than from a random one.

Both motions keep to the same limits of position, velocity and torque, and both logs have the same noise. The parameters
from many logs scatter as the covariance says that was predicted before any log was made.
"""

import matplotlib.pyplot as plt
import numpy as np

import cstormpy as cs

NOISE, RATE = np.array([0.5, 0.2]), 50.0


def logs(mech, motion, rng, count):
    """Return what sensors would say of so many runs of a motion."""
    t = np.arange(0.0, motion.duration, 1.0 / RATE)
    q, qd, qdd = motion.evaluate(t)
    tau = mech.inverse_dynamics(q, qd, qdd)
    return [{"t": t, "q": q, "qd": qd, "qdd": qdd, "tau": tau + NOISE * rng.normal(size=q.shape)} for _ in range(count)]


def scatter(mech, motion, rng, count):
    """Return the standard deviations of the base parameters that many logs give."""
    return np.std(
        [cs.identify(mech, log, physical=False).base_values for log in logs(mech, motion, rng, count)], axis=0, ddof=1
    )


def main(trials=60, points=11):
    mech, rng = cs.library.planar_2r(), np.random.default_rng(1)
    limits = {"position": 1.5, "velocity": 3.0, "torque": 40.0}
    found = cs.exciting_motion(mech, duration=5.0, limits=limits, noise=NOISE, points=points)
    print(found)
    figure, axes = plt.subplots(1, 3, figsize=(12.0, 4.0), layout="constrained")
    t = np.linspace(0.0, 5.0, 300)
    for panel, title, motion in ((axes[0], "random", found.guess), (axes[1], "exciting", found.motion)):
        for curve, name, style in zip(motion.evaluate(t)[0].T, mech.names, ("-", "--"), strict=True):
            panel.plot(t, curve, style, label=name)
        panel.set(title=f"{title} motion", xlabel="t [s]", ylabel="q [rad]", ylim=(-1.6, 1.6))
        panel.legend(frameon=False)
        panel.grid(alpha=0.3)
    rows = np.arange(len(found.base))[::-1]
    gains = []
    for color, told, motion in (("0.5", found.first, found.guess), ("C0", found, found.motion)):
        seen = scatter(mech, motion, rng, trials)
        name = "random" if told is found.first else "exciting"
        axes[2].plot(told.standard_errors(RATE), rows, "o", color=color, label=f"{name}: predicted")
        axes[2].plot(seen, rows, "x", color=color, markersize=9, label=f"{name}: {trials} logs")
        gains.append((np.log(told.standard_errors(RATE)).mean(), np.log(seen).mean()))
    axes[2].set(xscale="log", title="base parameters", xlabel="standard error [SI units]")
    axes[2].set_yticks(rows, [parameter.names[0] for parameter in found.base.parameters], fontsize="small")
    axes[2].grid(alpha=0.3)
    figure.legend(*axes[2].get_legend_handles_labels(), loc="outside lower right", ncols=4, frameon=False)
    figure.savefig("exciting_motion.png", dpi=150)
    plt.close(figure)
    predicted, seen = np.exp(np.subtract(*gains))
    print(f"standard errors fall by a factor of {predicted:.2f} as predicted, by {seen:.2f} in {trials} logs each")
    return found, predicted, seen


if __name__ == "__main__":
    main()
