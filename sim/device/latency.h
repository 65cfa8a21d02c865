/* What calls to the device cost.
 *
 * One table holds a curve for each kind of call: either a straight line, as a person derives it
 * from published figures, or measured points with their spread. Times are only added up; no
 * policy sees them. The files are device descriptions (docs/device-description.md). */
#ifndef FRAG_DEVICE_LATENCY_H
#define FRAG_DEVICE_LATENCY_H

#include "base/formats/yaml.h"
#include "base/text.h"
#include "sim/device_call.h"

#define FRAG_LATENCY_POINTS_MAX 16

typedef struct frag_latency_point {
    uint64_t bytes; /* of the call; 0 for calls that have no size */
    double median_ns;
    double p10_ns; /* a tenth of the calls were at least as quick */
    double p90_ns;
    uint64_t samples; /* timed calls; 0: not measured but stated */
} frag_latency_point;

/* Between two points the cost is interpolated, below the first it is the first's, above the last
 * it grows by ns_per_mib. No points: the call costs nothing. */
typedef struct frag_latency {
    frag_latency_point points[FRAG_LATENCY_POINTS_MAX]; /* ascending in bytes */
    uint32_t count;
    double ns_per_mib;
} frag_latency;

typedef struct frag_latency_table {
    frag_latency calls[FRAG_DEVICE_CALL_COUNT];
    char name[64]; /* where the figures come from */
} frag_latency_table;

/* Nanoseconds of one call of that many bytes. */
double frag_latency_ns(const frag_latency *latency, uint64_t bytes);

/* Lets the line through the last two points go on above them; for who fills points himself, as
 * the module that drives a card does. */
#pragma GCC visibility push(default)
void frag_latency_extend(frag_latency *latency);
#pragma GCC visibility pop

/* The 'calls' of a device description into a table whose name stays as it is. false: an error with
 * line and column. */
bool frag_latency_read(const frag_yaml_node *calls, frag_latency_table *table, frag_error *error);

/* The same as YAML, indented by two blanks; reads back as the same table. */
void frag_latency_write(const frag_latency_table *table, frag_text *text);

#endif
