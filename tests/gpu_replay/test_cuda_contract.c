/* What a CUDA runtime answers, as a table of questions and codes: put to the software runtime of
 * both major versions, and to the real one where there is a GPU. Each runtime gets a process of its
 * own, because a process has one driver. */
#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/gpu_replay/cuda_entries.h"

enum {
    OK = 0,
    INVALID_VALUE = 1,
    OUT_OF_MEMORY = 2,
    INVALID_DEVICE = 101,
    INVALID_HANDLE = 400,
    ILLEGAL_STATE = 401,
    CAPTURE_UNSUPPORTED = 900,
    CAPTURE_INVALIDATED = 901,
};

#define MIB ((size_t)1 << 20)
#define TOO_MUCH ((size_t)1 << 45)
/* An answer that stands for "as it should be", where a code alone would say too little. */
#define TRUE_OR(code, condition) ((code) != 0 ? (code) : ((condition) ? OK : -1))

static cuda_entries cuda;

/* ---- plain memory */

static int malloc_of(size_t bytes)
{
    void *address = NULL;
    int code = cuda.malloc(&address, bytes);
    int freed = code == OK ? cuda.free(address) : OK;
    cuda.get_last_error();
    return code != OK ? code : freed;
}

static int small_malloc(void)
{
    return malloc_of(1);
}

static int malloc_of_nothing(void)
{
    return malloc_of(0);
}

static int too_large_malloc(void)
{
    return malloc_of(TOO_MUCH);
}

static int free_of_null(void)
{
    return cuda.free(NULL);
}

static int double_free(void)
{
    void *address = NULL;
    cuda.malloc(&address, MIB);
    cuda.free(address);
    return cuda.free(address);
}

static int free_inside(void)
{
    char *address = NULL;
    void *given = NULL;
    cuda.malloc(&given, 4 * MIB);
    address = given;
    int code = cuda.free(address + 2 * MIB);
    cuda.free(given);
    return code;
}

static int malloc_is_taken_from_free(void)
{
    size_t before = 0;
    size_t after = 0;
    size_t total = 0;
    void *address = NULL;
    cuda.get_info(&before, &total);
    int code = cuda.malloc(&address, 64 * MIB);
    cuda.get_info(&after, &total);
    cuda.free(address);
    return TRUE_OR(code, before - after == 64 * MIB && before <= total);
}

static int large_blocks_lie_on_pages(void)
{
    void *address = NULL;
    int code = cuda.malloc(&address, 2 * MIB);
    cuda.free(address);
    return TRUE_OR(code, (uintptr_t)address % (2 * MIB) == 0);
}

static int memset_of_held(void)
{
    void *address = NULL;
    cuda.malloc(&address, 2 * MIB);
    int code = cuda.memset(address, 0, 2 * MIB);
    cuda.free(address);
    return code;
}

static int copy_of_zeros(void)
{
    void *address = NULL;
    char bytes[16];
    memset(bytes, 7, sizeof bytes);
    cuda.malloc(&address, 2 * MIB);
    cuda.memset(address, 0, sizeof bytes);
    int code = cuda.memcpy(bytes, address, sizeof bytes, 2);
    cuda.free(address);
    return TRUE_OR(code, bytes[0] == 0 && bytes[15] == 0);
}

static int pinned_memory(void)
{
    void *address = NULL;
    int code = cuda.host_alloc(&address, 4096, 0);
    if (code != OK)
        return code;
    memset(address, 1, 4096);
    return cuda.host_free(address);
}

/* ---- errors and devices */

static int failure_is_remembered(void)
{
    void *address = NULL;
    cuda.malloc(&address, TOO_MUCH);
    int peeked = cuda.peek_last_error();
    int taken = cuda.get_last_error();
    int then = cuda.get_last_error();
    return peeked == OUT_OF_MEMORY && taken == OUT_OF_MEMORY ? then : -1;
}

static int success_keeps_the_error(void)
{
    void *address = NULL;
    cuda.malloc(&address, TOO_MUCH);
    cuda.malloc(&address, MIB);
    cuda.free(address);
    return cuda.get_last_error();
}

static int device_below_zero(void)
{
    return cuda.set_device(-1);
}

static int device_too_high(void)
{
    return cuda.set_device(4096);
}

static int unknown_entry_point(void)
{
    void *function = &cuda;
    int status = 0;
    int code = cuda.entry_point("cuNoSuchFunction", &function, 0, &status);
    return TRUE_OR(code, function == NULL && status == 1);
}

/* ---- pools */

enum { THRESHOLD = 4, RESERVED = 5, RESERVED_HIGH = 6, USED = 7, USED_HIGH = 8 };

typedef struct pool_properties {
    int kind;
    int handles;
    int location_type;
    int location_id;
    void *security;
    size_t limit;
    unsigned char rest[56];
} pool_properties;

static uint64_t pool_value(void *pool, int attribute)
{
    uint64_t value = UINT64_MAX;
    cuda.pool_get(pool, attribute, &value);
    return value;
}

static void *default_pool(void)
{
    void *pool = NULL;
    cuda.default_pool(&pool, 0);
    return pool;
}

static int pool_threshold_starts_at_zero(void)
{
    uint64_t value = 1;
    int code = cuda.pool_get(default_pool(), THRESHOLD, &value);
    return TRUE_OR(code, value == 0);
}

static int pool_used_follows(void)
{
    void *pool = default_pool();
    void *address = NULL;
    uint64_t before = pool_value(pool, USED);
    int code = cuda.malloc_async(&address, 4 * MIB, NULL);
    cuda.stream_synchronize(NULL);
    uint64_t during = pool_value(pool, USED);
    uint64_t reserved = pool_value(pool, RESERVED);
    cuda.free_async(address, NULL);
    cuda.stream_synchronize(NULL);
    return TRUE_OR(code, during - before == 4 * MIB && reserved >= during &&
                             pool_value(pool, USED) == before);
}

static int pool_gives_back_at_synchronize(void)
{
    void *pool = default_pool();
    void *address = NULL;
    int code = cuda.malloc_async(&address, 4 * MIB, NULL);
    cuda.free_async(address, NULL);
    cuda.device_synchronize();
    return TRUE_OR(code, pool_value(pool, RESERVED) == 0);
}

static int pool_keeps_up_to_its_threshold(void)
{
    void *pool = default_pool();
    void *address = NULL;
    uint64_t all = UINT64_MAX;
    uint64_t none = 0;
    cuda.pool_set(pool, THRESHOLD, &all);
    int code = cuda.malloc_async(&address, 4 * MIB, NULL);
    cuda.free_async(address, NULL);
    cuda.device_synchronize();
    uint64_t kept = pool_value(pool, RESERVED);
    cuda.pool_trim(pool, 0);
    uint64_t trimmed = pool_value(pool, RESERVED);
    cuda.pool_set(pool, THRESHOLD, &none);
    return TRUE_OR(code, kept >= 4 * MIB && trimmed == 0);
}

static int pool_high_takes_only_zero(void)
{
    uint64_t value = 5;
    return cuda.pool_set(default_pool(), USED_HIGH, &value);
}

static int pool_high_is_reset_by_zero(void)
{
    void *pool = default_pool();
    void *address = NULL;
    uint64_t zero = 0;
    cuda.malloc_async(&address, 4 * MIB, NULL);
    cuda.free_async(address, NULL);
    cuda.device_synchronize();
    uint64_t high = pool_value(pool, USED_HIGH);
    int code = cuda.pool_set(pool, USED_HIGH, &zero);
    return TRUE_OR(code, high >= 4 * MIB && pool_value(pool, USED_HIGH) == pool_value(pool, USED));
}

static int pool_from(const pool_properties *properties, size_t bytes)
{
    void *pool = NULL;
    void *address = NULL;
    int code = cuda.pool_create(&pool, properties);
    if (code != OK)
        return code;
    code = cuda.malloc_from_pool(&address, bytes, pool, NULL);
    if (code == OK)
        code = cuda.free_async(address, NULL);
    cuda.device_synchronize();
    cuda.get_last_error();
    int destroyed = cuda.pool_destroy(pool);
    return code != OK ? code : destroyed;
}

static int pool_of_ones_own(void)
{
    pool_properties properties = {.kind = 1, .location_type = 1};
    return pool_from(&properties, 4 * MIB);
}

static int pool_with_a_limit(void)
{
    pool_properties properties = {.kind = 1, .location_type = 1, .limit = 64 * MIB};
    return pool_from(&properties, 256 * MIB);
}

static int pool_of_no_kind(void)
{
    pool_properties properties = {.location_type = 1};
    return pool_from(&properties, MIB);
}

static int free_of_pool_memory(void)
{
    void *address = NULL;
    int code = cuda.malloc_async(&address, MIB, NULL);
    return code != OK ? code : cuda.free(address);
}

/* ---- streams, events, captures */

static void *new_stream(void)
{
    void *stream = NULL;
    cuda.stream_create(&stream, 1);
    return stream;
}

static void *new_event(unsigned flags)
{
    void *event = NULL;
    cuda.event_create(&event, flags);
    return event;
}

static int event_never_recorded(void)
{
    void *event = new_event(2);
    int code = cuda.event_query(event);
    cuda.event_destroy(event);
    return code;
}

static int event_after_synchronize(void)
{
    void *event = new_event(2);
    void *stream = new_stream();
    cuda.event_record(event, stream);
    cuda.stream_synchronize(stream);
    int code = cuda.event_query(event);
    cuda.event_destroy(event);
    cuda.stream_destroy(stream);
    return code;
}

static int elapsed_needs_records(void)
{
    float milliseconds = 0;
    void *from = new_event(0);
    void *to = new_event(0);
    int code = cuda.event_elapsed(&milliseconds, from, to);
    cuda.event_destroy(from);
    cuda.event_destroy(to);
    return code;
}

static int capture_of_the_default_stream(void)
{
    return cuda.begin_capture(NULL, 0);
}

static int capture_within_a_capture(void)
{
    void *graph = NULL;
    void *stream = new_stream();
    cuda.begin_capture(stream, 2);
    int code = cuda.begin_capture(stream, 2);
    cuda.end_capture(stream, &graph);
    cuda.stream_destroy(stream);
    return code;
}

static int end_without_capture(void)
{
    void *graph = NULL;
    void *stream = new_stream();
    int code = cuda.end_capture(stream, &graph);
    cuda.stream_destroy(stream);
    return code;
}

static int capture_is_seen(void)
{
    int before = -1;
    int during = -1;
    void *graph = NULL;
    void *stream = new_stream();
    cuda.is_capturing(stream, &before);
    cuda.begin_capture(stream, 2);
    cuda.is_capturing(stream, &during);
    int code = cuda.end_capture(stream, &graph);
    cuda.graph_destroy(graph);
    cuda.stream_destroy(stream);
    return TRUE_OR(code, before == 0 && during == 1);
}

static int malloc_in_a_global_capture(void)
{
    void *address = NULL;
    void *graph = NULL;
    void *stream = new_stream();
    cuda.begin_capture(stream, 0);
    int code = cuda.malloc(&address, MIB);
    int ended = cuda.end_capture(stream, &graph);
    cuda.stream_destroy(stream);
    cuda.get_last_error();
    return ended == CAPTURE_INVALIDATED ? code : -1;
}

static int malloc_in_a_capture_while_relaxed(void)
{
    void *address = NULL;
    void *graph = NULL;
    void *stream = new_stream();
    int mode = 2;
    cuda.begin_capture(stream, 0);
    cuda.capture_mode(&mode);
    int code = cuda.malloc(&address, MIB);
    cuda.capture_mode(&mode);
    int ended = cuda.end_capture(stream, &graph);
    cuda.graph_destroy(graph);
    cuda.free(address);
    cuda.stream_destroy(stream);
    return code != OK ? code : ended;
}

/* ---- virtual memory management */

typedef struct memory_properties {
    int kind;
    int handles;
    int location_type;
    int location_id;
    void *security;
    unsigned char rest[8];
} memory_properties;

typedef struct access_rights {
    int location_type;
    int location_id;
    int flags;
} access_rights;

static const memory_properties pinned = {.kind = 1, .location_type = 1};
static const access_rights read_write = {.location_type = 1, .flags = 3};
static size_t page;

/* Addresses for four pages, and memory for the first two, page by page. */
typedef struct mapped {
    uint64_t address;
    uint64_t handle[2];
} mapped;

static int map_two(mapped *two)
{
    memset(two, 0, sizeof *two);
    int code = cuda.reserve(&two->address, 4 * page, 0, 0, 0);
    for (int i = 0; i < 2 && code == OK; i++) {
        code = cuda.create(&two->handle[i], page, &pinned, 0);
        if (code == OK)
            code = cuda.map(two->address + (size_t)i * page, page, 0, two->handle[i], 0);
    }
    return code;
}

static void unmap_two(const mapped *two)
{
    cuda.unmap(two->address, 2 * page);
    for (int i = 0; i < 2; i++)
        cuda.release(two->handle[i]);
    cuda.unreserve(two->address, 4 * page);
}

static int with_two(int (*ask)(const mapped *))
{
    mapped two;
    int code = map_two(&two);
    int answer = code == OK ? ask(&two) : -1;
    unmap_two(&two);
    return answer;
}

static int vmm_from_end_to_end(void)
{
    mapped two;
    int code = map_two(&two);
    if (code == OK)
        code = cuda.set_access(two.address, 2 * page, &read_write, 1);
    void *address = NULL;
    memcpy(&address, &two.address, sizeof address);
    if (code == OK)
        code = cuda.memset(address, 0, 2 * page);
    unmap_two(&two);
    return code;
}

static int reserve_of_nothing(void)
{
    uint64_t address = 0;
    return cuda.reserve(&address, 0, 0, 0, 0);
}

static int create_of_half_a_page(void)
{
    uint64_t handle = 0;
    return cuda.create(&handle, page / 2, &pinned, 0);
}

static int create_of_too_much(void)
{
    uint64_t handle = 0;
    return cuda.create(&handle, TOO_MUCH, &pinned, 0);
}

static int create_is_taken_from_free(void)
{
    size_t before = 0;
    size_t after = 0;
    size_t total = 0;
    uint64_t handle = 0;
    cuda.get_info(&before, &total);
    int code = cuda.create(&handle, 32 * page, &pinned, 0);
    cuda.get_info(&after, &total);
    cuda.release(handle);
    return TRUE_OR(code, before - after == 32 * page);
}

static int release_twice(void)
{
    uint64_t handle = 0;
    cuda.create(&handle, page, &pinned, 0);
    cuda.release(handle);
    return cuda.release(handle);
}

static int ask_map_over(const mapped *two)
{
    return cuda.map(two->address, page, 0, two->handle[1], 0);
}

static int map_over_a_mapping(void)
{
    return with_two(ask_map_over);
}

static int ask_map_offset(const mapped *two)
{
    return cuda.map(two->address + 2 * page, page, page, two->handle[1], 0);
}

static int map_with_an_offset(void)
{
    return with_two(ask_map_offset);
}

static int ask_map_outside(const mapped *two)
{
    return cuda.map(two->address + ((uint64_t)1 << 50), page, 0, two->handle[1], 0);
}

static int map_outside_a_reservation(void)
{
    return with_two(ask_map_outside);
}

static int ask_access_unmapped(const mapped *two)
{
    return cuda.set_access(two->address + page, 2 * page, &read_write, 1);
}

static int access_to_unmapped(void)
{
    return with_two(ask_access_unmapped);
}

static int unmap_of_half_a_mapping(void)
{
    uint64_t address = 0;
    uint64_t handle = 0;
    cuda.reserve(&address, 2 * page, 0, 0, 0);
    cuda.create(&handle, 2 * page, &pinned, 0);
    cuda.map(address, 2 * page, 0, handle, 0);
    int code = cuda.unmap(address, page);
    cuda.unmap(address, 2 * page);
    cuda.release(handle);
    cuda.unreserve(address, 2 * page);
    return code;
}

static int ask_unmap_unmapped(const mapped *two)
{
    return cuda.unmap(two->address + 2 * page, page);
}

static int unmap_of_unmapped(void)
{
    return with_two(ask_unmap_unmapped);
}

static int ask_unreserve_part(const mapped *two)
{
    return cuda.unreserve(two->address, 2 * page);
}

static int unreserve_of_a_part(void)
{
    return with_two(ask_unreserve_part);
}

static int unreserve_twice(void)
{
    uint64_t address = 0;
    cuda.reserve(&address, 2 * page, 0, 0, 0);
    cuda.unreserve(address, 2 * page);
    return cuda.unreserve(address, 2 * page);
}

static int memory_lives_while_mapped(void)
{
    size_t before = 0;
    size_t during = 0;
    size_t after = 0;
    size_t total = 0;
    uint64_t address = 0;
    uint64_t handle = 0;
    cuda.reserve(&address, 32 * page, 0, 0, 0);
    cuda.get_info(&before, &total);
    cuda.create(&handle, 32 * page, &pinned, 0);
    cuda.map(address, 32 * page, 0, handle, 0);
    int code = cuda.release(handle);
    cuda.get_info(&during, &total);
    cuda.unmap(address, 32 * page);
    cuda.get_info(&after, &total);
    cuda.unreserve(address, 32 * page);
    return TRUE_OR(code, before - during == 32 * page && before == after);
}

typedef struct question {
    const char *statement;
    int (*ask)(void);
    int expected;
} question;

static const question questions[] = {
    {"a_byte_can_be_had_and_given_back", small_malloc, OK},
    {"a_malloc_of_nothing_is_no_error", malloc_of_nothing, OK},
    {"a_malloc_of_too_much_is_out_of_memory", too_large_malloc, OUT_OF_MEMORY},
    {"a_free_of_null_is_no_error", free_of_null, OK},
    {"a_double_free_is_invalid", double_free, INVALID_VALUE},
    {"a_free_inside_a_block_is_invalid", free_inside, INVALID_VALUE},
    {"a_malloc_is_taken_from_what_is_free", malloc_is_taken_from_free, OK},
    {"large_blocks_lie_on_pages", large_blocks_lie_on_pages, OK},
    {"held_memory_can_be_filled", memset_of_held, OK},
    {"zeros_are_read_back", copy_of_zeros, OK},
    {"pinned_memory_is_memory", pinned_memory, OK},
    {"a_failure_is_remembered_until_it_is_asked_for", failure_is_remembered, OK},
    {"a_success_does_not_clear_the_error", success_keeps_the_error, OUT_OF_MEMORY},
    {"a_device_below_zero_is_invalid", device_below_zero, INVALID_DEVICE},
    {"a_device_too_high_is_invalid", device_too_high, INVALID_DEVICE},
    {"an_unknown_entry_point_is_null_without_an_error", unknown_entry_point, OK},
    {"a_pools_threshold_starts_at_zero", pool_threshold_starts_at_zero, OK},
    {"a_pools_used_bytes_follow_its_allocations", pool_used_follows, OK},
    {"a_pool_gives_back_at_a_synchronize", pool_gives_back_at_synchronize, OK},
    {"a_pool_keeps_what_its_threshold_allows", pool_keeps_up_to_its_threshold, OK},
    {"a_high_water_mark_takes_nothing_but_zero", pool_high_takes_only_zero, INVALID_VALUE},
    {"a_high_water_mark_is_reset_by_zero", pool_high_is_reset_by_zero, OK},
    {"a_pool_can_be_made_and_destroyed", pool_of_ones_own, OK},
    {"a_pool_obeys_its_limit", pool_with_a_limit, OUT_OF_MEMORY},
    {"a_pool_has_to_be_of_pinned_memory", pool_of_no_kind, INVALID_VALUE},
    {"pool_memory_can_be_freed_at_once", free_of_pool_memory, OK},
    {"an_event_never_recorded_is_done", event_never_recorded, OK},
    {"an_event_is_done_after_its_stream", event_after_synchronize, OK},
    {"elapsed_time_needs_recorded_events", elapsed_needs_records, INVALID_HANDLE},
    {"the_default_stream_cannot_be_captured", capture_of_the_default_stream, CAPTURE_UNSUPPORTED},
    {"a_captured_stream_cannot_be_captured_again", capture_within_a_capture, ILLEGAL_STATE},
    {"a_capture_ends_only_where_one_began", end_without_capture, ILLEGAL_STATE},
    {"a_capture_is_seen_on_its_stream", capture_is_seen, OK},
    {"a_malloc_breaks_a_global_capture", malloc_in_a_global_capture, CAPTURE_UNSUPPORTED},
    {"a_relaxed_thread_may_malloc_in_a_capture", malloc_in_a_capture_while_relaxed, OK},
    {"pages_are_mapped_and_filled", vmm_from_end_to_end, OK},
    {"no_addresses_cannot_be_reserved", reserve_of_nothing, INVALID_VALUE},
    {"memory_comes_in_whole_pages", create_of_half_a_page, INVALID_VALUE},
    {"too_many_pages_are_out_of_memory", create_of_too_much, OUT_OF_MEMORY},
    {"pages_are_taken_from_what_is_free", create_is_taken_from_free, OK},
    {"a_handle_is_released_once", release_twice, INVALID_VALUE},
    {"a_mapping_cannot_lie_on_another", map_over_a_mapping, INVALID_VALUE},
    {"a_mapping_has_no_offset", map_with_an_offset, INVALID_VALUE},
    {"a_mapping_lies_in_a_reservation", map_outside_a_reservation, INVALID_VALUE},
    {"access_is_for_what_is_mapped", access_to_unmapped, INVALID_VALUE},
    {"half_a_mapping_cannot_be_unmapped", unmap_of_half_a_mapping, INVALID_VALUE},
    {"what_is_not_mapped_cannot_be_unmapped", unmap_of_unmapped, INVALID_VALUE},
    {"addresses_are_given_back_whole", unreserve_of_a_part, INVALID_VALUE},
    {"addresses_are_given_back_once", unreserve_twice, INVALID_VALUE},
    {"memory_lives_while_it_is_mapped", memory_lives_while_mapped, OK},
};

#define QUESTION_COUNT (sizeof questions / sizeof questions[0])

static void put_question(void **state)
{
    const question *asked = *state;
    cuda.get_last_error();
    assert_int_equal(asked->ask(), asked->expected);
    cuda.get_last_error();
}

/* 0: no usable runtime of this name. */
static bool open_runtime(const char *library)
{
    const char *missing = NULL;
    int count = 0;
    if (!cuda_entries_load(&cuda, library, &missing)) {
        if (missing != NULL)
            printf("%s has no %s\n", library, missing);
        return false;
    }
    if (cuda.get_device_count(&count) != OK || count == 0 || cuda.set_device(0) != OK)
        return false;
    if (!cuda_entries_load_driver(&cuda, &missing)) {
        printf("%s knows no %s\n", library, missing);
        return false;
    }
    return cuda.granularity(&page, &pinned, 0) == OK && page > 0;
}

static int ask_all(const char *name)
{
    struct CMUnitTest tests[QUESTION_COUNT];
    memset(tests, 0, sizeof tests);
    for (size_t i = 0; i < QUESTION_COUNT; i++) {
        void *state = NULL;
        const question *asked = &questions[i];
        memcpy(&state, &asked, sizeof state);
        tests[i] = (struct CMUnitTest){
            .name = asked->statement, .test_func = put_question, .initial_state = state};
    }
    return _cmocka_run_group_tests(name, tests, QUESTION_COUNT, NULL, NULL);
}

enum { NO_RUNTIME = 77 };

/* In a process of its own: 0, how many failed, or NO_RUNTIME. */
static int run_apart(const char *name, const char *library)
{
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        int failed = open_runtime(library) ? ask_all(name) : NO_RUNTIME;
        fflush(stdout);
        fflush(stderr);
        exit(failed);
    }
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status))
        return 1;
    return WEXITSTATUS(status);
}

static int run_software(const char *folder, int major)
{
    char library[4200];
    char name[64];
    snprintf(library, sizeof library, "%s/%d/libcudart.so.%d", folder, major, major);
    snprintf(name, sizeof name, "software runtime %d", major);
    int failed = run_apart(name, library);
    if (failed == NO_RUNTIME)
        printf("%s: cannot be used\n", library);
    return failed != 0;
}

int main(void)
{
    char folder[4096];
    cuda_entries_software_folder(folder, sizeof folder);
    int failed = run_software(folder, 12) + run_software(folder, 13);
    int real = run_apart("NVIDIA's runtime 13", "libcudart.so.13");
    if (real == NO_RUNTIME)
        real = run_apart("NVIDIA's runtime 12", "libcudart.so.12");
    if (real == NO_RUNTIME)
        printf("[  SKIPPED ] contract with NVIDIA's runtime: none with a device is here\n");
    else
        failed += real != 0;
    return failed;
}
