"""Laws of a user's own, by what each of them does that a trace may stumble over, and their diagrams."""

from __future__ import annotations

import enum
import math

import numpy as np

import cstormpy as cs
from cstormpy.control import Law
from cstormpy.mechanism import library

ACROBOT = library.acrobot()


def controlled(law, engine="auto"):
    """Return a simulation and the diagram of an acrobot under a law, which is called "mine" in the block "ctl"."""
    sim = cs.Simulation(engine=engine)
    bd = sim.blockdiagram()
    plant = bd.HYBRIDDYNAMICS("acrobot", q0=[0.3, 0.2], name="plant")
    controller = bd.CONTROLLER("acrobot", {"mine": law}, name="ctl")
    bd.connect(plant[0:2], controller[0:2])
    bd.connect(controller.tau, plant.tau)
    return sim, bd


def damped(t, q, qd):
    return -2.0 * qd[1] - 3.0 * math.sin(q[1])


def closing_over(gain):
    def law(t, q, qd):
        return [-gain * qd[1] + max(q[0], 0.0)]

    return law


def asking_numbers(t, q, qd):
    if q[1] > 0.5:
        return -5.0 * qd[1]
    return -1.0 * qd[1]


def asserting(t, q, qd):
    assert abs(q[1]) < 0.25 and np.isfinite(q).all(), "beyond its range"
    return 3.0 if q[1] > 0.0 else 2.5


def looping(t, q, qd):
    total, k = 0.0, 0
    while total < 1.0 and k < 10:
        total += abs(qd[1])
        k += 1
    return -0.5 * qd[1] * k


def waiting(t, q, qd):
    """A loop whose number of rounds only a number tells: of symbols it has no end."""
    total = 0.0
    while total < abs(qd[1]):
        total += 0.01
    return -0.5 * total * np.sign(qd[1])


class Gains:
    """A class with gains that is no Law."""

    def __init__(self, kp=4.0):
        self.kp, self.kd = kp, np.array([1.0, 2.0])

    def torque(self, t, q, qd):
        return -self.kp * np.sin(q[1]) - self.kd @ qd


class AskingItsMechanism(Law):
    """Energy, mass matrix, gravity and forward kinematics of the mechanism, in one law."""

    def __init__(self, mech):
        super().__init__(mech)
        self.ke = 0.4

    def torque(self, t, q, qd, reference=None):
        kinetic, potential = self.mech.energy(q, qd)
        mass = self.mech.mass_matrix(q)
        load = self.mech.inverse_dynamics(q, np.zeros(2), np.zeros(2))
        height = self.mech.forward_kinematics(q)[-1, 1, 3]
        return np.array([self.ke * (9.0 - kinetic - potential) * qd[1] + load[1] - mass[1, 1] * qd[1] + 0.1 * height])


class Phased(Law):
    """A Law with two phases, which changes where its margin crosses zero."""

    modes = ("far", "near")

    def __init__(self, mech):
        super().__init__(mech)
        self.kd = 2.0

    def torque(self, t, q, qd, reference=None):
        return np.array([-self.kd * qd[1] * (1.0 + self.mode)])

    def margin(self, t, q, qd):
        return q[0] + 1.0 if self.mode == 0 else None

    def switch(self, t, q, qd):
        self.mode = 1


class Switching(Law):
    """A Law that pushes until the arm is fast enough, rests, and pushes again: three phases of its own."""

    modes = ("push", "rest", "brake")
    tunable = ("push",)

    def __init__(self, mech):
        super().__init__(mech)
        self.push, self.fast = 3.0, 1.2

    def start(self, t, q, qd):
        self.mode = 0

    def torque(self, t, q, qd, reference=None):
        if self.mode == 1:
            return np.zeros(1)
        return np.array([self.push * np.tanh(4.0 * qd[1] + 0.1) if self.mode == 0 else -2.0 * qd[1]])

    def margin(self, t, q, qd):
        if self.mode == 1:
            return q[1] + 0.2
        return self.fast - abs(qd[1]) if self.mode == 0 else qd[1] ** 2 - 0.01

    def switch(self, t, q, qd):
        self.mode = (self.mode + 1) % 3


class OnlyPython:
    """Text formatting, of all things, in a control law."""

    def torque(self, t, q, qd):
        return float(f"{-2.0 * qd[1]:.12e}")


class Saturating:
    """An `if` on a number, beside gains, an array of them, a whole number and a truth."""

    def __init__(self):
        self.kd, self.weights, self.joint, self.on = 2.0, np.array([0.5, 1.0]), 1, True

    def torque(self, t, q, qd):
        pushed = 0.0
        for k in range(self.joint + 1):
            pushed -= self.kd * self.weights[k] * qd[k]
        return pushed if abs(pushed) < 40.0 and self.on else 40.0


class SaturatingLaw(Law):
    """An `if` on a number in a law that its limit holds."""

    def __init__(self, mech):
        super().__init__(mech, limit=0.5)
        self.kd = 2.0

    def torque(self, t, q, qd, reference=None):
        return np.array([-5.0 - self.kd * qd[1]]) if abs(qd[1]) < 40.0 else np.zeros(1)


class AskingAndBranching(AskingItsMechanism):
    """An `if` on what its mechanism answers, which is more than numbers."""

    def torque(self, t, q, qd, reference=None):
        while t < -1.0:
            t += 1.0
        return np.zeros(1) if sum(self.mech.energy(q, qd)) > 1e3 else np.array([-2.0 * qd[1]])


class Counting:
    """A loop that ends for numbers only, beside gains."""

    def __init__(self):
        self.kd = 2.0

    def torque(self, t, q, qd):
        while t < -1.0:
            t += 1.0
        return -self.kd * qd[1]


class OnlyPythonWithGains:
    kd = 2.0

    def torque(self, t, q, qd):
        return float(f"{-self.kd * qd[1]:.16e}")


class Pull(enum.IntEnum):
    SOFT, HARD = 1, 3


class Remembering:
    """An array of its own that it writes into, behind an `if`: numba's code would not see it in the next call."""

    def __init__(self):
        self.kd, self.memory = 2.0, np.zeros(1)

    def torque(self, t, q, qd):
        if t > 0.2:
            self.memory[0] = 1.0
        return -self.kd * qd[1] * (1.0 + self.memory[0]) if t > 0.1 else 0.0


class Calling(Gains):
    """A method of its own behind an `if` that the first look does not pass, after a loop that symbols never end."""

    def torque(self, t, q, qd):
        while t < -1.0:
            t += 1.0
        return self.beyond(q, qd) if q[0] != 0.0 else 0.0

    def beyond(self, q, qd):
        return super().torque(t=0.0, q=q, qd=qd)


class Inheriting(Gains):
    def torque(self, t, q, qd):
        while t < -1.0:
            t += 1.0
        return super().torque(t, q, qd) if q[0] != 0.0 else 0.0


class Asking(Gains):
    """An attribute by its name: numba took the default."""

    def torque(self, t, q, qd):
        while t < -1.0:
            t += 1.0
        return -getattr(self, "kp", 0.5) * qd[1] if q[0] != 0.0 else 0.0


class Named:
    """A whole number with a name."""

    def __init__(self):
        self.pull = Pull.HARD

    def torque(self, t, q, qd):
        while t < -1.0:
            t += 1.0
        return -self.pull * qd[1] if q[0] != 0.0 else 0.0


class Called:
    """Numbers that are called as the arguments, and as what stands in for the object."""

    def __init__(self):
        self.t, self.q, self.method, self.Held = 2.0, np.array([0.1, 0.2]), 3.0, True

    def torque(self, t, q, qd):
        while t < -1.0:
            t += 1.0
        goal = self.q[1] if t < self.t and self.Held else 0.0
        return self.method * (goal - q[1])


class Dividing:
    """A division by zero at rest, which gives inf in NumPy; code for the machine's numbers raises."""

    def __init__(self):
        self.kd = 2.0

    def torque(self, t, q, qd):
        while t < -1.0:
            t += 1.0
        with_care = self.kd / abs(qd[1])
        if with_care > 3.0:
            with_care = 3.0
        return -with_care * qd[1]


class DividingLater(Dividing):
    """The same on the way: a run was at its end there."""

    def torque(self, t, q, qd):
        while t < -1.0:
            t += 1.0
        steps = np.floor(t / 0.3) - 1.0 + 0.0 * q[0]
        share = 1.0 / steps
        return -self.kd * qd[1] if share > 0.0 else -1.9 * qd[1]


class Returning:
    """Unlike results, which numba refuses: it is asked itself."""

    def __init__(self):
        self.kd = 2.0

    def torque(self, t, q, qd):
        while t < -1.0:
            t += 1.0
        return -self.kd * qd[1] if q[0] != 0.0 else [0.0]


class Made(Law):
    """Its torque is a function of this object alone."""

    def __init__(self, mech):
        super().__init__(mech)
        self.torque = lambda t, q, qd, reference=None: -5.0 * qd[1] if sorted([t, *q, *qd, 1.0, 2.0]) else 0.0

    def torque(self, t, q, qd, reference=None):
        return -qd[1] if q[0] != 0.0 else 0.0


def formatting(t, q, qd):
    return float(f"{-2.0 * qd[1]:.12e}") if qd[1] < 40.0 else 0.0


def halving(t, q, qd):
    q *= 0.5
    return -3.0 * q[1] - qd[1]


LAWS = {
    "function": (lambda: damped, "traced"),
    "writes into what it is given": (lambda: halving, "traced"),
    "closure": (lambda: closing_over(1.5), "traced"),
    "class with gains": (Gains, "traced"),
    "asks its mechanism": (lambda: AskingItsMechanism(ACROBOT), "traced"),
    "if on numbers": (lambda: asking_numbers, "traced"),
    "loop": (lambda: looping, "traced"),
    "loop without end": (lambda: waiting, "compiled by numba, as it cannot be traced: it asks for more than 64 truths"),
    "phases": (lambda: Phased(ACROBOT), "traced"),
    "if in a class with gains": (Saturating, "traced"),
    "if in a law with a limit": (lambda: SaturatingLaw(ACROBOT), "traced"),
    "if on its mechanism": (lambda: AskingAndBranching(ACROBOT), "numba: it reads self.mech, which is no number"),
    "memory": (Remembering, "numba: it writes into an array that it does not make itself; in line"),
    "a method of its own": (Calling, "numba: it reads self.beyond, which is no number"),
    "super": (Inheriting, "numba: it uses super()"),
    "an attribute by its name": (Asking, "numba: it does more with self than to read numbers"),
    "a whole number with a name": (Named, "numba: it reads self.pull, which is no number"),
    "numbers of any name": (Called, "law Called: compiled by numba"),
    "division by zero": (Dividing, "numba: compiled, it fails where it does not in Python"),
    "division by zero later": (DividingLater, "numba: compiled, it fails where it does not in Python"),
    "unlike results": (Returning, "asked in Python, as it cannot be traced: it asks for more than 64 truths"),
    "a method of one object": (lambda: Made(ACROBOT), "numba: its torque is no method of its class"),
    "only Python": (OnlyPython, "asked in Python"),
    "only Python, and an if": (lambda: formatting, "law formatting: asked in Python"),
}


def ways(bd):
    """Return how each method of a diagram's blocks and laws was taken into its program."""
    return [way for _, way in bd.__dict__["_compiled_form"].program.ways]


def placed(bd, block):
    """Add a block of one's own to a diagram."""
    bd.add_block(block)
    return block
