/* Tests of spill.c: arrays beyond the limit lie in files, and are what they were. */
#include "base/system/spill.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/memory.h"

enum { PIECE_BYTES = 4 << 20, LIMIT_BYTES = 2 * PIECE_BYTES };

static void fill(uint32_t *items, size_t first, size_t end)
{
    for (size_t i = first; i < end; i++)
        items[i] = (uint32_t)(i * 2654435761u);
}

static bool is_filled(const uint32_t *items, size_t end)
{
    for (size_t i = 0; i < end; i++)
        if (items[i] != (uint32_t)(i * 2654435761u))
            return false;
    return true;
}

static void expect_bytes(uint64_t in_memory, uint64_t in_files)
{
    assert_int_equal(frag_spill_memory_bytes(), in_memory);
    assert_int_equal(frag_spill_file_bytes(), in_files);
}

static void what_is_beyond_the_limit_is_in_files(void **state)
{
    (void)state;
    void *pieces[4];
    for (size_t i = 0; i < 4; i++)
        pieces[i] = frag_alloc(PIECE_BYTES, 1);
    expect_bytes(LIMIT_BYTES, 2 * PIECE_BYTES);
    for (size_t i = 0; i < PIECE_BYTES; i += 4096)
        assert_int_equal(((unsigned char *)pieces[3])[i], 0);
    frag_free(pieces[1]);
    expect_bytes(PIECE_BYTES, 2 * PIECE_BYTES);
    pieces[1] = frag_alloc(PIECE_BYTES, 1);
    expect_bytes(LIMIT_BYTES, 2 * PIECE_BYTES);
    for (size_t i = 0; i < 4; i++)
        frag_free(pieces[i]);
    expect_bytes(0, 0);
}

static void an_array_grows_from_the_heap_into_memory_and_into_a_file(void **state)
{
    (void)state;
    uint32_t *items = NULL;
    size_t capacity = 0, last = 0;
    for (size_t count = 1000; count <= 12 << 20; count *= 2) {
        items = frag_grow(items, &capacity, count, sizeof *items);
        assert_true(is_filled(items, last));
        fill(items, last, count);
        last = count;
    }
    assert_int_equal(frag_spill_memory_bytes(), 0);
    assert_true(frag_spill_file_bytes() >= last * sizeof *items);
    items = frag_realloc(items, 1000, sizeof *items);
    assert_true(is_filled(items, 1000));
    expect_bytes(0, 4096);
    items = frag_realloc(items, 2 << 20, sizeof *items);
    assert_true(is_filled(items, 1000));
    frag_free(items);
    expect_bytes(0, 0);
}

static void what_is_forgotten_stays_allocated(void **state)
{
    (void)state;
    unsigned char *all = frag_alloc(3 * LIMIT_BYTES, 1);
    frag_memory_forget(all, 2 * LIMIT_BYTES);
    memset(all, 7, 3 * LIMIT_BYTES);
    assert_int_equal(all[2 * LIMIT_BYTES - 1], 7);
    frag_free(all);
    expect_bytes(0, 0);
}

static void small_arrays_do_not_count(void **state)
{
    (void)state;
    void *small = frag_alloc(PIECE_BYTES - 1, 1);
    expect_bytes(0, 0);
    assert_false(frag_spill_concerns(small, 0));
    frag_free(small);
    assert_false(frag_spill_concerns(NULL, 0));
}

/* In a process of its own, which files of one piece are the largest for. */
static void fill_the_disk(int out)
{
    struct rlimit limit = {PIECE_BYTES, PIECE_BYTES};
    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &limit);
    dup2(out, STDERR_FILENO);
    frag_free(frag_alloc(3 * LIMIT_BYTES, 1));
    _exit(0);
}

static void a_full_disk_is_said(void **state)
{
    (void)state;
    int ends[2], status = 0;
    char text[512] = "";
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0)
        fill_the_disk(ends[1]);
    close(ends[1]);
    assert_true(read(ends[0], text, sizeof text - 1) > 0);
    close(ends[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), FRAG_E_SYSTEM);
    assert_non_null(strstr(text, "neither memory nor a file in "));
}

static void a_folder_that_takes_no_file_is_refused(void **state)
{
    (void)state;
    frag_error error = {.code = FRAG_E_NONE};
    assert_false(frag_spill_begin(0, "/nowhere/at/all", &error));
    assert_int_equal(error.code, FRAG_E_SYSTEM);
    assert_non_null(strstr(error.sentence, "/nowhere/at/all"));
    void *piece = frag_alloc(PIECE_BYTES, 1); /* the limit is still the one before */
    expect_bytes(PIECE_BYTES, 0);
    frag_free(piece);
}

static int begin(void **state)
{
    (void)state;
    frag_error error = {.code = FRAG_E_NONE};
    return frag_spill_begin(LIMIT_BYTES, NULL, &error) ? 0 : -1;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_beyond_the_limit_is_in_files),
        cmocka_unit_test(an_array_grows_from_the_heap_into_memory_and_into_a_file),
        cmocka_unit_test(what_is_forgotten_stays_allocated),
        cmocka_unit_test(small_arrays_do_not_count),
        cmocka_unit_test(a_full_disk_is_said),
        cmocka_unit_test(a_folder_that_takes_no_file_is_refused),
    };
    return cmocka_run_group_tests_name("spill", tests, begin, NULL);
}
