#include "gpu_replay/device/cuda_probe.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/bytes.h"
#include "base/memory.h"

#define SMALL_BYTES_MAX (4 * FRAG_MIB) /* above, mallocs are taken to have whole pages */
enum { TRIES = 3 };
#define LARGE_BYTES (2 * FRAG_MIB)
#define PAGE_PROBE_BYTES (64 * FRAG_MIB)
#define MANY_BYTES (32 * FRAG_MIB) /* of small mallocs that are counted together */

/* ---- what is held */

bool frag_cuda_probing_ok(frag_cuda_probing *probing, const char *call, int code)
{
    return code == FRAG_CUDA_OK || frag_cuda_fail(probing->cuda, call, code, probing->error);
}

/* One cudaMalloc that is kept; *block is its place in blocks. Running out of memory is no error:
 * *is_served is false then. */
static bool take_block(frag_cuda_probing *probing, uint64_t bytes, size_t *block, bool *is_served)
{
    void *address = NULL;
    int code = probing->cuda->cudaMalloc(&address, (size_t)bytes);
    *is_served = code == FRAG_CUDA_OK;
    if (code == FRAG_CUDA_OUT_OF_MEMORY) {
        probing->cuda->cudaGetLastError();
        return true;
    }
    if (!frag_cuda_probing_ok(probing, "cudaMalloc", code))
        return false;
    probing->blocks = frag_grow(probing->blocks, &probing->block_capacity, probing->block_count + 1,
                                sizeof *probing->blocks);
    *block = probing->block_count;
    probing->blocks[probing->block_count++] = address;
    return true;
}

static bool give_block(frag_cuda_probing *probing, size_t block)
{
    void *address = probing->blocks[block];
    if (address != NULL && !FRAG_CUDA_PROBED(probing, cudaFree, (address)))
        return false;
    probing->blocks[block] = NULL;
    while (probing->block_count > 0 && probing->blocks[probing->block_count - 1] == NULL)
        probing->block_count--;
    return true;
}

/* Gives all blocks back from that one on, the last first. */
static bool give_from(frag_cuda_probing *probing, size_t first)
{
    bool ok = true;
    for (size_t i = probing->block_count; i > first; i--)
        ok = (i > probing->block_count || give_block(probing, i - 1)) && ok;
    return ok;
}

bool frag_cuda_probing_free_bytes(frag_cuda_probing *probing, uint64_t *free_bytes,
                                  uint64_t *total_bytes)
{
    size_t free_size = 0;
    size_t total_size = 0;
    if (!FRAG_CUDA_PROBED(probing, cudaMemGetInfo, (&free_size, &total_size)))
        return false;
    *free_bytes = free_size;
    if (total_bytes != NULL)
        *total_bytes = total_size;
    return true;
}

/* A malloc that must be served: the probe has looked before that so much is free. */
static bool take(frag_cuda_probing *probing, uint64_t bytes, uint64_t *address)
{
    size_t block = 0;
    bool is_served = false;
    if (!take_block(probing, bytes, &block, &is_served))
        return false;
    if (!is_served) {
        return frag_fail(probing->error, FRAG_E_SYSTEM,
                         "the card has no %s left, which the probe needs; end other programs on it",
                         FRAG_BYTES(bytes));
    }
    *address = (uint64_t)(uintptr_t)probing->blocks[block];
    return true;
}

/* ---- pages and small mallocs */

/* By how much free memory falls for count mallocs of that size. */
static bool measure(frag_cuda_probing *probing, uint64_t bytes, uint32_t count, uint64_t *taken)
{
    uint64_t before = 0;
    uint64_t after = 0;
    uint64_t address = 0;
    size_t first = probing->block_count;
    bool ok = frag_cuda_probing_free_bytes(probing, &before, NULL);
    for (uint32_t i = 0; ok && i < count; i++)
        ok = take(probing, bytes, &address);
    ok = ok && frag_cuda_probing_free_bytes(probing, &after, NULL);
    ok = give_from(probing, first) && ok;
    *taken = before > after ? before - after : 0;
    return ok;
}

static bool is_page(uint64_t bytes)
{
    return bytes >= 512 && bytes <= FRAG_DEVICE_PAGE_BYTES && (bytes & (bytes - 1)) == 0;
}

/* What one byte more than a round size takes more. Another program that takes or gives back memory
 * just then spoils the difference, so it is looked at more than once. */
static bool find_page(frag_cuda_probing *probing, uint64_t *page)
{
    *page = 0;
    for (int i = 0; i < TRIES && !is_page(*page); i++) {
        uint64_t round = 0;
        uint64_t more = 0;
        if (!measure(probing, PAGE_PROBE_BYTES, 1, &round) ||
            !measure(probing, PAGE_PROBE_BYTES + 1, 1, &more))
            return false;
        *page = more > round ? more - round : 0;
    }
    if (is_page(*page))
        return true;
    return frag_fail(probing->error, FRAG_E_SYSTEM,
                     "a byte more than 64 MiB took %s more; expected a power of two up to 2 MiB. "
                     "Does another program use the card just now?",
                     FRAG_BYTES(*page));
}

/* A class of sizes; one that takes as much as the class below it makes that one wider. */
static void add_class(frag_footprint *footprint, uint64_t up_to, uint64_t takes)
{
    frag_footprint_class *last =
        footprint->count > 0 ? &footprint->classes[footprint->count - 1] : NULL;
    takes = takes > up_to ? takes : up_to;
    if (last != NULL && takes <= last->takes_bytes && up_to <= last->takes_bytes) {
        last->up_to_bytes = up_to;
        return;
    }
    if (footprint->count < FRAG_FOOTPRINT_CLASSES_MAX)
        footprint->classes[footprint->count++] = (frag_footprint_class){up_to, takes};
}

/* The largest size that takes no more than the smallest one, start, does. */
static bool find_class_end(frag_cuda_probing *probing, uint64_t start, uint64_t takes,
                           uint64_t *end)
{
    uint64_t low = start;
    uint64_t high = SMALL_BYTES_MAX + 1;
    while (high - low > 1) {
        uint64_t middle = low + (high - low) / 2;
        uint64_t taken = 0;
        /* Nothing can take less than its size. */
        if (middle <= takes && !measure(probing, middle, 1, &taken))
            return false;
        if (middle <= takes && taken == takes)
            low = middle;
        else
            high = middle;
    }
    *end = low;
    return true;
}

/* If the driver reports free memory to the byte, classes are found to the byte. */
static bool find_classes(frag_cuda_probing *probing, frag_footprint *footprint)
{
    uint64_t start = 1;
    uint64_t taken = 0;
    while (start <= SMALL_BYTES_MAX && footprint->count < FRAG_FOOTPRINT_CLASSES_MAX) {
        uint64_t end = 0;
        if (!measure(probing, start, 1, &taken) || !find_class_end(probing, start, taken, &end))
            return false;
        add_class(footprint, end, taken);
        start = end + 1;
    }
    return true;
}

/* Elsewhere mallocs share pages, and what one takes is the mean of many. */
static bool find_means(frag_cuda_probing *probing, frag_footprint *footprint)
{
    uint64_t step = 512;
    for (uint64_t bytes = step; bytes <= SMALL_BYTES_MAX; bytes += step) {
        uint64_t count = MANY_BYTES / bytes;
        uint64_t taken = 0;
        count = count > 4096 ? 4096 : count;
        if (!measure(probing, bytes, (uint32_t)count, &taken))
            return false;
        uint64_t mean = (taken + count - 1) / count;
        const frag_footprint_class *last =
            footprint->count > 0 ? &footprint->classes[footprint->count - 1] : NULL;
        if (last != NULL && mean < last->takes_bytes)
            mean = last->takes_bytes;
        add_class(footprint, bytes, mean);
        if (bytes == 8 * step)
            step = bytes;
    }
    return true;
}

/* Classes at the end that whole pages describe as well are left out. */
static void drop_whole_pages(frag_footprint *footprint)
{
    while (footprint->count > 0) {
        const frag_footprint_class *last = &footprint->classes[footprint->count - 1];
        uint64_t below =
            footprint->count > 1 ? footprint->classes[footprint->count - 2].up_to_bytes : 0;
        if (frag_round_up(below + 1, footprint->unit_bytes) != last->takes_bytes ||
            frag_round_up(last->up_to_bytes, footprint->unit_bytes) != last->takes_bytes)
            return;
        footprint->count--;
    }
}

static bool find_footprint(frag_cuda_probing *probing, frag_footprint *footprint)
{
    uint64_t one = 0;
    footprint->count = 0;
    if (!find_page(probing, &footprint->unit_bytes) || !measure(probing, 1, 1, &one))
        return false;
    bool is_exact = one > 0 && one < footprint->unit_bytes;
    uint64_t many = 0;
    if (!measure(probing, 1, 64, &many))
        return false;
    /* A page for each, however small: no classes. */
    if (many == 64 * footprint->unit_bytes)
        return true;
    bool ok = is_exact ? find_classes(probing, footprint) : find_means(probing, footprint);
    drop_whole_pages(footprint);
    return ok;
}

/* ---- addresses */

/* The lowest bit that is set in any of the addresses, at most 1 GiB. */
static uint64_t common_alignment(uint64_t bits)
{
    bits |= FRAG_GIB;
    return bits & (~bits + 1);
}

static bool find_alignment(frag_cuda_probing *probing, frag_device_description *description)
{
    uint64_t page = description->footprint.unit_bytes;
    uint64_t bits = 0;
    uint64_t address = 0;
    bool ok = true;
    for (uint64_t i = 0; ok && i < 64; i++) {
        ok = take(probing, 1 + i * 520, &address);
        bits |= address;
    }
    description->alignment_bytes = common_alignment(bits);
    ok = give_from(probing, 0) && ok;
    bits = 0;
    for (uint64_t i = 0; ok && i < 16; i++) {
        ok = take(probing, LARGE_BYTES + i % 3 * page, &address);
        bits |= address;
    }
    description->large_alignment_bytes = common_alignment(bits);
    return give_from(probing, 0) && ok;
}

enum { PLACES = 8 };

/* Takes eight blocks, gives back the fourth and then the sixth by address, and looks where the next
 * one of the same size goes. The eight fill lower gaps first, so that the fourth is the lowest. */
static bool try_reuse(frag_cuda_probing *probing, uint64_t bytes, frag_reuse *reuse)
{
    uint64_t places[PLACES];
    size_t order[PLACES]; /* by address */
    uint64_t next = 0;
    bool ok = true;
    FRAG_ASSERT(probing->block_count == 0);
    for (size_t i = 0; ok && i < PLACES; i++) {
        ok = take(probing, bytes, &places[i]);
        size_t j = i;
        for (; ok && j > 0 && places[order[j - 1]] > places[i]; j--)
            order[j] = order[j - 1];
        order[j] = i;
    }
    ok = ok && give_block(probing, order[3]) && give_block(probing, order[5]) &&
         take(probing, bytes, &next);
    if (ok) {
        *reuse = next == places[order[3]]   ? FRAG_REUSE_LOWEST
                 : next == places[order[5]] ? FRAG_REUSE_LATEST
                                            : FRAG_REUSE_NEVER;
        for (size_t i = 0; *reuse == FRAG_REUSE_NEVER && i < PLACES; i++)
            if (next == places[i])
                *reuse = FRAG_REUSE_OTHER;
    }
    return give_from(probing, 0) && ok;
}

/* The same answer for all sizes, or "other". */
static bool find_reuse(frag_cuda_probing *probing, frag_device_description *description)
{
    static const uint64_t sizes[] = {2 * FRAG_MIB, 6 * FRAG_MIB, 20 * FRAG_MIB};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        frag_reuse seen = FRAG_REUSE_UNKNOWN;
        if (!try_reuse(probing, sizes[i], &seen))
            return false;
        if (description->reuse == FRAG_REUSE_UNKNOWN)
            description->reuse = seen;
        else if (description->reuse != seen)
            description->reuse = FRAG_REUSE_OTHER;
    }
    return true;
}

/* ---- scattered pages */

#define SCATTERED_BYTES (512 * FRAG_MIB)

/* Fills the card: large blocks that leave SCATTERED_BYTES, largest first, then pages until no more
 * are served. */
static bool fill(frag_cuda_probing *probing, uint64_t page, size_t *first_page)
{
    uint64_t free_bytes = 0;
    bool is_served = true;
    size_t block = 0;
    if (!frag_cuda_probing_free_bytes(probing, &free_bytes, NULL))
        return false;
    uint64_t limit = UINT64_MAX;
    while (free_bytes >= SCATTERED_BYTES + page && limit >= page) {
        uint64_t rest = free_bytes - SCATTERED_BYTES;
        uint64_t bytes = (rest < limit ? rest : limit) / page * page;
        if (!take_block(probing, bytes, &block, &is_served) ||
            !frag_cuda_probing_free_bytes(probing, &free_bytes, NULL))
            return false;
        if (!is_served)
            limit = bytes / 2;
    }
    *first_page = probing->block_count;
    for (is_served = true; is_served;)
        if (!take_block(probing, page, &block, &is_served))
            return false;
    return true;
}

static int compare_addresses(const void *left, const void *right)
{
    uintptr_t a = (uintptr_t) * (void *const *)left;
    uintptr_t b = (uintptr_t) * (void *const *)right;
    return a < b ? -1 : a > b;
}

/* Gives back every second page by address, which leaves no two free ones side by side, and asks for
 * half of what is free then in one piece. */
static bool find_scattered(frag_cuda_probing *probing, frag_device_description *description)
{
    uint64_t page = FRAG_DEVICE_PAGE_BYTES;
    size_t first = 0;
    bool ok = fill(probing, page, &first);
    size_t count = ok ? probing->block_count - first : 0;
    if (ok)
        qsort(probing->blocks + first, count, sizeof *probing->blocks, compare_addresses);
    for (size_t i = 0; ok && i + 1 < count; i += 2)
        ok = give_block(probing, first + i);
    uint64_t free_bytes = 0;
    ok = ok && frag_cuda_probing_free_bytes(probing, &free_bytes, NULL);
    /* Not for all of it: a page lost elsewhere must not decide. */
    uint64_t wanted = free_bytes / 2 / page * page;
    if (ok && count >= 32 && wanted >= 8 * page) {
        size_t block = 0;
        bool is_served = false;
        ok = take_block(probing, wanted, &block, &is_served);
        description->serves_scattered = is_served ? FRAG_ANSWER_YES : FRAG_ANSWER_NO;
    }
    return give_from(probing, 0) && ok;
}

/* ---- virtual memory and the pool */

static bool find_granularity(frag_cuda_probing *probing, frag_device_description *description)
{
    frag_cuda_memory_properties properties = frag_gpu_memory_properties(probing->gpu);
    size_t least = 0;
    size_t recommended = 0;
    if (!FRAG_CUDA_PROBED(probing, cuMemGetAllocationGranularity,
                          (&least, &properties, FRAG_CUDA_GRANULARITY_MINIMUM)) ||
        !FRAG_CUDA_PROBED(probing, cuMemGetAllocationGranularity,
                          (&recommended, &properties, FRAG_CUDA_GRANULARITY_RECOMMENDED)))
        return false;
    description->vmm_granularity_bytes = least;
    description->vmm_recommended_bytes = recommended;
    return true;
}

static bool pool_reserved(frag_cuda_probing *probing, uint64_t *reserved)
{
    return FRAG_CUDA_PROBED(probing, cudaMemPoolGetAttribute,
                            (probing->pool, FRAG_CUDA_POOL_RESERVED, reserved));
}

static bool pool_threshold(frag_cuda_probing *probing, uint64_t threshold)
{
    return FRAG_CUDA_PROBED(probing, cudaMemPoolSetAttribute,
                            (probing->pool, FRAG_CUDA_POOL_RELEASE_THRESHOLD, &threshold));
}

/* Takes some requests at once, gives them back, waits; reserved holds what the pool had after each
 * request and, last, at the end. */
static bool use_pool(frag_cuda_probing *probing, const uint64_t *sizes, size_t count,
                     uint64_t *reserved)
{
    const frag_cuda_runtime *cuda = probing->cuda;
    void *blocks[8] = {NULL};
    bool ok = true;
    FRAG_ASSERT(count <= sizeof blocks / sizeof blocks[0]);
    for (size_t i = 0; ok && i < count; i++)
        ok = FRAG_CUDA_PROBED(probing, cudaMallocFromPoolAsync,
                              (&blocks[i], (size_t)sizes[i], probing->pool, probing->stream)) &&
             pool_reserved(probing, &reserved[i]);
    for (size_t i = 0; i < count && blocks[i] != NULL; i++) {
        int code = cuda->cudaFreeAsync(blocks[i], probing->stream);
        if (code != FRAG_CUDA_OK)
            cuda->cudaFreeAsync(blocks[i], probing->stream);
        ok = frag_cuda_probing_ok(probing, "cudaFreeAsync", code) && ok;
    }
    ok = FRAG_CUDA_PROBED(probing, cudaStreamSynchronize, (probing->stream)) && ok;
    return ok && pool_reserved(probing, &reserved[count]);
}

/* A pool of our own, made as the driver's default one is: with release threshold 0. */
static bool find_pool(frag_cuda_probing *probing, frag_device_description *description)
{
    const frag_cuda_pool_properties properties = {
        .allocation_type = FRAG_CUDA_PINNED,
        .location = {.type = FRAG_CUDA_LOCATION_DEVICE, .id = probing->gpu->ordinal},
    };
    static const uint64_t sizes[] = {1, 3 * FRAG_MIB, 33 * FRAG_MIB, 47 * FRAG_MIB, 5 * FRAG_MIB};
    enum { COUNT = sizeof sizes / sizeof sizes[0] };
    uint64_t reserved[COUNT + 1] = {0};
    if (!FRAG_CUDA_PROBED(probing, cudaMemPoolCreate, (&probing->pool, &properties)) ||
        !use_pool(probing, sizes, COUNT, reserved))
        return false;
    description->pool_first_bytes = reserved[0];
    description->pool_releases_at_sync = reserved[COUNT] == 0 ? FRAG_ANSWER_YES : FRAG_ANSWER_NO;
    uint64_t step = 0;
    for (size_t i = 0; i < COUNT; i++)
        step = frag_common_divisor(step, reserved[i]);
    description->pool_step_bytes = step;
    if (!pool_threshold(probing, UINT64_MAX) || !use_pool(probing, sizes, 1, reserved))
        return false;
    description->pool_keeps_below_limit = reserved[1] > 0 ? FRAG_ANSWER_YES : FRAG_ANSWER_NO;
    return true;
}

/* ---- all of it */

static bool open_probing(frag_cuda_probing *probing)
{
    return FRAG_CUDA_PROBED(probing, cudaStreamCreateWithFlags,
                            (&probing->stream, FRAG_CUDA_STREAM_NON_BLOCKING)) &&
           FRAG_CUDA_PROBED(probing, cudaEventCreateWithFlags,
                            (&probing->event, FRAG_CUDA_EVENT_NO_TIMING));
}

/* Gives everything back whatever came before; what fails here is told only if nothing failed yet.
 */
static bool close_probing(frag_cuda_probing *probing, bool ok)
{
    frag_error unused = {.code = FRAG_E_NONE};
    if (!ok)
        probing->error = &unused;
    ok = give_from(probing, 0) && ok;
    if (probing->pool != NULL)
        ok = FRAG_CUDA_PROBED(probing, cudaMemPoolDestroy, (probing->pool)) && ok;
    if (probing->event != NULL)
        ok = FRAG_CUDA_PROBED(probing, cudaEventDestroy, (probing->event)) && ok;
    if (probing->stream != NULL)
        ok = FRAG_CUDA_PROBED(probing, cudaStreamDestroy, (probing->stream)) && ok;
    free(probing->blocks);
    return ok;
}

/* Makes the calls once whose first time loads code or grows tables of the driver. */
static bool warm_up(frag_cuda_probing *probing)
{
    uint64_t address = 0;
    bool ok = take(probing, FRAG_DEVICE_PAGE_BYTES, &address) &&
              FRAG_CUDA_PROBED(probing, cudaMemset, (probing->blocks[0], 0, 4096)) &&
              FRAG_CUDA_PROBED(probing, cudaDeviceSynchronize, ());
    return give_from(probing, 0) && ok;
}

static bool find_memory(frag_cuda_probing *probing, const frag_gpu_probe_options *options,
                        frag_device_description *description)
{
    uint64_t free_bytes = 0;
    uint64_t used_bytes = 0;
    if (!frag_cuda_probing_free_bytes(probing, &free_bytes, &description->total_bytes))
        return false;
    description->context_bytes = description->total_bytes - free_bytes;
    /* What others use is not the context's, where someone can tell. */
    if (options->context_bytes != NULL && options->context_bytes(options->context, &used_bytes) &&
        used_bytes < description->context_bytes)
        description->context_bytes = used_bytes;
    if (free_bytes >= FRAG_GPU_PROBE_BYTES)
        return true;
    return frag_fail(probing->error, FRAG_E_SYSTEM,
                     "the probe needs %s of free memory and the card has %s; end other programs on "
                     "it",
                     FRAG_BYTES(FRAG_GPU_PROBE_BYTES), FRAG_BYTES(free_bytes));
}

static void name_card(const frag_gpu *gpu, const frag_gpu_facts *facts,
                      frag_device_description *description)
{
    snprintf(description->name, sizeof description->name, "%.63s",
             facts->name[0] != '\0' ? facts->name : "GPU of unknown name");
    snprintf(description->cuda, sizeof description->cuda, "%d.%d, driver's %d.%d",
             facts->runtime_version / 1000, facts->runtime_version % 1000 / 10,
             facts->driver_version / 1000, facts->driver_version % 1000 / 10);
    description->origin = dlsym(gpu->cuda.library, "frag_software_reset") != NULL
                              ? FRAG_ORIGIN_SOFTWARE
                              : FRAG_ORIGIN_MEASURED;
}

static bool probe_all(frag_cuda_probing *probing, const frag_gpu_probe_options *options,
                      const frag_gpu_facts *facts, frag_device_description *description)
{
    if (!open_probing(probing) || !warm_up(probing) ||
        !find_memory(probing, options, description) ||
        !find_footprint(probing, &description->footprint) ||
        !find_alignment(probing, description) || !find_reuse(probing, description) ||
        (facts->has_virtual_memory && !find_granularity(probing, description)) ||
        (facts->has_pools && !find_pool(probing, description)) ||
        !frag_cuda_probe_times(probing, facts, &description->latency))
        return false;
    description->has_latency = true;
    /* Last: while the card is full, no call takes its usual time. */
    return !options->may_fill || find_scattered(probing, description);
}

bool frag_cuda_probe(frag_gpu *gpu, const frag_gpu_probe_options *options,
                     frag_device_description *description, frag_error *error)
{
    frag_gpu_facts facts;
    frag_cuda_probing probing = {.gpu = gpu, .cuda = &gpu->cuda, .error = error};
    frag_device_description_clear(description);
    if (!frag_gpu_facts_read(gpu, &facts, error))
        return false;
    name_card(gpu, &facts, description);
    bool ok = probe_all(&probing, options, &facts, description);
    return close_probing(&probing, ok);
}
