#include "workload/optimizer.h"

#include "base/memory.h"
#include "workload/galore.h"

struct frag_optimizer_state {
    const frag_model *model;
    frag_galore *galore; /* NULL: another optimizer */
    bool has_state;      /* the first step has been */
    bool has_maps;       /* what 8 bits stand for, on the GPU */
};

frag_optimizer_state *frag_optimizer_create(const frag_model *model)
{
    frag_optimizer_state *state = frag_alloc(1, sizeof *state);
    state->model = model;
    if (model->workload->optimizer == FRAG_OPTIMIZER_GALORE_ADAMW)
        state->galore = frag_galore_create(model);
    return state;
}

void frag_optimizer_destroy(frag_optimizer_state *state)
{
    frag_galore_destroy(state->galore);
    frag_free(state);
}

/* Optimizers pass over parameters without a gradient. */
static bool is_trained(const frag_tape *tape, const frag_model *model, uint32_t i)
{
    return frag_tape_gradient(tape, model->parameters[i]) != 0;
}

/* So many averages of each parameter's shape; fused, the step's number is on the GPU as well. */
static void make_averages(frag_tape *tape, const frag_optimizer_state *state, uint32_t count)
{
    const frag_model *model = state->model;
    frag_tape_set_kind(tape, FRAG_REQUEST_OPTIMIZER);
    for (uint32_t i = 0; i < model->parameter_count && !state->has_state; i++) {
        if (!is_trained(tape, model, i))
            continue;
        if (model->workload->optimizer_loop == FRAG_LOOP_FUSED)
            (void)frag_tape_empty(tape, 1, FRAG_F32);
        for (uint32_t average = 0; average < count; average++)
            (void)frag_tape_empty_like(tape, model->parameters[i]);
    }
    frag_tape_set_kind(tape, FRAG_REQUEST_TEMPORARY);
}

/* A list goes from its end, when the next one is there. */
static void drop_roots(frag_tape *tape, frag_tensor *roots, uint32_t count)
{
    for (uint32_t i = count; i > 0; i--)
        frag_tape_drop(tape, roots[i - 1]);
    frag_free(roots);
}

/* exp_avg_sq.sqrt() of all parameters of a type at once; the type that came last is first
 * (_group_tensors_by_device_and_dtype). */
static void take_roots_foreach(frag_tape *tape, const frag_model *model)
{
    enum { TYPES = 3 };
    const uint32_t count = model->parameter_count;
    frag_dtype types[TYPES];
    uint32_t type_count = 0;
    for (uint32_t i = 0; i < count; i++) {
        frag_dtype dtype = frag_tape_dtype(tape, model->parameters[i]);
        bool is_known = !is_trained(tape, model, i);
        for (uint32_t type = 0; type < type_count; type++)
            is_known = is_known || types[type] == dtype;
        if (!is_known) {
            FRAG_ASSERT(type_count < TYPES);
            types[type_count++] = dtype;
        }
    }
    frag_tensor *before = NULL;
    for (uint32_t type = type_count; type > 0; type--) {
        frag_tensor *roots = frag_alloc((size_t)count + 1, sizeof *roots);
        for (uint32_t i = 0; i < count; i++)
            if (is_trained(tape, model, i) &&
                frag_tape_dtype(tape, model->parameters[i]) == types[type - 1])
                roots[i] = frag_tape_empty_like(tape, model->parameters[i]);
        if (before != NULL)
            drop_roots(tape, before, count);
        before = roots;
    }
    if (before != NULL)
        drop_roots(tape, before, count);
}

/* One parameter after the other. Adam's is divided, which makes another:
 * denom = (exp_avg_sq.sqrt() / bias_correction2_sqrt).add_(eps) */
static void take_roots_single(frag_tape *tape, const frag_model *model, bool is_divided)
{
    frag_tensor denominator = 0;
    for (uint32_t i = 0; i < model->parameter_count; i++) {
        if (!is_trained(tape, model, i))
            continue;
        frag_tensor root = frag_tape_empty_like(tape, model->parameters[i]);
        if (is_divided)
            frag_tape_set(tape, &root, frag_tape_empty_like(tape, root));
        frag_tape_set(tape, &denominator, root);
    }
    frag_tape_drop(tape, denominator);
}

static void take_roots(frag_tape *tape, const frag_model *model, bool is_adam)
{
    if (model->workload->optimizer_loop == FRAG_LOOP_FOREACH)
        take_roots_foreach(tape, model);
    else if (model->workload->optimizer_loop == FRAG_LOOP_SINGLE)
        take_roots_single(tape, model, is_adam);
}

/* ---- Adafactor: without foreach named it goes over one parameter after the other */
/* What the variance of a matrix is made of: a number for each row and each column. */
static void make_factors(frag_tape *tape, const frag_optimizer_state *state)
{
    const frag_model *model = state->model;
    for (uint32_t i = 0; i < model->parameter_count && !state->has_state; i++) {
        frag_dtype dtype = frag_tape_dtype(tape, model->parameters[i]);
        const frag_shape *shape = &model->forms[i].shape;
        uint64_t matrices = model->forms[i].matrices;
        if (is_trained(tape, model, i) && shape->rows > 0)
            (void)frag_tape_empty(tape, matrices * shape->rows, dtype);
        if (is_trained(tape, model, i))
            (void)frag_tape_empty(tape, matrices * shape->columns, dtype);
    }
}

static frag_tensor reduce(frag_tape *tape, frag_reduction of, frag_dtype dtype)
{
    frag_tensor made = frag_tape_empty(tape, of.outputs, dtype);
    frag_aten_reduce_buffers(tape, &of);
    return made;
}

/* Names of Python that live on while the next parameter is looked at. */
typedef struct factored {
    frag_tensor row_mean;
    frag_tensor column_mean;
    frag_tensor squares;
    frag_tensor estimate;
    frag_tensor update;
} factored;

static void step_factored(frag_tape *tape, const frag_model *model, uint32_t i, factored *names)
{
    frag_tensor parameter = model->parameters[i];
    const frag_shape *shape = &model->forms[i].shape;
    frag_dtype dtype = frag_tape_dtype(tape, parameter);
    uint64_t matrices = model->forms[i].matrices;
    const frag_reduction whole = {1, frag_tape_count(tape, parameter), true, 0};
    frag_tape_drop(tape, reduce(tape, whole, dtype));
    if (shape->rows > 0) {
        frag_tape_set(
            tape, &names->row_mean,
            reduce(tape, (frag_reduction){matrices * shape->rows, shape->columns, true, 0}, dtype));
        frag_tape_set(tape, &names->column_mean,
                      reduce(tape,
                             (frag_reduction){matrices * shape->columns, shape->rows, false, 0},
                             dtype));
        frag_tape_set(tape, &names->estimate, frag_tape_empty_like(tape, parameter));
        frag_tape_use_blas(tape);
        frag_tape_drop(tape, reduce(tape, (frag_reduction){matrices, shape->rows, true, 0}, dtype));
    } else {
        frag_tape_set(tape, &names->squares, frag_tape_empty_like(tape, parameter));
        frag_tape_set(tape, &names->estimate, frag_tape_empty_like(tape, parameter));
    }
    frag_tape_set(tape, &names->update, frag_tape_keep(tape, names->estimate));
    frag_tape_drop(tape, reduce(tape, whole, dtype));
}

static void step_adafactor(frag_tape *tape, const frag_optimizer_state *state)
{
    factored names = {0};
    frag_tape_set_kind(tape, FRAG_REQUEST_OPTIMIZER);
    make_factors(tape, state);
    frag_tape_set_kind(tape, FRAG_REQUEST_TEMPORARY);
    for (uint32_t i = 0; i < state->model->parameter_count; i++)
        if (is_trained(tape, state->model, i))
            step_factored(tape, state->model, i, &names);
    frag_tape_drop(tape, names.row_mean);
    frag_tape_drop(tape, names.column_mean);
    frag_tape_drop(tape, names.squares);
    frag_tape_drop(tape, names.estimate);
    frag_tape_drop(tape, names.update);
}

/* ---- bitsandbytes: averages in fp32 or, of large parameters, in 8 bits; paged ones are in memory
 * that PyTorch knows nothing of */
static void make_bitsandbytes(frag_tape *tape, frag_optimizer_state *state)
{
    enum { LARGE = 4096, PAGED = 100000, BLOCK = 256, MAP = 256 };
    const frag_model *model = state->model;
    uint64_t optimizer = model->workload->optimizer;
    bool is_paged = optimizer != FRAG_OPTIMIZER_ADAMW_8BIT;
    frag_tape_set_kind(tape, FRAG_REQUEST_OPTIMIZER);
    for (uint32_t i = 0; i < model->parameter_count && !state->has_state; i++) {
        if (!is_trained(tape, model, i))
            continue;
        uint64_t count = frag_tape_count(tape, model->parameters[i]);
        bool is_small = optimizer != FRAG_OPTIMIZER_PAGED_ADAMW && count >= LARGE;
        for (uint32_t map = 0; map < 2 && is_small && !state->has_maps; map++)
            (void)frag_tape_empty(tape, MAP, FRAG_F32);
        state->has_maps |= is_small;
        for (uint32_t average = 0; average < 2 && (!is_paged || count < PAGED); average++)
            (void)frag_tape_empty(tape, count, is_small ? FRAG_BOOL : FRAG_F32);
        for (uint32_t average = 0; average < 2 && is_small; average++)
            (void)frag_tape_empty(tape, (count + BLOCK - 1) / BLOCK, FRAG_F32);
    }
    frag_tape_set_kind(tape, FRAG_REQUEST_TEMPORARY);
}

void frag_optimizer_step(frag_tape *tape, frag_optimizer_state *state)
{
    const frag_model *model = state->model;
    switch ((frag_optimizer)model->workload->optimizer) {
    case FRAG_OPTIMIZER_ADAMW:
    case FRAG_OPTIMIZER_ADAM:
        make_averages(tape, state, model->workload->has_amsgrad ? 3 : 2);
        take_roots(tape, model, true);
        break;
    case FRAG_OPTIMIZER_RMSPROP:
        make_averages(tape, state, 1);
        take_roots(tape, model, false);
        break;
    case FRAG_OPTIMIZER_ADAFACTOR:
        step_adafactor(tape, state);
        break;
    case FRAG_OPTIMIZER_ADAMW_8BIT:
    case FRAG_OPTIMIZER_PAGED_ADAMW:
    case FRAG_OPTIMIZER_PAGED_ADAMW_8BIT:
        make_bitsandbytes(tape, state);
        break;
    case FRAG_OPTIMIZER_GALORE_ADAMW:
        frag_galore_step(tape, state->galore);
        break;
    case FRAG_OPTIMIZER_MOMENTUM:
        frag_tape_set_kind(tape, FRAG_REQUEST_OPTIMIZER);
        for (uint32_t i = 0; i < model->parameter_count && !state->has_state; i++)
            if (is_trained(tape, model, i))
                (void)frag_tape_empty_like(tape, model->parameters[i]);
        frag_tape_set_kind(tape, FRAG_REQUEST_TEMPORARY);
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
