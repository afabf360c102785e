"""Hybrid dynamics: prescribe the motion of the elbow, and find the torque that it takes.

The elbow is made active: the plant takes its acceleration instead of a torque, and JOINTEFFORT says what its motor has
to give. Played back as a torque to the acrobot whose elbow is free, that moves it the same way.
"""

import math

import numpy as np

import cstormpy as cs

ELBOW = [0, 0, 0, 0.8, -0.9, -1.6, 0.4, 1.4, 0, 0, 0]


def prescribed(sim, duration):
    bd = sim.blockdiagram("prescribed_elbow")
    mech = cs.library.acrobot().with_drive(active=["elbow"])
    motion = bd.SPLINETRAJECTORY(ELBOW, duration=duration, name="motion")
    plant = bd.HYBRIDDYNAMICS(mech, q0=[-math.pi / 2, 0], name="plant")
    effort = bd.JOINTEFFORT(mech, name="effort")
    bd.connect(motion.qdd, plant.acc, effort.acc)
    bd.connect(plant[0:2], effort[0:2])
    bd.connect(effort.torque, bd.LIVESCOPE(labels=mech.names, units="N m", title="Torques"))
    bd.connect(plant.q, bd.MECHANISMVIEW(mech, title="Acrobot"))
    return bd


def played_back(sim, found):
    bd = sim.blockdiagram()
    torque = bd.FROMDATA(t=found.t, y=found.signal("effort.torque")[:, 1:], name="torque")
    plant = bd.HYBRIDDYNAMICS("acrobot", q0=[-math.pi / 2, 0], name="plant")
    bd.connect(torque, plant.tau)
    return bd


def main(T=3.0):
    sim = cs.Simulation()
    found = sim.run(prescribed(sim, T), T=T, max_step=T / 1000, watch=["plant", "effort"])
    torque = found.signal("effort.torque")
    print(f"the passive shoulder: torque {np.abs(torque[:, 0]).max():g} N m, swings to {found.x[:, 0].max():.3f} rad")
    print(f"the elbow's motor: up to {np.abs(torque[:, 1]).max():.2f} N m")
    again = sim.run(played_back(sim, found), T=T, watch=["plant"])
    print(f"played back as a torque, the end differs by {np.abs(again.x[-1] - found.x[-1]).max():.1e}")
    return found, again


if __name__ == "__main__":
    main()
