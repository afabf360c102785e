"""Length of the first step of an adaptive method, for both engines alike.

Hairer, Norsett, Wanner, Solving Ordinary Differential Equations I, II.4, p. 169: from the size of the state, that of
its rate, and that of the change of the rate over a short step, each as a share of what is tolerated.
"""

import math

#: The shortest step that is tried: the smallest normal number.
_SHORTEST = 2.0**-1022


def trial_length(d0, d1, longest):
    """Return over which length the rate is to change, of the sizes of the state and of its rate."""
    h0 = 1e-6 if d0 < 1e-5 or d1 < 1e-5 else 0.01 * d0 / d1
    return max(min(h0, longest), _SHORTEST)


def first_length(d1, d2, h0, exponent, longest):
    """Return the first length, of the sizes of the rate and of its change; exponent = -1/(order + 1)."""
    if d1 <= 1e-15 and d2 <= 1e-15:
        h1 = max(1e-6, h0 * 1e-3)
    else:
        h1 = (0.01 / max(d1, d2)) ** -exponent
    return min(min(100.0 * h0, h1), longest) if math.isfinite(h1) else h0
