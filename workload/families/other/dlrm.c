/* A recommender as facebookresearch's DLRM (dlrm_s_pytorch.py): a table of embeddings for each kind
 * of index, linear layers over numbers, products of all pairs of both, and linear layers over
 * these. The last one makes logits. */
#include "base/memory.h"
#include "workload/families/family.h"

/* Linear layers with an activation behind each, or behind each but the last. */
typedef struct mlp {
    frag_linear layers[FRAG_STAGES_MAX + 1];
    uint64_t count;
    bool is_last_linear;
} mlp;

static mlp walk_mlp(frag_walk *at, const frag_stages *widths, uint64_t in, uint64_t out)
{
    mlp next = {.count = widths->count + 1};
    for (uint64_t i = 0; i < next.count; i++) {
        uint64_t width = i < widths->count ? widths->values[i] : out;
        next.layers[i] = frag_walk_linear(at, (frag_shape){width, in}, true, 0);
        in = width;
    }
    return next;
}

/* Pairs of two different ones among the embeddings and the numbers. */
static uint64_t count_pairs(const frag_network *of)
{
    return of->tables * (of->tables + 1) / 2;
}

typedef struct network {
    frag_tensor *tables;
    mlp bottom, top;
} network;

static network walk_network(frag_walk *at, const frag_network *of)
{
    network next = {.tables = frag_alloc(of->tables, sizeof *next.tables)};
    uint64_t random = at->workload->seed;
    for (uint64_t i = 0; i < of->tables; i++)
        next.tables[i] = frag_walk_parameter(
            at, (frag_shape){frag_lengths_at(&of->rows, i, &random), of->width});
    next.bottom = walk_mlp(at, &of->bottom, of->dense, of->width);
    next.top = walk_mlp(at, &of->top, of->width + count_pairs(of), 1);
    next.top.is_last_linear = true;
    return next;
}

static void build(frag_walk *at, const frag_network *of)
{
    frag_free(walk_network(at, of).tables);
}

static void load(frag_tape *tape, const frag_model *model, frag_batch *batch)
{
    const frag_network *of = &model->workload->network;
    uint64_t samples = batch->count;
    frag_tape_set(tape, &batch->numbers, frag_tape_empty(tape, samples * of->dense, model->dtype));
    if (of->has_bags)
        frag_tape_set(tape, &batch->offsets, frag_tape_empty(tape, of->tables * samples, FRAG_I64));
    frag_tape_set(tape, &batch->ids,
                  frag_tape_empty(tape, of->tables * samples * batch->lookups, FRAG_I64));
    frag_tape_set(tape, &batch->labels, frag_tape_empty(tape, samples, model->dtype));
}

/* x stays. */
static frag_tensor run_mlp(frag_tape *tape, const mlp *at, frag_tensor x)
{
    frag_tensor hidden = frag_tape_keep(tape, x);
    for (uint64_t i = 0; i < at->count; i++) {
        frag_tape_set(tape, &hidden, frag_walk_apply(tape, hidden, &at->layers[i]));
        if (i + 1 < at->count || !at->is_last_linear)
            frag_tape_set(tape, &hidden, frag_aten_relu(tape, hidden));
    }
    return hidden;
}

/* The rows of a table; their gradient is a part of another. */
static frag_tensor look_up(frag_tape *tape, const frag_network *of, const frag_batch *batch,
                           frag_tensor table)
{
    bool is_turned = batch->count > 1;
    frag_tensor indices = frag_tape_view(tape, batch->ids, batch->count * batch->lookups);
    frag_tensor offsets = of->has_bags ? frag_tape_view(tape, batch->offsets, batch->count) : 0;
    frag_tensor (*embed)(frag_tape *, frag_tensor, frag_tensor, uint64_t) =
        is_turned ? frag_aten_embedding_turned : frag_aten_embedding;
    const frag_embedding_bag bag = {table, indices, offsets, of->width, is_turned, of->is_sparse};
    frag_tensor made =
        of->has_bags ? frag_aten_embedding_bag(tape, &bag) : embed(tape, table, indices, of->width);
    frag_tape_drop(tape, offsets);
    frag_tape_drop(tape, indices);
    return made;
}

/* Products of each two of the embeddings and x, which is the first of parts; x stands before
 * them. */
static frag_tensor interact(frag_tape *tape, const frag_network *of, uint64_t samples,
                            const frag_tensor *parts)
{
    uint64_t features = of->tables + 1;
    frag_dtype dtype =
        frag_aten_wider(frag_tape_dtype(tape, parts[0]), frag_tape_dtype(tape, parts[1]));
    frag_tensor whole = frag_aten_cat_all(tape, parts, features, dtype);
    frag_tape_set(tape, &whole, frag_aten_view(tape, whole));
    frag_tensor turned = frag_aten_view(tape, whole);
    frag_dtype autocast = frag_tape_autocast(tape);
    frag_tensor factors[2] = {turned, whole};
    for (uint32_t i = 0; i < 2; i++)
        factors[i] = frag_tape_to(tape, factors[i], autocast != FRAG_F32 ? autocast : dtype);
    frag_tensor products =
        frag_aten_bmm(tape, factors[1], factors[0], samples * features * features);
    frag_tape_drop_all(tape, factors, 2);
    frag_tape_drop(tape, turned);
    frag_tensor flat = frag_aten_pick_places(tape, products, samples, count_pairs(of));
    frag_tensor made = frag_aten_cat(
        tape, parts[0], flat,
        frag_aten_wider(frag_tape_dtype(tape, parts[0]), frag_tape_dtype(tape, flat)));
    frag_tape_drop(tape, flat);
    frag_tape_drop(tape, products);
    frag_tape_drop(tape, whole);
    return made;
}

static frag_tensor predict(frag_tape *tape, const frag_network *of, const network *at,
                           const frag_batch *batch)
{
    frag_tensor *parts = frag_alloc(of->tables + 1, sizeof *parts);
    parts[0] = run_mlp(tape, &at->bottom, batch->numbers);
    for (uint64_t i = 0; i < of->tables; i++)
        parts[i + 1] = look_up(tape, of, batch, at->tables[i]);
    frag_tensor joined = interact(tape, of, batch->count, parts);
    frag_tensor logits = run_mlp(tape, &at->top, joined);
    frag_tape_drop_all(tape, parts, of->tables + 1);
    frag_tape_drop(tape, joined);
    frag_free(parts);
    return logits;
}

static frag_tensor compute_loss(frag_tape *tape, const frag_model *model, const frag_batch *batch)
{
    const frag_network *of = &model->workload->network;
    frag_walk at = {.tape = tape, .workload = model->workload, .at = model->parameters};
    const network whole = walk_network(&at, of);
    frag_tensor logits = predict(tape, of, &whole, batch);
    frag_tensor loss = frag_aten_binary_cross_entropy(tape, logits, batch->labels);
    frag_family_return(tape, batch, logits);
    frag_tape_drop(tape, logits);
    frag_free(whole.tables);
    return loss;
}

const frag_family frag_family_dlrm = {build, load, compute_loss, NULL};
