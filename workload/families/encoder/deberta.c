/* What DeBERTa has that BERT has not (models/deberta_v2/modeling_deberta_v2.py): attention whose
 * scores know how far tokens are apart, by queries and keys made of a table of distances. */
#include "workload/families/family.h"

/* Places of a matrix of tokens by tokens. */
typedef struct square {
    frag_tape *tape;
    uint64_t count;
} square;

static frag_tensor fill(const square *at, frag_dtype dtype)
{
    return frag_tape_empty(at->tape, at->count, dtype);
}

/* name = an operator on it, of that type */
static void map(const square *at, frag_tensor *name, frag_dtype dtype)
{
    frag_tape_set(at->tape, name, fill(at, dtype));
}

/* where((x < mid) & (x > -mid), mid - 1, abs(x)) */
static frag_tensor bound_distances(const square *at)
{
    frag_tensor is_less = fill(at, FRAG_BOOL);
    frag_tensor is_more = fill(at, FRAG_BOOL);
    frag_tensor is_near = fill(at, FRAG_BOOL);
    frag_tape_drop(at->tape, is_more);
    frag_tape_drop(at->tape, is_less);
    frag_tensor number = frag_tape_empty(at->tape, 1, FRAG_I64);
    frag_tensor made = fill(at, FRAG_I64);
    map(at, &made, FRAG_I64);
    frag_tape_drop(at->tape, number);
    frag_tape_drop(at->tape, is_near);
    return made;
}

/* make_log_bucket_position */
static frag_tensor bucket_distances(const square *at)
{
    frag_tape *tape = at->tape;
    frag_tensor sign = fill(at, FRAG_I64);
    frag_tensor bounded = bound_distances(at);
    frag_tensor logs = fill(at, FRAG_F32);
    for (uint32_t i = 0; i < 5; i++) /* log, a quotient, a product, ceil, a sum */
        map(at, &logs, FRAG_F32);
    frag_tensor is_near = fill(at, FRAG_BOOL);
    frag_tensor plain = fill(at, FRAG_F32);
    frag_tensor signed_logs = fill(at, FRAG_F32);
    frag_tensor made = fill(at, FRAG_F32);
    const frag_tensor names[] = {sign, bounded, logs, is_near, plain, signed_logs};
    frag_tape_drop_all(tape, names, sizeof names / sizeof *names);
    return made;
}

frag_distances frag_distances_make(frag_tape *tape, const frag_batch *batch, frag_tensor mask)
{
    const square at = {tape, batch->tokens * batch->tokens};
    frag_distances made = {
        .mask = frag_tape_empty(tape, batch->count * at.count, frag_tape_dtype(tape, mask))};
    frag_tensor queries = frag_tape_empty(tape, batch->tokens, FRAG_I64);
    frag_tensor keys = frag_tape_empty(tape, batch->tokens, FRAG_I64);
    made.places = fill(&at, FRAG_I64);
    frag_tape_set(tape, &made.places, bucket_distances(&at));
    map(&at, &made.places, FRAG_I64);
    frag_tape_drop(tape, keys);
    frag_tape_drop(tape, queries);
    return made;
}

/* ---- attention */
/* A call of a layer, and the sizes that go with it. */
typedef struct mixing {
    frag_tape *tape;
    const frag_network *of;
    const frag_encoder_call *call;
    uint64_t matrices; /* one for each head of each sequence */
    uint64_t scores;
} mixing;

/* transpose_for_scores(layer(x)) */
static frag_tensor project(const mixing *at, const frag_linear *layer, frag_tensor x)
{
    frag_tape *tape = at->tape;
    frag_tensor made = frag_walk_split_heads(tape, frag_walk_apply(tape, x, layer),
                                             at->of->heads > 1 && layer->images == 0);
    if (at->of->heads > 1)
        frag_tape_set(tape, &made, frag_aten_contiguous(tape, made));
    frag_tape_set(tape, &made, frag_aten_view(tape, made));
    return made;
}

/* The same of the table of distances, for each sequence: of one alone the gradient comes turned
 * around, as the product made it, of several it is their sum. */
static frag_tensor project_distances(const mixing *at, const frag_linear *layer, frag_tensor rows)
{
    frag_linear turned = *layer;
    turned.images = at->call->batch.count == 1;
    frag_tensor made = project(at, &turned, rows);
    frag_tape_set(at->tape, &made, frag_aten_repeat(at->tape, made, at->call->batch.count));
    return made;
}

/* bmm, in the type of autocast */
static frag_tensor multiply(const mixing *at, frag_tensor self, frag_tensor other, uint64_t count)
{
    frag_tensor typed_other = frag_tape_cast(at->tape, other);
    frag_tensor typed_self = frag_tape_cast(at->tape, self);
    frag_tensor made = frag_aten_bmm(at->tape, typed_self, typed_other, count);
    frag_tape_drop(at->tape, typed_self);
    frag_tape_drop(at->tape, typed_other);
    return made;
}

/* x times the turned table, for each distance that there is */
static frag_tensor score_table(const mixing *at, frag_tensor x, frag_tensor table)
{
    frag_tensor turned = frag_aten_view(at->tape, table);
    frag_tensor made =
        multiply(at, x, turned, at->matrices * at->call->batch.tokens * 2 * at->of->distances);
    frag_tape_drop(at->tape, turned);
    return made;
}

/* gather(scores, by places), divided by a number: name is what was gathered */
static frag_tensor look_up(const mixing *at, frag_tensor *name, frag_tensor places)
{
    frag_tensor index = frag_tape_view(at->tape, places, at->scores);
    frag_tape_set(at->tape, name, frag_aten_choose(at->tape, *name, index));
    frag_tape_drop(at->tape, index);
    return frag_aten_mul_scalar(at->tape, *name);
}

/* disentangled_attention_bias */
static frag_tensor weigh_distances(const mixing *at, const frag_tensor qkv[3], frag_tensor rows)
{
    frag_tape *tape = at->tape;
    const square places = {tape, at->call->batch.tokens * at->call->batch.tokens};
    frag_tensor table = frag_aten_alias(tape, rows);
    frag_tape_set(tape, &table, frag_aten_view(tape, table));
    frag_tensor queries = project_distances(at, &at->call->at.qkv[0], table);
    frag_tensor keys = project_distances(at, &at->call->at.qkv[1], table);
    frag_tensor content = score_table(at, qkv[0], keys);
    frag_tensor by_query = fill(&places, FRAG_I64); /* moved, and clamped */
    map(&places, &by_query, FRAG_I64);
    frag_tensor scaled = look_up(at, &content, by_query);
    frag_tensor score = frag_aten_add_scalar(tape, scaled); /* 0 + */
    frag_tape_drop(tape, scaled);
    frag_tensor by_key = fill(&places, FRAG_I64); /* turned around before */
    map(&places, &by_key, FRAG_I64);
    map(&places, &by_key, FRAG_I64);
    frag_tensor position = score_table(at, qkv[1], queries);
    scaled = look_up(at, &position, by_key);
    score = frag_aten_add_in_place(tape, score, scaled);
    const frag_tensor names[] = {scaled, table, queries, keys, content, by_query, position, by_key};
    frag_tape_drop_all(tape, names, sizeof names / sizeof *names);
    return score;
}

/* softmax(masked_fill(scores)), in fp32 under autocast; name = the masked scores. *is_seen: the
 * mask that is left, owned too. */
static frag_tensor share(const mixing *at, frag_tensor *name, frag_tensor *is_seen)
{
    frag_tape *tape = at->tape;
    const frag_encoder_call *call = at->call;
    const square all = {tape, at->scores / at->of->heads};
    *is_seen = fill(&all, FRAG_BOOL);
    frag_tensor is_hidden = fill(&all, FRAG_BOOL);
    frag_tape_set(tape, name, frag_aten_masked_fill(tape, *name, is_hidden));
    frag_tape_drop(tape, is_hidden);
    bool is_wide = frag_tape_autocast(tape) != FRAG_F32;
    frag_tensor made =
        is_wide ? frag_aten_softmax(tape, *name, false) : frag_aten_softmax_typed(tape, *name);
    frag_tape_set(tape, &made,
                  frag_model_drop_out(tape, call->model, made, at->of->attention_dropout));
    return made;
}

/* What heads have read, side by side again. */
static frag_tensor join_heads(const mixing *at, frag_tensor x)
{
    frag_tape *tape = at->tape;
    bool is_apart = at->of->heads > 1;
    frag_tensor made = is_apart && at->call->batch.count > 1 ? frag_aten_view_copied(tape, x)
                                                             : frag_aten_view(tape, x);
    if (is_apart)
        frag_tape_set(tape, &made, frag_aten_contiguous(tape, made));
    frag_tape_set(tape, &made, frag_aten_view(tape, made));
    return made;
}

frag_tensor frag_distances_attend(frag_tape *tape, const frag_encoder_call *call, frag_tensor x)
{
    const frag_network *of = &call->model->workload->network;
    mixing at = {tape, of, call, call->batch.count * of->heads, 0};
    at.scores = at.matrices * call->batch.tokens * call->batch.tokens;
    frag_tensor qkv[3];
    for (uint32_t i = 0; i < 3; i++)
        qkv[i] = project(&at, &call->at.qkv[i], x);
    frag_tensor scaled = frag_aten_mul_scalar(tape, qkv[1]);
    frag_tensor scores = multiply(&at, qkv[0], scaled, at.scores);
    frag_tape_drop(tape, scaled);
    frag_tensor rows =
        frag_model_drop_out(tape, call->model, call->distances.rows, of->residual_dropout);
    frag_tensor weighed = weigh_distances(&at, qkv, rows);
    frag_tape_set(tape, &scores, frag_aten_add(tape, scores, weighed));
    frag_tape_set(tape, &scores, frag_aten_view(tape, scores));
    frag_tensor is_seen = 0;
    frag_tensor shares = share(&at, &scores, &is_seen);
    frag_tensor flat = frag_aten_view(tape, shares);
    frag_tensor made = multiply(&at, flat, qkv[2], frag_tape_count(tape, qkv[2]));
    frag_tape_drop(tape, flat);
    frag_tape_set(tape, &made, join_heads(&at, made));
    const frag_tensor names[] = {qkv[0], qkv[1], qkv[2], rows, weighed, scores, is_seen, shares};
    frag_tape_drop_all(tape, names, sizeof names / sizeof *names);
    return made;
}
