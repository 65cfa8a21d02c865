#include "cli/search/ranks_print.h"

#include <inttypes.h>
#include <string.h>

#include "base/bytes.h"
#include "base/text_table.h"
#include "cli/site_table.h"

enum { RANKS_TEXT = 24, GAPS_SHOWN = 6 };

static void add_step(frag_text *text, const frag_world_rank *rank, uint64_t step, uint64_t event)
{
    if (rank->step_count > 0 && step == 0)
        frag_text_add(text, "before step 1");
    else if (rank->step_count > 0)
        frag_text_add(text, "step %" PRIu64, step);
    else
        frag_text_add(text, "event %s", FRAG_COUNT(event));
}

static void add_rank(frag_text_table *table, const frag_world *world, size_t index, bool has_oom)
{
    const frag_world_rank *rank = &world->ranks[index];
    const frag_replay_result *replay = &rank->run.replay;
    frag_world_add_alike(frag_text_table_cell(table), world, index);
    frag_text_table_add(table, FRAG_COUNT(rank->request_count));
    frag_text_table_add(table, FRAG_BYTES(rank->requested_bytes));
    frag_text_table_add(table, FRAG_BYTES(replay->peak.allocated_bytes));
    frag_text_table_add(table, FRAG_BYTES(replay->peak.reserved_bytes));
    add_step(frag_text_table_cell(table), rank, rank->peak_step, rank->peak_event);
    if (!has_oom)
        return;
    if (rank->needed_bytes > 0)
        frag_text_table_add(table, FRAG_BYTES(rank->needed_bytes));
    if (replay->oom.has_happened)
        add_step(frag_text_table_cell(table), rank, rank->oom_step, replay->oom.event);
    else
        frag_text_table_add(table, "fits");
}

static void add_steps_begin(frag_text *text, const frag_world_rank *rank)
{
    bool is_mark = rank->steps_by == FRAG_STEPS_BY_MARKS;
    frag_text_add(text, is_mark ? "each mark '%s'" : "each request of %s", rank->steps_name);
}

/* Where steps begin, as what comes before the first mark is a step of the program as well. */
static void print_steps(FILE *stream, const frag_world *world)
{
    const frag_world_rank *first = NULL, *other = NULL;
    for (size_t i = 0; i < world->count && other == NULL; i++) {
        const frag_world_rank *rank = &world->ranks[i];
        if (rank->step_count == 0)
            continue;
        first = first == NULL ? rank : first;
        other = frag_world_steps_compare(first, rank) ? NULL : rank;
    }
    if (first == NULL)
        return;
    frag_text text = {0};
    frag_text_add(&text, "a step begins at ");
    add_steps_begin(&text, first);
    if (other != NULL) {
        frag_text_add(&text, " of rank %" PRIu32 ", but at ", first->number);
        add_steps_begin(&text, other);
        frag_text_add(&text, " of rank %" PRIu32 ": their numbers do not compare", other->number);
    }
    fputs(text.bytes, stream);
    fputc('\n', stream);
    frag_text_destroy(&text);
}

/* Numbers between the lowest and the highest. Devices of one recording have no gaps to fill. */
static void print_gaps(FILE *stream, const frag_world *world)
{
    size_t gaps = 0;
    if (strcmp(world->ranks[0].name, world->ranks[world->count - 1].name) == 0)
        return;
    for (size_t i = 1; i < world->count; i++) {
        uint32_t begin = world->ranks[i - 1].number + 1, end = world->ranks[i].number;
        if (begin == end || gaps++ > GAPS_SHOWN)
            continue;
        fprintf(stream, "%s", gaps == 1 ? "no recording of rank " : ", ");
        if (gaps > GAPS_SHOWN)
            fprintf(stream, "...");
        else if (end - begin > 1)
            fprintf(stream, "%" PRIu32 "-%" PRIu32, begin, end - 1);
        else
            fprintf(stream, "%" PRIu32, begin);
    }
    if (gaps > 0)
        fputc('\n', stream);
}

/* A line for all ranks whose requests are the same. */
static void print_ranks(FILE *stream, const frag_world *world, uint64_t rows)
{
    const char *titles[] = {"rank",          "requests", "requested",     "allocated",
                            "peak reserved", "peak in",  "out of memory", NULL};
    frag_text_table table = {.columns = world->oom_count > 0 ? 7 : 6};
    size_t lines = 0;
    if (world->oom_count > 0 && world->ranks[0].needed_bytes > 0) {
        table.columns++;
        titles[6] = "with room";
        titles[7] = "out of memory";
    }
    frag_text_table_add_line(&table, titles);
    for (size_t i = 0; i < world->count; i++)
        if (world->alike[i] == i && lines++ < rows)
            add_rank(&table, world, i, world->oom_count > 0);
    frag_text_table_print(&table, false, stream);
    if (lines > rows)
        fprintf(stream, "and %" PRIu64 " more lines: --rows N, or --format jsonl\n", lines - rows);
    if (lines < world->count)
        fprintf(stream, "ranks of one line request the same, one by one\n");
    print_steps(stream, world);
    print_gaps(stream, world);
    if (world->oom_count > 0)
        fprintf(stream, "allocated and reserved of a rank that runs out of memory are its peaks "
                        "until then\n");
}

static void add_side(frag_text *text, const frag_world *world, uint64_t bytes, size_t rank)
{
    frag_text_add(text, "%s, rank %" PRIu32, FRAG_BYTES(bytes), world->ranks[rank].number);
}

static void print_figures(FILE *stream, const frag_world *world, const frag_world_stage *stage)
{
    static const char *const titles[] = {"", "least", "mean", "most", "most above mean"};
    frag_text_table table = {.columns = 5};
    frag_text_table_add_line(&table, titles);
    for (size_t f = 0; f < FRAG_WORLD_FIGURES; f++) {
        const frag_world_figure *figure = &stage->figures[f];
        frag_text_table_add(&table, figure->title);
        add_side(frag_text_table_cell(&table), world, figure->least, figure->least_rank);
        frag_text_table_add(&table, FRAG_BYTES((uint64_t)(figure->mean + 0.5)));
        add_side(frag_text_table_cell(&table), world, figure->most, figure->most_rank);
        frag_text_add(frag_text_table_cell(&table), "%.1f %%", 100 * frag_world_imbalance(figure));
    }
    frag_text_table_print(&table, false, stream);
}

static void print_changes(FILE *stream, const frag_world *world, const frag_world_stage *stage,
                          uint64_t rows)
{
    char ranks[2][RANKS_TEXT];
    const size_t sides[] = {stage->figures[0].least_rank, stage->figures[0].most_rank};
    if (stage->change_count == 0)
        return;
    for (size_t i = 0; i < 2; i++)
        snprintf(ranks[i], sizeof ranks[i], "rank %" PRIu32, world->ranks[sides[i]].number);
    const char *const titles[] = {"live at the peak", ranks[0], ranks[1], "blocks", NULL};
    fputc('\n', stream);
    frag_site_table_print(stream, titles, stage->changes,
                          stage->change_count < rows ? stage->change_count : (size_t)rows);
    if (stage->change_count > rows)
        fprintf(stream, "and %" PRIu64 " more lines: --rows N, or --format jsonl\n",
                stage->change_count - rows);
}

static void print_stage(FILE *stream, const frag_world *world, size_t index, uint64_t rows)
{
    const frag_world_stage *stage = &world->stages[index];
    fputc('\n', stream);
    if (world->stage_count > 1)
        fprintf(stream, "stage %zu of %zu, %zu rank%s from %" PRIu32 " on\n", index + 1,
                world->stage_count, stage->count, stage->count == 1 ? "" : "s",
                world->ranks[stage->ranks[0]].number);
    print_figures(stream, world, stage);
    print_changes(stream, world, stage, rows);
}

static void print_verdict(FILE *stream, const frag_world *world, const frag_device_spec *device)
{
    if (device->capacity_bytes == FRAG_UNLIMITED)
        return;
    fputc('\n', stream);
    const frag_world_rank *first = &world->ranks[world->first_oom];
    if (world->oom_count == 0) {
        fprintf(stream, "all ranks fit in %s\n", FRAG_BYTES(device->capacity_bytes));
        return;
    }
    frag_text when = {0};
    add_step(&when, first, first->oom_step, first->run.replay.oom.event);
    fprintf(stream, "in %s %zu of %zu ranks run%s out of memory, rank %" PRIu32 " first: %s\n",
            FRAG_BYTES(device->capacity_bytes), world->oom_count, world->count,
            world->oom_count == 1 ? "s" : "", first->number, when.bytes);
    frag_text_destroy(&when);
}

static void print_policy(FILE *stream, const frag_world *world)
{
    size_t same = 1;
    while (same < world->count && strcmp(world->ranks[same].policy, world->ranks[0].policy) == 0)
        same++;
    if (same == world->count)
        fprintf(stream, "%zu ranks, replayed with %s\n\n", world->count, world->ranks[0].policy);
    else
        fprintf(stream,
                "%zu ranks, each replayed with its own settings (rank %" PRIu32 ": %s; rank "
                "%" PRIu32 ": %s)\n\n",
                world->count, world->ranks[0].number, world->ranks[0].policy,
                world->ranks[same].number, world->ranks[same].policy);
}

static void print_sites_note(FILE *stream, const frag_world *world)
{
    size_t count = 0, first = 0;
    for (size_t i = world->count; i-- > 0;)
        if (world->ranks[i].is_by_size) {
            count++;
            first = i;
        }
    if (count == world->count)
        fprintf(stream, "\nthe recordings hold no call stacks; blocks are added up by size\n");
    else if (count > 0)
        fprintf(stream,
                "\n%zu of %zu recordings hold no call stacks, as that of rank %" PRIu32
                "; what they hold is not compared with what the others hold\n",
                count, world->count, world->ranks[first].number);
}

void frag_world_print(FILE *stream, const frag_world *world, const frag_device_spec *device,
                      uint64_t rows)
{
    print_policy(stream, world);
    print_ranks(stream, world, rows);
    for (size_t s = 0; s < world->stage_count; s++)
        print_stage(stream, world, s, rows);
    print_verdict(stream, world, device);
    print_sites_note(stream, world);
}
