/* Tests of base/system: what Linux answers, and what callers do where a system does not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/system/pages.h"
#include "base/system/process.h"
#include "base/system/program_path.h"

static void the_program_knows_where_it_lies(void **state)
{
    (void)state;
    char path[4096];
    assert_true(frag_program_path(path, sizeof path));
    assert_string_equal(strrchr(path, '/'), "/test_system");
    assert_int_equal(access(path, X_OK), 0);
}

static void pages_read_as_zero_once_they_are_given_back(void **state)
{
    (void)state;
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    unsigned char *memory =
        mmap(NULL, 4 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(memory != MAP_FAILED);
    unsigned char seen[4];
    memory[page] = 1;
    memory[3 * page] = 1;
    assert_true(frag_pages_seen(memory, 4 * page, seen));
    assert_int_equal(seen[0] & 1, 0);
    assert_int_equal(seen[1] & 1, 1);
    assert_int_equal(seen[3] & 1, 1);
    assert_true(frag_pages_zero(memory + page, page));
    assert_int_equal(memory[page], 0);
    assert_int_equal(memory[3 * page], 1);
    /* Not at the start of a page: nothing is changed. */
    assert_false(frag_pages_zero(memory + 3 * page + 1, page));
    assert_int_equal(memory[3 * page], 1);
    munmap(memory, 4 * page);
}

static void a_signal_that_was_sent_is_waited_for(void **state)
{
    (void)state;
    sigset_t watched;
    sigset_t before;
    sigemptyset(&watched);
    sigaddset(&watched, SIGUSR1);
    sigprocmask(SIG_BLOCK, &watched, &before);
    bool is_for_us = true;
    struct timespec limit = {.tv_nsec = 1000000};
    assert_int_equal(frag_process_wait_signal(&watched, &limit, &is_for_us), 0);
    assert_false(is_for_us);
    kill(getpid(), SIGUSR1);
    assert_int_equal(frag_process_wait_signal(&watched, &limit, &is_for_us), SIGUSR1);
    assert_true(is_for_us);
    kill(getpid(), SIGUSR1);
    assert_int_equal(frag_process_wait_signal(&watched, NULL, &is_for_us), SIGUSR1);
    sigprocmask(SIG_SETMASK, &before, NULL);
}

static void a_time_that_has_come_is_not_waited_for(void **state)
{
    (void)state;
    struct timespec start;
    struct timespec end;
    clock_gettime(CLOCK_MONOTONIC, &start);
    frag_process_sleep_until(&start);
    struct timespec until = {.tv_sec = start.tv_sec, .tv_nsec = start.tv_nsec + 20000000};
    if (until.tv_nsec >= 1000000000) {
        until.tv_nsec -= 1000000000;
        until.tv_sec++;
    }
    frag_process_sleep_until(&until);
    clock_gettime(CLOCK_MONOTONIC, &end);
    assert_true(end.tv_sec > until.tv_sec ||
                (end.tv_sec == until.tv_sec && end.tv_nsec >= until.tv_nsec));
}

/* The grandchild ends with the child, which ends without a word to it. */
static void a_child_ends_with_its_parent(void **state)
{
    (void)state;
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        int ready[2];
        if (pipe(ready) != 0)
            _exit(1);
        if (fork() == 0) {
            frag_process_end_with_parent();
            (void)!write(ready[1], "x", 1);
            pause();
            _exit(0);
        }
        char letter;
        (void)!read(ready[0], &letter, 1);
        _exit(0);
    }
    close(ends[1]);
    assert_int_equal(waitpid(child, NULL, 0), child);
    char letter;
    /* The end of the pipe: nobody holds its other end any more. Else the test hangs. */
    alarm(20);
    assert_int_equal(read(ends[0], &letter, 1), 0);
    alarm(0);
    close(ends[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_program_knows_where_it_lies),
        cmocka_unit_test(pages_read_as_zero_once_they_are_given_back),
        cmocka_unit_test(a_signal_that_was_sent_is_waited_for),
        cmocka_unit_test(a_time_that_has_come_is_not_waited_for),
        cmocka_unit_test(a_child_ends_with_its_parent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
