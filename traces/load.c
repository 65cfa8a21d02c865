#include "traces/load.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/formats/sqlite_file.h"
#include "base/memory.h"
#include "base/text.h"
#include "sim/device/device_log_format.h"
#include "traces/exchange/minimalloc_csv.h"
#include "traces/exchange/nsys_database.h"
#include "traces/exchange/rmm_log.h"
#include "traces/exchange/stalloc_log.h"
#include "traces/fgt/fgt.h"
#include "traces/format_look.h"
#include "traces/text/text_trace.h"
#include "traces/torch/kineto_trace.h"
#include "traces/torch/memory_timeline.h"
#include "traces/torch/snapshot_page.h"
#include "traces/torch/snapshot_parse.h"

#define PROBLEM_PAGE_BYTES_MAX 512u

/* ---- findings */
void frag_findings_add(frag_findings *findings, const char *kind, const char *meaning,
                       bool is_inconsistency, uint32_t device, uint64_t event, const char *format,
                       ...)
{
    uint32_t place = 0;
    while (place < findings->count && strcmp(findings->items[place].kind, kind) != 0)
        place++;
    FRAG_ASSERT(place < FRAG_FINDING_KINDS_MAX);
    frag_finding *finding = &findings->items[place];
    uint64_t count = place < findings->count ? finding->count : 0;
    if (count > 0) {
        finding->count++;
        /* Histories are undone from their end, so what is found last may come first. */
        if (device > finding->device || (device == finding->device && event >= finding->event))
            return;
    }
    findings->count += count == 0 ? 1 : 0;
    *finding = (frag_finding){
        .kind = kind,
        .meaning = meaning,
        .count = count + 1,
        .device = device,
        .event = event,
        .is_inconsistency = is_inconsistency,
    };
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(finding->first, sizeof finding->first, format, arguments);
    va_end(arguments);
    /* It may hold text of the recording, which is not to reach a terminal as it is. */
    frag_text_make_plain(finding->first);
}

uint64_t frag_findings_inconsistencies(const frag_findings *findings)
{
    uint64_t count = 0;
    for (uint32_t i = 0; i < findings->count; i++)
        count += findings->items[i].is_inconsistency ? findings->items[i].count : 0;
    return count;
}

/* ---- formats */
static bool starts_with(const unsigned char *bytes, size_t count, const char *start)
{
    size_t length = strlen(start);
    return count >= length && memcmp(bytes, start, length) == 0;
}

static bool is_like_fgt(const unsigned char *bytes, size_t count)
{
    return count >= FRAG_FGT_MAGIC_BYTES &&
           memcmp(bytes, FRAG_FGT_MAGIC, FRAG_FGT_MAGIC_BYTES) == 0;
}

static bool is_like_device_log(const unsigned char *bytes, size_t count)
{
    return count >= FRAG_DEVICE_LOG_MAGIC_BYTES &&
           memcmp(bytes, FRAG_DEVICE_LOG_MAGIC, FRAG_DEVICE_LOG_MAGIC_BYTES) == 0;
}

static bool is_like_text(const unsigned char *bytes, size_t count)
{
    return starts_with(bytes, count, FRAG_TEXT_START);
}

/* A pickle, whose first byte no text in UTF-8 begins with, JSON, or a web page with one in it. */
static bool is_like_snapshot(const unsigned char *bytes, size_t count)
{
    return (count > 0 && bytes[0] == 0x80) || frag_snapshot_json_is_like(bytes, count) ||
           frag_snapshot_page_is_like(bytes, count);
}

/* A CSV log, or a text log with requests in it. */
static bool is_like_rmm(const unsigned char *bytes, size_t count)
{
    return frag_rmm_log_is_like(bytes, count) || frag_rmm_text_log_is_like(bytes, count);
}

/* Writers of golden logs put what they are first. */
static bool is_like_golden(const unsigned char *bytes, size_t count)
{
    return starts_with(bytes, count, "{\"golden\"") || starts_with(bytes, count, "{ \"golden\"");
}

/* The order is that of trying; formats without is_like are only named. */
static const struct {
    const char *name;
    bool (*is_like)(const unsigned char *bytes, size_t count);
} formats[FRAG_FORMAT_COUNT] = {
    [FRAG_FORMAT_AUTO] = {"auto", NULL},
    [FRAG_FORMAT_FGT] = {"fgt", is_like_fgt},
    [FRAG_FORMAT_TEXT] = {"text", is_like_text},
    [FRAG_FORMAT_SNAPSHOT] = {"snapshot", is_like_snapshot},
    [FRAG_FORMAT_GOLDEN] = {"golden", is_like_golden},
    [FRAG_FORMAT_MINIMALLOC] = {"minimalloc", frag_minimalloc_is_like},
    [FRAG_FORMAT_RMM] = {"rmm", is_like_rmm},
    [FRAG_FORMAT_KINETO] = {"kineto", frag_kineto_is_like},
    [FRAG_FORMAT_TIMELINE] = {"timeline", frag_memory_timeline_is_like},
    [FRAG_FORMAT_STALLOC] = {"stalloc", frag_stalloc_is_like},
    [FRAG_FORMAT_NSYS] = {"nsys", frag_nsys_is_like},
    [FRAG_FORMAT_DEVICE_LOG] = {"device-log", is_like_device_log},
    [FRAG_FORMAT_DEVICE_SEGMENTS] = {"device-segments", NULL},
};

bool frag_trace_format_find(const char *name, frag_trace_format *format)
{
    for (uint32_t i = 0; i < FRAG_FORMAT_COUNT; i++)
        if (strcmp(formats[i].name, name) == 0) {
            *format = (frag_trace_format)i;
            return true;
        }
    return false;
}

bool frag_trace_format_detect(const unsigned char *bytes, size_t count, frag_trace_format *format)
{
    for (uint32_t i = 0; i < FRAG_FORMAT_COUNT; i++)
        if (formats[i].is_like != NULL && formats[i].is_like(bytes, count)) {
            *format = (frag_trace_format)i;
            return true;
        }
    return false;
}

static bool fail_unknown(const unsigned char *bytes, size_t count, frag_error *error)
{
    if (count == 0)
        return frag_fail_at(error, 0, "the file is empty; expected a recording");
    if (starts_with(bytes, count,
                    "\x89"
                    "FGT"))
        return frag_fail_at(
            error, 0, "the file was a .fgt but its line ends were changed; copy it as binary");
    if (starts_with(bytes, count, "PK\x03\x04"))
        return frag_fail_at(
            error, 0,
            "the file is a zip archive; expected a snapshot written by "
            "torch.cuda.memory._dump_snapshot or pickle.dump, a .fgt or a text trace");
    if (frag_memory_timeline_is_picture(bytes, count))
        return frag_fail_at(error, 0,
                            "the web page holds a picture of a memory timeline and no data; export "
                            "it anew with export_memory_timeline(\"NAME.raw.json.gz\"), or record "
                            "a snapshot");
    if (frag_rmm_text_log_is_failures(bytes, count))
        return frag_fail_at(error, 0,
                            "the file is RMM's log of failures, which has no requests; 'fraglab "
                            "explain' reads what failed, and requests are in RMM's CSV log");
    if (starts_with(bytes, count, "{") || starts_with(bytes, count, "["))
        return frag_fail_at(error, 0,
                            "the file is JSON, but its first 64 KiB show no snapshot and no trace "
                            "of a profiler; if one stands further on, say --from snapshot or "
                            "--from kineto");
    if (count > 0 && bytes[0] == '<' && frag_look_contains(bytes, count, "<svg"))
        return frag_fail_at(error, 0,
                            "the file is a picture (SVG), such as a flame graph of _memory_viz, "
                            "which holds sums and no events; give the snapshot it was made of");
    return frag_fail_at(
        error, 0,
        "the format is not known; expected a .fgt, a text trace (its first line is "
        "'" FRAG_TEXT_FIRST_LINE
        "'), a torch snapshot (a pickle, JSON, or a page of _memory_viz), a "
        "device log, a golden log (its first line is JSON with \"golden\"), a log of RMM, a trace "
        "of PyTorch's profiler or of STAlloc, a database of Nsight Systems or nvprof (SQLite) or a "
        "packing "
        "problem (CSV with columns id, lower, upper, size)");
}

static bool detect_format(frag_input *input, frag_trace_format *format, frag_error *error)
{
    const unsigned char *bytes = NULL;
    size_t count = 0;
    return frag_input_peek(input, FRAG_FORMAT_LOOK_BYTES, &bytes, &count, error) &&
           (frag_trace_format_detect(bytes, count, format) || fail_unknown(bytes, count, error));
}

/* Two formats hold device calls. */
static bool read_device_calls(frag_input *input, bool as_segments, frag_recording *recording,
                              frag_findings *findings, frag_error *error)
{
    const unsigned char *bytes = NULL;
    size_t count = 0;
    if (!frag_input_peek(input, FRAG_SQLITE_MAGIC_BYTES, &bytes, &count, error))
        return false;
    if (!frag_nsys_is_like(bytes, count))
        return frag_device_log_load(input, as_segments, recording, findings, error);
    return frag_nsys_read(input,
                          as_segments ? FRAG_DEVICE_LOG_AS_SEGMENTS : FRAG_DEVICE_LOG_AS_REQUESTS,
                          recording, findings, error);
}

static bool read_as(frag_trace_format format, frag_input *input, const frag_load_options *options,
                    frag_recording *recording, frag_findings *findings, frag_error *error)
{
    switch (format) {
    case FRAG_FORMAT_FGT:
        return frag_fgt_read(input, options, recording, error);
    case FRAG_FORMAT_TEXT:
        return frag_text_read(input, options, recording, error);
    case FRAG_FORMAT_SNAPSHOT:
        return frag_snapshot_read(input, options, recording, findings, error);
    case FRAG_FORMAT_GOLDEN:
        return frag_golden_read(input, recording, error);
    case FRAG_FORMAT_MINIMALLOC:
        return frag_minimalloc_read(input, recording, error);
    case FRAG_FORMAT_RMM:
        return frag_rmm_log_read(input, recording, findings, error);
    case FRAG_FORMAT_KINETO:
        return frag_kineto_read(input, recording, findings, error);
    case FRAG_FORMAT_TIMELINE:
        return frag_memory_timeline_read(input, recording, findings, error);
    case FRAG_FORMAT_STALLOC:
        return frag_stalloc_read(input, recording, findings, error);
    case FRAG_FORMAT_NSYS:
        return frag_nsys_read(input, FRAG_DEVICE_LOG_AS_REQUESTS, recording, findings, error);
    default:
        FRAG_ASSERT(format == FRAG_FORMAT_DEVICE_LOG || format == FRAG_FORMAT_DEVICE_SEGMENTS);
        return read_device_calls(input, format == FRAG_FORMAT_DEVICE_SEGMENTS, recording, findings,
                                 error);
    }
}

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
    bool keeps_columns = options->with_columns || frag_recording_is_problem(recording);
    for (uint32_t i = 0; i < recording->trace_count; i++) {
        frag_trace *trace = &recording->traces[i];
        if (!keeps_columns) {
            if (format != FRAG_FORMAT_FGT) /* whose reader kept no others */
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

bool frag_recording_load_input(frag_input *input, const frag_load_options *options,
                               frag_recording *recording, frag_findings *findings,
                               frag_error *error)
{
    *recording = (frag_recording){0};
    frag_trace_format format = options->format;
    bool ok = (format != FRAG_FORMAT_AUTO || detect_format(input, &format, error)) &&
              read_as(format, input, options, recording, findings, error);
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
    frag_load_options options = {
        .format = format, .with_sites = with_sites, .with_columns = with_sites};
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
