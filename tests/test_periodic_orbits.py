"""Periodic orbits of diagrams against closed forms, Liouville's formula and integrations by SciPy."""

import math

import numpy as np
import pytest
from scipy.integrate import quad, solve_ivp
from scipy.linalg import expm

import cstormpy as cs
from cstormpy.errors import CstormError, DiagramError, InvalidType, InvalidValue, NonFinite, UnknownName

#: The period of van der Pol's oscillator with μ = 1.
VAN_DER_POL = 6.663286859323130


def simulation(engine="compiled"):
    return cs.Simulation(engine=engine, live=False, progress=False)


def oscillator(sim, force):
    """Return ẍ = f(x, ẋ)."""
    bd = sim.blockdiagram()
    x, v = bd.INTEGRATOR(1.0, name="x"), bd.INTEGRATOR(0.0, name="v")
    rate = bd.FUNCTION(force, nin=2, name="force")
    bd.connect(x, rate[0])
    bd.connect(v, rate[1], x)
    bd.connect(rate, v)
    return bd


def driven(sim, k=4.0, c=0.3, period=2.0):
    """Return ẍ = sin ωt − c ẋ − k x."""
    bd = sim.blockdiagram()
    x, v = bd.INTEGRATOR(0.0, name="x"), bd.INTEGRATOR(0.0, name="v")
    spring, damper, total = bd.GAIN(k, name="spring"), bd.GAIN(c, name="damper"), bd.SUM("+--", name="total")
    bd.connect(bd.WAVEFORM("sine", freq=1.0 / period, name="push"), total[0])
    bd.connect(x, spring)
    bd.connect(spring, total[1])
    bd.connect(v, damper, x)
    bd.connect(damper, total[2])
    bd.connect(total, v)
    return bd


def relaxing(sim, initially=0.0):
    """Return a lag that a relay with hysteresis drives to and fro."""
    bd = sim.blockdiagram()
    x, relay, error = bd.INTEGRATOR(initially, name="x"), bd.RELAY(0.3, -0.3, -1.0, 1.0, name="relay"), bd.SUM("+-")
    bd.connect(x, relay, error[1])
    bd.connect(relay, error[0])
    bd.connect(error, x)
    return bd


def pendulum(sim, damping=0.0, q0=0.0, qd0=0.0, torque=None):
    bd = sim.blockdiagram()
    mech = cs.library.pendulum(1, damping=damping)
    plant = bd.HYBRIDDYNAMICS(mech if torque else mech.with_drive(actuated=[]), q0=[q0], qd0=[qd0], name="plant")
    if torque:
        bd.connect(bd.CONSTANT([torque], name="torque"), plant.tau)
    return bd, mech


@pytest.mark.parametrize("engine", ["compiled", "interpreted"])
def test_a_limit_cycle_is_found_with_its_period(engine):
    sim = simulation(engine)
    orbit = sim.periodic_orbit(oscillator(sim, lambda x, v: (1.0 - x**2) * v - x), settle=20.0)
    assert orbit.success and orbit.stable and not orbit.forced
    assert orbit.period == pytest.approx(VAN_DER_POL, abs=1e-9)
    # Liouville: the product of the multipliers, one of which is 1, is exp ∫ (1 - x²) dt

    def rates(t, y):
        return [y[1], (1.0 - y[0] ** 2) * y[1] - y[0], 1.0 - y[0] ** 2]

    area = solve_ivp(rates, (0.0, orbit.period), [*orbit.x, 0.0], rtol=1e-11, atol=1e-13).y[2, -1]
    np.testing.assert_allclose(orbit.multipliers, [math.exp(area)], rtol=1e-6)


def test_an_orbit_that_no_run_comes_to_is_found_too():
    sim = simulation()
    orbit = sim.periodic_orbit(oscillator(sim, lambda x, v: (x**2 - 1.0) * v - x), 6.0, start=[2.0, 0.0])
    assert orbit.success and not orbit.stable
    assert orbit.period == pytest.approx(VAN_DER_POL, abs=1e-8)
    stable = sim.periodic_orbit(oscillator(sim, lambda x, v: (1.0 - x**2) * v - x), 6.0)
    np.testing.assert_allclose(orbit.multipliers * stable.multipliers, 1.0, rtol=1e-6)
    assert "unstable: period 6.663" in repr(orbit)
    wild = sim.periodic_orbit(oscillator(sim, lambda x, v: (x**2 - 1.0) * 1.5 * v - x), 7.0, start=[2.0, 0.0])
    calm = sim.periodic_orbit(oscillator(sim, lambda x, v: (1.0 - x**2) * 1.5 * v - x), 7.0, start=[2.0, 0.0])
    assert wild.success and wild.multipliers[0].real > 1e5
    assert wild.period == pytest.approx(calm.period, abs=1e-8)


def test_a_guess_of_several_rounds_leads_to_one():
    sim = simulation()
    bd = oscillator(sim, lambda x, v: (1.0 - x**2) * v - x)
    one, two = (sim.periodic_orbit(bd, guess, start=[2.0, 0.0]) for guess in (6.5, 13.3))
    assert two.success and two.period == pytest.approx(VAN_DER_POL, abs=1e-9)
    np.testing.assert_allclose(two.multipliers, one.multipliers, rtol=1e-6)
    relay = sim.periodic_orbit(relaxing(sim), 4.0 * math.log(1.3 / 0.7))
    assert relay.success and relay.period == pytest.approx(2.0 * math.log(1.3 / 0.7), abs=1e-9)


def test_what_may_be_missing_goes_with_the_tolerance_of_the_runs():
    sim = simulation()
    bd = oscillator(sim, lambda x, v: (1.0 - x**2) * v - x)
    coarse = sim.periodic_orbit(bd, 6.0, start=[2.0, 0.0], solver="RK45", rtol=1e-5, atol=1e-8)
    assert coarse.success and coarse.period == pytest.approx(VAN_DER_POL, abs=1e-3)


def test_a_state_that_hardly_moves_need_not_come_back_by_its_roundings():
    """A pendulum on a ball swings in a plane; what it does across is rounding."""
    sim = simulation()
    bob = cs.Link("bob", None, cs.Spherical(), np.eye(4), 1.0, [0.0, -0.5, 0.0], [0.01, 0.01, 0.01])
    bd = sim.blockdiagram()
    bd.HYBRIDDYNAMICS(cs.Mechanism([bob], actuated=[]), q0=[0.6, 0.0, 0.0], name="ball")
    orbit = sim.periodic_orbit(bd, 1.5)
    flat = sim.blockdiagram()
    hinge = cs.Link("bob", None, cs.Revolute([1, 0, 0]), np.eye(4), 1.0, [0.0, -0.5, 0.0], [0.01, 0.01, 0.01])
    flat.HYBRIDDYNAMICS(cs.Mechanism([hinge], actuated=[]), q0=[0.6], name="hinge")
    assert orbit.success and orbit.period == pytest.approx(sim.periodic_orbit(flat, 1.5).period, abs=1e-7)


def test_a_driven_oscillator_answers_as_its_response_says():
    sim = simulation()
    orbit = sim.periodic_orbit(driven(sim), 2.0)
    A = np.array([[0.0, 1.0], [-4.0, -0.3]])
    response = np.linalg.solve(1j * math.pi * np.eye(2) - A, [0.0, 1.0])
    np.testing.assert_allclose(orbit.x, response.imag, atol=1e-9)
    np.testing.assert_allclose(np.sort_complex(orbit.multipliers), np.sort_complex(np.linalg.eigvals(expm(2.0 * A))))
    assert orbit.forced and orbit.stable and orbit.period == 2.0
    again = sim.run(driven(sim), T=2.0, start=orbit.x, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(again.x[-1], orbit.x, atol=1e-8)


@pytest.mark.parametrize("engine", ["compiled", "interpreted"])
def test_events_on_the_way_are_passed(engine):
    sim = simulation(engine)
    orbit = sim.periodic_orbit(relaxing(sim), settle=10.0)
    assert orbit.success and orbit.stable
    assert orbit.period == pytest.approx(2.0 * math.log(1.3 / 0.7), abs=1e-9)
    assert np.abs(orbit.out.x).max() == pytest.approx(0.3, abs=1e-9)
    on = sim.run(relaxing(sim), T=orbit.period, start=orbit.out)
    assert on.x[-1, 0] == pytest.approx(orbit.x[0], abs=1e-6)


def test_half_a_round_that_ends_where_it_begins_in_another_mode_is_none():
    """The lag passes zero twice in a round, up and down: half a round later it is there, and again in the next half."""
    sim = simulation()
    half = sim.periodic_orbit(relaxing(sim), math.log(1.3 / 0.7))
    assert not half.success and "a block has changed its mode" in half.message


def test_orbits_that_lie_side_by_side_are_told_as_such():
    """The swing of a pendulum takes T = ∮ dq / q̇, by its energy alone; the nearest swing to the guess is found."""
    sim = simulation()
    bd, mech = pendulum(sim, q0=1.0 - math.pi / 2)
    orbit = sim.periodic_orbit(bd, 1.8)
    assert orbit.success and not orbit.stable
    np.testing.assert_allclose(orbit.multipliers, [1.0], atol=1e-3)
    assert "neutrally stable" in repr(orbit)
    energy = sum(mech.energy(orbit.x[:1], orbit.x[1:]))
    inertia, depth = mech.mass_matrix([0.0])[0, 0], -mech.energy([-math.pi / 2], [0.0])[1]
    turn = math.acos(-energy / depth)

    def slowness(p):  # q = turn sin p takes the root out of the integral's ends
        height = 2.0 / inertia * depth * (math.cos(turn * math.sin(p)) - math.cos(turn))
        return turn * math.cos(p) / math.sqrt(height)

    assert orbit.period == pytest.approx(4.0 * quad(slowness, 0.0, math.pi / 2 - 1e-9)[0], rel=1e-6)


def test_a_joint_that_turns_gains_a_turn_in_each_round():
    sim = simulation()
    bd, mech = pendulum(sim, damping=0.5, qd0=10.0, torque=7.0)
    orbit = sim.periodic_orbit(bd, settle=5.0, advance={"plant.joint1.q": 2.0 * math.pi})
    assert orbit.stable and np.ptp(orbit.out.x[:, 0]) == pytest.approx(2.0 * math.pi)
    # Liouville: the trace of the rates' derivative is -c / I
    decay = math.exp(-0.5 * orbit.period / mech.mass_matrix([0.0])[0, 0])
    np.testing.assert_allclose(orbit.multipliers, [decay], rtol=1e-7)
    turned = sim.periodic_orbit(bd, 0.45, start=[0.0, 13.0], advance={"plant": [2.0 * math.pi, 0.0]})
    assert turned.period == pytest.approx(orbit.period, abs=1e-8)


class Pump:
    """Bring the energy of a mechanism to a wanted one: on the orbit of that energy the torque is nothing."""

    def __init__(self, mech):
        self.mech, self.gain, self.wanted = mech, 0.4, -2.0

    def torque(self, t, q, qd):
        kinetic, potential = self.mech.energy(q, qd)
        return -self.gain * (kinetic + potential - self.wanted) * qd


def test_the_orbit_of_a_controlled_mechanism_is_found():
    """With Ė = −k (E − E₀) q̇² disturbances of the energy shrink by exp(−k ∮ q̇² dt) in a round."""
    sim = simulation()
    bd, mech = sim.blockdiagram(), cs.library.pendulum(1)
    plant, controller = bd.HYBRIDDYNAMICS(mech, q0=[-1.0], name="plant"), bd.CONTROLLER(mech, Pump(mech), name="law")
    bd.connect(plant[0:2], controller[0:2])
    bd.connect(controller.tau, plant.tau)
    bd.connect(controller.tau, bd.EFFORT(name="effort"))
    orbit = sim.periodic_orbit(bd, settle=10.0, watch=["law.tau"])
    assert orbit.stable and "effort.effort" not in orbit.residual and not orbit.forced
    assert sum(mech.energy(orbit.x[:1], orbit.x[1:2])) == pytest.approx(-2.0, abs=1e-9)
    assert np.abs(orbit.out.signal("law.tau")).max() < 1e-8
    squares = np.trapezoid(orbit.out.x[:, 1] ** 2, orbit.out.t)
    np.testing.assert_allclose(orbit.multipliers, [math.exp(-0.4 * squares)], rtol=1e-4)


class Remembering(cs.control.Law):
    """Push to and fro, in each direction by the speed at which it was turned to."""

    modes = ("up", "down")

    def __init__(self, mech):
        super().__init__(mech)
        self.speed = 0.5

    def torque(self, t, q, qd, reference=None):
        push = 0.8 + 0.1 * self.speed
        return push - 0.5 * qd if self.mode == 0 else -push - 0.5 * qd

    def margin(self, t, q, qd):
        return 0.2 - q[0] - 1.57 if self.mode == 0 else q[0] + 1.57 + 0.2

    def switch(self, t, q, qd):
        self.mode, self.speed = 1 - self.mode, abs(float(qd[0]))


def test_an_orbit_is_not_called_stable_where_a_law_remembers_numbers_of_a_round_before(caplog):
    """Its multiplier is 0.142 with the number kept; disturbances of both shrink by 0.207 in a round.

    A search of several runs told of the number in each of them, with another time.
    """
    sim = simulation()
    bd, mech = sim.blockdiagram(), cs.library.pendulum(1)
    plant, controller = bd.HYBRIDDYNAMICS(mech, q0=[-1.5], name="plant"), bd.CONTROLLER(mech, Remembering(mech))
    bd.connect(plant[0:2], controller[0:2])
    bd.connect(controller.tau, plant.tau)
    orbit = sim.periodic_orbit(bd, settle=30.0)
    assert orbit.success and not orbit.stable
    (note,) = orbit.notes
    assert orbit.plot().axes[1].get_title() == "Floquet multipliers"
    assert "speed of law" in note and note in repr(orbit) and "stable" not in repr(orbit)
    caplog.clear()
    assert sim.periodic_orbit(bd, settle=6.0).notes and caplog.text.count("speed of law") == 1


def test_time_that_multiplies_what_is_zero_is_seen():
    """A child on a swing, which pumps by time: at rest nothing moves, but the diagram depends on time."""
    sim = simulation()
    bd = sim.blockdiagram()
    x, v = bd.INTEGRATOR(0.0, name="x"), bd.INTEGRATOR(0.0, name="v")
    force = bd.FUNCTION(lambda t, x, v: -(1.0 + 0.3 * np.cos(2.0 * t)) * x - 0.1 * v, nin=3)
    bd.connect(bd.TIME(), force[0])
    bd.connect(x, force[1])
    bd.connect(v, force[2], x)
    bd.connect(force, v)
    with pytest.raises(InvalidValue, match="depends on time"):
        sim.periodic_orbit(bd, settle=5.0)


def test_a_closed_mechanism_that_turns_comes_to_a_swinging_speed():
    """With the energy E at the crank's angle θ, dE/dθ = τ − d θ̇: disturbances shrink by exp(−d ∮ dt / M) in a turn."""
    sim = simulation()
    bd, mech = sim.blockdiagram(), cs.library.four_bar()
    q0, qd0 = mech.project([0.0, 0.0, 0.0], [8.0, 0.0, 0.0])
    bars = bd.HYBRIDDYNAMICS(mech, q0=q0, qd0=qd0, name="bars")
    motor = bd.FUNCTION(lambda qd: 3.0 - 0.3 * qd[0], name="motor")
    bd.connect(bars.qd, motor)
    bd.connect(motor, bars.tau)
    orbit = sim.periodic_orbit(bd, settle=5.0, advance={"bars.crank.q": 2.0 * math.pi})
    assert orbit.stable
    np.testing.assert_allclose(orbit.out.x[-1] - orbit.out.x[0], [2 * math.pi, -2 * math.pi, 0, 0, 0, 0], atol=1e-7)
    q, qd = orbit.out.x[:, :3], orbit.out.x[:, 3:]
    inertia = 2.0 * mech.energy(q, qd)[0] / qd[:, 0] ** 2
    decay = math.exp(-0.3 * np.trapezoid(1.0 / inertia, orbit.out.t))
    np.testing.assert_allclose(orbit.multipliers, [decay], rtol=1e-3)


def test_a_walker_comes_down_on_its_other_leg():
    """The simplest walking model of Garcia, Chatterjee, Ruina and Coleman (1998); another integrator repeats a step."""
    sim, slope = simulation(), 0.009
    bd = sim.blockdiagram()
    q, qd = bd.INTEGRATOR([0.2, 0.4], name="q"), bd.INTEGRATOR([-0.2, -0.016], name="qd")

    def legs(q, qd):
        falls = np.sin(q[0] - slope)
        return np.array([falls, falls + (qd[0] ** 2 - np.cos(q[0] - slope)) * np.sin(q[1])])

    def heel_strike(block, states):
        stance, rate = states[q][0], states[qd][0]
        if stance > -0.1:  # the legs pass each other
            return
        states[q][:] = -stance, -2.0 * stance
        states[qd][:] = np.cos(2.0 * stance) * rate * np.array([1.0, 1.0 - np.cos(2.0 * stance)])

    accelerations, apart = bd.FUNCTION(legs, nin=2), bd.FUNCTION(lambda q: q[1] - 2.0 * q[0])
    bd.connect(q, accelerations[0], apart)
    bd.connect(qd, accelerations[1], q)
    bd.connect(accelerations, qd)
    bd.connect(apart, bd.EVENT("^", heel_strike, name="heel strike"))
    orbit = sim.periodic_orbit(bd, 3.9, start=sim.run(bd, T=1.0, rtol=1e-9))
    assert orbit.stable and [name for _, name in orbit.out.events] == ["heel strike"]
    behind = np.searchsorted(orbit.out.t, orbit.out.events[0][0], side="right") - 1
    np.testing.assert_allclose(orbit.out.x[behind][[0, 2]], [0.200310900544287, -0.199832473004977], atol=1e-8)

    def step(first):
        """Return the stance leg and its rate after a step, by another integrator."""
        angle, rate = first

        def rates(t, x):
            return [*x[2:], *legs(x[:2], x[2:])]

        def ground(t, x):
            return x[1] - 2.0 * x[0] if t > 2.5 else -1.0

        ground.terminal, ground.direction = True, 1.0
        begin = [angle, 2.0 * angle, rate, (1.0 - math.cos(2.0 * angle)) * rate]
        x = solve_ivp(rates, (0.0, 8.0), begin, "DOP853", events=ground, rtol=1e-12, atol=1e-13).y_events[0][0]
        return np.array([-x[0], math.cos(2.0 * x[0]) * x[2]])

    at = np.array([0.200310900544287, -0.199832473004977])
    np.testing.assert_allclose(step(at), at, atol=1e-9)
    wanted = np.linalg.eigvals(np.column_stack([(step(at + d) - step(at - d)) / 2e-6 for d in 1e-6 * np.eye(2)]))
    np.testing.assert_allclose(np.sort_complex(orbit.multipliers), np.sort_complex([*wanted, 0.0]), atol=1e-7)


def test_states_that_add_up_or_go_where_they_will_need_not_come_back():
    sim = simulation()
    bd = sim.blockdiagram()
    cart = cs.library.cart_pole().with_drive(actuated=["cart"])
    plant = bd.HYBRIDDYNAMICS(cart, q0=[0.0, -1.2], name="plant")
    push, sum_of = bd.WAVEFORM("sine", freq=1.0, amplitude=2.0, name="push"), bd.INTEGRATOR(0.0, name="sum")
    bd.connect(push, plant.tau, sum_of)
    bd.connect(sum_of, bd.NULL())
    orbit = sim.periodic_orbit(bd, 1.0, advance={"plant.cart.q": None})
    assert orbit.success and set(orbit.residual) == {"plant.pole.q", "plant.cart.qd", "plant.pole.qd"}
    again = sim.run(bd, T=1.0, start=orbit.out, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(again.x[-1, 1:4], orbit.out.x[-1, 1:4], atol=1e-7)


def juggled(sim, restitution, push, wind=0.0):
    """Return a ball that a racket throws up again, and of which a clock counts the time since then."""
    bd = sim.blockdiagram()
    height, speed, since = bd.INTEGRATOR(0.8, name="height"), bd.INTEGRATOR(0.0, name="speed"), bd.INTEGRATOR(0.4)

    def strike(block, states):
        states[speed][:] = push + wind * states[since][0] - restitution * states[speed][0]
        states[since][:] = 0.0

    bd.connect(bd.CONSTANT(-9.81), speed)
    bd.connect(speed, height)
    bd.connect(bd.CONSTANT(1.0), since)
    bd.connect(since, bd.NULL())
    bd.connect(height, bd.EVENT("v", strike, name="racket"))
    return bd


@pytest.mark.parametrize("given", [{"period": 0.85}, {"settle": 20.0}])
def test_states_at_which_only_handlers_look_come_back(given):
    """A height, and a time, on which no rate depends, were taken to only add up."""
    sim, e, push, wind = simulation(), 0.6, 1.5, 0.2
    orbit = sim.periodic_orbit(juggled(sim, e, push, wind), **given)
    speed = push / (1.0 - e - 2.0 * wind / 9.81)
    assert orbit.stable and orbit.period == pytest.approx(2.0 * speed / 9.81, abs=1e-9)
    np.testing.assert_allclose(orbit.multipliers, [e + 2.0 * wind / 9.81, 0.0], atol=1e-8)
    elastic = sim.periodic_orbit(juggled(sim, 1.0, 0.0), 0.85)
    assert str(elastic).startswith("a periodic orbit, neutrally stable") and not elastic.stable
    lost = sim.periodic_orbit(juggled(sim, 0.6, 0.0), 0.85)
    assert not lost.success and "begin nearer to one" in lost.message


def test_runs_on_a_springy_leg_keep_their_energy():
    """Of the two multipliers 1 one was 0.99992, and the orbit called stable: eigenvalues move by roots of errors."""
    sim = simulation()
    bd, rest, angle = sim.blockdiagram(), 1.0, math.radians(66.0)
    legs = [cs.Link("x", joint=cs.Prismatic((1, 0, 0))), cs.Link("y", "x", cs.Prismatic((0, 1, 0)), mass=80.0)]
    body = bd.HYBRIDDYNAMICS(cs.Mechanism(legs), q0=[0.0, 1.0], qd0=[5.0, 0.0], name="body")
    foot = bd.INTEGRATOR([0.0, 0.0], name="foot")  # where it stands, and whether it does

    def force(q, foot):
        leg = np.array([q[0] - foot[0], q[1]])
        length = np.sqrt(leg @ leg)
        return foot[1] * 20e3 * (rest - length) / length * leg

    def come_down(block, states):
        states[foot][:] = states[body][0] + rest * math.cos(angle), 1.0

    def lift(block, states):
        states[foot][1] = 0.0

    looks = {
        force: body.tau,
        lambda q, foot: np.where(foot[1] > 0.5, -1.0, q[1] - rest * math.sin(angle)): bd.EVENT("v", come_down),
        lambda q, foot: np.where(foot[1] > 0.5, np.hypot(q[0] - foot[0], q[1]) - rest, 1.0): bd.EVENT("^", lift),
    }
    bd.connect(bd.CONSTANT([0.0, 0.0]), foot)
    for function, end in looks.items():
        of_both = bd.FUNCTION(function, nin=2)
        bd.connect(body.q, of_both[0])
        bd.connect(foot, of_both[1])
        bd.connect(of_both, end)
    orbit = sim.periodic_orbit(bd, 0.65, advance={"body.x.q": None, "foot": None})
    assert orbit.success and not orbit.stable and "neutrally stable" in str(orbit)

    def apex(height, energy):
        """Return the next apex by SciPy."""
        fall = math.sqrt(2.0 * 9.81 * (height - rest * math.sin(angle)))
        speed = math.sqrt(2.0 * (energy - 9.81 * height))

        def rates(t, s):
            length = math.hypot(s[0], s[1])
            pull = 250.0 * (rest - length) / length
            return [s[2], s[3], pull * s[0], pull * s[1] - 9.81]

        def extended(t, s):
            return math.hypot(s[0], s[1]) - rest

        extended.terminal, extended.direction = True, 1.0
        begin = [-rest * math.cos(angle), rest * math.sin(angle), speed, -fall]
        end = solve_ivp(rates, (0.0, 1.0), begin, "DOP853", events=extended, rtol=1e-12, atol=1e-13).y[:, -1]
        return end[1] + end[3] ** 2 / 19.62

    fast = orbit.x
    energy = 0.5 * (fast[2] ** 2 + fast[3] ** 2) + 9.81 * fast[1]
    highest = fast[1] + fast[3] ** 2 / 19.62
    assert apex(highest, energy) == pytest.approx(highest, abs=1e-8)
    slope = (apex(highest + 1e-5, energy) - apex(highest - 1e-5, energy)) / 2e-5
    np.testing.assert_allclose(orbit.multipliers, [1.0, slope], atol=1e-6)


def test_functions_that_only_python_can_ask_are_not_taken_to_depend_on_time():
    sim = simulation()
    bd = oscillator(sim, lambda x, v: (1.0 - float(str(float(x))) ** 2) * v - x)
    orbit = sim.periodic_orbit(bd, 6.5, start=[2.0, 0.0], solver="RK4", dt=0.05)
    assert orbit.success and not orbit.forced
    assert orbit.period == pytest.approx(VAN_DER_POL, abs=1e-4)


def test_what_is_no_orbit_is_told(caplog):
    sim = simulation()
    lost = sim.periodic_orbit(driven(sim), 3.0)
    assert not lost.success and "not a second time: its period is another one" in lost.message
    assert "leave out forced=False" in sim.periodic_orbit(driven(sim), 2.0, forced=False).message
    free = oscillator(sim, lambda x, v: (1.0 - x**2) * v - x)
    assert "stays as given" in sim.periodic_orbit(free, 6.5, forced=True).message
    rest = sim.periodic_orbit(pendulum(sim, damping=0.5, q0=-1.5)[0], 1.6)
    assert not rest.success and not rest.stable and "at rest" in rest.message
    turning = sim.periodic_orbit(pendulum(sim, damping=0.5, qd0=10.0, torque=7.0)[0], 0.45, start=[0.0, 13.0])
    assert "plant.joint1.q ends" in turning.message and "advance=" in turning.message
    led = sim.periodic_orbit(oscillator(sim, lambda x, v: (1.0 - x**2) * v - x), 6.5, advance={"x": None})
    assert not led.success and "or it follows x:x_0, which advance= lets go" in led.message
    tiny = oscillator(sim, lambda x, v: (1.0 - (1e7 * x) ** 2) * v - x)
    assert "a smaller atol= may help" in sim.periodic_orbit(tiny, 6.5, start=[2e-7, 1e-8]).message
    assert sim.periodic_orbit(tiny, 6.5, start=[2e-7, 1e-8], atol=1e-17).period == pytest.approx(VAN_DER_POL, abs=1e-8)
    one = sim.periodic_orbit(oscillator(sim, lambda x, v: (1.0 - x**2) * v - x), 6.0, max_runs=2)
    assert "max_runs = 2" in one.message
    assert caplog.text.count("periodic_orbit: no periodic orbit was found") == 7


@pytest.mark.parametrize(
    ("kind", "told", "period", "options"),
    [
        (InvalidValue, "give the period, or a first guess", None, {}),
        (InvalidValue, "T: runs last a period", 6.0, {"T": 3.0}),
        (InvalidValue, "period: expected a positive number", -1.0, {}),
        (InvalidType, "advance: expected a dict", 6.0, {"advance": 3}),
        (UnknownName, "state 'w'", 6.0, {"advance": {"w": 1.0}}),
        (UnknownName, "did you mean 'advance'", 6.0, {"advanced": {}}),
        (NonFinite, "start: expected finite", 6.0, {"start": [math.nan, 0.0]}),
        (InvalidValue, "no state is left", 6.0, {"advance": {"x": None, "v": None}}),
        (DiagramError, "not of Radau", 6.0, {"solver": "Radau"}),
    ],
)
def test_slips_are_told(kind, told, period, options):
    sim = simulation("interpreted")
    with pytest.raises(kind, match=told):
        sim.periodic_orbit(oscillator(sim, lambda x, v: -x), period, **options)


def test_diagrams_that_cannot_be_served_are_named():
    sim = simulation("interpreted")
    with pytest.raises(InvalidValue, match="depends on time; give the period"):
        sim.periodic_orbit(driven(sim), settle=5.0)
    with pytest.raises(InvalidValue, match="has not been before where it ends"):
        sim.periodic_orbit(pendulum(sim, damping=0.5, q0=-1.2)[0], settle=1.0)
    empty = sim.blockdiagram()
    empty.connect(empty.CONSTANT(1.0), empty.NULL())
    with pytest.raises(CstormError, match="no states"):
        sim.periodic_orbit(empty, 1.0)


def sampled(sim, k=4.0, d=0.8):
    """Return ẍ = sin πt − u, where u = k x + d ẋ is held each tenth of a second."""
    bd = sim.blockdiagram()
    x, v, total = bd.INTEGRATOR(0.2, name="x"), bd.INTEGRATOR(0.0, name="v"), bd.SUM("+-", name="total")
    both, hold = bd.MUX(2), bd.ZOH(bd.clock(10, "Hz", name="beat"), x0=[0.0, 0.0], name="hold")
    law = bd.FUNCTION(lambda z: k * z[0] + d * z[1], name="law")
    wires = [(v, x), (x, both[0]), (v, both[1]), (both, hold), (hold, law), (law, total[1]), (total, v)]
    for begin, end in [(bd.WAVEFORM("sine", freq=0.5, name="push"), total[0]), *wires]:
        bd.connect(begin, end)
    return bd


@pytest.mark.parametrize("k", [4.0, pytest.param(45.0, marks=pytest.mark.slow)], ids=["stable", "unstable"])
def test_what_a_clock_samples_comes_back_too(k):
    h, sim = 0.1, simulation()
    orbit = sim.periodic_orbit(sampled(sim, k=k), 2.0)
    keeps, given = np.array([[1.0, h], [0.0, 1.0]]), np.array([[h * h / 2], [h]])
    round_once = np.linalg.matrix_power(keeps - given @ [[k, 0.8]], 20)
    wanted = np.linalg.eigvals(round_once)
    assert orbit.success and orbit.stable is bool(np.abs(wanted).max() < 1.0)
    nothing = np.zeros(2)  # the hold is written anew
    np.testing.assert_allclose(np.sort_complex(orbit.multipliers), np.sort_complex([*wanted, *nothing]), atol=1e-8)
    pushed = lambda t, y: [y[1], math.sin(math.pi * t) - y[2], 0.0]  # noqa: E731
    y = orbit.x
    for n in range(20):
        held = [k * y[0] + 0.8 * y[1]]
        y = solve_ivp(pushed, (n * h, (n + 1) * h), [*y, *held], rtol=1e-11, atol=1e-13).y[:2, -1]
    np.testing.assert_allclose(y, orbit.x, atol=1e-8)


def test_clocks_of_their_own_and_held_outputs_come_back():
    sim = simulation()
    bd = sim.blockdiagram()
    fast, slow = bd.clock(0.1), bd.clock(0.2, offset=0.07)
    plant = bd.LTI_SISO([1.0], [1.0, 0.9, 1.0], name="plant")
    pid = bd.DISCRETEPID(fast, P=0.5, I=0.6, D=0.1, name="pid")
    change, total = bd.DERIV_S(slow, gain=0.1, name="change"), bd.SUM("+-", name="total")
    bd.connect(bd.WAVEFORM("sine", freq=0.5, name="wanted"), pid.reference)
    bd.connect(plant, pid.measured, change)
    for begin, end in [(pid, total[0]), (change, total[1]), (total, plant)]:
        bd.connect(begin, end)
    orbit = sim.periodic_orbit(bd, 2.0)
    model = sim.linearize(bd, start := sim.run(bd, T=2.0).state, dt=2.0)
    poles = np.linalg.eigvals(model.A)
    assert orbit.stable and start.t == 2.0 and "pid:integral" in orbit.residual
    largest = np.sort(np.abs(orbit.multipliers))[::-1][: poles.size]
    np.testing.assert_allclose(largest, np.sort(np.abs(poles))[::-1], atol=1e-7)
    settled = sim.run(bd, T=80.0, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(settled.x[-1], orbit.x, atol=1e-8)


def delayed(sim):
    bd = sim.blockdiagram()
    beat, plant = bd.clock(0.5), bd.LTI_SISO([1.0], [1.0, 0.9, 1.0], name="plant")
    pid = bd.DISCRETEPID(beat, P=0.3, I=0.4, name="pid")
    late = bd.DELAY(beat, time=0.6, name="late")
    bd.connect(bd.WAVEFORM("sine", freq=0.5, name="wanted"), pid.reference)
    bd.connect(plant, pid.measured)
    bd.connect(pid, late)
    bd.connect(late, plant)
    return bd


def test_rounds_from_a_state_whose_ticks_are_due_and_with_a_delay_that_counts_its_own():
    """Of a state of a stepper a round had those at its beginning beside those at its end; counts had to come back."""
    sim = simulation()
    bd = delayed(sim)
    stepper = sim.stepper(bd, outputs=["plant"], substeps=20)
    stepper.step([], 4.0)
    assert stepper.state.due
    orbit = sim.periodic_orbit(bd, 2.0, start=stepper.state)
    assert orbit.stable and "late:X_1" not in orbit.residual and "late:X_2" in orbit.residual
    settled = sim.run(bd, T=120.0, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(settled.x[-1], orbit.x, atol=1e-8)


@pytest.mark.parametrize("given", [{"period": 2.03}, {"settle": 3.0}, {"period": 2.0, "forced": False}])
def test_a_round_is_a_whole_number_of_ticks(given):
    sim = simulation("interpreted")
    with pytest.raises(InvalidValue, match="a whole number of the"):
        sim.periodic_orbit(sampled(sim), **given)


def test_a_search_leaves_the_numbers_of_the_diagram_as_they_were():
    """A second search began with what events of the first had set."""
    sim = simulation()
    bd = sim.blockdiagram()
    bd.connect(push := bd.CONSTANT(1.0, name="push"), x := bd.INTEGRATOR(-0.5, name="x"))
    bd.connect(x, bd.EVENT("^", lambda block, states: setattr(push, "value", 0.5 * push.value), name="half"))
    found = [sim.periodic_orbit(bd, 1.0) for _ in range(2)]
    assert not found[0].success and found[0].message == found[1].message and push.value == 1.0


def test_an_orbit_is_drawn_beside_its_multipliers():
    sim = simulation()
    orbit = sim.periodic_orbit(driven(sim), 2.0, watch=["total"])
    plane, circle = orbit.plot().axes
    assert (plane.get_xlabel(), plane.get_ylabel()) == ("x:x_0", "v:x_0")
    np.testing.assert_array_equal(plane.lines[0].get_xdata(), orbit.out.x[:, 0])
    assert plane.get_title() == "Periodic orbit, period 2 s" and circle.get_title() == "Floquet multipliers: stable"
    np.testing.assert_array_equal(circle.lines[1].get_xdata(), orbit.multipliers.real)
    assert orbit.plot("x:x_0", "total").axes[0].get_ylabel() == "total"
    swinging = sim.periodic_orbit(pendulum(sim, q0=1.0 - math.pi / 2)[0], 1.8)
    assert swinging.plot().axes[0].get_ylabel() == "plant.joint1.qd [rad/s]"
