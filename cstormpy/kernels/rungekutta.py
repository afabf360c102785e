"""Steps of explicit Runge-Kutta methods of a compiled diagram, one at a time.

The rules are those of `cstormpy.simulation.steppers` (which follows scipy), with the same coefficients, the same
control of the step and the same order of every sum, so that both take the same steps.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from cstormpy.graph.addressed import at_address
from cstormpy.kernels import first_step
from cstormpy.kernels.dense import (
    K_RATE,
    K_RESULT,
    K_ROWS,
    K_SCRATCH,
    K_STAGE,
    STAGES,
    T_ERROR,
    T_RESULT,
    T_SECOND,
    T_TIMES,
    weigh,
)
from cstormpy.kernels.diagram_rate import evaluate
from cstormpy.kernels.roots import ROOT
from cstormpy.kernels.steps import exact_step

# how: integers, behind STAGES and DENSE of `dense`
ADAPTIVE, SECOND, FINITE, COUNT, COLUMNS, POINT, JUMP, STEPS, MOST, TICKED, CHECKED, LAST, CLOSED = range(2, 15)
#: Whether the last evaluation of a step that ends at a tick may be that of the tick too, in any step, and in this.
MERGES, AT_TICK = 15, 16
#: Addresses of `stages_and_result` and `error_noted`, for one method and number of states; 0 where there are none.
STAGES_CODE, ERROR_CODE = 17, 18
#: Address of a function that fills the rates as the diagram's does, and perhaps no signals; 0 where there is none.
RATES = 19
#: Whether Python has nothing to do where the run ends but what clocks and jumps want; how many bends were met, at most.
ENDS, MET, MOST_MET, HOW = 20, 21, 22, 23
# at: numbers; the derivative is asked for no time before `EARLIEST` or after `LATEST`
TIME, LENGTH, BOUND, RTOL, ATOL, LONGEST, EXPONENT, EARLIEST, LATEST, FIXED = range(10)
SAFETY, MAX_FACTOR, MIN_FACTOR, GRID, SAME_TIME, JUMP_WIDTH, NO_ERROR, ERROR, LAST_EVENT, SEARCH = range(10, 20)
#: How many: room for a search of `roots` stands at the end.
AT = SEARCH + ROOT


# clocks: numbers of each, that of the next tick first; parts: where its states stand in z (and behind them the outputs
# that its blocks hold), how many, in out the new, and where in z stands whether such outputs are computed now (or -1)
NEXT, INDEX, PERIOD, OFFSET, CLOCK = range(5)
Z_FIRST, Z_COUNT, OUT_FIRST, FLAG, HOLDS, PART = range(6)


_trial_length, _first_length = exact_step(first_step.trial_length), exact_step(first_step.first_length)


def stages_by(
    code: Any, f: Any, how: Any, at: Any, h: Any, x: Any, z: Any, p: Any, n: Any, w: Any, out: Any, K: Any
) -> Any:
    """Return what `stages_and_result` returns, by its code at an address."""
    return code(f, how, at, h, x, z, p, n, w, out, K)


def error_by(code: Any, how: Any, at: Any, h: Any, x: Any, K: Any) -> Any:
    """Return what `error_noted` returns, by its code at an address."""
    return code(how, at, h, x, K)


at_address(stages_by, "i8(i8, i8[::1], f8[::1], f8, f8[::1], f8[::1], f8[::1], i8[::1], f8[::1], f8[::1], f8[:, ::1])")
at_address(error_by, "i8(i8[::1], f8[::1], f8, f8[::1], f8[:, ::1])")


@exact_step
def clamped(t, at):
    return min(max(t, at[EARLIEST]), at[LATEST])


@exact_step
def attempt(f, table, how, at, h, x, z, p, n, w, out, K):
    """Fill the stages of a step of length h, its result and the derivative there; return 0 or what f returned."""
    status = stages(f, table, how, at, h, x, z, p, n, w, out, K)
    if status != 0:
        return status
    return at_end(f, how, at, h, z, p, n, w, out, K)


@exact_step
def stages(f, table, how, at, h, x, z, p, n, w, out, K):
    """Fill the stages of a step of length h and its result, by code for this method where there is any."""
    if how[RATES] != 0:
        f = how[RATES]
    if how[STAGES_CODE] != 0:
        return stages_by(how[STAGES_CODE], f, how, at, h, x, z, p, n, w, out, K)
    return stages_and_result(f, table, how, at, h, x, z, p, n, w, out, K)


@exact_step
def at_end(f, how, at, h, z, p, n, w, out, K):
    """Evaluate the diagram at the result of a step of length h; return what f returned."""
    stages = how[STAGES]
    how[COUNT] += 1
    return evaluate(f, clamped(at[TIME] + h, at), K[stages + K_RESULT], z, p, n, w, out, K[stages])


@exact_step
def stages_and_result(f, table, how, at, h, x, z, p, n, w, out, K):
    """Fill the stages of a step of length h and its result; return 0 or what f returned."""
    stages, t = table.shape[1] - 1, at[TIME]
    stage, result, total = K[stages + K_STAGE], K[stages + K_RESULT], K[stages + K_SCRATCH]
    for s in range(1, stages):
        weigh(K, s, table[s], total)
        for i in range(x.size):
            stage[i] = x[i] + total[i] * h
        status = evaluate(f, clamped(t + table[stages + T_TIMES, s] * h, at), stage, z, p, n, w, out, K[s])
        if status != 0:
            return status
    weigh(K, stages, table[stages + T_RESULT], total)
    for i in range(x.size):
        result[i] = x[i] + h * total[i]
    how[COUNT] += stages - 1
    return 0


@exact_step
def squares(weights, how, at, factor, x, K):
    """Return the sum of the squares of an estimate of the error, each as a share of what is tolerated."""
    stages = K.shape[0] - K_ROWS
    estimate, total = K[stages + K_SCRATCH], 0.0
    weigh(K, stages + 1, weights, estimate)
    for i in range(x.size):
        scale = at[ATOL] + max(abs(x[i]), abs(K[stages + K_RESULT, i])) * at[RTOL]
        share = estimate[i] * factor / scale
        total += share * share
    return total


@exact_step
def scaled_error(table, how, at, h, x, K):
    """Return the estimated error as a share of what is tolerated."""
    stages = table.shape[1] - 1
    weights = table[stages + T_ERROR]
    if how[SECOND] == 0:
        return math.sqrt(squares(weights, how, at, h, x, K)) / math.sqrt(float(x.size))
    first = math.sqrt(squares(weights, how, at, 1.0, x, K))
    second = math.sqrt(squares(table[stages + T_SECOND], how, at, 1.0, x, K))
    first, second = first * first, second * second
    if first == 0.0 and second == 0.0:
        return 0.0
    return abs(h) * first / math.sqrt((first + 0.01 * second) * x.size)


@exact_step
def error_noted(table, how, at, h, x, K):
    """Note the estimated error at `ERROR`."""
    at[ERROR] = scaled_error(table, how, at, h, x, K)
    return 0


@exact_step
def note_error(table, how, at, h, x, K):
    """Note the estimated error at `ERROR`, by code for this method where there is any."""
    if how[ERROR_CODE] != 0:
        return error_by(how[ERROR_CODE], how, at, h, x, K)
    return error_noted(table, how, at, h, x, K)


@exact_step
def attempt_before_ticks(f, table, how, at, bound, t_new, x, z, p, n, w, out, K, clocks, parts):
    """Fill the stages of a step to t_new as `attempt`; at the bound with what clocks that tick there make of it."""
    status = stages(f, table, how, at, t_new - at[TIME], x, z, p, n, w, out, K)
    if status != 0:
        return status
    if how[AT_TICK] == 0 or t_new < bound:
        return at_end(f, how, at, t_new - at[TIME], z, p, n, w, out, K)
    raise_flags(bound, at, z, clocks, parts)
    status = at_end(f, how, at, t_new - at[TIME], z, p, n, w, out, K)
    lower_flags(z, parts)
    return status


@exact_step
def raise_flags(t, at, z, clocks, parts):
    """Have what is due at the ticks of clocks at a time computed."""
    end = t + at[SAME_TIME] * max(1.0, abs(t))
    for c in range(clocks.shape[0]):
        if parts[c, FLAG] >= 0 and clocks[c, NEXT] < end:
            z[parts[c, FLAG]] = 1.0


@exact_step
def lower_flags(z, parts):
    """Have it computed no longer."""
    for c in range(parts.shape[0]):
        if parts[c, FLAG] >= 0:
            z[parts[c, FLAG]] = 0.0


@exact_step
def scaled_size(values, at, x):
    """Return the size of numbers, each as a share of what is tolerated of its state."""
    total = 0.0
    for i in range(x.size):
        share = values[i] / (at[ATOL] + abs(x[i]) * at[RTOL])
        total += share * share
    return math.sqrt(total) / math.sqrt(float(x.size))


@exact_step
def choose_length(f, how, at, bound, x, z, p, n, w, out, K):
    """Choose the length of the first step, which is to end before a bound; return 0 or what f returned."""
    stages = how[STAGES]
    state, change = K[stages + K_STAGE], K[stages + K_RATE]
    longest, d1 = min(at[LONGEST], bound - at[TIME]), scaled_size(K[0], at, x)
    h0 = _trial_length(scaled_size(x, at, x), d1, longest)
    for i in range(x.size):
        state[i] = x[i] + h0 * K[0, i]
    how[COUNT] += 1
    status = evaluate(f, clamped(at[TIME] + h0, at), state, z, p, n, w, out, change)
    if status != 0:
        return status
    for i in range(x.size):
        change[i] -= K[0, i]
    at[LENGTH] = _first_length(d1, scaled_size(change, at, x) / h0, h0, at[EXPONENT], longest)
    return 0


@exact_step
def adaptive_step(f, table, how, at, bound, x, z, p, n, w, out, K, clocks, parts):
    """Try steps until one is good enough; return whether there is one, its end, and the length to go on with."""
    t = at[TIME]
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
        if attempt_before_ticks(f, table, how, at, bound, t_new, x, z, p, n, w, out, K, clocks, parts) != 0:
            return False, t, at[LENGTH]
        note_error(table, how, at, h, x, K)
        error = at[ERROR]
        if error < 1.0:
            factor = at[MAX_FACTOR]
            if error > at[NO_ERROR]:
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


@exact_step
def fixed_step(f, table, how, at, bound, x, z, p, n, w, out, K, clocks, parts):
    """Take a step of the fixed length, no crumb of one before the bound; return as `adaptive_step`."""
    h = at[FIXED]
    t_new = at[TIME] + h
    if t_new > bound - 1e-9 * h:
        t_new = bound
    good = attempt_before_ticks(f, table, how, at, bound, t_new, x, z, p, n, w, out, K, clocks, parts) == 0
    for i in range(x.size):
        good = good and math.isfinite(K[how[STAGES] + K_RESULT, i])
    return good, t_new, at[LENGTH]
