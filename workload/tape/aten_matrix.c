/* Matrix products, and the workspaces that the first of a thread takes. */
#include "workload/tape/aten.h"

/* An empty tensor that a product is written to; the library's handle comes with the first.
 * has_bias: by cuBLASLt. */
static frag_tensor product_with(frag_tape *tape, uint64_t count, frag_dtype dtype, bool has_bias)
{
    bool is_run = frag_tape_runs_product(tape);
    frag_tensor made = frag_tape_product(tape, count, dtype);
    if (is_run)
        frag_tape_use_blas(tape);
    if (is_run && has_bias)
        frag_tape_use_blas_lt(tape);
    return made;
}

static frag_tensor product(frag_tape *tape, uint64_t count, frag_dtype dtype)
{
    return product_with(tape, count, dtype, false);
}

/* saved: x, weight. inputs: bias, x, weight; the engine sums the bias's gradient over the rows, of
 * which there may be one. */
static void addmm_backward(frag_tape *tape, frag_node *node, const frag_tensor *in,
                           frag_tensor *out)
{
    frag_dtype dtype = frag_tape_dtype(tape, in[0]);
    if (node->edges[1].node != 0)
        out[1] = product(tape, node->numbers[0], dtype);
    if (node->edges[2].node != 0)
        out[2] = product(tape, node->numbers[1], dtype);
    if (node->edges[0].node == 0)
        return;
    node->is_summed = node->numbers[2] == 1;
    node->is_summed_along = node->numbers[3] != 0;
    node->is_sum_viewed = true;
    out[0] = frag_tape_keep(tape, in[0]);
}

static frag_tensor addmm(frag_tape *tape, frag_tensor bias, frag_tensor x, frag_tensor weight,
                         uint64_t columns, bool is_turned)
{
    uint64_t inner = frag_tape_count(tape, weight) / columns;
    uint64_t rows = frag_tape_count(tape, x) / inner;
    if (frag_tape_needs_gradient(tape, weight))
        frag_tape_will_save(tape, x);
    if (frag_tape_needs_gradient(tape, x))
        frag_tape_will_save(tape, weight);
    frag_tensor made = product_with(tape, rows * columns, frag_tape_dtype(tape, x), true);
    frag_node *node =
        frag_tape_record(tape, addmm_backward, (frag_tensor[]){bias, x, weight}, 3, &made, 1);
    frag_tape_save(tape, node, frag_tape_needs_gradient(tape, weight) ? x : 0);
    frag_tape_save(tape, node, frag_tape_needs_gradient(tape, x) ? weight : 0);
    node->numbers[0] = frag_tape_count(tape, x);
    node->numbers[1] = frag_tape_count(tape, weight);
    node->numbers[2] = rows;
    node->numbers[3] = is_turned;
    return made;
}

/* saved: weight (as mat2), x (as self); mat2's gradient comes first. inputs: x, weight */
static void mm_backward(frag_tape *tape, frag_node *node, const frag_tensor *in, frag_tensor *out)
{
    frag_dtype dtype = frag_tape_dtype(tape, in[0]);
    if (node->edges[1].node != 0) {
        /* Made transposed, and seen through a view. */
        frag_tensor made = product(tape, node->numbers[1], dtype);
        out[1] = frag_tape_view(tape, made, node->numbers[1]);
        frag_tape_drop(tape, made);
    }
    if (node->edges[0].node != 0)
        out[0] = product(tape, node->numbers[0], dtype);
}

static frag_tensor multiply(frag_tape *tape, const frag_tensor factors[2], uint64_t count,
                            frag_backward *backward)
{
    frag_tensor made = product(tape, count, frag_tape_dtype(tape, factors[0]));
    frag_node *node = frag_tape_record(tape, backward, factors, 2, &made, 1);
    for (uint32_t i = 0; i < 2; i++) {
        bool is_needed = frag_tape_needs_gradient(tape, factors[i]);
        frag_tape_save(tape, node, is_needed ? factors[1 - i] : 0);
        node->numbers[i] = frag_tape_count(tape, factors[i]);
    }
    return made;
}

static frag_tensor mm(frag_tape *tape, frag_tensor x, frag_tensor weight, uint64_t columns)
{
    uint64_t inner = frag_tape_count(tape, weight) / columns;
    uint64_t rows = frag_tape_count(tape, x) / inner;
    if (frag_tape_needs_gradient(tape, x))
        frag_tape_will_save(tape, weight);
    if (frag_tape_needs_gradient(tape, weight))
        frag_tape_will_save(tape, x);
    return multiply(tape, (frag_tensor[]){x, weight}, rows * columns, mm_backward);
}

/* x.view(-1, n), the product, and its view in the shape of x. */
frag_tensor frag_aten_addmm(frag_tape *tape, frag_tensor bias, frag_tensor x, frag_tensor weight,
                            uint64_t columns)
{
    frag_tensor flat = frag_aten_view(tape, x);
    /* Arguments are cast from the last to the first. */
    frag_tensor typed_weight = frag_tape_cast(tape, weight);
    frag_tensor typed = frag_tape_cast(tape, flat);
    frag_tensor typed_bias = frag_tape_cast(tape, bias);
    frag_tensor made = addmm(tape, typed_bias, typed, typed_weight, columns, false);
    frag_tape_drop(tape, typed_bias);
    frag_tape_drop(tape, typed);
    frag_tape_drop(tape, typed_weight);
    frag_tape_drop(tape, flat);
    frag_tensor shaped = frag_aten_view(tape, made);
    frag_tape_drop(tape, made);
    return shaped;
}

/* A turned matrix has gaps unless it is one row or one column. */
static void mark_turned(frag_tape *tape, frag_tensor turned, uint64_t columns)
{
    if (columns > 1 && frag_tape_count(tape, turned) > columns)
        frag_tape_set_strided(tape, turned);
}

frag_tensor frag_aten_linear(frag_tape *tape, frag_tensor x, frag_tensor weight, frag_tensor bias,
                             uint64_t columns)
{
    return frag_aten_linear_turned(tape, x, (frag_tensor[]){weight, bias}, columns, 0);
}

frag_tensor frag_aten_linear_turned(frag_tape *tape, frag_tensor x, const frag_tensor of[2],
                                    uint64_t columns, uint64_t images)
{
    const frag_tensor weight = of[0];
    const frag_tensor bias = of[1];
    frag_tensor typed_bias = frag_tape_cast(tape, bias);
    frag_tensor typed_weight = frag_tape_cast(tape, weight);
    frag_tensor typed = frag_tape_cast(tape, x);
    /* Without a bias the weight is turned first, so that in backward its gradient goes last. */
    frag_tensor turned = bias == 0 ? frag_aten_view(tape, typed_weight) : 0;
    frag_tensor flat = frag_aten_view(tape, typed);
    if (bias != 0)
        turned = frag_aten_view(tape, typed_weight);
    mark_turned(tape, turned, columns);
    if (bias != 0 && frag_tape_is_strided(tape, typed))
        frag_tape_set_strided(tape, flat);
    frag_tensor made = bias != 0 ? addmm(tape, typed_bias, flat, turned, columns, images == 1)
                                 : mm(tape, flat, turned, columns);
    frag_tape_drop(tape, turned);
    frag_tape_drop(tape, flat);
    frag_tape_drop(tape, typed);
    frag_tape_drop(tape, typed_weight);
    frag_tape_drop(tape, typed_bias);
    if (bias == 0 && images <= 1)
        return frag_aten_unsafe_view(tape, made);
    frag_tensor shaped =
        images > 1 ? frag_aten_view_copied(tape, made) : frag_aten_view(tape, made);
    frag_tape_drop(tape, made);
    return shaped;
}

frag_tensor frag_aten_linear_flat(frag_tape *tape, frag_tensor x, const frag_tensor of[2],
                                  uint64_t columns)
{
    frag_tensor bias = frag_tape_cast(tape, of[1]);
    frag_tensor weight = frag_tape_cast(tape, of[0]);
    frag_tensor typed = frag_tape_cast(tape, x);
    frag_tensor turned = frag_aten_view(tape, weight);
    mark_turned(tape, turned, columns);
    frag_tensor made = bias != 0 ? addmm(tape, bias, typed, turned, columns, false)
                                 : mm(tape, typed, turned, columns);
    frag_tape_drop(tape, turned);
    frag_tape_drop(tape, typed);
    frag_tape_drop(tape, weight);
    frag_tape_drop(tape, bias);
    return made;
}

frag_tensor frag_aten_linear_apart(frag_tape *tape, frag_tensor x, const frag_tensor of[2],
                                   uint64_t columns, uint64_t images)
{
    frag_tensor bias = frag_tape_cast(tape, of[1]);
    frag_tensor weight = frag_tape_cast(tape, of[0]);
    frag_tensor typed = frag_tape_cast(tape, x);
    /* matmul folds all rows into one matrix for the sake of the weight's gradient; without one each
     * image is multiplied as it lies. */
    bool is_folded = images > 1 && frag_tape_needs_gradient(tape, weight);
    frag_tensor flat = is_folded ? frag_aten_contiguous(tape, typed) : frag_aten_view(tape, typed);
    if (!is_folded && frag_tape_is_strided(tape, x))
        frag_tape_set_strided(tape, flat);
    frag_tensor turned = frag_aten_view(tape, weight);
    mark_turned(tape, turned, columns);
    frag_tensor made = frag_aten_unsafe_view(tape, mm(tape, flat, turned, columns));
    frag_tape_drop(tape, turned);
    frag_tape_drop(tape, flat);
    made = frag_aten_add_in_place(tape, made, bias);
    frag_tape_drop(tape, typed);
    frag_tape_drop(tape, weight);
    frag_tape_drop(tape, bias);
    return made;
}

frag_tensor frag_aten_linear_cut(frag_tape *tape, frag_tensor x, frag_tensor weight,
                                 uint64_t columns)
{
    frag_tensor typed_weight = frag_tape_cast(tape, weight);
    frag_tensor typed = frag_tape_cast(tape, x);
    frag_tensor turned = frag_aten_view(tape, typed_weight);
    mark_turned(tape, turned, columns);
    bool is_folded = typed == x && frag_tape_needs_gradient(tape, weight);
    frag_tensor flat = is_folded ? frag_aten_unsafe_view(tape, frag_aten_contiguous(tape, typed))
                                 : frag_aten_view(tape, typed);
    frag_tensor made = frag_aten_unsafe_view(tape, mm(tape, flat, turned, columns));
    frag_tape_drop(tape, turned);
    frag_tape_drop(tape, flat);
    frag_tape_drop(tape, typed);
    frag_tape_drop(tape, typed_weight);
    return made;
}

/* saved: other, self; other's gradient comes first, as with mm. */
static void bmm_backward(frag_tape *tape, frag_node *node, const frag_tensor *in, frag_tensor *out)
{
    frag_dtype dtype = frag_tape_dtype(tape, in[0]);
    if (node->edges[1].node != 0)
        out[1] = product(tape, node->numbers[1], dtype);
    if (node->edges[0].node != 0)
        out[0] = product(tape, node->numbers[0], dtype);
}

frag_tensor frag_aten_bmm(frag_tape *tape, frag_tensor self, frag_tensor other, uint64_t count)
{
    return multiply(tape, (frag_tensor[]){self, other}, count, bmm_backward);
}

/* saved: both factors. A product, and the same scaled, for each. */
static void baddbmm_backward(frag_tape *tape, frag_node *node, const frag_tensor *in,
                             frag_tensor *out)
{
    frag_dtype dtype = frag_tape_dtype(tape, in[0]);
    for (uint32_t i = 0; i < 2; i++) {
        if (node->edges[i].node == 0)
            continue;
        frag_tensor made = product(tape, node->numbers[i], dtype);
        out[i] = frag_tape_empty(tape, node->numbers[i], dtype);
        frag_tape_drop(tape, made);
    }
}

frag_tensor frag_aten_baddbmm(frag_tape *tape, frag_tensor numbers, const frag_tensor factors[2],
                              uint64_t count)
{
    frag_tensor typed[2] = {0, frag_tape_cast(tape, factors[1])};
    typed[0] = frag_tape_cast(tape, factors[0]);
    frag_tensor added = frag_tape_cast(tape, numbers);
    frag_tensor made = product(tape, count, frag_tape_dtype(tape, typed[0]));
    frag_node *node = frag_tape_record(tape, baddbmm_backward, typed, 2, &made, 1);
    for (uint32_t i = 0; i < 2; i++) {
        frag_tape_save(tape, node, typed[i]);
        node->numbers[i] = frag_tape_count(tape, typed[i]);
    }
    frag_tape_drop(tape, added);
    frag_tape_drop(tape, typed[0]);
    frag_tape_drop(tape, typed[1]);
    return made;
}
