"""Your own block and your own law, beside those that are there.

A law is a class with one method, `torque`, or a plain function; a block is a class of bdsim's kind, here a motor that
lags behind its command. They run in the compiled engine as they are written: ``sim.explain(bd)`` says how.
"""

import math

import numpy as np
from bdsim.components import ContinuousBlock

import cstormpy as cs
from cstormpy.control import Law


class BangBang(Law):
    """Push along with the elbow as long as there is too little energy, and against it when there is too much."""

    def __init__(self, mech, strength):
        super().__init__(mech)
        self.strength = strength
        self.goal = sum(self.mech.energy([math.pi / 2, 0], [0, 0]))

    def torque(self, t, q, qd, reference=None):
        lacks = self.goal - sum(self.mech.energy(q, qd))
        return self.strength * np.tanh(lacks / 2) * np.tanh(qd[1:] / 0.1)


def damped(t, q, qd):
    """Damp the elbow."""
    return -2.0 * qd[1]


class Motor(ContinuousBlock):
    """A motor that follows its command with a time constant: d tau/dt = (command - tau) / lag."""

    def __init__(self, lag, **blockargs):
        super().__init__(inames=["command"], onames=["torque"], nstates=1, **blockargs)
        self.lag, self._x0 = lag, np.zeros(1)

    def output(self, t, u, x):
        return [x.copy()]

    def deriv(self, t, u, x):
        return (u[0] - x) / self.lag


def build(sim, lag=0.02, strength=4.0):
    bd = sim.blockdiagram("your_own")
    mech = cs.library.acrobot()
    plant = bd.HYBRIDDYNAMICS(mech, q0=[0.1 - math.pi / 2, 0], name="plant")
    controller = bd.CONTROLLER(mech, {"bang-bang": BangBang(mech, strength), "damped": damped, "pd": "pd"})
    motor, energy = Motor(lag, bd=bd, name="motor"), bd.ENERGY(mech, name="energy")
    bd.connect(plant[0:2], controller[0:2], energy[0:2])
    bd.connect(controller.tau, motor)
    bd.connect(motor.torque, plant.tau)
    bd.connect(energy.total, bd.LIVESCOPE(labels=["total"], units="J", title="Energy"))
    bd.connect(plant.q, bd.MECHANISMVIEW(mech, title="Acrobot"))
    return bd


def main(T=8.0):
    sim = cs.Simulation()
    bd = build(sim)
    out = sim.run(bd, T=T, watch=["energy", "motor"])
    energy, goal = out.signal("energy.total"), sum(cs.library.acrobot().energy([math.pi / 2, 0], [0, 0]))
    print(sim.explain(bd), f"\nenergy: {energy[0]:.2f} J, after {T:g} s {energy[-1]:.2f} J, upright {goal:.2f} J")
    return out, goal


if __name__ == "__main__":
    main()
