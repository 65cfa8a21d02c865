/* fraglab dryrun --max: the largest value of an argument with which the script fits. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/memory.h"
#include "cli/dryrun/dryrun_state.h"
#include "studies/dryrun/dryrun_scale.h"

/* A value that was tried, and what it needed. */
typedef struct trial {
    uint64_t value;
    uint64_t reserved_bytes;
    frag_dryrun_result result;
} trial;

typedef struct max_search {
    const frag_dryrun *dryrun;
    const char *pattern;
    FILE *stream;
    trial fits[2]; /* the largest two that fit; [0] the larger */
    size_t fit_count;
    uint64_t fails; /* the smallest that does not; UINT64_MAX: none is known */
    uint64_t last;  /* the largest to try */
    uint64_t runs;
    uint64_t guess;    /* the largest that should fit by replay; 0: nothing is guessed */
    bool was_mistaken; /* the last guess was wrong */
    frag_error error;
    int code;
} max_search;

static char *fill(const char *word, uint64_t value)
{
    frag_text text = {0};
    const char *at = word;
    for (const char *found; (found = strstr(at, "{}")) != NULL; at = found + 2) {
        frag_text_add_bytes(&text, at, (size_t)(found - at));
        frag_text_add(&text, "%" PRIu64, value);
    }
    frag_text_add(&text, "%s", at);
    return text.bytes;
}

/* The command with the words of the pattern behind it. The caller frees it with
 * frag_dryrun_free_words. */
static char **make_command(const max_search *search, uint64_t value)
{
    const frag_dryrun *dryrun = search->dryrun;
    size_t count = dryrun->command_length;
    char **words = frag_alloc(count + strlen(search->pattern) / 2 + 2, sizeof *words);
    char *copy = frag_copy_text(search->pattern);
    char *rest = NULL;
    for (size_t i = 0; i < count; i++)
        words[i] = frag_copy_text(dryrun->command[i]);
    for (char *word = strtok_r(copy, " \t", &rest); word != NULL;
         word = strtok_r(NULL, " \t", &rest))
        words[count++] = fill(word, value);
    frag_free(copy);
    return words;
}

/* The result becomes the search's. */
static void note_fit(max_search *search, uint64_t value, uint64_t reserved,
                     frag_dryrun_result *result)
{
    frag_dryrun_result_destroy(&search->fits[1].result);
    search->fits[1] = search->fits[0];
    search->fits[0] = (trial){value, reserved, *result};
    *result = (frag_dryrun_result){.count = 0};
    search->fit_count++;
}

/* false: the search is over: an error, or a script that failed for its own reasons. */
static bool judge(max_search *search, uint64_t value, frag_dryrun_result *result)
{
    uint64_t reserved = 0;
    for (size_t i = 0; i < result->count; i++)
        if (result->processes[i].answer != NULL &&
            result->processes[i].answer->run.peak.reserved_bytes > reserved)
            reserved = result->processes[i].answer->run.peak.reserved_bytes;
    bool is_out = result->fits == FRAG_DRYRUN_FITS_NOT;
    for (size_t i = 0; i < result->count; i++)
        is_out = is_out ||
                 (result->processes[i].answer != NULL && result->processes[i].answer->has_failed);
    if (result->fits == FRAG_DRYRUN_FITS) {
        fprintf(search->stream, "fraglab: %" PRIu64 ": fits, %s reserved at the peak\n", value,
                FRAG_BYTES(reserved));
        note_fit(search, value, reserved, result);
        return true;
    }
    if (is_out) {
        fprintf(search->stream, "fraglab: %" PRIu64 ": out of memory\n", value);
        search->fails = value;
        return true;
    }
    frag_fail(&search->error, FRAG_E_INPUT,
              "the script failed with %" PRIu64 " before memory ran out (exit code %d)", value,
              result->end.code);
    frag_error_in(&search->error, "--max");
    return false;
}

static bool try_value(max_search *search, uint64_t value)
{
    frag_dryrun_result result;
    char **command = make_command(search, value);
    search->runs++;
    frag_tell(search->dryrun->arguments, "run %" PRIu64 ": %s with %" PRIu64, search->runs,
              search->pattern, value);
    bool ok = frag_dryrun_once(search->dryrun, command, &result, NULL, &search->error);
    if (ok && result.end.code >= 128 + 1 && result.count == 0)
        ok = false; /* interrupted */
    search->code = result.end.code;
    ok = ok && !frag_is_interrupted() && judge(search, value, &result);
    frag_dryrun_result_destroy(&result);
    frag_dryrun_free_words(command);
    return ok;
}

/* ---- the next value */

/* The recording of a trial with one process on one device and no uncertain sizes. */
static bool find_recording(const trial *run, frag_dryrun_scaled *scaled)
{
    const frag_dryrun_result *result = &run->result;
    if (result->count != 1 || result->processes[0].recording.trace_count != 1 ||
        result->processes[0].answer == NULL || !result->processes[0].answer->is_repeated ||
        result->processes[0].answer->uncertain_requests > 0)
        return false;
    *scaled = (frag_dryrun_scaled){&result->processes[0].recording, result->processes[0].main,
                                   run->value};
    return true;
}

/* By replay of the last two that fit, where their requests differ in size alone. It only says what
 * to run next: that the largest fits and the next does not is known by runs. */
static void guess(max_search *search)
{
    const frag_dryrun *dryrun = search->dryrun;
    frag_dryrun_scaled smaller, larger;
    frag_error ignored = {.code = FRAG_E_NONE};
    uint64_t end = search->fails != UINT64_MAX ? search->fails - 1 : search->last;
    search->guess = 0;
    if (search->fit_count < 2 || !find_recording(&search->fits[1], &smaller) ||
        !find_recording(&search->fits[0], &larger) || !frag_dryrun_scales(&smaller, &larger) ||
        !frag_dryrun_guess_max(dryrun->context, &smaller, &larger, &dryrun->gpu.memory,
                               search->fits[0].result.processes[0].facts.release, end,
                               &search->guess, &ignored))
        return;
    frag_tell(dryrun->arguments,
              "replays of the requests with %" PRIu64 " and %" PRIu64 ", scaled: %" PRIu64
              " should be the largest",
              smaller.value, larger.value, search->guess);
}

/* Where the line through the two largest that fit meets the card's memory, between those that are
 * known; without two, or without an end, twice as much. */
static uint64_t next_by_line(const max_search *search)
{
    uint64_t low = search->fits[0].value;
    uint64_t high = search->fails;
    uint64_t next = low * 2;
    const frag_dryrun_card *card = &search->dryrun->gpu.memory;
    if (high == UINT64_MAX)
        return next < search->last ? next : search->last;
    next = low + (high - low) / 2;
    const trial *a = &search->fits[1], *b = &search->fits[0];
    if (search->fit_count >= 2 && b->value > a->value && b->reserved_bytes > a->reserved_bytes) {
        double slope =
            (double)(b->reserved_bytes - a->reserved_bytes) / (double)(b->value - a->value);
        double room =
            (double)(card->capacity_bytes - card->context_bytes) - (double)b->reserved_bytes;
        double guess = (double)low + room / slope;
        /* Not at the very ends, so that the interval shrinks whatever the script does. */
        uint64_t edge = (high - low) / 8;
        if (guess > (double)(low + edge) && guess < (double)(high - edge))
            next = (uint64_t)guess;
    }
    return next <= low ? low + 1 : next >= high ? high - 1 : next;
}

/* What was guessed, or the value above it; after a wrong guess one step without, so that the search
 * ends soon whatever the script does. */
static uint64_t next_value(max_search *search)
{
    uint64_t low = search->fits[0].value;
    if (search->was_mistaken) {
        search->was_mistaken = false;
        search->guess = 0;
        return next_by_line(search);
    }
    /* It fits as guessed; the two runs before may say more of the next value than it does, as
     * libraries choose otherwise for values that are far away. */
    if (search->guess == low)
        return low + 1;
    guess(search);
    return search->guess == 0    ? next_by_line(search)
           : search->guess > low ? search->guess
                                 : low + 1;
}

static bool run_search(max_search *search, uint64_t first)
{
    if (!try_value(search, first))
        return false;
    while (search->fit_count > 0 && search->fits[0].value < search->last &&
           search->fits[0].value + 1 < search->fails) {
        uint64_t value = next_value(search);
        if (!try_value(search, value))
            return false;
        bool fits = search->fits[0].value == value;
        search->was_mistaken = search->guess != 0 && fits != (value <= search->guess);
    }
    return true;
}

int frag_dryrun_max(const frag_dryrun *dryrun, const char *pattern, FILE *stream)
{
    uint64_t first = frag_arguments_number(dryrun->arguments, "from", 1);
    max_search search = {.dryrun = dryrun,
                         .pattern = pattern,
                         .stream = stream,
                         .fails = UINT64_MAX,
                         .last = frag_arguments_number(dryrun->arguments, "to", 65536)};
    if (strstr(pattern, "{}") == NULL || !dryrun->gpu.is_given || first > search.last) {
        frag_fail(&search.error, FRAG_E_USAGE,
                  strstr(pattern, "{}") == NULL
                      ? "it has no {} for the value; write --max '--batch {}'"
                  : !dryrun->gpu.is_given ? "it needs --gpu: which memory is it to fit into?"
                                          : "--from is above --to");
        frag_error_in(&search.error, "--max");
        return frag_report(&search.error);
    }
    bool is_over = run_search(&search, first);
    for (size_t i = 0; i < 2; i++)
        frag_dryrun_result_destroy(&search.fits[i].result);
    if (!is_over)
        return search.error.code != FRAG_E_NONE ? frag_report(&search.error)
               : search.code != 0               ? search.code
                                                : 130;
    if (search.fit_count == 0) {
        fprintf(stream, "fraglab: %" PRIu64 " does not fit on %s\n", first, dryrun->gpu.card.name);
        return 1;
    }
    fprintf(stream, "fraglab: the largest that fits on %s is %" PRIu64 "%s, %" PRIu64 " run%s\n",
            dryrun->gpu.card.name, search.fits[0].value,
            search.fails == UINT64_MAX ? " (the end of the range)" : "", search.runs,
            search.runs == 1 ? "" : "s");
    printf("%" PRIu64 "\n", search.fits[0].value);
    return 0;
}
