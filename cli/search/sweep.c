/* `fraglab sweep`: replays every combination of traces, policies, options and capacities on several
 * threads or ranks, and resumes an interrupted sweep. */

#include "cli/ranks.h"
#include "studies/sweep/sweep_ranks.h"

/* Units whose rows may wait for one before them, for each thread of the sweep: one policy can take
 * a hundred times as long as its neighbours. */
#define WINDOW_PER_THREAD 128

static const frag_command_option options[] = {
    {"output", "FILE", .letter = 'o',
     .help = "append the rows there; if the file already has the first rows of this experiment, "
             "continue after them (default: stdout)"},
    {"force", .letter = 'f', .help = "discard what the output file holds"},
    {"counts-only",
     .help = "leave out what needs a second replay: decomposition_at_peak and the holes at the "
             "peak"},
    {"replay-all",
     .help = "replay also the runs whose result must equal that of another; slower, with the "
             "same output"},
    {"check",
     .help = "only read the experiment and its recordings, and say how many runs it has; nothing "
             "is replayed"},
    {"jobs", "N", .letter = 'j',
     .help = "threads, of each process under mpirun (default: all cores); the output is the same"},
    {.name = NULL},
};

/* Of the process that writes the rows. crew NULL: it is alone. */
static bool sweep_all(frag_sweep_job *job, frag_sweep_file *file, frag_sweep_crew *crew,
                      const frag_ranks *ranks, frag_sweep_totals *totals, frag_error *error)
{
    frag_error refused = {0};
    size_t window =
        (size_t)frag_context_threads(job->context) * ranks->facts.count * WINDOW_PER_THREAD;
    frag_sweep_order *order = frag_sweep_order_create(job, file, window);
    if (crew == NULL)
        frag_sweep_work_alone(job, order);
    else if (!frag_sweep_crew_work(crew, job, order, &refused))
        frag_sweep_order_fail(order, &refused);
    return frag_sweep_order_finish(order, totals, error);
}

static uint64_t run_count(const frag_experiment *experiment)
{
    return experiment->trace_count * experiment->policy_count * experiment->capacity_count;
}

static bool sweep_to_file(const frag_arguments *arguments, const frag_ranks *ranks,
                          frag_sweep_crew *crew, frag_sweep_job *job, frag_error *error)
{
    const frag_experiment *experiment = &job->experiment;
    frag_sweep_file file = {.has_layout = !job->has_counts_only,
                            .has_bounds = experiment->has_bounds};
    frag_sweep_totals totals = {0};
    bool ok = frag_sweep_file_open(frag_arguments_value(arguments, "output"),
                                   frag_arguments_has(arguments, "force"), &file, error);
    if (ok) {
        job->progress =
            frag_progress_start(job->context, "sweeping", "runs", run_count(experiment));
        ok = sweep_all(job, &file, crew, ranks, &totals, error);
        frag_progress_end(job->progress);
        job->progress = NULL;
        frag_say(arguments, "%llu rows written, %llu of them replayed, %zu were there",
                 (unsigned long long)totals.rows, (unsigned long long)totals.replayed, file.next);
    }
    frag_sweep_file_close(&file);
    return ok;
}

/* Rank 0, or the only process. ok: the experiment was read. */
static bool lead(const frag_arguments *arguments, const frag_ranks *ranks, frag_sweep_job *job,
                 bool ok, frag_error *error)
{
    frag_sweep_crew *crew = ranks->module != NULL ? frag_sweep_crew_create(ranks) : NULL;
    /* Nothing is written, and with -f nothing thrown away, before all are there. */
    ok = ok && (crew == NULL || frag_sweep_crew_gather(crew, job, error)) &&
         (frag_is_interrupted() || sweep_to_file(arguments, ranks, crew, job, error));
    if (crew != NULL)
        frag_sweep_crew_dismiss(crew);
    return ok;
}

/* Of --check. Processes under mpirun need not hear of each other: none waits for another. */
static int say_count(const frag_arguments *arguments, frag_sweep_job *job, bool ok,
                     frag_error *error)
{
    const frag_experiment *experiment = &job->experiment;
    uint64_t traces = 0;
    for (uint32_t i = 0; ok && i < experiment->trace_count; i++) {
        const frag_sweep_recording *of = frag_sweep_hold(job, i, error);
        ok = of != NULL;
        if (ok) {
            traces += of->recording.trace_count;
            frag_sweep_let_go(job, i);
        }
    }
    if (!ok)
        return frag_report(error);
    uint64_t runs = traces * experiment->policy_count * experiment->capacity_count;
    printf("%s: %llu run%s\n", frag_arguments_operand(arguments, 0), (unsigned long long)runs,
           runs == 1 ? "" : "s");
    return 0;
}

static int sweep_command(const frag_arguments *arguments)
{
    frag_sweep_job job = {.has_counts_only = frag_arguments_has(arguments, "counts-only"),
                          .is_all_replayed = frag_arguments_has(arguments, "replay-all")};
    frag_ranks ranks;
    frag_error error = {0};
    if (!frag_ranks_join(&ranks, &error))
        return frag_report(&error);
    uint64_t threads = frag_ranks_cores(&ranks);
    int code = 0;
    bool ok = frag_arguments_count(arguments, "jobs", 1, 4096, &threads, &error) &&
              frag_sweep_job_open(frag_arguments_operand(arguments, 0), &job, &error);
    frag_context context = *frag_arguments_context(arguments);
    context.threads = (uint32_t)threads;
    job.context = &context;
    if (frag_arguments_has(arguments, "check"))
        code = ranks.facts.rank == 0 ? say_count(arguments, &job, ok, &error) : 0;
    else if (ranks.facts.rank > 0)
        frag_sweep_follow(&ranks, &job, ok ? NULL : &error);
    else if (!lead(arguments, &ranks, &job, ok, &error))
        code = frag_report(&error);
    if (ranks.module != NULL)
        ranks.module->leave();
    frag_sweep_job_close(&job);
    /* Rank 0 reports what ended the sweep, once. */
    return ranks.facts.rank > 0 ? 0 : frag_is_interrupted() ? 130 : code;
}

const frag_command frag_command_sweep = {
    .name = "sweep",
    .operands = "EXPERIMENT.yaml",
    .summary = "run all combinations of traces, policies, options and capacities; resumable",
    .description =
        "Replays every trace of an experiment through every combination of its policies, options "
        "and capacities, and writes a row for each, as 'fraglab run --format jsonl' does, in the "
        "order of the experiment. Runs whose result must equal that of another run are not "
        "replayed. A sweep that was interrupted or killed is continued with the same command: it "
        "starts after the last complete row of its output file, and the finished file has the "
        "same bytes as without the interruption. docs/sweep.md describes the experiment.\n"
        "\n"
        "Under mpirun the processes share the work, on one machine or many, and the rows are the "
        "same; docs/sweep-cluster.md.\n"
        "\n"
        "Exit: 0 ok; 2 usage; 3 bad input; 4 the system refused; 130 interrupted.",
    .examples =
        "fraglab sweep caps.yaml -o caps.jsonl  # the same command goes on where it stopped\n"
        "fraglab sweep caps.yaml --counts-only -o caps.jsonl  # twice as fast\n"
        "mpirun -n 64 fraglab sweep caps.yaml -o caps.jsonl  # on many machines",
    .options = options,
    .operand_min = 1,
    .operand_max = 1,
    .run = sweep_command,
};
