"""Looks at the machine: what is there, what is missing, and the line that mends it."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from importlib import metadata

import cstormpy
from cstormpy.errors import CstormError

__all__ = ["Finding", "look"]

_NEEDED = ("numpy", "scipy", "numba", "bdsim", "matplotlib", "pyqtgraph")
_OPTIONAL = {"PySide6-Essentials": "live"}


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at."""

    what: str
    state: str
    well: bool
    optional: bool = False
    mend: str = ""

    def __str__(self) -> str:
        mark = "ok " if self.well else "-- " if self.optional else "!! "
        return f"{mark}{self.what:22}{self.state}" + (f"\n   {'':22}{self.mend}" if self.mend and not self.well else "")


def look() -> list[Finding]:
    """Return what was found, in the order in which a user needs it."""
    return [_python(), *_packages(), _kernels(), _live(), _display()]


def _python() -> Finding:
    version = ".".join(map(str, sys.version_info[:3]))
    return Finding("Python", version, (3, 10) <= sys.version_info < (3, 14), mend="install Python 3.10 to 3.13")


def _packages() -> list[Finding]:
    findings = [Finding("cstormpy", cstormpy.__version__, True)]
    for name in _NEEDED:
        findings.append(_package(name, f"python -m pip install {name}", False))
    for name, extra in _OPTIONAL.items():
        findings.append(_package(name, f'python -m pip install "cstormpy[{extra}]"', True))
    return findings


def _package(name: str, mend: str, optional: bool) -> Finding:
    try:
        return Finding(name, metadata.version(name), True, optional)
    except metadata.PackageNotFoundError:
        return Finding(name, "is not installed", False, optional, mend)


def _kernels() -> Finding:
    """Compile and run one kernel, which shows that numba works and that its results can be kept."""
    try:
        cstormpy.library.pendulum().mass_matrix([0.0])
    except CstormError as error:
        return Finding("compiled kernels", str(error), False)
    except Exception as error:
        mend = "python -m pip install --force-reinstall numba llvmlite"
        return Finding("compiled kernels", f"fail: {type(error).__name__}: {error}", False, mend=mend)
    return Finding("compiled kernels", "work", True)


def _live() -> Finding:
    from cstormpy import live

    reason = live.available()
    return Finding("live windows", "can be shown" if reason is None else reason, reason is None, optional=True)


def _display() -> Finding:
    shown = bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY") or sys.platform in ("win32", "darwin"))
    return Finding("display", "there is one" if shown else "none: reports and figures come as files", shown, optional=True)
