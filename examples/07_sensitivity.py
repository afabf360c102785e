"""Sensitivity of a swing to its start: exact derivatives carried along the run, and what they predict.

VARIATION integrates dx/dx0 beside the plant. Times a small change of the start it predicts where another run ends.
"""

import numpy as np

import cstormpy as cs

START, CHANGE = np.array([0.3, 0.5]), np.array([1e-3, -2e-3])


def build(sim, q0):
    bd = sim.blockdiagram("sensitivity")
    mech = cs.library.acrobot().with_drive(actuated=[])
    plant = bd.HYBRIDDYNAMICS(mech, q0=q0, name="plant")
    variation = bd.VARIATION(mech, directions=["shoulder.q", "elbow.q"], name="variation")
    size = bd.NORM(name="size")
    bd.connect(plant[0:2], variation[0:2])
    bd.connect(variation, size)
    bd.connect(size, bd.LIVESCOPE(labels=["size of dx/dx0"], title="Change of the state with its start"))
    return bd


def main(T=1.5):
    sim = cs.Simulation()
    out = sim.run(build(sim, START), T=T, watch=["plant", "variation", "size"], rtol=1e-9, atol=1e-11)
    other = sim.run(build(sim, START + CHANGE), T=T, rtol=1e-9, atol=1e-11, live=False)
    predicted, found = out.signal("variation.dx_dx0")[-1] @ CHANGE, (other.x[-1] - out.x[-1])[:4]
    print("the end of the swing moves by", found.round(5))
    print("the derivatives predict      ", predicted.round(5))
    print(f"a change of the start is up to {out.signal('size[0]').max():.1f} times as large on the way")
    return predicted, found


if __name__ == "__main__":
    main()
