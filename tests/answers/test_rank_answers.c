/* What is said of the ranks of jobs that are drawn at random: of recordings that are alike, nearly
 * alike or have an out of memory, in stages or not, with policies that are tried; and the numbers
 * of ranks in names of files and in lists. What was changed on purpose is pinned anew:
 *
 *   test_rank_answers            compares with tests/data/answers/ranks.txt.zst
 *   test_rank_answers --write    prints what that file should hold (make answers-golden);
 *                                with FRAG_PINNED_WHOLE in the environment every answer whole
 */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "base/memory.h"
#include "studies/ranks/rank_numbers.h"
#include "studies/ranks/world.h"
#include "studies/ranks/world_json.h"
#include "tests/support/pinned_lines.h"
#include "tests/support/text_recording.h"
#include "tests/support/xorshift.h"

enum {
    JOBS = 6000,
    GROUP = 100,
    RANKS_MAX = 5,
    STEPS_MAX = 6,
    BLOCKS_MAX = 8,
    LISTS = 4000,
    NAMES = 4000
};

typedef struct job_draw {
    uint64_t bits;
} job_draw;

static uint64_t draw(job_draw *of, uint64_t limit)
{
    return xorshift_next(&of->bits) % limit;
}

static bool one_in(job_draw *of, uint64_t count)
{
    return draw(of, count) == 0;
}

static job_draw begin(uint64_t seed)
{
    job_draw of = {(seed + 1) * 0x9e3779b97f4a7c15u};
    for (int i = 0; i < 4; i++)
        (void)draw(&of, 2);
    return of;
}

/* ---- recordings */

/* The steps of a program; of = the job's own draws, so that ranks are alike but for what is added.
 */
static void write_program(frag_text *text, job_draw of, uint64_t rank, bool is_other, bool has_oom)
{
    uint64_t steps = 1 + draw(&of, STEPS_MAX);
    uint64_t blocks = 1 + draw(&of, BLOCKS_MAX);
    bool has_marks = !one_in(&of, 3);
    bool has_sites = !one_in(&of, 3);
    uint64_t unit = (uint64_t)1 << (9 + draw(&of, 14));
    frag_text_add(text, "# fraglab trace 2\nframe \"f\" \"a.py\" 3\nframe \"g\" \"a.py\" 9\n"
                        "frame \"main\" \"a.py\" 20\nsite 0 2\nsite 1 2\n");
    for (uint64_t step = 0; step < steps + (is_other && one_in(&of, 3)); step++) {
        if (has_marks)
            frag_text_add(text, "mark \"step\"\n");
        for (uint64_t i = 0; i < blocks; i++) {
            uint64_t bytes = unit * (1 + draw(&of, 9));
            bytes += is_other && i == rank % blocks ? 512 * (1 + rank) : 0;
            frag_text_add(text, "alloc %" PRIu64 " %" PRIu64, step * BLOCKS_MAX + i, bytes);
            frag_text_add(text, has_sites ? " site=%d\n" : "\n", (int)(1 + i % 2));
        }
        for (uint64_t i = 0; i < blocks; i++)
            if (i % 4 != 3)
                frag_text_add(text, "free %" PRIu64 "\n", step * BLOCKS_MAX + i);
    }
    if (has_oom)
        frag_text_add(text,
                      "segment_alloc %" PRIu64 " addr=0x7f0000000000\noom %" PRIu64 " free=%" PRIu64
                      "\nalloc - %" PRIu64 " failed\n",
                      unit * 40, unit * 30, unit * rank, unit * 30);
}

static bool measure(const frag_world_options *options, const frag_text *text, uint32_t number,
                    frag_world_rank *rank, frag_text *out)
{
    frag_recording recording;
    frag_findings findings;
    frag_error error = {0};
    frag_test_load_well(text->bytes, &recording, &findings);
    bool ok =
        recording.trace_count > 0 &&
        frag_world_rank_measure(options, &recording, &recording.traces[0], number, rank, &error);
    frag_text_add(out, "%d %" PRIx64 " %" PRIx64 " %s\n", ok, ok ? rank->needed_bytes : 0,
                  ok ? rank->recorded_capacity : 0, error.sentence);
    frag_recording_destroy(&recording);
    return ok;
}

/* ---- answers */

static void tell_world(frag_text *out, frag_world *world, const frag_policy_list *tried,
                       uint64_t capacity_bytes)
{
    char *bytes = NULL;
    size_t count = 0;
    FILE *stream = open_memstream(&bytes, &count);
    assert_non_null(stream);
    frag_world_print_json(stream, world, tried, capacity_bytes);
    fclose(stream);
    const char *tool = strstr(bytes, "\"tool\":{"); /* which has the commit */
    frag_text_add(out, "%s", tool != NULL ? strchr(tool, '}') : bytes);
    free(bytes);
    frag_text_add(out, "best %zu of %" PRIx64,
                  tried != NULL ? frag_world_best_try(world, tried->count) : 0,
                  frag_world_recorded_capacity(world->ranks, world->count));
    frag_text_add(out, ", %zu ooms, %zu first by step %d", world->oom_count, world->first_oom,
                  world->oom_count > 0 && world->is_oom_by_step);
    for (size_t i = 0; i < world->stage_count; i++)
        for (int k = 0; k < FRAG_WORLD_FIGURES; k++)
            frag_text_add(out, " %.9g", frag_world_imbalance(&world->stages[i].figures[k]));
    for (size_t i = 0; tried != NULL && i < tried->count; i++) {
        frag_world_try one = frag_world_try_of(world, i);
        frag_text_add(out, " %zu,%zu,%zu,%" PRIx64 ",%" PRIu64, one.run_count, one.failed_count,
                      one.rank, one.reserved_bytes, one.device_calls);
    }
    for (uint64_t amount = 1; amount < FRAG_GIB; amount *= 8)
        frag_text_add(out, " %d",
                      frag_world_is_uneven(world, &(frag_threshold){.amount = (double)amount}));
    for (size_t i = 0; i < world->count; i++) {
        frag_text_add(out, " ");
        if (world->alike[i] == i)
            frag_world_add_alike(out, world, i);
        frag_text_add(out, "%d", frag_world_steps_compare(&world->ranks[0], &world->ranks[i]));
    }
    frag_text_add(out, "\n");
}

static void tell_job(frag_text *out, uint64_t seed)
{
    static const char *const policies[] = {NULL, "best-fit", "pytorch:version=2.4", "tlsf"};
    static const char *const stages[] = {"0-1", "0", "1,2", "0-9", "2-1", "3"};
    job_draw of = begin(seed);
    frag_world_rank ranks[RANKS_MAX];
    frag_policy_list tried = {0};
    frag_policy_spec spec = {0};
    frag_rank_list lists[2] = {{0}, {0}};
    frag_error error = {0};
    frag_world world;
    frag_device_spec device = {.capacity_bytes = FRAG_UNLIMITED};
    if (!one_in(&of, 3))
        device.capacity_bytes = ((uint64_t)4 << 20) << draw(&of, 8);
    const char *policy = policies[draw(&of, 4)];
    frag_world_options options = {
        .device = &device, .samples = draw(&of, 2) * 12, .is_capacity_only = one_in(&of, 12)};
    if (policy != NULL && frag_policy_spec_parse(policy, &spec, &error))
        options.spec = &spec;
    bool has_tried = one_in(&of, 2);
    if (has_tried && frag_policy_specs_parse("pytorch", &tried.specs, &tried.count, &error) &&
        frag_policy_specs_parse("best-fit,buddy", &tried.specs, &tried.count, &error))
        options.tried = &tried;
    size_t count = 0;
    uint64_t wanted = 2 + draw(&of, RANKS_MAX - 1);
    uint64_t stage_count = draw(&of, 3);
    bool is_reversed = one_in(&of, 3);
    job_draw program = begin(seed + 100000);
    for (uint64_t i = 0; i < wanted; i++) {
        frag_text text = {0};
        uint64_t number = is_reversed ? wanted - i : i;
        write_program(&text, program, number, one_in(&of, 2), one_in(&of, 4));
        if (one_in(&of, 60))
            number = 0;
        ranks[count] = (frag_world_rank){0};
        bool ok = measure(&options, &text, (uint32_t)number, &ranks[count], out);
        if (ok)
            count++;
        else
            frag_world_rank_destroy(&ranks[count]);
        frag_text_destroy(&text);
    }
    for (uint64_t i = 0; i < stage_count; i++)
        if (!frag_rank_list_parse(stages[draw(&of, 6)], &lists[i], &error))
            frag_text_add(out, "%s\n", error.sentence);
    error = (frag_error){0};
    if (count < 2 || options.is_capacity_only)
        frag_text_add(out, "%" PRIx64 "\n", frag_world_recorded_capacity(ranks, count));
    else if (frag_world_make(ranks, count, lists, (size_t)stage_count, &world, &error))
        tell_world(out, &world, options.tried, device.capacity_bytes);
    else
        frag_text_add(out, "%d in '%s': %s\n", (int)error.code, error.where, error.sentence);
    if (count >= 2 && !options.is_capacity_only)
        frag_world_destroy(&world);
    for (size_t i = 0; i < count; i++)
        frag_world_rank_destroy(&ranks[i]);
    for (int i = 0; i < 2; i++)
        frag_rank_list_destroy(&lists[i]);
    frag_policy_list_destroy(&tried);
    frag_policy_spec_destroy(&spec);
}

/* ---- numbers */

static void add_name(frag_text *text, job_draw *of, uint64_t form)
{
    static const char *const parts[] = {"rank", "Rank",    "rank_", "rank-", "run.", "a/",
                                        "r",    ".pickle", "rank/", "gpu",   "00",   "x"};
    for (uint64_t i = 0; i < 1 + form % 4; i++) {
        frag_text_add(text, "%s", parts[(form / 4 + i * 5) % (sizeof parts / sizeof *parts)]);
        if ((form >> i & 1) == 0)
            frag_text_add(text, "%" PRIu64, draw(of, 13));
        if (one_in(of, 90))
            frag_text_add(text, "4294967296");
    }
}

static void tell_names(frag_text *out, uint64_t seed)
{
    job_draw of = begin(seed);
    frag_text texts[6] = {{0}};
    const char *paths[6];
    uint32_t numbers[6];
    size_t count = 1 + (size_t)draw(&of, 6);
    uint64_t form = draw(&of, 4096);
    for (size_t i = 0; i < count; i++) {
        add_name(&texts[i], &of, one_in(&of, 30) ? draw(&of, 4096) : form);
        paths[i] = texts[i].bytes;
    }
    frag_rank_numbers(paths, count, numbers);
    for (size_t i = 0; i < count; i++) {
        uint32_t named = 77;
        bool is_named = frag_rank_number_named(paths[i], &named);
        frag_text_add(out, "%s %" PRIu32 " %d %" PRIu32 ", ", paths[i], numbers[i], is_named,
                      named);
        frag_text_destroy(&texts[i]);
    }
    frag_text_add(out, "\n");
}

static void tell_list(frag_text *out, uint64_t seed)
{
    static const char *const parts[] = {"0",          "1",          "2", "3", "9",
                                        "10",         "-",          "-", ",", ",",
                                        "4294967295", "4294967296", " ", "x", "4294967294"};
    job_draw of = begin(seed);
    frag_text text = {0};
    frag_rank_list list = {0};
    frag_error error = {0};
    for (uint64_t i = 1 + draw(&of, 7); i-- > 0;)
        frag_text_add(&text, "%s",
                      parts[draw(&of, one_in(&of, 4) ? sizeof parts / sizeof *parts : 10)]);
    frag_text_add(out, "%s: ", text.bytes);
    if (frag_rank_list_parse(text.bytes, &list, &error)) {
        for (size_t i = 0; i < list.count; i++)
            frag_text_add(out, "%" PRIu32 "-%" PRIu32 " ", list.ranges[i][0], list.ranges[i][1]);
        for (uint32_t i = 0; i < 12; i++)
            frag_text_add(out, "%d", frag_rank_list_has(&list, i));
        frag_text_add(out, "\n");
    } else {
        frag_text_add(out, "%s\n", error.sentence);
    }
    frag_rank_list_destroy(&list);
    frag_text_destroy(&text);
}

static void tell_all(frag_text *out)
{
    for (uint64_t seed = 0; seed < JOBS;) {
        size_t from = out->length;
        for (int i = 0; i < GROUP; i++)
            tell_job(out, seed++);
        pinned_fold(out, from, "jobs");
    }
    size_t from = out->length;
    for (uint64_t seed = 0; seed < NAMES; seed++)
        tell_names(out, seed);
    pinned_fold(out, from, "names");
    from = out->length;
    for (uint64_t seed = 0; seed < LISTS; seed++)
        tell_list(out, seed);
    pinned_fold(out, from, "lists");
}

static const pinned_lines pinned = {"tests/data/answers/ranks.txt.zst", tell_all, "answers-golden"};

int main(int argc, char **argv)
{
    return pinned_lines_test(&pinned, argc, argv);
}
