#include "studies/device_settings.h"

#include "base/bytes.h"
#include "base/memory.h"
#include "sim/device/card_table.h"

/* A capacity of the user's own is what programs can take, so the context of the card is not charged
 * against it. */
static bool take_card(const frag_device_settings *settings, const frag_context *context,
                      frag_device_spec *device, frag_device_description *gpu, frag_error *error)
{
    frag_text note = {.bytes = NULL};
    if (settings->gpu == NULL)
        return true;
    if (!frag_card_load(settings->gpu, gpu, &note, error))
        return frag_error_in(error, settings->gpu_option);
    if (note.bytes != NULL)
        frag_context_warn(context, "%s: %s", settings->gpu_option, note.bytes);
    frag_text_destroy(&note);
    if (gpu->total_bytes == 0)
        return frag_fail_in(error, FRAG_E_INPUT, settings->gpu,
                            "it says nothing of memory; give it %s, or add 'memory'",
                            settings->latency_hint);
    device->gpu = gpu;
    device->page_bytes = frag_device_description_page(gpu);
    device->capacity_bytes = gpu->total_bytes;
    device->used_by_others_bytes = settings->has_capacity ? 0 : gpu->context_bytes;
    device->latency = gpu->has_latency ? &gpu->latency : NULL;
    if (gpu->serves_scattered == FRAG_ANSWER_NO)
        frag_context_warn(context,
                          "%s serves no large malloc from scattered pages, the simulated device "
                          "does; '--device cuda' shows what that costs",
                          gpu->name);
    return true;
}

/* Into memory of its own: a description is large for a stack. */
static bool take_latency(const char *path, frag_device_spec *device, frag_device_description *gpu,
                         frag_error *error)
{
    if (path == NULL)
        return true;
    frag_device_description *read = frag_alloc(1, sizeof *read);
    bool ok = frag_device_description_load(path, read, error);
    if (ok && !read->has_latency)
        ok = frag_fail_in(error, FRAG_E_INPUT, path,
                          "it has no 'calls'; a table of latencies needs them");
    if (ok) {
        gpu->latency = read->latency;
        device->latency = &gpu->latency;
    }
    frag_free(read);
    return ok;
}

bool frag_device_settings_read(const frag_device_settings *settings, const frag_context *context,
                               frag_device_spec *device, frag_device_description *gpu,
                               frag_error *error)
{
    *device = (frag_device_spec){.capacity_bytes = FRAG_UNLIMITED};
    frag_device_description_clear(gpu);
    return take_card(settings, context, device, gpu, error) &&
           take_latency(settings->latency, device, gpu, error);
}
