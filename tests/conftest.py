"""Settings of all tests: hypothesis without a deadline, and no window."""

import os
import signal
from importlib.util import find_spec

import pytest
from hypothesis import HealthCheck, settings

# The oracle has no wheels for every system; the tests that ask it skip themselves.
collect_ignore = [] if find_spec("pinocchio") else ["pinocchio_model.py"]

# Before anything imports matplotlib or Qt.
os.environ.setdefault("MPLBACKEND", "Agg")
os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
os.environ.setdefault("CSTORMPY_LIVE", "off")

# A shell that starts the suite in the background has it ignore Ctrl-C, and with it the programs that tests interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# The first example of a test may compile a kernel, which takes seconds.
_patient = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("local", **_patient)
# The same examples in every run, so that a red run can be had again.
settings.register_profile("ci", derandomize=True, database=None, print_blob=True, **_patient)
settings.load_profile("ci" if os.environ.get("CI") else "local")


def pytest_configure(config):
    """Take fewer examples where only what is quick is run; a run of the whole suite takes all."""
    if "not slow" in (config.option.markexpr or ""):
        settings.register_profile("quick", settings.default, max_examples=40)
        settings.load_profile("quick")


@pytest.fixture
def eager_threads(monkeypatch):
    """Let threads share batches that are too short for it to be worth while."""
    from cstormpy.dynamics import batches

    monkeypatch.setattr(batches, "HAND_OVER", 1e-9)
    monkeypatch.setattr(batches, "LONG_ENOUGH", 1e-9)
