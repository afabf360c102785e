"""Notices of the library: one line on standard error, or what the user makes of its logger."""

import io
import logging
import sys

import pytest
from matplotlib.figure import Figure

from cstormpy import reporting


@pytest.fixture
def logger():
    """Return a function that cuts the library's logger off from all handlers, those of pytest too, and returns it."""
    own = logging.getLogger("cstormpy")
    level, propagate, handlers = own.level, own.propagate, list(own.handlers)

    def bare():  # not in the fixture's own part: pytest adds a handler after that
        own.setLevel(logging.NOTSET)
        own.propagate = False
        own.handlers.clear()
        return own

    yield bare
    own.propagate, own.handlers[:] = propagate, handlers
    own.setLevel(level)


@pytest.mark.nojit
def test_a_notice_is_one_line_on_standard_error(logger, capsys):
    own = logger()
    reporting.notice("something")
    reporting.notice("something else")
    assert capsys.readouterr() == ("", "cstormpy: something\ncstormpy: something else\n")
    assert own.handlers == []


@pytest.mark.nojit
def test_a_notice_is_given_once(logger, capsys):
    logger()
    for _ in range(3):
        reporting.notice_once("only in this test")
    assert capsys.readouterr().err == "cstormpy: only in this test\n"


@pytest.mark.nojit
def test_the_users_handler_takes_a_notice_alone(logger, capsys):
    stream = io.StringIO()
    logger().addHandler(logging.StreamHandler(stream))
    reporting.notice("something")
    assert stream.getvalue() == "something\n"
    assert capsys.readouterr().err == ""


@pytest.mark.nojit
@pytest.mark.parametrize(
    "silence", [lambda own: own.addHandler(logging.NullHandler()), lambda own: own.setLevel("ERROR")]
)
def test_notices_can_be_silenced(logger, capsys, silence):
    silence(logger())
    reporting.notice("something")
    assert capsys.readouterr() == ("", "")


@pytest.mark.nojit
def test_standard_error_may_be_closed_or_missing(logger, monkeypatch):
    logger()
    closed = io.StringIO()
    closed.close()
    for stream in (None, closed):
        monkeypatch.setattr(sys, "stderr", stream)
        reporting.notice("something")


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_an_axis_of_two_runs_is_level_only_if_both_are(order):
    axes, runs = Figure().subplots(), ([1.0, 1.0 + 1e-15, 1.0], [1.0, 5.0, 2.0])
    for k in order:
        axes.plot(runs[k])
        reporting.level_if_flat(axes)
    low, high = axes.get_ylim()
    assert 0.5 < low < 1.0 and 5.0 < high < 5.5
