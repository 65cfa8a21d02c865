/* Parameters of a model in order, and its linear layers: whole, with LoRA's adapters beside them,
 * or with weights of 4 or 8 bits. */
#include "base/memory.h"
#include "workload/families/family.h"

static uint32_t add_form(frag_model *model, frag_form form, frag_parameter_role role)
{
    uint32_t index = model->parameter_count++;
    model->forms = frag_grow(model->forms, &model->forms_capacity, model->parameter_count,
                             sizeof *model->forms);
    model->parameters = frag_grow(model->parameters, &model->parameters_capacity,
                                  model->parameter_count, sizeof *model->parameters);
    model->roles = frag_grow(model->roles, &model->roles_capacity, model->parameter_count,
                             sizeof *model->roles);
    model->forms[index] = form;
    model->forms[index].moved = index;
    model->roles[index] = role;
    return index;
}

static frag_form form_of(frag_shape shape)
{
    return shape.rows > 0 ? (frag_form){shape, 1, 2, shape.rows, 0}
                          : (frag_form){shape, 1, 1, shape.columns, 0};
}

static uint32_t add_place(frag_model *model, frag_shape shape, frag_parameter_role role)
{
    return add_form(model, form_of(shape), role);
}

static uint64_t count_elements(frag_shape shape)
{
    return shape.rows > 0 ? shape.rows * shape.columns : shape.columns;
}

static bool is_quantised(const frag_model *model)
{
    return model->workload->quantize != FRAG_QUANTIZE_NONE;
}

frag_dtype frag_model_loaded_type(const frag_model *model)
{
    return is_quantised(model) ? model->product_dtype : model->dtype;
}

static bool is_frozen(const frag_model *model)
{
    return model->is_frozen || model->workload->lora_rank > 0;
}

static frag_tensor add_typed(frag_tape *tape, frag_model *model, frag_form form, frag_dtype dtype,
                             bool is_kept)
{
    uint32_t index = add_form(model, form, FRAG_PARAMETER_PLAIN);
    model->parameters[index] =
        frag_tape_parameter(tape, form.matrices * count_elements(form.shape), dtype, is_kept);
    return model->parameters[index];
}

static frag_tensor add_loaded(frag_tape *tape, frag_model *model, frag_form form, bool is_kept)
{
    return add_typed(tape, model, form, frag_model_loaded_type(model), is_kept);
}

frag_tensor frag_model_add(frag_tape *tape, frag_model *model, frag_shape shape)
{
    return add_loaded(tape, model, form_of(shape), is_frozen(model));
}

void frag_model_name_first(frag_model *model, uint32_t count, uint32_t moved)
{
    uint32_t first = model->parameter_count - count;
    for (uint32_t i = 0; i < moved; i++) {
        uint32_t from = model->parameter_count - moved + i;
        frag_tensor parameter = model->parameters[from];
        frag_form form = model->forms[from];
        frag_parameter_role role = model->roles[from];
        for (uint32_t at = from; at > first + i; at--) {
            model->parameters[at] = model->parameters[at - 1];
            model->forms[at] = model->forms[at - 1];
            model->roles[at] = model->roles[at - 1];
        }
        model->parameters[first + i] = parameter;
        model->forms[first + i] = form;
        model->roles[first + i] = role;
    }
}

void frag_model_free(frag_model *model)
{
    frag_free(model->buffers);
    frag_free(model->buffer_blocks);
    frag_free(model->block_starts);
    frag_free(model->parameters);
    frag_free(model->forms);
    frag_free(model->roles);
}

void frag_model_mark_block(frag_model *model)
{
    *FRAG_APPEND(model->block_starts, model->block_start_count, model->block_starts_capacity) =
        model->parameter_count;
}

void frag_walk_buffer(frag_walk *at, uint64_t count, frag_dtype dtype)
{
    frag_model *model = at->model;
    if (model == NULL)
        return;
    uint32_t number = model->buffer_count;
    *FRAG_APPEND(model->buffer_blocks, number, model->buffer_blocks_capacity) =
        model->block_start_count - 1;
    *FRAG_APPEND(model->buffers, model->buffer_count, model->buffers_capacity) =
        frag_tape_empty(at->tape, count, dtype);
}

frag_tensor frag_walk_parameter(frag_walk *at, frag_shape shape)
{
    return at->model != NULL ? frag_model_add(at->tape, at->model, shape) : *at->at++;
}

frag_tensor frag_walk_exact(frag_walk *at, frag_shape shape)
{
    frag_model *model = at->model;
    return model != NULL ? add_typed(at->tape, model, form_of(shape), FRAG_F32, is_frozen(model))
                         : *at->at++;
}

frag_tensor frag_walk_frozen(frag_walk *at, frag_shape shape)
{
    return at->model != NULL ? add_loaded(at->tape, at->model, form_of(shape), true) : *at->at++;
}

static frag_tensor walk_form(frag_walk *at, frag_form form)
{
    return at->model != NULL ? add_loaded(at->tape, at->model, form, is_frozen(at->model))
                             : *at->at++;
}

frag_tensor frag_walk_stack(frag_walk *at, frag_shape shape, uint64_t matrices)
{
    return walk_form(at, (frag_form){shape, matrices, 3, matrices, 0});
}

frag_tensor frag_walk_kernels(frag_walk *at, frag_kernels of)
{
    return walk_form(at, (frag_form){{of.side, of.side}, of.inputs * of.outputs, 4, of.outputs, 0});
}

/* peft keeps adapters in fp32, whatever the model is in. Those beside quantised weights are made
 * when all these are there. */
static frag_tensor walk_adapter(frag_walk *at, frag_shape shape, frag_parameter_role role)
{
    frag_model *model = at->model;
    if (model == NULL)
        return *at->at++;
    uint32_t index = add_place(model, shape, role);
    model->parameters[index] =
        is_quantised(model) ? 0
                            : frag_tape_parameter(at->tape, count_elements(shape), FRAG_F32, false);
    return model->parameters[index];
}

static void mark_part(const frag_walk *at, frag_parameter_role part)
{
    if (at->model != NULL && part != FRAG_PARAMETER_PLAIN)
        at->model->roles[at->model->parameter_count - 1] = part;
}

/* Of a layer in parts, the matrix at the side that is cut is cut as well. */
static void walk_adapters(frag_walk *at, frag_shape shape, uint64_t target, frag_linear *next)
{
    const frag_workload *workload = at->workload;
    if (workload->lora_rank == 0 ||
        (frag_workload_lora_targets(workload) & (target | FRAG_LORA_ALL)) == 0)
        return;
    bool is_exact = workload->quantize != FRAG_QUANTIZE_NONE && !next->is_packed;
    frag_parameter_role role = is_exact ? FRAG_PARAMETER_EXACT_ADAPTER : FRAG_PARAMETER_ADAPTER;
    next->rank = workload->lora_rank;
    next->dropout = workload->task == FRAG_TASK_TRAIN ? workload->lora_dropout : 0;
    next->down = walk_adapter(at, (frag_shape){next->rank, shape.columns}, role);
    if (next->part == FRAG_PARAMETER_COLUMNS)
        mark_part(at, next->part);
    next->up = walk_adapter(at, (frag_shape){shape.rows, next->rank}, role);
    if (next->part == FRAG_PARAMETER_ROWS)
        mark_part(at, next->part);
    if (workload->has_dora)
        next->magnitude = walk_adapter(at, (frag_shape){0, shape.rows}, role);
    if (workload->skips_adapters)
        next->rank = 0;
}

frag_dtype frag_model_product_type(const frag_workload *workload)
{
    return workload->precision == FRAG_PRECISION_FP16 ||
                   workload->precision == FRAG_PRECISION_AMP_FP16
               ? FRAG_F16
               : FRAG_BF16;
}

frag_dtype frag_model_autocast_type(const frag_workload *workload)
{
    if (workload->precision == FRAG_PRECISION_AMP_BF16)
        return FRAG_BF16;
    return workload->precision == FRAG_PRECISION_AMP_FP16 ? FRAG_F16 : FRAG_F32;
}

static frag_tensor walk_packed(frag_walk *at, const frag_aten_packed *of)
{
    frag_model *model = at->model;
    if (model == NULL)
        return *at->at++;
    uint32_t index = add_place(model, (frag_shape){of->rows, of->columns}, FRAG_PARAMETER_PACKED);
    model->parameters[index] = frag_aten_pack(at->tape, of, !model->has_packed);
    model->has_packed = true;
    return model->parameters[index];
}

/* ColwiseParallel or RowwiseParallel, or neither. */
static frag_parameter_role find_part(const frag_workload *workload, uint64_t target)
{
    const uint64_t outputs =
        FRAG_LORA_Q | FRAG_LORA_K | FRAG_LORA_V | FRAG_LORA_GATE | FRAG_LORA_UP;
    if (workload->parallel != FRAG_PARALLEL_TENSOR || target == 0)
        return FRAG_PARAMETER_PLAIN;
    return (target & outputs) != 0 ? FRAG_PARAMETER_ROWS : FRAG_PARAMETER_COLUMNS;
}

/* torch.nn.utils.prune names the weight anew, so that it comes behind the bias, and then a mask. */
static void walk_pruned(frag_walk *at, frag_shape shape, uint64_t bias, frag_linear *next)
{
    next->bias = bias > 0 ? frag_walk_parameter(at, (frag_shape){0, bias}) : 0;
    next->weight = frag_walk_parameter(at, shape);
    if (at->model != NULL)
        frag_tape_prune(at->tape, next->weight, frag_tape_empty_like(at->tape, next->weight));
}

static bool is_pruned(const frag_workload *workload, uint64_t target)
{
    return workload->prune > 0 && target != 0 && target != FRAG_LORA_REST;
}

/* A layer of a block has a name among the targets; the head has none, and stays whole. */
frag_linear frag_walk_linear(frag_walk *at, frag_shape shape, bool has_bias, uint64_t target)
{
    const frag_workload *workload = at->workload;
    frag_linear next = {.columns = shape.rows,
                        .is_packed = workload->quantize != FRAG_QUANTIZE_NONE && target != 0,
                        .is_float8 = workload->precision == FRAG_PRECISION_FP8 && target != 0,
                        .part = find_part(workload, target)};
    if (is_pruned(workload, target)) {
        walk_pruned(at, shape, has_bias ? shape.rows : 0, &next);
        return next;
    }
    next.packed = (frag_aten_packed){.rows = shape.rows,
                                     .columns = shape.columns,
                                     .dtype = frag_model_product_type(workload),
                                     .is_int8 = workload->quantize == FRAG_QUANTIZE_INT8,
                                     .is_nested = workload->quantize == FRAG_QUANTIZE_NF4_DOUBLE};
    next.weight = next.is_packed ? walk_packed(at, &next.packed) : frag_walk_parameter(at, shape);
    mark_part(at, next.part);
    if (has_bias) {
        next.packed.bias = at->at;
        next.bias = next.is_packed ? frag_walk_frozen(at, (frag_shape){0, shape.rows})
                                   : frag_walk_parameter(at, (frag_shape){0, shape.rows});
        mark_part(at, next.part);
    }
    walk_adapters(at, shape, target, &next);
    return next;
}

frag_tensor frag_walk_saved(frag_walk *at, frag_shape shape)
{
    frag_model *model = at->model;
    if (model == NULL)
        return *at->at++;
    if (!is_quantised(model))
        return add_typed(at->tape, model, form_of(shape), model->dtype, model->is_frozen);
    uint32_t index = add_place(model, shape, FRAG_PARAMETER_SAVED);
    model->parameters[index] = 0; /* comes behind adapters */
    return 0;
}

frag_linear frag_walk_classes(frag_walk *at, frag_shape shape, bool has_bias)
{
    /* Quantised with the others where its bias, not its weight, is the last of all parameters. */
    if (at->workload->lora_rank == 0)
        return frag_walk_linear(at, shape, has_bias, has_bias ? FRAG_LORA_REST : 0);
    (void)frag_walk_parameter(at, shape);
    if (has_bias)
        (void)frag_walk_parameter(at, (frag_shape){0, shape.rows});
    frag_linear next = {.weight = frag_walk_saved(at, shape), .columns = shape.rows};
    next.bias = has_bias ? frag_walk_saved(at, (frag_shape){0, shape.rows}) : 0;
    return next;
}

frag_linear frag_walk_exact_linear(frag_walk *at, frag_shape shape, uint64_t target)
{
    if (at->workload->quantize == FRAG_QUANTIZE_NONE)
        return frag_walk_linear(at, shape, false, target);
    frag_linear next = {.columns = shape.rows, .weight = frag_walk_exact(at, shape)};
    walk_adapters(at, shape, target, &next);
    return next;
}

/* Quantised, its weight is turned before. */
frag_linear frag_walk_conv1d(frag_walk *at, frag_shape shape, uint64_t target)
{
    if (at->workload->quantize != FRAG_QUANTIZE_NONE)
        return frag_walk_linear(at, (frag_shape){shape.columns, shape.rows}, true, target);
    frag_linear next = {.columns = shape.columns, .is_turned = true};
    if (is_pruned(at->workload, target)) {
        walk_pruned(at, shape, shape.columns, &next);
        return next;
    }
    next.weight = frag_walk_parameter(at, shape);
    next.bias = frag_walk_parameter(at, (frag_shape){0, shape.columns});
    walk_adapters(at, (frag_shape){shape.columns, shape.rows}, target, &next);
    return next;
}

frag_pair frag_walk_norm_with(frag_walk *at, uint64_t width, bool has_bias)
{
    frag_pair next = {.weight = frag_walk_parameter(at, (frag_shape){0, width})};
    next.bias = has_bias ? frag_walk_parameter(at, (frag_shape){0, width}) : 0;
    return next;
}

frag_pair frag_walk_norm(frag_walk *at, uint64_t width)
{
    return frag_walk_norm_with(at, width, true);
}

/* ---- peft's prepare_model_for_kbit_training, then get_peft_model */
static bool is_adapter(const frag_model *model, uint32_t i)
{
    return model->roles[i] == FRAG_PARAMETER_ADAPTER ||
           model->roles[i] == FRAG_PARAMETER_EXACT_ADAPTER;
}

static frag_tensor make_trained(frag_tape *tape, const frag_model *model, uint32_t i)
{
    return frag_tape_parameter(tape, count_elements(model->forms[i].shape), FRAG_F32, false);
}

void frag_model_prepare(frag_tape *tape, frag_model *model)
{
    if (!is_quantised(model) || model->workload->lora_rank == 0)
        return;
    for (uint32_t i = 0; i < model->parameter_count; i++)
        if (model->roles[i] == FRAG_PARAMETER_PLAIN)
            frag_tape_set(tape, &model->parameters[i],
                          frag_tape_to(tape, model->parameters[i], FRAG_F32));
    frag_tape_empty_cache(tape);
    /* Beside 4 bits adapters come in the type of products, and are widened when all are there. */
    bool is_int8 = model->workload->quantize == FRAG_QUANTIZE_INT8;
    for (uint32_t i = 0; i < model->parameter_count; i++)
        if (is_adapter(model, i))
            model->parameters[i] =
                is_int8 || model->roles[i] == FRAG_PARAMETER_EXACT_ADAPTER
                    ? make_trained(tape, model, i)
                    : frag_tape_empty(tape, count_elements(model->forms[i].shape),
                                      model->product_dtype);
    for (uint32_t i = 0; i < model->parameter_count; i++)
        if (model->roles[i] == FRAG_PARAMETER_SAVED)
            model->parameters[i] = make_trained(tape, model, i);
    for (uint32_t i = 0; i < model->parameter_count && !is_int8; i++)
        if (model->roles[i] == FRAG_PARAMETER_ADAPTER)
            frag_tape_set(tape, &model->parameters[i], make_trained(tape, model, i));
}

/* ---- parts of layers (torch/distributed/tensor/parallel/style.py) */
/* distribute_tensor: the first device scatters what the others then have, a part of each. Columns
 * are laid out first. What was there is the caller's. */
static frag_tensor cut(frag_tape *tape, frag_model *model, uint32_t i, uint64_t devices)
{
    frag_shape *shape = &model->forms[i].shape;
    uint64_t count = frag_tape_count(tape, model->parameters[i]) / devices;
    frag_dtype dtype = frag_tape_dtype(tape, model->parameters[i]);
    bool is_columns = model->roles[i] == FRAG_PARAMETER_COLUMNS;
    frag_tensor whole = model->parameters[i];
    frag_tensor *parts = frag_alloc(devices, sizeof *parts);
    for (uint64_t part = 0; part < devices && is_columns; part++)
        parts[part] = frag_tape_empty(tape, count, dtype);
    model->parameters[i] =
        frag_tape_parameter(tape, count, dtype, !frag_tape_needs_gradient(tape, whole));
    frag_tape_set_part(tape, model->parameters[i]);
    for (uint64_t part = 0; part < devices; part++)
        frag_tape_drop(tape, parts[part]);
    frag_free(parts);
    if (is_columns || shape->rows == 0)
        shape->columns /= devices;
    else
        shape->rows /= devices;
    return whole;
}

/* The layers of a block that are cut so; a weight goes when its bias is cut too. */
static void cut_block(frag_tape *tape, frag_model *model, uint64_t block, frag_parameter_role part)
{
    frag_tensor weight = 0;
    for (uint32_t i = model->block_starts[block]; i < model->block_starts[block + 1]; i++) {
        if (model->roles[i] != part)
            continue;
        frag_tensor whole = cut(tape, model, i, model->workload->devices);
        bool has_bias = model->roles[i + 1] == part && model->forms[i + 1].shape.rows == 0;
        if (has_bias) {
            weight = whole;
            continue;
        }
        frag_tape_clear(tape, &weight);
        frag_tape_drop(tape, whole);
    }
}

void frag_model_cut_layers(frag_tape *tape, frag_model *model, frag_workload *local)
{
    *local = *model->workload;
    local->network.heads /= local->devices;
    local->network.key_heads /= local->devices;
    local->network.inner /= local->devices;
    for (uint64_t block = 0; block < local->network.layers; block++) {
        cut_block(tape, model, block, FRAG_PARAMETER_ROWS);
        cut_block(tape, model, block, FRAG_PARAMETER_COLUMNS);
    }
    model->workload = local;
}

/* ---- running */
/* images: whose gradients come with channels before pixels; 0: they do not. */
static frag_tensor multiply(frag_tape *tape, frag_tensor x, const frag_tensor by[2],
                            uint64_t columns, const frag_linear *of, uint64_t images)
{
    if (of->is_cut)
        return frag_aten_linear_cut(tape, x, by[0], columns);
    return of->is_flat ? frag_aten_linear_flat(tape, x, by, columns)
                       : frag_aten_linear_turned(tape, x, by, columns, images);
}

/* down(x); x is used up. */
static frag_tensor multiply_down(frag_tape *tape, frag_tensor x, const frag_linear *of)
{
    if (of->part != FRAG_PARAMETER_COLUMNS) {
        const frag_tensor down[] = {of->down, 0};
        frag_tape_set(tape, &x, multiply(tape, x, down, of->rank, of, 0));
        return x;
    }
    frag_tensor input = frag_aten_from_local(tape, x);
    frag_tensor made = frag_aten_linear(tape, input, of->down, 0, of->rank);
    frag_tape_drop(tape, input);
    frag_tape_set(tape, &x, frag_aten_all_reduce(tape, made));
    return x;
}

/* up(down(x)); x is used up. */
static frag_tensor multiply_adapter(frag_tape *tape, frag_tensor x, const frag_linear *of,
                                    uint64_t images)
{
    x = multiply_down(tape, x, of);
    if (of->part == FRAG_PARAMETER_ROWS)
        frag_tape_set(tape, &x, frag_aten_replicate(tape, x));
    const frag_tensor up[] = {of->up, 0};
    frag_linear laid = *of; /* as what a product makes is */
    laid.is_cut = false;
    frag_tape_set(tape, &x, multiply(tape, x, up, of->columns, &laid, images));
    return x;
}

/* up(down(dropout(x))) * scaling */
static frag_tensor run_adapter(frag_tape *tape, frag_tensor x, const frag_linear *of)
{
    frag_tensor made = frag_aten_dropout(tape, x, of->dropout > 0);
    made = multiply_adapter(tape, made, of, of->has_gaps ? 0 : of->images);
    frag_tape_set(tape, &made, frag_aten_mul_scalar(tape, made));
    return made;
}

/* ---- DoRA (peft's tuners/lora/dora.py) */
/* up(down(eye)).T in the type of x: the adapter as a matrix. */
static frag_tensor multiply_eye(frag_tape *tape, const frag_linear *of, frag_dtype dtype)
{
    uint64_t side = frag_tape_count(tape, of->down) / of->rank;
    frag_tensor eye = frag_tape_empty(tape, side * side, FRAG_F32);
    frag_tensor made = multiply_adapter(tape, frag_tape_keep(tape, eye), of, 0);
    frag_tape_drop(tape, eye);
    frag_tape_set(tape, &made, frag_tape_to(tape, made, dtype));
    return made;
}

/* linalg.norm(weight + scaling * adapter, dim=1), which has no gradient. */
static frag_tensor find_norms(frag_tape *tape, const frag_linear *of, frag_tensor weight)
{
    uint64_t count = frag_tape_count(tape, weight);
    frag_dtype dtype = frag_tape_dtype(tape, weight);
    frag_tensor scaled = frag_tape_empty(tape, count, dtype);
    frag_tensor sum = frag_tape_empty(tape, count, dtype);
    frag_tape_drop(tape, scaled);
    frag_tensor norms = frag_tape_empty(tape, of->columns, dtype);
    frag_aten_reduce_buffers(
        tape, &(frag_reduction){of->columns, count / of->columns, !of->is_turned, 0});
    frag_tape_drop(tape, sum);
    return norms;
}

/* (scale - 1) * base + scale * up(down(x)) * scaling, where scale is magnitude / norms. Without
 * dropout base is the result without its bias, else a product anew. */
static frag_tensor run_dora(frag_tape *tape, frag_tensor x, const frag_linear *of,
                            frag_tensor result)
{
    frag_dtype dtype = frag_tape_dtype(tape, x);
    frag_tensor adapter = multiply_eye(tape, of, dtype);
    frag_tensor weight = frag_tape_to(tape, of->weight, dtype);
    frag_tensor norms = find_norms(tape, of, weight);
    frag_tensor scale = frag_aten_mul(tape, of->magnitude, norms);
    frag_tape_set(tape, &scale, frag_aten_view(tape, scale));
    frag_tensor inner = multiply_adapter(tape, frag_tape_keep(tape, x), of, of->images);
    frag_tensor base = of->dropout > 0 ? frag_aten_linear(tape, x, weight, 0, of->columns)
                       : of->bias != 0 ? frag_aten_add(tape, result, of->bias)
                                       : frag_tape_keep(tape, result);
    frag_tensor less = frag_aten_add_scalar(tape, scale);
    frag_tensor first = frag_aten_mul(tape, less, base);
    frag_tape_drop(tape, less);
    /* The gradient of this use is a view of a sum over tokens, to which nothing is added in place.
     */
    frag_tensor again = frag_aten_view(tape, scale);
    frag_tensor second = frag_aten_mul(tape, again, inner);
    frag_tape_drop(tape, again);
    frag_tape_set(tape, &second, frag_aten_mul_scalar(tape, second));
    frag_tensor made = frag_aten_add(tape, first, second);
    frag_tensor names[] = {first, second, base, inner, scale, norms, weight, adapter};
    frag_tape_drop_all(tape, names, sizeof names / sizeof *names);
    return made;
}

/* result + what the adapter makes of x; result is used up. */
static frag_tensor add_adapter(frag_tape *tape, frag_tensor x, const frag_linear *of,
                               frag_tensor result)
{
    bool is_dora = of->magnitude != 0;
    frag_tensor dropped = is_dora ? frag_aten_dropout(tape, x, of->dropout > 0) : 0;
    frag_tensor inner = is_dora ? run_dora(tape, dropped, of, result) : run_adapter(tape, x, of);
    frag_tensor made = frag_aten_add(tape, result, inner);
    /* Beside packed weights what the adapter makes has a name, which outlives the old result. */
    frag_tape_drop(tape, of->is_packed ? result : inner);
    frag_tape_drop(tape, of->is_packed ? inner : result);
    frag_tape_drop(tape, dropped);
    return made;
}

/* peft's lora.Linear: (result + adapter(x)).to(result.dtype); result is used up. */
static frag_tensor adapt(frag_tape *tape, frag_tensor x, const frag_linear *of, frag_tensor result)
{
    frag_dtype dtype = frag_tape_dtype(tape, result);
    frag_tensor typed = frag_tape_to(tape, x, frag_tape_dtype(tape, of->down));
    frag_linear beside = *of;
    beside.is_cut = of->is_cut && frag_tape_dtype(tape, x) == frag_tape_dtype(tape, of->down) &&
                    of->dropout == 0;
    frag_tensor made = add_adapter(tape, typed, &beside, result);
    frag_tape_set(tape, &made, frag_tape_to(tape, made, dtype));
    frag_tape_drop(tape, typed);
    return made;
}

/* peft's lora.Linear4bit: result.clone() + adapter(x), and lora.Linear8bitLt without the copy */
static frag_tensor adapt_packed(frag_tape *tape, frag_tensor x, const frag_linear *of,
                                frag_tensor result)
{
    if (!of->packed.is_int8)
        frag_tape_set(tape, &result, frag_aten_contiguous(tape, result));
    return add_adapter(tape, x, of, result);
}

/* x @ weight.T + bias */
static frag_tensor multiply_apart(frag_tape *tape, frag_tensor x, const frag_linear *of)
{
    frag_tensor turned = frag_aten_view(tape, of->weight);
    frag_tensor made = frag_aten_linear(tape, x, turned, 0, of->columns);
    frag_tape_drop(tape, turned);
    if (of->bias != 0)
        frag_tape_set(tape, &made, frag_aten_add(tape, made, of->bias));
    return made;
}

static frag_tensor run_layer(frag_tape *tape, frag_tensor x, const frag_linear *of)
{
    if (of->is_packed)
        return frag_aten_linear_packed(tape, x, &of->packed, of->images);
    if (of->is_apart)
        return multiply_apart(tape, x, of);
    if (of->is_float8)
        return frag_aten_linear_float8(tape, x, of->weight, of->bias, of->columns);
    if (of->is_turned)
        return frag_aten_addmm(tape, of->bias, x, of->weight, of->columns);
    const frag_tensor by[] = {of->weight, of->bias};
    return multiply(tape, x, by, of->columns, of, of->images);
}

static frag_tensor run_part(frag_tape *tape, frag_tensor x, const frag_linear *of)
{
    bool is_columns = of->part == FRAG_PARAMETER_COLUMNS;
    frag_tensor input = is_columns ? frag_aten_from_local(tape, x) : frag_aten_replicate(tape, x);
    frag_tensor made = run_layer(tape, input, of);
    frag_tape_drop(tape, input);
    return is_columns ? frag_aten_all_reduce(tape, made) : made;
}

/* setattr(module, "weight", mask * weight_orig), before its forward pass */
static frag_tensor apply_pruned(frag_tape *tape, frag_tensor x, const frag_linear *of)
{
    frag_linear masked = *of;
    masked.weight = frag_aten_mul(tape, frag_tape_mask(tape, of->weight), of->weight);
    frag_tape_name_masked(tape, of->weight, masked.weight);
    return run_layer(tape, x, &masked);
}

frag_tensor frag_walk_apply(frag_tape *tape, frag_tensor x, const frag_linear *of)
{
    if (frag_tape_mask(tape, of->weight) != 0)
        return apply_pruned(tape, x, of);
    const frag_tensor parameters[] = {of->weight, of->bias};
    frag_tape_fetch(tape, parameters, 2);
    frag_tensor result =
        of->part != FRAG_PARAMETER_PLAIN ? run_part(tape, x, of) : run_layer(tape, x, of);
    frag_tape_send_back(tape, parameters, 2);
    if (of->rank == 0)
        return result;
    return of->is_packed ? adapt_packed(tape, x, of, result) : adapt(tape, x, of, result);
}

frag_tensor frag_walk_split_heads(frag_tape *tape, frag_tensor x, bool is_copied)
{
    frag_tape_set(tape, &x, is_copied ? frag_aten_view_copied(tape, x) : frag_aten_view(tape, x));
    frag_tape_set(tape, &x, frag_aten_view(tape, x));
    return x;
}

frag_tensor frag_walk_put_out(frag_tape *tape, frag_tensor made, frag_tensor qkv[3],
                              const frag_linear *out)
{
    frag_tape_set(tape, &made, frag_aten_view(tape, made));
    if (out != NULL)
        frag_tape_set(tape, &made, frag_walk_apply(tape, made, out));
    frag_tape_drop_all(tape, qkv, 3);
    return made;
}

frag_tensor frag_walk_attend(frag_tape *tape, frag_tensor qkv[3], const frag_attention_shape *shape,
                             const frag_linear *out)
{
    return frag_walk_put_out(tape, frag_aten_attention(tape, qkv, shape), qkv, out);
}
