#include "workload/pipeline.h"

#include "base/memory.h"

struct frag_pipeline {
    const frag_family *family;
    const frag_model *model;
    frag_batch shape; /* of a microbatch */
    uint64_t microbatches;
    bool has_buffers;
    frag_tensor *inputs;    /* of each microbatch: what the stage before sends, in a buffer that
                               stays; of the first stage ids */
    frag_tensor *gradients; /* what the stage behind sends, in a buffer that stays */
    frag_tensor *outputs;   /* until backward; of the last stage to the next step */
    frag_tensor *losses;
    frag_tensor output; /* the last one that was made */
};

frag_stage frag_pipeline_stage(const frag_workload *workload, uint64_t rank)
{
    uint64_t layers = workload->network.layers;
    uint64_t devices = workload->devices;
    if (workload->parallel != FRAG_PARALLEL_PIPELINE)
        return (frag_stage){0, 0, layers, true, true};
    return (frag_stage){rank, rank * layers / devices, (rank + 1) * layers / devices, rank == 0,
                        rank + 1 == devices};
}

frag_pipeline *frag_pipeline_create(const frag_family *family, const frag_model *model)
{
    const frag_workload *workload = model->workload;
    frag_pipeline *pipeline = frag_alloc(1, sizeof *pipeline);
    uint64_t count = frag_workload_microbatches(workload);
    pipeline->family = family;
    pipeline->model = model;
    pipeline->microbatches = count;
    pipeline->shape.count = workload->batch / count;
    pipeline->shape.tokens = workload->tokens.values[0];
    pipeline->inputs = frag_alloc(count, sizeof *pipeline->inputs);
    pipeline->gradients = frag_alloc(count, sizeof *pipeline->gradients);
    pipeline->outputs = frag_alloc(count, sizeof *pipeline->outputs);
    pipeline->losses = frag_alloc(count, sizeof *pipeline->losses);
    return pipeline;
}

void frag_pipeline_destroy(frag_pipeline *pipeline)
{
    if (pipeline == NULL)
        return;
    frag_free(pipeline->inputs);
    frag_free(pipeline->gradients);
    frag_free(pipeline->outputs);
    frag_free(pipeline->losses);
    frag_free(pipeline);
}

/* ---- one microbatch */
static frag_tensor run_stage(frag_tape *tape, const frag_pipeline *pipeline, frag_tensor input)
{
    frag_batch batch = pipeline->shape;
    batch.ids = batch.hidden = input;
    frag_tape_begin_checkpoints(tape, pipeline->model->workload->checkpoint_every,
                                pipeline->model->stage.first);
    frag_tape_set_autocast(tape, frag_model_autocast_type(pipeline->model->workload));
    frag_tensor made = frag_decoder_stage(tape, pipeline->family, pipeline->model, &batch);
    frag_tape_set_autocast(tape, FRAG_F32);
    return made;
}

static void run_forward(frag_tape *tape, frag_pipeline *pipeline, uint64_t i)
{
    bool is_first = pipeline->model->stage.is_first;
    frag_tape_begin(tape, "forward");
    if (!is_first && !frag_tape_needs_gradient(tape, pipeline->inputs[i]))
        frag_tape_require_gradient(tape, pipeline->inputs[i]);
    pipeline->outputs[i] = run_stage(tape, pipeline, pipeline->inputs[i]);
    frag_tape_set(tape, &pipeline->output, frag_tape_keep(tape, pipeline->outputs[i]));
    if (pipeline->model->stage.is_last)
        pipeline->losses[i] = frag_family_causal_loss(tape, pipeline->outputs[i], &pipeline->shape);
    frag_tape_end(tape, "forward");
}

static void run_backward(frag_tape *tape, frag_pipeline *pipeline, uint64_t i)
{
    frag_tape_begin(tape, "backward");
    if (pipeline->model->stage.is_last) {
        frag_tape_backward(tape, pipeline->losses[i]);
    } else {
        frag_tape_backward_from(tape, pipeline->outputs[i], pipeline->gradients[i]);
        frag_tape_clear(tape, &pipeline->outputs[i]);
    }
    frag_tape_end(tape, "backward");
}

/* ---- the first step: neighbours meet, shapes are found by a pass without gradients, buffers made
 */
static uint64_t count_pickled(uint64_t number)
{
    if (number >= UINT64_C(1) << 31)
        return number >= UINT64_C(1) << 39 ? 8 : 7;
    return number >= 1 << 16 ? 5 : number >= 1 << 8 ? 3 : 2;
}

/* The bytes of a pickled tuple of a tensor without data: names, its type, shape and strides. */
static uint64_t count_shape_bytes(const frag_pipeline *pipeline)
{
    static const uint8_t names[] = {[FRAG_F32] = 7, [FRAG_F16] = 7, [FRAG_BF16] = 8};
    uint64_t width = pipeline->model->workload->network.width;
    uint64_t tokens = pipeline->shape.tokens;
    return 90 + names[pipeline->model->dtype] + count_pickled(pipeline->shape.count) +
           count_pickled(tokens) + 2 * count_pickled(width) + count_pickled(tokens * width);
}

/* send_object_list: the bytes, how many, and a list of that */
static void send_shape(frag_tape *tape, const frag_pipeline *pipeline)
{
    frag_tensor bytes = frag_tape_empty(tape, count_shape_bytes(pipeline), FRAG_BOOL);
    frag_tensor count = frag_tape_empty(tape, 1, FRAG_I64);
    frag_tensor counts = frag_tape_empty(tape, 1, FRAG_I64);
    frag_tape_drop(tape, count);
    frag_tape_drop(tape, counts);
    frag_tape_drop(tape, bytes);
}

/* recv_object_list: the counts, their sum, the bytes, and twice a number of where an object ends */
static void receive_shape(frag_tape *tape, const frag_pipeline *pipeline)
{
    frag_tensor counts = frag_tape_empty(tape, 1, FRAG_I64);
    frag_tape_drop(tape, frag_tape_empty(tape, 1, FRAG_I64));
    frag_tensor bytes = frag_tape_empty(tape, count_shape_bytes(pipeline), FRAG_BOOL);
    frag_tape_drop(tape, frag_tape_empty(tape, 1, FRAG_I64));
    frag_tape_drop(tape, frag_tape_empty(tape, 1, FRAG_I64));
    frag_tape_drop(tape, counts);
    frag_tape_drop(tape, bytes);
}

static uint64_t count_hidden(const frag_pipeline *pipeline)
{
    return pipeline->shape.count * pipeline->shape.tokens *
           pipeline->model->workload->network.width;
}

static void infer_shapes(frag_tape *tape, const frag_pipeline *pipeline)
{
    const frag_stage *stage = &pipeline->model->stage;
    if (!stage->is_first)
        receive_shape(tape, pipeline);
    uint64_t ids = pipeline->shape.count * pipeline->shape.tokens;
    frag_tensor input = stage->is_first
                            ? frag_tape_empty(tape, ids, FRAG_I64)
                            : frag_tape_empty(tape, count_hidden(pipeline), pipeline->model->dtype);
    bool was_recording = frag_tape_set_recording(tape, false);
    frag_tensor output = run_stage(tape, pipeline, input);
    frag_tape_set_recording(tape, was_recording);
    if (!stage->is_last)
        send_shape(tape, pipeline);
    frag_tape_drop(tape, input);
    frag_tape_drop(tape, output);
}

static void make_buffers(frag_tape *tape, const frag_pipeline *pipeline, frag_tensor *buffers,
                         frag_request_kind kind)
{
    frag_request_kind was = frag_tape_set_kind(tape, kind);
    for (uint64_t i = 0; i < pipeline->microbatches; i++)
        buffers[i] = frag_tape_empty(tape, count_hidden(pipeline), pipeline->model->dtype);
    frag_tape_set_kind(tape, was);
}

static void begin(frag_tape *tape, frag_pipeline *pipeline)
{
    const frag_stage *stage = &pipeline->model->stage;
    frag_tensor received = frag_tape_empty(tape, 1, FRAG_F32);
    frag_tensor sent = frag_tape_empty(tape, 1, FRAG_I64);
    infer_shapes(tape, pipeline);
    if (!stage->is_first)
        make_buffers(tape, pipeline, pipeline->inputs, FRAG_REQUEST_ACTIVATION);
    if (!stage->is_last)
        make_buffers(tape, pipeline, pipeline->gradients, FRAG_REQUEST_GRADIENT);
    frag_tape_drop(tape, received);
    frag_tape_drop(tape, sent);
    pipeline->has_buffers = true;
}

/* ---- schedules */
static void run_gpipe(frag_tape *tape, frag_pipeline *pipeline)
{
    for (uint64_t i = 0; i < pipeline->microbatches; i++)
        run_forward(tape, pipeline, i);
    for (uint64_t i = 0; i < pipeline->microbatches; i++)
        run_backward(tape, pipeline, i);
}

/* As many forward passes as there are stages from here on, then one backward and one forward in
 * turn. */
static void run_1f1b(frag_tape *tape, frag_pipeline *pipeline)
{
    uint64_t count = pipeline->microbatches;
    uint64_t stages = pipeline->model->workload->devices - pipeline->model->stage.number;
    uint64_t forward = 0;
    while (forward < count && forward < stages)
        run_forward(tape, pipeline, forward++);
    for (uint64_t backward = 0; backward < count; backward++) {
        run_backward(tape, pipeline, backward);
        if (forward < count)
            run_forward(tape, pipeline, forward++);
    }
}

/* What the step before has left: outputs of the last stage, gradients of what was received. */
static void clear(frag_tape *tape, frag_pipeline *pipeline)
{
    for (uint64_t i = 0; i < pipeline->microbatches; i++)
        frag_tape_clear(tape, &pipeline->losses[i]);
    for (uint64_t i = 0; i < pipeline->microbatches; i++)
        frag_tape_clear(tape, &pipeline->outputs[i]);
    for (uint64_t i = 0; i < pipeline->microbatches && !pipeline->model->stage.is_first; i++)
        if (pipeline->inputs[i] != 0)
            frag_tape_clear_gradient(tape, pipeline->inputs[i]);
}

void frag_pipeline_step(frag_tape *tape, frag_pipeline *pipeline, frag_tensor ids)
{
    const frag_stage *stage = &pipeline->model->stage;
    uint64_t count = pipeline->microbatches;
    clear(tape, pipeline);
    for (uint64_t i = 0; i < count && stage->is_first; i++)
        pipeline->inputs[i] = frag_tape_view(tape, ids, frag_tape_count(tape, ids) / count);
    if (!pipeline->has_buffers)
        begin(tape, pipeline);
    if (pipeline->model->workload->schedule == FRAG_SCHEDULE_GPIPE)
        run_gpipe(tape, pipeline);
    else
        run_1f1b(tape, pipeline);
    frag_tape_clear(tape, &pipeline->output);
    for (uint64_t i = 0; i < count && stage->is_first; i++)
        frag_tape_clear(tape, &pipeline->inputs[i]);
    if (stage->is_last) /* the logits in one piece, as step() returns them */
        frag_tape_drop(tape,
                       frag_tape_empty(tape, count * frag_tape_count(tape, pipeline->outputs[0]),
                                       frag_tape_dtype(tape, pipeline->outputs[0])));
}
