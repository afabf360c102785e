"""Computed torque on a two-link arm, and what it costs when the model is wrong.

The controller takes what is to be followed through its ports (`reference=True`). It knows the arm as it was; the arm
that it drives may carry more.
"""

import numpy as np

import cstormpy as cs
from cstormpy.control import ComputedTorque

REACH = [[-1.2, 0.4]] * 3 + [[-0.2, 2.0], [1.0, 1.2]] + [[0.6, -0.8]] * 3


def build(sim, forearm):
    known, real = cs.library.planar_2r(), cs.library.planar_2r(masses=(1.25, forearm))
    bd = sim.blockdiagram("computed_torque")
    motion = bd.SPLINETRAJECTORY(REACH, duration=2.0, name="motion")
    plant = bd.HYBRIDDYNAMICS(real, q0=REACH[0], name="plant")
    law = bd.CONTROLLER(known, {"computed torque": ComputedTorque(known, kp=100, kd=20)}, reference=True)
    error = bd.SUM("+-", name="error")
    bd.connect(plant[0:2], law[0:2])
    bd.connect(motion[0:3], law[2:5])
    bd.connect(law.tau, plant.tau)
    bd.connect(motion.q, error[0])
    bd.connect(plant.q, error[1])
    bd.connect(error, bd.LIVESCOPE(labels=real.names, units="rad", title="Error of the angles"))
    return bd


def main(T=3.0):
    sim = cs.Simulation()
    worst = {}
    for forearm in (1.25, 1.5, 2.5):
        out = sim.run(build(sim, forearm), T=T, watch=["error"])
        worst[forearm] = float(np.abs(out.signal("error[0]")).max())
        print(f"forearm of {forearm:4.2f} kg, thought to be 1.25 kg: largest error {worst[forearm]:.2g} rad")
    return worst


if __name__ == "__main__":
    main()
