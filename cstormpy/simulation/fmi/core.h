/* An instance of a diagram: its numbers, its steps by an explicit Runge-Kutta method, and the ticks of its clocks.
 *
 * Included behind the numbers and the function `rate` of one diagram (model.h). Value references count, from 0: the
 * time, inputs, outputs, parameters, states, and the numbers of the solver.
 */
#include <stdlib.h>
#include <string.h>

#if defined _WIN32
#define EXPORT __declspec(dllexport)
#else
#define EXPORT __attribute__((visibility("default")))
#endif

enum { VR_INPUTS = 1, VR_OUTPUTS = VR_INPUTS + NU, VR_PARAMETERS = VR_OUTPUTS + NY, VR_STATES = VR_PARAMETERS + NPAR,
       VR_SOLVER = VR_STATES + NX, VR_END = VR_SOLVER + NSOLVER };

/* All that makes up where an instance stands; what is in it may be copied as it is. */
typedef struct {
    double t, length;                                   /* the time, and the length of the step to try next */
    double u[NU + 1], parameters[NPAR + 1], x[NX + 1], solver[NSOLVER];
    double z[NZ + 1], tick[NCLOCKS + 1];                /* sampled states and what is held; number of the next tick */
    double first[NCLOCKS + 1];                          /* number of the first tick, of those counted from a time of 0 */
    double p[NP + 1], out[NOUT + 1], xd[NX + 1];
    double earliest, latest;                            /* times that signals are asked for, beside a jump */
    int begun;                                          /* whether a step has been taken */
    int stale;                                          /* whether p or the signals do not belong to the rest */
} State;

/* Numbers of the block that has failed, counted from 1; 0 where none has. */
static int evaluate(const State *s, double t, const double *x, double *out, double *xd) {
    static const double nothing[1] = {0.0};
    static const long long none[1] = {0};
    return rate(fmin(fmax(t, s->earliest), s->latest), x, s->z, s->p, none, nothing, out, xd);
}

static void start(State *s) {
    memset(s, 0, sizeof *s);
    memcpy(s->u, INPUTS_AT_START, sizeof INPUTS_AT_START);
    memcpy(s->parameters, PARAMETERS_AT_START, sizeof PARAMETERS_AT_START);
    memcpy(s->x, STATES_AT_START, sizeof STATES_AT_START);
    memcpy(s->solver, SOLVER_AT_START, sizeof SOLVER_AT_START);
    memcpy(s->z, SAMPLED_AT_START, sizeof SAMPLED_AT_START);
    s->earliest = -INFINITY;
    s->latest = INFINITY;
    s->stale = 1;
}

/* Bring what the diagram's function reads, and its signals, up to date. */
static int refresh(State *s) {
    int k, failed;
    if (!s->stale) return 0;
    memcpy(s->p, P, sizeof P);
    for (k = 0; k < NSLOPES; k++) {
        int j = SLOPE_OF[k];
        s->p[SLOPE_AT[k]] += SLOPES[k] * (s->parameters[j] - PARAMETERS_AT_START[j]);
    }
    for (k = 0; k < NU; k++) s->p[INPUT_AT[k]] = s->u[k];
    failed = evaluate(s, s->t, s->x, s->out, s->xd);
    s->stale = failed != 0;
    return failed;
}

/* A step of length h from (t, x), whose derivative is K[0]; K[STAGES] is that at its end, in z. */
static int attempt(const State *s, double t, const double *x, double h, double K[STAGES + 1][NX + 1], double *z) {
    double out[NOUT + 1];
    int i, j, k, failed;
    for (j = 1; j <= STAGES; j++) {
        const double *weights = j < STAGES ? A[j] : B;
        for (i = 0; i < NX; i++) {
            double sum = 0.0;
            for (k = 0; k < j; k++) sum += weights[k] * K[k][i];
            z[i] = x[i] + h * sum;
        }
        failed = evaluate(s, t + (j < STAGES ? C[j] : 1.0) * h, z, out, K[j]);
        if (failed) return failed;
    }
    return 0;
}

static int is_finite(const double *x) {
    double nothing = 0.0;
    int i;
    for (i = 0; i < NX; i++) nothing += 0.0 * x[i];
    return nothing == 0.0;
}

/* Why a step cannot be taken; NO_SUCH is that of a number that cannot be read or set. */
enum { NOT_FINITE = -1, TOO_SHORT = -2, NO_SUCH = -3, OPENED = -4 };

/* Take away what a step to a time has let the loops of mechanisms drift apart, and have the derivative there in xd. */
static int shut(const State *s, double t, double *x, double *xd) {
#if CLOSES
    static const double nothing[1] = {0.0};
    static const long long none[1] = {0};
    double out[NOUT + 1], closed[NX + 1];
    if (closing(fmin(fmax(t, s->earliest), s->latest), x, s->z, s->p, none, nothing, out, closed)) return OPENED;
    if (!memcmp(x, closed, NX * sizeof *x)) return 0;
    memcpy(x, closed, NX * sizeof *x);
    return evaluate(s, t, x, out, xd);
#else
    (void)s, (void)t, (void)x, (void)xd;
    return 0;
#endif
}

#if ADAPTIVE
static double error_of(const State *s, double h, const double *x, const double *z, double K[STAGES + 1][NX + 1]) {
    double total = 0.0;
    int i, k;
    for (i = 0; i < NX; i++) {
        double sum = 0.0, scale = s->solver[1] + fmax(fabs(x[i]), fabs(z[i])) * s->solver[0];
        for (k = 0; k <= STAGES; k++) sum += E[k] * K[k][i];
        total += (sum * h / scale) * (sum * h / scale);
    }
    return NX ? sqrt(total / NX) : 0.0;
}

/* Steps whose lengths follow their estimated errors (Hairer, Norsett and Wanner, II.4), up to a time. */
static int advance(State *s, double end) {
    double K[STAGES + 1][NX + 1], z[NX + 1];
    int failed, rejected = 0;
    memcpy(K[0], s->xd, sizeof K[0]);
    if (!(s->length > 0.0)) s->length = 1e-3 * (end - s->t);
    while (s->t < end) {
        double wanted = s->length, shortest = 10.0 * (nextafter(s->t, INFINITY) - s->t), error, factor;
        double t = s->t + wanted;
        int cut = t > end || end - t < shortest;
        double h = (cut ? end : t) - s->t;
        if (!(wanted >= shortest) && !cut) return TOO_SHORT;
        failed = attempt(s, s->t, s->x, h, K, z);
        error = failed ? NAN : error_of(s, h, s->x, z, K);
        if (error < 1.0 && (failed = shut(s, cut ? end : t, z, K[STAGES]))) error = NAN;
        if (error < 1.0) {
            factor = error == 0.0 ? MAX_FACTOR : fmin(MAX_FACTOR, SAFETY * pow(error, EXPONENT));
            if (rejected) factor = fmin(1.0, factor);
            s->length = cut ? fmax(h * factor, wanted) : h * factor;
            s->t = cut ? end : t;
            memcpy(s->x, z, sizeof s->x);
            memcpy(K[0], K[STAGES], sizeof K[0]);
            rejected = 0;
        } else {
            if (h <= shortest) return failed ? failed : TOO_SHORT;
            s->length = h * (isfinite(error) ? fmax(MIN_FACTOR, SAFETY * pow(error, EXPONENT)) : MIN_FACTOR);
            rejected = 1;
        }
    }
    return 0;
}
#else
/* Equal steps, none longer than was said, up to a time. */
static int advance(State *s, double end) {
    double K[STAGES + 1][NX + 1], z[NX + 1], begin = s->t;
    double count = ceil((end - begin) / s->solver[0] * (1.0 - 1e-9)), k, h;
    int failed;
    if (!(count >= 1.0)) count = 1.0;
    h = (end - begin) / count;
    memcpy(K[0], s->xd, sizeof K[0]);
    for (k = 0.0; k < count; k += 1.0) {
        failed = attempt(s, begin + k * h, s->x, h, K, z);
        if (!failed) failed = shut(s, k + 1.0 < count ? begin + (k + 1.0) * h : end, z, K[STAGES]);
        if (failed) return failed;
        memcpy(s->x, z, sizeof s->x);
        memcpy(K[0], K[STAGES], sizeof K[0]);
    }
    s->t = end;
    return 0;
}
#endif

/* The time of the next tick of a clock. */
static double next_tick(const State *s, int clock) { return OFFSET[clock] + s->tick[clock] * PERIOD[clock]; }

/* Stand at the time where a simulation begins, which clocks have not ticked before; from 0 on, with their tick 0. */
static void begin_at(State *s, double t) {
    int k;
    s->t = t;
    for (k = 0; k < NCLOCKS; k++) {
        double first = t > 0.0 ? ceil((t - OFFSET[k]) / PERIOD[k] - SOON) : 0.0;
        s->first[k] = s->tick[k] = fmax(0.0, first);
    }
    s->stale = 1;
}

/* Let the clocks tick that are due, all from the same signals; at the first step the others take what they hold. */
static int tick(State *s) {
    int due[NCLOCKS + 1], any = 0, k, i, failed;
    for (k = 0; k < NCLOCKS; k++) {
        due[k] = next_tick(s, k) - s->t <= SOON * PERIOD[k];
        if (due[k] || !s->begun) s->z[FLAG_AT[k]] = 1.0;
        any = any || due[k] || !s->begun;
    }
    s->begun = 1;
    if (!any) return 0;
    s->stale = 1;
    failed = refresh(s);
    if (failed) return failed;
    for (k = 0; k < NCLOCKS; k++) {
        if (s->z[FLAG_AT[k]] == 0.0) continue;
        for (i = due[k] ? 0 : OWN[k]; i < COUNT[k]; i++) s->z[Z_AT[k] + i] = s->out[NEW_AT[k] + i];
        s->z[FLAG_AT[k]] = 0.0;
        s->tick[k] += due[k];
    }
    s->stale = 1;
    return refresh(s);
}

/* How close to a jump a time is that of it. */
static double at_jump(double t) { return fmax(AT_JUMP, SAME_TIME * fabs(t)); }

/* When something jumps, which does so a time after the first tick of a clock. */
static double jump_of(const State *s, int k) { return JUMPS[k] + s->first[JUMPS_BY[k]] * PERIOD[JUMPS_BY[k]]; }

/* When a source jumps first behind a time, as some do over and over. */
static double edge_after(double t) {
    double first = INFINITY;
    int k;
    for (k = 0; k < NEDGES; k++) {
        double edge = EDGES[k];
        if (edge <= t || (t < 0.0 && EVERY[k] > 0.0))
            edge = EVERY[k] > 0.0 ? edge + (floor((t - edge) / EVERY[k]) + 1.0) * EVERY[k] : INFINITY;
        first = fmin(first, edge);
    }
    return first;
}

/* The time up to which nothing jumps, at most some end. */
static double smooth_until(const State *s, double end) {
    double close = at_jump(end), edge = edge_after(s->t + close);
    int k;
    if (end - edge > close) end = edge;
    for (k = 0; k < NCLOCKS; k++) {
        double next = next_tick(s, k);
        if (end - next > SOON * PERIOD[k]) end = fmax(next, s->t); /* a tick that is late is now */
    }
    for (k = 0; k < NJUMPS; k++) {
        double jump = jump_of(s, k);
        if (jump - s->t > close && end - jump > close) end = jump;
    }
    return end;
}

/* Have signals seen behind a jump that is now, and before one at the end of what follows. */
static void look(State *s, double until) {
    double here = at_jump(s->t), there = until < INFINITY ? at_jump(until) : 0.0;
    double now = edge_after(s->t - here), then = edge_after(until - there);
    int k;
    s->earliest = -INFINITY;
    s->latest = INFINITY;
    if (now - s->t <= here) s->earliest = now + JUMP_WIDTH * (nextafter(now, INFINITY) - now);
    if (then - until <= there) s->latest = then - JUMP_WIDTH * (nextafter(then, INFINITY) - then);
    for (k = 0; k < NJUMPS; k++) {
        double jump = jump_of(s, k), width = JUMP_WIDTH * (nextafter(jump, INFINITY) - jump);
        if (fabs(jump - s->t) <= here) s->earliest = jump + width;
        if (fabs(jump - until) <= there) s->latest = jump - width;
    }
    s->stale = 1;
}

/* Go on for a time from now, ticks at its end left to the next step; where that fails all is as before. */
static int step(State *s, double now, double duration) {
    State before;
    double end = now + duration;
    int failed;
    if (s->t != now) s->stale = 1;
    s->t = now;
    before = *s;
    failed = refresh(s);
    if (!failed && !s->begun) {
        failed = shut(s, s->t, s->x, s->xd);
        s->stale = 1;
    }
    while (!failed && duration > 0.0 && s->t < end) {
        double until;
        failed = tick(s);
        until = smooth_until(s, end);
        look(s, until);
        if (!failed) failed = refresh(s);
        if (!failed) failed = advance(s, until);
        if (!failed && !is_finite(s->x)) failed = NOT_FINITE;
        look(s, INFINITY);
        if (!failed) failed = refresh(s);
    }
    if (failed) *s = before;
    return failed;
}

static const char *reason_of(int failed) {
    if (failed == NO_SUCH) return "there is no such number, or it cannot be set now";
    if (failed == NOT_FINITE) return "a state is not finite: take shorter steps";
    if (failed == OPENED) return "a loop of a mechanism is open: start with a closed state, take shorter steps";
    if (failed == TOO_SHORT) return "no step is short enough for the tolerances";
    return failed > 0 && failed <= NBLOCKS ? BLOCKS[failed - 1] : "a block fails";
}

/* Read a number; 0 where all went well, else the block that fails, or NO_SUCH. */
static int get_number(State *s, unsigned vr, double *value) {
    if (vr == 0) *value = s->t;
    else if (vr < VR_OUTPUTS) *value = s->u[vr - VR_INPUTS];
    else if (vr < VR_PARAMETERS) {
        int failed = refresh(s);
        if (failed) return failed;
        *value = s->out[OUTPUT_AT[vr - VR_OUTPUTS]];
    } else if (vr < VR_STATES) *value = s->parameters[vr - VR_PARAMETERS];
    else if (vr < VR_SOLVER) *value = s->x[vr - VR_STATES];
    else if (vr < VR_END) *value = s->solver[vr - VR_SOLVER];
    else return NO_SUCH;
    return 0;
}

/* Write one; states and the numbers of the solver before the first step only. */
static int set_number(State *s, unsigned vr, double value, int initializing) {
    if (vr >= VR_INPUTS && vr < VR_OUTPUTS) s->u[vr - VR_INPUTS] = value;
    else if (vr >= VR_PARAMETERS && vr < VR_STATES) s->parameters[vr - VR_PARAMETERS] = value;
    else if (vr >= VR_STATES && vr < VR_SOLVER && initializing) s->x[vr - VR_STATES] = value;
    else if (vr >= VR_SOLVER && vr < VR_END && initializing && value > 0.0) s->solver[vr - VR_SOLVER] = value;
    else return NO_SUCH;
    s->stale = 1;
    return 0;
}

static int get_numbers(State *s, const unsigned vr[], size_t n, double value[]) {
    size_t k;
    int failed = 0;
    for (k = 0; k < n && !failed; k++) failed = get_number(s, vr[k], value + k);
    return failed;
}
static int set_numbers(State *s, const unsigned vr[], size_t n, const double value[], int initializing) {
    size_t k;
    int failed = 0;
    for (k = 0; k < n && !failed; k++) failed = set_number(s, vr[k], value[k], initializing);
    return failed;
}
