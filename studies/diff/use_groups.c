#include "studies/diff/use_groups.h"

#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/bytes.h"
#include "base/memory.h"
#include "base/text.h"
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

/* The name of a frame; the caller frees it. */
static char *name_frame(const frag_recording *recording, uint32_t index)
{
    const frag_frame *frame = &recording->frames[index];
    frag_text text = {0};
    const char *file = file_of(frag_strings_get(&recording->strings, frame->file));
    frag_text_add(&text, "%s", frag_strings_get(&recording->strings, frame->name));
    if (file[0] != '\0')
        frag_text_add(&text, " (%s)", file);
    frag_text_make_plain(text.bytes);
    return text.bytes;
}

/* Frames are parted by semicolons, as in collapsed stacks; one in a name becomes a comma. */
static char *name_stack(const frag_recording *recording, const frag_site *site)
{
    frag_text text = {0};
    for (uint32_t i = site->count; i-- > 0;) {
        char *name = name_frame(recording, recording->site_frames[site->first + i]);
        for (char *at = name; *at != '\0'; at++)
            *at = *at == ';' ? ',' : *at;
        frag_text_add(&text, "%s%s", text.length > 0 ? ";" : "", name);
        frag_free(name);
    }
    return text.bytes;
}

/* Without what a dry run wraps around functions of PyTorch. */
static uint32_t innermost_frame(const frag_recording *recording, const frag_site *site)
{
    for (uint32_t i = 0; i < site->count; i++) {
        uint32_t frame = recording->site_frames[site->first + i];
        const char *file = frag_strings_get(&recording->strings, recording->frames[frame].file);
        if (strstr(file, "/fraglab_dryrun/") == NULL)
            return frame;
    }
    return recording->site_frames[site->first];
}

static void name_site(const frag_recording *recording, frag_use_grouping grouping, uint32_t id,
                      frag_use_name *name)
{
    const frag_site *site = id < recording->site_count ? &recording->sites[id] : NULL;
    bool is_by_site = grouping == FRAG_USES_BY_SITE;
    *name = (frag_use_name){.site = id};
    if (grouping == FRAG_USES_BY_PURPOSE) {
        name->caller = frag_copy_text(frag_purpose_title(frag_purpose_of_site(recording, id)));
    } else if (site == NULL || site->count == 0) {
        name->caller = frag_copy_text(no_stack);
        name->inner = is_by_site ? frag_copy_text(no_stack) : NULL;
    } else if (grouping == FRAG_USES_BY_STACK) {
        name->caller = name_stack(recording, site);
    } else {
        uint32_t named = frag_site_frame(recording, id);
        name->caller = named != 0 ? name_frame(recording, named - 1) : frag_copy_text(no_stack);
        name->inner = name_frame(recording, innermost_frame(recording, site));
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
        if (is_known)
            free_name(&names[i]);
        else
            names[groups->count++] = names[i];
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
        frag_text_add(&name, "blocks of %s (%s bytes)", FRAG_BYTES(groups->sizes[i]),
                      FRAG_COUNT(groups->sizes[i]));
        groups->names[i] = (frag_use_name){name.bytes, frag_copy_text(""), (uint32_t)i};
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
