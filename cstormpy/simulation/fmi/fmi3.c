/* FMI 3.0 for co-simulation around a diagram. */
#include <stdbool.h>
#include <stdint.h>
#include "model.h"
#include "core.h"

typedef void *fmi3Instance;
typedef enum { fmi3OK, fmi3Warning, fmi3Discard, fmi3Error, fmi3Fatal } fmi3Status;
typedef void (*Logger)(void *environment, fmi3Status status, const char *category, const char *message);
typedef struct {
    State state;
    Logger logger;
    void *environment;
    int initializing;
} Instance;

static fmi3Status told(Instance *c, int failed) {
    if (!failed) return fmi3OK;
    if (c->logger) c->logger(c->environment, fmi3Error, "logStatusError", reason_of(failed));
    return fmi3Error;
}

EXPORT const char *fmi3GetVersion(void) { return "3.0"; }
EXPORT fmi3Status fmi3SetDebugLogging(fmi3Instance c, bool on, size_t n, const char *const categories[]) {
    (void)c; (void)on; (void)n; (void)categories;
    return fmi3OK;
}
EXPORT fmi3Instance fmi3InstantiateCoSimulation(const char *name, const char *token, const char *resources, bool visible,
                                                bool logging, bool events, bool early, const uint32_t required[],
                                                size_t n, void *environment, Logger logger, void *intermediate) {
    Instance *c;
    (void)name; (void)resources; (void)visible; (void)logging; (void)early; (void)required; (void)intermediate;
    if (events || n || !token || strcmp(token, GUID)) {
        if (logger)
            logger(environment, fmi3Error, "logStatusError",
                   events || n ? "it has no events and no intermediate variables" : "the token is that of another model");
        return NULL;
    }
    c = calloc(1, sizeof *c);
    if (!c) return NULL;
    c->logger = logger;
    c->environment = environment;
    start(&c->state);
    c->initializing = 1;
    return c;
}
EXPORT fmi3Instance fmi3InstantiateModelExchange(void) { return NULL; }
EXPORT fmi3Instance fmi3InstantiateScheduledExecution(void) { return NULL; }
EXPORT void fmi3FreeInstance(fmi3Instance c) { free(c); }
EXPORT fmi3Status fmi3EnterInitializationMode(fmi3Instance c, bool with_tolerance, double tolerance, double begin,
                                              bool with_stop, double stop) {
    State *s = &((Instance *)c)->state;
    (void)with_stop; (void)stop; (void)with_tolerance; (void)tolerance;
#if ADAPTIVE
    if (with_tolerance && tolerance > 0.0) s->solver[0] = tolerance;
#endif
    begin_at(s, begin);
    return fmi3OK;
}
EXPORT fmi3Status fmi3ExitInitializationMode(fmi3Instance c) {
    ((Instance *)c)->initializing = 0;
    return told(c, refresh(&((Instance *)c)->state));
}
EXPORT fmi3Status fmi3Terminate(fmi3Instance c) { (void)c; return fmi3OK; }
EXPORT fmi3Status fmi3Reset(fmi3Instance c) {
    start(&((Instance *)c)->state);
    ((Instance *)c)->initializing = 1;
    return fmi3OK;
}
EXPORT fmi3Status fmi3GetFloat64(fmi3Instance c, const uint32_t vr[], size_t n, double value[], size_t values) {
    return told(c, n == values ? get_numbers(&((Instance *)c)->state, vr, n, value) : NO_SUCH);
}
EXPORT fmi3Status fmi3SetFloat64(fmi3Instance c, const uint32_t vr[], size_t n, const double value[], size_t values) {
    Instance *i = c;
    return told(c, n == values ? set_numbers(&i->state, vr, n, value, i->initializing) : NO_SUCH);
}
EXPORT fmi3Status fmi3GetFMUState(fmi3Instance c, void **state) {
    if (!*state) *state = malloc(sizeof(State));
    if (!*state) return fmi3Error;
    memcpy(*state, &((Instance *)c)->state, sizeof(State));
    return fmi3OK;
}
EXPORT fmi3Status fmi3SetFMUState(fmi3Instance c, void *state) {
    memcpy(&((Instance *)c)->state, state, sizeof(State));
    return fmi3OK;
}
EXPORT fmi3Status fmi3FreeFMUState(fmi3Instance c, void **state) {
    (void)c;
    free(*state);
    *state = NULL;
    return fmi3OK;
}
EXPORT fmi3Status fmi3SerializedFMUStateSize(fmi3Instance c, void *state, size_t *size) {
    (void)c; (void)state;
    *size = sizeof(State);
    return fmi3OK;
}
EXPORT fmi3Status fmi3SerializeFMUState(fmi3Instance c, void *state, uint8_t bytes[], size_t size) {
    if (size < sizeof(State)) return told(c, NO_SUCH);
    memcpy(bytes, state, sizeof(State));
    return fmi3OK;
}
EXPORT fmi3Status fmi3DeserializeFMUState(fmi3Instance c, const uint8_t bytes[], size_t size, void **state) {
    if (size != sizeof(State)) return told(c, NO_SUCH);
    if (!*state) *state = malloc(sizeof(State));
    if (!*state) return fmi3Error;
    memcpy(*state, bytes, sizeof(State));
    return fmi3OK;
}
EXPORT fmi3Status fmi3DoStep(fmi3Instance c, double now, double duration, bool no_earlier, bool *event, bool *terminate,
                             bool *early, double *last) {
    Instance *i = c;
    int failed;
    (void)no_earlier;
    failed = step(&i->state, now, duration);
    *event = *terminate = *early = false;
    *last = i->state.t;
    return told(c, failed);
}

/* What belongs to other kinds of units, or to numbers that it has none of. */
#define NONE(NAME) \
    EXPORT fmi3Status fmi3##NAME(fmi3Instance c) { return told(c, NO_SUCH); }
NONE(EnterEventMode) NONE(EnterStepMode) NONE(EnterConfigurationMode) NONE(ExitConfigurationMode)
NONE(EnterContinuousTimeMode) NONE(EvaluateDiscreteStates) NONE(UpdateDiscreteStates) NONE(CompletedIntegratorStep)
NONE(SetTime) NONE(SetContinuousStates) NONE(GetContinuousStateDerivatives) NONE(GetEventIndicators)
NONE(GetContinuousStates) NONE(GetNominalsOfContinuousStates) NONE(GetNumberOfEventIndicators)
NONE(GetNumberOfContinuousStates) NONE(GetOutputDerivatives) NONE(ActivateModelPartition)
NONE(GetNumberOfVariableDependencies) NONE(GetVariableDependencies) NONE(GetDirectionalDerivative)
NONE(GetAdjointDerivative) NONE(GetIntervalDecimal) NONE(GetIntervalFraction) NONE(GetShiftDecimal)
NONE(GetShiftFraction) NONE(SetIntervalDecimal) NONE(SetIntervalFraction) NONE(SetShiftDecimal) NONE(SetShiftFraction)
NONE(GetFloat32) NONE(GetInt8) NONE(GetUInt8) NONE(GetInt16) NONE(GetUInt16) NONE(GetInt32) NONE(GetUInt32)
NONE(GetInt64) NONE(GetUInt64) NONE(GetBoolean) NONE(GetString) NONE(GetBinary) NONE(GetClock)
NONE(SetFloat32) NONE(SetInt8) NONE(SetUInt8) NONE(SetInt16) NONE(SetUInt16) NONE(SetInt32) NONE(SetUInt32)
NONE(SetInt64) NONE(SetUInt64) NONE(SetBoolean) NONE(SetString) NONE(SetBinary) NONE(SetClock)
