#include "studies/ranks/job.h"

#include <errno.h>
#include <string.h>

#include "base/folder.h"
#include "base/memory.h"
#include "base/text.h"
#include "base/threads.h"
#include "studies/ranks/rank_numbers.h"

typedef struct job_files {
    const frag_job_sources *sources;
    const frag_world_options *options;
    char **paths;
    size_t count;
    size_t capacity;
    uint32_t *numbers;  /* of each path, as of frag_rank_numbers */
    frag_error *errors; /* of each path */
    frag_job *job;
} job_files;

/* ---- paths */

static void add_path(job_files *files, char *path)
{
    *FRAG_APPEND(files->paths, files->count, files->capacity) = path;
}

/* "rank0.pickle.gz", and "run.pickle-rank1", as a dry run names them. */
static bool take_recording(char *name)
{
    return strstr(name, ".pickle") != NULL || strstr(name, ".pkl") != NULL ||
           strstr(name, ".fgt") != NULL;
}

static void sort_by_number(char **paths, size_t count)
{
    uint32_t *numbers = frag_alloc(count, sizeof *numbers);
    frag_rank_numbers((const char *const *)paths, count, numbers);
    for (size_t i = 1; i < count; i++)
        for (size_t j = i; j > 0 && numbers[j] < numbers[j - 1]; j--) {
            char *path = paths[j];
            uint32_t number = numbers[j];
            paths[j] = paths[j - 1];
            numbers[j] = numbers[j - 1];
            paths[j - 1] = path;
            numbers[j - 1] = number;
        }
    frag_free(numbers);
}

char **frag_job_folder(const char *folder, size_t *count, frag_error *error)
{
    *count = 0;
    char **paths = frag_folder_names(folder, take_recording, count);
    if (paths == NULL)
        frag_fail(error, FRAG_E_SYSTEM, "the folder cannot be read: %s", strerror(errno));
    else if (*count == 0)
        frag_fail(error, FRAG_E_INPUT,
                  "no recording is in the folder; expected files with .pickle, .pkl or .fgt in "
                  "their names (logs are explained one at a time; for several: cat FILE... | "
                  "fraglab explain -)");
    if (paths == NULL || *count == 0) {
        frag_folder_names_destroy(paths, *count);
        frag_error_in(error, folder);
        return NULL;
    }
    for (size_t i = 0; i < *count; i++) {
        frag_text path = {0};
        frag_text_add(&path, "%s%s%s", folder, folder[strlen(folder) - 1] == '/' ? "" : "/",
                      paths[i]);
        frag_free(paths[i]);
        paths[i] = path.bytes;
    }
    sort_by_number(paths, *count);
    return paths;
}

static bool add_folder(job_files *files, const char *folder, frag_error *error)
{
    size_t count = 0;
    char **paths = frag_job_folder(folder, &count, error);
    for (size_t i = 0; i < count && paths != NULL; i++)
        add_path(files, paths[i]);
    frag_free(paths);
    return paths != NULL;
}

static bool list(job_files *files, frag_error *error)
{
    for (size_t i = 0; i < files->sources->operand_count; i++) {
        const char *operand = files->sources->operands[i];
        if (!frag_is_folder(operand))
            add_path(files, frag_copy_text(operand));
        else if (!add_folder(files, operand, error))
            return false;
    }
    files->numbers = frag_alloc(files->count, sizeof *files->numbers);
    files->errors = frag_alloc(files->count, sizeof *files->errors);
    frag_rank_numbers((const char *const *)files->paths, files->count, files->numbers);
    return true;
}

static void destroy(job_files *files)
{
    frag_folder_names_destroy(files->paths, files->count);
    frag_free(files->numbers);
    frag_free(files->errors);
}

/* ---- ranks */

static bool load(const job_files *files, size_t index, frag_recording *recording, frag_error *error)
{
    return frag_recording_load_plain(files->paths[index], files->sources->format, true, recording,
                                     error);
}

static bool add_whole(const job_files *files, const frag_recording *recording, uint32_t number,
                      size_t index, frag_error *error)
{
    const frag_trace *trace = frag_recording_main_trace(recording);
    if (trace != NULL)
        return frag_world_rank_measure(files->options, recording, trace, number,
                                       &files->job->ranks[index], error);
    return frag_fail_in(error, FRAG_E_INPUT, recording->name, "the recording holds no trace");
}

static void add_file(void *context, uint64_t index)
{
    job_files *files = context;
    frag_recording recording;
    frag_error *error = &files->errors[index];
    if (frag_is_cancelled(files->options->context) || !load(files, index, &recording, error))
        return;
    add_whole(files, &recording, files->numbers[index], index, error);
    frag_recording_destroy(&recording);
}

static bool add_files(job_files *files, frag_error *error)
{
    frag_for_each(files->sources->threads, files->count, add_file, files);
    for (size_t i = 0; i < files->count; i++)
        if (files->errors[i].code != FRAG_E_NONE) {
            *error = files->errors[i];
            return false;
        }
    return true;
}

static bool add_open(job_files *files, frag_error *error)
{
    uint32_t number = 0;
    for (size_t i = 0; i < files->count; i++)
        number = files->numbers[i] >= number ? files->numbers[i] + 1 : number;
    for (size_t i = 0; i < files->sources->recording_count; i++)
        if (!add_whole(files, files->sources->recordings[i], number + (uint32_t)i, files->count + i,
                       error))
            return false;
    return true;
}

static bool add_devices(const job_files *files, const frag_recording *recording, frag_error *error)
{
    frag_job *job = files->job;
    if (!frag_world_rank_measure_devices(files->options, recording, &job->ranks, &job->count,
                                         error))
        return false;
    if (job->count > 1)
        return true;
    return frag_fail_in(error, FRAG_E_USAGE, files->count > 0 ? files->paths[0] : recording->name,
                        "the recording is of one device; expected the recordings of several ranks");
}

static bool add_one_recording(const job_files *files, frag_error *error)
{
    frag_recording recording;
    if (files->count == 0)
        return add_devices(files, files->sources->recordings[0], error);
    if (!load(files, 0, &recording, error))
        return false;
    bool ok = add_devices(files, &recording, error);
    frag_recording_destroy(&recording);
    return ok;
}

static bool add_all(job_files *files, frag_error *error)
{
    size_t count = files->count + files->sources->recording_count;
    if (count == 1)
        return add_one_recording(files, error);
    files->job->ranks = frag_alloc(count, sizeof *files->job->ranks);
    files->job->count = count;
    return add_files(files, error) && add_open(files, error);
}

bool frag_job_measure(const frag_job_sources *sources, const frag_world_options *options,
                      frag_job *job, frag_error *error)
{
    job_files files = {.sources = sources, .options = options, .job = job};
    *job = (frag_job){0};
    bool ok = list(&files, error) && add_all(&files, error);
    destroy(&files);
    return ok && !frag_is_cancelled(options->context);
}

void frag_job_destroy(frag_job *job)
{
    for (size_t i = 0; i < job->count; i++)
        frag_world_rank_destroy(&job->ranks[i]);
    frag_free(job->ranks);
    *job = (frag_job){0};
}
