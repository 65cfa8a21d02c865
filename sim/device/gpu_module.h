/* The contract between fraglab and the module that drives a real GPU: a shared object that the one
 * binary opens when it is asked for. The module holds everything that speaks CUDA; the binary
 * offers it its own functions (errors, device front) and gets one table.
 *
 * A context can be poisoned for good by one bad call, so the binary uses the module in a child
 * process only. */
#ifndef FRAG_DEVICE_GPU_MODULE_H
#define FRAG_DEVICE_GPU_MODULE_H

#include "sim/device.h"

#define FRAG_GPU_MODULE_ABI 1
/* The module's one exported symbol: a frag_gpu_module. */
#define FRAG_GPU_MODULE_SYMBOL "frag_gpu_module_table"

typedef struct frag_gpu frag_gpu; /* one card with a context on it */

/* What is known of an open card. Sizes in bytes. */
typedef struct frag_gpu_facts {
    char name[128];
    char pci[32];
    char runtime_path[256];
    int runtime_version; /* 13000 is 13.0 */
    int driver_version;
    int capability; /* 90 is 9.0 */
    bool has_virtual_memory;
    bool has_pools;
    uint64_t total_bytes;
    uint64_t free_bytes;
    uint64_t granularity_bytes; /* of cuMemCreate; 0: no virtual memory */
} frag_gpu_facts;

typedef struct frag_gpu_device_options {
    /* The policy's limit, kept by counting whole pages before the driver is asked, as the simulated
     * device does; FRAG_UNLIMITED: the card's own end. */
    uint64_t capacity_bytes;
    uint64_t used_by_others_bytes; /* counted on top, as on the simulated device */
    uint64_t page_bytes;           /* 0: 2 MiB */
    /* Fill the card until this capacity is left, so that the refusal is the driver's own. */
    bool has_ballast;
    /* frag_device_touch writes; what is unmapped is waited for first. */
    bool is_touched;
    /* The streams are those of a program that runs (frag_cuda_device_set_stream): the card says
     * which events are done. Else what is done is decided by the recording, and waited for. */
    bool has_program_streams;
    /* Which addresses the policy sees: those of the rule, kept apart from where the memory really
     * is, so that ties fall as on the simulated device; or the driver's own. */
    bool has_driver_addresses;
    frag_sim_device_options rule; /* all but capacity, others, page and backing is used */
} frag_gpu_device_options;

/* What a run on the card left to say. Bytes. */
typedef struct frag_gpu_report {
    uint64_t free_before_bytes; /* free on the card after every kind of call was made once */
    uint64_t free_start_bytes;  /* when the run began, with the ballast in place */
    uint64_t free_after_bytes;  /* after everything was given back */
    uint64_t ballast_bytes;
    uint64_t pool_reserved_peak_bytes; /* of the driver's pool; 0: not used */
    uint64_t pool_used_peak_bytes;
} frag_gpu_report;

/* What a probe needs free: it holds at most a quarter of the free memory or 1 GiB at a time, and
 * everything for a moment when it may fill the card. */
#define FRAG_GPU_PROBE_BYTES ((uint64_t)512 << 20)

typedef struct frag_gpu_probe_options {
    /* To learn whether scattered pages serve a large malloc, all memory must be taken for a moment;
     * programs beside may fail to get any then. */
    bool may_fill;
    /* What the context took of the card, if someone can tell it apart from what others use; NULL or
     * false: all that is not free. Called once every kind of call was made. */
    bool (*context_bytes)(void *context, uint64_t *bytes);
    void *context;
} frag_gpu_probe_options;

struct frag_device_description;

typedef struct frag_gpu_module {
    uint32_t abi; /* FRAG_GPU_MODULE_ABI */
    const char *name;
    /* runtime_path NULL: found by name. NULL: FRAG_E_SYSTEM in the driver's words. */
    frag_gpu *(*open)(const char *runtime_path, uint32_t ordinal, frag_error *error);
    void (*close)(frag_gpu *gpu);
    /* false: the driver refused. */
    bool (*facts)(frag_gpu *gpu, frag_gpu_facts *facts, frag_error *error);
    /* The caller destroys it with frag_device_destroy, before the card is closed. */
    frag_device *(*device_create)(frag_gpu *gpu, const frag_gpu_device_options *options,
                                  frag_error *error);
    /* Gives everything back that the device still holds, as far as the context lives. The device
     * serves no call after it. */
    void (*device_finish)(frag_device *device, frag_gpu_report *report);
    /* Measures the card; nothing is held afterwards, whatever happens. Fills all but driver, date,
     * hardware and source. false: the driver refused, or too little is free. */
    bool (*probe)(frag_gpu *gpu, const frag_gpu_probe_options *options,
                  struct frag_device_description *description, frag_error *error);
} frag_gpu_module;

#endif
