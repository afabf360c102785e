"""Hybrid dynamics and sensitivities beside Pinocchio, which has no hybrid dynamics and is given its best stand-ins.

One call, values: `aba` and `rnea` with an armature of 1e14 on the active joints. One call, sensitivities: `rnea`,
`crba`, a NumPy solve of the passive block and `computeRNEADerivatives`. Batches, all joints passive: `abaInParallel`
with one thread, and a Python loop of `computeABADerivatives` less the overhead of its call.
"""

from __future__ import annotations

import time
from functools import partial

import numpy as np
import pytest

pin = pytest.importorskip("pinocchio")

from interleaved import gain, gain_of_two_processes, interleave  # noqa: E402
from pinocchio_model import Oracle  # noqa: E402
from random_mechanisms import random_state, skew_arm  # noqa: E402

from cstormpy.mechanism import library  # noqa: E402

TARGETS = {  # of the ratios: one call, one call with sensitivities
    "planar 2R": (0.45, 0.12),
    "branched acrobot": (0.45, 0.12),
    "arm of 7": (0.40, 0.15),
    "tree of 36": (0.40, 0.15),
    "chain of 100": (0.35, 0.50),
}
BATCH_TARGETS = {  # batch, batch with sensitivities
    "planar 2R": (0.025, 0.02),
    "branched acrobot": (0.025, 0.02),
    "skew arm of 2": (0.05, 0.05),
    "puma560": (0.045, 0.06),
    "arm of 7": (0.045, 0.06),
    "skew arm of 7": (0.05, 0.08),
    "tree of 36": (0.07, 0.22),
    "chain of 100": (0.35, 0.65),
}
TWO_THREADS = (
    "one thread over two, batches that last (goal 1.7); two processes at once, which is what the machine gives"
)
LASTING = 0.03  # seconds of one thread
WARM = "samples, and seconds, until the code is in use that the batches below are timed with (none is kept on disk)"
WARMING = 20.0
TABLE = "time per evaluation [us] and its ratio to Pinocchio's (goal)"


def mechanism(name):
    """Return a mechanism without losses, half of its joints active (the acrobots': those with motors)."""
    mech = {
        "planar 2R": library.planar_2r,
        "branched acrobot": library.branched_acrobot,
        "arm of 7": library.arm7,
        "tree of 36": lambda: library.tree(6, links=36),
        "chain of 100": lambda: library.chain(100),
        "puma560": library.puma560,
        "skew arm of 2": lambda: skew_arm(2),
        "skew arm of 7": lambda: skew_arm(7),
    }[name]()
    return mech.with_drive(actuated=mech.names, active=mech.names[1::2])


@pytest.fixture(params=TARGETS)
def name(request):
    return request.param


def report(record_row, name, kind, ours, peer, goal):
    record_row(TABLE, mechanism=name, what=kind, ours=ours * 1e6, pinocchio=peer * 1e6, ratio=ours / peer, goal=goal)


def test_one_call(benchmark, record_row, name):
    mech = mechanism(name)
    rng = np.random.default_rng(0)
    q, qd, u = random_state(rng, mech)
    f = mech.hybrid_evaluator()
    peer, mixed = Oracle(mech), Oracle(mech)
    active = mech.active_mask[mixed.order]
    mixed.model.armature[active] = 1e14
    a, b, c = mixed.to(q), mixed.to(qd), mixed.to(u)
    c[active] *= 1e14

    def stand_in():
        qdd = pin.aba(mixed.model, mixed.data, a, b, c)
        return pin.rnea(peer.model, peer.data, a, b, qdd)

    times = interleave({"ours": lambda: f(q, qd, u), "pin": stand_in, "method": lambda: mech.hybrid_dynamics(q, qd, u)})
    report(record_row, name, "hybrid, one call", times["ours"], times["pin"], TARGETS[name][0])
    record_row("plain method over prepared evaluator (goal 2)", mechanism=name, ratio=times["method"] / times["ours"])
    benchmark(f, q, qd, u)


def test_one_call_with_sensitivities(benchmark, record_row, name):
    mech = mechanism(name)
    rng = np.random.default_rng(0)
    q, qd, u = random_state(rng, mech)
    f = mech.hybrid_sensitivity_evaluator()
    peer = Oracle(mech)
    a, b, c = peer.to(q), peer.to(qd), peer.to(u)
    active = np.flatnonzero(mech.active_mask[peer.order])
    passive = np.flatnonzero(~mech.active_mask[peer.order])

    def stand_in():
        model, data = peer.model, peer.data
        M = pin.crba(model, data, a)
        M = np.triu(M) + np.triu(M, 1).T
        h = pin.rnea(model, data, a, b, np.zeros(model.nv))
        qdd = c.copy()
        qdd[passive] = np.linalg.solve(
            M[np.ix_(passive, passive)], c[passive] - h[passive] - M[np.ix_(passive, active)] @ c[active]
        )
        tau = pin.rnea(model, data, a, b, qdd)
        pin.computeRNEADerivatives(model, data, a, b, qdd)
        right = np.concatenate([data.dtau_dq, data.dtau_dv, M], axis=1)
        return tau, np.linalg.solve(M[np.ix_(passive, passive)], right[passive])

    times = interleave({"ours": lambda: f(q, qd, u), "pin": stand_in})
    report(record_row, name, "with sensitivities, one call", times["ours"], times["pin"], TARGETS[name][1])
    benchmark(f, q, qd, u)


@pytest.fixture(params=BATCH_TARGETS)
def batch_name(request):
    return request.param


def warm(record_row, name, what, mech, ask, count):
    """Ask as somebody does who has many batches, until the code is there that he gets."""
    begin, asked = time.perf_counter(), 0
    while time.perf_counter() - begin < WARMING and not any(key[0] == "rows" for key in mech.memo):
        ask()
        asked += count
    record_row(WARM, mechanism=name, what=what, samples=asked, seconds=time.perf_counter() - begin)


def batch(mech, samples):
    mech = mech.with_drive(active=())
    q, qd, u = random_state(np.random.default_rng(0), mech, samples)
    return mech, q, qd, u


def samples_of(mech):
    return max(64, 4096 // mech.n // 8 * 8)


def test_batch(benchmark, record_row, batch_name):
    name = batch_name
    mech, q, qd, u = batch(mechanism(name), 4 * samples_of(mechanism(name)))
    warm(record_row, name, "values", mech, lambda: mech.hybrid_dynamics(q, qd, u), len(q))
    peer = Oracle(mech)
    pool = pin.ModelPool(peer.model, 1)
    a, b, c = (np.asfortranarray(x[:, peer.order].T) for x in (q, qd, u))
    out = np.zeros_like(a, order="F")
    times = interleave(
        {
            "ours": lambda: mech.hybrid_dynamics(q, qd, u),
            "pin": lambda: pin.abaInParallel(1, pool, a, b, c, out),
        }
    )
    report(record_row, name, "hybrid, batch", times["ours"] / len(q), times["pin"] / len(q), BATCH_TARGETS[name][0])
    benchmark(mech.hybrid_dynamics, q, qd, u)


def test_batch_with_sensitivities(benchmark, record_row, batch_name):
    name = batch_name
    mech = mechanism(name)
    mech, q, qd, u = batch(mech, max(32, samples_of(mech) // 4))
    warm(record_row, name, "with sensitivities", mech, lambda: mech.hybrid_sensitivity(q, qd, u), len(q))
    peer = Oracle(mech)
    a, b, c = (np.ascontiguousarray(x[:, peer.order]) for x in (q, qd, u))
    rows = list(zip(a, b, c, strict=True))[:64]

    def loop():
        for x, v, t in rows:
            pin.computeABADerivatives(peer.model, peer.data, x, v, t)

    empty = pin.Model()
    empty_data = empty.createData()
    nothing = np.zeros(0)

    def call_only():
        for _ in rows:
            pin.computeABADerivatives(empty, empty_data, nothing, nothing, nothing)

    times = interleave(
        {
            "ours": lambda: mech.hybrid_sensitivity(q, qd, u),
            "pin": loop,
            "call": call_only,
        }
    )
    peer_time = (times["pin"] - times["call"]) / len(rows)
    report(record_row, name, "with sensitivities, batch", times["ours"] / len(q), peer_time, BATCH_TARGETS[name][1])
    benchmark(mech.hybrid_sensitivity, q, qd, u)


@pytest.mark.parametrize("what", ["hybrid_dynamics", "hybrid_sensitivity"])
def test_two_threads(benchmark, record_row, name, what):
    few = samples_of(mechanism(name))
    mech, *samples = batch(mechanism(name), few)
    short = partial(getattr(mech, what), *samples)
    lasting = int(few * LASTING / interleave({"few": short}, rounds=5)["few"])
    mech, *samples = batch(mech, lasting)
    ask = partial(getattr(mech, what), *samples)
    record_row(
        TWO_THREADS,
        mechanism=name,
        what=what,
        samples=lasting,
        gain=gain(ask, partial(ask, threads=2)),
        machine=gain_of_two_processes(short),
    )
    benchmark(ask, threads=2)


def test_growth(benchmark, record_row):
    """The cost per joint of values, from 10 to 200 joints."""
    chains = {n: library.chain(n) for n in (10, 20, 50, 100, 200)}
    calls = {}
    for n, mech in chains.items():
        calls[n] = partial(mech.hybrid_evaluator(), *random_state(np.random.default_rng(0), mech))
    times = interleave(calls)
    for n, seconds in times.items():
        record_row("time per joint of one call [us]", joints=n, time=seconds / n * 1e6)
    benchmark(calls[100])
