/* A plan as one JSON object. */
#include <math.h>

#include "base/json.h"
#include "sim/version.h"
#include "studies/plan/fix_offload.h"
#include "studies/plan/memory_plan.h"
#include "workload/description/field_values.h"

/* "cheapest.fits" of "cheapest." and "fits": good until the next call with the same text. */
static const char *join(frag_text *text, const char *object, const char *name)
{
    frag_text_clear(text);
    frag_text_add(text, "%s%s", object, name);
    return text->bytes;
}

static void add_bytes(frag_json *json, const char *object, const char *name, uint64_t bytes)
{
    frag_text path = {0};
    frag_text_add(&path, "%s%s_bytes", object, name);
    frag_json_number(json, path.bytes, bytes);
    frag_text_destroy(&path);
}

/* object: "", or a path with a dot behind it. */
static void add_needs(frag_json *json, const char *object, const frag_memory_plan *plan,
                      const frag_plan_trial *trial)
{
    const frag_level *peak = &trial->result.peak;
    frag_text path = {0};
    frag_json_signed(json, join(&path, object, "margin_bytes"), frag_plan_margin(plan, trial));
    add_bytes(json, object, "needed", trial->result.needed_bytes);
    add_bytes(json, object, "peak.requested", peak->requested_bytes);
    add_bytes(json, object, "peak.allocated", peak->allocated_bytes);
    add_bytes(json, object, "peak.reserved", peak->reserved_bytes);
    frag_text_destroy(&path);
}

static void add_fix_names(frag_json *json, size_t index, const frag_plan_trial *trial)
{
    frag_text text = {0};
    const frag_fix *fix = &frag_fixes[index];
    frag_fix_describe(fix, &trial->setting, &text);
    frag_json_text(json, "fix", fix->name);
    frag_json_text(json, "setting", text.bytes);
    frag_json_text(json, "price", frag_fix_price_name(fix->price));
    frag_text_destroy(&text);
}

static void add_saving(frag_json *json, const char *name, uint64_t before, uint64_t after)
{
    frag_json_entry(json, "saves", name, (int64_t)before - (int64_t)after);
}

static void add_fixes(frag_json *json, const frag_memory_plan *plan)
{
    const frag_level *before = &plan->as_is.result.peak;
    frag_json_array(json, "fixes");
    for (size_t i = 0; i < plan->fix_count; i++) {
        const frag_plan_fix *fix = &plan->fixes[i];
        const frag_level *after = &fix->trial.result.peak;
        frag_json *item = frag_json_add(json, "fixes");
        add_fix_names(item, fix->fix, &fix->trial);
        uint64_t moved = frag_fix_moved_bytes(frag_fixes[fix->fix].moves,
                                              &plan->base.setting.workload, &plan->parts);
        frag_json_number(item, "transfer_estimate_bytes", moved > 0 ? moved : FRAG_UNLIMITED);
        frag_json_flag(item, "fits", fix->trial.fits);
        frag_json_flag(item, "is_sure", frag_plan_fix_doubt(plan, &fix->trial) == NULL);
        add_needs(item, "", plan, &fix->trial);
        frag_json_object(item, "saves");
        add_saving(item, "allocated_bytes", before->allocated_bytes, after->allocated_bytes);
        add_saving(item, "reserved_bytes", before->reserved_bytes, after->reserved_bytes);
        add_saving(item, "needed_bytes", plan->as_is.result.needed_bytes,
                   fix->trial.result.needed_bytes);
    }
}

static void add_steps(frag_json *json, const frag_memory_plan *plan)
{
    frag_json_array(json, "steps");
    for (size_t i = 0; i < plan->answer.step_count; i++) {
        frag_json *item = frag_json_add(json, "steps");
        add_fix_names(item, plan->answer.steps[i].fix, &plan->steps[i]);
        frag_json_flag(item, "fits", plan->steps[i].fits);
        add_needs(item, "", plan, &plan->steps[i]);
    }
}

static void add_lines(frag_json *json, const frag_memory_plan *plan, const frag_fix *fix)
{
    for (uint32_t place = 0; place < FRAG_FIX_PLACE_COUNT; place++) {
        frag_text text = {0};
        frag_fix_write_line(fix, &plan->base, &plan->fixed.setting, (frag_fix_place)place, &text);
        if (text.length > 0) {
            frag_json *item = frag_json_add(json, "cheapest.lines");
            frag_json_text(item, "fix", fix->name);
            frag_json_text(item, "place", frag_fix_place_name((frag_fix_place)place));
            frag_json_text(item, "text", text.bytes);
        }
        frag_text_destroy(&text);
    }
}

/* object: "", or what it is in. */
static void add_verdict(frag_json *json, const char *object, const frag_memory_plan *plan,
                        const frag_plan_trial *trial, const frag_plan_verdict *verdict)
{
    frag_text path = {0};
    if (verdict->fits == FRAG_FITS_UNKNOWN)
        frag_json_null(json, join(&path, object, "fits"));
    else
        frag_json_flag(json, join(&path, object, "fits"), verdict->fits == FRAG_FITS_YES);
    frag_json_flag(json, join(&path, object, "is_sure"), verdict->is_sure);
    frag_json_text(json, join(&path, object, "doubt"), frag_plan_doubt(plan, trial, verdict));
    frag_json_number(json, join(&path, object, "draws"), verdict->draws);
    frag_json_number(json, join(&path, object, "draws_served"), verdict->draws_served);
    frag_text_destroy(&path);
}

static void add_combination(frag_json *json, const frag_memory_plan *plan)
{
    add_verdict(json, "cheapest.", plan, &plan->fixed, &plan->fixed_verdict);
    add_needs(json, "cheapest.", plan, &plan->fixed);
    frag_json_array(json, "cheapest.fixes");
    frag_json_array(json, "cheapest.lines");
    for (size_t i = 0; i < frag_fix_count(); i++) {
        if (plan->answer.choice.levels[i] == 0)
            continue;
        frag_json *item = frag_json_add(json, "cheapest.fixes");
        add_fix_names(item, i, &plan->fixed);
        add_lines(json, plan, &frag_fixes[i]);
    }
}

static bool has_tokens(const frag_memory_plan *plan)
{
    return frag_workload_has_tokens(&plan->base.setting.workload);
}

static void add_largest(frag_json *json, const char *name, const frag_memory_plan *plan,
                        const frag_plan_largest *largest)
{
    frag_text path = {0};
    frag_text_add(&path, "largest.%s.batch", name);
    frag_json_number(json, path.bytes, largest->batch);
    frag_text_clear(&path);
    frag_text_add(&path, "largest.%s.tokens", name);
    frag_json_number(json, path.bytes, has_tokens(plan) ? largest->tokens : FRAG_UNLIMITED);
    frag_text_clear(&path);
    frag_text_add(&path, "largest.%s.is_batch_limited", name);
    frag_json_flag(json, path.bytes, largest->is_batch_limited);
    frag_text_clear(&path);
    frag_text_add(&path, "largest.%s.is_tokens_limited", name);
    frag_json_flag(json, path.bytes, largest->is_tokens_limited);
    frag_text_destroy(&path);
}

static void add_parts(frag_json *json, const frag_memory_plan *plan)
{
    for (uint32_t kind = 0; kind < FRAG_REQUEST_KIND_COUNT; kind++)
        add_bytes(json, "at_peak.", frag_fit_part_name(kind), plan->parts.bytes[kind]);
    add_bytes(json, "at_peak.", "rounding", plan->parts.rounding_bytes);
    add_bytes(json, "at_peak.", "caching", plan->parts.caching_bytes);
    add_bytes(json, "at_peak.", "context", plan->gpu.memory.context_bytes);
}

/* A knob of names, as the run has it. */
static void add_choice(frag_json *json, const char *key, uint64_t value)
{
    frag_text path = {0};
    frag_text name = {0};
    const frag_field *knob = frag_field_find(frag_knobs, key);
    frag_json_text(json, join(&path, "run.", key), frag_choices_name(knob->choices, value, &name));
    frag_text_destroy(&name);
    frag_text_destroy(&path);
}

static void add_question(frag_json *json, const frag_memory_plan *plan)
{
    const frag_workload *workload = &plan->base.setting.workload;
    frag_json_text(json, "model.name", plan->name);
    frag_json_text(json, "model.family", frag_families[workload->network.family].name);
    frag_json_number(json, "run.batch", workload->batch);
    frag_json_number(json, "run.longest_tokens",
                     has_tokens(plan) ? frag_fix_longest(workload) : FRAG_UNLIMITED);
    frag_json_number(json, "run.image",
                     workload->network.image > 0 ? workload->network.image : FRAG_UNLIMITED);
    frag_json_number(json, "run.steps", workload->steps);
    frag_json_number(json, "run.accumulate", workload->accumulate);
    add_choice(json, "task", workload->task);
    add_choice(json, "precision", workload->precision);
    add_choice(json, "head", workload->head);
    frag_json_number(json, "run.labels",
                     workload->head != FRAG_HEAD_LM ? workload->labels : FRAG_UNLIMITED);
    add_choice(json, "parallel", workload->parallel);
    frag_json_number(json, "run.devices",
                     workload->parallel != FRAG_PARALLEL_NONE ? workload->devices : 1);
    frag_json_text(json, "run.conf", plan->base.conf);
    frag_json_text(json, "gpu.name", plan->gpu.card.name);
    frag_json_text(json, "gpu.origin", frag_origin_name(plan->gpu.card.origin));
    frag_json_number(json, "gpu.total_bytes", plan->gpu.memory.capacity_bytes);
    frag_json_number(json, "gpu.context_bytes", plan->gpu.memory.context_bytes);
    frag_json_number(json, "gpu.usable_bytes", plan->usable_bytes);
    frag_json_text(json, "torch", FRAG_PLAN_TORCH);
}

static void add_answer(frag_json *json, const frag_memory_plan *plan)
{
    add_verdict(json, "", plan, &plan->as_is, &plan->verdict);
    frag_json_number(json, "device", plan->as_is.result.rank);
    add_needs(json, "", plan, &plan->as_is);
    add_parts(json, plan);
}

void frag_memory_plan_print_json(const frag_memory_plan *plan, FILE *stream)
{
    const frag_workload *workload = &plan->base.setting.workload;
    frag_json *json = frag_json_create();
    frag_json_text(json, "schema", "fraglab.plan/1");
    frag_json_text(json, "tool.version", frag_version());
    frag_json_text(json, "tool.commit", frag_commit());
    add_question(json, plan);
    add_answer(json, plan);
    add_fixes(json, plan);
    frag_json_flag(json, "is_offload_weights_left_out", frag_fix_is_host_left_out(&plan->base));
    add_steps(json, plan);
    add_combination(json, plan);
    add_largest(json, "as_is", plan, &plan->largest);
    if (plan->has_largest_fixed)
        add_largest(json, "fixed", plan, &plan->largest_fixed);
    else
        frag_json_null(json, "largest.fixed");
    frag_json_ratio(json, "recomputing_estimate_ratio",
                    workload->task == FRAG_TASK_TRAIN ? frag_fix_recomputing_ratio(workload) : NAN);
    frag_json_write(json, stream, false);
}
