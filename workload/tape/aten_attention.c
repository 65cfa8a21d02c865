/* scaled_dot_product_attention and its kernels: which is chosen, what each keeps. */
#include "workload/tape/aten.h"

#include "base/bits.h"
/* numbers: batch, heads, key_heads, queries, keys, width, is_heads_first, value_width */
static void set_shape(frag_node *node, const frag_attention_shape *shape)
{
    const uint64_t numbers[] = {shape->batch,
                                shape->heads,
                                shape->key_heads,
                                shape->queries,
                                shape->keys,
                                shape->width,
                                shape->is_heads_first | (uint64_t)shape->has_dropout << 1 |
                                    (uint64_t)shape->is_gradient_cut << 2,
                                shape->value_width};
    for (uint32_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        node->numbers[i] = numbers[i];
}

static frag_attention_shape get_shape(const frag_node *node)
{
    const uint64_t *of = node->numbers;
    return (frag_attention_shape){.batch = of[0],
                                  .heads = of[1],
                                  .key_heads = of[2],
                                  .queries = of[3],
                                  .keys = of[4],
                                  .width = of[5],
                                  .is_heads_first = (of[6] & 1) != 0,
                                  .has_dropout = (of[6] & 2) != 0,
                                  .is_gradient_cut = (of[6] & 4) != 0,
                                  .value_width = of[7]};
}

static uint64_t value_width(const frag_attention_shape *shape)
{
    return shape->value_width > 0 ? shape->value_width : shape->width;
}

/* Of what attention makes of values. */
static uint64_t made_count(const frag_attention_shape *shape)
{
    return shape->batch * shape->heads * shape->queries * value_width(shape);
}

static uint64_t value_count(const frag_attention_shape *shape)
{
    return shape->batch * shape->key_heads * shape->keys * value_width(shape);
}

static uint64_t query_count(const frag_attention_shape *shape)
{
    return shape->batch * shape->heads * shape->queries * shape->width;
}

static uint64_t key_count(const frag_attention_shape *shape)
{
    return shape->batch * shape->key_heads * shape->keys * shape->width;
}

static void save_qkv(frag_tape *tape, frag_node *node, const frag_tensor qkv[3])
{
    frag_tape_save(tape, node, qkv[1]);
    frag_tape_save(tape, node, qkv[0]);
    frag_tape_save(tape, node, qkv[2]);
}

static bool want_gradient(const frag_tape *tape, const frag_tensor qkv[3])
{
    return frag_tape_needs_gradient(tape, qkv[0]) || frag_tape_needs_gradient(tape, qkv[1]) ||
           frag_tape_needs_gradient(tape, qkv[2]);
}

/* In the order of their names: the mask (0: none), then as save_qkv. */
static void will_save_inputs(frag_tape *tape, frag_tensor mask, const frag_tensor qkv[3])
{
    const frag_tensor inputs[] = {mask, qkv[1], qkv[0], qkv[2]};
    for (size_t i = 0; i < sizeof inputs / sizeof *inputs && want_gradient(tape, qkv); i++)
        if (inputs[i] != 0)
            frag_tape_will_save(tape, inputs[i]);
}

/* A copy of the gradient that a kernel reads, while it runs; 0: it reads what came. */
static frag_tensor lay_gradient(frag_tape *tape, const frag_attention_shape *shape, frag_tensor in)
{
    return shape->is_gradient_cut ? frag_tape_empty_like(tape, in) : 0;
}

/* ---- flash (FlashAttention 2, for half types) */
static uint64_t round_width(uint64_t width)
{
    return width <= 192 ? frag_round_up(width, 32) : 256;
}

static void flash_backward(frag_tape *tape, frag_node *node, const frag_tensor *in,
                           frag_tensor *out)
{
    frag_attention_shape shape = get_shape(node);
    frag_dtype dtype = frag_tape_dtype(tape, in[0]);
    uint64_t queries = frag_round_up(shape.queries, 128);
    uint64_t width = round_width(shape.width);
    uint64_t rows = shape.batch * shape.heads * queries;
    frag_tensor laid = lay_gradient(tape, &shape, in[0]);
    /* The kernel reads its output with tokens first. */
    bool is_turned = (shape.is_heads_first && shape.heads > 1) ||
                     node->host_counts[0] > 0; /* as it comes back */
    frag_tensor turned = is_turned ? frag_tape_empty(tape, query_count(&shape), dtype) : 0;
    out[0] = frag_tape_empty(tape, query_count(&shape), dtype);
    out[1] = frag_tape_empty(tape, key_count(&shape), dtype);
    out[2] = frag_tape_empty(tape, key_count(&shape), dtype);
    frag_tensor sums = frag_tape_empty(tape, rows, FRAG_F32);
    frag_tensor partial = frag_tape_empty(tape, rows * width, FRAG_F32);
    frag_tensor expanded[2] = {0, 0};
    if (shape.key_heads != shape.heads)
        for (uint32_t i = 0; i < 2; i++)
            expanded[i] =
                frag_tape_empty(tape, shape.batch * shape.heads * shape.keys * shape.width, dtype);
    frag_tape_drop(tape, expanded[1]);
    frag_tape_drop(tape, expanded[0]);
    frag_tape_drop(tape, partial);
    frag_tape_drop(tape, sums);
    frag_tape_drop(tape, turned);
    frag_tape_drop(tape, laid);
}

/* In how many parts the keys are cut so that small problems fill the card (num_splits_heuristic of
 * FlashAttention): the fewest that come within 85 % of the best share of full waves. */
static uint64_t count_splits(const frag_tape *tape, const frag_attention_shape *shape)
{
    uint64_t processors = 2 * (uint64_t)frag_tape_get_card(tape)->multiprocessors;
    uint64_t block = shape->width <= 64 ? 256 : shape->width <= 128 ? 128 : 64;
    uint64_t key_blocks = (shape->keys + block - 1) / block;
    /* One query for several heads of a key: the heads are taken as queries. */
    bool is_swapped = shape->queries == 1 && shape->heads > shape->key_heads;
    uint64_t heads = is_swapped ? shape->key_heads : shape->heads;
    uint64_t queries = is_swapped ? shape->heads / shape->key_heads : shape->queries;
    uint64_t work = shape->batch * heads * ((queries + 63) / 64);
    if (shape->has_dropout || (float)work >= 0.8f * (float)processors)
        return 1;
    uint64_t most = key_blocks < 128 ? key_blocks : 128;
    most = most < processors ? most : processors;
    float efficiency[129] = {0};
    float best = 0;
    for (uint64_t i = 1; i <= most; i++) {
        if (i > 1 && (key_blocks + i - 1) / i == (key_blocks + i - 2) / (i - 1))
            continue; /* no shorter parts than with one less */
        float waves = (float)(work * i) / (float)processors;
        uint64_t whole = (work * i + processors - 1) / processors;
        efficiency[i] = waves / (float)whole;
        best = efficiency[i] > best ? efficiency[i] : best;
    }
    for (uint64_t i = 1; i <= most; i++)
        if (efficiency[i] > 0 && (double)efficiency[i] >= 0.85 * (double)best)
            return i;
    return 1;
}

static frag_tensor flash(frag_tape *tape, const frag_tensor qkv[3],
                         const frag_attention_shape *shape)
{
    will_save_inputs(tape, 0, qkv);
    frag_tensor made = frag_tape_product(tape, query_count(shape), frag_tape_dtype(tape, qkv[0]));
    frag_tensor sums =
        frag_tape_product(tape, shape->batch * shape->heads * shape->queries, FRAG_F32);
    uint64_t rows = shape->batch * shape->heads * shape->queries;
    uint64_t splits = count_splits(tape, shape);
    frag_tensor parts[2] = {0, 0};
    if (splits > 1) {
        parts[0] = frag_tape_scratch(tape, splits * rows, FRAG_F32);
        parts[1] = frag_tape_scratch(tape, splits * rows * round_width(shape->width), FRAG_F32);
    }
    frag_tensor state[2];
    state[0] = (shape->has_dropout ? frag_tape_scratch : frag_tape_product)(tape, 2, FRAG_I64);
    state[1] = frag_tape_product(tape, 1, FRAG_I64);
    if (shape->has_dropout) /* the state of the random numbers is made anew */
        frag_tape_set(tape, &state[0], frag_tape_product(tape, 2, FRAG_I64));
    if (!shape->is_heads_first && shape->heads > 1)
        frag_tape_set_strided(tape, made);
    frag_node *node = frag_tape_record(tape, flash_backward, qkv, 3, &made, 1);
    save_qkv(tape, node, qkv);
    frag_tape_save_made(tape, node, sums);
    frag_tape_save_output(tape, node, made);
    frag_tape_save_made(tape, node, state[0]);
    frag_tape_save_made(tape, node, state[1]);
    set_shape(node, shape);
    frag_tape_drop(tape, sums);
    frag_tape_drop(tape, state[0]);
    frag_tape_drop(tape, state[1]);
    frag_tape_drop(tape, parts[0]);
    frag_tape_drop(tape, parts[1]);
    return made;
}

/* ---- memory-efficient (CUTLASS) */
enum { MASK_STEP = 8, MASK_GRADIENT_STEP = 16 };

/* The sum over each row of gradient times output; for half types the kernel makes it, else it is
 * made before, and turned around. */
static frag_tensor make_delta(frag_tape *tape, const frag_attention_shape *shape, frag_dtype dtype)
{
    uint64_t rows = shape->batch * shape->heads * shape->queries;
    if (dtype != FRAG_F32)
        return frag_tape_empty(tape, rows, FRAG_F32);
    frag_tensor product = frag_tape_empty(tape, made_count(shape), FRAG_F32);
    frag_tensor sums = frag_tape_empty(tape, rows, FRAG_F32);
    bool is_apart = shape->heads > 1 && shape->queries > 1;
    frag_tensor turned =
        is_apart ? frag_tape_empty(tape, rows, FRAG_F32) : frag_tape_keep(tape, sums);
    frag_tape_drop(tape, sums);
    frag_tape_drop(tape, product);
    return turned;
}

/* Of each sequence; its rows begin at multiples of 16. */
static frag_tensor mask_gradient(frag_tape *tape, const frag_attention_shape *shape,
                                 frag_dtype dtype)
{
    uint64_t rows = shape->batch * shape->heads * shape->queries;
    bool has_gaps = shape->keys % MASK_GRADIENT_STEP != 0;
    frag_tensor whole =
        frag_tape_empty(tape, rows * frag_round_up(shape->keys, MASK_GRADIENT_STEP), dtype);
    /* With gaps nothing is added to it in place, as if somebody else held it. */
    frag_tensor made = has_gaps ? frag_tape_view(tape, whole, rows * shape->keys)
                                : frag_tape_alias(tape, whole, rows * shape->keys);
    frag_tape_drop(tape, whole);
    return made;
}

/* preprocess_mask: rows begin at multiples of 8, and each sequence has the same. */
static frag_tensor spread_mask(frag_tape *tape, const frag_attention_shape *shape)
{
    uint64_t rows = shape->heads * shape->queries;
    frag_tensor laid =
        shape->keys % MASK_STEP != 0
            ? frag_aten_pad(tape, shape->mask, rows * frag_round_up(shape->keys, MASK_STEP))
            : frag_tape_keep(tape, shape->mask);
    frag_tensor made = frag_aten_expand(tape, laid, shape->batch * rows * shape->keys);
    if (shape->keys % MASK_STEP != 0)
        frag_tape_set_strided(tape, made);
    frag_tape_drop(tape, laid);
    return made;
}

/* convert_boolean_attn_mask, and preprocess_mask for all heads alike. */
static frag_tensor mask_unseen(frag_tape *tape, const frag_attention_shape *shape, frag_dtype dtype)
{
    uint64_t rows = shape->batch * (shape->is_packed ? 1 : shape->queries);
    frag_tensor made = frag_aten_where_seen(tape, shape, dtype);
    if (shape->keys % MASK_STEP != 0)
        frag_tape_set(tape, &made,
                      frag_aten_pad(tape, made, rows * frag_round_up(shape->keys, MASK_STEP)));
    if (shape->heads > 1)
        frag_tape_set(tape, &made, frag_aten_expand(tape, made, rows * shape->heads * shape->keys));
    if (shape->keys % MASK_STEP != 0)
        frag_tape_set_strided(tape, made);
    return made;
}

/* A kernel of mem_eff_attention/kernels/cutlassB.h: sums of the gradient of queries that several
 * blocks of keys add to are in tiles with a lock each; where a head is too wide for registers,
 * sums of the gradients of keys and values are beside them. */
typedef struct backward_kernel {
    uint64_t rows;
    uint64_t columns;
    bool keeps_key_sums;
} backward_kernel;

/* The first one whose shared memory the card has. One of heads up to 96 wide is for two cards and
 * no dropout. */
static backward_kernel find_kernel(const frag_tape_card *card, uint64_t width, bool is_half,
                                   bool has_dropout)
{
    bool is_large = card->capability == 80 || card->capability == 90 || card->capability / 10 == 10;
    if (width <= 64 || (!is_half && !is_large))
        return (backward_kernel){64, 64, false};
    if (!is_half)
        return (backward_kernel){128, 64, false};
    if (width > 128)
        return (backward_kernel){128, 64, true};
    if (is_large)
        return (backward_kernel){128, 128, false};
    bool is_narrow =
        width <= 96 && !has_dropout && (card->capability == 86 || card->capability == 89);
    return card->capability < 80 || is_narrow ? (backward_kernel){128, 64, false}
                                              : (backward_kernel){64, 64, true};
}

static uint64_t widest(const frag_attention_shape *shape)
{
    return value_width(shape) > shape->width ? value_width(shape) : shape->width;
}

enum { KEYS = 64, SPLITS_MAX = 200 };

/* Keys are split among blocks, each with sums of its own; for fewer where those take much room. */
static uint64_t count_backward_bytes(const frag_attention_shape *shape,
                                     const backward_kernel *kernel)
{
    uint64_t heads = shape->batch * shape->heads;
    uint64_t tiles = frag_round_up(shape->queries, kernel->rows) / kernel->rows *
                     (frag_round_up(shape->width, kernel->columns) / kernel->columns);
    uint64_t bytes = tiles * (kernel->rows * kernel->columns * sizeof(float) + 16);
    uint64_t splits = frag_round_up(shape->keys, KEYS) / KEYS;
    if (splits > SPLITS_MAX / heads)
        splits = SPLITS_MAX / heads > 1 ? SPLITS_MAX / heads : 1;
    if (kernel->keeps_key_sums)
        bytes += splits * KEYS * sizeof(float) *
                 (frag_round_up(shape->width, kernel->rows) +
                  frag_round_up(value_width(shape), kernel->rows));
    return heads * bytes;
}

static void efficient_backward(frag_tape *tape, frag_node *node, const frag_tensor *in,
                               frag_tensor *out)
{
    frag_attention_shape shape = get_shape(node);
    frag_dtype dtype = frag_tape_dtype(tape, in[0]);
    frag_tensor laid = lay_gradient(tape, &shape, in[0]);
    out[0] = frag_tape_empty(tape, query_count(&shape), dtype);
    out[1] = frag_tape_empty(tape, key_count(&shape), dtype);
    out[2] = frag_tape_empty(tape, value_count(&shape), dtype);
    if (node->edges[3].node != 0)
        out[3] = mask_gradient(tape, &shape, dtype);
    frag_tensor delta = make_delta(tape, &shape, dtype);
    const backward_kernel kernel =
        find_kernel(frag_tape_get_card(tape), widest(&shape), dtype != FRAG_F32, shape.has_dropout);
    frag_tensor workspace = frag_tape_empty(tape, count_backward_bytes(&shape, &kernel), FRAG_BOOL);
    frag_tape_drop(tape, delta);
    frag_tape_drop(tape, workspace);
    frag_tape_drop(tape, laid);
}

static frag_tensor efficient(frag_tape *tape, const frag_tensor qkv[3],
                             const frag_attention_shape *shape)
{
    bool is_saved = frag_tape_is_recording(tape) && want_gradient(tape, qkv);
    frag_dtype dtype = frag_tape_dtype(tape, qkv[0]);
    frag_tensor mask = shape->mask != 0   ? spread_mask(tape, shape)
                       : shape->seen != 0 ? mask_unseen(tape, shape, dtype)
                                          : 0;
    will_save_inputs(tape, mask, qkv);
    frag_tensor made = frag_tape_product(tape, made_count(shape), dtype);
    frag_tensor sums = frag_tape_product(
        tape, is_saved ? shape->batch * shape->heads * frag_round_up(shape->queries, 32) : 0,
        FRAG_F32);
    if (widest(shape) > 128 && dtype != FRAG_F32) /* too wide for registers: sums in fp32 */
        frag_tape_drop(tape, frag_tape_scratch(tape, made_count(shape), FRAG_F32));
    if (shape->heads > 1)
        frag_tape_set_strided(tape, made);
    frag_node *node = frag_tape_record(tape, efficient_backward,
                                       (frag_tensor[]){qkv[0], qkv[1], qkv[2], mask}, 4, &made, 1);
    frag_tape_save(tape, node, mask);
    save_qkv(tape, node, qkv);
    frag_tape_save_made(tape, node, sums);
    frag_tape_save_output(tape, node, made);
    set_shape(node, shape);
    frag_tape_drop(tape, mask);
    frag_tape_drop(tape, sums);
    return made;
}

/* ---- math: separate operators, where no kernel takes the inputs */
/* repeat_interleave of key heads; the gradient is summed over the repeats by the engine. */
static void repeat_backward(frag_tape *tape, frag_node *node, const frag_tensor *in,
                            frag_tensor *out)
{
    (void)tape;
    (void)node;
    out[0] = frag_tape_keep(tape, in[0]);
}

frag_tensor frag_aten_repeat_heads(frag_tape *tape, frag_tensor x,
                                   const frag_attention_shape *shape)
{
    if (shape->heads == shape->key_heads)
        return frag_tape_keep(tape, x);
    uint64_t count = shape->batch * shape->heads * shape->keys * shape->width;
    frag_tensor made = frag_tape_empty(tape, count, frag_tape_dtype(tape, x));
    frag_tape_record(tape, repeat_backward, &x, 1, &made, 1);
    return made;
}

frag_tensor frag_aten_repeat_keys(frag_tape *tape, frag_tensor x, const frag_attention_shape *shape)
{
    uint64_t count = shape->batch * shape->heads * shape->keys * shape->width;
    return shape->key_heads == 1 && shape->heads > 1 ? frag_aten_expand(tape, x, count)
                                                     : frag_aten_repeat_heads(tape, x, shape);
}

/* ones(L, S).tril() as numbers to add: where() with two scalars. */
static frag_tensor make_causal_mask(frag_tape *tape, const frag_attention_shape *shape)
{
    uint64_t count = shape->queries * shape->keys;
    frag_tensor ones = frag_tape_empty(tape, count, FRAG_BOOL);
    frag_tensor lower = frag_tape_empty(tape, count, FRAG_BOOL);
    frag_tape_drop(tape, ones);
    frag_tensor scalars[2] = {frag_tape_empty(tape, 1, FRAG_F32),
                              frag_tape_empty(tape, 1, FRAG_F32)};
    frag_tensor mask = frag_tape_empty(tape, count, FRAG_F32);
    frag_tape_drop(tape, scalars[1]);
    frag_tape_drop(tape, scalars[0]);
    frag_tape_drop(tape, lower);
    return mask;
}

static void softmax_backward(frag_tape *tape, frag_node *node, const frag_tensor *in,
                             frag_tensor *out)
{
    (void)node;
    out[0] = frag_tape_empty(tape, frag_tape_count(tape, in[0]), FRAG_F32);
    frag_tape_drop(tape, frag_tape_empty(tape, frag_tape_count(tape, in[0]), FRAG_F32));
}

/* _safe_softmax: rows in which everything is masked become zeros. */
static frag_tensor safe_softmax(frag_tape *tape, frag_tensor scores, uint64_t rows)
{
    uint64_t count = frag_tape_count(tape, scores);
    frag_tensor made = frag_tape_empty(tape, count, FRAG_F32);
    frag_tensor is_masked = frag_tape_empty(tape, count, FRAG_BOOL);
    frag_tensor all_masked = frag_tape_empty(tape, rows, FRAG_BOOL);
    frag_tape_drop(tape, frag_tape_empty(tape, 1, FRAG_F32));
    frag_tape_drop(tape, all_masked);
    frag_tape_drop(tape, is_masked);
    frag_node *node = frag_tape_record(tape, softmax_backward, &scores, 1, &made, 1);
    frag_tape_save_output(tape, node, made);
    return made;
}

/* Do keys and values lie with heads before tokens: out of a cache, repeated, or put together? */
static bool are_keys_laid(const frag_attention_shape *shape)
{
    return shape->is_cached || shape->is_heads_first || shape->heads != shape->key_heads;
}

/* reshape to one matrix for each head of each sequence: several sequences with tokens before heads
 * must be copied. */
static frag_tensor lay_heads(frag_tape *tape, frag_tensor x, const frag_attention_shape *shape,
                             bool is_heads_first, uint64_t tokens)
{
    bool is_copied = shape->batch > 1 && tokens > 1 && !is_heads_first;
    return is_copied ? frag_aten_contiguous(tape, x) : frag_aten_view(tape, x);
}

/* Keys, or values, for products: one head that all share is expanded, and copied for several
 * sequences. */
static frag_tensor lay_keys(frag_tape *tape, frag_tensor x, const frag_attention_shape *shape,
                            bool is_laid)
{
    if (!shape->is_shared)
        return lay_heads(tape, x, shape, is_laid, shape->keys);
    frag_tensor spread = frag_aten_expand(tape, x, frag_tape_count(tape, x) * shape->heads);
    frag_tensor made =
        shape->batch > 1 ? frag_aten_contiguous(tape, spread) : frag_aten_view(tape, spread);
    frag_tape_drop(tape, spread);
    return made;
}

static frag_tensor repeat_unless_shared(frag_tape *tape, frag_tensor x,
                                        const frag_attention_shape *shape)
{
    return shape->is_shared ? frag_tape_keep(tape, x) : frag_aten_repeat_heads(tape, x, shape);
}

/* The product in the type of the inputs; the scores are handed out in it too, and nobody takes
 * them. */
static frag_tensor weigh(frag_tape *tape, frag_tensor scores, frag_tensor value,
                         const frag_attention_shape *shape, frag_dtype dtype)
{
    uint64_t count = made_count(shape);
    frag_tensor typed = frag_tape_to(tape, scores, dtype);
    /* Values of another width than keys are a part of what both were made of, tokens first. */
    bool is_apart = shape->is_value_apart && !shape->is_cached && shape->heads == shape->key_heads;
    bool is_laid =
        are_keys_laid(shape) && ((shape->value_width == 0 && !is_apart) || shape->heads == 1);
    frag_tensor laid = lay_keys(tape, value, shape, is_laid);
    frag_tensor made = frag_aten_bmm(tape, scores, laid, count);
    frag_tape_drop(tape, laid);
    /* With several sequences the gradient must be copied to be seen as matrices. */
    frag_tape_set(tape, &made,
                  shape->batch > 1 ? frag_aten_view_copied(tape, made)
                                   : frag_aten_view(tape, made));
    frag_tape_set(tape, &made, frag_tape_to(tape, made, dtype));
    frag_tape_drop(tape, typed);
    return made;
}

static frag_tensor multiply_scores(frag_tape *tape, const frag_tensor qkv[3],
                                   const frag_attention_shape *shape, frag_dtype dtype)
{
    frag_tensor query = frag_aten_mul_scalar(tape, qkv[0]);
    frag_tensor mask = shape->is_causal ? make_causal_mask(tape, shape) : 0;
    frag_tensor key = repeat_unless_shared(tape, qkv[1], shape);
    frag_tensor value = repeat_unless_shared(tape, qkv[2], shape);
    frag_tensor scaled = frag_aten_mul_scalar(tape, key);
    uint64_t rows = shape->batch * shape->heads * shape->queries;
    frag_tensor laid = lay_heads(tape, query, shape, shape->is_heads_first, shape->queries);
    frag_tensor turned = lay_keys(tape, scaled, shape, are_keys_laid(shape));
    frag_tape_set_strided(tape, turned); /* .transpose(-2, -1) */
    if (frag_tape_needs_gradient(tape, laid))
        frag_tape_will_save(tape, turned);
    frag_tensor scores = frag_aten_bmm(tape, laid, turned, rows * shape->keys);
    frag_tape_drop(tape, turned);
    frag_tape_drop(tape, laid);
    frag_tape_drop(tape, scaled);
    bool has_mask = shape->is_causal || shape->seen != 0 || shape->mask != 0;
    if (has_mask && frag_tape_is_selecting(tape)) /* else in place */
        frag_tape_set(tape, &scores, frag_aten_add_scalar(tape, scores));
    frag_tape_set(tape, &scores, safe_softmax(tape, scores, rows));
    frag_tape_set(tape, &scores, frag_aten_dropout(tape, scores, shape->has_dropout));
    frag_tensor made = weigh(tape, scores, value, shape, dtype);
    frag_tape_drop(tape, scores);
    frag_tape_drop(tape, value);
    frag_tape_drop(tape, key);
    frag_tape_drop(tape, query);
    frag_tape_drop(tape, mask);
    return made;
}

/* Half types are widened; what comes out has heads before tokens. */
static frag_tensor math(frag_tape *tape, const frag_tensor qkv[3],
                        const frag_attention_shape *shape)
{
    frag_dtype dtype = frag_tape_dtype(tape, qkv[0]);
    frag_tensor mask = shape->seen != 0 ? frag_aten_where_seen(tape, shape, dtype) : 0;
    frag_tensor wide[3];
    for (uint32_t i = 0; i < 3; i++)
        wide[i] = frag_tape_to(tape, qkv[i], FRAG_F32);
    frag_tensor made = multiply_scores(tape, wide, shape, dtype);
    frag_tape_drop_all(tape, wide, 3);
    frag_tape_drop(tape, mask);
    return made;
}

static frag_dtype type_of_inputs(const frag_tape *tape, frag_dtype dtype)
{
    return frag_tape_autocast(tape) != FRAG_F32 ? frag_tape_autocast(tape) : dtype;
}

bool frag_aten_is_flash(const frag_tape *tape, frag_dtype dtype)
{
    return frag_tape_kernel(tape) <= FRAG_KERNEL_FLASH && type_of_inputs(tape, dtype) != FRAG_F32 &&
           frag_tape_get_card(tape)->capability >= 80;
}

bool frag_aten_is_unknown(const frag_tape *tape, frag_dtype dtype)
{
    return frag_tape_kernel(tape) >= FRAG_KERNEL_MATH ||
           (type_of_inputs(tape, dtype) == FRAG_BF16 && frag_tape_get_card(tape)->capability < 80);
}

bool frag_aten_is_turned(const frag_tape *tape, frag_tensor x, uint32_t input, uint64_t batch)
{
    return frag_aten_is_unknown(tape, frag_tape_dtype(tape, x)) && (input != 1 || batch > 1);
}

frag_tensor frag_aten_attention(frag_tape *tape, const frag_tensor qkv[3],
                                const frag_attention_shape *shape)
{
    frag_tensor typed[3];
    frag_attention_shape masked = *shape;
    masked.mask = frag_tape_cast(tape, shape->mask);
    for (uint32_t i = 3; i > 0; i--)
        typed[i - 1] = frag_tape_cast(tape, qkv[i - 1]);
    for (uint32_t i = 0; i < 3 && !shape->is_heads_first && shape->heads > 1; i++)
        if (i == 0 || !shape->is_cached)
            frag_tape_set_strided(tape, typed[i]);
    frag_dtype dtype = frag_tape_dtype(tape, typed[0]);
    bool is_flash = shape->mask == 0 && shape->seen == 0 && frag_aten_is_flash(tape, dtype) &&
                    value_width(shape) == shape->width;
    bool is_math =
        !is_flash && (shape->heads != shape->key_heads || frag_aten_is_unknown(tape, dtype));
    frag_tensor made = is_flash  ? flash(tape, typed, shape)
                       : is_math ? math(tape, typed, &masked)
                                 : efficient(tape, typed, &masked);
    frag_tape_drop(tape, masked.mask);
    frag_tape_drop_all(tape, typed, 3);
    /* .transpose(1, 2).contiguous() of the caller, where something is to be copied: flash's output
     * lies as the queries do. Packed, heads are in a row again before, which the memory-efficient
     * kernel's output is copied for. */
    bool is_turned = is_flash           ? shape->is_heads_first
                     : shape->is_packed ? !is_math && shape->heads > 1
                                        : is_math;
    if (is_turned && shape->queries > 1 && shape->heads > 1)
        frag_tape_set(tape, &made, frag_aten_contiguous(tape, made));
    return made;
}
