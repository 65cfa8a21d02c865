/* Replays on a real GPU, each in a child process of its own. */
#ifndef FRAG_CLI_GPU_RUN_H
#define FRAG_CLI_GPU_RUN_H

#include "cli/command.h"
#include "sim/device/echo_device.h"
#include "sim/device/gpu_module.h"
#include "sim/run.h"

/* Options for a command's table, beside those of the device. */
#define FRAG_GPU_OPTIONS                                                                           \
    {"ballast", .help = "on cuda: first fill the card until only --capacity is "                   \
                        "free, so that the driver itself refuses; without it, "                    \
                        "fraglab counts and refuses calls beyond the capacity"},                   \
        {"touch", .help = "on cuda: write to all memory that is granted, on its stream"},          \
        FRAG_CUDART_OPTION

#define FRAG_CUDART_OPTION                                                                         \
    {                                                                                              \
        "cudart", "FILE",                                                                          \
            .help =                                                                                \
                "the CUDA runtime to use (default: libcudart.so.13 or .12, as the system finds "   \
                "them)"                                                                            \
    }

/* Which card, and how it is used. Texts are borrowed. */
typedef struct frag_gpu_choice {
    uint32_t ordinal;
    const char *cudart; /* NULL: found by name */
    bool has_ballast;
    bool is_touched;
    bool has_driver_addresses; /* but for traces that begin with something held */
    bool keeps_grants;         /* among the answers */
} frag_gpu_choice;

/* What came back beside the result of a run. */
typedef struct frag_gpu_run {
    frag_gpu_facts facts;
    frag_gpu_report report;
    uint64_t capacity_bytes; /* as the policy was told */
    uint64_t page_bytes;
    frag_address_rule address_rule;
    frag_answer_list answers;
} frag_gpu_run;

/* The options above. */
bool frag_gpu_choice_read(const frag_arguments *arguments, frag_gpu_choice *choice,
                          frag_error *error);

/* --device, and what goes with a card. */
typedef struct frag_gpu_devices {
    bool has_sim;
    bool has_gpu;
    frag_gpu_choice gpu;
} frag_gpu_devices;

bool frag_gpu_devices_read(const frag_arguments *arguments, frag_gpu_devices *devices,
                           frag_error *error);

/* Opens the card and closes it again. false: there is none, in the driver's words. */
bool frag_gpu_look(const frag_gpu_choice *choice, frag_gpu_facts *facts, frag_error *error);

/* As frag_run_count, on the card. The caller destroys *run either way. */
bool frag_gpu_run_count(const frag_gpu_choice *choice, const frag_recording *recording,
                        const frag_trace *trace, const frag_policy_ops *ops,
                        const frag_option_value *values, const frag_device_spec *device,
                        const frag_run_options *options, frag_run_result *result, frag_gpu_run *run,
                        frag_error *error);
void frag_gpu_run_destroy(frag_gpu_run *run);

/* Keeps a request and what it was granted (NULL: nothing) among the answers. */
void frag_gpu_keep_grant(frag_answer_list *answers, const frag_request *request,
                         const frag_grant *grant);

/* The device on which the same run can be repeated with no card: for the layout at the peak,
 * statistics and snapshots. opener and run outlive the spec. */
frag_device_spec frag_gpu_run_echo(const frag_gpu_run *run, const frag_device_spec *device,
                                   frag_device_opener *opener);

/* The simulated device that this run is to be compared with: where no capacity was asked for it has
 * that of the card, less what was in use when the run began. */
frag_device_spec frag_gpu_run_twin(const frag_gpu_run *run, const frag_device_spec *device);

#endif
