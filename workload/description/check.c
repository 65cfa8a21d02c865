/* Do the fields of a network and the knobs of a run go together? */
#include <inttypes.h>
#include <string.h>

#include "base/bits.h"
#include "base/text.h"
#include "workload/description/checks.h"
#include "workload/description/field_tables.h"

#define SCORES_MAX ((uint64_t)1 << 50)
#define PIXELS_MAX ((uint64_t)1 << 34)
#define ARRIVAL_RATE_MIN 0.001 /* every step until the next request is drawn for */

enum {
    BATCH_TOKENS_MAX = 1 << 26,
    NARROWING = 4,
    BLOCKS_MAX = 10000000,
    SIZES = 6,
    LISTED_LAYERS_MAX = 100 /* of a network of torchvision */
};

/* Are they others than where nothing is said? */
static bool has_lengths(const frag_lengths *lengths, const char *knob)
{
    return lengths->count != 1 || (double)lengths->values[0] != frag_workload_knob(knob)->initial;
}

static bool check_transformer(const frag_network *of, frag_error *error)
{
    if (of->experts > 0 && of->experts_chosen > of->experts)
        return frag_fail(error, FRAG_E_INPUT,
                         "experts_chosen is %" PRIu64 "; expected at most experts, %" PRIu64,
                         of->experts_chosen, of->experts);
    bool is_split = frag_families[of->family].has_learnt_positions ||
                    of->family == FRAG_FAMILY_MODERNBERT || of->family == FRAG_FAMILY_FALCON ||
                    of->family == FRAG_FAMILY_BLOOM;
    if (of->heads > 0 && is_split && of->width % of->heads != 0)
        return frag_fail(error, FRAG_E_INPUT, "width %" PRIu64 " is no multiple of heads %" PRIu64,
                         of->width, of->heads);
    if (of->encoder_heads > 0 && of->width % of->encoder_heads != 0)
        return frag_fail(error, FRAG_E_INPUT,
                         "width %" PRIu64 " is no multiple of encoder_heads %" PRIu64, of->width,
                         of->encoder_heads);
    if (of->family == FRAG_FAMILY_QWEN2_MOE && of->has_window)
        return frag_fail(
            error, FRAG_E_INPUT,
            "use_window is true, which is not described for qwen2_moe; expected false");
    if (of->layer_groups > of->layers)
        return frag_fail(error, FRAG_E_INPUT,
                         "layer_groups is %" PRIu64 "; expected at most layers, %" PRIu64,
                         of->layer_groups, of->layers);
    if (of->key_rank > 0 && of->key_heads != of->heads)
        return frag_fail(error, FRAG_E_INPUT,
                         "key_heads is %" PRIu64 " and key_rank is given, of which all %" PRIu64
                         " heads are made; expected as many",
                         of->key_heads, of->heads);
    if (of->key_rank == 0 && of->has_complex_rope)
        return frag_fail(error, FRAG_E_INPUT,
                         "complex_rotary is true and key_rank 0; expected it with latent "
                         "attention");
    if (of->key_rank > 0 && (of->is_eager || of->has_window))
        return frag_fail(error, FRAG_E_INPUT,
                         "eager or use_window is true and key_rank is given; expected neither with "
                         "latent attention");
    if (of->family == FRAG_FAMILY_GPTJ && of->turned_width > of->head_width)
        return frag_fail(error, FRAG_E_INPUT,
                         "turned_width is %" PRIu64
                         "; expected at most the width of a head, %" PRIu64,
                         of->turned_width, of->head_width);
    if (of->experts > 0 && (of->is_parallel || (of->dense_layers > 0 && of->expert_every > 1)))
        return frag_fail(error, FRAG_E_INPUT,
                         "experts is given with parallel, or dense_layers with expert_every; "
                         "expected neither");
    if ((of->has_shared_gate && of->shared_inner == 0) ||
        (of->has_scored_routing && (of->router_groups == 0 || of->has_embedding_scale)))
        return frag_fail(error, FRAG_E_INPUT,
                         "shared_gate is true without a shared expert, or scored_routing without "
                         "router_groups or with embedding_scale; expected both as qwen2_moe and "
                         "deepseek_v3 have them");
    bool is_grouped = of->routing_method == FRAG_ROUTING_GROUPS;
    if (of->family == FRAG_FAMILY_DEEPSEEK_V2 &&
        (of->routing_method == FRAG_ROUTING_BIASED || (is_grouped && of->router_groups == 0)))
        return frag_fail(error, FRAG_E_INPUT,
                         "routing_method is noaux_tc, or group_limited_greedy without "
                         "router_groups; expected greedy, or groups");
    if (of->router_groups > 0 &&
        (of->experts % of->router_groups != 0 || of->experts < 2 * of->router_groups ||
         of->router_groups_chosen > of->router_groups))
        return frag_fail(error, FRAG_E_INPUT,
                         "router_groups is %" PRIu64 ", experts %" PRIu64
                         "; expected groups of two or more experts, as many in each, and no more "
                         "router_groups_chosen",
                         of->router_groups, of->experts);
    if (of->family == FRAG_FAMILY_FALCON &&
        (of->has_alibi || (!of->has_copied_keys && !of->has_shared_keys)))
        return frag_fail(error, FRAG_E_INPUT,
                         "alibi is true, or neither shared_keys nor copied_keys; expected a falcon "
                         "with rotary positions and fewer heads of keys than of queries");
    if (of->has_sinks && !of->is_eager)
        return frag_fail(error, FRAG_E_INPUT,
                         "sinks is true, which is described with eager attention; expected eager "
                         "true");
    if (of->heads % of->key_heads != 0)
        return frag_fail(error, FRAG_E_INPUT,
                         "heads %" PRIu64 " is no multiple of key_heads %" PRIu64, of->heads,
                         of->key_heads);
    if (of->head_width == 0 || of->head_width % 2 != 0)
        return frag_fail(error, FRAG_E_INPUT, "head_width is %" PRIu64 "; expected an even number",
                         of->head_width);
    return true;
}

bool frag_network_has_window(const frag_network *of, uint64_t layer)
{
    return of->window > 0 && layer >= of->full_layers &&
           (of->full_every == 0 || (layer + 1) % of->full_every != 0);
}

bool frag_network_has_experts(const frag_network *of, uint64_t layer)
{
    return of->experts > 0 && layer >= of->dense_layers && (layer + 1) % of->expert_every == 0;
}

bool frag_family_has_head(const frag_family_fields *family, uint64_t head)
{
    bool has_others = family->has_pairs || family->has_sounds || family->has_images ||
                      family->has_samples || family->has_graphs || family->is_diffusion;
    if (head == FRAG_HEAD_LM)
        return true;
    return !has_others && !family->has_no_classes &&
           (head == FRAG_HEAD_SEQUENCE || family->is_encoder);
}

frag_problem frag_workload_problem(const frag_workload *workload)
{
    if (workload->head != FRAG_HEAD_SEQUENCE)
        return FRAG_PROBLEM_SINGLE;
    if (workload->problem_type != FRAG_PROBLEM_AUTO)
        return (frag_problem)workload->problem_type;
    return workload->labels == 1 ? FRAG_PROBLEM_REGRESSION : FRAG_PROBLEM_SINGLE;
}

static bool has_loss(const frag_workload *workload)
{
    return workload->task == FRAG_TASK_TRAIN || workload->task == FRAG_TASK_EVALUATE;
}

bool frag_workload_has_autocast(const frag_workload *workload)
{
    return workload->precision == FRAG_PRECISION_AMP_BF16 ||
           workload->precision == FRAG_PRECISION_AMP_FP16;
}

/* As peft trains beside weights of 4 or 8 bits: what is not quantised is in fp32, under autocast.
 */
static bool check_quantized(const frag_workload *workload, frag_error *error)
{
    const frag_family_fields *family = &frag_families[workload->network.family];
    bool is_training = workload->task == FRAG_TASK_TRAIN || workload->task == FRAG_TASK_RLHF;
    if (workload->quantize == FRAG_QUANTIZE_NONE)
        return true;
    if (workload->has_dora)
        return frag_fail(error, FRAG_E_INPUT,
                         "lora_dora is true, which is not described beside quantize; expected "
                         "quantize none");
    if (family->has_no_quantised || family->lora_targets == 0)
        return frag_fail(error, FRAG_E_INPUT,
                         "quantize is given; weights of 4 or 8 bits are not described for %s",
                         family->name);
    if (workload->network.family == FRAG_FAMILY_DEBERTA_V2 && workload->lora_rank > 0)
        return frag_fail(error, FRAG_E_INPUT,
                         "quantize is given beside lora_rank, with which deberta-v2 fails in "
                         "transformers: under autocast its mask is the least number of fp32, which "
                         "16 bits do not hold");
    if (is_training && workload->lora_rank == 0)
        return frag_fail(error, FRAG_E_INPUT,
                         "quantize is given, and weights of 4 or 8 bits are not trained; expected "
                         "lora_rank, or task evaluate or generate");
    bool is_half =
        workload->precision == FRAG_PRECISION_BF16 || workload->precision == FRAG_PRECISION_FP16;
    if (workload->lora_rank > 0 ? !frag_workload_has_autocast(workload) : !is_half)
        return frag_fail(error, FRAG_E_INPUT, "quantize is given; expected precision %s",
                         workload->lora_rank > 0 ? "amp-bf16 or amp-fp16 with lora_rank"
                                                 : "bf16 or fp16 without lora_rank");
    return true;
}

static bool check_stages(const frag_network *of, frag_error *error)
{
    if (of->depths.count != of->channels.count)
        return frag_fail(error, FRAG_E_INPUT,
                         "depths has %" PRIu64 " numbers, channels %" PRIu64
                         "; expected one for each stage in both",
                         of->depths.count, of->channels.count);
    for (uint64_t i = 0; i < of->channels.count; i++)
        if (of->layer == FRAG_LAYER_BOTTLENECK && of->channels.values[i] < NARROWING)
            return frag_fail(error, FRAG_E_INPUT,
                             "channels has %" PRIu64 "; expected at least %d where a layer "
                             "has three convolutions",
                             of->channels.values[i], NARROWING);
    /* Of a ConvNeXt, which pads nothing, every stage but the first halves the image. */
    uint64_t least = of->patch << (of->depths.count > 1 ? of->depths.count - 1 : 1);
    if (of->image < least)
        return frag_fail(error, FRAG_E_INPUT,
                         "image is %" PRIu64 "; expected at least %" PRIu64
                         ", of which patches and stages leave a pixel",
                         of->image, least);
    return true;
}

uint64_t frag_stages_at(const frag_stages *stages, uint64_t index)
{
    return stages->values[stages->count > 1 ? index : 0];
}

static bool check_stage_count(const char *key, const frag_stages *stages, bool may_be_one,
                              const frag_network *of, frag_error *error)
{
    if (stages->count == of->channels.count || (may_be_one && stages->count == 1))
        return true;
    return frag_fail(error, FRAG_E_INPUT,
                     "%s has %" PRIu64 " numbers, channels %" PRIu64 "; expected %sone for each",
                     key, stages->count, of->channels.count, may_be_one ? "one, or " : "");
}

/* Of a U-Net: channels can be cut into groups and heads, the image be halved on the way. */
static bool check_unet(const frag_network *of, frag_error *error)
{
    uint64_t factor = (uint64_t)1 << (of->channels.count - 1);
    if (!check_stage_count("down_attention", &of->down_attention, false, of, error) ||
        !check_stage_count("up_attention", &of->up_attention, false, of, error) ||
        !check_stage_count("heads", &of->stage_heads, true, of, error) ||
        !check_stage_count("depths", &of->depths, true, of, error))
        return false;
    for (uint64_t i = 0; i < of->channels.count; i++) {
        uint64_t channels = of->channels.values[i];
        uint64_t heads = frag_stages_at(&of->stage_heads, i);
        if (channels % of->groups != 0)
            return frag_fail(error, FRAG_E_INPUT,
                             "channels has %" PRIu64 ", which is no multiple of groups %" PRIu64,
                             channels, of->groups);
        if (channels % (8 * heads) != 0)
            return frag_fail(error, FRAG_E_INPUT,
                             "channels has %" PRIu64 " for %" PRIu64
                             " heads; expected a multiple of 8 for each head",
                             channels, heads);
    }
    if (of->image % factor != 0)
        return frag_fail(error, FRAG_E_INPUT,
                         "image is %" PRIu64 "; expected a multiple of %" PRIu64
                         ", as each stage but the last halves it",
                         of->image, factor);
    if (of->channels.values[0] % 2 != 0 || of->added_time_width % 2 != 0)
        return frag_fail(error, FRAG_E_INPUT,
                         "channels or added_time_width is odd; expected even numbers");
    if (of->added_width > 0 && of->added_width <= SIZES * of->added_time_width)
        return frag_fail(error, FRAG_E_INPUT,
                         "added_width is %" PRIu64 "; expected more than six sizes of %" PRIu64,
                         of->added_width, of->added_time_width);
    return true;
}

/* Of a FLUX: the numbers that turn are those of a head. */
static bool check_flux(const frag_network *of, frag_error *error)
{
    uint64_t turned = 0;
    for (uint64_t i = 0; i < of->axes.count; i++)
        turned += of->axes.values[i];
    const uint64_t axes = of->family == FRAG_FAMILY_FLUX ? 3 : 4;
    if (of->axes.count != axes)
        return frag_fail(error, FRAG_E_INPUT, "axes has %" PRIu64 " numbers; expected %" PRIu64,
                         of->axes.count, axes);
    for (uint64_t i = 0; i < of->axes.count; i++)
        if (of->axes.values[i] % 2 != 0)
            return frag_fail(error, FRAG_E_INPUT,
                             "axes has %" PRIu64 "; expected even numbers, as they turn in pairs",
                             of->axes.values[i]);
    if (of->out_channels > of->image_channels)
        return frag_fail(error, FRAG_E_INPUT,
                         "out_channels is %" PRIu64 "; expected at most image_channels, %" PRIu64,
                         of->out_channels, of->image_channels);
    return turned == of->head_width ||
           frag_fail(error, FRAG_E_INPUT,
                     "axes are %" PRIu64 " together, and head_width is %" PRIu64
                     "; expected the same",
                     turned, of->head_width);
}

/* What networks that read no tokens have not. */
static bool check_tokenless(const frag_workload *workload, frag_error *error)
{
    const frag_family_fields *family = &frag_families[workload->network.family];
    if (has_lengths(&workload->tokens, "tokens"))
        return frag_fail(error, FRAG_E_INPUT, "tokens is given, and %s reads %s", family->name,
                         family->has_images ? "images; expected the model's image"
                                            : "no sequences; expected it left out");
    if (!check_quantized(workload, error))
        return false;
    if (workload->lora_rank > 0 && family->lora_targets == 0)
        return frag_fail(error, FRAG_E_INPUT,
                         "lora_rank is %" PRIu64 "; adapters of %s are not described",
                         workload->lora_rank, family->name);
    return true;
}

/* What goes with images, and what does not. */
static bool check_images(const frag_workload *workload, frag_error *error)
{
    const frag_network *of = &workload->network;
    const frag_family_fields *family = &frag_families[of->family];
    if (!check_tokenless(workload, error))
        return false;
    if (of->patch > of->image)
        return frag_fail(error, FRAG_E_INPUT,
                         "patch is %" PRIu64 "; expected at most image, %" PRIu64, of->patch,
                         of->image);
    uint64_t pixels = workload->batch * of->image * of->image * of->image_channels;
    if (pixels > PIXELS_MAX)
        return frag_fail(error, FRAG_E_INPUT,
                         "a batch has %" PRIu64 " numbers; expected at most 2^34", pixels);
    if (family->is_diffusion)
        return (family->has_patches ? check_flux : check_unet)(of, error);
    if (of->image < family->image_min)
        return frag_fail(error, FRAG_E_INPUT,
                         "image is %" PRIu64 "; expected at least %" PRIu64
                         ", of which pooling leaves a pixel",
                         of->image, family->image_min);
    return of->heads > 0 ? check_transformer(of, error) : check_stages(of, error);
}

/* A table that is no bag gives a row for each sample; the nodes that are learned are there. */
static bool check_samples(const frag_workload *workload, frag_error *error)
{
    uint64_t lookups = frag_lengths_largest(&workload->lookups);
    const frag_lengths *nodes = &workload->nodes;
    if (frag_families[workload->network.family].has_graphs) {
        for (uint32_t i = 0; i < nodes->count; i++)
            if (nodes->values[i] < workload->batch)
                return frag_fail(error, FRAG_E_INPUT,
                                 "nodes has %" PRIu64 ", and batch is %" PRIu64
                                 "; expected at least as many nodes",
                                 nodes->values[i], workload->batch);
        return true;
    }
    /* Where a gradient is added to another, or scaled, others are made of them. */
    bool is_alone = workload->optimizer == FRAG_OPTIMIZER_SGD && workload->accumulate == 1 &&
                    !workload->keeps_gradients && workload->parallel == FRAG_PARALLEL_NONE &&
                    workload->precision != FRAG_PRECISION_AMP_FP16 && workload->network.has_bags;
    if (workload->network.is_sparse && workload->task == FRAG_TASK_TRAIN && !is_alone)
        return frag_fail(error, FRAG_E_INPUT,
                         "sparse is true, which is described for bags and the optimizer sgd, "
                         "without accumulate, keep_gradients, parallel and amp-fp16");
    return workload->network.has_bags || lookups == 1 ||
           frag_fail(error, FRAG_E_INPUT,
                     "lookups is up to %" PRIu64 ", and bags is false; expected 1 row of a table",
                     lookups);
}

static uint64_t count_layers(const frag_network *of)
{
    uint64_t layers = frag_families[of->family].is_listed ? LISTED_LAYERS_MAX : of->layers;
    for (uint64_t i = 0; i < of->depths.count; i++)
        layers += of->depths.values[i];
    layers += of->tables + of->bottom.count + of->top.count;
    if (of->family != FRAG_FAMILY_UNET)
        return layers + of->single_layers;
    /* Layers down and up of each stage have a transformer each, and so has the middle. */
    uint64_t stages = of->depths.count > 1 ? 1 : of->channels.count;
    return stages * (2 * of->layers + 2) * layers;
}

/* The longest answer. */
static uint64_t find_answer(const frag_workload *workload)
{
    return workload->task == FRAG_TASK_SERVE ? frag_workload_longest_answer(workload)
                                             : workload->new_tokens;
}

static uint64_t find_longest(const frag_workload *workload)
{
    const frag_network *of = &workload->network;
    if (frag_families[of->family].is_diffusion) /* tokens of the text, and patches among them */
        return of->text_tokens +
               (frag_families[of->family].has_patches ? of->image * of->image : 0);
    if (!frag_workload_has_tokens(workload))
        return of->positions;
    uint64_t tokens = frag_lengths_largest(&workload->tokens);
    if (workload->task == FRAG_TASK_RLHF) /* answers are read again, behind their prompts */
        tokens += workload->new_tokens;
    uint64_t heard = workload->network.encoder_positions;
    return tokens > heard ? tokens : heard;
}

/* Every request stays far below what a trace can hold, and the trace below what memory can. */
static bool check_size(const frag_workload *workload, frag_error *error)
{
    uint64_t longest = find_longest(workload);
    if (workload->batch * longest > BATCH_TOKENS_MAX)
        return frag_fail(error, FRAG_E_INPUT, "a batch has %" PRIu64 " tokens; expected at most %d",
                         workload->batch * longest, BATCH_TOKENS_MAX);
    const frag_network *of = &workload->network;
    uint64_t scores = workload->batch * of->heads * longest * longest;
    bool has_scores = of->is_eager || workload->attention == FRAG_ATTENTION_EAGER ||
                      workload->attention == FRAG_ATTENTION_MATH || of->heads != of->key_heads ||
                      of->position_buckets > 0 || of->bias_buckets > 0;
    if (has_scores && scores > SCORES_MAX)
        return frag_fail(error, FRAG_E_INPUT,
                         "attention has %" PRIu64 " scores; expected at most 2^50", scores);
    bool is_answering = workload->task == FRAG_TASK_GENERATE || workload->task == FRAG_TASK_RLHF;
    double passes = is_answering ? (double)workload->new_tokens : 1;
    if (workload->task == FRAG_TASK_SERVE)
        passes =
            (double)find_answer(workload) *
            (double)(workload->arrivals.count > 0 ? workload->arrivals.count : workload->requests);
    double devices = workload->parallel != FRAG_PARALLEL_NONE ? (double)workload->devices : 1;
    if (workload->parallel == FRAG_PARALLEL_PIPELINE) /* which cuts the model up, and the batch */
        devices = (double)frag_workload_microbatches(workload);
    double blocks = devices * passes * (double)workload->steps * (double)workload->accumulate *
                    (double)count_layers(of);
    if (blocks > BLOCKS_MAX)
        return frag_fail(error, FRAG_E_INPUT,
                         "steps, accumulate, new_tokens, devices and layers make %.0f"
                         " passes through a block; expected at most %d",
                         blocks, BLOCKS_MAX);
    return true;
}

bool frag_network_is_llama(const frag_network *of)
{
    bool is_later = of->is_feed_fused || of->has_paired_rope || of->has_centred_norms;
    return frag_families[of->family].fields == frag_llama_fields && !is_later && of->key_rank == 0;
}

/* Are all matrices of its blocks weights of nn.Linear? */
static bool has_linear_blocks(const frag_network *of)
{
    return (frag_network_is_llama(of) || of->family == FRAG_FAMILY_OPT ||
            of->family == FRAG_FAMILY_GPT_NEOX) &&
           of->experts == 0;
}

enum { FLOAT8_UNIT = 16 };

/* Gradients of weights are products over all tokens. */
uint64_t frag_workload_token_unit(const frag_workload *workload)
{
    bool has_unit = workload->precision == FRAG_PRECISION_FP8 && workload->task == FRAG_TASK_TRAIN;
    return has_unit ? FLOAT8_UNIT : 1;
}

/* As torchao's convert_to_float8_training: torch._scaled_mm takes multiples of 16. */
static bool check_float8(const frag_workload *workload, frag_error *error)
{
    const frag_network *of = &workload->network;
    const frag_lengths *tokens = &workload->tokens;
    if (workload->precision != FRAG_PRECISION_FP8)
        return true;
    if (!has_linear_blocks(of) || of->family == FRAG_FAMILY_OPT)
        return frag_fail(error, FRAG_E_INPUT,
                         "precision is fp8; it is described for gpt_neox and the families of llama "
                         "without experts, not for %s",
                         frag_families[of->family].name);
    if (!has_loss(workload) || workload->lora_rank > 0 || workload->parallel != FRAG_PARALLEL_NONE)
        return frag_fail(error, FRAG_E_INPUT,
                         "precision is fp8; it is described in task train and evaluate, without "
                         "lora_rank and parallel");
    uint64_t sizes[] = {of->width, of->inner, of->heads * of->head_width,
                        of->key_heads * of->head_width};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        if (sizes[i] % FLOAT8_UNIT != 0)
            return frag_fail(error, FRAG_E_INPUT,
                             "precision is fp8, and a layer has %" PRIu64
                             " inputs or outputs; expected multiples of 16",
                             sizes[i]);
    uint64_t unit = frag_workload_token_unit(workload);
    if (unit > 1 && tokens->is_range)
        return frag_fail(error, FRAG_E_INPUT,
                         "precision is fp8, and tokens is a range; expected batches of multiples "
                         "of 16 tokens");
    for (uint32_t i = 0; i < tokens->count; i++)
        if (workload->batch * tokens->values[i] % unit != 0)
            return frag_fail(error, FRAG_E_INPUT,
                             "precision is fp8, and a batch has %" PRIu64
                             " tokens; expected multiples of 16",
                             workload->batch * tokens->values[i]);
    return true;
}

/* Whose blocks' matrices are all weights of nn.Linear, as GaLore is for. */
static bool check_galore(const frag_workload *workload, frag_error *error)
{
    const frag_network *of = &workload->network;
    bool has_knobs = workload->galore_rank != FRAG_GALORE_RANK_INITIAL ||
                     workload->galore_gap != FRAG_GALORE_GAP_INITIAL;
    if (workload->optimizer != FRAG_OPTIMIZER_GALORE_ADAMW)
        return !has_knobs || frag_fail(error, FRAG_E_INPUT,
                                       "galore_rank or galore_gap is given; expected the optimizer "
                                       "galore-adamw with it");
    if (!has_linear_blocks(of))
        return frag_fail(error, FRAG_E_INPUT,
                         "optimizer is galore-adamw; it is described for opt, gpt_neox and the "
                         "families of llama without experts, not for %s",
                         frag_families[of->family].name);
    bool is_described = workload->lora_rank == 0 && (workload->parallel == FRAG_PARALLEL_NONE ||
                                                     workload->parallel == FRAG_PARALLEL_DDP);
    return is_described ||
           frag_fail(error, FRAG_E_INPUT,
                     "optimizer is galore-adamw; it is described without lora_rank, and with "
                     "parallel none or ddp");
}

/* As torch.optim: what it refuses or passes over. */
static bool check_optimizer(const frag_workload *workload, frag_error *error)
{
    uint64_t optimizer = workload->optimizer;
    bool is_adam = optimizer == FRAG_OPTIMIZER_ADAMW || optimizer == FRAG_OPTIMIZER_ADAM;
    if (workload->has_amsgrad && !is_adam)
        return frag_fail(error, FRAG_E_INPUT,
                         "amsgrad is true; expected it with the optimizer adamw or adam");
    if (!check_galore(workload, error))
        return false;
    bool is_fusible = optimizer < FRAG_OPTIMIZER_RMSPROP;
    if (!is_fusible && workload->optimizer_loop == FRAG_LOOP_FUSED)
        return frag_fail(
            error, FRAG_E_INPUT,
            "optimizer_loop is fused, which the optimizer has not; expected foreach or "
            "single");
    return true;
}

void frag_workload_name_targets(uint64_t targets, const char *quote, frag_text *text)
{
    const char *name = frag_workload_knob("lora_targets")->choices;
    const char *between = "";
    for (uint64_t bit = 1; bit < FRAG_LORA_ALL; bit <<= 1) {
        int length = (int)strcspn(name, "|");
        if ((targets & bit) != 0) {
            frag_text_add(text, "%s%s%.*s%s", between, quote, length, name, quote);
            between = ", ";
        }
        name += length + 1;
    }
}

uint64_t frag_workload_lora_targets(const frag_workload *workload)
{
    return workload->lora_targets != 0 ? workload->lora_targets
                                       : frag_families[workload->network.family].lora_default;
}

/* Adapters need a layer to stand beside. A llama may be fused, as phi3 is. */
static bool check_adapters(const frag_workload *workload, frag_error *error)
{
    const frag_network *of = &workload->network;
    uint64_t there = frag_families[of->is_fused ? FRAG_FAMILY_PHI3 : of->family].lora_targets;
    if (of->family == FRAG_FAMILY_PHI3 && !of->is_fused)
        there = frag_families[FRAG_FAMILY_LLAMA].lora_targets;
    if (workload->lora_rank > 0 && there == 0)
        return frag_fail(error, FRAG_E_INPUT,
                         "lora_rank is %" PRIu64 "; adapters of %s are not described",
                         workload->lora_rank, frag_families[of->family].name);
    /* There peft makes adapters of the experts as well. */
    uint64_t targets = frag_workload_lora_targets(workload);
    if (of->experts > 0 && workload->lora_rank > 0 && (targets == 0 || (targets & ~there) != 0))
        return frag_fail(error, FRAG_E_INPUT,
                         "lora_targets %s, and adapters of experts are not described; expected "
                         "some of %s",
                         targets == 0 ? "is left out" : "names other layers than attention's",
                         of->key_rank > 0 ? "q_proj and o_proj"
                                          : "q_proj, k_proj, v_proj and o_proj");
    /* Of diffusers, embeddings would have adapters too. */
    bool is_diffusion = frag_families[of->family].is_diffusion;
    bool is_refused = is_diffusion && (targets & FRAG_LORA_ALL) != 0;
    if (workload->lora_rank == 0 || (!is_refused && (targets & (there | FRAG_LORA_ALL)) != 0))
        return true;
    frag_text names = {0};
    frag_workload_name_targets(there, "", &names);
    frag_fail(error, FRAG_E_INPUT, "lora_targets %s; expected some of %s%s",
              is_refused ? "is all-linear, which is not described for diffusion"
                         : "names no layer of the network",
              names.bytes, is_diffusion ? "" : " and all-linear");
    frag_text_destroy(&names);
    return false;
}

/* tokens: with those that generation adds. */
static bool check_length(const frag_network *of, uint64_t tokens, frag_error *error)
{
    uint64_t taken = of->counts_positions ? 2 : 0;
    if (frag_families[of->family].has_learnt_positions && tokens + taken > of->positions)
        return frag_fail(error, FRAG_E_INPUT,
                         "tokens is %" PRIu64 "; the model has positions for %" PRIu64, tokens,
                         of->positions > taken ? of->positions - taken : 0);
    return true;
}

static bool has_cache(const frag_workload *workload)
{
    return workload->task == FRAG_TASK_GENERATE || workload->task == FRAG_TASK_SERVE ||
           workload->task == FRAG_TASK_RLHF;
}

/* From there on a mask is made. A cache that keeps one token less than the window keeps, of a
 * window of one, all. */
static bool check_window(const frag_workload *workload, uint64_t tokens, frag_error *error)
{
    const frag_network *of = &workload->network;
    if (of->window == 0 || of->full_layers >= of->layers || tokens < of->window)
        return true;
    return of->window > 1 || (tokens > 1 && !has_cache(workload)) ||
           frag_fail(error, FRAG_E_INPUT,
                     "window is 1, which is not described for one token and for generation, whose "
                     "cache forgets nothing then; expected 0, or at least 2");
}

/* Knobs of experts, where there are none, or where nothing hangs on them. */
static bool check_experts(const frag_workload *workload, frag_error *error)
{
    const frag_network *of = &workload->network;
    const frag_lengths *shares = &workload->expert_shares;
    bool is_eager = workload->experts_implementation == FRAG_EXPERTS_EAGER;
    bool is_even = shares->count == 1 && shares->values[0] == 1;
    if (is_eager && of->experts == 0)
        return frag_fail(error, FRAG_E_INPUT,
                         "experts_implementation is eager, and the model has no experts; expected "
                         "it with families such as mixtral");
    if (is_eager && of->has_clipped_experts)
        return frag_fail(error, FRAG_E_INPUT,
                         "experts_implementation is eager, which is not described for %s; expected "
                         "grouped_mm",
                         frag_families[of->family].name);
    if (!is_even && !is_eager)
        return frag_fail(error, FRAG_E_INPUT,
                         "expert_shares is given, on which nothing hangs when all experts are in "
                         "one product; expected experts_implementation eager");
    return true;
}

/* Knobs that say nothing without another one. */
static bool check_dependent(const frag_workload *workload, frag_error *error)
{
    const frag_network *of = &workload->network;
    if (workload->task == FRAG_TASK_GENERATE && frag_families[of->family].has_patches &&
        of->out_channels > 0 && of->out_channels != of->image_channels)
        return frag_fail(error, FRAG_E_INPUT,
                         "task is generate, which is described where out_channels are "
                         "image_channels; expected train or evaluate");
    const frag_family_fields *family = &frag_families[workload->network.family];
    if (workload->has_dora && workload->lora_rank == 0)
        return frag_fail(
            error, FRAG_E_INPUT,
            "lora_dora is true, and there are no adapters; expected lora_rank with it");
    bool has_no_dora = family->is_diffusion || workload->network.family == FRAG_FAMILY_FALCON ||
                       workload->network.has_shared_gate;
    if (workload->has_dora && has_no_dora)
        return frag_fail(error, FRAG_E_INPUT, "lora_dora is true, which is not described for %s",
                         family->name);
    if (!family->has_samples && has_lengths(&workload->lookups, "lookups"))
        return frag_fail(error, FRAG_E_INPUT,
                         "lookups is given, and the model has no tables; expected it with dlrm");
    if (!family->has_graphs &&
        (has_lengths(&workload->nodes, "nodes") || has_lengths(&workload->edges, "edges")))
        return frag_fail(error, FRAG_E_INPUT,
                         "nodes or edges is given, and the model reads no graph; expected it with "
                         "graphsage or gcn");
    if (workload->target_tokens > 0 && !family->has_pairs)
        return frag_fail(error, FRAG_E_INPUT,
                         "target_tokens is %" PRIu64
                         ", and the model has one sequence; expected it with bart or t5",
                         workload->target_tokens);
    return true;
}

/* Where the loss comes in chunks: it is the program's own, over a decoder's hidden states. */
static bool check_chunks(const frag_workload *workload, frag_error *error)
{
    const frag_network *of = &workload->network;
    const frag_family_fields *family = &frag_families[of->family];
    if (workload->loss != FRAG_LOSS_CHUNKED)
        return workload->loss_chunk == FRAG_LOSS_CHUNK_INITIAL ||
               frag_fail(error, FRAG_E_INPUT,
                         "loss_chunk is %" PRIu64 "; expected loss chunked with it",
                         workload->loss_chunk);
    if (!has_loss(workload) || workload->head != FRAG_HEAD_LM || family->is_encoder ||
        family->has_pairs || family->has_images || of->logit_cap > 0 || of->has_logit_scale ||
        of->has_scales)
        return frag_fail(error, FRAG_E_INPUT,
                         "loss is chunked, which is described for decoders without a logit_cap, "
                         "logit_scale or scales, in task train and evaluate");
    if (workload->keeps_outputs || workload->leak == FRAG_LEAK_OUTPUTS ||
        workload->leak == FRAG_LEAK_CYCLES)
        return frag_fail(error, FRAG_E_INPUT,
                         "loss is chunked; expected no keep_outputs or leak of outputs, as there "
                         "are no logits to keep");
    return true;
}

/* A head for classes, and what cannot be done with it. */
static bool check_head(const frag_workload *workload, frag_error *error)
{
    const frag_family_fields *family = &frag_families[workload->network.family];
    const uint64_t head = workload->head;
    if (head == FRAG_HEAD_LM)
        return true;
    if (!frag_family_has_head(family, head))
        return frag_fail(
            error, FRAG_E_INPUT,
            "head is for classes, and %s has none that is described; expected lm%s", family->name,
            frag_family_has_head(family, FRAG_HEAD_SEQUENCE) ? " or sequence-classification" : "");
    if (!has_loss(workload))
        return frag_fail(error, FRAG_E_INPUT,
                         "head is for classes, and the task adds words; expected task train or "
                         "evaluate, or head lm");
    if (head == FRAG_HEAD_ANSWER && workload->labels != FRAG_LABELS_INITIAL)
        return frag_fail(error, FRAG_E_INPUT,
                         "labels is %" PRIu64 " and head question-answering; expected 2, for where "
                         "an answer begins and ends",
                         workload->labels);
    bool is_all = (frag_workload_lora_targets(workload) & FRAG_LORA_ALL) != 0;
    bool is_hit = head != FRAG_HEAD_SEQUENCE || workload->network.family == FRAG_FAMILY_DISTILBERT;
    if (workload->lora_rank > 0 && is_all && is_hit)
        return frag_fail(error, FRAG_E_INPUT,
                         "lora_targets is all-linear, with which peft fails here: it would adapt a "
                         "layer of the head and train a copy of it; expected layers by name");
    if (workload->lora_rank > 0 && workload->quantize != FRAG_QUANTIZE_NONE && family->is_encoder)
        return frag_fail(error, FRAG_E_INPUT,
                         "quantize is given beside lora_rank and a head for classes, with which "
                         "peft fails for %s: transformers quantises the head too, of which a copy "
                         "would be trained; expected quantize none, or head lm",
                         family->name);
    return head != FRAG_HEAD_ANSWER || workload->leak != FRAG_LEAK_OUTPUTS ||
           frag_fail(error, FRAG_E_INPUT,
                     "leak is outputs and head question-answering, which has two kinds of logits; "
                     "expected keep_outputs, or another head");
}

/* What the program does with names and activations of a pass. */
static bool check_names(const frag_workload *workload, frag_error *error)
{
    const frag_network *of = &workload->network;
    const frag_family_fields *family = &frag_families[of->family];
    bool has_cycles = workload->leak == FRAG_LEAK_CYCLES;
    bool has_all = workload->keeps_outputs || has_cycles;
    bool has_logits = has_all || workload->leak == FRAG_LEAK_OUTPUTS;
    if (workload->collect > 0 && !has_cycles)
        return frag_fail(error, FRAG_E_INPUT,
                         "collect is %" PRIu64 ", and there are no cycles; expected leak cycles",
                         workload->collect);
    bool is_named =
        workload->keeps_outputs || workload->is_deleting || workload->leak != FRAG_LEAK_NONE;
    if (is_named && !has_loss(workload))
        return frag_fail(error, FRAG_E_INPUT,
                         "leak, keep_outputs or del is given, and the task has no loss; expected "
                         "train or evaluate");
    if (has_logits &&
        (family->is_diffusion || (has_all && (family->has_pairs || family->has_sounds))))
        return frag_fail(error, FRAG_E_INPUT, "%s, which is not described for %s",
                         workload->keeps_outputs ? "keep_outputs is true"
                         : has_cycles            ? "leak is cycles"
                                                 : "leak is outputs",
                         family->name);
    if (workload->is_inplace && (of->family != FRAG_FAMILY_RESNET || of->activation != FRAG_RELU))
        return frag_fail(error, FRAG_E_INPUT,
                         "inplace is true; expected a resnet with activation relu");
    return true;
}

/* What goes with a server, and what is said of one only. */
static bool check_server(const frag_workload *workload, frag_error *error)
{
    const frag_network *of = &workload->network;
    bool is_paged = workload->cache == FRAG_CACHE_PAGED;
    if (workload->task != FRAG_TASK_SERVE) {
        bool has_any = workload->arrivals.count > 0 || workload->arrival_rate > 0 || is_paged ||
                       frag_lengths_largest(&workload->answer_tokens) > 0 ||
                       workload->cache_tokens > 0;
        return !has_any ||
               frag_fail(
                   error, FRAG_E_INPUT,
                   "arrivals, arrival_rate, answer_tokens or a paged cache is given; expected "
                   "task serve with it");
    }
    if (frag_families[of->family].is_diffusion || frag_workload_has_autocast(workload))
        return frag_fail(error, FRAG_E_INPUT,
                         "task is serve, which is described for decoders without autocast; "
                         "expected precision fp32, tf32, bf16 or fp16");
    if (workload->arrival_rate > 0 && workload->arrival_rate < ARRIVAL_RATE_MIN)
        return frag_fail(error, FRAG_E_INPUT, "arrival_rate is %g; expected 0, or at least %g",
                         workload->arrival_rate, ARRIVAL_RATE_MIN);
    if (workload->arrivals.is_range)
        return frag_fail(error, FRAG_E_INPUT,
                         "arrivals is a range; expected the step of each request, or arrival_rate");
    for (uint32_t i = 1; i < workload->arrivals.count; i++)
        if (workload->arrivals.values[i] < workload->arrivals.values[i - 1])
            return frag_fail(error, FRAG_E_INPUT,
                             "arrivals has %" PRIu64 " behind %" PRIu64
                             "; expected steps one after the other",
                             workload->arrivals.values[i], workload->arrivals.values[i - 1]);
    if (is_paged && of->window > 0)
        return frag_fail(error, FRAG_E_INPUT,
                         "cache is paged, which is not described with a window; expected window 0");
    if (is_paged && (of->key_rank > 0 || of->has_copied_keys))
        return frag_fail(error, FRAG_E_INPUT,
                         "cache is paged, which is not described for %s; expected contiguous",
                         frag_families[of->family].name);
    uint64_t longest = frag_lengths_largest(&workload->tokens) + find_answer(workload);
    uint64_t least = frag_round_up(longest, workload->cache_block);
    if (is_paged && workload->cache_tokens > 0 && workload->cache_tokens < least)
        return frag_fail(error, FRAG_E_INPUT,
                         "cache_tokens is %" PRIu64 "; expected at least %" PRIu64
                         ", of the longest sequence",
                         workload->cache_tokens, least);
    return true;
}

/* What goes with answers that are learnt from, and what is said of them only. */
static bool check_rlhf(const frag_workload *workload, frag_error *error)
{
    if (workload->task != FRAG_TASK_RLHF)
        return (workload->has_reference && !workload->has_reward) ||
               frag_fail(error, FRAG_E_INPUT,
                         "reference false or reward_model is given; expected task rlhf with it");
    if (frag_families[workload->network.family].is_diffusion ||
        workload->experts_implementation == FRAG_EXPERTS_EAGER)
        return frag_fail(error, FRAG_E_INPUT,
                         "task is rlhf, which is described for decoders of text, and for experts "
                         "in one product");
    if (workload->leak != FRAG_LEAK_NONE || workload->loss != FRAG_LOSS_FULL ||
        workload->keeps_outputs || workload->is_deleting)
        return frag_fail(error, FRAG_E_INPUT,
                         "task is rlhf, beside which leak, loss chunked, keep_outputs and del are "
                         "not described; expected none of them");
    return true;
}

bool frag_workload_check(const frag_workload *workload, frag_error *error)
{
    if (!check_float8(workload, error) || !check_experts(workload, error) ||
        !check_rlhf(workload, error) || !check_dependent(workload, error) ||
        !check_chunks(workload, error) || !check_head(workload, error) ||
        !check_names(workload, error) || !frag_workload_check_memory(workload, error) ||
        !frag_workload_check_attention(workload, error))
        return false;
    const frag_network *of = &workload->network;
    const frag_lengths *tokens = &workload->tokens;
    const char *task = workload->task == FRAG_TASK_SERVE      ? "serve"
                       : workload->task == FRAG_TASK_GENERATE ? "generate"
                                                              : "rlhf";
    bool is_answering = workload->task == FRAG_TASK_RLHF;
    bool is_generating =
        workload->task == FRAG_TASK_GENERATE || workload->task == FRAG_TASK_SERVE || is_answering;
    if (!frag_workload_check_parallel(workload, error))
        return false;
    /* The last token of an answer is read only to learn from it. */
    uint64_t added = is_generating ? find_answer(workload) - !is_answering : 0;
    if (is_generating && frag_families[of->family].is_encoder)
        return frag_fail(error, FRAG_E_INPUT,
                         "task is %s, and %s is no decoder; expected train or evaluate", task,
                         frag_families[of->family].name);
    if (is_generating && !workload->has_no_grad)
        return frag_fail(error, FRAG_E_INPUT,
                         "task is %s, which answers without gradients; expected no_grad true",
                         task);
    if (!check_server(workload, error))
        return false;
    if (frag_families[of->family].has_images)
        return check_images(workload, error) && check_optimizer(workload, error) &&
               check_adapters(workload, error) && check_size(workload, error);
    if (frag_families[of->family].has_samples || frag_families[of->family].has_graphs)
        return check_samples(workload, error) && check_tokenless(workload, error) &&
               check_optimizer(workload, error) && check_size(workload, error);
    for (uint32_t i = 0; i < tokens->count; i++)
        if (!check_length(of, tokens->values[i] + added, error) ||
            !check_window(workload, tokens->values[i] + added, error))
            return false;
    if (workload->target_tokens > 0 && !check_length(of, workload->target_tokens, error))
        return false;
    return check_transformer(of, error) && check_optimizer(workload, error) &&
           check_adapters(workload, error) && check_quantized(workload, error) &&
           check_size(workload, error);
}
