#!/usr/bin/env bash
# The five changes of docs/architecture.md, made in a copy of the tree: a policy, a format, a metric, an option of run, a kind of
# figure. Builds the copy, uses each of the five, and counts for each the new files and the lines added to files that were there.
#     bash tests/house/five_changes.sh [FOLDER]    # the copy; made anew
set -eu
copy=${1:-build/five-changes}
rm -rf "$copy"
mkdir -p "$copy"
git ls-files -co --exclude-standard | while read -r file; do [ ! -f "$file" ] || echo "$file"; done | tar cf - -T - | tar xf - -C "$copy"
cd "$copy"
git init -q . && git add -A && git -c user.name=five -c user.email=five@localhost commit -qm base

insert() { # FILE, LINE OF TEXT BEHIND WHICH (fixed), LINE
    BEHIND=$2 NEW=$3 awk '{ print } index($0, ENVIRON["BEHIND"]) && !done { print ENVIRON["NEW"]; done = 1 }' "$1" >"$1.new"
    ! cmp -s "$1" "$1.new" || { echo "five changes: '$2' does not stand in $1" >&2; exit 1; }
    mv "$1.new" "$1"
}
count() { # WHAT
    git add -A
    git diff --cached --numstat --no-renames | awk -v what="$1" '{ if (system("git cat-file -e HEAD:" $3 " 2>/dev/null") == 0) { lines += $1; changed++ } else files++ }
        END { printf "%-18s %d new file%s, %d line%s in %d other%s\n", what, files, files == 1 ? "" : "s", lines, lines == 1 ? "" : "s", changed, changed == 1 ? "" : "s" }'
    git -c user.name=five -c user.email=five@localhost commit -qm "$1"
}

# ---- a policy: the example, without what a shared object needs besides
sed -e '/^FRAG_POLICY_EXPORT/d' -e 's/^static const frag_policy_ops my_policy_ops/const frag_policy_ops frag_policy_twin/' \
    -e 's/\.name = "[^"]*"/.name = "twin"/' examples/my_policy.c >allocators/own/twin.c
insert allocators/registry.c 'X(frugal)' '    X(twin) \'
count 'a policy'

# ---- a format: a line is the bytes of a request that is never freed
cat >traces/text/lengths.c <<'C'
/* Recordings of a line each: the bytes of a request that is never freed. */
#include <string.h>

#include "traces/builder.h"
#include "traces/exchange/csv_lines.h"
#include "traces/formats.h"

static bool is_like(const unsigned char *bytes, size_t count)
{
    return count >= 8 && memcmp(bytes, "lengths\n", 8) == 0;
}

static bool read_lengths(frag_input *input, const frag_load_options *options,
                         frag_recording *recording, frag_findings *findings, frag_error *error)
{
    (void)options;
    (void)findings;
    *recording = (frag_recording){0};
    frag_builder *builder = frag_builder_create(recording);
    frag_csv_lines lines = {.input = input};
    frag_csv_field field = {0};
    frag_builder_device(builder, 0);
    while (frag_csv_next(&lines, &field.bytes, &field.length, error)) {
        uint64_t bytes = 0;
        if (frag_csv_number(&field, 1 << 30, &bytes))
            frag_builder_add(builder, &(frag_build_event){.op = FRAG_OP_ALLOC,
                                                          .bytes = bytes,
                                                          .slot = frag_builder_slot_take(builder)});
    }
    return frag_builder_end(builder, !lines.has_failed, input, error);
}

const frag_format frag_format_lengths = {
    .what = "lengths of requests, text",
    .page = "exchange.md#lengths",
    .is_like = is_like,
    .has_magic = true,
    .read = read_lengths,
};
C
insert traces/formats.h 'NEXT(TEXT, text, "text")' '    NEXT(LENGTHS, lengths, "lengths") \'
count 'a format'

# ---- a metric, which a run keeps
insert sim/rows/row_fields.c '"peak of allocated bytes"},' '    {"peak.served_requests", COUNT, MORE, RESULT(replay.requests), "requests that were served"},'
count 'a metric'

# ---- an option of run
insert cli/run/run_command.c 'static const frag_command_option options[] = {' '    {"greeting", "WORD", .help = "what stderr begins with"},'
insert cli/run/run_command.c 'state->run.is_timed = frag_arguments_has(arguments, "timing");' \
    '    fputs(frag_arguments_has(arguments, "greeting") ? frag_arguments_value(arguments, "greeting") : "", stderr);'
count 'an option of run'

# ---- a kind of figure
cat >plots/plot_count.c <<'C'
/* How many events a trace has, as a bar. */
#include <inttypes.h>

#include "plots/plot.h"
#include "plots/plot_options.h"

typedef struct count_figure {
    frag_plot plot;
} count_figure;

static bool fill(void *context, frag_error *error)
{
    (void)error;
    count_figure *state = context;
    fprintf(state->plot.data, "events\n%" PRIu64 "\n", state->plot.trace->event_count);
    return true;
}

static bool draw(const frag_plot_request *request, frag_error *error)
{
    count_figure state;
    return frag_plot_draw_trace(&state.plot, "count", request, false, fill, &state, error);
}

static const frag_command_option options[] = {
    FRAG_LOAD_OPTIONS,
    FRAG_PLOT_OPTIONS,
    {.name = NULL},
};

const frag_plot_kind frag_plot_count = {
    .command = {.name = "count",
                .operands = "TRACE",
                .summary = "how many events a trace has",
                .description = "Draws one bar.",
                .examples = "fraglab plot count train.pickle -o count.svg",
                .options = options,
                .operand_min = 1,
                .operand_max = 1},
    .draw = draw,
};
C
echo 'plot data using 0:1 skip 1 with boxes notitle' >plots/count.gp
insert plots/plot.h 'X(sites)' '    X(count) \'
count 'a kind of figure'

# ---- each of them at work
${MAKE:-make} --no-print-directory -s -j"${JOBS:-2}" build/release/fraglab
run() { build/release/fraglab "$@"; }
printf 'lengths\n512\n1024\n' >build/three.txt
run run build/three.txt --policy twin --format jsonl --greeting hello 2>build/said >build/row
grep -q '"name":"twin"' build/row && grep -q hello build/said
grep -q '"served_requests":2' build/row
run help run | grep -q 'lengths'
run plot count build/three.txt -o build/count.csv -f && tail -n 1 build/count.csv | grep -qx 2
run help run | grep -q -- --greeting && run policies | grep -q twin && run help plot | grep -q count && run help --schema | grep -q served_requests
echo "each of the five works"
