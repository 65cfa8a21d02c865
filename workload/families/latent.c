/* DeepSeek's attention, whose keys and values are made of narrow rows that a cache keeps
 * (multi-head latent attention), as transformers 5 has it (models/deepseek_v2 and deepseek_v3). */
#include "workload/families/family.h"

frag_latent frag_walk_latent(frag_walk *at, const frag_network *of)
{
    const uint64_t queries = of->heads * (of->plain_width + of->turned_width);
    const uint64_t made = of->heads * (of->plain_width + of->value_width);
    bool has_bias = of->has_attention_bias;
    frag_latent next = {0};
    if (of->query_rank > 0) {
        next.query_down =
            frag_walk_linear(at, (frag_shape){of->query_rank, of->width}, has_bias, 0);
        next.query_norm = frag_walk_parameter(at, (frag_shape){0, of->query_rank});
    }
    next.query =
        frag_walk_linear(at, (frag_shape){queries, of->query_rank > 0 ? of->query_rank : of->width},
                         false, of->query_rank > 0 ? 0 : FRAG_LORA_Q);
    next.down =
        frag_walk_linear(at, (frag_shape){of->key_rank + of->turned_width, of->width}, has_bias, 0);
    next.norm = frag_walk_parameter(at, (frag_shape){0, of->key_rank});
    next.up = frag_walk_linear(at, (frag_shape){made, of->key_rank}, false, 0);
    next.out = frag_walk_linear(at, (frag_shape){of->width, of->heads * of->value_width}, has_bias,
                                FRAG_LORA_O);
    return next;
}

/* The rows that queries are made of, and queries. */
static frag_tensor project_queries(frag_tape *tape, const frag_network *of, const frag_latent *at,
                                   frag_tensor x)
{
    if (of->query_rank == 0)
        return frag_walk_apply(tape, x, &at->query);
    frag_tensor made = frag_walk_apply(tape, x, &at->query_down);
    frag_tape_set(tape, &made,
                  frag_network_normalise(tape, of, made, at->query_norm, of->query_rank));
    frag_tape_set(tape, &made, frag_walk_apply(tape, made, &at->query));
    return made;
}

/* What is not turned and what is, of each row. */
static void split(frag_tape *tape, frag_tensor x, frag_tensor parts[2], uint64_t first,
                  uint64_t second)
{
    uint64_t rows = frag_tape_count(tape, x) / (first + second);
    frag_tensor whole = frag_aten_split_begin(tape, x);
    parts[0] = frag_aten_split_next(tape, whole, rows * first);
    parts[1] = frag_aten_split_next(tape, whole, rows * second);
    frag_tape_drop(tape, whole);
    for (uint32_t i = 0; i < 2; i++)
        frag_tape_set_strided(tape, parts[i]);
}

/* Keys are written into a tensor of their own: what is not turned of each head, and what is, the
 * same for all of them. */
static void expand(frag_tape *tape, const frag_network *of, const frag_latent *at,
                   const frag_tensor rows[2], frag_tensor qkv[3])
{
    frag_tensor both = frag_walk_apply(tape, rows[0], &at->up);
    both = frag_walk_split_heads(tape, both, of->heads > 1);
    frag_tensor parts[2];
    split(tape, both, parts, of->plain_width, of->value_width);
    uint64_t tokens = frag_tape_count(tape, parts[0]) / of->plain_width;
    frag_tensor turned = frag_aten_expand(tape, rows[1], tokens * of->turned_width);
    frag_tensor keys = frag_tape_empty(tape, tokens * (of->plain_width + of->turned_width),
                                       frag_tape_dtype(tape, both));
    keys = frag_aten_write(tape, keys, parts[0]);
    keys = frag_aten_write(tape, keys, turned);
    qkv[1] = keys;
    qkv[2] = parts[1];
    frag_tape_drop(tape, turned);
    frag_tape_drop(tape, parts[0]);
    frag_tape_drop(tape, both);
}

frag_tensor frag_latent_attend(frag_tape *tape, const frag_model *model, const frag_latent *at,
                               frag_tensor x, frag_rope angles, const frag_batch *batch,
                               frag_cache *past)
{
    const frag_network *of = &model->workload->network;
    frag_tensor queries = project_queries(tape, of, at, x);
    queries = frag_walk_split_heads(tape, queries, of->heads > 1);
    frag_tensor parts[2];
    split(tape, queries, parts, of->plain_width, of->turned_width);
    frag_tensor down = frag_walk_apply(tape, x, &at->down);
    frag_tensor rows[2];
    split(tape, down, rows, of->key_rank, of->turned_width);
    frag_tape_set(tape, &rows[0],
                  frag_network_normalise(tape, of, rows[0], at->norm, of->key_rank));
    for (uint32_t i = 0; i < 2; i++)
        frag_tape_set(tape, &rows[i], frag_aten_view(tape, rows[i]));
    frag_tensor *const turned[] = {&parts[1], &rows[1]};
    bool is_efficient = of->plain_width + of->turned_width != of->value_width &&
                        !frag_aten_is_unknown(tape, frag_tape_dtype(tape, queries));
    if (of->has_complex_rope)
        frag_rope_apply_complex(tape, turned, angles, of->heads > 1 && is_efficient);
    else
        frag_rope_apply_apart(tape, turned, angles, of->has_paired_rope);
    frag_cache_append(tape, of, past, &rows[0], &rows[1]);
    frag_tensor qkv[3] = {0};
    qkv[0] = frag_aten_cat(
        tape, parts[0], parts[1],
        frag_aten_wider(frag_tape_dtype(tape, parts[0]), frag_tape_dtype(tape, parts[1])));
    expand(tape, of, at, rows, qkv);
    frag_attention_shape shape = frag_model_attention(model, batch);
    shape.key_heads = shape.heads;
    shape.width = of->plain_width + of->turned_width;
    shape.value_width = of->value_width;
    shape.is_causal = batch->tokens > 1;
    shape.is_heads_first = true;
    frag_tensor made = frag_aten_attention(tape, qkv, &shape);
    frag_tape_set(tape, &made, frag_aten_view(tape, made));
    frag_tape_set(tape, &made, frag_walk_apply(tape, made, &at->out));
    const frag_tensor names[] = {queries, parts[0], parts[1], down,  rows[0],
                                 rows[1], qkv[0],   qkv[1],   qkv[2]};
    frag_tape_drop_all(tape, names, sizeof names / sizeof *names);
    return made;
}
