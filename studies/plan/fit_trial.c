#include "studies/plan/fit_trial.h"

#include <string.h>

#include "allocators/registry.h"
#include "base/bytes.h"
#include "base/memory.h"
#include "sim/run.h"

typedef struct stored_trial {
    frag_fit_setting setting;
    frag_tape_card card;
    frag_fit_result result;
} stored_trial;

struct frag_fitter {
    const frag_context *context;
    frag_policy_spec policies[2]; /* as the program has it, with expandable segments */
    stored_trial *trials;
    size_t capacity;
    size_t count;
};

/* A generated trace, and what its requests are for. */
typedef struct made_trace {
    frag_recording recording;
    frag_request_kinds kinds;
} made_trace;

const char *frag_fit_part_name(uint32_t kind)
{
    static const char *const names[FRAG_REQUEST_KIND_COUNT] = {
        [FRAG_REQUEST_TEMPORARY] = "temporaries",  [FRAG_REQUEST_INPUT] = "inputs",
        [FRAG_REQUEST_WEIGHT] = "weights",         [FRAG_REQUEST_CAST] = "autocast_copies",
        [FRAG_REQUEST_ACTIVATION] = "activations", [FRAG_REQUEST_GRADIENT] = "gradients",
        [FRAG_REQUEST_OPTIMIZER] = "optimizer",    [FRAG_REQUEST_WORKSPACE] = "workspaces",
    };
    return names[kind];
}

/* A literal settings string stands first; the release goes with it. */
static bool parse_policy(const char *conf, bool is_expandable, frag_policy_spec *spec,
                         frag_error *error)
{
    frag_text text = {0};
    bool has_conf = conf != NULL && conf[0] != '\0';
    frag_text_add(&text, "pytorch:%s%s", has_conf ? conf : "", has_conf ? "," : "");
    if (is_expandable)
        frag_text_add(&text, "expandable_segments:True,");
    frag_text_add(&text, "version=" FRAG_PLAN_RELEASE);
    bool ok = frag_policy_spec_parse(text.bytes, spec, error);
    frag_text_destroy(&text);
    return ok || frag_error_in(error, "--conf");
}

frag_fitter *frag_fitter_create(const frag_context *context, const char *conf, frag_error *error)
{
    frag_fitter *fitter = frag_alloc(1, sizeof *fitter);
    fitter->context = context;
    if (!parse_policy(conf, false, &fitter->policies[0], error)) {
        frag_free(fitter);
        return NULL;
    }
    if (!parse_policy(conf, true, &fitter->policies[1], error)) {
        frag_policy_spec_destroy(&fitter->policies[0]);
        frag_free(fitter);
        return NULL;
    }
    return fitter;
}

void frag_fitter_destroy(frag_fitter *fitter)
{
    if (fitter == NULL)
        return;
    frag_policy_spec_destroy(&fitter->policies[0]);
    frag_policy_spec_destroy(&fitter->policies[1]);
    frag_free(fitter->trials);
    frag_free(fitter);
}

/* ---- one trial */
static bool make_trace(frag_fitter *fitter, const frag_fit_setting *setting,
                       const frag_tape_card *card, made_trace *made, frag_error *error)
{
    *made = (made_trace){.kinds = {0}};
    if (frag_is_cancelled(fitter->context))
        return frag_fail(error, FRAG_E_SYSTEM, "interrupted");
    return frag_workload_check(&setting->workload, error) &&
           frag_workload_generate_marked(&setting->workload, card, "plan", &made->recording,
                                         &made->kinds, error);
}

static void destroy_trace(made_trace *made)
{
    frag_recording_destroy(&made->recording);
    frag_free(made->kinds.kinds);
}

/* What is replayed: a device's trace, with or without expandable segments. */
typedef struct rank_run {
    const frag_fitter *fitter;
    const made_trace *made;
    uint32_t rank;
    bool is_expandable;
} rank_run;

static frag_run_setup set_up(const rank_run *of, const frag_device_spec *device)
{
    const frag_policy_spec *policy = &of->fitter->policies[of->is_expandable];
    return (frag_run_setup){&of->made->recording, &of->made->recording.traces[of->rank],
                            policy->ops, policy->values, device};
}

static bool count_run(const rank_run *of, uint64_t capacity, frag_run_result *run,
                      frag_error *error)
{
    frag_device_spec device = {.capacity_bytes = capacity};
    frag_run_setup setup = set_up(of, &device);
    frag_run_options options = {.is_layout_skipped = true, .context = of->fitter->context};
    *run = (frag_run_result){.has_at_peak = false};
    /* Settings are read when the allocator starts. */
    return frag_run_count(&setup, &options, run, error) || frag_error_in(error, "--conf");
}

static bool measure_rank(const rank_run *of, frag_fit_result *result, frag_error *error)
{
    frag_run_result run;
    frag_device_spec device = {.capacity_bytes = FRAG_UNLIMITED};
    frag_run_setup setup = set_up(of, &device);
    frag_capacity_result least = {0};
    if (!frag_find_least_capacity(&setup, NULL, FRAG_UNLIMITED, of->fitter->context, &least, error))
        return frag_error_in(error, "--conf"); /* settings are read when the allocator starts */
    if (least.is_capacity_read && !count_run(of, FRAG_UNLIMITED, &run, error))
        return false;
    *result = (frag_fit_result){
        .peak = least.is_capacity_read ? run.replay.peak : least.peak,
        .needed_bytes = least.is_found ? least.capacity_bytes : FRAG_UNLIMITED,
        .enough_bytes =
            least.is_found && !least.is_capacity_read ? least.enough_bytes : FRAG_UNLIMITED,
        .rank = of->rank,
    };
    return true;
}

/* Has the device before the same events? */
static bool is_repeated(const made_trace *made, uint32_t rank)
{
    const frag_trace *trace = &made->recording.traces[rank];
    return rank > 0 && trace->event_count == trace[-1].event_count &&
           memcmp(trace->events, trace[-1].events, trace->event_count * sizeof *trace->events) == 0;
}

static bool measure_trace(const frag_fitter *fitter, const frag_fit_setting *setting,
                          const made_trace *made, frag_fit_result *result, frag_error *error)
{
    *result = (frag_fit_result){.needed_bytes = 0};
    for (uint32_t rank = 0; rank < made->recording.trace_count; rank++) {
        const rank_run of = {fitter, made, rank, setting->is_expandable};
        frag_fit_result one;
        if (is_repeated(made, rank))
            continue;
        if (!measure_rank(&of, &one, error))
            return false;
        uint64_t enough =
            one.enough_bytes > result->enough_bytes ? one.enough_bytes : result->enough_bytes;
        if (rank == 0 || one.needed_bytes > result->needed_bytes)
            *result = one;
        result->enough_bytes = enough;
    }
    return true;
}

static bool is_same_card(const frag_tape_card *a, const frag_tape_card *b)
{
    return a->capability == b->capability && a->multiprocessors == b->multiprocessors &&
           a->threads_per_multiprocessor == b->threads_per_multiprocessor &&
           a->has_no_workspaces == b->has_no_workspaces;
}

/* Settings are compared byte by byte: padding can at worst have one tried twice. */
static const frag_fit_result *
find_stored(const frag_fitter *fitter, const frag_fit_setting *setting, const frag_tape_card *card)
{
    for (size_t i = 0; i < fitter->count; i++) {
        const stored_trial *stored = &fitter->trials[i];
        if (is_same_card(&stored->card, card) &&
            memcmp(&stored->setting, setting, sizeof *setting) == 0)
            return &stored->result;
    }
    return NULL;
}

bool frag_fit_measure(frag_fitter *fitter, const frag_fit_setting *setting,
                      const frag_tape_card *card, frag_fit_result *result, frag_error *error)
{
    const frag_fit_result *stored = find_stored(fitter, setting, card);
    if (stored != NULL) {
        *result = *stored;
        return true;
    }
    made_trace made;
    bool ok = make_trace(fitter, setting, card, &made, error) &&
              measure_trace(fitter, setting, &made, result, error);
    destroy_trace(&made);
    if (!ok)
        return false;
    fitter->trials =
        frag_grow(fitter->trials, &fitter->capacity, fitter->count + 1, sizeof *fitter->trials);
    stored_trial *kept = &fitter->trials[fitter->count++];
    memcpy(&kept->setting, setting, sizeof *setting);
    kept->card = *card;
    kept->result = *result;
    return true;
}

bool frag_fit_try(frag_fitter *fitter, const frag_fit_setting *setting, const frag_tape_card *card,
                  uint64_t usable_bytes, bool *fits, frag_error *error)
{
    const frag_fit_result *stored = find_stored(fitter, setting, card);
    *fits = stored != NULL && usable_bytes >= stored->enough_bytes;
    if (*fits || (stored != NULL && usable_bytes < stored->needed_bytes))
        return true;
    /* Not measured; or between both, where more memory can fail where less did not. */
    made_trace made;
    bool ok = make_trace(fitter, setting, card, &made, error);
    *fits = ok;
    for (uint32_t rank = 0; *fits && rank < made.recording.trace_count; rank++) {
        const rank_run of = {fitter, &made, rank, setting->is_expandable};
        frag_run_result run;
        *fits = frag_trace_bound_bytes(&made.recording.traces[rank]) <= usable_bytes;
        if (!*fits || is_repeated(&made, rank))
            continue;
        ok = count_run(&of, usable_bytes, &run, error);
        *fits = ok && !run.replay.oom.has_happened;
    }
    destroy_trace(&made);
    return ok;
}

/* ---- where the bytes are */
static uint64_t count_requests(const frag_trace *trace)
{
    uint64_t count = 0;
    for (uint64_t i = 0; i < trace->event_count; i++)
        count += trace->events[i].op == FRAG_OP_ALLOC;
    return count;
}

static void sum_live(const made_trace *made, uint32_t rank, uint64_t last, frag_fit_parts *parts)
{
    const frag_trace *trace = &made->recording.traces[rank];
    uint64_t *held = frag_alloc((size_t)trace->slot_count + 1, sizeof *held);
    uint8_t *kinds = frag_alloc((size_t)trace->slot_count + 1, 1);
    uint64_t request = 0; /* among those of all devices */
    for (uint32_t i = 0; i < rank; i++)
        request += count_requests(&made->recording.traces[i]);
    for (uint64_t i = 0; i <= last && i < trace->event_count; i++) {
        const frag_event *event = &trace->events[i];
        if (event->op == FRAG_OP_ALLOC) {
            held[event->slot] = event->bytes;
            kinds[event->slot] = made->kinds.kinds[request++];
            parts->bytes[kinds[event->slot]] += event->bytes;
        } else if (event->op == FRAG_OP_FREE) {
            parts->bytes[kinds[event->slot]] -= held[event->slot];
        }
    }
    frag_free(held);
    frag_free(kinds);
}

bool frag_fit_divide(frag_fitter *fitter, const frag_fit_setting *setting,
                     const frag_tape_card *card, frag_fit_parts *parts, frag_error *error)
{
    made_trace made;
    frag_run_result run;
    frag_fit_result result;
    *parts = (frag_fit_parts){.rounding_bytes = 0};
    if (!frag_fit_measure(fitter, setting, card, &result, error))
        return false;
    bool ok = make_trace(fitter, setting, card, &made, error);
    const rank_run of = {fitter, &made, result.rank, setting->is_expandable};
    ok = ok && count_run(&of, FRAG_UNLIMITED, &run, error);
    if (ok) {
        const frag_level *peak = &run.replay.peak;
        sum_live(&made, result.rank, run.replay.peak_requested_event, parts);
        parts->rounding_bytes = peak->allocated_bytes - peak->requested_bytes;
        parts->caching_bytes = peak->reserved_bytes - peak->allocated_bytes;
    }
    destroy_trace(&made);
    return ok;
}
