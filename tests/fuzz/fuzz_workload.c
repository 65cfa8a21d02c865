/* Fuzzes the reader of workload files and config.json; what it accepts, if small, is generated. */
#include "base/bytes.h"
#include "workload/generate.h"

int LLVMFuzzerTestOneInput(const unsigned char *bytes, size_t count);

static bool is_small(const frag_workload *workload)
{
    const frag_network *network = &workload->network;
    uint64_t blocks = network->layers;
    for (uint64_t i = 0; i < network->depths.count; i++)
        blocks *= network->depths.values[i];
    return blocks * workload->steps * workload->accumulate * workload->devices <= 128 &&
           workload->new_tokens <= 64;
}

int LLVMFuzzerTestOneInput(const unsigned char *bytes, size_t count)
{
    if (count > FRAG_MIB)
        return 0;
    const frag_tape_card card = {80, 108, 2048, false};
    frag_error error = {.code = FRAG_E_NONE};
    frag_workload workload;
    frag_workload_init(&workload);
    if (!frag_workload_parse((const char *)bytes, count, &workload, &error) ||
        !frag_workload_check(&workload, &error)) {
        FRAG_ASSERT(error.code == FRAG_E_INPUT && error.sentence[0] != '\0');
        return 0;
    }
    frag_recording recording = {0};
    if (is_small(&workload) && frag_workload_generate(&workload, &card, "x", &recording, &error))
        FRAG_ASSERT(recording.trace_count ==
                        (workload.parallel != FRAG_PARALLEL_NONE ? workload.devices : 1) &&
                    recording.traces[0].event_count > 0);
    frag_recording_destroy(&recording);
    return 0;
}
