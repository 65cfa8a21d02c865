/* A tape's tensors and their storages, with the requests that come of them, and the nodes of its
 * graph: who holds what, and what goes with the last that holds it. */
#include <string.h>

#include "base/memory.h"
#include "sim/device/uncertain_size.h"
#include "workload/tape/tape_state.h"

enum { NODES_PER_CHUNK = 1024 };

frag_tape *frag_tape_create(frag_builder *builder, const frag_tape_card *card)
{
    frag_tape *tape = frag_alloc(1, sizeof *tape);
    tape->builder = builder;
    tape->card = *card;
    tape->is_recording = true;
    tape->limit_bytes = UINT64_MAX;
    /* 0 is nothing in all three tables. */
    tape->storages = frag_grow(NULL, &tape->storages_capacity, 64, sizeof *tape->storages);
    tape->tensors = frag_grow(NULL, &tape->tensors_capacity, 64, sizeof *tape->tensors);
    memset(&tape->storages[0], 0, sizeof tape->storages[0]);
    memset(&tape->tensors[0], 0, sizeof tape->tensors[0]);
    tape->storage_count = tape->tensor_count = tape->node_count = 1;
    return tape;
}

void frag_tape_destroy(frag_tape *tape)
{
    if (tape == NULL)
        return;
    for (uint32_t i = 1; i < tape->node_count; i++)
        frag_tape_forget_places(frag_tape_node(tape, i));
    for (uint32_t i = 0; i * NODES_PER_CHUNK < tape->node_count && tape->chunks != NULL; i++)
        frag_free(tape->chunks[i]);
    frag_free(tape->chunks);
    frag_free(tape->storages);
    frag_free(tape->tensors);
    frag_free(tape->casts);
    frag_free(tape->slots);
    frag_free(tape->uncertain);
    frag_free(tape);
}

const frag_tape_card *frag_tape_get_card(const frag_tape *tape)
{
    return &tape->card;
}

void frag_tape_set_limit(frag_tape *tape, uint64_t bytes)
{
    tape->limit_bytes = bytes;
}

bool frag_tape_is_over(const frag_tape *tape)
{
    return tape->is_over;
}

static void count_live(frag_tape *tape, uint64_t bytes)
{
    tape->live_bytes += bytes;
    tape->is_over |= tape->live_bytes > tape->limit_bytes;
}

/* ---- events */
static void add_event(frag_tape *tape, frag_op op, uint8_t flags, uint32_t slot, uint64_t bytes)
{
    frag_build_event event = {
        .op = op, .flags = flags, .slot = slot, .bytes = bytes, .stream = tape->stream};
    frag_builder_add(tape->builder, &event);
}

static void add_mark(frag_tape *tape, const char *name, uint8_t flags)
{
    add_event(tape, FRAG_OP_MARK, flags, frag_builder_string(tape->builder, name, strlen(name)), 0);
}

void frag_tape_begin(frag_tape *tape, const char *name)
{
    add_mark(tape, name, FRAG_EVENT_BEGIN);
}
void frag_tape_end(frag_tape *tape, const char *name)
{
    add_mark(tape, name, FRAG_EVENT_END);
}

void frag_tape_empty_cache(frag_tape *tape)
{
    add_event(tape, FRAG_OP_EMPTY_CACHE, 0, FRAG_SLOT_NONE, 0);
}

/* ---- kinds */
void frag_tape_watch_kinds(frag_tape *tape, frag_request_kinds *kinds)
{
    tape->kinds = kinds;
}

frag_request_kind frag_tape_set_kind(frag_tape *tape, frag_request_kind kind)
{
    frag_request_kind was = tape->kind;
    tape->kind = kind;
    return was;
}

static void keep_kind(frag_tape *tape, frag_tape_storage *of)
{
    frag_request_kinds *kinds = tape->kinds;
    if (kinds == NULL)
        return;
    kinds->kinds = frag_grow(kinds->kinds, &kinds->capacity, kinds->count + 1, 1);
    of->request = kinds->count;
    kinds->kinds[kinds->count++] = (uint8_t)tape->kind;
}

void frag_tape_turn_kind(frag_tape *tape, frag_tensor id, frag_request_kind kind)
{
    const frag_tape_storage *of = &tape->storages[tape->tensors[id].storage];
    if (tape->kinds == NULL || id == 0 || of->bytes == 0)
        return;
    uint8_t *held = &tape->kinds->kinds[of->request];
    if (*held == FRAG_REQUEST_TEMPORARY ||
        (*held == FRAG_REQUEST_ACTIVATION && kind == FRAG_REQUEST_GRADIENT))
        *held = (uint8_t)kind;
}

/* ---- tensors */
uint64_t frag_dtype_bytes(frag_dtype dtype)
{
    static const uint8_t bytes[] = {
        [FRAG_F32] = 4, [FRAG_F16] = 2,  [FRAG_BF16] = 2, [FRAG_I64] = 8,
        [FRAG_I32] = 4, [FRAG_BOOL] = 1, [FRAG_I8] = 1};
    return bytes[dtype];
}

static uint32_t take_storage(frag_tape *tape, uint64_t bytes)
{
    uint32_t id = tape->storage_free;
    if (id != 0)
        tape->storage_free = tape->storages[id].slot;
    else {
        id = tape->storage_count++;
        tape->storages = frag_grow(tape->storages, &tape->storages_capacity, tape->storage_count,
                                   sizeof *tape->storages);
    }
    uint32_t slot = bytes > 0 ? frag_builder_slot_take(tape->builder) : 0;
    tape->storages[id] = (frag_tape_storage){.slot = slot, .bytes = bytes};
    if (bytes > 0) {
        keep_kind(tape, &tape->storages[id]);
        count_live(tape, bytes);
        add_event(tape, FRAG_OP_ALLOC, 0, slot, bytes);
    }
    return id;
}

static void drop_storage(frag_tape *tape, uint32_t id)
{
    frag_tape_storage *held = &tape->storages[id];
    FRAG_ASSERT(held->references > 0);
    if (--held->references > 0)
        return;
    if (held->bytes > 0) {
        tape->live_bytes -= held->bytes;
        add_event(tape, FRAG_OP_FREE, 0, held->slot, 0);
        frag_builder_slot_give(tape->builder, held->slot);
    }
    held->slot = tape->storage_free;
    tape->storage_free = id;
}

static frag_tensor take_tensor(frag_tape *tape, uint32_t storage_id, uint64_t count,
                               frag_dtype dtype)
{
    frag_tensor id = tape->tensor_free;
    if (id != 0)
        tape->tensor_free = tape->tensors[id].storage;
    else {
        id = tape->tensor_count++;
        tape->tensors = frag_grow(tape->tensors, &tape->tensors_capacity, tape->tensor_count,
                                  sizeof *tape->tensors);
    }
    tape->tensors[id] =
        (frag_tape_tensor){.storage = storage_id, .references = 1, .count = count, .dtype = dtype};
    tape->storages[storage_id].references++;
    return id;
}

frag_tensor frag_tape_empty(frag_tape *tape, uint64_t count, frag_dtype dtype)
{
    uint64_t bytes = count * frag_dtype_bytes(dtype);
    if (frag_tape_is_past_saved(tape) || tape->is_silent)
        bytes = 0;
    tape->allocation_count++;
    return take_tensor(tape, take_storage(tape, bytes), count, dtype);
}

frag_tensor frag_tape_empty_like(frag_tape *tape, frag_tensor id)
{
    return frag_tape_empty(tape, tape->tensors[id].count, tape->tensors[id].dtype);
}

frag_tensor frag_tape_alias(frag_tape *tape, frag_tensor base, uint64_t count)
{
    return take_tensor(tape, tape->tensors[base].storage, count, tape->tensors[base].dtype);
}

frag_tensor frag_tape_view(frag_tape *tape, frag_tensor base, uint64_t count)
{
    frag_tensor view = frag_tape_alias(tape, base, count);
    frag_tensor root = tape->tensors[base].base != 0 ? tape->tensors[base].base : base;
    tape->tensors[view].base = frag_tape_keep(tape, root);
    return view;
}

static uint32_t take_node(frag_tape *tape)
{
    uint32_t id = tape->node_free;
    if (id != 0) {
        tape->node_free = frag_tape_node(tape, id)->visit;
    } else {
        id = tape->node_count++;
        uint32_t chunk = id / NODES_PER_CHUNK;
        if (chunk >= tape->chunks_capacity || tape->chunks[chunk] == NULL) {
            size_t old = tape->chunks_capacity;
            tape->chunks =
                frag_grow(tape->chunks, &tape->chunks_capacity, chunk + 1, sizeof *tape->chunks);
            if (tape->chunks_capacity > old)
                memset(tape->chunks + old, 0, (tape->chunks_capacity - old) * sizeof *tape->chunks);
            tape->chunks[chunk] = frag_alloc(NODES_PER_CHUNK, sizeof(frag_node));
        }
    }
    *frag_tape_node(tape, id) = (frag_node){0};
    return id;
}

/* The node through which the tensor's gradient comes. */
static frag_node *accumulate_into(frag_tape *tape, frag_tensor id)
{
    uint32_t node = take_node(tape);
    frag_node *accumulate = frag_tape_node(tape, node);
    accumulate->parameter = id;
    accumulate->sequence = UINT64_MAX;
    accumulate->output_count = 1;
    accumulate->counts[0] = tape->tensors[id].count;
    accumulate->dtypes[0] = tape->tensors[id].dtype;
    tape->tensors[id].node = node;
    return accumulate;
}

frag_tensor frag_tape_parameter(frag_tape *tape, uint64_t count, frag_dtype dtype, bool is_frozen)
{
    bool was_silent = tape->is_silent;
    tape->is_silent |= tape->is_hosting;
    frag_tensor id = frag_tape_empty(tape, count, dtype);
    tape->is_silent = was_silent;
    tape->tensors[id].is_hosted = tape->is_hosting;
    if (is_frozen)
        return id;
    accumulate_into(tape, id)->references = 1;
    tape->tensors[id].is_leaf = true;
    return id;
}

void frag_tape_set_part(frag_tape *tape, frag_tensor id)
{
    tape->tensors[id].is_part = true;
}

frag_tensor frag_tape_collector(frag_tape *tape, uint64_t count, frag_dtype dtype)
{
    frag_tensor id = frag_tape_parameter(tape, count, dtype, false);
    frag_tape_node(tape, tape->tensors[id].node)->is_collecting = true;
    return id;
}

frag_tensor frag_tape_collect_into(frag_tape *tape, frag_tensor collector, frag_tensor base)
{
    frag_tensor id = frag_tape_alias(tape, base, tape->tensors[collector].count);
    tape->tensors[id].node = tape->tensors[collector].node;
    frag_tape_node_keep(tape, tape->tensors[id].node);
    return id;
}

void frag_tape_prune(frag_tape *tape, frag_tensor parameter, frag_tensor mask)
{
    tape->tensors[parameter].mask = mask;
}

frag_tensor frag_tape_mask(const frag_tape *tape, frag_tensor parameter)
{
    return tape->tensors[parameter].mask;
}

void frag_tape_name_masked(frag_tape *tape, frag_tensor parameter, frag_tensor product)
{
    frag_tensor old = tape->tensors[parameter].masked;
    tape->tensors[parameter].masked = product;
    frag_tape_drop(tape, old);
}

void frag_tape_set_hosting(frag_tape *tape, bool is_hosting)
{
    tape->is_hosting = is_hosting;
}

bool frag_tape_is_hosted(const frag_tape *tape, frag_tensor id)
{
    return tape->tensors[id].is_hosted;
}

void frag_tape_fetch(frag_tape *tape, const frag_tensor *parameters, uint32_t count)
{
    if (!tape->is_hosting)
        return;
    frag_request_kind was = frag_tape_set_kind(tape, FRAG_REQUEST_WEIGHT);
    for (uint32_t i = 0; i < count; i++) {
        frag_tape_tensor *of = &tape->tensors[parameters[i]];
        if (!of->is_hosted || of->users++ > 0)
            continue;
        frag_tape_fill_storage(tape, parameters[i], of->count);
        frag_tape_empty_cache(tape);
    }
    frag_tape_set_kind(tape, was);
}

void frag_tape_send_back(frag_tape *tape, const frag_tensor *parameters, uint32_t count)
{
    for (uint32_t i = 0; i < count && tape->is_hosting; i++) {
        frag_tape_tensor *of = &tape->tensors[parameters[i]];
        if (of->is_hosted && --of->users == 0)
            frag_tape_empty_storage(tape, parameters[i]);
    }
}

void frag_tape_set_kernel(frag_tape *tape, frag_attention_kernel kernel)
{
    tape->kernel = kernel;
}

frag_attention_kernel frag_tape_kernel(const frag_tape *tape)
{
    return tape->kernel;
}

void frag_tape_set_silent(frag_tape *tape, bool is_silent)
{
    tape->is_silent = is_silent;
}

/* The other way around than with a parameter: the node holds the tensor, and edges the node. */
void frag_tape_require_gradient(frag_tape *tape, frag_tensor id)
{
    FRAG_ASSERT(tape->tensors[id].node == 0);
    accumulate_into(tape, id)->holds_parameter = true;
    tape->tensors[id].is_leaf = tape->tensors[id].base == 0;
    (void)frag_tape_keep(tape, id);
}

uint64_t frag_tape_count(const frag_tape *tape, frag_tensor id)
{
    return tape->tensors[id].count;
}
frag_dtype frag_tape_dtype(const frag_tape *tape, frag_tensor id)
{
    return tape->tensors[id].dtype;
}

bool frag_tape_needs_gradient(const frag_tape *tape, frag_tensor id)
{
    return id != 0 && tape->tensors[id].node != 0;
}

frag_tensor frag_tape_gradient(const frag_tape *tape, frag_tensor id)
{
    return tape->tensors[id].gradient;
}

void frag_tape_set_gradient(frag_tape *tape, frag_tensor id, frag_tensor gradient)
{
    FRAG_ASSERT(tape->tensors[id].gradient == 0);
    tape->tensors[id].gradient = gradient;
    frag_tape_turn_kind(tape, gradient, FRAG_REQUEST_GRADIENT);
}

void frag_tape_watch_gradients(frag_tape *tape, frag_gradient_watch *watch, void *context)
{
    tape->watch = watch;
    tape->watcher = context;
}

void frag_tape_tell_gradient(frag_tape *tape, frag_tensor parameter)
{
    if (tape->watch != NULL)
        tape->watch(tape, tape->watcher, parameter);
}

void frag_tape_clear_gradient(frag_tape *tape, frag_tensor id)
{
    frag_tape_clear(tape, &tape->tensors[id].gradient);
}

bool frag_tape_is_expanded(const frag_tape *tape, frag_tensor id)
{
    const frag_tape_tensor *of = &tape->tensors[id];
    return of->count * frag_dtype_bytes(of->dtype) > tape->storages[of->storage].bytes;
}

void frag_tape_set_column(frag_tape *tape, frag_tensor id)
{
    tape->tensors[id].is_column = true;
}
bool frag_tape_is_column(const frag_tape *tape, frag_tensor id)
{
    return tape->tensors[id].is_column;
}

void frag_tape_set_strided(frag_tape *tape, frag_tensor id)
{
    tape->tensors[id].is_strided = true;
}

bool frag_tape_is_view(const frag_tape *tape, frag_tensor id)
{
    return tape->tensors[id].base != 0;
}

bool frag_tape_is_strided(const frag_tape *tape, frag_tensor id)
{
    return tape->tensors[id].is_strided;
}

frag_tensor frag_tape_keep(frag_tape *tape, frag_tensor id)
{
    FRAG_ASSERT(tape->tensors[id].references > 0);
    tape->tensors[id].references++;
    return id;
}

void frag_tape_drop(frag_tape *tape, frag_tensor id)
{
    while (id != 0) {
        frag_tape_tensor *gone = &tape->tensors[id];
        FRAG_ASSERT(gone->references > 0);
        if (--gone->references > 0)
            return;
        frag_tensor base = gone->base;
        uint32_t node = gone->node;
        frag_tensor gradient = gone->gradient;
        drop_storage(tape, gone->storage);
        gone->storage = tape->tensor_free;
        tape->tensor_free = id;
        if (node != 0)
            frag_tape_node_drop(tape, node);
        frag_tape_drop(tape, gradient);
        id = base;
    }
}

void frag_tape_drop_all(frag_tape *tape, const frag_tensor *tensors, size_t count)
{
    for (size_t i = 0; i < count; i++)
        frag_tape_drop(tape, tensors[i]);
}

void frag_tape_set(frag_tape *tape, frag_tensor *name, frag_tensor value)
{
    frag_tensor old = *name;
    *name = value;
    frag_tape_drop(tape, old);
}

void frag_tape_clear(frag_tape *tape, frag_tensor *name)
{
    frag_tape_set(tape, name, 0);
}

bool frag_tape_is_last(const frag_tape *tape, frag_tensor id)
{
    return tape->tensors[id].references == 1;
}

bool frag_tape_is_sole(const frag_tape *tape, frag_tensor id)
{
    return tape->tensors[id].references == 1 &&
           tape->storages[tape->tensors[id].storage].references == 1;
}

/* ---- storages that come and go */
void frag_tape_empty_storage(frag_tape *tape, frag_tensor id)
{
    frag_tape_storage *held = &tape->storages[tape->tensors[id].storage];
    if (held->bytes == 0)
        return;
    tape->live_bytes -= held->bytes;
    add_event(tape, FRAG_OP_FREE, 0, held->slot, 0);
    frag_builder_slot_give(tape->builder, held->slot);
    held->bytes = 0;
}

void frag_tape_fill_storage(frag_tape *tape, frag_tensor id, uint64_t count)
{
    frag_tape_storage *held = &tape->storages[tape->tensors[id].storage];
    FRAG_ASSERT(held->bytes == 0);
    held->bytes = count * frag_dtype_bytes(tape->tensors[id].dtype);
    held->slot = frag_builder_slot_take(tape->builder);
    keep_kind(tape, held);
    count_live(tape, held->bytes);
    add_event(tape, FRAG_OP_ALLOC, 0, held->slot, held->bytes);
}

void frag_tape_set_dtype(frag_tape *tape, frag_tensor id, frag_dtype dtype)
{
    FRAG_ASSERT(tape->storages[tape->tensors[id].storage].bytes == 0);
    tape->tensors[id].dtype = dtype;
    uint32_t node = frag_tape_tensor_node(tape, id);
    if (node != 0) /* of its gradient */
        frag_tape_node(tape, node)->dtypes[0] = dtype;
}

uint64_t frag_tape_set_stream(frag_tape *tape, uint64_t stream)
{
    uint64_t was = tape->stream;
    tape->stream = stream;
    return was;
}

/* ---- hooks of backward */
void frag_tape_set_hook(frag_tape *tape, frag_hook *run, void *context)
{
    tape->hook = run;
    tape->hooked = context;
}

void frag_tape_call_hook(frag_tape *tape, uint32_t number)
{
    if (tape->hook != NULL && number != 0)
        tape->hook(tape, tape->hooked, number);
}

void frag_tape_hook(frag_tape *tape, frag_tensor id, uint32_t number)
{
    if (frag_tape_needs_gradient(tape, id))
        frag_tape_node(tape, tape->tensors[id].node)->hook = number;
}

static void run_hook(frag_tape *tape, frag_node *node, const frag_tensor *in, frag_tensor *out)
{
    frag_tape_call_hook(tape, (uint32_t)node->numbers[0]);
    out[0] = frag_tape_keep(tape, in[0]);
}

frag_tensor frag_tape_hook_behind(frag_tape *tape, frag_tensor id, uint32_t number)
{
    if (!tape->is_recording || !frag_tape_needs_gradient(tape, id))
        return frag_tape_keep(tape, id);
    frag_tensor made = frag_tape_view(tape, id, frag_tape_count(tape, id));
    frag_tape_record(tape, run_hook, &id, 1, &made, 1)->numbers[0] = number;
    return made;
}

/* ---- the graph */
frag_node *frag_tape_node(frag_tape *tape, uint32_t node)
{
    return &tape->chunks[node / NODES_PER_CHUNK][node % NODES_PER_CHUNK];
}

uint32_t frag_tape_tensor_node(const frag_tape *tape, frag_tensor id)
{
    return tape->tensors[id].node;
}

uint32_t frag_tape_next_visit(frag_tape *tape)
{
    return ++tape->visit;
}
bool frag_tape_is_recording(const frag_tape *tape)
{
    return tape->is_recording;
}

bool frag_tape_set_recording(frag_tape *tape, bool is_recording)
{
    bool was = tape->is_recording;
    tape->is_recording = is_recording;
    return was;
}

static bool is_needed(const frag_tape *tape, const frag_tensor *inputs, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (frag_tape_needs_gradient(tape, inputs[i]))
            return true;
    return false;
}

frag_node *frag_tape_record(frag_tape *tape, frag_backward *run, const frag_tensor *inputs,
                            uint32_t input_count, const frag_tensor *outputs, uint32_t output_count)
{
    FRAG_ASSERT(input_count <= FRAG_NODE_EDGES_MAX && output_count <= FRAG_NODE_EDGES_MAX);
    if (!tape->is_recording || !is_needed(tape, inputs, input_count))
        return &tape->unrecorded;
    uint32_t id = take_node(tape);
    frag_node *node = frag_tape_node(tape, id);
    node->run = run;
    node->sequence = tape->sequence++;
    node->edge_count = input_count;
    node->output_count = output_count;
    for (uint32_t i = 0; i < input_count; i++) {
        const frag_tape_tensor *input = &tape->tensors[inputs[i]];
        if (inputs[i] == 0 || input->node == 0)
            continue;
        node->edges[i] = (frag_edge){input->node, input->node_output};
        frag_tape_node_keep(tape, input->node);
    }
    for (uint32_t i = 0; i < output_count; i++) {
        frag_tape_tensor *output = &tape->tensors[outputs[i]];
        FRAG_ASSERT(output->node == 0);
        output->node = id;
        output->node_output = i;
        node->references++;
        node->counts[i] = output->count;
        node->made_count += output->base == 0;
        node->dtypes[i] = output->dtype;
        node->are_columns[i] = output->is_column;
    }
    return node;
}

void frag_tape_node_keep(frag_tape *tape, uint32_t node)
{
    frag_tape_node(tape, node)->references++;
}

/* As PyTorch: a node that goes hands those behind it to a list, the last of which goes next, so
 * that a long graph needs no deep recursion. */
void frag_tape_node_drop(frag_tape *tape, uint32_t id)
{
    uint32_t *left = NULL;
    size_t capacity = 0;
    uint32_t count = 0;
    for (;;) {
        frag_node *node = frag_tape_node(tape, id);
        FRAG_ASSERT(node->references > 0);
        if (--node->references == 0) {
            left = frag_grow(left, &capacity, count + FRAG_NODE_EDGES_MAX, sizeof *left);
            for (uint32_t i = 0; i < node->edge_count; i++)
                if (node->edges[i].node != 0)
                    left[count++] = node->edges[i].node;
            frag_tape_release_saved(tape, node);
            frag_tape_clear(tape, &node->held);
            if (node->holds_parameter) {
                tape->tensors[node->parameter].node = 0;
                frag_tape_drop(tape, node->parameter);
            }
            node->visit = tape->node_free;
            tape->node_free = id;
        }
        if (count == 0)
            break;
        id = left[--count];
    }
    frag_free(left);
}

/* ---- workspaces of matrix products */
void frag_tape_set_thread(frag_tape *tape, bool is_backward)
{
    tape->is_backward_thread = is_backward;
}

static void take_workspace(frag_tape *tape, uint64_t bytes)
{
    frag_request_kind was = frag_tape_set_kind(tape, FRAG_REQUEST_WORKSPACE);
    (void)take_storage(tape, bytes);
    tape->workspace_bytes += bytes;
    frag_builder_once(tape->builder);
    frag_tape_set_kind(tape, was);
}

void frag_tape_use_blas(frag_tape *tape)
{
    bool *has = &tape->has_blas[tape->is_backward_thread];
    if (*has)
        return;
    *has = true;
    /* cuBLAS's own default, as PyTorch sets it: ":4096:2:16:8", on 9.0 32 MiB. */
    bool is_hopper = tape->card.capability == 90;
    uint64_t kib = is_hopper ? 32 * 1024 : 4096 * 2 + 16 * 8;
    take_workspace(tape, kib * 1024);
}

void frag_tape_use_blas_lt(frag_tape *tape)
{
    bool *has = &tape->has_blas_lt[tape->is_backward_thread];
    if (*has)
        return;
    *has = true;
    take_workspace(tape, 1024 * 1024);
}

void frag_tape_hand_over_blas(frag_tape *tape)
{
    tape->has_blas[true] = tape->has_blas_aside;
    tape->has_blas_lt[true] = tape->has_blas_lt_aside;
    tape->has_blas_aside = tape->has_blas_lt_aside = false;
}

void frag_tape_swap_blas(frag_tape *tape)
{
    bool was = tape->has_blas[false];
    bool was_lt = tape->has_blas_lt[false];
    tape->has_blas[false] = tape->has_blas_aside;
    tape->has_blas_lt[false] = tape->has_blas_lt_aside;
    tape->has_blas_aside = was;
    tape->has_blas_lt_aside = was_lt;
}

/* ---- workspaces whose size is uncertain */
static size_t number_of(frag_tape *tape, uint64_t most)
{
    size_t at = 0;
    while (at < tape->uncertain_count && tape->uncertain[at] != most)
        at++;
    if (at == tape->uncertain_count)
        *FRAG_APPEND(tape->uncertain, tape->uncertain_count, tape->uncertain_capacity) = most;
    return at;
}

void frag_tape_use_workspace(frag_tape *tape, uint64_t least, uint64_t most)
{
    uint64_t draw = tape->card.workspace_draw;
    uint64_t bytes =
        draw == 0 ? most : frag_uncertain_bytes(least, most, number_of(tape, most), draw - 1);
    frag_request_kind was = frag_tape_set_kind(tape, FRAG_REQUEST_WORKSPACE);
    frag_tape_drop(tape, bytes > 0 ? frag_tape_empty(tape, bytes, FRAG_BOOL) : 0);
    frag_tape_set_kind(tape, was);
}

/* ---- autocast */
void frag_tape_set_autocast(frag_tape *tape, frag_dtype dtype)
{
    tape->autocast = dtype;
    /* torch.cuda.is_bf16_supported() makes a number once where the card does not say so. */
    if (dtype == FRAG_BF16 && tape->card.capability < 80 && !tape->has_tried_bf16) {
        frag_tape_drop(tape, frag_tape_empty(tape, 1, FRAG_BF16));
        tape->has_tried_bf16 = true;
    }
    for (uint32_t i = 0; i < tape->cast_count && dtype == FRAG_F32; i++)
        frag_tape_drop(tape, tape->casts[i].to);
    if (dtype == FRAG_F32)
        tape->cast_count = 0;
}

frag_dtype frag_tape_autocast(const frag_tape *tape)
{
    return tape->autocast;
}

/* The gradient is cast back. For the first of a DTensor the sharding is propagated by a FakeTensor
 * on the GPU, which asks for a number there (init_gpu_context).
 * numbers: the type, is it a DTensor? */
static void cast_backward(frag_tape *tape, frag_node *node, const frag_tensor *in, frag_tensor *out)
{
    if (node->numbers[1] != 0 && !tape->has_cast_part) {
        frag_tape_drop(tape, frag_tape_empty(tape, 1, FRAG_F32));
        tape->has_cast_part = true;
    }
    out[0] = frag_tape_empty(tape, frag_tape_count(tape, in[0]), (frag_dtype)node->numbers[0]);
    if (frag_tape_is_strided(tape, in[0]))
        frag_tape_set_strided(tape, out[0]);
}

frag_tensor frag_tape_to(frag_tape *tape, frag_tensor id, frag_dtype dtype)
{
    if (tape->tensors[id].dtype == dtype)
        return frag_tape_keep(tape, id);
    frag_tensor made = frag_tape_empty(tape, tape->tensors[id].count, dtype);
    frag_node *node = frag_tape_record(tape, cast_backward, &id, 1, &made, 1);
    node->numbers[0] = tape->tensors[id].dtype;
    node->numbers[1] = tape->tensors[id].is_part;
    return made;
}

frag_tensor frag_tape_cast(frag_tape *tape, frag_tensor id)
{
    if (id == 0)
        return 0;
    if (tape->tensors[id].dtype != FRAG_F32 || tape->autocast == FRAG_F32)
        return frag_tape_keep(tape, id);
    bool is_kept = tape->tensors[id].is_leaf;
    for (uint32_t i = 0; is_kept && i < tape->cast_count; i++)
        if (tape->casts[i].from == id) {
            frag_tape_note_cast(tape, &tape->casts[i]);
            return frag_tape_keep(tape, tape->casts[i].to);
        }
    frag_tensor made = frag_tape_to(tape, id, tape->autocast);
    if (is_kept) {
        frag_tape_turn_kind(tape, made, FRAG_REQUEST_CAST);
        *FRAG_APPEND(tape->casts, tape->cast_count, tape->casts_capacity) =
            (frag_tape_held_cast){id, frag_tape_keep(tape, made), tape->region_count};
    }
    return made;
}
