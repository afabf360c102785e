"""What a run returns: samples, watched signals, files; and the state from which it is continued."""

from __future__ import annotations

import json
import math
import pickle
import threading
import tracemalloc

import numpy as np
import pytest
from bdsim_examples import EXAMPLES, feedback
from simulations import oscillator

import cstormpy as cs
from cstormpy.simulation import recording
from cstormpy.simulation.results import read
from cstormpy.simulation.saved_state import SavedState


@pytest.fixture
def sim():
    return cs.Simulation()


# ------------------------------------------------------------------ what is recorded, and when


def test_forms_of_watch(sim):
    bd = sim.blockdiagram()
    x, _, _, parts = oscillator(bd)
    place, speed = "parts.place", "parts.speed"
    for watch, names in (
        ([x], ["x[0]"]),
        (x, ["x[0]"]),
        (parts, [place, speed]),  # as its name does; bdsim takes its output 0 alone
        ([parts[1]], [speed]),
        (parts[1], [speed]),
        ([parts[0:2]], [place, speed]),
        ("parts", [place, speed]),
        (["parts.speed"], [speed]),
        (["parts[1]"], [speed]),
        (["parts[1]", parts[1], "parts.speed", "x"], [speed, "x[0]"]),  # each once
        ((), None),
        ([], None),
        ("all", ["x[0]", "turn[0]", "outer[0]", place, speed]),
    ):
        out = sim.run(bd, 1.0, watch=watch)
        if names is None:
            assert "y" not in out
            continue
        assert out.ynames == names
    out = sim.run(bd, 1.0, watch="all")
    assert out.y.shape == (len(out.t), 2 + 2 + 4 + 2)
    np.testing.assert_allclose(out.signal("outer")[:, 0, 0], out.x[:, 0] ** 2)
    np.testing.assert_allclose(out.signal("x"), np.stack([np.cos(out.t), -np.sin(out.t)], axis=1), atol=1e-5)


@pytest.mark.parametrize(
    ("watch", "message"),
    [
        ("nowhere", "watch: block 'nowhere' does not exist"),
        (["part"], "did you mean 'parts'"),
        (["parts.spead"], "did you mean 'speed'"),
        (["parts[2]"], "block 'parts' has 2 outputs, there is no output 2"),
        (["x.y"], "output of block 'x' 'y' does not exist; its ports have no names: say x[0] of an output"),
        ([3], "watch: expected blocks, their ports or names"),
    ],
)
def test_what_can_not_be_watched(sim, watch, message):
    bd = sim.blockdiagram()
    oscillator(bd)
    with pytest.raises(cs.CstormError) as caught:
        sim.run(bd, 1.0, watch=watch)
    assert message in str(caught.value)


def test_states_are_watched_as_they_are(sim):
    """`out.signal` answers them, and `watch` took the name of a coordinate for that of a block."""
    bd = sim.blockdiagram()
    bd.HYBRIDDYNAMICS("acrobot", actuated=[], name="plant")
    out = sim.run(bd, 0.1, watch=["plant.elbow.q"])
    np.testing.assert_array_equal(out.signal("plant.elbow.q"), out.x[:, 1])
    assert "y" not in out
    with pytest.raises(cs.UnknownName, match=r"^watch: 'plant.elbo.q' is no output; there is plant.q, whose"):
        sim.run(bd, 0.1, watch=["plant.elbo.q"])
    with pytest.raises(cs.UnknownName, match=r"outputs: 'plant.elbow.q' is no output; there is plant.q$"):
        sim.linearize(bd, outputs=["plant.elbow.q"])
    with pytest.raises(cs.UnknownName, match=r"outputs: 'plant.q\[1\]' is one number of an output, .*: 'plant.q'$"):
        sim.linearize(bd, outputs=["plant.q[1]"])  # said that there is no block 'plant.q'
    with pytest.raises(cs.UnknownName, match=r"cost: 'plant.elbo.q' is no output; .* the states plant.shoulder.q"):
        sim.gradient(bd, "plant.elbo.q", ["plant.forearm.mass"], T=0.1)
    names = ["plant.elbow.q"]
    swept = sim.sweep(bd, {"plant.elbow.q": [0.1, 0.2]}, lambda out: out.t[-1], T=0.1, watch=names, progress=False)
    assert not swept.failed.any()


def test_names_that_a_result_does_not_have(sim):
    """Private names were listed, and what is no name at all ended in Python's words."""
    bd = sim.blockdiagram()
    oscillator(bd)
    out = sim.run(bd, 1.0, watch=["parts"])
    for name, said in (
        ("foo", "result 'foo' does not exist; there are 't', 'x'"),
        ("signals", "did you mean 'signal'?"),
        ("parts", "signals are read as in out.signal('parts.place')"),
    ):
        with pytest.raises(cs.CstormError) as caught:
            getattr(out, name)
        assert said in str(caught.value) and "'_" not in str(caught.value)
        assert not hasattr(out, name)
    for wrong in (0, None, ["parts.speed"], np.ones(2)):
        with pytest.raises(cs.InvalidType, match=r"^signal: expected a name as 'plant\.q', or a port"):
            out.signal(wrong)
        with pytest.raises(cs.InvalidType, match=r"^signal: expected a name"):
            out.recorded().signal(wrong)
    np.testing.assert_array_equal(out.signal("parts[0]"), out.signal(out.ynames[0]))  # as `watch` takes it
    np.testing.assert_array_equal(out["parts.place"], out.signal("parts.place"))  # was Python's KeyError
    assert out["t"] is out.t and out["status"] == out[".status"] == "finished"
    with pytest.raises(cs.UnknownName, match=r"^output of block 'parts' 'plaice' does not exist; did you mean 'place'"):
        out["parts.plaice"]
    with pytest.raises(cs.InvalidType, match=r"^signal: expected a name"):
        out[0]
    with pytest.raises(cs.CstormError, match=r"output of block 'parts' '\[2\]' does not exist; there are "):
        out.signal("parts[2]")


def test_watch_blocks_scopes_and_subsystems(sim):
    bd = sim.blockdiagram()
    inner = sim.blockdiagram(name="inner")
    inp, gain, outp = inner.INPORT(1), inner.GAIN(3.0, name="gain"), inner.OUTPORT(1)
    inner.connect(inp, gain)
    inner.connect(gain, outp)
    use, ramp, watch = bd.SUBSYSTEM(inner, name="use"), bd.RAMP(T=0, name="ramp"), bd.WATCH(1)
    bd.connect(ramp, use, watch)
    bd.connect(use, bd.SCOPE(watch=True, name="scope"))
    bd.connect(ramp, bd.INTEGRATOR())
    out = sim.run(bd, 1.0, watch=[use, "use/gain"])
    assert out.ynames == ["use[0]", "use/gain[0]", "ramp[0]"]
    np.testing.assert_allclose(out.signal("use"), 3 * out.t, atol=1e-14)


def in_and_out(sim, name, make, **options):
    """Return a diagram for a subsystem that is one block, and the block."""
    inner = sim.blockdiagram(name=name)
    inp, block, outp = inner.INPORT(1), make(inner), inner.OUTPORT(1)
    inner.connect(inp, block)
    inner.connect(block, outp)
    return inner, block


def test_what_a_user_made_is_watched_by_its_name_and_by_itself(sim):
    """watch=["pid"] was no block, watch=[pid] recorded "pid/OUT[0]", and out.signal(pid) found neither."""
    bd = sim.blockdiagram()
    innermost, gain = in_and_out(sim, "innermost", lambda inner: inner.GAIN(3.0, name="gain"))
    inner, twice = in_and_out(sim, "inner", lambda inner: inner.SUBSYSTEM(innermost, name="thrice"))
    ramp = bd.RAMP(T=0, name="ramp")
    use, slope = bd.SUBSYSTEM(inner, name="use"), bd.DERIV(alpha=50.0, name="slope")
    pid, parts = bd.PID(P=2.0, I=1.0, name="pid", onames=["u"]), bd.DEMUX(2, name="parts")
    bd.connect(ramp, use, slope, pid[1])
    bd.connect(bd.CONSTANT(0.0), pid[0])
    bd.connect(bd.CONSTANT([1.0, 2.0]), parts)
    shown = bd.LIVESCOPE(nin=2, name="shown")
    bd.connect(pid, shown[0])
    bd.connect(use, shown[1])
    bd.connect(slope, bd.NULL())
    named = {"use": use, "slope": slope, "pid": pid, "use/thrice": twice, "use/thrice/gain": gain, "ramp": ramp}
    by_name = sim.run(bd, 1.0, watch=[*named, "parts"])
    by_itself = sim.run(bd, 1.0, watch=[*named.values(), parts])
    names = ["use[0]", "slope[0]", "pid.u", "use/thrice[0]", "use/thrice/gain[0]", "ramp[0]", "parts[0]", "parts[1]"]
    assert by_name.ynames == by_itself.ynames == names
    for out in (by_name, by_itself):
        for name, block in named.items():
            np.testing.assert_array_equal(out.signal(name), out.signal(block))
        np.testing.assert_allclose(out.signal(use), 3 * out.t, atol=1e-14)
        np.testing.assert_allclose(out.signal(pid.u), 2 * out.t + out.t**2 / 2, atol=1e-6)
        np.testing.assert_array_equal(out.signal(parts[1]), 2.0)
        for several in (parts, "parts"):
            with pytest.raises(cs.UnknownName, match=r"one of several: parts\[0\], parts\[1\]"):
                out.signal(several)
    assert by_name.panes[0].labels == ["pid.u", "use[0]"]
    assert bd["pid"] is not None and bd["use/thrice/gain"].K == 3.0
    with pytest.raises(cs.UnknownName, match=r"output of block 'pid' 'z' does not exist; there are 'u'"):
        sim.run(bd, 1.0, watch=["pid.z"])


def test_a_subsystem_that_is_used_twice_has_two_of_each_block(sim):
    bd = sim.blockdiagram()
    inner, gain = in_and_out(sim, "inner", lambda inner: inner.GAIN(3.0, name="gain"))
    ramp = bd.RAMP(T=0, name="ramp")
    one, two = (bd.SUBSYSTEM(inner, name=name) for name in ("one", "two"))
    bd.connect(ramp, one, two)
    for each in (one, two):
        bd.connect(each, bd.NULL())
    with pytest.raises(cs.UnknownName, match="block 'gain' is there more than once; name one of one/gain, two/gain"):
        sim.run(bd, 1.0, watch=[gain])
    out = sim.run(bd, 1.0, watch=[one, "two/gain"])
    assert out.ynames == ["one[0]", "two/gain[0]"]
    with pytest.raises(cs.UnknownName, match="name one of one/gain, two/gain"):
        out.signal(gain)


def test_a_block_of_another_diagram_is_not_watched(sim):
    """It was recorded as if it had been there: one value that never changed."""
    bd, other = sim.blockdiagram(), sim.blockdiagram()
    bd.connect(bd.RAMP(name="ramp"), bd.NULL())
    with pytest.raises(cs.UnknownName, match="watch: block 'gain' does not exist"):
        sim.run(bd, 1.0, watch=[other.GAIN(2.0, name="gain")])


def test_a_block_stands_for_its_outputs_in_figures_and_tables(sim, tmp_path):
    """`watch` took blocks, of which `plot` and `measures` said that they are one of several."""
    bd = sim.blockdiagram()
    _, _, _, parts = oscillator(bd)
    out = sim.run(bd, 1.0, watch=["parts", "x"])
    out.save(tmp_path / "run.npz")
    for run, names in ((out, ("parts", "x")), (out, (parts, "x")), (cs.load(tmp_path / "run.npz"), ("parts", "x"))):
        figure = run.plot(*names)
        assert [axis.get_title(loc="left") for axis in figure.axes][:2] == ["parts.place", "parts.speed"]
        assert [*run.measures(*names)][:2] == ["parts.place", "parts.speed"]
    for wrong, kind in (("part", cs.UnknownName), (["parts"], cs.InvalidType)):
        with pytest.raises(kind):
            out.plot(wrong)


def test_signals_by_name(sim):
    bd = sim.blockdiagram()
    oscillator(bd)
    out = sim.run(bd, 1.0, watch=["parts", "x"])
    np.testing.assert_array_equal(out.signal("parts.place"), out.signal("x:x_0"))
    with pytest.raises(cs.UnknownName, match=r"one of several: parts.place, parts.speed"):
        out.signal("parts")
    with pytest.raises(cs.UnknownName, match="output of block 'parts' 'sped' does not exist; did you mean 'speed'"):
        out.signal("parts.sped")


def test_a_scope_that_is_told_something_else_after_some_runs_shows_that(sim):
    """What it shows is looked at by a glance from the third run on, which sees names, lists, wires and new scopes."""
    bd = sim.blockdiagram()
    state = bd.INTEGRATOR(x0=[1.0, 2.0, 3.0], name="state")
    bd.connect(bd.CONSTANT(np.zeros(3)), state)
    view = bd.SCOPEXY1(indices=[0, 1], name="view")
    bd.connect(state, view)

    def shown():
        (pane,) = sim.run(bd, T=0.1, dt=0.1).panes
        return pane.title, pane.y[-1].tolist()

    assert [shown() for _ in range(4)] == [("view", [1.0, 2.0])] * 4
    view.title = "plane"
    assert [shown() for _ in range(3)] == [("plane", [1.0, 2.0])] * 3
    view.indices = [2, 1]
    assert [shown() for _ in range(3)] == [("plane", [3.0, 2.0])] * 3
    view.indices[1] = 0
    assert shown() == ("plane", [3.0, 1.0])


def test_log_dt_bounds_what_is_kept_and_sinks_see_each_step(sim):
    bd = sim.blockdiagram()
    x, *_ = oscillator(bd)
    steps = []
    out = sim.run(bd, 10.0, log_dt=0.5, watch=[x], observer=lambda t, x: steps.append(t))
    np.testing.assert_allclose(out.t, np.arange(0, 10.25, 0.5), atol=1e-12)
    np.testing.assert_allclose(out.x, np.stack([np.cos(out.t), -np.sin(out.t)], axis=1), atol=2e-5)
    np.testing.assert_array_equal(out.y, out.x)
    assert len(steps) > 100 and (np.diff(steps) > 0).all()


def test_dt_is_the_grid_of_samples(sim):
    bd = sim.blockdiagram()
    oscillator(bd)
    out = sim.run(bd, 1.0, dt=0.3)
    assert out.t.tolist() == pytest.approx([0.0, 0.3, 0.6, 0.9, 1.0])
    assert sim.run(bd, 0.9, dt=0.3).t.tolist() == pytest.approx([0.0, 0.3, 0.6, 0.9])
    np.testing.assert_allclose(out.x[:, 0], np.cos(out.t), atol=1e-5)


@pytest.mark.parametrize("grid", [{"dt": 0.3}, {"log_dt": 0.3}])
def test_where_a_run_stops_is_the_last_sample_of_a_grid(sim, grid):
    bd = sim.blockdiagram()
    ramp = bd.RAMP(T=0)
    bd.connect(ramp, bd.INTEGRATOR(), bd.STOP(lambda t: t - 0.75))
    np.testing.assert_allclose(sim.run(bd, 2.0, **grid).t, [0.0, 0.3, 0.6, 0.75], atol=1e-9)


@pytest.mark.parametrize("grid", [{"dt": 0.1}, {"log_dt": 0.1}])
def test_no_sample_of_the_grid_is_lost_at_ticks_jumps_and_events(sim, grid):
    bd = sim.blockdiagram()
    x = bd.INTEGRATOR(x0=0.0, name="x")
    bd.connect(bd.WAVEFORM("square", freq=2.5), x)
    hold, late = bd.ZOH(bd.clock(0.2), name="hold"), bd.FUNCTION(lambda t: math.sin(7 * t))
    bd.connect(x, hold)
    bd.connect(bd.TIME(), late)
    bd.connect(late, bd.EVENT("^", lambda block, states: None))
    out = sim.run(bd, 2.0, **grid)
    np.testing.assert_allclose(out.t, 0.1 * np.arange(21), atol=1e-12)
    triangle = 0.2 - np.abs((out.t % 0.4) - 0.2)
    np.testing.assert_allclose(out.x[:, 0], triangle, atol=1e-12)


@pytest.mark.slow
def test_memory_of_a_long_run(sim):
    bd = sim.blockdiagram()
    oscillator(bd)
    sim.run(bd, 1.0)
    tracemalloc.start()
    out = sim.run(bd, 100.0, max_step=0.05, log_dt=2.5)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert out.stats.steps >= 2000 and len(out.t) == 41
    assert peak < 5e5


@pytest.mark.parametrize("engine", ["interpreted", "compiled"])
def test_a_run_that_fills_the_memory_ends_with_what_it_has(engine, monkeypatch):
    monkeypatch.setattr(recording, "memory_for_records", lambda: 200_000)
    sim = cs.Simulation(engine=engine)
    bd = sim.blockdiagram()
    x, gain = bd.INTEGRATOR(x0=1.0, name="x"), bd.GAIN(-1e6)
    bd.connect(x, gain)
    bd.connect(gain, x)
    out = sim.run(bd, 10.0, watch=[x], solver="RK45")  # far too stiff for it: steps of a microsecond
    assert out.status == "failed" and "log_dt=" in out.message and "0.000186 GiB" in out.message
    assert 500 < len(out.t) < 20_000 and f"{len(out.t)} samples" in out.message
    assert sim.run(bd, 0.02, watch=[x], solver="RK45", log_dt=0.001).status == "finished"


# ------------------------------------------------------------------ from outside, while it runs


def test_functions_at_given_times(sim, caplog):
    bd = sim.blockdiagram()
    x, gain = bd.INTEGRATOR(x0=0.0, name="x"), bd.GAIN(1.0, name="gain")
    bd.connect(bd.CONSTANT(1.0), gain)
    bd.connect(gain, x)
    seen = []
    at = {t: lambda t=t, k=k: (seen.append(t), gain.set_param("K", k)) for t, k in ((0.0, 2.0), (0.3, 5.0), (1.0, 0.0))}
    out = sim.run(bd, 2.0, at=at)
    assert seen == [0.0, 0.3, 1.0]
    assert out.x[-1, 0] == pytest.approx(0.3 * 2 + 0.7 * 5, abs=1e-12)
    assert sim.run(bd, 0.2, at={5.0: lambda: seen.append(5.0)}).status == "finished"
    assert "at: nothing is done at 5 s, which lies after the end of this run, 0.2 s" in caplog.messages
    assert seen[-1] != 5.0


def test_commands_posted_from_another_thread(sim):
    bd = sim.blockdiagram()
    x, gain = bd.INTEGRATOR(x0=0.0, name="x"), bd.GAIN(1.0, name="gain")
    bd.connect(bd.CONSTANT(1.0), gain)
    bd.connect(gain, x)
    times, threads = [], []

    def post():
        sim.post(lambda: (gain.set_param("K", -1.0), times.append(threading.current_thread())))

    def observer(t, x):
        if t >= 0.5 and not threads:
            threads.append(threading.Thread(target=post))
            threads[0].start()
            threads[0].join()

    out = sim.run(bd, 1.0, observer=observer)
    assert times == [threading.current_thread()]
    switched = out.t[np.argmax(out.x[:, 0])]
    assert 0.5 <= switched <= 0.52
    assert out.x[-1, 0] == pytest.approx(switched - (1.0 - switched), abs=1e-12)


@pytest.mark.parametrize("engine", ["interpreted", "compiled"])
def test_a_posted_function_that_posts_itself_is_called_after_each_step(engine):
    """It was called for ever where the run stood."""
    sim = cs.Simulation(engine=engine, live=False)
    bd = sim.blockdiagram()
    oscillator(bd)
    times = []

    def note():
        times.append(len(times))
        assert len(times) < 1000
        sim.post(note)

    sim.post(note)
    out = sim.run(bd, 1.0)
    assert out.status == "finished" and len(times) == out.stats.steps + 1


def test_observer_sees_every_accepted_step(sim):
    bd = sim.blockdiagram()
    oscillator(bd)
    seen = []
    out = sim.run(bd, 1.0, observer=lambda t, x: seen.append((t, x.copy())))
    assert [t for t, _ in seen] == out.t.tolist()
    np.testing.assert_array_equal([x for _, x in seen], out.x)


# ------------------------------------------------------------------ saved, restored, continued


@pytest.mark.parametrize("name", ["feedback", "cart and pole", "motor", "rlc", "quadrotor", "feedback held"])
@pytest.mark.parametrize("options", [{"solver": "RK4", "dt": 0.01}, {"max_step": 0.1}])
def test_a_run_continued_is_the_run_in_one(sim, name, options, tmp_path):
    """By fixed steps to the last bit or so; adaptive ones take the same steps, where the one run has a boundary too."""
    example = EXAMPLES[name]
    bd, _ = example.wire(sim)
    whole = sim.run(bd, 2.0, at={1.25: lambda: None}, **options)
    first = sim.run(bd, 1.25, **options)
    first.state.save(tmp_path / "state.json")
    bd, _ = example.wire(cs.Simulation())
    second = sim.run(bd, 0.75, start=SavedState.load(tmp_path / "state.json"), **options)
    assert second.t[0] == 1.25 and second.t[-1] == 2.0
    np.testing.assert_allclose(second.x[-1], whole.x[-1], rtol=0, atol=1e-13 * max(1.0, np.abs(whole.x).max()))
    assert first.stats.steps + second.stats.steps == whole.stats.steps


def test_start_from_an_array(sim):
    bd = sim.blockdiagram()
    oscillator(bd)
    out = sim.run(bd, 1.0, start=[0.0, 1.0])
    assert out.x[-1, 0] == pytest.approx(math.sin(1.0), abs=1e-6)
    with pytest.raises(cs.ShapeError, match=r"start: expected shape \(2,\), got \(1,\); the states are x:x_0, x:x_1"):
        sim.run(bd, 1.0, start=[0.0])


def test_a_state_of_another_diagram(sim):
    one, two = sim.blockdiagram(), sim.blockdiagram()
    oscillator(one)
    feedback(two)
    with pytest.raises(cs.CstormError, match=r"'plant'.*none of that name; was it saved from another diagram"):
        sim.run(two, 1.0, start=sim.run(one, 0.1).state)


STATE = {"format": "cstormpy state 1", "t": 0.0, "continuous": {"x": [1.0, 2.0]}}
WRONG_STATES = [
    *({**STATE, "t": t} for t in ("x", None, [1], math.nan, -1)),
    *({**STATE, "continuous": c} for c in (5, {"x": 5}, {"x": ["a", "b"]}, {"x": [1, math.nan]}, {"x": [1]}, {})),
    *({**STATE, key: 5} for key in ("sampled", "memory", "nonsense")),
    {**STATE, "step": "long"},
    {**STATE, "format": "other"},
    {"format": STATE["format"]},
]


@pytest.mark.parametrize(
    "content", ["", "{}", "[1]", "null", "5", '"text"', "\xff", "{", *map(json.dumps, WRONG_STATES)]
)
def test_a_damaged_file_of_a_state(sim, content, tmp_path):
    path = tmp_path / "state.json"
    path.write_text(content, encoding="latin-1")
    bd = sim.blockdiagram()
    oscillator(bd)
    with pytest.raises(cs.CstormError):
        sim.run(bd, 0.1, start=SavedState.load(path))


def test_a_missing_file_of_a_state(tmp_path):
    with pytest.raises(cs.FileFormatError, match=r"none\.json"):
        SavedState.load(tmp_path / "none.json")
    with pytest.raises(cs.CstormError, match="folder"):
        SavedState(0.0).save(tmp_path / "folder" / "x.json")


def test_the_result_is_the_structure_of_bdsim(sim):
    bd = sim.blockdiagram()
    oscillator(bd)
    result = sim.run(bd, 1.0, watch="all")
    assert {"t", "x", "xnames", "y", "ynames"} <= set(result.keys())
    text = str(result)
    assert "ndarray" in text and ".status" not in text
    assert (result.status, result.message) == ("finished", "reached the end")
    assert json.dumps(result.state.continuous)


def test_the_names_of_many_states_are_not_all_printed(sim):
    """A delay of 140 samples filled the screen with theirs."""
    bd = sim.blockdiagram()
    delay = bd.DELAY(bd.clock(1000, "Hz", name="ticks"), samples=140, name="delay")
    bd.connect(bd.CONSTANT(1.0), delay)
    text = str(sim.run(bd, 0.01))
    assert max(map(len, text.split("\n"))) < 600
    assert "['delay:X_0', 'delay:X_1'," in text and "…, 'delay:X_139'] (list)" in text


def test_poses_and_texts_can_be_watched_but_not_tabled(sim, tmp_path):
    bd = sim.blockdiagram()
    bd.connect(bd.CONSTANT("text", name="words"), bd.NULL())
    bd.connect(bd.CONSTANT({"a": 1}, name="dict"), bd.NULL())
    bd.connect(bd.CONSTANT(1.0, name="one"), bd.INTEGRATOR(name="x"))
    out = sim.run(bd, 0.1, watch="all")
    assert out.signal("words")[0] == "text"
    out.save(tmp_path / "run.npz")
    assert set(read(tmp_path / "run.npz").columns()) == {"one[0]", "x[0]", "x:x_0"}


def test_signals_of_changing_shape(sim):
    bd = sim.blockdiagram()
    grow = bd.FUNCTION(lambda t: np.zeros(1 + int(10 * t)), name="grow")
    bd.connect(bd.TIME(), grow)
    out = sim.run(bd, 1.0, watch=["grow"])
    assert [len(v) for v in out.signal("grow")] == [1 + int(10 * t) for t in out.t]


def test_what_was_not_watched_is_named(sim):
    bd = sim.blockdiagram()
    x = bd.INTEGRATOR(name="x")
    bd.connect(bd.CONSTANT(1.0, name="one"), x)
    out = sim.run(bd, 0.1)
    for name in ("y", "ynames"):
        with pytest.raises(AttributeError, match=rf"^{name}: no signals were watched"):
            getattr(out, name)
    with pytest.raises(cs.CstormError, match="'timee' does not exist"):
        out.timee  # noqa: B018
    with pytest.raises(cs.errors.UnknownName, match=r"'one\[0\]' was not watched.*watch=\['one\[0\]'\]"):
        out.signal("one[0]")
    with pytest.raises(cs.errors.UnknownName, match=r"'one' was not watched.*watch=\['one'\]"):
        out.signal("one")
    with pytest.raises(cs.errors.UnknownName, match="'two' does not exist"):
        out.signal("two")
    watched = sim.run(bd, 0.1, watch=[x])
    assert np.array_equal(watched.signal(x), watched.signal("x"))
    assert np.array_equal(watched.signal(x[0]), watched.y[:, 0])


def test_a_block_is_named_by_the_number_that_bdsim_gave_it(sim):
    """The point in its name was taken for that before a port's name."""
    bd = sim.blockdiagram()
    bd.connect(bd.CONSTANT(2.0), gain := bd.GAIN(3.0))
    bd.connect(gain, bd.NULL())
    assert sim.run(bd, 0.1, watch=["gain.0"]).signal("gain.0").tolist()[-1] == 6.0
    with pytest.raises(cs.errors.UnknownName, match=r"'gain\.0' was not watched"):
        sim.run(bd, 0.1).signal("gain.0")


def test_a_cost_that_looks_at_what_was_not_watched_is_told_so(sim):
    bd = sim.blockdiagram()
    x = bd.INTEGRATOR(x0=1.0, name="x")
    bd.connect(x, gain := bd.GAIN(-1.0, name="gain"))
    bd.connect(gain, x)
    with pytest.raises(cs.errors.UnknownName, match="'gain' was not watched"):
        sim.gradient(bd, lambda out: out.signal("gain")[-1], ["gain.K"], T=0.1)


def test_a_run_goes_on_from_a_file(sim, tmp_path):
    bd = sim.blockdiagram()
    bd.connect(bd.CONSTANT(1.0), bd.INTEGRATOR(name="x"))
    sim.run(bd, 0.5).state.save(tmp_path / "state.json")
    out = sim.run(bd, 0.5, start=tmp_path / "state.json")
    assert (out.t[0], out.t[-1]) == (0.5, 1.0) and abs(out.x[-1, 0] - 1.0) < 1e-12


def test_a_result_shows_what_the_run_was_told_however_late_somebody_looks():
    """What few look at is made when it is read: not of labels, options and signals of a run that came after it."""
    sim = cs.Simulation(graphics=False, progress=False)
    bd = sim.blockdiagram()
    source = bd.STEP(T=0.5, name="source")
    scope = bd.LIVESCOPE(labels=["first"], name="scope")
    bd.connect(source, scope)
    before = sim.run(bd, T=1.0, dt=0.25, live=False)
    scope.labels[0], scope.options["stairs"], scope.title = "second", True, "another"
    after = sim.run(bd, T=2.0, dt=0.5, live=False)
    shown = [(pane.labels, pane.options, pane.title, len(pane.t)) for pane in (*before.panes, *after.panes)]
    assert shown == [(["first"], {}, "scope", 5), (["second"], {"stairs": True}, "another", 5)]
    copied = pickle.loads(pickle.dumps(before))
    assert copied.outputs == ["source[0]"] and copied.panes[0].labels == ["first"]


def test_options_of_bdsim_that_name_files_have_the_result_written(tmp_path):
    pickled, plain = tmp_path / "bd.out", tmp_path / "bd.json"
    sim = cs.Simulation(graphics=False, progress=False, outfile=str(pickled), jsonfile=str(plain))
    bd = sim.blockdiagram()
    decay, rate = bd.INTEGRATOR(1.0, name="decay"), bd.GAIN(-1.0, name="rate")
    bd.connect(decay, rate, bd.ZOH(bd.clock(10, "Hz", name="ticks"), name="held"))
    bd.connect(rate, decay)
    bd.connect(bd["held"], bd.NULL())
    out = sim.run(bd, T=0.3, watch=[rate])
    read = json.loads(plain.read_text())
    assert np.array_equal(read["x"], out.x) and np.array_equal(read["t"], out.t) and read["xnames"] == out.xnames
    assert np.array_equal(read["y"], out.y) and np.array_equal(read["ticks"]["X"], out.ticks.X)
    assert np.array_equal(pickle.loads(pickled.read_bytes()).signal("rate"), out.signal("rate"))
    sim.options.jsonfile = str(tmp_path / "nowhere" / "bd.json")
    with pytest.raises(cs.CstormError, match=r"bd\.json.*cannot be written") as told:
        sim.run(bd, T=0.3)
    assert told.value.result.t[-1] == 0.3
