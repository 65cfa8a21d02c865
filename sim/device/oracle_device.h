/* A device that answers as the recorded one did.
 *
 * It walks along the observed events of a trace. A call that is the next observed event succeeds,
 * at the recorded address; a request for memory that is not the next one is refused, as the
 * recorded device must have refused it (what comes next then is what the allocator gave back).
 * Giving back something else than what was given back when recorded is a difference. */
#ifndef FRAG_DEVICE_ORACLE_DEVICE_H
#define FRAG_DEVICE_ORACLE_DEVICE_H

#include "sim/device.h"
#include "sim/trace/trace.h"

/* Reserved address ranges as their mappings show them: pages are mapped from the front on, so that
 * all a range ever had mapped lies below high. */
#define FRAG_SEEN_RANGES_MAX 256u
typedef struct frag_seen_ranges {
    uint64_t base[FRAG_SEEN_RANGES_MAX];
    uint64_t high[FRAG_SEEN_RANGES_MAX];
    uint32_t count;
} frag_seen_ranges;

/* A mapping grows the range that it extends or lies in; false: it is of no range seen so far. */
bool frag_seen_ranges_extend(frag_seen_ranges *ranges, uint64_t address, uint64_t bytes);
/* A range that begins here; nothing when there are too many. */
void frag_seen_ranges_add(frag_seen_ranges *ranges, uint64_t address, uint64_t bytes);

typedef struct frag_oracle_call {
    frag_op op; /* observed op the call would have been */
    uint64_t address;
    uint64_t bytes;
} frag_oracle_call;

typedef struct frag_oracle frag_oracle;

/* capacity_bytes is reported to policies; it limits nothing. The trace outlives the device. */
frag_device *frag_oracle_device_create(const frag_trace *trace, uint64_t capacity_bytes);
/* Says that the events before this one have been replayed: a range that is reserved from here on is
 * for the next request, which tells ranges apart that were reserved in vain. */
void frag_oracle_serve(frag_device *device, uint64_t event);
/* How far along the observed events it is: index of the next event of the trace that was not met.
 */
uint64_t frag_oracle_position(const frag_device *device);
/* Index of the event that was met last; 0: none. */
uint64_t frag_oracle_last(const frag_device *device);
/* Observed events met so far. */
uint64_t frag_oracle_met(const frag_device *device);
/* Meets the next observed event if it is an oom of at least these bytes: some are of the rounded
 * request. */
bool frag_oracle_meet_oom(frag_device *device, uint64_t bytes);
/* The first call that was not what was recorded. */
bool frag_oracle_difference(const frag_device *device, frag_oracle_call *call);
/* The last request for memory that was refused since the last call that was met; false: none. */
bool frag_oracle_refused(const frag_device *device, frag_oracle_call *call);
/* Skips the difference: continues after this event. */
void frag_oracle_resume(frag_device *device, uint64_t event);

#endif
