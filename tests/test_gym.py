"""Environments of Gymnasium: as its own checker wants them, as its own acrobot moves, and many as one."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings

import numpy as np
import pytest

import cstormpy as cs
from cstormpy.errors import CstormError, DiagramError, InvalidType, InvalidValue, UnknownName
from cstormpy.report.poses import PoseDrawing

gymnasium = pytest.importorskip("gymnasium")


def build(sim):
    bd = sim.blockdiagram()
    cart = bd.INTEGRATOR(x0=0.2, name="cart")
    speed = bd.INTEGRATOR(x0=0.0, name="speed")
    bd.connect(bd.CONSTANT(0.0, name="push"), speed)
    bd.connect(speed, cart)
    return bd


def own(**options):
    """A task on a diagram of the user's own: bring a cart to zero."""
    given = {"inputs": ["push"], "outputs": ["cart", "speed"], "low": -2.0, "high": 2.0, "dt": 0.1, "max_steps": 20}
    given["reward"] = lambda before, u, after: -(after[..., 0] ** 2) - 0.01 * u[..., 0] ** 2
    return cs.gym.make(build, **{**given, **options})


@pytest.fixture(scope="module")
def acrobot():
    return cs.gym.make("acrobot")


def test_loading_the_package_loads_no_gymnasium():
    code = "import sys, cstormpy as cs; cs.gym.names(); print('gymnasium' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "False"


@pytest.mark.parametrize("kind", ["choices", "limits"])
def test_arrays_that_change_later_are_others(kind):
    """Actions were those of the array that had been given, as it stood at each step."""
    given = np.array([[-1.0], [1.0]])
    limits = {"low": given[0], "high": given[1]}
    env = own(**({"choices": given, "low": None, "high": None} if kind == "choices" else limits))
    env.reset(seed=0)
    given *= 50.0
    after = env.step(1 if kind == "choices" else np.array([1.0], dtype=np.float32))[0]
    np.testing.assert_allclose(after[1], 0.1, atol=1e-6)  # what pushes with 1 for 0.1 s


@pytest.mark.parametrize("count", [None, 3])
@pytest.mark.parametrize("name", ["before", "after", "u"])
def test_a_reward_cannot_write_into_what_goes_on(name, count):
    """It changed the values that actions choose among, and what was before the next step, without a word."""

    def reward(before, u, after):
        given = {"before": before, "u": u, "after": after}[name]
        given *= 2.0
        return 0.0

    env = cs.gym.make("pendulum", control="discrete", reward=reward, num_envs=count)
    env.reset(seed=1)
    action = 2 if count is None else np.full(count, 2)
    if name == "u" and count:  # which are of this step alone
        env.step(action)
    else:
        with pytest.raises(ValueError, match="read-only"):
            env.step(action)


@pytest.mark.parametrize("which", ["acrobot", "pendulum", "own"])
def test_gymnasiums_own_checker_passes(which, acrobot):
    from gymnasium.utils.env_checker import check_env

    env = acrobot if which == "acrobot" else own() if which == "own" else cs.gym.make("pendulum")
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        check_env(env)
    # limits of rates are infinite, and actions are torques in N m
    known = ("infinity", "symmetric and normalized", "spec", "render")
    assert [str(w.message) for w in said if not any(word in str(w.message) for word in known)] == []


def test_pictures_show_where_the_mechanism_is():
    """`render` was not there: a policy that was learnt could not be watched, nor recorded by gymnasium's wrappers."""
    from gymnasium.utils.env_checker import check_env

    env = cs.gym.make("pendulum", render_mode="rgb_array")
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        check_env(env)
    assert not [w for w in said if "render" in str(w.message) and "spec" not in str(w.message)]
    assert env.metadata["render_fps"] == 20
    blue = {}
    for way, angle in {"right": 0.0, "up": np.pi / 2, "left": np.pi}.items():
        env.reset(options={"x": [angle, 0.0]})
        picture = env.render()
        assert picture.shape == (480, 480, 3) and picture.dtype == np.uint8
        rows, columns = np.nonzero((picture[..., 2] > 120) & (picture[..., 0] < 90))
        blue[way] = rows.mean(), columns.mean()
    (row, right), (up, middle), (other, left) = blue["right"], blue["up"], blue["left"]
    assert up < row - 50 and abs(row - other) < 2 and left + 50 < middle < right - 50
    with pytest.raises(InvalidType, match="render_mode='rgb_array'"):
        cs.gym.make("pendulum").render()


def test_a_picture_of_a_body_in_space_goes_along_with_it():
    """It was a dot from the start, and a smaller one the farther the body fell, in later episodes too."""

    def falling(sim):
        body = cs.Link("body", joint=cs.Free(), mass=1.0, inertia=(1, 1, 1), shapes=[cs.Shape("box", (0.4, 0.4, 0.1))])
        bd = sim.blockdiagram()
        bd.HYBRIDDYNAMICS(cs.Mechanism([body], actuated=[], gravity=(0, 0, -9.81)), wrench=True, name="plant")
        return bd

    env = cs.gym.make(
        falling, render_mode="rgb_array", inputs=["plant.wrench"], outputs=["plant.q"], low=-1.0, high=1.0, dt=0.5,
        reward=lambda before, u, after: 0.0,
    )  # fmt: skip
    seen = []
    for x in (np.zeros(12), np.r_[300.0, -40.0, -500.0, np.zeros(9)], np.zeros(12)):
        env.reset(options={"x": x})
        picture = env.render()
        rows, columns = np.nonzero((picture[..., 2] > 120) & (picture[..., 0] < 90))
        assert np.ptp(rows) < 200 and 30 < rows.min() and rows.max() < 450 and columns.max() < 450
        seen.append(len(rows))
    assert min(seen) > 1000 and max(seen) < 1.5 * min(seen)  # by perspective
    for _ in range(4):
        env.step(np.zeros(6))
    assert env.stepper.x[2] < -19.0 and np.any(env.render() != picture)


def test_a_body_without_a_shape_is_a_dot_in_some_room():
    """The axes were a billionth of a metre long."""
    drawing = PoseDrawing([cs.Mechanism([cs.Link("body", joint=cs.Free(), mass=1.0, inertia=(1, 1, 1))])])
    drawing.draw([np.r_[3.0, 4.0, 5.0, 0.0, 0.0, 0.0]])
    (axes,) = drawing._figure.axes
    assert all(1.0 < np.ptp(limits()) < 4.0 for limits in (axes.get_xlim, axes.get_ylim, axes.get_zlim))


def test_numbers_at_the_axes_in_space_do_not_run_together():
    from matplotlib.figure import Figure

    from cstormpy.linkage.skeleton import skeleton
    from cstormpy.report.figures import look_at

    axes = Figure(figsize=(4.8, 4.8)).add_subplot(projection="3d")
    look_at(axes, skeleton(cs.library.puma560()), np.zeros(3), 1.0)
    assert max(len(axis.get_ticklocs()) for axis in (axes.xaxis, axes.yaxis, axes.zaxis)) <= 7  # at each quarter


@pytest.mark.parametrize("gravity", [(0, 0, -9.81), (0, 0, 9.81), (0, -9.81, 0), (0, 9.81, 0), (9.81, 0, 0)])
def test_pictures_in_space_have_gravity_downwards_and_are_no_mirror_images(gravity):
    """A plane whose z points down, as of all in aeronautics, flew on its back, below the ground."""
    from matplotlib.figure import Figure
    from mpl_toolkits.mplot3d import proj3d

    from cstormpy.linkage.skeleton import skeleton
    from cstormpy.report.figures import look_at

    axes = Figure(figsize=(4.8, 4.8)).add_subplot(projection="3d")
    body = cs.Link("body", joint=cs.Free(), mass=1.0, inertia=(1, 1, 1))
    look_at(axes, skeleton(cs.Mechanism([body], gravity=gravity)), np.zeros(3), 1.0)
    points = np.column_stack([np.zeros(3), np.eye(3)])
    seen = np.array(proj3d.proj_transform(*points, axes.get_proj())) * [[1.0], [1.0], [-1.0]]
    turned = seen[:, 1:] - seen[:, :1]
    assert turned[1] @ gravity < -0.1 and np.linalg.det(turned) > 0.0


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: own(render_mode="rgb_array"), DiagramError, "has no HYBRIDDYNAMICS"),
        (lambda: cs.gym.make("pendulum", render_mode="ansi"), UnknownName, "'human', 'rgb_array'"),
        (lambda: cs.gym.make("pendulum", render_mode="rgb_array", num_envs=2), InvalidValue, "leave num_envs out"),
        (lambda: cs.gym.make("pendulum", render_mode="human"), DiagramError, "no window to draw in here"),
    ],
)
def test_what_cannot_be_drawn_is_refused(monkeypatch, make, error, message):
    monkeypatch.setenv("MPLBACKEND", "Agg")
    with pytest.raises(error, match=message):
        make()


SHOWN = """
import time, matplotlib.pyplot as plt, cstormpy as cs
env = cs.gym.make("pendulum", render_mode="human")
env.reset(seed=1)
begin = time.perf_counter()
for _ in range(10): env.step(env.action_space.sample())
print(env.render(), plt.get_fignums(), time.perf_counter() - begin > 0.4)
env.close()
print(plt.get_fignums())
"""


@pytest.mark.slow
def test_a_window_shows_each_step_at_its_pace(virtual_screen):
    pytest.importorskip("PySide6.QtCore")
    environment = {k: v for k, v in os.environ.items() if k != "QT_QPA_PLATFORM"}
    environment |= {"DISPLAY": virtual_screen, "MPLBACKEND": "QtAgg"}
    command = [sys.executable, "-c", SHOWN]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=200)
    assert done.stdout.split("\n")[:2] == ["None [1] True", "[]"], done.stderr


def test_the_acrobot_moves_as_that_of_gymnasium(acrobot):
    """The equations of Sutton and Barto's book, in gymnasium's own code: the same episode, step by step."""
    theirs = gymnasium.make("Acrobot-v1").unwrapped
    theirs.reset(seed=3)
    theta = np.array([0.05, -0.08, 0.02, 0.1])
    theirs.state = theta.copy()
    acrobot.reset(options={"x": theta - [np.pi / 2, 0, 0, 0]})
    rng = np.random.default_rng(5)
    push = 0
    for _ in range(300):
        push = int(rng.integers(3)) if rng.random() < 0.3 else 2 * int(theirs.state[3] > 0)
        wanted, cost, high, _, _ = theirs.step(push)
        found, reward, ended, _, _ = acrobot.step(push)
        np.testing.assert_allclose(found, wanted, atol=2e-5)  # theirs and ours are told in 32 bits; the motion is stiff
        assert (reward, ended) == (cost, high)
        if ended:
            break
    else:
        pytest.fail("it never came up")


def test_many_environments_are_as_many_as_one(acrobot):
    """Each row of a vector moves, is paid, ends and begins anew as an environment of its own does."""
    many = cs.gym.make("acrobot", num_envs=11, max_steps=12)
    observed, _ = many.reset(seed=1)
    assert observed.shape == (11, 6) and many.observation_space.contains(observed)
    x0, rng = many.stepper.x.copy(), np.random.default_rng(2)
    actions = rng.integers(3, size=(30, 11))
    found = [many.step(row) for row in actions[:12]]
    for k in (0, 7, 10):
        acrobot.reset(options={"x": x0[k]})
        for row, (observed, rewards, ended, _, _) in zip(actions, found, strict=False):
            wanted, reward, over, _, _ = acrobot.step(int(row[k]))
            np.testing.assert_allclose(observed[k], wanted, atol=1e-6)
            assert (rewards[k], ended[k]) == (reward, over)
    assert found[-1][3].all() and not found[-2][3].any()
    observed, rewards, ended, cut, _ = many.step(actions[12])
    assert not rewards.any() and not ended.any() and not cut.any() and (many.stepper.t == 0.0).all()
    assert (np.abs(many.stepper.x - [-np.pi / 2, 0, 0, 0]) <= 0.1).all() and not np.allclose(many.stepper.x, x0)
    again = cs.gym.make("acrobot", num_envs=11, max_steps=12)
    again.reset(seed=1)
    np.testing.assert_array_equal(again.stepper.x, x0)


def test_a_diagram_of_ones_own_is_an_environment():
    """A cart that is pushed: positions are those of constant acceleration over each step."""
    env = own(terminated=lambda after: after[..., 0] > 0.5)
    y, _ = env.reset()
    np.testing.assert_allclose(y, [0.2, 0.0], atol=1e-7)
    x, v = 0.2, 0.0
    for push in (1.0, 5.0, -1.0, 2.0):
        y, reward, ended, cut, _ = env.step(np.array([push], dtype=np.float32))
        u = min(push, 2.0)
        x, v = x + 0.1 * v + 0.005 * u, v + 0.1 * u
        np.testing.assert_allclose(y, [x, v], atol=1e-6)
        assert reward == pytest.approx(-(x**2) - 0.01 * u**2) and ended == (x > 0.5) and not cut
    discrete = own(low=None, high=None, choices=[-1.0, 1.0], start=lambda rng, count: np.zeros((count, 2)))
    assert discrete.action_space.n == 2
    discrete.reset()
    np.testing.assert_allclose(discrete.step(1)[0], [0.005, 0.1], atol=1e-7)


@pytest.mark.parametrize(
    ("make", "kind", "message"),
    [
        (lambda: cs.gym.make("acrobat"), UnknownName, "did you mean 'acrobot'"),
        (lambda: cs.gym.make("acrobot", paramters="gym"), UnknownName, "did you mean 'parameters'"),
        (lambda: cs.gym.make(build, outputs=["cart"], reward=len), InvalidType, "inputs= is missing"),
        (lambda: own(low=None), InvalidValue, "give choices="),
        (lambda: own(low=None, choices=[-1.0, 1.0]), InvalidValue, "give choices="),  # high= changed nothing
        (lambda: own(low=3.0), InvalidValue, "expected less than high, got 3 and 2"),
        (lambda: own(low=None, high=None, choices=[]), InvalidValue, "choices: expected one at least"),
        (lambda: own(low=None, high=None, choices=["left", "right"]), InvalidType, "choices: expected real numbers"),
        (lambda: own(outputs=["kart"]), UnknownName, "did you mean 'cart"),
        (lambda: own().step(np.zeros(2)), InvalidValue, "expected shape"),
        (lambda: cs.gym.make("acrobot").step(3), InvalidValue, "expected 0 to 2"),
        (lambda: cs.gym.make(3), InvalidType, "a name, a Task or a function"),
        (lambda: own().reset(options={"state": [0.0, 0.0]}), UnknownName, "reset: option 'state'"),
        (lambda: own().reset(options=[0.0, 0.0]), InvalidType, "reset: options: expected a dict"),
    ],
)
def test_what_cannot_be_an_environment_is_refused(make, kind, message):
    with pytest.raises(kind, match=message) as told:
        make()
    assert isinstance(told.value, CstormError)


@pytest.mark.parametrize(
    ("count", "given", "message"),
    [
        (3, {"reward": lambda before, u, after: -np.sum(after**2)}, "reward: expected 3 numbers, .* got 1;"),
        (3, {"reward": lambda before, u, after: -(after[0] ** 2)}, r"got 2; .* write after\[..., 0\]"),
        (2, {"reward": lambda before, u, after: -(after[0] ** 2)}, "for environment 1 among others, and .* alone"),
        (3, {"terminated": lambda after: np.linalg.norm(after) > 9.0}, "terminated: expected 3 numbers, .* got 1;"),
        (
            2,
            {"terminated": lambda after: after[0] > 0.35},
            "terminated: gives 0 for environment 1 .* and 1 for it alone",
        ),
        (None, {"reward": lambda before, u, after: None}, "reward: expected a number of each environment, got None"),
        (None, {"reward": lambda before, u, after: after}, "reward: expected one number, got 2"),
        (None, {"reward": lambda y: 1.0}, r"reward: is called as reward\(before, u, after\)"),
        (2, {"start": lambda rng: [[0.0, 0.0]]}, r"start: is called as start\(rng, count\)"),
    ],
)
def test_a_reward_of_all_together_is_refused(count, given, message):
    """Each environment was paid the sum of all, or what belongs to others, and all ended together; nothing said so."""
    with pytest.raises(CstormError, match=message):
        env = own(num_envs=count, **given)
        env.reset(options={"x": [[0.2, 0.0], [0.4, 0.1], [0.6, 0.2]][: count or 1]})
        env.step(np.ones((count or 1, 1))[slice(None) if count else 0])


def test_a_reset_takes_states_by_their_names():
    for count in (None, 2):
        env = own(num_envs=count) if count else own()
        plain, x = env.reset()[0], env.unwrapped.stepper.x
        name = env.unwrapped.stepper.states[0]
        env.reset(options={"x": {name: 0.3}})
        found = env.unwrapped.stepper.x
        assert (found[..., 0] == 0.3).all() and (found[..., 1:] == x[..., 1:]).all() and plain.shape
        with pytest.raises(CstormError, match="reset: x"):
            env.reset(options={"x": {"nobody": 0.3}})


def test_plain_numbers_and_noise_are_rewards_of_all():
    """What a task gives without looking at its outputs needs no row for each."""
    rng = np.random.default_rng(0)
    for reward in (lambda before, u, after: -1, lambda before, u, after: rng.normal(size=after.shape[:-1])):
        env = own(num_envs=2, reward=reward, terminated=lambda after: False)
        env.reset(options={"x": [[0.2, 0.0], [0.4, 0.1]]})
        _, paid, ended, _, _ = env.step(np.ones((2, 1)))
        assert paid.shape == ended.shape == (2,) and not ended.any()


def stepped(count=3, **options):
    sim = cs.Simulation(engine="compiled", live=False, progress=False)
    return sim.batch_stepper(build(sim), ["push"], ["cart", "speed"], count=count, **options)


def test_rows_are_reset_one_by_one_and_faults_name_theirs():
    """A state that is not finite leaves all where they stood, and says which row it is."""
    rows = stepped(substeps=4)
    rows.step([[1.0], [2.0], [3.0]], 0.5)
    np.testing.assert_allclose(rows.x[:, 1], [0.0, 0.0, 0.0] + 0.5 * np.array([1.0, 2.0, 3.0]))
    y = rows.reset([7.0, 8.0], where=np.array([False, True, False]))
    np.testing.assert_allclose(y[1], [7.0, 8.0])
    np.testing.assert_allclose(rows.t, [0.5, 0.0, 0.5])
    x = rows.x.copy()
    with pytest.raises(cs.BlockError, match="row 2 is not finite"):
        rows.step([[1.0], [1.0], [1e308]], 1e3)
    with pytest.raises(cs.BlockError, match=r"step: u: input 'push\[0\]' of row 2 is inf"):
        rows.step([[1.0], [1.0], [np.inf]], 0.5)
    np.testing.assert_array_equal(rows.x, x)
    with pytest.raises(CstormError, match="where"):
        rows.reset(where=[1, 2])


def test_an_ended_copy_ends_no_others():
    """It took another step from where its episode had ended, which failed there and with it all."""

    def rising(sim):
        bd = sim.blockdiagram()
        x, product = bd.INTEGRATOR(x0=0.0, name="x"), bd.PROD("**")
        bd.connect(x, product[0], product[1])
        total = bd.SUM("++")
        bd.connect(product, total[0])
        bd.connect(bd.CONSTANT(0.0, name="push"), total[1])
        bd.connect(total, x)
        return bd

    many = cs.gym.make(
        rising, num_envs=3, inputs=["push"], outputs=["x"], low=-1.0, high=1.0, dt=1.0, max_steps=20,
        reward=lambda before, u, after: 0.0 * after[..., 0], terminated=lambda y: y[..., 0] > 1e3,
    )  # fmt: skip
    many.reset(options={"x": np.array([[0.0], [80.0], [0.1]])})
    found = [many.step(np.zeros((3, 1)))[2].tolist() for _ in range(4)]
    assert found[0] == [False, True, False] and found[1] == [False, False, False]
    assert many.stepper.t.tolist() == [4.0, 2.0, 4.0]


def test_a_fault_in_an_output_alone_leaves_all_where_they_stood():
    """Times, states and inputs had moved on already, as the outputs are looked at behind the step."""
    beyond = np.eye(4)
    beyond[0, 3] = 1.0
    upper = cs.Link("upper", None, cs.Revolute((0, 0, 1)))
    lower = cs.Link("lower", "upper", cs.Revolute((0, 0, 1)), beyond, mass=1.0, com=(1.0, 0.0, 0.0))
    sim = cs.Simulation(engine="compiled", live=False, progress=False)
    bd = sim.blockdiagram()
    elbow, q = bd.INTEGRATOR(x0=1.0, name="elbow"), bd.MUX(2)
    effort = bd.JOINTEFFORT(cs.Mechanism([upper, lower]), name="effort")  # whose mass matrix is singular when stretched
    double = bd.GAIN(2.0, name="double")
    bd.connect(bd.CONSTANT(0.0, name="rate"), elbow, double)
    bd.connect(bd.CONSTANT(0.0), q[0])
    bd.connect(elbow, q[1])
    bd.connect(q, effort.q)
    bd.connect(bd.CONSTANT([0.0, 0.0]), effort.qd)
    bd.connect(bd.CONSTANT([0.0, 1.0]), effort.tau)
    rows = sim.batch_stepper(bd, ["rate"], ["effort.qdd", "double"], count=2, solver="Euler")
    assert repr(rows).startswith("<batch stepper, 2 copies: u = rate[0]; y = effort.qdd[0], ")  # it was an address
    before = rows.step([[-0.5], [0.5]], 1.0)
    with pytest.raises(cs.BlockError, match="row 0"):
        rows.step([[-0.25], [0.5]], 2.0)
    np.testing.assert_array_equal(rows.x, [[0.5], [1.5]])
    np.testing.assert_array_equal(rows.t, 1.0)
    np.testing.assert_array_equal(rows.look(), before)
    np.testing.assert_array_equal(rows.step([[0.25], [0.5]], 2.0)[:, 2], [0.5, 1.0])


def test_what_has_no_code_for_rows_is_named():
    sim = cs.Simulation(engine="compiled", live=False, progress=False)
    bd = build(sim)
    bd.connect(bd.TIME(), odd := bd.FUNCTION(lambda t: float(hash(str(t)) % 7), name="odd"))
    bd.connect(odd, bd.NULL())
    with pytest.raises(DiagramError, match=r"block 'odd'.*traced"):
        sim.batch_stepper(bd, ["push"], ["cart"], count=4)


@pytest.mark.parametrize("count", [1, 3, 9])
def test_lanes_without_a_copy_do_not_end_the_others(count):
    """They went on from the start without the inputs that hold the others, until a mechanism ran away in them."""
    sim = cs.Simulation(live=False, progress=False)
    bd = sim.blockdiagram()
    plant, total = bd.HYBRIDDYNAMICS("pendulum", q0=[0.1], name="plant"), bd.SUM("++")
    drive = bd.GAIN(200.0)
    bd.connect(plant.qd, drive)
    bd.connect(bd.CONSTANT(0.0, name="push"), total[0])
    bd.connect(drive, total[1])
    bd.connect(total, plant.tau)
    batch = sim.batch_stepper(bd, ["push"], ["plant.qd"], count=count)
    rates, times, states = batch.look(), [], []
    for _ in range(1000):
        rates = batch.step(-210.0 * rates, 0.001)
        times.append(batch.t)
        states.append(batch.x)
    assert np.abs(rates).max() < 1.0
    np.testing.assert_allclose(np.array(times)[:, 0], 0.001 * np.arange(1, 1001), atol=1e-12)
    assert len({x.tobytes() for x in states}) == 1000  # each is an array of its own


def sampled(sim):
    """Return a pendulum that a sampled controller leads to where the actions want it, measured with noise."""
    bd = sim.blockdiagram()
    aside = bd.INTEGRATOR(name="aside")  # which no output needs
    arm, clock = bd.HYBRIDDYNAMICS("pendulum", q0=[-1.2], name="arm"), bd.clock(40, "Hz")
    pid, noise = (
        bd.DISCRETEPID(clock, n=1, P=30.0, I=9.0, D=5.0, name="pid"),
        bd.NOISE(clock, std=0.01, n=1, name="noise"),
    )
    measured = bd.SUM("++", name="measured")
    bd.connect(bd.CONSTANT([-1.0], name="wanted"), pid.reference)
    bd.connect(arm.q, measured[0])
    bd.connect(noise, measured[1])
    bd.connect(measured, pid.measured)
    bd.connect(pid, arm.tau, aside)
    return bd


def with_clocks(**options):
    given = {"inputs": ["wanted"], "outputs": ["arm.q", "noise"], "low": -1.5, "high": 1.0, "dt": 0.05, "substeps": 4}
    given["reward"] = lambda before, u, after: -(after[..., 0] ** 2)
    return cs.gym.make(sampled, **{**given, **options})


def test_a_sampled_controller_is_part_of_an_environment():
    """It was refused. One and many move as a run from the same samples; the part that is stepped is what is drawn."""
    env, many = with_clocks(render_mode="rgb_array"), with_clocks(num_envs=3, max_steps=8)
    first = env.reset(seed=4)[0]
    start, sim = env.stepper.state, cs.Simulation(live=False, progress=False)
    for _ in range(12):
        y = env.step(np.array([-1.0], dtype=np.float32))[0]
    out = sim.run(sampled(sim), T=0.6, start=start, solver="RK4", dt=0.0125)
    np.testing.assert_allclose(env.stepper.x, out.x[-1][1:], rtol=0, atol=1e-12)
    assert not np.array_equal(first, env.reset()[0])  # another episode has other noise
    assert np.array_equal(first, env.reset(seed=4)[0])
    shown = env.render()
    env.stepper.reset([0.4, 0.0])
    assert not np.array_equal(shown, env.render())
    env.stepper.reset([0.4, 9.0])
    turned = env.render()
    env.stepper.reset([0.4, 0.0])
    np.testing.assert_array_equal(turned, env.render())  # it is drawn where it is, not by its rate
    y = many.reset(seed=1)[0]
    assert len(np.unique(y[:, 1])) == 3
    rows, states = [many.stepper.state_of(k) for k in range(3)], []
    for _ in range(9):
        states.append(many.stepper.x)
        y = many.step(np.full((3, 1), -1.0, dtype=np.float32))[0]
    for row, start in enumerate(rows):
        out = sim.run(sampled(sim), T=0.4, start=start, solver="RK4", dt=0.0125)
        np.testing.assert_allclose(states[-1][row], out.x[-1][1:], rtol=0, atol=1e-12)
    np.testing.assert_array_equal(many.stepper.t, 0.0)  # all have begun anew, with other noise
    assert len(np.unique([*y[:, 1], *(row.sampled["noise"][1] * 0.01 for row in rows)])) == 6


def test_episodes_begin_at_sampled_states_that_a_task_says():
    def said(rng, count):
        return {"noise": np.column_stack([np.zeros(count), rng.normal(size=count)])}

    env, many = with_clocks(sampled=said), with_clocks(sampled=said, num_envs=2)
    assert env.reset(seed=3)[0][1] == pytest.approx(0.01 * np.random.default_rng(3).normal(), rel=1e-6)
    assert np.ptp(many.reset(seed=3)[0][:, 1]) > 0.0
    for wrong, kind, message in (
        ({"nois": [0.0, 1.0]}, UnknownName, "did you mean 'noise'"),
        ({"noise": [0.0]}, CstormError, r"sampled\['noise'\]: expected shape"),
        ([1.0], InvalidType, "expected a dict"),
    ):
        with pytest.raises(kind, match=message):
            env.stepper.reset(sampled=wrong)
    with pytest.raises(InvalidType, match="Task: sampled: expected a dict"):
        with_clocks(sampled=lambda rng, count: [1.0]).reset()


def lander(sim):
    """A lander whose thrust slows its fall; it stops where it comes to the ground, and counts as landed if slow."""
    bd = sim.blockdiagram("lander")
    rate, v, h = bd.SUM("++", name="rate"), bd.INTEGRATOR(name="v"), bd.INTEGRATOR(x0=1.0, name="h")
    bd.connect(bd.CONSTANT(0.0, name="thrust"), rate[0])
    bd.connect(bd.CONSTANT(-9.81), rate[1])
    bd.connect(rate, v)
    bd.connect(v, h)
    down = bd.COMPARE("<=", 0.0, name="down")
    bd.connect(h, down)
    bd.connect(down, bd.STOP(name="stop"))
    return bd


def test_events_come_about_in_an_environment_and_a_stop_ends_an_episode():
    """Diagrams with events were refused."""
    given = {"inputs": ["thrust"], "outputs": ["h", "v"], "low": 0.0, "high": 20.0, "dt": 0.1}
    given["reward"] = lambda before, u, after: -np.abs(after[..., 1])
    env = cs.gym.make(lander, **given, events=True)
    for _ in range(2):
        observation, _ = env.reset(seed=1)
        np.testing.assert_allclose(observation, [1.0, 0.0])
        steps, ended = 0, False
        while not ended:
            observation, reward, ended, cut, _ = env.step([0.0])
            steps += 1
        assert steps == 5 and not cut
        np.testing.assert_allclose([observation[0], reward], [0.0, -np.sqrt(2.0 * 9.81)], atol=1e-6)
    with pytest.raises(DiagramError, match="events=True is stepped by runs, one by one; make several environments"):
        cs.gym.make(lander, **given, events=True, num_envs=2)
    with pytest.raises(DiagramError, match="give events=True"):
        cs.gym.make(lander, **given)
