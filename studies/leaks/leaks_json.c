#include "studies/leaks/leaks_json.h"

#include "base/json.h"

static void add_name(frag_json *item, const char *field, const frag_use_name *name)
{
    frag_json_text(item, field, name != NULL ? name->caller : NULL);
    if (name != NULL && name->inner[0] != '\0')
        frag_json_text(item, "inner", name->inner);
}

static void describe_leak(frag_json *item, const char *field, const frag_leak *leak)
{
    frag_json_text(item, "kind", frag_leak_kind_name(leak->kind));
    add_name(item, field, leak->name);
    frag_json_number(item, "first_step", leak->first_step + 1);
    frag_json_number(item, "start_bytes", leak->start_bytes);
    frag_json_number(item, "end_bytes", leak->end_bytes);
    frag_json_ratio(item, "bytes_per_step", leak->bytes_per_step);
    frag_json_ratio(item, "blocks_per_step", leak->blocks_per_step);
    frag_json_ratio(item, "rising_ratio", leak->rising_ratio);
    frag_json_text(item, "confidence", leak->is_sure ? "high" : "medium");
}

static void add_leak(frag_json *json, const frag_leak *leak)
{
    frag_json *item = frag_json_add(json, "leaks");
    describe_leak(item, "name", leak);
}

static void add_lookalike(frag_json *json, const frag_leak_lookalike *lookalike)
{
    frag_json *item = frag_json_add(json, "no_leaks");
    frag_json_text(item, "kind", lookalike->levels_off ? "levels-off" : "once");
    add_name(item, "name", lookalike->name);
    frag_json_number(item, "step", lookalike->step + 1);
    frag_json_number(item, "bytes", lookalike->bytes);
}

void frag_leaks_print_json(FILE *stream, const frag_recording *recording, const frag_trace *trace,
                           const frag_leaks *leaks)
{
    static const char *const found_by[] = {"marks", "requests", "parts"};
    frag_json *json = frag_json_create();
    frag_json_number(json, "schema", 1);
    frag_json_text(json, "kind", "leaks");
    frag_json_text(json, "name", recording->name);
    frag_json_text(json, "digest", trace->digest);
    frag_json_number(json, "device", trace->device);
    frag_json_number(json, "steps.count", leaks->steps.count);
    frag_json_text(json, "steps.by", found_by[leaks->steps.by]);
    frag_json_text(json, "steps.name", leaks->steps.name);
    frag_json_text(json, "by", leaks->is_by_size ? "size" : "site");
    frag_json_array(json, "leaks");
    for (size_t i = 0; i < leaks->count; i++)
        add_leak(json, &leaks->leaks[i]);
    frag_json_array(json, "no_leaks");
    for (size_t i = 0; i < leaks->lookalike_count; i++)
        add_lookalike(json, &leaks->lookalikes[i]);
    frag_json_number(json, "peak_reserved_bytes", leaks->peak_reserved_bytes);
    if (leaks->has_forecast) {
        const frag_leak_forecast *forecast = &leaks->forecast;
        frag_json_number(json, "forecast.oom_step", forecast->oom_step);
        frag_json_flag(json, "forecast.is_recorded", forecast->is_recorded);
        frag_json_flag(json, "forecast.is_rough", forecast->is_rough);
        frag_json_number(json, "forecast.looked_steps", forecast->looked_steps);
    } else {
        frag_json_null(json, "forecast");
    }
    frag_json_write(json, stream, false);
}

void frag_leaks_print_rows(FILE *stream, const frag_leaks *leaks)
{
    for (size_t i = 0; i < leaks->count; i++) {
        frag_json *json = frag_json_create();
        frag_json_number(json, "schema", 1);
        describe_leak(json, "site", &leaks->leaks[i]);
        frag_json_write(json, stream, false);
    }
}
