/* Any bytes as a .fgt, as they are and with their checksums repaired; what loads must survive a
 * round trip. */
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/digest.h"
#include "base/memory.h"
#include "tests/support/sample_recording.h"
#include "traces/fgt/fgt.h"

int LLVMFuzzerTestOneInput(const unsigned char *bytes, size_t count);

static void try_load(const unsigned char *bytes, size_t count, bool with_columns)
{
    frag_error error = {.code = FRAG_E_NONE};
    frag_recording recording;
    if (!sample_load(bytes, count, with_columns, &recording, &error)) {
        FRAG_ASSERT(error.code == FRAG_E_INPUT && error.sentence[0] != '\0');
        return;
    }
    if (with_columns) {
        frag_recording again;
        size_t written = 0;
        char *file = sample_written(&recording, frag_fgt_write, &written);
        FRAG_ASSERT(sample_load(file, written, true, &again, &error));
        FRAG_ASSERT(same_recording(&recording, &again));
        frag_recording_destroy(&again);
        free(file);
    }
    frag_recording_destroy(&recording);
}

/* What is not refused has figures for each trace, or its events. */
static void try_figures(const unsigned char *bytes, size_t count)
{
    frag_error error = {.code = FRAG_E_NONE};
    frag_recording recording;
    frag_load_options options = {.with_columns = true, .figures_only = true};
    if (!sample_load_as(bytes, count, &options, &recording, &error)) {
        FRAG_ASSERT(error.code == FRAG_E_INPUT && error.sentence[0] != '\0');
        return;
    }
    for (uint32_t i = 0; i < recording.trace_count; i++) {
        frag_trace *trace = &recording.traces[i];
        if (trace->figures == NULL)
            trace->figures = frag_trace_figures_find(&recording, trace);
        FRAG_ASSERT(frag_trace_figures_doubt(trace->figures, &recording, trace) == NULL);
    }
    frag_recording_destroy(&recording);
}

/* A piece that is found with an index or without one is a recording of its own. */
static void try_window(const unsigned char *bytes, size_t count, frag_window window)
{
    frag_error error = {.code = FRAG_E_NONE};
    frag_recording piece;
    frag_load_options options = {.with_sites = true, .with_columns = true, .window = &window};
    if (!sample_load_as(bytes, count, &options, &piece, &error)) {
        FRAG_ASSERT((error.code == FRAG_E_INPUT || error.code == FRAG_E_USAGE) &&
                    error.sentence[0] != '\0');
        return;
    }
    FRAG_ASSERT(piece.trace_count == 1 && piece.traces[0].digest[0] != '\0');
    frag_recording_destroy(&piece);
}

static void try_windows(const unsigned char *bytes, size_t count)
{
    for (uint32_t device = 0; device < 4; device += 3) {
        frag_window window = {.has_device = true, .device = device, .device_option = "--device"};
        window.kind = FRAG_WINDOW_EVENTS;
        window.first = frag_hash_bytes(bytes, count) % 64;
        window.end = window.first + 5;
        try_window(bytes, count, window);
        window.kind = FRAG_WINDOW_TIMES;
        window.end = UINT64_MAX;
        try_window(bytes, count, window);
        window.kind = FRAG_WINDOW_MARKS;
        window.first_mark = "";
        try_window(bytes, count, window);
    }
}

int LLVMFuzzerTestOneInput(const unsigned char *bytes, size_t count)
{
    if (count < FRAG_FGT_HEADER_BYTES || count > FRAG_MIB)
        return 0;
    unsigned char *copy = frag_alloc(count, 1);
    memcpy(copy, bytes, count);
    memcpy(copy, FRAG_FGT_MAGIC, FRAG_FGT_MAGIC_BYTES);
    try_load(copy, count, true);
    for (size_t at = FRAG_FGT_HEADER_BYTES; count - at >= FRAG_FGT_SECTION_BYTES;) {
        uint64_t length = frag_fgt_get(copy + at + 8, 8);
        if (length > count - at - FRAG_FGT_SECTION_BYTES)
            break;
        frag_fgt_put(copy + at + 16,
                     frag_hash_bytes(copy + at + FRAG_FGT_SECTION_BYTES, (size_t)length), 8);
        at += FRAG_FGT_SECTION_BYTES + (size_t)length;
    }
    try_load(copy, count, true);
    try_load(copy, count, false);
    try_figures(copy, count);
    try_windows(copy, count);
    free(copy);
    return 0;
}
