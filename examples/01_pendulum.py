"""A pendulum, wired by hand: how a diagram is made, run and read.

Blocks are made by methods of the diagram, named in capitals; `connect` wires an output to inputs. Where there is a
display, a window shows the scopes and the mechanism while it runs. What is watched comes back as arrays.
"""

import numpy as np

import cstormpy as cs


def build(sim):
    bd = sim.blockdiagram("pendulum")
    mech = cs.library.pendulum().with_drive(actuated=[])  # no motor
    plant = bd.HYBRIDDYNAMICS(mech, q0=[-np.pi / 2 + 0.1], name="plant")
    energy = bd.ENERGY(mech, name="energy")
    view = bd.MECHANISMVIEW(mech, title="Pendulum")
    bd.connect(plant.q, energy.q, view, bd.LIVESCOPE(labels=["joint"], units="rad", title="Angle"))
    bd.connect(plant.qd, energy.qd)
    bd.connect(energy.total, bd.LIVESCOPE(labels=["total"], units="J", title="Energy"))
    return bd


def main(T=10.0):
    sim = cs.Simulation()
    out = sim.run(build(sim), T=T, watch=["plant", "energy"])
    q, qd = out.signal("plant.q")[:, 0], out.signal("plant.qd")[:, 0]
    falling = np.flatnonzero((q[:-1] > -np.pi / 2) & (q[1:] <= -np.pi / 2))
    t = out.t[falling] + (q[falling] + np.pi / 2) / -qd[falling]
    energy = out.signal("energy.total")
    small = 2 * np.pi * np.sqrt((1 / 3) / (9.81 / 2))
    print(f"period {np.diff(t).mean():.4f} s, of very small swings {small:.4f} s")
    print(f"energy {energy[0]:.6f} J at the start, {energy[-1]:.6f} J at the end")
    return np.diff(t).mean(), small


if __name__ == "__main__":
    main()
