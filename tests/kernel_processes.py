"""Processes with a folder of kernels of their own, for the tests of what is compiled and kept."""

import os
import subprocess
import sys
from pathlib import Path

import numba
import pytest

import cstormpy
from cstormpy.kernels import compiling
from cstormpy.kernels.compiling import Entry, cache_folder

PACKAGE = Path(cstormpy.__file__).resolve().parent
compiled_only = pytest.mark.skipif(numba.config.DISABLE_JIT, reason="nothing is compiled where the JIT is off")
posix_only = pytest.mark.skipif(sys.platform == "win32", reason="no fork and no flock on Windows")


def double(x):
    return 2.0 * x


def triple(x):
    return 3.0 * x


def fresh(function=double):
    return Entry(function, "f8(f8)", False, compiling._OPTIONS)


def start(script, path, *, wait=True, python=PACKAGE.parent, timeout=120, **environment):
    """Run Python code in a process of its own whose kernels are kept at `path`."""
    environment = {
        **{name: value for name, value in os.environ.items() if name != "NUMBA_DISABLE_JIT"},
        "PYTHONPATH": os.pathsep.join([str(python), str(path.parent)]),
        "PYTHONDONTWRITEBYTECODE": "1",
        "CSTORMPY_CACHE_DIR": str(path),
        **environment,
    }
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    process = subprocess.Popen([sys.executable, "-c", script], env=environment, cwd=path.parent, text=True, **pipes)
    if not wait:
        return process
    out, err = process.communicate(timeout=timeout)
    assert process.returncode == 0, err
    return out, err


#: Two kernels in a module of their own, as processes import them.
TINY = """
from cstormpy.kernels.compiling import entry

@entry("f8(f8)")
def double(x):
    return 2.0 * x

@entry("f8(f8)")
def triple(x):
    return 3.0 * x
"""


def drafts():
    """Return what is left half written."""
    return [path.name for path in cache_folder().iterdir() if path.suffix not in (".kernel", ".lock")]
