"""What the tests of balls share: a mechanism with balls in it, and quiet runs."""

import numpy as np
import pytest
from random_mechanisms import random_inertia, random_pose

import cstormpy as cs


def tower(rng, active=(), joints=None):
    """Return a free body that carries a hinge, a ball and another ball, all off their links' frames."""
    points = rng.normal(size=(3, 3)) * 0.2
    joints = joints or [
        cs.Free(point=points[0]), cs.Revolute((1, 2, 3)), cs.Spherical(point=points[1]), cs.Spherical(point=points[2]),
    ]  # fmt: skip
    links, parent = [], None
    for k, joint in enumerate(joints):
        com, inertia = rng.normal(size=3) * 0.3, random_inertia(rng)
        links.append(cs.Link(f"link{k}", parent, joint, random_pose(rng), rng.uniform(0.5, 2), com, inertia))
        parent = f"link{k}"
    return cs.Mechanism(links, rng.normal(size=3) * 5, active=active)


def turned(q, mech, angle, rng):
    """Return coordinates with all rotation vectors of this length."""
    q = q.copy()
    for first in mech.ball_starts:
        q[first : first + 3] *= angle / np.linalg.norm(q[first : first + 3])
    return q


ENGINES = ("interpreted", "compiled")
LONG = [pytest.param("interpreted", marks=pytest.mark.slow), "compiled"]


def quiet(engine="compiled"):
    return cs.Simulation(engine=engine, live=False, graphics=False, progress=False)
