#include "studies/plan/fix_base.h"

const char *frag_fix_optimizer_class(const frag_workload *workload)
{
    static const char *const classes[] = {
        [FRAG_OPTIMIZER_ADAMW] = "torch.optim.AdamW",
        [FRAG_OPTIMIZER_ADAM] = "torch.optim.Adam",
        [FRAG_OPTIMIZER_SGD] = "torch.optim.SGD, lr=...",
        [FRAG_OPTIMIZER_MOMENTUM] = "torch.optim.SGD, lr=..., momentum=0.9",
        [FRAG_OPTIMIZER_RMSPROP] = "torch.optim.RMSprop",
        [FRAG_OPTIMIZER_ADAFACTOR] = "torch.optim.Adafactor",
        [FRAG_OPTIMIZER_ADAMW_8BIT] = "bitsandbytes.optim.AdamW8bit",
        [FRAG_OPTIMIZER_PAGED_ADAMW] = "bitsandbytes.optim.PagedAdamW",
        [FRAG_OPTIMIZER_PAGED_ADAMW_8BIT] = "bitsandbytes.optim.PagedAdamW8bit",
    };
    return classes[workload->optimizer];
}
