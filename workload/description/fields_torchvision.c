/* Fields of the networks over images that torchvision has. */
#include "workload/description/field_tables.h"

const frag_field frag_mnasnet_fields[] = {
    {IMAGE(NULL, 224)},
    {IMAGE_CHANNELS(NULL, 3)},
    {RATIO("alpha", NULL, alpha, 1, 0.01, 100,
           "all channels but the last ones are so many times as many, in multiples of 8")},
    {CLASSES(NULL, 1000)},
    {RATIO("residual_dropout", NULL, residual_dropout, 0.2, 0, 1, "before the classifier, 0 to 1")},
    {.key = NULL},
};

/* Which of the networks that torchvision names. */
#define VARIANT(initial, choices, help)                                                            \
    "variant", NULL, FRAG_FIELD_CHOICE, NETWORK(variant), initial, 0, 0, choices, help
#define CLASSIFIER_DROPOUT(initial)                                                                \
    RATIO("residual_dropout", NULL, residual_dropout, initial, 0, 1, "in the classifier, 0 to 1")

const frag_field frag_vgg_fields[] = {
    {VARIANT(2, "11|13|16|19", "convolutions and linear layers")},
    {FLAG("batch_norms", NULL, has_batch_norms, 0,
          "behind each convolution, as vgg16_bn has them")},
    {IMAGE(NULL, 224)},
    {IMAGE_CHANNELS(NULL, 3)},
    {CLASSES(NULL, 1000)},
    {CLASSIFIER_DROPOUT(0.5)},
    {.key = NULL},
};

#define CHANNELS_FACTOR                                                                            \
    RATIO("alpha", NULL, alpha, 1, 0.01, 100,                                                      \
          "channels are so many times as many, in multiples of 8 (width_mult)")

const frag_field frag_mobilenet_v2_fields[] = {
    {CHANNELS_FACTOR},     {IMAGE(NULL, 224)},        {IMAGE_CHANNELS(NULL, 3)},
    {CLASSES(NULL, 1000)}, {CLASSIFIER_DROPOUT(0.2)}, {.key = NULL},
};

const frag_field frag_mobilenet_v3_fields[] = {
    {VARIANT(1, "small|large", "mobilenet_v3_small or mobilenet_v3_large")},
    {CHANNELS_FACTOR},
    {IMAGE(NULL, 224)},
    {IMAGE_CHANNELS(NULL, 3)},
    {CLASSES(NULL, 1000)},
    {CLASSIFIER_DROPOUT(0.2)},
    {.key = NULL},
};

const frag_field frag_regnet_fields[] = {
    {VARIANT(0,
             "y_400mf|y_800mf|y_1_6gf|y_3_2gf|y_8gf|y_16gf|y_32gf|y_128gf|x_400mf|x_800mf|x_1_6gf|"
             "x_3_2gf|x_8gf|x_16gf|x_32gf",
             "the network's name behind regnet_")},
    {IMAGE(NULL, 224)},
    {IMAGE_CHANNELS(NULL, 3)},
    {CLASSES(NULL, 1000)},
    {.key = NULL},
};

const frag_field frag_efficientnet_fields[] = {
    {VARIANT(0, "b0|b1|b2|b3|b4|b5|b6|b7", "the network's name behind efficientnet_")},
    {IMAGE(NULL, 224)},
    {IMAGE_CHANNELS(NULL, 3)},
    {RATIO("drop_path", NULL, drop_path, 0.2, 0, 1,
           "of images that a block behind the last would be left out for, the first for none")},
    {CLASSES(NULL, 1000)},
    {CLASSIFIER_DROPOUT(0.2)},
    {.key = NULL},
};

const frag_field frag_densenet_fields[] = {
    {VARIANT(0, "121|161|169|201", "convolutions and the linear layer")},
    {IMAGE(NULL, 224)},
    {IMAGE_CHANNELS(NULL, 3)},
    {CLASSES(NULL, 1000)},
    {RATIO("residual_dropout", NULL, residual_dropout, 0, 0, 1, "behind each layer, 0 to 1")},
    {.key = NULL},
};
