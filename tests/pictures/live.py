"""Pictures of the live window, on a screen that nobody sees; one of them stands in the README.

Run with a display, or without one as

    xvfb-run -a -s "-screen 0 1280x900x24" python tests/pictures/live.py [FOLDER]
"""

from __future__ import annotations

import os
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np

import cstormpy as cs
from cstormpy.live import LiveFeed, LivePane
from cstormpy.simulation import simulation

PATIENCE = 60.0


def drive(feed: LiveFeed, act: str, **message: Any) -> dict[str, Any]:
    """Use the window as its user would."""
    feed._tell(say="drive", act=act, **message)
    answer = feed._replies.get(timeout=PATIENCE)
    if "error" in answer:
        raise SystemExit(f"{act}: {answer['error']}")
    return answer


def picture(feed: LiveFeed, path: Path) -> None:
    """Keep what the window shows."""
    time.sleep(0.3)
    drive(feed, "picture", path=str(path))
    print(path)


def wait_until(feed: LiveFeed, t: float) -> None:
    """Wait until the window shows a time of the run."""
    while feed.alive and drive(feed, "look")["newest"] < t:
        time.sleep(0.02)


def acrobot(folder: Path) -> None:
    """The ready acrobot, as `cstorm demo acrobot` shows it: swings up, is looked at, is pushed, and balances again."""
    feeds: list[LiveFeed] = []

    class Kept(LiveFeed):
        def __init__(self, *args: Any, **options: Any) -> None:
            super().__init__(*args, **options)
            feeds.append(self)

    simulation.LiveFeed = Kept  # type: ignore[misc]
    sim = cs.Simulation(progress=False, graphics=False)
    bd = cs.diagrams.load("acrobot").build(sim)
    run = threading.Thread(target=lambda: sim.run(bd, T=8.0, live=True, pace=0.5))
    run.start()
    while not feeds:
        time.sleep(0.01)
    feed = feeds[0]
    if not feed.wait_until_ready(PATIENCE):
        raise SystemExit(f"no window: {feed.reason}")
    wait_until(feed, 2.1)
    drive(feed, "click", control="run")
    picture(feed, folder / "acrobot_live.png")
    drive(feed, "click", control="cursors")
    drive(feed, "press", control="time", at=[200, 10])
    picture(feed, folder / "live_looking_back.png")
    drive(feed, "click", control="cursors")
    drive(feed, "choose", control="pace", value="real time")
    drive(feed, "click", control="run")
    wait_until(feed, 4.5)
    x, y = drive(feed, "link", control="view picture", link=1)["at"]
    drive(feed, "press", control="view picture", at=[x, y])
    drive(feed, "move", control="view picture", at=[x + 60, y])
    time.sleep(0.3)
    picture(feed, folder / "live_push.png")
    drive(feed, "release", control="view picture", at=[x + 60, y])
    drive(feed, "click", control="stop")
    run.join(PATIENCE)


def arm(folder: Path) -> None:
    """An arm of seven joints in space, with frames, beside its joints' angles."""
    mech = cs.library.arm7()
    t = np.linspace(0.0, 5.0, 2501)
    q = 0.6 * np.sin(np.outer(t, 0.6 + 0.25 * np.arange(mech.n)) + 0.4 * np.arange(mech.n))
    look = {"frames": True, "trail": 2.0}
    with LiveFeed("arm") as feed:
        view = LivePane("arm", "mechanism", mech.names, title="Arm of seven joints", mechanism=mech, options=look)
        feed.show([view, LivePane("q", "scope", mech.names, title="Joint angles", unit="rad")], end=6.0, pace=None)
        feed.wait_until_ready(PATIENCE)
        feed.samples(t, np.hstack([q, q]))
        picture(feed, folder / "live_space.png")


def main() -> None:
    """Make all pictures."""
    os.environ["CSTORMPY_LIVE_TEST"] = "1"
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent
    folder.mkdir(parents=True, exist_ok=True)
    acrobot(folder)
    arm(folder)


if __name__ == "__main__":
    main()
