/* Makes a table of predictions from a folder of dry runs. */
#include <dirent.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "tests/studies/predictions.h"

#define RESULT_END ".result.json"

/* What NAME.result.json says of one run. */
typedef struct real_run {
    char *name;
    size_t program_bytes; /* of the name, up to the first "__" */
    const char *release;  /* of the name: "torch2.9.1" */
    json_t *result;
} real_run;

typedef struct real_runs {
    real_run *items;
    size_t count;
    size_t capacity;
} real_runs;

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text != NULL ? text : "";
}

static uint64_t number_of(const json_t *value)
{
    return json_is_integer(value) ? (uint64_t)json_integer_value(value) : FRAG_PREDICTION_NONE;
}

/* The F of "--mem-fraction F" among the program's arguments, or "". */
static const char *fraction_of(const json_t *result)
{
    const json_t *arguments = json_object_get(result, "argv");
    for (size_t i = 0; i + 1 < json_array_size(arguments); i++) {
        const char *word = json_string_value(json_array_get(arguments, i));
        const char *next = json_string_value(json_array_get(arguments, i + 1));
        if (word != NULL && next != NULL && strcmp(word, "--mem-fraction") == 0)
            return next;
    }
    return "";
}

static const json_t *first_oom(const real_run *run)
{
    return json_array_get(json_object_get(run->result, "oom_events"), 0);
}

static bool is_same_program(const real_run *a, const real_run *b)
{
    return a->program_bytes == b->program_bytes &&
           strncmp(a->name, b->name, a->program_bytes) == 0 && strcmp(a->release, b->release) == 0;
}

/* A recording with default settings that was not cut short; the larger the device the better. */
static const real_run *find_recording(const real_runs *runs, const real_run *run)
{
    const real_run *best = NULL;
    uint64_t best_bytes = 0;
    for (size_t i = 0; i < runs->count; i++) {
        const real_run *other = &runs->items[i];
        uint64_t bytes = number_of(json_object_get(other->result, "capacity"));
        if (is_same_program(other, run) && *text_of(other->result, "alloc_conf") == '\0' &&
            *fraction_of(other->result) == '\0' && first_oom(other) == NULL && bytes > best_bytes) {
            best = other;
            best_bytes = bytes;
        }
    }
    return best;
}

/* Device calls are listed run-length coded as [code, device, bytes, error, repeats]; a long list is
 * cut short, and then they are not known. */
static bool count_calls(const json_t *result, uint32_t device, uint64_t outcome[])
{
    uint64_t listed = 0;
    uint64_t made = 0;
    const char *key;
    json_t *value;
    json_object_foreach(json_object_get(result, "driver_call_counts"), key, value) made +=
        number_of(value);
    uint64_t mallocs = 0;
    uint64_t frees = 0;
    uint64_t refused = 0;
    const json_t *calls = json_object_get(result, "driver_calls");
    for (size_t i = 0; i < json_array_size(calls); i++) {
        const json_t *call = json_array_get(calls, i);
        const char *code = json_string_value(json_array_get(call, 0));
        uint64_t repeats = number_of(json_array_get(call, 4));
        if (code == NULL || repeats == FRAG_PREDICTION_NONE)
            return false;
        listed += repeats;
        if (number_of(json_array_get(call, 1)) != device)
            continue;
        bool takes_memory = strcmp(code, "m") == 0 || strcmp(code, "c") == 0;
        mallocs += strcmp(code, "m") == 0 ? repeats : 0;
        frees += strcmp(code, "f") == 0 ? repeats : 0;
        refused += takes_memory && number_of(json_array_get(call, 3)) != 0 ? repeats : 0;
    }
    if (made == 0 || listed != made)
        return false;
    outcome[FRAG_OUTCOME_MALLOCS] = mallocs;
    outcome[FRAG_OUTCOME_FREES] = frees;
    outcome[FRAG_OUTCOME_REFUSED] = refused;
    return true;
}

static void note_outcome(const real_run *run, uint32_t device, uint64_t outcome[])
{
    for (size_t i = 0; i < FRAG_OUTCOME_FIELDS; i++)
        outcome[i] = FRAG_PREDICTION_NONE;
    const json_t *stats = json_array_get(json_object_get(run->result, "memory_stats"), device);
    outcome[FRAG_OUTCOME_REQUESTS] = number_of(json_object_get(stats, "allocation.all.allocated"));
    for (size_t i = FRAG_OUTCOME_FIRST_STAT; i < FRAG_OUTCOME_FIELDS; i++)
        outcome[i] = number_of(json_object_get(stats, frag_outcome_names[i]));
    const json_t *oom = first_oom(run);
    if (oom != NULL) {
        outcome[FRAG_OUTCOME_OOM_BYTES] = number_of(json_object_get(oom, "size"));
        outcome[FRAG_OUTCOME_OOM_FREE] = number_of(json_object_get(oom, "device_free"));
    }
    count_calls(run->result, device, outcome);
}

/* Where memory ran out on one device, the others stopped short: only the one is predicted. */
static void add_rows(const real_runs *runs, const real_run *run, frag_predictions *predictions)
{
    const real_run *recording = find_recording(runs, run);
    const json_t *oom = first_oom(run);
    size_t devices = json_array_size(json_object_get(run->result, "memory_stats"));
    predictions->left_out += recording == NULL ? 1 : 0;
    for (uint32_t device = 0; recording != NULL && device < devices; device++) {
        if (oom != NULL && number_of(json_object_get(oom, "device")) != device)
            continue;
        frag_prediction *row =
            FRAG_APPEND(predictions->items, predictions->count, predictions->capacity);
        frag_text name = {0};
        frag_text version = {0};
        frag_text_add(&name, "%s.pickle.zst", recording->name);
        const char *release = text_of(run->result, "torch");
        const char *dot = strchr(release, '.');
        size_t kept = dot == NULL ? 0 : (size_t)(dot - release) + 1 + strspn(dot + 1, "0123456789");
        frag_text_add_bytes(&version, release, kept);
        *row = (frag_prediction){
            .recording = name.bytes,
            .settings = frag_copy_text(text_of(run->result, "alloc_conf")),
            .version = version.bytes,
            .fraction = frag_copy_text(fraction_of(run->result)),
            .capacity_bytes = number_of(json_object_get(run->result, "capacity")),
            .device = device,
        };
        note_outcome(run, device, row->outcome);
    }
}

/* What is wrong with a result, or NULL. */
static const char *problem_of(const json_t *result)
{
    const json_t *stats = json_object_get(result, "memory_stats");
    const json_t *oom = json_array_get(json_object_get(result, "oom_events"), 0);
    if (!json_is_object(result))
        return "expected a JSON object";
    if (strchr(text_of(result, "torch"), '.') == NULL)
        return "\"torch\" must be a release such as \"2.9.1\"";
    if (!json_is_string(json_object_get(result, "alloc_conf")))
        return "\"alloc_conf\" must be a text; \"\" are the default settings";
    if (json_integer_value(json_object_get(result, "capacity")) <= 0)
        return "\"capacity\" must be the bytes of a device";
    if (json_array_size(stats) == 0)
        return "\"memory_stats\" must be an array with an object for each device";
    if (oom != NULL && number_of(json_object_get(oom, "device")) >= json_array_size(stats))
        return "\"device\" of the out of memory must be one of \"memory_stats\"";
    return NULL;
}

static bool add_run(real_runs *runs, const char *folder, const char *file, frag_error *error)
{
    frag_text path = {0};
    frag_text_add(&path, "%s/%s", folder, file);
    json_error_t reason;
    json_t *result = json_load_file(path.bytes, 0, &reason);
    frag_text_destroy(&path);
    const char *program_end = strstr(file, "__");
    const char *release = strstr(file, "__torch");
    const char *problem = result == NULL ? reason.text : problem_of(result);
    if (problem == NULL && release == NULL)
        problem = "expected the name PROGRAM__SETTINGS__CAPACITY__torchVERSION";
    if (problem != NULL) {
        frag_fail(error, FRAG_E_INPUT, "%s", problem);
        json_decref(result);
        return frag_error_in(error, file);
    }
    real_run *run = FRAG_APPEND(runs->items, runs->count, runs->capacity);
    run->name = frag_copy_text(file);
    run->name[strlen(file) - strlen(RESULT_END)] = '\0';
    run->program_bytes = (size_t)(program_end - file);
    run->release = run->name + (release + 2 - file);
    run->result = result;
    return true;
}

static int is_result(const struct dirent *entry)
{
    size_t bytes = strlen(entry->d_name);
    size_t end = strlen(RESULT_END);
    return bytes > end && strcmp(entry->d_name + bytes - end, RESULT_END) == 0;
}

bool frag_predictions_from_folder(const char *folder, frag_predictions *predictions,
                                  frag_error *error)
{
    *predictions = (frag_predictions){0};
    struct dirent **files = NULL;
    int count = scandir(folder, &files, is_result, alphasort);
    if (count <= 0) {
        free(files);
        frag_fail(error, FRAG_E_INPUT,
                  count < 0 ? "the folder cannot be read"
                            : "the folder holds no *" RESULT_END
                              "; tests/data/predictions/README.md says what is expected");
        return frag_error_in(error, folder);
    }
    real_runs runs = {0};
    bool ok = true;
    for (int i = 0; i < count; i++) {
        ok = ok && add_run(&runs, folder, files[i]->d_name, error);
        free(files[i]);
    }
    free(files);
    for (size_t i = 0; ok && i < runs.count; i++)
        add_rows(&runs, &runs.items[i], predictions);
    for (size_t i = 0; i < runs.count; i++) {
        free(runs.items[i].name);
        json_decref(runs.items[i].result);
    }
    free(runs.items);
    if (ok && predictions->count == 0) {
        frag_fail(error, FRAG_E_INPUT,
                  "nothing can be predicted; each program needs a run with default settings and "
                  "no out of memory");
        ok = frag_error_in(error, folder);
    }
    return ok;
}
