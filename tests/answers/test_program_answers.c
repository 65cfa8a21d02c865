/* What the library says of programs drawn at random that do nearly the same in every step: blocks
 * that live for some requests or some steps, grow or stay, streams, deferred frees, private pools,
 * marks, call stacks, times, a beginning and a failure at the end. Each is looked at as it is and
 * as the snapshot that PyTorch would have left of it. What was changed on purpose is pinned anew:
 *
 *   test_program_answers            compares with tests/data/answers/programs.txt.zst
 *   test_program_answers --write    prints what that file should hold (make answers-golden);
 *                                   with FRAG_PINNED_WHOLE in the environment every answer whole
 */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "api/api_recording.h"
#include "base/bytes.h"
#include "include/fraglab.h"
#include "tests/support/pinned_lines.h"
#include "tests/support/xorshift.h"

enum {
    PROGRAMS = 100,
    LONG_PROGRAMS = 6,
    LONG_PARTS = 3600,
    PARTS_MAX = 18,
    STEPS_MAX = 12,
    LIVE_MAX = 800,
    SITES = 17
};

/* What is done in each step, in this order. */
typedef struct part {
    uint64_t bytes;
    uint64_t more;     /* in each step after the first */
    uint64_t lifetime; /* parts until it is freed; 0: never */
    uint32_t stream, pool, site;
    uint32_t every;  /* only in steps that are multiples of it */
    uint32_t before; /* what comes before it: a line of before_lines */
    bool is_deferred, is_used;
} part;

typedef struct live_block {
    uint64_t until; /* part, counted through; 0: never */
    uint32_t slot;
    bool is_deferred, is_waiting;
} live_block;

typedef struct program {
    part parts[PARTS_MAX];
    uint64_t part_count, step_count;
    uint64_t bits;
    bool has_marks, has_sites, has_times, has_beginning, fails, is_uneven;
    frag_text text;
    live_block live[LIVE_MAX];
    uint32_t live_count;
    uint32_t spare[LIVE_MAX]; /* slots, the last first */
    uint32_t spare_count, slot_count;
    uint64_t now; /* parts, counted through */
    uint64_t lines;
} program;

static const char *const before_lines[] = {
    "",
    "",
    "",
    "",
    "",
    "empty_cache\n",
    "sync\n",
    "mark \"forward\" begin\n",
    "mark \"forward\" end\n",
    "pool_begin 3\n",
    "pool_end 3\n",
    "capture_begin\n",
    "capture_end\n",
    "stats_reset 1\n",
    "limit 0.30000000000000004 ratio\n",
    "config \"max_split_size_mb:40\"\n",
};

enum { BEFORE_LINES = sizeof before_lines / sizeof *before_lines };

static const char frames[] =
    "frame \"step\" \"train.py\" 12\n"
    "frame \"forward\" \"model.py\" 30\n"
    "frame \"forward\" \"/lib/torch/nn/modules/linear.py\" 120\n"
    "frame \"backward\" \"/lib/torch/_tensor.py\" 500\n"
    "frame \"_init_group\" \"/lib/torch/optim/adamw.py\" 90\n"
    "frame \"load\" \"/home/me/package/__init__.py\" 7\n"
    "frame \"at::_ops::mm::call(at::Tensor const&)\" \"/pytorch/build/Operators_1.cpp\" 5\n"
    "frame \"torch::autograd::generated::AddmmBackward0::apply(std::vector<a, b>&&)\" \"??\" 0\n"
    "frame \"torch::autograd::Engine::evaluate_function(std::shared_ptr<x>&)\" \"engine.cpp\" 9\n"
    "frame \"CUDACachingAllocator::malloc(int)\" \"/pytorch/c10/cuda/memory_snapshot.cpp\" 3\n"
    "frame \"void mine::run<std::pair<int, my::T> >(float*)\" \"/home/me/ext/kernel.cu\" 77\n"
    "frame "
    "\"a_function_\xc3\xa4\x01_whose_name_takes_more_room_than_any_column_of_a_table_would_have\" "
    "\"C:\\\\Users\\\\me\\\\a_file_with_a_name_that_is_just_as_long_as_the_function_is.py\" "
    "123456\n"
    "frame \"<module>\" \"/tmp/ipykernel_12/3456.py\" 1\n"
    "frame \"cfunction_call\" \"/Python/ceval.c\" 2\n"
    "frame \"\" \"x.py\" 4\n"
    "site 0\nsite 1 0\nsite 2 1 0\nsite 3 0\nsite 4 0\nsite 5 0\nsite 5 1\nsite 1\n"
    "site 9 6 13 2 1 0\nsite 9 6 7 8\nsite 7 8\nsite 10 13 0\nsite 11 12\nsite 14 11\nsite 9 13\n"
    "site 6 2 13 12\nsite 10 9\n";

static uint64_t draw(program *of, uint64_t limit)
{
    return xorshift_next(&of->bits) % limit;
}

static bool one_in(program *of, uint64_t count)
{
    return draw(of, count) == 0;
}

/* ---- programs */

static uint64_t draw_bytes(program *of)
{
    static const uint64_t units[] = {1, 512, 4096, FRAG_MIB / 8, FRAG_MIB, 2 * FRAG_MIB};
    uint64_t unit = units[draw(of, 6)];
    uint64_t most = one_in(of, 3) ? 40 : 8;
    uint64_t bytes = unit * (1 + draw(of, most));
    return one_in(of, 4) ? bytes : bytes + 1;
}

static void draw_part(program *of, part *made)
{
    bool is_kept = one_in(of, 7);
    uint64_t most = of->part_count * (one_in(of, 5) ? 3 : 1);
    made->bytes = draw_bytes(of);
    made->more = one_in(of, 6) ? draw_bytes(of) : 0;
    made->lifetime = is_kept ? 0 : 1 + draw(of, most);
    made->stream = one_in(of, 5) ? 1 + (uint32_t)draw(of, 2) : 0;
    made->pool = one_in(of, 8) ? 3 : 0;
    made->site = (uint32_t)draw(of, SITES + 1);
    made->every = one_in(of, 6) ? 2 + (uint32_t)draw(of, 3) : 1;
    made->before = one_in(of, 3) ? (uint32_t)draw(of, BEFORE_LINES) : 0;
    made->is_deferred = one_in(of, 8);
    made->is_used = one_in(of, 9);
}

static void draw_program(program *of, uint64_t seed)
{
    *of = (program){.bits = (seed + 1) * 0x9e3779b97f4a7c15u};
    for (int i = 0; i < 4; i++)
        (void)xorshift_next(&of->bits);
    of->part_count = 2 + draw(of, PARTS_MAX - 2);
    of->step_count = one_in(of, 6) ? 2 : 5;
    of->step_count += draw(of, STEPS_MAX - 4);
    of->has_marks = !one_in(of, 4);
    of->has_sites = !one_in(of, 4);
    of->has_times = one_in(of, 2);
    of->has_beginning = one_in(of, 3);
    of->fails = one_in(of, 3);
    of->is_uneven = one_in(of, 4);
    for (uint64_t i = 0; i < of->part_count; i++)
        draw_part(of, &of->parts[i]);
}

/* Another size, another kind, a part more or less, a step more. */
static void change_program(program *of)
{
    part *at = &of->parts[draw(of, of->part_count)];
    switch (draw(of, 5)) {
    case 0:
        at->bytes += at->bytes / 2 + 1;
        break;
    case 1:
        at->lifetime = at->lifetime == 0 ? 2 : 0;
        break;
    case 2:
        at->site = (at->site + 1) % (SITES + 1);
        break;
    case 3:
        of->part_count -= of->part_count > 2;
        break;
    default:
        of->step_count++;
    }
}

/* ---- their text */

static void end_line(program *of)
{
    if (of->has_times)
        frag_text_add(&of->text, " time=%" PRIu64, 1700000000000000000 + of->lines * 1000);
    frag_text_add(&of->text, "\n");
    of->lines++;
}

static void release(program *of, uint32_t index)
{
    of->spare[of->spare_count++] = of->live[index].slot;
    of->live_count--;
    memmove(&of->live[index], &of->live[index + 1],
            (of->live_count - index) * sizeof of->live[index]);
}

/* Frees what is due; what was freed before a stream was done is complete a part later. */
static void free_due(program *of)
{
    for (uint32_t i = 0; i < of->live_count;) {
        live_block *at = &of->live[i];
        if (at->until == 0 || at->until > of->now) {
            i++;
            continue;
        }
        bool waits = at->is_deferred && !at->is_waiting;
        frag_text_add(&of->text, "%s %" PRIu32 "%s", at->is_waiting ? "complete" : "free", at->slot,
                      waits ? " deferred" : "");
        end_line(of);
        if (waits) {
            at->is_waiting = true;
            at->until = of->now + 1;
            i++;
        } else {
            release(of, i);
        }
    }
}

static void add_block(program *of, const part *what, uint64_t step)
{
    uint32_t slot = of->spare_count > 0 ? of->spare[--of->spare_count] : of->slot_count++;
    uint64_t bytes = what->bytes + step * what->more;
    if (of->is_uneven && one_in(of, 4))
        bytes += 1 + draw(of, what->bytes);
    frag_text_add(&of->text, "alloc %" PRIu32 " %" PRIu64, slot, bytes);
    if (what->stream != 0)
        frag_text_add(&of->text, " stream=%" PRIu32, what->stream * 16);
    if (what->pool != 0)
        frag_text_add(&of->text, " pool=%" PRIu32, what->pool);
    if (of->has_sites && what->site != 0)
        frag_text_add(&of->text, " site=%" PRIu32, what->site);
    end_line(of);
    if (what->is_used) {
        frag_text_add(&of->text, "use %" PRIu32 " stream=32", slot);
        end_line(of);
    }
    of->live[of->live_count++] =
        (live_block){.until = what->lifetime == 0 ? 0 : of->now + what->lifetime,
                     .slot = slot,
                     .is_deferred = what->is_deferred};
}

static void add_step(program *of, uint64_t step)
{
    if (of->has_marks) {
        frag_text_add(&of->text, "mark \"step\"");
        end_line(of);
    }
    for (uint64_t i = 0; i < of->part_count; i++, of->now++) {
        const part *what = &of->parts[i];
        free_due(of);
        frag_text_add(&of->text, "%s", before_lines[what->before]);
        if (step % what->every == 0 && of->live_count < LIVE_MAX)
            add_block(of, what, step);
    }
}

static void add_beginning(program *of)
{
    for (uint64_t i = 0; i < 4; i++) {
        uint64_t address = ((uint64_t)0x7f12 << 32) + i * 8 * FRAG_MIB;
        frag_text_add(&of->text,
                      "segment_alloc %" PRIu64 " addr=0x%" PRIx64 " initial\n"
                      "alloc %" PRIu64 " %" PRIu64 " addr=0x%" PRIx64 " block=%" PRIu64
                      " initial\n",
                      2 * FRAG_MIB, address, i, 4096 * (i + 1), address, 4096 * (i + 1));
    }
    of->slot_count = 4;
}

static void write_program(program *of)
{
    static const char *const metas[] = {
        "", "meta \"torch.conf\" \"expandable_segments:True\"\n",
        "meta \"torch.conf\" \"max_split_size_mb:21\"\nmeta \"torch.version_hint\" \"2.4\"\n",
        "meta \"torch.version_hint\" \"2.9\"\n"};
    frag_text_add(&of->text, "# fraglab trace 2\n%s%s", metas[draw(of, 4)],
                  of->has_sites ? frames : "");
    if (of->has_beginning)
        add_beginning(of);
    of->now = 1;
    for (uint64_t step = 0; step < of->step_count; step++)
        add_step(of, step);
    if (of->fails) {
        frag_text_add(&of->text, "oom %" PRIu64 " free=%" PRIu64 "\nalloc - %" PRIu64 " failed\n",
                      8 * FRAG_MIB, FRAG_MIB, 8 * FRAG_MIB);
    } else {
        of->now += of->part_count;
        free_due(of);
    }
}

static fraglab_recording *open_bytes(const void *bytes, size_t count)
{
    fraglab_recording *recording = NULL;
    fraglab_error error = FRAGLAB_ERROR_INIT;
    const fraglab_open_options options = {.size = sizeof options, .name = "rank0", .with_sites = 1};
    if (fraglab_open_memory(NULL, bytes, count, &options, &recording, &error) != FRAGLAB_OK)
        fail_msg("%s", error.sentence);
    return recording;
}

static fraglab_recording *open_program(program *of)
{
    write_program(of);
    fraglab_recording *recording = open_bytes(of->text.bytes, of->text.length);
    frag_text_destroy(&of->text);
    return recording;
}

/* ---- answers */

/* Without what names the build. */
static void tell_text(frag_text *out, const char *text)
{
    const char *tool = strstr(text, "\"tool\":{");
    if (tool != NULL)
        frag_text_add(out, "%.*s", (int)(tool - text), text);
    frag_text_add(out, "%s\n", tool != NULL ? strchr(tool, '}') + 1 : text);
}

/* The text, or the error. Takes the text. */
static void tell(frag_text *out, int code, char *text, const fraglab_error *error)
{
    if (code == FRAGLAB_OK && text != NULL)
        tell_text(out, text);
    else
        frag_text_add(out, "%d: %s\n", code, code != FRAGLAB_OK ? error->sentence : "");
    fraglab_free(text);
}

static void tell_bytes(frag_text *out, int code, void *bytes, size_t count)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < count; i++)
        pinned_add(&sum, ((const unsigned char *)bytes)[i]);
    frag_text_add(out, "%d: %zu bytes %016" PRIx64 "\n", code, count, sum);
    fraglab_free(bytes);
}

/* The recording as text, from the other form. */
static void tell_forms(frag_text *out, const fraglab_recording *recording)
{
    fraglab_error error = FRAGLAB_ERROR_INIT;
    void *bytes = NULL, *text = NULL;
    size_t count = 0, length = 0;
    char *json = NULL;
    int code = fraglab_recording_json(recording, &json, &error);
    tell(out, code, json, &error);
    assert_int_equal(fraglab_recording_write_memory(recording, "fgt", &bytes, &count, &error),
                     FRAGLAB_OK);
    fraglab_recording *again = open_bytes(bytes, count);
    fraglab_free(bytes);
    code = fraglab_recording_write_memory(again, "text", &text, &length, &error);
    tell_bytes(out, code, text, code == FRAGLAB_OK ? length : 0);
    text = NULL;
    code = fraglab_recording_write_memory(again, "minimalloc", &text, &length, &error);
    tell_bytes(out, code, text, code == FRAGLAB_OK ? length : 0);
    fraglab_recording_close(again);
}

static void tell_cuts(frag_text *out, const fraglab_recording *recording, uint64_t events,
                      uint64_t *bits)
{
    for (int i = 0; i < 4; i++) {
        fraglab_cut_options options = {.size = sizeof options};
        fraglab_recording *piece = NULL;
        fraglab_error error = FRAGLAB_ERROR_INIT;
        uint64_t at = xorshift_next(bits) % (events + 1);
        if (i == 0)
            options.first_mark = "step";
        else if (i == 1)
            options.start_ns = 1700000000000000000 + at * 1000;
        else
            options.first_event = at;
        if (i == 3)
            options.end_event = at + (events - at) / 2;
        int code = fraglab_recording_cut(recording, 0, &options, &piece, &error);
        frag_text_add(out, "cut %d: %d %s\n", i, code, error.sentence);
        if (code != FRAGLAB_OK)
            continue;
        tell_forms(out, piece);
        fraglab_recording_close(piece);
    }
}

static void tell_runs(frag_text *out, const fraglab_recording *recording,
                      const fraglab_policy *policy, const fraglab_run_options *options)
{
    static const char *const formats[] = {"snapshot", "chrome", "placement", "driver-log"};
    fraglab_error error = FRAGLAB_ERROR_INIT;
    fraglab_result *result = NULL;
    int code = fraglab_run(NULL, recording, 0, policy, options, &result, &error);
    if (code == FRAGLAB_OK)
        tell_text(out, fraglab_result_json(result));
    else
        frag_text_add(out, "%d: %s\n", code, error.sentence);
    fraglab_result_destroy(result);
    for (size_t i = 1; i < sizeof formats / sizeof *formats; i++) {
        char *bytes = NULL;
        size_t count = 0;
        code = fraglab_run_write_memory(NULL, recording, 0, policy, options, formats[i], NULL,
                                        (void **)&bytes, &count, &error);
        const char *end = i == 1 && code == FRAGLAB_OK ? strstr(bytes, "otherData") : NULL;
        tell_bytes(out, code, bytes, end != NULL ? (size_t)(end - bytes) : count);
    }
}

static void tell_history(frag_text *out, const fraglab_recording *recording,
                         const fraglab_policy *policy, const fraglab_run_options *options,
                         uint64_t event)
{
    fraglab_error error = FRAGLAB_ERROR_INIT;
    fraglab_history *history = NULL;
    fraglab_layout *layout = NULL;
    uint64_t sum = 0;
    int code = fraglab_history_record(NULL, recording, 0, policy, options, 12, &history, &error);
    if (code == FRAGLAB_OK) {
        fraglab_sample samples[64];
        size_t count = fraglab_history_samples(history, samples, 64);
        for (size_t i = 0; i < count && i < 64; i++) {
            pinned_add(&sum, samples[i].event);
            pinned_add(&sum, samples[i].requested_bytes);
            pinned_add(&sum, samples[i].allocated_bytes + samples[i].active_bytes);
            pinned_add(&sum, samples[i].reserved_bytes);
        }
        fraglab_history_destroy(history);
    }
    frag_text_add(out, "history %d %016" PRIx64 "\n", code, sum);
    code = fraglab_layout_at(NULL, recording, 0, policy, options, event, &layout, &error);
    if (code == FRAGLAB_OK) {
        fraglab_span spans[64];
        size_t count = fraglab_layout_spans(layout, spans, 64);
        for (size_t i = 0; i < count && i < 64; i++)
            frag_text_add(out, "%u %u %u %u %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", spans[i].kind,
                          spans[i].stream, spans[i].pool, spans[i].is_waiting, spans[i].address,
                          spans[i].bytes, spans[i].requested_bytes);
        fraglab_layout_destroy(layout);
    }
}

static void tell_explained(frag_text *out, const fraglab_recording *recording,
                           const fraglab_recording *whole, uint64_t peak, uint64_t seed)
{
    fraglab_error error = FRAGLAB_ERROR_INIT;
    for (uint64_t i = 0; i < 2; i++) {
        char *text = NULL;
        const fraglab_explain_options options = {
            .size = sizeof options,
            .capacity_bytes = i == 0 && seed % 3 == 0 ? 0 : peak / 8 * (5 + (seed + 2 * i) % 7),
            .memory_fraction = (seed + i) % 5 == 0 ? "0.9" : NULL,
            .whole = (seed + i) % 4 == 0 ? whole : NULL,
            .as_text = i == 1};
        int code = fraglab_explain_recording(NULL, recording, &options, &text, &error);
        tell(out, code, text, &error);
    }
}

/* Its beginning, where the whole knows what is asked for later. */
static void tell_cut_short(frag_text *out, const fraglab_recording *whole,
                           const fraglab_trace_facts *facts, uint64_t seed)
{
    fraglab_error error = FRAGLAB_ERROR_INIT;
    fraglab_recording *piece = NULL;
    char *text = NULL;
    uint64_t end = facts->event_count / 8 * (3 + seed % 5);
    const fraglab_cut_options cut = {.size = sizeof cut, .end_event = end + 1};
    const fraglab_explain_options options = {.size = sizeof options,
                                             .capacity_bytes = facts->peak_requested_bytes / 8 *
                                                               (4 + seed / 5 % 5),
                                             .whole = whole,
                                             .as_text = seed % 2 == 0};
    int code = fraglab_recording_cut(whole, 0, &cut, &piece, &error);
    if (code == FRAGLAB_OK)
        code = fraglab_explain_recording(NULL, piece, &options, &text, &error);
    tell(out, code, text, &error);
    fraglab_recording_close(piece);
}

static void tell_verified(frag_text *out, const fraglab_recording *recording,
                          const fraglab_policy *policy, uint64_t seed)
{
    fraglab_error error = FRAGLAB_ERROR_INIT;
    char *json = NULL;
    const fraglab_verify_options options = {.size = sizeof options, .count_all = seed % 2 == 0};
    int code = fraglab_verify_json(NULL, recording, 0, seed % 3 == 0 ? NULL : policy, &options,
                                   &json, &error);
    tell(out, code, json, &error);
}

static void tell_leaks(frag_text *out, const fraglab_recording *recording,
                       const fraglab_run_options *device)
{
    fraglab_error error = FRAGLAB_ERROR_INIT;
    for (int i = 0; i < 2; i++) {
        char *json = NULL;
        const fraglab_leaks_options options = {.size = sizeof options, .mark = "step"};
        int code =
            fraglab_leaks(NULL, recording, 0, device, i == 0 ? NULL : &options, &json, &error);
        tell(out, code, json, &error);
    }
}

static void tell_compared(frag_text *out, const fraglab_recording *const *both, uint64_t seed)
{
    static const char *const groups[] = {"site", "stack", "purpose", "size"};
    static const char *const places[] = {"peak", "end", "step", "5..60", "step[3]", "forward"};
    fraglab_error error = FRAGLAB_ERROR_INIT;
    char *json = NULL;
    const fraglab_diff_options options = {.size = sizeof options,
                                          .by = groups[seed % 4],
                                          .at_before = places[seed % 6],
                                          .at_after = places[seed / 2 % 6]};
    int code = fraglab_diff(NULL, both[0], 0, both[1], 0, NULL, &options, &json, &error);
    tell(out, code, json, &error);
    json = NULL;
    fraglab_run_options device = FRAGLAB_RUN_OPTIONS_INIT;
    device.capacity_bytes = (8 + seed % 32) * FRAG_MIB;
    static const uint32_t numbers[] = {0, 3};
    const fraglab_ranks_options ranks = {
        .size = sizeof ranks, .numbers = numbers, .tries_settings = seed % 2 == 0};
    code = fraglab_ranks(NULL, both, 2, &device, &ranks, &json, &error);
    tell(out, code, json, &error);
}

static void tell_recording(frag_text *out, const fraglab_recording *const *both, uint64_t seed,
                           uint64_t *bits)
{
    static const char *const policies[] = {"pytorch:recorded",
                                           "pytorch:expandable_segments=true",
                                           "pytorch:max_split_size_mb=24",
                                           "pytorch:garbage_collection_threshold=0.5",
                                           "pytorch:version=2.4",
                                           "pytorch:roundup_power2_divisions=4",
                                           "size-class:classes=[512,4KiB,96KiB,1MiB]",
                                           "frugal",
                                           "offline"};
    static const char *const rules[] = {NULL, "lowest", "bump", NULL};
    static const char *const stats[] = {"peak", "end", "oom", "20"};
    fraglab_policy *policy = NULL;
    fraglab_trace_facts facts = {.size = sizeof facts};
    fraglab_run_options run = FRAGLAB_RUN_OPTIONS_INIT;
    const char *name = seed % 4 < 2 ? policies[seed / 4 % 9]
                                    : fraglab_policy_name_at(seed / 2 % fraglab_policy_count());
    assert_int_equal(fraglab_policy_parse(name, &policy, NULL), FRAGLAB_OK);
    assert_int_equal(fraglab_recording_trace_facts(both[0], 0, &facts, NULL), FRAGLAB_OK);
    uint64_t peak = facts.peak_requested_bytes;
    run.capacity_bytes = peak + peak / 16 * (seed % 5) + (seed % 3) * 2 * FRAG_MIB;
    run.skip_oom = seed % 4 == 0;
    run.with_bounds = seed % 8 == 1;
    run.address_rule = rules[seed % 4];
    run.stats_at = seed % 9 < 2 ? stats[seed / 9 % 4] : NULL;
    tell_forms(out, both[0]);
    tell_cuts(out, both[0], facts.event_count, bits);
    tell_runs(out, both[0], policy, &run);
    tell_history(out, both[0], policy, &run, facts.event_count / 2);
    tell_explained(out, both[0], both[1], peak, seed);
    tell_cut_short(out, both[0], &facts, seed);
    tell_verified(out, both[0], policy, seed);
    tell_leaks(out, both[0], &run);
    tell_compared(out, both, seed);
    fraglab_policy_destroy(policy);
}

/* As PyTorch would have left it: the run ends where memory does, or at an event. */
static fraglab_recording *as_snapshot(const fraglab_recording *recording, uint64_t seed)
{
    static const char *const policies[] = {"pytorch", "pytorch:expandable_segments=true",
                                           "pytorch:max_split_size_mb=24",
                                           "pytorch:garbage_collection_threshold=0.5"};
    fraglab_policy *policy = NULL;
    fraglab_run_options run = FRAGLAB_RUN_OPTIONS_INIT;
    fraglab_error error = FRAGLAB_ERROR_INIT;
    fraglab_trace_facts facts = {.size = sizeof facts};
    fraglab_recording *made = NULL;
    void *bytes = NULL;
    size_t count = 0;
    assert_int_equal(fraglab_policy_parse(policies[seed % 4], &policy, NULL), FRAGLAB_OK);
    assert_int_equal(fraglab_recording_trace_facts(recording, 0, &facts, NULL), FRAGLAB_OK);
    run.capacity_bytes = facts.peak_requested_bytes + (seed % 6) * 4 * FRAG_MIB;
    run.skip_oom = seed % 3 == 0;
    if (fraglab_run_write_memory(NULL, recording, 0, policy, &run, "snapshot", NULL, &bytes, &count,
                                 &error) == FRAGLAB_OK)
        made = open_bytes(bytes, count);
    fraglab_free(bytes);
    fraglab_policy_destroy(policy);
    return made;
}

static void tell_program(frag_text *out, uint64_t seed)
{
    program of, other;
    draw_program(&of, seed);
    other = of;
    change_program(&other);
    fraglab_recording *made[4] = {open_program(&of), open_program(&other)};
    size_t from = out->length;
    uint64_t bits = seed + 77;
    tell_recording(out, (const fraglab_recording *const *)made, seed, &bits);
    made[2] = as_snapshot(made[0], seed);
    made[3] = as_snapshot(made[1], seed);
    if (made[2] != NULL && made[3] != NULL)
        tell_recording(out, (const fraglab_recording *const *)&made[2], seed + 1, &bits);
    pinned_fold(out, from, "program");
    for (int i = 0; i < 4; i++)
        fraglab_recording_close(made[i]);
}

/* So long that what repeats is replayed once. */
static void tell_long(frag_text *out, uint64_t seed)
{
    program of;
    draw_program(&of, seed);
    of.step_count = LONG_PARTS / of.part_count;
    of.is_uneven = of.is_uneven && seed % 2 == 0;
    const fraglab_recording *made = open_program(&of);
    fraglab_policy *policy = NULL;
    fraglab_tuned *tuned = NULL;
    fraglab_error error = FRAGLAB_ERROR_INIT;
    fraglab_trace_facts facts = {.size = sizeof facts};
    const fraglab_tune_options options = {
        .size = sizeof options, .goal = (int32_t)(seed % 2), .settings = 8, .seed = seed};
    size_t from = out->length;
    assert_int_equal(fraglab_policy_parse("pytorch", &policy, NULL), FRAGLAB_OK);
    assert_int_equal(fraglab_recording_trace_facts(made, 0, &facts, NULL), FRAGLAB_OK);
    tell_explained(out, made, made, facts.peak_requested_bytes, seed);
    if (fraglab_tune(NULL, &made, 1, policy, &options, &tuned, &error) == FRAGLAB_OK)
        tell_text(out, fraglab_tuned_json(tuned));
    else
        frag_text_add(out, "%s\n", error.sentence);
    pinned_fold(out, from, "long program");
    fraglab_tuned_destroy(tuned);
    fraglab_policy_destroy(policy);
    fraglab_recording_close((fraglab_recording *)(uintptr_t)made);
}

static void tell_all(frag_text *out)
{
    for (uint64_t seed = 0; seed < PROGRAMS; seed++)
        tell_program(out, seed);
    for (uint64_t seed = 0; seed < LONG_PROGRAMS; seed++)
        tell_long(out, PROGRAMS + seed);
}

static const pinned_lines pinned = {"tests/data/answers/programs.txt.zst", tell_all,
                                    "answers-golden"};

int main(int argc, char **argv)
{
    return pinned_lines_test(&pinned, argc, argv);
}
