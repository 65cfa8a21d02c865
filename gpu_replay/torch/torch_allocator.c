#include "gpu_replay/torch/torch_allocator.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/bytes.h"
#include "base/file.h"
#include "gpu_replay/torch/torch_device.h"
#include "gpu_replay/torch/torch_raise.h"
#include "sim/policy_engine.h"
#include "sim/replay/memory_stats.h"

#define LOCK_SECONDS_MAX 5
#define EXPORTED __attribute__((visibility("default")))

/* The one state of the library: PyTorch calls its functions without a context. */
static struct {
    pthread_mutex_t lock;
    frag_torch_settings settings;
    bool is_ready; /* the settings were fine; nothing is served otherwise */
    bool is_child; /* of a fork */
    bool is_over;  /* the program is at its end, and its memory may have been given back */
    char refusal[FRAG_TORCH_MESSAGE_BYTES]; /* why not, when not */
    frag_torch_device *devices[FRAG_TORCH_DEVICE_MAX];
    uint64_t unknown_frees;
} library = {.lock = PTHREAD_MUTEX_INITIALIZER};

static _Thread_local char last_error[FRAG_TORCH_MESSAGE_BYTES];

static void say(const char *message)
{
    fprintf(stderr, "fraglab: %s\n", message);
}

static void lock(void)
{
    pthread_mutex_lock(&library.lock);
}

static void unlock(void)
{
    pthread_mutex_unlock(&library.lock);
}

/* ---- the end */

static void print_all(FILE *stream)
{
    for (uint32_t i = 0; i < FRAG_TORCH_DEVICE_MAX; i++)
        if (library.devices[i] != NULL)
            frag_torch_device_print(library.devices[i], &library.settings, stream);
    if (library.unknown_frees > 0)
        fprintf(stream, "fraglab: %llu frees of memory that is not fraglab's\n",
                (unsigned long long)library.unknown_frees);
}

static void say_error(const char *what, const frag_error *error)
{
    char text[1024];
    frag_error_text(error, text, sizeof text);
    fprintf(stderr, "fraglab: %s: %s\n", what, text);
}

static void print_stats(void)
{
    const char *path = library.settings.stats_path;
    if (path == NULL || strcmp(path, "stderr") == 0) {
        print_all(stderr);
        return;
    }
    frag_error error = {0};
    frag_output *output = frag_output_open(path, true, &error);
    if (output != NULL)
        print_all(frag_output_stream(output));
    if (output == NULL || !frag_output_finish(output, &error))
        say_error("the statistics were not written", &error);
}

static void write_recording(void)
{
    frag_torch_log_source sources[FRAG_TORCH_DEVICE_MAX];
    size_t count = 0;
    for (uint32_t i = 0; i < FRAG_TORCH_DEVICE_MAX; i++) {
        const frag_torch_device *device = library.devices[i];
        if (device == NULL)
            continue;
        sources[count++] = (frag_torch_log_source){
            .ordinal = device->ordinal,
            .log = device->log,
            .stream_handles = device->policy.stream_handles,
            .stream_count = device->stream_count,
            .pool_ids = device->policy.pool_ids,
            .pool_count = device->pools.count,
        };
        if (device->log->is_cut)
            say("the recording ends early: the host had no memory for more");
    }
    frag_error error = {0};
    if (!frag_torch_record_write(&library.settings, sources, count, &error))
        say_error("the recording was not written", &error);
}

/* A program that ends in the middle of a call (no host memory is left, say) holds the lock for
 * ever; then there is no report. */
static bool lock_at_end(void)
{
    struct timespec end;
    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += LOCK_SECONDS_MAX;
    return pthread_mutex_timedlock(&library.lock, &end) == 0;
}

static void finish(void)
{
    if (!lock_at_end())
        return;
    if (library.is_ready && !library.is_child && !library.is_over) {
        library.is_over = true;
        if (library.settings.stats_path != NULL)
            print_stats();
        if (library.settings.record_path != NULL)
            write_recording();
        for (uint32_t i = 0; i < FRAG_TORCH_DEVICE_MAX; i++)
            if (library.devices[i] != NULL)
                frag_torch_device_close(library.devices[i]);
    }
    unlock();
}

/* ---- the beginning */

static void become_child(void)
{
    library.is_child = true;
    unlock();
}

/* The environment is read once, as a program's settings do not change under it. */
__attribute__((constructor)) static void begin(void)
{
    frag_error error = {0};
    library.is_ready = frag_torch_settings_read(&library.settings, &error);
    if (!library.is_ready) {
        char text[1024];
        frag_error_text(&error, text, sizeof text);
        snprintf(library.refusal, sizeof library.refusal, "fraglab serves nothing: %s", text);
        say(library.refusal);
        return;
    }
    pthread_atfork(lock, unlock, become_child);
    atexit(finish);
}

/* ---- serving */

static void refuse(const char *message)
{
    snprintf(last_error, sizeof last_error, "%s", message);
}

/* The device of a request, opened now if need be. NULL: last_error says why. */
static frag_torch_device *device_of(int number)
{
    if (!library.is_ready || library.is_child || library.is_over) {
        refuse(library.is_child ? "fraglab serves nothing in a forked process, where CUDA does not "
                                  "work; start processes with 'spawn'"
               : library.is_over ? "fraglab serves nothing at the end of the program"
                                 : library.refusal);
        return NULL;
    }
    if (number < 0 || (uint32_t)number >= FRAG_TORCH_DEVICE_MAX) {
        refuse("fraglab knows devices 0 to 63");
        return NULL;
    }
    frag_torch_device **device = &library.devices[number];
    if (*device != NULL)
        return *device;
    frag_error error = {0};
    *device = frag_torch_device_create(&library.settings, (uint32_t)number, &error);
    if (*device == NULL) {
        char text[1024];
        frag_error_text(&error, text, sizeof text);
        refuse(text);
    }
    return *device;
}

EXPORTED void *fraglab_alloc(ssize_t bytes, int device, frag_cuda_stream stream)
{
    if (bytes == 0)
        return NULL;
    lock();
    frag_torch_device *owner = device_of(device);
    uint64_t address = 0;
    if (owner != NULL)
        address = frag_torch_device_alloc(owner, (uint64_t)bytes, stream, last_error);
    unlock();
    if (address == 0) {
        say(last_error);
        frag_torch_raise(last_error);
    }
    return (void *)(uintptr_t)address;
}

/* Most pointers belong to the device that they come with. */
static bool free_somewhere(uint64_t address, int device, frag_cuda_stream stream)
{
    bool is_named = device >= 0 && (uint32_t)device < FRAG_TORCH_DEVICE_MAX;
    if (is_named && library.devices[device] != NULL &&
        frag_torch_device_free(library.devices[device], address, stream))
        return true;
    for (uint32_t i = 0; i < FRAG_TORCH_DEVICE_MAX; i++)
        if (library.devices[i] != NULL &&
            frag_torch_device_free(library.devices[i], address, stream))
            return true;
    return false;
}

EXPORTED void fraglab_free(void *pointer, ssize_t bytes, int device, frag_cuda_stream stream)
{
    (void)bytes;
    if (pointer == NULL)
        return;
    lock();
    if (!library.is_child && !free_somewhere((uint64_t)(uintptr_t)pointer, device, stream) &&
        library.unknown_frees++ == 0)
        fprintf(stderr, "fraglab: a free of %p, which is not fraglab's; further ones are counted\n",
                pointer);
    unlock();
}

EXPORTED void fraglab_record_stream(void *pointer, frag_cuda_stream stream)
{
    lock();
    bool is_found = pointer == NULL || library.is_child || library.is_over;
    for (uint32_t i = 0; i < FRAG_TORCH_DEVICE_MAX && !is_found; i++)
        is_found = library.devices[i] != NULL &&
                   frag_torch_device_use(library.devices[i], (uint64_t)(uintptr_t)pointer, stream);
    unlock();
}

EXPORTED void fraglab_empty_cache(void)
{
    lock();
    for (uint32_t i = 0; i < FRAG_TORCH_DEVICE_MAX; i++)
        if (library.devices[i] != NULL && !library.is_child && !library.is_over)
            frag_torch_device_empty_cache(library.devices[i]);
    unlock();
}

EXPORTED void fraglab_set_memory_fraction(double fraction, int device)
{
    lock();
    frag_torch_device *owner = device_of(device);
    bool is_set = owner != NULL && frag_torch_device_limit(owner, fraction);
    if (owner != NULL && !is_set)
        snprintf(last_error, sizeof last_error,
                 "the policy %s has no limit to set; FRAGLAB_CAPACITY holds for every policy",
                 library.settings.policy.ops->name);
    unlock();
    if (!is_set) {
        say(last_error);
        frag_torch_raise(last_error);
    }
}

EXPORTED void *fraglab_base_allocation(void *pointer, size_t *bytes)
{
    uint64_t base = (uint64_t)(uintptr_t)pointer;
    uint64_t found = 0;
    lock();
    for (uint32_t i = 0; i < FRAG_TORCH_DEVICE_MAX && !library.is_over; i++)
        if (library.devices[i] != NULL &&
            frag_torch_device_segment(library.devices[i], (uint64_t)(uintptr_t)pointer, &base,
                                      &found))
            break;
    unlock();
    if (bytes != NULL)
        *bytes = (size_t)found;
    return (void *)(uintptr_t)base;
}

/* ---- private pools */

EXPORTED void fraglab_begin_allocate_to_pool(int device, frag_pool_id pool,
                                             const frag_torch_filter *filter)
{
    lock();
    frag_torch_device *owner = device_of(device);
    bool is_open = owner != NULL && frag_torch_device_pool_begin(owner, pool, filter, last_error);
    unlock();
    if (!is_open) {
        say(last_error);
        frag_torch_raise(last_error);
    }
}

EXPORTED void fraglab_end_allocate_to_pool(int device, frag_pool_id pool)
{
    lock();
    frag_torch_device *owner = device_of(device);
    if (owner != NULL)
        frag_torch_device_pool_end(owner, pool);
    unlock();
}

EXPORTED void fraglab_release_pool(int device, frag_pool_id pool)
{
    lock();
    frag_torch_device *owner = device_of(device);
    if (owner != NULL)
        frag_torch_device_pool_release(owner, pool);
    unlock();
}

/* ---- asking the library */

EXPORTED const char *fraglab_last_error(void)
{
    return library.is_ready ? last_error : library.refusal;
}

typedef struct stat_search {
    const char *name;
    long long value;
} stat_search;

static void look_at_stat(void *context, const char *name, int64_t value)
{
    stat_search *search = context;
    if (strcmp(name, search->name) == 0)
        search->value = value;
}

EXPORTED long long fraglab_stat(int device, const char *name)
{
    stat_search search = {.name = name, .value = -1};
    lock();
    if (device >= 0 && (uint32_t)device < FRAG_TORCH_DEVICE_MAX &&
        library.devices[device] != NULL) {
        const frag_torch_device *owner = library.devices[device];
        frag_torch_counts_visit(&owner->counts, look_at_stat, &search);
        if (search.value == -1 && frag_policy_engine_of(owner->policy.ops)->statistics != NULL)
            frag_policy_engine_of(owner->policy.ops)
                ->statistics->visit(owner->policy.policy, look_at_stat, &search);
    }
    unlock();
    return search.value;
}

EXPORTED void fraglab_print_stats(void)
{
    lock();
    if (!library.is_child)
        print_stats();
    unlock();
}
