/* Where a sum of many elements needs memory besides its result.
 *
 * As setReduceConfig in ATen/native/cuda/Reduce.cuh decides it: when the rows to be summed are long
 * and the results few, several blocks work on one result, with partial sums in a buffer and a
 * counter for each group of results. */
#include "workload/tape/aten.h"

#include "base/bits.h"
enum { THREADS_MAX = 512, WARP = 32, VALUES_MIN = 16, VALUES_MAX = 256, VECTOR = 4 };

typedef struct reduce_shape {
    uint64_t width; /* threads of a block, and how they lie */
    uint64_t height;
    uint64_t vector; /* results a thread makes */
} reduce_shape;

static uint64_t last_power(uint64_t n)
{
    uint64_t power = 1;
    while (power * 2 <= n)
        power *= 2;
    return power;
}

static reduce_shape choose_block(const frag_reduction *of)
{
    uint64_t along = of->is_fastest ? of->inputs : of->outputs;
    uint64_t across = of->is_fastest ? of->outputs : of->inputs;
    reduce_shape shape = {.vector = 1};
    if (!of->is_fastest) {
        shape.vector = VECTOR;
        while (of->outputs % shape.vector != 0)
            shape.vector /= 2;
        along /= shape.vector;
    } else if (of->outputs == 1 && along > 128)
        along /= VECTOR;
    uint64_t threads = THREADS_MAX / shape.vector;
    uint64_t along_power = frag_smaller(last_power(along), threads);
    uint64_t across_power = frag_smaller(last_power(across), threads);
    shape.width = frag_smaller(along_power, WARP);
    shape.height = frag_smaller(across_power, threads / shape.width);
    shape.width = frag_smaller(along_power, threads / shape.height);
    return shape;
}

void frag_aten_reduce_buffers(frag_tape *tape, const frag_reduction *of)
{
    const frag_tape_card *card = frag_tape_get_card(tape);
    reduce_shape shape = choose_block(of);
    uint64_t step_in = 1;
    uint64_t step_out = 1;
    *(of->is_fastest ? &step_in : &step_out) *= shape.width;
    bool is_split =
        frag_divide_up(of->inputs, step_in) >= frag_smaller(shape.height * 16, VALUES_MAX);
    *(is_split ? &step_in : &step_out) *= shape.height;
    uint64_t values = frag_divide_up(of->inputs, step_in);
    uint64_t target =
        card->multiprocessors * (card->threads_per_multiprocessor / (shape.width * shape.height));
    uint64_t grid = frag_divide_up(of->outputs / shape.vector, step_out);
    if (!is_split || values < VALUES_MAX || grid > target)
        return;
    uint64_t parts =
        frag_larger(frag_smaller(frag_divide_up(target, grid), frag_divide_up(values, VALUES_MIN)),
                    frag_divide_up(values, VALUES_MAX));
    if (parts <= 1)
        return;
    uint64_t bytes = (of->bytes > 0 ? of->bytes : 4) * of->outputs * parts;
    if (!of->is_fastest)
        bytes *= shape.width * shape.vector;
    frag_tensor buffer = frag_tape_empty(tape, bytes, FRAG_BOOL);
    frag_tensor counters = frag_tape_empty(tape, 4 * grid, FRAG_BOOL);
    frag_tape_drop(tape, counters);
    frag_tape_drop(tape, buffer);
}

frag_tensor frag_aten_argmax(frag_tape *tape, uint64_t rows, uint64_t width)
{
    enum { VALUE_AND_PLACE = 16 };
    frag_tensor made = frag_tape_empty(tape, rows, FRAG_I64);
    frag_aten_reduce_buffers(tape, &(frag_reduction){rows, width, true, VALUE_AND_PLACE});
    return made;
}

frag_tensor frag_aten_count(frag_tape *tape, uint64_t rows, uint64_t width)
{
    frag_tensor made = frag_tape_empty(tape, rows, FRAG_I64);
    frag_tensor ones = frag_tape_empty(tape, rows * width, FRAG_I64);
    frag_aten_reduce_buffers(tape,
                             &(frag_reduction){rows, width, true, frag_dtype_bytes(FRAG_I64)});
    frag_tape_drop(tape, ones);
    return made;
}
