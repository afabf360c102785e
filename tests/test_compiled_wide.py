"""Wide signals in the compiled engine: vectors of hundreds of numbers, large matrices, long states."""

from __future__ import annotations

import numpy as np
import pytest

import cstormpy as cs
from cstormpy.errors import DiagramError
from cstormpy.graph import Graph, code_cache
from cstormpy.graph.arrays import symbols
from cstormpy.graph.derivatives import tangents
from cstormpy.graph.nodes import TABLE, alive
from cstormpy.graph.products import product
from cstormpy.simulation.compiled import program

N = 100
RNG = np.random.default_rng(7)
STABLE = -np.eye(N) + 0.3 * RNG.normal(size=(N, N)) / np.sqrt(N)
PIXELS = RNG.normal(size=150)


def run(engine, wire):
    sim = cs.Simulation(engine=engine, live=False, progress=False)
    bd = sim.blockdiagram()
    watch = wire(bd)
    return sim.run(bd, T=0.5, dt=0.1, watch=watch), sim, bd


def image(bd):
    """A camera's picture through elementwise functions, a large GAIN from either side, and a long state."""
    picture = bd.CONSTANT(PIXELS, name="picture")
    curve = bd.FUNCTION(lambda x: np.tanh(x) * 2.0 + np.sin(x) * x**2, name="curve")
    part = bd.SLICE1((0, N, 1), name="part")
    mixed, turned = bd.GAIN(STABLE, premul=True, name="mixed"), bd.GAIN(0.1 * STABLE, name="turned")
    total, state = bd.SUM("+-", name="total"), bd.INTEGRATOR(x0=np.linspace(0.0, 1.0, N), name="state")
    bd.connect(picture, curve)
    bd.connect(curve, part)
    bd.connect(part, mixed)
    bd.connect(state, turned)
    bd.connect(mixed, total[0])
    bd.connect(turned, total[1])
    bd.connect(total, state)
    return ["curve", "total", "state"]


def state_space(bd):
    """A state space of 100 states."""
    C = np.random.default_rng(1).normal(size=(2, N))
    plant = bd.LTI_SS(A=STABLE, B=np.ones((N, 1)), C=C, x0=np.linspace(-1.0, 1.0, N), name="plant")
    bd.connect(bd.CONSTANT(0.3), plant)
    return ["plant"]


def of_users(bd):
    """A law of a user's with a large matrix that stands in his module, on either side of the vector."""
    mixed = bd.FUNCTION(lambda x: STABLE @ x - 0.2 * (x @ STABLE) + np.dot(STABLE, np.cos(x)), name="mixed")
    state = bd.INTEGRATOR(x0=np.linspace(0.0, 1.0, N), name="state")
    bd.connect(state, mixed)
    bd.connect(mixed, state)
    return ["mixed"]


@pytest.mark.parametrize("wire", [image, state_space, of_users])
def test_signals_of_hundreds_of_numbers_are_compiled(wire):
    """A signal of more than 64 numbers took the whole diagram off the compiled engine."""
    (plain, _, _), (fast, sim, bd) = run("interpreted", wire), run("compiled", wire)
    for name in plain.ynames:
        np.testing.assert_allclose(fast.signal(name), plain.signal(name), rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(fast.x, plain.x, rtol=0, atol=1e-9)
    told = str(sim.explain(bd))
    assert "traced" in told and "in Python" not in told and "numba" not in told


def test_numbers_of_a_large_matrix_stay_parameters():
    """Another matrix of the same size is another run of the same code."""
    sim = cs.Simulation(engine="compiled", live=False, progress=False)
    bd = sim.blockdiagram()
    gain = bd.GAIN(STABLE, premul=True, name="gain")
    bd.connect(bd.CONSTANT(np.ones(N)), gain)
    for matrix in (STABLE, 2.0 * STABLE):
        gain.K = matrix
        out = sim.run(bd, T=0.1, watch=["gain"])
        np.testing.assert_allclose(out.signal("gain")[0], matrix.sum(axis=1), atol=1e-13)


def test_a_large_diagram_is_linearised_exactly():
    """The derivative of a large product along a direction is a large product."""
    sim = cs.Simulation(engine="compiled", live=False, progress=False)
    bd = sim.blockdiagram()
    gain, state = bd.GAIN(STABLE, premul=True, name="gain"), bd.INTEGRATOR(x0=np.zeros(N), name="state")
    bd.connect(state, gain)
    bd.connect(gain, state)
    np.testing.assert_allclose(sim.linearize(bd).A, STABLE, atol=1e-14)


@pytest.mark.parametrize("of_rows", [False, True])
def test_derivatives_of_a_product(of_rows):
    """Along a direction of the vector, of the whole matrix, and of single numbers of it: the product rule."""
    graph, (rows, columns) = Graph(), (3, 5)
    a, da = (graph.make(TABLE, (), (name, 0, rows * columns)) for name in ("a", "da"))
    given = rows if of_rows else columns
    x, dx = graph.inputs("x", given), graph.inputs("dx", given)
    A, dA, u, du = (RNG.normal(size=size) for size in ((rows, columns), (rows, columns), given, given))
    values = {"a": A.ravel(), "da": dA.ravel(), "x": u, "dx": du}

    def value(outputs):
        """Compute nodes one by one, a product by NumPy."""
        found = {}
        for node in alive(outputs):
            args = [found[y.index] if hasattr(y, "index") else y for y in node.args]
            name = node.primitive.name
            if name == "input":
                found[node.index] = values[node.data[0]][node.data[1]]
            elif name == "table":
                found[node.index] = values[node.data[0]]
            elif name.startswith("product"):
                matrix, vector = args[0].reshape(rows, columns), np.array(args[1:])
                found[node.index] = vector @ matrix if of_rows else matrix @ vector
            elif name.startswith("of product"):
                found[node.index] = args[0][int(name.split()[-1])]
            else:
                found[node.index] = node.primitive.value(*args)
        return np.array([found[y.index] if hasattr(y, "index") else y for y in outputs])

    def times(matrix, vector):
        return vector @ matrix if of_rows else matrix @ vector

    y = product(a, (rows, columns), x, of_rows)
    both = tangents(y, {a: da, **dict(zip(x, dx, strict=True))})
    np.testing.assert_allclose(value(both), times(dA, u) + times(A, du), atol=1e-13)
    single = np.zeros((rows, columns))
    single[1, 2] = 3.0
    np.testing.assert_allclose(value(tangents(y, {graph.input("a", 7): 3.0})), times(single, u), atol=1e-13)
    assert tangents(y, {graph.input("b"): 1.0}) == [0.0] * len(y)


def test_small_matrices_are_written_out():
    """What folds and what LLVM sees as a whole stays so: only more than some hundred numbers become a loop."""
    x = symbols(Graph().inputs("x", 3))
    assert all("product" not in str(y) for y in np.eye(3) @ x)
    assert (np.eye(3) @ x)[1] is x[1]


def test_what_is_too_wide_is_named():
    """A signal of many thousand numbers is run interpreted, and the message says of which block and what to do."""
    sim = cs.Simulation(engine="compiled", live=False, progress=False)
    bd = sim.blockdiagram()
    bd.connect(bd.CONSTANT(np.zeros(20_000), name="film"), bd.NULL())
    with pytest.raises(DiagramError, match=r"film: has a signal of 20000 numbers.*engine='interpreted'"):
        sim.run(bd, T=0.1)


def test_long_vectors_compile_in_bounds(monkeypatch):
    """700 sines side by side took LLVM a minute: they are calls, and registers are chosen quickly."""
    made = []
    monkeypatch.setattr(program, "machine_for", lambda *given: made.append(given) or code_cache.machine_for(*given))
    wide = 300

    def waves(bd):
        state, wave = (
            bd.INTEGRATOR(x0=np.linspace(0.0, 1.0, wide), name="state"),
            bd.FUNCTION(lambda x: np.sin(x), name="wave"),
        )
        total, half = bd.SUM("+-", name="total"), bd.GAIN(0.5, name="half")
        spare = [bd.GAIN(float(k), name=f"spare{k}") for k in range(3)]
        for to in (wave, half, *spare):
            bd.connect(state, to)
        for each in spare:
            bd.connect(each, bd.NULL())
        bd.connect(wave, total[0])
        bd.connect(half, total[1])
        bd.connect(total, state)
        return ["total"]

    (plain, _, _), (fast, _, _) = run("interpreted", waves), run("compiled", waves)
    np.testing.assert_allclose(fast.x, plain.x, rtol=0, atol=1e-9)
    np.testing.assert_allclose(fast.signal("total"), plain.signal("total"), rtol=0, atol=1e-9)
    (name, _, text, quick), *_ = made
    assert name == "diagram" and quick
    assert "@sincos.f64(double %x) noinline" in text()


def explained(wire):
    """Return what a user is told of a diagram, which both engines run alike."""
    (plain, _, _), (fast, sim, bd) = run("interpreted", wire), run("compiled", wire)
    for name in plain.ynames:
        np.testing.assert_allclose(fast.signal(name), plain.signal(name), rtol=0, atol=1e-9)
    return str(sim.explain(bd))


def test_a_table_of_thousands_of_points_is_looked_up_by_machine_code():
    """INTERPOLATE with more than 256 points was asked in Python, and the reason named a line that is not the user's."""

    def wire(bd):
        at = np.linspace(-3.0, 3.0, 5000)
        wave = bd.WAVEFORM("sine", freq=1.0, amplitude=2.0, name="wave")
        bd.connect(wave, bd.INTERPOLATE(x=at, y=np.sin(at), name="table"))
        return ["table"]

    assert "table  output: traced" in explained(wire)


def test_a_function_is_not_blamed_for_the_jumps_of_what_it_is_given():
    """A FUNCTION behind a square wave was compiled by numba for seconds, as if it jumped itself."""

    def wire(bd):
        wave = bd.WAVEFORM("square", freq=3.0, amplitude=2.0, name="wave")
        bd.connect(wave, bd.FUNCTION(lambda x: np.tanh(x) + x**2, name="curve"))
        return ["curve"]

    assert "curve  output: traced" in explained(wire)


@pytest.mark.parametrize(
    ("function", "told"),
    [
        (lambda x: np.std(x) + np.var(x), "traced"),
        (lambda x: np.where(x[0] > 0.0, x[0], 0.0), "traced"),
        (lambda x: np.floor(x[0]), "traced"),
    ],
)
def test_what_is_said_of_functions(function, told):
    """What keeps a function from being traced is said in the user's terms; deviations are traced."""

    def wire(bd):
        bd.connect(bd.CONSTANT([0.3, 0.7]), bd.FUNCTION(function, name="curve"))
        return ["curve"]

    assert told in explained(wire)
