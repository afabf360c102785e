"""Recover the masses and inertias of a seven-joint arm, and its friction, from a noisy log; see what it cannot tell."""

import numpy as np

import cstormpy as cs


def motion(mech, rng, duration=12.0, points=14):
    """Return a smooth random motion within the joints' limits: the control points of a spline hold it there."""
    low, high = np.array([joint.limits.position for joint in mech.freedoms]).T
    control = rng.uniform(0.7 * low, 0.7 * high, (points, mech.n))
    return cs.BSpline.uniform(control, duration=duration, degree=5, names=mech.names)


def log_of(mech, rng, noise, samples):
    """Return what sensors would say: positions to 0.1 mrad, torques with noise of each joint's own."""
    curve = motion(mech, rng)
    t = np.linspace(0.0, curve.duration, samples)
    q, qd, qdd = curve.evaluate(t)
    tau = mech.inverse_dynamics(q, qd, qdd) + noise * rng.normal(size=q.shape)
    return {"t": t, "q": q + 1e-4 * rng.normal(size=q.shape), "tau": tau}


def main(samples=1200):
    rng = np.random.default_rng(1)
    truth = cs.library.arm7()
    truth = truth.with_parameters({f"{name}.damping": 0.5 for name in truth.names})
    guess = truth.with_parameters(
        {f"{link.name}.mass": 1.5 * link.mass for link in truth.links}
        | {f"{name}.damping": 0.0 for name in truth.names}
    )
    noise = np.array([0.5, 0.5, 0.3, 0.3, 0.1, 0.1, 0.05])
    links = [link.name for link in truth.links]
    log = log_of(truth, rng, noise, samples)
    found = cs.identify(guess, log, [*links, "*.damping"], control_points=60)
    print(found)
    found.plot().savefig("identify.png")

    t = np.linspace(0.0, 12.0, 200)
    q, qd, qdd = motion(truth, rng).evaluate(t)  # another motion
    want, errors = truth.inverse_dynamics(q, qd, qdd), []
    for name, mech in (("guess", guess), ("identified", found.mechanism)):
        errors.append(float(np.sqrt(((mech.inverse_dynamics(q, qd, qdd) - want) ** 2).mean())))
        print(f"{name}: torques of another motion are off by {errors[-1]:.3f} N m rms")
    return found, errors


if __name__ == "__main__":
    main()
