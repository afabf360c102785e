"""Save a run, play a signal of it back in another diagram, and go on from where a run ended.

Runs are saved as npz, CSV or MATLAB's mat files, each signal under its name. FROMDATA plays one back, as here the
motion of a swing beside the same swing with more damping.
"""

import numpy as np

import cstormpy as cs


def swing(sim, damping):
    bd = sim.blockdiagram("swing")
    mech = cs.library.pendulum(damping=damping).with_drive(actuated=[])
    plant = bd.HYBRIDDYNAMICS(mech, q0=[0.0], name="plant")
    bd.connect(plant.q, bd.LIVESCOPE(labels=["joint"], units="rad", title="Angle"))
    return bd


def beside(sim, file, damping):
    bd = swing(sim, damping)
    saved = bd.FROMDATA(file, signal="plant.q", name="saved")
    difference = bd.SUM("+-", name="difference")
    bd.connect(bd.blocknames["plant"].q, difference[0])
    bd.connect(saved, difference[1])
    return bd


def main(T=4.0, file="swing.csv"):
    sim = cs.Simulation()
    bd = swing(sim, 0.1)
    first = sim.run(bd, T=T, watch=["plant"])
    first.save(file)
    out = sim.run(beside(sim, file, 0.3), T=T, watch=["difference"])
    print(
        f"with three times the damping the angle differs by up to {np.abs(out.signal('difference[0]')).max():.3f} rad"
    )
    longer = sim.run(bd, T=T, start=first.state, watch=["plant"])
    print(f"gone on from {longer.t[0]:g} s to {longer.t[-1]:g} s, where the angle is {longer.x[-1, 0]:.4f} rad")
    return first, out, longer


if __name__ == "__main__":
    main()
