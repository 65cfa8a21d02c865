#include "studies/diff/diff_json.h"

#include <inttypes.h>

#include "base/json.h"
#include "base/memory.h"
#include "base/text.h"
#include "sim/trace/site_names.h"

const char *frag_use_grouping_name(frag_use_grouping grouping)
{
    static const char *const names[] = {"site", "stack", "purpose", "size"};
    return names[grouping];
}

/* ---- the two sides */

static void add_run(frag_json *item, const frag_diff_side *side)
{
    const frag_replay_result *replay = &side->run.replay;
    frag_json_text(item, "policy", side->policy);
    if (side->policy == NULL)
        return;
    frag_json_number(item, "peak.allocated_bytes", replay->peak.allocated_bytes);
    frag_json_number(item, "peak.reserved_bytes", replay->peak.reserved_bytes);
    frag_json_number(item, "device_calls", frag_run_memory_calls(&side->run));
    if (replay->oom.has_happened)
        frag_json_number(item, "oom.event", replay->oom.event);
    else
        frag_json_null(item, "oom");
}

static void add_side(frag_json *json, const frag_diff_side *side)
{
    frag_json *item = frag_json_add(json, "sides");
    frag_json_text(item, "name", side->source.recording->name);
    frag_json_text(item, "digest", side->source.trace->digest);
    frag_json_number(item, "device", side->source.trace->device);
    frag_json_number(item, "first_event", side->range.first);
    frag_json_number(item, "end_event", side->range.end);
    frag_json_number(item, "moment_event", side->range.moment);
    frag_json_number(item, "requested_bytes", side->requested_bytes);
    frag_json_number(item, "requests", side->request_count);
    add_run(item, side);
}

static void add_request(frag_json *json, const frag_diff_side *side, uint64_t event)
{
    frag_json *item = frag_json_add(json, "requests.part");
    const frag_trace *trace = side->source.trace;
    frag_json_number(item, "event", event);
    if (event == FRAG_UNLIMITED)
        return;
    frag_json_number(item, "bytes", trace->events[event].bytes);
    frag_json_number(item, "stream", frag_trace_stream_handle(trace, trace->events[event].stream));
    frag_text name = {0};
    uint32_t frame =
        trace->sites != NULL ? frag_site_frame(side->source.recording, trace->sites[event]) : 0;
    if (frame != 0)
        frag_frame_add(side->source.recording, frame - 1, &name);
    frag_json_text(item, "site", name.bytes);
    frag_text_destroy(&name);
}

/* ---- groups */

static void add_use(frag_json *item, const frag_site_use *use)
{
    frag_json_number(item, "live_bytes", use->live_bytes);
    frag_json_number(item, "live_blocks", use->live_count);
    frag_json_number(item, "most_bytes", use->most_bytes);
    frag_json_number(item, "requests", use->request_count);
    frag_json_number(item, "request_bytes", use->request_bytes);
    frag_json_number(item, "freed", use->freed_count);
    if (use->line != 0)
        frag_json_number(item, "line", use->line);
    if (use->freed_count > 0)
        frag_json_ratio(item, "mean_lifetime_events",
                        (double)use->lifetime_total / (double)use->freed_count);
    else
        frag_json_null(item, "mean_lifetime_events");
}

static void add_groups(frag_json *json, const frag_diff *diff)
{
    frag_site_change *pairs = NULL;
    size_t count = frag_site_uses_pair(&diff->sides[0].uses, &diff->sides[1].uses, &pairs);
    frag_json_array(json, "groups");
    frag_site_changes_sort(pairs, count);
    for (size_t i = 0; i < count; i++) {
        frag_json *item = frag_json_add(json, "groups");
        frag_json_text(item, "name", pairs[i].caller);
        if (pairs[i].inner[0] != '\0')
            frag_json_text(item, "inner", pairs[i].inner);
        frag_json_flag(item, "has_place", pairs[i].has_place);
        add_use(frag_json_object(item, "before"), &pairs[i].before);
        add_use(frag_json_object(item, "after"), &pairs[i].after);
    }
    frag_free(pairs);
}

void frag_diff_print_json(FILE *stream, const frag_diff *diff)
{
    frag_json *json = frag_json_create();
    frag_json_number(json, "schema", 1);
    frag_json_text(json, "kind", "diff");
    frag_json_text(json, "by", frag_use_grouping_name(diff->grouping));
    for (size_t i = 0; i < 2; i++)
        add_side(json, &diff->sides[i]);
    frag_json_number(json, "requests.same", diff->same_requests);
    frag_json_flag(json, "requests.are_equal", !diff->has_parting);
    frag_json_array(json, "requests.part");
    for (size_t i = 0; i < 2 && diff->has_parting; i++)
        add_request(json, &diff->sides[i], diff->part_events[i]);
    add_groups(json, diff);
    frag_json_write(json, stream, false);
}

void frag_diff_print_rows(FILE *stream, const frag_diff *diff)
{
    frag_site_change *pairs = NULL;
    size_t count = frag_site_uses_pair(&diff->sides[0].uses, &diff->sides[1].uses, &pairs);
    frag_site_changes_sort(pairs, count);
    for (size_t i = 0; i < count; i++) {
        uint64_t before = pairs[i].before.live_bytes;
        uint64_t after = pairs[i].after.live_bytes;
        if (before == after)
            continue;
        frag_json *json = frag_json_create();
        frag_json_number(json, "schema", 1);
        frag_json_text(json, "kind", "diff-site");
        frag_json_text(json, "site", pairs[i].caller);
        if (pairs[i].inner[0] != '\0')
            frag_json_text(json, "inner", pairs[i].inner);
        frag_json_flag(json, "has_place", pairs[i].has_place);
        frag_json_number(json, "bytes_before", before);
        frag_json_number(json, "bytes_after", after);
        add_use(frag_json_object(json, "before"), &pairs[i].before);
        add_use(frag_json_object(json, "after"), &pairs[i].after);
        frag_json_write(json, stream, false);
    }
    frag_free(pairs);
}

void frag_diff_write_stacks(FILE *stream, const frag_diff *diff)
{
    frag_site_uses uses[2];
    frag_site_change *pairs = NULL;
    for (size_t i = 0; i < 2; i++) {
        const frag_diff_side *side = &diff->sides[i];
        frag_site_uses_collect(side->source.recording, side->source.trace, FRAG_USES_BY_STACK,
                               side->range, &uses[i]);
    }
    size_t count = frag_site_uses_pair(&uses[0], &uses[1], &pairs);
    for (size_t i = 0; i < count; i++)
        if (pairs[i].before.live_bytes > 0 || pairs[i].after.live_bytes > 0)
            fprintf(stream, "%s %" PRIu64 " %" PRIu64 "\n", pairs[i].caller,
                    pairs[i].before.live_bytes, pairs[i].after.live_bytes);
    frag_free(pairs);
    frag_site_uses_destroy(&uses[0]);
    frag_site_uses_destroy(&uses[1]);
}
