#include "traces/write.h"

#include <string.h>

#include "base/memory.h"
#include "sim/replay/lifetimes.h"
#include "traces/exchange/minimalloc_csv.h"
#include "traces/fgt/fgt.h"
#include "traces/text/text_trace.h"

#define RECORDING_ALIGNMENT 512u

uint64_t *frag_problem_offsets(const frag_recording *recording, const frag_trace *trace,
                               uint64_t count)
{
    if (!frag_recording_is_problem(recording) || trace->addresses == NULL)
        return NULL;
    uint64_t *offsets = frag_alloc((size_t)count + 1, sizeof *offsets);
    uint64_t found = 0;
    for (uint64_t i = 0; i < trace->event_count; i++)
        if (trace->events[i].op == FRAG_OP_ALLOC && trace->addresses[i] >= FRAG_MINIMALLOC_BASE)
            offsets[found++] = trace->addresses[i] - FRAG_MINIMALLOC_BASE;
    if (found == count && count > 0)
        return offsets;
    frag_free(offsets);
    return NULL;
}

/* Of a problem its own alignments and, where it came with one, its placement; of a recording the
 * alignment that allocators of GPU memory keep to. */
static bool write_problem(const frag_recording *recording, FILE *stream, frag_error *error)
{
    if (recording->trace_count != 1)
        return frag_fail(error, FRAG_E_USAGE,
                         "the recording holds %u traces; a packing problem is one: cut out a "
                         "device first (fraglab trace cut --device N)",
                         recording->trace_count);
    const frag_trace *trace = &recording->traces[0];
    uint64_t count = 0;
    frag_lifetime *lifetimes = frag_lifetimes_find(recording, trace, &count, error);
    if (lifetimes == NULL)
        return false;
    uint64_t *offsets = frag_problem_offsets(recording, trace, count);
    bool ok = frag_minimalloc_write(recording, trace, lifetimes, count, RECORDING_ALIGNMENT,
                                    offsets, stream, error);
    frag_free(offsets);
    frag_free(lifetimes);
    return ok;
}

bool frag_recording_write(const frag_recording *recording, const char *format, FILE *stream,
                          frag_error *error)
{
    static const struct {
        const char *name;
        bool (*write)(const frag_recording *recording, FILE *stream, frag_error *error);
    } formats[] = {
        {"fgt", frag_fgt_write}, {"text", frag_text_write}, {"minimalloc", write_problem}};
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++)
        if (strcmp(formats[i].name, format) == 0)
            return formats[i].write(recording, stream, error);
    return frag_fail_in(error, FRAG_E_USAGE, "format",
                        "'%s' cannot be written; expected fgt, text or minimalloc", format);
}
