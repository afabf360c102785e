"""Diagrams in the manner of bdsim's documented examples, for tests and benchmarks: each runs on any bdsim.

Continuous, sampled and mixed diagrams; jumps of sources, zero crossings that reset states, STOP, subsystems, vehicles
after Corke's Robotics, Vision & Control. Where the equations fit in a few lines they stand beside the wiring, so that
the same motion can be had from scipy alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from math import atan, atan2, cos, hypot, pi, sin, sqrt, tan
from typing import Any

import bdsim
import numpy as np
from bdsim.components import ContinuousBlock
from scipy.integrate import solve_ivp

TIGHT = {"rtol": 1e-10, "atol": 1e-12}


def plain(**options):
    """Return a bdsim without our runner, blocks or windows."""
    quiet = {"sysargs": False, "banner": False, "quiet": True, "progress": False, "graphics": False, "hold": False}
    return bdsim.BDSim(**{**quiet, **options})


@dataclass(frozen=True)
class Example:
    """A diagram: how it is wired, how long it runs, and its equations if they are short.

    `build` returns the outputs to watch. The equations are rate(t, x) and x0, in the order of the diagram's states;
    `jumps` are the times at which the rate jumps.
    """

    build: Callable[[Any], list[Any]]
    T: float = 5.0
    rate: Callable[[float, Any], Any] | None = None
    x0: tuple[float, ...] = ()
    jumps: tuple[float, ...] = ()
    solver: str = "RK45"
    tags: frozenset[str] = field(default_factory=frozenset)

    def wire(self, sim):
        """Return the wired diagram, not compiled, and what is to be watched."""
        bd = sim.blockdiagram()
        return bd, self.build(bd)

    def by_scipy(self, times):
        """Return the states (N, n) at times that increase, by scipy's solve_ivp."""
        states, x, t = [], np.array(self.x0, dtype=float), 0.0
        for end in (*(j for j in self.jumps if j < times[-1]), times[-1]):
            inside = times[(times >= t) & ((times < end) | (end == times[-1]))]
            middle = 0.5 * (t + end)

            def rate(s, x, t=t, end=end, middle=middle):
                # a stage at the very end of the stretch is to see the rate before the jump
                inward = 1e-9 * (middle - s) / (end - t)
                return self.rate(s + inward if s in (t, end) else s, x)

            part = solve_ivp(rate, (t, end), x, t_eval=np.unique([*inside, end]), method="DOP853", **TIGHT)
            states.append(part.y[:, : len(inside)])
            x, t = part.y[:, -1], end
        return np.hstack(states).T


# ------------------------------------------------------------------ continuous, linear


def feedback(bd):
    """A step, proportional feedback and a plant of first order."""
    demand, plant = bd.STEP(T=1, name="demand"), bd.LTI_SISO(0.5, [2, 1], name="plant")
    error, gain, scope = bd.SUM("+-"), bd.GAIN(10), bd.SCOPE(nin=2)
    bd.connect(demand, error[0], scope[1])
    bd.connect(plant, error[1], scope[0])
    bd.connect(error, gain)
    bd.connect(gain, plant)
    return [demand, gain, plant]


def feedback_rate(t, x):
    y = 0.25 * x[0]
    return [-0.5 * x[0] + 10 * ((t >= 1.0) - y)]


def three_pids(bd):
    """One PID controller in its three structures, following a ramp."""
    p, i, d = 5, 3, 2
    series = (p + sqrt(p * p - 4 * i * d)) / 2
    pids = [
        bd.PID(P=p, I=i, D=d, name="parallel"),
        bd.PID(P=p, I=i / p, D=d / p, structure="ideal", name="ideal"),
        bd.PID(P=series, I=i / series, D=d / series, structure="series", name="series"),
    ]
    demand, zero, scope = bd.RAMP(T=1, name="demand"), bd.CONSTANT(0.0), bd.SCOPE(nin=4)
    bd.connect(demand, scope[0], *(pid[1] for pid in pids))
    bd.connect(zero, *(pid[0] for pid in pids))
    for k, pid in enumerate(pids, start=1):
        bd.connect(pid, scope[k])
    return [demand]


# ------------------------------------------------------------------ continuous, nonlinear


def van_der_pol(bd):
    """The oscillator of Van der Pol, two integrators and a function of two inputs."""
    x, y = bd.INTEGRATOR(x0=1, name="x"), bd.INTEGRATOR(x0=1, name="y")
    rate = bd.FUNCTION(lambda x, y: -x + 0.3 * (1 - x**2) * y, nin=2, name="rate")
    scope = bd.SCOPEXY(scale=[-2, 2, -2, 2])
    bd.connect(x, rate[0], scope[0])
    bd.connect(y, rate[1], scope[1], x)
    bd.connect(rate, y)
    return [x, y]


def van_der_pol_rate(t, x):
    return [x[1], -x[0] + 0.3 * (1 - x[0] ** 2) * x[1]]


CART, POLE, LENGTH, GRAVITY, FRICTION = 1.0, 0.1, 0.5, -9.81, 10.0


def cart_pole(bd):
    """A pole on a cart that is pushed for 0.2 s, wired by arithmetic on blocks."""
    push = bd.STEP(1, name="on") - bd.STEP(1.2, name="off")
    speed = bd.INTEGRATOR(name="speed")
    place = speed >> bd.INTEGRATOR(name="place")
    turning = bd.INTEGRATOR(name="turning")
    angle = turning >> bd.INTEGRATOR(name="angle")
    c = angle >> bd.FUNCTION(lambda a: cos(a), name="cosine")
    s = angle >> bd.FUNCTION(lambda a: sin(a), name="sine")
    mass = CART + POLE * s**2
    force = push - FRICTION * speed
    speed[0] = (force + POLE * s * (LENGTH * turning**2 + GRAVITY * c)) / mass
    turning[0] = (-force * c - POLE * LENGTH * turning**2 * c * s - (CART + POLE) * GRAVITY * s) / (LENGTH * mass)
    scope = bd.SCOPE(nin=3)
    bd.connect(push, scope[0])
    bd.connect(place, scope[1])
    bd.connect(angle, scope[2])
    return [push, place, angle]


def cart_pole_rate(t, x):
    speed, _, turning, angle = x
    s, c = sin(angle), cos(angle)
    mass = CART + POLE * s * s
    force = (1.0 <= t < 1.2) - FRICTION * speed
    return [
        (force + POLE * s * (LENGTH * turning**2 + GRAVITY * c)) / mass,
        speed,
        (-force * c - POLE * LENGTH * turning**2 * c * s - (CART + POLE) * GRAVITY * s) / (LENGTH * mass),
        turning,
    ]


# ------------------------------------------------------------------ vehicles


class Bicycle(ContinuousBlock):
    """A bicycle of wheelbase L: place and heading from speed and steering angle, both limited."""

    nin = 2
    nout = 1
    inlabels = ("v", "gamma")

    def __init__(self, x0=(0.0, 0.0, 0.0), L=1.0, vlim=1.0, slim=1.3, **blockargs):
        super().__init__(x0=x0, **blockargs)
        self.limits = L, vlim, slim

    def output(self, t, u, x):
        return [x]

    def deriv(self, t, u, x):
        L, vlim, slim = self.limits
        v, gamma = min(max(u[0], -vlim), vlim), min(max(u[1], -slim), slim)
        return v * np.array([cos(x[2]), sin(x[2]), tan(gamma) / L])


def steered(bd):
    """A bicycle at constant speed whose steering is a sequence of steps."""
    steering = bd.PIECEWISE((0, 0), (0.5, 0.5), (1, 0), (1.5, -0.5), (3, 0), name="steering")
    bike, parts = Bicycle(bd=bd), bd.DEMUX(3)
    bd.connect(steering, bike[1])
    bd.connect(bd.CONSTANT(1, name="speed"), bike[0])
    bd.connect(bike, parts)
    bd.connect(parts[2], bd.SCOPE(name="theta"))
    return [bike]


def steered_rate(t, x):
    gamma = 0.5 if 0.5 <= t < 1 else -0.5 if 1.5 <= t < 3 else 0.0
    return [cos(x[2]), sin(x[2]), tan(gamma)]


def to_a_point(bd):
    """A bicycle that turns to a point and drives there."""
    goal, error, bike = bd.CONSTANT([5, 5]), bd.SUM("+-", name="error"), Bicycle(x0=[5, 2, 0], bd=bd)
    distance = bd.FUNCTION(lambda d: hypot(d[0], d[1]), name="distance")
    bearing = bd.FUNCTION(lambda d: atan2(d[1], d[0]), name="bearing")
    heading_error, kv, kh = bd.SUM("+-", mode="c"), bd.GAIN(0.5), bd.GAIN(4)
    place, heading = bd.SLICE1([0, 1]), bd.SLICE1([2])
    bd.connect(bike, place, heading)
    bd.connect(goal, error[0])
    bd.connect(place, error[1])
    bd.connect(error, distance, bearing)
    bd.connect(distance, kv)
    bd.connect(kv, bike[0], bd.SCOPE(name="velocity"))
    bd.connect(bearing, heading_error[0])
    bd.connect(heading, heading_error[1])
    bd.connect(heading_error, kh, bd.SCOPE(name="heading"))
    bd.connect(kh, bike[1])
    return [bike, kv]


def along_a_line(bd):
    """A bicycle that turns onto the line x - 2y + 4 = 0."""
    a, b, c = 1, -2, 4
    bike, off = Bicycle(x0=[5, 2, 0], bd=bd), bd.FUNCTION(lambda p: (a * p[0] + b * p[1] + c) / hypot(a, b))
    slope, heading_error, steer = bd.CONSTANT(atan2(-a, b)), bd.SUM("+-", mode="c"), bd.SUM("+-")
    place, heading = bd.INDEX([0, 1], name="place"), bd.INDEX([2], name="heading")
    kd, kh = bd.GAIN(0.5), bd.GAIN(1)
    bd.connect(bd.CONSTANT(0.5), bike.v)
    bd.connect(bike, place, heading)
    bd.connect(place, off)
    bd.connect(off, kd)
    bd.connect(slope, heading_error[0])
    bd.connect(heading, heading_error[1], bd.SCOPE(name="shown"))
    bd.connect(heading_error, kh)
    bd.connect(kh, steer[0])
    bd.connect(kd, steer[1])
    bd.connect(steer, bike.gamma)
    return [bike, off]


def to_a_pose(bd):
    """A bicycle that drives to a pose, and stops the run when it is there."""

    def polar(e):
        beta = -atan2(-e[1], -e[0])
        return [hypot(e[0], e[1]), min(max(-e[2] - beta, -pi / 2), pi / 2), beta]

    bike, goal = Bicycle(x0=[4.0, 4.2, pi / 4], vlim=2, bd=bd), bd.CONSTANT([5, 5, 0], name="goal")
    error, form = bd.SUM("+-"), bd.FUNCTION(polar, nout=3, name="polar", onames=("rho", "alpha", "beta"))
    krho, kalpha, kbeta = bd.GAIN(1), bd.GAIN(5), bd.GAIN(-2)
    turn, steer = bd.SUM("++"), bd.FUNCTION(lambda w, v: atan(w / v), nin=2, name="steer")
    bd.connect(bike, error[0])
    bd.connect(goal, error[1])
    bd.connect(error, form)
    bd.connect(form[0], krho, bd.STOP(lambda rho: 0.3 - rho, name="there"))
    bd.connect(form[1], kalpha, bd.SCOPE(name="shown"))
    bd.connect(form[2], kbeta)
    bd.connect(kalpha, turn[0])
    bd.connect(kbeta, turn[1])
    bd.connect(turn, steer[0])
    bd.connect(krho, steer[1], bike.v)
    bd.connect(steer, bike.gamma)
    return [bike, krho]


class Quadrotor(ContinuousBlock):
    """A quadrotor in the plane of its height and roll: y, z, roll and their rates from two thrusts [N]."""

    nin = 1
    nout = 1

    def __init__(self, x0=(0.0,) * 6, mass=1.0, arm=0.2, inertia=0.02, **blockargs):
        super().__init__(x0=x0, **blockargs)
        self.constants = mass, arm, inertia

    def output(self, t, u, x):
        return [x]

    def deriv(self, t, u, x):
        mass, arm, inertia = self.constants
        left, right = u[0]
        lift = (left + right) / mass
        return np.array([*x[3:], -lift * sin(x[2]), lift * cos(x[2]) - 9.81, arm * (right - left) / inertia])


def quadrotor(bd):
    """A quadrotor that climbs a step and moves sideways, under nested PD loops."""
    body, demand = Quadrotor(bd=bd), bd.STEP(T=0.5, name="height")
    side = bd.WAVEFORM("sine", freq=0.5, amplitude=0.3, name="side")

    def thrusts(x, z_d, y_d):
        roll = min(max(0.3 * (x[0] - y_d) + 0.4 * x[3], -0.5), 0.5)
        lift = 9.81 + 6 * (z_d - x[1]) - 4 * x[4]
        moment = 4 * (roll - x[2]) - 0.8 * x[5]
        return np.array([lift - moment, lift + moment]) / 2

    law = bd.FUNCTION(thrusts, nin=3, name="law")
    bd.connect(body, law[0], bd.SCOPE(vector=6, name="state"))
    bd.connect(demand, law[1])
    bd.connect(side, law[2])
    bd.connect(law, body)
    return [body, law]


# ------------------------------------------------------------------ events


def bouncing_ball(bd):
    """A ball that falls from 10 m and keeps 0.8 of its speed at each bounce."""
    return ball(bd, 10.0, 0.8)


def ball(bd, height, restitution, direction="-"):
    velocity, position = bd.INTEGRATOR(name="velocity", x0=0), bd.INTEGRATOR(name="position", x0=height)

    def impact(block, states):
        states[velocity] *= -restitution

    scope = bd.SCOPE(nin=2)
    bd.connect(bd.CONSTANT(-9.81, name="gravity"), velocity)
    bd.connect(velocity, position, scope[0])
    bd.connect(position, scope[1], bd.EVENT(direction, impact, name="ground"))
    return [velocity, position]


# ------------------------------------------------------------------ sampled


def feedback_held(bd):
    """The feedback loop with a zero-order hold of 10 Hz before the plant."""
    clock = bd.clock(10, "Hz")
    demand, plant = bd.STEP(T=1, name="demand"), bd.LTI_SISO(0.5, [2, 1], name="plant")
    error, gain, hold, scope = bd.SUM("+-"), bd.GAIN(10), bd.ZOH(clock, name="hold"), bd.SCOPE(nin=2)
    bd.connect(demand, error[0], scope[1])
    bd.connect(plant, error[1], scope[0])
    bd.connect(error, gain)
    bd.connect(gain, hold)
    bd.connect(hold, plant)
    return [demand, plant, hold]


def two_clocks(bd):
    """A sine held by two clocks of different rates; no continuous state."""
    sine = bd.WAVEFORM("sine", freq=0.2)
    holds = [bd.ZOH(bd.clock(2, "Hz"), name="slow"), bd.ZOH(bd.clock(3, "Hz"), name="fast")]
    mean = 0.5 * (holds[0] + holds[1])
    scope = bd.SCOPE(nin=2)
    bd.connect(sine, *holds, scope[0])
    bd.connect(mean, scope[1])
    return [sine, mean]


def motor(bd):
    """A sampled PI controller behind a triangle wave, and a motor of first order."""
    clock = bd.clock(100, "Hz")
    demand, plant = bd.WAVEFORM("triangle", min=0, max=20, freq=0.5, name="demand"), bd.LTI_SISO(4, [0.2, 1])
    pid, split = (
        bd.PID_S(clock, P=1.0, I=0.5, D=0.0, name="pid"),
        bd.FUNCTION(lambda u: [abs(u), 1.0 if u >= 0 else -1.0], nout=2, name="split"),
    )
    product, hold, scope = bd.PROD("**"), bd.ZOH(clock, name="sensor"), bd.SCOPE(nin=2)
    bd.connect(plant, hold, scope[0])
    bd.connect(hold, pid[0])
    bd.connect(demand, pid[1], scope[1])
    bd.connect(pid, split)
    bd.connect(split[0], product[0])
    bd.connect(split[1], product[1])
    bd.connect(product, plant)
    return [demand, hold, plant]


def rlc(bd):
    """An RLC circuit charged by a sampled PI controller of 20 Hz whose clocks are offset."""
    R, L, C = 4.7, 4.7e-1, 1e-2
    step = bd.STEP(T=0, name="demand")
    circuit = bd.LTI_SS(
        A=np.array([[0.0, 1.0], [-1 / (L * C), -R / L]]), B=np.array([0.0, 1 / (L * C)]), C=np.array([1.0, 0.0])
    )
    reading = bd.ZOH(bd.clock(20, "Hz"), name="reading")
    late = bd.clock(20, "Hz", offset=0.015)
    error, total, clip = bd.SUM("+-"), bd.SUM("++"), bd.CLIP(min=0, max=1)
    sum_up, hold = bd.INTEGRATOR_S(late, gain=2.0), bd.ZOH(late, name="hold")
    bd.connect(circuit, reading)
    bd.connect(step, error[0])
    bd.connect(reading, error[1])
    bd.connect(error, sum_up, total[0])
    bd.connect(sum_up, total[1])
    bd.connect(total, clip)
    bd.connect(clip, hold)
    bd.connect(hold, circuit)
    return [circuit, reading, hold]


# ------------------------------------------------------------------ subsystems and sources


def subsystems(bd):
    """A subsystem, in0² + in1, used twice, once with an integrator behind it."""
    inner = bd.runtime.blockdiagram(name="squares")
    square, total, inp, out = (
        inner.FUNCTION(lambda x: x**2, name="square"),
        inner.SUM("++"),
        inner.INPORT(2),
        inner.OUTPORT(1),
    )
    inner.connect(inp[0], square)
    inner.connect(square, total[0])
    inner.connect(inp[1], total[1])
    inner.connect(total, out)
    sine, one = bd.WAVEFORM("sine", 1, "Hz", name="wave"), bd.CONSTANT(1)
    uses = [bd.SUBSYSTEM(inner, name="first"), bd.SUBSYSTEM(inner, name="second")]
    integral = bd.INTEGRATOR(name="integral")
    bd.connect(sine, *(use[0] for use in uses))
    bd.connect(one, *(use[1] for use in uses))
    bd.connect(uses[0], integral, bd.SCOPE(name="a"))
    bd.connect(uses[1], bd.SCOPE(name="b"))
    return [sine, integral]


def subsystems_rate(t, x):
    return [sin(2 * pi * t) ** 2 + 1]


def waves(bd):
    """Two waves, shown and summed."""
    triangle, square = bd.WAVEFORM("triangle", freq=1, phase=0.25), bd.WAVEFORM("square", freq=1, min=0, max=1)
    bd.connect(triangle, bd.SCOPE(name="a"))
    bd.connect(square, bd.SCOPE(name="b"))
    return [triangle, square]


EXAMPLES = {
    "feedback": Example(feedback, 5.0, feedback_rate, (0.0,), (1.0,)),
    "three pids": Example(three_pids, 5.0),
    "van der pol": Example(van_der_pol, 10.0, van_der_pol_rate, (1.0, 1.0)),
    "cart and pole": Example(cart_pole, 10.0, cart_pole_rate, (0.0, 0.0, 0.0, 0.0), (1.0, 1.2)),
    "steered bicycle": Example(steered, 5.0, steered_rate, (0.0, 0.0, 0.0), (0.5, 1.0, 1.5, 3.0)),
    "to a point": Example(to_a_point, 8.0),
    "along a line": Example(along_a_line, 10.0),
    "to a pose": Example(to_a_pose, 5.0, tags=frozenset({"stops"})),
    "quadrotor": Example(quadrotor, 5.0),
    "bouncing ball": Example(bouncing_ball, 5.0, tags=frozenset({"events"})),
    "feedback held": Example(feedback_held, 5.0, tags=frozenset({"sampled"})),
    "two clocks": Example(two_clocks, 5.0, tags=frozenset({"sampled", "no states"})),
    "motor": Example(motor, 3.0, tags=frozenset({"sampled"})),
    "rlc": Example(rlc, 3.0, tags=frozenset({"sampled"})),
    "subsystems": Example(subsystems, 5.0, subsystems_rate, (0.0,)),
    "waves": Example(waves, 4.0, tags=frozenset({"no states", "sources"})),
}
