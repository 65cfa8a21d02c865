#include "studies/tune/tune_json.h"

#include <math.h>

#include "base/json.h"
#include "base/memory.h"
#include "sim/version.h"
#include "studies/tune/tune_front.h"

static void add_point(frag_json *json, const frag_tuned *tuned, const frag_tune_point *point)
{
    frag_text text = {0};
    frag_tune_space_setting(tuned->space, point, &text);
    frag_json_text(json, "setting", text.bytes);
    frag_json_text(json, "memory_fraction", frag_tune_space_fraction(tuned->space, point));
    frag_tune_space_label(tuned->space, point, &text);
    frag_json_text(json, "label", text.bytes);
    frag_json_number(json, "options_changed", point->changed);
    frag_text_destroy(&text);
}

static void add_outcome(frag_json *json, const char *role, const frag_tune_outcome *outcome)
{
    frag_json *item = frag_json_object(json, role);
    frag_json_flag(item, "is_refused", outcome->is_refused);
    frag_json_flag(item, "is_oom", outcome->is_oom);
    frag_json_number(item, "bytes", frag_tune_has_bytes(outcome) ? outcome->bytes : FRAG_UNLIMITED);
}

static void add_traces(frag_json *json, const frag_tuned *tuned)
{
    frag_json_array(json, "traces");
    for (size_t i = 0; i < tuned->subject_count; i++) {
        const frag_tune_subject *subject = &tuned->subjects[i];
        frag_json *item = frag_json_add(json, "traces");
        frag_json_text(item, "name", subject->recording->name);
        frag_json_text(item, "digest", subject->trace->digest);
        frag_json_number(item, "device", subject->trace->device);
        frag_json_flag(item, "is_held_out", subject->is_held_out);
        frag_json_number(item, "peak_requested_bytes", frag_trace_bound_bytes(subject->trace));
        if (tuned->has_bounds) {
            frag_json_number(item, "packing_bytes", subject->packing.bytes);
            frag_json_flag(item, "packing_proved", subject->packing.is_proved);
        } else {
            frag_json_null(item, "packing_bytes");
            frag_json_null(item, "packing_proved");
        }
        add_outcome(item, "default", &subject->outcomes[FRAG_TUNE_DEFAULT]);
        add_outcome(item, "tuned", &subject->outcomes[FRAG_TUNE_BEST]);
        if (tuned->space->has_advised)
            add_outcome(item, "advised", &subject->outcomes[FRAG_TUNE_ADVISED]);
        else
            frag_json_null(item, "advised");
    }
}

static void add_over_packing(frag_json *json, const frag_tuned *tuned, const frag_tune_point *point)
{
    frag_json_ratio(json, "over_packing", tuned->has_bounds ? point->score.over_packing : NAN);
}

static void add_front(frag_json *json, const frag_tuned *tuned)
{
    const frag_tune_score *before = &tuned->found->points[0].score;
    frag_json_array(json, "front");
    for (uint32_t changed = 0; changed <= frag_tune_most_changed(tuned); changed++) {
        const frag_tune_point *point;
        if (!frag_tune_find_step(tuned, changed, &point))
            continue;
        frag_json *item = frag_json_add(json, "front");
        bool is_comparable = before->failed == 0 && point->score.failed == 0 && before->size > 0;
        add_point(item, tuned, point);
        frag_json_number(item, "failed_traces", point->score.failed);
        frag_json_ratio(item, "over_bound", point->score.size);
        add_over_packing(item, tuned, point);
        frag_json_ratio(item, "over_default",
                        is_comparable ? point->score.size / before->size : NAN);
        frag_json_number(item, "device_calls",
                         tuned->goal == FRAG_TUNE_PEAK ? point->score.calls : FRAG_UNLIMITED);
    }
}

static void add_costs(frag_json *json, const frag_tuned *tuned)
{
    const frag_tune_point **points;
    size_t count = frag_tune_front(tuned->found, tuned->has_latency, &points);
    frag_json_array(json, "memory_against_cost");
    for (size_t i = 0; i < count && tuned->goal == FRAG_TUNE_PEAK; i++) {
        frag_json *item = frag_json_add(json, "memory_against_cost");
        add_point(item, tuned, points[i]);
        frag_json_ratio(item, "over_bound", points[i]->score.size);
        add_over_packing(item, tuned, points[i]);
        frag_json_number(item, "device_calls", points[i]->score.calls);
        frag_json_number(item, "modelled_time_ns",
                         tuned->has_latency ? (uint64_t)(points[i]->score.time_ns + 0.5)
                                            : FRAG_UNLIMITED);
    }
    frag_free(points);
}

void frag_tune_print_json(FILE *stream, const frag_tuned *tuned)
{
    frag_json *json = frag_json_create();
    frag_json_text(json, "schema", "fraglab.tune/1");
    frag_json_text(json, "tool.version", frag_version());
    frag_json_text(json, "tool.commit", frag_commit());
    frag_json_text(json, "policy.name", tuned->space->base->ops->name);
    frag_json_text(json, "policy.base", tuned->space->base->text);
    frag_json_text(json, "goal", tuned->goal == FRAG_TUNE_PEAK ? "peak" : "min-capacity");
    frag_json_number(json, "device.capacity_bytes", tuned->capacity_bytes);
    frag_json_number(json, "seed", tuned->seed);
    frag_json_number(json, "settings_tried", tuned->found->count);
    frag_json_flag(json, "is_timed", tuned->is_timed);
    add_point(json, tuned, &tuned->found->points[tuned->found->best]);
    add_traces(json, tuned);
    add_front(json, tuned);
    add_costs(json, tuned);
    frag_json_write(json, stream, false);
}
