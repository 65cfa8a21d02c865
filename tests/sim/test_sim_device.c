/* Tests of the simulated device: charges, addresses, refusals. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "sim/device.h"
#include "sim/device/footprint.h"
#include "sim/run.h"

#define PAGE FRAG_DEVICE_PAGE_BYTES

static frag_device *open_device(uint64_t capacity, frag_address_rule rule)
{
    frag_sim_device_options options = {.capacity_bytes = capacity, .address_rule = rule};
    return frag_sim_device_create(&options);
}

static void charges_whole_pages_but_reserves_what_was_asked(void **state)
{
    (void)state;
    frag_device *device = open_device(3 * PAGE, FRAG_ADDRESS_LOWEST);
    uint64_t first = 0;
    uint64_t second = 0;
    uint64_t third = 0;
    assert_int_equal(frag_device_malloc(device, 1, &first), FRAG_DEVICE_OK);
    assert_int_equal(frag_device_malloc(device, PAGE + 1, &second), FRAG_DEVICE_OK);
    assert_int_equal(device->reserved_bytes, PAGE + 2);
    assert_int_equal(frag_device_malloc(device, 1, &third), FRAG_DEVICE_OUT_OF_MEMORY);
    assert_int_equal(device->counts.failed_calls[FRAG_DEVICE_MALLOC], 1);
    assert_int_equal(device->needs.max_bytes, 3 * PAGE);
    assert_int_equal(device->needs.refused_min_bytes, 4 * PAGE);
    assert_int_equal(second, first + PAGE);
    frag_device_destroy(device);
}

static void charges_what_the_footprint_says(void **state)
{
    (void)state;
    const frag_footprint footprint = {
        .classes = {{4096, 8192}, {65536, 131072}}, .count = 2, .unit_bytes = 65536};
    frag_sim_device_options options = {.capacity_bytes = FRAG_UNLIMITED, .footprint = &footprint};
    frag_device *device = frag_sim_device_create(&options);
    static const struct {
        uint64_t bytes;
        uint64_t taken;
    } cases[] = {{1, 8192}, {4096, 8192}, {4097, 131072}, {65536, 131072}, {131073, 196608}};
    uint64_t taken = 0;
    uint64_t at[5];
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        taken += cases[i].taken;
        assert_int_equal(frag_device_malloc(device, cases[i].bytes, &at[i]), FRAG_DEVICE_OK);
        assert_int_equal(device->needs.max_bytes, taken);
    }
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_int_equal(frag_device_free(device, at[i], cases[i].bytes), FRAG_DEVICE_OK);
    /* All of it came back; a range of pages takes what it has. */
    uint64_t range = 0;
    frag_device_reserve(device, 2 * taken, &range);
    assert_int_equal(frag_device_map(device, range, PAGE), FRAG_DEVICE_OK);
    assert_int_equal(device->needs.max_bytes, PAGE);
    frag_device_destroy(device);
}

static void places_at_the_lowest_range_that_is_large_enough(void **state)
{
    (void)state;
    frag_device *device = open_device(FRAG_UNLIMITED, FRAG_ADDRESS_LOWEST);
    uint64_t at[4];
    for (int i = 0; i < 4; i++)
        frag_device_malloc(device, PAGE, &at[i]);
    frag_device_free(device, at[0], PAGE);
    frag_device_free(device, at[2], PAGE);
    frag_device_free(device, at[1], PAGE);
    uint64_t wide = 0;
    frag_device_malloc(device, 2 * PAGE, &wide);
    assert_int_equal(wide, at[0]);
    uint64_t last = 0;
    frag_device_malloc(device, PAGE, &last);
    assert_int_equal(last, at[2]);
    frag_device_destroy(device);
}

static void never_reuses_an_address_when_told_so(void **state)
{
    (void)state;
    frag_device *device = open_device(FRAG_UNLIMITED, FRAG_ADDRESS_BUMP);
    uint64_t first = 0;
    uint64_t second = 0;
    frag_device_malloc(device, PAGE, &first);
    frag_device_free(device, first, PAGE);
    frag_device_malloc(device, PAGE, &second);
    assert_int_equal(second, first + PAGE);
    frag_device_destroy(device);
}

static void counts_up_or_down_from_a_base_with_gaps(void **state)
{
    (void)state;
    for (int is_down = 0; is_down < 2; is_down++) {
        frag_sim_device_options options = {.capacity_bytes = 10000,
                                           .address_rule = FRAG_ADDRESS_BUMP,
                                           .page_bytes = 256,
                                           .base_address = 100000,
                                           .gap_bytes = 1000,
                                           .is_descending = is_down != 0};
        frag_device *device = frag_sim_device_create(&options);
        uint64_t first = 0;
        uint64_t second = 0;
        uint64_t third = 0;
        assert_int_equal(frag_device_malloc(device, 300, &first), FRAG_DEVICE_OK);
        assert_int_equal(frag_device_malloc(device, 512, &second), FRAG_DEVICE_OK);
        assert_int_equal(first, is_down ? 100000 - 1512 : 100000);
        assert_int_equal(second, is_down ? first - 1512 : first + 1512);
        assert_int_equal(frag_device_free(device, first, 300), FRAG_DEVICE_OK);
        assert_int_equal(frag_device_malloc(device, 1, &third), FRAG_DEVICE_OK);
        assert_int_equal(third, is_down ? second - 1256 : second + 1512);
        assert_int_equal(frag_device_malloc(device, 10000 - 768 + 1, &third),
                         FRAG_DEVICE_OUT_OF_MEMORY);
        frag_device_destroy(device);
    }
    /* Downwards there is an end. */
    frag_sim_device_options options = {.capacity_bytes = FRAG_UNLIMITED,
                                       .address_rule = FRAG_ADDRESS_BUMP,
                                       .page_bytes = 1,
                                       .base_address = 1000,
                                       .is_descending = true};
    frag_device *device = frag_sim_device_create(&options);
    uint64_t address = 1;
    assert_int_equal(frag_device_malloc(device, 1001, &address), FRAG_DEVICE_OUT_OF_MEMORY);
    assert_int_equal(frag_device_malloc(device, 1000, &address), FRAG_DEVICE_OK);
    assert_int_equal(address, 0);
    frag_device_destroy(device);
}

static void follows_recorded_addresses_size_by_size(void **state)
{
    (void)state;
    const frag_recorded_segment recorded[] = {
        {0x200000600000, PAGE}, {0x200000200000, 2 * PAGE}, {0x200000000000, PAGE}};
    frag_sim_device_options options = {
        .capacity_bytes = FRAG_UNLIMITED,
        .address_rule = FRAG_ADDRESS_RECORDED,
        .recorded = recorded,
        .recorded_count = 3,
    };
    frag_device *device = frag_sim_device_create(&options);
    uint64_t address = 0;
    frag_device_malloc(device, 2 * PAGE, &address);
    assert_int_equal(address, recorded[1].address);
    frag_device_malloc(device, PAGE, &address);
    assert_int_equal(address, recorded[0].address);
    frag_device_malloc(device, PAGE, &address);
    assert_int_equal(address, recorded[2].address);
    frag_device_malloc(device, PAGE, &address);
    assert_true(address > recorded[0].address);
    /* Nor has a size that was not recorded a place of another size, though there is room. */
    address = recorded[1].address;
    frag_device_free(device, address, 2 * PAGE);
    frag_device_malloc(device, PAGE + 512, &address);
    assert_true(address > recorded[0].address);
    frag_device_destroy(device);
}

static void ascends_where_the_recorded_driver_did(void **state)
{
    (void)state;
    const frag_recorded_segment recorded[] = {{0x200000000000, PAGE},
                                              {0x200000200000, 2 * PAGE},
                                              {0x200000600000, PAGE},
                                              {0x200000800000, PAGE}};
    frag_sim_device_options options = {
        .capacity_bytes = FRAG_UNLIMITED,
        .address_rule = FRAG_ADDRESS_RECORDED,
        .recorded = recorded,
        .recorded_count = 4,
        .initial_count = 1,
    };
    frag_device *device = frag_sim_device_create(&options);
    uint64_t address = 0;
    frag_device_malloc(device, 2 * PAGE, &address);
    assert_int_equal(address, recorded[1].address);
    frag_device_malloc(device, 2 * PAGE, &address); /* departs from the recording */
    assert_true(address > recorded[3].address);
    uint64_t departed = address;
    frag_device_free(device, departed, 2 * PAGE);
    frag_device_malloc(device, PAGE, &address);
    assert_int_equal(address, departed + 2 * PAGE);
    frag_device_destroy(device);
}

static void new_addresses_keep_clear_of_what_was_there_before(void **state)
{
    (void)state;
    static const frag_address_rule rules[] = {FRAG_ADDRESS_LOWEST, FRAG_ADDRESS_BUMP};
    for (size_t i = 0; i < 2; i++) {
        frag_device *device = open_device(FRAG_UNLIMITED, rules[i]);
        uint64_t first = 0;
        uint64_t address = 0;
        assert_int_equal(frag_device_reserve(device, PAGE, &first), FRAG_DEVICE_OK);
        frag_device_keep_clear(device, first + 2 * PAGE, 4 * PAGE);
        frag_device_keep_clear(device, first + 4 * PAGE, 4 * PAGE);
        frag_device_keep_clear(device, PAGE, PAGE);
        frag_device_keep_clear(device, UINT64_MAX - PAGE, PAGE);
        frag_device_keep_clear(device, first + ((uint64_t)1 << 61),
                               PAGE); /* behind all addresses */
        assert_int_equal(frag_device_reserve(device, 2 * PAGE, &address), FRAG_DEVICE_OK);
        assert_int_equal(address, first + 8 * PAGE);
        assert_int_equal(frag_device_reserve(device, PAGE, &address), FRAG_DEVICE_OK);
        assert_int_equal(address, first + (i == 0 ? 1 : 10) * PAGE);
        assert_int_equal(frag_device_malloc(device, PAGE, &first), FRAG_DEVICE_OK);
        assert_true(first < (uint64_t)1 << 61);
        frag_device_keep_clear(device, first + PAGE, PAGE);
        assert_int_equal(frag_device_malloc(device, PAGE, &address), FRAG_DEVICE_OK);
        assert_int_equal(address, first + 2 * PAGE);
        frag_device_destroy(device);
    }
}

static void reservations_keep_clear_of_segments_from_before(void **state)
{
    (void)state;
    frag_device *device = open_device(FRAG_UNLIMITED, FRAG_ADDRESS_LOWEST);
    uint64_t first = 0;
    uint64_t address = 0;
    assert_int_equal(frag_device_reserve(device, PAGE, &first), FRAG_DEVICE_OK);
    assert_int_equal(frag_device_adopt(device, first + PAGE, PAGE, false), FRAG_DEVICE_OK);
    assert_int_equal(frag_device_reserve(device, PAGE, &address), FRAG_DEVICE_OK);
    assert_int_equal(address, first + 2 * PAGE);
    frag_device_destroy(device);
}

static void fails_the_call_it_was_told_to_fail(void **state)
{
    (void)state;
    frag_sim_device_options options = {.capacity_bytes = FRAG_UNLIMITED, .fail_call = 2};
    frag_device *device = frag_sim_device_create(&options);
    uint64_t address = 0;
    assert_int_equal(frag_device_malloc(device, PAGE, &address), FRAG_DEVICE_OK);
    assert_int_equal(frag_device_malloc(device, PAGE, &address), FRAG_DEVICE_OUT_OF_MEMORY);
    assert_int_equal(frag_device_malloc(device, PAGE, &address), FRAG_DEVICE_OK);
    frag_device_destroy(device);
}

/* Below the mallocs while there is room, then elsewhere; on a device with endless reserves on and
 * on. */
static void reserves_more_than_lies_below_the_mallocs(void **state)
{
    (void)state;
    static const uint64_t range = (uint64_t)9 << 40;
    for (uint32_t i = 0; i < 4; i++) {
        bool is_endless = i % 2 == 1;
        frag_sim_device_options options = {.capacity_bytes = (uint64_t)8 << 40,
                                           .address_rule =
                                               i / 2 == 1 ? FRAG_ADDRESS_BUMP : FRAG_ADDRESS_LOWEST,
                                           .has_endless_reserves = is_endless};
        frag_device *device = frag_sim_device_create(&options);
        uint64_t at[3] = {0, 0, 0};
        for (uint32_t j = 0; j < 3; j++)
            assert_int_equal(frag_device_reserve(device, range, &at[j]), FRAG_DEVICE_OK);
        assert_int_equal(at[0], 0x600000000000);
        assert_int_equal(at[1], is_endless ? 0x600000000000 + range : (uint64_t)1 << 62);
        assert_int_equal(at[2], at[1] + range);
        frag_device_destroy(device);
    }
}

static void tells_free_memory_less_what_others_use(void **state)
{
    (void)state;
    frag_sim_device_options options = {.capacity_bytes = 8 * PAGE,
                                       .used_by_others_bytes = 3 * PAGE};
    frag_device *device = frag_sim_device_create(&options);
    uint64_t address = 0;
    uint64_t free_bytes = 0;
    uint64_t total_bytes = 0;
    assert_false(device->needs.is_capacity_read);
    frag_device_malloc(device, PAGE, &address);
    frag_device_memory_info(device, &free_bytes, &total_bytes);
    assert_int_equal(free_bytes, 4 * PAGE);
    assert_int_equal(total_bytes, 8 * PAGE);
    assert_true(device->needs.is_capacity_read);
    frag_device_destroy(device);
}

static void devices_may_share_the_space_of_their_reservations(void **state)
{
    (void)state;
    static const frag_address_rule rules[] = {FRAG_ADDRESS_LOWEST, FRAG_ADDRESS_BUMP};
    for (size_t i = 0; i < 2; i++) {
        frag_device *first = open_device(4 * PAGE, rules[i]);
        frag_sim_device_options options = {.device = 1,
                                           .capacity_bytes = PAGE,
                                           .address_rule = rules[i],
                                           .reserves_beside = first};
        frag_device *second = frag_sim_device_create(&options);
        uint64_t at[3];
        uint64_t mapped = 0;
        frag_device_reserve(first, 2 * PAGE, &at[0]);
        frag_device_reserve(second, PAGE, &at[1]);
        assert_int_equal(at[1], at[0] + 2 * PAGE);
        frag_device_unreserve(first, at[0], 2 * PAGE);
        frag_device_reserve(second, PAGE, &at[2]);
        assert_int_equal(at[2], rules[i] == FRAG_ADDRESS_BUMP ? at[1] + PAGE : at[0]);
        /* Memory and the addresses of malloc stay each one's own. */
        assert_int_equal(frag_device_map(second, at[1], PAGE), FRAG_DEVICE_OK);
        assert_int_equal(frag_device_malloc(first, 4 * PAGE, &mapped), FRAG_DEVICE_OK);
        assert_int_equal(frag_device_malloc(second, PAGE, &mapped), FRAG_DEVICE_OUT_OF_MEMORY);
        frag_device_destroy(second);
        frag_device_destroy(first);
    }
}

/* A device with a pool of its own that gives what it is told to give. */
typedef struct pool_device {
    frag_device base;
    frag_device_result answer;
} pool_device;

static frag_device_result pool_malloc(frag_device *device, uint64_t bytes, uint32_t stream,
                                      uint64_t *address)
{
    (void)bytes;
    *address = 4096 + stream;
    return ((pool_device *)(void *)device)->answer;
}

static frag_device_result pool_free(frag_device *device, uint64_t address, uint32_t stream)
{
    assert_int_equal(address, 4097);
    assert_int_equal(stream, 2);
    return ((pool_device *)(void *)device)->answer;
}

static void the_pool_of_a_device_counts_what_it_gave(void **state)
{
    (void)state;
    static const frag_device_ops ops = {
        .name = "pool", .malloc_async = pool_malloc, .free_async = pool_free};
    pool_device device = {.base = {.ops = &ops, .capacity_bytes = FRAG_UNLIMITED, .page_bytes = 1}};
    uint64_t address = 0;
    assert_true(frag_device_has_pool(&device.base));
    assert_int_equal(frag_device_malloc_async(&device.base, 100, 1, &address), FRAG_DEVICE_OK);
    assert_int_equal(address, 4097);
    assert_int_equal(device.base.reserved_bytes, 100);
    device.answer = FRAG_DEVICE_OUT_OF_MEMORY;
    assert_int_equal(frag_device_malloc_async(&device.base, 50, 1, &address),
                     FRAG_DEVICE_OUT_OF_MEMORY);
    assert_int_equal(device.base.reserved_bytes, 100);
    device.answer = FRAG_DEVICE_FAILED;
    assert_int_equal(frag_device_free_async(&device.base, 4097, 100, 2), FRAG_DEVICE_FAILED);
    assert_int_equal(device.base.reserved_bytes, 100);
    device.answer = FRAG_DEVICE_OK;
    assert_int_equal(frag_device_free_async(&device.base, 4097, 100, 2), FRAG_DEVICE_OK);
    assert_int_equal(device.base.reserved_bytes, 0);
    assert_int_equal(device.base.counts.calls[FRAG_DEVICE_MALLOC_ASYNC], 2);
    assert_int_equal(device.base.counts.failed_calls[FRAG_DEVICE_MALLOC_ASYNC], 1);
    assert_int_equal(device.base.counts.call_bytes[FRAG_DEVICE_MALLOC_ASYNC], 100);
    assert_int_equal(device.base.counts.calls[FRAG_DEVICE_FREE_ASYNC], 2);
    frag_device *none = open_device(FRAG_UNLIMITED, FRAG_ADDRESS_LOWEST);
    assert_false(frag_device_has_pool(none));
    assert_int_equal(frag_device_malloc_async(none, 1, 0, &address), FRAG_DEVICE_OUT_OF_MEMORY);
    frag_device_destroy(none);
}

/* Each device of a program has its reservations 1 TiB above those of the one before. */
static void every_device_reserves_at_a_place_of_its_own(void **state)
{
    (void)state;
    uint64_t at[3];
    static const frag_address_rule rules[] = {FRAG_ADDRESS_LOWEST, FRAG_ADDRESS_BUMP};
    for (size_t rule = 0; rule < 2; rule++) {
        for (uint32_t i = 0; i < 3; i++) {
            frag_sim_device_options options = {
                .device = i, .capacity_bytes = FRAG_UNLIMITED, .address_rule = rules[rule]};
            frag_device *device = frag_sim_device_create(&options);
            assert_int_equal(frag_device_reserve(device, PAGE, &at[i]), FRAG_DEVICE_OK);
            frag_device_destroy(device);
        }
        assert_int_equal(at[0], 0x600000000000);
        assert_int_equal(at[1], 0x610000000000);
        assert_int_equal(at[2], 0x620000000000);
    }
}

/* Recordings number devices as they like; there are places for sixteen. */
static void a_device_of_any_number_can_reserve_and_give(void **state)
{
    (void)state;
    static const uint32_t numbers[] = {15, 16, 17, 255, 65535, 16777216, UINT32_MAX};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        frag_sim_device_options options = {.device = numbers[i],
                                           .capacity_bytes = FRAG_UNLIMITED,
                                           .address_rule = FRAG_ADDRESS_LOWEST};
        frag_device *device = frag_sim_device_create(&options);
        uint64_t place = (uint64_t)(numbers[i] % 16) << 40;
        uint64_t at = 0;
        assert_int_equal(frag_device_reserve(device, 3 * PAGE, &at), FRAG_DEVICE_OK);
        assert_int_equal(at, 0x600000000000 + place);
        assert_int_equal(frag_device_malloc(device, PAGE, &at), FRAG_DEVICE_OK);
        assert_int_equal(at, 0x700000000000 + place);
        assert_int_equal(frag_device_free(device, at, PAGE), FRAG_DEVICE_OK);
        frag_device_destroy(device);
    }
}

static void segments_that_no_machine_has_are_left_out(void **state)
{
    (void)state;
    frag_event events[] = {
        {.op = FRAG_OP_SEGMENT_ALLOC, .bytes = 4096, .flags = FRAG_EVENT_INITIAL},
        {.op = FRAG_OP_ALLOC, .bytes = 100},
        {.op = FRAG_OP_SEGMENT_ALLOC, .bytes = (uint64_t)1 << 47},
        {.op = FRAG_OP_SEGMENT_ALLOC, .bytes = 4096},
        {.op = FRAG_OP_SEGMENT_ALLOC, .bytes = 4096},
        {.op = FRAG_OP_SEGMENT_ALLOC, .bytes = ((uint64_t)1 << 47) - 4096},
    };
    uint64_t addresses[] = {4096, 0, 4096, (uint64_t)1 << 48, ((uint64_t)1 << 48) - 4096, 4096};
    frag_trace trace = {.events = events, .addresses = addresses, .event_count = 6};
    trace.stats.op_counts[FRAG_OP_SEGMENT_ALLOC] = 5;
    size_t count = 0;
    size_t initial_count = 0;
    frag_recorded_segment *segments = frag_recorded_segments(&trace, &count, &initial_count);
    assert_int_equal(count, 2);
    assert_int_equal(initial_count, 1);
    assert_int_equal(segments[0].address, 4096);
    assert_int_equal(segments[0].bytes, 4096);
    assert_int_equal(segments[1].bytes, ((uint64_t)1 << 47) - 4096);
    free(segments);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(charges_whole_pages_but_reserves_what_was_asked),
        cmocka_unit_test(charges_what_the_footprint_says),
        cmocka_unit_test(places_at_the_lowest_range_that_is_large_enough),
        cmocka_unit_test(never_reuses_an_address_when_told_so),
        cmocka_unit_test(counts_up_or_down_from_a_base_with_gaps),
        cmocka_unit_test(follows_recorded_addresses_size_by_size),
        cmocka_unit_test(ascends_where_the_recorded_driver_did),
        cmocka_unit_test(new_addresses_keep_clear_of_what_was_there_before),
        cmocka_unit_test(reservations_keep_clear_of_segments_from_before),
        cmocka_unit_test(fails_the_call_it_was_told_to_fail),
        cmocka_unit_test(reserves_more_than_lies_below_the_mallocs),
        cmocka_unit_test(the_pool_of_a_device_counts_what_it_gave),
        cmocka_unit_test(every_device_reserves_at_a_place_of_its_own),
        cmocka_unit_test(a_device_of_any_number_can_reserve_and_give),
        cmocka_unit_test(tells_free_memory_less_what_others_use),
        cmocka_unit_test(segments_that_no_machine_has_are_left_out),
        cmocka_unit_test(devices_may_share_the_space_of_their_reservations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
