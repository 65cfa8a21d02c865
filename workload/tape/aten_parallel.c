/* Tensor parallelism: what torch.distributed.tensor does around a linear layer of which each device
 * has a part. */
#include "workload/tape/aten.h"

/* A functional collective: what is added up over the devices is another tensor. */
static frag_tensor add_up(frag_tape *tape, frag_tensor x)
{
    return frag_tape_empty_like(tape, x);
}

static void replicate_backward(frag_tape *tape, frag_node *node, const frag_tensor *in,
                               frag_tensor *out)
{
    (void)node;
    out[0] = add_up(tape, in[0]);
}

frag_tensor frag_aten_replicate(frag_tape *tape, frag_tensor self)
{
    frag_tensor made = frag_tape_view(tape, self, frag_tape_count(tape, self));
    (void)frag_tape_record(tape, replicate_backward, &self, 1, &made, 1);
    frag_tape_set_part(tape, made);
    return made;
}

/* A tensor of its own, which no view is of: others are added to it in place. */
static void from_local_backward(frag_tape *tape, frag_node *node, const frag_tensor *in,
                                frag_tensor *out)
{
    (void)node;
    out[0] = frag_tape_alias(tape, in[0], frag_tape_count(tape, in[0]));
}

frag_tensor frag_aten_from_local(frag_tape *tape, frag_tensor self)
{
    frag_tensor made = frag_tape_view(tape, self, frag_tape_count(tape, self));
    (void)frag_tape_record(tape, from_local_backward, &self, 1, &made, 1);
    frag_tape_set_part(tape, made);
    return made;
}

frag_tensor frag_aten_all_reduce(frag_tape *tape, frag_tensor self)
{
    frag_tensor made = add_up(tape, self);
    (void)frag_tape_record(tape, frag_aten_pass_backward, &self, 1, &made, 1);
    frag_tape_drop(tape, self);
    return made;
}

/* numbers: elements of the part, is the gradient here? */
static void gather_backward(frag_tape *tape, frag_node *node, const frag_tensor *in,
                            frag_tensor *out)
{
    out[0] = node->numbers[1] != 0
                 ? frag_tape_view(tape, in[0], node->numbers[0])
                 : frag_tape_empty(tape, node->numbers[0], (frag_dtype)node->numbers[2]);
}

frag_tensor frag_aten_gather_devices(frag_tape *tape, frag_tensor self, const frag_gather *to)
{
    uint64_t count = frag_tape_count(tape, self);
    frag_dtype dtype = frag_tape_dtype(tape, self);
    frag_tensor made = frag_tape_empty(tape, to->is_here ? to->devices * count : 0, dtype);
    frag_node *node = frag_tape_record(tape, gather_backward, &self, 1, &made, 1);
    node->numbers[0] = count;
    node->numbers[1] = to->is_here;
    node->numbers[2] = dtype;
    return made;
}

frag_tensor frag_aten_mean(frag_tape *tape, frag_tensor self)
{
    frag_tensor made = frag_tape_empty(tape, 1, frag_tape_dtype(tape, self));
    frag_node *node = frag_tape_record(tape, frag_aten_resize_backward, &self, 1, &made, 1);
    node->numbers[0] = frag_tape_count(tape, self);
    return made;
}
