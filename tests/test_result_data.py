"""Results for others: units, files that MATLAB and spreadsheets read, figures, pandas and xarray."""

from __future__ import annotations

import csv
import pickle
import sys

import numpy as np
import pytest
import scipy.io

import cstormpy as cs
from cstormpy.errors import FileFormatError, InvalidValue, UnknownName
from cstormpy.mechanism import Link, Mechanism, Prismatic, Revolute
from cstormpy.simulation.results import read
from cstormpy.simulation.run_data import Recorded


@pytest.fixture(scope="module")
def out():
    sim = cs.Simulation(graphics=False)
    links = [Link("cart", None, Prismatic((1, 0, 0), name="slide"), mass=1.0)]
    links.append(Link("pole", "cart", Revolute((0, 0, 1), name="hinge"), mass=1.0, com=(0, 0.5, 0)))
    mech = Mechanism(links, actuated=["slide"])
    bd = sim.blockdiagram()
    plant, energy = bd.HYBRIDDYNAMICS(mech, q0=[0.0, 0.1], name="plant"), bd.ENERGY(mech, name="energy")
    law, double = bd.CONTROLLER(mech, lambda t, q, qd: np.array([-q[0]]), name="law"), bd.GAIN(2.0, name="double.1")
    bd.connect(plant[0:2], energy[0:2])
    bd.connect(plant[0:2], law[0:2])
    bd.connect(law[0], plant[0])
    bd.connect(plant[0], double)
    bd.connect(double, bd.LIVESCOPE(1, units="furlong", name="scope"))
    return sim.run(bd, T=1.0, watch="all", live=False)


def test_units_are_those_of_the_joints_and_of_the_scopes(out):
    assert {name: out.units[name] for name in out.units if name.startswith("plant")} == {
        "plant.q[0]": "m", "plant.q[1]": "rad", "plant.qd[0]": "m/s", "plant.qd[1]": "rad/s",
        "plant.slide.q": "m", "plant.hinge.q": "rad", "plant.slide.qd": "m/s", "plant.hinge.qd": "rad/s",
    }  # fmt: skip
    assert out.units["energy.total"] == "J"
    assert out.units["law.tau[0]"] == "N"
    assert out.units["double.1[0][1]"] == "furlong"
    assert "law.phase" not in out.units


def test_a_csv_has_its_units_in_its_header(out, tmp_path):
    path = tmp_path / "run.csv"
    out.save(path)
    with path.open(newline="") as file:
        head = next(csv.reader(file))
    assert head[:3] == ["t [s]", "plant.q[0] [m]", "plant.q[1] [rad]"]
    assert "law.phase" in head


@pytest.mark.parametrize("suffix", ["npz", "csv", "mat"])
def test_files_bring_back_names_numbers_and_units(out, suffix, tmp_path):
    out.save(tmp_path / f"run.{suffix}")
    back = cs.load(tmp_path / f"run.{suffix}")
    assert list(back.columns()) == list(out.columns())
    for name, values in out.columns().items():
        np.testing.assert_array_equal(back.columns()[name], values)
    assert back.units == {**out.units, "t": "s"}


def test_a_mat_has_a_variable_for_each_signal(out, tmp_path):
    """As MATLAB's people expect: t (N, 1), plant_q (N, n), not one matrix in which columns are looked for."""
    out.save(tmp_path / "run.mat")
    content = scipy.io.loadmat(tmp_path / "run.mat")
    np.testing.assert_array_equal(content["t"][:, 0], out.t)
    np.testing.assert_array_equal(content["plant_q"], out.signal("plant.q"))
    np.testing.assert_array_equal(content["energy_total"][:, 0], out.signal("energy.total"))
    assert all(name.startswith("__") or (name.isidentifier() and len(name) <= 63) for name in content)


def test_names_that_are_none_in_matlab(tmp_path):
    from cstormpy.simulation.result_files import WRITERS

    names = ["t", "a.b", "a_b", "größe π", "end", "1st", "names", "x" * 80, "x" * 79 + "y", "__", "data[0]", "data[1]"]
    columns = {name: np.arange(3.0) + k for k, name in enumerate(names)}
    with (tmp_path / "run.mat").open("wb") as file:
        WRITERS[".mat"](file, columns, {}, (), "[{}, {}]")
    back = read(tmp_path / "run.mat")
    assert ["t", *back.columns()] == names
    assert all((back.columns()[name] == columns[name]).all() for name in names[1:])


def test_no_two_of_many_lines_look_alike():
    """The eleventh joint had the colour of the first, and no other sign."""
    sim = cs.Simulation(graphics=False, live=False)
    bd = sim.blockdiagram()
    bd.connect(bd.CONSTANT(np.arange(12.0)), bd.INTEGRATOR(np.zeros(12), name="many"))
    lines = sim.run(bd, T=0.1, watch=["many"]).plot("many").axes[0].lines
    assert len({(line.get_color(), line.get_linestyle()) for line in lines}) == 12


def test_a_figure_has_a_plot_for_each_signal(out):
    import matplotlib.pyplot as plt

    figure = out.plot("plant.q", "law.tau")
    q, tau = figure.axes
    assert [line.get_label() for line in q.lines] == ["slide", "hinge"]
    np.testing.assert_array_equal(q.lines[1].get_ydata(), out.signal("plant.q")[:, 1])
    assert (q.get_ylabel(), tau.get_ylabel(), tau.get_xlabel()) == ("[m, rad]", "[N]", "t [s]")
    assert len(out.plot().axes) == len(out.ynames)
    one, number = out.plot("double.1", "plant[0]").axes  # a block and a port by its number ended in a KeyError
    assert [axis.get_title(loc="left") for axis in (one, number)] == ["double.1[0]", "plant.q"]
    assert (one.get_ylabel(), number.get_ylabel()) == ("[furlong]", "[m, rad]")
    assert [*out.measures("double.1")] == ["double.1[0][0]", "double.1[0][1]"]  # as everywhere else
    plt.close("all")
    with pytest.raises(UnknownName, match=r"did you mean"):
        out.plot("plant.qq")


def test_a_figure_names_what_the_values_of_a_signal_stand_for(tmp_path):
    import matplotlib.pyplot as plt

    sim = cs.Simulation(graphics=False)
    bd = sim.blockdiagram()
    plant, law = bd.HYBRIDDYNAMICS("acrobot", name="plant"), bd.CONTROLLER("acrobot", ["pd", "none"], name="law")
    bd.connect(plant[0:2], law[0:2])
    bd.connect(law.tau, plant.tau)
    out = sim.run(bd, T=0.1, live=False, watch=["law.law", "law.tau"])
    law.select("none")
    now = sim.run(bd, T=0.1, live=False, watch=["law.law"])
    out.save(tmp_path / "run.npz")
    out.save(tmp_path / "run.mat")
    saved = [cs.load(tmp_path / f"run.{suffix}") for suffix in ("npz", "mat")]
    for run, name in ((out, "pd"), (now, "none"), *((run, "pd") for run in saved)):
        axis = run.plot("law.law").axes[0]
        assert [tick.get_text() for tick in axis.get_yticklabels()] == [name]
    plt.close("all")


def test_a_figure_of_a_saved_run(out, tmp_path):
    import matplotlib.pyplot as plt

    out.save(tmp_path / "run.npz")
    saved = cs.load(tmp_path / "run.npz")
    figure = saved.plot("plant.q", "plant.hinge.q")
    q, pole = figure.axes
    assert [line.get_label() for line in q.lines] == ["slide", "hinge"]
    np.testing.assert_array_equal(q.lines[1].get_ydata(), out.signal("plant.q")[:, 1])
    np.testing.assert_array_equal(pole.lines[0].get_ydata(), out.signal("plant.q")[:, 1])
    shown = [line.get_label() for axis in saved.plot().axes for line in axis.lines]
    assert len(shown) == len(saved.columns())
    plt.close("all")
    with pytest.raises(UnknownName, match=r"did you mean"):
        saved.plot("plant.qq")


@pytest.mark.parametrize("suffix", ["npz", "csv", "mat"])
def test_a_saved_run_answers_what_its_result_does(suffix, tmp_path):
    """A loaded run could be plotted only; what a sampled block holds was measured as lines."""
    sim = cs.Simulation(graphics=False)
    bd = sim.blockdiagram()
    bd.connect(bd.WAVEFORM("sine", freq=1.0), hold := bd.ZOH(bd.clock(10, "Hz"), name="hold"))
    bd.connect(hold, bd.INTEGRATOR(x0=0.0, name="sum"))
    out = sim.run(bd, T=0.95, watch=["hold"], live=False)
    out.save(tmp_path / f"run.{suffix}")
    back = cs.load(tmp_path / f"run.{suffix}")
    if suffix != "csv":  # which has no place for it
        assert str(back.measures()) == str(out.measures())
        assert back.plot("hold").axes[0].lines[0].get_drawstyle() == "steps-post"
    assert back.measures()["sum:x_0"] == out.measures()["sum:x_0"]
    np.testing.assert_array_equal(back.to_pandas().to_numpy(), out.to_pandas().to_numpy())
    assert set(back.to_xarray().variables) == {"t", "hold", "sum:x_0"}
    back.save(tmp_path / "again.npz")
    np.testing.assert_array_equal(cs.load(tmp_path / "again.npz").signal("hold[0]"), out.signal("hold[0]"))
    with pytest.raises(
        AttributeError, match=r"'x' does not exist.*states and signals go by their names, as in \.signal\('plant\.q'\)"
    ):
        back.x  # noqa: B018
    with pytest.raises(AttributeError, match=r"'status' does not exist; there are 't', 'signal'.* how the run ended"):
        back.status  # noqa: B018
    assert pickle.loads(pickle.dumps(back)).units == back.units
    player = bd.FROMDATA(back, "hold", name="player")
    np.testing.assert_array_equal(player.output(0.5, [], []), [np.interp(0.5, out.t, out.signal("hold"))])


def test_a_result_says_how_its_run_ended():
    sim = cs.Simulation(graphics=False)
    bd = sim.blockdiagram()
    bd.connect(bd.TIME(), late := bd.COMPARE(">", 0.5, name="late"))
    bd.connect(late, bd.STOP(name="enough"))
    out = sim.run(bd, T=1.0, live=False)
    first = str(out).splitlines()[0]
    assert first.startswith("stopped at t = 0.5 by block 'enough' (STOP) (t = 0 to 0.5 s, ")
    assert first.endswith(" events, the last of 'enough')")
    assert str(sim.run(bd, T=0.25, dt=0.125, live=False)).startswith(
        "finished: reached the end (t = 0 to 0.25 s, 3 samples)\n"
    )


def test_one_number_of_a_signal_by_its_name(out):
    np.testing.assert_array_equal(out.signal("plant.q[1]"), out.signal("plant.q")[:, 1])
    with pytest.raises(UnknownName):
        out.signal("plant.q[2]")


def test_a_figure_of_the_states_where_nothing_was_watched():
    import matplotlib.pyplot as plt

    sim = cs.Simulation(graphics=False)
    bd = sim.blockdiagram()
    plant = bd.HYBRIDDYNAMICS("pendulum", q0=[0.1], name="plant")
    bd.connect(bd.CONSTANT([0.0]), plant[0])
    out = sim.run(bd, T=0.1, live=False)
    assert [axis.get_title(loc="left") for axis in out.plot().axes] == out.xnames  # one of each unit
    bd.connect(plant.q, bd.INTEGRATOR(name="angle"))
    bd.connect(bd.CONSTANT(1.0), bd.INTEGRATOR(name="time"))
    titles = [axis.get_title(loc="left") for axis in sim.run(bd, T=0.1, live=False).plot().axes]
    assert titles == [*out.xnames, "states"]
    plt.close("all")


@pytest.mark.filterwarnings("error")
def test_a_figure_of_a_matrix_leaves_room_for_its_lines():
    """The names of 42 entries took more than the width of the figure, with nothing left for the plots."""
    import matplotlib.pyplot as plt

    run = Recorded(np.arange(3.0), {f"hand.jacobian[{k}]": np.arange(3.0) + k for k in range(42)}, {})
    figure = run.plot()
    figure.draw_without_rendering()
    names = [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    assert len(names) == 16 and names[14:] == ["hand.jacobian[14]", "and 27 more"]
    assert figure.axes[0].get_position().width > 0.3
    plt.close("all")


def test_a_frame_of_pandas(out):
    pandas = pytest.importorskip("pandas")
    frame = out.to_pandas()
    assert isinstance(frame, pandas.DataFrame)
    assert frame.index.name == "t"
    np.testing.assert_array_equal(frame["plant.q[1]"], out.signal("plant.q")[:, 1])
    assert frame.attrs["units"]["plant.q[1]"] == "rad"


def test_a_dataset_of_xarray(out):
    xarray = pytest.importorskip("xarray")
    data = out.to_xarray()
    assert isinstance(data, xarray.Dataset)
    np.testing.assert_array_equal(data["plant.q"].values, out.signal("plant.q"))
    assert data["plant.q"].attrs["units"] == ["m", "rad"]
    assert data["energy.total"].attrs["units"] == "J"


@pytest.mark.parametrize("package", ["pandas", "xarray"])
def test_what_is_missing_is_said(out, package, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(InvalidValue, match=f"to_{package} needs {package}: pip install {package}"):
        getattr(out, f"to_{package}")()


def decay(sim, rate):
    bd = sim.blockdiagram()
    state, gain = bd.INTEGRATOR(x0=1.0, name="state"), bd.GAIN(-rate, name="gain")
    bd.connect(state, gain)
    bd.connect(gain, state)
    return bd


def final(out):
    return {"x": out.x[-1, 0]}


def test_whatever_is_saved_is_loaded(out, tmp_path):
    """One function for all files: it is the content of a JSON that tells what it holds."""
    mech, curve = cs.library.acrobot(), cs.BSpline.clamped(np.linspace(0, 1, 8).reshape(4, 2), 2.0)
    mech.save(tmp_path / "mech.json")
    (tmp_path / "mech.urdf").write_text(cs.library.arm7().to_urdf())
    curve.save(tmp_path / "curve.json")
    out.state.save(tmp_path / "state.json")
    assert cs.load(tmp_path / "mech.json") == mech
    assert cs.load(str(tmp_path / "mech.urdf")) == cs.library.arm7()
    assert cs.load(tmp_path / "curve.json") == curve
    assert cs.load(tmp_path / "state.json").continuous == out.state.continuous
    sweep = cs.Simulation(graphics=False).sweep(decay, {"rate": [1.0, 2.0]}, final, T=0.1, progress=False)
    sweep.save(tmp_path / "sweep.json")
    assert str(cs.load(tmp_path / "sweep.json")) == str(sweep)


def test_what_cannot_be_loaded_is_named(tmp_path):
    (tmp_path / "other.json").write_text('{"format": "something else"}')
    (tmp_path / "list.json").write_text("[1, 2]")
    (tmp_path / "torn.json").write_text('{"format"')
    (tmp_path / "a.txt").write_text("hello")
    with pytest.raises(FileFormatError, match=r"other\.json: .* 'something else'"):
        cs.load(tmp_path / "other.json")
    with pytest.raises(FileFormatError, match=r"list\.json: "):
        cs.load(tmp_path / "list.json")
    with pytest.raises(FileFormatError, match=r"torn\.json: is not JSON"):
        cs.load(tmp_path / "torn.json")
    with pytest.raises(FileFormatError, match=r"a\.txt: expected"):
        cs.load(tmp_path / "a.txt")
    with pytest.raises(FileFormatError, match=r"gone\.json: cannot be read"):
        cs.load(tmp_path / "gone.json")
    with pytest.raises(FileFormatError, match=r"diagram\.bd: is a diagram; load it with sim\.load\(path\)"):
        cs.load(tmp_path / "diagram.bd")


def test_units_of_joints_with_several_coordinates():
    """Each coordinate of a planar joint has its own unit: two metres and an angle."""
    sim = cs.Simulation(graphics=False)
    mech = Mechanism([Link("puck", None, cs.Planar(name="table"), mass=1.0, inertia=np.eye(3))])
    bd = sim.blockdiagram()
    plant = bd.HYBRIDDYNAMICS(mech, name="plant")
    bd.connect(bd.CONSTANT(np.zeros(3)), plant[0])
    out = sim.run(bd, T=0.1, watch=["plant"], live=False)
    assert [out.units[f"plant.q[{k}]"] for k in range(3)] == ["m", "m", "rad"]
    assert [out.units[f"plant.qd[{k}]"] for k in range(3)] == ["m/s", "m/s", "rad/s"]
    assert sorted(unit for name, unit in out.units.items() if name.endswith(".q")) == ["m", "m", "rad"]


def test_a_loaded_run_tells_what_is_in_it(tmp_path):
    sim = cs.Simulation(live=False)
    bd = sim.blockdiagram()
    bd.connect(bd.CONSTANT(1.0), bd.INTEGRATOR(x0=0.0, name="place"))
    sim.run(bd, T=1.0, solver="RK4", dt=0.25, watch=["place"]).save(tmp_path / "run.npz")
    assert repr(cs.load(tmp_path / "run.npz")).startswith("<Recorded: 5 rows from 0 to 1 s: ")


@pytest.mark.parametrize("name", ["run.npz", "run.csv", "run.mat"])
def test_a_run_that_is_not_there_is_a_missing_file(tmp_path, name):
    """Of mechanisms it was one, so that ``except FileNotFoundError`` caught these alone."""
    with pytest.raises(FileNotFoundError, match=f"{name}: there is no such file"):
        cs.load(tmp_path / name)
