/* Tests of shortened traces: what comes of one, replayed, is what comes of the trace that holds all
 * of it, for drawn models that answer, settings of the allocator and sizes of the card. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "allocators/registry.h"
#include "base/bits.h"
#include "base/bytes.h"
#include "base/memory.h"
#include "sim/run.h"
#include "tests/support/xorshift.h"
#include "workload/generate.h"

enum { MODELS = 12, CAPACITIES = 4 };

static const frag_tape_card card = {
    .capability = 80, .multiprocessors = 108, .threads_per_multiprocessor = 2048};

typedef struct pair {
    frag_recording whole;
    frag_recording less; /* shortened */
    uint64_t done_again; /* events of it that do something again */
} pair;

static uint64_t draw(uint64_t *random, uint64_t below)
{
    return xorshift_next(random) % below;
}

static void draw_yaml(uint64_t *random, char *yaml, size_t room)
{
    static const char *const models[] = {
        "family: llama, width: 512, heads: 8, key_heads: 4, inner: 1024, layers: 13",
        "family: llama, width: 1024, heads: 8, key_heads: 8, inner: 2048, layers: 9, tied: true",
        "family: gpt2, width: 512, heads: 8, inner: 2048, layers: 12",
        "family: mistral, width: 256, heads: 4, key_heads: 4, inner: 512, layers: 17, window: 700",
        "family: qwen2, width: 768, heads: 6, key_heads: 2, inner: 1024, layers: 10, tied: true",
        "family: opt, width: 512, heads: 8, inner: 1024, layers: 8",
    };
    static const char *const lengths[] = {"600", "40", "1000..1100", "700, 300, 700", "1500"};
    static const char *const types[] = {"bf16", "fp16", "fp32", "amp-bf16"};
    snprintf(yaml, room,
             "model: {%s, vocabulary: 1000, positions: 4096}\n"
             "run: {task: %s, batch: %u, tokens: [%s], new_tokens: %u, steps: %u, precision: %s}\n",
             models[draw(random, 6)], draw(random, 4) == 0 ? "rlhf" : "generate",
             (unsigned)(1 + draw(random, 24)), lengths[draw(random, 5)],
             (unsigned)(1 + draw(random, 30)), (unsigned)(1 + draw(random, 4)),
             types[draw(random, 4)]);
}

/* What grows from token to token makes the peak: with a last layer that is left out or not, and
 * with small requests that are more than it. */
static const char *const growing[] = {
    "model: {family: llama, width: 512, heads: 8, key_heads: 8, inner: 512, layers: 9, vocabulary: "
    "1000}\nrun: {task: generate, batch: 64, tokens: 60, new_tokens: 40, precision: bf16}\n",
    "model: {family: llama, width: 512, heads: 8, key_heads: 8, inner: 512, layers: 10, "
    "vocabulary: "
    "1000}\nrun: {task: generate, batch: 64, tokens: 60, new_tokens: 40, precision: bf16}\n",
    "model: {family: llama, width: 512, heads: 8, key_heads: 1, inner: 8192, layers: 10, "
    "vocabulary: "
    "1000}\nrun: {task: generate, batch: 24, tokens: 4, new_tokens: 250, precision: fp32}\n",
    "model: {family: llama, width: 512, heads: 8, key_heads: 1, inner: 8192, layers: 11, "
    "vocabulary: "
    "1000}\nrun: {task: generate, batch: 24, tokens: 4, new_tokens: 250, precision: fp32}\n",
    /* Batches whose gradients are added up, behind others of their length and not; autocast. */
    "model: {family: gpt2, width: 256, heads: 4, inner: 1024, layers: 3, vocabulary: 1000}\n"
    "run: {batch: 6, tokens: [300, 300, 300, 300, 120, 120, 300, 300], accumulate: 12, steps: 3, "
    "precision: amp-bf16}\n",
    "model: {family: llama, width: 256, heads: 4, key_heads: 2, inner: 512, layers: 5, vocabulary: "
    "1000}\nrun: {batch: 4, tokens: 200, accumulate: 9, steps: 2, lora_rank: 8, "
    "keep_outputs: true, optimizer: adafactor}\n",
    "model: {family: vit, width: 192, heads: 3, inner: 768, layers: 4}\n"
    "run: {batch: 3, accumulate: 6, steps: 3, precision: amp-fp16, leak: losses}\n",
    /* Inputs of adapted layers outlive the answer, which is written whole. */
    "model: {family: qwen2, width: 256, heads: 4, key_heads: 2, inner: 512, layers: 4, vocabulary: "
    "1000}\nrun: {task: rlhf, batch: 4, tokens: 60, new_tokens: 3, steps: 3, precision: bf16, "
    "lora_rank: 8, quantize: nf4}\n",
};
enum { GROWING = sizeof growing / sizeof *growing };

static void make_pair(const char *yaml, pair *made)
{
    frag_workload workload;
    frag_request_kinds kinds = {0};
    frag_error error = {0};
    *made = (pair){.done_again = 0};
    frag_workload_init(&workload);
    if (!frag_workload_parse(yaml, strlen(yaml), &workload, NULL, &error) ||
        !frag_workload_generate(&workload, &card, "x", &made->whole, &error) ||
        !frag_workload_generate_marked(&workload, &card, (frag_event_room){.count = 0},
                                       FRAG_UNLIMITED, &made->less, &kinds, &error))
        fail_msg("%s: %s", yaml, error.sentence);
    frag_free(kinds.kinds);
    const frag_trace *less = &made->less.traces[0];
    for (uint32_t i = 0; i < less->again_count; i++)
        made->done_again += less->agains[i].is_done;
}

static void free_pair(pair *made)
{
    frag_recording_destroy(&made->whole);
    frag_recording_destroy(&made->less);
}

static frag_run_setup set_up(const frag_recording *recording, const frag_policy_spec *spec,
                             const frag_device_spec *device)
{
    return (frag_run_setup){recording, &recording->traces[0], spec->ops, spec->values, device};
}

static frag_run_result run(const frag_recording *recording, const frag_policy_spec *spec,
                           uint64_t capacity)
{
    const frag_device_spec device = {.capacity_bytes = capacity};
    const frag_run_options options = {.is_layout_skipped = true};
    const frag_run_setup setup = set_up(recording, spec, &device);
    frag_run_result result;
    frag_error error = {0};
    if (!frag_run_count(&setup, &options, &result, &error))
        fail_msg("%s", error.sentence);
    return result;
}

/* Returns the least capacity above it that may make a difference. */
static uint64_t compare_at(const pair *made, const frag_policy_spec *spec, uint64_t capacity)
{
    frag_run_result whole = run(&made->whole, spec, capacity);
    frag_run_result less = run(&made->less, spec, capacity);
    assert_memory_equal(&less.replay.peak, &whole.replay.peak, sizeof whole.replay.peak);
    assert_memory_equal(less.calls, whole.calls, sizeof whole.calls);
    assert_memory_equal(less.failed_calls, whole.failed_calls, sizeof whole.failed_calls);
    assert_int_equal(less.need_max_bytes, whole.need_max_bytes);
    assert_int_equal(less.refused_need_min_bytes, whole.refused_need_min_bytes);
    assert_int_equal(less.replay.oom.has_happened, whole.replay.oom.has_happened);
    assert_int_equal(less.replay.oom.requested_bytes, whole.replay.oom.requested_bytes);
    assert_int_equal(less.replay.oom.total_hole_bytes, whole.replay.oom.total_hole_bytes);
    assert_int_equal(less.replay.oom.hole_count, whole.replay.oom.hole_count);
    assert_int_equal(less.replay.oom.level.allocated_bytes, whole.replay.oom.level.allocated_bytes);
    assert_int_equal(less.replay.final.requested_bytes, whole.replay.final.requested_bytes);
    assert_int_equal(less.replay.final.allocated_bytes, whole.replay.final.allocated_bytes);
    return whole.refused_need_min_bytes;
}

static void compare_least(const pair *made, const frag_policy_spec *spec,
                          frag_capacity_result *least)
{
    const frag_device_spec device = {.capacity_bytes = FRAG_UNLIMITED};
    const frag_run_setup whole = set_up(&made->whole, spec, &device);
    const frag_run_setup less = set_up(&made->less, spec, &device);
    frag_capacity_result other;
    frag_error error = {0};
    assert_true(frag_find_least_capacity(&whole, NULL, FRAG_UNLIMITED, NULL, least, &error));
    assert_true(frag_find_least_capacity(&less, NULL, FRAG_UNLIMITED, NULL, &other, &error));
    assert_int_equal(other.is_found, least->is_found);
    assert_int_equal(other.capacity_bytes, least->capacity_bytes);
    assert_int_equal(other.enough_bytes, least->enough_bytes);
    assert_memory_equal(&other.peak, &least->peak, sizeof other.peak);
    frag_capacity_result border;
    assert_true(frag_find_border_capacity(&whole, 0, 1024, NULL, &border, &error));
    assert_true(frag_find_border_capacity(&less, 0, 1024, NULL, &other, &error));
    assert_true(border.capacity_bytes >= least->capacity_bytes);
    assert_int_equal(other.capacity_bytes, border.capacity_bytes);
}

static void compare(const pair *made, const char *policy, uint64_t *random)
{
    frag_policy_spec spec;
    frag_error error = {0};
    frag_capacity_result least = {0};
    if (!frag_policy_spec_parse(policy, &spec, &error))
        fail_msg("%s", error.sentence);
    (void)compare_at(made, &spec, FRAG_GIB * 1024);
    compare_least(made, &spec, &least);
    uint64_t bound = frag_trace_bound_bytes(&made->whole.traces[0]);
    for (uint32_t i = 0; i < CAPACITIES; i++)
        (void)compare_at(made, &spec, bound - bound / 16 + draw(random, bound / 4 + 4 * FRAG_MIB));
    /* Those that differ, as a search comes to them. */
    for (uint32_t i = 0; i < CAPACITIES && bound != FRAG_UNLIMITED; i++)
        bound = compare_at(made, &spec, frag_round_up(bound, FRAG_DEVICE_PAGE_BYTES));
    frag_policy_spec_destroy(&spec);
}

static void a_shortened_trace_is_replayed_as_the_whole_one(void **state)
{
    (void)state;
    static const char *const policies[] = {
        "pytorch:version=2.9",
        "pytorch:expandable_segments:True,version=2.9",
        "pytorch:roundup_power2_divisions:4,version=2.9",
        "pytorch:max_split_size_mb:24,version=2.9",
        "pytorch:garbage_collection_threshold:0.7,version=2.9",
        "pytorch:version=2.13",
        "best-fit",
    };
    uint64_t random = 7;
    uint64_t done_again = 0;
    for (uint32_t i = 0; i < MODELS + GROWING; i++) {
        char yaml[400];
        pair made;
        draw_yaml(&random, yaml, sizeof yaml);
        make_pair(i < GROWING ? growing[i] : yaml, &made);
        const frag_trace_stats *whole = &made.whole.traces[0].stats;
        const frag_trace_stats *less = &made.less.traces[0].stats;
        assert_int_equal(less->request_count, whole->request_count);
        assert_int_equal(less->requested_bytes_total, whole->requested_bytes_total);
        assert_int_equal(less->peak_requested_bytes, whole->peak_requested_bytes);
        assert_int_equal(less->end_requested_bytes, whole->end_requested_bytes);
        assert_true(made.less.traces[0].event_count <= made.whole.traces[0].event_count + 64);
        for (size_t k = 0; k < sizeof policies / sizeof *policies; k++)
            if (k < 2 || (i + k) % 3 == 0)
                compare(&made, policies[k], &random);
        done_again += made.done_again;
        free_pair(&made);
    }
    assert_true(done_again > 500);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_shortened_trace_is_replayed_as_the_whole_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
