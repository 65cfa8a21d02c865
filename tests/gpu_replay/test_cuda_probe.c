/* The probe over a driver made up here, which does what the software CUDA does not: small mallocs
 * share pages, freed places are used again latest first, and a malloc needs pages that lie side by
 * side. */
#include "gpu_replay/device/cuda_probe.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/bits.h"
#include "base/bytes.h"

#define PAGE (2 * FRAG_MIB)
#define BASE ((uint64_t)1 << 44)
#define CONTEXT_PAGES 100
enum { PAGE_COUNT = 2048, FREED_MAX = 1 << 16 };

/* Pages side by side. */
typedef struct place {
    uint32_t first;
    uint32_t count;
} place;

static struct made_up {
    uint32_t owner[PAGE_COUNT];  /* 0: free; else how many pages the block has */
    uint32_t slices[PAGE_COUNT]; /* live slices on a shared page */
    uint32_t slice_page;         /* where the next slice goes; PAGE_COUNT: nowhere */
    uint64_t slice_bytes;        /* used of it */
    place freed[FREED_MAX];
    size_t freed_count;
    bool is_latest_first;
    uint64_t calls;
    uint64_t spoil_call; /* the call of cudaMemGetInfo at which another program takes memory */
    uint64_t spoiled_pages;
} driver;

static bool is_free_run(uint32_t first, uint32_t count)
{
    if (first + count > PAGE_COUNT)
        return false;
    for (uint32_t i = first; i < first + count; i++)
        if (driver.owner[i] != 0)
            return false;
    return true;
}

static uint32_t free_pages(void)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < PAGE_COUNT; i++)
        count += driver.owner[i] == 0 ? 1 : 0;
    return count;
}

/* Where a run of that many pages goes; PAGE_COUNT: nowhere. */
static uint32_t find_run(uint32_t count)
{
    for (size_t i = driver.freed_count; driver.is_latest_first && i > 0; i--)
        if (driver.freed[i - 1].count == count && is_free_run(driver.freed[i - 1].first, count))
            return driver.freed[i - 1].first;
    for (uint32_t first = 0; first + count <= PAGE_COUNT; first++)
        if (is_free_run(first, count))
            return first;
    return PAGE_COUNT;
}

static bool take_pages(uint32_t count, uint64_t *address)
{
    if (count > free_pages())
        return false;
    uint32_t first = find_run(count);
    if (first == PAGE_COUNT)
        return false;
    for (uint32_t i = first; i < first + count; i++)
        driver.owner[i] = count;
    *address = BASE + first * PAGE;
    return true;
}

static bool take_slice(uint64_t bytes, uint64_t *address)
{
    bytes = frag_round_up(bytes, 512);
    if (driver.slice_page == PAGE_COUNT || driver.slice_bytes + bytes > PAGE) {
        uint64_t page = 0;
        if (!take_pages(1, &page))
            return false;
        driver.slice_page = (uint32_t)((page - BASE) / PAGE);
        driver.slice_bytes = 0;
    }
    *address = BASE + driver.slice_page * PAGE + driver.slice_bytes;
    driver.slice_bytes += bytes;
    driver.slices[driver.slice_page]++;
    return true;
}

static int made_malloc(void **address, size_t bytes)
{
    uint64_t at = 0;
    driver.calls++;
    bool ok = bytes <= 512 * FRAG_KIB ? take_slice(bytes, &at)
                                      : take_pages((uint32_t)((bytes + PAGE - 1) / PAGE), &at);
    *address = (void *)(uintptr_t)at;
    return ok ? FRAG_CUDA_OK : FRAG_CUDA_OUT_OF_MEMORY;
}

static void give_pages(uint32_t first, uint32_t count)
{
    for (uint32_t i = first; i < first + count; i++)
        driver.owner[i] = 0;
    if (driver.freed_count == FREED_MAX)
        driver.freed_count = 0;
    driver.freed[driver.freed_count++] = (place){first, count};
}

static int made_free(void *block)
{
    if (block == NULL)
        return FRAG_CUDA_OK;
    uint64_t address = (uint64_t)(uintptr_t)block;
    uint32_t page = (uint32_t)((address - BASE) / PAGE);
    if (driver.slices[page] == 0) {
        give_pages(page, driver.owner[page]);
    } else if (--driver.slices[page] == 0) {
        give_pages(page, 1);
        if (driver.slice_page == page)
            driver.slice_page = PAGE_COUNT;
    }
    return FRAG_CUDA_OK;
}

static int made_info(size_t *free_bytes, size_t *total_bytes)
{
    if (driver.spoil_call != 0 && --driver.spoil_call == 0)
        driver.spoiled_pages = 3;
    *free_bytes = (size_t)((free_pages() - driver.spoiled_pages) * PAGE);
    *total_bytes = PAGE_COUNT * PAGE;
    return FRAG_CUDA_OK;
}

/* ---- what only has to be there */

static int made_nothing(void)
{
    return FRAG_CUDA_OK;
}

static int made_memset(void *block, int byte, size_t bytes)
{
    (void)block, (void)byte, (void)bytes;
    return FRAG_CUDA_OK;
}

static int made_attribute(int *value, int attribute, int device)
{
    (void)attribute, (void)device;
    *value = 0;
    return FRAG_CUDA_OK;
}

static int made_pci(char *text, int bytes, int device)
{
    (void)device;
    return bytes > 0 ? (text[0] = '\0', FRAG_CUDA_OK) : FRAG_CUDA_INVALID_VALUE;
}

static int made_stream(frag_cuda_stream *stream, unsigned flags)
{
    (void)flags;
    *stream = (frag_cuda_stream)(void *)&driver.calls;
    return FRAG_CUDA_OK;
}

static int made_stream_call(frag_cuda_stream stream)
{
    return stream != NULL ? FRAG_CUDA_OK : FRAG_CUDA_INVALID_HANDLE;
}

static int made_event(frag_cuda_event *event, unsigned flags)
{
    (void)flags;
    *event = (frag_cuda_event)(void *)&driver.calls;
    return FRAG_CUDA_OK;
}

static int made_event_call(frag_cuda_event event)
{
    return event != NULL ? FRAG_CUDA_OK : FRAG_CUDA_INVALID_HANDLE;
}

static int made_record(frag_cuda_event event, frag_cuda_stream stream)
{
    return event != NULL && stream != NULL ? FRAG_CUDA_OK : FRAG_CUDA_INVALID_HANDLE;
}

static const char *made_words(int code)
{
    return code == FRAG_CUDA_OUT_OF_MEMORY ? "out of memory" : "no error";
}

/* A driver with nothing held, and a card on it. */
static frag_gpu start(void)
{
    memset(&driver, 0, sizeof driver);
    driver.slice_page = PAGE_COUNT;
    for (uint32_t i = 0; i < CONTEXT_PAGES; i++)
        driver.owner[i] = CONTEXT_PAGES;
    return (frag_gpu){.cuda = {
                          .cudaGetErrorName = made_words,
                          .cudaGetErrorString = made_words,
                          .cudaGetLastError = made_nothing,
                          .cudaDeviceSynchronize = made_nothing,
                          .cudaMalloc = made_malloc,
                          .cudaFree = made_free,
                          .cudaMemGetInfo = made_info,
                          .cudaMemset = made_memset,
                          .cudaDeviceGetAttribute = made_attribute,
                          .cudaDeviceGetPCIBusId = made_pci,
                          .cudaStreamCreateWithFlags = made_stream,
                          .cudaStreamDestroy = made_stream_call,
                          .cudaStreamSynchronize = made_stream_call,
                          .cudaEventCreateWithFlags = made_event,
                          .cudaEventDestroy = made_event_call,
                          .cudaEventQuery = made_event_call,
                          .cudaEventSynchronize = made_event_call,
                          .cudaEventRecord = made_record,
                      }};
}

static void probe(frag_gpu *gpu, frag_device_description *card)
{
    const frag_gpu_probe_options options = {.may_fill = true};
    frag_error error = {.code = FRAG_E_NONE};
    if (!frag_cuda_probe(gpu, &options, card, &error))
        fail_msg("%s", error.sentence);
    assert_int_equal(free_pages(), PAGE_COUNT - CONTEXT_PAGES);
}

static void mallocs_that_share_pages_take_the_mean_of_many(void **state)
{
    (void)state;
    frag_gpu gpu = start();
    frag_device_description card;
    probe(&gpu, &card);
    assert_int_equal(card.origin, FRAG_ORIGIN_MEASURED);
    assert_int_equal(card.total_bytes, PAGE_COUNT * PAGE);
    assert_int_equal(card.context_bytes, CONTEXT_PAGES * PAGE);
    assert_int_equal(card.footprint.unit_bytes, PAGE);
    static const uint64_t sizes[] = {512, 4096, 32768, 262144, 524288};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        /* A page may be begun and not used up. */
        uint64_t takes = frag_footprint_bytes(&card.footprint, sizes[i]);
        assert_true(takes >= sizes[i]);
        assert_true(takes <= sizes[i] + sizes[i] / 8 + 512);
    }
    assert_int_equal(frag_footprint_bytes(&card.footprint, 512 * FRAG_KIB + 1), PAGE);
    assert_int_equal(frag_footprint_bytes(&card.footprint, FRAG_MIB), PAGE);
    assert_int_equal(frag_footprint_bytes(&card.footprint, PAGE + 1), 2 * PAGE);
    assert_int_equal(card.alignment_bytes, 512);
    assert_int_equal(card.large_alignment_bytes, PAGE);
    assert_false(card.latency.calls[FRAG_DEVICE_MAP].count > 0);
    assert_true(card.latency.calls[FRAG_DEVICE_MALLOC].count > 3);
}

static void the_rule_by_which_places_are_used_again_is_seen(void **state)
{
    (void)state;
    frag_gpu gpu = start();
    frag_device_description card;
    probe(&gpu, &card);
    assert_int_equal(card.reuse, FRAG_REUSE_LOWEST);
    gpu = start();
    driver.is_latest_first = true;
    probe(&gpu, &card);
    assert_int_equal(card.reuse, FRAG_REUSE_LATEST);
}

static void a_driver_that_needs_pages_side_by_side_is_seen(void **state)
{
    (void)state;
    frag_gpu gpu = start();
    frag_device_description card;
    probe(&gpu, &card);
    assert_int_equal(card.serves_scattered, FRAG_ANSWER_NO);
}

static void a_card_that_is_in_pieces_already_is_filled_all_the_same(void **state)
{
    (void)state;
    frag_gpu gpu = start();
    frag_device_description card;
    const frag_gpu_probe_options options = {.may_fill = true};
    frag_error error = {.code = FRAG_E_NONE};
    /* Of others, so that no run has more than 500 of the 2048 pages. */
    for (uint32_t i = 500; i < PAGE_COUNT; i += 501)
        driver.owner[i] = 1;
    uint32_t before = free_pages();
    assert_true(frag_cuda_probe(&gpu, &options, &card, &error));
    assert_int_equal(card.serves_scattered, FRAG_ANSWER_NO);
    assert_int_equal(free_pages(), before);
}

static void what_another_program_takes_meanwhile_does_not_become_the_page(void **state)
{
    (void)state;
    /* Whichever look at free memory it falls into. */
    for (uint64_t call = 1; call < 12; call++) {
        frag_gpu gpu = start();
        frag_device_description card;
        const frag_gpu_probe_options options = {.may_fill = false};
        frag_error error = {.code = FRAG_E_NONE};
        driver.spoil_call = call;
        assert_true(frag_cuda_probe(&gpu, &options, &card, &error));
        assert_int_equal(card.footprint.unit_bytes, PAGE);
        assert_int_equal(card.serves_scattered, FRAG_ANSWER_UNKNOWN);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mallocs_that_share_pages_take_the_mean_of_many),
        cmocka_unit_test(the_rule_by_which_places_are_used_again_is_seen),
        cmocka_unit_test(a_driver_that_needs_pages_side_by_side_is_seen),
        cmocka_unit_test(a_card_that_is_in_pieces_already_is_filled_all_the_same),
        cmocka_unit_test(what_another_program_takes_meanwhile_does_not_become_the_page),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
