#include "sim/capacity_runs.h"

#include "base/bits.h"
#include "base/memory.h"
#include "sim/replay/checkpoint.h"

/* Runs that are made before a beginning is shared. */
#define RUNS_ALONE 2u
/* The trace is cut into so many steps; states can be kept between them. */
#define STEPS 4096u
#define STEP_EVENTS_MIN 256u

struct frag_capacity_runs {
    const frag_run_setup *setup;
    const frag_run_options *options;
    frag_device_spec spec; /* of the runs that begin at the first event */
    uint64_t count;
    bool is_sharing;
    bool cannot_share;
    uint64_t enough_bytes; /* a capacity that refuses nothing; 0: none is known yet */
    /* ---- the shared beginning; the device has enough while it is advanced */
    frag_device_spec enough;
    frag_device *device;
    frag_recorded_segment *segments;
    frag_replay *replay;
    frag_checkpoint *checkpoint;
    uint64_t kept_step; /* the state was kept before this step */
    bool is_at_kept;    /* the replay stands there */
    uint64_t step_events;
    uint64_t step_count;
    uint64_t start_need; /* of what is there before the first event */
    uint64_t *needs;     /* largest need of a call up to the end of each step */
    uint64_t noted;      /* steps whose needs are known */
};

frag_capacity_runs *frag_capacity_runs_create(const frag_run_setup *setup,
                                              const frag_run_options *options)
{
    frag_capacity_runs *runs = frag_alloc(1, sizeof *runs);
    runs->setup = setup;
    runs->options = options;
    runs->spec = *setup->device;
    runs->cannot_share = setup->device->opener != NULL || setup->device->driver_log != NULL ||
                         setup->device->fail_call != 0;
    return runs;
}

static void stop_sharing(frag_capacity_runs *runs)
{
    runs->is_sharing = false;
    runs->cannot_share = true;
    frag_checkpoint_destroy(runs->checkpoint);
    frag_replay_destroy(runs->replay);
    if (runs->device != NULL)
        frag_device_close(&runs->enough, runs->device);
    frag_free(runs->segments);
    frag_free(runs->needs);
    runs->checkpoint = NULL;
    runs->replay = NULL;
    runs->device = NULL;
    runs->segments = NULL;
    runs->needs = NULL;
}

void frag_capacity_runs_destroy(frag_capacity_runs *runs)
{
    if (runs == NULL)
        return;
    stop_sharing(runs);
    frag_free(runs);
}

static uint64_t step_end(const frag_capacity_runs *runs, uint64_t step)
{
    uint64_t end = runs->setup->trace->event_count;
    return step + 1 < runs->step_count ? (step + 1) * runs->step_events : end;
}

static void keep_result(frag_capacity_runs *runs, frag_run_result *result)
{
    *result = (frag_run_result){0};
    frag_replay_finish(runs->replay, &result->replay);
    frag_replay_met(runs->replay, &result->met);
    frag_run_keep_device(result, runs->device, &runs->enough, runs->segments != NULL);
}

/* Advances, and notes the need at the end of each step. Steps that were left out called nothing. */
static bool advance_noting(void *context, frag_replay *replay, uint64_t until, frag_error *error)
{
    frag_capacity_runs *runs = context;
    for (; runs->noted < runs->step_count; runs->noted++) {
        uint64_t end = step_end(runs, runs->noted);
        if (end > until)
            break;
        if (!frag_replay_advance(replay, end, error))
            return false;
        runs->needs[runs->noted] = runs->device->needs.max_bytes;
    }
    return frag_replay_advance(replay, until, error);
}

static bool advance(frag_capacity_runs *runs, uint64_t until, frag_error *error)
{
    return frag_replay_advance_repeats(runs->replay, runs->options->repeats, NULL, until, error);
}

/* Goes through the whole trace once. */
static bool find_needs(frag_capacity_runs *runs, frag_run_result *result, frag_error *error)
{
    uint64_t events = runs->setup->trace->event_count;
    runs->step_events = events / STEPS > STEP_EVENTS_MIN ? events / STEPS : STEP_EVENTS_MIN;
    runs->step_count = events / runs->step_events + 1;
    runs->needs = frag_alloc((size_t)runs->step_count, sizeof *runs->needs);
    runs->start_need = runs->device->needs.max_bytes;
    const frag_replay_advancer noting = {advance_noting, runs};
    if (!frag_replay_advance_repeats(runs->replay, runs->options->repeats, &noting, events, error))
        return false;
    keep_result(runs, result);
    return true;
}

/* Can what was gone through be shared? */
static bool is_shareable(const frag_capacity_runs *runs, const frag_run_result *result)
{
    return !result->replay.oom.has_happened && !result->replay.is_interrupted &&
           !runs->device->needs.is_capacity_read && !runs->device->needs.has_sized_ranges;
}

/* result: of the run on a device that has enough. false: there is none. */
static bool share(frag_capacity_runs *runs, frag_run_result *result)
{
    frag_error error = {0};
    const frag_run_setup *setup = runs->setup;
    frag_replay_options options = {.stop_after = FRAG_UNLIMITED, .context = runs->options->context};
    runs->enough = runs->spec;
    runs->enough.capacity_bytes = runs->enough_bytes;
    runs->device = frag_device_open(setup->trace, &runs->enough, &runs->segments, &error);
    if (runs->device == NULL)
        return false;
    runs->replay =
        frag_replay_create_planned(setup, runs->options->plan, NULL, runs->device, &error);
    if (runs->replay == NULL || !frag_replay_start(runs->replay, &options, &error))
        return false;
    runs->checkpoint = frag_checkpoint_create();
    if (!frag_checkpoint_keep(runs->checkpoint, runs->replay) || !find_needs(runs, result, &error))
        return false;
    runs->is_sharing = is_shareable(runs, result);
    return true;
}

/* The step in which this capacity first refuses a call; the last one where it never does. */
static uint64_t first_refusing(const frag_capacity_runs *runs, uint64_t capacity_bytes)
{
    uint64_t low = 0;
    uint64_t high = runs->step_count - 1;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        if (runs->needs[middle] > capacity_bytes)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

/* Brings the replay before a step, at which it is kept. */
static bool go_before(frag_capacity_runs *runs, uint64_t step, frag_error *error)
{
    if (!runs->is_at_kept)
        frag_checkpoint_return(runs->checkpoint, runs->replay);
    runs->is_at_kept = true;
    if (step == runs->kept_step)
        return true;
    runs->kept_step = step;
    return advance(runs, step_end(runs, step - 1), error) &&
           frag_checkpoint_keep(runs->checkpoint, runs->replay);
}

static bool continue_with(frag_capacity_runs *runs, uint64_t capacity_bytes,
                          frag_run_result *result, frag_error *error)
{
    runs->is_at_kept = false;
    runs->device->capacity_bytes = capacity_bytes;
    if (!advance(runs, runs->setup->trace->event_count, error))
        return false;
    keep_result(runs, result);
    return true;
}

bool frag_capacity_runs_alone(frag_capacity_runs *runs, uint64_t capacity_bytes,
                              frag_run_result *result, frag_error *error)
{
    frag_run_setup setup = *runs->setup;
    runs->spec.capacity_bytes = capacity_bytes;
    setup.device = &runs->spec;
    if (!frag_run(&setup, runs->options, result, error))
        return false;
    runs->cannot_share = runs->cannot_share || result->is_capacity_read;
    bool is_refused = result->replay.oom.has_happened || result->replay.is_interrupted ||
                      result->refused_need_min_bytes != FRAG_UNLIMITED;
    if (!is_refused)
        runs->enough_bytes = frag_round_up(
            result->need_max_bytes, frag_device_page(runs->setup->device, runs->setup->trace));
    return true;
}

/* After some runs alone, if ever. */
static bool begin_sharing(frag_capacity_runs *runs, frag_error *error)
{
    frag_run_result result;
    if (runs->enough_bytes == 0 &&
        !frag_capacity_runs_alone(runs, FRAG_CAPACITY_PLENTY, &result, error))
        return false;
    if (runs->cannot_share || runs->enough_bytes == 0 || !share(runs, &result) || !runs->is_sharing)
        stop_sharing(runs);
    return true;
}

bool frag_capacity_runs_enough(frag_capacity_runs *runs, frag_run_result *result, frag_error *error)
{
    runs->count = RUNS_ALONE + 1;
    runs->enough_bytes = FRAG_CAPACITY_PLENTY;
    bool is_made = !runs->cannot_share && share(runs, result);
    if (!runs->is_sharing)
        stop_sharing(runs);
    return is_made || frag_capacity_runs_alone(runs, FRAG_CAPACITY_PLENTY, result, error);
}

bool frag_capacity_runs_are_shared(const frag_capacity_runs *runs)
{
    return runs->is_sharing;
}

bool frag_capacity_runs_try(frag_capacity_runs *runs, uint64_t capacity_bytes, uint64_t least_bytes,
                            frag_run_result *result, frag_error *error)
{
    if (runs->count++ == RUNS_ALONE && !runs->cannot_share && !begin_sharing(runs, error))
        return false;
    uint64_t step = runs->is_sharing ? first_refusing(runs, least_bytes) : 0;
    if (!runs->is_sharing || least_bytes < runs->start_need || step < runs->kept_step)
        return frag_capacity_runs_alone(runs, capacity_bytes, result, error);
    return go_before(runs, step, error) && continue_with(runs, capacity_bytes, result, error);
}
