"""Threads that share a batch, and scratch memory: the answers are the same however many there are."""

import copy
import importlib.util
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from mechanism_calls import ACROBOT, hybrid, prepared, samples, sensitivity
from own_laws import Phased, controlled
from random_mechanisms import random_mechanism, random_state

import cstormpy as cs
from cstormpy.dynamics import batches
from cstormpy.errors import DiagramError, InvalidValue
from cstormpy.kernels import stepping_code
from cstormpy.kernels.layout import LANES
from cstormpy.simulation.compiled import program


@pytest.mark.nojit
@pytest.mark.parametrize("threads", [0, -1, "2", 1.5, True, [2], np.float64(2)])
def test_threads_are_a_positive_number(threads):
    for shape in ((20, 2), (2,), (0, 2)):
        some = np.zeros(shape)
        for ask in (hybrid, sensitivity):
            with pytest.raises(
                InvalidValue, match=r"^threads: expected a positive number or None for one per core, got"
            ):
                ask(ACROBOT, some, some, some, threads=threads)
        for ask in (ACROBOT.forward_kinematics, ACROBOT.inertial, ACROBOT.gravity_load):
            with pytest.raises(InvalidValue, match=r"^threads: expected"):
                ask(some, threads=threads)
        with pytest.raises(InvalidValue, match=r"^threads: expected"):
            ACROBOT.hybrid_jvp(*[some] * 6, threads=threads)
        with pytest.raises(InvalidValue, match=r"^threads: expected"):
            ACROBOT.jacobian(some, 1, threads=threads)


@pytest.mark.usefixtures("eager_threads")
@pytest.mark.nojit
@pytest.mark.parametrize("count", [1, LANES - 1, LANES, LANES + 1, 5 * LANES + 3])
def test_any_number_of_threads_gives_the_same(count):
    q, qd, u = samples(ACROBOT, count)
    one = hybrid(ACROBOT, q, qd, u)
    for threads in (2, 3, 64, np.int64(2), None):
        np.testing.assert_array_equal(hybrid(ACROBOT, q, qd, u, threads=threads), one)
        np.testing.assert_array_equal(
            sensitivity(ACROBOT, q, qd, u, threads=threads), sensitivity(ACROBOT, q, qd, u, threads=1)
        )


@pytest.mark.usefixtures("eager_threads")
def test_threads_do_not_pile_up():
    """Each number of parts once had threads of its own."""
    before = threading.active_count()
    for parts in range(2, 9):
        q, qd, u = samples(ACROBOT, parts * LANES)
        hybrid(ACROBOT, q, qd, u, threads=8)
    assert threading.active_count() - before <= 2 + 4 + 8


def test_threads_of_the_user_do_not_meet():
    """Each thread has scratch memory of its own, and prepared functions hold the interpreter's lock."""
    rng = np.random.default_rng(8)
    mechs = [random_mechanism(rng, links=k) for k in (3, 9, 5)]
    work = [(m, *random_state(rng, m, 30)) for m in mechs]
    expected = [hybrid(*w) for w in work]
    wrong = []

    def repeat(k):
        mech, q, qd, u = work[k]
        for i in range(60):
            same = np.array_equal(hybrid(mech, q, qd, u), expected[k])
            one = np.allclose(
                prepared(mech, q[i % 30], qd[i % 30], u[i % 30]), expected[k][i % 30], rtol=1e-9, atol=1e-9
            )
            if not (same and one):
                wrong.append((k, i))

    threads = [threading.Thread(target=repeat, args=(k % 3,)) for k in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


@pytest.mark.nojit
def test_what_scratch_memory_holds_from_before_does_not_matter():
    rng = np.random.default_rng(9)
    mech = random_mechanism(rng, links=5)
    q, qd, u = random_state(rng, mech, 11)
    wrench, base = rng.normal(size=(5, 6)), tuple(rng.normal(size=(2, 6)))
    questions = [
        lambda: hybrid(mech, q, qd, u),
        lambda: hybrid(mech, q, qd, u, wrench=wrench, base=base),
        lambda: mech.hybrid_sensitivity(q, qd, u, wrench, base, to_base=True).dy_dbase,
        lambda: sensitivity(mech, q, qd, u),
        lambda: mech.hybrid_jvp(q, qd, u, q, qd, u, wrench, base)[1],
        lambda: mech.hybrid_vjp(q, qd, u, u, wrench, base)[1],
        lambda: mech.forward_kinematics(q),
        lambda: mech.jacobian(q, 3),
        lambda: mech.jacobian_rate(q, qd, 3),
        lambda: mech.inertial(q, qd, base).momentum,
        lambda: mech.inertial(q, qd, base).kinetic_by_q,
    ]
    clean = [ask() for ask in questions]
    for ask, expected in zip(questions, clean, strict=True):
        batches.workspace(1)[...] = np.nan
        np.testing.assert_array_equal(ask(), expected)


def slowly(made):
    """Return what makes machine code as ever, so slowly that other threads ask for it meanwhile."""
    make = stepping_code.machine_for

    def machine_for(name, key, *args, **options):
        machine = make(name, key, *args, **options)
        time.sleep(0.1)
        made.append(name)
        return machine

    return machine_for


@pytest.mark.nojit
def test_threads_that_ask_for_the_code_of_runs_at_once_get_the_same():
    """Each made its own, and all but the one kept last ran on in memory that was given back: sweeps crashed."""
    spec = importlib.util.spec_from_file_location("stepping_code_of_its_own", stepping_code.__file__)
    fresh, made = importlib.util.module_from_spec(spec), []
    spec.loader.exec_module(fresh)  # a copy, which has made nothing yet
    fresh.machine_for = slowly(made)
    euler = np.array([[0.0, 0.0], [1.0, 0.0]])
    with ThreadPoolExecutor(4) as pool:
        steps = [*pool.map(lambda _: fresh.Steps("trial"), range(4))]
        places = {*pool.map(lambda _: fresh.steps_of(euler, 3), range(4))}
    assert made == ["steps", "stages"] and len(places) == 1 and len(steps) == 4


@pytest.mark.nojit
def test_threads_that_ask_for_the_code_of_a_diagram_at_once_get_the_same(monkeypatch):
    made = []
    monkeypatch.setattr(program, "machine_for", slowly(made))
    text = "define i64 @rate_one() { ret i64 0 }"
    with ThreadPoolExecutor(4) as pool:
        ask = program.Program._machine
        machines = {*pool.map(lambda _: ask("diagram", "a diagram of its own", lambda: text), range(4))}
    assert made == ["diagram"] and len(machines) == 1


def test_a_diagram_serves_one_thread_at_a_time():
    """Runs of one diagram in several threads mixed their signals: they "finished" with states that were 35 rad off, and
    gradients that were 1e9 times too large."""
    sim = cs.Simulation(live=False, progress=False)
    bd = sim.blockdiagram("shared")
    lag, gain = bd.INTEGRATOR(x0=1.0, name="lag"), bd.GAIN(-1.0, name="gain")
    bd.connect(lag, gain)
    bd.connect(gain, lag)
    said = []

    def meanwhile(t, x):
        if said:
            return
        with ThreadPoolExecutor(1) as pool:
            for asked in (sim.run, sim.linearize, sim.trim, sim.explain, sim.stepper):
                said.append(pool.submit(asked, bd).exception())
            said.append(pool.submit(sim.run, copy.deepcopy(bd), 1.0).result().status)
        said.append(len(sim.linearize(bd).A))  # the thread of the run may ask

    out = sim.run(bd, 1.0, observer=meanwhile)
    assert all(
        isinstance(each, DiagramError) and "another thread uses diagram 'shared'" in str(each) for each in said[:5]
    )
    assert said[5:] == ["finished", 1] and out.x[-1, 0] == pytest.approx(np.exp(-1.0), abs=1e-6)
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(sim.run, bd, 1.0).result().x[-1] == sim.run(bd, 1.0).x[-1]  # as soon as it is free


@pytest.mark.slow
def test_workers_of_a_sweep_do_not_share_the_law_that_a_builder_found():
    """It changed its phase for all of them: sweeps and robustness of such builders had other numbers each time."""
    law = Phased(ACROBOT)

    def build(sim):
        return controlled(law, "interpreted")[1]

    sim = cs.Simulation(engine="interpreted", live=False, progress=False)
    starts = np.linspace(0.1, 0.5, 8)
    alone, together = (
        sim.sweep(build, {"plant.shoulder.q": starts}, lambda out: out.x[-1, 0], T=1.5, workers=workers, progress=False)
        for workers in (1, 4)
    )
    np.testing.assert_array_equal(together.value, alone.value)
