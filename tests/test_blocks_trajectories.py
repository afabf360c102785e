"""SPLINETRAJECTORY and FROMDATA: what they say at any time, and that runs land on their jumps."""

from __future__ import annotations

import contextlib
import io

import numpy as np
import pytest
from bdsim.run_sim import BDSimState
from simulations import ours, plain

import cstormpy as cs
from cstormpy.blocks.trajectories import FromData, SplineTrajectory
from cstormpy.errors import CstormError, FileFormatError, InvalidType, InvalidValue, NonFinite, ShapeError, UnknownName
from cstormpy.reporting import notice_once
from cstormpy.trajectory import BSpline

POINTS = [[0.0, 1.0], [0.5, 1.0], [2.0, -1.0], [1.0, 0.0], [1.5, 0.5]]
CURVE = BSpline.clamped(POINTS, 2.0, t0=0.5, names=["hip", "knee"])


def declared(block, T=10.0, t=0.0):
    """Return the times at which a block says it jumps."""
    simstate = BDSimState()
    simstate.tf, simstate.t = T, t
    block.start(simstate)
    return sorted({when for when, _, _ in simstate.eventq._heap})


def integrated(make, source, T, port=0):
    """Return the times, and the integral of an output at the end of a run with large steps."""
    sim, bd = make()
    block = source(bd)
    integral = bd.INTEGRATOR(x0=np.zeros(block.outwidths[port]))
    bd.connect(block[port], integral)
    with contextlib.redirect_stdout(io.StringIO()):
        bd.compile()
        if make is plain:
            out = sim.run(bd, T=T, solver_args={"rtol": 1e-9, "atol": 1e-12})
        else:
            out = sim.run(bd, T=T, max_step=T, rtol=1e-9, atol=1e-12, on_error="raise")
    return out.t, out.x[-1]


# ---------------------------------------------------------------- SPLINETRAJECTORY


def test_it_is_the_curve():
    block = SplineTrajectory(CURVE)
    assert block.outwidths == (2, 2, 2)
    for t in (0.5, 0.9, 1.7):
        for found, expected in zip(block.test_output(t=t), CURVE.evaluate(t), strict=True):
            assert found == pytest.approx(expected, abs=1e-14)


@pytest.mark.parametrize("t", [-3.0, 0.4999, 2.5, 99.0])
def test_an_end_is_held_at_rest(t):
    q, qd, qdd = SplineTrajectory(CURVE).test_output(t=t)
    assert q.tolist() == CURVE(0.5 if t < 1 else 2.5).tolist()
    assert qd.tolist() == qdd.tolist() == [0.0, 0.0]


def test_it_repeats():
    block = SplineTrajectory(CURVE, ends="repeat")
    for t in (0.7, 1.9):
        for k in (-2, 1, 5):
            for found, expected in zip(block.test_output(t=t + 2.0 * k), block.test_output(t=t), strict=True):
                assert found == pytest.approx(expected, abs=1e-12)


def test_a_repetition_begins_at_its_very_time():
    """0.3 + 3 x 0.1 is no multiple of 0.1 in floating point; the declared time belongs to the new repetition."""
    block = SplineTrajectory([0.0, 1.0], duration=0.1, degree=1, start=0.3, ends="repeat")
    for k in range(40):
        assert block.test_output(t=0.3 + k * (0.4 - 0.3))[0] == pytest.approx([0.0], abs=1e-12)


@pytest.mark.parametrize("period", [2e-5, 1e-3, 0.1, 0.7, 1 / 3, 3.0])
@pytest.mark.parametrize("rounds", [0, 1, 1000])
def test_a_run_sees_both_ends_of_each_round(period, rounds):
    """A sawtooth that snapped to its next round too early hid switchings of a converter, whose COMPARE looks there."""
    sim, bd = ours()
    carrier = bd.FROMDATA(t=np.array([0.0, period]) + rounds * period, y=[0.0, 1.0], ends="repeat", name="carrier")
    level, duty = bd.SUM("+-", name="level"), bd.CONSTANT(0.5)
    bd.connect(duty, level[0])
    bd.connect(carrier, level[1])
    bd.connect(level, switch := bd.COMPARE(">", name="switch"))
    bd.connect(switch, bd.INTEGRATOR(name="on"))
    out = sim.run(bd, T=60.25 * period, watch=["carrier"], on_error="raise")
    jumps = np.flatnonzero((np.diff(out.t) == 0.0) & (out.t[1:] > 0.5 * period))
    jumps = jumps[abs(out.t[jumps] / period % 1.0 - 0.5) > 0.25]  # the others are where the switch works
    ends = out.signal("carrier").ravel()
    np.testing.assert_allclose(ends[jumps], 1.0, atol=1e-9)
    np.testing.assert_allclose(ends[jumps + 1], 0.0, atol=1e-9)
    assert len(jumps) == 60
    np.testing.assert_allclose(out.x[-1], 30.25 * period, rtol=1e-9)


@pytest.mark.parametrize("begin", [0.0, 10.0, 1000.0, 1e5])
@pytest.mark.parametrize("between", ["linear", "previous"])
def test_a_record_of_late_times_jumps_when_it_says(begin, between):
    """Played over and over from 0 on it did so by the rounding of its times: steps had a stage beyond, 0.07 in 2 s."""
    sim, bd = ours()
    t, y = begin + np.array([0.0, 0.05, 0.05, 0.1]), [0.0, 1.0, -1.0, 0.0]
    rows = [0, 2, 3] if between == "previous" else [0, 1, 2, 3]
    bd.connect(
        bd.FROMDATA(t=t[rows], y=np.take(y, rows) + 1.0, interpolation=between, ends="repeat"), bd.INTEGRATOR(name="x")
    )
    out = sim.run(bd, T=2.0, solver="RK4", dt=0.01)
    assert out.x[-1, 0] == pytest.approx({"linear": 2.0, "previous": 1.0}[between], abs=2e-7)


def test_speed_scales_rates():
    block = SplineTrajectory(CURVE, speed=2.0, start=1.0)
    q, qd, qdd = block.test_output(t=1.3)
    expected = CURVE.evaluate(1.1)
    assert q == pytest.approx(expected[0])
    assert qd == pytest.approx(2 * expected[1]) and qdd == pytest.approx(4 * expected[2])
    h = 1e-6
    slope = (block.test_output(t=1.3 + h)[0] - block.test_output(t=1.3 - h)[0]) / (2 * h)
    assert qd == pytest.approx(slope, abs=1e-8)


def test_speed_is_tunable_between_runs():
    block = SplineTrajectory(CURVE, start=0.0)
    declared(block)
    with contextlib.redirect_stdout(io.StringIO()):
        block.set_param("speed", 4.0)
    assert block.speed == 4.0
    assert block.test_output(t=1.0)[0] == pytest.approx(CURVE(1.5))  # the run that goes on is not torn apart
    assert declared(block) == [0.5]
    assert block.test_output(t=0.25)[0] == pytest.approx(CURVE(1.5))
    with pytest.raises(InvalidValue, match="speed"):
        block.speed = 0.0


def test_joints_by_name_and_by_index():
    for joints in (["knee"], [1], "knee", 1):
        block = SplineTrajectory(CURVE, joints=joints)
        assert block.outwidths == (1, 1, 1)
        assert block.test_output(t=1.0)[0] == pytest.approx(CURVE(1.0)[1:])
    assert SplineTrajectory(CURVE, joints=["knee", "hip"]).test_output(t=1.0)[0] == pytest.approx(CURVE(1.0)[::-1])


def test_from_points_and_from_a_file(tmp_path):
    CURVE.save(tmp_path / "curve.json")
    for given in (str(tmp_path / "curve.json"), tmp_path / "curve.json"):
        assert SplineTrajectory(given).curve == CURVE
    assert SplineTrajectory(CURVE, duration=4.0).test_output(t=2.5)[0] == pytest.approx(CURVE(1.5))
    by_points = SplineTrajectory(POINTS, duration=2.0, start=0.5)
    assert by_points.test_output(t=1.1)[0] == pytest.approx(CURVE(1.1))
    assert SplineTrajectory([0.0, 0.0, 1.0, 1.0], duration=2.0).test_output(t=1.0)[0] == pytest.approx([0.5])


def test_times_of_jumps():
    assert declared(SplineTrajectory(CURVE)) == [0.5, 2.5]
    assert declared(SplineTrajectory(CURVE), t=1.0) == [2.5]  # a run that is continued
    assert declared(SplineTrajectory(CURVE, ends="repeat"), T=5.0)[:3] == [0.5, 2.5, 4.5]
    assert declared(SplineTrajectory(POINTS, duration=4.0, degree=1)) == [1.0, 2.0, 3.0, 4.0]
    assert declared(SplineTrajectory(POINTS, duration=3.0, degree=2)) == [1.0, 2.0, 3.0]
    with pytest.raises(InvalidValue, match="jumps more than"):
        declared(SplineTrajectory([0.0, 1.0], duration=1e-6, degree=1, ends="repeat"))


@pytest.mark.parametrize("make", [plain, ours])
def test_a_run_lands_on_the_knots_and_ends(make):
    """The integral of the rate of a saw tooth is the saw tooth: exact, though steps could reach over its corners."""
    saw = lambda bd: SplineTrajectory([0.0, 1.0, -2.0], duration=0.8, degree=1, start=0.3, bd=bd)  # noqa: E731
    t, end = integrated(make, saw, T=2.0, port=1)
    assert end == pytest.approx([-2.0], abs=1e-12 if make is ours else 1e-6)  # bdsim's last stage sees the jump
    for corner in (0.3, 0.7, 1.1):
        assert np.abs(t - corner).min() <= 1e-9


def test_the_end_of_the_run_may_be_that_of_the_motion():
    with pytest.raises(InvalidValue, match=r"splinetrajectory: t = 2\.6 s is outside of \[0\.5, 2\.5\]; ends='hold'"):
        SplineTrajectory(CURVE, ends="error").test_output(t=2.6)
    strict = SplineTrajectory(CURVE, ends="error")
    assert strict.test_output(t=2.5)[1] == pytest.approx(CURVE.rate(2.5))


@pytest.mark.parametrize(
    ("arguments", "error", "says"),
    [
        ({"curve": POINTS}, InvalidValue, "duration"),
        ({"curve": []}, CstormError, "."),
        ({"curve": None}, CstormError, "."),
        ({"curve": 5}, CstormError, "."),
        ({"curve": 5, "duration": 1.0}, CstormError, "."),
        ({"curve": {}, "duration": 1.0}, CstormError, "."),
        ({"curve": "none.json"}, InvalidValue, "none.json"),
        ({"curve": [[0.0], [1.0, 2.0]], "duration": 1.0}, ShapeError, "control points"),
        ({"curve": [[0.0], [np.nan]], "duration": 1.0, "degree": 1}, NonFinite, "control points"),
        ({"duration": -1.0}, InvalidValue, "duration"),
        ({"curve": POINTS, "duration": 1.0, "degree": 9}, InvalidValue, "."),
        ({"curve": POINTS, "duration": 1.0, "degree": 1.5}, InvalidType, "degree"),
        (
            {"curve": print},
            InvalidType,
            "curve: expected a BSpline, as solution.motion, control points or a file's path",
        ),
        ({"joints": ["elbow"]}, UnknownName, "elbow"),
        (
            {"curve": POINTS, "duration": 1.0, "joints": ["hip"]},
            UnknownName,
            r"'hip' does not exist, as the curve names none: joints=\[0, 1\] takes these",
        ),
        ({"joints": [2]}, InvalidValue, "joints"),
        ({"joints": [0, 0]}, InvalidValue, "twice"),
        ({"joints": {}}, InvalidType, "joints"),
        ({"start": "now"}, InvalidType, "start"),
        ({"speed": 0.0}, InvalidValue, "speed"),
        ({"speed": 1e-320}, InvalidValue, "takes"),
        ({"ends": "stop"}, InvalidValue, "ends"),
        ({"end": "hold"}, UnknownName, "did you mean 'ends'"),
    ],
)
def test_wrong_arguments_of_splinetrajectory(arguments, error, says):
    with pytest.raises(error, match=says):
        SplineTrajectory(**{"curve": CURVE, **arguments})


def test_a_table_of_samples_is_no_curve(tmp_path):
    (tmp_path / "log.csv").write_text("t,hip\n0,1\n1,2\n")
    with pytest.raises(
        FileFormatError, match=r"log\.csv: .*; cs\.BSpline\.interpolate\(t, q\) makes a curve of samples"
    ):
        SplineTrajectory(tmp_path / "log.csv")


# ---------------------------------------------------------------- FROMDATA

T = np.array([0.0, 1.0, 1.0, 2.0, 4.0])
Y = np.array([0.0, 2.0, 5.0, 5.0, 1.0])  # a jump at 1


def test_between_samples():
    linear, previous = FromData(t=T, y=Y), FromData(t=T, y=Y, interpolation="previous")
    times = (-1.0, 0.0, 0.5, 1.0, 1.5, 3.0, 4.0, 9.0)
    assert [linear.test_output(t=t)[0] for t in times] == [0.0, 0.0, 1.0, 5.0, 5.0, 3.0, 1.0, 1.0]
    assert [previous.test_output(t=t)[0] for t in times] == [0.0, 0.0, 0.0, 5.0, 5.0, 5.0, 1.0, 1.0]
    assert linear.test_output(t=np.nextafter(1.0, 0.0))[0] == pytest.approx(2.0)


def test_cubic_is_exact_for_cubics_between_jumps():
    t = np.array([0.0, 0.5, 1.0, 1.5, 2.0, 2.0, 2.5, 3.0, 4.0])
    y = np.column_stack([t**3 - t, np.where(np.arange(9) < 5, 1.0, 7.0 + t)])
    block = FromData(t=t, y=y, interpolation="cubic")
    assert block.outwidths == (2,)
    for now in (0.3, 1.9, 2.0, 2.2, 3.7):
        assert block.test_output(t=now)[0] == pytest.approx([now**3 - now, 1.0 if now < 2 else 7.0 + now], abs=1e-12)


def test_few_samples():
    assert FromData(t=[1.0], y=[3.0]).test_output(t=5.0) == [3.0]
    for between in ("linear", "previous", "cubic"):
        stays = FromData(t=[0.0, 1.0, 1.0], y=[0.0, 2.0, 9.0], interpolation=between)
        assert stays.test_output(t=1.0)[0] == pytest.approx(9.0)
    assert FromData(t=[0.0, 2.0], y=[0.0, 1.0], interpolation="cubic").test_output(t=0.5)[0] == pytest.approx(0.25)


def test_outside_of_the_record():
    again = FromData(t=T, y=Y, ends="repeat")
    assert [again.test_output(t=t)[0] for t in (4.5, 5.0, 8.0, -1.0)] == [1.0, 5.0, 0.0, 3.0]
    with pytest.raises(InvalidValue, match=r"fromdata: t = 4\.5 s is outside"):
        FromData(t=T, y=Y, ends="error").test_output(t=4.5)
    assert FromData(t=T, y=Y, ends="error").test_output(t=4.0) == [1.0]


def test_what_it_declares():
    assert declared(FromData(t=T, y=Y)) == [1.0, 4.0]
    assert declared(FromData(t=T, y=Y, interpolation="previous")) == [1.0, 4.0]
    assert declared(FromData(t=T, y=Y, ends="repeat"))[:5] == [1.0, 4.0, 5.0, 8.0, 9.0]


@pytest.mark.parametrize("make", [plain, ours])
def test_a_run_lands_on_the_jumps(make):
    source = lambda bd: FromData(t=T, y=Y, interpolation="previous", bd=bd)  # noqa: E731
    t, end = integrated(make, source, T=5.0)
    assert end == pytest.approx([16.0], abs=1e-12 if make is ours else 1e-6)
    assert np.abs(t - 1.0).min() <= 1e-9


def test_what_a_caller_does_with_a_value_does_not_change_the_record():
    block = FromData(t=[0.0, 1.0], y=[[1.0, 2.0], [3.0, 4.0]])
    block.test_output(t=0.0)[0][:] = 99.0
    assert block.test_output(t=0.0)[0].tolist() == [1.0, 2.0]


@pytest.mark.parametrize("kind", ["npz", "csv", "mat", None])
def test_a_saved_run_plays_back(tmp_path, kind):
    """A pendulum's motion saved, then played back into a second diagram: the same signal at all samples."""
    sim, bd = ours()
    plant = bd.HYBRIDDYNAMICS("acrobot", q0=[0.3, 0.1], name="plant")
    bd.connect(bd.CONSTANT(0.0), plant[0])
    out = sim.run(bd, T=1.0, watch=[plant[0]], on_error="raise")
    if kind is not None:
        out.save(tmp_path / f"run.{kind}")
    data = out if kind is None else tmp_path / f"run.{kind}"
    block = FromData(data, signal="plant.q")
    assert block.outwidths == (2,)
    for k in (0, 5, len(out.t) - 1):
        assert block.test_output(t=float(out.t[k]))[0] == pytest.approx(out.y[k, :2], abs=1e-12)
    if kind is not None:
        with pytest.raises(UnknownName, match=r"plant\.q"):
            FromData(data, signal="plant.qq")
        with pytest.raises(InvalidValue, match=r"several; name one of"):
            FromData(data)


def signals_of_all_shapes():
    """Return a run that has watched numbers, rows of one number and of several, and a matrix, and its diagram."""
    sim, bd = ours()
    row, matrix = np.array([5.0]), np.array([[1.0, 2.0], [3.0, 4.0]])
    clock = bd.TIME(name="time")
    for block in (
        bd.GAIN(2.0),  # its name is gain.0, which looks like a block's and its port's
        bd.GAIN(3.0, name="thrice"),
        bd.FUNCTION(lambda t: t * row, name="arm", onames=("q",)),
        bd.FUNCTION(lambda t: t * row, name="row"),
        bd.FUNCTION(lambda t: t * matrix, name="matrix"),
        bd.FUNCTION(lambda t: t * matrix, name="k", onames=("jacobian",)),
        bd.FUNCTION(lambda t: [t, 2 * t], nout=2, name="two"),
        bd.FUNCTION(lambda t: [t, 2 * t], nout=2, name="pair", onames=("a", "b")),
        bd.FUNCTION(lambda t: "text", name="words"),
    ):
        bd.connect(clock, block)
    return sim.run(bd, T=1.0, max_step=0.25, watch="all", on_error="raise")


SIGNALS = {
    "gain.0": 2.0,
    "gain.0[0]": 2.0,
    "thrice": 3.0,
    "thrice[0]": 3.0,
    "arm": [5.0],
    "arm.q": [5.0],
    "arm.q[0]": 5.0,
    "row[0]": [5.0],
    "matrix": [1.0, 2.0, 3.0, 4.0],
    "matrix[0]": [1.0, 2.0, 3.0, 4.0],
    "matrix[0][2]": 3.0,
    "k": [1.0, 2.0, 3.0, 4.0],
    "k.jacobian": [1.0, 2.0, 3.0, 4.0],
    "two": [1.0, 2.0],
    "two[1]": 2.0,
    "pair.b": 2.0,
}


@pytest.mark.parametrize("kind", ["npz", "csv", "mat", None])
def test_a_signal_has_one_shape_from_a_run_and_from_its_files(tmp_path, kind):
    """A matrix was played from a file only, and the same number was a number from the run, a row from its file."""
    data = out = signals_of_all_shapes()
    if kind is not None:
        data = tmp_path / f"run.{kind}"
        out.save(data)
    for signal, factor in SIGNALS.items():
        for between in ("linear", "cubic"):
            (y,) = FromData(data, signal, interpolation=between).test_output(t=0.375)
            assert np.shape(y) == np.shape(factor), signal
            assert y == pytest.approx(0.375 * np.array(factor), abs=1e-12), signal
    with pytest.raises(UnknownName, match=r"signal 'pair' is one of several: pair\.a, pair\.b"):
        FromData(data, "pair")
    with pytest.raises(UnknownName, match=r"'matrx' does not exist; did you mean 'matrix"):
        FromData(data, "matrx")


def test_a_matrix_from_a_run_is_played_by_the_compiled_engine_too():
    data = signals_of_all_shapes()
    sim, bd = ours()
    bd.connect(bd.FROMDATA(data, "k.jacobian", name="again"), bd.NULL())
    out = sim.run(bd, T=1.0, max_step=0.3, watch=["again"], on_error="raise")
    assert out.signal("again") == pytest.approx(np.outer(out.t, [1.0, 2.0, 3.0, 4.0]), abs=1e-12)


def test_what_can_not_be_played_from_a_run_is_named():
    data = signals_of_all_shapes()
    with pytest.raises(InvalidType, match=r"^signal 'words\[0\]': expected numbers"):
        FromData(data, "words[0]")
    sim, bd = ours()
    bd.connect(bd.TIME(name="time"), bd.INTEGRATOR(name="x"))
    out = sim.run(bd, T=0.1)
    with pytest.raises(UnknownName, match=r"'time' was not watched.*watch=\['time'\]"):
        FromData(out, "time")
    out.data["x"][1, 0] = np.nan
    with pytest.raises(NonFinite, match=r"^signal 'x:x_0': expected finite numbers, got nan at index 1"):
        FromData(out, "x:x_0")


@pytest.mark.parametrize(
    ("arguments", "error", "says"),
    [
        ({}, InvalidValue, "data"),
        ({"t": [0.0]}, InvalidValue, "data"),
        ({"t": [0.0], "y": [0.0], "signal": "q"}, InvalidValue, "no signal"),
        ({"data": "run.npz", "t": [0.0], "y": [0.0]}, InvalidValue, "either"),
        ({"data": "run.npz"}, CstormError, "run.npz"),
        ({"data": "run.xls"}, CstormError, "run.xls"),
        ({"data": 3}, InvalidType, "data"),
        ({"data": "run.npz", "signal": 3}, InvalidType, "signal"),
        ({"t": [0.0, 1.0], "y": [0.0]}, ShapeError, "2 times"),
        ({"t": [], "y": []}, ShapeError, "at least one"),
        ({"t": [1.0, 0.0], "y": [0.0, 0.0]}, InvalidValue, "must not decrease"),
        ({"t": [0.0, np.nan], "y": [0.0, 0.0]}, NonFinite, "t"),
        ({"t": [0.0], "y": [[[0.0]]]}, ShapeError, "y"),
        ({"t": [0.0, 1.0], "y": [[0.0], [0.0, 1.0]]}, ShapeError, "y"),
        ({"t": [0.0, 1.0], "y": ["a", "b"]}, InvalidType, "y"),
        ({"t": [0.0, 1.0], "y": [0.0, 1.0], "interpolation": "spline"}, InvalidValue, "interpolation"),
        ({"t": [0.0, 1.0], "y": [0.0, 1.0], "ends": None}, InvalidValue, "ends"),
        ({"t": [1.0, 1.0], "y": [0.0, 1.0], "ends": "repeat"}, InvalidValue, "takes"),
    ],
)
def test_wrong_arguments_of_fromdata(arguments, error, says):
    with pytest.raises(error, match=says):
        FromData(**arguments)


@pytest.mark.parametrize(
    ("q0", "qd0", "joints"),
    [([0.2, 0.5], [0.1, -1.0], []), ([0.2, 0.0], [0.1, -1.0], ["elbow"]), ([0.0, 0.5], [0.0, 0.0], ["elbow"])],
)
@pytest.mark.parametrize("engine", ["interpreted", "compiled"])
def test_a_joint_that_is_led_beside_the_motion_is_told(q0, qd0, joints, engine, caplog):
    """It went on beside the motion, by as much as it began beside it, in silence."""
    notice_once.cache_clear()
    sim = cs.Simulation(engine=engine, live=False, progress=False)
    bd = sim.blockdiagram()
    t = np.linspace(0.0, 1.0, 30)[:, None]
    motion = bd.SPLINETRAJECTORY(cs.BSpline.interpolate(t[:, 0], 0.5 - t + t**3), name="motion")
    plant = bd.HYBRIDDYNAMICS("acrobot", active=["elbow"], q0=q0, qd0=qd0, name="plant")
    bd.connect(motion.qdd, plant.acc)
    for _ in range(2):
        out = sim.run(bd, T=0.5, rtol=1e-9, watch=["motion"])
    beside = abs(out.x[-1, 1] - out.signal("motion.q")[-1, 0])
    assert (beside > 0.1) == bool(joints) and caplog.text.count("stays beside that motion") == len(joints)
    assert all(f"joint {name!r} begins at {q0[1]:g}" in caplog.text for name in joints)
    assert sim.run(bd, T=0.5, start=out).status == "finished"
    # a run that goes on does not begin there: it told of another place each time, in each step of a stepper of events
    assert caplog.text.count("stays beside that motion") == len(joints)
    assert "begins at 0.2" not in caplog.text, "of the one that is not led"


@pytest.mark.parametrize("engine", ["interpreted", "compiled"])
@pytest.mark.parametrize("T", [0.3, 2.0, 1.0 / 3.0])
def test_a_run_of_a_motion_to_its_end_is_not_beyond_it(engine, T):
    """It looks beside the jump that is declared there, and ended with "t = 2 s is outside of [0, 2]"."""
    sim = cs.Simulation(graphics=False, progress=False, engine=engine)
    bd = sim.blockdiagram()
    motion = bd.SPLINETRAJECTORY(BSpline.clamped([[0.0], [0.0], [1.0], [1.0]], T), ends="error", name="motion")
    record = bd.FROMDATA(t=[0.0, T], y=[1.0, 3.0], ends="error", name="record")
    for source in (motion, record):
        bd.connect(source[0], bd.INTEGRATOR(name=f"integral of {source.name}"))
    out = sim.run(bd, T=T, dt=T / 7, watch=["motion"])
    assert out.status == "finished"
    np.testing.assert_allclose(out.x[-1], [0.5 * T, 2.0 * T], rtol=1e-6)
    assert out.signal("motion.q")[-1] == 1.0
    assert sim.run(bd, T=1.001 * T).status == "failed"
