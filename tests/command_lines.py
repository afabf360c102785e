"""The command line in a process of its own, and scripts for it."""

import os
from pathlib import Path

import pytest

import cstormpy

ROOT = Path(cstormpy.__file__).resolve().parent.parent
posix = pytest.mark.skipif(os.name == "nt", reason="needs signals and permissions")


def script(text, name="mine.py"):
    Path(name).write_text(text, encoding="utf-8")
    return name


BUILD = """
def build(sim, gain=1.0, kind="GAIN"):
    bd = sim.blockdiagram("mine")
    state, factor = bd.INTEGRATOR(x0=1.0, name="state"), getattr(bd, kind)(-gain, name="factor")
    bd.connect(state, factor, bd.LIVESCOPE(labels=["x"], name="scope"))
    bd.connect(factor, state)
    return bd
"""
