/* The message of torch.OutOfMemoryError, in the wording of each release. Source: what the library
 * prints, release by release. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "allocators/pytorch/pytorch_state.h"
#include "base/bytes.h"

typedef struct message {
    char *text;
    size_t size;
    size_t length;
} message;

static void add(message *to, const char *format, ...)
{
    if (to->length + 1 >= to->size)
        return;
    va_list arguments;
    va_start(arguments, format);
    int added = vsnprintf(to->text + to->length, to->size - to->length, format, arguments);
    va_end(arguments);
    size_t room = to->size - 1 - to->length;
    to->length += added < 0 ? 0 : (size_t)added < room ? (size_t)added : room;
}

enum { SIZE_TEXT_BYTES = 48 };

/* "512 bytes", "1.50 KiB", "20.00 MiB", "1.25 GiB". */
static const char *size_text(uint64_t bytes, char text[SIZE_TEXT_BYTES])
{
    if (bytes <= 1024)
        snprintf(text, SIZE_TEXT_BYTES, "%" PRIu64 " bytes", bytes);
    else if (bytes <= FRAG_MIB)
        snprintf(text, SIZE_TEXT_BYTES, "%.2f KiB", (double)bytes / 1024.0);
    else if (bytes <= FRAG_GIB)
        snprintf(text, SIZE_TEXT_BYTES, "%.2f MiB", (double)bytes / (double)FRAG_MIB);
    else
        snprintf(text, SIZE_TEXT_BYTES, "%.2f GiB", (double)bytes / (double)FRAG_GIB);
    return text;
}

static void add_size(message *to, const char *before, uint64_t bytes, const char *behind)
{
    char text[SIZE_TEXT_BYTES];
    add(to, "%s%s%s", before, size_text(bytes, text), behind);
}

typedef struct memory_sums {
    uint64_t allocated_bytes;
    uint64_t private_free_bytes; /* cached in private pools; counted as allocated from 2.4 on */
} memory_sums;

static memory_sums sum_memory(const frag_policy *policy)
{
    memory_sums sums = {0, 0};
    for (uint32_t id = 1; id < policy->block_count; id++) {
        const frag_pytorch_block *at = frag_pytorch_at(policy, id);
        if (at->list == FRAG_PYTORCH_UNUSED)
            continue;
        const frag_pytorch_pool *pool =
            frag_pytorch_pool_at(policy, frag_pytorch_list_at(policy, at));
        if ((at->list & FRAG_PYTORCH_IN_USE) != 0 && (at->list & FRAG_PYTORCH_WAITING) == 0)
            sums.allocated_bytes += at->bytes;
        else if (frag_pytorch_is_free(at) && pool != NULL && pool->exists)
            sums.private_free_bytes += at->bytes;
    }
    if (policy->settings.version < 204)
        sums.private_free_bytes = 0;
    return sums;
}

static void add_figures(message *to, const frag_policy *policy, uint64_t bytes)
{
    uint32_t version = policy->settings.version;
    memory_sums sums = sum_memory(policy);
    uint64_t free_bytes = 0;
    uint64_t total_bytes = 0;
    frag_device_look_at_memory(policy->device, &free_bytes, &total_bytes);
    add_size(to, "CUDA out of memory. Tried to allocate ", bytes, ". GPU ");
    /* 2.3 prints the number as a raw byte. */
    if (version == 203)
        add(to, "%c", (int)policy->device->ordinal);
    else
        add(to, "%" PRIu32, policy->device->ordinal);
    add(to, " has a total capac%sty of ", version < 202 ? "" : "i");
    add_size(to, "", total_bytes, " of which ");
    add_size(to, "", free_bytes, " is free. ");
    if (version >= 205 && policy->limit_bytes != FRAG_UNLIMITED)
        add_size(to, "", policy->limit_bytes, " allowed; ");
    uint64_t allocated = sums.allocated_bytes + sums.private_free_bytes;
    add_size(to, "Of the allocated memory ", allocated, " is allocated by PyTorch, ");
    if (sums.private_free_bytes > 0)
        add_size(to, "with ", sums.private_free_bytes,
                 " allocated in private pools (e.g., CUDA Graphs), ");
    uint64_t unallocated =
        policy->reserved_bytes > allocated ? policy->reserved_bytes - allocated : 0;
    add_size(to, "and ", unallocated, " is reserved by PyTorch but unallocated.");
}

/* What to do about it when expandable segments are on already: from 2.14. */
static void add_expandable_hint(message *to, const frag_policy *policy, uint64_t bytes)
{
    if (policy->settings.version < 215)
        return;
    uint64_t range = frag_pytorch_range_bytes(policy);
    if (range < bytes && bytes <= policy->device->capacity_bytes) {
        add_size(
            to, " This allocation exceeds the expandable-segment reserve of ", range,
            " for this stream, and a single allocation cannot span expandable segments. Raise "
            "PYTORCH_CUDA_ALLOC_CONF expandable_segments_reserve or "
            "expandable_segments_reserve_by_class (or unset it) so that a segment is at least ");
        add_size(to, "", bytes, ".");
        return;
    }
    add(to,
        " expandable_segments is enabled. If instead the process is running out of virtual address "
        "space (VSZ), expandable segments may be over-reserving VA (each segment reserves ~9/8 of "
        "device memory, times the number of streams); reduce it via PYTORCH_CUDA_ALLOC_CONF "
        "expandable_segments_reserve / expandable_segments_reserve_by_class.");
}

static void add_hint(message *to, const frag_policy *policy)
{
    uint32_t version = policy->settings.version;
    if (version < 202) {
        add(to,
            " If reserved but unallocated memory is large try setting max_split_size_mb to avoid "
            "fragmentation.  See documentation for Memory Management and PYTORCH_CUDA_ALLOC_CONF");
        return;
    }
    const char *page =
        version >= 211 ? "https://docs.pytorch.org/docs/stable/notes/"
                         "cuda.html#optimizing-memory-usage-with-pytorch-cuda-alloc-conf"
                       : "https://pytorch.org/docs/stable/notes/cuda.html#environment-variables";
    add(to,
        " If reserved but unallocated memory is large try setting %s=expandable_segments:True to "
        "avoid fragmentation.  See documentation for Memory Management  (%s)",
        version == 210 ? "PYTORCH_ALLOC_CONF" : "PYTORCH_CUDA_ALLOC_CONF", page);
}

bool frag_pytorch_describe_oom(const frag_policy *policy, const frag_request *request, char *text,
                               size_t size)
{
    message to = {text, size, 0};
    if (policy->is_rejected) {
        add_size(&to,
                 "CUDA out of memory. Allocation was preemptively rejected because it would exceed "
                 "per_process_memory_fraction limit. Requested size: ",
                 request->bytes, "");
        return false;
    }
    uint64_t rounded = frag_pytorch_round(&policy->settings, request->bytes);
    uint64_t bytes = frag_pytorch_segment_bytes(policy, rounded);
    add_figures(&to, policy, bytes);
    if (policy->settings.version >= 214 && policy->settings.is_expandable)
        add_expandable_hint(&to, policy, bytes);
    else
        add_hint(&to, policy);
    return true;
}
