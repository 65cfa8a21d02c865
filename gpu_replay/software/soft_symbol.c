/* Variables of device code. The loader names them with their sizes before the program runs; each
 * has a place among the addresses of devices, which takes nothing of the capacity (on a card it is
 * part of the module). All devices share it. */
#include <string.h>

#include "base/bits.h"
#include "base/memory.h"
#include "gpu_replay/software/soft_state.h"

#define SYMBOL_BASE 0x5a0000000000u
#define ALIGNMENT 256u

typedef struct symbol {
    uint64_t host; /* the variable's shadow in the program */
    uint64_t offset;
    uint64_t bytes;
} symbol;

/* As long as the process: what was registered stays so when the device starts anew. */
static struct {
    symbol *symbols; /* by offset */
    size_t count;
    size_t capacity;
    uint64_t end;
} all;

void frag_soft_symbol_add(uint64_t host, uint64_t bytes)
{
    int32_t ignored = 0;
    frag_soft_enter(&ignored);
    all.symbols = frag_grow(all.symbols, &all.capacity, all.count + 1, sizeof all.symbols[0]);
    all.symbols[all.count++] = (symbol){host, all.end, bytes};
    all.end += frag_align_up(bytes == 0 ? 1 : bytes, ALIGNMENT);
    frag_soft_leave();
}

bool frag_soft_symbol_find(uint64_t host, frag_soft_extent *extent)
{
    for (size_t i = 0; i < all.count; i++) {
        if (all.symbols[i].host != host)
            continue;
        *extent = (frag_soft_extent){.address = SYMBOL_BASE + all.symbols[i].offset,
                                     .bytes = all.symbols[i].bytes,
                                     .device = frag_soft_device_current()};
        return true;
    }
    return false;
}

bool frag_soft_symbol_at(uint64_t address, frag_soft_extent *extent)
{
    size_t low = 0;
    size_t high = all.count;
    if (address - SYMBOL_BASE >= all.end)
        return false;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (all.symbols[middle].offset <= address - SYMBOL_BASE)
            low = middle;
        else
            high = middle;
    }
    *extent = (frag_soft_extent){.address = SYMBOL_BASE + all.symbols[low].offset,
                                 .bytes = all.symbols[low].bytes,
                                 .device = frag_soft_device_current()};
    return address - extent->address < extent->bytes;
}
