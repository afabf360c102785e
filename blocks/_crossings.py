"""Zero crossings of a block's own quantities: located by the runner as events, and acted upon between steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from bdsim.components import Block


def can_locate(block: Block, simstate: Any) -> bool:
    """Tell whether this run locates zero crossings: it has states to integrate, and a runner that looks for them."""
    return hasattr(simstate, "declare_crossing_event") and getattr(block._bd, "nstates", 1) > 0


class Crossing:
    """A quantity that wants something done where it crosses zero, falling unless said.

    It is the detector and its handler in one, so that a block with several of them knows which one fired.

    Parameters
    ----------
    block : Block
        Whose quantity it is.
    simstate : bdsim.components.SimulationState
        Of the run, where the crossing is declared.
    quantity : callable
        quantity(t, u) -> float, a method of the block, of the time and its input signals. It says what it looks at in
        plain Python and NumPy, as `output` does: a compiled run is made of that very method.
    action : callable, optional
        action(t): what is to be done at the crossing; without one a step of the integration ends there, which is all.
    signals : bool
        Whether the quantity needs the signals of the diagram; evaluating them costs as much as a stage of a step.
    direction : {-1, 0, 1}
        Which crossings count: those that fall, all, or those that rise.
    asked : callable, optional
        asked() -> bool, a method of the block or a plain function: whether somebody has asked for something between two
        steps that the quantity does not show.
    decided : bool
        Whether the action decides the side, so that the quantity counts at once behind it; else it is looked at later.
    of_states : bool
        Whether the quantity is a function of the block's continuous states too: quantity(t, u, x).
    reset : callable, optional
        reset(t, x): writes new values into the continuous states of the block.
    tangents : callable, optional
        tangents(t, x, dx) -> (n, k): derivatives of the states behind the reset, from the states before it and theirs,
        (n, k). Without it there is no derivative of a run across the reset.
    by_inputs : bool
        Whether the reset is of the inputs before it alone: tangents(t, x, dx, du) has theirs too, (size, k) each.
    first : bool
        Whether it acts where a run begins with the quantity below zero; else it waits for a crossing.
    which : int, optional
        Which of several quantities that the method has: quantity(..., which=which).
    told : str, or callable
        What is said to happen there, or a function that returns it once it has happened.
    """

    terminal = True

    def __init__(
        self,
        block: Block,
        simstate: Any,
        quantity: Callable[..., float],
        action: Callable[[float], None] | None = None,
        signals: bool = True,
        direction: float = -1.0,
        asked: Callable[[], bool] | None = None,
        decided: bool = False,
        reset: Callable[[float, Any], None] | None = None,
        of_states: bool = False,
        first: bool = False,
        tangents: Callable[..., Any] | None = None,
        told: Callable[[], str] | str = "",
        which: int | None = None,
        by_inputs: bool = False,
        settles: bool = False,
    ) -> None:
        self.block, self.direction, self.of_states = block, direction, of_states
        self.quantity, self.asked, self.decided, self.first = quantity, asked, decided, first
        self._simstate, self._action, self._signals, self._reset = simstate, action, signals, reset
        self.tangents, self.by_inputs, self._told, self.settles = tangents, by_inputs, told, settles
        self.named = {} if which is None else {"which": which}
        simstate.declare_crossing_event(self, self)

    @property
    def name(self) -> Any:
        """The name of the block."""
        return self.block.name

    @property
    def type(self) -> Any:
        """The type of the block."""
        return self.block.type

    def __call__(self, t: float, y: Any) -> float:
        """Return the quantity at a point of the run."""
        if self._signals:
            self._simstate.ensure_event_probe_evaluated(self.block.bd, t, y)
        own = []
        if self.of_states:
            part = next(part for block, part in self._simstate.diagram.continuous if block is self.block)
            own = [np.asarray(y[part])]
        return float(self.quantity(t, self.block.inport_values, *own, **self.named))

    def event_handler(self, t: float, y: Any, state_map: Any = None, simstate: Any = None) -> None:
        """Act, between two steps."""
        if self._action is not None:
            self._action(t)
        if self._reset is not None and state_map is not None:
            self.reset(t, state_map[self.block])

    @property
    def acts(self) -> bool:
        """True where something is done at the crossing, beside ending a step there."""
        return self._action is not None or self._reset is not None

    @property
    def only_bends(self) -> bool:
        """True where a step of the integration ends at the crossing, and that is all, whatever the signals are."""
        return not (self.acts or self.decided or self.first or self.asked) and isinstance(self._told, str)

    def told(self) -> str:
        """Return what has happened at the crossing."""
        return self._told if isinstance(self._told, str) else self._told()

    def reset(self, t: float, x: Any) -> None:
        """Write new values into the continuous states of the block."""
        if self._reset is not None:
            self._reset(t, x)
