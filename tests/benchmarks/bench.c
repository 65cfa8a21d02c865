/* `make bench`: the speed of loading and of replay, with spread; docs/performance.md explains each
 * figure. */
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "allocators/registry.h"
#include "base/bytes.h"
#include "base/memory.h"
#include "sim/policy_engine.h"
#include "sim/replay/replay_state.h"
#include "sim/run.h"
#include "tests/benchmarks/bench_measure.h"
#include "tests/benchmarks/bench_peer.h"
#include "tests/benchmarks/bench_report.h"
#include "tests/benchmarks/bench_traces.h"
#include "traces/fgt/fgt.h"
#include "traces/load.h"
#include "traces/text/text_trace.h"

#define SAMPLE_NS 20000000u      /* a sample repeats what is shorter than this */
#define EVENTS_FOR_TARGET 10000u /* below it the cost of setting up decides */
#define LIVE_BLOCKS_FOR_TARGET                                                                     \
    4096u                /* below it the fixed tables of a run decide its bytes per block */
#define FGT_TARGET 100.0 /* million events a second */
#define SNAPSHOT_TARGET 3.0
#define COLUMNS_KIND "fgt, all columns"
#define PEER_NAME "(peer: tsearch best fit)"

#define EXPANDABLE "pytorch:expandable_segments=true"

typedef struct speed_target {
    const char *policy;
    double ns_per_event;
} speed_target;

static const speed_target targets[] = {
    {"pytorch", 33}, {EXPANDABLE, 45}, {"best-fit", 25}, {"tlsf", 25}, {"first-fit", 60}};

/* A file whose loading is measured. */
typedef struct load_bench {
    bench_load_row row;
    char path[600];
    bool with_columns;
    bool is_temporary;
    bool is_out;
    uint64_t rounds; /* loads in a sample */
    bench_samples rates;
    bench_samples speeds;
} load_bench;

typedef struct contender contender;

/* A trace on which policies are measured. */
typedef struct contest {
    char name[64];
    frag_recording recording;
    const frag_trace *trace; /* NULL: none of the recording */
    bool is_recorded;        /* and long enough for targets */
    contender *contenders;
} contest;

typedef struct bench {
    const char *program;
    const char *output;
    char folder[512]; /* of the output: where converted traces go */
    frag_policy_spec *specs;
    size_t spec_count;
    bool is_strict;
    bool is_replay_only;
    bool has_recordings;
    bool has_failed;
    uint64_t idle_bytes;
    bench_rows rows;
    load_bench *loadings;
    size_t loading_count;
    size_t loading_capacity;
    contest *contests;
    size_t contest_count;
    size_t contest_capacity;
} bench;

static void complain(bench *all, const frag_error *error)
{
    char text[1024];
    frag_error_text(error, text, sizeof text);
    fprintf(stderr, "bench: %s\n", text);
    all->has_failed = true;
}

/* ---- replay */

typedef struct replay_bench {
    uint64_t whole_ns;
    uint64_t run_ns;
} replay_bench;

/* One policy on one trace while the samples are taken. */
struct contender {
    const frag_policy_spec *spec; /* NULL: the peer */
    uint64_t rounds;              /* replays in a sample */
    bench_samples whole_ns;
    bench_samples run_ns;
    frag_arena_spare *spare;
    uint64_t host_bytes; /* of the first replay; 0: not known */
    bool is_out;
};

/* As the runs of a search or a sweep follow each other: in the memory of the one before. */
static bool replay_once(const frag_recording *recording, const frag_trace *trace, contender *one,
                        replay_bench *spent, frag_error *error)
{
    const frag_policy_spec *spec = one->spec;
    frag_sim_device_options options = {
        .device = trace->device,
        .capacity_bytes = FRAG_UNLIMITED,
    };
    frag_recorded_segment *segments =
        frag_recorded_segments(trace, &options.recorded_count, &options.initial_count);
    options.recorded = segments;
    options.address_rule = options.recorded_count > 0 ? FRAG_ADDRESS_RECORDED : FRAG_ADDRESS_LOWEST;
    frag_device *device = frag_sim_device_create(&options);
    frag_policy_plan *plan = NULL;
    frag_replay *replay = NULL;
    frag_replay_result result;
    uint64_t start = bench_clock_ns();
    if (frag_replay_plan(&(frag_run_setup){recording, trace, spec->ops, spec->values, NULL}, NULL,
                         &plan, error))
        replay = frag_replay_create_planned(
            &(frag_run_setup){recording, trace, spec->ops, spec->values, NULL}, plan, one->spare,
            device, error);
    uint64_t created = bench_clock_ns();
    frag_replay_options replay_options = {.stop_after = FRAG_UNLIMITED};
    bool ok = replay != NULL && frag_replay_run(replay, &replay_options, &result, error);
    uint64_t end = bench_clock_ns();
    spent->whole_ns += end - start;
    spent->run_ns += end - created;
    /* Later runs begin with memory that is touched already. */
    if (ok && one->host_bytes == 0)
        one->host_bytes = frag_arena_touched_bytes(&replay->arena);
    frag_replay_destroy(replay);
    if (plan != NULL)
        frag_policy_engine_of(spec->ops)->planner->destroy(plan);
    frag_device_destroy(device);
    free(segments);
    return ok;
}

static void replay_peer(const frag_trace *trace, replay_bench *spent)
{
    uint64_t start = bench_clock_ns();
    bench_peer *peer = bench_peer_create(trace);
    uint64_t created = bench_clock_ns();
    bench_peer_run(peer);
    uint64_t end = bench_clock_ns();
    spent->whole_ns += end - start;
    spent->run_ns += end - created;
    bench_peer_destroy(peer);
}

static bool take_sample(bench *all, const frag_recording *recording, const frag_trace *trace,
                        contender *one, uint64_t rounds, replay_bench *spent)
{
    *spent = (replay_bench){0};
    frag_error error = {0};
    for (uint64_t i = 0; i < rounds && !one->is_out; i++) {
        if (one->spec == NULL)
            replay_peer(trace, spent);
        else if (!replay_once(recording, trace, one, spent, &error))
            one->is_out = true;
    }
    if (one->is_out) {
        frag_error_in(&error, one->spec->text);
        complain(all, &error);
    }
    return !one->is_out;
}

static double target_of(const bench *all, const char *policy, bool is_recorded, bool is_training)
{
    if (!is_recorded && (all->has_recordings || !is_training))
        return 0;
    for (size_t i = 0; i < sizeof targets / sizeof *targets; i++)
        if (strcmp(targets[i].policy, policy) == 0)
            return targets[i].ns_per_event;
    return 0;
}

static void keep_replay(bench *all, const char *name, const frag_trace *trace, const contender *one,
                        double target_ns)
{
    bench_replay_row *row =
        FRAG_APPEND(all->rows.replays, all->rows.replay_count, all->rows.replay_capacity);
    *row = (bench_replay_row){
        .policy = one->spec != NULL ? one->spec->text : PEER_NAME,
        .events = trace->event_count,
        .whole_ns = bench_samples_spread(&one->whole_ns),
        .run_ns = bench_samples_spread(&one->run_ns),
        .host_bytes = one->host_bytes,
        .live_blocks_max = trace->stats.live_count_max,
        .target_ns = target_ns,
    };
    snprintf(row->trace, sizeof row->trace, "%s", name);
    bool is_too_large =
        row->live_blocks_max >= LIVE_BLOCKS_FOR_TARGET &&
        (double)row->host_bytes > BENCH_HOST_BYTES_TARGET * (double)row->live_blocks_max;
    row->is_over = (target_ns > 0 && row->whole_ns.median > target_ns) || is_too_large;
}

/* Takes the recording over. The first replays warm up and tell how many the samples take. */
static void add_contest(bench *all, const char *name, const frag_recording *recording,
                        const frag_trace *trace, bool is_recorded)
{
    contest *at = FRAG_APPEND(all->contests, all->contest_count, all->contest_capacity);
    *at = (contest){.recording = *recording, .trace = trace, .is_recorded = is_recorded};
    snprintf(at->name, sizeof at->name, "%s", name);
    at->contenders = frag_alloc(all->spec_count + 1, sizeof *at->contenders);
    replay_bench spent;
    for (size_t i = 0; i <= all->spec_count; i++) {
        contender *one = &at->contenders[i];
        one->spec = i < all->spec_count ? &all->specs[i] : NULL;
        one->spare = frag_arena_spare_create();
        one->is_out = trace == NULL;
        if (!one->is_out && take_sample(all, &at->recording, trace, one, 1, &spent))
            one->rounds = 1 + SAMPLE_NS / (spent.whole_ns + 1);
    }
}

static void sample_contest(bench *all, const contest *at)
{
    for (size_t i = 0; i <= all->spec_count; i++) {
        contender *one = &at->contenders[i];
        replay_bench spent;
        if (one->is_out || !take_sample(all, &at->recording, at->trace, one, one->rounds, &spent))
            continue;
        double events = (double)at->trace->event_count * (double)one->rounds;
        bench_samples_add(&one->whole_ns, (double)spent.whole_ns / events);
        bench_samples_add(&one->run_ns, (double)spent.run_ns / events);
    }
}

static void end_contest(bench *all, contest *at)
{
    bool is_training = strcmp(at->name, "synthetic-training") == 0;
    for (size_t i = 0; i <= all->spec_count; i++) {
        const contender *one = &at->contenders[i];
        const char *policy = one->spec != NULL ? one->spec->text : PEER_NAME;
        if (!one->is_out)
            keep_replay(all, at->name, at->trace, one,
                        target_of(all, policy, at->is_recorded, is_training));
        frag_arena_spare_destroy(one->spare);
    }
    free(at->contenders);
    frag_recording_destroy(&at->recording);
}

/* ---- loading */

static uint64_t count_events(const frag_recording *recording)
{
    uint64_t count = 0;
    for (uint32_t i = 0; i < recording->trace_count; i++)
        count += recording->traces[i].event_count;
    return count;
}

/* Entries of a snapshot's history: a free is requested, then completed; what was inferred is none.
 */
static uint64_t count_entries(const frag_recording *recording)
{
    uint64_t count = 0;
    for (uint32_t i = 0; i < recording->trace_count; i++)
        for (uint64_t k = 0; k < recording->traces[i].event_count; k++) {
            const frag_event *event = &recording->traces[i].events[k];
            bool is_entry = (event->flags & (FRAG_EVENT_INITIAL | FRAG_EVENT_INFERRED)) == 0 &&
                            event->op != FRAG_OP_MARK && event->op != FRAG_OP_CONFIG;
            bool is_whole_free =
                event->op == FRAG_OP_FREE && (event->flags & FRAG_EVENT_DEFERRED) == 0;
            count += is_entry ? (is_whole_free ? 2 : 1) : 0;
        }
    return count;
}

/* Bytes of a file's content, decompressed where the whole file is compressed. */
static uint64_t content_bytes(const char *path)
{
    frag_input *input = frag_input_open(path, NULL);
    const unsigned char *bytes = NULL;
    size_t count = 1;
    while (input != NULL && count > 0 && frag_input_peek(input, 1, &bytes, &count, NULL))
        frag_input_skip(input, count);
    uint64_t total = input != NULL ? frag_input_offset(input) : 0;
    frag_input_close(input);
    return total;
}

static bool load(const char *path, bool with_columns, frag_recording *recording, frag_error *error)
{
    frag_load_options options = {.with_columns = with_columns, .with_sites = with_columns};
    frag_findings findings = {0};
    return frag_recording_load(path, &options, recording, &findings, error);
}

/* What this program does when it is started by measure_peak: loads one file and prints its peak. */
static int print_peak(const char *path, bool with_columns)
{
    frag_recording recording = {0};
    bool ok = path[0] == '\0' || load(path, with_columns, &recording, NULL);
    printf("%llu\n", ok ? (unsigned long long)bench_resident_peak_bytes() : 0);
    return 0;
}

/* In a process of its own: memory that was used before would hide what is used now. */
static uint64_t measure_peak(const bench *all, const char *path, bool with_columns)
{
    int ends[2];
    if (pipe(ends) != 0)
        return 0;
    pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], STDOUT_FILENO);
        close(ends[0]);
        close(ends[1]);
        execl(all->program, all->program, with_columns ? "--peak-with-columns" : "--peak", path,
              (char *)NULL);
        _exit(1);
    }
    close(ends[1]);
    char text[32] = "";
    size_t length = 0;
    for (ssize_t got = 1; got > 0 && length<sizeof text - 1; length += got> 0 ? (size_t)got : 0)
        got = read(ends[0], text + length, sizeof text - 1 - length);
    close(ends[0]);
    if (child > 0)
        waitpid(child, NULL, 0);
    text[strcspn(text, "\n")] = '\0';
    uint64_t bytes = 0;
    return frag_count_parse(text, 0, UINT64_MAX, &bytes, NULL) ? bytes : 0;
}

/* One sample; the first of them warms up and tells how many loads the others take. */
static void sample_loading(bench *all, load_bench *at)
{
    frag_error error = {0};
    bench_load_row *row = &at->row;
    bool is_first = at->rounds == 0;
    uint64_t rounds = is_first ? 1 : at->rounds;
    uint64_t spent = 0;
    for (uint64_t i = 0; i < rounds && !at->is_out; i++) {
        frag_recording recording;
        uint64_t start = bench_clock_ns();
        if (!load(at->path, at->with_columns, &recording, &error)) {
            complain(all, &error);
            at->is_out = true;
            return;
        }
        spent += bench_clock_ns() - start;
        row->events = strcmp(row->kind, BENCH_SNAPSHOT_KIND) == 0 ? count_entries(&recording)
                                                                  : count_events(&recording);
        frag_recording_destroy(&recording);
    }
    double seconds = (double)spent * 1e-9 / (double)rounds;
    if (is_first) {
        at->rounds = 1 + SAMPLE_NS / (spent + 1);
        return;
    }
    bench_samples_add(&at->rates, (double)row->events * 1e-6 / seconds);
    bench_samples_add(&at->speeds, (double)row->content_bytes * 1e-6 / seconds);
}

static void add_loading(bench *all, const char *name, const char *path, const char *kind,
                        double target)
{
    load_bench *at = FRAG_APPEND(all->loadings, all->loading_count, all->loading_capacity);
    *at = (load_bench){
        .row = {.kind = kind, .content_bytes = content_bytes(path), .target = target},
        .with_columns = strcmp(kind, COLUMNS_KIND) == 0,
        .is_temporary = strcmp(kind, BENCH_SNAPSHOT_KIND) != 0,
    };
    snprintf(at->row.trace, sizeof at->row.trace, "%s", name);
    snprintf(at->path, sizeof at->path, "%s", path);
    sample_loading(all, at);
}

static void end_loading(bench *all, const load_bench *at)
{
    bench_load_row row = at->row;
    if (!at->is_out) {
        row.events_per_us = bench_samples_spread(&at->rates);
        row.mb_per_s = bench_samples_spread(&at->speeds);
        uint64_t peak = measure_peak(all, at->path, at->with_columns);
        row.peak_bytes = peak > all->idle_bytes ? peak - all->idle_bytes : 0;
        row.is_over = row.target > 0 && row.events_per_us.median < row.target;
        *FRAG_APPEND(all->rows.loads, all->rows.load_count, all->rows.load_capacity) = row;
    }
}

typedef bool write_trace(const frag_recording *recording, FILE *stream, frag_error *error);

static bool convert(const frag_recording *recording, write_trace *write, const char *path,
                    frag_error *error)
{
    frag_output *output = frag_output_open(path, true, error);
    if (output == NULL)
        return false;
    if (!write(recording, frag_output_stream(output), error)) {
        frag_output_abandon(output);
        return false;
    }
    return frag_output_finish(output, error);
}

/* A large trace in our own two forms. Only for those has the speed of loading a meaning of its own.
 */
static void add_own_forms(bench *all, const char *name, const frag_recording *recording,
                          bool has_target)
{
    char fgt[600];
    char text[600];
    snprintf(fgt, sizeof fgt, "%s/bench-trace-%zu.fgt", all->folder, all->contest_count);
    snprintf(text, sizeof text, "%s/bench-trace-%zu.txt", all->folder, all->contest_count);
    frag_error error = {0};
    if (!convert(recording, frag_fgt_write, fgt, &error) ||
        !convert(recording, frag_text_write, text, &error)) {
        complain(all, &error);
        return;
    }
    add_loading(all, name, fgt, "fgt", has_target ? FGT_TARGET : 0);
    add_loading(all, name, fgt, COLUMNS_KIND, 0);
    add_loading(all, name, text, "text", 0);
}

/* ---- traces */

static void add_synthetic(bench *all, const char *name,
                          bool make(uint64_t event_count, frag_recording *recording,
                                    frag_error *error))
{
    frag_recording recording;
    frag_error error = {0};
    if (!make(BENCH_TRACE_EVENTS, &recording, &error)) {
        complain(all, &error);
        return;
    }
    if (!all->is_replay_only)
        add_own_forms(all, name, &recording, true);
    add_contest(all, name, &recording, &recording.traces[0], false);
}

static bool is_snapshot(const char *path)
{
    frag_input *input = frag_input_open(path, NULL);
    const unsigned char *bytes = NULL;
    size_t count = 0;
    bool is_pickle = input != NULL && frag_input_peek(input, 1, &bytes, &count, NULL) &&
                     count > 0 && bytes[0] == 0x80;
    frag_input_close(input);
    return is_pickle;
}

static void add_recording(bench *all, const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash != NULL ? slash + 1 : path;
    frag_recording recording;
    frag_error error = {0};
    if (!load(path, true, &recording, &error)) {
        complain(all, &error);
        return;
    }
    const frag_trace *longest = NULL;
    for (uint32_t i = 0; i < recording.trace_count; i++)
        if (recording.traces[i].event_count > (longest != NULL ? longest->event_count : 0))
            longest = &recording.traces[i];
    if (!all->is_replay_only) {
        if (is_snapshot(path))
            add_loading(all, name, path, BENCH_SNAPSHOT_KIND,
                        count_events(&recording) >= EVENTS_FOR_TARGET ? SNAPSHOT_TARGET : 0);
        add_own_forms(all, name, &recording, false);
    }
    add_contest(all, name, &recording, longest,
                longest != NULL && longest->event_count >= EVENTS_FOR_TARGET);
}

/* Every pass over all that is measured takes one sample of each, and policies take turns on a
 * trace: a machine that slows down for a minute then spoils a few samples of every figure, and not
 * all samples of a few. */
static void take_samples(bench *all)
{
    for (uint32_t pass = 1; pass <= all->rows.repetitions; pass++) {
        fprintf(stderr, "bench: pass %u of %u\n", pass, all->rows.repetitions);
        for (size_t i = 0; i < all->loading_count; i++)
            if (!all->loadings[i].is_out)
                sample_loading(all, &all->loadings[i]);
        for (size_t i = 0; i < all->contest_count; i++)
            sample_contest(all, &all->contests[i]);
    }
    for (size_t i = 0; i < all->loading_count; i++)
        end_loading(all, &all->loadings[i]);
    for (size_t i = 0; i < all->loading_count; i++)
        if (all->loadings[i].is_temporary)
            remove(all->loadings[i].path);
    for (size_t i = 0; i < all->contest_count; i++)
        end_contest(all, &all->contests[i]);
    free(all->loadings);
    free(all->contests);
}

/* ---- the command */

static int usage(void)
{
    fprintf(
        stderr,
        "usage: bench [-o FILE.json] [--repeat N] [--policy P]... [--replay-only] [--strict] "
        "[RECORDING...]\n"
        "Without recordings: two synthetic traces and those of traces/samples/. N is 1 to %u.\n",
        BENCH_REPETITIONS_MAX);
    return 2;
}

/* Returns the number of arguments read, 0 on failure. */
static int read_option(bench *all, int count, char **arguments, frag_error *error)
{
    const char *option = arguments[0];
    uint64_t number = 0;
    if (strcmp(option, "--strict") == 0)
        all->is_strict = true;
    else if (strcmp(option, "--replay-only") == 0)
        all->is_replay_only = true;
    else if (count > 1 && strcmp(option, "-o") == 0)
        all->output = arguments[1];
    else if (count > 1 && strcmp(option, "--policy") == 0)
        return frag_policy_specs_parse(arguments[1], &all->specs, &all->spec_count, error) ? 2 : 0;
    else if (count > 1 && strcmp(option, "--repeat") == 0 &&
             frag_count_parse(arguments[1], 1, BENCH_REPETITIONS_MAX, &number, error))
        all->rows.repetitions = (uint32_t)number;
    else
        return 0;
    return strcmp(option, "--strict") == 0 || strcmp(option, "--replay-only") == 0 ? 1 : 2;
}

static void measure_all(bench *all, char **paths, size_t path_count)
{
    all->idle_bytes = measure_peak(all, "", false);
    glob_t samples = {0};
    if (path_count == 0) {
        glob("traces/samples/*.zst", 0, NULL, &samples);
        all->has_recordings = samples.gl_pathc > 0;
        if (!all->has_recordings)
            fprintf(stderr, "bench: traces/samples/ has no recordings; run this from the root of "
                            "the source tree\n");
        add_synthetic(all, "synthetic-training", bench_trace_training);
        add_synthetic(all, "synthetic-serving", bench_trace_serving);
        paths = samples.gl_pathv;
        path_count = samples.gl_pathc;
    }
    for (size_t i = 0; i < path_count; i++)
        add_recording(all, paths[i]);
    globfree(&samples);
    take_samples(all);
}

int main(int count, char **arguments)
{
    if (count == 3 && strncmp(arguments[1], "--peak", 6) == 0)
        return print_peak(arguments[2], arguments[1][6] != '\0');
    frag_memory_keep(); /* as the program does */
    bench all = {
        .program = "/proc/self/exe", .output = "build/bench.json", .rows = {.repetitions = 9}};
    frag_error error = {0};
    int at = 1;
    while (at < count && arguments[at][0] == '-') {
        int used = read_option(&all, count - at, arguments + at, &error);
        if (used == 0) {
            if (error.code != FRAG_E_NONE)
                complain(&all, &error);
            return usage();
        }
        at += used;
    }
    const char *slash = strrchr(all.output, '/');
    snprintf(all.folder, sizeof all.folder, "%.*s", slash != NULL ? (int)(slash - all.output) : 1,
             slash != NULL ? all.output : ".");
    if (all.spec_count == 0)
        FRAG_ASSERT(frag_policy_specs_parse("all", &all.specs, &all.spec_count, &error) &&
                    frag_policy_specs_parse(EXPANDABLE, &all.specs, &all.spec_count, &error));
    measure_all(&all, arguments + at, (size_t)(count - at));
    char processor[256];
    bench_processor(processor, sizeof processor);
    bench_rows_print(&all.rows, processor);
    if (!bench_rows_write_json(&all.rows, all.output, processor, &error))
        complain(&all, &error);
    bool is_missed = false;
    for (size_t i = 0; i < all.rows.replay_count; i++)
        is_missed = is_missed || all.rows.replays[i].is_over;
    for (size_t i = 0; i < all.rows.load_count; i++)
        is_missed = is_missed || all.rows.loads[i].is_over;
    frag_policy_specs_destroy(all.specs, all.spec_count);
    free(all.rows.replays);
    free(all.rows.loads);
    return all.has_failed ? 4 : is_missed && all.is_strict ? 1 : 0;
}
