/* One run of a command as a dry run: what it needs, and what it leaves. */
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/memory.h"
#include "cli/dryrun/dryrun_settings.h"
#include "cli/dryrun/dryrun_state.h"

enum { FOLLOWED_PIECES = 256 }; /* of the largest size that is followed, are kept in all */

/* ---- one run */

void frag_dryrun_remove(char *folder)
{
    struct dirent **entries = NULL;
    int count = folder != NULL ? scandir(folder, &entries, NULL, NULL) : 0;
    for (int i = 0; i < count; i++) {
        frag_text path = {0};
        frag_text_add(&path, "%s/%s", folder, entries[i]->d_name);
        unlink(path.bytes);
        frag_text_destroy(&path);
        frag_free(entries[i]);
    }
    frag_free(entries);
    if (folder != NULL)
        rmdir(folder);
    frag_free(folder);
}

static char *make_folder(frag_error *error)
{
    const char *temporary = getenv("TMPDIR");
    frag_text name = {0};
    frag_text_add(&name, "%s/fraglab-dryrun-XXXXXX",
                  temporary != NULL && temporary[0] != '\0' ? temporary : "/tmp");
    if (mkdtemp(name.bytes) != NULL) {
        char *folder = realpath(name.bytes, NULL);
        frag_text_destroy(&name);
        return folder;
    }
    frag_fail(error, FRAG_E_SYSTEM, "no folder for recordings can be made (%s)", strerror(errno));
    frag_error_in(error, name.bytes);
    frag_text_destroy(&name);
    return NULL;
}

bool frag_dryrun_once(const frag_dryrun *dryrun, char *const *command, frag_dryrun_result *result,
                      char **folder, frag_error *error)
{
    char *made = make_folder(error);
    *result = (frag_dryrun_result){.fits = FRAG_DRYRUN_FITS_UNKNOWN};
    if (made == NULL)
        return false;
    frag_text settings = {0};
    frag_text_add(&settings, "%s%s,report=%s/%%p.report,cards=%s/cards", dryrun->settings.bytes,
                  dryrun->has_low_workspaces ? ",workspaces=low" : "", made, made);
    frag_dryrun_progress progress;
    frag_dryrun_wishes wishes = {.has_stacks = dryrun->has_stacks,
                                 .has_progress = frag_dryrun_progress_begin(
                                     &progress, made, !frag_arguments_is_quiet(dryrun->arguments))};
    frag_dryrun_start start = {.parts = &dryrun->parts,
                               .folder = made,
                               .settings = settings.bytes,
                               .conf = frag_arguments_value(dryrun->arguments, "conf"),
                               .environment = dryrun->environment,
                               .log = dryrun->log,
                               .progress = wishes.has_progress ? &progress : NULL,
                               .timeout_ns = dryrun->timeout_ns};
    bool ok = frag_dryrun_settings_write(dryrun->arguments, &wishes, made, error) &&
              frag_dryrun_ranks_run(&dryrun->ranks, &start, command, &result->end, error) &&
              result->end.is_started &&
              frag_dryrun_collect(dryrun->context, made, &dryrun->gpu, result, error);
    frag_text_destroy(&settings);
    if (folder != NULL && ok) {
        *folder = made;
        return true;
    }
    frag_dryrun_remove(made);
    return ok;
}

/* ---- what it needs */

char **frag_dryrun_copy_operands(const frag_arguments *arguments)
{
    size_t count = frag_arguments_operand_count(arguments);
    char **words = frag_alloc(count + 1, sizeof *words);
    for (size_t i = 0; i < count; i++)
        words[i] = frag_copy_text(frag_arguments_operand(arguments, i));
    return words;
}

void frag_dryrun_free_words(char **words)
{
    for (size_t i = 0; words != NULL && words[i] != NULL; i++)
        frag_free(words[i]);
    frag_free(words);
}

static void copy_command(frag_dryrun *dryrun, char *const *command, size_t count)
{
    dryrun->command_length = count;
    dryrun->command = frag_alloc(count + 1, sizeof *dryrun->command);
    for (size_t i = 0; i < count; i++)
        dryrun->command[i] = frag_copy_text(command[i]);
}

static bool read_timeout(frag_dryrun *dryrun, frag_error *error)
{
    const char *text = frag_arguments_value(dryrun->arguments, "timeout");
    double seconds = 0;
    if (text != NULL && !frag_ratio_parse(text, 0.1, 1e7, &seconds, error))
        return frag_error_in(error, "--timeout");
    dryrun->timeout_ns = (uint64_t)(seconds * 1e9);
    return true;
}

bool frag_dryrun_prepare(frag_dryrun *dryrun, char *const *command, size_t count,
                         const char *python, frag_error *error)
{
    const frag_arguments *arguments = dryrun->arguments;
    uint64_t followed_bytes = 0;
    frag_text note = {0};
    copy_command(dryrun, command, count);
    if (!frag_dryrun_gpu_find(frag_arguments_value(arguments, "gpu"), &dryrun->gpu, &note, error) ||
        !read_timeout(dryrun, error) ||
        !frag_dryrun_read_followed(arguments, &followed_bytes, error) ||
        !frag_dryrun_ranks_read(arguments, command[0], &dryrun->ranks, error) ||
        !frag_dryrun_check_options(dryrun->command, error) ||
        !frag_dryrun_parts_find(&dryrun->parts, error) ||
        !frag_dryrun_find_python(dryrun->command, python, dryrun->parts.probe, &dryrun->python,
                                 error) ||
        !frag_dryrun_parts_find_libraries(&dryrun->parts, dryrun->python.major,
                                          frag_arguments_value(arguments, "software"), error))
        return false;
    if (note.bytes != NULL)
        frag_warn(arguments, "--gpu: %s", note.bytes);
    if (dryrun->parts.foreign.length > 0)
        frag_warn(arguments,
                  "the software CUDA in %s was built from other sources than this fraglab, so "
                  "that the answer may be wrong; 'make fraglab software-cuda' builds both anew",
                  dryrun->parts.foreign.bytes);
    frag_text_destroy(&note);
    uint64_t cards = dryrun->ranks.count > 0 ? dryrun->ranks.local_count : 1;
    frag_dryrun_gpu_settings(&dryrun->gpu, frag_arguments_number(arguments, "gpus", cards),
                             &dryrun->settings);
    frag_text_add(&dryrun->settings, ",shadow=%" PRIu64 "/%" PRIu64, followed_bytes,
                  followed_bytes * FOLLOWED_PIECES);
    dryrun->has_low_workspaces = frag_arguments_is(arguments, "workspaces", "low");
    dryrun->has_stacks = dryrun->has_stacks || frag_arguments_has(arguments, "stacks");
    return true;
}

void frag_dryrun_destroy(frag_dryrun *dryrun)
{
    frag_dryrun_free_words(dryrun->command);
    frag_dryrun_parts_destroy(&dryrun->parts);
    frag_dryrun_ranks_destroy(&dryrun->ranks);
    frag_text_destroy(&dryrun->settings);
}
