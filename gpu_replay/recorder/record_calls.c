#define _GNU_SOURCE
#include "gpu_replay/recorder/record_calls.h"

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "gpu_replay/recorder/record_dlsym.h"
#include "gpu_replay/recorder/record_log.h"

typedef struct known_call {
    const char *name;
    frag_code ours; /* NULL: a helper */
} known_call;

static const known_call known_calls[FRAG_REAL_COUNT] = {
#define KNOWN_CALL(call) [FRAG_REAL_##call] = {#call, (frag_code)call},
#define KNOWN_HELPER(call) [FRAG_REAL_##call] = {#call, NULL},
    FRAG_RUNTIME_CALLS(KNOWN_CALL) FRAG_DRIVER_CALLS(KNOWN_CALL) FRAG_HELPER_CALLS(KNOWN_HELPER)
#undef KNOWN_CALL
#undef KNOWN_HELPER
};

static _Atomic(frag_code) reals[FRAG_REAL_COUNT];

/* Calls that this thread is inside of. */
static _Thread_local uint32_t depth;

/* ---- the real functions */

/* The standards keep objects and functions apart; dlsym does not. */
static frag_code code_of(void *pointer)
{
    frag_code code;
    memcpy(&code, &pointer, sizeof code);
    return code;
}

static void *pointer_of(frag_code code)
{
    void *pointer;
    memcpy(&pointer, &code, sizeof pointer);
    return pointer;
}

static int answer_unknown(void)
{
    return FRAG_CUDA_UNKNOWN;
}

static frag_code find_in(void *library, const char *name)
{
    frag_dlsym *real = frag_dlsym_real();
    return real != NULL ? code_of(real(library, name)) : NULL;
}

#define LIBRARIES_MAX 4

typedef struct library_list {
    const char *start; /* of the file's name */
    char paths[LIBRARIES_MAX][PATH_MAX];
    uint32_t count;
} library_list;

static int add_library(struct dl_phdr_info *info, size_t bytes, void *context)
{
    (void)bytes;
    library_list *list = context;
    const char *slash = strrchr(info->dlpi_name, '/');
    const char *name = slash != NULL ? slash + 1 : info->dlpi_name;
    if (strncmp(name, list->start, strlen(list->start)) == 0 && list->count < LIBRARIES_MAX)
        snprintf(list->paths[list->count++], PATH_MAX, "%s", info->dlpi_name);
    return 0;
}

/* Python loads its modules and what they need out of sight of everybody else, and packages rename
 * their copy of the runtime: only the list of what is loaded finds it for certain. Libraries are
 * opened only when the list is complete, as the loader's locks are held until then. */
static frag_code find_loaded(const known_call *known)
{
    library_list list = {.start =
                             strncmp(known->name, "cuda", 4) == 0 ? "libcudart" : "libcuda.so"};
    dl_iterate_phdr(add_library, &list);
    for (uint32_t i = 0; i < list.count; i++) {
        void *library = dlopen(list.paths[i], RTLD_LAZY | RTLD_NOLOAD);
        if (library == NULL)
            continue;
        frag_code found = find_in(library, known->name);
        dlclose(library);
        if (found != NULL && found != known->ours)
            return found;
    }
    return NULL;
}

static frag_code find_real(frag_real_id id)
{
    const known_call *known = &known_calls[id];
    frag_code found = find_in(RTLD_NEXT, known->name);
    return found != NULL && found != known->ours ? found : find_loaded(known);
}

static frag_code known_real(frag_real_id id)
{
    frag_code real = atomic_load_explicit(&reals[id], memory_order_acquire);
    if (real != NULL)
        return real;
    real = find_real(id);
    if (real != NULL)
        atomic_store_explicit(&reals[id], real, memory_order_release);
    return real;
}

frag_code frag_real(frag_real_id id)
{
    frag_code real = known_real(id);
    return real != NULL ? real : (frag_code)answer_unknown;
}

void *frag_real_replace(const char *name, void *found)
{
    if (found == NULL)
        return NULL;
    /* The way may lead back here, also where the program has nothing of CUDA at all. */
    for (uint32_t id = 0; id < FRAG_REAL_COUNT; id++)
        if (known_calls[id].ours != NULL && known_calls[id].ours == code_of(found))
            return known_real((frag_real_id)id) != NULL ? found : NULL;
    for (uint32_t id = 0; id < FRAG_REAL_COUNT; id++) {
        const known_call *known = &known_calls[id];
        if (known->ours == NULL || strcmp(known->name, name) != 0)
            continue;
        frag_code none = NULL;
        atomic_compare_exchange_strong(&reals[id], &none, code_of(found));
        return pointer_of(known->ours);
    }
    return found;
}

/* ---- around a call */

typedef int get_number(int *number);
typedef int get_memory(size_t *free_bytes, size_t *total_bytes);

static uint16_t device_of(frag_real_id id)
{
    int device = -1;
    get_number *get = (get_number *)frag_real(id);
    return get(&device) == 0 && device >= 0 && device < FRAG_DEVICE_UNKNOWN ? (uint16_t)device
                                                                            : FRAG_DEVICE_UNKNOWN;
}

uint16_t frag_call_device_runtime(void)
{
    return device_of(FRAG_REAL_cudaGetDevice);
}

uint16_t frag_call_device_driver(void)
{
    return device_of(FRAG_REAL_cuCtxGetDevice);
}

uint64_t frag_call_attribute(int attribute, const void *value)
{
    if (value == NULL)
        return 0;
    uint64_t wide = 0;
    int narrow = 0;
    if (attribute >= FRAG_CUDA_POOL_RELEASE_THRESHOLD) {
        memcpy(&wide, value, sizeof wide);
        return wide;
    }
    memcpy(&narrow, value, sizeof narrow);
    return (uint64_t)narrow;
}

static uint32_t version_of(frag_real_id id)
{
    int version = 0;
    get_number *get = (get_number *)frag_real(id);
    return get(&version) == 0 && version > 0 ? (uint32_t)version : 0;
}

static void note_versions(bool is_driver)
{
    depth++;
    uint32_t runtime = is_driver ? 0 : version_of(FRAG_REAL_cudaRuntimeGetVersion);
    uint32_t driver =
        version_of(is_driver ? FRAG_REAL_cuDriverGetVersion : FRAG_REAL_cudaDriverGetVersion);
    frag_record_versions(runtime, driver);
    depth--;
}

static uint64_t free_bytes(bool is_driver)
{
    size_t bytes = 0;
    size_t total = 0;
    get_memory *get =
        (get_memory *)frag_real(is_driver ? FRAG_REAL_cuMemGetInfo_v2 : FRAG_REAL_cudaMemGetInfo);
    return get(&bytes, &total) == 0 ? bytes : 0;
}

static bool is_taking(uint8_t call)
{
    return call == FRAG_LOG_MALLOC || call == FRAG_LOG_MALLOC_ASYNC || call == FRAG_LOG_CREATE;
}

frag_call frag_call_begin(bool is_giving_back)
{
    frag_call call = {.place = FRAG_RECORD_NONE, .is_recorded = depth++ == 0};
    if (call.is_recorded && is_giving_back) {
        call.place = frag_record_claim();
        call.is_claimed = true;
    }
    if (call.is_recorded)
        call.start_ns = frag_record_now();
    return call;
}

void frag_call_end(const frag_call *call, int result, frag_device_record record)
{
    if (call->is_recorded) {
        uint64_t duration = frag_record_now() - call->start_ns;
        uint64_t place = call->is_claimed ? call->place : frag_record_claim();
        bool is_driver = (record.flags & FRAG_LOG_BY_DRIVER) != 0;
        record.time_ns = call->start_ns;
        record.duration_ns = duration < UINT32_MAX ? (uint32_t)duration : UINT32_MAX;
        record.result = result;
        if (result == FRAG_CUDA_OUT_OF_MEMORY && is_taking(record.call))
            record.address = free_bytes(is_driver);
        frag_record_write(place, &record);
        if (frag_record_wants_versions())
            note_versions(is_driver);
    }
    depth--;
}
