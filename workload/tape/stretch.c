/* What a program does once more and that asks for the same again: its requests are added again, and
 * the program need not run. */
#include <string.h>

#include "base/memory.h"
#include "workload/tape/tape_state.h"

static uint32_t slot_of(const frag_tape *tape, frag_tensor tensor)
{
    return tape->storages[tape->tensors[tensor].storage].slot;
}

static uint64_t request_count(const frag_tape *tape)
{
    return tape->kinds != NULL ? tape->kinds->count : 0;
}

static frag_tape_libraries libraries_of(const frag_tape *tape)
{
    return (frag_tape_libraries){{tape->has_blas[0], tape->has_blas[1]},
                                 {tape->has_blas_lt[0], tape->has_blas_lt[1]}};
}

void frag_tape_begin_stretch(const frag_tape *tape, frag_tensor tensor, frag_tape_stretch *stretch)
{
    *stretch = (frag_tape_stretch){
        .first = frag_builder_event_count(tape->builder),
        .request = request_count(tape),
        .from = slot_of(tape, tensor),
        .before = libraries_of(tape),
    };
}

void frag_tape_end_stretch(const frag_tape *tape, frag_tensor tensor, frag_tape_stretch *stretch)
{
    stretch->end = frag_builder_event_count(tape->builder);
    stretch->to = slot_of(tape, tensor);
    stretch->count = frag_tape_count(tape, tensor);
    stretch->after = libraries_of(tape);
}

/* The tensor's storage is another one now. */
static void move_storage(frag_tape *tape, frag_tensor tensor, const frag_tape_stretch *stretch,
                         uint32_t slot)
{
    frag_tape_tensor *of = &tape->tensors[tensor];
    frag_tape_storage *held = &tape->storages[of->storage];
    of->count = stretch->count;
    held->slot = slot;
    held->bytes = stretch->count * frag_dtype_bytes(of->dtype);
}

static void keep_kinds(frag_tape *tape, const frag_tape_stretch *stretch, uint64_t count)
{
    frag_request_kinds *kinds = tape->kinds;
    if (kinds == NULL)
        return;
    kinds->kinds = frag_grow(kinds->kinds, &kinds->capacity, (size_t)(kinds->count + count), 1);
    memcpy(kinds->kinds + kinds->count, kinds->kinds + stretch->request, (size_t)count);
    kinds->count += count;
}

bool frag_tape_repeat_stretch(frag_tape *tape, frag_tensor tensor, const frag_tape_stretch *stretch)
{
    const frag_tape_libraries now = libraries_of(tape);
    if (stretch->end == 0 || memcmp(&now, &stretch->before, sizeof now) != 0)
        return false;
    /* By slot of the stretch: the one that takes its place. */
    uint32_t *slots = frag_alloc(frag_builder_slot_count(tape->builder), sizeof *slots);
    uint64_t requests = 0;
    slots[stretch->from] = slot_of(tape, tensor);
    for (uint64_t i = stretch->first; i < stretch->end; i++) {
        frag_event event = frag_builder_event(tape->builder, i);
        frag_build_event again = {.op = (frag_op)event.op,
                                  .flags = event.flags,
                                  .slot = event.slot,
                                  .bytes = event.bytes,
                                  .stream = tape->stream};
        if (event.op == FRAG_OP_ALLOC) {
            again.slot = slots[event.slot] = frag_builder_slot_take(tape->builder);
            requests++;
        } else if (event.op == FRAG_OP_FREE) {
            again.slot = slots[event.slot];
            frag_builder_slot_give(tape->builder, again.slot);
        }
        frag_builder_add(tape->builder, &again);
    }
    keep_kinds(tape, stretch, requests);
    move_storage(tape, tensor, stretch, slots[stretch->to]);
    frag_free(slots);
    memcpy(tape->has_blas, stretch->after.has_blas, sizeof tape->has_blas);
    memcpy(tape->has_blas_lt, stretch->after.has_blas_lt, sizeof tape->has_blas_lt);
    return true;
}
