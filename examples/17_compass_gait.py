"""Walk down a slope without a motor: the compass gait of Goswami, Thuilot and Espiau (1998), and whether it is stable.

Where a foot comes down, an EVENT has the legs change their parts, by the impulse that stops it.
"""

import matplotlib.pyplot as plt
import numpy as np

import cstormpy as cs

TIP, LEG, HIP, SLOPE = (1.0, 0.0, 0.0), 5.0, 10.0, np.tan(np.radians(3.0))  # legs of 1 m, and their masses [kg]


def legs(*base):
    """Return the leg that stands, with the mass of the hip, and the one that swings, on a base or on the ground."""
    mass, com = HIP + LEG, (HIP + 0.5 * LEG) / (HIP + LEG)
    inertia = (0.0, *[HIP * LEG / mass * 0.5**2] * 2)
    foot, hip = (cs.Revolute((0, 0, 1), name=name) for name in ("foot", "hip"))
    stance = cs.Link("stance", *[each.name for each in base], joint=foot, mass=mass, com=(com, 0, 0), inertia=inertia)
    swing = cs.Link("swing", "stance", hip, pose=TIP, mass=LEG, com=(0.5, 0, 0))
    return cs.Mechanism([*base, stance, swing], actuated=[])


def foot(q):
    """Return where the foot of the leg that swings is, from the other one."""
    return np.array([np.cos(q[0]) + np.cos(q[0] + q[1]), np.sin(q[0]) + np.sin(q[0] + q[1])])


def wire(bd):
    free = legs(cs.Link("ground", joint=cs.Translational(name="slip")))
    plant = bd.HYBRIDDYNAMICS(legs(), q0=[1.789, 2.6], qd0=[-1.092, 0.715], name="walker")
    height = bd.FUNCTION(lambda q: foot(q)[1] + SLOPE * foot(q)[0], name="height")

    def come_down(block, states):
        q, qd = np.split(states[plant].copy(), 2)
        if foot(q)[0] < 0.1:  # the legs, which have no knees, pass each other
            return
        at = np.array([0.0, 0.0, 0.0, *q])
        J = np.array([free.point_velocity(at, each, "swing", TIP) for each in np.eye(5)]).T
        push = np.linalg.solve(free.mass_matrix(at), J.T)  # what an impulse on the foot does
        rates = qd - push[3:] @ np.linalg.solve(J @ push, J[:, 3:] @ qd)
        states[plant][:] = q[0] + q[1] - np.pi, 2.0 * np.pi - q[1], rates[0] + rates[1], -rates[1]

    bd.connect(plant.q, height)
    bd.connect(height, bd.EVENT("v", come_down, name="foot"))
    return bd


def draw(out):
    at, (_, ground) = np.zeros(2), plt.subplots(figsize=(9.0, 4.0), layout="constrained")
    for k, x in enumerate(out.x):
        if k and abs(x[0] - out.x[k - 1, 0]) > 0.2:  # on the other leg
            at = at + foot(out.x[k - 1])
        if k % 12 == 0:
            joints = [at, np.add(at, [np.cos(x[0]), np.sin(x[0])]), at + foot(x)]
            ground.plot(*np.array(joints).T, "o-", markevery=[1], color="tab:blue", alpha=0.15 + 0.85 * k / len(out.t))
    ground.axline((0.0, 0.0), slope=-SLOPE, color="0.4")
    ground.set(xlabel="x [m]", ylabel="y [m]", aspect="equal", title="Three steps, light to dark")


def main(T=2.2):
    sim = cs.Simulation()
    bd = wire(sim.blockdiagram("compass gait"))
    orbit = sim.periodic_orbit(bd, 0.73, start=sim.run(bd, T=0.3, rtol=1e-9))
    print(orbit)
    draw(sim.run(bd, T=T, start=orbit.out, dt=0.005))
    return orbit


if __name__ == "__main__":
    main()
    plt.show()
