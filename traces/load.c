#include "traces/load.h"

#include <stdio.h>
#include <string.h>

#include "base/bits.h"
#include "base/memory.h"
#include "base/text.h"
#include "sim/replay/lifetimes.h"
#include "traces/cut.h"

#define PROBLEM_PAGE_BYTES_MAX 512u

/* ---- what not everyone needs */
static void keep_held_addresses(frag_trace *trace)
{
    uint64_t kept = 0;
    for (uint64_t i = 0; trace->addresses != NULL && i < trace->event_count; i++) {
        const frag_event *event = &trace->events[i];
        if (!frag_op_is_observed(event->op) && (event->flags & FRAG_EVENT_INITIAL) == 0)
            trace->addresses[i] = 0;
        kept |= trace->addresses[i];
    }
    if (kept == 0) {
        frag_free(trace->addresses);
        trace->addresses = NULL;
    }
}

/* Readers may keep everything; what was not asked for is dropped here, the same for every format.
 */
static void drop_unwanted(frag_recording *recording, const frag_load_options *options,
                          frag_trace_format format)
{
    bool keeps_columns = options->with_columns || frag_recording_needs_columns(recording);
    for (uint32_t i = 0; i < recording->trace_count; i++) {
        frag_trace *trace = &recording->traces[i];
        if (!keeps_columns) {
            if (options->window != NULL || !frag_trace_format_table(format)->keeps_what_is_asked)
                keep_held_addresses(trace);
            frag_free(trace->times_ns);
            frag_free(trace->notes);
            trace->times_ns = NULL;
            trace->notes = NULL;
        }
        if (!options->with_sites) {
            frag_free(trace->sites);
            trace->sites = NULL;
        }
    }
    if (!options->with_sites) {
        frag_free(recording->frames);
        frag_free(recording->site_frames);
        recording->frames = NULL;
        recording->site_frames = NULL;
        recording->frame_count = 0;
        recording->site_frame_count = 0;
        recording->site_count = recording->site_count > 0 ? 1 : 0;
        if (recording->site_count > 0)
            recording->sites[0] = (frag_site){0};
    }
}

/* A packing problem counts every byte: its device gives pages that all sizes are multiples of, but
 * no larger ones than what policies round to. */
static void set_pages(frag_recording *recording)
{
    for (uint32_t i = 0; frag_recording_is_problem(recording) && i < recording->trace_count; i++) {
        frag_trace *trace = &recording->traces[i];
        if (trace->events == NULL)
            continue;
        uint64_t bits = PROBLEM_PAGE_BYTES_MAX;
        for (uint64_t event = 0; event < trace->event_count; event++) {
            if (trace->events[event].op != FRAG_OP_ALLOC)
                continue;
            const char *note = trace->notes != NULL
                                   ? frag_strings_get(&recording->strings, trace->notes[event])
                                   : "";
            size_t name_bytes = 0;
            uint64_t alignment = frag_problem_alignment(note, &name_bytes);
            bits |= trace->events[event].bytes | (alignment > 1 ? alignment : 0);
        }
        trace->page_bytes = (uint64_t)1 << frag_bit_low(bits);
    }
}

static void name_recording(frag_recording *recording, const char *path)
{
    const char *slash = strrchr(path, '/');
    frag_free(recording->name);
    recording->name = frag_copy_text(slash != NULL && slash[1] != '\0' ? slash + 1 : path);
    frag_text_make_plain(recording->name);
}

/* Puts the part that is asked for in the place of what was loaded. */
static bool take_window(frag_recording *recording, const frag_window *window, frag_error *error)
{
    frag_recording piece = {0};
    bool ok = frag_cut_window(recording, window, &piece, error);
    frag_recording_destroy(recording);
    *recording = piece;
    return ok;
}

/* Some editors begin a text with a mark, which says nothing here. */
static bool skip_mark(frag_input *input, frag_error *error)
{
    const unsigned char *bytes = NULL;
    size_t count = 0;
    if (!frag_input_peek(input, 3, &bytes, &count, error))
        return false;
    frag_input_skip(input, frag_text_mark_bytes(bytes, count));
    return true;
}

bool frag_recording_load_input(frag_input *input, const frag_load_options *options,
                               frag_recording *recording, frag_findings *findings,
                               frag_error *error)
{
    *recording = (frag_recording){0};
    frag_trace_format format = options->format;
    frag_load_options whole = *options;
    if (options->window != NULL) { /* where blocks are at its start is known from addresses */
        options->window->is_found = false;
        whole.with_columns = true;
        whole.figures_only = false;
    }
    bool ok =
        skip_mark(input, error) &&
        (format != FRAG_FORMAT_AUTO || frag_trace_format_detect_input(input, &format, error)) &&
        frag_trace_format_table(format)->read(input, &whole, recording, findings, error) &&
        (options->window == NULL || take_window(recording, options->window, error));
    if (!ok)
        return frag_error_in(error, frag_input_name(input));
    drop_unwanted(recording, options, format);
    set_pages(recording);
    name_recording(recording, frag_input_name(input));
    return true;
}

bool frag_recording_load(const char *path, const frag_load_options *options,
                         frag_recording *recording, frag_findings *findings, frag_error *error)
{
    *recording = (frag_recording){0};
    frag_input *input = frag_input_open(path, error);
    if (input == NULL)
        return false;
    bool ok = frag_recording_load_input(input, options, recording, findings, error);
    frag_input_close(input);
    return ok;
}

bool frag_recording_load_plain(const char *path, frag_trace_format format, bool with_sites,
                               frag_recording *recording, frag_error *error)
{
    const frag_window all = {.kind = FRAG_WINDOW_ALL};
    return frag_recording_load_part(path, format, with_sites, &all, recording, error);
}

bool frag_recording_load_part(const char *path, frag_trace_format format, bool with_sites,
                              const frag_window *window, frag_recording *recording,
                              frag_error *error)
{
    frag_window own = *window;
    frag_load_options options = {.format = format,
                                 .with_sites = with_sites,
                                 .with_columns = with_sites,
                                 .window = own.kind != FRAG_WINDOW_ALL ? &own : NULL};
    frag_findings findings = {0};
    return frag_recording_load(path, &options, recording, &findings, error) ||
           frag_error_in(error, path);
}

const char *frag_recorded_by(const frag_recording *recording, char text[64])
{
    const char *version = frag_recording_get(recording, "torch.version_hint");
    const char *guessed = frag_recording_get(recording, FRAG_GUESSED_KEY);
    if (version == NULL && guessed == NULL)
        return NULL;
    if (version == NULL) {
        snprintf(text, 64, "%.63s", guessed);
        return text;
    }
    const char *least = frag_recording_get(recording, "torch.version_min");
    if (least != NULL && strcmp(least, version) != 0)
        snprintf(text, 64, "torch %.20s to %.20s", least, version);
    else
        snprintf(text, 64, "torch %.20s", version);
    return text;
}

void frag_recording_add_metadata(frag_json *json, const frag_recording *recording)
{
    frag_json_array(json, "metadata");
    for (uint32_t i = 0; i < recording->metadata_count; i++) {
        frag_json *item = frag_json_add(json, "metadata");
        frag_json_text(item, "key",
                       frag_strings_get(&recording->strings, recording->metadata[i][0]));
        frag_json_text(item, "value",
                       frag_strings_get(&recording->strings, recording->metadata[i][1]));
    }
}
