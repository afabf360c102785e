"""Animations of runs: what their pictures show at which time, and their files."""

import shutil

import numpy as np
import pytest
from matplotlib.figure import Figure
from PIL import Image, ImageSequence

import cstormpy as cs
from cstormpy.errors import CstormError, DiagramError, FileFormatError, InvalidType, InvalidValue, UnknownName
from cstormpy.report import animation, film
from cstormpy.report.data import panes_of
from cstormpy.report.figures import draw_plot

BLUE = np.array([31, 119, 180])
"""The first colour of matplotlib, of links and of first traces."""


@pytest.fixture
def sim():
    return cs.Simulation(live=False, progress=False, graphics=False)


def swing(sim, T=1.0, title="Pendulum"):
    """Let a pendulum go where it is level, with a view of it and a scope of its angle."""
    bd = sim.blockdiagram()
    plant = bd.HYBRIDDYNAMICS(cs.library.pendulum().with_drive(actuated=[]), q0=[0.0], name="plant")
    view = bd.MECHANISMVIEW("pendulum", title=title, trail=0, name="view")
    bd.connect(plant.q, view, bd.LIVESCOPE(title="Angle", name="angle"))
    return bd, sim.run(bd, T=T, watch=["plant.q"], rtol=1e-9)


def pictures(path):
    with Image.open(path) as file:
        return [np.asarray(frame.convert("RGB")).astype(int) for frame in ImageSequence.Iterator(file)]


def durations(path):
    with Image.open(path) as file:
        return [frame.info["duration"] for frame in ImageSequence.Iterator(file)]


def places(picture, colour, within=40):
    """Return rows and columns of the pixels of a colour."""
    return np.nonzero(np.abs(picture - colour).max(axis=-1) < within)


def test_each_picture_shows_the_mechanism_as_it_was_then(sim, tmp_path):
    _, out = swing(sim)
    path = sim.animate(tmp_path / "swing.gif", ["view"], fps=10, size=(300, 300))
    frames = pictures(path)
    assert len(frames) == 11 and frames[0].shape == (300, 300, 3) and durations(path) == [100] * 10 + [1000]
    middles = np.array([np.mean(places(picture, BLUE), axis=1) for picture in frames])
    angles = np.interp(np.arange(11) / 10, out.t, out.signal("plant.q")[:, 0])
    along = np.stack([-np.sin(angles), np.cos(angles)], axis=1)  # of the link, by rows downwards and columns
    seen = np.column_stack([along.T.ravel(), np.repeat(np.eye(2), 11, axis=0)])
    found = np.linalg.lstsq(seen, middles.T.ravel())[0]  # half the link, and the pivot, in pixels
    assert 40 < found[0] < 70 and np.abs(seen @ found - middles.T.ravel()).max() < 3.0


def test_traces_grow_up_to_the_time_of_a_picture(sim, tmp_path):
    swing(sim)
    frames = pictures(sim.animate(tmp_path / "swing.gif", ["Angle"], fps=10, size=(300, 200)))
    ends = np.array([places(picture, BLUE, within=20)[1].max() for picture in frames])
    steps = np.diff(ends[:-1])  # the last dot is cut by the frame of the plot
    assert np.ptp(steps) <= 2 and steps.min() > 15
    faint = [len(places(picture, 0.2 * BLUE + 0.8 * 255, within=12)[0]) for picture in frames]
    assert (np.diff(faint) < 0).all() and faint[0] > 4 * faint[-1]


def test_panes_are_chosen_by_block_name_or_title(sim, tmp_path):
    bd, _ = swing(sim)
    both = pictures(sim.animate(tmp_path / "both.gif", fps=2, size=(400, 240)))
    named = pictures(sim.animate(tmp_path / "named.gif", [bd.blocknames["view"], "Angle"], fps=2, size=(400, 240)))
    assert all((a == b).all() for a, b in zip(both, named, strict=True))
    with pytest.raises(UnknownName, match=r"pane 'angel' does not exist; did you mean 'angle'\?"):
        sim.animate(tmp_path / "no.gif", ["angel"])
    for wrong, got in (("angle", "the text 'angle'"), (3, "an int")):
        with pytest.raises(InvalidType, match=f"panes: expected a list of blocks or of their names, got {got}"):
            sim.animate(tmp_path / "no.gif", wrong)
    with pytest.raises(InvalidValue, match="panes: expected blocks or their names, got none"):
        sim.animate(tmp_path / "no.gif", [])
    assert not (tmp_path / "no.gif").exists()


def test_a_long_run_is_shown_faster_and_told_so(sim, tmp_path):
    """A run of 50 s lasts 20 s, and writes that it goes two and a half times as fast."""
    swing(sim, T=50.0)
    path = sim.animate(tmp_path / "long.gif", ["view"], fps=2, size=(128, 128))
    assert sum(durations(path)[:-1]) == 20_000
    frames = pictures(sim.animate(path, ["view"], pace=25, fps=2, size=(128, 128)))
    assert len(frames) == 5
    with pytest.raises(InvalidValue, match=r"50 s at a pace of 0\.1 .* are 12501 frames, more than 3000"):
        sim.animate(path, pace=0.1)


def test_what_goes_far_is_followed(sim, tmp_path):
    """A body that falls 20 m in 2 s was a dot in the first picture and out of sight after it."""
    body = cs.Link("body", joint=cs.Planar(), mass=1.0, com=(0.1, 0, 0), inertia=(0, 0.1, 0.1))
    bd = sim.blockdiagram()
    plant = bd.HYBRIDDYNAMICS(cs.Mechanism([body], actuated=[]), qd0=[0.0, 0.0, 2.0], name="plant")
    bd.connect(plant.q, bd.MECHANISMVIEW(plant.mech, trail=0))
    sim.run(bd, T=2.0)
    for picture in pictures(sim.animate(tmp_path / "fall.gif", fps=2, size=(200, 200))):
        rows, columns = places(picture, BLUE)
        assert 60 < np.hypot(np.ptp(rows), np.ptp(columns)) and 80 < rows.mean() < 120


def test_mechanisms_in_space_and_curves(sim, tmp_path):
    bd = cs.diagrams.load("spherical_pendulum").build(sim)
    q = bd.blocknames["plant"].q
    parts, curve = bd.DEMUX(3), bd.LIVEXY(name="curve")
    bd.connect(q, parts)
    bd.connect(parts[0:2], curve[0:2])
    bd.connect(parts[2], bd.NULL())
    sim.run(bd, T=0.3)
    frames = pictures(sim.animate(tmp_path / "space.gif", ["view", "curve"], fps=5, size=(400, 240)))
    left, right = (np.abs(frames[0] - frames[1])[:, side] for side in (slice(150), slice(150, None)))
    assert len(frames) == 3 and left.max() > 100 and right.max() > 100


def test_axes_in_space_are_drawn_once(tmp_path, monkeypatch):
    """And make the pictures that drawing them each time makes; they took two thirds of the time."""
    mech, t = cs.library.puma560(), np.linspace(0.0, 1.0, 5)
    q = np.outer(t, np.arange(1, 7))
    written = []
    for follows in (False, True):
        with monkeypatch.context() as patched:
            made = film._Moving.__init__

            def make(self, *args, made=made, follows=follows):
                made(self, *args)
                assert self.in_space and not self.follows
                self.follows = follows

            patched.setattr(film._Moving, "__init__", make)
            written.append(pictures(cs.animate(tmp_path / "arm.gif", mech, t, q, {"q": q[:, :2]}, size=(400, 240))))
    assert len(written[0]) > 3
    np.testing.assert_array_equal(*written)


def test_diagrams_without_a_view_show_what_they_simulate(sim, tmp_path):
    bd = sim.blockdiagram()
    plant = bd.HYBRIDDYNAMICS(cs.library.acrobot().with_drive(actuated=[]), q0=[0.3, 0.0], name="plant")
    bd.connect(plant.q, bd.LIVESCOPE(title="Angles"))
    sim.run(bd, T=0.25)
    frames = pictures(sim.animate(tmp_path / "bare.gif", fps=10, size=(400, 240)))
    moving = [(frames[0] != frames[k])[:, side].any() for k in (1, 3) for side in (slice(180), slice(220, None))]
    assert len(frames) == 4 and all(moving)  # as the run ends between two frames there is one at its end
    bd = sim.blockdiagram()
    bd.connect(bd.STEP(), bd.NULL())
    sim.run(bd, T=0.2)
    with pytest.raises(DiagramError, match=r"nothing to draw in this diagram; add bd\.MECHANISMVIEW\(mech\)"):
        sim.animate(tmp_path / "none.gif")


def test_a_scope_in_a_subsystem_is_meant_by_itself(sim, tmp_path):
    inner = sim.blockdiagram(name="inner")
    entry, scope = inner.INPORT(1), inner.LIVESCOPE(name="inside")
    inner.connect(entry, scope, out := inner.OUTPORT(1))
    bd = sim.blockdiagram()
    bd.connect(bd.RAMP(), sub := bd.SUBSYSTEM(inner, name="sub"))
    bd.connect(sub, bd.NULL())
    sim.run(bd, T=0.2)
    assert out and sim.animate(tmp_path / "inside.gif", [scope], fps=10, size=(240, 160)).exists()


def test_a_webp_has_the_same_pictures(sim, tmp_path):
    swing(sim)
    for name in ("a.gif", "a.webp"):
        sim.animate(tmp_path / name, fps=5, size=(240, 160))
    gif, webp = (np.array(pictures(tmp_path / name)) for name in ("a.gif", "a.webp"))
    assert gif.shape == webp.shape and np.abs(gif - webp).mean() < 4.0


@pytest.mark.skipif(shutil.which("ffmpeg") is None, reason="needs the program ffmpeg")
def test_an_mp4_is_written_by_ffmpeg(sim, tmp_path, monkeypatch):
    swing(sim)
    path = sim.animate(tmp_path / "swing.mp4", fps=5, size=(241, 161))
    assert path.read_bytes()[4:8] == b"ftyp"
    monkeypatch.setattr(animation, "_FFMPEG", [*animation._FFMPEG, "-no_such_option"])
    with pytest.raises(FileFormatError, match=r"swing\.mp4: ffmpeg cannot write it: .*no_such_option"):
        sim.animate(path)
    assert path.read_bytes()[4:8] == b"ftyp"


def test_what_cannot_be_written_is_said_before(sim, tmp_path, monkeypatch):
    with pytest.raises(DiagramError, match=r"animate: nothing has been run yet"):
        sim.animate(tmp_path / "a.gif")
    swing(sim, T=0.1)
    monkeypatch.setattr(shutil, "which", lambda name: None)
    for name, said in [("a.png", r"expected a name that ends in \.gif, \.webp or \.mp4"), ("a.mp4", "program ffmpeg")]:
        with pytest.raises(InvalidValue, match=said):
            sim.animate(tmp_path / name)
    with pytest.raises(FileFormatError, match="there is no folder"):
        sim.animate(tmp_path / "no" / "a.gif", size=(240, 160))
    for size, said in [(300, "width and height in pixels"), ((10, 300), "at least 128"), ((1e3, 9), "a whole number")]:
        with pytest.raises(CstormError, match=f"animate: .*: expected {said}"):
            sim.animate(tmp_path / "a.gif", size=size)
    for wrong in ({"fps": 0}, {"pace": -1.0}, {"pace": "slow"}):
        with pytest.raises(CstormError, match="expected a positive number"):
            sim.animate(tmp_path / "a.gif", **wrong)
    with pytest.raises(InvalidValue, match=r"fps: expected 0\.1 to 100 frames a second, got 1000"):
        sim.animate(tmp_path / "a.gif", fps=1000)
    with pytest.raises(InvalidValue, match="128 x 128 pixels are too few for 4 panes"):
        sim.animate(tmp_path / "a.gif", ["view", "angle"] * 2, size=(128, 128))


def test_a_file_stays_where_drawing_ends_early(sim, tmp_path, monkeypatch):
    swing(sim, T=0.2)
    path = sim.animate(tmp_path / "a.gif", fps=10, size=(240, 160))
    before = path.read_bytes()

    def interrupted(each, k):
        raise KeyboardInterrupt

    monkeypatch.setattr(film._Growing, "at", interrupted)
    with pytest.raises(KeyboardInterrupt):
        sim.animate(path, fps=20, size=(240, 160))
    assert path.read_bytes() == before and [each.name for each in tmp_path.iterdir()] == ["a.gif"]


def test_a_motion_of_ones_own_and_what_belongs_to_it(tmp_path):
    """As of an optimal motion, for which one had to make a diagram."""
    mech, t = cs.library.acrobot(), np.linspace(0.0, 1.0, 21)
    q = np.column_stack([t, 2.0 * t])
    path = cs.animate(tmp_path / "own.gif", mech, t, q, {"Torque": 3.0 * q, "Work": t}, fps=2, size=(400, 240))
    frames = pictures(path)
    assert len(frames) == 3 and (frames[0] != frames[2])[:, :200].any() and (frames[0] != frames[2])[:, 200:].any()
    wrong = [
        ((mech, t[::-1], q), "t: expected times that increase"),
        ((mech, t, q[:5]), r"q: expected shape \(21, 2\), got \(5, 2\)"),
        ((mech, t, q, {"Torque": [1.0]}), r"plots: Torque: expected shape \(21,\)"),
        ((mech, t, q, [q]), "plots: expected a mapping of titles to arrays"),
    ]
    with pytest.raises(UnknownName, match="acrobat"):
        cs.animate(path, "acrobat", t, q)
    for given, says in wrong:
        with pytest.raises(CstormError, match=f"^animate: {says}"):
            cs.animate(path, *given)


def test_a_motion_may_have_both_sides_of_a_jump(tmp_path):
    """As the samples of a run have, in which a switch works: these were refused."""
    t = np.array([0.0, 0.25, 0.5, 0.5, 0.75, 1.0])
    q, torque = np.column_stack([t, 2.0 * t]), np.where(np.arange(6) < 3, -1.0, 1.0)
    frames = pictures(cs.animate(tmp_path / "own.gif", "acrobot", t, q, {"Torque": torque}, fps=2, size=(400, 240)))
    once = np.delete(t, 2)
    plain = pictures(cs.animate(tmp_path / "once.gif", "acrobot", once, np.column_stack([once, 2 * once]), fps=2))
    assert len(frames) == len(plain) == 3 and (frames[0] != frames[2])[:, 200:].any()


def test_what_is_constant_but_for_rounding_is_drawn_as_constant():
    """The energy of a body in space was noise, beside a number of 18 digits that took half of the picture."""
    sim = cs.Simulation(graphics=False, progress=False)
    bd = cs.diagrams.load("spinning_body").build(sim)
    out = sim.run(bd, T=1.0, watch=["energy.total"])
    total = out.signal("energy.total")
    assert 0.0 < np.ptp(total) < 1e-12 * total.max()
    (scope,) = [pane for pane in panes_of(out) if pane.name == "scope_energy"]
    shown = [Figure().subplots(), out.plot("energy.total").axes[0]]
    draw_plot(shown[0], scope)
    for axes in shown:
        low, high = axes.get_ylim()
        assert low < 0.91 * total.min() and 1.09 * total.max() < high
