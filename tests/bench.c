/* `make bench`: the speed of loading and of replay, with spread; docs/performance.md explains each
 * figure. */
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "allocators/registry.h"
#include "sim/base/bytes.h"
#include "sim/base/json.h"
#include "sim/base/memory.h"
#include "sim/run.h"
#include "sim/version.h"
#include "tests/bench_measure.h"
#include "tests/bench_peer.h"
#include "tests/bench_traces.h"
#include "traces/load.h"

#define SAMPLE_NS 20000000u      /* a sample repeats what is shorter than this */
#define EVENTS_FOR_TARGET 10000u /* below it the cost of setting up decides */
#define LIVE_BLOCKS_FOR_TARGET                                                                     \
    4096u /* below it the fixed tables of a run decide its bytes per block */
#define HOST_BYTES_TARGET 64.0
#define FGT_TARGET 50.0 /* million events a second */
#define SNAPSHOT_TARGET 3.0
#define SNAPSHOT_KIND "torch snapshot"
#define PEER_NAME "(peer: tsearch best fit)"

#define EXPANDABLE "pytorch:expandable_segments=true"

typedef struct speed_target {
    const char *policy;
    double ns_per_event;
} speed_target;

static const speed_target targets[] = {
    {"pytorch", 33}, {EXPANDABLE, 45}, {"best-fit", 30}, {"tlsf", 27}, {"first-fit", 60}};

typedef struct replay_row {
    char trace[64];
    const char *policy;
    uint64_t events;
    bench_spread whole_ns; /* create and run, per event */
    bench_spread run_ns;   /* run alone, per event */
    uint64_t host_bytes;   /* 0: not known */
    uint64_t live_blocks_max;
    double target_ns; /* 0: none */
    bool is_over;
} replay_row;

typedef struct load_row {
    char trace[64];
    const char *kind;
    uint64_t events; /* entries, of a snapshot */
    uint64_t content_bytes;
    bench_spread events_per_us; /* million events a second */
    bench_spread mb_per_s;
    uint64_t peak_bytes; /* resident, above a program that loads nothing; 0: not known */
    double target;       /* million events a second; 0: none */
    bool is_over;
} load_row;

typedef struct bench {
    const char *program;
    const char *output;
    char folder[512]; /* of the output: where converted traces go */
    frag_policy_spec *specs;
    size_t spec_count;
    uint32_t repetitions;
    bool is_strict;
    bool is_replay_only;
    bool has_recordings;
    bool has_failed;
    uint64_t idle_bytes;
    replay_row *replays;
    size_t replay_count;
    size_t replay_capacity;
    load_row *loads;
    size_t load_count;
    size_t load_capacity;
} bench;

static void complain(bench *all, const frag_error *error)
{
    char text[1024];
    frag_error_text(error, text, sizeof text);
    fprintf(stderr, "bench: %s\n", text);
    all->has_failed = true;
}

/* ---- replay */

typedef struct timing {
    uint64_t whole_ns;
    uint64_t run_ns;
} timing;

/* One policy on one trace while the samples are taken. */
typedef struct contender {
    const frag_policy_spec *spec; /* NULL: the peer */
    uint64_t rounds;              /* replays in a sample */
    bench_samples whole_ns;
    bench_samples run_ns;
    frag_arena_spare *spare;
    uint64_t host_bytes; /* of the first replay; 0: not known */
    bool is_out;
} contender;

/* As the runs of a search or a sweep follow each other: in the memory of the one before. */
static bool replay_once(const frag_recording *recording, const frag_trace *trace, contender *one,
                        timing *spent, frag_error *error)
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
    if (frag_replay_plan(recording, trace, spec->ops, spec->values, NULL, &plan, error))
        replay = frag_replay_create_planned(recording, trace, spec->ops, spec->values, plan,
                                            one->spare, device, error);
    uint64_t created = bench_clock_ns();
    frag_replay_options replay_options = {.stop_after = FRAG_UNLIMITED};
    bool ok = replay != NULL && frag_replay_run(replay, &replay_options, &result, error);
    uint64_t end = bench_clock_ns();
    spent->whole_ns += end - start;
    spent->run_ns += end - created;
    /* Later runs begin with memory that is touched already. */
    if (ok && one->host_bytes == 0)
        one->host_bytes = frag_replay_host_bytes(replay);
    frag_replay_destroy(replay);
    if (plan != NULL)
        spec->ops->plan_destroy(plan);
    frag_device_destroy(device);
    free(segments);
    return ok;
}

static void replay_peer(const frag_trace *trace, timing *spent)
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
                        contender *one, uint64_t rounds, timing *spent)
{
    *spent = (timing){0};
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
    all->replays =
        frag_grow(all->replays, &all->replay_capacity, all->replay_count + 1, sizeof *all->replays);
    replay_row *row = &all->replays[all->replay_count++];
    *row = (replay_row){
        .policy = one->spec != NULL ? one->spec->text : PEER_NAME,
        .events = trace->event_count,
        .whole_ns = bench_samples_spread(&one->whole_ns),
        .run_ns = bench_samples_spread(&one->run_ns),
        .host_bytes = one->host_bytes,
        .live_blocks_max = trace->stats.live_count_max,
        .target_ns = target_ns,
    };
    snprintf(row->trace, sizeof row->trace, "%s", name);
    bool is_too_large = row->live_blocks_max >= LIVE_BLOCKS_FOR_TARGET &&
                        (double)row->host_bytes > HOST_BYTES_TARGET * (double)row->live_blocks_max;
    row->is_over = (target_ns > 0 && row->whole_ns.median > target_ns) || is_too_large;
}

/* Policies take turns, so that a machine that slows down for a while slows all of them. */
static void measure_replays(bench *all, const char *name, const frag_recording *recording,
                            const frag_trace *trace, bool is_recorded)
{
    size_t count = all->spec_count + 1;
    contender *contenders = frag_alloc(count, sizeof *contenders);
    timing spent;
    for (size_t i = 0; i < count; i++) {
        contenders[i].spec = i < all->spec_count ? &all->specs[i] : NULL;
        contenders[i].spare = frag_arena_spare_create();
        if (take_sample(all, recording, trace, &contenders[i], 1, &spent))
            contenders[i].rounds = 1 + SAMPLE_NS / (spent.whole_ns + 1);
    }
    for (uint32_t repetition = 0; repetition < all->repetitions; repetition++)
        for (size_t i = 0; i < count; i++) {
            contender *one = &contenders[i];
            if (one->is_out || !take_sample(all, recording, trace, one, one->rounds, &spent))
                continue;
            double events = (double)trace->event_count * (double)one->rounds;
            bench_samples_add(&one->whole_ns, (double)spent.whole_ns / events);
            bench_samples_add(&one->run_ns, (double)spent.run_ns / events);
        }
    bool is_training = strcmp(name, "synthetic-training") == 0;
    for (size_t i = 0; i < count; i++)
        if (!contenders[i].is_out) {
            const char *policy = contenders[i].spec != NULL ? contenders[i].spec->text : PEER_NAME;
            keep_replay(all, name, trace, &contenders[i],
                        target_of(all, policy, is_recorded, is_training));
        }
    for (size_t i = 0; i < count; i++)
        frag_arena_spare_destroy(contenders[i].spare);
    free(contenders);
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

static void measure_load(bench *all, const char *name, const char *path, const char *kind,
                         bool with_columns, double target)
{
    frag_error error = {0};
    load_row row = {.kind = kind, .content_bytes = content_bytes(path), .target = target};
    snprintf(row.trace, sizeof row.trace, "%s", name);
    bench_samples rates = {0};
    bench_samples speeds = {0};
    uint64_t rounds = 1;
    /* The first sample warms up and tells how many loads the others take. */
    for (uint32_t repetition = 0; repetition <= all->repetitions; repetition++) {
        uint64_t spent = 0;
        for (uint64_t i = 0; i < rounds; i++) {
            frag_recording recording;
            uint64_t start = bench_clock_ns();
            if (!load(path, with_columns, &recording, &error)) {
                complain(all, &error);
                return;
            }
            spent += bench_clock_ns() - start;
            row.events = strcmp(kind, SNAPSHOT_KIND) == 0 ? count_entries(&recording)
                                                          : count_events(&recording);
            frag_recording_destroy(&recording);
        }
        if (repetition == 0) {
            rounds = 1 + SAMPLE_NS / (spent + 1);
            continue;
        }
        double seconds = (double)spent * 1e-9 / (double)rounds;
        bench_samples_add(&rates, (double)row.events * 1e-6 / seconds);
        bench_samples_add(&speeds, (double)row.content_bytes * 1e-6 / seconds);
    }
    row.events_per_us = bench_samples_spread(&rates);
    row.mb_per_s = bench_samples_spread(&speeds);
    uint64_t peak = measure_peak(all, path, with_columns);
    row.peak_bytes = peak > all->idle_bytes ? peak - all->idle_bytes : 0;
    row.is_over = target > 0 && row.events_per_us.median < target;
    all->loads =
        frag_grow(all->loads, &all->load_capacity, all->load_count + 1, sizeof *all->loads);
    all->loads[all->load_count++] = row;
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
static void measure_own_forms(bench *all, const char *name, const frag_recording *recording,
                              bool has_target)
{
    char fgt[600];
    char text[600];
    snprintf(fgt, sizeof fgt, "%s/bench-trace.fgt", all->folder);
    snprintf(text, sizeof text, "%s/bench-trace.txt", all->folder);
    frag_error error = {0};
    if (!convert(recording, frag_fgt_write, fgt, &error) ||
        !convert(recording, frag_text_write, text, &error)) {
        complain(all, &error);
        return;
    }
    measure_load(all, name, fgt, "fgt", false, has_target ? FGT_TARGET : 0);
    measure_load(all, name, fgt, "fgt, all columns", true, 0);
    measure_load(all, name, text, "text", false, 0);
    remove(fgt);
    remove(text);
}

/* ---- traces */

static void measure_synthetic(bench *all, const char *name,
                              bool make(uint64_t event_count, frag_recording *recording,
                                        frag_error *error))
{
    fprintf(stderr, "bench: %s\n", name);
    frag_recording recording;
    frag_error error = {0};
    if (!make(BENCH_TRACE_EVENTS, &recording, &error)) {
        complain(all, &error);
        return;
    }
    if (!all->is_replay_only)
        measure_own_forms(all, name, &recording, true);
    measure_replays(all, name, &recording, &recording.traces[0], false);
    frag_recording_destroy(&recording);
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

static void measure_recording(bench *all, const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash != NULL ? slash + 1 : path;
    fprintf(stderr, "bench: %s\n", name);
    frag_recording recording;
    frag_error error = {0};
    if (!load(path, true, &recording, &error)) {
        complain(all, &error);
        return;
    }
    const frag_trace *longest = NULL;
    for (uint32_t i = 0; i < recording.trace_count; i++)
        if (longest == NULL || recording.traces[i].event_count > longest->event_count)
            longest = &recording.traces[i];
    if (!all->is_replay_only) {
        if (is_snapshot(path))
            measure_load(all, name, path, SNAPSHOT_KIND, false,
                         count_events(&recording) >= EVENTS_FOR_TARGET ? SNAPSHOT_TARGET : 0);
        measure_own_forms(all, name, &recording, false);
    }
    if (longest != NULL && longest->event_count > 0)
        measure_replays(all, name, &recording, longest, longest->event_count >= EVENTS_FOR_TARGET);
    frag_recording_destroy(&recording);
}

/* ---- printing */

static void print_table(const bench *all, const char *processor)
{
    printf("fraglab %s (%s), %s build, %s\n%s, %ld cores; one is used. Time on the core; median "
           "[least..most] of %u.\n",
           frag_version(), frag_commit(), frag_build_mode(), frag_compiler(), processor,
           sysconf(_SC_NPROCESSORS_ONLN), all->repetitions);
    if (all->load_count > 0)
        printf("\n%-32s %-16s %9s %26s %22s %9s  %s\n", "loading", "", "events", "million a second",
               "MB/s", "peak MiB", "target");
    for (size_t i = 0; i < all->load_count; i++) {
        const load_row *row = &all->loads[i];
        printf("%-32.32s %-16s %9llu %8.2f [%6.2f..%6.2f] %6.0f [%5.0f..%5.0f] %9.1f", row->trace,
               row->kind, (unsigned long long)row->events, row->events_per_us.median,
               row->events_per_us.min, row->events_per_us.max, row->mb_per_s.median,
               row->mb_per_s.min, row->mb_per_s.max, (double)row->peak_bytes / (double)FRAG_MIB);
        if (row->target > 0)
            printf("  %s %.0f", row->is_over ? "MISSED" : "ok", row->target);
        printf("\n");
    }
    printf("\n%-32s %-26s %9s %26s %7s %9s %7s  %s\n", "replay", "policy", "events", "ns/event",
           "run", "host KiB", "B/block", "target");
    for (size_t i = 0; i < all->replay_count; i++) {
        const replay_row *row = &all->replays[i];
        printf("%-32.32s %-26.26s %9llu %8.1f [%6.1f..%6.1f] %7.1f", row->trace, row->policy,
               (unsigned long long)row->events, row->whole_ns.median, row->whole_ns.min,
               row->whole_ns.max, row->run_ns.median);
        if (row->host_bytes > 0)
            printf(" %9.0f %7.1f", (double)row->host_bytes / 1024,
                   (double)row->host_bytes /
                       (double)(row->live_blocks_max > 0 ? row->live_blocks_max : 1));
        else
            printf(" %9s %7s", "", "");
        if (row->target_ns > 0)
            printf("  %s %.0f", row->whole_ns.median > row->target_ns ? "MISSED" : "ok",
                   row->target_ns);
        if (row->is_over && !(row->target_ns > 0 && row->whole_ns.median > row->target_ns))
            printf("  MISSED %.0f B/block", HOST_BYTES_TARGET);
        printf("\n");
    }
}

static void write_target(frag_json *json, double target, bool is_over)
{
    if (target > 0)
        frag_json_ratio(json, "target", target);
    else
        frag_json_null(json, "target");
    frag_json_flag(json, "is_target_missed", is_over);
}

static frag_json *load_json(const load_row *row)
{
    frag_json *json = frag_json_create();
    frag_json_text(json, "trace", row->trace);
    frag_json_text(json, "form", row->kind);
    frag_json_number(json, strcmp(row->kind, SNAPSHOT_KIND) == 0 ? "entries" : "events",
                     row->events);
    frag_json_number(json, "content_bytes", row->content_bytes);
    bench_spread_json(json, "million_per_second", row->events_per_us);
    bench_spread_json(json, "megabytes_per_second", row->mb_per_s);
    frag_json_number(json, "peak_resident_bytes", row->peak_bytes);
    write_target(json, row->target, row->is_over);
    return json;
}

static frag_json *replay_json(const replay_row *row)
{
    frag_json *json = frag_json_create();
    frag_json_text(json, "trace", row->trace);
    frag_json_text(json, "policy", row->policy);
    frag_json_number(json, "events", row->events);
    bench_spread_json(json, "ns_per_event", row->whole_ns);
    bench_spread_json(json, "run_ns_per_event", row->run_ns);
    frag_json_number(json, "host_bytes", row->host_bytes > 0 ? row->host_bytes : FRAG_UNLIMITED);
    frag_json_number(json, "live_blocks_max", row->live_blocks_max);
    write_target(json, row->target_ns, row->is_over);
    return json;
}

static bool write_json(const bench *all, const char *processor, frag_error *error)
{
    frag_output *output = frag_output_open(all->output, true, error);
    if (output == NULL)
        return false;
    frag_json *json = frag_json_create();
    frag_json_text(json, "tool.version", frag_version());
    frag_json_text(json, "tool.commit", frag_commit());
    frag_json_text(json, "tool.mode", frag_build_mode());
    frag_json_text(json, "tool.compiler", frag_compiler());
    frag_json_text(json, "machine.processor", processor);
    frag_json_number(json, "machine.cores", (uint64_t)sysconf(_SC_NPROCESSORS_ONLN));
    frag_json_number(json, "repetitions", all->repetitions);
    frag_json_array(json, "loads");
    for (size_t i = 0; i < all->load_count; i++)
        frag_json_append(json, "loads", load_json(&all->loads[i]));
    frag_json_array(json, "replays");
    for (size_t i = 0; i < all->replay_count; i++)
        frag_json_append(json, "replays", replay_json(&all->replays[i]));
    frag_json_write(json, frag_output_stream(output), true);
    return frag_output_finish(output, error);
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
        all->repetitions = (uint32_t)number;
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
        measure_synthetic(all, "synthetic-training", bench_trace_training);
        measure_synthetic(all, "synthetic-serving", bench_trace_serving);
        paths = samples.gl_pathv;
        path_count = samples.gl_pathc;
    }
    for (size_t i = 0; i < path_count; i++)
        measure_recording(all, paths[i]);
    globfree(&samples);
}

int main(int count, char **arguments)
{
    if (count == 3 && strncmp(arguments[1], "--peak", 6) == 0)
        return print_peak(arguments[2], arguments[1][6] != '\0');
    frag_memory_keep(); /* as the program does */
    bench all = {.program = "/proc/self/exe", .output = "build/bench.json", .repetitions = 9};
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
    print_table(&all, processor);
    if (!write_json(&all, processor, &error))
        complain(&all, &error);
    bool is_missed = false;
    for (size_t i = 0; i < all.replay_count; i++)
        is_missed = is_missed || all.replays[i].is_over;
    for (size_t i = 0; i < all.load_count; i++)
        is_missed = is_missed || all.loads[i].is_over;
    frag_policy_specs_destroy(all.specs, all.spec_count);
    free(all.replays);
    free(all.loads);
    return all.has_failed ? 4 : is_missed && all.is_strict ? 1 : 0;
}
