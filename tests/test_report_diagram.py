"""The picture of a large diagram: rows, and subsystems that are open or closed, as geometry and in a browser."""

import base64
import html
import itertools
import re
from xml.etree import ElementTree

import numpy as np
import pytest
from test_report import random_graph
from test_report_browser import CHROMIUM, in_browser

import cstormpy as cs
from cstormpy import report
from cstormpy.control import LQR, EnergyPump, SwingUp
from cstormpy.report.drawing import HEAD, WIDEST, compose, diagram_views, states
from cstormpy.report.facts import block_rows
from cstormpy.report.levels import Level, read_levels
from cstormpy.report.svg import shortened, text_width

SIZES = {"n": 10.5, "p": 9.5, "t": 12.0, "small": 11.0, "title": 11.0, "sign": 11.0}


def servo(sim, name, within=None):
    """Return a subsystem of two inputs and two outputs with a loop in it, and another subsystem if asked for."""
    bd = sim.blockdiagram(name)
    ports, error, level, back, out = bd.INPORT(2), bd.SUM("+-"), bd.INTEGRATOR(name="level"), bd.GAIN(3), bd.OUTPORT(2)
    bd.connect(ports[0], error[0])
    bd.connect(error, level)
    bd.connect(back, error[1])
    if within is None:
        bd.connect(level, out[0], back)
        bd.connect(ports[1], out[1])
        return bd
    deep = bd.SUBSYSTEM(within, name="deep")
    bd.connect(level, deep[0], back, out[1])
    bd.connect(ports[1], deep[1])
    bd.connect(deep[0], out[0])
    bd.connect(deep[1], bd.NULL(name="unused"))
    return bd


@pytest.fixture(scope="module")
def forty():
    """A loop of forty blocks with a subsystem, one that has another in it, and scopes at its beginning and end."""
    sim = cs.Simulation(progress=False, graphics=False)
    bd = sim.blockdiagram()
    lag, error = bd.INTEGRATOR(name="lag"), bd.SUM("+-", name="error")
    chain = [lag, *(bd.GAIN(1.0 + k / 10, name=f"stage {k}") for k in range(34))]
    nested = bd.SUBSYSTEM(servo(sim, "outer", servo(sim, "inner")), name="a nested one, with a long name")
    single = bd.SUBSYSTEM(servo(sim, "single"), name="single")
    bd.connect(bd.STEP(name="demand"), error[0])
    bd.connect(error, lag)
    chain[13:13], chain[27:27] = [nested[0]], [single[0]]
    for a, b in itertools.pairwise(chain):
        bd.connect(a, b)
    bd.connect(chain[4], nested[1])
    bd.connect(nested[1], single[1])
    bd.connect(chain[-1], error[1])
    bd.connect(single[1], bd.SCOPE(name="second"))
    scope = bd.SCOPE(nin=3, name="some")
    for k, source in enumerate((chain[6], chain[20], chain[-1])):
        bd.connect(source, scope[k])
    return bd, sim.run(bd, T=0.01, live=False)


def pieces(points):
    return [(min(a[0], b[0]), min(a[1], b[1]), max(a[0], b[0]), max(a[1], b[1])) for a, b in itertools.pairwise(points)]


def check_level(picture, shared=0.5):
    """No wire runs through a block, none share more than this of their way, all stay where the level is."""
    graph = picture.level.graph
    shapes = [(p.x, p.y, p.x + p.shape.width, p.y + p.shape.full_height) for p in picture.blocks]
    for i, a in enumerate(shapes):
        assert -0.1 <= a[0] and a[2] <= picture.width + 0.1 and -0.1 <= a[1] and a[3] <= picture.height + 0.1
        assert all(a[2] <= b[0] or b[2] <= a[0] or a[3] <= b[1] or b[3] <= a[1] for b in shapes[:i])
    runs = [(run.net, piece) for run in picture.wires for piece in pieces(run.points)]
    for net, (left, top, right, bottom) in runs:
        assert right - left < 1e-6 or bottom - top < 0.8  # at right angles
        assert -16.1 <= left and right <= picture.width + 16.1 and -0.1 <= top and bottom <= picture.height + 0.1
        for placed, (a, b, c, d) in zip(picture.blocks, shapes, strict=True):
            node, own = placed.node, placed.shape.full_width / 2 if placed.picture is None else 0.0
            ends = net[0] == node or any((e.source, e.output) == net and e.target == node for e in graph.edges)
            own = own if ends else 0.0  # in a triangle or circle a wire ends inside of the rectangle around it
            inside = left < c - own - 0.1 and right > a + own + 0.1 and top < d - 0.1 and bottom > b + 0.1
            assert not inside, (graph.nodes[net[0]].name, graph.nodes[node].name)
    for k, (net, (left, top, right, bottom)) in enumerate(runs):
        for other, (a, b, c, d) in runs[:k]:
            if net != other and min(right, c) - max(left, a) > shared and abs(top - b) < 3 and bottom - top < 1 > d - b:
                raise AssertionError(f"{net} lies upon {other}")
            if net != other and min(bottom, d) - max(top, b) > 0.5 and abs(left - a) < 3 and right - left < 1 > c - a:
                raise AssertionError(f"{net} lies upon {other}")
    for edge in graph.edges:
        assert any(run.net == (edge.source, edge.output) for run in picture.wires)


def all_levels(picture):
    yield picture
    for placed in picture.blocks:
        if placed.picture is not None:
            yield from all_levels(placed.picture)


def texts(svg):
    """Return the text of a picture with the rectangles that it fills."""
    found = []

    def walk(element, x, y):
        for a, b in re.findall(r"translate\(([-\d.]+) ([-\d.]+)\)", element.get("transform", "")):
            x, y = x + float(a), y + float(b)
        if element.tag == "text":
            size = min(SIZES[c] for c in element.get("class").split() if c in SIZES)
            width = text_width(element.text or "", size)
            begin = {"start": 0.0, "middle": 0.5, "end": 1.0}[element.get("text-anchor")] * width
            left, middle = x + float(element.get("x")) - begin, y + float(element.get("y"))
            found.append((element.text, (left, middle - size / 2, left + width, middle + size / 2)))
        for child in element:
            walk(child, x, y)

    walk(svg, 0.0, 0.0)
    return found


def overlapping(boxes):
    return [
        (one, other)
        for (one, a), (other, b) in itertools.combinations(boxes, 2)
        if a[0] < b[2] - 0.5 and b[0] < a[2] - 0.5 and a[1] < b[3] - 0.5 and b[1] < a[3] - 0.5
    ]


def test_forty_blocks_stand_in_rows_and_every_subsystem_keeps_its_wires(forty):
    """All was one row of 3000 pixels, and wires of a subsystem ran below what stood beside it."""
    top = read_levels(forty[0])
    assert [level.path for level in top.subsystems()] == [
        "a nested one, with a long name",
        "a nested one, with a long name/deep",
        "single",
    ]
    assert len(states(top)) == 6
    for state in states(top):
        picture = compose(top, state)
        assert WIDEST / 2 < picture.width < WIDEST + 150
        seen = list(all_levels(picture))
        assert {p.level.path for p in seen} == {"", *state}
        for level in seen:
            check_level(level)


def test_no_text_lies_upon_another(forty):
    for view in diagram_views(forty[0]):
        svg = ElementTree.fromstring(view)
        written = texts(svg)
        assert len(written) > 80
        assert overlapping(written) == []
        left, top, width, height = map(float, svg.get("viewBox").split())
        assert all(left <= a and top <= b and c <= left + width and d <= top + height for _, (a, b, c, d) in written)


@pytest.mark.parametrize("seed", range(8))
def test_rows_of_any_diagram(seed):
    """Loops, wires over several rows and back; where all is tangled, two may share the width of a channel."""
    rng = np.random.default_rng(seed)
    graph = random_graph(rng, int(rng.integers(5, 45)))
    check_level(compose(Level("", "", graph), (), widest=float(rng.uniform(250, 700))), 60.0)


def test_a_subsystem_that_a_state_separates_comes_behind_its_controller():
    """Of a loop of two subsystems the plant once stood first, as no wire told which closes the loop."""
    sim = cs.Simulation(progress=False, graphics=False)
    bd, plant, law = sim.blockdiagram(), sim.blockdiagram("plant"), sim.blockdiagram("law")
    for inner, kind in ((plant, plant.INTEGRATOR), (law, law.GAIN)):
        begin, middle, end = inner.INPORT(1), kind(), inner.OUTPORT(1)
        inner.connect(begin, middle)
        inner.connect(middle, end)
    moved, ruled, error = bd.SUBSYSTEM(plant, name="plant"), bd.SUBSYSTEM(law, name="law"), bd.SUM("+-", name="error")
    bd.connect(bd.STEP(), error[0])
    bd.connect(moved, error[1])
    bd.connect(error, ruled)
    bd.connect(ruled, moved)
    sim.run(bd, T=0.01, live=False)
    top = read_levels(bd)
    place = {top.graph.nodes[p.node].name: p.x for p in compose(top, ()).blocks}
    assert place["error"] < place["law"] < place["plant"]


def test_names_above_frames_are_inside_the_picture_and_their_frame():
    """The name of the topmost frame was once cut off, and that of a frame further down stood in the part above."""
    sim = cs.Simulation(progress=False, graphics=False)
    bd = sim.blockdiagram()
    names = ["first", "a second one, whose name is far longer than it and all the other blocks are wide"]
    for name in names:
        subsystem = bd.SUBSYSTEM(servo(sim, "inner"), name=name)
        bd.connect(bd.CONSTANT(1.0), subsystem[0], subsystem[1])
        bd.connect(subsystem[0:2], bd.SCOPE(nin=2)[0:2])
    sim.run(bd, T=0.01, live=False)
    picture = compose(read_levels(bd), names)
    written = dict(texts(ElementTree.fromstring(diagram_views(bd)[0])))
    frames = {p.level.name: p for p in picture.blocks if p.picture}
    for name in names:
        left, top, right, bottom = written[name]
        frame = frames[name]
        assert frame.x < left and right < frame.x + frame.shape.width
        assert frame.y < top and bottom < frame.y + HEAD


def test_phases_and_laws_are_named_in_their_block():
    """A controller showed that it has an output "phase", but not which phases there are."""
    sim = cs.Simulation(progress=False, graphics=False)
    bd, mech = sim.blockdiagram(), cs.library.acrobot()
    law = SwingUp(EnergyPump(mech), LQR(mech), threshold=1650.0, limit=25.0)
    plant = bd.HYBRIDDYNAMICS(mech, name="plant")
    controller = bd.CONTROLLER(mech, law, name="controller")
    bd.connect(plant[0:2], controller[0:2])
    bd.connect(controller.tau, plant.tau)
    sim.run(bd, T=0.01, live=False)
    written = [text for text, _ in texts(ElementTree.fromstring(diagram_views(bd)[0]))]
    assert "phase: swing up, balance" in written


needs_browser = pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium (Debian: apt install chromium)")


@pytest.mark.slow
@needs_browser
def test_subsystems_fold_and_unfold_in_the_page(forty, tmp_path):
    """A click opens one subsystem and leaves the others as they are; nothing is seen twice, no texts meet."""
    script = """(() => {
      const seen = () => [...document.querySelectorAll('svg.diagram')].filter(v => v.getBoundingClientRect().width > 0);
      const switches = () => [...seen()[0].querySelectorAll('.switch')].map(s => s.querySelector('title').textContent);
      const click = (n) => seen()[0].querySelector(`.switch[data-subsystem="${n}"]`)
        .dispatchEvent(new MouseEvent('click', { bubbles: true }));
      const bound = (e) => (({ left, top, right, bottom }) => [left, top, right, bottom])(e.getBoundingClientRect());
      const say = () => [seen().length, switches().sort(), [...seen()[0].querySelectorAll('text')]
        .map(e => [e.textContent, bound(e)]), bound(seen()[0])];
      const found = [say()];
      click(0); found.push(say());
      click(2); found.push(say());
      click(1); found.push(say());
      click(0); found.push(say());
      return [found, document.querySelector('.scroll').clientWidth];
    })()"""
    found, room = in_browser(tmp_path, report.html(*forty), script)
    nested, deep, single = "a nested one, with a long name", "a nested one, with a long name/deep", "single"
    assert [one[1] for one in found] == [
        [f"unfold {nested}", f"unfold {single}"],
        sorted([f"fold {nested}", f"unfold {deep}", f"unfold {single}"]),
        sorted([f"fold {nested}", f"unfold {deep}", f"fold {single}"]),
        sorted([f"fold {nested}", f"fold {deep}", f"fold {single}"]),
        sorted([f"unfold {nested}", f"fold {single}"]),
    ]
    for count, _, written, picture in found:
        assert count == 1
        assert overlapping([(text, box) for text, box in written if text]) == []
        assert picture[2] - picture[0] <= room


def test_a_notebook_shows_a_diagram(forty):
    sim = cs.Simulation(progress=False, graphics=False)
    unwired = sim.blockdiagram("<half>")
    unwired.GAIN(3, name="alone")
    for bd, seen in ((forty[0], ["some", "second"]), (unwired, ["alone"]), (sim.blockdiagram(), ["no blocks"])):
        shown = re.fullmatch(r'<img alt="([^"]*)" src="data:image/svg\+xml;base64,([^"]*)" [^<]*>', bd._repr_html_())
        assert html.unescape(shown[1]) == f"diagram {bd.name}"
        drawn = ElementTree.fromstring(base64.b64decode(shown[2]))
        texts = [text.text for text in drawn.iter("{http://www.w3.org/2000/svg}text")]
        assert set(seen) <= set(texts)
        assert (
            float(drawn.get("width")) > 50
            and "prefers-color-scheme" not in drawn[0].text
            and ".diagram .w" in drawn[0].text
        )


def test_a_linear_block_shows_its_equation():
    """A transfer function was a box with its kind's name, and had no parameters in the list of blocks."""
    sim = cs.Simulation(progress=False, graphics=False)
    bd = sim.blockdiagram()
    motor, two = bd.TRANSFERFN([1], [0.1, 1, 0], name="motor"), bd.TRANSFERFN([[[1], [2]]], [1, 3], name="two")
    sampled = bd.DISCRETETF(bd.clock(10, "Hz"), [1, 0], [1, -0.5], name="sampled")
    bd.connect(bd.STEP(), motor)
    bd.connect(motor, bd.STATESPACE(-1.0, 1.0, 1.0, name="lag"))
    bd.connect(bd.CONSTANT([1.0, 2.0]), two)
    bd.connect(two, sampled, bd.NULL())
    drawn = "".join(diagram_views(bd))
    for said in ("10<", "s² + 10s", ">z<", "z − 0.5", "ẋ = Ax + Bu", "transfer fn"):
        assert said in drawn
    rows = {name: dict(found) for name, _, found in block_rows(bd)}
    assert rows["motor"] == {"H": "10 / (s² + 10s)"} and rows["sampled"]["H"] == "z / (z − 0.5)"
    assert "H" not in rows["two"]
    assert rows["lag"]["A"] == "[[-1]]"


def test_ports_are_not_listed_as_parameters():
    """The list of blocks had "wrench = Plug/:Block.continuous('plant', ...", and "load" of a WRENCH."""
    bd = cs.Simulation(progress=False, graphics=False).blockdiagram()
    plant, push = bd.HYBRIDDYNAMICS("pendulum", wrench=True, name="plant"), bd.WRENCH("pendulum", name="push")
    bd.connect(bd.CONSTANT(0.0), plant.tau)
    bd.connect(bd.CONSTANT(np.zeros(6)), push)
    bd.connect(push, plant.wrench)
    rows = {name: dict(found) for name, _, found in block_rows(bd)}
    assert "wrench" not in rows["plant"] and not any(
        "Plug" in said for said in {**rows["plant"], **rows["push"]}.values()
    )


@pytest.mark.parametrize("letter", ["i", "m", "A"])
def test_a_name_without_end_is_cut_at_once(letter):
    """Letter by letter, a name of 100 000 took hours."""
    found = shortened(letter * 10**6, 12.0, 100.0)
    assert found == shortened(letter * 1000, 12.0, 100.0) and found.endswith("…")
    assert text_width(found, 12.0) <= 100.0 < text_width(letter + found, 12.0)
