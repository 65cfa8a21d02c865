/* Fuzzes the reader of workload files and config.json; what it accepts, if small, is generated. */
#include "base/bytes.h"
#include "workload/generate.h"
#include "workload/statistical/phases.h"

int LLVMFuzzerTestOneInput(const unsigned char *bytes, size_t count);

static bool is_small(const frag_workload *workload)
{
    const frag_network *network = &workload->network;
    uint64_t blocks = network->layers + network->tables + 1;
    for (uint64_t i = 0; i < network->depths.count; i++)
        blocks *= network->depths.values[i];
    return blocks * workload->steps * workload->accumulate * workload->devices <= 128 &&
           workload->new_tokens <= 64;
}

static void generate_network(const frag_workload *workload)
{
    const frag_tape_card card = {
        .capability = 80, .multiprocessors = 108, .threads_per_multiprocessor = 2048};
    frag_error error = {.code = FRAG_E_NONE};
    frag_recording recording = {0};
    if (!frag_workload_check(workload, &error))
        FRAG_ASSERT(error.code == FRAG_E_INPUT && error.sentence[0] != '\0');
    else if (is_small(workload) && frag_workload_generate(workload, &card, "x", &recording, &error))
        FRAG_ASSERT(recording.trace_count ==
                        (workload->parallel != FRAG_PARALLEL_NONE ? workload->devices : 1) &&
                    recording.traces[0].event_count > 0);
    frag_recording_destroy(&recording);
}

/* What is accepted is generated, and is a trace without faults. */
static void generate_statistical(const frag_statistical *statistical)
{
    frag_error error = {.code = FRAG_E_NONE};
    frag_recording recording = {0};
    uint64_t requests = frag_statistical_requests(statistical);
    if (requests > 20000)
        return;
    bool ok = frag_statistical_generate(statistical, "x", &recording, &error);
    FRAG_ASSERT(ok && recording.traces[0].stats.request_count <= requests);
    frag_recording_destroy(&recording);
}

int LLVMFuzzerTestOneInput(const unsigned char *bytes, size_t count)
{
    if (count > FRAG_MIB)
        return 0;
    frag_error error = {.code = FRAG_E_NONE};
    frag_workload workload;
    frag_statistical statistical = {0};
    frag_workload_init(&workload);
    if (!frag_workload_parse((const char *)bytes, count, &workload, &statistical, &error))
        FRAG_ASSERT(error.code == FRAG_E_INPUT && error.sentence[0] != '\0');
    else if (statistical.phase_count > 0)
        generate_statistical(&statistical);
    else
        generate_network(&workload);
    frag_statistical_destroy(&statistical);
    return 0;
}
