#include "gpu_replay/software/soft_handles.h"

#include <stdlib.h>

#include "base/memory.h"

/* A number is base + generation * 2^28 + (place + 1) * 16: even, not 0, and as large as a pointer.
 */
#define PLACE_BITS 24
#define STEP_BITS 4
#define GENERATION_MAX 0xffffu

uint32_t frag_soft_handle_take(frag_soft_handles *handles)
{
    uint32_t place = handles->count;
    if (handles->free_head != 0) {
        place = handles->free_head - 1;
        handles->free_head = handles->slots[place].next;
    } else {
        handles->slots = frag_grow(handles->slots, &handles->capacity, (size_t)handles->count + 1,
                                   sizeof handles->slots[0]);
        handles->slots[place] = (frag_soft_slot){0};
        handles->count++;
    }
    handles->slots[place].is_live = true;
    handles->live_count++;
    return place;
}

uint64_t frag_soft_handle_number(const frag_soft_handles *handles, uint32_t place)
{
    return handles->base +
           ((uint64_t)handles->slots[place].generation << (PLACE_BITS + STEP_BITS)) +
           ((uint64_t)(place + 1) << STEP_BITS);
}

bool frag_soft_handle_find(const frag_soft_handles *handles, uint64_t number, uint32_t *place)
{
    if (number < handles->base)
        return false;
    uint64_t index = ((number - handles->base) >> STEP_BITS) & (((uint64_t)1 << PLACE_BITS) - 1);
    if (index == 0 || index > handles->count)
        return false;
    *place = (uint32_t)(index - 1);
    return handles->slots[*place].is_live && frag_soft_handle_number(handles, *place) == number;
}

void frag_soft_handle_give(frag_soft_handles *handles, uint32_t place)
{
    frag_soft_slot *slot = &handles->slots[place];
    slot->is_live = false;
    slot->generation = slot->generation < GENERATION_MAX ? slot->generation + 1 : 0;
    slot->next = handles->free_head;
    handles->free_head = place + 1;
    handles->live_count--;
}

void frag_soft_handles_destroy(frag_soft_handles *handles)
{
    uint64_t base = handles->base;
    free(handles->slots);
    *handles = (frag_soft_handles){.base = base};
}
