#include "studies/explain/advice.h"

#include <string.h>

#include "base/bytes.h"
#include "studies/explain/advice_rules.h"

static bool is_of(const frag_message *message, frag_framework framework)
{
    return message != NULL && message->framework == framework;
}

/* Which name works, whatever the release: the newer one was ignored up to 2.9. */
static frag_conf_variable variable_of(const frag_message *message)
{
    return is_of(message, FRAG_FRAMEWORK_PYTORCH_HIP)         ? FRAG_CONF_HIP
           : is_of(message, FRAG_FRAMEWORK_PYTORCH_NPU)       ? FRAG_CONF_NPU
           : frag_advice_has_release(message, "PyTorch 2.10") ? FRAG_CONF_PLAIN
                                                              : FRAG_CONF_CUDA;
}

typedef struct tools {
    const char *look; /* lists the processes that hold a device */
    const char *pick; /* the variable that names the devices a program may see */
} tools;

static tools tools_of(const frag_messages *messages, const frag_message *message)
{
    if ((messages->scenes & FRAG_SCENE_METAL) != 0)
        return (tools){"Activity Monitor", "CUDA_VISIBLE_DEVICES"};
    if ((messages->scenes & FRAG_SCENE_TPU) != 0)
        return (tools){"tpu-info", "TPU_VISIBLE_CHIPS"};
    switch (message != NULL ? message->framework : FRAG_FRAMEWORK_UNKNOWN) {
    case FRAG_FRAMEWORK_PYTORCH_HIP:
        return (tools){"rocm-smi --showpids", "HIP_VISIBLE_DEVICES"};
    case FRAG_FRAMEWORK_PYTORCH_XPU:
        return (tools){"xpu-smi ps", "ZE_AFFINITY_MASK"};
    case FRAG_FRAMEWORK_HABANA:
        return (tools){"hl-smi", "HABANA_VISIBLE_MODULES"};
    case FRAG_FRAMEWORK_ASCEND:
    case FRAG_FRAMEWORK_PYTORCH_NPU:
        return (tools){"npu-smi info", "ASCEND_RT_VISIBLE_DEVICES"};
    case FRAG_FRAMEWORK_GGML:
    case FRAG_FRAMEWORK_OLLAMA:
    case FRAG_FRAMEWORK_ONNXRUNTIME:
    case FRAG_FRAMEWORK_UNKNOWN:
        return (tools){"nvidia-smi (or rocm-smi, xpu-smi)", "CUDA_VISIBLE_DEVICES"};
    default:
        return (tools){"nvidia-smi", "CUDA_VISIBLE_DEVICES"};
    }
}

/* What the share of make_utilisation is, which is below what is free. */
static frag_amount share_of(const frag_diagnosis *diagnosis)
{
    frag_amount total = diagnosis->figures[FRAG_FIGURE_TOTAL];
    unsigned share = frag_advice_share(diagnosis);
    uint64_t bytes = total.bytes / 100 * share + total.bytes % 100 * share / 100;
    return (frag_amount){
        .is_known = share > 0, .bytes = bytes, .slack_bytes = total.slack_bytes * share / 100};
}

static frag_amount gain_of(frag_gain_source source, const frag_diagnosis *diagnosis)
{
    switch (source) {
    case FRAG_GAIN_IDLE:
        return diagnosis->figures[FRAG_FIGURE_IDLE];
    case FRAG_GAIN_OTHERS:
        return frag_advice_others(diagnosis);
    case FRAG_GAIN_CONTEXT:
        return diagnosis->context;
    case FRAG_GAIN_FREE:
        return diagnosis->figures[FRAG_FIGURE_FREE];
    case FRAG_GAIN_SHARE:
        return share_of(diagnosis);
    case FRAG_GAIN_PRIVATE:
        return diagnosis->figures[FRAG_FIGURE_PRIVATE];
    case FRAG_GAIN_MISSING:
        return diagnosis->missing;
    case FRAG_GAIN_UNKNOWN:
        break;
    }
    return (frag_amount){0};
}

static void add_marked(frag_text *text, const char *from, const char *setting, tools names)
{
    while (*from != '\0') {
        size_t before = strcspn(from, "@<>");
        frag_text_add(text, "%.*s", (int)before, from);
        from += before;
        if (*from == '\0')
            break;
        frag_text_add(text, "%s", *from == '@' ? setting : *from == '<' ? names.look : names.pick);
        from++;
    }
}

static void add_step(frag_advice *advice, const frag_advice_rule *from, const frag_message *message,
                     const frag_diagnosis *diagnosis, tools names)
{
    frag_text made = {0};
    const char *setting =
        from->conf_setting != NULL ? from->conf_setting[variable_of(message)] : from->setting;
    if (from->make_setting != NULL) {
        from->make_setting(diagnosis, &made);
        if (made.length == 0)
            return;
        setting = made.bytes;
    }
    frag_advice_step *step = &advice->steps[advice->count++];
    *step = (frag_advice_step){.action = from->action, .setting = setting, .made = made};
    frag_amount gain = gain_of(from->gain, diagnosis);
    add_marked(&step->text, from->text, setting, names);
    if (from->with_gain != NULL && gain.is_known && gain.bytes > 0) {
        const char *rest = strstr(from->with_gain, "%s");
        frag_text_add(&step->text, "%.*s%s%s", (int)(rest - from->with_gain), from->with_gain,
                      FRAG_BYTES(gain.bytes), rest + 2);
        if (from->gain != FRAG_GAIN_MISSING)
            step->gain = gain;
    }
    frag_text_add(&step->text, ".");
}

void frag_advise(const frag_messages *messages, const frag_message *message,
                 const frag_diagnosis *diagnosis, frag_advice *advice)
{
    *advice = (frag_advice){.count = 0};
    frag_framework framework = message != NULL ? message->framework : FRAG_FRAMEWORK_UNKNOWN;
    uint32_t facts = frag_advice_facts(messages, message, diagnosis);
    for (size_t i = 0; i < frag_advice_rule_count && advice->count < FRAG_ADVICE_MAX; i++) {
        const frag_advice_rule *from = &frag_advice_rules[i];
        if ((from->verdicts & (1u << diagnosis->verdict)) == 0 ||
            (from->frameworks & (1u << framework)) == 0 ||
            (from->unless_set != FRAG_SETTING_NONE && messages->is_on[from->unless_set]) ||
            (from->when & ~facts) != 0 || (from->unless & facts) != 0)
            continue;
        add_step(advice, from, message, diagnosis, tools_of(messages, message));
    }
}

void frag_advice_step_destroy(frag_advice_step *step)
{
    frag_text_destroy(&step->made);
    frag_text_destroy(&step->text);
}

void frag_advice_destroy(frag_advice *advice)
{
    for (size_t i = 0; i < advice->count; i++)
        frag_advice_step_destroy(&advice->steps[i]);
    advice->count = 0;
}
