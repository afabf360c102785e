"""Nyquist curves, poles and zeros, and root loci, against the criterion, SciPy and the condition on each point."""

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pytest
from scipy import signal

from cstormpy.errors import CstormError
from cstormpy.simulation.analysis.linear import LinearModel
from cstormpy.simulation.analysis.root_locus import root_locus

matplotlib.use("Agg")


@pytest.fixture(autouse=True)
def closed_figures():
    yield
    plt.close("all")


def random_loop(seed, order=4, dt=None):
    """Return a loop without poles near the border, some of which grow."""
    rng = np.random.default_rng(seed)
    poles = rng.uniform(0.2, 3.0, order) * np.where(rng.random(order) < 0.3, 1.0, -1.0)
    A = np.diag(poles) + np.triu(rng.normal(size=(order, order)), 1)
    if dt is not None:
        A = np.diag(np.exp(dt * poles)) + np.triu(0.2 * rng.normal(size=(order, order)), 1)
    return LinearModel.of(A, rng.normal(size=(order, 1)), 3.0 * rng.normal(size=(1, order)), dt=dt)


def curve(axes):
    """Return the Nyquist curve for ω > 0, and that for ω < 0."""
    return [line.get_xdata() + 1j * line.get_ydata() for line in axes.lines[:2]]


@pytest.mark.parametrize("feedback", [1, -1])
@pytest.mark.parametrize("dt", [None, 0.1])
def test_a_nyquist_curve_goes_round_its_point_as_often_as_the_criterion_says(dt, feedback):
    """Turns about the point, against the clock, are the poles that grow while cut less those that do while closed."""
    turns = set()
    for seed in range(12):
        model = random_loop(seed, dt=dt)
        shut = np.linalg.eigvals(model.A + feedback * model.B @ model.C)
        border = np.abs(shut.real) if dt is None else np.abs(np.abs(shut) - 1.0)
        if border.min() < 0.02:
            continue  # of which the curve passes the point too near
        (axes,) = model.plot("nyquist", feedback=feedback).axes
        above, below = curve(axes)
        assert (above.conj() == below).all() and axes.lines[2].get_xdata() == [feedback]
        one = 0.0 if dt is None else 1.0  # in the plane of s or of z: no frequency, and the last one
        first = (model.C @ np.linalg.solve(one * np.eye(4) - model.A, model.B)).ravel()
        last = [0.0] if dt is None else -(model.C @ np.linalg.solve(np.eye(4) + model.A, model.B)).ravel()
        angle = np.unwrap(np.angle(np.concatenate([first, above, last]) - feedback))
        grows = [np.sum(p.real > 0 if dt is None else np.abs(p) > 1) for p in (np.linalg.eigvals(model.A), shut)]
        assert (angle[-1] - angle[0]) / np.pi == pytest.approx(grows[0] - grows[1], abs=1e-9)
        turns.add(int(grows[0] - grows[1]))
        plt.close("all")
    assert len(turns) > 1


def test_curves_of_several_inputs_and_outputs():
    model = LinearModel.of(-np.diag([1.0, 2.0]), np.eye(2), np.eye(2))
    figure = model.plot("nyquist", omega=[0.5, 1.0])
    assert [axes.get_title() for axes in figure.axes] == ["y[0]", "y[1]"]
    assert [text.get_text() for text in figure.axes[0].get_legend().get_texts()] == ["u[0]", "u[1]"]
    np.testing.assert_allclose(curve(figure.axes[0])[0], 1.0 / (1.0 + 1j * np.array([0.5, 1.0])), rtol=1e-12)


def test_a_curve_of_an_integrator_is_shown_where_it_matters():
    """It goes to infinity along the axis, beside which nothing else was seen."""
    (axes,) = LinearModel.of([[0.0, 1.0], [0.0, -1.0]], [[0.0], [1.0]], [[1.0, 0.0]]).plot("nyquist").axes
    assert axes.get_xlim()[1] < 5.0 and np.abs(curve(axes)[0]).max() > 100.0
    slow = LinearModel.of(*signal.tf2ss([3.0, 3.0], [1.0, 0.01, 0.0])[:3]).plot("nyquist", feedback=-1).axes[0]
    assert slow.get_xlim()[1] < 6.0  # went to 1e5, with all about the point within a pixel


def test_zeros_are_those_of_scipy():
    for seed in range(20):
        model = random_loop(seed, order=2 + seed % 3)
        known = np.roots(np.trim_zeros(np.round(signal.ss2tf(model.A, model.B, model.C, model.D)[0][0], 12)))
        np.testing.assert_allclose(np.sort_complex(model.zeros), np.sort_complex(known), rtol=1e-6, atol=1e-9)
    for order in (3, 5, 7):  # what is at infinity came back as zeros of 1e4, the more so the more of it there is
        system = signal.tf2ss([1.0, 1.0], np.poly(-np.arange(1.0, order + 2)))
        np.testing.assert_allclose(LinearModel.of(*system).zeros, [-1.0], rtol=1e-6)
        filtered = signal.tf2ss(*signal.butter(order, 10.0, analog=True))
        assert len(LinearModel.of(*filtered).zeros) == 0
    A = [[0.0, 1.0], [-2.0, -3.0]]
    assert len(LinearModel.of(A, [[0.0], [0.0]], [[4.0, 1.0]]).zeros) == 0
    np.testing.assert_allclose(LinearModel.of([[-1.0]], [[1.0]], [[1.0]], [[1e-9]]).zeros, [-1e9], rtol=1e-6)
    two = LinearModel.of(np.diag([-1.0, -2.0, -3.0]), [[1, 0], [0, 1], [1, 1]], [[1, 0, 1], [0, 1, 1]])
    np.testing.assert_allclose(two.zeros, [-2.0], rtol=1e-9)  # of det C (s - A)^-1 B
    through = LinearModel.of([[-1.0]], [[1.0]], [[1.0]], [[2.0]])
    np.testing.assert_allclose(through.zeros, [-1.5])
    assert len(LinearModel.of([[-1.0]], [[1.0, 2.0]], [[1.0]]).zeros) == 0
    crosses, circles = through.plot("poles").axes[0].lines[:2]
    assert (crosses.get_xdata(), circles.get_xdata()) == ([-1.0], [-1.5])


@pytest.mark.parametrize(("dt", "feedback"), [(None, 1), (None, -1), (0.1, -1)])
def test_each_point_of_a_root_locus_is_a_pole_for_some_gain(dt, feedback):
    """There k L(s) is the sign of the feedback, of a real k > 0 and the response L that SciPy has."""
    for seed in range(4):
        model = random_loop(seed, dt=dt)
        gains, ways = root_locus(model, np.array([0.5, 1.0]), feedback, span=5.0)
        num, den = signal.ss2tf(model.A, model.B, model.C, model.D)
        assert gains[0] == 0.0 and 1.0 in gains and (np.diff(gains) > 0.0).all()
        size = np.polyval(np.abs(den), np.abs(ways)) + gains[:, None] * np.polyval(np.abs(num[0]), np.abs(ways))
        left = np.polyval(den, ways) - feedback * gains[:, None] * np.polyval(num[0], ways)
        assert np.nanmax(np.abs(left) / np.where(size > 0.0, size, 1.0)) < 1e-9
        np.testing.assert_allclose(np.sort_complex(ways[0]), np.sort_complex(np.linalg.eigvals(model.A)), atol=1e-9)
        seen = np.abs(ways[:-1]) < 5.0
        assert np.abs(np.diff(ways, axis=0))[seen].max() < 0.1  # without gaps


def test_the_figure_of_a_root_locus():
    """1 / (s (s + 2)): along the real axis to −1, then straight up and down; −1 ± j at the gain 2 that it has."""
    model = LinearModel.of([[0.0, 1.0], [0.0, -2.0]], [[0.0], [2.0]], [[1.0, 0.0]])
    (axes,) = model.plot("locus", feedback=-1).axes
    ways = np.concatenate([line.get_xdata() + 1j * line.get_ydata() for line in axes.lines[:2]])
    turned = np.abs(ways.imag) > 1e-6
    np.testing.assert_allclose(ways[turned].real, -1.0, atol=1e-9)
    assert (-2.0 - 1e-9 <= ways[~turned].real).all() and (ways[~turned].real <= 1e-9).all()
    closed = next(line for line in axes.lines if line.get_label() == "poles of the closed loop")
    assert sorted(zip(closed.get_xdata().round(9), closed.get_ydata().round(9), strict=True)) == [(-1, -1), (-1, 1)]
    (axes,) = LinearModel.of([[0.5]], [[1.0]], [[1.0]], dt=0.1).plot("locus").axes
    ends = LinearModel.of([[0.0, 1.0], [-2.0, -3.0]], [[0.0], [1.0]], [[4.0, 1.0]], [[2.0]])
    (other,) = ends.plot("locus").axes  # one pole goes through infinity, which was drawn as a line between the poles
    gone = [line for line in other.lines[:2] if np.isnan(line.get_xdata()).any()]
    assert len(gone) == 1
    for x in (line.get_xdata() for line in other.lines[:2]):
        assert not (x[1:] * x[:-1] < -100.0).any()
    assert any(np.allclose(np.hypot(*line.get_data()), 1.0) for line in axes.lines)  # the border, as a circle


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (
            {"kind": "nichols"},
            "plot: kind: expected 'bode', 'step', 'nyquist', 'poles' or 'locus'",
        ),
        (
            {"kind": "poles", "omega": [1.0]},
            "plot: omega: 'poles' has no frequencies; they are of",
        ),
        ({"kind": "step", "feedback": -1}, "plot: feedback: 'step' closes no loop"),
        ({"kind": "locus", "feedback": 2}, "plot: feedback: expected 1 or -1, got 2"),
        ({"kind": "nyquist", "feedback": np.ones(2)}, "plot: feedback: expected 1 or -1, got an array"),
        ({"kind": "nyquist", "omega": []}, "plot: omega: expected frequencies, got none"),
        (
            {"kind": "locus"},
            "plot: 'locus' is of one loop that is cut at one number; the model has 2 in",
        ),
        ({"kind": "nyquist", "omega": "x"}, "plot: omega: expected real numbers"),
    ],
)
def test_what_cannot_be_drawn_is_refused(given, says):
    model = LinearModel.of([[-1.0]], [[1.0, 2.0]], [[1.0]])
    with pytest.raises(CstormError, match=f"^{says}"):
        model.plot(**given)


def test_a_bode_plot_says_where_there_is_no_response():
    """The panels stayed empty, as for the duty of a converter whose switch a linear model holds."""
    model = LinearModel.of(-np.eye(2), [[1.0, 0.0], [0.0, 0.0]], [[1.0, 0.0]])
    above, _ = model.plot("bode").axes
    assert [text.get_text() for text in above.texts] == [f"no response to {model.inputs[1]}"]


def test_a_bode_plot_draws_no_rounding_of_the_rates_as_a_response():
    """The roll of a plane by its elevator was drawn at -500 dB, so that nothing could be seen of the other curves."""
    model = LinearModel.of([[-1.0, 1e-30], [1e-30, -2.0]], np.eye(2), [[1.0, 0.0], [0.0, 1e-9]])
    figure = model.plot("bode")
    roll, _, pitch, _ = figure.axes
    assert [text.get_text() for text in (*roll.texts, *pitch.texts)] == [
        f"no response to {model.inputs[k]}" for k in (1, 0)
    ]
    assert roll.get_ylim()[0] > -100.0 and pitch.get_ylim()[0] > -300.0
    assert not LinearModel.of(-1.0, 1.0, 1.0).plot("bode").axes[0].texts
