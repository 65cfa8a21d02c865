#include "workload/statistical/robson.h"

#include "base/bytes.h"
#include "base/memory.h"

typedef struct pin {
    uint64_t start; /* in words, as the words that follow */
    uint64_t words;
    uint32_t block;
} pin;

/* Is an address of the block residue modulo size? */
static bool covers(const pin *at, uint64_t residue, uint64_t size)
{
    return (residue + size - at->start % size) % size < at->words;
}

static uint64_t score(const pin *pins, uint64_t count, uint64_t residue, uint64_t size)
{
    uint64_t sum = 0;
    for (uint64_t i = 0; i < count; i++)
        sum += covers(&pins[i], residue, size) ? size - pins[i].words : 0;
    return sum;
}

void frag_robson_run(frag_live_set *set, const frag_request_phase *phase)
{
    const frag_request_class *of = &phase->classes[0];
    uint64_t word = of->bytes.values[0];
    uint64_t live_max = phase->live.values[0] / word;
    pin *pins = frag_alloc((size_t)live_max, sizeof *pins);
    uint64_t count = 0, live = 0, top = 0, residue = 0;
    for (uint64_t size = 1; size <= phase->largest / word; size *= 2) {
        uint64_t kept = 0;
        if (size > 1 &&
            score(pins, count, residue + size / 2, size) > score(pins, count, residue, size))
            residue += size / 2;
        for (uint64_t i = 0; i < count; i++)
            if (covers(&pins[i], residue, size)) {
                pins[kept++] = pins[i];
            } else {
                live -= pins[i].words;
                frag_live_set_release(set, pins[i].block);
            }
        count = kept;
        top = count > 0 ? pins[count - 1].start + pins[count - 1].words : 0;
        for (; live + size <= live_max; live += size, top += size)
            pins[count++] = (pin){
                top, size,
                frag_live_set_request(set, size * word, of->stream.values[0], FRAG_UNLIMITED)};
    }
    frag_free(pins);
}
