/* The tables: fields of each family, knobs of a run. */
#include <math.h>

#include "workload/description/description.h"

#define NETWORK(name) offsetof(frag_network, name)
#define WORKLOAD(name) offsetof(frag_workload, name)
#define ACTIVATIONS "gelu_new|gelu|silu|relu"

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
    {"inner_bias", "mlp_bias", FRAG_FIELD_FLAG, NETWORK(has_inner_bias), 0, 0, 1, NULL,
     "linear layers of the feed-forward part have biases"},
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
    {"attention_dropout", "attention_probs_dropout_prob", FRAG_FIELD_RATIO,
     NETWORK(attention_dropout), 0.1, 0, 1, NULL, "0 to 1"},
    {"residual_dropout", "hidden_dropout_prob", FRAG_FIELD_RATIO, NETWORK(residual_dropout), 0.1, 0,
     1, NULL, "0 to 1"},
    {.key = NULL},
};

const frag_family_fields frag_families[FRAG_FAMILY_COUNT] = {
    [FRAG_FAMILY_GPT2] = {"gpt2", "gpt2", "decoder transformer with learnt positions", gpt2_fields},
    [FRAG_FAMILY_LLAMA] = {"llama", "llama",
                           "decoder transformer with rotary positions and RMS norm", llama_fields},
    [FRAG_FAMILY_BERT] = {"bert", "bert", "encoder transformer with a head for masked words",
                          bert_fields},
};

const frag_field frag_knobs[] = {
    {"task", NULL, FRAG_FIELD_CHOICE, WORKLOAD(task), FRAG_TASK_TRAIN, 0, 0, "train|evaluate",
     "training steps, or forward passes with a loss"},
    {"batch", NULL, FRAG_FIELD_COUNT, WORKLOAD(batch), 1, 1, 1 << 20, NULL, "sequences in a batch"},
    {"tokens", NULL, FRAG_FIELD_LENGTHS, WORKLOAD(tokens), 128, 1, COUNT_MAX, NULL,
     "tokens in a sequence: N, a list for batch after batch, or MIN..MAX drawn by the seed"},
    {"steps", NULL, FRAG_FIELD_COUNT, WORKLOAD(steps), 3, 1, 1 << 20, NULL, "steps"},
    {"accumulate", NULL, FRAG_FIELD_COUNT, WORKLOAD(accumulate), 1, 1, 1 << 16, NULL,
     "batches whose gradients are added up in one step"},
    {"precision", NULL, FRAG_FIELD_CHOICE, WORKLOAD(precision), FRAG_PRECISION_FP32, 0, 0,
     "fp32|tf32|bf16|fp16|amp-bf16|amp-fp16",
     "type of weights and activations; amp: weights in fp32, autocast"},
    {"optimizer", NULL, FRAG_FIELD_CHOICE, WORKLOAD(optimizer), FRAG_OPTIMIZER_ADAMW, 0, 0,
     "adamw|adam|sgd|momentum", "as torch.optim has them"},
    {"optimizer_loop", NULL, FRAG_FIELD_CHOICE, WORKLOAD(optimizer_loop), FRAG_LOOP_FOREACH, 0, 0,
     "foreach|fused|single", "how the optimizer goes over the parameters"},
    {"checkpoint", NULL, FRAG_FIELD_CHOICE, WORKLOAD(checkpoint), FRAG_CHECKPOINT_NONE, 0, 0,
     "none|blocks", "activations of each block are made anew in backward"},
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
