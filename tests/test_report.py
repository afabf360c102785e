"""The report: its diagram, its data and its file; what the browser makes of it is in test_report_browser.py."""

import base64
import errno
import json
import os
import re
import sys
from itertools import pairwise
from types import SimpleNamespace
from xml.etree import ElementTree

import numpy as np
import pytest

import cstormpy as cs
from cstormpy import file_writer, report
from cstormpy.errors import CstormError, FileFormatError, InvalidType, InvalidValue
from cstormpy.report import facts
from cstormpy.report.data import kept_samples, pack
from cstormpy.report.drawing import diagram_views
from cstormpy.report.figures import _figure
from cstormpy.report.graph import Edge, Graph, Node, parts, read_graph
from cstormpy.report.layout import arrange
from cstormpy.report.ordering import assign_layers
from cstormpy.report.resampling import resampled
from cstormpy.report.routing import route


@pytest.fixture
def sim():
    return cs.Simulation(progress=False, graphics=False)


def position_loop(sim, name="speed"):
    """A step, a sum, a gain and two integrators, with position and speed fed back."""
    bd = sim.blockdiagram()
    step, error, force = bd.STEP(T=1, name="demand"), bd.SUM("+-", name="error"), bd.SUM("+-", name="force")
    gain, damper = bd.GAIN(10.5, name="K"), bd.GAIN(2, name="damper")
    speed, position = bd.INTEGRATOR(name=name), bd.INTEGRATOR(name="position")
    scope, phase = bd.SCOPE(nin=2, name="scope", labels=["r", "y"]), bd.SCOPEXY(name="phase")
    bd.connect(step, error[0], scope[0])
    bd.connect(error, gain)
    bd.connect(gain, force[0])
    bd.connect(force, speed)
    bd.connect(speed, position, damper, phase[1])
    bd.connect(damper, force[1])
    bd.connect(position, error[1], scope[1], phase[0])
    return bd


def pane(kind="scope", t=None, y=None, name="scope", **more):
    t = np.linspace(0, 1, 50) if t is None else t
    y = np.sin(t)[:, None] if y is None else y
    known = {
        "title": name,
        "labels": [f"y{k}" for k in range(y.shape[1])],
        "unit": "",
        "mechanism": None,
        "options": {},
    }
    return SimpleNamespace(kind=kind, name=name, t=t, y=y, **{**known, **more})


def outcome(*panes):
    return SimpleNamespace(data={".panes": list(panes), ".status": "finished"}, t=panes[0].t if panes else [])


def data_of(page):
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.S)[1])


def unpacked(packed):
    sums = packed["offset"] + np.frombuffer(base64.b64decode(packed["base64"]), "<f4").astype(float)
    return packed.get("scale", 1.0) * sums


# ---------------------------------------------------------------- the diagram


def graph_of(count, edges, kinds=None):
    block = SimpleNamespace(signs="++++", K=2)
    nodes = []
    for k in range(count):
        inputs = 1 + max([e[3] for e in edges if e[2] == k], default=-1)
        outputs = 1 + max([e[1] for e in edges if e[0] == k], default=-1)
        role = "source" if not inputs else "sink" if not outputs else "function"
        kind = (kinds or {}).get(k, "function")
        nodes.append(
            Node(block, f"b{k}", "", kind, [""] * inputs, [""] * outputs, "state" if kind == "integrator" else role)
        )
    return Graph(nodes, [Edge(*e) for e in edges])


def random_graph(rng, count):
    """Return a graph of one part, whose inputs have one wire each, with loops."""
    inputs = [0] + [int(rng.integers(1, 4)) for _ in range(count - 1)]
    edges = [
        (int(rng.integers(0, count)) if p else int(rng.integers(0, k)), 0, k, p)
        for k in range(count)
        for p in range(inputs[k])
    ]
    kinds = {k: str(rng.choice(["function", "sum", "gain", "integrator", "mux"])) for k in range(1, count)}
    return graph_of(count, edges, {k: v for k, v in kinds.items() if v != "sum" or inputs[k] <= 4})


def test_a_loop_reads_from_left_to_right(sim):
    bd = position_loop(sim)
    sim.run(bd, T=0.1)
    graph = read_graph(bd)
    layer = dict(zip([n.name for n in graph.nodes], assign_layers(graph), strict=True))
    forward = ["demand", "error", "K", "force", "speed", "position", "scope"]
    assert [layer[a] < layer[b] for a, b in pairwise(forward)] == [True] * 6
    assert layer["phase"] == layer["scope"] == max(layer.values())


def test_controller_stands_before_its_plant(sim):
    from cstormpy.diagrams import acrobot

    bd = acrobot.build(sim)
    sim.run(bd, T=0.01)
    graph = read_graph(bd)
    layer = dict(zip([n.name for n in graph.nodes], assign_layers(graph), strict=True))
    assert layer["controller"] < layer["plant"]


@pytest.mark.parametrize("seed", range(25))
def test_wires_touch_no_foreign_block_and_boxes_stay_apart(seed):
    rng = np.random.default_rng(seed)
    for graph in parts(random_graph(rng, int(rng.integers(2, 40)))):
        layout = arrange(graph)
        routes = route(layout)
        rectangles = []
        for box in layout.boxes:
            x = routes.x[box.layer] + (routes.widths[box.layer] - box.shape.width) / 2
            rectangles.append((x, box.y, x + box.shape.width, box.y + box.shape.height))
        for i, a in enumerate(rectangles):
            for b in rectangles[:i]:
                assert a[2] <= b[0] or b[2] <= a[0] or a[3] + 5 <= b[1] or b[3] + 5 <= a[1]
        assert sorted(w.edge.target for w in routes.wires) == sorted(e.target for e in graph.edges)
        for wire in routes.wires:
            for (xa, ya), (xb, yb) in zip(wire.points, wire.points[1:], strict=False):
                assert abs(xa - xb) < 1e-9 or abs(ya - yb) < 0.8  # at right angles
                for k, (left, top, right, bottom) in enumerate(rectangles):
                    if k in (wire.edge.source, wire.edge.target):
                        left, right = left + 16, right - 16  # wires end at the outline of a triangle or circle
                        if left >= right:
                            continue
                    inside = min(xa, xb) < right and max(xa, xb) > left and min(ya, yb) < bottom and max(ya, yb) > top
                    assert not inside, (seed, wire, k)
            assert 0 <= max(y for _, y in wire.points) <= routes.height


@pytest.mark.parametrize("seed", range(25))
def test_vertical_wires_of_different_nets_do_not_lie_upon_each_other(seed):
    rng = np.random.default_rng(100 + seed)
    for graph in parts(random_graph(rng, int(rng.integers(2, 25)))):
        routes = route(arrange(graph))
        pieces = [
            (wire.net, xa, *sorted((ya, yb)))
            for wire in routes.wires
            for (xa, ya), (xb, yb) in zip(wire.points, wire.points[1:], strict=False)
            if abs(xa - xb) < 1e-9 and abs(ya - yb) > 1
        ]
        for k, (net, x, low, high) in enumerate(pieces):
            for other, x2, low2, high2 in pieces[:k]:
                assert net == other or abs(x - x2) > 4 or min(high, high2) - max(low, low2) <= 0.5


def test_subsystems_are_framed_and_their_ports_left_out(sim):
    bd = sim.blockdiagram()
    step, pid, plant, null = (
        bd.STEP(),
        bd.PID(P=2, I=1, D=0.1, D_pole=20, name="pid"),
        bd.LTI_SISO(1, [1, 1]),
        bd.NULL(),
    )
    bd.connect(step, pid[0])
    bd.connect(pid, plant)
    bd.connect(plant, pid[1], null)
    sim.run(bd, T=0.1)
    graph = read_graph(bd)
    assert {node.kind for node in graph.nodes} & {"inport", "outport"} == set()
    assert len(parts(graph)) == 1
    svg = diagram_views(bd)[0]
    assert ">pid</text>" in svg
    assert 'class="group"' in svg


def doubled(sim, bd, name, block="double"):
    """Connect a constant to a subsystem with one gain in it, and that to a scope."""
    inner = sim.blockdiagram("inner")
    inport, gain, outport = inner.INPORT(1), inner.GAIN(2, name=block), inner.OUTPORT(1)
    inner.connect(inport, gain)
    inner.connect(gain, outport)
    subsystem = bd.SUBSYSTEM(inner, name=name)
    bd.connect(bd.CONSTANT(1.0), subsystem)
    bd.connect(subsystem, bd.SCOPE())


def test_a_slash_in_a_name_makes_no_subsystem(sim):
    """A block "q/qd" was once framed as the part "qd" of a subsystem "q"."""
    bd = sim.blockdiagram()
    bd.connect(bd.CONSTANT(1.0, name="q/qd"), gain := bd.GAIN(2, name="N/m"))
    bd.connect(gain, bd.SCOPE(name="</script>"))
    doubled(sim, bd, "in/ner", "m/s")
    for _ in range(2):  # a diagram that is run again is compiled again
        sim.run(bd, T=0.1)
        found = [(node.group, node.name) for node in read_graph(bd).nodes]
        assert found[:3] == [("", "q/qd"), ("", "N/m"), ("", "</script>")]
        assert [pair for pair in found if pair[0]] == [("in/ner", "m/s")]
    svg = ElementTree.fromstring(diagram_views(bd)[0])
    assert len([r for r in svg.iter("rect") if r.get("class") == "group"]) == 1
    assert {"q/qd", "N/m", "in/ner", "m/s"} <= {t.text for t in svg.iter("text")}


def test_what_is_not_connected_is_drawn_below(sim):
    bd = sim.blockdiagram()
    for k in range(3):
        bd.connect(bd.CONSTANT(k), bd.NULL(name=f"null{k}"))
    sim.run(bd, T=0.1)
    svg = ElementTree.fromstring(diagram_views(bd)[0])
    assert len([g for g in svg.iter("g") if g.get("class") == "block"]) == 6
    assert diagram_views(SimpleNamespace(blocklist=[], wirelist=[]))[0].startswith("<svg")


def test_all_of_our_blocks_and_many_of_bdsims_have_a_shape(sim):
    bd = position_loop(sim)
    extra = [bd.WAVEFORM("square", 2), bd.RAMP(), bd.TIME(), bd.PIECEWISE((0, 0), (1, 2)), bd.CONSTANT([1, 2, 3, 4])]
    for source in extra:
        bd.connect(source, bd.NULL())
    bd.connect(extra[2], clip := bd.CLIP(-1, 1))
    bd.connect(clip, bd.STOP(lambda x: False), function := bd.FUNCTION(lambda u: u))
    bd.connect(function, power := bd.POW(2))
    bd.connect(power, mux := bd.MUX(1))
    bd.connect(mux, norm := bd.NORM())
    bd.connect(norm, bd.NULL())
    sim.run(bd, T=0.1)
    svg = ElementTree.fromstring(diagram_views(bd)[0])
    texts = {t.text for t in svg.iter("text")}
    assert {"1", "s", "10.5", "Σ", "stop", "f(u)", "uⁿ", "‖u‖", "4 vector", "x", "y"} <= texts


@pytest.mark.slow
def test_the_work_of_drawing_grows_with_the_square_of_the_blocks_at_most():
    """Counted in calls of functions, which are the same each time."""

    def calls(count):
        graph, found = random_graph(np.random.default_rng(0), count), [0]

        def note(frame, event, argument):
            found[0] += event == "call"

        sys.setprofile(note)
        try:
            route(arrange(graph))
        finally:
            sys.setprofile(None)
        return found[0]

    assert calls(300) < 1.5 * 3**2 * calls(100)


# ---------------------------------------------------------------- data


def test_extremes_survive_decimation():
    rng = np.random.default_rng(0)
    t = np.sort(rng.uniform(0, 60, 200_000))
    y = np.column_stack([np.sin(t), rng.normal(size=len(t))])
    y[123_456, 0], y[7, 1] = 50.0, -80.0
    y[1000:3000, 0] = np.nan
    kept = kept_samples(t, y, 2000)
    assert len(kept) <= 2002
    assert {0, 7, 123_456, len(t) - 1} <= set(kept.tolist())
    np.testing.assert_array_equal(np.nanmax(y, axis=0), np.nanmax(y[kept], axis=0))
    for k in range(2):  # in each span of time the outline is that of all samples
        for a, b in zip(np.linspace(0, 60, 101), np.linspace(0, 60, 101)[1:], strict=False):
            whole, few = (v[(s >= a) & (s < b), k] for s, v in ((t, y), (t[kept], y[kept])))
            if np.isfinite(whole).any():
                assert np.nanmax(few) >= np.nanquantile(whole, 0.8)


def test_few_samples_are_all_kept_and_packed_exactly_enough():
    t = np.array([0.0, 1.0, 1.0, 2.0])
    assert kept_samples(t, np.zeros((4, 1)), 2000).tolist() == [0, 1, 2, 3]
    values = 1e6 + np.linspace(0, 1, 100)
    np.testing.assert_allclose(unpacked(pack(values)), values, atol=1e-7)
    assert np.isnan(unpacked(pack([1.0, np.nan, 2.0]))).tolist() == [False, True, False]


@pytest.mark.parametrize("size", [1e-320, 1e-60, 1e-30, 1.0, 1e37, 1e39, 1e300, 1.7e308])
def test_values_of_any_size_are_kept(size):
    """What 32-bit floats do not hold was once stored as infinite, and the scope stayed empty."""
    values = size * np.array([0.0, 1.0, -1.0, 0.25, np.nan])
    packed = pack(values)
    np.testing.assert_allclose(unpacked(packed), values, rtol=1e-3 if size < 1e-308 else 1e-6)
    assert ("scale" in packed) == (size not in (1e-30, 1.0, 1e37))
    json.dumps(packed, allow_nan=False)


def test_growth_over_many_orders_keeps_its_beginning():
    values = np.exp(50 * np.linspace(0, 2, 201))
    np.testing.assert_allclose(unpacked(pack(values)), values, rtol=1e-6)


def test_a_gap_survives_decimation():
    t = np.linspace(0, 1, 50_000)
    y = np.sin(t)
    y[20_000:30_000] = np.nan
    y[25_000] = 1.0
    kept = kept_samples(t, y[:, None], 2000)
    at = kept.tolist().index(25_000)
    assert np.isnan(y[kept[at - 1]]) and np.isnan(y[kept[at + 1]])
    assert len(kept) <= 2002


def test_films_turn_nowhere_but_at_samples():
    from scipy.interpolate import PchipInterpolator

    rng = np.random.default_rng(0)
    for _ in range(100):
        count = rng.integers(3, 12)
        t = np.cumsum(rng.uniform(0.01, 2, count))
        q = np.where(rng.random((count, 3)) < 0.2, 0.0, rng.normal(size=(count, 3)).cumsum(axis=0))
        at = np.sort([*t, *rng.uniform(t[0], t[-1], 40)])
        np.testing.assert_allclose(resampled(t, q, at), PchipInterpolator(t, q)(at), rtol=0, atol=1e-13)


def test_a_turn_is_a_film_of_unit_quaternions_without_a_leap():
    from scipy.spatial.transform import Rotation

    t = np.linspace(0.0, 4.0, 121)
    turned = np.outer(t, [2.0, -1.0, 0.5])
    top = cs.Mechanism([cs.Link("top", None, cs.Spherical(), mass=1.0, inertia=np.diag([1.0, 2.0, 2.5]))])
    made = data_of(report.html(None, outcome(pane("mechanism", t, turned, "top", mechanism=top))))["panes"][0]
    q = np.column_stack([unpacked(x) for x in made["motions"][0][:4]])
    np.testing.assert_allclose(np.linalg.norm(q, axis=1), 1.0, atol=1e-6)
    assert np.abs(np.diff(q, axis=0)).max() < 0.1
    turns = Rotation.from_quat(np.roll(q, -1, axis=1)) * Rotation.from_rotvec(turned).inv()
    assert turns.magnitude().max() < 1e-6


def angle_of(made):
    """Return the angle of a pane's first hinge about z, from −π to π."""
    w, x, y, z = made["motions"][0][:4]
    assert (x, y) == (0.0, 0.0)
    turns = 2.0 * np.arctan2(unpacked(z), unpacked(w))
    return (turns + np.pi) % (2 * np.pi) - np.pi


@pytest.mark.slow
def test_a_run_of_60_s_stays_below_5_MB():
    t = np.linspace(0, 60, 120_001)
    rng = np.random.default_rng(0)
    panes = [pane(t=t, y=rng.normal(size=(len(t), 6)), name=f"scope{k}") for k in range(40)]
    arm = cs.library.arm7()
    panes.append(pane("mechanism", t, np.sin(t[:, None] * np.arange(1, 8)), "arm", mechanism=arm))
    panes.append(pane("xy", t, rng.normal(size=(len(t), 2)), "xy"))
    page = report.html(None, outcome(*panes))
    assert len(page.encode()) < 5e6
    made = data_of(page)
    assert max(p.get("frames", 0) for p in made["panes"]) == 1801
    few = report.html(None, outcome(*panes[:4], *panes[-2:]))
    assert len(few.encode()) < 1.5e6
    assert len(report.inline(outcome(*panes[:4], *panes[-2:]))) < 5e5


def test_frames_follow_the_samples_and_jumps():
    t = np.array([0.0, 0.5, 1.0, 1.0, 1.5, 2.0])
    q = np.array([[0.0], [0.5], [1.0], [5.0], [5.5], [6.0]])
    mech = cs.library.pendulum(1)
    made = data_of(report.html(None, outcome(pane("mechanism", t, q, mechanism=mech))))["panes"][0]
    at = np.linspace(0, 2, made["frames"])
    np.testing.assert_allclose(angle_of(made), np.where(at < 1, at, at + 4 - 2 * np.pi), atol=1e-6)


def test_a_plant_that_nobody_shows_is_shown(sim):
    bd = sim.blockdiagram()
    first, torque = bd.INTEGRATOR(x0=7.0), bd.CONSTANT([0.0])
    plant = bd.HYBRIDDYNAMICS("pendulum", q0=[0.5], name="plant")
    bd.connect(torque, plant)
    bd.connect(plant[0], first)
    out = sim.run(bd, T=1)
    (made,) = data_of(report.html(bd, out))["panes"]
    assert (made["kind"], made["name"], made["motors"]) == ("mechanism", "plant", [0])
    away = angle_of(made)[[0, -1]] - out.x[[0, -1], out.xnames.index("plant.joint1.q")]
    np.testing.assert_allclose(away - 2 * np.pi * np.round(away / (2 * np.pi)), 0.0, atol=1e-6)
    view = bd.MECHANISMVIEW("pendulum", view="3d", trail=False, name="view") if hasattr(bd, "MECHANISMVIEW") else None
    if view is not None:
        bd.connect(plant[0], view)
        (made,) = data_of(report.html(bd, sim.run(bd, T=1)))["panes"]
        assert (made["name"], made["skeleton"]["planar"], made["options"]["trail"]) == ("view", False, 0.0)


def test_not_finite_and_empty_runs():
    t = np.linspace(0, 1, 20)
    y = np.full((20, 2), np.inf)
    mech = cs.library.acrobot()
    panes = [pane(t=t, y=y), pane("xy", t, y), pane("mechanism", t, np.full((20, 2), np.nan), mechanism=mech)]
    page = report.html(None, outcome(*panes, pane(t=np.zeros(0), y=np.zeros((0, 1)))))
    assert len(data_of(page)["panes"]) == 3
    assert "nothing was recorded" in report.html(None, outcome())
    assert data_of(report.html(None, outcome(pane(t=np.zeros(1), y=np.ones((1, 1))))))["t1"] == 0.0


# ---------------------------------------------------------------- the page


def test_page_says_what_was_run(sim):
    bd = position_loop(sim)
    out = sim.run(bd, T=2)
    page = report.html(bd, out, title="A loop")
    for text in ("<title>A loop</title>", ">finished<", "speed", "10.5", "evaluations", "Python", "numpy", "bdsim"):
        assert text in page
    assert os.getcwd() not in page
    assert os.uname().nodename not in page if hasattr(os, "uname") else True
    assert not re.search(r'(src|href)="?(https?:)?//', page)
    assert "http" not in re.sub(r"http-equiv", "", page)


@pytest.mark.parametrize(("count", "said"), [(1, ", 1 sample<"), (2, ", 2 samples<")])
def test_samples_are_counted(count, said):
    assert said in report.html(None, outcome(pane(t=np.linspace(0, 1, count))))


def test_controllers_show_laws_and_gains(sim):
    law = SimpleNamespace(gains={"kp": 2.5}, limit=np.array([3.0]), modes=("swing", "hold"))
    block = SimpleNamespace(name="c<o>", laws={"pd<": law}, active_law="pd<", blend=0.05)
    from cstormpy.report.page import _controllers

    page = _controllers(SimpleNamespace(blocklist=[block]))
    for text in ("pd&lt;", "kp", "2.5", "[3]", "swing, hold", "active", "c&lt;o&gt;", "0.05 s"):
        assert text in page


EVIL = "</script><script>window.hacked=1</script><img src=x onerror=window.hacked=1>\"'&"


def test_names_are_text(sim):
    bd = position_loop(sim)
    sim.run(bd, T=0.1)
    for block in bd.blocklist:
        block._name = EVIL
    evil = pane(name=EVIL, title=EVIL, labels=[EVIL], unit=EVIL)
    out = outcome(evil, pane("xy", y=np.zeros((50, 2)), labels=[EVIL, EVIL]))
    out.data[".message"] = EVIL
    page = report.html(bd, out, title=EVIL)
    assert page.count("<script") == 2
    assert page.count("</script>") == 2
    assert "<img" not in page
    assert data_of(page)["panes"][1]["labels"] == [EVIL]
    assert report.inline(out, bd).count("<") == 2  # one frame, whose content is an attribute


def test_text_of_any_kind_can_be_written(tmp_path):
    odd = "nul \0 bell \x07 lone \ud800 emoji 🎉 שלום"
    path = report.write(tmp_path / "r.html", None, outcome(pane(name=odd, title=odd, labels=[odd])), title=odd)
    assert "🎉" in path.read_text(encoding="utf-8")


# ---------------------------------------------------------------- the file


def test_file_appears_whole_or_not_at_all(tmp_path, monkeypatch):
    out = outcome(pane())
    target = tmp_path / "run.html"
    assert report.write(str(target), None, out) == target
    before = target.read_text(encoding="utf-8")
    assert before.endswith("</html>\n")

    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(FileFormatError, match=r"run\.html: cannot be written: No space left on device"):
        report.write(target, None, out, title="other")
    assert target.read_text(encoding="utf-8") == before
    assert [p.name for p in tmp_path.iterdir()] == ["run.html"]


def test_full_disk_is_one_line(tmp_path, monkeypatch):
    def full(self, data):
        self.error = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        raise self.error

    monkeypatch.setattr(file_writer._Draft, "write", full)
    with pytest.raises(FileFormatError, match="No space left on device") as caught:
        report.write(tmp_path / "run.html", None, outcome(pane()))
    assert "\n" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("path", "error"),
    [
        ("missing/run.html", FileFormatError),
        ("", InvalidValue),
        ("a\0b.html", InvalidValue),
        (3, InvalidType),
        (".", CstormError),
    ],
)
def test_paths_that_can_not_be(tmp_path, monkeypatch, path, error):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(error) as caught:
        report.write(path, None, outcome(pane()))
    assert "\n" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_a_report_is_no_pdf(tmp_path):
    with pytest.raises(InvalidValue, match=r"run\.pdf: is a page of HTML; expected a name that ends in \.html"):
        report.write(tmp_path / "run.pdf", 3, outcome(pane()))
    sim = cs.Simulation(live=False)
    bd = sim.blockdiagram()
    bd.connect(bd.FUNCTION(lambda: pytest.fail("it ran"), nin=0), bd.NULL())
    with pytest.raises(InvalidValue, match=r"run\.pdf: is a page of HTML"):
        sim.run(bd, T=1.0, report="run.pdf")


def test_a_folder_is_not_replaced(tmp_path):
    (tmp_path / "run.html").mkdir()
    with pytest.raises(FileFormatError):
        report.write(tmp_path / "run.html", None, outcome(pane()))
    assert (tmp_path / "run.html").is_dir()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_what_is_no_file_is_not_replaced(tmp_path):
    """A report to a device once put a file in its place."""
    pipe = tmp_path / "run.html"
    os.mkfifo(pipe)
    with pytest.raises(FileFormatError, match="is no file"):
        report.write(pipe, None, outcome(pane()))
    assert pipe.is_fifo()


def test_wrong_diagram_is_named():
    with pytest.raises(InvalidType, match=r"expected a diagram from sim\.blockdiagram\(\), got 3"):
        report.html(3, outcome(pane()))


# ---------------------------------------------------------------- pictures


def test_figures(tmp_path):
    t = np.linspace(0, 5, 300)
    panes = [
        pane(t=t, y=np.column_stack([np.sin(t), np.cos(t)]), name="../a/b $x_1$", labels=["$\\bad{", "_y"], unit="rad"),
        pane("xy", t, np.column_stack([np.sin(t), np.cos(t)]), "xy", options={"equal": True}),
        pane("mechanism", t, np.column_stack([t, -t]), "planar", mechanism=cs.library.acrobot()),
        pane("mechanism", t, np.sin(t[:, None] * np.arange(1, 8)), "space", mechanism=cs.library.arm7()),
    ]
    paths = report.figures(outcome(*panes), tmp_path / "new" / "folder")
    assert [p.name for p in paths] == ["1-a_b_x_1.png", "2-xy.png", "3-planar.png", "4-space.png"]
    for path in paths:
        assert path.parent == tmp_path / "new" / "folder"
        assert path.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    assert len(list(paths[0].parent.iterdir())) == 4


@pytest.mark.parametrize("kind", ["scope", "xy"])
def test_single_samples_are_dots_in_figures(kind):

    y = np.array([0.0, 1.0, np.nan, 3.0, np.nan, 5.0, 6.0])
    figure = _figure(pane(kind, np.arange(7.0), np.column_stack([y, y])))
    dots = [line for line in figure.axes[0].lines if line.get_marker() == "o"]
    assert dots[0].get_ydata().tolist() == [3.0]
    (one,) = _figure(pane("scope", np.zeros(1), np.full((1, 1), 2.0))).axes[0].lines[1:]
    assert (one.get_marker(), one.get_ydata().tolist()) == ("o", [2.0])


def test_figures_of_laws_and_phases_have_their_names_at_the_axis(sim):
    bd = cs.diagrams.load("acrobot").build(sim)
    out = sim.run(bd, T=2.5, at={2.2: lambda: bd.blocknames["controller"].select("lqr")})
    panes = {pane.name: pane for pane in out.panes}
    law, phase = (_figure(panes[name]).axes[0] for name in ("scope_law", "scope_phase"))
    assert [label.get_text() for label in law.get_yticklabels()][:2] == ["energy", "pfl"]
    assert [label.get_text() for label in phase.get_yticklabels()] == ["swing up", "balance", "brake", "\u2013"]
    assert panes["scope_q"].names == [None, None] and panes["view"].names == [None, None]


def test_figures_without_a_place(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(FileFormatError, match="the folder cannot be made"):
        report.figures(outcome(pane()), tmp_path / "file")


def test_blocks_are_listed_by_what_a_user_gave(sim):
    """A clock by its name and period; records of ours, as the drives of a plant, were listed as "DriveSet"."""
    bd = sim.blockdiagram()
    plant = bd.HYBRIDDYNAMICS("pendulum", name="plant")
    clock = bd.clock(100, "Hz")
    bd.connect(plant.q, hold := bd.ZOH(clock, name="hold"))
    bd.connect(hold, plant.tau)
    rows = {name: dict(values) for name, _, values in facts.block_rows(bd)}
    assert rows["hold"]["clock"] == f"{clock.name}, every 0.01 s"
    assert {"mech", "q0", "qd0"} <= rows["plant"].keys() and not {"drive", "drives"} & rows["plant"].keys()
