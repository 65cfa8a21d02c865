#include "workload/optimizer.h"

#include "base/memory.h"

struct frag_optimizer_state {
    const frag_model *model;
    bool has_state; /* the first step has been */
};

frag_optimizer_state *frag_optimizer_create(const frag_model *model)
{
    frag_optimizer_state *state = frag_alloc(1, sizeof *state);
    state->model = model;
    return state;
}

void frag_optimizer_destroy(frag_optimizer_state *state)
{
    frag_free(state);
}

static frag_tensor like(frag_tape *tape, frag_tensor of)
{
    return frag_tape_empty(tape, frag_tape_count(tape, of), frag_tape_dtype(tape, of));
}

/* Averages of gradients and of their squares; fused, the step's number is on the GPU as well. */
static void make_adam_state(frag_tape *tape, const frag_optimizer_state *state)
{
    const frag_model *model = state->model;
    for (uint32_t i = 0; i < model->parameter_count; i++) {
        if (model->workload->optimizer_loop == FRAG_LOOP_FUSED)
            (void)frag_tape_empty(tape, 1, FRAG_F32);
        (void)like(tape, model->parameters[i]);
        (void)like(tape, model->parameters[i]);
    }
}

/* exp_avg_sq.sqrt() of all parameters at once; the list goes from its end. */
static void step_adam_foreach(frag_tape *tape, const frag_model *model)
{
    frag_tensor *roots = frag_alloc((size_t)model->parameter_count + 1, sizeof *roots);
    for (uint32_t i = 0; i < model->parameter_count; i++)
        roots[i] = like(tape, model->parameters[i]);
    for (uint32_t i = model->parameter_count; i > 0; i--)
        frag_tape_drop(tape, roots[i - 1]);
    frag_free(roots);
}

/* denom = (exp_avg_sq.sqrt() / bias_correction2_sqrt).add_(eps), one parameter after the other */
static void step_adam_single(frag_tape *tape, const frag_model *model)
{
    frag_tensor denominator = 0;
    for (uint32_t i = 0; i < model->parameter_count; i++) {
        frag_tensor root = like(tape, model->parameters[i]);
        frag_tensor divided = like(tape, root);
        frag_tape_drop(tape, root);
        frag_tape_set(tape, &denominator, divided);
    }
    frag_tape_drop(tape, denominator);
}

static void step_adam(frag_tape *tape, frag_optimizer_state *state)
{
    if (!state->has_state)
        make_adam_state(tape, state);
    if (state->model->workload->optimizer_loop == FRAG_LOOP_FOREACH)
        step_adam_foreach(tape, state->model);
    else if (state->model->workload->optimizer_loop == FRAG_LOOP_SINGLE)
        step_adam_single(tape, state->model);
}

void frag_optimizer_step(frag_tape *tape, frag_optimizer_state *state)
{
    const frag_model *model = state->model;
    switch ((frag_optimizer)model->workload->optimizer) {
    case FRAG_OPTIMIZER_ADAMW:
    case FRAG_OPTIMIZER_ADAM:
        step_adam(tape, state);
        break;
    case FRAG_OPTIMIZER_MOMENTUM:
        for (uint32_t i = 0; i < model->parameter_count && !state->has_state; i++)
            (void)like(tape, model->parameters[i]);
        break;
    case FRAG_OPTIMIZER_SGD:
        break;
    }
    state->has_state = true;
}

void frag_optimizer_zero_gradients(frag_tape *tape, frag_optimizer_state *state)
{
    const frag_model *model = state->model;
    for (uint32_t i = 0; i < model->parameter_count && !model->workload->keeps_gradients; i++)
        frag_tape_clear_gradient(tape, model->parameters[i]);
}
