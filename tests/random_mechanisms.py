"""Random mechanisms and states: every joint type, any tree, any drive."""

from __future__ import annotations

import numpy as np

from cstormpy.mechanism import Fixed, Link, Mechanism, Prismatic, Revolute, Screw

KINDS = ("revolute", "prismatic", "screw", "fixed")


def random_rotation(rng):
    q, r = np.linalg.qr(rng.normal(size=(3, 3)))
    q = q * np.sign(np.diag(r))
    return q if np.linalg.det(q) > 0 else -q


def random_pose(rng, reach=0.7):
    pose = np.eye(4)
    pose[:3, :3] = random_rotation(rng)
    pose[:3, 3] = rng.normal(size=3) * reach
    return pose


def random_inertia(rng):
    points = rng.normal(size=(5, 3)) * 0.3
    return sum((p @ p) * np.eye(3) - np.outer(p, p) for p in points)


def random_joint(rng, kind, terms=True):
    if kind == "fixed":
        return Fixed()
    options = {"point": rng.normal(size=3) * 0.2}
    if terms:
        options |= {
            "damping": rng.uniform(0, 0.5),
            "friction": rng.uniform(0, 0.5),
            "friction_velocity": rng.uniform(0.2, 1.0),
            "armature": rng.uniform(0, 0.3),
            "stiffness": rng.uniform(0, 2.0),
            "rest": rng.normal(),
        }
    axis = rng.normal(size=3)
    if kind == "revolute":
        return Revolute(axis, **options)
    if kind == "prismatic":
        return Prismatic(axis, **options)
    return Screw(axis, rng.uniform(-0.4, 0.4), **options)


def random_mechanism(rng, links=6, kinds=KINDS, branching=0.5, terms=True, shuffled=True, gravity=True):
    """Return a random tree whose links come in random order and whose drive is random, one joint at least moving."""
    made = []
    for i in range(links):
        parent = None
        if i > 0 and not (i > 1 and rng.random() < 0.1):  # now and then one more link on the base
            parent = f"link{i - 1}" if rng.random() > branching else f"link{rng.integers(i)}"
        kind = "revolute" if i == 0 and "revolute" in kinds else str(rng.choice(kinds))
        com = rng.normal(size=3) * 0.3
        mass = rng.uniform(0.3, 2.0)
        made.append(
            Link(f"link{i}", parent, random_joint(rng, kind, terms), random_pose(rng), mass, com, random_inertia(rng))
        )
    if shuffled:
        made = [made[k] for k in rng.permutation(links)]
    names = [link.name for link in made if link.joint.dof]
    active = [name for name in names if rng.random() < 0.5]
    field = rng.normal(size=3) * 5 if gravity else np.zeros(3)
    return Mechanism(made, gravity=field, active=active)


def random_state(rng, mech, samples=None):
    """Return q, qd, u of one sample, or of a batch."""
    shape = (mech.n,) if samples is None else (samples, mech.n)
    return rng.uniform(-2, 2, size=shape), rng.normal(size=shape), rng.normal(size=shape)
