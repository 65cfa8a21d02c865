#include "workload/description/config_keys.h"

#include <inttypes.h>
#include <string.h>

/* ---- architectures */
/* The head that transformers would load with the model, if it is described. */
static bool read_head(const frag_json *json, frag_workload *workload, frag_error *error)
{
    static const struct {
        const char *name;
        uint64_t head; /* FRAG_HEAD_COUNT: not described */
    } heads[] = {
        {"ForSequenceClassification", FRAG_HEAD_SEQUENCE},
        {"ForTokenClassification", FRAG_HEAD_TOKEN},
        {"ForQuestionAnswering", FRAG_HEAD_ANSWER},
        {"ForMultipleChoice", FRAG_HEAD_COUNT},
        {"ForNextSentencePrediction", FRAG_HEAD_COUNT},
    };
    const frag_json_value *list = frag_json_at(json, "architectures");
    const char *name = NULL;
    if (list == NULL || !frag_json_is_array(list) || frag_json_count(list) == 0 ||
        !frag_json_read_text(frag_json_item(list, 0), &name))
        return true;
    const frag_family_fields *family = &frag_families[workload->network.family];
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
        if (strstr(name, heads[i].name) == NULL)
            continue;
        if (heads[i].head == FRAG_HEAD_COUNT || !frag_family_has_head(family, heads[i].head))
            return frag_fail(error, FRAG_E_INPUT,
                             "'architectures' is %s, whose head is not described; without that key "
                             "the model has the head of a language model, which needs more",
                             name);
        workload->head = heads[i].head;
        if (heads[i].head != FRAG_HEAD_ANSWER &&
            (!frag_config_read_field(json, frag_workload_knob("labels"), workload, error) ||
             !frag_config_read_field(json, frag_workload_knob("problem_type"), workload, error)))
            return false;
    }
    return true;
}

/* ---- dtype, which was torch_dtype before transformers 5 */
static void read_stored(const frag_json *json, frag_workload *workload)
{
    const char *type = "";
    if (!frag_json_find_text(json, "dtype", &type))
        (void)frag_json_find_text(json, "torch_dtype", &type);
    workload->stored = strcmp(type, "bfloat16") == 0  ? FRAG_PRECISION_BF16
                       : strcmp(type, "float16") == 0 ? FRAG_PRECISION_FP16
                                                      : FRAG_PRECISION_FP32;
}

/* ---- quantization_config */
static bool read_flag(const frag_json *json, const char *path)
{
    bool value = false;
    const frag_json_value *found = frag_json_at_path(json, path);
    return found != NULL && frag_json_read_flag(found, &value) && value;
}

/* BitsAndBytesConfig, with what transformers has where a key is left out. */
static bool read_bitsandbytes(const frag_json *json, frag_workload *workload, frag_error *error)
{
    const char *type = "fp4";
    if (read_flag(json, "quantization_config.load_in_8bit")) {
        workload->quantize = FRAG_QUANTIZE_INT8;
        return true;
    }
    (void)frag_json_find_text(json, "quantization_config.bnb_4bit_quant_type", &type);
    if (strcmp(type, "nf4") != 0)
        return frag_fail(error, FRAG_E_INPUT,
                         "'quantization_config.bnb_4bit_quant_type' is %s, which is not described; "
                         "expected nf4",
                         type);
    workload->quantize = read_flag(json, "quantization_config.bnb_4bit_use_double_quant")
                             ? FRAG_QUANTIZE_NF4_DOUBLE
                             : FRAG_QUANTIZE_NF4;
    return true;
}

static bool read_quantised(const frag_json *json, frag_workload *workload, frag_error *error)
{
    const char *method = NULL;
    const frag_json_value *found = frag_json_at_path(json, "quantization_config");
    if (found == NULL || frag_json_is_null(found))
        return true;
    bool has_method = frag_json_find_text(json, "quantization_config.quant_method", &method);
    bool has_bits = read_flag(json, "quantization_config.load_in_4bit") ||
                    read_flag(json, "quantization_config.load_in_8bit");
    if (has_method ? strcmp(method, "bitsandbytes") == 0 : has_bits)
        return read_bitsandbytes(json, workload, error);
    return frag_fail(error, FRAG_E_INPUT,
                     "'quantization_config.quant_method' is %s, whose weights are not described; "
                     "expected bitsandbytes, or no 'quantization_config' for weights that are not "
                     "quantised",
                     has_method ? method : "left out");
}

/* ---- layer_types */
enum { LAYERS_MAX = 1000 };

static bool has_window(const frag_network *of, uint64_t layer)
{
    return of->window > 0 && layer >= of->full_layers &&
           (of->full_every == 0 || (layer + 1) % of->full_every != 0);
}

static bool is_as_listed(const frag_network *of, const bool *are_sliding, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        if (has_window(of, i) != are_sliding[i])
            return false;
    return true;
}

/* The first layers whole and the others with a window, or every so many whole. Where all are,
 * transformers has the mask of the window all the same, which is not described. */
static bool follow_list(frag_network *of, const bool *are_sliding, uint64_t count)
{
    uint64_t whole = 0;
    uint64_t every = 1;
    while (whole < count && !are_sliding[whole])
        whole++;
    while (every <= count && are_sliding[every - 1])
        every++;
    if (whole == count)
        return false;
    frag_network tried = *of;
    tried.full_layers = whole;
    tried.full_every = 0;
    if (!is_as_listed(&tried, are_sliding, count)) {
        tried.full_layers = 0;
        tried.full_every = every;
    }
    bool is_followed = is_as_listed(&tried, are_sliding, count);
    if (is_followed)
        *of = tried;
    return is_followed;
}

static bool read_layer_types(const frag_json *json, frag_network *of, frag_error *error)
{
    bool are_sliding[LAYERS_MAX] = {false};
    const frag_json_value *list = frag_json_at(json, "layer_types");
    bool is_counted_from_whole = of->family == FRAG_FAMILY_MODERNBERT;
    if (list == NULL || !frag_json_is_array(list) || is_counted_from_whole)
        return true;
    uint64_t count = frag_json_count(list);
    if (count != of->layers)
        return frag_fail(error, FRAG_E_INPUT,
                         "'layer_types' has %" PRIu64 " layers, and the model %" PRIu64
                         "; expected as many",
                         count, of->layers);
    for (uint64_t i = 0; i < count && i < LAYERS_MAX; i++) {
        const char *type = "";
        (void)frag_json_read_text(frag_json_item(list, i), &type);
        are_sliding[i] = strcmp(type, "sliding_attention") == 0;
        if (!are_sliding[i] && strcmp(type, "full_attention") != 0)
            return frag_fail(error, FRAG_E_INPUT,
                             "'layer_types' has '%s'; expected full_attention and "
                             "sliding_attention: nothing else is described",
                             type);
    }
    if (is_as_listed(of, are_sliding, count) || follow_list(of, are_sliding, count))
        return true;
    return frag_fail(error, FRAG_E_INPUT,
                     "'layer_types' has an order that is not described, or a window that the model "
                     "has not; expected whole layers before those with a window, or every so many");
}

bool frag_config_read_keys(const frag_json *json, frag_workload *workload, frag_error *error)
{
    read_stored(json, workload);
    return read_head(json, workload, error) && read_quantised(json, workload, error) &&
           read_layer_types(json, &workload->network, error);
}
