"""Figures of motions: lines can be told apart, names stand on none of them, and all bodies are seen."""

from __future__ import annotations

import base64
import html
import re
from xml.etree import ElementTree

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.colors import same_color
from matplotlib.figure import Figure

import cstormpy as cs
from cstormpy.mechanism import library
from cstormpy.optimal import Effort, Problem
from cstormpy.optimal.plotting import draw_frames, draw_joints, draw_mechanism, draw_torques


@pytest.fixture
def axes():
    return Figure(layout="constrained").subplots()


def body():
    return cs.Mechanism([cs.Link("b", None, cs.Free(), mass=2.0, inertia=np.diag([0.1, 0.2, 0.3]))])


def test_the_torque_of_a_joint_has_the_colour_of_its_position():
    """The elbow of an acrobot was orange above and blue below."""
    problem = Problem(library.acrobot(), duration=1.0, start=[0, 0], end={"elbow": 1.0}, objective=Effort(), points=8)
    (above, below), at = Figure().subplots(2), problem.motion()
    draw_joints(above, at)
    draw_torques(below, at)
    (torque,), positions = below.lines, {line.get_label(): line for line in above.lines}
    assert torque.get_label() == "elbow" and same_color(torque.get_color(), positions["elbow"].get_color())


@pytest.mark.slow
def test_names_stand_above_the_axes_of_a_solution():
    """Seven names covered the ends of the lines."""
    arm = library.arm7()
    solved = Problem(
        arm, duration=1.5, start=np.zeros(7), end=np.full(7, 0.2), objective=Effort(), points=6, limits=None
    )
    figure = solved.solve(iterations=2, refine=False, progress=False).plot()
    assert plt.fignum_exists(figure.number)  # so that plt.show() shows it, as those of runs
    assert all(tick.is_integer() for tick in figure.axes[-1].get_xticks().tolist())  # they were parts of iterations
    figure.canvas.draw()
    for axes in (figure.axes[0], figure.axes[2]):
        assert axes.get_legend().get_window_extent().y0 >= axes.get_window_extent().y1 - 2.0
        assert axes.get_legend().get_window_extent().y1 <= figure.bbox.y1
    plt.close(figure)


def test_a_notebook_shows_the_figure_and_the_table_of_a_solution():
    """It was one line of text, where mechanisms and runs were pictures."""
    problem = Problem(library.pendulum(1), duration=1.0, start=[0.0], end=[1.0], objective=Effort(), points=5)
    solution = problem.solve(iterations=2, progress=False)
    before = plt.get_fignums()
    shown = re.fullmatch(r'<div><img .*base64,([^"]*)" [^<]*></div><pre>(.*)</pre>', solution._repr_html_(), re.DOTALL)
    drawn = ElementTree.fromstring(base64.b64decode(shown[1]))
    figure = solution.plot()
    assert html.unescape(shown[2]) == str(solution)
    axes = [each.get("id") for each in drawn.iter() if str(each.get("id")).startswith("axes_")]
    assert len(axes) == len(figure.axes)
    plt.close(figure)
    assert plt.get_fignums() == before  # one of pyplot's would be shown once more


def test_where_units_differ_each_name_has_its_own(axes):
    problem = Problem(body(), duration=1.0, start=np.zeros(6), end=np.ones(6), objective=Effort(), points=6)
    draw_joints(axes, problem.motion())
    assert [line.get_label() for line in axes.lines] == [f"b[{k}] [{'m' if k < 3 else 'rad'}]" for k in range(6)]


def test_a_free_body_is_seen(axes):
    """It has no lines; the picture was empty."""
    draw_frames(axes, body(), np.linspace([0.0] * 6, [0.5, 0.2, 0.0, 0.0, 0.0, 1.0], 5))
    assert [line.get_xydata().tolist() for line in axes.lines][-1] == [[0.5, 0.2]] and len(axes.lines) == 5


def test_a_slide_without_extent_is_drawn_along_its_way():
    """The poles of a cart stood beside one another with nothing that carried them."""
    mech, q = library.cart_pole(), np.array([[0.5, 0.2], [-0.8, 1.0]])
    frames, posture, plain = Figure().subplots(1, 3)
    draw_frames(frames, mech, q)
    draw_mechanism(posture, mech, q[1])
    carts = mech.forward_kinematics(q)[:, 0, :3, 3]
    for axes, cart in ((frames, carts[0]), (frames, carts[1]), (posture, carts[1])):
        drawn = [np.array(line.get_xydata()) for line in axes.lines]
        assert any(line.shape == (2, 2) and np.abs(line - [[0.0, 0.0], cart[:2]]).max() < 1e-12 for line in drawn)
    draw_frames(plain, library.planar_2r(), q)
    assert len(plain.lines) == 4


def test_names_with_dollars_are_no_mathematics(axes):
    """A pair of dollars in the name of a link ended each picture with an error of matplotlib's parser."""
    mech = cs.Mechanism(
        [cs.Link(r"$\a{$", None, cs.Revolute((0, 0, 1)), mass=1.0, com=(1.0, 0.0, 0.0), inertia=np.eye(3))]
    )
    draw_mechanism(axes, mech, [0.3])
    at = Problem(mech, duration=1.0, start=[0.0], end=[1.0], objective=Effort(), points=8).motion()
    draw_joints(axes, at)
    draw_torques(axes, at)
    axes.figure.canvas.draw()
    assert {text.get_text() for text in axes.get_legend().get_texts()} == {r"\$\a{\$"}
