/* Mixtures of experts as transformers 5 has them (integrations/moe.py, models/mixtral): a router
 * chooses experts for each token; all are computed in one product over sorted rows, or those that
 * are hit one after the other. */
#include "base/memory.h"
#include "base/random.h"
#include "workload/families/family.h"

uint64_t frag_network_expert_layers(const frag_network *of)
{
    uint64_t count = 0;
    for (uint64_t layer = 0; layer < of->layers; layer++)
        count += frag_network_has_experts(of, layer);
    return count;
}

frag_experts frag_walk_experts(frag_walk *at, const frag_network *of, uint64_t place)
{
    frag_experts next = {.place = place};
    bool is_clipped = of->has_clipped_experts; /* whose matrices are the other way around */
    const uint64_t width = of->width, inner = of->expert_inner;
    const frag_shape gate_up =
        is_clipped ? (frag_shape){width, 2 * inner} : (frag_shape){2 * inner, width};
    const frag_shape down = is_clipped ? (frag_shape){inner, width} : (frag_shape){width, inner};
    if (!of->is_router_last)
        next.router = frag_walk_parameter(at, (frag_shape){of->experts, of->width});
    if (is_clipped)
        next.router_bias = frag_walk_parameter(at, (frag_shape){0, of->experts});
    next.gate_up = frag_walk_stack(at, gate_up, of->experts);
    if (is_clipped)
        next.gate_up_bias =
            frag_walk_parameter(at, (frag_shape){of->experts, 2 * of->expert_inner});
    next.down = frag_walk_stack(at, down, of->experts);
    if (is_clipped)
        next.down_bias = frag_walk_parameter(at, (frag_shape){of->experts, of->width});
    if (of->is_router_last)
        next.router = of->has_exact_router
                          ? frag_walk_exact(at, (frag_shape){of->experts, of->width})
                          : frag_walk_parameter(at, (frag_shape){of->experts, of->width});
    if (of->has_scored_routing)
        frag_walk_buffer(at, of->experts, FRAG_F32);
    return next;
}

/* The softmax of what is chosen, in its type. */
static frag_routing route_clipped(frag_tape *tape, const frag_network *of, const frag_experts *at,
                                  frag_tensor x)
{
    uint64_t pairs = frag_tape_count(tape, x) / of->width * of->experts_chosen;
    frag_routing made = {.logits =
                             frag_aten_linear(tape, x, at->router, at->router_bias, of->experts)};
    frag_tensor top = frag_aten_topk(tape, made.logits, pairs, &made.chosen);
    made.weights = frag_aten_softmax_typed(tape, top);
    frag_tape_drop(tape, top);
    return made;
}

enum { GROUP_NAMES = 4 };

/* How good each group is: as its two best experts together, or (DeepSeek V2) as its best. */
static frag_tensor score_groups(frag_tape *tape, const frag_network *of, frag_tensor scores,
                                uint64_t groups)
{
    if (!of->has_scored_routing)
        return frag_aten_max_last(tape, scores, of->experts / of->router_groups);
    frag_tensor places = 0;
    frag_tensor best = frag_aten_topk(tape, scores, 2 * groups, &places);
    frag_tape_clear(tape, &places);
    frag_tensor made = frag_aten_sum(tape, best, &(frag_reduction){groups, 2, true, 0});
    frag_tape_drop(tape, best);
    return made;
}

/* Scores of all groups but a row's best ones become the lowest number: scores is used up. names:
 * what has names until experts are chosen. */
static frag_tensor limit_groups(frag_tape *tape, const frag_network *of, frag_tensor scores,
                                uint64_t rows, frag_tensor names[GROUP_NAMES])
{
    uint64_t groups = rows * of->router_groups;
    frag_tensor places = 0;
    frag_tensor sums = score_groups(tape, of, scores, groups);
    frag_tensor top = frag_aten_topk(tape, sums, rows * of->router_groups_chosen, &places);
    frag_tape_drop(tape, top);
    frag_tensor mask = frag_tape_empty(tape, groups, FRAG_F32);
    bool is_spread = of->router_groups > 1;
    frag_tensor spread = is_spread ? frag_tape_empty(tape, rows * of->experts, FRAG_F32)
                                   : frag_tape_keep(tape, mask);
    frag_tensor is_best = frag_tape_empty(tape, rows * of->experts, FRAG_BOOL);
    frag_tensor is_other = frag_tape_empty(tape, rows * of->experts, FRAG_BOOL);
    frag_tape_drop(tape, is_best);
    frag_tensor made = frag_aten_masked_fill(tape, scores, is_other);
    frag_tape_drop(tape, is_other);
    frag_tape_drop(tape, scores);
    const frag_tensor kept[GROUP_NAMES] = {sums, places, mask, spread};
    for (uint32_t i = 0; i < GROUP_NAMES; i++)
        names[i] = kept[i];
    return made;
}

/* DeepSeek V3's: a sigmoid for each expert; a bias has a say in the choice alone. */
static frag_routing route_scored(frag_tape *tape, const frag_network *of, const frag_experts *at,
                                 frag_tensor x)
{
    uint64_t rows = frag_tape_count(tape, x) / of->width;
    uint64_t pairs = rows * of->experts_chosen;
    frag_tensor flat = frag_aten_view(tape, x);
    frag_tensor wide = frag_tape_to(tape, flat, FRAG_F32);
    frag_routing made = {
        .logits = frag_aten_linear_flat(tape, wide, (frag_tensor[]){at->router, 0}, of->experts)};
    frag_tape_drop(tape, wide);
    frag_tensor scores = frag_aten_sigmoid(tape, made.logits);
    frag_tensor choice = frag_aten_add(tape, scores, at->choice_bias);
    frag_tensor names[GROUP_NAMES];
    choice = limit_groups(tape, of, choice, rows, names);
    frag_tensor best = frag_aten_topk(tape, choice, pairs, &made.chosen);
    frag_tape_drop(tape, best);
    made.weights = frag_aten_choose(tape, scores, made.chosen);
    frag_tensor sum = 0;
    if (of->has_normed_routing) {
        sum =
            frag_aten_sum(tape, made.weights, &(frag_reduction){rows, of->experts_chosen, true, 0});
        frag_tape_set(tape, &sum, frag_aten_add_scalar(tape, sum));
        made.weights = frag_aten_divide_in_place(tape, made.weights, sum);
    }
    frag_tape_set(tape, &made.weights, frag_aten_mul_scalar(tape, made.weights));
    frag_tape_drop_all(tape, names, GROUP_NAMES);
    frag_tape_drop(tape, sum);
    frag_tape_drop(tape, choice);
    frag_tape_drop(tape, scores);
    frag_tape_drop(tape, flat);
    return made;
}

/* DeepSeek V2's: shares of all experts, in fp32, of which the best of the best groups are taken. */
static frag_routing route_grouped(frag_tape *tape, const frag_network *of, const frag_experts *at,
                                  frag_tensor x)
{
    uint64_t rows = frag_tape_count(tape, x) / of->width;
    frag_tensor flat = frag_aten_view(tape, x);
    frag_tensor wide = frag_tape_to(tape, flat, FRAG_F32);
    frag_routing made = {
        .logits = frag_aten_linear_flat(tape, wide, (frag_tensor[]){at->router, 0}, of->experts)};
    frag_tape_drop(tape, wide);
    frag_tensor scores = frag_aten_softmax(tape, made.logits, false);
    frag_tensor names[GROUP_NAMES] = {0};
    if (of->router_groups > 0)
        scores = limit_groups(tape, of, scores, rows, names);
    made.weights = frag_aten_topk(tape, scores, rows * of->experts_chosen, &made.chosen);
    frag_tape_set(tape, &made.weights, frag_aten_mul_scalar(tape, made.weights));
    frag_tape_drop_all(tape, names, GROUP_NAMES);
    frag_tape_drop(tape, scores);
    frag_tape_drop(tape, flat);
    return made;
}

static frag_routing route(frag_tape *tape, const frag_network *of, const frag_experts *at,
                          frag_tensor x)
{
    if (of->has_clipped_experts)
        return route_clipped(tape, of, at, x);
    if (of->has_exact_router && !of->has_scored_routing)
        return route_grouped(tape, of, at, x);
    if (of->has_scored_routing)
        return route_scored(tape, of, at, x);
    uint64_t rows = frag_tape_count(tape, x) / of->width;
    uint64_t pairs = rows * of->experts_chosen;
    frag_tensor flat = frag_aten_view(tape, x);
    frag_routing made = {.logits = frag_aten_linear(tape, flat, at->router, 0, of->experts)};
    frag_tensor shares = frag_aten_softmax(tape, made.logits, !of->has_typed_routing);
    made.weights = frag_aten_topk(tape, shares, pairs, &made.chosen);
    if (of->has_normed_routing) {
        frag_tensor sum =
            frag_aten_sum(tape, made.weights, &(frag_reduction){rows, of->experts_chosen, true, 0});
        made.weights = frag_aten_divide_in_place(tape, made.weights, sum);
        frag_tape_drop(tape, sum);
    }
    if (of->has_typed_routing)
        frag_tape_set(tape, &made.weights,
                      frag_tape_to(tape, made.weights, frag_tape_dtype(tape, made.logits)));
    frag_tape_drop(tape, shares);
    frag_tape_drop(tape, flat);
    return made;
}

/* act(gate) * up, of both halves of each row */
static frag_tensor multiply_gate(frag_tape *tape, const frag_network *of,
                                 const frag_tensor parts[2])
{
    frag_family_will_save(tape, parts[0]);
    frag_tensor active = frag_family_activate(tape, parts[0], (frag_activation)of->activation);
    frag_family_will_save(tape, parts[1]);
    frag_tensor made = frag_aten_mul(tape, active, parts[1]);
    frag_tape_drop(tape, active);
    return made;
}

static frag_tensor apply_gate(frag_tape *tape, const frag_network *of, frag_tensor both)
{
    frag_tensor parts[2];
    frag_family_halve(tape, both, parts);
    frag_tensor made = multiply_gate(tape, of, parts);
    frag_tape_drop(tape, parts[0]);
    frag_tape_drop(tape, parts[1]);
    return made;
}

/* (up + 1) * gate * sigmoid(gate * alpha), of every second number each, both clipped. */
static frag_tensor apply_clipped_gate(frag_tape *tape, frag_tensor both)
{
    uint64_t half = frag_tape_count(tape, both) / 2;
    frag_tensor gate = frag_aten_slice(tape, both, half);
    frag_tensor up = frag_aten_slice(tape, both, half);
    frag_tape_set_strided(tape, gate);
    frag_tape_set_strided(tape, up);
    frag_family_will_save(tape, gate);
    frag_tape_set(tape, &gate, frag_aten_clamp_one(tape, gate));
    frag_family_will_save(tape, up);
    frag_tape_set(tape, &up, frag_aten_clamp(tape, up, 0, 0));
    frag_tensor share = frag_aten_mul_scalar(tape, gate);
    frag_tape_set(tape, &share, frag_aten_sigmoid(tape, share));
    frag_tensor linear = frag_aten_mul(tape, gate, share);
    frag_tape_drop(tape, share);
    frag_tensor shifted = frag_aten_add_scalar(tape, up);
    frag_tensor made = frag_aten_mul(tape, shifted, linear);
    frag_tape_drop(tape, shifted);
    frag_tape_drop(tape, gate);
    frag_tape_drop(tape, up);
    frag_tape_drop(tape, linear);
    return made;
}

/* x times the matrix of each row's expert, and its bias, where there are any: the old ones in
 * *biases go when the new ones are there. */
static frag_tensor multiply_grouped(frag_tape *tape, frag_tensor x, const frag_tensor of[2],
                                    const frag_tensor sorted[2], const frag_matrix_shape *shape,
                                    frag_tensor *biases)
{
    if (of[1] != 0)
        frag_tape_set(tape, biases, frag_aten_gather(tape, of[1], sorted[0], shape->columns));
    frag_tensor made = frag_aten_grouped_mm(tape, x, of[0], sorted[1], shape);
    return of[1] != 0 ? frag_aten_add_in_place(tape, made, *biases) : made;
}

/* grouped_mm_experts_forward */
static frag_tensor run_grouped(frag_tape *tape, const frag_network *of, const frag_experts *at,
                               frag_tensor x, const frag_routing *by)
{
    uint64_t rows = frag_tape_count(tape, x) / of->width;
    uint64_t pairs = rows * of->experts_chosen;
    frag_tensor flat_weights = frag_aten_view(tape, by->weights);
    frag_tensor sorted = frag_tape_empty(tape, pairs, FRAG_I64);
    frag_tensor order = frag_tape_empty(tape, pairs, FRAG_I64);
    frag_aten_sort(tape, pairs);
    frag_tensor row_of = frag_tape_empty(tape, pairs, FRAG_I64);
    frag_tensor selected = frag_aten_gather(tape, x, row_of, of->width);
    frag_tape_drop(tape, row_of);
    frag_tensor sorted_weights = frag_aten_gather(tape, flat_weights, order, 1);
    frag_tensor small = frag_tape_empty(tape, pairs, FRAG_I32);
    frag_tensor counts = frag_tape_empty(tape, of->experts, FRAG_I32);
    frag_tensor offsets = frag_tape_empty(tape, of->experts, FRAG_I32);
    frag_aten_scan(tape, of->experts, FRAG_F32);
    frag_tensor biases = 0;
    const frag_tensor by_expert[2] = {sorted, offsets};
    frag_tensor made =
        multiply_grouped(tape, selected, (frag_tensor[]){at->gate_up, at->gate_up_bias}, by_expert,
                         &(frag_matrix_shape){pairs, of->width, 2 * of->expert_inner}, &biases);
    frag_tape_set(tape, &made,
                  of->has_clipped_experts ? apply_clipped_gate(tape, made)
                                          : apply_gate(tape, of, made));
    frag_tape_set(tape, &made,
                  multiply_grouped(tape, made, (frag_tensor[]){at->down, at->down_bias}, by_expert,
                                   &(frag_matrix_shape){pairs, of->expert_inner, of->width},
                                   &biases));
    frag_tensor weighted = frag_aten_mul(tape, made, sorted_weights);
    frag_tensor inverse = frag_tape_empty(tape, pairs, FRAG_I64);
    frag_tape_drop(tape, frag_tape_empty(tape, pairs, FRAG_I64));
    frag_tape_set(tape, &weighted, frag_aten_gather(tape, weighted, inverse, of->width));
    /* The gradient of a sum repeats, unless there is one expert alone. */
    frag_tensor shaped =
        (of->experts_chosen > 1 ? frag_aten_view_copied : frag_aten_view)(tape, weighted);
    frag_tensor sum = frag_aten_sum(
        tape, shaped, &(frag_reduction){rows * of->width, of->experts_chosen, false, 0});
    frag_tape_drop(tape, shaped);
    frag_tape_set(tape, &made, frag_tape_keep(tape, made));
    frag_tensor typed = frag_tape_to(tape, sum, frag_tape_dtype(tape, x));
    const frag_tensor names[] = {flat_weights, sorted,  order,   selected, sorted_weights,
                                 small,        counts,  offsets, biases,   made,
                                 weighted,     inverse, sum};
    frag_tape_drop_all(tape, names, sizeof names / sizeof *names);
    return typed;
}

/* ---- one after the other */
static uint64_t draw_share(const frag_workload *workload, uint64_t place, uint64_t expert)
{
    uint64_t state = workload->seed + place * FRAG_RANDOM_STEP;
    return frag_lengths_at(&workload->expert_shares, expert, &state);
}

/* How many rows each expert gets: by its share, none more than there are. Where all shares are 0
 * the first get all. */
static uint64_t *count_rows(const frag_model *model, const frag_experts *at, uint64_t rows,
                            const frag_batch *batch)
{
    const frag_network *of = &model->workload->network;
    uint64_t draw = batch->number * frag_network_expert_layers(of) + at->place;
    uint64_t *counts = frag_alloc(of->experts, sizeof *counts);
    uint64_t total = 0;
    for (uint64_t i = 0; i < of->experts; i++) {
        counts[i] = draw_share(model->workload, draw * of->experts + i, i);
        total += counts[i];
    }
    uint64_t pairs = rows * of->experts_chosen;
    uint64_t before = 0;
    uint64_t left = total == 0 ? pairs : 0;
    for (uint64_t i = 0; i < of->experts; i++) {
        uint64_t until = before + counts[i];
        if (total > 0)
            left += pairs * until / total - pairs * before / total;
        before = until;
        counts[i] = left < rows ? left : rows;
        left -= counts[i];
    }
    for (uint64_t i = 0; i < of->experts; i++) {
        uint64_t more = left < rows - counts[i] ? left : rows - counts[i];
        counts[i] += more;
        left -= more;
    }
    return counts;
}

/* Names of Python that last until the next expert has made its own. */
typedef struct one_expert {
    frag_tensor places; /* rows and their choices, in one */
    frag_tensor hidden;
    frag_tensor rows;
    frag_tensor parts[2];
} one_expert;

static void run_expert(frag_tape *tape, const frag_network *of, const frag_experts *at,
                       frag_tensor x, const frag_routing *by, uint64_t count, one_expert *names,
                       frag_tensor *sum)
{
    frag_tape_drop(tape, frag_tape_empty(tape, 1, FRAG_BOOL)); /* is it one more than there are? */
    const frag_nonzero hit = {frag_tape_count(tape, by->chosen), count, 2, true};
    frag_tape_set(tape, &names->places, frag_aten_nonzero(tape, &hit));
    frag_tensor row_of = frag_tape_view(tape, names->places, count);
    frag_tape_set(tape, &names->rows, frag_aten_gather(tape, x, row_of, of->width));
    uint64_t inner = 2 * of->expert_inner;
    frag_tensor weight = frag_aten_slice(tape, at->gate_up, inner * of->width);
    frag_tensor both = frag_aten_linear(tape, names->rows, weight, 0, inner);
    frag_tape_drop(tape, weight);
    frag_tensor parts[2];
    frag_family_halve(tape, both, parts);
    frag_tape_drop(tape, both);
    for (uint32_t i = 0; i < 2; i++)
        frag_tape_set(tape, &names->parts[i], parts[i]);
    frag_tape_set(tape, &names->hidden, multiply_gate(tape, of, parts));
    weight = frag_aten_slice(tape, at->down, of->expert_inner * of->width);
    frag_tape_set(tape, &names->hidden,
                  frag_aten_linear(tape, names->hidden, weight, 0, of->width));
    frag_tape_drop(tape, weight);
    frag_tensor share = frag_aten_pick(tape, by->weights, row_of);
    frag_tape_set(tape, &names->hidden, frag_aten_mul(tape, names->hidden, share));
    frag_tape_drop(tape, share);
    frag_tensor typed = frag_tape_to(tape, names->hidden, frag_tape_dtype(tape, *sum));
    *sum = frag_aten_index_add_in_place(tape, *sum, row_of, typed);
    frag_tape_drop(tape, typed);
    frag_tape_drop(tape, row_of);
}

/* The forward pass of the module itself. */
static frag_tensor run_eager(frag_tape *tape, const frag_model *model, const frag_experts *at,
                             frag_tensor x, const frag_routing *by, const frag_batch *batch)
{
    const frag_network *of = &model->workload->network;
    uint64_t rows = frag_tape_count(tape, x) / of->width;
    uint64_t *counts = count_rows(model, at, rows, batch);
    uint64_t hit_count = 0;
    for (uint64_t i = 0; i < of->experts; i++)
        hit_count += counts[i] > 0;
    frag_tensor sum = frag_tape_empty(tape, rows * of->width, frag_tape_dtype(tape, x));
    frag_tensor mask =
        frag_tape_empty(tape, rows * of->experts_chosen * (of->experts + 1), FRAG_I64);
    frag_tensor hits = frag_tape_empty(tape, of->experts + 1, FRAG_I64);
    frag_aten_reduce_buffers(
        tape, &(frag_reduction){of->experts + 1, rows * of->experts_chosen, false, 8});
    frag_tensor is_hit = frag_tape_empty(tape, of->experts + 1, FRAG_BOOL);
    frag_tape_drop(tape, hits);
    frag_tensor hit =
        frag_aten_nonzero(tape, &(frag_nonzero){of->experts + 1, hit_count, 1, false});
    frag_tape_drop(tape, is_hit);
    one_expert names = {0};
    for (uint64_t i = 0; i < of->experts; i++)
        if (counts[i] > 0)
            run_expert(tape, of, at, x, by, counts[i], &names, &sum);
    frag_free(counts);
    frag_tape_drop(tape, mask);
    frag_tape_drop(tape, hit);
    frag_tape_drop(tape, names.places);
    frag_tape_drop(tape, names.rows);
    frag_tape_drop(tape, names.parts[0]);
    frag_tape_drop(tape, names.parts[1]);
    frag_tape_drop(tape, names.hidden);
    return sum;
}

frag_tensor frag_experts_apply(frag_tape *tape, const frag_model *model, const frag_experts *at,
                               frag_tensor x, const frag_batch *batch, frag_routing *kept)
{
    const frag_network *of = &model->workload->network;
    frag_experts named = *at;
    if (of->has_scored_routing)
        named.choice_bias = model->buffers[at->place];
    /* DeepSeek's router looks at the hidden states by a view of its own, made before. */
    frag_routing by = {0};
    if (of->has_exact_router)
        by = route(tape, of, &named, x);
    /* A gate of a shared expert reads the same rows, and the caller has made them. */
    frag_tensor rows = of->has_shared_gate ? frag_tape_keep(tape, x) : frag_aten_view(tape, x);
    if (!of->has_exact_router)
        by = route(tape, of, &named, rows);
    bool is_grouped = model->workload->experts_implementation == FRAG_EXPERTS_GROUPED;
    frag_tensor made = is_grouped ? run_grouped(tape, of, at, rows, &by)
                                  : run_eager(tape, model, at, rows, &by, batch);
    frag_tape_drop(tape, rows);
    if (!of->has_shared_gate)
        frag_tape_set(tape, &made, frag_aten_view(tape, made));
    *kept = by;
    return made;
}

void frag_routing_drop(frag_tape *tape, const frag_routing *of)
{
    frag_tape_drop(tape, of->logits);
    frag_tape_drop(tape, of->weights);
    frag_tape_drop(tape, of->chosen);
}
