#include "tests/studies/explain_truth.h"

#include <dirent.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/memory.h"
#include "base/text.h"
#include "studies/explain/explain_recording.h"
#include "traces/load.h"

#define RESULT_END ".result.json"

/* The objects that explain prints for one recording; NULL: the error says why. */
static json_t *explain(const char *path, const frag_explain_options *options, frag_error *error)
{
    const frag_context one_thread = {.threads = 1};
    frag_recording recording;
    frag_load_options load = {.with_sites = true, .with_columns = true};
    frag_findings findings = {0};
    char *text = NULL;
    size_t length = 0;
    if (!frag_recording_load(path, &load, &recording, &findings, error))
        return NULL;
    FILE *stream = open_memstream(&text, &length);
    bool ok = frag_explain_recording(&one_thread, &recording, options, stream, true, error);
    fclose(stream);
    frag_recording_destroy(&recording);
    json_t *object = ok ? json_loads(text, JSON_DISABLE_EOF_CHECK, NULL) : NULL;
    free(text);
    if (ok && object == NULL)
        frag_fail(error, FRAG_E_INPUT, "is not explained");
    return object;
}

static bool same_text(const json_t *value, const char *text)
{
    return json_is_string(value) ? text != NULL && strcmp(json_string_value(value), text) == 0
                                 : text == NULL;
}

/* The candidate with these settings, or NULL: explain does not try them. */
static const json_t *find_candidate(const json_t *object, const char *settings,
                                    const char *fraction)
{
    size_t i = 0;
    json_t *item = NULL;
    json_array_foreach(json_object_get(object, "candidates"), i, item)
    {
        if (strcmp(json_string_value(json_object_get(item, "policy")), "pytorch") == 0 &&
            same_text(json_object_get(item, "setting"), settings) &&
            same_text(json_object_get(item, "memory_fraction"), fraction))
            return item;
    }
    return NULL;
}

static void judge_fit(const json_t *candidate, bool did_fit, const char *name, const char *settings,
                      FILE *stream, frag_explain_truth *truth)
{
    bool fits = json_is_true(json_object_get(candidate, "fits"));
    truth->fits_right += fits && did_fit;
    truth->fails_right += !fits && !did_fit;
    truth->wrong += fits != did_fit;
    if (fits != did_fit)
        fprintf(stream, "%s with '%s': said to %s, and did not\n", name, settings,
                fits ? "fit" : "fail");
}

bool frag_explain_predictions(const char *folder, const frag_predictions *predictions, FILE *stream,
                              frag_explain_truth *truth, frag_error *error)
{
    *truth = (frag_explain_truth){0};
    for (size_t i = 0; i < predictions->count; i++) {
        const frag_prediction *row = &predictions->items[i];
        const char *fraction = *row->fraction != '\0' ? row->fraction : NULL;
        frag_explain_options options = {.capacity_bytes = row->capacity_bytes,
                                        .fraction = fraction};
        frag_text path = {0};
        frag_text_add(&path, "%s/%s", folder, row->recording);
        json_t *object = explain(path.bytes, &options, error);
        frag_text_destroy(&path);
        if (object == NULL)
            return frag_error_in(error, row->recording);
        const json_t *candidate = find_candidate(object, row->settings, fraction);
        bool is_one_device = json_integer_value(json_object_get(json_object_get(object, "source"),
                                                                "device")) == row->device;
        if (candidate != NULL && is_one_device) {
            truth->explained++;
            judge_fit(candidate, row->outcome[FRAG_OUTCOME_OOM_BYTES] == FRAG_PREDICTION_NONE,
                      row->recording, row->settings, stream, truth);
        }
        json_decref(object);
    }
    return true;
}

/* ---- a folder of dry runs */
typedef struct dry_run {
    char *name; /* without RESULT_END */
    char *settings;
    char *fraction; /* NULL: not called */
    uint64_t capacity_bytes;
    bool is_out;
} dry_run;

typedef struct dry_runs {
    dry_run *items;
    size_t count;
    size_t capacity;
} dry_runs;

static int is_result(const struct dirent *entry)
{
    size_t bytes = strlen(entry->d_name);
    size_t end = strlen(RESULT_END);
    return bytes > end && strcmp(entry->d_name + bytes - end, RESULT_END) == 0;
}

static bool add_run(dry_runs *runs, const char *folder, const char *file, frag_error *error)
{
    frag_text path = {0};
    frag_text_add(&path, "%s/%s", folder, file);
    json_t *result = json_load_file(path.bytes, 0, NULL);
    frag_text_destroy(&path);
    const char *settings = json_string_value(json_object_get(result, "alloc_conf"));
    if (settings == NULL || strstr(file, "__torch") == NULL) {
        json_decref(result);
        frag_fail(error, FRAG_E_INPUT, "is no result of a run");
        return frag_error_in(error, file);
    }
    dry_run *run = FRAG_APPEND(runs->items, runs->count, runs->capacity);
    *run = (dry_run){
        .name = frag_copy_text(file),
        .settings = frag_copy_text(settings),
        .capacity_bytes = (uint64_t)json_integer_value(json_object_get(result, "capacity")),
        .is_out = json_is_string(json_object_get(result, "oom_message")),
    };
    run->name[strlen(file) - strlen(RESULT_END)] = '\0';
    const json_t *argv = json_object_get(result, "argv");
    for (size_t i = 0; i + 1 < json_array_size(argv); i++)
        if (strcmp(json_string_value(json_array_get(argv, i)), "--mem-fraction") == 0)
            run->fraction = frag_copy_text(json_string_value(json_array_get(argv, i + 1)));
    json_decref(result);
    return true;
}

/* The same program and release? */
static bool is_relative(const dry_run *one, const dry_run *other)
{
    size_t program = (size_t)(strstr(one->name, "__") - one->name) + 2;
    return strncmp(one->name, other->name, program) == 0 &&
           strcmp(strstr(one->name, "__torch"), strstr(other->name, "__torch")) == 0;
}

/* A run that went on to the end; one with default settings if there is one. */
static const dry_run *find_whole(const dry_runs *runs, const dry_run *out)
{
    const dry_run *found = NULL;
    for (size_t i = 0; i < runs->count; i++) {
        const dry_run *run = &runs->items[i];
        if (!run->is_out && is_relative(out, run) &&
            (found == NULL || (*run->settings == '\0' && *found->settings != '\0')))
            found = run;
    }
    return found;
}

static json_t *explain_run(const char *folder, const dry_run *out, const dry_run *whole,
                           frag_error *error)
{
    frag_text path = {0};
    frag_text rest = {0};
    frag_text_add(&path, "%s/%s.pickle.zst", folder, out->name);
    if (whole != NULL)
        frag_text_add(&rest, "%s/%s.pickle.zst", folder, whole->name);
    frag_explain_options options = {
        .capacity_bytes = FRAG_UNLIMITED, .fraction = out->fraction, .whole_path = rest.bytes};
    json_t *object = explain(path.bytes, &options, error);
    frag_text_destroy(&path);
    frag_text_destroy(&rest);
    return object;
}

static bool judge_run(const dry_runs *runs, const char *folder, const dry_run *out, FILE *stream,
                      frag_explain_truth *truth, frag_error *error)
{
    const dry_run *rest = find_whole(runs, out);
    json_t *cut = explain_run(folder, out, NULL, error);
    json_t *whole = cut != NULL && rest != NULL ? explain_run(folder, out, rest, error) : NULL;
    if (cut == NULL || (rest != NULL && whole == NULL)) {
        json_decref(cut);
        return frag_error_in(error, out->name);
    }
    truth->explained++;
    const json_t *oom = json_object_get(cut, "oom");
    bool is_reproduced = json_is_true(json_object_get(oom, "is_reproduced"));
    truth->reproduced += is_reproduced;
    if (!is_reproduced)
        fprintf(stream, "%s: does not fail where it did\n", out->name);
    for (size_t i = 0; i < runs->count; i++) {
        const dry_run *run = &runs->items[i];
        if (run == out || !is_relative(out, run) || run->capacity_bytes != out->capacity_bytes)
            continue;
        const json_t *past = find_candidate(cut, run->settings, run->fraction);
        const json_t *fits = find_candidate(whole, run->settings, run->fraction);
        if (fits != NULL)
            judge_fit(fits, !run->is_out, out->name, run->settings, stream, truth);
        if (past == NULL)
            continue;
        bool gets_past = json_is_true(json_object_get(past, "gets_past"));
        truth->past_fits += gets_past && !run->is_out;
        truth->past_fails += gets_past && run->is_out;
        truth->wrong += !gets_past && !run->is_out;
        if (!gets_past && !run->is_out)
            fprintf(stream, "%s with '%s': said not to get past, and did\n", out->name,
                    run->settings);
    }
    json_decref(cut);
    json_decref(whole);
    return true;
}

bool frag_explain_folder(const char *folder, FILE *stream, frag_explain_truth *truth,
                         frag_error *error)
{
    struct dirent **files = NULL;
    dry_runs runs = {0};
    bool ok = true;
    *truth = (frag_explain_truth){0};
    int count = scandir(folder, &files, is_result, alphasort);
    for (int i = 0; i < count; i++) {
        ok = ok && add_run(&runs, folder, files[i]->d_name, error);
        free(files[i]);
    }
    free(files);
    for (size_t i = 0; ok && i < runs.count; i++)
        if (runs.items[i].is_out)
            ok = judge_run(&runs, folder, &runs.items[i], stream, truth, error);
    for (size_t i = 0; i < runs.count; i++) {
        free(runs.items[i].name);
        free(runs.items[i].settings);
        free(runs.items[i].fraction);
    }
    free(runs.items);
    if (ok && truth->explained == 0) {
        frag_fail(error, FRAG_E_INPUT, "holds no run that ran out of memory");
        ok = frag_error_in(error, folder);
    }
    return ok;
}
