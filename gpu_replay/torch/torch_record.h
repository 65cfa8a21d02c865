/* The recording of what a program asked: one log for each device, kept in memory (40 bytes an
 * event) and written as one .fgt at the end. */
#ifndef FRAG_TORCH_TORCH_RECORD_H
#define FRAG_TORCH_TORCH_RECORD_H

#include "gpu_replay/torch/torch_settings.h"
#include "sim/trace/trace.h"

/* As frag_event, with columns beside; time is added. stream and pool are numbers. */
typedef struct frag_torch_event {
    uint64_t bytes;
    uint64_t address;
    uint64_t time_ns; /* Unix time */
    uint32_t slot;
    uint16_t stream; /* FRAG_STREAM_ALL too */
    uint16_t pool;
    uint8_t op;
    uint8_t flags;
} frag_torch_event;

typedef struct frag_torch_log {
    frag_torch_event *events;
    uint64_t count;
    uint64_t capacity;
    bool is_cut; /* the host had no memory for more */
} frag_torch_log;

frag_torch_log *frag_torch_log_create(void);
void frag_torch_log_destroy(frag_torch_log *log);
/* NULL log: does nothing. */
void frag_torch_log_add(frag_torch_log *log, const frag_torch_event *event);

typedef struct frag_torch_log_source {
    uint32_t ordinal;
    const frag_torch_log *log;
    const uint64_t *stream_handles; /* by number */
    uint32_t stream_count;
    const frag_pool_id *pool_ids;
    uint32_t pool_count; /* private ones; numbers from 1 */
} frag_torch_log_source;

/* Writes the logs, in order of devices, to the file of the settings, in place of what was there. */
bool frag_torch_record_write(const frag_torch_settings *settings,
                             const frag_torch_log_source *sources, size_t count, frag_error *error);

#endif
