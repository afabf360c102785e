"""Mechanisms of symbols: what their methods write down has the values of the same methods on floats."""

from __future__ import annotations

import numpy as np
import pytest

from cstormpy.dynamics.tracing import TooLarge, operations_of
from cstormpy.errors import InvalidType, InvalidValue
from cstormpy.graph import Graph
from cstormpy.graph.arrays import symbols
from cstormpy.graph.derivatives import tangents
from cstormpy.graph.nodes import INPUT, TABLE, Node, alive
from cstormpy.linkage.tables import Form, tables_of
from cstormpy.mechanism import library
from cstormpy.mechanism.symbolic import SymbolicMechanism

MECHANISMS = {
    "acrobot": library.acrobot(),
    "branched": library.branched_acrobot(),
    "arm": library.arm7(),
    "lossy": library.puma560().with_parameters({"joint2.damping": 0.4, "joint3.friction": 0.2}),
}


def values_of(written, given):
    """Return the values of nodes, for arrays by the names of the inputs."""
    array = np.asarray(symbols(written))
    known = {}
    for node in alive(array.ravel()):
        if node.primitive is INPUT:
            known[node.index] = np.ravel(given[node.data[0]])[node.data[1]]
        elif node.primitive is TABLE:
            name, first, count = node.data
            known[node.index] = np.ravel(given[name])[first : first + count]
        else:
            known[node.index] = node.primitive.value(*(known[a.index] if isinstance(a, Node) else a for a in node.args))
    return np.array([known[x.index] if isinstance(x, Node) else x for x in array.ravel()]).reshape(array.shape)


def numbers_of(mech):
    tables = tables_of(mech)
    return {"T": tables.T, "base_inertia": tables.base_inertia}


def written_for(mech):
    """Return a mechanism of symbols, and symbols for q, q̇ and u."""
    graph = Graph()
    made = SymbolicMechanism(mech, lambda table, k: graph.input(table, k, ordinary=True), lambda: mech.links)
    return made, [symbols(graph.inputs(name, mech.n)) for name in ("q", "qd", "u")]


QUESTIONS = {
    "hybrid dynamics": lambda m, q, qd, u: m.hybrid_dynamics(q, qd, u).qdd,
    "with the first joint active": lambda m, q, qd, u: (
        m.with_drive(actuated=m.names, active=m.names[:1]).hybrid_dynamics(q, qd, u).y
    ),
    "under wrenches": lambda m, q, qd, u: m.hybrid_dynamics(q, qd, u, wrench=np.ones((len(m.names), 6))).y,
    "on a moving base": lambda m, q, qd, u: m.inverse_dynamics(q, qd, u, base=(np.ones(6), np.arange(6.0))),
    "under another gravity": lambda m, q, qd, u: m.with_gravity([1.0, 2.0, 3.0]).gravity_load(q),
    "evaluator": lambda m, q, qd, u: m.hybrid_evaluator()(q, qd, u),
    "inverse dynamics": lambda m, q, qd, u: m.inverse_dynamics(q, qd, u),
    "forward dynamics": lambda m, q, qd, u: m.forward_dynamics(q, qd, u),
    "bias": lambda m, q, qd, u: m.bias(q, qd),
    "gravity load": lambda m, q, qd, u: m.gravity_load(q),
    "mass matrix": lambda m, q, qd, u: m.mass_matrix(q),
    "mass matrix at rest": lambda m, q, qd, u: m.mass_matrix(np.zeros(m.n)),
    "energy": lambda m, q, qd, u: np.array(m.energy(q, qd)),
    "centre of mass": lambda m, q, qd, u: m.center_of_mass(q),
    "momentum": lambda m, q, qd, u: m.momentum(q, qd),
    "kinematics": lambda m, q, qd, u: m.forward_kinematics(q),
    "jacobian": lambda m, q, qd, u: m.jacobian(q, m.n - 1),
    "jacobian's rate": lambda m, q, qd, u: m.jacobian_rate(q, qd, m.n - 1),
    "jacobian's derivative": lambda m, q, qd, u: m.jacobian_derivative(q, m.n - 1),
    "sensitivities": lambda m, q, qd, u: m.hybrid_sensitivity(q, qd, u).dy_dq,
    "along a direction": lambda m, q, qd, u: m.hybrid_jvp(q, qd, u, q, qd, u)[1],
    "against a gradient": lambda m, q, qd, u: np.array(m.hybrid_vjp(q, qd, u, q)[1:]),
}


@pytest.mark.parametrize("name", MECHANISMS)
@pytest.mark.parametrize("question", QUESTIONS)
def test_what_is_written_down_has_the_values_of_the_method(name, question):
    mech, ask = MECHANISMS[name], QUESTIONS[question]
    state = np.random.default_rng(3).normal(size=(3, mech.n))
    symbolic, signals = written_for(mech)
    found = values_of(ask(symbolic, *signals), numbers_of(mech) | dict(zip(("q", "qd", "u"), state, strict=True)))
    expected = ask(mech, *state)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-13 * max(1.0, abs(np.asarray(expected)).max()))


def test_it_depends_on_the_numbers_of_the_mechanism():
    """They were constants: what was written down had no derivative to a mass."""
    mech = library.acrobot().with_parameters({"forearm.mass": 1.3})
    symbolic, (q, qd, u) = written_for(mech)
    written = symbolic.inverse_dynamics(q, qd, u)
    state = dict(zip(("q", "qd", "u"), np.random.default_rng(4).normal(size=(3, 2)), strict=True))

    def values(mass):
        return mech.with_parameters({"forearm.mass": mass})

    h = 1e-3  # linear in the mass, so that differences are exact but for rounding
    sides = [numbers_of(values(1.3 + side)) for side in (h, -h)]
    torques = [values(1.3 + side).inverse_dynamics(*state.values()) for side in (h, -h)]
    slopes = {name: np.ravel(sides[0][name] - sides[1][name]) / (2 * h) for name in sides[0]}
    inputs = [x for x in alive(list(written)) if x.primitive is INPUT and x.data[0] in slopes]
    changes = tangents(list(written), {x: float(slopes[x.data[0]][x.data[1]]) for x in inputs})
    found = values_of(changes, numbers_of(mech) | state)
    np.testing.assert_allclose(found, (torques[0] - torques[1]) / (2 * h), atol=1e-10)


def test_a_form_with_losses_holds_without_them():
    """The derivative to a damping of 0 is that of a form in which there is some."""
    mech = library.acrobot().with_parameters({"elbow.damping": 0.1})
    still = mech.with_parameters({"elbow.damping": 0.0})
    assert Form.of(mech).fits(still) and not Form.of(still).fits(mech)
    symbolic, (q, qd, u) = written_for(mech)
    state = dict(zip(("q", "qd", "u"), np.random.default_rng(5).normal(size=(3, 2)), strict=True))
    found = values_of(symbolic.inverse_dynamics(q, qd, u), numbers_of(still) | state)
    np.testing.assert_allclose(found, still.inverse_dynamics(*state.values()), atol=1e-13)


def test_other_names_or_joints_are_another_form():
    mech = library.acrobot()
    assert Form.of(mech).fits(mech.with_gravity([0.0, -3.7, 0.0]))
    assert not Form.of(mech).fits(mech.with_gravity([0.1, -3.7, 0.0]))  # a zero folds
    assert not Form.of(mech).fits(library.pendulum(2))
    assert not Form.of(mech).fits(mech.with_drive(active=["elbow"]))


def test_a_large_mechanism_is_refused_before_anything_is_written_down():
    symbolic, (q, qd, u) = written_for(library.chain(20))
    with pytest.raises(TooLarge, match="has 20 joints, and it is written down for at most 14"):
        symbolic.inverse_dynamics(q, qd, u)
    small, (q, qd, u) = written_for(library.chain(10))
    with pytest.raises(TooLarge, match="its sensitivities are written down for at most 7"):
        small.hybrid_sensitivity(q, qd, u)


def test_a_closed_mechanism_of_many_short_legs_is_written_down():
    """A Stewart platform's tree of 24 coordinates branches at its base: it costs less than a chain of twelve."""
    mech = library.stewart_platform()
    symbolic, (q, qd, u) = written_for(mech)
    assert np.asarray(symbolic.hybrid_dynamics(q, qd, u).y).shape == (mech.n,)  # TooLarge before
    chain = library.chain(20)
    assert operations_of(tables_of(mech.tree).N, True) < operations_of(tables_of(chain).N, True) / 2


def test_a_vanished_pivot_is_a_status():
    """What is written down does not raise, and tells that nothing of it counts."""
    mech = library.acrobot().with_parameters({"forearm.mass": 1.3})
    symbolic, (q, qd, u) = written_for(mech)
    symbolic.hybrid_dynamics(q, qd, u)
    state = {name: np.ones(2) for name in ("q", "qd", "u")}
    status = q[0].graph.status
    assert values_of(status, numbers_of(mech) | state) == 0.0
    empty = mech.with_parameters({"forearm.mass": 0.0, "forearm.inertia": np.zeros((3, 3))})
    assert values_of(status, numbers_of(empty) | state) == 1.0
    with pytest.raises(InvalidValue, match="fails for all numbers"):  # where the zeros fold
        symbolic, signals = written_for(empty)
        symbolic.hybrid_dynamics(*signals)


def test_no_other_numbers_while_a_method_is_written_down():
    symbolic, _ = written_for(library.acrobot())
    with pytest.raises(InvalidType, match="with_parameters while a method is written down"):
        symbolic.with_parameters({"forearm.mass": 2.0})
