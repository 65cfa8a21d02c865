#include "sim/rows/result.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/text.h"
#include "sim/device/device_description.h"
#include "sim/rows/result_schema.h"

static const char *const format_names[FRAG_RESULT_FORMAT_COUNT] = {
    [FRAG_RESULT_TABLE] = "table",
    [FRAG_RESULT_JSONL] = "jsonl",
    [FRAG_RESULT_CSV] = "csv",
    [FRAG_RESULT_MARKDOWN] = "markdown",
};

bool frag_result_format_find(const char *name, frag_result_format *format)
{
    for (size_t i = 0; i < FRAG_RESULT_FORMAT_COUNT; i++)
        if (strcmp(name, format_names[i]) == 0) {
            *format = (frag_result_format)i;
            return true;
        }
    return false;
}

bool frag_row_over_bound(const frag_row *row, double *ratio)
{
    const frag_replay_result *replay = &row->result->replay;
    double bound = (double)frag_trace_bound_bytes(row->trace);
    /* The bound is that of all requests; a run that left one out may come lower. */
    bool has = bound > 0 && !replay->oom.has_happened;
    *ratio = has ? (double)replay->peak.reserved_bytes / bound - 1 : 0;
    return has;
}

bool frag_row_utilisation(const frag_row *row, double *ratio)
{
    const frag_level *peak = &row->result->replay.peak;
    bool has = peak->reserved_bytes > 0;
    *ratio = has ? (double)peak->allocated_bytes / (double)peak->reserved_bytes : 0;
    return has;
}

/* ---- fields */

typedef enum field_kind {
    FIELD_TEXT,
    FIELD_NUMBER,
    FIELD_RATIO,
    FIELD_FLAG,
    FIELD_NONE
} field_kind;

typedef struct field {
    char path[96];
    field_kind kind;
    const char *text; /* NULL: own */
    char own[16];
    uint64_t number;
    double ratio;
    bool is_option; /* of the policy: one object in JSON, one column in CSV */
} field;

typedef struct field_list {
    field *items;
    size_t count;
    size_t capacity;
    size_t named_count; /* without options */
} field_list;

/* Does the table of fields have this one at this place? What it lacks, readers could not know. */
static bool is_described(size_t index, const char *path, field_kind kind)
{
    static const field_kind kinds[] = {
        [FRAG_ROW_TEXT] = FIELD_TEXT,     [FRAG_ROW_COUNT] = FIELD_NUMBER,
        [FRAG_ROW_BYTES] = FIELD_NUMBER,  [FRAG_ROW_NS] = FIELD_NUMBER,
        [FRAG_ROW_SIGNED] = FIELD_NUMBER, [FRAG_ROW_SIGNED_BYTES] = FIELD_NUMBER,
        [FRAG_ROW_RATIO] = FIELD_RATIO,   [FRAG_ROW_FLAG] = FIELD_FLAG,
        [FRAG_ROW_NULL] = FIELD_NONE,
    };
    const frag_row_field *known = frag_row_field_at(index);
    return known != NULL && strcmp(known->path, path) == 0 &&
           (kind == FIELD_NONE || kind == kinds[known->type]);
}

static field *append(field_list *list, const char *path, field_kind kind)
{
    list->items = frag_grow(list->items, &list->capacity, list->count + 1, sizeof *list->items);
    field *item = &list->items[list->count++];
    *item = (field){.kind = kind};
    snprintf(item->path, sizeof item->path, "%s", path);
    return item;
}

static field *add(field_list *list, const char *path, field_kind kind)
{
    FRAG_ASSERT(is_described(list->named_count, path, kind));
    list->named_count++;
    return append(list, path, kind);
}

static const char *text_of(const field *item)
{
    return item->text != NULL ? item->text : item->own;
}

static void add_text(field_list *list, const char *path, const char *text)
{
    add(list, path, text != NULL ? FIELD_TEXT : FIELD_NONE)->text = text;
}

/* FRAG_UNLIMITED: unknown or without limit. */
static void add_number(field_list *list, const char *path, uint64_t number)
{
    add(list, path, number != FRAG_UNLIMITED ? FIELD_NUMBER : FIELD_NONE)->number = number;
}

static void add_ratio(field_list *list, const char *path, double above, double below)
{
    add(list, path, below > 0 ? FIELD_RATIO : FIELD_NONE)->ratio = below > 0 ? above / below : 0;
}

static void add_value(field_list *list, const char *path, double value)
{
    add(list, path, FIELD_RATIO)->ratio = value;
}

static void add_level(field_list *list, const char *group, const frag_level *level)
{
    char path[96];
    snprintf(path, sizeof path, "%s.requested_bytes", group);
    add_number(list, path, level->requested_bytes);
    snprintf(path, sizeof path, "%s.allocated_bytes", group);
    add_number(list, path, level->allocated_bytes);
    snprintf(path, sizeof path, "%s.active_bytes", group);
    add_number(list, path, level->active_bytes);
    snprintf(path, sizeof path, "%s.reserved_bytes", group);
    add_number(list, path, level->reserved_bytes);
}

static void add_option(field_list *list, const frag_option *option, const frag_option_value *value)
{
    char path[96];
    snprintf(path, sizeof path, "policy.options.%s", option->key);
    field *item = append(list, path, FIELD_NONE);
    item->is_option = true;
    item->text = value->text;
    switch (option->type) {
    case FRAG_OPTION_BYTES:
    case FRAG_OPTION_COUNT:
        item->kind = value->number != FRAG_UNLIMITED ? FIELD_NUMBER : FIELD_NONE;
        item->number = value->number;
        break;
    case FRAG_OPTION_RATIO:
        item->kind = FIELD_RATIO;
        item->ratio = value->ratio;
        break;
    case FRAG_OPTION_FLAG:
        item->kind = FIELD_FLAG;
        item->number = value->number;
        break;
    case FRAG_OPTION_ENUM:
    case FRAG_OPTION_TEXT:
        item->kind = FIELD_TEXT;
        break;
    }
}

static void add_head(field_list *list, const frag_row *row)
{
    add_text(list, "schema", FRAG_SCHEMA_RUN);
    add_text(list, "tool.version", row->tool_version);
    add_text(list, "tool.commit", row->tool_commit);
    add_text(list, "trace.name", row->trace_name);
    add_text(list, "trace.digest", row->trace->digest);
    add_number(list, "trace.device", row->trace->device);
    add_number(list, "trace.events", row->trace->event_count);
    add_number(list, "trace.requests", row->trace->stats.request_count);
    add_number(list, "trace.peak_requested_bytes", row->trace->stats.peak_requested_bytes);
    add_number(list, "trace.observed_reserved_peak_bytes",
               row->trace->stats.observed_reserved_peak_bytes > 0
                   ? row->trace->stats.observed_reserved_peak_bytes
                   : FRAG_UNLIMITED);
    add_text(list, "trace.recorded_by", row->recorded_by);
    add_text(list, "policy.name", row->ops->name);
    add_text(list, "policy.label", row->label);
    for (uint32_t i = 0; row->ops->options != NULL && row->ops->options[i].key != NULL; i++)
        add_option(list, &row->ops->options[i], &row->values[i]);
}

static const char *const rule_names[] = {
    [FRAG_ADDRESS_LOWEST] = "lowest",
    [FRAG_ADDRESS_BUMP] = "bump",
    [FRAG_ADDRESS_RECORDED] = "recorded",
    [FRAG_ADDRESS_GIVEN] = "driver",
};

/* 13000 is "13.0"; 0 is not known. */
static void add_version(field_list *list, const char *path, int version)
{
    char text[16];
    snprintf(text, sizeof text, "%d.%d", version / 1000 % 1000, version / 10 % 100);
    field *item = add(list, path, version != 0 ? FIELD_TEXT : FIELD_NONE);
    snprintf(item->own, sizeof item->own, "%s", text);
}

static void add_gpu(field_list *list, const frag_row_gpu *gpu)
{
    static const frag_gpu_report none = {FRAG_UNLIMITED, FRAG_UNLIMITED, FRAG_UNLIMITED,
                                         FRAG_UNLIMITED, FRAG_UNLIMITED, FRAG_UNLIMITED};
    bool has = gpu != NULL;
    const frag_gpu_report *report = has ? &gpu->report : &none;
    add_text(list, "card.name", has && gpu->facts.name[0] != '\0' ? gpu->facts.name : NULL);
    add_number(list, "card.ordinal", has ? gpu->ordinal : FRAG_UNLIMITED);
    add_text(list, "card.pci", has ? gpu->facts.pci : NULL);
    add_version(list, "card.runtime_version", has ? gpu->facts.runtime_version : 0);
    add_version(list, "card.driver_version", has ? gpu->facts.driver_version : 0);
    add_text(list, "card.limit", has ? gpu->limit : NULL);
    add_number(list, "card.total_bytes", has ? gpu->facts.total_bytes : FRAG_UNLIMITED);
    add_number(list, "card.free_before_bytes", report->free_before_bytes);
    add_number(list, "card.free_after_bytes", report->free_after_bytes);
    add_number(list, "card.ballast_bytes", report->ballast_bytes);
    add_number(list, "card.pool_reserved_peak_bytes", report->pool_reserved_peak_bytes);
    add_number(list, "card.pool_used_peak_bytes", report->pool_used_peak_bytes);
    add(list, "card.is_touched", has ? FIELD_FLAG : FIELD_NONE)->number =
        has && gpu->is_touched ? 1 : 0;
}

static void add_device(field_list *list, const frag_row *row)
{
    const frag_device_spec *device = row->device;
    add_text(list, "device.name", row->gpu != NULL ? "cuda" : "sim");
    add_number(list, "device.capacity_bytes", device->capacity_bytes);
    add_number(list, "device.used_by_others_bytes", device->used_by_others_bytes);
    add_number(list, "device.page_bytes", frag_device_page(device, row->trace));
    add_text(list, "device.address_rule", rule_names[row->result->address_rule]);
    add_number(list, "device.fail_call",
               device->fail_call > 0 ? device->fail_call : FRAG_UNLIMITED);
    add_text(list, "device.latency", device->latency != NULL ? device->latency->name : NULL);
    add_text(list, "device.gpu", device->gpu != NULL ? device->gpu->name : NULL);
    add_text(list, "device.gpu_digest", device->gpu != NULL ? device->gpu->digest : NULL);
    add_text(list, "device.gpu_origin",
             device->gpu != NULL ? frag_origin_name(device->gpu->origin) : NULL);
    add_gpu(list, row->gpu);
    add_number(list, "seed", FRAG_UNLIMITED);
}

static void add_parts(field_list *list, const frag_run_result *result)
{
    const frag_decomposition *parts = &result->at_peak;
    bool has = result->has_at_peak;
    add_number(list, "decomposition_at_peak.requested_bytes",
               has ? parts->requested_bytes : FRAG_UNLIMITED);
    add_number(list, "decomposition_at_peak.rounding_bytes",
               has ? parts->rounding_bytes : FRAG_UNLIMITED);
    add_number(list, "decomposition_at_peak.unsplit_bytes",
               has ? parts->unsplit_bytes : FRAG_UNLIMITED);
    add_number(list, "decomposition_at_peak.holes_bytes",
               has ? parts->holes_bytes : FRAG_UNLIMITED);
    add_number(list, "decomposition_at_peak.cached_bytes",
               has ? parts->cached_bytes : FRAG_UNLIMITED);
    add_number(list, "decomposition_at_peak.waiting_bytes",
               has ? parts->waiting_bytes : FRAG_UNLIMITED);
    add_number(list, "decomposition_at_peak.page_slack_bytes",
               has ? parts->page_slack_bytes : FRAG_UNLIMITED);
}

/* A figure of a row, or nothing. */
static void add_figure(field_list *list, const char *path, const frag_row *row,
                       bool (*figure)(const frag_row *row, double *ratio))
{
    double ratio = 0;
    field_kind kind = figure(row, &ratio) ? FIELD_RATIO : FIELD_NONE;
    add(list, path, kind)->ratio = ratio;
}

static void add_fragmentation(field_list *list, const frag_row *row)
{
    const frag_run_result *result = row->result;
    const frag_replay_result *replay = &result->replay;
    const frag_decomposition *parts = &result->at_peak;
    bool has = result->has_at_peak;
    add_figure(list, "fragmentation.utilisation_ratio", row, frag_row_utilisation);
    add_ratio(list, "fragmentation.requested_over_reserved_at_peak_ratio",
              (double)replay->at_reserved_peak.requested_bytes,
              (double)replay->at_reserved_peak.reserved_bytes);
    add_ratio(list, "fragmentation.requested_over_reserved_mean_ratio",
              frag_wide_value(replay->requested_sum), frag_wide_value(replay->reserved_sum));
    add_ratio(list, "fragmentation.allocated_over_reserved_mean_ratio",
              frag_wide_value(replay->allocated_sum), frag_wide_value(replay->reserved_sum));
    add_value(list, "fragmentation.external_ratio_max", replay->external_ratio_max);
    add_number(list, "fragmentation.largest_hole_at_peak_bytes",
               has ? parts->largest_hole_bytes : FRAG_UNLIMITED);
    add_number(list, "fragmentation.holes_at_peak", has ? parts->hole_count : FRAG_UNLIMITED);
    add_number(list, "fragmentation.segments_at_peak", has ? parts->segment_count : FRAG_UNLIMITED);
    add_figure(list, "fragmentation.over_bound_ratio", row, frag_row_over_bound);
}

static void add_oom(field_list *list, const frag_oom *oom)
{
    bool has = oom->has_happened;
    add_number(list, "oom.event", has ? oom->event : FRAG_UNLIMITED);
    add_number(list, "oom.requested_bytes", has ? oom->requested_bytes : FRAG_UNLIMITED);
    add_number(list, "oom.segment_bytes", has ? oom->segment_bytes : FRAG_UNLIMITED);
    add_number(list, "oom.free_bytes", has ? oom->free_bytes : FRAG_UNLIMITED);
    add_number(list, "oom.largest_hole_bytes", has ? oom->largest_hole_bytes : FRAG_UNLIMITED);
    add_number(list, "oom.total_hole_bytes", has ? oom->total_hole_bytes : FRAG_UNLIMITED);
}

/* Rounded; tables of absurd times do not overflow. */
static uint64_t whole_ns(double ns)
{
    return ns < 1e19 ? (uint64_t)(ns + 0.5) : (uint64_t)1e19;
}

static void add_calls(field_list *list, const frag_run_result *result)
{
    char path[96];
    for (uint32_t i = 0; i < FRAG_DEVICE_CALL_COUNT; i++) {
        snprintf(path, sizeof path, "device_calls.%s", frag_device_call_name((frag_device_call)i));
        add_number(list, path, result->calls[i]);
    }
    add_number(list, "device_calls.malloc_failed", result->failed_calls[FRAG_DEVICE_MALLOC]);
    add_number(list, "device_calls.map_failed", result->failed_calls[FRAG_DEVICE_MAP]);
    add_number(list, "device_calls.modelled_time_ns",
               result->is_time_modelled ? whole_ns(result->modelled_time_ns) : FRAG_UNLIMITED);
    add_number(list, "device_calls.measured_time_ns",
               result->is_time_measured ? frag_run_measured_ns(result) : FRAG_UNLIMITED);
}

/* What the calls really took; the simulated device takes no time. */
static void add_times(field_list *list, const frag_run_result *result)
{
    char path[96];
    bool has = result->is_time_measured;
    for (uint32_t i = 0; i < FRAG_DEVICE_CALL_COUNT; i++) {
        snprintf(path, sizeof path, "device_times.%s_ns",
                 frag_device_call_name((frag_device_call)i));
        add_number(list, path, has ? result->call_ns[i] : FRAG_UNLIMITED);
    }
}

static const char *const initial_names[] = {
    [FRAG_INITIAL_NONE] = "none",
    [FRAG_INITIAL_ADOPTED] = "adopted",
    [FRAG_INITIAL_ALLOCATED] = "allocated",
};

static void add_replay(field_list *list, const frag_row *row)
{
    const frag_run_result *result = row->result;
    add_number(list, "replay.events", result->replay.events);
    add_number(list, "replay.requests", result->replay.requests);
    add_number(list, "replay.failed_requests", result->replay.failed_requests);
    add_number(list, "replay.ignored_events", result->replay.ignored_events);
    add_text(list, "replay.initial_state", initial_names[result->replay.initial]);
    bool has = row->has_timing && result->wall_ns > 0;
    double rate = has ? (double)result->replay.events * 1e9 / (double)result->wall_ns : 0;
    add_number(list, "replay.events_per_second", has ? (uint64_t)rate : FRAG_UNLIMITED);
    add_number(list, "replay.wall_ns", has ? result->wall_ns : FRAG_UNLIMITED);
    add_text(list, "verify", NULL);
}

static void fill(field_list *list, const frag_row *row)
{
    const frag_run_result *result = row->result;
    add_head(list, row);
    add_device(list, row);
    add_level(list, "peak", &result->replay.peak);
    add_number(list, "peak.reserved_at_event", result->replay.reserved_at_event);
    add_level(list, "final", &result->replay.final);
    add_parts(list, result);
    add_fragmentation(list, row);
    add_oom(list, &result->replay.oom);
    add_calls(list, result);
    add_times(list, result);
    add_number(list, "bounds.peak_requested_bytes", frag_trace_bound_bytes(row->trace));
    const frag_row_packing *packing = row->packing;
    add_number(list, "bounds.packing_bytes", packing != NULL ? packing->bytes : FRAG_UNLIMITED);
    add(list, "bounds.packing_proved", packing != NULL ? FIELD_FLAG : FIELD_NONE)->number =
        packing != NULL && packing->is_proved;
    add_text(list, "plan.answer", result->has_plan ? result->plan.answer : NULL);
    add_number(list, "plan.peak_bytes",
               result->has_plan ? result->plan.peak_bytes : FRAG_UNLIMITED);
    add_number(list, "plan.bound_bytes",
               result->has_plan ? result->plan.bound_bytes : FRAG_UNLIMITED);
    add_replay(list, row);
    /* Text with commas in it comes last, for those who cut CSV at commas. */
    const frag_oom *oom = &result->replay.oom;
    add_text(list, "oom.message", oom->message[0] != '\0' ? oom->message : NULL);
}

/* ---- JSON Lines */

static void write_json_stats(frag_json *json, const frag_row_stats *stats)
{
    const frag_stats *values = &stats->values;
    frag_json_number(json, "memory_stats_event", stats->event);
    if (stats->event == FRAG_UNLIMITED)
        frag_json_null(json, "memory_stats");
    else
        frag_json_object(json, "memory_stats");
    for (uint32_t i = 0; i < values->names.count; i++)
        frag_json_entry(json, "memory_stats", frag_strings_get(&values->names, i),
                        values->values[i]);
}

/* Groups of fields that are there or not as a whole: one null says so. */
static const char *absent_group(const frag_row *row, const char *path)
{
    if (!row->result->replay.oom.has_happened && strncmp(path, "oom.", 4) == 0)
        return "oom";
    if (row->gpu == NULL && strncmp(path, "card.", 5) == 0)
        return "card";
    if (!row->result->is_time_measured && strncmp(path, "device_times.", 13) == 0)
        return "device_times";
    return NULL;
}

static void write_jsonl(FILE *stream, const frag_row *row, const field_list *list)
{
    frag_json *json = frag_json_create();
    for (size_t i = 0; i < list->count; i++) {
        const field *item = &list->items[i];
        const char *group = absent_group(row, item->path);
        if (group != NULL) {
            frag_json_null(json, group);
            continue;
        }
        if (strcmp(item->path, "device.name") == 0)
            frag_json_object(json, "policy.options");
        switch (item->kind) {
        case FIELD_TEXT:
            frag_json_text(json, item->path, text_of(item));
            break;
        case FIELD_NUMBER:
            frag_json_number(json, item->path, item->number);
            break;
        case FIELD_RATIO:
            frag_json_ratio(json, item->path, item->ratio);
            break;
        case FIELD_FLAG:
            frag_json_flag(json, item->path, item->number != 0);
            break;
        case FIELD_NONE:
            frag_json_null(json, item->path);
            break;
        }
    }
    if (row->stats != NULL)
        write_json_stats(json, row->stats);
    frag_json_write(json, stream, false);
}

/* ---- CSV (RFC 4180) */

static void write_csv_value(FILE *stream, const field *item)
{
    if (item->kind == FIELD_TEXT)
        frag_text_write_csv(stream, text_of(item));
    else if (item->kind == FIELD_NUMBER)
        fprintf(stream, "%" PRIu64, item->number);
    else if (item->kind == FIELD_RATIO)
        fprintf(stream, "%.12g", item->ratio);
    else if (item->kind == FIELD_FLAG)
        fputs(item->number != 0 ? "true" : "false", stream);
}

/* All options of a policy as one column: "align=512;space=growing". */
static void write_csv_options(FILE *stream, const field_list *list)
{
    frag_text text = {0};
    frag_text_add(&text, "%s", "");
    for (size_t i = 0; i < list->count; i++)
        if (list->items[i].is_option)
            frag_text_add(&text, "%s%s=%s", text.length > 0 ? ";" : "",
                          strrchr(list->items[i].path, '.') + 1, list->items[i].text);
    frag_text_write_csv(stream, text.bytes);
    frag_text_destroy(&text);
}

static void write_csv(FILE *stream, const field_list *list, bool is_header)
{
    for (size_t i = 0; i < list->count; i++) {
        const field *item = &list->items[i];
        if (item->is_option)
            continue;
        if (i > 0)
            fputc(',', stream);
        if (is_header)
            fputs(item->path, stream);
        else
            write_csv_value(stream, item);
        if (strcmp(item->path, "policy.label") != 0)
            continue;
        fputc(',', stream);
        if (is_header)
            fputs("policy.options", stream);
        else
            write_csv_options(stream, list);
    }
    fputc('\n', stream);
}

void frag_result_begin(frag_result_format format, FILE *stream)
{
    if (format != FRAG_RESULT_CSV)
        return;
    /* The header is that of any row: the fields are the same for all. */
    static const frag_policy_ops ops = {.name = ""};
    static const frag_run_result result = {0};
    static const frag_trace trace = {0};
    static const frag_device_spec device = {0};
    frag_row row = {.trace = &trace, .ops = &ops, .device = &device, .result = &result};
    field_list list = {0};
    fill(&list, &row);
    write_csv(stream, &list, true);
    frag_free(list.items);
}

void frag_result_write(frag_result_format format, FILE *stream, const frag_row *row)
{
    field_list list = {0};
    fill(&list, row);
    if (format == FRAG_RESULT_JSONL)
        write_jsonl(stream, row, &list);
    else
        write_csv(stream, &list, false);
    frag_free(list.items);
}
