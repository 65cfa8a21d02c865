/* Tests of threads.c: jobs on several threads. */
#include "base/threads.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include <cmocka.h>

enum { COUNT = 10000 };

static atomic_uint seen[COUNT];

static void count_one(void *context, uint64_t index)
{
    atomic_uint *total = context;
    atomic_fetch_add(&seen[index], 1);
    atomic_fetch_add(total, 1);
}

static void every_index_is_done_exactly_once_on_any_number_of_threads(void **state)
{
    (void)state;
    static const uint32_t threads[] = {0, 1, 2, 3, 16, 64};
    for (size_t i = 0; i < sizeof threads / sizeof threads[0]; i++) {
        atomic_uint total;
        atomic_init(&total, 0);
        for (size_t k = 0; k < COUNT; k++)
            atomic_store(&seen[k], 0);
        frag_for_each(threads[i], COUNT, count_one, &total);
        assert_int_equal(atomic_load(&total), COUNT);
        for (size_t k = 0; k < COUNT; k++)
            assert_int_equal(atomic_load(&seen[k]), 1);
    }
}

static void nothing_to_do_is_done_at_once(void **state)
{
    (void)state;
    frag_for_each(8, 0, count_one, NULL);
}

typedef struct meeting {
    atomic_uint arrived;
    atomic_uint met;
} meeting;

/* Waits, for a while, until another job is inside as well. */
static void meet(void *context, uint64_t index)
{
    (void)index;
    meeting *place = context;
    atomic_fetch_add(&place->arrived, 1);
    for (int i = 0; i < 2000 && atomic_load(&place->arrived) < 2; i++)
        usleep(1000);
    if (atomic_load(&place->arrived) == 2)
        atomic_fetch_add(&place->met, 1);
}

static void jobs_run_at_the_same_time(void **state)
{
    (void)state;
    meeting place;
    atomic_init(&place.arrived, 0);
    atomic_init(&place.met, 0);
    frag_for_each(2, 2, meet, &place);
    assert_int_equal(atomic_load(&place.met), 2);
}

static void there_is_at_least_one_core(void **state)
{
    (void)state;
    assert_true(frag_core_count() >= 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_index_is_done_exactly_once_on_any_number_of_threads),
        cmocka_unit_test(nothing_to_do_is_done_at_once),
        cmocka_unit_test(jobs_run_at_the_same_time),
        cmocka_unit_test(there_is_at_least_one_core),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
