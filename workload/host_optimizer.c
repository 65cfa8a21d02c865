#include "workload/host_optimizer.h"

#include "base/memory.h"

enum { COUNT_MIN = 4096 };

struct frag_host_optimizer {
    frag_workload workload;
    frag_model rest;
};

static bool is_on_host(const frag_tape *tape, frag_tensor parameter)
{
    return frag_tape_count(tape, parameter) >= COUNT_MIN;
}

/* The copy has its own stream, which a dry run waits for before it asks for more. */
static void give_back(frag_tape *tape, void *context, frag_tensor parameter)
{
    (void)context;
    if (is_on_host(tape, parameter))
        frag_tape_clear_gradient(tape, parameter);
}

frag_host_optimizer *frag_host_optimizer_create(frag_tape *tape, const frag_model *model)
{
    frag_host_optimizer *host = frag_alloc(1, sizeof *host);
    host->workload = *model->workload;
    if (host->workload.optimizer == FRAG_OPTIMIZER_ADAMW) /* CPUOffloadOptimizer's default */
        host->workload.optimizer_loop = FRAG_LOOP_FUSED;
    host->rest = *model;
    host->rest.workload = &host->workload;
    host->rest.parameter_count = 0;
    host->rest.parameters =
        frag_alloc((size_t)model->parameter_count + 1, sizeof *host->rest.parameters);
    for (uint32_t i = 0; i < model->parameter_count; i++) {
        frag_tensor parameter = model->parameters[i];
        if (!frag_tape_needs_gradient(tape, parameter))
            continue;
        if (!is_on_host(tape, parameter)) {
            host->rest.parameters[host->rest.parameter_count++] = parameter;
            continue;
        }
        for (uint32_t copy = 0; copy < 2; copy++) /* weight, gradient */
            frag_tape_take_host(tape, frag_tape_count(tape, parameter),
                                frag_tape_dtype(tape, parameter));
    }
    if ((host->workload.offload & FRAG_OFFLOAD_GRADIENTS) != 0)
        frag_tape_watch_gradients(tape, give_back, NULL);
    return host;
}

void frag_host_optimizer_destroy(frag_host_optimizer *host)
{
    if (host == NULL)
        return;
    frag_free(host->rest.parameters);
    frag_free(host);
}

const frag_model *frag_host_optimizer_rest(const frag_host_optimizer *host)
{
    return &host->rest;
}
