/* What the studies say of programs that are drawn at random: steps with marks and call stacks, in
 * which blocks are carried over, kept, grow or come once. Leaks, differences between a program and
 * one with a change, ranks, comparisons of rows, the least capacity and tuning, as JSON. What was
 * changed on purpose is pinned anew:
 *
 *   test_study_answers            compares with tests/data/answers/studies.txt.zst
 *   test_study_answers --write    prints what that file should hold (make answers-golden);
 *                                 with FRAG_PINNED_WHOLE in the environment every answer whole
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "api/api_recording.h"
#include "base/bytes.h"
#include "include/fraglab.h"
#include "studies/diff/diff_json.h"
#include "studies/tune/tune_space.h"
#include "tests/support/pinned_lines.h"
#include "tests/support/xorshift.h"

enum { WORLDS = 240, BLOCKS_MAX = 24, STEPS_MAX = 24, RANKS = 3 };

typedef enum block_kind {
    BLOCK_OF_STEP, /* freed in the step */
    BLOCK_CARRIED, /* freed in the next step */
    BLOCK_KEPT,    /* never freed: a leak */
    BLOCK_GROWING, /* takes the place of the last one, which was smaller */
    BLOCK_ONCE,    /* comes in one step, and stays */
    BLOCK_KIND_COUNT
} block_kind;

typedef struct block {
    block_kind kind;
    uint64_t bytes;
    uint64_t jitter; /* sizes differ by less */
    uint32_t from;   /* the first step that has it */
    uint32_t stream;
    uint32_t line;
    const char *function;
} block;

typedef struct world {
    block blocks[BLOCKS_MAX];
    uint32_t block_count;
    uint32_t step_count;
    bool has_marks;
    bool has_stacks;
    uint64_t bits; /* of the sizes that differ */
} world;

/* ---- programs */

static world draw(uint64_t seed)
{
    static const char *const functions[] = {"forward", "attention", "step", "loss", "append"};
    uint64_t bits = seed + 1;
    for (int i = 0; i < 8; i++)
        (void)xorshift_next(&bits);
    world made = {.block_count = 3 + (uint32_t)(xorshift_next(&bits) % (BLOCKS_MAX - 4)),
                  .step_count = 4 + (uint32_t)(xorshift_next(&bits) % (STEPS_MAX - 4)),
                  .has_marks = xorshift_next(&bits) % 4 != 0,
                  .has_stacks = xorshift_next(&bits) % 5 != 0,
                  .bits = bits};
    for (uint32_t i = 0; i < made.block_count; i++) {
        uint64_t kind = xorshift_next(&bits) % (2 * BLOCK_KIND_COUNT);
        uint64_t bytes = (uint64_t)512 << xorshift_next(&bits) % 15;
        made.blocks[i] = (block){
            .kind = kind < BLOCK_KIND_COUNT ? (block_kind)kind : BLOCK_OF_STEP,
            .bytes = bytes + xorshift_next(&bits) % bytes,
            .jitter = xorshift_next(&bits) % 3 == 0 ? bytes : 1,
            .from = (uint32_t)(xorshift_next(&bits) % 3),
            .stream = xorshift_next(&bits) % 6 == 0 ? 1 : 0,
            .line = 10 + i,
            .function = functions[xorshift_next(&bits) % (sizeof functions / sizeof *functions)],
        };
    }
    return made;
}

static uint64_t id_of(uint32_t index, uint32_t step)
{
    return (uint64_t)index << 32 | step;
}

static void add(fraglab_builder *builder, uint32_t op, uint64_t id, uint64_t bytes, uint32_t stream)
{
    const fraglab_event event = {.op = op, .id = id, .bytes = bytes, .stream = stream};
    assert_int_equal(fraglab_builder_add(builder, &event, 1, NULL), FRAGLAB_OK);
}

static void add_block(fraglab_builder *builder, world *of, uint32_t index, uint32_t step)
{
    const block *at = &of->blocks[index];
    uint64_t bytes = at->bytes + xorshift_next(&of->bits) % at->jitter;
    const fraglab_frame frames[] = {{at->function, "model.py", at->line},
                                    {"train", "train.py", 40 + at->line % 3},
                                    {"<module>", "train.py", 90}};
    if (step < at->from || (at->kind == BLOCK_ONCE && step > at->from))
        return;
    assert_int_equal(fraglab_builder_stack(builder, frames, of->has_stacks ? 3 : 0, NULL),
                     FRAGLAB_OK);
    if (at->kind == BLOCK_GROWING)
        bytes += step * at->bytes / 4;
    add(builder, FRAGLAB_ALLOC, id_of(index, step), bytes, at->stream);
    if (step > at->from && (at->kind == BLOCK_CARRIED || at->kind == BLOCK_GROWING))
        add(builder, FRAGLAB_FREE, id_of(index, step - 1), 0, 0);
}

static fraglab_recording *make(world of, const char *name)
{
    fraglab_builder *builder = NULL;
    fraglab_recording *recording = NULL;
    const fraglab_builder_options options = {.size = sizeof options, .name = name};
    assert_int_equal(fraglab_builder_create(&options, &builder, NULL), FRAGLAB_OK);
    for (uint32_t step = 0; step < of.step_count; step++) {
        if (of.has_marks)
            assert_int_equal(fraglab_builder_mark(builder, "step", 0, NULL), FRAGLAB_OK);
        for (uint32_t i = 0; i < of.block_count; i++)
            add_block(builder, &of, i, step);
        for (uint32_t i = of.block_count; i-- > 0;)
            if (of.blocks[i].kind == BLOCK_OF_STEP && step >= of.blocks[i].from)
                add(builder, FRAGLAB_FREE, id_of(i, step), 0, 0);
    }
    assert_int_equal(fraglab_builder_finish(builder, &recording, NULL), FRAGLAB_OK);
    fraglab_builder_destroy(builder);
    return recording;
}

/* One block is gone, larger, of another kind, on another line, or there is a step more. */
static world change(world of, uint64_t seed)
{
    uint64_t bits = seed * 31 + 7;
    for (int i = 0; i < 8; i++)
        (void)xorshift_next(&bits);
    block *at = &of.blocks[xorshift_next(&bits) % of.block_count];
    switch (xorshift_next(&bits) % 5) {
    case 0:
        *at = of.blocks[--of.block_count];
        break;
    case 1:
        at->bytes += at->bytes / 2;
        break;
    case 2:
        at->kind = (block_kind)((at->kind + 1) % BLOCK_KIND_COUNT);
        break;
    case 3:
        for (uint32_t i = 0; i < of.block_count; i++)
            of.blocks[i].line += 3;
        at->function = "other";
        break;
    default:
        of.step_count++;
    }
    return of;
}

/* ---- answers */

/* The JSON, without what names the build; or the error. Takes the text. */
static void tell(frag_text *out, const char *name, int code, char *json, const fraglab_error *error)
{
    size_t from = out->length;
    const char *tool = json != NULL ? strstr(json, "\"tool\":{") : NULL;
    if (code != FRAGLAB_OK)
        frag_text_add(out, "%d: %s\n", code, error->sentence);
    else if (tool != NULL)
        frag_text_add(out, "%.*s%s", (int)(tool - json), json, strchr(tool, '}') + 1);
    else
        frag_text_add(out, "%s", json);
    pinned_fold(out, from, name);
    fraglab_free(json);
}

static void tell_leaks(frag_text *out, const fraglab_recording *recording,
                       const fraglab_run_options *device)
{
    fraglab_error error = FRAGLAB_ERROR_INIT;
    char *json = NULL;
    int code = fraglab_leaks(NULL, recording, 0, NULL, NULL, &json, &error);
    tell(out, "  leaks", code, json, &error);
    json = NULL;
    code = fraglab_leaks(NULL, recording, 0, device, NULL, &json, &error);
    tell(out, "  leaks on a device", code, json, &error);
}

static void tell_diff(frag_text *out, const fraglab_recording *before,
                      const fraglab_recording *after, uint64_t seed)
{
    static const char *const groups[] = {"site", "stack", "purpose", "size"};
    static const char *const places[] = {"peak", "end", "step", "3..40", "7", "end"};
    fraglab_error error = FRAGLAB_ERROR_INIT;
    for (size_t i = 0; i < sizeof groups / sizeof *groups; i++) {
        char *json = NULL;
        const fraglab_diff_options options = {.size = sizeof options,
                                              .by = groups[i],
                                              .at_before = places[(seed + i) % 6],
                                              .at_after = places[(seed / 6 + i) % 6],
                                              .without_replays = i == 3};
        int code = fraglab_diff(NULL, before, 0, after, 0, NULL, &options, &json, &error);
        tell(out, "  diff", code, json, &error);
    }
}

/* Its rows, its stacks, and whether it is a finding. */
static void tell_diff_rows(frag_text *out, const fraglab_recording *before,
                           const fraglab_recording *after, uint64_t seed)
{
    const frag_device_spec device = {.capacity_bytes = FRAG_UNLIMITED};
    const frag_diff_options options = {
        .device = &device, .grouping = (frag_use_grouping)(seed % 4), .is_replayed = seed % 2 == 0};
    const frag_diff_source sources[2] = {
        {.recording = &before->recording, .trace = &before->recording.traces[0], .at = "peak"},
        {.recording = &after->recording, .trace = &after->recording.traces[0], .at = "peak"}};
    frag_diff diff;
    frag_error error = {0};
    char *bytes = NULL;
    size_t count = 0;
    size_t from = out->length;
    FILE *stream = open_memstream(&bytes, &count);
    assert_non_null(stream);
    assert_true(frag_diff_make(&options, sources, &diff, &error));
    frag_diff_print_rows(stream, &diff);
    frag_diff_write_stacks(stream, &diff);
    for (uint64_t allowed = 1; allowed < FRAG_GIB; allowed *= 32)
        fprintf(stream, "%d",
                frag_diff_has_finding(&diff, &(frag_threshold){.amount = (double)allowed}));
    fclose(stream);
    frag_text_add(out, "%s", bytes);
    pinned_fold(out, from, "  rows of the diff");
    free(bytes);
    frag_diff_destroy(&diff);
}

static void tell_ranks(frag_text *out, const fraglab_recording *const *recordings,
                       const fraglab_run_options *device)
{
    static const char *const stage = "0-1";
    fraglab_error error = FRAGLAB_ERROR_INIT;
    const fraglab_ranks_options options = {
        .size = sizeof options, .stages = &stage, .stage_count = 1};
    char *json = NULL;
    int code = fraglab_ranks(NULL, recordings, RANKS, NULL, NULL, &json, &error);
    tell(out, "  ranks", code, json, &error);
    json = NULL;
    code = fraglab_ranks(NULL, recordings, RANKS, device, &options, &json, &error);
    tell(out, "  ranks in stages on a device", code, json, &error);
}

static void tell_capacity(frag_text *out, const fraglab_recording *recording,
                          const fraglab_policy *policy)
{
    fraglab_error error = FRAGLAB_ERROR_INIT;
    fraglab_capacity found = {.size = sizeof found};
    int code = fraglab_min_capacity(NULL, recording, 0, policy, NULL, &found, &error);
    frag_text_add(out, "  least capacity %d: %llu, %llu, %llu, %llu, %llu\n", code,
                  (unsigned long long)found.capacity_bytes,
                  (unsigned long long)found.failing_above_bytes,
                  (unsigned long long)found.enough_bytes, (unsigned long long)found.below_event,
                  (unsigned long long)found.below_requested_bytes);
}

static void tell_tuned(frag_text *out, const fraglab_recording *const *recordings,
                       const fraglab_policy *policy, const fraglab_run_options *device,
                       uint64_t seed)
{
    fraglab_error error = FRAGLAB_ERROR_INIT;
    fraglab_tuned *tuned = NULL;
    const fraglab_tune_options options = {.size = sizeof options,
                                          .held_out = recordings + 1 + seed / 3 % 2,
                                          .held_out_count = seed % (3 - seed / 3 % 2),
                                          .goal = (int32_t)(seed % 2),
                                          .with_bounds = seed % 4 == 0,
                                          .settings = 30,
                                          .seed = seed,
                                          .device = seed % 5 == 0 ? device : NULL};
    int code = fraglab_tune(NULL, recordings, 1 + seed / 3 % 2, policy, &options, &tuned, &error);
    if (code != FRAGLAB_OK) {
        frag_text_add(out, "  tune %d: %s\n", code, error.sentence);
        return;
    }
    size_t from = out->length;
    const char *json = fraglab_tuned_json(tuned);
    const char *tool = strstr(json, "\"tool\":{");
    assert_non_null(tool);
    frag_text_add(out, "%.*s%s", (int)(tool - json), json, strchr(tool, '}') + 1);
    pinned_fold(out, from, "  tune");
    fraglab_tuned_destroy(tuned);
}

/* Rows of two policies under one label, of which one may run out of memory. */
/* Of a row alone, and of three, two of which are on devices that differ. */
static void tell_comparison(frag_text *out, const fraglab_recording *recording,
                            fraglab_policy *const policies[2], const fraglab_run_options *device)
{
    static const char *const labels[] = {"either", "second", "third"};
    const fraglab_compare_options options = {.size = sizeof options, .fail_above = "3%,1MiB"};
    size_t from = out->length;
    for (size_t count = 1; count <= 3; count += 2) {
        frag_text rows[2] = {{0}, {0}};
        fraglab_comparison *comparison = NULL;
        fraglab_error error = FRAGLAB_ERROR_INIT;
        for (size_t i = 0; i < 2 * count; i++) {
            fraglab_result *result = NULL;
            fraglab_run_options run = *device;
            run.label = labels[i / 2];
            if (i > 2)
                run.capacity_bytes = (i + 1) << 30;
            assert_int_equal(
                fraglab_run(NULL, recording, 0, policies[i % 2], &run, &result, &error),
                FRAGLAB_OK);
            frag_text_add(&rows[i % 2], "%s\n", fraglab_result_json(result));
            fraglab_result_destroy(result);
        }
        int code = fraglab_compare_memory(rows[0].bytes, rows[0].length, rows[1].bytes,
                                          rows[1].length, &options, &comparison, &error);
        if (code == FRAGLAB_OK)
            frag_text_add(out, "%d\n%s", fraglab_comparison_has_finding(comparison),
                          fraglab_comparison_json(comparison));
        else
            frag_text_add(out, "%d: %s\n", code, error.sentence);
        fraglab_comparison_destroy(comparison);
        frag_text_destroy(&rows[0]);
        frag_text_destroy(&rows[1]);
    }
    pinned_fold(out, from, "  compare");
}

static void tell_world(frag_text *out, uint64_t seed)
{
    static const char *const names[] = {"pytorch", "best-fit", "size-class", "tlsf", "rmm-pool"};
    world of = draw(seed);
    world other = change(of, seed);
    fraglab_recording *recordings[RANKS] = {make(of, "rank0"), make(other, "rank1"),
                                            make(change(other, seed + 1), "rank2")};
    const fraglab_recording *const *all = (const fraglab_recording *const *)recordings;
    fraglab_trace_facts facts = {.size = sizeof facts};
    fraglab_run_options device = FRAGLAB_RUN_OPTIONS_INIT;
    fraglab_policy *policy = NULL, *another = NULL;
    assert_int_equal(fraglab_policy_parse(names[(seed + 1) % 5], &another, NULL), FRAGLAB_OK);
    assert_int_equal(fraglab_recording_trace_facts(recordings[0], 0, &facts, NULL), FRAGLAB_OK);
    assert_int_equal(fraglab_policy_parse(names[seed % 5], &policy, NULL), FRAGLAB_OK);
    device.capacity_bytes = facts.peak_requested_bytes / 2 * (1 + seed % 3) + 4 * FRAG_MIB;
    frag_text_add(out, "program %llu, %s\n", (unsigned long long)seed, names[seed % 5]);
    tell_leaks(out, recordings[0], &device);
    tell_diff(out, recordings[0], recordings[1 + seed % 2], seed);
    tell_diff_rows(out, recordings[0], recordings[1 + seed % 2], seed);
    tell_ranks(out, all, &device);
    tell_capacity(out, recordings[0], policy);
    fraglab_policy *const policies[] = {policy, another};
    tell_comparison(out, recordings[0], policies, &device);
    tell_tuned(out, all, policy, &device, seed);
    fraglab_policy_destroy(policy);
    fraglab_policy_destroy(another);
    for (size_t i = 0; i < RANKS; i++)
        fraglab_recording_close(recordings[i]);
}

/* What of a policy is tuned. */
static void tell_space(frag_text *out, const char *policy, bool has_capacity)
{
    frag_policy_spec base;
    frag_tune_space space;
    if (!frag_policy_spec_parse(policy, &base, NULL))
        return;
    frag_tune_space_create(&base, has_capacity, &space);
    for (uint32_t i = 0; i < space.axis_count; i++) {
        frag_text_add(out, "  %s", space.axes[i].key);
        for (uint32_t v = 0; v < space.axes[i].count; v++)
            frag_text_add(out, " %s", space.axes[i].values[v]);
    }
    frag_tune_space_destroy(&space);
    frag_policy_spec_destroy(&base);
}

static void tell_spaces(frag_text *out)
{
    static const char *const changed[] = {
        "pytorch:garbage_collection_threshold=0.35", "pytorch:max_split_size_mb=40",
        "size-class:surplus=0.4", "tf-bfc:fragmentation_fraction=0.15", "gmlake:reuseLimit=30"};
    for (size_t i = 0; frag_policy_table[i] != NULL; i++)
        for (int has_capacity = 0; has_capacity < 2; has_capacity++) {
            frag_text_add(out, "%s:", frag_policy_table[i]->name);
            tell_space(out, frag_policy_table[i]->name, has_capacity != 0);
            frag_text_add(out, "\n");
        }
    for (size_t i = 0; i < sizeof changed / sizeof *changed; i++) {
        frag_text_add(out, "%s:", changed[i]);
        tell_space(out, changed[i], true);
        frag_text_add(out, "\n");
    }
}

static void tell_all(frag_text *out)
{
    for (uint64_t seed = 0; seed < WORLDS; seed++)
        tell_world(out, seed);
    tell_spaces(out);
}

static const pinned_lines pinned = {"tests/data/answers/studies.txt.zst", tell_all,
                                    "answers-golden"};

int main(int argc, char **argv)
{
    return pinned_lines_test(&pinned, argc, argv);
}
