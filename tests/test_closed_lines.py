"""Straight lines of machine code of closed mechanisms: they answer as the numbers do."""

from __future__ import annotations

from contextlib import contextmanager

import numpy as np
import pytest
from closed_states import state
from closeness import assert_close

import cstormpy as cs
from cstormpy.loops import assembly, closure, loop_lines
from cstormpy.loops import lines as closed_lines
from cstormpy.loops.assembly import shut
from cstormpy.loops.chains import chains_at
from cstormpy.loops.loop_lines import chains_in, numbers_of
from cstormpy.mechanism import library


def test_the_prepared_functions_are_of_the_closed_mechanism():
    mech, q, qd = state("four_bar")
    u = np.array([1.0, 0.0, 0.0])
    out = np.empty(3)
    assert mech.hybrid_evaluator()(q, qd, u, out) is out
    y, D = mech.hybrid_sensitivity_evaluator()(q, qd, u)
    assert_close(out, mech.hybrid_dynamics(q, qd, u).y, 1e-13)
    assert_close(y, out, 1e-13)
    assert_close(D[0], mech.hybrid_sensitivity(q, qd, u).dy_dq, 1e-13)
    assert type(np.asarray(mech.forward_dynamics(q, qd, u)) + 1) is np.ndarray


# ---------------------------------------------------------------- straight lines
def test_other_masses_close_in_the_same_postures(monkeypatch):
    """A closed posture was sought anew for each, which took a hundred times as long as all the rest."""
    mech = cs.library.four_bar()
    q, _ = mech.project([0.5, 0.0, 1.5], hold=["crank"])
    mech.hybrid_evaluator()
    rest, moved = np.zeros(3), {"pin.pose_b": mech.loops[0].pose_b[:3, 3] + [0.02, 0.0, 0.0]}
    with monkeypatch.context() as patch:
        for way_to_close in ("project", "closed_beside"):
            patch.setattr(assembly, way_to_close, None)
        heavy = mech.with_parameters({"coupler_rod.mass": 2.0, "crank.damping": 0.3, "gravity": (0.0, -5.0, 0.0)})
        found = heavy.hybrid_evaluator()(q, rest, rest)
        with pytest.raises(TypeError):
            mech.with_parameters(moved).hybrid_evaluator()
    assert_close(found, heavy.hybrid_dynamics(q, rest, rest).y, 1e-12)


@pytest.mark.parametrize("what", ["dynamics", "sensitivity"])
@pytest.mark.parametrize("name", ["four_bar", "five_bar", "three_rrr"])
def test_the_straight_line_answers_as_the_numbers_do(name, what):
    mech, q, qd = state(name, 20)
    mech = mech.with_drive(active=mech.actuated[:1]) if name == "five_bar" else mech
    with without_lines():
        fresh = mech.with_drive(active=mech.active)
        u = np.linspace(-1.0, 1.0, mech.n)
        found = (fresh.hybrid_sensitivity if what == "sensitivity" else fresh.hybrid_dynamics)(q, qd, u)
    filled = [np.empty(mech.n), np.empty(len(found.multipliers)), np.empty((3, mech.n, mech.n))][
        : 3 if what == "sensitivity" else 2
    ]
    assert closed_lines.prepared(mech, "own", what)(q, qd, u, *filled) == 0
    assert_close(filled[0], found.y, 1e-12)
    assert_close(filled[1], found.multipliers, 1e-12)
    if what == "sensitivity":
        assert_close(filled[2], found.columns, 1e-11)


@pytest.mark.slow
def test_lines_of_a_mechanism_of_many_loops_answer_as_the_numbers_do():
    """A platform on six legs, 18 constraints: it was answered by numbers, a hundred times as slow."""
    mech = cs.library.stewart_platform()
    rng = np.random.default_rng(31)
    states = [mech.project(0.05 * rng.normal(size=24), rng.normal(size=24)) for _ in range(12)]
    q, qd = (np.array(x) for x in zip(*states, strict=True))
    u = 20.0 * rng.normal(size=q.shape)
    driven = mech.with_drive(active=mech.actuated)
    for asked, drive, what in (
        (mech, "forward", "dynamics"), (driven, "own", "dynamics"), (driven, "own", "sensitivity")
    ):  # fmt: skip
        with without_lines():
            fresh = asked.with_drive(active=asked.active)
            answer = (fresh.hybrid_sensitivity if what == "sensitivity" else fresh.hybrid_dynamics)(q, qd, u)
        wanted = [answer.y, answer.multipliers, *([answer.columns] if what == "sensitivity" else [])]
        line, numbers = closed_lines._line(asked, drive, what), numbers_of(asked)
        found = [np.empty(x.shape) for x in wanted]
        assert line.batch_caller(numbers, 10**6)(q, qd, u, *found, 0, len(q)) == -1
        one = [np.empty(x.shape[1:]) for x in wanted]
        assert line.caller(numbers, False, 10**6)(q[5], qd[5], u[5], *one) == 0
        for many, single, x in zip(found, one, wanted, strict=True):
            assert_close(many, x, 1e-10)
            assert_close(single, x[5], 1e-10)


def test_constraints_that_depend_on_each_other_have_the_least_multipliers_in_a_line_too():
    """Two pins at one place: each carries half of the load."""
    plain, q, qd = state("four_bar")
    (pin_,) = plain.loops
    mech = plain.replace(loops=[pin_, pin_.replace(name="again")])
    y, lam = np.empty(3), np.empty(4)
    u = np.array([1.0, 0.2, -0.3])
    assert closed_lines.prepared(mech, "own", "dynamics")(q, qd, u, y, lam) == 0
    with without_lines():
        want = plain.hybrid_dynamics(q, qd, u)
    assert_close(y, want.y, 1e-11)
    assert_close(lam, np.tile(want.multipliers / 2.0, 2), 1e-11)


def test_where_a_line_has_no_answer_the_numbers_have_it():
    """A singular posture, an open one, a redundant drive: ranks stay right and errors say what they say."""
    mech = cs.library.four_bar(ground=0.8, lengths=(0.5, 0.8, 0.5))  # a parallelogram
    flat = np.array([0.0, 0.0, 0.0])
    y, lam = np.empty(3), np.empty(2)
    line = closed_lines.prepared(mech, "own", "dynamics")
    assert line(flat, np.zeros(3), np.zeros(3), y, lam) != 0
    assert mech.mobility(flat).freedoms == 2
    assert mech.hybrid_evaluator()(flat, np.zeros(3), np.zeros(3)).shape == (3,)
    assert mech.hybrid_dynamics(flat, np.zeros(3), np.zeros(3)).rank == 1
    with pytest.raises(cs.InvalidValue, match=r"loop pin: .: misses closure"):
        mech.hybrid_evaluator()(flat + 0.1, np.zeros(3), np.zeros(3))
    with pytest.raises(cs.NonFinite):
        mech.hybrid_evaluator()(flat * np.nan, np.zeros(3), np.zeros(3))


@contextmanager
def without_lines():
    """Ask closed mechanisms by numbers within the block."""
    kept = closed_lines._found_line, closure.chains_in
    closed_lines._found_line = lambda *_: None
    closure.chains_in = lambda mech, chains, q: chains_at(mech.tree, chains, q)
    try:
        yield
    finally:
        closed_lines._found_line, closure.chains_in = kept


@pytest.mark.parametrize("name", ["four_bar", "five_bar", "slider_crank", "three_rrr", "two_arms", "stewart_platform"])
def test_chains_in_machine_code_are_those_by_numbers(name):
    """Open postures too, one by one and in rows; with other numbers the same code answers."""
    mech = getattr(library, name)()
    rng = np.random.default_rng(0)
    loop = mech.loops[0]
    longer = mech.with_parameters({f"{loop.name}.pose_a": loop.pose_a + 0.1 * np.eye(4, k=3)})
    for asked in (mech, longer):
        chains = closure.chains_of(asked)
        line = loop_lines._line(asked, chains)
        line.batch_caller(numbers_of(asked), 10**6)
        line.caller(numbers_of(asked), False, 10**6)
        for count in (1, 3, 40):
            q = rng.normal(size=(count, asked.n))
            found, want = chains_in(asked, chains, q), chains_at(asked.tree, chains, q)
            for a, b in zip(found, want, strict=True):
                for part in ("R", "p", "w", "v"):
                    assert_close(getattr(a, part), getattr(b, part), 1e-13)
                assert_close(a.slopes(), b.slopes(), 1e-12)
        assert ("chains", "one") in asked.memo and ("chains", "rows") in asked.memo
    if loop.pose_a[0, 3]:  # a zero folds
        assert mech.memo["chain line"] is longer.memo["chain line"]


def test_chains_are_not_built_before_they_pay(monkeypatch):
    """300 rows of a loop of 24 joints, of a millisecond, waited for two seconds of building; so did 40 one by one."""
    tree = library.chain(24)
    mech = tree.replace(loops=[cs.Loop(tree.links[-1].name, None, None, [1.0, 0.0, 0.0], "position")])
    monkeypatch.setattr(loop_lines, "is_kept", lambda *_: False)
    monkeypatch.setattr(loop_lines, "_lines", {})
    q, chains = np.random.default_rng(0).normal(size=(300, mech.n)), closure.chains_of(mech)
    chains_in(mech, chains, q)
    for row in q[:100]:
        chains_in(mech, chains, row[None])
    assert ("chains", "rows") not in mech.memo and ("chains", "one") not in mech.memo


def test_a_projection_in_machine_code_is_that_by_numbers():
    mech, q, qd = state("five_bar", 21)
    drifted = q + 1e-6 * np.array([1.0, -2.0, 0.5, 1.0])
    to_q, to_qd = np.empty(4), np.empty(4)
    close = closed_lines.prepared(mech, "forward", "shut")
    assert close(drifted, qd, to_q, to_qd) == 0
    with without_lines():
        want = shut(mech.with_drive(active=[]), drifted, qd)
    assert_close(to_q, want[0], 1e-13)
    assert_close(to_qd, want[1], 1e-12)
    assert np.abs(mech.closure(to_q)).max() < 1e-10
    assert close(drifted + 0.1, qd, to_q, to_qd) != 0


@pytest.mark.slow
def test_a_long_chain_with_a_coupling_is_answered_by_its_line_once_that_pays():
    """Its evaluator, and the first of some hundred samples, failed as too large to be written down."""
    mech = cs.library.pendulum(13).replace(loops=[cs.Coupling("joint2", "joint1", 2.0)])
    q, qd = np.full(13, 0.1), np.full(13, 0.2)
    q[1], qd[1] = 0.2, 0.4
    u = np.linspace(-1.0, 1.0, 13)
    expected = mech.hybrid_dynamics(q, qd, u)
    assert_close(mech.hybrid_evaluator()(q, qd, u), expected.y, 1e-12)
    B = np.delete(np.eye(13), 1, axis=1)
    B[1, 0] = 2.0
    load = B.T @ (u - mech.bias(q, qd))
    assert_close(expected.y, B @ np.linalg.solve(B.T @ mech.mass_matrix(q) @ B, load), 1e-10)
    evaluate = mech.hybrid_evaluator()
    for _ in range(5000):
        if closed_lines.is_built(mech, "own", "dynamics"):
            break
        mech.hybrid_dynamics(q, qd, u)
    else:
        pytest.fail("5000 samples do not pay for a line")
    for found in (mech.hybrid_dynamics(q, qd, u).y, evaluate(q, qd, u)):
        assert_close(found, expected.y, 1e-11)
