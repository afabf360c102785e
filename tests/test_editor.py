"""What an editor, a type checker and `help` are told of diagrams and results."""

from __future__ import annotations

import ast
import importlib.util
import inspect
import json
import os
import pydoc
import re
import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import diagram_stub
import pytest
from bdsim import BDSim
from bdsim.components import BDStruct

import cstormpy as cs
from cstormpy.simulation.block_maker import OPTIONS
from cstormpy.simulation.palette import our_blocks


@pytest.fixture(scope="module")
def bd():
    return cs.Simulation(graphics=False).blockdiagram()


def kinds(bd):
    return [name for name in dir(bd) if name.isupper()]


def test_a_kind_shows_its_arguments(bd):
    """`bd.HYBRIDDYNAMICS(` showed (*args, **kwargs)."""
    signature = inspect.signature(bd.HYBRIDDYNAMICS)
    assert list(signature.parameters)[:3] == ["mech", "q0", "qd0"]
    assert signature.parameters["wrench"].default is False
    assert set(OPTIONS) <= set(signature.parameters)
    assert "bd" not in signature.parameters and "blockargs" not in signature.parameters


def test_every_kind_has_a_signature_and_reads_as_text(bd):
    """Of what Sphinx is told, with tables, roles and fields, nothing is left."""
    assert len(kinds(bd)) > 60
    for kind in kinds(bd):
        text = pydoc.render_doc(getattr(bd, kind), renderer=pydoc.plaintext)
        assert text.splitlines()[2].startswith(f"{kind}("), kind
        found = re.search(r":\w+:`|^\s*\.\. \w|:param|:type|``|list-table", text, re.MULTILINE)
        assert found is None, (kind, found)


def test_the_help_of_a_kind(bd):
    text = pydoc.render_doc(bd.ENERGY, renderer=pydoc.plaintext)
    assert re.search(r"^ +input q \(.+\): ", text, re.MULTILINE)
    assert re.search(r"^ +mech \(str, path or Mechanism\): the mechanism", text, re.MULTILINE)


def test_completion_offers_what_can_be_made(bd):
    """bdsim declares kinds of toolboxes that are not there; asked for, they say so."""
    offered = kinds(bd)
    declared = [name for name in vars(bd) if name.isupper()]
    assert {"HYBRIDDYNAMICS", "GAIN", "SUM"} <= set(offered) <= set(declared)
    assert {"connect", "compile", "blocklist"} <= set(dir(bd))
    for kind in set(declared) - set(offered):
        with pytest.raises(cs.CstormError):
            getattr(bd, kind)()


def test_completion_offers_the_parts_of_a_result(bd):
    bd = cs.Simulation(graphics=False).blockdiagram()
    bd.connect(bd.CONSTANT(1.0), bd.INTEGRATOR(name="x"))
    out = bd.runtime.run(bd, T=0.1, live=False)
    assert {"t", "x", "xnames", "status", "message", "state", "signal", "save", "plot", "units"} <= set(dir(out))
    assert all(getattr(out, name) is not None for name in ("t", "x", "status", "message", "state"))


def test_the_stub_is_current():
    """Blocks have changed? python tests/diagram_stub.py."""
    written = diagram_stub.STUB.read_text(encoding="utf-8")
    found = diagram_stub.methods()
    ours = our_blocks()
    assert len(found) > 60 and set(ours) <= set(found)
    bdsim = re.search(r"of bdsim (\S+)\.\"", written)[1]
    if bdsim == metadata.version("bdsim"):
        assert written == diagram_stub.text()
        return
    for kind, line in found.items():  # of another bdsim, our own blocks are the same
        if kind in ours:
            assert line in written.splitlines()


RIGHT = """
import numpy as np

import cstormpy as cs
from cstormpy.control import Law


class Viscous(Law):
    def __init__(self, mech: cs.Mechanism, kd: float = 1.0) -> None:
        super().__init__(mech)
        self.kd = kd

    def torque(self, t, q, qd, reference=None):
        return -self.kd * qd[self.mech.actuated_mask]


sim = cs.Simulation(engine="compiled", live=False)
mech = cs.library.acrobot("spong")
bd = sim.blockdiagram()
plant = bd.HYBRIDDYNAMICS(mech, q0=[0.1, 0.0], name="plant")
law = bd.CONTROLLER(mech, Viscous(mech, kd=2.0), name="law")
bd.connect(plant[0:2], law[0:2])
bd.connect(law.tau, plant.tau, bd.GAIN(2, name="double"))
out = sim.run(bd, T=1.0, watch=["plant", "law"])
print(out.t[-1], out.status, np.ptp(out.signal("plant.q"), axis=0), out.state.t)
out.plot("plant.q").savefig("run.png")
model = sim.linearize(bd, inputs=["law.tau"], outputs=["plant.q"])
print(model.A.shape, sim.options.graphics)
sim.run(bd, T=0.5)
env = cs.gym.make("acrobot", num_envs=8)
env.reset(seed=1)
sim.to_fmu(bd, "acrobot.fmu", inputs=["law.tau"], outputs=["plant.q"])
"""
#: Slips in that script, and what stands in the line of each.
SLIPS = {
    "q0=": "q_0=",
    "bd.GAIN": "bd.GAYN",
    "T=0.5": "Tend=0.5",
    "out.status": "out.staus",
    "sim.linearize": "sim.linearise",
    "num_envs=8": 'num_envs="8"',
}


def command_of(tool):
    """Return the command that starts a type checker, or None: pyright is a program of Node, beside or in Python's."""
    if tool == "pyright" and shutil.which("pyright"):
        return [shutil.which("pyright")]
    if importlib.util.find_spec(tool) is None:
        return None
    command = [sys.executable, "-m", tool]  # Python's package of pyright loads that program when it is first called
    done = subprocess.run([*command, "--version"], capture_output=True, timeout=300, check=False)
    return None if done.returncode else command


def checked(tool, folder):
    """Return the lines of the wrong script in which a type checker finds something, and what it says of the right one.

    A checkout is told to it by its path, an installed package it finds by itself.
    """
    wrong = RIGHT
    for right, slip in SLIPS.items():
        assert wrong.count(right) == 1
        wrong = wrong.replace(right, slip)
    (folder / "right.py").write_text(RIGHT)
    (folder / "wrong.py").write_text(wrong)
    beside = str(Path(cs.__file__).parent.parent)
    environment = {**os.environ, **({} if "site-packages" in beside else {"MYPYPATH": beside})}
    (folder / "pyrightconfig.json").write_text(json.dumps({"extraPaths": [beside]}))
    options = {"mypy": ["--no-error-summary", "--cache-dir", str(folder / "cache")],
               "pyright": ["--pythonpath", sys.executable]}[tool]  # fmt: skip
    done = subprocess.run([*command_of(tool), *options, "right.py", "wrong.py"],
                          cwd=folder, env=environment, capture_output=True, text=True, timeout=600)  # fmt: skip
    lines = wrong.splitlines()
    found = {lines[int(k) - 1] for k in re.findall(r"wrong\.py:(\d+).* error: ", done.stdout)}
    return found, [line for line in done.stdout.splitlines() if "right.py" in line], done


@pytest.mark.slow
@pytest.mark.parametrize("tool", ["mypy", "pyright"])
def test_slips_in_a_users_script_are_found(tmp_path, tool):
    """A type checker finds kinds, arguments, parts of results that there are not; nothing in a script that is right."""
    if command_of(tool) is None:
        pytest.skip(f"there is no {tool}" + (" (npm install pyright, its .bin on PATH)" if tool == "pyright" else ""))
    found, said, done = checked(tool, tmp_path)
    assert said == [], done.stdout
    missed = [slip for slip in SLIPS.values() if not any(slip in line for line in found)]
    assert missed == [], done.stdout + done.stderr


def test_bdsims_classes_are_told_as_they_are():
    """The stub of what `Simulation` and `Result` are made of names what bdsim has, and all that is public."""
    tree = ast.parse(diagram_stub.STUB.with_name("bdsim_bases.pyi").read_text(encoding="utf-8"))
    for kind in (node for node in tree.body if isinstance(node, ast.ClassDef)):
        real = {"BDSim": BDSim, "BDStruct": BDStruct}[kind.name]
        told = {f.name for f in kind.body if isinstance(f, ast.FunctionDef)}
        assert told - {"__init__"} <= set(dir(real))
        public = {name for name in vars(real) if not name.startswith("_")}
        assert public - set(vars(cs.Simulation)) <= told | {"blockdiagram", "report", "run"}
