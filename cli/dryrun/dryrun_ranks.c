#include "cli/dryrun/dryrun_ranks.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/bytes.h"
#include "base/memory.h"
#include "base/text.h"

#define CARDS_MAX 8
#define EXIT_SIGNAL 128

/* "0,63": each once, in any order. */
static bool read_list(const char *text, frag_dryrun_ranks *ranks, frag_error *error)
{
    frag_text part = {0};
    bool ok = true;
    for (const char *at = text; ok; at = strchr(at, ',') + 1) {
        uint64_t rank = 0;
        frag_text_clear(&part);
        frag_text_add_bytes(&part, at, strcspn(at, ","));
        if (part.length == 0)
            ok = frag_fail(error, FRAG_E_USAGE,
                           "'%s' has an empty place; write ranks with commas between them, such as "
                           "0,63",
                           text);
        else
            ok = frag_count_parse(part.bytes, 0, ranks->count - 1, &rank, error);
        if (!ok)
            break;
        ranks->chosen = frag_realloc(ranks->chosen, ranks->chosen_count + 1, sizeof *ranks->chosen);
        ranks->chosen[ranks->chosen_count++] = rank;
        if (strchr(at, ',') == NULL)
            break;
    }
    frag_text_destroy(&part);
    if (!ok)
        return frag_error_in(error, "--only");
    qsort(ranks->chosen, ranks->chosen_count, sizeof *ranks->chosen, frag_compare_numbers);
    for (size_t i = 1; i < ranks->chosen_count; i++) {
        if (ranks->chosen[i] != ranks->chosen[i - 1])
            continue;
        return frag_fail_in(error, FRAG_E_USAGE, "--only", "rank %" PRIu64 " is there twice",
                            ranks->chosen[i]);
    }
    return true;
}

/* What starts ranks itself gives each its own number. */
static bool check_command(const char *program, frag_error *error)
{
    static const char *const launchers[] = {"torchrun", "deepspeed", "accelerate", "mpirun"};
    const char *name = frag_path_name(program);
    for (size_t i = 0; i < sizeof launchers / sizeof *launchers; i++) {
        if (strcmp(name, launchers[i]) != 0)
            continue;
        return frag_fail_in(
            error, FRAG_E_USAGE, "--ranks",
            "'%s' starts ranks itself; give the script that one rank runs, such as python "
            "train.py",
            name);
    }
    return true;
}

bool frag_dryrun_ranks_read(const frag_arguments *arguments, const char *program,
                            frag_dryrun_ranks *ranks, frag_error *error)
{
    const char *list = frag_arguments_value(arguments, "only");
    ranks->count = frag_arguments_number(arguments, "ranks", 0);
    if (ranks->count == 0 && list != NULL)
        return frag_fail_in(
            error, FRAG_E_USAGE, "--only",
            "--ranks must say how many ranks there are, such as --ranks 64 --only 0,63");
    if (ranks->count == 0)
        return true;
    uint64_t cards = ranks->count < CARDS_MAX ? ranks->count : CARDS_MAX;
    ranks->local_count = frag_arguments_number(arguments, "gpus", cards);
    if (ranks->local_count > ranks->count)
        ranks->local_count = ranks->count;
    return check_command(program, error) && read_list(list != NULL ? list : "0", ranks, error);
}

void frag_dryrun_ranks_destroy(frag_dryrun_ranks *ranks)
{
    frag_free(ranks->chosen);
}

bool frag_dryrun_ranks_run(const frag_dryrun_ranks *ranks, frag_dryrun_start *start,
                           char *const *command, frag_dryrun_end *end, frag_error *error)
{
    if (ranks->count == 0)
        return frag_dryrun_run(start, command, end, error);
    frag_dryrun_end all = {.is_started = true};
    for (size_t i = 0; i < ranks->chosen_count; i++) {
        start->rank = (frag_dryrun_rank){
            .rank = ranks->chosen[i], .count = ranks->count, .local_count = ranks->local_count};
        if (!frag_dryrun_run(start, command, end, error))
            return false;
        all.code = all.code != 0 ? all.code : end->code;
        all.is_timed_out = end->is_timed_out;
        all.is_started = end->is_started;
        all.time_ns += end->time_ns;
        if (!end->is_started || end->is_timed_out || end->code > EXIT_SIGNAL)
            break;
    }
    *end = all;
    return true;
}
