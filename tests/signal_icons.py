"""Drawings in the icons of blocks of signals: curves over crossed axes, curves alone, or a formula."""

from __future__ import annotations

import numpy as np

__all__ = ["CROSSED", "CURVES", "FORMULAS"]

Curve = list[tuple[float, float]]
_STAIRS: Curve = [(1, 1.5), (3, 1.5), (3, 3.8), (5, 3.8), (5, 6.2), (7, 6.2), (7, 8.5), (9, 8.5)]
_T = np.linspace(0.0, 1.0, 200)

#: Curves in front of axes that cross in the middle, by the block.
CROSSED: dict[str, list[Curve]] = {
    "saturation": [[(0.9, 1.8), (3, 1.8), (7, 8.2), (9.1, 8.2)]],
    "deadzone": [[(0.9, 1.4), (3.4, 5), (6.6, 5), (9.1, 8.6)]],
    "quantizer": [_STAIRS],
    "backlash": [[(0.9, 1.6), (4.6, 1.6), (8, 8.4), (9.1, 8.4)], [(2, 1.6), (5.4, 8.4), (8, 8.4)]],
    "lookup1d": [[(0.9, 2), (3, 3), (5.5, 7.5), (7.5, 6.5), (9.1, 8.6)]],
    "relay": [[(0.9, 2), (7, 2), (7, 8), (9.1, 8)], [(3, 2), (3, 8), (9.1, 8)]],
}
#: Curves by themselves.
CURVES: dict[str, list[Curve]] = {
    "switch": [[(0.8, 8.2), (3.4, 8.2)], [(0.8, 1.8), (3.4, 1.8)], [(3.4, 8.2), (7, 5), (9.2, 5)]],
    "multiswitch": [
        [(0.8, 8.6), (3.4, 8.6)], [(0.8, 5), (3.4, 5)], [(0.8, 1.4), (3.4, 1.4)], [(3.4, 5), (7, 5), (9.2, 5)],
    ],
    "samplehold": [[(1, 1.5), (1, 3.5), (4, 3.5), (4, 8), (6.5, 8), (6.5, 5.5), (9, 5.5)]],
    "pulse": [[(0.8, 2), (2.4, 2), (2.4, 8), (4, 8), (4, 2), (6.6, 2), (6.6, 8), (8.2, 8), (8.2, 2), (9.4, 2)]],
    "chirp": [list(zip(0.6 + 8.8 * _T, 5.0 + 3.6 * np.sin(3.0 + 34.0 * _T**2), strict=True))],
    "multisine": [
        list(zip(0.6 + 8.8 * _T, 5.0 + 1.9 * (np.sin(9.0 * _T) + 0.6 * np.sin(29.0 * _T + 1.0)), strict=True))
    ],
    "noise": [
        list(zip(np.linspace(0.6, 9.4, 24), 5.0 + 3.8 * np.sin(1.7 * np.arange(24) ** 2 + 0.4), strict=True))
    ],
    "delay": [[(0.8, 2), (3, 2), (3, 5)], [(3, 6.2), (3, 8), (5, 8)], [(5, 2), (7, 2), (7, 8), (9.2, 8)]],
    "ratelimiter": [[(0.8, 1.8), (3, 1.8), (7, 8.2), (9.2, 8.2)], [(3, 4.4), (3, 6.4)]],
    "lookup2d": [
        [(1.4, 1.4), (8.6, 1.4), (8.6, 8.6), (1.4, 8.6), (1.4, 1.4)], [(5, 1.4), (5, 8.6)], [(1.4, 5), (8.6, 5)],
    ],
    "edge": [[(1, 1.8), (5, 1.8), (5, 8.2), (9, 8.2)], [(3.8, 4.4), (5, 6.4), (6.2, 4.4)]],
}  # fmt: skip
#: Formulas and their sizes.
FORMULAS: dict[str, tuple[str, float]] = {
    "compare": (r"u > v", 70),
    "logic": (r"a \wedge b", 70),
    "statespace": (r"\genfrac{}{}{0}{0}{\dot{x}\!=\!Ax\!+\!Bu}{y\!=\!Cx\!+\!Du}", 31),
    "transferfn": (r"\frac{N(s)}{D(s)}", 74),
    "discretess": (r"\genfrac{}{}{0}{0}{x^{\mathrm{+}}\!\!=\!Ax\!+\!Bu}{y\!=\!Cx\!+\!Du}", 29),
    "discretetf": (r"\frac{N(z)}{D(z)}", 74),
    "pidcontroller": (r"\mathrm{PID}", 74),
    "discretepid": (r"\mathrm{PID}(z)", 54),
    "kalman": (r"\hat{x},\,P", 66),
    "ekf": (r"\mathrm{EKF}", 70),
    "mpc": (r"\mathrm{MPC}", 70),
    "counter": (r"n\!+\!1", 74),
}
