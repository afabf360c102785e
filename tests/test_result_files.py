"""Files of runs: what is saved is read again, whole or not at all, and damage is named."""

from __future__ import annotations

import os

import numpy as np
import pytest
from simulations import oscillator

import cstormpy as cs
from cstormpy.simulation.results import read


@pytest.fixture
def sim():
    return cs.Simulation()


@pytest.fixture
def result(sim):
    bd = sim.blockdiagram()
    oscillator(bd)
    return sim.run(bd, 1.0, watch="all", log_dt=0.1)


@pytest.mark.parametrize("suffix", ["npz", "csv", "mat"])
def test_saved_and_read(result, suffix, tmp_path):
    path = tmp_path / f"run.{suffix}"
    result.save(path)
    back = read(path)
    np.testing.assert_array_equal(back.t, result.t)
    np.testing.assert_array_equal(back.signal("x[0]"), result.x)
    np.testing.assert_array_equal(back.signal("outer[0]"), result.signal("outer").reshape(-1, 4))
    np.testing.assert_array_equal(back.signal("parts.place"), result.x[:, 0])
    with pytest.raises(cs.UnknownName, match="did you mean"):
        back.signal("parts.plac")
    assert sorted(p.name for p in tmp_path.iterdir()) == [path.name]
    result.save(str(path))  # over what is there


@pytest.mark.parametrize("suffix", ["npz", "csv", "mat"])
def test_the_name_of_a_block_means_the_same_in_a_file(sim, suffix, tmp_path):
    """A number watched as "gain.0" was (N,) in the run, and (N, 1) in its file."""
    bd = sim.blockdiagram()
    bd.connect(bd.CONSTANT(2.0, name="two"), gain := bd.GAIN(3.0))
    bd.connect(gain, bd.NULL())
    bd.connect(bd.CONSTANT([4.0], name="row"), row := bd.FUNCTION(lambda u: u, name="arm", onames=("q",)))
    bd.connect(row, bd.INTEGRATOR(x0=[0.0], name="x"))
    out = sim.run(bd, 0.1, watch="all")
    out.save(tmp_path / f"run.{suffix}")
    for back in (read(tmp_path / f"run.{suffix}"), out.recorded()):
        for name in ("two", "gain.0", "gain.0[0]", "arm", "arm.q", "row[0]", "x[0]", "x:x_0"):
            np.testing.assert_array_equal(back.signal(name), out.signal(name), strict=True)


@pytest.mark.parametrize("suffix", [".npz", ".csv", ".mat"])
def test_a_state_that_is_called_as_the_times_are_stands_beside_them(sim, suffix, tmp_path):
    """It took their place in the file."""
    bd = sim.blockdiagram()
    bd.connect(bd.CONSTANT(2.0), bd.INTEGRATOR(x0=1.0, snames=["t"], name="count"))
    out = sim.run(bd, T=0.5)
    out.save(tmp_path / f"run{suffix}")
    saved = cs.load(tmp_path / f"run{suffix}")
    np.testing.assert_array_equal(saved.t, out.t)
    assert out.xnames == ["count:t"]
    np.testing.assert_allclose(saved.signal("count:t"), 1.0 + 2.0 * out.t, rtol=1e-12)


def test_a_file_of_others_has_its_signals_by_name(tmp_path):
    (tmp_path / "run.csv").write_text("time,arm.tau,w[1],w[0],leg.q,leg.qd\n0,1,2,3,4,5\n")
    back = read(tmp_path / "run.csv")
    assert back.signals == {"arm.tau": ["arm.tau"], "w": ["w[0]", "w[1]"], "leg.q": ["leg.q"], "leg.qd": ["leg.qd"]}
    assert back.signal("w").tolist() == [[3.0, 2.0]] and back.signal("arm").tolist() == [1.0]
    with pytest.raises(cs.UnknownName, match=r"'leg' is one of several: leg\.q, leg\.qd"):
        back.signal("leg")
    with pytest.raises(cs.UnknownName, match="'' does not exist"):
        back.signal("")


def test_columns_of_one_name_are_refused(tmp_path):
    """The last of them was taken, and the others were lost."""
    (tmp_path / "log.csv").write_text("t,speed,speed,,\n0,1,2,,\n1,3,4,,\n")
    with pytest.raises(cs.FileFormatError, match="two columns are called 'speed'; give each a name of its own"):
        cs.load(tmp_path / "log.csv")


def test_times_are_in_seconds_whatever_the_unit_in_their_name(tmp_path):
    """Times under "t [ms]" were read as seconds."""
    path = tmp_path / "log.csv"
    path.write_text("time [ms],q [deg]\n0,1\n5,2\n", encoding="utf-8")
    back = read(path)
    np.testing.assert_allclose(back.t, [0.0, 0.005], rtol=1e-15)
    assert back.units == {"time": "s", "q": "deg"}
    path.write_text("time [ticks],q\n0,1\n5,2\n", encoding="utf-8")
    with pytest.raises(cs.FileFormatError, match="its times are in 'ticks'; convert them to seconds, 's'"):
        read(path)


@pytest.mark.parametrize("text", ["t;theta.q\n0;1\n1;2\n", "t\ttheta.q\n0\t1\n", "t;theta.q\n0,1;2,5\n0,2;3,5\n"])
def test_another_sign_between_cells_is_named(tmp_path, text):
    """As a spreadsheet writes them where numbers have a comma; the rows were told to have 3 cells, the first 1."""
    (tmp_path / "log.csv").write_text(text)
    with pytest.raises(
        cs.FileFormatError, match=r"between cells is a comma, not '(;|\\t)': pandas\.read_csv\(path, sep="
    ):
        read(tmp_path / "log.csv")


def test_empty_cells_of_a_log_are_what_was_not_measured(tmp_path):
    """A log with missing samples was told to be no saved run: could not convert string to float."""
    path = tmp_path / "log.csv"
    path.write_text("t,q,tau\n0,1.5,2\n0.1,,3\n0.2, ,4\n0.3,1.8,\n")
    np.testing.assert_array_equal(read(path).signal("q"), [1.5, np.nan, np.nan, 1.8])
    np.testing.assert_array_equal(read(path).signal("tau"), [2.0, 3.0, 4.0, np.nan])
    path.write_text("t,q,tau\n0,1.5,2\n0.1,none,3\n")
    with pytest.raises(cs.FileFormatError, match="row 3, column 'q': expected a number, got 'none'"):
        read(path)


def test_what_can_not_be_saved(result, tmp_path):
    with pytest.raises(cs.InvalidValue, match=r"ends in \.npz, \.csv or \.mat"):
        result.save(tmp_path / "run.txt")
    with pytest.raises(cs.CstormError, match="folder"):
        result.save(tmp_path / "folder" / "run.csv")
    with pytest.raises(cs.CstormError):
        result.save(None)
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "run.npz")
        with pytest.raises(cs.CstormError, match="is no file"):
            result.save(tmp_path / "run.npz")


@pytest.mark.filterwarnings("ignore")  # of scipy, about what the damage looks like
@pytest.mark.parametrize("suffix", ["npz", "csv", "mat"])
def test_damaged_files(result, suffix, tmp_path):
    path = tmp_path / f"run.{suffix}"
    result.save(path)
    whole = path.read_bytes()
    rng = np.random.default_rng(0)
    cut = [whole[: int(len(whole) * part)] for part in (0, 0.01, 0.3, 0.7, 0.99)]
    flipped = []
    for _ in range(30):
        data = bytearray(whole)
        for at in rng.integers(0, len(data), 5):
            data[at] = rng.integers(256)
        flipped.append(bytes(data))
    refused = 0
    for content in [*cut, *flipped, b"\x00" * 100, b"t,x\n", b"t,x\n1,a\n", b"t,x\n2,0\n1,0\n", b"t,x\nnan,0\n"]:
        path.write_bytes(content)
        try:
            read(path)  # damage within a number may go unseen
        except cs.CstormError as error:
            assert path.name in str(error)
            refused += 1
    assert refused >= 10


def test_a_file_that_is_missing_or_of_another_kind(tmp_path):
    for name in ("none.csv", "none.txt", "none"):
        with pytest.raises(cs.FileFormatError, match="none"):
            read(tmp_path / name)
