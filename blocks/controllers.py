"""The controller: several control laws, of which one commands the motors."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from bdsim.components import FunctionBlock
from numpy.typing import ArrayLike, NDArray

from cstormpy.arrays import Array
from cstormpy.blocks import _ports as ports
from cstormpy.blocks._law_selection import LawSelection
from cstormpy.control import Law
from cstormpy.control.blend import LawSet, laws_by_name
from cstormpy.errors import InvalidValue, UnknownAttribute
from cstormpy.graph.arrays import Symbols
from cstormpy.mechanism import Mechanism, as_mechanism


class Controller(LawSelection, FunctionBlock):
    r"""A set of control laws, one of them active, swapped without a jump in torque.

    - input q (ndarray(n)): position of every joint [rad, m]
    - input qd (ndarray(n)): rate of every joint [rad/s, m/s]
    - input select (float): number of the law to be active, counted from 0 in the order given, rounded; with
      ``select=True``
    - input q_ref, qd_ref, qdd_ref (ndarray(n)): what laws that track are to follow, three ports, of all joints or of
      those that follow; with ``reference=True``
    - output tau (ndarray): motor torques of the joints that are actuated and not active [N m, N]
    - output law (float): number of the active law, counted from 0 in the order given; ``law_names`` holds their names
    - output phase (float): number of the phase that the active law is in, among ``phase_names``, those of all laws

    The torque is that of the active law, :math:`\tau = \tau_k(t, q, \dot{q})`. A swap to another law, at
    :math:`t_s`, continues the state; the step in torque :math:`d = \tau_{old} - \tau_{new}(t_s)` is given back over
    the duration :math:`b` of the blend,

    .. math::

        \tau(t) = \tau_{new}(t) + \left(1 - \frac{t - t_s}{b}\right) d, \qquad t_s \le t \le t_s + b,

    so that beyond the new law's own motion it moves at most :math:`|d|/b`. The limit holds for what comes out.

    The law is swapped

    - before a run by ``controller.select("pd")``, which then begins with it;
    - during a run by the same from whatever the runner calls between steps, as in
      ``sim.run(bd, at={3.0: lambda: controller.select("pd")})``, from an event's function or a panel. The swap
      happens at that very point of the run. Called from another thread it happens at the end of the step that is
      under way. Do not call it from a function that is evaluated within a step, as that of a FUNCTION block:
      use the port;
    - by a signal at the port ``select``. Where it passes the middle between two numbers is located as an event.

    Each run begins with the same law. Laws with several phases (a swing-up that hands over to a balancing law) change
    them where their margin crosses zero, which is located as an event too, so never inside of a step; the torque may
    jump there, since a late catch is a miss.

    The gains of the laws are tunable as "<law>.<gain>", as in ``controller.set_param("energy.ke", 3.0)``, beside
    "blend" and "active_law". Scopes and reports show the outputs ``law`` and ``phase`` by their names.

    Examples::

        controller = bd.CONTROLLER("acrobot", ["energy", "lqr", "pd"], law="energy")
        bd.connect(plant[0:2], controller[0:2])
        bd.connect(controller.tau, plant.tau)

    :seealso: :class:`HybridDynamics`, :func:`cstormpy.control.law`
    """

    nin = 2
    nout = 3
    inlabels = ("q", "qd")
    outlabels = ("tau", "law", "phase")

    def __init__(
        self,
        mech: Mechanism | str | os.PathLike[str],
        laws: Mapping[str, Law | str] | Sequence[str] | Law | str = "energy",
        law: str | None = None,
        blend: float = 0.05,
        limit: ArrayLike | None = None,
        reference: bool = False,
        select: bool = False,
        **blockargs: Any,
    ) -> None:
        """Create the controller.

        :param mech: the mechanism, the name of a ready one, or the path of its file (JSON, URDF or MJCF)
        :type mech: str, path or Mechanism
        :param laws: laws by name, names of laws that cstormpy knows, or a single law, defaults to "energy"
        :type laws: dict, list, str or Law
        :param law: name of the law that begins; the first one unless given
        :type law: str, optional
        :param blend: time over which a swap gives back its step in torque [s], defaults to 5e-2
        :type blend: float
        :param limit: largest torque of each motor; the laws' own limits unless given
        :type limit: float or array_like, optional
        :param reference: whether there are ports for what is to be followed, defaults to False
        :type reference: bool
        :param select: whether a signal chooses the law, defaults to False
        :type select: bool
        :param blockargs: :meth:`common block options <bdsim.Block.__init__>`
        :type blockargs: dict
        """
        mechanism = as_mechanism(mech)
        commanded = _commanded(mechanism)
        named = LawSet(laws_by_name(laws, mechanism), law, blend, limit)
        by_signal, follows = ports.flag(select, "select"), ports.flag(reference, "reference")
        names = ["q", "qd", *["select"] * by_signal, *["q_ref", "qd_ref", "qdd_ref"] * follows]
        super().__init__(**ports.options(type(self), blockargs, names))
        self._mech, self._commanded = mechanism, commanded
        self._choose_among(named, by_signal)
        self._targets = range(2 + by_signal, 5 + by_signal) if follows else None
        self._followed = _followed(named)
        for name, each in named.laws.items():
            for gain in each.gains:
                self.add_param(f"{name}.{gain}", _tune)
        self.add_param("blend", _tune)
        self.add_param("active_law", _tune)

    @property
    def mech(self) -> Mechanism:
        """The mechanism."""
        return self._mech

    @property
    def blend(self) -> float:
        """Time over which a swap gives back its step in torque [s]."""
        return self._laws.blend

    @blend.setter
    def blend(self, duration: float) -> None:
        self._laws.blend = duration

    @property
    def law_names(self) -> tuple[str, ...]:
        """Names of the laws: what the values 0, 1, … of the output ``law`` mean."""
        return self._laws.names

    @property
    def phase_names(self) -> tuple[str, ...]:
        """Names of the phases of all laws: what the values of the output ``phase`` mean; "" where a law has but one."""
        return self._laws.phase_names

    @property
    def value_names(self) -> tuple[tuple[str, ...] | None, ...]:
        """Names of the values 0, 1, … at the output ports, as scopes show them; None at ports of quantities."""
        return None, self.law_names, tuple(name or "\u2013" for name in self.phase_names)

    def __getattr__(self, name: str) -> Any:
        """Return the port or the method `select`, the value of a parameter as "energy.ke", or what bdsim knows."""
        if name == "select" and not self.__dict__.get("_by_signal"):
            return self._select
        if name == "mode" and "mode" not in (*self._port_names()[0], *self._port_names()[1]):
            raise UnknownAttribute(
                f"block {ports.label(self)!r}: has no output 'mode'; its outputs 'law' and 'phase' hold the number of "
                "the active law and that of its phase, and law_names and phase_names what they mean"
            )
        if "." in name and name in self.__dict__.get("_parameters", ()):
            law, _, gain = name.partition(".")
            return self._laws.laws[law].gains[gain]
        return super().__getattr__(name)

    @property
    def inwidths(self) -> tuple[int | None, ...]:
        """Widths of the input ports; None where a reference may be of all joints or of those that follow."""
        n = self._mech.n
        target = n if len(self._followed) in (0, n) else None
        return (n, n, *[1] * self._by_signal, *[target] * (3 if self._targets else 0))

    @property
    def outwidths(self) -> tuple[int, int, int]:
        """Widths of the output ports."""
        return int(np.count_nonzero(self._mech.actuated_mask & ~self._mech.active_mask)), 1, 1

    def output(self, t: float, u: list[Any], x: Any) -> list[Any]:
        """Return the torque, the number of the active law, and that of its phase."""
        q, qd, target = self._state(u)
        if not isinstance(q, Symbols):  # what is written down holds between two events
            self._attend(t, q, qd, target, u)
        tau = self._laws(t, q, qd, target)
        return [tau[self._commanded], 1.0 * self._laws.active, 1.0 * self._laws.phase]

    def _state(self, u: Sequence[Any]) -> tuple[Array, Array, tuple[Array, Array, Array] | None]:
        n, names = self._mech.n, self._mech.names
        q, qd = ports.vector(self, 0, u[0], n, names), ports.vector(self, 1, u[1], n, names)
        if self._targets is None:
            return q, qd, None
        if self._followed and np.size(u[self._targets[0]]) == len(self._followed):
            n, names = len(self._followed), self._followed
        q_r, qd_r, qdd_r = (ports.vector(self, port, u[port], n, names) for port in self._targets)
        return q, qd, (q_r, qd_r, qdd_r)


def _followed(laws: LawSet) -> tuple[str, ...]:
    """Return the joints that follow a reference, if all laws that track name the same."""
    named = {tuple(law.followed) for law in laws.laws.values() if hasattr(law, "followed")}
    return named.pop() if len(named) == 1 else ()


def _commanded(mech: Mechanism) -> slice | NDArray[np.int64]:
    """Return which of the motors are commanded by torque: those whose joints are not active."""
    among = np.flatnonzero(~mech.active_mask[mech.actuated_mask])
    if not len(among):
        raise InvalidValue(
            "mechanism: no joint is driven by torque, so that there is nothing to command; "
            "every motor's joint is active or there is no motor"
        )
    return slice(None) if len(among) == len(mech.actuated) else among


def _tune(block: Controller, name: str, value: Any) -> None:
    """Change a parameter: that of the block itself, or a gain of one of its laws."""
    if name in ("blend", "active_law"):
        setattr(block, name, value)
        return
    law, _, gain = name.partition(".")
    block.laws.laws[law].set_gain(gain, value)
