"""Random diagrams: blocks, widths and wiring from a list of numbers, the same diagram at each call.

A diagram grows block by block. Each takes its inputs from outputs that are there already, so that no algebraic loop can
arise; what states integrate is wired at the end, from anywhere, through a CLIP that keeps all signals moderate.
"""

from __future__ import annotations

import math

import numpy as np

__all__ = ["KINDS", "build"]


class Growing:
    """A diagram while it grows: its outputs by their shape, and the numbers that decide."""

    def __init__(self, bd, numbers):
        self.bd, self._numbers = bd, iter(numbers)
        self.outputs = {}
        self.states, self.open = [], []
        self.clocks = [bd.clock(0.05, "s"), bd.clock(0.08, "s", offset=0.02)]

    def choose(self, options):
        """Return one of some options."""
        return options[next(self._numbers, 0) % len(options)]

    def signal(self, accepts=lambda shape: True):
        """Return an output of a shape that is accepted, and its shape; a constant if there is none."""
        shapes = sorted(shape for shape in self.outputs if accepts(shape))
        if not shapes:
            shape = next(s for s in ((), (2,), (2, 2)) if accepts(s))
            self.give(self.bd.CONSTANT(np.linspace(-0.7, 0.9, int(np.prod(shape))).reshape(shape)[()]), shape)
            shapes = [shape]
        shape = self.choose(shapes)
        return self.choose(self.outputs[shape]), shape

    def scalar(self):
        """Return a scalar output."""
        return self.signal(lambda shape: shape == ())[0]

    def give(self, block, *shapes):
        """Note the outputs of a block."""
        for port, shape in enumerate(shapes):
            self.outputs.setdefault(shape, []).append(block[port])

    def through(self, block, signals, *shapes):
        """Wire a block to signals and note its outputs."""
        for port, signal in enumerate(signals):
            self.bd.connect(signal, block[port])
        self.give(block, *shapes)


def moderate(grow, signal, width):
    """Return a signal within ±1, as a vector or number that a state of some width takes."""
    clip = grow.bd.CLIP(min=-1.0, max=1.0)
    grow.bd.connect(signal, clip)
    return clip


# what may be added ------------------------------------------------------------------------------------


def integrator(grow):
    width = grow.choose([1, 2, 3])
    limits = grow.choose([{}, {"min": [-0.6] * width}, {"max": [0.7] * width, "gain": 0.5}])
    block = grow.bd.INTEGRATOR(x0=np.linspace(0.4, -0.3, width), **limits)
    grow.states.append(block)
    grow.open.append((block, () if width == 1 else (width,)))
    grow.give(block, () if width == 1 else (width,))


def linear_system(grow):
    numerator, denominator = grow.choose([([1], [2, 1]), ([1, 2], [1, 3, 5]), ([0.5], [1, 0.4, 4])])
    grow.through(grow.bd.LTI_SISO(numerator, denominator), [grow.scalar()], ())


def derivative(grow):
    grow.through(grow.bd.DERIV(alpha=3.0), [grow.scalar()], ())


def held(grow):
    shape = grow.choose([(), (2,)])
    block = grow.bd.ZOH(grow.choose(grow.clocks), x0=np.full(int(np.prod(shape)), 0.2))
    grow.open.append((block, shape))
    grow.give(block, shape)


def summed(grow):
    block = grow.bd.INTEGRATOR_S(grow.choose(grow.clocks), min=-0.5, max=0.5)
    grow.through(block, [grow.scalar()], ())


def difference(grow):
    grow.through(grow.bd.DERIV_S(grow.choose(grow.clocks), gain=0.01), [grow.scalar()], ())


def sampled_system(grow):
    grow.through(grow.bd.LTI_SISO_S(grow.choose(grow.clocks), [1, 0.2], [1, 0.3, 0.1]), [grow.scalar()], ())


def source(grow):
    bd = grow.bd
    block = grow.choose(
        [
            lambda: bd.CONSTANT(0.3),
            lambda: bd.TIME(),
            lambda: bd.STEP(0.13, off=-0.2, on=0.4),
            lambda: bd.RAMP(0.1, slope=0.5),
            lambda: bd.WAVEFORM("square", freq=4.0, duty=0.3),
            lambda: bd.WAVEFORM("sine", freq=1.5),
            lambda: bd.WAVEFORM("triangle", freq=3.0),
            lambda: bd.PIECEWISE((0, 0.2), (0.07, -0.4), (0.2, 0.1)),
            lambda: bd.FROMDATA(t=[0, 0.1, 0.1, 0.25], y=[0.0, 0.5, -0.5, 1.0], ends="repeat"),
        ]
    )()
    grow.give(block, ())


def motion(grow):
    ends = grow.choose(["hold", "repeat"])
    points = [[0, 0.3], [0.2, 0.1], [-0.4, 0.2], [0.5, 0.5], [0.1, 0.0]]
    grow.give(grow.bd.SPLINETRAJECTORY(points, duration=0.21, ends=ends, speed=0.5), (2,), (2,), (2,))


def gain(grow):
    signal, shape = grow.signal()
    grow.through(grow.bd.GAIN(grow.choose([0.5, -1.3, 2])), [signal], shape)


def matrix_gain(grow):
    signal, (width,) = grow.signal(lambda shape: len(shape) == 1)
    rows = grow.choose([2, 3])
    matrix = np.cos(np.arange(rows * width)).reshape(rows, width)
    premul = grow.choose([True, False])
    grow.through(grow.bd.GAIN(matrix if premul else matrix.T.copy(), premul=premul), [signal], (rows,))


def total(grow):
    first, shape = grow.signal()
    second, _ = grow.signal(lambda other: other == shape)
    mode = grow.choose([None, "c", "C", "l"]) if len(shape) < 2 else None
    mode = mode and mode * (shape[0] if shape else 1)
    grow.through(grow.bd.SUM(grow.choose(["++", "+-", "-+"]), mode=mode), [first, second], shape)


def product(grow):
    first, shape = grow.signal(lambda shape: len(shape) < 2)
    grow.through(grow.bd.PROD("**"), [first, grow.scalar()], shape)


def power(grow):
    signal, shape = grow.signal()
    grow.through(grow.bd.POW(grow.choose([0, 1, 2, 3, 5])), [moderate(grow, signal, shape)], shape)


def side_by_side(grow):
    signals = [grow.signal(lambda shape: len(shape) < 2 and sum(shape) <= 4) for _ in range(grow.choose([2, 3]))]
    width = sum(shape[0] if shape else 1 for _, shape in signals)
    grow.through(grow.bd.MUX(len(signals)), [signal for signal, _ in signals], (width,))


def parts(grow):
    signal, (width,) = grow.signal(lambda shape: len(shape) == 1)
    grow.through(grow.bd.DEMUX(width), [signal], *[()] * width)


def part(grow):
    signal, (width,) = grow.signal(lambda shape: len(shape) == 1)
    k = grow.choose(range(width))
    bd = grow.bd
    block, shape = grow.choose([(bd.INDEX, ()), (bd.SLICE1, (1,))])
    grow.through(block([k]), [signal], shape)


def matrix(grow):
    signal, shape = grow.signal(lambda shape: len(shape) == 2)
    bd, turned = grow.bd, shape[::-1]
    kinds = [(bd.TRANSPOSE, turned), (bd.FLATTEN, (shape[0] * shape[1],)), (bd.NORM, ())]
    kinds += [(bd.DET, ())] * (shape[0] == shape[1])
    block, found = grow.choose(kinds)
    grow.through(block(), [signal], found)


def size(grow):
    signal, _ = grow.signal(lambda shape: len(shape) == 1)
    grow.through(grow.bd.NORM(ord=grow.choose([None, 1, math.inf])), [signal], ())


def table(grow):
    kind = grow.choose(["linear", "cubic", "quadratic"])
    block = grow.bd.INTERPOLATE(x=[-2, -0.5, 0.1, 0.7, 2], y=[0.3, -0.2, 0.4, 0.1, 0.6], kind=kind)
    grow.bd.connect(moderate(grow, grow.scalar(), ()), block)
    grow.through(grow.bd.GAIN(1.0), [block], ())  # bdsim's PROD takes an array without dimensions for a matrix


def function(grow):
    func, count, shapes = grow.choose(
        [
            (lambda a: math.sin(a), 1, [()]),
            (lambda a, b: a * math.cos(b) - 0.3, 2, [()]),
            (lambda a, b: [a + b, np.array([a, 0.5 * b])], 2, [(), (2,)]),
            (math.tanh, 1, [()]),
        ]
    )
    signals = [grow.scalar() for _ in range(count)]
    grow.through(grow.bd.FUNCTION(func, nin=count, nout=len(shapes)), signals, *shapes)


def plant(grow):
    block = grow.bd.HYBRIDDYNAMICS("acrobot", q0=[0.3, -0.2])
    grow.open.append((block, ()))
    q, qd = block[0], block[1]
    grow.give(block, (2,), (2,))
    grow.through(grow.bd.ENERGY("acrobot"), [q, qd], (), (), ())
    grow.through(grow.bd.ANGLEWRAP("acrobot", locate=False), [q], (2,))


def asked(grow):
    # an acceleration as the next one's rate enlarges the rounding of the first a thousandfold
    q, qd = (moderate(grow, grow.signal(lambda shape: shape == (2,))[0], (2,)) for _ in range(2))
    bd = grow.bd
    if grow.choose([True, False]):
        grow.through(bd.JOINTEFFORT("acrobot"), [q, qd, grow.scalar()], (2,), (2,))
    else:
        grow.through(bd.MASSMATRIX("acrobot"), [q], (2, 2))


def effort(grow):
    signal, _ = grow.signal(lambda shape: len(shape) < 2)
    grow.through(grow.bd.EFFORT(), [signal], ())


def event(grow):
    states, direction = list(grow.states), grow.choose(["^", "v"])

    def halve(block, at):
        for state in states:
            at[state][:] *= 0.5

    apart = grow.bd.SUM("+-")
    small, wave = grow.bd.GAIN(grow.choose([0.1, 0.31, -0.3])), grow.bd.WAVEFORM("sine", freq=2.5)
    grow.bd.connect(grow.scalar(), small)
    grow.through(apart, [wave, small], ())
    grow.bd.connect(apart, grow.bd.EVENT(direction, halve))


KINDS = [
    integrator, linear_system, derivative, held, summed, difference, sampled_system, source, motion, gain,
    matrix_gain, total, product, power, side_by_side, parts, part, matrix, size, table, function, plant, asked,
    effort, event, event,
]  # fmt: skip


def build(bd, steps):
    """Grow a diagram from steps, each a kind (its place in KINDS) and numbers that decide what is left open."""
    grow = Growing(bd, [])
    integrator(grow)
    source(grow)
    for kind, *numbers in steps:
        grow._numbers = iter(numbers)
        KINDS[kind](grow)
    grow._numbers = iter(range(7, 1000, 3))
    for block, shape in grow.open:
        signal, _ = grow.signal(lambda other, shape=shape: other == shape)
        bd.connect(moderate(grow, signal, shape), block[0])
    for outputs in grow.outputs.values():
        for output in outputs:
            bd.connect(output, bd.NULL())
    return bd
