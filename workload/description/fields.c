/* The tables: fields of each family, knobs of a run. */
#include <math.h>

#include "workload/description/description.h"

#define NETWORK(name) offsetof(frag_network, name)
#define WORKLOAD(name) offsetof(frag_workload, name)
#define ACTIVATIONS "gelu_new|gelu|silu|relu"
#define LORA_TARGETS                                                                               \
    "q_proj|k_proj|v_proj|o_proj|gate_proj|up_proj|down_proj|qkv_proj|gate_up_proj|"               \
    "c_attn|c_proj|c_fc|query|key|value|dense|q_lin|k_lin|v_lin|out_lin|lin1|lin2|"                \
    "query_key_value|dense_h_to_4h|dense_4h_to_h|all-linear"
#define LORA_QV (FRAG_LORA_Q | FRAG_LORA_V)
#define LORA_LLAMA                                                                                 \
    (LORA_QV | FRAG_LORA_K | FRAG_LORA_O | FRAG_LORA_GATE | FRAG_LORA_UP | FRAG_LORA_DOWN)
#define LORA_PHI (FRAG_LORA_QKV | FRAG_LORA_O | FRAG_LORA_GATE_UP | FRAG_LORA_DOWN)
#define LORA_GPT2 (FRAG_LORA_C_ATTN | FRAG_LORA_C_PROJ | FRAG_LORA_C_FC)
#define LORA_BERT (FRAG_LORA_QUERY | FRAG_LORA_KEY | FRAG_LORA_VALUE | FRAG_LORA_DENSE)
#define LORA_DISTILBERT                                                                            \
    (FRAG_LORA_Q_LIN | FRAG_LORA_K_LIN | FRAG_LORA_V_LIN | FRAG_LORA_OUT_LIN | FRAG_LORA_LIN1 |    \
     FRAG_LORA_LIN2)

enum { COUNT_MAX = 1 << 24 };

static const frag_field gpt2_fields[] = {
    {"vocabulary", "vocab_size", FRAG_FIELD_COUNT, NETWORK(vocabulary), 50257, 2, COUNT_MAX, NULL,
     "entries of the vocabulary"},
    {"positions", "n_positions", FRAG_FIELD_COUNT, NETWORK(positions), 1024, 1, COUNT_MAX, NULL,
     "the longest sequence"},
    {"width", "n_embd", FRAG_FIELD_COUNT, NETWORK(width), 768, 1, 65536, NULL,
     "of the hidden states"},
    {"layers", "n_layer", FRAG_FIELD_COUNT, NETWORK(layers), 12, 1, 1000, NULL, "blocks"},
    {"heads", "n_head", FRAG_FIELD_COUNT, NETWORK(heads), 12, 1, 1024, NULL, "attention heads"},
    {"inner", "n_inner", FRAG_FIELD_COUNT, NETWORK(inner), 0, 0, 1 << 20, NULL,
     "width of the feed-forward part; 0: four times width"},
    {"activation", "activation_function", FRAG_FIELD_CHOICE, NETWORK(activation), FRAG_GELU_NEW, 0,
     0, ACTIVATIONS, "of the feed-forward part"},
    {"tied", "tie_word_embeddings", FRAG_FIELD_FLAG, NETWORK(is_tied), 1, 0, 1, NULL,
     "the head shares the weight of the embedding"},
    {"embedding_dropout", "embd_pdrop", FRAG_FIELD_RATIO, NETWORK(embedding_dropout), 0.1, 0, 1,
     NULL, "0 to 1"},
    {"attention_dropout", "attn_pdrop", FRAG_FIELD_RATIO, NETWORK(attention_dropout), 0.1, 0, 1,
     NULL, "0 to 1"},
    {"residual_dropout", "resid_pdrop", FRAG_FIELD_RATIO, NETWORK(residual_dropout), 0.1, 0, 1,
     NULL, "0 to 1"},
    {.key = NULL},
};

static const frag_field llama_fields[] = {
    {"vocabulary", "vocab_size", FRAG_FIELD_COUNT, NETWORK(vocabulary), 32000, 2, COUNT_MAX, NULL,
     "entries of the vocabulary"},
    {"positions", "max_position_embeddings", FRAG_FIELD_COUNT, NETWORK(positions), 2048, 1,
     COUNT_MAX, NULL, "the longest sequence"},
    {"width", "hidden_size", FRAG_FIELD_COUNT, NETWORK(width), 4096, 1, 65536, NULL,
     "of the hidden states"},
    {"inner", "intermediate_size", FRAG_FIELD_COUNT, NETWORK(inner), 11008, 1, 1 << 20, NULL,
     "width of the feed-forward part"},
    {"layers", "num_hidden_layers", FRAG_FIELD_COUNT, NETWORK(layers), 32, 1, 1000, NULL, "blocks"},
    {"heads", "num_attention_heads", FRAG_FIELD_COUNT, NETWORK(heads), 32, 1, 1024, NULL,
     "attention heads"},
    {"key_heads", "num_key_value_heads", FRAG_FIELD_COUNT, NETWORK(key_heads), 0, 0, 1024, NULL,
     "heads of keys and values; 0: as many as heads"},
    {"head_width", "head_dim", FRAG_FIELD_COUNT, NETWORK(head_width), 0, 0, 1024, NULL,
     "of one head; 0: width divided by heads"},
    {"activation", "hidden_act", FRAG_FIELD_CHOICE, NETWORK(activation), FRAG_SILU, 0, 0,
     ACTIVATIONS, "of the feed-forward part"},
    {"tied", "tie_word_embeddings", FRAG_FIELD_FLAG, NETWORK(is_tied), 0, 0, 1, NULL,
     "the head shares the weight of the embedding"},
    {"attention_bias", "attention_bias", FRAG_FIELD_FLAG, NETWORK(has_attention_bias), 0, 0, 1,
     NULL, "linear layers of attention have biases"},
    {"query_bias", NULL, FRAG_FIELD_FLAG, NETWORK(has_query_bias), 0, 0, 1, NULL,
     "linear layers of queries, keys and values have biases"},
    {"inner_bias", "mlp_bias", FRAG_FIELD_FLAG, NETWORK(has_inner_bias), 0, 0, 1, NULL,
     "linear layers of the feed-forward part have biases"},
    {"head_norms", NULL, FRAG_FIELD_FLAG, NETWORK(has_head_norms), 0, 0, 1, NULL,
     "queries and keys of each head are normalised"},
    {"wide_norms", NULL, FRAG_FIELD_FLAG, NETWORK(has_wide_norms), 0, 0, 1, NULL,
     "norms multiply by 1 + weight, in fp32"},
    {"embedding_scale", NULL, FRAG_FIELD_FLAG, NETWORK(has_embedding_scale), 0, 0, 1, NULL,
     "the embedding is multiplied by a number"},
    {"fused", NULL, FRAG_FIELD_FLAG, NETWORK(is_fused), 0, 0, 1, NULL,
     "one layer makes queries, keys and values, one the two halves of the feed-forward part"},
    {"rotary_share", "partial_rotary_factor", FRAG_FIELD_RATIO, NETWORK(rotary_share), 1, 0.01, 1,
     NULL, "of a head's width that is turned by its position"},
    {"use_window", "use_sliding_window", FRAG_FIELD_FLAG, NETWORK(has_window), 0, 0, 1, NULL,
     "attention looks back over a window"},
    {"window", "sliding_window", FRAG_FIELD_COUNT, NETWORK(window), 4096, 0, COUNT_MAX, NULL,
     "tokens in it; 0: all"},
    {"full_layers", "max_window_layers", FRAG_FIELD_COUNT, NETWORK(full_layers), 0, 0, 1000, NULL,
     "the first layers, which have no window"},
    {"alternating", NULL, FRAG_FIELD_FLAG, NETWORK(is_alternating), 0, 0, 1, NULL,
     "every second layer has the window, the first among them"},
    {"post_norms", NULL, FRAG_FIELD_FLAG, NETWORK(has_post_norms), 0, 0, 1, NULL,
     "norms behind attention and feed-forward part as well"},
    {"eager", NULL, FRAG_FIELD_FLAG, NETWORK(is_eager), 0, 0, 1, NULL,
     "attention has its scores as a tensor"},
    {"score_cap", "attn_logit_softcapping", FRAG_FIELD_RATIO, NETWORK(score_cap), 0, 0, 1e6, NULL,
     "scores of eager attention are kept within it by tanh; 0: are not"},
    {"logit_cap", "final_logit_softcapping", FRAG_FIELD_RATIO, NETWORK(logit_cap), 0, 0, 1e6, NULL,
     "so are logits; 0: are not"},
    {.key = NULL},
};

static const frag_field_default mistral_defaults[] = {
    {"positions", 131072}, {"inner", 14336}, {"key_heads", 8}, {"use_window", 1}, {.key = NULL},
};

static const frag_field_default qwen2_defaults[] = {
    {"vocabulary", 151936}, {"positions", 32768}, {"inner", 22016},
    {"query_bias", 1},      {"full_layers", 28},  {.key = NULL},
};

static const frag_field_default qwen3_defaults[] = {
    {"vocabulary", 151936}, {"positions", 32768}, {"inner", 22016}, {"head_width", 128},
    {"head_norms", 1},      {"full_layers", 28},  {.key = NULL},
};

static const frag_field_default phi3_defaults[] = {
    {"vocabulary", 32064}, {"positions", 4096}, {"width", 3072}, {"inner", 8192},
    {"fused", 1},          {"use_window", 1},   {"window", 0},   {.key = NULL},
};

static const frag_field_default gemma_defaults[] = {
    {"vocabulary", 256000},
    {"positions", 8192},
    {"width", 3072},
    {"inner", 24576},
    {"layers", 28},
    {"heads", 16},
    {"head_width", 256},
    {"activation", FRAG_GELU},
    {"tied", 1},
    {"wide_norms", 1},
    {"embedding_scale", 1},
    {.key = NULL},
};

static const frag_field_default gemma2_defaults[] = {
    {"vocabulary", 256000},
    {"positions", 8192},
    {"width", 2304},
    {"inner", 9216},
    {"layers", 26},
    {"heads", 8},
    {"key_heads", 4},
    {"head_width", 256},
    {"activation", FRAG_GELU},
    {"tied", 1},
    {"wide_norms", 1},
    {"embedding_scale", 1},
    {"use_window", 1},
    {"alternating", 1},
    {"post_norms", 1},
    {"eager", 1},
    {"score_cap", 50},
    {"logit_cap", 30},
    {.key = NULL},
};

static const frag_field bert_fields[] = {
    {"vocabulary", "vocab_size", FRAG_FIELD_COUNT, NETWORK(vocabulary), 30522, 2, COUNT_MAX, NULL,
     "entries of the vocabulary"},
    {"positions", "max_position_embeddings", FRAG_FIELD_COUNT, NETWORK(positions), 512, 1,
     COUNT_MAX, NULL, "the longest sequence"},
    {"types", "type_vocab_size", FRAG_FIELD_COUNT, NETWORK(types), 2, 1, 1 << 16, NULL,
     "types of tokens"},
    {"width", "hidden_size", FRAG_FIELD_COUNT, NETWORK(width), 768, 1, 65536, NULL,
     "of the hidden states"},
    {"inner", "intermediate_size", FRAG_FIELD_COUNT, NETWORK(inner), 3072, 1, 1 << 20, NULL,
     "width of the feed-forward part"},
    {"layers", "num_hidden_layers", FRAG_FIELD_COUNT, NETWORK(layers), 12, 1, 1000, NULL, "blocks"},
    {"heads", "num_attention_heads", FRAG_FIELD_COUNT, NETWORK(heads), 12, 1, 1024, NULL,
     "attention heads"},
    {"activation", "hidden_act", FRAG_FIELD_CHOICE, NETWORK(activation), FRAG_GELU, 0, 0,
     ACTIVATIONS, "of the feed-forward part and the head"},
    {"counted_positions", NULL, FRAG_FIELD_FLAG, NETWORK(counts_positions), 0, 0, 1, NULL,
     "positions are counted from the ids, and two of them are never used"},
    {"attention_dropout", "attention_probs_dropout_prob", FRAG_FIELD_RATIO,
     NETWORK(attention_dropout), 0.1, 0, 1, NULL, "0 to 1"},
    {"residual_dropout", "hidden_dropout_prob", FRAG_FIELD_RATIO, NETWORK(residual_dropout), 0.1, 0,
     1, NULL, "0 to 1"},
    {.key = NULL},
};

static const frag_field_default roberta_defaults[] = {
    {"vocabulary", 50265},
    {"counted_positions", 1},
    {.key = NULL},
};

static const frag_field opt_fields[] = {
    {"vocabulary", "vocab_size", FRAG_FIELD_COUNT, NETWORK(vocabulary), 50272, 2, COUNT_MAX, NULL,
     "entries of the vocabulary"},
    {"positions", "max_position_embeddings", FRAG_FIELD_COUNT, NETWORK(positions), 2048, 1,
     COUNT_MAX, NULL, "the longest sequence"},
    {"width", "hidden_size", FRAG_FIELD_COUNT, NETWORK(width), 768, 1, 65536, NULL,
     "of the hidden states"},
    {"embedding_width", "word_embed_proj_dim", FRAG_FIELD_COUNT, NETWORK(embedding_width), 0, 0,
     65536, NULL, "of the embedding of words; 0: width"},
    {"inner", "ffn_dim", FRAG_FIELD_COUNT, NETWORK(inner), 3072, 1, 1 << 20, NULL,
     "width of the feed-forward part"},
    {"layers", "num_hidden_layers", FRAG_FIELD_COUNT, NETWORK(layers), 12, 1, 1000, NULL, "blocks"},
    {"heads", "num_attention_heads", FRAG_FIELD_COUNT, NETWORK(heads), 12, 1, 1024, NULL,
     "attention heads"},
    {"activation", "activation_function", FRAG_FIELD_CHOICE, NETWORK(activation), FRAG_RELU, 0, 0,
     ACTIVATIONS, "of the feed-forward part"},
    {"tied", "tie_word_embeddings", FRAG_FIELD_FLAG, NETWORK(is_tied), 1, 0, 1, NULL,
     "the head shares the weight of the embedding"},
    {"attention_bias", "enable_bias", FRAG_FIELD_FLAG, NETWORK(has_attention_bias), 1, 0, 1, NULL,
     "linear layers of blocks have biases"},
    {"norms_first", "do_layer_norm_before", FRAG_FIELD_FLAG, NETWORK(has_norms_first), 1, 0, 1,
     NULL, "norms are before attention and the feed-forward part, not behind them"},
    {"attention_dropout", "attention_dropout", FRAG_FIELD_RATIO, NETWORK(attention_dropout), 0, 0,
     1, NULL, "0 to 1"},
    {"residual_dropout", "dropout", FRAG_FIELD_RATIO, NETWORK(residual_dropout), 0.1, 0, 1, NULL,
     "0 to 1"},
    {.key = NULL},
};

static const frag_field gpt_neox_fields[] = {
    {"vocabulary", "vocab_size", FRAG_FIELD_COUNT, NETWORK(vocabulary), 50432, 2, COUNT_MAX, NULL,
     "entries of the vocabulary"},
    {"positions", "max_position_embeddings", FRAG_FIELD_COUNT, NETWORK(positions), 2048, 1,
     COUNT_MAX, NULL, "the longest sequence"},
    {"width", "hidden_size", FRAG_FIELD_COUNT, NETWORK(width), 6144, 1, 65536, NULL,
     "of the hidden states"},
    {"inner", "intermediate_size", FRAG_FIELD_COUNT, NETWORK(inner), 24576, 1, 1 << 20, NULL,
     "width of the feed-forward part"},
    {"layers", "num_hidden_layers", FRAG_FIELD_COUNT, NETWORK(layers), 44, 1, 1000, NULL, "blocks"},
    {"heads", "num_attention_heads", FRAG_FIELD_COUNT, NETWORK(heads), 64, 1, 1024, NULL,
     "attention heads"},
    {"activation", "hidden_act", FRAG_FIELD_CHOICE, NETWORK(activation), FRAG_GELU, 0, 0,
     ACTIVATIONS, "of the feed-forward part"},
    {"tied", "tie_word_embeddings", FRAG_FIELD_FLAG, NETWORK(is_tied), 0, 0, 1, NULL,
     "the head shares the weight of the embedding"},
    {"attention_bias", "attention_bias", FRAG_FIELD_FLAG, NETWORK(has_attention_bias), 1, 0, 1,
     NULL, "linear layers of attention have biases"},
    {"parallel", "use_parallel_residual", FRAG_FIELD_FLAG, NETWORK(is_parallel), 1, 0, 1, NULL,
     "attention and feed-forward part see the same hidden states"},
    {"rotary_share", "rotary_pct", FRAG_FIELD_RATIO, NETWORK(rotary_share), 0.25, 0.01, 1, NULL,
     "of a head's width that is turned by its position"},
    {"attention_dropout", "attention_dropout", FRAG_FIELD_RATIO, NETWORK(attention_dropout), 0, 0,
     1, NULL, "0 to 1"},
    {"residual_dropout", "hidden_dropout", FRAG_FIELD_RATIO, NETWORK(residual_dropout), 0, 0, 1,
     NULL, "0 to 1"},
    {.key = NULL},
};

static const frag_field distilbert_fields[] = {
    {"vocabulary", "vocab_size", FRAG_FIELD_COUNT, NETWORK(vocabulary), 30522, 2, COUNT_MAX, NULL,
     "entries of the vocabulary"},
    {"positions", "max_position_embeddings", FRAG_FIELD_COUNT, NETWORK(positions), 512, 1,
     COUNT_MAX, NULL, "the longest sequence"},
    {"width", "dim", FRAG_FIELD_COUNT, NETWORK(width), 768, 1, 65536, NULL, "of the hidden states"},
    {"inner", "hidden_dim", FRAG_FIELD_COUNT, NETWORK(inner), 3072, 1, 1 << 20, NULL,
     "width of the feed-forward part"},
    {"layers", "n_layers", FRAG_FIELD_COUNT, NETWORK(layers), 6, 1, 1000, NULL, "blocks"},
    {"heads", "n_heads", FRAG_FIELD_COUNT, NETWORK(heads), 12, 1, 1024, NULL, "attention heads"},
    {"activation", "activation", FRAG_FIELD_CHOICE, NETWORK(activation), FRAG_GELU, 0, 0,
     ACTIVATIONS, "of the feed-forward part and the head"},
    {"attention_dropout", "attention_dropout", FRAG_FIELD_RATIO, NETWORK(attention_dropout), 0.1, 0,
     1, NULL, "0 to 1"},
    {"residual_dropout", "dropout", FRAG_FIELD_RATIO, NETWORK(residual_dropout), 0.1, 0, 1, NULL,
     "0 to 1"},
    {.key = NULL},
};

const frag_family_fields frag_families[FRAG_FAMILY_COUNT] = {
    [FRAG_FAMILY_GPT2] = {"gpt2", "gpt2", "decoder transformer with learnt positions", gpt2_fields,
                          NULL, true, false, FRAG_LORA_C_ATTN, LORA_GPT2},
    [FRAG_FAMILY_LLAMA] = {"llama", "llama",
                           "decoder transformer with rotary positions and RMS norm", llama_fields,
                           NULL, false, false, LORA_QV, LORA_LLAMA},
    [FRAG_FAMILY_BERT] = {"bert", "bert", "encoder transformer with a head for masked words",
                          bert_fields, NULL, true, true, FRAG_LORA_QUERY | FRAG_LORA_VALUE,
                          LORA_BERT},
    [FRAG_FAMILY_ROBERTA] = {"roberta", "roberta|xlm-roberta", "bert that counts positions",
                             bert_fields, roberta_defaults, true, true,
                             FRAG_LORA_QUERY | FRAG_LORA_VALUE, LORA_BERT},
    [FRAG_FAMILY_DISTILBERT] = {"distilbert", "distilbert", "bert without types of tokens",
                                distilbert_fields, NULL, true, true, 0, LORA_DISTILBERT},
    [FRAG_FAMILY_OPT] = {"opt", "opt", "decoder transformer with learnt positions and relu",
                         opt_fields, NULL, true, false, LORA_QV, LORA_QV | FRAG_LORA_K},
    [FRAG_FAMILY_MISTRAL] = {"mistral", "mistral", "llama with a window", llama_fields,
                             mistral_defaults, false, false, LORA_QV, LORA_LLAMA},
    [FRAG_FAMILY_QWEN2] = {"qwen2", "qwen2", "llama with biases of queries, keys and values",
                           llama_fields, qwen2_defaults, false, false, LORA_QV, LORA_LLAMA},
    [FRAG_FAMILY_QWEN3] = {"qwen3", "qwen3", "llama with norms of queries and keys", llama_fields,
                           qwen3_defaults, false, false, LORA_QV, LORA_LLAMA},
    [FRAG_FAMILY_PHI3] = {"phi3", "phi3", "llama with fused layers", llama_fields, phi3_defaults,
                          false, false, 0, LORA_PHI},
    [FRAG_FAMILY_GEMMA] = {"gemma", "gemma", "llama with wide norms and a scaled embedding",
                           llama_fields, gemma_defaults, false, false, LORA_QV, LORA_LLAMA},
    [FRAG_FAMILY_GEMMA2] = {"gemma2", "gemma2",
                            "gemma with capped scores, norms behind and every second layer with "
                            "a window",
                            llama_fields, gemma2_defaults, false, false, LORA_QV, LORA_LLAMA},
    [FRAG_FAMILY_GPT_NEOX] = {"gpt_neox", "gpt_neox",
                              "decoder transformer with parallel parts and rotary positions",
                              gpt_neox_fields, NULL, false, false, FRAG_LORA_QUERY_KEY_VALUE,
                              FRAG_LORA_QUERY_KEY_VALUE | FRAG_LORA_DENSE | FRAG_LORA_H_TO_4H |
                                  FRAG_LORA_4H_TO_H},
};

const frag_field frag_knobs[] = {
    {"task", NULL, FRAG_FIELD_CHOICE, WORKLOAD(task), FRAG_TASK_TRAIN, 0, 0,
     "train|evaluate|generate", "training steps, forward passes with a loss, or tokens one by one"},
    {"batch", NULL, FRAG_FIELD_COUNT, WORKLOAD(batch), 1, 1, 1 << 20, NULL, "sequences in a batch"},
    {"tokens", NULL, FRAG_FIELD_LENGTHS, WORKLOAD(tokens), 128, 1, COUNT_MAX, NULL,
     "tokens in a sequence: N, a list for batch after batch, or MIN..MAX drawn by the seed"},
    {"new_tokens", NULL, FRAG_FIELD_COUNT, WORKLOAD(new_tokens), 32, 1, 1 << 16, NULL,
     "tokens that generation adds to each sequence"},
    {"steps", NULL, FRAG_FIELD_COUNT, WORKLOAD(steps), 3, 1, 1 << 20, NULL, "steps"},
    {"accumulate", NULL, FRAG_FIELD_COUNT, WORKLOAD(accumulate), 1, 1, 1 << 16, NULL,
     "batches whose gradients are added up in one step"},
    {"precision", NULL, FRAG_FIELD_CHOICE, WORKLOAD(precision), FRAG_PRECISION_FP32, 0, 0,
     "fp32|tf32|bf16|fp16|amp-bf16|amp-fp16",
     "type of weights and activations; amp: weights in fp32, autocast"},
    {"optimizer", NULL, FRAG_FIELD_CHOICE, WORKLOAD(optimizer), FRAG_OPTIMIZER_ADAMW, 0, 0,
     "adamw|adam|sgd|momentum|rmsprop|adafactor", "as torch.optim has them"},
    {"optimizer_loop", NULL, FRAG_FIELD_CHOICE, WORKLOAD(optimizer_loop), FRAG_LOOP_FOREACH, 0, 0,
     "foreach|fused|single", "how the optimizer goes over the parameters"},
    {"amsgrad", NULL, FRAG_FIELD_FLAG, WORKLOAD(has_amsgrad), 0, 0, 1, NULL,
     "adam and adamw keep the largest average as well"},
    {"checkpoint", NULL, FRAG_FIELD_CHOICE, WORKLOAD(checkpoint), FRAG_CHECKPOINT_NONE, 0, 0,
     "none|blocks", "activations of each block are made anew in backward"},
    {"lora_rank", NULL, FRAG_FIELD_COUNT, WORKLOAD(lora_rank), 0, 0, 65536, NULL,
     "rank of LoRA's adapters, which alone are trained; 0: none"},
    {"lora_targets", NULL, FRAG_FIELD_SET, WORKLOAD(lora_targets), 0, 0, 0, LORA_TARGETS,
     "linear layers that adapters stand beside; else those that peft has for the family"},
    {"lora_dropout", NULL, FRAG_FIELD_RATIO, WORKLOAD(lora_dropout), 0, 0, 0.99, NULL,
     "of what goes into the adapters"},
    {"keep_gradients", NULL, FRAG_FIELD_FLAG, WORKLOAD(keeps_gradients), 0, 0, 1, NULL,
     "zero_grad(set_to_none=False)"},
    {"no_grad", NULL, FRAG_FIELD_FLAG, WORKLOAD(has_no_grad), 1, 0, 1, NULL,
     "evaluation under torch.no_grad()"},
    {"empty_cache", NULL, FRAG_FIELD_COUNT, WORKLOAD(empty_cache), 0, 0, 1 << 20, NULL,
     "torch.cuda.empty_cache() every so many steps; 0: never"},
    {"seed", NULL, FRAG_FIELD_COUNT, WORKLOAD(seed), 1, 0, 4294967295.0, NULL,
     "of lengths that are drawn"},
    {.key = NULL},
};
