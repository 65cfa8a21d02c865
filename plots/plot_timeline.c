/* Requested, allocated, active and reserved bytes over time. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/memory.h"
#include "plots/parts/plot_bounds.h"
#include "plots/plot.h"
#include "plots/plot_options.h"
#include "sim/replay/timeline.h"
#include "sim/trace/demand.h"

typedef struct timeline_figure {
    frag_plot plot;
    frag_policy_list policies;
    frag_device_spec device;
    uint64_t samples;
    uint64_t *times_ns; /* since the start, never going back; NULL: x is events */
    uint64_t max_bytes;
    frag_oom *ooms;  /* one per policy */
    uint64_t *peaks; /* of reserved bytes, one per policy; UINT64_MAX: it ran out of memory */
    frag_row_packing packing; /* with --bounds */
} timeline_figure;

static void write_head(const timeline_figure *state, const char *kind, size_t series,
                       const char *policy, uint64_t event)
{
    FILE *stream = state->plot.data;
    fprintf(stream, "%s,%zu,", kind, series);
    frag_text_write_csv(stream, policy);
    fprintf(stream, ",%" PRIu64 ",", event);
    if (state->times_ns != NULL)
        fprintf(stream, "%" PRIu64, state->times_ns[event]);
    fputc(',', stream);
}

static void note_max(timeline_figure *state, uint64_t bytes)
{
    if (bytes > state->max_bytes)
        state->max_bytes = bytes;
}

/* ---- what the trace itself says */

typedef enum fact { FACT_DEMAND, FACT_RECORDED } fact;

/* Requested bytes whatever a policy makes of them, or reserved bytes of the recorded allocator. */
static frag_timeline *follow(const timeline_figure *state, fact wanted)
{
    const frag_trace *trace = state->plot.trace;
    frag_timeline *timeline = frag_timeline_create(trace->event_count, state->samples);
    frag_demand demand;
    frag_demand_change change;
    frag_level level = {0};
    uint64_t start = frag_trace_start(trace);
    frag_demand_begin(&demand, trace);
    for (uint64_t i = 0; i < trace->event_count; i++) {
        const frag_event *event = &trace->events[i];
        if (wanted == FACT_RECORDED) {
            uint64_t *value = &level.reserved_bytes;
            if (event->op == FRAG_OP_SEGMENT_ALLOC || event->op == FRAG_OP_SEGMENT_MAP)
                *value += event->bytes;
            else if (event->op == FRAG_OP_SEGMENT_FREE || event->op == FRAG_OP_SEGMENT_UNMAP)
                *value -= event->bytes < *value ? event->bytes : *value;
        } else if (frag_demand_step(&demand, i, &change)) {
            level.requested_bytes += change.is_free ? 0 - change.bytes : change.bytes;
        }
        /* The state at the start is one picture, not a rise to it. */
        if (i >= start)
            frag_timeline_add(timeline, i, &level);
    }
    frag_demand_end(&demand);
    return timeline;
}

static void write_fact(timeline_figure *state, fact wanted)
{
    frag_timeline *timeline = follow(state, wanted);
    size_t count = 0;
    const frag_sample *samples = frag_timeline_finish(timeline, &count);
    for (size_t i = 0; i < count; i++) {
        const frag_level *level = &samples[i].level;
        /* Only changes say something; the last sample says how far the line goes. */
        bool is_same = i > 0 && i + 1 < count &&
                       level->requested_bytes == samples[i - 1].level.requested_bytes &&
                       level->reserved_bytes == samples[i - 1].level.reserved_bytes;
        if (is_same)
            continue;
        write_head(state, wanted == FACT_DEMAND ? "demand" : "recorded", 0, "", samples[i].event);
        if (wanted == FACT_DEMAND)
            fprintf(state->plot.data, "%" PRIu64 ",,,,\n", level->requested_bytes);
        else
            fprintf(state->plot.data, ",,,%" PRIu64 ",\n", level->reserved_bytes);
        note_max(state, level->requested_bytes);
        note_max(state, level->reserved_bytes);
    }
    frag_timeline_destroy(timeline);
}

/* ---- policies */

static void write_samples(timeline_figure *state, size_t series, const char *label,
                          frag_timeline *timeline)
{
    size_t count = 0;
    const frag_sample *samples = frag_timeline_finish(timeline, &count);
    for (size_t i = 0; i < count; i++) {
        const frag_level *level = &samples[i].level;
        if (i > 0 && i + 1 < count && memcmp(level, &samples[i - 1].level, sizeof *level) == 0)
            continue;
        write_head(state, "policy", series, label, samples[i].event);
        fprintf(state->plot.data, "%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",\n",
                level->requested_bytes, level->allocated_bytes, level->active_bytes,
                level->reserved_bytes);
        note_max(state, level->reserved_bytes);
    }
}

static void write_oom(timeline_figure *state, size_t series, const char *label, const frag_oom *oom)
{
    write_head(state, "oom", series, label, oom->event);
    fprintf(state->plot.data, "%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",OOM: %s asked\n",
            oom->level.requested_bytes, oom->level.allocated_bytes, oom->level.active_bytes,
            oom->level.reserved_bytes, FRAG_BYTES(oom->requested_bytes));
}

/* For the whole run, said once. */
static void write_bound(timeline_figure *state)
{
    write_head(state, "bound", 0, "", state->plot.trace->event_count - 1);
    fprintf(state->plot.data, ",,,%" PRIu64 ",%s\n", state->packing.bytes, FRAG_PLOT_PACKING_NAME);
    note_max(state, state->packing.bytes);
}

static bool write_policy(timeline_figure *state, size_t series, frag_error *error)
{
    const frag_policy_spec *spec = &state->policies.specs[series - 1];
    frag_policy_spec resolved = {0};
    if (!frag_policy_resolve(state->plot.request->context, spec, &state->plot.recording, &resolved,
                             error))
        return false;
    frag_timeline *timeline = frag_timeline_create(state->plot.trace->event_count, state->samples);
    frag_run_options run = {
        .is_oom_skipped = frag_plot_skips_oom(&state->plot),
        .is_layout_skipped = true,
        .observer = frag_timeline_observe,
        .observer_context = timeline,
        .context = state->plot.request->context,
    };
    frag_run_result result;
    bool ok = frag_run(&(frag_run_setup){&state->plot.recording, state->plot.trace, resolved.ops,
                                         resolved.values, &state->device},
                       &run, &result, error);
    if (ok) {
        write_samples(state, series, spec->text, timeline);
        state->ooms[series - 1] = result.replay.oom;
        state->peaks[series - 1] =
            result.replay.oom.has_happened ? UINT64_MAX : result.replay.peak.reserved_bytes;
        if (result.replay.oom.has_happened)
            write_oom(state, series, spec->text, &result.replay.oom);
    }
    frag_timeline_destroy(timeline);
    frag_policy_spec_destroy(&resolved);
    return ok;
}

/* The label of an OOM: what it covers from left to right, as shares of the axis, and its height in
 * lines of text above the axis. */
typedef struct oom_label {
    size_t series;
    double point_x;
    double point_height;
    double left;
    double right;
    double height;
} oom_label;

/* So much of the axis a label is wide, and of the figure its axes are high: at the least. */
#define LABEL_WIDTH 0.26
#define AXES_HEIGHT 0.62

static int compare_heights(const void *left, const void *right)
{
    const oom_label *a = left, *b = right;
    if (a->point_height > b->point_height || a->point_height < b->point_height)
        return a->point_height > b->point_height ? -1 : 1;
    return a->series < b->series ? -1 : 1;
}

static size_t list_labels(const timeline_figure *state, oom_label *labels)
{
    double line = 15 * frag_plot_letter_scale(&state->plot);
    double lines = fmax(AXES_HEIGHT * (double)state->plot.height / line, 1);
    double line_bytes = 1.1 * fmax((double)state->max_bytes, 1) / lines;
    double first = frag_plot_x(state->times_ns, frag_trace_start(state->plot.trace));
    double last = frag_plot_x(state->times_ns, state->plot.trace->event_count - 1);
    size_t count = 0;
    for (size_t i = 0; i < state->policies.count; i++) {
        const frag_oom *oom = &state->ooms[i];
        if (!oom->has_happened)
            continue;
        double x =
            last > first ? (frag_plot_x(state->times_ns, oom->event) - first) / (last - first) : 0;
        bool is_left = x < 0.6; /* as in the script */
        double height = (double)oom->level.reserved_bytes / line_bytes;
        labels[count++] = (oom_label){.series = i,
                                      .point_x = x,
                                      .point_height = height,
                                      .left = is_left ? x : x - LABEL_WIDTH,
                                      .right = is_left ? x + LABEL_WIDTH : x,
                                      .height = height - 0.9};
    }
    return count;
}

/* Does the label cover another one that is placed, or the cross of another run? Then *below is the
 * height at which it would not. */
static bool is_covering(const oom_label *labels, size_t count, size_t index, double *below)
{
    const oom_label *label = &labels[index];
    for (size_t i = 0; i < count; i++) {
        const oom_label *other = &labels[i];
        bool meets = i < index && label->left < other->right && other->left < label->right;
        if (meets && fabs(label->height - other->height) < 0.99) {
            *below = other->height - 1;
            return true;
        }
        bool is_across = i != index && other->point_x > label->left - 0.01 &&
                         other->point_x < label->right + 0.01;
        if (is_across && fabs(label->height - other->point_height) < 0.89) {
            *below = other->point_height - 0.9;
            return true;
        }
    }
    return false;
}

/* How far each label of an OOM is below its cross, in hundredths of a line. */
static void define_label_drops(timeline_figure *state)
{
    size_t policy_count = state->policies.count;
    uint64_t *drops = frag_alloc(policy_count, sizeof *drops);
    oom_label *labels = frag_alloc(policy_count, sizeof *labels);
    size_t count = list_labels(state, labels);
    qsort(labels, count, sizeof *labels, compare_heights);
    for (size_t i = 0; i < count; i++) {
        double below = 0;
        while (is_covering(labels, count, i, &below))
            labels[i].height = below;
        drops[labels[i].series] =
            (uint64_t)(100 * (labels[i].point_height - labels[i].height) + 0.5);
    }
    frag_plot_define_numbers(&state->plot, "label_drops", drops, policy_count);
    frag_free(labels);
    frag_free(drops);
}

static void define(timeline_figure *state)
{
    frag_plot *plot = &state->plot;
    const char **labels = frag_alloc(state->policies.count, sizeof *labels);
    for (size_t i = 0; i < state->policies.count; i++)
        labels[i] = state->policies.specs[i].text;
    frag_plot_define_names(plot, "policies", labels, state->policies.count);
    frag_free(labels);
    bool is_limited = state->device.capacity_bytes != FRAG_UNLIMITED;
    /* A card much larger than what is used would press everything to the floor. */
    bool is_capacity_drawn = is_limited && state->device.capacity_bytes / 4 <= state->max_bytes;
    if (is_capacity_drawn)
        note_max(state, state->device.capacity_bytes);
    define_label_drops(state);
    frag_plot_define_text(plot, "capacity_text",
                          is_limited ? FRAG_BYTES(state->device.capacity_bytes) : "");
    frag_plot_define_number(plot, "capacity_bytes",
                            is_capacity_drawn ? (double)state->device.capacity_bytes : 0);
    frag_plot_define_places(plot, state->peaks, state->policies.count);
    frag_plot_define_number(plot, "policy_count", (double)state->policies.count);
    frag_plot_define_number(plot, "is_by_time", state->times_ns != NULL ? 1 : 0);
    frag_plot_define_number(plot, "max_bytes", (double)state->max_bytes);
    frag_plot_define_number(plot, "event_count", (double)state->plot.trace->event_count);
    frag_plot_define_number(plot, "x_min",
                            frag_plot_x(state->times_ns, frag_trace_start(state->plot.trace)));
    frag_plot_define_number(plot, "x_max",
                            frag_plot_x(state->times_ns, state->plot.trace->event_count - 1));
    frag_plot_define_unit(plot, state->max_bytes);
    frag_plot_define_title(plot, state->plot.recording.name);
}

static bool fill(void *context, frag_error *error)
{
    timeline_figure *state = context;
    if (state->plot.trace->event_count == 0)
        return frag_fail_in(error, FRAG_E_INPUT, frag_plot_source_name(state->plot.request),
                            "the trace has no events; there is nothing to draw");
    if (!frag_plot_times(&state->plot, &state->times_ns, error))
        return false;
    fputs("kind,series,policy,event,time_ns,requested_bytes,allocated_bytes,active_bytes,reserved_"
          "bytes,label\n",
          state->plot.data);
    write_fact(state, FACT_DEMAND);
    bool has_recorded = state->plot.trace->stats.observed_reserved_peak_bytes > 0;
    if (has_recorded)
        write_fact(state, FACT_RECORDED);
    frag_plot_define_number(&state->plot, "has_recorded", has_recorded ? 1 : 0);
    frag_progress *progress = frag_progress_start(state->plot.request->context, "replaying", "runs",
                                                  state->policies.count);
    bool ok = true;
    state->ooms = frag_alloc(state->policies.count, sizeof *state->ooms);
    state->peaks = frag_alloc(state->policies.count, sizeof *state->peaks);
    for (size_t i = 0;
         ok && i < state->policies.count && !frag_is_cancelled(state->plot.request->context); i++) {
        ok = write_policy(state, i + 1, error);
        frag_progress_add(progress, 1);
    }
    frag_progress_end(progress);
    ok = ok && frag_plot_packing(&state->plot, &state->packing, error);
    if (ok && state->packing.bytes > 0)
        write_bound(state);
    if (ok)
        define(state);
    return ok;
}

static bool draw(const frag_plot_request *request, frag_error *error)
{
    timeline_figure state = {.samples = FRAG_TIMELINE_SAMPLES_DEFAULT};
    state.policies = *request->policies;
    state.device = *request->device;
    bool ok = frag_plot_setting_count(request, "samples", FRAG_TIMELINE_SAMPLES_MIN, 1000000,
                                      &state.samples, error) &&
              frag_plot_draw_trace(&state.plot, "timeline", request, true, fill, &state, error);
    frag_free(state.times_ns);
    frag_free(state.ooms);
    frag_free(state.peaks);
    return ok;
}

static const frag_command_option options[] = {
    FRAG_PLOT_REPLAY_OPTIONS,
    FRAG_PLOT_OOM_OPTION,
    FRAG_PLOT_AXIS_OPTION,
    {"samples", "N", .help = "points of a line; peaks are never lost (default: 4000)"},
    FRAG_BOUNDS_OPTION,
    FRAG_PLOT_OPTIONS,
    {.name = NULL},
};

const frag_plot_kind frag_plot_timeline = {
    .command =
        {
            .name = "timeline",
            .operands = "TRACE",
            .summary = "requested, allocated and reserved bytes over events or time",
            .description = "Draws what the program requested (filled) and what each policy "
                           "reserved for it. If the recording shows what its own allocator "
                           "reserved, that is a dotted line. A cross marks where a run ended in an "
                           "OOM. With one policy its allocated bytes are drawn too.",
            .examples = "fraglab plot timeline train.pickle  # on the terminal\n"
                        "fraglab plot timeline train.pickle --policy pytorch,best-fit --capacity "
                        "8GiB -o oom.pdf",
            .options = options,
            .operand_min = 1,
            .operand_max = 1,
        },
    .policies = "pytorch",
    .draw = draw,
};
