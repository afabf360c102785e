"""Pictures of the live window, on a screen that nobody sees; also for the README.

Run with a display, or without one as

    xvfb-run -a -s "-screen 0 1280x900x24" python tests/pictures/live.py FOLDER
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

import cstormpy as cs
from cstormpy.live import Knob, LawChoice, LiveFeed, LivePane

T = 8.0
RATE = 2.0
"""Times real time."""


def drive(feed: LiveFeed, act: str, **message: Any) -> dict[str, Any]:
    """Use the window as its user would."""
    feed._tell(say="drive", act=act, **message)
    return feed._replies.get(timeout=20.0)


def picture(feed: LiveFeed, path: Path) -> None:
    time.sleep(0.25)
    drive(feed, "picture", path=str(path))
    print(path)


def acrobot(folder: Path) -> None:
    """The acrobot swings up and balances, is pushed, and looked back at."""
    mech = cs.library.acrobot()
    sim = cs.Simulation(progress=False, graphics=False)
    bd = sim.blockdiagram()
    plant = bd.HYBRIDDYNAMICS(mech, q0=[-np.pi / 2 + 0.02, 0.0], name="plant")
    laws = ["energy", "pfl", "noncollocated", "lqr", "pd", "none"]
    controller = bd.CONTROLLER(mech, laws, law="energy", name="controller")
    bd.connect(plant[0:2], controller[0:2])
    bd.connect(controller[0], plant[0])
    out = sim.run(bd, T=T, watch=[plant[0], plant[1], controller[0], controller[1]], dt=0.002)
    q, qd, tau, mode = (np.asarray(y).reshape(len(out.t), -1) for y in out[".ywatch"])
    with LiveFeed("acrobot") as feed:
        panes = [
            LivePane("robot", "mechanism", mech.names, title="Acrobot", mechanism=mech, push="plant"),
            LivePane("angles", "scope", ["shoulder", "elbow"], title="Joint angles", unit="rad"),
            LivePane("torque", "scope", ["elbow"], title="Motor torque", unit="N m"),
            LivePane("mode", "scope", ["law.phase"], title="Phase of the law", options={"stairs": True}),
            LivePane("phase", "xy", ["shoulder [rad]", "rate [rad/s]"], title="Phase portrait of the shoulder"),
        ]
        knobs = [Knob("controller", "energy.ke", 20.0), Knob("controller", "energy.kp", 60.0)]
        knobs += [Knob("controller", "energy.kd", 8.0), Knob("controller", "limit", 25.0, 0.0, 50.0, unit="N m")]
        knobs += [Knob("plant", "elbow.damping", 0.1), Knob("plant", "forearm.mass", 1.0, unit="kg")]
        feed.show(panes, [*knobs, LawChoice("controller", laws, "energy")], end=T, pace=RATE)
        if not feed.wait_until_ready(60.0):
            raise SystemExit(f"no window: {feed.reason}")
        begin = time.monotonic()
        rows = np.column_stack([q, q, tau, mode, q[:, :1], qd[:, :1]])
        for k, (t, row) in enumerate(zip(out.t.tolist(), rows, strict=True)):
            feed.wait(begin + t / RATE - time.monotonic())
            feed.commands()
            feed.sample(t, row)
            if k == 1150:
                picture(feed, folder / "live_running.png")
                at = drive(feed, "link", control="robot picture", link=1)["at"]
                drive(feed, "press", control="robot picture", at=at)
                drive(feed, "move", control="robot picture", at=[at[0] + 70, at[1] - 40])
                picture(feed, folder / "live_push.png")
                drive(feed, "release", control="robot picture", at=[at[0] + 70, at[1] - 40])
                begin = time.monotonic() - t / RATE
        feed.state("paused", RATE)
        drive(feed, "click", control="cursors")
        drive(feed, "press", control="time", at=[500, 10])
        picture(feed, folder / "live_looking_back.png")
        drive(feed, "click", control="live")
        feed.finish(out[".message"])
        picture(feed, folder / "live_end.png")


def arm(folder: Path) -> None:
    """An arm of seven joints in space, with frames, beside its joints' angles."""
    mech = cs.library.arm7()
    with LiveFeed("arm") as feed:
        feed.show(
            [
                LivePane("arm", "mechanism", mech.names, title="Arm of seven joints", mechanism=mech, push="plant",
                         options={"frames": True, "trail": 2.0}),
                LivePane("angles", "scope", list(mech.names), title="Joint angles", unit="rad"),
            ],
            [],
            end=6.0,
            pace=None,
        )  # fmt: skip
        if not feed.wait_until_ready(60.0):
            raise SystemExit(f"no window: {feed.reason}")
        t = np.linspace(0.0, 5.0, 2501)
        q = 0.6 * np.sin(np.outer(t, 0.6 + 0.25 * np.arange(mech.n)) + 0.4 * np.arange(mech.n))
        feed.samples(t, np.hstack([q, q]))
        picture(feed, folder / "live_space.png")


def main() -> None:
    """Make all pictures."""
    os.environ["CSTORMPY_LIVE_TEST"] = "1"
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    folder.mkdir(parents=True, exist_ok=True)
    acrobot(folder)
    arm(folder)


if __name__ == "__main__":
    main()
