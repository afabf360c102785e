"""The report in a browser: the page's own kinematics, its clock, and that names do nothing."""

import json
import re
import shutil
import subprocess
from html import unescape

import numpy as np
import pytest
from random_mechanisms import random_mechanism
from test_report import EVIL, outcome, pane, position_loop

import cstormpy as cs
from cstormpy import report

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium (Debian: apt install chromium)")


def in_browser(tmp_path, page, script):
    """Return what a script finds on the page: the value of its last expression."""
    result = (
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


def test_the_pages_kinematics_are_ours(tmp_path):
    t = np.linspace(0, 3, 91)
    rng = np.random.default_rng(3)
    mechs = [
        cs.library.acrobot(),
        cs.library.puma560(),
        cs.library.tree(4),
        *(random_mechanism(rng, 8) for _ in range(3)),
    ]
    motions = [np.cumsum(rng.normal(size=(len(t), m.n)) * 0.2, axis=0) for m in mechs]
    pairs = enumerate(zip(mechs, motions, strict=True))
    page = report.html(None, outcome(*(pane("mechanism", t, q, f"m{k}", mechanism=m) for k, (m, q) in pairs)))
    script = """report.panes.map(p => [0, 30, 90].map(k => report.linkPoses(p.bones, p.q.map(c => c[k]))))"""
    found = in_browser(tmp_path, page, script)
    for mech, q, poses in zip(mechs, motions, found, strict=True):
        X = mech.forward_kinematics(q[[0, 30, 90]])
        ours = X[:, :, :3].reshape(3, -1, 12)
        np.testing.assert_allclose(np.array(poses), ours, atol=3e-6 * (1 + np.abs(q).max()))


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


def test_a_notebooks_frame_works_by_itself(tmp_path):
    inner = report.inline(outcome(pane()))
    page = f"<!DOCTYPE html><html><body>{inner}</body></html>"
    script = "document.querySelector('iframe').srcdoc.includes('pane-0')"
    assert in_browser(tmp_path, page, script) is True
