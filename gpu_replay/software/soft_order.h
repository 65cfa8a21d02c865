/* Streams, events and captures as whole calls: each function takes the lock, counts and logs the
 * call under the given name, and returns its result. Everything that is given back is written, with
 * 0 where there is nothing; except the handles of the three that create, as real ones leave them.
 */
#ifndef FRAG_SOFTWARE_SOFT_ORDER_H
#define FRAG_SOFTWARE_SOFT_ORDER_H

#include "gpu_replay/software/soft_state.h"

typedef struct frag_soft_capture_seen {
    int32_t status;
    uint64_t id;
    void *graph;
} frag_soft_capture_seen;

int32_t frag_soft_order_create(frag_soft_call_id id, void **out, uint32_t flags, int32_t priority);
int32_t frag_soft_order_destroy(frag_soft_call_id id, const void *handle);
int32_t frag_soft_order_synchronize(frag_soft_call_id id, const void *handle);
int32_t frag_soft_order_query(frag_soft_call_id id, const void *handle);
int32_t frag_soft_order_wait(frag_soft_call_id id, const void *stream_handle, const void *handle);
/* What a stream is, asked without a call in the log. */
int32_t frag_soft_order_look(const void *handle, frag_soft_stream *out);

int32_t frag_soft_order_event_create(frag_soft_call_id id, void **out, uint32_t flags);
int32_t frag_soft_order_event_destroy(frag_soft_call_id id, const void *handle);
int32_t frag_soft_order_event_record(frag_soft_call_id id, const void *handle,
                                     const void *stream_handle);
int32_t frag_soft_order_event_query(frag_soft_call_id id, const void *handle);
int32_t frag_soft_order_event_synchronize(frag_soft_call_id id, const void *handle);
int32_t frag_soft_order_event_elapsed(frag_soft_call_id id, float *milliseconds, const void *from,
                                      const void *to);

int32_t frag_soft_order_capture_begin(frag_soft_call_id id, const void *handle, int32_t mode);
int32_t frag_soft_order_capture_end(frag_soft_call_id id, const void *handle, void **graph);
int32_t frag_soft_order_capture_look(frag_soft_call_id id, const void *handle,
                                     frag_soft_capture_seen *seen);
int32_t frag_soft_order_capture_mode(frag_soft_call_id id, int32_t *mode);

int32_t frag_soft_order_launch(frag_soft_call_id id, const void *handle);
int32_t frag_soft_order_host(frag_soft_call_id id, const void *handle, void (*function)(void *),
                             void *data);

#endif
