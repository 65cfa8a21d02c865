#include "studies/plan/fix_table.h"

#include <inttypes.h>
#include <string.h>

#include "studies/plan/fix_offload.h"

enum { CAPABILITY_BF16 = 80, TOKENS_MIN = 32, HALVINGS_MAX = 24, PARTS_MAX = 256 };

const char *frag_fix_price_name(frag_fix_price price)
{
    static const char *const names[FRAG_FIX_PRICE_COUNT] = {"free", "time", "numerics", "training"};
    return names[price];
}

const char *frag_fix_place_name(frag_fix_place place)
{
    static const char *const names[FRAG_FIX_PLACE_COUNT] = {"environment", "transformers", "torch"};
    return names[place];
}

static bool is_training(const frag_fix_base *base)
{
    uint64_t task = base->setting.workload.task;
    return task == FRAG_TASK_TRAIN || task == FRAG_TASK_RLHF;
}

static bool is_adam(const frag_workload *workload)
{
    return workload->optimizer == FRAG_OPTIMIZER_ADAMW ||
           workload->optimizer == FRAG_OPTIMIZER_ADAM;
}

/* Has it weights in fp32, and no autocast? */
static bool is_wide(const frag_workload *workload)
{
    return workload->precision == FRAG_PRECISION_FP32 || workload->precision == FRAG_PRECISION_TF32;
}

/* ---- expandable segments */
static uint32_t count_expandable(const frag_fix_base *base)
{
    bool is_named = base->conf != NULL && strstr(base->conf, "expandable_segments") != NULL;
    return is_named || base->setting.is_expandable ? 0 : 1;
}

static void apply_expandable(const frag_fix_base *base, uint32_t level, frag_fit_setting *setting)
{
    (void)base;
    (void)level;
    setting->is_expandable = true;
}

static void line_expandable(const frag_fix_base *base, const frag_fit_setting *setting,
                            frag_fix_place place, frag_text *text)
{
    (void)setting;
    bool has_conf = base->conf != NULL && base->conf[0] != '\0';
    if (place == FRAG_FIX_ENVIRONMENT)
        frag_text_add(text, "PYTORCH_CUDA_ALLOC_CONF=%s%sexpandable_segments:True",
                      has_conf ? base->conf : "", has_conf ? "," : "");
}

/* ---- what one knob does: gradients given back, no_grad, the optimizer's loop */
static uint32_t count_set_to_none(const frag_fix_base *base)
{
    return is_training(base) && base->setting.workload.keeps_gradients;
}

static uint32_t count_no_grad(const frag_fix_base *base)
{
    return !is_training(base) && !base->setting.workload.has_no_grad;
}

static uint32_t count_fused(const frag_fix_base *base)
{
    const frag_workload *workload = &base->setting.workload;
    return is_training(base) && is_adam(workload) && workload->optimizer_loop != FRAG_LOOP_FUSED;
}

static uint32_t count_reshard(const frag_fix_base *base)
{
    return !base->setting.workload.is_resharded;
}

static uint32_t count_sdpa(const frag_fix_base *base)
{
    uint64_t attention = base->setting.workload.attention;
    return attention == FRAG_ATTENTION_EAGER || attention == FRAG_ATTENTION_MATH;
}

static void line_sdpa(const frag_fix_base *base, const frag_fit_setting *setting,
                      frag_fix_place place, frag_text *text)
{
    (void)setting;
    bool is_eager = base->setting.workload.attention == FRAG_ATTENTION_EAGER;
    if (place == FRAG_FIX_TORCH)
        frag_text_add(text, "%s",
                      is_eager ? "from_pretrained(..., attn_implementation=\"sdpa\")"
                               : "no sdpa_kernel(SDPBackend.MATH)");
}

/* ---- states, or gradients and weights too, of which each device has a part */
static bool takes_parallel(const frag_fix_base *base, uint64_t parallel)
{
    frag_workload workload = base->setting.workload;
    workload.parallel = parallel;
    return frag_workload_check(&workload, NULL);
}

static uint32_t count_zero1(const frag_fix_base *base)
{
    const frag_workload *workload = &base->setting.workload;
    return workload->parallel == FRAG_PARALLEL_DDP && workload->optimizer != FRAG_OPTIMIZER_SGD &&
           takes_parallel(base, FRAG_PARALLEL_ZERO1);
}

static uint32_t count_fsdp(const frag_fix_base *base)
{
    uint64_t parallel = base->setting.workload.parallel;
    return (parallel == FRAG_PARALLEL_DDP || parallel == FRAG_PARALLEL_ZERO1) &&
           takes_parallel(base, FRAG_PARALLEL_FSDP);
}

static void describe_parallel(const frag_fit_setting *setting, frag_text *text)
{
    frag_text_add(text, "%s",
                  setting->workload.parallel == FRAG_PARALLEL_FSDP ? "fully_shard"
                                                                   : "ZeroRedundancyOptimizer");
}

static void line_zero1(const frag_fix_base *base, const frag_fit_setting *setting,
                       frag_fix_place place, frag_text *text)
{
    (void)base;
    const frag_workload *workload = &setting->workload;
    if (place == FRAG_FIX_TORCH && workload->parallel == FRAG_PARALLEL_ZERO1)
        frag_text_add(text,
                      "torch.distributed.optim.ZeroRedundancyOptimizer("
                      "[p for p in model.parameters() if p.requires_grad], %s%s)",
                      frag_fix_optimizer_class(workload),
                      workload->optimizer_loop == FRAG_LOOP_FUSED ? ", fused=True" : "");
}

static void describe_loop(const frag_fit_setting *setting, frag_text *text)
{
    frag_text_add(text, "%s",
                  setting->workload.optimizer_loop == FRAG_LOOP_FUSED ? "fused=True"
                                                                      : "foreach=False");
}

static void line_checkpoint(const frag_fix_base *base, const frag_fit_setting *setting,
                            frag_fix_place place, frag_text *text)
{
    (void)base;
    if (frag_families[setting->workload.network.family].is_diffusion) { /* of diffusers */
        if (place == FRAG_FIX_TORCH)
            frag_text_add(text, "model.enable_gradient_checkpointing()");
    } else if (place == FRAG_FIX_TRANSFORMERS)
        frag_text_add(text, "gradient_checkpointing=True, "
                            "gradient_checkpointing_kwargs={\"use_reentrant\": False}");
    else if (place == FRAG_FIX_TORCH)
        frag_text_add(text, "model.gradient_checkpointing_enable("
                            "gradient_checkpointing_kwargs={\"use_reentrant\": False})");
}

static const char *class_name(const frag_workload *workload)
{
    return workload->optimizer == FRAG_OPTIMIZER_ADAM ? "Adam" : "AdamW";
}

static void line_fused(const frag_fix_base *base, const frag_fit_setting *setting,
                       frag_fix_place place, frag_text *text)
{
    (void)base;
    const frag_workload *workload = &setting->workload;
    if (workload->optimizer_loop != FRAG_LOOP_FUSED || !is_adam(workload))
        return;
    if (place == FRAG_FIX_TRANSFORMERS && workload->optimizer == FRAG_OPTIMIZER_ADAMW)
        frag_text_add(text, "optim=\"adamw_torch_fused\"");
    else if (place == FRAG_FIX_TORCH)
        frag_text_add(text, "torch.optim.%s(model.parameters(), fused=True)", class_name(workload));
}

/* ---- accumulation: into 2 parts or more, each time at least twice as many, as far as a person
 * would: a batch that has no such divisor is not divided. */
static uint64_t next_divisor(uint64_t batch, uint64_t parts)
{
    uint64_t next = 2 * parts;
    while (next < batch && batch % next != 0)
        next++;
    return next < batch ? next : batch;
}

static uint32_t count_divisors(uint64_t batch)
{
    uint32_t count = 0;
    uint64_t parts = 1;
    while (parts < batch && (parts = next_divisor(batch, parts)) <= PARTS_MAX)
        count++;
    return count;
}

static uint64_t find_divisor(uint64_t batch, uint32_t level)
{
    uint64_t parts = 1;
    for (; level > 0; level--)
        parts = next_divisor(batch, parts);
    return parts;
}

/* Of a graph the batch says what is learned, not what is read. */
static bool is_batch_read(const frag_workload *workload)
{
    return !frag_families[workload->network.family].has_graphs;
}

static uint32_t count_accumulate(const frag_fix_base *base)
{
    const frag_workload *workload = &base->setting.workload;
    bool is_possible = is_training(base) && is_batch_read(workload) && !workload->network.is_sparse;
    return is_possible ? count_divisors(workload->batch) : 0;
}

static void apply_accumulate(const frag_fix_base *base, uint32_t level, frag_fit_setting *setting)
{
    uint64_t parts = find_divisor(base->setting.workload.batch, level);
    setting->workload.batch /= parts;
    setting->workload.accumulate *= parts;
}

static void describe_accumulate(const frag_fit_setting *setting, frag_text *text)
{
    frag_text_add(text, "batch %" PRIu64 ", %" PRIu64 " accumulated", setting->workload.batch,
                  setting->workload.accumulate);
}

/* transformers multiplies by the devices of DataParallel, too. */
static uint64_t batch_of_device(const frag_workload *workload)
{
    bool is_shared = workload->parallel == FRAG_PARALLEL_DATA;
    return workload->batch / (is_shared ? workload->devices : 1);
}

static void line_accumulate(const frag_fix_base *base, const frag_fit_setting *setting,
                            frag_fix_place place, frag_text *text)
{
    (void)base;
    const frag_workload *workload = &setting->workload;
    if (place == FRAG_FIX_TRANSFORMERS)
        frag_text_add(
            text, "per_device_train_batch_size=%" PRIu64 ", gradient_accumulation_steps=%" PRIu64,
            batch_of_device(workload), workload->accumulate);
    else if (place == FRAG_FIX_TORCH)
        frag_text_add(text,
                      "(loss / %" PRIu64 ").backward()  # optimizer.step() after %" PRIu64
                      " batches of %" PRIu64,
                      workload->accumulate, workload->accumulate, workload->batch);
}

/* ---- precision; half of what there is on cards before Ampere is fp16 */
static uint32_t count_amp(const frag_fix_base *base)
{
    const frag_workload *workload = &base->setting.workload;
    bool is_sparse = workload->network.is_sparse && base->card.capability < CAPABILITY_BF16;
    return base->card.capability >= 70 && is_wide(workload) && !is_sparse;
}

/* FSDP casts what it gathers. */
static void apply_amp(const frag_fix_base *base, uint32_t level, frag_fit_setting *setting)
{
    (void)level;
    bool is_sharded = setting->workload.parallel == FRAG_PARALLEL_FSDP;
    setting->workload.precision = base->card.capability < CAPABILITY_BF16 ? FRAG_PRECISION_AMP_FP16
                                  : is_sharded ? FRAG_PRECISION_MIXED_BF16
                                               : FRAG_PRECISION_AMP_BF16;
}

static void describe_precision(const frag_fit_setting *setting, frag_text *text)
{
    frag_text_add(text, "%s",
                  setting->workload.precision == FRAG_PRECISION_AMP_BF16     ? "autocast to bf16"
                  : setting->workload.precision == FRAG_PRECISION_MIXED_BF16 ? "bf16 as gathered"
                  : setting->workload.precision == FRAG_PRECISION_AMP_FP16   ? "autocast to fp16"
                                                                             : "weights in bf16");
}

static void line_amp(const frag_fix_base *base, const frag_fit_setting *setting,
                     frag_fix_place place, frag_text *text)
{
    bool is_bf16 = base->card.capability >= CAPABILITY_BF16;
    bool is_sharded = setting->workload.precision == FRAG_PRECISION_MIXED_BF16;
    if (is_sharded && place == FRAG_FIX_TORCH)
        frag_text_add(text, "fully_shard(..., mp_policy=MixedPrecisionPolicy("
                            "param_dtype=torch.bfloat16, reduce_dtype=torch.float32))");
    else if (is_sharded)
        return;
    else if (place == FRAG_FIX_TRANSFORMERS)
        frag_text_add(text, "%s=True", is_bf16 ? "bf16" : "fp16");
    else if (place == FRAG_FIX_TORCH)
        frag_text_add(text, "with torch.autocast(\"cuda\", dtype=torch.%s):",
                      is_bf16 ? "bfloat16" : "float16");
}

static uint32_t count_bf16(const frag_fix_base *base)
{
    return base->card.capability >= CAPABILITY_BF16 &&
           base->setting.workload.quantize == FRAG_QUANTIZE_NONE &&
           base->setting.workload.precision != FRAG_PRECISION_BF16 &&
           base->setting.workload.precision != FRAG_PRECISION_FP16 &&
           base->setting.workload.precision != FRAG_PRECISION_FP8;
}

/* ---- the loss in chunks of 1024 tokens, or of 256 */
enum { CHUNK_LEVELS = 2 };

static uint64_t find_chunk(uint32_t level)
{
    return FRAG_LOSS_CHUNK_INITIAL >> (2 * (level - 1));
}

static uint32_t count_chunked(const frag_fix_base *base)
{
    frag_workload workload = base->setting.workload;
    bool is_full = workload.loss == FRAG_LOSS_FULL;
    workload.loss = FRAG_LOSS_CHUNKED;
    return is_full && frag_workload_check(&workload, NULL) ? CHUNK_LEVELS : 0;
}

static void apply_chunked(const frag_fix_base *base, uint32_t level, frag_fit_setting *setting)
{
    (void)base;
    setting->workload.loss = FRAG_LOSS_CHUNKED;
    setting->workload.loss_chunk = find_chunk(level);
}

static void describe_chunked(const frag_fit_setting *setting, frag_text *text)
{
    frag_text_add(text, "logits of %" PRIu64 " tokens", setting->workload.loss_chunk);
}

static void line_chunked(const frag_fix_base *base, const frag_fit_setting *setting,
                         frag_fix_place place, frag_text *text)
{
    (void)base;
    const frag_workload *workload = &setting->workload;
    if (place != FRAG_FIX_TORCH)
        return;
    const char *core = workload->lora_rank > 0 ? "model.get_base_model()" : "model";
    frag_text_add(text,
                  "from torch.nn.functional import cross_entropy, pad\n"
                  "from torch.utils.checkpoint import checkpoint\n"
                  "core = %s\n"
                  "def loss_part(hidden, labels):\n"
                  "    logits = core.get_output_embeddings()(hidden).float()\n"
                  "    return cross_entropy(logits, labels, reduction=\"sum\")\n"
                  "def chunked_loss(ids):\n"
                  "    hidden = core.base_model(input_ids=ids).last_hidden_state.flatten(0, 1)\n"
                  "    labels = pad(ids, (0, 1), value=-100)[:, 1:].flatten()\n"
                  "    parts = zip(hidden.split(%" PRIu64 "), labels.split(%" PRIu64 "))\n"
                  "    losses = (checkpoint(loss_part, *part, use_reentrant=False) "
                  "for part in parts)\n"
                  "    return sum(losses) / (labels != -100).sum()\n"
                  "loss = chunked_loss(ids)  # in place of model(input_ids=ids, labels=ids).loss",
                  core, workload->loss_chunk, workload->loss_chunk);
}

/* ---- checkpointing */
static uint32_t count_checkpoint(const frag_fix_base *base)
{
    const frag_workload *workload = &base->setting.workload;
    return is_training(base) && workload->checkpoint == FRAG_CHECKPOINT_NONE &&
           !frag_families[workload->network.family].has_no_blocks;
}

/* ---- LoRA */
enum { LORA_RANK = 16 };

/* Beside the layers that peft takes where none are named, or else beside all, or all by name. */
static bool add_adapters(frag_workload *workload)
{
    workload->lora_rank = LORA_RANK;
    if (frag_workload_check(workload, NULL))
        return true;
    /* Of a mixture of experts attention alone. */
    uint64_t there = frag_families[workload->network.family].lora_targets;
    workload->lora_targets = workload->network.experts > 0 ? there : FRAG_LORA_ALL;
    if (frag_workload_check(workload, NULL))
        return true;
    workload->lora_targets = there;
    return frag_workload_check(workload, NULL);
}

static uint32_t count_lora(const frag_fix_base *base)
{
    frag_workload workload = base->setting.workload;
    return is_training(base) && workload.lora_rank == 0 && add_adapters(&workload);
}

static void apply_lora(const frag_fix_base *base, uint32_t level, frag_fit_setting *setting)
{
    (void)base;
    (void)level;
    add_adapters(&setting->workload);
}

static void describe_lora(const frag_fit_setting *setting, frag_text *text)
{
    frag_text_add(text, "adapters of rank %" PRIu64, setting->workload.lora_rank);
}

/* The layers, as their names: "all-linear", or a list. */
static void add_targets(uint64_t targets, frag_text *text)
{
    if (targets == FRAG_LORA_ALL) {
        frag_text_add(text, ", target_modules=\"all-linear\"");
    } else if (targets != 0) {
        frag_text_add(text, ", target_modules=[");
        frag_workload_name_targets(targets, "\"", text);
        frag_text_add(text, "]");
    }
}

static void add_lora_config(const frag_workload *workload, frag_text *text)
{
    static const char *const ends[FRAG_HEAD_COUNT] = {
        [FRAG_HEAD_LM] = "",
        [FRAG_HEAD_SEQUENCE] = ", task_type=\"SEQ_CLS\"",
        [FRAG_HEAD_TOKEN] = ", task_type=\"TOKEN_CLS\"",
        [FRAG_HEAD_ANSWER] = ", task_type=\"QUESTION_ANS\""};
    bool is_saved = workload->network.family == FRAG_FAMILY_VIT;
    bool has_default = !frag_families[workload->network.family].is_diffusion; /* in peft */
    frag_text_add(text, "LoraConfig(r=%" PRIu64, workload->lora_rank);
    add_targets(has_default ? workload->lora_targets : frag_workload_lora_targets(workload), text);
    frag_text_add(text, "%s)",
                  is_saved ? ", modules_to_save=[\"classifier\"]" : ends[workload->head]);
}

static void line_lora(const frag_fix_base *base, const frag_fit_setting *setting,
                      frag_fix_place place, frag_text *text)
{
    (void)base;
    if (place != FRAG_FIX_TORCH)
        return;
    frag_text_add(text, "peft.get_peft_model(model, ");
    add_lora_config(&setting->workload, text);
    frag_text_add(text, ")");
}

/* ---- weights of 4 bits: in training beside adapters and under autocast, as QLoRA has it */
static bool quantise(const frag_fix_base *base, frag_workload *workload)
{
    bool has_bf16 = base->card.capability >= CAPABILITY_BF16;
    workload->quantize = FRAG_QUANTIZE_NF4_DOUBLE;
    if (is_training(base) || workload->lora_rank > 0)
        workload->precision = has_bf16 ? FRAG_PRECISION_AMP_BF16 : FRAG_PRECISION_AMP_FP16;
    else if (workload->precision != FRAG_PRECISION_FP16)
        workload->precision = has_bf16 ? FRAG_PRECISION_BF16 : FRAG_PRECISION_FP16;
    return is_training(base) && workload->lora_rank == 0 ? add_adapters(workload)
                                                         : frag_workload_check(workload, NULL);
}

static uint32_t count_quantise(const frag_fix_base *base)
{
    frag_workload workload = base->setting.workload;
    return workload.quantize == FRAG_QUANTIZE_NONE && quantise(base, &workload);
}

static void apply_quantise(const frag_fix_base *base, uint32_t level, frag_fit_setting *setting)
{
    (void)level;
    quantise(base, &setting->workload);
}

static void describe_quantise(const frag_fit_setting *setting, frag_text *text)
{
    frag_text_add(text, "%s", setting->workload.lora_rank > 0 ? "NF4, with LoRA" : "NF4");
}

static void line_quantise(const frag_fix_base *base, const frag_fit_setting *setting,
                          frag_fix_place place, frag_text *text)
{
    bool has_bf16 = base->card.capability >= CAPABILITY_BF16;
    bool has_autocast = frag_workload_has_autocast(&setting->workload) &&
                        !frag_workload_has_autocast(&base->setting.workload);
    const char *half = has_bf16 ? "bfloat16" : "float16";
    if (place == FRAG_FIX_TRANSFORMERS)
        frag_text_add(text,
                      "from_pretrained(..., quantization_config=BitsAndBytesConfig("
                      "load_in_4bit=True, bnb_4bit_quant_type=\"nf4\", "
                      "bnb_4bit_use_double_quant=True, bnb_4bit_compute_dtype=torch.%s))%s",
                      half,
                      !has_autocast ? ""
                      : has_bf16    ? "; bf16=True"
                                    : "; fp16=True");
    if (place != FRAG_FIX_TORCH || setting->workload.lora_rank == 0)
        return;
    /* It would switch checkpoints on. */
    bool has_checkpoints = setting->workload.checkpoint != FRAG_CHECKPOINT_NONE &&
                           !frag_families[setting->workload.network.family].is_diffusion;
    frag_text_add(text, "peft.get_peft_model(peft.prepare_model_for_kbit_training(model, %s), ",
                  has_checkpoints ? "gradient_checkpointing_kwargs={\"use_reentrant\": False}"
                                  : "use_gradient_checkpointing=False");
    add_lora_config(&setting->workload, text);
    frag_text_add(text, ")");
    if (has_autocast)
        frag_text_add(text, "\nwith torch.autocast(\"cuda\", dtype=torch.%s):", half);
}

/* ---- other optimizers */
static uint32_t count_8bit(const frag_fix_base *base)
{
    const frag_workload *workload = &base->setting.workload;
    return is_training(base) && is_adam(workload) && !workload->has_amsgrad;
}

static void line_8bit(const frag_fix_base *base, const frag_fit_setting *setting,
                      frag_fix_place place, frag_text *text)
{
    (void)base;
    if (setting->workload.optimizer != FRAG_OPTIMIZER_ADAMW_8BIT)
        return;
    if (place == FRAG_FIX_TRANSFORMERS)
        frag_text_add(text, "optim=\"adamw_bnb_8bit\"");
    else if (place == FRAG_FIX_TORCH)
        frag_text_add(text, "bitsandbytes.optim.AdamW8bit(model.parameters())");
}

static uint32_t count_galore(const frag_fix_base *base)
{
    frag_workload workload = base->setting.workload;
    bool is_possible = is_training(base) && is_adam(&workload) && !workload.has_amsgrad;
    workload.optimizer = FRAG_OPTIMIZER_GALORE_ADAMW;
    workload.optimizer_loop = FRAG_LOOP_FOREACH;
    return is_possible && frag_workload_check(&workload, NULL);
}

static void line_galore(const frag_fix_base *base, const frag_fit_setting *setting,
                        frag_fix_place place, frag_text *text)
{
    (void)base;
    if (setting->workload.optimizer != FRAG_OPTIMIZER_GALORE_ADAMW)
        return;
    if (place == FRAG_FIX_TRANSFORMERS)
        frag_text_add(text, "optim=\"galore_adamw\", optim_target_modules=[r\".*\\.layers\\..*\"]");
    else if (place == FRAG_FIX_TORCH)
        frag_text_add(text,
                      "galore_torch.GaLoreAdamW([{\"params\": others}, {\"params\": matrices, "
                      "\"rank\": 128, \"update_proj_gap\": 200, \"scale\": 0.25, "
                      "\"proj_type\": \"std\"}])");
}

static uint32_t count_momentum(const frag_fix_base *base)
{
    return is_training(base) && is_adam(&base->setting.workload);
}

static uint32_t count_sgd(const frag_fix_base *base)
{
    return is_training(base) && base->setting.workload.optimizer != FRAG_OPTIMIZER_SGD;
}

static void describe_optimizer(const frag_fit_setting *setting, frag_text *text)
{
    uint64_t optimizer = setting->workload.optimizer;
    frag_text_add(text, "%s",
                  optimizer == FRAG_OPTIMIZER_SGD            ? "torch.optim.SGD"
                  : optimizer == FRAG_OPTIMIZER_ADAMW_8BIT   ? "AdamW in 8 bits"
                  : optimizer == FRAG_OPTIMIZER_GALORE_ADAMW ? "GaLoreAdamW of rank 128"
                                                             : "SGD with momentum");
}

static void line_momentum(const frag_fix_base *base, const frag_fit_setting *setting,
                          frag_fix_place place, frag_text *text)
{
    (void)base;
    if (place == FRAG_FIX_TORCH && setting->workload.optimizer == FRAG_OPTIMIZER_MOMENTUM)
        frag_text_add(text, "torch.optim.SGD(model.parameters(), lr=..., momentum=0.9)");
}

/* ---- less at a time */
static uint32_t count_halvings(uint64_t of, uint64_t min)
{
    uint32_t count = 0;
    while (count < HALVINGS_MAX && of >> (count + 1) >= min)
        count++;
    return count;
}

static uint32_t count_batch(const frag_fix_base *base)
{
    const frag_workload *workload = &base->setting.workload;
    return is_batch_read(workload) ? count_halvings(workload->batch, 1) : 0;
}

static void apply_batch(const frag_fix_base *base, uint32_t level, frag_fit_setting *setting)
{
    uint64_t batch = base->setting.workload.batch >> level;
    if (batch < setting->workload.batch)
        setting->workload.batch = batch;
}

static void describe_batch(const frag_fit_setting *setting, frag_text *text)
{
    frag_text_add(text, "batch %" PRIu64, setting->workload.batch);
}

static void line_batch(const frag_fix_base *base, const frag_fit_setting *setting,
                       frag_fix_place place, frag_text *text)
{
    if (place == FRAG_FIX_TRANSFORMERS)
        frag_text_add(text, "per_device_%s_batch_size=%" PRIu64,
                      is_training(base) ? "train" : "eval", batch_of_device(&setting->workload));
    else if (place == FRAG_FIX_TORCH)
        frag_text_add(text, "DataLoader(..., batch_size=%" PRIu64 ")", setting->workload.batch);
}

uint64_t frag_fix_longest(const frag_workload *workload)
{
    return frag_workload_has_tokens(workload) ? frag_lengths_largest(&workload->tokens) : 0;
}

void frag_fix_shorten(frag_workload *workload, uint64_t tokens)
{
    for (uint32_t i = 0; i < workload->tokens.count; i++)
        if (workload->tokens.values[i] > tokens)
            workload->tokens.values[i] = tokens;
}

static uint32_t count_tokens(const frag_fix_base *base)
{
    return count_halvings(frag_fix_longest(&base->setting.workload), TOKENS_MIN);
}

static void apply_tokens(const frag_fix_base *base, uint32_t level, frag_fit_setting *setting)
{
    frag_fix_shorten(&setting->workload, frag_fix_longest(&base->setting.workload) >> level);
}

static void describe_tokens(const frag_fit_setting *setting, frag_text *text)
{
    frag_text_add(text, "at most %" PRIu64 " tokens", frag_fix_longest(&setting->workload));
}

static void line_tokens(const frag_fix_base *base, const frag_fit_setting *setting,
                        frag_fix_place place, frag_text *text)
{
    (void)base;
    if (place == FRAG_FIX_TORCH)
        frag_text_add(text, "tokenizer(..., truncation=True, max_length=%" PRIu64 ")",
                      frag_fix_longest(&setting->workload));
}

/* ---- the table, the cheapest first */
const frag_fix frag_fixes[] = {
    {"expandable-segments",
     "The allocator grows one segment for each stream instead of taking many of fixed size, so "
     "that holes between them do not add up.",
     "Nothing; Linux with PyTorch 2.1 or later.", FRAG_FIX_FREE, count_expandable,
     .apply = apply_expandable, .made = "expandable_segments:True", .write_line = line_expandable},
    {"set-to-none", "Gradients are given back after each step instead of being set to zero.",
     "Nothing; it has been the default since PyTorch 2.0.", FRAG_FIX_FREE, count_set_to_none,
     .knobs = {{"keep_gradients", "false"}}, .made = "zero_grad(set_to_none=True)",
     .lines = {[FRAG_FIX_TORCH] = "optimizer.zero_grad(set_to_none=True)"}},
    {"no-grad", "Evaluation keeps no activations for a backward pass that never comes.", "Nothing.",
     FRAG_FIX_FREE, count_no_grad, .knobs = {{"no_grad", "true"}}, .made = "torch.no_grad()",
     .lines = {[FRAG_FIX_TORCH] = "with torch.no_grad():"}},
    {"sdpa", "Attention goes through a kernel that keeps no scores of all tokens with all others.",
     "Nothing; usually it is faster. Results differ by rounding, and no attention weights are "
     "handed out.",
     FRAG_FIX_FREE, count_sdpa, .knobs = {{"attention", "sdpa"}}, .made = "attention=sdpa",
     .write_line = line_sdpa},
    {"fused-optimizer",
     "One kernel updates the parameters, so that no temporary of all their sizes is made.",
     "Nothing; usually it is faster. Results differ by rounding.", FRAG_FIX_FREE, count_fused,
     .knobs = {{"optimizer_loop", "fused"}}, .describe = describe_loop, .write_line = line_fused},
    {"reshard", "A block of FSDP is given back behind its forward pass.",
     "It is gathered again for backward: half as much again is sent.", FRAG_FIX_TIME, count_reshard,
     .knobs = {{"reshard", "true"}}, .made = "reshard_after_forward=True",
     .lines = {[FRAG_FIX_TORCH] = "fully_shard(block, reshard_after_forward=True)"}},
    {"zero1",
     "Each device keeps the optimizer's state for a part of the parameters (ZeRO stage 1).",
     "Each device sends its parameters to the others behind a step.", FRAG_FIX_TIME, count_zero1,
     .knobs = {{"parallel", "zero1"}}, .describe = describe_parallel, .write_line = line_zero1},
    {"fsdp", "Each device keeps a part of the weights, gradients and state (ZeRO stage 3).",
     "Blocks are gathered for forward and for backward: half as much again is sent.", FRAG_FIX_TIME,
     count_fsdp, .knobs = {{"parallel", "fsdp"}}, .describe = describe_parallel,
     .lines = {[FRAG_FIX_TORCH] = "for block in blocks:\n    fully_shard(block)\n"
                                  "fully_shard(model)  # in place of DistributedDataParallel"}},
    {"accumulate",
     "The batch is divided into smaller ones, whose gradients are added up before one step of the "
     "optimizer.",
     "More and smaller kernels, so a little time. The step is the same, but for rounding and "
     "layers that look at the whole batch.",
     FRAG_FIX_TIME, count_accumulate, .apply = apply_accumulate, .describe = describe_accumulate,
     .write_line = line_accumulate},
    {"autocast",
     "Matrix products and what they save are in 16 bits; weights, gradients and the optimizer stay "
     "in 32.",
     "Activations are rounded to 16 bits; usually it is faster. Weights have 16-bit copies "
     "besides.",
     FRAG_FIX_NUMERICS, count_amp, .apply = apply_amp, .describe = describe_precision,
     .write_line = line_amp},
    {"chunked-loss",
     "The head and the loss take some tokens at a time; backward computes their logits anew, so "
     "that those of a whole batch are never there.",
     "A second product of the head; results differ by rounding.", FRAG_FIX_TIME, count_chunked,
     .apply = apply_chunked, .describe = describe_chunked, .write_line = line_chunked},
    {"checkpoint", "Of each block only the input is kept; backward computes its activations anew.",
     "A second forward pass through the blocks.", FRAG_FIX_TIME, count_checkpoint,
     .is_recomputing = true, .knobs = {{"checkpoint", "blocks"}}, .made = "every block",
     .write_line = line_checkpoint},
    {"optimizer-8bit",
     "AdamW of bitsandbytes keeps its two numbers for each weight in 8 bits, with a scale for "
     "every 256.",
     "The optimizer's state is rounded; training usually goes as before.", FRAG_FIX_NUMERICS,
     count_8bit, .knobs = {{"optimizer", "adamw-8bit"}, {"optimizer_loop", "foreach"}},
     .describe = describe_optimizer, .write_line = line_8bit},
    {"bf16-weights", "Weights, gradients and the optimizer's state are in bf16 too.",
     "Updates smaller than 1/256 of a weight are rounded away; check that the loss still falls.",
     FRAG_FIX_NUMERICS, count_bf16, .knobs = {{"precision", "bf16"}},
     .describe = describe_precision,
     .lines = {[FRAG_FIX_TORCH] = "from_pretrained(..., dtype=torch.bfloat16)"}},
    {"offload-activations",
     "What autograd saves for backward is in pinned memory of the host until it is needed.",
     "Each of these tensors crosses the bus twice, and the forward and backward pass wait for it.",
     FRAG_FIX_TIME, frag_fix_count_activations, .moves = FRAG_FIX_MOVES_ACTIVATIONS,
     .apply = frag_fix_apply_activations, .made = "saved on the host",
     .lines = {[FRAG_FIX_TORCH] = "with torch.autograd.graph.save_on_cpu(pin_memory=True):  "
                                  "# around the forward pass"}},
    {"offload-optimizer",
     "The optimizer's state is on the host, where the step is made; gradients may go there as soon "
     "as they are there.",
     "Gradients and stepped weights cross the bus, and the processor makes the step.",
     FRAG_FIX_TIME, frag_fix_count_host_optimizer, .moves = FRAG_FIX_MOVES_GRADIENTS,
     .apply = frag_fix_apply_host_optimizer, .describe = frag_fix_describe_host_optimizer,
     .write_line = frag_fix_line_host_optimizer},
    {"offload-shards",
     "With several devices: each has its shards of weights, gradients and the optimizer's state on "
     "the host (FSDP); a block's weights come to the GPU when they are gathered.",
     "Weights cross the bus twice and gradients once, and the processor makes the step.",
     FRAG_FIX_TIME, frag_fix_count_host_shards, .moves = FRAG_FIX_MOVES_SHARDS,
     .apply = frag_fix_apply_host_shards, .made = "shards on the host",
     .lines = {[FRAG_FIX_TORCH] = "for block in blocks:\n"
                                  "    fully_shard(block, offload_policy=CPUOffloadPolicy())\n"
                                  "fully_shard(model, offload_policy=CPUOffloadPolicy())"}},
    {"lora", "The weights are frozen; small matrices beside some of them are trained.",
     "Another training, which changes less of the model.", FRAG_FIX_TRAINING, count_lora,
     .apply = apply_lora, .describe = describe_lora, .write_line = line_lora},
    {"quantize", "Weights of the blocks are kept in 4 bits and unpacked for each product.",
     "Rounded weights, and a little time; in training only adapters beside them are trained.",
     FRAG_FIX_TRAINING, count_quantise, .apply = apply_quantise, .describe = describe_quantise,
     .write_line = line_quantise},
    {"offload-weights",
     "Weights are on the host; those of a layer come to the GPU when it runs, and go when it is "
     "through.",
     "All weights cross the bus in each pass, so once for each token of an answer.", FRAG_FIX_TIME,
     frag_fix_count_host_weights, .moves = FRAG_FIX_MOVES_WEIGHTS,
     .apply = frag_fix_apply_host_weights, .made = "weights on the host",
     .write_line = frag_fix_line_host_weights},
    {"galore",
     "Gradients of the blocks' matrices are projected onto 128 dimensions, in which AdamW keeps "
     "its "
     "numbers.",
     "Other steps than AdamW's, and every 200 of them a singular value decomposition of each "
     "gradient, which takes time and a workspace.",
     FRAG_FIX_TRAINING, count_galore,
     .knobs = {{"optimizer", "galore-adamw"}, {"optimizer_loop", "foreach"}},
     .describe = describe_optimizer, .write_line = line_galore},
    {"momentum", "SGD with momentum keeps one number for each weight, where Adam keeps two.",
     "Another optimizer: the learning rate has to be found anew.", FRAG_FIX_TRAINING,
     count_momentum, .knobs = {{"optimizer", "momentum"}, {"amsgrad", "false"}},
     .describe = describe_optimizer, .write_line = line_momentum},
    {"sgd", "Plain SGD keeps nothing for the weights.",
     "Another optimizer: the learning rate has to be found anew, and transformers train badly.",
     FRAG_FIX_TRAINING, count_sgd, .knobs = {{"optimizer", "sgd"}, {"amsgrad", "false"}},
     .describe = describe_optimizer,
     .lines = {[FRAG_FIX_TRANSFORMERS] = "optim=\"sgd\"",
               [FRAG_FIX_TORCH] = "torch.optim.SGD(model.parameters(), lr=...)"}},
    {"batch", "Fewer sequences or images at a time.",
     "In training, noisier gradients and another learning rate; in evaluation, more passes.",
     FRAG_FIX_TRAINING, count_batch, .apply = apply_batch, .describe = describe_batch,
     .write_line = line_batch},
    {"tokens", "Shorter sequences.", "What is cut off is not seen by the model.", FRAG_FIX_TRAINING,
     count_tokens, .apply = apply_tokens, .describe = describe_tokens, .write_line = line_tokens},
};

_Static_assert(sizeof frag_fixes / sizeof *frag_fixes <= FRAG_FIXES_MAX,
               "a choice has a level for each fix");

size_t frag_fix_count(void)
{
    return sizeof frag_fixes / sizeof *frag_fixes;
}

const frag_fix *frag_fix_named(const char *name, frag_error *error)
{
    const char *names[FRAG_FIXES_MAX];
    for (size_t i = 0; i < frag_fix_count(); i++) {
        names[i] = frag_fixes[i].name;
        if (strcmp(names[i], name) == 0)
            return &frag_fixes[i];
    }
    const char *nearest = frag_nearest_name(name, names, frag_fix_count());
    frag_text list = {0};
    for (size_t i = 0; nearest == NULL && i < frag_fix_count(); i++)
        frag_text_add(&list, "%s%s", i > 0 ? ", " : "", names[i]);
    if (nearest != NULL)
        frag_fail(error, FRAG_E_USAGE, "'%s' is not a fix; did you mean %s?", name, nearest);
    else
        frag_fail(error, FRAG_E_USAGE, "'%s' is not a fix; expected one of %s", name, list.bytes);
    frag_text_destroy(&list);
    return NULL;
}

void frag_fix_describe(const frag_fix *fix, const frag_fit_setting *setting, frag_text *text)
{
    if (fix->made != NULL)
        frag_text_add(text, "%s", fix->made);
    else
        fix->describe(setting, text);
}

void frag_fix_write_line(const frag_fix *fix, const frag_fix_base *base,
                         const frag_fit_setting *setting, frag_fix_place place, frag_text *text)
{
    if (fix->lines[place] != NULL)
        frag_text_add(text, "%s", fix->lines[place]);
    else if (fix->write_line != NULL)
        fix->write_line(base, setting, place, text);
}

static void apply(const frag_fix *fix, const frag_fix_base *base, uint32_t level,
                  frag_fit_setting *setting)
{
    for (size_t i = 0; i < FRAG_FIX_KNOBS_MAX && fix->knobs[i].key != NULL; i++) {
        bool ok =
            frag_workload_set(&setting->workload, fix->knobs[i].key, fix->knobs[i].value, NULL);
        FRAG_ASSERT(ok);
    }
    if (fix->apply != NULL)
        fix->apply(base, level, setting);
}

void frag_fix_apply_all(const frag_fix_base *base, const frag_fix_choice *choice,
                        frag_fit_setting *setting)
{
    memcpy(setting, &base->setting, sizeof *setting);
    for (size_t i = 0; i < frag_fix_count(); i++)
        if (choice->levels[i] > 0)
            apply(&frag_fixes[i], base, choice->levels[i], setting);
}
