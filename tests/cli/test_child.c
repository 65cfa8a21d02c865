/* Tests of child.c: work in a child process, whatever becomes of it. */
#include "cli/child.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define MUCH ((size_t)3 << 20)

static void write_much(void *context, FILE *stream)
{
    const unsigned char *first = context;
    for (size_t i = 0; i < MUCH; i++)
        fputc((int)((*first + i) & 0xff), stream);
}

static void what_the_child_writes_comes_back_whole(void **state)
{
    (void)state;
    unsigned char first = 7;
    unsigned char *bytes = NULL;
    size_t count = 0;
    frag_error error = {0};
    assert_true(frag_child_run(write_much, &first, &bytes, &count, &error));
    assert_int_equal(count, MUCH);
    for (size_t i = 0; i < MUCH; i++)
        assert_int_equal(bytes[i], (7 + i) & 0xff);
    free(bytes);
}

static void change_something(void *context, FILE *stream)
{
    *(int *)context = 2;
    fputs("done", stream);
}

static void the_parent_keeps_what_it_had(void **state)
{
    (void)state;
    int value = 1;
    unsigned char *bytes = NULL;
    size_t count = 0;
    frag_error error = {0};
    assert_true(frag_child_run(change_something, &value, &bytes, &count, &error));
    assert_int_equal(value, 1);
    assert_int_equal(count, 4);
    free(bytes);
}

static void write_then_die(void *context, FILE *stream)
{
    fputs("half", stream);
    fflush(stream);
    (void)context;
    kill(getpid(), SIGKILL);
}

static void a_child_that_is_killed_is_told_of(void **state)
{
    (void)state;
    unsigned char *bytes = NULL;
    size_t count = 0;
    frag_error error = {0};
    assert_false(frag_child_run(write_then_die, NULL, &bytes, &count, &error));
    assert_int_equal(error.code, FRAG_E_SYSTEM);
    assert_string_equal(error.sentence,
                        "the process that used the GPU was ended by signal 9 (Killed)");
    free(bytes);
}

static void end_with_3(void *context, FILE *stream)
{
    (void)context;
    (void)stream;
    exit(3);
}

static void a_child_that_ends_early_is_told_of(void **state)
{
    (void)state;
    unsigned char *bytes = NULL;
    size_t count = 0;
    frag_error error = {0};
    assert_false(frag_child_run(end_with_3, NULL, &bytes, &count, &error));
    assert_string_equal(error.sentence, "the process that used the GPU ended with code 3");
    assert_int_equal(count, 0);
    free(bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_the_child_writes_comes_back_whole),
        cmocka_unit_test(the_parent_keeps_what_it_had),
        cmocka_unit_test(a_child_that_is_killed_is_told_of),
        cmocka_unit_test(a_child_that_ends_early_is_told_of),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
