/* The rows of `make bench`, as a table and as JSON. */
#ifndef FRAG_BENCHMARKS_BENCH_REPORT_H
#define FRAG_BENCHMARKS_BENCH_REPORT_H

#include "base/error.h"
#include "tests/benchmarks/bench_measure.h"

#define BENCH_HOST_BYTES_TARGET 64.0 /* a live block */
#define BENCH_SNAPSHOT_KIND "torch snapshot"

typedef struct bench_replay_row {
    char trace[64];
    const char *policy;
    uint64_t events;
    bench_spread whole_ns; /* create and run, per event */
    bench_spread run_ns;   /* run alone, per event */
    uint64_t host_bytes;   /* 0: not known */
    uint64_t live_blocks_max;
    double target_ns; /* 0: none */
    bool is_over;
} bench_replay_row;

typedef struct bench_load_row {
    char trace[64];
    const char *kind;
    uint64_t events; /* entries, of a snapshot */
    uint64_t content_bytes;
    bench_spread events_per_us; /* million events a second */
    bench_spread mb_per_s;
    uint64_t peak_bytes; /* resident, above a program that loads nothing; 0: not known */
    double target;       /* million events a second; 0: none */
    bool is_over;
} bench_load_row;

typedef struct bench_rows {
    bench_replay_row *replays;
    size_t replay_count;
    size_t replay_capacity;
    bench_load_row *loads;
    size_t load_count;
    size_t load_capacity;
    uint32_t repetitions;
} bench_rows;

/* On stdout. */
void bench_rows_print(const bench_rows *rows, const char *processor);
bool bench_rows_write_json(const bench_rows *rows, const char *path, const char *processor,
                           frag_error *error);

#endif
