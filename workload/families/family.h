/* Networks over the tape: each family builds its parameters in the order in which PyTorch moves
 * them to the GPU, and runs a forward pass operator by operator, names and all, as its Python does.
 */
#ifndef FRAG_FAMILIES_FAMILY_H
#define FRAG_FAMILIES_FAMILY_H

#include "workload/description/description.h"
#include "workload/tape/aten.h"

/* Of a matrix; a vector has no rows. */
typedef struct frag_shape {
    uint64_t rows;
    uint64_t columns;
} frag_shape;

/* Of a parameter: matrices of one shape, stacked along the dimensions before their own two. */
typedef struct frag_form {
    frag_shape shape;
    uint64_t matrices;
    uint32_t dimensions; /* in all */
    uint64_t length;     /* along the first of them */
    uint32_t moved;      /* its number in the order of moving to the GPU: submodules first */
} frag_form;

/* How a parameter lies on the GPU. */
typedef enum frag_parameter_role {
    FRAG_PARAMETER_PLAIN,
    FRAG_PARAMETER_PACKED, /* in 4 bits */
    FRAG_PARAMETER_ADAPTER,
    FRAG_PARAMETER_EXACT_ADAPTER, /* beside a layer that stays in fp32 */
    FRAG_PARAMETER_SAVED,         /* the trained copy of a layer, which comes behind adapters */
    FRAG_PARAMETER_ROWS,          /* each device has some of its rows: outputs of a layer */
    FRAG_PARAMETER_COLUMNS,       /* or of its columns: inputs */
} frag_parameter_role;

typedef struct frag_shards frag_shards;
typedef struct frag_block_groups frag_block_groups;

/* The part of a model that is on a device: some blocks, what makes hidden states of ids before the
 * first, the head behind the last. */
typedef struct frag_stage {
    uint64_t number;
    uint64_t first; /* block */
    uint64_t end;   /* the one behind its last */
    bool is_first;
    bool is_last;
} frag_stage;

typedef struct frag_model {
    const frag_workload *workload;
    frag_tensor *parameters; /* in the order of model.parameters() */
    size_t parameters_capacity;
    frag_form *forms; /* of each */
    size_t forms_capacity;
    frag_parameter_role *roles;
    size_t roles_capacity;
    uint32_t parameter_count;
    frag_tensor *buffers;
    size_t buffers_capacity;
    uint32_t *buffer_blocks; /* the block of each; UINT32_MAX: in none */
    size_t buffer_blocks_capacity;
    uint32_t buffer_count;
    uint32_t *block_starts; /* parameters with which blocks begin, and the one behind the last */
    size_t block_starts_capacity;
    uint32_t block_start_count;
    frag_shards *shards;       /* NULL: each device has all of each parameter */
    frag_block_groups *groups; /* NULL: a checkpoint is of one block */
    frag_stage stage;          /* all of it but in a pipeline */
    frag_dtype dtype;          /* of parameters */
    frag_dtype product_dtype;  /* beside quantised weights */
    bool has_packed;           /* one at least */
    bool is_frozen;            /* requires_grad_(False) */
    frag_tensor logits_bias;   /* a buffer (BART) */
    frag_tensor scale;         /* of a replica's embedding; 0: the first buffer is it */
} frag_model;

/* What a model returns besides its loss, where the program keeps it: logits first. */
typedef struct frag_outputs {
    frag_tensor *tensors;
    size_t capacity;
    uint32_t count;
} frag_outputs;

typedef struct frag_batch {
    frag_outputs *outputs; /* NULL: nothing is kept */
    uint64_t number;       /* of forward passes so far */
    frag_tensor ids;       /* what the program made of it: token ids, or images and their labels */
    frag_tensor labels;    /* the same tensor where the task has no others */
    frag_tensor ends;      /* of answers, of which labels are the begins */
    frag_tensor hidden;    /* what a stage of a pipeline gets in the place of ids */
    frag_tensor numbers;   /* of a recommender: what samples have besides indices, */
    frag_tensor offsets;   /* and where the indices of each begin */
    uint64_t lookups;      /* indices of a table for each sample */
    frag_tensor links;     /* of a graph: sources of edges, then their targets */
    uint64_t nodes;
    uint64_t edges;
    frag_tensor times;     /* of a diffusion: the step of each image, */
    frag_tensor text;      /* hidden states of a text, */
    frag_tensor pooled;    /* the pooled text and sizes of the image (SDXL) */
    frag_tensor sizes;     /* or guidance (FLUX) */
    frag_tensor places[2]; /* of a text's tokens and of patches (FLUX) */
    frag_tensor parts[2];  /* of what was predicted last: without the text, with it */
    uint64_t count;
    uint64_t tokens;
    uint64_t past; /* tokens before them, which the cache holds */
} frag_batch;

/* Keys and values that a model hands back. */
typedef struct frag_cached {
    frag_tensor window; /* its length, on the GPU; 0: none */
    frag_tensor keys;
    frag_tensor values;
} frag_cached;

enum { FRAG_BLOCK_KINDS_MAX = 4 };

typedef struct frag_cache {
    frag_cached *layers;
    uint64_t layer_count;
    uint64_t sequences;
    uint64_t next;         /* passes through a layer so far */
    uint64_t paged_tokens; /* keys and values are in a pool, and so many of them are read out of
                              it; 0: they are not */
    frag_tape_stretch blocks[FRAG_BLOCK_KINDS_MAX]; /* the first of each kind in a pass */
    uint64_t pass;                                  /* in which they ran */
} frag_cache;

/* Goes through the parameters of a model in order: makes them, or finds them again. */
typedef struct frag_walk {
    frag_tape *tape;
    const frag_workload *workload;
    frag_model *model; /* that is built; NULL: it is there */
    frag_tensor *at;   /* the next parameter of one that is there */
} frag_walk;

typedef struct frag_family {
    /* Allocates parameters and buffers. */
    void (*build)(frag_walk *at, const frag_network *of);
    /* The batch as the program makes it, on the GPU. */
    void (*load)(frag_tape *tape, const frag_model *model, frag_batch *batch);
    /* model(batch).loss: what the model returned besides is gone. NULL: a decoder. */
    frag_tensor (*loss)(frag_tape *tape, const frag_model *model, const frag_batch *batch);
    /* A decoder's last hidden states; the cache grows by the batch's tokens. past: NULL for
     * use_cache=False, and with checkpoints, where no keys and values are handed back. */
    frag_tensor (*hidden)(frag_tape *tape, const frag_model *model, const frag_batch *batch,
                          frag_cache *past);
} frag_family;

extern const frag_family frag_family_gpt2;
extern const frag_family frag_family_llama;
extern const frag_family frag_family_bert;
extern const frag_family frag_family_opt;
extern const frag_family frag_family_gpt_neo;
extern const frag_family frag_family_gpt_neox;
extern const frag_family frag_family_falcon;
extern const frag_family frag_family_bloom;
extern const frag_family frag_family_phi;
extern const frag_family frag_family_vit;
extern const frag_family frag_family_resnet;
extern const frag_family frag_family_unet;
extern const frag_family frag_family_flux;
extern const frag_family frag_family_flux2;
extern const frag_family frag_family_convnext;
extern const frag_family frag_family_bart;
extern const frag_family frag_family_t5;
extern const frag_family frag_family_whisper;
extern const frag_family frag_family_mnasnet;
extern const frag_family frag_family_vgg;
extern const frag_family frag_family_inverted; /* MobileNets and EfficientNet */
extern const frag_family frag_family_regnet;
extern const frag_family frag_family_densenet;
extern const frag_family frag_family_dlrm;
extern const frag_family frag_family_graph;
extern const frag_family frag_family_modernbert;

/* ---- linear layers (linear.c), named once for building a model and for running it */
typedef struct frag_linear {
    frag_tensor weight; /* 0: not there */
    frag_tensor bias;
    uint64_t columns;
    bool is_turned; /* transformers' Conv1D: the weight is [in, out] */
    bool is_apart;  /* x @ weight.T, and its bias behind; autocast keeps no cast of such a weight */
    bool is_flat;   /* its input is a matrix, of which no view is taken */
    uint64_t images;  /* whose gradients come with channels before pixels; 0: they do not */
    bool has_gaps;    /* only between those images; adapters do not see them */
    bool is_cut;      /* its input is a part of each sequence, and it has no bias */
    frag_tensor down; /* LoRA's two matrices; 0: none */
    frag_tensor up;
    frag_tensor magnitude; /* DoRA's length of each row; 0: none */
    uint64_t rank;
    double dropout;
    bool is_packed; /* the weight is of 4 bits */
    bool is_float8; /* products have factors in 8 bits */
    frag_aten_packed packed;
    frag_parameter_role part; /* that a device has of it, with tensor parallelism */
} frag_linear;

frag_tensor frag_walk_parameter(frag_walk *at, frag_shape shape);
/* A stack of matrices: of a layer's experts; of the weight of a Conv1d, one for each output. */
frag_tensor frag_walk_stack(frag_walk *at, frag_shape shape, uint64_t matrices);
/* The weight of a Conv2d: a square matrix for each of its outputs and of their inputs. */
typedef struct frag_kernels {
    uint64_t side;
    uint64_t inputs; /* of each output */
    uint64_t outputs;
} frag_kernels;
frag_tensor frag_walk_kernels(frag_walk *at, frag_kernels of);
/* One that is in fp32 whatever the others are in. */
frag_tensor frag_walk_exact(frag_walk *at, frag_shape shape);
/* One that is not trained in any case. */
frag_tensor frag_walk_frozen(frag_walk *at, frag_shape shape);
/* register_buffer(); nothing where the model is there. */
void frag_walk_buffer(frag_walk *at, uint64_t count, frag_dtype dtype);
/* target: FRAG_LORA_Q, ...; a layer that is none is named 0. */
frag_linear frag_walk_linear(frag_walk *at, frag_shape shape, bool has_bias, uint64_t target);
/* Of the copy of a layer that is trained beside adapters (modules_to_save). */
frag_tensor frag_walk_saved(frag_walk *at, frag_shape shape);
/* The layer whose outputs are classes. Beside adapters a copy of it is trained, without an adapter
 * of its own; the layer stays. */
frag_linear frag_walk_classes(frag_walk *at, frag_shape shape, bool has_bias);
/* Without a bias; where others are quantised, it stays in fp32 (_keep_in_fp32_modules). */
frag_linear frag_walk_exact_linear(frag_walk *at, frag_shape shape, uint64_t target);
/* transformers' Conv1D, a linear layer with a bias whose weight has a row for each input. */
frag_linear frag_walk_conv1d(frag_walk *at, frag_shape shape, uint64_t target);
frag_pair frag_walk_norm(frag_walk *at, uint64_t width);
frag_pair frag_walk_norm_with(frag_walk *at, uint64_t width, bool has_bias);
frag_tensor frag_walk_apply(frag_tape *tape, frag_tensor x, const frag_linear *of);
/* x.view(heads).transpose(1, 2); is_copied: its gradient comes with heads before tokens, and is
 * copied. x is used up. */
frag_tensor frag_walk_split_heads(frag_tape *tape, frag_tensor x, bool is_copied);
/* out(attention(queries, keys, values)), which are used up; out: NULL: none. */
frag_tensor frag_walk_attend(frag_tape *tape, frag_tensor qkv[3], const frag_attention_shape *shape,
                             const frag_linear *out);
/* The same of what attention made. */
frag_tensor frag_walk_put_out(frag_tape *tape, frag_tensor made, frag_tensor qkv[3],
                              const frag_linear *out);

/* The type that products with weights of 4 bits are made in. */
frag_dtype frag_model_product_type(const frag_workload *workload);
/* FRAG_F32: there is no autocast. */
frag_dtype frag_model_autocast_type(const frag_workload *workload);
/* Of parameters when they come: quantised, a model is loaded in the type of its products. */
frag_dtype frag_model_loaded_type(const frag_model *model);
/* What peft does to a quantised model that is built: the rest is widened, adapters come. */
void frag_model_prepare(frag_tape *tape, frag_model *model);

/* ---- mixtures of experts (experts.c) */
typedef struct frag_experts {
    frag_tensor router, router_bias;   /* biases: 0: not there */
    frag_tensor choice_bias;           /* a buffer, which is added where experts are chosen */
    frag_tensor gate_up, gate_up_bias; /* of all experts */
    frag_tensor down, down_bias;
    uint64_t place; /* among the layers with experts */
} frag_experts;

/* How many layers have experts? */
uint64_t frag_network_expert_layers(const frag_network *of);
frag_experts frag_walk_experts(frag_walk *at, const frag_network *of, uint64_t place);
/* What the router hands back. */
typedef struct frag_routing {
    frag_tensor logits;
    frag_tensor weights; /* of the chosen experts of each row */
    frag_tensor chosen;
} frag_routing;

/* kept: what the router handed back, which the caller drops. */
frag_tensor frag_experts_apply(frag_tape *tape, const frag_model *model, const frag_experts *at,
                               frag_tensor x, const frag_batch *batch, frag_routing *kept);
void frag_routing_drop(frag_tape *tape, const frag_routing *of);

/* ---- norms (norms.c) */
/* Over rows of that width, as the network's flags say. */
frag_tensor frag_network_normalise(frag_tape *tape, const frag_network *of, frag_tensor x,
                                   frag_tensor weight, uint64_t width);

/* ---- decoders (decoder.c): keys and values of past tokens, loss, logits of the last token */
/* Keys that queries of a batch look at in such a layer. */
uint64_t frag_network_keys(const frag_network *of, bool has_window, const frag_batch *batch);
/* The mask of layers with a window; 0: sequences are shorter, and need none. */
frag_tensor frag_decoder_see_window(frag_tape *tape, const frag_network *of,
                                    const frag_batch *batch);
/* The mask of eager attention, by which a token sees what is before it, in a window if there is
 * one; 0: attention is another. */
frag_tensor frag_decoder_see_before(frag_tape *tape, const frag_model *model,
                                    const frag_batch *batch, frag_dtype dtype);
/* The attention of a decoder: eager, or else sdpa_attention_forward, for which mask is what a query
 * sees, 0: all before it. weights: what eager attention hands out besides, owned by the caller. */
frag_tensor frag_decoder_attend(frag_tape *tape, const frag_network *of, const frag_tensor qkv[3],
                                const frag_eager_attention *how, frag_tensor *weights);
/* dropout(back(act(feed(x)))); x is borrowed. */
frag_tensor frag_decoder_feed(frag_tape *tape, const frag_model *model, const frag_linear *feed,
                              const frag_linear *back, frag_tensor x);
frag_cache frag_cache_create(const frag_model *model, uint64_t sequences);
/* What a layer has of keys and values behind those of before; the names become all of them. cache:
 * NULL: there were none. */
void frag_cache_append(frag_tape *tape, const frag_network *of, frag_cache *cache, frag_tensor *key,
                       frag_tensor *value);
void frag_cache_destroy(frag_tape *tape, frag_cache *cache);
/* frag_model_pass_block under a cache, or without one (NULL). Blocks of one kind are alike but for
 * the numbers in their weights: behind the past only the first of them runs, where nothing needs
 * gradients. */
typedef struct frag_block_place {
    uint64_t number;
    uint32_t kind; /* less than FRAG_BLOCK_KINDS_MAX */
} frag_block_place;

void frag_cache_pass_block(frag_tape *tape, const frag_model *model, frag_cache *cache,
                           frag_block_place place, const frag_region_call *block,
                           frag_tensor *hidden);
frag_tensor frag_decoder_loss(frag_tape *tape, const frag_family *family, const frag_model *model,
                              const frag_batch *batch);
/* What a stage of a pipeline makes: hidden states, or behind the last logits. */
/* What a decoder ends in: the words turned around where they are not shared, or classes. */
void frag_decoder_walk_head(frag_walk *at, const frag_network *of);
frag_tensor frag_decoder_stage(frag_tape *tape, const frag_family *family, const frag_model *model,
                               const frag_batch *batch);
/* What a copy of the model makes, which has no cache: logits, and their loss. */
frag_tensor frag_decoder_replica(frag_tape *tape, const frag_family *family,
                                 const frag_model *model, const frag_batch *batch,
                                 frag_tensor *loss);
frag_tensor frag_decoder_logits(frag_tape *tape, const frag_family *family, const frag_model *model,
                                const frag_batch *batch, frag_cache *past);
/* The log-probability of each of the last tokens, so many of a sequence; no cache is used. */
frag_tensor frag_decoder_score(frag_tape *tape, const frag_family *family, const frag_model *model,
                               const frag_batch *batch, uint64_t answer);

/* ---- convolutions (convolutions.c) */
/* An image with equal sides on its way through a network. */
typedef struct frag_picture {
    frag_tensor pixels;
    uint64_t side;
} frag_picture;

/* What all of a forward pass over images knows. */
typedef struct frag_image_pass {
    frag_tape *tape;
    const frag_model *model;
    const frag_network *network;
    uint64_t batch;
} frag_image_pass;

/* What is done in place with the output of a layer. */
typedef enum frag_in_place {
    FRAG_IN_PLACE_NONE,
    FRAG_IN_PLACE_RELU,
    FRAG_IN_PLACE_COPIED, /* silu, hardswish, relu6: a copy of what goes in is saved */
} frag_in_place;

/* A convolution without a bias, and the batch norm behind it. */
typedef struct frag_normed {
    frag_tensor weight; /* 0: not there */
    frag_pair norm;
    uint64_t in, out, kernel, stride;
    uint64_t groups; /* of channels; 0: one */
    bool is_depthwise;
    frag_in_place activation; /* of frag_unit_apply */
} frag_normed;

frag_picture frag_picture_keep(frag_tape *tape, frag_picture x);
/* name = value */
void frag_picture_set(frag_tape *tape, frag_picture *name, frag_picture value);
/* x = max_pool2d(x); window: its side is that of x. */
void frag_picture_max_pool(frag_tape *tape, frag_picture *x, frag_window window);
/* The batch norm alone. */
frag_pair frag_walk_batch_norm(frag_walk *at, uint64_t channels);
frag_normed frag_walk_normed(frag_walk *at, frag_normed shape);
/* norm(convolution(x)); x is used up when the convolution is done. */
frag_picture frag_normed_apply(const frag_image_pass *in, const frag_normed *at, frag_picture x);
/* torchvision's Conv2dNormActivation, which holds x, borrowed, until it is through. */
frag_picture frag_unit_apply(const frag_image_pass *in, const frag_normed *at, frag_picture x);
/* torchvision's SqueezeExcitation: a number for each channel of each image, by two convolutions of
 * one pixel, that the channel is multiplied by. */
typedef struct frag_squeeze {
    frag_pair narrow, widen;
    uint64_t channels, squeezed; /* 0: there is none */
    bool is_silu;                /* in place between them; else relu */
    bool is_hard;                /* hardsigmoid makes the numbers; else sigmoid */
} frag_squeeze;

frag_squeeze frag_walk_squeeze(frag_walk *at, frag_squeeze shape);
/* x is borrowed. */
frag_picture frag_squeeze_apply(const frag_image_pass *in, const frag_squeeze *at, frag_picture x);
/* A number of channels in multiples of step, at most a tenth below what is asked for
 * (_make_divisible). */
uint64_t frag_round_channels(double asked, uint64_t step);

/* ---- a layer of an encoder (stacks.c), as BERT and ViT have it */
typedef struct frag_encoder_layer {
    frag_linear qkv[3], out, feed, back;
    frag_pair first, second;
} frag_encoder_layer;

/* ---- heads for classes and answers on an encoder (heads.c) */
typedef struct frag_class_head {
    frag_linear dense; /* no weight: there is none */
    frag_pair last;
    frag_linear classes;
} frag_class_head;

frag_class_head frag_walk_class_head(frag_walk *at, const frag_network *of);
/* What BERT and ALBERT make of the first token while their names are still there; 0: the family
 * does so behind them, or the head is another. */
frag_tensor frag_class_head_pool(frag_tape *tape, const frag_model *model,
                                 const frag_class_head *at, const frag_batch *batch,
                                 frag_tensor hidden);
/* What a model returns to its head, which keeps it until it is through. */
typedef struct frag_class_input {
    frag_tensor hidden;
    frag_tensor pooled; /* 0: not there */
} frag_class_input;
/* Both are used up. */
frag_tensor frag_class_head_loss(frag_tape *tape, const frag_model *model,
                                 const frag_class_head *at, const frag_batch *batch,
                                 const frag_class_input *from);

/* How far tokens are apart (DeBERTa): which they see, a number for each pair, and what the numbers
 * mean. */
typedef struct frag_distances {
    frag_tensor mask, places, rows;
} frag_distances;

/* What a layer is called with besides hidden states. */
typedef struct frag_encoder_call {
    const frag_model *model;
    frag_encoder_layer at;
    frag_batch batch;
    frag_distances distances; /* 0s: there are none */
} frag_encoder_call;

/* ---- attention by distances (deberta.c) */
/* Mask and places, owned by the caller; mask: which tokens are there. */
frag_distances frag_distances_make(frag_tape *tape, const frag_batch *batch, frag_tensor mask);
frag_tensor frag_distances_attend(frag_tape *tape, const frag_encoder_call *call, frag_tensor x);

/* Queries, keys and values, heads before tokens, owned by the caller. */
void frag_encoder_project(frag_tape *tape, const frag_encoder_layer *at, frag_tensor x,
                          const frag_batch *batch, frag_tensor qkv[3]);
/* Attention of these; weights: what eager attention hands out besides, owned by the caller. */
frag_tensor frag_encoder_mix(frag_tape *tape, const frag_model *model, const frag_tensor qkv[3],
                             const frag_batch *batch, frag_tensor *weights);
/* out: NULL: what attention makes is not multiplied. */
frag_tensor frag_encoder_attend(frag_tape *tape, const frag_model *model,
                                const frag_encoder_layer *at, frag_tensor x,
                                const frag_batch *batch, const frag_linear *out,
                                frag_tensor *weights);

/* ---- an encoder and a decoder (stacks.c), as BART and Whisper have them */
typedef struct frag_attention_layer {
    frag_linear k, v, q, out;
    frag_pair norm;
} frag_attention_layer;

typedef struct frag_stack_block {
    frag_attention_layer self, cross; /* cross: of a decoder */
    frag_linear feed, back;
    frag_pair norm;
} frag_stack_block;

/* How many blocks there are and how wide they are. */
typedef struct frag_stack {
    uint64_t layers, heads, inner;
    bool is_decoder;
    bool has_key_bias;
} frag_stack;

frag_stack frag_stack_name(const frag_network *of, bool is_decoder);
frag_stack_block frag_walk_stack_block(frag_walk *at, const frag_network *of, const frag_stack *in);

/* ---- parameters in shards (shards.c): FSDP2's fully_shard of each block, then of the model */
/* Takes a model that was built on the host to the GPU and cuts its parameters; this is one of so
 * many devices. */
frag_shards *frag_shards_create(frag_tape *tape, frag_model *model, uint64_t rank,
                                uint64_t devices);
void frag_shards_destroy(frag_shards *shards);
/* What the optimizer sees on the GPU: the shards, or none. Owned by shards. */
const frag_model *frag_shards_model(const frag_shards *shards);
/* Around the model's forward pass; loss is what it returns. */
void frag_shards_begin(frag_tape *tape, const frag_model *model);
void frag_shards_end(frag_tape *tape, const frag_model *model, frag_tensor loss);
/* Around a block: its input, to be dropped by the caller; its output. */
frag_tensor frag_shards_enter(frag_tape *tape, const frag_model *model, uint64_t block,
                              frag_tensor input);
void frag_shards_leave(frag_tape *tape, const frag_model *model, uint64_t block,
                       frag_tensor output);

/* ---- checkpoints around groups of blocks (groups.c) */
frag_block_groups *frag_block_groups_create(const frag_workload *workload);
/* NULL is allowed. */
void frag_block_groups_destroy(frag_block_groups *groups);
/* Blocks of one kind, one after the other: hidden, which goes into the first of a group, becomes
 * what comes out of its last. Between them nothing else may be done with it. */
void frag_block_groups_pass(frag_tape *tape, frag_block_groups *groups,
                            const frag_region_call *block, bool is_last, frag_tensor *hidden);

/* ---- layers in parts (linear.c): parallelize_module of each block */
/* Cuts the layers of a model that is built, whose workload becomes that of one of so many devices.
 */
void frag_model_cut_layers(frag_tape *tape, frag_model *model, frag_workload *local);

/* ---- rotary positions (rotary.c) */
typedef struct frag_rope {
    frag_tensor cosine;
    frag_tensor sine;
} frag_rope;

/* width: of a head, as far as it is turned. Both tensors are owned by the caller. */
frag_rope frag_rope_make(frag_tape *tape, uint64_t width, uint64_t tokens, frag_dtype dtype);
/* The same angles once, where frag_rope_make has them twice for both halves of a head. */
frag_rope frag_rope_make_half(frag_tape *tape, uint64_t width, uint64_t tokens, frag_dtype dtype);
/* The same as complex numbers (DeepSeek V2), as cosine alone. */
frag_rope frag_rope_make_complex(frag_tape *tape, uint64_t width, uint64_t tokens);
/* How much of a head GPT-NeoX and Phi turn by its position. */
uint64_t frag_rope_width(const frag_network *of);
/* The part of each head that is turned, and what is behind it (which may be nothing). */
typedef struct frag_rope_parts {
    frag_tensor turned;
    frag_tensor passed;
} frag_rope_parts;

/* Both parts are owned by the caller. */
frag_rope_parts frag_rope_split(frag_tape *tape, frag_tensor x, uint64_t head_width,
                                uint64_t width);
/* x * cos + rotate_half(x) * sin */
frag_tensor frag_rope_apply(frag_tape *tape, frag_tensor x, frag_rope angles);
/* Both halves of x by angles of half its width: cat(x1 * cos - x2 * sin, x2 * cos + x1 * sin) */
frag_tensor frag_rope_apply_half(frag_tape *tape, frag_tensor x, frag_rope angles);
/* queries and keys, x * cos + rotate_half(x) * sin, or in pairs, by angles of half the width:
 * cat(x1 * cos - x2 * sin, x2 * cos + x1 * sin) of every second number each. */
void frag_rope_apply_apart(frag_tape *tape, frag_tensor *const names[2], frag_rope angles,
                           bool is_paired);
/* queries and keys as complex numbers times such angles, in fp32; is_moved: the gradient of queries
 * comes with tokens before heads */
void frag_rope_apply_complex(frag_tape *tape, frag_tensor *const names[2], frag_rope angles,
                             bool is_moved);
/* As frag_rope_apply, of numbers in pairs by angles that stand in pairs (repeat_interleave). */
frag_rope frag_rope_pair(frag_tape *tape, frag_rope angles);
/* Queries and keys, of which the first part of each head is turned and the rest put behind it:
 * cat(turned, rest), both when both are turned. */
void frag_rope_turn_parts(frag_tape *tape, const frag_network *of, frag_tensor qkv[3],
                          frag_rope angles);
/* The same of x.float(), made for each of both products. */
frag_tensor frag_rope_apply_wide(frag_tape *tape, frag_tensor x, frag_rope angles);

/* ---- latent attention (latent.c) */
typedef struct frag_latent {
    frag_linear query_down; /* of no query_rank: not there */
    frag_tensor query_norm;
    frag_linear query, down, up, out;
    frag_tensor norm;
} frag_latent;

frag_latent frag_walk_latent(frag_walk *at, const frag_network *of);
frag_tensor frag_latent_attend(frag_tape *tape, const frag_model *model, const frag_latent *at,
                               frag_tensor x, frag_rope angles, const frag_batch *batch,
                               frag_cache *past);

/* ---- shared by families */
/* Its parameters and buffers come. */
void frag_model_build(frag_tape *tape, const frag_family *family, frag_model *model);
/* With LoRA it is frozen. */
frag_tensor frag_model_add(frag_tape *tape, frag_model *model, frag_shape shape);
/* Of the last count parameters the last moved ones are named before the others, though they came
 * behind them. None has adapters. */
void frag_model_name_first(frag_model *model, uint32_t count, uint32_t moved);
/* What is kept of its parameters. */
void frag_model_free(frag_model *model);
/* A block begins here, or the last one has ended. */
void frag_model_mark_block(frag_model *model);
/* Embeddings that gradients are wanted of, so that checkpointed blocks behind frozen weights have
 * some: enable_input_require_grads. In evaluation too, where nothing is checkpointed. */
void frag_model_require_inputs(frag_tape *tape, const frag_model *model, frag_tensor hidden);
bool frag_model_has_checkpoints(const frag_model *model);
/* In training a share of the numbers is dropped, where it is not 0. */
bool frag_model_drops(const frag_model *model, double share);
frag_tensor frag_model_drop_out(frag_tape *tape, const frag_model *model, frag_tensor x,
                                double share);
/* So, by residual_dropout. */
frag_tensor frag_model_drop_residual(frag_tape *tape, const frag_model *model, frag_tensor x);
/* Of a layer in which a batch attends to itself and to the past. */
frag_attention_shape frag_model_attention(const frag_model *model, const frag_batch *batch);
/* What comes out of a block, which is made anew for its gradients where it has a checkpoint. */
frag_tensor frag_model_call(frag_tape *tape, const frag_model *model, const frag_region_call *block,
                            frag_tensor input);
/* The same of a block of a decoder, whose parameters may lie in shards; hidden, which goes in,
 * becomes what comes out. */
void frag_model_pass_block(frag_tape *tape, const frag_model *model, uint64_t number,
                           const frag_region_call *block, frag_tensor *hidden);
/* transformers' find_packed_sequence_indices, which is asked where no cache is used: none are
 * packed. */
void frag_model_find_packed(frag_tape *tape, const frag_model *model, const frag_batch *batch,
                            const frag_cache *past);
/* ids of tokens made on the host and copied; name = ..., so that the old ones go afterwards. */
void frag_family_load_tokens(frag_tape *tape, const frag_model *model, frag_batch *batch);
/* The same for a source and a target, of which the labels are. */
void frag_family_load_pairs(frag_tape *tape, const frag_model *model, frag_batch *batch);
/* warn_if_padding_and_no_attention_mask: is the first or the last of the ids padding? */
void frag_family_look_for_padding(frag_tape *tape, const frag_batch *batch);
/* shift_tokens_right: what a decoder reads, the labels moved by one. */
frag_tensor frag_family_shift(frag_tape *tape, const frag_batch *batch);
/* Images of the model's type and their classes; a transformer over them has as many tokens as
 * positions. */
void frag_family_load_images(frag_tape *tape, const frag_model *model, frag_batch *batch);
/* Logits or what else a model returns; borrowed. */
void frag_family_return(frag_tape *tape, const frag_batch *batch, frag_tensor made);
/* transformers' ForCausalLMLoss: logits in fp32, labels moved by one. Borrowed arguments. */
frag_tensor frag_family_causal_loss(frag_tape *tape, frag_tensor logits, const frag_batch *batch);
/* The loss of logits, which a model returns as well; they are used up. */
frag_tensor frag_family_loss(frag_tape *tape, frag_tensor logits, const frag_batch *batch);
/* Of a head for classes, by what it learns; logits are used up. */
frag_tensor frag_family_class_loss(frag_tape *tape, const frag_model *model, frag_tensor logits,
                                   const frag_batch *batch);
/* Logits of a pooled state, which is used up by then, and their loss. */
frag_tensor frag_family_classify(frag_tape *tape, const frag_linear *head, frag_tensor pooled,
                                 const frag_batch *batch);
/* The halves of each row. */
void frag_family_halve(frag_tape *tape, frag_tensor both, frag_tensor parts[2]);
/* The next operator saves x, if a gradient is wanted of it. */
void frag_family_will_save(frag_tape *tape, frag_tensor x);
frag_tensor frag_family_activate(frag_tape *tape, frag_tensor x, frag_activation activation);
/* torch.arange(tokens) + past, as int64. */
frag_tensor frag_family_positions(frag_tape *tape, uint64_t tokens);
/* The same, but in a stage of a pipeline, where nothing is past: torch.arange(tokens). */
frag_tensor frag_model_positions(frag_tape *tape, const frag_model *model, uint64_t tokens);

#endif
