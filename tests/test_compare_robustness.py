"""Comparisons with robustness: what is made worse is what it says, and the same in both engines and on any machine."""

import math

import numpy as np
import pytest

import cstormpy as cs
from cstormpy.comparison import Robustness, compare
from cstormpy.comparison.disturbances import MEASUREMENT, MOTORS, PUSHES, disturb
from cstormpy.comparison.robustness import score
from cstormpy.comparison.table import CRITERIA
from cstormpy.control import LQR
from cstormpy.errors import DiagramError, InvalidType, InvalidValue
from cstormpy.signals.noise import normal, uniform

UPRIGHT = math.pi / 2
DT = 0.01


def balanced(sim, q0=UPRIGHT + 0.1, gain=1.0):
    """A pendulum with a motor, held upright by its regulator."""
    mech = cs.library.pendulum()
    bd = sim.blockdiagram()
    plant = bd.HYBRIDDYNAMICS(mech, q0=[q0], name="plant")
    law = bd.CONTROLLER(mech, LQR(mech, goal=[UPRIGHT], R=1.0 / gain, limit=20.0), name="controller")
    bd.connect(plant[0:2], law[0:2])
    bd.connect(law[0], plant[0])
    bd.goal = cs.diagrams.Goal([UPRIGHT])
    return bd


def disturbed(engine, **numbers):
    sim = cs.Simulation(graphics=False, progress=False, engine=engine)
    bd = balanced(sim)
    disturb(bd, DT, longest=5)
    blocks = {block.name: block for block in bd.blocklist}
    for name, value in numbers.items():
        block, _, number = name.partition("_")
        setattr(blocks[{"measurement": MEASUREMENT, "motors": MOTORS}[block]], number, value)
    return sim.run(bd, T=0.5, rtol=1e-9, atol=1e-11, watch=["plant", MEASUREMENT, "controller", MOTORS])


def at(out, name, t):
    """Return a signal a little after some times."""
    return out.signal(name)[np.searchsorted(out.t, np.asarray(t) + 1e-4 * DT) - 1].ravel()


TICKS = DT * np.arange(10, 40)


@pytest.fixture(scope="module")
def perfect():
    return disturbed("compiled")


def test_nothing_is_made_worse_unless_it_is_asked_for(perfect):
    np.testing.assert_allclose(at(perfect, f"{MEASUREMENT}[0]", TICKS), at(perfect, "plant.q", TICKS), atol=1e-9)
    np.testing.assert_allclose(at(perfect, MOTORS, TICKS), at(perfect, "controller.tau", TICKS), atol=1e-9)


@pytest.mark.parametrize("engine", ["interpreted", "compiled"])
def test_disturbances_are_what_they_say(engine):
    """All at once, each against its own definition; both engines are held to the same numbers."""
    pushes = {"height": np.array([2.0, 0.0, -1.0]), "centre": np.array([0.2, 0.0, 0.3]), "width": np.full(3, 0.05)}
    wrong = {"measurement_delay": 3.0, "measurement_noise": 0.2, "motors_response": 0.4, "motors_noise": 0.1}
    out = disturbed(engine, **wrong, **{f"motors_{name}": value for name, value in pushes.items()})
    k = np.rint(TICKS / DT)
    np.testing.assert_allclose(at(out, f"{MEASUREMENT}[0]", TICKS), at(out, "plant.q", TICKS - 3 * DT), atol=1e-7)
    noise = 0.2 * normal(uniform(2023.0, k, 0.0))
    rates = at(out, "plant.qd", TICKS - 3 * DT) + noise
    np.testing.assert_allclose(at(out, f"{MEASUREMENT}[1]", TICKS), rates, atol=1e-6)
    bells = sum(
        h * np.exp(-0.5 * ((TICKS - c) / w) ** 2) for h, c, w in zip(*pushes.values(), strict=True)
    ) + 0.1 * normal(uniform(2023.0, k, 1024.0))
    given, wanted = at(out, MOTORS, TICKS) - bells, at(out, "controller.tau", TICKS)
    np.testing.assert_allclose(given[1:], given[:-1] + 0.4 * (wanted[1:] - given[:-1]), atol=1e-6)


SMALL = Robustness(steps=3, profiles=2, dt=DT, model=0.2)


@pytest.fixture(scope="module")
def scored():
    return compare(balanced, {"gain": [0.1, 1000.0]}, T=2.0, robustness=SMALL)


@pytest.mark.slow
def test_a_regulator_endures_what_is_small_and_not_what_is_large(scored):
    """That of a pendulum, weak and strong: 40 ms are too much for the strong one, with a crossover at some 100 1/s."""
    weak, strong = (entry.robustness for entry in scored.entries)
    assert [curve.name for curve in weak.curves] == [
        *("link1 mass", "link1 centre of mass", "link1 inertia", "joint1 damping", "joint1 friction"),
        *CRITERIA[1:],
    ]
    for found in (weak, strong):
        for curve in found.curves:
            if curve.criterion in ("noise", "torque noise", "delay"):
                assert curve.success[0], f"{curve.name}: nothing was made worse"
        shares = [found.share(name) for name in CRITERIA]
        assert found.total == pytest.approx(np.mean(shares))
    assert weak.share("delay") == 1.0 > strong.share("delay")
    delays = next(curve for curve in strong.curves if curve.criterion == "delay")
    np.testing.assert_allclose(delays.values, [0.0, 0.02, 0.04])


def test_it_prints_and_draws_what_each_endures(scored):
    text = str(scored)
    assert "torque noise [%]" in text and "robustness [%]" in text
    assert f"{100 * scored.entries[0].robustness.total:.1f}" in text
    assert scored.rows[1]["robustness"]["total"] == scored.entries[1].robustness.total
    assert str(scored.entries[0].robustness).startswith(
        f"robustness {100 * scored.entries[0].robustness.total:.1f} % ("
    )
    figure = scored.plot_robustness()
    bars, *maps = figure.axes
    assert [text.get_text() for text in bars.get_xticklabels()] == [*CRITERIA, "total"]
    assert len(maps) == 2
    runs = sum(len(curve.success) for curve in scored.entries[0].robustness.curves)
    assert len(maps[0].patches) == runs


def test_of_two_plants_that_of_the_name_is_scored():
    """The first one was made worse and looked at, here a pendulum that hangs beside the one that is balanced."""

    def beside(sim):
        bd = sim.blockdiagram()
        other = bd.HYBRIDDYNAMICS(cs.library.pendulum(2), q0=[-UPRIGHT, 0.0], actuated=[], name="other")
        bd.connect(other.q, bd.NULL())
        mech = cs.library.pendulum()
        plant = bd.HYBRIDDYNAMICS(mech, q0=[UPRIGHT + 0.1], name="plant")
        law = bd.CONTROLLER(mech, LQR(mech, goal=[UPRIGHT], limit=20.0), name="controller")
        bd.connect(plant[0:2], law[0:2])
        bd.connect(law[0], plant[0])
        bd.goal = cs.diagrams.Goal([UPRIGHT])
        return bd

    tiny = Robustness(steps=2, profiles=1, dt=DT, model=0.05)
    found = compare(beside, {}, T=2.0, robustness=tiny).entries[0].robustness
    names = [curve.name for curve in found.curves]
    assert names[:3] == ["link1 mass", "link1 centre of mass", "link1 inertia"] and "link2 mass" not in names
    assert found.share("model") == 1.0


def test_options_of_a_builder_may_be_called_as_those_of_a_sweep():
    """They went to the sweep: "measure" was there twice, and of "workers" the builder was told nothing."""
    asked = []

    def build(sim, measure=None, workers=None):
        asked.append((measure, workers))
        return balanced(sim)

    tiny = Robustness(steps=2, profiles=1, dt=DT)
    found = compare(build, {"measure": ["all"]}, T=0.05, robustness=tiny, workers=3).entries[0].robustness
    assert set(asked) == {("all", 3)} and len(asked) > 2 and len(found.curves) > 5


@pytest.mark.slow
def test_joints_of_several_coordinates_are_changed_by_their_names():
    """Their damping, an array, was taken for a number."""
    hinges = (
        cs.Universal([[1, 0, 0], [0, 0, 1]], damping=(0.1, 0.3)),
        cs.Composite([cs.Revolute((1, 0, 0)), cs.Revolute((0, 0, 1))]),
    )
    for joint in hinges:
        mech = cs.Mechanism([cs.Link("rod", None, joint, mass=1.0, com=(0, 0.5, 0), inertia=(0.1, 0.1, 0.1))])

        def build(sim, limit=1.0, mech=mech):
            bd = sim.blockdiagram()
            plant = bd.HYBRIDDYNAMICS(mech, q0=[0.02, 0.01], name="plant")
            bd.connect(bd.CONSTANT([limit, 0.0]), plant.tau)
            return bd

        few = Robustness(steps=2, profiles=1)
        score = cs.compare(build, {"limit": [0.1]}, T=0.02, goal=[0.0, 0.0], robustness=few).entries[0].robustness
        values = {curve.name: curve.values for curve in score.curves}
        most = 0.3 if isinstance(joint, cs.Universal) else 0.0
        np.testing.assert_allclose(values["rod damping"], [most, most + few.damping * 0.1])


@pytest.mark.slow
def test_scores_are_the_same_on_any_number_of_cores_and_in_both_engines(scored):
    entry = scored.entries[1]
    tiny = Robustness(steps=2, profiles=1, dt=DT, model=0.2)
    found = []
    for engine, workers in (("compiled", 1), ("interpreted", 2)):
        sim = cs.Simulation(graphics=False, progress=False, engine=engine)
        settings = {"solver": "RK45", "rtol": None, "atol": None, "max_step": None, "workers": workers}
        result = score(balanced, sim, {"gain": 1000.0}, entry, tiny, 1.0, settings)
        found.append([curve.success.tolist() for curve in result.curves])
    assert found[0] == found[1]


def test_what_cannot_be_scored_says_why():
    plain = cs.Simulation(graphics=False)
    with pytest.raises(DiagramError, match="wants one HYBRIDDYNAMICS block"):
        disturb(plain.blockdiagram(), DT, 5)
    for wrong, kind in (({"steps": 1}, InvalidValue), ({"noise": -1.0}, InvalidValue), ({"model": 1.0}, InvalidValue),
                        ({"delay": True}, InvalidType), ({"steps": 2.5}, InvalidType), ({"push": 0.5}, InvalidType),
                        ({"width": (0.5,)}, InvalidValue), ({"dt": 0.0}, InvalidValue)):  # fmt: skip
        with pytest.raises(kind, match="robustness: "):
            Robustness(**wrong)
    with pytest.raises(InvalidType, match="robustness: expected True, False"):
        compare(balanced, {"gain": [1.0]}, T=0.1, robustness="yes")
    with pytest.raises(InvalidValue, match="compare with robustness=True"):
        compare(balanced, {"gain": [1.0]}, T=0.1).plot_robustness()
    assert PUSHES == 3
