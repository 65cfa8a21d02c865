/* Does bitsandbytes multiply with a weight of 4 bits as it is, or unpack it first? As version 0.50
 * decides on CUDA (backends/cuda/ops.py, _gemm_4bit_use_custom_cuda), by what its authors measured
 * on each generation of cards: with few rows its own kernel is faster, and with many cuBLAS behind
 * a copy of the weight. */
#include "workload/tape/aten.h"

enum {
    KERNEL_ALWAYS_ROWS = 4,
    KERNEL_NEVER_ROWS = 1536,
    QUANTISED_BLOCK = 64, /* elements of a row that share a scale */
    TILE = 64,            /* outputs that a block of threads computes */
    SMALL_WEIGHT = 4 << 20
};

typedef struct packed_product {
    uint64_t rows, outputs, inner;
    uint64_t tiles;
    uint64_t processors;
    uint32_t capability; /* 80 is 8.0 */
    bool is_half;        /* fp16 or bf16 */
    bool is_fp16;
} packed_product;

/* At least so many tiles for each multiprocessor. */
static bool has_waves(const packed_product *of, uint64_t waves)
{
    return of->tiles >= waves * of->processors;
}

/* At least a part of a tile for each, in per cent of one. */
static bool has_part(const packed_product *of, uint64_t percent)
{
    return 100 * of->tiles >= percent * of->processors;
}

static bool has_half(const packed_product *of)
{
    return of->tiles >= of->processors / 2;
}

/* Cards with HBM: of 8.0 and 9.x. */
static bool is_ampere(const packed_product *of)
{
    return of->capability == 80;
}

static bool is_hopper(const packed_product *of)
{
    return of->capability / 10 == 9;
}

static bool is_turing(const packed_product *of)
{
    return of->capability == 75;
}

/* ---- the most rows; 0: none */
/* With outputs more than twice the inner size. */
static uint64_t most_of_small_wide(const packed_product *of)
{
    bool is_low = 3 * of->tiles < of->processors;
    if (is_ampere(of))
        return is_low ? 1536 : 512;
    if (is_hopper(of))
        return is_low ? 512 : 320;
    if (is_turing(of))
        return has_waves(of, 3) || of->inner < 704 ? 320 : of->inner >= 1024 ? 64 : 96;
    return !has_waves(of, 1) && of->tiles * of->inner > of->processors * 320 ? 192 : 320;
}

static uint64_t most_of_small(const packed_product *of)
{
    bool is_quarter = 4 * of->tiles <= of->processors;
    if (2 * of->inner < of->outputs)
        return most_of_small_wide(of);
    if (is_ampere(of) && is_quarter)
        return of->inner < of->outputs ? 384 : 8 * of->tiles <= of->processors ? 32 : 128;
    if (is_turing(of) && !has_waves(of, 1) && of->rows > 8)
        return 64;
    if (is_quarter)
        return of->inner < of->outputs || is_hopper(of) ? 32 : 23;
    return 2 * of->tiles <= of->processors ? 16 : 0;
}

/* From 5 to 7 rows the kernel loses on cards with HBM alone, where few tiles are left for each
 * multiprocessor. */
static bool wins_few(const packed_product *of)
{
    bool is_hbm = is_ampere(of) || is_hopper(of);
    if (!is_hbm || of->rows < 6 || of->tiles < (is_hopper(of) ? 36 : 48))
        return true;
    if (of->inner > of->outputs)
        return has_part(of, 75);
    if (of->inner < of->outputs)
        return true;
    return is_ampere(of) ? has_part(of, 60) : has_part(of, 75) || !has_part(of, 60);
}

static uint64_t most_on_turing(const packed_product *of)
{
    if (has_waves(of, 3))
        return of->inner < of->outputs ? 128 : 64;
    return has_half(of) ? 64 : 32;
}

static uint64_t most_on_ampere(const packed_product *of)
{
    bool is_wide = of->inner < of->outputs;
    if (has_waves(of, 3))
        return 128;
    if (has_waves(of, 1))
        return is_wide ? 64 : 32;
    if (of->inner >= 3 * of->outputs && 4 * of->tiles > of->processors)
        return 0;
    if (of->inner == of->outputs && of->tiles >= 48 && !has_part(of, 60))
        return 0;
    bool is_below_half = 2 * of->tiles < of->processors;
    if (is_below_half && of->inner <= of->outputs)
        return 128;
    if (is_below_half && 3 * of->tiles >= of->processors)
        return 0;
    return has_half(of) && is_wide ? 128 : 16;
}

static uint64_t most_on_hopper(const packed_product *of)
{
    if (has_waves(of, 1))
        return has_waves(of, 3) ? 64 : has_waves(of, 2) ? 48 : 32;
    if (!has_half(of))
        return 0;
    return of->inner >= of->outputs && !has_part(of, 75) ? 0 : 16;
}

/* 12.0: of the RTX 50 series. */
static uint64_t most_on_blackwell(const packed_product *of)
{
    if (has_waves(of, 2))
        return has_waves(of, 3) ? 256 : 128;
    if (has_part(of, 80))
        return of->inner >= of->outputs ? 96 : 64;
    if (has_half(of))
        return 2 * of->inner >= of->outputs && of->tiles >= 128 ? 64 : 8;
    return of->inner > 2 * of->outputs && of->tiles > 64 ? 16 : 8;
}

/* 8.9, and what its authors did not measure. */
static uint64_t most_on_others(const packed_product *of)
{
    bool is_tall = of->inner > 2 * of->outputs;
    if (has_waves(of, 2))
        return has_waves(of, 3) ? 256 : 128;
    if (has_part(of, 80)) {
        if (is_tall || of->tiles >= 200)
            return 128;
        return of->inner < of->outputs ? 64 : of->processors >= 60 ? 128 : 32;
    }
    if (has_half(of))
        return is_tall ? 64 : of->tiles >= 64 ? 8 : 32;
    if (of->inner > of->outputs && of->tiles <= 48)
        return of->inner >= 3 * of->outputs ? 12 : 10;
    return is_tall || of->tiles < 48 ? 16 : 8;
}

/* Of a weight with so many elements that reading it is what takes long. */
static uint64_t most_of_large(const packed_product *of)
{
    switch (of->capability) {
    case 75:
        return most_on_turing(of);
    case 80:
        return most_on_ampere(of);
    case 86:
        return has_waves(of, 1) ? 128 : has_half(of) ? 64 : 16;
    case 120:
        return most_on_blackwell(of);
    case 121:
        return has_waves(of, 1) ? 256 : most_on_others(of);
    default:
        return is_hopper(of) ? most_on_hopper(of) : most_on_others(of);
    }
}

/* 10.x: B200 and B300, where unpacking is fast. */
static uint64_t most_on_data_center_blackwell(const packed_product *of)
{
    if (has_waves(of, 3))
        return 32;
    return has_waves(of, 1) && of->inner < of->outputs ? 8 : 0;
}

static bool wins(const packed_product *of)
{
    uint32_t major = of->capability / 10;
    bool has_no_tensor_cores = major < 7 || (major == 7 && !(is_turing(of) && of->is_fp16));
    if (!of->is_half || has_no_tensor_cores)
        return of->rows < 8;
    if (of->capability == 87 || major == 11)
        return false;
    if (major == 10)
        return of->rows <= most_on_data_center_blackwell(of);
    if (of->outputs * of->inner < SMALL_WEIGHT)
        return of->rows <= most_of_small(of);
    return of->rows < 8 ? wins_few(of) : of->rows <= most_of_large(of);
}

bool frag_aten_has_packed_kernel(const frag_tape *tape, frag_dtype dtype, uint64_t rows,
                                 frag_packed_shape shape)
{
    if (rows > KERNEL_NEVER_ROWS || shape.inner % QUANTISED_BLOCK != 0)
        return false;
    if (rows <= KERNEL_ALWAYS_ROWS)
        return true;
    const frag_tape_card *card = frag_tape_get_card(tape);
    const packed_product of = {
        .rows = rows,
        .outputs = shape.outputs,
        .inner = shape.inner,
        .tiles = (shape.outputs + TILE - 1) / TILE,
        .processors = card->multiprocessors,
        .capability = card->capability,
        .is_half = dtype != FRAG_F32,
        .is_fp16 = dtype == FRAG_F16,
    };
    return wins(&of);
}
