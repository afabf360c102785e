"""Equilibria and linear models of a mechanism, as its methods."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from numpy.typing import ArrayLike

from cstormpy.errors import InvalidValue
from cstormpy.mechanism.methods import Methods

if TYPE_CHECKING:
    from cstormpy.dynamics.checked_arguments import WrenchLike
    from cstormpy.sensitivity.linearisation import Equilibrium, Linearization


class LinearisationMethods(Methods):
    """The methods of `Mechanism` that linearise it, and find where it stays at rest."""

    def trim(
        self,
        guess: ArrayLike | None = None,
        tau: ArrayLike | Mapping[str, float] | None = None,
        hold: Iterable[str] = (),
        tolerance: float = 1e-9,
        wrench: WrenchLike = None,
    ) -> Equilibrium:
        """Return a posture near a guess in which the mechanism can stay at rest, and the motor torques that hold it.

        Joints without motor are in balance there. Which joints are active does not matter. Loops are closed, and carry
        loads; of more motors than freedoms, none of whose torques is given, the torques are the least.

        Parameters
        ----------
        guess : array_like, (n,), optional
            Where the search begins; zeros unless given. Of many equilibria one near to it is found.
        tau : float, array_like (n_a,), or mapping from joint names, optional
            Motor torques [N m or N] that are given; 0 for an equilibrium without any. Motors that are not mentioned,
            by default all, hold whatever comes.
        hold : iterable of str
            Joints that keep the position of the guess.
        tolerance : float
            The largest torque that may be left over in a joint [N m or N].
        wrench
            What acts on the links from outside, the same in each posture; see `Mechanism`.

        Returns
        -------
        Equilibrium
            The pair (q, tau), with `residual`, the torque that is left over.

        Raises
        ------
        InvalidValue
            If there is none near the guess, with what is left over in which joint.
        UnknownName, ShapeError, NonFinite, InvalidType
            Naming the argument.

        Examples
        --------
        >>> import numpy as np
        >>> from cstormpy.mechanism import library
        >>> q, tau = library.acrobot().trim([1.5, 0.1], tau=0)
        >>> (q / np.pi).round(12) + 0, tau.round(12) + 0
        (array([0.5, 0. ]), array([0.]))

        With the elbow bent by a right angle:

        >>> q, tau = library.acrobot().trim([1.5, np.pi / 2], hold=["elbow"])
        >>> q.round(4), tau.round(4)
        (array([0.9828, 1.5708]), array([-8.1624]))
        """
        from cstormpy.sensitivity.linearisation import trim

        if self._self.loops:
            from cstormpy.loops.linearisation import closed_trim

            return closed_trim(self._self, guess, tau, hold, tolerance, wrench)
        return trim(self._self, guess, tau, hold, tolerance, wrench)

    def linearize(
        self,
        q: ArrayLike,
        qd: ArrayLike | None = None,
        tau: ArrayLike | None = None,
        acc: ArrayLike | None = None,
        wrench: WrenchLike = None,
        independent: Iterable[str] | None = None,
    ) -> Linearization:
        """Return the exact linear model dx/dt = rate + A (x − x0) + B (v − v0) about a state x0 = (q, qd).

        Of a mechanism with loops, in a state that closes them, x holds independent joints and their rates, as many as
        there are freedoms, and `joints` says how all joints follow.

        Parameters
        ----------
        q, qd : array_like, (n,) or (N, n)
            Position and rate; at rest unless a rate is given.
        tau : array_like, (k,) or (N, k), optional
            Torques of the joints that are actuated and not active, in the order of q; zeros unless given.
        acc : array_like, (n_active,) or (N, n_active), optional
            Accelerations of the active joints; zeros unless given.
        wrench
            What acts on the links from outside; see `Mechanism`.
        independent : iterable of str, optional
            The joints whose coordinates x holds, of a mechanism with loops; unless given, those that determine the
            others best, motors before others.

        Returns
        -------
        Linearization
            With `A`, `B`, `rate`, and the names `states` and `inputs`; v is tau and then acc.

        Examples
        --------
        >>> import numpy as np
        >>> from cstormpy.mechanism import library
        >>> model = library.pendulum().linearize([-np.pi / 2])
        >>> model.A.round(3) + 0, model.B.ravel().round(3), model.inputs
        (array([[  0.   ,   1.   ], [-14.715,   0.   ]]), array([0., 3.]), ('joint1 torque',))
        """
        from cstormpy.sensitivity.linearisation import linearize

        if self._self.loops:
            from cstormpy.loops.linearisation import closed_linearize

            return closed_linearize(self._self, q, qd, tau, acc, wrench, independent)
        if independent is not None:
            raise InvalidValue("independent: is of mechanisms with loops; this one has none, and all its joints are")
        return linearize(self._self, q, qd, tau, acc, wrench)
