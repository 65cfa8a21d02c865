/* Reads workloads: YAML by base/formats/yaml.h, config.json by base/json.h. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include "traces/formats.h"
#include "workload/description/config_keys.h"
#include "workload/description/field_values.h"
#include "workload/description/statistical.h"

enum { FILE_BYTES_MAX = 1 << 20 };

/* What a family has where nothing is said. */
static void set_defaults(frag_network *network)
{
    const frag_family_fields *family = &frag_families[network->family];
    frag_fields_set_initial(family->fields, network);
    for (const frag_field_default *at = family->defaults; at != NULL && at->key != NULL; at++) {
        const frag_field *field = frag_field_find(family->fields, at->key);
        FRAG_ASSERT(field != NULL);
        frag_field_set_number(field, network, at->initial);
    }
}

void frag_workload_init(frag_workload *workload)
{
    *workload = (frag_workload){.answer_tokens = {.count = 1}};
    frag_fields_set_initial(frag_knobs, workload);
}

const frag_field *frag_workload_knob(const char *key)
{
    const frag_field *field = frag_field_find(frag_knobs, key);
    FRAG_ASSERT(field != NULL);
    return field;
}

/* A task by its other name is the task. */
static void settle_task(frag_workload *workload)
{
    if (workload->task > FRAG_TASK_RLHF)
        workload->task = workload->task == FRAG_TASK_SFT ? FRAG_TASK_TRAIN : FRAG_TASK_RLHF;
}

bool frag_workload_set(frag_workload *workload, const char *key, const char *value,
                       frag_error *error)
{
    bool ok = frag_field_set_text(frag_workload_knob(key), workload, value, error);
    settle_task(workload);
    return ok;
}

/* What T5's one name says: "gated-gelu" is the formula of GPT-2 with a gate. */
static void complete_feed(frag_network *network)
{
    static const frag_activation activations[] = {FRAG_RELU, FRAG_GELU, FRAG_GELU_NEW, FRAG_SILU};
    network->is_gated = network->feed_forward >= FRAG_FEED_GATED_RELU;
    network->activation = network->feed_forward == FRAG_FEED_GATED_GELU
                              ? FRAG_GELU_NEW
                              : activations[network->feed_forward % FRAG_FEED_GATED_RELU];
    if (network->layers == 0)
        network->layers = network->encoder_layers;
}

/* What follows from other fields where it was left at 0. */
static void complete(frag_network *network)
{
    if (network->position_buckets > 0)
        complete_feed(network);
    if (network->inner == 0)
        network->inner = 4 * network->width;
    if (network->embedding_width == 0)
        network->embedding_width = network->width;
    if (network->has_shared_keys && !network->has_copied_keys)
        network->key_heads = 1;
    if (network->parallel_norms == 0)
        network->parallel_norms = network->has_copied_keys ? 2 : 1;
    if (network->key_heads == 0)
        network->key_heads = network->heads;
    if (network->key_rank > 0) /* as far as it is turned */
        network->head_width = network->turned_width;
    if (network->head_width == 0 && network->heads > 0)
        network->head_width = network->width / network->heads;
    if (!network->has_scored_routing && network->routing_method == FRAG_ROUTING_GREEDY)
        network->router_groups = 0;
    if (network->expert_inner == 0)
        network->expert_inner = network->inner;
    if (network->shared_inner == 0)
        network->shared_inner = network->shared_experts * network->expert_inner;
    if (network->head_dropout < 0)
        network->head_dropout = network->residual_dropout;
    if (!network->has_window)
        network->window = 0;
    if (network->patch > 0) /* a token for each patch, and one for the class */
        network->positions =
            (network->image / network->patch) * (network->image / network->patch) + 1;
}

/* ---- YAML */
/* lora: {rank: 8} is lora_rank: 8. */
static bool read_lora(const frag_yaml_node *lora, frag_workload *workload, frag_error *error)
{
    static const char *const keys[] = {"rank", "targets", "dropout", "dora", NULL};
    if (lora == NULL)
        return true;
    if (!frag_yaml_expect(lora, FRAG_YAML_MAPPING, "lora", error) ||
        !frag_yaml_check_keys(lora, keys, error))
        return false;
    for (const frag_yaml_node *node = lora->first; node != NULL; node = node->next) {
        char key[32] = "";
        snprintf(key, sizeof key, "lora_%s", node->key);
        if (!frag_field_read_node(frag_workload_knob(key), workload, node, error))
            return false;
    }
    return true;
}

static bool find_family(const char *name, bool is_config, frag_family_id *id)
{
    for (uint32_t i = 0; i < FRAG_FAMILY_COUNT; i++) {
        const frag_family_fields *family = &frag_families[i];
        uint64_t index = 0;
        if (is_config ? frag_choices_find(family->model_types, name, &index)
                      : strcmp(family->name, name) == 0) {
            *id = (frag_family_id)i;
            return true;
        }
    }
    return false;
}

/* Of diffusers. */
static bool refuse_class(const char *name, frag_error *error)
{
    return frag_fail(error, FRAG_E_INPUT, "'_class_name' is '%s'; expected %s, %s or %s", name,
                     frag_families[FRAG_FAMILY_UNET].model_types,
                     frag_families[FRAG_FAMILY_FLUX].model_types,
                     frag_families[FRAG_FAMILY_FLUX2].model_types);
}

/* The family that a name begins with, as densenet121 does, or is nearest to. There are too many to
 * name them all. */
static bool refuse_family(const char *name, frag_error *error)
{
    const char *names[FRAG_FAMILY_COUNT];
    const char *meant = NULL;
    for (uint32_t i = 0; i < FRAG_FAMILY_COUNT; i++) {
        size_t length = strlen(frag_families[i].name);
        names[i] = frag_families[i].name;
        if (strncmp(name, names[i], length) == 0 && (meant == NULL || length > strlen(meant)))
            meant = names[i];
    }
    if (meant == NULL)
        meant = frag_nearest_name(name, names, FRAG_FAMILY_COUNT);
    return frag_fail(error, FRAG_E_INPUT, "family is '%s'; %s%s", name,
                     meant != NULL ? "did you mean "
                                   : "docs/workloads.md names those that are known",
                     meant != NULL ? meant : "");
}

/* How many letters in a row both have somewhere. */
static size_t count_shared(const char *one, const char *other)
{
    size_t most = 0;
    for (const char *a = one; *a != '\0'; a++)
        for (const char *b = other; *b != '\0'; b++) {
            size_t here = 0;
            while (a[here] != '\0' && a[here] == b[here])
                here++;
            most = here > most ? here : most;
        }
    return most;
}

/* The known type whose name has the most in common with one that is not known: at least four
 * letters, or all of its own. Added to text; false: none has. */
static bool find_relative(const char *type, frag_text *text)
{
    enum { SHARED_MIN = 4 };
    const char *best = NULL;
    size_t most = 0;
    for (uint32_t i = 0; i < FRAG_FAMILY_COUNT; i++) {
        const char *name = frag_families[i].model_types;
        size_t length = strcspn(name, "|");
        size_t shared = count_shared(type, name);
        bool is_type = length > 0 && !frag_families[i].is_diffusion; /* others are classes */
        if (is_type && shared > most && (shared >= SHARED_MIN || shared == length)) {
            most = shared;
            best = name;
        }
    }
    if (best != NULL)
        frag_text_add(text, "%.*s", (int)strcspn(best, "|"), best);
    return best != NULL;
}

/* Names what is nearest, and the way that is open to every model. */
static bool refuse_type(const frag_json *json, const char *type, frag_error *error)
{
    frag_text hint = {0};
    frag_text relative = {0};
    const char *part = NULL;
    frag_family_id id = FRAG_FAMILY_LLAMA;
    const frag_json_value *text = frag_json_at_path(json, "text_config.model_type");
    if (text != NULL && frag_json_read_text(text, &part) && find_family(part, true, &id))
        frag_text_add(&hint, "its 'text_config' alone is %s, and is taken as a file of its own",
                      part);
    else if (find_relative(type, &relative))
        frag_text_add(&hint, "the nearest that is described is %s", relative.bytes);
    frag_fail(error, FRAG_E_INPUT,
              "'model_type' is '%s'; 'fraglab dryrun -- python train.py' takes any model; %s", type,
              hint.length > 0 ? hint.bytes : "docs/workloads.md names the others that are taken");
    frag_text_destroy(&hint);
    frag_text_destroy(&relative);
    return false;
}

static bool read_model(const frag_yaml_node *model, frag_workload *workload, frag_error *error)
{
    if (!frag_yaml_expect(model, FRAG_YAML_MAPPING, "model", error))
        return false;
    const frag_yaml_node *family = frag_yaml_find(model, "family");
    if (family == NULL)
        return frag_fail_line(error, model->line, model->column,
                              "'model' has no 'family'; expected one, such as 'family: gpt2'");
    if (!frag_yaml_expect(family, FRAG_YAML_SCALAR, "family", error))
        return false;
    frag_network *network = &workload->network;
    if (!find_family(family->text, false, &network->family)) {
        refuse_family(family->text, error);
        error->line = family->line;
        error->column = family->column;
        return false;
    }
    const frag_field *fields = frag_families[network->family].fields;
    set_defaults(network);
    static const char *const also[] = {"family", NULL};
    return frag_fields_read(model, (frag_field_group[]){{fields, network}, {NULL, NULL}}, also,
                            error);
}

/* A file that describes requests, not a network. */
static bool read_statistical(const frag_yaml_node *root, frag_statistical *statistical,
                             frag_error *error)
{
    static const char *const keys[] = {"statistical", NULL};
    const frag_yaml_node *mapping = frag_yaml_find(root, "statistical");
    if (statistical == NULL)
        return frag_fail_line(error, mapping->key_line, mapping->key_column,
                              "'statistical' describes requests, and a plan is of a network; "
                              "expected 'model' ('fraglab trace generate' and 'fraglab run "
                              "--capacity' say what fits)");
    return frag_yaml_check_keys(root, keys, error) &&
           frag_statistical_read(mapping, statistical, error);
}

static bool read_network(const frag_yaml_node *root, frag_workload *workload, frag_error *error)
{
    static const char *const also[] = {"lora", NULL};
    const frag_yaml_node *model = frag_yaml_find(root, "model");
    const frag_yaml_node *run = frag_yaml_find(root, "run");
    if (model == NULL)
        return frag_fail_line(error, root->line, root->column,
                              "the document has no 'model'; expected one");
    return read_model(model, workload, error) &&
           (run == NULL ||
            (frag_yaml_expect(run, FRAG_YAML_MAPPING, "run", error) &&
             frag_fields_read(run, (frag_field_group[]){{frag_knobs, workload}, {NULL, NULL}}, also,
                              error) &&
             read_lora(frag_yaml_find(run, "lora"), workload, error)));
}

static bool read_yaml(const frag_yaml_node *root, frag_workload *workload,
                      frag_statistical *statistical, frag_error *error)
{
    static const char *const keys[] = {"model", "run", "statistical", NULL};
    if (!frag_yaml_expect(root, FRAG_YAML_MAPPING, "the document", error) ||
        !frag_yaml_check_keys(root, keys, error))
        return false;
    return frag_yaml_find(root, "statistical") != NULL ? read_statistical(root, statistical, error)
                                                       : read_network(root, workload, error);
}

/* ---- config.json */
/* Names of transformers for what has another one here. */
static const char *plain_choice(const char *text)
{
    static const char *const same[][2] = {
        {"gelu_pytorch_tanh", "gelu"}, {"gelu_python", "gelu"}, {"swish", "silu"}};
    for (size_t i = 0; i < sizeof same / sizeof *same; i++)
        if (strcmp(text, same[i][0]) == 0)
            return same[i][1];
    return text;
}

/* The first of the paths "a|b.c" that is there, and not null. */
static const frag_json_value *find_member(const frag_json *json, const char *keys, char key[64])
{
    for (const char *at = keys; *at != '\0';) {
        size_t here = strcspn(at, "|");
        snprintf(key, 64, "%.*s", (int)here, at);
        const frag_json_value *value = frag_json_at_path(json, key);
        at += here + (at[here] == '|');
        if (value != NULL && (!frag_json_is_null(value) || *at == '\0'))
            return value;
    }
    return NULL;
}

static bool count_member(void *count, const char *key, const frag_json_value *value)
{
    (void)key;
    (void)value;
    ++*(uint64_t *)count;
    return true;
}

/* A number; a list of the same number for both sides of an image; as many as a mapping has keys. */
static bool read_count(const frag_json_value *value, const frag_field *field, uint64_t *count)
{
    uint64_t read = 0;
    if (frag_json_is_array(value)) {
        uint64_t other = 0;
        if (frag_json_count(value) != 2 ||
            !frag_json_read_number(frag_json_item(value, 0), &read) ||
            !frag_json_read_number(frag_json_item(value, 1), &other) || read != other)
            return false;
    } else if (!frag_json_read_number(value, &read) &&
               !frag_json_each_in(value, count_member, &read))
        return false;
    if ((double)read < field->min || (double)read > field->max)
        return false;
    *count = read;
    return true;
}

/* A stage of a U-Net, of which we keep whether it has attention. */
static bool read_block_type(const frag_json_value *value, uint64_t *has_attention)
{
    static const char types[] = "DownBlock2D|CrossAttnDownBlock2D|UpBlock2D|CrossAttnUpBlock2D";
    const char *text = NULL;
    if (!frag_json_read_text(value, &text) || !frag_choices_find(types, text, has_attention))
        return false;
    *has_attention %= 2;
    return true;
}

static bool read_stages_member(const frag_json_value *value, const frag_field *field,
                               frag_stages *stages)
{
    bool is_alone = !frag_json_is_array(value);
    frag_stages read = {.count = is_alone ? 1 : frag_json_count(value)};
    if (read.count == 0 || read.count > FRAG_STAGES_MAX)
        return false;
    for (uint64_t i = 0; i < read.count; i++) {
        uint64_t *here = &read.values[i];
        const frag_json_value *item = is_alone ? value : frag_json_item(value, i);
        if ((!frag_json_read_number(item, here) && !read_block_type(item, here)) ||
            (double)*here < field->min || (double)*here > field->max)
            return false;
    }
    *stages = read;
    return true;
}

/* A value of the kind that the field has. */
static bool read_value(const frag_json_value *value, const frag_field *field, void *base)
{
    uint64_t count = 0;
    double ratio = 0;
    bool flag = false;
    const char *text = NULL;
    void *at = (char *)base + field->offset;
    switch (field->kind) {
    case FRAG_FIELD_COUNT:
        return read_count(value, field, at);
    case FRAG_FIELD_STAGES:
        return read_stages_member(value, field, at);
    case FRAG_FIELD_RATIO:
        if (!frag_json_read_ratio(value, &ratio) || ratio < field->min || ratio > field->max)
            return false;
        frag_field_set_number(field, base, ratio);
        return true;
    case FRAG_FIELD_FLAG:
        if (!frag_json_read_flag(value, &flag))
            return false;
        frag_field_set_number(field, base, flag);
        return true;
    default:
        break;
    }
    if (!frag_json_read_text(value, &text) ||
        !frag_choices_find(field->choices, plain_choice(text), &count))
        return false;
    frag_field_set_number(field, base, (double)count);
    return true;
}

static void say_wanted(const frag_field *field, frag_text *text)
{
    if (field->kind == FRAG_FIELD_FLAG)
        frag_text_add(text, "true or false");
    else if (field->kind == FRAG_FIELD_CHOICE)
        frag_choices_list(field->choices, text);
    else if (field->kind == FRAG_FIELD_STAGES)
        frag_text_add(text, "a list of up to %d numbers, each %.0f to %.0f", FRAG_STAGES_MAX,
                      field->min, field->max);
    else
        frag_text_add(text, "%s %.10g to %.10g",
                      field->kind == FRAG_FIELD_COUNT ? "a whole number" : "a number", field->min,
                      field->max);
}

bool frag_config_read_field(const frag_json *json, const frag_field *field, void *base,
                            frag_error *error)
{
    char key[64];
    char found[FRAG_JSON_FOUND_MAX];
    const frag_json_value *value = find_member(json, field->hf_key, key);
    if (value == NULL)
        return true;
    if (frag_json_is_null(value)) {
        /* None: as many as follow from the rest, no window or no cap. */
        if ((field->kind == FRAG_FIELD_COUNT || field->kind == FRAG_FIELD_RATIO) && field->min == 0)
            frag_field_set_number(field, base, field->initial < 0 ? field->initial : 0);
        return true;
    }
    if (read_value(value, field, base))
        return true;
    frag_text wanted = {0};
    say_wanted(field, &wanted);
    frag_fail(error, FRAG_E_INPUT, "'%s' %s; expected %s", key, frag_json_found(value, found),
              wanted.bytes);
    frag_text_destroy(&wanted);
    return false;
}

/* What diffusers' U-Nets may have besides, and is not described: each must be absent or this. */
static bool check_unet(const frag_json *json, frag_error *error)
{
    static const struct {
        const char *key;
        const char *value; /* a text; NULL: null or false */
    } expected[] = {
        {"addition_embed_type", "text_time"},
        {"class_embed_type", NULL},
        {"num_class_embeds", NULL},
        {"encoder_hid_dim_type", NULL},
        {"encoder_hid_dim", NULL},
        {"time_cond_proj_dim", NULL},
        {"time_embedding_act_fn", NULL},
        {"time_embedding_dim", NULL},
        {"timestep_post_act", NULL},
        {"cross_attention_norm", NULL},
        {"dual_cross_attention", NULL},
        {"only_cross_attention", NULL},
        {"mid_block_only_cross_attention", NULL},
        {"center_input_sample", NULL},
        {"resnet_skip_time_act", NULL},
        {"reverse_transformer_layers_per_block", NULL},
        {"upcast_attention", NULL},
        {"act_fn", "silu"},
        {"mid_block_type", "UNetMidBlock2DCrossAttn"},
        {"resnet_time_scale_shift", "default"},
        {"time_embedding_type", "positional"},
    };
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        const frag_json_value *value = frag_json_at(json, expected[i].key);
        char found[FRAG_JSON_FOUND_MAX];
        const char *text = NULL;
        bool flag = false;
        bool is_none = value == NULL || frag_json_is_null(value) ||
                       (frag_json_read_flag(value, &flag) && !flag);
        if (is_none || (expected[i].value != NULL && frag_json_read_text(value, &text) &&
                        strcmp(text, expected[i].value) == 0))
            continue;
        return frag_fail(error, FRAG_E_INPUT, "'%s' %s; expected %s: nothing else is described",
                         expected[i].key, frag_json_found(value, found),
                         expected[i].value != NULL ? expected[i].value : "null");
    }
    return true;
}

/* Each must be absent, null or what is wanted: a number, or false, which may be written 0. */
typedef struct fixed_key {
    const char *path, *wanted;
} fixed_key;

static bool check_fixed(const frag_json *json, const fixed_key *keys, size_t count,
                        frag_error *error)
{
    for (size_t i = 0; i < count; i++) {
        const frag_json_value *value = frag_json_at_path(json, keys[i].path);
        char found[FRAG_JSON_FOUND_MAX];
        bool flag = false;
        double number = 0;
        const double wanted = strtod(keys[i].wanted, NULL); /* of false 0 */
        bool is_wanted = value == NULL || frag_json_is_null(value) ||
                         (frag_json_read_flag(value, &flag) && !flag && wanted == 0) ||
                         (frag_json_read_ratio(value, &number) && number == wanted);
        if (!is_wanted)
            return frag_fail(error, FRAG_E_INPUT, "'%s' %s; expected %s: nothing else is described",
                             keys[i].path, frag_json_found(value, found), keys[i].wanted);
    }
    return true;
}

/* A Whisper that leaves out layers or parts of a spectrogram by chance is not described. */
static const fixed_key whisper_keys[] = {
    {"apply_spec_augment", "false"}, {"encoder_layerdrop", "0"}, {"decoder_layerdrop", "0"}};
/* Nor are products of a BLOOM in slices, and dropout of an MPT. */
static const fixed_key bloom_keys[] = {{"slow_but_exact", "false"}};
static const fixed_key mpt_keys[] = {{"attn_config.attn_pdrop", "0"}};
/* Nor are larger patches, and other waves of time, of a FLUX. */
static const fixed_key patch_keys[] = {{"patch_size", "1"}, {"timestep_guidance_channels", "256"}};

static bool check_undescribed(const frag_json *json, frag_family_id family, frag_error *error)
{
    switch (family) {
    case FRAG_FAMILY_WHISPER:
        return check_fixed(json, whisper_keys, sizeof whisper_keys / sizeof *whisper_keys, error);
    case FRAG_FAMILY_BLOOM:
        return check_fixed(json, bloom_keys, 1, error);
    case FRAG_FAMILY_MPT:
        return check_fixed(json, mpt_keys, 1, error);
    case FRAG_FAMILY_FLUX:
    case FRAG_FAMILY_FLUX2:
        return check_fixed(json, patch_keys, sizeof patch_keys / sizeof *patch_keys, error);
    default:
        return true;
    }
}

/* A DeBERTa other than the second and third, which share one table of distances among queries and
 * keys, and have no other positions, is not described. */
static bool check_distances(const frag_json *json, frag_error *error)
{
    static const struct {
        const char *key;
        const char *value; /* "true", "false" and "0" as they are in JSON */
        bool is_needed;    /* transformers has another value where it is left out */
    } expected[] = {
        {"relative_attention", "true", true},
        {"share_att_key", "true", true},
        {"position_biased_input", "false", true},
        {"norm_rel_ebd", "layer_norm", true},
        {"type_vocab_size", "0", false},
        {"conv_kernel_size", "0", false},
        {"legacy", "true", false},
    };
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        const frag_json_value *value = frag_json_at(json, expected[i].key);
        char found[FRAG_JSON_FOUND_MAX];
        const char *text = NULL;
        bool flag = false;
        uint64_t count = 1;
        if (value == NULL && !expected[i].is_needed)
            continue;
        if (value != NULL && frag_json_read_flag(value, &flag))
            text = flag ? "true" : "false";
        else if (value != NULL && frag_json_read_number(value, &count) && count == 0)
            text = "0";
        else if (value != NULL)
            (void)frag_json_read_text(value, &text);
        if (text == NULL || strcmp(text, expected[i].value) != 0)
            return frag_fail(error, FRAG_E_INPUT, "'%s' %s; expected %s: nothing else is described",
                             expected[i].key,
                             value != NULL ? frag_json_found(value, found) : "is left out",
                             expected[i].value);
    }
    return true;
}

/* The scores of DeBERTa: by distances from queries and from keys, in any order and notation. */
static bool check_distance_kinds(const frag_json *json, frag_error *error)
{
    const frag_json_value *value = frag_json_at(json, "pos_att_type");
    const char *texts[2] = {NULL, NULL};
    char found[FRAG_JSON_FOUND_MAX];
    if (value != NULL && frag_json_is_array(value) && frag_json_count(value) == 2) {
        for (uint64_t i = 0; i < 2; i++)
            (void)frag_json_read_text(frag_json_item(value, i), &texts[i]);
    } else if (value != NULL && frag_json_read_text(value, &texts[0]))
        texts[1] = strchr(texts[0], '|');
    bool has_both = texts[0] != NULL && texts[1] != NULL &&
                    (strstr(texts[0], "c2p") != NULL || strstr(texts[1], "c2p") != NULL) &&
                    (strstr(texts[0], "p2c") != NULL || strstr(texts[1], "p2c") != NULL);
    return has_both || frag_fail(error, FRAG_E_INPUT,
                                 "'pos_att_type' %s; expected p2c|c2p: nothing else is described",
                                 value != NULL ? frag_json_found(value, found) : "is left out");
}

static bool check_stage_number(const frag_json *json, const frag_network *network,
                               frag_error *error)
{
    uint64_t stages = 0;
    const frag_json_value *value = frag_json_at(json, "num_stages");
    if (value == NULL || !frag_json_read_number(value, &stages) ||
        stages == network->channels.count)
        return true;
    return frag_fail(error, FRAG_E_INPUT,
                     "'num_stages' is %" PRIu64 ", and 'hidden_sizes' has %" PRIu64
                     " numbers; expected as many",
                     stages, network->channels.count);
}

/* What makes a network another one than is described. */
static bool check_config(const frag_json *json, const frag_network *network, frag_error *error)
{
    if (!check_undescribed(json, network->family, error))
        return false;
    if (network->family == FRAG_FAMILY_DEBERTA_V2 &&
        (!check_distances(json, error) || !check_distance_kinds(json, error)))
        return false;
    if (network->family == FRAG_FAMILY_CONVNEXT && !check_stage_number(json, network, error))
        return false;
    const frag_json_value *norms = frag_json_at(json, "qk_layernorm");
    bool has_norms = false;
    if (norms != NULL && frag_json_read_flag(norms, &has_norms) && has_norms)
        return frag_fail(error, FRAG_E_INPUT,
                         "'qk_layernorm' is true, and norms of queries and keys are not described "
                         "for this family; expected false");
    const frag_json_value *dense = frag_json_at(json, "mlp_only_layers");
    const frag_json_value *logits = frag_json_at(json, "output_router_logits");
    bool has_loss = false;
    if (network->experts == 0)
        return true;
    if (dense != NULL && frag_json_is_array(dense) && frag_json_count(dense) > 0)
        return frag_fail(error, FRAG_E_INPUT,
                         "'mlp_only_layers' names layers without experts, which are not described; "
                         "expected an empty list");
    if (logits != NULL && frag_json_read_flag(logits, &has_loss) && has_loss)
        return frag_fail(error, FRAG_E_INPUT,
                         "'output_router_logits' is true, and the loss of the router is not "
                         "described; expected false");
    return true;
}

static bool read_config(const frag_json *json, frag_workload *workload, frag_error *error)
{
    const char *type = NULL;
    frag_network *network = &workload->network;
    /* Of transformers; diffusers has the name of the class. */
    bool has_type = frag_json_find_text(json, "model_type", &type);
    if (!has_type && !frag_json_find_text(json, "_class_name", &type))
        return frag_fail(error, FRAG_E_INPUT,
                         "has no 'model_type'; expected the config.json of a model");
    if (!find_family(type, true, &network->family))
        return has_type ? refuse_type(json, type, error) : refuse_class(type, error);
    if (network->family == FRAG_FAMILY_UNET && !check_unet(json, error))
        return false;
    const frag_field *fields = frag_families[network->family].fields;
    set_defaults(network);
    for (const frag_field *field = fields; field->key != NULL; field++)
        if (field->hf_key != NULL && !frag_config_read_field(json, field, network, error))
            return false;
    return check_config(json, network, error);
}

/* ---- files */
bool frag_workload_parse(const char *bytes, size_t length, frag_workload *workload,
                         frag_statistical *statistical, frag_error *error)
{
    size_t mark = frag_text_mark_bytes(bytes, length);
    if (length >= 2 && (memcmp(bytes, "\xff\xfe", 2) == 0 || memcmp(bytes, "\xfe\xff", 2) == 0))
        return frag_fail(error, FRAG_E_INPUT, "is UTF-16; expected UTF-8");
    bytes += mark;
    length -= mark;
    size_t blank = 0;
    while (blank < length && strchr(" \t\r\n", bytes[blank]) != NULL && bytes[blank] != '\0')
        blank++;
    bool ok = false;
    if (blank < length && bytes[blank] == '{') {
        frag_json *json = frag_json_parse(bytes, length, error);
        ok = json != NULL && read_config(json, workload, error);
        if (ok)
            complete(&workload->network);
        ok = ok && frag_config_read_keys(json, workload, error);
        frag_json_destroy(json);
    } else {
        frag_yaml_node *root = frag_yaml_parse(bytes, length, error);
        ok = root != NULL && read_yaml(root, workload, statistical, error);
        frag_yaml_destroy(root);
        settle_task(workload);
        if (ok && (statistical == NULL || statistical->phase_count == 0))
            complete(&workload->network);
    }
    return ok;
}

/* The name of a model where its file is asked for. */
static bool refuse_name(const char *path, frag_error *error)
{
    const char *end = strrchr(path, '.');
    bool is_missing = error != NULL && strstr(error->sentence, strerror(ENOENT)) != NULL;
    if (is_missing && (end == NULL || strncmp(end, ".y", 2) != 0) && strstr(path, ".json") == NULL)
        frag_fail(error, FRAG_E_INPUT,
                  "there is no such file; of a model of Hugging Face give its config.json, for "
                  "example https://huggingface.co/%s/raw/main/config.json",
                  path);
    return false;
}

/* A recording is what people have at hand: other commands answer of it. */
static bool refuse_recording(const unsigned char *bytes, size_t count, frag_error *error)
{
    frag_trace_format format = FRAG_FORMAT_AUTO;
    size_t seen = count < FRAG_FORMAT_LOOK_BYTES ? count : FRAG_FORMAT_LOOK_BYTES;
    bool is_json = count > 0 && bytes[0] == '{';
    if (is_json || !frag_trace_format_detect(bytes, seen, &format))
        return true;
    return frag_fail(error, FRAG_E_INPUT,
                     "is a recording, not the description of a model; 'fraglab min-capacity' says "
                     "what it needs, 'fraglab explain --capacity SIZE' whether it fits");
}

bool frag_workload_load(const char *path, frag_workload *workload, frag_statistical *statistical,
                        frag_error *error)
{
    frag_input *input = frag_input_open(path, error);
    if (input == NULL)
        return refuse_name(path, error);
    const unsigned char *bytes = NULL;
    size_t count = 0;
    bool ok = frag_input_peek(input, FILE_BYTES_MAX + 1, &bytes, &count, error) &&
              refuse_recording(bytes, count, error);
    if (ok && count > FILE_BYTES_MAX)
        ok = frag_fail(error, FRAG_E_INPUT,
                       "has more than 1 MiB; expected a workload or a "
                       "model's config.json");
    ok = ok && frag_workload_parse((const char *)bytes, count, workload, statistical, error);
    if (!ok)
        frag_error_in(error, frag_input_name(input));
    frag_input_close(input);
    return ok;
}
