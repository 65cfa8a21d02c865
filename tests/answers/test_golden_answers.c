/* What the comparison with golden logs finds where a log has one thing changed: an answer, a device
 * call, a trace event, a figure, a block or a segment. What was changed on purpose is pinned anew:
 *
 *   test_golden_answers            compares with tests/data/answers/golden.txt.zst
 *   test_golden_answers --write    prints what that file should hold (make answers-golden);
 *                                  with FRAG_PINNED_WHOLE in the environment every answer whole
 */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "studies/policy_settings.h"
#include "studies/verify/golden_compare.h"
#include "tests/support/pinned_lines.h"
#include "tests/support/xorshift.h"

enum { FOLDS = 15, CHANGES = 36 };

static const char *const logs[] = {
    "build/golden/2.1.2-oversize-exp-ms64-1",
    "build/golden/2.1.2-twodev-def-2",
    "build/golden/2.4.1-nested-def-1",
    "build/golden/2.6.0-fraction-gc5-1",
    "build/golden/2.9.1-gc-exp-gc5-1",
    "build/golden/2.9.1-mempooloom-def-2",
    "build/golden/2.12.1-tight-exp-toc-1",
    "build/golden/2.15.0-bounds-exp-lss40-1",
    "tests/data/golden-nasty/elsewhere-2.12.1",
    "tests/data/golden-nasty/far-ranges-2.7.1",
    "tests/data/golden-nasty/huge-exp-2.9.1",
    "tests/data/golden-nasty/refused-2.12.1",
    "tests/data/golden-nasty/zombie-2.11.0",
    "tests/data/golden-peers/rmm-pool-max-odd",
    "tests/data/golden-peers/rmm-arena-bound-oom",
    "tests/data/golden-peers/tf-bfc-refuse-2",
};

static void tell_comparison(frag_text *out, const frag_golden_log *log,
                            const frag_recording *recording, const uint64_t *ends,
                            const frag_policy_spec *spec)
{
    frag_golden_options options = {0};
    frag_golden_result result = {0};
    frag_error error = {0};
    if (frag_golden_compare(log, recording, ends, spec, &options, &result, &error))
        frag_text_add(out,
                      "%d %d, %" PRIu64 " requests, %" PRIu64 " calls, %" PRIu64 " events, %" PRIu64
                      " ooms, %" PRIu64 " stats, %" PRIu64 " segments; line %" PRIu64
                      ", %s: the library has %s; the policy has %s\n",
                      result.is_identical, result.has_failed, result.requests, result.device_events,
                      result.trace_events, result.ooms, result.stat_lines, result.segments,
                      result.line, result.kind != NULL ? result.kind : "nothing",
                      result.library.length > 0 ? result.library.bytes : "",
                      result.policy.length > 0 ? result.policy.bytes : "");
    else
        frag_text_add(out, "%" PRIu64 ": %s\n", error.line, error.sentence);
    frag_golden_result_destroy(&result);
}

static void change_call(frag_golden_call *call, uint64_t bits)
{
    switch (bits % 5) {
    case 0:
        call->kind = (frag_golden_call_kind)((call->kind + 1) % FRAG_GOLDEN_CALL_COUNT);
        break;
    case 1:
        call->is_refused = !call->is_refused;
        break;
    case 2:
        call->address ^= 512;
        break;
    case 3:
        call->bytes += 512;
        break;
    default:
        call->count += bits % 2 == 0 || call->count == 0 ? 1 : UINT64_MAX;
    }
}

static void change_note(frag_golden_note *note, uint64_t bits)
{
    switch (bits % 4) {
    case 0:
        note->kind = (frag_golden_note_kind)((note->kind + 1) % FRAG_GOLDEN_NOTE_COUNT);
        break;
    case 1:
        note->address ^= 512;
        break;
    case 2:
        note->bytes++;
        break;
    default:
        note->stream ^= 4096;
    }
}

static void change_block(frag_golden_block *block, uint64_t bits)
{
    switch (bits % 4) {
    case 0:
        block->address ^= 512;
        break;
    case 1:
        block->bytes += 512;
        break;
    case 2:
        block->requested_bytes++;
        break;
    default:
        block->state = block->state == 'A' ? 'I' : 'A';
    }
}

static void change_segment(frag_golden_segment *segment, uint64_t bits)
{
    uint64_t *const numbers[] = {&segment->address,      &segment->bytes,
                                 &segment->stream,       &segment->allocated_bytes,
                                 &segment->active_bytes, &segment->requested_bytes,
                                 &segment->pool.high,    &segment->pool.low};
    size_t count = sizeof numbers / sizeof *numbers;
    if (bits % (count + 2) < count)
        (*numbers[bits % (count + 2)])++;
    else if (bits % (count + 2) == count)
        segment->is_small = !segment->is_small;
    else
        segment->is_expandable = !segment->is_expandable;
}

/* A list of the line, or the whole line, is longer, shorter or gone. */
static void change_line(frag_golden_line *line, uint64_t bits)
{
    frag_golden_list *const lists[] = {&line->calls, &line->notes, &line->items};
    frag_golden_list *list = lists[bits / 8 % 3];
    switch (bits % 8) {
    case 0:
        line->address ^= 512;
        break;
    case 1:
        line->is_oom = !line->is_oom;
        break;
    case 2:
        line->text = 0;
        break;
    case 3:
        line->has_notes = !line->has_notes;
        break;
    case 4:
        line->is_hang = line->op == FRAG_GOLDEN_ALLOC;
        break;
    case 5:
        list->count = 0;
        break;
    case 6:
        list->count /= 2;
        break;
    default:
        list->count = list->count > 4 ? list->count - 4 : 0;
    }
}

/* One thing of the log is changed, the answer told, and the log made as it was. */
static void tell_changed(frag_text *out, frag_golden_log *log, const frag_recording *recording,
                         const uint64_t *ends, const frag_policy_spec *spec, uint64_t *bits)
{
    struct {
        void *first;
        size_t count;
        size_t bytes;
    } const tables[] = {{log->lines, log->line_count, sizeof *log->lines},
                        {log->calls, log->call_count, sizeof *log->calls},
                        {log->notes, log->note_count, sizeof *log->notes},
                        {log->figures, log->figure_count, sizeof *log->figures},
                        {log->blocks, log->block_count, sizeof *log->blocks},
                        {log->segments, log->segment_count, sizeof *log->segments}};
    enum { LARGEST = sizeof(frag_golden_line) };
    unsigned char before[LARGEST];
    size_t table = xorshift_next(bits) % 6;
    uint64_t how = xorshift_next(bits);
    if (tables[table].count == 0)
        return;
    assert_true(tables[table].bytes <= LARGEST);
    size_t at = xorshift_next(bits) % tables[table].count;
    void *place = (unsigned char *)tables[table].first + at * tables[table].bytes;
    memcpy(before, place, tables[table].bytes);
    switch (table) {
    case 0:
        change_line(place, how);
        break;
    case 1:
        change_call(place, how);
        break;
    case 2:
        change_note(place, how);
        break;
    case 3:
        ((frag_golden_figure *)place)->value += how % 2 == 0 ? 1 : -1;
        break;
    case 4:
        change_block(place, how);
        break;
    default:
        change_segment(place, how);
    }
    frag_text_add(out, "  table %zu, %zu: ", table, at);
    tell_comparison(out, log, recording, ends, spec);
    memcpy(place, before, tables[table].bytes);
}

static void tell_log(frag_text *out, const char *name, uint64_t seed)
{
    char path[256];
    frag_golden_log log;
    frag_recording recording;
    frag_policy_spec spec, resolved;
    uint64_t *ends = NULL;
    uint64_t bits = seed;
    frag_error error = {0};
    snprintf(path, sizeof path, "%s.jsonl.zst", name);
    frag_input *input = frag_input_open(path, &error);
    if (input == NULL || !frag_golden_log_read(input, &log, &error) ||
        !frag_golden_log_record(&log, "log", &recording, &ends, &error))
        fail_msg("%s: %s", path, error.sentence);
    frag_input_close(input);
    const char *policy =
        log.library == 0 ? "pytorch:recorded" : frag_strings_get(&log.strings, log.policy);
    assert_true(frag_policy_spec_parse(policy, &spec, &error));
    assert_true(frag_policy_resolve(NULL, &spec, &recording, &resolved, &error));
    frag_policy_spec_destroy(&spec);

    frag_text_add(out, "%s: ", name);
    tell_comparison(out, &log, &recording, ends, &resolved);
    for (int i = 0; i < FOLDS; i++) {
        size_t from = out->length;
        for (int j = 0; j < CHANGES; j++)
            tell_changed(out, &log, &recording, ends, &resolved, &bits);
        pinned_fold(out, from, "  changed");
    }
    frag_policy_spec_destroy(&resolved);
    free(ends);
    frag_recording_destroy(&recording);
    frag_golden_log_destroy(&log);
}

static void tell_all(frag_text *out)
{
    for (size_t i = 0; i < sizeof logs / sizeof *logs; i++)
        tell_log(out, logs[i], i + 1);
}

static const pinned_lines pinned = {"tests/data/answers/golden.txt.zst", tell_all,
                                    "answers-golden"};

int main(int argc, char **argv)
{
    return pinned_lines_test(&pinned, argc, argv);
}
