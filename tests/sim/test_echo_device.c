/* Tests of echo_device.c: a second run that must repeat the first. */
#include "sim/device/echo_device.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "allocators/registry.h"
#include "base/bytes.h"
#include "sim/run.h"
#include "traces/load.h"

#define RECORDING "traces/samples/pr193400.pickle.zst"
#define CAPACITY (300 * FRAG_MIB)

static frag_recording recording;
static frag_answer_list answers;

/* A simulated device whose answers are kept. */
static frag_device *open_kept(void *context, const frag_trace *trace,
                              const frag_sim_device_options *rule, frag_error *error)
{
    (void)context;
    (void)trace;
    (void)error;
    frag_device *device = frag_sim_device_create(rule);
    device->watch.on_answer = frag_answer_list_keep;
    device->watch.on_answer_context = &answers;
    return device;
}

static frag_device *open_echo(void *context, const frag_trace *trace,
                              const frag_sim_device_options *rule, frag_error *error)
{
    (void)context;
    (void)error;
    frag_echo_options options = {
        .answers = &answers,
        .capacity_bytes = rule->capacity_bytes,
        .free_bytes = rule->capacity_bytes,
        .page_bytes = FRAG_DEVICE_PAGE_BYTES,
        .ordinal = trace->device,
    };
    return frag_echo_device_create(&options);
}

static bool run(const char *policy, const frag_device_opener *opener, uint64_t capacity_bytes,
                frag_run_result *result, frag_error *error)
{
    frag_policy_spec *specs = NULL;
    size_t count = 0;
    assert_true(frag_policy_specs_parse(policy, &specs, &count, error));
    frag_device_spec device = {.capacity_bytes = capacity_bytes, .opener = opener};
    frag_run_options options = {.is_oom_skipped = true};
    bool ok = frag_run(
        &(frag_run_setup){&recording, &recording.traces[0], specs[0].ops, specs[0].values, &device},
        &options, result, error);
    frag_policy_specs_destroy(specs, count);
    return ok;
}

/* frag_run opens a device twice; the answers of the first pass are what is wanted. */
static void keep_answers(const char *policy, uint64_t capacity_bytes, frag_run_result *result)
{
    static const frag_device_opener kept = {.open = open_kept};
    frag_error error = {0};
    frag_answer_list_destroy(&answers);
    frag_policy_spec *specs = NULL;
    size_t count = 0;
    assert_true(frag_policy_specs_parse(policy, &specs, &count, &error));
    frag_device_spec device = {.capacity_bytes = capacity_bytes, .opener = &kept};
    frag_run_options options = {.is_oom_skipped = true};
    assert_true(frag_run_count(
        &(frag_run_setup){&recording, &recording.traces[0], specs[0].ops, specs[0].values, &device},
        &options, result, &error));
    frag_policy_specs_destroy(specs, count);
    assert_true(answers.count > 0);
}

static void the_same_run_comes_to_the_same(void **state)
{
    (void)state;
    static const frag_device_opener echo = {.open = open_echo};
    static const char *const policies[] = {"pytorch", "pytorch:expandable_segments=true",
                                           "best-fit", "direct", "rmm-pool"};
    const uint64_t capacities[] = {CAPACITY, 8 * FRAG_GIB};
    for (size_t i = 0; i < 2 * sizeof policies / sizeof policies[0]; i++) {
        const char *policy = policies[i / 2];
        frag_run_result counted;
        frag_run_result simulated;
        frag_run_result echoed;
        frag_error error = {0};
        keep_answers(policy, capacities[i % 2], &counted);
        assert_true(run(policy, NULL, capacities[i % 2], &simulated, &error));
        assert_true(run(policy, &echo, capacities[i % 2], &echoed, &error));
        assert_memory_equal(&echoed.replay.peak, &simulated.replay.peak, sizeof echoed.replay.peak);
        assert_memory_equal(&echoed.at_peak, &simulated.at_peak, sizeof echoed.at_peak);
        assert_memory_equal(echoed.calls, simulated.calls, sizeof echoed.calls);
        assert_int_equal(echoed.replay.failed_requests, simulated.replay.failed_requests);
        assert_int_equal(echoed.replay.oom.free_bytes, simulated.replay.oom.free_bytes);
    }
}

static void another_run_is_refused(void **state)
{
    (void)state;
    static const frag_device_opener echo = {.open = open_echo};
    frag_run_result result;
    frag_error error = {0};
    keep_answers("pytorch", 8 * FRAG_GIB, &result);
    assert_false(run("direct", &echo, 8 * FRAG_GIB, &result, &error));
    assert_int_equal(error.code, FRAG_E_SYSTEM);
    assert_non_null(strstr(error.sentence, "other device calls than in the run that this one "
                                           "repeats"));
}

/* The answer to the one call that was kept. */
static frag_device_result ask(const frag_device_answer *kept, frag_device_call call,
                              uint64_t address, uint64_t bytes, uint64_t *found)
{
    frag_answer_list list = {.items = (frag_device_answer[]){*kept}, .count = 1};
    const frag_echo_options options = {.answers = &list,
                                       .capacity_bytes = 8 * FRAG_GIB,
                                       .free_bytes = 8 * FRAG_GIB,
                                       .page_bytes = FRAG_DEVICE_PAGE_BYTES};
    frag_device *device = frag_echo_device_create(&options);
    const frag_device_ops *ops = device->ops;
    frag_device_result result =
        call == FRAG_DEVICE_MALLOC         ? ops->malloc(device, bytes, found)
        : call == FRAG_DEVICE_MALLOC_ASYNC ? ops->malloc_async(device, bytes, 0, found)
        : call == FRAG_DEVICE_RESERVE      ? ops->reserve(device, bytes, found)
        : call == FRAG_DEVICE_FREE         ? ops->free(device, address, bytes)
        : call == FRAG_DEVICE_FREE_ASYNC   ? ops->free_async(device, address, 0)
        : call == FRAG_DEVICE_UNRESERVE    ? ops->unreserve(device, address, bytes)
        : call == FRAG_DEVICE_MAP          ? ops->map(device, address, bytes)
        : call == FRAG_DEVICE_UNMAP        ? ops->unmap(device, address, bytes)
        : call == FRAG_DEVICE_MEMORY_INFO  ? ops->memory_info(device, false, found, &bytes)
        : call == FRAG_DEVICE_SYNCHRONIZE  ? ops->synchronize(device)
        : call == FRAG_DEVICE_EVENT_RECORD ? ops->event_record(device, (uint32_t)address, 1)
        : call == FRAG_DEVICE_EVENT_QUERY  ? ops->event_wait(device, (uint32_t)address, 1)
        : call == FRAG_DEVICE_EVENT_WAIT   ? ops->event_await(device, 0, 0, address)
                                           : ops->stream_wait(device, (uint32_t)address);
    /* Nothing else was kept. */
    assert_int_equal(ops->synchronize(device), FRAG_DEVICE_FAILED);
    ops->destroy(device);
    return result;
}

static void each_call_gets_the_answer_that_was_kept_or_none(void **state)
{
    (void)state;
    static const struct {
        frag_device_call call;
        uint64_t address, bytes;
        bool has_address, has_bytes; /* of its own, which must be the same */
    } cases[] = {
        {FRAG_DEVICE_MALLOC, 0x10000, 4096, false, true},
        {FRAG_DEVICE_MALLOC_ASYNC, 0x10000, 4096, false, true},
        {FRAG_DEVICE_RESERVE, 0x10000, 4096, false, true},
        {FRAG_DEVICE_FREE, 0x10000, 4096, true, true},
        {FRAG_DEVICE_FREE_ASYNC, 0x10000, 4096, true, false},
        {FRAG_DEVICE_UNRESERVE, 0x10000, 4096, true, true},
        {FRAG_DEVICE_MAP, 0x10000, 4096, true, true},
        {FRAG_DEVICE_UNMAP, 0x10000, 4096, true, true},
        {FRAG_DEVICE_MEMORY_INFO, 0x10000, 4096, false, false},
        {FRAG_DEVICE_SYNCHRONIZE, 0, 0, false, false},
        {FRAG_DEVICE_EVENT_RECORD, 3, 0, true, false},
        {FRAG_DEVICE_EVENT_QUERY, 3, 0, true, false},
        {FRAG_DEVICE_EVENT_WAIT, 3, 0, true, false},
        {FRAG_DEVICE_STREAM_WAIT, 3, 0, true, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        frag_device_answer kept = {.kind = FRAG_ANSWER_CALL,
                                   .call = (uint8_t)cases[i].call,
                                   .address = cases[i].address,
                                   .bytes = cases[i].bytes};
        const frag_device_call call = cases[i].call;
        const uint64_t address = cases[i].address, bytes = cases[i].bytes;
        uint64_t found = 0x10000;
        assert_int_equal(ask(&kept, call, address, bytes, &found), FRAG_DEVICE_OK);
        assert_int_equal(found, 0x10000);
        if (cases[i].has_address)
            assert_int_equal(ask(&kept, call, address + 1, bytes, &found), FRAG_DEVICE_FAILED);
        if (cases[i].has_bytes)
            assert_int_equal(ask(&kept, call, address, bytes + 1, &found), FRAG_DEVICE_FAILED);
        kept.kind = FRAG_ANSWER_ADOPT;
        assert_int_equal(ask(&kept, call, address, bytes, &found), FRAG_DEVICE_FAILED);
        kept.kind = FRAG_ANSWER_CALL;
        kept.result = FRAG_DEVICE_OUT_OF_MEMORY;
        assert_int_equal(ask(&kept, call, address, bytes, &found), FRAG_DEVICE_OUT_OF_MEMORY);
    }
}

static int load(void **state)
{
    (void)state;
    frag_load_options options = {0};
    frag_findings findings = {0};
    frag_error error = {0};
    return frag_recording_load(RECORDING, &options, &recording, &findings, &error) ? 0 : 1;
}

static int unload(void **state)
{
    (void)state;
    frag_answer_list_destroy(&answers);
    frag_recording_destroy(&recording);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_run_comes_to_the_same),
        cmocka_unit_test(another_run_is_refused),
        cmocka_unit_test(each_call_gets_the_answer_that_was_kept_or_none),
    };
    return cmocka_run_group_tests(tests, load, unload);
}
