/* Operators that give a tensor another shape, and those that copy because of it. */
#include "workload/tape/aten.h"

/* Views of gradients are views too: they hold the tensor they are of. */
static void view_backward(frag_tape *tape, frag_node *node, const frag_tensor *in, frag_tensor *out)
{
    (void)node;
    out[0] = frag_tape_view(tape, in[0], frag_tape_count(tape, in[0]));
}

frag_tensor frag_aten_view(frag_tape *tape, frag_tensor self)
{
    frag_tensor made = frag_tape_view(tape, self, frag_tape_count(tape, self));
    frag_tape_record(tape, view_backward, &self, 1, &made, 1);
    return made;
}

frag_tensor frag_aten_view_column(frag_tape *tape, frag_tensor self)
{
    frag_tensor made = frag_tape_view(tape, self, frag_tape_count(tape, self));
    frag_tape_set_column(tape, made);
    frag_tape_record(tape, view_backward, &self, 1, &made, 1);
    return made;
}

/* The gradient lies in another order, so that the view of it is a copy. */
static void view_copied_backward(frag_tape *tape, frag_node *node, const frag_tensor *in,
                                 frag_tensor *out)
{
    (void)node;
    out[0] = frag_tape_empty_like(tape, in[0]);
}

frag_tensor frag_aten_view_copied(frag_tape *tape, frag_tensor self)
{
    frag_tensor made = frag_tape_view(tape, self, frag_tape_count(tape, self));
    frag_tape_record(tape, view_copied_backward, &self, 1, &made, 1);
    return made;
}

frag_tensor frag_aten_unsafe_view(frag_tape *tape, frag_tensor self)
{
    frag_tensor made = frag_tape_alias(tape, self, frag_tape_count(tape, self));
    frag_tape_record(tape, view_backward, &self, 1, &made, 1);
    frag_tape_drop(tape, self);
    return made;
}

frag_tensor frag_aten_contiguous(frag_tape *tape, frag_tensor self)
{
    frag_tensor made = frag_tape_empty_like(tape, self);
    frag_tape_record(tape, frag_aten_pass_backward, &self, 1, &made, 1);
    return made;
}

frag_tensor frag_aten_alias(frag_tape *tape, frag_tensor self)
{
    frag_tensor made = frag_tape_view(tape, self, frag_tape_count(tape, self));
    frag_tape_record(tape, frag_aten_pass_backward, &self, 1, &made, 1);
    return made;
}

/* The gradients of the parts, one behind the other; zeros for those that have none. */
static void split_backward(frag_tape *tape, frag_node *node, const frag_tensor *in,
                           frag_tensor *out)
{
    frag_tensor zeros[FRAG_NODE_EDGES_MAX] = {0};
    frag_dtype dtype = node->dtypes[0];
    for (uint32_t i = 0; i < node->output_count; i++)
        if (in[i] == 0)
            zeros[i] = frag_tape_empty(tape, node->counts[i], dtype);
    out[0] = frag_tape_empty(tape, node->numbers[0], dtype);
    frag_tape_drop_all(tape, zeros, node->output_count);
}

void frag_aten_split(frag_tape *tape, frag_tensor self, frag_tensor *parts, uint32_t count)
{
    uint64_t whole = frag_tape_count(tape, self);
    for (uint32_t i = 0; i < count; i++)
        parts[i] = frag_tape_view(tape, self, whole / count);
    frag_node *node = frag_tape_record(tape, split_backward, &self, 1, parts, count);
    node->numbers[0] = whole;
}

/* ---- a split into any number of parts: a node for each, which keeps its gradient until all are
 * there */
static void part_backward(frag_tape *tape, frag_node *node, const frag_tensor *in, frag_tensor *out)
{
    (void)out;
    node->held = frag_tape_keep(tape, in[0]);
}

/* numbers: elements, the part that was taken last; of a part the one before it. */
static void parts_backward(frag_tape *tape, frag_node *node, const frag_tensor *in,
                           frag_tensor *out)
{
    (void)in;
    out[0] = frag_tape_empty(tape, node->numbers[0], node->dtypes[0]);
    for (uint64_t next = node->numbers[1]; next != 0;) {
        frag_node *part = frag_tape_node(tape, (uint32_t)next);
        frag_tape_clear(tape, &part->held);
        next = part->numbers[0];
    }
}

frag_tensor frag_aten_split_begin(frag_tape *tape, frag_tensor self)
{
    frag_tensor whole = frag_tape_view(tape, self, frag_tape_count(tape, self));
    frag_node *node = frag_tape_record(tape, parts_backward, &self, 1, &whole, 1);
    node->numbers[0] = frag_tape_count(tape, self);
    return whole;
}

frag_tensor frag_aten_split_next(frag_tape *tape, frag_tensor whole, uint64_t count)
{
    frag_tensor made = frag_tape_view(tape, whole, count);
    frag_node *part = frag_tape_record(tape, part_backward, &whole, 1, &made, 1);
    uint32_t number = frag_tape_tensor_node(tape, made);
    if (number != 0) {
        frag_node *node = frag_tape_node(tape, frag_tape_tensor_node(tape, whole));
        part->numbers[0] = node->numbers[1];
        node->numbers[1] = number;
    }
    return made;
}

/* Zeros of the whole, into which the gradient is copied. */
frag_tensor frag_aten_slice(frag_tape *tape, frag_tensor self, uint64_t count)
{
    frag_tensor made = frag_tape_view(tape, self, count);
    frag_node *node = frag_tape_record(tape, frag_aten_resize_backward, &self, 1, &made, 1);
    node->numbers[0] = frag_tape_count(tape, self);
    return made;
}

/* A copy of the part that was there before. */
frag_tensor frag_aten_pad(frag_tape *tape, frag_tensor self, uint64_t count)
{
    frag_tensor whole = frag_tape_empty(tape, count, frag_tape_dtype(tape, self));
    frag_node *node = frag_tape_record(tape, frag_aten_resize_backward, &self, 1, &whole, 1);
    node->numbers[0] = frag_tape_count(tape, self);
    frag_tensor made = frag_aten_slice(tape, whole, frag_tape_count(tape, self));
    frag_tape_drop(tape, whole);
    return made;
}

frag_tensor frag_aten_expand(frag_tape *tape, frag_tensor self, uint64_t count)
{
    frag_tensor made = frag_tape_view(tape, self, count);
    frag_tape_record(tape, frag_aten_pass_backward, &self, 1, &made, 1);
    return made;
}

/* CopySlices: the gradient is copied, and the part of it once more, which is source's; in the copy
 * zeros take its place. */
static void write_backward(frag_tape *tape, frag_node *node, const frag_tensor *in,
                           frag_tensor *out)
{
    frag_dtype dtype = frag_tape_dtype(tape, in[0]);
    frag_tensor whole = frag_tape_empty(tape, node->numbers[0], dtype);
    frag_tensor part = frag_tape_empty(tape, node->numbers[1], dtype);
    frag_tensor zeros =
        node->edges[0].node != 0 ? frag_tape_empty(tape, node->numbers[1], dtype) : 0;
    if (node->edges[1].node != 0)
        out[1] = frag_tape_to(tape, part, (frag_dtype)node->numbers[2]);
    frag_tape_drop(tape, zeros);
    frag_tape_drop(tape, part);
    if (node->edges[0].node != 0)
        out[0] = whole;
    else
        frag_tape_drop(tape, whole);
}

frag_tensor frag_aten_write(frag_tape *tape, frag_tensor self, frag_tensor source)
{
    frag_tensor made = frag_tape_alias(tape, self, frag_tape_count(tape, self));
    frag_node *node =
        frag_tape_record(tape, write_backward, (frag_tensor[]){self, source}, 2, &made, 1);
    node->numbers[0] = frag_tape_count(tape, self);
    node->numbers[1] = frag_tape_count(tape, source);
    node->numbers[2] = frag_tape_dtype(tape, source);
    frag_tape_drop(tape, self);
    return made;
}

/* The sum over the repeats, where there are several. */
static void repeat_backward(frag_tape *tape, frag_node *node, const frag_tensor *in,
                            frag_tensor *out)
{
    uint64_t count = node->numbers[0];
    if (frag_tape_count(tape, in[0]) == count) {
        out[0] = frag_tape_keep(tape, in[0]);
        return;
    }
    out[0] = frag_tape_empty(tape, count, frag_tape_dtype(tape, in[0]));
    frag_aten_reduce_buffers(
        tape, &(frag_reduction){count, frag_tape_count(tape, in[0]) / count, false, 0});
}

frag_tensor frag_aten_repeat(frag_tape *tape, frag_tensor self, uint64_t times)
{
    uint64_t count = frag_tape_count(tape, self);
    frag_tensor made = frag_tape_empty(tape, times * count, frag_tape_dtype(tape, self));
    frag_node *node = frag_tape_record(tape, repeat_backward, &self, 1, &made, 1);
    node->numbers[0] = count;
    return made;
}

/* Each input gets a view of its part of the gradient. */
static void cat_backward(frag_tape *tape, frag_node *node, const frag_tensor *in, frag_tensor *out)
{
    for (uint32_t i = 0; i < node->edge_count; i++)
        if (node->edges[i].node != 0)
            out[i] = frag_tape_view(tape, in[0], node->numbers[i]);
}

/* A node for each part but the first, of which none makes anything. */
frag_tensor frag_aten_cat_all(frag_tape *tape, const frag_tensor *parts, uint64_t count,
                              frag_dtype dtype)
{
    uint64_t total = 0;
    for (uint64_t i = 0; i < count; i++)
        total += frag_tape_count(tape, parts[i]);
    frag_tensor whole = frag_tape_empty(tape, total, dtype);
    frag_tensor made = frag_tape_keep(tape, parts[0]);
    for (uint64_t i = 1; i < count; i++) {
        uint64_t counts[2] = {frag_tape_count(tape, made), frag_tape_count(tape, parts[i])};
        frag_tensor next = frag_tape_alias(tape, whole, counts[0] + counts[1]);
        frag_node *node =
            frag_tape_record(tape, cat_backward, (frag_tensor[]){made, parts[i]}, 2, &next, 1);
        for (uint32_t k = 0; k < 2; k++)
            node->numbers[k] = counts[k];
        frag_tape_drop(tape, made);
        made = next;
    }
    frag_tape_drop(tape, whole);
    return made;
}

frag_tensor frag_aten_cat(frag_tape *tape, frag_tensor first, frag_tensor second, frag_dtype dtype)
{
    uint64_t counts[2] = {frag_tape_count(tape, first), frag_tape_count(tape, second)};
    frag_tensor made = frag_tape_empty(tape, counts[0] + counts[1], dtype);
    frag_node *node =
        frag_tape_record(tape, cat_backward, (frag_tensor[]){first, second}, 2, &made, 1);
    for (uint32_t i = 0; i < 2; i++)
        node->numbers[i] = counts[i];
    return made;
}

/* A node for each part, which hands on its gradient and that of the parts behind it. */
frag_tensor frag_aten_cat_parts(frag_tape *tape, const frag_tensor *parts, uint64_t count)
{
    uint64_t total = 0;
    for (uint64_t i = 0; i < count; i++)
        total += frag_tape_count(tape, parts[i]);
    frag_tensor whole = frag_tape_empty(tape, total, frag_tape_dtype(tape, parts[0]));
    frag_tensor rest = 0;
    uint64_t rest_count = 0;
    for (uint64_t i = count; i > 0; i--) {
        uint64_t own = frag_tape_count(tape, parts[i - 1]);
        frag_tensor next = frag_tape_alias(tape, whole, own + rest_count);
        frag_node *node = frag_tape_record(tape, cat_backward, (frag_tensor[]){parts[i - 1], rest},
                                           rest != 0 ? 2 : 1, &next, 1);
        node->numbers[0] = own;
        node->numbers[1] = rest_count;
        frag_tape_drop(tape, rest);
        rest = next;
        rest_count += own;
    }
    frag_tape_drop(tape, whole);
    return rest;
}
