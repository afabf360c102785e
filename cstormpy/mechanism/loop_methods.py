"""Closure, mobility and projection of a mechanism with loops, as its methods."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from numpy.typing import ArrayLike

from cstormpy.arrays import Array
from cstormpy.mechanism.methods import Methods

if TYPE_CHECKING:
    from cstormpy.loops.assembly import Mobility


class LoopMethods(Methods):
    """The methods of `Mechanism` about its loops: of one sample, (n,), or of a batch, (N, n), unless they say so."""

    def closure(self, q: ArrayLike) -> Array:
        """Return by how much the loops miss closure, (m,) or (N, m): zeros where they are closed.

        A row for each closed direction of each loop, in its order: what frame B is turned and moved in frame A, in the
        axes of A [rad, m].

        Examples
        --------
        >>> from cstormpy.mechanism import library
        >>> mech = library.four_bar()
        >>> mech.closure([0.0, 0.0, 0.0]).round(3)
        array([-0.3,  0. ])
        """
        from cstormpy.loops.closure import closure_at

        samples, found = closure_at(self._self, q=q)
        return samples.shaped(found.residual())

    def closure_jacobian(self, q: ArrayLike) -> Array:
        """Return A, (m, n) or (N, m, n): the loops stay closed where A q̇ = 0; where closed it is ∂closure/∂q."""
        from cstormpy.loops.closure import closure_at

        samples, found = closure_at(self._self, q=q)
        return samples.shaped(found.A)

    def closure_jacobian_rate(self, q: ArrayLike, qd: ArrayLike) -> Array:
        """Return the rate dA/dt, (m, n) or (N, m, n): the loops stay closed where A q̈ + dA/dt q̇ = 0."""
        from cstormpy.loops.closure import closure_at

        samples, found = closure_at(self._self, q=q, qd=qd)
        return samples.shaped(found.rate(samples.rows["qd"]))

    def mobility(self, q: ArrayLike) -> Mobility:
        """Return how freely the closed mechanism moves in one posture: `freedoms`, `rank`, `constraints`, `dependent`.

        Raises
        ------
        InvalidValue
            If the posture does not close the loops, with what is left.

        Examples
        --------
        >>> from cstormpy.mechanism import library
        >>> mech = library.four_bar()
        >>> q, _ = mech.project([1.0, 0.0, 1.5])
        >>> mech.mobility(q)
        Mobility(freedoms=1, rank=2, constraints=2, dependent=())
        """
        from cstormpy.loops.assembly import mobility

        return mobility(self._self, q)

    def project(self, q: ArrayLike, qd: ArrayLike | None = None, hold: Iterable[str] = ()) -> tuple[Array, Array]:
        """Return the state (q, qd) nearest to a given one that closes all loops, and keeps them closed.

        Nearest in the metric of the mass matrix. Of several assemblies it is the one near to the given posture.

        Parameters
        ----------
        q : array_like, (n,) or (N, n)
        qd : array_like, the same shape, optional
            At rest unless given.
        hold : iterable of str
            Joints that keep their position and rate.

        Raises
        ------
        InvalidValue
            If the loops cannot be closed from there, or the held rates contradict them: with the loop, what is left,
            and the rank of the constraints.

        Examples
        --------
        >>> from cstormpy.mechanism import library
        >>> mech = library.four_bar()
        >>> q, qd = mech.project([1.0, 0.0, 1.5], [2.0, 0.0, 0.0], hold=["crank"])
        >>> q.round(4), qd.round(4)
        (array([ 1.    , -0.6861,  1.5248]), array([ 2.    , -2.4015,  0.8123]))
        """
        from cstormpy.loops.projection import project

        return project(self._self, q, qd, hold)

    def assemblies(self, q: ArrayLike, hold: Iterable[str] = (), tries: int = 48) -> Array:
        """Return all postures (k, n) that close the loops with some joints held, as a four-bar's two for one crank.

        Those that are found from so many starts, the nearest to q first; positions that differ by whole turns are one.

        Parameters
        ----------
        q : array_like, (n,)
        hold : iterable of str
            Joints that keep their position: as many as leave no freedom.
        tries : int

        Raises
        ------
        InvalidValue
            If there is none, or there are infinitely many.

        Examples
        --------
        >>> from cstormpy.mechanism import library
        >>> library.four_bar().assemblies([1.0, 0.0, 1.5], hold=["crank"]).shape
        (2, 3)
        """
        from cstormpy.loops.projection import assemblies

        return assemblies(self._self, q, hold, tries)
