#include "cli/explain/explain_job.h"

#include <inttypes.h>
#include <string.h>

#include "base/bytes.h"
#include "base/memory.h"
#include "base/text_table.h"
#include "cli/search/ranks_print.h"
#include "studies/ranks/job.h"
#include "studies/ranks/world_json.h"

enum { ROWS_SHOWN = 12 };

typedef struct job_paths {
    const char **items;
    uint32_t *numbers;
    size_t count;
} job_paths;

static void destroy(job_paths *paths)
{
    frag_free(paths->items);
    frag_free(paths->numbers);
}

static job_paths find_paths(const frag_arguments *arguments)
{
    job_paths paths = {.count = frag_arguments_operand_count(arguments)};
    paths.items = frag_alloc(paths.count, sizeof *paths.items);
    paths.numbers = frag_alloc(paths.count, sizeof *paths.numbers);
    for (size_t i = 0; i < paths.count; i++)
        paths.items[i] = frag_arguments_operand(arguments, i);
    frag_rank_numbers(paths.items, paths.count, paths.numbers);
    return paths;
}

bool frag_explain_is_job(const frag_arguments *arguments)
{
    size_t count = frag_arguments_operand_count(arguments);
    uint32_t first = 0, second = 0;
    if (count != 2 || frag_arguments_has_folder(arguments))
        return count > 1;
    return frag_rank_number_named(frag_arguments_operand(arguments, 0), &first) &&
           frag_rank_number_named(frag_arguments_operand(arguments, 1), &second) && first != second;
}

static void print_try(frag_text_table *table, const frag_world *world, const char *label,
                      size_t index, uint64_t capacity)
{
    frag_world_try one = frag_world_try_of(world, index);
    if (one.run_count == 0)
        return;
    frag_text_table_add(table, label);
    frag_text *outcome = frag_text_table_cell(table);
    if (one.failed_count > 0)
        frag_text_add(outcome, "rank %" PRIu32, world->ranks[one.rank].number);
    if (one.failed_count > 1)
        frag_text_add(outcome, " and %zu more", one.failed_count - 1);
    if (one.failed_count == 0)
        frag_text_add(outcome, "none");
    frag_text_table_add(table, FRAG_BYTES(one.reserved_bytes));
    frag_text *spare = frag_text_table_cell(table);
    if (one.failed_count == 0)
        frag_text_add(spare, "%s, rank %" PRIu32, FRAG_BYTES(capacity - one.reserved_bytes),
                      world->ranks[one.rank].number);
    frag_text_table_add(table, FRAG_COUNT(one.device_calls));
}

/* As PYTORCH_CUDA_ALLOC_CONF has it, where it is PyTorch's. */
static void print_best(FILE *stream, const frag_world *world, const frag_policy_list *tried,
                       uint64_t capacity)
{
    size_t best = frag_world_best_try(world, tried->count);
    uint64_t needed = 0, calls = 0;
    for (size_t i = 0; i < world->count; i++) {
        needed = world->ranks[i].needed_bytes > needed ? world->ranks[i].needed_bytes : needed;
        calls += frag_run_memory_calls(&world->ranks[i].run);
    }
    if (best == tried->count) {
        fprintf(stream, "none of these keeps all ranks going");
    } else {
        const char *label = tried->specs[best].text;
        const char *conf = strncmp(label, "pytorch", 7) == 0 ? strchr(label, ':') : NULL;
        frag_world_try one = frag_world_try_of(world, best);
        if (strcmp(label, "pytorch") == 0)
            fprintf(stream, "on all ranks: the default settings");
        else
            fprintf(stream, "on all ranks: %s%s", conf != NULL ? "PYTORCH_CUDA_ALLOC_CONF=" : "",
                    conf != NULL ? conf + 1 : label);
        fprintf(stream, ", %s to spare on rank %" PRIu32 "; %s device calls, %s as recorded",
                FRAG_BYTES(capacity - one.reserved_bytes), world->ranks[one.rank].number,
                FRAG_COUNT(one.device_calls), FRAG_COUNT(calls));
    }
    fprintf(stream, "\nas recorded the largest rank reserves %s where there is room\n",
            FRAG_BYTES(needed));
}

static void print_tries(FILE *stream, const frag_world *world, const frag_policy_list *tried,
                        uint64_t capacity)
{
    static const char *const titles[] = {"one setting for all ranks", "out of memory",
                                         "most reserved", "least to spare", "device calls"};
    frag_text_table table = {.columns = 5};
    frag_text_table_add_line(&table, titles);
    for (size_t i = 0; i < tried->count; i++)
        print_try(&table, world, tried->specs[i].text, i, capacity);
    fputc('\n', stream);
    frag_text_table_print(&table, false, stream);
    if (frag_world_recorded_capacity(world->ranks, world->count) != FRAG_UNLIMITED)
        fprintf(stream, "to the end of the recordings: what the job would have requested after the "
                        "failure is not in them\n");
    print_best(stream, world, tried, capacity);
}

/* Without --capacity: what the recordings say that the device of the rank that ran out had. */
static bool find_capacity(const frag_job_sources *sources, const frag_context *context,
                          frag_explain_options *options, frag_error *error)
{
    const frag_world_options plain = {.context = context, .is_capacity_only = true};
    frag_job job;
    if (options->capacity_bytes != FRAG_UNLIMITED)
        return true;
    bool ok = frag_job_measure(sources, &plain, &job, error);
    if (ok)
        options->capacity_bytes = frag_world_recorded_capacity(job.ranks, job.count);
    frag_job_destroy(&job);
    if (ok && options->capacity_bytes == FRAG_UNLIMITED)
        return frag_fail(error, FRAG_E_USAGE,
                         "no rank ran out of memory on a device whose size is recorded; --capacity "
                         "asks what would happen on a device of that size");
    return ok;
}

/* The first that runs out of memory; where no replay does, one that did when it was recorded. */
static const frag_world_rank *find_first(const frag_world *world)
{
    for (size_t i = 0; world->oom_count == 0 && i < world->count; i++)
        if (world->ranks[i].recorded_capacity != FRAG_UNLIMITED)
            return &world->ranks[i];
    return world->oom_count > 0 ? &world->ranks[world->first_oom] : NULL;
}

static void print_world(FILE *stream, const frag_world *world, const frag_world_options *measured,
                        bool is_json)
{
    uint64_t capacity = measured->device->capacity_bytes;
    if (is_json) {
        frag_world_print_json(stream, world, measured->tried, capacity);
        return;
    }
    frag_world_print(stream, world, measured->device, ROWS_SHOWN);
    if (world->oom_count > 0)
        print_tries(stream, world, measured->tried, capacity);
}

static bool print_job(const frag_job_sources *sources, const frag_world_options *measured,
                      const job_paths *paths, bool is_json, FILE *stream, const char **first,
                      bool *is_recorded, frag_error *error)
{
    frag_job job;
    frag_world world = {0};
    bool ok = frag_job_measure(sources, measured, &job, error) &&
              frag_world_make(job.ranks, job.count, NULL, 0, &world, error);
    if (ok)
        print_world(stream, &world, measured, is_json);
    const frag_world_rank *rank = ok ? find_first(&world) : NULL;
    *is_recorded = rank != NULL && rank->recorded_capacity != FRAG_UNLIMITED;
    for (size_t i = 0; rank != NULL && i < paths->count; i++)
        if (paths->numbers[i] == rank->number)
            *first = paths->items[i];
    if (rank != NULL && !is_json)
        fprintf(stream, "\nrank %" PRIu32 ", the first\n\n", rank->number);
    frag_world_destroy(&world);
    frag_job_destroy(&job);
    return ok;
}

bool frag_explain_job(const frag_arguments *arguments, const frag_context *context,
                      frag_trace_format format, frag_explain_options *options, FILE *stream,
                      const char **first, frag_error *error)
{
    job_paths paths = find_paths(arguments);
    frag_policy_list tried = {0};
    const frag_job_sources sources = {.operands = paths.items,
                                      .operand_count = paths.count,
                                      .format = format,
                                      .threads = context->threads};
    bool is_given = options->capacity_bytes != FRAG_UNLIMITED;
    bool is_recorded = false;
    *first = NULL;
    bool ok = find_capacity(&sources, context, options, error) &&
              frag_world_list_tries(&options->extra, &tried, error);
    const frag_device_spec device = {.capacity_bytes = options->capacity_bytes};
    const frag_world_options measured = {.context = context, .device = &device, .tried = &tried};
    ok = ok &&
         print_job(&sources, &measured, &paths, frag_arguments_is(arguments, "format", "jsonl"),
                   stream, first, &is_recorded, error);
    /* That failure is explained as it was recorded. */
    if (is_recorded && !is_given)
        options->capacity_bytes = FRAG_UNLIMITED;
    frag_policy_list_destroy(&tried);
    destroy(&paths);
    return ok;
}
