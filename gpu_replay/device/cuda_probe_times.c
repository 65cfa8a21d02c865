/* Times of calls. Each kind is made some times unseen, then timed one by one on an idle card; the
 * first calls of a kind load code and fill the driver's caches. */
#include "gpu_replay/device/cuda_probe.h"

#include <stdlib.h>
#include <time.h>

#include "base/bytes.h"

enum { UNSEEN = 5, SAMPLES_MAX = 61, SAMPLES_MIN = 11 };

/* A point ends early, with SAMPLES_MIN at least, when it has taken so long. */
#define POINT_NS_MAX 100e6

typedef struct timing {
    frag_cuda_probing *probing;
    uint64_t bytes;
    /* of the block or range being timed */
    void *block;
    frag_cuda_address range;
    frag_cuda_handle handle;
    const char *call; /* that was made last */
} timing;

/* A CUDA function, whose name is remembered for an error. */
#define NAMED(run, name) ((run)->call = #name, (run)->probing->cuda->name)

/* A pair of calls that undo each other, or a call that needs no undoing (second NULL). Each returns
 * the code of the CUDA call that failed. */
typedef struct timed {
    frag_device_call first;
    frag_device_call second;
    int (*make)(timing *run);
    int (*undo)(timing *run);
    const uint64_t *sizes; /* ends with 0; NULL: no size */
} timed;

static double now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

/* ---- the calls */

static int make_block(timing *run)
{
    return NAMED(run, cudaMalloc)(&run->block, (size_t)run->bytes);
}

static int undo_block(timing *run)
{
    return NAMED(run, cudaFree)(run->block);
}

static int make_async(timing *run)
{
    return NAMED(run, cudaMallocFromPoolAsync)(&run->block, (size_t)run->bytes, run->probing->pool,
                                               run->probing->stream);
}

static int undo_async(timing *run)
{
    return NAMED(run, cudaFreeAsync)(run->block, run->probing->stream);
}

static int make_reserve(timing *run)
{
    return NAMED(run, cuMemAddressReserve)(&run->range, (size_t)run->bytes, 0, 0, 0);
}

static int undo_reserve(timing *run)
{
    return NAMED(run, cuMemAddressFree)(run->range, (size_t)run->bytes);
}

/* In one piece, and undone when a step fails. */
static int make_map(timing *run)
{
    frag_cuda_memory_properties properties = frag_gpu_memory_properties(run->probing->gpu);
    frag_cuda_access access = {properties.location, FRAG_CUDA_READ_WRITE};
    size_t bytes = (size_t)run->bytes;
    int code = NAMED(run, cuMemCreate)(&run->handle, bytes, &properties, 0);
    if (code != FRAG_CUDA_OK)
        return code;
    code = NAMED(run, cuMemMap)(run->range, bytes, 0, run->handle, 0);
    if (code == FRAG_CUDA_OK) {
        code = NAMED(run, cuMemSetAccess)(run->range, bytes, &access, 1);
        if (code == FRAG_CUDA_OK)
            return code;
        run->probing->cuda->cuMemUnmap(run->range, bytes);
    }
    run->probing->cuda->cuMemRelease(run->handle);
    return code;
}

/* The handle goes even when its mapping does not: one of the two is the last. */
static int undo_map(timing *run)
{
    int unmapped = run->probing->cuda->cuMemUnmap(run->range, (size_t)run->bytes);
    int released = NAMED(run, cuMemRelease)(run->handle);
    if (unmapped == FRAG_CUDA_OK)
        return released;
    run->call = "cuMemUnmap";
    return unmapped;
}

static int make_info(timing *run)
{
    size_t free_bytes = 0;
    size_t total_bytes = 0;
    return NAMED(run, cudaMemGetInfo)(&free_bytes, &total_bytes);
}

static int make_synchronize(timing *run)
{
    return NAMED(run, cudaDeviceSynchronize)();
}

static int make_record(timing *run)
{
    return NAMED(run, cudaEventRecord)(run->probing->event, run->probing->stream);
}

/* The event is done unless the card is slow to say so. */
static int make_query(timing *run)
{
    int code = NAMED(run, cudaEventQuery)(run->probing->event);
    if (code != FRAG_CUDA_NOT_READY)
        return code;
    run->probing->cuda->cudaGetLastError();
    return FRAG_CUDA_OK;
}

static int make_event_wait(timing *run)
{
    return NAMED(run, cudaEventSynchronize)(run->probing->event);
}

static int make_stream_wait(timing *run)
{
    return NAMED(run, cudaStreamSynchronize)(run->probing->stream);
}

/* ---- timing one */

typedef struct samples {
    double ns[SAMPLES_MAX];
    uint32_t count;
} samples;

static int compare_times(const void *left, const void *right)
{
    double a = *(const double *)left;
    double b = *(const double *)right;
    return a < b ? -1 : a > b;
}

static void add_point(frag_latency *latency, uint64_t bytes, samples *taken)
{
    if (latency->count == FRAG_LATENCY_POINTS_MAX || taken->count == 0)
        return;
    qsort(taken->ns, taken->count, sizeof *taken->ns, compare_times);
    uint32_t last = taken->count - 1;
    latency->points[latency->count++] = (frag_latency_point){
        .bytes = bytes,
        .median_ns = taken->ns[last / 2],
        .p10_ns = taken->ns[last / 10],
        .p90_ns = taken->ns[last - last / 10],
        .samples = taken->count,
    };
    frag_latency_extend(latency);
}

/* Out of memory ends a point: larger ones than the card has now are left out. */
static bool time_size(const timed *what, timing *run, frag_latency_table *table)
{
    frag_cuda_probing *probing = run->probing;
    samples first = {.count = 0};
    samples second = {.count = 0};
    double start = now_ns();
    for (int i = 0; i < UNSEEN + SAMPLES_MAX; i++) {
        if (first.count >= SAMPLES_MIN && now_ns() - start > POINT_NS_MAX)
            break;
        double before = now_ns();
        int code = what->make(run);
        double between = now_ns();
        if (code == FRAG_CUDA_OUT_OF_MEMORY) {
            probing->cuda->cudaGetLastError();
            return true;
        }
        if (!frag_cuda_probing_ok(probing, run->call, code))
            return false;
        double begin = now_ns();
        code = what->undo != NULL ? what->undo(run) : FRAG_CUDA_OK;
        double after = now_ns();
        if (!frag_cuda_probing_ok(probing, run->call, code)) {
            /* Nothing may stay, and a call that failed once may do it now. */
            what->undo(run);
            return false;
        }
        if (i < UNSEEN)
            continue;
        first.ns[first.count++] = between - before;
        second.ns[second.count++] = after - begin;
    }
    add_point(&table->calls[what->first], run->bytes, &first);
    if (what->undo != NULL)
        add_point(&table->calls[what->second], run->bytes, &second);
    return true;
}

static bool time_one(const timed *what, timing *run, uint64_t bytes_max, frag_latency_table *table)
{
    run->bytes = 0;
    if (what->sizes == NULL)
        return time_size(what, run, table);
    for (size_t i = 0; what->sizes[i] != 0 && what->sizes[i] <= bytes_max; i++) {
        run->bytes = what->sizes[i];
        if (!time_size(what, run, table))
            return false;
    }
    return true;
}

/* ---- all of them */

static const uint64_t block_sizes[] = {4 * FRAG_KIB,   64 * FRAG_KIB, FRAG_MIB,
                                       2 * FRAG_MIB,   20 * FRAG_MIB, 64 * FRAG_MIB,
                                       256 * FRAG_MIB, FRAG_GIB,      0};
static const uint64_t range_sizes[] = {2 * FRAG_MIB,   20 * FRAG_MIB, 64 * FRAG_MIB,
                                       256 * FRAG_MIB, FRAG_GIB,      0};

static bool time_list(const timed *list, size_t count, timing *run, uint64_t bytes_max,
                      frag_latency_table *table)
{
    for (size_t i = 0; i < count; i++)
        if (!time_one(&list[i], run, bytes_max, table))
            return false;
    return true;
}

static bool time_virtual(timing *run, uint64_t bytes_max, frag_latency_table *table)
{
    static const timed reserve = {FRAG_DEVICE_RESERVE, FRAG_DEVICE_UNRESERVE, make_reserve,
                                  undo_reserve, range_sizes};
    static const timed map = {FRAG_DEVICE_MAP, FRAG_DEVICE_UNMAP, make_map, undo_map, range_sizes};
    frag_cuda_probing *probing = run->probing;
    if (!time_one(&reserve, run, bytes_max, table))
        return false;
    run->bytes = FRAG_GIB;
    if (!frag_cuda_probing_ok(probing, "cuMemAddressReserve", make_reserve(run)))
        return false;
    bool ok = time_one(&map, run, bytes_max, table);
    run->bytes = FRAG_GIB;
    int code = undo_reserve(run);
    return ok && frag_cuda_probing_ok(probing, "cuMemAddressFree", code);
}

/* With the pool kept filled: what a program pays once it runs. */
static bool time_pool(timing *run, uint64_t bytes_max, frag_latency_table *table)
{
    static const timed async = {FRAG_DEVICE_MALLOC_ASYNC, FRAG_DEVICE_FREE_ASYNC, make_async,
                                undo_async, block_sizes};
    frag_cuda_probing *probing = run->probing;
    bool ok = time_one(&async, run, bytes_max, table);
    int waited = probing->cuda->cudaStreamSynchronize(probing->stream);
    int trimmed = probing->cuda->cudaMemPoolTrimTo(probing->pool, 0);
    return ok && frag_cuda_probing_ok(probing, "cudaStreamSynchronize", waited) &&
           frag_cuda_probing_ok(probing, "cudaMemPoolTrimTo", trimmed);
}

bool frag_cuda_probe_times(frag_cuda_probing *probing, const frag_gpu_facts *facts,
                           frag_latency_table *table)
{
    static const timed list[] = {
        {FRAG_DEVICE_MALLOC, FRAG_DEVICE_FREE, make_block, undo_block, block_sizes},
        {FRAG_DEVICE_MEMORY_INFO, 0, make_info, NULL, NULL},
        {FRAG_DEVICE_SYNCHRONIZE, 0, make_synchronize, NULL, NULL},
        {FRAG_DEVICE_EVENT_RECORD, 0, make_record, NULL, NULL},
        {FRAG_DEVICE_STREAM_WAIT, 0, make_stream_wait, NULL, NULL},
        {FRAG_DEVICE_EVENT_QUERY, 0, make_query, NULL, NULL},
        {FRAG_DEVICE_EVENT_WAIT, 0, make_event_wait, NULL, NULL},
    };
    timing run = {.probing = probing};
    uint64_t free_bytes = 0;
    if (!frag_cuda_probing_free_bytes(probing, &free_bytes, NULL))
        return false;
    /* What programs beside us may need stays free. */
    uint64_t bytes_max = free_bytes / 4;
    return time_list(list, sizeof list / sizeof list[0], &run, bytes_max, table) &&
           (!facts->has_virtual_memory || time_virtual(&run, bytes_max, table)) &&
           (!facts->has_pools || time_pool(&run, bytes_max, table));
}
