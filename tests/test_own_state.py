"""Laws that read, or change, what only Python knows the inside of: containers, slots, what surrounds them."""

from __future__ import annotations

import collections
import functools
import types

import numpy as np
import pytest
from own_laws import controlled

import cstormpy as cs


class Slots:
    __slots__ = ("kp",)

    def __init__(self):
        self.kp = 3.0


class Own:
    def __init__(self):
        self.kp = 3.0


class MadeByNew(Own):
    def __new__(cls):
        return object.__new__(cls)


class Mapping(dict):
    def __getattr__(self, name):  # of what is not there, another error than Python asks for
        return self[name]

    __setattr__ = dict.__setitem__


BY_ATTRIBUTE = lambda h: h.kp, lambda h, value: setattr(h, "kp", value)
BY_KEY = lambda h: h["kp"], lambda h, value: h.__setitem__("kp", value)
BY_INDEX = lambda h: h[0], lambda h, value: h.__setitem__(0, value)
BY_LAW = lambda h: h.kp, lambda h, value: h.set_gain("kp", value)
BY_GREATEST = max, lambda h, value: h.add(value)
BY_POLYNOMIAL = lambda h: h(1.0), lambda h, value: h.__setitem__(1, value)

HELD = {
    "namespace": (lambda: types.SimpleNamespace(kp=3.0), BY_ATTRIBUTE),
    "slots": (Slots, BY_ATTRIBUTE),
    "object": (Own, BY_ATTRIBUTE),
    "new": (MadeByNew, BY_ATTRIBUTE),
    "mapping": (lambda: Mapping(kp=3.0), BY_ATTRIBUTE),
    "userdict": (lambda: collections.UserDict(kp=3.0), BY_KEY),
    "deque": (lambda: collections.deque([3.0]), BY_INDEX),
    "array of objects": (lambda: np.array([3.0], dtype=object), BY_INDEX),
    "view": (lambda: memoryview(np.array([3.0])), BY_INDEX),
    "set": (lambda: {3.0}, BY_GREATEST),
    "polynomial": (lambda: np.poly1d([3.0, 0.0]), BY_POLYNOMIAL),
    "law": (lambda: cs.control.law("pd", cs.library.acrobot(), kp=3.0, kd=1.0), BY_LAW),
}


def by_attribute(held, read):
    class Law:
        def __init__(self):
            self.held = held

        def torque(self, t, q, qd):
            return -read(self.held) * q[1] - qd[1]

    return Law()


def surrounded(held, read):
    return lambda t, q, qd: -read(held) * q[1] - qd[1]


def partial(held, read):
    def law(held, t, q, qd):
        return -read(held) * q[1] - qd[1]

    return functools.partial(law, held)


@pytest.mark.parametrize("how", [by_attribute, surrounded, partial])
def test_what_is_held_is_read_anew_in_each_run(how):
    for name, (make, (read, write)) in HELD.items():
        ends = {}
        for engine in ("interpreted", "compiled"):
            held = make()
            sim, bd = controlled(how(held, read), engine)
            ends[engine] = [sim.run(bd, T=0.3).x[-1]]
            write(held, 5.0)
            ends[engine].append(sim.run(bd, T=0.3).x[-1])
        np.testing.assert_allclose(ends["compiled"], ends["interpreted"], rtol=0, atol=1e-9, err_msg=name)
        assert abs(ends["compiled"][0] - ends["compiled"][1]).max() > 0.1, name


def remembering(memory, read, write):
    """Return a law that gives a torque by what it was asked last."""

    def law(t, q, qd):
        last = read(memory)
        write(memory, q[1])
        return -3.0 * q[1] - qd[1] - (q[1] - last)

    return law


def remembering_by_name():
    last = 3.0

    def law(t, q, qd):
        nonlocal last
        before, last = last, q[1]
        return -3.0 * q[1] - qd[1] - (q[1] - before)

    return law, lambda: last


@pytest.mark.parametrize("name", ["namespace", "slots", "object", "mapping", "userdict", "deque", "nonlocal"])
def test_what_a_law_remembers_is_kept_out_of_what_is_written_down(name):
    if name == "nonlocal":
        law, remembered = remembering_by_name()
    else:
        make, (read, write) = HELD[name]
        memory = make()
        law, remembered = remembering(memory, read, write), lambda: read(memory)
    sim, bd = controlled(law, "compiled")
    out = sim.run(bd, T=0.3, dt=0.01, solver="RK4")
    assert isinstance(remembered(), float)
    assert remembered() == pytest.approx(out.x[-1, 1], abs=0.1)
    assert "law law: asked in Python" in str(sim.explain(bd))
    law, _ = remembering_by_name() if name == "nonlocal" else (remembering(make(), read, write), None)
    other, again = controlled(law, "interpreted")
    # engines do not ask equally often
    np.testing.assert_allclose(out.x[-1], other.run(again, T=0.3, dt=0.01, solver="RK4").x[-1], rtol=0, atol=1e-2)
