/* Tests of the workspaces of convolutions: what was recorded on a card, and the rules for cards
 * with tensor cores by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "sim/device/convolution_workspace.h"

/* The six of the public recording that sim/device/convolution_workspace.c names. */
static void recorded_ones_are_exact(void **state)
{
    (void)state;
    static const uint64_t layers[][5] = {{30, 16, 256 * 256, 82880, 50168},
                                         {16, 32, 128 * 128, 51328, 84032},
                                         {32, 64, 64 * 64, 205056, 204928}};
    for (size_t i = 0; i < sizeof layers / sizeof *layers; i++) {
        const uint64_t *layer = layers[i];
        frag_convolution problem = {.element_bytes = 4,
                                    .may_use_tensor_cores = true,
                                    .batch_count = 1,
                                    .group_count = 1,
                                    .input_channels = layer[0],
                                    .output_channels = layer[1],
                                    .input_pixels = layer[2],
                                    .output_pixels = layer[2],
                                    .filter_pixels = 9,
                                    .is_winograd_shape = true};
        assert_int_equal(frag_convolution_workspace(&problem, 75, 40), layer[3]);
        problem.pass = FRAG_CONVOLUTION_BACKWARD_DATA;
        assert_int_equal(frag_convolution_workspace(&problem, 75, 40), layer[4]);
    }
}

/* Batch 2, 10 channels in, 20 out, two groups, 100 pixels in, 25 out, a filter of 5 x 5. */
static const frag_convolution grouped = {.element_bytes = 2,
                                         .may_use_tensor_cores = true,
                                         .batch_count = 2,
                                         .group_count = 2,
                                         .input_channels = 10,
                                         .output_channels = 20,
                                         .input_pixels = 100,
                                         .output_pixels = 25,
                                         .filter_pixels = 25};

static void tensor_cores_convert_what_is_not_channels_last(void **state)
{
    (void)state;
    frag_convolution problem = grouped;
    /* 5 and 10 channels a group become 8 and 16. */
    uint64_t half = 2 * 2 * 100 * 8 * 2 + 2 * 25 * 8 * 16 * 2 + 2 * 2 * 25 * 16 * 2;
    assert_int_equal(frag_convolution_workspace(&problem, 70, 80), half + 512);
    assert_int_equal(frag_convolution_workspace(&problem, 61, 80), 0);
    problem.is_channels_last = true;
    assert_int_equal(frag_convolution_workspace(&problem, 70, 80), 0);
    problem.is_channels_last = false;
    problem.element_bytes = 4;
    /* And 8 and 12 of 32-bit numbers, from 8.0 on; before, an index of 5 x 25 positions. */
    uint64_t single = 4 * 2 * 100 * 8 * 2 + 4 * 25 * 8 * 12 * 2 + 4 * 2 * 25 * 12 * 2;
    assert_int_equal(frag_convolution_workspace(&problem, 80, 108), single + 512);
    assert_int_equal(frag_convolution_workspace(&problem, 75, 108), 8 * 128);
    problem.may_use_tensor_cores = false;
    assert_int_equal(frag_convolution_workspace(&problem, 80, 108), 8 * 128);
    problem.element_bytes = 8;
    problem.may_use_tensor_cores = true;
    assert_int_equal(frag_convolution_workspace(&problem, 80, 108), 8 * 128);
}

/* InvokeAI's autoencoder of FLUX: 512 channels, where 512 x 512 pixels are 128 x 128. */
static void long_sums_of_tf32_may_be_taken_in_three_parts(void **state)
{
    (void)state;
    frag_convolution problem = {.element_bytes = 4,
                                .may_use_tensor_cores = true,
                                .batch_count = 1,
                                .group_count = 1,
                                .input_channels = 512,
                                .output_channels = 512,
                                .input_pixels = 128 * 128,
                                .output_pixels = 128 * 128,
                                .filter_pixels = 9,
                                .is_winograd_shape = true};
    uint64_t image = (uint64_t)4 * 512 * 128 * 128, filter = (uint64_t)4 * 512 * 512 * 9;
    const uint64_t rest = 1 << 20;
    assert_int_equal(frag_convolution_workspace(&problem, 89, 128), 4 * image + filter + rest);
    problem.pass = FRAG_CONVOLUTION_BACKWARD_DATA;
    assert_int_equal(frag_convolution_workspace(&problem, 89, 128), 4 * image + filter + rest);
    problem.pass = FRAG_CONVOLUTION_FORWARD;
    problem.output_channels = 256;
    assert_int_equal(frag_convolution_workspace(&problem, 89, 128),
                     image + filter / 2 + 3 * image / 2 + rest);
    problem.element_bytes = 2; /* 16 bits are added up whole */
    assert_int_equal(frag_convolution_workspace(&problem, 89, 128),
                     image / 2 + filter / 4 + image / 4 + 512);
    problem.element_bytes = 4;
    problem.input_channels = 256; /* and so are 2,304 products */
    assert_int_equal(frag_convolution_workspace(&problem, 89, 128),
                     image / 2 + filter / 4 + image / 2 + 512);
    problem.input_channels = problem.output_channels = 512;
    problem.input_pixels = problem.output_pixels = 768 * 768; /* parts of more than 4 GiB */
    assert_int_equal(frag_convolution_workspace(&problem, 89, 128), 72 * image + filter + 512);
}

static void the_gradient_of_weights_is_summed_in_parts(void **state)
{
    (void)state;
    frag_convolution problem = grouped;
    problem.pass = FRAG_CONVOLUTION_BACKWARD_FILTER;
    problem.is_channels_last = true;
    /* 25 x 5 x 20 values are one tile; 50 pixels allow one part. */
    assert_int_equal(frag_convolution_workspace(&problem, 80, 108), 4 * 2500);
    problem.output_pixels = 32 * 5;
    assert_int_equal(frag_convolution_workspace(&problem, 80, 108), 4 * 2500 * 5);
    problem.output_pixels = 1 << 20;
    assert_int_equal(frag_convolution_workspace(&problem, 80, 108), 4 * 2500 * 216);
    /* 64 x 64 x 25 tiles: as many parts as fill 108 multiprocessors twice. */
    problem.group_count = 1;
    problem.input_channels = 64;
    problem.output_channels = 64;
    assert_int_equal(frag_convolution_workspace(&problem, 80, 108),
                     (uint64_t)4 * 25 * 64 * 64 * (216 / 25));
    problem.output_channels = 64 * 64;
    assert_int_equal(frag_convolution_workspace(&problem, 80, 108),
                     (uint64_t)4 * 25 * 64 * 64 * 64);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(recorded_ones_are_exact),
        cmocka_unit_test(tensor_cores_convert_what_is_not_channels_last),
        cmocka_unit_test(long_sums_of_tf32_may_be_taken_in_three_parts),
        cmocka_unit_test(the_gradient_of_weights_is_summed_in_parts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
