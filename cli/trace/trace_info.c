/* `fraglab trace info`: counts, sizes, lifetimes and tables of a recording. */
#include <inttypes.h>

#include "base/bytes.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/text.h"
#include "cli/trace/trace_tools.h"
#include "sim/trace/trace_figures.h"

#define TABLE_ROWS_MAX 12 /* of streams, pools and marks; jsonl has them all */

/* ---- one JSON object for each trace */
static frag_json *add_share(frag_json *json, const char *path, const frag_share *share)
{
    frag_json *item = frag_json_add(json, path);
    frag_json_number(item, "requests", share->count);
    frag_json_number(item, "bytes", share->bytes);
    return item;
}

static void add_stats_json(frag_json *json, const frag_trace *trace)
{
    const frag_trace_stats *stats = &trace->stats;
    frag_json *ops = frag_json_object(json, "ops");
    for (uint32_t op = 0; op < FRAG_OP_COUNT; op++)
        frag_json_number(ops, frag_op_name((frag_op)op), stats->op_counts[op]);
    frag_json_number(json, "requests", stats->request_count);
    frag_json_number(json, "failed_requests", stats->failed_count);
    frag_json_number(json, "requested_bytes_total", stats->requested_bytes_total);
    frag_json_number(json, "peak_requested_bytes", stats->peak_requested_bytes);
    frag_json_number(json, "peak_requested_event", stats->peak_requested_event);
    frag_json_number(json, "end_requested_bytes", stats->end_requested_bytes);
    frag_json_number(json, "live_blocks_max", stats->live_count_max);
    frag_json_number(json, "initial.blocks", stats->initial_count);
    frag_json_number(json, "initial.bytes", stats->initial_bytes);
    /* 0 is how a trace says that it does not know. */
    const uint64_t unknown = FRAG_UNLIMITED;
    bool has_observed = stats->observed_reserved_peak_bytes > 0;
    frag_json_number(json, "observed.peak_reserved_bytes",
                     has_observed ? stats->observed_reserved_peak_bytes : unknown);
    frag_json_number(json, "observed.end_reserved_bytes",
                     has_observed ? stats->observed_reserved_end_bytes : unknown);
    frag_json_number(json, "time_first_ns",
                     stats->time_first_ns > 0 ? stats->time_first_ns : unknown);
    frag_json_number(json, "time_last_ns", stats->time_last_ns > 0 ? stats->time_last_ns : unknown);
}

static void add_facts_json(frag_json *json, const frag_recording *recording,
                           const frag_trace *trace, const frag_trace_figures *figures)
{
    bool has_lifetimes = figures->freed_count > 0;
    frag_json_number(json, "lifetime_events.median",
                     has_lifetimes ? figures->lifetimes[FRAG_LIFETIME_MEDIAN] : FRAG_UNLIMITED);
    frag_json_number(json, "lifetime_events.p90",
                     has_lifetimes ? figures->lifetimes[FRAG_LIFETIME_P90] : FRAG_UNLIMITED);
    frag_json_number(json, "lifetime_events.p99",
                     has_lifetimes ? figures->lifetimes[FRAG_LIFETIME_P99] : FRAG_UNLIMITED);
    frag_json_number(json, "lifetime_events.max",
                     has_lifetimes ? figures->lifetimes[FRAG_LIFETIME_MAX] : FRAG_UNLIMITED);
    frag_json_number(json, "never_freed", figures->unfreed_count);
    frag_json_array(json, "sizes");
    for (uint32_t i = 0; i < FRAG_SIZE_CLASSES; i++)
        if (figures->sizes[i].count > 0) {
            frag_json *item = add_share(json, "sizes", &figures->sizes[i]);
            frag_json_number(item, "from_bytes", (uint64_t)1 << i);
        }
    frag_json_array(json, "streams");
    for (uint32_t i = 0; i < trace->stream_count; i++) {
        char handle[32];
        snprintf(handle, sizeof handle, "0x%" PRIx64, trace->stream_handles[i]);
        frag_json *item = add_share(json, "streams", &figures->streams[i]);
        frag_json_text(item, "handle", handle);
    }
    frag_json_array(json, "pools");
    for (uint32_t i = 0; i < trace->pool_count; i++) {
        char id[64];
        snprintf(id, sizeof id, "%" PRIu64 ":%" PRIu64, trace->pool_ids[i].high,
                 trace->pool_ids[i].low);
        frag_json *item = add_share(json, "pools", &figures->pools[i]);
        frag_json_text(item, "id", id);
    }
    frag_json_array(json, "marks");
    for (uint32_t i = 0; i < figures->mark_count; i++) {
        const frag_mark_share *mark = &figures->marks[i];
        frag_json *item = frag_json_add(json, "marks");
        frag_json_text(item, "name", frag_strings_get(&recording->strings, mark->name));
        frag_json_number(item, "count", mark->count);
        frag_json_number(item, "first_event", mark->first_event);
    }
}

static void print_json(const frag_recording *recording, const frag_trace *trace,
                       const frag_trace_figures *figures)
{
    frag_json *json = frag_json_create();
    frag_json_number(json, "schema", 1);
    frag_json_text(json, "trace", recording->name);
    frag_json_number(json, "device", trace->device);
    frag_json_text(json, "digest", trace->digest);
    frag_json_number(json, "events", trace->event_count);
    add_stats_json(json, trace);
    add_facts_json(json, recording, trace, figures);
    frag_recording_add_metadata(json, recording);
    frag_json_write(json, stdout, false);
}

/* ---- a page for each trace */
static void print_share(const char *name, const frag_share *share)
{
    printf("  %-24s %14s  %14s\n", name, FRAG_COUNT(share->count), FRAG_BYTES(share->bytes));
}

static void print_text(const char *text)
{
    char *plain = frag_copy_text(text);
    frag_text_make_plain(plain);
    fputs(plain, stdout);
    frag_free(plain);
}

static void print_inferred(const frag_trace_figures *figures)
{
    if (figures->inferred_count > 0)
        printf("  inferred, not recorded   %s of the events\n",
               FRAG_COUNT(figures->inferred_count));
    if (figures->guessed_count > 0)
        printf("  guessed                  the size of %s block%s live at the start\n",
               FRAG_COUNT(figures->guessed_count), figures->guessed_count == 1 ? "" : "s");
}

static void print_stats(const frag_trace *trace, const frag_trace_figures *figures)
{
    const frag_trace_stats *stats = &trace->stats;
    printf("device %" PRIu32 "\n", trace->device);
    printf("  digest                   %s\n", trace->digest);
    printf("  events                   %s\n", FRAG_COUNT(trace->event_count));
    printf("  requests                 %s, %s in all\n", FRAG_COUNT(stats->request_count),
           FRAG_BYTES(stats->requested_bytes_total));
    if (stats->failed_count > 0)
        printf("  failed when recorded     %s\n", FRAG_COUNT(stats->failed_count));
    if (stats->initial_count > 0)
        printf("  live at the start        %s blocks, %s\n", FRAG_COUNT(stats->initial_count),
               FRAG_BYTES(stats->initial_bytes));
    printf("  peak requested           %s at event %s\n", FRAG_BYTES(stats->peak_requested_bytes),
           FRAG_COUNT(stats->peak_requested_event));
    printf("  live at the end          %s\n", FRAG_BYTES(stats->end_requested_bytes));
    printf("  blocks live at most      %s\n", FRAG_COUNT(stats->live_count_max));
    if (stats->observed_reserved_peak_bytes > 0)
        printf("  recorded peak reserved   %s, %s at the end\n",
               FRAG_BYTES(stats->observed_reserved_peak_bytes),
               FRAG_BYTES(stats->observed_reserved_end_bytes));
    if (stats->time_last_ns > stats->time_first_ns)
        printf("  recorded time            %.3f s, from %" PRIu64 " to %" PRIu64 " ns\n",
               (double)(stats->time_last_ns - stats->time_first_ns) / 1e9, stats->time_first_ns,
               stats->time_last_ns);
    print_inferred(figures);
    if (trace->event_count > 0)
        printf("\n  what happened                     events\n");
    for (uint32_t op = 0; op < FRAG_OP_COUNT; op++)
        if (stats->op_counts[op] > 0)
            printf("  %-24s %14s\n", frag_op_name((frag_op)op), FRAG_COUNT(stats->op_counts[op]));
}

static void print_facts(const frag_trace *trace, const frag_trace_figures *figures)
{
    if (trace->stats.op_counts[FRAG_OP_ALLOC] == 0)
        return;
    printf("\n  lifetime in events       ");
    if (figures->freed_count > 0)
        printf("median %s, 90%% %s, 99%% %s, longest %s; %s never freed\n",
               FRAG_COUNT(figures->lifetimes[FRAG_LIFETIME_MEDIAN]),
               FRAG_COUNT(figures->lifetimes[FRAG_LIFETIME_P90]),
               FRAG_COUNT(figures->lifetimes[FRAG_LIFETIME_P99]),
               FRAG_COUNT(figures->lifetimes[FRAG_LIFETIME_MAX]),
               FRAG_COUNT(figures->unfreed_count));
    else
        printf("none of these requests is freed\n");
    printf("\n  size from                      requests           bytes\n");
    for (uint32_t i = 0; i < FRAG_SIZE_CLASSES; i++)
        if (figures->sizes[i].count > 0)
            print_share(FRAG_BYTES((uint64_t)1 << i), &figures->sizes[i]);
    printf("\n  stream                         requests           bytes\n");
    for (uint32_t i = 0; i < trace->stream_count && i < TABLE_ROWS_MAX; i++) {
        char handle[32];
        snprintf(handle, sizeof handle, "0x%" PRIx64, trace->stream_handles[i]);
        print_share(handle, &figures->streams[i]);
    }
    if (trace->stream_count > TABLE_ROWS_MAX)
        printf("  and %" PRIu32 " more\n", trace->stream_count - TABLE_ROWS_MAX);
    if (trace->pool_count <= 1)
        return;
    printf("\n  pool                           requests           bytes\n");
    for (uint32_t i = 0; i < trace->pool_count && i < TABLE_ROWS_MAX; i++) {
        char id[64];
        snprintf(id, sizeof id, "%" PRIu64 ":%" PRIu64, trace->pool_ids[i].high,
                 trace->pool_ids[i].low);
        print_share(id, &figures->pools[i]);
    }
    if (trace->pool_count > TABLE_ROWS_MAX)
        printf("  and %" PRIu32 " more\n", trace->pool_count - TABLE_ROWS_MAX);
}

static void print_marks(const frag_recording *recording, const frag_trace_figures *figures)
{
    if (figures->mark_count == 0)
        return;
    printf("\n  marks                 first at event  name\n");
    for (uint32_t i = 0; i < figures->mark_count && i < TABLE_ROWS_MAX; i++) {
        const frag_mark_share *mark = &figures->marks[i];
        printf("  %-24s %11s  ", FRAG_COUNT(mark->count), FRAG_COUNT(mark->first_event));
        print_text(frag_strings_get(&recording->strings, mark->name));
        printf("\n");
    }
    if (figures->mark_count > TABLE_ROWS_MAX)
        printf("  and %" PRIu32 " more names\n", figures->mark_count - TABLE_ROWS_MAX);
}

static void print_recording(const frag_recording *recording)
{
    printf("%s\n", recording->name);
    for (uint32_t i = 0; i < recording->metadata_count; i++) {
        printf("  ");
        print_text(frag_strings_get(&recording->strings, recording->metadata[i][0]));
        printf(" = ");
        print_text(frag_strings_get(&recording->strings, recording->metadata[i][1]));
        printf("\n");
    }
}

static void info_trace(const frag_recording *recording, frag_trace *trace, bool is_json)
{
    if (trace->figures == NULL)
        trace->figures = frag_trace_figures_find(recording, trace);
    if (is_json) {
        print_json(recording, trace, trace->figures);
        return;
    }
    printf("\n");
    print_stats(trace, trace->figures);
    print_facts(trace, trace->figures);
    print_marks(recording, trace->figures);
}

/* Call stacks are not asked for, and where the file has the figures no events either. */
static int info_one(const frag_arguments *arguments, const char *path, bool is_json)
{
    frag_error error = {0};
    frag_recording recording = {0};
    frag_findings findings = {0};
    frag_window window = {0};
    frag_load_options options = {.with_columns = true, .figures_only = true, .window = &window};
    if (!frag_inputs_window(arguments, "--device", &window, &error))
        return frag_report(&error);
    if (window.kind == FRAG_WINDOW_ALL && !window.has_device)
        options.window = NULL;
    if (!frag_trace_tools_load_as(arguments, path, &options, &recording, &findings, &error))
        return frag_report(&error);
    if (!is_json)
        print_recording(&recording);
    for (uint32_t i = 0; i < recording.trace_count; i++)
        info_trace(&recording, &recording.traces[i], is_json);
    frag_recording_destroy(&recording);
    frag_window_destroy(&window);
    return 0;
}

static int run_info(const frag_arguments *arguments)
{
    bool is_json = frag_arguments_is(arguments, "format", "jsonl");
    int first = 0;
    for (size_t i = 0; i < frag_arguments_operand_count(arguments) && !frag_is_interrupted(); i++) {
        if (i > 0 && !is_json)
            printf("\n");
        int code = info_one(arguments, frag_arguments_operand(arguments, i), is_json);
        first = first != 0 ? first : code;
    }
    return frag_is_interrupted() ? 130 : first;
}

static const frag_command_option info_options[] = {
    {"format", "FORMAT", .choices = "table|jsonl",
     .help = "a page for people, or one JSON object for each trace (default: table)"},
    FRAG_LOAD_OPTIONS,
    FRAG_WINDOW_OR_ALL_OPTIONS,
    {"device", "N", .help = "the device whose trace is taken, if there are several", .min = 0,
     .max = UINT32_MAX},
    {.name = NULL},
};

const frag_command frag_command_trace_info = {
    .name = "info",
    .operands = "TRACE...",
    .summary = "what a recording holds: counts, sizes, lifetimes, peaks",
    .description = "Counts of everything, requests by size, how long blocks live (in events), "
                   "streams and pools, the peak of requested bytes and where it is, and what the "
                   "recorded allocator reserved.",
    .examples = "fraglab trace info run.fgt  # a page\n"
                "fraglab trace info --format jsonl *.fgt  # for programs\n",
    .options = info_options,
    .operand_min = 1,
    .operand_max = UINT32_MAX,
    .run = run_info,
};
