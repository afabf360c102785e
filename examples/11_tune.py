"""Let the gains of a controller be found: by the exact gradient of what a run costs.

The two-link arm follows its motion by computed torque, and starts beside it. How hard should the feedback pull it back?
The cost weighs the error of the angles against the torque that goes beyond what the motion itself needs; `sim.tune`
differentiates the whole run, controller and arm, to both gains, and changes them until the cost falls no more.
"""

import matplotlib.pyplot as plt
import numpy as np

import cstormpy as cs
from cstormpy.diagrams import two_link_arm

PRICE = 2e-5


def cost(out):
    error, pull = out.signal("error_q"), out.signal("command") - out.signal("motion.qdd")
    return np.trapezoid((error**2).sum(axis=1) + PRICE * (pull**2).sum(axis=1), out.t)


def main(T=2.0, dt=0.01):
    sim = cs.Simulation()
    bd = two_link_arm.build(sim, kp=12.0, kd=2.0)
    watch = ["error_q", "command", "motion.qdd"]
    run = {"T": T, "solver": "RK4", "dt": dt, "watch": watch}
    slope = sim.gradient(bd, cost, ["kp.K", "kd.K"], **run)
    print(slope)
    tuned = sim.tune(bd, cost, ["kp.K", "kd.K"], bounds={"kp.K": (1.0, 400.0), "kd.K": (0.1, 60.0)}, **run)
    print(tuned)
    model = sim.linearize(bd, tuned.out.x[-1], t=T, inputs=["command"], outputs=["plant.q"])
    print(model)
    figure = tuned.plot(["error_q", "command"])
    figure.savefig("tuned.png", dpi=150)
    plt.close(figure)
    return tuned


if __name__ == "__main__":
    main()
