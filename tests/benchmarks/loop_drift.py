"""How far a four-bar's pin drifts open on a plain bdsim diagram, and in our own runner, which projects.

``python tests/benchmarks/loop_drift.py`` prints the table of docs/loops.md.
"""

from __future__ import annotations

from contextlib import redirect_stdout
from io import StringIO

import bdsim
import numpy as np

import cstormpy as cs
from cstormpy.blocks.dynamics import HybridDynamics

TOLERANCES = (1e-3, 1e-6, 1e-9)
"""Relative ones of the solver; the absolute one is a thousandth of each. The first is what bdsim takes unless told."""


T = 10.0
"""Of each run [s]; bdsim's steps are at most a hundredth of it."""


def four_bar():
    """Return the mechanism and a closed state: the crank turns at 6 rad/s, without a motor's torque."""
    mech = cs.library.four_bar()
    q0, _ = mech.project([1.0, 0.0, 1.5], hold=["crank"])
    return mech, *mech.project(q0, [6.0, 0.0, 0.0], hold=["crank"])


def drift(plain, rtol, times):
    """Return the largest gap of the pin [m] until each of the times [s]; NaN where the run is ended as it opens."""
    mech, q0, qd0 = four_bar()
    quiet = {"graphics": False, "progress": False}
    sim = bdsim.BDSim(sysargs=False, verbose=False, quiet=True, banner=False, **quiet) if plain else None
    sim = sim or cs.Simulation(**quiet)
    bd = sim.blockdiagram()
    plant = HybridDynamics(mech, q0=q0, qd0=qd0, bd=bd, name="plant")
    bd.connect(bd.CONSTANT(0.0), plant.tau)
    with redirect_stdout(StringIO()):  # which outputs are not connected
        bd.compile()
    options = {"rtol": rtol, "atol": 1e-3 * rtol}
    out = sim.run(bd, T=T, **({"solver_args": options} if plain else options))
    if getattr(out, "status", "finished") != "finished":
        return [np.nan for _ in times]
    gap = np.linalg.norm(mech.closure(out.x[:, : mech.n]), axis=1)
    return [gap[out.t <= time + 1e-9].max() for time in times]


def main(times=(1.0, T), tolerances=TOLERANCES):
    """Print the table, and return its numbers: by tolerance those of bdsim, then ours."""
    found = {}
    heads = [f"{where}, {time:g} s" for where in ("plain bdsim", "cs.Simulation") for time in times]
    print("| rtol |", " | ".join(heads), "|")
    for rtol in tolerances:
        found[rtol] = [*drift(True, rtol, times), *drift(False, rtol, times)]
        print(
            f"| {rtol:.0e} |",
            " | ".join("ended" if np.isnan(gap) else f"{gap:.0e}" for gap in found[rtol]),
            "|",
            flush=True,
        )
    return found


if __name__ == "__main__":
    main()
