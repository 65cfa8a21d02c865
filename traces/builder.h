/* Building a recording event by event: what every reader does with what it has parsed. */
#ifndef FRAG_TRACES_BUILDER_H
#define FRAG_TRACES_BUILDER_H

#include "base/file.h"
#include "sim/trace/trace.h"

typedef struct frag_builder frag_builder;

/* One event with everything known about it; 0 is "none" in the optional fields. stream is a raw
 * handle. */
typedef struct frag_build_event {
    frag_op op;
    uint8_t flags;
    bool is_stream_all;
    uint64_t stream; /* raw handle */
    uint32_t slot;
    uint64_t bytes;
    uint64_t address;
    uint64_t time_ns;
    uint32_t site;
    uint32_t pool;
    uint32_t note;
    uint64_t block_bytes;
} frag_build_event;

/* recording must be {0}; the builder fills it in place. */
frag_builder *frag_builder_create(frag_recording *recording);
void frag_builder_metadata(frag_builder *builder, const char *key, const char *value);
/* As above for strings with any bytes, by their ids. */
void frag_builder_metadata_strings(frag_builder *builder, uint32_t key, uint32_t value);
uint32_t frag_builder_string(frag_builder *builder, const char *bytes, size_t length);
/* As above for text of a recording: what is not UTF-8, and zero bytes, become '?'. */
uint32_t frag_builder_text(frag_builder *builder, const char *bytes, size_t length);
uint32_t frag_builder_frame(frag_builder *builder, frag_frame frame); /* interned */
uint32_t frag_builder_site(frag_builder *builder, const uint32_t *frames,
                           uint32_t count); /* interned */
/* Begins the trace of a device; events go to the trace begun last. Devices ascend. */
void frag_builder_device(frag_builder *builder, uint32_t device);
/* Says before the first event of a trace about how many there will be, which saves moving them. */
void frag_builder_expect(frag_builder *builder, uint64_t event_count);
/* The same, with the memory of so many events of a trace that is over, which becomes the trace's:
 * pages that were touched before cost far less than fresh ones. */
void frag_builder_reuse(frag_builder *builder, frag_event *events, size_t capacity);
uint32_t frag_builder_pool(frag_builder *builder,
                           frag_pool_id id); /* interned per trace; {0,0} is 0 */
/* Fixes the stream table in the given order (text, .fgt); otherwise handles are sorted at the end.
 */
void frag_builder_streams(frag_builder *builder, const uint64_t *handles, uint32_t count);
void frag_builder_add(frag_builder *builder, const frag_build_event *event);
/* What was added to the trace begun last. */
uint64_t frag_builder_event_count(const frag_builder *builder);
/* All slots of that trace are less. */
uint32_t frag_builder_slot_count(const frag_builder *builder);
/* Adds events [first, end) once more, but for their columns: blocks take slots as they come. By
 * slot: the one that takes its place, given for those that are released and were there before. */
void frag_builder_repeat(frag_builder *builder, uint64_t first, uint64_t end, uint32_t *slots);
/* The same in a shortened trace (sim/trace/trace.h): begun for a device without events, and never
 * written. Between begin and end slots are not used again; stretches may lie in each other. */
void frag_builder_shorten(frag_builder *builder);
bool frag_builder_is_short(const frag_builder *builder);
void frag_builder_begin_stretch(frag_builder *builder);
/* false: it keeps more than it may, or gives back what is not its own, and is none that can be done
 * again; number is left as it is. */
bool frag_builder_end_stretch(frag_builder *builder, const frag_stretch *stretch, uint32_t *number);
void frag_builder_again(frag_builder *builder, const frag_again *again);
/* What was added last, an alloc, is done once, where it lies in a stretch. */
void frag_builder_once(frag_builder *builder);
/* Slots: the lowest free number first, so that tables stay small. */
uint32_t frag_builder_slot_take(frag_builder *builder);
void frag_builder_slot_give(frag_builder *builder, uint32_t slot);

/* The traces need no digest: they are neither written nor named in answers. */
void frag_builder_skip_digest(frag_builder *builder);
/* Sorts streams, checks, measures, digests every trace; frees the builder. On failure the recording
 * is destroyed. More than 65535 streams on a device is FRAG_E_INPUT. */
bool frag_builder_finish(frag_builder *builder, const char *name, frag_error *error);
void frag_builder_abandon(frag_builder *builder);
/* Finishes what was read, or abandons what was not. */
bool frag_builder_end(frag_builder *builder, bool is_read, frag_input *input, frag_error *error);

#endif
