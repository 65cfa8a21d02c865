/* Tests of site_uses.c and program_files.c: two lists of call sites, compared name by name. */
#include "studies/diff/site_uses.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "studies/diff/program_files.h"

enum { NAMES_MAX = 4 };

typedef const char *const names[NAMES_MAX + 1];

static frag_site_uses uses_of(names callers)
{
    frag_site_uses uses = {.items = frag_alloc(NAMES_MAX, sizeof *uses.items)};
    for (; callers[uses.count] != NULL; uses.count++)
        uses.items[uses.count] = (frag_site_use){.caller = frag_copy_text(callers[uses.count]),
                                                 .inner = frag_copy_text(callers[uses.count])};
    return uses;
}

static void a_program_that_moved_to_another_file_keeps_its_names(void **state)
{
    (void)state;
    static const struct {
        names before, after, joined;
        const char *from, *to; /* "": nothing is joined */
    } cases[] = {
        {{"eval (old.py)", "save (b.py)", "step (old.py)"},
         {"go (new.py)", "save (b.py)", "step (new.py)"},
         {"eval (new.py)", "save (b.py)", "step (new.py)"},
         "old.py",
         "new.py"},
        /* The order is that of the new names. */
        {{"f (a.py)", "f (b.py)"},
         {"f (b.py)", "f (c.py)"},
         {"f (b.py)", "f (c.py)"},
         "a.py",
         "c.py"},
        /* No function is in both. */
        {{"eval (old.py)"}, {"step (new.py)"}, {"eval (old.py)"}, "", ""},
        /* Two files on one side, or none. */
        {{"f (a.py)", "f (b.py)"}, {"f (c.py)"}, {"f (a.py)", "f (b.py)"}, "", ""},
        {{"f (a.py)"}, {"f (a.py)", "f (b.py)"}, {"f (a.py)"}, "", ""},
        /* Of packages and of nothing. */
        {{"f (torch/a.py)"}, {"f (torch/b.py)"}, {"f (torch/a.py)"}, "", ""},
        {{"f (a.c)", "g"}, {"f (b.c)", "g"}, {"f (a.c)", "g"}, "", ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        frag_site_uses before = uses_of(cases[i].before), after = uses_of(cases[i].after);
        char *files[2];
        frag_program_files_join(&before, &after, files);
        for (size_t k = 0; k < before.count; k++) {
            assert_string_equal(before.items[k].caller, cases[i].joined[k]);
            assert_string_equal(before.items[k].inner, cases[i].joined[k]);
        }
        assert_string_equal(files[0] != NULL ? files[0] : "", cases[i].from);
        assert_string_equal(files[1] != NULL ? files[1] : "", cases[i].to);
        frag_free(files[0]);
        frag_free(files[1]);
        frag_site_uses_destroy(&before);
        frag_site_uses_destroy(&after);
    }
}

static void the_most_that_is_held_is_compared_with_the_requests(void **state)
{
    (void)state;
    frag_site_uses before = uses_of((names){"a", "b", "c"}), after = uses_of((names){"a", "b"});
    for (size_t i = 0; i < 3; i++) {
        before.items[i].most_bytes = 10 * (i + 1);
        before.items[i].request_count = i + 1;
        before.items[i].live_bytes = 7;
    }
    after.items[0].most_bytes = 10;
    after.items[1].most_bytes = 25;
    after.items[1].request_count = 9;
    frag_site_change *changes = NULL;
    /* c went away, b grew, a held as much at most; each with its one group. */
    assert_int_equal(frag_site_uses_compare_most(&before, &after, &changes), 4);
    assert_string_equal(changes[0].caller, "c");
    assert_null(changes[0].inner);
    assert_string_equal(changes[1].inner, "c");
    assert_int_equal(changes[0].before.live_bytes, 30);
    assert_int_equal(changes[0].before.live_count, 3);
    assert_int_equal(changes[0].after.live_bytes, 0);
    assert_string_equal(changes[2].caller, "b");
    assert_int_equal(changes[2].after.live_bytes, 25);
    assert_int_equal(changes[2].after.live_count, 9);
    frag_free(changes);
    frag_site_uses_destroy(&before);
    frag_site_uses_destroy(&after);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_program_that_moved_to_another_file_keeps_its_names),
        cmocka_unit_test(the_most_that_is_held_is_compared_with_the_requests),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
