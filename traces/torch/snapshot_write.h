/* Writing a run as a snapshot of torch.cuda.memory, for PyTorch's own viewers: what happened from
 * the start of the trace, and the memory as it stands where the run ended.
 *
 * The format is that of PyTorch 2.15; older viewers skip what they do not know. The history goes to
 * the file as it happens; only the memory at its end is kept until then. */
#ifndef FRAG_TORCH_SNAPSHOT_WRITE_H
#define FRAG_TORCH_SNAPSHOT_WRITE_H

#include "sim/replay/replay.h"

/* What 'allocator_settings' is to say, and where the run comes from; texts are borrowed. */
typedef struct frag_snapshot_about {
    const char *conf;         /* PYTORCH_CUDA_ALLOC_CONF; "": the defaults */
    uint64_t max_split_bytes; /* FRAG_UNLIMITED: none */
    double gc_threshold;
    uint64_t divisions[16]; /* roundup_power2_divisions by power of two of MiB */
    bool is_expandable;
    const char *tool; /* "fraglab 1.0" */
    const char *policy;
    const char *trace;
} frag_snapshot_about;

typedef struct frag_snapshot_writer frag_snapshot_writer;

/* The recording outlives the writer; errors of the stream are left to whoever closes it. */
frag_snapshot_writer *frag_snapshot_writer_create(const frag_recording *recording, FILE *stream);

/* A run of one of the recording's traces begins; in order of device, each at most once. */
void frag_snapshot_writer_begin(frag_snapshot_writer *writer, const frag_trace *trace);
/* Takes the notes of that run, those of its start included: a frag_note_taker. */
void frag_snapshot_writer_note(void *writer, const frag_note *note);
/* The run has ended: a frag_run_looker. */
void frag_snapshot_writer_look(void *writer, const frag_replay *replay,
                               const frag_replay_result *result);

/* Writes what is left and frees. */
void frag_snapshot_writer_finish(frag_snapshot_writer *writer, const frag_snapshot_about *about);
/* Frees; what was written is no pickle. */
void frag_snapshot_writer_abandon(frag_snapshot_writer *writer);

#endif
