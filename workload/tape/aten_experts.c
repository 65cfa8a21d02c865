/* Operators of mixtures of experts and of graphs: choosing, rows by their numbers, products in
 * groups. */
#include "workload/tape/aten.h"

/* ---- topk and what follows from it */
/* Zeros, into which the gradients of the chosen are scattered. */
frag_tensor frag_aten_topk(frag_tape *tape, frag_tensor self, uint64_t count, frag_tensor *indices)
{
    frag_tensor made = frag_tape_empty(tape, count, frag_tape_dtype(tape, self));
    *indices = frag_tape_empty(tape, count, FRAG_I64);
    frag_node *node = frag_tape_record(tape, frag_aten_resize_backward, &self, 1, &made, 1);
    frag_tape_save_made(tape, node, *indices);
    node->numbers[0] = frag_tape_count(tape, self);
    return made;
}

static void sum_backward(frag_tape *tape, frag_node *node, const frag_tensor *in, frag_tensor *out)
{
    out[0] = frag_tape_view(tape, in[0], node->numbers[0]); /* expanded */
}

frag_tensor frag_aten_sum(frag_tape *tape, frag_tensor self, const frag_reduction *of)
{
    bool is_wide = frag_tape_autocast(tape) != FRAG_F32; /* which sums in fp32 */
    frag_tensor made =
        frag_tape_empty(tape, of->outputs, is_wide ? FRAG_F32 : frag_tape_dtype(tape, self));
    if (of->is_fastest)
        frag_tape_set_column(tape, made);
    frag_aten_reduce_buffers(tape, of);
    frag_node *node = frag_tape_record(tape, sum_backward, &self, 1, &made, 1);
    node->numbers[0] = frag_tape_count(tape, self);
    return made;
}

/* saved: other, self as it was. other: -grad * ((self / other) / other), in the type of both */
static void divide_backward(frag_tape *tape, frag_node *node, const frag_tensor *in,
                            frag_tensor *out)
{
    uint64_t count = frag_tape_count(tape, in[0]);
    frag_dtype dtype = frag_tape_dtype(tape, in[0]);
    frag_dtype wide = frag_aten_wider(dtype, frag_tape_dtype(tape, node->saved[0]));
    frag_tensor parts[3]; /* the inner quotient, the outer one, -grad */
    for (uint32_t i = 0; i < 3; i++)
        parts[i] = frag_tape_empty(tape, count, i < 2 ? wide : dtype);
    out[1] = frag_tape_empty(tape, count, wide);
    frag_tape_drop_all(tape, parts, 3);
    out[0] = frag_tape_empty(tape, count, wide);
}

frag_tensor frag_aten_divide_in_place(frag_tape *tape, frag_tensor self, frag_tensor other)
{
    uint64_t count = frag_tape_count(tape, self);
    bool is_saved = frag_tape_is_recording(tape) && frag_tape_needs_gradient(tape, other);
    frag_tensor before = is_saved ? frag_tape_empty(tape, count, frag_tape_dtype(tape, self)) : 0;
    frag_tensor made = frag_tape_alias(tape, self, count);
    frag_node *node =
        frag_tape_record(tape, divide_backward, (frag_tensor[]){self, other}, 2, &made, 1);
    frag_tape_save(tape, node, other);
    frag_tape_save_made(tape, node, before);
    frag_tape_drop(tape, before);
    frag_tape_drop(tape, self);
    return made;
}

/* ---- rows by their numbers: self[index] */
/* Into zeros: the numbers are sorted, so that equal ones are added up. */
static void gather_backward(frag_tape *tape, frag_node *node, const frag_tensor *in,
                            frag_tensor *out)
{
    uint64_t count = frag_tape_count(tape, node->saved[0]);
    uint64_t width = frag_tape_count(tape, in[0]) / count;
    out[0] = frag_tape_empty(tape, node->numbers[0], frag_tape_dtype(tape, in[0]));
    frag_aten_sort_rows(tape, count, node->numbers[0] / width, node->numbers[1]);
}

frag_tensor frag_aten_gather(frag_tape *tape, frag_tensor self, frag_tensor index, uint64_t width)
{
    uint64_t rows = frag_tape_count(tape, index);
    frag_tensor made = frag_tape_empty(tape, rows * width, frag_tape_dtype(tape, self));
    if (width == 1)
        frag_tape_set_column(tape, made);
    frag_node *node = frag_tape_record(tape, gather_backward, &self, 1, &made, 1);
    frag_tape_save(tape, node, index);
    node->numbers[0] = frag_tape_count(tape, self);
    node->numbers[1] = 1;
    return made;
}

frag_tensor frag_aten_pick(frag_tape *tape, frag_tensor self, frag_tensor index)
{
    frag_tensor deep = frag_aten_view(tape, self);
    frag_tensor made =
        frag_tape_empty(tape, frag_tape_count(tape, index), frag_tape_dtype(tape, self));
    frag_tape_set_column(tape, made);
    frag_node *node = frag_tape_record(tape, gather_backward, &deep, 1, &made, 1);
    frag_tape_save(tape, node, index);
    node->numbers[0] = frag_tape_count(tape, self);
    node->numbers[1] = 2;
    frag_tape_drop(tape, deep);
    return made;
}

frag_tensor frag_aten_pick_rows(frag_tape *tape, frag_tensor self, frag_tensor columns,
                                uint64_t width)
{
    const uint64_t matrices = frag_tape_count(tape, columns);
    frag_tensor range = frag_tape_empty(tape, matrices, FRAG_I64);
    frag_tensor made = frag_tape_empty(tape, matrices * width, frag_tape_dtype(tape, self));
    frag_node *node = frag_tape_record(tape, gather_backward, &self, 1, &made, 1);
    frag_tape_save(tape, node, columns);
    frag_tape_save(tape, node, range);
    node->numbers[0] = frag_tape_count(tape, self);
    node->numbers[1] = 2;
    frag_tape_drop(tape, range);
    return made;
}

/* Zeros, into which gradients are put: the numbers are copied to the device and sorted. */
static void pick_places_backward(frag_tape *tape, frag_node *node, const frag_tensor *in,
                                 frag_tensor *out)
{
    const uint64_t count = node->numbers[0], matrices = node->numbers[1];
    uint64_t places = frag_tape_count(tape, in[0]) / matrices;
    frag_dtype dtype = frag_tape_dtype(tape, in[0]);
    out[0] = frag_tape_empty(tape, count, dtype);
    frag_tensor linear = frag_tape_empty(tape, places, FRAG_I64);
    frag_tape_drop(tape, frag_tape_empty(tape, places, FRAG_I64));
    frag_tensor laid = matrices > 1 ? frag_tape_empty(tape, places * matrices, dtype) : 0;
    frag_tensor made[3]; /* sorted, order, a range */
    for (uint32_t i = 0; i < 3; i++)
        made[i] = frag_tape_empty(tape, places, FRAG_I64);
    frag_aten_sort_keys(tape, places, count);
    frag_tape_drop_all(tape, made, 3);
    frag_tape_drop(tape, laid);
    frag_tape_drop(tape, linear);
}

frag_tensor frag_aten_pick_places(frag_tape *tape, frag_tensor self, uint64_t matrices,
                                  uint64_t places)
{
    frag_tensor rows = frag_tape_empty(tape, places, FRAG_I64);
    frag_tensor columns = frag_tape_empty(tape, places, FRAG_I64);
    frag_tensor made = frag_tape_empty(tape, matrices * places, frag_tape_dtype(tape, self));
    frag_tape_drop(tape, columns);
    frag_tape_drop(tape, rows);
    frag_node *node = frag_tape_record(tape, pick_places_backward, &self, 1, &made, 1);
    node->numbers[0] = frag_tape_count(tape, self);
    node->numbers[1] = matrices;
    return made;
}

/* Zeros, into which rows are added up. */
frag_tensor frag_aten_select_rows(frag_tape *tape, frag_tensor self, frag_tensor index,
                                  uint64_t width)
{
    frag_tensor made =
        frag_tape_empty(tape, frag_tape_count(tape, index) * width, frag_tape_dtype(tape, self));
    frag_node *node = frag_tape_record(tape, frag_aten_resize_backward, &self, 1, &made, 1);
    frag_tape_save(tape, node, index);
    node->numbers[0] = frag_tape_count(tape, self);
    return made;
}

/* The rows of the gradient, by number. */
frag_tensor frag_aten_scatter_rows(frag_tape *tape, frag_tensor source, frag_tensor index,
                                   uint64_t rows)
{
    uint64_t width = frag_tape_count(tape, source) / frag_tape_count(tape, index);
    frag_tensor made = frag_tape_empty(tape, rows * width, frag_tape_dtype(tape, source));
    frag_node *node = frag_tape_record(tape, frag_aten_resize_backward, &source, 1, &made, 1);
    frag_tape_save(tape, node, index);
    node->numbers[0] = frag_tape_count(tape, source);
    return made;
}

/* ---- rows added up by their numbers */
static void index_add_backward(frag_tape *tape, frag_node *node, const frag_tensor *in,
                               frag_tensor *out)
{
    if (node->edges[0].node != 0)
        out[0] = frag_tape_keep(tape, in[0]);
    if (node->edges[1].node != 0)
        out[1] = frag_tape_empty(tape, node->numbers[0], frag_tape_dtype(tape, in[0]));
}

frag_tensor frag_aten_index_add_in_place(frag_tape *tape, frag_tensor self, frag_tensor index,
                                         frag_tensor source)
{
    frag_tensor made = frag_tape_alias(tape, self, frag_tape_count(tape, self));
    frag_node *node =
        frag_tape_record(tape, index_add_backward, (frag_tensor[]){self, source}, 2, &made, 1);
    frag_tape_save_made(tape, node, index); /* nothing is made in between */
    frag_tape_save_made(tape, node, source);
    node->numbers[0] = frag_tape_count(tape, source);
    frag_tape_drop(tape, self);
    return made;
}

/* cub's sum of many items: a number for each block, five times as many blocks as fit. */
static uint64_t count_bytes(const frag_tape *tape, uint64_t items)
{
    enum { TILE = 4096, BLOCK_THREADS = 256, WAVES = 5, UNIT = 256 };
    const frag_tape_card *card = frag_tape_get_card(tape);
    if (items <= TILE)
        return 1;
    uint64_t blocks =
        (uint64_t)card->multiprocessors * (card->threads_per_multiprocessor / BLOCK_THREADS);
    return (blocks * WAVES * 4 + UNIT - 1) / UNIT * UNIT + UNIT - 1;
}

frag_tensor frag_aten_nonzero(frag_tape *tape, const frag_nonzero *of)
{
    frag_tensor copy = of->is_strided ? frag_tape_empty(tape, of->items, FRAG_I64) : 0;
    frag_tensor count = frag_tape_empty(tape, 1, FRAG_I32);
    frag_tape_drop(tape, frag_tape_empty(tape, count_bytes(tape, of->items), FRAG_BOOL));
    frag_tensor made = frag_tape_empty(tape, of->found * of->dimensions, FRAG_I64);
    frag_aten_scan(tape, of->items, FRAG_I32);
    frag_tape_drop(tape, copy);
    frag_tape_drop(tape, count);
    return made;
}

/* ---- torch._grouped_mm: rows of x in groups, each with a matrix of its own */
static uint64_t align(uint64_t count, uint64_t columns, frag_dtype dtype)
{
    uint64_t step = 16 / frag_dtype_bytes(dtype);
    return count / columns * ((columns + step - 1) / step * step);
}

/* CUTLASS's kernel for capability 9.0 and bf16 (ATen/native/cuda/GroupMM.cu): shapes, strides and
 * addresses of each group, and descriptors of what each multiprocessor works on. The other products
 * are cuBLAS's, group by group. */
static void use_grouped(frag_tape *tape, frag_dtype dtype, uint64_t groups)
{
    enum { HOPPER = 90, GROUP_BYTES = 60, DESCRIPTOR_BYTES = 640 };
    const frag_tape_card *card = frag_tape_get_card(tape);
    if (card->capability != HOPPER || dtype != FRAG_BF16) {
        frag_tape_use_blas(tape);
        return;
    }
    frag_tensor arguments = frag_tape_empty(tape, groups * GROUP_BYTES, FRAG_BOOL);
    frag_tensor descriptors =
        frag_tape_empty(tape, (uint64_t)card->multiprocessors * DESCRIPTOR_BYTES, FRAG_BOOL);
    frag_tape_drop(tape, descriptors);
    frag_tape_drop(tape, arguments);
}

/* saved: weight, offsets, x */
static void grouped_backward(frag_tape *tape, frag_node *node, const frag_tensor *in,
                             frag_tensor *out)
{
    frag_dtype dtype = frag_tape_dtype(tape, in[0]);
    for (uint32_t i = 2; i > 0; i--) {
        if (node->edges[i - 1].node == 0)
            continue;
        out[i - 1] =
            frag_tape_empty(tape, align(node->numbers[i - 1], node->numbers[2], dtype), dtype);
        use_grouped(tape, dtype, frag_tape_count(tape, node->saved[1]));
    }
}

/* transformers' own, on cards before capability 8.0: both gradients, whoever needs them. */
static void fallback_backward(frag_tape *tape, frag_node *node, const frag_tensor *in,
                              frag_tensor *out)
{
    for (uint32_t i = 0; i < 2; i++)
        out[i] = frag_tape_empty(tape, node->numbers[i], frag_tape_dtype(tape, in[0]));
    frag_tape_use_blas(tape);
    for (uint32_t i = 0; i < 2; i++)
        if (node->edges[i].node == 0)
            frag_tape_clear(tape, &out[i]);
}

static void save_fallback(frag_tape *tape, frag_node *node, frag_tensor x, frag_tensor weight,
                          frag_tensor offsets)
{
    frag_tape_save(tape, node, x);
    frag_tape_save(tape, node, weight);
    frag_tape_hold(tape, node, offsets);
}

static void save_grouped(frag_tape *tape, frag_node *node, frag_tensor x, frag_tensor weight,
                         frag_tensor offsets)
{
    frag_tape_save(tape, node, frag_tape_needs_gradient(tape, x) ? weight : 0);
    frag_tape_save(tape, node, offsets);
    frag_tape_save(tape, node, frag_tape_needs_gradient(tape, weight) ? x : 0);
}

/* The matrices are given turned around. */
static void will_save_turned(frag_tape *tape, frag_tensor x, frag_tensor weight)
{
    if (!frag_tape_needs_gradient(tape, x))
        return;
    frag_tensor turned = frag_tape_view(tape, weight, frag_tape_count(tape, weight));
    frag_tape_set_strided(tape, turned);
    frag_tape_will_save(tape, turned);
    frag_tape_drop(tape, turned);
}

frag_tensor frag_aten_grouped_mm(frag_tape *tape, frag_tensor x, frag_tensor weight,
                                 frag_tensor offsets, const frag_matrix_shape *shape)
{
    bool is_fallback = frag_tape_get_card(tape)->capability < 80;
    frag_dtype dtype = frag_tape_dtype(tape, x);
    uint64_t count = shape->rows * shape->columns;
    if (!is_fallback)
        will_save_turned(tape, x, weight);
    frag_tensor made =
        frag_tape_empty(tape, is_fallback ? count : align(count, shape->columns, dtype), dtype);
    if (is_fallback) /* a function in Python */
        will_save_turned(tape, x, weight);
    use_grouped(tape, dtype, frag_tape_count(tape, offsets));
    frag_node *node = frag_tape_record(tape, is_fallback ? fallback_backward : grouped_backward,
                                       (frag_tensor[]){x, weight}, 2, &made, 1);
    (is_fallback ? save_fallback : save_grouped)(tape, node, x, weight, offsets);
    node->numbers[0] = frag_tape_count(tape, x);
    node->numbers[1] = frag_tape_count(tape, weight);
    node->numbers[2] = shape->inner;
    return made;
}
