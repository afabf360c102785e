"""Straight lines of mechanisms: the numbers of the kernels on floats, whatever is asked, for one sample and rows."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_mechanisms import random_loads, random_mechanism, random_state

import cstormpy as cs
from cstormpy.dynamics import lines
from cstormpy.dynamics.checked_arguments import read_samples
from cstormpy.dynamics.lines import filled, line_for
from cstormpy.dynamics.tracing import Signature, hybrid_routine
from cstormpy.errors import NonFinite, SingularInertia
from cstormpy.graph.machine import Machine
from cstormpy.kernels.entries import Entry
from cstormpy.linkage.tables import tables_of
from cstormpy.mechanism import library
from cstormpy.reporting import notice_once

SAMPLES = 11


@pytest.fixture
def always(monkeypatch):
    """Take the line whatever it costs to build, and keep none on disk."""
    monkeypatch.setattr(lines.Line, "_pays", lambda self, kind, eager: True)


@pytest.fixture
def never(monkeypatch):
    """Take the kernels with loops."""
    monkeypatch.setattr(lines.Line, "machine", lambda self, kind, samples, eager=False: None)


def loops(monkeypatch, ask):
    """Return what the kernels with loops answer."""
    with monkeypatch.context() as patch:
        patch.setattr(lines.Line, "machine", lambda self, kind, samples, eager=False: None)
        return ask()


def near(found, expected):
    """Compare to 1e-13 of the largest number."""
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-13 * max(1.0, abs(expected).max()))


@settings(max_examples=6)
@given(seed=st.integers(0, 2**32 - 1), links=st.integers(1, 5), loaded=st.booleans(), based=st.booleans())
def test_lines_are_the_kernels_on_floats(seed, links, loaded, based):
    """Values and all sensitivities, to 1e-13 of the largest number, with loads and a moving base or without."""
    rng = np.random.default_rng(seed)
    mech = random_mechanism(rng, links)
    if mech.n == 0:
        return
    q, qd, u = random_state(rng, mech, SAMPLES)
    loads = random_loads(rng, mech, SAMPLES, wrench=loaded, base=based)
    patch = pytest.MonkeyPatch()
    expected = loops(patch, lambda: mech.hybrid_sensitivity(q, qd, u, **loads, to_base=True))
    values = loops(patch, lambda: mech.hybrid_dynamics(q, qd, u, **loads))
    samples = read_samples(mech, {"q": q, "qd": qd, "u": u}, **loads)
    n = mech.n
    with patch.context() as always:
        always.setattr(lines.Line, "_pays", lambda self, kind, eager: True)
        signature = Signature.of_samples(mech, samples, sensitivities=True, to_base=True)
        y, columns, of_base = np.empty((SAMPLES, n)), np.empty((SAMPLES, 3, n, n)), np.empty((SAMPLES, n, 12))
        assert filled(mech, "own", signature, samples, (y, columns, of_base), 1)
        near(y, expected.y)
        for k, block in enumerate((expected.dy_dq, expected.dy_dqd, expected.dy_du)):
            near(columns[:, k], block)
        near(of_base, expected.dy_dbase)
        signature = Signature.of_samples(mech, samples)
        assert filled(mech, "own", signature, samples, (y,), 2)
        near(y, values.y)


@pytest.mark.parametrize("name", ["acrobot", "branched_acrobot", "puma560", "planar_2r"])
def test_a_sample_is_a_row(always, name):
    """One sample, some, and many, of the library's mechanisms: the same machine operations, in lanes or alone."""
    mech = library.get(name) if hasattr(library, "get") else getattr(library, name)()
    rng = np.random.default_rng(1)
    q, qd, u = rng.normal(size=(3, 37, mech.n))
    many = mech.hybrid_dynamics(q, qd, u)
    for count in (2, 7, 8, 9):
        near(mech.hybrid_dynamics(q[:count], qd[:count], u[:count]).y, many.y[:count])
    one = mech.hybrid_dynamics(q[5], qd[5], u[5])
    near(one.y, many.y[5])
    near(one.qdd, many.qdd[5])
    near(one.tau, many.tau[5])
    near(mech.hybrid_dynamics(list(q[5]), qd[5], u[5]).y, many.y[5])


@pytest.mark.parametrize("rows", [1, 3])
@pytest.mark.parametrize("sensitivities", [False, True])
def test_no_loops_are_compiled_where_a_line_is_built_in_less(monkeypatch, rows, sensitivities):
    """Where numba was loaded, the first question about a small mechanism had kernels compiled for twenty seconds."""
    import cstormpy.kernels.compiling  # noqa: F401

    made = []
    monkeypatch.setattr(Entry, "is_ready", lambda self: False)
    monkeypatch.setattr(Entry, "load", lambda self: pytest.fail(f"{self.kept_as} is compiled"))
    monkeypatch.setattr(lines, "is_kept", lambda name, key: False)
    monkeypatch.setattr(lines, "machine_for", lambda name, key, text: made.append(name) or Machine(text()))
    monkeypatch.setattr(lines, "_lines", {})
    monkeypatch.setattr(lines._Spent, "seconds", 5.0)
    mech = cs.library.pendulum(2)
    q, qd, u = np.random.default_rng(0).normal(size=(3, rows, 2))
    if rows == 1:
        q, qd, u = q[0], qd[0], u[0]
    (mech.hybrid_sensitivity if sensitivities else mech.hybrid_dynamics)(q, qd, u)
    assert made


def test_loops_that_are_at_hand_answer_a_single_question(monkeypatch):
    """Building a line for one sample takes longer than asking them, once numba is loaded."""
    import cstormpy.kernels.compiling  # noqa: F401

    monkeypatch.setattr(Entry, "is_ready", lambda self: True)
    monkeypatch.setattr(lines, "is_kept", lambda name, key: False)
    monkeypatch.setattr(lines, "machine_for", lambda name, key, text: pytest.fail("a line is built"))
    monkeypatch.setattr(lines, "_lines", {})
    mech = cs.library.pendulum(2)
    assert mech.hybrid_dynamics([0.1, 0.2], [0.0, 0.0], [0.0, 0.0]).y.shape == (2,)


def test_a_long_line_of_one_sample_waits_until_it_pays(monkeypatch):
    """Trees of more than 14 joints had none at all; and none is to be built for the first question about one."""
    monkeypatch.setattr(Entry, "is_ready", lambda self: True)
    monkeypatch.setattr(lines, "is_kept", lambda name, key: False)
    made = []
    monkeypatch.setattr(lines, "machine_for", lambda name, key, text: made.append(name) or Machine("; nothing"))
    line = lines.Line(tables_of(library.tree(4, links=15)), Signature())
    assert line.machine("one", 1) is None
    assert line.machine("one", 10**7) is not None
    assert made == [line._file("one")]


def test_a_prepared_function_takes_the_line_once_that_pays(monkeypatch):
    """Whoever had a function prepared kept the loops for ever, however often he called it."""
    monkeypatch.setattr(lines, "_lines", {})
    monkeypatch.setattr(lines, "_LOOK", 3)
    monkeypatch.setattr(lines.Line, "_pays", lambda self, kind, eager: self._asked[kind] > 4)
    mech, asked = library.acrobot().with_drive(active=()), []
    q, qd, tau = random_state(np.random.default_rng(0), mech)
    call = lines.ready(mech, Signature(), np.zeros(0), lambda: lambda *arrays: asked.append(arrays) or 0)
    y = np.full(2, np.nan)
    for _ in range(6):
        assert call(q, qd, tau, y) == 0
    assert len(asked) == 6
    assert np.isnan(y).all()
    assert call(q, qd, tau, y) == 0
    assert len(asked) == 6
    monkeypatch.setattr(lines.Line, "_pays", lambda self, kind, eager: True)
    near(mech.inverse_dynamics(q, qd, y), tau)


@pytest.mark.slow
def test_a_line_in_sections_is_the_kernels_on_floats(always, monkeypatch):
    """A tree of some twenty joints, whose line is cut."""
    from cstormpy.graph.module import text_for_rows

    mech = random_mechanism(np.random.default_rng(5), 28, branching=0.6)
    tables = tables_of(mech)
    routine = hybrid_routine(tables.T, tables.N, Signature())
    assert routine.operations > 4000 and "_section2(" in text_for_rows(routine)
    q, qd, u = random_state(np.random.default_rng(6), mech, SAMPLES)
    expected = loops(monkeypatch, lambda: mech.hybrid_dynamics(q, qd, u))
    near(mech.hybrid_dynamics(q, qd, u).y, expected.y)


@pytest.mark.slow
def test_derivatives_in_sections_are_those_of_the_kernels_on_floats(always, monkeypatch):
    """Two ball joints, whose line is cut where its rows of results are long."""
    from cstormpy.graph import routine as graph_routine
    from cstormpy.graph.module import text_for_rows

    monkeypatch.setattr(graph_routine, "LONG", 2000)
    mech = random_mechanism(np.random.default_rng(7), 2, ("spherical",))
    tables = tables_of(mech)
    routine = hybrid_routine(tables.T, tables.N, Signature(sensitivities=True))
    assert routine.operations > 2000 and "_section3(" in text_for_rows(routine)
    q, qd, u = random_state(np.random.default_rng(8), mech, SAMPLES)
    expected = loops(monkeypatch, lambda: mech.hybrid_sensitivity(q, qd, u))
    found = mech.hybrid_sensitivity(q, qd, u)
    near(found.columns, expected.columns)
    near(found.y, expected.y)


def test_what_can_wait_is_computed_when_it_is_needed():
    """Of a tree of many branches fewer numbers are alive at once, and each is still computed before it is used."""
    from cstormpy.graph.nodes import Node, in_late_order

    def most_alive(nodes):
        computed = {node.index for node in nodes}
        used = [(a.index, k) for k, node in enumerate(nodes) for a in node.args if isinstance(a, Node)]
        last = {index: k for index, k in used if index in computed}
        ends = np.bincount(list(last.values()), minlength=len(nodes))
        begins = np.array([node.index in last for node in nodes])
        return (begins.cumsum() - ends.cumsum()).max()

    tables = tables_of(library.tree(4))
    routine = hybrid_routine(tables.T, tables.N, Signature())
    late = in_late_order(routine.nodes, routine.late)
    assert sorted(node.index for node in late) == [node.index for node in routine.nodes]
    place = {node.index: k for k, node in enumerate(late)}
    assert all(place[a.index] < place[node.index] for node in late for a in node.args if isinstance(a, Node))
    computed = [[x for x in order if x.args] for order in (late, routine.nodes)]
    assert most_alive(computed[0]) < 0.8 * most_alive(computed[1])


def test_numbers_of_a_mechanism_are_no_part_of_its_line(always):
    """Another mass takes the same code; a mass that is one, and folds, takes another."""
    mech = library.acrobot()
    tables = tables_of(mech)
    link = mech.links[0].name
    heavier = mech.with_parameters({f"{link}.mass": 1.234})
    lighter = mech.with_parameters({f"{link}.mass": 0.777})
    line = line_for(tables_of(heavier), Signature())
    assert line_for(tables_of(lighter), Signature()) is line
    assert line_for(tables, Signature()).machine("one", 1) is line_for(tables, Signature()).machine("one", 1)
    x = np.array([0.3, -0.2]), np.array([1.0, 2.0]), np.array([0.0, 1.0])
    assert abs(heavier.hybrid_dynamics(*x).y - lighter.hybrid_dynamics(*x).y).max() > 1e-3


def test_what_is_wrong_with_a_sample_is_told_as_by_the_loops(always):
    """A passive joint that moves no inertia, in one row of many."""
    massless = cs.Mechanism(
        [cs.Link("arm", None, cs.Revolute([0, 0, 1]), np.eye(4), 0.0, np.zeros(3), np.zeros((3, 3)))], actuated=[]
    )
    with pytest.raises(SingularInertia, match="joint 'arm': moves no inertia"):
        massless.hybrid_dynamics(np.zeros(1), np.zeros(1), np.zeros(1))
    with pytest.raises(SingularInertia, match="in row 0"):
        massless.hybrid_dynamics(np.zeros((20, 1)), np.zeros((20, 1)), np.zeros((20, 1)))


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("count", [3, 8, 37])
@pytest.mark.parametrize("ask", ["hybrid_dynamics", "hybrid_sensitivity", "inverse_dynamics"])
def test_a_number_that_changes_nothing_must_be_finite_in_a_batch_too(always, ask, count, bad):
    """Without gravity nothing depends on the first angle; the line looks at it all the same, and no scan before it."""
    links = library.acrobot().links
    mech = cs.Mechanism(links, gravity=(0.0, 0.0, 0.0))
    q, qd, u = np.random.default_rng(0).normal(size=(3, count, 2))
    getattr(mech, ask)(q, qd, u)
    q[count - 1, 0] = bad
    with pytest.raises(NonFinite, match=rf"^q: expected finite numbers, got {bad} at index \({count - 1}, 0\)"):
        getattr(mech, ask)(q, qd, u)


def test_large_numbers_whose_sum_is_not_finite_are_no_fault(always):
    """The check of all given numbers at once may be mistaken; then each is looked at."""
    slides = [cs.Link(name, None, cs.Prismatic([1, 0, 0]), mass=1e6) for name in ("left", "right")]
    mech = cs.Mechanism(slides, active=[])
    u = np.full((9, 2), 1.7e308)
    y = mech.hybrid_dynamics(np.zeros((9, 2)), np.zeros((9, 2)), u).y
    np.testing.assert_allclose(y, u / 1e6, rtol=1e-15)


def test_large_angles_keep_their_digits(always):
    """Beyond a million turns the reduction by parts of π is left to the library, for the group that holds one."""
    mech = library.acrobot()
    rng = np.random.default_rng(3)
    q, qd, u = rng.normal(size=(3, 16, 2))
    q[3, 0] += 2 * np.pi * 1e7
    exact = np.array(mech.with_drive(active=()).mass_matrix(q))
    tau = mech.inverse_dynamics(q, qd, u) - mech.inverse_dynamics(q, qd, np.zeros_like(u))
    np.testing.assert_allclose(tau, np.einsum("kij,kj->ki", exact, u), rtol=1e-9, atol=1e-9)


def test_a_mechanism_that_has_answered_is_pickled(always):
    mech = library.acrobot()
    x = np.zeros(2), np.zeros(2), np.zeros(2)
    y = mech.hybrid_dynamics(*x).y
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(mech)).hybrid_dynamics(*x).y, y)


def test_planar_mechanisms_fold():
    """An acrobot needs no more than 160 operations, where its three-dimensional kernel has some 700."""
    tables = tables_of(library.acrobot())
    assert hybrid_routine(tables.T, tables.N, Signature()).operations <= 160


def test_lines_are_kept_and_damaged_ones_made_anew(tmp_path, monkeypatch):
    """A file that is cut short, of another content, or no object code at all is not run."""
    from cstormpy.graph import code_cache
    from cstormpy.graph.machine import Machine

    monkeypatch.setenv("CSTORMPY_CACHE_DIR", str(tmp_path / "code"))
    text = "define i64 @f() {\n  ret i64 7\n}\n"
    made = code_cache.machine_for("f", b"key", lambda: text)
    (file,) = (tmp_path / "code").rglob("*.object")
    assert code_cache.is_kept("f", b"key") and not code_cache.is_kept("f", b"other")
    again = code_cache.machine_for("f", b"key", lambda: pytest.fail("it is kept"))
    assert again.code == made.code and again.address("f")
    content = file.read_bytes()
    for damaged in (b"", content[:100], content[:-1], content[:-1] + b"x", b"\x80\x04." + content, b"MZ" * 1000):
        file.write_bytes(damaged)
        assert isinstance(code_cache.machine_for("f", b"key", lambda: text), Machine)
        assert file.read_bytes() == content


def test_what_nobody_has_used_for_long_is_removed(tmp_path, monkeypatch):
    """Each change of a source leaves the files of the one before it behind."""
    import os

    from cstormpy.graph import code_cache

    monkeypatch.setenv("CSTORMPY_CACHE_DIR", str(tmp_path / "code"))
    text = "define i64 @h() {{\n  ret i64 {}\n}}\n"
    code_cache.machine_for("h", b"1", lambda: text.format(1))
    (old,) = (tmp_path / "code").rglob("*.object")
    os.utime(old, (0, 0))
    code_cache._remove_old.cache_clear()
    code_cache.machine_for("h", b"2", lambda: text.format(2))
    (left,) = (tmp_path / "code").rglob("*.object")
    assert left != old
    os.utime(left, (0, 0))
    code_cache.machine_for("h", b"2", lambda: pytest.fail("it is kept"))
    assert left.stat().st_mtime > 1e9


def test_without_source_files_no_line_is_kept(tmp_path, monkeypatch, capsys):
    """An installation of compiled modules alone took the code of the version before for its own."""
    from cstormpy.graph import code_cache

    monkeypatch.setattr(code_cache, "_SOURCES", ("nowhere",))
    assert code_cache._digest() is None
    monkeypatch.setattr(code_cache, "_IMPORTED", None)
    monkeypatch.setenv("CSTORMPY_CACHE_DIR", str(tmp_path / "code"))
    assert code_cache.machine_for("k", b"key", lambda: "define i64 @k() {\n  ret i64 7\n}\n").address("k")
    assert not code_cache.is_kept("k", b"key") and not (tmp_path / "code").exists()


def test_a_folder_that_cannot_be_written_is_said_once(tmp_path, monkeypatch, capsys):
    from cstormpy.graph import code_cache

    notice_once.cache_clear()
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("CSTORMPY_CACHE_DIR", str(tmp_path / "file" / "code"))
    for _ in range(2):
        assert code_cache.machine_for("g", b"key", lambda: "define i64 @g() {\n  ret i64 7\n}\n").address("g")
    assert capsys.readouterr().err.count("cannot be kept") <= 1


ASKED = {
    "hybrid dynamics": lambda mech, q, qd, u: mech.hybrid_dynamics(q, qd, u).qdd,
    "torques": lambda mech, q, qd, u: mech.hybrid_dynamics(q, qd, u).tau,
    "evaluator": lambda mech, q, qd, u: mech.hybrid_evaluator()(q, qd, u),
    "inverse dynamics": lambda mech, q, qd, u: mech.inverse_dynamics(q, qd, u),
    "forward dynamics": lambda mech, q, qd, u: mech.forward_dynamics(q, qd, u),
    "sensitivity": lambda mech, q, qd, u: mech.hybrid_sensitivity(q, qd, u).dy_dq,
    "mass matrix": lambda mech, q, qd, u: mech.mass_matrix(q),
    "energy": lambda mech, q, qd, u: np.array(mech.energy(q, qd)),
    "poses": lambda mech, q, qd, u: mech.forward_kinematics(q),
    "joint wrenches": lambda mech, q, qd, u: mech.joint_wrenches(q, qd, u),
    "jacobian": lambda mech, q, qd, u: mech.jacobian(q, mech.links[-1].name),
    "jacobian rate": lambda mech, q, qd, u: mech.jacobian_rate(q, qd, mech.links[-1].name),
    "centre of mass": lambda mech, q, qd, u: mech.center_of_mass(q),
}


@pytest.mark.parametrize("asked", ASKED)
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_methods_of_a_mechanism_take_symbols(asked, seed):
    """What a law asks its mechanism is written down by the kernels themselves."""
    from test_graph import evaluate

    from cstormpy.graph import Graph
    from cstormpy.graph.arrays import symbols

    rng = np.random.default_rng(seed)
    mech = random_mechanism(rng, 4, kinds=("revolute", "prismatic", "screw", "fixed"))
    n = mech.n
    values = rng.normal(size=3 * n)
    nodes = Graph().inputs("x", 3 * n)
    found = ASKED[asked](mech, *(symbols(nodes[k * n : (k + 1) * n]) for k in range(3)))
    expected = np.asarray(ASKED[asked](mech, *(values[k * n : (k + 1) * n] for k in range(3))))
    assert np.shape(found) == expected.shape
    near(np.reshape([evaluate(x, nodes, values) for x in np.ravel(np.asarray(found))], expected.shape), expected)


def test_symbols_of_a_wrong_shape_are_refused():
    from cstormpy.errors import ShapeError
    from cstormpy.graph import Graph
    from cstormpy.graph.arrays import symbols

    with pytest.raises(ShapeError, match=r"q: expected one sample, shape \(2,\), got \(3,\) symbols"):
        library.acrobot().mass_matrix(symbols(Graph().inputs("x", 3)))
    with pytest.raises(ShapeError, match=r"got \(2, 2\) symbols; a batch of symbols is asked row by row"):
        library.acrobot().mass_matrix(symbols(Graph().inputs("x", 4)).reshape(2, 2))


@pytest.mark.slow
@settings(max_examples=3)
@given(seed=st.integers(0, 2**32 - 1), links=st.integers(1, 4), based=st.booleans())
def test_kinematics_and_inertia_have_lines_too(seed, links, based):
    """Poses, Jacobians, inertia, energy, joints' wrenches: the kernels' numbers, one sample, some, and many rows."""
    rng = np.random.default_rng(seed)
    mech = random_mechanism(rng, links)
    if mech.n == 0:
        return
    link = mech.links[-1].name
    for count in (1, 3, SAMPLES):
        q, qd, _ = random_state(rng, mech, count)
        base = random_loads(rng, mech, count, wrench=False, base=based).get("base")
        loads = random_loads(rng, mech, count, base=based)

        def answers(q=q, qd=qd, base=base, loads=loads):
            found = mech.inertial(q, qd, base)
            parts = [getattr(found, name) for name in found.__dataclass_fields__]
            parts += [mech.jacobian(q, link), mech.jacobian_rate(q, qd, link), mech.joint_wrenches(q, qd, q, **loads)]
            return [mech.forward_kinematics(q), *parts]

        expected = loops(pytest.MonkeyPatch(), answers)
        with pytest.MonkeyPatch().context() as always:
            always.setattr(lines.Line, "_pays", lambda self, kind, eager: True)
            always.setattr(Entry, "load", lambda self: pytest.fail(f"{self.kept_as} is asked"))
            for found, wanted in zip(answers(), expected, strict=True):
                near(found, wanted)


def test_a_goal_is_found_without_the_loops(monkeypatch):
    """`CONTROLLER(acrobot, "energy")` had kernels compiled for half a minute, and loaded numba in every script."""
    monkeypatch.setattr(Entry, "load", lambda self: pytest.fail(f"{self.kept_as} is asked"))
    monkeypatch.setattr(lines, "_lines", {})
    monkeypatch.setattr(lines._Spent, "seconds", 0.0)
    monkeypatch.setattr(Entry, "is_ready", lambda self: False)
    law = cs.control.law("energy", cs.library.acrobot())
    assert np.isfinite(law(0.0, np.array([-1.2, 0.3]), np.zeros(2))).all()


@pytest.mark.parametrize("compiled", [False, True])
def test_a_line_stands_in_for_loops_that_are_not_there(monkeypatch, compiled):
    """Above the size for which a line pays it answers where compiling the loops would take longer; else they do."""
    monkeypatch.setitem(lines.LARGEST, ("one", False), 1)
    monkeypatch.setattr(lines.Line, "_has_loops", lambda self, kind: compiled)
    monkeypatch.setattr(lines._Spent, "seconds", 0.0)
    mech = library.acrobot().with_parameters({"forearm.mass": 1.23})
    monkeypatch.setattr(lines, "_lines", {})
    line = line_for(tables_of(mech), Signature())
    assert (line.machine("one", 1) is None) == compiled
    huge = library.chain(60)
    assert line_for(tables_of(huge), Signature(sensitivities=True)).machine("one", 10**9) is None
