/* One trace and policy on the simulated device and on a card: a row of its own, with a schema of
 * its own, for those who read JSON Lines. */
#include <string.h>

#include "base/bytes.h"
#include "base/json.h"
#include "sim/rows/result.h"
#include "sim/rows/row_fields.h"

static void add_pair(frag_json *json, const char *group, const char *unit, uint64_t sim,
                     uint64_t gpu)
{
    char name[32];
    snprintf(name, sizeof name, "sim%s", unit);
    frag_json_entry(json, group, name, (int64_t)sim);
    snprintf(name, sizeof name, "cuda%s", unit);
    frag_json_entry(json, group, name, (int64_t)gpu);
    snprintf(name, sizeof name, "difference%s", unit);
    frag_json_entry(json, group, name, (int64_t)(gpu - sim));
}

static void add_event(frag_json *json, const char *path, const frag_oom *oom)
{
    frag_json_number(json, path, oom->has_happened ? oom->event : FRAG_UNLIMITED);
}

static bool is_same(const frag_run_result *sim, const frag_run_result *gpu)
{
    const frag_oom *a = &sim->replay.oom;
    const frag_oom *b = &gpu->replay.oom;
    return sim->replay.peak.reserved_bytes == gpu->replay.peak.reserved_bytes &&
           memcmp(sim->calls, gpu->calls, sizeof sim->calls) == 0 &&
           memcmp(sim->failed_calls, gpu->failed_calls, sizeof sim->failed_calls) == 0 &&
           a->has_happened == b->has_happened && (!a->has_happened || a->event == b->event);
}

bool frag_result_is_comparison(const frag_json *row)
{
    const char *schema = NULL;
    return frag_json_find_text(row, "schema", &schema) &&
           strcmp(schema, FRAG_SCHEMA_COMPARISON) == 0;
}

void frag_result_write_comparison(frag_result_format format, FILE *stream, const frag_row *sim,
                                  const frag_row *gpu)
{
    if (format != FRAG_RESULT_JSONL)
        return;
    frag_json *json = frag_json_create();
    frag_json_text(json, "schema", FRAG_SCHEMA_COMPARISON);
    frag_json_text(json, "trace.name", sim->trace_name);
    frag_json_text(json, "trace.digest", sim->trace->digest);
    frag_json_number(json, "trace.device", sim->trace->device);
    frag_json_text(json, "policy.name", sim->ops->name);
    frag_json_text(json, "policy.label", sim->label);
    frag_json_text(json, "card.name", gpu->gpu->facts.name);
    frag_json_flag(json, "is_same", is_same(sim->result, gpu->result));
    add_pair(json, "peak_reserved", "_bytes", sim->result->replay.peak.reserved_bytes,
             gpu->result->replay.peak.reserved_bytes);
    add_pair(json, "device_calls", "", frag_run_memory_calls(sim->result),
             frag_run_memory_calls(gpu->result));
    add_event(json, "oom.sim_event", &sim->result->replay.oom);
    add_event(json, "oom.cuda_event", &gpu->result->replay.oom);
    frag_row_write(json, stream);
}
