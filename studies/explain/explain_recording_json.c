/* The explanation of one device of a recording, as one JSON object: the fields of docs/explain.md,
 * "Fields". */
#include "base/json.h"
#include "studies/explain/explain_json.h"
#include "studies/explain/explain_purpose.h"
#include "studies/explain/explain_recording.h"

static void add_sites(frag_json *json, const char *path, const frag_trace_explanation *explanation,
                      const frag_live_site *items, size_t count)
{
    frag_json_array(json, path);
    for (size_t i = 0; i < count; i++) {
        frag_json *item = frag_json_add(json, path);
        frag_text name = {0};
        frag_site_text(explanation->recording, &explanation->sites, items[i].key, &name);
        frag_json_text(item, "name", name.bytes);
        frag_json_number(item, "live_bytes", items[i].live_bytes);
        frag_json_number(item, "live_blocks", items[i].live_count);
        frag_json_number(item, "held_open_bytes", items[i].held_open_bytes);
        frag_text_destroy(&name);
    }
}

/* rest: how far the candidate was run. */
static void add_outcome(frag_json *json, frag_rest rest, const frag_candidate *candidate)
{
    frag_json_flag(json, "gets_past", candidate->gets_past);
    if (rest != FRAG_REST_UNKNOWN || !candidate->gets_past)
        frag_json_flag(json, "fits", candidate->fits);
    else
        frag_json_null(json, "fits");
    frag_json_number(json, "peak_reserved_bytes", candidate->peak_reserved_bytes);
    frag_json_number(json, "spare_bytes",
                     candidate->oom.has_happened ? FRAG_UNLIMITED : candidate->spare_bytes);
    if (candidate->oom.has_happened) {
        frag_json_number(json, "oom.event", candidate->oom.event);
        frag_json_number(json, "oom.requested_bytes", candidate->oom.requested_bytes);
    } else {
        frag_json_null(json, "oom");
    }
}

static void add_candidates(frag_json *json, const frag_trace_explanation *explanation)
{
    frag_json_array(json, "candidates");
    for (size_t i = 0; i < explanation->candidate_count; i++) {
        const frag_candidate *candidate = &explanation->candidates[i];
        if (!candidate->is_run)
            continue;
        frag_json *item = frag_json_add(json, "candidates");
        const char *recorded = frag_recording_get(explanation->recording, "torch.conf");
        frag_json_text(item, "policy", candidate->spec.ops->name);
        frag_json_text(item, "label", candidate->spec.text);
        frag_json_text(item, "setting",
                       i == 0 ? recorded != NULL ? recorded : "" : candidate->setting);
        frag_json_text(item, "memory_fraction",
                       explanation->fraction != NULL ? explanation->fraction : candidate->fraction);
        frag_json_flag(item, "is_recorded", i == 0);
        add_outcome(item, explanation->rest, candidate);
    }
}

static void add_ideals(frag_json *json, const frag_ideals *ideals)
{
    frag_json_array(json, "ideals");
    for (size_t i = 0; i < FRAG_IDEAL_COUNT; i++) {
        const frag_ideal *ideal = &ideals->items[i];
        if (ideal->is_known) {
            frag_json *item = frag_json_add(json, "ideals");
            frag_json_text(item, "policy", ideal->policy);
            frag_json_number(item, "needs_bytes", ideal->needs_bytes);
            frag_json_flag(item, "fits", ideal->fits);
        }
    }
    frag_json_number(json, "live_peak_bytes",
                     ideals->live_bytes != 0 ? ideals->live_bytes : FRAG_UNLIMITED);
}

static void add_purposes(frag_json *json, const frag_trace_explanation *explanation)
{
    const uint64_t *bytes = explanation->sites.purposes;
    frag_json_array(json, "purposes");
    for (frag_purpose i = 0; i < FRAG_PURPOSE_COUNT; i++) {
        if (bytes[i] == 0)
            continue;
        frag_json *item = frag_json_add(json, "purposes");
        frag_json_text(item, "purpose", frag_purpose_name(i));
        frag_json_number(item, "live_bytes", bytes[i]);
    }
    uint64_t missing = frag_explain_missing_bytes(explanation);
    frag_json_number(json, "figures.missing_bytes", missing > 0 ? missing : FRAG_UNLIMITED);
}

static void add_state(frag_json *json, const frag_trace_explanation *explanation)
{
    const frag_sites *sites = &explanation->sites;
    frag_text path = {0};
    for (frag_figure i = 0; i < FRAG_FIGURE_COUNT; i++) {
        const frag_amount *figure = &explanation->message.figures[i];
        frag_text_clear(&path);
        frag_text_add(&path, "figures.%s", frag_figure_field(i));
        frag_json_number(json, path.bytes, figure->is_known ? figure->bytes : FRAG_UNLIMITED);
    }
    frag_text_destroy(&path);
    frag_json_number(json, "oom.event", explanation->oom.event);
    frag_json_number(json, "oom.requested_bytes", explanation->oom.requested_bytes);
    frag_json_flag(json, "oom.is_recorded", explanation->is_recorded);
    frag_json_flag(json, "oom.is_reproduced", explanation->is_reproduced);
    frag_json_number(json, "holes.count", sites->hole_count);
    frag_json_number(json, "holes.largest_bytes", sites->largest_hole_bytes);
    frag_json_number(json, "holes.bytes", explanation->layout.holes_bytes);
    frag_json_number(json, "holes.segments", sites->pinned_segments);
    frag_json_flag(json, "sites.is_by_size", sites->is_by_size);
    add_sites(json, "sites.biggest", explanation, sites->biggest, sites->biggest_count);
    add_sites(json, "sites.pinning", explanation, sites->pinning, sites->pinning_count);
    add_purposes(json, explanation);
}

void frag_explain_print_trace_json(FILE *stream, const frag_trace_explanation *explanation)
{
    static const char *const rests[] = {[FRAG_REST_UNKNOWN] = "unknown",
                                        [FRAG_REST_HERE] = "recorded",
                                        [FRAG_REST_GIVEN] = "given"};
    frag_json *json = frag_explain_begin_json("recording", &explanation->diagnosis);
    frag_json_text(json, "source.name", explanation->recording->name);
    frag_json_number(json, "source.device", explanation->trace->device);
    frag_json_text(json, "source.digest", explanation->trace->digest);
    frag_json_number(json, "device.capacity_bytes", explanation->capacity_bytes);
    frag_json_flag(json, "device.is_given", explanation->is_capacity_given);
    frag_json_text(json, "device.memory_fraction", explanation->fraction);
    frag_json_text(json, "rest", rests[explanation->rest]);
    if (explanation->start.is_too_large) {
        const frag_explain_start *start = &explanation->start;
        frag_json_number(json, "start.held_bytes", start->held_bytes);
        frag_json_number(json, "start.live_bytes", start->live_bytes);
        frag_json_number(json, "start.missing_bytes",
                         start->missing_bytes > 0 ? start->missing_bytes : FRAG_UNLIMITED);
    } else {
        frag_json_null(json, "start");
    }
    if (explanation->oom.has_happened) {
        add_state(json, explanation);
        add_candidates(json, explanation);
        add_ideals(json, &explanation->ideals);
        frag_json_number(json, "least_capacity_bytes",
                         explanation->least.is_found ? explanation->least.capacity_bytes
                                                     : FRAG_UNLIMITED);
        if (explanation->has_halved) {
            frag_json_array(json, "halved");
            frag_json *item = frag_json_add(json, "halved");
            /* What a smaller program would have asked later, another recording does not say. */
            add_outcome(item,
                        explanation->rest == FRAG_REST_HERE ? FRAG_REST_HERE : FRAG_REST_UNKNOWN,
                        &explanation->halved);
        }
    } else {
        frag_json_null(json, "oom");
        add_candidates(json, explanation); /* the recorded settings, which need no other */
    }
    frag_explain_add_advice(json, &explanation->advice);
    frag_json_write(json, stream, false);
}
