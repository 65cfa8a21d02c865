/* How fields are written in the tables of families: for fields.c and those beside it alone. */
#ifndef FRAG_DESCRIPTION_FIELD_TABLES_H
#define FRAG_DESCRIPTION_FIELD_TABLES_H

#include "workload/description/description.h"

#define NETWORK(name) offsetof(frag_network, name)
#define ACTIVATIONS "gelu_new|gelu|silu|relu|relu2"

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
/* What a head's dropout is where nothing is said: residual_dropout. */
#define FRAG_AS_RESIDUAL (-1)
#define HEAD_DROPOUT(name, initial)                                                                \
    "head_dropout", name, FRAG_FIELD_RATIO, NETWORK(head_dropout), initial, 0, 1, NULL,            \
        "0 to 1, of a head for classes"
#define IMAGE(name, initial)                                                                       \
    "image", name, FRAG_FIELD_COUNT, NETWORK(image), initial, 1, 1 << 14, NULL,                    \
        "pixels along a side"
#define IMAGE_CHANNELS(name, initial)                                                              \
    "image_channels", name, FRAG_FIELD_COUNT, NETWORK(image_channels), initial, 1, 4096, NULL,     \
        "of the images"
#define CLASSES(name, initial)                                                                     \
    "classes", name, FRAG_FIELD_COUNT, NETWORK(classes), initial, 1, FRAG_FIELD_COUNT_MAX, NULL,   \
        "that images belong to"

/* Of encoders over text (fields_encoders.c). */
extern const frag_field frag_bert_fields[];
extern const frag_field_default frag_roberta_defaults[];
extern const frag_field_default frag_xlm_roberta_defaults[];
extern const frag_field frag_electra_fields[];
extern const frag_field frag_albert_fields[];
extern const frag_field frag_mpnet_fields[];
extern const frag_field frag_deberta_fields[];
extern const frag_field frag_modernbert_fields[];
extern const frag_field frag_distilbert_fields[];

/* Of llama and of the families that have other defaults (fields_llama.c). */
extern const frag_field frag_llama_fields[];
extern const frag_field_default frag_mixtral_defaults[];
extern const frag_field_default frag_qwen3_moe_defaults[];
extern const frag_field_default frag_olmoe_defaults[];
extern const frag_field_default frag_qwen2_moe_defaults[];
extern const frag_field_default frag_deepseek_v2_defaults[];
extern const frag_field_default frag_deepseek_v3_defaults[];
extern const frag_field_default frag_gpt_oss_defaults[];
extern const frag_field_default frag_mistral_defaults[];
extern const frag_field_default frag_qwen2_defaults[];
extern const frag_field_default frag_qwen3_defaults[];
extern const frag_field_default frag_phi3_defaults[];
extern const frag_field_default frag_gemma_defaults[];
extern const frag_field_default frag_gemma2_defaults[];
extern const frag_field_default frag_gemma3_defaults[];
extern const frag_field_default frag_granite_defaults[];
extern const frag_field_default frag_olmo2_defaults[];
extern const frag_field_default frag_smollm3_defaults[];
extern const frag_field_default frag_glm_defaults[];
extern const frag_field_default frag_glm4_defaults[];
extern const frag_field_default frag_cohere_defaults[];

/* Of networks of torchvision (fields_torchvision.c). */
extern const frag_field frag_mnasnet_fields[];
extern const frag_field frag_vgg_fields[];
extern const frag_field frag_mobilenet_v2_fields[];
extern const frag_field frag_mobilenet_v3_fields[];
extern const frag_field frag_regnet_fields[];
extern const frag_field frag_efficientnet_fields[];
extern const frag_field frag_densenet_fields[];

#endif
