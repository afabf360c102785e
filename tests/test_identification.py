"""Identification: parameters back from torques, how well they are known, and what no data can tell."""

from __future__ import annotations

import numpy as np
import pytest
from closeness import assert_close
from random_mechanisms import COMPOUND, KINDS, random_mechanism
from scipy.optimize import nnls

import cstormpy as cs
from cstormpy.identification import base_parameters
from cstormpy.identification.consistency import is_possible
from cstormpy.mechanism import library


def a_log(mech, rows=300, seed=1, **loads):
    rng = np.random.default_rng(seed)
    q, qd, qdd = rng.normal(size=(3, rows, mech.n))
    return {"q": q, "qd": qd, "qdd": qdd, "tau": mech.inverse_dynamics(q, qd, qdd, **loads)}


def true_values(found, mech):
    """Return the base parameters' values of a mechanism whose links are all identified as a whole."""
    numbers = dict(
        zip((f"{link.name}.{n}" for link in mech.links for n in NUMBERS), mech.inertial_numbers, strict=True)
    )
    return found.base.matrix @ np.array([numbers[name] for name in found.names])


NUMBERS = ("m", "mx", "my", "mz", "Ixx", "Ixy", "Ixz", "Iyy", "Iyz", "Izz")


# ---------------------------------------------------------------- base parameters
def test_the_puma_has_36_base_parameters():
    """Mayeda, Yoshida and Osuka (1990), Gautier (1991): 36 of 60 with gravity, rotors apart."""
    found = base_parameters(library.puma560())
    assert len(found) == 36
    assert set(found.without_effect) == {f"link1.{n}" for n in NUMBERS} - {"link1.Iyy"}  # it turns about that axis


@pytest.mark.parametrize("links", [1, 2, 3, 4])
def test_planar_arms_have_three_for_each_link_and_two_less_without_gravity(links):
    arm = library.pendulum(links)
    assert len(base_parameters(arm)) == 3 * links
    assert len(base_parameters(arm.with_gravity((0, 0, 0)))) == 3 * links - 2  # the first turns about its axis only


def test_what_is_regrouped_changes_no_torque():
    """Along any direction in which all base parameters stay, the torques of any motion stay."""
    rng = np.random.default_rng(3)
    mech = random_mechanism(rng, 6, KINDS + COMPOUND, terms=False)
    found = base_parameters(mech, [link.name for link in mech.links])
    Y = mech.regressor(*rng.normal(size=(3, 40, mech.n))).reshape(-1, len(found.names))
    _, _, rows = np.linalg.svd(found.matrix)
    silent = rows[len(found) :].T
    assert silent.shape[1] > 0
    assert np.abs(Y @ silent).max() < 1e-9 * np.abs(Y).max()
    assert np.linalg.matrix_rank(Y) == len(found)


# ---------------------------------------------------------------- what is found
@pytest.mark.slow
def test_clean_data_give_back_every_parameter_that_can_be_found():
    rng = np.random.default_rng(7)
    truth = random_mechanism(rng, 7, KINDS + COMPOUND)
    wrong = truth.with_parameters(
        {f"{link.name}.mass": 1.4 * link.mass for link in truth.links}
        | {f"{link.joint_name}.damping": 0.0 for link in truth.links if hasattr(link.joint, "damping")}
    )
    moving = base_parameters(truth).names
    links = sorted({name.rpartition(".")[0] for name in moving})
    found = cs.identify(wrong, a_log(truth), [*links, "*.damping", "*.friction", "*.armature", "*.stiffness"])
    assert found.rank == len(found.base)
    check = a_log(truth, 50, seed=9)
    made = found.mechanism
    torques = made.inverse_dynamics(check["q"], check["qd"], check["qdd"])
    assert_close(torques, check["tau"], 1e-6)
    for link in truth.links:
        if hasattr(link.joint, "damping"):
            assert_close(made.joint(link.joint_name).damping, link.joint.damping, 1e-6)
    with_links = cs.identify(truth.with_parameters({f"{links[0]}.mass": 9.0}), a_log(truth), links)
    assert_close(with_links.base_values, true_values(with_links, truth), 1e-6)


def test_one_mass_and_single_entries_of_an_inertia_are_found_alone():
    truth = library.arm7()
    wrong = truth.with_parameters({"link7.mass": 0.1, "link6.inertia": np.eye(3)})
    found = cs.identify(wrong, a_log(truth), ["link7.mass", "link6.inertia"])
    assert abs(found.mechanism.link("link7").mass - truth.link("link7").mass) < 1e-9
    known = found.base.alone
    assert "link7.mass" in known
    # the sum of Ixx and Iyy cannot be told apart from that of the links before, whose numbers are given here
    assert_close(found.mechanism.link("link6").inertia, truth.link("link6").inertia, 1e-6)


@pytest.mark.slow
def test_noisy_data_lie_within_three_standard_errors():
    """A normal deviate does in 99.7 of 100 cases; 95 leave room for noise that is itself only estimated."""
    truth = library.planar_2r()
    log, rng = a_log(truth, 60), np.random.default_rng(4)
    noise = np.array([0.5, 0.1])
    inside = []
    for _ in range(200):
        noisy = {**log, "tau": log["tau"] + noise * rng.normal(size=log["tau"].shape)}
        found = cs.identify(truth, noisy, physical=False)
        inside.append(np.abs(found.base_values - true_values(found, truth)) < 3 * found.standard_errors)
    inside = np.array(inside)
    assert inside.mean(axis=0).min() > 0.95
    assert not (np.abs(found.base_values - true_values(found, truth)) < 1e-3 * found.standard_errors).any()
    assert_close(found.noise / noise, np.ones(2), 0.4)


@pytest.mark.slow
@pytest.mark.parametrize("noise", [(1.0, 0.005), (0.005, 1.0)])
def test_standard_errors_where_one_joint_is_much_noisier_than_the_other(noise):
    """The quiet joint's noise was that of a fit without weights, so that errors were said to be up to seven times it.

    The squares of 100 deviates of each parameter, in units of the errors, have a mean of 1 ± 0.14.
    """
    truth = library.planar_2r()
    log, rng = a_log(truth), np.random.default_rng(5)
    squares = []
    for _ in range(100):
        noisy = {**log, "tau": log["tau"] + noise * rng.normal(size=log["tau"].shape)}
        found = cs.identify(truth, noisy, physical=False)
        squares.append(((found.base_values - true_values(found, truth)) / found.standard_errors) ** 2)
    assert_close(np.mean(squares, axis=0), np.ones(len(found.base_values)), 0.5)


def test_of_few_rows_each_joint_has_the_noise_that_shows():
    """All unknowns but one are told by the quiet shoulder, whose noise they take up; both joints counted the same."""
    truth, rng, noise, found = library.planar_2r(), np.random.default_rng(0), np.array([0.01, 1.0]), []
    log = a_log(truth, rows=12)
    for _ in range(100):
        noisy = {**log, "tau": log["tau"] + noise * rng.normal(size=log["tau"].shape)}
        found.append(cs.identify(truth, noisy, physical=False).noise / noise)
    assert_close(np.sqrt(np.mean(np.square(found), axis=0)), np.ones(2), 0.08)  # 0.85 and 1.14 before
    for rows, spare in ((4, 2), (12, 18)):  # of 4 rows errors were four times too small, without a word
        told = cs.identify(truth, {name: x[:rows] for name, x in noisy.items()}, physical=False)
        assert told.spare == spare and ("rough: 2 equations" in str(told)) == (rows == 4)


def test_wrenches_that_acted_are_taken_off():
    truth = library.planar_2r()
    wrench = np.random.default_rng(0).normal(size=(300, 2, 6))
    log = a_log(truth, wrench=wrench)
    found = cs.identify(truth, log, wrench=wrench)
    assert_close(found.base_values, true_values(found, truth), 1e-9)
    log["tau"][[7, 100]] = np.nan  # rows that are left out leave out their wrenches
    found = cs.identify(truth, log, wrench=wrench, missing="drop")
    assert_close(found.base_values, true_values(found, truth), 1e-9)


# ---------------------------------------------------------------- physical consistency
def test_links_become_possible_where_the_plain_solution_is_not():
    truth = library.arm7()
    log, rng = a_log(truth), np.random.default_rng(1)
    log["tau"] = log["tau"] + rng.normal(size=log["tau"].shape)
    plain, found = cs.identify(truth, log, physical=False), cs.identify(truth, log)
    assert plain.plain and not found.plain
    numbers = {name: value for name, value in zip(plain.names, plain.values, strict=True)}
    bodies = [np.array([numbers[f"{link.name}.{n}"] for n in NUMBERS]) for link in truth.links]
    assert not all(map(is_possible, bodies))
    for link in found.mechanism.links:  # which Link itself has checked
        assert link.mass > 0 and not link.allow_impossible
    assert found.noise @ found.noise < 1.02 * plain.noise @ plain.noise
    assert "impossible" in str(found)


def test_the_fit_among_possible_bodies_is_the_best_one():
    """Nothing near it that is possible fits better: the problem is convex."""
    truth = library.planar_2r()
    log, rng = a_log(truth, 40), np.random.default_rng(2)
    log["tau"] = log["tau"] + 2.0 * rng.normal(size=log["tau"].shape)
    found = cs.identify(truth, log, physical=True)
    assert not found.plain
    W = truth.regressor(log["q"], log["qd"], log["qdd"]) / found.noise[:, None]

    def misfit(pi):
        return float(np.sum((log["tau"] / found.noise - W @ pi) ** 2))

    best = misfit(found.values)
    for size in (1e-4, 1e-3, 1e-2):
        for _ in range(300):
            pi = found.values + size * rng.normal(size=20)
            if is_possible(pi[:10]) and is_possible(pi[10:]):
                assert misfit(pi) > best - 1e-2


@pytest.mark.parametrize("guess", [0.7, 0.9])
def test_a_log_without_noise_is_met_where_the_plain_solution_is_impossible(guess):
    """The search went along the border of what can be and gave up there, with 2 % of the torques unexplained."""
    link = cs.Link(
        "ball",
        None,
        cs.Spherical(point=(0.1, -0.2, 0.3)),
        mass=1.3,
        com=(0.1, 0.2, -0.2),
        inertia=np.diag([3, 4, 5]) / 100,
    )
    truth = cs.Mechanism([link])
    found = cs.identify(truth.with_parameters({"ball.mass": guess}), a_log(truth, 200))
    assert not found.plain and found.misfit.max() < 1e-5
    assert_close(found.base_values, true_values(found, truth), 1e-4)


def test_an_inertia_alone_is_that_of_a_body_too():
    """Links of which single numbers were asked for came out as no body can be, and physical=True said nothing."""
    truth = library.puma560()
    log, rng = a_log(truth, 300), np.random.default_rng(0)
    log["tau"] = log["tau"] + 8.0 * rng.normal(size=log["tau"].shape)
    names = ["link6.inertia", "link6.mass"]
    plain, found = cs.identify(truth, log, names, physical=False), cs.identify(truth, log, names)
    assert plain.mechanism.link("link6").allow_impossible and plain.plain and not found.plain
    link = found.mechanism.link("link6")
    assert not link.allow_impossible and link.mass > 0.0
    at, where = truth.inertial_numbers.reshape(-1, 10), [m.name for m in truth.links].index("link6")
    columns = truth.regressor(log["q"], log["qd"], log["qdd"])[:, :, 10 * where :][:, :, :10]
    rest = log["tau"] - truth.inverse_dynamics(log["q"], log["qd"], log["qdd"])

    def misfit(mech):
        change = mech.inertial_numbers[10 * where :][:10] - at[where]
        return float(np.sum(((rest - columns @ change) / found.noise) ** 2))

    best = misfit(found.mechanism)
    for size in (1e-4, 1e-3, 1e-2):
        for _ in range(100):
            inertia = link.inertia + size * rng.normal(size=(3, 3))
            mass = link.mass + size * rng.random()
            try:
                near = link.replace(inertia=0.5 * (inertia + inertia.T), mass=mass)
            except cs.InvalidValue:
                continue
            assert misfit(found.mechanism.with_links([*found.mechanism.links[:-1], near])) > best - 1e-2


def test_where_other_numbers_leave_no_body_the_link_is_named():
    truth = cs.Mechanism([cs.Link("rod", joint=cs.Revolute((0, 0, 1)), mass=1.0, com=(0.5, 0, 0))])
    log = a_log(truth, 60)
    log["tau"] = log["tau"] - 0.2 * log["qdd"]
    with pytest.raises(cs.InvalidValue, match=r"link 'rod': .* beside its other numbers no body has any"):
        cs.identify(truth, log, ["rod.inertia.zz"])
    assert cs.identify(truth, log, ["rod.inertia.zz"], physical=False).values == pytest.approx([-0.2], abs=1e-9)
    assert cs.identify(truth, log, "rod").mechanism.link("rod").mass > 0.0


@pytest.mark.parametrize("inertia", [(0, 0, 0), (0, 0.3, 0.3)], ids=["point mass", "thin rod"])
def test_masses_of_point_masses_and_thin_rods_are_found_beside_a_damping_that_would_be_negative(inertia):
    """Their pseudo-inertia is singular whatever the mass, and the search ended with "no body has any"."""
    link = cs.Link("rod", joint=cs.Revolute((0, 0, 1)), mass=2.0, com=(0.5, 0, 0), inertia=inertia)
    truth = cs.Mechanism([link])
    log, rng = a_log(truth, 200), np.random.default_rng(0)
    log["tau"] = log["tau"] - 0.1 * log["qd"] + 0.1 * rng.normal(size=log["tau"].shape)
    found = cs.identify(truth, log, ["rod.mass", "*.damping"])
    tau = log["tau"] - inertia[2] * log["qdd"]
    columns = np.hstack([0.25 * log["qdd"] + 9.81 * 0.5 * np.cos(log["q"]), log["qd"]])
    mass, damping = nnls(columns, tau.ravel())[0]
    assert damping == 0.0 and found.mechanism.joint("rod").damping < 1e-6
    assert found.mechanism.link("rod").mass == pytest.approx(mass, rel=1e-5) and not found.plain


def test_a_possible_solution_is_left_as_it_is():
    truth = library.arm7()
    found = cs.identify(truth, a_log(truth))
    assert found.plain
    assert_close(found.mechanism.inertial_numbers, truth.inertial_numbers, 1e-9)


def test_damping_does_not_become_negative():
    truth = library.acrobot()
    log = a_log(truth.with_parameters({"elbow.damping": 0.0}))
    log["tau"] = log["tau"] - 0.01 * log["qd"]
    plain = cs.identify(truth, log, "*.damping", physical=False)
    assert plain.values[1] < -0.005
    found = cs.identify(truth, log, "*.damping")
    assert 0.0 <= found.mechanism.joint("elbow").damping < 1e-3


# ---------------------------------------------------------------- logs
def swinging(mech, rows=2000):
    t = np.linspace(0.0, 10.0, rows)
    phases = np.arange(1, mech.n + 1)
    q = np.sin(np.outer(t, phases)) + 0.5 * np.cos(np.outer(t, 1.7 * phases))
    qd = phases * np.cos(np.outer(t, phases)) - 0.85 * phases * np.sin(np.outer(t, 1.7 * phases))
    qdd = -(phases**2) * np.sin(np.outer(t, phases)) - 0.5 * (1.7 * phases) ** 2 * np.cos(np.outer(t, 1.7 * phases))
    return t, q, qd, qdd, mech.inverse_dynamics(q, qd, qdd)


def test_rates_and_accelerations_come_from_a_spline():
    truth = library.planar_2r()
    t, q, qd, _, tau = swinging(truth)
    for log in ({"t": t, "q": q, "tau": tau}, {"t": t, "q": q, "qd": qd, "tau": tau}):
        found = cs.identify(truth, log)
        assert_close(found.base_values, true_values(found, truth), 1e-5)
    noisy = {"t": t, "q": q + 1e-4 * np.random.default_rng(0).normal(size=q.shape), "tau": tau}
    found = cs.identify(truth, noisy, control_points=60)
    assert_close(found.base_values, true_values(found, truth), 1e-2)


def test_the_spline_filters_as_much_as_the_noise_of_the_positions_asks():
    """Of one control point for five rows 0.42 kg m² came out as −0.10."""
    truth, rng, t = library.planar_2r(), np.random.default_rng(4), np.linspace(0.0, 6.0, 1200)
    q, qd, qdd = cs.BSpline.uniform(rng.uniform(-1.5, 1.5, (12, 2)), duration=6.0, degree=5).evaluate(t)
    log = {"t": t, "q": q + 2e-4 * rng.normal(size=q.shape), "tau": truth.inverse_dynamics(q, qd, qdd)}
    found = cs.identify(truth, log, physical=False)
    assert_close(found.base_values, true_values(found, truth), 5e-3)
    fifth = cs.identify(truth, log, physical=False, control_points=240)
    assert np.abs(fifth.base_values - true_values(fifth, truth)).max() > 0.3


@pytest.mark.slow
def test_a_log_is_a_frame_a_dict_or_several():
    truth = library.acrobot()  # whose shoulder has no motor
    log = a_log(truth)
    want = cs.identify(truth, log).values
    pd = pytest.importorskip("pandas")
    by_joint = pd.DataFrame({f"{joint}.{name}": log[name][:, j] for j, joint in enumerate(truth.names) for name in log})
    indexed = pd.DataFrame({f"{name}[{j}]": log[name][:, j] for j in range(2) for name in log})
    halves = [{name: a[:150] for name, a in log.items()}, {name: a[150:] for name, a in log.items()}]
    for form in (by_joint, indexed, halves):
        assert_close(cs.identify(truth, form).values, want, 1e-12)
    renamed = {"angles": log["q"], "qd": log["qd"], "qdd": log["qdd"], "motors": log["tau"]}
    assert_close(cs.identify(truth, renamed, signals={"q": "angles", "tau": "motors"}).values, want, 1e-12)


@pytest.mark.parametrize("label", ["{quantity}[{j}]", "{joint}.{quantity}"])
def test_a_file_of_another_program_is_a_log(tmp_path, label):
    """Columns that a frame is asked for were refused of a file, by a message that named these very columns."""
    truth = library.acrobot()
    log = a_log(truth)
    columns = {
        label.format(quantity=quantity, j=j, joint=joint): log[quantity][:, j]
        for quantity in ("q", "qd", "qdd", "tau")
        for j, joint in enumerate(truth.names)
    }
    header = ",".join(("t", *columns))
    path = tmp_path / "log.csv"
    np.savetxt(
        path,
        np.column_stack([np.arange(len(log["q"])), *columns.values()]),
        fmt="%.17g",
        delimiter=",",
        header=header,
        comments="",
    )
    assert_close(cs.identify(truth, cs.load(path)).values, cs.identify(truth, log).values, 1e-12)
    with pytest.raises(cs.InvalidType, match=r"got '.*log\.csv'; as .*, or cs\.load\(path\) of a file"):
        cs.identify(truth, str(path))


def test_a_run_is_a_log():
    truth = library.pendulum().with_parameters({"joint1.damping": 0.3})
    sim = cs.Simulation(live=False)
    bd = sim.blockdiagram()
    plant = bd.HYBRIDDYNAMICS(truth, q0=[0.4], name="plant")
    torque = bd.FUNCTION(lambda t: 4 * np.sin(3 * t) + 2 * np.sin(7.3 * t), nin=1, nout=1, name="torque")
    bd.connect(bd.TIME(), torque)
    bd.connect(torque, plant.tau)
    out = sim.run(bd, T=5, dt=0.01, rtol=1e-9, watch=["plant.q", "plant.qd", "torque"])
    wrong = truth.with_parameters({"joint1.damping": 0.0})
    signals = {"q": "plant.q", "qd": "plant.qd", "tau": "torque"}
    found = cs.identify(wrong, out, ["link1", "joint1.damping"], signals=signals)
    assert abs(found.mechanism.joint("joint1").damping - 0.3) < 1e-3


# ---------------------------------------------------------------- bad input
def test_bad_parameters_are_named():
    mech, log = library.acrobot(), a_log(library.acrobot())
    with pytest.raises(cs.UnknownName, match=r"'forearm.mas' does not exist; did you mean 'forearm.mass'\?"):
        cs.identify(mech, log, "forearm.mas")
    with pytest.raises(cs.UnknownName, match=r"did you mean 'forearm'\?"):
        cs.identify(mech, log, "forarm")
    with pytest.raises(cs.InvalidValue, match=r"'elbow.axis': the torques are not linear in it"):
        cs.identify(mech, log, "elbow.axis")
    with pytest.raises(cs.InvalidValue, match=r"'forearm.com': is found together with mass and inertia"):
        cs.identify(mech, log, "forearm.com")
    with pytest.raises(cs.UnknownName, match=r"did you mean '\*.damping'"):
        cs.identify(mech, log, "*.dampin")


def test_bad_logs_are_named():
    mech, log = library.acrobot(), a_log(library.acrobot(), 30)
    spoilt = {**log, "tau": log["tau"].copy()}
    spoilt["tau"][7, 1] = np.nan
    with pytest.raises(cs.NonFinite, match=r"data, tau: joint 'elbow' is nan in row 7, and 1 of 30 rows"):
        cs.identify(mech, spoilt)
    assert len(cs.identify(mech, spoilt, missing="drop").t) == 29
    with pytest.raises(cs.InvalidValue, match=r"3 rows of 2 joints are 6 equations, too few for 6 base parameters"):
        cs.identify(mech, {name: a[:3] for name, a in log.items()})
    with pytest.raises(cs.ShapeError, match=r"data, qd: expected 30 rows like q, got 29"):
        cs.identify(mech, {**log, "qd": log["qd"][1:]})
    with pytest.raises(cs.UnknownName, match="data: has no tau"):
        cs.identify(mech, {"q": log["q"]})
    with pytest.raises(cs.UnknownName, match="has no qd and no t to differentiate by"):
        cs.identify(mech, {"q": log["q"], "tau": log["tau"]})
    with pytest.raises(cs.ShapeError, match=r"data, q: expected shape \(N, 2\)"):
        cs.identify(mech, {**log, "q": log["q"][:, :1]})
    with pytest.raises(cs.InvalidType, match=r"data: expected a run, a frame of pandas or a dict of arrays, got 3"):
        cs.identify(mech, 3)
    timed = {"t": np.zeros(30), "q": log["q"], "tau": log["tau"]}
    with pytest.raises(cs.InvalidValue, match="data, t: all rows have the time 0"):
        cs.identify("acrobot", timed)
    with pytest.raises(cs.InvalidType, match="control_points: expected a whole number, got 'a'"):
        cs.identify("acrobot", timed, control_points="a")
    with pytest.raises(cs.InvalidType, match="mechanism: expected a Mechanism"):
        cs.identify(None, log)


@pytest.mark.parametrize("form", ["inverse", "output"])
def test_slips_in_a_log_are_told_by_its_name(form):
    """A log without rows ended in NumPy's words; names not read, and two rows of one time, passed in silence."""
    mech = library.acrobot()
    t = np.linspace(0.0, 1.0, 40)
    q = np.stack([np.sin(3.0 * t), np.cos(2.0 * t)], axis=1)
    log = {"t": t, "q": q, "tau": np.zeros((40, 2))}

    def ask(data, **options):
        return cs.identify(mech, data, ["forearm.mass"] if form == "output" else None, form=form, **options)

    def without(rows, **changed):
        return {name: x[rows] for name, x in (log | changed).items()}

    nowhere, standing = np.full(40, np.nan), t.copy()
    standing[21] = standing[20]
    for given, options, kind, said in (
        (without(slice(0)), {}, cs.InvalidValue, "data: has no rows; log more"),
        ([log, without(slice(0))], {}, cs.InvalidValue, r"data\[1\]: has no rows"),
        ([log, without(slice(2))], {}, cs.InvalidValue, r"data\[1\]: .*2 rows .*too"),
        (log | {"t": nowhere}, {"missing": "drop"}, cs.InvalidValue, "data: has no rows that are finite"),
        (log | {"t": nowhere}, {}, cs.NonFinite, "data, t: is nan in row 0; missing='drop' leaves it out"),
        (
            log | {"t": standing},
            {},
            cs.InvalidValue,
            r"data, t: is 0\.51.* in rows 20 and 21, where joint 'shoulder' is",
        ),
        (
            log,
            {"signals": {"q": "zz"}},
            cs.UnknownName,
            r"signals: q: entry of data 'zz' does not exist; there are 't'",
        ),
        (log, {"horizon": 2}, cs.InvalidValue, "horizon: "),
        (log, {"max_step": -1.0}, cs.InvalidValue, "max_step: "),
    ):
        with pytest.raises(kind, match=said):
            ask(given, **options)


def test_rows_without_a_time_are_left_out_and_what_is_not_read_is_told(caplog):
    truth = library.planar_2r()
    t = np.linspace(0.0, 2.0, 400)
    q, qd, qdd = (
        np.sin(3.0 * t + [[0.0], [1.0]]),
        3.0 * np.cos(3.0 * t + [[0.0], [1.0]]),
        -9.0 * np.sin(3.0 * t + [[0.0], [1.0]]),
    )
    log = {"t": t, "q": q.T, "velocity": qd.T, "tau": truth.inverse_dynamics(q.T, qd.T, qdd.T)}
    log["t"] = np.where(np.arange(400) % 50 == 7, np.nan, t)
    wrong = truth.with_parameters({"forearm.mass": 3.0})
    with caplog.at_level("INFO", logger="cstormpy"):
        found = cs.identify(wrong, log, "forearm.mass", missing="drop")
    assert len(found.t) > 360 and np.isin(found.t, t[np.isfinite(log["t"])]).all()  # less those at the ends
    assert abs(found.mechanism.link("forearm").mass - 1.25) < 1e-3
    assert "data: 'velocity' is not read; of a dict these are: q, qd, qdd, tau and t" in caplog.text
    log["rates"] = log.pop("velocity")
    cs.identify(wrong, log, "forearm.mass", missing="drop", signals={"qd": "rates"})
    assert "'rates'" not in caplog.text


def test_what_the_motion_does_not_excite_is_said():
    mech = library.acrobot()
    rng = np.random.default_rng(0)
    q, zero = rng.normal(size=(100, 2)), np.zeros((100, 2))
    log = {"q": q, "qd": zero, "qdd": zero, "tau": mech.inverse_dynamics(q, zero, zero)}  # held still in 100 postures
    found = cs.identify(mech, log)
    assert found.rank == 4
    assert len(found.undetermined) == 2
    assert all("Izz" in name for name in found.undetermined)
    assert np.isinf(found.standard_errors).sum() == 2
    assert "not excited by these data" in str(found)


def test_a_figure_has_torques_and_confidence(tmp_path):
    mech = library.acrobot()
    t, q, qd, qdd, tau = swinging(mech, 200)
    log = {"q": q, "qd": qd, "qdd": qdd, "tau": tau}
    figure, without = cs.identify(mech, {"t": t, **log}).plot(), cs.identify(mech, log).plot()
    titles = [axes.get_title(loc="left") for axes in figure.axes]
    assert titles[0].startswith("shoulder: residual") and titles[-1].startswith("Base parameters")
    assert [each.axes[3].get_xlabel() for each in (figure, without)] == ["t [s]", "row"]  # rows were seconds


def test_a_figure_shows_residuals_and_every_number_whole():
    """Residuals a thousandth of the signal were a flat line, the greatest number was cut by the frame."""
    mech = library.acrobot()
    t, q, qd, qdd, tau = swinging(mech, 200)
    tau = tau + 1e-4 * np.random.default_rng(0).normal(size=tau.shape)
    found = cs.identify(mech, {"t": t, "q": q, "qd": qd, "qdd": qdd, "tau": tau})
    figure = found.plot()
    figure.canvas.draw()
    fit, residual, *_, confidence = figure.axes
    assert [line.get_label() for line in fit.get_lines()] == ["logged", "fitted"]
    assert np.ptp(residual.get_ylim()) < 20 * found.noise[0]
    assert fit.get_legend() is None  # it stands outside, and covers nothing
    low, high = confidence.get_xlim()
    told = np.isfinite(found.standard_errors)
    reach = np.where(told, 1.96 * found.standard_errors, 0.0)
    assert low < (found.base_values - reach).min() and high > (found.base_values + reach).max()


@pytest.mark.parametrize("form", ["inverse", "output"])
def test_slips_with_a_closed_mechanism_are_told_before_its_loops(form):
    """A misspelled name or a NaN was hidden behind a sentence that named neither identify nor what to do."""
    mech = library.four_bar()
    t = np.linspace(0.0, 1.0, 50)
    log = {"t": t, "q": np.zeros((50, 3)), "qd": np.zeros((50, 3)), "qdd": np.zeros((50, 3)), "tau": np.zeros((50, 3))}
    with pytest.raises(cs.UnknownName, match=r"did you mean 'coupler_rod\.mass'"):
        cs.identify(mech, log, ["coupler_rod.mas"], form=form)
    torn = {**log, "q": np.where(np.arange(150).reshape(50, 3) == 52, np.nan, 0.0)}
    with pytest.raises(cs.NonFinite, match="data, q: joint 'coupler' is nan in row 17, and 1 of 50 rows"):
        cs.identify(mech, torn, ["coupler_rod.mass"], form=form)
    with pytest.raises(cs.InvalidValue, match=r"data: loop pin: x: is open by 0\.3 .* in row 0"):
        cs.identify(mech, log, ["coupler_rod.mass"], form=form)


def test_times_that_fall_are_refused_by_row():
    """They were fitted by a spline as if the rows were in order."""
    mech = library.pendulum(1)
    log = {"t": np.linspace(0.0, 1.0, 60), "q": np.zeros((60, 1)), "tau": np.zeros((60, 1))}
    log["t"][[30, 31]] = log["t"][[31, 30]]
    with pytest.raises(cs.InvalidValue, match=r"data, t: falls from .* in row 31; sort the rows"):
        cs.identify(mech, log, [f"{mech.links[0].name}.mass"])


def test_what_is_left_of_the_torques_is_told():
    """A log in degrees gave a table of numbers and small errors, and no word of how badly they fit."""
    arm = library.planar_2r().with_gravity((0.0, -9.81, 0.0))
    log = a_log(arm)
    good = cs.identify(arm, log)
    assert good.misfit.max() < 1e-6 and "left of the torques: shoulder" in str(good) and "much" not in str(good)
    noisy = cs.identify(arm, log | {"tau": log["tau"] * (1.0 + 0.1 * np.tile([1.0, -1.0], 150)[:, None])})
    np.testing.assert_allclose(noisy.misfit, 0.1, atol=0.02)
    for wrong in ({"q": np.rad2deg(log["q"])}, {"tau": log["tau"][:, ::-1]}):
        found = cs.identify(arm, log | wrong)
        assert found.misfit.max() > 0.5 and "that is much: look at signs, units" in str(found)
        assert "control_points" not in str(found)


def test_a_motion_too_fast_for_its_spline_is_told_what_to_ask_for():
    """It was told to look at signs and units; with more control points the mass is found."""
    mech, t = library.pendulum(1).with_gravity((0.0, 0.0, 0.0)), np.linspace(0.0, 2.0, 401)
    w = 2.0 * np.pi * 12.0
    log = {"t": t, "q": np.sin(w * t)[:, None], "qd": w * np.cos(w * t)[:, None]}
    log["tau"] = mech.inverse_dynamics(log["q"], log["qd"], -w * w * log["q"])
    mass = [f"{mech.links[0].name}.mass"]
    poor = cs.identify(mech, log, mass, control_points=40)
    assert "too fast for the spline that was fitted to it wants more control_points=" in str(poor)
    good = cs.identify(mech, log, mass, control_points=300)
    assert poor.misfit[0] > 0.5 > 0.02 > good.misfit[0] and "control_points" not in str(good)


@pytest.fixture(scope="module")
def tumbling():
    """Return a driven pendulum on a ball, and a log of it whose rotation vectors are re-centred several times."""
    body = cs.Link("bob", None, cs.Spherical(name="ball", damping=0.05), mass=1.3, com=(0.02, 0.05, -0.3))
    mech = cs.Mechanism([body.replace(inertia=np.diag([0.11, 0.12, 0.04]))])
    sim = cs.Simulation(progress=False, live=False)
    bd = sim.blockdiagram()
    torque = bd.FUNCTION(lambda t: np.array([2.0 * np.sin(1.7 * t) + 1.0, np.cos(2.3 * t), 0.8 * np.sin(t)]), name="u")
    plant = bd.HYBRIDDYNAMICS(mech, q0=[0.3, 0.2, 0.1], qd0=[1.0, 2.0, 3.0], name="plant")
    bd.connect(bd.TIME(), torque)
    bd.connect(torque, plant.tau)
    bd.connect(plant.q, bd.NULL())
    out = sim.run(bd, T=4.0, dt=0.005, rtol=1e-10, watch=["plant.q", "plant.qd", "u"])
    log = {"t": out.t, "q": out.signal("plant.q"), "qd": out.signal("plant.qd"), "tau": out.signal("u")}
    assert (np.abs(np.diff(log["q"], axis=0)).max(axis=1) > 2.0).sum() > 3
    return mech, log


@pytest.mark.parametrize("lacking", [(), ("qd",)])
def test_a_log_is_cut_where_rotation_vectors_are_re_centred(tumbling, lacking):
    """Splines went across the jumps: 155 kg for 1.3, and moments of the other sign."""
    mech, log = tumbling
    found = cs.identify(mech, {name: x for name, x in log.items() if name not in lacking}, ["bob"])
    link = found.mechanism.links[0]
    np.testing.assert_allclose(link.com, mech.links[0].com, atol=1e-3)
    np.testing.assert_allclose(link.inertia, mech.links[0].inertia, atol=1e-3)


@pytest.mark.slow
def test_a_motion_is_simulated_up_to_where_its_rotation_vectors_are_re_centred(tumbling):
    mech, log = tumbling
    guess = mech.with_links([mech.links[0].replace(com=(0.02, 0.05, -0.25))])
    found = cs.identify(guess, log, ["bob.com[2]"], form="output", max_step=0.005)
    assert found.mechanism.links[0].com[2] == pytest.approx(-0.3, abs=1e-3)
