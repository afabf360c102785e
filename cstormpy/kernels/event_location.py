"""Zero crossings of a compiled diagram's guards within a step, found as `cstormpy.simulation.crossings` finds them.

A step from (t0, x) to t1 stands in a table K, whose rows are those of `dense`; its end is kept there while shorter
steps are tried. A guard is an element of the diagram's output.
"""

import math

import numpy as np

from cstormpy.kernels import roots
from cstormpy.kernels.dense import DENSE, K_END, K_POINT, K_RATE, K_RESULT, STAGES, interpolate, prepare_dense
from cstormpy.kernels.diagram_rate import evaluate
from cstormpy.kernels.rungekutta import COUNT, EARLIEST, LATEST, SEARCH, TIME, attempt, clamped
from cstormpy.kernels.steps import exact_step

# sides: what is known of each guard; NaN before where it has just fired, and NaN for the time where it does not cross.
# Of the step before: where the guard was at its beginning and its end, and how long it was.
BEFORE, DIRECTION, AFTER, FIRED_AT, LEFT, RIGHT, FIRST, LAST, CROSSES_AT, PRIOR, ENDED, SPAN = range(12)
#: Where it has stood when it fired, and whether nothing happens there but that a step ends.
LEFT_AT, BENDS, SIDES = 12, 13, 14

#: Of events that are less apart (as TOGETHER) it is looked at whether they chatter.
APART = 1e-7

_LOOKS, _TOGETHER, _GUESS, _SETTLING, _TINY = roots.LOOKS, roots.TOGETHER, roots.GUESS, roots.SETTLING, roots.TINY
_AT_ONCE, _MOST, _ROOT, _QUESTION, _BEYOND = roots.AT_ONCE, roots.MOST, roots.ROOT, roots.QUESTION, roots.BEYOND
_NEAR, _TURNS = roots.NEAR, roots.TURNS
_begin, _tell = exact_step(roots.begin), exact_step(roots.tell)


@exact_step
def crossed(before, after, direction):
    """Tell whether a guard has reached zero from one side, or left zero, in a direction (0: in any)."""
    rising = ((before < 0.0 and after >= 0.0) or (before == 0.0 and after > 0.0)) and direction >= 0.0
    falling = ((before > 0.0 and after <= 0.0) or (before == 0.0 and after < 0.0)) and direction <= 0.0
    return rising or falling


@exact_step
def settled(t, fired_at):
    return t - fired_at > _SETTLING * max(1.0, abs(t))


@exact_step
def turning(before, after, prior, ended, span, length):
    """Return how long after the beginning of a step a guard turns near zero, back to its side; NaN where it does not.

    That is where the parabola does so through its values at the ends of this step and of the one before.
    """
    change, change_before = after - before, before - prior
    if not (change_before * before < 0.0 and before * after > 0.0 and before == ended):
        return np.nan
    bend = change * span - change_before * length  # but for a factor, as what follows
    rate = change * span * (length + span)
    if not (before * (rate - bend * length) < 0.0 and before * (rate + bend * length) > 0.0):
        return np.nan
    turn = 0.5 * (length - rate / bend)
    reach = abs(before) - abs(bend) * turn * turn / (length * span * (length + span))
    return turn if reach < _NEAR * max(abs(change), abs(change_before)) else np.nan


@exact_step
def turning_again(before, value, after, turn, length):
    """Return where it does so by its value at a time within the step; NaN where it does not."""
    rate, rest = (value - before) / turn, (after - value) / (length - turn)
    bend = (rest - rate) / length
    return 0.5 * (turn - rate / bend) if bend * before > 0.0 else np.nan


@exact_step
def seen_at(f, table, how, at, t1, dense, exactly, t, place, x, z, p, n, w, out, K):
    """Return a guard at a time within the step, by the dense output or by a shorter step; NaN where f failed."""
    stages, t0 = how[STAGES], at[TIME]
    state = K[stages + K_POINT]
    if exactly and t == t1:
        state = K[stages + K_END]
    elif exactly and t > t0:
        if attempt(f, table, how, at, t - t0, x, z, p, n, w, out, K) != 0:
            return np.nan
        state = K[stages + K_RESULT]
    else:
        interpolate(stages, how[DENSE], (t - t0) / (t1 - t0), t1 - t0, dense, x, K, state)
    how[COUNT] += 1
    if evaluate(f, clamped(t, at), state, z, p, n, w, out, K[stages + K_RATE]) != 0:
        return np.nan
    return out[place]


@exact_step
def bracketed(f, table, how, at, t1, dense, x, z, p, n, w, out, K, guards, sides):
    """Find between which times each guard crosses zero; return how many do, or -1 where that cannot be told here.

    The signals at the end of the step stand in out, and those of some other time may stand there afterwards.
    """
    count, t0, ready, still = 0, at[TIME], False, True
    for g in range(guards.size):
        after = out[guards[g]]
        sides[AFTER, g], sides[CROSSES_AT, g] = after, np.nan
        if not math.isfinite(after):
            return -1
        turn = turning(sides[BEFORE, g], after, sides[PRIOR, g], sides[ENDED, g], sides[SPAN, g], t1 - t0)
        still = still and sides[BEFORE, g] * after > 0.0 and math.isnan(turn)
    if still:  # each is on the side where it was
        return 0
    for g in range(guards.size):
        before, direction, left = sides[BEFORE, g], sides[DIRECTION, g], t0
        after = sides[AFTER, g]
        turn = turning(before, after, sides[PRIOR, g], sides[ENDED, g], sides[SPAN, g], t1 - t0)
        for _ in range(_TURNS):
            if not 0.0 < turn < t1 - t0:
                break
            if not ready:
                ready = prepare_dense(
                    f, how[STAGES], how[DENSE], dense, t0, t1 - t0, at[EARLIEST], at[LATEST], x, z, p, n, w, out, K
                )
                if not ready:
                    return -1
            value = seen_at(f, table, how, at, t1, dense, False, t0 + turn, guards[g], x, z, p, n, w, out, K)
            if math.isnan(value):
                return -1
            if before * value < 0.0:  # to the other side and back: one of both is a crossing
                there = crossed(before, value, direction)
                sides[LEFT, g], sides[RIGHT, g] = (t0, t0 + turn) if there else (t0 + turn, t1)
                sides[FIRST, g], sides[LAST, g] = (before, value) if there else (value, after)
                sides[CROSSES_AT, g] = sides[RIGHT, g]
                count += 1
                break
            turn = turning_again(before, value, after, turn, t1 - t0)
        if not math.isnan(sides[CROSSES_AT, g]):
            continue
        looks = 0 if math.isnan(before) else len(_LOOKS) - 1
        for k in range(looks, len(_LOOKS)):
            right, value = t0 + _LOOKS[k] * (t1 - t0), sides[AFTER, g]
            if looks > 0:
                right = t1
            elif not settled(right, sides[FIRED_AT, g]):
                continue
            elif _LOOKS[k] != 1.0:
                if not ready:
                    ready = prepare_dense(
                        f, how[STAGES], how[DENSE], dense, t0, t1 - t0, at[EARLIEST], at[LATEST], x, z, p, n, w, out, K
                    )
                    if not ready:
                        return -1
                value = seen_at(f, table, how, at, t1, dense, False, right, guards[g], x, z, p, n, w, out, K)
                if math.isnan(value):
                    return -1
            if crossed(before, value, direction):  # nothing crosses from a side that is not known
                sides[LEFT, g], sides[RIGHT, g], sides[FIRST, g], sides[LAST, g] = left, right, before, value
                sides[CROSSES_AT, g] = right
                count += 1
                break
            left, before = right, value
        if math.isnan(sides[BEFORE, g]) and not settled(t1, sides[FIRED_AT, g]):
            sides[AFTER, g] = np.nan
    return count


@exact_step
def beyond(value, rises, zero):
    """Return a value as how far it is beyond the crossing, which is never zero."""
    if value == 0.0:
        return zero
    return value if rises else -value


@exact_step
def root(f, table, how, at, t1, dense, exactly, a, b, rises, zero, place, x, z, p, n, w, out, K, search):
    """Return the first time found behind the crossing between two times, infinite if none is there; NaN: f failed."""
    value = seen_at(f, table, how, at, t1, dense, exactly, a, place, x, z, p, n, w, out, K)
    first = beyond(value, rises, zero)
    value = seen_at(f, table, how, at, t1, dense, exactly, b, place, x, z, p, n, w, out, K)
    last = beyond(value, rises, zero)
    if math.isnan(first) or math.isnan(last):
        return np.nan
    if first > 0.0 or last < 0.0:
        return np.inf
    most = max(abs(a), abs(b))
    _begin(search, a, first, b, last, 4.0 * (np.nextafter(most, np.inf) - most))
    for _ in range(_MOST):
        value = seen_at(f, table, how, at, t1, dense, exactly, search[_QUESTION], place, x, z, p, n, w, out, K)
        if math.isnan(value):
            return np.nan
        if _tell(search, beyond(value, rises, zero)):
            break
    return search[_BEYOND]


@exact_step
def located(f, table, how, at, t1, dense, x, z, p, n, w, out, K, guards, sides):
    """Find the first crossing of those that `bracketed` has found; return its time, NaN where f failed.

    The state there then stands as the result in K, and CROSSES_AT is NaN for guards that do not cross then.
    """
    stages, t0, earliest = how[STAGES], at[TIME], np.inf
    search = at[SEARCH : SEARCH + _ROOT]
    for i in range(x.size):
        K[stages + K_END, i] = K[stages + K_RESULT, i]
    if not prepare_dense(
        f, how[STAGES], how[DENSE], dense, t0, t1 - t0, at[EARLIEST], at[LATEST], x, z, p, n, w, out, K
    ):
        return np.nan
    for g in range(guards.size):
        if math.isnan(sides[CROSSES_AT, g]):
            continue
        left, right, place = sides[LEFT, g], sides[RIGHT, g], guards[g]
        rises = sides[LAST, g] > sides[FIRST, g]
        zero = -_TINY if sides[FIRST, g] == 0.0 else _TINY
        near = found = np.inf
        for k in range(3):  # by the dense output, by shorter steps near what that has found, and by these everywhere
            a, b = left, right
            if k == 1:
                if near == np.inf:
                    continue
                guess = _GUESS * (right - left)
                a, b = max(left, near - guess), min(right, near + guess)
            found = root(f, table, how, at, t1, dense, k > 0, a, b, rises, zero, place, x, z, p, n, w, out, K, search)
            if math.isnan(found):
                return np.nan
            if k == 0:
                near = found
            elif found < np.inf:
                break
        if found == np.inf:
            value = seen_at(f, table, how, at, t1, dense, True, left, place, x, z, p, n, w, out, K)
            found = min(near, right)
            if beyond(value, rises, zero) > 0.0:  # NaN, where f failed, is not
                found = min(right, left + _AT_ONCE * max(1.0, abs(left)))
        sides[CROSSES_AT, g] = found
        earliest = min(earliest, found)
    moment = earliest
    for g in range(guards.size):
        if sides[CROSSES_AT, g] <= earliest + _TOGETHER * max(1.0, abs(earliest)):
            moment = max(moment, sides[CROSSES_AT, g])
        else:
            sides[CROSSES_AT, g] = np.nan
    if moment < t1:
        if attempt(f, table, how, at, moment - t0, x, z, p, n, w, out, K) != 0:
            return np.nan
    else:
        for i in range(x.size):
            K[stages + K_RESULT, i] = K[stages + K_END, i]
    return moment
