/* What is held at one moment by call stack: a frame stands on the one that called it, as wide as
 * what was asked for in it. */
#include <inttypes.h>
#include <string.h>

#include "base/bytes.h"
#include "base/memory.h"
#include "plots/plot.h"
#include "plots/plot_options.h"
#include "sim/trace/demand.h"
#include "sim/trace/site_names.h"
#include "studies/diff/place.h"

#define NONE UINT32_MAX
/* A frame that holds less than this share of all is put together with others of its caller. */
#define SMALL_PARTS 500u
/* Callers that are drawn; stacks that are deeper end there. */
#define LEVELS_MAX 100u
#define COLOURS 8u
#define NAME_CHARACTERS 80u
/* Pixels of a figure 800 wide: of the frames all together, and of a letter. */
#define FRAMES_WIDTH 770.0
#define LETTER_WIDTH 6.4

enum { FRAME_ALL = -1, FRAME_SMALL = -2, FRAME_NO_STACK = -3 };

typedef struct node {
    int64_t frame; /* of the recording, or one of the above */
    uint64_t bytes;
    uint32_t level;
    uint32_t child; /* the first; NONE */
    uint32_t next;  /* of the same caller */
} node;

typedef struct flame_figure {
    frag_plot plot;
    frag_recording recording;
    const frag_trace *trace;
    uint64_t event; /* what is held right after it */
    uint64_t bytes;
    uint64_t *held; /* by call site */
    node *nodes;    /* the first is the root */
    size_t count;
    size_t capacity;
    uint32_t levels;
} flame_figure;

/* ---- what is held */

static uint32_t site_of(const flame_figure *state, uint64_t alloc_event)
{
    uint32_t site = state->trace->sites != NULL ? state->trace->sites[alloc_event] : 0;
    return site < state->recording.site_count ? site : 0;
}

static void find_held(flame_figure *state)
{
    frag_demand demand;
    frag_demand_change change;
    state->held = frag_alloc((size_t)state->recording.site_count + 1, sizeof *state->held);
    frag_demand_begin(&demand, state->trace);
    for (uint64_t i = 0; i <= state->event && i < state->trace->event_count; i++) {
        if (!frag_demand_step(&demand, i, &change))
            continue;
        uint64_t by = change.is_free ? 0 - change.bytes : change.bytes;
        state->held[site_of(state, change.alloc_event)] += by;
        state->bytes += by;
    }
    frag_demand_end(&demand);
}

/* ---- the tree */

static uint32_t add_node(flame_figure *state, int64_t frame, uint32_t level, uint32_t next)
{
    state->nodes =
        frag_grow(state->nodes, &state->capacity, state->count + 1, sizeof *state->nodes);
    state->nodes[state->count] =
        (node){.frame = frame, .level = level, .child = NONE, .next = next};
    return (uint32_t)state->count++;
}

static uint32_t find_child(flame_figure *state, uint32_t parent, int64_t frame)
{
    uint32_t at = state->nodes[parent].child;
    while (at != NONE && state->nodes[at].frame != frame)
        at = state->nodes[at].next;
    if (at == NONE) {
        at = add_node(state, frame, state->nodes[parent].level + 1, state->nodes[parent].child);
        state->nodes[parent].child = at;
    }
    return at;
}

static void add_stack(flame_figure *state, uint32_t site)
{
    const frag_recording *recording = &state->recording;
    uint64_t bytes = state->held[site];
    uint32_t count = site < recording->site_count ? recording->sites[site].count : 0;
    uint32_t at = 0;
    state->nodes[0].bytes += bytes;
    if (count == 0) {
        at = find_child(state, at, FRAME_NO_STACK);
        state->nodes[at].bytes += bytes;
    }
    for (uint32_t i = count; i-- > 0 && state->nodes[at].level < LEVELS_MAX;) {
        at = find_child(state, at, recording->site_frames[recording->sites[site].first + i]);
        state->nodes[at].bytes += bytes;
    }
}

/* The widest first, the small ones together last. */
static bool comes_before(const node *a, const node *b)
{
    if ((a->frame == FRAME_SMALL) != (b->frame == FRAME_SMALL))
        return b->frame == FRAME_SMALL;
    return a->bytes != b->bytes ? a->bytes > b->bytes : a->frame < b->frame;
}

/* Puts the children that are wide enough in order, and the others together. */
static void order_children(flame_figure *state, uint32_t parent)
{
    uint64_t least = state->bytes / SMALL_PARTS;
    uint32_t left = state->nodes[parent].child;
    uint32_t sorted = NONE;
    uint64_t small = 0;
    while (left != NONE) {
        uint32_t next = state->nodes[left].next;
        if (state->nodes[left].bytes <= least) {
            small += state->nodes[left].bytes;
        } else {
            uint32_t *place = &sorted;
            while (*place != NONE && comes_before(&state->nodes[*place], &state->nodes[left]))
                place = &state->nodes[*place].next;
            state->nodes[left].next = *place;
            *place = left;
        }
        left = next;
    }
    state->nodes[parent].child = sorted;
    if (small == 0)
        return;
    uint32_t together = add_node(state, FRAME_SMALL, state->nodes[parent].level + 1, NONE);
    state->nodes[together].bytes = small;
    uint32_t *end = &state->nodes[parent].child;
    while (*end != NONE)
        end = &state->nodes[*end].next;
    *end = together;
}

static void build(flame_figure *state)
{
    add_node(state, FRAME_ALL, 0, NONE);
    for (uint32_t site = 0; site < state->recording.site_count || site == 0; site++)
        if (state->held[site] > 0)
            add_stack(state, site);
    size_t count = state->count;
    for (uint32_t i = 0; i < count; i++)
        order_children(state, i);
}

/* ---- data */

static void add_name(const flame_figure *state, const node *at, size_t characters, frag_text *text)
{
    if (at->frame == FRAME_ALL)
        frag_text_add(text, "all");
    else if (at->frame == FRAME_SMALL)
        frag_text_add(text, "small ones");
    else if (at->frame == FRAME_NO_STACK)
        frag_text_add(text, "no call stack");
    else
        frag_frame_text(&state->recording, (uint32_t)at->frame, characters, text);
}

/* As much of the name as there is room for; nothing where that says nothing. */
static void add_label(const flame_figure *state, const node *at, frag_text *text)
{
    double share = (double)at->bytes / (double)state->bytes;
    size_t room = (size_t)(share * FRAMES_WIDTH / LETTER_WIDTH);
    if (at->frame >= 0 && room >= 16) {
        add_name(state, at, room < NAME_CHARACTERS ? room : NAME_CHARACTERS, text);
        return;
    }
    frag_text name = {0};
    if (at->frame >= 0)
        frag_text_add(
            &name, "%s",
            frag_strings_get(&state->recording.strings, state->recording.frames[at->frame].name));
    else
        add_name(state, at, NAME_CHARACTERS, &name);
    bool is_ascii = true;
    for (size_t i = 0; i < name.length; i++)
        is_ascii = is_ascii && name.bytes[i] >= ' ' && name.bytes[i] < 127;
    if (is_ascii && name.length <= room)
        frag_text_add(text, "%s", name.bytes);
    else if (is_ascii && room >= 5)
        frag_text_add(text, "%.*s…", (int)room - 1, name.bytes);
    frag_text_destroy(&name);
}

/* The same for a file in every figure; 0: grey. */
static uint32_t colour_of(const flame_figure *state, const node *at)
{
    if (at->frame < 0)
        return 0;
    uint32_t hash = 2166136261u;
    const frag_recording *recording = &state->recording;
    const char *file = frag_strings_get(&recording->strings, recording->frames[at->frame].file);
    const char *name = strrchr(file, '/') != NULL ? strrchr(file, '/') + 1 : file;
    for (; *name != '\0'; name++)
        hash = (hash ^ (unsigned char)*name) * 16777619u;
    return 1 + (hash >> 8) % COLOURS;
}

static void write_node(flame_figure *state, uint32_t index, uint64_t left)
{
    FILE *stream = state->plot.data;
    const node *at = &state->nodes[index];
    frag_text name = {0};
    frag_text label = {0};
    add_name(state, at, NAME_CHARACTERS, &name);
    add_label(state, at, &label);
    state->levels = at->level >= state->levels ? at->level + 1 : state->levels;
    fprintf(stream, "%" PRIu32 ",%" PRIu64 ",%" PRIu64 ",%.6f,%" PRIu32 ",", at->level, left,
            at->bytes, (double)at->bytes / (double)state->bytes, colour_of(state, at));
    frag_text_write_csv(stream, name.bytes);
    fprintf(stream, ",%d,", label.length > 0 ? 1 : 0);
    frag_text_write_csv(stream, label.length > 0 ? label.bytes : "");
    fputc('\n', stream);
    frag_text_destroy(&name);
    frag_text_destroy(&label);
    for (uint32_t child = at->child; child != NONE; child = state->nodes[child].next) {
        write_node(state, child, left);
        left += state->nodes[child].bytes;
    }
}

/* ---- the figure */

static void define(flame_figure *state)
{
    frag_plot *plot = &state->plot;
    frag_text title = {0};
    frag_plot_define_number(plot, "total_bytes", (double)state->bytes);
    frag_plot_define_number(plot, "levels", state->levels);
    frag_plot_define_unit(plot, state->bytes);
    frag_text_add(&title, "%s, %s held after event %s, by call stack", state->recording.name,
                  FRAG_BYTES(state->bytes), FRAG_COUNT(state->event));
    frag_plot_define_title(plot, title.bytes);
    frag_text_destroy(&title);
}

/* With characters: a line for each frame of a fiftieth or more, indented by its depth. */
static void print_node(const flame_figure *state, uint32_t index)
{
    FILE *stream = state->plot.characters;
    const node *at = &state->nodes[index];
    frag_text name = {0};
    if (at->bytes < state->bytes / 50 + 1)
        return;
    size_t indent = at->level < state->plot.width / 2 ? at->level : state->plot.width / 2;
    size_t taken = 21 + indent;
    size_t room = state->plot.width > taken + 16 ? state->plot.width - taken : 16;
    add_name(state, at, room, &name);
    fprintf(stream, "%5.1f%% %12s  %*s%s\n", 100.0 * (double)at->bytes / (double)state->bytes,
            FRAG_BYTES(at->bytes), (int)indent, "", name.bytes);
    frag_text_destroy(&name);
    for (uint32_t child = at->child; child != NONE; child = state->nodes[child].next)
        print_node(state, child);
}

/* The first event behind the start at which most is held, or what --at says. */
static bool read_event(flame_figure *state, frag_error *error)
{
    const char *at = frag_plot_setting_text(state->plot.request, "at");
    const frag_trace *trace = state->trace;
    const frag_place_source place = {&state->recording, trace};
    frag_use_range range;
    if (trace->event_count == 0)
        return true;
    if (at == NULL) {
        state->event =
            frag_uses_peak_event(trace, frag_trace_start(trace), trace->event_count, false);
        return true;
    }
    if (!frag_place_find(&place, at, &range, error))
        return frag_error_in(error, "--at");
    state->event = range.moment;
    return true;
}

static bool fill(void *context, frag_error *error)
{
    flame_figure *state = context;
    if (!read_event(state, error))
        return false;
    find_held(state);
    if (state->bytes == 0) {
        frag_fail(error, FRAG_E_INPUT, "nothing is held after event %" PRIu64, state->event);
        return frag_error_in(error, frag_plot_source_name(state->plot.request));
    }
    if (state->recording.site_count < 2)
        frag_context_warn(state->plot.request->context, "%s holds no call stacks",
                          state->recording.name);
    build(state);
    fputs("level,left_bytes,bytes,share,colour,name,has_label,label\n", state->plot.data);
    write_node(state, 0, 0);
    state->plot.is_written = state->plot.format == FRAG_PLOT_TERMINAL;
    if (state->plot.is_written) {
        fprintf(state->plot.characters, "%s, requested memory after event %s by call stack\n\n",
                state->recording.name, FRAG_COUNT(state->event));
        print_node(state, 0);
    } else {
        define(state);
    }
    return true;
}

static bool draw(const frag_plot_request *request, frag_error *error)
{
    flame_figure state = {.levels = 0};
    bool ok = frag_plot_draw_trace(&state.plot, "flame", request, true, &state.recording,
                                   &state.trace, fill, &state, error);
    frag_free(state.held);
    frag_free(state.nodes);
    return ok;
}

static const frag_command_option options[] = {
    FRAG_LOAD_OPTIONS,
    FRAG_WINDOW_OR_ALL_OPTIONS,
    FRAG_PLOT_DEVICE_OPTION,
    {"at", "WHERE",
     .help = "what is held: end; N, right after that event; A..B, a mark's name ('step 3') or "
             "NAME[N], its N-th up to the next: at the peak of those events (default: the first "
             "event at which most is held)"},
    FRAG_PLOT_OPTIONS,
    {.name = NULL},
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
