#include "cli/search/diff_print.h"

#include <inttypes.h>
#include <string.h>

#include "base/bytes.h"
#include "base/memory.h"
#include "base/text_table.h"
#include "cli/site_table.h"
#include "sim/trace/site_names.h"

/* ---- the two sides */

static const char *const side_names[] = {"before", "after"};

/* "before  run.fgt, event 120 (step 2)" */
static void print_names(FILE *stream, const frag_diff *diff)
{
    for (size_t i = 0; i < 2; i++) {
        const frag_diff_source *source = &diff->sides[i].source;
        frag_text name = {0};
        frag_text_add(&name, "%s", source->recording->name);
        frag_text_make_plain(name.bytes);
        fprintf(stream, "%-6s  %s, event %s", side_names[i], name.bytes,
                FRAG_COUNT(diff->sides[i].range.moment));
        if (source->at != NULL)
            fprintf(stream, " (%s)", source->at);
        if (source->recording->trace_count > 1)
            fprintf(stream, ", device %" PRIu32, source->trace->device);
        fputc('\n', stream);
        frag_text_destroy(&name);
    }
    fputc('\n', stream);
}

/* "+12.5 %", where there was something to take a share of. */
static void add_share(frag_text *text, uint64_t before, uint64_t after)
{
    if (before > 0 && before != after)
        frag_text_add(text, "%+.1f %%", 100.0 * ((double)after - (double)before) / (double)before);
}

static void add_bytes_row(frag_text_table *table, const char *title, uint64_t before,
                          uint64_t after)
{
    frag_text_table_add(table, title);
    frag_text_table_add(table, FRAG_BYTES(before));
    frag_text_table_add(table, FRAG_BYTES(after));
    frag_byte_change_cell(table, before, after);
    add_share(frag_text_table_cell(table), before, after);
}

static void add_count_row(frag_text_table *table, const char *title, uint64_t before,
                          uint64_t after)
{
    frag_text_table_add(table, title);
    frag_text_table_add(table, FRAG_COUNT(before));
    frag_text_table_add(table, FRAG_COUNT(after));
    const char *sign = after > before ? "+" : after < before ? "-" : "";
    frag_text_add(frag_text_table_cell(table), "%s%s", sign,
                  FRAG_COUNT(after > before ? after - before : before - after));
    add_share(frag_text_table_cell(table), before, after);
}

static const char *title_of_moment(const frag_diff *diff)
{
    const char *at[2] = {diff->sides[0].source.at, diff->sides[1].source.at};
    bool is_peak = (at[0] == NULL || strcmp(at[0], "peak") == 0) &&
                   (at[1] == NULL || strcmp(at[1], "peak") == 0);
    return is_peak ? "held at the peak" : "held there";
}

/* Two moments of the same events: their requests are not two things. */
static bool is_same_range(const frag_diff *diff)
{
    const frag_use_range *a = &diff->sides[0].range, *b = &diff->sides[1].range;
    return diff->is_one_trace && a->first == b->first && a->end == b->end;
}

static void print_sides(FILE *stream, const frag_diff *diff)
{
    const char *const titles[] = {"", side_names[0], side_names[1], "change", ""};
    frag_text_table table = {.columns = 5};
    frag_diff_figure figures[FRAG_DIFF_FIGURES];
    frag_diff_figures(diff, figures);
    frag_text_table_add_line(&table, titles);
    add_bytes_row(&table, title_of_moment(diff), figures[0].values[0], figures[0].values[1]);
    for (size_t i = 1; i < FRAG_DIFF_FIGURES; i++)
        if (figures[i].is_known)
            add_bytes_row(&table, figures[i].title, figures[i].values[0], figures[i].values[1]);
    if (figures[1].is_known)
        add_count_row(&table, "device calls", frag_run_memory_calls(&diff->sides[0].run),
                      frag_run_memory_calls(&diff->sides[1].run));
    if (!is_same_range(diff))
        add_count_row(&table, "requests", diff->sides[0].request_count,
                      diff->sides[1].request_count);
    frag_text_table_print(&table, false, stream);
}

static void print_runs(FILE *stream, const frag_diff *diff)
{
    const frag_diff_side *sides = diff->sides;
    if (sides[0].policy == NULL)
        return;
    if (strcmp(sides[0].policy, sides[1].policy) == 0)
        fprintf(stream, "replayed with %s\n", sides[0].policy);
    else
        fprintf(stream, "replayed with %s, and %s\n", sides[0].policy, sides[1].policy);
    for (size_t i = 0; i < 2; i++)
        if (sides[i].run.replay.oom.has_happened)
            fprintf(stream, "%s runs out of memory at event %s\n", side_names[i],
                    FRAG_COUNT(sides[i].run.replay.oom.event));
}

/* ---- requests */

static void print_request(FILE *stream, const frag_diff *diff, size_t side)
{
    const frag_recording *recording = diff->sides[side].source.recording;
    const frag_trace *trace = diff->sides[side].source.trace;
    uint64_t event = diff->part_events[side];
    if (event == FRAG_UNLIMITED) {
        fprintf(stream, "  %-6s  no more\n", side_names[side]);
        return;
    }
    uint32_t frame = trace->sites != NULL ? frag_site_frame(recording, trace->sites[event]) : 0;
    uint64_t bytes = trace->events[event].bytes;
    fprintf(stream, "  %-6s  event %s, %s byte%s", side_names[side], FRAG_COUNT(event),
            FRAG_COUNT(bytes), bytes == 1 ? "" : "s");
    if (frame != 0) {
        frag_text site = {0};
        frag_frame_text(recording, frame - 1, 80, &site);
        fprintf(stream, ", %s", site.bytes);
        frag_text_destroy(&site);
    }
    fputc('\n', stream);
}

static void print_requests(FILE *stream, const frag_diff *diff)
{
    const char *verb = diff->same_requests == 1 ? " is" : "s are";
    if (!diff->has_parting) {
        fprintf(stream, "\nall requests are equal one by one, in size and stream: %s\n",
                FRAG_COUNT(diff->same_requests));
        return;
    }
    if (diff->same_requests > 0)
        fprintf(stream, "\n%s request%s equal one by one, in size and stream; then\n",
                FRAG_COUNT(diff->same_requests), verb);
    else
        fprintf(stream, "\nthe first requests differ\n");
    for (size_t i = 0; i < 2; i++)
        print_request(stream, diff, i);
}

/* ---- groups */

/* What callers among the changes hold: all, or those without a line of code. */
typedef struct net_change {
    size_t callers;
    uint64_t before;
    uint64_t after;
} net_change;

static net_change add_up(const frag_site_change *changes, size_t count, bool is_all)
{
    net_change net = {0};
    for (size_t i = 0; i < count; i++)
        if (changes[i].inner == NULL && (is_all || !changes[i].has_place)) {
            net.callers++;
            net.before += changes[i].before.live_bytes;
            net.after += changes[i].after.live_bytes;
        }
    return net;
}

static void print_net(FILE *stream, const char *before, const char *behind, net_change net)
{
    frag_text text = {0};
    frag_byte_change_add(&text, net.before, net.after);
    if (net.callers > 0)
        fprintf(stream, "%s%s%s", before, text.bytes, behind);
    frag_text_destroy(&text);
}

/* Is more than half of what changed without a line of code? */
static bool is_elsewhere(const frag_site_change *changes, size_t count)
{
    net_change all = add_up(changes, count, true);
    net_change others = add_up(changes, count, false);
    double whole = (double)all.after - (double)all.before;
    double part = (double)others.after - (double)others.before;
    return count == 0 || (whole < 0 ? 2 * part < whole : 2 * part > whole);
}

/* The first rows of a table of changes, and what they leave out. */
static void print_changes(FILE *stream, const char *const titles[5],
                          const frag_site_change *changes, size_t count, uint64_t rows)
{
    frag_site_table_print(stream, titles, changes, count < rows ? count : rows);
    if (count > rows) {
        fprintf(stream, "and %" PRIu64 " more lines", count - rows);
        print_net(stream, ", ", "", add_up(changes + rows, count - rows, true));
        fprintf(stream, ": --rows N, or --format jsonl\n");
    }
    print_net(
        stream,
        changes[0].has_place ? "without a line of code, so last: " : "without a line of code: ",
        " in all (the autograd thread is the backward pass)\n", add_up(changes, count, false));
}

/* What lines of code hold less or more at other moments, unless the first of them has stood there:
 * the first of the changes at the moment, NULL where there are none. */
static void print_most(FILE *stream, const frag_diff *diff, const frag_site_change *first,
                       uint64_t rows)
{
    const char *const titles[] = {"most it held itself, at any time", side_names[0], side_names[1],
                                  "requests", NULL};
    frag_site_change *changes = NULL;
    size_t count = 0;
    size_t all = frag_site_uses_compare_most(&diff->sides[0].uses, &diff->sides[1].uses, &changes);
    const frag_site_change *lines = changes;
    for (; all > 0 && !lines->has_place; all--)
        lines++;
    while (count < all && lines[count].has_place)
        count++;
    bool is_same = first != NULL && count > 0 && strcmp(first->caller, lines[0].caller) == 0 &&
                   first->before.live_bytes == lines[0].before.live_bytes &&
                   first->after.live_bytes == lines[0].after.live_bytes;
    if (count > 0 && !is_same) {
        fputc('\n', stream);
        print_changes(stream, titles, lines, count, rows);
    }
    frag_free(changes);
}

static void print_groups(FILE *stream, const frag_diff *diff, uint64_t rows)
{
    static const char *const titles[] = {"held there, by call site", "held there, by call stack",
                                         "held there, by purpose", "held there, by size"};
    frag_site_change *changes = NULL;
    size_t count = frag_site_uses_compare(&diff->sides[0].uses, &diff->sides[1].uses, &changes);
    const char *const columns[] = {titles[diff->grouping], side_names[0], side_names[1], "blocks",
                                   diff->grouping == FRAG_USES_BY_SITE ? "line" : NULL};
    fputc('\n', stream);
    if (count > 0)
        print_changes(stream, columns, changes, count, rows);
    else
        fprintf(stream, "both hold the same there\n");
    if (is_elsewhere(changes, count))
        print_most(stream, diff, count > 0 ? changes : NULL, rows);
    if (diff->files[0] != NULL)
        fprintf(stream, "%s is compared with %s as one file\n", diff->files[0], diff->files[1]);
    if (diff->is_without_stacks)
        fprintf(stream, "by size, since not both recordings hold call stacks\n");
    frag_free(changes);
}

void frag_diff_print(FILE *stream, const frag_diff *diff, uint64_t rows)
{
    print_names(stream, diff);
    print_sides(stream, diff);
    print_runs(stream, diff);
    if (!is_same_range(diff))
        print_requests(stream, diff);
    print_groups(stream, diff, rows);
}
