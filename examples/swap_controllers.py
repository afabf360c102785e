"""Swap the law of an acrobot by one word, then compare the laws in one table and one figure."""

import math

import cstormpy as cs


def build(sim, law):
    bd = sim.blockdiagram("acrobot")
    plant = bd.HYBRIDDYNAMICS("acrobot", q0=[0.05 - math.pi / 2, 0], name="plant")
    controller = bd.CONTROLLER("acrobot", law)
    bd.connect(plant[0:2], controller[0:2])
    bd.connect(controller.tau, plant.tau, bd.LIVESCOPE(labels=["elbow"], units="N m", title="Torque"))
    bd.connect(controller.phase, bd.LIVESCOPE(labels=["phase"], stairs=True, title="Phase of the law"))
    angles = bd.LIVESCOPE(labels=["shoulder", "elbow"], units="rad", title="Angles")
    bd.connect(plant.q, angles, bd.MECHANISMVIEW("acrobot", title="Acrobot"))
    return bd


if __name__ == "__main__":
    sim = cs.Simulation()
    sim.run(build(sim, "energy"), T=8)  # or "pfl", "noncollocated", "spline", "lqr", "pd", "none"
    laws = {"law": ["energy", "pfl", "noncollocated", "spline", "pd"]}
    print(comparison := cs.compare(build, laws, T=8, goal=[math.pi / 2, 0]))
    comparison.plot().savefig("swap_controllers.png")
