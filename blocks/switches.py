"""Switches between signals, comparisons and logic."""

from __future__ import annotations

from collections.abc import Sequence
from string import ascii_lowercase
from typing import Any

from bdsim.components import FunctionBlock

from cstormpy.arguments import one_of, whole_number
from cstormpy.arrays import real_number
from cstormpy.blocks import _bases as bases
from cstormpy.blocks import _ports as ports
from cstormpy.blocks._switching import Switching, Thresholded
from cstormpy.signals.limits import either, narrowest, nearest_level, room_in_level
from cstormpy.signals.logic import COMPARISONS, OPERATIONS, combined, compared, picked

_MOST_INPUTS = 26


class Switch(Thresholded, FunctionBlock):
    r"""One of two signals, by a third.

    - input on (float, ndarray): what passes while the control is at its threshold or above
    - input control (float): the signal that chooses
    - input off (float, ndarray): what passes else, of the same width
    - output y (float, ndarray): the one that passes

    .. math::

        y = \begin{cases} u_\mathrm{on} & c \ge c_0 \\ u_\mathrm{off} & c < c_0 \end{cases}

    A run locates where it switches as events, between which it passes one of both whatever the control does; with
    ``locate=False`` it does not. Tunable is ``threshold``.

    Examples::

        switch = bd.SWITCH(threshold=0.5)
        bd.connect(slow, switch.on)
        bd.connect(speed, switch.control)
        bd.connect(fast, switch.off)
    """

    nin = 3
    nout = 1
    inlabels = ("on", "control", "off")
    outlabels = ("y",)
    _compared = 1, ">="
    _widths = (None, 1, None), (None,)

    def __init__(self, threshold: float = 0.0, locate: bool = True, **blockargs: Any) -> None:
        """Create the block.

        :param threshold: of the control, from which on the first signal passes, defaults to 0.0
        :type threshold: float
        :param locate: whether a run locates where it switches, defaults to True
        :type locate: bool
        :param blockargs: :meth:`common block options <bdsim.Block.__init__>`
        :type blockargs: dict
        """
        border, look = real_number(threshold, "threshold"), ports.flag(locate, "locate")
        super().__init__(**ports.options(type(self), blockargs))
        self.threshold, self._locate = border, look
        self.add_param("threshold")

    def output(self, t: float, u: list[Any], x: Any) -> list[Any]:
        """Return the signal that passes."""
        on, off = ports.signal(self, 0, u[0]), ports.signal(self, 2, u[2])
        return [either(self.mode(u) > 0.5, on, off)]


class MultiSwitch(Switching, FunctionBlock):
    r"""One of several signals, by a number.

    - input select (float): the number of the signal that passes, counted from 0
    - input u0, u1, … (float, ndarray): the signals, of one width: two or more
    - output y (float, ndarray): the one that passes

    .. math::

        y = u_k, \quad k = \min(\max(\lfloor s \rceil, 0), n - 1)

    A run locates where another signal is chosen as events; with ``locate=False`` it does not.

    Examples::

        gear = bd.MULTISWITCH(4)
        bd.connect(lever, gear.select)
        bd.connect(first, gear.u0)
    """

    nin = 3
    nout = 1
    inlabels = ("select", "u0", "u1")
    outlabels = ("y",)

    def __init__(self, n: int = 2, locate: bool = True, **blockargs: Any) -> None:
        """Create the block.

        :param n: how many signals there are, defaults to 2
        :type n: int
        :param locate: whether a run locates where it switches, defaults to True
        :type locate: bool
        :param blockargs: :meth:`common block options <bdsim.Block.__init__>`
        :type blockargs: dict
        """
        count, look = whole_number(n, "n", 2, _MOST_INPUTS), ports.flag(locate, "locate")
        names = ["select", *(f"u{k}" for k in range(count))]
        super().__init__(**ports.options(type(self), blockargs, names))
        self._count, self._locate = count, look
        self._widths = (1, *(None,) * count), (None,)

    def output(self, t: float, u: list[Any], x: Any) -> list[Any]:
        """Return the signal that passes."""
        return [picked(self.mode(u), [ports.signal(self, k, u[k]) for k in range(1, self._count + 1)])]

    def _decided(self, u: Sequence[Any]) -> Any:
        return nearest_level(ports.vector(self, 0, u[0], 1)[0], 1.0)

    def _margin(self, t: float, u: Sequence[Any]) -> Any:
        return room_in_level(ports.vector(self, 0, u[0], 1)[0], 1.0, self._mode)


class Compare(Switching, FunctionBlock):
    r"""A comparison of a signal with another, or with a constant.

    - input u (float, ndarray): any signal
    - input v (float, ndarray): what it is compared with, where there is no threshold
    - output y (float, ndarray): 1 where it is so, 0 where it is not, element by element

    .. math::

        y = \begin{cases} 1 & u > v \\ 0 & \text{else} \end{cases} \qquad v = v_0 \text{ where a threshold is given}

    and likewise for the other comparisons. A run locates where the outcome changes as events, but for equality, which
    is of use for whole numbers; with ``locate=False`` it does not. Tunable is ``threshold``.

    Examples::

        fast = bd.COMPARE(">", 10.0)
        ahead = bd.COMPARE(">", None)  # two inputs, u and v
    """

    nin = 1
    nout = 1
    inlabels = ("u",)
    outlabels = ("y",)

    def __init__(self, op: str = ">", threshold: float | None = 0.0, locate: bool = True, **blockargs: Any) -> None:
        """Create the block.

        :param op: the comparison, one of: '>' [default], '>=', '<', '<=', '==', '!='
        :type op: str
        :param threshold: what the signal is compared with; None for a second input, defaults to 0.0
        :type threshold: float or None
        :param locate: whether a run locates where the outcome changes, defaults to True
        :type locate: bool
        :param blockargs: :meth:`common block options <bdsim.Block.__init__>`
        :type blockargs: dict
        """
        how = one_of(op, "op", COMPARISONS)
        border = None if threshold is None else real_number(threshold, "threshold")
        look = ports.flag(locate, "locate")
        names = ["u"] if border is not None else ["u", "v"]
        super().__init__(**ports.options(type(self), blockargs, names))
        self._how, self.threshold, self._locate = how, border, look and how not in ("==", "!=")
        if border is not None:
            self.add_param("threshold")

    def output(self, t: float, u: list[Any], x: Any) -> list[Any]:
        """Return the outcome."""
        return [self.mode(u)]

    def _sides(self, u: Sequence[Any]) -> tuple[Any, Any]:
        return ports.signal(self, 0, u[0]), ports.signal(self, 1, u[1]) if len(u) > 1 else self.threshold

    def _decided(self, u: Sequence[Any]) -> Any:
        return compared(*self._sides(u), self._how)

    def _size(self, u: Sequence[Any]) -> Any:
        return self._sides(u)[0]

    def _margin(self, t: float, u: Sequence[Any]) -> Any:
        left, right = self._sides(u)
        holds = left - right if self._how[0] == ">" else right - left
        return narrowest((2.0 * self._mode - 1.0) * holds)


class Logic(bases.Ported, FunctionBlock):
    r"""A logical operation on signals, in which a number other than zero is true.

    - input a, b, … (float, ndarray): the signals, of one width: one for "not", else two or more
    - output y (float, ndarray): 1 where it is true, 0 where it is false, element by element

    .. math::

        y = a \wedge b, \quad a \vee b, \quad \neg a, \quad \overline{a \wedge b}, \quad \overline{a \vee b}, \quad
        a \oplus b, \quad \overline{a \oplus b}

    What makes the signals, as COMPARE, has a run locate where they change.

    Examples::

        both = bd.LOGIC("and")
        bd.connect(high, both.a)
        bd.connect(fast, both.b)
    """

    nin = 2
    nout = 1
    inlabels = ("a", "b")
    outlabels = ("y",)

    def __init__(self, op: str = "and", n: int | None = None, **blockargs: Any) -> None:
        """Create the block.

        :param op: the operation, one of: 'and' [default], 'or', 'not', 'nand', 'nor', 'xor', 'xnor'
        :type op: str
        :param n: how many signals there are, 2 unless given, or 1 for "not"
        :type n: int, optional
        :param blockargs: :meth:`common block options <bdsim.Block.__init__>`
        :type blockargs: dict
        """
        how = one_of(op.lower() if isinstance(op, str) else op, "op", OPERATIONS)
        least, most = (1, 1) if how == "not" else (2, _MOST_INPUTS)
        count = least if n is None else whole_number(n, "n", least, most)
        super().__init__(**ports.options(type(self), blockargs, list(ascii_lowercase[:count]), self.outlabels))
        self._how = how

    def output(self, t: float, u: list[Any], x: Any) -> list[Any]:
        """Return the outcome."""
        return [combined([ports.signal(self, k, value) for k, value in enumerate(u)], self._how)]
