#include "sim/rows/result_schema.h"

#include <string.h>

#include "base/error.h"
#include "base/json.h"

/* Fields that several kinds of rows share. */
#define SCHEMA_FIELD                                                                               \
    {                                                                                              \
        "schema", FRAG_ROW_TEXT, false, "kind and version of the row"                              \
    }
#define TOOL_FIELDS                                                                                \
    {"tool.version", FRAG_ROW_TEXT, false, "version of fraglab"},                                  \
    {                                                                                              \
        "tool.commit", FRAG_ROW_TEXT, false,                                                       \
            "commit it was built from; -dirty: with uncommitted changes"                           \
    }
#define TRACE_FIELDS                                                                               \
    {"trace.name", FRAG_ROW_TEXT, false, "file name without folders"},                             \
        {"trace.digest", FRAG_ROW_TEXT, false,                                                     \
         "XXH3-128 of the whole content of the trace; the same in every file format"},             \
    {                                                                                              \
        "trace.device", FRAG_ROW_COUNT, false, "device of the recording"                           \
    }
#define POLICY_FIELDS                                                                              \
    {"policy.name", FRAG_ROW_TEXT, false, "name of the policy"},                                   \
    {                                                                                              \
        "policy.label", FRAG_ROW_TEXT, false, "--label, else the policy as typed"                  \
    }

static const frag_row_field run_fields[] = {
    SCHEMA_FIELD,
    TOOL_FIELDS,
    TRACE_FIELDS,
    {"trace.events", FRAG_ROW_COUNT, false,
     "events in the trace, prologue and observed events included"},
    {"trace.requests", FRAG_ROW_COUNT, false, "requests of the program"},
    {"trace.peak_requested_bytes", FRAG_ROW_BYTES, false,
     "peak of requested bytes; requests that failed when recorded do not count"},
    {"trace.observed_reserved_peak_bytes", FRAG_ROW_BYTES, true,
     "peak of reserved bytes of the recorded allocator; null when not recorded"},
    {"trace.recorded_by", FRAG_ROW_TEXT, true,
     "what made the recording: torch 2.9; or how it was completed by a guess: releases paired by "
     "size (a guess)"},
    POLICY_FIELDS,
    {"device.name", FRAG_ROW_TEXT, false, "sim or cuda"},
    {"device.capacity_bytes", FRAG_ROW_BYTES, true,
     "--capacity, else the memory of the card of --gpu or of the real card; null: without limit"},
    {"device.used_by_others_bytes", FRAG_ROW_BYTES, false,
     "--used-by-others, plus the context of the card if its capacity is used"},
    {"device.page_bytes", FRAG_ROW_BYTES, false, "page of the device"},
    {"device.address_rule", FRAG_ROW_TEXT, false,
     "the rule that was used: lowest, bump or recorded; driver: the addresses of the real card's "
     "driver"},
    {"device.fail_call", FRAG_ROW_COUNT, true, "--fail-call"},
    {"device.latency", FRAG_ROW_TEXT, true, "name of the latency table"},
    {"device.gpu", FRAG_ROW_TEXT, true, "name of the card of --gpu"},
    {"device.gpu_digest", FRAG_ROW_TEXT, true, "XXH3-128 of the content of its description"},
    {"device.gpu_origin", FRAG_ROW_TEXT, true,
     "source of the figure for its memory: measured, reported, nominal (a data sheet: more than "
     "programs can use) or software"},
    {"card.name", FRAG_ROW_TEXT, true, "name of the real card; null: unknown to the driver"},
    {"card.ordinal", FRAG_ROW_COUNT, true, "number of the card, from 0"},
    {"card.pci", FRAG_ROW_TEXT, true, "place of the card on the PCI bus"},
    {"card.runtime_version", FRAG_ROW_TEXT, true, "version of the CUDA runtime: 13.0"},
    {"card.driver_version", FRAG_ROW_TEXT, true, "the newest CUDA that its driver supports"},
    {"card.limit", FRAG_ROW_TEXT, true, "what refuses memory: card, budget (--capacity), ballast"},
    {"card.total_bytes", FRAG_ROW_BYTES, true, "memory of the card"},
    {"card.free_before_bytes", FRAG_ROW_BYTES, true,
     "free on it after every kind of call has been made once, before the ballast"},
    {"card.free_after_bytes", FRAG_ROW_BYTES, true,
     "free on it after everything has been given back; it differs from before if other programs "
     "changed theirs"},
    {"card.ballast_bytes", FRAG_ROW_BYTES, true, "--ballast: bytes filled before the run"},
    {"card.pool_reserved_peak_bytes", FRAG_ROW_BYTES, true,
     "peak reserved by the driver's pool, by its own count; 0: not used"},
    {"card.pool_used_peak_bytes", FRAG_ROW_BYTES, true,
     "peak used of the driver's pool, by its own count"},
    {"card.is_touched", FRAG_ROW_FLAG, true, "--touch"},
    {"seed", FRAG_ROW_NULL, false,
     "reserved for policies and traces that use random numbers; "
     "there are none yet"},
    {"peak.requested_bytes", FRAG_ROW_BYTES, false,
     "peak of requested bytes in this run, of the requests that were served"},
    {"peak.allocated_bytes", FRAG_ROW_BYTES, false, "peak of allocated bytes"},
    {"peak.active_bytes", FRAG_ROW_BYTES, false, "peak of active bytes"},
    {"peak.reserved_bytes", FRAG_ROW_BYTES, false,
     "peak of reserved bytes, without memory taken for a request that then failed in this run. "
     "The four peaks may be at different events"},
    {"peak.reserved_at_event", FRAG_ROW_COUNT, false,
     "the event, from 0, during which reserved bytes first had their peak"},
    {"final.requested_bytes", FRAG_ROW_BYTES, false, "requested bytes when the run ended"},
    {"final.allocated_bytes", FRAG_ROW_BYTES, false, "allocated bytes then"},
    {"final.active_bytes", FRAG_ROW_BYTES, false, "active bytes then"},
    {"final.reserved_bytes", FRAG_ROW_BYTES, false, "reserved bytes then"},
    {"decomposition_at_peak.requested_bytes", FRAG_ROW_BYTES, true,
     "parts of the reserved bytes at their peak: requested bytes"},
    {"decomposition_at_peak.rounding_bytes", FRAG_ROW_BYTES, true, "lost by rounding requests up"},
    {"decomposition_at_peak.unsplit_bytes", FRAG_ROW_BYTES, true,
     "remainders that were not split off"},
    {"decomposition_at_peak.holes_bytes", FRAG_ROW_BYTES, true,
     "free, in segments that hold blocks"},
    {"decomposition_at_peak.cached_bytes", FRAG_ROW_BYTES, true, "segments without any block"},
    {"decomposition_at_peak.waiting_bytes", FRAG_ROW_BYTES, true,
     "freed, but waiting for a stream"},
    {"decomposition_at_peak.page_slack_bytes", FRAG_ROW_BYTES, true,
     "lost because the device gives whole pages"},
    {"fragmentation.utilisation_ratio", FRAG_ROW_RATIO, true,
     "peak allocated / peak reserved, of the requests that were served"},
    {"fragmentation.requested_over_reserved_at_peak_ratio", FRAG_ROW_RATIO, true,
     "requested / reserved, both at the peak of reserved"},
    {"fragmentation.requested_over_reserved_mean_ratio", FRAG_ROW_RATIO, true,
     "sum of requested bytes / sum of reserved bytes, over all events"},
    {"fragmentation.allocated_over_reserved_mean_ratio", FRAG_ROW_RATIO, true,
     "sum of allocated bytes / sum of reserved bytes, over all events"},
    {"fragmentation.external_ratio_max", FRAG_ROW_RATIO, false,
     "largest share of reserved bytes that was free when the policy asked the device for more"},
    {"fragmentation.largest_hole_at_peak_bytes", FRAG_ROW_BYTES, true,
     "largest hole at the peak of reserved, cached segments included"},
    {"fragmentation.holes_at_peak", FRAG_ROW_COUNT, true, "holes then"},
    {"fragmentation.segments_at_peak", FRAG_ROW_COUNT, true, "segments then"},
    {"fragmentation.over_bound_ratio", FRAG_ROW_RATIO, true,
     "peak reserved / bounds.peak_requested_bytes - 1; null after an OOM"},
    {"oom.event", FRAG_ROW_COUNT, true,
     "OOM point: the first event whose request could not be served"},
    {"oom.requested_bytes", FRAG_ROW_BYTES, true, "what it asked for"},
    {"oom.segment_bytes", FRAG_ROW_BYTES, true, "size of the last device call that was refused"},
    {"oom.free_bytes", FRAG_ROW_BYTES, true,
     "free on the device then; null: no capacity was given"},
    {"oom.largest_hole_bytes", FRAG_ROW_BYTES, true, "largest hole in the policy's segments then"},
    {"oom.total_hole_bytes", FRAG_ROW_BYTES, true, "all holes then"},
    {"device_calls.malloc", FRAG_ROW_COUNT, false, "calls, successful and refused: cudaMalloc"},
    {"device_calls.free", FRAG_ROW_COUNT, false, "cudaFree"},
    {"device_calls.reserve", FRAG_ROW_COUNT, false, "cuMemAddressReserve"},
    {"device_calls.unreserve", FRAG_ROW_COUNT, false, "cuMemAddressFree"},
    {"device_calls.map", FRAG_ROW_COUNT, false,
     "cuMemCreate, cuMemMap and cuMemSetAccess of one range; without cuMemCreate when gmlake "
     "maps chunks a second time"},
    {"device_calls.unmap", FRAG_ROW_COUNT, false,
     "cuMemUnmap and cuMemRelease of one range; only cuMemUnmap for chunks mapped a second time"},
    {"device_calls.malloc_async", FRAG_ROW_COUNT, false, "cudaMallocAsync"},
    {"device_calls.free_async", FRAG_ROW_COUNT, false, "cudaFreeAsync"},
    {"device_calls.memory_info", FRAG_ROW_COUNT, false, "cudaMemGetInfo"},
    {"device_calls.synchronize", FRAG_ROW_COUNT, false, "waits for all streams"},
    {"device_calls.event_record", FRAG_ROW_COUNT, false,
     "events recorded in a stream "
     "(cudaEventRecord)"},
    {"device_calls.event_query", FRAG_ROW_COUNT, false, "events found done (cudaEventQuery)"},
    {"device_calls.event_wait", FRAG_ROW_COUNT, false,
     "events waited for, by the program or by another stream"},
    {"device_calls.stream_wait", FRAG_ROW_COUNT, false, "waits for one stream"},
    {"device_calls.malloc_failed", FRAG_ROW_COUNT, false, "mallocs that were refused"},
    {"device_calls.map_failed", FRAG_ROW_COUNT, false, "maps that were refused"},
    {"device_calls.modelled_time_ns", FRAG_ROW_NS, true,
     "time of all calls by the latency table; null without one"},
    {"device_calls.measured_time_ns", FRAG_ROW_NS, true,
     "time of all calls as measured on a real card"},
    {"device_times.malloc_ns", FRAG_ROW_NS, true,
     "measured time of the calls that device_calls.malloc counts"},
    {"device_times.free_ns", FRAG_ROW_NS, true,
     "measured time of the calls that device_calls.free counts"},
    {"device_times.reserve_ns", FRAG_ROW_NS, true,
     "measured time of the calls that device_calls.reserve counts"},
    {"device_times.unreserve_ns", FRAG_ROW_NS, true,
     "measured time of the calls that device_calls.unreserve counts"},
    {"device_times.map_ns", FRAG_ROW_NS, true,
     "measured time of the calls that device_calls.map counts"},
    {"device_times.unmap_ns", FRAG_ROW_NS, true,
     "measured time of the calls that device_calls.unmap counts"},
    {"device_times.malloc_async_ns", FRAG_ROW_NS, true,
     "measured time of the calls that device_calls.malloc_async counts"},
    {"device_times.free_async_ns", FRAG_ROW_NS, true,
     "measured time of the calls that device_calls.free_async counts"},
    {"device_times.memory_info_ns", FRAG_ROW_NS, true,
     "measured time of the calls that device_calls.memory_info counts"},
    {"device_times.synchronize_ns", FRAG_ROW_NS, true,
     "measured time of the calls that device_calls.synchronize counts"},
    {"device_times.event_record_ns", FRAG_ROW_NS, true,
     "measured time of the calls that device_calls.event_record counts"},
    {"device_times.event_query_ns", FRAG_ROW_NS, true,
     "measured time of the calls that device_calls.event_query counts"},
    {"device_times.event_wait_ns", FRAG_ROW_NS, true,
     "measured time of the calls that device_calls.event_wait counts"},
    {"device_times.stream_wait_ns", FRAG_ROW_NS, true,
     "measured time of the calls that device_calls.stream_wait counts"},
    {"bounds.peak_requested_bytes", FRAG_ROW_BYTES, false,
     "lower bound of the peak of any policy that serves every request: the trace's peak of "
     "requested bytes, a request that failed when recorded included"},
    {"bounds.packing_bytes", FRAG_ROW_BYTES, true,
     "with --bounds: height of the best offline packing found"},
    {"bounds.packing_proved", FRAG_ROW_FLAG, true, "whether that packing is proved to be the best"},
    {"plan.answer", FRAG_ROW_TEXT, true,
     "result of a policy that plans: optimal, found, infeasible, exhausted, or none if there was "
     "nothing to plan; null for other policies"},
    {"plan.peak_bytes", FRAG_ROW_BYTES, true, "height of its plan"},
    {"plan.bound_bytes", FRAG_ROW_BYTES, true, "proved lower bound of any plan"},
    {"replay.events", FRAG_ROW_COUNT, false,
     "events replayed; fewer than trace.events after an OOM"},
    {"replay.requests", FRAG_ROW_COUNT, false, "requests made"},
    {"replay.failed_requests", FRAG_ROW_COUNT, false,
     "requests that could not be served; more than one only with --on-oom skip"},
    {"replay.ignored_events", FRAG_ROW_COUNT, false,
     "events that the policy or the device does not use"},
    {"replay.initial_state", FRAG_ROW_TEXT, false,
     "none; adopted: blocks from before the recording kept their places; allocated: they were "
     "requested first"},
    {"replay.events_per_second", FRAG_ROW_COUNT, true, "with --timing"},
    {"replay.wall_ns", FRAG_ROW_NS, true, "with --timing: wall time of the replay"},
    {"verify", FRAG_ROW_NULL, false, "always null; fraglab verify prints rows of its own"},
    {"oom.message", FRAG_ROW_TEXT, true,
     "the message that the program gets, in the wording of the framework's release; null when "
     "the policy has none"},
    {NULL, FRAG_ROW_TEXT, false, NULL},
};

static const frag_row_field comparison_fields[] = {
    SCHEMA_FIELD,
    TRACE_FIELDS,
    POLICY_FIELDS,
    {"card.name", FRAG_ROW_TEXT, false, "the real card"},
    {"is_same", FRAG_ROW_FLAG, false,
     "peak of reserved bytes, calls and refused calls of every kind, and OOM point are the same"},
    {"peak_reserved.sim_bytes", FRAG_ROW_BYTES, false,
     "peak of reserved bytes on the simulated device"},
    {"peak_reserved.cuda_bytes", FRAG_ROW_BYTES, false, "on the card"},
    {"peak_reserved.difference_bytes", FRAG_ROW_SIGNED_BYTES, false,
     "card minus simulated; may be negative"},
    {"device_calls.sim", FRAG_ROW_COUNT, false,
     "calls that take or give back memory or address space, simulated"},
    {"device_calls.cuda", FRAG_ROW_COUNT, false, "on the card"},
    {"device_calls.difference", FRAG_ROW_SIGNED, false, "card minus simulated"},
    {"oom.sim_event", FRAG_ROW_COUNT, true, "OOM point, simulated"},
    {"oom.cuda_event", FRAG_ROW_COUNT, true, "OOM point on the card"},
    {NULL, FRAG_ROW_TEXT, false, NULL},
};

static const frag_row_field min_capacity_fields[] = {
    SCHEMA_FIELD,
    TOOL_FIELDS,
    TRACE_FIELDS,
    {"trace.peak_requested_bytes", FRAG_ROW_BYTES, false,
     "peak of requested bytes; requests that failed when recorded do not count"},
    POLICY_FIELDS,
    {"device.used_by_others_bytes", FRAG_ROW_BYTES, false,
     "--used-by-others; part of the capacity"},
    {"capacity_bytes", FRAG_ROW_BYTES, true,
     "the least capacity, in whole pages, with which every request is served; null: none is "
     "enough"},
    {"is_monotone", FRAG_ROW_FLAG, false, "false: some larger capacity fails again"},
    {"failing_above_bytes", FRAG_ROW_BYTES, true,
     "when not monotone: the largest capacity that fails"},
    {"enough_bytes", FRAG_ROW_BYTES, false, "from this capacity on, no device call is refused"},
    {"runs", FRAG_ROW_COUNT, false, "replays that the search took"},
    {"bounds.peak_requested_bytes", FRAG_ROW_BYTES, false,
     "lower bound of the peak of any policy that serves every request: the trace's peak of "
     "requested bytes, a request that failed when recorded included; --used-by-others comes on top "
     "of both bounds"},
    {"bounds.packing_bytes", FRAG_ROW_BYTES, true,
     "with --bounds: height of the best offline packing found"},
    {"bounds.packing_proved", FRAG_ROW_FLAG, true, "whether that packing is proved to be the best"},
    {"below.event", FRAG_ROW_COUNT, false,
     "OOM point with one page less. below is null when there is none"},
    {"below.requested_bytes", FRAG_ROW_BYTES, false, "what it asked for"},
    {"below.segment_bytes", FRAG_ROW_BYTES, false, "size of the last device call that was refused"},
    {"below.free_bytes", FRAG_ROW_BYTES, false,
     "free on the device then; null: no capacity was given"},
    {"below.largest_hole_bytes", FRAG_ROW_BYTES, false,
     "largest hole in the policy's segments then"},
    {"below.total_hole_bytes", FRAG_ROW_BYTES, false, "all holes then"},
    {NULL, FRAG_ROW_TEXT, false, NULL},
};

static const frag_row_field refused_fields[] = {
    SCHEMA_FIELD,
    TOOL_FIELDS,
    TRACE_FIELDS,
    POLICY_FIELDS,
    {"device.capacity_bytes", FRAG_ROW_BYTES, true,
     "--capacity, else the memory of the card of --gpu or of the real card; null: without limit"},
    {"problem", FRAG_ROW_TEXT, false, "why the policy refuses the combination"},
    {NULL, FRAG_ROW_TEXT, false, NULL},
};

typedef struct row_kind {
    const char *name; /* under $defs */
    const char *schema;
    const char *meaning;
    const frag_row_field *fields;
    const char *absent_groups[4]; /* objects that are null as a whole where there is nothing */
} row_kind;

static const row_kind kinds[] = {
    {"run",
     FRAG_SCHEMA_RUN,
     "one trace under one policy on one device: run, sweep",
     run_fields,
     {"oom", "card", "device_times"}},
    {"comparison",
     FRAG_SCHEMA_COMPARISON,
     "one trace under one policy on two devices: run --device sim,cuda",
     comparison_fields,
     {NULL}},
    {"min_capacity",
     FRAG_SCHEMA_MIN_CAPACITY,
     "the smallest device on which one trace survives under one policy: min-capacity",
     min_capacity_fields,
     {"below"}},
    {"refused",
     FRAG_SCHEMA_REFUSED,
     "a combination of a sweep that the policy refuses",
     refused_fields,
     {NULL}},
};

enum { KIND_COUNT = sizeof kinds / sizeof kinds[0], PATH_BYTES = 256 };

const frag_row_field *frag_row_field_at(size_t index)
{
    return index + 1 < sizeof run_fields / sizeof run_fields[0] ? &run_fields[index] : NULL;
}

/* ---- the types as JSON Schema names them */

static const struct {
    const char *name;
    bool has_minimum; /* 0 */
    const char *unit;
} types[] = {
    [FRAG_ROW_TEXT] = {"string", false, NULL},
    [FRAG_ROW_COUNT] = {"integer", true, NULL},
    [FRAG_ROW_BYTES] = {"integer", true, "bytes"},
    [FRAG_ROW_NS] = {"integer", true, "nanoseconds"},
    [FRAG_ROW_SIGNED] = {"integer", false, NULL},
    [FRAG_ROW_SIGNED_BYTES] = {"integer", false, "bytes"},
    [FRAG_ROW_RATIO] = {"number", false, "ratio"},
    [FRAG_ROW_FLAG] = {"boolean", false, NULL},
    [FRAG_ROW_NULL] = {"null", false, NULL},
};

static const char *join(char path[PATH_BYTES], const char *at, const char *key)
{
    int length = snprintf(path, PATH_BYTES, "%s.%s", at, key);
    FRAG_ASSERT(length > 0 && length < PATH_BYTES);
    return path;
}

static void put_text(frag_json *json, const char *at, const char *key, const char *text)
{
    char path[PATH_BYTES];
    frag_json_text(json, join(path, at, key), text);
}

static void put_type(frag_json *json, const char *at, const char *name, bool is_nullable)
{
    char path[PATH_BYTES];
    join(path, at, "type");
    if (!is_nullable) {
        frag_json_text(json, path, name);
        return;
    }
    frag_json_append_text(json, path, name);
    frag_json_append_text(json, path, "null");
}

static void put_required(frag_json *json, const char *at, const char *name)
{
    char path[PATH_BYTES];
    frag_json_append_text(json, join(path, at, "required"), name);
}

/* at: of the object that has it; name: without the object's. */
static void put_field(frag_json *json, const row_kind *kind, const char *at, const char *name,
                      const frag_row_field *field)
{
    char properties[PATH_BYTES];
    char path[PATH_BYTES];
    char key[PATH_BYTES];
    join(path, join(properties, at, "properties"), name);
    put_required(json, at, name);
    if (strcmp(field->path, "schema") == 0)
        put_text(json, path, "const", kind->schema);
    else
        put_type(json, path, types[field->type].name, field->is_nullable);
    if (types[field->type].has_minimum)
        frag_json_number(json, join(key, path, "minimum"), 0);
    char meaning[512];
    const char *unit = types[field->type].unit;
    snprintf(meaning, sizeof meaning, "%s%s%s%s", field->meaning, unit != NULL ? " [" : "",
             unit != NULL ? unit : "", unit != NULL ? "]" : "");
    put_text(json, path, "description", meaning);
}

static bool is_absent_group(const row_kind *kind, const char *name)
{
    for (size_t i = 0; kind->absent_groups[i] != NULL; i++)
        if (strcmp(kind->absent_groups[i], name) == 0)
            return true;
    return false;
}

/* The object that a field lies in, made when it is first named. */
static void put_nested(frag_json *json, const row_kind *kind, const char *at,
                       const frag_row_field *field, const char *dot)
{
    char group[64];
    snprintf(group, sizeof group, "%.*s", (int)(dot - field->path), field->path);
    char properties[PATH_BYTES];
    char path[PATH_BYTES];
    join(path, join(properties, at, "properties"), group);
    if (frag_json_at_path(json, path) == NULL) {
        put_required(json, at, group);
        put_type(json, path, "object", is_absent_group(kind, group));
    }
    put_field(json, kind, path, dot + 1, field);
}

/* What no table of fields has: objects whose members depend on policy and release. */
static void put_open_objects(frag_json *json, const char *at)
{
    char policy[PATH_BYTES];
    char path[PATH_BYTES];
    char key[PATH_BYTES];
    static const char *const values[] = {"string", "number", "boolean", "null"};
    put_required(json, join(policy, at, "properties.policy"), "options");
    join(path, policy, "properties.options");
    put_type(json, path, "object", false);
    put_text(json, path, "description", "every option of the policy with its value");
    join(key, path, "additionalProperties.type");
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++)
        frag_json_append_text(json, key, values[i]);
    join(path, at, "properties.memory_stats_event");
    put_type(json, path, "integer", true);
    frag_json_number(json, join(key, path, "minimum"), 0);
    put_text(json, path, "description",
             "with --stats-at: the event right after which the statistics were taken");
    join(path, at, "properties.memory_stats");
    put_type(json, path, "object", true);
    put_text(json, path, "description", "with --stats-at: the statistics of the policy");
    put_text(json, path, "additionalProperties.type", "integer");
}

static void put_kind(frag_json *json, const row_kind *kind)
{
    char at[PATH_BYTES];
    join(at, "$defs", kind->name);
    put_text(json, at, "description", kind->meaning);
    put_type(json, at, "object", false);
    for (const frag_row_field *field = kind->fields; field->path != NULL; field++) {
        const char *dot = strchr(field->path, '.');
        if (dot == NULL)
            put_field(json, kind, at, field->path, field);
        else
            put_nested(json, kind, at, field, dot);
    }
    if (kind->fields == run_fields)
        put_open_objects(json, at);
}

void frag_row_schema_write(FILE *stream)
{
    frag_json *json = frag_json_create();
    frag_json_text(json, "$schema", "https://json-schema.org/draft/2020-12/schema");
    frag_json_text(json, "title", "Result rows of fraglab");
    frag_json_text(json, "description",
                   "One row of run, sweep or min-capacity with --format jsonl. Later versions may "
                   "add fields; none changes its meaning.");
    for (size_t i = 0; i < KIND_COUNT; i++) {
        char reference[64];
        snprintf(reference, sizeof reference, "#/$defs/%s", kinds[i].name);
        frag_json *item = frag_json_create();
        frag_json_text(item, "$ref", reference);
        frag_json_append(json, "oneOf", item);
    }
    for (size_t i = 0; i < KIND_COUNT; i++)
        put_kind(json, &kinds[i]);
    frag_json_write(json, stream, true);
}
