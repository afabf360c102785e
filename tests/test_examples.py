"""The examples: each runs, in a short version, and shows what its text says."""

import ast
import re
import runpy
from pathlib import Path

import numpy as np
import pytest
from scipy.integrate import solve_ivp

EXAMPLES = Path(__file__).parent.parent / "examples"
FILES = sorted(file.name for file in EXAMPLES.glob("*.py"))


@pytest.fixture(autouse=True)
def _headless(monkeypatch, tmp_path):
    """Files go to a folder of the test's, figures to no screen."""
    matplotlib = pytest.importorskip("matplotlib")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BDSIM_NO_GRAPHICS", "1")
    before = matplotlib.get_backend()
    matplotlib.use("Agg")
    yield
    import matplotlib.pyplot as plt

    plt.close("all")
    matplotlib.use(before)


def example(number):
    (file,) = EXAMPLES.glob(f"{number:02d}_*.py")
    return runpy.run_path(str(file))


def test_the_examples_are_numbered_and_each_is_tested_here():
    numbers = [int(name[:2]) for name in FILES if name[0].isdigit()]
    assert numbers == list(range(1, len(numbers) + 1))
    tested = Path(__file__).read_text(encoding="utf-8")
    assert all(f"example({number})" in tested for number in numbers)
    assert [name for name in FILES if not name[0].isdigit()] == [
        "compare_formulations.py",
        "region_of_attraction.py",
        "swap_controllers.py",
    ]


@pytest.mark.parametrize("name", FILES)
def test_an_example_is_a_page_long_and_says_what_it_is_for(name):
    text = (EXAMPLES / name).read_text(encoding="utf-8")
    assert len(text.splitlines()) <= (25 if name == "swap_controllers.py" else 72)
    assert len(ast.get_docstring(ast.parse(text))) > 60
    assert '\n\nif __name__ == "__main__":\n' in text


def test_pendulum(capsys):
    period, small = example(1)["main"](T=5.0)
    # a swing of 0.1 rad takes 0.1²/16 longer
    assert period == pytest.approx(small * (1 + 0.1**2 / 16), rel=2e-4)
    assert "period" in capsys.readouterr().out


def test_acrobot(capsys, tmp_path):
    out = example(2)["main"](T=5.0)
    said = capsys.readouterr().out
    assert "acrobot_elbow" in said and "swing up, then balance" in said
    assert out.status == "finished" and len(out.events) >= 1
    assert (tmp_path / "acrobot.png").stat().st_size > 10_000


def test_swap_while_running(capsys):
    out = example(3)["main"](T=10.5)
    said = capsys.readouterr().out
    assert "2 s: energy" in said and "10 s: pd" in said
    tau = out.signal("controller.tau")[:, 0]
    at = np.searchsorted(out.t, [2.0, 10.0])
    after = np.searchsorted(out.t, [2.0, 10.0], side="right") - 1
    assert np.abs(tau[after] - tau[at]).max() < 1e-9


def test_prescribed_elbow(capsys):
    found, again = example(4)["main"]()
    assert np.abs(again.x[-1] - found.x[-1]).max() < 1e-3
    assert np.ptp(found.x[:, 0]) > 0.5
    assert "0 N m" in capsys.readouterr().out


def test_computed_torque():
    worst = example(5)["main"](T=2.5)
    assert worst[1.25] < 1e-4 < 0.05 < worst[1.5] < worst[2.5]


@pytest.mark.slow
def test_seven_joint_arm(capsys, tmp_path):
    comparison = example(6)["main"](T=4.0)
    assert [row["settled"] for row in comparison.rows] == [True, True, False]
    assert str(comparison) in capsys.readouterr().out
    assert (tmp_path / "seven_joint_arm.png").stat().st_size > 10_000


@pytest.mark.slow
def test_identify(capsys, tmp_path):
    found, (before, after) = example(12)["main"](samples=400)
    assert before > 5.0 and after < 0.5
    assert found.rank == len(found.base) == 50
    assert "without effect on any torque: link1.m" in capsys.readouterr().out
    assert (tmp_path / "identify.png").stat().st_size > 10_000


@pytest.mark.slow
def test_identify_acrobot(tmp_path):
    found = example(13)["main"](T=3.0)
    assert found.success and found.undetermined == ()
    assert (np.abs(found.values - [1.0, 1.0, -0.1, 0.1, 0.1]) < 3.5 * found.standard_errors).all()
    assert found.standard_errors.max() < 0.05
    assert (tmp_path / "identify_acrobot.png").stat().st_size > 10_000


def test_sensitivity():
    predicted, found = example(7)["main"](T=1.0)
    assert np.abs(predicted - found).max() < 0.02 * np.abs(found).max()


def test_save_and_play_back(tmp_path):
    first, out, longer = example(8)["main"](T=2.0)
    assert (tmp_path / "swing.csv").read_text().startswith("t [s],plant.q[0] [rad]")
    assert longer.t[0] == first.t[-1] == 2.0 and longer.t[-1] == 4.0
    np.testing.assert_array_equal(longer.x[0], first.x[-1])
    assert 0.05 < np.abs(out.signal("difference[0]")).max() < 1.0


def test_your_own(capsys):
    out, goal = example(9)["main"](T=6.0)
    energy = out.signal("energy.total")
    assert energy[0] < -20.0 and abs(energy[-1] - goal) < 2.0
    assert np.abs(out.signal("motor[0]")).max() <= 4.0


def test_compiled_diagram(capsys):
    runs = example(10)["main"](T=5.0)
    np.testing.assert_allclose(runs["compiled"].x[-1], runs["interpreted"].x[-1], rtol=1e-7)
    printed = capsys.readouterr().out
    assert "def rate(t, x, z, p, n, w, out, xd):" in printed and "'spring' output 0" in printed


@pytest.mark.slow
def test_tune(capsys, tmp_path):
    tuned = example(11)["main"](T=1.0, dt=0.02)
    assert tuned.success and tuned.cost < 0.5 * tuned.cost_before
    assert "damping" in capsys.readouterr().out and (tmp_path / "tuned.png").stat().st_size > 10_000


@pytest.mark.slow
def test_design(capsys, tmp_path):
    shipped, designed = example(14)["main"](points=10, steps=56, starts=2)
    assert shipped.feasible and designed.feasible and designed.cost < 0.8 * shipped.cost
    assert 0.5 < designed.parameters["leg"] < 3.0
    assert "instead of" in capsys.readouterr().out and (tmp_path / "design.png").stat().st_size > 10_000


@pytest.mark.slow
def test_redundant_five_bar(capsys, tmp_path):
    found, shared = example(15)["main"](points=8, samples=40)
    assert found.feasible
    torque, force = (np.linalg.norm(shared[way], axis=1) for way in ("torque", "force"))
    in_pin = [np.linalg.norm(shared[way].multipliers, axis=1) for way in ("torque", "force")]
    assert (torque <= force + 1e-9).all() and (torque < 0.9 * force).any()
    assert (in_pin[1] <= in_pin[0] + 1e-9).all() and (in_pin[1] < 0.5 * in_pin[0]).any()
    assert "least force in the pin: at most" in capsys.readouterr().out
    assert (tmp_path / "redundant_five_bar.png").stat().st_size > 10_000


@pytest.mark.slow
def test_exciting_motion(capsys, tmp_path):
    found, predicted, seen = example(16)["main"](trials=40, points=9)
    assert found.solution.feasible and predicted > 1.3
    assert seen == pytest.approx(predicted, rel=0.25)  # three standard deviations of 40 logs
    assert "as predicted" in capsys.readouterr().out and (tmp_path / "exciting_motion.png").stat().st_size > 10_000


@pytest.mark.slow
def test_swap_controllers(capsys, tmp_path):
    runpy.run_path(str(EXAMPLES / "swap_controllers.py"), run_name="__main__")
    printed = capsys.readouterr().out.strip().splitlines()
    readme = (EXAMPLES.parent / "README.md").read_text(encoding="utf-8")
    shown = re.search(r"^<!-- table: .*-->\n```text\n(.*?)^```$", readme, flags=re.MULTILINE | re.DOTALL)[
        1
    ].splitlines()
    assert printed[0] == shown[0] and len(printed) == len(shown) == 6
    for ours, told in zip(printed[1:], shown[1:], strict=True):
        (law, settled, when, *_), (law2, settled2, when2, *_) = ours.split(), told.split()
        assert (law, settled) == (law2, settled2)
        if law in ("energy", "noncollocated", "spline"):  # pfl depends on the last digit
            assert float(when) == pytest.approx(float(when2), abs=0.02)
    assert (tmp_path / "swap_controllers.png").stat().st_size > 10_000


def compass_step(first, masses=(5.0, 10.0, 5.0), g=9.81):
    """Return the absolute angles of both legs and their rates after a step, and how long it takes.

    By Lagrange's equations of three point masses, and angular momentum about the foot that comes down and the hip.
    """
    leg, hip, slope = masses[0], masses[1], np.tan(np.radians(3.0))

    def rates(t, x):
        c, s = 0.5 * leg * np.cos(x[0] - x[1]), 0.5 * leg * np.sin(x[0] - x[1])
        M = [[1.25 * leg + hip, c], [c, 0.25 * leg]]
        forces = [(1.5 * leg + hip) * g * np.cos(x[0]) + s * x[3] ** 2, 0.5 * leg * g * np.cos(x[1]) - s * x[2] ** 2]
        return [x[2], x[3], *-np.linalg.solve(M, forces)]

    def height(t, x):
        along = np.cos(x[0]) + np.cos(x[1])
        return np.sin(x[0]) + np.sin(x[1]) + slope * along if along > 0.1 else 1.0

    height.terminal, height.direction = True, -1.0
    run = solve_ivp(rates, (0.0, 2.0), first, "DOP853", events=height, rtol=1e-12, atol=1e-13)
    x = run.y_events[0][0]

    stood, came = np.exp(1j * x[:2])  # where the legs point, as complex numbers
    places = np.array([0.5 * stood, stood, stood + 0.5 * came])

    def momenta(speeds):
        """Return the angular momenta of all about the foot that comes down, and of the leg that stood about the hip."""
        turns = np.array(masses) * (np.conj(places - stood - came) * speeds).imag
        return np.array([turns.sum(), masses[0] * (np.conj(places[0] - stood) * speeds[0]).imag])

    by_stood = np.array([0.5 * stood, stood, stood]) * 1j
    by_came = np.array([0.0, 0.0, 0.5 * came]) * 1j
    behind = [np.array([-0.5 * stood, 0.0, 0.0]) * 1j, np.array([-came, -came, -0.5 * came]) * 1j]
    before = momenta(x[2] * by_stood + x[3] * by_came)
    after = np.linalg.solve(np.column_stack([momenta(each) for each in behind]), before)
    return np.array([x[1] - np.pi, x[0] + np.pi, after[1], after[0]]), float(run.t_events[0][0])


def test_compass_gait():
    """The step is that of other equations, and what it falls is lost where a foot comes down."""
    walker = example(17)
    orbit, mech = walker["main"](T=0.8), walker["legs"]()
    assert orbit.stable
    x = orbit.out.x
    (down,) = np.flatnonzero(np.abs(np.diff(x[:, 0])) > 0.2)
    lost = mech.energy(x[down, :2], x[down, 2:])[0] - mech.energy(x[down + 1, :2], x[down + 1, 2:])[0]
    assert lost == pytest.approx(20.0 * 9.81 * -walker["foot"](x[down])[1], rel=1e-8)
    first = np.array([x[down + 1, 0], x[down + 1, :2].sum(), x[down + 1, 2], x[down + 1, 2:].sum()])
    again, period = compass_step(first)
    assert period == pytest.approx(orbit.period, abs=1e-6)
    np.testing.assert_allclose(np.exp(1j * again[:2]), np.exp(1j * first[:2]), atol=1e-6)
    np.testing.assert_allclose(again[2:], first[2:], atol=1e-6)


def test_region_of_attraction(capsys, tmp_path):
    found = runpy.run_path(str(EXAMPLES / "region_of_attraction.py"))["main"](points=5, T=3.0)
    caught = found["caught"]
    # upright is among them, its mirror image too: the acrobot knows no left and right
    assert caught[2, 2] == 1.0 and 0.1 < caught.mean() < 0.5
    np.testing.assert_array_equal(caught, caught[::-1, ::-1])
    assert "25 starts" in capsys.readouterr().out
    assert (tmp_path / "region_of_attraction.png").stat().st_size > 10_000


@pytest.mark.slow
def test_compare_formulations(capsys, tmp_path):
    found = runpy.run_path(str(EXAMPLES / "compare_formulations.py"))["main"](last=6)
    assert max(row.error for row in found.rows if row.error is not None) < 1e-12
    printed = capsys.readouterr().out
    assert re.search(r"4x4 recursion over Luh's .* 5 +4\.36 ", printed)
    assert (tmp_path / "formulations.png").stat().st_size > 10_000
