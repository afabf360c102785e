"""Kernels that machine code of a graph calls for mechanisms too large to be unrolled: one sample, as functions of C.

Each is ``f(N, W, T, given, found)``: N begins with the numbers of `HEAD`, behind which the structure stands; W is
scratch memory, T holds the numbers of the mechanism; ``given`` and ``found`` hold what is asked and answered, side by
side. It returns 0, or the status of the hybrid dynamics.
"""

import math

from numba import carray

from cstormpy.kernels.charts import answer_at
from cstormpy.kernels.closed_forms import closed_forms, form_base, row_of
from cstormpy.kernels.directional import along_direction
from cstormpy.kernels.entries import entry_of_c
from cstormpy.kernels.entries_kinematics import bring_moving, bring_still, put_inertial, put_jacobian, put_poses
from cstormpy.kernels.entries_regressor import bring_motion, put_link
from cstormpy.kernels.entries_sensitivity import answer_one
from cstormpy.kernels.hybrid import hybrid, node, place_base
from cstormpy.kernels.inertial_numbers import INERTIAL
from cstormpy.kernels.layout import C_DQ, C_DQD, C_DU, N_COORDINATE, N_COUNT, N_LINKS, T_NODES
from cstormpy.kernels.samples import bring_in_one, bring_loads_one, take_out_one
from cstormpy.kernels.steps import step

#: Integers before the structure: its size, those of T and W, the numbers of loads for each link, and a link.
HEAD = 5
H_STRUCTURE, H_NUMBERS, H_SCRATCH, H_LOADS, H_LINK = range(HEAD)
#: Share of a number by which it is moved for a central difference: the cube root of the rounding.
MOVED = 6e-6

_CALLED = "i8(CPointer(i8), CPointer(f8), CPointer(f8), CPointer(f8), CPointer(f8))"
_ALONG = "i8(CPointer(i8), CPointer(f8), CPointer(f8), CPointer(f8), CPointer(f8), CPointer(f8))"


@step(arrays=True)
def behind(N, W, T):
    """Return the head, the structure, the numbers of the mechanism and the scratch memory."""
    head = carray(N, HEAD)
    structure = carray(N, HEAD + head[H_STRUCTURE])[HEAD:]
    return head, structure, carray(T, head[H_NUMBERS]), carray(W, head[H_SCRATCH])


@step
def bring(T, N, W, g):
    """Bring in q, q̇ and u of all joints, the base at rest."""
    n = N[N_COUNT]
    bring_in_one(N, W, g[:n], g[n : 2 * n], g[2 * n : 3 * n])
    rest = (0.0, 0.0, 0.0)
    place_base(T, W, rest, rest, rest, 0.0)


@entry_of_c(_CALLED)
def motion_called(N, W, T, given, found):
    """Answer q, q̇, u and loads by y."""
    head, structure, numbers, scratch = behind(N, W, T)
    n, loads = structure[N_COUNT], head[H_LOADS] * structure[N_LINKS]
    g = carray(given, 3 * n + loads)
    bring(numbers, structure, scratch, g)
    loaded = bring_loads_one(structure, scratch, g[3 * n :], 0.0, g)
    status = hybrid(numbers, structure, scratch, loaded, False, 0.0)
    take_out_one(structure, scratch, carray(found, n))
    return status


@entry_of_c(_CALLED)
def sensitivity_called(N, W, T, given, found):
    """Answer the same by y, and its derivatives to q, q̇, u (3, n, n)."""
    head, structure, numbers, scratch = behind(N, W, T)
    n, loads = structure[N_COUNT], head[H_LOADS] * structure[N_LINKS]
    g, y = carray(given, 3 * n + loads), carray(found, n + 3 * n * n)
    bring_in_one(structure, scratch, g[:n], g[n : 2 * n], g[2 * n : 3 * n])
    loaded = bring_loads_one(structure, scratch, g[3 * n :], 0.0, g)
    return answer_one(numbers, structure, scratch, loaded, y[:n], y[n:].reshape((3, n, n)))


@step
def moved_by(T, dT):
    """Return by how much of dT the table T is moved for a difference; 0 where nothing in dT differs from zero."""
    least = math.inf
    for i in range(T_NODES, dT.size):
        if dT[i] != 0.0:
            least = min(least, MOVED * max(abs(T[i]), 1e-3) / abs(dT[i]))
    if least < math.inf:
        return least
    most = 0.0
    for i in range(T_NODES):
        most = max(most, abs(dT[i]))
    return 1.0 / most if most > 0.0 else 0.0


@step
def is_moved(changes):
    """Tell whether a change is not zero."""
    for k in range(changes.size):
        if changes[k] != 0.0:
            return True
    return False


@entry_of_c(_ALONG)
def motion_along_called(N, W, T, dT, given, found):
    """Answer what `motion_called` is given, and how all of that moves, by the rate of y; dT says how the table moves.

    The form in q, q̇ and u is exact, and so are differences by gravity and loads, in which y is affine; by other numbers
    of the table they are central.
    """
    head, structure, numbers, scratch = behind(N, W, T)
    size = head[H_NUMBERS]
    rates = carray(dT, size)
    n, loads = structure[N_COUNT], head[H_LOADS] * structure[N_LINKS]
    half = 3 * n + loads
    g, dy = carray(given, 2 * half), carray(found, n)
    wrench, dwrench = g[3 * n : half], g[half + 3 * n :]
    bring(numbers, structure, scratch, g)
    loaded = bring_loads_one(structure, scratch, wrench, 0.0, wrench)
    status = hybrid(numbers, structure, scratch, loaded, True, 0.0)
    if status != 0:
        return status
    rest = (0.0, 0.0, 0.0)
    form_base(numbers, structure, scratch, rest, rest, rest, rest, 0.0)
    closed_forms(numbers, structure, scratch, loaded, 0.0)
    for i in range(1, n + 1):
        k, _ = node(i)
        j, c = half + structure[k + N_COORDINATE], row_of(structure, i)
        scratch[c + C_DQ], scratch[c + C_DQD], scratch[c + C_DU] = g[j], g[n + j], g[2 * n + j]
    along_direction(numbers, structure, scratch, loaded, 0.0)
    take_out_one(structure, scratch, dy)
    first = row_of(structure, n + 1)
    moved = scratch[first : first + size]
    for what in range(2):  # the table, then the loads
        h = moved_by(numbers, rates) if what == 0 else 1.0 if is_moved(dwrench) else 0.0
        for side in range(2):
            signed = h if side == 0 else -h
            for i in range(size):
                moved[i] = numbers[i] + (signed * rates[i] if what == 0 else 0.0)
            if h > 0.0:
                bring(moved, structure, scratch, g)
                bring_loads_one(structure, scratch, wrench, signed if what == 1 else 0.0, dwrench)
                status = max(status, abs(hybrid(moved, structure, scratch, loaded, False, 0.0)))
                for i in range(1, n + 1):
                    k, _ = node(i)
                    dy[structure[k + N_COORDINATE]] += 0.5 / signed * scratch[answer_at(structure, i)]
    return status


@entry_of_c(_CALLED)
def inertial_called(N, W, T, given, found):
    """Answer q and q̇ by what `entries_kinematics.inertial_lanes` fills, side by side."""
    _head, structure, numbers, scratch = behind(N, W, T)
    n = structure[N_COUNT]
    g, y = carray(given, (2, 1, n)), carray(found, n * n + 9 * n + 12)
    for k in range(y.size):
        y[k] = 0.0
    mass, momenta = y[: n * n].reshape((1, n, n)), y[n * n : n * n + 6 * n].reshape((1, 6, n))
    rest = y[n * n + 6 * n :]
    bulk, energy, gradient = rest[:10].reshape((1, 10)), rest[10:12].reshape((1, 2)), rest[12:].reshape((1, 3, n))
    bring_moving(numbers, structure, scratch, g[0], g[1], rest[:0].reshape((0, 0)), 0, 0, 0.0)
    put_inertial(numbers, structure, scratch, mass, momenta, bulk, energy, gradient, 0, 0, 0.0)
    return 0


@entry_of_c(_CALLED)
def poses_called(N, W, T, given, found):
    """Answer q by the poses of all links."""
    _head, structure, numbers, scratch = behind(N, W, T)
    q = carray(given, (1, structure[N_COUNT]))
    bring_still(numbers, structure, scratch, q, q, 0, 0, 0.0)
    put_poses(numbers, structure, scratch, carray(found, (1, structure[N_LINKS], 16)), 0, 0, 0.0)
    return 0


@entry_of_c(_CALLED)
def jacobian_called(N, W, T, given, found):
    """Answer q and q̇ by the body Jacobian of a link, and its rate."""
    head, structure, numbers, scratch = behind(N, W, T)
    n = structure[N_COUNT]
    g, y = carray(given, (2, 1, n)), carray(found, 12 * n)
    for k in range(y.size):
        y[k] = 0.0
    out, rate = y[: 6 * n].reshape((1, 6, n)), y[6 * n :].reshape((1, 6, n))
    bring_still(numbers, structure, scratch, g[0], g[1], 0, 0, 0.0)
    put_jacobian(numbers, structure, scratch, head[H_LINK], out, rate, 0, 0, 0.0)
    return 0


@entry_of_c(_CALLED)
def regressor_called(N, W, T, given, found):
    """Answer q, q̇ and q̈ by what `entries_regressor.regressor_lanes` fills in the ten columns of a link."""
    head, structure, numbers, scratch = behind(N, W, T)
    n = structure[N_COUNT]
    g, y = carray(given, (3, 1, n)), carray(found, INERTIAL * n)
    for k in range(y.size):
        y[k] = 0.0
    bring_motion(numbers, structure, scratch, g[0], g[1], g[2], y[:0].reshape((0, 0)), 0, 0, 0.0)
    put_link(numbers, structure, scratch, head[H_LINK], y, INERTIAL, 0, 0, 0, 0.0)
    return 0
