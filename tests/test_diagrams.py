"""The ready diagrams: each builds, runs and does what it says; the .bd files are the same diagrams."""

import json
import math
import os
import subprocess
import sys
from pathlib import Path

import bd_files
import numpy as np
import pytest
from bdsim import BDSim
from bdsim.blockdiagram import bdload

import cstormpy as cs
from cstormpy import control, diagrams
from cstormpy.errors import CstormError, InvalidType, InvalidValue, ShapeError, UnknownName

NAMES = diagrams.names()
LONG = ("stewart_platform", "two_link_lifting", "two_link_swing")
HANGING = -math.pi / 2

#: Upper ends of the times in which the laws balance the acrobot, from five starts, plus 5 % [s].
BALANCED_WITHIN = {"energy": 1.05 * 4.7, "pfl": 1.05 * 5.1, "noncollocated": 1.05 * 5.9, "spline": 1.05 * 5.1}
#: The five starts: rest with a kick, and four others (q0, qd0). From 0.1 rad beside rest the last digit decides whether
#: "pfl" is caught at its first swing or after 10 s, so that the second start is 0.05 rad beside it.
STARTS = [
    {"kick": True},
    {"q0": [HANGING + 0.05, 0.0]},
    {"q0": [HANGING - 0.05, 0.05]},
    {"q0": [HANGING + 0.2, -0.3]},
    {"q0": [HANGING - 0.3, 0.1], "qd0": [0.2, 0.0]},
]


@pytest.fixture
def sim():
    return cs.Simulation(graphics=False, progress=False)


def run(sim, name, T, watch=("plant",), **options):
    return sim.run(diagrams.load(name).build(sim, **options), T=T, watch=list(watch))


def test_the_names_are_those_of_the_modules():
    folder = Path(diagrams.__file__).parent
    assert set(NAMES) == {file.stem for file in folder.glob("[a-z]*.py")}
    assert {"pendulum", "acrobot", "acrobot_elbow", "two_link_arm", "branched_acrobot"} <= set(NAMES)


@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.slow) if n in LONG else n for n in NAMES])
def test_each_diagram_runs_to_its_end(sim, name):
    module = diagrams.load(name)
    bd = module.build(sim)
    out = sim.run(bd, T=1.5, watch=["plant"])
    assert out.status == "finished", out.message
    assert out.t[-1] == 1.5
    assert np.isfinite(out.x).all()
    # something moves, and there are scopes and a view to see it
    assert np.ptp(out.signal("plant.q"), axis=0).max() > 0.05
    assert {"livescope", "mechanismview"} <= {block.type for block in bd.blocklist}
    assert module.__doc__ is not None and "-->" in module.__doc__


@pytest.mark.parametrize("name", ["cart_pole", "furuta", "pendubot"])
def test_a_regulator_runs_on_half_a_turn_from_its_goal(sim, name):
    """It switched to and fro between both ways round, in steps of 1e-8 s, until the run was given up."""
    out = sim.run(diagrams.load(name).build(sim, controller="lqr"), T=1.0, watch=["plant"])
    assert out.status == "finished" and out.t[-1] == 1.0, out.message


@pytest.mark.parametrize("name", NAMES)
def test_the_drawing_names_the_blocks(sim, name):
    """Each block of a diagram stands in the drawing of its docstring."""
    bd, doc = diagrams.load(name).build(sim), diagrams.load(name).__doc__
    missing = [block.name for block in bd.blocklist if block.name not in doc]
    assert not missing


@pytest.mark.parametrize("name", NAMES)
def test_an_option_that_does_not_exist_is_refused_with_the_nearest_one(sim, name):
    known = diagrams.options(name)
    option = next(iter(known))
    with pytest.raises(UnknownName, match=f"diagram '{name}': option .* did you mean '{option}'"):
        diagrams.load(name).build(sim, **{option + "x": 1})


def test_a_diagram_that_does_not_exist_is_refused_with_the_nearest_one():
    with pytest.raises(UnknownName, match="did you mean 'acrobot'"):
        diagrams.load("akrobot")
    with pytest.raises(UnknownName):
        diagrams.load(3)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("acrobot", {"controller": "energi"}),
        ("acrobot", {"parameters": "teching"}),
        ("acrobot", {"q0": [1.0]}),
        ("acrobot", {"q0": "hanging"}),
        ("acrobot", {"kick": "yes"}),
        ("acrobot", {"limit": -1.0}),
        ("acrobot", {"blend": math.nan}),
        ("pendulum", {"rods": 0}),
        ("pendulum", {"damping": -1.0}),
        ("pendulum", {"damping": "much"}),
        ("acrobot_elbow", {"motion": [[0.0, 1.0]] * 6}),
        ("acrobot_elbow", {"motion": "no such file.json"}),
        ("acrobot_elbow", {"duration": 0.0}),
        ("acrobot_elbow", {"shoulder": None}),
        ("branched_acrobot", {"motion": [0.0] * 6}),
        ("branched_acrobot", {"body": "up"}),
        ("branched_acrobot", {"motion": "bestt"}),
        ("branched_acrobot", {"controller": "tvlqrr"}),
        ("branched_acrobot", {"controller": "tvlqr", "motion": [[0.0, 1.0]] * 6}),
        ("branched_acrobot", {"controller": "tvlqr", "offset": [0.1, 0.2]}),
        ("two_link_lifting", {"controller": "openloop"}),
        ("two_link_lifting", {"offset": "little"}),
        ("two_link_lifting", {"optimise": "yes"}),
        ("two_link_swing", {"duration": -1.0}),
        ("two_link_swing", {"limit": math.nan}),
        ("two_link_time_optimal", {"points": 3}),
        ("two_link_arm", {"q0": [0.0, math.nan]}),
        ("two_link_arm", {"kp": "stiff"}),
        ("two_link_arm", {"motion": [[0.0]] * 6}),
        ("seven_joint_arm", {"controller": "computed_torque"}),
        ("seven_joint_arm", {"motion": [[0.0] * 6] * 6}),
        ("seven_joint_arm", {"offset": "little"}),
        ("swing_sensitivity", {"qd0": [1.0, math.inf]}),
    ],
)
def test_a_bad_option_is_our_error(sim, name, options):
    with pytest.raises(CstormError):
        diagrams.load(name).build(sim, **options)


def test_build_wants_a_simulation():
    with pytest.raises(InvalidType, match="expected a cstormpy"):
        diagrams.load("pendulum").build(None)
    with pytest.raises(InvalidType, match="expected a cstormpy"):
        diagrams.load("pendulum").build(cs)


def test_goals():
    goal = diagrams.Goal([1.0, 2.0], tolerance=0.1)
    assert goal.q.tolist() == [1.0, 2.0] and goal.wrap
    with pytest.raises(InvalidType):
        diagrams.Goal(1.0)
    with pytest.raises(InvalidType):
        diagrams.Goal("upright")
    with pytest.raises(InvalidValue):
        diagrams.Goal([1.0], tolerance=0.0)


# ---------------------------------------------------------------- what each of them shows


def test_the_free_pendulum_keeps_its_energy(sim):
    out = sim.run(diagrams.load("pendulum").build(sim, rods=2, q0=[0.3, -0.5]), T=3, watch=["energy"])
    total = out.signal("energy.total")
    assert np.abs(total - total[0]).max() < 1e-4
    assert np.ptp(out.signal("energy.kinetic")) > 5.0


def upright_error(out):
    q, qd = out.signal("plant.q"), out.signal("plant.qd")
    e = q - [math.pi / 2, 0.0]
    e -= 2 * math.pi * np.round(e / (2 * math.pi))
    return np.linalg.norm(np.hstack([e, qd]), axis=1)


@pytest.mark.parametrize("law", ["pd", "none"])
def test_the_baselines_never_balance(sim, law):
    out = run(sim, "acrobot", 10.0, controller=law)
    assert upright_error(out).min() > 1.0


@pytest.mark.slow
@pytest.mark.parametrize("law", list(BALANCED_WITHIN))
@pytest.mark.parametrize("start", range(len(STARTS)))
def test_the_swing_up_laws_balance_from_five_starts(sim, law, start):
    out = run(sim, "acrobot", 12.0, controller=law, **STARTS[start])
    error = upright_error(out)
    late = out.t[np.flatnonzero(error >= 0.05)[-1]]
    assert error[-1] < 1e-3
    assert late < BALANCED_WITHIN[law]


def test_the_first_start_is_balanced(sim):
    """The quick part of the test above."""
    out = run(sim, "acrobot", 1.05 * 4.7, controller="energy")
    assert upright_error(out)[-1] < 0.05


def test_the_kick_is_for_the_start_at_rest(sim):
    build = diagrams.load("acrobot").build
    assert "kick" in build(sim).blocknames
    assert "kick" not in build(sim, q0=[0.0, 0.0]).blocknames
    assert "kick" not in build(sim, kick=False).blocknames
    moved = {
        kick: np.abs(run(sim, "acrobot", 0.5, controller="none", kick=kick).signal("plant.q") - [HANGING, 0.0]).max()
        for kick in (True, False)
    }
    assert moved[True] > 0.05 and moved[False] < 1e-12


def test_the_acrobots_law_can_be_swapped_for_any_other(sim):
    bd = diagrams.load("acrobot").build(sim, controller="none")
    laws = bd.blocknames["controller"]
    assert tuple(laws.laws.names) == control.names()
    out = sim.run(bd, T=3.0, watch=["controller"], at={1.0: lambda: laws.select("energy")})
    law, t = out.signal("controller.law"), out.t
    assert (law[t < 1.0] == control.names().index("none")).all()
    assert (law[t > 1.0] == control.names().index("energy")).all()


@pytest.mark.parametrize(("name", "lasts"), [("acrobot_elbow", 4.0), ("branched_acrobot", 3.0)])
def test_prescribed_motions_swing_up(sim, name, lasts):
    """The passive joint comes near upright, and the active ones follow their motion."""
    out = run(sim, name, lasts, watch=["plant", "motion", "torques"])
    q = out.signal("plant.q")
    assert abs(q[-1, 0] - math.pi / 2) < 0.1
    # the motion is that of the given accelerations, integrated: as near as the tolerance of 1e-6 a step
    assert np.abs(q[:, 1:] - out.signal("motion.q")).max() < 1e-2
    torque = out.signal("torques.torque")
    assert (torque[:, 0] == 0.0).all()
    assert np.abs(torque[:, 1]).max() > 10.0


def test_the_found_torque_gives_the_prescribed_motion(sim):
    """Played back into the acrobot that takes torques, it moves the same."""
    found = run(sim, "acrobot_elbow", 2.0, watch=["plant", "torques"])
    bd = sim.blockdiagram()
    again = bd.FROMDATA(t=found.t, y=found.signal("torques.torque")[:, 1:], interpolation="cubic")
    plant = bd.HYBRIDDYNAMICS("acrobot", q0=[HANGING, 0.0], name="plant")
    bd.connect(again, plant[0])
    out = sim.run(bd, T=2.0)
    # as near as a cubic through the accepted steps is to the torque
    assert np.abs(out.x[-1] - found.x[-1, :4]).max() < 2e-2


def test_computed_torque_follows_the_linear_error_law(sim):
    """With kp = 100, kd = 20 the error is (e0 + (ed0 + 10 e0) t) exp(-10 t), whatever the arm does."""
    out = run(sim, "two_link_arm", 2.5, watch=["plant", "error_q", "error_qd"])
    e, e0, ed0 = out.signal("error_q[0]"), out.signal("error_q[0]")[0], out.signal("error_qd[0]")[0]
    t = out.t[:, None]
    want = (e0 + (ed0 + 10.0 * e0) * t) * np.exp(-10.0 * t)
    assert np.abs(e0).min() > 0.1
    assert np.abs(e - want).max() < 1e-4


@pytest.mark.slow
def test_of_the_seven_joint_arms_laws_only_computed_torque_follows(sim):
    ends = {}
    for law in ("computed torque", "pd with gravity", "pd"):
        out = run(sim, "seven_joint_arm", 4.5, watch=["plant", "motion", "hand"], controller=law, offset=0.0)
        e = np.abs(out.signal("plant.q") - out.signal("motion.q"))
        ends[law] = e.max(), e[-1].max()
    assert ends["computed torque"][0] < 1e-4
    assert 0.05 < ends["pd with gravity"][0] < 0.2
    assert ends["pd with gravity"][1] < 0.01 and ends["pd"][1] > 0.1


@pytest.mark.slow
def test_a_body_turns_over_about_its_intermediate_axis_only(sim):
    tight = {"rtol": 1e-10, "atol": 1e-12, "solver": "DOP853", "watch": ["spin", "energy"]}
    build = diagrams.load("spinning_body").build
    for axis, turns_over in ((0, False), (1, True), (2, False)):
        spin = np.full(3, 1e-3)
        spin[axis] = 3.0
        out = sim.run(build(sim, spin=spin), T=12.0, **tight)
        assert (out.signal("spin")[:, axis].min() < -2.9) == turns_over
        np.testing.assert_allclose(out.signal("energy.total"), out.signal("energy.total")[0], rtol=1e-8)
        assert len(out.events) >= 4  # re-centrings, which the spin does not show


@pytest.mark.slow
def test_the_spherical_pendulum_keeps_what_it_must(sim):
    """Energy, the momentum about the vertical, and its spin about the rod, which no torque reaches."""
    options = {"rtol": 1e-10, "atol": 1e-12, "solver": "DOP853", "watch": ["tip", "energy"]}
    bd = diagrams.load("spherical_pendulum").build(sim)
    out = sim.run(bd, T=10.0, **options)
    mech = next(block for block in bd.blocklist if block.name == "plant").mech
    q, qd = out.x[:, :3], out.x[:, 3:]
    np.testing.assert_allclose(out.signal("energy.total"), out.signal("energy.total")[0], rtol=1e-8)
    np.testing.assert_allclose(mech.momentum(q, qd)[:, 1], mech.momentum(q[0], qd[0])[1], rtol=1e-8)
    spin = np.einsum("nij,nj->ni", mech.jacobian(q, "bob"), qd)[:, 1]
    np.testing.assert_allclose(spin, spin[0], rtol=1e-8)
    assert np.ptp(out.signal("tip.position")[:, 1]) > 0.05


def test_the_quadruped_flies_as_a_stone_and_turns_without_turning_momentum(sim):
    """Whatever its leg does, nothing reaches the robot from outside but gravity; its trunk turns all the same."""
    bd = diagrams.load("quadruped").build(sim)
    out = sim.run(bd, T=1.4, rtol=1e-8, atol=1e-10, watch=["plant"])
    mech = next(block for block in bd.blocklist if block.name == "plant").mech
    rows = np.linspace(0, len(out.t) - 1, 8).astype(int)
    t, q, qd = out.t[rows], out.x[rows, : mech.n], out.x[rows, mech.n :]
    mass, centre = sum(link.mass for link in mech.links), mech.center_of_mass(q)
    fallen = centre[0] + np.outer(t, [0.0, 0.0, 1.0]) * mech.momentum(q[0], qd[0])[5] / mass
    np.testing.assert_allclose(centre - np.outer(t**2, mech.gravity) / 2, fallen, atol=1e-6)
    momentum = mech.momentum(q, qd)
    turning = momentum[:, :3] - np.cross(centre, momentum[:, 3:])
    np.testing.assert_allclose(turning - turning[0], 0.0, atol=1e-6)
    assert np.abs(q[:, 3:6]).max() > 0.1


def test_the_sensitivity_of_the_swing_is_what_another_start_gives(sim):
    h, T, q0 = 1e-5, 1.0, np.array([0.3, 0.5])
    tight = {"rtol": 1e-10, "atol": 1e-12}
    build = diagrams.load("swing_sensitivity").build
    out = sim.run(build(sim, q0=q0), T=T, watch=["variation", "size"], **tight)
    ends = [sim.run(build(sim, q0=q0 + np.array([d, 0.0])), T=T, **tight).x[-1, :4] for d in (h, -h)]
    column = out.signal("variation.dx_dx0")[-1][:, 0]
    # of second order in h; the third derivatives are some hundred times the first
    assert np.abs((ends[0] - ends[1]) / (2 * h) - column).max() < 1e-6 * np.abs(column).max()
    assert out.signal("size[0]")[-1] == pytest.approx(np.linalg.norm(out.signal("variation.dx_dx0")[-1]))


# ---------------------------------------------------------------- .bd files


FILES = sorted(bd_files.FILES)


def test_every_diagram_that_json_can_hold_has_a_file():
    assert set(NAMES) - set(FILES) == {
        "cart_pole",  # laws with gains of their own
        "four_bar",
        "furuta",
        "pendubot",
        "quadruped",
        "seven_joint_arm",
        "spherical_pendulum",
        "spinning_body",
        "stewart_platform",
        "two_link_lifting",
        "two_link_swing",
        "two_link_time_optimal",
    }
    assert {file.stem for file in Path(diagrams.__file__).parent.glob("*.bd")} == set(FILES)


@pytest.mark.parametrize("name", FILES)
def test_the_file_is_up_to_date(name):
    """Else: python tests/bd_files.py."""
    assert Path(bd_files.path(name)).read_text(encoding="utf-8") == bd_files.text(name)


@pytest.mark.parametrize("name", FILES)
@pytest.mark.filterwarnings("ignore:bdload is evaluating:UserWarning")
def test_the_file_holds_the_very_diagram(sim, name):
    loaded = bdload(sim.blockdiagram(), bd_files.path(name))
    built = diagrams.load(name).build(sim)
    runs = [sim.run(bd, T=1.0) for bd in (loaded, built)]
    assert runs[0].xnames == runs[1].xnames
    np.testing.assert_array_equal(runs[0].t, runs[1].t)
    np.testing.assert_array_equal(runs[0].x, runs[1].x)


@pytest.mark.parametrize("name", FILES)
def test_on_the_drawing_no_block_covers_another(name):
    blocks = json.loads(Path(bd_files.path(name)).read_text(encoding="utf-8"))["blocks"]
    for k, a in enumerate(blocks):
        for b in blocks[:k]:
            beside = abs(a["pos_x"] - b["pos_x"]) >= 1.5 * a["width"]
            below = abs(a["pos_y"] - b["pos_y"]) >= 1.2 * max(a["height"], b["height"])
            assert beside or below, (a["title"], b["title"])


def test_what_is_drawn_must_be_what_is_built(monkeypatch):
    monkeypatch.setitem(bd_files.FILES, "pendulum", {"plant": ({}, 0, 0)})
    with pytest.raises(cs.DiagramError, match=r"pendulum: .*energy"):
        bd_files.text("pendulum")


RUN_ALL = """
import sys, warnings
warnings.simplefilter("ignore")
from bdsim.bin.bdrun import bdrun
for name in sys.argv[1:]:
    sys.argv = ["bdrun", name, "--no-graphics", "--simtime", "2"]
    bdrun()
"""


@pytest.mark.slow
def test_bdrun_runs_the_files(tmp_path):
    """As bdsim's own tool does it, from a tree such as an installation has: the blocks inside the package."""
    package = tmp_path / "cstormpy"
    package.mkdir()
    for part in (*Path(cs.__file__).parent.iterdir(), Path(cs.blocks.__file__).parent, Path(diagrams.__file__).parent):
        if part.name != "__pycache__" and not (package / part.name).exists():
            (package / part.name).symlink_to(part, target_is_directory=part.is_dir())
    environment = {**os.environ, "PYTHONPATH": str(tmp_path), "BDSIMPATH": "cstormpy", "BDSIM_NO_GRAPHICS": "1"}
    files = [bd_files.path(name) for name in FILES]
    done = subprocess.run(
        [sys.executable, "-c", RUN_ALL, *files],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert done.stdout.count("bdrun exiting") == len(FILES)
    assert "check BDSIMPATH" not in done.stdout


def test_a_ready_diagram_runs_on_a_plain_bdsim_that_has_our_blocks(sim):
    """Nothing in the diagrams needs our runner."""
    bd = diagrams.load("two_link_arm").build(sim)
    bd.compile()
    out = BDSim.run(sim, bd, T=1.0)
    ours = run(sim, "two_link_arm", 1.0)
    assert np.abs(out.x[-1] - ours.x[-1]).max() < 1e-2


def test_a_motion_of_other_joints_is_refused(sim):
    with pytest.raises(ShapeError, match=r"expected 1 joints \(elbow\), got 2"):
        diagrams.load("acrobot_elbow").build(sim, motion=[[0.0, 1.0]] * 6)
