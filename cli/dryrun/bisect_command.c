/* fraglab bisect: the first release of a package with which the peak of a script is another. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/memory.h"
#include "cli/dryrun/bisect_state.h"

enum { CODE_SAME = 0, CODE_FOUND = 1, CODE_INTERRUPTED = 130 };

/* ---- environments that are missing */

/* Both ends, and one for each time that what is between them halves. */
static size_t count_runs_max(const frag_bisect *bisect)
{
    size_t between = bisect->high - bisect->low - 1;
    size_t runs = 2;
    if (frag_arguments_has(bisect->arguments, "all"))
        return between + 2;
    for (; between > 0; between /= 2)
        runs++;
    return runs;
}

/* What is to be fetched at most: the largest of those that are missing. */
static uint64_t count_bytes_max(const frag_bisect *bisect, size_t *count)
{
    size_t runs = count_runs_max(bisect);
    size_t missing = 0;
    uint64_t largest = 0;
    for (size_t i = bisect->low; i <= bisect->high; i++) {
        const frag_bisect_release *release = &bisect->releases[i];
        missing += !release->is_made;
        if (!release->is_made && release->wheel_bytes != FRAG_UNLIMITED &&
            release->wheel_bytes > largest)
            largest = release->wheel_bytes;
    }
    *count = missing < runs ? missing : runs;
    return *count * largest;
}

/* Nothing is fetched unasked; what was fetched earlier is run without asking. */
static bool may_fetch(const frag_bisect *bisect, const frag_bisect_release *release,
                      frag_error *error)
{
    size_t count = 0;
    uint64_t bytes = count_bytes_max(bisect, &count);
    bool is_torch = strcmp(bisect->package, "torch") == 0;
    if (release->is_made || frag_arguments_has(bisect->arguments, "yes"))
        return true;
    frag_bisect_print_plan(bisect, stderr);
    return frag_fail(error, FRAG_E_USAGE,
                     "at most %zu environment%s would be made in %s: about %s to fetch%s, three "
                     "times as much on disk; go on with --yes, or give ready ones with "
                     "--environments",
                     count, count == 1 ? "" : "s", bisect->folder,
                     bytes > 0 ? FRAG_BYTES(bytes) : "an unknown amount",
                     is_torch ? ", and 200 MiB for each that needs Triton" : "");
}

static bool try_release(frag_bisect *bisect, frag_bisect_release *release, frag_error *error)
{
    return may_fetch(bisect, release, error) && frag_bisect_try(bisect, release, error);
}

/* ---- the search */

/* The nearest to the middle of those between the two that can still be tried; count: there is none.
 */
static size_t nearest_untried(const frag_bisect *bisect, size_t low, size_t high)
{
    size_t middle = low + (high - low) / 2;
    for (size_t away = 0; away <= high - low; away++) {
        size_t below = middle - (away < middle ? away : middle);
        size_t above = middle + away;
        if (below > low && below < high && bisect->releases[below].state == FRAG_BISECT_UNTRIED)
            return below;
        if (above > low && above < high && bisect->releases[above].state == FRAG_BISECT_UNTRIED)
            return above;
    }
    return bisect->count;
}

/* Moves an end inwards until one runs. */
static bool find_end(frag_bisect *bisect, size_t *at, size_t limit, int step, frag_error *error)
{
    for (;;) {
        frag_bisect_release *release = &bisect->releases[*at];
        if (!try_release(bisect, release, error))
            return false;
        if (release->state == FRAG_BISECT_RUN)
            return true;
        if (*at == limit)
            return frag_fail(error, FRAG_E_INPUT, "no two releases of %s run the script; of %s: %s",
                             bisect->package, release->name, release->failure);
        *at = step > 0 ? *at + 1 : *at - 1;
    }
}

static bool halve(frag_bisect *bisect, frag_error *error)
{
    for (;;) {
        size_t at = nearest_untried(bisect, bisect->low, bisect->high);
        if (at == bisect->count)
            return true;
        frag_bisect_release *release = &bisect->releases[at];
        if (!try_release(bisect, release, error))
            return false;
        if (release->state != FRAG_BISECT_RUN)
            continue;
        if (frag_bisect_differs(bisect, &bisect->releases[bisect->low], release))
            bisect->high = at;
        else
            bisect->low = at;
    }
}

/* --all: one after the other. */
static bool walk(frag_bisect *bisect, bool *is_found, frag_error *error)
{
    size_t last = bisect->high;
    for (size_t at = bisect->low; at <= last; at++) {
        frag_bisect_release *release = &bisect->releases[at];
        if (!try_release(bisect, release, error))
            return false;
        if (release->state != FRAG_BISECT_RUN || *is_found)
            continue;
        *is_found = frag_bisect_differs(bisect, &bisect->releases[bisect->low], release);
        if (*is_found)
            bisect->high = at;
        else
            bisect->low = at;
    }
    return true;
}

static bool search(frag_bisect *bisect, bool *is_found, frag_error *error)
{
    *is_found = false;
    if (!find_end(bisect, &bisect->low, bisect->high - 1, 1, error) ||
        !find_end(bisect, &bisect->high, bisect->low + 1, -1, error))
        return false;
    if (frag_arguments_has(bisect->arguments, "all"))
        return walk(bisect, is_found, error);
    *is_found = frag_bisect_differs(bisect, &bisect->releases[bisect->low],
                                    &bisect->releases[bisect->high]);
    return !*is_found || halve(bisect, error);
}

/* ---- the command */

static bool read_ends(frag_bisect *bisect, frag_error *error)
{
    const char *good = frag_arguments_value(bisect->arguments, "good");
    const char *bad = frag_arguments_value(bisect->arguments, "bad");
    bisect->low = 0;
    bisect->high = bisect->count - 1;
    if (good != NULL && !frag_bisect_find(bisect, good, &bisect->low, error))
        return frag_error_in(error, "--good");
    if (bad != NULL && !frag_bisect_find(bisect, bad, &bisect->high, error))
        return frag_error_in(error, "--bad");
    return bisect->low < bisect->high ||
           frag_fail(error, FRAG_E_USAGE,
                     "--good %s is not before --bad %s; a change is looked for between the two",
                     bisect->releases[bisect->low].name, bisect->releases[bisect->high].name);
}

static bool read_options(frag_bisect *bisect, frag_error *error)
{
    const frag_arguments *arguments = bisect->arguments;
    const char *above = frag_arguments_value(arguments, "above");
    bisect->is_json = frag_arguments_is(arguments, "format", "jsonl");
    bisect->by = frag_arguments_is(arguments, "by", "requested")   ? FRAG_BISECT_BY_REQUESTED
                 : frag_arguments_is(arguments, "by", "allocated") ? FRAG_BISECT_BY_ALLOCATED
                                                                   : FRAG_BISECT_BY_RESERVED;
    if (above != NULL && !frag_ratio_parse(above, 0, 1e6, &bisect->above, error))
        return frag_error_in(error, "--above");
    return frag_bisect_read_range(bisect, error);
}

static void release_all(frag_bisect *bisect)
{
    for (size_t i = 0; i < bisect->count; i++) {
        frag_free(bisect->releases[i].name);
        frag_free(bisect->releases[i].environment);
        frag_site_uses_destroy(&bisect->releases[i].sites);
    }
    frag_free(bisect->releases);
    frag_free(bisect->package);
    frag_free(bisect->first);
    frag_free(bisect->last);
    frag_free(bisect->folder);
    frag_dryrun_free_words(bisect->command);
}

static int bisect_command(const frag_arguments *arguments)
{
    frag_error error = {.code = FRAG_E_NONE};
    bool is_found = false;
    frag_bisect bisect = {.arguments = arguments,
                          .context = frag_arguments_context(arguments),
                          .command = frag_dryrun_copy_operands(arguments)};
    bool ok = read_options(&bisect, &error) && frag_bisect_find_releases(&bisect, &error) &&
              read_ends(&bisect, &error) && search(&bisect, &is_found, &error);
    if (ok)
        frag_bisect_print_end(&bisect, &bisect.releases[bisect.low],
                              is_found ? &bisect.releases[bisect.high] : NULL);
    release_all(&bisect);
    if (!ok)
        return error.code != FRAG_E_NONE ? frag_report(&error) : CODE_INTERRUPTED;
    return is_found ? CODE_FOUND : CODE_SAME;
}

static const frag_command_option bisect_options[] = {
    {"torch", "FIRST..LAST", .help = "releases of PyTorch: 2.6..2.15 (2.15 includes 2.15.1)"},
    {"package", "NAME==FIRST..LAST",
     .help = "releases of another package: transformers==4.50..4.57"},
    {"by", "PEAK", .choices = "reserved|allocated|requested",
     .help = "which peak is compared (default: reserved)"},
    {"above", "PERCENT", .help = "ignore differences up to this (default: 0)"},
    {"good", "RELEASE", .help = "a release known to have the old peak (default: the first)"},
    {"bad", "RELEASE", .help = "a release known to differ (default: the last)"},
    {"all", .help = "run every release, which also finds a change that was reverted"},
    {"environments", "FOLDER",
     .help = "use the virtual environments in the folders of this one; nothing is fetched"},
    {"with", "REQUIREMENT",
     .help = "install this too in each environment, without its own requirements: torchvision; "
             "may be repeated"},
    {"yes", .letter = 'y', .help = "make the environments that are missing"},
    {"gpu", "NAME|SIZE",
     .help = "the card to pretend, as in 'fraglab dryrun' (default: memory without limit)"},
    {"gpus", "N", .help = "so many of them (default: 1)", .min = 1, .max = 8},
    {"conf", "SETTINGS", .help = "PYTORCH_CUDA_ALLOC_CONF for the script"},
    {"steps", "N", .help = "end the script after N optimizer steps", .min = 1, .max = UINT32_MAX},
    {"until", "MODULE:FUNCTION[=N]", .help = "end it after that function has returned N times"},
    {"timeout", "SECONDS", .help = "end each run after so much time"},
    {"value", "FILE:LINE=NUMBER", .help = "what is read from the GPU at that line"},
    {"rounds", "N",
     .help = "end a loop whose condition has read such a value N times (default: 1000)", .min = 2,
     .max = UINT32_MAX},
    {"no-defaults",
     .help = "leave torch.distributions, repeat_interleave, all() and generate() as they are"},
    {"format", "FORMAT", .choices = "text|jsonl",
     .help = "jsonl: one object a run and one for the end (default: text)"},
    {"python", "FILE",
     .help = "the Python whose pip makes the environments, if it is not seen in the command"},
    {"software", "FOLDER",
     .help = "CUDA libraries to use, with a list 'preload' of them (default: "
             "those of this fraglab)"},
    {.name = NULL},
};

const frag_command frag_command_bisect = {
    .name = "bisect",
    .operands = "COMMAND...",
    .summary = "find the release of PyTorch or another package that changed the peak",
    .description =
        "Runs a training script as 'fraglab dryrun' does, with different releases of a package, "
        "and finds by binary search the first whose peak differs from that of the first release. "
        "Says which call sites hold more or less at the peak than with the release before it. They "
        "are matched by function and file, so moved lines do not matter (docs/bisect.md).\n"
        "\n"
        "The releases are those that pip offers to the Python of the command. Each one that is run "
        "gets a virtual environment, which is kept in $XDG_CACHE_HOME/fraglab/environments; the "
        "script's other packages come from the Python of the command. fraglab prints the sizes "
        "first, and fetches nothing without --yes.\n"
        "\n"
        "Exits with 0 if the peak is the same at both ends, 1 if a release was found, 2 for wrong "
        "options or a missing --yes, 3 if no two releases run the script, 4 if an environment "
        "cannot be made.",
    .examples =
        "fraglab bisect --torch 2.6..2.15 -- python train.py --batch 16\n"
        "fraglab bisect --torch 2.6..2.9 --steps 3 --yes -- python train.py\n"
        "fraglab bisect --package transformers==4.50..4.57 --by requested -- python finetune.py\n"
        "fraglab bisect --torch 2.6..2.9 --environments ~/venvs -- python train.py  # ready ones\n",
    .options = bisect_options,
    .operand_min = 1,
    .operand_max = UINT32_MAX,
    .takes_command = true,
    .run = bisect_command,
};
