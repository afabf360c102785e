"""Result of an identification by output error: numbers, how well they are known, and the simulated motions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cstormpy.identification.log import Log
from cstormpy.identification.output_error import Fit

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class OutputIdentification:
    """Result of `identify` with ``form="output"``.

    Attributes
    ----------
    mechanism : Mechanism
        The given one with what was found in it.
    names : tuple of str
        Of the numbers, as "forearm.mass", "forearm.com[0]".
    values : ndarray, (P,)
        Of a pose how far it was moved.
    standard_errors : ndarray, (P,)
        Infinite where the log does not determine a number, alone or together with others.
    covariance : ndarray, (P, P)
    undetermined : tuple of str
        The names of those.
    t, measured, fitted, residuals : ndarray, (N,), (N, m)
        Times of the rows, logged positions, with the rates behind them if these were logged, what the mechanism that
        was found does, and the difference.
    noise : ndarray, (m,)
        Standard deviation of the residuals.
    success : bool
    message : str
        Why the search ended.
    plain : bool
        As in `Identification`: False where links are held to what bodies can have.
    """

    def __init__(self, fit: Fit, log: Log) -> None:
        self.mechanism, self.names, self.values = fit.mechanism, fit.names, fit.values
        self.covariance, self.noise = fit.covariance, fit.noise
        self.standard_errors = np.where(fit.determined, np.sqrt(np.maximum(np.diag(fit.covariance), 0.0)), np.inf)
        self.undetermined = tuple(name for name, told in zip(fit.names, fit.determined, strict=True) if not told)
        self.t, self.measured, self.fitted, self.residuals = log.t, log.measured, fit.fitted, log.measured - fit.fitted
        self.success, self.message, self.plain = fit.success, fit.message, fit.plain

    def table(self) -> list[tuple[str, float, float]]:
        """Return the numbers with value and standard error."""
        return [
            (name, float(v), float(e)) for name, v, e in zip(self.names, self.values, self.standard_errors, strict=True)
        ]

    def plot(self) -> Figure:
        """Return a figure: positions as logged and as simulated, what is left over, and the numbers' errors."""
        from cstormpy.identification.figure import draw_output

        return draw_output(self)

    def __str__(self) -> str:
        from cstormpy.identification.result import rows_text

        lines = rows_text("parameter", self.table())
        if self.undetermined:
            lines.append(f"not determined by these data: {', '.join(self.undetermined)}")
        if not self.plain:
            lines.append("the plain fit is impossible; links are held to what bodies can have")
        return "\n".join([*lines, self.message])

    def __repr__(self) -> str:
        return f"<OutputIdentification of {len(self.names)} numbers, {self.message}>"
