"""Closed mechanisms in random states that close them."""

from __future__ import annotations

import numpy as np
from closeness import assert_close, central_difference

import cstormpy as cs
from cstormpy import lie

STARTS = {
    "four_bar": [1.0, 0.0, 1.5],
    "five_bar": [2.0, -1.0, 1.1, 1.0],
    "slider_crank": [0.7, -1.0, 1.0],
    "three_rrr": [-0.64, 1.22, -1.0, 0.42, -3.74, -2.29, 1.81],
}


def spatial(**drive):
    """Return a tree with two loops: a hinge between two branches, and a ball on the base."""
    tree = cs.library.tree(4, branching=2)
    rng = np.random.default_rng(5)
    q = rng.uniform(-0.7, 0.7, tree.n)
    X = tree.forward_kinematics(q)
    a, b = 7, 13
    frame = lie.exp_se3(rng.normal(size=6))
    to_b = np.linalg.inv(X[b]) @ X[a] @ frame
    ball = X[10] @ np.array([0.2, 0.1, -0.1, 1.0])
    loops = [
        cs.Loop(tree.links[a].name, tree.links[b].name, frame, to_b, "hinge"),
        cs.Loop(None, tree.links[10].name, ball[:3], (0.2, 0.1, -0.1), "position"),
    ]
    return cs.Mechanism(tree.links, tree.gravity, loops=loops, **drive), q


def state(name, seed=0):
    rng = np.random.default_rng(seed)
    if name == "spatial":
        mech, q = spatial()
        return mech, *mech.project(q, rng.normal(size=mech.n))
    mech = cs.library.get(name)
    q0 = np.array(STARTS[name])
    return mech, *mech.project(q0 + 0.1 * rng.normal(size=mech.n), rng.normal(size=mech.n))


def skate():
    """Return a knife edge: -sin θ ẋ + cos θ ẏ = 0, of no potential."""
    z = np.diag([0.0, 0.0, 0.1])
    return cs.Mechanism(
        [
            cs.Link("x", None, cs.Prismatic((1, 0, 0)), mass=0.0),
            cs.Link("y", "x", cs.Prismatic((0, 1, 0)), mass=0.0),
            cs.Link("skate", "y", cs.Revolute((0, 0, 1)), mass=2.0, inertia=z, allow_impossible=True),
        ],
        gravity=(0, 0, 0),
        loops=[cs.Constraint(lambda q: [-np.sin(q[2]), np.cos(q[2]), 0.0 * q[0]], kind="rate", name="edge")],
    )


def assert_rates_of_closure(mech, q, qd):
    """Hold the Jacobian of the closure, and its rate, against differences in a state that closes the loops."""
    assert np.abs(mech.closure(q)).max() < 1e-11
    assert_close(mech.closure_jacobian(q), central_difference(mech.closure, q, 1e-3), 1e-10)
    along = central_difference(lambda s: mech.closure_jacobian(q + s[0] * qd), np.zeros(1), 1e-3)[..., 0]
    assert_close(mech.closure_jacobian_rate(q, qd), along, 1e-10)


ALL = [*STARTS, "spatial"]
