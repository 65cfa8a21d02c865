/* The real device over the software CUDA, call by call. */
#include "gpu_replay/device/cuda_device.h"

#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "gpu_replay/software/software_cuda.h"
#include "tests/gpu_replay/cuda_entries.h"

#define PAGE FRAG_DEVICE_PAGE_BYTES

static struct {
    bool (*reset)(const char *settings, char *sentence, size_t sentence_bytes);
    bool (*set)(const char *settings, char *sentence, size_t sentence_bytes);
    void (*complete)(uint64_t stream);
    uint64_t (*call_count)(const char *name);
    uint64_t (*sequence)(void);
    void (*held)(frag_software_held *held);
} software;

static char runtime_path[4200];
static frag_gpu *gpu;

static void find(void *library, const char *name, void *function)
{
    void *found = dlsym(library, name);
    assert_non_null(found);
    memcpy(function, &found, sizeof found);
}

static int load(void **state)
{
    (void)state;
    char folder[4096];
    char path[4200];
    cuda_entries_software_folder(folder, sizeof folder);
    snprintf(path, sizeof path, "%s/13/libcuda.so.1", folder);
    snprintf(runtime_path, sizeof runtime_path, "%s/13/libcudart.so.13", folder);
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL)
        return 1;
    find(library, "frag_software_reset", &software.reset);
    find(library, "frag_software_set", &software.set);
    find(library, "frag_software_complete", &software.complete);
    find(library, "frag_software_call_count", &software.call_count);
    find(library, "frag_software_sequence", &software.sequence);
    find(library, "frag_software_get_held", &software.held);
    return 0;
}

static frag_device *open_device(const char *settings, const frag_gpu_device_options *options)
{
    char sentence[256];
    frag_error error = {0};
    if (!software.reset(settings, sentence, sizeof sentence))
        fail_msg("%s", sentence);
    gpu = frag_gpu_open(runtime_path, 0, &error);
    if (gpu == NULL)
        fail_msg("%s", error.sentence);
    frag_device *device = frag_cuda_device_create(gpu, options, &error);
    if (device == NULL)
        fail_msg("%s", error.sentence);
    return device;
}

static void close_device(frag_device *device)
{
    static const frag_software_held nothing;
    frag_software_held held;
    frag_device_destroy(device);
    software.held(&held);
    frag_gpu_close(gpu);
    assert_memory_equal(&held, &nothing, sizeof held);
}

static frag_gpu_device_options plain(void)
{
    return (frag_gpu_device_options){.capacity_bytes = FRAG_UNLIMITED};
}

static uint64_t get(frag_device *device, uint64_t bytes)
{
    uint64_t address = 0;
    assert_int_equal(frag_device_malloc(device, bytes, &address), FRAG_DEVICE_OK);
    return address;
}

static void addresses_are_those_of_the_simulated_device(void **state)
{
    (void)state;
    frag_gpu_device_options options = plain();
    frag_device *device = open_device("addresses=bump", &options);
    frag_sim_device_options rule = {.capacity_bytes = FRAG_UNLIMITED};
    frag_device *simulated = frag_sim_device_create(&rule);
    for (int round = 0; round < 3; round++) {
        uint64_t first = get(device, 5 * PAGE);
        assert_int_equal(first, get(simulated, 5 * PAGE));
        assert_int_equal(get(device, PAGE), get(simulated, PAGE));
        assert_int_equal(frag_device_free(device, first, 5 * PAGE), FRAG_DEVICE_OK);
        assert_int_equal(frag_device_free(simulated, first, 5 * PAGE), FRAG_DEVICE_OK);
    }
    assert_int_equal(software.call_count("cudaFree"), 3 + 2); /* the context, the warming up */
    frag_device_destroy(simulated);
    close_device(device);
}

static void all_that_is_held_is_given_back_at_the_end(void **state)
{
    (void)state;
    frag_gpu_device_options options = plain();
    options.has_ballast = true;
    options.capacity_bytes = FRAG_GIB;
    frag_device *device = open_device("capacity=4GiB,context=301MiB", &options);
    uint64_t range = 0;
    uint64_t pooled = 0;
    get(device, 3 * PAGE);
    assert_int_equal(frag_device_reserve(device, 100 * PAGE, &range), FRAG_DEVICE_OK);
    assert_int_equal(frag_device_map(device, range, 7 * PAGE), FRAG_DEVICE_OK);
    assert_int_equal(frag_device_malloc_async(device, 1000, 2, &pooled), FRAG_DEVICE_OK);
    (void)frag_device_event_record(device, 1);
    frag_gpu_report report;
    frag_cuda_device_finish(device, &report);
    assert_int_equal(report.ballast_bytes / PAGE, (4096 - 301 - 1024) / 2);
    assert_int_equal(report.free_before_bytes, report.free_after_bytes);
    assert_true(report.pool_reserved_peak_bytes >= 1000);
    assert_true(report.pool_used_peak_bytes >= 1000);
    close_device(device);
}

static void memory_of_the_pool_comes_and_goes_in_stream_order(void **state)
{
    (void)state;
    frag_gpu_device_options options = plain();
    options.capacity_bytes = 2 * PAGE;
    frag_device *device = open_device("", &options);
    uint64_t one = 0;
    uint64_t other = 0;
    assert_true(frag_device_has_pool(device));
    assert_int_equal(frag_device_malloc_async(device, 2 * PAGE, 1, &one), FRAG_DEVICE_OK);
    assert_int_equal(device->reserved_bytes, 2 * PAGE);
    /* The budget holds for the pool too. */
    assert_int_equal(frag_device_malloc_async(device, 1, 1, &other), FRAG_DEVICE_OUT_OF_MEMORY);
    assert_int_equal(device->needs.max_bytes, 2 * PAGE);
    assert_int_equal(device->needs.refused_min_bytes, 3 * PAGE);
    assert_int_equal(frag_device_free_async(device, one, 2 * PAGE, 1), FRAG_DEVICE_OK);
    assert_int_equal(frag_device_malloc_async(device, PAGE, 0, &other), FRAG_DEVICE_OK);
    assert_int_equal(device->counts.calls[FRAG_DEVICE_MALLOC_ASYNC], 3);
    assert_int_equal(device->counts.failed_calls[FRAG_DEVICE_MALLOC_ASYNC], 1);
    close_device(device);
}

static void a_map_is_made_of_pieces_that_are_unmapped_whole(void **state)
{
    (void)state;
    frag_gpu_device_options options = plain();
    frag_device *device = open_device("", &options);
    uint64_t range = 0;
    assert_int_equal(frag_device_reserve(device, 100 * PAGE, &range), FRAG_DEVICE_OK);
    device->map_unit_bytes = 10 * PAGE;
    assert_int_equal(frag_device_map(device, range, 25 * PAGE), FRAG_DEVICE_OK);
    assert_int_equal(software.call_count("cuMemCreate"), 3 + 1);
    assert_int_equal(software.call_count("cuMemSetAccess"), 1 + 1);
    assert_int_equal(frag_device_unmap(device, range + 10 * PAGE, 10 * PAGE), FRAG_DEVICE_OK);
    /* What begins within a piece ends where the piece would have. */
    assert_int_equal(frag_device_map(device, range + 25 * PAGE, 10 * PAGE), FRAG_DEVICE_OK);
    assert_int_equal(software.call_count("cuMemCreate"), 5 + 1);
    assert_int_equal(frag_device_unmap(device, range + 30 * PAGE, 5 * PAGE), FRAG_DEVICE_OK);
    assert_int_equal(frag_device_unmap(device, range, 5 * PAGE), FRAG_DEVICE_FAILED);
    assert_true(device->has_failed);
    assert_non_null(strstr(device->failure, "cuMemUnmap: invalid argument"));
    close_device(device);
}

/* Two pieces of one range side by side in another, in the other order. */
static void memory_is_mapped_for_a_second_time_and_released_once(void **state)
{
    (void)state;
    frag_gpu_device_options options = plain();
    frag_device *device = open_device("", &options);
    frag_software_held held;
    uint64_t home = 0;
    uint64_t range = 0;
    device->map_unit_bytes = PAGE;
    assert_int_equal(frag_device_reserve(device, 8 * PAGE, &home), FRAG_DEVICE_OK);
    assert_int_equal(frag_device_map(device, home, 8 * PAGE), FRAG_DEVICE_OK);
    assert_int_equal(frag_device_reserve(device, 4 * PAGE, &range), FRAG_DEVICE_OK);
    assert_int_equal(frag_device_map_again(device, range, PAGE, home + 6 * PAGE), FRAG_DEVICE_OK);
    assert_int_equal(frag_device_map_again(device, range + PAGE, 3 * PAGE, home + PAGE),
                     FRAG_DEVICE_OK);
    assert_int_equal(device->reserved_bytes, 8 * PAGE);
    assert_int_equal(device->counts.calls[FRAG_DEVICE_MAP], 3);
    software.held(&held);
    assert_int_equal(held.handle_count, 8);
    assert_int_equal(held.mapping_count, 12);
    assert_int_equal(frag_device_unmap_again(device, range, 4 * PAGE), FRAG_DEVICE_OK);
    assert_int_equal(frag_device_unreserve(device, range, 4 * PAGE), FRAG_DEVICE_OK);
    software.held(&held);
    assert_int_equal(held.handle_count, 8);
    assert_int_equal(held.mapping_count, 8);
    /* What is still mapped twice at the end is given back as well. */
    assert_int_equal(frag_device_reserve(device, 4 * PAGE, &range), FRAG_DEVICE_OK);
    assert_int_equal(frag_device_map_again(device, range, 4 * PAGE, home), FRAG_DEVICE_OK);
    /* Half a piece is none. */
    device->map_unit_bytes = 2 * PAGE;
    uint64_t other = 0;
    assert_int_equal(frag_device_reserve(device, 4 * PAGE, &other), FRAG_DEVICE_OK);
    assert_int_equal(frag_device_map_again(device, other, 4 * PAGE, home), FRAG_DEVICE_FAILED);
    close_device(device);
}

static void a_map_that_fails_halfway_leaves_nothing(void **state)
{
    (void)state;
    static const char *const faults[] = {"fail=cuMemCreate:3:2", "fail=cuMemMap:3:2",
                                         "fail=cuMemSetAccess:2:2"};
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
        frag_gpu_device_options options = plain();
        frag_device *device = open_device(faults[i], &options);
        frag_software_held held;
        uint64_t range = 0;
        assert_int_equal(frag_device_reserve(device, 100 * PAGE, &range), FRAG_DEVICE_OK);
        assert_int_equal(frag_device_map(device, range, 4 * PAGE), FRAG_DEVICE_OUT_OF_MEMORY);
        software.held(&held);
        assert_int_equal(held.handle_count, 0);
        assert_int_equal(held.mapping_count, 0);
        assert_int_equal(device->reserved_bytes, 0);
        assert_int_equal(frag_device_map(device, range, 4 * PAGE), FRAG_DEVICE_OK);
        assert_int_equal(device->reserved_bytes, 4 * PAGE);
        close_device(device);
    }
}

static void what_was_held_before_a_trace_is_got_anew(void **state)
{
    (void)state;
    const uint64_t place = 0x7f0000000000;
    frag_gpu_device_options options = plain();
    const frag_recorded_segment recorded = {place, 3 * PAGE};
    options.rule.recorded = &recorded;
    options.rule.recorded_count = 1;
    options.rule.initial_count = 1;
    options.is_touched = true;
    frag_device *device = open_device("lag=2", &options);
    frag_software_held held;
    assert_int_equal(frag_device_adopt(device, place, 3 * PAGE, false), FRAG_DEVICE_OK);
    assert_int_equal(frag_device_adopt(device, place + 4 * PAGE, 3 * PAGE, true), FRAG_DEVICE_OK);
    software.held(&held);
    assert_int_equal(held.malloc_bytes, 3 * PAGE);
    assert_int_equal(held.mapping_bytes, 3 * PAGE);
    /* The policy goes on mapping behind it, writes over both, and unmaps all in one. */
    assert_int_equal(frag_device_map(device, place + 7 * PAGE, 2 * PAGE), FRAG_DEVICE_OK);
    frag_device_touch(device, place + 5 * PAGE, 4 * PAGE, 1);
    assert_false(device->has_failed);
    assert_int_equal(software.call_count("cudaMemsetAsync"), 2);
    /* What may still be written to is waited for. */
    uint64_t waits = software.call_count("cudaDeviceSynchronize");
    assert_int_equal(frag_device_unmap(device, place + 5 * PAGE, 3 * PAGE), FRAG_DEVICE_OK);
    software.held(&held);
    assert_int_equal(held.mapping_bytes, 2 * PAGE);
    assert_int_equal(software.call_count("cudaDeviceSynchronize"), waits + 1);
    assert_int_equal(frag_device_free(device, place, 3 * PAGE), FRAG_DEVICE_OK);
    close_device(device);
}

static void events_are_as_recorded_and_waited_for(void **state)
{
    (void)state;
    frag_gpu_device_options options = plain();
    options.is_touched = true;
    frag_device *device = open_device("lag=1000", &options);
    uint64_t memory = get(device, PAGE);
    frag_device_touch(device, memory, PAGE, 1);
    uint64_t event = frag_device_event_record(device, 1);
    assert_false(frag_device_event_is_done(device, 1, event));
    frag_device_stream_done(device, 1);
    assert_int_equal(software.call_count("cudaEventSynchronize"), 0);
    assert_true(frag_device_event_is_done(device, 1, event));
    assert_int_equal(software.call_count("cudaEventSynchronize"), 1);
    close_device(device);
}

static void a_running_program_has_events_of_its_own_time(void **state)
{
    (void)state;
    frag_gpu_device_options options = plain();
    options.has_program_streams = true;
    options.has_driver_addresses = true;
    frag_device *device = open_device("lag=told", &options);
    uint64_t memory = get(device, PAGE);
    frag_cuda_stream stream = NULL;
    assert_int_equal(gpu->cuda.cudaStreamCreateWithFlags(&stream, 0), 0);
    frag_cuda_device_set_stream(device, 3, stream);
    assert_int_equal(gpu->cuda.cudaMemsetAsync((void *)(uintptr_t)memory, 0, PAGE, stream), 0);
    uint64_t event = frag_device_event_record(device, 3);
    assert_false(frag_device_event_is_done(device, 3, event));
    assert_false(device->has_failed);
    software.complete(UINT64_MAX);
    assert_true(frag_device_event_is_done(device, 3, event));
    frag_cuda_device_finish(device, NULL);
    assert_int_equal(gpu->cuda.cudaStreamDestroy(stream), 0);
    close_device(device);
}

static void marks_that_nobody_asks_for_do_not_pile_up(void **state)
{
    (void)state;
    frag_gpu_device_options options = plain();
    frag_device *device = open_device("", &options);
    frag_software_held held;
    for (int i = 0; i < 1000; i++)
        (void)frag_device_event_record(device, 1);
    frag_device_event_await(device, 2, 1, 7);
    assert_int_equal(software.call_count("cudaStreamWaitEvent"), 1);
    software.held(&held);
    assert_true(held.event_count <= 100);
    close_device(device);
}

static void memory_for_which_the_rule_has_no_address_goes_back(void **state)
{
    (void)state;
    const uint64_t whole = (uint64_t)1 << 40;
    frag_gpu_device_options options = plain();
    options.rule.address_rule = FRAG_ADDRESS_BUMP;
    frag_device *device = open_device("capacity=1TiB", &options);
    frag_software_held held;
    uint64_t address = 0;
    int rounds = 0;
    while (frag_device_malloc(device, whole, &address) == FRAG_DEVICE_OK) {
        assert_int_equal(frag_device_free(device, address, whole), FRAG_DEVICE_OK);
        rounds++;
    }
    assert_int_equal(rounds, 1 << 20); /* of an address space of 2^60 bytes */
    assert_false(device->has_failed);
    software.held(&held);
    assert_int_equal(held.malloc_count, 0);
    close_device(device);
}

static void after_a_failure_no_call_reaches_the_driver(void **state)
{
    (void)state;
    frag_gpu_device_options options = plain();
    frag_device *device = open_device("fail=cudaMalloc:3:1", &options);
    uint64_t memory = get(device, PAGE);
    uint64_t address = 0;
    assert_int_equal(frag_device_malloc(device, PAGE, &address), FRAG_DEVICE_FAILED);
    assert_string_equal(device->failure, "cudaMalloc: invalid argument (cudaErrorInvalidValue, 1)");
    uint64_t calls = software.sequence();
    assert_int_equal(frag_device_malloc(device, PAGE, &address), FRAG_DEVICE_FAILED);
    assert_int_equal(frag_device_free(device, memory, PAGE), FRAG_DEVICE_FAILED);
    assert_int_equal(frag_device_reserve(device, PAGE, &address), FRAG_DEVICE_FAILED);
    assert_int_equal(frag_device_synchronize(device), FRAG_DEVICE_FAILED);
    assert_int_equal(software.sequence(), calls);
    close_device(device);
}

static void a_ballast_the_card_has_no_room_for_is_refused(void **state)
{
    (void)state;
    frag_error error = {0};
    frag_gpu_device_options options = {.capacity_bytes = 2 * FRAG_GIB, .has_ballast = true};
    assert_true(software.reset("capacity=1GiB", NULL, 0));
    gpu = frag_gpu_open(runtime_path, 0, &error);
    assert_non_null(gpu);
    assert_null(frag_cuda_device_create(gpu, &options, &error));
    assert_string_equal(error.sentence, "the card has 1.00 GiB free, and 2.00 GiB are to be left "
                                        "of it; ask for less");
    frag_gpu_close(gpu);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(addresses_are_those_of_the_simulated_device),
        cmocka_unit_test(all_that_is_held_is_given_back_at_the_end),
        cmocka_unit_test(memory_of_the_pool_comes_and_goes_in_stream_order),
        cmocka_unit_test(a_map_is_made_of_pieces_that_are_unmapped_whole),
        cmocka_unit_test(memory_is_mapped_for_a_second_time_and_released_once),
        cmocka_unit_test(a_map_that_fails_halfway_leaves_nothing),
        cmocka_unit_test(what_was_held_before_a_trace_is_got_anew),
        cmocka_unit_test(events_are_as_recorded_and_waited_for),
        cmocka_unit_test(a_running_program_has_events_of_its_own_time),
        cmocka_unit_test(marks_that_nobody_asks_for_do_not_pile_up),
        cmocka_unit_test(memory_for_which_the_rule_has_no_address_goes_back),
        cmocka_unit_test(after_a_failure_no_call_reaches_the_driver),
        cmocka_unit_test(a_ballast_the_card_has_no_room_for_is_refused),
    };
    return cmocka_run_group_tests(tests, load, NULL);
}
