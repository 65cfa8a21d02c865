/* Does a program leak device memory? What is live at the lowest point of each step, group by group:
 * what rises step after step until the end is a leak; what rises once, levels off or falls again is
 * none. And when it will be out of memory. */
#ifndef FRAG_LEAKS_LEAKS_H
#define FRAG_LEAKS_LEAKS_H

#include "studies/leaks/leak_forecast.h"
#include "studies/policy_settings.h"

/* X(enumerator, name in JSON, for people) */
#define FRAG_LEAK_KINDS(X)                                                                         \
    X(KEPT, "kept", "blocks are kept: by a list, a dict, an attribute or a reference cycle")       \
    X(SCALAR, "scalar",                                                                            \
      "a value of a few bytes is kept each time: a loss or metric without "                        \
      ".item()")                                                                                   \
    X(GRAPH, "graph",                                                                              \
      "activations are kept: an output or loss, mostly with its graph; .item() it, move it to "    \
      "the CPU (detached, it still is kept), or wrap evaluation in torch.no_grad()")               \
    X(GROWING, "growing",                                                                          \
      "a block is replaced by ever larger ones: a cache, or a tensor that is "                     \
      "appended to")                                                                               \
    X(OPTIMIZER, "optimizer",                                                                      \
      "state of the optimizer is added: parameters join it, or it is "                             \
      "made anew")                                                                                 \
    X(FRAGMENTATION, "fragmentation", "the allocator reserves more though nothing is kept")

typedef enum frag_leak_kind {
#define FRAG_LEAK_ENUM(name, text, person) FRAG_LEAK_##name,
    FRAG_LEAK_KINDS(FRAG_LEAK_ENUM)
#undef FRAG_LEAK_ENUM
        FRAG_LEAK_KIND_COUNT
} frag_leak_kind;

const char *frag_leak_kind_name(frag_leak_kind kind);
const char *frag_leak_kind_title(frag_leak_kind kind);

typedef struct frag_leak {
    frag_leak_kind kind;
    const frag_use_name *name; /* NULL: blocks of changing sizes, or what the allocator reserves */
    uint64_t first_step;       /* in which it rises first */
    uint64_t start_bytes;      /* kept at the lowest point of the first step that counts ... */
    uint64_t end_bytes;        /* ... and of the last */
    double bytes_per_step;
    double blocks_per_step;
    double rising_ratio; /* part of the looked-at times at which it rose */
    bool is_sure;        /* it rises evenly, over steps that were found, not made */
} frag_leak;

/* What rose, but is none: it rose once, or ever less. */
typedef struct frag_leak_lookalike {
    const frag_use_name *name;
    bool levels_off; /* false: it rose at one time */
    uint64_t step;   /* of its last rise */
    uint64_t bytes;
} frag_leak_lookalike;

typedef struct frag_leaks_options {
    const frag_context *context;
    const char *mark;               /* of steps; NULL: they are found */
    const frag_policy_spec *spec;   /* NULL: pytorch, with the settings of the recording if any */
    const frag_device_spec *device; /* with a capacity: when will it be full? */
} frag_leaks_options;

typedef struct frag_leaks {
    frag_use_groups groups;
    bool is_by_size; /* the recording has no call stacks */
    frag_steps steps;
    frag_leak *leaks; /* the fastest first */
    size_t count;
    frag_leak_lookalike *lookalikes; /* the largest first */
    size_t lookalike_count;
    uint64_t peak_reserved_bytes; /* of the replay */
    bool has_forecast;            /* there are leaks, and the device has a capacity */
    frag_leak_forecast forecast;
} frag_leaks;

/* false: no steps, a policy that does not fit, a cancelled context. The recording (with call sites)
 * and its trace outlive the leaks, which the caller destroys, either way. */
bool frag_leaks_find(const frag_leaks_options *options, const frag_recording *recording,
                     const frag_trace *trace, frag_leaks *leaks, frag_error *error);
void frag_leaks_destroy(frag_leaks *leaks);

#endif
