/* What a program does once more and that asks for the same again: its requests are added again, and
 * the program need not run. */
#include <string.h>

#include "base/memory.h"
#include "workload/tape/tape_state.h"

static frag_tape_storage *storage_of(const frag_tape *tape, frag_tensor tensor)
{
    return &tape->storages[tape->tensors[tensor].storage];
}

static uint64_t request_count(const frag_tape *tape)
{
    return tape->kinds != NULL ? tape->kinds->count : 0;
}

static frag_tape_libraries libraries_of(const frag_tape *tape)
{
    return (frag_tape_libraries){{tape->has_blas[0], tape->has_blas[1]},
                                 {tape->has_blas_lt[0], tape->has_blas_lt[1]},
                                 tape->has_tried_bf16};
}

bool frag_tape_are_alone(const frag_tape *tape, const frag_tensor *tensors, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        const frag_tape_tensor *of = &tape->tensors[tensors[i]];
        const frag_tape_storage *held = storage_of(tape, tensors[i]);
        if (tensors[i] == 0 || of->references != 1 || of->base != 0 || of->node != 0 ||
            held->references != 1 || held->bytes == 0)
            return false;
    }
    return true;
}

void frag_tape_begin_stretch(const frag_tape *tape, const frag_tensor *tensors, uint32_t count,
                             frag_tape_stretch *stretch)
{
    FRAG_ASSERT(count <= FRAG_STRETCH_TENSORS_MAX);
    *stretch = (frag_tape_stretch){
        .first = frag_builder_event_count(tape->builder),
        .request = request_count(tape),
        .live_bytes = tape->live_bytes,
        .cast_count = tape->cast_count,
        .tensor_count = count,
        .before = libraries_of(tape),
    };
    for (uint32_t i = 0; i < count; i++)
        stretch->tensors[i].from = storage_of(tape, tensors[i])->slot;
}

void frag_tape_end_stretch(const frag_tape *tape, const frag_tensor *tensors,
                           frag_tape_stretch *stretch)
{
    for (uint32_t i = 0; i < stretch->tensor_count; i++) {
        const frag_tape_tensor *of = &tape->tensors[tensors[i]];
        const frag_tape_storage *held = storage_of(tape, tensors[i]);
        frag_stretch_tensor *kept = &stretch->tensors[i];
        kept->to = held->slot;
        kept->bytes = held->bytes;
        kept->request = held->request - stretch->request;
        kept->count = of->count;
        kept->is_column = of->is_column;
        kept->is_strided = of->is_strided;
    }
    stretch->live_bytes = tape->live_bytes - stretch->live_bytes;
    stretch->requests = request_count(tape) - stretch->request;
    stretch->after = libraries_of(tape);
    if (tape->cast_count == stretch->cast_count)
        stretch->end = frag_builder_event_count(tape->builder);
}

/* The tensor is another one, on another storage. */
static void move_tensor(frag_tape *tape, frag_tensor tensor, const frag_stretch_tensor *kept,
                        uint64_t request)
{
    frag_tape_tensor *of = &tape->tensors[tensor];
    frag_tape_storage *held = storage_of(tape, tensor);
    of->count = kept->count;
    of->is_column = kept->is_column;
    of->is_strided = kept->is_strided;
    held->slot = tape->slots[kept->to];
    held->bytes = kept->bytes;
    held->request = request + kept->request;
}

static void keep_kinds(frag_tape *tape, const frag_tape_stretch *stretch)
{
    frag_request_kinds *kinds = tape->kinds;
    if (kinds == NULL)
        return;
    kinds->kinds = frag_grow(kinds->kinds, &kinds->capacity, kinds->count + stretch->requests, 1);
    memcpy(kinds->kinds + kinds->count, kinds->kinds + stretch->request, stretch->requests);
    kinds->count += stretch->requests;
}

bool frag_tape_repeat_stretch(frag_tape *tape, const frag_tensor *tensors,
                              const frag_tape_stretch *stretch)
{
    const frag_tape_libraries now = libraries_of(tape);
    if (stretch->end == 0 || memcmp(&now, &stretch->before, sizeof now) != 0)
        return false;
    tape->slots = frag_grow(tape->slots, &tape->slots_capacity,
                            frag_builder_slot_count(tape->builder), sizeof *tape->slots);
    for (uint32_t i = 0; i < stretch->tensor_count; i++)
        tape->slots[stretch->tensors[i].from] = storage_of(tape, tensors[i])->slot;
    frag_builder_repeat(tape->builder, stretch->first, stretch->end, tape->slots);
    for (uint32_t i = 0; i < stretch->tensor_count; i++)
        move_tensor(tape, tensors[i], &stretch->tensors[i], request_count(tape));
    keep_kinds(tape, stretch);
    tape->live_bytes += stretch->live_bytes;
    tape->is_over |= tape->live_bytes > tape->limit_bytes;
    memcpy(tape->has_blas, stretch->after.has_blas, sizeof tape->has_blas);
    memcpy(tape->has_blas_lt, stretch->after.has_blas_lt, sizeof tape->has_blas_lt);
    tape->has_tried_bf16 = stretch->after.has_tried_bf16;
    return true;
}
