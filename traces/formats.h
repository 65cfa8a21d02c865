/* The formats of recordings: one list, a line for each, and a table in the file of each reader. */
#ifndef FRAG_TRACES_FORMATS_H
#define FRAG_TRACES_FORMATS_H

#include "base/error.h"
#include "base/file.h"
#include "sim/trace/trace.h"
#include "traces/findings.h"

/* Every format: FRAG_FORMAT_<first>, its table frag_format_<second>, its name. The order is that of
 * help texts and of detection. Adding one is one NEXT line; choices of options, help and completion
 * follow. */
#define FRAG_FORMATS(FIRST, NEXT, LAST)                                                            \
    FIRST(FGT, fgt, "fgt")                                                                         \
    NEXT(TEXT, text, "text")                                                                       \
    NEXT(SNAPSHOT, snapshot, "snapshot")                                                           \
    NEXT(GOLDEN, golden, "golden")                                                                 \
    NEXT(MINIMALLOC, minimalloc, "minimalloc")                                                     \
    NEXT(RMM, rmm, "rmm")                                                                          \
    NEXT(KINETO, kineto, "kineto")                                                                 \
    NEXT(TIMELINE, timeline, "timeline")                                                           \
    NEXT(STALLOC, stalloc, "stalloc")                                                              \
    NEXT(NSYS, nsys, "nsys")                                                                       \
    NEXT(DEVICE_LOG, device_log, "device-log")                                                     \
    LAST(DEVICE_SEGMENTS, device_segments, "device-segments")

typedef enum frag_trace_format {
    FRAG_FORMAT_AUTO,
#define FRAG_FORMAT_ENUM(id, table, name) FRAG_FORMAT_##id,
    FRAG_FORMATS(FRAG_FORMAT_ENUM, FRAG_FORMAT_ENUM, FRAG_FORMAT_ENUM)
#undef FRAG_FORMAT_ENUM
        FRAG_FORMAT_COUNT
} frag_trace_format;

/* The names as choices of an option, and for people. */
#define FRAG_FORMAT_CHOICE_FIRST(id, table, name) name
#define FRAG_FORMAT_CHOICE_NEXT(id, table, name) "|" name
#define FRAG_FORMAT_CHOICES                                                                        \
    FRAG_FORMATS(FRAG_FORMAT_CHOICE_FIRST, FRAG_FORMAT_CHOICE_NEXT, FRAG_FORMAT_CHOICE_NEXT)
#define FRAG_FORMAT_LIST_NEXT(id, table, name) ", " name
#define FRAG_FORMAT_LIST_LAST(id, table, name) " or " name
#define FRAG_FORMAT_LIST                                                                           \
    FRAG_FORMATS(FRAG_FORMAT_CHOICE_FIRST, FRAG_FORMAT_LIST_NEXT, FRAG_FORMAT_LIST_LAST)

typedef struct frag_load_options {
    frag_trace_format format;
    bool with_sites;   /* keep call stacks (they cost memory) */
    bool with_columns; /* false: only what replay needs: events, pools, and what adoption needs */
    /* What trace->figures hold is enough: a trace whose file has them may come without events. */
    bool figures_only;
    struct frag_window *window; /* NULL: everything (traces/window.h) */
} frag_load_options;

/* Takes memory in proportion to the file. FRAG_E_INPUT names the place of what is wrong; what does
 * not fit together is counted in findings. On failure *recording is empty. */
typedef bool frag_format_reader(frag_input *input, const frag_load_options *options,
                                frag_recording *recording, frag_findings *findings,
                                frag_error *error);

/* What the file of a reader says of its format. */
typedef struct frag_format {
    const char *what; /* one line: who writes it and what it is */
    const char *page; /* of docs/, with the heading: "exchange.md#rmm-logs" */
    /* Does a file that begins with these bytes look like it? NULL: it must be named (--from). */
    bool (*is_like)(const unsigned char *bytes, size_t count);
    /* For a file in no format: what is wrong with it, where it was meant as this one. The sentence
     * stays; NULL: it was not. May be NULL itself. */
    const char *(*lacks)(const unsigned char *bytes, size_t count);
    frag_format_reader *read;
    bool has_magic; /* is_like looks at its first bytes alone, so that it is tried first */
    bool keeps_what_is_asked; /* the reader itself leaves out columns that were not asked for */
} frag_format;

#define FRAG_FORMAT_TABLE(id, table, name) extern const frag_format frag_format_##table;
FRAG_FORMATS(FRAG_FORMAT_TABLE, FRAG_FORMAT_TABLE, FRAG_FORMAT_TABLE)
#undef FRAG_FORMAT_TABLE

/* NULL: FRAG_FORMAT_AUTO. */
const frag_format *frag_trace_format_table(frag_trace_format format);
bool frag_trace_format_find(const char *name, frag_trace_format *format);

/* What a file that begins with these bytes is a recording in; false: in no format that tells itself
 * by them. FRAG_FORMAT_LOOK_BYTES are enough, fewer will do where the file has no more. */
#define FRAG_FORMAT_LOOK_BYTES 65536u
bool frag_trace_format_detect(const unsigned char *bytes, size_t count, frag_trace_format *format);
/* The same of a file; FRAG_E_INPUT with what was found instead. */
bool frag_trace_format_detect_input(frag_input *input, frag_trace_format *format,
                                    frag_error *error);

#endif
