/* FMI 2.0 for co-simulation around a diagram. */
#include "model.h"
#include "core.h"

typedef void *fmi2Component;
typedef enum { fmi2OK, fmi2Warning, fmi2Discard, fmi2Error, fmi2Fatal, fmi2Pending } fmi2Status;
typedef void (*Logger)(void *environment, const char *instance, fmi2Status status, const char *category,
                       const char *message, ...);
typedef struct {
    Logger logger;
    void *allocate, *release, *finished;
    void *environment;
} Callbacks;
typedef struct {
    State state;
    Callbacks callbacks;
    char name[256];
    int initializing;
} Instance;

static fmi2Status told(Instance *c, int failed) {
    if (!failed) return fmi2OK;
    if (c->callbacks.logger)
        c->callbacks.logger(c->callbacks.environment, c->name, fmi2Error, "logStatusError", "%s", reason_of(failed));
    return fmi2Error;
}

EXPORT const char *fmi2GetTypesPlatform(void) { return "default"; }
EXPORT const char *fmi2GetVersion(void) { return "2.0"; }
EXPORT fmi2Status fmi2SetDebugLogging(fmi2Component c, int on, size_t n, const char *const categories[]) {
    (void)c; (void)on; (void)n; (void)categories;
    return fmi2OK;
}

EXPORT fmi2Component fmi2Instantiate(const char *name, int type, const char *guid, const char *resources,
                                     const Callbacks *callbacks, int visible, int logging) {
    Instance *c;
    (void)resources; (void)visible; (void)logging;
    if (type != 1 || !guid || strcmp(guid, GUID)) {
        if (callbacks && callbacks->logger)
            callbacks->logger(callbacks->environment, name ? name : "", fmi2Error, "logStatusError", "%s",
                              type != 1 ? "it is for co-simulation" : "the GUID is that of another model");
        return NULL;
    }
    c = calloc(1, sizeof *c);
    if (!c) return NULL;
    if (callbacks) c->callbacks = *callbacks;
    if (name) strncpy(c->name, name, sizeof c->name - 1);
    start(&c->state);
    c->initializing = 1;
    return c;
}
EXPORT void fmi2FreeInstance(fmi2Component c) { free(c); }
EXPORT fmi2Status fmi2SetupExperiment(fmi2Component c, int with_tolerance, double tolerance, double begin, int with_stop,
                                      double stop) {
    State *s = &((Instance *)c)->state;
    (void)with_stop; (void)stop; (void)with_tolerance; (void)tolerance;
#if ADAPTIVE
    if (with_tolerance && tolerance > 0.0) s->solver[0] = tolerance;
#endif
    begin_at(s, begin);
    return fmi2OK;
}
EXPORT fmi2Status fmi2EnterInitializationMode(fmi2Component c) { (void)c; return fmi2OK; }
EXPORT fmi2Status fmi2ExitInitializationMode(fmi2Component c) {
    ((Instance *)c)->initializing = 0;
    return told(c, refresh(&((Instance *)c)->state));
}
EXPORT fmi2Status fmi2Terminate(fmi2Component c) { (void)c; return fmi2OK; }
EXPORT fmi2Status fmi2Reset(fmi2Component c) {
    start(&((Instance *)c)->state);
    ((Instance *)c)->initializing = 1;
    return fmi2OK;
}

EXPORT fmi2Status fmi2GetReal(fmi2Component c, const unsigned vr[], size_t n, double value[]) {
    return told(c, get_numbers(&((Instance *)c)->state, vr, n, value));
}
EXPORT fmi2Status fmi2SetReal(fmi2Component c, const unsigned vr[], size_t n, const double value[]) {
    return told(c, set_numbers(&((Instance *)c)->state, vr, n, value, ((Instance *)c)->initializing));
}

#define OTHER(NAME, TYPE)                                                                                              \
    EXPORT fmi2Status fmi2##NAME(fmi2Component c, const unsigned vr[], size_t n, TYPE value[]) {                       \
        (void)vr; (void)value;                                                                                         \
        return told(c, n ? NO_SUCH : 0);                                                                               \
    }
OTHER(GetInteger, int)
OTHER(GetBoolean, int)
OTHER(GetString, const char *)
OTHER(SetInteger, const int)
OTHER(SetBoolean, const int)
OTHER(SetString, const char *const)

EXPORT fmi2Status fmi2GetFMUstate(fmi2Component c, void **state) {
    if (!*state) *state = malloc(sizeof(State));
    if (!*state) return fmi2Error;
    memcpy(*state, &((Instance *)c)->state, sizeof(State));
    return fmi2OK;
}
EXPORT fmi2Status fmi2SetFMUstate(fmi2Component c, void *state) {
    memcpy(&((Instance *)c)->state, state, sizeof(State));
    return fmi2OK;
}
EXPORT fmi2Status fmi2FreeFMUstate(fmi2Component c, void **state) {
    (void)c;
    free(*state);
    *state = NULL;
    return fmi2OK;
}
EXPORT fmi2Status fmi2SerializedFMUstateSize(fmi2Component c, void *state, size_t *size) {
    (void)c; (void)state;
    *size = sizeof(State);
    return fmi2OK;
}
EXPORT fmi2Status fmi2SerializeFMUstate(fmi2Component c, void *state, char bytes[], size_t size) {
    if (size < sizeof(State)) return told(c, NO_SUCH);
    memcpy(bytes, state, sizeof(State));
    return fmi2OK;
}
EXPORT fmi2Status fmi2DeSerializeFMUstate(fmi2Component c, const char bytes[], size_t size, void **state) {
    if (size != sizeof(State)) return told(c, NO_SUCH);
    if (!*state) *state = malloc(sizeof(State));
    if (!*state) return fmi2Error;
    memcpy(*state, bytes, sizeof(State));
    return fmi2OK;
}

EXPORT fmi2Status fmi2DoStep(fmi2Component c, double now, double duration, int no_earlier) {
    (void)no_earlier;
    return told(c, step(&((Instance *)c)->state, now, duration));
}

EXPORT fmi2Status fmi2CancelStep(fmi2Component c) { (void)c; return fmi2Error; }
EXPORT fmi2Status fmi2GetDirectionalDerivative(fmi2Component c, const unsigned of[], size_t n, const unsigned to[],
                                               size_t m, const double seed[], double found[]) {
    (void)c; (void)of; (void)n; (void)to; (void)m; (void)seed; (void)found;
    return fmi2Error;
}
EXPORT fmi2Status fmi2SetRealInputDerivatives(fmi2Component c, const unsigned vr[], size_t n, const int order[],
                                              const double value[]) {
    (void)c; (void)vr; (void)n; (void)order; (void)value;
    return fmi2Error;
}
EXPORT fmi2Status fmi2GetRealOutputDerivatives(fmi2Component c, const unsigned vr[], size_t n, const int order[],
                                               double value[]) {
    (void)c; (void)vr; (void)n; (void)order; (void)value;
    return fmi2Error;
}
#define STATUS(NAME, TYPE)                                                                                             \
    EXPORT fmi2Status fmi2Get##NAME(fmi2Component c, int kind, TYPE *value) {                                          \
        (void)c; (void)kind; (void)value;                                                                              \
        return fmi2Discard;                                                                                            \
    }
STATUS(Status, int)
STATUS(IntegerStatus, int)
STATUS(BooleanStatus, int)
STATUS(StringStatus, const char *)
EXPORT fmi2Status fmi2GetRealStatus(fmi2Component c, int kind, double *value) {
    if (kind != 2) return fmi2Discard;
    *value = ((Instance *)c)->state.t;
    return fmi2OK;
}
