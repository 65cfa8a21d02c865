/* What the reserved bytes hold at their peak, one bar for each policy. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/bytes.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/threads.h"
#include "plots/parts/plot_names.h"
#include "plots/parts/plot_rows.h"
#include "plots/plot.h"
#include "plots/plot_options.h"
#include "sim/rows/result.h"
#include "studies/capacity/bounds.h"

#define PARTS 7u
static const char *const part_names[PARTS] = {"requested", "rounding", "unsplit",   "holes",
                                              "cached",    "waiting",  "page_slack"};
static const char *const part_titles[PARTS] = {
    "requested",           "rounding",  "unsplit surplus", "holes", "cached segments",
    "waiting for streams", "page slack"};

#define BOUNDS 2u
static const char *const bound_names[BOUNDS] = {"peak_requested", "packing"};
static const char *const bound_titles[BOUNDS] = {"peak requested", "offline packing"};

typedef struct bar {
    char *trace;
    char *policy;
    uint64_t device;
    uint64_t parts[PARTS];
    uint64_t reserved_bytes;
    uint64_t oom_event;
    bool has_oom;
    uint64_t bounds[BOUNDS]; /* FRAG_UNLIMITED: not known, or not asked for */
} bar;

typedef struct bars_figure {
    frag_plot plot;
    frag_policy_list policies;
    frag_device_spec device;
    frag_recording recording; /* of the operand being worked on */
    frag_run_result *results;
    frag_row_packing *packings; /* of each trace, with --bounds */
    frag_error *errors;         /* of the runs, then of the packings */
    bool has_bounds;
    frag_progress *progress;
    bar *bars;
    size_t count;
    size_t capacity;
} bars_figure;

static bar *add_bar(bars_figure *state, const char *trace, uint64_t device, const char *policy)
{
    bar *added = FRAG_APPEND(state->bars, state->count, state->capacity);
    *added = (bar){.trace = frag_copy_text(trace),
                   .policy = frag_copy_text(policy),
                   .device = device,
                   .bounds = {FRAG_UNLIMITED, FRAG_UNLIMITED}};
    frag_text_make_plain(added->trace);
    frag_text_make_plain(added->policy);
    return added;
}

/* ---- rows of fraglab run */

static void take_bounds(const bars_figure *state, const frag_json *row, bar *into)
{
    for (size_t i = 0; state->has_bounds && i < BOUNDS; i++) {
        char path[64];
        uint64_t bytes = 0;
        snprintf(path, sizeof path, "bounds.%s_bytes", bound_names[i]);
        if (frag_json_find_number(row, path, &bytes) && bytes <= FRAG_REQUEST_BYTES_MAX)
            into->bounds[i] = bytes;
    }
}

static bool fail_field(const frag_json *row, const char *path, const char *kind, frag_error *error)
{
    char found[FRAG_JSON_FOUND_MAX];
    return frag_fail(error, FRAG_E_INPUT,
                     "%s of the row %s; expected %s, as in rows of 'fraglab run --format jsonl'",
                     path, frag_json_found(frag_json_at_path(row, path), found), kind);
}

static bool take_text(const frag_json *row, const char *path, const char **text, frag_error *error)
{
    return frag_json_find_text(row, path, text) || fail_field(row, path, "a text", error);
}

static bool take_row(void *context, frag_json *row, frag_error *error)
{
    bars_figure *state = context;
    const char *trace = NULL;
    const char *policy = NULL;
    uint64_t device = 0;
    if (frag_result_is_comparison(row)) {
        frag_json_destroy(row);
        return true;
    }
    bool ok = take_text(row, "trace.name", &trace, error) &&
              take_text(row, "policy.label", &policy, error);
    uint64_t parts[PARTS];
    uint64_t reserved = 0;
    for (size_t i = 0; ok && i < PARTS; i++) {
        char path[64];
        snprintf(path, sizeof path, "decomposition_at_peak.%s_bytes", part_names[i]);
        ok = (frag_json_find_number(row, path, &parts[i]) && parts[i] <= FRAG_REQUEST_BYTES_MAX) ||
             fail_field(row, path, "bytes", error);
        reserved += ok ? parts[i] : 0;
    }
    if (ok) {
        frag_json_find_number(row, "trace.device", &device);
        bar *added = add_bar(state, trace, device, policy);
        memcpy(added->parts, parts, sizeof parts);
        added->reserved_bytes = reserved;
        added->has_oom = frag_json_find_number(row, "oom.event", &added->oom_event);
        take_bounds(state, row, added);
    }
    frag_json_destroy(row);
    return ok;
}

/* ---- traces */

static void run_job(void *context, uint64_t index)
{
    bars_figure *state = context;
    const frag_trace *trace = &state->recording.traces[index / state->policies.count];
    const frag_policy_spec *spec = &state->policies.specs[index % state->policies.count];
    frag_policy_spec resolved = {0};
    frag_run_options run = {.context = state->plot.request->context};
    if (!frag_is_cancelled(state->plot.request->context) &&
        frag_policy_resolve(state->plot.request->context, spec, &state->recording, &resolved,
                            &state->errors[index])) {
        (void)frag_run(&(frag_run_setup){&state->recording, trace, resolved.ops, resolved.values,
                                         &state->device},
                       &run, &state->results[index], &state->errors[index]);
        frag_policy_spec_destroy(&resolved);
    }
    frag_progress_add(state->progress, 1);
}

static void bound_job(void *context, uint64_t index)
{
    bars_figure *state = context;
    size_t runs = state->recording.trace_count * state->policies.count;
    if (!frag_is_cancelled(state->plot.request->context))
        (void)frag_bounds_find(state->plot.request->context, &state->recording,
                               &state->recording.traces[index], &state->packings[index],
                               &state->errors[runs + index]);
}

static bool run_traces(bars_figure *state, frag_error *error)
{
    size_t traces = state->recording.trace_count;
    size_t count = traces * state->policies.count;
    state->results = frag_alloc(count, sizeof *state->results);
    state->packings = frag_alloc(traces, sizeof *state->packings);
    state->errors = frag_alloc(count + traces, sizeof *state->errors);
    state->progress = frag_progress_start(state->plot.request->context, "replaying", "runs", count);
    frag_for_each(frag_context_threads(state->plot.request->context), count, run_job, state);
    if (state->has_bounds)
        frag_for_each(frag_context_threads(state->plot.request->context), traces, bound_job, state);
    frag_progress_end(state->progress);
    bool ok = true;
    for (size_t i = 0; ok && i < count + traces && !frag_is_cancelled(state->plot.request->context);
         i++) {
        ok = state->errors[i].code == FRAG_E_NONE;
        if (!ok)
            *error = state->errors[i];
    }
    for (size_t i = 0; ok && i < count && !frag_is_cancelled(state->plot.request->context); i++) {
        const frag_trace *trace = &state->recording.traces[i / state->policies.count];
        const frag_run_result *result = &state->results[i];
        const frag_decomposition *at = &result->at_peak;
        const uint64_t parts[PARTS] = {at->requested_bytes, at->rounding_bytes, at->unsplit_bytes,
                                       at->holes_bytes,     at->cached_bytes,   at->waiting_bytes,
                                       at->page_slack_bytes};
        bar *added = add_bar(state, state->recording.name, trace->device,
                             state->policies.specs[i % state->policies.count].text);
        memcpy(added->parts, parts, sizeof parts);
        added->reserved_bytes = at->reserved_bytes;
        added->has_oom = result->replay.oom.has_happened;
        added->oom_event = result->replay.oom.event;
        if (state->has_bounds) {
            added->bounds[0] = frag_trace_bound_bytes(trace);
            added->bounds[1] = state->packings[i / state->policies.count].bytes;
        }
    }
    frag_free(state->packings);
    frag_free(state->results);
    frag_free(state->errors);
    return ok;
}

/* Rows begin with a brace; no trace does. */
static bool read_operand(bars_figure *state, const char *path, frag_trace_format format,
                         frag_error *error)
{
    frag_input *input = frag_input_open(path, error);
    if (input == NULL)
        return false;
    const unsigned char *bytes = NULL;
    size_t count = 0;
    bool ok = frag_input_peek(input, 1, &bytes, &count, error);
    if (ok && format == FRAG_FORMAT_AUTO && count > 0 && bytes[0] == '{') {
        ok = frag_plot_each_row(input, take_row, state, error);
    } else if (ok) {
        frag_load_options load = {.format = format};
        frag_findings findings = {0};
        ok = frag_recording_load_input(input, &load, &state->recording, &findings, error);
        if (ok) {
            ok = run_traces(state, error);
            frag_recording_destroy(&state->recording);
        }
    }
    frag_input_close(input);
    return ok || frag_error_in(error, path);
}

/* ---- data */

static void write_data(const bars_figure *state)
{
    FILE *stream = state->plot.data;
    fputs("trace,device,policy", stream);
    for (size_t i = 0; i < PARTS; i++)
        fprintf(stream, ",%s_bytes", part_names[i]);
    fputs(",reserved_bytes,is_oom,oom_event", stream);
    for (size_t i = 0; i < BOUNDS; i++)
        fprintf(stream, ",%s_bytes", bound_names[i]);
    fputc('\n', stream);
    for (size_t i = 0; i < state->count; i++) {
        const bar *at = &state->bars[i];
        frag_text_write_csv(stream, at->trace);
        fprintf(stream, ",%" PRIu64 ",", at->device);
        frag_text_write_csv(stream, at->policy);
        for (size_t j = 0; j < PARTS; j++)
            fprintf(stream, ",%" PRIu64, at->parts[j]);
        fprintf(stream, ",%" PRIu64 ",%d,", at->reserved_bytes, at->has_oom ? 1 : 0);
        if (at->has_oom)
            fprintf(stream, "%" PRIu64, at->oom_event);
        for (size_t j = 0; j < BOUNDS; j++) {
            fputc(',', stream);
            if (at->bounds[j] != FRAG_UNLIMITED)
                fprintf(stream, "%" PRIu64, at->bounds[j]);
        }
        fputc('\n', stream);
    }
}

static bool is_same_trace(const bar *a, const bar *b)
{
    return strcmp(a->trace, b->trace) == 0 && a->device == b->device;
}

static bool has_several_traces(const bars_figure *state)
{
    for (size_t i = 1; i < state->count; i++)
        if (!is_same_trace(&state->bars[i], &state->bars[0]))
            return true;
    return false;
}

/* "train.pickle", or "train.pickle, device 1" when it has several. */
static char *head_of(const bars_figure *state, const bar *at)
{
    frag_text text = {0};
    bool has_devices = false;
    for (size_t i = 0; i < state->count; i++)
        has_devices = has_devices || (strcmp(state->bars[i].trace, at->trace) == 0 &&
                                      state->bars[i].device != at->device);
    frag_text_add(&text, "%s", at->trace);
    if (has_devices)
        frag_text_add(&text, ", device %" PRIu64, at->device);
    return text.bytes;
}

/* The names of the bounds in the legend, with their sizes where all bars have the same; "": no bar
 * has it. */
static void define_bounds(bars_figure *state)
{
    frag_text names[BOUNDS] = {{0}};
    const char *texts[BOUNDS];
    for (size_t j = 0; j < BOUNDS; j++) {
        uint64_t first = state->bars[0].bounds[j];
        bool has_any = false;
        bool is_same = true;
        for (size_t i = 0; i < state->count; i++) {
            has_any = has_any || state->bars[i].bounds[j] != FRAG_UNLIMITED;
            is_same = is_same && state->bars[i].bounds[j] == first;
        }
        frag_text_add(&names[j], "%s", has_any ? bound_titles[j] : "");
        if (has_any && is_same)
            frag_text_add(&names[j], ", %s", FRAG_BYTES(first));
        texts[j] = names[j].bytes;
    }
    frag_plot_define_texts(&state->plot, "bounds", texts, BOUNDS);
    for (size_t j = 0; j < BOUNDS; j++)
        frag_text_destroy(&names[j]);
}

/* The most that a bar reaches, or a bound across it. */
static uint64_t reach_of(const bar *at)
{
    uint64_t most = at->reserved_bytes;
    for (size_t j = 0; j < BOUNDS; j++)
        if (at->bounds[j] != FRAG_UNLIMITED && at->bounds[j] > most)
            most = at->bounds[j];
    return most;
}

/* What stands left of the bars, in pixels of letters, beside the names. */
#define LEFT_MARGIN 34.0

/* Names beside the bars leave them room, and are measured here where gnuplot would take some of
 * their letters for a markup that takes no room. Returns whether they stand above the bars,
 * instead. */
static bool define_labels(frag_plot *plot, const bars_figure *state)
{
    double room = frag_plot_text_room(plot);
    double widest = 0;
    bool has_markup = false;
    for (size_t i = 0; i < state->count; i++) {
        widest = fmax(widest, frag_plot_text_width(state->bars[i].policy));
        has_markup = has_markup || strpbrk(state->bars[i].policy, "^_{}@&~\\") != NULL;
    }
    bool are_above = widest > 0.4 * room;
    double left = LEFT_MARGIN + (are_above ? 0 : widest);
    char **labels = frag_alloc(state->count, sizeof *labels);
    for (size_t i = 0; i < state->count; i++)
        labels[i] = frag_plot_text_within(state->bars[i].policy, room - 2 * LEFT_MARGIN);
    frag_plot_define_texts(plot, "labels", (const char *const *)labels, state->count);
    for (size_t i = 0; i < state->count; i++)
        frag_free(labels[i]);
    frag_free(labels);
    frag_plot_define_number(plot, "are_above", are_above ? 1 : 0);
    if (are_above || has_markup)
        frag_plot_define_number(plot, "left_edge", left / room);
    return are_above;
}

/* Bars of one trace stand together; the name of the trace stands above them when there are several.
 */
static void define(bars_figure *state)
{
    frag_plot *plot = &state->plot;
    size_t count = state->count;
    uint64_t lines_each = define_labels(plot, state) ? 2 : 1;
    bool has_several = has_several_traces(state);
    char **heads = frag_alloc(count, sizeof *heads);
    uint64_t *lines = frag_alloc(count, sizeof *lines);
    uint64_t most = 0;
    uint64_t line = 0;
    bool used[PARTS] = {false};
    for (size_t i = 0; i < count; i++) {
        const bar *at = &state->bars[i];
        bool is_first = has_several && (i == 0 || !is_same_trace(at, &state->bars[i - 1]));
        line += is_first ? 1 + lines_each : lines_each;
        lines[i] = line;
        heads[i] = is_first ? head_of(state, at) : frag_copy_text("");
        most = reach_of(at) > most ? reach_of(at) : most;
        for (size_t j = 0; j < PARTS; j++)
            used[j] = used[j] || at->parts[j] > 0;
    }
    uint64_t shown[PARTS];
    for (size_t j = 0; j < PARTS; j++)
        shown[j] = used[j] ? 1 : 0;
    /* Bars stay thick enough to carry their names. */
    uint64_t height = frag_plot_pixels(plot, 130 + 20 * line);
    if (frag_plot_setting_text(plot->request, "height") == NULL && height > plot->height &&
        height <= 20000)
        plot->height = height;
    frag_plot_define_texts(plot, "heads", (const char *const *)heads, count);
    frag_plot_define_numbers(plot, "lines", lines, count);
    define_bounds(state);
    frag_plot_define_texts(plot, "parts", part_titles, PARTS);
    frag_plot_define_numbers(plot, "is_shown", shown, PARTS);
    frag_plot_define_number(plot, "bar_count", (double)count);
    frag_plot_define_number(plot, "line_count", (double)line);
    frag_plot_define_number(plot, "max_bytes", (double)most);
    frag_plot_define_unit(plot, most);
    frag_plot_define_title(plot, has_several ? "" : state->bars[0].trace);
    for (size_t i = 0; i < count; i++)
        frag_free(heads[i]);
    frag_free(lines);
    frag_free(heads);
}

/* With characters: how far a bar would reach that is no more than the bound. */
static void print_bounds(FILE *stream, const bar *of, uint64_t most, size_t label_width,
                         uint64_t room)
{
    for (size_t j = 0; j < BOUNDS; j++) {
        if (of->bounds[j] == FRAG_UNLIMITED)
            continue;
        uint64_t end = (uint64_t)((double)of->bounds[j] / (double)most * (double)room + 0.5);
        fprintf(stream, "%-*s ", (int)label_width, bound_titles[j]);
        for (uint64_t column = 1; column < end; column++)
            fputs("·", stream);
        fprintf(stream, "│ %s\n", FRAG_BYTES(of->bounds[j]));
    }
}

/* With characters: one line a bar. */
static void print_characters(bars_figure *state)
{
    static const char *const marks[PARTS] = {"█", "r", "u", "░", "c", "w", "p"};
    FILE *stream = state->plot.characters;
    size_t label_width = 0;
    uint64_t most = 1;
    for (size_t i = 0; i < state->count; i++) {
        size_t length = strlen(state->bars[i].policy);
        label_width = length > label_width ? length : label_width;
        most = reach_of(&state->bars[i]) > most ? reach_of(&state->bars[i]) : most;
    }
    if (state->has_bounds && label_width < strlen(bound_titles[BOUNDS - 1]))
        label_width = strlen(bound_titles[BOUNDS - 1]);
    label_width = label_width > 40 ? 40 : label_width;
    uint64_t room =
        state->plot.width > label_width + 36 ? state->plot.width - label_width - 16 : 20;
    for (size_t i = 0; i < state->count; i++) {
        const bar *at = &state->bars[i];
        if (i == 0 || !is_same_trace(at, &state->bars[i - 1])) {
            char *head = head_of(state, at);
            fprintf(stream, "%s%s\n", i > 0 ? "\n" : "", head);
            frag_free(head);
        }
        fprintf(stream, "%-*.40s ", (int)label_width, at->policy);
        uint64_t below = 0;
        uint64_t column = 0;
        for (size_t j = 0; j < PARTS; j++) {
            below += at->parts[j];
            uint64_t end = (uint64_t)((double)below / (double)most * (double)room + 0.5);
            for (; column < end; column++)
                fputs(marks[j], stream);
        }
        fprintf(stream, " %s%s\n", FRAG_BYTES(at->reserved_bytes), at->has_oom ? " OOM" : "");
        if (i + 1 == state->count || !is_same_trace(at, &state->bars[i + 1]))
            print_bounds(stream, at, most, label_width, room);
    }
    fputs("\nat the peak of reserved bytes: █ requested, r rounding, u unsplit surplus, ░ holes, c "
          "cached segments,\nw waiting for streams, p page slack\n",
          stream);
}

/* Only the recording has it. */
static void warn_of_no_packing(const bars_figure *state)
{
    for (size_t i = 0; state->has_bounds && i < state->count; i++)
        if (state->bars[i].bounds[BOUNDS - 1] == FRAG_UNLIMITED) {
            frag_context_warn(state->plot.request->context,
                              "rows of %s hold no packing; have them made with --bounds too",
                              state->bars[i].trace);
            return;
        }
}

static bool fill(void *context, frag_error *error)
{
    bars_figure *state = context;
    const frag_plot_request *request = state->plot.request;
    for (size_t i = 0; i < request->operand_count && !frag_is_cancelled(request->context); i++)
        if (!read_operand(state, request->operands[i], request->input_format, error))
            return false;
    for (size_t i = 0; i < request->recording_count && !frag_is_cancelled(request->context); i++) {
        state->recording = *request->recordings[i];
        if (!run_traces(state, error))
            return frag_error_in(error, state->recording.name);
    }
    if (frag_is_cancelled(request->context))
        return true;
    if (state->count == 0)
        return frag_fail(error, FRAG_E_INPUT, "there are no rows; there is nothing to draw");
    bool is_held = false;
    for (size_t i = 0; i < state->count; i++)
        is_held = is_held || state->bars[i].reserved_bytes > 0;
    if (!is_held)
        return frag_fail(error, FRAG_E_INPUT, "nothing was ever held; there is nothing to draw");
    warn_of_no_packing(state);
    write_data(state);
    define(state);
    state->plot.is_written = state->plot.format == FRAG_PLOT_TERMINAL;
    if (state->plot.is_written)
        print_characters(state);
    return true;
}

static bool draw(const frag_plot_request *request, frag_error *error)
{
    bars_figure state = {.has_bounds = frag_plot_setting_text(request, "bounds") != NULL};
    state.policies = *request->policies;
    state.device = *request->device;
    bool ok = frag_plot_draw(&state.plot, "bars", request, fill, &state, error);
    for (size_t i = 0; i < state.count; i++) {
        frag_free(state.bars[i].trace);
        frag_free(state.bars[i].policy);
    }
    frag_free(state.bars);
    return ok;
}

static const frag_command_option options[] = {
    FRAG_POLICY_OPTIONS,
    FRAG_DEVICE_OPTIONS,
    FRAG_LOAD_OPTIONS,
    {"jobs", "N", .letter = 'j', .help = "threads (default: all cores); the figure is the same",
     .min = 1, .max = 4096},
    FRAG_BOUNDS_OPTION,
    FRAG_PLOT_OPTIONS,
    {.name = NULL},
};

const frag_plot_kind frag_plot_bars = {
    .command =
        {
            .name = "bars",
            .operands = "TRACE|ROWS...",
            .summary = "where reserved bytes are at their peak, for each policy",
            .description =
                "Draws for each policy what its reserved bytes consist of at their peak: requested "
                "bytes, rounding, remainders that were not split off, holes, cached segments, "
                "blocks that wait for a stream, page slack. Operands are traces, which are "
                "replayed, or rows that 'fraglab run --format jsonl' wrote. A run that ended in an "
                "OOM is marked; its peak is the one before the OOM. --bounds draws the bounds of "
                "each trace across its bars; for rows, the bounds stored in them.",
            .examples = "fraglab plot bars train.pickle -o bars.pdf\n"
                        "fraglab run *.pickle --policy all --format jsonl | fraglab plot bars - -o "
                        "bars.svg",
            .options = options,
            .operand_min = 1,
            .operand_max = UINT32_MAX,
        },
    .policies = "all",
    .draw = draw,
};
