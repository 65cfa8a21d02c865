#include "traces/torch/snapshot_sites.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "sim/trace/frame_owner.h"
#include "traces/torch/history/snapshot_parse.h"

uint32_t frag_snapshot_sites_string(frag_snapshot_sites *sites, uint32_t text)
{
    uint32_t *known = &sites->strings[text];
    if (*known == 0) {
        size_t length = 0;
        const char *bytes = frag_pickle_text(sites->pickle, text, &length);
        *known = frag_builder_text(sites->builder, bytes, length) + 1;
    }
    return *known - 1;
}

static uint32_t string_of(frag_snapshot_sites *sites, frag_pickle_value dict, uint32_t name)
{
    frag_pickle_value value = 0;
    uint32_t text = FRAG_SNAPSHOT_EMPTY;
    if (frag_snapshot_get(sites->pickle, dict, name, &value))
        frag_pickle_string(sites->pickle, value, &text);
    return frag_snapshot_sites_string(sites, text);
}

/* A frame is a dictionary, or in old C++ stacks a string. */
static uint32_t move_frame(frag_snapshot_sites *sites, frag_pickle_value frame)
{
    uint64_t object = 0;
    uint32_t text = 0;
    if (frag_pickle_string(sites->pickle, frame, &text))
        return frag_builder_frame(sites->builder,
                                  (frag_frame){.name = frag_snapshot_sites_string(sites, text)});
    if (!frag_pickle_object_of(sites->pickle, frame, &object))
        return frag_builder_frame(sites->builder, (frag_frame){0});
    if (sites->objects[object] == 0) {
        frag_pickle_value value = 0;
        uint64_t line = 0;
        if (frag_snapshot_get(sites->pickle, frame, FRAG_SNAPSHOT_LINE, &value))
            frag_pickle_unsigned(sites->pickle, value, &line);
        frag_frame moved = {
            .name = string_of(sites, frame, FRAG_SNAPSHOT_NAME),
            .file = string_of(sites, frame, FRAG_SNAPSHOT_FILENAME),
            .line = line > UINT32_MAX ? 0 : (uint32_t)line,
        };
        sites->objects[object] = frag_builder_frame(sites->builder, moved) + 1;
    }
    return sites->objects[object] - 1;
}

static void add_frame(frag_snapshot_sites *sites, uint32_t frame)
{
    *FRAG_APPEND(sites->frames, sites->frame_count, sites->frame_capacity) = frame;
}

static void add_frames(frag_snapshot_sites *sites, uint32_t frames, uint32_t count_max)
{
    frag_pickle_walk walk = frag_pickle_begin(sites->pickle, frag_pickle_container(frames - 1));
    frag_pickle_value frame = 0;
    while (sites->frame_count < count_max && frag_pickle_next(sites->pickle, &walk, &frame))
        add_frame(sites, move_frame(sites, frame));
}

static bool is_wrapper(const frag_snapshot_sites *sites, frag_pickle_value frame)
{
    frag_pickle_value value = 0;
    uint64_t object = 0;
    uint32_t text = 0;
    return frag_pickle_object_of(sites->pickle, frame, &object) &&
           frag_snapshot_get(sites->pickle, frame, FRAG_SNAPSHOT_FILENAME, &value) &&
           frag_pickle_string(sites->pickle, value, &text) &&
           frag_frame_is_wrapper(frag_pickle_text(sites->pickle, text, NULL));
}

/* A stack of wrappers alone, which are few, is as empty as one without frames. */
static bool has_wrappers_only(const frag_snapshot_sites *sites, uint32_t frames)
{
    enum { WRAPPERS_MAX = 4 };
    frag_pickle_walk walk = frag_pickle_begin(sites->pickle, frag_pickle_container(frames - 1));
    frag_pickle_value frame = 0;
    for (uint32_t i = 0; frag_pickle_next(sites->pickle, &walk, &frame); i++)
        if (i == WRAPPERS_MAX || !is_wrapper(sites, frame))
            return false;
    return true;
}

uint32_t frag_snapshot_sites_site(frag_snapshot_sites *sites, uint32_t frames)
{
    if (frames == 0 || !sites->is_on)
        return 0;
    uint32_t *known = &sites->objects[frames - 1];
    if (*known != 0)
        return *known - 1;
    sites->frame_count = 0;
    if (!has_wrappers_only(sites, frames))
        add_frames(sites, frames, UINT32_MAX);
    *known = frag_builder_site(sites->builder, sites->frames, sites->frame_count) + 1;
    sites->has_stacks = sites->has_stacks || *known > 1;
    return *known - 1;
}

uint32_t frag_snapshot_sites_empty(frag_snapshot_sites *sites)
{
    static const char name[] = "autograd thread (no Python stack)";
    if (!sites->is_on || !sites->has_stacks)
        return 0;
    uint32_t frame = frag_builder_frame(
        sites->builder,
        (frag_frame){.name = frag_builder_string(sites->builder, name, sizeof name - 1)});
    return frag_builder_site(sites->builder, &frame, 1);
}

/* ---- the forward pass of a request in the backward pass */

static uint32_t intern(frag_snapshot_sites *sites, const char *prefix, const char *bytes,
                       size_t length)
{
    frag_text text = {0};
    frag_text_add(&text, "%s", prefix);
    frag_text_add_bytes(&text, bytes, length);
    uint32_t id = frag_builder_text(sites->builder, text.bytes, text.length);
    frag_text_destroy(&text);
    return id;
}

/* Frames of both passes in one call site: lists may be shared by many entries, which must not take
 * time in proportion to their product. */
enum { BACKWARD_FRAMES_MAX = 128 };

/* A line as Python's traceback prints it: "  File \"model.py\", line 12, in forward", perhaps with
 * the code below. Another line is a name. */
static uint32_t read_line(frag_snapshot_sites *sites, const char *line)
{
    static const char file_word[] = "File \"";
    static const char line_word[] = "\", line ";
    static const char name_word[] = ", in ";
    const char *file = strstr(line, file_word);
    const char *number = file != NULL ? strstr(file, line_word) : NULL;
    const char *name = number != NULL ? strstr(number, name_word) : NULL;
    if (name == NULL)
        return frag_builder_frame(
            sites->builder,
            (frag_frame){.name = intern(sites, "backward of ", line, strcspn(line, "\n"))});
    file += sizeof file_word - 1;
    name += sizeof name_word - 1;
    unsigned long value = strtoul(number + sizeof line_word - 1, NULL, 10);
    return frag_builder_frame(sites->builder,
                              (frag_frame){
                                  .name = intern(sites, "backward of ", name, strcspn(name, "\n")),
                                  .file = intern(sites, "", file, (size_t)(number - file)),
                                  .line = value > UINT32_MAX ? 0 : (uint32_t)value,
                              });
}

static uint32_t forward_frame(frag_snapshot_sites *sites, uint32_t line)
{
    if (sites->lines == NULL)
        sites->lines = frag_alloc(sites->pickle->strings.count, sizeof *sites->lines);
    if (sites->lines[line] == 0)
        sites->lines[line] = read_line(sites, frag_pickle_text(sites->pickle, line, NULL)) + 1;
    return sites->lines[line] - 1;
}

/* Anomaly mode keeps them outermost first, as Python prints them, or innermost first; the frame of
 * a module is the outermost of its file. */
static void turn_frames(frag_snapshot_sites *sites, uint32_t first)
{
    for (uint32_t i = first, k = sites->frame_count; i + 1 < k; i++) {
        uint32_t other = sites->frames[--k];
        sites->frames[k] = sites->frames[i];
        sites->frames[i] = other;
    }
}

uint32_t frag_snapshot_sites_backward(frag_snapshot_sites *sites, uint32_t frames, uint32_t forward)
{
    if (!sites->is_on)
        return 0;
    sites->frame_count = 0;
    if (frames != 0)
        add_frames(sites, frames, BACKWARD_FRAMES_MAX / 2);
    uint32_t first = sites->frame_count;
    frag_pickle_walk walk = frag_pickle_begin(sites->pickle, frag_pickle_container(forward - 1));
    frag_pickle_value value = 0;
    bool is_turned = false;
    while (sites->frame_count < BACKWARD_FRAMES_MAX &&
           frag_pickle_next(sites->pickle, &walk, &value)) {
        uint32_t text = FRAG_SNAPSHOT_EMPTY;
        if (!frag_pickle_string(sites->pickle, value, &text))
            continue;
        if (sites->frame_count == first)
            is_turned =
                strstr(frag_pickle_text(sites->pickle, text, NULL), ", in <module>") != NULL;
        add_frame(sites, forward_frame(sites, text));
    }
    if (is_turned)
        turn_frames(sites, first);
    return frag_builder_site(sites->builder, sites->frames, sites->frame_count);
}

void frag_snapshot_sites_create(frag_snapshot_sites *sites, const frag_pickle *pickle,
                                frag_builder *builder, bool is_on)
{
    *sites = (frag_snapshot_sites){.pickle = pickle, .builder = builder, .is_on = is_on};
    sites->strings = frag_alloc(pickle->strings.count, sizeof *sites->strings);
    if (is_on)
        sites->objects = frag_alloc(pickle->object_count, sizeof *sites->objects);
}

void frag_snapshot_sites_destroy(frag_snapshot_sites *sites)
{
    frag_free(sites->strings);
    frag_free(sites->objects);
    frag_free(sites->lines);
    frag_free(sites->frames);
    *sites = (frag_snapshot_sites){0};
}
