/* Requested and reserved bytes of the ranks of one job over events: a strip for each rank, on one
 * scale. */
#include <inttypes.h>
#include <string.h>

#include "base/bytes.h"
#include "base/memory.h"
#include "base/threads.h"
#include "plots/plot.h"
#include "plots/plot_options.h"
#include "studies/ranks/job.h"
#include "studies/ranks/world.h"

/* More strips than this cannot be told apart; the ranks with the highest peaks are drawn. */
enum { STRIPS_MAX = 32, SAMPLES_DEFAULT = 1000 };

typedef struct ranks_figure {
    frag_plot plot;
    frag_world_options options;
    frag_job job;
    frag_world world;
    uint64_t max_bytes;
    uint64_t event_max;
    bool is_by_file; /* strips are called as their recordings, not by ranks */
} ranks_figure;

/* ---- data */

static void write_level(ranks_figure *state, size_t strip, const char *ranks, uint64_t event,
                        const frag_level *level)
{
    fprintf(state->plot.data, "level,%zu,", strip);
    frag_text_write_csv(state->plot.data, ranks);
    fprintf(state->plot.data, ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",\n", event,
            level->requested_bytes, level->reserved_bytes);
    if (level->reserved_bytes > state->max_bytes)
        state->max_bytes = level->reserved_bytes;
    if (event > state->event_max)
        state->event_max = event;
}

/* A level holds until the next event that changes it: the row before a change says so. */
static void write_strip(ranks_figure *state, size_t strip, const frag_world_rank *rank,
                        const char *ranks)
{
    size_t count = 0;
    const frag_sample *samples = frag_timeline_finish(rank->timeline, &count);
    for (size_t i = 0; i < count; i++) {
        const frag_level *level = &samples[i].level;
        bool is_same = i > 0 && level->requested_bytes == samples[i - 1].level.requested_bytes &&
                       level->reserved_bytes == samples[i - 1].level.reserved_bytes;
        if (is_same && i + 1 < count)
            continue;
        if (i > 0)
            write_level(state, strip, ranks, samples[i].event, &samples[i - 1].level);
        write_level(state, strip, ranks, samples[i].event, level);
    }
    const frag_oom *oom = &rank->run.replay.oom;
    if (!oom->has_happened)
        return;
    fprintf(state->plot.data, "oom,%zu,", strip);
    frag_text_write_csv(state->plot.data, ranks);
    fprintf(state->plot.data, ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",OOM: %s asked\n", oom->event,
            oom->level.requested_bytes, oom->level.reserved_bytes,
            FRAG_BYTES(oom->requested_bytes));
}

/* Ranks that request the same are of one kind, recordings with names of their own are not. */
static bool is_first(const ranks_figure *state, size_t index)
{
    return state->is_by_file || state->world.alike[index] == index;
}

/* Is the rank, the first of its kind, among the STRIPS_MAX with the highest peaks? */
static bool is_drawn(const ranks_figure *state, size_t index)
{
    const frag_world *world = &state->world;
    size_t above = 0;
    uint64_t peak = world->ranks[index].run.replay.peak.reserved_bytes;
    for (size_t i = 0; i < world->count; i++) {
        uint64_t other = world->ranks[i].run.replay.peak.reserved_bytes;
        above += is_first(state, i) && (other > peak || (other == peak && i < index));
    }
    return is_first(state, index) && above < STRIPS_MAX;
}

static void define(ranks_figure *state, const char *const *labels, const uint64_t *peaks,
                   size_t strips, size_t kinds)
{
    frag_plot *plot = &state->plot;
    frag_text title = {0};
    uint64_t capacity = state->options.device->capacity_bytes;
    /* A card much larger than what is used would press everything to the floor. */
    bool is_limited = capacity != FRAG_UNLIMITED && capacity / 4 <= state->max_bytes;
    if (is_limited && capacity > state->max_bytes)
        state->max_bytes = capacity;
    frag_text_add(&title, "%zu %s, replayed with %s", state->world.count,
                  state->is_by_file ? "recordings" : "ranks", state->world.ranks[0].policy);
    if (strips < kinds)
        frag_text_add(&title, "; the %zu of %zu kinds with the highest peaks", strips, kinds);
    frag_plot_define_texts(plot, "labels", labels, strips);
    frag_plot_define_numbers(plot, "peaks", peaks, strips);
    frag_plot_define_number(plot, "has_oom", state->world.oom_count > 0 ? 1 : 0);
    frag_plot_define_number(plot, "strip_count", (double)strips);
    frag_plot_define_number(plot, "max_bytes", (double)state->max_bytes);
    frag_plot_define_number(plot, "x_min", 0);
    frag_plot_define_number(plot, "x_max", (double)state->event_max);
    frag_plot_define_number(plot, "capacity_bytes", is_limited ? (double)capacity : 0);
    frag_plot_define_text(plot, "capacity_text", is_limited ? FRAG_BYTES(capacity) : "");
    frag_plot_define_unit(plot, state->max_bytes);
    frag_plot_define_title(plot, title.bytes);
    frag_text_destroy(&title);
    uint64_t height = frag_plot_pixels(plot, 130 + 80 * strips);
    if (frag_plot_setting_text(plot->request, "height") == NULL &&
        plot->format != FRAG_PLOT_TERMINAL && height > plot->height)
        plot->height = height;
}

/* "rank 0-3", or the name of a file without its ending. */
static char *make_label(const ranks_figure *state, const frag_world_rank *rank, const char *ranks)
{
    enum { LETTERS_MAX = 24 };
    const char *name = state->is_by_file ? rank->name : ranks;
    const char *end = state->is_by_file ? strrchr(name, '.') : NULL;
    size_t length = end != NULL && end > name ? (size_t)(end - name) : strlen(name);
    frag_text label = {0};
    frag_text_add(&label, "%s%.*s%s", state->is_by_file ? "" : "rank ",
                  (int)(length > LETTERS_MAX ? LETTERS_MAX : length), name,
                  length > LETTERS_MAX ? "..." : "");
    return label.bytes;
}

static void write_world(ranks_figure *state)
{
    const frag_world *world = &state->world;
    char *labels[STRIPS_MAX] = {NULL};
    uint64_t peaks[STRIPS_MAX] = {0};
    size_t strips = 0;
    size_t kinds = 0;
    fputs("kind,strip,ranks,event,requested_bytes,reserved_bytes,label\n", state->plot.data);
    for (size_t i = 0; i < world->count; i++) {
        frag_text ranks = {0};
        kinds += is_first(state, i);
        if (!is_drawn(state, i))
            continue;
        if (state->is_by_file)
            frag_text_add(&ranks, "%" PRIu32, world->ranks[i].number);
        else
            frag_world_add_alike(&ranks, world, i);
        peaks[strips] = world->ranks[i].run.replay.peak.reserved_bytes;
        labels[strips++] = make_label(state, &world->ranks[i], ranks.bytes);
        write_strip(state, strips, &world->ranks[i], ranks.bytes);
        frag_text_destroy(&ranks);
    }
    define(state, (const char *const *)labels, peaks, strips, kinds);
    for (size_t i = 0; i < strips; i++)
        frag_free(labels[i]);
}

static bool fill(void *context, frag_error *error)
{
    ranks_figure *state = context;
    const frag_plot_request *request = state->plot.request;
    uint32_t threads = request->context->threads;
    const frag_job_sources sources = {
        .operands = request->operands,
        .operand_count = request->operand_count,
        .format = request->input_format,
        .recordings = request->recordings,
        .recording_count = request->recording_count,
        .threads = threads > 0 ? threads : frag_core_count(),
    };
    bool ok = frag_job_measure(&sources, &state->options, &state->job, error);
    if (!ok && frag_is_cancelled(request->context))
        return true;
    ok = ok && frag_world_make(state->job.ranks, state->job.count, NULL, 0, &state->world, error);
    if (ok)
        write_world(state);
    return ok;
}

static void destroy(ranks_figure *state)
{
    frag_world_destroy(&state->world);
    frag_job_destroy(&state->job);
}

static bool draw(const frag_plot_request *request, frag_error *error)
{
    ranks_figure state = {.options = {.samples = SAMPLES_DEFAULT}};
    if (request->policies->count > 1)
        return frag_fail_in(
            error, FRAG_E_USAGE, "--policy",
            "%zu policies are given; expected one, which all ranks are replayed with",
            request->policies->count);
    /* Without one each rank has the settings that its recording holds. */
    bool is_named = frag_plot_setting_text(request, "policy") != NULL;
    state.options.context = request->context;
    state.options.spec = is_named ? request->policies->specs : NULL;
    state.options.device = request->device;
    const char *labels = frag_plot_setting_text(request, "labels");
    state.is_by_file = labels != NULL && strcmp(labels, "file") == 0;
    bool ok = frag_plot_setting_count(request, "samples", FRAG_TIMELINE_SAMPLES_MIN, 1000000,
                                      &state.options.samples, error) &&
              frag_plot_draw(&state.plot, "ranks", request, fill, &state, error);
    destroy(&state);
    return ok;
}

static const frag_command_option options[] = {
    {"policy", "NAME[:KEY=VALUE,...]", .letter = 'p',
     .help = "what all are replayed with (default: pytorch, with the settings of each recording "
             "where it holds some)"},
    FRAG_DEVICE_OPTIONS,
    FRAG_LOAD_OPTIONS,
    {"samples", "N", .help = "points of a line; peaks are never lost (default: 1000)"},
    {"labels", "rank|file", .choices = "rank|file",
     .help = "what strips are called: rank 0, or as their files, for recordings that are compared "
             "(default: rank)"},
    FRAG_PLOT_OPTIONS,
    {.name = NULL},
};

const frag_plot_kind frag_plot_ranks = {
    .command =
        {
            .name = "ranks",
            .operands = "TRACE|FOLDER...",
            .summary = "requested and reserved bytes of every rank of a job, strip by strip",
            .description =
                "Draws a strip for each rank of one job, all on one scale: what it requested "
                "(filled) and what the policy reserved for it. Ranks that request the same share a "
                "strip. A cross marks where a rank ran out of memory, a dashed line the capacity. "
                "Takes files, a folder of them, or one recording of several devices, as 'fraglab "
                "ranks' does.",
            .examples = "fraglab plot ranks snapshots/ -o ranks.svg\n"
                        "fraglab plot ranks rank*.pickle --gpu h100-80gb -o ranks.svg\n"
                        "fraglab plot ranks before.fgt after.fgt --labels file -o both.svg",
            .options = options,
            .operand_min = 1,
            .operand_max = UINT32_MAX,
        },
    .policies = "pytorch",
    .draw = draw,
};
