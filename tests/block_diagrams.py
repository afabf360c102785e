"""Small diagrams that between them have every block that is translated, in its kinds and options.

Each function wires what it is about to states that decay, so that any state and any time is one that the blocks may
be given.
"""

from __future__ import annotations

import functools
import math

import numpy as np

import cstormpy as cs
from cstormpy.control import (
    LQR,
    PD,
    TVLQR,
    ComputedTorque,
    EnergyPFL,
    EnergyPump,
    GravityCompensation,
    HybridTracking,
    NonCollocated,
    Off,
)
from cstormpy.trajectory import BSpline

DIAGRAMS = {}


def diagram(build):
    DIAGRAMS[build.__name__.replace("_", " ")] = build
    return build


def state(bd, x0):
    """Return a state of some width that decays."""
    made = bd.INTEGRATOR(x0=x0)
    bd.connect(made, bd.GAIN(-1.0))
    bd.connect(bd.blocklist[-1], made)
    return made


def shown(bd, *blocks):
    """Wire all outputs to somewhere."""
    for block in blocks:
        for port in range(block.nout):
            bd.connect(block[port], bd.NULL())


def fed(bd, block, *signals):
    """Wire the inputs of a block in their order, and its outputs to somewhere."""
    for port, signal in enumerate(signals):
        bd.connect(signal, block[port])
    shown(bd, block)
    return block


def posture(bd, mech):
    """Return position and rate of the joints of a mechanism, as states."""
    return state(bd, np.linspace(0.3, -0.4, mech.n)), state(bd, np.linspace(-0.5, 0.7, mech.n))


def random_pose(seed):
    rotation = np.linalg.qr(np.random.default_rng(seed).standard_normal((3, 3)))[0]
    pose = np.eye(4)
    pose[:3, :3], pose[:3, 3] = rotation * np.linalg.det(rotation), (0.1, 0.2, 0.3)
    return pose


# mechanisms -------------------------------------------------------------------------------------------


@diagram
def inertia(bd):
    mech = cs.library.puma560()
    q, qd = posture(bd, mech)
    fed(bd, bd.MASSMATRIX(mech), q)
    fed(bd, bd.GRAVITYLOAD(mech), q)
    fed(bd, bd.ENERGY(mech), q, qd)
    fed(bd, bd.EFFORT(weight=np.arange(6.0)), q)


@diagram
def kinematics(bd):
    mech = cs.library.puma560()
    q, qd = posture(bd, mech)
    for frame in ("body", "base", "aligned"):
        for tool in (None, [0.1, 0.2, 0.3], random_pose(1)):
            fed(bd, bd.KINEMATICS(mech, frame=frame, tool=tool), q, qd)
    fed(bd, bd.KINEMATICS(mech, link=1), q, qd)


@diagram
def inverse_kinematics(bd):
    for mech, options in (
        (cs.library.planar_2r(), {"mask": "position", "tool": [0.5, 0.0, 0.0]}),
        (cs.library.puma560(), {"follow": False}),
    ):
        q, qd = posture(bd, mech)
        where = fed(bd, bd.KINEMATICS(mech, tool=options.get("tool")), q, qd)
        fed(bd, bd.IKINE(mech, q0=np.linspace(0.3, -0.4, mech.n), **options), where[0])


@diagram
def wrenches(bd):
    mech = cs.library.branched_acrobot()
    q, qd = posture(bd, mech)
    six, three = state(bd, np.linspace(-1, 1, 6)), state(bd, [1.0, 2.0, 3.0])
    for frame in ("link", "base"):
        for load in ("wrench", "force", "force and moment"):
            wrench = bd.WRENCH(mech, mech.links[-1].name, frame=frame, load=load, point=[0.1, 0.2, 0.3])
            given = {"wrench": [six], "force": [three], "force and moment": [three, three]}[load]
            fed(bd, wrench, *given, *[q] * (frame == "base"))
    flat = bd.FLATTEN()
    bd.connect(wrench, flat)
    fed(bd, bd.INVERSEDYNAMICS(mech, wrench=True), q, qd, qd, wrench)
    plant = bd.HYBRIDDYNAMICS(mech, wrench=True, q0=np.linspace(0.1, 0.9, mech.n))
    drive = [state(bd, np.ones(len(names))) for _, _, names in plant._drive.parts]
    fed(bd, plant, *drive, flat)
    fed(bd, bd.JOINTEFFORT(mech, wrench=True), plant[0], plant[1], *drive, wrench)
    pushed = fed(bd, bd.PUSH(mech, 0, [(-1.0, 9.0, [1.0, 2.0, 3.0])], frame="base", point=[0.3, 0.2, 0.1]), q)
    gain, total = bd.GAIN(-0.7), bd.SUM("+-")
    bd.connect(pushed, gain)
    bd.connect(gain, total[0])
    bd.connect(wrench, total[1])
    for load in (flat, total):
        fed(bd, bd.SENSITIVITY(mech, wrench=True), q, qd, *drive, load)
    fed(bd, bd.VARIATION(mech, wrench=True, directions=["left_hip.q"]), plant[0], plant[1], *drive, total)


@diagram
def pushes(bd):
    plant = bd.HYBRIDDYNAMICS("acrobot", wrench=True, q0=[0.1, 0.2])
    pulses = [(0.2, 0.8, [0, 0, 0, 3, 0, 1]), (0.5, 2.0, [1, 2, 3])]
    shown(bd, bd.PUSH("acrobot", "forearm", pulses))
    smooth = bd.PUSH("acrobot", "forearm", pulses, frame="base", shape="smooth", point=[0.1, 0, 0])
    bd.connect(plant.q, smooth.q)
    bd.connect(smooth, plant.wrench)
    bd.connect(bd.CONSTANT(1.0), plant.tau)


@diagram
def sensitivities(bd):
    for mech, active in (("acrobot", None), ("acrobot", ["elbow"]), ("branched_acrobot", None)):
        for wrench in (False, True):
            block = bd.SENSITIVITY(mech, active=active, wrench=wrench)
            drive = [bd.CONSTANT(np.linspace(1, 2, len(names))) for _, _, names in block._drive.parts]
            load = [bd.CONSTANT(np.linspace(-1, 1, 6 * len(block.mech.links)))] * wrench
            fed(bd, block, *posture(bd, block.mech), *drive, *load)


@diagram
def variations(bd):
    plant, u = bd.HYBRIDDYNAMICS("acrobot", q0=[0.1, 0.2], active=["elbow"]), bd.CONSTANT(1.0)
    bd.connect(u, plant[0])
    feedback, parameter = bd.CONSTANT(np.array([[1.0, 2.0, 3.0, 4.0]])), bd.CONSTANT(np.array([0.5, 0.3]))
    block = bd.VARIATION("acrobot", active=["elbow"], parameters=2, feedback=True)
    fed(bd, block, plant[0], plant[1], u, feedback, parameter)
    fed(bd, bd.VARIATION("acrobot"), plant[0], plant[1], u)
    arm, both = bd.HYBRIDDYNAMICS("planar_2r", q0=[0.1, 0.2]), bd.CONSTANT([1.0, 2.0])
    bd.connect(both, arm[0])
    fed(bd, bd.VARIATION("planar_2r", feedback=True), arm[0], arm[1], both, bd.CONSTANT(np.arange(8.0)))


@diagram
def joints(bd):
    mech = cs.library.acrobot()
    q, _ = posture(bd, mech)
    fed(bd, bd.ANGLEWRAP(mech, centre=1.0), q)
    fed(bd, bd.ANGLEWRAP(joints=[1]), q)
    fed(bd, bd.ANGLEWRAP(centre=[0.2, 0.4], locate=False), q)
    fed(bd, bd.ANGLEWRAP(), state(bd, 3.0))
    position, rate = state(bd, np.linspace(-3, 3, 6)), state(bd, np.linspace(3, -3, 6))
    for every in (True, False):
        fed(bd, bd.JOINTLIMIT("puma560", all=every), position, rate)
    arm = bd.HYBRIDDYNAMICS("puma560", q0=np.linspace(-3, 3, 6), active=["joint2"], stops={"stiffness": 50.0})
    torque, swing = bd.CONSTANT(np.linspace(1, 2, 5)), bd.CONSTANT(0.5)
    bd.connect(torque, arm[0])
    bd.connect(swing, arm[1])
    fed(bd, bd.JOINTEFFORT("puma560", active=["joint2"], stops={"stiffness": 50.0}), arm[0], arm[1], torque, swing)


# laws -------------------------------------------------------------------------------------------------


def moving(t):
    """A motion of two joints as a user may write it."""
    return np.array([t, t * t]), np.array([1.0, 2.0 * t]), np.array([0.0, 2.0])


def controlled(bd, mech, laws, law, q0=(0.1, 0.2), **options):
    plant, controller = bd.HYBRIDDYNAMICS(mech, q0=q0), bd.CONTROLLER(mech, laws, law=law, **options)
    bd.connect(plant[0:2], controller[0:2])
    bd.connect(controller.tau, plant.tau)
    bd.connect(controller.law, bd.NULL())
    bd.connect(controller.phase, bd.NULL())
    return controller


CURVE = [[0.3, 1.2], [-0.5, 0.1], [0.9, -1.0], [0.2, 0.4], [1.0, 0.0], [0.0, 0.5]]


@diagram
def laws_of_the_acrobot(bd):
    mech, curve = cs.library.acrobot(), BSpline.clamped(CURVE, duration=2.0)
    goal = LQR(mech).goal
    laws = {
        "noncollocated": NonCollocated(mech),
        "along": TVLQR(mech, lambda t: (goal, np.zeros(2), np.zeros(2)), t0=0.2, t1=1.5, steps=7, limit=30.0),
        "pd": PD(mech, kp=3.0, kd=1.0, compensate=True),
        "hybrid": HybridTracking(mech, reference=[0.5]),
        "curve": HybridTracking(mech, reference=curve, limit=3.0),
        "gravity": GravityCompensation(mech),
        "pump": EnergyPump(mech),
        "pfl": EnergyPFL(mech),
    }
    for name, law in laws.items():
        controlled(bd, mech, {name: law}, name)


@diagram
def laws_of_an_arm(bd):
    mech, curve = cs.library.planar_2r(), BSpline.clamped(CURVE, duration=2.0)
    laws = {
        "torque": ComputedTorque(mech, reference=[0.1, 0.2]),
        "curve": ComputedTorque(mech, reference=curve, kp=[1.0, 2.0], kd=3.0),
        "function": ComputedTorque(mech, reference=moving),
        "one": HybridTracking(mech, reference=moving, joints=[mech.names[1]]),
        "pd": PD(mech, kp=[1.0, 2.0], kd=2.0, reference=curve),
    }
    for name, law in laws.items():
        controlled(bd, mech, {name: law}, name)
    chosen = {"pd": laws["pd"], "torque": laws["torque"], "off": Off(mech)}
    controller = controlled(bd, mech, chosen, "torque", reference=True, select=True)
    bd.connect(bd.CONSTANT(1.2), controller[2])
    for port in (3, 4, 5):
        bd.connect(bd.CONSTANT([0.1, 0.3]), controller[port])


@diagram
def spline_law(bd):
    mech = cs.library.acrobot()
    for q0 in ([-1.5, 0.0], [1.5, 0.1], [0.5, 0.3]):
        controlled(bd, mech, ["spline", "energy"], "spline", q0)
    controlled(bd, mech, ["energy", "spline", "noncollocated"], "energy")


# sources ----------------------------------------------------------------------------------------------


@diagram
def splines(bd):
    state(bd, 1.0)
    for ends in ("hold", "repeat"):
        for degree in (1, 2, 3, 5):
            shown(bd, bd.SPLINETRAJECTORY(CURVE, duration=1.3, degree=degree, ends=ends, speed=1.7, start=0.2))
    shown(bd, bd.SPLINETRAJECTORY(CURVE, duration=30, ends="error"), bd.FROMDATA(t=[0, 20], y=[1, 3], ends="error"))


@diagram
def records(bd):
    state(bd, 1.0)
    times = [0, 0.1, 0.3, 0.3, 0.7, 1.0, 1.0, 1.6, 2.0]
    for ends in ("hold", "repeat"):
        for between in ("linear", "previous", "cubic"):
            for y in (np.sin(np.arange(9.0)), np.cos(np.arange(18.0)).reshape(9, 2)):
                shown(bd, bd.FROMDATA(t=times, y=y, interpolation=between, ends=ends))


@diagram
def sources(bd):
    state(bd, 1.0)
    shown(bd, bd.PIECEWISE((0, 1), (0.5, 3.0), (1.0, -1), (2, 0)), bd.STEP(0.4), bd.RAMP(0.3, slope=2))
    shown(bd, bd.PIECEWISE((0, np.array([1, 2])), (0.6, np.array([3, 4]))), bd.CONSTANT([1, 2]), bd.TIME())
    for wave in ("square", "sine", "triangle"):
        shown(bd, bd.WAVEFORM(wave, freq=0.7, phase=0.2, duty=0.3, amplitude=2, offset=0.3))


@diagram
def interpolations(bd):
    one, two = state(bd, 0.5), state(bd, [0.5, -0.2])
    x, rng = [-9, -2, -1, -0.2, 0.3, 1, 2, 9], np.random.default_rng(0)
    for kind in ("linear", "nearest", "nearest-up", "zero", "slinear", "quadratic", "cubic", "previous", "next", 5):
        for y in (rng.standard_normal(8), rng.standard_normal((8, 2))):
            fed(bd, bd.INTERPOLATE(x=x, y=y, kind=kind), one)
            shown(bd, bd.INTERPOLATE(x=np.linspace(0.0, 20.0, 8), y=y, kind=kind, time=True))
        fed(bd, bd.INTERPOLATE(x=x, y=rng.standard_normal(8), kind=kind), two)


# arithmetic and states --------------------------------------------------------------------------------


@diagram
def matrices(bd):
    numbers, rng, made = state(bd, [0.3, 0.2, -0.1]), np.random.default_rng(0), []
    for k in range(3):
        size, scaled, shifted = bd.INDEX([k]), bd.PROD("**"), bd.SUM("++")
        fed(bd, size, numbers)
        fed(bd, scaled, bd.CONSTANT(rng.standard_normal((3, 3))), size)
        made.append(fed(bd, shifted, scaled, bd.CONSTANT(3.0 * np.eye(3) + rng.standard_normal((3, 3)))))
    for ops in ("**", "*/", "/*", "//*"):
        fed(bd, bd.PROD(ops), *made[: len(ops)])
    several = [bd.INVERSE(), bd.INVERSE(pinv=True), bd.DET(), bd.COND(), bd.TRANSPOSE(), bd.FLATTEN(), bd.FLATTEN("F")]
    several += [bd.POW(p, matrix=True) for p in (-1, 0, 2, 5)] + [bd.POW(3), bd.SLICE2(rows=[0, 2], cols=(0, 2, 1))]
    several += [bd.NORM(ord=order) for order in (None, "fro", "nuc", 1, -1, 2, -2, math.inf, -math.inf)]
    several += [bd.NORM(ord=order, axis=axis) for order in (None, 1, 3, math.inf) for axis in (0, 1)]
    for block in several:
        fed(bd, block, made[0])
    for order in (None, 0, 1, 2, 3, 2.5, math.inf, -math.inf):
        fed(bd, bd.NORM(ord=order), numbers)
    for part in (bd.SLICE2(cols=[0, 1]), bd.SLICE2(rows=[0, 1])):
        fed(bd, part, made[0])
        fed(bd, bd.INVERSE(), part)
        fed(bd, bd.COND(), part)


def scaled(a, b, c=1.0):
    return a * b + c


@diagram
def functions(bd):
    two = state(bd, [1.0, 2.0])
    gain, size = bd.GAIN(3.0), bd.NORM()
    fed(bd, gain, two)
    fed(bd, size, two)
    both = fed(bd, bd.DICT(["a", "b; import os"]), two, gain)
    fed(bd, bd.ITEM("b; import os"), both)
    fed(bd, bd.FUNCTION(lambda v: 2 * v), two)
    fed(bd, bd.FUNCTION(math.exp), size)
    fed(bd, bd.FUNCTION(functools.partial(math.pow, 2.0)), size)
    fed(bd, bd.FUNCTION(functools.partial(scaled, 2.0), fkwargs={"c": 1.5}), size)
    fed(bd, bd.FUNCTION(scaled, fkwargs={"b": 2.0, "c": 3.0}), size)
    fed(bd, bd.FUNCTION([lambda a: a + 1.0, lambda a: [a, 2.0]][:1], nout=1), size)


@diagram
def connections(bd):
    one, three = state(bd, 0.7), state(bd, [1.0, -2.0, 0.4])
    mux, parts = bd.MUX(2), bd.DEMUX(3)
    fed(bd, mux, one, three)
    fed(bd, parts, three)
    fed(bd, bd.CLIP(min=-0.4, max=[0.4, 0.3, 0.2, 0.1]), mux)
    fed(bd, bd.CLIP(max=0.5), parts[1])
    for index in ([2, 0], (0, 3, 2), None):
        fed(bd, bd.SLICE1(index), three)
    for mode in ("c", "C", "l"):
        fed(bd, bd.SUM("-+", mode=3 * mode), three, three)
    fed(bd, bd.INDEX([1, 2]), mux)


@diagram
def filters(bd):
    one, time = state(bd, 1.0), bd.TIME()
    fed(bd, bd.LTI_SISO([1, 2], [1, 3, 5]), one)
    fed(bd, bd.LTI_SISO([1, 2, 3], [1, 3, 5]), one)
    fed(bd, bd.DERIV(alpha=3.0, gain=2.0), one)
    fed(bd, bd.DERIV2(3.0), one)
    fed(bd, bd.LTI_SS(A=-np.eye(2), B=np.array([1.0, 2.0]), C=np.array([1.0, 2.0]), D=np.array([2.0])), one)
    for structure in ("parallel", "series", "ideal"):
        fed(bd, bd.PID(P=2.0, I=1.0, D=0.5, I_limit=2.0, structure=structure), one, time)


@diagram
def sampled_blocks(bd):
    one, two, time, clock = state(bd, 1.0), state(bd, [1.0, -2.0]), bd.TIME(), bd.clock(0.1, "s")
    fed(bd, bd.ZOH(clock), one)
    fed(bd, bd.ZOH(clock, x0=[0.1, 0.2]), two)
    fed(bd, bd.INTEGRATOR_S(clock, min=-1, max=0.1), one)
    fed(bd, bd.INTEGRATOR_S(clock, x0=[0.1, 0.2], gain=3.0), two)
    fed(bd, bd.DERIV_S(clock, gain=2.0), one)
    fed(bd, bd.LTI_SISO_S(clock, [1, 2], [1, 0.3, 0.5]), one)
    fed(bd, bd.DINTEGRATOR(clock), one)
    fed(bd, bd.LTI_SS_S(clock, A=0.5 * np.eye(2), B=np.array([1.0, 2.0]), C=np.array([1.0, 2.0])), one)
    fed(bd, bd.PID_S(clock, P=1.0, I=1.0, D=0.3, I_band=0.5), one, time)
