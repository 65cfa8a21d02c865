/* What is held at one moment by call stack: a frame is a rectangle as large as what was asked for
 * in it, and holds those that it called. Rectangles are kept near squares (Bruls, Huizing, van
 * Wijk, Squarified treemaps, 2000). */
#include <inttypes.h>

#include "plots/parts/plot_stacks.h"
#include "plots/plot.h"
#include "plots/plot_options.h"

/* Pixels of a figure 800 wide: of all rectangles, of the title above them, of the name of a frame
 * over those that it called, of the rim around them. */
#define PLANE_WIDTH 784.0
#define TITLE_HEIGHT 40.0
#define HEADER_HEIGHT 14.0
#define RIM 2.0
/* The least side of a rectangle that holds others, and of one that has a name over them. */
#define SIDE_LEAST 6.0
#define HEADER_SIDE_LEAST 44.0

typedef struct area {
    double left;
    double top; /* downward from the upper end of the plane */
    double width;
    double height;
} area;

typedef struct treemap {
    frag_stacks *stacks;
    double height; /* of the plane */
} treemap;

static double least_of(double a, double b)
{
    return a < b ? a : b;
}

/* Where what a frame called is drawn in its rectangle; of no size: nowhere. */
static area inner_of(const area *of, bool has_header)
{
    double above = has_header ? HEADER_HEIGHT : RIM;
    area inner = {of->left + RIM, of->top + above, of->width - 2 * RIM, of->height - above - RIM};
    return least_of(inner.width, inner.height) < SIDE_LEAST ? (area){0} : inner;
}

static void write_area(const treemap *state, const frag_stack_node *at, uint32_t level,
                       const area *of, bool is_open, bool has_header)
{
    const frag_stacks *stacks = state->stacks;
    FILE *stream = stacks->plot.data;
    frag_text name = {0};
    frag_text label = {0};
    double middle = is_open ? HEADER_HEIGHT / 2 : of->height / 2;
    frag_stacks_add_name(stacks, at, FRAG_STACK_NAME_CHARACTERS, &name);
    if (of->height >= HEADER_HEIGHT && (has_header || !is_open))
        frag_stacks_add_label(stacks, at, of->width - 2 * RIM, &label);
    fprintf(stream, "%" PRIu32 ",%.2f,%.2f,%.2f,%.2f,%" PRIu64 ",%.6f,%" PRIu32 ",", level,
            of->left, of->left + of->width, state->height - of->top - of->height,
            state->height - of->top, at->bytes, (double)at->bytes / (double)stacks->bytes,
            frag_stacks_colour(stacks, at));
    frag_text_write_csv(stream, name.bytes);
    fprintf(stream, ",%d,%.2f,", label.length > 0 ? 1 : 0, state->height - of->top - middle);
    frag_text_write_csv(stream, label.length > 0 ? label.bytes : "");
    fputc('\n', stream);
    frag_text_destroy(&name);
    frag_text_destroy(&label);
}

/* Nodes beside each other along the shorter side of what is left. */
typedef struct strip {
    double bytes; /* of all */
    double least;
    double most;
    uint32_t end; /* the node behind the last */
} strip;

static strip with_node(const strip *of, const frag_stack_node *node)
{
    double bytes = (double)node->bytes;
    return (strip){of->bytes + bytes, least_of(of->least, bytes),
                   of->most > bytes ? of->most : bytes, node->next};
}

/* The longer side of the least square of its rectangles, over the shorter; scale: pixels of area a
 * byte. */
static double worst_ratio(const strip *of, double side, double scale)
{
    double thickness = of->bytes * scale / side;
    double longest = of->most * scale / thickness;
    double shortest = of->least * scale / thickness;
    double ratio = longest > thickness ? longest / thickness : thickness / longest;
    double other = shortest > thickness ? shortest / thickness : thickness / shortest;
    return ratio > other ? ratio : other;
}

static strip next_strip(const frag_stacks *stacks, uint32_t first, double side, double scale)
{
    const frag_stack_node *nodes = stacks->nodes;
    double bytes = (double)nodes[first].bytes;
    strip found = {bytes, bytes, bytes, nodes[first].next};
    while (found.end != FRAG_NODE_NONE) {
        strip longer = with_node(&found, &nodes[found.end]);
        if (worst_ratio(&longer, side, scale) > worst_ratio(&found, side, scale))
            break;
        found = longer;
    }
    return found;
}

static void lay_out(const treemap *state, uint32_t index, uint32_t level, const area *of)
{
    const frag_stack_node *nodes = state->stacks->nodes;
    const frag_stack_node *at = &nodes[frag_stacks_join(state->stacks, index)];
    bool has_header = least_of(of->width, of->height) >= HEADER_SIDE_LEAST;
    area left = at->child != FRAG_NODE_NONE ? inner_of(of, has_header) : (area){0};
    bool is_open = left.width > 0;
    write_area(state, at, level, of, is_open, has_header);
    /* What was asked for in the frame itself is the rest, in its own colour. */
    double bytes = (double)at->bytes;
    for (uint32_t child = at->child; is_open && child != FRAG_NODE_NONE;) {
        bool is_wide = left.width > left.height;
        double side = is_wide ? left.height : left.width;
        double scale = left.width * left.height / bytes;
        strip row = next_strip(state->stacks, child, side, scale);
        double thickness = row.bytes * scale / side;
        double along = 0;
        for (; child != row.end; child = nodes[child].next) {
            double length = (double)nodes[child].bytes * scale / thickness;
            area place = is_wide ? (area){left.left, left.top + along, thickness, length}
                                 : (area){left.left + along, left.top, length, thickness};
            lay_out(state, child, level + 1, &place);
            along += length;
        }
        left.left += is_wide ? thickness : 0;
        left.top += is_wide ? 0 : thickness;
        left.width -= is_wide ? thickness : 0;
        left.height -= is_wide ? 0 : thickness;
        bytes -= row.bytes;
    }
}

static void write_treemap(frag_stacks *stacks)
{
    frag_plot *plot = &stacks->plot;
    double shape = (double)plot->height / (double)plot->width;
    treemap state = {stacks, PLANE_WIDTH * shape - TITLE_HEIGHT};
    area plane = {0, 0, PLANE_WIDTH, state.height > HEADER_HEIGHT ? state.height : HEADER_HEIGHT};
    state.height = plane.height;
    fputs("level,left,right,bottom,top,bytes,share,colour,name,has_label,label_y,label\n",
          plot->data);
    lay_out(&state, 0, 0, &plane);
    frag_plot_define_number(plot, "plane_width", plane.width);
    frag_plot_define_number(plot, "plane_height", plane.height);
}

static bool draw(const frag_plot_request *request, frag_error *error)
{
    return frag_stacks_draw("treemap", request, write_treemap, true, error);
}

static const frag_command_option options[] = {
    FRAG_LOAD_OPTIONS,       FRAG_WINDOW_OR_ALL_OPTIONS, FRAG_PLOT_DEVICE_OPTION,
    FRAG_PLOT_MOMENT_OPTION, FRAG_PLOT_OPTIONS,          {.name = NULL},
};

const frag_plot_kind frag_plot_treemap = {
    .command =
        {
            .name = "treemap",
            .operands = "TRACE",
            .summary = "the same as flame in rectangles, for many small holders",
            .description =
                "Draws what is held at one moment by call stack, as rectangles inside each other: "
                "each is a frame, as large as the bytes that were asked for in it or in what it "
                "called and are still held, and holds those that it called. A frame that called "
                "one other alone is left out for that one. What is smaller than a 500th is put "
                "together. Frames of one file have one colour, as in flame. On the terminal the "
                "frames of a fiftieth or more are printed as a tree. No policy is involved.",
            .examples = "fraglab plot treemap train.pickle  # on the terminal\n"
                        "fraglab plot treemap train.pickle --at 12000 -o treemap.svg\n"
                        "fraglab plot treemap train.pickle --at 'step[3]'  # of the third step",
            .options = options,
            .operand_min = 1,
            .operand_max = 1,
        },
    .draw = draw,
};
