#include "tests/studies/predictions.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "allocators/pytorch/pytorch_options.h"
#include "allocators/registry.h"
#include "base/bytes.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"
#include "sim/run.h"
#include "traces/load.h"

enum {
    TEXT_COLUMNS = 4,
    COLUMNS = TEXT_COLUMNS + 2 + FRAG_OUTCOME_FIELDS,
    LINE_MAX_BYTES = 4096,
    TABLE_BYTES_MAX = 1 << 20
};

static const char *const head_names[TEXT_COLUMNS + 2] = {
    "recording", "settings", "version", "memory_fraction", "capacity_bytes", "device",
};

const char *const frag_outcome_names[FRAG_OUTCOME_FIELDS] = {
    [FRAG_OUTCOME_REQUESTS] = "requests",
    [FRAG_OUTCOME_OOM_BYTES] = "oom_bytes",
    [FRAG_OUTCOME_OOM_FREE] = "oom_free_bytes",
    [FRAG_OUTCOME_MALLOCS] = "mallocs",
    [FRAG_OUTCOME_FREES] = "frees",
    [FRAG_OUTCOME_REFUSED] = "refused",
    [FRAG_OUTCOME_PEAK_ALLOCATED] = "allocated_bytes.all.peak",
    [FRAG_OUTCOME_PEAK_RESERVED] = "reserved_bytes.all.peak",
    [FRAG_OUTCOME_PEAK_ACTIVE] = "active_bytes.all.peak",
    [FRAG_OUTCOME_PEAK_REQUESTED] = "requested_bytes.all.peak",
    [FRAG_OUTCOME_PEAK_SPLIT] = "inactive_split_bytes.all.peak",
    [FRAG_OUTCOME_RESERVED_SUM] = "reserved_bytes.all.allocated",
    [FRAG_OUTCOME_SEGMENTS] = "segment.all.allocated",
    [FRAG_OUTCOME_OVERSIZE] = "oversize_segments.allocated",
    [FRAG_OUTCOME_RETRIES] = "num_alloc_retries",
    [FRAG_OUTCOME_OOMS] = "num_ooms",
};

static const char *column_name(size_t column)
{
    return column < TEXT_COLUMNS + 2 ? head_names[column]
                                     : frag_outcome_names[column - TEXT_COLUMNS - 2];
}

/* Cuts a line of CSV into fields, in place; quoted fields lose their quotes. Returns how many. */
static size_t cut_fields(char *line, char *fields[COLUMNS])
{
    size_t count = 0;
    char *from = line;
    for (;;) {
        bool is_quoted = *from == '"';
        char *to = from;
        if (count < COLUMNS)
            fields[count] = from;
        count++;
        from += is_quoted ? 1 : 0;
        while (*from != '\0' && (is_quoted || *from != ',')) {
            if (*from == '"' && is_quoted && *++from != '"') {
                is_quoted = false;
                continue;
            }
            *to++ = *from++;
        }
        bool is_last = *from == '\0';
        *to = '\0';
        if (is_last)
            return count;
        from++;
    }
}

static bool parse_number(const char *text, const char *column, uint64_t *number, frag_error *error)
{
    *number = FRAG_PREDICTION_NONE;
    if (*text == '\0' || frag_count_parse(text, 0, UINT64_MAX - 1, number, error))
        return true;
    return frag_fail(error, FRAG_E_INPUT, "%s is '%s'; expected a whole number or nothing", column,
                     text);
}

static bool parse_row(char *line, frag_predictions *predictions, frag_error *error)
{
    char *fields[COLUMNS];
    size_t count = cut_fields(line, fields);
    if (count != COLUMNS)
        return frag_fail(error, FRAG_E_INPUT, "%zu fields; expected %d", count, COLUMNS);
    uint64_t numbers[COLUMNS - TEXT_COLUMNS];
    for (size_t i = TEXT_COLUMNS; i < COLUMNS; i++)
        if (!parse_number(fields[i], column_name(i), &numbers[i - TEXT_COLUMNS], error))
            return false;
    if (numbers[0] == FRAG_PREDICTION_NONE || numbers[1] > UINT32_MAX)
        return frag_fail(error, FRAG_E_INPUT, "capacity and device must be there");
    frag_prediction *row =
        FRAG_APPEND(predictions->items, predictions->count, predictions->capacity);
    *row = (frag_prediction){
        .recording = frag_copy_text(fields[0]),
        .settings = frag_copy_text(fields[1]),
        .version = frag_copy_text(fields[2]),
        .fraction = frag_copy_text(fields[3]),
        .capacity_bytes = numbers[0],
        .device = (uint32_t)numbers[1],
    };
    memcpy(row->outcome, numbers + 2, sizeof row->outcome);
    return true;
}

static bool check_header(char *line, frag_error *error)
{
    char *fields[COLUMNS];
    if (cut_fields(line, fields) != COLUMNS)
        return frag_fail(error, FRAG_E_INPUT, "the header has not %d columns", COLUMNS);
    for (size_t i = 0; i < COLUMNS; i++)
        if (strcmp(fields[i], column_name(i)) != 0)
            return frag_fail(error, FRAG_E_INPUT, "column %zu is '%s'; expected '%s'", i + 1,
                             fields[i], column_name(i));
    return true;
}

bool frag_predictions_read(const char *path, frag_predictions *predictions, frag_error *error)
{
    *predictions = (frag_predictions){0};
    const unsigned char *bytes = NULL;
    size_t count = 0;
    frag_input *input = frag_input_open(path, error);
    if (input == NULL)
        return false;
    if (!frag_input_peek(input, TABLE_BYTES_MAX, &bytes, &count, error)) {
        frag_input_close(input);
        return frag_error_in(error, path);
    }
    char *table = frag_alloc(count + 1, 1);
    memcpy(table, bytes, count);
    frag_input_close(input);
    FILE *stream = fmemopen(table, count, "r");
    char line[LINE_MAX_BYTES];
    bool ok = true;
    for (error->line = 1; ok && fgets(line, sizeof line, stream) != NULL; error->line++) {
        line[strcspn(line, "\n")] = '\0';
        ok = error->line == 1 ? check_header(line, error) : parse_row(line, predictions, error);
        if (!ok)
            break;
    }
    fclose(stream);
    frag_free(table);
    if (!ok)
        frag_predictions_destroy(predictions);
    return ok || frag_error_in(error, path);
}

void frag_predictions_write(FILE *stream, const frag_predictions *predictions)
{
    for (size_t i = 0; i < COLUMNS; i++)
        fprintf(stream, "%s%s", i > 0 ? "," : "", column_name(i));
    fputc('\n', stream);
    for (size_t i = 0; i < predictions->count; i++) {
        const frag_prediction *row = &predictions->items[i];
        const char *texts[TEXT_COLUMNS] = {row->recording, row->settings, row->version,
                                           row->fraction};
        for (size_t j = 0; j < TEXT_COLUMNS; j++) {
            frag_text_write_csv(stream, texts[j]);
            fputc(',', stream);
        }
        fprintf(stream, "%" PRIu64 ",%" PRIu32, row->capacity_bytes, row->device);
        for (size_t j = 0; j < FRAG_OUTCOME_FIELDS; j++) {
            fputc(',', stream);
            if (row->outcome[j] != FRAG_PREDICTION_NONE)
                fprintf(stream, "%" PRIu64, row->outcome[j]);
        }
        fputc('\n', stream);
    }
}

/* Options that stand for the settings and the call of the dry run. */
static bool parse_policy(const frag_prediction *row, frag_policy_spec *spec, frag_error *error)
{
    frag_text text = {0};
    frag_text_add(&text, "pytorch:version=%s", row->version);
    if (*row->settings != '\0')
        frag_text_add(&text, ",%s", row->settings);
    if (*row->fraction != '\0')
        frag_text_add(&text, ",per_process_memory_fraction=%s", row->fraction);
    bool ok = frag_policy_spec_parse(text.bytes, spec, error);
    frag_text_destroy(&text);
    return ok;
}

/* What the engine has counted itself is not taken from the policy. */
static void note_stat(void *context, const char *name, int64_t value)
{
    uint64_t *outcome = context;
    for (size_t i = FRAG_OUTCOME_FIRST_STAT; i < FRAG_OUTCOME_FIELDS; i++)
        if (outcome[i] == FRAG_PREDICTION_NONE && strcmp(name, frag_outcome_names[i]) == 0)
            outcome[i] = (uint64_t)value;
}

/* PyTorch records a request that failed as its settings round it. */
static uint64_t recorded_bytes(const frag_policy_spec *spec, uint64_t requested_bytes)
{
    frag_pytorch_settings settings;
    frag_error ignored = {0};
    return frag_pytorch_settings_create(&settings, spec->values, "", &ignored)
               ? frag_pytorch_round(&settings, requested_bytes)
               : requested_bytes;
}

static void note_outcome(const frag_replay_result *result, const frag_device *device,
                         const frag_policy_spec *spec, uint64_t outcome[FRAG_OUTCOME_FIELDS])
{
    for (size_t i = 0; i < FRAG_OUTCOME_FIELDS; i++)
        outcome[i] = FRAG_PREDICTION_NONE;
    outcome[FRAG_OUTCOME_REQUESTS] = result->requests - result->failed_requests;
    if (result->oom.has_happened) {
        outcome[FRAG_OUTCOME_OOM_BYTES] = recorded_bytes(spec, result->oom.requested_bytes);
        outcome[FRAG_OUTCOME_OOM_FREE] = result->oom.free_bytes;
    }
    outcome[FRAG_OUTCOME_MALLOCS] = device->counts.calls[FRAG_DEVICE_MALLOC];
    outcome[FRAG_OUTCOME_FREES] = device->counts.calls[FRAG_DEVICE_FREE];
    outcome[FRAG_OUTCOME_REFUSED] = device->counts.failed_calls[FRAG_DEVICE_MALLOC] +
                                    device->counts.failed_calls[FRAG_DEVICE_MAP];
    outcome[FRAG_OUTCOME_PEAK_ALLOCATED] = result->peak.allocated_bytes;
    outcome[FRAG_OUTCOME_PEAK_RESERVED] = result->peak.reserved_bytes;
}

static bool predict(const frag_recording *recording, const frag_prediction *row,
                    uint64_t outcome[FRAG_OUTCOME_FIELDS], frag_error *error)
{
    const frag_trace *trace = NULL;
    for (uint32_t i = 0; i < recording->trace_count; i++)
        if (recording->traces[i].device == row->device)
            trace = &recording->traces[i];
    if (trace == NULL)
        return frag_fail(error, FRAG_E_INPUT, "there is no device %" PRIu32, row->device);
    frag_policy_spec spec;
    if (!parse_policy(row, &spec, error))
        return false;
    frag_device_spec device_spec = {.capacity_bytes = row->capacity_bytes};
    frag_recorded_segment *segments = NULL;
    frag_device *device = frag_device_open(trace, &device_spec, &segments, NULL);
    frag_replay *replay = frag_replay_create(
        &(frag_run_setup){recording, trace, spec.ops, spec.values, NULL}, device, error);
    frag_replay_options options = {.stop_after = FRAG_UNLIMITED, .keeps_stats = true};
    frag_replay_result result = {0};
    bool ok = replay != NULL && frag_replay_run(replay, &options, &result, error);
    if (ok) {
        note_outcome(&result, device, &spec, outcome);
        frag_replay_stats(replay, note_stat, outcome);
    }
    frag_replay_destroy(replay);
    frag_device_destroy(device);
    free(segments);
    frag_policy_spec_destroy(&spec);
    return ok;
}

static const char *number_text(uint64_t number, char text[FRAG_BYTES_TEXT_MAX])
{
    return number == FRAG_PREDICTION_NONE ? "none" : frag_count_text(number, text);
}

/* Fields that the dry run did not report are not compared; "no OOM" is reported. */
static bool compare(const frag_prediction *row, const uint64_t outcome[FRAG_OUTCOME_FIELDS],
                    FILE *stream)
{
    bool is_same = true;
    char real[FRAG_BYTES_TEXT_MAX];
    char predicted[FRAG_BYTES_TEXT_MAX];
    for (size_t i = 0; i < FRAG_OUTCOME_FIELDS; i++) {
        bool is_known = row->outcome[i] != FRAG_PREDICTION_NONE || i == FRAG_OUTCOME_OOM_BYTES ||
                        i == FRAG_OUTCOME_OOM_FREE;
        if (!is_known || row->outcome[i] == outcome[i])
            continue;
        is_same = false;
        fprintf(stream, "%s device %" PRIu32 " [%s] %s of %" PRIu64 ": %s was %s, predicted %s\n",
                row->recording, row->device, row->settings,
                *row->fraction != '\0' ? row->fraction : "all", row->capacity_bytes,
                frag_outcome_names[i], number_text(row->outcome[i], real),
                number_text(outcome[i], predicted));
    }
    return is_same;
}

static bool load(const char *folder, const char *name, frag_recording *recording, frag_error *error)
{
    frag_text path = {0};
    frag_text_add(&path, "%s/%s", folder, name);
    frag_load_options options = {0};
    frag_findings findings = {0};
    bool ok = frag_recording_load(path.bytes, &options, recording, &findings, error);
    frag_text_destroy(&path);
    return ok;
}

size_t frag_predictions_check(const char *folder, const frag_predictions *predictions, FILE *stream,
                              frag_error *error)
{
    frag_recording recording = {0};
    const char *loaded = "";
    size_t wrong = 0;
    bool ok = true;
    for (size_t i = 0; ok && i < predictions->count; i++) {
        const frag_prediction *row = &predictions->items[i];
        if (strcmp(loaded, row->recording) != 0) {
            frag_recording_destroy(&recording);
            ok = load(folder, row->recording, &recording, error);
            loaded = row->recording;
        }
        uint64_t outcome[FRAG_OUTCOME_FIELDS];
        ok = ok &&
             (predict(&recording, row, outcome, error) || frag_error_in(error, row->recording));
        if (ok && !compare(row, outcome, stream))
            wrong++;
    }
    frag_recording_destroy(&recording);
    return ok ? wrong : SIZE_MAX;
}

void frag_predictions_destroy(frag_predictions *predictions)
{
    for (size_t i = 0; i < predictions->count; i++) {
        frag_prediction *row = &predictions->items[i];
        free(row->recording);
        free(row->settings);
        free(row->version);
        free(row->fraction);
    }
    free(predictions->items);
    *predictions = (frag_predictions){0};
}
