"""A mechanism to be looked at: a slider for each coordinate, and no motion but what they make.

::

    elbow ----+
    shoulder -+--> q --> view
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from numpy.typing import ArrayLike

from cstormpy.arrays import real_array
from cstormpy.mechanism import Mechanism

if TYPE_CHECKING:
    from cstormpy.linkage.joints import OneDofJoint
    from cstormpy.simulation import Simulation


def build(sim: Simulation, mech: Mechanism, q: ArrayLike | None = None, title: str | None = None) -> Any:
    """Return the diagram.

    Parameters
    ----------
    sim : Simulation
    mech : Mechanism
        With at least one joint that moves.
    q : array_like, (n,), optional
        Where the sliders stand; at 0, or the end of the joint's range that is nearest to it, unless given.
    title : str, optional
        What stands above the picture.
    """
    bd = sim.blockdiagram(name="posture")
    ranges = [_range(freedom) for freedom in mech.freedoms]
    start = [min(max(0.0, low), high) for low, high in ranges] if q is None else real_array(q, "q", (mech.n,))
    gathered = bd.MUX(mech.n, name="q")
    for k, (name, ends) in enumerate(zip(mech.names, ranges, strict=True)):
        slider = bd.CONSTANT(float(start[k]), name=name)
        slider.ranges = {"value": ends}
        bd.connect(slider, gathered[k])
    view = bd.MECHANISMVIEW(mech, trail=False, title=title, name="view")
    view.options["fit"] = True  # nothing moves by itself: no room is kept for it
    bd.connect(gathered, view)
    return bd


def _range(freedom: OneDofJoint) -> tuple[float, float]:
    """Return the range of a coordinate: its limits, half a turn where an angle has none, a metre where a slide has."""
    usual = math.pi if freedom.turns else 1.0
    low, high = (freedom.limits.position if freedom.limits is not None else None) or (-math.inf, math.inf)
    if math.isinf(low):
        low = -usual if high > -usual else high - 2.0 * usual
    if math.isinf(high):
        high = usual if low < usual else low + 2.0 * usual
    return low, high
