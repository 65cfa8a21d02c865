#include "plots/parts/plot_stacks.h"

#include <inttypes.h>
#include <string.h>

#include "base/bytes.h"
#include "base/memory.h"
#include "base/text.h"
#include "sim/trace/demand.h"
#include "sim/trace/site_names.h"
#include "studies/diff/place.h"

/* A frame that holds less than this share of all is put together with others of its caller. */
#define SMALL_PARTS 500u
/* Callers that are drawn; stacks that are deeper end there. */
#define LEVELS_MAX 100u
#define COLOURS 8u
#define LETTER_WIDTH 6.4 /* of a figure 800 wide */

/* ---- what is held */

static uint32_t site_of(const frag_stacks *state, uint64_t alloc_event)
{
    uint32_t site = state->plot.trace->sites != NULL ? state->plot.trace->sites[alloc_event] : 0;
    return site < state->plot.recording.site_count ? site : 0;
}

static void find_held(frag_stacks *state)
{
    frag_demand demand;
    frag_demand_change change;
    state->held = frag_alloc((size_t)state->plot.recording.site_count + 1, sizeof *state->held);
    frag_demand_begin(&demand, state->plot.trace);
    for (uint64_t i = 0; i <= state->event && i < state->plot.trace->event_count; i++) {
        if (!frag_demand_step(&demand, i, &change))
            continue;
        uint64_t by = change.is_free ? 0 - change.bytes : change.bytes;
        state->held[site_of(state, change.alloc_event)] += by;
        state->bytes += by;
    }
    frag_demand_end(&demand);
}

/* ---- the tree */

static uint32_t add_node(frag_stacks *state, int64_t frame, uint32_t level, uint32_t next)
{
    state->nodes =
        frag_grow(state->nodes, &state->capacity, state->count + 1, sizeof *state->nodes);
    state->nodes[state->count] =
        (frag_stack_node){.frame = frame, .level = level, .child = FRAG_NODE_NONE, .next = next};
    return (uint32_t)state->count++;
}

static uint32_t find_child(frag_stacks *state, uint32_t parent, int64_t frame)
{
    uint64_t key = (uint64_t)parent << 32 | (uint32_t)frame;
    uint64_t found = 0;
    if (frag_number_map_get(&state->node_of, key, &found))
        return (uint32_t)found;
    uint32_t at =
        add_node(state, frame, state->nodes[parent].level + 1, state->nodes[parent].child);
    state->nodes[parent].child = at;
    frag_number_map_set(&state->node_of, key, at);
    return at;
}

static void add_stack(frag_stacks *state, uint32_t site)
{
    const frag_recording *recording = &state->plot.recording;
    uint64_t bytes = state->held[site];
    uint32_t count = site < recording->site_count ? recording->sites[site].count : 0;
    uint32_t at = 0;
    state->nodes[0].bytes += bytes;
    if (count == 0) {
        at = find_child(state, at, FRAG_STACK_NO_STACK);
        state->nodes[at].bytes += bytes;
    }
    for (uint32_t i = count; i-- > 0 && state->nodes[at].level < LEVELS_MAX;) {
        at = find_child(state, at, recording->site_frames[recording->sites[site].first + i]);
        state->nodes[at].bytes += bytes;
    }
}

/* The widest first, the small ones together last. */
static bool comes_before(const frag_stack_node *a, const frag_stack_node *b)
{
    if ((a->frame == FRAG_STACK_SMALL) != (b->frame == FRAG_STACK_SMALL))
        return b->frame == FRAG_STACK_SMALL;
    return a->bytes != b->bytes ? a->bytes > b->bytes : a->frame < b->frame;
}

/* Puts the children that are wide enough in order, and the others together. */
static void order_children(frag_stacks *state, uint32_t parent)
{
    uint64_t least = state->bytes / SMALL_PARTS;
    uint32_t left = state->nodes[parent].child;
    uint32_t sorted = FRAG_NODE_NONE;
    uint64_t small = 0;
    while (left != FRAG_NODE_NONE) {
        uint32_t next = state->nodes[left].next;
        if (state->nodes[left].bytes <= least) {
            small += state->nodes[left].bytes;
        } else {
            uint32_t *place = &sorted;
            while (*place != FRAG_NODE_NONE &&
                   comes_before(&state->nodes[*place], &state->nodes[left]))
                place = &state->nodes[*place].next;
            state->nodes[left].next = *place;
            *place = left;
        }
        left = next;
    }
    state->nodes[parent].child = sorted;
    if (small == 0)
        return;
    uint32_t together =
        add_node(state, FRAG_STACK_SMALL, state->nodes[parent].level + 1, FRAG_NODE_NONE);
    state->nodes[together].bytes = small;
    uint32_t *end = &state->nodes[parent].child;
    while (*end != FRAG_NODE_NONE)
        end = &state->nodes[*end].next;
    *end = together;
}

static void build(frag_stacks *state)
{
    add_node(state, FRAG_STACK_ALL, 0, FRAG_NODE_NONE);
    for (uint32_t site = 0; site < state->plot.recording.site_count || site == 0; site++)
        if (state->held[site] > 0)
            add_stack(state, site);
    size_t count = state->count;
    for (uint32_t i = 0; i < count; i++)
        order_children(state, i);
}

uint32_t frag_stacks_join(const frag_stacks *state, uint32_t node)
{
    const frag_stack_node *nodes = state->nodes;
    while (nodes[node].child != FRAG_NODE_NONE && nodes[nodes[node].child].frame >= 0 &&
           nodes[nodes[node].child].bytes == nodes[node].bytes)
        node = nodes[node].child;
    return node;
}

/* ---- names */

void frag_stacks_add_name(const frag_stacks *state, const frag_stack_node *at, size_t characters,
                          frag_text *text)
{
    if (at->frame == FRAG_STACK_ALL)
        frag_text_add(text, "all");
    else if (at->frame == FRAG_STACK_SMALL)
        frag_text_add(text, "small ones");
    else if (at->frame == FRAG_STACK_NO_STACK)
        frag_text_add(text, "no call stack");
    else
        frag_frame_text(&state->plot.recording, (uint32_t)at->frame, characters, text);
}

void frag_stacks_add_label(const frag_stacks *state, const frag_stack_node *at, double pixels,
                           frag_text *text)
{
    size_t room = pixels > 0 ? (size_t)(pixels / LETTER_WIDTH) : 0;
    if (at->frame >= 0 && room >= 16) {
        frag_stacks_add_name(
            state, at, room < FRAG_STACK_NAME_CHARACTERS ? room : FRAG_STACK_NAME_CHARACTERS, text);
        return;
    }
    frag_text name = {0};
    if (at->frame >= 0)
        frag_text_add(&name, "%s",
                      frag_strings_get(&state->plot.recording.strings,
                                       state->plot.recording.frames[at->frame].name));
    else
        frag_stacks_add_name(state, at, FRAG_STACK_NAME_CHARACTERS, &name);
    bool is_ascii = true;
    for (size_t i = 0; i < name.length; i++)
        is_ascii = is_ascii && name.bytes[i] >= ' ' && name.bytes[i] < 127;
    if (is_ascii && name.length <= room)
        frag_text_add(text, "%s", name.bytes);
    else if (is_ascii && room >= 5)
        frag_text_add(text, "%.*s…", (int)room - 1, name.bytes);
    frag_text_destroy(&name);
}

uint32_t frag_stacks_colour(const frag_stacks *state, const frag_stack_node *at)
{
    if (at->frame < 0)
        return 0;
    uint32_t hash = 2166136261u;
    const frag_recording *recording = &state->plot.recording;
    const char *file = frag_strings_get(&recording->strings, recording->frames[at->frame].file);
    const char *name = frag_path_name(file);
    if (*name == '\0')
        return 0; /* a thread of the backward pass is in no file */
    for (; *name != '\0'; name++)
        hash = (hash ^ (unsigned char)*name) * 16777619u;
    return 1 + (hash >> 8) % COLOURS;
}

/* ---- the figure */

static void define(frag_stacks *state)
{
    frag_plot *plot = &state->plot;
    frag_text title = {0};
    frag_text_add(&title, "%s, %s held after event %s, by call stack", state->plot.recording.name,
                  FRAG_BYTES(state->bytes), FRAG_COUNT(state->event));
    frag_plot_define_title(plot, title.bytes);
    frag_text_destroy(&title);
}

/* With characters: a line for each frame of a fiftieth or more, indented by its depth. */
static void print_node(const frag_stacks *state, uint32_t index, size_t depth)
{
    FILE *stream = state->plot.characters;
    index = state->is_joined ? frag_stacks_join(state, index) : index;
    const frag_stack_node *at = &state->nodes[index];
    frag_text name = {0};
    if (at->bytes < state->bytes / 50 + 1)
        return;
    size_t indent = depth < state->plot.width / 2 ? depth : state->plot.width / 2;
    size_t taken = 21 + indent;
    size_t room = state->plot.width > taken + 16 ? state->plot.width - taken : 16;
    frag_stacks_add_name(state, at, room, &name);
    fprintf(stream, "%5.1f%% %12s  %*s%s\n", 100.0 * (double)at->bytes / (double)state->bytes,
            FRAG_BYTES(at->bytes), (int)indent, "", name.bytes);
    frag_text_destroy(&name);
    for (uint32_t child = at->child; child != FRAG_NODE_NONE; child = state->nodes[child].next)
        print_node(state, child, depth + 1);
}

/* The first event behind the start at which most is held, or what --at says. */
static bool read_event(frag_stacks *state, frag_error *error)
{
    const char *at = frag_plot_setting_text(state->plot.request, "at");
    const frag_trace *trace = state->plot.trace;
    const frag_place_source place = {&state->plot.recording, trace};
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
    frag_stacks *state = context;
    if (!read_event(state, error))
        return false;
    find_held(state);
    if (state->bytes == 0)
        return frag_fail_in(error, FRAG_E_INPUT, frag_plot_source_name(state->plot.request),
                            "nothing is held after event %" PRIu64, state->event);
    if (state->plot.recording.site_count < 2)
        frag_context_warn(state->plot.request->context, "%s holds no call stacks",
                          state->plot.recording.name);
    build(state);
    state->write(state);
    state->plot.is_written = state->plot.format == FRAG_PLOT_TERMINAL;
    if (state->plot.is_written) {
        fprintf(state->plot.characters, "%s, requested memory after event %s by call stack\n\n",
                state->plot.recording.name, FRAG_COUNT(state->event));
        print_node(state, 0, 0);
    } else {
        define(state);
    }
    return true;
}

bool frag_stacks_draw(const char *kind, const frag_plot_request *request, frag_stacks_writer *write,
                      bool is_joined, frag_error *error)
{
    frag_stacks state = {.write = write, .is_joined = is_joined};
    bool ok = frag_plot_draw_trace(&state.plot, kind, request, true, fill, &state, error);
    frag_free(state.held);
    frag_free(state.nodes);
    frag_number_map_destroy(&state.node_of);
    return ok;
}
