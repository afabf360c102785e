"""What tells the diagrams of sweeps apart: all numbers that they are made of, and nothing that a run leaves behind."""

import functools
import itertools
import os
import subprocess
import sys
from collections import deque
from pathlib import Path

import numpy as np
import pytest
from bdsim.block import FunctionBlock

import cstormpy as cs
from cstormpy import control
from cstormpy.simulation.sweep.identity import diagram_identity, option_identity
from cstormpy.simulation.wiring import compile_diagram

GRID = {"gain.K": [1.0, 2.0]}


class Filter:
    """What a user's block may hold: a number that was given, and what it remembers."""

    def __init__(self, share):
        self.share, self.level = share, 0.0

    def update(self, u):
        self.level += self.share * (u - self.level)
        return self.level


class Smooth(FunctionBlock):
    """A user's block that remembers in many ways what it has seen."""

    def __init__(self, share, **blockargs):
        super().__init__(nin=1, nout=1, **blockargs)
        self._filter, self._seen, self.calls, self._latest = Filter(share), deque(maxlen=5), 0, None

    def start(self, simstate):
        self._begin()

    def output(self, t, u, x):
        self.calls += 1
        self._seen.append(t)
        return [self._filter.update(u[0])]

    def _begin(self):
        self._latest = np.arange(3.0)


def chain(
    sim,
    freq=1.0,
    A=-1.0,
    period=0.1,
    offset=0.0,
    table=(0.0, 1.0),
    slope=2.0,
    share=0.5,
    steps=((0.0, 1.0), (0.5, 2.0)),
):
    """Return blocks whose numbers are no tunable parameters, one behind the other."""
    bd = sim.blockdiagram("chain")
    blocks = [
        bd.WAVEFORM("sine", freq=freq, name="wave"),
        bd.GAIN(1.0, name="gain"),
        bd.LTI_SS(A=np.array([[A]]), B=np.array([[1.0]]), C=np.array([[1.0]]), name="lag"),
        bd.ZOH(bd.clock(period, unit="s", offset=offset), x0=0.0, name="hold"),
        bd.INTERPOLATE(x=[-9.0, 9.0], y=list(table), name="table"),
        bd.FUNCTION(lambda u: slope * u, name="function"),
        bd.add_block(Smooth(share, name="smooth")) or bd["smooth"],
        bd.SCOPE(name="scope"),
    ]
    for one, other in itertools.pairwise(blocks):
        bd.connect(one, other)
    bd.connect(bd.PIECEWISE(*steps, name="steps"), bd.NULL(name="end"))
    return bd


def arm(sim, law="pd", limit=25.0, kp=5.0, gravity=-9.81):
    """Return an acrobot with one of two laws."""
    mech = cs.library.acrobot().with_gravity([0.0, gravity, 0.0])
    laws = {"pd": control.law("pd", mech, kp=kp, limit=limit), "energy": control.law("energy", mech)}
    bd = sim.blockdiagram("arm")
    plant = bd.HYBRIDDYNAMICS(mech, q0=[1.5, 0.0], name="plant")
    controller = bd.CONTROLLER(mech, laws, law=law, name="controller")
    bd.connect(plant[0:2], controller[0:2])
    bd.connect(controller.tau, plant.tau)
    return bd


@pytest.fixture
def sim():
    return cs.Simulation(engine="interpreted", live=False, graphics=False)


def identity(bd):
    compile_diagram(bd)
    return diagram_identity(bd)


@pytest.mark.parametrize(
    ("build", "grid", "block", "changed"),
    [
        (chain, GRID, "wave", {"freq": 0.3}),
        (chain, GRID, "lag", {"A": -9.0}),
        (chain, GRID, "hold", {"period": 0.7}),
        (chain, GRID, "hold", {"offset": 0.05}),
        pytest.param(chain, GRID, "table", {"table": (0.0, 3.0)}, marks=pytest.mark.slow),
        (chain, GRID, "function", {"slope": 3.0}),
        (chain, GRID, "smooth", {"share": 0.1}),
        (chain, GRID, "steps", {"steps": ((0.0, 1.0), (0.6, 2.0))}),
        (arm, {"plant.elbow.q": [0.1]}, "controller", {"limit": 0.5}),
        (arm, {"plant.elbow.q": [0.1]}, "controller", {"kp": 6.0}),
        (arm, {"plant.elbow.q": [0.1]}, "controller", {"law": "energy"}),
        (arm, {"plant.elbow.q": [0.1]}, "plant", {"gravity": -1.6}),
    ],
)
def test_results_of_other_numbers_are_refused(sim, tmp_path, build, grid, block, changed):
    """Only tunable parameters were looked at: a sweep of other options gave back the results of the first."""
    path = tmp_path / "sweep"
    sweep = functools.partial(sim.sweep, grid=grid, measure=lambda out: out.t[-1], T=0.1, resume=path)
    assert not sweep(build).failed.any()
    (name,) = changed
    with pytest.raises(cs.FileFormatError, match=f"its options differ: {name} was not there and is "):
        sweep(build, **changed)
    for other in (functools.partial(build, **changed), build(sim, **changed)):
        with pytest.raises(cs.FileFormatError, match=f"its diagram differs: .*block '{block}' was "):
            sweep(other)
    mine, others = identity(build(sim)), identity(build(sim, **changed))
    assert next(key for key in mine if mine[key] != others[key]) == f"block '{block}'"


@pytest.mark.parametrize("build", [chain, arm])
def test_a_run_changes_nothing(sim, build):
    bd = build(sim)
    before = identity(bd)
    assert before == identity(build(sim))
    sim.run(bd, T=0.5)
    assert diagram_identity(bd) == before


@pytest.mark.parametrize("name", ["acrobot", "pendulum", "seven_joint_arm", "swing_sensitivity", "two_link_arm"])
def test_a_run_of_a_shipped_diagram_changes_nothing(sim, name):
    bd = cs.diagrams.load(name).build(sim)
    before = identity(bd)
    sim.run(bd, T=0.2)
    assert diagram_identity(bd) == before == identity(cs.diagrams.load(name).build(sim))


@pytest.mark.parametrize("build", [chain, arm])
def test_a_sweep_goes_on_after_its_diagram_was_run(sim, tmp_path, build):
    path, bd = tmp_path / "sweep", build(sim)
    grid = GRID if build is chain else {"plant.elbow.q": [0.1, 0.2]}
    sweep = functools.partial(sim.sweep, bd, grid, lambda out: out.t[-1], T=0.3, resume=path)
    sweep()
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:2]))  # the header and the first run
    sim.run(bd, T=0.3)
    assert sweep().status == "finished"


@pytest.mark.slow
def test_another_process_tells_the_same(sim):
    script = (
        f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r})\n"
        "import cstormpy as cs, test_sweep_identity as here\n"
        "sim = cs.Simulation(engine='interpreted', live=False, graphics=False)\n"
        "print([here.identity(build(sim)) for build in (here.arm, here.chain)])\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(cs.__file__).parent.parent), "PYTHONHASHSEED": "7"}
    said = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, timeout=120)
    assert said.stdout.strip().endswith(str([identity(build(sim)) for build in (arm, chain)])), said.stderr


def test_options_are_told_by_what_they_are():
    assert option_identity(0.1 + 0.2) == 0.1 + 0.2 and option_identity(np.float64(2.0)) == 2.0
    assert option_identity(float("inf")) == "inf" and option_identity(None) is None
    assert option_identity({"b": 1, "a": [True]}) == ["dict", [["a", ["list", True]], ["b", 1]]]
    assert option_identity({"x", "y", "z"}) == option_identity({"z", "y", "x"})
    many = [option_identity(np.linspace(0.0, end, 50)) for end in (1.0, 1.0, 1.1)]
    assert many[0] == many[1] != many[2] and len(many[0]) < 80
    laws = [option_identity(control.law("pd", cs.library.acrobot(), kp=kp)) for kp in (5.0, 5.0, 5.1)]
    assert laws[0] == laws[1] != laws[2]
    functions = [option_identity(functools.partial(max, *[k] * 3)) for k in (1, 1, 2)]
    assert functions[0] == functions[1] != functions[2]
    held = Filter(0.5)
    held.self = held
    assert option_identity(held) == option_identity(held)
    assert option_identity(np.random.default_rng(1)) == option_identity(np.random.default_rng(2))


def test_a_constraint_that_is_said_by_a_function_is_told_by_it(sim, tmp_path):
    """No diagram of a mechanism with one could be swept: such a mechanism has no words in a file."""

    def build(sim, loop):
        bd = sim.blockdiagram("geared")
        mech = cs.library.planar_2r().with_drive(actuated=["shoulder"]).replace(loops=[loop])
        bd.connect(bd.CONSTANT(1.0, name="torque"), bd.HYBRIDDYNAMICS(mech, name="plant").tau)
        return bd

    def geared(ratio):
        return cs.Constraint(lambda q: q[1] - ratio * q[0], name="gear")

    def swept(loop, **options):
        return sim.sweep(
            functools.partial(build, loop=loop),
            {"torque.value": [1.0, 2.0]},
            "plant.elbow.q",
            T=0.2,
            progress=False,
            **options,
        )

    found = swept(geared(2.0), resume=(path := tmp_path / "sweep.jsonl"))
    coupled = swept(cs.Coupling("elbow", "shoulder", ratio=2.0))
    np.testing.assert_allclose(found["plant.elbow.q"], coupled["plant.elbow.q"], rtol=1e-9)
    np.testing.assert_array_equal(swept(geared(2.0), resume=path)["plant.elbow.q"], found["plant.elbow.q"])
    with pytest.raises(cs.FileFormatError, match=r"its diagram differs: .*block .plant. was "):
        swept(geared(3.0), resume=path)
