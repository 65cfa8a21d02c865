/* Locks of a computation on several threads: one at a time holds one, a wait ends with the change,
 * and nobody waits for a thread whose host memory failed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "base/memory.h"
#include "base/scope.h"
#include "base/threads.h"

enum { THREADS = 4, ROUNDS = 200 };

typedef struct shared {
    frag_lock *lock;
    uint64_t count;    /* under the lock */
    uint64_t turn;     /* under the lock: whose */
    atomic_uint ended; /* jobs that did */
} shared;

static void count_up(void *context, uint64_t index)
{
    shared *all = context;
    (void)index;
    for (int i = 0; i < ROUNDS; i++) {
        frag_lock_take(all->lock);
        uint64_t before = all->count;
        frag_free(frag_alloc(1, 1));
        all->count = before + 1;
        frag_lock_give(all->lock);
    }
}

static void take_turns(void *context, uint64_t index)
{
    shared *all = context;
    frag_lock_take(all->lock);
    for (int i = 0; i < ROUNDS; i++) {
        while (all->turn % THREADS != index)
            frag_lock_wait(all->lock);
        all->turn++;
        frag_lock_tell(all->lock);
    }
    frag_lock_give(all->lock);
}

static void share(void *context)
{
    shared *all = context;
    all->lock = frag_lock_create();
    frag_for_each(THREADS, THREADS, count_up, all);
    frag_for_each(THREADS, THREADS, take_turns, all);
    frag_lock_destroy(all->lock);
}

static void one_thread_at_a_time_holds_a_lock(void **state)
{
    (void)state;
    frag_scope *scope = frag_scope_create();
    shared plain = {.count = 0};
    shared scoped = {.count = 0};
    share(&plain);
    assert_true(frag_scope_enter(scope, share, &scoped));
    frag_scope_destroy(scope);
    assert_int_equal(plain.count, THREADS * ROUNDS);
    assert_int_equal(plain.turn, THREADS * ROUNDS);
    assert_int_equal(scoped.count, THREADS * ROUNDS);
    assert_int_equal(scoped.turn, THREADS * ROUNDS);
}

/* The first fails with the lock in its hands, the second waits for it, the third for a change, the
 * last takes it later. */
static void fail_while_others_wait(void *context, uint64_t index)
{
    shared *all = context;
    frag_lock_take(all->lock);
    if (index == 0) {
        while (all->turn < THREADS - 1)
            frag_lock_wait(all->lock);
        frag_scope_fail(1, 1);
    }
    all->turn++;
    frag_lock_tell(all->lock);
    if (index > 1)
        frag_lock_wait(all->lock);
    frag_lock_give(all->lock);
    while (!frag_scope_has_failed(frag_scope_active()))
        continue;
    frag_lock_take(all->lock);
    atomic_fetch_add(&all->ended, 1);
}

static void fail_on_threads(void *context)
{
    shared *all = context;
    all->lock = frag_lock_create();
    frag_for_each(THREADS, THREADS, fail_while_others_wait, all);
    atomic_fetch_add(&all->ended, 1);
}

static void nobody_waits_for_a_thread_whose_memory_failed(void **state)
{
    (void)state;
    for (int i = 0; i < 20; i++) {
        frag_scope *scope = frag_scope_create();
        shared all = {.count = 0};
        assert_false(frag_scope_enter(scope, fail_on_threads, &all));
        assert_int_equal(atomic_load(&all.ended), 0);
        shared again = {.count = 0};
        assert_true(frag_scope_enter(scope, share, &again));
        frag_scope_destroy(scope);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_thread_at_a_time_holds_a_lock),
        cmocka_unit_test(nobody_waits_for_a_thread_whose_memory_failed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
