"""Blocks of inertia and energy: mass matrix, gravity's load, kinetic and potential energy."""

from __future__ import annotations

import os
from typing import Any

from bdsim.components import FunctionBlock

from cstormpy.arrays import Array
from cstormpy.blocks import _bases as bases
from cstormpy.blocks import _ports as ports
from cstormpy.mechanism import Mechanism, as_mechanism


class MassMatrix(bases.Mechanical, FunctionBlock):
    r"""Mass matrix of a mechanism.

    - input q (ndarray(n)): position of every joint [rad, m]
    - output M (ndarray(n, n)): mass matrix, armature included [kg m², kg m, kg]

    The matrix of the kinetic energy

    .. math::

        T = \tfrac{1}{2} \dot{q}^\top M(q) \dot{q}

    Tunable is ``mech``.

    :seealso: :class:`Energy` :class:`InverseDynamics`
    """

    nin = 1
    nout = 1
    inlabels = ("q",)
    outlabels = ("M",)

    def __init__(self, mech: Mechanism | str | os.PathLike[str], **blockargs: Any) -> None:
        """Create the block.

        :param mech: the mechanism, the name of a ready one, or the path of its file (JSON, URDF or MJCF)
        :type mech: str, path or Mechanism
        :param blockargs: :meth:`common block options <bdsim.Block.__init__>`
        :type blockargs: dict
        """
        mechanism = as_mechanism(mech)
        super().__init__(**ports.options(type(self), blockargs))
        n = self._n = mechanism.n
        self._widths, self._parts = ((n,), ((n, n),)), (mechanism.names,)
        self._begin(mechanism, "mech")

    def output(self, t: float, u: list[Any], x: Array | None) -> list[Any]:
        """Return the mass matrix."""
        q = ports.vector(self, 0, u[0], self._n, self._parts[0])
        return [self._ask(u, self._mech.mass_matrix, q)]


class GravityLoad(bases.Mechanical, FunctionBlock):
    r"""Torques that gravity alone asks of the joints of a mechanism at rest.

    - input q (ndarray(n)): position of every joint [rad, m]
    - output g (ndarray(n)): torque of every joint [N m, N], without springs

    .. math::

        g(q) = \frac{\partial V}{\partial q}

    where V is the potential energy of gravity. A controller that adds it holds the mechanism still. Tunable are
    ``gravity`` and ``mech``.

    :seealso: :class:`InverseDynamics`
    """

    nin = 1
    nout = 1
    inlabels = ("q",)
    outlabels = ("g",)

    def __init__(self, mech: Mechanism | str | os.PathLike[str], **blockargs: Any) -> None:
        """Create the block.

        :param mech: the mechanism, the name of a ready one, or the path of its file (JSON, URDF or MJCF)
        :type mech: str, path or Mechanism
        :param blockargs: :meth:`common block options <bdsim.Block.__init__>`
        :type blockargs: dict
        """
        mechanism = as_mechanism(mech)
        super().__init__(**ports.options(type(self), blockargs))
        n = self._n = mechanism.n
        self._widths, self._parts = ((n,), (n,)), (mechanism.names,)
        self._begin(mechanism, "gravity", "mech")

    def output(self, t: float, u: list[Any], x: Array | None) -> list[Any]:
        """Return the torques."""
        q = ports.vector(self, 0, u[0], self._n, self._parts[0])
        return [self._ask(u, self._mech.gravity_load, q)]


class Energy(bases.Mechanical, FunctionBlock):
    r"""Kinetic, potential and total energy of a mechanism.

    - input q (ndarray(n)): position of every joint [rad, m]
    - input qd (ndarray(n)): rate of every joint [rad/s, m/s]
    - output kinetic (float): kinetic energy, armature included [J]
    - output potential (float): potential energy of gravity and springs [J]
    - output total (float): their sum [J]

    .. math::

        T = \tfrac{1}{2} \dot{q}^\top M(q) \dot{q}, \qquad
        V = -m \, a_g^\top c(q) + \sum_i \tfrac{1}{2} k_i (q_i - q_{i,\mathrm{rest}})^2, \qquad E = T + V

    with the acceleration of gravity :math:`a_g`, the mass m and its centre c in the base's frame: V of gravity is
    zero where the centre is level with the base's origin. Tunable are ``gravity`` and ``mech``.

    :seealso: :class:`MassMatrix`
    """

    nin = 2
    nout = 3
    inlabels = ("q", "qd")
    outlabels = ("kinetic", "potential", "total")

    def __init__(self, mech: Mechanism | str | os.PathLike[str], **blockargs: Any) -> None:
        """Create the block.

        :param mech: the mechanism, the name of a ready one, or the path of its file (JSON, URDF or MJCF)
        :type mech: str, path or Mechanism
        :param blockargs: :meth:`common block options <bdsim.Block.__init__>`
        :type blockargs: dict
        """
        mechanism = as_mechanism(mech)
        super().__init__(**ports.options(type(self), blockargs))
        n = self._n = mechanism.n
        self._widths, self._parts = ((n, n), (1, 1, 1)), (mechanism.names, mechanism.names)
        self._begin(mechanism, "gravity", "mech")

    def output(self, t: float, u: list[Any], x: Array | None) -> list[Any]:
        """Return the energies."""
        q, qd = self._motion(u)
        kinetic, potential = self._ask(u, self._mech.energy, q, qd)
        return [kinetic, potential, kinetic + potential]
