#include "studies/plan/fit_trial.h"

#include <string.h>

#include "allocators/registry.h"
#include "base/bits.h"
#include "base/bytes.h"
#include "base/memory.h"
#include "base/threads.h"
#include "sim/run.h"

enum { SPARES = 2 };

/* What is known of a setting. */
typedef struct known_trial {
    uint64_t bound_bytes;
    bool is_bound_part;      /* as of frag_fit_attempt */
    uint64_t enough_bytes;   /* FRAG_UNLIMITED: not known */
    uint64_t survived_bytes; /* with this it survives; FRAG_UNLIMITED: not known */
    bool is_measured;        /* result is there */
    frag_fit_result result;
    frag_fit_parts parts;
} known_trial;

typedef struct stored_trial {
    frag_fit_setting setting;
    frag_tape_card card;
    known_trial known;
} stored_trial;

struct frag_fitter {
    const frag_context *context;
    frag_policy_spec policies[2]; /* as the program has it, with expandable segments */
    frag_lock *lock;              /* of what comes below */
    stored_trial *trials;
    size_t capacity;
    size_t count;
    uint64_t trace_count; /* generated so far */
    uint64_t event_count; /* of the last of them */
    frag_event_room spare[SPARES];
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
    if (!ok && error != NULL)
        error->where[0] = '\0'; /* `plan` has no --policy */
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
    fitter->lock = frag_lock_create();
    return fitter;
}

void frag_fitter_destroy(frag_fitter *fitter)
{
    if (fitter == NULL)
        return;
    frag_policy_spec_destroy(&fitter->policies[0]);
    frag_policy_spec_destroy(&fitter->policies[1]);
    frag_lock_destroy(fitter->lock);
    frag_free(fitter->trials);
    for (size_t i = 0; i < SPARES; i++)
        frag_free(fitter->spare[i].events);
    frag_free(fitter);
}

uint64_t frag_fitter_trace_count(const frag_fitter *fitter)
{
    return fitter->trace_count;
}

uint32_t frag_fitter_threads(const frag_fitter *fitter)
{
    return frag_context_threads(fitter->context);
}

/* ---- one trial */
/* Memory of a trace that is over, or about how many events there will be. */
static frag_event_room take_room(frag_fitter *fitter)
{
    frag_lock_take(fitter->lock);
    frag_event_room room = {NULL, fitter->event_count};
    for (size_t i = 0; i < SPARES && room.events == NULL; i++) {
        if (fitter->spare[i].events == NULL)
            continue;
        room = fitter->spare[i];
        fitter->spare[i].events = NULL;
    }
    frag_lock_give(fitter->lock);
    return room;
}

static bool make_trace_in(frag_fitter *fitter, const frag_fit_setting *setting,
                          const frag_tape_card *card, frag_event_room room, uint64_t limit_bytes,
                          made_trace *made, frag_error *error)
{
    *made = (made_trace){.kinds = {0}};
    if (!frag_workload_generate_marked(&setting->workload, card, room, limit_bytes,
                                       &made->recording, &made->kinds, error))
        return false;
    frag_lock_take(fitter->lock);
    fitter->trace_count++;
    if (limit_bytes == FRAG_UNLIMITED)
        fitter->event_count = made->recording.traces[0].event_count;
    frag_lock_give(fitter->lock);
    return true;
}

static bool may_make(const frag_fitter *fitter, const frag_fit_setting *setting, frag_error *error)
{
    if (frag_is_cancelled(fitter->context))
        return frag_fail(error, FRAG_E_SYSTEM, "interrupted");
    return frag_workload_check(&setting->workload, error);
}

static bool make_trace(frag_fitter *fitter, const frag_fit_setting *setting,
                       const frag_tape_card *card, uint64_t limit_bytes, made_trace *made,
                       frag_error *error)
{
    *made = (made_trace){.kinds = {0}};
    return may_make(fitter, setting, error) &&
           make_trace_in(fitter, setting, card, take_room(fitter), limit_bytes, made, error);
}

static void free_trace(made_trace *made)
{
    frag_recording_destroy(&made->recording);
    frag_free(made->kinds.kinds);
}

static void destroy_trace(frag_fitter *fitter, made_trace *made)
{
    frag_trace *first = made->recording.trace_count > 0 ? made->recording.traces : NULL;
    frag_lock_take(fitter->lock);
    for (size_t i = 0; i < SPARES && first != NULL && first->events != NULL; i++) {
        if (fitter->spare[i].events != NULL)
            continue;
        fitter->spare[i] = (frag_event_room){first->events, first->event_count};
        first->events = NULL;
    }
    frag_lock_give(fitter->lock);
    free_trace(made);
}

/* What is replayed: a device's trace, with or without expandable segments. */
typedef struct rank_run {
    const frag_fitter *fitter;
    const made_trace *made;
    uint32_t rank;
    bool is_expandable;
    const frag_fit_precision *to; /* NULL: nothing is searched for */
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

/* A search for the least memory may replay so many; one that takes more is not exact. A trace of
 * fewer events is always searched. */
enum { EXACT_EVENTS = 1 << 21, SHORT_EVENTS = 1 << 16 };

static bool is_hopeless(const rank_run *of, const frag_trace *trace)
{
    return trace->event_count > SHORT_EVENTS &&
           frag_trace_bound_bytes(trace) > of->to->usable_bytes;
}

/* What is enough, and the peak then; false in is_known: policies and programs that look at the
 * capacity do not say it. */
static bool find_enough(const rank_run *of, frag_level *peak, uint64_t *enough_bytes,
                        bool *is_known, frag_error *error)
{
    frag_run_result run;
    if (!count_run(of, FRAG_UNLIMITED, &run, error))
        return false;
    *peak = run.replay.peak;
    *enough_bytes = frag_round_up(run.need_max_bytes, FRAG_DEVICE_PAGE_BYTES);
    *is_known = !run.is_capacity_read && !run.replay.oom.has_happened && !run.replay.is_interrupted;
    return true;
}

/* What is enough stands for what is needed. */
static bool take_enough(const rank_run *of, frag_fit_result *result, bool *is_known,
                        frag_error *error)
{
    *result = (frag_fit_result){.rank = of->rank};
    bool ok = find_enough(of, &result->peak, &result->enough_bytes, is_known, error);
    result->needed_bytes = result->enough_bytes;
    return ok;
}

static bool measure_rank(const rank_run *of, frag_fit_result *result, frag_error *error)
{
    frag_run_result run;
    frag_device_spec device = {.capacity_bytes = FRAG_UNLIMITED};
    frag_run_setup setup = set_up(of, &device);
    frag_capacity_result least = {0};
    bool is_known = false;
    if (is_hopeless(of, setup.trace) && !take_enough(of, result, &is_known, error))
        return false;
    if (is_known)
        return true;
    if (!frag_find_border_capacity(&setup, EXACT_EVENTS, of->to->parts, of->fitter->context, &least,
                                   error))
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

/* Does the device need no more than that? true is proved, false says nothing. */
static bool needs_no_more(const rank_run *of, uint64_t bytes, uint64_t *enough_bytes, bool *is_less,
                          frag_error *error)
{
    frag_run_result run;
    frag_level peak;
    bool is_known = false;
    if (!find_enough(of, &peak, enough_bytes, &is_known, error))
        return false;
    is_known = is_known && bytes != FRAG_UNLIMITED;
    *is_less = is_known && *enough_bytes <= bytes;
    if (*is_less || !is_known)
        return true;
    bool ok = count_run(of, bytes, &run, error);
    *is_less = ok && !run.replay.oom.has_happened && !run.replay.is_interrupted;
    return ok;
}

/* The first of those that need the most. Only those that may need more than the ones before are
 * searched for what they need. */
static bool measure_trace(const frag_fitter *fitter, const frag_fit_setting *setting,
                          const made_trace *made, const frag_fit_precision *to,
                          frag_fit_result *result, frag_error *error)
{
    rank_run of = {fitter, made, 0, setting->is_expandable, to};
    if (!measure_rank(&of, result, error))
        return false;
    for (of.rank = 1; of.rank < made->recording.trace_count; of.rank++) {
        frag_fit_result one = {.needed_bytes = 0};
        bool is_less = is_repeated(made, of.rank);
        if (!is_less &&
            !needs_no_more(&of, result->needed_bytes, &one.enough_bytes, &is_less, error))
            return false;
        if (!is_less && !measure_rank(&of, &one, error))
            return false;
        uint64_t enough =
            one.enough_bytes > result->enough_bytes ? one.enough_bytes : result->enough_bytes;
        if (one.needed_bytes > result->needed_bytes)
            *result = one;
        result->enough_bytes = enough;
    }
    return true;
}

static bool is_same_card(const frag_tape_card *a, const frag_tape_card *b)
{
    return a->capability == b->capability && a->multiprocessors == b->multiprocessors &&
           a->threads_per_multiprocessor == b->threads_per_multiprocessor &&
           a->workspace_draw == b->workspace_draw;
}

/* NULL: it was not tried. Settings are compared byte by byte: padding can at worst have one tried
 * twice. */
static stored_trial *look_up(const frag_fitter *fitter, const frag_fit_setting *setting,
                             const frag_tape_card *card)
{
    for (size_t i = 0; i < fitter->count; i++) {
        stored_trial *stored = &fitter->trials[i];
        if (is_same_card(&stored->card, card) &&
            memcmp(&stored->setting, setting, sizeof *setting) == 0)
            return stored;
    }
    return NULL;
}

static known_trial find_known(const frag_fitter *fitter, const frag_fit_setting *setting,
                              const frag_tape_card *card)
{
    frag_lock_take(fitter->lock);
    const stored_trial *stored = look_up(fitter, setting, card);
    known_trial known = stored != NULL ? stored->known
                                       : (known_trial){.enough_bytes = FRAG_UNLIMITED,
                                                       .survived_bytes = FRAG_UNLIMITED};
    frag_lock_give(fitter->lock);
    return known;
}

static void store(frag_fitter *fitter, const frag_fit_setting *setting, const frag_tape_card *card,
                  const known_trial *known)
{
    frag_lock_take(fitter->lock);
    stored_trial *stored = look_up(fitter, setting, card);
    if (stored == NULL) {
        stored = FRAG_APPEND(fitter->trials, fitter->count, fitter->capacity);
        memset(stored, 0, sizeof *stored);
        memcpy(&stored->setting, setting, sizeof *setting);
        stored->card = *card;
    }
    if (known->is_measured || !stored->known.is_measured)
        stored->known = *known;
    frag_lock_give(fitter->lock);
}

/* No device needs more of those. */
static uint64_t find_bound(const made_trace *made)
{
    uint64_t bound = 0;
    for (uint32_t i = 0; i < made->recording.trace_count; i++) {
        uint64_t bytes = frag_trace_bound_bytes(&made->recording.traces[i]);
        bound = bytes > bound ? bytes : bound;
    }
    return bound;
}

/* ---- where the bytes are */
static uint64_t count_requests(const frag_trace *trace)
{
    uint64_t count = 0;
    for (uint64_t i = 0; i < trace->event_count; i++)
        count += trace->events[i].op == FRAG_OP_ALLOC;
    return count;
}

/* What is live in a trace, by what it is for. */
typedef struct live_sum {
    const frag_trace *trace;
    const uint8_t *kinds; /* of its requests */
    uint64_t *held;       /* by slot */
    uint8_t *held_kinds;
    uint64_t live_bytes;
    uint64_t peak_bytes;
    frag_fit_parts *parts;
} live_sum;

static void sum_live(live_sum *of, uint64_t first, uint64_t end, uint64_t request);

static void hold(live_sum *of, uint32_t slot, uint64_t bytes, uint8_t kind)
{
    of->held[slot] = bytes;
    of->held_kinds[slot] = kind;
    of->parts->bytes[kind] += bytes;
    of->live_bytes += bytes;
}

static void drop(live_sum *of, uint32_t slot)
{
    of->parts->bytes[of->held_kinds[slot]] -= of->held[slot];
    of->live_bytes -= of->held[slot];
    of->held[slot] = 0;
}

static void move(live_sum *of, uint32_t from, uint32_t to)
{
    uint64_t bytes = of->held[from];
    drop(of, from);
    hold(of, to, bytes, of->held_kinds[from]);
}

/* Goes through a stretch again if the peak is in it; else only what it leaves is of interest, which
 * is for the same as when it left it first. */
static void sum_again(live_sum *of, const frag_again *again)
{
    const frag_stretch *stretch = &of->trace->stretches[again->stretch];
    for (uint32_t i = 0; i < stretch->count && again->is_done; i++)
        move(of, again->at[i], stretch->from[i]);
    if (again->is_done && of->live_bytes + stretch->rise_bytes >= of->peak_bytes)
        sum_live(of, stretch->first, stretch->end, stretch->request);
    else if (again->is_done) {
        for (uint32_t i = 0; i < stretch->count; i++)
            drop(of, stretch->from[i]);
        for (uint32_t i = 0; i < stretch->count; i++)
            hold(of, stretch->to[i], stretch->to_bytes[i], of->held_kinds[stretch->to[i]]);
    }
    for (uint32_t i = 0; i < stretch->count && of->live_bytes < of->peak_bytes; i++)
        move(of, stretch->to[i], again->at[i]);
}

/* Up to the event at which most is requested, where all is served. request: the first of them. */
static void sum_live(live_sum *of, uint64_t first, uint64_t end, uint64_t request)
{
    for (uint64_t i = first; i < end && of->live_bytes < of->peak_bytes; i++) {
        const frag_event *event = &of->trace->events[i];
        bool is_once = event->op == FRAG_OP_ONCE;
        request += is_once && of->held[event->slot] != 0;
        if (event->op == FRAG_OP_ALLOC || (is_once && of->held[event->slot] == 0))
            hold(of, event->slot, event->bytes, of->kinds[request++]);
        else if (event->op == FRAG_OP_FREE)
            drop(of, event->slot);
        else if (event->op == FRAG_OP_AGAIN)
            sum_again(of, &of->trace->agains[event->slot]);
    }
}

static void sum_peak(const made_trace *made, uint32_t rank, uint64_t peak_bytes,
                     frag_fit_parts *parts)
{
    const frag_trace *trace = &made->recording.traces[rank];
    uint64_t request = 0; /* among those of all devices */
    for (uint32_t i = 0; i < rank; i++)
        request += count_requests(&made->recording.traces[i]);
    live_sum of = {.trace = trace,
                   .kinds = made->kinds.kinds + request,
                   .held = frag_alloc(trace->slot_count, sizeof *of.held),
                   .held_kinds = frag_alloc(trace->slot_count, 1),
                   .peak_bytes = peak_bytes,
                   .parts = parts};
    sum_live(&of, 0, trace->event_count, 0);
    frag_free(of.held);
    frag_free(of.held_kinds);
}

static void divide(const made_trace *made, uint32_t rank, const frag_level *peak,
                   frag_fit_parts *parts)
{
    *parts = (frag_fit_parts){
        .rounding_bytes = peak->allocated_bytes - peak->requested_bytes,
        .caching_bytes = peak->reserved_bytes - peak->allocated_bytes,
    };
    sum_peak(made, rank, peak->requested_bytes, parts);
}

bool frag_fit_measure(frag_fitter *fitter, const frag_fit_setting *setting,
                      const frag_tape_card *card, const frag_fit_precision *to,
                      frag_fit_result *result, frag_error *error)
{
    known_trial known = find_known(fitter, setting, card);
    *result = known.result;
    if (known.is_measured)
        return true;
    made_trace made;
    bool ok = make_trace(fitter, setting, card, FRAG_UNLIMITED, &made, error) &&
              measure_trace(fitter, setting, &made, to, result, error);
    if (ok) {
        known.bound_bytes = find_bound(&made);
        known.is_bound_part = false;
        known.enough_bytes = result->enough_bytes;
        known.is_measured = true;
        known.result = *result;
        divide(&made, result->rank, &result->peak, &known.parts);
        store(fitter, setting, card, &known);
    }
    destroy_trace(fitter, &made);
    return ok;
}

static uint64_t most_needed(const known_trial *known)
{
    return known->enough_bytes < known->survived_bytes ? known->enough_bytes
                                                       : known->survived_bytes;
}

/* Every device at this size. Where none is ever refused anything, more is enough as well. */
static bool run_all(const frag_fitter *fitter, const frag_fit_setting *setting,
                    const made_trace *made, uint64_t usable_bytes, known_trial *known,
                    frag_fit_attempt *attempt, frag_error *error)
{
    bool is_enough = true;
    bool is_read = false;
    uint64_t enough = 0;
    attempt->fits = true;
    for (uint32_t rank = 0; attempt->fits && rank < made->recording.trace_count; rank++) {
        const rank_run of = {fitter, made, rank, setting->is_expandable, NULL};
        const frag_device_spec device = {.capacity_bytes = usable_bytes};
        frag_run_result run;
        if (is_repeated(made, rank))
            continue;
        if (!count_run(&of, usable_bytes, &run, error))
            return false;
        uint64_t page = frag_device_page(&device, &made->recording.traces[rank]);
        uint64_t held = frag_round_up(run.need_max_bytes, page);
        enough = held > enough ? held : enough;
        is_read = is_read || run.is_capacity_read || run.replay.is_interrupted;
        is_enough = is_enough && run.refused_need_min_bytes == FRAG_UNLIMITED;
        attempt->fits = !run.replay.oom.has_happened;
        attempt->requests += run.replay.requests;
    }
    if (attempt->fits && !is_read && enough < known->survived_bytes)
        known->survived_bytes = enough;
    if (attempt->fits && !is_read && is_enough && enough < known->enough_bytes)
        known->enough_bytes = enough;
    return true;
}

bool frag_fit_answers(const frag_workload *workload)
{
    return workload->task == FRAG_TASK_GENERATE && workload->new_tokens > 1 &&
           !frag_families[workload->network.family].is_diffusion;
}

/* An answer of one token asks for what a longer one begins with, and then only gives memory back:
 * where it fails, the longer one fails at the same request. That happens to most of what does not
 * fit, since the prompt is read at once. Its bound is one of the longer answer, too. */
static bool try_first_token(frag_fitter *fitter, const frag_fit_setting *setting,
                            const frag_tape_card *card, uint64_t usable_bytes, known_trial *known,
                            bool *may_fit, frag_error *error)
{
    frag_fit_setting first;
    known_trial none = {.enough_bytes = FRAG_UNLIMITED, .survived_bytes = FRAG_UNLIMITED};
    made_trace made = {.kinds = {0}};
    memcpy(&first, setting, sizeof first);
    first.workload.new_tokens = first.workload.steps = 1;
    const frag_event_room own = {.count = 0}; /* a short trace would cut that of a long one */
    bool ok = may_make(fitter, &first, error) &&
              make_trace_in(fitter, &first, card, own, usable_bytes, &made, error);
    if (ok) {
        uint64_t bound = find_bound(&made);
        frag_fit_attempt attempt = {.fits = usable_bytes >= bound};
        ok = !attempt.fits || run_all(fitter, &first, &made, usable_bytes, &none, &attempt, error);
        *may_fit = attempt.fits;
        if (!attempt.fits && bound > known->bound_bytes) {
            known->bound_bytes = bound;
            known->is_bound_part = true;
        }
    }
    free_trace(&made);
    return ok;
}

bool frag_fit_try_first(frag_fitter *fitter, const frag_fit_setting *setting,
                        const frag_tape_card *card, uint64_t usable_bytes, bool *may_fit,
                        frag_error *error)
{
    known_trial known = find_known(fitter, setting, card);
    *may_fit = usable_bytes >= known.bound_bytes;
    return !*may_fit || !frag_fit_answers(&setting->workload) ||
           try_first_token(fitter, setting, card, usable_bytes, &known, may_fit, error);
}

bool frag_fit_try(frag_fitter *fitter, const frag_fit_setting *setting, const frag_tape_card *card,
                  uint64_t usable_bytes, frag_fit_attempt *attempt, frag_error *error)
{
    known_trial known = find_known(fitter, setting, card);
    *attempt = (frag_fit_attempt){usable_bytes >= known.enough_bytes, known.bound_bytes,
                                  most_needed(&known), known.is_bound_part, 0};
    if (attempt->fits || usable_bytes < known.bound_bytes)
        return true;
    /* Not known; or between both, where more memory can fail where less did not. */
    bool may_fit = true;
    if (frag_fit_answers(&setting->workload) &&
        !try_first_token(fitter, setting, card, usable_bytes, &known, &may_fit, error))
        return false;
    if (!may_fit) {
        *attempt = (frag_fit_attempt){false, known.bound_bytes, most_needed(&known),
                                      known.is_bound_part, 0};
        store(fitter, setting, card, &known);
        return true;
    }
    made_trace made;
    bool ok = make_trace(fitter, setting, card, usable_bytes, &made, error);
    if (ok) {
        known.bound_bytes = attempt->bound_bytes = find_bound(&made);
        known.is_bound_part = attempt->is_bound_part = usable_bytes < known.bound_bytes;
        ok = usable_bytes < known.bound_bytes ||
             run_all(fitter, setting, &made, usable_bytes, &known, attempt, error);
        attempt->most_bytes = most_needed(&known);
    }
    if (ok)
        store(fitter, setting, card, &known);
    destroy_trace(fitter, &made);
    return ok;
}

/* With expandable segments the same is requested. */
uint64_t frag_fit_known_bound(frag_fitter *fitter, const frag_fit_setting *setting,
                              const frag_tape_card *card)
{
    frag_fit_setting other;
    memcpy(&other, setting, sizeof other);
    other.is_expandable = !setting->is_expandable;
    uint64_t bound = find_known(fitter, setting, card).bound_bytes;
    return bound > 0 ? bound : find_known(fitter, &other, card).bound_bytes;
}

bool frag_fit_bound(frag_fitter *fitter, const frag_fit_setting *setting,
                    const frag_tape_card *card, uint64_t *bound_bytes, frag_error *error)
{
    known_trial known = find_known(fitter, setting, card);
    made_trace made = {.kinds = {0}};
    bool ok = known.bound_bytes > 0 && !known.is_bound_part;
    if (!ok && make_trace(fitter, setting, card, FRAG_UNLIMITED, &made, error)) {
        known.bound_bytes = find_bound(&made);
        known.is_bound_part = false;
        store(fitter, setting, card, &known);
        ok = true;
    }
    *bound_bytes = known.bound_bytes;
    destroy_trace(fitter, &made);
    return ok;
}

frag_fit_parts frag_fit_divide(const frag_fitter *fitter, const frag_fit_setting *setting,
                               const frag_tape_card *card)
{
    return find_known(fitter, setting, card).parts;
}
