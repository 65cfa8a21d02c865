#include "studies/run/run_placement.h"

#include "base/bytes.h"
#include "base/memory.h"
#include "planner/placement.h"
#include "sim/policy_engine.h"
#include "sim/replay/lifetimes.h"
#include "traces/exchange/minimalloc_csv.h"

/* The addresses granted so far, in order of the requests. */
typedef struct granted {
    uint64_t *addresses;
    uint64_t count;
    uint64_t capacity;
} granted;

static void keep_grant(void *context, const frag_request *request, const frag_grant *grant)
{
    granted *kept = context;
    (void)request;
    if (kept->count < kept->capacity)
        kept->addresses[kept->count] = grant->address;
    kept->count++;
}

/* Addresses become offsets from the lowest of them. */
static void count_from_lowest(const frag_lifetime *lifetimes, granted *kept)
{
    uint64_t lowest = UINT64_MAX;
    for (uint64_t i = 0; i < kept->capacity; i++)
        if (lifetimes[i].lower < lifetimes[i].upper && kept->addresses[i] < lowest)
            lowest = kept->addresses[i];
    for (uint64_t i = 0; i < kept->capacity; i++)
        kept->addresses[i] -= kept->addresses[i] >= lowest ? lowest : kept->addresses[i];
}

static bool check(const frag_lifetime *lifetimes, const granted *kept, uint64_t plan_peak,
                  frag_error *error)
{
    frag_buffer *buffers = frag_alloc((size_t)kept->capacity, sizeof *buffers);
    uint64_t *offsets = frag_alloc((size_t)kept->capacity, sizeof *offsets);
    uint32_t count = 0;
    for (uint64_t i = 0; i < kept->capacity && count < FRAG_BUFFER_COUNT_MAX; i++) {
        if (lifetimes[i].lower >= lifetimes[i].upper)
            continue;
        uint64_t alignment = lifetimes[i].alignment > 0 ? lifetimes[i].alignment : 1;
        offsets[count] = kept->addresses[i];
        buffers[count++] =
            (frag_buffer){lifetimes[i].lower, lifetimes[i].upper, lifetimes[i].bytes, alignment};
    }
    uint64_t height = 0;
    bool ok = frag_placement_check(buffers, offsets, count, plan_peak, &height, error);
    frag_free(buffers);
    frag_free(offsets);
    return ok;
}

bool frag_run_placement_write(const frag_recording *recording, const frag_trace *trace,
                              const frag_policy_spec *policy, const frag_policy_plan *plan,
                              const frag_device_spec *device, const frag_run_options *run,
                              const frag_run_result *first, FILE *stream, frag_error *error)
{
    granted kept = {0};
    frag_lifetime *lifetimes = frag_lifetimes_find(recording, trace, &kept.capacity, error);
    if (lifetimes == NULL)
        return false;
    kept.addresses = frag_alloc((size_t)kept.capacity, sizeof *kept.addresses);
    frag_replay_options again = {
        .stop_after = FRAG_UNLIMITED,
        .on_grant = keep_grant,
        .on_grant_context = &kept,
        .context = run->context,
    };
    bool ok = frag_run_look_planned(
        &(frag_run_setup){recording, trace, policy->ops, policy->values, device}, plan, NULL,
        &again, NULL, NULL, error);
    if (ok && kept.count < kept.capacity && !frag_is_cancelled(run->context))
        ok = frag_fail_in(error, FRAG_E_USAGE, recording->name,
                          "the policy leaves the blocks of its beginning where they were; a "
                          "placement needs every block to be requested");
    if (ok && !frag_is_cancelled(run->context)) {
        FRAG_ASSERT(kept.count == kept.capacity);
        count_from_lowest(lifetimes, &kept);
        /* Only a plan promises offsets below a height. */
        ok = check(lifetimes, &kept, first->has_plan ? first->plan.peak_bytes : FRAG_UNLIMITED,
                   error) &&
             frag_minimalloc_write(recording, trace, lifetimes, kept.capacity, 1, kept.addresses,
                                   stream, error);
    }
    frag_free(kept.addresses);
    frag_free(lifetimes);
    return ok;
}
