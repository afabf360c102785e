"""Jacobians as signals, and the variation of a run: against differences of runs with the same fixed steps."""

import bdsim
import numpy as np
import pytest

from cstormpy import library
from cstormpy.blocks.dynamics import HybridDynamics
from cstormpy.blocks.sensitivities import Sensitivity, Variation
from cstormpy.errors import InvalidType, InvalidValue, NonFinite, ShapeError, UnknownName

ACROBOT = library.acrobot()
GIVEN = library.acrobot().with_drive(active=["elbow"])
BOTH = library.planar_2r().with_drive(active=["shoulder"])
START = np.array([-1.0, 0.4, 0.3, -0.2])


def run(rate, x, T=2.0, steps=400):
    """Integrate by the classical Runge-Kutta method with fixed steps."""
    h = T / steps
    for k in range(steps):
        t = k * h
        a = rate(t, x)
        b = rate(t + h / 2, x + h / 2 * a)
        c = rate(t + h / 2, x + h / 2 * b)
        d = rate(t + h, x + h * c)
        x = x + h / 6 * (a + 2 * b + 2 * c + d)
    return x


def differences(function, x, h=1e-6):
    """Return the Jacobian of a function by central differences."""
    columns = [(function(x + h * e) - function(x - h * e)) / (2 * h) for e in np.eye(len(x))]
    return np.array(columns).T


@pytest.mark.parametrize("mech", [ACROBOT, GIVEN, BOTH, library.pendulum(2).with_drive(actuated=())])
def test_the_jacobians_are_the_mechanism_s(mech):
    q, qd, u = np.random.default_rng(2).normal(size=(3, mech.n))
    u[~mech.actuated_mask] = 0.0
    signals = [u[where] for where in (mech.actuated_mask & ~mech.active_mask, mech.active_mask) if where.any()]
    found = Sensitivity(mech).test_output(q, qd, *signals)
    expected = mech.hybrid_sensitivity(q, qd, u)
    for matrix, name in zip(found, ("dy_dq", "dy_dqd", "dy_du"), strict=True):
        np.testing.assert_allclose(matrix, getattr(expected, name), atol=1e-12)


def test_jacobians_under_a_wrench():
    q, qd, wrench = np.array([0.3, 0.4]), np.array([0.5, 0.6]), np.arange(12.0).reshape(2, 6)
    found = Sensitivity(ACROBOT, wrench=True).test_output(q, qd, 2.0, wrench)
    expected = ACROBOT.hybrid_sensitivity(q, qd, np.array([0.0, 2.0]), wrench=wrench)
    np.testing.assert_array_equal(found[0], expected.dy_dq)
    without = Sensitivity(ACROBOT).test_output(q, qd, 2.0)
    assert np.abs(found[0] - without[0]).max() > 1e-2


def drive_signals(mech, t, p):
    """Return signals at the drive ports that depend on two parameters, and their derivative to these."""
    k = int(mech.actuated_mask.sum())
    phases = np.arange(k)
    signal = p[0] * np.sin(2 * t + phases) + p[1] * np.cos(t)
    by_p = np.stack([np.sin(2 * t + phases), np.full(k, np.cos(t))], axis=1)
    sizes = [int((mech.actuated_mask & ~mech.active_mask).sum()), int(mech.active_mask.sum())]
    return [part for part in np.split(signal, [sizes[0]]) if part.size], by_p


@pytest.mark.slow
@pytest.mark.parametrize("mech", [ACROBOT, GIVEN, BOTH, library.branched_acrobot()])
def test_an_open_loop_to_its_start_and_to_parameters(mech):
    """2 s, as differences of the same fixed steps, to 1e-6."""
    plant, variation = HybridDynamics(mech), Variation(mech, parameters=2)
    n = mech.n
    start, p = 0.5 * np.resize(START, 2 * n), np.array([1.5, -0.7])

    def swing(x0, p):
        return run(lambda t, x: plant.deriv(t, drive_signals(mech, t, p)[0], x), x0)

    def both(t, z):
        x, X = z[: 2 * n], z[2 * n :]
        signals, by_p = drive_signals(mech, t, p)
        return np.concatenate(
            [plant.deriv(t, signals, x), variation.test_deriv(x[:n], x[n:], *signals, by_p, t=t, x=X)]
        )

    end = run(both, np.concatenate([start, variation.getstate0()]))
    np.testing.assert_array_equal(end[: 2 * n], swing(start, p))
    by_start, by_p = variation.test_output(*[None] * variation.nin, x=end[2 * n :])
    expected = differences(lambda x: swing(x, p), start)
    assert np.abs(expected).max() > 1.0
    np.testing.assert_allclose(by_start, expected, atol=1e-6 * max(1.0, np.abs(expected).max()))
    np.testing.assert_allclose(by_p, differences(lambda p: swing(start, p), p), atol=1e-6 * np.abs(expected).max())


def test_a_closed_loop_to_its_start_and_to_a_gain():
    """The law u = -k1 (K x), differentiated by its gain k1 as well."""
    plant, variation = HybridDynamics(ACROBOT), Variation(ACROBOT, parameters=1, feedback=True)
    K, gain = np.array([[2.0, 3.0, 0.5, 0.8]]), 1.3

    def swing(x0, gain):
        return run(lambda t, x: plant.deriv(t, [-gain * K @ x], x), x0)

    def both(t, z):
        x, X = z[:4], z[4:]
        signals = (x[:2], x[2:], -gain * K @ x, -gain * K, -(K @ x).reshape(1, 1))
        return np.concatenate([plant.deriv(t, [signals[2]], x), variation.deriv(t, signals, X)])

    end = run(both, np.concatenate([START, variation.getstate0()]))
    by_start, by_gain = variation.output(2.0, [], end[4:])
    np.testing.assert_allclose(by_start, differences(lambda x: swing(x, gain), START), atol=1e-6)
    np.testing.assert_allclose(by_gain, differences(lambda g: swing(START, g[0]), np.array([gain])), atol=1e-6)
    flat = variation.deriv(0.0, (START[:2], START[2:], 0.5, -gain * K[0], 0.25), variation.getstate0())
    square = variation.deriv(0.0, (START[:2], START[2:], 0.5, -gain * K, [[0.25]]), variation.getstate0())
    np.testing.assert_array_equal(flat, square)


def test_chosen_directions_are_columns_of_the_whole():
    z = np.random.default_rng(1).normal(size=(4, 4))
    signals = (START[:2], START[2:], 0.5)
    whole = Variation(ACROBOT).deriv(0.0, signals, z.ravel()).reshape(4, 4)
    one = Variation(ACROBOT, directions=["elbow.qd"])
    np.testing.assert_array_equal(one.getstate0(), [0.0, 0.0, 0.0, 1.0])
    assert one.outwidths == ((4, 1),) and one._state_names[0] == "variation.shoulder.q/dx0[0]"
    np.testing.assert_allclose(one.deriv(0.0, signals, z[:, 3].copy()), whole[:, 3], atol=1e-14)
    free = Variation(ACROBOT, directions=np.array([1.0, 2.0, 3.0, 4.0]))
    np.testing.assert_array_equal(free.output(0.0, [], free.getstate0())[0], [[1.0], [2.0], [3.0], [4.0]])


def test_a_start_that_depends_on_parameters():
    slope = np.array([[0.0], [1.0], [0.0], [0.0]])
    block = Variation(ACROBOT, directions=[], parameters=1, dx0_dp=slope)
    by_start, by_p = block.output(0.0, [], block.getstate0())
    assert by_start.shape == (4, 0)
    np.testing.assert_array_equal(by_p, slope)


@pytest.mark.slow
def test_beside_the_plant_in_a_plain_diagram():
    """The loop is closed by GAIN blocks; the feedback port takes the same gains from a CONSTANT."""
    sim = bdsim.BDSim(sysargs=False, graphics=False, progress=False, verbose=False)
    angles, rates = np.array([-3.0, -8.0]), np.array([-0.5, -1.5])

    def final(start, with_variation=False):
        bd = sim.blockdiagram()
        plant = HybridDynamics(ACROBOT, q0=start[:2], qd0=start[2:], name="plant", bd=bd)
        torque = bd.SUM("++")
        for port, gain, k in ((plant.q, angles, 0), (plant.qd, rates, 1)):
            law = bd.GAIN(gain.reshape(2, 1))
            bd.connect(port, law)
            bd.connect(law, torque[k])
        bd.connect(torque, plant.tau)
        if with_variation:
            variation = Variation(ACROBOT, feedback=True, bd=bd)
            bd.connect(plant.q, variation.q)
            bd.connect(plant.qd, variation.qd)
            bd.connect(torque, variation.tau)
            bd.connect(bd.CONSTANT(np.concatenate([angles, rates])), variation.du_dx)
            bd.connect(variation, bd.NULL())
        bd.compile(verbose=False)
        return sim.run(bd, T=1, solver_args={"rtol": 1e-10, "atol": 1e-12}).x[-1]

    end = final(START, with_variation=True)
    by_start = end[4:].reshape(4, 4)
    np.testing.assert_allclose(by_start, differences(final, START, h=1e-4), atol=1e-5)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"parameters": -1}, InvalidValue, "parameters: expected a number from 0"),
        ({"parameters": 1.0}, InvalidType, "parameters"),
        ({"parameters": 2, "dx0_dp": np.zeros((4, 1))}, ShapeError, r"dx0_dp: expected shape \(4, 2\)"),
        ({"directions": ["elbow.v"]}, UnknownName, "'elbow.v' does not exist; there are 'elbow.q', 'elbow.qd'"),
        ({"directions": np.zeros((3, 2))}, ShapeError, r"directions: expected shape \(4, 2\)"),
        ({"directions": [1.0, 0.0, np.nan, 0.0]}, NonFinite, "directions"),
        ({"directions": []}, InvalidValue, "directions: there are none"),
        ({"directions": 1.0}, ShapeError, "directions"),
        ({"feedback": None}, InvalidType, "feedback: expected True or False"),
        ({"actuated": [], "feedback": True}, InvalidValue, "no joint is driven"),
    ],
)
def test_wrong_arguments(arguments, error, message):
    with pytest.raises(error, match=message):
        Variation("acrobot", **arguments)


def test_bad_signals_name_block_and_port():
    block = Variation(ACROBOT, feedback=True, name="variation")
    good = (START[:2], START[2:], 0.5)
    with pytest.raises(ShapeError, match=r"variation input port 3 'du_dx': expected shape \(1, 4\) or 4 numbers"):
        block.deriv(0.0, (*good, np.zeros(3)), block.getstate0())
    with pytest.raises(NonFinite, match="input port 2 'tau': the signal of 'elbow'"):
        block.deriv(0.0, (*good[:2], np.nan, np.zeros(4)), block.getstate0())
    with pytest.raises(NonFinite, match="sensitivity input port 0 'q': the signal of 'shoulder'"):
        Sensitivity(ACROBOT).test_output([np.nan, 0.0], [0.0, 0.0], 0.0)
