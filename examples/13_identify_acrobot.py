"""Recover an acrobot from noisy positions by simulating it: mass, centre and damping, and the length of its arm."""

import numpy as np

import cstormpy as cs


def log_of(mech, rng, noise, T):
    """Return what encoders would say of a run in which the elbow is driven by a slow wave."""
    sim = cs.Simulation(live=False, progress=False)
    bd = sim.blockdiagram()
    plant = bd.HYBRIDDYNAMICS(mech, q0=[-1.2, 0.4], name="plant")
    motor = bd.WAVEFORM("sine", freq=0.7, amplitude=3.0, name="motor")
    bd.connect(motor, plant.tau)
    out = sim.run(bd, T=T, dt=0.01, solver="RK4", watch=["plant.q", "motor"])
    q = out.signal("plant.q")
    return {"t": out.t, "q": q + noise * rng.normal(size=q.shape), "tau": out.signal("motor").reshape(-1, 1)}


def main(T=4.0):
    truth = cs.library.acrobot("teaching")
    names = ["forearm.mass", "forearm.com[0]", "forearm.pose.x", "shoulder.damping", "elbow.damping"]
    pose = truth.link("forearm").pose.copy()
    pose[0, 3] += 0.1
    guess = truth.with_parameters({"forearm.mass": 1.4, "forearm.pose": pose, "elbow.damping": 0.3})
    found = cs.identify(guess, log_of(truth, np.random.default_rng(1), 1e-3, T), names, form="output", horizon=25)
    print(found)
    found.plot().savefig("identify_acrobot.png")
    return found


if __name__ == "__main__":
    main()
