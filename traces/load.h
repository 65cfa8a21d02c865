/* Loading a recording of any format, detected from its content. */
#ifndef FRAG_TRACES_LOAD_H
#define FRAG_TRACES_LOAD_H

#include "base/error.h"
#include "base/file.h"
#include "sim/trace/trace.h"

typedef enum frag_trace_format {
    FRAG_FORMAT_AUTO,
    FRAG_FORMAT_FGT,        /* our binary columns */
    FRAG_FORMAT_TEXT,       /* our text form */
    FRAG_FORMAT_SNAPSHOT,   /* torch.cuda.memory._snapshot: pickle, JSON, page of _memory_viz */
    FRAG_FORMAT_GOLDEN,     /* log of an allocator library under a random script, JSON Lines */
    FRAG_FORMAT_DEVICE_LOG, /* a recorder's log of device calls, taken as requests */
    FRAG_FORMAT_DEVICE_SEGMENTS, /* the same, taken as what an allocator asked: observed segments */
    FRAG_FORMAT_MINIMALLOC,      /* packing problem, CSV */
    FRAG_FORMAT_RMM,             /* log of RMM's logging adaptor, CSV */
    FRAG_FORMAT_KINETO,          /* trace of PyTorch's profiler, Chrome's JSON */
    FRAG_FORMAT_TIMELINE,        /* events of export_memory_timeline of PyTorch's profiler, JSON */
    FRAG_FORMAT_STALLOC,         /* requests that STAlloc recorded, text */
    FRAG_FORMAT_NSYS,            /* exported report of Nsight Systems, SQLite; as a device log */
    FRAG_FORMAT_COUNT
} frag_trace_format;

/* What a reader found that does not fit together: counted by kind, with the first of each
 * explained. */
#define FRAG_FINDING_KINDS_MAX 32
typedef struct frag_finding {
    const char *kind;    /* static: "free-of-unknown-block" */
    const char *meaning; /* static: one line for people: what it means and how it was treated */
    uint64_t count;
    uint32_t device;       /* of the first */
    uint64_t event;        /* of the first: index of the entry in the recording */
    char first[160];       /* what was seen there */
    bool is_inconsistency; /* false: a note (ambiguous, guessed), which does not make check fail */
} frag_finding;

typedef struct frag_findings {
    frag_finding items[FRAG_FINDING_KINDS_MAX];
    uint32_t count;
} frag_findings;

void frag_findings_add(frag_findings *findings, const char *kind, const char *meaning,
                       bool is_inconsistency, uint32_t device, uint64_t event, const char *format,
                       ...) __attribute__((format(printf, 7, 8)));
uint64_t frag_findings_inconsistencies(const frag_findings *findings);

typedef struct frag_load_options {
    frag_trace_format format;
    bool with_sites;   /* keep call stacks (they cost memory) */
    bool with_columns; /* false: only what replay needs: events, pools, and what adoption needs */
} frag_load_options;

/* Reads, validates and measures. On failure *recording is empty and error has file and position. */
bool frag_recording_load(const char *path, const frag_load_options *options,
                         frag_recording *recording, frag_findings *findings, frag_error *error);
bool frag_recording_load_input(frag_input *input, const frag_load_options *options,
                               frag_recording *recording, frag_findings *findings,
                               frag_error *error);

/* For replay, with columns and call stacks only if with_sites; findings are left out. */
bool frag_recording_load_plain(const char *path, frag_trace_format format, bool with_sites,
                               frag_recording *recording, frag_error *error);

/* "torch 2.9", what was guessed of the recording, or NULL. text holds it. */
const char *frag_recorded_by(const frag_recording *recording, char text[64]);

bool frag_trace_format_find(const char *name, frag_trace_format *format);

/* The names that frag_trace_format_find knows, but for "auto", as choices of an option. */
#define FRAG_FORMAT_CHOICES                                                                        \
    "fgt|text|snapshot|golden|minimalloc|rmm|kineto|timeline|stalloc|nsys|device-log|device-"      \
    "segments"
/* The same for people. */
#define FRAG_FORMAT_LIST                                                                           \
    "fgt, text, snapshot, golden, minimalloc, rmm, kineto, timeline, stalloc, nsys, device-log "   \
    "or device-segments"

/* Metadata of a recording whose releases were guessed, for people: rows and reports show it. */
#define FRAG_GUESSED_KEY "guessed"
#define FRAG_GUESSED_PAIRS "releases paired by size (a guess)"

/* What a file that begins with these bytes is a recording in; false: in no format that tells itself
 * by them. FRAG_FORMAT_LOOK_BYTES are enough, fewer will do where the file has no more. */
#define FRAG_FORMAT_LOOK_BYTES 65536u
bool frag_trace_format_detect(const unsigned char *bytes, size_t count, frag_trace_format *format);

/* ---- the single formats (each in its own file) */
bool frag_fgt_read(frag_input *input, const frag_load_options *options, frag_recording *recording,
                   frag_error *error);
bool frag_fgt_write(const frag_recording *recording, FILE *stream, frag_error *error);
bool frag_text_read(frag_input *input, const frag_load_options *options, frag_recording *recording,
                    frag_error *error);
bool frag_text_write(const frag_recording *recording, FILE *stream, frag_error *error);
bool frag_snapshot_read(frag_input *input, const frag_load_options *options,
                        frag_recording *recording, frag_findings *findings, frag_error *error);
bool frag_golden_read(frag_input *input, frag_recording *recording, frag_error *error);
bool frag_device_log_load(frag_input *input, bool as_segments, frag_recording *recording,
                          frag_findings *findings, frag_error *error);

#endif
