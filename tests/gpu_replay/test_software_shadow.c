/* Tests of shadow memory: what the host wrote to a device comes back, and nothing that is old. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/gpu_replay/software_device.h"

enum { BY_ADDRESS = 4 };

typedef struct sizes {
    unsigned x, y, z;
} sizes;

static struct {
    size_t (*read)(const void *, void *, size_t);
    void (*write)(void *, const void *, size_t);
    void (*copy)(void *, const void *, size_t);
    void (*forget)(void *, size_t);
    void (*toggle)(uint64_t);
    void (*handle)(frag_software_scalar_handler *, void *);
    void (*draw)(const frag_software_draws *, uint64_t *, size_t);
    int (*launch)(const void *, sizes, sizes, void **, size_t, void *);
} shadow;

static unsigned char *take(size_t bytes)
{
    return (unsigned char *)(uintptr_t)software_take(bytes);
}

static void put(void *to, const void *from, size_t bytes)
{
    assert_int_equal(cuda.memcpy(to, from, bytes, BY_ADDRESS), 0);
}

/* What a copy to the host gives over bytes that were something else. */
static const unsigned char *get(const void *from, size_t bytes)
{
    static unsigned char got[1 << 20];
    memset(got, 0xa5, bytes);
    assert_int_equal(cuda.memcpy(got, from, bytes, BY_ADDRESS), 0);
    return got;
}

static void assert_zeros(const void *from, size_t bytes)
{
    const unsigned char *got = get(from, bytes);
    for (size_t i = 0; i < bytes; i++)
        assert_int_equal(got[i], 0);
}

static void what_the_host_wrote_comes_back(void **state)
{
    (void)state;
    software_start("");
    unsigned char *device = take(PAGE);
    put(device + 510, "lengths", 8);
    assert_string_equal((const char *)get(device + 510, 8), "lengths");
    assert_zeros(device + 500, 10);
    assert_zeros(device + 518, 100);
    assert_zeros(device + MIB, 1000);
    put(device + 512, "NG", 2);
    assert_string_equal((const char *)get(device + 510, 8), "leNGths");
}

static void what_is_copied_or_filled_is_known(void **state)
{
    (void)state;
    software_start("");
    unsigned char *device = take(PAGE);
    put(device, "0123456789", 10);
    put(device + 1000, device, 10);
    assert_memory_equal(get(device + 1000, 10), "0123456789", 10);
    /* what is unknown of the source is so of the target */
    put(device + 1008, device + 8, 10);
    assert_memory_equal(get(device + 1000, 20), "0123456789\0\0\0\0\0\0\0\0\0\0", 20);
    put(device + 4, device, 10); /* over itself */
    assert_memory_equal(get(device, 14), "01230123456789", 14);
    assert_int_equal(cuda.memset(device, 7, 600), 0);
    assert_int_equal(get(device, 601)[599], 7);
    assert_int_equal(get(device, 601)[600], 0);
}

static void what_is_too_large_is_forgotten_not_kept(void **state)
{
    static unsigned char large[1 << 20];
    (void)state;
    software_start("shadow=4KiB/8KiB");
    unsigned char *device = take(PAGE);
    memset(large, 3, sizeof large);
    put(device + 100, "old", 4);
    put(device, large, 8192);
    assert_zeros(device, 8192);
    put(device, large, 4096);
    put(device + 4096, large, 4096);
    assert_int_equal(get(device, 8192)[8191], 3);
    put(device + 16384, large, 1); /* one chunk too many */
    assert_zeros(device + 16384, 1);
    shadow.forget(device, 512);
    put(device + 16384, large, 1);
    assert_int_equal(get(device + 16384, 1)[0], 3);
    software_start("shadow=0");
    device = take(PAGE);
    put(device, "x", 1);
    assert_zeros(device, 1);
}

static void memory_that_is_given_back_is_forgotten(void **state)
{
    (void)state;
    software_start("");
    unsigned char *device = take(PAGE);
    put(device, "value", 5);
    software_give((uint64_t)(uintptr_t)device);
    assert_ptr_equal(take(PAGE), device);
    assert_zeros(device, 5);
    void *stream = software_stream();
    uint64_t address = software_take_async(1000, stream);
    put((void *)(uintptr_t)address, "value", 5);
    software_give_async(address, stream);
    assert_int_equal(software_take_async(1000, stream), address);
    assert_zeros((const void *)(uintptr_t)address, 5);
}

/* Blocks of an allocator above the driver: begin and end by the same call. */
static void a_block_that_ends_is_forgotten_up_to_the_next(void **state)
{
    (void)state;
    software_start("");
    unsigned char *device = take(4 * PAGE);
    uint64_t address = (uint64_t)(uintptr_t)device;
    shadow.toggle(address);
    shadow.toggle(address + PAGE + 512);
    shadow.toggle(address + PAGE + 1024);
    put(device, "first", 6);
    put(device + PAGE, "of the first", 13);
    put(device + PAGE + 512, "second", 7);
    put(device + PAGE + 1024, "third", 6);
    put(device + 3 * PAGE, "of the third", 13);
    shadow.toggle(address + PAGE + 512);
    assert_zeros(device + PAGE + 512, 7);
    assert_string_equal((const char *)get(device + PAGE, 13), "of the first");
    assert_string_equal((const char *)get(device + PAGE + 1024, 6), "third");
    shadow.toggle(address);
    assert_zeros(device, 6);
    assert_zeros(device + PAGE, 13);
    assert_string_equal((const char *)get(device + PAGE + 1024, 6), "third");
    shadow.toggle(address + PAGE + 1024);
    assert_zeros(device + PAGE + 1024, 6);
    assert_zeros(device + 3 * PAGE, 13);
}

static void stand_ins_read_write_copy_and_forget(void **state)
{
    char out[8];
    (void)state;
    software_start("");
    unsigned char *device = take(PAGE);
    shadow.write(device, "abcd", 4);
    memset(out, 'x', sizeof out);
    assert_int_equal(shadow.read(device, out, sizeof out), 4);
    assert_memory_equal(out, "abcd\0\0\0\0", 8);
    shadow.copy(device + 2, device, 4);
    assert_memory_equal(get(device, 6), "ababcd", 6);
    shadow.forget(device + 1, 2);
    assert_memory_equal(get(device, 6), "a\0\0bcd", 6);
    shadow.write(device + PAGE, "beyond", 6); /* not held: nothing to write to */
    assert_int_equal(shadow.read(device + PAGE, out, 6), 0);
}

typedef struct asking {
    int count;
    size_t known_bytes;
    bool answers;
} asking;

static bool answer(const frag_software_scalar *scalar, void *context)
{
    asking *asked = context;
    void *again = NULL;
    asked->count++;
    asked->known_bytes = scalar->known_bytes;
    assert_int_equal(cuda.malloc(&again, 1), 0); /* no lock is held */
    if (asked->answers)
        memset(scalar->host_address, 9, scalar->bytes);
    return asked->answers;
}

static void a_scalar_that_only_a_kernel_knows_is_asked_about(void **state)
{
    asking asked = {.answers = true};
    sizes one = {1, 1, 1};
    (void)state;
    software_start("");
    unsigned char *device = take(PAGE);
    shadow.handle(answer, &asked);
    assert_int_equal(get(device, 4)[3], 9);
    assert_int_equal(asked.count, 1);
    assert_int_equal(asked.known_bytes, 0);
    assert_int_equal(get(device, 17)[3], 0); /* no scalar */
    assert_int_equal(asked.count, 1);
    put(device, "\1\2\3\4", 4);
    assert_int_equal(get(device, 4)[3], 4);
    assert_int_equal(asked.count, 1);
    assert_int_equal(shadow.launch(NULL, one, one, NULL, 0, NULL), 0);
    asked.answers = false;
    assert_int_equal(get(device, 4)[3], 4); /* known, though a kernel may have changed it */
    assert_int_equal(asked.count, 2);
    assert_int_equal(asked.known_bytes, 4);
    shadow.handle(NULL, NULL);
}

/* Random writes, copies, fills and frees against a plain array of bytes and known marks. */
static void agrees_with_a_plain_array(void **state)
{
    enum { BYTES = 8192, STEPS = 20000 };
    static unsigned char bytes[BYTES];
    static unsigned char known[BYTES];
    static unsigned char data[BYTES];
    unsigned seed = 7;
    (void)state;
    software_start("");
    unsigned char *device = take(4 * PAGE) + PAGE - BYTES / 2; /* over the end of a page */
    for (int step = 0; step < STEPS; step++) {
        size_t to = (size_t)rand_r(&seed) % BYTES;
        size_t from = (size_t)rand_r(&seed) % BYTES;
        size_t count = (size_t)rand_r(&seed) % 700;
        count = count > BYTES - to ? BYTES - to : count;
        count = count > BYTES - from ? BYTES - from : count;
        int what = rand_r(&seed) % 4;
        if (what == 0) {
            memset(data, step, count);
            shadow.write(device + to, data, count);
            memset(bytes + to, step, count);
            memset(known + to, 1, count);
        } else if (what == 1) {
            shadow.copy(device + to, device + from, count);
            memmove(bytes + to, bytes + from, count);
            memmove(known + to, known + from, count);
        } else if (what == 2) {
            shadow.forget(device + to, count);
            memset(bytes + to, 0, count);
            memset(known + to, 0, count);
        } else {
            size_t expected = 0;
            for (size_t i = 0; i < count; i++)
                expected += known[from + i];
            assert_int_equal(shadow.read(device + from, data, count), expected);
            assert_memory_equal(data, bytes + from, count);
        }
    }
}

/* The first words of Philox4x32-10 of key and counter 0 are in the known answers of Random123; then
 * what torch.rand gave on a GPU after torch.manual_seed(0), in 1/10000. */
static void random_numbers_are_those_of_a_card(void **state)
{
    static const uint64_t words[] = {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8};
    static const uint64_t first[] = {3990, 5167, 249, 9401, 9459, 7967, 4150, 8203, 2290, 9096};
    static const uint64_t second[] = {9722, 7910, 4690, 3300, 3345, 3783, 7640, 6405, 1103, 3594};
    uint64_t drawn[10];
    (void)state;
    shadow.draw(&(frag_software_draws){.thread_count = 0}, drawn, 4);
    assert_memory_equal(drawn, words, sizeof words);
    shadow.draw(&(frag_software_draws){.thread_count = 1, .is_wide = true}, drawn, 2);
    assert_int_equal(drawn[0], words[0] << 32 | words[1]);
    assert_int_equal(drawn[1], words[2] << 32 | words[3]);
    for (uint64_t turn = 0; turn < 2; turn++) {
        shadow.draw(&(frag_software_draws){.thread_count = 256, .offset = 4 * turn}, drawn, 10);
        for (int i = 0; i < 10; i++)
            assert_int_equal((drawn[i] * 10000 + (UINT64_C(1) << 31)) >> 32,
                             (turn == 0 ? first : second)[i]);
    }
    /* a thread that draws more than a block goes on in its next */
    shadow.draw(&(frag_software_draws){.thread_count = 1, .range = 1000}, drawn, 5);
    assert_int_equal(drawn[3], words[3] % 1000);
    shadow.draw(&(frag_software_draws){.thread_count = 1, .offset = 4, .range = 1000}, drawn, 1);
    uint64_t next = drawn[0];
    shadow.draw(&(frag_software_draws){.thread_count = 1, .range = 1000}, drawn, 5);
    assert_int_equal(drawn[4], next);
}

static int load_all(void **state)
{
    (void)state;
    software_load_all();
    software_find(NULL, "frag_software_read", &shadow.read);
    software_find(NULL, "frag_software_write", &shadow.write);
    software_find(NULL, "frag_software_copy", &shadow.copy);
    software_find(NULL, "frag_software_forget", &shadow.forget);
    software_find(NULL, "frag_soft_shadow_toggle", &shadow.toggle);
    software_find(NULL, "frag_software_handle_scalars", &shadow.handle);
    software_find(NULL, "frag_software_draw", &shadow.draw);
    software_find(cuda.library, "cudaLaunchKernel", &shadow.launch);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_the_host_wrote_comes_back),
        cmocka_unit_test(what_is_copied_or_filled_is_known),
        cmocka_unit_test(what_is_too_large_is_forgotten_not_kept),
        cmocka_unit_test(memory_that_is_given_back_is_forgotten),
        cmocka_unit_test(a_block_that_ends_is_forgotten_up_to_the_next),
        cmocka_unit_test(stand_ins_read_write_copy_and_forget),
        cmocka_unit_test(a_scalar_that_only_a_kernel_knows_is_asked_about),
        cmocka_unit_test(agrees_with_a_plain_array),
        cmocka_unit_test(random_numbers_are_those_of_a_card),
    };
    return cmocka_run_group_tests_name("shadow memory", tests, load_all, NULL);
}
