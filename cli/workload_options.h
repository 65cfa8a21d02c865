/* The options of a described workload, for every command that takes one. */
#ifndef FRAG_CLI_WORKLOAD_OPTIONS_H
#define FRAG_CLI_WORKLOAD_OPTIONS_H

#include "cli/command.h"
#include "workload/description/description.h"

/* Of a command's table: the knobs of docs/workloads.md. */
#define FRAG_WORKLOAD_OPTIONS                                                                      \
    {"task", "TASK", .choices = "train|evaluate|generate",                                         \
     .help = "training steps, or forward passes"},                                                 \
        {"batch", "N", .help = "sequences in a batch"},                                            \
        {"tokens", "LENGTHS",                                                                      \
         .help = "tokens in a sequence: N, N,N,... for batch after batch, or MIN..MAX at random"}, \
        {"new-tokens", "N", .help = "tokens that generation adds to each sequence"},               \
        {"steps", "N", .help = "steps"},                                                           \
        {"accumulate", "N", .help = "batches whose gradients are added up in one step"},           \
        {"precision", "TYPE", .choices = "fp32|tf32|bf16|fp16|amp-bf16|amp-fp16",                  \
         .help = "of weights and activations; amp: weights in fp32, autocast"},                    \
        {"optimizer", "NAME", .choices = "adamw|adam|sgd|momentum|rmsprop|adafactor",              \
         .help = "as in torch.optim"},                                                             \
        {"optimizer-loop", "HOW", .choices = "foreach|fused|single",                               \
         .help = "how the optimizer goes over the parameters"},                                    \
        {"amsgrad", "FLAG", .choices = "true|false",                                               \
         .help = "adam and adamw keep the largest average"},                                       \
        {"checkpoint", "WHAT", .choices = "none|blocks",                                           \
         .help = "activations of each block are made anew in backward"},                           \
        {"lora-rank", "N", .help = "rank of LoRA's adapters, which alone are trained"},            \
        {"lora-targets", "LAYERS",                                                                 \
         .help = "layers they stand beside, or all-linear; else those that peft takes"},           \
        {"lora-dropout", "P", .help = "of what goes into the adapters"},                           \
        {"quantize", "TYPE", .choices = "none|nf4|nf4-double",                                     \
         .help = "weights of 4 bits in the layers of blocks, as bitsandbytes has them"},           \
        {"keep-gradients", "FLAG", .choices = "true|false",                                        \
         .help = "zero_grad(set_to_none=False)"},                                                  \
        {"no-grad", "FLAG", .choices = "true|false", .help = "evaluate under torch.no_grad()"},    \
        {"empty-cache", "N", .help = "torch.cuda.empty_cache() every N steps"},                    \
        {"parallel", "HOW", .choices = "none|ddp", .help = "how several devices share the work"},  \
        {"devices", "N", .help = "that share it"},                                                 \
    {                                                                                              \
        "seed", "N", .help = "of lengths at random"                                                \
    }

/* The workload of a file ("-" is stdin), with the knobs that the command line gives above those of
 * the file. */
bool frag_workload_options_read(const frag_arguments *arguments, const char *path,
                                frag_workload *workload, frag_error *error);
/* false: a knob is given, where option has workloads of its own. */
bool frag_workload_options_refuse(const frag_arguments *arguments, const char *option,
                                  frag_error *error);

#endif
