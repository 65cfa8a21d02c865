#include "workload/ddp.h"

#include "base/memory.h"

enum {
    FIRST_BUCKET_BYTES = 1 << 20,
    BUCKET_BYTES = 25 << 20,
    SENT_BYTES = 250 << 20,
    IN_FLIGHT_MAX = 2
};

struct frag_ddp {
    const frag_model *model;
    uint32_t *order; /* parameters in which gradients came */
    uint32_t ready_count;
    frag_tensor *buckets;
    size_t buckets_capacity;
    uint32_t bucket_count;
    bool is_rebuilt;
    bool is_quiet; /* the pass before had no gradients: buffers are not sent before the next */
};

static bool is_trained(const frag_tape *tape, const frag_model *model, uint32_t i)
{
    return frag_tape_needs_gradient(tape, model->parameters[i]);
}

/* ---- tensors in buckets of a type, each closed when it has come to its size */
typedef struct open_bucket {
    uint64_t count; /* elements; 0: none is open */
    uint64_t first; /* the tensor that it begins with */
    uint32_t closed;
} open_bucket;

typedef struct bucket_size {
    uint64_t count;
    uint64_t first;
    frag_dtype dtype;
} bucket_size;

typedef struct bucket_list {
    bucket_size *sizes;
    size_t capacity;
    uint32_t count;
} bucket_list;

static void close_bucket(bucket_list *list, open_bucket *open, frag_dtype dtype)
{
    *FRAG_APPEND(list->sizes, list->count, list->capacity) =
        (bucket_size){open->count, open->first, dtype};
    *open = (open_bucket){.closed = open->closed + 1};
}

/* _compute_bucket_assignment_by_size: the first bucket of a type has limits[0], others limits[1].
 */
static bucket_list assign(const frag_tape *tape, const frag_tensor *tensors, uint32_t count,
                          const uint64_t limits[2])
{
    bucket_list list = {0};
    open_bucket open[FRAG_DTYPE_COUNT] = {{0}};
    for (uint32_t i = 0; i < count; i++) {
        frag_dtype dtype = frag_tape_dtype(tape, tensors[i]);
        open_bucket *at = &open[dtype];
        if (at->count == 0)
            at->first = i;
        at->count += frag_tape_count(tape, tensors[i]);
        if (at->count * frag_dtype_bytes(dtype) >= limits[at->closed > 0])
            close_bucket(&list, at, dtype);
    }
    for (uint32_t i = 0; i < FRAG_DTYPE_COUNT; i++)
        if (open[i].count > 0)
            close_bucket(&list, &open[i], (frag_dtype)i);
    return list;
}

static void sort_by_first(bucket_list *list)
{
    for (uint32_t i = 1; i < list->count; i++) {
        bucket_size moved = list->sizes[i];
        uint32_t at = i;
        for (; at > 0 && list->sizes[at - 1].first > moved.first; at--)
            list->sizes[at] = list->sizes[at - 1];
        list->sizes[at] = moved;
    }
}

/* Broadcasts what is on the first rank, a flat copy of each bucket, two at a time. */
static void send(frag_tape *tape, const frag_tensor *tensors, uint32_t count)
{
    bucket_list list = assign(tape, tensors, count, (uint64_t[]){SENT_BYTES, SENT_BYTES});
    sort_by_first(&list);
    frag_tensor flights[IN_FLIGHT_MAX] = {0};
    for (uint32_t i = 0; i < list.count; i++) {
        frag_tape_clear(tape, &flights[i % IN_FLIGHT_MAX]);
        const bucket_size *of = &list.sizes[i];
        bool is_alone = frag_tape_count(tape, tensors[of->first]) == of->count;
        flights[i % IN_FLIGHT_MAX] = is_alone ? frag_tape_keep(tape, tensors[of->first])
                                              : frag_tape_empty(tape, of->count, of->dtype);
    }
    for (uint32_t i = 0; i < IN_FLIGHT_MAX; i++)
        frag_tape_drop(tape, flights[(list.count + i) % IN_FLIGHT_MAX]);
    frag_free(list.sizes);
}

static void drop_buckets(frag_tape *tape, frag_ddp *ddp)
{
    frag_tape_drop_all(tape, ddp->buckets, ddp->bucket_count);
    ddp->bucket_count = 0;
}

static void make_buckets(frag_tape *tape, frag_ddp *ddp, const bucket_list *list)
{
    drop_buckets(tape, ddp);
    frag_request_kind was = frag_tape_set_kind(tape, FRAG_REQUEST_GRADIENT);
    for (uint32_t i = 0; i < list->count; i++) {
        *FRAG_APPEND(ddp->buckets, ddp->bucket_count, ddp->buckets_capacity) =
            frag_tape_empty(tape, list->sizes[i].count, list->sizes[i].dtype);
    }
    frag_tape_set_kind(tape, was);
}

/* Parameters that are trained, in an order: i-th of the model's, or as gradients came. */
static uint32_t list_trained(const frag_tape *tape, const frag_ddp *ddp, bool is_by_gradient,
                             frag_tensor *tensors)
{
    const frag_model *model = ddp->model;
    uint32_t count = 0;
    for (uint32_t i = 0; i < (is_by_gradient ? ddp->ready_count : model->parameter_count); i++) {
        uint32_t at = is_by_gradient ? ddp->order[i] : i;
        if (is_trained(tape, model, at))
            tensors[count++] = model->parameters[at];
    }
    return count;
}

static void note_ready(frag_tape *tape, void *context, frag_tensor parameter)
{
    frag_ddp *ddp = context;
    (void)tape;
    for (uint32_t i = 0; i < ddp->model->parameter_count && !ddp->is_rebuilt; i++)
        if (ddp->model->parameters[i] == parameter &&
            ddp->ready_count < ddp->model->parameter_count)
            ddp->order[ddp->ready_count++] = i;
}

/* Ranks compare how many parameters they have, then how long these are along each dimension and
 * apart. */
static void compare(frag_tape *tape, const frag_model *model, uint64_t devices)
{
    frag_tensor own = frag_tape_empty(tape, 1, FRAG_I64);
    uint64_t numbers = 0;
    for (uint32_t i = 0; i < model->parameter_count; i++)
        if (is_trained(tape, model, i))
            numbers += 2 * (uint64_t)model->forms[i].dimensions;
    frag_tensor *others = frag_alloc(devices, sizeof *others);
    for (uint64_t i = 0; i < devices; i++)
        others[i] = frag_tape_empty(tape, 1, FRAG_I64);
    frag_tape_drop(tape, frag_tape_empty(tape, devices, FRAG_I64)); /* as NCCL gathers them */
    frag_tensor sizes = frag_tape_empty(tape, numbers, FRAG_I64);
    frag_tape_drop(tape, own);
    frag_tape_drop_all(tape, others, devices);
    frag_tape_drop(tape, sizes);
    frag_free(others);
}

frag_ddp *frag_ddp_create(frag_tape *tape, const frag_model *model, uint64_t devices)
{
    frag_ddp *ddp = frag_alloc(1, sizeof *ddp);
    ddp->model = model;
    ddp->order = frag_alloc((size_t)model->parameter_count + 1, sizeof *ddp->order);
    size_t most = (size_t)model->parameter_count + model->buffer_count + 1;
    frag_tensor *tensors = frag_alloc(most, sizeof *tensors);
    uint32_t count = list_trained(tape, ddp, false, tensors);
    compare(tape, model, devices);
    bucket_list list = assign(tape, tensors, count, (uint64_t[]){UINT64_MAX, UINT64_MAX});
    for (uint32_t i = 0; i < model->parameter_count; i++)
        tensors[i] = model->parameters[i];
    for (uint32_t i = 0; i < model->buffer_count; i++)
        tensors[model->parameter_count + i] = model->buffers[i];
    send(tape, tensors, model->parameter_count + model->buffer_count);
    make_buckets(tape, ddp, &list);
    frag_free(list.sizes);
    frag_free(tensors);
    frag_tape_watch_gradients(tape, note_ready, ddp);
    return ddp;
}

void frag_ddp_destroy(frag_ddp *ddp)
{
    if (ddp == NULL)
        return;
    frag_free(ddp->buckets);
    frag_free(ddp->order);
    frag_free(ddp);
}

void frag_ddp_begin_forward(frag_tape *tape, frag_ddp *ddp)
{
    if (ddp->ready_count > 0 && !ddp->is_rebuilt) {
        frag_tensor *tensors = frag_alloc((size_t)ddp->ready_count + 1, sizeof *tensors);
        uint32_t count = list_trained(tape, ddp, true, tensors);
        bucket_list list =
            assign(tape, tensors, count, (uint64_t[]){FIRST_BUCKET_BYTES, BUCKET_BYTES});
        /* The first rank's order is sent: an index for each parameter, their number, and how many
         * each bucket has. */
        frag_tensor indices = frag_tape_empty(tape, (uint64_t)count + 1, FRAG_I32);
        frag_tape_drop(tape, frag_tape_empty(tape, list.count, FRAG_I32));
        frag_tape_drop(tape, indices);
        make_buckets(tape, ddp, &list);
        frag_free(list.sizes);
        frag_free(tensors);
        ddp->is_rebuilt = true;
    }
    if (ddp->model->buffer_count > 0 && !ddp->is_quiet)
        send(tape, ddp->model->buffers, ddp->model->buffer_count);
    ddp->is_quiet = !frag_tape_is_recording(tape);
}

/* ---- ZeRO 1 */
/* Trained parameters, the largest first, equal ones in their order. */
static uint32_t sort_by_size(const frag_tape *tape, const frag_model *model, uint32_t *sorted)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < model->parameter_count; i++) {
        if (!is_trained(tape, model, i))
            continue;
        uint32_t at = count++;
        uint64_t size = frag_tape_count(tape, model->parameters[i]);
        for (; at > 0 && frag_tape_count(tape, model->parameters[sorted[at - 1]]) < size; at--)
            sorted[at] = sorted[at - 1];
        sorted[at] = i;
    }
    return count;
}

frag_model frag_ddp_partition(const frag_tape *tape, const frag_model *model,
                              const frag_partition *of)
{
    frag_model part = *model;
    size_t most = (size_t)model->parameter_count + 1;
    part.parameters = frag_alloc(most, sizeof *part.parameters);
    part.forms = frag_alloc(most, sizeof *part.forms);
    part.parameter_count = 0;
    uint32_t *sorted = frag_alloc(most, sizeof *sorted);
    uint64_t *sizes = frag_alloc(of->devices, sizeof *sizes);
    uint32_t count = sort_by_size(tape, model, sorted);
    for (uint32_t i = 0; i < count; i++) {
        uint64_t least = 0;
        for (uint64_t rank = 1; rank < of->devices; rank++)
            least = sizes[rank] < sizes[least] ? rank : least;
        sizes[least] += frag_tape_count(tape, model->parameters[sorted[i]]);
        if (least != of->rank)
            continue;
        part.forms[part.parameter_count] = model->forms[sorted[i]];
        part.parameters[part.parameter_count++] = model->parameters[sorted[i]];
    }
    frag_free(sizes);
    frag_free(sorted);
    return part;
}
