/* What a bisection says: on stdout, as the script's output is not shown. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "base/bytes.h"
#include "base/json.h"
#include "base/memory.h"
#include "cli/dryrun/bisect_state.h"
#include "cli/site_table.h"

enum { CHANGES_SHOWN = 20 };

static const char *by_name(frag_bisect_by by)
{
    return by == FRAG_BISECT_BY_RESERVED    ? "reserved"
           : by == FRAG_BISECT_BY_ALLOCATED ? "allocated"
                                            : "requested";
}

void frag_bisect_print_plan(const frag_bisect *bisect, FILE *stream)
{
    for (size_t i = 0; i < bisect->count; i++) {
        const frag_bisect_release *release = &bisect->releases[i];
        fprintf(stream, "%-10s %-10s %s\n", bisect->package, release->name,
                release->is_made                         ? release->environment
                : release->wheel_bytes == FRAG_UNLIMITED ? "to fetch, size unknown"
                                                         : FRAG_BYTES(release->wheel_bytes));
    }
}

/* ---- steps */

static void add_peak(frag_json *json, const frag_level *peak)
{
    frag_json_number(json, "peak.requested_bytes", peak->requested_bytes);
    frag_json_number(json, "peak.allocated_bytes", peak->allocated_bytes);
    frag_json_number(json, "peak.reserved_bytes", peak->reserved_bytes);
}

static void print_step_json(const frag_bisect *bisect, const frag_bisect_release *release)
{
    frag_json *json = frag_json_create();
    bool is_run = release->state == FRAG_BISECT_RUN;
    frag_json_number(json, "schema", 1);
    frag_json_text(json, "kind", "bisect-step");
    frag_json_text(json, "package", bisect->package);
    frag_json_text(json, "release", release->name);
    frag_json_text(json, "environment", release->environment);
    if (is_run)
        add_peak(json, &release->peak);
    else
        frag_json_null(json, "peak");
    frag_json_text(json, "failure", is_run ? NULL : release->failure);
    frag_json_write(json, stdout, false);
}

void frag_bisect_print_step(const frag_bisect *bisect, const frag_bisect_release *release)
{
    if (bisect->is_json)
        print_step_json(bisect, release);
    else if (release->state == FRAG_BISECT_RUN)
        printf("%-10s %-10s peak %s %s bytes (%s)\n", bisect->package, release->name,
               by_name(bisect->by), FRAG_COUNT(frag_bisect_peak(bisect, release)),
               FRAG_BYTES(frag_bisect_peak(bisect, release)));
    else
        printf("%-10s %-10s does not run: %s\n", bisect->package, release->name, release->failure);
    fflush(stdout);
}

/* ---- the end */

/* Releases between the two of which no peak is known. */
static size_t count_between(const frag_bisect_release *before, const frag_bisect_release *found)
{
    return (size_t)(found - before) - 1;
}

static void print_changes(const frag_bisect_release *before, const frag_bisect_release *found)
{
    frag_site_change *changes = NULL;
    size_t count = frag_site_uses_compare(&before->sites, &found->sites, &changes);
    const char *const titles[] = {"requested, live at the peak", before->name, found->name,
                                  "blocks", NULL};
    printf("\n");
    if (count > 0)
        frag_site_table_print(stdout, titles, changes,
                              count < CHANGES_SHOWN ? count : CHANGES_SHOWN);
    else
        printf("every call site holds the same at the peak: what changed is what the allocator "
               "does with the requests\n");
    if (count > CHANGES_SHOWN)
        printf("and %zu more; --format jsonl has all of them\n", count - CHANGES_SHOWN);
    frag_free(changes);
}

static void print_found(const frag_bisect *bisect, const frag_bisect_release *before,
                        const frag_bisect_release *found)
{
    uint64_t was = frag_bisect_peak(bisect, before);
    uint64_t now = frag_bisect_peak(bisect, found);
    size_t between = count_between(before, found);
    printf("\n%s %s is the first release whose peak %s differs: %s bytes, and %s with %s "
           "(%+.3f %%)\n",
           bisect->package, found->name, by_name(bisect->by), FRAG_COUNT(now), FRAG_COUNT(was),
           before->name, was > 0 ? 100.0 * ((double)now - (double)was) / (double)was : INFINITY);
    if (between > 0)
        printf("or one of the %zu between them, which did not run\n", between);
    print_changes(before, found);
}

static void add_changes(frag_json *json, const frag_bisect_release *before,
                        const frag_bisect_release *found)
{
    frag_site_change *changes = NULL;
    size_t count = frag_site_uses_compare(&before->sites, &found->sites, &changes);
    for (size_t i = 0; i < count; i++) {
        if (changes[i].inner == NULL)
            continue;
        frag_json *item = frag_json_add(json, "sites");
        frag_json_text(item, "caller", changes[i].caller);
        frag_json_text(item, "site", changes[i].inner);
        frag_json_number(item, "bytes_before", changes[i].before.live_bytes);
        frag_json_number(item, "bytes_after", changes[i].after.live_bytes);
        frag_json_number(item, "blocks_before", changes[i].before.live_count);
        frag_json_number(item, "blocks_after", changes[i].after.live_count);
    }
    frag_free(changes);
}

static void print_end_json(const frag_bisect *bisect, const frag_bisect_release *before,
                           const frag_bisect_release *found)
{
    frag_json *json = frag_json_create();
    frag_json_number(json, "schema", 1);
    frag_json_text(json, "kind", "bisect");
    frag_json_text(json, "package", bisect->package);
    frag_json_text(json, "by", by_name(bisect->by));
    frag_json_text(json, "found", found != NULL ? found->name : NULL);
    frag_json_text(json, "before", found != NULL ? before->name : NULL);
    frag_json_number(json, "bytes_before", frag_bisect_peak(bisect, before));
    frag_json_number(json, "bytes_after", frag_bisect_peak(bisect, found != NULL ? found : before));
    frag_json_number(json, "runs", bisect->runs);
    frag_json_array(json, "not_run");
    for (const frag_bisect_release *at = before + 1; found != NULL && at < found; at++)
        frag_json_append_text(json, "not_run", at->name);
    frag_json_array(json, "sites");
    if (found != NULL)
        add_changes(json, before, found);
    frag_json_write(json, stdout, false);
}

void frag_bisect_print_end(const frag_bisect *bisect, const frag_bisect_release *before,
                           const frag_bisect_release *found)
{
    if (bisect->is_json)
        print_end_json(bisect, before, found);
    else if (found != NULL)
        print_found(bisect, before, found);
    else
        printf("\nthe peak %s is the same at both ends%s\n", by_name(bisect->by),
               frag_arguments_has(bisect->arguments, "all")
                   ? " and between"
                   : "; --all runs every release between them too");
}
