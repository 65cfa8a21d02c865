/* Operators that work element by element. Backward functions follow derivatives.yaml: gradients are
 * made in the order of the arguments' names (other before self), temporaries as its formulas have
 * them. */
#include "workload/tape/aten.h"

#include "base/bits.h"
frag_dtype frag_aten_wider(frag_dtype a, frag_dtype b)
{
    if (a == b)
        return a;
    if (a == FRAG_F32 || b == FRAG_F32 || (a <= FRAG_BF16 && b <= FRAG_BF16))
        return FRAG_F32;
    return a <= FRAG_BF16 ? a : b;
}

static frag_tensor like(frag_tape *tape, frag_tensor of)
{
    frag_tensor made = frag_tape_empty_like(tape, of);
    if (frag_tape_is_column(tape, of))
        frag_tape_set_column(tape, made);
    return made;
}

static frag_tensor like_both(frag_tape *tape, frag_tensor a, frag_tensor b)
{
    return frag_tape_empty(tape, frag_larger(frag_tape_count(tape, a), frag_tape_count(tape, b)),
                           frag_aten_wider(frag_tape_dtype(tape, a), frag_tape_dtype(tape, b)));
}

void frag_aten_pass_backward(frag_tape *tape, frag_node *node, const frag_tensor *in,
                             frag_tensor *out)
{
    for (uint32_t i = 0; i < node->edge_count; i++)
        if (node->edges[i].node != 0)
            out[i] = frag_tape_keep(tape, in[0]);
}

void frag_aten_resize_backward(frag_tape *tape, frag_node *node, const frag_tensor *in,
                               frag_tensor *out)
{
    out[0] = frag_tape_empty(tape, node->numbers[0], frag_tape_dtype(tape, in[0]));
}

frag_tensor frag_aten_add(frag_tape *tape, frag_tensor self, frag_tensor other)
{
    frag_tensor made = like_both(tape, self, other);
    frag_tape_record(tape, frag_aten_pass_backward, (frag_tensor[]){self, other}, 2, &made, 1);
    return made;
}

/* Of other its negative. */
static void sub_backward(frag_tape *tape, frag_node *node, const frag_tensor *in, frag_tensor *out)
{
    if (node->edges[1].node != 0)
        out[1] = like(tape, in[0]);
    if (node->edges[0].node != 0)
        out[0] = frag_tape_keep(tape, in[0]);
}

frag_tensor frag_aten_sub(frag_tape *tape, frag_tensor self, frag_tensor other)
{
    frag_tensor made = like_both(tape, self, other);
    frag_tape_record(tape, sub_backward, (frag_tensor[]){self, other}, 2, &made, 1);
    return made;
}

frag_tensor frag_aten_add_in_place(frag_tape *tape, frag_tensor self, frag_tensor other)
{
    frag_tensor made = frag_tape_alias(tape, self, frag_tape_count(tape, self));
    frag_tape_record(tape, frag_aten_pass_backward, (frag_tensor[]){self, other}, 2, &made, 1);
    frag_tape_drop(tape, self);
    return made;
}

frag_tensor frag_aten_add_scalar(frag_tape *tape, frag_tensor self)
{
    frag_tensor made = like(tape, self);
    frag_tape_record(tape, frag_aten_pass_backward, &self, 1, &made, 1);
    return made;
}

/* saved: other, self, where they are needed. */
static void mul_backward(frag_tape *tape, frag_node *node, const frag_tensor *in, frag_tensor *out)
{
    if (node->edges[1].node != 0)
        out[1] = like_both(tape, in[0], node->saved[1]);
    if (node->edges[0].node != 0)
        out[0] = like_both(tape, in[0], node->saved[0]);
}

/* The node that it recorded goes to *node. */
static frag_tensor mul(frag_tape *tape, frag_tensor self, frag_tensor other, frag_node **node)
{
    frag_tensor made = like_both(tape, self, other);
    *node = frag_tape_record(tape, mul_backward, (frag_tensor[]){self, other}, 2, &made, 1);
    frag_tape_save(tape, *node, frag_tape_needs_gradient(tape, self) ? other : 0);
    frag_tape_save(tape, *node, frag_tape_needs_gradient(tape, other) ? self : 0);
    return made;
}

frag_tensor frag_aten_mul(frag_tape *tape, frag_tensor self, frag_tensor other)
{
    frag_node *node = NULL;
    return mul(tape, self, other, &node);
}

/* saved: other, whose conjugates are written out. */
static void mul_complex_backward(frag_tape *tape, frag_node *node, const frag_tensor *in,
                                 frag_tensor *out)
{
    frag_tensor conjugates = like(tape, node->saved[0]);
    out[0] = like(tape, in[0]);
    frag_tape_drop(tape, conjugates);
}

frag_tensor frag_aten_mul_complex(frag_tape *tape, frag_tensor self, frag_tensor other)
{
    frag_tensor made = like(tape, self);
    frag_node *node = frag_tape_record(tape, mul_complex_backward, &self, 1, &made, 1);
    frag_tape_save(tape, node, other);
    return made;
}

frag_tensor frag_aten_scale(frag_tape *tape, frag_tensor numbers, frag_tensor x, bool is_turned)
{
    frag_node *node = NULL;
    frag_tensor made = mul(tape, numbers, x, &node);
    node->is_summed = true;
    node->is_summed_along = is_turned;
    return made;
}

static void scale_backward(frag_tape *tape, frag_node *node, const frag_tensor *in,
                           frag_tensor *out)
{
    (void)node;
    out[0] = like(tape, in[0]);
}

frag_tensor frag_aten_mul_scalar(frag_tape *tape, frag_tensor self)
{
    frag_tensor made = like(tape, self);
    frag_tape_record(tape, scale_backward, &self, 1, &made, 1);
    return made;
}

/* Under autocast the tensor in fp32, as its list of such operators says. */
static frag_tensor in_f32(frag_tape *tape, frag_tensor self)
{
    return frag_tape_autocast(tape) != FRAG_F32 ? frag_tape_to(tape, self, FRAG_F32)
                                                : frag_tape_keep(tape, self);
}

/* One operator on one tensor that saves it, or what was made of it. */
static frag_tensor map(frag_tape *tape, frag_tensor self, frag_backward *backward,
                       bool is_output_saved)
{
    frag_tensor made = like(tape, self);
    frag_node *node = frag_tape_record(tape, backward, &self, 1, &made, 1);
    if (is_output_saved)
        frag_tape_save_output(tape, node, made);
    else
        frag_tape_save(tape, node, self);
    return made;
}

/* grad * (exponent * self.pow(exponent - 1)) */
static void pow_backward(frag_tape *tape, frag_node *node, const frag_tensor *in, frag_tensor *out)
{
    frag_tensor power = like(tape, node->saved[0]);
    frag_tensor scaled = like(tape, power);
    out[0] = like(tape, in[0]);
    frag_tape_drop(tape, scaled);
    frag_tape_drop(tape, power);
}

frag_tensor frag_aten_pow(frag_tape *tape, frag_tensor self)
{
    frag_tensor cast = in_f32(tape, self);
    frag_tensor made = map(tape, cast, pow_backward, false);
    frag_tape_drop(tape, cast);
    return made;
}

/* -0.5 * grad * result.pow(3) */
static void rsqrt_backward(frag_tape *tape, frag_node *node, const frag_tensor *in,
                           frag_tensor *out)
{
    frag_tensor scaled = like(tape, in[0]);
    frag_tensor power = like(tape, node->saved[0]);
    out[0] = like(tape, in[0]);
    frag_tape_drop(tape, power);
    frag_tape_drop(tape, scaled);
}

frag_tensor frag_aten_rsqrt(frag_tape *tape, frag_tensor self)
{
    frag_tensor cast = in_f32(tape, self);
    frag_tensor made = map(tape, cast, rsqrt_backward, true);
    frag_tape_drop(tape, cast);
    return made;
}

frag_tensor frag_aten_tanh(frag_tape *tape, frag_tensor self)
{
    return map(tape, self, scale_backward, true);
}

frag_tensor frag_aten_sigmoid(frag_tape *tape, frag_tensor self)
{
    return map(tape, self, scale_backward, true);
}

frag_tensor frag_aten_gelu(frag_tape *tape, frag_tensor self)
{
    return map(tape, self, scale_backward, false);
}

frag_tensor frag_aten_silu(frag_tape *tape, frag_tensor self)
{
    return map(tape, self, scale_backward, false);
}

frag_tensor frag_aten_relu(frag_tape *tape, frag_tensor self)
{
    return map(tape, self, scale_backward, true);
}

frag_tensor frag_aten_relu_in_place(frag_tape *tape, frag_tensor self)
{
    frag_tensor made = frag_tape_alias(tape, self, frag_tape_count(tape, self));
    frag_node *node = frag_tape_record(tape, scale_backward, &self, 1, &made, 1);
    frag_tape_save_output(tape, node, made);
    frag_tape_drop(tape, self);
    return made;
}

frag_tensor frag_aten_map_in_place(frag_tape *tape, frag_tensor self)
{
    frag_tensor made = frag_tape_alias(tape, self, frag_tape_count(tape, self));
    frag_node *node = frag_tape_record(tape, scale_backward, &self, 1, &made, 1);
    if (frag_tape_needs_gradient(tape, made)) {
        frag_tensor copy = like(tape, self);
        frag_tape_save_made(tape, node, copy);
        frag_tape_drop(tape, copy);
    }
    frag_tape_drop(tape, self);
    return made;
}

frag_tensor frag_aten_hardsigmoid(frag_tape *tape, frag_tensor self)
{
    return map(tape, self, scale_backward, false);
}

frag_tensor frag_aten_exp(frag_tape *tape, frag_tensor self)
{
    return map(tape, self, scale_backward, true);
}

/* where(self == other, gradient / 2, gradient).masked_fill_(self < other, 0), of each of both */
static void minimum_backward(frag_tape *tape, frag_node *node, const frag_tensor *in,
                             frag_tensor *out)
{
    uint64_t count = frag_tape_count(tape, in[0]);
    for (uint32_t i = node->edge_count; i > 0; i--) {
        if (node->edges[i - 1].node == 0)
            continue;
        frag_tensor half = like(tape, in[0]);
        frag_tensor is_equal = frag_tape_empty(tape, count, FRAG_BOOL);
        out[i - 1] = like(tape, in[0]);
        frag_tape_drop(tape, frag_tape_empty(tape, count, FRAG_BOOL));
        frag_tape_drop(tape, is_equal);
        frag_tape_drop(tape, half);
    }
}

frag_tensor frag_aten_minimum(frag_tape *tape, frag_tensor self, frag_tensor other)
{
    frag_tensor made = like_both(tape, self, other);
    frag_node *node =
        frag_tape_record(tape, minimum_backward, (frag_tensor[]){self, other}, 2, &made, 1);
    frag_tape_save(tape, node, other);
    frag_tape_save(tape, node, self);
    return made;
}

/* saved: high, low, self. where(self >= low and self <= high, gradient, 0) */
static void clamp_backward(frag_tape *tape, frag_node *node, const frag_tensor *in,
                           frag_tensor *out)
{
    (void)node;
    uint64_t count = frag_tape_count(tape, in[0]);
    frag_tensor zero = frag_tape_empty(tape, 1, frag_tape_dtype(tape, in[0]));
    frag_tensor is_above = frag_tape_empty(tape, count, FRAG_BOOL);
    frag_tensor is_below = frag_tape_empty(tape, count, FRAG_BOOL);
    out[0] = like(tape, in[0]);
    frag_tape_drop(tape, is_below);
    frag_tape_drop(tape, is_above);
    frag_tape_drop(tape, zero);
}

frag_tensor frag_aten_clamp(frag_tape *tape, frag_tensor self, frag_tensor low, frag_tensor high)
{
    frag_tensor made = like(tape, self);
    frag_node *node = frag_tape_record(tape, clamp_backward, &self, 1, &made, 1);
    frag_tape_save(tape, node, high);
    frag_tape_save(tape, node, low);
    frag_tape_save(tape, node, self);
    return made;
}

static void clamp_one_backward(frag_tape *tape, frag_node *node, const frag_tensor *in,
                               frag_tensor *out)
{
    (void)node;
    frag_tensor zero = frag_tape_empty(tape, 1, frag_tape_dtype(tape, in[0]));
    frag_tensor is_below = frag_tape_empty(tape, frag_tape_count(tape, in[0]), FRAG_BOOL);
    out[0] = like(tape, in[0]);
    frag_tape_drop(tape, is_below);
    frag_tape_drop(tape, zero);
}

frag_tensor frag_aten_clamp_one(frag_tape *tape, frag_tensor self)
{
    return map(tape, self, clamp_one_backward, false);
}

frag_tensor frag_aten_masked_fill(frag_tape *tape, frag_tensor self, frag_tensor mask)
{
    frag_tensor made = like(tape, self);
    frag_node *node = frag_tape_record(tape, scale_backward, &self, 1, &made, 1);
    frag_tape_save(tape, node, mask);
    return made;
}

/* saved: condition. where(condition, gradient, 0) */
static void where_backward(frag_tape *tape, frag_node *node, const frag_tensor *in,
                           frag_tensor *out)
{
    (void)node;
    frag_tensor zero = frag_tape_empty(tape, 1, frag_tape_dtype(tape, in[0]));
    out[0] = like(tape, in[0]);
    frag_tape_drop(tape, zero);
}

frag_tensor frag_aten_where_other(frag_tape *tape, frag_tensor self)
{
    frag_tensor made = like(tape, self);
    frag_tape_record(tape, where_backward, &self, 1, &made, 1);
    return made;
}

frag_tensor frag_aten_where(frag_tape *tape, frag_tensor condition, frag_tensor self)
{
    frag_tensor number = frag_tape_empty(tape, 1, frag_tape_dtype(tape, self));
    frag_tensor made = like(tape, self);
    frag_tape_drop(tape, number);
    frag_node *node = frag_tape_record(tape, where_backward, &self, 1, &made, 1);
    frag_tape_save(tape, node, condition);
    return made;
}

/* native_dropout: a mask of a byte an element is kept. */
frag_tensor frag_aten_dropout(frag_tape *tape, frag_tensor self, bool is_active)
{
    if (!is_active)
        return frag_tape_keep(tape, self);
    frag_tensor mask = frag_tape_empty(tape, frag_tape_count(tape, self), FRAG_BOOL);
    frag_tensor made = like(tape, self);
    frag_node *node = frag_tape_record(tape, scale_backward, &self, 1, &made, 1);
    frag_tape_save_made(tape, node, mask);
    frag_tape_drop(tape, mask);
    return made;
}

/* dropout_: times noise in the type of self, which is kept. */
frag_tensor frag_aten_dropout_in_place(frag_tape *tape, frag_tensor self, bool is_active)
{
    if (!is_active)
        return self;
    frag_tensor noise = like(tape, self);
    frag_tensor made = frag_tape_alias(tape, self, frag_tape_count(tape, self));
    frag_node *node = frag_tape_record(tape, scale_backward, &self, 1, &made, 1);
    frag_tape_save_made(tape, node, noise);
    frag_tape_drop(tape, noise);
    frag_tape_drop(tape, self);
    return made;
}

/* The view's gradient in the place of the whole's (AsStridedBackward), then CopySlices: the whole's
 * gradient is copied, the view's part of it cloned and multiplied. */
static void view_dropout_backward(frag_tape *tape, frag_node *node, const frag_tensor *in,
                                  frag_tensor *out)
{
    (void)node;
    frag_tensor whole = like(tape, in[0]);
    frag_tensor clone = like(tape, in[0]);
    frag_tensor scaled = like(tape, in[0]);
    frag_tape_drop(tape, clone);
    frag_tape_drop(tape, scaled);
    out[0] = whole;
}

frag_tensor frag_aten_dropout_in_view(frag_tape *tape, frag_tensor self, bool is_active)
{
    if (!is_active)
        return self;
    frag_tensor noise = like(tape, self);
    frag_tensor whole = frag_tape_alias(tape, self, frag_tape_count(tape, self));
    frag_node *node = frag_tape_record(tape, view_dropout_backward, &self, 1, &whole, 1);
    frag_tape_save_made(tape, node, noise);
    frag_tape_drop(tape, noise);
    frag_tape_drop(tape, self);
    frag_tensor made = frag_tape_alias(tape, whole, frag_tape_count(tape, whole));
    frag_tape_record(tape, scale_backward, &whole, 1, &made, 1);
    frag_tape_drop(tape, whole);
    return made;
}
