"""Closed mechanisms beside Pinocchio's constraint dynamics, and a closed diagram beside that of its open chain.

The goals are ratios of our time and Pinocchio's: 0.4 of one call, 0.1 of one sample of a batch, 0.3 with derivatives;
and 2 of a closed diagram and its open chain.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from interleaved import interleave

import cstormpy as cs

pin = pytest.importorskip("pinocchio")
sys.path.append(str(Path(__file__).parent.parent))
from pinocchio_model import Oracle  # noqa: E402

TABLE = "closed mechanisms, time of one sample [us]"
STARTS = {"four_bar": [1.0, 0.0, 1.5], "five_bar": [2.0, -1.0, 1.1, 1.0], "stewart_platform": np.zeros(24)}


def peer_of(mech):
    """Return a mechanism as Pinocchio's model and its constraints, in the plane: a point of three directions."""
    peer = Oracle(mech.without_loops())
    models = pin.StdVec_RigidConstraintModel()
    for loop in mech.loops:
        places = []
        for end, pose in ((loop.link_a, loop.pose_a), (loop.link_b, loop.pose_b)):
            joint, local = (0, pin.SE3.Identity()) if end is None else peer.frames[mech.link_index(end)]
            places += [joint, local * pin.SE3(np.array(pose))]
        models.append(pin.RigidConstraintModel(pin.ContactType.CONTACT_3D, peer.model, *places))
    datas = pin.StdVec_RigidConstraintData()
    for model in models:
        datas.append(model.createData())
    pin.initConstraintDynamics(peer.model, peer.data, models, datas)
    return peer, models, datas


@pytest.mark.parametrize("name", STARTS)
def test_constraint_dynamics(benchmark, record_row, name):
    mech = cs.library.get(name)
    free = mech.n > 6  # a platform of six freedoms, timed where it rests: its coordinates are Pinocchio's only there
    q, qd = mech.project(STARTS[name], np.ones(mech.n) * (not free))
    u = np.full(mech.n, 0.3)
    peer, models, datas = peer_of(mech)
    settings = pin.ProximalSettings(1e-12, 1e-10, 10)
    a = pin.neutral(peer.model) if free else peer.to(q)
    b, c = peer.to(qd), peer.to(u if free else u - peer.losses(q, qd))

    def theirs():
        return pin.constraintDynamics(peer.model, peer.data, a, b, c, models, datas, settings)

    def theirs_with_derivatives():
        theirs()
        return pin.computeConstraintDynamicsDerivatives(peer.model, peer.data, models, datas, settings)

    y, D = mech.hybrid_evaluator(), mech.hybrid_sensitivity_evaluator()
    np.testing.assert_allclose(y(q, qd, u), peer.back(theirs()), rtol=1e-8, atol=1e-8)
    rows = [np.tile(x, (4096, 1)) for x in (q, qd, u)]
    contestants = {
        "theirs": theirs,
        "theirs with derivatives": theirs_with_derivatives,
        "one call": lambda: y(q, qd, u),
        "one call, whole answer": lambda: mech.hybrid_dynamics(q, qd, u),
        "batch": lambda: mech.hybrid_dynamics(*rows),
        "with derivatives, one call": lambda: D(q, qd, u),
        "with derivatives, batch": lambda: mech.hybrid_sensitivity(*rows),
    }
    for each in (
        "one call",
        "one call, whole answer",
        "batch",
        "with derivatives, one call",
        "with derivatives, batch",
    ):
        for _ in range(1200 if "call" in each else 8):  # until the line is there
            contestants[each]()
    times = interleave(contestants)
    goals = {"one call": 0.4, "one call, whole answer": 0.4, "batch": 0.1, "with derivatives, one call": 0.3}
    for kind in list(contestants)[2:]:
        ours = times[kind] / (4096 if "batch" in kind else 1)
        other = times["theirs with derivatives" if "derivatives" in kind else "theirs"]
        record_row(
            TABLE, mechanism=name, what=kind, ours=ours * 1e6, pinocchio=other * 1e6, ratio=ours / other,
            goal=goals.get(kind, 0.3),
        )  # fmt: skip
    benchmark(contestants["one call"])


@pytest.mark.parametrize("engine", ["compiled", "interpreted"])
def test_closed_diagram_beside_its_open_chain(benchmark, record_row, engine):
    mech = cs.library.four_bar()
    q0, _ = mech.project(STARTS["four_bar"])

    def running(mech):
        sim = cs.Simulation(engine=engine, graphics=False, progress=False)
        bd = sim.blockdiagram()
        plant = bd.HYBRIDDYNAMICS(mech, q0=q0, name="plant")
        bd.connect(bd.CONSTANT(0.0), plant.tau)
        return lambda: sim.run(bd, T=10.0 if engine == "compiled" else 1.0)

    contestants = {"closed": running(mech), "open": running(mech.without_loops())}
    times = interleave(contestants, rounds=5)
    record_row(
        "four-bar diagram of 10 s, interpreted of 1 s [ms]", engine=engine, closed=times["closed"] * 1e3,
        open=times["open"] * 1e3, ratio=times["closed"] / times["open"], goal=2.0,
    )  # fmt: skip
    benchmark(contestants["closed"])


@pytest.mark.parametrize("name", STARTS)
def test_what_is_asked_once(benchmark, record_row, name):
    mech = cs.library.get(name)
    q, _ = mech.project(STARTS[name])
    beside = q + 0.3 * np.random.default_rng(0).normal(size=(10, mech.n))
    still = 0.0 * q
    contestants = {
        "made, and its first dynamics": lambda: cs.library.get(name).forward_dynamics(q, still, still),
        "ten projections from 0.3 rad, m aside": lambda: mech.project(beside),
    }
    for what, time in interleave(contestants, rounds=5).items():
        record_row("closed mechanisms, what is asked once [ms]", mechanism=name, what=what, time=time * 1e3)
    benchmark.pedantic(contestants["made, and its first dynamics"], rounds=3)
