/* The options of a described workload, for every command that takes one. */
#ifndef FRAG_CLI_WORKLOAD_OPTIONS_H
#define FRAG_CLI_WORKLOAD_OPTIONS_H

#include "cli/command.h"
#include "workload/description/statistical.h"

/* Of a command's table: the knobs of docs/workloads.md. */
#define FRAG_WORKLOAD_OPTIONS                                                                      \
    {"task", "TASK", .choices = FRAG_TASKS,                                                        \
     .help =                                                                                       \
         "training steps, forward passes, tokens one by one, a server, or answers learnt from"},   \
        {"batch", "N", .help = "sequences in a batch"},                                            \
        {"tokens", "LENGTHS",                                                                      \
         .help = "tokens in a sequence: N, N,N,... for batch after batch, or MIN..MAX at random"}, \
        {"lookups", "LIST",                                                                        \
         .help = "rows that a sample asks each table for: N, a list, or MIN..MAX"},                \
        {"nodes", "LIST", .help = "of a graph or its part: N, a list, or MIN..MAX"},               \
        {"edges", "LIST", .help = "of it, likewise"},                                              \
        {"target-tokens", "N", .help = "tokens that a decoder learns behind an encoder"},          \
        {"new-tokens", "N", .help = "tokens that generation adds to each sequence"},               \
        {"reference", "FLAG", .choices = "true|false",                                             \
         .help = "task rlhf: a frozen model scores the answers too"},                              \
        {"reward-model", "FLAG", .choices = "true|false",                                          \
         .help = "task rlhf: a frozen model with one output rewards the answers"},                 \
        {"requests", "N", .help = "that a server answers, or that are drawn"},                     \
        {"arrival-rate", "R",                                                                      \
         .help = "requests a step, drawn as a Poisson process; 0: all at once"},                   \
        {"arrivals", "STEPS", .help = "N,N,...: the step in which each request comes"},            \
        {"answer-tokens", "LENGTHS", .help = "of answers, as tokens; 0: new-tokens"},              \
        {"cache", "KIND", .choices = "contiguous|paged", .help = "of a server's keys and values"}, \
        {"cache-block", "N", .help = "tokens in a block of a paged cache"},                        \
        {"cache-tokens", "N", .help = "in a paged cache; 0: for a batch of the longest"},          \
        {"steps", "N", .help = "steps"},                                                           \
        {"accumulate", "N", .help = "batches whose gradients are added up in one step"},           \
        {"precision", "TYPE", .choices = FRAG_PRECISIONS,                                          \
         .help = "of weights and activations; amp: weights in fp32, autocast; fp8: as torchao; "   \
                 "mixed: FSDP's shards in fp32, gathered in bf16"},                                \
        {"optimizer", "NAME",                                                                      \
         .choices = "adamw|adam|sgd|momentum|rmsprop|adafactor|adamw-8bit|paged-adamw|"            \
                    "paged-adamw-8bit|galore-adamw",                                               \
         .help = "as in torch.optim; 8bit and paged as in bitsandbytes, galore as galore_torch"},  \
        {"galore-rank", "N", .help = "dimensions that galore-adamw projects gradients onto"},      \
        {"galore-gap", "N", .help = "steps until it looks for others"},                            \
        {"optimizer-loop", "HOW", .choices = "foreach|fused|single",                               \
         .help = "how the optimizer goes over the parameters"},                                    \
        {"amsgrad", "FLAG", .choices = "true|false",                                               \
         .help = "adam and adamw keep the largest average"},                                       \
        {"checkpoint", "WHAT", .choices = "none|blocks|sqrt|selective",                            \
         .help = "activations of each block are made anew in backward"},                           \
        {"checkpoint-every", "N", .help = "so of every N-th block only, the first among them"},    \
        {"offload", "WHAT",                                                                        \
         .help = "what is on the host until it is needed: some of activations, optimizer, "        \
                 "gradients, parameters; or none"},                                                \
        {"head", "TASK", .choices = FRAG_HEADS,                                                    \
         .help = "what the model ends in, as transformers names it; lm: words"},                   \
        {"labels", "N", .help = "classes of another head than lm; 1: a number (regression)"},      \
        {"problem-type", "WHAT", .choices = FRAG_PROBLEMS,                                         \
         .help = "what head sequence-classification learns"},                                      \
        {"loss", "HOW", .choices = "full|chunked",                                                 \
         .help = "chunked: logits of some tokens at a time, made anew in backward"},               \
        {"loss-chunk", "N", .help = "so of N tokens at a time"},                                   \
        {"leak", "WHAT", .choices = "none|losses|outputs|cycles",                                  \
         .help = "losses are added up as tensors, logits are kept in a list, or outputs are in "   \
                 "reference cycles"},                                                              \
        {"collect", "N", .help = "gc.collect() every N steps, with leak cycles; 0: never"},        \
        {"keep-outputs", "FLAG", .choices = "true|false",                                          \
         .help = "outputs = model(...), which stay until the next ones are there"},                \
        {"del", "FLAG", .choices = "true|false",                                                   \
         .help = "del loss, outputs when they have been used"},                                    \
        {"inplace", "FLAG", .choices = "true|false", .help = "nn.ReLU(inplace=True) in a resnet"}, \
        {"lora-rank", "N", .help = "rank of LoRA's adapters, which alone are trained"},            \
        {"lora-targets", "LAYERS",                                                                 \
         .help = "layers they stand beside, or all-linear; else those that peft takes"},           \
        {"lora-dropout", "P", .help = "of what goes into the adapters"},                           \
        {"lora-dora", "FLAG", .choices = "true|false",                                             \
         .help = "DoRA: lengths of the adapted weights' rows are trained as well"},                \
        {"quantize", "TYPE", .choices = "none|nf4|nf4-double|int8",                                \
         .help = "weights of 4 or 8 bits in the layers of blocks, as bitsandbytes has them"},      \
        {"prune", "SHARE",                                                                         \
         .help = "of the weights of blocks, left out by masks (torch.nn.utils.prune)"},            \
        {"attention", "HOW", .choices = "sdpa|eager|flash|efficient|math",                         \
         .help = "as PyTorch chooses its kernel, with scores as a tensor, or one kernel"},         \
        {"softmax-input", "FLAG", .choices = "true|false",                                         \
         .help = "softmax keeps what goes in for its derivative, as before PyTorch 1.11"},         \
        {"experts-implementation", "NAME", .choices = "grouped_mm|eager",                          \
         .help = "all experts in one product, or those that are hit one after the other"},         \
        {"expert-shares", "SHARES",                                                                \
         .help = "of tokens, with eager experts: N,N,... for each expert, or MIN..MAX at random"}, \
        {"keep-gradients", "FLAG", .choices = "true|false",                                        \
         .help = "zero_grad(set_to_none=False)"},                                                  \
        {"no-grad", "FLAG", .choices = "true|false", .help = "evaluate under torch.no_grad()"},    \
        {"empty-cache", "N", .help = "torch.cuda.empty_cache() every N steps"},                    \
        {"memory-fraction", "SHARE", .help = "torch.cuda.set_per_process_memory_fraction(SHARE)"}, \
        {"parallel", "HOW", .choices = "none|ddp|zero1|fsdp|pipeline|dp|tensor",                   \
         .help = "how several devices share the work: ZeRO 1 is zero1, ZeRO 3 is fsdp"},           \
        {"devices", "N", .help = "that share it"},                                                 \
        {"reshard", "FLAG", .choices = "true|false",                                               \
         .help = "with fsdp: blocks are given back behind forward (ZeRO 3), or not (ZeRO 2)"},     \
        {"schedule", "NAME", .choices = "1f1b|gpipe",                                              \
         .help = "of a pipeline: in which order its microbatches go forward and backward"},        \
        {"microbatches", "N",                                                                      \
         .help = "that a pipeline cuts a batch into, by default as many as devices"},              \
    {                                                                                              \
        "seed", "N", .help = "of lengths at random, or of all that is drawn"                       \
    }

/* The workload of a file ("-" is stdin), with the knobs that the command line gives above those of
 * the file; or the requests that it describes, see frag_workload_load. */
bool frag_workload_options_read(const frag_arguments *arguments, const char *path,
                                frag_workload *workload, frag_statistical *statistical,
                                frag_error *error);
/* false: a knob is given that does not go with what. except: those that do; ends with NULL. */
bool frag_workload_options_refuse(const frag_arguments *arguments, const char *what,
                                  const char *const *except, frag_error *error);

#endif
