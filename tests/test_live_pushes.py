"""Pushes on a link in a live window: wrenches, work, and what is refused."""

import math
import time
from importlib.util import find_spec

import numpy as np
import pytest
from live_runs import ACROBOT, swing

import cstormpy as cs
from cstormpy import live
from cstormpy.blocks.dynamics import HybridDynamics
from cstormpy.dynamics.loads import link_wrench
from cstormpy.errors import InvalidType, InvalidValue, ShapeError, UnknownName
from cstormpy.simulation import simulation

has_qt = find_spec("PySide6") is not None and live.available({"QT_QPA_PLATFORM": "offscreen"}) is None
needs_qt = pytest.mark.skipif(not has_qt, reason="needs PySide6 and its libraries")
PUSHED = [
    pytest.param(ACROBOT, "forearm", id="acrobot"),
    pytest.param(ACROBOT.with_drive(active=["elbow"]), "upper_arm", id="active elbow"),
    pytest.param(cs.library.branched_acrobot(), 2, id="branched"),
    pytest.param(cs.library.puma560(), 5, id="puma"),
]


@pytest.mark.parametrize(("mech", "link"), PUSHED)
def test_a_push_is_the_wrench_of_that_force_at_that_point(mech, link):
    """The force is in the axes of the base; at the wrench port stands the same in those of the link."""
    index = mech.link_index(link) if isinstance(link, str) else link
    rng = np.random.default_rng(8)
    q, qd, force, point = rng.normal(size=mech.n), rng.normal(size=mech.n), rng.normal(size=3), rng.normal(size=3)
    plant, loaded = HybridDynamics(mech), HybridDynamics(mech, wrench=True)
    signals = [rng.normal(size=width) for width in plant.inwidths]
    x = np.concatenate([q, qd])
    free = plant.test_deriv(*signals, x=x)
    plant.push(link, force, point)
    rows = np.zeros((len(mech.links), 6))
    pose = mech.forward_kinematics(q)[index]
    rows[index, 3:] = pose[:3, :3].T @ force
    rows[index, :3] = np.cross(point, rows[index, 3:])
    pushed = plant.test_deriv(*signals, x=x)
    np.testing.assert_allclose(pushed, loaded.test_deriv(*signals, rows, x=x), rtol=1e-12, atol=1e-12)
    assert np.abs(pushed - free).max() > 1e-3
    np.testing.assert_allclose(
        rows[index], link_wrench(pose[:3, :3].T, point, np.concatenate([np.zeros(3), force])), atol=1e-14
    )
    plant.release()
    np.testing.assert_array_equal(plant.test_deriv(*signals, x=x), free)


def test_a_push_does_work_as_force_times_way():
    """By another way than wrenches: the power into the mechanism is F · v of the pushed point."""
    mech = cs.library.puma560()
    rng = np.random.default_rng(2)
    q, qd, force, point = (rng.normal(size=n) for n in (mech.n, mech.n, 3, 3))
    plant = HybridDynamics(mech)
    signals = [np.zeros(width) for width in plant.inwidths]
    x = np.concatenate([q, qd])
    free = plant.test_deriv(*signals, x=x)[mech.n :]
    plant.push(4, force, point)
    gained = mech.mass_matrix(q) @ (plant.test_deriv(*signals, x=x)[mech.n :] - free) @ qd

    def place(q):
        pose = mech.forward_kinematics(q)[4]
        return pose[:3, :3] @ point + pose[:3, 3]

    h = 1e-6
    assert gained == pytest.approx(force @ (place(q + h * qd) - place(q - h * qd)) / (2 * h), rel=1e-7)


def test_a_push_adds_to_the_wrenches_of_the_port():
    mech = cs.library.branched_acrobot()
    rng = np.random.default_rng(5)
    plant = HybridDynamics(mech, wrench=True)
    signals = [np.zeros(width) for width in plant.inwidths[:-1]]
    x, rows = rng.normal(size=2 * mech.n), rng.normal(size=(len(mech.links), 6))
    none = np.zeros_like(rows)
    qdd = {}
    for pushed in (False, True):
        for loads in (none, rows):
            if pushed:
                plant.push(1, [1.0, 2.0, 0.0], [0.1, 0.2, 0.3])
            qdd[pushed, loads is rows] = plant.test_deriv(*signals, loads, x=x)
    np.testing.assert_allclose(
        qdd[True, True] - qdd[False, True], qdd[True, False] - qdd[False, False], rtol=1e-9, atol=1e-12
    )


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (("foot", [1, 0, 0]), UnknownName, "link 'foot' does not exist"),
        ((2, [1, 0, 0]), InvalidValue, "link"),
        ((-3, [1, 0, 0]), InvalidValue, "link"),
        ((0.5, [1, 0, 0]), InvalidType, "link"),
        ((True, [1, 0, 0]), InvalidType, "link"),
        ((0, [1, 0]), ShapeError, "force: expected"),
        ((0, "hard"), InvalidType, "force"),
        ((0, [1, math.nan, 0]), cs.CstormError, "force"),
        ((0, [1, 0, 0], [1, 2]), ShapeError, "point: expected"),
        ((0, [1, 0, 0], None), InvalidType, "point"),
    ],
)
def test_a_bad_push_is_refused_and_the_one_before_stays(arguments, error, message):
    plant = HybridDynamics(ACROBOT)
    x = np.array([0.1, 0.2, 0.3, 0.4])
    plant.push(1, [1.0, 0.0, 0.0])
    before = plant.test_deriv([0.0], x=x)
    with pytest.raises(error, match=message):
        plant.push(*arguments)
    np.testing.assert_array_equal(plant.test_deriv([0.0], x=x), before)


def test_a_run_begins_without_a_push():
    bd = swing()
    bd.blocknames["plant"].push(1, [50.0, 0.0, 0.0])
    sim = cs.Simulation(graphics=False, progress=False)
    np.testing.assert_array_equal(sim.run(bd, T=0.5).x, sim.run(swing(), T=0.5).x)


@pytest.mark.slow
@needs_qt
def test_a_real_window_pushes_turns_and_stops(monkeypatch):
    """Off the screen: the mouse pulls at a link, a slider moves, the law is chosen, the run is stopped."""
    monkeypatch.setenv("QT_QPA_PLATFORM", "offscreen")
    monkeypatch.setenv("CSTORMPY_LIVE_TEST", "1")
    opened = []

    class Window(live.LiveFeed):
        def __init__(self, title):
            super().__init__(title)
            opened.append(self)

        def drive(self, act, **message):
            self._tell(say="drive", act=act, **message)
            answer = self._replies.get(timeout=20.0)
            assert "error" not in answer, answer
            return answer

    monkeypatch.setattr(simulation, "LiveFeed", Window)
    bd = swing()
    plant, controller = bd.blocknames["plant"], bd.blocknames["controller"]
    seen = {}

    def pull():
        window = opened[0]
        assert window.wait_until_ready(60.0), window.reason
        time.sleep(0.1)
        at = window.drive("link", control="view picture", link=1)["at"]
        window.drive("press", control="view picture", at=at)
        window.drive("move", control="view picture", at=[at[0] + 40, at[1]])

    def turn():
        seen["pushed"] = plant._pushed
        window = opened[0]
        window.drive("release", control="view picture", at=[0, 0])
        window.drive("type", control="controller.pd.kp value", value="7.5")
        window.drive("choose", control="controller law", value="pd")

    def stop():
        seen["released"] = plant._pushed
        opened[0].drive("click", control="stop")

    sim = cs.Simulation(graphics=False, hold=False, progress=False)
    out = sim.run(bd, T=8.0, live=True, at={0.5: pull, 1.0: turn, 1.5: stop})
    link, _, force = seen["pushed"]
    assert link == 1 and force[0] > 1.0 and abs(force[1]) < 0.1 * force[0]
    assert seen["released"] is None
    assert controller.active_law == "pd" and controller.laws.laws["pd"].gains["kp"] == 7.5
    assert out.status == "stopped" and 1.5 <= out.t[-1] < 4.0
    assert not opened[0].alive
