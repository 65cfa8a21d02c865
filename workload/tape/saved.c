/* What nodes save for backward: as tensors, on the host, or as places of a region made anew. */
#include <string.h>

#include "base/memory.h"
#include "workload/tape/tape_state.h"

enum { KEPT_MAX = 5 };

/* A region whose saved tensors are made anew. Places are counted in the order of saving. */
struct frag_checkpoint_frame {
    frag_region *run;
    void *context;
    frag_tensor input; /* 0: it is on the host */
    uint64_t input_count;
    frag_dtype input_dtype;
    bool input_needs_gradient;
    frag_tensor kept[KEPT_MAX];
    bool is_selective;
    frag_tensor *products; /* in the order in which they were made; 0: taken again */
    size_t products_capacity;
    uint32_t product_count;
    uint32_t taken_count;
    frag_dtype autocast;
    uint32_t references; /* places that nodes hold, and one of the forward pass */
    uint32_t place_count;
    uint32_t remade_count;
    uint64_t start;      /* allocations of the tape where the pass began */
    uint64_t stop_after; /* allocations behind which the last tensor is saved */
    bool is_remade;
    bool *are_gone; /* places whose nodes went with no backward: not kept when they are remade */
    size_t are_gone_capacity;
    frag_tensor *remade;
};

/* A region that is made anew ends where the last tensor is saved; what our code still does behind
 * that asks for nothing. */
bool frag_tape_is_past_saved(const frag_tape *tape)
{
    const frag_checkpoint_frame *frame = tape->frame;
    return tape->is_remaking && tape->allocation_count - frame->start >= frame->stop_after;
}

void frag_tape_note_cast(frag_tape *tape, frag_tape_held_cast *cast)
{
    if (tape->frame == NULL || tape->is_remaking || cast->region == tape->region_count)
        return;
    cast->region = tape->region_count;
    tape->frame->start--; /* one more is counted */
}

void frag_tape_note_once(frag_tape *tape)
{
    if (tape->frame != NULL && !tape->is_remaking)
        tape->frame->start++; /* one less is counted */
}

/* In a region nothing is saved but a place; when it is made anew, the tensor is put there.
 * made_now: how many of the allocations so far come behind the saving, which PyTorch does before an
 * operator runs for its inputs and after it for what it made. */
static void save_in_frame(frag_tape *tape, frag_node *node, frag_tensor id, uint64_t made_now)
{
    frag_checkpoint_frame *frame = tape->frame;
    if (tape->is_remaking) {
        frag_tape_turn_kind(tape, id, FRAG_REQUEST_ACTIVATION);
        uint32_t place = frame->remade_count;
        if (place == frame->place_count)
            return;
        if (frame->are_gone[place]) /* its node is alone with it, as in the forward pass */
            node->saved[node->saved_count++] = frag_tape_keep(tape, id);
        else
            frame->remade[place] = frag_tape_alias(tape, id, tape->tensors[id].count);
        frame->remade_count++;
        return;
    }
    *FRAG_APPEND(frame->are_gone, frame->place_count, frame->are_gone_capacity) = false;
    node->frame = frame;
    node->places[node->saved_count++] = frame->place_count;
    frame->references++;
    frame->stop_after = tape->allocation_count - frame->start - made_now;
}

bool frag_tape_set_selective(frag_tape *tape, bool is_selective)
{
    bool was = tape->is_selective;
    tape->is_selective = is_selective;
    return was;
}

bool frag_tape_is_selecting(const frag_tape *tape)
{
    return tape->frame != NULL && tape->frame->is_selective;
}

bool frag_tape_runs_product(const frag_tape *tape)
{
    bool is_kept = tape->is_remaking && frag_tape_is_selecting(tape);
    return !is_kept && !frag_tape_is_past_saved(tape);
}

frag_tensor frag_tape_product(frag_tape *tape, uint64_t count, frag_dtype dtype)
{
    frag_checkpoint_frame *frame = tape->frame;
    if (!frag_tape_runs_product(tape) && !frag_tape_is_past_saved(tape)) {
        FRAG_ASSERT(frame->taken_count < frame->product_count);
        tape->allocation_count++;
        frag_tensor taken = frame->products[frame->taken_count];
        frame->products[frame->taken_count++] = 0;
        return taken;
    }
    frag_tensor made = frag_tape_empty(tape, count, dtype);
    if (frag_tape_is_selecting(tape) && !tape->is_remaking) {
        frag_tape_turn_kind(tape, made, FRAG_REQUEST_ACTIVATION);
        *FRAG_APPEND(frame->products, frame->product_count, frame->products_capacity) =
            frag_tape_alias(tape, made, count);
    }
    return made;
}

frag_tensor frag_tape_scratch(frag_tape *tape, uint64_t count, frag_dtype dtype)
{
    bool was_silent = tape->is_silent;
    tape->is_silent |= !frag_tape_runs_product(tape);
    frag_tensor made = frag_tape_empty(tape, count, dtype);
    tape->is_silent = was_silent;
    return made;
}

bool frag_tape_is_remaking(const frag_tape *tape)
{
    return tape->is_remaking;
}

/* ---- saving on the host */
bool frag_tape_set_offloading(frag_tape *tape, bool is_offloading)
{
    bool was = tape->is_offloading;
    tape->is_offloading = is_offloading;
    return was;
}

uint64_t frag_tape_host_bytes_max(const frag_tape *tape)
{
    return tape->host_bytes_max;
}

static uint64_t host_block(uint64_t count, frag_dtype dtype)
{
    uint64_t bytes = 1;
    while (bytes < count * frag_dtype_bytes(dtype))
        bytes *= 2;
    return bytes;
}

void frag_tape_take_host(frag_tape *tape, uint64_t count, frag_dtype dtype)
{
    tape->host_bytes += host_block(count, dtype);
    if (tape->host_bytes > tape->host_bytes_max)
        tape->host_bytes_max = tape->host_bytes;
}

/* A copy in one piece, on the GPU, of which that on the host is made. */
static void lay_out(frag_tape *tape, frag_tensor id)
{
    const frag_tape_tensor *of = &tape->tensors[id];
    if (of->is_strided || frag_tape_is_expanded(tape, id))
        frag_tape_drop(tape, frag_tape_empty(tape, of->count, of->dtype));
}

bool frag_tape_saves_on_host(const frag_tape *tape)
{
    return tape->is_offloading && tape->frame == NULL && tape->is_recording;
}

void frag_tape_will_save(frag_tape *tape, frag_tensor id)
{
    if (frag_tape_saves_on_host(tape))
        lay_out(tape, id);
}

static void save_on_host(frag_tape *tape, frag_node *node, frag_tensor id)
{
    uint64_t count = tape->tensors[id].count;
    frag_dtype dtype = tape->tensors[id].dtype;
    node->host_counts[node->saved_count] = count;
    node->host_dtypes[node->saved_count] = dtype;
    node->saved[node->saved_count++] = 0;
    frag_tape_take_host(tape, count, dtype);
}

static void save(frag_tape *tape, frag_node *node, frag_tensor id, uint64_t made_now)
{
    if (node == &tape->unrecorded)
        return;
    FRAG_ASSERT(node->saved_count < FRAG_NODE_SAVED_MAX);
    if (id != 0 && tape->frame != NULL) {
        save_in_frame(tape, node, id, made_now);
        return;
    }
    if (id != 0 && tape->is_offloading) {
        save_on_host(tape, node, id);
        return;
    }
    frag_tape_turn_kind(tape, id, FRAG_REQUEST_ACTIVATION);
    node->saved[node->saved_count++] = id != 0 ? frag_tape_keep(tape, id) : 0;
}

void frag_tape_save(frag_tape *tape, frag_node *node, frag_tensor id)
{
    save(tape, node, id, node->made_count);
}

void frag_tape_save_made(frag_tape *tape, frag_node *node, frag_tensor id)
{
    save(tape, node, id, 0);
}

void frag_tape_hold(frag_tape *tape, frag_node *node, frag_tensor id)
{
    if (node == &tape->unrecorded)
        return;
    frag_tape_turn_kind(tape, id, FRAG_REQUEST_ACTIVATION);
    node->held = frag_tape_alias(tape, id, tape->tensors[id].count);
}

void frag_tape_save_output(frag_tape *tape, frag_node *node, frag_tensor id)
{
    if (node == &tape->unrecorded)
        return;
    frag_tensor alias = frag_tape_alias(tape, id, tape->tensors[id].count);
    if (tape->is_offloading && tape->frame == NULL)
        lay_out(tape, id);
    save(tape, node, alias, 0);
    frag_tape_drop(tape, alias);
}

static void free_frame(frag_checkpoint_frame *frame)
{
    frag_free(frame->are_gone);
    frag_free(frame->remade);
    frag_free(frame->products);
    frag_free(frame->context);
    frag_free(frame);
}

static void drop_frame(frag_tape *tape, frag_checkpoint_frame *frame)
{
    if (--frame->references > 0)
        return;
    frag_tape_drop_all(tape, frame->remade, frame->remade_count);
    if (frame->input == 0)
        tape->host_bytes -= host_block(frame->input_count, frame->input_dtype);
    frag_tape_drop(tape, frame->input);
    frag_tape_drop_all(tape, frame->kept, KEPT_MAX);
    frag_tape_drop_all(tape, frame->products, frame->product_count);
    free_frame(frame);
}

void frag_tape_forget_places(const frag_node *node)
{
    for (uint32_t i = 0; i < node->saved_count; i++)
        if (node->places[i] != 0 && --node->frame->references == 0)
            free_frame(node->frame);
}

void frag_tape_begin_checkpoints(frag_tape *tape, uint64_t every, uint64_t before)
{
    tape->checkpoint_every = every;
    tape->checkpoint_calls = before;
}

frag_tensor frag_tape_checkpoint(frag_tape *tape, const frag_region_call *call, frag_tensor input)
{
    bool is_skipped =
        tape->checkpoint_every > 0 && tape->checkpoint_calls++ % tape->checkpoint_every != 0;
    if (!tape->is_recording || is_skipped)
        return call->run(tape, call->context, input);
    FRAG_ASSERT(tape->frame == NULL && call->kept_count <= KEPT_MAX);
    frag_checkpoint_frame *frame = frag_alloc(1, sizeof *frame);
    frame->run = call->run;
    frame->context = frag_alloc(1, call->context_bytes);
    memcpy(frame->context, call->context, call->context_bytes);
    frame->input_count = frag_tape_count(tape, input);
    frame->input_dtype = frag_tape_dtype(tape, input);
    frame->input_needs_gradient = frag_tape_needs_gradient(tape, input);
    if (tape->is_offloading)
        frag_tape_take_host(tape, frame->input_count, frame->input_dtype);
    else
        frame->input = frag_tape_keep(tape, input);
    for (uint32_t i = 0; i < call->kept_count; i++)
        frame->kept[i] = call->kept[i] != 0 ? frag_tape_keep(tape, call->kept[i]) : 0;
    frag_tape_turn_kind(tape, frame->input, FRAG_REQUEST_ACTIVATION);
    frame->autocast = tape->autocast;
    frame->is_selective = tape->is_selective;
    frame->references = 1;
    frame->start = tape->allocation_count;
    tape->frame = frame;
    tape->region_count++;
    frag_tensor made = call->run(tape, frame->context, input);
    tape->frame = NULL;
    drop_frame(tape, frame);
    return made;
}

static void remake(frag_tape *tape, frag_checkpoint_frame *frame)
{
    frame->is_remade = true;
    frame->remade = frag_alloc(frame->place_count, sizeof *frame->remade);
    frag_tensor input = frame->input;
    if (input == 0) {
        input = frag_tape_empty(tape, frame->input_count, frame->input_dtype);
        if (frame->input_needs_gradient)
            frag_tape_require_gradient(tape, input);
    }
    frame->start = tape->allocation_count;
    tape->frame = frame;
    tape->is_remaking = true;
    bool was_recording = frag_tape_set_recording(tape, true);
    frag_tape_set_autocast(tape, frame->autocast);
    frag_tensor made = frame->run(tape, frame->context, input);
    frag_tape_drop(tape, made);
    if (frame->input == 0)
        frag_tape_drop(tape, input);
    frag_tape_set_autocast(tape, FRAG_F32);
    frag_tape_set_recording(tape, was_recording);
    tape->is_remaking = false;
    tape->frame = NULL;
}

void frag_tape_unpack(frag_tape *tape, frag_node *node)
{
    frag_checkpoint_frame *frame = node->frame;
    for (uint32_t i = 0; i < node->saved_count; i++)
        if (node->host_counts[i] > 0)
            node->saved[i] = frag_tape_empty(tape, node->host_counts[i], node->host_dtypes[i]);
    if (frame == NULL)
        return;
    if (!frame->is_remade)
        remake(tape, frame);
    for (uint32_t i = 0; i < node->saved_count; i++)
        if (node->places[i] != 0) {
            node->saved[i] = frame->remade[node->places[i] - 1];
            frame->remade[node->places[i] - 1] = 0;
        }
}

void frag_tape_drop_unpacked(frag_tape *tape, frag_node *node)
{
    for (uint32_t i = node->saved_count; i > 0; i--)
        if (node->frame != NULL || node->host_counts[i - 1] > 0)
            frag_tape_clear(tape, &node->saved[i - 1]);
}

void frag_tape_release_saved(frag_tape *tape, frag_node *node)
{
    for (uint32_t i = 0; i < node->saved_count; i++) {
        frag_tape_clear(tape, &node->saved[i]);
        if (node->host_counts[i] > 0)
            tape->host_bytes -= host_block(node->host_counts[i], node->host_dtypes[i]);
        node->host_counts[i] = 0;
        if (node->places[i] != 0) {
            node->frame->are_gone[node->places[i] - 1] = true;
            drop_frame(tape, node->frame);
        }
        node->places[i] = 0;
    }
    node->saved_count = 0;
}
