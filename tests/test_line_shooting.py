"""Shooting by a mechanism's straight line: the numbers of the kernel with loops, and no kernel is waited for."""

import numpy as np
import pytest

from cstormpy.dynamics.batches import scratch_size
from cstormpy.dynamics.lines import address_of
from cstormpy.dynamics.tracing import Signature
from cstormpy.kernels import entries_sensitivity, entries_shooting, line_shooting
from cstormpy.kernels.entries import Entry
from cstormpy.kernels.stepping_code import Steps
from cstormpy.linkage.tables import tables_of
from cstormpy.mechanism import library
from cstormpy.optimal import Effort, Problem

STEPS, COLUMNS = 3, 4


@pytest.fixture
def no_kernels(monkeypatch):
    """Find no kernel with loops on disk, and refuse to compile or load any."""

    def refuse(self):
        raise AssertionError(f"{self.name} is loaded")

    monkeypatch.setattr(Entry, "load", refuse)
    monkeypatch.setattr(Entry, "is_ready", lambda self: False)
    monkeypatch.setattr("cstormpy.dynamics.lines._Spent.seconds", 0.0)  # by the tests before


def in_plain_python(mech, question):
    """Return what stands behind the address of a line, as a plain function on arrays."""
    tables = tables_of(mech)

    def ask(T, q, qd, u, *rest):
        *more, y, D = rest
        wrench = more.pop(0)[None] if question.loads else np.zeros((0, 0))
        base = more.pop(0)[None] if question.moving_base else np.zeros((0, 0))
        columns = np.zeros((1, 3, mech.n, mech.n))
        W, to_base = np.zeros(scratch_size(mech, True)), np.zeros((0, mech.n, 12))
        _, status = entries_sensitivity.sensitivity_large.function(
            T, tables.N, W, q[None], qd[None], u[None], wrench, base, y[None], columns, to_base, 0, 1
        ) or (-1, 0)
        D[:] = columns.reshape(D.shape)
        return status

    return ask


def arguments(mech, rng, loads, rows_of_base):
    """Return a question, and what the kernel with loops is given of a random motion."""
    question = Signature(loads=loads, moving_base=rows_of_base > 0, sensitivities=True)
    wrench, base = rng.normal(size=loads * len(mech.links)), rng.normal(size=(rows_of_base, 12))
    signal = rng.normal(size=(2 * STEPS + 1, 3, mech.n))
    seeds, dh = rng.normal(size=(2 * STEPS + 1, 3, mech.n, COLUMNS)), rng.normal(size=COLUMNS)
    z, dz = np.zeros((3, 2, mech.n)), np.zeros((3, 2, mech.n, COLUMNS))
    z[0], dz[0] = rng.normal(size=z[0].shape), rng.normal(size=dz[0].shape)
    return question, (wrench, base, signal, seeds, 0.02, dh, z, dz)


def by_loops(mech, wrench, base, signal, seeds, h, dh, z, dz):
    tables, work = tables_of(mech), np.zeros((4, mech.n, COLUMNS))
    out, d_out = np.zeros((STEPS + 1, 3, mech.n)), np.zeros((STEPS + 1, 3, mech.n, COLUMNS))
    W = np.zeros(scratch_size(mech, True))
    found = entries_shooting.shoot.function(
        tables.T, tables.N, W, wrench, base, signal, seeds, h, dh, z.copy(), dz.copy(), work, out, d_out
    )
    assert found == (-1, 0)
    return out, d_out


def by_line(shoot, f, mech, wrench, base, signal, seeds, h, dh, z, dz):
    n = mech.n
    out, d_out = np.zeros((STEPS + 1, 3 * n)), np.zeros(((STEPS + 1) * 3 * n, COLUMNS))
    status = shoot(
        f, tables_of(mech).T, mech.active_mask.astype(np.int64), wrench, base, signal.reshape(len(signal), -1),
        seeds.reshape(-1, COLUMNS), np.array([h]), dh, z.copy().reshape(3, -1), dz.copy().reshape(-1, COLUMNS),
        np.zeros((3, n)), np.zeros((4 * n, COLUMNS)), np.zeros(n), np.zeros((3 * n, n)), out, d_out,
    )  # fmt: skip
    if np.ravel(status)[0] != 0:
        raise ArithmeticError
    return out.reshape(STEPS + 1, 3, n), d_out.reshape(STEPS + 1, 3, n, COLUMNS)


@pytest.mark.parametrize(
    ("loads", "rows_of_base"),
    [(0, 0), (6, 0), (0, 2 * STEPS + 1), (21, 1)],
    ids=["alone", "wrenches", "moving base", "dead loads and a steady base"],
)
def test_shooting_by_a_line_is_shooting_by_loops(loads, rows_of_base):
    """As machine code and as plain Python, beside the kernel as plain Python: motion and derivatives to 1e-12."""
    mech = library.branched_acrobot().with_drive(active=["left_hip"])
    question, given = arguments(mech, np.random.default_rng(3), loads, rows_of_base)
    expected = by_loops(mech, *given)
    plain = by_line(line_shooting.shoot_by_line, in_plain_python(mech, question), mech, *given)
    compiled = by_line(Steps("shoot_by_line"), address_of(mech, "own", question), mech, *given)
    for found in (plain, compiled):
        for a, b in zip(found, expected, strict=True):
            np.testing.assert_allclose(a, b, rtol=0, atol=1e-12 * abs(b).max())


@pytest.mark.parametrize("transcription", ["shooting", "inverse"])
def test_optimising_a_small_mechanism_waits_for_no_kernel(no_kernels, transcription):
    """It took half a minute to compile the kernels of any mechanism before an acrobot's first iteration."""
    mech = library.acrobot().with_drive(active=["elbow"])
    problem = Problem(
        mech, transcription=transcription, start=[-1.0, 0.0], end={"elbow": 0.4}, points=6, duration=0.9,
        objective=Effort(), limits=None, **({"steps": 6} if transcription == "shooting" else {"samples": 7}),
    )  # fmt: skip
    solution = problem.solve(iterations=2, refine=False, progress=False)
    assert np.isfinite(solution.cost)


def test_a_motion_that_overflows_has_no_numbers():
    """A state that is not finite is a status of the line, as of the kernel."""
    mech = library.acrobot().with_drive(active=["elbow"])
    question, given = arguments(mech, np.random.default_rng(3), 0, 0)
    given[2][:] = np.inf
    with pytest.raises(ArithmeticError):
        by_line(Steps("shoot_by_line"), address_of(mech, "own", question), mech, *given)
