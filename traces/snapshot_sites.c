#include "traces/snapshot_sites.h"

#include <stdlib.h>
#include <string.h>

#include "sim/base/memory.h"
#include "traces/snapshot_parse.h"

static uint32_t move_string(frag_snapshot_sites *sites, const char *bytes, size_t length)
{
    char *copy = frag_alloc(length + 1, 1);
    memcpy(copy, bytes, length);
    for (size_t at = 0; at < length;) {
        size_t step = frag_text_sequence((const unsigned char *)copy + at, length - at);
        if (step == 0 || copy[at] == '\0') {
            copy[at] = '?';
            step = 1;
        }
        at += step;
    }
    uint32_t id = frag_builder_string(sites->builder, copy, length);
    free(copy);
    return id;
}

uint32_t frag_snapshot_sites_string(frag_snapshot_sites *sites, uint32_t text)
{
    uint32_t *known = &sites->strings[text];
    if (*known == 0) {
        size_t length = 0;
        const char *bytes = frag_pickle_text(sites->pickle, text, &length);
        *known = move_string(sites, bytes, length) + 1;
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

uint32_t frag_snapshot_sites_site(frag_snapshot_sites *sites, uint32_t frames)
{
    if (frames == 0 || !sites->is_on)
        return 0;
    uint32_t *known = &sites->objects[frames - 1];
    if (*known != 0)
        return *known - 1;
    frag_pickle_walk walk = frag_pickle_begin(sites->pickle, frag_pickle_container(frames - 1));
    frag_pickle_value frame = 0;
    uint32_t count = 0;
    while (frag_pickle_next(sites->pickle, &walk, &frame)) {
        sites->frames = frag_grow(sites->frames, &sites->frame_capacity, (size_t)count + 1,
                                  sizeof *sites->frames);
        sites->frames[count++] = move_frame(sites, frame);
    }
    *known = frag_builder_site(sites->builder, sites->frames, count) + 1;
    return *known - 1;
}

void frag_snapshot_sites_create(frag_snapshot_sites *sites, const frag_pickle *pickle,
                                frag_builder *builder, bool is_on)
{
    *sites = (frag_snapshot_sites){.pickle = pickle, .builder = builder, .is_on = is_on};
    sites->strings = frag_alloc((size_t)pickle->strings.count + 1, sizeof *sites->strings);
    if (is_on)
        sites->objects = frag_alloc(pickle->object_count + 1, sizeof *sites->objects);
}

void frag_snapshot_sites_destroy(frag_snapshot_sites *sites)
{
    free(sites->strings);
    free(sites->objects);
    free(sites->frames);
    *sites = (frag_snapshot_sites){0};
}
