#include "tests/support/told_load.h"

#include <inttypes.h>
#include <string.h>

#include "tests/support/pinned_lines.h"

static void add_trace(uint64_t *sum, const frag_trace *trace)
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

void told_load(frag_text *out, const void *bytes, size_t count, const frag_load_options *options)
{
    frag_recording recording;
    frag_findings findings = {0};
    frag_error error = {0};
    frag_input *input = frag_input_from_memory(bytes, count, "told");
    if (frag_recording_load_input(input, options, &recording, &findings, &error)) {
        uint64_t sum = 0;
        pinned_add_recording(&sum, &recording);
        for (uint32_t i = 0; i < recording.trace_count; i++)
            add_trace(&sum, &recording.traces[i]);
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
