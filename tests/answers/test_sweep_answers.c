/* The rows of experiments that are drawn at random, over random traces: lists and ranges of options
 * and capacities, some drawn, some with bounds; how many rows were replayed; what an output with
 * the first rows is continued to. Every row is that of a sweep that replays all. What was changed
 * on purpose is pinned anew:
 *
 *   test_sweep_answers            compares with tests/data/answers/sweeps.txt.zst
 *   test_sweep_answers --write    prints what that file should hold (make answers-golden);
 *                                 with FRAG_PINNED_WHOLE in the environment every row
 */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "include/fraglab.h"
#include "tests/support/pinned_lines.h"
#include "tests/support/random_trace.h"
#include "tests/support/xorshift.h"

enum { TRACES = 24, EVENTS_MAX = 260, EXPERIMENTS = 160, CONTINUED = 3 };

static char folder[] = "/tmp/fraglab-sweep-XXXXXX";

static uint64_t draw(uint64_t *bits, uint64_t limit)
{
    return xorshift_next(bits) % limit;
}

/* ---- experiments */

static const char *const options[] = {
    "{max_split_size_mb: [unlimited, {from: 21, to: 672, factor: 2}]}",
    "{garbage_collection_threshold: {from: 0.2, to: 0.8, step: 0.2}}",
    "{expandable_segments: [true, false], version: [\"2.4\", \"2.9\", \"2.15\"]}",
    "{roundup_power2_divisions: [1, 2, 4, 8]}",
    "{large_segment_size_mb: {from: 20, to: 60, step: 20}, max_non_split_rounding_mb: [20, 100]}",
    "{per_process_memory_fraction: [1, 0.9, 0.5], max_split_size_mb: [unlimited, 64]}",
};

enum { OPTIONS = sizeof options / sizeof *options };

static const char *const others[] = {
    "best-fit",
    "{policy: best-fit, label: mine, options: {min_split: [512, 65536]}}",
    "{policy: tlsf, options: {grow: {from: 2MiB, to: 16MiB, factor: 4}}}",
    "offline",
    "rmm-pool",
    "{policy: size-class}",
    "frugal",
    "pytorch:version=2.9",
    "buddy",
};

static void add_policy(frag_text *text, uint64_t *bits)
{
    if (draw(bits, 3) == 0) {
        frag_text_add(text, "  - %s\n", others[draw(bits, sizeof others / sizeof *others)]);
        return;
    }
    frag_text_add(text, "  - {policy: pytorch, options: %s", options[draw(bits, OPTIONS)]);
    if (draw(bits, 4) == 0)
        frag_text_add(text, ", random: {count: 3, seed: %" PRIu64 "}", draw(bits, 9));
    frag_text_add(text, "}\n");
}

static void draw_experiment(frag_text *text, uint64_t *bits)
{
    static const char *const capacities[] = {
        "unlimited",       "[unlimited, {from: 8MiB, to: 128MiB, factor: 2}]",
        "[20MiB, 400MiB]", "{from: 10MiB, to: 90MiB, step: 16MiB}",
        "64MiB",           "[unlimited, 1GiB, 300MiB]"};
    frag_text_add(text, "name: drawn\ntraces: [t%" PRIu64 ".trace", draw(bits, TRACES / 2));
    frag_text_add(text, ", t%" PRIu64 ".trace]\npolicies:\n", TRACES / 2 + draw(bits, TRACES / 2));
    for (uint64_t i = 1 + draw(bits, 3); i-- > 0;)
        add_policy(text, bits);
    frag_text_add(text, "capacities: %s\n", capacities[draw(bits, 6)]);
    if (draw(bits, 2) == 0)
        frag_text_add(text, "on_oom: skip\n");
    if (draw(bits, 6) == 0)
        frag_text_add(text, "bounds: true\n");
}

/* ---- answers */

/* Of each row what follows the tool, which names the build. */
static void tell_rows(frag_text *out, const char *rows)
{
    for (const char *line = rows; line != NULL && *line != '\0';) {
        size_t length = strcspn(line, "\n");
        const char *tool = strstr(line, "\"tool\":{");
        const char *from = tool != NULL ? strchr(tool, '}') : line;
        frag_text_add(out, "%.*s\n", (int)(line + length - from), from);
        line += length + (line[length] == '\n');
    }
}

static char *sweep(const frag_text *experiment, const fraglab_sweep_options *how,
                   fraglab_sweep_totals *totals)
{
    char *rows = NULL;
    fraglab_error error = FRAGLAB_ERROR_INIT;
    *totals = (fraglab_sweep_totals){.size = sizeof *totals};
    if (fraglab_sweep_memory(NULL, experiment->bytes, experiment->length, how, &rows, totals,
                             &error) != FRAGLAB_OK)
        fail_msg("%s\n%s", experiment->bytes, error.sentence);
    return rows;
}

/* Behind so many rows and half of the next: how long a row is depends on the name of the build. */
static size_t cut_behind(const char *rows, uint64_t count)
{
    const char *at = rows;
    while (count-- > 0)
        at = strchr(at, '\n') + 1;
    return (size_t)(at - rows) + strcspn(at, "\n") / 2;
}

/* The first rows are there already, the last of them cut. */
static void tell_continued(frag_text *out, const frag_text *experiment, const char *rows,
                           uint64_t row_count)
{
    char path[sizeof folder + 16];
    fraglab_sweep_totals totals;
    snprintf(path, sizeof path, "%s/rows.jsonl", folder);
    for (int i = 1; i <= CONTINUED; i++) {
        FILE *file = fopen(path, "w");
        assert_non_null(file);
        fwrite(rows, 1, cut_behind(rows, row_count * (uint64_t)i / (CONTINUED + 1)), file);
        assert_int_equal(fclose(file), 0);
        char *rest =
            sweep(experiment,
                  &(fraglab_sweep_options){
                      .size = sizeof(fraglab_sweep_options), .folder = folder, .output = path},
                  &totals);
        size_t length = strlen(rest);
        assert_true(length <= strlen(rows));
        assert_string_equal(rest, rows + strlen(rows) - length);
        frag_text_add(out, "%" PRIu64 " found, %" PRIu64 " more, %" PRIu64 " replayed\n",
                      totals.found, totals.rows, totals.replayed);
        fraglab_free(rest);
    }
    unlink(path);
}

static void tell_experiment(frag_text *out, uint64_t seed)
{
    frag_text experiment = {0};
    fraglab_sweep_totals totals, whole;
    fraglab_sweep_options how = {.size = sizeof how, .folder = folder};
    size_t from = out->length;
    uint64_t bits = (seed + 1) * 0x9e3779b97f4a7c15u;
    draw_experiment(&experiment, &bits);
    how.counts_only = seed % 3 == 0;
    char *rows = sweep(&experiment, &how, &totals);
    how.replay_all = 1;
    char *all = sweep(&experiment, &how, &whole);
    assert_string_equal(rows, all);
    frag_text_add(out, "%s%" PRIu64 " rows, %" PRIu64 " replayed, %" PRIu64 " of all\n",
                  experiment.bytes, totals.rows, totals.replayed, whole.replayed);
    tell_rows(out, rows);
    if (seed % 3 == 1)
        tell_continued(out, &experiment, rows, totals.rows);
    pinned_fold(out, from, "experiment");
    fraglab_free(rows);
    fraglab_free(all);
    frag_text_destroy(&experiment);
}

static void path_of(char *path, size_t bytes, int number)
{
    snprintf(path, bytes, "%s/t%d.trace", folder, number);
}

static void write_traces(void)
{
    random_trace trace = {0};
    uint64_t seed = 31001;
    char path[sizeof folder + 24];
    for (int i = 0; i < TRACES; seed++) {
        random_trace_draw(&trace, seed);
        if (trace.count > EVENTS_MAX)
            continue;
        frag_text text = {0};
        random_trace_write(&trace, &text);
        path_of(path, sizeof path, i++);
        FILE *file = fopen(path, "w");
        assert_non_null(file);
        fwrite(text.bytes, 1, text.length, file);
        assert_int_equal(fclose(file), 0);
        frag_text_destroy(&text);
    }
    random_trace_destroy(&trace);
}

static void tell_all(frag_text *out)
{
    char path[sizeof folder + 24];
    assert_non_null(mkdtemp(folder));
    write_traces();
    for (uint64_t seed = 0; seed < EXPERIMENTS; seed++)
        tell_experiment(out, seed);
    for (int i = 0; i < TRACES; i++) {
        path_of(path, sizeof path, i);
        unlink(path);
    }
    assert_int_equal(rmdir(folder), 0);
}

static const pinned_lines pinned = {"tests/data/answers/sweeps.txt.zst", tell_all,
                                    "answers-golden"};

int main(int argc, char **argv)
{
    return pinned_lines_test(&pinned, argc, argv);
}
