"""The report in a browser: where the page sees the links, its clock, and that names do nothing."""

import itertools
import json
import re
import shutil
import subprocess
from html import unescape

import numpy as np
import pytest
from random_mechanisms import COMPOUND, KINDS, random_mechanism
from test_report import EVIL, outcome, pane, position_loop

import cstormpy as cs
from cstormpy import report

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium (Debian: apt install chromium)")


def in_browser(tmp_path, page, script, result=None):
    """Return what a script finds on the page, the value of its last expression; or what the page writes by itself."""
    result = result or (
        "<pre id=result></pre><script>"
        f"document.getElementById('result').textContent = JSON.stringify({script})</script>"
    )
    path = tmp_path / "page.html"
    path.write_text(page.replace("</body>", result + "</body>"), encoding="utf-8")
    command = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--dump-dom"]
    command += [f"--user-data-dir={tmp_path / 'profile'}", "--virtual-time-budget=2000", "--window-size=1400,1000"]
    done = subprocess.run([*command, path.as_uri()], capture_output=True, timeout=120, check=False)
    found = re.search(r'<pre id="result">(.*?)</pre>', done.stdout.decode(), re.S)
    assert found and found[1], done.stderr.decode()[-2000:]
    return json.loads(unescape(found[1]))


def test_the_page_sees_the_links_where_they_are(tmp_path):
    t = np.linspace(0, 3, 91)
    rng = np.random.default_rng(3)
    mechs = [
        cs.library.acrobot(),
        cs.library.puma560(),
        cs.library.tree(4),
        *(random_mechanism(rng, 8) for _ in range(3)),
        *(random_mechanism(rng, 5, (*KINDS, *COMPOUND)) for _ in range(2)),
    ]
    motions = [np.cumsum(rng.normal(size=(len(t), m.n)) * 0.2, axis=0) for m in mechs]
    pairs = enumerate(zip(mechs, motions, strict=True))
    page = report.html(None, outcome(*(pane("mechanism", t, q, f"m{k}", mechanism=m) for k, (m, q) in pairs)))
    script = """report.panes.map(p => [0, 30, 90].map(k => report.linkPoses(p.bones, p.motions, k)))"""
    found = in_browser(tmp_path, page, script)
    for mech, q, poses in zip(mechs, motions, found, strict=True):
        X = mech.forward_kinematics(q[[0, 30, 90]])
        ours = X[:, :, :3].reshape(3, -1, 12)
        np.testing.assert_allclose(np.array(poses), ours, atol=3e-6 * (1 + np.abs(q).max()))


def test_what_goes_far_is_followed(tmp_path):
    """A body that fell for 20 m was a dot in the picture, and its arm, which stays in sight, stands as it did."""
    t = np.linspace(0, 2, 81)
    body = cs.Link("body", joint=cs.Free(), mass=1.0, com=(0.1, 0, 0), inertia=(0.1, 0.1, 0.1))
    fall = np.zeros((len(t), 6))
    fall[:, 1], fall[:, 5] = -5.0 * t**2, t
    panes = [pane("mechanism", t, fall, "falling", mechanism=cs.Mechanism([body], actuated=[]))]
    panes.append(pane("mechanism", t, t[:, None] * [1.0, 2.0], "standing", mechanism=cs.library.acrobot()))
    script = """[0, 1.1, 2].map(t => { report.clock.set(t); report.panes.forEach(p => p.redraw());
      return report.panes.map(p => [p.size, ...(p.middles ? p.middle(t) : p.centre)]); })"""
    found = np.array(in_browser(tmp_path, report.html(None, outcome(*panes)), script))
    tip = np.column_stack([np.cos([0.0, 1.1, 2.0]), np.sin([0.0, 1.1, 2.0])])  # of a line of 0.2 m from the joint
    assert (found[:, 0, 0] < 0.2).all() and (found[:, 1] == found[0, 1]).all()
    np.testing.assert_allclose(found[:, 0, 1:3], 0.1 * tip + [[0, 0], [0, -6.05], [0, -20]], atol=2e-3)


def test_a_cable_leads_from_its_trolley_and_a_shaft_has_a_size(tmp_path):
    """The cable began where its load had been highest, and the grid of a shaft was one of 5e-10 m."""
    t = np.linspace(0, 2, 21)
    trolley = cs.Link("trolley", joint=cs.Prismatic((1, 0, 0), name="x"), mass=6.0)
    cable = cs.Link("cable", "trolley", cs.Revolute((0, 0, 1), name="swing"))
    load = cs.Link("load", "cable", cs.Prismatic((0, -1, 0), name="hoist"), mass=2.0)
    shaft = cs.Mechanism([cs.Link("shaft", joint=cs.Revolute((0, 0, 1)), inertia=np.eye(3))])
    moved = np.column_stack([10.0 + t, 0.1 * t, 3.0 - 0.5 * t])
    panes = [pane("mechanism", t, moved, "crane", mechanism=cs.Mechanism([trolley, cable, load]))]
    panes.append(pane("mechanism", t, t[:, None], "shaft", mechanism=shaft))
    script = """[report.panes[0].rails(report.panes[0].at(1)).map(r => [r.a, r.b]), report.panes.map(p => p.size)]"""
    (rail, hoist), sizes = in_browser(tmp_path, report.html(None, outcome(*panes)), script)
    np.testing.assert_allclose(hoist[0], [11.0, 0.0, 0.0], atol=1e-4)  # where the trolley is
    reached = np.array(hoist[1]) - hoist[0]
    assert np.linalg.norm(reached) > 3.0 and reached @ [np.sin(0.1), -np.cos(0.1), 0.0] > 3.0
    assert rail[0][0] > 8.0 and sizes[1] == 1.0


def test_names_do_nothing(tmp_path):
    sim = cs.Simulation(progress=False, graphics=False)
    bd = position_loop(sim)
    sim.run(bd, T=0.1)
    for block in bd.blocklist:
        block._name = EVIL
    out = outcome(
        pane(name=EVIL, title=EVIL, labels=[EVIL], unit=EVIL), pane("xy", y=np.zeros((50, 2)), labels=[EVIL] * 2)
    )
    page = report.html(bd, out, title=EVIL)
    label = "document.querySelector('.label').textContent"
    script = f"[window.hacked === undefined, document.images.length, document.title, {label}]"
    safe, images, title, label = in_browser(tmp_path, page, script)
    assert safe
    assert images == 0
    assert title == label == EVIL


def test_cursor_zoom_and_clock(tmp_path):
    t = np.linspace(0, 10, 1001)
    scope = pane(t=t, y=np.column_stack([2 * t, np.sin(t)]), name="scope")
    page = report.html(
        None, outcome(scope, pane(t=t, y=t[:, None], name="other"), pane("xy", t, np.column_stack([t, t]), "xy"))
    )
    script = """(() => {
      const [a, b] = report.panes.slice(1);
      report.clock.set(2.5);
      a.now();
      const legend = [...document.querySelectorAll('#pane-1 output')].map(o => o.textContent);
      a.now(); b.now();
      a.drag = { x: a.px(2), y: 50, toX: a.px(4), toY: 52 };
      a.up({ offsetX: a.px(4) });
      const zoomed = [a.x, b.x].flat();
      a.zoom(0.5, 3, 0, false);
      const closer = a.x[1] - a.x[0];
      a.reset();
      report.clock.speed = 2; report.clock.last = performance.now() - 100;
      report.clock.playing = true; report.clock.loop = false; report.clock.t = 9.99;
      report.clock.tick(report.clock.last + 100);
      const end = [report.clock.t, report.clock.playing];
      report.clock.set(99);
      const pixels = a.canvas.getContext('2d').getImageData(0, 0, a.canvas.width, a.canvas.height).data;
      return { legend, zoomed, closer, whole: b.x, end, clamped: report.clock.t, drawn: pixels.some(v => v > 0) };
    })()"""
    found = in_browser(tmp_path, page, script)
    assert found["legend"] == ["5", "0.59847"]
    np.testing.assert_allclose(found["zoomed"], [2, 4, 2, 4], atol=1e-9)
    assert found["closer"] == pytest.approx(1.0)
    assert found["whole"] == [0, 10]
    assert found["end"] == [10, False]
    assert found["clamped"] == 10
    assert found["drawn"]


_COLOURED = """(plot => {
      plot.now();
      const { x, y, w, h } = plot.inside;
      const p = plot.canvas.getContext('2d').getImageData(x, y, w, h).data;
      const columns = new Set();
      for (let k = 0; k < p.length; k += 4) {
        const colours = [p[k], p[k + 1], p[k + 2]];
        if (p[k + 3] > 128 && Math.max(...colours) - Math.min(...colours) > 80) columns.add((k / 4) % Math.floor(w));
      }
      return columns.size / Math.floor(w);
    })"""
"""Part of a plot's columns in which there is colour: the axes are grey."""


@pytest.mark.slow
def test_numbers_that_stand_for_names_are_shown_by_them(tmp_path):
    """The law and its phase came as one number, 0.1 in the legend and at the axis."""
    t, names = np.linspace(0, 1, 5), ("energy", "lqr", "pd")
    stairs = {"stairs": True}
    law = pane(t=t, y=np.array([[0.0], [0], [1], [1], [1]]), name="law", names=[names], options=stairs)
    both = pane(t=t, y=np.column_stack([0 * t, 2 * t]), name="both", names=[names, None], options=stairs)
    script = """(() => {
      const [a, b] = report.panes.slice(1);
      const written = [];
      const pen = a.canvas.getContext('2d');
      const real = pen.fillText.bind(pen);
      pen.fillText = (text, ...at) => { written.push(text); real(text, ...at); };
      report.clock.set(0.6);
      a.now(); b.now();
      const legend = k => [...document.querySelectorAll(`#pane-${k} output`)].map(o => o.textContent);
      return { written, range: a.y, a: legend(1), b: legend(2), ticks: b.pane.ticks };
    })()"""
    found = in_browser(tmp_path, report.html(None, outcome(law, law, both)), script)
    assert "energy" in found["written"] and "lqr" in found["written"] and "pd" not in found["written"]
    assert found["range"] == [-0.5, 1.5] and found["a"] == ["lqr"]
    assert found["b"] == ["energy", "1"] and found["ticks"] is None


@pytest.mark.slow
def test_single_samples_are_dots(tmp_path):
    """A run stopped at its first sample once had empty plots."""
    one, t = np.zeros(1), np.linspace(0, 1, 9)
    y = np.where(np.arange(9) == 4, 2.0, np.nan)[:, None]
    for name, times, values in (("stopped", one, np.full((1, 1), 2.0)), ("between gaps", t, y)):
        panes = [pane(t=times, y=values), pane(t=times, y=values, options={"stairs": True})]
        page = report.html(None, outcome(*panes, pane("xy", times, np.column_stack([values, values]), "xy")))
        (tmp_path / name).mkdir()
        script = f"[report.panes.map({_COLOURED}), (report.clock.set(0.5), report.panes[1].now(), "
        script += "document.querySelector('#pane-1 output').textContent)]"
        parts, value = in_browser(tmp_path / name, page, script)
        assert all(0.0 < part < 0.05 for part in parts), (name, parts)
        assert value == "2"


@pytest.mark.slow
def test_held_traces_keep_their_values_beside_others(tmp_path):
    t, y = np.array([0.0, 1.0]), np.array([[1.0, 1.0], [3.0, 3.0]])
    page = report.html(None, outcome(pane(t=t, y=y, held=[True, False])))
    script = "[report.clock.set(0.5), report.panes[0].traces.map((trace) => report.panes[0].valueAt(trace, 0.5))]"
    assert in_browser(tmp_path, page, script)[1] == [1.0, 2.0]


@pytest.mark.slow
def test_values_of_any_size_are_drawn(tmp_path):
    """A scope of a run that grew beyond 3.4e38 was once blank, and its legend said nothing."""
    t = np.linspace(0, 2, 401)
    motions = [np.exp(50 * t), 1e300 * t, 1.7e308 * np.cos(5 * t), np.finfo(float).max * (t - 1), 1e-60 * np.sin(t), t]
    panes = [pane(t=t, y=y[:, None], name=f"s{k}") for k, y in enumerate(motions)]
    panes.append(pane("xy", t, np.column_stack([motions[2], motions[3]]), "xy", options={"equal": True}))
    script = f"[report.panes.map({_COLOURED}), [...document.querySelectorAll('output')].map(o => o.textContent)]"
    parts, values = in_browser(tmp_path, report.html(None, outcome(*panes)), script)
    assert all(part > 0.85 for part in parts[1:]), parts
    assert parts[0] > 0.4
    assert values[1:7] == ["1", "0", "1.700e+308", "−1.798e+308", "0", "0"]


def test_each_minus_sign_of_a_tick_is_one(tmp_path):
    """The lower end of an axis from -1e-12 on was labelled with a minus sign and a hyphen."""
    t = np.linspace(0, 1, 101)
    page = report.html(None, outcome(pane(t=t, y=1e-12 * np.sin(2 * np.pi * t)[:, None], unit="rad")))
    script = """(() => {
        const pen = CanvasRenderingContext2D.prototype, fill = pen.fillText, texts = [];
        pen.fillText = function (text, x, y) { texts.push(text); fill.call(this, text, x, y); };
        report.panes[0].now();
        return texts;
    })()"""
    texts = in_browser(tmp_path, page, script)
    assert {"1e−12", "0", "−1e−12"} <= {*texts}


def test_long_names_and_short_times_leave_their_numbers_whole(tmp_path):
    """A value beside a long name stood in a column of one letter, and the last time of 1e-9 s was cut off."""
    sim = cs.Simulation(progress=False, graphics=False)
    bd = sim.blockdiagram()
    state = bd.INTEGRATOR(x0=1.0, name="a_name_that_goes_on" * 5)
    bd.connect(bd.CONSTANT(1.0), state)
    bd.connect(state, bd.LIVESCOPE(name="scope"))
    page = report.html(bd, sim.run(bd, T=1e-9, live=False))
    script = """(() => {
        const pen = CanvasRenderingContext2D.prototype, fill = pen.fillText, ends = [];
        pen.fillText = function (text, x, y) {
            if (this.textAlign === "center") ends.push(x + this.measureText(text).width / 2);
            fill.call(this, text, x, y);
        };
        report.panes[0].now();
        const values = [...document.querySelectorAll(".columns td.number")].map((cell) => cell.clientWidth);
        return [Math.min(...values), Math.max(...ends) - report.panes[0].width];
    })()"""
    narrowest, beyond = in_browser(tmp_path, page, script)
    assert narrowest > 60 and beyond < 1e-6


def test_times_of_events_stand_in_one_line(tmp_path):
    """Beside what happened to a ball the unit stood below the number."""
    sim = cs.Simulation(progress=False, graphics=False)
    bd = sim.blockdiagram()
    bd.connect(
        bd.TIME(), bd.RELAY(1 / 3, 0.0, name="quad: a rotation vector gives way to the shorter one"), bd.INTEGRATOR()
    )
    page = report.html(bd, sim.run(bd, T=1.0, live=False))
    script = """(() => {
        const time = [...document.querySelectorAll(".columns th")].find((cell) => cell.textContent == "0.333333 s");
        const range = document.createRange();
        range.selectNodeContents(time);
        return range.getClientRects().length;
    })()"""
    assert in_browser(tmp_path, page, script) == 1


def test_a_notebooks_frame_works_by_itself(tmp_path):
    inner = report.inline(outcome(pane()))
    page = f"<!DOCTYPE html><html><body>{inner}</body></html>"
    script = "document.querySelector('iframe').srcdoc.includes('pane-0')"
    assert in_browser(tmp_path, page, script) is True


def test_samples_are_saved_as_a_table(tmp_path):
    """Of each plot its samples, in the order of time, and empty where a trace has none; a button saves them.

    Of more than two of one time, as of two jumps at once, the last ones stood in one row.
    """
    t = np.array([0.0, 0.5, 0.5, 0.5, 1.0])
    y = np.array([[0.0, 1.0], [1.0, 2.0], [3.0, 4.0], [7.0, 8.0], [5.0, -6.0]])
    page = report.html(None, outcome(pane("scope", t, y, "two, of them", labels=["a", "b"])))
    script = (
        """[report.table(report.panes[0]), [...document.querySelectorAll('#pane-0 .tool')].map(b => b.textContent)]"""
    )
    (names, *rows), buttons = in_browser(tmp_path, page, script)
    assert [name.split(" [")[0] for name in names] == ["t", "a", "b"] and buttons == ["CSV"]
    np.testing.assert_allclose(np.array(rows, dtype=float), np.column_stack([t, y]), atol=1e-6)


@pytest.mark.slow
def test_the_diagram_is_enlarged_and_fitted_again(tmp_path):
    """A chain of forty blocks fits into the page in rows; enlarged, it is moved by the pointer, and fitted again."""
    sim = cs.Simulation(progress=False, graphics=False)
    bd = sim.blockdiagram()
    chain = [bd.TIME(), *(bd.GAIN(1.0, name=f"g{k}") for k in range(40)), bd.NULL()]
    for one, other in itertools.pairwise(chain):
        bd.connect(one, other)
    page = report.html(bd, sim.run(bd, T=0.5, live=False))
    script = """(() => {
        const svg = document.querySelector('svg.diagram');
        const scroll = svg.closest('.scroll');
        const width = () => svg.getBoundingClientRect().width;
        const tools = svg.closest('.card').querySelectorAll('.tool');
        const found = [scroll.clientWidth, width()];
        for (const k of [0, 0, 1, 2]) { tools[k].click(); found.push(width()); }
        tools[0].click();
        const at = () => [scroll.scrollLeft, scroll.scrollTop];
        const before = at();
        const point = (x, y) => ({ clientX: x, clientY: y, button: 0, pointerType: 'mouse', bubbles: true });
        svg.dispatchEvent(new PointerEvent('pointerdown', point(500, 300)));
        dispatchEvent(new PointerEvent('pointermove', point(460, 310)));
        dispatchEvent(new PointerEvent('pointerup', point(460, 310)));
        dispatchEvent(new PointerEvent('pointermove', point(0, 0)));
        return [found, before, at()]; })()"""
    sizes, before, after = in_browser(tmp_path, page, script)
    page_width, first, larger, largest, smaller, fitted = sizes
    assert 0.6 * page_width < first <= page_width and fitted == first
    assert first < larger < largest and smaller == larger > page_width
    assert after[0] == before[0] + 40
    assert after[1] == max(0, before[1] - 10)


def test_the_player_is_usable_on_a_phone(tmp_path):
    """On 390 pixels the slider had no room: it has a row of its own, buttons are as large as a finger."""
    t = np.linspace(0, 1, 11)
    page = report.html(None, outcome(pane("scope", t, np.sin(t)[:, None], "one", labels=["a"])))
    inner = """<script>parent.postMessage(JSON.stringify((() => {
        const box = (q) => document.querySelector('#transport ' + q).getBoundingClientRect();
        return { slider: box('input[type=range]').width, play: box('.play').height,
            right: Math.max(...['.play', 'output', 'select', 'input[type=checkbox]'].map(q => box(q).right)),
            page: document.documentElement.scrollWidth, inside: innerWidth }; })()), '*')</script>"""
    (tmp_path / "phone.html").write_text(page.replace("</body>", inner + "</body>"), encoding="utf-8")
    outer = (
        "<!DOCTYPE html><html><body><iframe src='phone.html' width=390 height=844 style='border:0'></iframe>"
        "<script>let said; addEventListener('message', (e) => { said = e.data;"
        "document.getElementById('result').textContent = said; });</script></body></html>"
    )
    found = in_browser(tmp_path, outer, "null", "<pre id=result></pre>")
    assert found["inside"] == 390 and found["page"] <= 390 and found["right"] <= 390
    assert found["slider"] > 300 and found["play"] >= 44
