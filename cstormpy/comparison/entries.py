"""One run of a comparison, and all of them: what was measured, as rows, as a table and in one figure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from cstormpy.arrays import Array
from cstormpy.comparison.table import distinct, robustness_table, short, table
from cstormpy.diagrams import Goal
from cstormpy.errors import unknown_name
from cstormpy.reporting import called

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from cstormpy.comparison.robustness import Score
    from cstormpy.simulation.results import Result


@dataclass(eq=False, repr=False)
class Entry:
    """One run of a comparison.

    Attributes
    ----------
    options : dict
        The options that vary, and what they were.
    status, message : str
        How the run ended; see `cstormpy.simulation.results.Result`.
    result : Result or None
        The run, None where it failed before its first sample.
    t : ndarray (N,)
        Times of the samples.
    q, qd : ndarray (N, n)
        Position and rate of every joint.
    tau : ndarray (N, n_a)
        Torques of the motors.
    joints, motors : tuple of str
        Names of the joints, and of those with a motor.
    units, motor_units : tuple of str
        Units of the coordinates, and of the torques: "N" of a slide's.
    goal : Goal or None
        What was to be reached; `turn` (n,) is what brings a joint to the same place again, 2π or 0, and rotation
        vectors, each of which has another one of the same turn, begin at `balls`.
    error : ndarray (N,) or None
        Norm of (q − goal, q̇), turns taken by the shorter way; None without a goal.
    settled : bool or None
        Whether the error is below the goal's tolerance at the end of the run.
    time_to_balance : float or None
        Time from which on it stays there [s].
    effort : float or None
        ∫ ½ ‖τ‖² dt.
    peak_torque : float or None
        Largest torque of a motor.
    final_error : float or None
        The error at the end of the run.
    robustness : Score or None
        What the controller endures, where that was asked for.
    """

    options: dict[str, Any]
    status: str = "failed"
    message: str = ""
    result: Result | None = None
    joints: tuple[str, ...] = ()
    motors: tuple[str, ...] = ()
    units: tuple[str, ...] = ()
    motor_units: tuple[str, ...] = ()
    goal: Goal | None = None
    turn: Array = field(default_factory=lambda: np.empty(0))
    balls: tuple[int, ...] = ()
    t: Array = field(default_factory=lambda: np.empty(0))
    q: Array = field(default_factory=lambda: np.empty((0, 0)))
    qd: Array = field(default_factory=lambda: np.empty((0, 0)))
    tau: Array = field(default_factory=lambda: np.empty((0, 0)))
    error: Array | None = None
    settled: bool | None = None
    time_to_balance: float | None = None
    effort: float | None = None
    peak_torque: float | None = None
    final_error: float | None = None
    robustness: Score | None = None
    #: What options are called whose values other runs of the comparison have in as few characters.
    called: dict[str, str] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """The name of the run in tables and legends."""
        return ", ".join(self._said(name, value) for name, value in self.options.items()) or "run"

    def _said(self, name: str, value: Any) -> str:
        text = self.called.get(name) or short(value)
        return value if isinstance(value, str) else text if called(value) else f"{name}={text}"

    def __repr__(self) -> str:
        """Return the run as a table of one row."""
        return table([self.row], [*self.options], {*self.motor_units})

    @property
    def row(self) -> dict[str, Any]:
        """Options, outcome and measures by name."""
        measures = ("settled", "time_to_balance", "effort", "peak_torque", "final_error", "status", "message")
        robust = {} if self.robustness is None else {"robustness": self.robustness.row}
        return {**self.options, **{name: getattr(self, name) for name in measures}, **robust}


@dataclass(eq=False)
class Comparison:
    """Runs of one diagram under several options; prints as a table.

    Attributes
    ----------
    entries : list of Entry
        The runs, in the order of the options.
    """

    entries: list[Entry]

    def __post_init__(self) -> None:
        for name in self.entries[0].options if self.entries else ():
            for entry, text in zip(self.entries, distinct([e.options[name] for e in self.entries]), strict=True):
                entry.called[name] = text

    @property
    def rows(self) -> list[dict[str, Any]]:
        """A dict for each run: the options that vary, settled, time_to_balance, effort, peak_torque, final_error."""
        return [entry.row for entry in self.entries]

    @property
    def results(self) -> list[Result | None]:
        """The result of each run; None where it failed before its first sample."""
        return [entry.result for entry in self.entries]

    def __getitem__(self, label: str) -> Entry:
        """Return a run by its label, as in ``comparison["energy"]``."""
        for entry in self.entries:
            if entry.label == label:
                return entry
        raise unknown_name("run", label, [entry.label for entry in self.entries])

    def __str__(self) -> str:
        options = list(self.entries[0].options) if self.entries else []
        text = table(self.rows, options, {unit for entry in self.entries for unit in entry.motor_units})
        if not any(entry.robustness is not None for entry in self.entries):
            return text
        return f"{text}\n\n{robustness_table(self.entries, options)}"

    __repr__ = __str__

    def plot(self) -> Figure:
        """Draw all runs into one figure: the joints' positions, and the torques of the motors.

        Returns
        -------
        matplotlib.figure.Figure
            One of pyplot's: ``matplotlib.pyplot.show()`` shows it, its ``savefig`` writes it to a file.
        """
        from cstormpy.comparison.figure import draw

        return draw(self.entries)

    def plot_robustness(self) -> Figure:
        """Draw what each controller endures: the shares of the score, and which runs of each quantity succeeded.

        Raises
        ------
        InvalidValue
            If the comparison was made without ``robustness=True``.
        """
        from cstormpy.comparison.figure import draw_robustness

        return draw_robustness(self.entries)
