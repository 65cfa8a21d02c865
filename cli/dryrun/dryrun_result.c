#include "cli/dryrun/dryrun_result.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "traces/load.h"

static frag_dryrun_fits judge_device(const frag_dryrun_answer *answer)
{
    bool is_served_by_all = answer->other.fits && answer->draws_served == answer->draws;
    if (!answer->has_failed)
        return answer->uncertain_requests == 0 || is_served_by_all ? FRAG_DRYRUN_FITS
                                                                   : FRAG_DRYRUN_FITS_UNKNOWN;
    return answer->uncertain_requests > 0 && (answer->other.fits || answer->draws_served > 0)
               ? FRAG_DRYRUN_FITS_UNKNOWN
               : FRAG_DRYRUN_FITS_NOT;
}

/* What is known of the whole when one part says this and another that. */
static frag_dryrun_fits worse(frag_dryrun_fits one, frag_dryrun_fits other)
{
    if (one == FRAG_DRYRUN_FITS_NOT || other == FRAG_DRYRUN_FITS_NOT)
        return FRAG_DRYRUN_FITS_NOT;
    return one == FRAG_DRYRUN_FITS ? other : one;
}

/* Memory ran out nowhere, but the script did not come to its end either. */
static bool was_cut_short(const frag_dryrun_facts *facts)
{
    const char *how = facts->ended_by != NULL ? facts->ended_by : "";
    return strcmp(how, "exception") == 0 || strcmp(how, "loop") == 0 ||
           strncmp(how, "signal", 6) == 0;
}

/* Memory ran out when masks selected all their elements, which fewer might not need. */
static bool hangs_on_masks(const frag_dryrun_facts *facts)
{
    return facts->selection_count > 0 && facts->selected_percent == 100;
}

frag_dryrun_card frag_dryrun_limited(const frag_dryrun_gpu *gpu, const frag_dryrun_facts *facts)
{
    frag_dryrun_card card = gpu->memory;
    if (facts->limit_bytes < card.capacity_bytes - card.context_bytes)
        card.capacity_bytes = facts->limit_bytes + card.context_bytes;
    return card;
}

static bool judge_process(const frag_context *context, frag_dryrun_process *process,
                          const frag_dryrun_gpu *gpu, frag_error *error)
{
    const frag_recording *recording = &process->recording;
    process->fits = FRAG_DRYRUN_FITS;
    process->main = frag_recording_main_trace(recording);
    process->answers = frag_alloc(recording->trace_count, sizeof *process->answers);
    for (uint32_t i = 0; i < recording->trace_count; i++) {
        const frag_trace *trace = &recording->traces[i];
        if (!frag_dryrun_judge(context, recording, trace, &process->facts, &gpu->memory,
                               &process->answers[i], error))
            return frag_error_in(error, process->path);
        process->fits = worse(process->fits, judge_device(&process->answers[i]));
        if (trace == process->main)
            process->answer = &process->answers[i];
    }
    if (process->facts.oom_count > 0 && process->fits == FRAG_DRYRUN_FITS)
        process->fits = FRAG_DRYRUN_FITS_NOT;
    if (process->fits == FRAG_DRYRUN_FITS_NOT && hangs_on_masks(&process->facts))
        process->fits = FRAG_DRYRUN_FITS_UNKNOWN;
    if (process->fits == FRAG_DRYRUN_FITS && (was_cut_short(&process->facts) || !gpu->is_given))
        process->fits = FRAG_DRYRUN_FITS_UNKNOWN;
    return true;
}

/* A process without history, under cudaMallocAsync: only whether memory ran out is known. */
static void judge_without(frag_dryrun_process *process)
{
    const char *how = process->facts.ended_by;
    bool is_out = process->facts.oom_count > 0 || (how != NULL && strcmp(how, "oom") == 0);
    process->fits = is_out ? FRAG_DRYRUN_FITS_NOT : FRAG_DRYRUN_FITS_UNKNOWN;
}

static bool add_process(const frag_context *context, const char *folder, const char *name,
                        const frag_dryrun_gpu *gpu, frag_dryrun_result *result, frag_error *error)
{
    frag_text facts = {0};
    frag_text report = {0};
    frag_text recording = {0};
    result->processes =
        frag_realloc(result->processes, result->count + 1, sizeof *result->processes);
    frag_dryrun_process *process = &result->processes[result->count];
    *process = (frag_dryrun_process){.has_recording = false};
    frag_text_add(&facts, "%s/%s.json", folder, name);
    frag_text_add(&report, "%s/%s.report", folder, name);
    frag_text_add(&recording, "%s/%s.pickle", folder, name);
    bool ok = frag_dryrun_facts_read(facts.bytes, report.bytes, &process->facts, error);
    if (ok) {
        result->count++;
        process->has_recording = access(recording.bytes, R_OK) == 0;
        process->path = recording.bytes;
        recording = (frag_text){0};
    }
    if (ok && process->has_recording)
        ok = frag_recording_load_plain(process->path, FRAG_FORMAT_AUTO, true, &process->recording,
                                       error) &&
             judge_process(context, process, gpu, error);
    else if (ok)
        judge_without(process);
    frag_text_destroy(&facts);
    frag_text_destroy(&report);
    frag_text_destroy(&recording);
    return ok;
}

static uint64_t request_count(const frag_dryrun_process *process)
{
    uint64_t count = 0;
    for (uint32_t i = 0; i < process->recording.trace_count; i++)
        count += process->recording.traces[i].stats.request_count;
    return count;
}

static int compare_processes(const void *left, const void *right)
{
    const frag_dryrun_process *a = left, *b = right;
    if (a->facts.rank != b->facts.rank)
        return a->facts.rank < b->facts.rank ? -1 : 1;
    uint64_t requests = request_count(a);
    uint64_t others = request_count(b);
    if (requests != others)
        return requests > others ? -1 : 1;
    return a->facts.pid < b->facts.pid ? -1 : a->facts.pid > b->facts.pid;
}

/* "4242" of "4242.json"; the settings are none. */
static bool is_facts(const char *file)
{
    size_t digits = strspn(file, "0123456789");
    return digits > 0 && strcmp(file + digits, ".json") == 0;
}

/* Each process knows the most that its card held until its own end; the last one knows it all. */
static void join_cards(frag_dryrun_result *result)
{
    uint64_t most[FRAG_DRYRUN_DEVICES_MAX] = {0};
    for (int pass = 0; pass < 2; pass++) {
        for (size_t i = 0; i < result->count; i++) {
            frag_dryrun_facts *facts = &result->processes[i].facts;
            for (size_t device = 0; device < FRAG_DRYRUN_DEVICES_MAX; device++) {
                uint64_t card = facts->cards[device];
                uint64_t *bytes = &facts->card_bytes_max[device];
                if (card >= FRAG_DRYRUN_DEVICES_MAX || *bytes == 0)
                    continue;
                most[card] = *bytes > most[card] ? *bytes : most[card];
                *bytes = most[card];
            }
        }
    }
}

bool frag_dryrun_collect(const frag_context *context, const char *folder,
                         const frag_dryrun_gpu *gpu, frag_dryrun_result *result, frag_error *error)
{
    struct dirent **entries = NULL;
    int count = scandir(folder, &entries, NULL, alphasort);
    bool ok = true;
    result->fits = FRAG_DRYRUN_FITS;
    for (int i = 0; i < count; i++) {
        char *name = entries[i]->d_name;
        if (ok && is_facts(name)) {
            *strrchr(name, '.') = '\0';
            ok = add_process(context, folder, name, gpu, result, error);
        }
        frag_free(entries[i]);
    }
    frag_free(entries);
    if (result->count > 0)
        qsort(result->processes, result->count, sizeof *result->processes, compare_processes);
    else
        result->fits = FRAG_DRYRUN_FITS_UNKNOWN;
    join_cards(result);
    for (size_t i = 0; i < result->count; i++) {
        frag_dryrun_process *process = &result->processes[i];
        /* They moved with the sort, and so did the recording that they point into. */
        process->main = frag_recording_main_trace(&process->recording);
        result->fits = worse(result->fits, process->fits);
    }
    return ok;
}

void frag_dryrun_result_destroy(frag_dryrun_result *result)
{
    for (size_t i = 0; i < result->count; i++) {
        frag_dryrun_process *process = &result->processes[i];
        frag_dryrun_facts_destroy(&process->facts);
        if (process->has_recording)
            frag_recording_destroy(&process->recording);
        frag_free(process->answers);
        frag_free(process->path);
    }
    frag_free(result->processes);
    *result = (frag_dryrun_result){.fits = FRAG_DRYRUN_FITS_UNKNOWN};
}
