/* Parameters in shards, as FSDP2 has them (torch/distributed/fsdp/_fully_shard): each block is a
 * group, the rest of the model one more. The model comes from the host, a group at a time. A
 * group's parameters are gathered before its forward pass and before its backward, and given back
 * behind both, but for the rest's behind forward; its gradients are added up over the devices, each
 * of which keeps those of its shard. With CPUOffloadPolicy shards and their gradients are on the
 * host: a shard is copied to the GPU when its group is gathered, and the optimizer runs on the
 * host. */
#include "base/bits.h"
#include "base/memory.h"
#include "workload/families/family.h"

enum { STREAM_MAIN, STREAM_GATHER, STREAM_REDUCE };

typedef struct shard_group {
    uint32_t first; /* parameters: count from there, and others beside the blocks */
    uint32_t count;
    frag_tensor gathered; /* what all ranks have sent; 0: is not on its way */
    bool is_whole;
    bool is_done; /* its gradients have been added up */
} shard_group;

struct frag_shards {
    frag_model model; /* of shards */
    frag_tensor *whole;
    uint32_t *order;  /* in which a group has its parameters */
    uint64_t *padded; /* elements of each shard, as the first rank has it */
    uint32_t parameter_count;
    shard_group *groups; /* of blocks, then the rest */
    uint32_t group_count;
    uint64_t devices;
    frag_tensor gathered_before; /* kept until the next is copied */
    frag_tensor reduced;         /* gradients on their way */
    bool is_padded;
    bool is_cast;    /* to bf16, where shards are in fp32: MixedPrecisionPolicy */
    bool is_on_host; /* CPUOffloadPolicy */
};

static bool is_in_block(const frag_shards *shards, uint32_t parameter)
{
    for (uint32_t i = 0; i + 1 < shards->group_count; i++)
        if (parameter >= shards->groups[i].first &&
            parameter < shards->groups[i].first + shards->groups[i].count)
            return true;
    return false;
}

static bool is_in(const frag_shards *shards, uint32_t group, uint32_t parameter)
{
    const shard_group *of = &shards->groups[group];
    if (group + 1 < shards->group_count)
        return parameter >= of->first && parameter < of->first + of->count;
    return !is_in_block(shards, parameter);
}

/* Adapters are in fp32 beside weights in half types, which are all sent as bytes. */
static uint64_t count_padded_bytes(const frag_tape *tape, const frag_shards *shards, uint32_t group)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < shards->parameter_count; i++)
        if (is_in(shards, group, i))
            bytes += shards->padded[i] * frag_dtype_bytes(frag_tape_dtype(tape, shards->whole[i]));
    return bytes;
}

static bool is_trained(const frag_tape *tape, const frag_shards *shards, uint32_t group, uint32_t i)
{
    return is_in(shards, group, i) && frag_tape_needs_gradient(tape, shards->whole[i]);
}

/* ---- cutting */
typedef struct shard_cut {
    uint64_t rank;
    uint64_t devices;
} shard_cut;

/* Rows of a matrix, elements of a vector, experts; the last ranks may have fewer, or none. */
static void cut(frag_tape *tape, frag_shards *shards, uint32_t i, const shard_cut *of)
{
    uint64_t rows = shards->model.forms[i].length;
    uint64_t width = frag_tape_count(tape, shards->whole[i]) / rows;
    uint64_t most = (rows + of->devices - 1) / of->devices;
    uint64_t before = of->rank * most < rows ? of->rank * most : rows;
    uint64_t own = rows - before < most ? rows - before : most;
    frag_tensor whole = shards->whole[i];
    shards->padded[i] = most * width;
    frag_tensor room = frag_tape_empty(tape, most * width, frag_tape_dtype(tape, whole));
    shards->model.parameters[i] = frag_tape_alias(tape, room, own * width);
    if (shards->is_on_host) {
        bool has_gradient = shards->model.workload->task == FRAG_TASK_TRAIN &&
                            frag_tape_needs_gradient(tape, whole);
        frag_tape_take_host(tape, most * width, frag_tape_dtype(tape, whole));
        if (has_gradient)
            frag_tape_take_host(tape, own * width, frag_tape_dtype(tape, whole));
        frag_tape_empty_storage(tape, room);
    }
    frag_tape_drop(tape, room);
}

/* What a model on the host has in a group: parameters, then buffers. */
static void move(frag_tape *tape, const frag_shards *shards, const frag_model *model,
                 uint32_t group)
{
    for (uint32_t k = 0; k < shards->parameter_count; k++) {
        frag_tensor whole = shards->whole[shards->order[k]];
        if (is_in(shards, group, shards->order[k]))
            frag_tape_fill_storage(tape, whole, frag_tape_count(tape, whole));
    }
    for (uint32_t i = 0; i < model->buffer_count; i++) {
        uint32_t block = model->buffer_blocks[i];
        uint32_t rest = shards->group_count - 1;
        if ((block < rest ? block : rest) == group)
            frag_tape_fill_storage(tape, model->buffers[i],
                                   frag_tape_count(tape, model->buffers[i]));
    }
}

static void find_groups(frag_shards *shards, const frag_model *model)
{
    uint64_t blocks = model->workload->network.layers;
    shards->group_count = (uint32_t)blocks + 1;
    shards->groups = frag_alloc(blocks + 1, sizeof *shards->groups);
    for (uint32_t i = 0; i < blocks; i++) {
        shards->groups[i].first = model->block_starts[i];
        shards->groups[i].count = model->block_starts[i + 1] - model->block_starts[i];
    }
}

static void run_hook(frag_tape *tape, void *context, uint32_t number);

frag_shards *frag_shards_create(frag_tape *tape, frag_model *model, uint64_t rank, uint64_t devices)
{
    frag_shards *shards = frag_alloc(1, sizeof *shards);
    size_t most = (size_t)model->parameter_count + 1;
    shards->model = *model;
    shards->model.parameters = frag_alloc(most, sizeof(frag_tensor));
    shards->whole = model->parameters;
    shards->order = frag_alloc(most, sizeof *shards->order);
    for (uint32_t i = 0; i < model->parameter_count; i++)
        shards->order[model->forms[i].moved] = i;
    shards->padded = frag_alloc(most, sizeof *shards->padded);
    shards->parameter_count = model->parameter_count;
    shards->devices = devices;
    shards->is_cast = model->workload->precision == FRAG_PRECISION_MIXED_BF16;
    shards->is_on_host = (model->workload->offload & FRAG_OFFLOAD_PARAMETERS) != 0;
    if (shards->is_on_host)
        shards->model.parameter_count = 0;
    find_groups(shards, model);
    frag_request_kind was = frag_tape_set_kind(tape, FRAG_REQUEST_WEIGHT);
    for (uint32_t group = 0; group < shards->group_count; group++) {
        move(tape, shards, model, group);
        for (uint32_t i = 0; i < model->parameter_count; i++)
            if (is_in(shards, group, shards->order[i]))
                cut(tape, shards, shards->order[i], &(shard_cut){rank, devices});
        for (uint32_t i = 0; i < model->parameter_count; i++)
            if (is_in(shards, group, i))
                frag_tape_empty_storage(tape, shards->whole[i]);
    }
    for (uint32_t i = 0; i < model->parameter_count && shards->is_cast; i++)
        frag_tape_set_dtype(tape, shards->whole[i], FRAG_BF16);
    if (shards->is_cast)
        model->dtype = FRAG_BF16;
    frag_tape_set_kind(tape, was);
    frag_tape_set_hook(tape, run_hook, shards);
    model->shards = shards;
    return shards;
}

void frag_shards_destroy(frag_shards *shards)
{
    if (shards == NULL)
        return;
    frag_free(shards->model.parameters);
    frag_free(shards->order);
    frag_free(shards->padded);
    frag_free(shards->groups);
    frag_free(shards);
}

const frag_model *frag_shards_model(const frag_shards *shards)
{
    return &shards->model;
}

/* ---- gathering */
/* Shards of a group that come from the host, each cast where it has to be; the caller frees them.
 * There may be none. */
static frag_tensor *bring(frag_tape *tape, const frag_shards *shards, uint32_t group,
                          uint32_t *count)
{
    frag_tensor *brought = frag_alloc((size_t)shards->parameter_count + 1, sizeof *brought);
    *count = 0;
    for (uint32_t k = 0; k < shards->parameter_count && shards->is_on_host; k++) {
        uint32_t i = shards->order[k];
        if (!is_in(shards, group, i))
            continue;
        frag_tensor *at = &brought[(*count)++];
        frag_dtype dtype = frag_tape_dtype(tape, shards->model.parameters[i]);
        *at = frag_tape_empty(tape, shards->padded[i], dtype);
        if (shards->is_cast)
            frag_tape_set(tape, at, frag_tape_empty(tape, shards->padded[i], FRAG_BF16));
    }
    return brought;
}

static void send(frag_tape *tape, frag_shards *shards, uint32_t group)
{
    shard_group *of = &shards->groups[group];
    if (of->gathered != 0 || of->is_whole)
        return;
    uint64_t was = frag_tape_set_stream(tape, STREAM_GATHER);
    uint64_t bytes = count_padded_bytes(tape, shards, group);
    bool is_cast_at_once = shards->is_cast && !shards->is_on_host;
    uint32_t count = 0;
    frag_tensor *brought = bring(tape, shards, group, &count);
    frag_tensor cast = is_cast_at_once ? frag_tape_empty(tape, bytes, FRAG_BOOL) : 0;
    of->gathered = frag_tape_empty(tape, bytes * shards->devices, FRAG_BOOL);
    frag_tape_drop(tape, cast);
    for (uint32_t i = 0; i < count; i++)
        frag_tape_drop(tape, brought[i]);
    frag_free(brought);
    frag_tape_set_stream(tape, was);
}

enum { COPY_BLOCK_BYTES = 2048, COPY_BLOCK_THREADS = 128, WORD = 8 };

/* What split_with_sizes_copy and _chunk_cat take: so many words and as many for each parameter
 * (addresses, offsets, sizes), and which parameter each block of the kernel copies. */
typedef struct copy_table {
    uint64_t words;
    uint64_t words_each;
    uint64_t block_bytes; /* that a block copies */
    bool is_reduced;      /* of gradients: what is trained alone */
} copy_table;

static uint64_t count_words(const frag_tape *tape, const frag_shards *shards, uint32_t group,
                            const copy_table *of)
{
    uint64_t words = of->words;
    for (uint32_t i = 0; i < shards->parameter_count; i++)
        if (of->is_reduced ? is_trained(tape, shards, group, i) : is_in(shards, group, i)) {
            /* The kernel's blocks are counted by what it writes. */
            frag_tensor copied = of->is_reduced ? shards->model.parameters[i] : shards->whole[i];
            uint64_t bytes = frag_dtype_bytes(frag_tape_dtype(tape, copied));
            words += of->words_each + frag_divide_up(shards->padded[i] * bytes, of->block_bytes);
        }
    return words;
}

static void take_copy_table(frag_tape *tape, const frag_shards *shards, uint32_t group,
                            const copy_table *of)
{
    uint64_t words = count_words(tape, shards, group, of);
    frag_tape_drop(tape, frag_tape_empty(tape, words * WORD, FRAG_BOOL));
}

/* split_with_sizes_copy_out_cuda_contiguous_no_cast: where blocks are more than the card runs
 * twice over, each copies more of a shard, and of more shards. */
static uint64_t find_block_bytes(const frag_tape *tape, const frag_shards *shards, uint32_t group)
{
    const frag_tape_card *card = frag_tape_get_card(tape);
    const copy_table least = {0, 0, COPY_BLOCK_BYTES, false};
    uint64_t blocks = count_words(tape, shards, group, &least) * shards->devices;
    uint64_t most =
        2 * (card->multiprocessors * card->threads_per_multiprocessor / COPY_BLOCK_THREADS);
    uint64_t factor = frag_divide_up(blocks, most);
    uint64_t chunks = 1;
    while (chunks * chunks < factor && chunks < shards->devices)
        chunks++;
    return COPY_BLOCK_BYTES * frag_divide_up(factor, chunks);
}

/* Parameters out of what was gathered, which in a forward pass stays until the next is copied. */
static void copy_out(frag_tape *tape, frag_shards *shards, uint32_t group, bool is_forward)
{
    shard_group *of = &shards->groups[group];
    if (of->gathered == 0)
        return;
    frag_request_kind was = frag_tape_set_kind(tape, FRAG_REQUEST_WEIGHT);
    for (uint32_t k = 0; k < shards->parameter_count; k++) {
        uint32_t i = shards->order[k];
        if (is_in(shards, group, i))
            frag_tape_fill_storage(tape, shards->whole[i], shards->padded[i] * shards->devices);
    }
    frag_tape_set_kind(tape, was);
    take_copy_table(tape, shards, group,
                    &(copy_table){1, 4, find_block_bytes(tape, shards, group), false});
    of->is_whole = true;
    if (is_forward)
        frag_tape_set(tape, &shards->gathered_before, of->gathered);
    else
        frag_tape_drop(tape, of->gathered);
    of->gathered = 0;
}

static void give_back(frag_tape *tape, frag_shards *shards, uint32_t group)
{
    for (uint32_t i = 0; i < shards->parameter_count && shards->groups[group].is_whole; i++)
        if (is_in(shards, group, i))
            frag_tape_empty_storage(tape, shards->whole[i]);
    shards->groups[group].is_whole = false;
}

/* ---- gradients: added up, and cut into shards, which are parts of one result */
static void reduce(frag_tape *tape, frag_shards *shards, uint32_t group)
{
    uint64_t count = 0;
    uint32_t last = 0; /* a name holds its gradient to the end */
    for (uint32_t k = 0; k < shards->parameter_count; k++) {
        uint32_t i = shards->order[k];
        if (is_trained(tape, shards, group, i)) {
            count += shards->padded[i];
            last = i;
        }
    }
    frag_dtype dtype = frag_tape_dtype(tape, shards->model.parameters[last]);
    give_back(tape, shards, group);
    shards->groups[group].is_done = true;
    if (count == 0)
        return;
    frag_tape_clear(tape, &shards->reduced);
    shards->reduced = frag_tape_empty(tape, count * shards->devices, dtype);
    take_copy_table(tape, shards, group, &(copy_table){2, 6, COPY_BLOCK_BYTES, true});
    for (uint32_t i = 0; i < shards->parameter_count; i++)
        if (i != last && is_trained(tape, shards, group, i))
            frag_tape_clear_gradient(tape, shards->whole[i]);
    uint64_t was = frag_tape_set_stream(tape, STREAM_REDUCE);
    frag_tensor result = frag_tape_empty(tape, count, dtype);
    frag_tape_set_stream(tape, was);
    for (uint32_t i = 0; i < shards->parameter_count; i++) {
        frag_tensor own = shards->model.parameters[i];
        bool is_kept = is_trained(tape, shards, group, i) && !shards->is_on_host;
        if (is_kept && frag_tape_gradient(tape, own) == 0)
            frag_tape_set_gradient(tape, own,
                                   frag_tape_alias(tape, result, frag_tape_count(tape, own)));
    }
    frag_tape_drop(tape, result);
    frag_tape_clear_gradient(tape, shards->whole[last]);
}

/* ---- hooks: before a group's backward, 2 x group + 1; behind it, one more */
static void begin_backward(frag_tape *tape, frag_shards *shards, uint32_t group)
{
    send(tape, shards, group);
    copy_out(tape, shards, group, false);
    if (group > 0)
        send(tape, shards, group - 1);
}

static void run_hook(frag_tape *tape, void *context, uint32_t number)
{
    frag_shards *shards = context;
    uint32_t rest = shards->group_count - 1;
    if (number == FRAG_HOOK_END) {
        reduce(tape, shards, rest);
        for (uint32_t i = 0; i < rest; i++) /* whose inputs want no gradient */
            if (!shards->groups[i].is_done)
                reduce(tape, shards, i);
        frag_tape_clear(tape, &shards->reduced);
        for (uint32_t i = 0; i <= rest; i++)
            shards->groups[i].is_done = false;
    } else if (number % 2 == 1)
        begin_backward(tape, shards, (number - 1) / 2);
    else
        reduce(tape, shards, number / 2 - 1);
}

/* ---- around the model and its blocks */
/* Before the first forward pass a shard that is shorter than that of the first rank is copied to
 * where there is room for as much. */
static void pad(frag_tape *tape, frag_shards *shards, uint32_t group)
{
    frag_tensor *own = shards->model.parameters;
    for (uint32_t k = 0; k < shards->parameter_count; k++) {
        uint32_t i = shards->order[k];
        uint64_t count = frag_tape_count(tape, own[i]);
        if (!is_in(shards, group, i) || count == shards->padded[i])
            continue;
        frag_tensor room = frag_tape_empty(tape, shards->padded[i], frag_tape_dtype(tape, own[i]));
        frag_tape_set(tape, &own[i], frag_tape_alias(tape, room, count));
        frag_tape_drop(tape, room);
    }
}

static void pad_all(frag_tape *tape, frag_shards *shards)
{
    uint32_t rest = shards->group_count - 1;
    frag_request_kind was = frag_tape_set_kind(tape, FRAG_REQUEST_WEIGHT);
    for (uint32_t i = 0; i <= rest && !shards->is_padded && !shards->is_on_host; i++)
        pad(tape, shards, i == 0 ? rest : i - 1);
    frag_tape_set_kind(tape, was);
    shards->is_padded = true;
}

void frag_shards_begin(frag_tape *tape, const frag_model *model)
{
    frag_shards *shards = model->shards;
    if (shards == NULL)
        return;
    pad_all(tape, shards);
    send(tape, shards, shards->group_count - 1);
    copy_out(tape, shards, shards->group_count - 1, true);
}

void frag_shards_end(frag_tape *tape, const frag_model *model, frag_tensor loss)
{
    frag_shards *shards = model->shards;
    if (shards == NULL)
        return;
    frag_tape_hook(tape, loss, 2 * (shards->group_count - 1) + 1);
    frag_tape_clear(tape, &shards->gathered_before);
}

frag_tensor frag_shards_enter(frag_tape *tape, const frag_model *model, uint64_t block,
                              frag_tensor input)
{
    frag_shards *shards = model->shards;
    if (shards == NULL)
        return frag_tape_keep(tape, input);
    send(tape, shards, (uint32_t)block);
    copy_out(tape, shards, (uint32_t)block, true);
    return frag_tape_hook_behind(tape, input, 2 * (uint32_t)block + 2);
}

void frag_shards_leave(frag_tape *tape, const frag_model *model, uint64_t block, frag_tensor output)
{
    frag_shards *shards = model->shards;
    if (shards == NULL)
        return;
    if (model->workload->is_resharded)
        give_back(tape, shards, (uint32_t)block);
    frag_tape_hook(tape, output, 2 * (uint32_t)block + 1);
}
