"""Every block as bdsim and bdedit see it: found, documented, with icon, robust to wrong arguments."""

import ast
import contextlib
import inspect
import json
import os
import re
import shutil
import struct
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import bdsim
import numpy as np
import pytest
from block_icons import draw_icons
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import cstormpy.blocks
from cstormpy import library
from cstormpy.blocks.dynamics import HybridDynamics
from cstormpy.errors import CstormError

FOLDER = Path(cstormpy.blocks.__file__).parent
PACKAGE = Path(cstormpy.__file__).parent
ICONS = FOLDER / "Icons"


def block_classes():
    """Return the classes that are blocks, by the module that defines them, in the order of the files."""
    found = []
    for path in sorted(FOLDER.glob("[!_]*.py")):
        module = import_module(f"cstormpy.blocks.{path.stem}")
        names = [node.name for node in ast.parse(path.read_text()).body if isinstance(node, ast.ClassDef)]
        classes = [getattr(module, name) for name in names if not name.startswith("_")]
        found += [cls for cls in classes if issubclass(cls, bdsim.Block)]
    return found


BLOCKS = block_classes()
PLAIN = bdsim.BDSim(sysargs=False, graphics=False, verbose=False, progress=False)
each_block = pytest.mark.parametrize("cls", BLOCKS, ids=lambda cls: cls.__name__)

_LIST = """
import json
import bdsim

sim = bdsim.BDSim(sysargs=False, graphics=False, verbose=False)
ours = {key: info for key, info in sim._blocklibrary.items() if info["package"] == "cstormpy"}
keys = ("classname", "module", "url", "nin", "nout", "blockclass", "params", "path")
print(json.dumps({name: {key: info[key] for key in keys} for name, info in ours.items()}))
"""

_RUN = """
import numpy

sim = bdsim.BDSim({options}sysargs=False, graphics=False, verbose=False, progress=False)
bd = sim.blockdiagram()
plant, effort = bd.HYBRIDDYNAMICS("acrobot", q0=[0.1, 0.0]), bd.JOINTEFFORT("acrobot")
angles = bd.GAIN(numpy.array([[-0.5], [-0.5]]))
bd.connect(plant.q, angles, effort.q)
bd.connect(plant.qd, effort.qd)
bd.connect(angles, plant.tau, effort.tau)
bd.connect(effort.qdd, bd.NULL())
bd.connect(effort.torque, bd.NULL())
bd.compile(verbose=False)
print(type(plant).__module__, len(sim.run(bd, T=0.1).x[-1]))
"""


def run_in(root, code, **environment):
    """Return the last line that a process of its own prints, to which only the tree in `root` is importable."""
    kept = {key: value for key, value in os.environ.items() if key != "BDSIMPATH"}
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=root,
        env={**kept, "PYTHONPATH": str(root), **environment},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    return done.stdout.splitlines()[-1]


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    """Return a folder with the package as an installation has it: the blocks inside."""
    folder = tmp_path_factory.mktemp("installed")
    shutil.copytree(PACKAGE, folder / "cstormpy", ignore=shutil.ignore_patterns("__pycache__", "blocks", "diagrams"))
    shutil.copytree(FOLDER, folder / "cstormpy" / "blocks", ignore=shutil.ignore_patterns("__pycache__"))
    return folder


@pytest.fixture(scope="module")
def installed(root):
    """Return what bdsim finds the way bdedit and bdrun look."""
    return json.loads(run_in(root, _LIST, BDSIMPATH="cstormpy"))


def test_bdsim_finds_every_block_in_an_installation(installed):
    assert set(installed) == {cls.__name__.upper() for cls in BLOCKS}
    for cls in BLOCKS:
        info = installed[cls.__name__.upper()]
        assert (info["classname"], info["module"]) == (cls.__name__, cls.__module__)
        # where the package is installed besides, bdsim takes the last one that it finds
        assert [Path(path).parts[-2:] for path in info["path"]] == [("cstormpy", "blocks")]
        assert info["url"] == f"{cstormpy.blocks.url}#{cls.__module__}.{cls.__name__}"


_LOAD = """
import bdsim

sim = bdsim.BDSim(sysargs=False, graphics=False, verbose=False, progress=False)
bd = bdsim.bdload(sim.blockdiagram(), "swing.bd", allow_eval=False)
bd.compile(verbose=False)
print(bd["plant"].q0.tolist(), len(sim.run(bd, T=0.1).x[-1]))
"""


def bd_file():
    """Return a diagram as bdedit saves it: a constant torque on the plant, whose outputs end nowhere."""

    def block(number, kind, title, inputs, outputs, **parameters):
        sockets = {
            side: [{"id": f"{title}.{side}.{k}", "index": k} for k in range(count)]
            for side, count in (("inputs", inputs), ("outputs", outputs))
        }
        return {"id": number, "block_type": kind, "title": title, "parameters": list(parameters.items()), **sockets}

    plant = {"mech": "acrobot", "q0": [0.5, 0.0], "qd0": None, "wrench": False, "active": None, "actuated": None}
    blocks = [
        block(1, "CONSTANT", "torque", 0, 1, value=0.5),
        block(2, "HYBRIDDYNAMICS", "plant", 1, 2, **plant),
        block(3, "NULL", "end", 2, 0, nin=2),
    ]
    ends = [("torque.outputs.0", "plant.inputs.0")] + [(f"plant.outputs.{k}", f"end.inputs.{k}") for k in range(2)]
    wires = [{"id": 10 + k, "start_socket": start, "end_socket": end} for k, (start, end) in enumerate(ends)]
    return json.dumps({"blocks": blocks, "wires": wires, "labels": [], "grouping_boxes": []})


@pytest.mark.slow
def test_a_bd_file_holds_a_plant(root):
    (root / "swing.bd").write_text(bd_file())
    assert run_in(root, _LOAD, BDSIMPATH="cstormpy") == "[0.5, 0.0] 4"


@pytest.mark.slow
@pytest.mark.parametrize("way", ["by BDSIMPATH", "after an import", "as an option"])
def test_a_plain_bdsim_runs_blocks_of_an_installation(root, way):
    begin, options, environment = {
        "by BDSIMPATH": ("import bdsim", "", {"BDSIMPATH": "cstormpy"}),
        "after an import": ("import cstormpy, bdsim", "", {}),
        "as an option": ("import bdsim", 'packages="cstormpy", ', {}),
    }[way]
    assert run_in(root, begin + _RUN.format(options=options), **environment).startswith("cstormpy.blocks.dynamics 4")


@each_block
def test_the_source_text_tells_ports_and_parameters(cls, installed):
    """bdsim parses the text and imports nothing: literals, a base of its own, and a type for every parameter."""
    info = installed[cls.__name__.upper()]
    assert (info["nin"], info["nout"]) == (cls.nin, cls.nout)
    assert info["blockclass"] == cls._blockclass != "?"
    for labels, count in ((cls.inlabels, cls.nin), (cls.outlabels, cls.nout)):
        assert len(labels or ()) == count
    parameters = [name for name in inspect.signature(cls).parameters if name != "blockargs"]
    assert [name for name in info["params"] if name != "blockargs"] == parameters
    for name, (kind, text) in info["params"].items():
        assert kind and kind.strip(), f"{name}: no type, which breaks every BDSim()"
        assert text.strip(), f"{name}: no description"


@each_block
def test_bdedit_reads_the_defaults_that_are_true(cls):
    """bdedit takes what is after "defaults to", up to a full stop, for the value, and writes it into the file.

    It made a dead zone from 0 to 0 of one from -0.5 to 0.5.
    """
    doc = f"{cls.__doc__}\n{cls.__init__.__doc__}"
    for name, parameter in inspect.signature(cls).parameters.items():
        text = re.search(rf":param {name}:(.*?)(?=\n\s*:|\Z)", doc, re.S)
        assert text, f"{name}: not documented"
        said = re.search(r"defaults to\s+(.*?)\s*$", " ".join(text[1].split()))
        chosen = re.search(r"one of:.*?('[^']*') \[default\]", " ".join(text[1].split()))
        value = (said or chosen)[1] if said or chosen else None
        if value is not None:
            assert ast.literal_eval(value) == parameter.default, name
            with contextlib.suppress(SyntaxError):  # it leaves out what is cut within brackets
                assert ast.literal_eval(value.split(".")[0]) == parameter.default, name
        elif parameter.default is not parameter.empty:
            assert parameter.default is None, f"{name}: the docs do not say that it defaults to {parameter.default!r}"


@each_block
def test_the_docs_have_an_equation_and_all_ports(cls):
    assert cls.__doc__ and ".. math::" in cls.__doc__, "no equation"
    table = re.sub(r"[,`]", " ", cls.__doc__)
    for name in (*(cls.inlabels or ()), *(cls.outlabels or ())):
        assert re.search(rf"\s- .*\b{name}\b", table), f"port {name} is not in the table"


@each_block
def test_ports_can_be_told_apart(cls):
    """bdsim looks a name up among attributes, then outputs, then inputs."""
    inputs, outputs = list(cls.inlabels or ()), list(cls.outlabels or ())
    for name in inputs + outputs:
        assert not hasattr(cls, name)
    for name in set(inputs) & set(outputs):
        assert inputs.index(name) == outputs.index(name)
    assert not cls.__name__.endswith("Block")
    assert any(base.__module__.startswith("bdsim") for base in cls.__bases__)


@each_block
def test_there_is_an_icon(cls):
    from matplotlib.image import imread

    data = (ICONS / f"{cls.__name__.lower()}.png").read_bytes()
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    width, height, depth, colour = struct.unpack(">IIBB", data[16:26])
    assert (width, height, depth, colour) == (250, 250, 8, 6), "expected 250 pixels square with transparency"
    ink = imread(ICONS / f"{cls.__name__.lower()}.png")[:, :, 3]
    assert not (ink[[0, -1]].any() or ink[:, [0, -1]].any()), "something is cut off at the edge"


@pytest.mark.slow
def test_the_script_draws_the_icons_that_there_are(tmp_path):
    drawn = draw_icons(tmp_path)
    assert {path.name for path in drawn} == {path.name for path in ICONS.glob("*.png")}
    from matplotlib import __version__ as version
    from matplotlib.image import imread

    if tuple(map(int, version.split(".")[:2])) < (3, 10):
        pytest.skip(f"matplotlib {version} sets formulas otherwise than the one that drew the icons")
    for path in drawn:
        ink = imread(path)[:, :, 3]
        kept = imread(ICONS / path.name)[:, :, 3]
        assert 0.02 < ink.mean() < 0.6 and not ink[0].all()
        assert np.abs(ink - kept).mean() < 0.02, f"{path.name} is not what the script draws"


@each_block
def test_a_block_says_the_widths_of_its_ports(cls):
    block = cls(**valid(cls))
    assert len(block.inwidths) == block.nin and len(block.outwidths) == block.nout
    for width in (*block.inwidths, *block.outwidths):
        assert width is None or isinstance(width, (int, tuple))


#: Arguments that will do, by block for those that need others than the acrobot.
VALID = {
    "JointLimit": {"mech": library.arm7()},
    "SplineTrajectory": {"curve": [[0.0, 0.0], [0.5, 1.0], [1.0, 0.5], [1.5, 0.0]], "duration": 1.0},
    "MultiSine": {"frequencies": [1.0, 2.0]},
    "Lookup1D": {"points": [0.0, 1.0], "values": [0.0, 2.0]},
    "Lookup2D": {"rows": [0.0, 1.0], "columns": [0.0, 1.0], "values": [[0.0, 2.0], [1.0, 1.0]]},
    "StateSpace": {"A": [[-1.0]], "B": [[1.0]], "C": [[1.0]]},
    "DiscreteSS": {"A": [[-1.0]], "B": [[1.0]], "C": [[1.0]]},
    "Kalman": {"A": [[0.9]], "B": [[1.0]], "C": [[1.0]], "Q": 0.1, "R": 0.2},
    "EKF": {"mech": "acrobot"},
    "MPC": {"model": ([[0.9]], [[1.0]])},
    "FromData": {"t": [0.0, 1.0], "y": [0.0, 2.0]},
}


def valid(cls):
    """Return arguments that will do."""
    parameters = inspect.signature(cls).parameters
    if "clock" in parameters:
        return {"clock": PLAIN.blockdiagram().clock(0.1), **VALID.get(cls.__name__, {})}
    return VALID.get(cls.__name__, {"mech": "acrobot"} if "mech" in parameters else {})


def junk():
    """Return a strategy for what users pass by mistake, and sometimes on purpose."""
    numbers = st.one_of(
        st.integers(-3, 12), st.floats(), st.sampled_from([10**400, -1e308, 1e-320, True, np.float32(1.5), 1j, -0.0])
    )
    words = st.sampled_from(["", " ", "elbow", "shoulder", "acrobot", "pd", "x.json", "\0", "nul\0.json", "é", "q"])
    plain = st.one_of(st.none(), numbers, words, st.text(max_size=5), st.binary(max_size=3))
    arrays = hnp.arrays(
        st.sampled_from([np.float64, np.int64, np.complex128, bool, object, "U3"]),
        hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4),
    )
    nested = st.recursive(plain, lambda inner: st.lists(inner, max_size=3), max_leaves=6)
    mappings = st.dictionaries(words, plain, max_size=2)
    objects = st.sampled_from([object(), int, lambda *given: None, library.pendulum(3), Path("gone.json"), {1, 2}])
    return st.one_of(plain, nested, arrays, mappings, objects, st.tuples(plain, plain))


@pytest.mark.parametrize(
    "cls",
    [pytest.param(cls, marks=[pytest.mark.slow] * (cls.__name__ == "Controller")) for cls in BLOCKS],
    ids=lambda cls: cls.__name__,
)
@settings(max_examples=12)
@given(data=st.data())
def test_wrong_arguments_raise_our_own_errors_only(cls, data):
    names = [name for name in inspect.signature(cls).parameters if name != "blockargs"]
    options = ["name", "inames", "onames", "snames", "inputs", "bd", "pos", "type", "speling"]
    changed = data.draw(st.lists(st.sampled_from([*names, *names, *options]), min_size=1, max_size=3, unique=True))
    arguments = {**valid(cls), **{name: data.draw(junk(), label=name) for name in changed}}
    try:
        block = cls(**arguments)
    except CstormError as error:
        assert str(error)
    else:
        assert block.nin == len(block.inwidths)


@settings(max_examples=60)
@given(data=st.data())
def test_wrong_names_leave_no_trace_in_a_diagram(data):
    """bdsim enters a block into the diagram before it looks at the names of its ports."""
    name = st.one_of(st.none(), st.text(alphabet="ab${}^_é. ", max_size=3), st.sampled_from(["tau", "mech", "first"]))
    names = st.one_of(st.none(), st.lists(name, max_size=3))
    bd = PLAIN.blockdiagram()
    HybridDynamics("acrobot", name="first", bd=bd)
    before = list(bd.blocklist)
    drawn = {"name": data.draw(name)} | {key: data.draw(names) for key in ("inames", "onames", "snames")}
    try:
        block = HybridDynamics("acrobot", bd=bd, **drawn)
    except CstormError:
        assert bd.blocklist == before and list(bd.blocknames) == ["first"]
    else:
        assert bd.blocklist == [*before, block]
