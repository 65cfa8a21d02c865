#include "gpu_replay/software/libraries/standin.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAGIC UINT64_C(0x6672616768616e64)

/* Live handles are on a list, so that a leak checker sees them reached. */
typedef struct handle {
    uint64_t magic;
    struct handle *next;
    struct handle *previous;
    uint64_t fields[FRAG_STANDIN_FIELDS];
} handle;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static handle *first;
static int32_t last_number;

void *frag_standin_new(void)
{
    handle *made = calloc(1, sizeof *made);
    if (made == NULL) {
        fputs("software CUDA: out of host memory for a handle\n", stderr);
        abort();
    }
    made->magic = MAGIC;
    pthread_mutex_lock(&lock);
    made->next = first;
    if (first != NULL)
        first->previous = made;
    first = made;
    pthread_mutex_unlock(&lock);
    return made;
}

static handle *find(const void *pointer)
{
    handle *found = (handle *)(uintptr_t)pointer;
    return found != NULL && found->magic == MAGIC ? found : NULL;
}

void frag_standin_end(void *pointer)
{
    handle *ended = find(pointer);
    if (ended == NULL)
        return;
    pthread_mutex_lock(&lock);
    if (ended->next != NULL)
        ended->next->previous = ended->previous;
    if (ended->previous != NULL)
        ended->previous->next = ended->next;
    else
        first = ended->next;
    pthread_mutex_unlock(&lock);
    ended->magic = 0;
    free(ended);
}

uint64_t frag_standin_get(const void *pointer, unsigned field)
{
    const handle *found = find(pointer);
    return found == NULL || field >= FRAG_STANDIN_FIELDS ? 0 : found->fields[field];
}

void frag_standin_set(void *pointer, unsigned field, uint64_t value)
{
    handle *found = find(pointer);
    if (found != NULL && field < FRAG_STANDIN_FIELDS)
        found->fields[field] = value;
}

int32_t frag_standin_new_number(void)
{
    pthread_mutex_lock(&lock);
    int32_t number = ++last_number;
    pthread_mutex_unlock(&lock);
    return number;
}

void frag_standin_zero(void *out, uint64_t bytes)
{
    if (out != NULL)
        memset(out, 0, bytes);
}

int32_t frag_standin_version_part(uint64_t property)
{
    return property == 0 ? FRAG_CUDART : property == 1 ? FRAG_STANDIN_MINOR : 0;
}

const char *frag_standin_cublas_status(int32_t status)
{
    static const char *const names[] = {
        [0] = "CUBLAS_STATUS_SUCCESS",           [1] = "CUBLAS_STATUS_NOT_INITIALIZED",
        [3] = "CUBLAS_STATUS_ALLOC_FAILED",      [7] = "CUBLAS_STATUS_INVALID_VALUE",
        [8] = "CUBLAS_STATUS_ARCH_MISMATCH",     [11] = "CUBLAS_STATUS_MAPPING_ERROR",
        [13] = "CUBLAS_STATUS_EXECUTION_FAILED", [14] = "CUBLAS_STATUS_INTERNAL_ERROR",
        [15] = "CUBLAS_STATUS_NOT_SUPPORTED",    [16] = "CUBLAS_STATUS_LICENSE_ERROR",
    };
    bool is_known = status >= 0 && (size_t)status < sizeof names / sizeof *names;
    return is_known && names[status] != NULL ? names[status] : "CUBLAS_STATUS_UNKNOWN";
}

uint64_t frag_standin_size(const char *function, const char *what, uint64_t low, uint64_t high,
                           uint64_t unit_bytes)
{
    if (high == 0)
        return 0;
    uint64_t answered = frag_software_note_uncertain(function, what, low, high);
    return (answered + unit_bytes - 1) / unit_bytes;
}

int32_t frag_standin_size32(const char *function, const char *what, uint64_t low, uint64_t high,
                            uint64_t unit_bytes)
{
    uint64_t most = (uint64_t)INT32_MAX * unit_bytes;
    low = low < most ? low : most;
    high = high < most ? high : most;
    uint64_t units = frag_standin_size(function, what, low, high, unit_bytes);
    return units > INT32_MAX ? INT32_MAX : (int32_t)units;
}
