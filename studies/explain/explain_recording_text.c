/* The explanation of one device of a recording, for a person. */
#include <inttypes.h>
#include <string.h>

#include "base/bytes.h"
#include "studies/explain/explain_purpose.h"
#include "studies/explain/explain_recording.h"
#include "studies/explain/explain_text.h"
#include "traces/load.h"

static const char *plural(uint64_t count)
{
    return count == 1 ? "" : "s";
}

/* "expandable_segments:True", "best-fit", "the defaults". */
static void name_candidate(const frag_trace_explanation *explanation, size_t index, frag_text *text)
{
    const frag_candidate *candidate = &explanation->candidates[index];
    bool is_recorded = index == 0;
    if (is_recorded)
        frag_text_add(text, "as recorded");
    else if (candidate->setting == NULL)
        frag_text_add(text, "%s%s", candidate->spec.text,
                      candidate->spec.ops != explanation->candidates[0].spec.ops
                          ? " (another allocator)"
                          : "");
    else
        frag_text_add(text, "%s", *candidate->setting != '\0' ? candidate->setting : "defaults");
    if (candidate->fraction != NULL && explanation->fraction == NULL)
        frag_text_add(text, " (fraction %s)", candidate->fraction);
}

static void print_state(FILE *stream, const frag_trace_explanation *explanation)
{
    const frag_amount *figures = explanation->message.figures;
    const frag_decomposition *layout = &explanation->layout;
    const frag_sites *sites = &explanation->sites;
    fprintf(stream, "when       event %s%s\n", FRAG_COUNT(explanation->oom.event),
            explanation->is_reproduced && explanation->is_recorded
                ? ", where the recorded run failed too"
                : "");
    if (explanation->is_fraction_found)
        fprintf(stream,
                "limit      as if set_per_process_memory_fraction(%s) had been called: the least "
                "usual one that explains it\n",
                explanation->fraction);
    fprintf(stream, "device     %10s  %s\n", FRAG_BYTES(explanation->capacity_bytes),
            explanation->is_capacity_given ? "in all" : "that this program could have");
    fprintf(stream, "in use     %10s  by live blocks\n",
            FRAG_BYTES(figures[FRAG_FIGURE_ALLOCATED].bytes));
    fprintf(stream, "idle       %10s  in %" PRIu64 " hole%s of %" PRIu64 " segment%s in use",
            FRAG_BYTES(layout->holes_bytes + layout->cached_bytes), sites->hole_count,
            plural(sites->hole_count), sites->pinned_segments, plural(sites->pinned_segments));
    fprintf(stream, "%s%s\n", sites->hole_count > 0 ? ", the largest " : "",
            sites->hole_count > 0 ? FRAG_BYTES(sites->largest_hole_bytes) : "");
    fprintf(stream, "free       %10s  on the device\n",
            FRAG_BYTES(figures[FRAG_FIGURE_FREE].bytes));
}

static void print_sites(FILE *stream, const frag_trace_explanation *explanation, bool is_pinning)
{
    const frag_sites *sites = &explanation->sites;
    const frag_live_site *items = is_pinning ? sites->pinning : sites->biggest;
    size_t count = is_pinning ? sites->pinning_count : sites->biggest_count;
    if (count == 0)
        return;
    fprintf(stream, "\n%s\n",
            is_pinning ? "what keeps idle memory from being given back (by share of its segments)"
                       : "what holds the memory");
    for (size_t i = 0; i < count; i++) {
        frag_text name = {0};
        frag_site_text(explanation->recording, sites, items[i].key, &name);
        frag_text_make_plain(name.bytes);
        if (is_pinning)
            fprintf(stream, "  %10s held open by %10s  %s\n", FRAG_BYTES(items[i].held_open_bytes),
                    FRAG_BYTES(items[i].live_bytes), name.bytes);
        else
            fprintf(stream, "  %10s in %6s block%s  %s\n", FRAG_BYTES(items[i].live_bytes),
                    FRAG_COUNT(items[i].live_count), plural(items[i].live_count), name.bytes);
        frag_text_destroy(&name);
    }
}

static void print_outcome(FILE *stream, const frag_trace_explanation *explanation,
                          const frag_candidate *candidate)
{
    if (explanation->rest != FRAG_REST_UNKNOWN && candidate->fits)
        fprintf(stream, "fits, %s to spare\n", FRAG_BYTES(candidate->spare_bytes));
    else if (explanation->rest == FRAG_REST_UNKNOWN && candidate->gets_past)
        fprintf(stream, "gets past it, %s to spare\n", FRAG_BYTES(candidate->spare_bytes));
    else
        fprintf(stream, "fails%s at event %s (needs %s)\n", candidate->gets_past ? " later," : "",
                FRAG_COUNT(candidate->oom.event), FRAG_BYTES(candidate->oom.requested_bytes));
}

static const char *candidates_head(frag_rest rest)
{
    switch (rest) {
    case FRAG_REST_HERE:
        return "would these have fitted?";
    case FRAG_REST_GIVEN:
        return "would these have fitted? (to the end of the other recording)";
    case FRAG_REST_UNKNOWN:
        break;
    }
    return "would these have got past it? (what the program would have asked after it is not "
           "recorded)";
}

static void print_candidates(FILE *stream, const frag_trace_explanation *explanation)
{
    size_t width = 0;
    for (int pass = 0; pass < 2; pass++) {
        if (pass == 1)
            fprintf(stream, "\n%s\n", candidates_head(explanation->rest));
        for (size_t i = 0; i < explanation->candidate_count; i++) {
            const frag_candidate *candidate = &explanation->candidates[i];
            frag_text name = {0};
            if (!candidate->is_run)
                continue;
            name_candidate(explanation, i, &name);
            width = name.length > width ? name.length : width;
            if (pass == 1) {
                fprintf(stream, "  %-*s  ", (int)width, name.bytes);
                print_outcome(stream, explanation, candidate);
            }
            frag_text_destroy(&name);
        }
    }
}

static void print_ideals(FILE *stream, const frag_trace_explanation *explanation)
{
    const frag_ideals *ideals = &explanation->ideals;
    uint64_t capacity = ideals->capacity_bytes;
    if (ideals->live_bytes == 0)
        return;
    fprintf(stream, "\nwhat an ideal allocator would need (for comparison: no setting makes "
                    "PyTorch do this)\n");
    fprintf(stream, "  %10s  the live data at its peak: no allocator does with less\n",
            FRAG_BYTES(ideals->live_bytes));
    for (size_t i = 0; i < FRAG_IDEAL_COUNT; i++) {
        const frag_ideal *ideal = &ideals->items[i];
        uint64_t needs = ideal->needs_bytes;
        if (ideal->is_known)
            fprintf(stream, "  %10s  %s, which %s: %s %s\n", FRAG_BYTES(needs), ideal->policy,
                    ideal->means,
                    FRAG_BYTES(needs > capacity ? needs - capacity : capacity - needs),
                    needs > capacity ? "more than there is" : "to spare");
    }
}

static void print_least(FILE *stream, const frag_trace_explanation *explanation)
{
    const frag_capacity_result *least = &explanation->least;
    if (least->is_found && explanation->fraction == NULL)
        fprintf(stream,
                "  a device of %s is the least on which the recorded settings %s: %s more\n",
                FRAG_BYTES(least->capacity_bytes),
                explanation->rest == FRAG_REST_UNKNOWN ? "get past it" : "fit",
                FRAG_BYTES(least->capacity_bytes > explanation->capacity_bytes
                               ? least->capacity_bytes - explanation->capacity_bytes
                               : 0));
    if (!explanation->has_halved)
        return;
    uint64_t count = explanation->sites.biggest_count;
    fprintf(stream, "  if the %" PRIu64 " biggest %s%s above asked for half: ", count,
            explanation->sites.is_by_size ? "size" : "call site", plural(count));
    if (!explanation->halved.gets_past)
        fprintf(stream, "fails at event %s\n", FRAG_COUNT(explanation->halved.oom.event));
    else
        fprintf(stream, "%s, %s to spare\n",
                explanation->rest == FRAG_REST_HERE ? "fits" : "gets past it",
                FRAG_BYTES(explanation->halved.spare_bytes));
}

/* Which line asked, and for what. */
static void print_asked(FILE *stream, const frag_trace_explanation *explanation)
{
    const frag_trace *trace = explanation->trace;
    uint64_t event = explanation->oom.event;
    uint64_t missing = frag_explain_missing_bytes(explanation);
    fprintf(stream, "asked      %10s  in one request",
            FRAG_BYTES(explanation->message.figures[FRAG_FIGURE_REQUESTED].bytes));
    if (!explanation->sites.is_by_size && event < trace->event_count && trace->sites[event] != 0) {
        frag_text name = {0};
        frag_purpose purpose = frag_purpose_of_site(explanation->recording, trace->sites[event]);
        frag_site_text(explanation->recording, &explanation->sites,
                       explanation->sites.frame_of[trace->sites[event]], &name);
        frag_text_make_plain(name.bytes);
        fprintf(stream, ", by %s%s%s", name.bytes, purpose != FRAG_PURPOSE_UNKNOWN ? ", for " : "",
                purpose != FRAG_PURPOSE_UNKNOWN ? frag_purpose_title(purpose) : "");
        frag_text_destroy(&name);
    }
    fprintf(stream, "\n");
    if (missing > 0)
        fprintf(stream, "missing    %10s  to %s with the recorded settings\n", FRAG_BYTES(missing),
                explanation->rest == FRAG_REST_UNKNOWN ? "get past it" : "run to the end");
}

/* How much the recording begins with, and what is missing for that and for all of it. */
static void print_start(FILE *stream, const frag_trace_explanation *explanation)
{
    const frag_explain_start *start = &explanation->start;
    uint64_t missing = frag_explain_missing_bytes(explanation);
    fprintf(stream, "held       %10s  when the recording begins, %s in use\n",
            FRAG_BYTES(start->held_bytes), FRAG_BYTES(start->live_bytes));
    if (start->missing_bytes > 0)
        fprintf(stream, "missing    %10s  for the start alone\n", FRAG_BYTES(start->missing_bytes));
    if (missing > 0)
        fprintf(stream, "missing    %10s  to %s with the recorded settings\n", FRAG_BYTES(missing),
                explanation->rest == FRAG_REST_UNKNOWN ? "get past the failed request"
                                                       : "run to the end");
}

/* What the live memory is for, the most first. */
static void print_purposes(FILE *stream, const frag_trace_explanation *explanation)
{
    uint64_t bytes[FRAG_PURPOSE_COUNT];
    memcpy(bytes, explanation->sites.purposes, sizeof bytes);
    for (;;) {
        size_t most = 0;
        for (size_t i = 1; i < FRAG_PURPOSE_COUNT; i++)
            if (bytes[i] > bytes[most])
                most = i;
        if (bytes[most] == 0)
            return;
        fprintf(stream, "held for   %10s  %s\n", FRAG_BYTES(bytes[most]),
                frag_purpose_title((frag_purpose)most));
        bytes[most] = 0;
    }
}

static void print_recording(FILE *stream, const frag_trace_explanation *explanation)
{
    char recorded_by[64];
    const char *by = frag_recorded_by(explanation->recording, recorded_by);
    const char *conf = frag_recording_get(explanation->recording, "torch.conf");
    fprintf(stream, "recording  %s%s%s, device %" PRIu32, explanation->recording->name,
            by != NULL ? ", " : "", by != NULL ? by : "", explanation->trace->device);
    if (conf == NULL)
        fprintf(stream, ", taken as PyTorch's, default settings\n");
    else
        fprintf(stream, ", %s%s\n", *conf != '\0' ? "with " : "default settings", conf);
}

/* The verdict and what to do come first; what they rest on follows. */
void frag_explain_print_trace(FILE *stream, const frag_trace_explanation *explanation)
{
    frag_explain_print_verdict(stream, &explanation->diagnosis, true);
    if (!explanation->oom.has_happened) {
        print_recording(stream, explanation);
        return;
    }
    bool is_start = explanation->start.is_too_large;
    if (is_start) {
        print_start(stream, explanation);
    } else {
        print_asked(stream, explanation);
        print_purposes(stream, explanation);
    }
    frag_explain_print_steps(stream, &explanation->advice);
    fprintf(stream, "\n");
    print_recording(stream, explanation);
    if (is_start) {
        fprintf(stream, "when       at the start, before any recorded request\n");
        fprintf(stream, "device     %10s  in all\n", FRAG_BYTES(explanation->capacity_bytes));
    } else {
        print_state(stream, explanation);
        print_sites(stream, explanation, false);
        print_sites(stream, explanation, true);
    }
    print_candidates(stream, explanation);
    print_least(stream, explanation);
    print_ideals(stream, explanation);
}
