/* Products with weights of 4 bits, as bitsandbytes 0.50 makes them (autograd/_functions.py,
 * backends/cuda/ops.py): the weight is unpacked before, unless there are a few rows only. */
#include "workload/tape/aten.h"

enum { BLOCK = 64, KERNEL_ROWS_MAX = 4 };

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
    if (rows <= KERNEL_ROWS_MAX && of->columns % BLOCK == 0)
        return frag_tape_empty(tape, rows * of->rows, dtype);
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

frag_tensor frag_aten_linear_packed(frag_tape *tape, frag_tensor x, const frag_aten_packed *of)
{
    frag_tensor typed = frag_tape_to(tape, x, of->dtype);
    if (of->bias != NULL)
        frag_tape_set(tape, of->bias, frag_tape_to(tape, *of->bias, of->dtype));
    frag_tensor made = multiply(tape, typed, of);
    frag_node *node = frag_tape_record(tape, packed_backward, &typed, 1, &made, 1);
    if (node != NULL) {
        node->numbers[0] = of->rows;
        node->numbers[1] = of->columns;
        node->numbers[2] = of->is_nested;
    }
    frag_tape_set(tape, &made, frag_tape_to(tape, made, frag_tape_dtype(tape, x)));
    frag_tape_drop(tape, typed);
    return made;
}

frag_tensor frag_aten_pack(frag_tape *tape, const frag_aten_packed *of, bool is_first)
{
    enum { CODE = 16, MAP = 256 };
    uint64_t blocks = count_blocks(of);
    frag_tensor weight = frag_tape_empty(tape, of->rows * of->columns, of->dtype);
    frag_tensor scales = frag_tape_empty(tape, blocks, FRAG_F32);
    frag_tensor packed = frag_tape_empty(tape, (of->rows * of->columns + 1) / 2, FRAG_BOOL);
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
        (void)frag_tape_empty(tape, blocks, FRAG_BOOL);
        (void)frag_tape_empty(tape, MAP, FRAG_F32);
        frag_tape_drop(tape, moved);
        frag_tape_drop(tape, scales);
    }
    frag_tape_drop(tape, weight);
    return packed;
}
