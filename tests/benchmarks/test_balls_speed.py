"""Mechanisms on a free base beside Pinocchio's: forward dynamics, and with all sensitivities, of one call and of rows.

Pinocchio has quaternions and twists where ours has rotation vectors and their rates; what is timed is the same question
of the same tree, each in its own coordinates, all joints driven by torque.

    pytest tests/benchmarks/test_balls_speed.py --benchmark-only
"""

from __future__ import annotations

import time

import numpy as np
import pytest

pin = pytest.importorskip("pinocchio")

from interleaved import interleave  # noqa: E402
from random_mechanisms import random_state  # noqa: E402

import cstormpy as cs  # noqa: E402
from cstormpy.mechanism import library  # noqa: E402

TARGETS = {  # one call, with sensitivities; of a batch per core, with sensitivities
    "arm of 7 on a free base": (0.35, 0.10, 0.06, 0.10),
    "tree of 30 on a free base": (0.30, 0.20, 0.08, 0.30),
}
TABLE = "free base: time per evaluation [us] and its ratio to Pinocchio's (goal)"
SAMPLES = 512
WARM = "free base: calls, and seconds, until the code is in use that is timed (none is kept on disk)"
WARMING = 20.0


def on_free_base(name):
    """Return a tree of hinges on a free body, and Pinocchio's model of it."""
    tree = library.arm7() if name.startswith("arm") else library.tree(5, links=30)
    hull = cs.Link("hull", None, cs.Free(name="hull"), mass=5.0, com=(0.1, 0, 0), inertia=np.diag([0.4, 0.5, 0.6]))
    links = [hull, *(link.replace(parent="hull") if link.parent is None else link for link in tree.links)]
    mech = cs.Mechanism(links, tree.gravity)
    model, placed = pin.Model(), {}
    model.gravity.linear = np.array(mech.gravity)
    ordered = [mech.links[0]]
    while len(ordered) < len(links):  # depth first, as Pinocchio's derivatives require
        last = ordered[-1]
        line = []
        while last is not None:
            line.append(last)
            last = mech.link(last.parent) if last.parent else None
        ordered.append(next(x for p in line for x in links if x.parent == p.name and x not in ordered))
    for link in ordered:
        kind = pin.JointModelFreeFlyer() if link is hull else pin.JointModelRevoluteUnaligned(np.array(link.joint.axis))
        point = np.zeros(3) if link is hull else np.array(link.joint.point)
        at_axis = pin.SE3(np.eye(3), point)
        parent, shift = placed[link.parent] if link.parent else (0, pin.SE3.Identity())
        above = model.addJoint(parent, kind, shift * pin.SE3(np.array(link.pose)) * at_axis, link.name)
        inertia = pin.Inertia(link.mass, np.array(link.com), np.array(link.inertia))
        model.appendBodyToJoint(above, inertia, at_axis.inverse())
        placed[link.name] = above, at_axis.inverse()
    return mech, model


def warm(record_row, name, what, mech, kind, ask):
    """Ask as somebody does who has many questions, until the mechanism's own code is there that he gets."""
    begin, asked = time.perf_counter(), 0
    while time.perf_counter() - begin < WARMING and not any(key[0] == kind for key in mech.memo):
        for _ in range(64):
            ask()
        asked += 64
    record_row(WARM, mechanism=name, what=what, calls=asked, seconds=time.perf_counter() - begin)


@pytest.fixture(params=TARGETS)
def name(request):
    return request.param


def report(record_row, name, what, ours, peer, goal):
    record_row(TABLE, mechanism=name, what=what, ours=ours * 1e6, pinocchio=peer * 1e6, ratio=ours / peer, goal=goal)


def test_free_base(benchmark, record_row, name):
    mech, model = on_free_base(name)
    data, rng = model.createData(), np.random.default_rng(0)
    q, qd, tau = random_state(rng, mech)
    x, v, load = pin.randomConfiguration(model, -np.ones(model.nq), np.ones(model.nq)), qd.copy(), tau.copy()
    f = mech.hybrid_evaluator()
    other = on_free_base(name)[0]
    g = other.hybrid_sensitivity_evaluator()
    warm(record_row, name, "one call", mech, "line", lambda: f(q, qd, tau))
    warm(record_row, name, "one call, with sensitivities", other, "line", lambda: g(q, qd, tau))
    times = interleave(
        {
            "one": lambda: f(q, qd, tau),
            "slopes": lambda: g(q, qd, tau),
            "aba": lambda: pin.aba(model, data, x, v, load),
            "derivatives": lambda: pin.computeABADerivatives(model, data, x, v, load),
        }
    )
    goals = TARGETS[name]
    report(record_row, name, "one call", times["one"], times["aba"], goals[0])
    report(record_row, name, "one call, with sensitivities", times["slopes"], times["derivatives"], goals[1])
    rows = random_state(rng, mech, SAMPLES)
    warm(record_row, name, "rows", mech, "rows", lambda: mech.forward_dynamics(*rows))
    warm(record_row, name, "rows, with sensitivities", other, "rows", lambda: other.forward_sensitivity(*rows))
    times_of_rows = interleave(
        {"batch": lambda: mech.forward_dynamics(*rows), "slopes": lambda: other.forward_sensitivity(*rows)}
    )
    report(record_row, name, "batch", times_of_rows["batch"] / SAMPLES, times["aba"], goals[2])
    slopes = times_of_rows["slopes"] / SAMPLES
    report(record_row, name, "batch, with sensitivities", slopes, times["derivatives"], goals[3])
    benchmark(f, q, qd, tau)
