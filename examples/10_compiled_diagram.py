"""A diagram as one compiled function: how fast it is, how to read it, and how a block of your own joins.

The block is a spring that stiffens. The engine calls its method `output` once with symbols in place of numbers, and
compiles what that writes down; the stiffness stays a number that can be changed and tuned. Nothing is said twice.
"""

import time

from bdsim.components import FunctionBlock

import cstormpy as cs


class HardSpring(FunctionBlock):
    """A force k (x + h x³) that draws back."""

    nin, nout = 1, 1

    def __init__(self, stiffness=1.0, hardening=0.5, **blockargs):
        super().__init__(**blockargs)
        self.stiffness, self.hardening = stiffness, hardening

    def output(self, t, u, x):
        return [-self.stiffness * (u[0] + self.hardening * u[0] ** 3)]


def build(sim):
    bd = sim.blockdiagram("hard spring")
    speed, place = bd.INTEGRATOR(x0=0.0, name="speed"), bd.INTEGRATOR(x0=1.0, name="place")
    spring, damper, total = HardSpring(4.0, bd=bd, name="spring"), bd.GAIN(-0.1, name="damper"), bd.SUM("++")
    bd.connect(speed, place, damper)
    bd.connect(place, spring)
    bd.connect(spring, total[0])
    bd.connect(damper, total[1])
    bd.connect(total, speed)
    return bd


def main(T=100.0):
    runs = {}
    for engine in ("interpreted", "compiled"):
        sim = cs.Simulation(engine=engine, live=False)
        bd = build(sim)
        sim.run(bd, T=0.1)  # what is compiled is kept
        begin = time.perf_counter()
        out = runs[engine] = sim.run(bd, T=T)
        seconds = time.perf_counter() - begin
        print(f"{engine}: {T:g} s in {1e3 * seconds:.0f} ms, the mass ends at {out.x[-1, 1]:.6f} m")
    print(sim.explain(bd))
    print(sim.source(bd))
    return runs


if __name__ == "__main__":
    main()
