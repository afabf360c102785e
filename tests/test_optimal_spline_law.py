"""The spline law: an optimised swing-up, time-varying LQR along it, LQR at its end, and a brake before it."""

import math
import subprocess
import sys
from itertools import pairwise

import numpy as np
import pytest
from running_laws import run, time_to_balance
from scipy.integrate import solve_ivp

import cstormpy as cs
from cstormpy import control, diagrams
from cstormpy.diagrams import _optimised, branched_acrobot
from cstormpy.errors import InvalidValue
from cstormpy.mechanism import library
from cstormpy.optimal import solution_cache, spline_law
from cstormpy.optimal.spline_law import swing_up

ACROBOTS = ("teaching", "spong", "gym", "rods")
HANGING, UPRIGHT = np.array([-math.pi / 2, 0.0]), np.array([math.pi / 2, 0.0])
#: q1 from hanging; the first is at rest and gets a kick.
STARTS = ((0, 0, 0, 0), (0.1, 0, 0, 0), (-0.05, 0.05, 0, 0), (0.2, -0.3, 0, 0), (-0.3, 0.1, 0.2, 0))


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """A cache of its own, which is empty."""
    monkeypatch.setattr(solution_cache, "_cache", lambda: tmp_path)
    return tmp_path


def never(*arguments):
    raise AssertionError("searched")


# ---------------------------------------------------------------- the motions that come with the package


@pytest.mark.parametrize("name", ACROBOTS)
def test_the_motion_of_each_acrobot_is_known_and_is_an_optimum(name, monkeypatch):
    """Else it is stale: swing_up(mech) searches it, and what it keeps in the cache goes to optimal/motions."""
    monkeypatch.setattr(spline_law, "_search", never)
    solution = swing_up(library.acrobot(name))
    assert solution.converged and solution.feasible
    assert solution.kkt < 1e-4
    at = solution.samples
    np.testing.assert_allclose(at.q[-1], UPRIGHT, atol=1e-6)
    np.testing.assert_allclose(at.qd[-1], 0.0, atol=1e-5)
    assert np.abs(at.tau[:, 1]).max() <= 20.0 * (1.0 + 1e-6)
    assert solution.excess[0].amount < 0.05


@pytest.mark.parametrize("name", ACROBOTS)
def test_another_solver_of_the_equations_of_motion_comes_to_the_same_end(name):
    """Unstable as it is, the motion makes some ten thousand times of an error on its way."""
    mech = library.acrobot(name).with_drive(active=["elbow"])
    solution = swing_up(mech)
    evaluate, elbow = mech.hybrid_evaluator(), solution.spline

    def rate(t, x):
        q, qd, qdd = elbow.evaluate(min(t, 3.0))
        answer = evaluate(np.array([x[0], q[0]]), np.array([x[1], qd[0]]), np.array([0.0, qdd[0]]))
        return [x[1], answer[0]]

    breaks = np.unique(elbow.knots)
    x = np.array([-math.pi / 2, 0.0])
    for a, b in pairwise(breaks):
        x = solve_ivp(rate, (a, b), x, method="DOP853", rtol=1e-11, atol=1e-12).y[:, -1]
    np.testing.assert_allclose(x, [math.pi / 2, 0.0], atol=1e-4)


class Asked(Exception):
    """Somebody asks for an answer."""


def test_no_file_comes_with_the_package_that_nobody_asks_for(monkeypatch):
    asked = set()

    def ask(problem, made_by, *arguments, **options):
        asked.add(solution_cache.file_name(made_by))
        raise Asked

    for module in (spline_law, _optimised):
        monkeypatch.setattr(module, "solved", ask)
    for name in ACROBOTS:
        with pytest.raises(Asked):
            swing_up(library.acrobot(name))
    with pytest.raises(Asked):
        branched_acrobot.optimum()
    assert {path.name for path in solution_cache.SHIPPED.iterdir()} == asked


# ---------------------------------------------------------------- the law


@pytest.mark.slow
@pytest.mark.parametrize("k", range(len(STARTS)))
def test_it_swings_the_acrobot_up_from_the_five_starts(k):
    """The fifth is too far from the start of the motion, so that it brakes first."""
    law = control.law("spline", library.acrobot())
    x0 = np.array(STARTS[k], dtype=float) - [np.pi / 2, 0, 0, 0]
    states, phases = run(law.mech, law, x0, 6.5, push=(lambda t: 0.5 if t < 0.2 else 0.0) if k == 0 else None)
    assert time_to_balance(states, UPRIGHT) <= (1.05 * 5.1 if k == 4 else 1.05 * 3.9)
    assert [law.modes[p] for p in (phases[0], phases[-1])] == ["brake" if k == 4 else "swing up", "balance"]


@pytest.mark.slow
def test_what_slips_is_braked_and_swung_up_again():
    law = control.law("spline", library.acrobot())
    states, phases = run(law.mech, law, [*UPRIGHT, 0, 0], 16.0, push=lambda t: 60.0 if 0.5 < t < 0.8 else 0.0)
    changes = [law.modes[p] for p in phases[np.flatnonzero(np.diff(phases, prepend=-1))]]
    assert changes[0] == "balance" and changes[1] == "brake"
    assert changes[-2:] == ["swing up", "balance"]
    assert time_to_balance(states, UPRIGHT) < 16.0


def test_near_the_goal_it_balances_at_once_and_needs_no_motion(monkeypatch):
    monkeypatch.setattr(spline_law, "swing_up", never)
    law = control.law("spline", library.acrobot())
    law.start(0.0, UPRIGHT + 0.02, np.zeros(2))
    assert law.modes[law.mode] == "balance"
    assert law(0.0, UPRIGHT, np.zeros(2)) == pytest.approx(0.0, abs=1e-9)


def test_a_motion_that_has_missed_the_goal_is_given_up_at_its_end():
    law = control.law("spline", library.acrobot())
    law.start(5.0, HANGING, np.zeros(2))
    assert law.modes[law.mode] == "swing up"
    assert law.margin(5.1, HANGING, np.zeros(2)) > 0.0
    assert law.margin(8.0, HANGING, np.zeros(2)) == pytest.approx(0.0, abs=1e-9)
    sideways = np.array([0.3, 0.4])
    law.switch(8.0, sideways, np.array([2.0, -1.0]))
    assert law.modes[law.mode] == "brake"


def test_the_motion_starts_when_the_law_does():
    law = control.law("spline", library.acrobot())
    rest = HANGING, np.zeros(2)
    law.start(0.0, *rest)
    at_zero = law(0.3, *rest)
    law.start(7.0, *rest)
    np.testing.assert_allclose(law(7.3, *rest), at_zero, rtol=1e-9)
    assert law.motion.t1 == 3.0


@pytest.mark.slow
def test_weights_that_change_make_new_regulators():
    law = control.law("spline", library.acrobot())
    beside = HANGING + np.array([0.02, 0.0])
    law.start(0.0, beside, np.zeros(2))
    before = law(0.02, beside, np.zeros(2))
    law.set_gain("R.elbow", 4.0)
    assert abs(before[0]) < 25.0
    assert law(0.02, beside, np.zeros(2)) != pytest.approx(before, rel=1e-3)
    law.set_gain("near", 1e-9)
    law.start(0.0, beside, np.zeros(2))
    assert law.modes[law.mode] == "brake"
    with pytest.raises(InvalidValue):
        law.set_gain("near", -1.0)
    with pytest.raises(InvalidValue, match="must not be below the threshold"):
        law.set_gain("release", 1.0)


@pytest.mark.slow
def test_a_run_that_is_continued_within_the_swing_goes_on_along_the_motion(tmp_path):
    sim = cs.Simulation(graphics=False, progress=False)
    build = diagrams.load("acrobot").build
    begin = {"controller": "none", "kick": False, "q0": HANGING}

    def late(bd):
        return {"at": {0.5: lambda: bd.blocknames["controller"].select("spline")}}

    whole = build(sim, **begin)
    wanted = sim.run(whole, T=4.0, watch=["controller"], **late(whole))
    first = build(sim, **begin)
    half = sim.run(first, T=1.7, watch=["controller"], **late(first))
    half.state.save(tmp_path / "state.json")
    again = build(sim, **begin)
    out = sim.run(again, T=4.0 - 1.7, start=tmp_path / "state.json", watch=["controller"])
    np.testing.assert_allclose(out.x[-1][:4], wanted.x[-1][:4], atol=2e-3)
    controller = again.blocknames["controller"]
    assert controller.law_names[int(out.signal("controller.law")[-1])] == "spline"
    assert controller.phase_names[int(out.signal("controller.phase")[-1])] == "balance"


def test_a_motion_that_there_is_not_is_told(monkeypatch):
    monkeypatch.setattr(spline_law, "STARTS", 1)
    with pytest.raises(InvalidValue, match=r"spline: no motion of 0.2 s reaches the goal within the limits"):
        swing_up(library.acrobot(), duration=0.2, limit=0.5, points=5)
    law = control.law("spline", "acrobot", duration=0.2, limit=0.5, points=5)
    with pytest.raises(InvalidValue, match="give another duration= or limit="):
        law.start(0.0, HANGING, np.zeros(2))


def test_ctrl_c_during_the_search_is_no_motion(monkeypatch, folder):
    def pressed(self, *arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr("cstormpy.optimal.programme.Programme.gradient", pressed)
    with pytest.raises(KeyboardInterrupt):
        swing_up(library.acrobot(), duration=3.25)
    assert not list(folder.iterdir())


LAZY = """
import sys, cstormpy as cs
sim = cs.Simulation(graphics=False, progress=False)
bd = cs.diagrams.load("acrobot").build(sim, controller="{law}")
sim.run(bd, T=0.01, live=False)
print("cstormpy.optimal" in sys.modules)
"""


@pytest.mark.slow
@pytest.mark.parametrize(("law", "loaded"), [("energy", "False"), ("spline", "True")])
def test_only_who_selects_the_law_pays_for_it(law, loaded):
    done = subprocess.run([sys.executable, "-c", LAZY.format(law=law)], capture_output=True, text=True, check=True)
    assert done.stdout.split("\n")[0] == loaded
    assert "searching" not in done.stderr
