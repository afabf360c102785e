"""The folder in which compiled code is kept: ``CSTORMPY_CACHE_DIR``, or the place that the system has for such."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from cstormpy.private_folder import NotPrivateError
from cstormpy.reporting import notice_once


def root() -> Path:
    """Return the folder, which need not exist yet; OSError if this user has no such place."""
    try:
        given = os.environ.get("CSTORMPY_CACHE_DIR")
        if given:
            return Path(given).expanduser().absolute()
        if sys.platform == "win32":
            base = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
        elif sys.platform == "darwin":
            base = Path.home() / "Library" / "Caches"
        else:
            base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    except RuntimeError as error:  # a user without a home
        raise OSError(str(error)) from error
    return base / "cstormpy"


def say_not_kept(error: OSError) -> None:
    """Say once that what is compiled cannot be kept, and what helps."""
    reason = str(error)
    if isinstance(error, NotPrivateError):
        reason += "; or set CSTORMPY_CACHE_DIR to a folder of your own"
    elif error.errno is not None:
        reason = f"{root()}: {error.strerror or error}; set CSTORMPY_CACHE_DIR to a folder that can be written"
    notice_once(f"compiling kernels (some seconds each) that cannot be kept: {reason}")
