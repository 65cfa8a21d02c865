/* Fields of llama, and what else the families have that are llama with other defaults. */
#include "workload/description/field_tables.h"

const frag_field frag_llama_fields[] = {
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
    {FLAG("query_bias", "qkv_bias", has_query_bias, 0,
          "linear layers of queries, keys and values have biases")},
    {FLAG("inner_bias", "mlp_bias", has_inner_bias, 0,
          "linear layers of the feed-forward part have biases")},
    {FLAG("head_norms", "use_qk_norm", has_head_norms, 0,
          "queries and keys of each head are normalised")},
    {FLAG("wide_norms", NULL, has_wide_norms, 0, "norms multiply by 1 + weight, in fp32")},
    {FLAG("embedding_scale", NULL, has_embedding_scale, 0,
          "the embedding is multiplied by a number")},
    {FLAG("fused", NULL, is_fused, 0,
          "one layer makes queries, keys and values, one the two halves of the feed-forward part")},
    {FLAG("feed_fused", NULL, is_feed_fused, 0,
          "one layer makes the two halves of the feed-forward part")},
    {FLAG("parallel", NULL, is_parallel, 0,
          "attention and feed-forward part see the same hidden states")},
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
    {FLAG("paired_rotary", "rope_interleave", has_paired_rope, 0,
          "numbers next to each other are turned together")},
    {FLAG("complex_rotary", NULL, has_complex_rope, 0,
          "of latent attention, they are turned as complex numbers")},
    {FLAG("centred_norms", NULL, has_centred_norms, 0, "norms take the mean off, in fp32")},
    {FLAG("logit_scale", NULL, has_logit_scale, 0, "logits are multiplied by a number")},
    {RATIO("score_cap", "attn_logit_softcapping", score_cap, 0, 0, 1e6,
           "scores of eager attention are kept within it by tanh; 0: are not")},
    {RATIO("logit_cap", "final_logit_softcapping", logit_cap, 0, 0, 1e6,
           "so are logits; 0: are not")},
    {COUNT("experts", "num_local_experts|num_experts|n_routed_experts", experts, 0, 0, 1024,
           "in each feed-forward part; 0: it is one whole")},
    {COUNT("experts_chosen", "num_experts_per_tok", experts_chosen, 2, 1, 64,
           "experts that each token goes to")},
    {COUNT("router_groups", "n_group", router_groups, 0, 0, 1024,
           "of experts, of which each token's come from the best; 0: none")},
    {COUNT("router_groups_chosen", "topk_group", router_groups_chosen, 1, 0, 1024,
           "groups that they come from")},
    {"routing_method", "topk_method", FRAG_FIELD_CHOICE, NETWORK(routing_method),
     FRAG_ROUTING_GREEDY, 0, 0, "greedy|group_limited_greedy|noaux_tc",
     "of deepseek_v2: the best experts of all, or of the best groups"},
    {FLAG("exact_router", NULL, has_exact_router, 0, "the router's weight is in fp32")},
    {FLAG("scored_routing", NULL, has_scored_routing, 0,
          "a sigmoid scores each expert, and a bias is added for the choice")},
    {COUNT("query_rank", "q_lora_rank", query_rank, 0, 0, 65536,
           "of latent attention: width of what queries are made of; 0: of hidden states")},
    {COUNT("key_rank", "kv_lora_rank", key_rank, 0, 0, 65536,
           "so of keys and values, which a cache keeps; 0: attention is not latent")},
    {COUNT("plain_width", "qk_nope_head_dim", plain_width, 128, 1, 1024,
           "of a head of it that is not turned")},
    {COUNT("turned_width", "qk_rope_head_dim", turned_width, 64, 2, 1024, "and of what is")},
    {COUNT("value_width", "v_head_dim", value_width, 128, 1, 1024, "of a head's values")},
    {COUNT("expert_inner", "moe_intermediate_size", expert_inner, 0, 0, 1 << 20,
           "width of an expert; 0: inner")},
    {COUNT("expert_every", "decoder_sparse_step", expert_every, 1, 1, 1000,
           "every so many layers have experts, the others have none")},
    {COUNT("dense_layers", "first_k_dense_replace", dense_layers, 0, 0, 1000,
           "the first layers, which have none")},
    {COUNT("shared_experts", "n_shared_experts", shared_experts, 0, 0, 1024,
           "that every token goes to, as one that is so many times as wide")},
    {COUNT("shared_inner", "shared_expert_intermediate_size", shared_inner, 0, 0, 1 << 20,
           "width of a shared expert; 0: shared_experts times expert_inner")},
    {FLAG("shared_gate", NULL, has_shared_gate, 0,
          "what it makes is multiplied by a number for each token")},
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

const frag_field_default frag_mixtral_defaults[] = {
    {"positions", 131072}, {"inner", 14336}, {"key_heads", 8}, {"use_window", 1},
    {"window", 0},         {"experts", 8},   {.key = NULL},
};

const frag_field_default frag_qwen3_moe_defaults[] = {
    {"vocabulary", 151936}, {"positions", 32768},  {"width", 2048},      {"inner", 6144},
    {"layers", 24},         {"key_heads", 4},      {"head_norms", 1},    {"experts", 128},
    {"experts_chosen", 8},  {"expert_inner", 768}, {"typed_routing", 1}, {"normed_routing", 0},
    {"router_last", 1},     {.key = NULL},
};

const frag_field_default frag_olmoe_defaults[] = {
    {"vocabulary", 50304}, {"positions", 4096},  {"width", 2048},       {"inner", 2048},
    {"layers", 16},        {"heads", 16},        {"whole_norms", 1},    {"experts", 64},
    {"experts_chosen", 8}, {"typed_routing", 1}, {"normed_routing", 0}, {"router_last", 0},
    {.key = NULL},
};

const frag_field_default frag_qwen2_moe_defaults[] = {
    {"vocabulary", 151936}, {"positions", 32768},   {"width", 2048},        {"inner", 5632},
    {"layers", 24},         {"heads", 16},          {"query_bias", 1},      {"full_layers", 28},
    {"experts", 60},        {"experts_chosen", 4},  {"expert_inner", 1408}, {"typed_routing", 1},
    {"normed_routing", 0},  {"shared_inner", 5632}, {"shared_gate", 1},     {.key = NULL},
};

const frag_field_default frag_deepseek_v2_defaults[] = {
    {"vocabulary", 102400}, {"complex_rotary", 1}, {"experts", 64},    {"experts_chosen", 6},
    {"expert_inner", 1407}, {"shared_experts", 2}, {"router_last", 1}, {"exact_router", 1},
    {"query_rank", 1536},   {"key_rank", 512},     {.key = NULL},
};

const frag_field_default frag_deepseek_v3_defaults[] = {
    {"vocabulary", 129280},
    {"positions", 4096},
    {"width", 7168},
    {"inner", 18432},
    {"layers", 61},
    {"heads", 128},
    {"paired_rotary", 1},
    {"experts", 256},
    {"experts_chosen", 8},
    {"expert_inner", 2048},
    {"dense_layers", 3},
    {"shared_experts", 1},
    {"router_last", 1},
    {"exact_router", 1},
    {"scored_routing", 1},
    {"router_groups", 8},
    {"router_groups_chosen", 4},
    {"query_rank", 1536},
    {"key_rank", 512},
    {.key = NULL},
};

const frag_field_default frag_gpt_oss_defaults[] = {
    {"vocabulary", 201088}, {"positions", 131072}, {"width", 2880},      {"inner", 2880},
    {"layers", 36},         {"heads", 64},         {"key_heads", 8},     {"head_width", 64},
    {"attention_bias", 1},  {"use_window", 1},     {"window", 128},      {"full_every", 2},
    {"exact_parts", 1},     {"eager", 1},          {"sinks", 1},         {"half_rotary", 1},
    {"experts", 128},       {"experts_chosen", 4}, {"typed_routing", 1}, {"normed_routing", 0},
    {"clipped_experts", 1}, {.key = NULL},
};

const frag_field_default frag_mistral_defaults[] = {
    {"positions", 131072}, {"inner", 14336}, {"key_heads", 8}, {"use_window", 1}, {.key = NULL},
};

const frag_field_default frag_qwen2_defaults[] = {
    {"vocabulary", 151936}, {"positions", 32768}, {"inner", 22016},
    {"query_bias", 1},      {"full_layers", 28},  {.key = NULL},
};

const frag_field_default frag_qwen3_defaults[] = {
    {"vocabulary", 151936}, {"positions", 32768}, {"inner", 22016}, {"head_width", 128},
    {"head_norms", 1},      {"full_layers", 28},  {.key = NULL},
};

const frag_field_default frag_phi3_defaults[] = {
    {"vocabulary", 32064}, {"positions", 4096}, {"width", 3072}, {"inner", 8192},
    {"fused", 1},          {"use_window", 1},   {"window", 0},   {.key = NULL},
};

const frag_field_default frag_gemma_defaults[] = {
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

const frag_field_default frag_gemma2_defaults[] = {
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

const frag_field_default frag_gemma3_defaults[] = {
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

const frag_field_default frag_granite_defaults[] = {
    {"scales", 1},
    {.key = NULL},
};

const frag_field_default frag_olmo2_defaults[] = {
    {"vocabulary", 50304}, {"whole_norms", 1}, {"pre_norms", 0},
    {"post_norms", 1},     {"exact_parts", 1}, {.key = NULL},
};

const frag_field_default frag_smollm3_defaults[] = {
    {"vocabulary", 128256}, {"positions", 32768}, {"width", 2048}, {"layers", 36},
    {"heads", 16},          {"key_heads", 4},     {"tied", 1},     {"unturned_every", 4},
    {.key = NULL},
};

const frag_field_default frag_glm_defaults[] = {
    {"vocabulary", 151552}, {"positions", 131072}, {"inner", 13696},      {"layers", 40},
    {"key_heads", 2},       {"head_width", 128},   {"attention_bias", 1}, {"feed_fused", 1},
    {"rotary_share", 0.5},  {"paired_rotary", 1},  {.key = NULL},
};

const frag_field_default frag_glm4_defaults[] = {
    {"vocabulary", 151552}, {"positions", 131072}, {"inner", 13696},      {"layers", 40},
    {"key_heads", 2},       {"head_width", 128},   {"attention_bias", 1}, {"feed_fused", 1},
    {"rotary_share", 0.5},  {"paired_rotary", 1},  {"post_norms", 1},     {.key = NULL},
};

const frag_field_default frag_cohere_defaults[] = {
    {"vocabulary", 256000}, {"positions", 8192},  {"width", 8192},    {"inner", 22528},
    {"layers", 40},         {"heads", 64},        {"tied", 1},        {"parallel", 1},
    {"paired_rotary", 1},   {"centred_norms", 1}, {"logit_scale", 1}, {.key = NULL},
};
