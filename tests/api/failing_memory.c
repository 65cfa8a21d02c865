#include "tests/api/failing_memory.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

#include "include/fraglab.h"

static atomic_long calls_until_failure; /* 0: never */
static atomic_long live_count;

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t item_bytes);
void *__real_realloc(void *memory, size_t bytes);
void __real_free(void *memory);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t count, size_t item_bytes);
void *__wrap_realloc(void *memory, size_t bytes);
void __wrap_free(void *memory);

static bool fails(void)
{
    return atomic_load(&calls_until_failure) > 0 && atomic_fetch_sub(&calls_until_failure, 1) == 1;
}

/* What was allocated here and not yet freed: memory of the C library passes through free alone.
 * Neighbours in memory are neighbours here, and 128 MiB of it do not meet. */
enum { PLACES = 1 << 23 };
static void *places[PLACES];
static pthread_mutex_t places_lock = PTHREAD_MUTEX_INITIALIZER;

static size_t place_of(const void *memory)
{
    size_t at = ((uintptr_t)memory >> 4) % PLACES;
    while (places[at] != NULL && places[at] != memory)
        at = (at + 1) % PLACES;
    return at;
}

/* Those behind a place that becomes free move up. */
static void forget(const void *memory)
{
    pthread_mutex_lock(&places_lock);
    size_t at = place_of(memory);
    if (memory != NULL && places[at] == memory) {
        places[at] = NULL;
        atomic_fetch_sub(&live_count, 1);
        for (size_t next = (at + 1) % PLACES; places[next] != NULL; next = (next + 1) % PLACES) {
            void *moved = places[next];
            places[next] = NULL;
            places[place_of(moved)] = moved;
        }
    }
    pthread_mutex_unlock(&places_lock);
}

static void *counted(void *memory)
{
    pthread_mutex_lock(&places_lock);
    if (memory != NULL) {
        places[place_of(memory)] = memory;
        atomic_fetch_add(&live_count, 1);
    }
    pthread_mutex_unlock(&places_lock);
    return memory;
}

void *__wrap_malloc(size_t bytes)
{
    return fails() ? NULL : counted(__real_malloc(bytes));
}

void *__wrap_calloc(size_t count, size_t item_bytes)
{
    return fails() ? NULL : counted(__real_calloc(count, item_bytes));
}

void *__wrap_realloc(void *memory, size_t bytes)
{
    if (fails())
        return NULL;
    forget(memory);
    return counted(__real_realloc(memory, bytes));
}

void __wrap_free(void *memory)
{
    forget(memory);
    __real_free(memory);
}

long frag_live_memory(void)
{
    return atomic_load(&live_count);
}

/* ---- what a call leaves behind */

static int open_descriptors(void)
{
    int count = 0;
    for (int descriptor = 0; descriptor < 256; descriptor++)
        count += fcntl(descriptor, F_GETFD) != -1;
    return count;
}

/* false: it was not reached. */
static bool call_failing(const char *name, frag_call_to_try *call, void *argument, long allocation,
                         int *code)
{
    long before = frag_live_memory();
    atomic_store(&calls_until_failure, allocation);
    *code = call(argument);
    bool has_failed = atomic_exchange(&calls_until_failure, 0) <= 0;
    if (frag_live_memory() != before)
        fail_msg("%s kept %ld pieces when allocation %ld failed", name, frag_live_memory() - before,
                 allocation);
    return has_failed;
}

void frag_expect_memory_may_fail(const char *name, frag_call_to_try *call, void *argument)
{
    assert_int_equal(call(argument), FRAGLAB_OK);
    int descriptors = open_descriptors();
    int code = FRAGLAB_E_MEMORY;
    long failures = 0;
    for (long n = 1; code == FRAGLAB_E_MEMORY; n += 1 + n / 64) {
        bool has_failed = call_failing(name, call, argument, n, &code);
        failures += has_failed;
        if (has_failed && code == FRAGLAB_OK)
            code = FRAGLAB_E_MEMORY; /* did without, as qsort does */
    }
    assert_int_equal(open_descriptors(), descriptors);
    if (code != FRAGLAB_OK || failures < 2)
        fail_msg("%s: code %d after %ld failures", name, code, failures);
}
