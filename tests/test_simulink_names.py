"""Blocks asked for by their names in Simulink: what each is here, in messages and on its page."""

from __future__ import annotations

import functools
import re
from pathlib import Path

import numpy as np
import pytest

import cstormpy as cs
from cstormpy.simulation.simulink_names import NAMES, TOOLBOX, here

PAGE = Path(cs.__file__).resolve().parent.parent / "docs" / "simulink.md"


def as_markdown() -> str:
    """Return the table as a page."""
    rows = [f"| {name} | {NAMES[name]} |" for name in sorted(NAMES, key=str.lower)]
    head = (
        "# Blocks by their names in Simulink\n\n"
        "`bd.TRANSPORT_DELAY` and the like say the same. Arguments and ports are shown by `help(bd.DELAY)`.\n"
        "What differs: what is behind a ZOH or DELAY of the same clock gets its samples a tick later, and a DELAY of\n"
        "one sample shows a plant the sample just taken ([diagrams.md](diagrams.md#solvers-clocks-events)).\n\n"
        "| in Simulink | here |\n|---|---|\n"
    )
    toolbox = [f"| {name} | {TOOLBOX[name]} |" for name in sorted(TOOLBOX)]
    more = "\n## Blocks of the Robotics Toolbox\n\n| in the Robotics Toolbox | here |\n|---|---|\n"
    return head + "\n".join(rows) + "\n" + more + "\n".join(toolbox) + "\n"


@pytest.fixture(scope="module")
def bd():
    return cs.Simulation(graphics=False).blockdiagram()


def test_what_is_named_exists(bd):
    """Each kind of block, and each argument by name, of the table."""
    import inspect

    kinds = {name for name in dir(bd) if name.isupper()}
    for name, said in (NAMES | TOOLBOX).items():
        for kind, given in re.findall(r"bd\.([A-Z][A-Z0-9_]*)\(([^()]*)", said):
            assert kind in kinds, (name, kind)
            known = inspect.signature(getattr(bd, kind)).parameters
            for argument in re.findall(r"(\w+)=", given):
                assert argument in known, (name, kind, argument)


@pytest.mark.parametrize("engine", ["interpreted", "compiled"])
def test_functions_that_are_named_run(engine):
    """None of NumPy's was taken: "the function takes 8 arguments, nin=1"."""
    sim = cs.Simulation(engine=engine, graphics=False, progress=False)
    given = np.array([0.3, 0.7, 0.2])
    for said in {s for words in NAMES.values() for s in re.findall(r"bd\.FUNCTION\((?:abs|numpy)[^)]*\)", words)}:
        bd = sim.blockdiagram()
        block = eval(said, {"bd": bd, "numpy": np})
        for port in range(block.nin):
            bd.connect(bd.CONSTANT(given if block.nin == 2 else 0.3), block[port])
        bd.connect(block, bd.NULL())
        bd.connect(bd.CONSTANT(1.0), bd.INTEGRATOR())
        expected = block.func(*[given if block.nin == 2 else 0.3] * block.nin)
        np.testing.assert_allclose(sim.run(bd, T=0.1, watch=[block]).signal(block.name)[-1], expected, atol=1e-15)
    with pytest.raises(cs.CstormError, match=r"FUNCTION: func: numpy\.add takes 2 arguments, nin=1"):
        bd.FUNCTION(np.add)


class Scaled:
    """Functions with defaults, of all kinds."""

    def method(self, x, k=3.0):
        return k * x

    __call__ = method

    @staticmethod
    def by_name(x, *, k=3.0):
        return k * x


@pytest.mark.parametrize("engine", ["interpreted", "compiled"])
@pytest.mark.parametrize(
    ("given", "value"),
    {
        "lambda": ((lambda x, k=3.0: k * x,), 1.5),  # as one of a loop, lambda x, k=k: k * x
        "method": ((Scaled().method,), 1.5),
        "object": ((Scaled(),), 1.5),
        "by name": ((Scaled.by_name,), 1.5),
        "partial": ((functools.partial(Scaled.by_name, k=4.0),), 2.0),
        "fargs and a default": ((lambda x, a, b=2.0: a * x + b, 1, 1, False, [4.0]), 4.0),
        "arrays": ((lambda x, a: float(a @ a) * x, 1, 1, False, [np.array([1.0, 2.0])]), 2.5),
        "an array": ((lambda x, a: float(a @ a) * x, 1, 1, False, (np.array([1.0, 2.0]),)), 2.5),
        "fkwargs": ((Scaled.by_name, 1, 1, False, None, {"k": 5.0}), 2.5),
        "numpy and fargs": ((np.power, 1, 1, False, [2]), 0.25),
        "numpy and some fargs": ((np.clip, 1, 1, False, [0.1, 0.2]), 0.2),
    }.values(),
    ids=lambda each: "",
)
def test_functions_with_defaults_and_with_fargs_run(engine, given, value):
    """bdsim counts what has a default as an input: "the function takes 2 arguments, nin=1"; with fargs none of NumPy's
    was taken."""
    sim = cs.Simulation(engine=engine, graphics=False, progress=False)
    bd = sim.blockdiagram()
    bd.connect(bd.CONSTANT(0.5), block := bd.FUNCTION(*given, name="f"))
    bd.connect(block, bd.INTEGRATOR(name="sum"))
    assert sim.run(bd, T=1.0).x[-1, 0] == pytest.approx(value, abs=1e-9)
    with pytest.raises(cs.CstormError, match="the function takes 3 arguments, nin=1"):
        bd.FUNCTION(lambda x, y, k=3.0: k * x)


def test_two_functions_may_share_their_fargs(bd):
    """bdsim added the memory of the first to the list: "the function takes 3 arguments, nin=1"."""
    more = [2.0]
    for _ in range(2):
        assert bd.FUNCTION(lambda x, a, memory: a * x, 1, 1, True, more).args == [2.0, {}]
    assert more == [2.0]


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ("TRANSPORT_DELAY", "Simulink's Transport Delay is here bd.DELAY(clock, time=...)"),
        ("TransferFcn", "bd.TRANSFERFN(num, den)"),
        ("Unit_Delay", "bd.DELAY(clock)"),
        ("BandLimitedWhiteNoise", "bd.NOISE(clock, power=...)"),
        ("ABS", "bd.FUNCTION(abs)"),
        ("GET_JACOBIAN", 'bd.KINEMATICS(mech, link, frame="aligned"), its port jacobian'),
        ("Joint_Space_Mass_Matrix", "bd.MASSMATRIX(mech)"),
    ],
)
def test_a_name_of_simulink_says_what_it_is_here(bd, asked, expected):
    with pytest.raises(cs.CstormError, match=re.escape(expected)):
        getattr(bd, asked)


def test_saturation_is_no_variation(bd):
    """The nearest spelling that was offered for SATURATION was VARIATION."""
    assert bd.SATURATION(-1.0, 1.0).type == "saturation"
    with pytest.raises(cs.CstormError, match="did you mean 'SATURATION'"):
        bd.SATURATON  # noqa: B018
    assert here("no such block") is None


@pytest.mark.skipif(not PAGE.parent.is_dir(), reason="the documentation is in the repository")
def test_the_page_is_the_table():
    """The table has changed? ``python tests/test_simulink_names.py``."""
    assert PAGE.read_text(encoding="utf-8") == as_markdown()


if __name__ == "__main__":
    PAGE.write_text(as_markdown(), encoding="utf-8")
