"""Samples into the scratch memory and answers out of it."""

from cstormpy.kernels.charts import answer_at, given_at
from cstormpy.kernels.closed_forms import closed_forms, form_base
from cstormpy.kernels.hybrid import hybrid, node, place_base
from cstormpy.kernels.lanes import lane, load, memory_floats, memory_integers, store, width, with_lane
from cstormpy.kernels.layout import (
    DEAD,
    DEAD_LOADS,
    N_ACTIVE,
    N_COORDINATE,
    N_COUNT,
    N_LINKS,
    QD,
    ROW,
    UNLOADED,
    WRENCH,
    WRENCHES,
    Q,
    U,
)
from cstormpy.kernels.loads import dead_place, wrench_place
from cstormpy.kernels.steps import step
from cstormpy.kernels.vector import add, cross

#: What one-sample kernels return for arrays of another size than the mechanism's.
WRONG_SIZE = -2


@step(arrays=True)
def arrays_behind(handle):
    """Return T, N and W of a `cstormpy.dynamics.batches.Handle`."""
    T = memory_floats(handle[0], handle[1])
    N = memory_integers(handle[2], handle[3])
    return T, N, memory_floats(handle[4], handle[5])


@step
def gather(A, first, last, j, like):
    """Return column j of the rows of A from `first` on, as many as a number holds; past `last` repeat it."""
    x = like
    for k in range(width(like)):
        x = with_lane(x, k, A[min(first + k, last), j])
    return x


@step
def gather3(A, first, last, j, like):
    return gather(A, first, last, j, like), gather(A, first, last, j + 1, like), gather(A, first, last, j + 2, like)


@step
def bring_in(N, W, q, qd, u, first, last, like):
    for i in range(1, N[N_COUNT] + 1):
        k, _ = node(i)
        j = N[k + N_COORDINATE]
        store(W, i * ROW + Q, gather(q, first, last, j, like))
        store(W, i * ROW + QD, gather(qd, first, last, j, like))
        store(W, i * ROW + U, gather(u, first, last, j, like))


@step
def bring_base(T, W, base, first, last, like):
    """Place the base at rest, or moving as rows (V0, dV0) of `base` say."""
    rest = (like, like, like)
    if base.shape[0] == 0:
        place_base(T, W, rest, rest, rest, like)
    else:
        row, end = min(first, base.shape[0] - 1), min(last, base.shape[0] - 1)
        omega, v = gather3(base, row, end, 0, like), gather3(base, row, end, 3, like)
        # the acceleration of a point of the base is the derivative of its velocity in moving axes plus ω × v
        acc = add(gather3(base, row, end, 9, like), cross(omega, v))
        place_base(T, W, omega, gather3(base, row, end, 6, like), acc, like)


@step
def kind_of_loads(N, rows, numbers):
    """Return the kind of loads that so many rows of so many numbers hold."""
    if rows == 0 or numbers == 0:
        return UNLOADED
    return WRENCHES if numbers == WRENCH * N[N_LINKS] else DEAD_LOADS


@step
def bring_loads(N, W, wrench, first, last, like):
    """Copy the loads (flattened rows, one for all samples or one each) into the scratch memory; return their kind.

    A row holds for each link its wrench, or its wrench and its dead load.
    """
    loaded = kind_of_loads(N, wrench.shape[0], wrench.shape[1])
    if loaded == UNLOADED:
        return loaded
    pitch = WRENCH if loaded == WRENCHES else WRENCH + DEAD
    row, end = min(first, wrench.shape[0] - 1), min(last, wrench.shape[0] - 1)
    for link in range(N[N_LINKS]):
        for j in range(WRENCH):
            store(W, wrench_place(N) + WRENCH * link + j, gather(wrench, row, end, pitch * link + j, like))
        if loaded == DEAD_LOADS:
            for j in range(DEAD):
                at = pitch * link + WRENCH + j
                store(W, dead_place(N) + DEAD * link + j, gather(wrench, row, end, at, like))
    return loaded


@step
def bring_loads_one(N, W, wrench, share, change):
    """Copy the loads of one sample, numbers to which a share of a change is added where the share is not zero."""
    loaded = kind_of_loads(N, 1, wrench.size)
    if loaded == UNLOADED:
        return loaded
    pitch = WRENCH if loaded == WRENCHES else WRENCH + DEAD
    for link in range(N[N_LINKS]):
        for j in range(pitch):
            to = wrench_place(N) + WRENCH * link + j
            if j >= WRENCH:
                to = dead_place(N) + DEAD * link + j - WRENCH
            value = wrench[pitch * link + j]
            W[to] = value + share * change[pitch * link + j] if share != 0.0 else value
    return loaded


@step
def take_out(N, W, out, first, last, like):
    for i in range(1, N[N_COUNT] + 1):
        k, _ = node(i)
        y = load(W, answer_at(N, i), like)
        for s in range(min(width(like), last + 1 - first)):
            out[first + s, N[k + N_COORDINATE]] = lane(y, s)


@step
def take_out_one(N, W, y):
    """Write y and, behind it where there is room, the accelerations and torques of all joints."""
    n = N[N_COUNT]
    all_three = y.size == 3 * n
    for i in range(1, n + 1):
        k, _ = node(i)
        j = N[k + N_COORDINATE]
        y[j] = W[answer_at(N, i)]
        if all_three:
            given, found = (n, 2 * n) if N[k + N_ACTIVE] else (2 * n, n)
            y[given + j], y[found + j] = W[given_at(N, i)], y[j]


@step
def bring_in_one(N, W, q, qd, u):
    for i in range(1, N[N_COUNT] + 1):
        k, _ = node(i)
        j = N[k + N_COORDINATE]
        W[i * ROW + Q], W[i * ROW + QD], W[i * ROW + U] = q[j], qd[j], u[j]


@step
def bring_form_base(T, N, W, base, first, last, like):
    """Fill the base's row of the closed forms as `bring_base` does that of the dynamics."""
    rest = (like, like, like)
    if base.shape[0] == 0:
        form_base(T, N, W, rest, rest, rest, rest, like)
    else:
        row, end = min(first, base.shape[0] - 1), min(last, base.shape[0] - 1)
        omega, v = gather3(base, row, end, 0, like), gather3(base, row, end, 3, like)
        alpha, a = gather3(base, row, end, 6, like), gather3(base, row, end, 9, like)
        form_base(T, N, W, omega, v, alpha, a, like)


@step
def answer_with_forms(T, N, W, q, qd, u, wrench, base, y, every, first, last, like):
    """Run hybrid dynamics, see there for ``every``, and closed forms; return the former's status, and kind of loads."""
    bring_in(N, W, q, qd, u, first, last, like)
    bring_base(T, W, base, first, last, like)
    loaded = bring_loads(N, W, wrench, first, last, like)
    status = hybrid(T, N, W, loaded, every, like)
    take_out(N, W, y, first, last, like)
    bring_form_base(T, N, W, base, first, last, like)
    closed_forms(T, N, W, loaded, like)
    return status, loaded
