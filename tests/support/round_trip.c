#include "tests/support/round_trip.h"

#include "base/memory.h"
#include "tests/support/sample_recording.h"
#include "traces/text/text_trace.h"

frag_error frag_test_round_trip(const void *bytes, size_t count, frag_format_reader *read)
{
    unsigned char *copy = frag_alloc(count, 1);
    if (count > 0)
        memcpy(copy, bytes, count);
    frag_input *input = frag_input_from_memory(copy, count, "fuzzed");
    const frag_load_options options = {.with_sites = true, .with_columns = true};
    frag_recording recording;
    frag_findings findings = {0};
    frag_error error = {.code = FRAG_E_NONE};
    if (read(input, &options, &recording, &findings, &error)) {
        frag_recording again;
        size_t written = 0;
        char *file = sample_written(&recording, frag_text_write, &written);
        FRAG_ASSERT(sample_load(file, written, true, &again, &error));
        FRAG_ASSERT(same_recording(&recording, &again));
        frag_recording_destroy(&again);
        frag_recording_destroy(&recording);
        free(file);
    } else {
        FRAG_ASSERT(error.code == FRAG_E_INPUT && error.sentence[0] != '\0');
        FRAG_ASSERT(recording.traces == NULL);
    }
    frag_input_close(input);
    free(copy);
    return error;
}
