/* Calls every function of every stand-in through its signature, with every out-parameter filled
 * with a pattern first: the pattern must be gone, and nothing beyond be written. */
#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/gpu_replay/standin_calls.h"

enum { GUARD_BYTES = 64, PLACE_BYTES = 65536, SLOT_BYTES = PLACE_BYTES + 2 * GUARD_BYTES };

/* What is passed beside numbers: memory that may only be read, and memory that may not be touched.
 */
typedef struct fixture {
    unsigned char *read_only; /* zeros */
    unsigned char *untouchable;
    unsigned char *slots; /* one for each argument, with guards around it */
} fixture;

static fixture places;

static int set_up(void **state)
{
    (void)state;
    places.read_only = mmap(NULL, PLACE_BYTES, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    places.untouchable = mmap(NULL, PLACE_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    places.slots = malloc((size_t)FRAG_TEST_ARGUMENTS * SLOT_BYTES);
    return places.read_only == MAP_FAILED || places.untouchable == MAP_FAILED ||
           places.slots == NULL;
}

static int tear_down(void **state)
{
    (void)state;
    munmap(places.read_only, PLACE_BYTES);
    munmap(places.untouchable, PLACE_BYTES);
    free(places.slots);
    return 0;
}

static bool is_out(frag_test_kind kind)
{
    return kind == FRAG_TEST_WRITTEN || kind == FRAG_TEST_NEW || kind == FRAG_TEST_NEW_NUMBER;
}

static unsigned char *place_of(uint32_t argument)
{
    return places.slots + (size_t)argument * SLOT_BYTES + GUARD_BYTES;
}

/* Every number is `number`; every handle is one that the library has not made. */
static void prepare(const frag_test_call *tested, frag_test_argument *arguments, int64_t number,
                    unsigned char pattern)
{
    for (uint32_t i = 0; i < FRAG_TEST_ARGUMENTS; i++)
        arguments[i] = (frag_test_argument){.number = number};
    tested->shape(arguments);
    for (uint32_t i = 0; i < tested->argument_count; i++) {
        frag_test_argument *argument = &arguments[i];
        memset(place_of(i) - GUARD_BYTES, pattern, SLOT_BYTES);
        if (argument->kind == FRAG_TEST_NEW)
            argument->bytes = sizeof(void *);
        else if (argument->kind == FRAG_TEST_NEW_NUMBER)
            argument->bytes = sizeof(int32_t);
        if (is_out(argument->kind) || argument->kind == FRAG_TEST_FREE)
            argument->pointer = place_of(i);
        else if (argument->kind == FRAG_TEST_HANDLE || argument->kind == FRAG_TEST_READ)
            argument->pointer = places.read_only;
        else if (argument->kind == FRAG_TEST_DEVICE)
            argument->pointer = places.untouchable;
        else if (argument->kind == FRAG_TEST_GONE_NUMBER)
            argument->number = INT32_MAX;
    }
}

/* One more than the last byte that is not the pattern. */
static uint64_t find_written(uint32_t argument, unsigned char pattern)
{
    const unsigned char *place = place_of(argument);
    uint64_t end = PLACE_BYTES + GUARD_BYTES;
    while (end > 0 && place[end - 1] == pattern)
        end--;
    return end;
}

static bool guard_is_whole(uint32_t argument, unsigned char pattern)
{
    const unsigned char *guard = place_of(argument) - GUARD_BYTES;
    for (size_t i = 0; i < GUARD_BYTES; i++)
        if (guard[i] != pattern)
            return false;
    return true;
}

/* Which function ends which handle no table says: they stay, where a leak checker sees them. */
static void **kept;
static size_t kept_count;

static void keep_handle(const unsigned char *place)
{
    kept = realloc(kept, (kept_count + 1) * sizeof *kept);
    assert_non_null(kept);
    memcpy(&kept[kept_count++], place, sizeof *kept);
}

/* What is wrong with a function, or "". */
typedef struct finding {
    char sentence[200];
} finding;

/* Calls it once. written[i][byte] becomes true for bytes of argument i that lost the pattern. */
static void call_once(const frag_test_call *tested, frag_test_function *function, int64_t number,
                      unsigned char pattern, bool (*written)[PLACE_BYTES], finding *found)
{
    frag_test_argument arguments[FRAG_TEST_ARGUMENTS];
    prepare(tested, arguments, number, pattern);
    tested->call(function, arguments);
    for (uint32_t i = 0; i < tested->argument_count; i++) {
        if (arguments[i].kind == FRAG_TEST_FREE)
            continue;
        bool owns_place = is_out(arguments[i].kind);
        uint64_t allowed = owns_place ? arguments[i].bytes : 0;
        if (!guard_is_whole(i, pattern) || find_written(i, pattern) > allowed)
            snprintf(found->sentence, sizeof found->sentence,
                     "argument %u: more than its %llu bytes is written", i + 1,
                     (unsigned long long)allowed);
        if (arguments[i].kind == FRAG_TEST_NEW)
            keep_handle(place_of(i));
        for (uint64_t byte = 0; byte < allowed; byte++)
            if (place_of(i)[byte] != pattern)
                written[i][byte] = true;
    }
}

/* With two patterns, so that a value that happens to hold one is no mistake. */
static finding try_function(const frag_test_call *tested, frag_test_function *function,
                            int64_t number)
{
    finding found = {""};
    bool(*written)[PLACE_BYTES] = calloc(FRAG_TEST_ARGUMENTS, sizeof *written);
    assert_non_null(written);
    call_once(tested, function, number, 0xa5, written, &found);
    call_once(tested, function, number, 0x5a, written, &found);
    frag_test_argument arguments[FRAG_TEST_ARGUMENTS];
    prepare(tested, arguments, number, 0);
    for (uint32_t i = 0; i < tested->argument_count && number > 0; i++)
        for (uint64_t byte = 0; is_out(arguments[i].kind) && byte < arguments[i].bytes; byte++)
            if (!written[i][byte]) {
                snprintf(found.sentence, sizeof found.sentence,
                         "argument %u: byte %llu of %llu is left as it was", i + 1,
                         (unsigned long long)byte, (unsigned long long)arguments[i].bytes);
                break;
            }
    free(written);
    return found;
}

static void *open_library(const frag_test_library *library)
{
    char path[4096];
    char self[2048];
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    assert_true(length > 0);
    self[length] = '\0';
    *strrchr(self, '/') = '\0';
    snprintf(path, sizeof path, "%s/../software-cuda/%d/%s", self, library->major, library->soname);
    void *opened = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (opened == NULL)
        fail_msg("%s", dlerror());
    return opened;
}

static frag_test_function *find_function(void *opened, const char *name)
{
    void *symbol = dlsym(opened, name);
    frag_test_function *function = NULL;
    if (symbol == NULL)
        fail_msg("%s: %s", name, dlerror());
    memcpy(&function, &symbol, sizeof function);
    return function;
}

static size_t test_library(const frag_test_library *library, int64_t number)
{
    size_t wrong = 0;
    void *opened = open_library(library);
    for (const frag_test_call *tested = library->calls; tested->name != NULL; tested++) {
        finding found = try_function(tested, find_function(opened, tested->name), number);
        if (found.sentence[0] == '\0')
            continue;
        wrong++;
        fprintf(stderr, "%s of CUDA %d, numbers of %lld: %s: %s\n", library->name, library->major,
                (long long)number, tested->name, found.sentence);
    }
    return wrong;
}

static void every_function_writes_what_it_owes_and_nothing_else(void **state)
{
    (void)state;
    static const int64_t numbers[] = {1, 3, 8, 0, -1};
    size_t wrong = 0;
    for (size_t i = 0; frag_test_libraries[i] != NULL; i++)
        for (size_t j = 0; j < sizeof numbers / sizeof *numbers; j++)
            wrong += test_library(frag_test_libraries[i], numbers[j]);
    assert_int_equal(wrong, 0);
}

static void new_handles_differ(void **state)
{
    (void)state;
    for (size_t i = 0; frag_test_libraries[i] != NULL; i++) {
        void *opened = open_library(frag_test_libraries[i]);
        for (const frag_test_call *tested = frag_test_libraries[i]->calls; tested->name != NULL;
             tested++) {
            frag_test_argument arguments[FRAG_TEST_ARGUMENTS];
            void *handles[2] = {NULL, NULL};
            prepare(tested, arguments, 1, 0);
            if (arguments[0].kind != FRAG_TEST_NEW || tested->argument_count == 0)
                continue;
            for (size_t j = 0; j < 2; j++) {
                prepare(tested, arguments, 1, 0);
                tested->call(find_function(opened, tested->name), arguments);
                memcpy(&handles[j], place_of(0), sizeof(void *));
                keep_handle(place_of(0));
            }
            /* Memory that is no description of a file gives no handle. */
            if (strcmp(tested->name, "cuFileHandleRegister") == 0)
                continue;
            if (handles[0] == NULL || handles[1] == NULL || handles[0] == handles[1])
                fail_msg("%s gives %p, then %p", tested->name, handles[0], handles[1]);
        }
    }
}

/* ---- is a mistake found? */

static int32_t forget_result(int32_t *out)
{
    (void)out;
    return 0;
}

static int32_t write_half(int64_t *out)
{
    memset(out, 0, 4);
    return 0;
}

static int32_t write_beyond(int32_t *out)
{
    memset(out, 0, 8);
    return 0;
}

static int32_t write_right(int32_t *out)
{
    *out = (int32_t)0xa5a5a5a5;
    return 0;
}

static void shape_32(frag_test_argument *arguments)
{
    arguments[0].kind = FRAG_TEST_WRITTEN;
    arguments[0].bytes = 4;
}

static void shape_64(frag_test_argument *arguments)
{
    arguments[0].kind = FRAG_TEST_WRITTEN;
    arguments[0].bytes = 8;
}

static void call_one(frag_test_function *function, frag_test_argument *arguments)
{
    (void)((int32_t(*)(void *))function)(arguments[0].pointer);
}

static void a_function_that_leaves_garbage_is_found(void **state)
{
    (void)state;
    const frag_test_call of_32 = {"of 32", 1, shape_32, call_one};
    const frag_test_call of_64 = {"of 64", 1, shape_64, call_one};
    finding found = try_function(&of_32, (frag_test_function *)forget_result, 1);
    assert_string_equal(found.sentence, "argument 1: byte 0 of 4 is left as it was");
    found = try_function(&of_64, (frag_test_function *)write_half, 1);
    assert_string_equal(found.sentence, "argument 1: byte 4 of 8 is left as it was");
    found = try_function(&of_32, (frag_test_function *)write_beyond, 1);
    assert_string_equal(found.sentence, "argument 1: more than its 4 bytes is written");
    found = try_function(&of_32, (frag_test_function *)write_right, 1);
    assert_string_equal(found.sentence, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_function_writes_what_it_owes_and_nothing_else),
        cmocka_unit_test(new_handles_differ),
        cmocka_unit_test(a_function_that_leaves_garbage_is_found),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
