#include "workload/families/family.h"

#include "base/memory.h"

void frag_model_build(frag_tape *tape, const frag_family *family, frag_model *model)
{
    frag_walk at = {.tape = tape, .workload = model->workload, .model = model};
    family->build(&at, &model->workload->network);
}

void frag_model_require_inputs(frag_tape *tape, const frag_model *model, frag_tensor hidden)
{
    const frag_workload *workload = model->workload;
    const frag_family_fields *family = &frag_families[workload->network.family];
    /* Of a model that reads no ids peft alone asks for it, and not where weights are quantised. */
    bool is_asked =
        workload->quantize == FRAG_QUANTIZE_NONE || (!family->has_sounds && !family->has_images);
    if (is_asked && workload->lora_rank > 0 && workload->checkpoint != FRAG_CHECKPOINT_NONE &&
        frag_tape_is_recording(tape))
        frag_tape_require_gradient(tape, hidden);
}

bool frag_model_has_checkpoints(const frag_model *model)
{
    const frag_workload *workload = model->workload;
    /* diffusers asks whether gradients are wanted, transformers whether the model is trained. */
    bool wants_gradients = frag_families[workload->network.family].is_diffusion &&
                           workload->task == FRAG_TASK_EVALUATE && !workload->has_no_grad;
    return workload->checkpoint != FRAG_CHECKPOINT_NONE &&
           (workload->task == FRAG_TASK_TRAIN || wants_gradients);
}

frag_tensor frag_model_call(frag_tape *tape, const frag_model *model, const frag_region_call *block,
                            frag_tensor input)
{
    return frag_model_has_checkpoints(model) ? frag_tape_checkpoint(tape, block, input)
                                             : block->run(tape, block->context, input);
}

void frag_model_pass_block(frag_tape *tape, const frag_model *model, uint64_t number,
                           const frag_region_call *block, frag_tensor *hidden)
{
    if (model->groups != NULL && frag_model_has_checkpoints(model) &&
        frag_tape_is_recording(tape)) {
        bool is_last = number + 1 == model->workload->network.layers;
        frag_block_groups_pass(tape, model->groups, block, is_last, hidden);
        return;
    }
    frag_tensor input = frag_shards_enter(tape, model, number, *hidden);
    frag_tensor output = frag_model_call(tape, model, block, input);
    frag_tape_drop(tape, input);
    frag_shards_leave(tape, model, number, output);
    frag_tape_set(tape, hidden, output);
}

bool frag_model_drops(const frag_model *model, double share)
{
    return model->workload->task == FRAG_TASK_TRAIN && share > 0;
}

frag_tensor frag_model_drop_out(frag_tape *tape, const frag_model *model, frag_tensor x,
                                double share)
{
    return frag_aten_dropout(tape, x, frag_model_drops(model, share));
}

frag_tensor frag_model_drop_residual(frag_tape *tape, const frag_model *model, frag_tensor x)
{
    return frag_model_drop_out(tape, model, x, model->workload->network.residual_dropout);
}

frag_attention_shape frag_model_attention(const frag_model *model, const frag_batch *batch)
{
    const frag_network *of = &model->workload->network;
    return (frag_attention_shape){
        .batch = batch->count,
        .heads = of->heads,
        .key_heads = of->key_heads,
        .queries = batch->tokens,
        .keys = batch->past + batch->tokens,
        .width = of->head_width,
        .has_dropout = frag_model_drops(model, of->attention_dropout),
    };
}

/* A stage calls blocks itself, not through the model of transformers. */
static bool is_pipelined(const frag_model *model)
{
    return model->workload->parallel == FRAG_PARALLEL_PIPELINE;
}

void frag_family_load_tokens(frag_tape *tape, const frag_model *model, frag_batch *batch)
{
    const frag_workload *workload = model->workload;
    const uint64_t head = workload->head;
    const uint64_t tokens = batch->count * batch->tokens;
    bool is_single = frag_workload_problem(workload) == FRAG_PROBLEM_SINGLE;
    frag_tape_set(tape, &batch->ids, frag_tape_empty(tape, tokens, FRAG_I64));
    if (head == FRAG_HEAD_LM) {
        batch->labels = batch->ids;
        return;
    }
    uint64_t count = head == FRAG_HEAD_TOKEN ? tokens : batch->count;
    frag_tape_set(tape, &batch->labels,
                  is_single ? frag_tape_empty(tape, count, FRAG_I64)
                            : frag_tape_empty(tape, count * workload->labels, model->dtype));
    if (head == FRAG_HEAD_ANSWER)
        frag_tape_set(tape, &batch->ends, frag_tape_empty(tape, batch->count, FRAG_I64));
}

void frag_family_load_pairs(frag_tape *tape, const frag_model *model, frag_batch *batch)
{
    uint64_t tokens = model->workload->target_tokens;
    frag_tensor ids = frag_tape_empty(tape, batch->count * batch->tokens, FRAG_I64);
    frag_tape_set(tape, &batch->ids, ids);
    frag_tape_set(
        tape, &batch->labels,
        frag_tape_empty(tape, batch->count * (tokens > 0 ? tokens : batch->tokens), FRAG_I64));
}

void frag_family_look_for_padding(frag_tape *tape, const frag_batch *batch)
{
    enum { ENDS = 2 };
    frag_tensor ends = frag_tape_empty(tape, ENDS, FRAG_I64);
    frag_tape_set(tape, &ends, frag_tape_empty(tape, ENDS * batch->count, FRAG_I64));
    frag_tensor is_padding = frag_tape_empty(tape, ENDS * batch->count, FRAG_BOOL);
    frag_tape_drop(tape, frag_tape_empty(tape, 1, FRAG_BOOL));
    frag_tape_drop(tape, is_padding);
    frag_tape_drop(tape, ends);
}

frag_tensor frag_family_shift(frag_tape *tape, const frag_batch *batch)
{
    uint64_t count = frag_tape_count(tape, batch->labels);
    frag_tensor made = frag_tape_empty(tape, count, FRAG_I64);
    frag_tape_drop(tape, frag_tape_empty(tape, count - batch->count, FRAG_I64));
    frag_tape_drop(tape, frag_tape_empty(tape, count, FRAG_BOOL));
    return made;
}

void frag_family_load_images(frag_tape *tape, const frag_model *model, frag_batch *batch)
{
    const frag_network *of = &model->workload->network;
    uint64_t pixels = of->image * of->image * of->image_channels;
    batch->tokens = of->positions;
    frag_tape_set(tape, &batch->ids, frag_tape_empty(tape, batch->count * pixels, model->dtype));
    frag_tape_set(tape, &batch->labels, frag_tape_empty(tape, batch->count, FRAG_I64));
}

void frag_family_return(frag_tape *tape, const frag_batch *batch, frag_tensor made)
{
    frag_outputs *outputs = batch->outputs;
    if (outputs != NULL && made != 0)
        *FRAG_APPEND(outputs->tensors, outputs->count, outputs->capacity) =
            frag_tape_keep(tape, made);
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

frag_tensor frag_family_loss(frag_tape *tape, frag_tensor logits, const frag_batch *batch)
{
    frag_tensor flat = frag_aten_view(tape, logits);
    frag_tensor loss = frag_aten_cross_entropy(tape, flat, batch->labels);
    frag_family_return(tape, batch, logits);
    frag_tape_drop(tape, flat);
    frag_tape_drop(tape, logits);
    return loss;
}

frag_tensor frag_family_class_loss(frag_tape *tape, const frag_model *model, frag_tensor logits,
                                   const frag_batch *batch)
{
    const frag_problem problem = frag_workload_problem(model->workload);
    if (problem == FRAG_PROBLEM_SINGLE)
        return frag_family_loss(tape, logits, batch);
    if (problem == FRAG_PROBLEM_MULTI) {
        frag_tensor made = frag_aten_binary_cross_entropy(tape, logits, batch->labels);
        frag_family_return(tape, batch, logits);
        frag_tape_drop(tape, logits);
        return made;
    }
    bool is_cast = frag_tape_autocast(tape) != FRAG_F32;
    frag_tensor flat = frag_aten_view(tape, logits);
    frag_tensor wide = is_cast ? frag_tape_to(tape, flat, FRAG_F32) : frag_tape_keep(tape, flat);
    frag_tensor loss = frag_aten_mse_loss(tape, wide, batch->labels);
    frag_family_return(tape, batch, logits);
    frag_tape_drop(tape, wide);
    frag_tape_drop(tape, flat);
    frag_tape_drop(tape, logits);
    return loss;
}

frag_tensor frag_family_classify(frag_tape *tape, const frag_linear *head, frag_tensor pooled,
                                 const frag_batch *batch)
{
    frag_tensor logits = frag_walk_apply(tape, pooled, head);
    frag_tape_drop(tape, pooled);
    return frag_family_loss(tape, logits, batch);
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

void frag_family_halve(frag_tape *tape, frag_tensor both, frag_tensor parts[2])
{
    frag_aten_split(tape, both, parts, 2);
    for (uint32_t i = 0; i < 2; i++)
        frag_tape_set_strided(tape, parts[i]);
}

void frag_family_will_save(frag_tape *tape, frag_tensor x)
{
    if (frag_tape_needs_gradient(tape, x))
        frag_tape_will_save(tape, x);
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
    case FRAG_RELU2:
        break;
    }
    frag_tensor made = frag_aten_relu(tape, x);
    if (activation == FRAG_RELU2)
        frag_tape_set(tape, &made, frag_aten_pow(tape, made));
    return made;
}

frag_tensor frag_family_positions(frag_tape *tape, uint64_t tokens)
{
    frag_tensor range = frag_tape_empty(tape, tokens, FRAG_I64);
    frag_tensor moved = frag_tape_empty(tape, tokens, FRAG_I64);
    frag_tape_drop(tape, range);
    return moved;
}

frag_tensor frag_model_positions(frag_tape *tape, const frag_model *model, uint64_t tokens)
{
    return is_pipelined(model) ? frag_tape_empty(tape, tokens, FRAG_I64)
                               : frag_family_positions(tape, tokens);
}

void frag_model_find_packed(frag_tape *tape, const frag_model *model, const frag_batch *batch,
                            const frag_cache *past)
{
    /* The masks of gpt-oss are asked for without positions. */
    if (past != NULL || is_pipelined(model) || model->workload->network.has_sinks)
        return;
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
