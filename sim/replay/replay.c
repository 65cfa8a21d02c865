#include "sim/replay/replay.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/system/object_path.h"
#include "sim/policy_engine.h"
#include "sim/replay/replay_loop.h"
#include "sim/replay/replay_state.h"

#define BATCH_EVENTS 4096u

/* ---- surpluses of 4 GiB and more */

uint64_t frag_slot_large_surplus(const frag_replay *replay, uint32_t number)
{
    if (frag_use_has(replay, number))
        return frag_use_surplus(replay, number);
    size_t at = 0;
    while (at < replay->large_count && replay->large[at].slot != number)
        at++;
    FRAG_ASSERT(at < replay->large_count);
    return replay->large[at].bytes;
}

void frag_slot_keep_large(frag_replay *replay, uint32_t number, uint64_t bytes)
{
    replay->slots[number].surplus_bytes = FRAG_SURPLUS_ELSEWHERE;
    *FRAG_APPEND(replay->large, replay->large_count, replay->large_capacity) =
        (frag_large_surplus){number, bytes};
}

void frag_slot_forget_large(frag_replay *replay, uint32_t number)
{
    for (size_t i = 0; i < replay->large_count; i++)
        if (replay->large[i].slot == number) {
            replay->large[i] = replay->large[--replay->large_count];
            return;
        }
}

/* ---- frees that wait */

/* Hands a waiting block to the policy; its slot stays taken until the complete event. */
static void deliver(frag_replay *replay, uint32_t number, uint32_t stream)
{
    frag_slot *at = &replay->slots[number];
    uint64_t requested = at->requested_bytes & ~FRAG_SLOT_WAITING;
    replay->waiting_bytes -= requested + frag_slot_surplus(replay, number);
    replay->waiting_count--;
    if (frag_use_has(replay, number)) {
        at->requested_bytes = requested;
        frag_use_free(replay, number, stream);
        return;
    }
    frag_replay_give_back(replay, at->handle, stream);
    frag_slot_clear(replay, number);
}

static bool is_waiting(const frag_replay *replay, uint32_t number)
{
    const frag_slot *at = &replay->slots[number];
    return at->handle != FRAG_HANDLE_NONE && (at->requested_bytes & FRAG_SLOT_WAITING) != 0;
}

/* Is an entry of the queue that of a free that still waits? */
static bool is_current(const frag_replay *replay, frag_wait wait)
{
    return replay->wait_numbers[wait.slot] == wait.number && is_waiting(replay, wait.slot);
}

static void deliver_all(void *context)
{
    frag_replay *replay = context;
    while (replay->waiting_start < replay->waiting_end) {
        frag_wait wait = replay->waiting[replay->waiting_start++];
        if (is_current(replay, wait))
            deliver(replay, wait.slot, wait.stream);
    }
    replay->waiting_start = replay->waiting_end = 0;
    if (replay->uses != NULL && replay->ops->use == NULL)
        frag_use_sync(replay, FRAG_STREAM_ALL);
}

void frag_replay_wait(frag_replay *replay, uint32_t number, uint32_t stream)
{
    if (replay->waiting_end - replay->waiting_start > 2 * replay->waiting_count + 64) {
        size_t kept = 0;
        for (size_t i = replay->waiting_start; i < replay->waiting_end; i++)
            if (is_current(replay, replay->waiting[i]))
                replay->waiting[kept++] = replay->waiting[i];
        replay->waiting_start = 0;
        replay->waiting_end = kept;
    }
    replay->waiting = frag_grow(replay->waiting, &replay->waiting_capacity, replay->waiting_end + 1,
                                sizeof *replay->waiting);
    if (replay->wait_numbers == NULL)
        replay->wait_numbers =
            frag_alloc((size_t)replay->trace->slot_count + 1, sizeof *replay->wait_numbers);
    replay->wait_numbers[number] = ++replay->wait_count;
    replay->waiting[replay->waiting_end++] = (frag_wait){replay->wait_count, number, stream};
    replay->waiting_count++;
    frag_slot *at = &replay->slots[number];
    uint64_t bytes = at->requested_bytes + frag_slot_surplus(replay, number);
    replay->waiting_bytes += bytes;
    frag_replay_set_level(replay, replay->level.requested_bytes - at->requested_bytes,
                          replay->level.allocated_bytes - bytes);
    at->requested_bytes |= FRAG_SLOT_WAITING;
    if (replay->ops->defer != NULL)
        replay->ops->defer(replay->policy, at->handle);
    if (replay->notes != NULL)
        frag_note_requested(replay, at->handle);
}

/* ---- events off the fast path */

/* Bytes of the block that the event being replayed was just granted. */
static uint64_t granted_now(const frag_replay *replay)
{
    const frag_event *event = replay->now;
    if (event->op == FRAG_OP_ALLOC && event->slot == FRAG_SLOT_NONE)
        return replay->attempt_bytes;
    bool is_held =
        event->op == FRAG_OP_ALLOC && replay->slots[event->slot].handle != FRAG_HANDLE_NONE;
    return is_held
               ? replay->slots[event->slot].requested_bytes + frag_slot_surplus(replay, event->slot)
               : 0;
}

/* The policy called the device for memory or gave some back: keep sums, peak and the share that was
 * free. */
void frag_replay_note_reserved(frag_replay *replay)
{
    frag_replay_result *result = &replay->result;
    uint64_t reserved = replay->device->reserved_bytes;
    frag_wide_add_product(&result->reserved_sum, replay->reserved_seen,
                          frag_replay_event(replay) - replay->reserved_since);
    if (reserved > replay->reserved_seen && replay->reserved_seen > 0) {
        uint64_t in_use = replay->level.active_bytes - granted_now(replay);
        double ratio = in_use < replay->reserved_seen ? (double)(replay->reserved_seen - in_use) /
                                                            (double)replay->reserved_seen
                                                      : 0;
        if (ratio > result->external_ratio_max)
            result->external_ratio_max = ratio;
    }
    if (replay->is_peak_of_start && reserved < result->peak.reserved_bytes &&
        result->reserved_at_event == frag_replay_event(replay))
        result->reserved_at_event--;
    replay->is_peak_of_start = false;
    replay->reserved_seen = reserved;
    replay->device->has_changed = false;
    replay->reserved_since = frag_replay_event(replay);
    replay->level.reserved_bytes = reserved;
}

void frag_replay_note_peak(frag_replay *replay)
{
    if (replay->device->reserved_peak_bytes > replay->result.peak.reserved_bytes) {
        replay->result.peak.reserved_bytes = replay->device->reserved_peak_bytes;
        replay->result.reserved_at_event = frag_replay_event(replay);
        replay->result.at_reserved_peak = replay->level;
    }
}

typedef struct hole_sum {
    uint64_t largest;
    uint64_t total;
    uint64_t count;
} hole_sum;

static void add_hole(void *context, const frag_span *span)
{
    hole_sum *sum = context;
    if (span->kind != FRAG_SPAN_HOLE)
        return;
    sum->total += span->bytes;
    sum->count++;
    if (span->bytes > sum->largest)
        sum->largest = span->bytes;
}

/* A request that was not served is in no peak of requested or allocated bytes; so what was reserved
 * for it alone is in no peak of reserved bytes. What is left of that in a run that goes on is held
 * while later requests are served. The state from before the trace has its peak when it is whole.
 */
static void forget_peak_of_failure(frag_replay *replay)
{
    frag_device *device = replay->device;
    if ((replay->now->flags & FRAG_EVENT_INITIAL) != 0)
        return;
    uint64_t kept = replay->is_oom_skipped ? device->reserved_bytes : 0;
    uint64_t peak = replay->result.peak.reserved_bytes;
    device->reserved_peak_bytes = kept > peak ? kept : peak;
}

void frag_replay_run_out(frag_replay *replay, const frag_request *request)
{
    frag_replay_result *result = &replay->result;
    result->failed_requests++;
    bool is_counted = true;
    if (replay->ops->describe_oom != NULL && (!result->oom.has_happened || replay->notes != NULL))
        is_counted = replay->ops->describe_oom(replay->policy, request, replay->oom_message,
                                               sizeof replay->oom_message);
    if (replay->notes != NULL && is_counted)
        frag_note_oom(replay, request);
    if (!result->oom.has_happened) {
        hole_sum holes = {0};
        replay->ops->walk(replay->policy, add_hole, &holes);
        uint64_t free_bytes = 0;
        uint64_t total_bytes = 0;
        /* The engine's own look is not a call of the policy. */
        frag_device_look_at_memory(replay->device, &free_bytes, &total_bytes);
        result->oom = (frag_oom){
            .has_happened = true,
            .event = frag_replay_event(replay),
            .requested_bytes = request->bytes,
            .segment_bytes = replay->device->needs.refused_bytes,
            .free_bytes = free_bytes,
            .largest_hole_bytes = holes.largest,
            .total_hole_bytes = holes.total,
            .hole_count = holes.count,
            .level = replay->level,
        };
        memcpy(result->oom.message, replay->oom_message, sizeof replay->oom_message);
    }
    replay->has_stopped = !replay->is_oom_skipped;
    forget_peak_of_failure(replay);
}

static frag_request request_of(const frag_replay *replay, const frag_event *event)
{
    const uint32_t *pools = replay->trace->pools;
    return (frag_request){event->bytes, event->stream,
                          pools != NULL ? pools[frag_replay_event(replay)] : 0};
}

void frag_replay_refuse(frag_replay *replay, const frag_event *event)
{
    frag_request request = request_of(replay, event);
    replay->result.requests++;
    frag_slot_lack(replay, event->slot);
    frag_replay_run_out(replay, &request);
}

/* The block of a request that failed when recorded is held while its event lasts, like any other:
 * what was reserved for it is in the peak, so it is in the other peaks too. */
static void count_attempt(frag_replay *replay, const frag_request *request, const frag_grant *grant)
{
    frag_replay_result *result = &replay->result;
    frag_level before = replay->level;
    uint64_t requested = before.requested_bytes + request->bytes;
    uint64_t allocated = before.allocated_bytes + grant->block_bytes;
    replay->attempt_bytes = grant->block_bytes;
    frag_replay_set_level(replay, requested, allocated);
    if (requested > result->peak.requested_bytes) {
        result->peak.requested_bytes = requested;
        result->peak_requested_event = frag_replay_event(replay);
    }
    (void)frag_replay_note_allocated(replay, allocated);
    frag_replay_note_reserved(replay);
    frag_replay_note_peak(replay);
    frag_replay_set_level(replay, before.requested_bytes, before.allocated_bytes);
    replay->attempt_bytes = 0;
}

/* A request that failed when it was recorded: the program went on without it. */
static void attempt(frag_replay *replay, const frag_event *event)
{
    frag_request request = request_of(replay, event);
    frag_grant grant;
    replay->result.requests++;
    if (!frag_replay_ask(replay, &request, &grant)) {
        frag_replay_run_out(replay, &request);
        return;
    }
    count_attempt(replay, &request, &grant);
    if (replay->is_attempt_kept && frag_replay_event(replay) + 1 == replay->end)
        frag_slot_fill(replay, replay->trace->slot_count, request.bytes, grant.block_bytes,
                       grant.handle);
    else
        frag_replay_give_back(replay, grant.handle, request.stream);
}

/* A request off the fast path: one that names its place, which the policy looks for where it has no
 * such thing, or one of a shortened trace. */
static void place(frag_replay *replay, const frag_event *event)
{
    frag_request request = request_of(replay, event);
    frag_grant grant;
    if (replay->places != NULL)
        frag_places_tell(replay);
    if (!frag_replay_ask(replay, &request, &grant)) {
        frag_replay_refuse(replay, event);
        return;
    }
    frag_level level = replay->level;
    uint64_t requested = level.requested_bytes + request.bytes;
    uint64_t allocated = level.allocated_bytes + grant.block_bytes;
    replay->result.requests++;
    frag_slot_fill(replay, event->slot, request.bytes, grant.block_bytes, grant.handle);
    frag_replay_set_level(replay, requested, allocated);
    if (requested > replay->result.peak.requested_bytes) {
        replay->result.peak.requested_bytes = requested;
        replay->result.peak_requested_event = frag_replay_event(replay);
    }
    (void)frag_replay_note_allocated(replay, allocated);
}

static void take_once(frag_replay *replay, const frag_event *event)
{
    const frag_slot *at = &replay->slots[event->slot];
    /* All is 0 where a slot has never been used. */
    if (at->requested_bytes == 0 || at->handle == FRAG_HANDLE_NONE)
        place(replay, event);
}

static void change_pool(frag_replay *replay, const frag_event *event)
{
    static const frag_pool_change changes[FRAG_OP_COUNT] = {
        [FRAG_OP_POOL_BEGIN] = FRAG_POOL_BEGUN,       [FRAG_OP_POOL_END] = FRAG_POOL_ENDED,
        [FRAG_OP_POOL_RELEASE] = FRAG_POOL_RELEASED,  [FRAG_OP_POOL_CREATE] = FRAG_POOL_CREATED,
        [FRAG_OP_POOL_ON_OOM] = FRAG_POOL_SERVES_OOM, [FRAG_OP_POOL_NO_SPLIT] = FRAG_POOL_UNSPLIT,
    };
    frag_pool_change change = changes[event->op];
    if (event->op == FRAG_OP_POOL_ON_OOM && (event->flags & FRAG_EVENT_END) != 0)
        change = FRAG_POOL_KEEPS_TO_IT;
    uint32_t stream = event->op == FRAG_OP_POOL_BEGIN && event->stream != FRAG_STREAM_ALL
                          ? event->stream
                          : FRAG_STREAM_EVERY;
    replay->ops->pool_change(replay->policy, change, event->slot, stream);
}

/* Settings that the policy refuses leave the old ones in force, as in the program. */
static bool configure(const frag_replay *replay, const frag_event *event)
{
    frag_error refusal = {0};
    return replay->ops->configure(
        replay->policy, frag_strings_get(&replay->recording->strings, event->slot), &refusal);
}

/* false: the policy knows no limit, or it is a share of a capacity that there is not. */
static bool set_limit(const frag_replay *replay, const frag_event *event)
{
    const frag_policy_ops *ops = replay->ops;
    if ((event->flags & FRAG_EVENT_RATIO) != 0)
        return frag_policy_set_share(ops, replay->policy, replay->device,
                                     frag_ratio_value(event->bytes));
    if (ops->set_limit != NULL)
        ops->set_limit(replay->policy, event->bytes);
    return ops->set_limit != NULL;
}

/* Neither an alloc nor a free. */
static void handle_rare(frag_replay *replay, const frag_event *event)
{
    const frag_policy_ops *ops = replay->ops;
    const frag_policy_statistics *statistics = frag_policy_engine_of(ops)->statistics;
    bool is_ignored = false;
    switch (event->op) {
    case FRAG_OP_COMPLETE:
        if (is_waiting(replay, event->slot))
            deliver(replay, event->slot, event->stream);
        break;
    case FRAG_OP_USE:
        if (replay->slots[event->slot].handle != FRAG_HANDLE_NONE)
            frag_use_add(replay, event->slot, event->stream);
        break;
    case FRAG_OP_SYNC:
        if (event->stream == FRAG_STREAM_ALL)
            deliver_all(replay);
        frag_use_sync(replay, event->stream);
        if (ops->sync != NULL)
            ops->sync(replay->policy,
                      event->stream == FRAG_STREAM_ALL ? FRAG_STREAM_EVERY : event->stream);
        break;
    case FRAG_OP_EMPTY_CACHE:
        is_ignored = ops->empty_cache == NULL;
        if (!is_ignored)
            ops->empty_cache(replay->policy,
                             event->slot == FRAG_SLOT_NONE ? FRAG_POOL_ALL : event->slot);
        break;
    case FRAG_OP_LIMIT:
        is_ignored = !set_limit(replay, event);
        break;
    case FRAG_OP_CONFIG:
        is_ignored = ops->configure == NULL || !configure(replay, event);
        break;
    case FRAG_OP_POOL_BEGIN:
    case FRAG_OP_POOL_END:
    case FRAG_OP_POOL_RELEASE:
    case FRAG_OP_POOL_CREATE:
    case FRAG_OP_POOL_ON_OOM:
    case FRAG_OP_POOL_NO_SPLIT:
        is_ignored = ops->pool_change == NULL;
        if (!is_ignored)
            change_pool(replay, event);
        break;
    case FRAG_OP_CAPTURE_BEGIN:
    case FRAG_OP_CAPTURE_END:
        is_ignored = ops->capture == NULL;
        if (!is_ignored)
            ops->capture(replay->policy, event->op == FRAG_OP_CAPTURE_BEGIN);
        break;
    case FRAG_OP_STATS_RESET:
        is_ignored = statistics == NULL;
        if (!is_ignored)
            statistics->reset(replay->policy, (event->bytes & FRAG_RESET_PEAKS) != 0,
                              (event->bytes & FRAG_RESET_SUMS) != 0);
        break;
    default:
        is_ignored = !frag_op_is_observed(event->op) && event->op != FRAG_OP_MARK;
        break;
    }
    replay->result.ignored_events += is_ignored ? 1 : 0;
}

/* A free of a block whose slack is counted separately. */
static void free_apart(frag_replay *replay, uint32_t number, uint32_t stream)
{
    uint64_t requested = replay->slots[number].requested_bytes;
    frag_replay_set_level(replay, replay->level.requested_bytes - requested,
                          replay->level.allocated_bytes - requested -
                              frag_slot_large_surplus(replay, number));
    if (frag_use_has(replay, number)) {
        frag_use_free(replay, number, stream);
    } else {
        frag_replay_give_back(replay, replay->slots[number].handle, stream);
        frag_slot_clear(replay, number);
    }
}

void frag_replay_handle_unusual(frag_replay *replay, const frag_event *event)
{
    if (event->op == FRAG_OP_ALLOC && event->slot != FRAG_SLOT_NONE)
        place(replay, event);
    else if (event->op == FRAG_OP_ALLOC)
        attempt(replay, event);
    else if (event->op == FRAG_OP_AGAIN)
        frag_replay_do_again(replay, event);
    else if (event->op == FRAG_OP_ONCE)
        take_once(replay, event);
    else if (event->op != FRAG_OP_FREE)
        handle_rare(replay, event);
    else if (replay->slots[event->slot].handle == FRAG_HANDLE_NONE)
        return; /* its request had failed */
    else if ((event->flags & FRAG_EVENT_DEFERRED) != 0)
        frag_replay_wait(replay, event->slot, event->stream);
    else
        free_apart(replay, event->slot, event->stream);
}

/* ---- the loop */

void frag_replay_run_batch(frag_replay *replay, uint64_t end)
{
    const frag_policy_engine *engine = frag_policy_engine_of(replay->ops);
    if (replay->is_watched)
        frag_replay_loop_over(replay, end, replay->trace->pools, NULL, NULL);
    else if (engine->replay != NULL)
        engine->replay(replay, end);
    else
        frag_replay_loop(replay, end, replay->ops->alloc, replay->ops->free);
}

/* ---- creating, running */

static void count_limits(const frag_trace *trace, const frag_policy_ops *ops,
                         frag_policy_limits *limits)
{
    /* One more for requests that failed when recorded. Blocks that wait for a stream in the engine
     * have left their slots. */
    uint64_t live = (uint64_t)trace->slot_count + 1 +
                    (ops->use == NULL ? trace->stats.op_counts[FRAG_OP_USE] : 0);
    *limits = (frag_policy_limits){
        .request_count = trace->stats.request_count + trace->stats.initial_count,
        .live_count_max = live < UINT32_MAX - 1 ? (uint32_t)live : UINT32_MAX - 1,
        .stream_count = trace->stream_count > 0 ? trace->stream_count : 1,
        .pool_count = trace->pool_count > 0 ? trace->pool_count : 1,
        .peak_requested_bytes = trace->stats.peak_requested_bytes,
        .requested_bytes_total = trace->stats.requested_bytes_total + trace->stats.initial_bytes,
        .use_count = trace->stats.op_counts[FRAG_OP_USE],
    };
    for (uint64_t i = 0;
         i < trace->event_count && (trace->events[i].flags & FRAG_EVENT_INITIAL) != 0; i++)
        limits->initial_segment_count += frag_op_is_observed(trace->events[i].op) ? 1 : 0;
}

/* A trace without a table has one stream, and the default pool. */
static void name_streams_and_pools(const frag_trace *trace, frag_policy_setup *setup)
{
    static const uint64_t no_handle;
    static const frag_pool_id default_pool;
    setup->stream_handles = trace->stream_count > 0 ? trace->stream_handles : &no_handle;
    setup->pool_ids = trace->pool_count > 0 ? trace->pool_ids : &default_pool;
}

const char *frag_recorded_version(const frag_recording *recording)
{
    const char *version = frag_recording_get(recording, "torch.version_hint");
    return version != NULL ? version : "";
}

static void name_policy(frag_replay *replay)
{
    const char *path = frag_object_path(replay->ops);
    replay->is_foreign = path != NULL;
    snprintf(replay->named, sizeof replay->named, "%s%s%s", replay->ops->name,
             path != NULL ? " of " : "", path != NULL ? path : "");
}

frag_replay *frag_replay_create_planned(const frag_run_setup *of, const frag_policy_plan *plan,
                                        frag_arena_spare *spare, frag_device *device,
                                        frag_error *error)
{
    const frag_trace *trace = of->trace;
    const frag_policy_ops *ops = of->ops;
    frag_policy_setup setup = {.values = of->values,
                               .device = device,
                               .recorded_version = frag_recorded_version(of->recording),
                               .plan = plan,
                               .ops = ops};
    count_limits(trace, ops, &setup.limits);
    size_t bytes = ops->arena_bytes(&setup.limits, of->values) +
                   ((size_t)trace->slot_count + 1) * sizeof(frag_slot) + 4096;
    frag_arena arena;
    if (!frag_arena_create_from(spare, &arena, bytes, error))
        return NULL;
    frag_slot *slots = frag_arena_take(&arena, (size_t)trace->slot_count + 1, sizeof *slots);
    name_streams_and_pools(trace, &setup);
    frag_replay *replay = frag_alloc(1, sizeof *replay);
    replay->recording = of->recording;
    replay->trace = trace;
    replay->now = trace->events;
    replay->ops = ops;
    replay->device = device;
    replay->slots = slots;
    replay->arena = arena;
    /* The policy may keep the arena's address. */
    setup.arena = &replay->arena;
    device->watch.on_synchronize = deliver_all;
    device->watch.on_synchronize_context = replay;
    setup.on_complete = frag_use_complete;
    setup.on_complete_context = replay;
    name_policy(replay);
    const char *before = frag_replay_blame(replay);
    replay->policy = ops->create(&setup, error);
    frag_assert_blame(before);
    if (replay->policy == NULL) {
        if (error != NULL && error->code == FRAG_E_NONE)
            frag_fail(
                error, FRAG_E_INPUT,
                "create of the policy %s returned nothing, and no error; expected one of both",
                ops->name);
        frag_replay_destroy(replay);
        return NULL;
    }
    frag_places_create(replay);
    return replay;
}

frag_replay *frag_replay_create(const frag_run_setup *setup, frag_device *device, frag_error *error)
{
    frag_policy_plan *plan = NULL;
    if (!frag_replay_plan(setup, NULL, &plan, error))
        return NULL;
    frag_replay *replay = frag_replay_create_planned(setup, plan, NULL, device, error);
    if (replay != NULL)
        replay->own_plan = plan;
    else
        frag_policy_plan_destroy(setup->ops, plan);
    return replay;
}

void frag_replay_destroy(frag_replay *replay)
{
    if (replay == NULL)
        return;
    frag_policy_plan_destroy(replay->ops, replay->own_plan);
    replay->device->watch.on_synchronize = NULL;
    frag_notes_end(replay);
    frag_audit_destroy(replay->audit);
    frag_use_destroy(replay->uses);
    frag_arena_destroy(&replay->arena);
    frag_free(replay->waiting);
    frag_free(replay->wait_numbers);
    frag_free(replay->large);
    frag_free(replay->places);
    frag_free(replay);
}

/* The device is of no use any more: the run has no result. */
static bool fail_with_device(const frag_replay *replay, uint64_t event, frag_error *error)
{
    return frag_fail(error, replay->device->is_misused ? FRAG_E_USAGE : FRAG_E_SYSTEM,
                     "the run ended at event %llu: %s", (unsigned long long)event,
                     replay->device->failure);
}

static bool is_audit_due(const frag_replay *replay)
{
    uint64_t every = replay->options.check_every;
    return every > 0 && (replay->since_check >= every || frag_audit_has_failed(replay));
}

static bool start(frag_replay *replay, const frag_replay_options *options, frag_error *error)
{
    replay->options = *options;
    replay->is_oom_skipped = options->is_oom_skipped;
    replay->is_attempt_kept = options->is_attempt_kept;
    replay->audit = options->check_every > 0 ? frag_audit_create() : NULL;
    frag_notes_begin(replay, options);
    const frag_policy_statistics *statistics = frag_policy_engine_of(replay->ops)->statistics;
    if (options->keeps_stats && statistics != NULL)
        statistics->keep(replay->policy);
    if (!frag_replay_begin(replay, error))
        return false;
    if (is_audit_due(replay))
        return frag_audit_run(replay, error);
    if (replay->device->has_failed)
        return fail_with_device(replay, frag_replay_event(replay), error);
    uint64_t end = replay->trace->event_count;
    replay->end = options->stop_after < end ? options->stop_after : end;
    return true;
}

bool frag_replay_start(frag_replay *replay, const frag_replay_options *options, frag_error *error)
{
    const char *before = frag_replay_blame(replay);
    bool ok = start(replay, options, error);
    frag_assert_blame(before);
    return ok;
}

static bool advance(frag_replay *replay, uint64_t until, frag_error *error)
{
    const frag_replay_options *options = &replay->options;
    uint64_t end = until < replay->end ? until : replay->end;
    uint64_t step = options->check_every > 0 ? options->check_every : BATCH_EVENTS;
    bool is_watched = options->observer != NULL || options->on_note != NULL ||
                      replay->places != NULL || replay->device->log.stream != NULL;
    step = is_watched ? 1 : step;
    const frag_event *first = replay->now;
    while (frag_replay_event(replay) < end && !replay->has_stopped) {
        uint64_t start = frag_replay_event(replay);
        uint64_t stop = end - start < step ? end : start + step;
        replay->device->log.event = start;
        frag_replay_run_batch(replay, stop);
        if (replay->device->has_failed)
            return fail_with_device(replay, frag_replay_event(replay) - 1, error);
        if (options->observer != NULL) {
            replay->level.reserved_bytes = replay->device->reserved_bytes;
            options->observer(options->observer_context, replay, start, &replay->level);
        }
        replay->since_check += stop - start;
        if (is_audit_due(replay)) {
            replay->since_check = 0;
            if (!frag_audit_run(replay, error))
                return false;
        }
        if (frag_is_cancelled(options->context)) {
            replay->result.is_interrupted = true;
            break;
        }
    }
    /* A search may try many capacities that the state at the start does not fit in. */
    if (replay->now == first && frag_is_cancelled(options->context))
        replay->result.is_interrupted = true;
    return true;
}

bool frag_replay_advance(frag_replay *replay, uint64_t until, frag_error *error)
{
    const char *before = frag_replay_blame(replay);
    bool ok = advance(replay, until, error);
    frag_assert_blame(before);
    return ok;
}

void frag_replay_finish(frag_replay *replay, frag_replay_result *result)
{
    frag_wide_add_product(&replay->result.reserved_sum, replay->device->reserved_bytes,
                          frag_replay_event(replay) - replay->reserved_since);
    replay->level.reserved_bytes = replay->device->reserved_bytes;
    replay->result.final = replay->level;
    replay->result.events = frag_replay_event(replay);
    *result = replay->result;
}

void frag_replay_prefer(frag_replay *replay, uint64_t address)
{
    if (frag_policy_engine_of(replay->ops)->prefer != NULL)
        frag_policy_engine_of(replay->ops)->prefer(replay->policy, address);
}

bool frag_replay_run(frag_replay *replay, const frag_replay_options *options,
                     frag_replay_result *result, frag_error *error)
{
    if (!frag_replay_start(replay, options, error))
        return false;
    bool ok = frag_replay_advance_repeats(replay, options->repeats, NULL, replay->end, error);
    frag_replay_finish(replay, result);
    return ok;
}
