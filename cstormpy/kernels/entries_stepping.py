"""Explicit Runge-Kutta steps of a compiled diagram: many accepted steps in one call, with ticks, jumps and grids.

The rules are those of `cstormpy.simulation.steppers` (which follows scipy), with the same coefficients, the same
control of the step and the same order of every sum, so that both take the same steps. A step at which something is to
be looked at (a guard changes its sign, a signal is not finite, no step is short enough, a block fails) is not taken:
the run stands before it, and Python takes it again. The same holds for a tick or a jump.

The diagram is one function ``f(t, x, z, p, n, w, out, xd)``, which returns 0, or a positive number where it failed. It
is given by the addresses of its code, as what numba does to hand over a function takes longer than many steps. Whatever
the diagram, this file is compiled once.
"""

from __future__ import annotations

import math

import numpy as np

from cstormpy.kernels.compiling import entry, exact_step, function_at
from cstormpy.kernels.dense import (
    DENSE,
    K_POINT,
    K_RATE,
    K_RESULT,
    K_SCRATCH,
    K_STAGE,
    STAGES,
    T_ERROR,
    T_RESULT,
    T_SECOND,
    T_TIMES,
    interpolate,
    prepare_dense,
    weigh,
)

# how: integers; STAGES and DENSE are those of `dense`
ADAPTIVE, SECOND, FINITE, COUNT, GUARDS, COLUMNS, POINT, JUMP, STEPS, MOST, TICKED, CHECKED, LAST, HOW = range(2, 16)
# at: numbers; the derivative is asked for no time before `EARLIEST` or after `LATEST`
TIME, LENGTH, BOUND, RTOL, ATOL, LONGEST, EXPONENT, EARLIEST, LATEST, FIXED = range(10)
SAFETY, MAX_FACTOR, MIN_FACTOR, GRID, BEGIN, SAME_TIME, JUMP_WIDTH, AT = range(10, 18)
# clocks: numbers of each, that of the next tick first; parts: where its states stand in z, how many, and in out the new
NEXT, INDEX, PERIOD, OFFSET, CLOCK = range(5)
Z_FIRST, Z_COUNT, OUT_FIRST, PART = range(4)
#: What `advance` returns: it went on, or something is to be looked at in the next step.
WENT, LOOK = 0, 1

#: The function of a diagram: t, x, z, p, n, w, out, xd.
RATE = "i8(f8, f8[::1], f8[::1], f8[::1], i8[::1], f8[::1], f8[::1], f8[::1])"
_rate_at = function_at(RATE)


@exact_step
def clamped(t, at):
    return min(max(t, at[EARLIEST]), at[LATEST])


@exact_step
def attempt(f, table, how, at, h, x, z, p, n, w, out, K):
    """Fill the stages of a step of length h, its result and the derivative there; return 0 or what f returned."""
    stages, t = how[STAGES], at[TIME]
    stage, result, total = K[stages + K_STAGE], K[stages + K_RESULT], K[stages + K_SCRATCH]
    for s in range(1, stages):
        weigh(K, s, table[s], total)
        for i in range(x.size):
            stage[i] = x[i] + total[i] * h
        status = f(clamped(t + table[stages + T_TIMES, s] * h, at), stage, z, p, n, w, out, K[s])
        if status != 0:
            return status
    weigh(K, stages, table[stages + T_RESULT], total)
    for i in range(x.size):
        result[i] = x[i] + h * total[i]
    how[COUNT] += stages
    return f(clamped(t + h, at), result, z, p, n, w, out, K[stages])


@exact_step
def squares(table, row, how, at, factor, x, K):
    """Return the sum of the squares of an estimate of the error, each as a share of what is tolerated."""
    stages = how[STAGES]
    total = K[stages + K_SCRATCH]
    weigh(K, stages + 1, table[stages + row], total)
    for i in range(x.size):
        scale = at[ATOL] + max(abs(x[i]), abs(K[stages + K_RESULT, i])) * at[RTOL]
        total[i] = total[i] * factor / scale
    return np.dot(total, total)


@exact_step
def scaled_error(table, how, at, h, x, K):
    """Return the estimated error as a share of what is tolerated."""
    if how[SECOND] == 0:
        return math.sqrt(squares(table, T_ERROR, how, at, h, x, K)) / float(x.size) ** 0.5
    first, second = math.sqrt(squares(table, T_ERROR, how, at, 1.0, x, K)), 0.0
    second = math.sqrt(squares(table, T_SECOND, how, at, 1.0, x, K))
    first, second = first * first, second * second
    if first == 0.0 and second == 0.0:
        return 0.0
    return abs(h) * first / math.sqrt((first + 0.01 * second) * x.size)


@exact_step
def adaptive_step(f, table, how, at, bound, x, z, p, n, w, out, K):
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


@exact_step
def fixed_step(f, table, how, at, bound, x, z, p, n, w, out, K):
    """Take a step of the fixed length, no crumb of one before the bound; return as `adaptive_step`."""
    h = at[FIXED]
    t_new = at[TIME] + h
    if t_new > bound - 1e-9 * h:
        t_new = bound
    good = attempt(f, table, how, at, t_new - at[TIME], x, z, p, n, w, out, K) == 0
    for i in range(x.size):
        good = good and math.isfinite(K[how[STAGES] + K_RESULT, i])
    return good, t_new, at[LENGTH]


@exact_step
def crossed(before, after, direction):
    """Tell whether a guard has reached zero from one side, or left zero, in a direction (0: in any)."""
    rising = ((before < 0.0 and after >= 0.0) or (before == 0.0 and after > 0.0)) and direction >= 0.0
    falling = ((before > 0.0 and after <= 0.0) or (before == 0.0 and after < 0.0)) and direction <= 0.0
    return rising or falling


@exact_step
def to_be_looked_at(how, out, guards, sides):
    """Tell whether a guard crosses zero, or a signal is not finite."""
    if how[FINITE] != 0:
        nothing = 0.0
        for k in range(how[CHECKED]):
            nothing += 0.0 * out[k]
        if not nothing == 0.0:
            return True
    for g in range(how[GUARDS]):
        after = out[guards[g]]
        if not math.isfinite(after) or crossed(sides[0, g], after, sides[1, g]):
            return True
    return False


@exact_step
def keep(t, x, out, columns, taken, how, times, states, signals):
    """Write a sample down; return how many there are."""
    times[taken] = t
    for i in range(x.size):
        states[taken, i] = x[i]
    for k in range(how[COLUMNS]):
        signals[taken, k] = out[columns[k]]
    return taken + 1


# What is due at which time -------------------------------------------------------------------------------


@exact_step
def next_due(how, at, clocks, jumps):
    """Return to which time to go, whether a source jumps there, and whether what is due there is done here."""
    tolerance = at[SAME_TIME] * max(1.0, abs(at[TIME]))
    first, jump = np.inf, np.inf
    for c in range(clocks.shape[0]):
        first = min(first, clocks[c, NEXT])
    if how[JUMP] < jumps.size:
        jump = jumps[how[JUMP]]
    first = min(first, jump)
    if first > at[BOUND] - tolerance:
        bound = at[BOUND] if how[LAST] != 0 else min(first, at[BOUND])
        return max(bound, at[TIME]), jump < bound + tolerance, False
    return max(first, at[TIME]), jump < first + tolerance, True


@exact_step
def tick(f, how, at, jumped, x, z, p, n, w, out, K, guards, sides, clocks, parts, ticked):
    """Do what is due now, all from the signals of this time; return whether it is done or to be done by Python."""
    stages, t = how[STAGES], at[TIME]
    before_earliest, before_latest, count = at[EARLIEST], at[LATEST], how[TICKED]
    at[EARLIEST] = t + at[JUMP_WIDTH] * (np.nextafter(t, np.inf) - t) if jumped else -np.inf
    at[LATEST] = np.inf
    tolerance = at[SAME_TIME] * max(1.0, abs(t))
    good = f(clamped(t, at), x, z, p, n, w, out, K[stages]) == 0
    for c in range(clocks.shape[0]):
        if good and clocks[c, NEXT] < t + tolerance:
            row = ticked[how[TICKED]]
            row[0], row[1] = t, float(c)
            for k in range(parts[c, Z_COUNT]):
                row[2 + k] = out[parts[c, OUT_FIRST] + k]
                row[2 + parts[c, Z_COUNT] + k] = z[parts[c, Z_FIRST] + k]
                z[parts[c, Z_FIRST] + k] = row[2 + k]
            how[TICKED] += 1
    how[COUNT] += 2
    good = good and f(clamped(t, at), x, z, p, n, w, out, K[stages]) == 0
    if good and not to_be_looked_at(how, out, guards, sides):
        return True
    while how[TICKED] > count:  # as if it had not been
        how[TICKED] -= 1
        row = ticked[how[TICKED]]
        c = int(row[1])
        for k in range(parts[c, Z_COUNT]):
            z[parts[c, Z_FIRST] + k] = row[2 + parts[c, Z_COUNT] + k]
    at[EARLIEST], at[LATEST] = before_earliest, before_latest
    return False


@exact_step
def pass_on(how, at, clocks, jumps):
    """Schedule what comes after that which has been done now."""
    end = at[TIME] + at[SAME_TIME] * max(1.0, abs(at[TIME]))
    for c in range(clocks.shape[0]):
        if clocks[c, NEXT] < end:
            clocks[c, INDEX] += 1.0
            clocks[c, NEXT] = clocks[c, INDEX] * clocks[c, PERIOD] + clocks[c, OFFSET]
    while how[JUMP] < jumps.size and jumps[how[JUMP]] < end:
        how[JUMP] += 1


# Points of the grid --------------------------------------------------------------------------------------


@exact_step
def grid_time(how, at):
    """Return the time of the next point of the grid."""
    return at[BEGIN] + how[POINT] * at[GRID] if how[POINT] > 0 else at[BEGIN]


@exact_step
def points_within(how, at, t_new):
    """Return how many points of the grid lie before the end of a step."""
    if not at[GRID] > 0.0:
        return 0
    ahead = t_new - at[SAME_TIME] * max(1.0, abs(t_new)) - grid_time(how, at)
    return int(ahead / at[GRID]) + 1 if ahead > 0.0 else 0


@exact_step
def on_grid(how, at, t):
    """Tell whether the next point of the grid is at a time."""
    return at[GRID] > 0.0 and abs(grid_time(how, at) - t) <= at[SAME_TIME] * max(1.0, abs(t))


@exact_step
def record_within(f, how, at, t_new, dense, x, z, p, n, w, out, K, columns, taken, times, states, signals):
    """Write down the points of the grid within the step just taken; return how many samples there are, and if all went.

    The step stands in K; x, K[0] and the time are still those of its beginning.
    """
    stages, t = how[STAGES], at[TIME]
    h = t_new - t
    point, rate = K[stages + K_POINT], K[stages + K_RATE]
    prepared = False
    while points_within(how, at, t_new) > 0:
        if not prepared:
            if not prepare_dense(
                f, how[STAGES], how[DENSE], dense, t, h, at[EARLIEST], at[LATEST], x, z, p, n, w, out, K
            ):
                return taken, False
            prepared = True
        moment = grid_time(how, at)
        interpolate(stages, how[DENSE], (moment - t) / h, h, dense, x, K, point)
        how[COUNT] += 1
        if f(clamped(moment, at), point, z, p, n, w, out, rate) != 0:
            return taken, False
        taken = keep(moment, point, out, columns, taken, how, times, states, signals)
        how[POINT] += 1
    return taken, True


# Many steps ----------------------------------------------------------------------------------------------


@exact_step
def step_once(f, table, how, at, bound, x, z, p, n, w, out, K, guards, sides):
    """Try a step; return whether it may be taken, its end, and the length to go on with."""
    if how[ADAPTIVE] != 0:
        good, t_new, length = adaptive_step(f, table, how, at, bound, x, z, p, n, w, out, K)
    else:
        good, t_new, length = fixed_step(f, table, how, at, bound, x, z, p, n, w, out, K)
    return good and not to_be_looked_at(how, out, guards, sides), t_new, length


@exact_step
def accept(how, at, t_new, length, x, K, sides):
    """Stand at the end of a step."""
    stages = how[STAGES]
    at[TIME], at[LENGTH], at[EARLIEST] = t_new, length, -np.inf
    for i in range(x.size):
        x[i] = K[stages + K_RESULT, i]
        K[0, i] = K[stages, i]
    for g in range(how[GUARDS]):
        sides[0, g] = sides[2, g]
    how[STEPS] += 1


@exact_step
def note_sides(row, how, out, guards, sides):
    for g in range(how[GUARDS]):
        sides[row, g] = out[guards[g]]


@entry(
    "i8(UniTuple(i8, 2), f8[:, ::1], i8[::1], f8[::1], f8[::1], f8[::1], f8[::1], i8[::1], f8[::1], f8[::1], "
    "f8[:, ::1])",
    nogil=True,
    exact=True,
)
def trial(address, table, how, at, x, z, p, n, w, out, K):
    """Try a step of the length `LENGTH` from x, whose derivative is K[0]; return 0 or what the diagram returned."""
    return attempt(_rate_at(address), table, how, at, at[LENGTH], x, z, p, n, w, out, K)


@entry(
    "UniTuple(i8, 2)(UniTuple(i8, 2), f8[:, ::1], f8[:, ::1], i8[::1], f8[::1], f8[::1], f8[::1], f8[::1], i8[::1], "
    "f8[::1], f8[::1], f8[:, ::1], i8[::1], f8[:, ::1], i8[::1], f8[:, ::1], i8[:, ::1], f8[::1], f8[:, ::1], f8[::1], "
    "f8[:, ::1], f8[:, ::1])",
    nogil=True,
    exact=True,
)
def advance(
    address, table, dense, how, at, x, z, p, n, w, out, K, guards, sides, columns, clocks, parts, jumps, ticked, times,
    states, signals,
):  # fmt: skip
    """Take steps until a time, as many as there is room for, and keep them; return `WENT` or `LOOK`, and how many.

    K[0] holds the derivative at (t, x). Time, length of the step, x, z, K[0], the sides of the guards, the clocks and
    what is due next are brought up to date; `times`, `states` and `signals` receive each accepted point, or those of
    the grid, the signals from the given columns of out; `ticked` the ticks. The end of the last step is not among them
    where Python has something to do there.
    """
    f = _rate_at(address)
    stages, taken = how[STAGES], np.int64(0)
    room = times.size - 2
    while taken < room and how[STEPS] < how[MOST] and how[TICKED] + clocks.shape[0] <= ticked.shape[0]:
        bound, jumped, ours = next_due(how, at, clocks, jumps)
        if at[TIME] >= bound and not ours:
            return WENT, taken
        if at[TIME] < bound:
            at[LATEST] = np.inf
            if jumped:
                at[LATEST] = bound - at[JUMP_WIDTH] * (np.nextafter(bound, np.inf) - bound)
            good, t_new, length = step_once(f, table, how, at, bound, x, z, p, n, w, out, K, guards, sides)
            within = points_within(how, at, t_new)
            if not good or within > room:
                return LOOK, taken
            if taken + within > room:
                return WENT, taken
            note_sides(2, how, out, guards, sides)
            before = taken
            taken, good = record_within(
                f, how, at, t_new, dense, x, z, p, n, w, out, K, columns, taken, times, states, signals
            )
            if not good:
                how[POINT] -= taken - before
                return LOOK, before
            accept(how, at, t_new, length, x, K, sides)
            jump_kept = jumped and ours and t_new >= bound and not at[GRID] > 0.0
            if (t_new < bound and (not at[GRID] > 0.0 or on_grid(how, at, t_new))) or jump_kept:
                if taken > before and at[GRID] > 0.0:  # the signals are those of the grid's last point
                    how[COUNT] += 1
                    if f(clamped(t_new, at), x, z, p, n, w, out, K[stages]) != 0:
                        return LOOK, taken
                taken = keep(t_new, x, out, columns, taken, how, times, states, signals)
                how[POINT] += at[GRID] > 0.0
            if t_new < bound:
                continue
            if not ours:
                return WENT, taken
        if not tick(f, how, at, jumped, x, z, p, n, w, out, K, guards, sides, clocks, parts, ticked):
            return LOOK, taken
        pass_on(how, at, clocks, jumps)
        for i in range(x.size):
            K[0, i] = K[stages, i]
        note_sides(0, how, out, guards, sides)
        if not at[GRID] > 0.0 or on_grid(how, at, at[TIME]):
            taken = keep(at[TIME], x, out, columns, taken, how, times, states, signals)
            how[POINT] += at[GRID] > 0.0
    return WENT, taken
