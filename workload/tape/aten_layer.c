/* Embeddings, normalisation, and the loss. */
#include "workload/tape/aten.h"

#include "base/bits.h"
/* ---- embedding (ATen/native/cuda/Embedding.cu, EmbeddingBackwardKernel.cu) */
/* Above UNSORTED_MAX tokens backward sorts them. Segments of equal tokens are added up in parts of
 * at most PART_ROWS rows. */
enum {
    UNSORTED_MAX = 3072,
    PART_ROWS = 10,
    SORT_SMALL_MAX = 4096,
    TILE_ROWS_MAX = 2048,
    PASSES_MAX = 8,
    PASS_BYTES = 2048,
    SORT_FIXED_BYTES = 16896,
    SUM_TILE = 896,
    SUM_TILE_F32 = 1920,
    SELECT_TILE = 2560,
};

/* How many items a block of cub takes, which its tuning decides by the card. */
typedef struct cub_tiles {
    uint64_t sort;
    uint64_t unique;
} cub_tiles;

static cub_tiles get_tiles(const frag_tape *tape)
{
    uint32_t capability = frag_tape_get_card(tape)->capability;
    if (capability >= 90)
        return (cub_tiles){4608, 4608};
    if (capability >= 80)
        return (cub_tiles){3840, capability == 80 ? 1792 : 320};
    return (cub_tiles){2816, 320};
}

static uint64_t key_bytes(uint64_t keys)
{
    return frag_divide_up(keys * 8, 256) * 256;
}

/* Radix sort: two more buffers of keys, counts of 8 passes, 1 KiB a tile. */
static uint64_t sort_bytes(uint64_t keys, uint64_t tile)
{
    return 2 * key_bytes(keys) + SORT_FIXED_BYTES + 1024 * frag_divide_up(keys, tile) - 1;
}

/* Scans: a state for each tile, and for 32 more. */
static uint64_t scan_states(uint64_t items, uint64_t tile, uint64_t state_bytes)
{
    return frag_divide_up((frag_divide_up(items, tile) + 32) * state_bytes, 256) * 256 + 255;
}

static uint64_t scan_bytes(uint64_t items, uint64_t tile)
{
    return scan_states(items, tile, 16);
}

static frag_tensor bytes_of(frag_tape *tape, uint64_t bytes)
{
    return frag_tape_empty(tape, bytes, FRAG_BOOL);
}

/* The gradient by segments of sorted tokens. */
static frag_tensor add_segments(frag_tape *tape, uint64_t tokens, uint64_t count, uint64_t width,
                                frag_dtype dtype)
{
    frag_tensor made = frag_tape_empty(tape, count, dtype);
    uint64_t words = count / width;
    uint64_t segments = tokens < words ? tokens : words;
    uint64_t parts = tokens / PART_ROWS + segments;
    frag_tensor offsets = frag_tape_empty(tape, tokens, FRAG_I64);
    frag_tensor segment_count = frag_tape_empty(tape, 1, FRAG_I64);
    frag_tensor ones = frag_tape_empty(tape, tokens, FRAG_I64);
    frag_tape_drop(tape, bytes_of(tape, scan_bytes(tokens, get_tiles(tape).unique)));
    frag_tape_drop(tape, ones);
    frag_tensor parts_of = frag_tape_empty(tape, segments, FRAG_I64);
    frag_tensor part_offsets = frag_tape_empty(tape, segments, FRAG_I64);
    frag_tape_drop(tape, bytes_of(tape, scan_bytes(segments, SUM_TILE)));
    frag_tensor part_count = frag_tape_empty(tape, 1, FRAG_I64);
    frag_tensor part_starts = frag_tape_empty(tape, parts, FRAG_I64);
    frag_tape_drop(tape, frag_tape_empty(tape, parts * width, FRAG_F32));
    frag_tape_drop(tape, part_starts);
    frag_tape_drop(tape, part_count);
    frag_tape_drop(tape, part_offsets);
    frag_tape_drop(tape, parts_of);
    frag_tape_drop(tape, segment_count);
    frag_tape_drop(tape, offsets);
    return made;
}

static frag_tensor add_sorted(frag_tape *tape, const frag_node *node, uint64_t tokens,
                              frag_dtype dtype)
{
    frag_tensor sorted = frag_tape_empty(tape, tokens, FRAG_I64);
    frag_tensor order = frag_tape_empty(tape, tokens, FRAG_I64);
    frag_tensor range = frag_tape_empty(tape, tokens, FRAG_I64);
    frag_tape_drop(tape, bytes_of(tape, sort_bytes(tokens, get_tiles(tape).sort)));
    frag_tape_drop(tape, range);
    frag_tensor made = add_segments(tape, tokens, node->numbers[0], node->numbers[1], dtype);
    frag_tape_drop(tape, order);
    frag_tape_drop(tape, sorted);
    return made;
}

static void embedding_backward(frag_tape *tape, frag_node *node, const frag_tensor *in,
                               frag_tensor *out)
{
    uint64_t tokens = frag_tape_count(tape, node->saved[0]);
    frag_dtype dtype = frag_tape_dtype(tape, in[0]);
    /* Repeated ids are written out first. */
    frag_tensor flat =
        frag_tape_is_expanded(tape, node->saved[0]) ? frag_tape_empty(tape, tokens, FRAG_I64) : 0;
    frag_tensor laid =
        node->numbers[2] != 0 ? frag_tape_empty(tape, tokens * node->numbers[1], dtype) : 0;
    if (tokens <= UNSORTED_MAX)
        out[0] = frag_tape_empty(tape, node->numbers[0], dtype);
    else
        out[0] = add_sorted(tape, node, tokens, dtype);
    frag_tape_drop(tape, laid);
    frag_tape_drop(tape, flat);
}

static frag_tensor embedding(frag_tape *tape, frag_tensor weight, frag_tensor ids, uint64_t width,
                             bool is_turned)
{
    uint64_t tokens = frag_tape_count(tape, ids);
    frag_tape_fetch(tape, &weight, 1);
    if (frag_tape_needs_gradient(tape, weight))
        frag_tape_will_save(tape, ids);
    frag_tensor flat =
        frag_tape_is_expanded(tape, ids) ? frag_tape_empty(tape, tokens, FRAG_I64) : 0;
    frag_tensor made = frag_tape_empty(tape, tokens * width, frag_tape_dtype(tape, weight));
    frag_tape_drop(tape, flat);
    frag_node *node = frag_tape_record(tape, embedding_backward, &weight, 1, &made, 1);
    frag_tape_save(tape, node, ids);
    node->numbers[0] = frag_tape_count(tape, weight);
    node->numbers[1] = width;
    node->numbers[2] = is_turned;
    frag_tape_send_back(tape, &weight, 1);
    return made;
}

frag_tensor frag_aten_embedding(frag_tape *tape, frag_tensor weight, frag_tensor ids,
                                uint64_t width)
{
    return embedding(tape, weight, ids, width, false);
}

frag_tensor frag_aten_embedding_turned(frag_tape *tape, frag_tensor weight, frag_tensor ids,
                                       uint64_t width)
{
    return embedding(tape, weight, ids, width, true);
}

void frag_aten_scan(frag_tape *tape, uint64_t items, frag_dtype dtype)
{
    uint64_t bytes = dtype == FRAG_I64
                         ? scan_bytes(items, SUM_TILE)
                         : scan_states(items, dtype == FRAG_F32 ? SUM_TILE_F32 : SELECT_TILE, 8);
    frag_tape_drop(tape, bytes_of(tape, bytes));
}

void frag_aten_sort(frag_tape *tape, uint64_t count)
{
    frag_tensor range = frag_tape_empty(tape, count, FRAG_I64);
    if (count > SORT_SMALL_MAX)
        frag_tape_drop(tape, bytes_of(tape, sort_bytes(count, get_tiles(tape).sort)));
    frag_tape_drop(tape, range);
}

void frag_aten_sort_keys(frag_tape *tape, uint64_t count, uint64_t values)
{
    uint64_t passes = 1; /* over the bytes that the largest number has */
    for (uint64_t left = (values - 1) >> 8; left > 0; left >>= 8)
        passes++;
    uint64_t bytes = sort_bytes(count, get_tiles(tape).sort) - (PASSES_MAX - passes) * PASS_BYTES;
    if (passes == 1) /* straight into the results */
        bytes -= 2 * key_bytes(count);
    frag_tape_drop(tape, bytes_of(tape, count <= TILE_ROWS_MAX ? 1 : bytes));
}

void frag_aten_sort_rows(frag_tape *tape, uint64_t count, uint64_t rows, uint64_t indices)
{
    frag_tensor wrapped = frag_tape_empty(tape, count, FRAG_I64);
    frag_tensor made[4]; /* places, sorted, order, a range */
    for (uint32_t i = 0; i < 4; i++) {
        made[i] = frag_tape_empty(tape, count, FRAG_I64);
        frag_tape_clear(tape, &wrapped);
        for (uint64_t more = 1; i == 0 && more < indices; more++) {
            wrapped = frag_tape_empty(tape, count, FRAG_I64);
            frag_tape_drop(tape, frag_tape_empty(tape, count, FRAG_I64));
            frag_tape_clear(tape, &wrapped);
        }
    }
    frag_aten_sort_keys(tape, count, rows);
    frag_tape_drop_all(tape, made, 4);
}

/* ---- sums of embeddings (ATen/native/cuda/EmbeddingBag.cu) */
static void bag_backward(frag_tape *tape, frag_node *node, const frag_tensor *in, frag_tensor *out)
{
    uint64_t tokens = frag_tape_count(tape, node->saved[0]);
    frag_dtype dtype = frag_tape_dtype(tape, in[0]);
    if (node->is_sparse) {
        out[0] = frag_tape_empty(tape, tokens * node->numbers[1], dtype);
        return;
    }
    frag_tensor laid =
        node->numbers[2] != 0 ? frag_tape_empty(tape, frag_tape_count(tape, in[0]), dtype) : 0;
    frag_tensor sorted = frag_tape_empty(tape, tokens, FRAG_I64);
    frag_tensor order = frag_tape_empty(tape, tokens, FRAG_I64);
    frag_tensor range = frag_tape_empty(tape, tokens, FRAG_I64);
    frag_aten_sort_keys(tape, tokens, UINT64_MAX); /* as if rows had any number */
    frag_tape_drop(tape, range);
    out[0] = add_segments(tape, tokens, node->numbers[0], node->numbers[1], dtype);
    frag_tape_drop(tape, order);
    frag_tape_drop(tape, sorted);
    frag_tape_drop(tape, laid);
}

frag_tensor frag_aten_embedding_bag(frag_tape *tape, const frag_embedding_bag *of)
{
    uint64_t bags = frag_tape_count(tape, of->offsets);
    frag_tensor bag_size = frag_tape_empty(tape, bags, FRAG_I64);
    frag_tensor bag_of = frag_tape_empty(tape, frag_tape_count(tape, of->indices), FRAG_I64);
    frag_tensor made = frag_tape_empty(tape, bags * of->width, frag_tape_dtype(tape, of->weight));
    frag_node *node = frag_tape_record(tape, bag_backward, &of->weight, 1, &made, 1);
    frag_tape_save(tape, node, of->indices);
    frag_tape_save(tape, node, of->offsets);
    frag_tape_save_made(tape, node, bag_of);
    frag_tape_save_made(tape, node, bag_size);
    node->numbers[0] = frag_tape_count(tape, of->weight);
    node->numbers[1] = of->width;
    node->numbers[2] = of->is_turned;
    node->is_sparse = of->is_sparse;
    frag_tape_drop(tape, bag_of);
    frag_tape_drop(tape, bag_size);
    return made;
}

/* ---- layer norm: inputs x, weight, bias; mean and 1/deviation of each row are kept in fp32 */
/* Many short rows: weight's and bias's gradients are summed in two passes, 32 rows first. */
static void sum_in_parts(frag_tape *tape, const frag_node *node, uint64_t rows, frag_tensor *out)
{
    enum { ROWS_MIN = 64 * 1024, GRID_MAX = 32 * 1024, TILE = 32 };
    uint64_t width = node->numbers[0];
    uint64_t tiles = frag_divide_up(width, TILE);
    if (rows <= ROWS_MIN || width / TILE >= frag_tape_get_card(tape)->multiprocessors / 2)
        return;
    uint64_t blocks = frag_divide_up(rows, TILE);
    blocks = blocks < GRID_MAX / tiles ? blocks : GRID_MAX / tiles;
    frag_dtype dtype = (frag_dtype)node->numbers[1];
    frag_tensor parts[3] = {0};
    for (uint32_t i = 1; i < 3; i++)
        parts[i] = out[i] != 0 ? frag_tape_empty(tape, blocks * width, dtype) : 0;
    for (uint32_t i = 1; i < 3; i++) {
        if (parts[i] == 0)
            continue;
        frag_tensor sum = frag_tape_empty(tape, width, dtype);
        frag_aten_reduce_buffers(tape, &(frag_reduction){width, blocks, false, 0});
        frag_tape_set(tape, &out[i], sum);
    }
    frag_tape_drop(tape, parts[1]);
    frag_tape_drop(tape, parts[2]);
}

static void layer_norm_backward(frag_tape *tape, frag_node *node, const frag_tensor *in,
                                frag_tensor *out)
{
    uint64_t count = frag_tape_count(tape, in[0]);
    frag_norm_layout layout = (frag_norm_layout)node->numbers[2];
    bool is_turned = (layout == FRAG_NORM_TURNED || layout == FRAG_NORM_TURNED_BOTH) &&
                     node->host_counts[0] == 0; /* what comes back lies in one piece */
    bool is_copied = layout == FRAG_NORM_GAPS || layout == FRAG_NORM_TURNED_BOTH;
    frag_tensor laid = is_turned ? frag_tape_empty(tape, count, node->dtypes[0]) : 0;
    if (node->edges[0].node != 0)
        out[0] = frag_tape_empty(tape, count, node->dtypes[0]);
    for (uint32_t i = 1; i < node->edge_count; i++)
        if (node->edges[i].node != 0)
            out[i] = frag_tape_empty(tape, node->numbers[0], (frag_dtype)node->numbers[1]);
    frag_tensor laid_gradient = is_copied ? frag_tape_empty(tape, count, node->dtypes[0]) : 0;
    sum_in_parts(tape, node, count / node->numbers[0], out);
    frag_tape_drop(tape, laid_gradient);
    frag_tape_drop(tape, laid);
}

static frag_tensor layer_norm(frag_tape *tape, frag_tensor x, const frag_pair *of, uint64_t width,
                              frag_norm_layout layout, bool is_cast)
{
    const frag_tensor weight = of->weight;
    const frag_tensor parameters[] = {weight, of->bias};
    frag_tape_fetch(tape, parameters, 2);
    frag_tensor typed = is_cast ? frag_tape_to(tape, x, FRAG_F32) : frag_tape_keep(tape, x);
    uint64_t count = frag_tape_count(tape, typed);
    frag_dtype dtype = frag_tape_dtype(tape, typed);
    bool is_saved = frag_tape_needs_gradient(tape, typed) || frag_tape_needs_gradient(tape, weight);
    if (frag_tape_is_strided(tape, x))
        frag_tape_set_strided(tape, typed);
    if (is_saved)
        frag_tape_will_save(tape, typed);
    frag_tensor laid = layout != FRAG_NORM_PLAIN ? frag_tape_empty(tape, count, dtype) : 0;
    frag_tensor made = frag_tape_empty(tape, count, dtype);
    frag_tensor mean = frag_tape_empty(tape, count / width, FRAG_F32);
    frag_tensor deviation = frag_tape_empty(tape, count / width, FRAG_F32);
    frag_tape_drop(tape, laid);
    frag_node *node = frag_tape_record(tape, layer_norm_backward,
                                       (frag_tensor[]){typed, weight, of->bias}, 3, &made, 1);
    frag_tape_save(tape, node, of->bias);
    frag_tape_save(tape, node, typed);
    frag_tape_save(tape, node, weight);
    frag_tape_save_made(tape, node, mean);
    frag_tape_save_made(tape, node, deviation);
    node->numbers[0] = width;
    node->numbers[1] = frag_tape_dtype(tape, weight);
    node->numbers[2] = layout;
    frag_tape_drop(tape, mean);
    frag_tape_drop(tape, deviation);
    frag_tape_drop(tape, typed);
    frag_tape_send_back(tape, parameters, 2);
    return made;
}

/* In fp32, where x and the weight have two types. */
static frag_tensor rms_norm_apart(frag_tape *tape, frag_tensor x, frag_tensor weight,
                                  uint64_t width)
{
    frag_tensor wide = frag_tape_to(tape, x, FRAG_F32);
    frag_tensor power = frag_aten_pow(tape, wide);
    frag_tensor mean = frag_aten_mean_last(tape, power, width);
    frag_tensor root = frag_aten_rsqrt(tape, mean);
    frag_tape_drop(tape, power);
    frag_tape_drop(tape, mean);
    frag_tensor scaled = frag_aten_mul(tape, wide, root);
    frag_tensor product = frag_aten_mul(tape, scaled, weight);
    frag_tape_drop(tape, scaled);
    frag_tape_drop(tape, wide);
    frag_tensor made = frag_tape_to(tape, product, frag_tape_dtype(tape, x));
    frag_tape_drop(tape, product);
    frag_tape_drop(tape, root);
    return made;
}

/* _fused_rms_norm: 1/root of each row is kept. */
static frag_tensor rms_norm(frag_tape *tape, frag_tensor x, frag_tensor weight, uint64_t width,
                            frag_norm_layout layout)
{
    if (frag_tape_dtype(tape, x) != frag_tape_dtype(tape, weight))
        return rms_norm_apart(tape, x, weight, width);
    uint64_t count = frag_tape_count(tape, x);
    const frag_dtype dtype = frag_tape_dtype(tape, x);
    frag_tensor laid = layout == FRAG_NORM_TURNED ? frag_tape_empty(tape, count, dtype) : 0;
    frag_tensor made = frag_tape_empty(tape, count, dtype);
    frag_tensor root = frag_tape_empty(tape, count / width, FRAG_F32);
    frag_tape_drop(tape, laid);
    frag_node *node =
        frag_tape_record(tape, layer_norm_backward, (frag_tensor[]){x, weight}, 2, &made, 1);
    frag_tape_save(tape, node, x);
    frag_tape_save(tape, node, weight);
    frag_tape_save_made(tape, node, root);
    node->numbers[0] = width;
    node->numbers[1] = frag_tape_dtype(tape, weight);
    node->numbers[2] = layout;
    frag_tape_drop(tape, root);
    return made;
}

frag_tensor frag_aten_rms_norm(frag_tape *tape, frag_tensor x, frag_tensor weight, uint64_t width,
                               frag_norm_layout layout)
{
    frag_tape_fetch(tape, &weight, 1);
    frag_tensor made = rms_norm(tape, x, weight, width, layout);
    frag_tape_send_back(tape, &weight, 1);
    return made;
}

frag_tensor frag_aten_layer_norm_laid(frag_tape *tape, frag_tensor x, const frag_pair *of,
                                      uint64_t width, frag_norm_layout layout)
{
    return layer_norm(tape, x, of, width, layout, frag_tape_autocast(tape) != FRAG_F32);
}

frag_tensor frag_aten_layer_norm_typed(frag_tape *tape, frag_tensor x, const frag_pair *of,
                                       uint64_t width)
{
    return layer_norm(tape, x, of, width, FRAG_NORM_PLAIN, false);
}

frag_tensor frag_aten_layer_norm(frag_tape *tape, frag_tensor x, const frag_pair *of,
                                 uint64_t width)
{
    return frag_aten_layer_norm_laid(tape, x, of, width, FRAG_NORM_PLAIN);
}

/* ---- the mean of each row, or of each image's pixels */
static frag_tensor mean(frag_tape *tape, frag_tensor x, const frag_reduction *of)
{
    frag_tensor made = frag_tape_empty(tape, of->outputs, frag_tape_dtype(tape, x));
    if (of->is_fastest)
        frag_tape_set_column(tape, made);
    frag_aten_reduce_buffers(tape, of);
    frag_node *node = frag_tape_record(tape, frag_aten_resize_backward, &x, 1, &made, 1);
    node->numbers[0] = frag_tape_count(tape, x);
    return made;
}

frag_tensor frag_aten_mean_last(frag_tape *tape, frag_tensor x, uint64_t width)
{
    return mean(tape, x, &(frag_reduction){frag_tape_count(tape, x) / width, width, true, 0});
}

frag_tensor frag_aten_mean_pixels(frag_tape *tape, frag_tensor x, uint64_t pixels)
{
    return mean(tape, x, &(frag_reduction){frag_tape_count(tape, x) / pixels, pixels, false, 0});
}

/* ---- cross entropy: log_softmax, then nll_loss */
static void log_softmax_backward(frag_tape *tape, frag_node *node, const frag_tensor *in,
                                 frag_tensor *out)
{
    out[0] = frag_tape_empty(tape, frag_tape_count(tape, in[0]), (frag_dtype)node->numbers[0]);
}

static void nll_backward(frag_tape *tape, frag_node *node, const frag_tensor *in, frag_tensor *out)
{
    (void)in;
    out[0] = frag_tape_empty(tape, node->numbers[0], (frag_dtype)node->numbers[1]);
}

static frag_tensor log_softmax(frag_tape *tape, frag_tensor logits, frag_dtype made_dtype)
{
    frag_tensor made = frag_tape_empty(tape, frag_tape_count(tape, logits), made_dtype);
    frag_node *node = frag_tape_record(tape, log_softmax_backward, &logits, 1, &made, 1);
    frag_aten_save_softmax(tape, node, logits, made);
    return made;
}

frag_tensor frag_aten_log_softmax(frag_tape *tape, frag_tensor self)
{
    frag_dtype dtype = frag_tape_dtype(tape, self);
    bool is_wide = frag_tape_autocast(tape) != FRAG_F32;
    bool is_cast = is_wide && dtype == FRAG_BF16; /* fp16 is read as it is */
    frag_tensor typed = is_cast ? frag_tape_to(tape, self, FRAG_F32) : frag_tape_keep(tape, self);
    frag_tensor made = log_softmax(tape, typed, is_wide ? FRAG_F32 : dtype);
    if (frag_tape_is_strided(tape, typed))
        frag_tape_drop(tape, frag_tape_empty(tape, frag_tape_count(tape, self), dtype));
    frag_tape_drop(tape, typed);
    return made;
}

/* saved: index, self. Zeros like self, into which the gradient is written. */
frag_tensor frag_aten_choose(frag_tape *tape, frag_tensor self, frag_tensor index)
{
    frag_tensor made =
        frag_tape_empty(tape, frag_tape_count(tape, index), frag_tape_dtype(tape, self));
    frag_node *node = frag_tape_record(tape, frag_aten_resize_backward, &self, 1, &made, 1);
    frag_tape_save(tape, node, index);
    frag_tape_save(tape, node, self);
    node->numbers[0] = frag_tape_count(tape, self);
    return made;
}

frag_tensor frag_aten_cross_entropy(frag_tape *tape, frag_tensor logits, frag_tensor targets)
{
    /* The type of log_softmax is named, so that autocast leaves it; nll_loss runs in fp32. */
    frag_tensor made = log_softmax(tape, logits, frag_tape_dtype(tape, logits));
    bool is_cast = frag_tape_autocast(tape) != FRAG_F32;
    frag_tensor likelihood =
        is_cast ? frag_tape_to(tape, made, FRAG_F32) : frag_tape_keep(tape, made);
    frag_dtype dtype = frag_tape_dtype(tape, likelihood);
    frag_tensor loss = frag_tape_empty(tape, 1, dtype);
    frag_tensor total = frag_tape_empty(tape, 1, dtype);
    frag_node *node = frag_tape_record(tape, nll_backward, &likelihood, 1, &loss, 1);
    frag_tape_save(tape, node, likelihood);
    frag_tape_save(tape, node, targets);
    frag_tape_save_output(tape, node, total);
    node->numbers[0] = frag_tape_count(tape, likelihood);
    node->numbers[1] = dtype;
    frag_tape_drop(tape, total);
    frag_tape_drop(tape, likelihood);
    frag_tape_drop(tape, made);
    return loss;
}

/* ---- binary cross entropy of logits: in fp32 under autocast */
static void bce_backward(frag_tape *tape, frag_node *node, const frag_tensor *in, frag_tensor *out)
{
    (void)in;
    out[0] = frag_tape_empty_like(tape, node->saved[0]);
}

frag_tensor frag_aten_binary_cross_entropy(frag_tape *tape, frag_tensor logits, frag_tensor targets)
{
    bool is_cast = frag_tape_autocast(tape) != FRAG_F32;
    frag_tensor typed =
        is_cast ? frag_tape_to(tape, logits, FRAG_F32) : frag_tape_keep(tape, logits);
    uint64_t count = frag_tape_count(tape, typed);
    frag_dtype dtype = frag_tape_dtype(tape, typed);
    frag_tensor logs = frag_tape_empty(tape, count, dtype);
    frag_tensor losses = frag_tape_empty(tape, count, dtype);
    frag_tensor loss = frag_tape_empty(tape, 1, dtype);
    frag_aten_reduce_buffers(tape, &(frag_reduction){1, count, true, 0});
    frag_tape_drop(tape, losses);
    frag_tape_drop(tape, logs);
    frag_node *node = frag_tape_record(tape, bce_backward, &typed, 1, &loss, 1);
    frag_tape_save(tape, node, typed);
    frag_tape_save(tape, node, targets);
    frag_tape_drop(tape, typed);
    return loss;
}

/* ---- mean squared error: inputs self, target */
static void mse_backward(frag_tape *tape, frag_node *node, const frag_tensor *in, frag_tensor *out)
{
    (void)in;
    out[0] = frag_tape_empty(tape, node->numbers[0], frag_tape_dtype(tape, node->saved[0]));
}

frag_tensor frag_aten_mse_loss(frag_tape *tape, frag_tensor self, frag_tensor target)
{
    /* The loss lies where there is room for the square of each difference. */
    uint64_t count = frag_tape_count(tape, self);
    frag_dtype dtype = frag_tape_dtype(tape, self);
    frag_tensor room = frag_tape_empty(tape, count, dtype);
    frag_tensor loss = frag_tape_alias(tape, room, 1);
    frag_tape_drop(tape, room);
    frag_tensor squares = frag_tape_empty(tape, count, dtype);
    frag_aten_reduce_buffers(tape, &(frag_reduction){1, count, true, 0});
    frag_tape_drop(tape, squares);
    frag_node *node = frag_tape_record(tape, mse_backward, &self, 1, &loss, 1);
    frag_tape_save(tape, node, self);
    frag_tape_save(tape, node, target);
    node->numbers[0] = count;
    return loss;
}
