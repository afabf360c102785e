"""Availability of live windows, found out without loading Qt."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Mapping
from importlib import metadata
from importlib.util import find_spec

#: The libraries that Qt's wheels take from the system, and the packages of Debian that have them.
DEBIAN_PACKAGES: Mapping[str, str] = {
    "libGL.so.1": "libgl1",
    "libEGL.so.1": "libegl1",
    "libglib-2.0.so.0": "libglib2.0-0",
    "libxkbcommon.so.0": "libxkbcommon0",
    "libfontconfig.so.1": "libfontconfig1",
    "libdbus-1.so.3": "libdbus-1-3",
}
X11_PACKAGES: Mapping[str, str] = {
    "libxcb-cursor.so.0": "libxcb-cursor0",
    "libxkbcommon-x11.so.0": "libxkbcommon-x11-0",
    "libxcb-icccm.so.4": "libxcb-icccm4",
    "libxcb-keysyms.so.1": "libxcb-keysyms1",
    "libxcb-shape.so.0": "libxcb-shape0",
}
_INSTALL = "pip install 'cstormpy[live]'"
_LIBRARY_CACHE = "/etc/ld.so.cache"
_PATIENCE = 0.3
"""Seconds that a display may take to answer."""
_OFF_SCREEN = ("offscreen", "minimal", "vnc", "linuxfb", "eglfs")


def available(environment: Mapping[str, str] | None = None) -> str | None:
    """Return None where live windows can be shown, or else in one line why not, and what mends it.

    It takes some milliseconds and loads nothing. What it cannot see, the window's own process finds out.
    """
    env = os.environ if environment is None else environment
    return _without_python() or _without_packages() or _without_display(env) or _without_libraries(env)


def is_off() -> bool:
    """Return whether the environment says that no windows are to be shown unless they are asked for."""
    return os.environ.get("CSTORMPY_LIVE", "").lower() in ("off", "0", "false", "no")


def is_on_screen(environment: Mapping[str, str] | None = None) -> bool:
    """Return whether windows appear on a screen that somebody may look at."""
    env = os.environ if environment is None else environment
    return env.get("QT_QPA_PLATFORM", "").split(":")[0] not in _OFF_SCREEN


def _without_python() -> str | None:
    if sys.executable and os.path.isfile(sys.executable):
        return None
    return "no Python interpreter to start the window with (sys.executable is empty)"


def _without_packages() -> str | None:
    for name in ("PySide6", "pyqtgraph"):
        if find_spec(name) is None:
            return f"{name} is not installed; {_INSTALL}"
    if sys.version_info < (3, 12):
        for name in ("PySide6-Essentials", "PySide6"):
            try:
                if metadata.version(name) == "6.12.0":
                    return f"{name} 6.12.0 crashes on Python before 3.12; {_INSTALL} installs another"
            except metadata.PackageNotFoundError:
                continue
    return None


def _without_display(env: Mapping[str, str]) -> str | None:
    if sys.platform in ("win32", "darwin") or not is_on_screen(env):
        return None
    if env.get("WAYLAND_DISPLAY"):
        return None
    display = env.get("DISPLAY")
    if not display:
        return (
            "there is no display (DISPLAY is not set); log in with a desktop or ssh -X, or run under a virtual one: "
            "apt install xvfb xauth, then xvfb-run python …"
        )
    if not _answers(display):
        return f"the display {display!r} does not answer; set DISPLAY to one that does, or run under xvfb-run"
    return None


def _answers(display: str) -> bool:
    """Return whether an X server listens; True where that cannot be told."""
    host, _, number = display.rpartition(":")
    digits = number.split(".")[0]
    if not digits.isdigit():
        return False
    if host in ("", "unix"):
        path = f"/tmp/.X11-unix/X{digits}"
        return any(_connects(socket.AF_UNIX, address) for address in (path, f"\0{path}"))
    if "/" in host:
        return True
    return _connects(socket.AF_INET, (host, 6000 + int(digits)))


def _connects(family: int, address: str | tuple[str, int]) -> bool:
    try:
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.settimeout(_PATIENCE)
            probe.connect(address)
    except (OSError, OverflowError):
        return False
    return True


def _without_libraries(env: Mapping[str, str]) -> str | None:
    if not sys.platform.startswith("linux"):
        return None
    wanted = dict(DEBIAN_PACKAGES)
    if is_on_screen(env) and not env.get("WAYLAND_DISPLAY"):
        wanted.update(X11_PACKAGES)
    try:
        with open(_LIBRARY_CACHE, "rb") as file:
            known = file.read()
    except OSError:
        return None  # a system that finds its libraries otherwise
    folders = [os.path.join(sys.prefix, "lib"), *env.get("LD_LIBRARY_PATH", "").split(os.pathsep)]
    missing = [
        library
        for library in wanted
        if library.encode() + b"\0" not in known
        and not any(folder and os.path.exists(os.path.join(folder, library)) for folder in folders)
    ]
    if not missing:
        return None
    return f"Qt needs {', '.join(missing)}; apt install {' '.join(wanted[library] for library in missing)}"


def missing_library(message: str) -> str | None:
    """Return what mends a message of the loader or of Qt that names a library, or None if it names none.

    >>> missing_library("libEGL.so.1: cannot open shared object file: No such file or directory")
    'Qt needs libEGL.so.1; apt install libegl1'
    """
    packages = {**DEBIAN_PACKAGES, **X11_PACKAGES}
    for library, package in packages.items():
        if library in message or f"{package} is needed" in message:
            return f"Qt needs {library}; apt install {package}"
    return None
