/* GraphSAGE and GCN as torch_geometric 2.8 has them (nn/models/basic_gnn.py, nn/conv/sage_conv.py
 * and gcn_conv.py), over edges as a tensor: each edge's source is written out, and targets add
 * them up. */
#include "workload/families/family.h"

typedef struct layer {
    frag_linear own, neighbours; /* GraphSAGE */
    frag_linear all;             /* GCN */
    frag_tensor bias;            /* that moves to the GPU behind it, but is named first */
} layer;

static bool is_sage(const frag_network *of)
{
    return of->family == FRAG_FAMILY_GRAPHSAGE;
}

static layer walk_layer(frag_walk *at, const frag_network *of, uint64_t number)
{
    const frag_shape shape = {number + 1 < of->layers ? of->width : of->classes,
                              number > 0 ? of->width : of->features};
    layer next = {.bias = 0};
    if (is_sage(of)) {
        next.neighbours = frag_walk_linear(at, shape, true, 0);
        next.own = frag_walk_linear(at, shape, false, 0);
    } else {
        next.bias = at->model == NULL ? frag_walk_parameter(at, (frag_shape){0, shape.rows}) : 0;
        next.all = frag_walk_linear(at, shape, false, 0);
        if (at->model == NULL)
            return next;
        next.bias = frag_walk_parameter(at, (frag_shape){0, shape.rows});
        frag_model_name_first(at->model, 2, 1);
    }
    return next;
}

static void build(frag_walk *at, const frag_network *of)
{
    for (uint64_t i = 0; i < of->layers; i++)
        (void)walk_layer(at, of, i);
}

static void load(frag_tape *tape, const frag_model *model, frag_batch *batch)
{
    uint64_t numbers = batch->nodes * model->workload->network.features;
    frag_tape_set(tape, &batch->ids, frag_tape_empty(tape, numbers, model->dtype));
    frag_tape_set(tape, &batch->links, frag_tape_empty(tape, 2 * batch->edges, FRAG_I64));
    frag_tape_set(tape, &batch->labels, frag_tape_empty(tape, batch->nodes, FRAG_I64));
}

static frag_tensor multiply(frag_tape *tape, frag_tensor x, const frag_linear *of)
{
    return frag_aten_linear_flat(tape, x, (frag_tensor[]){of->weight, of->bias}, of->columns);
}

/* The number of edges to each target, at least 1. */
static frag_tensor count_edges(frag_tape *tape, const frag_batch *batch, frag_dtype dtype)
{
    frag_tensor count = frag_tape_empty(tape, batch->nodes, dtype);
    frag_tape_drop(tape, frag_tape_empty(tape, batch->edges, dtype)); /* ones, added up */
    frag_tape_set(tape, &count, frag_tape_empty(tape, batch->nodes, dtype));
    return count;
}

/* neighbours(mean of sources) + own(x) */
static frag_tensor run_sage(frag_tape *tape, const layer *at, const frag_batch *batch,
                            frag_tensor x)
{
    uint64_t width = frag_tape_count(tape, x) / batch->nodes;
    frag_tensor ends = frag_tape_view(tape, batch->links, batch->edges);
    frag_tensor sources = frag_aten_select_rows(tape, x, ends, width);
    frag_tensor count = count_edges(tape, batch, frag_tape_dtype(tape, x));
    frag_tensor made = frag_aten_scatter_rows(tape, sources, ends, batch->nodes);
    frag_tape_set(tape, &made, frag_aten_mul(tape, made, count)); /* by 1 / count */
    frag_tape_drop(tape, count);
    frag_tape_drop(tape, sources);
    frag_tape_drop(tape, ends);
    frag_tape_set(tape, &made, multiply(tape, made, &at->neighbours));
    frag_tensor own = multiply(tape, x, &at->own);
    frag_tape_set(tape, &made, frag_aten_add(tape, made, own));
    frag_tape_drop(tape, own);
    return made;
}

/* gcn_norm: of each edge 1 / sqrt(edges to its source * edges to its target). */
static frag_tensor weigh_edges(frag_tape *tape, const frag_batch *batch, frag_dtype dtype)
{
    frag_tensor ones = frag_tape_empty(tape, batch->edges, dtype);
    frag_tensor degrees = frag_tape_empty(tape, batch->nodes, dtype);
    frag_tape_drop(tape, frag_tape_empty(tape, batch->nodes, FRAG_BOOL)); /* that are infinite */
    frag_tensor made = frag_tape_empty(tape, batch->edges, dtype);
    frag_tape_set(tape, &made, frag_tape_empty(tape, batch->edges, dtype));
    frag_tensor targets = frag_tape_empty(tape, batch->edges, dtype);
    frag_tape_set(tape, &made, frag_tape_empty(tape, batch->edges, dtype));
    frag_tape_drop(tape, targets);
    frag_tape_drop(tape, degrees);
    frag_tape_drop(tape, ones);
    return made;
}

/* sum of weight * source + bias, of all(x) */
static frag_tensor run_gcn(frag_tape *tape, const layer *at, const frag_batch *batch, frag_tensor x)
{
    frag_tensor weights = weigh_edges(tape, batch, frag_tape_dtype(tape, x));
    frag_tensor hidden = multiply(tape, x, &at->all);
    frag_tensor ends = frag_tape_view(tape, batch->links, batch->edges);
    frag_tensor sources = frag_aten_select_rows(tape, hidden, ends, at->all.columns);
    frag_tensor weighed = frag_aten_mul(tape, weights, sources);
    frag_tensor made = frag_aten_scatter_rows(tape, weighed, ends, batch->nodes);
    frag_tape_drop(tape, weighed);
    frag_tape_drop(tape, sources);
    frag_tape_drop(tape, ends);
    frag_tape_set(tape, &made, frag_aten_add(tape, made, at->bias));
    frag_tape_drop(tape, hidden);
    frag_tape_drop(tape, weights);
    return made;
}

static frag_tensor compute_loss(frag_tape *tape, const frag_model *model, const frag_batch *batch)
{
    const frag_network *of = &model->workload->network;
    frag_walk at = {.tape = tape, .workload = model->workload, .at = model->parameters};
    bool is_dropping = frag_model_drops(model, of->residual_dropout);
    frag_tensor hidden = frag_tape_keep(tape, batch->ids);
    for (uint64_t i = 0; i < of->layers; i++) {
        const layer next = walk_layer(&at, of, i);
        frag_tape_set(tape, &hidden,
                      (is_sage(of) ? run_sage : run_gcn)(tape, &next, batch, hidden));
        if (i + 1 == of->layers)
            break;
        frag_tape_set(tape, &hidden, frag_aten_relu(tape, hidden));
        frag_tape_set(tape, &hidden, frag_aten_dropout(tape, hidden, is_dropping));
    }
    frag_tensor logits = frag_aten_slice(tape, hidden, batch->count * of->classes);
    frag_tape_drop(tape, hidden);
    frag_tensor labels = frag_tape_view(tape, batch->labels, batch->count);
    frag_tensor loss = frag_aten_cross_entropy(tape, logits, labels);
    frag_family_return(tape, batch, logits);
    frag_tape_drop(tape, labels);
    frag_tape_drop(tape, logits);
    return loss;
}

const frag_family frag_family_graph = {build, load, compute_loss, NULL};
