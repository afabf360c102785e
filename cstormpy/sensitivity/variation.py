"""The variational system of the hybrid dynamics: how a small change of state and drive goes on along a motion.

====== ========== ==========================================================================================
letter shape      meaning
====== ========== ==========================================================================================
D      (3, n, n)  ∂y/∂q, ∂y/∂q̇, ∂y/∂u of the hybrid dynamics y = f(q, q̇, u)
X      (2n, m)    m changes of the state (q, q̇), side by side
U      (k, m)     the changes of the k signals that drive the mechanism
P      (n, m)     ∂y/∂p δp, the changes of y by those of numbers of the mechanism
====== ========== ==========================================================================================
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cstormpy.arrays import Array


def variation_rate(
    D: Array,
    active: NDArray[np.bool_],
    driven: NDArray[np.int64],
    X: Array,
    U: Array | None = None,
    P: Array | None = None,
) -> Array:
    """Return dX/dt, (2n, m), of changes X of the state while the drive changes by U and the mechanism by P.

    δq̈_i is δu_i of an active joint, whose acceleration is given, and otherwise δy_i of
    δy = ∂y/∂q δq + ∂y/∂q̇ δq̇ + ∂y/∂u δu + ∂y/∂p δp.

    Parameters
    ----------
    D : ndarray, (3, n, n)
        Derivatives of the hybrid dynamics, as `Mechanism.hybrid_sensitivity_evaluator` returns them.
    active : ndarray of bool, (n,)
        Which joints are active.
    driven : ndarray of int, (k,)
        The coordinate that each of the k signals drives: by torque, or by acceleration where it is active.
    X : ndarray, (2n, m)
        Changes of the state.
    U : ndarray, (k, m), optional
        Changes of the signals; none unless given.
    P : ndarray, (n, m), optional
        Changes of y that numbers of the mechanism make; none unless given.

    Examples
    --------
    A pendulum that hangs down swings: its angle's change is turned back.

    >>> from cstormpy.mechanism import library
    >>> mech = library.pendulum()
    >>> _, D = mech.hybrid_sensitivity_evaluator()(np.array([-np.pi / 2]), np.zeros(1), np.zeros(1))
    >>> variation_rate(D, mech.active_mask, np.array([0]), np.array([[1.0], [0.0]])).round(3)
    array([[  0.   ],
           [-14.715]])
    """
    n = len(active)
    answer = D[0] @ X[:n] + D[1] @ X[n:]
    acceleration = np.where(active[:, None], 0.0, answer if P is None else answer + P)
    if U is not None:
        acceleration = acceleration + np.where(active[:, None], np.eye(n), D[2])[:, driven] @ U
    return np.concatenate([X[n:], acceleration])
