/* What a report is to be about. */
#ifndef FRAG_REPORT_REPORT_WISHES_H
#define FRAG_REPORT_REPORT_WISHES_H

#include "sim/run.h"
#include "studies/policy_settings.h"
#include "traces/load.h"

/* Where a page would be larger, it draws a part of the events. */
#define FRAG_REPORT_PAGE_LIMIT_BYTES (10 * 1000 * 1000u)

/* Everything is borrowed. */
typedef struct frag_report_wishes {
    const frag_context *context;
    const char *const *operands; /* paths of recordings and of files of rows */
    size_t operand_count;
    const frag_recording *const *recordings; /* shown behind those of the operands */
    size_t recording_count;
    const frag_policy_list *policies; /* NULL: a few that are worth a look, by recording */
    const frag_device_spec *device;
    frag_trace_format format;
    const frag_window *window; /* NULL: recordings are shown whole */
    bool is_oom_skipped;
    bool has_bounds;
    uint64_t page_limit_bytes; /* 0: the usual one; FRAG_UNLIMITED: none */
    const char *data_folder;   /* beside the page, for its data; NULL: they are in the page */
    const char *title;         /* NULL: the usual one */
    const char *command;       /* that makes the page again */
} frag_report_wishes;

#endif
