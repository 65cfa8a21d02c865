/* The rows of `fraglab run`: what is replayed, where, and what else is taken from it. */
#include <string.h>

#include "base/bytes.h"
#include "base/memory.h"
#include "cli/run/run_state.h"
#include "sim/policy_engine.h"

static bool take_stats(const frag_run_state *state, frag_run_job *task,
                       const frag_device_spec *device)
{
    frag_run_options run = state->run;
    run.plan = task->plan;
    return frag_run_stats_take(
        &state->stats_at,
        &(frag_run_setup){task->recording, task->trace, task->spec.ops, task->spec.values, device},
        &run, &task->result, &task->stats_error, &task->stats, &task->error);
}

typedef struct plan_deadline {
    bool is_timed;
    uint64_t end_ns;
} plan_deadline;

static bool is_planned_enough(void *context)
{
    const plan_deadline *now = context;
    return frag_is_interrupted() || (now->is_timed && frag_clock_ns() >= now->end_ns);
}

/* The policy becomes the job's own, as it is for this recording, with its plan. */
static bool begin_job(const frag_run_state *state, frag_run_job *task)
{
    frag_policy_spec resolved = {0};
    if (frag_is_interrupted() ||
        !frag_run_stats_check(&state->stats_at, task->trace, &task->error) ||
        !frag_policy_resolve(state->run.context, &task->spec, task->recording, &resolved,
                             &task->error))
        return false;
    task->spec = resolved;
    uint64_t seconds = frag_arguments_number(state->arguments, "plan-seconds", 0);
    plan_deadline now = {.is_timed = seconds > 0};
    if (now.is_timed)
        now.end_ns = frag_clock_ns() + seconds * 1000000000u;
    frag_plan_limits limits = {
        .capacity_bytes = frag_device_plan_bytes(&task->device, task->trace),
        .is_stopped = is_planned_enough,
        .context = &now,
    };
    return frag_replay_plan(
        &(frag_run_setup){task->recording, task->trace, resolved.ops, resolved.values, NULL},
        &limits, &task->plan, &task->error);
}

static frag_run_options options_of(const frag_run_state *state, const frag_run_job *task)
{
    frag_run_options run = state->run;
    run.plan = task->plan;
    return run;
}

/* What the card was asked and what it answered is enough for everything but the counts. */
static bool finish_on_echo(const frag_run_state *state, frag_run_job *task)
{
    frag_device_opener opener;
    frag_device_spec echo = frag_gpu_run_echo(&task->gpu, &state->device, &opener);
    frag_run_options run = options_of(state, task);
    return frag_run_layout(&(frag_run_setup){task->recording, task->trace, task->spec.ops,
                                             task->spec.values, &echo},
                           &run, &task->result, &task->error) &&
           take_stats(state, task, &echo);
}

/* One after the other: jobs beside each other would share the card's memory. */
void frag_run_job_on_gpu(frag_run_state *state, frag_run_job *task)
{
    const frag_gpu_choice *gpu = &state->devices.gpu;
    if (!begin_job(state, task))
        return;
    frag_run_options run = options_of(state, task);
    task->is_counted =
        frag_gpu_run_count(gpu, task->recording, task->trace, task->spec.ops, task->spec.values,
                           &state->device, &run, &task->result, &task->gpu, &task->error);
    if (!task->is_counted)
        return;
    task->device = frag_gpu_run_twin(&task->gpu, &state->device);
    task->row_gpu = (frag_row_gpu){
        .ordinal = gpu->ordinal,
        .facts = task->gpu.facts,
        .report = task->gpu.report,
        .limit = gpu->has_ballast                                 ? "ballast"
                 : state->device.capacity_bytes != FRAG_UNLIMITED ? "budget"
                                                                  : "card",
        .is_touched = gpu->is_touched,
    };
    task->is_ok = finish_on_echo(state, task);
    if (state->files.snapshot.output == NULL && state->files.chrome.output == NULL)
        frag_gpu_run_destroy(&task->gpu);
}

void frag_run_job_do(void *context, uint64_t index)
{
    frag_run_state *state = context;
    frag_run_job *task = &state->jobs[index];
    if (!task->is_gpu && begin_job(state, task)) {
        if (task->has_twin && state->jobs[index + 1].is_counted)
            task->device = state->jobs[index + 1].device;
        frag_run_options run = options_of(state, task);
        task->is_ok = frag_run(&(frag_run_setup){task->recording, task->trace, task->spec.ops,
                                                 task->spec.values, &task->device},
                               &run, &task->result, &task->error) &&
                      take_stats(state, task, &task->device);
    }
    frag_progress_add(state->progress, 1);
}

/* The first job of a trace bounds it for all. */
void frag_run_job_bound(void *context, uint64_t index)
{
    frag_run_state *state = context;
    frag_run_job *task = &state->jobs[index];
    bool is_first = index == 0 || state->jobs[index - 1].trace != task->trace;
    if (is_first && !frag_is_interrupted())
        task->has_packing = frag_bounds_find(state->run.context, task->recording, task->trace,
                                             &task->packing, &task->packing_error);
    /* A bound that was cut short is none, and a row without its bound is not whole. */
    if (frag_is_interrupted())
        task->result.replay.is_interrupted = true;
}

static void add_jobs(frag_run_state *state, const frag_run_job *like, size_t *count,
                     size_t *capacity)
{
    const frag_gpu_devices *devices = &state->devices;
    for (int i = devices->has_sim ? 0 : 1; i < (devices->has_gpu ? 2 : 1); i++) {
        state->jobs = frag_grow(state->jobs, capacity, *count + 1, sizeof *state->jobs);
        state->jobs[*count] = *like;
        state->jobs[*count].is_gpu = i == 1;
        state->jobs[*count].has_twin = i == 0 && devices->has_gpu;
        ++*count;
    }
}

/* Every trace of the loaded recordings with every policy on every device, in the order in which
 * rows are printed. */
size_t frag_run_jobs_list(frag_run_state *state, size_t source_count)
{
    size_t count = 0;
    size_t capacity = 0;
    state->jobs = NULL;
    for (size_t i = 0; i < source_count; i++) {
        const frag_recording *recording = &state->sources[i].recording;
        const frag_policy_list *policies =
            state->policies.count > 0 ? &state->policies : &state->sources[i].policies;
        for (uint32_t t = 0; state->sources[i].is_loaded && t < recording->trace_count; t++)
            for (size_t p = 0; p < policies->count; p++) {
                frag_run_job like = {
                    .recording = recording,
                    .trace = &recording->traces[t],
                    .spec = policies->specs[p],
                    .device = state->devices.has_gpu ? state->beside_gpu : state->device,
                };
                add_jobs(state, &like, &count, &capacity);
            }
    }
    return count;
}

typedef bool add_again(frag_run_state *state, frag_run_job *task, const frag_device_spec *device);

/* Runs every job again for a file besides the rows; what stands in its way takes the place of the
 * row. false: a job did not finish, so the file would be incomplete. */
static bool run_again(frag_run_state *state, size_t count, add_again *add)
{
    for (size_t i = 0; i < count; i++) {
        frag_run_job *task = &state->jobs[i];
        if (!task->is_ok || task->result.replay.is_interrupted)
            return false;
        frag_device_opener opener;
        frag_device_spec device =
            task->is_gpu ? frag_gpu_run_echo(&task->gpu, &state->device, &opener) : task->device;
        task->is_ok = add(state, task, &device);
        if (!task->is_ok)
            return false;
    }
    return count > 0 && !frag_is_interrupted();
}

static bool add_to_snapshot(frag_run_state *state, frag_run_job *task,
                            const frag_device_spec *device)
{
    return frag_run_snapshot_add(state->files.snapshot_of, task->recording, task->trace,
                                 &task->spec, device, &state->run, &task->result.replay,
                                 &task->error);
}

void frag_run_jobs_snapshot(frag_run_state *state, size_t count)
{
    if (run_again(state, count, add_to_snapshot)) {
        frag_run_job *last = &state->jobs[count - 1];
        last->is_ok = frag_run_snapshot_end(state->files.snapshot_of, &last->error);
        state->files.snapshot.is_whole = last->is_ok;
    }
}

static bool add_to_chrome(frag_run_state *state, frag_run_job *task, const frag_device_spec *device)
{
    return frag_run_chrome_add(&state->files.chrome_of, task->recording, task->trace, &task->spec,
                               task->plan, device, &state->run, &task->error);
}

void frag_run_jobs_chrome(frag_run_state *state, size_t count)
{
    if (run_again(state, count, add_to_chrome)) {
        frag_run_chrome_end(&state->files.chrome_of);
        state->files.chrome.is_whole = true;
    }
}

/* As run_again, but a placement is that of one run. */
void frag_run_jobs_placement(frag_run_state *state, size_t count)
{
    frag_run_job *task = &state->jobs[0];
    if (count == 0 || !task->is_ok || task->result.replay.is_interrupted)
        return;
    FRAG_ASSERT(count == 1);
    if (task->result.replay.oom.has_happened)
        return;
    task->is_ok = frag_run_placement_write(
        task->recording, task->trace, &task->spec, task->plan, &task->device, &state->run,
        &task->result, frag_output_stream(state->files.placement.output), &task->error);
    state->files.placement.is_whole = task->is_ok && !frag_is_interrupted();
}
