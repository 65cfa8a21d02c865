#include "tests/support/pinned_lines.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/formats/lines.h"
#include "tests/api/failing_memory.h"

enum { SHOWN_MAX = 5 };

typedef struct line_comparison {
    const char *next; /* what is answered now, from here on */
    unsigned wrong;
} line_comparison;

static void show(line_comparison *at, const char *before, size_t length, size_t now)
{
    if (at->wrong++ < SHOWN_MAX)
        fprintf(stderr, "before: %.*s\nnow:    %.*s\n", (int)length, before, (int)now, at->next);
}

static bool compare_line(void *context, const char *line, size_t length, frag_error *error)
{
    (void)error;
    line_comparison *at = context;
    size_t now = strcspn(at->next, "\n");
    if (now != length || memcmp(at->next, line, length) != 0)
        show(at, line, length, now);
    at->next += at->next[now] == '\0' ? now : now + 1;
    return true;
}

/* How many lines differ, and one more where telling them left memory behind. */
static unsigned compare(const pinned_lines *pinned)
{
    frag_text out = {0};
    frag_error error = {0};
    long before = frag_live_memory();
    pinned->tell(&out);
    long kept = frag_live_memory() - before - (out.capacity > 0);
    line_comparison at = {.next = out.bytes};
    frag_input *input = frag_input_open(pinned->path, &error);
    if (input == NULL || !frag_each_line(input, compare_line, &at, &error)) {
        fprintf(stderr, "%s: %s\n", pinned->path, error.sentence);
        at.wrong++;
    }
    frag_input_close(input);
    if (*at.next != '\0')
        show(&at, "", 0, strcspn(at.next, "\n"));
    frag_text_destroy(&out);
    if (kept != 0)
        fprintf(stderr, "%ld pieces of memory were not given back\n", kept);
    if (at.wrong > 0)
        fprintf(stderr,
                "%u lines differ from %s; if on purpose: make %s, and read the difference\n",
                at.wrong, pinned->path, pinned->target);
    return at.wrong + (kept != 0);
}

static void every_answer_is_as_before(void **state)
{
    assert_int_equal(compare(*state), 0);
}

static int print(const pinned_lines *pinned)
{
    frag_text out = {0};
    pinned->tell(&out);
    fputs(out.bytes, stdout);
    frag_text_destroy(&out);
    return 0;
}

int pinned_lines_test(const pinned_lines *pinned, int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "--write") == 0)
        return print(pinned);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(every_answer_is_as_before, (void *)(uintptr_t)pinned)};
    return cmocka_run_group_tests_name(pinned->path, tests, NULL, NULL);
}

void pinned_add(uint64_t *sum, uint64_t number)
{
    uint64_t mixed = (*sum ^ number) * 0x9e3779b97f4a7c15u;
    *sum = mixed ^ mixed >> 29;
}

void pinned_add_text(uint64_t *sum, const char *text)
{
    for (; *text != '\0'; text++)
        pinned_add(sum, (unsigned char)*text);
    pinned_add(sum, 256);
}

void pinned_fold(frag_text *out, size_t from, const char *name)
{
    uint64_t sum = 0;
    if (getenv("FRAG_PINNED_WHOLE") != NULL || out->length == from)
        return;
    pinned_add_text(&sum, out->bytes + from);
    out->length = from;
    out->bytes[from] = '\0';
    frag_text_add(out, "%s: %08" PRIx32 "\n", name, (uint32_t)(sum >> 32));
}

static void add_string(uint64_t *sum, const frag_recording *recording, uint32_t id)
{
    pinned_add_text(sum, frag_strings_get(&recording->strings, id));
    pinned_add(sum, frag_strings_length(&recording->strings, id));
}

static void add_site(uint64_t *sum, const frag_recording *recording, uint32_t id)
{
    const frag_site *site = &recording->sites[id];
    pinned_add(sum, site->count);
    for (uint32_t i = 0; i < site->count; i++) {
        const frag_frame *frame = &recording->frames[recording->site_frames[site->first + i]];
        add_string(sum, recording, frame->name);
        add_string(sum, recording, frame->file);
        pinned_add(sum, frame->line);
    }
}

/* All that is said of an event beside what the digest holds. */
static void add_columns(uint64_t *sum, const frag_recording *recording, const frag_trace *trace)
{
    for (uint64_t i = 0; i < trace->event_count; i++) {
        pinned_add(sum, trace->addresses != NULL ? trace->addresses[i] : 1);
        pinned_add(sum, trace->times_ns != NULL ? trace->times_ns[i] : 1);
        pinned_add(sum, trace->block_bytes != NULL ? trace->block_bytes[i] : 1);
        pinned_add(sum, trace->pools != NULL ? trace->pools[i] : 1);
        if (trace->notes != NULL)
            add_string(sum, recording, trace->notes[i]);
        if (trace->sites != NULL)
            add_site(sum, recording, trace->sites[i]);
    }
    for (uint32_t i = 0; i < trace->stream_count; i++)
        pinned_add(sum, trace->stream_handles[i]);
    for (uint32_t i = 0; i < trace->pool_count; i++)
        pinned_add(sum, trace->pool_ids[i].high ^ trace->pool_ids[i].low << 1);
}

void pinned_add_recording(uint64_t *sum, const frag_recording *recording)
{
    for (uint32_t i = 0; i < recording->metadata_count; i++)
        for (int j = 0; j < 2; j++)
            add_string(sum, recording, recording->metadata[i][j]);
    for (uint32_t i = 0; i < recording->trace_count; i++) {
        pinned_add(sum, recording->traces[i].device);
        pinned_add_text(sum, recording->traces[i].digest);
        add_columns(sum, recording, &recording->traces[i]);
    }
}

static void add_stats(uint64_t *sum, const frag_trace *trace)
{
    uint64_t stats[sizeof trace->stats / sizeof(uint64_t)];
    memcpy(stats, &trace->stats, sizeof stats);
    for (size_t i = 0; i < sizeof stats / sizeof *stats; i++)
        pinned_add(sum, stats[i]);
    for (uint64_t i = 0; i < trace->event_count; i++)
        pinned_add(sum, trace->events[i].slot ^ (uint64_t)trace->events[i].flags << 32);
    pinned_add(sum, trace->slot_count);
}

static void add_findings(uint64_t *sum, const frag_findings *findings)
{
    for (uint32_t i = 0; i < findings->count; i++) {
        const frag_finding *found = &findings->items[i];
        pinned_add_text(sum, found->kind);
        pinned_add_text(sum, found->meaning);
        pinned_add_text(sum, found->first);
        pinned_add(sum, found->count);
        pinned_add(sum, (uint64_t)found->device << 32 ^ found->event);
    }
}

void pinned_tell_load(frag_text *out, const void *bytes, size_t count,
                      const frag_load_options *options)
{
    frag_recording recording;
    frag_findings findings = {0};
    frag_error error = {0};
    frag_input *input = frag_input_from_memory(bytes, count, "told");
    if (frag_recording_load_input(input, options, &recording, &findings, &error)) {
        uint64_t sum = 0;
        pinned_add_recording(&sum, &recording);
        for (uint32_t i = 0; i < recording.trace_count; i++)
            add_stats(&sum, &recording.traces[i]);
        add_findings(&sum, &findings);
        frag_text_add(out, "%016" PRIx64, sum);
        frag_recording_destroy(&recording);
    } else {
        const char *zstd = strstr(error.sentence, "zstd"); /* whose words are its own */
        size_t length = zstd != NULL ? (size_t)(zstd - error.sentence) : sizeof error.sentence;
        frag_text_add(out, "%d in %s, %" PRIu64 ":%" PRIu64 ", %d %" PRIu64 ": %.*s",
                      (int)error.code, error.where, error.line, error.column, error.has_offset,
                      error.offset, (int)length, error.sentence);
    }
    frag_input_close(input);
    frag_text_add(out, "\n");
}
