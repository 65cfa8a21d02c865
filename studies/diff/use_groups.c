#include "studies/diff/use_groups.h"

#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/bytes.h"
#include "base/memory.h"
#include "base/text.h"
#include "sim/trace/frame_owner.h"
#include "sim/trace/site_names.h"
#include "studies/explain/explain_purpose.h"

static const char no_stack[] = "no call stack";

/* ---- names */

/* "torch/nn/modules/linear.py" of an installed file, "train.py" of another. */
static const char *file_of(const char *path)
{
    static const char *const folders[] = {"site-packages/", "dist-packages/"};
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        const char *found = strstr(path, folders[i]);
        if (found != NULL)
            return found + strlen(folders[i]);
    }
    return frag_path_name(path);
}

static const char *file_text(const frag_recording *recording, const frag_frame *frame)
{
    return frag_strings_get(&recording->strings, frame->file);
}

/* A comprehension, which is no frame of its own from Python 3.12 on, or a generator. */
static bool is_comprehension(const char *function)
{
    static const char *const names[] = {"<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(function, names[i]) == 0)
            return true;
    return false;
}

enum { COMPREHENSION_DEPTH = 16 };

/* Where in the stack the function of frame i is: of a comprehension the next frame outwards, of
 * those near, that is in its file and none. */
static uint32_t function_of(const frag_recording *recording, const frag_site *site, uint32_t i)
{
    const uint32_t *frames = &recording->site_frames[site->first];
    const char *file = file_text(recording, &recording->frames[frames[i]]);
    for (uint32_t k = i; k < site->count && k - i < COMPREHENSION_DEPTH; k++) {
        const frag_frame *frame = &recording->frames[frames[k]];
        if (strcmp(file_text(recording, frame), file) == 0 &&
            !is_comprehension(frag_strings_get(&recording->strings, frame->name)))
            return k;
    }
    return i;
}

/* The name of frame i of a stack, to be matched; the caller frees it. A frame of the forward pass
 * that a backward pass is linked to counts as the forward pass where is_caller. */
static char *name_frame(const frag_recording *recording, const frag_site *site, uint32_t i,
                        bool is_caller)
{
    static const char prefix[] = "backward of ";
    uint32_t id = recording->site_frames[site->first + function_of(recording, site, i)];
    const frag_frame *frame = &recording->frames[id];
    const char *file = file_of(file_text(recording, frame));
    const char *function = frag_strings_get(&recording->strings, frame->name);
    frag_text text = {0};
    if (file[0] == '\0' || strcmp(file, "??") == 0) {
        frag_frame_add(recording, id, &text); /* "backward of Mm" of C++ */
    } else {
        if (is_caller && strncmp(function, prefix, sizeof prefix - 1) == 0)
            function += sizeof prefix - 1;
        frag_text_add(&text, "%s (%s)", function, file);
    }
    frag_text_make_plain(text.bytes);
    return text.bytes;
}

/* Frames are parted by semicolons, as in collapsed stacks; one in a name becomes a comma. */
static char *name_stack(const frag_recording *recording, const frag_site *site)
{
    frag_text text = {0};
    for (uint32_t i = site->count; i-- > 0;) {
        if (function_of(recording, site, i) != i)
            continue; /* a comprehension is its function's */
        char *name = name_frame(recording, site, i, false);
        for (char *at = name; *at != '\0'; at++)
            *at = *at == ';' ? ',' : *at;
        frag_text_add(&text, "%s%s", text.length > 0 ? ";" : "", name);
        frag_free(name);
    }
    return text.bytes;
}

/* The first place of a frame in a stack that has it. */
static uint32_t place_of(const frag_recording *recording, const frag_site *site, uint32_t frame)
{
    uint32_t i = 0;
    while (recording->site_frames[site->first + i] != frame)
        i++;
    return i;
}

/* Of Python: in a stack with frames of C++ the innermost ones are the same everywhere. */
static uint32_t innermost_frame(const frag_recording *recording, const frag_site *site,
                                uint32_t named)
{
    for (uint32_t i = 0; i < site->count; i++) {
        const frag_frame *frame = &recording->frames[recording->site_frames[site->first + i]];
        const char *file = file_text(recording, frame);
        const char *function = frag_strings_get(&recording->strings, frame->name);
        if (!frag_frame_is_wrapper(file) &&
            frag_frame_owner_of(file, function) != FRAG_OWNER_NATIVE)
            return i;
    }
    return named;
}

static void name_site(const frag_recording *recording, frag_use_grouping grouping, uint32_t id,
                      frag_use_name *name)
{
    const frag_site *site = id < recording->site_count ? &recording->sites[id] : NULL;
    bool is_by_site = grouping == FRAG_USES_BY_SITE;
    *name = (frag_use_name){.site = id,
                            .has_place = grouping == FRAG_USES_BY_PURPOSE ||
                                         frag_site_has_place(recording, id)};
    if (grouping == FRAG_USES_BY_PURPOSE) {
        name->caller = frag_copy_text(frag_purpose_title(frag_purpose_of_site(recording, id)));
    } else if (site == NULL || site->count == 0) {
        name->caller = frag_copy_text(no_stack);
        name->inner = is_by_site ? frag_copy_text(no_stack) : NULL;
    } else if (grouping == FRAG_USES_BY_STACK) {
        name->caller = name_stack(recording, site);
    } else {
        uint32_t named = frag_site_frame(recording, id);
        uint32_t place = place_of(recording, site, named - 1);
        name->caller = name_frame(recording, site, place, true);
        name->inner = name_frame(recording, site, innermost_frame(recording, site, place), false);
    }
    if (name->inner == NULL)
        name->inner = frag_copy_text("");
}

static int compare_names(const void *left, const void *right)
{
    const frag_use_name *a = left, *b = right;
    int order = strcmp(a->caller, b->caller);
    return order != 0 ? order : strcmp(a->inner, b->inner);
}

static void free_name(frag_use_name *name)
{
    frag_free(name->caller);
    frag_free(name->inner);
}

/* ---- groups */

bool frag_use_has_stacks(const frag_recording *recording, const frag_trace *trace)
{
    return trace->sites != NULL && recording->site_count > 1;
}

bool frag_use_is_served(const frag_event *event)
{
    return event->op == FRAG_OP_ALLOC && (event->flags & FRAG_EVENT_FAILED) == 0 &&
           event->slot != FRAG_SLOT_NONE;
}

/* Names every site, and makes one group of those that have one name. */
static void group_sites(const frag_recording *recording, frag_use_grouping grouping,
                        frag_use_groups *groups)
{
    uint32_t count = recording->site_count > 0 ? recording->site_count : 1;
    frag_use_name *names = frag_alloc(count, sizeof *names);
    groups->names = names;
    groups->of_site = frag_alloc(count, sizeof *groups->of_site);
    for (uint32_t i = 0; i < count; i++)
        name_site(recording, grouping, i, &names[i]);
    qsort(names, count, sizeof *names, compare_names);
    for (uint32_t i = 0; i < count; i++) {
        bool is_known =
            groups->count > 0 && compare_names(&names[groups->count - 1], &names[i]) == 0;
        groups->of_site[names[i].site] = (uint32_t)groups->count - (is_known ? 1 : 0);
        if (is_known) {
            names[groups->count - 1].has_place |= names[i].has_place;
            free_name(&names[i]);
        } else {
            names[groups->count++] = names[i];
        }
    }
}

static uint64_t *find_sizes(const frag_trace *trace, size_t *count)
{
    uint64_t *sizes = frag_alloc(trace->event_count, sizeof *sizes);
    size_t all = 0;
    for (uint64_t i = 0; i < trace->event_count; i++)
        if (frag_use_is_served(&trace->events[i]))
            sizes[all++] = trace->events[i].bytes;
    qsort(sizes, all, sizeof *sizes, frag_compare_numbers);
    *count = 0;
    for (size_t i = 0; i < all; i++)
        if (*count == 0 || sizes[*count - 1] != sizes[i])
            sizes[(*count)++] = sizes[i];
    return sizes;
}

static void group_sizes(frag_use_groups *groups)
{
    groups->sizes = find_sizes(groups->trace, &groups->count);
    groups->names = frag_alloc(groups->count, sizeof *groups->names);
    groups->of_size = frag_alloc(groups->count, sizeof *groups->of_size);
    for (size_t i = 0; i < groups->count; i++) {
        frag_text name = {0};
        frag_text_add(&name, "blocks of %s (%s byte%s)", FRAG_BYTES(groups->sizes[i]),
                      FRAG_COUNT(groups->sizes[i]), groups->sizes[i] == 1 ? "" : "s");
        groups->names[i] = (frag_use_name){name.bytes, frag_copy_text(""), (uint32_t)i, true};
    }
    qsort(groups->names, groups->count, sizeof *groups->names, compare_names);
    for (size_t i = 0; i < groups->count; i++) {
        groups->of_size[groups->names[i].site] = (uint32_t)i;
        groups->names[i].site = 0;
    }
}

void frag_use_groups_create(const frag_recording *recording, const frag_trace *trace,
                            frag_use_grouping grouping, frag_use_groups *groups)
{
    *groups = (frag_use_groups){.trace = trace};
    if (grouping == FRAG_USES_BY_SIZE)
        group_sizes(groups);
    else
        group_sites(recording, grouping, groups);
}

void frag_use_groups_destroy(frag_use_groups *groups)
{
    for (size_t i = 0; i < groups->count; i++)
        free_name(&groups->names[i]);
    frag_free(groups->names);
    frag_free(groups->of_site);
    frag_free(groups->sizes);
    frag_free(groups->of_size);
    *groups = (frag_use_groups){0};
}

uint32_t frag_use_group(const frag_use_groups *groups, uint64_t event)
{
    const frag_trace *trace = groups->trace;
    if (groups->of_site != NULL)
        return groups->of_site[trace->sites != NULL ? trace->sites[event] : 0];
    const uint64_t *found = bsearch(&trace->events[event].bytes, groups->sizes, groups->count,
                                    sizeof *groups->sizes, frag_compare_numbers);
    return groups->of_size[found - groups->sizes];
}
