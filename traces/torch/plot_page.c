#include "traces/torch/plot_page.h"

#include <inttypes.h>
#include <string.h>

#include "base/memory.h"
#include "traces/builder.h"
#include "traces/pickle/json_tree.h"

enum {
    NAME_ACTIONS,
    NAME_ELEMENTS,
    NAME_SUFFIXES,
    NAME_STRINGS,
    NAME_INITIAL,
    NAME_SIZE,
    NAME_INFO,
    NAMES
};

static const char *const names[NAMES] = {
    [NAME_ACTIONS] = "actions",
    [NAME_ELEMENTS] = "elements",
    [NAME_SUFFIXES] = "suffix_table",
    [NAME_STRINGS] = "string_table",
    [NAME_INITIAL] = "initially_allocated",
    [NAME_SIZE] = "size",
    [NAME_INFO] = "info",
};

/* Of a stack, from the innermost: stacks share their ends in the file, but not here. */
enum { FRAMES_MAX = 128 };
#define NO_STACK UINT32_MAX

typedef struct plot_element {
    uint64_t bytes;
    uint32_t stack; /* of the suffixes; NO_STACK */
    uint32_t slot;  /* FRAG_SLOT_NONE: not in use */
} plot_element;

/* A stack is its innermost line and the rest of it. */
typedef struct plot_stack {
    uint32_t line;
    uint32_t rest; /* a stack of a lower number; NO_STACK */
    uint32_t site; /* + 1; 0: not made yet */
} plot_stack;

typedef struct plot_reader {
    frag_pickle *tree;
    frag_error *error;
    frag_findings *findings;
    frag_builder *builder;
    plot_element *elements;
    size_t element_count;
    plot_stack *stacks;
    size_t stack_count;
    uint32_t *lines;  /* string ids of the tree */
    uint32_t *frames; /* by line: the recording's + 1; 0: not made yet */
    size_t line_count;
} plot_reader;

static bool get(const frag_pickle *tree, frag_pickle_value dict, uint32_t name,
                frag_pickle_value *value)
{
    frag_pickle_value key = 0;
    uint32_t id = 0;
    if (frag_pickle_kind_of(tree, dict) != FRAG_PICKLE_DICT)
        return false;
    frag_pickle_walk walk = frag_pickle_begin(tree, dict);
    while (frag_pickle_next(tree, &walk, &key) && frag_pickle_next(tree, &walk, value))
        if (frag_pickle_string(tree, key, &id) && id == name)
            return true;
    return false;
}

/* The items of a list of the drawing. */
static bool get_list(plot_reader *reader, frag_pickle_value root, uint32_t name,
                     frag_pickle_walk *walk, size_t *count)
{
    frag_pickle_value list = 0;
    if (!get(reader->tree, root, name, &list) ||
        (frag_pickle_kind_of(reader->tree, list) != FRAG_PICKLE_LIST &&
         frag_pickle_kind_of(reader->tree, list) != FRAG_PICKLE_TUPLE))
        return frag_fail(
            reader->error, FRAG_E_INPUT,
            "the drawing in the page has no list '%s'; expected one as PyTorch 2.0 writes it",
            names[name]);
    *walk = frag_pickle_begin(reader->tree, list);
    *count = (size_t)frag_pickle_item_count(reader->tree, list);
    return true;
}

static bool fail_item(plot_reader *reader, uint32_t name, uint64_t index, const char *expected)
{
    return frag_fail(reader->error, FRAG_E_INPUT, "%s[%" PRIu64 "] of the drawing is not %s",
                     names[name], index, expected);
}

/* A number below limit; null is `none` where that may be. */
static bool read_index(const plot_reader *reader, frag_pickle_value value, uint64_t limit,
                       bool may_be_none, uint32_t *index)
{
    uint64_t number = 0;
    *index = NO_STACK;
    if (may_be_none && frag_pickle_kind_of(reader->tree, value) == FRAG_PICKLE_NONE)
        return true;
    if (!frag_pickle_unsigned(reader->tree, value, &number) || number >= limit)
        return false;
    *index = (uint32_t)number;
    return true;
}

static bool read_lines(plot_reader *reader, frag_pickle_value root)
{
    frag_pickle_walk walk;
    frag_pickle_value item = 0;
    size_t count = 0;
    if (!get_list(reader, root, NAME_STRINGS, &walk, &count))
        return false;
    reader->lines = frag_alloc(count, sizeof *reader->lines);
    reader->frames = frag_alloc(count, sizeof *reader->frames);
    for (; frag_pickle_next(reader->tree, &walk, &item); reader->line_count++)
        if (!frag_pickle_string(reader->tree, item, &reader->lines[reader->line_count]))
            return fail_item(reader, NAME_STRINGS, reader->line_count, "a string");
    return true;
}

static bool read_stacks(plot_reader *reader, frag_pickle_value root)
{
    frag_pickle_walk walk;
    frag_pickle_value item = 0;
    size_t count = 0;
    if (!get_list(reader, root, NAME_SUFFIXES, &walk, &count))
        return false;
    reader->stacks = frag_alloc(count, sizeof *reader->stacks);
    for (; frag_pickle_next(reader->tree, &walk, &item); reader->stack_count++) {
        plot_stack *stack = &reader->stacks[reader->stack_count];
        frag_pickle_walk pair = frag_pickle_begin(reader->tree, item);
        frag_pickle_value line = 0;
        frag_pickle_value rest = 0;
        if (!frag_pickle_next(reader->tree, &pair, &line) ||
            !frag_pickle_next(reader->tree, &pair, &rest) ||
            !read_index(reader, line, reader->line_count, false, &stack->line) ||
            !read_index(reader, rest, reader->stack_count, true, &stack->rest))
            return fail_item(reader, NAME_SUFFIXES, reader->stack_count,
                             "the number of a string and of a stack above it, or null");
    }
    return true;
}

static bool read_elements(plot_reader *reader, frag_pickle_value root)
{
    frag_pickle_walk walk;
    frag_pickle_value item = 0;
    size_t count = 0;
    if (!get_list(reader, root, NAME_ELEMENTS, &walk, &count))
        return false;
    reader->elements = frag_alloc(count, sizeof *reader->elements);
    for (; frag_pickle_next(reader->tree, &walk, &item); reader->element_count++) {
        plot_element *element = &reader->elements[reader->element_count];
        frag_pickle_value value = 0;
        element->slot = FRAG_SLOT_NONE;
        if (!get(reader->tree, item, NAME_SIZE, &value) ||
            !frag_pickle_unsigned(reader->tree, value, &element->bytes) || element->bytes == 0 ||
            element->bytes > FRAG_REQUEST_BYTES_MAX)
            return fail_item(reader, NAME_ELEMENTS, reader->element_count,
                             "an allocation with a 'size' of 1 to 2^56 - 1");
        if (!get(reader->tree, item, NAME_INFO, &value) ||
            !read_index(reader, value, reader->stack_count, true, &element->stack))
            return fail_item(reader, NAME_ELEMENTS, reader->element_count,
                             "an allocation with an 'info', the number of a stack or null");
    }
    return true;
}

/* ---- call sites */

/* "file.py:12:function", as _frame_fmt writes it. */
static uint32_t frame_of(plot_reader *reader, uint32_t line)
{
    if (reader->frames[line] != 0)
        return reader->frames[line] - 1;
    size_t length = 0;
    const char *text = frag_pickle_text(reader->tree, reader->lines[line], &length);
    size_t name = length;
    while (name > 0 && text[name - 1] != ':')
        name--;
    size_t digits = name;
    uint64_t number = 0;
    uint64_t power = 1;
    while (digits > 1 && text[digits - 2] >= '0' && text[digits - 2] <= '9' && power < 1000000000) {
        number += power * (uint64_t)(text[digits - 2] - '0');
        power *= 10;
        digits--;
    }
    bool is_place = power > 1 && digits > 1 && text[digits - 2] == ':';
    size_t file_length = is_place ? digits - 2 : 0;
    size_t start = is_place ? name : 0;
    frag_frame frame = {
        .name = frag_builder_text(reader->builder, text + start, length - start),
        .file = frag_builder_text(reader->builder, text, file_length),
        .line = is_place ? (uint32_t)number : 0,
    };
    reader->frames[line] = frag_builder_frame(reader->builder, frame) + 1;
    return reader->frames[line] - 1;
}

/* The first line says how large the allocation is, and is no frame. */
static uint32_t site_of(plot_reader *reader, uint32_t stack)
{
    uint32_t frames[FRAMES_MAX];
    uint32_t count = 0;
    if (stack == NO_STACK || reader->stacks[stack].rest == NO_STACK)
        return 0;
    plot_stack *known = &reader->stacks[stack];
    if (known->site != 0)
        return known->site - 1;
    for (uint32_t at = known->rest; at != NO_STACK && count < FRAMES_MAX;
         at = reader->stacks[at].rest)
        frames[count++] = frame_of(reader, reader->stacks[at].line);
    known->site = frag_builder_site(reader->builder, frames, count) + 1;
    return known->site - 1;
}

/* ---- events */

static void add_alloc(plot_reader *reader, plot_element *element)
{
    element->slot = frag_builder_slot_take(reader->builder);
    frag_build_event event = {
        .op = FRAG_OP_ALLOC,
        .slot = element->slot,
        .bytes = element->bytes,
        .site = site_of(reader, element->stack),
    };
    frag_builder_add(reader->builder, &event);
}

static void add_free(plot_reader *reader, plot_element *element)
{
    frag_build_event event = {.op = FRAG_OP_FREE, .slot = element->slot};
    frag_builder_add(reader->builder, &event);
    frag_builder_slot_give(reader->builder, element->slot);
    element->slot = FRAG_SLOT_NONE;
}

/* The numbers of allocations: the first time one comes it is made, the second time it goes. */
static bool add_events(plot_reader *reader, frag_pickle_value root, uint32_t name)
{
    frag_pickle_walk walk;
    frag_pickle_value item = 0;
    size_t count = 0;
    uint32_t index = 0;
    if (!get_list(reader, root, name, &walk, &count))
        return false;
    for (uint64_t i = 0; frag_pickle_next(reader->tree, &walk, &item); i++) {
        if (!read_index(reader, item, reader->element_count, false, &index))
            return fail_item(reader, name, i, "the number of an allocation");
        plot_element *element = &reader->elements[index];
        if (element->slot == FRAG_SLOT_NONE)
            add_alloc(reader, element);
        else if (name == NAME_ACTIONS)
            add_free(reader, element);
        else
            return fail_item(reader, name, i, "an allocation that is there once");
    }
    return true;
}

/* Without addresses nothing can be taken over in its place. */
static bool note_initial(plot_reader *reader)
{
    uint64_t count = 0;
    for (size_t i = 0; i < reader->element_count; i++)
        count += reader->elements[i].slot != FRAG_SLOT_NONE ? 1 : 0;
    if (count > 0)
        frag_findings_add(reader->findings, "began-in-use",
                          "memory was in use before the recording began; it was taken as asked for "
                          "first, in the order of the drawing",
                          false, 0, 0, "%" PRIu64 " allocations", count);
    return true;
}

static bool build(plot_reader *reader, frag_pickle_value root)
{
    if (frag_pickle_kind_of(reader->tree, root) != FRAG_PICKLE_DICT)
        return frag_fail(reader->error, FRAG_E_INPUT, "the drawing in the page is %s; expected %s",
                         frag_pickle_kind_name(frag_pickle_kind_of(reader->tree, root)),
                         frag_pickle_kind_name(FRAG_PICKLE_DICT));
    if (!read_lines(reader, root) || !read_stacks(reader, root) || !read_elements(reader, root))
        return false;
    frag_builder_metadata(reader->builder, "source", "torch-plot");
    frag_builder_device(reader->builder, 0);
    frag_findings_add(
        reader->findings, "drawing-only",
        "the page of PyTorch 2.0 holds a drawing and no snapshot: sizes, order and stacks, but no "
        "streams, addresses, segments or times; record a pickle for these",
        false, 0, 0, "%zu allocations", reader->element_count);
    return add_events(reader, root, NAME_INITIAL) && note_initial(reader) &&
           add_events(reader, root, NAME_ACTIONS);
}

bool frag_plot_page_read(frag_input *input, frag_recording *recording, frag_findings *findings,
                         frag_error *error)
{
    const frag_json_tree_options options = {.is_part = true};
    plot_reader reader = {
        .tree = frag_pickle_create(names, NAMES), .error = error, .findings = findings};
    frag_pickle_value root = 0;
    *recording = (frag_recording){0};
    bool ok = frag_json_tree_read(reader.tree, input, &options, &root, error);
    if (ok) {
        reader.builder = frag_builder_create(recording);
        ok = frag_builder_end(reader.builder, build(&reader, root), input, error);
    }
    frag_pickle_destroy(reader.tree);
    frag_free(reader.elements);
    frag_free(reader.stacks);
    frag_free(reader.lines);
    frag_free(reader.frames);
    return ok;
}
