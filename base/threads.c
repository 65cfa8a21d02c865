/* The set of cores a process may use has no POSIX name. */
#define _GNU_SOURCE 1
#include "base/threads.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

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

uint32_t frag_core_count(void)
{
    cpu_set_t cores;
    if (sched_getaffinity(0, sizeof cores, &cores) == 0 && CPU_COUNT(&cores) > 0)
        return (uint32_t)CPU_COUNT(&cores);
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
