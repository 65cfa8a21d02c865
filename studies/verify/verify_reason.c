#include "studies/verify/verify_reason.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "allocators/pytorch/pytorch_options.h"
#include "base/bytes.h"
#include "sim/policy_engine.h"
#include "studies/verify/verify_evidence.h"
#include "studies/verify/verify_rounding.h"

/* From PyTorch 2.12 on, entries name their private pool. */
static bool names_pools(const frag_recording *recording)
{
    const char *least = frag_recording_get(recording, "torch.version_min");
    return least != NULL && strncmp(least, "2.", 2) == 0 && strtoul(least + 2, NULL, 10) >= 12;
}

/* Was an option given another value than its default? The limit is no setting of the library. */
static bool has_settings(const frag_policy_spec *spec)
{
    for (uint32_t i = 0; i < spec->value_count; i++) {
        const frag_option *option = &spec->ops->options[i];
        if (spec->values[i].is_given && strcmp(option->key, "version") != 0 &&
            strcmp(option->key, "per_process_memory_fraction") != 0 &&
            strcmp(spec->values[i].text, option->default_text) != 0)
            return true;
    }
    return false;
}

static bool has_guessed_sizes(const frag_trace *trace)
{
    const uint8_t both = FRAG_EVENT_INITIAL | FRAG_EVENT_INFERRED;
    for (uint64_t i = 0; i < trace->event_count; i++)
        if (trace->events[i].op == FRAG_OP_ALLOC && (trace->events[i].flags & both) == both)
            return true;
    return false;
}

/* What most often explains a difference, from what is known of the recording. */
static const char *likely_reason(const frag_recording *recording, const frag_trace *trace,
                                 const frag_verify_result *result, const frag_policy_spec *spec)
{
    const char *conf = frag_recording_get(recording, "torch.conf");
    if (frag_recording_get(recording, "torch.skipped_actions") != NULL)
        return "the recording leaves out kinds of entries (torch.skipped_actions), and when they "
               "happened is a guess";
    bool are_equal = result->first.room_recorded_bytes > 0 &&
                     result->first.room_recorded_bytes == result->first.room_simulated_bytes;
    if (frag_policy_engine_of(spec->ops)->prefer != NULL && are_equal)
        return "of equal free blocks the library takes any; --against golden follows its choice";
    if (!frag_pytorch_is_set_by(spec->ops))
        return "the recording was made by another allocator, or by this one with other options";
    if (conf == NULL)
        return "the recording does not say with which settings it was made, and none that were "
               "tried do the same; name them behind pytorch:";
    if (strstr(conf, "garbage_collection") != NULL &&
        strstr(spec->text, "per_process_memory_fraction") == NULL)
        return "garbage collection depends on a memory limit, which a recording does not hold; add "
               "per_process_memory_fraction=F and --capacity";
    if (!spec->wants_recorded && (strlen(conf) > 0 || has_settings(spec)))
        return "the recording was made with other settings; try pytorch:recorded";
    if (result->initial != FRAG_INITIAL_NONE && has_guessed_sizes(trace))
        return "sizes of blocks from before the history are guesses (trace info counts them), and "
               "what lies free beside them is too";
    if (are_equal)
        return "another version: which of two equal free blocks is taken changed with PyTorch 2.12 "
               "and 2.13";
    if (result->initial != FRAG_INITIAL_NONE)
        return "the history begins late, and the order in which its first blocks came is not known";
    if (trace->pool_count == 1 && !names_pools(recording))
        return "private pools that were gone before the dump have no names in recordings before "
               "PyTorch 2.12, and not all can be inferred";
    return "other settings (a recording holds those at its end), another version or a memory limit";
}

/* ---- what the recording shows */

static bool add_switch(frag_text *out, const frag_trace *trace)
{
    bool is_on = false;
    uint64_t event = frag_evidence_switch(trace, &is_on);
    if (event == 0 || trace->stats.op_counts[FRAG_OP_CONFIG] > 0)
        return false;
    frag_text_add(out,
                  "expandable_segments was switched %s while the program ran, at event %s or "
                  "before, which a recording does not say",
                  is_on ? "on" : "off", FRAG_COUNT(event));
    return true;
}

static bool add_expandable(frag_text *out, const frag_trace *trace,
                           const frag_pytorch_settings *settings)
{
    if (settings->is_expandable || trace->stats.op_counts[FRAG_OP_SEGMENT_MAP] == 0)
        return false;
    frag_text_add(out, "memory was mapped page by page, as with expandable_segments=true");
    return true;
}

static bool add_rounding(frag_text *out, const frag_trace *trace,
                         const frag_pytorch_settings *settings)
{
    frag_rounding rounding;
    char text[FRAG_ROUNDING_TEXT_BYTES];
    frag_rounding_read(trace, &rounding);
    frag_rounding_text(&rounding, text);
    if (settings->has_divisions || text[0] == '\0')
        return false;
    frag_text_add(out, "sizes were rounded up further, as with roundup_power2_divisions=%s", text);
    return true;
}

static bool add_collection(frag_text *out, const frag_trace *trace,
                           const frag_pytorch_settings *settings, uint64_t event)
{
    uint64_t held = 0;
    if (settings->gc_threshold > 0 || !frag_evidence_collects(trace, event, &held))
        return false;
    frag_text_add(out,
                  "large segments were given back for a request while %s was held, less than the "
                  "%s held at other times, as garbage_collection_threshold does it",
                  FRAG_BYTES(held), FRAG_BYTES(trace->stats.observed_reserved_peak_bytes));
    return true;
}

void frag_verify_add_reason(frag_text *out, const frag_recording *recording,
                            const frag_trace *trace, const frag_policy_spec *spec,
                            const frag_verify_result *result)
{
    const char *hint = frag_recording_get(recording, "torch.version_hint");
    frag_pytorch_settings settings;
    /* Settings that were recorded and taken need no signs of them. */
    bool is_recorded = spec->wants_recorded || frag_recording_get(recording, "torch.conf") == NULL;
    if (is_recorded && frag_pytorch_settings_of(&settings, spec->ops, spec->values, hint) &&
        (add_switch(out, trace) || add_expandable(out, trace, &settings) ||
         add_rounding(out, trace, &settings) ||
         add_collection(out, trace, &settings, result->first.event)))
        return;
    frag_text_add(out, "%s", likely_reason(recording, trace, result, spec));
}
