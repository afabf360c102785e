"""CONTROLLER: laws swapped without a jump in torque, in bdsim's runner and in ours."""

from __future__ import annotations

import contextlib
import io
import threading

import bdsim
import numpy as np
import pytest
from simulations import ours, plain

import cstormpy as cs
from cstormpy.blocks.controllers import Controller
from cstormpy.blocks.dynamics import HybridDynamics
from cstormpy.control import Law, law
from cstormpy.control.blend import LawSet, blended
from cstormpy.control.tracking import PD
from cstormpy.errors import CstormError, InvalidType, InvalidValue, NonFinite, ShapeError, UnknownName
from cstormpy.mechanism import library

MECH = library.acrobot()
HANGING = np.array([-np.pi / 2 + 0.1, 0.0])
REST = np.zeros(2)


class Steady(Law):
    """A torque that does not change, a gain of its own, and a memory of how it was started."""

    tunable = ("level",)

    def __init__(self, level: float) -> None:
        super().__init__(MECH)
        self.level, self.started = level, []

    def start(self, t, q, qd):
        self.started.append((t, q.copy()))

    def torque(self, t, q, qd, reference=None):
        return np.full(1, self.level)


class Sways(Law):
    """A torque that moves by itself, at most by 3 N m/s."""

    def torque(self, t, q, qd, reference=None):
        return np.array([1.5 * np.sin(2.0 * t)])


class Phased(Law):
    """Changes its phase where q1 falls through the level of the present phase."""

    modes = ("above", "below")

    def torque(self, t, q, qd, reference=None):
        return np.full(1, [0.0, 0.5][self.mode])

    def margin(self, t, q, qd):
        return q[0] + 1.2 if self.mode == 0 else None

    def start(self, t, q, qd):
        self.mode = 0

    def switch(self, t, q, qd):
        self.switched = (t, q.copy())
        self.mode = 1


class Follows(Law):
    def torque(self, t, q, qd, reference=None):
        return np.array([sum(part[1] for part in reference)])


def steady(*levels):
    return {f"l{k}": Steady(level) for k, level in enumerate(levels)}


def running(controller):
    """Begin a run of a block without a diagram."""
    with contextlib.redirect_stdout(io.StringIO()):
        controller.test_start()
    return controller


def test_blend_is_the_formula():
    controller = running(Controller(MECH, steady(1.0, 5.0), blend=0.2))
    assert controller.test_output(HANGING, REST, t=1.0) == [1.0, 0.0, 0.0]
    controller.select("l1")
    for t, tau in ((2.0, 1.0), (2.05, 2.0), (2.15, 4.0), (2.2, 5.0), (3.0, 5.0)):
        assert controller.test_output(HANGING, REST, t=t) == [pytest.approx(tau), 1.0, 0.0]
    assert controller.laws.laws["l1"].started == [(2.0, pytest.approx(HANGING))]


def test_a_law_that_leaves_its_first_phase_at_once_is_swapped_in_without_a_jump():
    """The step was taken from the phase that the law begins in, and the torque jumped as it went on to the next one."""
    law = Phased(MECH)
    controller = running(Controller(MECH, {**steady(1.0), "phased": law}, blend=0.2))
    assert law.margin(2.0, HANGING, REST) < 0.0 and controller.test_output(HANGING, REST, t=1.0)[0] == 1.0
    controller.select("phased")
    assert controller.test_output(HANGING, REST, t=2.0)[0] == pytest.approx(1.0)
    assert law.mode == 1 and law.switched[0] == 2.0 and controller.laws.left(2.0, HANGING, REST) == 1.0


def test_a_swap_within_a_blend_goes_on_from_the_torque_that_is_there():
    controller = running(Controller(MECH, steady(0.0, 8.0, -2.0), blend=0.2))
    controller.test_output(HANGING, REST, t=0.0)
    controller.select("l1")
    controller.test_output(HANGING, REST, t=1.0)
    assert controller.test_output(HANGING, REST, t=1.1)[0] == pytest.approx(4.0)
    controller.select("l2")
    assert controller.test_output(HANGING, REST, t=1.1) == [pytest.approx(4.0), 2.0, 0.0]
    assert controller.test_output(HANGING, REST, t=1.2)[0] == pytest.approx(1.0)


def test_the_limit_holds_after_the_blend_and_zero_blend_swaps_at_once():
    controller = running(Controller(MECH, steady(9.0, -9.0), blend=0.0, limit=4.0))
    assert controller.test_output(HANGING, REST)[0] == 4.0
    controller.select(1)
    assert controller.test_output(HANGING, REST, t=1.0)[0] == -4.0


def test_pure_functions_allow_times_before_the_swap():
    # a step that is tried again asks for times before the point at which the blend began
    assert blended(np.array([1.0]), np.array([4.0]), -0.01, 0.04).tolist() == [5.0]
    assert blended(np.array([1.0]), np.array([4.0]), 0.0, 0.0).tolist() == [1.0]


def test_select_before_a_run_begins_with_that_law_without_a_blend():
    controller = Controller(MECH, steady(1.0, 5.0))
    controller.select("l1")
    controller.test_output(HANGING, REST)  # as compiling does: that is no run yet
    assert controller.active_law == "l1"
    running(controller)
    assert controller.test_output(HANGING, REST) == [5.0, 1.0, 0.0]


def test_each_run_begins_with_the_same_law():
    controller = running(Controller(MECH, steady(1.0, 5.0, 7.0), law="l2"))
    controller.test_output(HANGING, REST)
    controller.select("l0")
    controller.test_output(HANGING, REST, t=1.0)
    running(controller)
    assert controller.test_output(HANGING, REST) == [7.0, 2.0, 0.0]


class Stepwise(Law):
    """Has twelve phases."""

    modes = tuple(f"step {k}" for k in range(1, 13))

    def torque(self, t, q, qd, reference=None):
        return np.zeros(1)


def test_law_and_phase_are_told_apart_by_their_names():
    """Both were in one number, law + phase/10: phase 10 of law "a" read as law "b", and scopes showed "0.100"."""
    controller = Controller(MECH, {"a": Stepwise(MECH), "b": Phased(MECH), "c": Steady(0.0)})
    controller.laws.laws["a"].mode = 10
    _, law, phase = controller.test_output(HANGING, REST)
    assert (controller.law_names[int(law)], controller.phase_names[int(phase)]) == ("a", "step 11")
    controller.laws.active = 1
    controller.laws.laws["b"].mode = 1
    _, law, phase = controller.test_output(HANGING, REST)
    assert (controller.law_names[int(law)], controller.phase_names[int(phase)]) == ("b", "below")
    assert controller.phase_names == (*Stepwise.modes, "above", "below", "")
    assert controller.value_names == (None, ("a", "b", "c"), (*Stepwise.modes, "above", "below", "\u2013"))


def test_the_former_output_mode_names_the_two_in_its_place():
    controller = Controller(MECH, ["energy", "pd"])
    with pytest.raises(AttributeError, match="has no output 'mode'; its outputs 'law' and 'phase'") as caught:
        controller.mode  # noqa: B018
    assert isinstance(caught.value, CstormError)


def test_the_former_output_mode_is_no_signal_either():
    sim = cs.Simulation(graphics=False, progress=False)
    bd = cs.diagrams.load("acrobot").build(sim)
    for watch, ask in ((["controller.mode"], None), (["controller"], "controller.mode")):
        with pytest.raises(UnknownName, match="'mode' does not exist; there are 'tau', 'law', 'phase'"):
            sim.run(bd, T=0.01, watch=watch).signal(ask)


def test_an_output_cannot_be_set():
    """`controller.law = "pd"` swapped the law; now it would hide the port in silence."""
    controller = Controller(MECH, ["energy", "pd"])
    with pytest.raises(CstormError, match="'law' is an output, which cannot be set"):
        controller.law = "pd"
    controller.active_law = "pd"
    assert controller.active_law == "pd"


def test_gains_blend_and_law_are_tunable(capsys):
    controller = running(Controller(MECH, ["energy", "pd"]))
    controller.test_output(HANGING, REST)
    controller.set_param("energy.ke", 3.5)
    assert controller.laws.laws["energy"].gains["ke"] == getattr(controller, "energy.ke") == 3.5
    controller.set_param("blend", 0.2)
    controller.set_param("active_law", "pd")
    assert (controller.blend, controller.active_law) == (0.2, "pd")
    assert controller.test_output(HANGING, REST)[1] == 1.0
    with pytest.raises(InvalidValue, match="blend"):
        controller.set_param("blend", -1.0)
    with pytest.raises(UnknownName, match="did you mean 'pd'"):
        controller.set_param("active_law", "pdd")
    with pytest.raises(CstormError):
        controller.set_param("energy.ke", "much")
    assert controller.blend == 0.2


def test_memory_carries_a_run_on_within_a_blend():
    laws = {"a": Steady(1.0), "b": Phased(MECH)}
    one = running(Controller(MECH, laws, blend=0.2))
    one.test_output(HANGING, REST)
    one.select("b")
    one.test_output(HANGING, REST, t=1.0)
    laws["b"].mode = 1
    memory = one.memory()
    other = running(Controller(MECH, {"a": Steady(1.0), "b": Phased(MECH)}, blend=0.2))
    other.recall(memory)
    for t in (1.05, 1.1, 1.3):
        assert other.test_output(HANGING, REST, t=t) == one.test_output(HANGING, REST, t=t)


def test_reference_ports_reach_the_law():
    controller = Controller(MECH, {"f": Follows(MECH)}, reference=True)
    assert controller._inport_names == ["q", "qd", "q_ref", "qd_ref", "qdd_ref"]
    assert controller.inwidths == (2, 2, 2, 2, 2) and controller.outwidths == (1, 1, 1)
    assert controller.test_output(HANGING, REST, [0, 1], [0, 20], [0, 300])[0] == [321.0]


def test_a_reference_may_be_of_the_joints_that_follow():
    controller = Controller(MECH, {"pd": PD(MECH, 9.0, 2.0)}, reference=True)
    assert controller.inwidths == (2, 2, None, None, None)
    elbow = controller.test_output(REST, REST, 0.5, 1.0, 0.0)[0]
    assert elbow.tolist() == controller.test_output(REST, REST, [9, 0.5], [9, 1], [9, 0])[0].tolist() == [6.5]
    with pytest.raises(ShapeError, match=r"'q_ref': expected 2 numbers \(shoulder, elbow\), got 3"):
        controller.test_output(REST, REST, [0, 0, 0], REST, REST)


def test_the_active_law_selected_again_goes_on():
    controller = running(Controller(MECH, steady(0.0, 8.0), blend=0.2))
    controller.test_output(HANGING, REST, t=0.0)
    controller.select("l1")
    controller.test_output(HANGING, REST, t=1.0)
    controller.select("l1")
    assert controller.test_output(HANGING, REST, t=1.1)[0] == pytest.approx(4.0)
    assert controller.test_output(HANGING, REST, t=1.2)[0] == pytest.approx(8.0)
    assert len(controller.laws.laws["l1"].started) == 1


def test_select_between_runs_of_a_diagram_that_is_compiled_again():
    controller = running(Controller(MECH, steady(1.0, 5.0), blend=0.5))
    controller.test_output(HANGING, REST)
    controller.select("l1")
    controller.compile()
    assert controller.test_output(HANGING, REST)[1] == 0.0  # compiling evaluates, but that is no point of a run
    running(controller)
    assert controller.test_output(HANGING, REST) == [5.0, 1.0, 0.0]


def test_a_look_at_a_time_before_a_jump_finds_the_law_of_before():
    controller = running(Controller(MECH, steady(1.0, 5.0), select=True, blend=0.1))
    after = np.nextafter(1.0, 2.0)
    for _ in range(2):
        assert controller.test_output(HANGING, REST, 0, t=1.0) == [1.0, 0.0, 0.0]
        assert controller.test_output(HANGING, REST, 1, t=after) == [1.0, 1.0, 0.0]
        assert controller.test_output(HANGING, REST, 1, t=1.05)[0] == pytest.approx(3.0)
        assert controller.test_output(HANGING, REST, 0, t=0.9) == [1.0, 0.0, 0.0]


def test_motors_of_active_joints_are_not_commanded():
    both = library.acrobot().with_drive(actuated=["shoulder", "elbow"])
    controller = Controller(both.with_drive(active=["elbow"]), {"pd": law("pd", both, goal=REST)})
    assert controller.outwidths == (1, 1, 1)
    assert controller.test_output([0.3, 0.7], REST)[0] == pytest.approx(
        law("pd", both, goal=REST)(0, [0.3, 0.7], REST)[:1]
    )
    with pytest.raises(InvalidValue, match="nothing to command"):
        Controller(both.with_drive(active=["shoulder", "elbow"]), "pd")


@pytest.mark.parametrize(
    ("arguments", "error", "says"),
    [
        ({"mech": "acrobat"}, UnknownName, "acrobot"),
        ({"laws": ["enrgy"]}, UnknownName, "did you mean 'energy'"),
        ({"laws": ["pd", "pd"]}, InvalidValue, "twice"),
        ({"laws": []}, InvalidType, "at least one"),
        ({"laws": 3}, InvalidType, "laws"),
        ({"laws": [Steady(1.0)]}, InvalidType, "dict"),
        ({"laws": {"x": 3}}, InvalidType, "'x'"),
        ({"laws": {"x": law("pd", library.pendulum(2))}}, InvalidValue, "'x'"),
        ({"law": "lqr"}, UnknownName, "lqr"),
        ({"law": 2.5}, InvalidType, "law"),
        ({"blend": -0.1}, InvalidValue, "blend"),
        ({"blend": "fast"}, InvalidType, "blend"),
        ({"limit": [1.0, 2.0]}, ShapeError, "elbow"),
        ({"limit": -1.0}, InvalidValue, "limit"),
        ({"limit": [[1.0], [2.0, 3.0]]}, CstormError, "limit"),
        ({"reference": 1}, InvalidType, "reference"),
        ({"select": "yes"}, InvalidType, "select"),
        ({"blnd": 0.1}, UnknownName, "did you mean 'blend'"),
    ],
)
def test_wrong_arguments(arguments, error, says):
    with pytest.raises(error, match=says):
        Controller(**{"mech": MECH, **arguments})


def test_wrong_signals_name_the_port():
    with pytest.raises(ShapeError, match=r"input port 1 'qd': expected 2 numbers \(shoulder, elbow\), got 3"):
        Controller(MECH, "pd").test_output(HANGING, [0, 0, 0])
    chooser = running(Controller(MECH, steady(1.0, 2.0), select=True))
    with pytest.raises(InvalidValue, match=r"'select': law: there is none of number 5; there are 0 \(l0\), 1 \(l1\)"):
        chooser.test_output(HANGING, REST, 5.0)
    with pytest.raises(InvalidValue, match=r"select.*nan"):
        chooser.test_output(HANGING, REST, np.nan)
    with pytest.raises(NonFinite):
        LawSet(steady(1.0)).nearest(np.inf)
    with pytest.raises(InvalidValue, match="its port 'select'"):
        chooser._select("l0")


# ---------------------------------------------------------------- in diagrams


def wired(bd, controller_arguments, q0=HANGING, signal=None):
    plant = HybridDynamics(MECH, q0=q0, bd=bd, name="plant")
    controller = Controller(MECH, bd=bd, name="controller", **controller_arguments)
    bd.connect(plant[0:2], controller[0:2])
    bd.connect(controller[0], plant[0])
    if signal is not None:
        bd.connect(signal, controller[2])
    return plant, controller


def run(sim, bd, T=1.0, **options):
    with contextlib.redirect_stdout(io.StringIO()):
        if not bd.compiled:
            bd.compile()
        if type(sim) is bdsim.BDSim:
            options.setdefault("solver_args", {"rtol": 1e-8, "atol": 1e-10, "max_step": 0.01})
        else:
            options.setdefault("rtol", 1e-8)
            options.setdefault("on_error", "raise")
        return sim.run(bd, T=T, **options)


def swaps(out, column=1):
    """Return where the law changed: time before and after."""
    where = np.flatnonzero(np.diff(out.y[:, column]))
    return np.column_stack([out.t[where], out.t[where + 1]])


def slope_beyond(out, own):
    """Return how fast the torque moves at most from sample to sample, less what the law moves by itself."""
    dt = np.diff(out.t)
    moved = np.abs(np.diff(out.y[:, 0]))
    return np.max(moved[dt > 0] / dt[dt > 0]) - own, np.max(moved[dt == 0], initial=0.0)


@pytest.mark.parametrize("blend", [0.05, 0.3])
def test_torque_moves_no_faster_than_the_blend_allows(blend):
    sim, bd = ours()
    _, controller = wired(bd, {"laws": {"a": Steady(-6.0), "b": Sways(MECH)}, "blend": blend})
    out = run(sim, bd, T=2.0, at={0.7: lambda: controller.select("b")}, watch=[controller[0], controller[1]])
    assert swaps(out)[:, 1] == pytest.approx([0.7])
    step = abs(-6.0 - 1.5 * np.sin(1.4))
    fastest, jump = slope_beyond(out, own=3.0)
    assert jump <= 1e-9
    assert fastest <= step / blend * (1 + 1e-6)
    assert fastest >= step / blend - 6.0  # it is the blend that moves it
    assert np.abs(out.t - (0.7 + blend)).min() <= 1e-12  # a step ends at the kink
    after = out.t >= 0.7 + blend
    assert out.y[after, 0] == pytest.approx(1.5 * np.sin(2 * out.t[after]), abs=1e-9)


@pytest.mark.parametrize("blend", [0.05, 0.0])
def test_the_state_goes_on_as_in_an_integration_in_pieces(blend):
    """A swap is located and blended exactly: the run equals one of scipy's over the smooth pieces."""
    from scipy.integrate import solve_ivp

    sim, bd = ours()
    _, controller = wired(bd, {"laws": {"a": Steady(-3.0), "b": Sways(MECH)}, "blend": blend})
    out = run(sim, bd, T=1.5, at={0.5: lambda: controller.select("b")}, rtol=1e-10, atol=1e-12)
    f, step, x = MECH.hybrid_evaluator(), -3.0 - 1.5 * np.sin(1.0), np.concatenate([HANGING, REST])

    def torque(t, piece):
        return -3.0 if piece == 0 else 1.5 * np.sin(2 * t) + (step * (1 - (t - 0.5) / blend) if piece == 1 else 0.0)

    for piece, (a, b) in enumerate(((0.0, 0.5), (0.5, 0.5 + blend), (0.5 + blend, 1.5))):
        if b > a:
            rate = lambda t, x, k=piece: np.concatenate([x[2:], f(x[:2], x[2:], np.array([0.0, torque(t, k)]))])  # noqa: E731
            x = solve_ivp(rate, (a, b), x, method="DOP853", rtol=1e-12, atol=1e-13).y[:, -1]
    assert out.x[-1] == pytest.approx(x, abs=1e-8)


@pytest.mark.parametrize("make", [plain, ours])
def test_a_signal_that_jumps_swaps_at_its_jump(make):
    sim, bd = make()
    signal = bd.PIECEWISE((0, 0), (0.4, 2), (0.8, 1))
    arguments = {"laws": steady(-1.0, 3.0, 1.0), "select": True, "blend": 0.1}
    _, controller = wired(bd, arguments, signal=signal)
    out = run(sim, bd, T=1.5, watch=[controller[0], controller[1]])
    found = swaps(out)
    assert [law.started[-1][0] for law in controller.laws.laws.values()] == pytest.approx([0.0, 0.8, 0.4], abs=3e-9)
    assert found[:, 1] == pytest.approx([0.4, 0.8], abs=0.011)
    assert (found[:, 0] <= [0.4 + 3e-9, 0.8 + 3e-9]).all()
    fastest, jump = slope_beyond(out, own=0.0)
    assert jump <= 1e-6 and fastest <= 20.0 * (1 + 1e-6)


@pytest.mark.parametrize("make", [plain, ours])
@pytest.mark.parametrize("jump", [0.31, 0.437, 0.4999, 1 / 3])
def test_a_jump_that_nobody_declared_is_found(make, jump):
    sim, bd = make()
    signal = bd.FUNCTION(lambda t: 1.0 if t >= jump else 0.0, name="choice")
    bd.connect(bd.TIME(), signal)
    _, controller = wired(bd, {"laws": steady(-1.0, 3.0), "select": True, "blend": 0.1}, signal=signal)
    run(sim, bd, T=0.7)
    laws = controller.laws
    assert (laws.active, laws.step.tolist()) == (1, [-4.0])
    assert laws.since == pytest.approx(jump, abs=3e-9)
    # the search for its place may look at both sides in turn
    assert np.array([t for t, _ in laws.laws["l1"].started]) == pytest.approx(jump, abs=3e-9)
    assert len(laws.laws["l0"].started) == 1


@pytest.mark.parametrize("make", [plain, ours])
def test_a_signal_that_passes_the_border_swaps_there_and_not_in_a_trial_stage(make):
    """A falling acrobot chooses by its own motion; the swap is at the crossing, at the state of an accepted point."""
    sim, bd = make()
    signal = bd.FUNCTION(lambda q: min(0.5 - 4.0 * (q[0] + 1.2), 1.2), name="choice")
    plant, controller = wired(bd, {"laws": steady(0.0, 2.0), "select": True}, q0=np.array([-1.15, 0.0]), signal=signal)
    bd.connect(plant[0], signal)
    out = run(sim, bd, T=0.6, watch=[controller[0], controller[1]])
    started = controller.laws.laws["l1"].started
    assert len(started) == 1
    assert started[0][1][0] == pytest.approx(-1.2, abs=1e-7)
    assert swaps(out)[0] == pytest.approx(started[0][0], abs=0.0101)


@pytest.mark.parametrize("make", [plain, ours])
def test_phases_change_at_the_crossing_of_their_margin(make):
    sim, bd = make()
    _, controller = wired(bd, {"laws": Phased(MECH)}, q0=np.array([-1.15, 0.0]))
    out = run(sim, bd, T=0.6, watch=[controller[0], controller[2]])
    t, q = controller.laws.laws["phased"].switched
    assert q[0] == pytest.approx(-1.2, abs=1e-7)
    assert set(out.y[:, 1]) == {0.0, 1.0} and out.y[-1, 0] == 0.5
    away = abs(out.t - t) > 2e-9
    assert np.array_equal(out.y[away, 1] > 0, out.t[away] > t)


def test_a_request_from_an_event_of_plain_bdsim_is_anchored_there():
    sim, bd = plain()
    plant, controller = wired(bd, {"laws": steady(0.0, 2.0)}, q0=np.array([-1.15, 0.0]))
    height = bd.FUNCTION(lambda q: q[0] + 1.2, name="height")
    bd.connect(plant[0], height)
    bd.connect(height, bd.EVENT("v", lambda block, states: controller.select("l1"), name="event"))
    run(sim, bd, T=0.6)
    started = controller.laws.laws["l1"].started
    assert len(started) == 1 and started[0][1][0] == pytest.approx(-1.2, abs=1e-7)


@pytest.mark.parametrize("make", [plain, ours])
def test_a_request_from_another_thread_waits_for_the_end_of_the_step(make):
    """Asked for while a step is under way, the swap happens at a point of the run and not at a stage of the step."""
    sim, bd = make()
    plant, controller = wired(bd, {"laws": steady(-4.0, 4.0), "blend": 0.1})
    asked = []

    def ask(q):
        if abs(q[0] - HANGING[0]) > 0.1 and not asked:  # this function is evaluated at every stage
            asked.append(True)
            thread = threading.Thread(target=controller.select, args=("l1",))
            thread.start()
            thread.join()
        return 0.0

    spy = bd.FUNCTION(ask, name="spy")
    bd.connect(plant[0], spy)
    bd.connect(spy, bd.NULL(name="nothing"))
    out = run(sim, bd, T=1.0, watch=[controller[0], controller[1]])
    started = controller.laws.laws["l1"].started
    assert len(started) == 1
    k = np.argmin(np.abs(out.t - started[0][0]))
    assert out.t[k] == pytest.approx(started[0][0], abs=2e-9)
    assert out.x[k, :2] == pytest.approx(started[0][1], abs=1e-8)


def test_the_same_run_twice_is_the_same():
    sim, bd = ours()
    _, controller = wired(bd, {"laws": ["energy", "pd"]})
    at = {0.5: lambda: controller.select("pd"), 0.8: lambda: controller.select("energy")}
    first, again = (run(sim, bd, T=1.2, at=at).x[-1] for _ in range(2))
    assert first.tolist() == again.tolist()


def test_a_run_continued_within_a_blend_equals_one_run():
    sim, bd = ours()
    _, controller = wired(bd, {"laws": steady(-4.0, 4.0), "blend": 0.4})
    at = {0.3: lambda: controller.select("l1")}
    whole = run(sim, bd, T=1.0, at=at)
    half = run(sim, bd, T=0.5, at=at)
    rest = run(sim, bd, T=0.5, start=half.state)
    assert rest.x[-1] == pytest.approx(whole.x[-1], abs=1e-7)


@pytest.mark.parametrize("engine", ["interpreted", "compiled"])
def test_a_law_that_is_selected_before_a_run_goes_on_is_that_of_the_rest(engine):
    """The state that was gone on from brought the old one back, without a word."""
    sim = cs.Simulation(engine=engine, graphics=False, progress=False)
    bd = sim.blockdiagram()
    _, controller = wired(bd, {"laws": steady(-4.0, 4.0), "blend": 0.1})
    whole = run(sim, bd, T=1.0, at={0.5: lambda: controller.select("l1")})
    half = run(sim, bd, T=0.5)
    controller.select("l1")
    rest = run(sim, bd, T=0.5, start=half.state)
    assert rest.x[-1] == pytest.approx(whole.x[-1], abs=1e-7)
    again = run(sim, bd, T=0.5, start=half.state)  # nobody has asked since
    assert controller.active_law == "l0" and np.abs(again.x[-1] - rest.x[-1]).max() > 0.1


def test_wiring_by_name():
    _, bd = plain()
    controller = Controller(MECH, steady(1.0, 2.0), select=True, bd=bd)
    bd.connect(bd.CONSTANT(1), controller.select)
    assert bd.wirelist[-1].end.port == 2
