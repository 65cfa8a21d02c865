#include "sim/rows/result_rows.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/lines.h"
#include "base/memory.h"
#include "base/text.h"
#include "studies/row_policy.h"

#define SCHEMA "fraglab.run/1"
#define LOOK_BYTES 64

/* ---- fields */

static uint64_t number_at(const frag_json *json, const char *path, uint64_t otherwise)
{
    frag_json_find_number(json, path, &otherwise);
    return otherwise;
}

static const char *text_at(const frag_json *json, const char *path)
{
    const char *text = NULL;
    frag_json_find_text(json, path, &text);
    return text;
}

static void read_level(const frag_json *json, const char *group, frag_level *level)
{
    char path[64];
    snprintf(path, sizeof path, "%s.requested_bytes", group);
    level->requested_bytes = number_at(json, path, 0);
    snprintf(path, sizeof path, "%s.allocated_bytes", group);
    level->allocated_bytes = number_at(json, path, 0);
    snprintf(path, sizeof path, "%s.active_bytes", group);
    level->active_bytes = number_at(json, path, 0);
    snprintf(path, sizeof path, "%s.reserved_bytes", group);
    level->reserved_bytes = number_at(json, path, 0);
}

static void read_parts(const frag_json *json, frag_run_result *result)
{
    static const char group[] = "decomposition_at_peak";
    frag_decomposition *parts = &result->at_peak;
    const struct {
        const char *name;
        uint64_t *bytes;
    } fields[] = {
        {"requested", &parts->requested_bytes},   {"rounding", &parts->rounding_bytes},
        {"unsplit", &parts->unsplit_bytes},       {"holes", &parts->holes_bytes},
        {"cached", &parts->cached_bytes},         {"waiting", &parts->waiting_bytes},
        {"page_slack", &parts->page_slack_bytes},
    };
    char path[64];
    snprintf(path, sizeof path, "%s.requested_bytes", group);
    result->has_at_peak = number_at(json, path, FRAG_UNLIMITED) != FRAG_UNLIMITED;
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        snprintf(path, sizeof path, "%s.%s_bytes", group, fields[i].name);
        *fields[i].bytes = number_at(json, path, 0);
        parts->reserved_bytes += *fields[i].bytes;
    }
    parts->largest_hole_bytes = number_at(json, "fragmentation.largest_hole_at_peak_bytes", 0);
    parts->hole_count = number_at(json, "fragmentation.holes_at_peak", 0);
    parts->segment_count = number_at(json, "fragmentation.segments_at_peak", 0);
}

static void read_oom(const frag_json *json, frag_oom *oom)
{
    oom->event = number_at(json, "oom.event", FRAG_UNLIMITED);
    oom->has_happened = oom->event != FRAG_UNLIMITED;
    oom->requested_bytes = number_at(json, "oom.requested_bytes", 0);
    oom->segment_bytes = number_at(json, "oom.segment_bytes", 0);
    oom->free_bytes = number_at(json, "oom.free_bytes", FRAG_UNLIMITED);
    oom->largest_hole_bytes = number_at(json, "oom.largest_hole_bytes", 0);
    oom->total_hole_bytes = number_at(json, "oom.total_hole_bytes", 0);
}

static void read_calls(const frag_json *json, frag_run_result *result)
{
    char path[64];
    for (uint32_t i = 0; i < FRAG_DEVICE_CALL_COUNT; i++) {
        const char *name = frag_device_call_name((frag_device_call)i);
        snprintf(path, sizeof path, "device_calls.%s", name);
        result->calls[i] = number_at(json, path, 0);
        snprintf(path, sizeof path, "device_times.%s_ns", name);
        result->call_ns[i] = number_at(json, path, 0);
    }
    uint64_t modelled = number_at(json, "device_calls.modelled_time_ns", FRAG_UNLIMITED);
    result->is_time_modelled = modelled != FRAG_UNLIMITED;
    result->modelled_time_ns = result->is_time_modelled ? (double)modelled : 0;
    result->is_time_measured =
        number_at(json, "device_calls.measured_time_ns", FRAG_UNLIMITED) != FRAG_UNLIMITED;
}

static void read_result(const frag_json *json, frag_run_result *result)
{
    frag_replay_result *replay = &result->replay;
    read_level(json, "peak", &replay->peak);
    read_level(json, "final", &replay->final);
    replay->reserved_at_event = number_at(json, "peak.reserved_at_event", 0);
    replay->events = number_at(json, "replay.events", 0);
    replay->requests = number_at(json, "replay.requests", 0);
    replay->failed_requests = number_at(json, "replay.failed_requests", 0);
    read_parts(json, result);
    read_oom(json, &replay->oom);
    read_calls(json, result);
}

static void read_trace(const frag_json *json, frag_trace *trace)
{
    const char *digest = text_at(json, "trace.digest");
    snprintf(trace->digest, sizeof trace->digest, "%s", digest != NULL ? digest : "");
    trace->device = (uint32_t)number_at(json, "trace.device", 0);
    trace->event_count = number_at(json, "trace.events", 0);
    trace->stats.request_count = number_at(json, "trace.requests", 0);
    trace->stats.peak_requested_bytes = number_at(json, "trace.peak_requested_bytes", 0);
    trace->stats.peak_attempted_bytes = number_at(json, "bounds.peak_requested_bytes", 0);
    trace->stats.observed_reserved_peak_bytes =
        number_at(json, "trace.observed_reserved_peak_bytes", 0);
}

static void read_device(const frag_json *json, frag_row_group *group)
{
    frag_device_spec *device = &group->device;
    const char *gpu = text_at(json, "device.gpu");
    device->capacity_bytes = number_at(json, "device.capacity_bytes", FRAG_UNLIMITED);
    device->used_by_others_bytes = number_at(json, "device.used_by_others_bytes", 0);
    device->page_bytes = number_at(json, "device.page_bytes", 0);
    device->fail_call = number_at(json, "device.fail_call", 0);
    frag_device_description_clear(&group->gpu);
    if (gpu != NULL) {
        const char *digest = text_at(json, "device.gpu_digest");
        snprintf(group->gpu.name, sizeof group->gpu.name, "%s", gpu);
        snprintf(group->gpu.digest, sizeof group->gpu.digest, "%s", digest != NULL ? digest : "");
        const char *origin = text_at(json, "device.gpu_origin");
        group->gpu.origin = frag_origin_find(origin != NULL ? origin : "");
        device->gpu = &group->gpu;
    }
    const char *card = text_at(json, "card.name");
    const char *limit = text_at(json, "card.limit");
    snprintf(group->card.facts.name, sizeof group->card.facts.name, "%s", card != NULL ? card : "");
    group->card.ordinal = (uint32_t)number_at(json, "card.ordinal", 0);
    group->card.limit = limit != NULL ? limit : "card";
}

static bool is_of_card(const frag_json *json)
{
    const char *name = text_at(json, "device.name");
    return name != NULL && strcmp(name, "cuda") == 0;
}

/* ---- groups */

static bool is_same_text(const frag_json *one, const frag_json *other, const char *path)
{
    const char *a = text_at(one, path);
    const char *b = text_at(other, path);
    return a == NULL || b == NULL ? a == b : strcmp(a, b) == 0;
}

static bool is_same_group(const frag_json *one, const frag_json *other)
{
    static const char *const texts[] = {"trace.name", "trace.digest",      "device.name",
                                        "device.gpu", "device.gpu_digest", "device.latency",
                                        "card.name"};
    static const char *const numbers[] = {"trace.device", "device.capacity_bytes",
                                          "device.used_by_others_bytes", "card.ordinal"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        if (!is_same_text(one, other, texts[i]))
            return false;
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        if (number_at(one, numbers[i], FRAG_UNLIMITED) !=
            number_at(other, numbers[i], FRAG_UNLIMITED))
            return false;
    return true;
}

static frag_row_group *group_of(frag_stored_rows *rows, const frag_json *json)
{
    for (size_t i = rows->count; i-- > 0;)
        if (is_same_group(rows->items[i]->json, json))
            return rows->items[i]->group;
    frag_row_group *group = frag_alloc(1, sizeof *group);
    read_trace(json, &group->trace);
    read_device(json, group);
    rows->groups = frag_grow(rows->groups, &rows->group_capacity, rows->group_count + 1,
                             sizeof(frag_row_group *));
    rows->groups[rows->group_count++] = group;
    return group;
}

/* ---- reading */

static void add_row(frag_stored_rows *rows, frag_json *json, const char *line, size_t length)
{
    frag_stored_row *stored = frag_alloc(1, sizeof *stored);
    frag_text text = {0};
    frag_text_add_bytes(&text, line, length);
    *stored = (frag_stored_row){.json = json, .line = text.bytes, .group = group_of(rows, json)};
    read_result(json, &stored->result);
    stored->ops.name = text_at(json, "policy.name");
    frag_row_group *group = stored->group;
    uint64_t packing = number_at(json, "bounds.packing_bytes", FRAG_UNLIMITED);
    if (packing != FRAG_UNLIMITED) {
        group->packing.bytes = packing;
        frag_json_read_flag(frag_json_at_path(json, "bounds.packing_proved"),
                            &group->packing.is_proved);
    }
    stored->row = (frag_row){
        .tool_version = text_at(json, "tool.version"),
        .tool_commit = text_at(json, "tool.commit"),
        .trace_name = text_at(json, "trace.name"),
        .trace = &group->trace,
        .recorded_by = text_at(json, "trace.recorded_by"),
        .ops = &stored->ops,
        .label = text_at(json, "policy.label"),
        .device = &group->device,
        .gpu = is_of_card(json) ? &group->card : NULL,
        .result = &stored->result,
        .packing = packing != FRAG_UNLIMITED ? &group->packing : NULL,
    };
    rows->items =
        frag_grow(rows->items, &rows->capacity, rows->count + 1, sizeof(frag_stored_row *));
    rows->items[rows->count++] = stored;
}

static bool read_row(void *context, const char *line, size_t length, frag_error *error)
{
    frag_stored_rows *rows = context;
    static const char *const needed[] = {"trace.name", "trace.digest", "policy.name",
                                         "policy.label", "device.name"};
    frag_json *json = frag_json_parse(line, length, error);
    if (json == NULL)
        return false;
    const char *schema = text_at(json, "schema");
    char found[FRAG_JSON_FOUND_MAX];
    bool ok = true;
    if (schema == NULL || strcmp(schema, SCHEMA) != 0)
        ok = frag_fail(error, FRAG_E_INPUT,
                       "the schema %s; expected rows of 'fraglab run' or 'fraglab sweep' (" SCHEMA
                       ")",
                       frag_json_found(frag_json_at(json, "schema"), found));
    for (size_t i = 0; ok && i < sizeof needed / sizeof needed[0]; i++)
        if (text_at(json, needed[i]) == NULL)
            ok =
                frag_fail(error, FRAG_E_INPUT, "%s of the row %s; expected a text, as in every row",
                          needed[i], frag_json_found(frag_json_at_path(json, needed[i]), found));
    if (ok)
        add_row(rows, json, line, length);
    else
        frag_json_destroy(json);
    return ok;
}

bool frag_stored_rows_read(frag_input *input, frag_stored_rows *rows, frag_error *error)
{
    return frag_each_line(input, read_row, rows, error);
}

bool frag_stored_rows_detect(frag_input *input, bool *is_one, frag_error *error)
{
    static const char start[] = "{\"schema\":\"fraglab.";
    const unsigned char *bytes = NULL;
    size_t count = 0;
    if (!frag_input_peek(input, LOOK_BYTES, &bytes, &count, error))
        return false;
    *is_one = count >= strlen(start) && memcmp(bytes, start, strlen(start)) == 0;
    return true;
}

void frag_stored_rows_destroy(frag_stored_rows *rows)
{
    for (size_t i = 0; i < rows->count; i++) {
        frag_json_destroy(rows->items[i]->json);
        frag_free(rows->items[i]->line);
        frag_free(rows->items[i]);
    }
    for (size_t i = 0; i < rows->group_count; i++)
        frag_free(rows->groups[i]);
    frag_free(rows->items);
    frag_free(rows->groups);
    *rows = (frag_stored_rows){0};
}

/* ---- printing */

static void print_tables(const frag_stored_rows *rows, frag_result_format format, FILE *stream)
{
    frag_row *together = frag_alloc(rows->count, sizeof *together);
    size_t count = 0;
    for (size_t g = 0; g < rows->group_count; g++)
        for (size_t i = 0; i < rows->count; i++)
            if (rows->items[i]->group == rows->groups[g])
                together[count++] = rows->items[i]->row;
    frag_result_table(format, stream, together, count);
    frag_free(together);
}

/* ---- CSV: the columns are those of a fresh row, each filled from the field of its name */

static void write_csv_value(FILE *stream, const frag_json_value *value)
{
    const char *text = NULL;
    uint64_t number = 0;
    double ratio = 0;
    bool flag = false;
    if (frag_json_read_text(value, &text))
        frag_text_write_csv(stream, text);
    else if (frag_json_read_number(value, &number))
        fprintf(stream, "%" PRIu64, number);
    else if (frag_json_read_ratio(value, &ratio))
        fprintf(stream, "%.12g", ratio);
    else if (frag_json_read_flag(value, &flag))
        fputs(flag ? "true" : "false", stream);
}

static bool add_option(void *context, const char *key, const frag_json_value *value)
{
    frag_text *text = context;
    char written[4096];
    frag_row_policy_spell(value, written, sizeof written);
    frag_text_add(text, "%s%s=%s", text->length > 0 ? ";" : "", key, written);
    return true;
}

static void write_csv_options(FILE *stream, const frag_json *json)
{
    frag_text text = {0};
    frag_policy_spec spec = {0};
    frag_error none = {0};
    frag_text_add(&text, "%s", "");
    if (frag_row_policy(json, &spec, &none)) {
        for (uint32_t i = 0; i < spec.value_count; i++)
            frag_text_add(&text, "%s%s=%s", i > 0 ? ";" : "", spec.ops->options[i].key,
                          spec.values[i].text);
        frag_policy_spec_destroy(&spec);
    } else {
        frag_json_each_in(frag_json_at_path(json, "policy.options"), add_option, &text);
    }
    frag_text_write_csv(stream, text.bytes);
    frag_text_destroy(&text);
}

static void write_csv_row(FILE *stream, const frag_json *json, const char *header)
{
    char path[96];
    for (const char *at = header; *at != '\0' && *at != '\n';) {
        size_t length = strcspn(at, ",\n");
        snprintf(path, sizeof path, "%.*s", (int)length, at);
        if (at != header)
            fputc(',', stream);
        if (strcmp(path, "policy.options") == 0)
            write_csv_options(stream, json);
        else
            write_csv_value(stream, frag_json_at_path(json, path));
        at += length + (at[length] == ',');
    }
    fputc('\n', stream);
}

static void print_csv(const frag_stored_rows *rows, FILE *stream)
{
    char *header = NULL;
    size_t length = 0;
    FILE *columns = open_memstream(&header, &length);
    if (columns == NULL)
        return;
    frag_result_begin(FRAG_RESULT_CSV, columns);
    fclose(columns);
    fputs(header, stream);
    for (size_t i = 0; i < rows->count; i++)
        write_csv_row(stream, rows->items[i]->json, header);
    frag_free(header);
}

void frag_stored_rows_print(const frag_stored_rows *rows, frag_result_format format, FILE *stream)
{
    if (format == FRAG_RESULT_CSV)
        print_csv(rows, stream);
    else if (format != FRAG_RESULT_JSONL)
        print_tables(rows, format, stream);
    else
        for (size_t i = 0; i < rows->count; i++)
            fprintf(stream, "%s\n", rows->items[i]->line);
}
