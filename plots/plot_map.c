/* Where every block lay, address over events or time. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/bytes.h"
#include "base/memory.h"
#include "plots/parts/plot_groups.h"
#include "plots/parts/plot_layout.h"
#include "plots/parts/plot_raster.h"
#include "plots/plot.h"
#include "plots/plot_options.h"
#include "sim/trace/site_names.h"

typedef enum colouring { COLOUR_SIZE, COLOUR_SITE, COLOUR_STREAM } colouring;

#define GROUP_MAX 7u /* call sites or streams with a colour of their own */

typedef struct group {
    uint32_t key;
    double weight; /* bytes x events */
} group;

typedef struct map_figure {
    frag_plot plot;
    frag_policy_list policies;
    frag_device_spec device;
    frag_layout layout;
    uint64_t *times_ns; /* NULL: x is events */
    uint64_t start;     /* the first event drawn */
    colouring colouring;
    frag_groups keys;
    group *groups; /* the heaviest first */
    size_t group_count;
    bool has_others;  /* groups without a colour of their own */
    uint32_t log_min; /* of block sizes */
    uint32_t log_max;
    frag_raster *raster;
    size_t columns;
    size_t rows;
} map_figure;

/* Viridis (van der Walt and Smith, 2015), in ninths from dark to light; CC0. */
static const uint32_t scale[] = {0x440154, 0x472d7b, 0x3b528b, 0x2c728e, 0x21918c,
                                 0x28ae80, 0x5ec962, 0xaddc30, 0xfde725};
#define SCALE_STEPS (sizeof scale / sizeof *scale - 1)

/* Okabe and Ito's; what has no colour of its own is dark grey. */
static const uint32_t group_colours[GROUP_MAX] = {0x0072b2, 0xe69f00, 0x009e73, 0xcc79a7,
                                                  0x56b4e9, 0xd55e00, 0xf0e442};
#define OTHER_COLOUR 0x777777u
#define OUTSIDE_COLOUR 0xd4d4d4u

static frag_colour colour_of(uint32_t rgb)
{
    return (frag_colour){(float)(rgb >> 16) / 255.0f, (float)(rgb >> 8 & 255) / 255.0f,
                         (float)(rgb & 255) / 255.0f};
}

/* Large blocks are dark, so that the white of holes stands out against them. */
static frag_colour size_colour(const map_figure *state, uint64_t bytes)
{
    double low = (double)state->log_min;
    double high = (double)state->log_max;
    double at = (high - log2((double)bytes)) / (high - low) * (double)SCALE_STEPS;
    at = at < 0 ? 0 : at > (double)SCALE_STEPS ? (double)SCALE_STEPS : at;
    size_t step = at < (double)SCALE_STEPS ? (size_t)at : SCALE_STEPS - 1;
    float share = (float)(at - (double)step);
    frag_colour from = colour_of(scale[step]);
    frag_colour to = colour_of(scale[step + 1]);
    return (frag_colour){from.red + share * (to.red - from.red),
                         from.green + share * (to.green - from.green),
                         from.blue + share * (to.blue - from.blue)};
}

/* ---- groups: call sites or streams */

static uint32_t key_of(const map_figure *state, const frag_life *block)
{
    return state->colouring == COLOUR_SITE ? frag_groups_of_site(&state->keys, block->site)
                                           : block->stream;
}

static int compare_weights(const void *left, const void *right)
{
    const group *a = left, *b = right;
    if (a->weight > b->weight || a->weight < b->weight)
        return a->weight > b->weight ? -1 : 1;
    return a->key < b->key ? -1 : a->key > b->key;
}

static void find_groups(map_figure *state)
{
    if (state->colouring == COLOUR_SIZE)
        return;
    uint32_t count = state->keys.count;
    state->groups = frag_alloc((size_t)count + 1, sizeof *state->groups);
    for (uint32_t i = 0; i < count; i++)
        state->groups[i].key = i;
    for (size_t i = 0; i < state->layout.block_count; i++) {
        const frag_life *block = &state->layout.blocks[i];
        uint32_t key = key_of(state, block);
        if (key < count)
            state->groups[key].weight += (double)block->bytes * (double)(block->end - block->begin);
    }
    qsort(state->groups, count, sizeof *state->groups, compare_weights);
    while (state->group_count < count && state->group_count < GROUP_MAX &&
           state->groups[state->group_count].weight > 0)
        state->group_count++;
    state->has_others = state->group_count < count && state->groups[state->group_count].weight > 0;
}

static frag_colour block_colour(const map_figure *state, const frag_life *block)
{
    if (state->colouring == COLOUR_SIZE)
        return size_colour(state, block->bytes);
    uint32_t key = key_of(state, block);
    for (size_t i = 0; i < state->group_count; i++)
        if (state->groups[i].key == key)
            return colour_of(group_colours[i]);
    return colour_of(OTHER_COLOUR);
}

#define NAME_CHARACTERS 44u

static void define_groups(map_figure *state)
{
    frag_text names[GROUP_MAX] = {{0}};
    const char *texts[GROUP_MAX];
    char colours[GROUP_MAX][8];
    const char *colour_texts[GROUP_MAX + 1];
    for (size_t i = 0; i < state->group_count; i++) {
        uint32_t key = state->groups[i].key;
        frag_groups_text(&state->keys, key, NAME_CHARACTERS, &names[i]);
        texts[i] = names[i].bytes;
        snprintf(colours[i], sizeof colours[i], "#%06X", group_colours[i]);
        colour_texts[i] = colours[i];
    }
    frag_plot_define_texts(&state->plot, "groups", texts, state->group_count);
    colour_texts[state->group_count] = "#777777"; /* an array has one item at least */
    frag_plot_define_texts(&state->plot, "group_colours", colour_texts, state->group_count + 1);
    frag_plot_define_number(&state->plot, "group_count", (double)state->group_count);
    frag_plot_define_number(&state->plot, "has_others", state->has_others ? 1 : 0);
    for (size_t i = 0; i < state->group_count; i++)
        frag_text_destroy(&names[i]);
}

/* ---- data */

/* Seconds or events; what ends with the run ends with its last event. */
static double x_of(const map_figure *state, uint64_t event)
{
    uint64_t last = state->plot.trace->event_count - 1;
    return frag_plot_x(state->times_ns, state->times_ns != NULL && event > last ? last : event);
}

static void write_life(const map_figure *state, const char *kind, const frag_life *life)
{
    FILE *stream = state->plot.data;
    fprintf(stream, "%s,%" PRIu64 ",%" PRIu64 ",", kind, life->begin, life->end);
    if (state->times_ns != NULL)
        fprintf(stream, "%.0f,%.0f", x_of(state, life->begin) * 1e9, x_of(state, life->end) * 1e9);
    else
        fputc(',', stream);
    fprintf(stream, ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",", life->address, life->offset,
            life->bytes);
    if (kind[0] == 'b') {
        fprintf(stream, "%" PRIu64 ",0x%" PRIx64 ",", life->requested_bytes,
                frag_trace_stream_handle(state->plot.trace, life->stream));
        uint32_t frame = frag_site_frame(&state->plot.recording, life->site);
        if (frame != 0) {
            frag_text name = {0};
            frag_frame_text(&state->plot.recording, frame - 1, NAME_CHARACTERS, &name);
            frag_text_write_csv(stream, name.bytes);
            frag_text_destroy(&name);
        }
    } else {
        fputs(",,", stream);
    }
    fputc('\n', stream);
}

static void write_data(const map_figure *state)
{
    fputs("kind,begin_event,end_event,begin_ns,end_ns,address,offset_bytes,bytes,requested_bytes,"
          "stream,site\n",
          state->plot.data);
    for (size_t i = 0; i < state->layout.segment_count; i++)
        write_life(state, "segment", &state->layout.segments[i]);
    for (size_t i = 0; i < state->layout.block_count; i++)
        write_life(state, "block", &state->layout.blocks[i]);
}

/* The scale spans the sizes that fill the picture: what covers less than a hundredth of it is
 * clamped. */
static void find_sizes(map_figure *state)
{
    double weights[65] = {0};
    double total = 0;
    for (size_t i = 0; i < state->layout.block_count; i++) {
        const frag_life *block = &state->layout.blocks[i];
        uint32_t step = frag_bit_high(block->bytes) + (frag_is_power_of_two(block->bytes) ? 0 : 1);
        double weight = (double)block->bytes * (double)(block->end - block->begin);
        weights[step] += weight;
        total += weight;
    }
    uint32_t low = 0;
    uint32_t high = 64;
    for (double below = weights[0]; low < 64 && below < total / 100; below += weights[++low])
        ;
    for (double above = weights[64]; high > 0 && above < total / 100; above += weights[--high])
        ;
    state->log_min = low > 0 ? low - 1 : 0;
    state->log_max = high > state->log_min ? high : state->log_min + 1;
}

/* ---- picture */

static frag_box box_of(const map_figure *state, const frag_life *life)
{
    double x_min = x_of(state, state->start);
    double x_scale = (double)state->columns / (x_of(state, state->layout.event_end) - x_min);
    double y_scale = (double)state->rows / (double)state->layout.offset_end;
    return (frag_box){
        .left = (x_of(state, life->begin) - x_min) * x_scale,
        .right = (x_of(state, life->end) - x_min) * x_scale,
        .bottom = (double)life->offset * y_scale,
        .top = (double)(life->offset + life->bytes) * y_scale,
    };
}

#define SEPARATED_ROWS 5.0 /* segments lower than this have no lines around them */

static void paint(map_figure *state)
{
    state->raster = frag_raster_create(state->columns, state->rows);
    for (size_t i = 0; i < state->layout.segment_count; i++) {
        frag_box box = box_of(state, &state->layout.segments[i]);
        frag_raster_ground(state->raster, &box);
    }
    for (size_t i = 0; i < state->layout.block_count; i++) {
        frag_box box = box_of(state, &state->layout.blocks[i]);
        frag_raster_paint(state->raster, &box, block_colour(state, &state->layout.blocks[i]));
    }
    for (size_t i = 0; i < state->layout.segment_count; i++) {
        frag_box box = box_of(state, &state->layout.segments[i]);
        if (state->layout.segments[i].is_mapped || box.top - box.bottom < SEPARATED_ROWS)
            continue;
        frag_raster_line(state->raster, &box);
        box.bottom = box.top;
        frag_raster_line(state->raster, &box);
    }
}

/* With characters: what is free inside segments is what one wants to see. */
static void print_characters(map_figure *state)
{
    frag_plot *plot = &state->plot;
    FILE *stream = plot->characters;
    state->columns = plot->width - 12;
    state->rows = plot->height - 4;
    paint(state);
    fprintf(stream, "%s, %s\n", state->plot.recording.name, state->policies.specs[0].text);
    for (size_t row = state->rows; row-- > 0;) {
        bool has_mark = row + 1 == state->rows || row == 0 || row == state->rows / 2;
        double top = (double)state->layout.offset_end * (double)(row == 0 ? 0 : row + 1) /
                     (double)state->rows;
        fprintf(stream, "%10s ", has_mark ? FRAG_BYTES((uint64_t)top) : "");
        for (size_t column = 0; column < state->columns; column++) {
            frag_shares shares = frag_raster_at(state->raster, column, row);
            float used = shares.ground > 0 ? shares.paint / shares.ground : 0;
            fputs(shares.ground < 0.5f ? " "
                  : used < 0.125f      ? "·"
                  : used < 0.375f      ? "░"
                  : used < 0.625f      ? "▒"
                  : used < 0.875f      ? "▓"
                                       : "█",
                  stream);
        }
        fputc('\n', stream);
    }
    if (state->times_ns != NULL)
        fprintf(stream, "%11s%.3f to %.3f s;", "", x_of(state, state->start),
                x_of(state, state->layout.event_end));
    else
        fprintf(stream, "%11sevents %" PRIu64 " to %" PRIu64 ";", "", state->start,
                state->layout.event_end);
    fputs(" addresses without the gaps between segments; █ in blocks, · free inside segments\n",
          stream);
}

static bool draw_picture(map_figure *state, frag_error *error)
{
    frag_plot *plot = &state->plot;
    /* As fine as the figure's own pixels where it has some, twice that where it can be enlarged. */
    double fine = plot->format == FRAG_PLOT_PNG ? 1 : 2;
    state->columns = (size_t)((double)plot->width * 0.85 * fine);
    state->rows = (size_t)((double)plot->height * 0.75 * fine);
    if (state->columns * state->rows > (size_t)32 << 20)
        return frag_fail_in(error, FRAG_E_USAGE, "--width",
                            "a map of more than 32 million pixels is not drawn; write less");
    paint(state);
    FILE *picture = frag_plot_picture(plot, error);
    if (picture == NULL)
        return false;
    frag_raster_write(state->raster, colour_of(OUTSIDE_COLOUR), (frag_colour){1, 1, 1}, picture);
    frag_plot_define_number(plot, "columns", (double)state->columns);
    frag_plot_define_number(plot, "rows", (double)state->rows);
    frag_plot_define_number(plot, "x_min", x_of(state, state->start));
    frag_plot_define_number(plot, "x_max", x_of(state, state->layout.event_end));
    frag_plot_define_number(plot, "y_max_bytes", (double)state->layout.offset_end);
    frag_plot_define_number(plot, "is_by_time", state->times_ns != NULL ? 1 : 0);
    frag_plot_define_number(plot, "log_min", state->log_min);
    frag_plot_define_number(plot, "log_max", state->log_max);
    frag_text colours = {0};
    for (size_t i = 0; i <= SCALE_STEPS; i++)
        frag_text_add(&colours, "%s%zu '#%06X'", i > 0 ? ", " : "", i, scale[SCALE_STEPS - i]);
    frag_plot_define_text(plot, "size_colours", colours.bytes);
    frag_text_destroy(&colours);
    define_groups(state);
    frag_plot_define_unit(plot, state->layout.offset_end);
    frag_text title = {0};
    frag_text_add(&title, "%s, %s%s", state->plot.recording.name, state->policies.specs[0].text,
                  state->layout.oom.has_happened ? ", up to its OOM" : "");
    frag_plot_define_title(plot, title.bytes);
    frag_text_destroy(&title);
    return true;
}

static bool fill(void *context, frag_error *error)
{
    map_figure *state = context;
    frag_policy_spec resolved = {0};
    state->start = frag_trace_start(state->plot.trace);
    if (!frag_plot_times(&state->plot, &state->times_ns, error) ||
        !frag_policy_resolve(state->plot.request->context, &state->policies.specs[0],
                             &state->plot.recording, &resolved, error))
        return false;
    bool ok =
        frag_layout_record(&state->plot.recording, state->plot.trace, resolved.ops, resolved.values,
                           &state->device, state->plot.request->context, &state->layout, error);
    frag_policy_spec_destroy(&resolved);
    if (!ok)
        return false;
    if (state->layout.offset_end == 0 ||
        x_of(state, state->layout.event_end) <= x_of(state, state->start))
        return frag_fail_in(error, FRAG_E_INPUT, frag_plot_source_name(state->plot.request),
                            "nothing was ever held; there is nothing to draw");
    frag_groups_create(&state->keys,
                       state->colouring == COLOUR_STREAM ? FRAG_GROUP_STREAM : FRAG_GROUP_SITE,
                       &state->plot.recording, state->plot.trace);
    if (state->colouring == COLOUR_SITE && state->plot.recording.site_count < 2)
        frag_context_warn(state->plot.request->context,
                          "%s holds no call stacks; --colour size shows more",
                          state->plot.recording.name);
    find_groups(state);
    find_sizes(state);
    write_data(state);
    if (state->plot.format == FRAG_PLOT_CSV)
        return true;
    if (state->plot.format != FRAG_PLOT_TERMINAL)
        return draw_picture(state, error);
    print_characters(state);
    state->plot.is_written = true;
    return true;
}

static bool check_options(map_figure *state, const frag_plot_request *request, frag_error *error)
{
    const char *colour = frag_plot_setting_text(request, "colour");
    state->colouring = colour == NULL || strcmp(colour, "size") == 0 ? COLOUR_SIZE
                       : strcmp(colour, "site") == 0                 ? COLOUR_SITE
                                                                     : COLOUR_STREAM;
    if (state->policies.count == 1)
        return true;
    return frag_fail_in(error, FRAG_E_USAGE, "--policy", "a map shows one policy; give one");
}

static bool draw(const frag_plot_request *request, frag_error *error)
{
    map_figure state = {.group_count = 0};
    state.policies = *request->policies;
    state.device = *request->device;
    bool ok = check_options(&state, request, error) &&
              frag_plot_draw_trace(&state.plot, "map", request, true, fill, &state, error);
    if (state.raster != NULL)
        frag_raster_destroy(state.raster);
    frag_layout_destroy(&state.layout);
    frag_free(state.groups);
    frag_groups_destroy(&state.keys);
    frag_free(state.times_ns);
    return ok;
}

static const frag_command_option options[] = {
    FRAG_PLOT_REPLAY_OPTIONS,
    FRAG_PLOT_AXIS_OPTION,
    {"colour", "WHAT", .choices = "size|site|stream",
     .help = "what the colour of a block says: its size, the call site it was requested from, or "
             "its stream (default: size)"},
    FRAG_PLOT_OPTIONS,
    {.name = NULL},
};

const frag_plot_kind frag_plot_map = {
    .command =
        {
            .name = "map",
            .operands = "TRACE",
            .summary = "where every block lay, address over events or time",
            .description =
                "Draws the memory of one policy: segments one above the other in order of their "
                "addresses, each block from its request to when its place was free again, and the "
                "holes between them in white. Where no segment was held it is grey. A block "
                "smaller than a pixel tints the pixel by the share that it covers.",
            .examples = "fraglab plot map train.pickle -o map.png\n"
                        "fraglab plot map train.pickle --policy best-fit --colour site --capacity "
                        "8GiB -o map.pdf",
            .options = options,
            .operand_min = 1,
            .operand_max = 1,
        },
    .policies = "pytorch",
    .draw = draw,
};
