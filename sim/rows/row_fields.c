#include "sim/rows/row_fields.h"

#include <inttypes.h>
#include <string.h>

#include "base/error.h"
#include "sim/device/device_description.h"
#include "sim/device/latency.h"

/* ---- values */

static const frag_row_value unknown = {0};

static frag_row_value of_quotient(double above, double below)
{
    return below > 0 ? frag_row_of_ratio(above / below) : unknown;
}

/* ---- values that a row keeps nowhere: one function each, in order of the table */

static frag_row_value schema(const frag_row *row)
{
    (void)row;
    return frag_row_of_text(FRAG_SCHEMA_RUN);
}

static frag_row_value device_name(const frag_row *row)
{
    return frag_row_of_text(row->gpu != NULL ? "cuda" : "sim");
}

static frag_row_value page_bytes(const frag_row *row)
{
    return frag_row_of_number(frag_device_page(row->device, row->trace));
}

static frag_row_value latency(const frag_row *row)
{
    return frag_row_of_text(row->device->latency != NULL ? row->device->latency->name : NULL);
}

/* 13000 is "13.0"; 0 is not known. */
static frag_row_value of_version(int version)
{
    frag_row_value value = {.is_known = version != 0};
    snprintf(value.own, sizeof value.own, "%d.%d", version / 1000 % 1000, version / 10 % 100);
    return value;
}

static frag_row_value runtime_version(const frag_row *row)
{
    return of_version(row->gpu->facts.runtime_version);
}

static frag_row_value driver_version(const frag_row *row)
{
    return of_version(row->gpu->facts.driver_version);
}

static frag_row_value utilisation(const frag_row *row)
{
    double ratio = 0;
    return frag_row_utilisation(row, &ratio) ? frag_row_of_ratio(ratio) : unknown;
}

static frag_row_value requested_at_peak(const frag_row *row)
{
    const frag_level *level = &row->result->replay.at_reserved_peak;
    return of_quotient((double)level->requested_bytes, (double)level->reserved_bytes);
}

static frag_row_value requested_mean(const frag_row *row)
{
    const frag_replay_result *replay = &row->result->replay;
    return of_quotient(frag_wide_value(replay->requested_sum),
                       frag_wide_value(replay->reserved_sum));
}

static frag_row_value allocated_mean(const frag_row *row)
{
    const frag_replay_result *replay = &row->result->replay;
    return of_quotient(frag_wide_value(replay->allocated_sum),
                       frag_wide_value(replay->reserved_sum));
}

static frag_row_value over_bound(const frag_row *row)
{
    double ratio = 0;
    return frag_row_over_bound(row, &ratio) ? frag_row_of_ratio(ratio) : unknown;
}

static frag_row_value measured_ns(const frag_row *row)
{
    return row->result->is_time_measured ? frag_row_of_number(frag_run_measured_ns(row->result))
                                         : unknown;
}

static frag_row_value bound(const frag_row *row)
{
    return frag_row_of_number(frag_trace_bound_bytes(row->trace));
}

static frag_row_value events_per_second(const frag_row *row)
{
    const frag_run_result *result = row->result;
    if (!row->has_timing || result->wall_ns == 0)
        return unknown;
    return frag_row_of_number(
        (uint64_t)((double)result->replay.events * 1e9 / (double)result->wall_ns));
}

static frag_row_value wall_ns(const frag_row *row)
{
    return row->has_timing && row->result->wall_ns > 0 ? frag_row_of_number(row->result->wall_ns)
                                                       : unknown;
}

/* ---- enums in words */

const char *frag_address_rule_name(uint32_t rule)
{
    static const char *const names[] = {
        [FRAG_ADDRESS_LOWEST] = "lowest",
        [FRAG_ADDRESS_BUMP] = "bump",
        [FRAG_ADDRESS_RECORDED] = "recorded",
        [FRAG_ADDRESS_GIVEN] = "driver",
    };
    return rule < sizeof names / sizeof names[0] ? names[rule] : NULL;
}

static const char *initial_name(uint32_t initial)
{
    static const char *const names[] = {
        [FRAG_INITIAL_NONE] = "none",
        [FRAG_INITIAL_ADOPTED] = "adopted",
        [FRAG_INITIAL_ALLOCATED] = "allocated",
    };
    return initial < sizeof names / sizeof names[0] ? names[initial] : NULL;
}

static const char *origin_name(uint32_t origin)
{
    return origin <= FRAG_ORIGIN_REPORTED ? frag_origin_name((frag_origin)origin) : NULL;
}

/* ---- the words of the tables */

#define TEXT FRAG_ROW_TEXT, false
#define TEXT_OR_NULL FRAG_ROW_TEXT, true
#define COUNT FRAG_ROW_COUNT, false
#define COUNT_OR_NULL FRAG_ROW_COUNT, true
#define BYTES FRAG_ROW_BYTES, false
#define BYTES_OR_NULL FRAG_ROW_BYTES, true
#define NS_OR_NULL FRAG_ROW_NS, true
#define SIGNED FRAG_ROW_SIGNED, false
#define SIGNED_BYTES FRAG_ROW_SIGNED_BYTES, false
#define RATIO FRAG_ROW_RATIO, false
#define RATIO_OR_NULL FRAG_ROW_RATIO, true
#define FLAG FRAG_ROW_FLAG, false
#define FLAG_OR_NULL FRAG_ROW_FLAG, true
#define ALWAYS_NULL FRAG_ROW_NULL, false

#define NO FRAG_NO_METRIC
#define LESS FRAG_LESS_IS_BETTER
#define MORE FRAG_MORE_IS_BETTER
#define EQUAL FRAG_EQUAL_IS_BETTER
#define LESS_IF_ASKED FRAG_LESS_IF_ASKED
#define MORE_IF_ASKED FRAG_MORE_IF_ASKED

#define STORE_OF(value)                                                                            \
    _Generic((value), uint64_t: FRAG_STORE_NUMBER, uint32_t: FRAG_STORE_SHORT,                     \
             double: FRAG_STORE_REAL, bool: FRAG_STORE_FLAG, const char *: FRAG_STORE_TEXT,        \
             char *: FRAG_STORE_CHARS)
#define MEMBER(part_, type, member)                                                                \
    .part = (part_), .store = STORE_OF(((type *)0)->member), .offset = offsetof(type, member),     \
    .size = sizeof(((type *)0)->member)

#define NOTHING                                                                                    \
    {                                                                                              \
        .part = FRAG_PART_NONE                                                                     \
    }
#define COMPUTED(function)                                                                         \
    {                                                                                              \
        .compute = function                                                                        \
    }
#define CARD_COMPUTED(function)                                                                    \
    {                                                                                              \
        .part = FRAG_PART_CARD, .compute = function                                                \
    }
#define ROW(member)                                                                                \
    {                                                                                              \
        MEMBER(FRAG_PART_ROW, frag_row, member)                                                    \
    }
#define POLICY(member)                                                                             \
    {                                                                                              \
        MEMBER(FRAG_PART_POLICY, frag_policy_ops, member)                                          \
    }
#define TRACE(member)                                                                              \
    {                                                                                              \
        MEMBER(FRAG_PART_TRACE, frag_trace, member)                                                \
    }
#define TRACE_COMPUTED(function, member)                                                           \
    {                                                                                              \
        MEMBER(FRAG_PART_TRACE, frag_trace, member), .compute = function                           \
    }
#define TRACE_NOT_0(member)                                                                        \
    {                                                                                              \
        MEMBER(FRAG_PART_TRACE, frag_trace, member), .is_0_null = true                             \
    }
#define DEVICE(member)                                                                             \
    {                                                                                              \
        MEMBER(FRAG_PART_DEVICE, frag_device_spec, member)                                         \
    }
#define DEVICE_COMPUTED(function, member)                                                          \
    {                                                                                              \
        MEMBER(FRAG_PART_DEVICE, frag_device_spec, member), .compute = function                    \
    }
#define DEVICE_NOT_0(member)                                                                       \
    {                                                                                              \
        MEMBER(FRAG_PART_DEVICE, frag_device_spec, member), .is_0_null = true                      \
    }
#define DESCRIPTION(member)                                                                        \
    {                                                                                              \
        MEMBER(FRAG_PART_DESCRIPTION, frag_device_description, member)                             \
    }
#define DESCRIPTION_NAMED(member, function)                                                        \
    {                                                                                              \
        MEMBER(FRAG_PART_DESCRIPTION, frag_device_description, member), .name = function           \
    }
#define CARD(member)                                                                               \
    {                                                                                              \
        MEMBER(FRAG_PART_CARD, frag_row_gpu, member)                                               \
    }
#define PACKING(member)                                                                            \
    {                                                                                              \
        MEMBER(FRAG_PART_PACKING, frag_row_packing, member)                                        \
    }
#define RESULT(member)                                                                             \
    {                                                                                              \
        MEMBER(FRAG_PART_RESULT, frag_run_result, member)                                          \
    }
#define RESULT_NAMED(member, function)                                                             \
    {                                                                                              \
        MEMBER(FRAG_PART_RESULT, frag_run_result, member), .name = function                        \
    }
#define RESULT_IF(has, member)                                                                     \
    {                                                                                              \
        MEMBER(FRAG_PART_RESULT, frag_run_result, member), .flag = offsetof(frag_run_result, has)  \
    }
#define AT_PEAK(member) RESULT_IF(has_at_peak, at_peak.member)
#define OOM(member) RESULT_IF(replay.oom.has_happened, replay.oom.member)

/* Fields that several kinds of rows share. */
#define FIELD(path, type, better, place, meaning)                                                  \
    {                                                                                              \
        path, type, better, place, meaning                                                         \
    }
#define SCHEMA_FIELD FIELD("schema", TEXT, NO, COMPUTED(schema), "kind and version of the row")
#define TOOL_FIELDS                                                                                \
    FIELD("tool.version", TEXT, NO, ROW(tool_version), "version of fraglab"),                      \
        FIELD("tool.commit", TEXT, NO, ROW(tool_commit),                                           \
              "commit it was built from; -dirty: with uncommitted changes")
#define TRACE_FIELDS                                                                               \
    FIELD("trace.name", TEXT, NO, ROW(trace_name), "file name without folders"),                   \
        FIELD("trace.digest", TEXT, NO, TRACE(digest),                                             \
              "XXH3-128 of the whole content of the trace; the same in every file format"),        \
        FIELD("trace.device", COUNT, NO, TRACE(device), "device of the recording")
#define POLICY_FIELDS                                                                              \
    FIELD("policy.name", TEXT, NO, POLICY(name), "name of the policy"),                            \
        FIELD("policy.label", TEXT, NO, ROW(label), "--label, else the policy as typed")

static const frag_row_field run_fields[] = {
    SCHEMA_FIELD,
    TOOL_FIELDS,
    TRACE_FIELDS,
    {"trace.events", COUNT, NO, TRACE(event_count),
     "events in the trace, prologue and observed events included"},
    {"trace.requests", COUNT, NO, TRACE(stats.request_count), "requests of the program"},
    {"trace.peak_requested_bytes", BYTES, NO, TRACE(stats.peak_requested_bytes),
     "peak of requested bytes; requests that failed when recorded do not count"},
    {"trace.observed_reserved_peak_bytes", BYTES_OR_NULL, NO,
     TRACE_NOT_0(stats.observed_reserved_peak_bytes),
     "peak of reserved bytes of the recorded allocator; null when not recorded"},
    {"trace.recorded_by", TEXT_OR_NULL, NO, ROW(recorded_by),
     "what made the recording: torch 2.9; or how it was completed by a guess: releases paired by "
     "size (a guess)"},
    POLICY_FIELDS,
    {"device.name", TEXT, NO, COMPUTED(device_name), "sim or cuda"},
    {"device.capacity_bytes", BYTES_OR_NULL, NO, DEVICE(capacity_bytes),
     "--capacity, else the memory of the card of --gpu or of the real card; null: without limit"},
    {"device.used_by_others_bytes", BYTES, NO, DEVICE(used_by_others_bytes),
     "--used-by-others, plus the context of the card if its capacity is used"},
    {"device.page_bytes", BYTES, NO, DEVICE_COMPUTED(page_bytes, page_bytes), "page of the device"},
    {"device.address_rule", TEXT, NO, RESULT_NAMED(address_rule, frag_address_rule_name),
     "the rule that was used: lowest, bump or recorded; driver: the addresses of the real card's "
     "driver"},
    {"device.fail_call", COUNT_OR_NULL, NO, DEVICE_NOT_0(fail_call), "--fail-call"},
    {"device.latency", TEXT_OR_NULL, NO, COMPUTED(latency), "name of the latency table"},
    {"device.gpu", TEXT_OR_NULL, NO, DESCRIPTION(name), "name of the card of --gpu"},
    {"device.gpu_digest", TEXT_OR_NULL, NO, DESCRIPTION(digest),
     "XXH3-128 of the content of its description"},
    {"device.gpu_origin", TEXT_OR_NULL, NO, DESCRIPTION_NAMED(origin, origin_name),
     "source of the figure for its memory: measured, reported, nominal (a data sheet: more than "
     "programs can use) or software"},
    {"card.name", TEXT_OR_NULL, NO, CARD(facts.name),
     "name of the real card; null: unknown to the driver"},
    {"card.ordinal", COUNT_OR_NULL, NO, CARD(ordinal), "number of the card, from 0"},
    {"card.pci", TEXT_OR_NULL, NO, CARD(facts.pci), "place of the card on the PCI bus"},
    {"card.runtime_version", TEXT_OR_NULL, NO, CARD_COMPUTED(runtime_version),
     "version of the CUDA runtime: 13.0"},
    {"card.driver_version", TEXT_OR_NULL, NO, CARD_COMPUTED(driver_version),
     "the newest CUDA that its driver supports"},
    {"card.limit", TEXT_OR_NULL, NO, CARD(limit),
     "what refuses memory: card, budget (--capacity), ballast"},
    {"card.total_bytes", BYTES_OR_NULL, NO, CARD(facts.total_bytes), "memory of the card"},
    {"card.free_before_bytes", BYTES_OR_NULL, NO, CARD(report.free_before_bytes),
     "free on it after every kind of call has been made once, before the ballast"},
    {"card.free_after_bytes", BYTES_OR_NULL, NO, CARD(report.free_after_bytes),
     "free on it after everything has been given back; it differs from before if other programs "
     "changed theirs"},
    {"card.ballast_bytes", BYTES_OR_NULL, NO, CARD(report.ballast_bytes),
     "--ballast: bytes filled before the run"},
    {"card.pool_reserved_peak_bytes", BYTES_OR_NULL, NO, CARD(report.pool_reserved_peak_bytes),
     "peak reserved by the driver's pool, by its own count; 0: not used"},
    {"card.pool_used_peak_bytes", BYTES_OR_NULL, NO, CARD(report.pool_used_peak_bytes),
     "peak used of the driver's pool, by its own count"},
    {"card.is_touched", FLAG_OR_NULL, NO, CARD(is_touched), "--touch"},
    {"seed", ALWAYS_NULL, NO, NOTHING,
     "reserved for policies and traces that use random numbers; there are none yet"},
    {"peak.requested_bytes", BYTES, EQUAL, RESULT(replay.peak.requested_bytes),
     "peak of requested bytes in this run, of the requests that were served"},
    {"peak.allocated_bytes", BYTES, LESS, RESULT(replay.peak.allocated_bytes),
     "peak of allocated bytes"},
    {"peak.active_bytes", BYTES, LESS, RESULT(replay.peak.active_bytes), "peak of active bytes"},
    {"peak.reserved_bytes", BYTES, LESS, RESULT(replay.peak.reserved_bytes),
     "peak of reserved bytes, without memory taken for a request that then failed in this run. The "
     "four peaks may be at different events"},
    {"peak.reserved_at_event", COUNT, NO, RESULT(replay.reserved_at_event),
     "the event, from 0, during which reserved bytes first had their peak"},
    {"final.requested_bytes", BYTES, EQUAL, RESULT(replay.final.requested_bytes),
     "requested bytes when the run ended"},
    {"final.allocated_bytes", BYTES, LESS, RESULT(replay.final.allocated_bytes),
     "allocated bytes then"},
    {"final.active_bytes", BYTES, LESS, RESULT(replay.final.active_bytes), "active bytes then"},
    {"final.reserved_bytes", BYTES, LESS, RESULT(replay.final.reserved_bytes),
     "reserved bytes then"},
    {"decomposition_at_peak.requested_bytes", BYTES_OR_NULL, NO, AT_PEAK(requested_bytes),
     "parts of the reserved bytes at their peak: requested bytes"},
    {"decomposition_at_peak.rounding_bytes", BYTES_OR_NULL, LESS, AT_PEAK(rounding_bytes),
     "lost by rounding requests up"},
    {"decomposition_at_peak.unsplit_bytes", BYTES_OR_NULL, LESS, AT_PEAK(unsplit_bytes),
     "remainders that were not split off"},
    {"decomposition_at_peak.holes_bytes", BYTES_OR_NULL, LESS, AT_PEAK(holes_bytes),
     "free, in segments that hold blocks"},
    {"decomposition_at_peak.cached_bytes", BYTES_OR_NULL, LESS, AT_PEAK(cached_bytes),
     "segments without any block"},
    {"decomposition_at_peak.waiting_bytes", BYTES_OR_NULL, LESS, AT_PEAK(waiting_bytes),
     "freed, but waiting for a stream"},
    {"decomposition_at_peak.page_slack_bytes", BYTES_OR_NULL, LESS, AT_PEAK(page_slack_bytes),
     "lost because the device gives whole pages"},
    {"fragmentation.utilisation_ratio", RATIO_OR_NULL, MORE, COMPUTED(utilisation),
     "peak allocated / peak reserved, of the requests that were served"},
    {"fragmentation.requested_over_reserved_at_peak_ratio", RATIO_OR_NULL, MORE,
     COMPUTED(requested_at_peak), "requested / reserved, both at the peak of reserved"},
    {"fragmentation.requested_over_reserved_mean_ratio", RATIO_OR_NULL, MORE,
     COMPUTED(requested_mean), "sum of requested bytes / sum of reserved bytes, over all events"},
    {"fragmentation.allocated_over_reserved_mean_ratio", RATIO_OR_NULL, MORE,
     COMPUTED(allocated_mean), "sum of allocated bytes / sum of reserved bytes, over all events"},
    {"fragmentation.external_ratio_max", RATIO, LESS, RESULT(replay.external_ratio_max),
     "largest share of reserved bytes that was free when the policy asked the device for more"},
    {"fragmentation.largest_hole_at_peak_bytes", BYTES_OR_NULL, MORE, AT_PEAK(largest_hole_bytes),
     "largest hole at the peak of reserved, cached segments included"},
    {"fragmentation.holes_at_peak", COUNT_OR_NULL, LESS, AT_PEAK(hole_count), "holes then"},
    {"fragmentation.segments_at_peak", COUNT_OR_NULL, LESS, AT_PEAK(segment_count),
     "segments then"},
    {"fragmentation.over_bound_ratio", RATIO_OR_NULL, LESS, COMPUTED(over_bound),
     "peak reserved / bounds.peak_requested_bytes - 1; null after an OOM"},
    {"oom.event", COUNT_OR_NULL, MORE, OOM(event),
     "OOM point: the first event whose request could not be served"},
    {"oom.requested_bytes", BYTES_OR_NULL, NO, OOM(requested_bytes), "what it asked for"},
    {"oom.segment_bytes", BYTES_OR_NULL, NO, OOM(segment_bytes),
     "size of the last device call that was refused"},
    {"oom.free_bytes", BYTES_OR_NULL, NO, OOM(free_bytes),
     "free on the device then; null: no capacity was given"},
    {"oom.largest_hole_bytes", BYTES_OR_NULL, NO, OOM(largest_hole_bytes),
     "largest hole in the policy's segments then"},
    {"oom.total_hole_bytes", BYTES_OR_NULL, NO, OOM(total_hole_bytes), "all holes then"},
    {"device_calls.malloc", COUNT, LESS, RESULT(calls[FRAG_DEVICE_MALLOC]),
     "calls, successful and refused: cudaMalloc"},
    {"device_calls.free", COUNT, LESS, RESULT(calls[FRAG_DEVICE_FREE]), "cudaFree"},
    {"device_calls.reserve", COUNT, LESS, RESULT(calls[FRAG_DEVICE_RESERVE]),
     "cuMemAddressReserve"},
    {"device_calls.unreserve", COUNT, LESS, RESULT(calls[FRAG_DEVICE_UNRESERVE]),
     "cuMemAddressFree"},
    {"device_calls.map", COUNT, LESS, RESULT(calls[FRAG_DEVICE_MAP]),
     "cuMemCreate, cuMemMap and cuMemSetAccess of one range; without cuMemCreate when gmlake maps "
     "chunks a second time"},
    {"device_calls.unmap", COUNT, LESS, RESULT(calls[FRAG_DEVICE_UNMAP]),
     "cuMemUnmap and cuMemRelease of one range; only cuMemUnmap for chunks mapped a second time"},
    {"device_calls.malloc_async", COUNT, LESS, RESULT(calls[FRAG_DEVICE_MALLOC_ASYNC]),
     "cudaMallocAsync"},
    {"device_calls.free_async", COUNT, LESS, RESULT(calls[FRAG_DEVICE_FREE_ASYNC]),
     "cudaFreeAsync"},
    {"device_calls.memory_info", COUNT, LESS, RESULT(calls[FRAG_DEVICE_MEMORY_INFO]),
     "cudaMemGetInfo"},
    {"device_calls.synchronize", COUNT, LESS, RESULT(calls[FRAG_DEVICE_SYNCHRONIZE]),
     "waits for all streams"},
    {"device_calls.event_record", COUNT, LESS, RESULT(calls[FRAG_DEVICE_EVENT_RECORD]),
     "events recorded in a stream (cudaEventRecord)"},
    {"device_calls.event_query", COUNT, LESS, RESULT(calls[FRAG_DEVICE_EVENT_QUERY]),
     "events found done (cudaEventQuery)"},
    {"device_calls.event_wait", COUNT, LESS, RESULT(calls[FRAG_DEVICE_EVENT_WAIT]),
     "events waited for, by the program or by another stream"},
    {"device_calls.stream_wait", COUNT, LESS, RESULT(calls[FRAG_DEVICE_STREAM_WAIT]),
     "waits for one stream"},
    {"device_calls.malloc_failed", COUNT, LESS, RESULT(failed_calls[FRAG_DEVICE_MALLOC]),
     "mallocs that were refused"},
    {"device_calls.map_failed", COUNT, LESS, RESULT(failed_calls[FRAG_DEVICE_MAP]),
     "maps that were refused"},
    {"device_calls.modelled_time_ns", NS_OR_NULL, LESS,
     RESULT_IF(is_time_modelled, modelled_time_ns),
     "time of all calls by the latency table; null without one"},
    {"device_calls.measured_time_ns", NS_OR_NULL, LESS_IF_ASKED, COMPUTED(measured_ns),
     "time of all calls as measured on a real card"},
    {"device_times.malloc_ns", NS_OR_NULL, LESS_IF_ASKED,
     RESULT_IF(is_time_measured, call_ns[FRAG_DEVICE_MALLOC]),
     "measured time of the calls that device_calls.malloc counts"},
    {"device_times.free_ns", NS_OR_NULL, LESS_IF_ASKED,
     RESULT_IF(is_time_measured, call_ns[FRAG_DEVICE_FREE]),
     "measured time of the calls that device_calls.free counts"},
    {"device_times.reserve_ns", NS_OR_NULL, LESS_IF_ASKED,
     RESULT_IF(is_time_measured, call_ns[FRAG_DEVICE_RESERVE]),
     "measured time of the calls that device_calls.reserve counts"},
    {"device_times.unreserve_ns", NS_OR_NULL, LESS_IF_ASKED,
     RESULT_IF(is_time_measured, call_ns[FRAG_DEVICE_UNRESERVE]),
     "measured time of the calls that device_calls.unreserve counts"},
    {"device_times.map_ns", NS_OR_NULL, LESS_IF_ASKED,
     RESULT_IF(is_time_measured, call_ns[FRAG_DEVICE_MAP]),
     "measured time of the calls that device_calls.map counts"},
    {"device_times.unmap_ns", NS_OR_NULL, LESS_IF_ASKED,
     RESULT_IF(is_time_measured, call_ns[FRAG_DEVICE_UNMAP]),
     "measured time of the calls that device_calls.unmap counts"},
    {"device_times.malloc_async_ns", NS_OR_NULL, LESS_IF_ASKED,
     RESULT_IF(is_time_measured, call_ns[FRAG_DEVICE_MALLOC_ASYNC]),
     "measured time of the calls that device_calls.malloc_async counts"},
    {"device_times.free_async_ns", NS_OR_NULL, LESS_IF_ASKED,
     RESULT_IF(is_time_measured, call_ns[FRAG_DEVICE_FREE_ASYNC]),
     "measured time of the calls that device_calls.free_async counts"},
    {"device_times.memory_info_ns", NS_OR_NULL, LESS_IF_ASKED,
     RESULT_IF(is_time_measured, call_ns[FRAG_DEVICE_MEMORY_INFO]),
     "measured time of the calls that device_calls.memory_info counts"},
    {"device_times.synchronize_ns", NS_OR_NULL, LESS_IF_ASKED,
     RESULT_IF(is_time_measured, call_ns[FRAG_DEVICE_SYNCHRONIZE]),
     "measured time of the calls that device_calls.synchronize counts"},
    {"device_times.event_record_ns", NS_OR_NULL, LESS_IF_ASKED,
     RESULT_IF(is_time_measured, call_ns[FRAG_DEVICE_EVENT_RECORD]),
     "measured time of the calls that device_calls.event_record counts"},
    {"device_times.event_query_ns", NS_OR_NULL, LESS_IF_ASKED,
     RESULT_IF(is_time_measured, call_ns[FRAG_DEVICE_EVENT_QUERY]),
     "measured time of the calls that device_calls.event_query counts"},
    {"device_times.event_wait_ns", NS_OR_NULL, LESS_IF_ASKED,
     RESULT_IF(is_time_measured, call_ns[FRAG_DEVICE_EVENT_WAIT]),
     "measured time of the calls that device_calls.event_wait counts"},
    {"device_times.stream_wait_ns", NS_OR_NULL, LESS_IF_ASKED,
     RESULT_IF(is_time_measured, call_ns[FRAG_DEVICE_STREAM_WAIT]),
     "measured time of the calls that device_calls.stream_wait counts"},
    {"bounds.peak_requested_bytes", BYTES, EQUAL, TRACE_COMPUTED(bound, stats.peak_attempted_bytes),
     "lower bound of the peak of any policy that serves every request: the trace's peak of "
     "requested bytes, a request that failed when recorded included"},
    {"bounds.packing_bytes", BYTES_OR_NULL, LESS, PACKING(bytes),
     "with --bounds: height of the best offline packing found"},
    {"bounds.packing_proved", FLAG_OR_NULL, NO, PACKING(is_proved),
     "whether that packing is proved to be the best"},
    {"plan.answer", TEXT_OR_NULL, NO, RESULT_IF(has_plan, plan.answer),
     "result of a policy that plans: optimal, found, infeasible, exhausted, or none if there was "
     "nothing to plan; null for other policies"},
    {"plan.peak_bytes", BYTES_OR_NULL, LESS, RESULT_IF(has_plan, plan.peak_bytes),
     "height of its plan"},
    {"plan.bound_bytes", BYTES_OR_NULL, LESS, RESULT_IF(has_plan, plan.bound_bytes),
     "proved lower bound of any plan"},
    {"replay.events", COUNT, EQUAL, RESULT(replay.events),
     "events replayed; fewer than trace.events after an OOM"},
    {"replay.requests", COUNT, EQUAL, RESULT(replay.requests), "requests made"},
    {"replay.failed_requests", COUNT, LESS, RESULT(replay.failed_requests),
     "requests that could not be served; more than one only with --on-oom skip"},
    {"replay.ignored_events", COUNT, EQUAL, RESULT(replay.ignored_events),
     "events that the policy or the device does not use"},
    {"replay.initial_state", TEXT, NO, RESULT_NAMED(replay.initial, initial_name),
     "none; adopted: blocks from before the recording kept their places; allocated: they were "
     "requested first"},
    {"replay.events_per_second", COUNT_OR_NULL, MORE_IF_ASKED, COMPUTED(events_per_second),
     "with --timing"},
    {"replay.wall_ns", NS_OR_NULL, LESS_IF_ASKED, COMPUTED(wall_ns),
     "with --timing: wall time of the replay"},
    {"verify", ALWAYS_NULL, NO, NOTHING, "always null; fraglab verify prints rows of its own"},
    {"oom.message", TEXT_OR_NULL, NO, OOM(message),
     "the message that the program gets, in the wording of the framework's release; null when the "
     "policy has none"},
    {.path = NULL},
};

static const frag_row_field comparison_fields[] = {
    SCHEMA_FIELD,
    TRACE_FIELDS,
    POLICY_FIELDS,
    {"card.name", TEXT, NO, NOTHING, "the real card"},
    {"is_same", FLAG, NO, NOTHING,
     "peak of reserved bytes, calls and refused calls of every kind, and OOM point are the same"},
    {"peak_reserved.sim_bytes", BYTES, NO, NOTHING,
     "peak of reserved bytes on the simulated device"},
    {"peak_reserved.cuda_bytes", BYTES, NO, NOTHING, "on the card"},
    {"peak_reserved.difference_bytes", SIGNED_BYTES, NO, NOTHING,
     "card minus simulated; may be negative"},
    {"device_calls.sim", COUNT, NO, NOTHING,
     "calls that take or give back memory or address space, simulated"},
    {"device_calls.cuda", COUNT, NO, NOTHING, "on the card"},
    {"device_calls.difference", SIGNED, NO, NOTHING, "card minus simulated"},
    {"oom.sim_event", COUNT_OR_NULL, NO, NOTHING, "OOM point, simulated"},
    {"oom.cuda_event", COUNT_OR_NULL, NO, NOTHING, "OOM point on the card"},
    {.path = NULL},
};

static const frag_row_field min_capacity_fields[] = {
    SCHEMA_FIELD,
    TOOL_FIELDS,
    TRACE_FIELDS,
    {"trace.peak_requested_bytes", BYTES, NO, NOTHING,
     "peak of requested bytes; requests that failed when recorded do not count"},
    POLICY_FIELDS,
    {"device.used_by_others_bytes", BYTES, NO, NOTHING,
     "--used-by-others, plus the context of the card; part of the capacity"},
    {"device.page_bytes", BYTES, NO, NOTHING, "page of the device"},
    {"device.address_rule", TEXT_OR_NULL, NO, NOTHING, "--address-rule"},
    {"device.fail_call", COUNT_OR_NULL, NO, NOTHING, "--fail-call"},
    {"device.gpu", TEXT_OR_NULL, NO, NOTHING, "name of the card of --gpu"},
    {"device.gpu_digest", TEXT_OR_NULL, NO, NOTHING, "XXH3-128 of the content of its description"},
    {"capacity_bytes", BYTES_OR_NULL, LESS, NOTHING,
     "the least capacity, in whole pages, with which every request is served; null: none is "
     "enough"},
    {"is_monotone", FLAG, NO, NOTHING, "false: some larger capacity fails again"},
    {"failing_above_bytes", BYTES_OR_NULL, LESS, NOTHING,
     "when not monotone: the largest capacity that fails"},
    {"enough_bytes", BYTES_OR_NULL, LESS, NOTHING,
     "from this capacity on, no device call is refused; null: not known"},
    {"runs", COUNT, NO, NOTHING, "replays that the search took"},
    {"bounds.peak_requested_bytes", BYTES, EQUAL, NOTHING,
     "lower bound of the peak of any policy that serves every request: the trace's peak of "
     "requested bytes, a request that failed when recorded included; --used-by-others comes on top "
     "of both bounds"},
    {"bounds.packing_bytes", BYTES_OR_NULL, LESS, NOTHING,
     "with --bounds: height of the best offline packing found"},
    {"bounds.packing_proved", FLAG_OR_NULL, NO, NOTHING,
     "whether that packing is proved to be the best"},
    {"below.event", COUNT, NO, NOTHING,
     "OOM point with one page less. below is null when there is none"},
    {"below.requested_bytes", BYTES, NO, NOTHING, "what it asked for"},
    {"below.segment_bytes", BYTES, NO, NOTHING, "size of the last device call that was refused"},
    {"below.free_bytes", BYTES, NO, NOTHING,
     "free on the device then; null: no capacity was given"},
    {"below.largest_hole_bytes", BYTES, NO, NOTHING, "largest hole in the policy's segments then"},
    {"below.total_hole_bytes", BYTES, NO, NOTHING, "all holes then"},
    {.path = NULL},
};

static const frag_row_field refused_fields[] = {
    SCHEMA_FIELD,
    TOOL_FIELDS,
    TRACE_FIELDS,
    POLICY_FIELDS,
    {"device.capacity_bytes", BYTES_OR_NULL, NO, NOTHING,
     "--capacity, else the memory of the card of --gpu or of the real card; null: without limit"},
    {"problem", TEXT, NO, NOTHING, "why the policy refuses the combination"},
    {.path = NULL},
};

static const frag_row_field run_open_fields[] = {
    {"policy.options.*", TEXT_OR_NULL, NO, NOTHING, "every option of the policy with its value"},
    {"memory_stats_event", COUNT_OR_NULL, NO, NOTHING,
     "with --stats-at: the event right after which the statistics were taken"},
    {"memory_stats.*", SIGNED, LESS, NOTHING, "with --stats-at: the statistics of the policy"},
    {.path = NULL},
};

static const frag_row_field min_capacity_open_fields[] = {
    {"policy.options.*", TEXT_OR_NULL, NO, NOTHING, "every option of the policy with its value"},
    {.path = NULL},
};

static const frag_row_field no_fields[] = {{.path = NULL}};

static const frag_row_kind kinds[] = {
    {"run",
     FRAG_SCHEMA_RUN,
     "one trace under one policy on one device: run, sweep",
     run_fields,
     run_open_fields,
     {"oom", "card", "device_times"}},
    {"comparison",
     FRAG_SCHEMA_COMPARISON,
     "one trace under one policy on two devices: run --device sim,cuda",
     comparison_fields,
     no_fields,
     {NULL}},
    {"min_capacity",
     FRAG_SCHEMA_MIN_CAPACITY,
     "the smallest device on which one trace survives under one policy: min-capacity",
     min_capacity_fields,
     min_capacity_open_fields,
     {"below"}},
    {"refused",
     FRAG_SCHEMA_REFUSED,
     "a combination of a sweep that the policy refuses",
     refused_fields,
     no_fields,
     {NULL}},
};

enum { KIND_COUNT = sizeof kinds / sizeof kinds[0] };

const frag_row_kind *const frag_row_kind_run = &kinds[0];

const frag_row_kind *frag_row_kinds(size_t *count)
{
    *count = KIND_COUNT;
    return kinds;
}

const frag_row_kind *frag_row_kind_find(const char *name)
{
    for (size_t i = 0; i < KIND_COUNT; i++)
        if (strcmp(kinds[i].schema, name) == 0)
            return &kinds[i];
    return NULL;
}

/* ---- finding */

static bool is_path_of(const frag_row_field *open, const char *path)
{
    const char *star = strchr(open->path, '*');
    return star != NULL ? strncmp(open->path, path, (size_t)(star - open->path)) == 0
                        : strcmp(open->path, path) == 0;
}

const frag_row_field *frag_row_field_find(const frag_row_kind *kind, const char *path, size_t *hint)
{
    const frag_row_field *guess = &kind->fields[*hint];
    if (guess->path != NULL && strcmp(guess->path, path) == 0) {
        ++*hint;
        return guess;
    }
    for (size_t i = 0; kind->fields[i].path != NULL; i++)
        if (strcmp(kind->fields[i].path, path) == 0) {
            *hint = i + 1;
            return &kind->fields[i];
        }
    for (const frag_row_field *open = kind->open_fields; open->path != NULL; open++)
        if (is_path_of(open, path))
            return open;
    return NULL;
}

bool frag_row_is_absent_group(const frag_row_kind *kind, const char *group)
{
    for (size_t i = 0; kind->absent_groups[i] != NULL; i++)
        if (strcmp(kind->absent_groups[i], group) == 0)
            return true;
    return false;
}
