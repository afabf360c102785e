"""Compiled entries: a motion integrated by fixed steps, with its derivatives to whatever drives it."""

from cstormpy.kernels.charts import answer_at, rate_at
from cstormpy.kernels.closed_forms import closed_forms
from cstormpy.kernels.entries import entry
from cstormpy.kernels.factorisation import column_count, columns_place
from cstormpy.kernels.hybrid import hybrid, node
from cstormpy.kernels.layout import N_ACTIVE, N_COORDINATE, N_COUNT, N_DEEP, QD, ROW, Q, U
from cstormpy.kernels.samples import bring_base, bring_form_base, bring_loads_one
from cstormpy.kernels.sensitivity import fill_columns
from cstormpy.kernels.steps import step


@step
def bring_stage(N, W, signal, half, z, before, fraction, h):
    """Write q, q̇ and u of all joints at a stage: z + fraction h (rates of the stage before), or what is prescribed."""
    for i in range(1, N[N_COUNT] + 1):
        k, _ = node(i)
        j = N[k + N_COORDINATE]
        if N[k + N_ACTIVE]:
            W[i * ROW + Q], W[i * ROW + QD] = signal[half, 0, j], signal[half, 1, j]
        else:
            W[i * ROW + Q] = z[0, j] + fraction * h * before[0, j]
            W[i * ROW + QD] = z[1, j] + fraction * h * before[1, j]
        W[i * ROW + U] = signal[half, 2, j]


@step
def bring_stage_columns(N, seeds, half, dz, before, d_before, fraction, h, dh, X):
    """Write the derivatives of q, q̇ and u of all joints at a stage, to all columns, into X (3, n, columns)."""
    columns = dh.shape[0]
    for i in range(1, N[N_COUNT] + 1):
        k, _ = node(i)
        j = N[k + N_COORDINATE]
        for part in range(2):
            if N[k + N_ACTIVE]:
                for c in range(columns):
                    X[part, j, c] = seeds[half, part, j, c]
            else:
                rate = fraction * before[part, j]
                for c in range(columns):
                    X[part, j, c] = dz[part, j, c] + fraction * h * d_before[part, j, c] + rate * dh[c]
        for c in range(columns):
            X[2, j, c] = seeds[half, 2, j, c]


@step
def answer_columns(N, W, X):
    """Write the derivatives of the answers y to all columns into the last part of X (4, n, columns)."""
    n, columns = N[N_COUNT], X.shape[2]
    place, pitch = columns_place(N, 0.0), column_count(N, False, 0.0)
    for i in range(1, n + 1):
        k, _ = node(i)
        row, x = N[k + N_COORDINATE], place + (i - 1) * pitch
        for c in range(columns):
            X[3, row, c] = 0.0
        for part in range(3):
            for j in range(n):
                factor = W[x + part * n + j]
                if factor != 0.0:
                    for c in range(columns):
                        X[3, row, c] += factor * X[part, j, c]


@step
def take_node(N, W, out, k):
    for i in range(1, N[N_COUNT] + 1):
        b, _ = node(i)
        j = N[b + N_COORDINATE]
        out[k, 0, j], out[k, 1, j], out[k, 2, j] = W[i * ROW + Q], W[rate_at(N, i)], W[answer_at(N, i)]


@step
def keep_rates(N, W, X, derive, weight, z, dz):
    """Keep the rates (q̇, q̈) of the passive joints at a stage, and add them with a weight to those of the step."""
    columns = X.shape[2]
    for i in range(1, N[N_COUNT] + 1):
        k, _ = node(i)
        j = N[k + N_COORDINATE]
        if not N[k + N_ACTIVE]:
            z[1, 0, j], z[1, 1, j] = W[rate_at(N, i)], W[answer_at(N, i)]
            z[2, 0, j] += weight * z[1, 0, j]
            z[2, 1, j] += weight * z[1, 1, j]
            if derive:
                for c in range(columns):
                    dz[1, 0, j, c], dz[1, 1, j, c] = X[1, j, c], X[3, j, c]
                    dz[2, 0, j, c] += weight * X[1, j, c]
                    dz[2, 1, j, c] += weight * X[3, j, c]


@step
def finish_step(z, dz, h, dh, derive):
    """Advance the state by a step, and clear the sums for the next one."""
    for part in range(2):
        for j in range(z.shape[2]):
            if derive:
                for c in range(dh.shape[0]):
                    dz[0, part, j, c] += h * dz[2, part, j, c] + z[2, part, j] * dh[c]
                    dz[2, part, j, c] = 0.0
            z[0, part, j] += h * z[2, part, j]
            z[2, part, j] = 0.0


@step
def take_node_columns(N, work, d_out, k):
    """Copy the derivatives of q, q̇ and y at a node to the answer."""
    for j in range(N[N_COUNT]):
        for c in range(work.shape[2]):
            d_out[k, 0, j, c], d_out[k, 1, j, c], d_out[k, 2, j, c] = work[0, j, c], work[1, j, c], work[3, j, c]


_CUBE = "f8[:,:,::1]"
_FOUR = "f8[:,:,:,::1]"


@entry(
    f"Tuple((i8, i8))(f8[::1], i8[::1], f8[::1], f8[::1], f8[:,::1], {_CUBE}, {_FOUR}, f8, f8[::1], {_CUBE}, "
    f"{_FOUR}, {_CUBE}, {_CUBE}, {_FOUR})",
    nogil=True,
)
def shoot(T, N, W, wrench, base, signal, seeds, h, dh, z, dz, work, out, d_out):
    """Integrate the passive joints by steps h of the classical Runge-Kutta method; return (-1, 0), or step and status.

    signal (2 steps + 1, 3, n) holds at each half step q, q̇, q̈ of the active joints and, in its third row, the torques
    of the others; seeds (2 steps + 1, 3, n, columns) its derivatives and dh (columns,) that of h. z (3, 2, n) and
    dz (3, 2, n, columns), whose first parts hold the state at the start, and work (4, n, columns) are overwritten.
    out (steps + 1, 3, n) receives q, q̇ and the answers y, d_out (steps + 1, 3, n, columns) their derivatives; where
    that is empty nothing is derived. wrench holds a row of loads as `samples.bring_loads` takes, or nothing; base
    (2 steps + 1, 12) the motion of the base at each half step, one row if it is the same at all, none if it rests.
    """
    derive = d_out.shape[0] > 0
    steps = out.shape[0] - 1
    for evaluation in range(4 * steps + 1):
        k, stage = evaluation // 4, evaluation % 4
        half, fraction = 2 * k + (stage + 1) // 2, 0.5 * ((stage + 1) // 2)
        bring_stage(N, W, signal, half, z[0], z[1], fraction, h)
        bring_base(T, W, base, half, half, 0.0)
        loaded = bring_loads_one(N, W, wrench, 0.0, wrench)
        status = hybrid(T, N, W, loaded, N[N_DEEP] != 0, 0.0)
        if status != 0:
            return k, status
        if derive:
            bring_form_base(T, N, W, base, half, half, 0.0)
            closed_forms(T, N, W, loaded, 0.0)
            fill_columns(T, N, W, loaded, False, 0.0)
            bring_stage_columns(N, seeds, half, dz[0], z[1], dz[1], fraction, h, dh, work)
            answer_columns(N, W, work)
        if stage == 0:
            take_node(N, W, out, k)
            if derive:
                take_node_columns(N, work, d_out, k)
        weight = (1.0 if stage == 0 or stage == 3 else 2.0) / 6.0
        keep_rates(N, W, work, derive, weight, z, dz)
        if stage == 3:
            finish_step(z, dz, h, dh, derive)
    return -1, 0
