/* Receives whose bytes are not there yet. The real library puts them on a stream and returns, so
 * two ranks may both ask before either sends. A rank can only notice the difference where it reads
 * those bytes: there it waits, as the host would wait for the stream. */
#include "gpu_replay/software/libraries/nccl/nccl_types.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "gpu_replay/software/software_cuda.h"

static struct {
    pthread_mutex_t lock; /* taken before that of the software device, never after it */
    size_t count, capacity;
    frag_nccl_work *works; /* in the order of their calls */
} late = {.lock = PTHREAD_MUTEX_INITIALIZER};

static bool overlaps(const frag_nccl_work *work, const void *address, size_t bytes)
{
    uintptr_t from = (uintptr_t)work->receive, other = (uintptr_t)address;
    return from < other + bytes && other < from + work->piece_bytes;
}

static bool take_all(void)
{
    size_t left = 0;
    for (size_t i = 0; i < late.count; i++) {
        frag_nccl_advance(&late.works[i]);
        if (!late.works[i].is_done)
            late.works[left++] = late.works[i];
    }
    bool has_taken = left < late.count;
    late.count = left;
    return has_taken;
}

bool frag_nccl_take_late(void)
{
    pthread_mutex_lock(&late.lock);
    bool has_taken = take_all();
    pthread_mutex_unlock(&late.lock);
    return has_taken;
}

static frag_nccl_work *find(const void *address, size_t bytes)
{
    for (size_t i = 0; i < late.count; i++)
        if (!late.works[i].is_overwritten && overlaps(&late.works[i], address, bytes))
            return &late.works[i];
    return NULL;
}

/* The first that waits for the same rank: those behind it are taken after it. */
static frag_nccl_work *first_like(const frag_nccl_work *work)
{
    size_t i = 0;
    while (late.works[i].communicator != work->communicator || late.works[i].peer != work->peer)
        i++;
    return &late.works[i];
}

/* An error stays with the communicator, which every later call returns; nothing of it comes. */
static void drop(const frag_nccl_communicator *communicator)
{
    size_t left = 0;
    for (size_t i = 0; i < late.count; i++)
        if (late.works[i].communicator != communicator)
            late.works[left++] = late.works[i];
    late.count = left;
}

/* One try; true: nothing of these bytes is to come any more. */
static bool settle(const void *address, size_t bytes, bool is_trouble_due, double deadline)
{
    pthread_mutex_lock(&late.lock);
    take_all();
    frag_nccl_work *left = find(address, bytes);
    if (left != NULL && is_trouble_due &&
        frag_nccl_look_for_trouble(first_like(left), deadline) != FRAG_NCCL_SUCCESS) {
        drop(left->communicator);
        left = find(address, bytes);
    }
    pthread_mutex_unlock(&late.lock);
    return left == NULL;
}

static void be_asked(const void *address, size_t bytes, bool is_read)
{
    double deadline = frag_nccl_now() + frag_nccl_timeout_seconds();
    if (!is_read) {
        frag_nccl_overwrite(address, bytes);
        return;
    }
    for (unsigned i = 1; !settle(address, bytes, i % 64 == 0, deadline); i++)
        nanosleep(&(struct timespec){.tv_nsec = i < 1000 ? 50000 : 1000000}, NULL);
}

frag_nccl_result frag_nccl_put_off(const frag_nccl_work *work)
{
    pthread_mutex_lock(&late.lock);
    if (late.count == late.capacity) {
        size_t capacity = late.capacity > 0 ? 2 * late.capacity : 16;
        frag_nccl_work *works = realloc(late.works, capacity * sizeof *works);
        if (works == NULL) {
            pthread_mutex_unlock(&late.lock);
            return FRAG_NCCL_SYSTEM_ERROR;
        }
        late.works = works;
        late.capacity = capacity;
    }
    late.works[late.count++] = *work;
    pthread_mutex_unlock(&late.lock);
    frag_software_handle_late(be_asked);
    return FRAG_NCCL_SUCCESS;
}

void frag_nccl_drop_late(const frag_nccl_communicator *communicator)
{
    pthread_mutex_lock(&late.lock);
    take_all();
    drop(communicator);
    pthread_mutex_unlock(&late.lock);
}

void frag_nccl_overwrite(const void *address, size_t bytes)
{
    pthread_mutex_lock(&late.lock);
    for (size_t i = 0; i < late.count; i++)
        if (overlaps(&late.works[i], address, bytes))
            late.works[i].is_overwritten = true;
    pthread_mutex_unlock(&late.lock);
}
