/* Attention whose scores are there as a tensor: transformers' eager_attention_forward, which it
 * takes where scaled_dot_product_attention lacks something that the model has. */
#include "workload/tape/aten.h"

static frag_tensor lay_out(frag_tape *tape, frag_tensor x, bool is_copied)
{
    return is_copied ? frag_aten_contiguous(tape, x) : frag_aten_view(tape, x);
}

frag_tensor frag_aten_matmul(frag_tape *tape, frag_tensor self, frag_tensor other,
                             const frag_matmul *how)
{
    frag_tensor typed_other = frag_tape_cast(tape, other);
    frag_tensor typed_self = frag_tape_cast(tape, self);
    frag_tensor laid_self = lay_out(tape, typed_self, how->is_self_copied);
    bool is_spread = how->is_other_expanded && typed_other == other;
    bool is_copied = how->is_other_copied || is_spread;
    frag_tensor laid_other = lay_out(tape, typed_other, is_copied);
    if (how->is_other_turned && !is_copied)
        frag_tape_set_strided(tape, laid_other);
    if (frag_tape_needs_gradient(tape, laid_self))
        frag_tape_will_save(tape, laid_other);
    frag_tensor made = frag_aten_bmm(tape, laid_self, laid_other, how->count);
    frag_tape_drop(tape, laid_other);
    frag_tape_drop(tape, laid_self);
    frag_tape_drop(tape, typed_self);
    frag_tape_drop(tape, typed_other);
    frag_tensor shaped =
        how->is_gradient_copied ? frag_aten_view_copied(tape, made) : frag_aten_view(tape, made);
    frag_tape_drop(tape, made);
    return shaped;
}

void frag_aten_save_softmax(frag_tape *tape, frag_node *node, frag_tensor scores, frag_tensor made)
{
    if (frag_tape_get_card(tape)->keeps_softmax_input)
        frag_tape_save(tape, node, scores);
    frag_tape_save_output(tape, node, made);
    node->numbers[0] = frag_tape_dtype(tape, scores);
}

/* numbers: the type that went in */
static void softmax_backward(frag_tape *tape, frag_node *node, const frag_tensor *in,
                             frag_tensor *out)
{
    uint64_t count = frag_tape_count(tape, in[0]);
    out[0] = frag_tape_empty(tape, count, (frag_dtype)node->numbers[0]);
    /* gradient times result */
    frag_tape_drop(tape, frag_tape_empty(tape, count, frag_tape_dtype(tape, in[0])));
}

frag_tensor frag_aten_softmax(frag_tape *tape, frag_tensor scores, bool is_cast)
{
    bool is_read = !is_cast && frag_tape_dtype(tape, scores) == FRAG_F16;
    frag_tensor typed =
        is_read ? frag_tape_keep(tape, scores) : frag_tape_to(tape, scores, FRAG_F32);
    frag_tensor made = frag_tape_empty(tape, frag_tape_count(tape, typed), FRAG_F32);
    frag_node *node = frag_tape_record(tape, softmax_backward, &typed, 1, &made, 1);
    frag_aten_save_softmax(tape, node, typed, made);
    frag_tape_drop(tape, typed);
    return made;
}

frag_tensor frag_aten_softmax_typed(frag_tape *tape, frag_tensor scores)
{
    frag_dtype dtype = frag_tape_dtype(tape, scores);
    frag_tensor made = frag_tape_empty(tape, frag_tape_count(tape, scores), dtype);
    frag_node *node = frag_tape_record(tape, softmax_backward, &scores, 1, &made, 1);
    frag_aten_save_softmax(tape, node, scores, made);
    return made;
}

/* saved: places. Zeros, into which the gradient is scattered. */
frag_tensor frag_aten_max_last(frag_tape *tape, frag_tensor x, uint64_t width)
{
    uint64_t rows = frag_tape_count(tape, x) / width;
    frag_tensor made = frag_tape_empty(tape, rows, frag_tape_dtype(tape, x));
    frag_tensor places = frag_tape_empty(tape, rows, FRAG_I64);
    frag_tape_set_column(tape, made);
    frag_node *node = frag_tape_record(tape, frag_aten_resize_backward, &x, 1, &made, 1);
    frag_tape_save_made(tape, node, places);
    node->numbers[0] = frag_tape_count(tape, x);
    frag_tape_drop(tape, places);
    return made;
}

/* Behind the scores stands each head's own one, of which nothing is left. combined: scores and
 * shares with it, which the caller gives back. */
static frag_tensor share_with_sinks(frag_tape *tape, frag_tensor scores,
                                    const frag_eager_attention *how, frag_tensor combined[2])
{
    const frag_attention_shape *shape = &how->shape;
    uint64_t rows = shape->batch * shape->heads * shape->queries;
    frag_tensor shaped = frag_aten_view(tape, how->sinks);
    frag_tensor sinks = frag_aten_expand(tape, shaped, rows);
    frag_tape_drop(tape, shaped);
    frag_dtype wide =
        frag_aten_wider(frag_tape_dtype(tape, scores), frag_tape_dtype(tape, how->sinks));
    combined[0] = frag_aten_cat(tape, scores, sinks, wide);
    frag_tape_drop(tape, sinks);
    frag_tensor largest = frag_aten_max_last(tape, combined[0], shape->keys + 1);
    frag_tape_set(tape, &combined[0], frag_aten_sub(tape, combined[0], largest));
    frag_tape_drop(tape, largest);
    combined[1] = frag_aten_softmax_typed(tape, combined[0]);
    frag_tensor made = frag_aten_slice(tape, combined[1], rows * shape->keys);
    frag_tape_set_strided(tape, made);
    return made;
}

static frag_tensor share(frag_tape *tape, frag_tensor scores, frag_eager_softmax how)
{
    bool is_wide = how == FRAG_EAGER_WIDE || frag_tape_autocast(tape) != FRAG_F32;
    return is_wide ? frag_aten_softmax(tape, scores, false) : frag_aten_softmax_typed(tape, scores);
}

/* value: the type of what is read by the scores. */
static frag_tensor score(frag_tape *tape, frag_tensor query, frag_tensor key, frag_dtype value,
                         const frag_eager_attention *how, frag_tensor combined[2])
{
    const frag_attention_shape *shape = &how->shape;
    bool is_apart = shape->batch > 1 && shape->heads > 1; /* tokens lie between the two */
    bool is_grouped = shape->heads != shape->key_heads;
    const frag_matmul product = {
        .count = shape->batch * shape->heads * shape->queries * shape->keys,
        .is_self_copied =
            is_apart && (shape->queries > 1 || how->is_part) && !shape->is_heads_first,
        .is_other_copied =
            is_apart && shape->keys > 1 && !is_grouped && !how->is_cached && !shape->is_heads_first,
        .is_other_expanded = is_apart && is_grouped && shape->key_heads == 1,
        .is_other_turned = shape->keys > 1,
    };
    frag_tensor made = frag_aten_matmul(tape, query, key, &product);
    frag_tape_set(tape, &made, frag_aten_mul_scalar(tape, made));
    if (how->has_cap) {
        frag_tape_set(tape, &made, frag_aten_mul_scalar(tape, made));
        frag_tape_set(tape, &made, frag_aten_tanh(tape, made));
        frag_tape_set(tape, &made, frag_aten_mul_scalar(tape, made));
    }
    if (how->mask != 0)
        frag_tape_set(tape, &made, frag_aten_add(tape, made, how->mask));
    if (how->sinks != 0) {
        frag_tensor shares = share_with_sinks(tape, made, how, combined);
        frag_tape_set(tape, &made, frag_tape_to(tape, shares, value));
        frag_tape_drop(tape, shares);
        return made;
    }
    frag_tensor shares = share(tape, made, how->softmax);
    if (how->softmax == FRAG_EAGER_WIDE) /* of one statement, to the end of which scores stay */
        frag_tape_set(tape, &shares, frag_tape_to(tape, shares, frag_tape_dtype(tape, query)));
    frag_tape_set(tape, &made, shares);
    if (how->softmax == FRAG_EAGER_OWN_BACK)
        frag_tape_set(tape, &made, frag_tape_to(tape, made, value));
    frag_tape_set(tape, &made, frag_aten_dropout(tape, made, shape->has_dropout));
    return made;
}

frag_tensor frag_aten_eager_attention(frag_tape *tape, const frag_tensor qkv[3],
                                      const frag_eager_attention *how, frag_tensor *weights)
{
    const frag_attention_shape *shape = &how->shape;
    bool is_apart = shape->batch > 1 && shape->heads > 1;
    bool is_grouped = shape->heads != shape->key_heads;
    frag_tensor key = frag_aten_repeat_keys(tape, qkv[1], shape);
    frag_tensor value = frag_aten_repeat_keys(tape, qkv[2], shape);
    frag_tensor combined[2] = {0, 0};
    *weights = score(tape, qkv[0], key, frag_tape_dtype(tape, value), how, combined);
    const frag_matmul product = {
        .count = shape->batch * shape->heads * shape->queries * shape->width,
        .is_other_copied = is_apart && shape->keys > 1 && !is_grouped && !how->is_cached,
        .is_other_expanded = is_apart && is_grouped && shape->key_heads == 1,
        .is_gradient_copied = is_apart && shape->queries > 1,
    };
    frag_tensor made = frag_aten_matmul(tape, *weights, value, &product);
    if (shape->queries > 1 && shape->heads > 1) /* transpose(1, 2).contiguous() */
        frag_tape_set(tape, &made, frag_aten_contiguous(tape, made));
    frag_tape_drop(tape, key);
    frag_tape_drop(tape, value);
    frag_tape_drop(tape, combined[0]);
    frag_tape_drop(tape, combined[1]);
    return made;
}

/* Numbers of sequences, heads, queries and keys, each from 0 on. */
enum { NUMBERS = 4 };

static void count_places(frag_tape *tape, const frag_attention_shape *shape, frag_tensor *made)
{
    const uint64_t counts[NUMBERS] = {shape->batch, 1, shape->queries, shape->keys};
    for (uint32_t i = 0; i < NUMBERS; i++) {
        made[i] = frag_tape_empty(tape, counts[i], FRAG_I64);
        if (i >= 2) /* + offset */
            frag_tape_set(tape, &made[i], frag_tape_empty(tape, counts[i], FRAG_I64));
    }
}

/* Is a key within the window of a query? */
static frag_tensor is_within(frag_tape *tape, const frag_attention_shape *shape)
{
    uint64_t count = shape->queries * shape->keys;
    frag_tensor all = frag_tape_empty(tape, 1, FRAG_BOOL);
    frag_tensor first = frag_tape_empty(tape, shape->queries, FRAG_I64);
    frag_tensor is_later = frag_tape_empty(tape, count, FRAG_BOOL);
    frag_tape_drop(tape, first);
    frag_tensor made = frag_tape_empty(tape, count, FRAG_BOOL);
    frag_tape_drop(tape, is_later);
    frag_tape_drop(tape, all);
    return made;
}

frag_tensor frag_aten_seen(frag_tape *tape, const frag_attention_shape *shape, bool has_window)
{
    uint64_t count = shape->queries * shape->keys;
    frag_tensor numbers[NUMBERS];
    count_places(tape, shape, numbers);
    frag_tensor within = has_window ? is_within(tape, shape) : 0;
    frag_tensor made = frag_tape_empty(tape, count, FRAG_BOOL);
    if (has_window)
        frag_tape_set(tape, &made, frag_tape_empty(tape, count, FRAG_BOOL));
    frag_tape_drop(tape, within);
    frag_tape_drop_all(tape, numbers, NUMBERS);
    return made;
}

/* abs(queries - keys) <= distance, and what holds of every query. */
frag_tensor frag_aten_seen_near(frag_tape *tape, const frag_attention_shape *shape)
{
    uint64_t count = shape->queries * shape->keys;
    frag_tensor numbers[NUMBERS];
    count_places(tape, shape, numbers);
    frag_tensor all = frag_tape_empty(tape, 1, FRAG_BOOL);
    frag_tensor distance = frag_tape_empty(tape, count, FRAG_I64);
    frag_tape_set(tape, &distance, frag_tape_empty(tape, count, FRAG_I64));
    frag_tensor is_near = frag_tape_empty(tape, count, FRAG_BOOL);
    frag_tape_drop(tape, distance);
    frag_tensor made = frag_tape_empty(tape, count, FRAG_BOOL);
    frag_tape_drop(tape, is_near);
    frag_tape_drop(tape, all);
    frag_tensor is_any = frag_tape_empty(tape, shape->queries, FRAG_BOOL);
    frag_tape_set(tape, &made, frag_tape_empty(tape, count, FRAG_BOOL));
    frag_tape_drop(tape, is_any);
    frag_tape_drop_all(tape, numbers, NUMBERS);
    return made;
}

frag_tensor frag_aten_where_seen(frag_tape *tape, const frag_attention_shape *shape,
                                 frag_dtype dtype)
{
    uint64_t tokens = shape->is_packed ? 1 : shape->queries;
    frag_tensor zero = frag_tape_empty(tape, 1, dtype);
    frag_tensor lowest = frag_tape_empty(tape, 1, dtype);
    frag_tensor made = frag_tape_empty(tape, shape->batch * tokens * shape->keys, dtype);
    frag_tape_drop(tape, lowest);
    frag_tape_drop(tape, zero);
    return made;
}

frag_tensor frag_aten_causal_mask(frag_tape *tape, const frag_attention_shape *shape,
                                  bool has_window, frag_dtype dtype)
{
    frag_tensor seen = frag_aten_seen(tape, shape, has_window);
    frag_tensor made = frag_aten_where_seen(tape, shape, dtype);
    frag_tape_drop(tape, seen);
    return made;
}
