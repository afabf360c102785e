"""Looks at the machine: what is there, what is missing, and the line that mends it."""

from __future__ import annotations

import os
import shlex
import sys
import tempfile
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from importlib import metadata

#: The lowest versions that do; a test compares them with what the package asks for.
NEEDED = {
    "numpy": "2.0",
    "scipy": "1.13",
    "numba": "0.63",
    "bdsim": "1.4",
    "matplotlib": "3.9",
}
#: What the extra "live" brings, for windows; a process that simulates loads neither.
LIVE = (
    "PySide6-Essentials>=6.12" if sys.version_info >= (3, 15) else "PySide6-Essentials>=6.8,!=6.12.0",
    "pyqtgraph>=0.13.7",
)


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at.

    Attributes
    ----------
    what, state
        Its name, and how it is.
    well
        Whether that is as it should be.
    optional
        Whether all that matters works without it.
    mend
        What to do about it: a command as a rule.
    """

    what: str
    state: str
    well: bool
    optional: bool = False
    mend: str = ""

    def __str__(self) -> str:
        mark = "ok" if self.well else "--" if self.optional else "!!"
        line = f"{mark} {self.what:20}{self.state}"
        return line + (f"\n   {'':20}{self.mend}" if self.mend and not self.well else "")


def version() -> str:
    """Return the version of the package, whether it is installed or runs from its sources."""
    return str(sys.modules[__package__].__version__)


def look() -> list[Finding]:
    """Return what was found, in the order in which a user needs it; a look that fails is a finding too."""
    findings = [_seen("Python", _python), Finding("cstormpy", version(), True)]
    findings += [_seen(name, lambda name=name: _package(name, NEEDED[name])) for name in NEEDED]  # type: ignore[misc]
    findings.append(_seen("kernels", _kernels))
    findings.append(_seen("kept kernels", _kept))
    findings.append(_seen("Qt", _qt, optional=True))
    findings.append(_seen("live windows", _live, optional=True))
    return findings


def _seen(what: str, look: Callable[[], Finding], optional: bool = False) -> Finding:
    try:
        return look()
    except Exception as error:
        text = " ".join(f"{type(error).__name__}: {error}".split())
        return Finding(what, f"fails: {text}", False, optional, _reinstall("cstormpy"))


def _pip(*arguments: str) -> str:
    """Return the line that has pip do something for this very Python."""
    return shlex.join([sys.executable or "python3", "-m", "pip", "install", *arguments])


def _reinstall(*packages: str) -> str:
    return _pip("--force-reinstall", *packages)


def _python() -> Finding:
    number = ".".join(map(str, sys.version_info[:3]))
    mend = "install Python 3.10 to 3.15, from https://www.python.org/downloads"
    return Finding("Python", f"{number}, {sys.executable}", (3, 10) <= sys.version_info < (3, 16), mend=mend)


def _package(name: str, lowest: str) -> Finding:
    mend = _pip("--upgrade", f"{name}>={lowest}")
    try:
        found = metadata.version(name)
    except metadata.PackageNotFoundError:
        return Finding(name, "is not installed", False, mend=mend)
    if _numbers(found) < _numbers(lowest):
        return Finding(name, f"{found} is too old", False, mend=mend)
    with warnings.catch_warnings():  # of its own code, where it is compiled at its first import
        warnings.filterwarnings("ignore", message=".*invalid escape sequence")
        __import__(name)
    return Finding(name, found, True)


def _numbers(version: str) -> tuple[int, ...]:
    """Return the numbers of a version, up to what is no number.

    >>> _numbers("1.13.0rc1"), _numbers("0.68.1.post1")
    ((1, 13, 0), (0, 68, 1))
    """
    numbers = []
    for part in version.split("."):
        digits = part[: len(part) - len(part.lstrip("0123456789"))]
        if not digits:
            break
        numbers.append(int(digits))
        if digits != part:
            break
    return tuple(numbers)


def _kernels() -> Finding:
    """Compile and run one, which shows that numba works here."""
    from cstormpy.mechanism import library

    mass = library.pendulum().mass_matrix([0.0])
    well = abs(float(mass[0, 0]) - 1.0 / 3.0) < 1e-12
    return Finding(
        "kernels", "compile and run" if well else f"compute {mass}", well, mend=_reinstall("numba", "llvmlite")
    )


def _kept() -> Finding:
    """Look whether compiled kernels can be kept on disk, where nobody else can put others in their place."""
    from cstormpy.kernels.compiling import checked_folder
    from cstormpy.private_folder import NotPrivateError

    try:
        folder = checked_folder()
        there = next(place for place in (folder, *folder.parents) if place.exists())  # the rest is made with a kernel
        with tempfile.TemporaryFile(dir=there):
            pass
    except NotPrivateError as error:
        mend = "export CSTORMPY_CACHE_DIR=FOLDER, of one of your own"
        return Finding("kept kernels", f"no: {error}", False, True, mend)
    except OSError as error:
        mend = "export CSTORMPY_CACHE_DIR=FOLDER, of one that can be written"
        return Finding("kept kernels", f"no: {error.strerror or error}", False, True, mend)
    return Finding("kept kernels", f"in {folder}", True)


def _qt() -> Finding:
    for name in ("PySide6-Essentials", "PySide6"):
        try:
            return Finding("Qt", f"{name} {metadata.version(name)}", True, True)
        except metadata.PackageNotFoundError:
            continue
    return Finding("Qt", "PySide6-Essentials is not installed", False, True, _pip(*LIVE))


def _live() -> Finding:
    from cstormpy import live

    reason = live.available()
    if reason is None:
        screen = os.environ.get("WAYLAND_DISPLAY") or os.environ.get("DISPLAY")
        return Finding("live windows", "can be shown" + (f" on display {screen}" if screen else ""), True, True)
    state, _, mend = reason.partition("; ")
    if mend.startswith("pip install"):
        mend = _pip(*LIVE)
    return Finding("live windows", f"no: {state}", False, True, mend)
