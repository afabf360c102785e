"""What an editor, a type checker and `help` are told of diagrams and results."""

from __future__ import annotations

import inspect
import os
import pydoc
import re
import subprocess
import sys
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

import diagram_stub
import pytest

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


@pytest.mark.slow
@pytest.mark.skipif(find_spec("mypy") is None, reason="needs mypy")
def test_a_typo_in_a_users_script_is_found(tmp_path):
    """mypy finds kinds and arguments that there are not, and nothing in a script that is right."""
    right = (
        "import cstormpy as cs\n\nsim = cs.Simulation()\nbd = sim.blockdiagram()\n"
        'plant = bd.HYBRIDDYNAMICS("acrobot", q0=[0.1, 0.0], name="plant")\n'
        "bd.connect(plant.q, bd.GAIN(2, name='double'))\nout = sim.run(bd, T=1.0)\nprint(out.t, out.status)\n"
    )
    (tmp_path / "right.py").write_text(right)
    (tmp_path / "wrong.py").write_text(right.replace("q0=", "q_0=").replace("bd.GAIN", "bd.GAYN"))
    options = ["--no-error-summary", "--cache-dir", str(tmp_path / "cache")]
    beside = str(Path(cs.__file__).parent.parent)
    environment = {**os.environ, **({} if "site-packages" in beside else {"MYPYPATH": beside})}
    done = subprocess.run([sys.executable, "-m", "mypy", *options, "right.py", "wrong.py"],
                          cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=600)  # fmt: skip
    assert "right.py" not in done.stdout, done.stdout
    assert 'wrong.py:5: error: Unexpected keyword argument "q_0"' in done.stdout
    assert 'wrong.py:6: error: "BlockDiagram" has no attribute "GAYN"' in done.stdout
