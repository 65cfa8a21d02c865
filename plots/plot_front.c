/* Memory against cost, one point for each policy or row, and the Pareto
 * front. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/memory.h"
#include "base/threads.h"
#include "plots/parts/plot_bounds.h"
#include "plots/parts/plot_names.h"
#include "plots/plot.h"
#include "plots/plot_options.h"
#include "sim/policy_engine.h"

typedef struct point {
    const char *policy;
    uint64_t reserved_bytes;
    uint64_t calls;
    double time_ns;
    bool is_time_modelled;
    bool has_oom;    /* it did less work: its peak and its calls say nothing */
    bool is_planned; /* it saw the trace first, which no allocator can: a bound, not a rival */
    bool is_front;
    /* Where its name stands, in the units of the axes. */
    double name_cost;
    double name_over;
    int name_side;
    bool is_name_apart;
    bool has_name; /* there is room for it */
} point;

typedef struct front_figure {
    frag_plot plot;
    frag_policy_list policies;
    frag_device_spec device;
    point *points; /* in the order of the policies */
    char **names;  /* as they are drawn */
    frag_error *errors;
    frag_progress *progress;
    frag_row_packing packing; /* with --bounds */
    bool is_by_time;
} front_figure;

static void run_job(void *context, uint64_t index)
{
    front_figure *state = context;
    const frag_policy_spec *spec = &state->policies.specs[index];
    frag_policy_spec resolved = {0};
    frag_run_options run = {.context = state->plot.request->context};
    frag_run_result result = {0};
    if (!frag_is_cancelled(state->plot.request->context) &&
        frag_policy_resolve(state->plot.request->context, spec, &state->plot.recording, &resolved,
                            &state->errors[index])) {
        if (frag_run_count(&(frag_run_setup){&state->plot.recording, state->plot.trace,
                                             resolved.ops, resolved.values, &state->device},
                           &run, &result, &state->errors[index]))
            state->points[index] =
                (point){.policy = spec->text,
                        .reserved_bytes = result.replay.peak.reserved_bytes,
                        .calls = frag_run_memory_calls(&result),
                        .time_ns = result.modelled_time_ns,
                        .is_time_modelled = result.is_time_modelled,
                        .has_oom = result.replay.oom.has_happened,
                        .is_planned = frag_policy_engine_of(resolved.ops)->planner != NULL};
        frag_policy_spec_destroy(&resolved);
    }
    frag_progress_add(state->progress, 1);
}

static bool run_policies(front_figure *state, frag_error *error)
{
    size_t count = state->policies.count;
    state->points = frag_alloc(count, sizeof *state->points);
    state->errors = frag_alloc(count, sizeof *state->errors);
    state->progress = frag_progress_start(state->plot.request->context, "replaying", "runs", count);
    frag_for_each(frag_context_threads(state->plot.request->context), count, run_job, state);
    frag_progress_end(state->progress);
    for (size_t i = 0; i < count && !frag_is_cancelled(state->plot.request->context); i++)
        if (state->errors[i].code != FRAG_E_NONE) {
            *error = state->errors[i];
            return false;
        }
    return true;
}

static double cost_of(const front_figure *state, const point *at)
{
    return state->is_by_time ? at->time_ns : (double)at->calls;
}

/* Is a at least as good as b in both, and better in one? */
static bool beats(const front_figure *state, const point *a, const point *b)
{
    double cost_a = cost_of(state, a);
    double cost_b = cost_of(state, b);
    return !a->has_oom && !a->is_planned && a->reserved_bytes <= b->reserved_bytes &&
           cost_a <= cost_b && (a->reserved_bytes < b->reserved_bytes || cost_a < cost_b);
}

static void mark_front(front_figure *state)
{
    size_t count = state->policies.count;
    for (size_t i = 0; i < count; i++) {
        point *at = &state->points[i];
        at->is_front = !at->has_oom && !at->is_planned;
        for (size_t j = 0; at->is_front && j < count; j++)
            at->is_front = !beats(state, &state->points[j], at);
    }
}

/* ---- data */

static uint64_t bound_of(const front_figure *state)
{
    return frag_trace_bound_bytes(state->plot.trace);
}

/* Percent; what is nearer to the bound than the lowest one that is drawn stands there. */
static const double over_least = 0.1;

static double over_of(const front_figure *state, uint64_t bytes)
{
    double over = ((double)bytes / (double)bound_of(state) - 1) * 100;
    return over > over_least ? over : over_least;
}

static void write_data(const front_figure *state)
{
    FILE *stream = state->plot.data;
    fputs(
        "series,policy,reserved_bytes,over_bound_percent,calls,time_ns,is_oom,is_planned,is_front,"
        "peak_requested_bytes,packing_bytes,name_cost,name_over_percent,name_side,is_name_apart\n",
        stream);
    for (size_t i = 0; i < state->policies.count; i++) {
        const point *at = &state->points[i];
        fprintf(stream, "%zu,", i + 1);
        frag_text_write_csv(stream, at->policy);
        fprintf(stream, ",%" PRIu64 ",", at->reserved_bytes);
        if (!at->has_oom)
            fprintf(stream, "%.6f", over_of(state, at->reserved_bytes));
        fprintf(stream, ",%" PRIu64 ",", at->calls);
        if (at->is_time_modelled)
            fprintf(stream, "%.0f", at->time_ns);
        fprintf(stream, ",%d,%d,%d,%" PRIu64 ",", at->has_oom ? 1 : 0, at->is_planned ? 1 : 0,
                at->is_front ? 1 : 0, bound_of(state));
        if (state->packing.bytes > 0)
            fprintf(stream, "%" PRIu64, state->packing.bytes);
        if (!at->has_name)
            fputs(",,,,\n", stream);
        else
            fprintf(stream, ",%.6g,%.6g,%d,%d\n", at->name_cost, at->name_over, at->name_side,
                    at->is_name_apart ? 1 : 0);
    }
}

/* ---- where names stand */

/* Where the points are on the figure. Pixels are those of frag_tag. */
typedef struct axis_ends {
    double x_least, x_most, y_least, y_most;
    double width, height; /* of what is inside the axes, in pixels */
    /* Where that is in the whole figure: shares of its width and height, from the lower left. */
    double left, right, low, high;
} axis_ends;

/* What the labels of the axes, the title and the legend need. */
#define MARGIN_LEFT 86.0
#define MARGIN_RIGHT 24.0
#define MARGIN_LOW 58.0
#define MARGIN_HIGH 46.0
#define LEGEND_HEIGHT 20.0

static void find_size(const frag_plot *plot, bool has_legend, axis_ends *ends)
{
    bool is_drawn = plot->format != FRAG_PLOT_CSV && plot->format != FRAG_PLOT_TERMINAL;
    double width = is_drawn ? (double)plot->width / frag_plot_letter_scale(plot) : 800;
    double height = is_drawn ? (double)plot->height / frag_plot_letter_scale(plot) : 500;
    ends->width = fmax(50, width - MARGIN_LEFT - MARGIN_RIGHT);
    ends->height = fmax(50, height - MARGIN_LOW - MARGIN_HIGH - (has_legend ? LEGEND_HEIGHT : 0));
    ends->left = MARGIN_LEFT / width;
    ends->right = fmin(ends->left + ends->width / width, 1);
    ends->low = MARGIN_LOW / height;
    ends->high = fmin(ends->low + ends->height / height, 1);
}

static double x_of(const front_figure *state, const axis_ends *ends, const point *at)
{
    double cost = cost_of(state, at);
    double x = log(cost < ends->x_least ? ends->x_least : cost);
    return ends->width * (x - log(ends->x_least)) / (log(ends->x_most) - log(ends->x_least));
}

static double y_of(const front_figure *state, const axis_ends *ends, uint64_t bytes)
{
    return ends->height * log(over_of(state, bytes) / ends->y_least) /
           log(ends->y_most / ends->y_least);
}

static int compare_tags(const void *left, const void *right)
{
    const frag_tag *a = left, *b = right;
    return a->x < b->x ? -1 : a->x > b->x;
}

/* The steps of the front, from left to right. */
static size_t find_steps(const frag_tag *tags, size_t count, frag_tag_line *lines)
{
    frag_tag *front = frag_alloc(count, sizeof *front);
    size_t front_count = 0;
    size_t line_count = 0;
    for (size_t i = 0; i < count; i++)
        if (tags[i].is_important)
            front[front_count++] = tags[i];
    qsort(front, front_count, sizeof *front, compare_tags);
    for (size_t i = 1; i < front_count; i++) {
        const frag_tag *a = &front[i - 1];
        const frag_tag *b = &front[i];
        lines[line_count++] = (frag_tag_line){a->x, a->y, b->x, a->y};
        lines[line_count++] = (frag_tag_line){b->x, a->y, b->x, b->y};
    }
    frag_free(front);
    return line_count;
}

/* Where a point is, there is room for half the figure on one of its sides. */
static void shorten_names(front_figure *state, const axis_ends *ends)
{
    state->names = frag_alloc(state->policies.count, sizeof *state->names);
    for (size_t i = 0; i < state->policies.count; i++)
        state->names[i] = frag_plot_text_within(state->points[i].policy, 0.45 * ends->width);
}

static void place_names(front_figure *state, const axis_ends *ends)
{
    size_t policy_count = state->policies.count;
    frag_tag *tags = frag_alloc(policy_count, sizeof *tags);
    point **named = frag_alloc(policy_count, sizeof(point *));
    frag_tag_line *lines = frag_alloc(2 * policy_count + 1, sizeof *lines);
    size_t count = 0;
    for (size_t i = 0; i < policy_count; i++) {
        point *at = &state->points[i];
        if (at->has_oom)
            continue;
        named[count] = at;
        tags[count++] = (frag_tag){.x = x_of(state, ends, at),
                                   .y = y_of(state, ends, at->reserved_bytes),
                                   .radius = at->is_front     ? 6
                                             : at->is_planned ? 5
                                                              : 4,
                                   .width = frag_plot_text_width(state->names[i]),
                                   .is_important = at->is_front};
    }
    size_t line_count = find_steps(tags, count, lines);
    double packed = y_of(state, ends, state->packing.bytes);
    if (state->packing.bytes > 0)
        lines[line_count++] = (frag_tag_line){0, packed, ends->width, packed};
    frag_tag_field field = {ends->width, ends->height, lines, line_count};
    frag_plot_place_names(tags, count, &field);
    double across = log(ends->x_most) - log(ends->x_least);
    double up = log(ends->y_most / ends->y_least);
    for (size_t i = 0; i < count; i++) {
        named[i]->name_cost = ends->x_least * exp(tags[i].name_x / ends->width * across);
        named[i]->name_over = ends->y_least * exp(tags[i].name_y / ends->height * up);
        named[i]->name_side = tags[i].side;
        named[i]->is_name_apart = tags[i].is_apart && !tags[i].is_left_out;
        named[i]->has_name = !tags[i].is_left_out;
    }
    frag_free(lines);
    frag_free(named);
    frag_free(tags);
}

/* ---- the figure */

static void tell_left_out(const front_figure *state)
{
    size_t drawn = 0;
    size_t named = 0;
    frag_text failed = {0};
    for (size_t i = 0; i < state->policies.count; i++) {
        drawn += !state->points[i].has_oom;
        named += state->points[i].has_name;
        if (state->points[i].has_oom)
            frag_text_add(&failed, "%s%s", failed.length > 0 ? ", " : "",
                          state->points[i].policy);
    }
    /* Of a device without end, a policy that fails is of no use for the trace at all. */
    if (failed.length > 0 && state->device.capacity_bytes != FRAG_UNLIMITED)
        frag_context_warn(state->plot.request->context, "not drawn, for memory ran out: %s",
                          failed.bytes);
    frag_text_destroy(&failed);
    if (named < drawn)
        frag_context_warn(state->plot.request->context,
                          "%zu of %zu policies are drawn without their names, for which there is "
                          "no room; --width makes room, and the data (--format csv) has them all",
                          drawn - named, drawn);
}

/* What there is of each kind: gnuplot complains of a plot without a point. */
static void define_kinds(front_figure *state)
{
    uint64_t names[6] = {0}; /* those of the front last; right, middle, left */
    bool has_apart = false;
    bool has_others = false;
    bool has_planned = false;
    for (size_t i = 0; i < state->policies.count; i++) {
        const point *at = &state->points[i];
        if (at->has_oom)
            continue;
        if (at->has_name)
            names[(at->is_front ? 3 : 0) + at->name_side + 1] = 1;
        has_apart = has_apart || at->is_name_apart;
        has_others = has_others || (!at->is_front && !at->is_planned);
        has_planned = has_planned || at->is_planned;
    }
    frag_plot_define_numbers(&state->plot, "has_names", names, 6);
    frag_plot_define_number(&state->plot, "has_apart", has_apart ? 1 : 0);
    frag_plot_define_number(&state->plot, "has_others", has_others ? 1 : 0);
    frag_plot_define_number(&state->plot, "has_planned", has_planned ? 1 : 0);
}

static void define(front_figure *state, const axis_ends *ends)
{
    frag_plot *plot = &state->plot;
    frag_text title = {0};
    frag_text_add(&title, "%s · bound: %s requested at the peak", state->plot.recording.name,
                  FRAG_BYTES(bound_of(state)));
    frag_plot_define_title(plot, title.bytes);
    frag_text_destroy(&title);
    frag_plot_define_number(plot, "is_by_time", state->is_by_time ? 1 : 0);
    frag_plot_define_number(plot, "over_least", over_least);
    frag_plot_define_number(plot, "x_least", ends->x_least);
    frag_plot_define_number(plot, "x_most", ends->x_most);
    frag_plot_define_number(plot, "y_least", ends->y_least);
    frag_plot_define_number(plot, "y_most", ends->y_most);
    frag_plot_define_number(plot, "left_edge", ends->left);
    frag_plot_define_number(plot, "right_edge", ends->right);
    frag_plot_define_number(plot, "low_edge", ends->low);
    frag_plot_define_number(plot, "high_edge", ends->high);
    /* Axes are logarithmic: a distance is a factor. */
    frag_plot_define_number(plot, "name_gap",
                            pow(ends->x_most / ends->x_least, FRAG_TAG_GAP / ends->width));
    frag_plot_define_number(plot, "packing_over", over_of(state, state->packing.bytes));
    frag_plot_define_texts(plot, "names", (const char *const *)state->names, state->policies.count);
    define_kinds(state);
}

static int compare_points(const void *left, const void *right)
{
    const point *a = left, *b = right;
    if (a->has_oom != b->has_oom)
        return a->has_oom ? 1 : -1;
    if (a->reserved_bytes != b->reserved_bytes)
        return a->reserved_bytes < b->reserved_bytes ? -1 : 1;
    return strcmp(a->policy, b->policy);
}

static void print_bound(FILE *stream, size_t width, const char *name, uint64_t bytes,
                        uint64_t bound)
{
    fprintf(stream, "  %-*s  %13s  %+9.1f%%\n", (int)width, name, FRAG_BYTES(bytes),
            ((double)bytes / (double)bound - 1) * 100);
}

/* With characters: from the least memory to the most. */
static void print_characters(front_figure *state)
{
    FILE *stream = state->plot.characters;
    size_t count = state->policies.count;
    static const char packing[] = "bound: offline packing";
    size_t width = state->packing.bytes > 0 ? strlen(packing) : 6;
    for (size_t i = 0; i < count; i++) {
        size_t length = strlen(state->points[i].policy);
        width = length > width ? length : width;
    }
    qsort(state->points, count, sizeof *state->points, compare_points);
    fprintf(stream, "%s\n  %-*s  peak reserved  over bound  device calls%s\n",
            state->plot.recording.name, (int)width, "policy",
            state->is_by_time ? "  modelled time" : "");
    for (size_t i = 0; i < count; i++) {
        const point *at = &state->points[i];
        fprintf(stream, "%s %-*s  ", at->is_front ? "*" : " ", (int)width, at->policy);
        if (at->has_oom) {
            fputs("out of memory\n", stream);
            continue;
        }
        fprintf(stream, "%13s  %+9.1f%%  %12s", FRAG_BYTES(at->reserved_bytes),
                ((double)at->reserved_bytes / (double)bound_of(state) - 1) * 100,
                FRAG_COUNT(at->calls));
        if (state->is_by_time)
            fprintf(stream, "  %10.3f ms", at->time_ns / 1e6);
        fputc('\n', stream);
    }
    if (state->packing.bytes > 0) {
        frag_text bound = {0};
        frag_text_add(&bound, "bound: %s", frag_result_bound_name(state->plot.trace));
        print_bound(stream, width, bound.bytes, bound_of(state), bound_of(state));
        frag_text_destroy(&bound);
        print_bound(stream, width, packing, state->packing.bytes, bound_of(state));
    }
    fputs("\n* none beats it, but for policies that see the trace first\n", stream);
}

static bool fill(void *context, frag_error *error)
{
    front_figure *state = context;
    const char *by = frag_plot_setting_text(state->plot.request, "by");
    state->is_by_time = by != NULL ? strcmp(by, "time") == 0 : state->device.latency != NULL;
    if (state->is_by_time && state->device.latency == NULL)
        return frag_fail(error, FRAG_E_USAGE,
                         "--by time needs what calls cost; --latency FILE or --gpu NAME tell it");
    if (bound_of(state) == 0)
        return frag_fail(error, FRAG_E_INPUT, "the trace requests nothing; there is no front");
    if (!run_policies(state, error) || !frag_plot_packing(&state->plot, &state->packing, error))
        return false;
    if (frag_is_cancelled(state->plot.request->context))
        return true;
    mark_front(state);
    axis_ends ends = {.x_least = HUGE_VAL, .y_most = 10};
    for (size_t i = 0; i < state->policies.count; i++) {
        const point *at = &state->points[i];
        double cost = cost_of(state, at) > 1 ? cost_of(state, at) : 1;
        if (at->has_oom)
            continue;
        ends.x_least = cost < ends.x_least ? cost : ends.x_least;
        ends.x_most = cost > ends.x_most ? cost : ends.x_most;
        double over = over_of(state, at->reserved_bytes);
        ends.y_most = over > ends.y_most ? over : ends.y_most;
    }
    if (ends.x_most == 0)
        return frag_fail(error, FRAG_E_INPUT,
                         "every policy runs out of memory on this device; there is no front");
    if (over_of(state, state->packing.bytes) > ends.y_most)
        ends.y_most = over_of(state, state->packing.bytes);
    ends.x_least /= 1.5;
    ends.x_most *= 3; /* for the names on the right */
    ends.y_most *= 1.5;
    /* The line of a packing that is no higher than the bound stands clear of the axis. */
    ends.y_least = over_least * (state->packing.bytes > 0 ? 0.75 : 1);
    find_size(&state->plot, state->packing.bytes > 0, &ends);
    shorten_names(state, &ends);
    place_names(state, &ends);
    write_data(state);
    define(state, &ends);
    state->plot.is_written = state->plot.format == FRAG_PLOT_TERMINAL;
    if (state->plot.is_written)
        print_characters(state);
    else if (state->plot.format != FRAG_PLOT_CSV)
        tell_left_out(state);
    return true;
}

static bool draw(const frag_plot_request *request, frag_error *error)
{
    front_figure state = {.plot = {.kind = "front"}};
    state.policies = *request->policies;
    state.device = *request->device;
    bool ok = frag_plot_draw_trace(&state.plot, "front", request, false, fill, &state, error);
    for (size_t i = 0; state.names != NULL && i < state.policies.count; i++)
        frag_free(state.names[i]);
    frag_free(state.names);
    frag_free(state.points);
    frag_free(state.errors);
    return ok;
}

static const frag_command_option options[] = {
    FRAG_POLICY_OPTIONS,
    FRAG_DEVICE_OPTIONS,
    FRAG_PLOT_DEVICE_OPTION,
    FRAG_LOAD_OPTIONS,
    {"by", "COST", .choices = "calls|time",
     .help = "the cost beside memory: calls that move memory, or their modelled time (default: "
             "time if --latency or --gpu gives latencies, else calls)"},
    FRAG_BOUNDS_OPTION,
    FRAG_JOBS_OPTION,
    FRAG_PLOT_OPTIONS,
    {.name = NULL},
};

const frag_plot_kind frag_plot_front = {
    .command =
        {
            .name = "front",
            .operands = "TRACE",
            .summary = "memory against device calls or their time, and the policies that no other "
                       "beats in both",
            .description =
                "Draws each policy as a point: how far its peak of reserved bytes is above the "
                "bound, the peak of requested bytes, and what it cost in device calls, or in their "
                "modelled time. A policy is on the front when no other is at least as good in both "
                "and better in one. Policies that know the trace in advance, such as offline, are "
                "drawn hollow and are never on the front; those that run out of memory are not "
                "drawn. --bounds draws what a policy that knew the future would need.",
            .examples = "fraglab plot front train.pickle -o front.svg\n"
                        "fraglab plot front train.pickle --policy pytorch,best-fit,frugal "
                        "--latency docs/latency-example.yaml -o front.pdf",
            .options = options,
            .operand_min = 1,
            .operand_max = 1,
        },
    .policies = "all",
    .draw = draw,
};
