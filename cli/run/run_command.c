/* `fraglab run`: its options and their checks; run_jobs.c replays, run_print.c prints. */
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"
#include "base/threads.h"
#include "cli/run/run_state.h"
#include "sim/policy_engine.h"
#include "studies/usual_policies.h"

static const frag_command_option options[] = {
    FRAG_POLICY_OPTIONS,
    FRAG_DEVICE_OPTIONS_OF("sim|cuda[:N]|sim,cuda",
                           "where segments come from: the simulated device, the real card of that "
                           "number (0 unless named), or both, compared (default: sim)",
                           NULL, "lowest|bump|recorded|driver"),
    FRAG_GPU_OPTIONS,
    FRAG_LOAD_OPTIONS,
    {"on-oom", "WHAT", .choices = "stop|skip",
     .help = "after the first request that cannot be served: stop the run, or skip the request and "
             "go on (default: stop)"},
    {"fail-on-oom", .help = "exit 1 when a run ends in an OOM"},
    {"format", "FORMAT", .choices = "table|jsonl|csv|markdown",
     .help = "how rows are printed (default: table)"},
    {"stats-at", "POINT",
     .help = "add the statistics that a policy keeps itself (pytorch: torch.cuda.memory_stats, in "
             "tables as memory_summary) as they are right after an event: peak (reserved bytes "
             "first at their peak), oom (the first request that could not be served), end, or the "
             "number of an event"},
    FRAG_OUTPUT_OPTIONS,
    FRAG_JOBS_OPTION,
    {"timing",
     .help = "measure wall time and events per second (they differ from run to run; use -j 1)"},
    {"check", "N", .min = 1, .max = UINT64_MAX,
     .help = "audit the policy's structures every N events (slow)"},
    {"driver-log", "FILE", .writes = "driver log", .scope = FRAG_OF_ONE_RUN,
     .help = "write every device call of the run there (one trace of one device, one policy)"},
    FRAG_SNAPSHOT_OPTIONS,
    FRAG_CHROME_OPTION,
    FRAG_BOUNDS_OPTION,
    FRAG_PLACEMENT_OPTION,
    {"plan-seconds", "N", .min = 1, .max = 1000000,
     .help = "let policies that plan look for a better plan for N seconds of each run, and for as "
             "many steps as their option says (the plan then depends on the machine)"},
    {.name = NULL},
};

/* None: each recording gets those of frag_usual_policies. */
static bool read_policies(const frag_arguments *arguments, frag_run_state *state, frag_error *error)
{
    if (frag_arguments_value_count(arguments, "policy") > 0)
        return frag_inputs_policies(arguments, NULL, &state->policies, error);
    if (!frag_arguments_has(arguments, "label"))
        return true;
    return frag_fail_in(error, FRAG_E_USAGE, "--label",
                        "there is no --policy for it to name; add --policy NAME");
}

static bool read_options(const frag_arguments *arguments, frag_run_state *state, frag_error *error)
{
    state->threads = frag_arguments_number(arguments, "jobs", frag_core_count());
    state->run.check_every = frag_arguments_number(arguments, "check", 0);
    if (!read_policies(arguments, state, error) ||
        !frag_inputs_device(arguments, &state->device, &state->gpu, error) ||
        !frag_gpu_devices_read(arguments, &state->devices, error) ||
        !frag_inputs_format(arguments, &state->format, error))
        return false;
    const char *format = frag_arguments_value(arguments, "format");
    if (format != NULL && !frag_result_format_find(format, &state->result_format))
        return frag_fail(error, FRAG_E_USAGE,
                         "'%s' is not an output format; expected table, jsonl, csv or markdown",
                         format);
    state->stats_at.text = frag_arguments_value(arguments, "stats-at");
    if (state->stats_at.text != NULL &&
        !frag_run_point_parse(state->stats_at.text, &state->stats_at.point, error))
        return frag_error_in(error, "--stats-at");
    state->run.is_oom_skipped = frag_arguments_is(arguments, "on-oom", "skip");
    state->run.context = frag_arguments_context(arguments);
    state->run.is_timed = frag_arguments_has(arguments, "timing");
    return true;
}

static void load_source(void *context, uint64_t index)
{
    frag_run_state *state = context;
    frag_run_source *from = &state->sources[index];
    const char *path =
        frag_arguments_operand(state->arguments, state->first_source + (size_t)index);
    from->is_loaded = frag_recording_load_plain(
        path, state->format, state->files.snapshot.output != NULL, &from->recording, &from->error);
}

/* Of a recording of several devices these would mix the runs. */
static bool is_one_where_needed(const frag_run_state *state, size_t job_count, frag_error *error)
{
    for (const frag_command_option *option = options; option->name != NULL && job_count > 1;
         option++)
        if (option->scope == FRAG_OF_ONE_RUN && frag_arguments_has(state->arguments, option->name))
            return frag_fail_in(
                error, FRAG_E_USAGE, state->sources[0].recording.name,
                "the recording holds %zu traces, and --%s is about one run: cut out a device "
                "first (fraglab trace cut --device N)",
                job_count, option->name);
    return true;
}

static void run_jobs(frag_run_state *state, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (state->jobs[i].is_gpu)
            frag_run_job_on_gpu(state, &state->jobs[i]);
    frag_for_each((uint32_t)state->threads, count, frag_run_job_do, state);
    if (frag_arguments_has(state->arguments, "bounds"))
        frag_for_each((uint32_t)state->threads, count, frag_run_job_bound, state);
    if (state->files.snapshot.output != NULL)
        frag_run_jobs_snapshot(state, count);
    if (state->files.chrome.output != NULL)
        frag_run_jobs_chrome(state, count);
    if (state->files.placement.output != NULL)
        frag_run_jobs_placement(state, count);
}

static bool is_in(const frag_policy_list *policies, const frag_policy_spec *spec)
{
    for (size_t p = 0; p < policies->count; p++)
        if (policies->specs[p].values == spec->values)
            return true;
    return false;
}

/* A block of recordings: load side by side, run side by side, print in order. */
static int run_block(frag_run_state *state, size_t count, FILE *stream)
{
    state->sources = frag_alloc(count, sizeof *state->sources);
    frag_for_each((uint32_t)state->threads, count, load_source, state);
    for (size_t i = 0; i < count; i++) {
        frag_run_source *source = &state->sources[i];
        if (source->is_loaded)
            frag_recorded_by(&source->recording, source->recorded_by);
        if (source->is_loaded && state->policies.count == 0)
            frag_usual_policies(&source->recording, &source->policies);
    }
    size_t job_count = frag_run_jobs_list(state, count);
    frag_error error = {.code = FRAG_E_NONE};
    int code = 0;
    if (is_one_where_needed(state, job_count, &error)) {
        run_jobs(state, job_count);
        code = frag_run_report_problems(state, count, job_count);
        frag_run_print_rows(state, job_count, stream);
    } else {
        code = frag_report(&error);
    }
    for (size_t i = 0; i < job_count; i++) {
        /* A job that ran owns the policy it resolved; the others share those of the lists. */
        bool is_shared = is_in(&state->policies, &state->jobs[i].spec);
        for (size_t s = 0; s < count; s++)
            is_shared = is_shared || is_in(&state->sources[s].policies, &state->jobs[i].spec);
        frag_policy_plan_destroy(state->jobs[i].spec.ops, state->jobs[i].plan);
        if (!is_shared)
            frag_policy_spec_destroy(&state->jobs[i].spec);
        frag_stats_destroy(&state->jobs[i].stats.values);
        frag_gpu_run_destroy(&state->jobs[i].gpu);
    }
    frag_free(state->jobs);
    for (size_t i = 0; i < count; i++) {
        frag_policy_list_destroy(&state->sources[i].policies);
        frag_recording_destroy(&state->sources[i].recording);
    }
    frag_free(state->sources);
    return code;
}

/* The log and the snapshot are of one run. */
static bool check_one_device(const frag_run_state *state, frag_error *error)
{
    for (const frag_command_option *option = options; option->name != NULL; option++)
        if (option->scope != FRAG_OF_ALL_RUNS && state->devices.has_sim && state->devices.has_gpu &&
            frag_arguments_has(state->arguments, option->name))
            return frag_fail(error, FRAG_E_USAGE, "--%s holds one run; name one device",
                             option->name);
    return true;
}

/* A card that is not there is said once, and before anything is written. What it has in all is what
 * the simulated device beside it has. */
static bool check_gpu(frag_run_state *state, frag_error *error)
{
    frag_gpu_run before = {0};
    if (!state->devices.has_gpu)
        return true;
    if (!frag_gpu_look(&state->devices.gpu, &before.facts, error))
        return false;
    before.page_bytes = before.facts.granularity_bytes;
    before.report.free_before_bytes = before.facts.free_bytes;
    state->beside_gpu = frag_gpu_run_twin(&before, &state->device);
    return true;
}

static bool open_driver_log(frag_run_state *state, frag_output **log, frag_error *error)
{
    const char *path = frag_arguments_value(state->arguments, "driver-log");
    if (path == NULL)
        return true;
    if (state->policies.count != 1 || frag_arguments_operand_count(state->arguments) != 1)
        return frag_fail_in(error, FRAG_E_USAGE, "--driver-log",
                            "the log holds the calls of one run; give one trace and one policy");
    *log = frag_output_open(path, frag_arguments_has(state->arguments, "force"), error);
    if (*log == NULL)
        return false;
    state->device.driver_log = frag_output_stream(*log);
    frag_driver_log_begin(state->device.driver_log, state->devices.has_gpu);
    return true;
}

static void suggest_next(const frag_run_state *state, int code)
{
    if (code != 0 || state->result_format != FRAG_RESULT_TABLE || !frag_is_terminal(1) ||
        frag_arguments_is_quiet(state->arguments))
        return;
    const char *path = frag_arguments_operand(state->arguments, 0);
    if (strcmp(path, "-") == 0)
        return;
    frag_text trace = {.bytes = NULL};
    frag_text policy = {.bytes = NULL};
    frag_text_add_word(&trace, path);
    /* As typed: the row may have another name. */
    bool is_named = state->policies.count > 0;
    frag_text_add_word(&policy, is_named ? frag_arguments_value_at(state->arguments, "policy", 0)
                                         : "pytorch,best-fit,frugal");
    fprintf(stderr,
            "\nnext:  fraglab plot timeline %s --policy %s\n       fraglab min-capacity %s "
            "--policy %s\n",
            trace.bytes, policy.bytes, trace.bytes, policy.bytes);
    frag_text_destroy(&trace);
    frag_text_destroy(&policy);
}

static int run_command(const frag_arguments *arguments)
{
    frag_run_state state = {.arguments = arguments};
    frag_error error = {0};
    frag_output *log = NULL;
    frag_output *output = NULL;
    int code = 0;
    if (!read_options(arguments, &state, &error) || !frag_inputs_places(arguments, true, &error) ||
        !check_one_device(&state, &error) || !check_gpu(&state, &error) ||
        !open_driver_log(&state, &log, &error) ||
        !frag_run_files_open(arguments, &state.policies, &state.files, &error) ||
        (output = frag_inputs_output(arguments, &error)) == NULL) {
        code = frag_report(&error);
    } else {
        FILE *stream = frag_output_stream(output);
        size_t count = frag_arguments_operand_count(arguments);
        state.progress =
            frag_progress_start(frag_arguments_context(arguments), "replaying", "runs",
                                count * (state.policies.count > 0 ? state.policies.count : 4) *
                                    (state.devices.has_sim && state.devices.has_gpu ? 2 : 1));
        if (state.stats_at.text != NULL && state.result_format == FRAG_RESULT_CSV)
            state.columns = frag_stats_columns_create();
        else
            frag_result_begin(state.result_format, stream);
        size_t block = (size_t)state.threads;
        for (size_t first = 0; first < count && !frag_is_interrupted(); first += block) {
            state.first_source = first;
            int block_code =
                run_block(&state, count - first < block ? count - first : block, stream);
            code = code != 0 ? code : block_code;
        }
        frag_progress_end(state.progress);
        if (state.columns != NULL)
            frag_stats_columns_write(state.columns, stream);
    }
    bool is_worth_keeping = !frag_is_interrupted() && (code == 0 || state.row_count > 0);
    if (!frag_output_end(output, is_worth_keeping, &error))
        code = code != 0 ? code : frag_report(&error);
    if (!frag_output_end(log, is_worth_keeping, &error))
        code = code != 0 ? code : frag_report(&error);
    int files_code = frag_run_files_close(&state.files);
    code = code != 0 ? code : files_code;
    suggest_next(&state, code);
    frag_policy_list_destroy(&state.policies);
    if (frag_is_interrupted())
        return 130;
    if (code == 0 && state.has_oom &&
        (frag_arguments_has(arguments, "fail-on-oom") ||
         frag_arguments_has(arguments, "placement")))
        return 1;
    return code;
}

const frag_command frag_command_run = {
    .name = "run",
    .operands = "TRACE|FOLDER...",
    .summary = "replay traces through policies; one row per trace and policy",
    .description = "Replays each trace through each policy on the simulated device and prints a "
                   "row for each: peak reserved bytes, how far above the bound, utilisation, "
                   "device calls, and the OOM point if memory ran out. A trace is a PyTorch memory "
                   "snapshot (plain, .zst or .gz), a .fgt file, fraglab's text form, a golden log, "
                   "a recording of another tool (docs/exchange.md) or a packing problem in "
                   "MiniMalloc's CSV; '-' is stdin. A recording of several devices gives a row for "
                   "each.\n"
                   "\n"
                   "The policy offline packs the whole trace before it runs; with --capacity it "
                   "stops at the first packing that fits, and says when it has proved that there "
                   "is none. --bounds prints such a packing below the other policies.\n"
                   "\n"
                   "--stats-at replays once more, stops exactly after the event, and prints what "
                   "the policy has counted so far; at an OOM the retries and the failed request "
                   "are in it. Policies that keep no statistics, and runs that end before that "
                   "event, print none. -v prints the message of each OOM, as the program gets it.\n"
                   "\n"
                   "Exit: 0 ok; 1 an OOM, with --fail-on-oom or --placement; 2 usage; 3 bad input; "
                   "4 the system refused; 130 interrupted.",
    .examples =
        "fraglab run train.pickle  # PyTorch's settings and two other allocators\n"
        "fraglab run train.pickle --policy pytorch --policy best-fit  # compare two policies\n"
        "fraglab run train.pickle --policy all --capacity 24GiB  # would it fit on a 24 GiB card?\n"
        "fraglab run train.pickle --policy pytorch --stats-at peak  # memory_summary at the peak\n"
        "fraglab run problem.csv --policy offline --capacity 1MiB --placement out.csv  # pack\n"
        "fraglab run *.fgt --policy pytorch:max_split_size_mb=128 --format jsonl -o rows.jsonl",
    .options = options,
    .operand_min = 1,
    .operand_max = UINT32_MAX,
    .run = run_command,
};
