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

/* ---- chunks of parameters of a type that lie together on their way */
typedef struct chunks {
    uint32_t *numbers; /* the chunk of each parameter */
    uint32_t count;
} chunks;

#define NO_CHUNK UINT32_MAX

/* Those of the type that are in none are the next. */
static void close_chunk(const frag_tape *tape, const frag_data_parallel *parallel, chunks *all,
                        uint32_t end, frag_dtype dtype)
{
    uint32_t number = all->count;
    for (uint32_t i = 0; i < end; i++)
        if (all->numbers[i] == NO_CHUNK && frag_tape_dtype(tape, parallel->slots[i]) == dtype) {
            all->numbers[i] = number;
            all->count = number + 1;
        }
}

/* broadcast_coalesced closes a chunk when it has come to its size, reduce_add_coalesced before it
 * would exceed it. At the end the one orders what is left by the types' numbers, the other by which
 * came first: the model's, before adapters in fp32. */
static chunks find_chunks(const frag_tape *tape, const frag_data_parallel *parallel,
                          bool is_reduced)
{
    uint32_t end = parallel->model->parameter_count;
    chunks all = {.numbers = frag_alloc((size_t)end + 1, sizeof *all.numbers)};
    uint64_t bytes[FRAG_BOOL] = {0};
    for (uint32_t i = 0; i < end; i++)
        all.numbers[i] = NO_CHUNK;
    for (uint32_t i = 0; i < end; i++) {
        frag_dtype dtype = frag_tape_dtype(tape, parallel->slots[i]);
        uint64_t own = frag_tape_count(tape, parallel->slots[i]) * frag_dtype_bytes(dtype);
        bool is_past = bytes[dtype] > 0 && bytes[dtype] + own > CHUNK_BYTES;
        if (is_reduced && is_past)
            close_chunk(tape, parallel, &all, i, dtype);
        bytes[dtype] = is_reduced && is_past ? own : bytes[dtype] + own;
        if (!is_reduced && bytes[dtype] >= CHUNK_BYTES) {
            close_chunk(tape, parallel, &all, i + 1, dtype);
            bytes[dtype] = 0;
        }
    }
    if (is_reduced || parallel->model->dtype == FRAG_F16)
        close_chunk(tape, parallel, &all, end, parallel->model->dtype);
    close_chunk(tape, parallel, &all, end, FRAG_F32);
    close_chunk(tape, parallel, &all, end, parallel->model->dtype);
    return all;
}

/* The first parameter of a chunk, and the one behind the last; how many there are, and elements. */
typedef struct chunk {
    uint32_t first, end, parameters;
    uint64_t count;
    frag_dtype dtype;
} chunk;

static chunk measure_chunk(const frag_tape *tape, const frag_data_parallel *parallel,
                           const chunks *all, uint32_t number)
{
    chunk found = {.parameters = 0};
    for (uint32_t i = 0; i < parallel->model->parameter_count; i++) {
        if (all->numbers[i] != number)
            continue;
        if (found.parameters++ == 0)
            found.first = i;
        found.end = i + 1;
        found.count += frag_tape_count(tape, parallel->slots[i]);
        found.dtype = frag_tape_dtype(tape, parallel->slots[i]);
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

/* On the storage of what came, or on the first device's own. */
static frag_tensor copy_parameter(frag_tape *tape, const frag_data_parallel *parallel, uint32_t i,
                                  frag_tensor flat)
{
    frag_tensor own = parallel->model->parameters[i];
    frag_tensor base = flat != 0 ? flat : own;
    return frag_tape_needs_gradient(tape, own)
               ? frag_tape_collect_into(tape, parallel->slots[i], base)
               : frag_tape_alias(tape, base, frag_tape_count(tape, own));
}

static void replicate(frag_tape *tape, frag_data_parallel *parallel)
{
    frag_request_kind was = frag_tape_set_kind(tape, FRAG_REQUEST_WEIGHT);
    chunks all = find_chunks(tape, parallel, false);
    for (uint32_t number = 0; number < all.count; number++) {
        chunk next = measure_chunk(tape, parallel, &all, number);
        frag_tensor flat = broadcast(tape, parallel, next.count, next.dtype, next.parameters > 1);
        for (uint32_t i = next.first; i < next.end; i++)
            if (all.numbers[i] == number)
                parallel->replica.parameters[i] = copy_parameter(tape, parallel, i, flat);
        frag_tape_drop(tape, flat);
    }
    frag_free(all.numbers);
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
    frag_tensor scales = copies[frag_model_loaded_type(model)];
    if (model->workload->network.has_embedding_scale && parallel->rank > 0)
        parallel->replica.scale = frag_tape_view(tape, scales, 1);
    if (frag_tape_autocast(tape) != FRAG_F32) /* its threads are told that it is on, not its type */
        frag_tape_set_autocast(tape, FRAG_F16);
    frag_tape_swap_blas(tape);
    frag_tensor own = 0;
    frag_tensor logits =
        frag_decoder_replica(tape, parallel->family, &parallel->replica, &part, &own);
    frag_tape_swap_blas(tape);
    const frag_gather to = {devices, parallel->rank == 0};
    frag_tensor losses = frag_aten_gather_devices(tape, own, &to);
    frag_tensor all_logits = frag_aten_gather_devices(tape, logits, &to);
    frag_tape_drop(tape, own);
    frag_tape_drop(tape, logits);
    for (uint32_t i = 0; i < model->parameter_count; i++)
        frag_tape_clear(tape, &parallel->replica.parameters[i]);
    frag_tape_drop_all(tape, copies, FRAG_BOOL);
    frag_tape_clear(tape, &parallel->replica.scale);
    frag_tape_drop(tape, part.ids);
    frag_tape_drop(tape, part.labels);
    if (to.is_here)
        frag_tape_set(tape, &losses, frag_aten_mean(tape, losses));
    frag_tape_drop(tape, all_logits);
    return losses;
}

/* ---- backward */
/* Broadcast.backward gets zeros for what no gradient came to: frozen parameters have some of their
 * own size. */
static void fill_zeros(frag_tape *tape, const frag_data_parallel *parallel)
{
    for (uint32_t i = 0; i < parallel->model->parameter_count; i++)
        if (frag_tape_gradient(tape, parallel->slots[i]) == 0)
            frag_tape_set_gradient(tape, parallel->slots[i],
                                   frag_tape_empty_like(tape, parallel->slots[i]));
}

/* What a chunk is copied to; a gradient alone stays where it is. */
static frag_tensor flatten(frag_tape *tape, const frag_data_parallel *parallel, const chunk *of)
{
    frag_tensor alone = frag_tape_gradient(tape, parallel->slots[of->first]);
    return of->parameters == 1 && !frag_tape_is_strided(tape, alone)
               ? frag_tape_keep(tape, alone)
               : frag_tape_empty(tape, of->count, of->dtype);
}

static void hand_out(frag_tape *tape, const frag_data_parallel *parallel, uint32_t i,
                     frag_tensor sum)
{
    frag_tensor parameter = parallel->model->parameters[i];
    if (frag_tape_needs_gradient(tape, parameter) && frag_tape_gradient(tape, parameter) == 0)
        frag_tape_set_gradient(tape, parameter,
                               frag_tape_alias(tape, sum, frag_tape_count(tape, parameter)));
}

/* When a replica has all its gradients: flat copies, of which the first device gets the sums. */
static void reduce(frag_tape *tape, void *context, uint32_t hook)
{
    frag_data_parallel *parallel = context;
    uint32_t count = parallel->model->parameter_count;
    chunks all = find_chunks(tape, parallel, true);
    frag_tensor *sums = frag_alloc((size_t)all.count + 1, sizeof *sums);
    frag_tensor flat = 0;
    FRAG_ASSERT(hook == FRAG_HOOK_END);
    fill_zeros(tape, parallel);
    for (uint32_t number = 0; number < all.count; number++) {
        chunk next = measure_chunk(tape, parallel, &all, number);
        frag_tape_set(tape, &flat, flatten(tape, parallel, &next));
        if (parallel->rank > 0)
            continue;
        sums[number] = frag_tape_empty(tape, next.count, next.dtype);
        for (uint32_t i = next.first; i < next.end; i++)
            if (all.numbers[i] == number)
                hand_out(tape, parallel, i, sums[number]);
    }
    frag_tape_drop(tape, flat);
    frag_tape_drop_all(tape, sums, all.count);
    for (uint32_t i = 0; i < count; i++)
        frag_tape_clear_gradient(tape, parallel->slots[i]);
    frag_free(sums);
    frag_free(all.numbers);
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
