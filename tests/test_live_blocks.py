"""The live blocks: silent in a plain bdsim, and gathered as panes by a Simulation."""

import bdsim
import numpy as np
import pytest

import cstormpy as cs
from cstormpy.blocks.live import LiveScope, LiveXY, MechanismView
from cstormpy.errors import CstormError
from cstormpy.live import LivePane
from cstormpy.live.description import described
from cstormpy.simulation.panes import find_panes
from cstormpy.simulation.wiring import compile_diagram


def wired(sim):
    """Return a swinging acrobot with every kind of live block."""
    bd = sim.blockdiagram()
    plant = bd.HYBRIDDYNAMICS("acrobot", q0=[-1.0, 0.2], name="plant")
    bd.connect(bd.CONSTANT(0.0), plant[0])
    both = bd.LIVESCOPE(nin=2, labels=["q1", "q2", "rate1", "rate2"], units="rad", ylim=[-3, 3], name="both")
    plain = bd.LIVESCOPE(name="plain", stairs=True)
    parts = bd.DEMUX(2)
    phase = bd.LIVEXY(labels=["q1", "q2"], equal=True, trail=0.5, title="Path", name="phase")
    view = bd.MECHANISMVIEW("acrobot", frames=True, name="view")
    bd.connect(plant[0], both[0], plain[0], parts[0], view[0])
    bd.connect(plant[1], both[1])
    bd.connect(parts[0], phase[0])
    bd.connect(parts[1], phase[1])
    return bd


def test_in_a_plain_bdsim_they_are_silent(capsys):
    sim = cs.Simulation(progress=False, graphics=False)
    bd = wired(sim)
    compile_diagram(bd)
    plain = bdsim.BDSim(sysargs=False, graphics=False, verbose=False, progress=False, quiet=True)
    capsys.readouterr()
    out = plain.run(bd, T=0.2)
    assert len(out.t) > 1 and capsys.readouterr().out == ""


def test_a_scope_calls_coordinates_by_their_joints_and_knows_their_unit():
    sim = cs.Simulation(progress=False, graphics=False)
    bd = sim.blockdiagram()
    plant = bd.HYBRIDDYNAMICS("cart_pole", name="plant")
    scopes = [bd.LIVESCOPE(name="rates"), bd.LIVESCOPE(name="q"), bd.LIVESCOPE(name="pole"), bd.LIVESCOPE(labels=["x"])]
    rod = bd.HYBRIDDYNAMICS("acrobot", name="rod")
    bd.connect(bd.CONSTANT([0.0]), plant[0], rod[0])
    bd.connect(rod[1], scopes[0])
    bd.connect(plant[0], scopes[1], scopes[3])
    bd.connect(rod[0], scopes[2])
    shown = {pane.name: pane for pane in sim.run(bd, T=0.05).panes}
    assert shown["rates"].labels == ["rod.shoulder.qd", "rod.elbow.qd"] and shown["rates"].unit == "rad/s"
    assert shown["pole"].labels == ["rod.shoulder.q", "rod.elbow.q"] and shown["pole"].unit == "rad"
    assert shown["q"].labels == ["plant.cart.q [m]", "plant.pole.q [rad]"] and shown["q"].unit == "", "none of all"
    assert shown["livescope.0"].labels == ["x[0]", "x[1]"], "as they are told"


def test_they_are_panes_with_labels_options_and_a_mechanism():
    bd = wired(cs.Simulation(progress=False, graphics=False))
    compile_diagram(bd)
    panes = {pane.name: pane for pane in find_panes(bd)}
    assert {name: pane.kind for name, pane in panes.items()} == {
        "both": "scope",
        "plain": "scope",
        "phase": "xy",
        "view": "mechanism",
    }
    assert panes["both"].told_unit == "rad" and panes["both"].options == {"scale": [-3.0, 3.0]}
    assert panes["plain"].options == {"stairs": True} and panes["plain"].title == "plain"
    assert panes["phase"].title == "Path" and panes["phase"].options == {"trail": 0.5, "equal": True}
    assert panes["view"].mechanism == cs.library.acrobot()
    assert panes["view"].options == {"view": "auto", "trail": True, "frames": True}


def test_a_view_without_a_title_is_called_by_what_it_shows(tmp_path):
    """Windows, figures and films said "mechanismview.0"."""
    sim = cs.Simulation(progress=False, graphics=False)

    def title(mech="acrobot", plant=None, **given):
        bd = sim.blockdiagram()
        moving = bd.HYBRIDDYNAMICS(cs.library.acrobot(), **({} if plant is None else {"name": plant}))
        bd.connect(bd.CONSTANT(0.0), moving[0])
        bd.connect(moving.q, bd.MECHANISMVIEW(mech, **given))
        return sim.run(bd, T=0.1).panes[0].title

    assert title(title="Acrobot", plant="robot") == "Acrobot"
    assert title(name="seen", plant="robot") == "seen"
    assert title() == title(plant="robot") == "acrobot"
    cs.library.acrobot().save(tmp_path / "two rods.json")
    assert title(tmp_path / "two rods.json") == "two rods"
    assert title(cs.library.acrobot(), plant="robot") == "robot" and title(cs.library.acrobot()) == "mechanismview.0"


def test_what_they_describe_is_what_a_window_takes():
    view = MechanismView("acrobot", title="Robot")
    pane = LivePane("view", view.pane_kind, view.labels, view.title, view.unit, view.mechanism, view.options, "plant")
    content = described([LivePane("s", LiveScope.pane_kind, ["a", "b"]), pane], [])
    assert content["width"] == 4 and [p["columns"] for p in content["panes"]] == [[0, 2], [2, 4]]
    again = content["panes"][1]
    assert (again["title"], again["push"], again["labels"]) == ("Robot", "plant", ["shoulder", "elbow"])
    assert cs.mechanism.files.from_dict(again["mechanism"]) == view.mechanism


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: LiveScope(nin=0), "nin"),
        (lambda: LiveScope(labels="q"), "labels: expected a list of names, got 'q'"),
        (
            lambda: LiveScope(nin=2, labels=["q"]),
            "labels: expected a name for each of 2 inputs, or for each trace, got 1",
        ),
        (lambda: LiveScope(units=3), "units: expected text, got 3"),
        (lambda: LiveScope(2, units=["m", "m/s"]), r"units: .* one text .* labels=\['height \[m\]', 'speed \[m/s\]'\]"),
        (lambda: LiveScope(units=("m",)), r"units: expected one text .*, got ('m',\); write units='m'"),
        (lambda: LiveXY(units=["m", "s"], labels=["x", "t"]), r"units: .* labels=\['x \[m\]', 't \[s\]'\]$"),
        (lambda: LiveScope(ylim=[1, 1]), "ylim: expected two finite numbers, the lowest first, got 1 and 1"),
        (lambda: LiveScope(ylim=[1, 2, 3]), "ylim: expected two numbers"),
        (lambda: LiveScope(ylim=[0, np.inf]), "ylim: expected two finite numbers"),
        (lambda: LiveXY(labels=["a"]), "labels: expected 2 names, got 1"),
        (lambda: LiveXY(xlim=[0, 1]), "give both, or none"),
        (lambda: LiveXY(trail=-1.0), "trail"),
        (lambda: MechanismView("acrobat"), "did you mean 'acrobot'"),
        (lambda: MechanismView("acrobot", view="3D"), "did you mean '3d'"),
        (lambda: MechanismView("acrobot", frames=1), "frames: expected True or False"),
    ],
)
def test_bad_arguments_are_refused(make, says):
    with pytest.raises(CstormError, match=says.replace("(", r"\(")):
        make()


@pytest.mark.parametrize("engine", ["interpreted", "compiled"])
def test_a_scope_with_a_step_of_its_own_is_called_at_each_point(engine):
    """LIVESCOPE's own step does nothing and is not called; that of a class derived from it is."""
    seen = []

    class Counting(LiveScope):
        def step(self, t, u):
            seen.append((t, u[0]))

    sim = cs.Simulation(engine=engine, graphics=False, progress=False, live=False)
    bd = sim.blockdiagram()
    state = bd.INTEGRATOR(x0=1.0)
    bd.connect(state, gain := bd.GAIN(-1.0))
    bd.connect(gain, state)
    bd.connect(state, Counting(bd=bd, name="counting"))
    bd.connect(state, bd.LIVESCOPE(name="idle"))
    for _ in range(2):
        seen.clear()
        out = sim.run(bd, T=0.5)
        assert [t for t, _ in seen] == out.t.tolist()
        assert [y for _, y in seen] == pytest.approx(out.x[:, 0])
