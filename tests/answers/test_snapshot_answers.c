/* What the reader of snapshots makes of random histories whose beginning is lost, as a ring buffer
 * loses it, with and without the pool of each entry, and with kinds of entries left out. What was
 * changed on purpose is pinned anew:
 *
 *   test_snapshot_answers            compares with tests/data/answers/snapshots.txt.zst
 *   test_snapshot_answers --write    prints what that file should hold (make answers-golden)
 */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "base/memory.h"
#include "tests/support/pinned_lines.h"
#include "tests/support/policy_case.h"
#include "tests/support/random_trace.h"
#include "tests/support/made_snapshot.h"
#include "tests/support/text_recording.h"
#include "tests/support/xorshift.h"

/* Of the last runs, those with private pools, only the history without pools is read: whole, and
 * without its beginning. */
enum { RUNS = 150, POOL_RUNS = 250, FOLDED_RUNS = 500, EVENTS_MAX = 700 };

/* Requests of a few mebibytes in two private pools and outside, on a device that is too small for
 * all that is cached: memory is given back often, in one order or another. */
/* The same with sizes that are limits of the policy, or 512 bytes beside. */
enum { BORDER_RUNS = 240, BORDER_EVENTS = 90, BORDER_BLOCKS = 14 };

enum { RESTORED_RUNS = 600, RESTORED_SEGMENTS = 3, RESTORED_UNITS = 8, RESTORED_SEARCHED = 4 };

enum { TIGHT_RUNS = 160, TIGHT_EVENTS = 240, TIGHT_BLOCKS = 48 };

/* ---- what is made of it */

static void tell_findings(frag_text *out, const frag_findings *findings)
{
    for (uint32_t i = 0; i < findings->count; i++)
        frag_text_add(out, ", %s %" PRIu64, findings->items[i].kind, findings->items[i].count);
}

static void tell_recording(frag_text *out, const frag_recording *recording)
{
    const frag_trace *trace = &recording->traces[0];
    uint64_t sum = 0;
    pinned_add_recording(&sum, recording);
    frag_text_add(
        out, "%" PRIu64 " events, %" PRIu64 " blocks before, %" PRIu32 " pools, %08" PRIx32,
        trace->event_count, trace->stats.initial_count, trace->pool_count, (uint32_t)(sum >> 32));
}

static void tell_snapshot(frag_text *out, const made_snapshot *of, const made_snapshot_loss *lost)
{
    frag_text text = {0};
    frag_recording recording;
    frag_findings findings;
    frag_error error;
    made_snapshot_write(&text, of, lost);
    frag_text_add(out, "  from %zu, without %x%s: ", lost->first, lost->kinds,
                  lost->has_pools ? ", pools" : "");
    if (frag_test_load(text.bytes, text.length, FRAG_FORMAT_SNAPSHOT, &recording, &findings,
                       &error)) {
        tell_recording(out, &recording);
        tell_findings(out, &findings);
        frag_recording_destroy(&recording);
    } else {
        frag_text_add(out, "error %d in line %" PRIu64, (int)error.code, error.line);
    }
    frag_text_add(out, "\n");
    frag_text_destroy(&text);
}

static void tell_pools(frag_text *out, const made_snapshot *of)
{
    tell_snapshot(out, of, &(made_snapshot_loss){0});
    tell_snapshot(out, of, &(made_snapshot_loss){.first = of->note_count / 5});
}

static void tell_history(frag_text *out, const made_snapshot *of, uint64_t seed)
{
    static const uint32_t kinds[] = {1u << FRAG_NOTE_FREE_REQUESTED, 1u << FRAG_NOTE_FREE_COMPLETED,
                                     1u << FRAG_NOTE_ALLOC,
                                     1u << FRAG_NOTE_SEGMENT_ALLOC | 1u << FRAG_NOTE_SEGMENT_MAP,
                                     1u << FRAG_NOTE_SEGMENT_FREE | 1u << FRAG_NOTE_SEGMENT_UNMAP};
    const size_t firsts[] = {0, 1, of->note_count / 4, of->note_count / 2,
                             of->note_count - of->note_count / 8};
    for (size_t i = 0; i < sizeof firsts / sizeof firsts[0]; i++) {
        made_snapshot_loss lost = {.first = firsts[i]};
        tell_snapshot(out, of, &lost);
        lost.has_pools = true;
        tell_snapshot(out, of, &lost);
        lost.kinds = kinds[(seed + i) % (sizeof kinds / sizeof kinds[0])];
        lost.has_pools = i % 2 == 0;
        tell_snapshot(out, of, &lost);
    }
}

/* Drivers reserve ranges from above: what is made later lies below. */
static frag_device *open_descending(void *context, const frag_trace *trace,
                                    const frag_sim_device_options *rule, frag_error *error)
{
    (void)context;
    (void)trace;
    (void)error;
    frag_sim_device_options options = *rule;
    options.address_rule = FRAG_ADDRESS_BUMP;
    options.base_address = (uint64_t)1 << 46;
    options.is_descending = true;
    return frag_sim_device_create(&options);
}

/* Runs it as a trace with that seed, and tells what is read of it. */
static void tell_made(frag_text *out, const frag_recording *recording, const policy_case *what,
                      uint64_t seed, bool has_pools)
{
    frag_policy_spec spec;
    frag_error error = {0};
    made_snapshot of = {0};
    const frag_device_opener descending = {.open = open_descending};
    frag_device_spec device = {.capacity_bytes = what->capacity_bytes,
                               .opener = seed % 4 < 2 ? NULL : &descending};
    if (frag_policy_spec_parse(what->policy, &spec, &error)) {
        const frag_run_setup setup = {recording, &recording->traces[0], spec.ops, spec.values,
                                      &device};
        if (made_snapshot_make(&of, &setup, &error)) {
            frag_text_add(out, "trace %" PRIu64 ", %s: %zu notes\n", seed, what->policy,
                          of.note_count);
            if (has_pools)
                tell_pools(out, &of);
            else
                tell_history(out, &of, seed);
        }
        frag_policy_spec_destroy(&spec);
    }
    made_snapshot_destroy(&of);
}

static void tell_run(frag_text *out, const random_trace *trace, uint64_t seed, bool has_pools)
{
    frag_text text = {0};
    frag_recording recording;
    frag_findings findings;
    random_trace_write(trace, &text);
    frag_test_load_well(text.bytes, &recording, &findings);
    uint64_t bits = seed * 0x9e3779b97f4a7c15u;
    policy_case what = policy_case_draw(frag_policy_find("pytorch"), &recording.traces[0], &bits);
    if (seed % 2 == 0) { /* hardly ever drawn */
        free(what.policy);
        what.policy = frag_copy_text("pytorch:expandable_segments=true");
    }
    tell_made(out, &recording, &what, seed, has_pools);
    free(what.policy);
    frag_recording_destroy(&recording);
    frag_text_destroy(&text);
}

static void tell_tight(frag_text *out, uint64_t seed)
{
    static const char *const policies[] = {"pytorch", "pytorch:max_split_size_mb=24",
                                           "pytorch:max_split_size_mb=40,version=2.4"};
    frag_text text = {0};
    frag_recording recording;
    frag_findings findings;
    uint64_t bits = seed * 0x9e3779b97f4a7c15u | 1;
    uint32_t live[TIGHT_BLOCKS];
    uint32_t live_count = 0;
    frag_text_add(&text, "# fraglab trace 2\n");
    for (uint32_t i = 0; i < TIGHT_EVENTS; i++) {
        if (live_count == TIGHT_BLOCKS || (live_count > 0 && xorshift_next(&bits) % 9 < 4)) {
            uint32_t at = (uint32_t)(xorshift_next(&bits) % live_count);
            frag_text_add(&text, "free %" PRIu32 "\n", live[at]);
            live[at] = live[--live_count];
            continue;
        }
        static const uint64_t units[] = {512, 128 << 10, 1 << 20, 4 << 20};
        uint64_t unit = units[xorshift_next(&bits) % 4];
        uint64_t bytes = unit * (1 + xorshift_next(&bits) % 10);
        uint64_t pool = xorshift_next(&bits) % 4;
        frag_text_add(&text, "alloc %" PRIu32 " %" PRIu64, i, bytes);
        if (pool < 2)
            frag_text_add(&text, " pool=%" PRIu64, 5 + pool);
        frag_text_add(&text, "\n");
        live[live_count++] = i;
    }
    frag_test_load_well(text.bytes, &recording, &findings);
    policy_case what = {.policy = (char *)(uintptr_t)policies[seed % 3],
                        .capacity_bytes = (80 + xorshift_next(&bits) % 200) * FRAG_MIB};
    tell_made(out, &recording, &what, seed, true);
    frag_recording_destroy(&recording);
    frag_text_destroy(&text);
}

/* What a reader concludes from sizes has borders where the policy has: of small requests and
 * segments, of large ones, of blocks that are not split. */
static uint64_t draw_border(uint64_t *bits)
{
    static const uint64_t borders[] = {FRAG_MIB,      FRAG_MIB,      2 * FRAG_MIB,
                                       10 * FRAG_MIB, 20 * FRAG_MIB, 24 * FRAG_MIB,
                                       24 * FRAG_MIB, 44 * FRAG_MIB, 40 * FRAG_MIB};
    uint64_t bytes = borders[xorshift_next(bits) % (sizeof borders / sizeof borders[0])];
    uint64_t beside = xorshift_next(bits) % 4;
    return beside == 0 ? bytes - 512 : beside == 1 ? bytes + 512 : bytes;
}

static void tell_border(frag_text *out, uint64_t seed)
{
    static const struct {
        const char *policy;
        made_snapshot_loss lost;
    } cases[] = {
        {"pytorch:max_split_size_mb=24", {.max_split_bytes = 24 * FRAG_MIB}},
        {"pytorch:max_split_size_mb=24", {.max_split_bytes = 24 * FRAG_MIB, .has_pools = true}},
        {"pytorch:expandable_segments=true", {.has_pools = true}},
        {"pytorch", {.has_pools = true}},
        {"pytorch:garbage_collection_threshold=0.5", {.gc_threshold = 0.5, .has_pools = true}},
        {"pytorch:expandable_segments=true,max_split_size_mb=24",
         {.max_split_bytes = 24 * FRAG_MIB}}};
    frag_text text = {0};
    frag_recording recording;
    frag_findings findings;
    frag_policy_spec spec;
    frag_error error = {0};
    made_snapshot of = {0};
    uint64_t bits = seed * 0x9e3779b97f4a7c15u | 1;
    bool is_live[BORDER_BLOCKS] = {false};
    frag_text_add(&text, "# fraglab trace 2\n");
    for (uint32_t i = 0; i < BORDER_EVENTS; i++) {
        uint64_t slot = xorshift_next(&bits) % BORDER_BLOCKS;
        if (is_live[slot])
            frag_text_add(&text, "free %" PRIu64 "\n", slot);
        else
            frag_text_add(&text, "alloc %" PRIu64 " %" PRIu64 "%s\n", slot, draw_border(&bits),
                          seed % 3 == 0 && slot % 5 == 0 ? " pool=5" : "");
        is_live[slot] = !is_live[slot];
        if (xorshift_next(&bits) % 24 == 0)
            frag_text_add(&text, "empty_cache\n");
    }
    frag_test_load_well(text.bytes, &recording, &findings);
    size_t index = seed % (sizeof cases / sizeof cases[0]);
    uint64_t peak = recording.traces[0].stats.peak_requested_bytes;
    frag_device_spec device = {.capacity_bytes = peak + xorshift_next(&bits) % 6 * 8 * FRAG_MIB};
    assert_true(frag_policy_spec_parse(cases[index].policy, &spec, &error));
    const frag_run_setup setup = {&recording, &recording.traces[0], spec.ops, spec.values, &device};
    if (made_snapshot_make(&of, &setup, &error)) {
        made_snapshot_loss lost = cases[index].lost;
        tell_snapshot(out, &of, &lost);
        lost.first = of.note_count / 3;
        tell_snapshot(out, &of, &lost);
        lost.kinds = 1u << FRAG_NOTE_FREE_REQUESTED;
        tell_snapshot(out, &of, &lost);
    }
    made_snapshot_destroy(&of);
    frag_policy_spec_destroy(&spec);
    frag_recording_destroy(&recording);
    frag_text_destroy(&text);
}

/* ---- pools that are restored */

typedef struct restored_pool {
    frag_text text;
    uint64_t bits;
    const char *stream;
    bool is_live[RESTORED_SEGMENTS * RESTORED_UNITS + RESTORED_SEARCHED];
} restored_pool;

static bool draw_one_of(restored_pool *pool, uint64_t count)
{
    return xorshift_next(&pool->bits) % count == 0;
}

static void free_restored(restored_pool *pool, uint32_t block)
{
    if (pool->is_live[block])
        frag_text_add(&pool->text, "free %" PRIu32 "\n", block);
    pool->is_live[block] = false;
}

/* Fills a segment of small requests, or every third time of large ones, from its beginning on. */
static void fill_restored(restored_pool *pool, uint32_t segment, const char *placed)
{
    bool is_large = segment % 3 == 2;
    uint64_t unit = (is_large ? 20 : 2) * FRAG_MIB / RESTORED_UNITS;
    uint64_t address = ((uint64_t)0x7f00 << 32) + segment * 32 * FRAG_MIB;
    for (uint32_t at = 0; at < RESTORED_UNITS;) {
        uint32_t units = 1 + (uint32_t)(xorshift_next(&pool->bits) % (is_large ? 3 : 4));
        units = at + units > RESTORED_UNITS ? RESTORED_UNITS - at : units;
        uint32_t block = segment * RESTORED_UNITS + at;
        uint64_t less = draw_one_of(pool, 60) ? 256 : 0;
        if (at + units == RESTORED_UNITS && draw_one_of(pool, 12))
            break;
        free_restored(pool, block);
        frag_text_add(&pool->text, "alloc %" PRIu32 " %" PRIu64 " addr=0x%" PRIx64 "%s pool=5%s\n",
                      block, units * unit - less, address + at * unit, pool->stream, placed);
        pool->is_live[block] = true;
        at += units;
    }
}

/* Frees some of a segment's blocks, from below. */
static void free_some_restored(restored_pool *pool, uint32_t segment)
{
    bool is_upwards = !draw_one_of(pool, 8);
    for (uint32_t i = 0; i < RESTORED_UNITS; i++)
        if (draw_one_of(pool, 2))
            free_restored(pool,
                          segment * RESTORED_UNITS + (is_upwards ? i : RESTORED_UNITS - 1 - i));
}

static void free_all_restored(restored_pool *pool)
{
    uint32_t count = sizeof pool->is_live / sizeof pool->is_live[0];
    uint32_t from = (uint32_t)(xorshift_next(&pool->bits) % count);
    for (uint32_t i = 0; i < count; i++)
        if (i != from || !draw_one_of(pool, 6))
            free_restored(pool, (from + i * 5) % count);
}

static void restore(restored_pool *pool, uint32_t segments)
{
    uint32_t first = (uint32_t)(xorshift_next(&pool->bits) % segments);
    const char *placed = draw_one_of(pool, 3) ? "" : " placed"; /* or the program does the same */
    for (uint32_t i = 0; i < segments; i++) {
        uint32_t segment = (first + (segments - 1) * i) % segments;
        fill_restored(pool, segment, placed);
        free_some_restored(pool, segment);
    }
    for (uint32_t i = 0; i < RESTORED_SEARCHED; i++) {
        uint32_t block = RESTORED_SEGMENTS * RESTORED_UNITS + i;
        if (!draw_one_of(pool, 3))
            continue;
        free_restored(pool, block);
        frag_text_add(&pool->text, "alloc %" PRIu32 " %" PRIu64 "%s pool=5\n", block,
                      (1 + xorshift_next(&pool->bits) % 12) * 131072, pool->stream);
        pool->is_live[block] = true;
    }
}

static void tell_restored(frag_text *out, uint64_t seed)
{
    static const char *const policies[] = {"pytorch", "pytorch:expandable_segments=true",
                                           "pytorch:version=2.4"};
    restored_pool pool = {.bits = seed * 0x9e3779b97f4a7c15u | 1,
                          .stream = seed % 2 == 0 ? "" : " stream=7"};
    frag_recording recording;
    frag_findings findings;
    for (int i = 0; i < 8; i++)
        (void)xorshift_next(&pool.bits);
    uint32_t segments = 1 + (uint32_t)(xorshift_next(&pool.bits) % RESTORED_SEGMENTS);
    frag_text_add(&pool.text, "# fraglab trace 2\nalloc 28 4096\n");
    for (uint32_t i = 0; i < segments; i++)
        fill_restored(&pool, i, "");
    for (uint32_t i = 0; i < 3; i++) {
        free_all_restored(&pool);
        restore(&pool, segments);
    }
    frag_test_load_well(pool.text.bytes, &recording, &findings);
    policy_case what = {.policy = (char *)(uintptr_t)policies[seed % 3],
                        .capacity_bytes = 512 * FRAG_MIB};
    tell_made(out, &recording, &what, seed, seed % 3 != 0);
    frag_recording_destroy(&recording);
    frag_text_destroy(&pool.text);
}

static bool has_private_pools(const random_trace *trace)
{
    for (size_t i = 0; i < trace->count; i++)
        if (trace->events[i].op == FRAG_OP_POOL_BEGIN)
            return true;
    return false;
}

/* ---- releases */

static const char *part(unsigned parts, unsigned bit, const char *text)
{
    return (parts >> bit & 1) != 0 ? text : "";
}

/* A snapshot as JSON that has some of the keys by which releases are told. */
static void add_keys(frag_text *text, unsigned parts)
{
    frag_text_add(text, "{\"segments\": [");
    if ((parts & 1) != 0)
        frag_text_add(
            text,
            "{\"device\": 0, \"address\": 4096, \"total_size\": 2097152, \"stream\": 0, %s"
            "\"segment_type\": \"small\", \"blocks\": [{%s\"size\": 2097152, "
            "\"state\": \"inactive\"}]}",
            part(parts, 1, "\"is_expandable\": false, "), part(parts, 2, "\"address\": 4096, "));
    frag_text_add(text, "], \"device_traces\": [[");
    if ((parts >> 3 & 1) != 0)
        frag_text_add(
            text,
            "{\"action\": \"segment_alloc\", \"addr\": 4096, \"size\": 2097152, "
            "%s%s%s%s\"stream\": 0}",
            part(parts, 4, "\"time_us\": 7, "), part(parts, 5, "\"compile_context\": \"\", "),
            part(parts, 6, "\"user_metadata\": \"\", "), part(parts, 7, "\"pool_id\": [0, 0], "));
    frag_text_add(text, "]]");
    if ((parts >> 8 & 1) != 0)
        frag_text_add(text, ", \"allocator_settings\": {%s\"max_split_size\": %d}",
                      part(parts, 9, "\"graph_capture_record_stream_reuse\": false, "),
                      (int)(parts % 3) - 1);
    frag_text_add(text, "%s%s}", part(parts, 10, ", \"external_annotations\": []"),
                  part(parts, 11, ", \"host_segments\": []"));
}

static void tell_releases(frag_text *out)
{
    for (unsigned parts = 0; parts < 1u << 12; parts++) {
        frag_text text = {0};
        frag_recording recording;
        frag_findings findings;
        frag_error error = {0};
        add_keys(&text, parts);
        bool is_there = (parts & 9) != 0; /* segments, or entries */
        if (is_there && frag_test_load(text.bytes, text.length, FRAG_FORMAT_SNAPSHOT, &recording,
                                       &findings, &error)) {
            static const char *const keys[] = {"torch.version_min", "torch.version_max",
                                               "torch.version_hint", "torch.max_split_size"};
            frag_text_add(out, "%x:", parts);
            for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
                const char *value = frag_recording_get(&recording, keys[i]);
                frag_text_add(out, " %s", value != NULL ? value : "-");
            }
            frag_text_add(out, "\n");
            frag_recording_destroy(&recording);
        } else if (is_there) {
            frag_text_add(out, "%x: %s\n", parts, error.sentence);
        }
        frag_text_destroy(&text);
    }
}

static void tell_all(frag_text *out)
{
    random_trace trace = {0};
    unsigned count = 0;
    for (uint64_t seed = 5001; count < RUNS + POOL_RUNS + FOLDED_RUNS; seed++) {
        size_t from = out->length;
        bool is_late = count >= RUNS;
        random_trace_draw(&trace, seed);
        if (trace.count > EVENTS_MAX || (is_late && !has_private_pools(&trace)))
            continue;
        tell_run(out, &trace, seed, is_late);
        if (count >= RUNS + POOL_RUNS)
            pinned_fold(out, from, "one more");
        count++;
    }
    random_trace_destroy(&trace);
    for (uint64_t seed = 1; seed <= TIGHT_RUNS + FOLDED_RUNS; seed++) {
        size_t from = out->length;
        tell_tight(out, seed);
        if (seed > TIGHT_RUNS)
            pinned_fold(out, from, "one more that is tight");
    }
    for (uint64_t seed = 1; seed <= BORDER_RUNS; seed++) {
        size_t from = out->length;
        tell_border(out, seed);
        pinned_fold(out, from, "sizes at borders");
    }
    for (uint64_t seed = 1; seed <= RESTORED_RUNS;) {
        size_t from = out->length;
        for (int i = 0; i < 20; i++)
            tell_restored(out, seed++);
        pinned_fold(out, from, "pools that are restored");
    }
    size_t from = out->length;
    tell_releases(out);
    pinned_fold(out, from, "releases by keys");
}

static const pinned_lines pinned = {"tests/data/answers/snapshots.txt.zst", tell_all,
                                    "answers-golden"};

int main(int argc, char **argv)
{
    return pinned_lines_test(&pinned, argc, argv);
}
