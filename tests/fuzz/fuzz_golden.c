/* Any bytes behind the head of a golden log; what is read must make a recording, or say why not,
 * and the recording must be one that can be replayed. */
#include <stdlib.h>
#include <string.h>

#include "allocators/registry.h"
#include "base/bytes.h"
#include "base/memory.h"
#include "sim/replay/replay.h"
#include "traces/golden/golden_log.h"

int LLVMFuzzerTestOneInput(const unsigned char *bytes, size_t count);

static const char head[] =
    "{\"golden\":\"c10\",\"schema\":1,\"torch\":\"2.9.1\",\"conf\":\"\",\"capacity\":67108864,"
    "\"granularity\":2097152,\"devices\":2,\"va\":\"firstfit\",\"malloc_base\":\"0x700000000000\","
    "\"vmm_base\":\"0x600000000000\",\"events\":true}\n";

static void take_note(void *context, const frag_note *note)
{
    *(uint64_t *)context += note->bytes;
}

/* Whatever the log says the library did: the policy does something of its own, and stays whole. */
static void replay(const frag_golden_log *log, const frag_recording *recording, uint32_t device)
{
    frag_error error = {.code = FRAG_E_NONE};
    frag_policy_spec spec;
    bool is_torch = log->library == 0;
    const char *policy = is_torch ? "pytorch" : frag_strings_get(&log->strings, log->policy);
    if (!frag_policy_spec_parse(policy, &spec, &error)) {
        FRAG_ASSERT(!is_torch && error.sentence[0] != '\0');
        return; /* parameters that the pool does not take */
    }
    if (is_torch)
        frag_policy_spec_apply(&spec, frag_strings_get(&log->strings, log->conf), &error);
    frag_sim_device_options options = {
        .device = device,
        .capacity_bytes = log->capacity_bytes,
        .page_bytes = log->page_bytes,
        .address_rule = log->is_bump ? FRAG_ADDRESS_BUMP : FRAG_ADDRESS_LOWEST,
        .base_address = log->is_bump ? log->malloc_base : 0,
        .gap_bytes = log->gap_bytes,
        .is_descending = log->is_descending,
    };
    frag_device *opened = frag_sim_device_create(&options);
    frag_replay *run = frag_replay_create(
        &(frag_run_setup){recording, &recording->traces[device], spec.ops, spec.values, NULL},
        opened, &error);
    uint64_t noted = 0;
    frag_replay_options replay_options = {.is_oom_skipped = true,
                                          .stop_after = FRAG_UNLIMITED,
                                          .check_every = 16,
                                          .on_note = take_note,
                                          .on_note_context = &noted,
                                          .keeps_stats = true};
    frag_replay_result result;
    FRAG_ASSERT(run == NULL || frag_replay_run(run, &replay_options, &result, &error));
    frag_replay_destroy(run);
    frag_device_destroy(opened);
    frag_policy_spec_destroy(&spec);
}

int LLVMFuzzerTestOneInput(const unsigned char *bytes, size_t count)
{
    if (count > FRAG_MIB)
        return 0;
    /* A log that brings its own head is taken as it is. */
    size_t start = count > 10 && memcmp(bytes, "{\"golden\":", 10) == 0 ? 0 : sizeof head - 1;
    char *text = frag_alloc(start + count + 1, 1);
    memcpy(text, head, start);
    if (count > 0)
        memcpy(text + start, bytes, count);
    frag_input *input = frag_input_from_memory(text, start + count, "fuzzed");
    frag_error error = {.code = FRAG_E_NONE};
    frag_golden_log log;
    if (frag_golden_log_read(input, &log, &error)) {
        frag_recording recording;
        uint64_t *ends = NULL;
        if (frag_golden_log_record(&log, "fuzzed", &recording, &ends, &error)) {
            FRAG_ASSERT(recording.trace_count == log.device_count);
            FRAG_ASSERT(ends[(size_t)log.line_count * log.device_count - 1] ==
                        recording.traces[log.device_count - 1].event_count);
            free(ends);
            for (uint32_t i = 0; i < log.device_count; i++)
                replay(&log, &recording, i);
            frag_recording_destroy(&recording);
        } else {
            FRAG_ASSERT(error.code == FRAG_E_INPUT && error.sentence[0] != '\0');
        }
        frag_golden_log_destroy(&log);
    } else {
        FRAG_ASSERT(error.code != FRAG_E_NONE && error.sentence[0] != '\0');
        FRAG_ASSERT(log.lines == NULL);
    }
    frag_input_close(input);
    free(text);
    return 0;
}
