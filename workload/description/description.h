/* What a workload file says: the network, and what is done with it.
 *
 * Everything that can be said stands in two kinds of tables: the fields of a network, one table a
 * family, with the names that Hugging Face's config.json has for them; and the knobs of a run. YAML
 * files, config.json and the command line are all read by them. */
#ifndef FRAG_DESCRIPTION_DESCRIPTION_H
#define FRAG_DESCRIPTION_DESCRIPTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/text.h"

typedef enum frag_family_id {
    FRAG_FAMILY_GPT2,
    FRAG_FAMILY_LLAMA,
    FRAG_FAMILY_BERT,
    FRAG_FAMILY_MISTRAL, /* these are llama with other defaults and switches */
    FRAG_FAMILY_QWEN2,
    FRAG_FAMILY_QWEN3,
    FRAG_FAMILY_PHI3,
    FRAG_FAMILY_GEMMA,
    FRAG_FAMILY_ROBERTA,     /* bert */
    FRAG_FAMILY_XLM_ROBERTA, /* roberta with the head's parameters first */
    FRAG_FAMILY_DISTILBERT,
    FRAG_FAMILY_DEBERTA_V2, /* bert with attention by distances */
    FRAG_FAMILY_ELECTRA,    /* bert with a narrow embedding */
    FRAG_FAMILY_ALBERT,     /* electra whose layers share parameters */
    FRAG_FAMILY_MPNET,      /* roberta with numbers of distances in the scores */
    FRAG_FAMILY_OPT,
    FRAG_FAMILY_GPT_NEO,
    FRAG_FAMILY_GPT_NEOX, /* Pythia */
    FRAG_FAMILY_FALCON,
    FRAG_FAMILY_BLOOM,
    FRAG_FAMILY_MPT, /* bloom, as far as positions go */
    FRAG_FAMILY_PHI,
    FRAG_FAMILY_STARCODER2, /* phi, as the next three */
    FRAG_FAMILY_STABLELM,
    FRAG_FAMILY_GPTJ,
    FRAG_FAMILY_NEMOTRON,
    FRAG_FAMILY_GEMMA2, /* llama, as those that follow */
    FRAG_FAMILY_GEMMA3,
    FRAG_FAMILY_GRANITE,
    FRAG_FAMILY_OLMO2,
    FRAG_FAMILY_SMOLLM3,
    FRAG_FAMILY_GLM,
    FRAG_FAMILY_GLM4, /* glm with norms behind */
    FRAG_FAMILY_COHERE,
    FRAG_FAMILY_VIT,
    FRAG_FAMILY_RESNET,
    FRAG_FAMILY_UNET, /* of diffusion, as the next */
    FRAG_FAMILY_FLUX,
    FRAG_FAMILY_FLUX2,
    FRAG_FAMILY_MIXTRAL, /* llama whose feed-forward parts are mixtures of experts */
    FRAG_FAMILY_QWEN3_MOE,
    FRAG_FAMILY_OLMOE,
    FRAG_FAMILY_QWEN2_MOE,
    FRAG_FAMILY_DEEPSEEK_V2,
    FRAG_FAMILY_DEEPSEEK_V3,
    FRAG_FAMILY_GPT_OSS,
    FRAG_FAMILY_BART,
    FRAG_FAMILY_T5,
    FRAG_FAMILY_MT5, /* t5 with other defaults */
    FRAG_FAMILY_CONVNEXT,
    FRAG_FAMILY_WHISPER,
    FRAG_FAMILY_MNASNET, /* these are torchvision's */
    FRAG_FAMILY_VGG,
    FRAG_FAMILY_MOBILENET_V2,
    FRAG_FAMILY_MOBILENET_V3,
    FRAG_FAMILY_REGNET,
    FRAG_FAMILY_EFFICIENTNET,
    FRAG_FAMILY_DENSENET,
    FRAG_FAMILY_DLRM,
    FRAG_FAMILY_GRAPHSAGE,
    FRAG_FAMILY_GCN, /* graphsage with other layers */
    FRAG_FAMILY_MODERNBERT,
    FRAG_FAMILY_COUNT
} frag_family_id;

typedef enum frag_activation {
    FRAG_GELU_NEW, /* the formula, operator by operator */
    FRAG_GELU,     /* one kernel, exact or tanh */
    FRAG_SILU,
    FRAG_RELU,
    FRAG_RELU2, /* squared */
} frag_activation;

/* Of T5: the activation of the feed-forward part, with a gate beside it or not. */
typedef enum frag_feed_forward {
    FRAG_FEED_RELU,
    FRAG_FEED_GELU,
    FRAG_FEED_GELU_NEW,
    FRAG_FEED_SILU,
    FRAG_FEED_GATED_RELU, /* the gated ones in the same order */
    FRAG_FEED_GATED_GELU,
    FRAG_FEED_GATED_GELU_NEW,
    FRAG_FEED_GATED_SILU,
} frag_feed_forward;

/* How DeepSeek chooses experts of a token: the best, those of the best groups, or with a bias for
 * the choice besides. */
typedef enum frag_routing_method {
    FRAG_ROUTING_GREEDY,
    FRAG_ROUTING_GROUPS,
    FRAG_ROUTING_BIASED,
} frag_routing_method;

/* Of a ResNet: two convolutions, or three of which the middle one is narrow. */
typedef enum frag_layer_kind { FRAG_LAYER_BASIC, FRAG_LAYER_BOTTLENECK } frag_layer_kind;

enum { FRAG_STAGES_MAX = 8, FRAG_UNET_LAYERS_MAX = 8, FRAG_TOKENS_MAX = 256 };

/* Lengths of batches, one after the other and again from the first; or drawn by the seed. */
typedef struct frag_lengths {
    uint64_t values[FRAG_TOKENS_MAX];
    uint32_t count;
    bool is_range; /* values[0] to values[1] */
} frag_lengths;

/* A number for each stage of a network. */
typedef struct frag_stages {
    uint64_t values[FRAG_STAGES_MAX];
    uint64_t count;
} frag_stages;

typedef struct frag_network {
    frag_family_id family;
    uint64_t vocabulary;
    uint64_t positions;
    uint64_t types; /* of tokens (BERT) */
    uint64_t width;
    uint64_t inner; /* of the feed-forward part */
    uint64_t layers;
    uint64_t heads;
    uint64_t key_heads; /* fewer than heads: grouped queries */
    uint64_t head_width;
    uint64_t experts;              /* a layer has so many; 0: none */
    uint64_t experts_chosen;       /* for each token */
    uint64_t expert_inner;         /* as inner, of an expert */
    uint64_t expert_every;         /* every so many layers have experts */
    uint64_t dense_layers;         /* the first ones, which have none */
    uint64_t shared_experts;       /* that every token goes to, as one wide one (DeepSeek) */
    uint64_t shared_inner;         /* its width; 0: there is none */
    bool has_shared_gate;          /* what it makes is multiplied by a number for each token */
    uint64_t router_groups;        /* of experts; 0: none */
    uint64_t router_groups_chosen; /* that a token's experts come from */
    uint64_t routing_method;       /* frag_routing_method */
    bool has_exact_router;         /* its weight and its logits are in fp32 */
    bool has_scored_routing; /* a sigmoid for each expert, and a bias in the choice (DeepSeek V3) */
    uint64_t query_rank;     /* width of what queries are made of (latent attention); 0: hidden */
    uint64_t key_rank;       /* so of keys and values, which a cache keeps; 0: not latent */
    uint64_t turned_width;   /* of a head's queries and keys, beside what is not turned, */
    uint64_t plain_width;
    uint64_t value_width;     /* and of its values */
    bool has_typed_routing;   /* weights of experts come in the type of the hidden states */
    bool has_normed_routing;  /* those of a token are divided by their sum */
    bool is_router_last;      /* its weight lies behind those of the experts */
    bool has_clipped_experts; /* they have biases, as the router, and clip what the gate gets */
    uint64_t encoder_layers;  /* of an encoder before a decoder */
    uint64_t encoder_heads;
    uint64_t encoder_inner;
    uint64_t mels;              /* numbers of a frame of a spectrogram (Whisper) */
    uint64_t encoder_positions; /* half as many as frames */
    uint64_t distances;         /* buckets of them, on either side (DeBERTa); 0: none */
    uint64_t position_buckets;  /* rows of a table of position biases (T5); 0: none */
    uint64_t feed_forward;      /* frag_feed_forward (T5), which says the activation, */
    bool is_gated;              /* and this */
    bool has_output_scale;      /* hidden states are scaled before the head */
    uint64_t embedding_width;   /* of words; projected to width (OPT) */
    uint64_t bias_buckets;      /* rows of a table of numbers for distances (MPNet) */
    uint64_t layer_groups;      /* of layers that share parameters (ALBERT), and */
    uint64_t group_layers;      /* layers of a group, which run one after the other */
    uint64_t classes;           /* of a classifier */
    uint64_t tables;            /* of embeddings (DLRM) */
    frag_lengths rows;          /* of table after table */
    uint64_t dense;             /* numbers of a sample */
    frag_stages bottom, top;    /* widths of linear layers below and above the interaction */
    bool is_sparse;             /* gradients of tables have the rows that were asked for */
    bool has_bags;              /* a sample asks a table for a sum of rows, not for one */
    uint64_t features;          /* numbers of a node of a graph */
    uint64_t image;             /* pixels along a side */
    uint64_t image_channels;
    uint64_t patch;             /* pixels along a side */
    frag_stages depths;         /* layers of each stage (ResNet, ConvNeXt) */
    frag_stages channels;       /* that each stage hands on */
    frag_stages stage_heads;    /* attention heads of each; one number: of all (U-Net) */
    frag_stages down_attention; /* 1: its layers have attention */
    frag_stages up_attention;   /* the same of the stages on the way up, the smallest first */
    uint64_t groups;            /* of channels in a norm */
    uint64_t out_channels;
    uint64_t text_tokens; /* that cross attention looks at */
    uint64_t text_width;
    uint64_t added_width; /* of what is added to the time: pooled text, sizes; 0: nothing (SDXL) */
    uint64_t added_time_width; /* of each of the six sizes */
    uint64_t single_layers;    /* blocks of one stream, behind those of two (FLUX) */
    frag_stages axes;          /* numbers that turn for each axis of a place (FLUX) */
    bool has_guidance;         /* a number that is added to the time (FLUX) */
    double feed_ratio;         /* width within the feed-forward parts to that outside (FLUX.2) */
    bool is_linear;            /* linear layers around a transformer, not convolutions of 1 x 1 */
    uint64_t variant;          /* of those that torchvision names, in the order of the field */
    bool has_batch_norms;      /* behind convolutions (VGG) */
    uint64_t layer;            /* frag_layer_kind */
    bool is_first_halved;      /* the first stage halves the image too */
    bool is_narrowed_halved;   /* the first of the three convolutions halves, not the second */
    uint64_t activation;       /* frag_activation */
    bool counts_positions;     /* from the ids, behind two that are taken (RoBERTa) */
    bool is_tied;              /* the head shares the embedding's weight */
    bool has_attention_bias;   /* all four layers of attention */
    bool has_query_bias;       /* those of queries, keys and values */
    bool has_inner_bias;
    bool has_head_bias;
    bool has_dense_bias; /* of the layer before, too (ModernBERT) */
    bool is_head_first;  /* its parameters come before all others (XLM-RoBERTa) */
    bool has_norm_bias;
    bool has_norms_first;  /* a block's norms are before its parts, not behind them (OPT) */
    bool has_head_norms;   /* of the queries and keys of each head */
    bool has_late_norms;   /* those come when all three are split into heads (Gemma 3) */
    bool has_whole_norms;  /* of the queries and keys of all heads together (OLMo 2) */
    bool has_pre_norms;    /* norms before attention and feed-forward part */
    bool has_post_norms;   /* norms behind them (Gemma 2) */
    bool has_exact_parts;  /* norms' weights and rotary angles are applied in fp32 (OLMo 2) */
    bool has_scales;       /* numbers that embedding, residual parts and logits are multiplied by */
    bool has_local_rope;   /* layers with a window have rotary angles of their own (Gemma 3) */
    bool has_half_rope;    /* angles of half a head's width, for both halves (gpt-oss) */
    bool has_paired_rope;  /* numbers that lie next to each other are turned together (GLM) */
    bool has_complex_rope; /* the same as complex numbers (DeepSeek V2) */
    bool has_centred_norms;  /* norms take the mean off, in fp32 (Cohere) */
    bool has_logit_scale;    /* logits are multiplied by a number */
    bool has_sinks;          /* each head has one more score, which nothing is read for (gpt-oss) */
    uint64_t unturned_every; /* every so many layers knows no positions; 0: none (SmolLM3) */
    bool is_eager;           /* attention has its scores as a tensor */
    bool has_wide_norms;     /* RMS norms multiply by 1 + weight, in fp32 */
    bool has_embedding_scale;
    bool has_shared_keys;    /* one head of keys and values for all (Falcon) */
    bool has_copied_keys;    /* heads of keys and values are copied for each of queries (Falcon) */
    bool has_alibi;          /* positions are numbers in the mask */
    bool has_norm_residual;  /* what is added to a part is what went into it, normed (BLOOM) */
    double clip;             /* queries, keys and values are kept within it; 0: are not (MPT) */
    uint64_t parallel_norms; /* of parallel parts, which may have one each */
    bool is_parallel;        /* attention and feed-forward part see the same hidden states */
    bool is_fused;           /* one layer makes queries, keys and values, one gate and up */
    bool is_feed_fused;      /* one makes gate and up, others queries, keys and values (GLM) */
    bool has_window;         /* attention looks back over a window only */
    uint64_t window;         /* tokens; 0: all */
    uint64_t full_layers;    /* so many layers come before those with a window */
    uint64_t full_every;     /* every so many layers has none; 0: no other */
    uint64_t neighbours;     /* tokens that other layers look at, on both sides (ModernBERT) */
    double score_cap;        /* scores, and logits, are kept within it by tanh; 0: are not */
    double logit_cap;
    double rotary_share; /* of a head's width that is turned */
    double embedding_dropout;
    double attention_dropout;
    double residual_dropout;
    double head_dropout;       /* of a head for classes; below 0: as residual_dropout */
    double pooler_dropout;     /* before its first layer (DeBERTa) */
    double answer_dropout;     /* of a head for answers (DistilBERT) */
    uint64_t pooling;          /* frag_pooling (ModernBERT) */
    double activation_dropout; /* within the feed-forward part */
    double alpha;              /* all channels are so many times as many (MnasNet, MobileNets) */
    double drop_path;          /* of the last layer: it is left out for so many images (ConvNeXt) */
    double layer_scale;        /* what a layer makes is multiplied by a number for each channel, at
                                  first this; 0: it is not */
} frag_network;

#define FRAG_TASKS "train|evaluate|generate|serve|rlhf|sft|grpo|ppo"
typedef enum frag_task {
    FRAG_TASK_TRAIN,
    FRAG_TASK_EVALUATE,
    FRAG_TASK_GENERATE,
    FRAG_TASK_SERVE,
    FRAG_TASK_RLHF, /* answers are generated and scored, then learnt from */
    FRAG_TASK_SFT,  /* other names, in a file and as an option: of train, */
    FRAG_TASK_GRPO, /* and of rlhf */
    FRAG_TASK_PPO,
} frag_task;

/* Of keys and values, where a server keeps them. */
typedef enum frag_cache_kind { FRAG_CACHE_CONTIGUOUS, FRAG_CACHE_PAGED } frag_cache_kind;

/* In the order of their numbers. */
#define FRAG_PRECISIONS "fp32|tf32|bf16|fp16|amp-bf16|amp-fp16|fp8|mixed-bf16"
typedef enum frag_precision {
    FRAG_PRECISION_FP32,
    FRAG_PRECISION_TF32,
    FRAG_PRECISION_BF16,
    FRAG_PRECISION_FP16,
    FRAG_PRECISION_AMP_BF16,
    FRAG_PRECISION_AMP_FP16,
    FRAG_PRECISION_FP8,        /* weights in bf16, products of blocks in 8 bits */
    FRAG_PRECISION_MIXED_BF16, /* shards in fp32, what is gathered of them in bf16 */
} frag_precision;

typedef enum frag_optimizer {
    FRAG_OPTIMIZER_ADAMW,
    FRAG_OPTIMIZER_ADAM,
    FRAG_OPTIMIZER_SGD,
    FRAG_OPTIMIZER_MOMENTUM,
    FRAG_OPTIMIZER_RMSPROP,
    FRAG_OPTIMIZER_ADAFACTOR,
    FRAG_OPTIMIZER_ADAMW_8BIT, /* these are bitsandbytes' */
    FRAG_OPTIMIZER_PAGED_ADAMW,
    FRAG_OPTIMIZER_PAGED_ADAMW_8BIT,
    FRAG_OPTIMIZER_GALORE_ADAMW, /* galore_torch's */
} frag_optimizer;

typedef enum frag_optimizer_loop {
    FRAG_LOOP_FOREACH, /* all parameters at once; PyTorch's default on a GPU */
    FRAG_LOOP_FUSED,
    FRAG_LOOP_SINGLE,
} frag_optimizer_loop;

/* Of which tokens ModernBERT classifies a sequence. */
typedef enum frag_pooling { FRAG_POOLING_CLS, FRAG_POOLING_MEAN } frag_pooling;

/* What stands on the hidden states of a model over text; in the order of their numbers. */
#define FRAG_HEADS "lm|sequence-classification|token-classification|question-answering"
typedef enum frag_head {
    FRAG_HEAD_LM,       /* words: the next ones, or those that are masked */
    FRAG_HEAD_SEQUENCE, /* classes of a sequence; one class: a number */
    FRAG_HEAD_TOKEN,    /* classes of each token */
    FRAG_HEAD_ANSWER,   /* where an answer begins and ends */
    FRAG_HEAD_COUNT
} frag_head;

/* What a head for classes of sequences learns, as transformers names it. auto: of one label a
 * number, of more a class. */
#define FRAG_PROBLEMS "auto|regression|single_label_classification|multi_label_classification"
typedef enum frag_problem {
    FRAG_PROBLEM_AUTO,
    FRAG_PROBLEM_REGRESSION, /* numbers, one for each label */
    FRAG_PROBLEM_SINGLE,
    FRAG_PROBLEM_MULTI, /* whether each label is true */
} frag_problem;

/* Linear layers that adapters stand beside, as bits; names as transformers has them. */
typedef enum frag_lora_target {
    FRAG_LORA_Q = 1 << 0,
    FRAG_LORA_K = 1 << 1,
    FRAG_LORA_V = 1 << 2,
    FRAG_LORA_O = 1 << 3,
    FRAG_LORA_GATE = 1 << 4,
    FRAG_LORA_UP = 1 << 5,
    FRAG_LORA_DOWN = 1 << 6,
    FRAG_LORA_QKV = 1 << 7,
    FRAG_LORA_GATE_UP = 1 << 8,
    FRAG_LORA_C_ATTN = 1 << 9, /* GPT-2 */
    FRAG_LORA_C_PROJ = 1 << 10,
    FRAG_LORA_C_FC = 1 << 11,
    FRAG_LORA_QUERY = 1 << 12, /* BERT */
    FRAG_LORA_KEY = 1 << 13,
    FRAG_LORA_VALUE = 1 << 14,
    FRAG_LORA_DENSE = 1 << 15,
    FRAG_LORA_Q_LIN = 1 << 16, /* DistilBERT */
    FRAG_LORA_K_LIN = 1 << 17,
    FRAG_LORA_V_LIN = 1 << 18,
    FRAG_LORA_OUT_LIN = 1 << 19,
    FRAG_LORA_LIN1 = 1 << 20,
    FRAG_LORA_LIN2 = 1 << 21,
    FRAG_LORA_QUERY_KEY_VALUE = 1 << 22, /* GPT-NeoX */
    FRAG_LORA_H_TO_4H = 1 << 23,
    FRAG_LORA_4H_TO_H = 1 << 24,
    FRAG_LORA_TO_Q = 1 << 25, /* diffusers */
    FRAG_LORA_TO_K = 1 << 26,
    FRAG_LORA_TO_V = 1 << 27,
    FRAG_LORA_TO_OUT = 1 << 28,
    FRAG_LORA_FC1 = 1 << 29, /* Phi, OPT */
    FRAG_LORA_FC2 = 1 << 30,
} frag_lora_target;
/* Too many bits for an enumeration. */
#define FRAG_LORA_WQKV (UINT64_C(1) << 31) /* ModernBERT */
#define FRAG_LORA_WI (UINT64_C(1) << 32)
#define FRAG_LORA_WO (UINT64_C(1) << 33)
#define FRAG_LORA_OUT_PROJ (UINT64_C(1) << 34) /* OPT, BART */
#define FRAG_LORA_FC_IN (UINT64_C(1) << 35)    /* GPT-J */
#define FRAG_LORA_FC_OUT (UINT64_C(1) << 36)
#define FRAG_LORA_QUERY_PROJ (UINT64_C(1) << 37) /* DeBERTa */
#define FRAG_LORA_KEY_PROJ (UINT64_C(1) << 38)
#define FRAG_LORA_VALUE_PROJ (UINT64_C(1) << 39)
#define FRAG_LORA_ADD_Q_PROJ (UINT64_C(1) << 40) /* FLUX.2 */
#define FRAG_LORA_ADD_K_PROJ (UINT64_C(1) << 41)
#define FRAG_LORA_ADD_V_PROJ (UINT64_C(1) << 42)
#define FRAG_LORA_TO_ADD_OUT (UINT64_C(1) << 43)
#define FRAG_LORA_TO_QKV_MLP_PROJ (UINT64_C(1) << 44)
#define FRAG_LORA_LINEAR_IN (UINT64_C(1) << 45)
#define FRAG_LORA_LINEAR_OUT (UINT64_C(1) << 46)
/* All but the head. */
#define FRAG_LORA_ALL (UINT64_C(1) << 47)
/* Of a layer that only `all` names. */
#define FRAG_LORA_REST (UINT64_C(1) << 48)

typedef enum frag_checkpoint {
    FRAG_CHECKPOINT_NONE,
    FRAG_CHECKPOINT_BLOCKS,    /* each block is made anew */
    FRAG_CHECKPOINT_SQRT,      /* √n of n blocks together */
    FRAG_CHECKPOINT_SELECTIVE, /* each, but for its products */
} frag_checkpoint;

/* What goes to the memory of the host in between, as bits. */
typedef enum frag_offload {
    FRAG_OFFLOAD_NONE = 0,
    FRAG_OFFLOAD_ACTIVATIONS = 1 << 0, /* what autograd saves */
    FRAG_OFFLOAD_OPTIMIZER = 1 << 1,   /* its state, and the step */
    FRAG_OFFLOAD_GRADIENTS = 1 << 2,   /* each as soon as it is there */
    FRAG_OFFLOAD_PARAMETERS = 1 << 3,  /* but those of the module that runs */
} frag_offload;

/* Whether all logits are there at once. */
typedef enum frag_loss { FRAG_LOSS_FULL, FRAG_LOSS_CHUNKED } frag_loss;

/* What a training loop keeps by mistake. */
typedef enum frag_leak {
    FRAG_LEAK_NONE,
    FRAG_LEAK_LOSSES,
    FRAG_LEAK_OUTPUTS,
    FRAG_LEAK_CYCLES, /* outputs in reference cycles, which only Python's collector frees */
} frag_leak;

enum {
    FRAG_LOSS_CHUNK_INITIAL = 1024,
    FRAG_GALORE_RANK_INITIAL = 128,
    FRAG_LABELS_INITIAL = 2,
    FRAG_GALORE_GAP_INITIAL = 200
};

/* Types of the weights of linear layers but the head's, as bitsandbytes has them. */
typedef enum frag_quantize {
    FRAG_QUANTIZE_NONE,
    FRAG_QUANTIZE_NF4,
    FRAG_QUANTIZE_NF4_DOUBLE, /* the scales of its blocks are quantised as well */
    FRAG_QUANTIZE_INT8,       /* LLM.int8(): inputs are quantised as well */
} frag_quantize;

/* How several devices share the work. */
typedef enum frag_parallel {
    FRAG_PARALLEL_NONE,
    FRAG_PARALLEL_DDP,   /* DistributedDataParallel: each has the model, gradients go in buckets */
    FRAG_PARALLEL_ZERO1, /* the same with ZeroRedundancyOptimizer: averages of a part only */
    FRAG_PARALLEL_FSDP,  /* FSDP2: each has a shard of every parameter */
    FRAG_PARALLEL_PIPELINE, /* each has a stage: some of the blocks */
    FRAG_PARALLEL_DATA,     /* DataParallel: the first has the model, and copies it in each pass */
    FRAG_PARALLEL_TENSOR,   /* each has a part of each linear layer of a block */
} frag_parallel;

/* In which order a stage's microbatches go forward and backward. */
typedef enum frag_schedule {
    FRAG_SCHEDULE_1F1B,
    FRAG_SCHEDULE_GPIPE, /* all forward, then all backward */
} frag_schedule;

/* How queries meet keys. */
typedef enum frag_attention_choice {
    FRAG_ATTENTION_SDPA,      /* scaled_dot_product_attention, whose kernel PyTorch chooses */
    FRAG_ATTENTION_EAGER,     /* transformers' attn_implementation="eager": scores are a tensor */
    FRAG_ATTENTION_FLASH,     /* sdpa_kernel(SDPBackend.FLASH_ATTENTION) */
    FRAG_ATTENTION_EFFICIENT, /* sdpa_kernel(SDPBackend.EFFICIENT_ATTENTION) */
    FRAG_ATTENTION_MATH,      /* sdpa_kernel(SDPBackend.MATH): separate operators */
} frag_attention_choice;

/* How experts are computed, named as in transformers. */
typedef enum frag_experts_implementation {
    FRAG_EXPERTS_GROUPED, /* all in one product; the default there */
    FRAG_EXPERTS_EAGER,   /* those that are hit, one after the other */
} frag_experts_implementation;

/* How a number is drawn, of a statistical workload. */
typedef enum frag_draw_kind {
    FRAG_DRAW_LIST,        /* one of the values, each as likely as the others */
    FRAG_DRAW_UNIFORM,     /* values[0] to values[1] */
    FRAG_DRAW_EXPONENTIAL, /* of the mean values[0]; in whole numbers: the geometric distribution */
    FRAG_DRAW_LOGNORMAL,   /* of the median values[0]; a deviation is a factor, values[1] */
    FRAG_DRAW_DOUBLING,    /* values[0] times 1, 2, 4, ... up to values[1], each half as likely */
} frag_draw_kind;

/* The factor of a lognormal draw is stored as FRAG_DRAW_FACTOR times it. */
enum { FRAG_DRAW_VALUES_MAX = 64, FRAG_DRAW_FACTOR = 65536, FRAG_NAME_BYTES = 64 };

typedef struct frag_draw {
    frag_draw_kind kind;
    uint32_t count; /* of values; 0: nothing was said */
    uint64_t values[FRAG_DRAW_VALUES_MAX];
} frag_draw;

typedef struct frag_workload {
    frag_network network;
    frag_precision stored; /* in which config.json says that weights are stored; FP32: or nothing */
    uint64_t task;
    uint64_t batch;
    frag_lengths tokens;
    frag_lengths lookups; /* rows that a sample asks each table for (DLRM) */
    frag_lengths nodes;   /* of the graph that is read, or of its part */
    frag_lengths edges;
    uint64_t target_tokens; /* that a decoder learns behind an encoder; 0: as tokens */
    uint64_t steps;
    uint64_t requests;          /* that a server gets */
    double arrival_rate;        /* of them in a step; 0: all are there from the start */
    frag_lengths arrivals;      /* the step of each, where they are listed */
    frag_lengths answer_tokens; /* of request after request; 0: new_tokens */
    uint64_t cache;             /* frag_cache_kind */
    uint64_t cache_block;       /* tokens in a block of a paged cache */
    uint64_t cache_tokens;      /* in all of it; 0: for a batch of the longest */
    uint64_t new_tokens;        /* that generation adds to each sequence */
    bool has_reference;         /* a frozen model scores answers too, or the one without adapters */
    bool has_reward;            /* another one rewards them */
    bool skips_adapters;        /* disable_adapter(); no knob */
    uint64_t accumulate;
    uint64_t precision;
    uint64_t optimizer;
    uint64_t optimizer_loop;
    uint64_t galore_rank; /* dimensions that GaLore keeps */
    uint64_t galore_gap;  /* steps until it looks for others */
    bool has_amsgrad;
    uint64_t checkpoint;
    uint64_t offload;          /* bits of frag_offload */
    uint64_t checkpoint_every; /* of blocks, the first among them */
    uint64_t head;             /* frag_head */
    uint64_t labels;           /* classes of one that is none of words */
    uint64_t problem_type;     /* frag_problem */
    uint64_t loss;             /* frag_loss */
    uint64_t loss_chunk;       /* tokens of a chunk */
    uint64_t leak;             /* frag_leak */
    bool keeps_outputs;        /* what the model returns has a name until it returns the next */
    bool is_deleting;          /* that name and the loss's are deleted when they have been used */
    bool is_inplace;           /* ReLUs write over their inputs (ResNet) */
    uint64_t lora_rank;        /* 0: all weights are trained */
    uint64_t lora_targets;     /* frag_lora_target; 0: those of the family */
    double lora_dropout;
    bool has_dora;      /* adapters have magnitudes */
    uint64_t quantize;  /* frag_quantize */
    uint64_t attention; /* frag_attention_choice */
    bool keeps_softmax_input;
    uint64_t experts_implementation;
    frag_lengths expert_shares; /* of the tokens, for expert after expert; or drawn by the seed */
    bool keeps_gradients;       /* zero_grad(set_to_none=False) */
    bool has_no_grad;           /* evaluation under torch.no_grad() */
    double prune;               /* share of the weights of blocks that masks leave out */
    uint64_t collect;           /* gc.collect() every so many steps; 0: never */
    uint64_t empty_cache;       /* every so many steps; 0: never */
    double memory_fraction;     /* of the card, that PyTorch may reserve */
    uint64_t seed;
    uint64_t parallel;     /* frag_parallel */
    uint64_t devices;      /* that share it */
    bool is_resharded;     /* FSDP gives a block back behind its forward pass */
    uint64_t schedule;     /* frag_schedule, of a pipeline */
    uint64_t microbatches; /* that it cuts a batch into; 0: as many as devices */
} frag_workload;

/* ---- the tables */
typedef enum frag_field_kind {
    FRAG_FIELD_COUNT,
    FRAG_FIELD_RATIO,
    FRAG_FIELD_FLAG,
    FRAG_FIELD_CHOICE,
    FRAG_FIELD_LENGTHS,
    FRAG_FIELD_SET,    /* some of the choices, as bits */
    FRAG_FIELD_STAGES, /* a list; choices is what it is where nothing is said */
    FRAG_FIELD_BYTES,
    FRAG_FIELD_NAME, /* FRAG_NAME_BYTES of text */
    FRAG_FIELD_DRAW, /* choices: "bytes", "number", or "lifetime", which may be forever */
    FRAG_FIELD_SPAN, /* a frag_draw of one value, or of two in any order; choices as above */
} frag_field_kind;

/* The most of a vocabulary or a length, and of rows and edges. */
enum { FRAG_FIELD_COUNT_MAX = 1 << 24, FRAG_FIELD_ROWS_MAX = 1 << 30 };

typedef struct frag_field {
    const char *key;    /* ours */
    const char *hf_key; /* those of config.json, "a|b", the first counts; NULL: not there */
    frag_field_kind kind;
    size_t offset;  /* in frag_network or frag_workload */
    double initial; /* what config.json leaves out is this; NAN: must be given */
    double min;
    double max;
    const char *choices; /* "a|b|c", in the order of their enumeration */
    const char *help;
} frag_field;

/* A field whose initial value is another one than in the table. */
typedef struct frag_field_default {
    const char *key;
    double initial;
} frag_field_default;

typedef struct frag_family_fields {
    const char *name;        /* in YAML */
    const char *model_types; /* of config.json, "a|b" */
    const char *summary;
    const frag_field *fields;           /* ends with {0} */
    const frag_field_default *defaults; /* ends with {0}; NULL: none */
    bool has_learnt_positions;          /* no sequence can be longer; width is split into heads */
    bool is_encoder;                    /* it generates nothing */
    uint64_t lora_default; /* targets that peft has for the family, and all that there are */
    uint64_t lora_targets; /* 0: adapters are not described */
    bool has_pairs;        /* batches are a source and a target */
    bool has_sounds;       /* batches are spectrograms and what was said */
    bool has_images;       /* batches are images, not sequences of tokens */
    bool has_samples;      /* batches are numbers and indices of tables */
    bool has_graphs;       /* batches are parts of a graph */
    bool has_no_blocks;    /* nothing that transformers can checkpoint */
    bool has_two_masks;    /* one for layers with a window beside one for those without */
    bool has_no_classes;   /* transformers has no head for classes of sequences */
    bool has_no_cache;     /* a loss is made without keys and values that are handed back */
    bool has_no_offload;   /* what comes back from the host lies in another order than it did */
    bool has_no_quantised; /* weights of 4 and 8 bits are not described */
    uint64_t image_min;    /* pixels along a side, where pooling needs some */
    bool is_listed;        /* its layers are torchvision's, and are not described */
    bool has_patches;      /* of latents, as tokens beside those of a text */
    bool is_diffusion;     /* batches are latents with a text; generating is denoising */
} frag_family_fields;

/* The number for a stage; one alone is of all. */
uint64_t frag_stages_at(const frag_stages *stages, uint64_t index);

/* The length with a number, from 0; of a range the one that the next random number says. */
uint64_t frag_lengths_at(const frag_lengths *lengths, uint64_t index, uint64_t *random);
uint64_t frag_lengths_largest(const frag_lengths *lengths);

/* May it end in that head (frag_head)? Encoders of one sequence end in any, decoders in words or in
 * classes of sequences. */
bool frag_family_has_head(const frag_family_fields *family, uint64_t head);

/* Does attention of that layer look back over a window only, and has the layer experts? */
bool frag_network_has_window(const frag_network *of, uint64_t layer);
bool frag_network_has_experts(const frag_network *of, uint64_t layer);

/* What its head learns: no FRAG_PROBLEM_AUTO; of tokens and answers FRAG_PROBLEM_SINGLE. */
frag_problem frag_workload_problem(const frag_workload *workload);

/* Are batches sequences of tokens? */
bool frag_workload_has_tokens(const frag_workload *workload);
/* Is its precision amp-bf16 or amp-fp16? */
bool frag_workload_has_autocast(const frag_workload *workload);
/* Is a length drawn by the seed? Then *longest is the same with the longest of each. */
bool frag_workload_is_drawn(const frag_workload *workload, frag_workload *longest);

/* Of a server: the tokens of an answer with that length of answer_tokens, and the most of any. */
uint64_t frag_workload_answer(const frag_workload *workload, uint64_t length);
uint64_t frag_workload_longest_answer(const frag_workload *workload);

extern const frag_family_fields frag_families[FRAG_FAMILY_COUNT];
extern const frag_field frag_knobs[];

/* A workload with nothing said yet: every knob at its default. */
void frag_workload_init(frag_workload *workload);

/* Reads a YAML file, or a config.json (by content), into an initialised workload. "-" is stdin. A
 * file may describe requests instead of a network: then statistical has phases, and the caller
 * destroys it in any case. It is {0} before; NULL: such files are refused. */
struct frag_statistical;
bool frag_workload_load(const char *path, frag_workload *workload,
                        struct frag_statistical *statistical, frag_error *error);
bool frag_workload_parse(const char *bytes, size_t length, frag_workload *workload,
                         struct frag_statistical *statistical, frag_error *error);

/* The knob of that name, which is in the table. */
const frag_field *frag_workload_knob(const char *key);

/* Does a knob that somebody gave say anything of this run? The error has no place. */
bool frag_workload_check_knob(const frag_workload *workload, const char *key, frag_error *error);

/* One knob as text: "batch", "8". The error has no place. */
bool frag_workload_set(frag_workload *workload, const char *key, const char *value,
                       frag_error *error);

/* The layers that adapters stand beside, as bits of frag_lora_target. */
uint64_t frag_workload_lora_targets(const frag_workload *workload);
/* Adds their names, each between quotes and a comma after each but the last; not all-linear. */
void frag_workload_name_targets(uint64_t targets, const char *quote, frag_text *text);
/* Batches have a multiple of so many tokens. */
uint64_t frag_workload_token_unit(const frag_workload *workload);
/* That a pipeline cuts a batch into. */
uint64_t frag_workload_microbatches(const frag_workload *workload);

/* Do fields and knobs go together? The last thing to ask before it is generated. */
bool frag_workload_check(const frag_workload *workload, frag_error *error);

#endif
