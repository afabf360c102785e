"""Figures and tables of sweeps: what is drawn over which axes, with which labels, and what stands in which column."""

import numpy as np
import pytest

import cstormpy as cs
from cstormpy.simulation.sweep.axes import Axes
from cstormpy.simulation.sweep.workers import Record


@pytest.fixture(autouse=True)
def _closed():
    yield
    import matplotlib.pyplot as plt

    plt.close("all")


def made(function, grid=None, samples=None, fail=()):
    """Return the sweep of a function of the axes' values."""
    axes = Axes.checked(grid, samples)
    records = {}
    for k in range(len(axes)):
        found = function(*axes.run(k))
        found = found if isinstance(found, dict) else {"value": found}
        values = {name: np.asarray(v, dtype=float) for name, v in found.items()}
        records[k] = Record({}, "fails") if k in fail else Record(values)
    return cs.Sweep(axes, records, {})


X, Y = np.linspace(0.0, 1.0, 5), np.linspace(-1.0, 1.0, 4)


def test_one_axis_gives_a_line():
    figure = made(lambda x: x**2, {"x": X}).plot(labels={"x": "offset [m]", "value": "energy [J]"})
    (axes,) = figure.axes
    (line,) = axes.lines
    np.testing.assert_allclose(line.get_xydata(), np.column_stack([X, X**2]))
    assert axes.get_xlabel() == "offset [m]" and axes.get_ylabel() == "energy [J]"


def test_an_array_gives_a_line_each():
    sweep = made(lambda x: {"q": [x, 2 * x]}, {"x": X})
    for labels, names in (({}, ["q[0]", "q[1]"]), ({"q": "way [m]"}, ["way [m] [0]", "way [m] [1]"])):
        (axes,) = sweep.plot(labels=labels).axes
        assert [t.get_text() for t in axes.get_legend().get_texts()] == names
        np.testing.assert_allclose(axes.lines[1].get_ydata(), 2 * X)


def test_names_with_dollars_are_no_mathematics_and_labels_may_be():
    """A pair of dollars in a name ended the figure with an error of matplotlib's parser."""
    sweep = made(lambda x, y: {"$v{$": x}, {"$x{$": X, "$y{$": ["$a{$", "b"]})
    for over, at in (("$x{$", {}), ("$y{$", {"$x{$": 1.0})):
        sweep.plot(axes=over, at=at).canvas.draw()
    figure = sweep.plot(axes="$x{$", labels={"$x{$": r"$\lambda$", "$v{$": "$v$"})
    figure.canvas.draw()
    assert (figure.axes[0].get_xlabel(), figure.axes[0].get_ylabel()) == (r"$\lambda$", "$v$")


def test_numbers_at_both_axes_have_true_minus_signs():
    """At the swept axis -2 had a hyphen, at the other one a minus sign."""
    figure = made(lambda x: x, {"x": [-2.0, -1e-7, 1.0]}).plot()
    figure.canvas.draw()
    axes = figure.axes[0]
    assert [text.get_text() for text in axes.get_xticklabels()] == ["\u22122", "\u22121e\u221207", "1"]
    assert any(text.get_text().startswith("\u2212") for text in axes.get_yticklabels())


def test_final_values_are_called_by_their_joints_with_units(tmp_path):
    cart = cs.library.cart_pole()
    sim = cs.Simulation(progress=False)
    bd = sim.blockdiagram()
    plant = bd.HYBRIDDYNAMICS(cart, name="plant")
    bd.connect(bd.CONSTANT([1.0]), plant.tau)
    bd.connect(plant.q, bd.GAIN(2.0, name="twice"))
    sim.sweep(bd, {"plant.cart.q": [0.0, 1.0]}, ["plant.q", "twice", "plant.pole.qd"], T=0.1).save(tmp_path / "s.jsonl")
    sweep = cs.Sweep.read(tmp_path / "s.jsonl")
    names = {"plant.q": ["plant.cart.q [m]", "plant.pole.q [rad]"], "twice": ["twice[0]", "twice[1]"]}
    for name, called in names.items():
        assert [t.get_text() for t in sweep.plot(name).axes[0].get_legend().get_texts()] == called
    assert sweep.plot("plant.pole.qd").axes[0].get_ylabel() == "plant.pole.qd [rad/s]"


def test_texts_stand_below_their_points():
    (axes,) = made(len, {"law": ["pd", "lqr", "none"]}).plot().axes
    assert [t.get_text() for t in axes.get_xticklabels()] == ["pd", "lqr", "none"]


def test_two_axes_give_an_image_with_contours():
    figure = made(lambda x, y: x + 10 * y, {"x": X, "y": Y}, fail=[3]).plot()
    axes, bar = figure.axes
    mesh = axes.collections[0]
    assert mesh.get_array().shape == (4, 5)
    expected = (X[:, None] + 10 * Y).T
    drawn = np.ma.getdata(mesh.get_array())
    np.testing.assert_allclose(drawn[0], expected[0])
    assert np.ma.getmaskarray(mesh.get_array())[3, 0]
    assert len(axes.collections) > 1 and axes.get_xlabel() == "x" and axes.get_ylabel() == "y"
    assert bar.get_ylabel() == "value"


def test_a_coarse_grid_has_no_contours():
    """Lines of one level between three values and two say nothing of what is between them."""
    figure = made(lambda x, y: x + 10 * y, {"x": [0.0, 1.0, 2.0], "y": [0.0, 1.0]}).plot()
    assert len(figure.axes[0].collections) == 1


def test_axes_are_chosen_and_swapped_and_the_others_cut():
    found = made(lambda x, y, z: x + 10 * y + 100 * z, {"x": X, "y": Y, "z": [0.0, 1.0]})
    figure = found.plot(axes=("y", "x"), at={"z": 0.9})
    mesh = figure.axes[0].collections[0]
    np.testing.assert_allclose(mesh.get_array(), X[:, None] + 10 * Y + 100)
    assert figure._suptitle.get_text() == "z = 1"
    line = found.plot(axes="z").axes[0].lines[0]
    np.testing.assert_allclose(line.get_ydata(), [-10.0, 90.0])


def test_values_in_any_order_are_drawn_in_order():
    order = [3, 0, 4, 1, 2]
    mesh = made(lambda x, y: x + 10 * y, {"x": X[order], "y": Y}).plot().axes[0].collections[0]
    np.testing.assert_allclose(mesh.get_array(), (X[:, None] + 10 * Y).T)
    line = made(lambda x: x**2, {"x": X[order]}).plot().axes[0].lines[0]
    np.testing.assert_allclose(line.get_xdata(), X)


@pytest.mark.parametrize(
    ("values", "scale"),
    [
        (np.logspace(-3.0, 1.0, 6), "log"),
        ([50, 1, 2, 5, 10, 20], "log"),
        (np.geomspace(1.0, 1e3, 30), "log"),
        ([1.0, 2.0, 3.0, 4.0], "linear"),
        ([1.0, 1.01, 1.0201], "linear"),
        ([0.0, 1.0, 10.0, 100.0], "linear"),
        ([-1.0, -10.0, -100.0], "linear"),
        ([0.01, 1.0], "linear"),
    ],
)
def test_values_spaced_by_a_factor_have_a_logarithmic_axis(values, scale):
    """Of gains from 0.001 to 10 the small ones were a sliver that nobody could read."""
    line = made(lambda x: x, {"x": values}).plot().axes[0]
    assert line.get_xscale() == scale
    plane = made(lambda x, y: x + y, {"x": X, "y": values}).plot().axes[0]
    assert (plane.get_xscale(), plane.get_yscale()) == ("linear", scale)
    if scale == "log":
        heights = np.diff(np.log(plane.collections[0].get_coordinates()[:, 0, 1]))
        assert heights.min() > 0.7 * heights.max()
        if len(values) < 8:
            plane.figure.canvas.draw()
            ticks = [float(t.get_text()) for t in plane.get_yticklabels()]
            np.testing.assert_allclose(ticks, values, rtol=5e-3)


def test_few_values_have_their_ticks():
    """An image over two values had ticks from 0.5 to 2.5, none of which had been run."""
    plane = made(lambda x, y: x + y, {"x": [1.0, 2.0], "y": [0.0, 1.0, 10.0, 100.0]}).plot().axes[0]
    plane.figure.canvas.draw()
    assert [t.get_text() for t in plane.get_xticklabels()] == ["1", "2"]
    dampers = made(lambda x: x, {"x": [500.0, 1000.0, 1500.0, 2500.0, 0.5]}).plot().axes[0]  # 1e+03 lay on 1.5e+03
    assert [t.get_text() for t in dampers.get_xticklabels()][1:4] == ["1000", "1500", "2500"]
    assert len(plane.get_yticks()) > 4  # where labels would lie on each other the ticks are the usual ones


def test_values_of_a_file_that_are_there_twice_are_drawn_once():
    """The cells between two equal values have no width, and the whole picture was grey."""
    axes = Axes(("x", "y"), ([1.0, 1.0, 2.0], [3.0, 4.0, 4.0]), True)
    records = {k: Record({"value": np.array(float(np.dot(axes.run(k), (1.0, 10.0))))}) for k in range(9)}
    mesh = cs.Sweep(axes, records, {}).plot().axes[0].collections[0]
    np.testing.assert_allclose(mesh.get_array(), [[31.0, 32.0], [41.0, 42.0]])


def test_yes_and_no_have_two_colours():
    figure = made(lambda x, y: x > y, {"x": X, "y": Y}).plot()
    assert [t.get_text() for t in figure.axes[1].get_yticklabels()] == ["no", "yes"]
    assert len(figure.axes[0].collections) == 1


def test_samples_are_points():
    rng = np.random.default_rng(0)
    samples = {"a": rng.random(30), "b": rng.random(30)}
    figure = made(lambda a, b: a * b, samples=samples, fail=[4]).plot()
    points = figure.axes[0].collections[0]
    assert len(points.get_offsets()) == 30
    (crosses,) = figure.axes[0].lines
    np.testing.assert_allclose(crosses.get_xydata(), [[samples["a"][4], samples["b"][4]]])
    (axes,) = made(lambda a, b: a * b, samples=samples).plot(axes="b").axes
    assert axes.lines[0].get_linestyle() == "None"


def test_one_value_is_drawn():
    made(lambda x, y: x, {"x": [1.0], "y": [2.0]}).plot()
    made(lambda x: x, {"x": [1.0]}).plot()
    made(lambda x, y: np.nan, {"x": X, "y": Y}).plot().canvas.draw()


@pytest.mark.parametrize(
    ("error", "text", "arguments"),
    [
        (cs.UnknownName, "value 'speed'", {"name": "speed"}),
        (cs.UnknownName, "axis 'z'", {"axes": "z"}),
        (cs.UnknownName, "axis 'z'", {"at": {"z": 1.0}}),
        (cs.UnknownName, "axis 'law': value 'x'", {"axes": "x", "at": {"law": "x"}}),
        (cs.InvalidValue, "is drawn over", {"axes": "x", "at": {"x": 1.0}}),
        (cs.InvalidValue, "has no numbers", {"axes": ("x", "law")}),
        (cs.InvalidValue, "expected one name or two", {"axes": ()}),
        (cs.InvalidType, "axes: expected the name of an axis, or of two, got 0", {"axes": 0}),
        (cs.InvalidType, "labels: expected a dict as .*, got 'x'", {"labels": "x"}),
        (cs.InvalidType, "at: expected a dict as .*, got 3", {"at": 3}),
        (cs.InvalidType, "plot: expected the name", {"name": ["value"]}),
    ],
)
def test_what_can_not_be_drawn_is_named(error, text, arguments):
    found = made(lambda x, law: x, {"x": X, "law": ["pd", "lqr"]})
    with pytest.raises(error, match=text):
        found.plot(**arguments)


def test_nothing_is_drawn_of_nothing():
    with pytest.raises(cs.InvalidValue, match="no run has come to a value"):
        made(lambda x: x, {"x": X}, fail=range(5)).plot()


def test_it_prints_what_it_holds():
    text = repr(made(lambda x, law: x, {"x": X, "law": ["pd", "lqr"]}, fail=[2]))
    assert "finished: 10 of 10 runs, 1 failed" in text and "pd, lqr" in text and "failed at (1, 0): fails" in text
    arrays = made(lambda x, q0: x + q0[1], {"x": [0.5], "q0": [[0.1, 0.0], [0.5, 1.0]]})
    lines = repr(arrays).splitlines()  # these said "1 values, 0.5 to 0.5", and nothing of how many arrays
    assert lines[1:3] == ["  x: 1 value, 0.5", "  q0: 2 values, 0 to 1"]
    assert arrays.plot(axes="x")._suptitle.get_text() == "q0 = [0.1, 0]"


def test_functions_of_one_name_are_told_apart():
    """Two lambdas were "<lambda>" both, under the points, above a cut, in a table and where the sweep is printed."""
    once, twice = lambda x: x, lambda x: 2 * x
    laws = [once, twice, np.sin, {"f": once}, {"f": twice}]
    found = made(lambda x, law: law["f"](x) if isinstance(law, dict) else law(x), {"x": X, "law": laws})
    names = ["<lambda>", "<lambda> (2)", "sin", "f", "f (2)"]
    plot = found.plot(axes="law", at={"x": 1.0}).axes[0]
    assert [label.get_text() for label in plot.get_xticklabels()] == names
    assert found.plot(at={"law": twice})._suptitle.get_text() == "law = <lambda> (2)"
    assert f"law: {', '.join(names)}" in repr(found)
    frame = found.to_pandas()
    assert frame.xs("<lambda> (2)", level="law")["value"].tolist() == (2 * X).tolist()
    with pytest.raises(cs.UnknownName, match=r"'<lambda>', '<lambda> \(2\)', 'sin', 'f'"):
        found.plot(at={"law": "none"})
    drawn = made(lambda law: law(1.0), samples={"law": [once, twice, once]})
    assert drawn.to_pandas().index.tolist() == ["<lambda>", "<lambda> (2)", "<lambda>"]


# ------------------------------------------------------------------ tables


def test_a_grid_is_a_table_of_its_runs():
    """A sweep alone had none: axes and values had to be put side by side by hand."""
    sweep = made(lambda x, y: {"way": x + 10 * y, "q": [x, y]}, {"x": X, "y": Y}, fail=(3,))
    frame = sweep.to_pandas()
    assert list(frame.columns) == ["way", "q[0]", "q[1]"] and frame.index.names == ["x", "y"] and len(frame) == 20
    rows = frame.reset_index()
    np.testing.assert_array_equal(np.isnan(rows["way"]), np.arange(20) == 3)
    ran = rows.dropna()
    np.testing.assert_allclose(ran["way"], ran["x"] + 10 * ran["y"])
    np.testing.assert_array_equal(ran[["x", "y"]], ran[["q[0]", "q[1]"]])
    assert frame.loc[(X[2], Y[1]), "way"] == sweep["way"][2, 1]


def test_a_table_is_taken_for_samples():
    """It was told to be a dict of lists."""
    drawn = np.random.default_rng(1).normal(size=(20, 2))
    frame = made(lambda x, y: x * y, samples={"x": drawn[:, 0], "y": drawn[:, 1]}).to_pandas().reset_index()
    again = made(lambda x, y: x * y, samples=frame[["x", "y"]])
    np.testing.assert_array_equal(again["value"], frame["value"])
    with pytest.raises(cs.InvalidValue, match="samples: the column 'x' occurs twice"):
        made(lambda x: x, samples=frame[["x", "x"]])
    assert list(again.axes) == ["x", "y"]


def test_samples_are_a_table_too():
    bias = np.random.default_rng(0).normal(size=50)
    frame = made(lambda bias, law: 2 * bias, samples={"bias": bias, "law": [np.sin, None] * 25}).to_pandas()
    np.testing.assert_allclose(frame["value"], 2 * bias)
    assert frame["value"].std(ddof=0) == pytest.approx(2 * bias.std())
    assert frame.xs("sin", level="law").index.tolist() == bias[::2].tolist()
    alone = made(lambda x: x**2, {"x": X}).to_pandas()
    assert alone.index.name == "x" and alone.loc[X[3], "value"] == X[3] ** 2
    (axes,) = alone.hist().ravel()
    assert sum(bar.get_height() for bar in axes.patches) == len(X)
