"""Explicit Runge-Kutta steps of a compiled diagram: many accepted steps in one call.

The rules are those of `cstormpy.simulation.steppers` (which follows scipy), with the same coefficients and the same
control of the step. A step at which something is to be looked at (a guard changes its sign, a signal is not finite, no
step is short enough, a block fails) is not taken: the run stands before it, and Python takes it again.

The diagram is one function ``f(t, x, z, p, n, w, out, xd)``, which returns 0, or a positive number where it failed.
Whatever the diagram, this file is compiled once.
"""

from __future__ import annotations

import math

import numpy as np

from cstormpy.kernels.compiling import entry, step

# how: integers
STAGES, ADAPTIVE, SECOND, FINITE, COUNT, GUARDS, COLUMNS, HOW = 0, 1, 2, 3, 4, 5, 6, 7
# at: numbers; the derivative is asked for no time before `EARLIEST` or after `LATEST`
TIME, LENGTH, BOUND, RTOL, ATOL, LONGEST, EXPONENT, EARLIEST, LATEST, FIXED = 0, 1, 2, 3, 4, 5, 6, 7, 8, 9
SAFETY, MAX_FACTOR, MIN_FACTOR, AT = 10, 11, 12, 13
#: Rows of the table behind those of the stages.
T_RESULT, T_TIMES, T_ERROR, T_SECOND, T_ROWS = 0, 1, 2, 3, 4
#: Rows behind the derivatives of the stages and that at the end of the step: a stage's state, and the result.
K_STAGE, K_RESULT, K_ROWS = 1, 2, 3
#: What `advance` returns: it went on, or something is to be looked at in the next step.
WENT, LOOK = 0, 1

#: The function of a diagram: t, x, z, p, n, w, out, xd.
RATE = "i8(f8, f8[::1], f8[::1], f8[::1], i8[::1], f8[::1], f8[::1], f8[::1])"


@step
def clamped(t, at):
    return min(max(t, at[EARLIEST]), at[LATEST])


@step
def attempt(f, table, how, at, h, x, z, p, n, w, out, K):
    """Fill the stages of a step of length h, its result and the derivative there; return 0 or what f returned."""
    stages, t = how[STAGES], at[TIME]
    stage, result = K[stages + K_STAGE], K[stages + K_RESULT]
    for s in range(1, stages):
        for i in range(x.size):
            total = 0.0
            for j in range(s):
                if table[s, j] != 0.0:
                    total += K[j, i] * table[s, j]
            stage[i] = x[i] + total * h
        status = f(clamped(t + table[stages + T_TIMES, s] * h, at), stage, z, p, n, w, out, K[s])
        if status != 0:
            return status
    for i in range(x.size):
        total = 0.0
        for j in range(stages):
            total += K[j, i] * table[stages + T_RESULT, j]
        result[i] = x[i] + h * total
    how[COUNT] += stages
    return f(clamped(t + h, at), result, z, p, n, w, out, K[stages])


@step
def scaled_error(table, how, at, h, x, K):
    """Return the estimated error as a share of what is tolerated."""
    stages = how[STAGES]
    first, second = 0.0, 0.0
    for i in range(x.size):
        scale = at[ATOL] + max(abs(x[i]), abs(K[stages + K_RESULT, i])) * at[RTOL]
        e, e3 = 0.0, 0.0
        for j in range(stages + 1):
            e += K[j, i] * table[stages + T_ERROR, j]
            e3 += K[j, i] * table[stages + T_SECOND, j]
        if how[SECOND] == 0:
            e *= h
        first += (e / scale) ** 2
        second += (e3 / scale) ** 2
    if how[SECOND] == 0:
        return math.sqrt(first) / math.sqrt(float(x.size))
    if first == 0.0 and second == 0.0:
        return 0.0
    return abs(h) * first / math.sqrt((first + 0.01 * second) * x.size)


@step
def adaptive_step(f, table, how, at, x, z, p, n, w, out, K):
    """Try steps until one is good enough; return whether there is one, its end, and the length to go on with."""
    t, bound = at[TIME], at[BOUND]
    shortest = 10.0 * abs(np.nextafter(t, np.inf) - t)
    length = min(max(at[LENGTH], shortest), at[LONGEST])
    rejected = False
    while length >= shortest:
        wanted, t_new = length, t + length
        cut = t_new > bound
        if cut:
            t_new = bound
        h = t_new - t
        length = abs(h)
        if attempt(f, table, how, at, h, x, z, p, n, w, out, K) != 0:
            return False, t, at[LENGTH]
        error = scaled_error(table, how, at, h, x, K)
        if error < 1.0:
            factor = at[MAX_FACTOR]
            if error > 0.0:
                factor = min(factor, at[SAFETY] * error ** at[EXPONENT])
            if rejected:
                factor = min(1.0, factor)
            grown = length * factor
            if cut:
                grown = max(grown, wanted)
            return True, t_new, grown
        factor = at[MIN_FACTOR]
        if math.isfinite(error):
            factor = max(factor, at[SAFETY] * error ** at[EXPONENT])
        length *= factor
        rejected = True
    return False, t, at[LENGTH]


@step
def fixed_step(f, table, how, at, x, z, p, n, w, out, K):
    """Take a step of the fixed length, no crumb of one before the bound; return as `adaptive_step`."""
    h = at[FIXED]
    t_new = at[TIME] + h
    if t_new > at[BOUND] - 1e-9 * h:
        t_new = at[BOUND]
    good = attempt(f, table, how, at, t_new - at[TIME], x, z, p, n, w, out, K) == 0
    for i in range(x.size):
        good = good and math.isfinite(K[how[STAGES] + K_RESULT, i])
    return good, t_new, at[LENGTH]


@step
def crossed(before, after, direction):
    """Tell whether a guard has reached zero from one side, or left zero, in a direction (0: in any)."""
    rising = ((before < 0.0 and after >= 0.0) or (before == 0.0 and after > 0.0)) and direction >= 0.0
    falling = ((before > 0.0 and after <= 0.0) or (before == 0.0 and after < 0.0)) and direction <= 0.0
    return rising or falling


@step
def to_be_looked_at(how, out, guards, sides):
    """Tell whether a guard crosses zero, or a signal is not finite."""
    if how[FINITE] != 0:
        nothing = 0.0
        for k in range(out.size):
            nothing += 0.0 * out[k]
        if not nothing == 0.0:
            return True
    for g in range(how[GUARDS]):
        after = out[guards[g]]
        if not math.isfinite(after) or crossed(sides[0, g], after, sides[1, g]):
            return True
    return False


@entry(
    f"UniTuple(i8, 2)(FunctionType({RATE}), f8[:, ::1], i8[::1], f8[::1], f8[::1], f8[::1], f8[::1], i8[::1], f8[::1], "
    "f8[::1], f8[:, ::1], i8[::1], f8[:, ::1], i8[::1], f8[::1], f8[:, ::1], f8[:, ::1])",
    nogil=True,
)
def advance(f, table, how, at, x, z, p, n, w, out, K, guards, sides, columns, times, states, signals):
    """Take steps until a time, as many as there is room for, and keep them; return `WENT` or `LOOK`, and how many.

    K[0] holds the derivative at (t, x). Time, length of the step, x, K[0] and the sides of the guards are brought up
    to date; `times`, `states` and `signals` receive each accepted point, the signals from the given columns of out.
    """
    stages = how[STAGES]
    taken = 0
    while taken < times.size and at[TIME] < at[BOUND]:
        if how[ADAPTIVE] != 0:
            good, t_new, length = adaptive_step(f, table, how, at, x, z, p, n, w, out, K)
        else:
            good, t_new, length = fixed_step(f, table, how, at, x, z, p, n, w, out, K)
        if not good or to_be_looked_at(how, out, guards, sides):
            return LOOK, taken
        at[TIME], at[LENGTH], at[EARLIEST] = t_new, length, -np.inf
        for i in range(x.size):
            x[i] = K[stages + K_RESULT, i]
            K[0, i] = K[stages, i]
            states[taken, i] = x[i]
        for g in range(how[GUARDS]):
            sides[0, g] = out[guards[g]]
        for k in range(how[COLUMNS]):
            signals[taken, k] = out[columns[k]]
        times[taken] = t_new
        taken += 1
    return WENT, taken
