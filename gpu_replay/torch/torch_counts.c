#include "gpu_replay/torch/torch_counts.h"

#include <stdio.h>

static void visit_one(const char *group, const frag_torch_count *count, frag_stat_visitor *visit,
                      void *context)
{
    const struct {
        const char *name;
        uint64_t value;
    } figures[] = {
        {"current", count->current},
        {"peak", count->peak},
        {"allocated", count->added},
        {"freed", count->removed},
    };
    for (size_t i = 0; i < sizeof figures / sizeof figures[0]; i++) {
        char name[96];
        snprintf(name, sizeof name, "%s.all.%s", group, figures[i].name);
        visit(context, name, (int64_t)figures[i].value);
    }
}

void frag_torch_counts_visit(const frag_torch_counts *counts, frag_stat_visitor *visit,
                             void *context)
{
    visit_one("requested_bytes", &counts->requested_bytes, visit, context);
    visit_one("allocated_bytes", &counts->allocated_bytes, visit, context);
    visit_one("active_bytes", &counts->active_bytes, visit, context);
    visit_one("reserved_bytes", &counts->reserved_bytes, visit, context);
    visit_one("allocation", &counts->allocations, visit, context);
    visit_one("active", &counts->active, visit, context);
    visit_one("segment", &counts->segments, visit, context);
    visit(context, "num_ooms", (int64_t)counts->oom_count);
}
