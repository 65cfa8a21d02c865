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

bool frag_tape_is_short(const frag_tape *tape)
{
    return frag_builder_is_short(tape->builder);
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
        .workspace_bytes = tape->workspace_bytes,
        .cast_count = tape->cast_count,
        .tensor_count = count,
        .before = libraries_of(tape),
    };
    for (uint32_t i = 0; i < count; i++)
        stretch->tensors[i].from = storage_of(tape, tensors[i])->slot;
    frag_builder_begin_stretch(tape->builder);
}

/* In a shortened trace its blocks leave their slots, where they would be again. */
static void end_short(frag_tape *tape, const frag_tensor *tensors, frag_tape_stretch *stretch)
{
    frag_stretch kept = {.first = stretch->first,
                         .end = frag_builder_event_count(tape->builder),
                         .request = stretch->request,
                         .count = stretch->tensor_count};
    for (uint32_t i = 0; i < kept.count; i++) {
        kept.from[i] = stretch->tensors[i].from;
        kept.to[i] = stretch->tensors[i].to;
    }
    stretch->is_open = !frag_builder_end_stretch(tape->builder, &kept, &stretch->number);
    if (stretch->is_open)
        return;
    frag_again moved = {.stretch = stretch->number, .is_done = false};
    for (uint32_t i = 0; i < kept.count; i++) {
        moved.at[i] = frag_builder_slot_take(tape->builder);
        storage_of(tape, tensors[i])->slot = moved.at[i];
    }
    frag_builder_again(tape->builder, &moved);
}

void frag_tape_end_stretch(frag_tape *tape, const frag_tensor *tensors, frag_tape_stretch *stretch)
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
    stretch->workspace_bytes = tape->workspace_bytes - stretch->workspace_bytes;
    stretch->requests = request_count(tape) - stretch->request;
    stretch->after = libraries_of(tape);
    if (tape->cast_count == stretch->cast_count)
        stretch->end = frag_builder_event_count(tape->builder);
    if (frag_builder_is_short(tape->builder))
        end_short(tape, tensors, stretch);
}

/* The tensor is another one, on another storage, but what it lies in has the same slot. */
static void change_tensor(frag_tape *tape, frag_tensor tensor, const frag_stretch_tensor *kept,
                          uint64_t request)
{
    frag_tape_tensor *of = &tape->tensors[tensor];
    frag_tape_storage *held = storage_of(tape, tensor);
    of->count = kept->count;
    of->is_column = kept->is_column;
    of->is_strided = kept->is_strided;
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

static void repeat_short(frag_tape *tape, const frag_tensor *tensors,
                         const frag_tape_stretch *stretch)
{
    frag_again again = {.stretch = stretch->number, .is_done = true};
    for (uint32_t i = 0; i < stretch->tensor_count; i++) {
        again.at[i] = storage_of(tape, tensors[i])->slot;
        change_tensor(tape, tensors[i], &stretch->tensors[i], stretch->request);
    }
    frag_builder_again(tape->builder, &again);
}

static void repeat_written(frag_tape *tape, const frag_tensor *tensors,
                           const frag_tape_stretch *stretch)
{
    tape->slots = frag_grow(tape->slots, &tape->slots_capacity,
                            frag_builder_slot_count(tape->builder), sizeof *tape->slots);
    for (uint32_t i = 0; i < stretch->tensor_count; i++)
        tape->slots[stretch->tensors[i].from] = storage_of(tape, tensors[i])->slot;
    frag_builder_repeat(tape->builder, stretch->first, stretch->end, tape->slots);
    for (uint32_t i = 0; i < stretch->tensor_count; i++) {
        storage_of(tape, tensors[i])->slot = tape->slots[stretch->tensors[i].to];
        change_tensor(tape, tensors[i], &stretch->tensors[i], request_count(tape));
    }
    keep_kinds(tape, stretch);
}

/* Are all workspaces there that it takes? Then it does the same without them, which a shortened
 * trace can say. */
static bool has_workspaces(const frag_tape *tape, const frag_tape_stretch *stretch)
{
    const frag_tape_libraries *after = &stretch->after;
    bool has_all = frag_builder_is_short(tape->builder) &&
                   stretch->before.has_tried_bf16 == after->has_tried_bf16;
    for (uint32_t i = 0; i < 2; i++)
        has_all = has_all && tape->has_blas[i] >= after->has_blas[i] &&
                  tape->has_blas_lt[i] >= after->has_blas_lt[i];
    return has_all;
}

bool frag_tape_repeat_stretch(frag_tape *tape, const frag_tensor *tensors,
                              const frag_tape_stretch *stretch)
{
    const frag_tape_libraries now = libraries_of(tape);
    bool has_all = has_workspaces(tape, stretch);
    if (stretch->end == 0 || stretch->is_open ||
        (!has_all && memcmp(&now, &stretch->before, sizeof now) != 0))
        return false;
    if (frag_builder_is_short(tape->builder))
        repeat_short(tape, tensors, stretch);
    else
        repeat_written(tape, tensors, stretch);
    tape->live_bytes += stretch->live_bytes - (has_all ? stretch->workspace_bytes : 0);
    tape->is_over |= tape->live_bytes > tape->limit_bytes;
    if (has_all)
        return true;
    memcpy(tape->has_blas, stretch->after.has_blas, sizeof tape->has_blas);
    memcpy(tape->has_blas_lt, stretch->after.has_blas_lt, sizeof tape->has_blas_lt);
    tape->has_tried_bf16 = stretch->after.has_tried_bf16;
    return true;
}
