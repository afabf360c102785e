"""The plant and what is measured on it: against the mechanism's own answers, and in diagrams of a plain bdsim."""

import bdsim
import numpy as np
import pytest
from scipy.integrate import solve_ivp

from cstormpy import Simulation, library
from cstormpy.blocks._ports import vector
from cstormpy.blocks.dynamics import HybridDynamics, InverseDynamics, JointEffort
from cstormpy.blocks.inertia import Energy, GravityLoad, MassMatrix
from cstormpy.errors import (
    CstormError,
    DiagramError,
    FileFormatError,
    InvalidType,
    InvalidValue,
    NonFinite,
    ShapeError,
    SingularInertia,
    UnknownName,
)
from cstormpy.mechanism import Free, Link, Mechanism, Prismatic, Revolute, Spherical, as_mechanism

ACROBOT = library.acrobot()
ELBOW_GIVEN = ACROBOT.with_drive(active=["elbow"])
ARM = library.puma560()


@pytest.fixture
def diagram():
    """Return a plain bdsim and a diagram of it."""
    sim = bdsim.BDSim(sysargs=False, graphics=False, progress=False, verbose=False)
    return sim, sim.blockdiagram()


@pytest.fixture(params=["bdsim", "cstormpy"])
def either(request):
    """Return a diagram of a plain bdsim or of ours, and what runs it to a tight tolerance."""
    if request.param == "bdsim":
        sim = bdsim.BDSim(sysargs=False, graphics=False, progress=False, verbose=False)
        tight = {"solver_args": {"rtol": 1e-10, "atol": 1e-12}}
    else:
        sim, tight = Simulation(), {"rtol": 1e-10, "atol": 1e-12}
    bd = sim.blockdiagram()
    return bd, lambda T: sim.run(bd, T=T, **tight)


#: Mechanisms with each kind of ports.
DRIVES = [
    pytest.param(ACROBOT, id="torque"),
    pytest.param(ELBOW_GIVEN, id="acceleration"),
    pytest.param(library.pendulum(2).with_drive(actuated=()), id="none"),
    pytest.param(library.planar_2r(), id="all torques"),
    pytest.param(library.planar_2r().with_drive(active=["shoulder", "elbow"]), id="all accelerations"),
    pytest.param(
        ARM.with_drive(actuated=[ARM.names[k] for k in (0, 1, 3, 4)], active=[ARM.names[k] for k in (1, 4)]),
        id="mixed",
    ),
]


def sample(mech, seed=3):
    """Return q, qd, u and the signals at the drive ports that make this u."""
    rng = np.random.default_rng(seed)
    q, qd, u = rng.normal(size=(3, mech.n))
    u[~mech.actuated_mask] = 0.0
    torques = mech.actuated_mask & ~mech.active_mask
    signals = [u[where] for where in (torques, mech.active_mask) if where.any()]
    return q, qd, u, signals


@pytest.mark.parametrize("mech", DRIVES)
def test_the_plant_is_the_hybrid_dynamics(mech):
    plant = HybridDynamics(mech)
    q, qd, u, signals = sample(mech)
    x = np.concatenate([q, qd])
    assert plant.nin == len(signals) and plant.inwidths == tuple(map(len, signals))
    xd = plant.test_deriv(*signals, x=x)
    np.testing.assert_array_equal(xd[: mech.n], qd)
    np.testing.assert_allclose(xd[mech.n :], mech.hybrid_dynamics(q, qd, u).qdd, rtol=1e-14)
    out = plant.test_output(*[None] * plant.nin, x=x)
    np.testing.assert_array_equal(np.concatenate(out), x)
    assert not any(np.shares_memory(part, x) for part in out), "x is a view into the solver's vector"


@pytest.mark.parametrize("mech", DRIVES)
def test_joint_effort_puts_given_and_found_where_they_belong(mech):
    block = JointEffort(mech)
    q, qd, u, signals = sample(mech)
    qdd, torque = block.test_output(q, qd, *signals)
    found = mech.hybrid_dynamics(q, qd, u)
    np.testing.assert_allclose(qdd, found.qdd, rtol=1e-14)
    np.testing.assert_allclose(torque, found.tau, rtol=1e-14)
    np.testing.assert_allclose(mech.inverse_dynamics(q, qd, qdd), torque, atol=1e-9)


@pytest.mark.parametrize("block_class", [HybridDynamics, JointEffort])
def test_ports_follow_from_the_drive(block_class):
    own = () if block_class is HybridDynamics else ("q", "qd")
    names = {
        "torque": (ACROBOT, ("tau",)),
        "acceleration": (ELBOW_GIVEN, ("acc",)),
        "both": (library.planar_2r().with_drive(active=["elbow"]), ("tau", "acc")),
        "none": (ACROBOT.with_drive(actuated=()), ()),
    }
    for mech, expected in names.values():
        assert tuple(block_class(mech)._inport_names) == own + expected
        loaded = block_class(mech, wrench=True)
        assert tuple(loaded._inport_names) == (*own, *expected, "wrench")
        assert loaded.nin == len(loaded.inwidths) == len(own + expected) + 1


def test_the_drive_may_be_given_to_the_block():
    by_block = HybridDynamics("acrobot", active=["elbow"])
    assert by_block._inport_names == ["acc"] and by_block.mech == ELBOW_GIVEN
    assert HybridDynamics("acrobot", actuated=[]).nin == 0


def test_a_wrench_acts_as_in_the_mechanism():
    mech = library.branched_acrobot()
    q, qd, u, signals = sample(mech)
    rows = np.random.default_rng(1).normal(size=(len(mech.links), 6))
    expected = mech.hybrid_dynamics(q, qd, u, wrench=rows)
    plant, effort = HybridDynamics(mech, wrench=True), JointEffort(mech, wrench=True)
    for wrench in (rows, rows.ravel(), rows.tolist()):
        xd = plant.test_deriv(*signals, wrench, x=np.concatenate([q, qd]))
        np.testing.assert_array_equal(xd[mech.n :], expected.qdd)
        np.testing.assert_array_equal(effort.test_output(q, qd, *signals, wrench)[1], expected.tau)
    assert np.abs(expected.qdd - mech.hybrid_dynamics(q, qd, u).qdd).max() > 1e-3
    tau = InverseDynamics(mech, wrench=True).test_output(q, qd, expected.qdd, rows)[0]
    np.testing.assert_allclose(tau, expected.tau, atol=1e-12)


def test_inverse_dynamics_undoes_the_plant_whatever_the_drive():
    for mech in (ACROBOT, ELBOW_GIVEN, ARM):
        q, qd, _, signals = sample(mech)
        qdd, torque = JointEffort(mech).test_output(q, qd, *signals)
        np.testing.assert_allclose(InverseDynamics(mech).test_output(q, qd, qdd)[0], torque, atol=1e-10)


def test_mass_gravity_and_energy_are_the_mechanism_s():
    for mech in (ACROBOT, ARM):
        q, qd, _, _ = sample(mech)
        np.testing.assert_array_equal(MassMatrix(mech).test_output(q)[0], mech.mass_matrix(q))
        np.testing.assert_array_equal(GravityLoad(mech).test_output(q)[0], mech.gravity_load(q))
        kinetic, potential, total = Energy(mech).test_output(q, qd)
        assert (kinetic, potential) == mech.energy(q, qd) and total == kinetic + potential


def test_the_load_of_gravity_holds_a_mechanism_still():
    q = np.array([0.3, -0.8])
    load = GravityLoad("planar_2r").test_output(q)[0]
    xd = HybridDynamics("planar_2r").test_deriv(load, x=np.concatenate([q, np.zeros(2)]))
    np.testing.assert_allclose(xd, 0.0, atol=1e-12)


def test_signals_may_be_numbers_lists_and_integers():
    plant = HybridDynamics("acrobot")
    x = np.array([0.1, 0.2, 0.3, 0.4])
    expected = plant.test_deriv(np.array([2.0]), x=x)
    for tau in (2, 2.0, [2], np.array([2]), np.float32(2.0), np.array(2.0), (2.0,)):
        np.testing.assert_array_equal(plant.test_deriv(tau, x=x), expected)


@pytest.mark.parametrize(
    ("signal", "error", "message"),
    [
        ([1.0, 2.0], ShapeError, r"plant input port 0 'tau': expected 1 number \(elbow\), got 2"),
        (np.eye(2), ShapeError, r"got an array of shape \(2, 2\)"),
        ("much", InvalidType, "plant input port 0 'tau'"),
        (None, DiagramError, "plant input port 0 'tau': has no value"),
        (np.nan, NonFinite, "plant input port 0 'tau': the signal of 'elbow' is not finite"),
        ([np.inf], NonFinite, "the signal of 'elbow'"),
        (1j, InvalidType, "real numbers"),
    ],
)
def test_a_bad_signal_is_refused_by_block_and_port(signal, error, message):
    with pytest.raises(error, match=message):
        HybridDynamics("acrobot", name="plant").test_deriv(signal, x=np.zeros(4))


def test_a_bad_wrench_names_the_link():
    plant = HybridDynamics("acrobot", wrench=True, name="plant")
    wrench = np.zeros((2, 6))
    with pytest.raises(ShapeError, match=r"'wrench': expected shape \(2, 6\) or 12 numbers"):
        plant.test_deriv(0.0, np.zeros(6), x=np.zeros(4))
    wrench[1, 3] = np.nan
    for rows in (wrench, wrench.ravel()):
        with pytest.raises(NonFinite, match="plant input port 1 'wrench': the signal of 'forearm'"):
            plant.test_deriv(0.0, rows, x=np.zeros(4))


def test_a_state_that_is_not_finite_names_the_joint():
    with pytest.raises(NonFinite, match=r"^q: .* got nan at index 1 \(joint 'elbow'\)"):
        HybridDynamics("acrobot").test_deriv(0.0, x=np.array([0.0, np.nan, 0.0, 0.0]))
    with pytest.raises(NonFinite, match="input port 1 'qd': the signal of 'shoulder'"):
        JointEffort("acrobot").test_output([0.0, 0.0], [np.inf, 0.0], 0.0)


def test_a_joint_without_inertia_is_named():
    light = library.pendulum(1).with_parameters({"link1.mass": 0.0, "link1.inertia": np.zeros((3, 3))})
    with pytest.raises(SingularInertia, match="joint 'joint1'"):
        HybridDynamics(light).test_deriv(0.0, x=np.zeros(2))


def test_states_have_names_and_a_start(diagram):
    _, bd = diagram
    plant = HybridDynamics("acrobot", q0=[1, 2], qd0=[3, 4], name="plant", bd=bd)
    other = HybridDynamics("acrobot", bd=bd)
    assert plant._state_names == ["plant.shoulder.q", "plant.elbow.q", "plant.shoulder.qd", "plant.elbow.qd"]
    assert other._state_names[0] == "hybriddynamics.0.shoulder.q"
    np.testing.assert_array_equal(plant.getstate0(), [1.0, 2.0, 3.0, 4.0])
    assert HybridDynamics("acrobot", snames=list("abcd"))._state_names == list("abcd")
    assert HybridDynamics("pendulum", q0=0.5).q0.tolist() == [0.5]


def test_start_and_gravity_are_tunable():
    plant = HybridDynamics("acrobot", q0=[1, 2])
    for name, value in {"q0": [0.5, 0.0], "qd0": [0.0, 1.0], "gravity": [0.0, -1.6, 0.0]}.items():
        plant.set_param(name, value)
    np.testing.assert_array_equal(plant.getstate0(), [0.5, 0.0, 0.0, 1.0])
    moon = ACROBOT.with_gravity([0.0, -1.6, 0.0])
    assert plant.mech == moon
    x = np.array([0.3, 0.2, 0.1, 0.0])
    np.testing.assert_array_equal(plant.test_deriv(1.0, x=x), HybridDynamics(moon).test_deriv(1.0, x=x))
    with pytest.raises(ShapeError, match=r"q0: expected shape \(2,\), got \(1,\)"):
        plant.set_param("q0", [1.0])
    np.testing.assert_array_equal(plant.q0, [0.5, 0.0])


@pytest.mark.parametrize("block_class", [HybridDynamics, JointEffort, InverseDynamics, MassMatrix, GravityLoad, Energy])
def test_the_mechanism_is_tunable_within_its_ports(block_class):
    block = block_class("acrobot")
    heavy = ACROBOT.with_parameters({"forearm.mass": 3.0})
    block.set_param("mech", heavy)
    q, qd, _, signals = sample(ACROBOT)
    inputs = {HybridDynamics: signals, JointEffort: [q, qd, *signals], InverseDynamics: [q, qd, qd], Energy: [q, qd]}
    given = inputs.get(block_class, [q])
    if block_class is HybridDynamics:
        x = np.concatenate([q, qd])
        fresh, changed = (b.test_deriv(*given, x=x) for b in (block_class(heavy), block))
        old = block_class(ACROBOT).test_deriv(*given, x=x)
    else:
        fresh, changed = (b.test_output(*given)[0] for b in (block_class(heavy), block))
        old = block_class(ACROBOT).test_output(*given)[0]
    np.testing.assert_array_equal(fresh, changed)
    assert np.abs(np.subtract(old, changed)).max() > 1e-3
    for other in (library.pendulum(2), ELBOW_GIVEN, library.planar_2r()):
        with pytest.raises(InvalidValue, match=r"expected a mechanism|the ports are those of"):
            block.mech = other
    assert block.mech == heavy


def test_no_name_leads_to_the_wrong_port(diagram):
    """bdsim looks a name up among the outputs first: an output "tau" would wire a controller to another input."""
    _, bd = diagram
    effort = JointEffort("acrobot", bd=bd)
    assert effort.tau.port == 2 and effort.torque.port == 1
    with pytest.raises(InvalidValue, match="'tau': an input and an output at another place share it"):
        JointEffort("acrobot", onames=["qdd", "tau"])


def closed_loop(bd, gains):
    """Wire the acrobot under u = gains · (q, qd), with its effort, through GAIN blocks of bdsim only."""
    plant = HybridDynamics(ACROBOT, q0=[-1.0, 0.4], name="plant", bd=bd)
    effort = JointEffort(ACROBOT, name="effort", bd=bd)
    angles, rates = (bd.GAIN(np.array(gains[k]).reshape(2, 1)) for k in (0, 1))
    torque = bd.SUM("++")
    bd.connect(plant.q, angles, effort.q)
    bd.connect(plant.qd, rates, effort.qd)
    bd.connect(angles, torque[0])
    bd.connect(rates, torque[1])
    bd.connect(torque, plant.tau, effort.tau)
    return plant, effort


def test_the_plant_closes_a_loop_through_gains(either):
    bd, run = either
    gains = ([-3.0, -8.0], [-0.5, -1.5])
    plant, effort = closed_loop(bd, gains)
    bd.connect(effort.qdd, bd.NULL())
    bd.connect(effort.torque, bd.NULL())
    bd.compile(verbose=False)
    out = run(2)

    def rate(t, x):
        tau = gains[0] @ x[:2] + gains[1] @ x[2:]
        return np.concatenate([x[2:], ACROBOT.hybrid_dynamics(x[:2], x[2:], np.array([0.0, tau])).qdd])

    exact = solve_ivp(rate, (0, 2), [-1.0, 0.4, 0.0, 0.0], rtol=1e-11, atol=1e-13, t_eval=[out.t[-1]])
    assert out.xnames == plant._state_names
    np.testing.assert_allclose(out.x[-1], exact.y[:, -1], atol=1e-7)
    assert np.abs(out.x[-1] - out.x[0]).max() > 0.1


def test_the_effort_closes_a_loop_through_a_gain(either):
    """Acceleration fed back: the torque found drives a filter whose output is the elbow's acceleration."""
    bd, run = either
    plant = HybridDynamics(ELBOW_GIVEN, q0=[-1.2, 0.3], name="plant", bd=bd)
    effort = JointEffort(ELBOW_GIVEN, name="effort", bd=bd)
    filtered = bd.INTEGRATOR(x0=[0.0, 0.0])
    pick = bd.GAIN(np.array([[0.0], [-0.2]]))
    error = bd.SUM("+-")
    bd.connect(plant.q, effort.q)
    bd.connect(plant.qd, effort.qd)
    bd.connect(effort.torque, error[0])
    bd.connect(filtered, error[1], pick)
    bd.connect(error, filtered)
    bd.connect(pick, plant.acc, effort.acc)
    bd.connect(effort.qdd, bd.NULL())
    bd.compile(verbose=False)
    out = run(1)

    def rate(t, x):
        q, qd, z = x[:2], x[2:4], x[4:]
        found = ELBOW_GIVEN.hybrid_dynamics(q, qd, np.array([0.0, -0.2 * z[1]]))
        return np.concatenate([qd, found.qdd, found.tau - z])

    exact = solve_ivp(rate, (0, 1), [-1.2, 0.3, 0, 0, 0, 0], rtol=1e-11, atol=1e-13, t_eval=[out.t[-1]])
    np.testing.assert_allclose(out.x[-1], exact.y[:, -1], atol=1e-7)


def test_a_plant_in_a_subsystem_has_names_of_its_own(diagram):
    sim, bd = diagram
    inner = sim.blockdiagram(name="robot")
    plant = HybridDynamics("acrobot", q0=[-1.0, 0.4], name="plant", bd=inner)
    way_in, way_out = inner.INPORT(1), inner.OUTPORT(2)
    inner.connect(way_in, plant.tau)
    inner.connect(plant.q, way_out[0])
    inner.connect(plant.qd, way_out[1])
    for name in ("left", "right"):
        robot = bd.SUBSYSTEM(inner, name=name)
        angles = bd.GAIN(np.array([[-3.0], [-8.0]]))
        bd.connect(robot[0], angles)
        bd.connect(angles, robot)
        bd.connect(robot[1], bd.NULL())
    bd.compile(verbose=False)
    assert bd.statenames[0] == "left/plant.shoulder.q" and len(set(bd.statenames)) == 8
    out = sim.run(bd, T=0.5)
    ends = out.x[-1].reshape(2, 4)
    np.testing.assert_array_equal(ends[0], ends[1])
    assert np.abs(out.x[-1] - out.x[0]).max() > 0.1


def test_energy_is_conserved_in_a_diagram(diagram):
    sim, bd = diagram
    mech = library.pendulum(2).with_drive(actuated=())
    plant = HybridDynamics(mech, q0=[1.0, 0.5], bd=bd)
    energy = Energy(mech, bd=bd)
    bd.connect(plant.q, energy.q)
    bd.connect(plant.qd, energy.qd)
    for port in energy.kinetic, energy.potential, energy.total:
        bd.connect(port, bd.NULL())
    bd.compile(verbose=False)
    out = sim.run(bd, T=3, watch=[energy.kinetic, energy.total], solver_args={"rtol": 1e-10, "atol": 1e-12})
    kinetic, total = out.y.T
    assert np.ptp(kinetic) > 1.0
    np.testing.assert_allclose(total, total[0], atol=1e-7)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"mech": "akrobot"}, UnknownName, "did you mean 'acrobot'"),
        ({"mech": "missing.json"}, InvalidValue, "missing.json: cannot be read: No such file"),
        ({"mech": 3}, InvalidType, "mechanism: expected a Mechanism"),
        ({"q0": [1.0]}, ShapeError, r"q0: expected shape \(2,\), got \(1,\); the coordinates are shoulder, elbow"),
        ({"q0": [1.0, np.nan]}, NonFinite, r"q0: .* got nan at index 1 \(joint 'elbow'\)"),
        ({"qd0": "fast"}, InvalidType, "qd0"),
        ({"wrench": 1}, InvalidType, "wrench: expected True or False"),
        ({"active": ["knee"]}, UnknownName, "knee"),
        ({"active": ["shoulder"]}, InvalidValue, "active but not actuated"),
        ({"actived": []}, UnknownName, "argument of HYBRIDDYNAMICS 'actived' does not exist; did you mean 'active'"),
        ({"name": 3}, InvalidType, "name: expected text"),
        ({"inames": ["a", "b"]}, InvalidValue, "inames: expected 1 name, got 2"),
        ({"snames": ["a"]}, InvalidValue, "snames: expected 4 names, got 1"),
        ({"onames": ["mech", "b"]}, InvalidValue, "port name 'mech': is an attribute"),
        ({"inputs": 3}, InvalidType, "inputs: expected a block or a port"),
        ({"bd": 3}, InvalidType, "bd: expected a block diagram"),
    ],
)
def test_wrong_arguments_are_refused_with_their_names(arguments, error, message):
    with pytest.raises(error, match=message) as raised:
        HybridDynamics(**{"mech": "acrobot", **arguments})
    assert isinstance(raised.value, CstormError)


def test_a_refused_block_leaves_no_trace_in_the_diagram(diagram):
    _, bd = diagram
    HybridDynamics("acrobot", name="plant", bd=bd)
    before = list(bd.blocklist)
    for arguments in ({"name": "plant"}, {"q0": [1.0]}, {"inames": ["name"]}, {"inputs": [bd, bd]}):
        with pytest.raises(CstormError):
            HybridDynamics("acrobot", bd=bd, **arguments)
    assert bd.blocklist == before


def test_a_file_is_as_good_as_the_mechanism(tmp_path):
    path = tmp_path / "robot.json"
    ELBOW_GIVEN.save(path)
    for given in (path, str(path)):
        assert HybridDynamics(given).mech == ELBOW_GIVEN
    path.write_text("{}")
    with pytest.raises(CstormError, match=r"robot\.json"):
        HybridDynamics(path)


def test_a_name_of_the_library_is_not_a_path(tmp_path, monkeypatch):
    """A file "acrobot" in the working directory must not change what "acrobot" means; other files may have any name."""
    ELBOW_GIVEN.save(tmp_path / "acrobot")
    ELBOW_GIVEN.save(tmp_path / "robot")
    monkeypatch.chdir(tmp_path)
    assert as_mechanism("acrobot") == ACROBOT
    assert as_mechanism("robot") == as_mechanism(tmp_path / "acrobot") == ELBOW_GIVEN
    for missing in ("gone.json", tmp_path / "gone", tmp_path):
        with pytest.raises(InvalidValue, match="cannot be read"):
            as_mechanism(missing)
    with pytest.raises(InvalidValue, match=r"path: '\\x00\.json' is not the name of a file"):
        as_mechanism("\0.json")
    (tmp_path / "robot.py").write_text("import cstormpy\n")
    with pytest.raises(FileFormatError, match=r"robot\.py: is no file of a mechanism, JSON, .*cstorm run$"):
        as_mechanism("robot.py")


def test_a_signal_that_fits_is_not_copied():
    block = HybridDynamics("planar_2r")
    fits = np.array([1.0, 2.0])
    assert vector(block, 0, fits, 2) is fits
    for other in (np.array([1.0, 9.0, 2.0])[::2], fits.astype(">f8"), fits.astype(np.float32), [1, 2]):
        made = vector(block, 0, other, 2)
        np.testing.assert_array_equal(made, fits)
        assert made.flags.carray and made.dtype == np.float64 and made.dtype.isnative
    locked = np.array([1.0, 2.0])
    locked.flags.writeable = False
    assert vector(block, 0, locked, 2).flags.writeable, "compiled kernels take no array that is read-only"


def test_angles_that_look_like_degrees_are_named_once(caplog):
    """The plant began, or was stopped, some fourteen turns away, in silence."""
    caplog.set_level("INFO", "cstormpy")
    bd = Simulation().blockdiagram()
    arm = Link("swung", None, Revolute((0, 0, 1), limits=(-170, 170)), mass=1.0, com=(1.0, 0, 0))
    rail = Link("slid", "swung", Prismatic((1, 0, 0), limits=(-90, 90)), mass=1.0)
    for name in "ab":
        bd.HYBRIDDYNAMICS(Mechanism([arm, rail]), q0=[-45, 90], name=name)
    angle, limits = caplog.messages
    assert angle.startswith("joint 'swung': q0 -45 rad") and "np.deg2rad" in angle
    assert limits.startswith("joint 'swung': limits -170, 170 rad")
    caplog.clear()
    free = Mechanism([Link("wheel", None, Revolute((0, 0, 1), limits=(-12.5, 1e4)), mass=1.0)])
    for start in (12.5, 31.4159, 8 * np.pi, 1e4):  # two turns, and what a run ended with
        bd.HYBRIDDYNAMICS(free, q0=[start])
    assert not caplog.messages


def test_degrees_in_rotation_vectors_are_named(caplog):
    """A plane that was to begin at a pitch of 30 degrees began at 30 rad, in silence."""
    caplog.set_level("INFO", "cstormpy")
    bd = Simulation().blockdiagram()
    bd.HYBRIDDYNAMICS(Mechanism([Link("jet", None, Free(), mass=1.0, inertia=(1, 1, 1))]), q0=[90, 0, -900, 0, 30, 0])
    bd.HYBRIDDYNAMICS(Mechanism([Link("ball", None, Spherical(), mass=1.0, inertia=(1, 1, 1))]), q0=[0, 0, 45])
    said = [message.partition(" rad")[0] for message in caplog.messages]
    assert said == ["joint 'jet[4]': q0 30", "joint 'ball[2]': q0 45"]


def test_a_number_of_the_mechanism_without_its_owner_is_told_whose_there_are():
    """It was told that there are q0, qd0, gravity and mech."""
    plant = Simulation().blockdiagram().HYBRIDDYNAMICS("acrobot", name="plant")
    with pytest.raises(UnknownName, match=r"'mass' does not exist; did you mean 'upper_arm.mass' or 'forearm.mass'"):
        plant.set_param("mass", 2.0)
    with pytest.raises(UnknownName, match=r"'gravty' does not exist; did you mean 'gravity'"):
        plant.set_param("gravty", (0, 0, 0))
