#include "base/scope.h"

#include <locale.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/system/spill.h"

typedef struct owned_thing {
    void *thing;
    size_t bytes;
    frag_scope_release *release;
} owned_thing;

struct frag_scope {
    pthread_mutex_t lock; /* threads of one call share the lists */
    void **memory;        /* open addressing by address; NULL: empty */
    size_t memory_count;
    size_t memory_capacity; /* a power of two */
    owned_thing *things;    /* in order of their entry */
    size_t thing_count;
    size_t thing_capacity;
    atomic_bool has_failed;
    frag_scope_watch watch;
};

/* Where this thread goes back to. Per thread, so that calls on several threads never meet. */
typedef struct active_scope {
    frag_scope *scope;
    jmp_buf *target;
} active_scope;

/* With no model of its own: one that is static would want all thread-local memory of a library
 * that holds this file (libfraglab_torch.so has a long message) where little is left once programs
 * run. */
static _Thread_local active_scope active;

frag_scope *frag_scope_create(void)
{
    frag_scope *scope = calloc(1, sizeof *scope);
    if (scope == NULL)
        return NULL;
    pthread_mutex_init(&scope->lock, NULL);
    pthread_mutex_init(&scope->watch.mutex, NULL);
    pthread_cond_init(&scope->watch.change, NULL);
    return scope;
}

static void empty(frag_scope *scope)
{
    while (scope->thing_count > 0) {
        owned_thing last = scope->things[--scope->thing_count];
        last.release(last.thing, last.bytes);
    }
    for (size_t i = 0; i < scope->memory_capacity; i++)
        frag_spill_free(scope->memory[i]);
    free(scope->memory);
    free(scope->things);
    scope->memory = NULL;
    scope->memory_count = 0;
    scope->memory_capacity = 0;
    scope->things = NULL;
    scope->thing_capacity = 0;
    atomic_store(&scope->has_failed, false);
}

void frag_scope_destroy(frag_scope *scope)
{
    if (scope == NULL)
        return;
    empty(scope);
    pthread_cond_destroy(&scope->watch.change);
    pthread_mutex_destroy(&scope->watch.mutex);
    pthread_mutex_destroy(&scope->lock);
    free(scope);
}

/* true: work ended by itself. In the locale that the command line has, whatever that of the program
 * is: "0.5" is read and written with a point. (Without memory for it, which glibc does not need, in
 * the program's.) */
static bool run(frag_scope *scope, void (*work)(void *context), void *context)
{
    jmp_buf target;
    active_scope before = active;
    locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    locale_t outer = uselocale(plain);
    active = (active_scope){scope, &target};
    bool is_whole = setjmp(target) == 0;
    if (is_whole)
        work(context);
    active = before;
    uselocale(outer);
    if (plain != (locale_t)0)
        freelocale(plain);
    return is_whole;
}

bool frag_scope_enter(frag_scope *scope, void (*work)(void *context), void *context)
{
    FRAG_ASSERT(active.scope == NULL);
    if (run(scope, work, context))
        return true;
    empty(scope);
    return false;
}

frag_scope *frag_scope_active(void)
{
    return active.scope;
}

void frag_scope_help(frag_scope *scope, void (*work)(void *context), void *context)
{
    if (scope == NULL)
        work(context);
    else
        run(scope, work, context);
}

frag_scope_watch *frag_scope_watched(frag_scope *scope)
{
    return &scope->watch;
}

/* Under the mutex, so that nobody begins to wait in between. */
static void tell_failure(frag_scope *scope)
{
    pthread_mutex_lock(&scope->watch.mutex);
    atomic_store(&scope->has_failed, true);
    pthread_cond_broadcast(&scope->watch.change);
    pthread_mutex_unlock(&scope->watch.mutex);
}

bool frag_scope_has_failed(frag_scope *scope)
{
    return scope != NULL && atomic_load(&scope->has_failed);
}

void frag_scope_rejoin(frag_scope *scope)
{
    if (frag_scope_has_failed(scope))
        longjmp(*active.target, 1);
}

void frag_scope_fail(size_t count, size_t item_bytes)
{
    if (active.scope != NULL) {
        tell_failure(active.scope);
        longjmp(*active.target, 1);
    }
    const char *folder = frag_spill_folder();
    if (folder != NULL)
        fprintf(stderr,
                "fraglab: neither memory nor a file in %s has room for %zu items of %zu bytes; "
                "free some, or set TMPDIR to a folder on a larger disk\n",
                folder, count, item_bytes);
    else
        fprintf(stderr,
                "fraglab: out of host memory for %zu items of %zu bytes; free some or use a "
                "smaller input\n",
                count, item_bytes);
    exit(FRAG_E_SYSTEM);
}

/* ---- the table of memory */

static size_t place_of(const frag_scope *scope, uintptr_t memory)
{
    uint64_t key = ((uint64_t)memory >> 4) * UINT64_C(0x9e3779b97f4a7c15);
    return (size_t)(key >> 20) & (scope->memory_capacity - 1);
}

static void insert(frag_scope *scope, void *memory)
{
    size_t at = place_of(scope, (uintptr_t)memory);
    while (scope->memory[at] != NULL)
        at = (at + 1) & (scope->memory_capacity - 1);
    scope->memory[at] = memory;
    scope->memory_count++;
}

/* false: out of host memory; the table is as before. */
static bool make_room(frag_scope *scope)
{
    if (scope->memory_count * 2 < scope->memory_capacity)
        return true;
    size_t old_capacity = scope->memory_capacity;
    void **old = scope->memory;
    size_t capacity = old_capacity == 0 ? 64 : old_capacity * 2;
    void **wider = calloc(capacity, sizeof *wider);
    if (wider == NULL)
        return false;
    scope->memory = wider;
    scope->memory_capacity = capacity;
    scope->memory_count = 0;
    for (size_t i = 0; i < old_capacity; i++)
        if (old[i] != NULL)
            insert(scope, old[i]);
    free(old);
    return true;
}

/* Those behind it move up, so that a search may end at the first empty place. */
static bool take_out(frag_scope *scope, uintptr_t memory)
{
    size_t mask = scope->memory_capacity - 1;
    if (scope->memory_capacity == 0)
        return false;
    size_t at = place_of(scope, memory);
    while (scope->memory[at] != NULL && (uintptr_t)scope->memory[at] != memory)
        at = (at + 1) & mask;
    if (scope->memory[at] == NULL)
        return false;
    for (size_t next = (at + 1) & mask; scope->memory[next] != NULL; next = (next + 1) & mask)
        if (((next - place_of(scope, (uintptr_t)scope->memory[next])) & mask) >=
            ((next - at) & mask)) {
            scope->memory[at] = scope->memory[next];
            at = next;
        }
    scope->memory[at] = NULL;
    scope->memory_count--;
    return true;
}

void frag_scope_add(void *memory)
{
    frag_scope *scope = active.scope;
    if (scope == NULL || memory == NULL)
        return;
    pthread_mutex_lock(&scope->lock);
    bool has_room = make_room(scope);
    if (has_room)
        insert(scope, memory);
    pthread_mutex_unlock(&scope->lock);
    if (!has_room) {
        frag_spill_free(memory);
        frag_scope_fail(1, sizeof memory);
    }
}

void frag_scope_remove(void *memory)
{
    frag_scope *scope = active.scope;
    if (scope == NULL || memory == NULL)
        return;
    pthread_mutex_lock(&scope->lock);
    take_out(scope, (uintptr_t)memory);
    pthread_mutex_unlock(&scope->lock);
}

void frag_scope_moved(uintptr_t from, void *to)
{
    frag_scope *scope = active.scope;
    if (scope == NULL)
        return;
    pthread_mutex_lock(&scope->lock);
    bool was_listed = from != 0 && take_out(scope, from);
    if (was_listed)
        insert(scope, to);
    pthread_mutex_unlock(&scope->lock);
    if (!was_listed)
        frag_scope_add(to);
}

/* ---- things that are not plain memory */

void frag_scope_own(void *thing, size_t bytes, frag_scope_release *release)
{
    frag_scope *scope = active.scope;
    if (scope == NULL)
        return;
    pthread_mutex_lock(&scope->lock);
    bool has_room = scope->thing_count < scope->thing_capacity;
    if (!has_room) {
        size_t capacity = scope->thing_capacity == 0 ? 16 : scope->thing_capacity * 2;
        owned_thing *wider = realloc(scope->things, capacity * sizeof *wider);
        has_room = wider != NULL;
        scope->things = has_room ? wider : scope->things;
        scope->thing_capacity = has_room ? capacity : scope->thing_capacity;
    }
    if (has_room)
        scope->things[scope->thing_count++] = (owned_thing){thing, bytes, release};
    pthread_mutex_unlock(&scope->lock);
    if (!has_room) {
        release(thing, bytes);
        frag_scope_fail(1, sizeof *scope->things);
    }
}

/* What was owned last is given up first, as a rule. */
void frag_scope_disown(void *thing)
{
    frag_scope *scope = active.scope;
    if (scope == NULL)
        return;
    pthread_mutex_lock(&scope->lock);
    size_t at = scope->thing_count;
    while (at > 0 && scope->things[at - 1].thing != thing)
        at--;
    if (at > 0) {
        for (size_t i = at; i < scope->thing_count; i++)
            scope->things[i - 1] = scope->things[i];
        scope->thing_count--;
    }
    pthread_mutex_unlock(&scope->lock);
}
