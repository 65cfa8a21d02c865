/* Memory of another process. A handle names it by process and address; opened, it has addresses of
 * its own here and takes nothing of the capacity, which its owner was charged for. What the other
 * process knows of its bytes is not known here. */
#include <string.h>
#include <unistd.h>

#include "base/bits.h"
#include "gpu_replay/software/soft_state.h"

#define IMPORT_BASE 0x5c0000000000u
#define IMPORT_WINDOW ((uint64_t)1 << 41)
#define MAGIC 0x63706967617266u

typedef struct content {
    uint64_t magic;
    uint64_t address;
    uint64_t bytes;
    uint64_t offset; /* of the pointer that was exported, in its allocation */
    int64_t process;
    uint32_t card;
    uint32_t is_event;
} content;

static frag_soft_arena imports;

int32_t frag_soft_ipc_export(uint64_t address, frag_soft_ipc_handle *out)
{
    frag_soft_extent extent;
    memset(out, 0, sizeof *out);
    if (!frag_soft_extent_find(address, &extent))
        return FRAG_CUDA_INVALID_VALUE;
    content of = {.magic = MAGIC,
                  .address = extent.address,
                  .bytes = extent.bytes,
                  .offset = address - extent.address,
                  .process = getpid(),
                  .card = frag_soft.card_of[extent.device]};
    memcpy(out, &of, sizeof of);
    return FRAG_CUDA_OK;
}

void frag_soft_ipc_export_event(frag_soft_ipc_handle *out)
{
    content of = {.magic = MAGIC, .process = getpid(), .is_event = 1};
    memset(out, 0, sizeof *out);
    memcpy(out, &of, sizeof of);
}

/* As the real one does not open what the process itself exported. */
static int32_t read_handle(const frag_soft_ipc_handle *handle, bool is_event, content *out)
{
    memcpy(out, handle, sizeof *out);
    return out->magic == MAGIC && (out->is_event != 0) == is_event && out->process != getpid()
               ? FRAG_CUDA_OK
               : FRAG_CUDA_INVALID_HANDLE;
}

int32_t frag_soft_ipc_open(const frag_soft_ipc_handle *handle, uint64_t *address)
{
    content of;
    int32_t result = read_handle(handle, false, &of);
    *address = 0;
    if (result != FRAG_CUDA_OK)
        return result;
    if (imports.base == 0)
        frag_soft_arena_start(&imports, IMPORT_BASE, IMPORT_WINDOW);
    frag_soft_range *range =
        frag_soft_arena_add(&imports, frag_align_up(of.bytes, frag_soft.settings.granularity_bytes),
                            frag_soft.settings.granularity_bytes, false);
    range->asked_bytes = of.bytes;
    uint32_t device = frag_soft_device_of_card(of.card);
    range->tag = device < frag_soft.settings.device_count ? device : frag_soft_device_current();
    *address = range->address;
    return FRAG_CUDA_OK;
}

int32_t frag_soft_ipc_open_event(const frag_soft_ipc_handle *handle, uint64_t *event)
{
    content of;
    int32_t result = read_handle(handle, true, &of);
    *event = result == FRAG_CUDA_OK ? frag_soft_event_new(0) : 0;
    return result;
}

int32_t frag_soft_ipc_close(uint64_t address)
{
    const frag_soft_range *range = frag_soft_arena_find(&imports, address);
    if (range == NULL || range->address != address)
        return FRAG_CUDA_INVALID_VALUE;
    frag_soft_shadow_forget(range->address, range->bytes);
    frag_soft_arena_remove(&imports, (size_t)(range - imports.ranges));
    return FRAG_CUDA_OK;
}

bool frag_soft_ipc_at(uint64_t address, frag_soft_extent *extent)
{
    const frag_soft_range *range =
        address - IMPORT_BASE < IMPORT_WINDOW ? frag_soft_arena_find(&imports, address) : NULL;
    if (range == NULL || address - range->address >= range->asked_bytes)
        return false;
    *extent = (frag_soft_extent){
        .address = range->address, .bytes = range->asked_bytes, .device = range->tag};
    return true;
}

bool frag_soft_ipc_is_address(uint64_t address)
{
    return address - IMPORT_BASE < IMPORT_WINDOW;
}

void frag_soft_ipc_stop(void)
{
    frag_soft_arena_destroy(&imports);
    memset(&imports, 0, sizeof imports);
}
