/* Scopes: what a call holds is released when memory fails, and only then or when its owner goes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/scope.h"

typedef struct released {
    int order[8];
    int count;
} released;

static released *list;

static void release(void *thing, size_t bytes)
{
    (void)thing;
    list->order[list->count++] = (int)bytes;
}

static void fail_in_the_middle(void *context)
{
    int *things = context;
    char *grown = frag_alloc(10, 1);
    frag_scope_own(&things[0], 1, release);
    for (size_t i = 1; i < 200; i++)
        frag_copy_text("kept until the end");
    grown = frag_realloc(grown, 100000, 1);
    memset(grown, 1, 100000);
    frag_scope_own(&things[1], 2, release);
    frag_scope_own(&things[2], 3, release);
    frag_scope_disown(&things[1]);
    frag_realloc(NULL, SIZE_MAX, 2);
    fail_msg("went on without memory");
}

static void releases_everything_when_memory_fails(void **state)
{
    (void)state;
    released all = {.count = 0};
    int things[3];
    list = &all;
    frag_scope *scope = frag_scope_create();
    assert_false(frag_scope_enter(scope, fail_in_the_middle, things));
    assert_null(frag_scope_active());
    assert_int_equal(all.count, 2);
    assert_int_equal(all.order[0], 3);
    assert_int_equal(all.order[1], 1);
    frag_scope_destroy(scope);
    assert_int_equal(all.count, 2);
}

static void keep_one(void *context)
{
    char **kept = context;
    for (int i = 0; i < 1000; i++)
        frag_free(frag_alloc((size_t)i + 1, 1));
    kept[0] = frag_copy_text("handed out");
    frag_scope_remove(kept[0]);
    kept[1] = frag_copy_text("goes with its scope");
    frag_arena arena;
    frag_error error = {0};
    assert_true(frag_arena_create(&arena, 1 << 20, &error));
    strcpy(frag_arena_take(&arena, 10, 1), "an arena");
}

static void memory_that_is_taken_out_outlives_the_scope(void **state)
{
    (void)state;
    char *kept[2];
    frag_scope *scope = frag_scope_create();
    assert_true(frag_scope_enter(scope, keep_one, kept));
    assert_string_equal(kept[1], "goes with its scope");
    frag_scope_destroy(scope);
    assert_string_equal(kept[0], "handed out");
    free(kept[0]);
}

static void fail_as_helper(void *context)
{
    (void)context;
    frag_copy_text("of the helper");
    frag_scope_fail(1, 1);
}

static void fail_through_helper(void *context)
{
    bool *went_on = context;
    frag_scope *scope = frag_scope_active();
    frag_scope_help(scope, fail_as_helper, NULL);
    assert_true(frag_scope_has_failed(scope));
    frag_scope_rejoin(scope);
    *went_on = true;
}

static void the_failure_of_a_helper_is_that_of_the_call(void **state)
{
    (void)state;
    bool went_on = false;
    frag_scope *scope = frag_scope_create();
    assert_false(frag_scope_enter(scope, fail_through_helper, &went_on));
    assert_false(went_on);
    assert_false(frag_scope_has_failed(scope));
    frag_scope_destroy(scope);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(releases_everything_when_memory_fails),
        cmocka_unit_test(memory_that_is_taken_out_outlives_the_scope),
        cmocka_unit_test(the_failure_of_a_helper_is_that_of_the_call),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
