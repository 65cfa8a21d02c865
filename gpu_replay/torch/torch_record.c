#include "gpu_replay/torch/torch_record.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/file.h"
#include "base/memory.h"
#include "traces/builder.h"
#include "traces/fgt/fgt.h"
#include "traces/load.h"

#define EVENTS_MIN 4096u

frag_torch_log *frag_torch_log_create(void)
{
    return frag_alloc(1, sizeof(frag_torch_log));
}

void frag_torch_log_destroy(frag_torch_log *log)
{
    if (log == NULL)
        return;
    free(log->events);
    free(log);
}

/* A program is not ended for the sake of its recording, as frag_grow would. */
static bool make_room(frag_torch_log *log)
{
    if (log->count < log->capacity)
        return true;
    uint64_t wanted = log->capacity == 0 ? EVENTS_MIN : log->capacity * 2;
    frag_torch_event *grown = realloc(log->events, wanted * sizeof *grown);
    log->is_cut = grown == NULL;
    if (grown == NULL)
        return false;
    log->events = grown;
    log->capacity = wanted;
    return true;
}

void frag_torch_log_add(frag_torch_log *log, const frag_torch_event *event)
{
    if (log == NULL || log->is_cut || !make_room(log))
        return;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    frag_torch_event *added = &log->events[log->count++];
    *added = *event;
    added->time_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void build_trace(frag_builder *builder, const frag_torch_log_source *source)
{
    frag_builder_device(builder, source->ordinal);
    /* Policies may go by the numbers of streams, so they stay as they were. */
    frag_builder_streams(builder, source->stream_handles, source->stream_count);
    for (uint32_t i = 1; i <= source->pool_count; i++)
        frag_builder_pool(builder, source->pool_ids[i]);
    for (uint64_t i = 0; i < source->log->count; i++) {
        const frag_torch_event *event = &source->log->events[i];
        bool is_all = event->stream == FRAG_STREAM_ALL;
        frag_builder_add(builder, &(frag_build_event){
                                      .op = event->op,
                                      .flags = event->flags,
                                      .is_stream_all = is_all,
                                      .stream = is_all ? 0 : source->stream_handles[event->stream],
                                      .slot = event->slot,
                                      .bytes = event->bytes,
                                      .address = event->address,
                                      .time_ns = event->time_ns,
                                      .pool = event->pool,
                                  });
    }
}

static bool build(const frag_torch_settings *settings, const frag_torch_log_source *sources,
                  size_t count, frag_recording *recording, frag_error *error)
{
    frag_builder *builder = frag_builder_create(recording);
    frag_builder_metadata(builder, "recorder", "libfraglab_torch");
    frag_builder_metadata(builder, "fraglab.policy", settings->policy.text);
    const char *conf = frag_policy_spec_text(&settings->policy, "conf");
    if (conf != NULL)
        frag_builder_metadata(builder, "torch.conf", conf);
    if (settings->torch_version[0] != '\0')
        frag_builder_metadata(builder, "torch.version_hint", settings->torch_version);
    for (size_t i = 0; i < count; i++)
        build_trace(builder, &sources[i]);
    return frag_builder_finish(builder, settings->record_path, error);
}

bool frag_torch_record_write(const frag_torch_settings *settings,
                             const frag_torch_log_source *sources, size_t count, frag_error *error)
{
    frag_recording recording = {0};
    if (!build(settings, sources, count, &recording, error))
        return false;
    frag_output *output = frag_output_open(settings->record_path, true, error);
    bool ok = output != NULL && frag_fgt_write(&recording, frag_output_stream(output), error);
    if (ok)
        ok = frag_output_finish(output, error);
    else if (output != NULL)
        frag_output_abandon(output);
    frag_recording_destroy(&recording);
    return ok || frag_error_in(error, settings->record_path);
}
