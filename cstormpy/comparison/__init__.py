"""The same diagram run under each of several options, and the runs side by side: as a table and in one figure."""

import cstormpy.simulation  # noqa: F401  loads bdsim, and silences what its dependencies have Python warn of
from cstormpy.comparison.entries import Comparison, Entry
from cstormpy.comparison.robustness import Robustness
from cstormpy.comparison.runs import compare

__all__ = ["Comparison", "Entry", "Robustness", "compare"]
