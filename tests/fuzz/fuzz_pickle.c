/* Any bytes as a pickled snapshot. What is accepted must be a valid trace, the
 * same on a second reading. */
#include <string.h>

#include "base/bytes.h"
#include "traces/load.h"
#include "traces/torch/history/snapshot_parse.h"

int LLVMFuzzerTestOneInput(const unsigned char *bytes, size_t count);

static bool read_bytes(const unsigned char *bytes, size_t count, bool with_sites,
                       frag_recording *recording, frag_findings *findings)
{
    frag_error error = {.code = FRAG_E_NONE};
    frag_load_options options = {
        .format = FRAG_FORMAT_SNAPSHOT, .with_sites = with_sites, .with_columns = true};
    frag_input *input = frag_input_from_memory(bytes, count, "fuzz");
    *findings = (frag_findings){0};
    bool is_read = frag_format_snapshot.read(input, &options, recording, findings, &error);
    frag_input_close(input);
    if (!is_read)
        FRAG_ASSERT(error.code == FRAG_E_INPUT && error.sentence[0] != '\0');
    return is_read;
}

int LLVMFuzzerTestOneInput(const unsigned char *bytes, size_t count)
{
    if (count > FRAG_MIB)
        return 0;
    frag_recording recording;
    frag_recording again;
    frag_findings findings;
    frag_findings findings_again;
    if (!read_bytes(bytes, count, true, &recording, &findings))
        return 0;
    frag_error error = {.code = FRAG_E_NONE};
    FRAG_ASSERT(recording.trace_count > 0);
    FRAG_ASSERT(read_bytes(bytes, count, false, &again, &findings_again));
    FRAG_ASSERT(again.trace_count == recording.trace_count);
    FRAG_ASSERT(findings.count == findings_again.count);
    for (uint32_t i = 0; i < recording.trace_count; i++) {
        FRAG_ASSERT(frag_trace_check(&recording, &recording.traces[i], &error));
        FRAG_ASSERT(strcmp(recording.traces[i].digest, again.traces[i].digest) == 0);
    }
    frag_recording_destroy(&recording);
    frag_recording_destroy(&again);
    return 0;
}
