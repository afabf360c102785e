"""Scripts in processes of their own."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import cstormpy as cs

ROOT = Path(cs.__file__).resolve().parent.parent


def in_a_process(script, **options):
    """Return how a script in a fresh process ended, run from elsewhere, without a display."""
    environment = {k: v for k, v in os.environ.items() if k not in ("DISPLAY", "WAYLAND_DISPLAY", "MPLBACKEND")}
    environment["PYTHONPATH"] = str(ROOT)
    arguments = options.pop("arguments", [])
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script), *arguments],
        env={**environment, **options.pop("environment", {})},
        capture_output=True,
        text=True,
        timeout=60,
        **options,
    )
