"""An animation of a run, and a picture of its report in a headless Chromium, for the README.

python tests/pictures/report.py tests/pictures
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import cstormpy as cs
from cstormpy import diagrams

SIZE = "1200,1240"
PATIENCE = 4000
"""Milliseconds that the page has to draw itself."""


def main(folder: Path) -> None:
    """Run the acrobot, animate it, and take a picture of the first screen of its report."""
    browser = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if browser is None:
        sys.exit("needs Chromium: apt install chromium")
    sim = cs.Simulation(live=False, graphics=False, progress=False)
    sim.run(diagrams.load("acrobot").build(sim), T=8)
    print(sim.animate(folder / "acrobot.gif", size=(800, 450)))
    target = folder / "acrobot_report.png"
    with tempfile.TemporaryDirectory() as work:
        page = sim.report(Path(work) / "acrobot.html")
        options = ["--headless", "--no-sandbox", "--hide-scrollbars", f"--timeout={PATIENCE}", f"--window-size={SIZE}"]
        command = [browser, *options, f"--screenshot={target.resolve()}", page.resolve().as_uri()]
        subprocess.run(command, check=True, capture_output=True, timeout=120)
    print(target)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent)
