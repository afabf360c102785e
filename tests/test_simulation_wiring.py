"""Diagrams that cannot run say why, port by port; our blocks are found in every way; bdsim is left as it was."""

from __future__ import annotations

import sys
import textwrap

import numpy as np
import pytest
from bdsim.components import ContinuousBlock, FunctionBlock
from bdsim_examples import EXAMPLES, feedback, plain
from processes import in_a_process

import cstormpy as cs


@pytest.fixture
def sim():
    return cs.Simulation()


def test_a_simulation_says_how_it_runs_diagrams():
    # bdsim's own text lists each of its options in a line, most of them None
    sim = cs.Simulation(engine="compiled", live=False, graphics=False, progress=False)
    assert str(sim) == "Simulation(engine='compiled', live=False, graphics=False, hold=True, progress=False)"


def refused(sim, bd, *parts, ours=True):
    """Check that a diagram is refused with a message that holds some parts, when it runs and, ours, is compiled."""
    messages = []
    for ask in (lambda: sim.run(bd, 1.0), bd.compile if ours else lambda: sim.run(bd, 1.0), lambda: sim.run(bd, 1.0)):
        with pytest.raises(cs.DiagramError) as caught:
            ask()
        messages.append(str(caught.value))
    assert messages[0] == messages[1] == messages[2]
    for part in parts:
        assert part in messages[0], messages[0]
    return messages[0]


def test_an_open_port(sim):
    bd = sim.blockdiagram()
    total = bd.SUM("++", name="total")
    bd.connect(bd.CONSTANT(1.0), total[0])
    refused(sim, bd, "input port 1 of block 'total' (SUM) is not connected", "total[1]", "bd.CONSTANT")
    bd.connect(bd.CONSTANT(1.0), total[1])
    assert sim.run(bd, 1.0).status == "finished"


def test_an_open_port_is_named(sim):
    bd = sim.blockdiagram()
    bd.HYBRIDDYNAMICS("acrobot", name="plant")
    refused(sim, bd, "input port 0 ('tau') of block 'plant' (HYBRIDDYNAMICS) is not connected")


def test_an_open_port_inside_a_subsystem(sim):
    inner = sim.blockdiagram(name="inner")
    gain, out = inner.GAIN(2, name="gain"), inner.OUTPORT(1)
    inner.INPORT(1)
    inner.connect(gain, out)
    bd = sim.blockdiagram()
    use = bd.SUBSYSTEM(inner, name="use")
    bd.connect(bd.CONSTANT(1.0), use)
    bd.connect(use, bd.NULL())
    refused(sim, bd, "in subsystem 'use': input port 0 of block 'gain' is not connected")


def test_a_port_driven_twice(sim):
    bd = sim.blockdiagram()
    one, two, gain = bd.CONSTANT(1.0, name="one"), bd.CONSTANT(2.0, name="two"), bd.GAIN(1, name="target")
    bd.connect(one, gain)
    bd.connect(two, gain)
    message = refused(sim, bd, "input port 0 of block 'target' (GAIN) is driven twice", "SUM")
    assert "'one'" in message and "'two'" in message


def test_a_port_that_does_not_exist(sim):
    bd = sim.blockdiagram()
    gain = bd.GAIN(1, name="k")
    unwired(bd, bd.CONSTANT(1.0, name="c"), gain[5], "block 'k' (GAIN) is wired at input port 5, but it has 1 input")
    unwired(bd, bd.CONSTANT(1.0, name="d")[3], gain, "block 'd' (CONSTANT) is wired at output port 3, but it has 1")
    unwired(bd, bd.NULL(name="sink")[0], gain, "block 'sink' (NULL) is wired at output port 0, but it has no outputs")
    unwired(bd, gain["u"], gain, "has no port 'u'", "k[0]", error=cs.errors.InvalidType)


def test_a_port_that_does_not_exist_on_a_diagram_of_bdsim(sim):
    bd = plain().blockdiagram()
    bd.connect(bd.CONSTANT(1.0), bd.GAIN(1, name="k")[5])
    refused(sim, bd, "block 'k' (GAIN) is wired at input port 5, but it has 1 inputs, counted from 0", ours=False)


def unwired(bd, start, end, *parts, error=cs.DiagramError):
    """Check that a wire is refused where it is drawn, with a message that holds some parts, and leaves nothing."""
    wires = len(bd.wirelist)
    with pytest.raises(error) as caught:
        bd.connect(start, end)
    assert len(bd.wirelist) == wires
    for part in parts:
        assert part in str(caught.value), str(caught.value)


def test_as_many_ports_are_connected(sim):
    """bdsim asserts that the numbers match, without a name."""
    bd = sim.blockdiagram()
    plant, law = bd.HYBRIDDYNAMICS("acrobot", name="plant"), bd.CONTROLLER("acrobot")
    two = ("'plant' (HYBRIDDYNAMICS) stands for 2 outputs (q, qd), ", "for 1 input")
    unwired(bd, plant, bd.SCOPE(), *two, "as in bd.connect(plant[0], scope[0])")
    unwired(bd, law, plant.tau, "3 outputs (tau, law, phase), plant[0] for 1 input (tau)")
    unwired(bd, plant[0:2], law[0:1], "plant[0:2] stands for 2 outputs", "controller[0:1] for 1 input")
    unwired(bd, bd.NULL(name="sink"), law, "no outputs", "a block with outputs")
    bd.connect(plant[0:1], law[0])
    bd.connect(plant[1], law[1:2])
    bd.connect(law.tau, plant)
    ends = [(wire.start.port, wire.end.port) for wire in bd.wirelist[-3:]]
    assert ends == [(0, 0), (1, 1), (0, 0)]


def test_the_side_of_a_named_port(sim):
    """bdsim takes an input for the output of the same number, and runs."""
    bd = sim.blockdiagram()
    plant, gain = bd.HYBRIDDYNAMICS("acrobot", name="plant"), bd.GAIN(1)
    unwired(bd, plant.tau, gain, "'tau' is an input of block 'plant'", "'q', 'qd'")
    unwired(bd, gain, plant.q, "'q' is an output of block 'plant'", "'tau'")
    with pytest.raises(AttributeError, match="block 'plant': input 'torque' does not exist"):
        plant.torque = gain
    with pytest.raises(cs.errors.UnknownName, match="block 'plant': port 'qq' does not exist; did you mean 'q'"):
        plant.qq  # noqa: B018
    with pytest.raises(cs.errors.UnknownName, match=r"'wrench' does not .* HYBRIDDYNAMICS\(..., wrench=True\) has it"):
        plant.wrench  # noqa: B018
    with pytest.raises(AttributeError, match=r"input 'base' does not .* HYBRIDDYNAMICS\(..., base=True\) has it$"):
        plant.base = gain
    assert not hasattr(plant, "torque")


def test_what_is_no_port(sim):
    bd, other = sim.blockdiagram(), sim.blockdiagram()
    gain = bd.GAIN(1, name="k")
    wrong = {"error": cs.errors.InvalidType}
    unwired(bd, 0.5, gain, "bd.CONSTANT(0.5)", **wrong)
    unwired(bd, gain, "scope", "got 'scope'", **wrong)
    unwired(bd, [gain, gain], gain, "once for each", **wrong)
    unwired(bd, other.GAIN(1, name="far"), gain, "block 'far' (GAIN) is in another diagram")
    with pytest.raises(cs.DiagramError, match=r"'k' \(GAIN\) has no end"):
        bd.connect(gain)

    class Hasty(FunctionBlock):
        nin = nout = 1

        def __init__(self):
            self.k = 1

        def output(self, t, u, x):
            return [u[0]]

    unwired(bd, gain, Hasty(), "class Hasty is not ready", "super().__init__(**blockargs)")


def test_a_kind_of_block_that_does_not_exist(sim):
    bd = sim.blockdiagram()
    for name, hint in (("GAINN", "'GAIN'"), ("scope", "'SCOPE'"), ("MINE", "MyBlock(..., bd=bd)")):
        with pytest.raises(AttributeError) as caught:
            getattr(bd, name)
        assert repr(name) in str(caught.value) and hint in str(caught.value)
        assert isinstance(caught.value, cs.CstormError)
    with pytest.raises(cs.CstormError, match=r"belongs to a toolbox of bdsim that is not installed here$"):
        bd.CAMERA()
    # those of the Robotics Toolbox that there are here by another name were refused without a word of it
    for name, ours in (("FKINE", "KINEMATICS"), ("JACOBIAN", "KINEMATICS"), ("INERTIA", "MASSMATRIX")):
        with pytest.raises(cs.CstormError, match=rf"belongs to a toolbox .*; here it is bd\.{ours}\(mech"):
            getattr(bd, name)(1)


def test_a_block_of_bdsim_of_a_name_that_is_taken(sim):
    bd = sim.blockdiagram()
    bd.GAIN(1, name="k")
    with pytest.raises(cs.CstormError, match="already has a block 'k'"):
        bd.GAIN(2, name="k")
    for name in ("", "$", "{}"):  # the second block of an empty name was told of as a name that is taken
        with pytest.raises(cs.InvalidValue, match="name: expected some text"):
            bd.GAIN(2, name=name)
    assert bd["k"].K == 1 and len(bd.blocklist) == 1


def test_declared_widths_are_compared(sim):
    bd = sim.blockdiagram()
    plant, law = bd.HYBRIDDYNAMICS("acrobot", name="plant"), bd.CONTROLLER("planar_2r", "pd")
    bd.connect(plant[0:2], law[0:2])
    bd.connect(law.tau, plant.tau)
    refused(
        sim, bd, "output port 0 ('tau') of block 'controller.0' carries 2 numbers", "'plant' (HYBRIDDYNAMICS) takes 1"
    )


def test_an_algebraic_loop_is_named_port_by_port(sim):
    bd = sim.blockdiagram()
    total, gain, twice = bd.SUM("+-", name="error"), bd.GAIN(3, name="k"), bd.FUNCTION(lambda x: 2 * x, name="twice")
    bd.connect(bd.CONSTANT(1.0), total[0])
    bd.connect(total, gain)
    bd.connect(gain, twice)
    bd.connect(twice, total[1])
    message = refused(sim, bd, "algebraic loop", "INTEGRATOR", "ZOH")
    for wire in (
        "output port 0 of block 'error' (SUM) -> input port 0 of block 'k' (GAIN)",
        "output port 0 of block 'k' (GAIN) -> input port 0 of block 'twice' (FUNCTION)",
        "output port 0 of block 'twice' (FUNCTION) -> input port 1 of block 'error' (SUM)",
    ):
        assert wire in message


def test_an_algebraic_loop_of_one_block(sim):
    bd = sim.blockdiagram()
    total = bd.SUM("++", name="itself")
    bd.connect(bd.CONSTANT(1.0), total[0])
    bd.connect(total, total[1])
    refused(sim, bd, "output port 0 of block 'itself' (SUM) -> input port 1 of block 'itself' (SUM)")


def test_an_algebraic_loop_through_feedthrough(sim):
    """A transfer function as high above as below passes its input on at once."""
    bd = sim.blockdiagram()
    lead, gain = bd.LTI_SISO([1, 1], [1, 2], name="lead"), bd.GAIN(-1, name="back")
    bd.connect(lead, gain)
    bd.connect(gain, lead)
    refused(sim, bd, "algebraic loop", "'lead'", "'back'")


def test_a_loop_with_a_state_is_none(sim):
    bd = sim.blockdiagram()
    feedback(bd)
    assert sim.run(bd, 1.0).status == "finished"


@pytest.mark.parametrize(
    ("kind", "arguments"),
    [("GAIN", {"nonsense": 1}), ("WAVEFORM", {"wave": "saw"}), ("EVENT", {"direction": "x", "func": print})],
)
def test_a_block_that_can_not_be_made_leaves_the_diagram_usable(sim, kind, arguments):
    bd = sim.blockdiagram()
    x = bd.INTEGRATOR(x0=0.0)
    bd.connect(bd.CONSTANT(1.0), x)
    before = [block.name for block in bd.blocklist]
    with pytest.raises(cs.CstormError, match=kind):
        getattr(bd, kind)(**arguments)
    assert [block.name for block in bd.blocklist] == before
    assert len(bd) == len(before)
    assert sim.run(bd, 1.0).x[-1, 0] == pytest.approx(1.0)


def test_the_name_of_a_block_that_could_not_be_made_is_free_again(sim):
    bd = sim.blockdiagram()
    bd.CONSTANT(1.0)
    for _ in range(2):
        with pytest.raises(cs.CstormError):
            bd.WAVEFORM(wave="saw", name="mine")
    good = bd.WAVEFORM(wave="sine", name="mine")
    assert good.name == "mine"
    bd.connect(good, bd.NULL())


def test_a_failed_block_with_inputs_leaves_no_wire(sim):
    bd = sim.blockdiagram()
    source = bd.CONSTANT(1.0)
    with pytest.raises(cs.CstormError):
        bd.WAVEFORM("saw", inputs=[source])
    assert bd.wirelist == []


def test_two_blocks_of_one_name(sim):
    bd = sim.blockdiagram()
    bd.connect(bd.CONSTANT(1.0, name="twin"), bd.NULL())
    with pytest.raises(cs.CstormError, match="twin"):
        bd.GAIN(1, name="twin")
    assert sim.run(bd, 1.0).status == "finished"


def test_wires_and_blocks_added_after_a_run(sim):
    bd = sim.blockdiagram()
    hold, x = bd.ZOH(bd.clock(0.1), name="hold"), bd.INTEGRATOR(x0=0.0, name="x")
    bd.connect(bd.CONSTANT(1.0), x, hold)
    sim.run(bd, 1.0)
    y = bd.INTEGRATOR(x0=0.0, name="y")
    bd.connect(x, y)
    out = sim.run(bd, 1.0)
    assert out.xnames == ["x:x_0", "y:x_0"]
    assert out.x[-1].tolist() == pytest.approx([1.0, 0.5])
    clock = next(out[key] for key in out if key.startswith("clock"))
    assert clock.Xnames == ["hold:X_0"]
    bd.GAIN(2, name="open")
    refused(sim, bd, "block 'open'")


def test_states_of_controllers_and_of_sampled_blocks_have_names(sim):
    inner = sim.blockdiagram(name="inner")
    clock, way_in = inner.clock(0.1, name="clock"), inner.INPORT(1)
    pid, sampled = inner.PIDCONTROLLER(n=2, name="pid"), inner.DISCRETEPID(clock, n=2, name="sampled")
    inner.connect(way_in, pid.reference, pid.measured, sampled.reference, sampled.measured)
    inner.connect(sampled, inner.OUTPORT(1))
    inner.connect(pid, inner.EFFORT(name="effort"))
    bd = sim.blockdiagram()
    kept = bd.ZOH(bd.clock(0.2, name="slow"), name="hold", snames=["kept"])
    loop = bd.SUBSYSTEM(inner, name="loop")
    bd.connect(bd.CONSTANT([1.0, 2.0]), loop)
    bd.connect(loop, bd.NULL())
    bd.connect(bd.CONSTANT(3.0), kept)
    filter = bd.EKF(bd.clock(0.3, name="own"), "pendulum", R=1.0, name="ekf")
    bd.connect(bd.CONSTANT(0.0), filter[0], filter[1])
    out = sim.run(bd, 1.0)
    kinds = [f"{kind}[{k}]" for kind in ("integral", "filter") for k in range(2)]
    assert out.xnames == [*(f"loop/pid:{kind}" for kind in kinds), "loop/effort.effort"]
    names = {tuple(block.name for block in clock.blocklist): clock.statenames for clock in bd.clocklist}
    assert names["hold",] == ["kept"]
    of_pid = [f"{kind}[{k}]" for kind in ("integral", "derivative", "difference") for k in range(2)]
    assert names["loop/sampled",] == [f"loop/sampled:{kind}" for kind in of_pid]
    motion = [f"ekf:{bd['ekf'].mech.names[0]}.{kind}" for kind in ("q", "qd")]
    assert names["ekf",] == [*motion, "ekf:P[0,0]", "ekf:P[0,1]", "ekf:P[1,0]", "ekf:P[1,1]"]
    for wrong, message in ((["a", "b"], "expected 1 name, got 2"), ("ab", "expected a list of names, got 'ab'")):
        before = list(bd.blocklist)
        with pytest.raises(cs.CstormError, match=f"^ZOH: snames: {message}"):
            bd.ZOH(bd.clock(0.1), snames=wrong)
        assert bd.blocklist == before


class Fall(ContinuousBlock):
    """A height and its rate, named in its class."""

    def __init__(self, snames=("height", "rate"), **blockargs):
        super().__init__(nin=1, nout=1, nstates=2, snames=list(snames), **blockargs)
        self._x0 = np.zeros(2)

    def output(self, t, u, x):
        return [x[0]]

    def deriv(self, t, u, x):
        return np.array([x[1], u[0]])


def test_states_that_the_class_of_a_block_names_have_its_name_too_where_there_are_two_of_it(sim, tmp_path):
    """A start gave to the first what the second was named for, and tables and files had one of both, in silence."""
    bd = sim.blockdiagram()
    for name, pull in (("left", -1.0), ("right", -2.0)):
        bd.connect(bd.CONSTANT(pull), Fall(bd=bd, name=name))
    bd.connect(bd.CONSTANT(1.0), bd.INTEGRATOR(0.0, name="alone"))
    held = [bd.ZOH(bd.clock(0.2), name=name, snames=["kept"]) for name in ("first", "second")]
    bd.connect(bd.TIME(), *held)
    out = sim.run(bd, 1.0, start={"right:height": 5.0})
    names = ["left:height", "left:rate", "right:height", "right:rate", "alone:x_0"]
    assert out.xnames == names and out.x[-1] == pytest.approx([-0.5, -1.0, 4.0, -2.0, 1.0])
    assert [clock.statenames for clock in bd.clocklist] == [["first:kept"], ["second:kept"]]
    out.save(tmp_path / "run.csv")
    assert cs.load(tmp_path / "run.csv").signal("right:height")[-1] == pytest.approx(4.0)
    with pytest.raises(cs.UnknownName, match=r"'height' is one of several blocks"):
        sim.run(bd, 1.0, start={"height": 5.0})
    alone = sim.blockdiagram()
    alone.connect(alone.CONSTANT(-1.0), Fall(bd=alone, name="left"))
    assert sim.run(alone, 1.0).xnames == ["height", "rate"]


def test_states_of_ones_own_block_that_have_one_name_are_refused(sim):
    bd = sim.blockdiagram()
    bd.connect(bd.CONSTANT(1.0), Fall(("rate", "rate"), bd=bd, name="fall"))
    with pytest.raises(cs.InvalidValue, match=r"block 'fall': snames: a name is empty or occurs twice"):
        sim.run(bd, 1.0)


def test_a_diagram_compiled_by_the_user(sim, capsys):
    bd = sim.blockdiagram()
    feedback(bd)
    unread = bd.GAIN(2, name="unread")
    bd.connect(bd.STEP(), unread)
    assert bd.compile()
    assert sim.run(bd, 1.0).status == "finished"
    assert capsys.readouterr().out == ""
    bd.compile(verbose=True)
    assert "Recompiling" in capsys.readouterr().out
    bd.connect(bd.FUNCTION(lambda: 1 / 0, nin=0, name="broken"), bd.NULL())
    with pytest.raises(cs.BlockError, match=r"^block 'broken' \(FUNCTION\), output: ZeroDivisionError"):
        bd.compile()


def test_the_same_diagram_under_two_simulations():
    one, two = cs.Simulation(), cs.Simulation()
    bd = one.blockdiagram()
    feedback(bd)
    np.testing.assert_array_equal(one.run(bd, 2.0).x, two.run(bd, 2.0).x)


# ------------------------------------------------------------------ beside bdsim


def by_bdsim(sim, example):
    bd, watch = example.wire(sim)
    bd.compile()
    return sim.run(bd, 2.0, watch=watch)


@pytest.mark.parametrize("ours_first", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_bdsim_itself_is_left_as_it_was(ours_first, capsys):
    """In a process of its own, because bdsim keeps its table of blocks for as long as the process lives."""
    script = f"""
        import sys
        sys.path.insert(0, {str(sys.path[0])!r}); sys.path[:0] = {[p for p in sys.path if p.endswith("tests")]!r}
        import contextlib, io
        import bdsim, numpy as np
        from bdsim_examples import EXAMPLES, plain

        def run():
            with contextlib.redirect_stdout(io.StringIO()):
                sim = plain()
                bd, watch = EXAMPLES["feedback held"].wire(sim)
                bd.compile()
                return sim.run(bd, 2.0, watch=watch), sorted(sim._blocklibrary)

        def ours():
            import cstormpy as cs
            sim = cs.Simulation()
            bd, watch = EXAMPLES["feedback held"].wire(sim)
            assert hasattr(bd, "HYBRIDDYNAMICS")
            return sim.run(bd, 2.0)

        if {ours_first}:
            ours(); out, blocks = run()
        else:
            out, blocks = run(); ours(); again, later = run()
            assert (again.x == out.x).all() and later == blocks
        assert type(bdsim.BDSim.run).__name__ == "function" and bdsim.BDSim.run.__module__ == "bdsim.run_sim"
        print(len(out.t), repr(float(out.x[-1, 0])), "GAIN" in blocks, "CONTROLLER" in blocks)
    """
    done = in_a_process(script)
    assert done.returncode == 0, done.stderr
    alone = by_bdsim(plain(), EXAMPLES["feedback held"])
    capsys.readouterr()
    count, end, gain, _ = done.stdout.split()
    assert (int(count), float(end), gain) == (len(alone.t), alone.x[-1, 0], "True")


@pytest.mark.slow
@pytest.mark.parametrize("set_", [True, False])
def test_our_blocks_are_found_from_anywhere(tmp_path, set_):
    """From another folder, with bdsim's environment variable of its own set or not, and after a plain bdsim."""
    script = """
        import bdsim
        plain = bdsim.BDSim(sysargs=False, banner=False, graphics=False)
        import cstormpy as cs
        bd = cs.Simulation().blockdiagram()
        plant = bd.HYBRIDDYNAMICS("acrobot")
        print(type(plant).__module__, plant.type)
    """
    done = in_a_process(script, cwd=tmp_path, environment={"BDSIMPATH": str(tmp_path)} if set_ else {})
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "cstormpy.blocks.dynamics hybriddynamics"


def test_every_method_of_bdsim_is_there(sim):
    ours, theirs = sim.blockdiagram(), plain().blockdiagram()
    names = [name for name in dir(theirs) if name.isupper()]
    assert len(names) > 40
    for name in names:
        assert callable(getattr(ours, name))
    assert "gain" in ours.GAIN.__doc__.lower()
    assert "func(block, states, *fargs" in ours.EVENT.__doc__, "bdsim tells of no states"


def test_an_unknown_block_suggests_a_name(sim):
    bd = sim.blockdiagram()
    with pytest.raises(AttributeError):
        bd.GIAN(2)


def test_what_a_simulation_does_is_not_asked_of_a_diagram(sim):
    bd = sim.blockdiagram()
    with pytest.raises(AttributeError, match=r"^a diagram has 'statenames' once it is compiled, as by bd\.compile\(\)"):
        sim.blockdiagram().statenames  # noqa: B018
    with pytest.raises(AttributeError, match=r"^a diagram has no 'run'; a simulation has, as in sim\.run\(bd\)$"):
        bd.run(T=1)
    with pytest.raises(cs.errors.UnknownName, match=r"^GAIN: argument 'gain' does not exist; there are 'K', "):
        bd.GAIN(gain=2)


def test_documented_in_a_shell():
    """The example in the class's docstring, as a user would run it, prints nothing but what it prints."""
    script = textwrap.dedent("""
        import cstormpy as cs
        sim = cs.Simulation()
        bd = sim.blockdiagram()
        decay = bd.INTEGRATOR(x0=1.0)
        bd.connect(decay, gain := bd.GAIN(-2.0))
        bd.connect(gain, decay)
        print(f"{sim.run(bd, T=1).x[-1, 0]:.5f}")
    """)
    done = in_a_process(script)
    assert (done.returncode, done.stdout, done.stderr) == (0, "0.13534\n", "")


def test_inputs_that_are_asked_for_from_outside_need_no_source(sim, tmp_path):
    def plant(source=False):
        bd = sim.blockdiagram()
        made = bd.HYBRIDDYNAMICS("acrobot", q0=[0.1, 0.0], name="plant")
        if source:
            bd.connect(bd.CONSTANT([0.0]), made.tau)
        return bd

    asked = {"inputs": ["plant.tau"], "outputs": ["plant.q"]}
    left, right = sim.stepper(plant(True), **asked), sim.stepper(plant(), **asked)
    for torque in (1.0, -2.0):
        np.testing.assert_array_equal(left.step([torque], 0.01), right.step([torque], 0.01))
    assert repr(right) == "<stepper of 'main' at t = 0.02: u = plant.tau[0]; y = plant.q[0], plant.q[1]>"
    left, right = sim.linearize(plant(True), **asked), sim.linearize(plant(), **asked)
    np.testing.assert_array_equal(left.B, right.B)
    assert sim.batch_stepper(plant(), count=3, **asked).inputs == ("plant.tau[0]",)
    hanging = sim.trim(plant(), inputs=["plant.tau"], x=[-np.pi / 2, 0.0, 0.0, 0.0])
    np.testing.assert_allclose(hanging.u, 0.0, atol=1e-9)
    sim.to_fmu(plant(), tmp_path / "plant.fmu", binary=False, **asked)
    with pytest.raises(cs.UnknownName, match=r"stepper: inputs: port of block 'plant' 'tauu' .* did you mean 'tau'"):
        sim.stepper(plant(), inputs=["plant.tauu"], outputs=["plant.q"])
    with pytest.raises(cs.DiagramError, match="not connected"):
        sim.run(plant(), 1.0)


def test_what_a_block_cannot_be_made_of_names_the_block(sim):
    bd = sim.blockdiagram()
    with pytest.raises(cs.ShapeError, match=r"^HYBRIDDYNAMICS 'left arm': q0: expected shape \(2,\), got \(3,\)"):
        bd.HYBRIDDYNAMICS("acrobot", q0=[1, 2, 3], name="left arm")
    with pytest.raises(cs.CstormError, match=r"^MECHANISMVIEW: mechanism 'acrobat' does not exist"):
        bd.MECHANISMVIEW("acrobat")
    assert not bd.blocklist
