"""bdsim's linear blocks with several inputs and outputs, beside scipy."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.linalg import expm
from scipy.signal import dlsim, lsim

import cstormpy as cs
from cstormpy.errors import CstormError

A = np.array([[0.0, 1.0, 0.2], [-2.0, -0.3, 0.1], [0.3, 0.0, -0.5]])
B = np.array([[1.0, 0.0], [0.5, 1.0], [0.0, -1.0]])
C = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 2.0]])
D = np.array([[0.3, 0.0], [-1.0, 0.4]])
X0 = [0.1, -0.2, 0.3]


@pytest.fixture(params=["interpreted", "compiled"])
def sim(request):
    return cs.Simulation(engine=request.param, live=False)


def fed(bd, system):
    """Feed a system of two inputs by a sine and a ramp, and take its outputs."""
    sine = bd.FUNCTION(lambda t: math.sin(2.0 * t))
    time = bd.TIME()
    bd.connect(time, sine)
    for port, source in enumerate((sine, time)[: system.nin]):
        bd.connect(source, system[port])
    for port in range(system.nout):
        bd.connect(system[port], bd.NULL())


def inputs(t):
    return np.column_stack([np.sin(2.0 * t), t])


@pytest.mark.parametrize("feedthrough", [None, D], ids=["strictly proper", "with D"])
@pytest.mark.parametrize("outputs", [1, 2])
@pytest.mark.parametrize("count", [1, 2])
def test_a_continuous_system_runs_with_several_inputs_and_outputs(sim, feedthrough, outputs, count):
    # with two outputs it could not run: all of them came as one array
    direct = None if feedthrough is None else feedthrough[:outputs, :count]
    bd = sim.blockdiagram()
    system = bd.LTI_SS(A=A, B=B[:, :count], C=C[:outputs], D=direct, x0=X0, name="system")
    fed(bd, system)
    out = sim.run(bd, T=4.0, watch=["system"], rtol=1e-11, atol=1e-13)
    fine = np.linspace(0.0, 4.0, 8001)  # scipy takes inputs for straight lines between its samples
    given = np.zeros((outputs, count)) if direct is None else direct
    _, wanted, _ = lsim((A, B[:, :count], C[:outputs], given), inputs(fine)[:, :count], fine, X0)
    for port in range(outputs):
        want = np.interp(out.t, fine, wanted.reshape(len(fine), -1)[:, port])
        np.testing.assert_allclose(out.signal(f"system[{port}]"), want, rtol=0, atol=1e-6)


@pytest.mark.parametrize("outputs", [1, 2])
def test_a_sampled_system_with_feedthrough_runs_with_several_inputs_and_outputs(sim, outputs):
    bd = sim.blockdiagram()
    system = bd.LTI_SS_S(bd.clock(0.1, "s"), A=0.5 * A, B=B, C=C[:outputs], D=D[:outputs], x0=X0, name="system")
    fed(bd, system)
    out = sim.run(bd, T=1.0, watch=["system"])
    ticks = 0.1 * np.arange(10)
    _, wanted, _ = dlsim((0.5 * A, B, C[:outputs], D[:outputs], 0.1), inputs(ticks), x0=X0)
    for port in range(outputs):
        np.testing.assert_allclose(out.signal(f"system[{port}]")[:10], wanted[:, port], rtol=0, atol=1e-12)


def test_a_sampled_system_without_feedthrough_has_its_new_state_from_the_tick_on(sim):
    bd = sim.blockdiagram()
    system = bd.LTI_SS_S(bd.clock(0.1, "s"), A=0.5 * A, B=B, C=C, x0=X0, name="system")
    fed(bd, system)
    out = sim.run(bd, T=1.0, watch=["system"])
    ticks = 0.1 * np.arange(11)
    _, wanted, _ = dlsim((0.5 * A, B, C, np.zeros((2, 2)), 0.1), inputs(ticks), x0=X0)
    for port in range(2):
        np.testing.assert_allclose(out.signal(f"system[{port}]")[:10], wanted[1:, port], rtol=0, atol=1e-12)


def test_a_closed_loop_of_two_systems_with_two_ports_each(sim):
    bd = sim.blockdiagram()
    plant = bd.LTI_SS(A=A, B=B, C=C, x0=X0, name="plant")
    law = bd.LTI_SS(A=-np.eye(2), B=np.eye(2), C=-0.5 * np.eye(2), name="law")
    for port in range(2):
        bd.connect(plant[port], law[port])
        bd.connect(law[port], plant[port])
    found = sim.linearize(bd)
    loop = np.block([[A, -0.5 * B], [C, -np.eye(2)]])
    np.testing.assert_allclose(found.A, loop, rtol=0, atol=1e-12)
    out = sim.run(bd, T=2.0, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(out.x[-1], expm(2.0 * loop) @ [*X0, 0.0, 0.0], rtol=0, atol=1e-8)


def test_a_derivative_of_a_matrix_entry_goes_through_both_outputs(sim):
    bd = sim.blockdiagram()
    system = bd.LTI_SS(A=np.diag([-1.0, -2.0]), B=np.eye(2), C=np.eye(2), x0=[1.0, 1.0], name="system")
    total = bd.INTEGRATOR(name="total")
    both = bd.SUM("+-")
    for port in range(2):
        bd.connect(bd.CONSTANT(0.0), system[port])
        bd.connect(system[port], both[port])
    bd.connect(both, total)
    found = sim.gradient(bd, "total[0]", ["system.C[0, 0]", "system.C[1, 1]"], T=1.0, rtol=1e-10, atol=1e-12)
    assert found.gradient == pytest.approx([1.0 - math.exp(-1.0), -0.5 * (1.0 - math.exp(-2.0))], abs=1e-8)


def test_numbers_and_lists_are_matrices_as_bdsims_documentation_has_them(sim):
    bd = sim.blockdiagram()
    one = bd.LTI_SS(A=-2, B=1, C=-1, x0=[1.0], name="one")
    two = bd.LTI_SS([[0, 1], [-1, 0]], [0, 1], [[1, 0], [0, 1]], x0=[1, 0], name="two")
    bd.connect(bd.CONSTANT(0.0), one)
    bd.connect(bd.CONSTANT(0.0), two)
    bd.connect(two[0], bd.NULL())
    bd.connect(two[1], bd.NULL())
    bd.connect(one, bd.NULL())
    out = sim.run(bd, T=1.0, watch=["one", "two"], rtol=1e-10, atol=1e-12)
    assert out.signal("one")[-1] == pytest.approx(-math.exp(-2.0), abs=1e-9)
    assert out.signal("two[1]")[-1] == pytest.approx(-math.sin(1.0), abs=1e-9)
    with pytest.raises(CstormError, match=r"x0: expected 2 numbers"):
        bd.LTI_SS(np.eye(2), np.eye(2), np.eye(2), x0=[1.0])
    with pytest.raises(CstormError, match=r"A: expected real numbers, got the text 'a'"):
        bd.LTI_SS("a", np.eye(2), np.eye(2))


@pytest.mark.parametrize("limit", [1, [-1, 1], (-1.0, 1.0), 1.0, np.float64(1.0)], ids=str)
@pytest.mark.parametrize("kind", ["PID", "PID_S"])
def test_every_form_of_a_limit_of_pid_is_heeded(kind, limit):
    # a whole number and a list were left out, without a word
    sim = cs.Simulation(engine="interpreted", live=False)
    bd = sim.blockdiagram()
    first = (bd.clock(0.1, "s"),) if kind == "PID_S" else ()
    pid = getattr(bd, kind)(*first, P=1.0, I=5.0, I_limit=limit)
    total = bd.INTEGRATOR()
    bd.connect(bd.CONSTANT(0.0), pid[0])
    bd.connect(bd.CONSTANT(1.0), pid[1])
    bd.connect(pid, total)
    out = sim.run(bd, T=2.0, watch="all")
    assert max(np.max(out.signal(name)) for name in out.ynames if "/I" in name) == 1.0


@pytest.mark.parametrize("limit", ["one", (1.0, 2.0, 3.0)])
def test_a_limit_of_pid_that_cannot_be_is_refused(limit):
    bd = cs.Simulation(live=False).blockdiagram()
    with pytest.raises(CstormError, match=r"I_limit: expected (real numbers|shape .*; give a number, or the least)"):
        bd.PID(P=1.0, I=1.0, I_limit=limit)


def test_the_filtered_derivatives_take_vectors_and_numbers(sim):
    bd = sim.blockdiagram()
    slope, vector = bd.DERIV2(50.0, name="slope"), bd.DERIV(50.0, x0=[0.0, 0.0], name="vector")
    gain = bd.GAIN(np.array([[1.0], [-2.0]]), premul=True)
    ramp = bd.FUNCTION(lambda t: np.array([t]))
    bd.connect(bd.TIME(), ramp, slope)
    bd.connect(ramp, gain)
    bd.connect(gain, vector)
    bd.connect(vector, bd.INTEGRATOR([0.0, 0.0]))
    bd.connect(slope, bd.NULL())
    out = sim.run(bd, T=1.0, watch=["slope"])
    assert out.signal("slope")[-1] == pytest.approx(1.0, abs=1e-3)
    np.testing.assert_allclose(out.x[-1][-2:], np.array([1.0, -2.0]) * (1.0 - 1.0 / 50.0), rtol=0, atol=1e-4)
