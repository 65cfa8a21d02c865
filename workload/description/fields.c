/* Families, and the fields of each. */
#include "workload/description/description.h"

#define NETWORK(name) offsetof(frag_network, name)
#define ACTIVATIONS "gelu_new|gelu|silu|relu"
#define LORA_QV (FRAG_LORA_Q | FRAG_LORA_V)
#define LORA_ATTENTION (LORA_QV | FRAG_LORA_K | FRAG_LORA_O)
#define LORA_LLAMA                                                                                 \
    (LORA_QV | FRAG_LORA_K | FRAG_LORA_O | FRAG_LORA_GATE | FRAG_LORA_UP | FRAG_LORA_DOWN)
#define LORA_PHI (FRAG_LORA_QKV | FRAG_LORA_O | FRAG_LORA_GATE_UP | FRAG_LORA_DOWN)
#define LORA_GPT2 (FRAG_LORA_C_ATTN | FRAG_LORA_C_PROJ | FRAG_LORA_C_FC)
#define LORA_BERT (FRAG_LORA_QUERY | FRAG_LORA_KEY | FRAG_LORA_VALUE | FRAG_LORA_DENSE)
#define LORA_MODERNBERT (FRAG_LORA_WQKV | FRAG_LORA_WI | FRAG_LORA_WO | FRAG_LORA_DENSE)
#define LORA_UNET (FRAG_LORA_TO_Q | FRAG_LORA_TO_K | FRAG_LORA_TO_V | FRAG_LORA_TO_OUT)
#define LORA_DISTILBERT                                                                            \
    (FRAG_LORA_Q_LIN | FRAG_LORA_K_LIN | FRAG_LORA_V_LIN | FRAG_LORA_OUT_LIN | FRAG_LORA_LIN1 |    \
     FRAG_LORA_LIN2)

#define COUNT(key, name, member, initial, min, max, help)                                          \
    key, name, FRAG_FIELD_COUNT, NETWORK(member), initial, min, max, NULL, help
#define RATIO(key, name, member, initial, min, max, help)                                          \
    key, name, FRAG_FIELD_RATIO, NETWORK(member), initial, min, max, NULL, help
/* true or false */
#define FLAG(key, name, member, initial, help)                                                     \
    key, name, FRAG_FIELD_FLAG, NETWORK(member), initial, 0, 1, NULL, help
/* Fields that several families have, under names of their own in config.json. */
#define VOCABULARY(initial)                                                                        \
    "vocabulary", "vocab_size", FRAG_FIELD_COUNT, NETWORK(vocabulary), initial, 2,                 \
        FRAG_FIELD_COUNT_MAX, NULL, "entries of the vocabulary"
#define POSITIONS(name, initial)                                                                   \
    "positions", name, FRAG_FIELD_COUNT, NETWORK(positions), initial, 1, FRAG_FIELD_COUNT_MAX,     \
        NULL, "the longest sequence"
#define WIDTH(name, initial)                                                                       \
    "width", name, FRAG_FIELD_COUNT, NETWORK(width), initial, 1, 65536, NULL, "of the hidden states"
#define LAYERS(name, initial)                                                                      \
    "layers", name, FRAG_FIELD_COUNT, NETWORK(layers), initial, 1, 1000, NULL, "blocks"
#define HEADS(name, initial)                                                                       \
    "heads", name, FRAG_FIELD_COUNT, NETWORK(heads), initial, 1, 1024, NULL, "attention heads"
#define KEY_HEADS                                                                                  \
    "key_heads", "num_key_value_heads", FRAG_FIELD_COUNT, NETWORK(key_heads), 0, 0, 1024, NULL,    \
        "heads of keys and values; 0: as many as heads"
#define ROTARY_SHARE(name, initial)                                                                \
    "rotary_share", name "|rope_parameters.partial_rotary_factor", FRAG_FIELD_RATIO,               \
        NETWORK(rotary_share), initial, 0.01, 1, NULL,                                             \
        "of a head's width that is turned by its position"
#define INNER(name, initial)                                                                       \
    "inner", name, FRAG_FIELD_COUNT, NETWORK(inner), initial, 1, 1 << 20, NULL,                    \
        "width of the feed-forward part"
#define ACTIVATION(name, initial)                                                                  \
    "activation", name, FRAG_FIELD_CHOICE, NETWORK(activation), initial, 0, 0, ACTIVATIONS,        \
        "of the feed-forward part"
#define TIED(initial)                                                                              \
    FLAG("tied", "tie_word_embeddings", is_tied, initial, "the head has the embedding's weight")
#define ATTENTION_DROPOUT(name, initial)                                                           \
    "attention_dropout", name, FRAG_FIELD_RATIO, NETWORK(attention_dropout), initial, 0, 1, NULL,  \
        "0 to 1"
#define RESIDUAL_DROPOUT(name, initial)                                                            \
    "residual_dropout", name, FRAG_FIELD_RATIO, NETWORK(residual_dropout), initial, 0, 1, NULL,    \
        "0 to 1"
#define IMAGE(name, initial)                                                                       \
    "image", name, FRAG_FIELD_COUNT, NETWORK(image), initial, 1, 1 << 14, NULL,                    \
        "pixels along a side"
#define IMAGE_CHANNELS(name, initial)                                                              \
    "image_channels", name, FRAG_FIELD_COUNT, NETWORK(image_channels), initial, 1, 4096, NULL,     \
        "of the images"
#define CLASSES(name, initial)                                                                     \
    "classes", name, FRAG_FIELD_COUNT, NETWORK(classes), initial, 1, FRAG_FIELD_COUNT_MAX, NULL,   \
        "that images belong to"

static const frag_field gpt2_fields[] = {
    {VOCABULARY(50257)},
    {POSITIONS("n_positions", 1024)},
    {WIDTH("n_embd", 768)},
    {LAYERS("n_layer", 12)},
    {HEADS("n_head", 12)},
    {COUNT("inner", "n_inner", inner, 0, 0, 1 << 20,
           "width of the feed-forward part; 0: four times width")},
    {ACTIVATION("activation_function", FRAG_GELU_NEW)},
    {TIED(1)},
    {RATIO("embedding_dropout", "embd_pdrop", embedding_dropout, 0.1, 0, 1, "0 to 1")},
    {ATTENTION_DROPOUT("attn_pdrop", 0.1)},
    {RESIDUAL_DROPOUT("resid_pdrop", 0.1)},
    {.key = NULL},
};

static const frag_field llama_fields[] = {
    {VOCABULARY(32000)},
    {POSITIONS("max_position_embeddings", 2048)},
    {WIDTH("hidden_size", 4096)},
    {INNER("intermediate_size", 11008)},
    {LAYERS("num_hidden_layers", 32)},
    {HEADS("num_attention_heads", 32)},
    {KEY_HEADS},
    {COUNT("head_width", "head_dim", head_width, 0, 0, 1024,
           "of one head; 0: width divided by heads")},
    {ACTIVATION("hidden_act", FRAG_SILU)},
    {TIED(0)},
    {FLAG("attention_bias", "attention_bias", has_attention_bias, 0,
          "linear layers of attention have biases")},
    {FLAG("query_bias", NULL, has_query_bias, 0,
          "linear layers of queries, keys and values have biases")},
    {FLAG("inner_bias", "mlp_bias", has_inner_bias, 0,
          "linear layers of the feed-forward part have biases")},
    {FLAG("head_norms", NULL, has_head_norms, 0, "queries and keys of each head are normalised")},
    {FLAG("wide_norms", NULL, has_wide_norms, 0, "norms multiply by 1 + weight, in fp32")},
    {FLAG("embedding_scale", NULL, has_embedding_scale, 0,
          "the embedding is multiplied by a number")},
    {FLAG("fused", NULL, is_fused, 0,
          "one layer makes queries, keys and values, one the two halves of the feed-forward part")},
    {ROTARY_SHARE("partial_rotary_factor", 1)},
    {FLAG("use_window", "use_sliding_window", has_window, 0, "attention looks back over a window")},
    {COUNT("window", "sliding_window", window, 4096, 0, FRAG_FIELD_COUNT_MAX,
           "tokens in it; 0: all")},
    {COUNT("full_layers", "max_window_layers", full_layers, 0, 0, 1000,
           "the first layers, which have no window")},
    {COUNT("full_every", "sliding_window_pattern", full_every, 0, 0, 1000,
           "every so many layers has no window, the first among them has; 0: no other")},
    {FLAG("local_rotary", NULL, has_local_rope, 0,
          "layers with a window have rotary angles of their own")},
    {COUNT("unturned_every", "no_rope_layer_interval", unturned_every, 0, 0, 1000,
           "every so many layers has no rotary positions; 0: all have")},
    {FLAG("late_norms", NULL, has_late_norms, 0,
          "they are when queries, keys and values are split into heads")},
    {FLAG("whole_norms", NULL, has_whole_norms, 0,
          "queries and keys are normalised over all heads together")},
    {FLAG("pre_norms", NULL, has_pre_norms, 1, "norms before attention and feed-forward part")},
    {FLAG("post_norms", NULL, has_post_norms, 0, "norms behind them")},
    {FLAG("exact_parts", NULL, has_exact_parts, 0,
          "weights of norms and rotary angles are applied in fp32")},
    {FLAG("scales", NULL, has_scales, 0,
          "the embedding, what each part adds, and the logits are multiplied by numbers")},
    {FLAG("eager", NULL, is_eager, 0, "attention has its scores as a tensor")},
    {FLAG("sinks", NULL, has_sinks, 0, "each head has one more score for no token")},
    {FLAG("half_rotary", NULL, has_half_rope, 0, "rotary angles are there once for both halves")},
    {RATIO("score_cap", "attn_logit_softcapping", score_cap, 0, 0, 1e6,
           "scores of eager attention are kept within it by tanh; 0: are not")},
    {RATIO("logit_cap", "final_logit_softcapping", logit_cap, 0, 0, 1e6,
           "so are logits; 0: are not")},
    {COUNT("experts", "num_local_experts|num_experts", experts, 0, 0, 1024,
           "in each feed-forward part; 0: it is one whole")},
    {COUNT("experts_chosen", "num_experts_per_tok", experts_chosen, 2, 1, 64,
           "experts that each token goes to")},
    {COUNT("expert_inner", "moe_intermediate_size", expert_inner, 0, 0, 1 << 20,
           "width of an expert; 0: inner")},
    {COUNT("expert_every", "decoder_sparse_step", expert_every, 1, 1, 1000,
           "every so many layers have experts, the others have none")},
    {FLAG("typed_routing", NULL, has_typed_routing, 0,
          "weights of a token's experts are brought into the type of the hidden states")},
    {FLAG("normed_routing", "norm_topk_prob", has_normed_routing, 1,
          "weights of a token's experts are divided by their sum")},
    {FLAG("router_last", NULL, is_router_last, 0,
          "the router's weight comes behind those of the experts")},
    {FLAG("clipped_experts", NULL, has_clipped_experts, 0,
          "experts and router have biases, and what the gate gets is clipped")},
    {.key = NULL},
};

static const frag_field_default mixtral_defaults[] = {
    {"positions", 131072}, {"inner", 14336}, {"key_heads", 8}, {"use_window", 1},
    {"window", 0},         {"experts", 8},   {.key = NULL},
};

static const frag_field_default qwen3_moe_defaults[] = {
    {"vocabulary", 151936}, {"positions", 32768},  {"width", 2048},      {"inner", 6144},
    {"layers", 24},         {"key_heads", 4},      {"head_norms", 1},    {"experts", 128},
    {"experts_chosen", 8},  {"expert_inner", 768}, {"typed_routing", 1}, {"normed_routing", 0},
    {"router_last", 1},     {.key = NULL},
};

static const frag_field_default olmoe_defaults[] = {
    {"vocabulary", 50304}, {"positions", 4096},  {"width", 2048},       {"inner", 2048},
    {"layers", 16},        {"heads", 16},        {"whole_norms", 1},    {"experts", 64},
    {"experts_chosen", 8}, {"typed_routing", 1}, {"normed_routing", 0}, {"router_last", 0},
    {.key = NULL},
};

static const frag_field_default gpt_oss_defaults[] = {
    {"vocabulary", 201088}, {"positions", 131072}, {"width", 2880},      {"inner", 2880},
    {"layers", 36},         {"heads", 64},         {"key_heads", 8},     {"head_width", 64},
    {"attention_bias", 1},  {"use_window", 1},     {"window", 128},      {"full_every", 2},
    {"exact_parts", 1},     {"eager", 1},          {"sinks", 1},         {"half_rotary", 1},
    {"experts", 128},       {"experts_chosen", 4}, {"typed_routing", 1}, {"normed_routing", 0},
    {"clipped_experts", 1}, {.key = NULL},
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
    {"full_every", 2},
    {"post_norms", 1},
    {"eager", 1},
    {"score_cap", 50},
    {"logit_cap", 30},
    {.key = NULL},
};

static const frag_field_default gemma3_defaults[] = {
    {"vocabulary", 262208},
    {"positions", 131072},
    {"width", 2304},
    {"inner", 9216},
    {"layers", 26},
    {"heads", 8},
    {"key_heads", 4},
    {"head_width", 256},
    {"activation", FRAG_GELU},
    {"tied", 1},
    {"head_norms", 1},
    {"late_norms", 1},
    {"wide_norms", 1},
    {"embedding_scale", 1},
    {"use_window", 1},
    {"full_every", 6},
    {"local_rotary", 1},
    {"post_norms", 1},
    {.key = NULL},
};

static const frag_field_default granite_defaults[] = {
    {"scales", 1},
    {.key = NULL},
};

static const frag_field_default olmo2_defaults[] = {
    {"vocabulary", 50304}, {"whole_norms", 1}, {"pre_norms", 0},
    {"post_norms", 1},     {"exact_parts", 1}, {.key = NULL},
};

static const frag_field_default smollm3_defaults[] = {
    {"vocabulary", 128256}, {"positions", 32768}, {"width", 2048}, {"layers", 36},
    {"heads", 16},          {"key_heads", 4},     {"tied", 1},     {"unturned_every", 4},
    {.key = NULL},
};

static const frag_field bert_fields[] = {
    {VOCABULARY(30522)},
    {POSITIONS("max_position_embeddings", 512)},
    {COUNT("types", "type_vocab_size", types, 2, 1, 1 << 16, "types of tokens")},
    {WIDTH("hidden_size", 768)},
    {INNER("intermediate_size", 3072)},
    {LAYERS("num_hidden_layers", 12)},
    {HEADS("num_attention_heads", 12)},
    {"activation", "hidden_act", FRAG_FIELD_CHOICE, NETWORK(activation), FRAG_GELU, 0, 0,
     ACTIVATIONS, "of the feed-forward part and the head"},
    {FLAG("counted_positions", NULL, counts_positions, 0,
          "positions are counted from the ids, and two of them are never used")},
    {FLAG("head_first", NULL, is_head_first, 0, "parameters of the head come before all others")},
    {ATTENTION_DROPOUT("attention_probs_dropout_prob", 0.1)},
    {RESIDUAL_DROPOUT("hidden_dropout_prob", 0.1)},
    {.key = NULL},
};

static const frag_field_default roberta_defaults[] = {
    {"vocabulary", 50265},
    {"counted_positions", 1},
    {.key = NULL},
};

static const frag_field_default xlm_roberta_defaults[] = {
    {"vocabulary", 30522},
    {"counted_positions", 1},
    {"head_first", 1},
    {.key = NULL},
};

static const frag_field electra_fields[] = {
    {VOCABULARY(30522)},
    {POSITIONS("max_position_embeddings", 512)},
    {COUNT("types", "type_vocab_size", types, 2, 1, 1 << 16, "types of tokens")},
    {COUNT("embedding_width", "embedding_size", embedding_width, 128, 1, 65536,
           "of the embedding of words, and of the head")},
    {WIDTH("hidden_size", 256)},
    {INNER("intermediate_size", 1024)},
    {LAYERS("num_hidden_layers", 12)},
    {HEADS("num_attention_heads", 4)},
    {"activation", "hidden_act", FRAG_FIELD_CHOICE, NETWORK(activation), FRAG_GELU, 0, 0,
     ACTIVATIONS, "of the feed-forward part; the head has gelu"},
    {ATTENTION_DROPOUT("attention_probs_dropout_prob", 0.1)},
    {RESIDUAL_DROPOUT("hidden_dropout_prob", 0.1)},
    {.key = NULL},
};

static const frag_field deberta_fields[] = {
    {VOCABULARY(128100)},
    {POSITIONS("max_position_embeddings", 512)},
    {WIDTH("hidden_size", 1536)},
    {INNER("intermediate_size", 6144)},
    {LAYERS("num_hidden_layers", 24)},
    {HEADS("num_attention_heads", 24)},
    {COUNT("distances", "position_buckets", distances, 256, 1, 1 << 16,
           "buckets of distances of tokens, before and behind")},
    {"activation", "hidden_act", FRAG_FIELD_CHOICE, NETWORK(activation), FRAG_GELU, 0, 0,
     ACTIVATIONS, "of the feed-forward part and the head"},
    {ATTENTION_DROPOUT("attention_probs_dropout_prob", 0.1)},
    {RESIDUAL_DROPOUT("hidden_dropout_prob", 0.1)},
    {.key = NULL},
};

static const frag_field modernbert_fields[] = {
    {VOCABULARY(50368)},
    {POSITIONS("max_position_embeddings", 8192)},
    {WIDTH("hidden_size", 768)},
    {INNER("intermediate_size", 1152)},
    {LAYERS("num_hidden_layers", 22)},
    {HEADS("num_attention_heads", 12)},
    {ACTIVATION("hidden_activation", FRAG_GELU)},
    {TIED(1)},
    {FLAG("attention_bias", "attention_bias", has_attention_bias, 0,
          "linear layers of attention have biases")},
    {FLAG("inner_bias", "mlp_bias", has_inner_bias, 0,
          "linear layers of the feed-forward part have biases")},
    {FLAG("norm_bias", "norm_bias", has_norm_bias, 0, "norms have biases")},
    {FLAG("head_bias", "decoder_bias", has_head_bias, 1, "the head has a bias")},
    {COUNT("neighbours", "local_attention", neighbours, 128, 2, FRAG_FIELD_COUNT_MAX,
           "tokens that most layers look at, before and behind")},
    {COUNT("full_every", "global_attn_every_n_layers", full_every, 3, 1, 1000,
           "every so many layers looks at all tokens, the first among them")},
    {RATIO("embedding_dropout", "embedding_dropout", embedding_dropout, 0, 0, 1, "0 to 1")},
    {ATTENTION_DROPOUT("attention_dropout", 0)},
    {RESIDUAL_DROPOUT("mlp_dropout", 0)},
    {.key = NULL},
};

static const frag_field opt_fields[] = {
    {VOCABULARY(50272)},
    {POSITIONS("max_position_embeddings", 2048)},
    {WIDTH("hidden_size", 768)},
    {COUNT("embedding_width", "word_embed_proj_dim", embedding_width, 0, 0, 65536,
           "of the embedding of words; 0: width")},
    {INNER("ffn_dim", 3072)},
    {LAYERS("num_hidden_layers", 12)},
    {HEADS("num_attention_heads", 12)},
    {ACTIVATION("activation_function", FRAG_RELU)},
    {TIED(1)},
    {FLAG("attention_bias", "enable_bias", has_attention_bias, 1,
          "linear layers of blocks have biases")},
    {FLAG("norms_first", "do_layer_norm_before", has_norms_first, 1,
          "norms are before attention and the feed-forward part, not behind them")},
    {ATTENTION_DROPOUT("attention_dropout", 0)},
    {RESIDUAL_DROPOUT("dropout", 0.1)},
    {.key = NULL},
};

static const frag_field gpt_neox_fields[] = {
    {VOCABULARY(50432)},
    {POSITIONS("max_position_embeddings", 2048)},
    {WIDTH("hidden_size", 6144)},
    {INNER("intermediate_size", 24576)},
    {LAYERS("num_hidden_layers", 44)},
    {HEADS("num_attention_heads", 64)},
    {ACTIVATION("hidden_act", FRAG_GELU)},
    {TIED(0)},
    {FLAG("attention_bias", "attention_bias", has_attention_bias, 1,
          "linear layers of attention have biases")},
    {FLAG("parallel", "use_parallel_residual", is_parallel, 1,
          "attention and feed-forward part see the same hidden states")},
    {ROTARY_SHARE("rotary_pct", 0.25)},
    {ATTENTION_DROPOUT("attention_dropout", 0)},
    {RESIDUAL_DROPOUT("hidden_dropout", 0)},
    {.key = NULL},
};

static const frag_field phi_fields[] = {
    {VOCABULARY(51200)},
    {POSITIONS("max_position_embeddings", 2048)},
    {WIDTH("hidden_size", 2048)},
    {INNER("intermediate_size", 8192)},
    {LAYERS("num_hidden_layers", 24)},
    {HEADS("num_attention_heads", 32)},
    {KEY_HEADS},
    {ACTIVATION("hidden_act", FRAG_GELU_NEW)},
    {TIED(0)},
    {FLAG("attention_bias", "use_bias", has_attention_bias, 1,
          "linear layers of blocks have biases")},
    {FLAG("query_bias", "use_qkv_bias", has_query_bias, 0,
          "linear layers of queries, keys and values have biases")},
    {FLAG("head_bias", NULL, has_head_bias, 1, "the head has a bias")},
    {FLAG("parallel", "use_parallel_residual", is_parallel, 1,
          "attention and feed-forward part see the same hidden states")},
    {FLAG("gated", NULL, is_gated, 0, "the feed-forward part has a gate")},
    {ROTARY_SHARE("partial_rotary_factor", 0.5)},
    {FLAG("use_window", NULL, has_window, 0, "attention looks back over a window")},
    {COUNT("window", "sliding_window", window, 0, 0, FRAG_FIELD_COUNT_MAX, "tokens in it; 0: all")},
    {RATIO("embedding_dropout", "embd_pdrop|embedding_dropout", embedding_dropout, 0, 0, 1,
           "0 to 1")},
    {ATTENTION_DROPOUT("attention_dropout", 0)},
    {RESIDUAL_DROPOUT("resid_pdrop|residual_dropout|hidden_dropout", 0)},
    {.key = NULL},
};

static const frag_field_default starcoder2_defaults[] = {
    {"vocabulary", 49152}, {"positions", 4096}, {"width", 3072},
    {"inner", 12288},      {"layers", 30},      {"heads", 24},
    {"key_heads", 2},      {"tied", 1},         {"activation", FRAG_GELU},
    {"head_bias", 0},      {"parallel", 0},     {"rotary_share", 1},
    {"use_window", 1},     {.key = NULL},
};

static const frag_field_default stablelm_defaults[] = {
    {"vocabulary", 50304}, {"positions", 4096},    {"width", 2560},
    {"inner", 6912},       {"layers", 32},         {"attention_bias", 0},
    {"head_bias", 0},      {"parallel", 0},        {"activation", FRAG_SILU},
    {"gated", 1},          {"rotary_share", 0.25}, {.key = NULL},
};

static const frag_field distilbert_fields[] = {
    {VOCABULARY(30522)},
    {POSITIONS("max_position_embeddings", 512)},
    {WIDTH("dim", 768)},
    {INNER("hidden_dim", 3072)},
    {LAYERS("n_layers", 6)},
    {HEADS("n_heads", 12)},
    {"activation", "activation", FRAG_FIELD_CHOICE, NETWORK(activation), FRAG_GELU, 0, 0,
     ACTIVATIONS, "of the feed-forward part and the head"},
    {ATTENTION_DROPOUT("attention_dropout", 0.1)},
    {RESIDUAL_DROPOUT("dropout", 0.1)},
    {.key = NULL},
};

static const frag_field bart_fields[] = {
    {VOCABULARY(50265)},
    {POSITIONS("max_position_embeddings", 1024)},
    {WIDTH("d_model", 1024)},
    {COUNT("layers", "decoder_layers", layers, 12, 1, 1000, "blocks of the decoder")},
    {COUNT("heads", "decoder_attention_heads", heads, 16, 1, 1024,
           "attention heads of the decoder")},
    {COUNT("inner", "decoder_ffn_dim", inner, 4096, 1, 1 << 20,
           "width of the decoder's feed-forward part")},
    {COUNT("encoder_layers", "encoder_layers", encoder_layers, 12, 1, 1000,
           "blocks of the encoder")},
    {COUNT("encoder_heads", "encoder_attention_heads", encoder_heads, 16, 1, 1024,
           "attention heads of the encoder")},
    {COUNT("encoder_inner", "encoder_ffn_dim", encoder_inner, 4096, 1, 1 << 20,
           "width of the encoder's feed-forward part")},
    {ACTIVATION("activation_function", FRAG_GELU)},
    {ATTENTION_DROPOUT("attention_dropout", 0)},
    {RESIDUAL_DROPOUT("dropout", 0.1)},
    {RATIO("activation_dropout", "activation_dropout", activation_dropout, 0, 0, 1,
           "within the feed-forward part, 0 to 1")},
    {.key = NULL},
};

static const frag_field whisper_fields[] = {
    {VOCABULARY(51865)},
    {COUNT("positions", "max_target_positions", positions, 448, 1, FRAG_FIELD_COUNT_MAX,
           "the longest sequence of tokens")},
    {COUNT("encoder_positions", "max_source_positions", encoder_positions, 1500, 2, 1 << 20,
           "of every spectrogram, which has twice as many frames")},
    {COUNT("mels", "num_mel_bins", mels, 80, 1, 4096, "numbers of a frame of it")},
    {WIDTH("d_model", 384)},
    {COUNT("layers", "decoder_layers", layers, 4, 1, 1000, "blocks of the decoder")},
    {COUNT("heads", "decoder_attention_heads", heads, 6, 1, 1024,
           "attention heads of the decoder")},
    {COUNT("inner", "decoder_ffn_dim", inner, 1536, 1, 1 << 20,
           "width of the decoder's feed-forward part")},
    {COUNT("encoder_layers", "encoder_layers", encoder_layers, 4, 1, 1000,
           "blocks of the encoder")},
    {COUNT("encoder_heads", "encoder_attention_heads", encoder_heads, 6, 1, 1024,
           "attention heads of the encoder")},
    {COUNT("encoder_inner", "encoder_ffn_dim", encoder_inner, 1536, 1, 1 << 20,
           "width of the encoder's feed-forward part")},
    {ACTIVATION("activation_function", FRAG_GELU)},
    {ATTENTION_DROPOUT("attention_dropout", 0)},
    {RESIDUAL_DROPOUT("dropout", 0)},
    {RATIO("activation_dropout", "activation_dropout", activation_dropout, 0, 0, 1,
           "within the feed-forward part, 0 to 1")},
    {.key = NULL},
};

static const frag_field t5_fields[] = {
    {VOCABULARY(32128)},
    {WIDTH("d_model", 512)},
    {COUNT("head_width", "d_kv", head_width, 64, 1, 1024, "of one head")},
    {INNER("d_ff", 2048)},
    {COUNT("encoder_layers", "num_layers", encoder_layers, 6, 1, 1000, "blocks of the encoder")},
    {COUNT("layers", "num_decoder_layers", layers, 0, 0, 1000,
           "blocks of the decoder; 0: as many as of the encoder")},
    {HEADS("num_heads", 8)},
    {COUNT("position_buckets", "relative_attention_num_buckets", position_buckets, 32, 4,
           FRAG_FIELD_COUNT_MAX, "classes of distances that positions are told apart by")},
    {"feed_forward", "feed_forward_proj", FRAG_FIELD_CHOICE, NETWORK(feed_forward), FRAG_FEED_RELU,
     0, 0, "relu|gelu|gelu_new|silu|gated-relu|gated-gelu|gated-gelu_new|gated-silu",
     "activation of the feed-forward part, and whether a gate is beside it"},
    {FLAG("output_scale", "tie_word_embeddings", has_output_scale, 1,
          "hidden states are scaled before the head, whose weight is the embedding's")},
    {RATIO("residual_dropout", "dropout_rate", residual_dropout, 0.1, 0, 1, "everywhere, 0 to 1")},
    {.key = NULL},
};

static const frag_field_default mt5_defaults[] = {
    {"vocabulary", 250112},
    {"inner", 1024},
    {"encoder_layers", 8},
    {"heads", 6},
    {"feed_forward", FRAG_FEED_GATED_GELU},
    {"output_scale", 0},
    {.key = NULL},
};

static const frag_field vit_fields[] = {
    {IMAGE("image_size", 224)},
    {IMAGE_CHANNELS("num_channels", 3)},
    {COUNT("patch", "patch_size", patch, 16, 1, 1 << 14,
           "pixels along a side of a patch, which becomes a token")},
    {WIDTH("hidden_size", 768)},
    {INNER("intermediate_size", 3072)},
    {LAYERS("num_hidden_layers", 12)},
    {HEADS("num_attention_heads", 12)},
    {ACTIVATION("hidden_act", FRAG_GELU)},
    {FLAG("query_bias", "qkv_bias", has_query_bias, 1,
          "linear layers of queries, keys and values have biases")},
    {CLASSES("id2label|num_labels", 2)},
    {ATTENTION_DROPOUT("attention_probs_dropout_prob", 0)},
    {RESIDUAL_DROPOUT("hidden_dropout_prob", 0)},
    {.key = NULL},
};

static const frag_field resnet_fields[] = {
    {IMAGE("image_size", 224)},
    {IMAGE_CHANNELS("num_channels", 3)},
    {COUNT("width", "embedding_size", width, 64, 1, 65536, "channels before the first stage")},
    {"channels", "hidden_sizes", FRAG_FIELD_STAGES, NETWORK(channels), 0, 1, 65536,
     "256,512,1024,2048", "that each stage hands on"},
    {"depths", "depths", FRAG_FIELD_STAGES, NETWORK(depths), 0, 1, 1000, "3,4,6,3",
     "layers of each stage"},
    {"layer", "layer_type", FRAG_FIELD_CHOICE, NETWORK(layer), FRAG_LAYER_BOTTLENECK, 0, 0,
     "basic|bottleneck", "two convolutions, or three of which the middle one is narrow"},
    {"activation", "hidden_act", FRAG_FIELD_CHOICE, NETWORK(activation), FRAG_RELU, 0, 0,
     ACTIVATIONS, "behind convolutions"},
    {FLAG("halved_first", "downsample_in_first_stage", is_first_halved, 0,
          "the first stage halves the image too")},
    {FLAG("halved_narrowing", "downsample_in_bottleneck", is_narrowed_halved, 0,
          "the first of three convolutions halves the image, not the second")},
    {CLASSES("id2label|num_labels", 2)},
    {.key = NULL},
};

static const frag_field convnext_fields[] = {
    {IMAGE("image_size", 224)},
    {IMAGE_CHANNELS("num_channels", 3)},
    {COUNT("patch", "patch_size", patch, 4, 1, 1 << 14,
           "pixels along a side of a patch, which becomes a pixel of the first stage")},
    {"channels", "hidden_sizes", FRAG_FIELD_STAGES, NETWORK(channels), 0, 2, 65536,
     "96,192,384,768", "of each stage"},
    {"depths", "depths", FRAG_FIELD_STAGES, NETWORK(depths), 0, 1, 1000, "3,3,9,3",
     "layers of each stage"},
    {"activation", "hidden_act", FRAG_FIELD_CHOICE, NETWORK(activation), FRAG_GELU, 0, 0,
     ACTIVATIONS, "between the two linear layers"},
    {"layer_scale", "layer_scale_init_value", FRAG_FIELD_RATIO, NETWORK(layer_scale), 1e-6, 0, 1e6,
     NULL, "what a layer makes is multiplied by a number for each channel, at first this; 0: not"},
    {RATIO("drop_path", "drop_path_rate", drop_path, 0, 0, 1,
           "of images that the last layer is left out for, the first for none, 0 to 1")},
    {CLASSES("id2label|num_labels", 2)},
    {.key = NULL},
};

static const frag_field mnasnet_fields[] = {
    {IMAGE(NULL, 224)},
    {IMAGE_CHANNELS(NULL, 3)},
    {RATIO("alpha", NULL, alpha, 1, 0.01, 100,
           "all channels but the last ones are so many times as many, in multiples of 8")},
    {CLASSES(NULL, 1000)},
    {RATIO("residual_dropout", NULL, residual_dropout, 0.2, 0, 1, "before the classifier, 0 to 1")},
    {.key = NULL},
};

static const frag_field dlrm_fields[] = {
    {COUNT("tables", NULL, tables, 26, 1, FRAG_TOKENS_MAX, "of embeddings")},
    {"rows", NULL, FRAG_FIELD_LENGTHS, NETWORK(rows), 100000, 1, FRAG_FIELD_ROWS_MAX, NULL,
     "of a table: N, a list for table after table, or MIN..MAX drawn by the seed"},
    {COUNT("width", NULL, width, 128, 1, 65536, "of an embedding")},
    {COUNT("dense", NULL, dense, 13, 1, 65536, "numbers that a sample has besides")},
    {"bottom", NULL, FRAG_FIELD_STAGES, NETWORK(bottom), 0, 1, 65536, "512,256",
     "widths of the linear layers over them, before one that makes an embedding's width"},
    {"top", NULL, FRAG_FIELD_STAGES, NETWORK(top), 0, 1, 65536, "1024,1024,512,256",
     "widths of the linear layers over the interaction, before one that makes a number"},
    {FLAG("bags", NULL, has_bags, 1, "tables are nn.EmbeddingBag, which sums; else nn.Embedding")},
    {FLAG("sparse", NULL, is_sparse, 0,
          "gradients of tables have the rows that were asked for, not all")},
    {.key = NULL},
};

static const frag_field graph_fields[] = {
    {COUNT("features", NULL, features, 128, 1, 65536, "numbers of a node")},
    {WIDTH(NULL, 256)},
    {COUNT("layers", NULL, layers, 3, 1, 1000, "of messages along edges")},
    {COUNT("classes", NULL, classes, 40, 1, FRAG_FIELD_COUNT_MAX, "that nodes belong to")},
    {RATIO("residual_dropout", NULL, residual_dropout, 0.5, 0, 1,
           "behind each layer but the last, 0 to 1")},
    {.key = NULL},
};

static const frag_field unet_fields[] = {
    {COUNT("image", "sample_size", image, 64, 1, 1 << 14, "latent pixels along a side")},
    {COUNT("image_channels", "in_channels", image_channels, 4, 1, 4096, "of the latents")},
    {COUNT("out_channels", "out_channels", out_channels, 4, 1, 4096, "of the prediction")},
    {"channels", "block_out_channels", FRAG_FIELD_STAGES, NETWORK(channels), 0, 1, 65536,
     "320,640,1280,1280", "of each stage"},
    {COUNT("layers", "layers_per_block", layers, 2, 1, FRAG_UNET_LAYERS_MAX,
           "of each stage on the way down; one more on the way up")},
    {"down_attention", "down_block_types", FRAG_FIELD_STAGES, NETWORK(down_attention), 0, 0, 1,
     "1,1,1,0", "1 for stages on the way down whose layers have attention"},
    {"up_attention", "up_block_types", FRAG_FIELD_STAGES, NETWORK(up_attention), 0, 0, 1, "0,1,1,1",
     "1 for stages on the way up whose layers have attention, the smallest image first"},
    {"heads", "num_attention_heads|attention_head_dim", FRAG_FIELD_STAGES, NETWORK(stage_heads), 0,
     1, 1024, "8", "attention heads of each stage; one number: of all"},
    {"depths", "transformer_layers_per_block", FRAG_FIELD_STAGES, NETWORK(depths), 0, 1, 1000, "1",
     "blocks of each transformer of a stage; one number: of all"},
    {COUNT("groups", "norm_num_groups", groups, 32, 1, 65536, "of channels in a norm")},
    {COUNT("text_width", "cross_attention_dim", text_width, 1280, 1, 65536,
           "of the text's hidden states")},
    {COUNT("text_tokens", NULL, text_tokens, 77, 1, 1 << 16, "of the text")},
    {FLAG("linear_projection", "use_linear_projection", is_linear, 0,
          "linear layers around a transformer, not convolutions")},
    {COUNT("added_width", "projection_class_embeddings_input_dim", added_width, 0, 0, 65536,
           "of pooled text and sizes that are added to the time; 0: none")},
    {COUNT("added_time_width", "addition_time_embed_dim", added_time_width, 256, 0, 65536,
           "of each of the six sizes among them")},
    {.key = NULL},
};

#define NAMED(family, types, what, table)                                                          \
    .name = family, .model_types = types, .summary = what, .fields = table
#define LLAMA_LAYERS .lora_targets = LORA_LLAMA, .is_quantised = true

const frag_family_fields frag_families[FRAG_FAMILY_COUNT] = {
    [FRAG_FAMILY_GPT2] = {NAMED("gpt2", "gpt2", "decoder transformer with learnt positions",
                                gpt2_fields),
                          .has_learnt_positions = true, .lora_default = FRAG_LORA_C_ATTN,
                          .lora_targets = LORA_GPT2},
    [FRAG_FAMILY_LLAMA] = {NAMED("llama", "llama",
                                 "decoder transformer with rotary positions and RMS norm",
                                 llama_fields),
                           LLAMA_LAYERS, .lora_default = LORA_QV},
    [FRAG_FAMILY_BERT] = {NAMED("bert", "bert", "encoder transformer with a head for masked words",
                                bert_fields),
                          .has_learnt_positions = true, .is_encoder = true,
                          .lora_default = FRAG_LORA_QUERY | FRAG_LORA_VALUE,
                          .lora_targets = LORA_BERT},
    [FRAG_FAMILY_ROBERTA] = {NAMED("roberta", "roberta", "bert that counts positions", bert_fields),
                             .defaults = roberta_defaults, .has_learnt_positions = true,
                             .is_encoder = true, .lora_default = FRAG_LORA_QUERY | FRAG_LORA_VALUE,
                             .lora_targets = LORA_BERT},
    [FRAG_FAMILY_XLM_ROBERTA] = {NAMED("xlm-roberta", "xlm-roberta|camembert",
                                       "roberta whose head comes before the rest", bert_fields),
                                 .defaults = xlm_roberta_defaults, .has_learnt_positions = true,
                                 .is_encoder = true,
                                 .lora_default = FRAG_LORA_QUERY | FRAG_LORA_VALUE,
                                 .lora_targets = LORA_BERT},
    [FRAG_FAMILY_DISTILBERT] = {NAMED("distilbert", "distilbert", "bert without types of tokens",
                                      distilbert_fields),
                                .has_learnt_positions = true, .is_encoder = true,
                                .lora_targets = LORA_DISTILBERT},
    [FRAG_FAMILY_DEBERTA_V2] = {NAMED("deberta-v2", "deberta-v2",
                                      "bert whose attention knows how far tokens are apart",
                                      deberta_fields),
                                .has_learnt_positions = true, .is_encoder = true,
                                .has_no_offload = true},
    [FRAG_FAMILY_ELECTRA] = {NAMED("electra", "electra", "bert with a narrow embedding",
                                   electra_fields),
                             .has_learnt_positions = true, .is_encoder = true,
                             .lora_default = FRAG_LORA_QUERY | FRAG_LORA_VALUE,
                             .lora_targets = LORA_BERT},
    [FRAG_FAMILY_MODERNBERT] =
        {NAMED("modernbert", "modernbert",
               "encoder transformer with rotary positions, most layers of which look at neighbours",
               modernbert_fields),
         .is_encoder = true, .lora_targets = LORA_MODERNBERT},
    [FRAG_FAMILY_OPT] = {NAMED("opt", "opt", "decoder transformer with learnt positions and relu",
                               opt_fields),
                         .has_learnt_positions = true, .lora_default = LORA_QV,
                         .lora_targets = LORA_QV | FRAG_LORA_K | FRAG_LORA_FC1 | FRAG_LORA_FC2},
    [FRAG_FAMILY_MISTRAL] = {NAMED("mistral", "mistral", "llama with a window", llama_fields),
                             LLAMA_LAYERS, .defaults = mistral_defaults, .lora_default = LORA_QV},
    [FRAG_FAMILY_QWEN2] = {NAMED("qwen2", "qwen2", "llama with biases of queries, keys and values",
                                 llama_fields),
                           LLAMA_LAYERS, .has_two_masks = true, .defaults = qwen2_defaults,
                           .lora_default = LORA_QV},
    [FRAG_FAMILY_QWEN3] = {NAMED("qwen3", "qwen3", "llama with norms of queries and keys",
                                 llama_fields),
                           LLAMA_LAYERS, .has_two_masks = true, .defaults = qwen3_defaults,
                           .lora_default = LORA_QV},
    [FRAG_FAMILY_PHI3] = {NAMED("phi3", "phi3", "llama with fused layers", llama_fields),
                          .defaults = phi3_defaults, .lora_targets = LORA_PHI,
                          .is_quantised = true},
    [FRAG_FAMILY_GEMMA] = {NAMED("gemma", "gemma", "llama with wide norms and a scaled embedding",
                                 llama_fields),
                           LLAMA_LAYERS, .defaults = gemma_defaults, .lora_default = LORA_QV},
    [FRAG_FAMILY_GEMMA2] =
        {NAMED("gemma2", "gemma2",
               "gemma with capped scores, norms behind and every second layer with a window",
               llama_fields),
         LLAMA_LAYERS, .has_two_masks = true, .defaults = gemma2_defaults, .lora_default = LORA_QV},
    [FRAG_FAMILY_GEMMA3] = {NAMED("gemma3", "gemma3_text",
                                  "gemma with norms of queries and keys, norms behind, and five "
                                  "layers with a window before each without",
                                  llama_fields),
                            LLAMA_LAYERS, .defaults = gemma3_defaults, .has_two_masks = true,
                            .lora_default = LORA_QV},
    [FRAG_FAMILY_GRANITE] = {NAMED("granite", "granite", "llama with scales", llama_fields),
                             LLAMA_LAYERS, .defaults = granite_defaults},
    [FRAG_FAMILY_OLMO2] = {NAMED("olmo2", "olmo2",
                                 "llama with norms behind, and of queries and keys", llama_fields),
                           LLAMA_LAYERS, .defaults = olmo2_defaults},
    [FRAG_FAMILY_SMOLLM3] = {NAMED("smollm3", "smollm3",
                                   "llama in which every fourth layer knows no positions",
                                   llama_fields),
                             LLAMA_LAYERS, .defaults = smollm3_defaults, .has_two_masks = true},
    [FRAG_FAMILY_MIXTRAL] = {NAMED("mixtral", "mixtral",
                                   "llama with a mixture of experts in each layer", llama_fields),
                             .defaults = mixtral_defaults, .lora_targets = LORA_ATTENTION},
    [FRAG_FAMILY_QWEN3_MOE] = {NAMED("qwen3_moe", "qwen3_moe",
                                     "qwen3 with a mixture of experts in each layer", llama_fields),
                               .defaults = qwen3_moe_defaults, .lora_targets = LORA_ATTENTION},
    [FRAG_FAMILY_OLMOE] = {NAMED("olmoe", "olmoe",
                                 "llama with norms of queries and keys, and experts in each layer",
                                 llama_fields),
                           .defaults = olmoe_defaults, .lora_targets = LORA_ATTENTION},
    [FRAG_FAMILY_GPT_OSS] = {NAMED("gpt_oss", "gpt_oss",
                                   "llama with experts, attention with sinks, and every second "
                                   "layer with a window",
                                   llama_fields),
                             .defaults = gpt_oss_defaults, .has_two_masks = true,
                             .has_no_offload = true, .lora_targets = LORA_ATTENTION},
    [FRAG_FAMILY_GPT_NEOX] = {NAMED("gpt_neox", "gpt_neox",
                                    "decoder transformer with parallel parts and rotary positions",
                                    gpt_neox_fields),
                              .lora_default = FRAG_LORA_QUERY_KEY_VALUE,
                              .lora_targets = FRAG_LORA_QUERY_KEY_VALUE | FRAG_LORA_DENSE |
                                              FRAG_LORA_H_TO_4H | FRAG_LORA_4H_TO_H},
    [FRAG_FAMILY_PHI] =
        {NAMED("phi", "phi",
               "decoder transformer with LayerNorm, rotary positions and parallel parts",
               phi_fields),
         .lora_default = LORA_QV | FRAG_LORA_FC1 | FRAG_LORA_FC2,
         .lora_targets = LORA_QV | FRAG_LORA_K | FRAG_LORA_DENSE | FRAG_LORA_FC1 | FRAG_LORA_FC2},
    [FRAG_FAMILY_STARCODER2] = {NAMED("starcoder2", "starcoder2",
                                      "phi with grouped queries and one part after the other",
                                      phi_fields),
                                .defaults = starcoder2_defaults,
                                .lora_targets = LORA_ATTENTION | FRAG_LORA_C_FC | FRAG_LORA_C_PROJ},
    [FRAG_FAMILY_STABLELM] = {NAMED("stablelm", "stablelm", "phi with a gated feed-forward part",
                                    phi_fields),
                              .defaults = stablelm_defaults, .lora_default = LORA_QV,
                              .lora_targets = LORA_LLAMA},
    [FRAG_FAMILY_BART] = {NAMED("bart", "bart",
                                "encoder and decoder transformer with learnt positions",
                                bart_fields),
                          .has_learnt_positions = true, .is_encoder = true, .has_pairs = true,
                          .lora_default = LORA_QV,
                          .lora_targets = LORA_QV | FRAG_LORA_K | FRAG_LORA_FC1 | FRAG_LORA_FC2},
    [FRAG_FAMILY_WHISPER] = {NAMED("whisper", "whisper",
                                   "encoder of sounds and decoder transformer", whisper_fields),
                             .has_learnt_positions = true, .is_encoder = true, .has_sounds = true,
                             .has_no_offload = true,
                             .lora_targets = LORA_QV | FRAG_LORA_K | FRAG_LORA_FC1 | FRAG_LORA_FC2},
    [FRAG_FAMILY_T5] = {NAMED("t5", "t5",
                              "encoder and decoder transformer with biases of positions",
                              t5_fields),
                        .is_encoder = true, .has_pairs = true, .lora_default = LORA_QV,
                        .lora_targets = LORA_LLAMA},
    [FRAG_FAMILY_MT5] = {NAMED("mt5", "mt5", "t5 with a gate and a large vocabulary", t5_fields),
                         .defaults = mt5_defaults, .is_encoder = true, .has_pairs = true,
                         .lora_default = LORA_QV, .lora_targets = LORA_LLAMA},
    [FRAG_FAMILY_VIT] = {NAMED("vit", "vit", "encoder transformer over patches of an image",
                               vit_fields),
                         .has_learnt_positions = true, .is_encoder = true, .has_images = true},
    [FRAG_FAMILY_RESNET] = {NAMED("resnet", "resnet",
                                  "convolutions with batch norm and residual connections",
                                  resnet_fields),
                            .is_encoder = true, .has_images = true, .has_no_blocks = true},
    [FRAG_FAMILY_CONVNEXT] = {NAMED("convnext", "convnext",
                                    "depthwise convolutions with layer norms", convnext_fields),
                              .is_encoder = true, .has_images = true, .has_no_blocks = true,
                              .has_no_offload = true},
    [FRAG_FAMILY_MNASNET] = {NAMED("mnasnet", "",
                                   "depthwise convolutions with batch norm, as torchvision",
                                   mnasnet_fields),
                             .is_encoder = true, .has_images = true, .has_no_blocks = true,
                             .has_no_offload = true},
    [FRAG_FAMILY_DLRM] =
        {NAMED("dlrm", "",
               "recommender: tables of embeddings, linear layers, and products of all pairs",
               dlrm_fields),
         .is_encoder = true, .has_samples = true, .has_no_blocks = true, .has_no_offload = true},
    [FRAG_FAMILY_GRAPHSAGE] =
        {NAMED("graphsage", "", "means of neighbours in a graph, as torch_geometric", graph_fields),
         .is_encoder = true, .has_graphs = true, .has_no_blocks = true, .has_no_offload = true},
    [FRAG_FAMILY_GCN] = {NAMED("gcn", "",
                               "weighted sums of neighbours in a graph, as torch_geometric",
                               graph_fields),
                         .is_encoder = true, .has_graphs = true, .has_no_blocks = true,
                         .has_no_offload = true},
    [FRAG_FAMILY_UNET] = {NAMED("unet", "UNet2DConditionModel",
                                "U-Net of diffusion with cross attention to a text", unet_fields),
                          .lora_default = LORA_UNET, .lora_targets = LORA_UNET, .has_images = true,
                          .is_diffusion = true},
};
