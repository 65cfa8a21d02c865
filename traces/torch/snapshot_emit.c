#include "traces/torch/snapshot_emit.h"

#include "base/memory.h"
#include "traces/torch/history/snapshot_bursts.h"

/* What is known of a block of the rewound history: what events need of it is kept apart, close
 * together. */
enum { BLOCK_MISPLACED = 1, BLOCK_RELEASED = 2 /* its free has been emitted */ };

typedef struct emitter {
    const frag_snapshot *snapshot;
    const frag_snapshot_device *device;
    const frag_rewound *rewound;
    frag_snapshot_sites *sites;
    frag_builder *builder;
    frag_findings *findings;
    uint32_t ordinal;
    frag_burst_finder finder;
    uint64_t reserved_bytes;
    uint64_t burst_until; /* no burst begins before this entry */
    uint64_t run_until;   /* entries up to here have been looked at for an OOM at their end */
    uint64_t failed_oom;  /* the OOM entry whose request has been emitted already, + 1 */
    size_t mark;          /* the next annotation */
    uint32_t *slots;      /* by block */
    uint8_t *block_flags; /* by block: BLOCK_MISPLACED, BLOCK_RELEASED */
    uint32_t *pools;      /* by pool of the snapshot: the trace's + 1 */
    uint64_t *pool_last;  /* by pool: the last entry that allocates in it, + 1 */
    bool *is_pool_gone;   /* by pool: its release has been emitted */
    uint64_t snapshot_count;
    /* Completions inside a retry belong to the request that is retried: it synchronised for them.
     * They are held back until it has been emitted, so that a replay is not handed the blocks
     * before. */
    uint64_t held_until; /* completions before this entry are held back */
    uint64_t forgotten;  /* entries before this one are not in memory any more */
    uint64_t emptied_at; /* a call of empty_cache gives memory back from this entry on, + 1 */
    uint64_t *held;      /* entries */
    size_t held_count;
    size_t held_capacity;
} emitter;

static uint32_t pool_of(emitter *state, uint32_t pool)
{
    if (pool == 0)
        return 0;
    if (state->pools[pool] == 0)
        state->pools[pool] =
            frag_builder_pool(state->builder, frag_snapshot_pool_id(state->snapshot, pool)) + 1;
    return state->pools[pool] - 1;
}

static uint32_t note_of(emitter *state, uint32_t text)
{
    return text == FRAG_SNAPSHOT_EMPTY ? 0 : frag_snapshot_sites_string(state->sites, text);
}

static uint32_t site_of(emitter *state, const frag_snapshot_entry *entry, uint32_t forward)
{
    if (forward != 0)
        return frag_snapshot_sites_backward(state->sites, entry->frames, forward);
    uint32_t site = entry->frames == 0 ? 0 : frag_snapshot_sites_site(state->sites, entry->frames);
    return site == 0 && entry->frames != 0 && entry->action == FRAG_SNAPSHOT_ALLOC
               ? frag_snapshot_sites_empty(state->sites)
               : site;
}

static uint8_t inferred_flag(const frag_snapshot_entry *entry)
{
    return entry->is_inferred ? FRAG_EVENT_INFERRED : 0;
}

/* What every event takes from its entry. */
static frag_build_event event_of(emitter *state, const frag_snapshot_entry *entry, frag_op op)
{
    frag_snapshot_origin origin = frag_snapshot_get_origin(state->snapshot, entry->origin);
    return (frag_build_event){
        .op = op,
        .stream = origin.stream,
        .slot = FRAG_SLOT_NONE,
        .address = entry->address,
        .time_ns = frag_snapshot_time_ns(entry),
        .site = site_of(state, entry, origin.forward),
        .pool = pool_of(state, entry->pool),
        .note = note_of(state, origin.note),
    };
}

/* ---- the state at the start */

static void emit_initial_block(emitter *state, uint32_t index)
{
    const frag_rewound *rewound = state->rewound;
    const frag_rewound_block *block = &rewound->blocks[index];
    uint64_t stream = frag_snapshot_get_origin(state->snapshot, block->origin).stream;
    uint32_t frames = index < rewound->final_count ? rewound->final_frames[index] : 0;
    uint32_t slot = frag_builder_slot_take(state->builder);
    state->slots[index] = slot;
    frag_build_event event = {
        .op = FRAG_OP_ALLOC,
        .flags = FRAG_EVENT_INITIAL | (block->is_guessed ? FRAG_EVENT_INFERRED : 0),
        .stream = stream,
        .slot = slot,
        .bytes = block->requested_bytes,
        .address = block->address,
        .site = frag_snapshot_sites_site(state->sites, frames),
        .pool = pool_of(state, block->pool),
        .block_bytes = block->block_bytes,
    };
    frag_builder_add(state->builder, &event);
    if (!block->is_pending)
        return;
    state->block_flags[index] |= BLOCK_RELEASED;
    frag_builder_add(state->builder, &(frag_build_event){
                                         .op = FRAG_OP_FREE,
                                         .flags = FRAG_EVENT_INITIAL | FRAG_EVENT_DEFERRED,
                                         .stream = stream,
                                         .slot = slot,
                                         .address = block->address,
                                         .pool = event.pool,
                                     });
}

static void emit_start(emitter *state)
{
    const frag_rewound *rewound = state->rewound;
    size_t next = 0;
    for (size_t i = 0; i < rewound->range_count; i++) {
        const frag_held_range *range = &rewound->ranges[i];
        state->reserved_bytes += range->bytes;
        frag_builder_add(state->builder, &(frag_build_event){
                                             .op = range->is_expandable ? FRAG_OP_SEGMENT_MAP
                                                                        : FRAG_OP_SEGMENT_ALLOC,
                                             .flags = FRAG_EVENT_INITIAL,
                                             .stream = range->stream,
                                             .bytes = range->bytes,
                                             .address = range->address,
                                             .pool = pool_of(state, range->pool),
                                         });
        for (; next < rewound->initial_count; next++) {
            const frag_rewound_block *block = &rewound->blocks[rewound->initial[next]];
            if (block->address - range->address >= range->bytes)
                break;
            emit_initial_block(state, rewound->initial[next]);
        }
    }
    FRAG_ASSERT(next == rewound->initial_count);
}

/* ---- what is concluded */

static void emit_inferred(emitter *state, const frag_snapshot_entry *entry, frag_op op,
                          uint32_t slot)
{
    frag_builder_add(state->builder, &(frag_build_event){
                                         .op = op,
                                         .flags = FRAG_EVENT_INFERRED,
                                         .slot = slot,
                                         .time_ns = frag_snapshot_time_ns(entry),
                                         .pool = op == FRAG_OP_POOL_RELEASE ? slot : 0,
                                     });
}

/* Private pools give memory back only once their owner is gone; without one the policy must do so
 * too. */
static void release_pools(emitter *state, const frag_burst *burst)
{
    for (uint64_t i = burst->segments; i < burst->end; i++) {
        const frag_snapshot_entry *entry = &state->device->entries[i];
        uint32_t pool = entry->pool;
        if (pool == 0 || entry->is_dropped || entry->action == FRAG_SNAPSHOT_FREE_COMPLETED)
            continue;
        if (state->pool_last[pool] > i) {
            frag_findings_add(state->findings, "pool-shrinks-in-use",
                              "a private pool gave memory back and allocated later; no release of "
                              "the pool was inferred",
                              false, state->ordinal, i, "segment of %llu bytes at 0x%llx",
                              (unsigned long long)entry->bytes, (unsigned long long)entry->address);
            continue;
        }
        if (!state->is_pool_gone[pool])
            emit_inferred(state, entry, FRAG_OP_POOL_RELEASE, pool_of(state, pool));
        state->is_pool_gone[pool] = true;
    }
}

/* The pools of a burst that are gone are asked to give back what they hold. */
static void empty_pools(emitter *state, const frag_burst *burst)
{
    uint32_t last = 0;
    for (uint64_t i = burst->segments; i < burst->end; i++) {
        const frag_snapshot_entry *entry = &state->device->entries[i];
        if (entry->pool != 0 && entry->pool != last && !entry->is_dropped &&
            state->is_pool_gone[entry->pool])
            emit_inferred(state, entry, FRAG_OP_EMPTY_CACHE, pool_of(state, entry->pool));
        last = entry->pool;
    }
}

static frag_burst look_for_burst(emitter *state, uint64_t index)
{
    uint64_t seen_until = index;
    frag_burst burst = frag_burst_at(&state->finder, index, state->reserved_bytes, &seen_until);
    state->burst_until = seen_until > index ? seen_until : index + 1;
    if (burst.cause == FRAG_BURST_NONE)
        return burst;
    if (burst.cause == FRAG_BURST_RETRY || burst.cause == FRAG_BURST_UNKNOWN)
        state->held_until = burst.end;
    release_pools(state, &burst);
    if (burst.cause == FRAG_BURST_EMPTY_CACHE)
        state->emptied_at = burst.segments + 1;
    else if (burst.cause == FRAG_BURST_POOL)
        empty_pools(state, &burst);
    else if (burst.cause == FRAG_BURST_UNKNOWN)
        frag_findings_add(state->findings, "empty-cache-or-retry",
                          "memory is given back directly before new memory is taken: either to "
                          "make room for it, which is assumed, or by a call of empty_cache",
                          false, state->ordinal, index, "%llu segments, %llu bytes held before",
                          (unsigned long long)(burst.end - burst.segments),
                          (unsigned long long)state->reserved_bytes);
    return burst;
}

static void emit_failed(emitter *state, uint64_t oom)
{
    const frag_snapshot_entry *entry = &state->device->entries[oom];
    frag_build_event event = event_of(state, entry, FRAG_OP_ALLOC);
    event.flags = FRAG_EVENT_FAILED;
    event.address = 0;
    event.bytes = entry->bytes < FRAG_REQUEST_BYTES_MAX ? entry->bytes : FRAG_REQUEST_BYTES_MAX;
    if (event.bytes == 0)
        event.bytes = 1;
    frag_builder_add(state->builder, &event);
    state->failed_oom = oom + 1;
}

/* Can the entry be part of a request that has not been served yet? */
static bool is_within_request(const frag_snapshot_device *device, uint64_t index)
{
    switch (device->entries[index].action) {
    case FRAG_SNAPSHOT_SEGMENT_FREE:
    case FRAG_SNAPSHOT_SEGMENT_UNMAP:
    case FRAG_SNAPSHOT_SEGMENT_MAP:
        return true;
    default:
        return frag_snapshot_is_late(device, index);
    }
}

/* A request that failed is recorded last, after all that was tried for it; it was made before. */
static void look_ahead(emitter *state, uint64_t index)
{
    const frag_snapshot_device *device = state->device;
    frag_burst burst = {.cause = FRAG_BURST_NONE};
    if (!is_within_request(device, index))
        return;
    if (index >= state->burst_until)
        burst = look_for_burst(state, index);
    if (index < state->run_until)
        return;
    uint64_t end = index;
    while (end < device->entry_count && is_within_request(device, end))
        end++;
    state->run_until = end;
    if (end < device->entry_count && device->entries[end].action == FRAG_SNAPSHOT_OOM &&
        burst.cause != FRAG_BURST_EMPTY_CACHE)
        emit_failed(state, end);
}

/* ---- entries */

static void emit_segment(emitter *state, const frag_snapshot_entry *entry, frag_op op)
{
    frag_build_event event = event_of(state, entry, op);
    event.flags = inferred_flag(entry);
    event.bytes = entry->bytes;
    frag_builder_add(state->builder, &event);
    if (op == FRAG_OP_SEGMENT_ALLOC || op == FRAG_OP_SEGMENT_MAP)
        state->reserved_bytes += entry->bytes;
    else
        state->reserved_bytes -= entry->bytes;
}

static void emit_oom(emitter *state, uint64_t index)
{
    if (state->failed_oom != index + 1)
        emit_failed(state, index);
    const frag_snapshot_entry *entry = &state->device->entries[index];
    frag_build_event event = event_of(state, entry, FRAG_OP_OOM);
    event.bytes = entry->bytes;
    frag_builder_add(state->builder, &event);
}

static void emit_alloc(emitter *state, const frag_snapshot_entry *entry)
{
    frag_build_event event = event_of(state, entry, FRAG_OP_ALLOC);
    event.flags = (uint8_t)(inferred_flag(entry) | (entry->is_placed ? FRAG_EVENT_PLACED : 0));
    event.slot = frag_builder_slot_take(state->builder);
    state->slots[entry->block] = event.slot;
    event.bytes = entry->bytes;
    frag_builder_add(state->builder, &event);
}

static void emit_free(emitter *state, const frag_snapshot_entry *entry, frag_op op, uint8_t flags)
{
    frag_build_event event = event_of(state, entry, op);
    event.flags = (uint8_t)(flags | (op == FRAG_OP_FREE ? inferred_flag(entry) : 0));
    event.slot = state->slots[entry->block];
    frag_builder_add(state->builder, &event);
    state->block_flags[entry->block] |= BLOCK_RELEASED;
    if ((flags & FRAG_EVENT_DEFERRED) == 0)
        frag_builder_slot_give(state->builder, event.slot);
}

static void emit_completion(emitter *state, uint64_t index)
{
    const frag_snapshot_entry *entry = &state->device->entries[index];
    bool is_released = (state->block_flags[entry->block] & BLOCK_RELEASED) != 0;
    emit_free(state, entry, is_released ? FRAG_OP_COMPLETE : FRAG_OP_FREE, 0);
}

static void emit_held(emitter *state)
{
    for (size_t i = 0; i < state->held_count; i++)
        emit_completion(state, state->held[i]);
    state->held_count = 0;
}

static void hold(emitter *state, uint64_t index)
{
    *FRAG_APPEND(state->held, state->held_count, state->held_capacity) = index;
}

/* What the call waited for comes before it: in the recorded order, which is that of PyTorch's hash
 * table of streams. */
static void emit_emptying(emitter *state, uint64_t index)
{
    if (state->emptied_at == 0 || index + 1 < state->emptied_at)
        return;
    emit_inferred(state, &state->device->entries[index], FRAG_OP_EMPTY_CACHE, FRAG_SLOT_NONE);
    state->emptied_at = 0;
}

/* Emits what an entry says; returns how many entries that took. */
static uint64_t emit_entry(emitter *state, uint64_t index)
{
    const frag_snapshot_device *device = state->device;
    const frag_snapshot_entry *entry = &device->entries[index];
    const frag_snapshot_entry *next = index + 1 < device->entry_count ? entry + 1 : NULL;
    bool has_block = entry->block < state->rewound->block_count &&
                     (state->block_flags[entry->block] & BLOCK_MISPLACED) == 0;
    switch (entry->action) {
    case FRAG_SNAPSHOT_ALLOC:
        emit_alloc(state, entry);
        emit_held(state);
        return 1;
    case FRAG_SNAPSHOT_FREE_REQUESTED:
        if (!has_block)
            return 1;
        if (next != NULL && next->action == FRAG_SNAPSHOT_FREE_COMPLETED && !next->is_dropped &&
            next->block == entry->block) {
            emit_free(state, entry, FRAG_OP_FREE, 0);
            return 2;
        }
        emit_free(state, entry, FRAG_OP_FREE, FRAG_EVENT_DEFERRED);
        return 1;
    case FRAG_SNAPSHOT_FREE_COMPLETED:
    case FRAG_SNAPSHOT_FREE:
        if (has_block && index < state->held_until)
            hold(state, index);
        else if (has_block)
            emit_completion(state, index);
        return 1;
    case FRAG_SNAPSHOT_SEGMENT_ALLOC:
        emit_segment(state, entry, FRAG_OP_SEGMENT_ALLOC);
        return 1;
    case FRAG_SNAPSHOT_SEGMENT_FREE:
        emit_segment(state, entry, FRAG_OP_SEGMENT_FREE);
        return 1;
    case FRAG_SNAPSHOT_SEGMENT_MAP:
        emit_segment(state, entry, FRAG_OP_SEGMENT_MAP);
        return 1;
    case FRAG_SNAPSHOT_SEGMENT_UNMAP:
        emit_segment(state, entry, FRAG_OP_SEGMENT_UNMAP);
        return 1;
    case FRAG_SNAPSHOT_OOM:
        emit_oom(state, index);
        emit_held(state);
        return 1;
    case FRAG_SNAPSHOT_SNAPSHOT:
        state->snapshot_count++;
        return 1;
    default:
        frag_findings_add(state->findings, "unknown-action",
                          "an entry whose action is not known here; it was left out", false,
                          state->ordinal, index, "an entry of %llu bytes at 0x%llx",
                          (unsigned long long)entry->bytes, (unsigned long long)entry->address);
        return 1;
    }
}

static void emit_marks(emitter *state, uint64_t until_us)
{
    for (; state->mark < state->device->mark_count; state->mark++) {
        const frag_snapshot_mark *mark = &state->device->marks[state->mark];
        if (mark->time_us > until_us)
            return;
        frag_builder_add(state->builder,
                         &(frag_build_event){
                             .op = FRAG_OP_MARK,
                             .flags = mark->flags,
                             .slot = frag_snapshot_sites_string(state->sites, mark->name),
                             .time_ns = mark->time_us * 1000,
                         });
    }
}

static void find_last_allocs(emitter *state)
{
    if (state->snapshot->pools.count == 1) /* where all is the default pool's, nobody asks */
        return;
    for (uint64_t i = 0; i < state->device->entry_count; i++) {
        const frag_snapshot_entry *entry = &state->device->entries[i];
        if (entry->action == FRAG_SNAPSHOT_ALLOC && !entry->is_dropped)
            state->pool_last[entry->pool] = i + 1;
    }
}

/* Entries take more memory than the trace that is made of them, so those that are done go back to
 * the system while it grows. Whatever looks back (frag_burst_at) looks at fewer than this. */
enum { LOOKED_BACK_MAX = 1 << 14, FORGOTTEN_MIN = 1 << 18 };

static void forget_entries(emitter *state, uint64_t index)
{
    uint64_t until = state->held_count > 0 ? state->held[0] : index;
    if (until < state->forgotten + FORGOTTEN_MIN + LOOKED_BACK_MAX)
        return;
    state->forgotten = until - LOOKED_BACK_MAX;
    frag_memory_forget(state->device->entries, state->forgotten * sizeof *state->device->entries);
}

/* About how many there will be: what is inferred, and frees that take two events, are few. */
static uint64_t count_events(const emitter *state)
{
    const frag_rewound *rewound = state->rewound;
    const frag_snapshot_device *device = state->device;
    return rewound->range_count + rewound->initial_count + device->mark_count +
           rewound->block_count * 2 + rewound->segment_entry_count + 64;
}

void frag_snapshot_emit(const frag_snapshot *snapshot, uint32_t device, const frag_rewound *rewound,
                        frag_snapshot_sites *sites, frag_builder *builder, frag_findings *findings)
{
    emitter state = {
        .snapshot = snapshot,
        .device = &snapshot->devices[device],
        .rewound = rewound,
        .sites = sites,
        .builder = builder,
        .findings = findings,
        .ordinal = device,
    };
    state.slots = frag_alloc(rewound->block_count, sizeof *state.slots);
    state.block_flags = frag_alloc(rewound->block_count, sizeof *state.block_flags);
    for (size_t i = 0; i < rewound->misplaced_count; i++)
        state.block_flags[rewound->misplaced[i]] = BLOCK_MISPLACED;
    state.pools = frag_alloc(snapshot->pools.count, sizeof *state.pools);
    state.pool_last = frag_alloc(snapshot->pools.count, sizeof *state.pool_last);
    state.is_pool_gone = frag_alloc(snapshot->pools.count, sizeof *state.is_pool_gone);
    find_last_allocs(&state);
    frag_burst_finder_create(&state.finder, snapshot, device, rewound);
    frag_builder_device(builder, device);
    frag_builder_expect(builder, count_events(&state));
    emit_start(&state);
    for (uint64_t i = 0; i < state.device->entry_count;) {
        const frag_snapshot_entry *entry = &state.device->entries[i];
        if (state.mark < state.device->mark_count)
            emit_marks(&state, entry->time_us);
        if (entry->is_dropped) {
            i++;
            continue;
        }
        look_ahead(&state, i);
        emit_emptying(&state, i);
        i += emit_entry(&state, i);
        forget_entries(&state, i);
    }
    emit_held(&state);
    emit_marks(&state, UINT64_MAX);
    if (state.snapshot_count > 0)
        frag_findings_add(
            findings, "snapshots-taken",
            "earlier snapshots were taken while this history ran; they need no memory", false,
            device, 0, "%llu of them", (unsigned long long)state.snapshot_count);
    frag_burst_finder_destroy(&state.finder);
    frag_free(state.slots);
    frag_free(state.block_flags);
    frag_free(state.pools);
    frag_free(state.pool_last);
    frag_free(state.is_pool_gone);
    frag_free(state.held);
}
