#include "tests/benchmarks/bench_report.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/file.h"
#include "base/json.h"
#include "sim/version.h"

void bench_rows_print(const bench_rows *rows, const char *processor)
{
    printf("fraglab %s (%s), %s build, %s\n%s, %ld cores; one is used. Time on the core; median "
           "[least..most] of %u.\n",
           frag_version(), frag_commit(), frag_build_mode(), frag_compiler(), processor,
           sysconf(_SC_NPROCESSORS_ONLN), rows->repetitions);
    if (rows->load_count > 0)
        printf("\n%-32s %-16s %9s %26s %22s %9s  %s\n", "loading", "", "events", "million a second",
               "MB/s", "peak MiB", "target");
    for (size_t i = 0; i < rows->load_count; i++) {
        const bench_load_row *row = &rows->loads[i];
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
    for (size_t i = 0; i < rows->replay_count; i++) {
        const bench_replay_row *row = &rows->replays[i];
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
            printf("  MISSED %.0f B/block", BENCH_HOST_BYTES_TARGET);
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

static void add_load(frag_json *rows, const bench_load_row *row)
{
    frag_json *json = frag_json_add(rows, "loads");
    frag_json_text(json, "trace", row->trace);
    frag_json_text(json, "form", row->kind);
    frag_json_number(json, strcmp(row->kind, BENCH_SNAPSHOT_KIND) == 0 ? "entries" : "events",
                     row->events);
    frag_json_number(json, "content_bytes", row->content_bytes);
    bench_spread_json(json, "million_per_second", row->events_per_us);
    bench_spread_json(json, "megabytes_per_second", row->mb_per_s);
    frag_json_number(json, "peak_resident_bytes", row->peak_bytes);
    write_target(json, row->target, row->is_over);
}

static void add_replay(frag_json *rows, const bench_replay_row *row)
{
    frag_json *json = frag_json_add(rows, "replays");
    frag_json_text(json, "trace", row->trace);
    frag_json_text(json, "policy", row->policy);
    frag_json_number(json, "events", row->events);
    bench_spread_json(json, "ns_per_event", row->whole_ns);
    bench_spread_json(json, "run_ns_per_event", row->run_ns);
    frag_json_number(json, "host_bytes", row->host_bytes > 0 ? row->host_bytes : FRAG_UNLIMITED);
    frag_json_number(json, "live_blocks_max", row->live_blocks_max);
    write_target(json, row->target_ns, row->is_over);
}

bool bench_rows_write_json(const bench_rows *rows, const char *path, const char *processor,
                           frag_error *error)
{
    frag_output *output = frag_output_open(path, true, error);
    if (output == NULL)
        return false;
    frag_json *json = frag_json_create();
    frag_json_text(json, "tool.version", frag_version());
    frag_json_text(json, "tool.commit", frag_commit());
    frag_json_text(json, "tool.mode", frag_build_mode());
    frag_json_text(json, "tool.compiler", frag_compiler());
    frag_json_text(json, "machine.processor", processor);
    frag_json_number(json, "machine.cores", (uint64_t)sysconf(_SC_NPROCESSORS_ONLN));
    frag_json_number(json, "repetitions", rows->repetitions);
    frag_json_array(json, "loads");
    for (size_t i = 0; i < rows->load_count; i++)
        add_load(json, &rows->loads[i]);
    frag_json_array(json, "replays");
    for (size_t i = 0; i < rows->replay_count; i++)
        add_replay(json, &rows->replays[i]);
    frag_json_write(json, frag_output_stream(output), true);
    return frag_output_finish(output, error);
}
