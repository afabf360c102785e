"""Regressor beside Pinocchio's, and derivatives to all inertial parameters beside those to the state, of a batch."""

from __future__ import annotations

import numpy as np
import pytest

pin = pytest.importorskip("pinocchio")

from interleaved import interleave  # noqa: E402
from pinocchio_model import Oracle  # noqa: E402

from cstormpy.mechanism import library  # noqa: E402

MECHANISMS = {"arm of 7": (library.arm7, 512), "tree of 36": (lambda: library.tree(6, links=36), 64)}
TABLE = "time per sample [us], and its ratio to Pinocchio's regressor (goal 0.3) or the state sensitivities (goal 2)"


@pytest.mark.parametrize("name", MECHANISMS)
def test_parameters(benchmark, record_row, name):
    made, count = MECHANISMS[name]
    mech = made()
    q, qd, u = np.random.default_rng(0).normal(size=(3, count, mech.n))
    names = [f"{link.name}.{field}" for link in mech.links for field in ("mass", "com", "inertia")]
    theirs = Oracle(mech)
    args = [theirs.to(x[0]) for x in (q, qd, u)]

    def loop():
        for _ in range(count):
            pin.computeJointTorqueRegressor(theirs.model, theirs.data, *args)

    times = interleave(
        {
            "regressor": lambda: mech.regressor(q, qd, u),
            "pinocchio": loop,
            "numbers": lambda: mech.parameter_sensitivity(q, qd, u, names),
            "states": lambda: mech.hybrid_sensitivity(q, qd, u),
        }
    )
    ours, peer, numbers, states = times.values()
    for what, a, b, goal in (("regressor", ours, peer, 0.3), ("all inertial numbers", numbers, states, 2.0)):
        record_row(
            TABLE, mechanism=name, what=what, ours=a / count * 1e6, other=b / count * 1e6, ratio=a / b, goal=goal
        )
    benchmark(lambda: mech.regressor(q, qd, u))
