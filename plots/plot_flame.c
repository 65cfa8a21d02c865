/* What is held at one moment by call stack: a frame stands on the one that called it, as wide as
 * what was asked for in it. */
#include <inttypes.h>

#include "plots/parts/plot_stacks.h"
#include "plots/plot.h"
#include "plots/plot_options.h"

/* Pixels of a figure 800 wide: of the frames all together. */
#define FRAMES_WIDTH 770.0

static uint32_t write_node(frag_stacks *stacks, uint32_t index, uint64_t left)
{
    FILE *stream = stacks->plot.data;
    const frag_stack_node *at = &stacks->nodes[index];
    double share = (double)at->bytes / (double)stacks->bytes;
    frag_text name = {0};
    frag_text label = {0};
    uint32_t levels = at->level + 1;
    frag_stacks_add_name(stacks, at, FRAG_STACK_NAME_CHARACTERS, &name);
    frag_stacks_add_label(stacks, at, share * FRAMES_WIDTH, &label);
    fprintf(stream, "%" PRIu32 ",%" PRIu64 ",%" PRIu64 ",%.6f,%" PRIu32 ",", at->level, left,
            at->bytes, share, frag_stacks_colour(stacks, at));
    frag_text_write_csv(stream, name.bytes);
    fprintf(stream, ",%d,", label.length > 0 ? 1 : 0);
    frag_text_write_csv(stream, label.length > 0 ? label.bytes : "");
    fputc('\n', stream);
    frag_text_destroy(&name);
    frag_text_destroy(&label);
    for (uint32_t child = at->child; child != FRAG_NODE_NONE; child = stacks->nodes[child].next) {
        uint32_t above = write_node(stacks, child, left);
        levels = above > levels ? above : levels;
        left += stacks->nodes[child].bytes;
    }
    return levels;
}

static void write_flame(frag_stacks *stacks)
{
    fputs("level,left_bytes,bytes,share,colour,name,has_label,label\n", stacks->plot.data);
    uint32_t levels = write_node(stacks, 0, 0);
    frag_plot_define_number(&stacks->plot, "total_bytes", (double)stacks->bytes);
    frag_plot_define_number(&stacks->plot, "levels", levels);
    frag_plot_define_unit(&stacks->plot, stacks->bytes);
}

static bool draw(const frag_plot_request *request, frag_error *error)
{
    return frag_stacks_draw("flame", request, write_flame, false, error);
}

static const frag_command_option options[] = {
    FRAG_LOAD_OPTIONS,       FRAG_WINDOW_OR_ALL_OPTIONS, FRAG_PLOT_DEVICE_OPTION,
    FRAG_PLOT_MOMENT_OPTION, FRAG_PLOT_OPTIONS,          {.name = NULL},
};

const frag_plot_kind frag_plot_flame = {
    .command =
        {
            .name = "flame",
            .operands = "TRACE",
            .summary = "what is held at the peak, an event or a mark, by call stack",
            .description =
                "Draws a flame graph of memory: each box is a frame, as wide as the bytes that "
                "were asked for in it or in what it called and are still held, and stands on the "
                "frame that called it. The widest come first, from the left; what is narrower than "
                "a 500th is put together. Frames of one file have one colour. On the terminal the "
                "frames of a fiftieth or more are printed as a tree. No policy is involved.",
            .examples = "fraglab plot flame train.pickle  # on the terminal\n"
                        "fraglab plot flame train.pickle --at 12000 -o flame.svg\n"
                        "fraglab plot flame train.pickle --at 'step[3]'  # of the third step",
            .options = options,
            .operand_min = 1,
            .operand_max = 1,
        },
    .draw = draw,
};
