/* Products with weights of 4 and 8 bits, as bitsandbytes 0.50 makes them (autograd/_functions.py,
 * backends/cuda/ops.py). A weight of 4 bits is unpacked before, unless there are few rows.
 * With 8 bits the input is quantised too, but for columns with outliers, of which there are none
 * here. */
#include "workload/tape/aten.h"

enum { BLOCK = 64 };

static uint64_t count_blocks(const frag_aten_packed *of)
{
    return (of->rows * of->columns + BLOCK - 1) / BLOCK;
}

/* A scale for each block; they are there already unless they are quantised too. */
static frag_tensor make_scales(frag_tape *tape, const frag_aten_packed *of)
{
    return of->is_nested ? frag_tape_empty(tape, count_blocks(of), FRAG_F32) : 0;
}

/* The weight has no gradient. */
static void packed_backward(frag_tape *tape, frag_node *node, const frag_tensor *in,
                            frag_tensor *out)
{
    const frag_aten_packed of = {
        .rows = node->numbers[0], .columns = node->numbers[1], .is_nested = node->numbers[2] != 0};
    frag_dtype dtype = frag_tape_dtype(tape, in[0]);
    frag_tensor scales = make_scales(tape, &of);
    frag_tensor weight = frag_tape_empty(tape, of.rows * of.columns, dtype);
    frag_tape_drop(tape, scales);
    out[0] = frag_tape_empty(tape, frag_tape_count(tape, in[0]) / of.rows * of.columns, dtype);
    frag_tape_use_blas(tape);
    frag_tape_drop(tape, weight);
}

static frag_tensor multiply(frag_tape *tape, frag_tensor x, const frag_aten_packed *of)
{
    frag_dtype dtype = frag_tape_dtype(tape, x);
    uint64_t rows = frag_tape_count(tape, x) / of->columns;
    if (frag_aten_has_packed_kernel(tape, dtype, rows,
                                    (frag_packed_shape){of->rows, of->columns})) {
        frag_tensor laid = frag_tape_is_strided(tape, x) ? frag_tape_empty_like(tape, x) : 0;
        frag_tensor product = frag_tape_empty(tape, rows * of->rows, dtype);
        frag_tape_drop(tape, laid);
        return product;
    }
    frag_tensor scales = make_scales(tape, of);
    frag_tensor moved = make_scales(tape, of); /* their mean is added */
    frag_tensor weight = frag_tape_empty(tape, of->rows * of->columns, dtype);
    frag_tensor made = frag_tape_empty(tape, rows * of->rows, dtype);
    frag_tape_use_blas(tape);
    if (of->bias != NULL)
        frag_tape_use_blas_lt(tape);
    frag_tape_drop(tape, moved);
    frag_tape_drop(tape, scales);
    frag_tape_drop(tape, weight);
    return made;
}

/* ---- 8 bits */
/* int8_vectorwise_quant: a scale for each row; outliers are looked for in inputs. */
static frag_tensor quantise(frag_tape *tape, frag_tensor x, uint64_t rows, bool is_input,
                            frag_tensor *scales)
{
    uint64_t count = frag_tape_count(tape, x);
    *scales = frag_tape_empty(tape, rows, FRAG_F32);
    frag_tensor made = frag_tape_empty(tape, count, FRAG_I8);
    if (is_input) {
        frag_tensor positive = frag_tape_empty(tape, count, FRAG_F16);
        frag_tensor is_outlier = frag_tape_empty(tape, count, FRAG_BOOL);
        frag_tape_drop(tape, positive);
        frag_tensor any = frag_tape_empty(tape, 1, FRAG_BOOL);
        frag_aten_reduce_buffers(tape, &(frag_reduction){1, count, true, 1});
        frag_tape_drop(tape, any);
        if (rows > 1) /* columns of outliers are set to 0 */
            frag_tape_drop(tape, frag_tape_empty(tape, 1, FRAG_BOOL));
        frag_tape_drop(tape, is_outlier);
    }
    return made;
}

/* The weight in the type of the input, times its scales; it has no gradient. Rows of the gradient
 * are laid one behind the other. */
static void int8_backward(frag_tape *tape, frag_node *node, const frag_tensor *in, frag_tensor *out)
{
    uint64_t rows = node->numbers[0];
    uint64_t columns = node->numbers[1];
    frag_dtype dtype = frag_tape_dtype(tape, in[0]);
    bool is_in_rows = node->numbers[2] == 0;
    frag_tensor gradient =
        is_in_rows ? frag_tape_keep(tape, in[0]) : frag_tape_empty_like(tape, in[0]);
    frag_tensor weight = frag_tape_empty(tape, rows * columns, dtype);
    frag_tape_drop(tape, frag_tape_empty(tape, rows, FRAG_F32));
    uint64_t count = frag_tape_count(tape, in[0]) / rows * columns;
    frag_tensor made = frag_tape_empty(tape, count, dtype);
    frag_tape_use_blas(tape);
    out[0] = frag_tape_view(tape, made, count); /* in the shape of the input */
    frag_tape_drop(tape, made);
    frag_tape_drop(tape, weight);
    frag_tape_drop(tape, gradient);
}

static frag_tensor multiply_int8(frag_tape *tape, frag_tensor x, const frag_aten_packed *of)
{
    uint64_t rows = frag_tape_count(tape, x) / of->columns;
    frag_tensor half = frag_tape_to(tape, x, FRAG_F16);
    frag_tensor scales = 0;
    frag_tensor small = quantise(tape, half, rows, true, &scales);
    frag_tape_drop(tape, half);
    frag_tensor sums = frag_tape_empty(tape, rows * of->rows, FRAG_I32);
    frag_tensor made = frag_tape_empty(tape, rows * of->rows, FRAG_F16);
    if (frag_tape_dtype(tape, x) != FRAG_F16)
        frag_tape_set(tape, &made,
                      frag_tape_empty(tape, rows * of->rows, frag_tape_dtype(tape, x)));
    frag_tape_drop(tape, sums);
    frag_tape_drop(tape, small);
    frag_tape_drop(tape, scales);
    return made;
}

/* The layer keeps its bias in the type of the first input. */
static void turn_bias(frag_tape *tape, frag_tensor *bias, frag_dtype dtype)
{
    if (bias == NULL || frag_tape_dtype(tape, *bias) == dtype)
        return;
    frag_tape_set(tape, bias, frag_tape_to(tape, *bias, dtype));
    frag_tape_note_once(tape);
}

/* The input, rows one behind the other, is an attribute of the node and no saved tensor: it stays
 * as long as the graph. */
static frag_tensor linear_int8(frag_tape *tape, frag_tensor x, const frag_aten_packed *of,
                               uint64_t images)
{
    turn_bias(tape, of->bias, frag_tape_dtype(tape, x));
    bool was_recording = frag_tape_set_recording(tape, false);
    bool is_laid = frag_tape_is_strided(tape, x) && !of->is_flat;
    frag_tensor rows = is_laid ? frag_tape_empty_like(tape, x) : frag_tape_keep(tape, x);
    frag_tensor made = multiply_int8(tape, rows, of);
    frag_tape_set_recording(tape, was_recording);
    frag_node *node = frag_tape_record(tape, int8_backward, &x, 1, &made, 1);
    frag_tape_hold(tape, node, rows);
    frag_tape_drop(tape, rows);
    node->numbers[0] = of->rows;
    node->numbers[1] = of->columns;
    node->numbers[2] = images;
    return made;
}

frag_tensor frag_aten_linear_packed(frag_tape *tape, frag_tensor x, const frag_aten_packed *of,
                                    uint64_t images)
{
    if (of->is_int8)
        return linear_int8(tape, x, of, images);
    frag_tensor typed = frag_tape_to(tape, x, of->dtype);
    turn_bias(tape, of->bias, of->dtype);
    frag_tensor made = multiply(tape, typed, of);
    frag_node *node = frag_tape_record(tape, packed_backward, &typed, 1, &made, 1);
    node->numbers[0] = of->rows;
    node->numbers[1] = of->columns;
    node->numbers[2] = of->is_nested;
    frag_tape_set(tape, &made, frag_tape_to(tape, made, frag_tape_dtype(tape, x)));
    frag_tape_drop(tape, typed);
    return made;
}

/* Scales come before what they are of. */
static frag_tensor pack_int8(frag_tape *tape, const frag_aten_packed *of)
{
    frag_tensor scales = 0;
    frag_tensor weight = frag_tape_empty(tape, of->rows * of->columns, FRAG_F16);
    frag_tensor packed = quantise(tape, weight, of->rows, false, &scales);
    frag_tape_drop(tape, weight);
    return packed;
}

frag_tensor frag_aten_pack(frag_tape *tape, const frag_aten_packed *of, bool is_first)
{
    if (of->is_int8)
        return pack_int8(tape, of);
    enum { CODE = 16, MAP = 256 };
    uint64_t blocks = count_blocks(of);
    frag_tensor weight = frag_tape_empty(tape, of->rows * of->columns, of->dtype);
    frag_tensor scales = frag_tape_empty(tape, blocks, FRAG_F32);
    frag_tensor packed = frag_tape_empty(tape, (of->rows * of->columns + 1) / 2, FRAG_I8);
    (void)frag_tape_empty(tape, CODE, FRAG_F32);
    frag_tensor sizes = frag_tape_empty(tape, CODE, FRAG_F32);
    frag_tensor largest = frag_tape_empty(tape, 1, FRAG_F32);
    frag_tape_drop(tape, sizes);
    frag_tape_drop(tape, largest);
    if (of->is_nested) {
        (void)frag_tape_empty(tape, 1, FRAG_F32); /* the mean of the scales */
        frag_aten_reduce_buffers(tape, &(frag_reduction){1, blocks, true, 0});
        frag_tensor moved = frag_tape_empty(tape, blocks, FRAG_F32);
        if (is_first) /* kept by the library */
            (void)frag_tape_empty(tape, MAP, FRAG_F32);
        (void)frag_tape_empty(tape, (blocks + MAP - 1) / MAP, FRAG_F32);
        (void)frag_tape_empty(tape, blocks, FRAG_I8);
        (void)frag_tape_empty(tape, MAP, FRAG_F32);
        frag_tape_drop(tape, moved);
        frag_tape_drop(tape, scales);
    }
    frag_tape_drop(tape, weight);
    return packed;
}
