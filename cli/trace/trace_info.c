/* `fraglab trace info`: counts, sizes, lifetimes and tables of a recording. */
#include <inttypes.h>
#include <stdlib.h>

#include "base/bits.h"
#include "base/bytes.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/text.h"
#include "cli/trace/trace_tools.h"

#define SIZE_CLASSES 56   /* of FRAG_REQUEST_BYTES_MAX */
#define TABLE_ROWS_MAX 12 /* of streams, pools and marks; jsonl has them all */

typedef struct request_share {
    uint64_t count;
    uint64_t bytes;
} request_share;

/* Marks of one name; those that end something do not count. */
typedef struct mark_share {
    uint32_t name; /* a string of the recording */
    uint64_t count;
    uint64_t first_event;
} mark_share;

/* What is counted beside trace->stats. */
typedef struct trace_facts {
    request_share sizes[SIZE_CLASSES]; /* requests of 2^i to 2^(i+1) - 1 bytes */
    uint64_t *lifetimes;               /* in events, of requests that were freed; ascending */
    uint64_t lifetime_count;
    uint64_t unfreed_count;
    request_share *streams;
    request_share *pools;
    mark_share *marks; /* in order of their first */
    uint32_t mark_count;
} trace_facts;

static int compare_lifetimes(const void *left, const void *right)
{
    uint64_t a = *(const uint64_t *)left;
    uint64_t b = *(const uint64_t *)right;
    return a < b ? -1 : a > b ? 1 : 0;
}

static void add_share(request_share *share, uint64_t bytes)
{
    share->count++;
    share->bytes += bytes;
}

static void collect_marks(const frag_recording *recording, const frag_trace *trace,
                          trace_facts *facts)
{
    uint32_t *places = frag_alloc(recording->strings.count, sizeof *places); /* index + 1 */
    facts->marks = frag_alloc(recording->strings.count, sizeof *facts->marks);
    for (uint64_t i = 0; i < trace->event_count; i++) {
        const frag_event *event = &trace->events[i];
        if (event->op != FRAG_OP_MARK || (event->flags & FRAG_EVENT_END) != 0)
            continue;
        uint32_t *place = &places[event->slot];
        if (*place == 0) {
            facts->marks[facts->mark_count++] = (mark_share){.name = event->slot, .first_event = i};
            *place = facts->mark_count;
        }
        facts->marks[*place - 1].count++;
    }
    frag_free(places);
}

static void collect(const frag_recording *recording, const frag_trace *trace, trace_facts *facts)
{
    *facts = (trace_facts){0};
    facts->lifetimes =
        frag_alloc((size_t)trace->stats.op_counts[FRAG_OP_ALLOC], sizeof *facts->lifetimes);
    facts->streams = frag_alloc((size_t)trace->stream_count + 1, sizeof *facts->streams);
    facts->pools = frag_alloc((size_t)trace->pool_count + 1, sizeof *facts->pools);
    uint64_t *born = frag_alloc((size_t)trace->slot_count + 1, sizeof *born); /* event + 1 */
    for (uint64_t i = 0; i < trace->event_count; i++) {
        const frag_event *event = &trace->events[i];
        if (event->op == FRAG_OP_FREE && born[event->slot] != 0) {
            facts->lifetimes[facts->lifetime_count++] = i + 1 - born[event->slot];
            born[event->slot] = 0;
        }
        if (event->op != FRAG_OP_ALLOC || (event->flags & FRAG_EVENT_INITIAL) != 0)
            continue;
        add_share(&facts->sizes[frag_bit_high(event->bytes)], event->bytes);
        add_share(&facts->streams[event->stream], event->bytes);
        add_share(&facts->pools[trace->pools == NULL ? 0 : trace->pools[i]], event->bytes);
        if (event->slot != FRAG_SLOT_NONE)
            born[event->slot] = i + 1;
    }
    for (uint32_t slot = 0; slot < trace->slot_count; slot++)
        facts->unfreed_count += born[slot] != 0 ? 1 : 0;
    if (facts->lifetime_count > 0)
        qsort(facts->lifetimes, (size_t)facts->lifetime_count, sizeof *facts->lifetimes,
              compare_lifetimes);
    frag_free(born);
    collect_marks(recording, trace, facts);
}

static void destroy_facts(trace_facts *facts)
{
    frag_free(facts->lifetimes);
    frag_free(facts->streams);
    frag_free(facts->pools);
    frag_free(facts->marks);
}

static uint64_t lifetime_at(const trace_facts *facts, uint64_t percent)
{
    return facts->lifetime_count == 0
               ? 0
               : facts->lifetimes[(facts->lifetime_count - 1) * percent / 100];
}

/* ---- one JSON object for each trace */
static frag_json *share_json(const request_share *share)
{
    frag_json *json = frag_json_create();
    frag_json_number(json, "requests", share->count);
    frag_json_number(json, "bytes", share->bytes);
    return json;
}

static void add_stats_json(frag_json *json, const frag_trace *trace)
{
    const frag_trace_stats *stats = &trace->stats;
    for (uint32_t op = 0; op < FRAG_OP_COUNT; op++) {
        char path[64];
        snprintf(path, sizeof path, "ops.%s", frag_op_name((frag_op)op));
        frag_json_number(json, path, stats->op_counts[op]);
    }
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
                           const frag_trace *trace, const trace_facts *facts)
{
    bool has_lifetimes = facts->lifetime_count > 0;
    frag_json_number(json, "lifetime_events.median",
                     has_lifetimes ? lifetime_at(facts, 50) : FRAG_UNLIMITED);
    frag_json_number(json, "lifetime_events.p90",
                     has_lifetimes ? lifetime_at(facts, 90) : FRAG_UNLIMITED);
    frag_json_number(json, "lifetime_events.p99",
                     has_lifetimes ? lifetime_at(facts, 99) : FRAG_UNLIMITED);
    frag_json_number(json, "lifetime_events.max",
                     has_lifetimes ? lifetime_at(facts, 100) : FRAG_UNLIMITED);
    frag_json_number(json, "never_freed", facts->unfreed_count);
    frag_json_array(json, "sizes");
    for (uint32_t i = 0; i < SIZE_CLASSES; i++)
        if (facts->sizes[i].count > 0) {
            frag_json *item = share_json(&facts->sizes[i]);
            frag_json_number(item, "from_bytes", (uint64_t)1 << i);
            frag_json_append(json, "sizes", item);
        }
    frag_json_array(json, "streams");
    for (uint32_t i = 0; i < trace->stream_count; i++) {
        char handle[32];
        snprintf(handle, sizeof handle, "0x%" PRIx64, trace->stream_handles[i]);
        frag_json *item = share_json(&facts->streams[i]);
        frag_json_text(item, "handle", handle);
        frag_json_append(json, "streams", item);
    }
    frag_json_array(json, "pools");
    for (uint32_t i = 0; i < trace->pool_count; i++) {
        char id[64];
        snprintf(id, sizeof id, "%" PRIu64 ":%" PRIu64, trace->pool_ids[i].high,
                 trace->pool_ids[i].low);
        frag_json *item = share_json(&facts->pools[i]);
        frag_json_text(item, "id", id);
        frag_json_append(json, "pools", item);
    }
    frag_json_array(json, "marks");
    for (uint32_t i = 0; i < facts->mark_count; i++) {
        const mark_share *mark = &facts->marks[i];
        frag_json *item = frag_json_create();
        frag_json_text(item, "name", frag_strings_get(&recording->strings, mark->name));
        frag_json_number(item, "count", mark->count);
        frag_json_number(item, "first_event", mark->first_event);
        frag_json_append(json, "marks", item);
    }
}

static void print_json(const frag_recording *recording, const frag_trace *trace,
                       const trace_facts *facts)
{
    frag_json *json = frag_json_create();
    frag_json_number(json, "schema", 1);
    frag_json_text(json, "trace", recording->name);
    frag_json_number(json, "device", trace->device);
    frag_json_text(json, "digest", trace->digest);
    frag_json_number(json, "events", trace->event_count);
    add_stats_json(json, trace);
    add_facts_json(json, recording, trace, facts);
    frag_recording_add_metadata(json, recording);
    frag_json_write(json, stdout, false);
}

/* ---- a page for each trace */
static void print_share(const char *name, const request_share *share)
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

/* Events that the importer put in; and blocks at the start whose size it guessed. */
static void print_inferred(const frag_trace *trace)
{
    uint64_t events = 0;
    uint64_t sizes = 0;
    for (uint64_t i = 0; i < trace->event_count; i++)
        if ((trace->events[i].flags & FRAG_EVENT_INFERRED) == 0)
            continue;
        else if ((trace->events[i].flags & FRAG_EVENT_INITIAL) != 0)
            sizes++;
        else
            events++;
    if (events > 0)
        printf("  inferred, not recorded   %s of the events\n", FRAG_COUNT(events));
    if (sizes > 0)
        printf("  guessed                  the size of %s block%s live at the start\n",
               FRAG_COUNT(sizes), sizes == 1 ? "" : "s");
}

static void print_stats(const frag_trace *trace)
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
    print_inferred(trace);
    if (trace->event_count > 0)
        printf("\n  what happened                     events\n");
    for (uint32_t op = 0; op < FRAG_OP_COUNT; op++)
        if (stats->op_counts[op] > 0)
            printf("  %-24s %14s\n", frag_op_name((frag_op)op), FRAG_COUNT(stats->op_counts[op]));
}

static void print_facts(const frag_trace *trace, const trace_facts *facts)
{
    if (trace->stats.op_counts[FRAG_OP_ALLOC] == 0)
        return;
    printf("\n  lifetime in events       ");
    if (facts->lifetime_count > 0)
        printf("median %s, 90%% %s, 99%% %s, longest %s; %s never freed\n",
               FRAG_COUNT(lifetime_at(facts, 50)), FRAG_COUNT(lifetime_at(facts, 90)),
               FRAG_COUNT(lifetime_at(facts, 99)), FRAG_COUNT(lifetime_at(facts, 100)),
               FRAG_COUNT(facts->unfreed_count));
    else
        printf("none of these requests is freed\n");
    printf("\n  size from                      requests           bytes\n");
    for (uint32_t i = 0; i < SIZE_CLASSES; i++)
        if (facts->sizes[i].count > 0)
            print_share(FRAG_BYTES((uint64_t)1 << i), &facts->sizes[i]);
    printf("\n  stream                         requests           bytes\n");
    for (uint32_t i = 0; i < trace->stream_count && i < TABLE_ROWS_MAX; i++) {
        char handle[32];
        snprintf(handle, sizeof handle, "0x%" PRIx64, trace->stream_handles[i]);
        print_share(handle, &facts->streams[i]);
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
        print_share(id, &facts->pools[i]);
    }
    if (trace->pool_count > TABLE_ROWS_MAX)
        printf("  and %" PRIu32 " more\n", trace->pool_count - TABLE_ROWS_MAX);
}

static void print_marks(const frag_recording *recording, const trace_facts *facts)
{
    if (facts->mark_count == 0)
        return;
    printf("\n  marks                 first at event  name\n");
    for (uint32_t i = 0; i < facts->mark_count && i < TABLE_ROWS_MAX; i++) {
        const mark_share *mark = &facts->marks[i];
        printf("  %-24s %11s  ", FRAG_COUNT(mark->count), FRAG_COUNT(mark->first_event));
        print_text(frag_strings_get(&recording->strings, mark->name));
        printf("\n");
    }
    if (facts->mark_count > TABLE_ROWS_MAX)
        printf("  and %" PRIu32 " more names\n", facts->mark_count - TABLE_ROWS_MAX);
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

static int info_one(const frag_arguments *arguments, const char *path, bool is_json)
{
    frag_error error = {0};
    frag_recording recording = {0};
    frag_findings findings = {0};
    if (!frag_trace_tools_load(arguments, path, &recording, &findings, &error))
        return frag_report(&error);
    if (!is_json)
        print_recording(&recording);
    for (uint32_t i = 0; i < recording.trace_count; i++) {
        const frag_trace *trace = &recording.traces[i];
        trace_facts facts;
        collect(&recording, trace, &facts);
        if (is_json) {
            print_json(&recording, trace, &facts);
        } else {
            printf("\n");
            print_stats(trace);
            print_facts(trace, &facts);
            print_marks(&recording, &facts);
        }
        destroy_facts(&facts);
    }
    frag_recording_destroy(&recording);
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

static const frag_command_option options[] = {
    {"format", "FORMAT", .choices = "table|jsonl",
     .help = "a page for people, or one JSON object for each trace (default: table)"},
    FRAG_LOAD_OPTIONS,
    {.name = NULL},
};

const frag_command frag_command_trace_info = {
    .name = "info",
    .operands = "TRACE...",
    .summary = "what a recording holds: counts, sizes, lifetimes, peaks",
    .description =
        "Counts of everything, requests by size, how long blocks live (in events), streams and "
        "pools, the "
        "peak of requested bytes and where it is, and what the recorded allocator reserved.",
    .examples = "fraglab trace info run.fgt  # a page\n"
                "fraglab trace info --format jsonl *.fgt  # for programs\n",
    .options = options,
    .operand_min = 1,
    .operand_max = UINT32_MAX,
    .run = run_info,
};
