#include "studies/explain/explain_purpose.h"

#include <string.h>

#include "base/memory.h"

const char *frag_purpose_name(frag_purpose purpose)
{
    static const char *const names[] = {FRAG_PURPOSES(FRAG_SECOND_OF_3)};
    return names[purpose];
}

const char *frag_purpose_title(frag_purpose purpose)
{
    static const char *const titles[] = {FRAG_PURPOSES(FRAG_THIRD_OF_3)};
    return titles[purpose];
}

/* A frame tells the purpose where its file holds the one text and its function is the other, or
 * holds what stands behind "*"; NULL: any. The first of the list that fits counts. */
static const struct {
    frag_purpose purpose;
    const char *file;
    const char *function;
} marks[] = {
    {FRAG_PURPOSE_OPTIMIZER, "/optim/", NULL},
    {FRAG_PURPOSE_OPTIMIZER, "/optimizers/", NULL},
    {FRAG_PURPOSE_OPTIMIZER, "deepspeed/ops/adam/", NULL},
    {FRAG_PURPOSE_OPTIMIZER, "deepspeed/runtime/zero/stage", "initialize_optimizer_states"},
    {FRAG_PURPOSE_WEIGHTS, "torch/nn/modules/module.py", "_apply"},
    {FRAG_PURPOSE_WEIGHTS, "torch/nn/modules/module.py", "<lambda>"}, /* what cuda() applies */
    {FRAG_PURPOSE_WEIGHTS, "torch/nn/modules/module.py", "convert"},
    {FRAG_PURPOSE_WEIGHTS, "torch/nn/modules/module.py", "load_state_dict"},
    {FRAG_PURPOSE_WEIGHTS, "torch/nn/modules/", "__init__"},
    {FRAG_PURPOSE_WEIGHTS, "torch/nn/parameter.py", NULL}, /* copies of modules, lazy ones */
    {FRAG_PURPOSE_WEIGHTS, "torch/serialization.py", NULL},
    {FRAG_PURPOSE_WEIGHTS, "safetensors/", NULL},
    {FRAG_PURPOSE_WEIGHTS, "transformers/modeling_utils.py", NULL},
    {FRAG_PURPOSE_WEIGHTS, "accelerate/utils/modeling.py", NULL},
    {FRAG_PURPOSE_CACHE, "cache_engine.py", NULL},
    {FRAG_PURPOSE_CACHE, "cache_utils.py", NULL},
    {FRAG_PURPOSE_CACHE, NULL, "*allocate_kv_cache"},
    {FRAG_PURPOSE_CACHE, NULL, "*initialize_kv_cache"},
    {FRAG_PURPOSE_CACHE, NULL, "*init_kv_cache"},
    {FRAG_PURPOSE_CACHE, NULL, "*create_kv_cache"},
    {FRAG_PURPOSE_CACHE, NULL, "*make_kv_cache"},
    {FRAG_PURPOSE_COMMUNICATION, "torch/distributed/", NULL},
    {FRAG_PURPOSE_COMMUNICATION, "torch/nn/parallel/", NULL}, /* buckets, replicas */
    {FRAG_PURPOSE_BACKWARD, "torch/autograd/", NULL},
    {FRAG_PURPOSE_BACKWARD, "torch/_tensor.py", "backward"},
    {FRAG_PURPOSE_BACKWARD, NULL, "backward"},
    {FRAG_PURPOSE_BACKWARD, NULL, "autograd thread (no Python stack)"}, /* as snapshots are read */
    {FRAG_PURPOSE_ACTIVATIONS, "torch/nn/", NULL},
    {FRAG_PURPOSE_ACTIVATIONS, NULL, "forward"},
};

/* Backward passes of torch.compile name the lines of the forward pass that their kernels are from.
 */
#define COMPILED_BACKWARD FRAG_PURPOSE_COUNT

static bool fits(const char *mark, const char *text, bool is_whole)
{
    if (mark == NULL)
        return true;
    if (is_whole && mark[0] != '*')
        return strcmp(text, mark) == 0;
    return strstr(text, mark + (mark[0] == '*')) != NULL;
}

static frag_purpose purpose_of_frame(const frag_recording *recording, const frag_frame *frame)
{
    const char *file = frag_strings_get(&recording->strings, frame->file);
    const char *function = frag_strings_get(&recording->strings, frame->name);
    if (fits("/_functorch/", file, false) && fits("backward", function, true))
        return COMPILED_BACKWARD;
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
        if (fits(marks[i].file, file, false) && fits(marks[i].function, function, true))
            return marks[i].purpose;
    return FRAG_PURPOSE_UNKNOWN;
}

/* Of a stack, from the innermost frame on. */
static frag_purpose with_caller(frag_purpose until_here, frag_purpose of_frame)
{
    if (of_frame == COMPILED_BACKWARD)
        return FRAG_PURPOSE_BACKWARD;
    return until_here != FRAG_PURPOSE_UNKNOWN ? until_here : of_frame;
}

frag_purpose frag_purpose_of_site(const frag_recording *recording, uint32_t site)
{
    if (site >= recording->site_count)
        return FRAG_PURPOSE_UNKNOWN;
    const frag_site *stack = &recording->sites[site];
    frag_purpose purpose = FRAG_PURPOSE_UNKNOWN;
    for (uint32_t i = 0; i < stack->count; i++) {
        uint32_t frame = recording->site_frames[stack->first + i];
        purpose = with_caller(purpose, purpose_of_frame(recording, &recording->frames[frame]));
    }
    return purpose;
}

static frag_purpose *purposes_of_frames(const frag_recording *recording)
{
    frag_purpose *of_frame = frag_alloc(recording->frame_count, sizeof *of_frame);
    for (uint32_t i = 0; i < recording->frame_count; i++)
        of_frame[i] = purpose_of_frame(recording, &recording->frames[i]);
    return of_frame;
}

frag_purpose *frag_purposes_of_sites(const frag_recording *recording)
{
    frag_purpose *of_frame = purposes_of_frames(recording);
    frag_purpose *of_site = frag_alloc(recording->site_count, sizeof *of_site);
    for (uint32_t site = 0; site < recording->site_count; site++) {
        const frag_site *stack = &recording->sites[site];
        for (uint32_t i = 0; i < stack->count; i++)
            of_site[site] =
                with_caller(of_site[site], of_frame[recording->site_frames[stack->first + i]]);
    }
    frag_free(of_frame);
    return of_site;
}
