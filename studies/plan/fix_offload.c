#include "studies/plan/fix_offload.h"

/* Is it not there yet, and would it go with the rest? */
static bool takes(const frag_fix_base *base, uint64_t offload)
{
    frag_workload workload = base->setting.workload;
    bool is_new = (workload.offload & offload) != offload;
    workload.offload |= offload;
    return is_new && frag_workload_check(&workload, NULL);
}

/* ---- what autograd saves */
uint32_t frag_fix_count_activations(const frag_fix_base *base)
{
    return takes(base, FRAG_OFFLOAD_ACTIVATIONS);
}

void frag_fix_apply_activations(const frag_fix_base *base, uint32_t level,
                                frag_fit_setting *setting)
{
    (void)base;
    (void)level;
    setting->workload.offload |= FRAG_OFFLOAD_ACTIVATIONS;
}

/* ---- the optimizer */
static uint64_t bits_of(uint32_t level)
{
    return level > 1 ? FRAG_OFFLOAD_OPTIMIZER | FRAG_OFFLOAD_GRADIENTS : FRAG_OFFLOAD_OPTIMIZER;
}

/* torchao's chooses the loop itself. */
static frag_fix_base without_loop(const frag_fix_base *base)
{
    frag_fix_base free = *base;
    free.setting.workload.optimizer_loop = FRAG_LOOP_FOREACH;
    return free;
}

uint32_t frag_fix_count_host_optimizer(const frag_fix_base *base)
{
    const frag_fix_base free = without_loop(base);
    return takes(&free, bits_of(2)) ? 2 : takes(&free, bits_of(1));
}

/* In the place of what other fixes have made of the optimizer so far. */
void frag_fix_apply_host_optimizer(const frag_fix_base *base, uint32_t level,
                                   frag_fit_setting *setting)
{
    setting->workload.offload |= bits_of(level);
    setting->workload.optimizer = base->setting.workload.optimizer;
    setting->workload.optimizer_loop = FRAG_LOOP_FOREACH;
}

void frag_fix_describe_host_optimizer(const frag_fit_setting *setting, frag_text *text)
{
    bool has_gradients = (setting->workload.offload & FRAG_OFFLOAD_GRADIENTS) != 0;
    frag_text_add(text, "%s", has_gradients ? "state and gradients" : "state");
}

void frag_fix_line_host_optimizer(const frag_fix_base *base, const frag_fit_setting *setting,
                                  frag_fix_place place, frag_text *text)
{
    (void)base;
    const frag_workload *workload = &setting->workload;
    bool has_gradients = (workload->offload & FRAG_OFFLOAD_GRADIENTS) != 0;
    if (place == FRAG_FIX_TORCH && workload->optimizer <= FRAG_OPTIMIZER_RMSPROP)
        frag_text_add(text, "torchao.optim.CPUOffloadOptimizer(model.parameters(), %s%s)",
                      frag_fix_optimizer_class(workload),
                      has_gradients ? ", offload_gradients=True" : "");
}

/* ---- shards, with gradients and the optimizer's state */
/* In place of DDP, whose devices have all of each. */
static frag_fix_base in_shards(const frag_fix_base *base)
{
    frag_fix_base sharded = *base;
    uint64_t *parallel = &sharded.setting.workload.parallel;
    if (*parallel == FRAG_PARALLEL_DDP || *parallel == FRAG_PARALLEL_ZERO1)
        *parallel = FRAG_PARALLEL_FSDP;
    return sharded;
}

uint32_t frag_fix_count_host_shards(const frag_fix_base *base)
{
    const frag_fix_base sharded = in_shards(base);
    return sharded.setting.workload.parallel == FRAG_PARALLEL_FSDP &&
           takes(&sharded, FRAG_OFFLOAD_PARAMETERS);
}

/* In the place of what other fixes have made of the optimizer so far. */
void frag_fix_apply_host_shards(const frag_fix_base *base, uint32_t level,
                                frag_fit_setting *setting)
{
    (void)level;
    frag_workload *workload = &setting->workload;
    workload->offload |= FRAG_OFFLOAD_PARAMETERS;
    workload->parallel = FRAG_PARALLEL_FSDP;
    if (workload->optimizer > FRAG_OPTIMIZER_RMSPROP)
        workload->optimizer = base->setting.workload.optimizer;
}

/* ---- weights, where nothing is trained */
/* Every one of them is a request in each layer of each pass, behind which the cache is emptied: so
 * many passes through layers take a second or two. */
enum { PASSES_MAX = 1 << 14 };

static bool takes_long(const frag_workload *workload)
{
    return workload->task == FRAG_TASK_GENERATE &&
           workload->new_tokens * workload->network.layers * workload->steps > PASSES_MAX;
}

static bool takes_weights(const frag_fix_base *base)
{
    return base->setting.workload.parallel == FRAG_PARALLEL_NONE &&
           takes(base, FRAG_OFFLOAD_PARAMETERS);
}

uint32_t frag_fix_count_host_weights(const frag_fix_base *base)
{
    return takes_weights(base) && !takes_long(&base->setting.workload);
}

bool frag_fix_is_host_left_out(const frag_fix_base *base)
{
    return takes_weights(base) && takes_long(&base->setting.workload);
}

/* In the place of weights of 4 bits. */
void frag_fix_apply_host_weights(const frag_fix_base *base, uint32_t level,
                                 frag_fit_setting *setting)
{
    (void)level;
    setting->workload.offload |= FRAG_OFFLOAD_PARAMETERS;
    if (setting->workload.quantize != base->setting.workload.quantize) {
        setting->workload.quantize = base->setting.workload.quantize;
        setting->workload.precision = base->setting.workload.precision;
    }
}

void frag_fix_line_host_weights(const frag_fix_base *base, const frag_fit_setting *setting,
                                frag_fix_place place, frag_text *text)
{
    (void)base;
    bool is_diffusion = frag_families[setting->workload.network.family].is_diffusion;
    if (place == FRAG_FIX_TORCH)
        frag_text_add(text, "%s",
                      is_diffusion ? "pipe.enable_sequential_cpu_offload()"
                                   : "accelerate.cpu_offload(model, torch.device(\"cuda\"))");
}
