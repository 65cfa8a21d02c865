/* Knobs: what a run is described by. */
#include <string.h>

#include "workload/description/description.h"

#define WORKLOAD(name) offsetof(frag_workload, name)
#define LORA_TARGETS                                                                               \
    "q_proj|k_proj|v_proj|o_proj|gate_proj|up_proj|down_proj|qkv_proj|gate_up_proj|"               \
    "c_attn|c_proj|c_fc|query|key|value|dense|q_lin|k_lin|v_lin|out_lin|lin1|lin2|"                \
    "query_key_value|dense_h_to_4h|dense_4h_to_h|to_q|to_k|to_v|to_out.0|fc1|fc2|"                 \
    "Wqkv|Wi|Wo|out_proj|fc_in|fc_out|query_proj|key_proj|value_proj|"                             \
    "add_q_proj|add_k_proj|add_v_proj|to_add_out|to_qkv_mlp_proj|linear_in|linear_out|all-linear"

const frag_field frag_knobs[] = {
    {"task", NULL, FRAG_FIELD_CHOICE, WORKLOAD(task), FRAG_TASK_TRAIN, 0, 0, FRAG_TASKS,
     "training steps, forward passes with a loss, tokens one by one, requests that arrive, or "
     "answers that are generated, scored and learnt from"},
    {"batch", NULL, FRAG_FIELD_COUNT, WORKLOAD(batch), 1, 1, 1 << 20, NULL,
     "sequences, images, samples or learned nodes in a batch"},
    {"tokens", NULL, FRAG_FIELD_LENGTHS, WORKLOAD(tokens), 128, 1, FRAG_FIELD_COUNT_MAX, NULL,
     "tokens in a sequence: N, a list for batch after batch, or MIN..MAX drawn by the seed"},
    {"lookups", NULL, FRAG_FIELD_LENGTHS, WORKLOAD(lookups), 1, 1, 1 << 16, NULL,
     "rows that a sample asks each table for: N, a list for batch after batch, or MIN..MAX drawn "
     "by the seed"},
    {"nodes", NULL, FRAG_FIELD_LENGTHS, WORKLOAD(nodes), 10000, 1, FRAG_FIELD_COUNT_MAX, NULL,
     "of a graph or its part: N, a list for batch after batch, or MIN..MAX drawn by the seed"},
    {"edges", NULL, FRAG_FIELD_LENGTHS, WORKLOAD(edges), 50000, 1, FRAG_FIELD_ROWS_MAX, NULL,
     "of it, likewise"},
    {"target_tokens", NULL, FRAG_FIELD_COUNT, WORKLOAD(target_tokens), 0, 0, FRAG_FIELD_COUNT_MAX,
     NULL, "tokens that a decoder learns behind an encoder; 0: as many as tokens"},
    {"new_tokens", NULL, FRAG_FIELD_COUNT, WORKLOAD(new_tokens), 32, 1, 1 << 16, NULL,
     "tokens that generation adds to each sequence"},
    {"reference", NULL, FRAG_FIELD_FLAG, WORKLOAD(has_reference), 1, 0, 1, NULL,
     "with task rlhf: a frozen model scores the answers too, with lora_rank the model without its "
     "adapters"},
    {"reward_model", NULL, FRAG_FIELD_FLAG, WORKLOAD(has_reward), 0, 0, 1, NULL,
     "with task rlhf: a frozen model with one output rewards the answers"},
    {"requests", NULL, FRAG_FIELD_COUNT, WORKLOAD(requests), 32, 1, 1 << 16, NULL,
     "that a server answers"},
    {"arrival_rate", NULL, FRAG_FIELD_RATIO, WORKLOAD(arrival_rate), 0, 0, 1000, NULL,
     "requests a step, drawn by the seed as a Poisson process; 0: all come at once"},
    {"arrivals", NULL, FRAG_FIELD_LENGTHS, WORKLOAD(arrivals), 0, 0, 1 << 20, NULL,
     "the step in which each request comes, one after the other"},
    {"answer_tokens", NULL, FRAG_FIELD_LENGTHS, WORKLOAD(answer_tokens), 0, 0, 1 << 16, NULL,
     "tokens of answers: N, a list for request after request, or MIN..MAX drawn by the seed; 0: "
     "new_tokens"},
    {"cache", NULL, FRAG_FIELD_CHOICE, WORKLOAD(cache), FRAG_CACHE_CONTIGUOUS, 0, 0,
     "contiguous|paged",
     "a server's keys and values: longer copies for each sequence, or one pool reserved at the "
     "start"},
    {"cache_block", NULL, FRAG_FIELD_COUNT, WORKLOAD(cache_block), 16, 1, 1 << 16, NULL,
     "tokens in a block of a paged cache"},
    {"cache_tokens", NULL, FRAG_FIELD_COUNT, WORKLOAD(cache_tokens), 0, 0, 1 << 30, NULL,
     "in a paged cache; 0: as many as a batch of the longest sequences has"},
    {"steps", NULL, FRAG_FIELD_COUNT, WORKLOAD(steps), 3, 1, 1 << 20, NULL, "steps"},
    {"accumulate", NULL, FRAG_FIELD_COUNT, WORKLOAD(accumulate), 1, 1, 1 << 16, NULL,
     "batches whose gradients are added up in one step"},
    {"precision", NULL, FRAG_FIELD_CHOICE, WORKLOAD(precision), FRAG_PRECISION_FP32, 0, 0,
     FRAG_PRECISIONS,
     "type of weights and activations; amp: weights in fp32, autocast; fp8: weights in bf16, "
     "products of blocks in 8 bits as torchao; mixed: FSDP's shards in fp32, gathered in bf16"},
    {"optimizer", NULL, FRAG_FIELD_CHOICE, WORKLOAD(optimizer), FRAG_OPTIMIZER_ADAMW, 0, 0,
     "adamw|adam|sgd|momentum|rmsprop|adafactor|adamw-8bit|paged-adamw|paged-adamw-8bit|"
     "galore-adamw",
     "as torch.optim has them; 8bit and paged as bitsandbytes, galore as galore_torch"},
    {"optimizer_loop", NULL, FRAG_FIELD_CHOICE, WORKLOAD(optimizer_loop), FRAG_LOOP_FOREACH, 0, 0,
     "foreach|fused|single", "how the optimizer goes over the parameters"},
    {"galore_rank", NULL, FRAG_FIELD_COUNT, WORKLOAD(galore_rank), FRAG_GALORE_RANK_INITIAL, 1,
     65536, NULL, "dimensions that gradients are projected onto, with optimizer galore-adamw"},
    {"galore_gap", NULL, FRAG_FIELD_COUNT, WORKLOAD(galore_gap), FRAG_GALORE_GAP_INITIAL, 1,
     1 << 20, NULL,
     "steps from which on others are found, each with a singular value "
     "decomposition"},
    {"amsgrad", NULL, FRAG_FIELD_FLAG, WORKLOAD(has_amsgrad), 0, 0, 1, NULL,
     "adam and adamw keep the largest average as well"},
    {"checkpoint", NULL, FRAG_FIELD_CHOICE, WORKLOAD(checkpoint), FRAG_CHECKPOINT_NONE, 0, 0,
     "none|blocks|sqrt|selective",
     "activations of each block are made anew in backward; sqrt: of √n of n blocks together; "
     "selective: what is no product of matrices and no attention"},
    {"checkpoint_every", NULL, FRAG_FIELD_COUNT, WORKLOAD(checkpoint_every), 1, 1, 1000, NULL,
     "with checkpoint blocks: every so many of them, the first among them"},
    {"offload", NULL, FRAG_FIELD_SET, WORKLOAD(offload), FRAG_OFFLOAD_NONE, 0, 1,
     "activations|optimizer|gradients|parameters",
     "what is in memory of the host until it is needed: what autograd saves, the optimizer's state "
     "and step, gradients as soon as they are there, or weights of modules that do not run (with "
     "parallel fsdp: shards, gradients and the optimizer); none: nothing"},
    {"head", NULL, FRAG_FIELD_CHOICE, WORKLOAD(head), FRAG_HEAD_LM, 0, 0, FRAG_HEADS,
     "what a model over text ends in, as transformers names its tasks: lm has a score for each "
     "word, "
     "of the next or of masked ones"},
    {"labels", "num_labels|id2label", FRAG_FIELD_COUNT, WORKLOAD(labels), FRAG_LABELS_INITIAL, 1,
     1 << 20, NULL,
     "classes of another head than lm; 1: a sequence has a number, learnt by its squared error"},
    {"problem_type", "problem_type", FRAG_FIELD_CHOICE, WORKLOAD(problem_type), FRAG_PROBLEM_AUTO,
     0, 0, FRAG_PROBLEMS,
     "what a head for classes of sequences learns: numbers, a class, or whether each label is "
     "true"},
    {"loss", NULL, FRAG_FIELD_CHOICE, WORKLOAD(loss), FRAG_LOSS_FULL, 0, 0, "full|chunked",
     "chunked: logits of some tokens at a time, made anew in backward"},
    {"loss_chunk", NULL, FRAG_FIELD_COUNT, WORKLOAD(loss_chunk), FRAG_LOSS_CHUNK_INITIAL, 1,
     FRAG_FIELD_COUNT_MAX, NULL, "tokens whose logits are there at a time, with loss chunked"},
    {"leak", NULL, FRAG_FIELD_CHOICE, WORKLOAD(leak), FRAG_LEAK_NONE, 0, 0,
     "none|losses|outputs|cycles",
     "losses: they are added up as tensors, total += loss; outputs: logits go into a list; cycles: "
     "outputs are in reference cycles, which only gc.collect() frees"},
    {"collect", NULL, FRAG_FIELD_COUNT, WORKLOAD(collect), 0, 0, 1 << 20, NULL,
     "gc.collect() every so many steps, with leak cycles; 0: never"},
    {"keep_outputs", NULL, FRAG_FIELD_FLAG, WORKLOAD(keeps_outputs), 0, 0, 1, NULL,
     "outputs = model(...), which stay until the next ones are there"},
    {"del", NULL, FRAG_FIELD_FLAG, WORKLOAD(is_deleting), 0, 0, 1, NULL,
     "del loss, outputs behind each backward pass, or forward pass of an evaluation"},
    {"inplace", NULL, FRAG_FIELD_FLAG, WORKLOAD(is_inplace), 0, 0, 1, NULL,
     "nn.ReLU(inplace=True) in a resnet"},
    {"lora_rank", NULL, FRAG_FIELD_COUNT, WORKLOAD(lora_rank), 0, 0, 65536, NULL,
     "rank of LoRA's adapters, which alone are trained; 0: none"},
    {"lora_targets", NULL, FRAG_FIELD_SET, WORKLOAD(lora_targets), 0, 0, 0, LORA_TARGETS,
     "linear layers that adapters stand beside; else those that peft has for the family"},
    {"lora_dropout", NULL, FRAG_FIELD_RATIO, WORKLOAD(lora_dropout), 0, 0, 0.99, NULL,
     "of what goes into the adapters"},
    {"lora_dora", NULL, FRAG_FIELD_FLAG, WORKLOAD(has_dora), 0, 0, 1, NULL,
     "DoRA: the length of each row of an adapted weight is trained as well"},
    {"quantize", NULL, FRAG_FIELD_CHOICE, WORKLOAD(quantize), FRAG_QUANTIZE_NONE, 0, 0,
     "none|nf4|nf4-double|int8",
     "linear layers of blocks have weights of 4 bits, whose scales may be quantised as well, or of "
     "8"},
    {"prune", NULL, FRAG_FIELD_RATIO, WORKLOAD(prune), 0, 0, 0.99, NULL,
     "share of the weights in linear layers of blocks that a mask leaves out, as "
     "torch.nn.utils.prune has it; how large the share is changes no request"},
    {"attention", NULL, FRAG_FIELD_CHOICE, WORKLOAD(attention), FRAG_ATTENTION_SDPA, 0, 0,
     "sdpa|eager|flash|efficient|math",
     "scaled_dot_product_attention, with the kernel that PyTorch chooses or one of three; or "
     "eager, whose scores are a tensor"},
    {"softmax_input", NULL, FRAG_FIELD_FLAG, WORKLOAD(keeps_softmax_input), 0, 0, 1, NULL,
     "softmax and log_softmax keep what goes in for their derivatives, as before PyTorch 1.11"},
    {"experts_implementation", NULL, FRAG_FIELD_CHOICE, WORKLOAD(experts_implementation),
     FRAG_EXPERTS_GROUPED, 0, 0, "grouped_mm|eager",
     "all experts in one product, or those that are hit one after the other"},
    {"expert_shares", NULL, FRAG_FIELD_LENGTHS, WORKLOAD(expert_shares), 1, 0, 65536, NULL,
     "of tokens, with eager experts: N, a list for expert after expert, or MIN..MAX drawn by the "
     "seed"},
    {"keep_gradients", NULL, FRAG_FIELD_FLAG, WORKLOAD(keeps_gradients), 0, 0, 1, NULL,
     "zero_grad(set_to_none=False)"},
    {"no_grad", NULL, FRAG_FIELD_FLAG, WORKLOAD(has_no_grad), 1, 0, 1, NULL,
     "evaluation under torch.no_grad()"},
    {"empty_cache", NULL, FRAG_FIELD_COUNT, WORKLOAD(empty_cache), 0, 0, 1 << 20, NULL,
     "torch.cuda.empty_cache() every so many steps; 0: never"},
    {"memory_fraction", NULL, FRAG_FIELD_RATIO, WORKLOAD(memory_fraction), 1, 0.001, 1, NULL,
     "torch.cuda.set_per_process_memory_fraction(), of all memory of the card"},
    {"seed", NULL, FRAG_FIELD_COUNT, WORKLOAD(seed), 1, 0, 4294967295.0, NULL,
     "of lengths that are drawn"},
    {"parallel", NULL, FRAG_FIELD_CHOICE, WORKLOAD(parallel), FRAG_PARALLEL_NONE, 0, 0,
     "none|ddp|zero1|fsdp|pipeline|dp|tensor",
     "how several devices share the work; the recording has a trace of each"},
    {"devices", NULL, FRAG_FIELD_COUNT, WORKLOAD(devices), 2, 2, 64, NULL,
     "that share it, where parallel is not none"},
    {"reshard", NULL, FRAG_FIELD_FLAG, WORKLOAD(is_resharded), 1, 0, 1, NULL,
     "with parallel fsdp: a block is given back behind its forward pass and gathered again for "
     "backward"},
    {"schedule", NULL, FRAG_FIELD_CHOICE, WORKLOAD(schedule), FRAG_SCHEDULE_1F1B, 0, 0,
     "1f1b|gpipe", "of a pipeline: in which order its microbatches go forward and backward"},
    {"microbatches", NULL, FRAG_FIELD_COUNT, WORKLOAD(microbatches), 0, 0, 1 << 12, NULL,
     "that a pipeline cuts a batch into; 0: as many as devices"},
    {.key = NULL},
};

/* ---- knobs that say something only beside others */
static bool has_devices(const frag_workload *workload)
{
    return workload->parallel != FRAG_PARALLEL_NONE;
}

static bool has_adapters(const frag_workload *workload)
{
    return workload->lora_rank > 0;
}

static bool may_drop(const frag_workload *workload)
{
    return workload->lora_rank > 0 || workload->lora_dropout <= 0;
}

static bool has_classes(const frag_workload *workload)
{
    return workload->head != FRAG_HEAD_LM;
}

static bool has_sequence_classes(const frag_workload *workload)
{
    return workload->head == FRAG_HEAD_SEQUENCE;
}

static bool adds_tokens(const frag_workload *workload)
{
    return workload->task == FRAG_TASK_GENERATE || workload->task == FRAG_TASK_SERVE ||
           workload->task == FRAG_TASK_RLHF;
}

static bool has_cycles(const frag_workload *workload)
{
    return workload->leak == FRAG_LEAK_CYCLES;
}

static bool serves(const frag_workload *workload)
{
    return workload->task == FRAG_TASK_SERVE;
}

bool frag_workload_check_knob(const frag_workload *workload, const char *key, frag_error *error)
{
    static const struct {
        const char *key;
        bool (*is_used)(const frag_workload *workload);
        const char *wants;
    } beside[] = {
        {"devices", has_devices, "parallel is none; expected parallel ddp or another"},
        {"lora_targets", has_adapters, "lora_rank is 0; expected lora_rank"},
        {"lora_dropout", may_drop, "lora_rank is 0; expected lora_rank"},
        {"labels", has_classes, "head is lm; expected head sequence-classification or another"},
        {"problem_type", has_sequence_classes,
         "head is no sequence-classification; expected that head"},
        {"new_tokens", adds_tokens, "no tokens are added; expected task generate"},
        {"collect", has_cycles, "leak makes no cycles; expected leak cycles"},
        {"arrival_rate", serves, "nothing is served; expected task serve"},
        {"arrivals", serves, "nothing is served; expected task serve"},
        {"answer_tokens", serves, "nothing is served; expected task serve"},
        {"cache", serves, "nothing is served; expected task serve"},
        {"cache_block", serves, "nothing is served; expected task serve"},
        {"cache_tokens", serves, "nothing is served; expected task serve"},
    };
    for (size_t i = 0; i < sizeof beside / sizeof *beside; i++)
        if (strcmp(beside[i].key, key) == 0 && !beside[i].is_used(workload))
            return frag_fail(error, FRAG_E_USAGE,
                             "it has no effect where %s with it, or leave it out", beside[i].wants);
    return true;
}
