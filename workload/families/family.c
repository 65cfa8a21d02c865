#include "workload/families/family.h"

#include "base/memory.h"

static frag_tensor add(frag_tape *tape, frag_model *model, frag_shape shape, frag_dtype dtype,
                       bool is_frozen)
{
    uint64_t count = shape.rows > 0 ? shape.rows * shape.columns : shape.columns;
    uint32_t index = model->parameter_count++;
    model->shapes = frag_grow(model->shapes, &model->shapes_capacity, model->parameter_count,
                              sizeof *model->shapes);
    model->parameters = frag_grow(model->parameters, &model->parameters_capacity,
                                  model->parameter_count, sizeof *model->parameters);
    model->shapes[index] = shape;
    model->parameters[index] = frag_tape_parameter(tape, count, dtype, is_frozen);
    return model->parameters[index];
}

frag_tensor frag_model_add(frag_tape *tape, frag_model *model, frag_shape shape)
{
    return add(tape, model, shape, model->dtype, model->workload->lora_rank > 0);
}

void frag_model_require_inputs(frag_tape *tape, const frag_model *model, frag_tensor hidden)
{
    if (model->workload->lora_rank > 0 && frag_model_has_checkpoints(model))
        frag_tape_require_gradient(tape, hidden);
}

frag_tensor frag_walk_parameter(frag_walk *at, frag_shape shape)
{
    return at->model != NULL ? frag_model_add(at->tape, at->model, shape) : *at->at++;
}

/* peft keeps adapters in fp32, whatever the model is in. */
static frag_tensor walk_adapter(frag_walk *at, frag_shape shape)
{
    return at->model != NULL ? add(at->tape, at->model, shape, FRAG_F32, false) : *at->at++;
}

static void walk_adapters(frag_walk *at, frag_shape shape, frag_lora_target target,
                          frag_linear *next)
{
    const frag_workload *workload = at->workload;
    if (workload->lora_rank == 0 ||
        (frag_workload_lora_targets(workload) & (target | FRAG_LORA_ALL)) == 0)
        return;
    next->rank = workload->lora_rank;
    next->dropout = workload->task == FRAG_TASK_TRAIN ? workload->lora_dropout : 0;
    next->down = walk_adapter(at, (frag_shape){next->rank, shape.columns});
    next->up = walk_adapter(at, (frag_shape){shape.rows, next->rank});
}

frag_linear frag_walk_linear(frag_walk *at, frag_shape shape, bool has_bias,
                             frag_lora_target target)
{
    frag_linear next = {.weight = frag_walk_parameter(at, shape), .columns = shape.rows};
    if (has_bias)
        next.bias = frag_walk_parameter(at, (frag_shape){0, shape.rows});
    walk_adapters(at, shape, target, &next);
    return next;
}

frag_linear frag_walk_conv1d(frag_walk *at, frag_shape shape, frag_lora_target target)
{
    frag_linear next = {
        .weight = frag_walk_parameter(at, shape), .columns = shape.columns, .is_turned = true};
    next.bias = frag_walk_parameter(at, (frag_shape){0, shape.columns});
    walk_adapters(at, (frag_shape){shape.columns, shape.rows}, target, &next);
    return next;
}

/* peft's lora.Linear: (result + up(down(dropout(x))) * scaling).to(result.dtype) */
static frag_tensor adapt(frag_tape *tape, frag_tensor x, const frag_linear *of, frag_tensor result)
{
    frag_dtype dtype = frag_tape_dtype(tape, result);
    frag_tensor typed = frag_tape_to(tape, x, FRAG_F32);
    frag_tensor inner = frag_aten_dropout(tape, typed, of->dropout > 0);
    frag_tape_set(tape, &inner, frag_aten_linear(tape, inner, of->down, 0, of->rank));
    frag_tape_set(tape, &inner, frag_aten_linear(tape, inner, of->up, 0, of->columns));
    frag_tape_set(tape, &inner, frag_aten_mul_scalar(tape, inner));
    frag_tensor made = frag_aten_add(tape, result, inner);
    frag_tape_drop(tape, inner);
    frag_tape_drop(tape, result);
    frag_tape_set(tape, &made, frag_tape_to(tape, made, dtype));
    frag_tape_drop(tape, typed);
    return made;
}

frag_tensor frag_walk_apply(frag_tape *tape, frag_tensor x, const frag_linear *of)
{
    frag_tensor result =
        (of->is_turned ? frag_aten_addmm(tape, of->bias, x, of->weight, of->columns)
                       : frag_aten_linear(tape, x, of->weight, of->bias, of->columns));
    return of->rank > 0 ? adapt(tape, x, of, result) : result;
}

bool frag_model_has_checkpoints(const frag_model *model)
{
    return model->workload->checkpoint == FRAG_CHECKPOINT_BLOCKS &&
           model->workload->task == FRAG_TASK_TRAIN;
}

void frag_family_load_tokens(frag_tape *tape, const frag_model *model, frag_batch *batch)
{
    (void)model;
    frag_tape_set(tape, &batch->ids, frag_tape_empty(tape, batch->count * batch->tokens, FRAG_I64));
    batch->labels = batch->ids;
}

void frag_family_load_images(frag_tape *tape, const frag_model *model, frag_batch *batch)
{
    const frag_network *of = &model->workload->network;
    uint64_t pixels = of->image * of->image * of->image_channels;
    batch->tokens = of->positions;
    frag_tape_set(tape, &batch->ids, frag_tape_empty(tape, batch->count * pixels, model->dtype));
    frag_tape_set(tape, &batch->labels, frag_tape_empty(tape, batch->count, FRAG_I64));
}

frag_tensor frag_family_causal_loss(frag_tape *tape, frag_tensor logits, const frag_batch *batch)
{
    uint64_t rows = batch->count * batch->tokens;
    frag_tensor wide = frag_tape_to(tape, logits, FRAG_F32);
    frag_tensor labels = frag_tape_empty(tape, rows + batch->count, FRAG_I64);
    /* labels[..., 1:].contiguous(): a row alone is contiguous as it is. */
    frag_tensor shifted = batch->count == 1 ? frag_tape_view(tape, labels, rows)
                                            : frag_tape_empty(tape, rows, FRAG_I64);
    frag_tape_set(tape, &wide, frag_aten_view(tape, wide));
    frag_tensor loss = frag_aten_cross_entropy(tape, wide, shifted);
    frag_tape_drop(tape, wide);
    frag_tape_drop(tape, labels);
    frag_tape_drop(tape, shifted);
    return loss;
}

/* 0.5 * x * (1.0 + tanh(c * (x + 0.044715 * pow(x, 3.0)))) */
static frag_tensor gelu_new(frag_tape *tape, frag_tensor x)
{
    frag_tensor half = frag_aten_mul_scalar(tape, x);
    frag_tensor inside = frag_aten_pow(tape, x);
    frag_tape_set(tape, &inside, frag_aten_mul_scalar(tape, inside));
    frag_tape_set(tape, &inside, frag_aten_add(tape, x, inside));
    frag_tape_set(tape, &inside, frag_aten_mul_scalar(tape, inside));
    frag_tape_set(tape, &inside, frag_aten_tanh(tape, inside));
    frag_tape_set(tape, &inside, frag_aten_add_scalar(tape, inside));
    frag_tensor made = frag_aten_mul(tape, half, inside);
    frag_tape_drop(tape, half);
    frag_tape_drop(tape, inside);
    return made;
}

frag_tensor frag_family_activate(frag_tape *tape, frag_tensor x, frag_activation activation)
{
    switch (activation) {
    case FRAG_GELU_NEW:
        return gelu_new(tape, x);
    case FRAG_GELU:
        return frag_aten_gelu(tape, x);
    case FRAG_SILU:
        return frag_aten_silu(tape, x);
    case FRAG_RELU:
        break;
    }
    return frag_aten_relu(tape, x);
}

frag_tensor frag_family_positions(frag_tape *tape, uint64_t tokens)
{
    frag_tensor range = frag_tape_empty(tape, tokens, FRAG_I64);
    frag_tensor moved = frag_tape_empty(tape, tokens, FRAG_I64);
    frag_tape_drop(tape, range);
    return moved;
}

void frag_family_find_packed(frag_tape *tape, const frag_batch *batch)
{
    uint64_t count = batch->count * batch->tokens;
    frag_tensor first = frag_tape_empty(tape, batch->count, FRAG_I64);
    frag_tensor joined = frag_tape_empty(tape, count + batch->count, FRAG_I64);
    frag_tensor difference = frag_tape_empty(tape, count, FRAG_I64);
    frag_tape_drop(tape, joined);
    frag_tensor is_other = frag_tape_empty(tape, count, FRAG_BOOL);
    frag_tensor sums = frag_tape_empty(tape, count, FRAG_I64);
    frag_tensor numbers = frag_tape_empty(tape, count, FRAG_I64);
    if (batch->count == 1) /* one row alone is summed by another kernel */
        frag_aten_scan(tape, count, FRAG_I64);
    frag_tape_drop(tape, numbers);
    frag_tape_drop(tape, is_other);
    frag_tensor is_zero = frag_tape_empty(tape, batch->count, FRAG_BOOL);
    frag_tape_drop(tape, frag_tape_empty(tape, 1, FRAG_BOOL));
    frag_tape_drop(tape, is_zero);
    frag_tape_drop(tape, first);
    frag_tape_drop(tape, difference);
    frag_tape_drop(tape, sums);
}
