"""A ready diagram: the acrobot swings up and balances, seen on scopes.

`cstormpy.diagrams.names()` lists what is there, `options(name)` what can be chosen. Where there is a display, a window
shows the run: turn the gains, swap the law, pull at a link with the mouse. The report is written in either case.
"""

import numpy as np

import cstormpy as cs


def main(T=8.0, law="energy"):
    sim = cs.Simulation()
    print("ready diagrams:", ", ".join(cs.diagrams.names()))
    bd = cs.diagrams.load("acrobot").build(sim, controller=law)
    out = sim.run(bd, T=T, watch=["plant", "controller"])
    sim.report("acrobot.html")
    print(f"{out.status} at t = {out.t[-1]:g} s, q = {out.signal('plant.q')[-1].round(4)}")
    names = bd.blocknames["controller"].phase_names
    for when, who in out.events:
        print(f"  {when:7.4f} s: {who} changes its phase")
    phases = out.signal("controller.phase").astype(int)
    print("phases:", ", then ".join(names[k] for k in phases[np.flatnonzero(np.diff(phases, prepend=-1))]))
    cs.compare("acrobot", {"controller": [law]}, T=T).plot().savefig("acrobot.png")
    return out


if __name__ == "__main__":
    main()
