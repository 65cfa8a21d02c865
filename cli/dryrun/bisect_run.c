/* One run of the command with a release of the package. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "cli/dryrun/bisect_state.h"

enum { CODE_INTERRUPTED = 130 };

/* ---- the command in an environment */

/* "/x/bin/python" and "/x/bin/torchrun" become those of the environment, if it has them; names
 * without a folder are found there by PATH. */
static char *move_word(const frag_bisect_release *release, const char *word, bool is_program)
{
    const char *slash = strrchr(word, '/');
    frag_text moved = {0};
    if (slash == NULL || !(is_program || frag_dryrun_is_python(word)))
        return frag_copy_text(word);
    frag_text_add(&moved, "%s/bin/%s", release->environment, slash + 1);
    if (access(moved.bytes, X_OK) == 0)
        return moved.bytes;
    frag_text_clear(&moved);
    if (frag_dryrun_is_python(word))
        frag_text_add(&moved, "%s/bin/python", release->environment);
    else
        frag_text_add(&moved, "%s", word);
    return moved.bytes;
}

static char **move_command(const frag_bisect *bisect, const frag_bisect_release *release,
                           size_t *count)
{
    for (*count = 0; bisect->command[*count] != NULL;)
        ++*count;
    char **words = frag_alloc(*count + 1, sizeof *words);
    for (size_t i = 0; i < *count; i++)
        words[i] = move_word(release, bisect->command[i], i == 0);
    return words;
}

/* ---- what it says */

/* The last line that the script printed. */
static void read_last_line(FILE *log, char *line, size_t size)
{
    char bytes[4096];
    long end = fseek(log, 0, SEEK_END) == 0 ? ftell(log) : 0;
    long begin = end > (long)sizeof bytes ? end - (long)sizeof bytes : 0;
    size_t count = fseek(log, begin, SEEK_SET) == 0 ? fread(bytes, 1, sizeof bytes - 1, log) : 0;
    while (count > 0 && strchr(" \r\n", bytes[count - 1]) != NULL)
        count--;
    bytes[count] = '\0';
    char *start = strrchr(bytes, '\n');
    snprintf(line, size, "%.*s", (int)size - 1, start != NULL ? start + 1 : bytes);
    frag_text_make_plain(line);
}

static const frag_dryrun_process *largest(const frag_dryrun_result *result)
{
    const frag_dryrun_process *found = NULL;
    for (size_t i = 0; i < result->count; i++) {
        const frag_dryrun_process *process = &result->processes[i];
        if (process->answer != NULL &&
            (found == NULL ||
             process->answer->run.peak.reserved_bytes > found->answer->run.peak.reserved_bytes))
            found = process;
    }
    return found;
}

/* Why a run says nothing of the peak; false: it does. */
static bool find_failure(const frag_bisect *bisect, const frag_dryrun_result *result, FILE *log,
                         frag_bisect_release *release)
{
    char *text = release->failure;
    size_t size = sizeof release->failure;
    const frag_dryrun_process *process = largest(result);
    for (size_t i = 0; i < result->count; i++) {
        const frag_dryrun_facts *facts = &result->processes[i].facts;
        if (facts->oom_count > 0) {
            snprintf(text, size, "memory ran out; leave --gpu out, or name a larger one");
            return true;
        }
        if (facts->exception != NULL) {
            snprintf(text, size, "%.*s", (int)size - 1, facts->exception);
            frag_text_make_plain(text);
            return true;
        }
        size_t length = strlen(release->name);
        if (strcmp(bisect->package, "torch") == 0 && facts->release != NULL &&
            (strncmp(facts->release, release->name, length) != 0 ||
             strspn(facts->release + length, "0123456789.") > 0)) {
            snprintf(text, size,
                     "the script used torch %.64s; start it as 'python train.py' or "
                     "'python -m ...'",
                     facts->release);
            return true;
        }
    }
    if (result->end.code == 0 && process != NULL)
        return false;
    read_last_line(log, text, size);
    size_t length = strlen(text);
    snprintf(text + length, size - length, "%s", length > 0 ? "" : "nothing was recorded");
    return true;
}

static void take_peak(const frag_bisect *bisect, const frag_dryrun_result *result,
                      frag_bisect_release *release)
{
    const frag_dryrun_process *process = largest(result);
    uint64_t event = bisect->by == FRAG_BISECT_BY_RESERVED
                         ? process->answer->run.reserved_at_event
                         : frag_uses_peak_event(process->main, 0, process->main->event_count,
                                                bisect->by == FRAG_BISECT_BY_ALLOCATED);
    release->state = FRAG_BISECT_RUN;
    release->peak = process->answer->run.peak;
    frag_site_uses_collect(&process->recording, process->main, FRAG_USES_BY_SITE,
                           (frag_use_range){0, event + 1, event}, &release->sites);
}

static bool was_interrupted(const frag_dryrun_result *result)
{
    bool is_ended = result->end.code == CODE_INTERRUPTED || frag_is_interrupted();
    for (size_t i = 0; i < result->count; i++) {
        const char *how = result->processes[i].facts.ended_by;
        is_ended = is_ended || (how != NULL && strcmp(how, "signal 2") == 0);
    }
    return is_ended;
}

static bool run_it(frag_bisect *bisect, frag_dryrun *dryrun, frag_bisect_release *release,
                   frag_error *error)
{
    frag_dryrun_result result;
    bool ok = frag_dryrun_once(dryrun, dryrun->command, &result, NULL, error);
    if (ok && was_interrupted(&result)) {
        ok = false;
    } else if (ok) {
        release->state = FRAG_BISECT_FAILED;
        bisect->runs++;
        if (!find_failure(bisect, &result, dryrun->log, release))
            take_peak(bisect, &result, release);
    }
    frag_dryrun_result_destroy(&result);
    return ok;
}

bool frag_bisect_try(frag_bisect *bisect, frag_bisect_release *release, frag_error *error)
{
    if (release->state != FRAG_BISECT_UNTRIED)
        return true;
    if (!frag_bisect_make(bisect, release, error))
        return false;
    frag_text python = {0};
    size_t count = 0;
    char **words = move_command(bisect, release, &count);
    frag_dryrun dryrun = {.arguments = bisect->arguments,
                          .context = bisect->context,
                          .environment = release->environment,
                          .has_stacks = true,
                          .log = tmpfile()};
    frag_text_add(&python, "%s/bin/python", release->environment);
    bool ok = dryrun.log != NULL ||
              frag_fail(error, FRAG_E_SYSTEM, "no file can be made for what the script prints");
    ok = ok && frag_dryrun_prepare(&dryrun, words, count, python.bytes, error) &&
         run_it(bisect, &dryrun, release, error);
    if (dryrun.log != NULL)
        fclose(dryrun.log);
    frag_dryrun_destroy(&dryrun);
    frag_dryrun_free_words(words);
    frag_text_destroy(&python);
    if (ok)
        frag_bisect_print_step(bisect, release);
    return ok;
}

uint64_t frag_bisect_peak(const frag_bisect *bisect, const frag_bisect_release *release)
{
    return bisect->by == FRAG_BISECT_BY_RESERVED    ? release->peak.reserved_bytes
           : bisect->by == FRAG_BISECT_BY_ALLOCATED ? release->peak.allocated_bytes
                                                    : release->peak.requested_bytes;
}

bool frag_bisect_differs(const frag_bisect *bisect, const frag_bisect_release *one,
                         const frag_bisect_release *other)
{
    double before = (double)frag_bisect_peak(bisect, one);
    double now = (double)frag_bisect_peak(bisect, other);
    double difference = now > before ? now - before : before - now;
    return difference > before * bisect->above / 100.0;
}
