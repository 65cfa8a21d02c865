#include "studies/capacity/bounds.h"

#include "base/bytes.h"
#include "base/memory.h"
#include "planner/plan.h"
#include "sim/policy_engine.h"

/* The planner knows nothing of contexts: it takes a pointer that it may not change through. */
typedef struct stopper {
    const frag_context *context;
} stopper;

static bool is_stopped(void *user)
{
    const stopper *state = user;
    return frag_is_cancelled(state->context);
}

bool frag_bounds_find(const frag_context *context, const frag_recording *recording,
                      const frag_trace *trace, frag_row_packing *packing, frag_error *error)
{
    uint64_t count = 0;
    frag_lifetime *lifetimes = frag_lifetimes_find(recording, trace, &count, error);
    if (lifetimes == NULL)
        return false;
    frag_buffer *buffers = frag_alloc(count, sizeof *buffers);
    uint32_t buffer_count = 0;
    for (uint64_t i = 0; i < count; i++) {
        const frag_lifetime *at = &lifetimes[i];
        /* Every request counts; see frag_trace_bound_bytes. */
        bool is_attempt = frag_lifetime_is_attempt(at);
        if ((at->lower < at->upper || is_attempt) && buffer_count < FRAG_BUFFER_COUNT_MAX)
            buffers[buffer_count++] =
                (frag_buffer){at->lower, at->upper + (is_attempt ? 1 : 0), at->bytes,
                              at->alignment > 0 ? at->alignment : 1};
    }
    frag_free(lifetimes);
    stopper stop = {context};
    frag_plan_options options = {.capacity_bytes = FRAG_UNLIMITED,
                                 .steps = FRAG_PLAN_STEPS_DEFAULT,
                                 .is_stopped = is_stopped,
                                 .context = &stop};
    frag_plan plan;
    bool ok = frag_plan_make(buffers, buffer_count, &options, &plan, error);
    frag_free(buffers);
    if (!ok)
        return false;
    *packing = (frag_row_packing){plan.height_bytes, plan.answer == FRAG_PLAN_OPTIMAL};
    frag_plan_destroy(&plan);
    return true;
}
