"""Random diagrams: blocks, widths and wiring from a list of numbers, the same diagram at each call.

A diagram grows block by block. Each takes its inputs from outputs that are there already, so that no algebraic loop can
arise; what states integrate is wired at the end, from anywhere, through a CLIP that keeps all signals moderate.
"""

from __future__ import annotations

import math

import numpy as np

__all__ = ["KINDS", "PLAIN", "build"]


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


def narrow(grow):
    """Return an output that is a number or a vector, and its shape."""
    return grow.signal(lambda shape: len(shape) < 2)


def pair(grow):
    """Return a signal of two numbers within ±1, as coordinates of the acrobot."""
    return moderate(grow, grow.signal(lambda shape: shape == (2,))[0], (2,))


def bent(grow):
    signal, shape = narrow(grow)
    bd, locate = grow.bd, grow.choose([True, False])
    kinds = [
        lambda: bd.SATURATION(-0.3, 0.4, locate=locate),
        lambda: bd.DEADZONE(-0.2, 0.3, locate=locate),
        lambda: bd.QUANTIZER(0.25, locate=locate),
    ]
    grow.through(grow.choose(kinds)(), [signal], shape)


def looked_up(grow):
    bd, options = grow.bd, grow.choose([{}, {"outside": "extrapolate"}, {"locate": False}])
    if grow.choose([True, False]):
        grow.through(bd.LOOKUP1D([-1, 0.1, 0.6], [0.2, -0.4, 0.5], **options), [grow.scalar()], ())
        return
    values = [[0.1, 0.2], [-0.3, 0.4], [0.5, -0.6]]
    grow.through(bd.LOOKUP2D([-0.5, 0.1, 0.6], [-0.4, 0.2], values, **options), [grow.scalar(), grow.scalar()], ())


def switched(grow):
    first, shape = narrow(grow)
    second, _ = grow.signal(lambda other: other == shape)
    bd, locate = grow.bd, grow.choose([True, False])
    if grow.choose([True, False]):
        grow.through(bd.SWITCH(0.1, locate=locate), [first, grow.scalar(), second], shape)
    else:
        grow.through(bd.MULTISWITCH(2, locate=locate), [grow.scalar(), first, second], shape)


def truths(grow):
    bd = grow.bd
    operator, threshold = grow.choose([">", "<", ">=", "<="]), grow.choose([0.0, 0.2, -0.1])
    one, two = bd.COMPARE(operator, threshold, locate=grow.choose([True, False])), bd.COMPARE("<", None)
    grow.through(one, [grow.scalar()], ())
    grow.through(two, [grow.scalar(), grow.scalar()], ())
    grow.through(bd.LOGIC(grow.choose(["and", "or", "xor", "nand", "nor"])), [one, two], ())


def remembering(grow):
    bd, direction = grow.bd, grow.choose(["rising", "falling"])
    signal, shape = narrow(grow)
    if grow.choose([True, False]):
        held = bd.SAMPLEHOLD(grow.choose([0.0, 0.05]), x0=np.full(shape, 0.1)[()])
        grow.through(held, [signal, grow.scalar()], shape)
        return
    kinds = [lambda: bd.RELAY(0.2, -0.1, 0.7, -0.3), lambda: bd.COUNTER(0.1, direction, modulo=3)]
    grow.through(grow.choose(kinds)(), [grow.scalar()], ())


def late(grow):
    signal, shape = narrow(grow)
    bd, clock, first = grow.bd, grow.choose(grow.clocks), np.full(shape, 0.1)[()]
    kinds = [
        lambda: bd.BACKLASH(clock, 0.2, x0=first),
        lambda: bd.RATELIMITER(clock, 1.0, -3.0, x0=first),
        lambda: bd.DELAY(clock, samples=2, x0=first),
        lambda: bd.DELAY(clock, time=0.13, order=1, x0=first),
    ]
    grow.through(grow.choose(kinds)(), [signal], shape)


def edge(grow):
    direction = grow.choose(["rising", "falling", "both"])
    grow.through(grow.bd.EDGE(grow.choose(grow.clocks), direction, 0.1), [grow.scalar()], ())


def filtered(grow):
    bd, clock = grow.bd, grow.choose(grow.clocks)
    kinds = [
        lambda: bd.DISCRETETF(clock, [0.3, 0.2], [1, -0.5, 0.1]),
        lambda: bd.DISCRETETF(clock, [1, 0.3], [1, -0.5]),
        lambda: bd.TRANSFERFN([1, 2], [1, 3, 5]),
        lambda: bd.TRANSFERFN([2, 1, 1], [1, 2, 4]),
    ]
    grow.through(grow.choose(kinds)(), [grow.scalar()], ())


def in_states(grow):
    signal, _ = grow.signal(lambda shape: shape == (2,))
    bd, clock, through = grow.bd, grow.choose(grow.clocks), [[0.1, 0], [0, 0]]
    A, B, x0 = [[0.5, 0.1], [-0.2, 0.3]], [[1, 0], [0.2, 0.4]], [0.1, 0.2]
    kinds = [
        (lambda: bd.DISCRETESS(clock, A, B, [[1, 0.5]]), ()),
        (lambda: bd.DISCRETESS(clock, A, B, np.eye(2), D=through, x0=x0), (2,)),
        (lambda: bd.STATESPACE(A, B, [[1, 0.5]], x0=x0), ()),
        (lambda: bd.STATESPACE(A, B, np.eye(2), D=through), (2,)),
    ]
    block, shape = grow.choose(kinds)
    grow.through(block(), [signal], shape)


def regulated(grow):
    bd, clock = grow.bd, grow.choose(grow.clocks)
    gains = grow.choose(
        [
            {"P": 2.0, "I": 1.0, "D": 0.1, "N": 20.0},
            {"P": 2.0, "I": 3.0, "low": -0.3, "high": 0.4},
            {"P": 1.0, "I": 1.0, "D": 0.05, "N": 15.0, "b": 0.5, "c": 1.0, "low": -0.5, "high": 0.5, "tracking": 2.0},
        ]
    )
    kinds = [
        lambda: bd.PIDCONTROLLER(**gains),
        lambda: bd.DISCRETEPID(clock, **gains),
        lambda: bd.PID_S(clock, P=1.0, I=0.5, D=0.01),
    ]
    grow.through(grow.choose(kinds)(), [grow.scalar(), grow.scalar()], ())


def wave(grow):
    bd, clock = grow.bd, grow.choose(grow.clocks)
    kinds = [
        lambda: bd.PULSE(0.7, 0.11, 0.4, delay=0.02),
        lambda: bd.CHIRP(0.5, 6.0, 0.3, 0.6),
        lambda: bd.CHIRP(0.5, 6.0, 0.2, 0.6, sweep="logarithmic"),
        lambda: bd.MULTISINE([1.0, 3.0], [0.3, 0.2]),
        lambda: bd.NOISE(clock, std=0.3, seed=5),
    ]
    grow.give(grow.choose(kinds)(), ())


def estimated(grow):
    bd = grow.bd
    signals = [bd.MUX(1), bd.MUX(1)]
    for one in signals:
        bd.connect(grow.scalar(), one)
    A, B, C = [[1.0, 0.05], [-0.1, 0.9]], [[0.0], [0.05]], [[1.0, 0.0]]
    grow.through(bd.KALMAN(grow.choose(grow.clocks), A, B, C, 0.01, 0.1), signals, (2,))


def of_mechanism(grow):
    bd, q, qd = grow.bd, pair(grow), pair(grow)
    kinds = [
        (bd.GRAVITYLOAD, [q], [(2,)]),
        (bd.JOINTLIMIT, [q, qd], [(2,)]),
        (bd.INVERSEDYNAMICS, [q, qd, pair(grow)], [(2,)]),
        (bd.SENSITIVITY, [q, qd, moderate(grow, grow.scalar(), ())], [(2, 2), (2, 2), (2, 1)]),
        (bd.KINEMATICS, [q, qd], [(4, 4), (6,), (6, 2), (3,)]),
    ]
    block, signals, shapes = grow.choose(kinds)
    grow.through(block("acrobot"), signals, *shapes)


def controlled(grow):
    bd = grow.bd
    plant = bd.HYBRIDDYNAMICS("acrobot", q0=[0.4, 0.2])
    law = bd.CONTROLLER("acrobot", grow.choose(["energy", "lqr", "pd"]), limit=grow.choose([None, 3.0]))
    bd.connect(plant[0], law[0])
    bd.connect(plant[1], law[1])
    bd.connect(law[0], plant[0])
    grow.give(plant, (2,), (2,))


def loaded(grow):
    bd = grow.bd
    shape = grow.choose(["rectangular", "smooth"])
    load = bd.PUSH("acrobot", schedule=[(0.05, 0.1, [0, 5.0, 0]), (0.17, 0.22, [3.0, 0, 0])], shape=shape)
    if grow.choose([True, False]):
        load, force = bd.WRENCH("acrobot", load="force"), bd.MUX(3)
        for k in range(3):
            bd.connect(moderate(grow, grow.scalar(), ()), force[k])
        bd.connect(force, load)
    plant = bd.HYBRIDDYNAMICS("acrobot", q0=[0.1, 0.5], wrench=True)
    grow.through(plant, [moderate(grow, grow.scalar(), ()), load], (2,), (2,))


#: Those whose signals do not jump where an input does not.
PLAIN = [
    integrator, linear_system, derivative, held, summed, difference, sampled_system, source, motion, gain,
    matrix_gain, total, product, power, side_by_side, parts, part, matrix, size, table, function, plant, asked,
    effort, event, event,
]  # fmt: skip
KINDS = [
    *PLAIN, bent, bent, looked_up, switched, switched, truths, remembering, remembering, late, late, edge, filtered,
    in_states, regulated, regulated, wave, estimated, of_mechanism, controlled, loaded,
]  # fmt: skip


def build(bd, steps, kinds=KINDS):
    """Grow a diagram from steps, each a kind (its place in `kinds`) and numbers that decide what is left open."""
    grow = Growing(bd, [])
    integrator(grow)
    source(grow)
    for kind, *numbers in steps:
        grow._numbers = iter(numbers)
        kinds[kind](grow)
    grow._numbers = iter(range(7, 1000, 3))
    for block, shape in grow.open:
        signal, _ = grow.signal(lambda other, shape=shape: other == shape)
        bd.connect(moderate(grow, signal, shape), block[0])
    for outputs in grow.outputs.values():
        for output in outputs:
            bd.connect(output, bd.NULL())
    return bd
