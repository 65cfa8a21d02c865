/* A small recording in which everything occurs that a trace can say; and a way to compare two. */
#ifndef FRAG_SUPPORT_SAMPLE_RECORDING_H
#define FRAG_SUPPORT_SAMPLE_RECORDING_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "traces/builder.h"
#include "traces/load.h"

static inline uint32_t sample_string(frag_builder *builder, const char *text)
{
    return frag_builder_string(builder, text, strlen(text));
}

/* What formats before version 3 could not say. */
static inline void sample_add_newest(frag_builder *builder)
{
    const frag_build_event events[] = {
        {.op = FRAG_OP_LIMIT,
         .bytes = frag_ratio_code(0.07570907948282714),
         .flags = FRAG_EVENT_RATIO},
        {.op = FRAG_OP_LIMIT, .bytes = frag_ratio_code(1), .flags = FRAG_EVENT_RATIO},
        {.op = FRAG_OP_LIMIT, .bytes = frag_ratio_code(1e-300), .flags = FRAG_EVENT_RATIO},
    };
    for (size_t i = 0; i < sizeof events / sizeof *events; i++)
        frag_builder_add(builder, &events[i]);
}

static inline void sample_add_program(frag_builder *builder, uint32_t site, uint32_t pool)
{
    uint32_t a = frag_builder_slot_take(builder);
    uint32_t b = frag_builder_slot_take(builder);
    static const char odd_bytes[] =
        "nul \0, quote \", back\\slash, \n \t \r \x7f \xff\xfe caf\xc3\xa9 #=x";
    uint32_t odd = frag_builder_string(builder, odd_bytes, sizeof odd_bytes - 1);
    const frag_build_event events[] = {
        {.op = FRAG_OP_CONFIG, .slot = sample_string(builder, "expandable_segments:True")},
        {.op = FRAG_OP_MARK,
         .slot = odd,
         .flags = FRAG_EVENT_BEGIN,
         .time_ns = 1700000000000000000},
        {.op = FRAG_OP_ALLOC,
         .slot = a,
         .bytes = 512,
         .stream = 7,
         .address = 0x7f0000000000,
         .site = site,
         .pool = pool,
         .time_ns = 1700000000000000100},
        {.op = FRAG_OP_ALLOC, .slot = b, .bytes = FRAG_REQUEST_BYTES_MAX, .note = odd},
        {.op = FRAG_OP_ALLOC, .slot = FRAG_SLOT_NONE, .bytes = 99, .flags = FRAG_EVENT_FAILED},
        {.op = FRAG_OP_OOM, .bytes = 2097152, .address = 1234567, .stream = 7},
        {.op = FRAG_OP_USE, .slot = a, .stream = UINT64_MAX},
        {.op = FRAG_OP_FREE,
         .slot = a,
         .stream = 7,
         .bytes = 512,
         .flags = FRAG_EVENT_DEFERRED,
         .address = 0x7f0000000000,
         .time_ns = 1700000000000000090},
        {.op = FRAG_OP_SYNC, .is_stream_all = true},
        {.op = FRAG_OP_SYNC, .stream = 7},
        {.op = FRAG_OP_COMPLETE, .slot = a, .stream = 0},
        {.op = FRAG_OP_FREE, .slot = b, .note = sample_string(builder, "last use")},
        {.op = FRAG_OP_EMPTY_CACHE, .slot = FRAG_SLOT_NONE, .flags = FRAG_EVENT_INFERRED},
        {.op = FRAG_OP_EMPTY_CACHE, .slot = pool},
        {.op = FRAG_OP_LIMIT, .bytes = 800000000, .flags = FRAG_EVENT_RATIO},
        {.op = FRAG_OP_LIMIT, .bytes = UINT64_MAX},
        {.op = FRAG_OP_POOL_BEGIN, .slot = pool, .is_stream_all = true},
        {.op = FRAG_OP_POOL_BEGIN, .slot = pool, .stream = 7, .flags = FRAG_EVENT_INFERRED},
        {.op = FRAG_OP_POOL_END, .slot = pool},
        {.op = FRAG_OP_POOL_RELEASE, .slot = pool},
        {.op = FRAG_OP_POOL_CREATE, .slot = pool, .flags = FRAG_EVENT_INFERRED},
        {.op = FRAG_OP_POOL_ON_OOM, .slot = pool, .flags = FRAG_EVENT_BEGIN},
        {.op = FRAG_OP_POOL_ON_OOM, .slot = pool, .flags = FRAG_EVENT_END},
        {.op = FRAG_OP_POOL_NO_SPLIT, .slot = pool},
        {.op = FRAG_OP_CAPTURE_BEGIN},
        {.op = FRAG_OP_CAPTURE_END},
        {.op = FRAG_OP_STATS_RESET, .bytes = FRAG_RESET_PEAKS | FRAG_RESET_SUMS},
        {.op = FRAG_OP_SEGMENT_ALLOC,
         .bytes = 2097152,
         .address = 0x7f0000000000,
         .stream = 7,
         .site = site},
        {.op = FRAG_OP_SEGMENT_MAP,
         .bytes = 20971520,
         .address = UINT64_MAX - 20971520,
         .pool = pool},
        {.op = FRAG_OP_SEGMENT_UNMAP, .bytes = 20971520, .address = UINT64_MAX - 20971520},
        {.op = FRAG_OP_SEGMENT_FREE, .bytes = 2097152, .address = 0x7f0000000000, .stream = 7},
        {.op = FRAG_OP_MARK, .slot = 0, .flags = FRAG_EVENT_END},
        {.op = FRAG_OP_MARK, .slot = odd},
    };
    for (size_t i = 0; i < sizeof events / sizeof *events; i++)
        frag_builder_add(builder, &events[i]);
}

static inline void sample_add_prologue(frag_builder *builder)
{
    uint32_t live = frag_builder_slot_take(builder);
    uint32_t waiting = frag_builder_slot_take(builder);
    const frag_build_event events[] = {
        {.op = FRAG_OP_SEGMENT_ALLOC,
         .flags = FRAG_EVENT_INITIAL,
         .bytes = 4194304,
         .address = 0x7f1000000000},
        {.op = FRAG_OP_SEGMENT_MAP,
         .flags = FRAG_EVENT_INITIAL,
         .bytes = 2097152,
         .address = 0x7f2000000000},
        {.op = FRAG_OP_ALLOC,
         .flags = FRAG_EVENT_INITIAL,
         .slot = live,
         .bytes = 1000,
         .block_bytes = 1024,
         .address = 0x7f1000000000},
        {.op = FRAG_OP_ALLOC,
         .flags = FRAG_EVENT_INITIAL,
         .slot = waiting,
         .bytes = 500,
         .block_bytes = 512,
         .address = 0x7f1000000400,
         .stream = 7},
        {.op = FRAG_OP_FREE,
         .flags = FRAG_EVENT_INITIAL | FRAG_EVENT_DEFERRED,
         .slot = waiting,
         .stream = 7},
    };
    for (size_t i = 0; i < sizeof events / sizeof *events; i++)
        frag_builder_add(builder, &events[i]);
}

/* Two devices (0 and 3), the second with a prologue. has_newest: with what only the newest version
 * of our formats can say. */
static inline void sample_recording_of(frag_recording *recording, bool has_newest)
{
    frag_error error = {0};
    *recording = (frag_recording){0};
    frag_builder *builder = frag_builder_create(recording);
    frag_builder_metadata(builder, "torch.version", "2.9.1");
    frag_builder_metadata(builder, "", "\"\\\n");
    sample_string(builder, "a string that nothing uses");
    frag_frame outer = {sample_string(builder, "main"), sample_string(builder, "train.py"), 10};
    frag_frame inner = {sample_string(builder, "forward"), sample_string(builder, "model.py"),
                        UINT32_MAX};
    uint32_t frames[2] = {frag_builder_frame(builder, inner), frag_builder_frame(builder, outer)};
    frag_builder_site(builder, frames, 2);
    uint32_t site = frag_builder_site(builder, frames + 1, 1);
    frag_builder_device(builder, 0);
    sample_add_program(builder, site, frag_builder_pool(builder, (frag_pool_id){0, 1}));
    frag_builder_device(builder, 3);
    const uint64_t handles[] = {UINT64_MAX, 7, 0, 12};
    frag_builder_streams(builder, handles, 4);
    frag_builder_pool(builder, (frag_pool_id){UINT64_MAX, 5});
    sample_add_prologue(builder);
    sample_add_program(builder, 0, 1);
    if (has_newest)
        sample_add_newest(builder);
    if (!frag_builder_finish(builder, "sample", &error)) {
        fprintf(stderr, "sample recording: %s\n", error.sentence);
        abort();
    }
}

static inline void sample_recording(frag_recording *recording)
{
    sample_recording_of(recording, true);
}

static inline bool same_column(const void *a, const void *b, uint64_t bytes)
{
    if (a == NULL || b == NULL)
        return a == b;
    return memcmp(a, b, bytes) == 0;
}

static inline bool same_trace(const frag_trace *a, const frag_trace *b)
{
    uint64_t count = a->event_count;
    return a->device == b->device && count == b->event_count && a->slot_count == b->slot_count &&
           a->stream_count == b->stream_count && a->pool_count == b->pool_count &&
           (count == 0 || memcmp(a->events, b->events, count * sizeof *a->events) == 0) &&
           same_column(a->addresses, b->addresses, count * 8) &&
           same_column(a->times_ns, b->times_ns, count * 8) &&
           same_column(a->sites, b->sites, count * 4) &&
           same_column(a->pools, b->pools, count * 4) &&
           same_column(a->notes, b->notes, count * 4) &&
           same_column(a->block_bytes, b->block_bytes, count * 8) &&
           (a->stream_count == 0 || memcmp(a->stream_handles, b->stream_handles,
                                           a->stream_count * sizeof *a->stream_handles) == 0) &&
           memcmp(a->pool_ids, b->pool_ids, a->pool_count * sizeof *a->pool_ids) == 0 &&
           memcmp(&a->stats, &b->stats, sizeof a->stats) == 0 && strcmp(a->digest, b->digest) == 0;
}

/* Everything equal, down to the numbers of strings, frames and call sites. */
static inline bool same_recording(const frag_recording *a, const frag_recording *b)
{
    if (a->strings.count != b->strings.count || a->metadata_count != b->metadata_count ||
        a->frame_count != b->frame_count || a->site_count != b->site_count ||
        a->site_frame_count != b->site_frame_count || a->trace_count != b->trace_count)
        return false;
    if (a->strings.bytes_used != b->strings.bytes_used ||
        memcmp(a->strings.bytes, b->strings.bytes, a->strings.bytes_used) != 0)
        return false;
    if (a->metadata_count > 0 &&
        memcmp(a->metadata, b->metadata, a->metadata_count * sizeof *a->metadata) != 0)
        return false;
    if (a->frame_count > 0 && memcmp(a->frames, b->frames, a->frame_count * sizeof *a->frames) != 0)
        return false;
    if (memcmp(a->sites, b->sites, a->site_count * sizeof *a->sites) != 0)
        return false;
    if (a->site_frame_count > 0 &&
        memcmp(a->site_frames, b->site_frames, a->site_frame_count * 4) != 0)
        return false;
    for (uint32_t i = 0; i < a->trace_count; i++)
        if (!same_trace(&a->traces[i], &b->traces[i]))
            return false;
    return true;
}

typedef bool sample_writer(const frag_recording *recording, FILE *stream, frag_error *error);

/* The written form in memory; the caller frees it. */
static inline char *sample_written(const frag_recording *recording, sample_writer *write,
                                   size_t *bytes)
{
    char *text = NULL;
    frag_error error = {0};
    FILE *stream = open_memstream(&text, bytes);
    if (stream == NULL || !write(recording, stream, &error) || fclose(stream) != 0)
        abort();
    return text;
}

static inline bool sample_load_as(const void *bytes, size_t count, const frag_load_options *options,
                                  frag_recording *recording, frag_error *error)
{
    frag_findings findings = {0};
    frag_input *input = frag_input_from_memory(bytes, count, "dir/sample");
    bool ok = frag_recording_load_input(input, options, recording, &findings, error);
    frag_input_close(input);
    return ok;
}

static inline bool sample_load(const void *bytes, size_t count, bool with_columns,
                               frag_recording *recording, frag_error *error)
{
    frag_load_options options = {.with_sites = with_columns, .with_columns = with_columns};
    return sample_load_as(bytes, count, &options, recording, error);
}

/* Flips, overwrites, cuts, doubles: one of many small damages, chosen by *seed. Returns the new
 * size. */
static inline size_t sample_damage(unsigned char *bytes, size_t count, uint64_t *seed)
{
    uint64_t r = (*seed += 0x9e3779b97f4a7c15u);
    r = (r ^ (r >> 30)) * 0xbf58476d1ce4e5b9u;
    r = (r ^ (r >> 27)) * 0x94d049bb133111ebu;
    r ^= r >> 31;
    size_t at = (size_t)((r >> 8) % count);
    switch (r % 5) {
    case 0:
        bytes[at] = (unsigned char)(bytes[at] ^ (1u << ((r >> 40) % 8)));
        return count;
    case 1:
        bytes[at] = (unsigned char)(r >> 48);
        return count;
    case 2:
        return at;
    case 3:
        memmove(bytes + at, bytes + at + 1, count - at - 1);
        return count - 1;
    default:
        bytes[at] = (unsigned char)"0123456789 =\"\n-x"[(r >> 48) % 16];
        return count;
    }
}

#endif
