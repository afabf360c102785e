"""Measures of signals: closed forms of first and second order, jumps, and what cannot be measured."""

from __future__ import annotations

import math

import numpy as np
import pytest

import cstormpy as cs
from cstormpy import measures
from cstormpy.errors import InvalidType, InvalidValue, NonFinite, ShapeError
from cstormpy.report import facts

T = np.linspace(0.0, 40.0, 400_001)
H = T[1]


@pytest.mark.parametrize("zeta", [0.1, 0.4, 0.7])
@pytest.mark.parametrize(("start", "final"), [(0.0, 1.0), (2.0, -3.0)])
def test_a_second_order_response_has_the_closed_forms(zeta, start, final):
    """Overshoot exp(-πζ/√(1-ζ²)), its peak at π/ω_d; the parabola through a sample is H²/8 above the line."""
    wd = math.sqrt(1 - zeta**2)
    y = start + (final - start) * (1 - np.exp(-zeta * T) * (np.cos(wd * T) + zeta / wd * np.sin(wd * T)))
    got = measures.overshoot(T, y, start=start, final=final)
    assert got == pytest.approx(math.exp(-math.pi * zeta / wd), abs=H**2)
    if (start, final) == (0.0, 1.0):
        value, when = measures.peak(T, y)
        assert value == pytest.approx(1 + math.exp(-math.pi * zeta / wd), abs=H**2)
        assert when == pytest.approx(math.pi / wd, abs=H)
    settled = measures.settling_time(T, y, start=start, final=final)
    if math.isnan(settled):
        assert abs(y[-1] - final) > 0.02 * abs(final - start)
    else:
        off = np.abs(y - final) / abs(final - start)
        assert (off[settled + H < T] <= 0.02).all()
        assert off[np.searchsorted(T, settled) - 1] > 0.02
    assert measures.undershoot(T, y, start=start, final=final) == 0.0


def test_a_first_order_response():
    y = 1 - np.exp(-T / 2)
    assert measures.rise_time(T, y, final=1.0) == pytest.approx(2 * math.log(9), abs=H**2)
    assert measures.rise_time(T, y, final=1.0, low=0.0, high=0.5) == pytest.approx(2 * math.log(2), abs=H**2)
    assert measures.settling_time(T, y, final=1.0, band=0.05) == pytest.approx(2 * math.log(20), abs=H**2)
    assert measures.overshoot(T, y, final=1.0) == 0.0
    assert math.isnan(measures.rise_time(T, y, final=2.0))
    assert math.isnan(measures.settling_time(T, y, final=2.0))


def test_a_response_that_goes_the_wrong_way_first():
    """(1 - s) / (1 + s)² has a step response 1 - e^-t + ... of which the minimum is at t = 1/2: 1 - (1 + 2t) e^-t."""
    y = 1 - np.exp(-T) - 2 * T * np.exp(-T)
    lowest = 1 - 2 * math.exp(-0.5)
    assert measures.undershoot(T, y, start=0.0, final=1.0) == pytest.approx(-lowest, abs=H**2)


@pytest.mark.parametrize(("final", "is_way"), [(0.0, False), (1e-4, False), (1e-2, True)])
def test_what_swings_and_comes_back_has_no_way(final, is_way):
    """Its overshoot was some billions of percent, of what a run's tolerance leaves of a rate that comes to rest."""
    found = measures.measured(T, 5.0 * np.exp(-T / 2) * np.sin(3 * T) + final * (1 - np.exp(-T)))
    ways = [found.rise_time, found.settling_time, found.overshoot]
    assert np.isfinite(ways).all() if is_way else np.isnan(ways).all()


def test_root_mean_squares():
    turn = np.linspace(0.0, 2 * np.pi, 20_001)
    assert measures.rms(turn, 3 * np.sin(turn)) == pytest.approx(3 / math.sqrt(2), abs=1e-7)
    uneven = np.array([0.0, 0.1, 0.1, 5.0])  # with a jump
    assert measures.rms(uneven, [1.0, 1.0, -1.0, -1.0]) == pytest.approx(1.0, abs=1e-15)
    assert measures.rms([0, 2], [1, 1]) == 1.0
    assert measures.rms([3], [-2]) == 2.0
    assert measures.rms([0, 1], [1e300, 1e300]) == pytest.approx(1e300)


def test_a_jump_is_reached_at_once():
    t, y = [0.0, 1.0, 1.0, 2.0], [0.0, 0.0, 1.0, 1.0]
    assert measures.rise_time(t, y) == 0.0
    assert measures.settling_time(t, y) == 1.0


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: measures.rms([0, 1], [0, 1, 2]), ShapeError, "y: expected 2 samples, one for each time, got 3"),
        (lambda: measures.rms([], []), ShapeError, "t: expected at least one sample"),
        (lambda: measures.rms([1, 0], [0, 0]), InvalidValue, "t: expected times that do not decrease"),
        (lambda: measures.peak([0, 1], [0, float("nan")]), NonFinite, "y: "),
        (lambda: measures.peak([0, 1], ["a", "b"]), InvalidType, "y: "),
        (lambda: measures.rise_time([0, 1], [1, 1]), InvalidValue, "final: a response goes from one value to another"),
        (lambda: measures.rise_time([0, 1], [0, 1], low=0.9, high=0.1), InvalidValue, "low: must be below high"),
        (lambda: measures.settling_time([0, 1], [0, 1], band=0), InvalidValue, "band: expected a positive number"),
    ],
)
def test_what_cannot_be_measured_is_refused(call, error, words):
    with pytest.raises(error) as caught:
        call()
    assert words in str(caught.value)


def test_the_measures_of_a_run():
    sim = cs.Simulation(graphics=False)
    bd = sim.blockdiagram()
    source, lag = bd.STEP(T=0.0, name="source"), bd.LTI_SISO(1, [1, 1], name="lag")
    bd.connect(source, lag)
    out = sim.run(bd, T=30.0, rtol=1e-9, max_step=0.01, watch=["lag"], live=False)
    table = out.measures("lag")
    (found,) = table.values()
    assert found.rise_time == pytest.approx(math.log(9), abs=1e-4)
    assert found.settling_time == pytest.approx(math.log(50), abs=1e-4)
    assert found.overshoot == 0.0
    assert str(table).splitlines()[0].split()[:4] == ["signal", "unit", "rms", "peak"]
    assert set(out.measures()) == set(out.columns())


def test_the_report_has_a_table_of_what_its_scopes_show(tmp_path):
    sim = cs.Simulation(graphics=False)
    bd = sim.blockdiagram()
    source, lag = bd.STEP(T=0.0, name="source"), bd.LTI_SISO(1, [1, 1], name="lag")
    bd.connect(source, lag)
    bd.connect(lag, bd.LIVESCOPE(1, labels=["level <m>"], units="m", name="scope"))
    out = sim.run(bd, T=30.0, rtol=1e-9, max_step=0.01, live=False, report=tmp_path / "run.html")
    (head, row) = facts.measures(out)
    assert head[0] == "signal" and row[:2] == ["level <m>", "m"]
    assert row[head.index("rise [s]")] == f"{math.log(9):.4g}"
    page = (tmp_path / "run.html").read_text(encoding="utf-8")
    assert "<summary>Measures</summary>" in page and "<th>level &lt;m&gt;</th>" in page


def test_measures_of_coordinates_say_whose_they_are():
    sim = cs.Simulation(graphics=False, live=False, progress=False)
    bd = sim.blockdiagram()
    plant = bd.HYBRIDDYNAMICS("acrobot", q0=[0.3, 0.2], name="plant")
    bd.connect(bd.CONSTANT(0.0), plant.tau)
    found = sim.run(bd, T=0.1, watch="plant").measures("plant.q")
    assert [row[0] for row in found.rows()] == ["signal", "plant.q[0] shoulder", "plant.q[1] elbow"]
    assert list(found) == ["plant.q[0]", "plant.q[1]"]


def test_an_estimate_says_whose_positions_and_rates_it_has():
    """Its traces were "ekf.estimate[3]", without a unit."""
    bd = (sim := cs.Simulation(live=False, progress=False)).blockdiagram()
    cart = cs.library.cart_pole()
    plant, found = bd.HYBRIDDYNAMICS(cart, name="plant"), bd.EKF(bd.clock(100, "Hz"), cart, name="ekf")
    bd.connect(plant.q, found.measured)
    bd.connect(bd.CONSTANT(0.0), plant.tau, found.tau)
    bd.connect(found, bd.LIVESCOPE(name="scope"))
    out = sim.run(bd, T=0.05, watch=["ekf"])
    names = ["cart.q", "pole.q", "cart.qd", "pole.qd"]
    assert out.captions()[0] == {f"ekf.estimate[{k}]": name for k, name in enumerate(names)}
    assert [out.units[f"ekf.estimate[{k}]"] for k in range(4)] == ["m", "rad", "m/s", "rad/s"]
    assert [trace.partition(" ")[0] for trace in out.panes[0].labels] == [f"ekf.{name}" for name in names]


def test_a_signal_that_is_not_finite_has_no_measures():
    """A run that failed has a report too."""
    table = measures.MeasureTable([0.0, 1.0], {"x": [0.0, float("inf")], "y": [0.0, 2.0]}, {})
    assert math.isnan(table["x"].rms) and table["y"].peak == 2.0
    assert str(table).splitlines()[1].split() == ["x", "-", "-", "-", "-", "-", "-", "-"]


@pytest.mark.parametrize("engine", ["interpreted", "compiled"])
def test_what_a_sampled_block_holds_is_measured_so(engine):
    """Straight lines between the samples gave a root mean square of 0.940 for 0.935 here, and another rise."""
    sim = cs.Simulation(engine=engine, graphics=False, live=False, progress=False)
    bd = sim.blockdiagram()
    time, hold = bd.TIME(), bd.ZOH(bd.clock(0.5), name="hold")
    late = bd.DELAY(bd.clock(0.01), time=0.02, name="late")
    square, total = bd.FUNCTION(lambda u: u * u), bd.INTEGRATOR(x0=0.0, name="total")
    bd.connect(time, hold, late)
    bd.connect(hold, square, bd.LIVESCOPE(labels=["told"], stairs=True), bd.LIVESCOPE(labels=["known"]))
    bd.connect(square, total)
    both = bd.LIVESCOPE(2, labels=["same", "same"])
    bd.connect(hold, both[0])
    bd.connect(time, both[1])
    out = sim.run(bd, T=2.0, watch=["hold", "late"], max_step=0.37)
    exact = math.sqrt(out.x[-1, 0] / 2.0)  # ∫ y² dt, by the solver
    for found in (out.measures()["hold[0]"], out.measures("hold")["hold"], *out.measures(hold).values()):
        assert found.rms == pytest.approx(exact, rel=1e-12)
        assert found.rise_time == 1.5 and found.settling_time == 2.0 and found.peak_time == 2.0
    assert out.measures("late")["late"].rms == pytest.approx(math.sqrt(1.98**3 / 3.0 / 2.0), rel=1e-3)
    head, *rows = facts.measures(out)
    assert [row[0] for row in rows] == ["told", "known", "same", "same"]  # of two with one name there was one
    straight = math.sqrt(4.0 / 3.0)
    assert [row[head.index("rms")] for row in rows] == [f"{v:.4g}" for v in (exact, exact, exact, straight)]
