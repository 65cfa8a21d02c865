/* Any bytes behind the header of a packing problem: what is read replays, has the lifetimes that it
 * says, and comes back from what is written of it; what is not says why. */
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/memory.h"
#include "sim/policy_engine.h"
#include "traces/exchange/minimalloc_csv.h"
#include "traces/formats.h"

int LLVMFuzzerTestOneInput(const unsigned char *bytes, size_t count);

static char *written(const frag_recording *recording, size_t *count)
{
    const frag_trace *trace = &recording->traces[0];
    uint64_t lifetime_count = 0;
    frag_error error = {.code = FRAG_E_NONE};
    frag_lifetime *lifetimes = frag_lifetimes_find(recording, trace, &lifetime_count, &error);
    FRAG_ASSERT(lifetimes != NULL && lifetime_count == trace->stats.request_count);
    char *text = NULL;
    FILE *stream = open_memstream(&text, count);
    FRAG_ASSERT(stream != NULL && frag_minimalloc_write(recording, trace, lifetimes, lifetime_count,
                                                        1, NULL, stream, &error));
    fclose(stream);
    free(lifetimes);
    return text;
}

static bool read_text(const char *text, size_t count, frag_recording *recording, frag_error *error)
{
    frag_input *input = frag_input_from_memory(text, count, "fuzzed");
    const frag_load_options options = {.with_columns = true};
    frag_findings findings = {0};
    bool ok = frag_format_minimalloc.read(input, &options, recording, &findings, error);
    frag_input_close(input);
    return ok;
}

int LLVMFuzzerTestOneInput(const unsigned char *bytes, size_t count)
{
    static const char header[] = "id,lower,upper,size\n";
    if (count > FRAG_MIB)
        return 0;
    size_t start = frag_format_minimalloc.is_like(bytes, count) ? 0 : sizeof header - 1;
    char *text = frag_alloc(start + count + 1, 1);
    memcpy(text, header, start);
    if (count > 0)
        memcpy(text + start, bytes, count);
    frag_recording recording;
    frag_recording again;
    frag_error error = {.code = FRAG_E_NONE};
    if (read_text(text, start + count, &recording, &error)) {
        size_t once_count = 0;
        size_t twice_count = 0;
        char *once = written(&recording, &once_count);
        FRAG_ASSERT(read_text(once, once_count, &again, &error));
        char *twice = written(&again, &twice_count);
        FRAG_ASSERT(once_count == twice_count && memcmp(once, twice, once_count) == 0);
        frag_recording_destroy(&again);
        frag_recording_destroy(&recording);
        free(once);
        free(twice);
    } else {
        FRAG_ASSERT(error.code == FRAG_E_INPUT && error.sentence[0] != '\0');
        FRAG_ASSERT(recording.traces == NULL);
    }
    free(text);
    return 0;
}
