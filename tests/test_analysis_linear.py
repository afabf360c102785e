"""Linear models of diagrams: against known matrices, closed forms and differences; what cannot be asked of them."""

import importlib
import itertools
import math
import warnings

import numpy as np
import pytest
from bdsim.components import FunctionBlock
from hypothesis import given, settings
from hypothesis import strategies as st
from random_diagrams import PLAIN, build
from scipy import linalg

import cstormpy as cs
from cstormpy import control
from cstormpy.errors import BlockError, CstormError, InvalidType, InvalidValue, NonFinite, ShapeError, UnknownName
from cstormpy.simulation.analysis.analysis_start import started
from cstormpy.simulation.analysis.linear import LinearModel
from cstormpy.simulation.analysis.model import DifferencedModel, Model
from cstormpy.simulation.compiled import NotTranslated
from cstormpy.simulation.recording import find_signals


@pytest.fixture
def sim():
    return cs.Simulation(live=False, engine="interpreted")


def loop(sim, A, B, C, K):
    """Return a linear system under feedback u = r − K y, with an integrator on its first output."""
    bd = sim.blockdiagram()
    wanted = bd.CONSTANT(np.zeros(len(K)), name="wanted")
    error, rate = bd.SUM("+-", name="error"), bd.SUM("++", name="rate")
    plant = bd.INTEGRATOR(x0=np.zeros(len(A)), name="plant")
    inside, drive, look, back = (
        bd.GAIN(gain, premul=True, name=name) for gain, name in ((A, "inside"), (B, "drive"), (C, "look"), (K, "back"))
    )
    first, total = bd.INDEX([0], name="first"), bd.INTEGRATOR(x0=0.0, name="total")
    for start, *ends in (
        (wanted, error[0]), (error, drive), (drive, rate[0]), (inside, rate[1]), (rate, plant), (plant, inside, look),
        (look, back, first), (back, error[1]), (first, total),
    ):  # fmt: skip
        bd.connect(start, *ends)
    return bd


@settings(max_examples=12)
@given(seed=st.integers(0, 10_000))
def test_a_random_linear_loop_has_the_matrices_that_it_is_made_of(seed):
    rng = np.random.default_rng(seed)
    n, m, r = rng.integers(2, 5), rng.integers(2, 4), rng.integers(2, 4)
    A, B, C, K = (rng.normal(size=shape) for shape in ((n, n), (n, m), (r, n), (m, r)))
    bd = loop(cs.Simulation(live=False), A, B, C, K)
    model = cs.Simulation(live=False).linearize(
        bd, rng.normal(size=n + 1), inputs=["wanted"], outputs=["look", "error"]
    )
    assert model.differenced == () and model.A.shape == (n + 1, n + 1)
    np.testing.assert_allclose(model.A[:n, :n], A - B @ K @ C, rtol=0, atol=1e-10)
    np.testing.assert_allclose(model.A[n], [*C[0], 0.0], rtol=0, atol=1e-10)
    np.testing.assert_allclose(model.B[:n], B, rtol=0, atol=1e-10)
    np.testing.assert_allclose(model.C, np.hstack([np.vstack([C, -K @ C]), np.zeros((r + m, 1))]), rtol=0, atol=1e-10)
    np.testing.assert_allclose(model.D, np.vstack([np.zeros((r, m)), np.eye(m)]), rtol=0, atol=1e-10)


def test_a_loop_that_is_opened_leaves_the_plant_and_a_disturbance_goes_round(sim):
    A, B, C, K = np.array([[-1.0]]), np.array([[2.0]]), np.array([[3.0]]), np.array([[0.5]])
    bd = loop(sim, A, B, C, K)
    opened = sim.linearize(bd, inputs=["error"], opened=["error"], outputs=["error"])
    assert opened.A[0, 0] == -1.0
    s = 0.7j
    L = opened.frequency_response(0.7)[0, 0, 0]
    assert L == pytest.approx(-2.0 * 3.0 * 0.5 / (s + 1.0), abs=1e-12)  # from behind the cut to before it
    closed = sim.linearize(bd, inputs=["error"], outputs=["error"])
    assert closed.frequency_response(0.7)[0, 0, 0] == pytest.approx(1.0 / (1.0 - L), abs=1e-12)
    valued = sim.linearize(bd, u={"error": [0.25]}, inputs=["error"])
    assert valued.u[0] == 0.25 and valued.rate[0] == 0.5 and valued.A[0, 0] == -1.0


def test_the_acrobot_under_lqr_is_the_model_that_the_gains_were_made_for(sim):
    mech = cs.library.acrobot()
    known = mech.linearize([math.pi / 2, 0.0], tau=[0.0])
    law = control.law("lqr", mech, goal=(math.pi / 2, 0.0))
    build = importlib.import_module("cstormpy.diagrams.acrobot").build
    bd = build(sim, controller="lqr", q0=[math.pi / 2, 0.0], kick=False)
    closed = sim.linearize(bd, inputs=["controller.tau"], outputs=["plant.q"])
    np.testing.assert_allclose(closed.A[:4, :4], known.A - known.B @ law.K, rtol=0, atol=1e-10)
    np.testing.assert_allclose(closed.B[:4], known.B, rtol=0, atol=1e-10)
    plant = sim.linearize(bd, inputs=["controller.tau"], opened=["controller.tau"])
    np.testing.assert_allclose(plant.A[:4, :4], known.A, rtol=0, atol=1e-10)
    assert closed.states[:2] == ("plant.shoulder.q", "plant.elbow.q")
    assert closed.inputs == ("controller.tau[0]",) and closed.outputs == ("plant.q[0]", "plant.q[1]")
    assert not plant.stable and (np.sort(closed.poles.real)[:4] < -1.0).all()


def both(sim, bd, x, t=0.37):
    """Return the derivatives of all signals and rates by tangents, and by differences of the blocks."""
    with started(sim, bd, None, 0.0, "test") as (diagram, _, _, start):
        x = start + x(start.size)
        watched = [s for s in find_signals(bd, "all") if np.asarray(s.slot.value).dtype.kind in "biuf"]
        model = Model(diagram, [], watched)
        exact = model.jacobians(t, x, np.zeros(0))
        moved = DifferencedModel(diagram, [], watched, NotTranslated([])).jacobians(t, x, np.zeros(0))
    return model, exact, moved


@pytest.mark.parametrize("name", ["acrobot", "acrobot_elbow", "branched_acrobot", "pendulum", "two_link_arm"])
def test_the_shipped_diagrams_have_the_derivatives_that_differences_find(sim, name):
    bd = importlib.import_module(f"cstormpy.diagrams.{name}").build(sim)
    _, exact, moved = both(sim, bd, lambda n: 0.1 * np.random.default_rng(1).normal(size=n))
    np.testing.assert_allclose(exact.rate, moved.rate, rtol=1e-12, atol=1e-12)
    for one, other in ((exact.A, moved.A), (exact.C, moved.C)):
        np.testing.assert_allclose(one, other, rtol=0, atol=2e-10 * max(1.0, np.abs(other).max()))


def test_every_block_of_numbers_has_the_derivative_that_differences_find(sim):
    bd = sim.blockdiagram()
    x = bd.INTEGRATOR(x0=[0.4, -0.7, 1.3], name="x")
    parts = bd.DEMUX(3)
    bd.connect(x, parts)
    a, b, c = parts[0], parts[1], parts[2]
    made = [
        (bd.PROD("*/"), (a, b)),
        (bd.PROD("**"), (a, c)),
        (bd.POW(3), (b,)),
        (bd.POW(1.5), (c,)),
        (bd.CLIP(min=-0.5, max=0.9), (a,)),
        (bd.CLIP(min=-0.5, max=0.9), (b,)),
        (bd.SUM("++", mode="c"), (a, c)),
        (bd.SUM("-+", mode="C"), (b, c)),
        (bd.SUM("+-", mode="L"), (b, c)),
        (bd.INTERPOLATE(x=[-2.0, 0.0, 1.0, 3.0], y=[1.0, 0.5, 2.0, -1.0]), (a,)),
        (bd.FUNCTION(lambda u, v: math.sin(u) * v * v, nin=2), (a, c)),
    ]
    for block, inputs in made:
        for port, signal in enumerate(inputs):
            bd.connect(signal, block[port])
    norm, gain = bd.NORM(), bd.GAIN(np.array([[0.0, 1.0, 2.0], [-1.0, 0.3, 0.0], [0.2, -0.5, -1.0]]), premul=True)
    bd.connect(x, norm, gain)
    bd.connect(gain, x)
    model, exact, moved = both(sim, bd, lambda n: np.zeros(n))
    np.testing.assert_allclose(exact.C, moved.C, rtol=0, atol=2e-9)
    np.testing.assert_allclose(exact.A, moved.A, rtol=0, atol=1e-11)
    assert not model.differenced


@pytest.mark.parametrize("seed", range(20))
def test_random_diagrams_have_the_derivatives_that_differences_find(sim, seed):
    rng = np.random.default_rng(seed)
    steps = [[int(rng.integers(len(PLAIN))), *map(int, rng.integers(0, 1000, 4))] for _ in range(rng.integers(2, 14))]
    bd = build(sim.blockdiagram(), steps, PLAIN)
    _, exact, moved = both(sim, bd, lambda n: 0.3 * rng.normal(size=n), t=0.213)
    for one, other in ((exact.A, moved.A), (exact.C, moved.C)):
        np.testing.assert_array_less(np.abs(one - other) / (1.0 + np.abs(other)), 1e-6)


class Cubed(FunctionBlock):
    """A block of a user's own."""

    nin = nout = 1

    def output(self, t, u, x):
        return [u[0] ** 3]


class CubedAsText(Cubed):
    """One that only Python can ask."""

    def output(self, t, u, x):
        return [float(f"{u[0] ** 3:.17g}")]


@pytest.mark.parametrize("kind", [Cubed, CubedAsText])
def test_a_block_of_ones_own_is_differentiated_or_differenced_and_that_is_said(sim, kind):
    bd = sim.blockdiagram()
    x = bd.INTEGRATOR(x0=2.0, name="x")
    cubed = kind(bd=bd, name="cubed")
    bd.connect(x, cubed)
    bd.connect(cubed, x)
    model = sim.linearize(bd, inputs=["cubed"], outputs=["cubed"])
    assert model.A[0, 0] == pytest.approx(12.0, abs=1e-8) and model.B[0, 0] == pytest.approx(1.0, abs=1e-10)
    assert model.D[0, 0] == pytest.approx(1.0, abs=1e-10)
    if kind is Cubed:
        assert model.differenced == () and model.A[0, 0] == 12.0
    else:
        assert model.differenced[0][0] == "cubed" and "cubed" in str(model)


def with_a_branch(v):
    return np.array([v[1], -math.sin(v[0])]) if v[0] > -9.0 else np.zeros(2)


def of_its_digits(v):
    return np.array([v[1], -math.sin(float(f"{v[0]:.17g}"))])


@pytest.mark.parametrize(
    ("func", "differenced"),
    [
        (lambda v: np.array([v[1], -math.sin(v[0])]), ()),
        (with_a_branch, ()),
        (of_its_digits, (("field", "function of_its_digits"),)),
    ],
)
def test_a_function_of_the_user_is_exact_where_it_is_traced_else_differenced_and_named(sim, func, differenced):
    bd = sim.blockdiagram()
    x = bd.INTEGRATOR(x0=[0.3, 0.5], name="x")
    field = bd.FUNCTION(func, name="field")
    bd.connect(x, field)
    bd.connect(field, x)
    model = sim.linearize(bd)
    np.testing.assert_allclose(
        model.A, [[0.0, 1.0], [-math.cos(0.3), 0.0]], rtol=0, atol=1e-9 if differenced else 1e-15
    )
    assert model.differenced == differenced and ("field" in str(model)) == bool(differenced)


class Rounded(FunctionBlock):
    """A block of one's own that rounds."""

    nin = nout = 1
    inlabels, outlabels = ("u",), ("y",)

    def output(self, t, u, x):
        return [0.02 * np.rint(u[0] / 0.02)]

    def linear_output(self, t, u, x):
        return [1.0 * u[0]]


@pytest.mark.parametrize("translated", [True, False])
@pytest.mark.parametrize("made", [lambda bd: bd.QUANTIZER([0.01]), lambda bd: Rounded(bd=bd)])
def test_what_rounds_counts_as_its_input(sim, made, translated):
    """The loop behind an encoder was open: its poles were those of the plant, and nothing came back."""

    def arm(encoder):
        bd = sim.blockdiagram()
        plant = bd.HYBRIDDYNAMICS(cs.library.pendulum(), q0=[-1.303], name="plant")
        measured, pull = encoder(bd), bd.SUM("++")
        opaque = bd.FUNCTION((lambda u: 1.0 * u) if translated else (lambda u: np.array([float(str(u[0]))])))
        bd.connect(plant.q, measured)
        for rate, signal, port in ((-5.0, measured, pull[0]), (-2.0, plant.qd, pull[1])):
            bd.connect(signal, gain := bd.GAIN(rate))
            bd.connect(gain, port)
        bd.connect(pull, opaque)
        bd.connect(opaque, plant.tau)
        return bd

    plain, rounded = arm(lambda bd: bd.GAIN(1.0)), arm(made)
    wanted, found = (sim.linearize(bd, inputs=["plant.tau"], outputs=["plant.q"]) for bd in (plain, rounded))
    for matrix in "ABC":
        np.testing.assert_allclose(getattr(found, matrix), getattr(wanted, matrix), rtol=1e-7, atol=1e-9)
    phases = [sim.margins(bd, at=["plant.tau"]).phase[0] for bd in (plain, rounded)]
    assert phases[1] == pytest.approx(phases[0]) and 1.0 < phases[0] < 1.5


def test_sampled_states_are_held_and_named(sim):
    bd = sim.blockdiagram()
    x, hold = bd.INTEGRATOR(x0=1.0, name="x"), bd.ZOH(bd.clock(10, "Hz"), x0=0.5, name="hold")
    bd.connect(x, hold)
    bd.connect(hold, x)
    model = sim.linearize(bd)
    assert model.A[0, 0] == 0.0 and model.rate[0] == 0.5 and model.held == ("hold",)


def test_figures_call_joints_by_their_names():
    """They had "plant.q[0]" and "law.tau[0]", beside runs that are drawn by joints."""
    sim = cs.Simulation(live=False, progress=False)
    bd = sim.blockdiagram()
    plant, law = (
        bd.HYBRIDDYNAMICS("acrobot", q0=[math.pi / 2, 0], name="plant"),
        bd.CONTROLLER("acrobot", "lqr", name="law"),
    )
    bd.connect(plant[0:2], law[0:2])
    bd.connect(law.tau, plant.tau)
    model = sim.linearize(bd, inputs=["law.tau", "plant.tau"], outputs=["plant.q", "law.law"])
    called = ["plant.shoulder.q", "plant.elbow.q", "law.law"]
    for figure, labels in ((model.step().plot(), called), (model.plot(), [f"{name} [dB]" for name in called])):
        shown = [axes.get_ylabel() for axes in figure.axes]
        assert [label for label in shown if label != "phase [°]"] == labels
        texts = [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
        assert texts == ["law.elbow.tau", "plant.elbow.tau"]


def test_a_step_of_what_grows_ends_while_the_rest_can_be_seen():
    """It lasted eight of the slowest time constants, until 1e63."""
    model = LinearModel.of([[-0.1, 0.0], [0.0, 4.0]], [[1.0], [1.0]], [[1.0, 0.0], [0.0, 1.0]])
    response = model.step()
    assert response.t[-1] == pytest.approx(2.0) and abs(response.y).max() < 1e3
    still = LinearModel.of([[-0.1, 0.0], [0.0, 0.0]], [[1.0], [1.0]], [[1.0, 0.0]])
    assert still.step().t[-1] == pytest.approx(80.0)


@pytest.mark.parametrize("dt", [None, 0.01])
def test_poles_of_integrators_in_a_row_stand_at_rest(dt):
    """They were roots of a rounding, 1e-4 of four: step() lasted 8e4 s, and Bode showed resonances that are none."""
    mix = np.random.default_rng(3).normal(size=(5, 5))
    A = mix @ (np.diag([1.0, 1.0, 1.0, 0.0], 1) + np.diag([0.0, 0.0, 0.0, 0.0, -2.0])) @ np.linalg.inv(mix)
    model = LinearModel.of(A if dt is None else linalg.expm(dt * A), np.ones((5, 1)), np.ones((1, 5)), dt=dt)
    np.testing.assert_allclose(model.frequency, [0.0, 0.0, 0.0, 0.0, 2.0], rtol=1e-9)
    assert model.step().t[-1] == pytest.approx(4.0)
    arm = cs.library.arm7().linearize(np.zeros(7))
    free = LinearModel.of(arm.A, np.eye(14), np.eye(14))  # to turn about the vertical
    assert (free.frequency[:2] == 0.0).all() and free.frequency[2] > 0.5
    stiff = LinearModel.of([[-1.0, 1e12], [0.0, -2.0]], [[0.0], [1.0]], [[1.0, 0.0]])  # and no gain hides a pole
    np.testing.assert_allclose(np.sort(stiff.poles.real), [-2.0, -1.0], rtol=1e-12)


@pytest.mark.slow
def test_figures_of_many_outputs_and_inputs_can_be_read():
    """All steps shared one small figure, and names of many lines covered them."""
    n = 7
    model = LinearModel.of(-np.eye(n), np.eye(n), np.eye(n))
    for figure in (model.plot("step"), model.plot()):
        figure.draw_without_rendering()
        first = figure.axes[0]
        boxes = [axes.get_tightbbox() for axes in figure.axes]
        assert all(below.y1 <= above.y0 for above, below in itertools.pairwise(boxes))
        assert first.get_window_extent().height > 100
        assert not first.get_legend().get_window_extent().overlaps(first.get_window_extent())


def test_poles_and_responses_of_a_known_oscillator():
    zeta, omega = 0.25, 3.0
    model = LinearModel.of([[0.0, 1.0], [-(omega**2), -2 * zeta * omega]], [[0.0], [omega**2]], [[1.0, 0.0]])
    np.testing.assert_allclose(model.damping, zeta, atol=1e-12)
    np.testing.assert_allclose(model.frequency, omega, atol=1e-12)
    response = model.step(T=5.0, samples=400)
    swing = omega * math.sqrt(1 - zeta**2)
    decay = np.exp(-zeta * omega * response.t)
    known = 1 - decay * (np.cos(swing * response.t) + zeta * omega / swing * np.sin(swing * response.t))
    np.testing.assert_allclose(response.y[:, 0, 0], known, rtol=0, atol=1e-11)
    assert len(response.plot().axes) == 1
    assert repr(response) == "<Response: 400 samples from 0 to 5 s after a step of u[0]: y[0]>"  # it was all numbers
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # of NumPy's, where a response grew beyond all bounds
        assert not np.isfinite(LinearModel.of([[1e3]], [[1.0]], [[1.0]]).step(T=2.0).y[-1]).any()
    with pytest.raises(InvalidValue, match="positive time"):
        model.step(T=-1.0)
    with pytest.raises(InvalidValue, match="do not fit"):
        LinearModel.of([[1.0]], [[1.0], [2.0]], [[1.0]])
    with pytest.raises(InvalidValue, match=r"^dt: "):  # at which python-control has continuous models
        LinearModel.of([[1.0]], [[1.0]], [[1.0]], dt=0)
    with pytest.raises(NonFinite, match=r"^A: expected finite numbers, got nan at index \(0, 0\)"):
        LinearModel.of([[math.nan]], [[1.0]], [[1.0]])


def test_a_model_without_outputs_has_a_frequency_response_of_none():
    """It was an error of NumPy's."""
    sizes = (([1.0], (2, 1), (0, 2)), ([1.0, 3.0], (2, 0), (1, 2)), ([], (2, 1), (1, 2)))
    for omega, B, C in sizes:
        model = LinearModel.of(-np.eye(2), np.ones(B), np.ones(C), np.zeros((C[0], B[1])))
        assert model.frequency_response(omega).shape == (len(omega), C[0], B[1])


@pytest.mark.parametrize(
    ("ask", "error", "says"),
    [
        (lambda model: model.step(np.linspace(0.0, 1.0, 5)), InvalidType, r"step: T: .*shape \(5,\); samples="),
        (lambda model: model.step("a"), InvalidType, "step: T: .*'a'"),
        (lambda model: model.step(1, samples=2.5), InvalidType, "step: samples: expected a whole number, got 2.5"),
        (lambda model: model.frequency_response("a"), InvalidType, "frequency_response: omega"),
        (lambda model: model.frequency_response([1.0, math.nan]), NonFinite, "frequency_response: omega"),
        (lambda model: model.frequency_response([1.0, 0.0]), InvalidValue, "a pole stands at ω = 0"),
        (lambda model: model.step(1.0).plot([]), ShapeError, "plot: axes: expected one for each of 1 outputs, got 0"),
    ],
)
def test_what_a_linear_model_can_not_be_asked_is_said(ask, error, says):
    with pytest.raises(error, match=says):
        ask(LinearModel.of([[0.0]], [[1.0]], [[1.0]]))


def test_python_control_takes_the_model():
    library = pytest.importorskip("control")
    model = LinearModel.of([[-1.0, 1.0], [0.0, -2.0]], [[0.0], [1.0]], [[1.0, 0.0]])
    taken = model.to_control()
    assert isinstance(taken, library.StateSpace)
    np.testing.assert_allclose(np.sort(taken.poles().real), [-2.0, -1.0])


@pytest.mark.parametrize("kind", ["inputs", "outputs"])
def test_a_model_that_python_control_has_no_form_for_is_said(kind):
    """Its own error spoke of the dimensions of a matrix D that nobody gave."""
    sizes = {"inputs": ((2, 0), (1, 2)), "outputs": ((2, 1), (0, 2))}[kind]
    model = LinearModel.of(-np.eye(2), *map(np.zeros, sizes))
    with pytest.raises(cs.DiagramError, match=rf"to_control: the model has no {kind}.*name some, as in sim\.linearize"):
        model.to_control()


class Untranslated(FunctionBlock):
    """Passes on its input; the compiled engine does not know it."""

    nin = nout = 1

    def output(self, t, u, x):
        return [u[0]]


def two_plants(sim, translated):
    """Return a diagram in which one signal drives two arms."""
    bd = sim.blockdiagram()
    drive = bd.CONSTANT([0.5, 0.25], name="drive")
    arms = [cs.library.planar_2r().with_gravity((0, 0, 0)) for _ in range(2)]
    first, second = (bd.HYBRIDDYNAMICS(arm, name=name) for arm, name in zip(arms, ("first", "second"), strict=True))
    look = bd.GAIN(1.0, name="look") if translated else Untranslated(bd=bd, name="look")
    bd.connect(drive, first.tau, second.tau)
    bd.connect(first.q, look)
    return bd


@pytest.mark.parametrize("translated", [True, False])
def test_an_input_port_is_an_input_of_its_block_alone(sim, translated):
    """Everybody says inputs=["plant.tau"]; it was refused, and plant.tau as an object was taken for output 0."""
    bd = two_plants(sim, translated)
    by_name = sim.linearize(bd, inputs=["first.tau"], outputs=["look"])
    assert by_name.inputs == ("first.tau[0]", "first.tau[1]")
    both = sim.linearize(bd, inputs=["drive"], outputs=["look"])
    np.testing.assert_allclose(by_name.B[:4], both.B[:4], rtol=0, atol=1e-8)
    assert np.abs(by_name.B[:4]).max() > 0.1 and np.abs(both.B[4:]).max() > 0.1
    np.testing.assert_array_equal(by_name.B[4:], 0.0)
    np.testing.assert_allclose(by_name.A, both.A, rtol=0, atol=1e-8)
    by_plug = sim.linearize(bd, inputs=[bd["first"].tau])
    np.testing.assert_allclose(by_plug.B, by_name.B, rtol=0, atol=1e-12)
    point = {"first.tau": [2.0, -1.0]}
    held = sim.linearize(bd, u=point, inputs=["first.tau"])
    by_source = sim.linearize(bd, u={"drive": point["first.tau"]}, inputs=["drive"])
    np.testing.assert_allclose(held.rate[:4], by_source.rate[:4], rtol=0, atol=1e-9)
    np.testing.assert_allclose(held.rate[4:], by_name.rate[4:], rtol=0, atol=1e-9)
    assert not np.allclose(held.rate[:4], by_name.rate[:4])
    assert sim.run(bd, T=0.1).message == "reached the end"  # the wiring is as it was


@pytest.mark.parametrize("port", ["deciding", "decided"])
@pytest.mark.parametrize("kind", ["SWITCH", "MULTISWITCH", "RELAY", "COMPARE", "INTEGRATOR"])
def test_what_switches_goes_by_the_value_that_is_given_for_an_input(sim, kind, port):
    """It stayed in the mode of the signal whose place the value takes: a SWITCH passed on the other one."""

    ports = {"SWITCH": "control", "MULTISWITCH": "select", "RELAY": "u", "COMPARE": "u", "INTEGRATOR": "u"}

    def model(wired, u=None):
        bd = sim.blockdiagram()
        deciding, total = bd.CONSTANT(wired, name="deciding"), bd.INTEGRATOR(0.0, name="total")
        made = {
            "SWITCH": lambda: bd.SWITCH(0.5, name="one"),
            "MULTISWITCH": lambda: bd.MULTISWITCH(2, name="one"),
            "RELAY": lambda: bd.RELAY(0.5, -0.5, 2.0, 3.0, name="one"),
            "COMPARE": lambda: bd.COMPARE(">", 0.5, name="one"),
            "INTEGRATOR": lambda: bd.INTEGRATOR(1.0, max=1.0, inames=["u"], name="one"),
        }
        one, place = made[kind](), 1 if kind == "SWITCH" else 0
        others = [k for k in range(one.nin) if k != place]
        bd.connect(deciding, one[place])
        for k, value in zip(others, (2.0, 3.0), strict=False):
            bd.connect(bd.CONSTANT(value), one[k])
        bd.connect(one, total)
        given = "deciding" if port == "deciding" else f"one.{ports[kind]}"
        return sim.linearize(bd, u=u, inputs=[given], outputs=["one"])

    for wired, value in ((-1.0, 1.0), (1.0, -1.0)):
        found, wanted = model(wired, [value]), model(value)
        for name in ("y", "rate", "A", "B", "C", "D"):
            np.testing.assert_allclose(getattr(found, name), getattr(wanted, name), rtol=0, atol=1e-12)
    assert np.any(model(1.0).rate != model(-1.0).rate)


def test_an_input_port_may_be_opened_and_a_loop_through_it_is_open(sim):
    bd = sim.blockdiagram()
    mech = cs.library.pendulum()
    plant = bd.HYBRIDDYNAMICS(mech, q0=[0.3], name="plant")
    law = bd.GAIN(-4.0, name="law")
    bd.connect(plant.q, law)
    bd.connect(law, plant.tau)
    closed, alone = (sim.linearize(bd, inputs=["plant.tau"], opened=cut) for cut in ((), ["plant.tau"]))
    by_source = sim.linearize(bd, inputs=["law"], opened=["law"])
    np.testing.assert_allclose(alone.A, by_source.A, rtol=0, atol=1e-12)
    np.testing.assert_allclose(alone.B, by_source.B, rtol=0, atol=1e-12)
    np.testing.assert_allclose(closed.A, alone.A + alone.B @ [[-4.0, 0.0]], rtol=1e-12)


@pytest.mark.parametrize(
    ("names", "twice"),
    [(["tau", "tau[0]"], r"tau\[0\]"), (["plant", "plant.qd"], r"plant\.qd"), (["tau", "tau"], "tau")],
)
def test_an_input_that_is_named_twice_is_refused(sim, names, twice):
    """The columns of its first name were zero, silently."""
    bd = sim.blockdiagram()
    plant = bd.HYBRIDDYNAMICS(cs.library.planar_2r(), name="plant")
    bd.connect(bd.CONSTANT([0.0, 0.0], name="tau"), plant)
    with pytest.raises(InvalidValue, match=f"^linearize: inputs: {twice}.* is named twice"):
        sim.linearize(bd, inputs=names)
    with pytest.raises(InvalidValue, match=f"^trim: inputs: {twice}.* is named twice"):
        sim.trim(bd, inputs=names)
    with pytest.raises(InvalidValue, match=r"^trim: outputs: plant\.q is named twice"):
        sim.trim(bd, outputs={"plant.q": [0.1, 0.2], "plant[0]": [0.3, 0.4]}, inputs=["tau"])
    with pytest.raises(InvalidValue, match=r"^linearize: u gives tau\[0\] twice"):
        sim.linearize(bd, u={"tau": [1.0, 2.0], "tau[0]": [0.0, 0.0]}, inputs=["tau"])
    model = sim.linearize(bd, inputs=iter(["tau"]), outputs=["plant.q", "plant.q"])
    assert model.B[2:].all() and len(model.inputs) == 2
    np.testing.assert_array_equal(model.C[:2], model.C[2:])


def tank(sim, root, level):
    """Return a tank that is fed and runs out through a hole."""
    bd = sim.blockdiagram()
    h, outflow, rate = bd.INTEGRATOR(x0=level, name="h"), bd.FUNCTION(root, name="hole"), bd.SUM("+-", name="rate")
    for start, end in ((bd.CONSTANT(0.5), rate[0]), (h, outflow), (outflow, rate[1]), (rate, h)):
        bd.connect(start, end)
    return bd


def silent_root(h):
    with np.errstate(invalid="ignore"):
        return np.sqrt(h)


@pytest.mark.parametrize("ask", ["trim", "linearize"])
def test_where_a_rate_is_not_finite_the_block_and_the_state_are_named(sim, ask):
    """scipy complained of residuals, and a linear model was made of NaN."""
    with pytest.raises(NonFinite, match=rf"^{ask}: .*'hole'.* is nan, .*rate of h:x_0 is not finite, .*h:x_0 = -1;"):
        getattr(sim, ask)(tank(sim, silent_root, -1.0))


@pytest.mark.parametrize("translated", [True, False])
def test_a_signal_that_is_cut_off_is_not_blamed(sim, translated):
    bd = tank(sim, silent_root, -1.0)
    if not translated:
        bd.connect(bd.blocknames["h"], Cubed(bd=bd, name="cubed"))
        bd.connect(bd.blocknames["cubed"], bd.NULL())
    model = sim.linearize(bd, u={"hole": 2.0}, inputs=["hole"])
    assert model.A[0, 0] == 0.0 and model.B[0, 0] == pytest.approx(-1.0, abs=1e-12)


@pytest.mark.parametrize("root", [silent_root, math.sqrt, lambda h: math.sqrt(h) if h >= 0.0 else [][0]])
@pytest.mark.parametrize("level", [1.0, 1e4])
def test_a_search_that_leaves_the_domain_of_a_block_takes_shorter_steps(sim, root, level):
    point = sim.trim(tank(sim, lambda h: root(h), level))
    assert point.success and point.x[0] == pytest.approx(0.25, abs=1e-9)


def test_where_a_search_can_not_begin_the_block_is_named(sim):
    with pytest.raises(BlockError, match=r"block 'hole' .*h'"):
        sim.trim(tank(sim, lambda h: math.sqrt(h), -1.0))


def test_a_slope_that_is_not_finite_is_refused(sim):
    bd = sim.blockdiagram()
    h, root = bd.INTEGRATOR(x0=0.0, name="h"), bd.POW(0.5, name="root")
    bd.connect(h, root)
    bd.connect(root, h)
    with pytest.raises(NonFinite, match="linearize: the slope of the rate of h:x_0 is not finite, at t = 0, h:x_0 = 0"):
        sim.linearize(bd)


def test_bad_input_is_named(sim):
    bd = loop(sim, np.eye(2), np.eye(2), np.eye(2), np.eye(2))
    with pytest.raises(UnknownName, match="wnated"):
        sim.linearize(bd, inputs=["wnated"])
    with pytest.raises(CstormError, match=r"x: expected shape \(3,\), got \(2,\)"):
        sim.linearize(bd, [1.0, 2.0])
    with pytest.raises(UnknownName, match="plnt"):
        sim.linearize(bd, {"plnt": 1.0})
    with pytest.raises(CstormError, match="finite"):
        sim.linearize(bd, [math.nan, 0.0, 0.0])
    with pytest.raises(UnknownName, match=r"linearize: u: input"):
        sim.linearize(bd, u={"error": [0.0, 0.0]}, inputs=["wanted"])
    with pytest.raises(CstormError, match="expected a diagram"):
        sim.trim(None)
    for argument in ("inputs", "outputs", "opened"):
        with pytest.raises(UnknownName, match=f"^linearize: {argument}: block"):
            sim.linearize(bd, **{argument: ["nobody"]})
    with pytest.raises(CstormError, match=r"^linearize: x: abc: "):
        sim.linearize(bd, x="abc")
    with pytest.raises(CstormError, match=r"^trim: x: expected shape"):
        sim.trim(bd, x=5.0)
    for hold in (None, 3):
        with pytest.raises(InvalidType, match=f"^trim: hold: expected names .*got {hold}"):
            sim.trim(bd, hold=hold)
    assert sim.trim(bd, inputs=["wanted"], hold=bd.blocknames["plant"]).success


@pytest.mark.parametrize("what", ["rates", "outputs"])
def test_conditions_that_are_no_dict_are_refused(sim, what):
    bd = sim.blockdiagram()
    x, gain = bd.INTEGRATOR(x0=1.0, name="x"), bd.GAIN(-1.0, name="gain")
    bd.connect(x, gain)
    bd.connect(gain, x)
    with pytest.raises(InvalidType, match=f"trim: {what}: expected a dict"):
        sim.trim(bd, **{what: ["x"]})


def test_the_source_of_what_is_no_diagram_is_refused(sim):
    with pytest.raises(InvalidType, match="source: expected a diagram"):
        sim.source(None)
