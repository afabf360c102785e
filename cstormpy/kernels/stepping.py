"""Explicit Runge-Kutta steps of a compiled diagram: many accepted steps in one call, with ticks, jumps and grids.

A step ends where a guard crosses zero. What happens there is for Python, unless it is nothing, as where a signal only
bends. A step at which something else is to be looked at (a signal is not finite, no step is short enough, a block
fails, a tick or a jump makes a guard cross where something happens) is not taken: the run stands before it, and Python
takes it again.

The diagram is one function ``f(t, x, z, p, n, w, out, xd)``, which returns 0, or a positive number where it failed. It
is given by the address of its code. So is, of a diagram whose mechanisms have loops, that which fills `xd` with the
nearest state that closes them. Whatever the diagram, this file is compiled once.
"""

import math

import numpy as np

from cstormpy.kernels.dense import DENSE, K_END, K_POINT, K_RATE, K_RESULT, STAGES, interpolate, prepare_dense
from cstormpy.kernels.diagram_rate import evaluate
from cstormpy.kernels.event_location import (
    AFTER,
    APART,
    BEFORE,
    BENDS,
    CROSSES_AT,
    DIRECTION,
    ENDED,
    FIRED_AT,
    LEFT_AT,
    PRIOR,
    SPAN,
    bracketed,
    crossed,
    located,
    settled,
)
from cstormpy.kernels.rungekutta import (
    ADAPTIVE,
    AT_TICK,
    BOUND,
    CHECKED,
    CLOSED,
    COLUMNS,
    COUNT,
    EARLIEST,
    ENDS,
    FINITE,
    GRID,
    HOLDS,
    INDEX,
    JUMP,
    JUMP_WIDTH,
    LAST,
    LAST_EVENT,
    LATEST,
    LENGTH,
    MERGES,
    MET,
    MOST,
    MOST_MET,
    NEXT,
    OFFSET,
    OUT_FIRST,
    PERIOD,
    POINT,
    SAME_TIME,
    STEPS,
    TICKED,
    TIME,
    Z_COUNT,
    Z_FIRST,
    adaptive_step,
    attempt,
    choose_length,
    clamped,
    fixed_step,
    lower_flags,
    raise_flags,
)
from cstormpy.kernels.steps import exact_step

#: What `advance` returns: it went on, something is to be looked at in the next step, or guards have crossed zero.
WENT, LOOK, CROSSED = range(3)


@exact_step
def finite(how, out):
    """Tell whether all signals are finite, where that is asked for."""
    nothing = 0.0
    if how[FINITE] != 0:
        for k in range(how[CHECKED]):
            nothing += 0.0 * out[k]
    return nothing == 0.0


@exact_step
def jumped_across(how, at, out, guards, sides):
    """Tell whether a guard has jumped across zero where more happens than that a step ends, or is not finite."""
    count = how[MET]
    for g in range(guards.size):
        after = out[guards[g]]
        if not math.isfinite(after):
            return True
        if crossed(sides[BEFORE, g], after, sides[DIRECTION, g]):
            count += 1
            if sides[BENDS, g] == 0.0:
                return True
    return count > how[MET] and (count > how[MOST_MET] or not apart(at, at[TIME]))


@exact_step
def apart(at, t):
    """Tell whether an event is so long after the one before that both do not chatter."""
    return t - at[LAST_EVENT] > APART * max(1.0, abs(t))


@exact_step
def note_bend(how, at, t, value, g, sides, met):
    """Note that a guard has crossed zero where nothing happens; it is known again where it has stood there before."""
    row = met[how[MET]]
    row[0], row[1] = t, float(g)
    how[MET] += 1
    sides[FIRED_AT, g], sides[LEFT_AT, g] = t, value
    if value == 0.0 or sides[BEFORE, g] != value:
        sides[BEFORE, g] = np.nan


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
def seen_by_step(how, at, bound, jumped, ours, clocks, parts):
    """Tell whether the last evaluation of a step to a bound may be that of the ticks there too.

    That is so where their blocks hold no outputs, which would change the derivative at the end of the step, and where
    time does not jump.
    """
    end = bound + at[SAME_TIME] * max(1.0, abs(bound))
    if how[MERGES] == 0 or jumped or not ours:
        return False
    for c in range(clocks.shape[0]):
        if clocks[c, NEXT] < end and parts[c, HOLDS] != 0:
            return False
    return True


@exact_step
def tick(f, how, at, jumped, ready, x, z, p, n, w, out, K, guards, sides, clocks, parts, ticked):
    """Do what is due now, all from the signals of this time; return whether it is done or to be done by Python.

    Where `ready` is true, the signals of this time and what the clocks make of them stand in out.
    """
    stages, t = how[STAGES], at[TIME]
    before_earliest, before_latest, count = at[EARLIEST], at[LATEST], how[TICKED]
    at[EARLIEST] = t + at[JUMP_WIDTH] * (np.nextafter(t, np.inf) - t) if jumped else -np.inf
    at[LATEST] = np.inf
    tolerance = at[SAME_TIME] * max(1.0, abs(t))
    good = True
    if not ready:
        raise_flags(t, at, z, clocks, parts)
        how[COUNT] += 1
        good = evaluate(f, clamped(t, at), x, z, p, n, w, out, K[stages]) == 0
        lower_flags(z, parts)
    for c in range(clocks.shape[0]):
        if good and clocks[c, NEXT] < t + tolerance:
            row = ticked[how[TICKED]]
            row[0], row[1] = t, float(c)
            for k in range(parts[c, Z_COUNT]):
                row[2 + k] = out[parts[c, OUT_FIRST] + k]
                row[2 + parts[c, Z_COUNT] + k] = z[parts[c, Z_FIRST] + k]
                z[parts[c, Z_FIRST] + k] = row[2 + k]
            how[TICKED] += 1
    how[COUNT] += 1
    good = good and evaluate(f, clamped(t, at), x, z, p, n, w, out, K[stages]) == 0
    if good and finite(how, out) and not jumped_across(how, at, out, guards, sides):
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


@exact_step
def ends(how, at, clocks, jumps):
    """Tell whether the run ends now, and nothing is due."""
    end = at[TIME] + at[SAME_TIME] * max(1.0, abs(at[TIME]))
    nothing = how[ENDS] != 0
    for c in range(clocks.shape[0]):
        nothing = nothing and clocks[c, NEXT] > end
    return nothing and (how[JUMP] >= jumps.size or jumps[how[JUMP]] > end)


# Points of the grid --------------------------------------------------------------------------------------


@exact_step
def grid_time(how, at):
    """Return the time of the next point of the grid."""
    return how[POINT] * at[GRID]


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
def record_within(f, how, at, until, t_new, dense, x, z, p, n, w, out, K, columns, taken, times, states, signals):
    """Write down the points of the grid within a step, up to a time; return how many samples there are, and if it went.

    The step stands in K; x, K[0] and the time are still those of its beginning.
    """
    stages, t = how[STAGES], at[TIME]
    h = t_new - t
    point, rate = K[stages + K_POINT], K[stages + K_RATE]
    prepared = False
    while points_within(how, at, until) > 0:
        if not prepared:
            if not prepare_dense(
                f, how[STAGES], how[DENSE], dense, t, h, at[EARLIEST], at[LATEST], x, z, p, n, w, out, K
            ):
                return taken, False
            prepared = True
        moment = grid_time(how, at)
        interpolate(stages, how[DENSE], (moment - t) / h, h, dense, x, K, point)
        how[COUNT] += 1
        if evaluate(f, clamped(moment, at), point, z, p, n, w, out, rate) != 0:
            return taken, False
        taken = keep(moment, point, out, columns, taken, how, times, states, signals)
        how[POINT] += 1
    return taken, True


# Many steps ----------------------------------------------------------------------------------------------


@exact_step
def close_loops(f, close, how, at, t_new, z, p, n, w, out, K):
    """Take away from the result of a step what it let loops drift apart; return whether that could be done here."""
    stages = how[STAGES]
    result, found = K[stages + K_RESULT], K[stages + K_RATE]
    moment = clamped(t_new, at)
    if evaluate(close, moment, result, z, p, n, w, out, found) != 0:
        return False
    moved = False
    for i in range(result.size):
        moved = moved or found[i] != result[i]
        result[i] = found[i]
    if not moved:
        return True
    how[COUNT] += 1
    return evaluate(f, moment, result, z, p, n, w, out, K[stages]) == 0


@exact_step
def accept(how, at, t_new, length, x, K, guards, sides):
    """Stand at the end of a step."""
    stages, span = how[STAGES], t_new - at[TIME]
    at[TIME], at[LENGTH], at[EARLIEST] = t_new, length, -np.inf
    for i in range(x.size):
        x[i] = K[stages + K_RESULT, i]
        K[0, i] = K[stages, i]
    for g in range(guards.size):
        sides[PRIOR, g], sides[ENDED, g], sides[SPAN, g] = sides[BEFORE, g], sides[AFTER, g], span
        sides[BEFORE, g] = sides[AFTER, g]
    how[STEPS] += 1


@exact_step
def note_sides(how, at, out, guards, sides, met):
    """Note the guards behind a jump, which may have taken some across zero; one that has just fired is seen later."""
    t, before = at[TIME], how[MET]
    for g in range(guards.size):
        value = out[guards[g]]
        bends = crossed(sides[BEFORE, g], value, sides[DIRECTION, g])
        if not math.isnan(sides[BEFORE, g]) or settled(t, sides[FIRED_AT, g]):
            sides[BEFORE, g] = value
        if bends:
            note_bend(how, at, t, value, g, sides, met)
    if how[MET] > before:
        at[LENGTH], at[LAST_EVENT] = min(at[LENGTH], t - at[LAST_EVENT]), t
        for g in range(guards.size):
            if math.isnan(sides[BEFORE, g]) and sides[FIRED_AT, g] != t:
                sides[BEFORE, g] = out[guards[g]]


@exact_step
def stop_at_crossing(
    f, table, how, at, t_new, limit, length, dense, x, z, p, n, w, out, K, guards, sides, columns, taken, room, times,
    states, signals,
):  # fmt: skip
    """Stand where the first guard crosses zero in a step, not beyond a limit; keep the points of the grid before it.

    Returns how many samples there are, and `CROSSED`; `LOOK` where that could not be done here, `WENT` where there is
    no room for the points: the run stands before the step then.
    """
    stages, before = how[STAGES], taken
    moment = located(f, table, how, at, t_new, dense, x, z, p, n, w, out, K, guards, sides)
    if not moment <= limit:  # NaN too
        return taken, LOOK
    within = points_within(how, at, moment)
    if taken + within > room:
        return taken, WENT
    result, found = K[stages + K_RESULT], K[stages + K_END]
    for i in range(x.size):
        found[i] = result[i]
    if within > 0:
        good = attempt(f, table, how, at, t_new - at[TIME], x, z, p, n, w, out, K) == 0  # those in K are shorter ones
        if good:
            taken, good = record_within(
                f, how, at, moment, t_new, dense, x, z, p, n, w, out, K, columns, taken, times, states, signals
            )
        if not good:
            how[POINT] -= taken - before
            return before, LOOK
    at[TIME], at[LENGTH] = moment, length
    for i in range(x.size):
        x[i] = found[i]
    how[STEPS] += 1
    return taken, CROSSED


@exact_step
def passed(f, how, at, x, z, p, n, w, out, K, guards, sides, met):
    """Go on where the guards that have crossed zero here only end a step, and nothing follows; return whether it is so.

    Else all is left as it was found, for Python. What is done is what `Run._event` and `Crossings` do; the signals then
    stand in out.
    """
    stages, t, count = how[STAGES], at[TIME], how[MET]
    if not apart(at, t):
        return False
    for g in range(guards.size):
        if not math.isnan(sides[CROSSES_AT, g]):
            count += 1
            if sides[BENDS, g] == 0.0:
                return False
    if count > how[MOST_MET]:
        return False
    earliest = at[EARLIEST]
    at[EARLIEST] = -np.inf
    how[COUNT] += 1
    good = evaluate(f, clamped(t, at), x, z, p, n, w, out, K[stages]) == 0 and finite(how, out)
    for g in range(guards.size):
        value = out[guards[g]]
        if not math.isfinite(value):
            good = False
        elif math.isnan(sides[CROSSES_AT, g]) and crossed(sides[BEFORE, g], value, sides[DIRECTION, g]):
            good = False
    if not good:
        at[EARLIEST] = earliest
        return False
    for g in range(guards.size):
        value = out[guards[g]]
        if math.isnan(sides[CROSSES_AT, g]):
            sides[BEFORE, g] = value
        else:
            note_bend(how, at, t, value, g, sides, met)
    for i in range(x.size):
        K[0, i] = K[stages, i]
    at[LENGTH], at[LAST_EVENT] = min(at[LENGTH], t - at[LAST_EVENT]), t
    return True


@exact_step
def trial(f, table, how, at, x, z, p, n, w, out, K):
    """Try a step of the length `LENGTH` from x, whose derivative is K[0]; return 0 or what the diagram returned."""
    return attempt(f, table, how, at, at[LENGTH], x, z, p, n, w, out, K)


@exact_step
def advance(
    f, close, table, dense, how, at, x, z, p, n, w, out, K, guards, sides, columns, clocks, parts, jumps, ticked, met,
    times, states, signals,
):  # fmt: skip
    """Take steps until a time, as many as there is room for, and keep them; return how it ended, and how many.

    K[0] holds the derivative at (t, x). Time, length of the step, x, z, K[0], the sides of the guards, the clocks and
    what is due next are brought up to date; `times`, `states` and `signals` receive each accepted point, or those of
    the grid, the signals from the given columns of out; `ticked` the ticks, `met` when which guard has crossed where
    nothing happens. The end of the last step is not among them where Python has something to do there, as at a
    crossing, of which `sides` says which guards have crossed.
    """
    stages, taken = how[STAGES], np.int64(0)
    room = times.size - 2
    while taken < room and how[STEPS] < how[MOST] and how[TICKED] + clocks.shape[0] <= ticked.shape[0]:
        bound, jumped, ours = next_due(how, at, clocks, jumps)
        ready = False
        if at[TIME] >= bound and not ours:
            return WENT, taken
        if at[TIME] < bound:
            at[LATEST] = np.inf
            if jumped:
                edge = min(bound, jumps[how[JUMP]])  # which is as good as the bound, and may be a little before
                at[LATEST] = edge - at[JUMP_WIDTH] * (np.nextafter(edge, np.inf) - edge)
            how[AT_TICK] = seen_by_step(how, at, bound, jumped, ours, clocks, parts)
            if how[ADAPTIVE] != 0:
                if at[LENGTH] <= 0.0 and choose_length(f, how, at, bound, x, z, p, n, w, out, K) != 0:
                    return LOOK, taken
                good, t_new, length = adaptive_step(f, table, how, at, bound, x, z, p, n, w, out, K, clocks, parts)
            else:
                good, t_new, length = fixed_step(f, table, how, at, bound, x, z, p, n, w, out, K, clocks, parts)
            if not (good and finite(how, out)):
                return LOOK, taken
            evaluations, ready = how[COUNT], how[AT_TICK] != 0
            crossings = bracketed(f, table, how, at, t_new, dense, x, z, p, n, w, out, K, guards, sides)
            limit = np.inf
            if (jumped or at[GRID] > 0.0) and t_new >= bound:  # what crosses there is done with what is due
                limit = bound - at[SAME_TIME] * max(1.0, abs(bound))
            if crossings > 0:
                taken, went = stop_at_crossing(
                    f, table, how, at, t_new, limit, length, dense, x, z, p, n, w, out, K, guards, sides, columns,
                    taken, room, times, states, signals,
                )  # fmt: skip
                if went != CROSSED or not passed(f, how, at, x, z, p, n, w, out, K, guards, sides, met):
                    return (LOOK if went == WENT and taken == 0 else went), taken
                if not at[GRID] > 0.0 or on_grid(how, at, at[TIME]):
                    taken = keep(at[TIME], x, out, columns, taken, how, times, states, signals)
                    how[POINT] += at[GRID] > 0.0
                continue
            if crossings != 0:
                return LOOK, taken
            within = points_within(how, at, t_new)
            if within > room:
                return LOOK, taken
            if taken + within > room:
                return WENT, taken
            if how[COUNT] != evaluations:  # the signals are those of another time
                how[COUNT] += 1
                ready = False
                if evaluate(f, clamped(t_new, at), K[stages + K_RESULT], z, p, n, w, out, K[stages + K_RATE]) != 0:
                    return LOOK, taken
            before = taken
            if within > 0:
                taken, good = record_within(
                    f, how, at, t_new, t_new, dense, x, z, p, n, w, out, K, columns, taken, times, states, signals
                )
                if not good:
                    how[POINT] -= taken - before
                    return LOOK, before
            if how[CLOSED] != 0 and not close_loops(f, close, how, at, t_new, z, p, n, w, out, K):
                how[POINT] -= taken - before
                return LOOK, before
            ready = ready and how[COUNT] == evaluations
            accept(how, at, t_new, length, x, K, guards, sides)
            jump_kept = jumped and ours and t_new >= bound and not at[GRID] > 0.0
            before_bound = t_new < bound - at[SAME_TIME] * max(1.0, abs(bound)) and on_grid(how, at, t_new)
            if (t_new < bound and (not at[GRID] > 0.0 or before_bound)) or jump_kept:
                if taken > before and at[GRID] > 0.0:  # the signals are those of the grid's last point
                    how[COUNT] += 1
                    if evaluate(f, clamped(t_new, at), x, z, p, n, w, out, K[stages]) != 0:
                        return LOOK, taken
                taken = keep(t_new, x, out, columns, taken, how, times, states, signals)
                how[POINT] += at[GRID] > 0.0
            if t_new < bound:
                continue
            if not ours:
                if ends(how, at, clocks, jumps):
                    taken = keep(t_new, x, out, columns, taken, how, times, states, signals)
                return WENT, taken
        if not tick(f, how, at, jumped, ready, x, z, p, n, w, out, K, guards, sides, clocks, parts, ticked):
            return LOOK, taken
        pass_on(how, at, clocks, jumps)
        for i in range(x.size):
            K[0, i] = K[stages, i]
        note_sides(how, at, out, guards, sides, met)
        if not at[GRID] > 0.0 or on_grid(how, at, at[TIME]):
            taken = keep(at[TIME], x, out, columns, taken, how, times, states, signals)
            how[POINT] += at[GRID] > 0.0
    return WENT, taken
