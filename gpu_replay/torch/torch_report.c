/* The printout at the end of a program. */
#include <inttypes.h>

#include "base/bytes.h"
#include "gpu_replay/torch/torch_device.h"
#include "sim/policy_engine.h"
#include "sim/replay/memory_stats.h"

static void add_stat(void *context, const char *name, int64_t value)
{
    frag_stats_add(context, name, value);
}

static void print_peak(FILE *stream, const char *name, const frag_torch_count *count)
{
    char peak[FRAG_BYTES_TEXT_MAX];
    char current[FRAG_BYTES_TEXT_MAX];
    fprintf(stream, "  %-10s %12s at the peak, %12s now\n", name,
            frag_bytes_text(count->peak, peak), frag_bytes_text(count->current, current));
}

static void print_calls(FILE *stream, const frag_device *device)
{
    fputs("  device calls:", stream);
    for (uint32_t call = 0; call < FRAG_DEVICE_CALL_COUNT; call++) {
        if (device->counts.calls[call] == 0)
            continue;
        fprintf(stream, " %s %" PRIu64, frag_device_call_name((frag_device_call)call),
                device->counts.calls[call]);
        if (device->counts.failed_calls[call] > 0)
            fprintf(stream, " (%" PRIu64 " refused)", device->counts.failed_calls[call]);
    }
    fputc('\n', stream);
}

void frag_torch_device_print(const frag_torch_device *device, const frag_torch_settings *settings,
                             FILE *stream)
{
    const frag_torch_counts *counts = &device->counts;
    char requests[FRAG_BYTES_TEXT_MAX];
    fprintf(stream, "fraglab: device %" PRIu32 ", policy %s\n", device->ordinal,
            settings->policy.text);
    fprintf(stream, "  %s requests served, %" PRIu64 " out of memory, %" PRIu32 " streams\n",
            frag_count_text(counts->allocations.added, requests), counts->oom_count,
            device->stream_count);
    print_peak(stream, "requested", &counts->requested_bytes);
    print_peak(stream, "allocated", &counts->allocated_bytes);
    print_peak(stream, "active", &counts->active_bytes);
    print_peak(stream, "reserved", &counts->reserved_bytes);
    if (device->device != NULL)
        print_calls(stream, device->device);
    frag_stats stats = {0};
    const frag_torch_policy *policy = &device->policy;
    if (frag_policy_engine_of(policy->ops)->statistics != NULL)
        frag_policy_engine_of(policy->ops)->statistics->visit(policy->policy, add_stat, &stats);
    else
        frag_torch_counts_visit(counts, add_stat, &stats);
    frag_stats_summary(&stats, device->ordinal, stream);
    frag_stats_destroy(&stats);
}
