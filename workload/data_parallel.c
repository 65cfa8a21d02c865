#include "workload/data_parallel.h"

#include "base/memory.h"

enum { CHUNK_BYTES = 10 << 20 };

struct frag_data_parallel {
    const frag_family *family;
    const frag_model *model;
    frag_model replica; /* of the pass that runs */
    frag_tensor *slots; /* that collect the gradients of a replica's parameters */
    uint64_t rank;
    bool has_run_backward;
};

static void reduce(frag_tape *tape, void *context, uint32_t number);

frag_data_parallel *frag_data_parallel_create(frag_tape *tape, const frag_family *family,
                                              const frag_model *model, uint64_t rank)
{
    frag_data_parallel *parallel = frag_alloc(1, sizeof *parallel);
    size_t most = (size_t)model->parameter_count + 1;
    parallel->family = family;
    parallel->model = model;
    parallel->rank = rank;
    parallel->replica = *model;
    parallel->replica.parameters = frag_alloc(most, sizeof(frag_tensor));
    parallel->slots = frag_alloc(most, sizeof *parallel->slots);
    frag_tape_set_silent(tape, true);
    for (uint32_t i = 0; i < model->parameter_count; i++)
        parallel->slots[i] = frag_tape_collector(tape, frag_tape_count(tape, model->parameters[i]),
                                                 frag_tape_dtype(tape, model->parameters[i]));
    frag_tape_set_silent(tape, false);
    frag_tape_set_hook(tape, reduce, parallel);
    return parallel;
}

void frag_data_parallel_destroy(frag_data_parallel *parallel)
{
    if (parallel == NULL)
        return;
    frag_free(parallel->replica.parameters);
    frag_free(parallel->slots);
    frag_free(parallel);
}

/* ---- chunks of parameters that lie together on their way */
typedef struct chunk {
    uint32_t end;   /* the parameter behind it */
    uint64_t count; /* elements */
} chunk;

/* broadcast_coalesced closes a chunk when it has come to its size, reduce_add_coalesced before it
 * would exceed it. */
static chunk find_chunk(const frag_tape *tape, const frag_data_parallel *parallel, uint32_t first,
                        bool is_reduced)
{
    chunk found = {.end = first};
    uint64_t bytes = 0;
    for (; found.end < parallel->model->parameter_count; found.end++) {
        frag_tensor next = parallel->slots[found.end];
        uint64_t own = frag_tape_count(tape, next) * frag_dtype_bytes(frag_tape_dtype(tape, next));
        if (is_reduced ? bytes > 0 && bytes + own > CHUNK_BYTES : bytes >= CHUNK_BYTES)
            break;
        bytes += own;
        found.count += frag_tape_count(tape, next);
    }
    return found;
}

/* ---- forward */
/* The first device makes a flat copy of several, which the others receive. */
static frag_tensor broadcast(frag_tape *tape, const frag_data_parallel *parallel, uint64_t count,
                             frag_dtype dtype, bool is_several)
{
    if (parallel->rank > 0)
        return frag_tape_empty(tape, count, dtype);
    if (is_several)
        frag_tape_drop(tape, frag_tape_empty(tape, count, dtype));
    return 0;
}

static void replicate(frag_tape *tape, frag_data_parallel *parallel)
{
    const frag_model *model = parallel->model;
    frag_request_kind was = frag_tape_set_kind(tape, FRAG_REQUEST_WEIGHT);
    for (uint32_t first = 0; first < model->parameter_count;) {
        chunk next = find_chunk(tape, parallel, first, false);
        frag_tensor flat =
            broadcast(tape, parallel, next.count, model->dtype, next.end - first > 1);
        for (uint32_t i = first; i < next.end; i++)
            parallel->replica.parameters[i] = frag_tape_collect_into(
                tape, parallel->slots[i], flat != 0 ? flat : model->parameters[i]);
        frag_tape_drop(tape, flat);
        first = next.end;
    }
    frag_tape_set_kind(tape, was);
}

/* Buffers of a type together; they go with the replicas. */
static void replicate_buffers(frag_tape *tape, const frag_data_parallel *parallel,
                              frag_tensor copies[FRAG_BOOL])
{
    const frag_model *model = parallel->model;
    for (uint32_t dtype = 0; dtype < FRAG_BOOL; dtype++) {
        uint64_t count = 0;
        uint32_t buffers = 0;
        for (uint32_t i = 0; i < model->buffer_count; i++) {
            bool is_typed = (uint32_t)frag_tape_dtype(tape, model->buffers[i]) == dtype;
            count += is_typed ? frag_tape_count(tape, model->buffers[i]) : 0;
            buffers += is_typed;
        }
        copies[dtype] =
            buffers > 0 ? broadcast(tape, parallel, count, (frag_dtype)dtype, buffers > 1) : 0;
    }
}

/* A part of the batch: on the first device a view. */
static frag_tensor scatter(frag_tape *tape, const frag_data_parallel *parallel, frag_tensor ids,
                           uint64_t count)
{
    return parallel->rank == 0 ? frag_tape_view(tape, ids, count)
                               : frag_tape_empty(tape, count, FRAG_I64);
}

frag_tensor frag_data_parallel_loss(frag_tape *tape, frag_data_parallel *parallel,
                                    const frag_batch *batch)
{
    const frag_model *model = parallel->model;
    uint64_t devices = model->workload->devices;
    frag_batch part = *batch;
    frag_tensor copies[FRAG_BOOL];
    part.count = batch->count / devices;
    part.ids = scatter(tape, parallel, batch->ids, part.count * part.tokens);
    part.labels = scatter(tape, parallel, batch->ids, part.count * part.tokens);
    replicate(tape, parallel);
    replicate_buffers(tape, parallel, copies);
    frag_tensor logits = frag_decoder_stage(tape, parallel->family, &parallel->replica, &part);
    frag_tensor own = frag_family_causal_loss(tape, logits, &part);
    const frag_gather to = {devices, parallel->rank == 0};
    frag_tensor losses = frag_aten_gather_devices(tape, own, &to);
    frag_tensor all_logits = frag_aten_gather_devices(tape, logits, &to);
    frag_tape_drop(tape, own);
    frag_tape_drop(tape, logits);
    for (uint32_t i = 0; i < model->parameter_count; i++)
        frag_tape_clear(tape, &parallel->replica.parameters[i]);
    for (uint32_t i = 0; i < FRAG_BOOL; i++)
        frag_tape_drop(tape, copies[i]);
    frag_tape_drop(tape, part.ids);
    frag_tape_drop(tape, part.labels);
    if (to.is_here)
        frag_tape_set(tape, &losses, frag_aten_mean(tape, losses));
    frag_tape_drop(tape, all_logits);
    return losses;
}

/* ---- backward */
/* What a chunk is copied to; a gradient alone stays where it is. */
static frag_tensor flatten(frag_tape *tape, const frag_data_parallel *parallel, uint32_t first,
                           const chunk *of)
{
    frag_tensor alone = frag_tape_gradient(tape, parallel->slots[first]);
    return of->end - first == 1 && !frag_tape_is_strided(tape, alone)
               ? frag_tape_keep(tape, alone)
               : frag_tape_empty(tape, of->count, parallel->model->dtype);
}

static void hand_out(frag_tape *tape, const frag_data_parallel *parallel, uint32_t first,
                     const chunk *of, frag_tensor sum)
{
    for (uint32_t i = first; i < of->end; i++) {
        frag_tensor parameter = parallel->model->parameters[i];
        if (frag_tape_gradient(tape, parameter) == 0)
            frag_tape_set_gradient(tape, parameter,
                                   frag_tape_alias(tape, sum, frag_tape_count(tape, parameter)));
    }
}

/* When a replica has all its gradients: flat copies, of which the first device gets the sums. */
static void reduce(frag_tape *tape, void *context, uint32_t number)
{
    frag_data_parallel *parallel = context;
    uint32_t count = parallel->model->parameter_count;
    frag_tensor *sums = frag_alloc((size_t)count + 1, sizeof *sums);
    frag_tensor flat = 0;
    FRAG_ASSERT(number == FRAG_HOOK_END);
    for (uint32_t first = 0; first < count;) {
        chunk next = find_chunk(tape, parallel, first, true);
        frag_tape_set(tape, &flat, flatten(tape, parallel, first, &next));
        if (parallel->rank == 0) {
            sums[first] = frag_tape_empty(tape, next.count, parallel->model->dtype);
            hand_out(tape, parallel, first, &next, sums[first]);
        }
        first = next.end;
    }
    frag_tape_drop(tape, flat);
    for (uint32_t i = 0; i < count; i++) {
        frag_tape_drop(tape, sums[i]);
        frag_tape_clear_gradient(tape, parallel->slots[i]);
    }
    frag_free(sums);
}

void frag_data_parallel_backward(frag_tape *tape, frag_data_parallel *parallel, frag_tensor loss)
{
    /* Threads of a pass end with it, and the next that asks takes their handles: backward's. */
    if (!parallel->has_run_backward)
        frag_tape_hand_over_blas(tape);
    parallel->has_run_backward = true;
    if (parallel->rank == 0)
        frag_tape_backward(tape, loss);
    else
        frag_tape_backward_from(tape, loss, loss);
}
