/* Does bitsandbytes multiply with a weight of 4 bits as it is? As its version 0.50.2 answers: both
 * sides of each of its limits, asked in a dry run. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "workload/tape/aten.h"

typedef struct product {
    uint32_t capability;
    uint32_t multiprocessors;
    frag_dtype dtype;
    uint64_t rows;
    frag_packed_shape shape;
    bool is_whole; /* the weight stays as it is */
} product;

/* clang-format off */
static const product products[] = {
    {70, 80, FRAG_BF16, 7, {13824, 4096}, true},
    {75, 40, FRAG_F16, 8, {1536, 1024}, false},
    {75, 40, FRAG_F16, 13, {2560, 1024}, true},
    {75, 40, FRAG_F16, 32, {256, 28672}, true},
    {75, 40, FRAG_F16, 33, {768, 14336}, false},
    {75, 40, FRAG_F16, 64, {128, 1536}, true},
    {75, 40, FRAG_F16, 64, {2560, 2048}, true},
    {75, 40, FRAG_F16, 65, {128, 768}, false},
    {75, 40, FRAG_F16, 65, {3072, 1024}, false},
    {75, 40, FRAG_F16, 65, {3072, 10240}, false},
    {75, 40, FRAG_F16, 65, {8192, 22016}, false},
    {75, 40, FRAG_F16, 96, {3072, 768}, true},
    {75, 40, FRAG_F16, 97, {3072, 768}, false},
    {75, 40, FRAG_F16, 128, {22016, 10240}, true},
    {75, 40, FRAG_F16, 320, {6144, 128}, true},
    {75, 40, FRAG_F16, 320, {13824, 256}, true},
    {75, 40, FRAG_F16, 321, {5120, 640}, false},
    {75, 40, FRAG_F16, 321, {10240, 128}, false},
    {75, 40, FRAG_BF16, 8, {14336, 22016}, false},
    {80, 108, FRAG_F16, 16, {640, 29568}, true},
    {80, 108, FRAG_F16, 33, {768, 896}, false},
    {80, 108, FRAG_F16, 65, {8192, 2560}, false},
    {80, 108, FRAG_F16, 385, {512, 256}, false},
    {80, 108, FRAG_BF16, 6, {3072, 3072}, false},
    {80, 108, FRAG_BF16, 7, {4096, 6144}, false},
    {80, 108, FRAG_BF16, 8, {2560, 6144}, false},
    {80, 108, FRAG_BF16, 8, {2560, 22016}, false},
    {80, 108, FRAG_BF16, 17, {5120, 5120}, false},
    {80, 108, FRAG_BF16, 32, {256, 13824}, true},
    {80, 108, FRAG_BF16, 32, {8192, 11008}, true},
    {80, 108, FRAG_BF16, 48, {3072, 3072}, false},
    {80, 108, FRAG_BF16, 128, {2560, 2048}, true},
    {80, 108, FRAG_BF16, 128, {4096, 3072}, true},
    {80, 108, FRAG_BF16, 128, {28672, 2560}, true},
    {80, 108, FRAG_BF16, 129, {3072, 2560}, false},
    {80, 108, FRAG_BF16, 129, {5120, 3072}, false},
    {80, 108, FRAG_BF16, 129, {22016, 10240}, false},
    {80, 108, FRAG_BF16, 384, {896, 640}, true},
    {80, 108, FRAG_BF16, 513, {3072, 512}, false},
    {80, 108, FRAG_BF16, 1536, {2048, 768}, true},
    {86, 82, FRAG_F16, 16, {1536, 13824}, true},
    {86, 82, FRAG_F16, 17, {512, 13824}, false},
    {86, 82, FRAG_F16, 64, {5120, 2048}, true},
    {86, 82, FRAG_F16, 65, {3072, 11008}, false},
    {86, 82, FRAG_F16, 129, {11008, 1024}, false},
    {86, 82, FRAG_BF16, 128, {13824, 2560}, true},
    {87, 16, FRAG_F32, 7, {256, 2048}, true},
    {87, 16, FRAG_F16, 6, {11008, 2560}, false},
    {89, 58, FRAG_F16, 64, {6144, 4096}, true},
    {89, 58, FRAG_F16, 128, {6144, 28672}, true},
    {89, 58, FRAG_F16, 320, {6144, 128}, true},
    {89, 58, FRAG_F16, 513, {8192, 8192}, false},
    {89, 58, FRAG_BF16, 32, {2048, 4096}, true},
    {89, 58, FRAG_BF16, 128, {11008, 8192}, true},
    {89, 58, FRAG_BF16, 129, {8192, 1024}, false},
    {89, 58, FRAG_BF16, 192, {2048, 768}, true},
    {89, 58, FRAG_BF16, 257, {29568, 5120}, false},
    {89, 128, FRAG_F16, 9, {4096, 6144}, false},
    {89, 128, FRAG_F16, 13, {512, 13824}, false},
    {89, 128, FRAG_F16, 16, {2048, 2048}, true},
    {89, 128, FRAG_F16, 17, {2560, 2048}, false},
    {89, 128, FRAG_F16, 65, {10240, 768}, false},
    {89, 128, FRAG_F16, 129, {11008, 14336}, false},
    {89, 128, FRAG_F16, 129, {13824, 10240}, false},
    {89, 128, FRAG_BF16, 8, {4096, 2560}, true},
    {89, 128, FRAG_BF16, 23, {640, 1536}, true},
    {89, 128, FRAG_BF16, 24, {256, 3072}, false},
    {89, 128, FRAG_BF16, 65, {5120, 29568}, false},
    {89, 128, FRAG_BF16, 128, {10240, 13824}, true},
    {89, 128, FRAG_BF16, 256, {29568, 11008}, true},
    {90, 132, FRAG_F16, 17, {8192, 10240}, false},
    {90, 132, FRAG_F16, 32, {14336, 2048}, true},
    {90, 132, FRAG_F16, 33, {11008, 3072}, false},
    {90, 132, FRAG_F16, 320, {4096, 512}, true},
    {90, 132, FRAG_BF16, 6, {5120, 5120}, false},
    {90, 132, FRAG_BF16, 7, {1024, 28672}, true},
    {90, 132, FRAG_BF16, 8, {1024, 14336}, false},
    {90, 132, FRAG_BF16, 10, {6144, 14336}, false},
    {90, 132, FRAG_BF16, 16, {8192, 5120}, true},
    {90, 132, FRAG_BF16, 48, {20480, 512}, true},
    {90, 132, FRAG_BF16, 49, {22016, 20480}, false},
    {90, 132, FRAG_BF16, 64, {29568, 22016}, true},
    {90, 132, FRAG_BF16, 65, {29568, 1536}, false},
    {90, 132, FRAG_BF16, 513, {1024, 256}, false},
    {100, 148, FRAG_F32, 8, {11008, 512}, false},
    {100, 148, FRAG_F16, 9, {22016, 512}, false},
    {100, 148, FRAG_F16, 33, {28672, 22016}, false},
    {100, 148, FRAG_BF16, 8, {14336, 4096}, true},
    {100, 148, FRAG_BF16, 17, {8192, 22016}, false},
    {100, 148, FRAG_BF16, 32, {28672, 29568}, true},
    {120, 36, FRAG_F16, 193, {2048, 512}, false},
    {120, 36, FRAG_F16, 256, {28672, 1024}, true},
    {120, 36, FRAG_BF16, 9, {896, 29568}, false},
    {120, 36, FRAG_BF16, 96, {2560, 11008}, true},
    {120, 36, FRAG_BF16, 257, {10240, 8192}, false},
    {120, 170, FRAG_F16, 9, {6144, 20480}, false},
    {120, 170, FRAG_F16, 16, {5120, 22016}, true},
    {120, 170, FRAG_F16, 17, {5120, 29568}, false},
    {120, 170, FRAG_F16, 128, {29568, 6144}, true},
    {120, 170, FRAG_F16, 129, {28672, 29568}, false},
    {120, 170, FRAG_F16, 321, {20480, 128}, false},
    {120, 170, FRAG_BF16, 8, {640, 22016}, true},
    {120, 170, FRAG_BF16, 8, {6144, 28672}, true},
    {120, 170, FRAG_BF16, 97, {10240, 29568}, false},
    {121, 48, FRAG_F16, 16, {1024, 3072}, true},
    {121, 48, FRAG_BF16, 12, {640, 14336}, true},
    {121, 48, FRAG_BF16, 17, {1024, 512}, false},
    {121, 48, FRAG_BF16, 33, {2048, 3072}, false},
    {121, 48, FRAG_BF16, 64, {2048, 11008}, true},
    {121, 48, FRAG_BF16, 256, {3072, 2560}, true},
    {121, 48, FRAG_BF16, 257, {10240, 3072}, false},
    {80, 108, FRAG_BF16, 4, {4096, 4096}, true},
    {80, 108, FRAG_BF16, 4, {4096, 4100}, false},
    {80, 108, FRAG_BF16, 1537, {4096, 128}, false},
    {80, 108, FRAG_BF16, 8, {4096, 96}, false},
};
/* clang-format on */

static void test_kernels(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof products / sizeof *products; i++) {
        const product *of = &products[i];
        const frag_tape_card card = {.capability = of->capability,
                                     .multiprocessors = of->multiprocessors,
                                     .threads_per_multiprocessor = 2048};
        frag_recording recording = {.traces = NULL};
        frag_builder *builder = frag_builder_create(&recording);
        frag_builder_device(builder, 0);
        frag_tape *tape = frag_tape_create(builder, &card);
        if (frag_aten_has_packed_kernel(tape, of->dtype, of->rows, of->shape) != of->is_whole)
            fail_msg("product %zu", i);
        frag_tape_destroy(tape);
        frag_error error = {0};
        assert_true(frag_builder_finish(builder, "x", &error));
        frag_recording_destroy(&recording);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_kernels)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
