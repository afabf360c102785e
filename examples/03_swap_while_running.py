"""Swap the law while the acrobot swings: the state goes on, and the torque does not jump.

`at` calls functions at given times. What the torque would jump by at a swap is given back over the time `blend`.
"""

import math

import numpy as np

import cstormpy as cs


def build(sim):
    bd = sim.blockdiagram("acrobot")
    plant = bd.HYBRIDDYNAMICS("acrobot", q0=[0.2 - math.pi / 2, -0.3], name="plant")
    controller = bd.CONTROLLER("acrobot", ["none", "energy", "pd"], blend=0.1, name="controller")
    bd.connect(plant[0:2], controller[0:2])
    bd.connect(controller.tau, plant.tau, bd.LIVESCOPE(labels=["elbow"], units="N m", title="Torque"))
    bd.connect(controller.law, bd.LIVESCOPE(labels=["law"], stairs=True, title="Law"))
    bd.connect(controller.phase, bd.LIVESCOPE(labels=["phase"], stairs=True, title="Phase"))
    bd.connect(plant.q, bd.MECHANISMVIEW("acrobot", title="Acrobot"))
    return bd


def main(T=14.0):
    sim = cs.Simulation()
    bd = build(sim)
    controller = bd.blocknames["controller"]
    commands = {2.0: lambda: controller.select("energy"), 10.0: lambda: controller.select("pd")}
    out = sim.run(bd, T=T, watch=["plant", "controller"], at=commands)
    tau, law = out.signal("controller.tau")[:, 0], out.signal("controller.law").astype(int)
    for when in (when for when in commands if when < T):
        at = np.searchsorted(out.t, when, side="right") - 1  # the last sample of that time stands after the swap
        name = controller.law_names[law[at]]
        print(f"{when:g} s: {name}, torque {tau[at - 2]:.4f}, {tau[at]:.4f}, then {tau[at + 2]:.4f} N m")
    print(
        f"upright at {min(T, 10.0):g} s: {abs(np.sin(np.interp(min(T, 10.0), out.t, out.signal('plant.q')[:, 0]))):.4f}"
    )
    return out


if __name__ == "__main__":
    main()
