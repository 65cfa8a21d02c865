#include "workload/generate.h"

#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/memory.h"
#include "workload/data_parallel.h"
#include "workload/ddp.h"
#include "workload/families/diffusion.h"
#include "workload/families/family.h"
#include "workload/host_optimizer.h"
#include "workload/optimizer.h"
#include "workload/pipeline.h"
#include "workload/rlhf.h"
#include "workload/serve.h"

enum { CAPABILITY_FLASH = 80, CAPABILITY_FP8 = 89 };

static const frag_family *const families[FRAG_FAMILY_COUNT] = {
    [FRAG_FAMILY_GPT2] = &frag_family_gpt2,
    [FRAG_FAMILY_LLAMA] = &frag_family_llama,
    [FRAG_FAMILY_BERT] = &frag_family_bert,
    [FRAG_FAMILY_MISTRAL] = &frag_family_llama,
    [FRAG_FAMILY_QWEN2] = &frag_family_llama,
    [FRAG_FAMILY_QWEN3] = &frag_family_llama,
    [FRAG_FAMILY_PHI3] = &frag_family_llama,
    [FRAG_FAMILY_GEMMA] = &frag_family_llama,
    [FRAG_FAMILY_ROBERTA] = &frag_family_bert,
    [FRAG_FAMILY_XLM_ROBERTA] = &frag_family_bert,
    [FRAG_FAMILY_DEBERTA_V2] = &frag_family_bert,
    [FRAG_FAMILY_ELECTRA] = &frag_family_bert,
    [FRAG_FAMILY_ALBERT] = &frag_family_bert,
    [FRAG_FAMILY_MPNET] = &frag_family_bert,
    [FRAG_FAMILY_DISTILBERT] = &frag_family_bert,
    [FRAG_FAMILY_GEMMA2] = &frag_family_llama,
    [FRAG_FAMILY_GEMMA3] = &frag_family_llama,
    [FRAG_FAMILY_GRANITE] = &frag_family_llama,
    [FRAG_FAMILY_OLMO2] = &frag_family_llama,
    [FRAG_FAMILY_SMOLLM3] = &frag_family_llama,
    [FRAG_FAMILY_GLM] = &frag_family_llama,
    [FRAG_FAMILY_GLM4] = &frag_family_llama,
    [FRAG_FAMILY_COHERE] = &frag_family_llama,
    [FRAG_FAMILY_OPT] = &frag_family_opt,
    [FRAG_FAMILY_GPT_NEO] = &frag_family_gpt_neo,
    [FRAG_FAMILY_GPT_NEOX] = &frag_family_gpt_neox,
    [FRAG_FAMILY_FALCON] = &frag_family_falcon,
    [FRAG_FAMILY_BLOOM] = &frag_family_bloom,
    [FRAG_FAMILY_MPT] = &frag_family_bloom,
    [FRAG_FAMILY_PHI] = &frag_family_phi,
    [FRAG_FAMILY_STARCODER2] = &frag_family_phi,
    [FRAG_FAMILY_STABLELM] = &frag_family_phi,
    [FRAG_FAMILY_GPTJ] = &frag_family_phi,
    [FRAG_FAMILY_NEMOTRON] = &frag_family_phi,
    [FRAG_FAMILY_VIT] = &frag_family_vit,
    [FRAG_FAMILY_RESNET] = &frag_family_resnet,
    [FRAG_FAMILY_CONVNEXT] = &frag_family_convnext,
    [FRAG_FAMILY_UNET] = &frag_family_unet,
    [FRAG_FAMILY_FLUX] = &frag_family_flux,
    [FRAG_FAMILY_FLUX2] = &frag_family_flux2,
    [FRAG_FAMILY_MIXTRAL] = &frag_family_llama,
    [FRAG_FAMILY_QWEN3_MOE] = &frag_family_llama,
    [FRAG_FAMILY_OLMOE] = &frag_family_llama,
    [FRAG_FAMILY_QWEN2_MOE] = &frag_family_llama,
    [FRAG_FAMILY_DEEPSEEK_V2] = &frag_family_llama,
    [FRAG_FAMILY_DEEPSEEK_V3] = &frag_family_llama,
    [FRAG_FAMILY_GPT_OSS] = &frag_family_llama,
    [FRAG_FAMILY_BART] = &frag_family_bart,
    [FRAG_FAMILY_WHISPER] = &frag_family_whisper,
    [FRAG_FAMILY_MNASNET] = &frag_family_mnasnet,
    [FRAG_FAMILY_VGG] = &frag_family_vgg,
    [FRAG_FAMILY_MOBILENET_V2] = &frag_family_inverted,
    [FRAG_FAMILY_MOBILENET_V3] = &frag_family_inverted,
    [FRAG_FAMILY_REGNET] = &frag_family_regnet,
    [FRAG_FAMILY_EFFICIENTNET] = &frag_family_inverted,
    [FRAG_FAMILY_DENSENET] = &frag_family_densenet,
    [FRAG_FAMILY_DLRM] = &frag_family_dlrm,
    [FRAG_FAMILY_GRAPHSAGE] = &frag_family_graph,
    [FRAG_FAMILY_GCN] = &frag_family_graph,
    [FRAG_FAMILY_T5] = &frag_family_t5,
    [FRAG_FAMILY_MODERNBERT] = &frag_family_modernbert,
    [FRAG_FAMILY_MT5] = &frag_family_t5,
};

/* A batch of prompts that was answered. */
typedef struct generation {
    uint64_t tokens;
    frag_tape_stretch stretch;
} generation;

typedef struct batch_sizes {
    uint64_t tokens;
    uint64_t lookups;
    uint64_t nodes;
    uint64_t edges;
} batch_sizes;

/* A program that runs: its model, its names. */
typedef struct program {
    const frag_workload *workload;
    const frag_family *family;
    frag_tape *tape;
    frag_model model;
    frag_batch batch;
    frag_tensor loss;
    frag_outputs outputs; /* of the last pass */
    frag_tensor total;    /* of losses, where they leak */
    frag_tensor *cycles;  /* what only gc.collect() frees */
    size_t cycles_capacity;
    size_t cycle_count;
    frag_tensor scale;  /* of a GradScaler, once it is there */
    frag_model stepped; /* what the optimizer steps over */
    frag_optimizer_state *optimizer;
    frag_optimizer_state *cleaner; /* of all gradients */
    frag_ddp *ddp;                 /* NULL: the model is not wrapped */
    frag_pipeline *pipeline;       /* NULL: the model is whole */
    frag_data_parallel *replicas;  /* NULL: the model is not copied */
    frag_host_optimizer *host;     /* NULL: the optimizer is on the GPU */
    frag_workload *local;          /* what this device has of layers in parts; NULL: all */
    frag_rlhf *rlhf;               /* NULL: the task is another */
    uint64_t rank;
    uint64_t drawn; /* batches so far */
    uint64_t passes;
    uint64_t random;
    generation *answers; /* so far, of each length */
    size_t answer_count;
    size_t answers_capacity;
    frag_tape_stretch added; /* a batch whose gradients are added to others, behind such a batch */
    batch_sizes added_sizes;
} program;

static uint64_t next_length(program *running, const frag_lengths *lengths)
{
    return frag_lengths_at(lengths, running->drawn, &running->random);
}

static frag_dtype weight_type(const frag_workload *workload)
{
    if (workload->precision == FRAG_PRECISION_BF16 || workload->precision == FRAG_PRECISION_FP8)
        return FRAG_BF16;
    return workload->precision == FRAG_PRECISION_FP16 ? FRAG_F16 : FRAG_F32;
}

/* Of DataParallel, on another device than the first. */
static bool is_replica(const program *running)
{
    return running->workload->parallel == FRAG_PARALLEL_DATA && running->rank > 0;
}

/* How large the next batch is. */
static void draw_batch(program *running)
{
    running->batch.count = running->workload->batch;
    running->batch.number = running->passes++;
    running->batch.tokens = next_length(running, &running->workload->tokens);
    running->batch.lookups = next_length(running, &running->workload->lookups);
    running->batch.nodes = next_length(running, &running->workload->nodes);
    running->batch.edges = next_length(running, &running->workload->edges);
    running->drawn++;
}

static void load_batch(program *running)
{
    frag_tape_set_kind(running->tape, FRAG_REQUEST_INPUT);
    frag_tape_set_silent(running->tape, is_replica(running));
    running->family->load(running->tape, &running->model, &running->batch);
    frag_tape_set_silent(running->tape, false);
    frag_tape_set_kind(running->tape, FRAG_REQUEST_TEMPORARY);
}

static void drop_outputs(frag_tape *tape, frag_outputs *outputs)
{
    frag_tape_drop_all(tape, outputs->tensors, outputs->count);
    frag_free(outputs->tensors);
    *outputs = (frag_outputs){.count = 0};
}

static void keep_in_cycle(program *running, frag_tensor tensor)
{
    *FRAG_APPEND(running->cycles, running->cycle_count, running->cycles_capacity) =
        frag_tape_keep(running->tape, tensor);
}

/* gc.collect() */
static void collect_cycles(program *running)
{
    frag_tape_drop_all(running->tape, running->cycles, running->cycle_count);
    running->cycle_count = 0;
}

/* outputs = ...; a list of logits has one more reference, which nobody drops. */
static void take_outputs(program *running, frag_outputs *made)
{
    if (running->workload->leak == FRAG_LEAK_OUTPUTS)
        (void)frag_tape_keep(running->tape, made->tensors[0]);
    for (uint32_t i = 0; i < made->count && running->workload->leak == FRAG_LEAK_CYCLES; i++)
        keep_in_cycle(running, made->tensors[i]);
    drop_outputs(running->tape, running->workload->keeps_outputs ? &running->outputs : made);
    if (running->workload->keeps_outputs)
        running->outputs = *made;
}

/* del loss, outputs */
static void delete_names(program *running)
{
    if (!running->workload->is_deleting)
        return;
    frag_tape_clear(running->tape, &running->loss);
    drop_outputs(running->tape, &running->outputs);
}

/* with autocast: loss = model(ids, labels=ids).loss */
static void run_forward(program *running)
{
    frag_tape *tape = running->tape;
    load_batch(running);
    frag_tape_begin(tape, "forward");
    frag_tape_set_silent(tape, is_replica(running));
    frag_tape_set_autocast(tape, frag_model_autocast_type(running->workload));
    frag_tape_set_silent(tape, false);
    if (running->ddp != NULL)
        frag_ddp_begin_forward(tape, running->ddp);
    frag_tape_begin_checkpoints(tape, running->workload->checkpoint_every, 0);
    frag_shards_begin(tape, &running->model);
    const frag_family *family = running->family;
    frag_tape_set_offloading(tape, (running->workload->offload & FRAG_OFFLOAD_ACTIVATIONS) != 0);
    frag_outputs made = {.count = 0};
    const uint64_t leak = running->workload->leak;
    bool is_kept =
        running->workload->keeps_outputs || leak == FRAG_LEAK_OUTPUTS || leak == FRAG_LEAK_CYCLES;
    running->batch.outputs = is_kept ? &made : NULL;
    frag_tensor loss = running->replicas != NULL
                           ? frag_data_parallel_loss(tape, running->replicas, &running->batch)
                       : family->loss != NULL
                           ? family->loss(tape, &running->model, &running->batch)
                           : frag_decoder_loss(tape, family, &running->model, &running->batch);
    frag_family_return(tape, &running->batch, loss);
    take_outputs(running, &made);
    frag_tape_set(tape, &running->loss, loss);
    if (leak == FRAG_LEAK_CYCLES)
        keep_in_cycle(running, loss);
    frag_shards_end(tape, &running->model, running->loss);
    frag_tape_set_autocast(tape, FRAG_F32);
    frag_tape_set_offloading(tape, false);
    if (leak == FRAG_LEAK_LOSSES) /* total += loss, from 0 on */
        running->total = running->total != 0
                             ? frag_aten_add_in_place(tape, running->total, running->loss)
                             : frag_aten_add_scalar(tape, running->loss);
    frag_tape_end(tape, "forward");
}

/* ---- torch.amp.GradScaler, for fp16 */
/* scaler.scale(loss); the scale and its counter come with the first. */
static frag_tensor scale_loss(program *running)
{
    frag_tape *tape = running->tape;
    if (running->scale == 0) {
        running->scale = frag_tape_empty(tape, 1, FRAG_F32);
        (void)frag_tape_empty(tape, 1, FRAG_I32);
    }
    return frag_aten_mul(tape, running->loss, running->scale);
}

/* unscale_: scale.double().reciprocal().float(), a flag, and copies of both for the device. The
 * copy of the flag stays until update(). Fused: the scale is 1. */
static frag_tensor unscale(frag_tape *tape, bool is_fused)
{
    frag_tensor wide = is_fused ? 0 : frag_tape_empty(tape, 1, FRAG_I64);
    frag_tensor inverse = is_fused ? 0 : frag_tape_empty(tape, 1, FRAG_I64);
    frag_tape_drop(tape, wide);
    frag_tape_set(tape, &inverse, frag_tape_empty(tape, 1, FRAG_F32));
    frag_tensor flag = frag_tape_empty(tape, 1, FRAG_F32);
    frag_tensor flag_copy = frag_tape_empty(tape, 1, FRAG_F32);
    frag_tensor inverse_copy = frag_tape_empty(tape, 1, FRAG_F32);
    frag_tape_drop(tape, inverse_copy);
    frag_tape_drop(tape, inverse);
    frag_tape_drop(tape, flag);
    return flag_copy;
}

static bool has_scaler(const program *running)
{
    return running->workload->precision == FRAG_PRECISION_AMP_FP16 && !is_replica(running);
}

/* ---- steps */
static void run_backward(program *running)
{
    frag_tape *tape = running->tape;
    frag_tape_begin(tape, "backward");
    if (running->workload->accumulate > 1 && !is_replica(running))
        frag_tape_set(tape, &running->loss, frag_aten_mul_scalar(tape, running->loss));
    frag_tensor scaled =
        has_scaler(running) ? scale_loss(running) : frag_tape_keep(tape, running->loss);
    if (running->replicas != NULL)
        frag_data_parallel_backward(tape, running->replicas, scaled);
    else
        frag_tape_backward(tape, scaled);
    frag_tape_drop(tape, scaled);
    delete_names(running);
    frag_tape_end(tape, "backward");
}

static void evaluate(program *running)
{
    draw_batch(running);
    run_forward(running);
    delete_names(running);
}

/* The program's ids, with the next token of each sequence behind them. */
static void add_token(program *running, frag_tensor *next)
{
    frag_tape *tape = running->tape;
    frag_batch *batch = &running->batch;
    frag_tape_set(tape, next,
                  frag_aten_argmax(tape, batch->count, running->workload->network.vocabulary));
    frag_tensor joined = frag_aten_cat(tape, batch->ids, *next, FRAG_I64);
    frag_tape_set(tape, &batch->ids, joined);
}

/* Greedy: the batch is read at once, then tokens come one by one, all under a cache that grows. */
static void generate_tokens(program *running)
{
    frag_tape *tape = running->tape;
    const frag_model *model = &running->model;
    frag_batch *batch = &running->batch;
    frag_cache cache = frag_cache_create(model, batch->count);
    frag_tensor next = frag_tape_keep(tape, batch->ids);
    frag_tensor logits = 0;
    frag_batch pass = *batch;
    frag_tape_set_autocast(tape, frag_model_autocast_type(running->workload));
    for (uint64_t i = 0; i < running->workload->new_tokens && !frag_tape_is_over(tape); i++) {
        const char *phase = i == 0 ? "prefill" : "decode";
        frag_tape_begin(tape, phase);
        pass.ids = next;
        frag_tape_set(tape, &logits,
                      frag_decoder_logits(tape, running->family, model, &pass, &cache));
        add_token(running, &next);
        frag_tape_end(tape, phase);
        pass.past += pass.tokens;
        pass.tokens = 1;
        pass.number = running->passes++;
    }
    frag_tape_set_autocast(tape, FRAG_F32);
    frag_tape_drop(tape, next);
    frag_tape_drop(tape, logits);
    frag_cache_destroy(tape, &cache);
}

/* Answers to a batch of that length, before; NULL: each asks for something else, since it goes to
 * other experts or makes a graph. */
static generation *find_generation(program *running, uint64_t tokens)
{
    if (running->workload->network.experts > 0 || frag_tape_is_recording(running->tape))
        return NULL;
    for (size_t i = 0; i < running->answer_count; i++)
        if (running->answers[i].tokens == tokens)
            return running->answers[i].stretch.is_open ? NULL : &running->answers[i];
    generation *added =
        FRAG_APPEND(running->answers, running->answer_count, running->answers_capacity);
    *added = (generation){.tokens = tokens};
    return added;
}

static void run_generation(program *running)
{
    frag_tape *tape = running->tape;
    frag_batch *batch = &running->batch;
    draw_batch(running);
    load_batch(running);
    generation *before = find_generation(running, batch->tokens);
    if (before != NULL && frag_tape_repeat_stretch(tape, &batch->ids, &before->stretch))
        return;
    if (before != NULL)
        frag_tape_begin_stretch(tape, &batch->ids, 1, &before->stretch);
    generate_tokens(running);
    if (before != NULL)
        frag_tape_end_stretch(tape, &batch->ids, &before->stretch);
}

/* Answers without gradients, then what is learnt from them. */
static void run_alternation(program *running)
{
    frag_tape *tape = running->tape;
    frag_rlhf_rest(running->rlhf);
    bool was_recording = frag_tape_set_recording(tape, false);
    run_generation(running);
    frag_tape_set_recording(tape, was_recording);
    frag_batch answered = running->batch;
    answered.tokens += running->workload->new_tokens;
    frag_tape_set_autocast(tape, frag_model_autocast_type(running->workload));
    frag_tape_set(tape, &running->loss, frag_rlhf_loss(tape, running->rlhf, &answered));
    frag_tape_set_autocast(tape, FRAG_F32);
}

static void learn_batch(program *running)
{
    run_forward(running);
    run_backward(running);
}

/* What a program holds from batch to batch, and puts another in the place of; 0: too much. */
static uint32_t find_names(const program *running, frag_tensor *names)
{
    const frag_batch *batch = &running->batch;
    const frag_tensor held[] = {
        running->loss,
        batch->ids,
        batch->labels != batch->ids ? batch->labels : 0,
        batch->ends,
        batch->numbers,
        batch->offsets,
        batch->links,
        batch->times,
        batch->text,
        batch->pooled,
        running->outputs.count > 0 ? running->outputs.tensors[0] : 0,
    };
    uint32_t count = 0;
    for (size_t i = 0; i < sizeof held / sizeof *held; i++) {
        if (held[i] != 0 && count == FRAG_STRETCH_TENSORS_MAX)
            return 0;
        if (held[i] != 0)
            names[count++] = held[i];
    }
    return count;
}

static batch_sizes sizes_of(const frag_batch *batch)
{
    return (batch_sizes){batch->tokens, batch->lookups, batch->nodes, batch->edges};
}

/* Behind one of the same size it asks for the same as any such batch, if it goes to no other
 * experts. */
static void run_batch(program *running, bool is_added)
{
    frag_tape *tape = running->tape;
    frag_tape_stretch *added = &running->added;
    const batch_sizes before = sizes_of(&running->batch);
    draw_batch(running);
    const batch_sizes now = sizes_of(&running->batch);
    frag_tensor names[FRAG_STRETCH_TENSORS_MAX];
    uint32_t count = find_names(running, names);
    bool may_repeat = is_added && count > 0 && running->workload->network.experts == 0 &&
                      memcmp(&before, &now, sizeof now) == 0 && frag_tape_is_short(tape);
    bool is_known = added->end > 0 && memcmp(&running->added_sizes, &now, sizeof now) == 0;
    if (may_repeat && is_known && frag_tape_repeat_stretch(tape, names, added))
        return;
    if (!may_repeat || added->end > 0) {
        learn_batch(running);
        return;
    }
    running->added_sizes = now;
    frag_tape_begin_stretch(tape, names, count, added);
    learn_batch(running);
    (void)find_names(running, names);
    frag_tape_end_stretch(tape, names, added);
}

static void train_step(program *running)
{
    frag_tape *tape = running->tape;
    if (running->pipeline != NULL) {
        if (running->model.stage.is_first || running->model.stage.is_last) {
            draw_batch(running);
            load_batch(running);
        }
        frag_pipeline_step(tape, running->pipeline, running->batch.ids);
    }
    for (uint64_t i = 0; i < running->workload->accumulate && running->pipeline == NULL &&
                         (i == 0 || !frag_tape_is_over(tape));
         i++) {
        if (running->rlhf != NULL) {
            run_alternation(running);
            run_backward(running);
        } else {
            run_batch(running, i > 0);
        }
    }
    frag_tape_begin(tape, "optimizer");
    /* What ZeroRedundancyOptimizer is around does not say to a scaler that it is fused. */
    bool is_fused = running->workload->optimizer_loop == FRAG_LOOP_FUSED &&
                    running->workload->parallel != FRAG_PARALLEL_ZERO1;
    frag_tensor flag = has_scaler(running) ? unscale(tape, is_fused) : 0;
    /* A fused optimizer unscales itself, and is handed scale and flag. */
    frag_tensor handed[2] = {0, 0};
    for (uint32_t i = 0; i < 2 && flag != 0 && is_fused; i++)
        handed[i] = frag_tape_empty(tape, 1, FRAG_F32);
    frag_optimizer_step(tape, running->optimizer);
    frag_tape_drop(tape, handed[1]);
    frag_tape_drop(tape, handed[0]);
    frag_tape_drop(tape, flag);
    frag_optimizer_zero_gradients(tape, running->cleaner);
    frag_tape_end(tape, "optimizer");
}

static void run_denoising(program *running)
{
    running->batch.count = running->workload->batch;
    frag_tape_set_autocast(running->tape, frag_model_autocast_type(running->workload));
    const frag_family_id family = running->workload->network.family;
    (family == FRAG_FAMILY_UNET   ? frag_unet_denoise
     : family == FRAG_FAMILY_FLUX ? frag_flux_denoise
                                  : frag_flux2_denoise)(
        running->tape, &running->model, &running->batch, running->workload->new_tokens);
    frag_tape_set_autocast(running->tape, FRAG_F32);
}

static void run_steps(program *running)
{
    const frag_workload *workload = running->workload;
    frag_tape *tape = running->tape;
    bool is_training = workload->task == FRAG_TASK_TRAIN || running->rlhf != NULL;
    frag_tape_set_recording(tape, is_training || !workload->has_no_grad);
    if (workload->task == FRAG_TASK_SERVE) {
        frag_serve(tape, running->family, &running->model);
        return;
    }
    for (uint64_t step = 1; step <= workload->steps && !frag_tape_is_over(tape); step++) {
        char name[32];
        snprintf(name, sizeof name, "step %llu", (unsigned long long)step);
        frag_tape_begin(tape, name);
        if (is_training)
            train_step(running);
        else if (workload->task == FRAG_TASK_GENERATE &&
                 frag_families[workload->network.family].is_diffusion)
            run_denoising(running);
        else if (workload->task == FRAG_TASK_GENERATE)
            run_generation(running);
        else
            evaluate(running);
        if (workload->collect > 0 && step % workload->collect == 0)
            collect_cycles(running);
        if (workload->empty_cache > 0 && step % workload->empty_cache == 0)
            frag_tape_empty_cache(tape);
        frag_tape_end(tape, name);
    }
}

/* What several devices make of the model, and what the optimizer steps over. */
static void wrap_model(program *running)
{
    frag_tape *tape = running->tape;
    frag_model *model = &running->model;
    uint64_t parallel = running->workload->parallel;
    const frag_partition part = {running->rank, running->workload->devices};
    running->stepped = *model;
    const frag_model *cleaned = model;
    if (parallel == FRAG_PARALLEL_DDP || parallel == FRAG_PARALLEL_ZERO1)
        running->ddp = frag_ddp_create(tape, model, part.devices);
    if (parallel == FRAG_PARALLEL_ZERO1)
        running->stepped = frag_ddp_partition(tape, model, &part);
    if (parallel == FRAG_PARALLEL_TENSOR) {
        running->local = frag_alloc(1, sizeof *running->local);
        frag_model_cut_layers(tape, model, running->local);
        running->stepped = *model;
    }
    if (parallel == FRAG_PARALLEL_DATA)
        running->replicas = frag_data_parallel_create(tape, running->family, model, running->rank);
    if (parallel == FRAG_PARALLEL_PIPELINE)
        running->pipeline = frag_pipeline_create(running->family, model);
    if (parallel == FRAG_PARALLEL_FSDP) {
        cleaned = frag_shards_model(frag_shards_create(tape, model, part.rank, part.devices));
        running->stepped = *cleaned;
    }
    if ((running->workload->offload & FRAG_OFFLOAD_OPTIMIZER) != 0) {
        running->host = frag_host_optimizer_create(tape, model);
        running->stepped = *frag_host_optimizer_rest(running->host);
    }
    running->optimizer = frag_optimizer_create(&running->stepped);
    running->cleaner = frag_optimizer_create(cleaned);
}

static frag_attention_kernel find_kernel(const frag_workload *workload)
{
    if (workload->network.is_eager)
        return FRAG_KERNEL_NONE;
    switch (workload->attention) {
    case FRAG_ATTENTION_FLASH:
        return FRAG_KERNEL_FLASH;
    case FRAG_ATTENTION_EFFICIENT:
        return FRAG_KERNEL_EFFICIENT;
    case FRAG_ATTENTION_MATH:
        return FRAG_KERNEL_MATH;
    default:
        return FRAG_KERNEL_CHOSEN;
    }
}

static void run_program(program *running)
{
    frag_tape_begin(running->tape, "load");
    frag_tape_set_kind(running->tape, FRAG_REQUEST_WEIGHT);
    bool is_sharded = running->workload->parallel == FRAG_PARALLEL_FSDP;
    frag_tape_set_silent(running->tape, is_replica(running) || is_sharded);
    frag_tape_set_hosting(
        running->tape, (running->workload->offload & FRAG_OFFLOAD_PARAMETERS) != 0 && !is_sharded);
    frag_model_build(running->tape, running->family, &running->model);
    frag_tape_set_silent(running->tape, false);
    frag_model_prepare(running->tape, &running->model);
    frag_tape_set_kind(running->tape, FRAG_REQUEST_TEMPORARY);
    frag_tape_end(running->tape, "load");
    wrap_model(running);
    frag_tape_set_kernel(running->tape, find_kernel(running->workload));
    frag_tape_set_selective(running->tape,
                            running->workload->checkpoint == FRAG_CHECKPOINT_SELECTIVE);
    if (running->workload->checkpoint == FRAG_CHECKPOINT_SQRT)
        running->model.groups = frag_block_groups_create(running->workload);
    if (running->workload->task == FRAG_TASK_RLHF)
        running->rlhf = frag_rlhf_create(running->tape, running->family, &running->model);
    run_steps(running);
    frag_rlhf_destroy(running->rlhf);
    frag_optimizer_destroy(running->optimizer);
    frag_optimizer_destroy(running->cleaner);
    frag_host_optimizer_destroy(running->host);
    frag_ddp_destroy(running->ddp);
    frag_pipeline_destroy(running->pipeline);
    frag_data_parallel_destroy(running->replicas);
    frag_shards_destroy(running->model.shards);
    frag_block_groups_destroy(running->model.groups);
    if (running->workload->parallel == FRAG_PARALLEL_ZERO1) {
        frag_free(running->stepped.parameters);
        frag_free(running->stepped.forms);
    }
    frag_free(running->local);
    frag_free(running->outputs.tensors);
    frag_free(running->cycles);
    frag_free(running->answers);
    frag_model_free(&running->model);
}

/* Ranks draw lengths of their own, but where they share a batch. */
static uint64_t find_seed(const frag_workload *workload, uint32_t rank)
{
    bool is_shared =
        workload->parallel == FRAG_PARALLEL_TENSOR || workload->parallel == FRAG_PARALLEL_DATA;
    return is_shared ? workload->seed : workload->seed + rank;
}

/* What is generated of a workload, and how. */
typedef struct generating {
    const frag_workload *workload;
    const frag_tape_card *card;
    frag_builder *builder;
    frag_request_kinds *kinds; /* NULL: nobody asks */
    frag_event_room room;
    uint64_t limit_bytes;
    bool is_short; /* stretches that repeat are not written again */
} generating;

static void run_rank(const generating *of, uint32_t rank)
{
    const frag_workload *workload = of->workload;
    frag_builder *builder = of->builder;
    frag_tape_card card = *of->card;
    card.keeps_softmax_input = workload->keeps_softmax_input;
    frag_builder_device(builder, rank);
    if (rank == 0 && of->room.events != NULL)
        frag_builder_reuse(builder, of->room.events, of->room.count);
    else
        frag_builder_expect(builder, of->room.count);
    if (of->is_short)
        frag_builder_shorten(builder);
    program running = {
        .workload = workload,
        .family = families[workload->network.family],
        .tape = frag_tape_create(builder, &card),
        .model = {.workload = workload,
                  .stage = frag_pipeline_stage(workload, rank),
                  .dtype = weight_type(workload),
                  .product_dtype = frag_model_product_type(workload)},
        .random = find_seed(workload, rank),
        .rank = rank,
    };
    if (workload->memory_fraction < 1) {
        const frag_build_event limit = {.op = FRAG_OP_LIMIT,
                                        .flags = FRAG_EVENT_RATIO,
                                        .bytes = frag_ratio_code(workload->memory_fraction)};
        frag_builder_add(builder, &limit);
    }
    frag_tape_watch_kinds(running.tape, of->kinds);
    frag_tape_set_limit(running.tape, of->limit_bytes);
    run_program(&running);
    if (workload->offload != FRAG_OFFLOAD_NONE) {
        char bytes[32];
        snprintf(bytes, sizeof bytes, "%llu",
                 (unsigned long long)frag_tape_host_bytes_max(running.tape));
        frag_builder_metadata(builder, "pinned_host_bytes_max", bytes);
    }
    frag_tape_destroy(running.tape);
}

static void run_ranks(const generating *of)
{
    const frag_workload *workload = of->workload;
    frag_builder_metadata(of->builder, "generated", frag_families[workload->network.family].name);
    frag_builder_metadata(of->builder, "torch.version_hint", "2.9");
    uint64_t ranks = workload->parallel != FRAG_PARALLEL_NONE ? workload->devices : 1;
    for (uint64_t i = 0; i < ranks; i++)
        run_rank(of, (uint32_t)i);
}

/* As the families read it. */
static frag_workload settle(const frag_workload *workload)
{
    frag_workload settled = *workload;
    settled.network.is_eager |= workload->attention == FRAG_ATTENTION_EAGER;
    return settled;
}

static bool check_card(const frag_workload *workload, const frag_tape_card *card, frag_error *error)
{
    if (workload->attention == FRAG_ATTENTION_FLASH && card->capability < CAPABILITY_FLASH)
        return frag_fail(error, FRAG_E_INPUT,
                         "attention is flash, and the card's compute capability is %u.%u; expected "
                         "8.0 or above, such as --gpu rtx3060",
                         card->capability / 10, card->capability % 10);
    if (workload->precision != FRAG_PRECISION_FP8 || card->capability >= CAPABILITY_FP8)
        return true;
    return frag_fail(error, FRAG_E_INPUT,
                     "precision is fp8, and the card's compute capability is %u.%u; expected 8.9 "
                     "or above, such as --gpu h100-80gb",
                     card->capability / 10, card->capability % 10);
}

bool frag_workload_generate(const frag_workload *workload, const frag_tape_card *card,
                            const char *name, frag_recording *recording, frag_error *error)
{
    if (!check_card(workload, card, error))
        return false;
    const frag_workload settled = settle(workload);
    const generating of = {.workload = &settled,
                           .card = card,
                           .builder = frag_builder_create(recording),
                           .limit_bytes = FRAG_UNLIMITED};
    run_ranks(&of);
    return frag_builder_finish(of.builder, name, error);
}

bool frag_workload_generate_marked(const frag_workload *workload, const frag_tape_card *card,
                                   frag_event_room room, uint64_t limit_bytes,
                                   frag_recording *recording, frag_request_kinds *kinds,
                                   frag_error *error)
{
    if (!check_card(workload, card, error)) {
        frag_free(room.events);
        return false;
    }
    const frag_workload settled = settle(workload);
    const generating of = {.workload = &settled,
                           .card = card,
                           .builder = frag_builder_create(recording),
                           .kinds = kinds,
                           .room = room,
                           .limit_bytes = limit_bytes,
                           .is_short = workload->parallel == FRAG_PARALLEL_NONE};
    run_ranks(&of);
    frag_builder_skip_digest(of.builder);
    return frag_builder_finish(of.builder, "plan", error);
}
