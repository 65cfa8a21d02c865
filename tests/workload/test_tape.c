/* Tests of the tape: when storages come and go, as PyTorch's reference counts have it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "workload/tape/aten.h"

typedef struct made {
    frag_recording recording;
    frag_builder *builder;
    frag_tape *tape;
} made;

static void begin(made *of)
{
    const frag_tape_card card = {
        .capability = 80, .multiprocessors = 108, .threads_per_multiprocessor = 2048};
    *of = (made){.builder = NULL};
    of->builder = frag_builder_create(&of->recording);
    frag_builder_device(of->builder, 0);
    of->tape = frag_tape_create(of->builder, &card);
}

/* The events so far as text: +BYTES and -SLOT. */
static void expect_events(made *of, const char *expected)
{
    frag_error error = {0};
    frag_text text = {0};
    frag_tape_destroy(of->tape);
    assert_true(frag_builder_finish(of->builder, "x", &error));
    const frag_trace *trace = &of->recording.traces[0];
    for (uint64_t i = 0; i < trace->event_count; i++) {
        const frag_event *event = &trace->events[i];
        if (event->op == FRAG_OP_ALLOC)
            frag_text_add(&text, "+%u ", (unsigned)event->bytes);
        else
            frag_text_add(&text, "-%u ", (unsigned)event->slot);
    }
    assert_string_equal(text.bytes, expected);
    frag_text_destroy(&text);
    frag_recording_destroy(&of->recording);
}

static void a_view_keeps_the_storage(void **state)
{
    (void)state;
    made of;
    begin(&of);
    frag_tensor base = frag_tape_empty(of.tape, 4, FRAG_F32);
    frag_tensor view = frag_aten_view(of.tape, base);
    frag_tape_drop(of.tape, base);
    frag_tensor last = frag_tape_empty(of.tape, 1, FRAG_I64);
    frag_tape_drop(of.tape, view);
    frag_tape_drop(of.tape, last);
    expect_events(&of, "+16 +8 -0 -1 ");
}

static void a_gradient_held_elsewhere_is_not_added_to_in_place(void **state)
{
    (void)state;
    made of;
    begin(&of);
    frag_tensor weight = frag_tape_parameter(of.tape, 2, FRAG_F32, false); /* slot 0 */
    frag_tensor twice = frag_aten_add(of.tape, weight, weight);            /* slot 1 */
    frag_tape_backward(of.tape, twice); /* one: slot 2; both gradients are it: a sum in slot 3 */
    assert_int_not_equal(frag_tape_gradient(of.tape, weight), 0);
    expect_events(&of, "+8 +8 +8 +8 -2 ");
}

static void a_gradient_that_nobody_else_holds_is_added_to_in_place(void **state)
{
    (void)state;
    made of;
    begin(&of);
    frag_tensor weight = frag_tape_parameter(of.tape, 2, FRAG_F32, false); /* slot 0 */
    frag_tensor first = frag_aten_mul_scalar(of.tape, weight);             /* slot 1 */
    frag_tensor second = frag_aten_mul_scalar(of.tape, weight);            /* slot 2 */
    frag_tensor sum = frag_aten_add(of.tape, first, second);               /* slot 3 */
    frag_tape_drop(of.tape, first);
    frag_tape_drop(of.tape, second);
    /* one: slot 2; gradients of second and first: slots 1 and 4, the second of which goes */
    frag_tape_backward(of.tape, sum);
    expect_events(&of, "+8 +8 +8 +8 -1 -2 +8 +8 +8 -4 -2 ");
}

static void nothing_is_saved_where_no_gradient_is_wanted(void **state)
{
    (void)state;
    made of;
    begin(&of);
    frag_tape_set_recording(of.tape, false);
    frag_tensor weight = frag_tape_parameter(of.tape, 2, FRAG_F32, false);
    frag_tensor power = frag_aten_pow(of.tape, weight);
    frag_tensor root = frag_aten_rsqrt(of.tape, power);
    frag_tape_drop(of.tape, power);
    frag_tape_drop(of.tape, root);
    expect_events(&of, "+8 +8 +8 -1 -2 ");
}

static void a_broadcast_operand_gets_a_sum(void **state)
{
    (void)state;
    made of;
    begin(&of);
    frag_tensor bias = frag_tape_parameter(of.tape, 4, FRAG_BF16, false); /* slot 0 */
    frag_tensor x = frag_tape_empty(of.tape, 8, FRAG_F32);                /* slot 1 */
    frag_tensor sum = frag_aten_add(of.tape, x, bias);                    /* slot 2, fp32 */
    frag_tape_backward(of.tape, sum); /* one: 3; summed: 4; cast: 5 */
    expect_events(&of, "+8 +32 +32 +32 +16 +8 -4 -3 ");
}

/* enable_input_require_grads: the gradient of an activation stays as long as its graph. */
static void a_gradient_of_an_activation_goes_with_the_graph(void **state)
{
    (void)state;
    made of;
    begin(&of);
    frag_tensor hidden = frag_tape_empty(of.tape, 4, FRAG_F32); /* slot 0 */
    frag_tape_require_gradient(of.tape, hidden);
    frag_tensor twice = frag_aten_mul_scalar(of.tape, hidden); /* slot 1 */
    frag_tape_drop(of.tape, hidden);
    frag_tape_backward(of.tape, twice);                       /* one: 2; the gradient: 3 */
    frag_tensor last = frag_tape_empty(of.tape, 2, FRAG_F32); /* slot 2 again */
    frag_tape_drop(of.tape, twice);
    frag_tape_drop(of.tape, last);
    expect_events(&of, "+16 +16 +16 +16 -2 +8 -1 -0 -3 -2 ");
}

/* With channels last a convolution copies its weight, and the parameter the gradient of it; a
 * depthwise one's lies in both orders. */
static void convolve_channels_last(bool is_depthwise, const char *expected)
{
    made of;
    begin(&of);
    uint64_t values = is_depthwise ? 2 : 4;
    frag_tensor weight = frag_tape_parameter(of.tape, 4 * values, FRAG_BF16, false);
    frag_tensor x = frag_tape_empty(of.tape, 8, FRAG_BF16);
    frag_tensor out = frag_aten_convolve(of.tape, x,
                                         &(frag_aten_convolution){.weight = weight,
                                                                  .batch = 1,
                                                                  .in_channels = 2,
                                                                  .out_channels = 2,
                                                                  .window = {2, 2, 2, 0},
                                                                  .is_depthwise = is_depthwise,
                                                                  .is_channels_last = true});
    frag_tape_backward(of.tape, out);
    expect_events(&of, expected);
}

static void a_gradient_in_another_order_is_copied(void **state)
{
    (void)state;
    /* weight, x, out, the weight's copy; one, the gradient, its sums and its copy */
    convolve_channels_last(false, "+32 +16 +4 +32 -3 +4 +32 +511 -5 +32 -4 -3 ");
    convolve_channels_last(true, "+16 +16 +4 +4 +16 +511 -5 -3 ");
}

/* Channels apart: in fp16 by cuDNN, which makes x's gradient first, else by PyTorch's own kernel,
 * which makes the weight's first and takes no workspace. */
static void convolve_apart(frag_dtype dtype, const char *expected)
{
    enum { CHANNELS = 32, SIDE = 8, KERNEL = 3 };
    made of;
    begin(&of);
    frag_tensor weight = frag_tape_parameter(of.tape, CHANNELS * KERNEL * KERNEL, dtype, false);
    frag_tensor x = frag_tape_empty(of.tape, CHANNELS * SIDE * SIDE, dtype);
    frag_tape_require_gradient(of.tape, x);
    frag_tensor out = frag_aten_convolve(of.tape, x,
                                         &(frag_aten_convolution){.weight = weight,
                                                                  .batch = 1,
                                                                  .in_channels = CHANNELS,
                                                                  .out_channels = CHANNELS,
                                                                  .window = {SIDE, KERNEL, 1, 1},
                                                                  .is_depthwise = true});
    frag_tape_backward(of.tape, out);
    expect_events(&of, expected);
}

static void channels_apart_go_to_cudnn_in_fp16_alone(void **state)
{
    (void)state;
    convolve_apart(FRAG_F16,
                   "+576 +4096 +4096 +102911 -3 +4096 +4096 +102911 -5 +576 +104447 -6 -3 ");
    convolve_apart(FRAG_BF16, "+576 +4096 +4096 +4096 +576 +4096 -3 ");
}

/* Four images of two channels, in bf16. */
static void normalise(uint64_t pixels, const char *expected)
{
    made of;
    begin(&of);
    const frag_pair norm = {.weight = frag_tape_parameter(of.tape, 2, FRAG_F32, false),
                            .bias = frag_tape_parameter(of.tape, 2, FRAG_F32, false)};
    frag_tensor x = frag_tape_empty(of.tape, 8 * pixels, FRAG_BF16);
    frag_tape_require_gradient(of.tape, x);
    frag_tensor out = frag_aten_batch_norm(of.tape, x, &norm, pixels, true);
    frag_tape_backward(of.tape, out);
    expect_events(&of, expected);
}

static void images_of_one_pixel_are_summed_before_their_gradient(void **state)
{
    (void)state;
    /* weight, bias, x, out, mean, deviation; one; gradients */
    normalise(2, "+8 +8 +32 +32 +8 +8 +32 +32 +8 +8 -4 -5 -6 ");
    normalise(1, "+8 +8 +16 +16 +8 +8 +16 +8 +8 +8 +8 +16 -7 -8 -4 -5 -6 ");
}

/* Parts of a gradient are added where another has come, in the order of parts. */
static void joined_parts_get_their_gradients_in_order(void **state)
{
    (void)state;
    made of;
    begin(&of);
    frag_tensor parts[2];
    for (uint64_t i = 0; i < 2; i++) {
        frag_tensor leaf = frag_tape_empty(of.tape, 4 * (i + 1), FRAG_F32);
        frag_tape_require_gradient(of.tape, leaf);
        parts[i] = frag_aten_mul_scalar(of.tape, leaf);
    }
    frag_tensor first = frag_aten_cat_parts(of.tape, parts, 2);
    frag_tensor second = frag_aten_cat_parts(of.tape, parts, 2);
    frag_tensor sum = frag_aten_add(of.tape, first, second);
    frag_tape_backward(of.tape, sum);
    expect_events(&of, "+16 +16 +32 +32 +48 +48 +48 +48 +16 +32 +32 -9 +16 -8 -7 ");
}

/* Twice as many numbers, and a temporary. */
static void grow(made *of, frag_tensor *sum)
{
    frag_tensor other = frag_tape_empty(of->tape, 64, FRAG_F32);
    frag_tape_set(of->tape, sum,
                  frag_tape_empty(of->tape, 2 * frag_tape_count(of->tape, *sum), FRAG_F32));
    frag_tape_drop(of->tape, other);
}

static void a_stretch_is_repeated_from_other_tensors(void **state)
{
    (void)state;
    made of;
    begin(&of);
    frag_tensor first = frag_tape_empty(of.tape, 16, FRAG_F32);
    frag_tensor second = frag_tape_empty(of.tape, 16, FRAG_F32);
    frag_tape_stretch stretch;
    assert_true(frag_tape_are_alone(of.tape, &first, 1));
    frag_tape_begin_stretch(of.tape, &first, 1, &stretch);
    grow(&of, &first);
    frag_tape_end_stretch(of.tape, &first, &stretch);
    assert_true(frag_tape_repeat_stretch(of.tape, &second, &stretch));
    assert_int_equal(frag_tape_count(of.tape, second), 32);
    frag_tape_drop(of.tape, second);
    frag_tape_drop(of.tape, first);
    expect_events(&of, "+64 +64 +256 +128 -0 -2 +256 +128 -1 -2 -0 -3 ");
}

static void a_tensor_that_others_hold_is_not_alone(void **state)
{
    (void)state;
    made of;
    begin(&of);
    frag_tensor held = frag_tape_empty(of.tape, 16, FRAG_F32);
    frag_tensor none = 0;
    assert_false(frag_tape_are_alone(of.tape, &none, 1));
    frag_tensor view = frag_tape_view(of.tape, held, 8);
    assert_false(frag_tape_are_alone(of.tape, &held, 1));
    assert_false(frag_tape_are_alone(of.tape, &view, 1));
    frag_tape_drop(of.tape, view);
    assert_true(frag_tape_are_alone(of.tape, &held, 1));
    (void)frag_tape_keep(of.tape, held);
    assert_false(frag_tape_are_alone(of.tape, &held, 1));
    frag_tape_drop(of.tape, held);
    frag_tape_drop(of.tape, held);
    expect_events(&of, "+64 -0 ");
}

static void a_stretch_with_another_workspace_runs_anew(void **state)
{
    (void)state;
    made of;
    begin(&of);
    frag_tensor sum = frag_tape_empty(of.tape, 16, FRAG_F32);
    frag_tape_stretch stretch = {.end = 0};
    assert_false(frag_tape_repeat_stretch(of.tape, &sum, &stretch)); /* nothing was kept */
    frag_tape_begin_stretch(of.tape, &sum, 1, &stretch);
    frag_tape_end_stretch(of.tape, &sum, &stretch);
    assert_true(frag_tape_repeat_stretch(of.tape, &sum, &stretch));
    frag_tape_use_blas(of.tape);
    assert_false(frag_tape_repeat_stretch(of.tape, &sum, &stretch));
    frag_tape_drop(of.tape, sum);
    expect_events(&of, "+64 +8519680 -0 ");
}

static void the_limit_can_be_passed(void **state)
{
    (void)state;
    for (uint64_t more = 0; more < 2; more++) {
        made of;
        begin(&of);
        frag_tensor sum = frag_tape_empty(of.tape, 16, FRAG_F32);
        frag_tape_stretch stretch;
        frag_tape_begin_stretch(of.tape, &sum, 1, &stretch);
        grow(&of, &sum);
        frag_tape_end_stretch(of.tape, &sum, &stretch);
        frag_tape_set_limit(of.tape, 192 - more);
        assert_true(frag_tape_repeat_stretch(of.tape, &sum, &stretch));
        assert_int_equal(frag_tape_is_over(of.tape), more);
        frag_tape_drop(of.tape, sum);
        expect_events(&of, "+64 +256 +128 -0 -1 +256 +128 -2 -1 -0 ");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_view_keeps_the_storage),
        cmocka_unit_test(a_gradient_held_elsewhere_is_not_added_to_in_place),
        cmocka_unit_test(a_gradient_that_nobody_else_holds_is_added_to_in_place),
        cmocka_unit_test(nothing_is_saved_where_no_gradient_is_wanted),
        cmocka_unit_test(a_broadcast_operand_gets_a_sum),
        cmocka_unit_test(a_gradient_of_an_activation_goes_with_the_graph),
        cmocka_unit_test(a_gradient_in_another_order_is_copied),
        cmocka_unit_test(channels_apart_go_to_cudnn_in_fp16_alone),
        cmocka_unit_test(images_of_one_pixel_are_summed_before_their_gradient),
        cmocka_unit_test(joined_parts_get_their_gradients_in_order),
        cmocka_unit_test(a_stretch_is_repeated_from_other_tensors),
        cmocka_unit_test(a_tensor_that_others_hold_is_not_alone),
        cmocka_unit_test(a_stretch_with_another_workspace_runs_anew),
        cmocka_unit_test(the_limit_can_be_passed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
