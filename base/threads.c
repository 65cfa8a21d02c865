/* The set of cores a process may use has no POSIX name. */
#define _GNU_SOURCE 1
#include "base/threads.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <unistd.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/scope.h"

typedef struct team {
    atomic_uint_fast64_t next;
    uint64_t count;
    void (*job)(void *context, uint64_t index);
    void *context;
    frag_scope *scope; /* NULL: none is active */
} team;

static void do_jobs(void *argument)
{
    team *mine = argument;
    uint64_t index;
    while (!frag_scope_has_failed(mine->scope) &&
           (index = atomic_fetch_add(&mine->next, 1)) < mine->count)
        mine->job(mine->context, index);
}

/* Where host memory fails the others are waited for, before the call ends. */
static void *work(void *argument)
{
    team *mine = argument;
    frag_scope_help(mine->scope, do_jobs, mine);
    return NULL;
}

/* Those that this process may use, or 0 where the system does not say. */
static uint32_t allowed_cores(void)
{
#ifdef __linux__
    cpu_set_t cores;
    if (sched_getaffinity(0, sizeof cores, &cores) == 0 && CPU_COUNT(&cores) > 0)
        return (uint32_t)CPU_COUNT(&cores);
#endif
    return 0;
}

uint32_t frag_core_count(void)
{
    uint32_t allowed = allowed_cores();
    if (allowed > 0)
        return allowed;
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    return online > 0 ? (uint32_t)online : 1;
}

void frag_for_each(uint32_t threads, uint64_t count, void (*job)(void *context, uint64_t index),
                   void *context)
{
    team all = {.count = count, .job = job, .context = context, .scope = frag_scope_active()};
    atomic_init(&all.next, 0);
    uint32_t wanted = count < threads ? (uint32_t)count : threads;
    uint32_t started = 0;
    pthread_t *helpers = frag_alloc(wanted, sizeof *helpers);
    /* This thread works too, and does it all where the system refuses more threads. */
    while (started + 1 < wanted && pthread_create(&helpers[started], NULL, work, &all) == 0)
        started++;
    work(&all);
    for (uint32_t i = 0; i < started; i++)
        pthread_join(helpers[i], NULL);
    frag_free(helpers);
    frag_scope_rejoin(all.scope);
}

/* ---- locks */

struct frag_lock {
    frag_scope *scope; /* NULL: none was active */
    frag_scope_watch own;
    frag_scope_watch *watch; /* of the scope, or own */
    bool is_held;
    uint64_t tells;
};

frag_lock *frag_lock_create(void)
{
    frag_lock *lock = frag_alloc(1, sizeof *lock);
    lock->scope = frag_scope_active();
    lock->watch = lock->scope != NULL ? frag_scope_watched(lock->scope) : &lock->own;
    pthread_mutex_init(&lock->own.mutex, NULL);
    pthread_cond_init(&lock->own.change, NULL);
    return lock;
}

void frag_lock_destroy(frag_lock *lock)
{
    if (lock == NULL)
        return;
    FRAG_ASSERT(!lock->is_held);
    pthread_cond_destroy(&lock->own.change);
    pthread_mutex_destroy(&lock->own.mutex);
    frag_free(lock);
}

static bool has_failed(const frag_lock *lock)
{
    return frag_scope_has_failed(lock->scope);
}

/* With the mutex of the watch, which it gives. */
static void leave(frag_lock *lock)
{
    bool must_end = has_failed(lock);
    pthread_mutex_unlock(&lock->watch->mutex);
    if (must_end)
        frag_scope_rejoin(lock->scope);
}

static void wait_for_turn(frag_lock *lock)
{
    while (lock->is_held && !has_failed(lock))
        pthread_cond_wait(&lock->watch->change, &lock->watch->mutex);
    lock->is_held = true;
}

void frag_lock_take(frag_lock *lock)
{
    pthread_mutex_lock(&lock->watch->mutex);
    wait_for_turn(lock);
    leave(lock);
}

void frag_lock_give(frag_lock *lock)
{
    pthread_mutex_lock(&lock->watch->mutex);
    lock->is_held = false;
    pthread_cond_broadcast(&lock->watch->change);
    pthread_mutex_unlock(&lock->watch->mutex);
}

void frag_lock_wait(frag_lock *lock)
{
    pthread_mutex_lock(&lock->watch->mutex);
    uint64_t tells = lock->tells;
    lock->is_held = false;
    pthread_cond_broadcast(&lock->watch->change);
    while (lock->tells == tells && !has_failed(lock))
        pthread_cond_wait(&lock->watch->change, &lock->watch->mutex);
    wait_for_turn(lock);
    leave(lock);
}

void frag_lock_tell(frag_lock *lock)
{
    pthread_mutex_lock(&lock->watch->mutex);
    lock->tells++;
    pthread_cond_broadcast(&lock->watch->change);
    pthread_mutex_unlock(&lock->watch->mutex);
}
